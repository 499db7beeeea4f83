//! The rows of one batch, and how they become the parameters of one call.
//!
//! A batch is filled ([`Batch::put`], [`Batch::delete`] and the rest, and [`Rows`] for elements),
//! then written as a call ([`Batch::call`]), again with another epoch if its outcome is not known.
//! It names every row at most once, unless it was made by [`Batch::folding`]: that one takes
//! several batches one after the other, and keeps the last of each row.
//!
//! In the tables, removals come before what is put, and the whole is one transaction.

mod elements;
mod index;
mod journal;
mod parameters;

use crate::keyspace::{Changed, NEVER, UNKNOWN};
use crate::rows::Rows;
use crate::value::{Kind, Value};

use elements::{Elements, Trims};
use index::Index;
pub use journal::Malformed;
pub use parameters::Fence;

/// What must be there of a key, else nothing of the batch happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    Anything,
    Absent,
    Version(i64),
}

impl Expect {
    /// As the keyspace knows it.
    pub fn known(version: i64) -> Expect {
        match version {
            UNKNOWN => Expect::Anything,
            0 => Expect::Absent,
            version => Expect::Version(version),
        }
    }

    /// As `redis.apply` wants it; `None` is NULL.
    fn parameter(self) -> Option<i64> {
        match self {
            Expect::Anything => None,
            Expect::Absent => Some(0),
            Expect::Version(version) => Some(version),
        }
    }
}

/// A key's row. Its version will be the batch's number in the key's shard.
#[derive(Debug, Clone, Copy)]
pub struct Put<'a> {
    pub shard: u8,
    pub db: u16,
    pub key: &'a [u8],
    pub kind: Kind,
    /// A string's value; what else a type keeps of itself.
    pub val: &'a [u8],
    /// A collection's incarnation, how many elements, and a list's ends; 0 for strings.
    pub kid: i64,
    pub n: i64,
    pub head: i64,
    pub tail: i64,
    /// Milliseconds since 1970, or [`NEVER`].
    pub expires: i64,
}

/// A part of [`Batch::bytes`].
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: usize,
    len: usize,
}

/// A key and what becomes of its row.
#[derive(Debug)]
struct Key {
    db: u16,
    key: Span,
    expect: Expect,
    /// `None`: it is deleted.
    row: Option<KeyRow>,
}

#[derive(Debug)]
struct KeyRow {
    shard: u8,
    kind: Kind,
    val: Span,
    kid: i64,
    n: i64,
    head: i64,
    tail: i64,
    expires: i64,
}

#[derive(Debug)]
struct Check {
    db: u16,
    key: Span,
    expect: Expect,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Batch {
    /// All names and values.
    bytes: Vec<u8>,
    keys: Vec<Key>,
    checks: Vec<Check>,
    flushes: Vec<u16>,
    orphans: Vec<(i64, Kind)>,
    /// By table, in the order of [`elements::Table`].
    elements: [Elements; elements::TABLES],
    trims: Trims,
    /// Where keys are in `keys`; only while folding.
    index: Option<Index>,
}

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    /// One that keeps the last of each row. It is for what has been acknowledged
    /// ([`Batch::read_effects`]), so nothing is expected of the tables.
    pub fn folding() -> Batch {
        let mut batch = Batch { index: Some(Index::default()), ..Batch::default() };
        batch.elements.iter_mut().for_each(Elements::fold);
        batch.trims.fold();
        batch
    }

    /// Empties it; its memory is kept for the next.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
        self.checks.clear();
        self.flushes.clear();
        self.orphans.clear();
        self.elements.iter_mut().for_each(Elements::clear);
        self.trims.clear();
        if let Some(index) = &mut self.index {
            index.clear();
        }
    }

    /// Whether it would change and check nothing.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
            && self.checks.is_empty()
            && self.flushes.is_empty()
            && self.orphans.is_empty()
            && self.trims.is_empty()
            && self.elements.iter().all(Elements::is_empty)
    }

    /// The database of each key that it writes.
    pub fn databases(&self) -> impl Iterator<Item = u16> + '_ {
        self.keys.iter().map(|key| key.db)
    }

    /// How many keys it writes.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of names and values.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn put(&mut self, put: Put<'_>, expect: Expect) {
        let row = KeyRow {
            shard: put.shard,
            kind: put.kind,
            val: keep(&mut self.bytes, put.val),
            kid: put.kid,
            n: put.n,
            head: put.head,
            tail: put.tail,
            expires: put.expires,
        };
        self.key(put.db, put.key, Some(row), expect);
    }

    pub fn delete(&mut self, db: u16, key: &[u8], expect: Expect) {
        match expect {
            // What was there is removed with its database.
            Expect::Absent if self.flushes.contains(&db) => {}
            // Absent before and after: it was made and removed within the batch.
            Expect::Absent => self.check(db, key, expect),
            _ => self.key(db, key, None, expect),
        }
    }

    /// The batch is right only if this key, which it does not write, is as expected.
    pub fn check(&mut self, db: u16, key: &[u8], expect: Expect) {
        if expect != Expect::Anything {
            let key = keep(&mut self.bytes, key);
            self.checks.push(Check { db, key, expect });
        }
    }

    /// Removes all keys of a database, before anything else of the batch.
    pub fn flush(&mut self, db: u16) {
        if self.index.is_some() {
            let (keys, orphans) = (&mut self.keys, &mut self.orphans);
            // What was put and never came into the tables is nobody's there.
            keys.iter().filter(|key| key.db == db).for_each(|key| abandon(orphans, key, 0));
            keys.retain(|key| key.db != db);
            self.index_again();
        }
        if !self.flushes.contains(&db) {
            self.flushes.push(db);
        }
    }

    /// The rows of this collection are no key's any more.
    pub fn orphan(&mut self, kid: i64, kind: Kind) {
        self.orphans.push((kid, kind));
    }

    /// The row of a key as the keyspace tells it, with what has changed of its elements.
    pub fn changed(&mut self, changed: Changed<'_>) {
        let Changed { shard, db, key, expected, value, expires } = changed;
        let expect = Expect::known(expected);
        let Some(value) = value else {
            self.delete(db, key, expect);
            return;
        };
        let kind = value.kind();
        let mut put =
            Put { shard, db, key, kind, val: b"", kid: 0, n: 0, head: 0, tail: 0, expires };
        if let Value::Str(text) = value {
            text.with(|val| self.put(Put { val, ..put }, expect));
        } else if let Some(collection) = value.collection_mut() {
            let val = collection.head().unwrap_or_default();
            (put.kid, put.n) = (collection.kid(), collection.len() as i64);
            (put.head, put.tail) = collection.ends();
            self.put(Put { val: &val, ..put }, expect);
            collection.drain(self);
        }
    }

    fn key(&mut self, db: u16, key: &[u8], row: Option<KeyRow>, expect: Expect) {
        if let Some(index) = &mut self.index {
            let (keys, bytes) = (&self.keys, &self.bytes);
            let is_same = |at: usize| keys[at].db == db && keys[at].key.of(bytes) == key;
            if let Some(at) = index.find_or_add(i64::from(db), key, keys.len(), is_same) {
                let known = &mut self.keys[at];
                abandon(&mut self.orphans, known, row.as_ref().map_or(0, |row| row.kid));
                known.row = row;
                return;
            }
        }
        let key = keep(&mut self.bytes, key);
        self.keys.push(Key { db, key, expect, row });
    }

    fn index_again(&mut self) {
        let Some(index) = &mut self.index else { return };
        index.clear();
        for (at, key) in self.keys.iter().enumerate() {
            // Each is there once.
            index.find_or_add(i64::from(key.db), key.key.of(&self.bytes), at, |_| false);
        }
    }

    /// Whether it is but strings of one database, without expiry, whatever was there before.
    fn is_plain(&self) -> bool {
        let Some(db) = self.keys.first().map(|key| key.db) else { return false };
        let plain = |key: &Key| {
            let row = key.row.as_ref();
            let row = row.is_some_and(|row| row.kind == Kind::Str && row.expires == NEVER);
            row && key.db == db
                && key.expect == Expect::Anything
                && key.key.len <= crate::name::NAME_BYTES_MAX
        };
        self.keys.iter().all(plain)
            && self.checks.is_empty()
            && self.flushes.is_empty()
            && self.orphans.is_empty()
            && self.trims.is_empty()
            && self.elements.iter().all(Elements::is_empty)
    }
}

/// The collection of a row that is superseded before it came into the tables: the key's row there
/// never had it, so nobody else will notice that it is gone.
fn abandon(orphans: &mut Vec<(i64, Kind)>, key: &Key, by: i64) {
    if let Some(row) = &key.row {
        if row.kid != 0 && row.kid != by {
            orphans.push((row.kid, row.kind));
        }
    }
}

impl Span {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.start + self.len]
    }
}

fn keep(bytes: &mut Vec<u8>, value: &[u8]) -> Span {
    let start = bytes.len();
    bytes.extend_from_slice(value);
    Span { start, len: value.len() }
}

impl Rows for Batch {
    fn hash_put(&mut self, kid: i64, field: &[u8], value: &[u8]) {
        self.element(elements::Table::Hash, kid, field, Some(value));
    }

    fn hash_delete(&mut self, kid: i64, field: &[u8]) {
        self.element(elements::Table::Hash, kid, field, None);
    }

    fn set_put(&mut self, kid: i64, member: &[u8]) {
        self.element(elements::Table::Set, kid, member, Some(b""));
    }

    fn set_delete(&mut self, kid: i64, member: &[u8]) {
        self.element(elements::Table::Set, kid, member, None);
    }

    fn zset_put(&mut self, kid: i64, member: &[u8], score: f64) {
        self.element(elements::Table::Zset, kid, member, Some(&score.to_be_bytes()));
    }

    fn zset_delete(&mut self, kid: i64, member: &[u8]) {
        self.element(elements::Table::Zset, kid, member, None);
    }

    fn list_put(&mut self, kid: i64, pos: i64, value: &[u8]) {
        self.trims.has(kid, pos);
        self.element(elements::Table::List, kid, &pos.to_be_bytes(), Some(value));
    }

    fn list_trim(&mut self, kid: i64, first: i64, last: i64) {
        let list = &mut self.elements[elements::Table::List as usize];
        self.trims.trim(kid, first, last, list, &self.bytes);
    }

    fn stream_put(&mut self, kid: i64, ms: u64, seq: u64, fields: &[u8]) {
        self.element(elements::Table::Stream, kid, &elements::id(ms, seq), Some(fields));
    }

    fn stream_delete(&mut self, kid: i64, ms: u64, seq: u64) {
        self.element(elements::Table::Stream, kid, &elements::id(ms, seq), None);
    }

    fn stream_group_put(&mut self, kid: i64, name: &[u8], state: &[u8]) {
        self.element(elements::Table::Group, kid, name, Some(state));
    }

    fn stream_group_delete(&mut self, kid: i64, name: &[u8]) {
        self.element(elements::Table::Group, kid, name, None);
    }
}

impl Batch {
    fn element(&mut self, table: elements::Table, kid: i64, name: &[u8], value: Option<&[u8]>) {
        self.elements[table as usize].write(&mut self.bytes, kid, name, value);
    }
}
