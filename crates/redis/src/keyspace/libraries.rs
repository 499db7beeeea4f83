//! Libraries of functions, as they are stored: a hash with the code of each by its name, under one
//! key of a database that no client can select.
//!
//! So they are part of units and batches, and are loaded, committed and undone like any key. What
//! has been made of them in Lua is in [`crate::script`], which follows.

use std::ops::{Index, IndexMut};

use super::{Db, Keyspace};
use crate::failure::Failure;
use crate::value::{Hash, Value};

/// Their database; -1 in the tables.
pub const LIBRARIES: u16 = u16::MAX;

/// Their key. `schema/libraries.sql` names it, too.
const KEY: &[u8] = b"libraries";

/// All databases, by number.
#[derive(Debug)]
pub(super) struct Dbs {
    all: Vec<Db>,
    libraries: Db,
}

impl Dbs {
    pub fn new(all: Vec<Db>) -> Dbs {
        Dbs { all, libraries: Db::default() }
    }

    /// Those that clients can select.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// None for one that only SQL knows.
    pub fn get(&self, db: u16) -> Option<&Db> {
        match db {
            LIBRARIES => Some(&self.libraries),
            _ => self.all.get(usize::from(db)),
        }
    }
}

impl Index<u16> for Dbs {
    type Output = Db;

    fn index(&self, db: u16) -> &Db {
        match db {
            LIBRARIES => &self.libraries,
            _ => &self.all[usize::from(db)],
        }
    }
}

impl IndexMut<u16> for Dbs {
    fn index_mut(&mut self, db: u16) -> &mut Db {
        match db {
            LIBRARIES => &mut self.libraries,
            _ => &mut self.all[usize::from(db)],
        }
    }
}

impl Keyspace {
    /// The latest libraries; none when there are none. The unit depends on them until they are
    /// committed and not any longer: a batch need not look at their row because a function has run.
    pub fn libraries(&mut self) -> Result<Option<&Hash>, Failure> {
        let at = self.of_libraries(|keys| keys.known(KEY))?;
        self.use_now(at);
        let entry = &self.entries[at as usize];
        if entry.dirty > self.flow.committed(entry.shard) {
            self.saw(at);
        }
        let entry = &self.entries[at as usize];
        match &entry.value {
            Some(Value::Hash(libraries)) if entry.is_alive(self.unit.now) => Ok(Some(libraries)),
            Some(_) if entry.is_alive(self.unit.now) => Err(Failure::WRONG_TYPE),
            _ => Ok(None),
        }
    }

    /// Grows when what [`Keyspace::libraries`] gives may be another than what commands have made of
    /// it: it was loaded, dropped, undone.
    pub fn libraries_edition(&self) -> u64 {
        self.libraries
    }

    /// Stores a library, in the place of the one with its name.
    pub fn store_library(&mut self, name: &[u8], code: &[u8]) -> Result<(), Failure> {
        self.of_libraries(|keys| keys.hash_or_new(KEY).map(|all| all.insert(name, code)))?;
        Ok(())
    }

    /// True when it was stored.
    pub fn remove_library(&mut self, name: &[u8]) -> Result<bool, Failure> {
        self.of_libraries(|keys| {
            let all = keys.hash_mut(KEY)?;
            let was_there = all.is_some_and(|all| all.remove(name).is_some());
            keys.settle(KEY)?;
            Ok(was_there)
        })
    }

    pub fn remove_libraries(&mut self) -> Result<(), Failure> {
        self.of_libraries(|keys| keys.remove(KEY).map(|_| ()))
    }

    fn of_libraries<R>(&mut self, work: impl FnOnce(&mut Keyspace) -> R) -> R {
        let db = std::mem::replace(&mut self.unit.db, LIBRARIES);
        let result = work(self);
        self.unit.db = db;
        result
    }
}
