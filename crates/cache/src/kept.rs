//! How much is kept of a statement that somebody has named.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts entries from when they are made until nobody has them any more.
#[derive(Debug, Default)]
pub struct Kept {
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl Kept {
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// With everything that an entry takes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, bytes: u64) {
        self.entries.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
