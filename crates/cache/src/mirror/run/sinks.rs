//! What becomes of rows that pass.

use smallvec::SmallVec;
use sql::Order;

use super::super::class::Class;
use super::super::plan::{At, Plan};
use super::answer::{plain, Answer};
use super::rows::Rows;
use super::scan::Sink;
use super::sort::{short, Sorter};
use super::tuples::Tuples;
use super::Refused;

/// They are rows of the answer.
pub(super) struct Direct<'a, 'o> {
    pub answer: &'a mut Answer<'o>,
}

impl Sink for Direct<'_, '_> {
    fn row(&mut self, rows: &Rows<'_>) -> Result<bool, Refused> {
        self.answer.row(rows)
    }
}

/// They are to be sorted.
pub(super) struct Sorting<'a> {
    by: SmallVec<[By<'a>; 2]>,
    /// Eight bytes tell a row's place.
    is_short: bool,
    sorter: &'a mut Sorter,
    tuples: &'a mut Tuples,
    /// So many are needed, of rows that come in order of what counts first.
    enough: Option<u64>,
    taken: u64,
    first: Vec<u8>,
}

struct By<'a> {
    order: &'a Order,
    at: At,
    class: Class,
    not_null: bool,
}

impl<'a> Sorting<'a> {
    pub fn new(
        plan: &'a Plan,
        sorter: &'a mut Sorter,
        tuples: &'a mut Tuples,
        enough: Option<u64>,
    ) -> Sorting<'a> {
        let by = |order: &'a Order| {
            let at = plain(plan, order.output)?;
            let column = plan.column(at)?;
            Some(By { order, at, class: column.class, not_null: column.not_null })
        };
        let by: SmallVec<[By<'a>; 2]> = plan.select.order.iter().filter_map(by).collect();
        let is_short = match &*by {
            [only] => only.not_null && only.class.is_key_whole(),
            _ => false,
        };
        Sorting { by, is_short, sorter, tuples, enough, taken: 0, first: Vec::new() }
    }
}

impl Sink for Sorting<'_> {
    fn row(&mut self, rows: &Rows<'_>) -> Result<bool, Refused> {
        let Sorting { by, sorter, first, taken, enough, .. } = self;
        let what = self.tuples.put(rows.ids)?;
        if let (true, [by]) = (self.is_short, by.as_slice()) {
            let stored = rows.field(by.at).ok_or(Refused::Unready)?;
            sorter.push_short(short(by.order, by.class, stored), what)?;
            return Ok(true);
        }
        let full = enough.is_some_and(|enough| *taken >= enough);
        *taken += 1;
        let mut more = true;
        sorter.push_long(what, |place| {
            for (at, by) in by.iter().enumerate() {
                place.put(by.order, by.class, by.not_null, rows.field(by.at));
                if at == 0 && enough.is_some() {
                    let here = place.bytes();
                    more = !full || here == first;
                    if more && !full {
                        first.clear();
                        first.extend_from_slice(here);
                    }
                }
            }
        })?;
        Ok(more)
    }
}
