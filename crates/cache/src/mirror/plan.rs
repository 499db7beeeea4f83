//! How a statement is answered out of tables in memory: made once for its shape.
//!
//! The filter is taken apart into what can be asked of one table alone, equalities between two
//! tables by which rows of one lead to rows of the other, and the rest. Columns that are equal are
//! compared with the same values: if `a.x = b.y` and `a.x = 5`, rows of `b` with another `y` do not
//! matter. Which index is used is decided in each run, because then the values are known.

use std::sync::Arc;

use sql::{Comparison, Filter, Output, Select, Source};

use super::definition::{Column, Definition};
use super::run::constants::{Among, Leaf};
use super::run::filter::Test;
use super::table::Table;

mod check;
mod needs;
mod ties;

pub use needs::Need;
pub use ties::Ties;

/// Most tables of a statement, an occurrence of a table each.
pub const TABLES_MAX: usize = 8;

/// Most equalities between tables.
const JOINS_MAX: usize = 64;

/// A column: the table's place in the statement and its own in the table's definition.
pub(super) type At = (u16, u16);

/// Tables that do not change while they are looked at.
pub trait View {
    fn table(&self, oid: u32) -> Option<&Table>;
}

impl<S: std::hash::BuildHasher> View for std::collections::HashMap<u32, Table, S> {
    fn table(&self, oid: u32) -> Option<&Table> {
        self.get(&oid)
    }
}

/// What is done to answer statements of one shape.
#[derive(Debug)]
pub struct Plan {
    pub(super) select: Select<At>,
    pub(super) tables: Vec<Arc<Definition>>,
    pub(super) leaves: Vec<Leaf>,
    /// What each table's own columns say. Always [`Test::And`].
    pub(super) filters: Vec<Test>,
    /// Columns of each table that its filter restricts.
    pub(super) restricted: Vec<Vec<u16>>,
    /// Of each table: conditions that give the first columns of its identity one value each.
    pub(super) pinned: Vec<Vec<usize>>,
    /// Columns of different tables that are equal.
    pub(super) joins: Vec<(At, At)>,
    /// What more than one table is needed for, and which, as bits.
    pub(super) across: Vec<(u64, Test)>,
    /// What each output is printed as.
    pub(super) results: Vec<Column>,
    /// Rows are put together by these columns. None: each row is one of the answer.
    pub(super) groups: Option<Vec<At>>,
}

impl Plan {
    /// `types` are those that PostgreSQL gives to the values: see
    /// [`Values::get`](crate::recipe::Values::get).
    ///
    /// # Errors
    /// Why the statement can't be answered in memory, in words for people.
    pub fn new(
        select: Select<At>,
        tables: Vec<Arc<Definition>>,
        types: &dyn Fn(Source) -> u32,
    ) -> Result<Plan, String> {
        check::tables(&tables)?;
        check::values(&select, &tables, types)?;
        check::outputs(&select, &tables)?;
        Plan::compiled(select, tables)
    }

    fn compiled(select: Select<At>, tables: Vec<Arc<Definition>>) -> Result<Plan, String> {
        let mut parts = Parts {
            leaves: Vec::new(),
            filters: vec![Vec::new(); tables.len()],
            joins: Vec::new(),
            across: Vec::new(),
        };
        parts.take(&select.filter)?;
        if parts.joins.len() > JOINS_MAX {
            return Err(format!("more than {JOINS_MAX} equalities between tables"));
        }
        parts.spread();
        let filters: Vec<Test> = parts.filters.into_iter().map(Test::And).collect();
        let restricted =
            (0u16..).zip(&filters).map(|(at, filter)| restricted(at, filter)).collect();
        let pinned = (0u16..).zip(&tables).zip(&filters);
        let pinned = pinned
            .map(|((at, table), filter)| pinned_identity(at, table, filter, &parts.leaves))
            .collect();
        let results = select.outputs.iter().map(|output| check::result(output, &tables));
        let results = results.collect::<Result<_, _>>()?;
        let groups = groups(&select)?;
        Ok(Plan {
            leaves: parts.leaves,
            filters,
            restricted,
            pinned,
            joins: parts.joins,
            across: parts.across,
            results,
            groups,
            select,
            tables,
        })
    }

    /// The same plan for the tables as they are there: they may have more columns. None: one is not
    /// there, or has changed.
    pub fn placed(&self, view: &impl View) -> Option<Plan> {
        let tables: Option<Vec<_>> = self
            .tables
            .iter()
            .map(|table| view.table(table.oid).map(|there| there.definition().clone()))
            .collect();
        let tables = tables?;
        for (before, after) in self.tables.iter().zip(&tables) {
            let identity = |of: &Definition| -> Option<Vec<i16>> {
                let number = |place: &u16| of.columns.get(usize::from(*place)).map(|c| c.attnum);
                of.identity.iter().map(number).collect()
            };
            if before.filenode != after.filenode || identity(before) != identity(after) {
                return None;
            }
        }
        let place = |(table, column): At| -> Result<At, String> {
            let gone = || "a column has changed".to_owned();
            let before = check::column(&self.tables, (table, column))?;
            let after = &tables.get(usize::from(table)).ok_or_else(gone)?.columns;
            let place = after.iter().position(|after| after == before).ok_or_else(gone)?;
            Ok((table, u16::try_from(place).map_err(|_| gone())?))
        };
        let select = self.select.clone().map(&mut { place }).ok()?;
        Plan::compiled(select, tables).ok()
    }

    /// Whether all rows of the answer come from one group, which is there even without rows.
    pub(super) fn is_total(&self) -> bool {
        self.groups.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether at most one row of a table can matter.
    pub(super) fn is_pinned(&self, table: usize) -> bool {
        match (self.pinned.get(table), self.tables.get(table)) {
            (Some(pinned), Some(table)) => pinned.len() == table.identity.len(),
            _ => false,
        }
    }

    pub(super) fn column(&self, (table, column): At) -> Option<&Column> {
        self.tables.get(usize::from(table))?.columns.get(usize::from(column))
    }
}

/// By what rows are put together.
fn groups(select: &Select<At>) -> Result<Option<Vec<At>>, String> {
    let plain = |output: &Output<At>| match output {
        Output::Column(at) => Some(*at),
        _ => None,
    };
    let aggregates = select.outputs.iter().any(|output| plain(output).is_none());
    let shown = select.outputs.iter().take(select.shown);
    if !select.group.is_empty() || aggregates {
        let told = |at: &At| shown.clone().any(|output| plain(output) == Some(*at));
        if select.distinct && !select.group.iter().all(told) {
            return Err("DISTINCT of groups that are not shown".to_owned());
        }
        let known = |at: At| select.group.contains(&at);
        if !select.outputs.iter().filter_map(plain).all(known) {
            return Err("a column that is not grouped by".to_owned());
        }
        return Ok(Some(select.group.clone()));
    }
    if !select.distinct {
        return Ok(None);
    }
    if select.shown == 0 {
        return Err("DISTINCT of nothing".to_owned());
    }
    if select.outputs.len() > select.shown {
        return Err("DISTINCT in an order of what is not shown".to_owned());
    }
    Ok(Some(shown.filter_map(plain).collect()))
}

/// A filter that is taken apart.
struct Parts {
    leaves: Vec<Leaf>,
    filters: Vec<Vec<Test>>,
    joins: Vec<(At, At)>,
    across: Vec<(u64, Test)>,
}

impl Parts {
    /// One of the conditions that all have to hold.
    fn take(&mut self, filter: &Filter<At>) -> Result<(), String> {
        if let Filter::And(parts) = filter {
            return parts.iter().try_for_each(|part| self.take(part));
        }
        let test = self.test(filter);
        let mut tables = 0u64;
        test.columns(&mut |(table, _)| tables |= 1 << table.min(63));
        if let Test::Same(one, other) = &test {
            if one.0 != other.0 {
                self.joins.push((*one, *other));
            }
        }
        if tables.count_ones() > 1 {
            self.across.push((tables, test));
            return Ok(());
        }
        // What names no table is of the first one as well as of any.
        let table = if tables == 0 { 0 } else { tables.trailing_zeros() as usize };
        let filter = self.filters.get_mut(table).ok_or("a table that is not in FROM")?;
        filter.push(test);
        Ok(())
    }

    fn test(&mut self, filter: &Filter<At>) -> Test {
        let mut all = |parts: &[Filter<At>]| parts.iter().map(|part| self.test(part)).collect();
        match filter {
            Filter::And(parts) => Test::And(all(parts)),
            Filter::Or(parts) if parts.is_empty() => Test::Never,
            Filter::Or(parts) => Test::Or(all(parts)),
            Filter::Compare(column, comparison, source) => {
                self.is(*column, *comparison, Among::Each(vec![*source]))
            }
            Filter::In(column, sources) => {
                self.is(*column, Comparison::Equal, Among::Each(sources.clone()))
            }
            Filter::AnyOf(column, source) => {
                self.is(*column, Comparison::Equal, Among::Array(*source))
            }
            Filter::Is(column, value) => self.is(*column, Comparison::Equal, Among::Truth(*value)),
            Filter::NotIn(column, sources) => {
                let leaf = self.leaf(*column, Among::Each(sources.clone()));
                Test::IsNot { column: *column, leaf }
            }
            Filter::Like(column, source, wanted) => {
                let leaf = self.leaf(*column, Among::Like(*source));
                Test::Like { column: *column, leaf, wanted: *wanted }
            }
            Filter::Null(column) => Test::Null(*column),
            Filter::NotNull(column) => Test::NotNull(*column),
            Filter::Same(one, other) => Test::Same(*one, *other),
        }
    }

    fn is(&mut self, column: At, comparison: Comparison, among: Among) -> Test {
        let leaf = self.leaf(column, among);
        Test::Is { column, comparison, leaf }
    }

    fn leaf(&mut self, column: At, among: Among) -> usize {
        self.leaves.push(Leaf { column, among });
        self.leaves.len() - 1
    }

    /// What is said of a column holds for all that are equal to it. Their keys are the same bytes.
    fn spread(&mut self) {
        for (at, _) in self.filters.clone().iter().enumerate() {
            for test in self.filters[at].clone() {
                let Test::Is { column, comparison, leaf } = test else { continue };
                for other in equal_to(column, &self.joins) {
                    let copy = Test::Is { column: other, comparison, leaf };
                    if let Some(filter) = self.filters.get_mut(usize::from(other.0)) {
                        filter.push(copy);
                    }
                }
            }
        }
    }
}

/// The other columns that equalities lead to.
pub(super) fn equal_to(column: At, joins: &[(At, At)]) -> Vec<At> {
    let mut known = vec![column];
    let mut next = 0;
    while let Some(at) = known.get(next).copied() {
        for (one, other) in joins {
            for (from, to) in [(one, other), (other, one)] {
                if *from == at && !known.contains(to) {
                    known.push(*to);
                }
            }
        }
        next += 1;
    }
    known.swap_remove(0);
    known
}

/// Columns of which a filter admits only some values.
fn restricted(table: u16, filter: &Test) -> Vec<u16> {
    let mut columns = Vec::new();
    filter.columns(&mut |(of, column)| {
        if of == table && !columns.contains(&column) && restricts(filter, (table, column), true) {
            columns.push(column);
        }
    });
    columns
}

/// Whether rows that pass have some values of the column; if not `at_all`, then few.
fn restricts(test: &Test, column: At, at_all: bool) -> bool {
    match test {
        Test::And(parts) => parts.iter().any(|part| restricts(part, column, at_all)),
        Test::Or(parts) => parts.iter().all(|part| restricts(part, column, at_all)),
        Test::IsNot { column: of, .. } | Test::Like { column: of, wanted: false, .. } => {
            at_all && *of == column
        }
        Test::Is { column: of, .. } | Test::Like { column: of, .. } | Test::Null(of) => {
            *of == column
        }
        Test::Never | Test::NotNull(_) | Test::Same(..) => false,
    }
}

/// The conditions that give the first columns of the identity one value each.
fn pinned_identity(at: u16, table: &Definition, filter: &Test, leaves: &[Leaf]) -> Vec<usize> {
    let Test::And(parts) = filter else { return Vec::new() };
    let pins = |place: &u16| {
        parts.iter().find_map(|part| match part {
            Test::Is { column, comparison: Comparison::Equal, leaf } if *column == (at, *place) => {
                leaves.get(*leaf)?.among.is_single().then_some(*leaf)
            }
            _ => None,
        })
    };
    table.identity.iter().map_while(pins).collect()
}
