//! Rows of the collections' tables in a batch: put or deleted, and lists trimmed.

use hashbrown::HashMap;

use super::index::Index;
use super::{keep, Span};

/// The tables, as indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Hash,
    Set,
    Zset,
    List,
    Stream,
    Group,
}

pub(super) const TABLES: usize = 6;

/// A row. Names that are numbers, and scores, are their bytes, the greatest first.
#[derive(Debug)]
pub(super) struct Element {
    pub kid: i64,
    pub name: Span,
    /// `None`: it is deleted.
    pub value: Option<Span>,
}

#[derive(Debug, Default)]
pub(super) struct Elements {
    pub rows: Vec<Element>,
    /// Where rows are; only while folding.
    index: Option<Index>,
}

impl Elements {
    pub fn fold(&mut self) {
        self.index = Some(Index::default());
    }

    pub fn clear(&mut self) {
        self.rows.clear();
        if let Some(index) = &mut self.index {
            index.clear();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn write(&mut self, bytes: &mut Vec<u8>, kid: i64, name: &[u8], value: Option<&[u8]>) {
        let value = value.map(|value| keep(bytes, value));
        if let Some(index) = &mut self.index {
            let rows = &self.rows;
            let is_same = |at: usize| rows[at].kid == kid && rows[at].name.of(bytes) == name;
            if let Some(at) = index.find_or_add(kid, name, rows.len(), is_same) {
                self.rows[at].value = value;
                return;
            }
        }
        let name = keep(bytes, name);
        self.rows.push(Element { kid, name, value });
    }
}

/// How far lists reach: rows of the tables outside are removed before any are put.
#[derive(Debug, Default)]
pub(super) struct Trims {
    /// Collection, first and last position.
    pub all: Vec<(i64, i64, i64)>,
    /// Only while folding.
    folding: Option<HashMap<i64, Pending, foldhash::fast::RandomState>>,
}

/// A list while batches are folded.
#[derive(Debug)]
struct Pending {
    /// Index into `Trims::all`.
    trim: Option<usize>,
    /// Between which positions rows have been put.
    put: (i64, i64),
}

impl Pending {
    const NEW: Pending = Pending { trim: None, put: (i64::MAX, i64::MIN) };
}

impl Trims {
    pub fn fold(&mut self) {
        self.folding = Some(HashMap::default());
    }

    pub fn clear(&mut self) {
        self.all.clear();
        if let Some(folding) = &mut self.folding {
            folding.clear();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A row is put.
    pub fn has(&mut self, kid: i64, pos: i64) {
        if let Some(folding) = &mut self.folding {
            let pending = folding.entry(kid).or_insert(Pending::NEW);
            pending.put = (pending.put.0.min(pos), pending.put.1.max(pos));
        }
    }

    /// Rows outside are removed, of those of the tables and of those that were to be put.
    pub fn trim(&mut self, kid: i64, first: i64, last: i64, list: &mut Elements, bytes: &[u8]) {
        let Some(folding) = &mut self.folding else {
            self.all.push((kid, first, last));
            return;
        };
        let pending = folding.entry(kid).or_insert(Pending::NEW);
        match pending.trim {
            // What an earlier trim has removed stays removed.
            Some(at) => {
                let (_, low, high) = &mut self.all[at];
                (*low, *high) = ((*low).max(first), (*high).min(last));
            }
            None => {
                pending.trim = Some(self.all.len());
                self.all.push((kid, first, last));
            }
        }
        let put = pending.put;
        pending.put = (put.0.max(first), put.1.min(last));
        if put.0 < first {
            list.drop_positions(kid, put.0, first.saturating_sub(1).min(put.1), bytes);
        }
        if put.1 > last {
            list.drop_positions(kid, last.saturating_add(1).max(put.0), put.1, bytes);
        }
    }
}

impl Elements {
    /// A list's rows that were to be put at these positions are deleted instead.
    fn drop_positions(&mut self, kid: i64, from: i64, to: i64, bytes: &[u8]) {
        let span = to.saturating_sub(from);
        if usize::try_from(span).is_ok_and(|span| span < self.rows.len()) {
            let Some(index) = &self.index else { return };
            for pos in from..=to {
                let name = pos.to_be_bytes();
                let rows = &self.rows;
                let is_same = |at: usize| rows[at].kid == kid && rows[at].name.of(bytes) == name;
                if let Some(at) = index.find(kid, &name, is_same) {
                    self.rows[at].value = None;
                }
            }
            return;
        }
        for row in self.rows.iter_mut().filter(|row| row.kid == kid) {
            if (from..=to).contains(&position(row.name.of(bytes))) {
                row.value = None;
            }
        }
    }
}

/// Of the bytes of a number; what is no number's is 0.
pub(super) fn position(name: &[u8]) -> i64 {
    name.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

pub(super) fn score(value: &[u8]) -> f64 {
    value.first_chunk().map_or(0.0, |bytes| f64::from_be_bytes(*bytes))
}

pub(super) fn id(ms: u64, seq: u64) -> [u8; 16] {
    (u128::from(ms) << 64 | u128::from(seq)).to_be_bytes()
}
