//! Which rows a call touches, as far as its arguments tell.

use super::{Facts, Operand, Touch, TouchKind};
use crate::analysis::Name;

/// Rows of a table that a statement changes or locks: all that have these values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    pub kind: TouchKind,
    /// With its schema where that is known.
    pub table: Name,
    /// The first columns of a unique key, in its order, and what they are equal to. One of them at
    /// least is an argument.
    pub columns: Vec<(String, Operand)>,
    /// The whole unique key: one row at most.
    pub complete: bool,
    pub line: u32,
    pub order: u32,
    pub in_loop: bool,
    pub in_branch: bool,
}

impl Footprint {
    pub fn arguments(&self) -> impl Iterator<Item = (&str, usize)> {
        self.columns.iter().filter_map(|(column, operand)| match operand {
            Operand::Argument(place) => Some((column.as_str(), *place)),
            Operand::Constant(_) => None,
        })
    }
}

/// In the order of the body. An INSERT has one only if it gives a value to a whole unique key: two
/// of them conflict there and nowhere else.
pub fn footprints(touches: &[Touch], facts: &Facts) -> Vec<Footprint> {
    touches.iter().filter_map(|touch| footprint(touch, facts)).collect()
}

/// Columns of a touched table that have the value of an argument or a constant.
pub(super) fn known_columns(touch: &Touch, facts: &Facts) -> Vec<(String, Operand)> {
    let kept = touch.equalities.iter().filter(|equality| equality.kept.is_empty());
    let sure = kept.filter(|equality| facts.confirms(&equality.provided));
    let mut known: Vec<(String, Operand)> =
        sure.map(|equality| (equality.column.clone(), equality.operand.clone())).collect();
    let inserted = touch.kind == TouchKind::Insert;
    if let Some(relation) = facts.relation(&touch.name).filter(|_| inserted) {
        let pairs = relation.columns.iter().zip(&touch.passed);
        known.extend(pairs.filter_map(|(column, value)| Some((column.clone(), value.clone()?))));
    }
    known
}

fn footprint(touch: &Touch, facts: &Facts) -> Option<Footprint> {
    let changes = match touch.kind {
        TouchKind::Lock | TouchKind::Update | TouchKind::Delete | TouchKind::Merge => true,
        TouchKind::Insert => false,
        _ => return None,
    };
    let relation = facts.relation(&touch.name)?;
    let known = known_columns(touch, facts);
    let value = |column: &String| {
        let mut values = known.iter().filter(|(name, _)| name == column).map(|(_, value)| value);
        let argument = values.clone().find(|value| matches!(value, Operand::Argument(_)));
        argument.or_else(|| values.next()).cloned()
    };
    let mut best: Option<Footprint> = None;
    for key in &relation.unique {
        let prefix = key.iter().map_while(|column| Some((column.clone(), value(column)?)));
        let columns: Vec<(String, Operand)> = prefix.collect();
        let complete = columns.len() == key.len();
        let found = Footprint {
            kind: touch.kind,
            table: facts.title(&touch.name),
            columns,
            complete,
            line: touch.line,
            order: touch.order,
            in_loop: touch.in_loop,
            in_branch: touch.in_branch,
        };
        let counts = found.arguments().next().is_some() && (changes || complete);
        let better = |best: &Footprint| {
            (complete, found.columns.len()) > (best.complete, best.columns.len())
        };
        if counts && best.as_ref().is_none_or(better) {
            best = Some(found);
        }
    }
    best
}
