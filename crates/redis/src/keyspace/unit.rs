//! A unit: what takes effect as a whole, and for whom it runs.

use smallvec::SmallVec;

use super::{Keyspace, Seen};
use crate::flow::{bits, After, Barrier, Fate};
use crate::session::ConnId;
use crate::value::Value;

/// A command, an EXEC, a script: from [`Keyspace::begin`] to [`Keyspace::end`].
#[derive(Debug, Default)]
pub struct Unit {
    pub(super) db: u16,
    pub(super) now: i64,
    /// Sees what is not committed; else only what is.
    pub(super) latest: bool,
    /// Shards that it has changed by other means than entries.
    pub(super) shards: u32,
    /// Uncommitted batches whose changes it has seen.
    pub(super) saw: Seen,
    pub(super) touched: SmallVec<[Touched; 4]>,
    /// Entries whose latest state it has seen. If it writes, it relies on them: it must not happen
    /// after a later command of its connection has changed one, nor on what SQL has overwritten.
    pub(super) reads: SmallVec<[u32; 4]>,
    pub(super) missing: Vec<(u16, Box<[u8]>)>,
    /// It may have to be undone, so steps are kept.
    pub(super) undoable: bool,
    pub(super) steps: Vec<Step>,
    /// To be done when it has committed.
    pub(super) after: Vec<After>,
}

/// An entry that may have been changed.
#[derive(Debug)]
pub(super) struct Touched {
    pub at: u32,
    pub edits: u64,
    pub expires: i64,
    pub weight: usize,
    /// Its state has been kept for this unit.
    pub fresh: bool,
    pub replaced: bool,
    /// The first thing that happened to it in its batch was that it was overwritten: whatever an
    /// SQL writer does to its row meanwhile came before that.
    pub blind: bool,
    /// Those who watch the key are not told.
    pub quiet: bool,
}

#[derive(Debug)]
pub(super) enum Step {
    Replaced {
        at: u32,
        before: Option<Value>,
        expires: i64,
    },
    Edited {
        at: u32,
        expires: i64,
    },
    /// An entry has come to be without its row having been looked at.
    Inserted {
        at: u32,
    },
    /// FLUSHDB has emptied the database of this entry.
    Unversioned {
        at: u32,
        version: i64,
    },
    Flushed {
        db: u16,
        before: Option<Barrier>,
    },
}

/// What a unit has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// What its reply waits for.
    pub barrier: Option<Barrier>,
    /// Entries changed.
    pub changed: usize,
}

impl Unit {
    /// The entry touched last was overwritten unseen.
    pub(super) fn overwritten(&mut self) {
        if let Some(touched) = self.touched.last_mut() {
            touched.blind = true;
        }
    }

    pub(super) fn saw_batch(&mut self, shard: u8, seq: u64) {
        match self.saw.iter_mut().find(|(other, _)| *other == shard) {
            Some((_, seen)) => *seen = seq.max(*seen),
            None => self.saw.push((shard, seq)),
        }
    }

    pub(super) fn replaced(&mut self, at: u32) {
        if let Some(touched) = self.touched.iter_mut().find(|touched| touched.at == at) {
            touched.replaced = true;
        }
    }
}

impl Keyspace {
    /// `latest`: what is not committed is seen, too. `undoable`: the unit may end with
    /// [`Keyspace::undo`].
    pub fn begin(&mut self, db: u16, now: i64, latest: bool, undoable: bool) {
        let unit = &mut self.unit;
        unit.db = db;
        unit.now = now;
        unit.latest = latest;
        unit.undoable = undoable;
        unit.shards = 0;
        unit.saw.clear();
        unit.touched.clear();
        unit.reads.clear();
        unit.missing.clear();
        unit.steps.clear();
        unit.after.clear();
    }

    /// What is to be done when the unit that has just ended has committed.
    pub fn take_after(&mut self) -> Vec<After> {
        std::mem::take(&mut self.unit.after)
    }

    /// A keyspace notification of this class (a letter of `notify-keyspace-events`), which is told
    /// when what the unit does has committed.
    pub fn event(&mut self, class: u8, name: &'static str, key: &[u8]) {
        if self.notify.tells(class) {
            let db = self.unit.db;
            self.unit.after.push(After::Event { db, name, key: key.into() });
        }
    }

    /// Something to be done when what the unit does has committed; at once, if it has done and seen
    /// nothing that can still be undone.
    pub fn afterwards(&mut self, after: After) {
        self.unit.after.push(after);
    }

    /// The unit's reply waits for that batch, too.
    pub fn depend_on(&mut self, barrier: Barrier) {
        if self.flow.fate(barrier) == Fate::Pending {
            self.unit.saw_batch(barrier.shard, barrier.seq);
        }
    }

    /// The shards of all keys that the unit has looked at or changed, as a mask. Looks are known
    /// only if it sees what is not committed.
    pub fn unit_shards(&self) -> u32 {
        let touched = self.unit.touched.iter().map(|touched| touched.at);
        let all = touched.chain(self.unit.reads.iter().copied());
        all.fold(self.unit.shards, |mask, at| mask | 1 << self.entries[at as usize].shard)
    }

    /// Keys that the unit has asked for and that are not in memory.
    pub fn missing(&mut self) -> Vec<(u16, Box<[u8]>)> {
        std::mem::take(&mut self.unit.missing)
    }

    /// What has changed becomes part of the open batch. `conn` waits for it, if there is anything
    /// to wait for.
    pub fn end(&mut self, conn: Option<ConnId>) -> Done {
        let mut mask = self.unit.shards;
        let mut changed = 0;
        for touched in std::mem::take(&mut self.unit.touched) {
            if self.finish(&touched) {
                changed += 1;
                let of_clients = self.entries[touched.at as usize].db != super::LIBRARIES;
                let told = of_clients && !touched.quiet;
                if self.is_tracked && self.unit.shards == 0 && told {
                    let key = self.entries[touched.at as usize].key.clone();
                    self.unit.after.push(After::Changed { key, by: conn });
                }
                mask |= 1 << self.entries[touched.at as usize].shard;
            }
        }
        if mask != 0 {
            for at in std::mem::take(&mut self.unit.reads) {
                let entry = &self.entries[at as usize];
                let shard = entry.shard;
                mask |= 1 << shard;
                // What the batch writes is checked by that, and what it flushes is gone. The entry
                // may be gone before the batch is sealed, so its name is kept.
                let written = entry.dirty == self.flow.open_seq(shard);
                let open = self.flow.open(shard);
                let flushed = open.flushes.contains(&entry.db);
                if !written && !flushed && entry.version != super::UNKNOWN {
                    open.checks.push((entry.db, entry.key.clone(), entry.version));
                }
            }
        }
        let barrier = self.barrier(mask);
        if let (Some(barrier), Some(conn)) = (barrier, conn) {
            if barrier.seq == self.flow.open_seq(barrier.shard) {
                let open = self.flow.open(barrier.shard);
                if open.waiters.last() != Some(&conn) {
                    open.waiters.push(conn);
                }
            }
        }
        Done { barrier, changed }
    }

    /// True when the entry is another than before the unit.
    fn finish(&mut self, touched: &Touched) -> bool {
        let entry = &mut self.entries[touched.at as usize];
        let changed =
            touched.replaced || entry.expires != touched.expires || entry.edits() != touched.edits;
        if let Some(collection) = entry.value.as_mut().and_then(Value::collection_mut) {
            if self.unit.undoable {
                collection.keep();
            }
        }
        if !changed {
            if touched.fresh {
                entry.unkeep();
            }
            return false;
        }
        self.bytes = (self.bytes + entry.weight()).saturating_sub(touched.weight);
        let (db, shard) = (entry.db, entry.shard);
        if touched.fresh {
            // The rows of a collection that is overwritten have to be swept, so it has to be that.
            // What EXEC relies on it must not overwrite unseen.
            let blind = touched.blind && !self.unit.reads.contains(&touched.at);
            if blind && entry.stored.0 == 0 {
                entry.version = super::UNKNOWN;
            }
            entry.dirty = self.flow.open_seq(shard);
            let (weight, open) = (entry.weight(), self.flow.open(shard));
            open.dirty.push(touched.at);
            open.bytes += weight;
        }
        self.remind(touched.at);
        let key = &self.entries[touched.at as usize].key;
        if !self.watched.is_empty() && !touched.quiet {
            match self.entries[touched.at as usize].value {
                Some(_) => self.watched.changed(db, key),
                None => self.watched.removed(db, key),
            }
        }
        super::note_ready(&self.awaited, &mut self.ready, db, key);
        true
    }

    /// What a reply waits for when these shards were written and those batches seen.
    fn barrier(&mut self, mask: u32) -> Option<Barrier> {
        let seen = self.unit.saw.iter().fold(0, |seen, (shard, _)| seen | 1u32 << shard);
        match (mask, (mask | seen).count_ones()) {
            (_, 0) => None,
            (0, 1) => self.unit.saw.first().map(|(shard, seq)| self.flow.barrier(*shard, *seq)),
            (_, 1) => {
                let shard = bits(mask).next()? as u8;
                let seq = self.flow.open_seq(shard);
                Some(self.flow.barrier(shard, seq))
            }
            _ => Some(self.flow.fuse(mask | seen)),
        }
    }

    /// Takes back everything the unit has changed; then it is as if it had not run.
    pub fn undo(&mut self) {
        while let Some(step) = self.unit.steps.pop() {
            match step {
                Step::Replaced { at, before, expires } => {
                    let entry = &mut self.entries[at as usize];
                    (entry.value, entry.expires) = (before, expires);
                }
                Step::Edited { at, expires } => {
                    let entry = &mut self.entries[at as usize];
                    entry.expires = expires;
                    if let Some(collection) = entry.value.as_mut().and_then(Value::collection_mut) {
                        collection.undo();
                    }
                }
                Step::Inserted { at } => self.drop_entry(at),
                Step::Unversioned { at, version } => self.entries[at as usize].version = version,
                Step::Flushed { db, before } => {
                    self.dbs[db].flushed = before;
                    let shard = self.shards_of(db).trailing_zeros() as u8;
                    let flushes = &mut self.flow.open(shard).flushes;
                    if let Some(last) = flushes.iter().rposition(|other| *other == db) {
                        flushes.remove(last);
                    }
                }
            }
        }
        for touched in std::mem::take(&mut self.unit.touched) {
            let entry = &mut self.entries[touched.at as usize];
            self.libraries += u64::from(entry.db == super::LIBRARIES);
            if touched.fresh {
                entry.unkeep();
            }
        }
        self.unit.reads.clear();
        self.unit.after.clear();
        self.unit.shards = 0;
    }
}
