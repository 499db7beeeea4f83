//! Rows in the order that a statement asks for.
//!
//! A row's place is told by bytes: what it is ordered by, one key behind the other, with those that
//! go down turned round. Of a column that eight bytes tell nothing else is kept.

use std::cmp::Ordering;

use sql::Order;

use super::super::class::Class;
use super::super::key::{prefix, put_key};
use super::constants;
use super::Refused;

/// Most bytes of what rows are ordered by.
const BYTES_MAX: usize = 32 << 20;

#[derive(Debug, Default)]
pub(super) struct Sorter {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    spare: Vec<u8>,
    /// So many rows are needed, from the first on.
    keep: usize,
    /// Whether the last of `keep` entries is one that no other one needs to be behind.
    full: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    prefix: u64,
    start: u32,
    length: u32,
    what: u32,
}

/// What rows are ordered by, in bytes.
#[derive(Debug)]
pub(super) struct Place<'a> {
    bytes: &'a mut Vec<u8>,
    start: usize,
}

impl Place<'_> {
    /// What is there so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub fn put(&mut self, order: &Order, class: Class, not_null: bool, stored: Option<&[u8]>) {
        if !not_null {
            let null = if order.nulls_first { 0 } else { 2 };
            self.bytes.push(if stored.is_some() { 1 } else { null });
        }
        let key = self.bytes.len();
        if let Some(stored) = stored {
            put_key(class, stored, self.bytes);
        }
        if order.descending {
            self.bytes[key..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

/// The place of a value that eight bytes tell.
pub(super) fn short(order: &Order, class: Class, stored: &[u8]) -> u64 {
    let prefix = prefix(class, stored);
    if order.descending {
        !prefix
    } else {
        prefix
    }
}

impl Sorter {
    /// `keep`: so many of the first rows are needed.
    pub fn begin(&mut self, keep: u64) {
        self.entries.clear();
        self.bytes.clear();
        self.keep = usize::try_from(keep).unwrap_or(usize::MAX);
        self.full = false;
    }

    /// Takes what is told by a number alone.
    pub fn push_short(&mut self, prefix: u64, what: u32) -> Result<(), Refused> {
        self.push(Entry { prefix, start: 0, length: 0, what })
    }

    /// Takes what is told by bytes, which `put` writes.
    pub fn push_long(
        &mut self,
        what: u32,
        put: impl FnOnce(&mut Place<'_>),
    ) -> Result<(), Refused> {
        let start = self.bytes.len();
        put(&mut Place { bytes: &mut self.bytes, start });
        if self.bytes.len() > BYTES_MAX {
            return Err(Refused::TooMuch);
        }
        let prefix = constants::prefix(&self.bytes[start..]);
        let length = (self.bytes.len() - start) as u32;
        self.push(Entry { prefix, start: start as u32, length, what })
    }

    fn push(&mut self, entry: Entry) -> Result<(), Refused> {
        if self.full && compare(&self.bytes, &entry, &self.entries[self.keep - 1]).is_ge() {
            self.bytes.truncate(self.bytes.len() - entry.length as usize);
            return Ok(());
        }
        self.entries.push(entry);
        if self.entries.len() >= self.keep.saturating_mul(2).max(64) {
            self.cut();
        }
        Ok(())
    }

    /// Leaves those that are needed; behind them is the last.
    fn cut(&mut self) {
        let Sorter { entries, bytes, spare, keep, full } = self;
        if *keep == 0 || entries.len() <= *keep {
            entries.truncate(*keep);
            return;
        }
        entries.select_nth_unstable_by(*keep - 1, |a, b| compare(bytes, a, b));
        entries.truncate(*keep);
        *full = true;
        if bytes.is_empty() {
            return;
        }
        spare.clear();
        for entry in entries {
            let start = spare.len() as u32;
            spare.extend_from_slice(of(bytes, entry));
            entry.start = start;
        }
        std::mem::swap(bytes, spare);
    }

    /// What was taken, in order.
    pub fn sorted(&mut self) -> impl Iterator<Item = u32> + '_ {
        let Sorter { entries, bytes, keep, .. } = self;
        entries.sort_unstable_by(|a, b| compare(bytes, a, b));
        entries.iter().take(*keep).map(|entry| entry.what)
    }

    pub fn trim(&mut self, most: usize) {
        super::trim(&mut self.entries, most);
        super::trim(&mut self.bytes, most);
        super::trim(&mut self.spare, most);
    }
}

fn of<'b>(bytes: &'b [u8], entry: &Entry) -> &'b [u8] {
    &bytes[entry.start as usize..][..entry.length as usize]
}

fn compare(bytes: &[u8], a: &Entry, b: &Entry) -> Ordering {
    a.prefix.cmp(&b.prefix).then_with(|| of(bytes, a).cmp(of(bytes, b)))
}
