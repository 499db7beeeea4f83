//! Why answers can't be kept, as far as it depends on the catalogues.

use std::collections::{BTreeSet, HashMap};

use sql::{Cast, CastTo, Reads};

use super::super::catalogue::Key;
use super::super::facts::{Facts, Part, PartOf, Routine};
use super::super::stable::{self, Depends};
use super::super::statement::{key, shown};
use crate::route::Slot;

pub struct Objections<'a> {
    /// Of the statement and of views, with the word in front of reasons.
    pub reads: &'a [(String, Reads)],
    /// Types of casts: oid, and that of arrays.
    pub named: &'a HashMap<Key, (u32, u32)>,
    pub slots: &'a [Slot],
    /// Types of the result.
    pub columns: &'a [u32],
    /// Some constants in quotes have a type that is not known.
    pub uncertain: bool,
    pub facts: &'a Facts,
}

/// What stable functions were found.
#[derive(Default)]
struct Found {
    zone: bool,
    output: bool,
}

/// Whether text for this type may be a word that stands for another moment each time.
pub fn is_timely(facts: &Facts, oid: u32) -> bool {
    parts(facts, oid).any(|part| part.builtin && stable::is_timely(&part.name))
}

fn parts(facts: &Facts, oid: u32) -> impl Iterator<Item = &PartOf> {
    facts.types.get(&oid).into_iter().flatten()
}

impl Objections<'_> {
    /// Whether the answer depends on settings.
    ///
    /// # Errors
    /// The first reason why it can't be kept.
    pub fn raise(&self) -> Result<bool, String> {
        self.tables()?;
        let found = self.routines()?;
        self.types()?;
        self.user_casts()?;
        let converts = self.casts()?;
        Ok(self.settings(&found, converts))
    }

    fn tables(&self) -> Result<(), String> {
        let parts = &self.facts.parts;
        for part in parts {
            let Part { name, sql, .. } = part;
            let why = match (part.kind, part.persistence) {
                _ if part.builtin => "is a system catalogue",
                (_, b'u') => {
                    return Err(format!("table {name} is unlogged: ALTER TABLE {sql} SET LOGGED;"))
                }
                (_, b't') => "is temporary",
                (b'p', _) if parts.iter().all(|p| p.root != part.root || p.kind != b'r') => {
                    "has no partitions"
                }
                (b'r', _) if !part.identified => {
                    return Err(format!(
                        "table {name} has no primary key and no other replica identity: \
                         ALTER TABLE {sql} REPLICA IDENTITY FULL;"
                    ))
                }
                (b'r' | b'p', _) => continue,
                _ => "is not an ordinary table",
            };
            return Err(format!("table {name} {why}"));
        }
        Ok(())
    }

    fn routines(&self) -> Result<Found, String> {
        let mut found = Found::default();
        for (routine, is_function) in self
            .facts
            .functions
            .iter()
            .map(|routine| (routine, true))
            .chain(self.facts.operators.iter().map(|routine| (routine, false)))
        {
            if routine.immutable || !self.may_be_called(routine) {
                continue;
            }
            match stable::depends(&routine.function).filter(|_| routine.builtin) {
                Some(Depends::Zone) => found.zone = true,
                Some(Depends::Output) => found.output = true,
                None => {
                    let schema = shown(&routine.schema);
                    let name = &routine.name;
                    return Err(match is_function {
                        true => format!("function {schema}{name}() is stable"),
                        false => format!("operator {schema}{name} is stable"),
                    });
                }
            }
        }
        for (column, function) in &self.facts.row_functions {
            if stable::depends(column).is_none() || function != column {
                return Err(format!(
                    "column {column} may be a call of function {function}(), which is stable"
                ));
            }
            found.output = true;
        }
        Ok(found)
    }

    /// Not if it is one of those that take what no statement has here.
    fn may_be_called(&self, routine: &Routine) -> bool {
        if !routine.builtin || self.uncertain {
            return true;
        }
        let never = |oid: &u32| stable::NEVER.contains(oid);
        // A `time` becomes a `time with time zone` by itself.
        let timetz = |oid: &u32| *oid == stable::TIMETZ && !self.names().contains("time");
        // Its encodings change by DDL only.
        let length = routine.function == "length";
        !(length || routine.takes.iter().any(|oid| never(oid) || timetz(oid)))
    }

    /// Types of constants, casts, used columns and results.
    fn all_types(&self) -> impl Iterator<Item = u32> + '_ {
        let slots = self.slots.iter().map(|slot| slot.type_oid);
        let columns = super::used_columns(self.reads, self.facts).map(|(_, oid)| oid);
        let named = self.named.values().map(|(oid, _)| *oid);
        slots.chain(columns).chain(named).chain(self.columns.iter().copied())
    }

    /// Names of built-in types in them.
    fn names(&self) -> BTreeSet<&str> {
        let parts = self.all_types().flat_map(|oid| parts(self.facts, oid));
        parts.filter(|part| part.builtin).map(|part| part.name.as_str()).collect()
    }

    fn types(&self) -> Result<(), String> {
        let called = self.facts.named.values().flatten().copied();
        // Not all of these are used, but whoever calls a function `regclass` means it.
        self.all_types().chain(called).try_for_each(|oid| self.type_(oid))
    }

    fn type_(&self, oid: u32) -> Result<(), String> {
        if !self.facts.types.contains_key(&oid) {
            return Err(format!("type {oid} is not known"));
        }
        for part in parts(self.facts, oid) {
            let name = format!("{}{}", shown(&part.schema), part.name);
            if let Some(why) = stable::refused_type(&part.name).filter(|_| part.builtin) {
                return Err(format!("it has a value of type {name}, {why}"));
            }
            let changing = part.changing.as_deref();
            match part.kind {
                b'p' if !matches!(
                    part.name.as_str(),
                    "record" | "_record" | "unknown" | "void"
                ) =>
                {
                    return Err(format!("it has a value of type {name}"));
                }
                b'm' if !part.builtin => {
                    return Err(format!("it has a value of type {name}, a multirange"));
                }
                _ => {}
            }
            let known = |function: &str| {
                stable::of_container(function)
                    || part.builtin
                        && (stable::is_timely(&part.name)
                            || part.name == "interval"
                            || part.kind == b'p')
            };
            if let Some(function) = changing.filter(|function| !known(function)) {
                let reason = format!("type {name} is read or written by function {function}()");
                return Err(format!("{reason}, which is stable"));
            }
        }
        Ok(())
    }

    fn user_casts(&self) -> Result<(), String> {
        let meant = |target: u32| {
            self.named.values().any(|(oid, array)| *oid == target || *array == target)
                || self.facts.named.values().any(|oids| oids.contains(&target))
        };
        match self.facts.casts.iter().find(|cast| cast.implicit || meant(cast.target)) {
            Some(cast) => Err(format!("{} is stable", cast.words)),
            None => Ok(()),
        }
    }

    /// Whether values are converted.
    ///
    /// # Errors
    /// When a text may become a date: it may be 'now'.
    fn casts(&self) -> Result<bool, String> {
        let mut converts = false;
        for (within, reads) in self.reads {
            for cast in &reads.casts {
                let targets: Vec<u32> = match cast.call {
                    true => {
                        self.facts.named.get(&cast.to.name).into_iter().flatten().copied().collect()
                    }
                    false => {
                        self.named.get(&key(&cast.to)).map(|(oid, _)| *oid).into_iter().collect()
                    }
                };
                let constant = matches!(cast.what, Cast::Constant(_));
                converts |= !targets.is_empty() && !constant;
                let timely = targets.iter().any(|oid| is_timely(self.facts, *oid));
                if timely && !constant && !self.is_no_text(reads, cast) {
                    return Err(format!(
                        "{within}a cast to {} of what may be a text, such as 'now'",
                        cast.to.name
                    ));
                }
            }
        }
        Ok(converts)
    }

    /// Whether what is cast is a date or a time for certain.
    fn is_no_text(&self, reads: &Reads, cast: &CastTo) -> bool {
        let is_moment = |oid: u32| {
            let parts = || parts(self.facts, oid);
            parts().count() == 1 && parts().all(|p| p.builtin && stable::is_timely(&p.name))
        };
        match &cast.what {
            Cast::Column(name) => {
                let columns = self.facts.columns.values().filter_map(|columns| columns.get(name));
                let mut types = columns.map(|column| column.type_oid).peekable();
                reads.plain && types.peek().is_some() && types.all(is_moment)
            }
            Cast::Call(name) => {
                let schema = name.schema.as_deref();
                let functions = &self.facts.functions;
                let mut meant = functions
                    .iter()
                    .filter(|f| f.name == name.name && schema.is_none_or(|s| s == f.schema))
                    .peekable();
                meant.peek().is_some() && meant.all(|f| matches!(f.category, b'D' | b'T'))
            }
            Cast::Type(name) => self.named.get(&key(name)).is_some_and(|(oid, _)| is_moment(*oid)),
            Cast::Constant(_) => true,
            Cast::Other => false,
        }
    }

    fn settings(&self, found: &Found, converts: bool) -> bool {
        let is_set = |oid: u32| {
            parts(self.facts, oid).any(|part| match part.builtin {
                true => stable::is_set(&part.name),
                false => part.kind == b'b',
            })
        };
        let values = self.slots.iter().map(|slot| slot.type_oid);
        if values.chain(self.columns.iter().copied()).any(is_set) {
            return true;
        }
        let functions = &self.facts.functions;
        let unsure = |operator: &&Routine| !operator.builtin || !stable::keeps(&operator.name);
        let routines = || functions.iter().chain(self.facts.operators.iter().filter(unsure));
        let made = || routines().any(|routine| stable::makes_set(&routine.takes, &routine.gives));
        if (converts || found.output) && (self.all_types().any(is_set) || made()) {
            return true;
        }
        let names = self.names();
        // What takes moments makes them of moments; what does not, of anything.
        let zoned = names.iter().any(|name| stable::is_zoned(name))
            || functions.iter().any(|routine| {
                stable::has_zoned(&routine.gives) && !stable::has_zoned(&routine.takes)
            });
        let mixed = names.contains("timestamptz")
            && (names.contains("date") || names.contains("timestamp"));
        let takes = || functions.iter().any(|f| f.takes.contains(&stable::TIMESTAMPTZ));
        mixed || zoned && (found.zone || takes())
    }
}
