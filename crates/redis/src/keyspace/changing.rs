//! What commands change. All of this works on the latest state.

use super::unit::{Step, Touched};
use super::{seconds, Expiry, Keyspace, NEVER, UNKNOWN};
use crate::failure::Failure;
use crate::flow::After;
use crate::value::{Hash, Kind, List, Set, Str, Stream, Value, Zset};

/// A value up to this size is copied when it changes, so that others can read what is committed
/// meanwhile; readers of a larger one wait for the commit. In bytes.
const COPIED_BYTES_MAX: usize = 4 << 10;

impl Keyspace {
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
    pub(super) fn value_mut(&mut self, key: &[u8], kind: Kind) -> Result<Option<u32>, Failure> {
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

    pub(super) fn value_or_new(
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
    pub(super) fn expire_if_over(&mut self, at: u32) {
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
        if let Some(at) = self.find(db, key) {
            let entry = &self.entries[at as usize];
            if entry.value.is_some() && !entry.is_alive(self.unit.now) {
                self.expired(at);
                self.replace(at, None, Expiry::Never);
            }
        } else if self.dbs.get(db).is_some_and(|db| db.flushed.is_none()) {
            // It was so when the tables were looked through. Now it may be another one: others wait
            // until it is known to be gone.
            let at = self.insert(db, key, None, NEVER, UNKNOWN);
            self.expired(at);
            self.replace(at, None, Expiry::Never);
            self.entries[at as usize].version = version;
        }
    }

    /// Empties a database.
    pub fn flush(&mut self, db: u16) {
        let Some(state) = self.dbs.get(db) else { return };
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
        self.dbs[db].flushed = Some(barrier);
        if self.is_tracked {
            self.unit.after.push(After::Flushed);
        }
        self.flow.open(barrier.shard).flushes.push(db);
        if self.unit.undoable {
            self.unit.steps.push(Step::Flushed { db, before });
        }
    }

    /// Before an entry's first change in a batch: what is committed is kept for others.
    pub(super) fn prepare(&mut self, at: u32) {
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
    pub(super) fn replace(&mut self, at: u32, value: Option<Value>, expiry: Expiry) {
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
    pub(super) fn touch(&mut self, at: u32) -> bool {
        if let Some(touched) = self.unit.touched.iter_mut().find(|touched| touched.at == at) {
            touched.quiet = false;
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
            quiet: false,
        });
        first
    }

    /// As [`Keyspace::stream_mut`], for what is no change of the key to those who watch or track
    /// it, as in Redis: groups of consumers, and which id was the last.
    pub fn groups_mut(&mut self, key: &[u8]) -> Result<Option<&mut Stream>, Failure> {
        let at = self.known(key)?;
        let touched = self.unit.touched.iter().find(|touched| touched.at == at);
        let quiet = touched.is_none_or(|touched| touched.quiet);
        if self.stream_mut(key)?.is_none() {
            return Ok(None);
        }
        if let Some(touched) = self.unit.touched.iter_mut().find(|touched| touched.at == at) {
            touched.quiet = quiet;
        }
        match &mut self.entries[at as usize].value {
            Some(Value::Stream(stream)) => Ok(Some(stream)),
            _ => Ok(None),
        }
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
