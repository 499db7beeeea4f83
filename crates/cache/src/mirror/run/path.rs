//! Which rows of a table can matter: one, those in some spans of an index, or all.

use std::ops::{Bound, Range};

use super::super::ordered;
use super::super::plan::{Plan, TABLES_MAX};
use super::super::spans::{restrict, Span};
use super::super::table::Table;
use super::constants::Constants;
use super::filter::Buffers;

/// All of a run that rows are looked at with.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub plan: &'a Plan,
    pub tables: &'a [&'a Table],
    pub constants: &'a Constants,
}

/// What is used again from run to run.
#[derive(Debug, Default)]
pub(super) struct Tools {
    pub spans: Vec<Span>,
    pub buffers: Buffers,
    /// Of rows, for the tables that are joined to them.
    pub keys: [Vec<u8>; TABLES_MAX],
}

#[derive(Debug, Clone)]
pub(super) enum Path {
    One(Option<u32>),
    Index(Part),
    /// Those whose identities begin with the first so many bytes of [`Tools::keys`], and are less
    /// than the rest; of which there are none if nothing is less.
    Begin(usize),
    All,
}

/// Some spans of an index.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub column: u16,
    /// In [`Tools::spans`].
    pub spans: Range<usize>,
    pub nulls: bool,
    /// All rows that are there pass.
    pub exact: bool,
    pub direction: Direction,
}

/// In which order an index is walked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Direction {
    pub backwards: bool,
    pub nulls_first: bool,
}

impl<'a> Known<'a> {
    pub fn table(&self, place: u16) -> &'a Table {
        self.tables[usize::from(place)]
    }

    /// What an index can tell.
    pub fn part(&self, place: u16, column: u16, spans: &mut Vec<Span>) -> Part {
        let start = spans.len();
        let filter = &self.plan.filters[usize::from(place)];
        let told = restrict(filter, (place, column), self.constants, spans);
        Part {
            column,
            spans: start..spans.len(),
            nulls: told.nulls,
            exact: told.exact,
            direction: Direction::default(),
        }
    }

    pub fn range(&self, span: &Span) -> ordered::Range<'a> {
        span.range(self.constants)
    }

    pub fn count(&self, place: u16, part: &Part, spans: &[Span]) -> u64 {
        let table = self.table(place);
        let Some(index) = table.index(part.column) else { return 0 };
        let of = |span: &Span| index.count(table.rows(), &self.range(span));
        let nulls = if part.nulls { index.null_count() } else { 0 };
        spans[part.spans.clone()].iter().map(of).sum::<u64>() + nulls
    }

    /// The path with the fewest rows, and how many they are; that is not told if there is one path
    /// only and nobody asks.
    pub fn path(&self, place: u16, tools: &mut Tools, counted: bool) -> (Path, u64) {
        let table = self.table(place);
        let key = &mut tools.keys[usize::from(place)];
        let begun = self.begin(place, key);
        if self.plan.is_pinned(place.into()) {
            let found = if begun == Begun::Never { None } else { table.find(key) };
            return (Path::One(found), found.is_some().into());
        }
        let begun = match begun {
            Begun::Never => return (Path::One(None), 0),
            Begun::Whole => None,
            Begun::Part => {
                let begun = put_end(key);
                let range = range_of(key, begun);
                Some((Path::Begin(begun), table.identity_index().count(table.rows(), &range)))
            }
        };
        let restricted = &self.plan.restricted[usize::from(place)];
        let mut indexed = restricted.iter().filter(|column| table.index(**column).is_some());
        let (first, second) = (indexed.next(), indexed.next());
        let Some(first) = first else { return begun.unwrap_or((Path::All, table.len())) };
        let mut best = self.part(place, *first, &mut tools.spans);
        if second.is_none() && begun.is_none() && !counted {
            return (Path::Index(best), 0);
        }
        let mut fewest = self.count(place, &best, &tools.spans);
        for column in second.into_iter().chain(indexed) {
            let part = self.part(place, *column, &mut tools.spans);
            let count = self.count(place, &part, &tools.spans);
            if count < fewest {
                (best, fewest) = (part, count);
            }
        }
        begun.filter(|(_, count)| *count <= fewest).unwrap_or((Path::Index(best), fewest))
    }

    /// The key of what is told of the identity, from its first column on.
    fn begin(&self, place: u16, key: &mut Vec<u8>) -> Begun {
        key.clear();
        for leaf in &self.plan.pinned[usize::from(place)] {
            // NULL has no key.
            let Some(value) = self.constants.keys(*leaf).first() else { return Begun::Never };
            key.extend_from_slice(self.constants.bytes(value));
        }
        if key.is_empty() {
            Begun::Whole
        } else {
            Begun::Part
        }
    }
}

/// How much of an identity is told.
#[derive(PartialEq, Eq)]
enum Begun {
    /// It has no value.
    Never,
    /// Nothing: it can be any of the whole table.
    Whole,
    Part,
}

/// Puts behind a key the least one that does not begin with it, if there is one. Where that begins
/// is given.
fn put_end(key: &mut Vec<u8>) -> usize {
    let begun = key.len();
    if let Some(last) = key.iter().rposition(|byte| *byte != 0xff) {
        key.extend_from_within(..=last);
        key[begun + last] += 1;
    }
    begun
}

/// The range of [`Path::Begin`].
pub(super) fn range_of(key: &[u8], begun: usize) -> ordered::Range<'_> {
    let (low, high) = key.split_at(begun);
    let high = if high.is_empty() { Bound::Unbounded } else { Bound::Excluded(high) };
    ordered::Range { low: Bound::Included(low), high }
}
