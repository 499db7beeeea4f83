//! Rows that are put together: GROUP BY, DISTINCT, and aggregates of all rows.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use sql::Output;

use super::super::class::Class;
use super::super::decimal::Sum;
use super::super::key::put_key;
use super::super::plan::{At, Plan};
use super::super::table::Table;
use super::filter::Buffers;
use super::rows::{class, Rows};
use super::scan::Sink;
use super::tuples::Tuples;
use super::Refused;

/// Most groups.
const GROUPS_MAX: usize = 1 << 18;

/// Most bytes of all that groups are told apart by, and of what is computed.
const BYTES_MAX: usize = 32 << 20;

/// What is computed of a group's rows.
#[derive(Debug)]
pub(super) enum Cell {
    /// Nothing: it is one of the columns that are grouped by.
    Column,
    Count(u64),
    Sum(Sum),
    Average(Sum),
    /// The row with the least, or the greatest, value.
    Best(Option<u32>),
}

#[derive(Debug, Clone, Copy)]
struct Group {
    hash: u64,
    start: u32,
    length: u32,
    /// Its first row.
    first: u32,
}

#[derive(Debug, Default)]
pub(super) struct Groups {
    by_key: HashTable<u32>,
    hasher: RandomState,
    bytes: Vec<u8>,
    list: Vec<Group>,
    /// For each group one of each output.
    cells: Vec<Cell>,
    tuples: Tuples,
    /// What cells came to, for each group one of each output.
    values: Vec<Option<(u32, u32)>>,
    computed: Vec<u8>,
}

impl Groups {
    pub fn begin(&mut self) {
        self.by_key.clear();
        self.bytes.clear();
        self.list.clear();
        self.cells.clear();
        self.tuples.clear();
        self.values.clear();
        self.computed.clear();
    }

    /// The group of all rows.
    pub fn total(&mut self, plan: &Plan) -> &mut [Cell] {
        if self.list.is_empty() {
            self.list.push(Group { hash: 0, start: 0, length: 0, first: 0 });
            self.cells.extend(plan.select.outputs.iter().map(Cell::new));
        }
        &mut self.cells
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The group that a row belongs to.
    fn find(&mut self, by: &[At], rows: &Rows<'_>, plan: &Plan) -> Result<usize, Refused> {
        let start = self.bytes.len();
        for at in by {
            let stored = rows.field(*at);
            self.bytes.push(stored.is_some().into());
            if let Some(stored) = stored {
                put_key(rows.class(*at), stored, &mut self.bytes);
            }
        }
        if self.bytes.len() > BYTES_MAX {
            return Err(Refused::TooMuch);
        }
        let Groups { by_key, hasher, bytes, list, .. } = self;
        let key = &bytes[start..];
        let hash = hasher.hash_one(key);
        let same = |at: &u32| {
            let group = &list[*at as usize];
            group.hash == hash && &bytes[group.start as usize..][..group.length as usize] == key
        };
        if let Some(at) = by_key.find(hash, same) {
            let at = *at as usize;
            bytes.truncate(start);
            return Ok(at);
        }
        let at = list.len();
        if at == GROUPS_MAX {
            return Err(Refused::TooMuch);
        }
        by_key.insert_unique(hash, at as u32, |at| list[*at as usize].hash);
        let first = self.tuples.put(rows.ids)?;
        let length = (self.bytes.len() - start) as u32;
        self.list.push(Group { hash, start: start as u32, length, first });
        self.cells.extend(plan.select.outputs.iter().map(Cell::new));
        Ok(at)
    }

    /// Computes all that is computed.
    pub fn finish(&mut self, plan: &Plan, tables: &[&Table]) -> Result<(), Refused> {
        let width = plan.select.outputs.len();
        for (at, cell) in self.cells.iter().enumerate() {
            let output = &plan.select.outputs[at % width];
            let start = self.computed.len();
            let told = cell.put(output, tables, &mut self.computed)?;
            if self.computed.len() > BYTES_MAX {
                return Err(Refused::TooMuch);
            }
            let range = (start as u32, self.computed.len() as u32);
            self.values.push(told.then_some(range));
        }
        Ok(())
    }

    /// An output's value, when all are computed.
    pub fn value<'v>(
        &'v self,
        plan: &Plan,
        tables: &'v [&'v Table],
        group: usize,
        output: usize,
    ) -> Option<&'v [u8]> {
        let outputs = &plan.select.outputs;
        if let Output::Column(at) = outputs[output] {
            let ids = self.tuples.get(tables.len(), &self.list[group].first);
            return Rows { tables, ids }.field(at);
        }
        let (start, end) = self.values[group * outputs.len() + output]?;
        Some(&self.computed[start as usize..end as usize])
    }

    pub fn trim(&mut self, most: usize) {
        if self.by_key.capacity() > most {
            self.by_key = HashTable::new();
        }
        super::trim(&mut self.bytes, most);
        super::trim(&mut self.list, most);
        super::trim(&mut self.cells, most);
        super::trim(&mut self.values, most);
        super::trim(&mut self.computed, most);
        self.tuples.trim(most);
    }
}

impl Cell {
    fn new(output: &Output<At>) -> Cell {
        match output {
            Output::Column(_) => Cell::Column,
            Output::CountRows | Output::Count(_) => Cell::Count(0),
            Output::Sum(_) => Cell::Sum(Sum::default()),
            Output::Avg(_) => Cell::Average(Sum::default()),
            Output::Min(_) | Output::Max(_) => Cell::Best(None),
        }
    }

    fn take(&mut self, output: &Output<At>, rows: &Rows<'_>, buffers: &mut Buffers) {
        match (self, output) {
            (Cell::Count(count), Output::CountRows) => *count += 1,
            (Cell::Count(count), Output::Count(at)) => {
                *count += u64::from(rows.field(*at).is_some());
            }
            (Cell::Sum(sum) | Cell::Average(sum), Output::Sum(at) | Output::Avg(at)) => {
                if let Some(stored) = rows.field(*at) {
                    sum.add(rows.class(*at), stored);
                }
            }
            (Cell::Best(best), Output::Min(at) | Output::Max(at)) => {
                let Some(stored) = rows.field(*at) else { return };
                let table = usize::from(at.0);
                let before = best.and_then(|row| rows.tables[table].field(row, at.1));
                let better = before.is_none_or(|before| {
                    let class = rows.class(*at);
                    let order = buffers.compare((class, stored), (class, before));
                    match output {
                        Output::Min(_) => order.is_lt(),
                        _ => order.is_gt(),
                    }
                });
                if better {
                    *best = Some(rows.ids[table]);
                }
            }
            _ => {}
        }
    }

    /// Appends the stored form of what it has come to. False: NULL.
    fn put(
        &self,
        output: &Output<At>,
        tables: &[&Table],
        out: &mut Vec<u8>,
    ) -> Result<bool, Refused> {
        let told = |known: bool| if known { Ok(true) } else { Err(Refused::Value) };
        match (self, output) {
            (Cell::Count(count), _) => {
                out.extend_from_slice(&count.to_be_bytes());
                Ok(true)
            }
            (Cell::Sum(sum) | Cell::Average(sum), _) if sum.count() == 0 => Ok(false),
            (Cell::Sum(sum), Output::Sum(at)) => told(sum.put_sum(class(tables, *at), out)),
            (Cell::Average(sum), Output::Avg(at)) => told(sum.put_avg(class(tables, *at), out)),
            (Cell::Best(Some(row)), Output::Min(at) | Output::Max(at)) => {
                let Some(stored) = tables[usize::from(at.0)].field(*row, at.1) else {
                    return Ok(false);
                };
                // Which of two zeros PostgreSQL finds, their order tells.
                let is_float = matches!(class(tables, *at), Class::Float4 | Class::Float8);
                if let (true, [first, rest @ ..]) = (is_float, stored) {
                    if first & 0x7f == 0 && rest.iter().all(|byte| *byte == 0) {
                        return Err(Refused::Value);
                    }
                }
                out.extend_from_slice(stored);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// Puts rows into their groups.
pub(super) struct Gather<'a> {
    pub plan: &'a Plan,
    /// By what; nothing: all rows are one group's.
    pub by: &'a [At],
    pub groups: &'a mut Groups,
    pub buffers: &'a mut Buffers,
    /// Outputs, as bits, that are computed already.
    pub done: u64,
}

impl Sink for Gather<'_> {
    fn row(&mut self, rows: &Rows<'_>) -> Result<bool, Refused> {
        let outputs = &self.plan.select.outputs;
        let group = match self.by {
            [] => 0,
            by => self.groups.find(by, rows, self.plan)?,
        };
        let cells = &mut self.groups.cells[group * outputs.len()..];
        for (at, (cell, output)) in cells.iter_mut().zip(outputs).enumerate() {
            if at >= 64 || self.done & 1 << at == 0 {
                cell.take(output, rows, self.buffers);
            }
        }
        Ok(true)
    }
}
