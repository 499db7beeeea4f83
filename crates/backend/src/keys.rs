//! Keys that the workers of a process hold for what they have sent, so that statements of different
//! workers do not meet in PostgreSQL either.
//!
//! How it is driven: a worker [`Held::take`]s all keys of a statement before that rides, and
//! [`Held::give`]s them back when it holds no lock any more. Who did not get them is remembered:
//! the key is kept for him for a moment, and its last holder is told whom to wake. If he does not
//! come, whoever asks next gets it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;

use crate::lanes::Key;
use crate::moment::Moment;

/// Keys of one shard are behind one lock, which is held for a look.
const SHARDS: usize = 64;

/// A key that somebody has waited for is kept for him so long.
pub const KEPT_FOR: Duration = Duration::from_millis(1);

/// Keys of a shard that nobody holds are looked for when it has so many.
const SWEEP: usize = 1024;

/// Workers by bits.
pub type Workers = u64;

#[derive(Debug, Default)]
struct Holder {
    worker: u8,
    /// So many of its statements ride with the key.
    count: u32,
    wanted: Workers,
    /// Nobody holds it; until then nobody but this worker gets it.
    kept: Option<(u8, Moment)>,
}

type Shard = HashMap<Key, Holder, foldhash::fast::RandomState>;

/// See the module's documentation.
#[derive(Debug)]
pub struct Held([Mutex<Shard>; SHARDS]);

impl Default for Held {
    fn default() -> Held {
        Held(std::array::from_fn(|_| Mutex::default()))
    }
}

impl Held {
    fn shard(&self, key: Key) -> MutexGuard<'_, Shard> {
        // The low bits are those that a map looks at first.
        let shard = &self.0[(key.0 >> 58) as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, or none; then the worker is told when they are free. `wakes`: others, who can
    /// have what was taken for nothing.
    pub fn take(&self, keys: &[Key], worker: u8, now: Moment, wakes: &mut Workers) -> bool {
        for (at, key) in keys.iter().enumerate() {
            if !self.take_one(*key, worker, now) {
                *wakes |= self.give(&keys[..at], worker, now);
                return false;
            }
        }
        true
    }

    fn take_one(&self, key: Key, worker: u8, now: Moment) -> bool {
        let mut shard = self.shard(key);
        if shard.len() >= SWEEP {
            shard.retain(|_, holder| holder.count > 0 || holder.wanted != 0);
        }
        let holder = shard.entry(key).or_default();
        let free = match holder.kept {
            _ if holder.count > 0 => holder.worker == worker,
            Some((other, until)) => other == worker || until <= now,
            None => true,
        };
        if free {
            (holder.worker, holder.kept) = (worker, None);
            holder.count += 1;
            holder.wanted &= !(1 << worker);
        } else {
            holder.wanted |= 1 << worker;
        }
        free
    }

    /// A statement holds them no more. Gives the workers that wait for one of them.
    pub fn give(&self, keys: &[Key], worker: u8, now: Moment) -> Workers {
        let mut wakes = 0;
        for key in keys {
            let mut shard = self.shard(*key);
            let Some(holder) = shard.get_mut(key).filter(|holder| holder.worker == worker) else {
                continue;
            };
            holder.count = holder.count.saturating_sub(1);
            if holder.count > 0 {
                continue;
            }
            if holder.wanted == 0 {
                shard.remove(key);
                continue;
            }
            // The next one after this worker, so that each has its turn.
            let turned = holder.wanted.rotate_right(u32::from(worker) + 1).trailing_zeros();
            let next = (turned + u32::from(worker) + 1) % Workers::BITS;
            holder.wanted &= !(1 << next);
            holder.kept = Some((next as u8, now.after(KEPT_FOR)));
            wakes |= 1 << next;
        }
        wakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment(0);
    const LATER: Moment = Moment(1_000_000);

    fn take(held: &Held, keys: &[u64], worker: u8, now: Moment) -> bool {
        let keys: Vec<Key> = keys.iter().map(|key| Key(*key)).collect();
        held.take(&keys, worker, now, &mut 0)
    }

    fn give(held: &Held, keys: &[u64], worker: u8) -> Workers {
        let keys: Vec<Key> = keys.iter().map(|key| Key(*key)).collect();
        held.give(&keys, worker, NOW)
    }

    #[test]
    fn one_worker_has_a_key_for_as_many_statements_as_it_likes() {
        let held = Held::default();
        assert!(take(&held, &[1, 2], 0, NOW) && take(&held, &[1], 0, NOW));
        assert!(!take(&held, &[3, 2], 1, NOW));
        assert!(take(&held, &[3], 2, NOW), "it was given back");
        assert_eq!(give(&held, &[1, 2], 0), 1 << 1);
        assert!(!take(&held, &[1], 2, NOW), "one more rides");
        assert_eq!(give(&held, &[1], 0), 1 << 2);
    }

    #[test]
    fn who_has_waited_comes_before_who_had_it() {
        let held = Held::default();
        assert!(take(&held, &[1], 1, NOW));
        assert!(!take(&held, &[1], 0, NOW) && !take(&held, &[1], 3, NOW));
        assert_eq!(give(&held, &[1], 1), 1 << 3, "the next one round");
        assert!(!take(&held, &[1], 1, NOW) && !take(&held, &[1], 0, NOW));
        assert!(take(&held, &[1], 3, NOW));
        assert_eq!(give(&held, &[1], 3), 1 << 0);
        assert!(take(&held, &[1], 0, NOW));
        assert_eq!(give(&held, &[1], 0), 1 << 1);
    }

    #[test]
    fn who_does_not_come_is_not_waited_for() {
        let held = Held::default();
        assert!(take(&held, &[1], 0, NOW) && !take(&held, &[1], 1, NOW));
        assert_eq!(give(&held, &[1], 0), 1 << 1);
        assert!(!take(&held, &[1], 0, NOW));
        assert!(take(&held, &[1], 0, LATER));
        assert_eq!(give(&held, &[1], 0), 0);
        assert!(held.0.iter().all(|shard| shard.lock().is_ok_and(|shard| shard.is_empty())));
    }

    #[test]
    fn what_nobody_comes_for_is_forgotten() {
        let held = Held::default();
        for key in 0..SWEEP as u64 * 4 {
            assert!(take(&held, &[key], 0, NOW) && !take(&held, &[key], 1, NOW));
            assert_eq!(give(&held, &[key], 0), 1 << 1);
        }
        let kept: usize = held.0.iter().map(|shard| shard.lock().map_or(0, |s| s.len())).sum();
        assert!(kept <= SWEEP, "{kept} keys");
    }
}
