//! Can mirrors answer a statement whose answers may be kept?
//!
//! It has to be so simple that it is understood without PostgreSQL ([`sql::Selected`]), its tables
//! plain ones whose rows are told apart by a key, and all that compares, orders and adds up values
//! PostgreSQL's own. What of that depends on the types alone, `cache::mirror::plan` knows.

pub mod tables;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cache::mirror::class::Class;
use cache::mirror::definition::{Column, Definition};
use cache::mirror::plan::Plan;
use cache::value::oid;
use sql::{Filter, Name, Output, Select, Selected, Source};

use super::connection::Described;
use super::facts::{Facts, Routine};
use super::stable;
use crate::route::{Mirrored, Slot};
use tables::Known;

/// A column: the place of its table in FROM, and its own in the definition.
type At = (u16, u16);

/// What is known of the statement.
pub struct Case<'a> {
    pub selected: &'a Selected,
    /// The tables of FROM, as the statement names them, with their oids.
    pub relations: &'a [(Name, u32)],
    pub slots: &'a [Slot],
    pub facts: &'a Facts,
    pub described: &'a Described,
    pub tables: &'a HashMap<u32, Known>,
}

/// Operators that filters come from.
const COMPARISONS: [&str; 8] = ["=", "<>", "<", "<=", ">", ">=", "~~", "!~~"];

/// The first oid that no built-in object has. Source: `FirstNormalObjectId` in access/transam.h.
const USER_OID: u32 = 16_384;

impl Case<'_> {
    /// # Errors
    /// Why mirrors can't answer it, in words for people.
    pub fn mirrored(&self) -> Result<Mirrored, String> {
        let names = self.selected.tables.iter().map(|(name, _)| name);
        if !names.eq(self.relations.iter().map(|(name, _)| name)) {
            return Err("the parser counts its tables in two ways".to_owned());
        }
        let known = self.relations.iter().map(|(name, oid)| {
            let known = self.tables.get(oid);
            known.ok_or_else(|| format!("{name} is not known"))
        });
        let known = known.collect::<Result<Vec<&Known>, String>>()?;
        known.iter().try_for_each(|table| check(table))?;
        self.own_routines(&known)?;
        let select = self.selected.resolved(&|place| {
            let table = known.get(place);
            let columns = table.iter().flat_map(|table| &table.columns);
            columns.map(|known| known.column.name.clone()).collect()
        })?;
        cut(&select)?;
        let (select, tables) = self.placed(select, &known)?;
        let of = |source: Source| {
            self.slots.iter().find(|slot| slot.source == source).map_or(0, |slot| slot.type_oid)
        };
        let definitions: Vec<Arc<Definition>> = tables.iter().cloned().map(Arc::new).collect();
        Plan::new(select.clone(), definitions, &of)?;
        joined(&select.filter, &tables, &known)?;
        self.nulls(&select.filter, &tables)?;
        self.results(&select, &tables)?;
        Ok(Mirrored {
            select,
            tables,
            description: self.described.row_description.clone(),
            output_types: self.described.columns.clone(),
            fixed: self.selected.fixed.clone(),
        })
    }

    /// An operator or aggregate of a user's for a built-in type may be the one that is meant.
    fn own_routines(&self, known: &[&Known]) -> Result<(), String> {
        let types: BTreeSet<u32> = known
            .iter()
            .flat_map(|table| &table.columns)
            .map(|known| known.column.type_oid)
            .collect();
        let meant = |routine: &Routine| {
            let fits = |oid: &u32| *oid < USER_OID || types.contains(oid);
            !routine.builtin && (routine.takes.is_empty() || routine.takes.iter().any(fits))
        };
        let operators = self.facts.operators.iter();
        let mut operators = operators.filter(|of| COMPARISONS.contains(&of.name.as_str()));
        if let Some(operator) = operators.find(|operator| meant(operator)) {
            return Err(format!("there is an operator {}.{}", operator.schema, operator.name));
        }
        match self.facts.functions.iter().find(|function| meant(function)) {
            Some(function) => {
                Err(format!("there is a function {}.{}()", function.schema, function.name))
            }
            None => Ok(()),
        }
    }

    /// The definitions of its tables with the columns that it needs, and where those are.
    fn placed(
        &self,
        select: Select<(usize, String)>,
        known: &[&Known],
    ) -> Result<(Select<At>, Vec<Definition>), String> {
        // A table that is there twice has one definition.
        let mut needed: HashMap<u32, BTreeSet<String>> = HashMap::new();
        let select = select.map(&mut |(place, name)| {
            let (_, oid) = self.relations.get(place).ok_or("a table that is not in FROM")?;
            needed.entry(*oid).or_default().insert(name.clone());
            Ok::<_, String>((place, name))
        })?;
        let none = BTreeSet::new();
        let define = |((_, oid), known): (&(Name, u32), &&Known)| {
            let needed = needed.get(oid).unwrap_or(&none);
            allowed(known, needed)?;
            definition(*oid, known, needed)
        };
        let tables = self.relations.iter().zip(known).map(define);
        let tables = tables.collect::<Result<Vec<Definition>, String>>()?;
        let select = select.map(&mut |(place, name)| {
            let columns = tables.get(place).map_or(&[][..], |table| &table.columns);
            let column = columns.iter().position(|column| column.name == name);
            let column = column.and_then(|column| u16::try_from(column).ok());
            let at = u16::try_from(place).ok().zip(column);
            at.ok_or_else(|| "it has more columns than can be counted".to_owned())
        })?;
        Ok((select, tables))
    }

    /// What it shows is what PostgreSQL says it shows, and looks the same in all sessions if it is
    /// carried as text.
    fn results(&self, select: &Select<At>, tables: &[Definition]) -> Result<(), String> {
        if self.described.columns.len() != select.shown {
            return Err("its result has other columns than it seems to have".to_owned());
        }
        for (output, found) in select.outputs.iter().zip(&self.described.columns) {
            let column = output.column().and_then(|at| column(tables, *at));
            if let (Output::Column(_), Some(column)) = (output, column) {
                if column.class == Class::Opaque {
                    self.unset(column)?;
                    continue;
                }
            }
            if result_type(output, column) != Some(*found) {
                return Err("a column of its result has another type than expected".to_owned());
            }
        }
        Ok(())
    }

    /// # Errors
    /// If a column is asked for NULL that may have NULLs within: a row of nothing else is NULL too.
    fn nulls(&self, filter: &Filter<At>, tables: &[Definition]) -> Result<(), String> {
        match filter {
            Filter::And(parts) | Filter::Or(parts) => {
                parts.iter().try_for_each(|part| self.nulls(part, tables))
            }
            Filter::Null(at) | Filter::NotNull(at) => match column(tables, *at) {
                Some(column) if column.class == Class::Opaque => {
                    let parts = self.facts.types.get(&column.type_oid);
                    match parts.is_some_and(|parts| parts.iter().all(|part| part.kind != b'c')) {
                        true => Ok(()),
                        false => Err(format!("{} is perhaps a row with NULLs in it", column.name)),
                    }
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// # Errors
    /// If settings change how values of the column look.
    fn unset(&self, column: &Column) -> Result<(), String> {
        let Some(parts) = self.facts.types.get(&column.type_oid) else {
            return Err(format!("the type of {} is not known", column.name));
        };
        let is_set = |builtin: bool, name: &str, kind: u8| match builtin {
            true => stable::is_set(name),
            false => kind == b'b',
        };
        match parts.iter().any(|part| is_set(part.builtin, &part.name, part.kind)) {
            true => Err(format!("what {} looks like depends on settings", column.name)),
            false => Ok(()),
        }
    }
}

pub fn check(table: &Known) -> Result<(), String> {
    let name = format!("{}.{}", table.schema, table.name);
    if table.kind != b'r' {
        return Err(format!("{name} is not a plain table"));
    }
    if table.inherits {
        return Err(format!("{name} has parts, or is part of another table"));
    }
    let mut key = table.columns.iter().filter(|known| known.in_key.is_some()).peekable();
    if key.peek().is_none() {
        return Err(format!("{name} has no primary key that tells its rows apart"));
    }
    for known in key {
        if !known.column.not_null || known.column.class == Class::Opaque {
            let column = &known.column.name;
            return Err(format!("{name} is identified by {column}, whose values are not compared"));
        }
    }
    Ok(())
}

/// # Errors
/// Which rows LIMIT leaves is not told.
fn cut(select: &Select<(usize, String)>) -> Result<(), String> {
    let aggregate = |output: &Output<_>| !matches!(output, Output::Column(_));
    let single = select.group.is_empty() && select.outputs.iter().any(aggregate);
    let limited = select.limit.is_some() || select.offset.is_some();
    match limited && select.order.is_empty() && !single {
        true => Err("it has LIMIT or OFFSET without ORDER BY".to_owned()),
        false => Ok(()),
    }
}

/// # Errors
/// If PostgreSQL would not let the role read these columns; where none is named, any.
fn allowed(table: &Known, needed: &BTreeSet<String>) -> Result<(), String> {
    let mut columns = table.columns.iter();
    let may = match needed.is_empty() {
        true => columns.any(|known| known.readable),
        false => {
            columns.filter(|known| needed.contains(&known.column.name)).all(|known| known.readable)
        }
    };
    may.then_some(()).ok_or_else(|| format!("its role may not read {}", table.name))
}

/// With the columns of these names and of the key.
pub fn definition(
    oid: u32,
    table: &Known,
    needed: &BTreeSet<String>,
) -> Result<Definition, String> {
    let mut columns = Vec::new();
    let mut key: Vec<(u32, u16)> = Vec::new();
    for known in &table.columns {
        let column = &known.column;
        if known.in_key.is_none() && !needed.contains(&column.name) {
            continue;
        }
        if known.generated {
            return Err(format!("column {} is generated", column.name));
        }
        let place = u16::try_from(columns.len()).unwrap_or(u16::MAX);
        key.extend(known.in_key.map(|in_key| (in_key, place)));
        columns.push(column.clone());
    }
    key.sort_unstable();
    Ok(Definition {
        oid,
        filenode: table.filenode,
        schema: table.schema.clone(),
        name: table.name.clone(),
        columns,
        identity: key.into_iter().map(|(_, place)| place).collect(),
    })
}

/// # Errors
/// If texts of different collations are compared: PostgreSQL may not know by which.
fn joined(filter: &Filter<At>, tables: &[Definition], known: &[&Known]) -> Result<(), String> {
    match filter {
        Filter::And(parts) | Filter::Or(parts) => {
            parts.iter().try_for_each(|part| joined(part, tables, known))
        }
        Filter::Same(one, other) => {
            let collation = |at: At| {
                let name = &column(tables, at)?.name;
                let columns = &known.get(usize::from(at.0))?.columns;
                columns.iter().find(|known| known.column.name == *name).map(|known| known.collation)
            };
            match collation(*one).is_some() && collation(*one) == collation(*other) {
                true => Ok(()),
                false => Err("it compares texts of two collations".to_owned()),
            }
        }
        _ => Ok(()),
    }
}

fn column(tables: &[Definition], (table, column): At) -> Option<&Column> {
    tables.get(usize::from(table))?.columns.get(usize::from(column))
}

/// The type of what is shown.
fn result_type(output: &Output<At>, column: Option<&Column>) -> Option<u32> {
    let sum = |of: &Column| match of.class {
        Class::Int2 | Class::Int4 => Some(oid::INT8),
        Class::Int8 | Class::Numeric => Some(oid::NUMERIC),
        _ => None,
    };
    match (output, column) {
        (Output::CountRows | Output::Count(_), _) => Some(oid::INT8),
        (Output::Column(_), Some(of)) => Some(of.type_oid),
        // There are none for varchar.
        (Output::Min(_) | Output::Max(_), Some(of)) if of.class == Class::Text => Some(oid::TEXT),
        (Output::Min(_) | Output::Max(_), Some(of)) => Some(of.type_oid),
        (Output::Sum(_), Some(of)) => sum(of),
        (Output::Avg(_), Some(of)) => sum(of).map(|_| oid::NUMERIC),
        (_, None) => None,
    }
}
