//! What the running unit has changed of a database, for questions about all of its keys: the
//! tables, which answer them, do not know it yet.

use std::collections::BTreeMap;

use super::unit::Step;
use super::{Keyspace, UNKNOWN};
use crate::failure::Failure;
use crate::value::{Kind, Value};

#[derive(Debug, Default)]
pub struct Overlay {
    /// The unit has emptied the database: what the tables have of it is no more.
    emptied: bool,
    /// Keys that it has changed.
    keys: BTreeMap<Box<[u8]>, State>,
}

#[derive(Debug)]
struct State {
    was_there: bool,
    /// None: it is not there now.
    kind: Option<Kind>,
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        !self.emptied && self.keys.is_empty()
    }

    /// Whether what the tables say of the key does not count.
    pub fn hides(&self, key: &[u8]) -> bool {
        self.emptied || self.keys.contains_key(key)
    }

    /// Changed keys that are there, in order of bytes, and what they hold.
    pub fn there(&self) -> impl Iterator<Item = (&[u8], Kind)> {
        self.keys.iter().filter_map(|(key, state)| Some((&**key, state.kind?)))
    }

    /// How many keys there are, when the tables have so many.
    pub fn size(&self, stored: u64) -> u64 {
        let stored = if self.emptied { 0 } else { stored };
        let there = self.there().count() as u64;
        let before = self.keys.values().filter(|state| state.was_there).count() as u64;
        (stored + there).saturating_sub(before)
    }

    /// How many keys it hides at most.
    pub fn len(&self) -> usize {
        self.keys.len()
    }
}

impl Keyspace {
    /// What the unit has changed of a database so far. A miss: a key was overwritten unseen, and
    /// whether that made it a new one has to be looked up first.
    pub fn overlay(&mut self, db: u16) -> Result<Overlay, Failure> {
        let is_flush =
            |step: &Step| matches!(step, Step::Flushed { db: flushed, .. } if *flushed == db);
        let mut overlay =
            Overlay { emptied: self.unit.steps.iter().any(is_flush), ..Overlay::default() };
        if overlay.emptied {
            for at in self.dbs.get(db).iter().flat_map(|db| &db.table) {
                overlay.note(&self.entries[*at as usize], false, self.unit.now);
            }
            return Ok(overlay);
        }
        let now = self.unit.now;
        for step in &self.unit.steps {
            let (at, was_there) = match step {
                Step::Replaced { at, before, expires } => (*at, before.is_some() && *expires > now),
                Step::Edited { at, expires } => (*at, *expires > now),
                Step::Inserted { at } => {
                    let entry = &self.entries[*at as usize];
                    if entry.db == db && entry.version == UNKNOWN {
                        self.unit.missing.push((db, entry.key.clone()));
                        continue;
                    }
                    (*at, false)
                }
                Step::Unversioned { .. } | Step::Flushed { .. } => continue,
            };
            let entry = &self.entries[at as usize];
            if entry.db == db {
                overlay.note(entry, was_there, now);
            }
        }
        if self.unit.missing.is_empty() {
            Ok(overlay)
        } else {
            Err(Failure::Miss)
        }
    }
}

impl Overlay {
    /// The first step that changed the entry says what was before.
    fn note(&mut self, entry: &super::Entry, was_there: bool, now: i64) {
        let kind = entry.value.as_ref().filter(|_| entry.is_alive(now)).map(Value::kind);
        self.keys.entry(entry.key.clone()).or_insert(State { was_there, kind });
    }
}
