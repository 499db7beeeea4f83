//! The mirrors that answer.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, RwLockReadGuard};

use foldhash::fast::RandomState;
use smallvec::SmallVec;

use super::super::budget::Charge;
use super::super::change::Change;
use super::super::definition::Definition;
use super::super::feed::Open;
use super::super::run::View;
use super::super::table::{Broken, Field, Table};
use super::super::wish::{places, Aim};

pub(super) const TOO_MUCH: &str = "it does not fit into cache.mirror_memory";

/// By table.
#[derive(Default)]
pub struct Tables {
    all: HashMap<u32, Standing, RandomState>,
    /// Rises whenever a mirror or an index comes or goes.
    generation: u64,
}

pub(super) struct Standing {
    pub mirror: u64,
    pub table: Table,
    pub charge: Charge,
    pub pinned: bool,
    /// The columns that were named when it was begun ([`Aim::named`]).
    pub named: BTreeSet<i16>,
}

/// The tables, which do not change as long as this lives.
pub struct Reading<'a>(pub(super) RwLockReadGuard<'a, Tables>);

impl View for Reading<'_> {
    fn table(&self, oid: u32) -> Option<&Table> {
        self.0.all.get(&oid).map(|standing| &standing.table)
    }
}

impl Reading<'_> {
    /// Rises whenever a mirror or an index comes or goes.
    pub fn generation(&self) -> u64 {
        self.0.generation
    }

    /// Whether a table has one that somebody has asked for by its name.
    pub fn is_pinned(&self, oid: u32) -> bool {
        self.0.all.get(&oid).is_some_and(|standing| standing.pinned)
    }

    pub fn definition(&self, oid: u32) -> Option<&Arc<Definition>> {
        Some(self.table(oid)?.definition())
    }
}

impl Standing {
    pub(super) fn oid(&self) -> u32 {
        self.table.definition().oid
    }

    /// Whether other columns are named by now, so that only what is wanted counts. What statements
    /// want and want no longer stays: they may come again.
    pub(super) fn is_named_anew(&self, aim: &Aim) -> bool {
        aim.is_pinned() && aim.named != self.named
    }

    /// Whether it has all that is wanted, and nothing that was named before and is not any more.
    pub(super) fn is_as_wanted(&self, aim: &Aim) -> bool {
        let (own, wanted) = (self.table.definition(), &aim.definition);
        let more = own.columns.len() > wanted.columns.len();
        places(own, wanted).is_some() && !(more && self.is_named_anew(aim))
    }
}

impl Tables {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Standing> {
        self.all.values()
    }

    pub(super) fn of(&self, mirror: u64) -> Option<&Standing> {
        self.all.values().find(|standing| standing.mirror == mirror)
    }

    pub(super) fn of_mut(&mut self, mirror: u64) -> Option<&mut Standing> {
        self.all.values_mut().find(|standing| standing.mirror == mirror)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Standing> {
        self.all.values_mut()
    }

    /// Plans are to be made anew.
    pub(super) fn changed(&mut self) {
        self.generation += 1;
    }

    /// Gives the one whose place it takes.
    pub(super) fn put(&mut self, standing: Standing) -> Option<Standing> {
        self.generation += 1;
        self.all.insert(standing.oid(), standing)
    }

    /// Somebody has asked for it by its name, or does no longer.
    pub(super) fn pin(&mut self, oid: u32, pinned: bool) {
        if let Some(standing) = self.all.get_mut(&oid) {
            standing.pinned = pinned;
        }
    }

    pub(super) fn remove(&mut self, oid: u32) -> Option<Standing> {
        self.generation += 1;
        self.all.remove(&oid)
    }

    pub(super) fn take(&mut self) -> Vec<Standing> {
        self.generation += 1;
        self.all.drain().map(|(_, standing)| standing).collect()
    }

    /// Puts a commit in. Mirrors that can't follow it go to `gone`; why is given.
    pub(super) fn apply(&mut self, open: &Open, gone: &mut Vec<Standing>) -> Vec<(u32, String)> {
        let mut broken: Vec<(u64, String)> =
            open.broken().iter().map(|(mirror, why)| (*mirror, (*why).to_owned())).collect();
        let mut touched: SmallVec<[u64; 4]> = SmallVec::new();
        let mut last: Option<&mut Standing> = None;
        for (mirror, change) in open.changes() {
            if last.as_ref().is_none_or(|standing| standing.mirror != mirror) {
                last = self.all.values_mut().find(|standing| standing.mirror == mirror);
                if !touched.contains(&mirror) {
                    touched.push(mirror);
                }
            }
            let Some(standing) = &mut last else { continue };
            if let Err(Broken(why)) = put(&mut standing.table, change) {
                broken.push((mirror, why));
            }
        }
        for standing in self.all.values_mut().filter(|known| touched.contains(&known.mirror)) {
            if !standing.charge.set(standing.table.bytes()) {
                broken.push((standing.mirror, TOO_MUCH.to_owned()));
            }
        }
        let mut tables = Vec::new();
        for (mirror, why) in broken {
            let known = self.all.values().find(|standing| standing.mirror == mirror);
            if let Some(standing) = known.map(Standing::oid).and_then(|oid| self.remove(oid)) {
                tables.push((standing.oid(), why));
                gone.push(standing);
            }
        }
        tables
    }
}

/// Does to a table what happened to the one that it mirrors.
pub(super) fn put(table: &mut Table, change: Change<'_>) -> Result<(), Broken> {
    match change {
        Change::Insert(fields) => {
            let value = |field| match field {
                Field::Value(value) => Ok(Some(value)),
                Field::Null => Ok(None),
                Field::Unchanged => Err(Broken("a new row lacks a value".to_owned())),
            };
            let fields: SmallVec<[Option<&[u8]>; 16]> =
                fields.iter().map(value).collect::<Result<_, _>>()?;
            table.insert(&fields)
        }
        Change::Update { identity, fields } => {
            let fields: SmallVec<[Field<'_>; 16]> = fields.iter().collect();
            table.update(identity, &fields)
        }
        Change::Delete { identity } => table.delete(identity),
        Change::Truncate => {
            table.truncate();
            Ok(())
        }
    }
}
