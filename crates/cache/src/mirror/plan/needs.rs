//! Which indexes a shape can't do without, or not well.

use sql::{Comparison, Output};

use super::super::class::Class;
use super::super::run::filter::Test;
use super::{restricts, At, Plan};

/// More would cost more memory than they save time. Of one table, for its filter.
const FILTER_INDEXES_MAX: usize = 3;

/// An index that a plan can't do without, or not well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The table's place in the statement.
    pub place: u16,
    /// Its oid.
    pub table: u32,
    /// The column by its place in the definition.
    pub index: u16,
    /// Columns whose sums it has to know.
    pub sums: Vec<u16>,
}

impl Plan {
    pub fn needs(&self) -> impl Iterator<Item = Need> + '_ {
        let mut needs = Needs { plan: self, found: Vec::new() };
        for place in 0..self.tables.len() {
            needs.of_filter(place);
        }
        needs.of_order();
        needs.of_totals();
        needs.of_joins();
        needs.found.into_iter()
    }
}

struct Needs<'a> {
    plan: &'a Plan,
    found: Vec<Need>,
}

impl Needs<'_> {
    fn add(&mut self, (place, index): At, sums: &[u16]) {
        let Some(table) = self.plan.tables.get(usize::from(place)) else { return };
        let opaque = self.plan.column((place, index)).is_none_or(|c| c.class == Class::Opaque);
        // That of the identity is always there.
        if opaque || sums.is_empty() && table.identity == [index] {
            return;
        }
        let known = self.found.iter_mut().find(|need| (need.place, need.index) == (place, index));
        match known {
            Some(need) => {
                for sum in sums {
                    if !need.sums.contains(sum) {
                        need.sums.push(*sum);
                    }
                }
            }
            None => {
                let sums = sums.to_vec();
                self.found.push(Need { place, table: table.oid, index, sums });
            }
        }
    }

    fn of_filter(&mut self, place: usize) {
        let plan = self.plan;
        let (Some(restricted), Some(Test::And(parts))) =
            (plan.restricted.get(place), plan.filters.get(place))
        else {
            return;
        };
        if plan.is_pinned(place) {
            return;
        }
        let table = place as u16;
        // The identity's own index tells them.
        let identity = plan.tables.get(place).map_or(&[][..], |table| &table.identity);
        let pinned = plan.pinned.get(place).map_or(0, Vec::len);
        let first = identity.get(..pinned).unwrap_or_default();
        let few =
            |column: &&u16| parts.iter().any(|part| restricts(part, (table, **column), false));
        let few: Vec<u16> = restricted.iter().filter(few).copied().collect();
        // A truth value is that of half of the rows.
        let is_truth = |at| plan.column(at).is_some_and(|column| column.class == Class::Bool);
        let has_value = |column: &&u16| {
            parts.iter().any(|part| {
                matches!(part, Test::Is { column: of, comparison: Comparison::Equal, .. }
                    if *of == (table, **column) && !is_truth(*of))
            })
        };
        let equal: Vec<u16> = few.iter().filter(has_value).copied().collect();
        let wanted = if equal.is_empty() { &few } else { &equal };
        let wanted = wanted.iter().filter(|column| !first.contains(column));
        for column in wanted.take(FILTER_INDEXES_MAX) {
            self.add((table, *column), &[]);
        }
    }

    /// The first rows in some order.
    fn of_order(&mut self) {
        let plan = self.plan;
        let Some(first) = plan.select.order.first() else { return };
        if plan.select.limit.is_none() || plan.groups.is_some() || plan.tables.len() > 1 {
            return;
        }
        if let Some(Output::Column(at)) = plan.select.outputs.get(first.output) {
            self.add(*at, &[]);
        }
    }

    /// Aggregates of all rows, or of those that one column tells.
    fn of_totals(&mut self) {
        let plan = self.plan;
        let [filter] = plan.filters.as_slice() else { return };
        if !plan.is_total() {
            return;
        }
        let mut columns: Vec<At> = Vec::new();
        filter.columns(&mut |at| {
            if !columns.contains(&at) {
                columns.push(at);
            }
        });
        for output in &plan.select.outputs {
            let (at, sums) = match output {
                Output::Column(_) | Output::CountRows => continue,
                Output::Min(at) | Output::Max(at) => (*at, false),
                Output::Count(at) if plan.column(*at).is_none_or(|column| column.not_null) => {
                    continue;
                }
                Output::Count(at) | Output::Sum(at) | Output::Avg(at) => (*at, true),
            };
            let is_int = plan.column(at).is_some_and(|column| {
                matches!(column.class, Class::Int2 | Class::Int4 | Class::Int8)
            });
            let sums: &[u16] = if sums && is_int { &[at.1] } else { &[] };
            match *columns {
                [] => self.add(at, sums),
                [only] if !sums.is_empty() => self.add(only, sums),
                _ => {}
            }
        }
    }

    /// From tables of which only some rows matter to the others.
    fn of_joins(&mut self) {
        let plan = self.plan;
        if plan.joins.is_empty() {
            return;
        }
        let known = |place: &usize| plan.restricted.get(*place).is_some_and(|r| !r.is_empty());
        let mut from: Vec<usize> = (0..plan.tables.len()).filter(known).collect();
        if from.is_empty() {
            from = (0..plan.tables.len()).collect();
        }
        for start in from {
            let mut reached = vec![start as u16];
            let mut next = 0;
            while let Some(table) = reached.get(next).copied() {
                for (one, other) in &plan.joins {
                    for (from, to) in [(one, other), (other, one)] {
                        if from.0 == table && !reached.contains(&to.0) {
                            reached.push(to.0);
                            self.add(*to, &[]);
                        }
                    }
                }
                next += 1;
            }
        }
    }
}
