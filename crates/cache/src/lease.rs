//! Who asks PostgreSQL: of several that want the same answer at once, and could keep it, one.
//!
//! It has the [`Lease`] until its answer has come, or until it is known that none will: a lease
//! that is dropped is over, however that came about. The others go without one, or wait.

use std::sync::{Arc, Weak};

use hashbrown::HashMap;

/// Leases that are remembered before those that are over are swept out, at the least.
const SWEEP_AT: usize = 1024;

/// See the module's documentation.
#[derive(Debug)]
pub struct Lease(#[expect(dead_code, reason = "it is there, or it is not")] Arc<()>);

/// Somebody else's lease.
#[derive(Debug, Clone)]
pub struct Awaited(Weak<()>);

/// The leases of one worker, by the hashes of the keys. Two keys with one hash cost a delay.
#[derive(Debug, Default)]
pub struct Leases {
    taken: HashMap<u64, Weak<()>, foldhash::fast::RandomState>,
    sweep_at: usize,
}

impl Leases {
    /// # Errors
    /// Somebody else has it.
    pub fn take(&mut self, hash: u64) -> Result<Lease, Awaited> {
        if let Some(taken) = self.taken.get(&hash).filter(|taken| taken.strong_count() > 0) {
            return Err(Awaited(taken.clone()));
        }
        if self.taken.len() >= self.sweep_at.max(SWEEP_AT) {
            self.taken.retain(|_, taken| taken.strong_count() > 0);
            self.sweep_at = self.taken.len() * 2;
        }
        let lease = Arc::new(());
        self.taken.insert(hash, Arc::downgrade(&lease));
        Ok(Lease(lease))
    }
}

impl Awaited {
    pub fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_until_it_is_dropped() {
        let mut leases = Leases::default();
        let lease = leases.take(7).expect("nobody has it");
        let awaited = leases.take(7).expect_err("somebody has it");
        assert!(leases.take(8).is_ok(), "another key");
        assert!(!awaited.is_over());
        drop(lease);
        assert!(awaited.is_over());
        assert!(leases.take(7).is_ok());
    }

    #[test]
    fn those_that_are_over_take_no_memory() {
        let mut leases = Leases::default();
        let held: Vec<Lease> = (0..10).filter_map(|hash| leases.take(hash).ok()).collect();
        for hash in 10..100_000 {
            drop(leases.take(hash));
        }
        assert!(leases.taken.len() <= SWEEP_AT, "{}", leases.taken.len());
        assert!((0..10).all(|hash| leases.take(hash).is_err()), "{}", held.len());
    }
}
