//! What comes from tables and leaves memory: loading, sealing, committing, evicting.

use super::{Entry, Keyspace, NEVER};
use crate::flow::{Open, Sealed};
use crate::value::Value;

/// Entries that eviction looks at in one go.
const LOOKED_AT_MAX: usize = 1024;

/// A row to be written or deleted, as [`Keyspace::write_rows`] tells it.
#[derive(Debug)]
pub struct Changed<'a> {
    pub shard: u8,
    pub db: u16,
    pub key: &'a [u8],
    /// The version that the row has if nobody else has written it; 0 when there is none,
    /// [`super::UNKNOWN`] when it does not matter.
    pub expected: i64,
    pub value: Option<&'a mut Value>,
    pub expires: i64,
}

/// A removed collection's rows, to be swept.
pub type Orphan = (i64, u8);

impl Keyspace {
    /// A row, or its absence, as it is in the table. An entry that has come to be meanwhile knows
    /// better.
    pub fn loaded(&mut self, db: u16, key: &[u8], row: Option<(Value, i64, i64)>) {
        if self.find(db, key).is_some() {
            return;
        }
        let (value, expires, version) = match row {
            Some((value, expires, version)) => (Some(value), expires, version),
            None => (None, NEVER, 0),
        };
        self.insert(db, key, value, expires, version);
    }

    /// Whether misses in this database have to wait: it is being emptied.
    pub fn is_flushing(&self, db: u16) -> bool {
        self.dbs.get(db).is_some_and(|db| db.flushed.is_some())
    }

    /// Writes the rows of a sealed batch: `row` for each key, then the collections that nobody
    /// refers to any more are given.
    pub fn write_rows(&mut self, sealed: &Sealed, mut row: impl FnMut(Changed<'_>)) -> Vec<Orphan> {
        let (mut gone, mut held) = (Vec::new(), Vec::new());
        for at in &sealed.open.dirty {
            let entry = &mut self.entries[*at as usize];
            let seq = sealed.seqs.iter().find(|(shard, _)| *shard == entry.shard);
            let seq = seq.map_or(0, |(_, seq)| *seq);
            if let Some(collection) = entry.value.as_mut().and_then(Value::collection_mut) {
                if collection.kid() == 0 {
                    self.kids += 1;
                    collection.set_kid(self.kids);
                }
            }
            let now = entry.value.as_ref().map_or((0, 0), Value::incarnation);
            if entry.stored.0 != now.0 {
                gone.push(entry.stored);
                held.push(now.0);
            }
            entry.stored = now;
            let expires = entry.stored_expiry();
            row(Changed {
                shard: entry.shard,
                db: entry.db,
                key: &entry.key,
                expected: entry.version,
                value: entry.value.as_mut(),
                expires,
            });
            entry.version = match entry.value {
                // What the row's version will be is known when it is written from the journal.
                _ if self.flow.journal() == Some(entry.shard) => super::UNKNOWN,
                Some(_) => seq as i64,
                None => 0,
            };
        }
        gone.retain(|(kid, _)| *kid != 0 && !held.contains(kid));
        gone
    }

    /// The keys that a batch has written.
    pub fn written<'a>(&'a self, sealed: &'a Sealed) -> impl Iterator<Item = (u16, &'a [u8])> {
        sealed.open.dirty.iter().map(|at| {
            let entry = &self.entries[*at as usize];
            (entry.db, &*entry.key)
        })
    }

    /// The batch is in the tables.
    pub fn committed_batch(&mut self, sealed: &Sealed) {
        self.flow.commit(sealed);
        for at in &sealed.open.dirty {
            let entry = &mut self.entries[*at as usize];
            let committed = self.flow.committed(entry.shard);
            entry.prune(committed);
            if entry.doubted && entry.is_clean(committed) {
                self.drop_entry(*at);
            }
        }
        for db in &sealed.open.flushes {
            let state = &mut self.dbs[*db];
            let fate = state.flushed.map(|barrier| self.flow.fate(barrier));
            if fate != Some(crate::flow::Fate::Pending) {
                state.flushed = None;
            }
        }
    }

    /// Nothing of these batches is in the tables: what they changed is forgotten.
    pub fn forget(&mut self, batches: impl IntoIterator<Item = Open>) {
        for open in batches {
            for at in open.dirty {
                self.drop_entry(at);
            }
            for (db, key, _) in open.checks {
                let at = self.find(db, &key).map(|at| (at, &self.entries[at as usize]));
                if let Some((at, entry)) = at {
                    if entry.is_clean(self.flow.settled(entry.shard)) {
                        self.drop_entry(at);
                    }
                }
            }
            for db in open.flushes {
                self.dbs[db].flushed = None;
                self.forget_all(Some(db));
            }
        }
    }

    /// Somebody else has changed the row. True when a copy was dropped.
    pub fn changed_by_sql(&mut self, db: u16, key: &[u8]) -> bool {
        self.watched.changed(db, key);
        let Some(at) = self.find(db, key) else { return false };
        let entry = &self.entries[at as usize];
        let clean = entry.is_clean(self.flow.settled(entry.shard));
        // What is being written finds out by the row's version, unless it was written before; what
        // is in the journal overwrites the row.
        if clean {
            self.drop_entry(at);
        } else if self.is_overtaken(at) {
            self.stats.overwritten += 1;
        } else {
            self.entries[at as usize].doubted = true;
        }
        clean
    }

    /// Notes that an entry whose changes are not all in the tables has to be looked up again when
    /// they are. True when these come by the journal.
    fn is_overtaken(&mut self, at: u32) -> bool {
        let entry = &mut self.entries[at as usize];
        if self.flow.journal() != Some(entry.shard) {
            return false;
        }
        if !std::mem::replace(&mut entry.overtaken, true) {
            self.overtaken.push((entry.db, entry.key.clone()));
        }
        true
    }

    /// The journal is in the tables up to this batch.
    pub fn folded(&mut self, seq: u64) {
        self.flow.folded(seq);
        for (db, key) in std::mem::take(&mut self.overtaken) {
            let Some(at) = self.find(db, &key) else { continue };
            let entry = &self.entries[at as usize];
            if !entry.overtaken {
                continue;
            }
            if entry.is_clean(self.flow.settled(entry.shard)) {
                self.drop_entry(at);
            } else {
                self.overtaken.push((db, key));
            }
        }
    }

    /// Drops all copies, of one database or all: the clean ones now, the others when they are.
    pub fn forget_all(&mut self, db: Option<u16>) {
        for at in 0..self.entries.len() {
            let entry = &self.entries[at];
            if !self.is_used(at as u32) || db.is_some_and(|db| db != entry.db) {
                continue;
            }
            if entry.is_clean(self.flow.settled(entry.shard)) {
                self.drop_entry(at as u32);
            } else if !self.is_overtaken(at as u32) {
                self.entries[at].doubted = true;
            }
        }
        self.watched.all_changed(db);
    }

    fn is_used(&self, at: u32) -> bool {
        let entry = &self.entries[at as usize];
        self.find(entry.db, &entry.key) == Some(at)
    }

    pub(super) fn drop_entry(&mut self, at: u32) {
        let entry = &self.entries[at as usize];
        let (hash, db) = (self.hash_of(&entry.key), entry.db);
        let found = self.dbs[db].table.find_entry(hash, |other| *other == at);
        let Ok(found) = found else { return };
        found.remove();
        self.libraries += u64::from(db == super::LIBRARIES);
        self.bytes = self.bytes.saturating_sub(self.entries[at as usize].weight());
        self.entries[at as usize] = Entry::new(0, b"", 0, None, NEVER, 0);
        self.free.push(at);
    }

    /// Bytes of keys and values in memory, roughly.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Entries in memory, those of absent keys included.
    pub fn resident(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Drops clean copies that were not used lately until there are at most `limit` bytes, or has
    /// looked at enough for now. At none twice: what has just been loaded stays until the next time
    /// at least, or who waits for it would never find it.
    pub fn evict(&mut self, limit: usize) {
        for _ in 0..LOOKED_AT_MAX.min(self.entries.len()) {
            if self.bytes <= limit {
                return;
            }
            self.hand = (self.hand + 1) % self.entries.len();
            let at = self.hand as u32;
            let entry = &mut self.entries[self.hand];
            if std::mem::take(&mut entry.used) {
                continue;
            }
            let clean = entry.is_clean(self.flow.settled(entry.shard));
            if clean && self.is_used(at) {
                self.drop_entry(at);
                self.stats.evicted += 1;
            }
        }
    }

    /// Kids count on from here: each term of ownership has its own range.
    pub fn set_kids(&mut self, from: i64) {
        self.kids = from;
    }
}
