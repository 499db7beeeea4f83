//! Rows are looked up, and heard to have changed.

use backend::calls::{oid, Columns, Heard};

use super::{Tables, LOADER};
use crate::changes::{changes, Changes};
use crate::loaded;
use crate::name;
use crate::query::{Answer, Database, Query};
use crate::session::ConnId;
use crate::statements::{
    Statement, DATABASES, EXPIRED, FIRST_KEYS, KEYS, LOAD, PAGES, RANDOM_KEY, SIZE, SWEEP,
};
use crate::store::Told;

/// Keys looked up by one call: one answer may have as many collections.
const KEYS_MAX: usize = 500;

#[derive(Debug)]
pub enum Lookup {
    Keys {
        db: u16,
        missing: Vec<Box<[u8]>>,
    },
    Question {
        conn: ConnId,
        limit: usize,
        answer: Answer,
    },
    /// Of the background's.
    Expired {
        keys: Vec<(u16, Box<[u8]>, i64)>,
    },
    Pages,
}

/// What the loader prepares.
pub const LOOKUPS: [&Statement; 9] =
    [&LOAD, &SIZE, &DATABASES, &KEYS, &FIRST_KEYS, &RANDOM_KEY, &EXPIRED, &PAGES, &SWEEP];

impl Tables {
    pub(super) fn look_up(&mut self, db: u16, keys: Vec<Box<[u8]>>) {
        self.figures.lookups += 1;
        self.figures.looked_up_keys += keys.len() as u64;
        for keys in keys.chunks(KEYS_MAX) {
            let tag = self.tag();
            let calls = &mut self.links[LOADER].calls;
            let called = calls.call(tag, LOAD.name, |params| {
                params.int2(db as i16);
                let mut array = params.array(oid::BYTEA);
                keys.iter().for_each(|key| array.bytea(&name::stored(key)));
            });
            match called.and_then(|()| calls.sync()) {
                Ok(()) => {
                    let missing = keys.to_vec();
                    self.lookups.insert(tag, Lookup::Keys { db, missing });
                }
                Err(refused) => {
                    let why = refused.to_string();
                    self.told.push(Told::NotLoaded { db, keys: keys.to_vec(), why });
                }
            }
        }
    }

    pub(super) fn look_for(&mut self, conn: ConnId, query: Query) {
        let tag = self.tag();
        let calls = &mut self.links[LOADER].calls;
        let (called, limit, answer) = match query {
            Query::Size { db } => {
                let called = calls.call(tag, SIZE.name, |params| params.int2(db as i16));
                (called, 0, Answer::Size(0))
            }
            Query::Keys { db, after, limit, kind } => {
                let name = if after.is_some() { KEYS.name } else { FIRST_KEYS.name };
                let called = calls.call(tag, name, |params| {
                    params.int2(db as i16);
                    if let Some(after) = &after {
                        params.bytea(&name::stored(after));
                    }
                    params.int8(limit as i64);
                    match kind {
                        Some(kind) => params.char(kind),
                        None => params.null(),
                    }
                });
                (called, limit, Answer::Keys { keys: Vec::new(), more: false })
            }
            Query::Random { db } => {
                let called = calls.call(tag, RANDOM_KEY.name, |params| params.int2(db as i16));
                (called, 0, Answer::Random(None))
            }
            Query::Databases => {
                let called = calls.call(tag, DATABASES.name, |_| {});
                (called, 0, Answer::Databases(Vec::new()))
            }
        };
        match called.and_then(|()| calls.sync()) {
            Ok(()) => drop(self.lookups.insert(tag, Lookup::Question { conn, limit, answer })),
            Err(refused) => {
                let answer = Answer::Failed(refused.to_string());
                self.told.push(Told::Answered { conn, answer });
            }
        }
    }

    pub(super) fn hear_lookup(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::Row { tag, columns } => {
                if let Err(error) = self.hear_row(tag, columns) {
                    self.fail_lookup(tag, &format!("a row could not be read: {error}"));
                }
            }
            Heard::Done { tag, .. } => match self.lookups.remove(&tag) {
                Some(Lookup::Keys { db, missing }) => {
                    for key in missing {
                        self.told.push(Told::Loaded { db, key, row: None });
                    }
                }
                Some(Lookup::Question { conn, limit, mut answer }) => {
                    if let Answer::Keys { keys, more } = &mut answer {
                        *more = keys.len() >= limit;
                    }
                    self.told.push(Told::Answered { conn, answer });
                }
                Some(lookup) => self.swept(lookup),
                None => {}
            },
            // The session ends: what it was asked is asked again when there is another.
            Heard::Failed { error, .. } if error.sqlstate.starts_with("57P0") => {
                self.lose_lookups();
            }
            Heard::Failed { tag: Some(tag), error } => {
                let why = format!("{} ({})", error.message, error.sqlstate);
                self.fail_lookup(tag, &why);
            }
            _ => {}
        }
    }

    fn hear_row(&mut self, tag: u64, mut columns: Columns<'_>) -> Result<(), backend::WireError> {
        match self.lookups.get_mut(&tag) {
            Some(Lookup::Keys { db, missing }) => {
                let (key, row) = loaded::read(columns)?;
                let Some(at) = missing.iter().position(|missing| *missing == key) else {
                    return Ok(());
                };
                missing.swap_remove(at);
                self.told.push(Told::Loaded { db: *db, key, row: Some(row) });
            }
            Some(Lookup::Question { answer, .. }) => match answer {
                Answer::Size(size) => *size = columns.int8()?.unwrap_or(0) as u64,
                Answer::Keys { keys, .. } => keys.push(columns.bytea()?.into()),
                Answer::Random(key) => *key = columns.raw()?.map(Box::from),
                Answer::Databases(databases) => databases.push(Database {
                    db: columns.int2()?.unwrap_or(0) as u16,
                    keys: columns.int8()?.unwrap_or(0) as u64,
                    expires: columns.int8()?.unwrap_or(0) as u64,
                    left_ms: columns.int8()?.unwrap_or(0),
                }),
                Answer::Failed(_) => {}
            },
            Some(Lookup::Expired { keys }) => super::sweep::read_expired(keys, columns)?,
            Some(Lookup::Pages) => self.hear_pages(columns)?,
            None => {}
        }
        Ok(())
    }

    fn fail_lookup(&mut self, tag: u64, why: &str) {
        match self.lookups.remove(&tag) {
            Some(Lookup::Keys { db, missing }) => {
                self.told.push(Told::NotLoaded { db, keys: missing, why: why.to_owned() });
            }
            Some(Lookup::Question { conn, .. }) => {
                let answer = Answer::Failed(why.to_owned());
                self.told.push(Told::Answered { conn, answer });
            }
            Some(lookup) => self.swept(lookup),
            None => {}
        }
    }

    /// The loader is gone, and with it the answers to what it was asked. Keys are asked for again
    /// when it is back.
    pub(super) fn lose_lookups(&mut self) {
        self.sweep.busy = false;
        for (_, lookup) in self.lookups.drain() {
            match lookup {
                Lookup::Keys { db, missing } => {
                    self.told.push(Told::Postponed { db, keys: missing });
                }
                Lookup::Question { conn, .. } => {
                    let why = "the connection to PostgreSQL was lost".to_owned();
                    self.told.push(Told::Answered { conn, answer: Answer::Failed(why) });
                }
                Lookup::Expired { .. } | Lookup::Pages => {}
            }
        }
    }

    /// An SQL writer announces what it has changed.
    pub(super) fn notified(&mut self, payload: &[u8]) {
        self.told.push(match changes(payload) {
            Changes::Key { db, key } => Told::Changed { db, key },
            Changes::Database(db) => Told::ChangedMany { db: Some(db) },
            Changes::Everything => Told::ChangedMany { db: None },
        });
    }
}
