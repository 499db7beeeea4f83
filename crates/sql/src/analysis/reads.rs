//! Which tables a SELECT reads, and which of their rows can matter.
//!
//! Every *occurrence* of a relation in any query block (subqueries, WITH, set operations, LATERAL)
//! is told with conditions that hold for every row of it that can matter: if all other rows were
//! deleted, the answer would be the same. A condition that is missing costs precision, a wrong one
//! costs correctness; so what is not understood for certain is no condition.
//!
//! Conditions are comparisons of a column with constants (`=`, IN, `= ANY`, `<`, BETWEEN) or with
//! another column (`=`). They are strict: of NULL they are not true. That makes them hold
//! here:
//!
//! - Conjuncts of WHERE hold for all relations in the FROM of their block, those that an outer
//!   join may leave out included: a row that was put there for want of another one is NULL, and
//!   does not pass.
//! - Conjuncts of the ON of an inner join hold for both of its sides, of a LEFT or RIGHT join for
//!   the side that may be left out, of a FULL join for none: rows of the side that is kept come
//!   through without it.
//! - What holds in all that comes out of one side of a join (the ON of inner joins in it) holds for
//!   the other side too, unless the first may be left out.
//! - What is under OR, NOT or CASE, in HAVING or in the select list holds for nothing. Only an
//!   OR whose branches all compare the same column is a list like IN.
//! - Conditions of one block do not reach into another one.
//!
//! `a.x = b.y AND a.x = 5` restricts `b` to rows with `y = 5`, if both conditions hold for `b`.
//! Whatever row of `b` has another `y`: in each combination with rows of the others one of the
//! two is false, and so it is when `b` or `a` is all NULL.
//!
//! Whether a column without a qualifier is one of a certain table, only the catalogues know:
//! [`Reads::restrictions`] asks. The innermost block that has a column of this name is meant, and
//! within one block the name must be of one relation only, so PostgreSQL itself refuses what would
//! be ambiguous. A column of an outer block is never a table's of this one.
//!
//! Which operator `=` is, and whether the constant keeps its value on the way to the column's
//! type, is for the catalogues as well.

mod blocks;
mod conditions;
mod constants;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::Name;

pub(super) use blocks::Blocks;
pub(super) use conditions::{boolean_parts, operator, AEXPR_OP_ANY, AND, OR};
pub(super) use constants::{type_name, Constants};

/// Where a constant comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The scanned literal with this place in the list.
    Literal(u32),
    /// `$1` is 1.
    Parameter(u32),
}

/// A bound, and whether it is itself within the range.
pub type Bound = (Source, bool);

/// What a column is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// It is one of these.
    Equal(Vec<Source>),
    /// It is one of this array's.
    AnyOf(Source),
    Range {
        low: Option<Bound>,
        high: Option<Bound>,
    },
}

/// A column as a condition names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The occurrences that it may belong to: one, if it has a qualifier.
    pub of: Vec<usize>,
    /// By USING it is one with a column of this name of one table out of each of these lists.
    pub merged: Vec<Vec<usize>>,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    Is(Column, Test),
    Same(Column, Column),
}

/// One occurrence of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRead {
    pub relation: Name,
    /// Places in [`Reads::conditions`].
    pub conditions: Vec<usize>,
}

/// What a cast is applied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cast {
    Constant(Option<Source>),
    /// The last name of a column reference.
    Column(String),
    /// A call of a function with this name.
    Call(Name),
    /// Another cast, to this type.
    Type(Name),
    Other,
}

/// A cast that is written down: `CAST`, `::`, a typed constant, or what may be one, `f(x)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CastTo {
    pub what: Cast,
    pub to: Name,
    /// To an array of `to`.
    pub array: bool,
    /// It looks like a call of a function.
    pub call: bool,
}

/// What a statement reads, by its text alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    pub tables: Vec<TableRead>,
    pub conditions: Vec<Condition>,
    pub casts: Vec<CastTo>,
    /// Names of columns as they stand somewhere, without their qualifiers.
    pub names: BTreeSet<String>,
    /// Columns may be used without their names: whole rows, NATURAL, lists of other names.
    pub whole: bool,
    /// One block with nothing but relations in its FROM: a name is that of one of their columns.
    pub plain: bool,
    /// Why two runs of it may have different answers though no data has changed, whatever the
    /// catalogues say: `CURRENT_DATE tells the time`.
    pub obstacles: Vec<String>,
}

/// All of an occurrence's rows that can matter satisfy it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restriction {
    pub column: String,
    pub test: Test,
}

/// What the catalogues say of columns. Tables are places in [`Reads::tables`].
pub trait Columns {
    /// Whether the relation has this column; none: it is not known.
    fn has(&self, table: usize, column: &str) -> Option<bool>;

    /// Whether `left = right` means that they have the same values and that what is compared with
    /// one may as well be compared with the other.
    fn same(&self, left: (usize, &str), right: (usize, &str)) -> bool;
}

impl Reads {
    /// What restricts one occurrence, by its columns in order; several of one column all hold.
    pub fn restrictions(&self, table: usize, columns: &impl Columns) -> Vec<Restriction> {
        let Some(read) = self.tables.get(table) else { return Vec::new() };
        let holding = || read.conditions.iter().filter_map(|at| self.conditions.get(*at));
        let owner = |column: &Column| owner(column, columns);
        let mut pairs = Vec::new();
        for condition in holding() {
            let Condition::Same(left, right) = condition else { continue };
            let (Some(l), Some(r)) = (owner(left), owner(right)) else { continue };
            let (l, r) = ((l, left.name.as_str()), (r, right.name.as_str()));
            if columns.same(l, r) {
                pairs.push((l, r));
            }
        }
        let mut found: BTreeMap<&str, Vec<Test>> = BTreeMap::new();
        for condition in holding() {
            let Condition::Is(column, test) = condition else { continue };
            let Some(of) = owner(column) else { continue };
            for (_, name) in
                reached((of, column.name.as_str()), &pairs).iter().filter(|(of, _)| *of == table)
            {
                found.entry(name).or_default().push(test.clone());
            }
        }
        let restriction = |(column, tests): (&str, Vec<Test>)| {
            let column = column.to_owned();
            joined(tests).into_iter().map(move |test| Restriction { column: column.clone(), test })
        };
        found.into_iter().flat_map(restriction).collect()
    }
}

/// The one occurrence that a column is of.
fn owner(column: &Column, columns: &impl Columns) -> Option<usize> {
    let owner = only(&column.of, &column.name, columns)?;
    // It has the type that all of them have in common.
    for tables in &column.merged {
        let other = only(tables, &column.name, columns)?;
        if !columns.same((owner, &column.name), (other, &column.name)) {
            return None;
        }
    }
    Some(owner)
}

fn only(tables: &[usize], column: &str, columns: &impl Columns) -> Option<usize> {
    let mut only = None;
    for table in tables {
        if columns.has(*table, column)? && only.replace(*table).is_some() {
            return None;
        }
    }
    only
}

type Place<'a> = (usize, &'a str);

/// All columns that are equal to this one, itself included.
fn reached<'a>(from: Place<'a>, pairs: &[(Place<'a>, Place<'a>)]) -> Vec<Place<'a>> {
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(at) = reached.get(next).copied() {
        for (left, right) in pairs {
            for (one, other) in [(left, right), (right, left)] {
                if *one == at && !reached.contains(other) {
                    reached.push(*other);
                }
            }
        }
        next += 1;
    }
    reached
}

/// Half-open ranges make one.
fn joined(tests: Vec<Test>) -> Vec<Test> {
    let (mut least, mut most) = (None, None);
    let mut rest = Vec::with_capacity(tests.len());
    for test in tests {
        match test {
            Test::Range { low, high } => {
                least = least.or(low);
                most = most.or(high);
            }
            test => rest.push(test),
        }
    }
    if least.is_some() || most.is_some() {
        rest.push(Test::Range { low: least, high: most });
    }
    rest
}
