//! What tables say that they take is what they take, it is little, and looking at them takes none.

#![allow(unsafe_code)] // Counting memory takes an allocator.

#[allow(dead_code)] // Not all of it is needed here.
#[path = "model/random.rs"]
mod random;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Bound;
use std::sync::Arc;

use cache::mirror::building::Next;
use cache::mirror::class::{Class, Collation};
use cache::mirror::definition::{Column, Definition};
use cache::mirror::key::put_key;
use cache::mirror::ordered::Range;
use cache::mirror::table::{Field, Table};

use random::Random;

struct Counting;

// Of this thread: that of the test runner allocates meanwhile.
thread_local! {
    static BYTES: Cell<u64> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: it passes everything on to the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get().wrapping_add(layout.size() as u64));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get().wrapping_sub(layout.size() as u64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn table(classes: &[Class]) -> Table {
    let column = |(at, class): (usize, &Class)| Column {
        name: format!("c{at}"),
        attnum: at as i16 + 1,
        type_oid: 0,
        type_modifier: -1,
        class: *class,
        collation: Collation::Ordered,
        not_null: true,
        labels: [].into(),
    };
    Table::new(Arc::new(Definition {
        oid: 1,
        filenode: 1,
        schema: "public".to_owned(),
        name: "t".to_owned(),
        columns: classes.iter().enumerate().map(column).collect(),
        identity: vec![0],
    }))
}

fn key(id: i32) -> Vec<u8> {
    let mut key = Vec::new();
    put_key(Class::Int4, &id.to_be_bytes(), &mut key);
    key
}

/// Within a hundredth.
fn is_counted(table: &Table, before: u64, what: &str) {
    let (says, takes) = (table.bytes(), BYTES.get().wrapping_sub(before));
    assert!(says.abs_diff(takes) * 100 <= takes, "{what}: it says {says}, and takes {takes}");
}

const ROWS: i32 = 300_000;

fn integers() {
    let before = BYTES.get();
    let mut random = Random(1);
    let mut table = table(&[Class::Int4, Class::Int4]);
    let mut value = || (random.next() as i32).to_be_bytes();
    for id in 0..ROWS {
        table.load(&[Some(&id.to_be_bytes()), Some(&value())]).expect("a row");
    }
    is_counted(&table, before, "loaded");
    table.finish().expect("identities differ");
    table.add_index(1, &[]);
    is_counted(&table, before, "with indexes");
    // Pages are as large for few rows.
    let most = 42 * ROWS as u64;
    assert!(table.bytes() < most, "{} bytes a row", table.bytes() / ROWS as u64);
    table.add_index(0, &[1]);
    is_counted(&table, before, "with sums");
    for id in (0..ROWS).step_by(3) {
        table.update(&key(id), &[Field::Unchanged, Field::Value(&value())]).expect("it is there");
    }
    is_counted(&table, before, "changed");
    for id in (0..ROWS).filter(|id| id % 50 != 0) {
        table.delete(&key(id)).expect("it is there");
    }
    is_counted(&table, before, "mostly deleted");
    let mut building = table.begin_index(1, &[0]).expect("nothing else is built");
    table.update(&key(0), &[Field::Unchanged, Field::Value(&value())]).expect("it is there");
    while building.next() != Next::Done {
        match building.next() {
            Next::Reading => building.read(&table, 1_000),
            Next::Working => building.work(),
            _ => table.build_index(&mut building),
        }
    }
    drop(building);
    is_counted(&table, before, "with an index built beside");
    nothing_is_allocated(&table);
    table.truncate();
    assert!(table.bytes() < 1 << 16);
    drop(table);
    assert_eq!(BYTES.get(), before);
}

fn nothing_is_allocated(table: &Table) {
    let (low, high) = (key(1_000), key(200_000));
    let range = Range { low: Bound::Included(&low), high: Bound::Excluded(&high) };
    let before = ALLOCATIONS.get();
    let id = table.find(&high).expect("it is there");
    assert!(table.field(id, 1).is_some());
    let index = table.index(0).expect("an index");
    assert_eq!(index.count(table.rows(), &range), 3_980);
    assert!(index.sum(table.rows(), &range, 1).is_some());
    assert_eq!(index.ids(table.rows(), &range, true).count(), 3_980);
    assert_eq!(ALLOCATIONS.get(), before);
}

/// Rows whose lengths change all the time find places that others have left.
fn texts() {
    let before = BYTES.get();
    let mut random = Random(2);
    let mut table = table(&[Class::Int4, Class::Text]);
    let text = vec![b'x'; 1_000];
    for id in 0..20_000_i32 {
        let length = random.below(200);
        table.load(&[Some(&id.to_be_bytes()), Some(&text[..length])]).expect("a row");
    }
    table.finish().expect("identities differ");
    table.add_index(1, &[]);
    is_counted(&table, before, "texts");
    let full = table.bytes();
    for _ in 0..200_000 {
        let (id, length) = (random.below(20_000) as i32, random.below(200));
        let fields = [Field::Unchanged, Field::Value(&text[..length])];
        table.update(&key(id), &fields).expect("it is there");
    }
    is_counted(&table, before, "changed texts");
    assert!(table.bytes() < full * 3 / 2, "{full} bytes have become {}", table.bytes());
}

#[test]
fn tables_take_what_they_say() {
    integers();
    texts();
}
