//! Which rows an answer depends on, and how that is told to people.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cache::recipe::{Form, Precise, Recipe, Signature, TableDeps};
use cache::value::{element_oid, Kind};
use sql::{Bound, Columns, Restriction, Source, Test};

use super::super::facts::{Facts, Part, TableColumn};
use super::{Evidence, Reading};
use crate::route::Slot;

/// Columns of one signature.
const COLUMNS_MAX: usize = 4;

/// Combinations of values, beyond which no more columns are taken into a signature.
const COMBINATIONS_MAX: usize = 64;

/// Operators that restrictions come from.
const COMPARISONS: [&str; 5] = ["=", "<", "<=", ">", ">="];

/// The catalogues' columns for the tables of the statement.
struct Known<'a> {
    relations: &'a [Option<u32>],
    facts: &'a Facts,
}

impl Known<'_> {
    fn column(&self, table: usize, column: &str) -> Option<&TableColumn> {
        let oid = self.relations.get(table).copied().flatten()?;
        self.facts.columns.get(&oid)?.get(column)
    }
}

impl Columns for Known<'_> {
    fn has(&self, table: usize, column: &str) -> Option<bool> {
        let oid = self.relations.get(table).copied().flatten()?;
        Some(self.facts.columns.get(&oid)?.contains_key(column))
    }

    fn same(&self, left: (usize, &str), right: (usize, &str)) -> bool {
        let kind = |(table, column)| kind(self.column(table, column)?);
        let (left, right) = (kind(left), kind(right));
        left.is_some() && left == right
    }
}

/// How values of a column are compared by `=`, if that is understood.
fn kind(column: &TableColumn) -> Option<Kind> {
    Kind::of(column.type_oid).filter(|_| column.deterministic)
}

/// The recipe, and a line for each table.
pub fn make(
    evidence: &Evidence,
    reading: &Reading,
    slots: &[Slot],
    facts: &Facts,
) -> (Recipe, Vec<String>) {
    let known = Known { relations: &evidence.relations, facts };
    // An operator of a user's that takes a built-in type may be the one that is meant.
    let foreign = facts.operators.iter().any(|operator| {
        !operator.builtin
            && COMPARISONS.contains(&operator.name.as_str())
            && operator.takes.iter().any(|oid| Kind::of(*oid).is_some())
    });
    let maker = Maker { reading, slots, known };
    let mut by_table: BTreeMap<u32, Vec<Option<Chosen>>> = BTreeMap::new();
    for table in &evidence.tables {
        let chosen = match table.place {
            Some(place) if !foreign => maker.choose(place),
            _ => None,
        };
        let all = by_table.entry(table.oid).or_default();
        if !all.contains(&chosen) {
            all.push(chosen);
        }
    }
    let mut recipe = Recipe::default();
    let mut lines = Vec::new();
    let mut any = BTreeSet::new();
    for (oid, mut chosen) in by_table {
        if chosen.contains(&None) {
            chosen = vec![None];
        }
        let parts = || facts.parts.iter().filter(|part| part.root == oid && part.kind == b'r');
        let name = facts.parts.iter().find(|part| part.oid == oid && part.root == oid);
        for chosen in &chosen {
            let told = chosen.as_ref().map_or("any row".to_owned(), |chosen| chosen.told(reading));
            lines.push(format!("table {}: {told}", name.map_or("", |part| part.name.as_str())));
            for part in parts() {
                if chosen.is_none() {
                    any.insert(part.oid);
                }
                let restriction = chosen.as_ref().map(|chosen| chosen.precise(part));
                recipe.tables.push(TableDeps { oid: part.oid, restriction });
            }
        }
    }
    // A partition may be named itself as well.
    recipe.tables.retain(|table| table.restriction.is_none() || !any.contains(&table.oid));
    let mut seen: Vec<TableDeps> = Vec::with_capacity(recipe.tables.len());
    for table in recipe.tables {
        if !seen.contains(&table) {
            seen.push(table);
        }
    }
    lines.sort();
    (Recipe { tables: seen }, lines)
}

/// A restriction that tells rows apart.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Chosen {
    Equal(Vec<(String, Kind, Vec<Source>)>),
    AnyOf(String, Kind, Source),
    Range(String, Kind, Option<Bound>, Option<Bound>),
}

impl Chosen {
    fn precise(&self, part: &Part) -> Precise {
        let signature = |columns, form| Arc::new(Signature::new(part.oid, columns, form));
        match self {
            Chosen::Equal(columns) => {
                let names = columns.iter().map(|(name, kind, _)| (name.clone(), *kind)).collect();
                Precise::Equal {
                    signature: signature(names, Form::Equal),
                    values: columns.iter().map(|(_, _, values)| values.clone()).collect(),
                }
            }
            Chosen::AnyOf(name, kind, array) => Precise::AnyOf {
                signature: signature(vec![(name.clone(), *kind)], Form::Equal),
                array: *array,
            },
            Chosen::Range(name, kind, low, high) => Precise::Range {
                signature: signature(vec![(name.clone(), *kind)], Form::Range),
                low: *low,
                high: *high,
            },
        }
    }

    fn told(&self, reading: &Reading) -> String {
        let label = |source: &Source| reading.label(*source);
        let all: Vec<String> = match self {
            Chosen::Equal(columns) => columns
                .iter()
                .map(|(name, _, values)| match &values[..] {
                    [value] => format!("{name} = {}", label(value)),
                    values => {
                        let values: Vec<String> = values.iter().map(label).collect();
                        format!("{name} in ({})", values.join(", "))
                    }
                })
                .collect(),
            Chosen::AnyOf(name, _, array) => vec![format!("{name} = any ({})", label(array))],
            Chosen::Range(name, _, low, high) => {
                let bound = |bound: &Option<Bound>, strict: &str| {
                    let (source, included) = bound.as_ref()?;
                    let equal = if *included { "=" } else { "" };
                    Some(format!("{name} {strict}{equal} {}", label(source)))
                };
                [bound(low, ">"), bound(high, "<")].into_iter().flatten().collect()
            }
        };
        format!("rows where {}", all.join(" and "))
    }
}

struct Maker<'a> {
    reading: &'a Reading,
    slots: &'a [Slot],
    known: Known<'a>,
}

impl Maker<'_> {
    /// What to watch for an occurrence of a table; none: any row.
    fn choose(&self, place: usize) -> Option<Chosen> {
        let restrictions = self.reading.reads.restrictions(place, &self.known);
        let usable = restrictions.into_iter().filter_map(|restriction| {
            let column = self.known.column(place, &restriction.column)?;
            let kind = kind(column).filter(|_| !column.generated)?;
            self.is_compared(kind, &restriction.test).then_some((restriction, kind))
        });
        let usable: Vec<(Restriction, Kind)> = usable.collect();
        // An UPDATE does not tell what other columns were: with one of those in a signature it would
        // drop every answer.
        let identity = |(restriction, _): &&(Restriction, Kind)| {
            self.known.column(place, &restriction.column).is_some_and(|column| column.identity)
        };
        let keys: Vec<(Restriction, Kind)> = usable.iter().filter(identity).cloned().collect();
        self.equal(&keys).or_else(|| self.equal(&usable)).or_else(|| {
            usable.into_iter().find_map(|(Restriction { column, test }, kind)| match test {
                Test::AnyOf(array) => Some(Chosen::AnyOf(column, kind, array)),
                Test::Range { low, high } if kind.is_ordered() => {
                    Some(Chosen::Range(column, kind, low, high))
                }
                Test::Range { .. } | Test::Equal(_) => None,
            })
        })
    }

    fn equal(&self, usable: &[(Restriction, Kind)]) -> Option<Chosen> {
        let mut columns: Vec<(String, Kind, Vec<Source>)> = Vec::new();
        for (Restriction { column, test }, kind) in usable {
            let Test::Equal(values) = test else { continue };
            let mut values = values.clone();
            values.sort();
            values.dedup();
            match columns.iter_mut().find(|(known, ..)| known == column) {
                Some((_, _, known)) if known.len() <= values.len() => {}
                Some((_, _, known)) => *known = values,
                None => columns.push((column.clone(), *kind, values)),
            }
        }
        columns.sort_by(|a, b| (a.2.len(), &a.0).cmp(&(b.2.len(), &b.0)));
        let mut combinations = 1;
        let mut taken = 0;
        for (_, _, values) in &columns {
            combinations *= values.len();
            if taken == COLUMNS_MAX || taken > 0 && combinations > COMBINATIONS_MAX {
                break;
            }
            taken += 1;
        }
        columns.truncate(taken);
        columns.sort_by(|a, b| a.0.cmp(&b.0));
        (!columns.is_empty()).then_some(Chosen::Equal(columns))
    }

    /// Whether all its values are compared as the column's own would be.
    fn is_compared(&self, kind: Kind, test: &Test) -> bool {
        let fits = |source: &Source| {
            self.type_of(*source).is_some_and(|oid| oid != 0 && kind.compares_with(oid))
        };
        let bound = |bound: &Option<Bound>| bound.as_ref().is_none_or(|(source, _)| fits(source));
        match test {
            Test::Equal(values) => values.iter().all(fits),
            Test::AnyOf(array) => {
                let element = self.type_of(*array).and_then(element_oid);
                element.is_some_and(|oid| oid != 0 && kind.compares_with(oid))
            }
            Test::Range { low, high } => bound(low) && bound(high),
        }
    }

    fn type_of(&self, source: Source) -> Option<u32> {
        self.slots.iter().find(|slot| slot.source == source).map(|slot| slot.type_oid)
    }
}
