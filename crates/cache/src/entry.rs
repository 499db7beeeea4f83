//! One result, as it goes to clients.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use wire::pg::frame::header;

use crate::kept::Kept;
use crate::store::{BLOCK_BYTES, PLACE_BYTES};
use crate::tags::{Tag, Tags};

/// The LSN of an entry of which it is not known yet what it may have seen.
const UNKNOWN: u64 = u64::MAX;

/// A result with what it depends on. Key, description and rows are one block.
#[derive(Debug)]
pub struct Entry {
    data: Box<[u8]>,
    key: u32,
    /// Where the rows begin; the description is between key and rows.
    rows: u32,
    /// Every commit up to this number is in it, as far as its tags are concerned.
    version: u64,
    /// It must not be served before everything up to here is applied.
    lsn: AtomicU64,
    tags: Box<[Tag]>,
    /// Where it is counted.
    kept: Option<Arc<Kept>>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(kept) = &self.kept {
            kept.remove(self.weight());
        }
    }
}

fn messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let head = header(bytes).ok()??;
        let (message, rest) = bytes.split_at_checked(head.total)?;
        bytes = rest;
        Some(message)
    })
}

/// What an entry is made of.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    pub key: &'a [u8],
    pub version: u64,
    pub tags: &'a [Tag],
    /// A whole RowDescription, if the client asked for one.
    pub description: Option<&'a [u8]>,
    /// DataRow messages and their CommandComplete.
    pub rows: &'a [u8],
}

impl Entry {
    pub fn new(parts: &Parts<'_>) -> Entry {
        let description = parts.description.unwrap_or_default();
        let mut data = Vec::with_capacity(parts.key.len() + description.len() + parts.rows.len());
        data.extend_from_slice(parts.key);
        data.extend_from_slice(description);
        let rows = data.len() as u32;
        data.extend_from_slice(parts.rows);
        Entry {
            data: data.into(),
            key: parts.key.len() as u32,
            rows,
            version: parts.version,
            lsn: AtomicU64::new(UNKNOWN),
            tags: parts.tags.into(),
            kept: None,
        }
    }

    /// Counts it as long as somebody has it. Once.
    pub fn count_in(&mut self, kept: Arc<Kept>) {
        if self.kept.is_none() {
            kept.add(self.weight());
            self.kept = Some(kept);
        }
    }

    pub fn key(&self) -> &[u8] {
        &self.data[..self.key as usize]
    }

    /// The RowDescription; none if nobody has asked for it yet.
    pub fn description(&self) -> Option<&[u8]> {
        Some(&self.data[self.key as usize..self.rows as usize]).filter(|bytes| !bytes.is_empty())
    }

    pub fn rows(&self) -> &[u8] {
        &self.data[self.rows as usize..]
    }

    /// Whether it has the rows of another, in whatever order, and the same end.
    pub fn has_rows_of(&self, other: &Entry) -> bool {
        if self.rows() == other.rows() {
            return true;
        }
        let sorted = |entry: &Entry| {
            let mut messages: Vec<Box<[u8]>> = messages(entry.rows()).map(Box::from).collect();
            messages.sort_unstable();
            messages
        };
        sorted(self) == sorted(other)
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// Nothing that it depends on has changed, as far as is applied.
    pub fn is_valid(&self, tags: &Tags) -> bool {
        tags.hold(&self.tags, self.version)
    }

    /// How far has to be applied before it may be served; none: that is not known yet.
    pub fn lsn(&self) -> Option<u64> {
        Some(self.lsn.load(Ordering::Acquire)).filter(|lsn| *lsn != UNKNOWN)
    }

    /// A pulse that was sent after its answer has told this.
    pub fn covered_by(&self, lsn: u64) {
        self.lsn.store(lsn, Ordering::Release);
    }

    /// Bytes it takes, with everything.
    pub fn weight(&self) -> u64 {
        let blocks = 2 + u64::from(!self.tags.is_empty());
        let tags = size_of_val(&*self.tags) as u64;
        // With the counts of the Arc.
        let own = size_of::<Entry>() as u64 + 16;
        PLACE_BYTES + own + self.data.len() as u64 + tags + blocks * BLOCK_BYTES
    }
}
