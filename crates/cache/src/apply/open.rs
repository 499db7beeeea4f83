//! What transactions have touched that have not ended yet.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use crate::tags::{Tag, Tags};

/// Most distinct tags of a (sub)transaction that are remembered singly.
pub const TAGS_OF_ONE_MAX: usize = 64 * 1024;

/// The same for all transactions that are told at a time.
pub const TAGS_OF_ALL_MAX: usize = 1 << 20;

/// Most subtransactions of one that are remembered apart: what others do counts even when they
/// are undone.
pub const SUBTRANSACTIONS_MAX: usize = 4096;

/// Room for tags that an empty collection may keep for the next transaction.
const KEPT_MAX: usize = 4096;

/// Ordinary transactions come one after the other, each as a whole; streamed ones in parts.
#[derive(Debug, Default)]
pub(super) struct Open {
    current: Current,
    ordinary: Touched,
    streamed: HashMap<u32, Parts, RandomState>,
    /// Tags of all streamed ones.
    total: usize,
}

/// By the number of the subtransaction; the changes of a transaction itself by its own.
type Parts = HashMap<u32, Touched, RandomState>;

/// Whose the changes are that come now.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Current {
    #[default]
    Nobody,
    Ordinary(u32),
    Streamed(u32),
}

/// What a (sub)transaction has touched.
#[derive(Debug, Default)]
pub(super) struct Touched {
    tags: HashSet<Tag, RandomState>,
    /// Every table with a tag here.
    tables: HashSet<u32, RandomState>,
    /// There were too many tags: only the tables are known.
    coarse: bool,
}

/// A change that belongs to no transaction: what comes is not to be trusted.
#[derive(Debug)]
pub(super) struct Stray;

impl Open {
    pub(super) fn begin(&mut self, xid: u32) {
        self.ordinary.clear();
        self.current = Current::Ordinary(xid);
    }

    pub(super) fn streaming(&mut self, xid: u32) {
        self.streamed.entry(xid).or_default();
        self.current = Current::Streamed(xid);
    }

    /// Adds to what is being told. `xid` is that of the subtransaction.
    pub(super) fn touch(&mut self, xid: u32, add: impl FnOnce(&mut Touched)) -> Result<(), Stray> {
        let top = match self.current {
            Current::Nobody => return Err(Stray),
            Current::Ordinary(_) => {
                add(&mut self.ordinary);
                self.ordinary.limit(TAGS_OF_ONE_MAX);
                return Ok(());
            }
            Current::Streamed(top) => top,
        };
        let parts = self.streamed.entry(top).or_default();
        let apart = parts.len() < SUBTRANSACTIONS_MAX || parts.contains_key(&xid);
        let part = parts.entry(if apart { xid } else { top }).or_default();
        self.total -= part.tags.len();
        add(part);
        part.limit(TAGS_OF_ONE_MAX);
        // If all have too many, the one that grows gives way.
        part.limit(TAGS_OF_ALL_MAX.saturating_sub(self.total));
        self.total += part.tags.len();
        Ok(())
    }

    /// Adds to what is being told, if something is, whoever's it is.
    pub(super) fn touch_current(&mut self, add: impl FnOnce(&mut Touched)) {
        let xid = match self.current {
            Current::Streamed(top) => top,
            Current::Nobody | Current::Ordinary(_) => 0,
        };
        // Between transactions there is nothing to add to.
        let _nobodys = self.touch(xid, add);
    }

    /// The transactions that have touched this table so far and are not told to their ends. An
    /// ordinary one, too, may be told up to its middle.
    pub(super) fn touched(&self, table: u32) -> Vec<u32> {
        let touches = |part: &Touched| part.tables.contains(&table);
        let streamed = self.streamed.iter().filter(|(_, parts)| parts.values().any(touches));
        let ordinary = match self.current {
            Current::Ordinary(xid) if touches(&self.ordinary) => Some(xid),
            _ => None,
        };
        streamed.map(|(xid, _)| *xid).chain(ordinary).collect()
    }

    /// Adds to everything that has touched one of these tables.
    pub(super) fn touch_with(&mut self, tables: &[u32], add: impl Fn(&mut Touched)) {
        let parts = self.streamed.values_mut().flat_map(|parts| parts.values_mut());
        for touched in parts.chain([&mut self.ordinary]) {
            if tables.iter().any(|table| touched.tables.contains(table)) {
                add(touched);
            }
        }
        let parts = self.streamed.values().flat_map(|parts| parts.values());
        self.total = parts.map(|part| part.tags.len()).sum();
    }

    /// A transaction ends well; its tags are raised.
    pub(super) fn commit(&mut self, xid: u32, tags: &Tags, number: u64) {
        self.current = Current::Nobody;
        if let Some(parts) = self.streamed.remove(&xid) {
            for part in parts.values() {
                part.bump(tags, number);
                self.total -= part.tags.len();
            }
        } else {
            self.ordinary.bump(tags, number);
            self.ordinary.clear();
        }
    }

    /// A streamed one is undone, or one of its parts.
    pub(super) fn abort(&mut self, xid: u32, sub: u32) {
        let gone = if xid == sub {
            self.current = Current::Nobody;
            self.streamed.remove(&xid).unwrap_or_default()
        } else {
            let parts = self.streamed.get_mut(&xid);
            parts.and_then(|parts| parts.remove_entry(&sub)).into_iter().collect()
        };
        self.total -= gone.values().map(|part| part.tags.len()).sum::<usize>();
    }
}

impl Touched {
    pub(super) fn insert(&mut self, tag: Tag) {
        if !self.coarse {
            self.tags.insert(tag);
        }
    }

    /// Must be said of each table whose tags are inserted.
    pub(super) fn table(&mut self, table: u32) {
        self.tables.insert(table);
    }

    /// Whether tags need not be inserted any more.
    pub(super) fn is_coarse(&self) -> bool {
        self.coarse
    }

    fn limit(&mut self, most: usize) {
        if self.tags.len() > most {
            self.tags = HashSet::default();
            self.coarse = true;
        }
    }

    fn bump(&self, tags: &Tags, number: u64) {
        for tag in &self.tags {
            tags.bump(*tag, number);
        }
        if self.coarse {
            for table in &self.tables {
                tags.bump(tags.epoch(*table), number);
            }
        }
    }

    fn clear(&mut self) {
        self.tables.clear();
        self.coarse = false;
        if self.tags.capacity() > KEPT_MAX {
            self.tags = HashSet::default();
        } else {
            self.tags.clear();
        }
    }
}
