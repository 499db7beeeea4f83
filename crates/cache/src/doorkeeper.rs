//! Who has been here before: an answer is kept when its key comes for the second time, so that
//! keys that never come again take no memory.
//!
//! One bit a key, by its hash: now and then a newcomer is taken for somebody known, which costs one
//! entry. When many have come, all are forgotten, and so what is counted is what comes again
//! within a while.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bits: 4 MiB.
const BITS: u64 = 1 << 25;

/// So many newcomers are remembered before all are forgotten.
const REMEMBERED: u64 = BITS / 8;

/// See the module's documentation. Shared by all threads.
#[derive(Debug)]
pub struct Doorkeeper {
    bits: Box<[AtomicU64]>,
    newcomers: AtomicU64,
}

impl Default for Doorkeeper {
    fn default() -> Doorkeeper {
        let bits = std::iter::repeat_with(AtomicU64::default).take((BITS / 64) as usize).collect();
        Doorkeeper { bits, newcomers: AtomicU64::new(0) }
    }
}

impl Doorkeeper {
    /// Whether a key with this hash has come before. From now on it has.
    pub fn knows(&self, hash: u64) -> bool {
        // The store uses the other end.
        let at = hash % BITS;
        let (word, bit) = (&self.bits[(at / 64) as usize], 1 << (at % 64));
        if word.load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        let known = word.fetch_or(bit, Ordering::Relaxed) & bit != 0;
        if !known && self.newcomers.fetch_add(1, Ordering::Relaxed) + 1 >= REMEMBERED {
            self.newcomers.store(0, Ordering::Relaxed);
            self.bits.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn who_comes_again_is_known_and_newcomers_mostly_are_not() {
        let doorkeeper = Doorkeeper::default();
        let hash = |n: u64| foldhash::quality::FixedState::default().hash_one(n);
        let known = (0..1_000_000).filter(|n| doorkeeper.knows(hash(*n))).count();
        assert!(known < 30_000, "{known} newcomers were taken for others");
        assert!((0..1_000_000).all(|n| doorkeeper.knows(hash(n))));
    }

    #[test]
    fn after_many_newcomers_all_are_forgotten() {
        let doorkeeper = Doorkeeper::default();
        assert!(!doorkeeper.knows(7));
        for n in 0..REMEMBERED {
            doorkeeper.knows(n * 8);
        }
        assert!(!doorkeeper.knows(7));
    }
}
