//! What commands read.

use super::{seconds, Keyspace};
use crate::failure::Failure;
use crate::value::{Hash, Kind, List, Set, Str, Stream, Value, Zset};

impl Keyspace {
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

    pub(super) fn use_now(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        entry.used = true;
        if !self.leaves_no_trace {
            entry.used_at = seconds(self.unit.now);
        }
    }

    pub(super) fn seen_by_unit(&mut self, at: u32) -> Result<Option<&Value>, Failure> {
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

    /// When the key expires: none when it does not exist, [`super::NEVER`] when it does not expire.
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

    /// What is committed of an entry.
    pub(super) fn committed(&self, at: u32, now: i64) -> Result<Option<&Value>, Failure> {
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
    pub(super) fn saw(&mut self, at: u32) {
        if self.unit.reads.last() != Some(&at) {
            self.unit.reads.push(at);
        }
        let entry = &self.entries[at as usize];
        if entry.dirty > self.flow.committed(entry.shard) {
            self.unit.saw_batch(entry.shard, entry.dirty);
        }
    }
}
