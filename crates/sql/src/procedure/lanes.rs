//! By which arguments calls are kept apart.
//!
//! Columns that hold the same kind of value are one *dimension*: those that a foreign key links,
//! and those that one procedure equates with the same argument. A footprint binds some dimensions
//! to arguments: `d_w_id = p_w AND d_id = p_d` binds warehouse and district. Procedures that write
//! the same tables get the same dimensions for their keys, so that calls of one meet calls of the
//! other in one lane: those that most of them can bind, and of these the fewest, since whoever
//! holds the coarser row holds up everybody below it. Rows of the key's dimensions that a call
//! names by other arguments are its `also`.

use std::collections::{BTreeMap, BTreeSet};

use super::advice;
use super::footprints::{footprints, known_columns, Footprint};
use super::{Analysis, Definition, Facts, Operand, Summary, TouchKind};
use crate::analysis::Name;

/// What is known of one procedure.
#[derive(Debug, Clone, Copy)]
pub struct Procedure<'a> {
    pub definition: &'a Definition,
    pub analysis: &'a Analysis,
    pub summary: &'a Summary,
}

/// The key that was derived for one procedure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Derived {
    /// Places in [`Definition::arguments`]; empty if there is none.
    pub key: Vec<usize>,
    /// More values of the same dimensions that a call reserves.
    pub also: Vec<Vec<usize>>,
    /// What each argument's values are of, by place: the first, by name, of the columns that hold
    /// the same kind of value, such as `public.warehouse.w_id`. None: of no column.
    pub dimensions: Vec<Option<String>>,
    pub footprints: Vec<Footprint>,
    /// Why this key, or why none.
    pub why: String,
    /// What to move in the body so that it holds its hottest row for less time.
    pub advice: Option<String>,
}

/// What each column holds a value of, as far as procedures and foreign keys tell: by its name, such
/// as `public.district.d_w_id`, the first name of those that hold the same, as in
/// [`Derived::dimensions`].
pub fn dimensions(procedures: &[Procedure], facts: &Facts) -> BTreeMap<String, String> {
    let mut dimensions = Dimensions::of(procedures, facts);
    let columns: Vec<(Name, String)> = dimensions.numbers.keys().cloned().collect();
    let mut first: BTreeMap<usize, String> = BTreeMap::new();
    let mut named = BTreeMap::new();
    for (table, column) in columns {
        let name = format!("{table}.{column}");
        let root = dimensions.root_of(&table, &column);
        named.insert(name.clone(), first.entry(root).or_insert(name).clone());
    }
    named
}

/// A key for each procedure, in the order they came in.
pub fn derive(procedures: &[Procedure], facts: &Facts) -> Vec<Derived> {
    let all: Vec<Vec<Footprint>> =
        procedures.iter().map(|one| footprints(&one.summary.touches, facts)).collect();
    let mut dimensions = Dimensions::of(procedures, facts);
    let bindings: Vec<Vec<Binding>> = all
        .iter()
        .map(|list| list.iter().map(|footprint| Binding::of(footprint, &mut dimensions)).collect())
        .collect();
    let groups = groups(procedures, facts);
    let mut derived = Vec::with_capacity(procedures.len());
    for (place, procedure) in procedures.iter().enumerate() {
        let group: Vec<usize> =
            (0..procedures.len()).filter(|other| groups[*other] == groups[place]).collect();
        let mut key = choose(&group, &bindings);
        let mut shared = true;
        if !key.as_ref().is_some_and(|key| binds(&bindings[place], key)) {
            key = choose(&[place], &bindings);
            shared = false;
        }
        let mut one = Derived { footprints: all[place].clone(), ..Derived::default() };
        one.advice = advice::reorder(procedure, &all[place]);
        one.dimensions = dimensions.of_arguments(place, procedure.definition);
        match key {
            None => one.why = no_key(procedure, &all[place]),
            Some(key) => {
                one.fill(&key, &bindings[place]);
                let others = group.iter().filter(|other| **other != place && shared);
                let others = others.filter(|other| binds(&bindings[**other], &key));
                let others: Vec<&str> =
                    others.map(|other| procedures[*other].definition.name.as_str()).collect();
                one.why = one.reason(procedure.definition, &others);
            }
        }
        derived.push(one);
    }
    derived
}

fn no_key(procedure: &Procedure, footprints: &[Footprint]) -> String {
    let changes = |kind| {
        use TouchKind::{Delete, Insert, Lock, Merge, Update};
        [Lock, Update, Delete, Merge, Insert].contains(&kind)
    };
    match procedure.summary.touches.iter().any(|touch| changes(touch.kind)) {
        _ if !footprints.is_empty() => "its footprints have no arguments in common".to_owned(),
        true => "no statement that changes or locks rows finds them by a unique key of which the \
                 first column is equal to an argument"
            .to_owned(),
        false => "it changes and locks no rows".to_owned(),
    }
}

impl Derived {
    fn fill(&mut self, key: &[usize], bindings: &[Binding]) {
        let mut found: Vec<(bool, bool, usize, Vec<usize>)> = Vec::new();
        for (place, binding) in bindings.iter().enumerate() {
            if let Some(values) = binding.values(key) {
                let footprint = &self.footprints[place];
                let exact = footprint.complete && binding.bound.len() == key.len();
                found.push((!exact, footprint.in_branch, place, values));
            }
        }
        found.sort();
        let mut lists: Vec<Vec<usize>> = Vec::new();
        for (.., values) in found {
            if !lists.contains(&values) {
                lists.push(values);
            }
        }
        if !lists.is_empty() {
            self.key = lists.remove(0);
        }
        self.also = lists;
    }

    fn reason(&self, definition: &Definition, others: &[&str]) -> String {
        let within = |footprint: &&Footprint| {
            let arguments: Vec<usize> = footprint.arguments().map(|(_, place)| place).collect();
            self.key.iter().all(|place| arguments.contains(place))
        };
        let count = self.footprints.iter().filter(within).count();
        let first = self.footprints.iter().find(within);
        let anchor = first.map_or(String::new(), |footprint| {
            let columns = footprint.arguments().filter(|(_, place)| self.key.contains(place));
            let columns: Vec<&str> = columns.map(|(column, _)| column).collect();
            format!("{} of {}", columns.join(", "), footprint.table)
        });
        let mut words =
            format!("{} of {} footprints are within one {anchor}", count, self.footprints.len());
        if !others.is_empty() {
            words.push_str(&format!("; calls of {} are kept apart by the same", others.join(", ")));
        }
        if !self.also.is_empty() {
            let one = |list: &Vec<usize>| advice::arguments(definition, list);
            let also: Vec<String> = self.also.iter().map(one).collect();
            words.push_str(&format!("; {} may name another one of them", also.join(" and ")));
        }
        words
    }
}

/// The dimensions of a footprint and the arguments they have.
struct Binding {
    bound: Vec<(usize, usize)>,
    complete: bool,
}

impl Binding {
    fn of(footprint: &Footprint, dimensions: &mut Dimensions) -> Binding {
        let mut bound: Vec<(usize, usize)> = Vec::new();
        for (column, argument) in footprint.arguments() {
            let dimension = dimensions.root_of(&footprint.table, column);
            if bound.iter().all(|(other, _)| *other != dimension) {
                bound.push((dimension, argument));
            }
        }
        Binding { bound, complete: footprint.complete }
    }

    fn values(&self, key: &[usize]) -> Option<Vec<usize>> {
        let value = |dimension: &usize| {
            let mut bound = self.bound.iter().filter(|(other, _)| other == dimension);
            bound.next().map(|(_, argument)| *argument)
        };
        key.iter().map(value).collect()
    }
}

fn binds(bindings: &[Binding], key: &[usize]) -> bool {
    bindings.iter().any(|binding| binding.values(key).is_some())
}

/// The dimensions of the key for these procedures, if one of them has any.
fn choose(group: &[usize], bindings: &[Vec<Binding>]) -> Option<Vec<usize>> {
    let lists = group.iter().flat_map(|place| &bindings[*place]);
    let candidates = lists.clone().map(|binding| {
        let dimensions = binding.bound.iter().map(|(dimension, _)| *dimension);
        dimensions.collect::<Vec<usize>>()
    });
    let mut best: Option<((usize, isize, usize), Vec<usize>)> = None;
    for key in candidates {
        let procedures = group.iter().filter(|place| binds(&bindings[**place], &key)).count();
        let all = lists.clone().filter(|binding| binding.values(&key).is_some());
        let rows = all.filter(|binding| binding.complete).count();
        let score = (procedures, -isize::try_from(key.len()).unwrap_or(isize::MAX), rows);
        if best.as_ref().is_none_or(|(other, _)| score > *other) {
            best = Some((score, key));
        }
    }
    best.map(|(_, key)| key)
}

/// Procedures that write or lock a table in common, directly or through others, have one number.
fn groups(procedures: &[Procedure], facts: &Facts) -> Vec<usize> {
    use TouchKind::{Delete, Lock, Merge, Update};
    let mut groups: Vec<usize> = (0..procedures.len()).collect();
    let mut owner: BTreeMap<Name, usize> = BTreeMap::new();
    for (place, procedure) in procedures.iter().enumerate() {
        let touches = procedure.summary.touches.iter();
        let changed = touches.filter(|touch| [Lock, Update, Delete, Merge].contains(&touch.kind));
        let tables: BTreeSet<Name> = changed.map(|touch| facts.title(&touch.name)).collect();
        for table in tables {
            let other = groups[*owner.entry(table).or_insert(place)];
            let own = groups[place];
            let joined = own.min(other);
            for group in &mut groups {
                if *group == own || *group == other {
                    *group = joined;
                }
            }
        }
    }
    groups
}

/// Columns that hold the same kind of value, by joining sets.
struct Dimensions {
    numbers: BTreeMap<(Name, String), usize>,
    parents: Vec<usize>,
    /// Of each procedure, the first column that an argument is equated with.
    equated: Vec<BTreeMap<usize, (Name, String)>>,
}

impl Dimensions {
    fn of(procedures: &[Procedure], facts: &Facts) -> Dimensions {
        let mut dimensions = Dimensions {
            numbers: BTreeMap::new(),
            parents: Vec::new(),
            equated: Vec::with_capacity(procedures.len()),
        };
        for (table, key) in facts.foreign_keys() {
            let Some(target) = &key.target else { continue };
            for (column, other) in key.columns.iter().zip(&key.target_columns) {
                dimensions.join((&table, column), (target, other));
            }
        }
        for procedure in procedures {
            let mut equated: BTreeMap<usize, (Name, String)> = BTreeMap::new();
            for touch in &procedure.summary.touches {
                if facts.relation(&touch.name).is_none() {
                    continue;
                }
                let table = facts.title(&touch.name);
                for (column, operand) in known_columns(touch, facts) {
                    let Operand::Argument(place) = operand else { continue };
                    let own = (table.clone(), column);
                    let first = equated.entry(place).or_insert_with(|| own.clone()).clone();
                    dimensions.join((&first.0, &first.1), (&own.0, &own.1));
                }
            }
            dimensions.equated.push(equated);
        }
        dimensions
    }

    fn of_arguments(&mut self, procedure: usize, definition: &Definition) -> Vec<Option<String>> {
        let mut of_argument = |place| {
            let (table, column) = self.equated.get(procedure)?.get(&place)?.clone();
            let root = self.root_of(&table, &column);
            let columns: Vec<(Name, String)> = self.numbers.keys().cloned().collect();
            let mut same =
                columns.iter().filter(|(table, column)| self.root_of(table, column) == root);
            same.next().map(|(table, column)| format!("{table}.{column}"))
        };
        (0..definition.arguments.len()).map(&mut of_argument).collect()
    }

    fn number(&mut self, table: &Name, column: &str) -> usize {
        let next = self.parents.len();
        let number = *self.numbers.entry((table.clone(), column.to_owned())).or_insert(next);
        if number == next {
            self.parents.push(next);
        }
        number
    }

    fn root_of(&mut self, table: &Name, column: &str) -> usize {
        let mut at = self.number(table, column);
        while self.parents[at] != at {
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, one: (&Name, &str), other: (&Name, &str)) {
        let (one, other) = (self.root_of(one.0, one.1), self.root_of(other.0, other.1));
        self.parents[one.max(other)] = one.min(other);
    }
}
