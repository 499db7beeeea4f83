//! The answer as it goes out.

use wire::pg::backend::put_command_complete;

use super::super::output::{can_put, put_field, Format};
use super::super::plan::{At, Plan};
use super::rows::Rows;
use super::{Refused, Terms, Window};
use sql::Output;

const DATA_ROW: u8 = b'D';

/// Takes rows in the order of the answer, and writes those within OFFSET and LIMIT.
pub(super) struct Answer<'a> {
    plan: &'a Plan,
    formats: &'a [Format],
    out: &'a mut Vec<u8>,
    start: usize,
    bytes: usize,
    skip: u64,
    left: u64,
    rows: u64,
}

impl<'a> Answer<'a> {
    pub fn new(
        plan: &'a Plan,
        terms: Terms<'a>,
        window: &Window,
        out: &'a mut Vec<u8>,
    ) -> Result<Answer<'a>, Refused> {
        let Terms { formats, session, limits } = terms;
        let shown = plan.select.shown;
        let mut columns = plan.results.iter().take(shown).enumerate();
        let can = columns.all(|(at, column)| can_put(column, format(formats, at), session));
        if !can || formats.len() > 1 && formats.len() != shown {
            return Err(Refused::Value);
        }
        let start = out.len();
        let Window { offset: skip, limit: left } = *window;
        let bytes = limits.bytes;
        Ok(Answer { plan, formats, out, start, bytes, skip, left, rows: 0 })
    }

    /// Whether another row would be taken.
    pub fn is_open(&self) -> bool {
        self.left > 0
    }

    /// One row of the tables is one of the answer. False: that was the last one.
    pub fn row(&mut self, rows: &Rows<'_>) -> Result<bool, Refused> {
        let outputs = &self.plan.select.outputs;
        self.put(|at| match outputs.get(at) {
            Some(Output::Column(column)) => Ok(rows.field(*column)),
            _ => Err(Refused::Unready),
        })
    }

    /// The same of any row; `field` tells an output's value.
    pub fn put<'v>(
        &mut self,
        mut field: impl FnMut(usize) -> Result<Option<&'v [u8]>, Refused>,
    ) -> Result<bool, Refused> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(true);
        }
        if self.left == 0 {
            return Ok(false);
        }
        let shown = self.plan.select.shown;
        let start = self.begin(shown);
        for (at, column) in self.plan.results.iter().take(shown).enumerate() {
            put_field(column, format(self.formats, at), field(at)?, self.out);
        }
        self.end(start)
    }

    fn begin(&mut self, shown: usize) -> usize {
        self.out.extend_from_slice(&[DATA_ROW, 0, 0, 0, 0]);
        // PostgreSQL has no more than 1664 columns.
        self.out.extend_from_slice(&(shown as u16).to_be_bytes());
        self.out.len() - 6
    }

    fn end(&mut self, start: usize) -> Result<bool, Refused> {
        if self.out.len() - self.start > self.bytes {
            return Err(Refused::TooMuch);
        }
        let length = u32::try_from(self.out.len() - start).map_err(|_| Refused::TooMuch)?;
        self.out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        self.rows += 1;
        self.left -= 1;
        Ok(self.left > 0)
    }

    /// Forgets all rows.
    pub fn again(&mut self, window: &Window) {
        self.out.truncate(self.start);
        self.rows = 0;
        self.skip = window.offset;
        self.left = window.limit;
    }

    /// There are no more rows. How many there were is given.
    pub fn close(self) -> u64 {
        const SELECT: &[u8] = b"SELECT ";
        let mut number = itoa::Buffer::new();
        let digits = number.format(self.rows).as_bytes();
        let mut tag = [0; SELECT.len() + 20];
        let end = SELECT.len() + digits.len();
        tag[..SELECT.len()].copy_from_slice(SELECT);
        tag[SELECT.len()..end].copy_from_slice(digits);
        put_command_complete(self.out, std::str::from_utf8(&tag[..end]).unwrap_or_default());
        self.rows
    }
}

fn format(formats: &[Format], at: usize) -> Format {
    match formats {
        [] => Format::Text,
        [all] => *all,
        each => each.get(at).copied().unwrap_or(Format::Text),
    }
}

/// Where an output is a column.
pub(super) fn plain(plan: &Plan, output: usize) -> Option<At> {
    match plan.select.outputs.get(output) {
        Some(Output::Column(at)) => Some(*at),
        _ => None,
    }
}
