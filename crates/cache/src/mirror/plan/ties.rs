//! How far an answer is told by its statement.

use sql::{Comparison, Output};

use super::super::run::filter::Test;
use super::check::is_plain;
use super::{equal_to, At, Plan};

/// How far PostgreSQL is bound to give the same rows in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// There is one right answer.
    Total,
    /// The rows are told, their order is not, or not all of it.
    Free,
    /// Which of several rows is left out by LIMIT or OFFSET is not told either.
    Cut,
}

impl Plan {
    pub fn ties(&self) -> Ties {
        if self.is_total() || self.is_told() {
            Ties::Total
        } else if self.select.limit.is_some() || self.select.offset.is_some() {
            Ties::Cut
        } else {
            Ties::Free
        }
    }

    /// Whether no two rows of the answer have the same place in its order, unless they look the
    /// same.
    fn is_told(&self) -> bool {
        let ordered = |output: usize| self.select.order.iter().any(|order| order.output == output);
        let looks = |output: usize| self.results.get(output).is_some_and(is_plain);
        if (0..self.select.shown).all(|output| ordered(output) && looks(output)) {
            return true;
        }
        let mut known: Vec<At> = Vec::new();
        for order in &self.select.order {
            if let Some(Output::Column(at)) = self.select.outputs.get(order.output) {
                known.push(*at);
            }
        }
        self.add_fixed(&mut known);
        for at in known.clone() {
            known.extend(equal_to(at, &self.joins));
        }
        if let Some(groups) = &self.groups {
            return groups.iter().all(|at| known.contains(at));
        }
        (0u16..).zip(&self.tables).all(|(table, definition)| {
            definition.identity.iter().all(|column| known.contains(&(table, *column)))
        })
    }

    /// Columns that have one value in all rows.
    fn add_fixed(&self, known: &mut Vec<At>) {
        let parts = self.filters.iter().flat_map(|filter| match filter {
            Test::And(parts) => parts.as_slice(),
            _ => &[],
        });
        for part in parts {
            let Test::Is { column, comparison: Comparison::Equal, leaf } = part else { continue };
            if self.leaves.get(*leaf).is_some_and(|leaf| leaf.among.is_single()) {
                known.push(*column);
            }
        }
    }
}
