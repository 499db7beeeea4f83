//! Memory that mirrors take, of all databases.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// So much may be taken, and is.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: AtomicU64,
}

/// What one of them takes; given back when it is gone.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    pub fn new(limit: u64) -> Budget {
        Budget { limit, used: AtomicU64::new(0) }
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

impl Charge {
    pub(crate) fn new(budget: &Arc<Budget>) -> Charge {
        Charge { budget: budget.clone(), bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// It takes so much now. False: that is too much.
    pub(crate) fn set(&mut self, bytes: u64) -> bool {
        let Budget { limit, used } = &*self.budget;
        if bytes <= self.bytes {
            used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
            return true;
        }
        let more = bytes - self.bytes;
        self.bytes = bytes;
        used.fetch_add(more, Ordering::Relaxed) + more <= *limit
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}
