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

mod changing;
mod entry;
mod expiry;
mod libraries;
mod memory;
mod overlay;
mod reading;
mod unit;

use hashbrown::HashTable;
use smallvec::SmallVec;

pub use entry::{Entry, LAST_MOMENT, NEVER, UNKNOWN};
pub use libraries::LIBRARIES;
pub use memory::{Changed, Orphan};
pub use overlay::Overlay;
use unit::Step;
pub use unit::{Done, Unit};

use crate::args::Args;
use crate::command::{Command, Keys};
use crate::failure::Failure;
use crate::flow::Flow;
use crate::value::Value;

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
    dbs: libraries::Dbs,
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
    /// How often what is known of the libraries of functions has become another without a command.
    libraries: u64,
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
            dbs: libraries::Dbs::new((0..databases).map(new).collect()),
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
            libraries: 0,
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

    /// Whoever is blocked on the key looks again after this unit. They do so anyway when the unit
    /// changes the key.
    pub fn signal(&mut self, key: &[u8]) {
        note_ready(&self.awaited, &mut self.ready, self.unit.db, key);
    }

    /// Whether the database's writes go to the journal first.
    pub fn is_journaled(&self, db: u16) -> bool {
        self.dbs.get(db).is_some_and(|db| db.is_journaled)
    }

    /// The shards that a database's keys are in, as a mask.
    fn shards_of(&self, db: u16) -> u32 {
        match self.flow.journal() {
            Some(journal) if self.is_journaled(db) => 1 << journal,
            _ => ((1u64 << self.flow.row_shards()) - 1) as u32,
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
        let table = &self.dbs.get(db)?.table;
        table.find(self.hash_of(key), |at| &*self.entries[*at as usize].key == key).copied()
    }

    /// The key's entry, or a miss, which is noted.
    fn known(&mut self, key: &[u8]) -> Result<u32, Failure> {
        let db = self.unit.db;
        if let Some(at) = self.find(db, key) {
            self.stats.hits += 1;
            return Ok(at);
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
                let at = self.insert(db, key, None, NEVER, UNKNOWN);
                if self.unit.undoable {
                    self.unit.steps.push(Step::Inserted { at });
                }
                Ok(at)
            }
        }
    }

    /// Keys are told of when they are new, so nothing is overwritten without having been looked at.
    pub fn tells_new(&self) -> bool {
        self.notify.tells(b'n')
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
        self.libraries += u64::from(db == LIBRARIES);
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
        self.dbs[db].table.insert_unique(hash, at, |at| {
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
