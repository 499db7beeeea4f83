//! Aggregates of all rows that one column tells: an index knows them, or knows where they are.

use std::ops::Bound;

use sql::Output;

use super::super::ordered::{Ordered, Range};
use super::super::plan::At;
use super::super::spans::Span;
use super::super::table::Table;
use super::groups::Cell;
use super::path::{Known, Part};

const EVERYTHING: Range<'static> = Range { low: Bound::Unbounded, high: Bound::Unbounded };

/// Rows that an index tells exactly.
struct Told<'a> {
    known: Known<'a>,
    table: &'a Table,
    index: &'a Ordered,
    part: &'a Part,
    spans: &'a [Span],
}

impl<'a> Known<'a> {
    /// Fills the cells that an index fills. Which they are is told as bits.
    pub fn totals(&self, cells: &mut [Cell], part: Option<&Part>, spans: &[Span]) -> u64 {
        let table = self.table(0);
        let mut done = 0;
        for (at, (cell, output)) in cells.iter_mut().zip(&self.plan.select.outputs).enumerate() {
            let filled = match part {
                None => self.of_all(table, cell, output),
                Some(part) => table.index(part.column).and_then(|index| {
                    let spans = &spans[part.spans.clone()];
                    Told { known: *self, table, index, part, spans }.fill(cell, output)
                }),
            };
            if filled.is_some() && at < 64 {
                done |= 1 << at;
            }
        }
        done
    }

    /// Of all rows of the table.
    fn of_all(&self, table: &Table, cell: &mut Cell, output: &Output<At>) -> Option<()> {
        let values = |at: &At| {
            let index = table.index(at.1)?;
            Some((index, index.count(table.rows(), &EVERYTHING)))
        };
        match (cell, output) {
            (Cell::Count(count), Output::CountRows) => *count = table.len(),
            (Cell::Count(count), Output::Count(at)) => {
                let not_null = self.plan.column(*at)?.not_null;
                *count = if not_null { table.len() } else { values(at)?.1 };
            }
            (Cell::Sum(sum) | Cell::Average(sum), Output::Sum(at) | Output::Avg(at)) => {
                let index = table.index(at.1)?;
                let (total, count) = index.sum(table.rows(), &EVERYTHING, at.1)?;
                sum.add_total(total, count);
            }
            (Cell::Best(best), Output::Min(at) | Output::Max(at)) => {
                let backwards = matches!(output, Output::Max(_));
                *best = table.index(at.1)?.ids(table.rows(), &EVERYTHING, backwards).next();
            }
            (Cell::Column, _) => {}
            _ => return None,
        }
        Some(())
    }
}

impl Told<'_> {
    fn fill(&self, cell: &mut Cell, output: &Output<At>) -> Option<()> {
        let own = |at: &At| at.1 == self.part.column;
        // Rows without a value in the index are in no sum of it.
        let here = |at: &At| own(at) || !self.part.nulls;
        match (cell, output) {
            (Cell::Count(count), Output::CountRows) => {
                let nulls = if self.part.nulls { self.index.null_count() } else { 0 };
                *count = self.count() + nulls;
            }
            (Cell::Count(count), Output::Count(at)) if own(at) => *count = self.count(),
            (Cell::Count(count), Output::Count(at)) if here(at) => {
                let not_null = self.known.plan.column(*at)?.not_null;
                *count = if not_null { self.count() } else { self.sum(*at)?.1 };
            }
            (Cell::Sum(sum) | Cell::Average(sum), Output::Sum(at) | Output::Avg(at))
                if here(at) =>
            {
                let (total, count) = self.sum(*at)?;
                sum.add_total(total, count);
            }
            (Cell::Best(best), Output::Min(at)) if own(at) => {
                *best = self.spans.iter().find_map(|span| self.end(span, false));
            }
            (Cell::Best(best), Output::Max(at)) if own(at) => {
                *best = self.spans.iter().rev().find_map(|span| self.end(span, true));
            }
            (Cell::Column, _) => {}
            _ => return None,
        }
        Some(())
    }

    fn count(&self) -> u64 {
        let of = |span: &Span| self.index.count(self.table.rows(), &self.known.range(span));
        self.spans.iter().map(of).sum()
    }

    fn sum(&self, at: At) -> Option<(i128, u64)> {
        let (mut total, mut count) = (0, 0);
        for span in self.spans {
            let range = self.known.range(span);
            let (more, rows) = self.index.sum(self.table.rows(), &range, at.1)?;
            total += more;
            count += rows;
        }
        // Without spans it is not known whether there is such a sum, and does not matter.
        Some((total, count))
    }

    fn end(&self, span: &Span, backwards: bool) -> Option<u32> {
        self.index.ids(self.table.rows(), &self.known.range(span), backwards).next()
    }
}
