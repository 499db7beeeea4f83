//! Keys and their values in memory: what commands read and change.
//!
//! Memory holds copies of rows, not all of them: a key is *known* (there is an entry, be it for a
//! key that does not exist) or a command that asks for it ends with [`Failure::Miss`] and runs
//! again when it has been loaded.
//!
//! An entry has a *latest* state and, while that is not committed, *past* ones. A connection reads
//! what is committed; one that has replies outstanding reads the latest state, and its replies wait
//! until that is committed. Commands don't notice: [`Keyspace::begin`] says for whom a unit runs,
//! [`Keyspace::end`] what its reply has to wait for.
//!
//! Rules for commands:
//! - read with [`Keyspace::look`] and its like, which see neither expired keys nor others'
//!   uncommitted changes;
//! - look at every key before the first change, since a [`Failure::Miss`] after one would do it
//!   twice (the engine has loaded the keys that the command table names);
//! - change with [`Keyspace::set`], [`Keyspace::remove`], `..._mut` and `..._or_new`, and call
//!   [`Keyspace::settle`] after elements may have been removed.

mod entry;
mod expiry;
mod memory;
mod unit;

use hashbrown::HashTable;
use smallvec::SmallVec;

pub use entry::{Entry, LAST_MOMENT, NEVER, UNKNOWN};
pub use memory::{Changed, Orphan};
pub use unit::{Done, Unit};
use unit::{Step, Touched};

use crate::args::Args;
use crate::command::{Command, Keys};
use crate::failure::Failure;
use crate::flow::{After, Flow};
use crate::value::{Hash, Kind, List, Set, Str, Stream, Value, Zset};

/// A value up to this size is copied when it changes, so that others can read what is committed
/// meanwhile; readers of a larger one wait for the commit. In bytes.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// When a key expires, for [`Keyspace::set`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// As before.
    Keep,
    Never,
    /// Milliseconds since 1970.
    At(i64),
}

/// A logical database.
#[derive(Debug, Default)]
struct Db {
    table: HashTable<u32>,
    /// FLUSHDB has emptied it, and that is not committed: keys without an entry don't exist.
    flushed: Option<crate::flow::Barrier>,
    /// Its writes go to the journal first.
    is_journaled: bool,
}

#[derive(Debug)]
pub struct Keyspace {
    hasher: foldhash::fast::RandomState,
    dbs: Vec<Db>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    pub flow: Flow,
    unit: Unit,
    /// Keys that somebody watches; the engine wants to hear of their changes.
    pub watched: crate::watch::Watched,
    /// Keys that somebody is blocked on and that have changed.
    pub ready: Vec<(u16, Box<[u8]>)>,
    /// Keys that somebody is blocked on.
    pub awaited: Names,
    /// Bytes of keys and values in memory, roughly.
    bytes: usize,
    /// Entries that are [`Entry::overtaken`].
    overtaken: Vec<(u16, Box<[u8]>)>,
    /// Where eviction goes on.
    hand: usize,
    kids: i64,
    /// When entries expire.
    reminders: expiry::Reminders,
    /// Which changes are told.
    pub notify: crate::notify::Notify,
    /// Somebody wants to hear of changes: CLIENT TRACKING.
    pub is_tracked: bool,
    /// Whether what [`Keyspace::look`] finds counts as found by a read.
    pub counts_lookups: bool,
    /// CLIENT NO-TOUCH: keys don't count as used.
    pub leaves_no_trace: bool,
    pub stats: Stats,
}

/// What has been counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stats {
    /// Entries that were in memory, and those that were not.
    pub hits: u64,
    pub misses: u64,
    /// Keys that reads found, and that did not exist.
    pub found: u64,
    pub absent: u64,
    pub expired: u64,
    pub evicted: u64,
    /// Changes by SQL of rows that had changes in the journal, which overwrite them.
    pub overwritten: u64,
}

impl Keyspace {
    /// `journaled`: databases whose keys are in the journal's shard.
    pub fn new(databases: u16, flow: Flow, journaled: &[u16]) -> Keyspace {
        let new = |db| Db { is_journaled: journaled.contains(&db), ..Db::default() };
        Keyspace {
            hasher: foldhash::fast::RandomState::default(),
            dbs: (0..databases).map(new).collect(),
            entries: Vec::new(),
            free: Vec::new(),
            flow,
            unit: Unit::default(),
            watched: crate::watch::Watched::default(),
            ready: Vec::new(),
            awaited: hashbrown::HashSet::default(),
            bytes: 0,
            overtaken: Vec::new(),
            hand: 0,
            kids: 0,
            reminders: expiry::Reminders::default(),
            notify: crate::notify::Notify::default(),
            is_tracked: false,
            counts_lookups: false,
            leaves_no_trace: false,
            stats: Stats::default(),
        }
    }

    pub fn databases(&self) -> u16 {
        self.dbs.len() as u16
    }

    /// The database that the unit works on; [`Keyspace::select`] changes it.
    pub fn db(&self) -> u16 {
        self.unit.db
    }

    /// Milliseconds since 1970, the same for all of a unit.
    pub fn now(&self) -> i64 {
        self.unit.now
    }

    /// For commands that concern another database (COPY, MOVE) and for SELECT.
    pub fn select(&mut self, db: u16) {
        self.unit.db = db.min(self.databases().saturating_sub(1));
    }

    // Reading.

    /// The key's value, if it exists.
    pub fn look(&mut self, key: &[u8]) -> Result<Option<&Value>, Failure> {
        let at = self.known(key)?;
        self.use_now(at);
        if self.counts_lookups {
            let found = self.seen_by_unit(at)?.is_some();
            self.stats.found += u64::from(found);
            self.stats.absent += u64::from(!found);
            if !found {
                self.event(b'm', "keymiss", key);
            }
        }
        self.seen_by_unit(at)
    }

    /// As [`Keyspace::look`], for commands that don't count as using the key.
    pub fn peek(&mut self, key: &[u8]) -> Result<Option<&Value>, Failure> {
        let at = self.known(key)?;
        self.seen_by_unit(at)
    }

    fn use_now(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        entry.used = true;
        if !self.leaves_no_trace {
            entry.used_at = seconds(self.unit.now);
        }
    }

    fn seen_by_unit(&mut self, at: u32) -> Result<Option<&Value>, Failure> {
        let now = self.unit.now;
        if !self.unit.latest {
            return self.committed(at, now);
        }
        self.saw(at);
        let entry = &self.entries[at as usize];
        Ok(if entry.is_alive(now) { entry.value.as_ref() } else { None })
    }

    /// What [`Keyspace::look`] has just given, for commands that need several values at once.
    pub fn seen(&self, key: &[u8]) -> Option<&Value> {
        let at = self.find(self.unit.db, key)?;
        let now = self.unit.now;
        if !self.unit.latest {
            return self.committed(at, now).ok().flatten();
        }
        let entry = &self.entries[at as usize];
        entry.value.as_ref().filter(|_| entry.is_alive(now))
    }

    pub fn exists(&mut self, key: &[u8]) -> Result<bool, Failure> {
        Ok(self.look(key)?.is_some())
    }

    pub fn kind(&mut self, key: &[u8]) -> Result<Option<Kind>, Failure> {
        Ok(self.look(key)?.map(Value::kind))
    }

    /// When the key expires: none when it does not exist, [`NEVER`] when it does not expire.
    pub fn expires(&mut self, key: &[u8]) -> Result<Option<i64>, Failure> {
        if self.peek(key)?.is_none() {
            return Ok(None);
        }
        let at = self.known(key)?;
        let entry = &self.entries[at as usize];
        if self.unit.latest || entry.past.is_none() {
            return Ok(Some(entry.expires));
        }
        let committed = self.flow.committed(entry.shard);
        Ok(entry.as_of(committed).map(|(_, expires)| expires))
    }

    /// Seconds since the key was used, as far as memory knows; none when it does not exist.
    pub fn idle(&mut self, key: &[u8]) -> Result<Option<u32>, Failure> {
        if self.peek(key)?.is_none() {
            return Ok(None);
        }
        let at = self.known(key)?;
        let used_at = self.entries[at as usize].used_at;
        Ok(Some(seconds(self.unit.now).saturating_sub(used_at)))
    }

    pub fn string(&mut self, key: &[u8]) -> Result<Option<&Str>, Failure> {
        match self.look(key)? {
            None => Ok(None),
            Some(Value::Str(text)) => Ok(Some(text)),
            Some(_) => Err(Failure::WRONG_TYPE),
        }
    }

    pub fn hash(&mut self, key: &[u8]) -> Result<Option<&Hash>, Failure> {
        match self.look(key)? {
            None => Ok(None),
            Some(Value::Hash(hash)) => Ok(Some(hash)),
            Some(_) => Err(Failure::WRONG_TYPE),
        }
    }

    pub fn list(&mut self, key: &[u8]) -> Result<Option<&List>, Failure> {
        match self.look(key)? {
            None => Ok(None),
            Some(Value::List(list)) => Ok(Some(list)),
            Some(_) => Err(Failure::WRONG_TYPE),
        }
    }

    pub fn set_of(&mut self, key: &[u8]) -> Result<Option<&Set>, Failure> {
        match self.look(key)? {
            None => Ok(None),
            Some(Value::Set(set)) => Ok(Some(set)),
            Some(_) => Err(Failure::WRONG_TYPE),
        }
    }

    pub fn zset(&mut self, key: &[u8]) -> Result<Option<&Zset>, Failure> {
        match self.look(key)? {
            None => Ok(None),
            Some(Value::Zset(zset)) => Ok(Some(zset)),
            Some(_) => Err(Failure::WRONG_TYPE),
        }
    }

    pub fn stream(&mut self, key: &[u8]) -> Result<Option<&Stream>, Failure> {
        match self.look(key)? {
            None => Ok(None),
            Some(Value::Stream(stream)) => Ok(Some(stream)),
            Some(_) => Err(Failure::WRONG_TYPE),
        }
    }

    // Changing. All of this works on the latest state.

    /// Gives the key this value, whatever it had. The key need not be known, unless the expiry is
    /// kept.
    pub fn set(&mut self, key: &[u8], value: Value, expiry: Expiry) -> Result<(), Failure> {
        let at = match expiry {
            Expiry::Keep => self.known(key)?,
            _ => self.known_or_blind(key)?,
        };
        self.expire_if_over(at);
        self.replace(at, Some(value), expiry);
        Ok(())
    }

    /// As [`Keyspace::set`], for a command whose reply does not depend on what was there: it wins
    /// over whatever an SQL writer does at the same time.
    pub fn overwrite(&mut self, key: &[u8], value: Value, expiry: Expiry) -> Result<(), Failure> {
        let at = match expiry {
            Expiry::Keep => self.known(key)?,
            _ => self.known_or_blind(key)?,
        };
        let first = self.unit.touched.iter().all(|touched| touched.at != at);
        self.expire_if_over(at);
        self.replace(at, Some(value), expiry);
        if first && expiry != Expiry::Keep {
            self.unit.overwritten();
        }
        Ok(())
    }

    /// Gives a string another value by what it was, which is none when the key does not exist; it
    /// expires as before. Looks the key up once and copies nothing.
    pub fn change_string<R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(Option<&Str>) -> Result<(Str, R), Failure>,
    ) -> Result<R, Failure> {
        let at = self.known(key)?;
        self.use_now(at);
        self.saw(at);
        let entry = &self.entries[at as usize];
        let before = match &entry.value {
            Some(Value::Str(text)) if entry.is_alive(self.unit.now) => Some(text),
            Some(_) if entry.is_alive(self.unit.now) => return Err(Failure::WRONG_TYPE),
            _ => None,
        };
        let (after, given) = change(before)?;
        self.replace(at, Some(Value::Str(after)), Expiry::Keep);
        Ok(given)
    }

    /// As if the key had last been used so many seconds ago.
    pub fn set_idle(&mut self, key: &[u8], idle: u32) -> Result<(), Failure> {
        let at = self.known(key)?;
        self.entries[at as usize].used_at = seconds(self.unit.now).saturating_sub(idle);
        Ok(())
    }

    /// True when it was there.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, Failure> {
        Ok(self.take(key)?.is_some())
    }

    /// Removes the key and gives its value and when it expires, so that it can become another
    /// key's: its rows stay those of the value.
    pub fn take(&mut self, key: &[u8]) -> Result<Option<(Value, i64)>, Failure> {
        let at = self.known(key)?;
        self.saw(at);
        let entry = &self.entries[at as usize];
        if !entry.is_alive(self.unit.now) {
            return Ok(None);
        }
        let expires = entry.expires;
        // The past keeps what is committed; what is small is copied for it, as for any change.
        self.prepare(at);
        let entry = &mut self.entries[at as usize];
        let value = entry.value.take();
        entry.expires = NEVER;
        if self.unit.undoable {
            // Given back by [`Keyspace::set`] under another key, it is undone as a copy.
            let before = value.clone();
            self.unit.steps.push(Step::Replaced { at, before, expires });
        }
        self.unit.replaced(at);
        Ok(value.map(|value| (value, expires)))
    }

    /// False when the key does not exist.
    pub fn set_expires(&mut self, key: &[u8], expires: i64) -> Result<bool, Failure> {
        let at = self.known(key)?;
        self.saw(at);
        if !self.entries[at as usize].is_alive(self.unit.now) {
            return Ok(false);
        }
        self.prepare(at);
        self.entries[at as usize].expires = expires;
        Ok(true)
    }

    /// The string to be changed in place. It counts as changed.
    pub fn string_mut(&mut self, key: &[u8]) -> Result<Option<&mut Str>, Failure> {
        match self.value_mut(key, Kind::Str)? {
            None => Ok(None),
            Some(at) => {
                self.unit.replaced(at);
                match &mut self.entries[at as usize].value {
                    Some(Value::Str(text)) => Ok(Some(text)),
                    _ => Ok(None),
                }
            }
        }
    }

    /// The collection's entry, prepared for changes; none when the key does not exist.
    fn value_mut(&mut self, key: &[u8], kind: Kind) -> Result<Option<u32>, Failure> {
        let at = self.known(key)?;
        self.saw(at);
        let entry = &self.entries[at as usize];
        match &entry.value {
            Some(value) if entry.is_alive(self.unit.now) => {
                if value.kind() != kind {
                    return Err(Failure::WRONG_TYPE);
                }
                self.prepare(at);
                Ok(Some(at))
            }
            _ => Ok(None),
        }
    }

    fn value_or_new(
        &mut self,
        key: &[u8],
        kind: Kind,
        new: impl FnOnce() -> Value,
    ) -> Result<u32, Failure> {
        if let Some(at) = self.value_mut(key, kind)? {
            return Ok(at);
        }
        let at = self.known(key)?;
        self.expire_if_over(at);
        self.replace(at, Some(new()), Expiry::Never);
        Ok(at)
    }

    /// What is about to be overwritten has expired before: that is told first.
    fn expire_if_over(&mut self, at: u32) {
        let entry = &self.entries[at as usize];
        if entry.value.is_some() && entry.expires <= self.unit.now {
            self.expired(at);
        }
    }

    /// To be called after elements may have been removed: a collection without any is gone. True
    /// when it is.
    pub fn settle(&mut self, key: &[u8]) -> Result<bool, Failure> {
        let at = self.known(key)?;
        let gone = self.entries[at as usize].value.as_ref().is_some_and(Value::is_gone);
        if gone {
            self.replace(at, None, Expiry::Never);
        }
        Ok(gone)
    }

    /// Removes a row whose time is over. Its value need not be in memory for that.
    pub fn remove_expired(&mut self, key: &[u8], version: i64) {
        let db = self.unit.db;
        let at = match self.find(db, key) {
            Some(at) => {
                let entry = &self.entries[at as usize];
                if entry.value.is_none() || entry.is_alive(self.unit.now) {
                    return;
                }
                at
            }
            None if self.dbs[usize::from(db)].flushed.is_some() => return,
            None => self.insert(db, key, None, NEVER, version),
        };
        self.expired(at);
        self.replace(at, None, Expiry::Never);
    }

    /// Whether the key was there and its time is over. One that was over when it was first looked
    /// at counts, too, if nobody has removed it.
    pub fn has_expired(&mut self, key: &[u8]) -> Result<bool, Failure> {
        let at = self.known(key)?;
        let entry = &self.entries[at as usize];
        Ok(entry.value.is_some() && entry.expires <= self.unit.now)
    }

    /// EXEC relies on this key's being as it is known here: PostgreSQL is asked when the unit's
    /// batch is written.
    pub fn rely_on(&mut self, key: &[u8]) -> Result<(), Failure> {
        let at = self.known(key)?;
        self.saw(at);
        Ok(())
    }

    /// Bytes of a key and its value; none when it does not exist.
    pub fn weight(&mut self, key: &[u8]) -> Result<Option<usize>, Failure> {
        if self.look(key)?.is_none() {
            return Ok(None);
        }
        let at = self.known(key)?;
        Ok(Some(self.entries[at as usize].weight()))
    }

    /// Whoever is blocked on the key looks again after this unit. They do so anyway when the unit
    /// changes the key.
    pub fn signal(&mut self, key: &[u8]) {
        note_ready(&self.awaited, &mut self.ready, self.unit.db, key);
    }

    /// Whether the database's writes go to the journal first.
    pub fn is_journaled(&self, db: u16) -> bool {
        self.dbs.get(usize::from(db)).is_some_and(|db| db.is_journaled)
    }

    /// The shards that a database's keys are in, as a mask.
    fn shards_of(&self, db: u16) -> u32 {
        match self.flow.journal() {
            Some(journal) if self.is_journaled(db) => 1 << journal,
            _ => ((1u64 << self.flow.row_shards()) - 1) as u32,
        }
    }

    /// Empties a database.
    pub fn flush(&mut self, db: u16) {
        let Some(state) = self.dbs.get(usize::from(db)) else { return };
        let (before, all) = (state.flushed, state.table.iter().copied().collect::<Vec<u32>>());
        let mut watched = std::mem::take(&mut self.watched);
        watched.flushed(db, |key| self.find(db, key).is_some());
        self.watched = watched;
        let mask = self.shards_of(db);
        let barrier = self.flow.fuse(mask);
        self.unit.shards |= mask;
        for at in all {
            if self.entries[at as usize].value.is_some() {
                self.replace(at, None, Expiry::Never);
            }
            let version = std::mem::replace(&mut self.entries[at as usize].version, 0);
            if self.unit.undoable {
                self.unit.steps.push(Step::Unversioned { at, version });
            }
        }
        self.dbs[usize::from(db)].flushed = Some(barrier);
        if self.is_tracked {
            self.unit.after.push(After::Flushed);
        }
        self.flow.open(barrier.shard).flushes.push(db);
        if self.unit.undoable {
            self.unit.steps.push(Step::Flushed { db, before });
        }
    }

    /// Notes all keys of a command that are not in memory, so that they are loaded together and
    /// before any of them changes. One alone the command finds out itself.
    pub fn all_known(&mut self, command: &Command, args: Args<'_>) -> Result<(), Failure> {
        if matches!(command.keys, Keys::None | Keys::Range(1, 1, _)) {
            return Ok(());
        }
        self.every_known(command, args)
    }

    /// As [`Keyspace::all_known`], for a command that is a part of a unit: others may have changed
    /// something before it finds out.
    pub fn every_known(&mut self, command: &Command, args: Args<'_>) -> Result<(), Failure> {
        if command.is_blind(args) && !self.tells_new() {
            return Ok(());
        }
        let mut all = Ok(());
        for place in command.keys.places(args) {
            all = all.and(self.known(args.at(place)).map(|_| ()));
        }
        if all.is_err() {
            Err(Failure::Miss)
        } else {
            Ok(())
        }
    }

    // Entries.

    fn hash_of(&self, key: &[u8]) -> u64 {
        use std::hash::BuildHasher;
        self.hasher.hash_one(key)
    }

    pub(crate) fn find(&self, db: u16, key: &[u8]) -> Option<u32> {
        let table = &self.dbs.get(usize::from(db))?.table;
        table.find(self.hash_of(key), |at| &*self.entries[*at as usize].key == key).copied()
    }

    /// The key's entry, or a miss, which is noted.
    fn known(&mut self, key: &[u8]) -> Result<u32, Failure> {
        let db = self.unit.db;
        if let Some(at) = self.find(db, key) {
            self.stats.hits += 1;
            return Ok(at);
        }
        if self.unit.latest && self.dbs[usize::from(db)].flushed.is_some() {
            return Ok(self.insert_for_unit(db, key, 0));
        }
        self.stats.misses += 1;
        self.unit.missing.push((db, key.into()));
        Err(Failure::Miss)
    }

    /// The key's entry; for one that is not known, an entry that overwrites whatever there is.
    fn known_or_blind(&mut self, key: &[u8]) -> Result<u32, Failure> {
        let db = self.unit.db;
        match self.find(db, key) {
            Some(at) => Ok(at),
            None if self.tells_new() => self.known(key),
            None => {
                let flushed = self.dbs[usize::from(db)].flushed.is_some();
                let version = if flushed { 0 } else { UNKNOWN };
                Ok(self.insert_for_unit(db, key, version))
            }
        }
    }

    /// Keys are told of when they are new, so nothing is overwritten without having been looked at.
    pub fn tells_new(&self) -> bool {
        self.notify.tells(b'n')
    }

    /// An entry that is right as long as the unit is not undone.
    fn insert_for_unit(&mut self, db: u16, key: &[u8], version: i64) -> u32 {
        let at = self.insert(db, key, None, NEVER, version);
        if self.unit.undoable {
            self.unit.steps.push(Step::Inserted { at });
        }
        at
    }

    fn insert(
        &mut self,
        db: u16,
        key: &[u8],
        value: Option<Value>,
        expires: i64,
        version: i64,
    ) -> u32 {
        let hash = self.hash_of(key);
        let shard = self.shard_of(db, key);
        let mut entry = Entry::new(db, key, shard, value, expires, version);
        entry.used_at = seconds(self.unit.now);
        self.bytes += entry.weight();
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        let (entries, hasher) = (&self.entries, &self.hasher);
        self.dbs[usize::from(db)].table.insert_unique(hash, at, |at| {
            use std::hash::BuildHasher;
            hasher.hash_one(&*entries[*at as usize].key)
        });
        self.remind(at);
        at
    }

    /// A key's shard depends on nothing but the key: FNV-1a, which every version will compute.
    fn shard_of(&self, db: u16, key: &[u8]) -> u8 {
        if let Some(journal) = self.flow.journal().filter(|_| self.is_journaled(db)) {
            return journal;
        }
        let start = 0xcbf2_9ce4_8422_2325 ^ u64::from(db);
        let hash = key
            .iter()
            .fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        ((hash >> 32) % self.flow.row_shards() as u64) as u8
    }

    /// What is committed of an entry.
    fn committed(&self, at: u32, now: i64) -> Result<Option<&Value>, Failure> {
        let entry = &self.entries[at as usize];
        if entry.past.is_none() {
            return Ok(if entry.is_alive(now) { entry.value.as_ref() } else { None });
        }
        match entry.as_of(self.flow.committed(entry.shard)) {
            // Its time is over, unless what is being written was in time to prolong it.
            Some((Some(_), expires)) if expires <= now => Err(Failure::Uncommitted),
            Some((value, _)) => Ok(value),
            None => Err(Failure::Uncommitted),
        }
    }

    /// Remembers that the unit depends on this entry's latest state.
    fn saw(&mut self, at: u32) {
        if self.unit.reads.last() != Some(&at) {
            self.unit.reads.push(at);
        }
        let entry = &self.entries[at as usize];
        if entry.dirty > self.flow.committed(entry.shard) {
            self.unit.saw_batch(entry.shard, entry.dirty);
        }
    }

    /// Before an entry's first change in a batch: what is committed is kept for others.
    fn prepare(&mut self, at: u32) {
        let now = self.unit.now;
        let entry = &self.entries[at as usize];
        if entry.value.is_some() && !entry.is_alive(now) {
            self.expired(at);
            self.replace(at, None, Expiry::Never);
            return;
        }
        let undoable = self.unit.undoable;
        if self.touch(at) {
            let entry = &mut self.entries[at as usize];
            let small = entry.value.as_ref().is_none_or(|v| v.weight() <= COPIED_BYTES_MAX);
            let value = if small { Some(entry.value.clone()) } else { None };
            entry.keep(value);
        }
        if undoable {
            let entry = &mut self.entries[at as usize];
            match &mut entry.value {
                Some(Value::Str(text)) => {
                    let before = Some(Value::Str(text.clone()));
                    self.unit.steps.push(Step::Replaced { at, before, expires: entry.expires });
                }
                Some(value) => {
                    if let Some(collection) = value.collection_mut() {
                        collection.remember();
                        self.unit.steps.push(Step::Edited { at, expires: entry.expires });
                    }
                }
                None => {}
            }
        }
    }

    /// Gives an entry another value; the one before is kept for others as it is.
    fn replace(&mut self, at: u32, value: Option<Value>, expiry: Expiry) {
        let first = self.touch(at);
        let now = self.unit.now;
        let undoable = self.unit.undoable;
        let entry = &mut self.entries[at as usize];
        let old_expires = entry.expires;
        let new = value.is_some() && !(entry.value.is_some() && entry.is_alive(now));
        let before = entry.value.take();
        // What is committed of a key that nobody has looked at is not known.
        let known = entry.version != UNKNOWN;
        if undoable {
            if first {
                let small = before.as_ref().is_none_or(|v| v.weight() <= COPIED_BYTES_MAX);
                entry.keep((known && small).then(|| before.clone()));
            }
            self.unit.steps.push(Step::Replaced { at, before, expires: old_expires });
        } else if first {
            entry.keep(known.then_some(before));
        }
        let entry = &mut self.entries[at as usize];
        match expiry {
            Expiry::Keep if entry.expires > now => {}
            Expiry::Keep | Expiry::Never => entry.expires = NEVER,
            Expiry::At(expires) => entry.expires = expires,
        }
        entry.value = value;
        if new && self.tells_new() {
            let entry = &self.entries[at as usize];
            let after = After::Event { db: entry.db, name: "new", key: entry.key.clone() };
            self.unit.after.push(after);
        }
        self.unit.replaced(at);
    }

    /// Notes that the unit is about to change the entry. True when that is its first change since
    /// its shard's last batch was sealed: its state has to be kept.
    fn touch(&mut self, at: u32) -> bool {
        if self.unit.touched.iter().any(|touched| touched.at == at) {
            return false;
        }
        let entry = &self.entries[at as usize];
        let first = entry.dirty != self.flow.open_seq(entry.shard);
        self.unit.touched.push(Touched {
            at,
            edits: entry.edits(),
            expires: entry.expires,
            weight: entry.weight(),
            fresh: first,
            replaced: false,
            blind: false,
        });
        first
    }
}

/// The `..._mut` and `..._or_new` of each kind of collection.
macro_rules! collections {
    ($($kind:ident, $type:ident, $get:ident, $new:ident;)*) => {
        impl Keyspace {
            $(
                /// The collection to be changed; none when the key does not exist.
                pub fn $get(&mut self, key: &[u8]) -> Result<Option<&mut $type>, Failure> {
                    let Some(at) = self.value_mut(key, Kind::$kind)? else { return Ok(None) };
                    match &mut self.entries[at as usize].value {
                        Some(Value::$kind(value)) => Ok(Some(value)),
                        _ => Ok(None),
                    }
                }

                /// The collection to be changed; an empty one when the key does not exist, to
                /// which something must be added before the command ends.
                pub fn $new(&mut self, key: &[u8]) -> Result<&mut $type, Failure> {
                    let new = || Value::$kind(Box::default());
                    let at = self.value_or_new(key, Kind::$kind, new)?;
                    match &mut self.entries[at as usize].value {
                        Some(Value::$kind(value)) => Ok(value),
                        _ => Err(Failure::WRONG_TYPE),
                    }
                }
            )*
        }
    };
}

collections! {
    Hash, Hash, hash_mut, hash_or_new;
    List, List, list_mut, list_or_new;
    Set, Set, set_mut, set_or_new;
    Zset, Zset, zset_mut, zset_or_new;
    Stream, Stream, stream_mut, stream_or_new;
}

/// Seconds since 1970 that fit the room an entry has for them.
fn seconds(ms: i64) -> u32 {
    u32::try_from(ms / 1000).unwrap_or(0)
}

type Seen = SmallVec<[(u8, u64); 2]>;

type Names = hashbrown::HashSet<(u16, Box<[u8]>), foldhash::fast::RandomState>;

/// A key's name as it is looked up, borrowed.
#[derive(Hash)]
struct Name<'a>(u16, &'a [u8]);

impl hashbrown::Equivalent<(u16, Box<[u8]>)> for Name<'_> {
    fn equivalent(&self, (db, key): &(u16, Box<[u8]>)) -> bool {
        self.0 == *db && *self.1 == **key
    }
}

fn note_ready(awaited: &Names, ready: &mut Vec<(u16, Box<[u8]>)>, db: u16, key: &[u8]) {
    if !awaited.is_empty() && awaited.contains(&Name(db, key)) {
        ready.push((db, key.into()));
    }
}
