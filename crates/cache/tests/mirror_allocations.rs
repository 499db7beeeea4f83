//! Statements over tables in memory: once buffers have grown a run never allocates.

#![allow(unsafe_code)] // Counting allocations takes an allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use cache::mirror::class::{Class, Collation};
use cache::mirror::definition::{Column, Definition};
use cache::mirror::output::Session;
use cache::mirror::plan::Plan;
use cache::mirror::run::{run, Limits, Ran, Scratch, Terms};
use cache::mirror::table::Table;
use cache::recipe::{Value, Values};
use cache::value::oid;
use sql::{Comparison, Filter, Order, Output, Select, Source};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: it passes everything on to the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

type At = (u16, u16);

const ID: At = (0, 0);
const K: At = (0, 1);
const C: At = (0, 2);

struct Given(Vec<&'static str>);

impl Values for Given {
    fn get(&self, source: Source) -> Option<(Value<'_>, u32)> {
        let Source::Parameter(number) = source else { return None };
        let text = self.0.get(number as usize - 1)?;
        Some((Value::Text(text.as_bytes()), oid::UNKNOWN))
    }
}

fn table() -> Table {
    let column = |name: &str, type_oid: u32| Column {
        name: name.to_owned(),
        attnum: 1,
        type_oid,
        type_modifier: -1,
        class: Class::of(type_oid),
        collation: Collation::Ordered,
        not_null: true,
        labels: Arc::from([]),
    };
    let definition = Definition {
        oid: 1,
        filenode: 1,
        schema: "public".to_owned(),
        name: "sbtest1".to_owned(),
        columns: vec![column("id", oid::INT4), column("k", oid::INT4), column("c", oid::TEXT)],
        identity: vec![0],
    };
    let mut table = Table::new(Arc::new(definition));
    for id in 1..=5_000i32 {
        let text = format!("{:011}-{}", id * 7919 % 100_003, "x".repeat(60));
        let (k, id) = ((id * 31 % 1_000).to_be_bytes(), id.to_be_bytes());
        table.load(&[Some(&id), Some(&k), Some(text.as_bytes())]).expect("a row");
    }
    table.finish().expect("each once");
    table.add_index(0, &[1]);
    table.add_index(1, &[]);
    table
}

fn select(outputs: Vec<Output<At>>, filter: Filter<At>) -> Select<At> {
    Select {
        distinct: false,
        shown: outputs.len(),
        outputs,
        filter,
        group: vec![],
        order: vec![],
        limit: None,
        offset: None,
    }
}

fn equal(at: At, parameter: u32) -> Filter<At> {
    Filter::Compare(at, Comparison::Equal, Source::Parameter(parameter))
}

fn between(at: At) -> Filter<At> {
    Filter::And(vec![
        Filter::Compare(at, Comparison::GreaterEqual, Source::Parameter(1)),
        Filter::Compare(at, Comparison::LessEqual, Source::Parameter(2)),
    ])
}

fn order(output: usize) -> Vec<Order> {
    vec![Order { output, descending: false, nulls_first: false }]
}

/// Statements of sysbench and some more, with values.
fn statements() -> Vec<(&'static str, Select<At>, Given)> {
    let columns = |columns: &[At]| columns.iter().copied().map(Output::Column).collect::<Vec<_>>();
    let range = || Given(vec!["1000", "1099"]);
    let many =
        vec!["3", "500", "499", "4999", "10000", "17", "17", "4", "1", "2", "77", "78", "79", "80"];
    let sources = (1..=many.len() as u32).map(Source::Parameter).collect();
    vec![
        ("point", select(columns(&[C]), equal(ID, 1)), Given(vec!["4711"])),
        ("none", select(columns(&[C]), equal(ID, 1)), Given(vec!["471100"])),
        ("points", select(columns(&[ID, K, C]), Filter::In(K, sources)), Given(many)),
        ("range", select(columns(&[C]), between(ID)), range()),
        ("count", select(vec![Output::CountRows], between(K)), Given(vec!["1", "600"])),
        ("sum", select(vec![Output::Sum(K), Output::Count(K)], between(ID)), range()),
        ("ends", select(vec![Output::Min(K), Output::Max(C)], between(K)), Given(vec!["5", "9"])),
        ("order", Select { order: order(0), ..select(columns(&[C]), between(ID)) }, range()),
        (
            "distinct",
            Select { distinct: true, order: order(0), ..select(columns(&[C]), between(ID)) },
            range(),
        ),
        (
            "groups",
            Select {
                group: vec![K],
                ..select(vec![Output::Column(K), Output::CountRows], between(ID))
            },
            range(),
        ),
        (
            "first",
            Select {
                order: order(1),
                limit: Some(Source::Parameter(3)),
                ..select(columns(&[C, K]), between(K))
            },
            Given(vec!["100", "900", "10"]),
        ),
    ]
}

#[test]
fn a_run_with_used_memory_does_not_allocate() {
    let tables = HashMap::from([(1, table())]);
    let definition = tables[&1].definition().clone();
    let (mut scratch, mut out) = (Scratch::default(), Vec::new());
    let utf8 = |name: &str| (name == "client_encoding").then(|| "UTF8".to_owned());
    let session = Session::of(&utf8);
    let limits = Limits { rows: 100_000, bytes: 1 << 20 };
    let terms = Terms { formats: &[], session: &session, limits };
    for (name, select, values) in statements() {
        let types = |_| oid::UNKNOWN;
        let plan = Plan::new(select, vec![definition.clone()], &types).expect(name);
        let mut counts = Vec::new();
        for _ in 0..4 {
            out.clear();
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            let ran = run(&plan, &tables, &values, terms, &mut scratch, &mut out);
            counts.push(ALLOCATIONS.load(Ordering::Relaxed) - before);
            assert!(matches!(ran, Ran::Rows(_)), "{name}: {ran:?}");
        }
        assert_eq!(counts[3], 0, "{name}: {counts:?}");
    }
}
