//! The scanner runs for every statement: once its buffers have grown it never allocates.

#![allow(unsafe_code)] // Counting allocations takes an allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use sql::{leading, Scan};

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

#[test]
fn a_scanner_that_has_seen_longer_texts_does_not_allocate() {
    let texts = [
        "SELECT abalance FROM pgbench_accounts WHERE aid = 12345;",
        "UPDATE pgbench_tellers SET tbalance = tbalance + -7 WHERE tid = 3",
        "select a, 'it''s' /* comment */ from t -- end\n where b in (1, 2.5, 9999999999)",
        "select 'unterminated",
        "begin",
    ];
    let mut scan = Scan::new();
    let mut read = 0;
    for text in texts {
        scan.scan(text.as_bytes());
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..100 {
        for text in texts {
            leading(text.as_bytes());
            read += u32::from(scan.scan(text.as_bytes()));
        }
    }
    // The harness may allocate on its own thread, but not once for each text.
    let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert_eq!(read, 400);
    assert!(made < 50, "{made} allocations in 500 scans");
}
