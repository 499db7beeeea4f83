//! One run of a statement over tables in memory.
//!
//! All values are read first: a wrong one is PostgreSQL's to complain of. Aggregates of all rows
//! come from an index where one column tells which rows are meant. Else rows are looked at one by
//! one, in the order of an index if that is the statement's, and written, sorted, or put together.

use std::sync::Arc;

use smallvec::SmallVec;
use sql::Source;

use crate::recipe::{Value, Values};
use crate::value::oid;

use super::output::{Format, Session};
pub use super::plan::{Plan, View};
use super::table::Table;
use answer::{plain, Answer};
use constants::Constants;
use groups::{Gather, Groups};
use path::{Direction, Known, Path, Tools};
use scan::{Scan, Step, Steps};
use sinks::{Direct, Sorting};
use sort::Sorter;
use tuples::Tuples;

mod answer;
pub(super) mod constants;
pub(super) mod filter;
mod groups;
mod path;
mod rows;
mod scan;
mod sinks;
mod sort;
mod totals;
mod tuples;

/// Scratch memory beyond this is given back after a run. Entries of a list.
const KEPT_MAX: usize = 1 << 16;

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// So many rows.
    Rows(u64),
    /// Nothing was written; PostgreSQL has to say it.
    Refused(Refused),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A table or an index is not there, or [`Plan::placed`] has to be asked again.
    Unready,
    /// A value of the statement is not understood for certain or is wrong, or one of the answer
    /// can't be printed.
    Value,
    /// More rows to look at, or a larger answer, than is allowed.
    TooMuch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Looked at.
    pub rows: u64,
    /// Of the answer.
    pub bytes: usize,
}

/// Memory that is used again from run to run.
#[derive(Debug, Default)]
pub struct Scratch {
    constants: Constants,
    tools: Tools,
    buffers: filter::Buffers,
    sorter: Sorter,
    groups: Groups,
    tuples: Tuples,
}

/// Which rows of the answer are wanted.
#[derive(Debug, Clone, Copy)]
struct Window {
    offset: u64,
    limit: u64,
}

/// How an answer is to look, and what it may cost.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// One for each shown output, or one for all, or none, which is text.
    pub formats: &'a [Format],
    pub session: &'a Session,
    pub limits: Limits,
}

/// Appends DataRows and CommandComplete to `out`.
pub fn run(
    plan: &Plan,
    view: &impl View,
    values: &impl Values,
    terms: Terms<'_>,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Ran {
    let start = out.len();
    let ran = prepare(plan, view, values, scratch).and_then(|(tables, window)| {
        let mut answer = Answer::new(plan, terms, &window, out)?;
        let Scratch { constants, tools, buffers, sorter, groups, tuples } = &mut *scratch;
        let known = Known { plan, tables: &tables, constants };
        let most = terms.limits.rows;
        let mut run = Run {
            known,
            window,
            most,
            answer: &mut answer,
            tools,
            buffers,
            sorter,
            groups,
            tuples,
        };
        run.answer()?;
        Ok(answer.close())
    });
    scratch.trim();
    match ran {
        Ok(rows) => Ran::Rows(rows),
        Err(refused) => {
            out.truncate(start);
            Ran::Refused(refused)
        }
    }
}

type Tables<'v> = SmallVec<[&'v Table; 2]>;

fn prepare<'v>(
    plan: &Plan,
    view: &'v impl View,
    values: &impl Values,
    scratch: &mut Scratch,
) -> Result<(Tables<'v>, Window), Refused> {
    let mut tables = Tables::new();
    for definition in &plan.tables {
        let table = view.table(definition.oid).ok_or(Refused::Unready)?;
        let there = table.definition();
        if !Arc::ptr_eq(there, definition) && there != definition {
            return Err(Refused::Unready);
        }
        tables.push(table);
    }
    scratch.constants.read(&plan.leaves, &plan.tables, values)?;
    scratch.tools.spans.clear();
    let count = |source: Option<Source>| source.map_or(Ok(None), |source| whole(values, source));
    let window = Window {
        offset: count(plan.select.offset)?.unwrap_or(0),
        limit: count(plan.select.limit)?.unwrap_or(u64::MAX),
    };
    Ok((tables, window))
}

/// The count of a LIMIT or OFFSET. None: NULL, which is none.
fn whole(values: &impl Values, source: Source) -> Result<Option<u64>, Refused> {
    let (value, type_oid) = values.get(source).ok_or(Refused::Value)?;
    let number = match (value, type_oid) {
        (Value::Null, _) => return Ok(None),
        (Value::Text(text), 0 | oid::UNKNOWN | oid::INT2 | oid::INT4 | oid::INT8) => {
            std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok())
        }
        (Value::Binary(bytes), oid::INT2) => {
            bytes.try_into().ok().map(|bytes| i16::from_be_bytes(bytes).into())
        }
        (Value::Binary(bytes), oid::INT4) => {
            bytes.try_into().ok().map(|bytes| i32::from_be_bytes(bytes).into())
        }
        // The parameter of a LIMIT has this type, unless it says otherwise.
        (Value::Binary(bytes), 0 | oid::UNKNOWN | oid::INT8) => {
            bytes.try_into().ok().map(i64::from_be_bytes)
        }
        _ => None,
    };
    number.and_then(|number| u64::try_from(number).ok()).map(Some).ok_or(Refused::Value)
}

impl Window {
    /// So many rows have to be found.
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.limit)
    }
}

impl Scratch {
    /// Gives back what one large run has taken.
    fn trim(&mut self) {
        self.sorter.trim(KEPT_MAX);
        self.groups.trim(KEPT_MAX);
        self.tuples.trim(KEPT_MAX);
        self.constants.trim(KEPT_MAX);
        trim(&mut self.tools.spans, KEPT_MAX);
    }
}

fn trim<T>(list: &mut Vec<T>, most: usize) {
    if list.capacity() > most {
        *list = Vec::new();
    }
}

struct Run<'a, 'o> {
    known: Known<'a>,
    window: Window,
    /// Rows to look at.
    most: u64,
    answer: &'a mut Answer<'o>,
    tools: &'a mut Tools,
    buffers: &'a mut filter::Buffers,
    sorter: &'a mut Sorter,
    groups: &'a mut Groups,
    tuples: &'a mut Tuples,
}

impl<'a> Run<'a, '_> {
    fn answer(&mut self) -> Result<(), Refused> {
        if !self.answer.is_open() {
            return Ok(());
        }
        let plan = self.known.plan;
        match &plan.groups {
            Some(by) if by.is_empty() && plan.is_total() => {
                self.totals()?;
                self.put_groups()
            }
            Some(by) => {
                self.groups.begin();
                let steps = self.known.steps(self.tools)?;
                self.gather(&steps, by, 0)?;
                self.put_groups()
            }
            None if plan.select.order.is_empty() => {
                let steps = self.known.steps(self.tools)?;
                self.direct(&steps)
            }
            None => self.ordered(),
        }
    }

    fn direct(&mut self, steps: &[Step<'a>]) -> Result<(), Refused> {
        let mut direct = Direct { answer: &mut *self.answer };
        Scan::new(self.known, self.tools, self.most).run(steps, &mut direct)
    }

    fn gather(
        &mut self,
        steps: &[Step<'a>],
        by: &[super::plan::At],
        done: u64,
    ) -> Result<(), Refused> {
        let plan = self.known.plan;
        let groups = &mut *self.groups;
        let mut gather = Gather { plan, by, groups, buffers: self.buffers, done };
        Scan::new(self.known, self.tools, self.most).run(steps, &mut gather)
    }

    fn totals(&mut self) -> Result<(), Refused> {
        let Known { plan, tables, .. } = self.known;
        self.groups.begin();
        let cells = self.groups.total(plan);
        let mut done = 0;
        let mut path = None;
        if tables.len() == 1 {
            if plan.filters[0].is_empty() {
                done = self.known.totals(cells, None, &[]);
            } else if !plan.is_pinned(0) {
                let indexed = |column: &&u16| tables[0].index(**column).is_some();
                for column in plan.restricted[0].iter().filter(indexed) {
                    let part = self.known.part(0, *column, &mut self.tools.spans);
                    if part.exact {
                        done = self.known.totals(cells, Some(&part), &self.tools.spans);
                        path = Some(part);
                        break;
                    }
                }
            }
        }
        let outputs = plan.select.outputs.len();
        if outputs <= 64 && done.count_ones() as usize == outputs {
            return Ok(());
        }
        match path {
            Some(part) => {
                let step = self.known.step(0, Path::Index(part));
                self.gather(&[step], &[], done)
            }
            None => {
                let steps = self.known.steps(self.tools)?;
                self.gather(&steps, &[], done)
            }
        }
    }

    fn put_groups(&mut self) -> Result<(), Refused> {
        let Known { plan, tables, .. } = self.known;
        self.groups.finish(plan, tables)?;
        let groups = &*self.groups;
        if plan.select.order.is_empty() || groups.len() < 2 {
            for group in 0..groups.len() {
                if !self.answer.put(|output| Ok(groups.value(plan, tables, group, output)))? {
                    break;
                }
            }
            return Ok(());
        }
        self.sorter.begin(self.window.end());
        for group in 0..groups.len() {
            self.sorter.push_long(group as u32, |place| {
                for order in &plan.select.order {
                    let column = &plan.results[order.output];
                    let value = groups.value(plan, tables, group, order.output);
                    place.put(order, column.class, false, value);
                }
            })?;
        }
        for group in self.sorter.sorted() {
            let value = |output| Ok(groups.value(plan, tables, group as usize, output));
            if !self.answer.put(value)? {
                break;
            }
        }
        Ok(())
    }

    fn ordered(&mut self) -> Result<(), Refused> {
        if let Some((steps, alone)) = self.walk() {
            let tried = match alone {
                true => self.direct(&steps),
                false => self.sorted(&steps, Some(self.window.end())),
            };
            if tried != Err(Refused::TooMuch) {
                return tried;
            }
            self.answer.again(&self.window);
        }
        let steps = self.known.steps(self.tools)?;
        self.sorted(&steps, None)
    }

    /// Steps along the index of what comes first in the order, if that is better than to look at all
    /// rows; and whether nothing has to be sorted then.
    fn walk(&mut self) -> Option<(Steps<'a>, bool)> {
        let Known { plan, tables, .. } = self.known;
        let [table] = tables else { return None };
        let first = plan.select.order.first()?;
        let at = plain(plan, first.output)?;
        if plan.is_pinned(0) || table.index(at.1).is_none() {
            return None;
        }
        let alone = plan.select.order.len() == 1 || table.definition().identity == [at.1];
        let wanted = self.window.end();
        let (path, fewest) = self.known.path(0, self.tools, true);
        let mut part = self.known.part(0, at.1, &mut self.tools.spans);
        let here = self.known.count(0, &part, &self.tools.spans);
        let same = matches!(path, Path::Index(other) if other.column == at.1);
        // Rows that pass are thought to be everywhere.
        let looked = u128::from(wanted) * u128::from(here) / u128::from(fewest.max(1));
        let better = same && alone || looked < u128::from(fewest);
        if !better {
            return None;
        }
        part.direction = Direction { backwards: first.descending, nulls_first: first.nulls_first };
        Some((Steps::from_iter([self.known.step(0, Path::Index(part))]), alone))
    }

    fn sorted(&mut self, steps: &[Step<'a>], enough: Option<u64>) -> Result<(), Refused> {
        let Known { plan, tables, .. } = self.known;
        self.tuples.clear();
        self.sorter.begin(self.window.end());
        {
            let mut sorting = Sorting::new(plan, self.sorter, self.tuples, enough);
            Scan::new(self.known, self.tools, self.most).run(steps, &mut sorting)?;
        }
        for what in self.sorter.sorted() {
            let ids = self.tuples.get(tables.len(), &what);
            if !self.answer.row(&rows::Rows { tables, ids })? {
                break;
            }
        }
        Ok(())
    }
}
