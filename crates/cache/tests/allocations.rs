//! The tags of a run are looked up for every statement that may be served: once buffers have grown
//! this never allocates.

#![allow(unsafe_code)] // Counting allocations takes an allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use cache::recipe::{Form, Precise, Recipe, Signature, Source, TableDeps, Value, Values};
use cache::tags::Tags;
use cache::value::{oid, Kind};
use smallvec::SmallVec;

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

/// All parameters are in text; the last one is an array.
struct Given(&'static [&'static str]);

impl Values for Given {
    fn get(&self, source: Source) -> Option<(Value<'_>, u32)> {
        let Source::Parameter(number) = source else {
            return None;
        };
        self.0.get(number as usize - 1).map(|text| (Value::Text(text.as_bytes()), oid::UNKNOWN))
    }
}

fn signature(table: u32, columns: &[(&str, Kind)], form: Form) -> Arc<Signature> {
    let columns = columns.iter().map(|(name, kind)| (name.to_string(), *kind)).collect();
    Arc::new(Signature::new(table, columns, form))
}

/// Two columns of one table, an array of another, a range of a third.
fn recipe() -> Recipe {
    let parameter = |number| vec![Source::Parameter(number)];
    let both = signature(1, &[("id", Kind::Int), ("name", Kind::Bytes)], Form::Equal);
    let restrictions = [
        Precise::Equal { signature: both, values: vec![parameter(1), parameter(2)] },
        Precise::AnyOf {
            signature: signature(2, &[("price", Kind::Numeric)], Form::Equal),
            array: Source::Parameter(4),
        },
        Precise::Range {
            signature: signature(3, &[("day", Kind::Date)], Form::Range),
            low: Some((Source::Parameter(3), true)),
            high: None,
        },
    ];
    let tables = restrictions
        .into_iter()
        .enumerate()
        .map(|(at, restriction)| TableDeps { oid: at as u32 + 1, restriction: Some(restriction) });
    Recipe { tables: tables.collect() }
}

#[test]
fn tags_of_a_run_are_found_without_allocating() {
    let tags = Tags::new(1 << 10, 1);
    let recipe = recipe();
    let given = Given(&["12345", "a name of some length", "2024-02-29", "{1.5,\"2.50\",NULL}"]);
    let mut out = SmallVec::new();
    assert!(recipe.tags(&given, &tags, &mut out));
    let some = out.len();
    assert!(some > 10 && tags.hold(&out, 0));
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..500 {
        assert!(recipe.tags(&given, &tags, &mut out));
        assert_eq!(out.len(), some);
    }
    // The harness may allocate on its own thread, but not once for each run.
    let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert!(made < 50, "{made} allocations in 500 runs");
}
