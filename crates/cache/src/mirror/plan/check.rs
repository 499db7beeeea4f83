//! What can't be answered in memory, or not for certain as PostgreSQL would.

use std::sync::Arc;

use sql::{Comparison, Filter, Output, Select, Source};

use super::super::class::{Class, Collation};
use super::super::definition::{Column, Definition};
use super::{At, TABLES_MAX};
use crate::value::{element_oid, oid};

pub(super) fn tables(tables: &[Arc<Definition>]) -> Result<(), String> {
    match tables.len() {
        0 => Err("no table is read".to_owned()),
        many if many > TABLES_MAX => Err(format!("more than {TABLES_MAX} tables are joined")),
        _ if tables.iter().any(|table| table.identity.is_empty()) => {
            Err("a table has no identity".to_owned())
        }
        _ => Ok(()),
    }
}

pub(super) fn column(tables: &[Arc<Definition>], (table, column): At) -> Result<&Column, String> {
    let table = tables.get(usize::from(table));
    let column = table.and_then(|table| table.columns.get(usize::from(column)));
    column.ok_or_else(|| "a column that no table has".to_owned())
}

/// Most conditions of a statement.
const CONDITIONS_MAX: usize = 1024;

/// Most levels of AND and OR in each other.
const DEPTH_MAX: usize = 32;

/// What columns are compared with, and the counts of LIMIT and OFFSET.
pub(super) fn values(
    select: &Select<At>,
    tables: &[Arc<Definition>],
    types: &dyn Fn(Source) -> u32,
) -> Result<(), String> {
    for count in [select.limit, select.offset].into_iter().flatten() {
        let known = [0, oid::UNKNOWN, oid::INT2, oid::INT4, oid::INT8];
        if !known.contains(&types(count)) {
            return Err("LIMIT or OFFSET is no whole number".to_owned());
        }
    }
    let mut check = Check { tables, types, conditions: 0 };
    check.filter(&select.filter, DEPTH_MAX)
}

struct Check<'a> {
    tables: &'a [Arc<Definition>],
    types: &'a dyn Fn(Source) -> u32,
    conditions: usize,
}

impl Check<'_> {
    fn filter(&mut self, part: &Filter<At>, depth: usize) -> Result<(), String> {
        self.conditions += 1;
        if depth == 0 || self.conditions > CONDITIONS_MAX {
            return Err(format!("more than {CONDITIONS_MAX} conditions, or deep in each other"));
        }
        match part {
            Filter::And(parts) | Filter::Or(parts) => {
                parts.iter().try_for_each(|part| self.filter(part, depth - 1))
            }
            Filter::Compare(at, comparison, source) => {
                let column = self.compares(*at, (self.types)(*source))?;
                match comparison {
                    Comparison::Equal => Ok(()),
                    _ => ordered(column),
                }
            }
            Filter::In(at, sources) | Filter::NotIn(at, sources) => {
                let compares = |source| self.compares(*at, (self.types)(source)).map(drop);
                sources.iter().copied().try_for_each(compares)
            }
            Filter::AnyOf(at, source) => {
                let array = || "ANY of an array of this type".to_owned();
                let of = element_oid((self.types)(*source)).ok_or_else(array)?;
                self.compares(*at, of).map(drop)
            }
            Filter::Like(at, source, _) => match self.compares(*at, (self.types)(*source))? {
                column if column.class == Class::Text => Ok(()),
                column => Err(format!("{} is no text that has a pattern", column.name)),
            },
            Filter::Is(at, _) => match column(self.tables, *at)? {
                column if column.class == Class::Bool => Ok(()),
                column => Err(format!("{} is a condition and no bool", column.name)),
            },
            Filter::Null(at) | Filter::NotNull(at) => column(self.tables, *at).map(drop),
            Filter::Same(one, other) => {
                let (one, other) = (column(self.tables, *one)?, column(self.tables, *other)?);
                match one.class != Class::Opaque && same(one, other) {
                    true => Ok(()),
                    false => Err(format!("{} and {} have other types", one.name, other.name)),
                }
            }
        }
    }

    fn compares(&self, at: At, type_oid: u32) -> Result<&Column, String> {
        let column = column(self.tables, at)?;
        match column.class != Class::Opaque && column.compares_with(type_oid) {
            true => Ok(column),
            false => Err(format!("{} is compared with another type", column.name)),
        }
    }
}

/// Whether two columns are equal where their keys are.
fn same(one: &Column, other: &Column) -> bool {
    let is_int = |class| matches!(class, Class::Int2 | Class::Int4 | Class::Int8);
    if is_int(one.class) && is_int(other.class) {
        return true;
    }
    let is_text = matches!(one.class, Class::Text | Class::Padded);
    one.class == other.class
        && (one.class != Class::Enum || one.type_oid == other.type_oid)
        // PostgreSQL may not know then which collation counts.
        && (!is_text || one.collation == other.collation)
}

fn ordered(column: &Column) -> Result<(), String> {
    let texts = matches!(column.class, Class::Text | Class::Padded);
    if !column.class.is_ordered() {
        return Err(format!("{} has a type whose order is not known", column.name));
    }
    if texts && column.collation != Collation::Ordered {
        return Err(format!("{} has an order other than that of its bytes", column.name));
    }
    Ok(())
}

/// Whether values that are equal look the same.
pub(super) fn is_plain(column: &Column) -> bool {
    match column.class {
        // By their modifier all have as many blanks, or digits behind the point.
        Class::Padded | Class::Numeric => column.type_modifier >= 0,
        Class::Float4 | Class::Float8 | Class::Interval | Class::TimeTz | Class::Opaque => false,
        _ => true,
    }
}

fn plain(column: &Column) -> Result<(), String> {
    match is_plain(column) {
        true => Ok(()),
        false => Err(format!("values of {} can be equal and look different", column.name)),
    }
}

/// What is shown, grouped by and ordered by.
pub(super) fn outputs(select: &Select<At>, tables: &[Arc<Definition>]) -> Result<(), String> {
    for at in &select.group {
        plain(column(tables, *at)?)?;
    }
    for output in &select.outputs {
        result(output, tables)?;
    }
    if select.distinct {
        for output in select.outputs.iter().take(select.shown) {
            if let Output::Column(at) = output {
                plain(column(tables, *at)?)?;
            }
        }
    }
    for order in &select.order {
        let output = select.outputs.get(order.output).ok_or("an order of nothing")?;
        ordered(&result(output, tables)?)?;
    }
    Ok(())
}

/// What an output is printed as.
pub(super) fn result(output: &Output<At>, tables: &[Arc<Definition>]) -> Result<Column, String> {
    match output {
        Output::Column(at) => column(tables, *at).cloned(),
        Output::CountRows => Ok(computed(Class::Int8, oid::INT8)),
        Output::Count(at) => column(tables, *at).map(|_| computed(Class::Int8, oid::INT8)),
        Output::Sum(at) => match column(tables, *at)?.class {
            Class::Int2 | Class::Int4 => Ok(computed(Class::Int8, oid::INT8)),
            Class::Int8 | Class::Numeric => Ok(computed(Class::Numeric, oid::NUMERIC)),
            _ => Err("a sum of what is not exact".to_owned()),
        },
        Output::Avg(at) => match column(tables, *at)?.class {
            Class::Int2 | Class::Int4 | Class::Int8 | Class::Numeric => {
                Ok(computed(Class::Numeric, oid::NUMERIC))
            }
            _ => Err("an average of what is not exact".to_owned()),
        },
        Output::Min(at) | Output::Max(at) => {
            let column = column(tables, *at)?;
            ordered(column)?;
            // Of zeros the sign is not told; a run looks at what it finds.
            if !matches!(column.class, Class::Float4 | Class::Float8) {
                plain(column)?;
            }
            if matches!(column.class, Class::Bool | Class::Bytea | Class::Uuid) {
                return Err(format!("there is no least or greatest {}", column.name));
            }
            Ok(Column { not_null: false, ..column.clone() })
        }
    }
}

fn computed(class: Class, type_oid: u32) -> Column {
    Column {
        name: String::new(),
        attnum: 0,
        type_oid,
        type_modifier: -1,
        class,
        collation: Collation::Ordered,
        not_null: false,
        labels: Arc::from([]),
    }
}
