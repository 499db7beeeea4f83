//! Where results are kept: a bounded, sharded map from keys to entries.
//!
//! A shard is held for a look or an insertion only, and nobody waits for one: who finds it taken
//! for longer than a few spins treats that as a miss.
//!
//! What counts against the limit is everything that an entry takes: its bytes, its place in the
//! map, what the allocator adds. [`PLACE_BYTES`] and [`BLOCK_BYTES`] were measured; a test compares
//! them with what the allocator hands out.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use quick_cache::unsync::Cache;
use quick_cache::{DefaultHashBuilder, Weighter};

use crate::entry::Entry;
use crate::mirror::budget::Budget;

/// What a place in a shard's map takes, with the names of entries that have gone lately.
pub const PLACE_BYTES: u64 = 96;

/// What the allocator adds to a block, about.
pub const BLOCK_BYTES: u64 = 16;

/// Shards: a power of two, and many beside the number of workers.
const SHARDS: usize = 64;

/// So often a shard that is taken is tried.
const TRIES: usize = 64;

/// An entry that is larger than this part of a shard is not kept.
const LARGEST_PART: u64 = 4;

/// An average entry, for the first size of the maps.
const USUAL_ENTRY_BYTES: u64 = 512;

#[derive(Clone)]
struct Weigh;

impl Weighter<u64, Arc<Entry>> for Weigh {
    fn weight(&self, _: &u64, entry: &Arc<Entry>) -> u64 {
        entry.weight()
    }
}

type Shard = Cache<u64, Arc<Entry>, Weigh, DefaultHashBuilder>;

/// See the module's documentation.
pub struct Store {
    shards: Box<[Mutex<Shard>]>,
    hasher: foldhash::quality::RandomState,
    limit: u64,
    /// What mirrors take of the limit.
    mirrors: Arc<Budget>,
    evicted: AtomicU64,
    /// The last entry that came has cost another one.
    full: AtomicBool,
}

/// What was found.
#[derive(Debug)]
pub enum Found {
    Entry(Arc<Entry>),
    Nothing,
    /// The shard was taken.
    Busy,
}

impl Store {
    /// One that takes at most `limit` bytes.
    pub fn new(limit: u64) -> Store {
        Store::beside(limit, Arc::new(Budget::new(0)))
    }

    /// One that takes at most `limit` bytes, those of mirrors included.
    pub fn beside(limit: u64, mirrors: Arc<Budget>) -> Store {
        let part = limit / SHARDS as u64;
        let items = (part / USUAL_ENTRY_BYTES) as usize;
        let shard = || {
            Mutex::new(Cache::with(
                items,
                part,
                Weigh,
                DefaultHashBuilder::default(),
                Default::default(),
            ))
        };
        Store {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher: foldhash::quality::RandomState::default(),
            limit,
            mirrors,
            evicted: AtomicU64::new(0),
            full: AtomicBool::new(false),
        }
    }

    /// Gives way to mirrors that have grown, or takes what they have left. To be called every now
    /// and then.
    pub fn fit(&self) {
        let part = self.limit.saturating_sub(self.mirrors.used()) / SHARDS as u64;
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            if shard.capacity() != part {
                let before = shard.len();
                shard.set_capacity(part);
                self.evicted.fetch_add((before - shard.len()) as u64, Ordering::Relaxed);
            }
        }
    }

    /// What is kept now takes the place of something else.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// The hash under which a key is kept.
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    pub fn get(&self, hash: u64, key: &[u8]) -> Found {
        let Some(shard) = self.shard(hash) else { return Found::Busy };
        match shard.get(&hash) {
            Some(entry) if entry.key() == key => Found::Entry(entry.clone()),
            _ => Found::Nothing,
        }
    }

    /// Keeps an entry; false if it is too large or its shard is taken.
    pub fn put(&self, hash: u64, entry: Arc<Entry>) -> bool {
        if entry.weight() > self.limit / SHARDS as u64 / LARGEST_PART {
            return false;
        }
        let Some(mut shard) = self.shard(hash) else { return false };
        let before = shard.len();
        let known = shard.peek(&hash).is_some();
        shard.insert(hash, entry);
        let gone = (before + usize::from(!known)).saturating_sub(shard.len());
        self.full.store(gone > 0, Ordering::Relaxed);
        self.evicted.fetch_add(gone as u64, Ordering::Relaxed);
        true
    }

    /// Drops this entry, if it is the one that is kept.
    pub fn remove(&self, hash: u64, entry: &Arc<Entry>) {
        if let Some(mut shard) = self.shard(hash) {
            if shard.peek(&hash).is_some_and(|kept| Arc::ptr_eq(kept, entry)) {
                shard.remove(&hash);
            }
        }
    }

    pub fn clear(&self) {
        for shard in &self.shards {
            lock(shard).clear();
        }
        self.full.store(false, Ordering::Relaxed);
    }

    pub fn standing(&self) -> Standing {
        let mut standing = Standing {
            limit: self.limit,
            evicted: self.evicted.load(Ordering::Relaxed),
            ..Standing::default()
        };
        for shard in &self.shards {
            let shard = lock(shard);
            standing.entries += shard.len() as u64;
            standing.bytes += shard.weight();
        }
        standing
    }

    /// Calls `look` with every entry, one shard after the other. For consoles.
    pub fn each(&self, mut look: impl FnMut(&Entry)) {
        for shard in &self.shards {
            lock(shard).iter().for_each(|(_, entry)| look(entry));
        }
    }

    fn shard(&self, hash: u64) -> Option<MutexGuard<'_, Shard>> {
        // The map within the shard uses the other bits.
        let shard = &self.shards[(hash >> 48) as usize & (SHARDS - 1)];
        for _ in 0..TRIES {
            match shard.try_lock() {
                Ok(shard) => return Some(shard),
                Err(TryLockError::Poisoned(shard)) => return Some(shard.into_inner()),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        None
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Figures of a store. Bytes are estimated with everything in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    pub entries: u64,
    pub bytes: u64,
    pub limit: u64,
    pub evicted: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Parts;
    use crate::kept::Kept;

    fn entry(key: &[u8], bytes: usize) -> Arc<Entry> {
        let rows = vec![7; bytes];
        let parts = Parts { key, version: 1, tags: &[], description: None, rows: &rows };
        Arc::new(Entry::new(&parts))
    }

    #[test]
    fn what_is_kept_is_found_by_its_key_only() {
        let store = Store::new(1 << 20);
        let hash = store.hash(b"a");
        assert!(store.put(hash, entry(b"a", 10)));
        assert!(matches!(store.get(hash, b"a"), Found::Entry(found) if found.rows() == [7; 10]));
        assert!(matches!(store.get(hash, b"b"), Found::Nothing), "the hash alone is not enough");
        assert!(matches!(store.get(store.hash(b"b"), b"b"), Found::Nothing));
    }

    #[test]
    fn the_limit_holds_whatever_comes() {
        let store = Store::new(1 << 20);
        assert!(!store.is_full());
        for n in 0..100_000u32 {
            let key = n.to_be_bytes();
            store.put(store.hash(&key), entry(&key, 100 + (n % 400) as usize));
            if n % 1000 == 0 {
                assert!(store.standing().bytes <= 1 << 20);
            }
        }
        let standing = store.standing();
        assert!(standing.bytes <= 1 << 20 && standing.bytes > 1 << 19, "{standing:?}");
        assert!(standing.evicted > 90_000, "{standing:?}");
        assert!(store.is_full());
        store.clear();
        let key = b"after";
        store.put(store.hash(key), entry(key, 100));
        assert!(!store.is_full());
    }

    #[test]
    fn what_is_kept_of_a_statement_is_counted_until_it_is_gone() {
        let store = Store::new(1 << 20);
        let kept = Arc::new(Kept::default());
        for n in 0..20_000u32 {
            let key = n.to_be_bytes();
            let mut entry = Arc::into_inner(entry(&key, 100)).expect("nobody else's");
            if n % 2 == 0 {
                entry.count_in(kept.clone());
            }
            store.put(store.hash(&key), Arc::new(entry));
        }
        let (mut entries, mut bytes) = (0, 0);
        store.each(|entry| {
            if u32::from_be_bytes(entry.key().try_into().expect("four bytes")) % 2 == 0 {
                entries += 1;
                bytes += entry.weight();
            }
        });
        assert!(entries > 100, "{entries}");
        assert_eq!((kept.entries(), kept.bytes()), (entries, bytes));
        store.clear();
        assert_eq!((kept.entries(), kept.bytes()), (0, 0));
    }

    #[test]
    fn what_is_too_large_is_not_kept() {
        let store = Store::new(1 << 20);
        assert!(!store.put(store.hash(b"a"), entry(b"a", 1 << 16)));
        assert_eq!(store.standing().entries, 0);
    }

    #[test]
    fn only_the_entry_that_was_seen_is_removed() {
        let store = Store::new(1 << 20);
        let hash = store.hash(b"a");
        let (old, new) = (entry(b"a", 1), entry(b"a", 2));
        store.put(hash, old.clone());
        store.put(hash, new.clone());
        store.remove(hash, &old);
        assert!(matches!(store.get(hash, b"a"), Found::Entry(_)));
        store.remove(hash, &new);
        assert!(matches!(store.get(hash, b"a"), Found::Nothing));
    }

    #[test]
    fn a_shard_that_is_taken_is_a_miss() {
        let store = Store::new(1 << 20);
        let hash = store.hash(b"a");
        store.put(hash, entry(b"a", 1));
        let held = store.shard(hash).expect("it is free");
        assert!(matches!(store.get(hash, b"a"), Found::Busy));
        assert!(!store.put(hash, entry(b"a", 1)));
        drop(held);
        assert!(matches!(store.get(hash, b"a"), Found::Entry(_)));
    }
}
