//! One key in memory.

use smallvec::SmallVec;

use crate::value::{Tracked, Value};

/// It does not expire.
pub const NEVER: i64 = i64::MAX;

/// What a row says of a key that expires even later, in milliseconds since 1970: PostgreSQL's
/// `timestamptz` and `interval` end soon after.
pub const LAST_MOMENT: i64 = 9_000_000_000_000_000;

/// A row's version, where nobody has looked: what is written overwrites whatever there is. 0 is the
/// version of a row that does not exist.
pub const UNKNOWN: i64 = i64::MIN;

/// What an entry costs beside its key and value, with its place in the table.
const ENTRY_BYTES: usize = 128;

#[derive(Debug)]
pub struct Entry {
    pub key: Box<[u8]>,
    pub db: u16,
    pub shard: u8,
    /// Looked at since eviction came by.
    pub used: bool,
    /// An SQL writer has changed the row while changes of it were not in the tables: it is looked up
    /// again when they are.
    pub overtaken: bool,
    /// When it was last looked at, in seconds since 1970.
    pub used_at: u32,
    /// None: the key does not exist.
    pub value: Option<Value>,
    /// Milliseconds since 1970.
    pub expires: i64,
    /// Of the reminder that counts; [`NEVER`] when there is none.
    pub due: i64,
    /// Of the row, when all batches that are sealed have committed.
    pub version: i64,
    /// The last batch of its shard with a change of it; 0 when there is none.
    pub dirty: u64,
    /// Which incarnation of a collection the row names, and its kind's letter, when all sealed
    /// batches have committed.
    pub stored: (i64, u8),
    pub past: Option<Box<Past>>,
    /// Somebody else has written the row while this was on its way: nobody knows which of the two
    /// came last, so that it is dropped as soon as nothing of it is uncommitted.
    pub doubted: bool,
}

/// States before the latest, the oldest first.
#[derive(Debug, Default)]
pub struct Past {
    versions: SmallVec<[Version; 1]>,
}

#[derive(Debug)]
pub struct Version {
    /// The batch that made it so.
    pub seq: u64,
    /// None when it has not been kept.
    pub value: Option<Option<Value>>,
    pub expires: i64,
}

impl Entry {
    pub fn new(
        db: u16,
        key: &[u8],
        shard: u8,
        value: Option<Value>,
        expires: i64,
        version: i64,
    ) -> Entry {
        let stored = value.as_ref().map_or((0, 0), Value::incarnation);
        Entry {
            key: key.into(),
            db,
            shard,
            used: true,
            overtaken: false,
            used_at: 0,
            value,
            expires,
            due: NEVER,
            version,
            dirty: 0,
            stored,
            past: None,
            doubted: false,
        }
    }

    pub fn is_alive(&self, now: i64) -> bool {
        self.expires > now && self.value.is_some()
    }

    /// When it expires, as its row has it.
    pub fn stored_expiry(&self) -> i64 {
        match self.expires {
            NEVER => NEVER,
            expires => expires.min(LAST_MOMENT),
        }
    }

    pub fn edits(&self) -> u64 {
        self.value.as_ref().and_then(Value::collection).map_or(0, Tracked::edits)
    }

    pub fn weight(&self) -> usize {
        ENTRY_BYTES + self.key.len() + self.value.as_ref().map_or(0, Value::weight)
    }

    /// Keeps the state as it is before a change.
    pub fn keep(&mut self, value: Option<Option<Value>>) {
        let version = Version { seq: self.dirty, value, expires: self.expires };
        self.past.get_or_insert_default().versions.push(version);
    }

    /// The state just kept was not needed: nothing has changed.
    pub fn unkeep(&mut self) {
        if let Some(past) = &mut self.past {
            past.versions.pop();
            if past.versions.is_empty() {
                self.past = None;
            }
        }
    }

    /// The state with all batches up to `committed`; none when it has not been kept.
    pub fn as_of(&self, committed: u64) -> Option<(Option<&Value>, i64)> {
        if self.dirty <= committed {
            return Some((self.value.as_ref(), self.expires));
        }
        let versions = self.past.as_ref().map_or(&[][..], |past| &past.versions);
        let version = versions.iter().rev().find(|version| version.seq <= committed)?;
        Some((version.value.as_ref()?.as_ref(), version.expires))
    }

    /// Drops states that nobody reads any more.
    pub fn prune(&mut self, committed: u64) {
        if self.dirty <= committed {
            self.past = None;
        } else if let Some(past) = &mut self.past {
            let current = past.versions.iter().rposition(|version| version.seq <= committed);
            past.versions.drain(..current.unwrap_or(0));
        }
    }

    /// Whether memory and table agree, so that it can be dropped: all batches with changes of it
    /// are settled.
    pub fn is_clean(&self, settled: u64) -> bool {
        self.dirty <= settled
    }
}
