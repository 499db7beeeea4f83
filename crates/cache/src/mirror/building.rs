//! An index that comes to a table which answers and changes meanwhile.
//!
//! While it is built the table notes what a row was before its first change. Rows and notes
//! together are the table as it was when the notes began, so that keys can be taken and rows be
//! compared in slices, each under a reader's lock:
//!
//! ```text
//! collect rows without notes -> new notes -> collect those that had notes -> sort, make the tree
//! -> totals -> (new notes -> take out what the rows were, put in what they are)* -> the last notes
//! ```
//!
//! Only the table's notes are changed under the writer's lock, and the last few rows put in.
//! [`Building::next`] tells what to do.

mod notes;

use std::ops::Bound;
use std::sync::Arc;

use super::class::Class;
use super::definition::Definition;
use super::ordered::{entry, has_sums, number, Numbers, Of, Ordered, Range};
use super::rows::{Fields, Rows};
use super::table::Table;
use super::tree::{Entry, Tree};
pub(super) use notes::{Frozen, Notes};

/// So many rows are put in under the writer's lock.
const LAST_ROWS: usize = 256;

/// A table that changes faster than an index follows makes everybody wait at the end.
const ROUNDS_MAX: u32 = 8;

/// Rows of a node whose totals are found at once.
const NODE_ROWS: usize = 2048;

/// Keys begin at such offsets.
const KEY_UNIT: usize = 8;

/// What is to be called next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// [`Building::read`], under a reader's lock.
    Reading,
    /// [`Building::work`], without a lock. It takes a while.
    Working,
    /// [`Table::build_index`], under the writer's lock.
    Changing,
    /// The table has the index.
    Done,
    /// It can't be; perhaps anew.
    Gone,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Building {
    token: Arc<()>,
    column: (u16, Class),
    sums: Vec<(u16, Class)>,
    stage: Stage,
    /// The identity of the last row that was collected.
    last: Vec<u8>,
    entries: Vec<Keyed>,
    /// Keys whose first bytes are not all: length, bytes.
    keys: Vec<u8>,
    nulls: Vec<u32>,
    tree: Tree,
    null_tree: Tree,
    older: Notes,
    changed: Vec<u32>,
    rounds: u32,
    replaced: Option<Ordered>,
    key: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Collect,
    Collected,
    /// What was collected of rows with notes does not count.
    Sift,
    /// Those rows, from a place in `changed` on.
    Recollect(usize),
    Sort,
    /// Totals of the tree's nodes from this one on.
    Fill(u32),
    /// The tree is that of the table before the notes.
    Ready,
    List,
    Remove(usize),
    Insert(usize),
    Done,
    Gone,
}

#[derive(Debug, Clone, Copy)]
struct Keyed {
    prefix: u64,
    id: u32,
    /// In units.
    key: u32,
}

impl Building {
    pub(super) fn new(definition: &Definition, column: u16, sums: &[u16]) -> Option<Building> {
        let class = |at: &u16| Some((*at, definition.columns.get(usize::from(*at))?.class));
        let sums: Vec<_> =
            sums.iter().filter_map(class).filter(|(_, class)| has_sums(*class)).collect();
        let token = Arc::new(());
        Some(Building {
            column: class(&column)?,
            stage: Stage::Collect,
            last: Vec::new(),
            entries: Vec::new(),
            keys: Vec::new(),
            nulls: Vec::new(),
            tree: Tree::new(sums.len()),
            null_tree: Tree::new(0),
            older: Notes::new(&token),
            changed: Vec::new(),
            rounds: 0,
            replaced: None,
            key: Vec::new(),
            sums,
            token,
        })
    }

    pub fn next(&self) -> Next {
        match self.stage {
            Stage::Collect
            | Stage::Recollect(_)
            | Stage::Fill(_)
            | Stage::Remove(_)
            | Stage::Insert(_) => Next::Reading,
            Stage::Sift | Stage::Sort | Stage::List => Next::Working,
            Stage::Collected | Stage::Ready => Next::Changing,
            Stage::Done => Next::Done,
            Stage::Gone => Next::Gone,
        }
    }

    /// All that it takes, beside the table.
    pub fn bytes(&self) -> u64 {
        let lists = self.entries.capacity() * size_of::<Keyed>()
            + self.keys.capacity()
            + (self.nulls.capacity() + self.changed.capacity()) * size_of::<u32>()
            + self.last.capacity()
            + self.key.capacity();
        let replaced = self.replaced.as_ref().map_or(0, Ordered::bytes);
        let trees = self.tree.bytes() + self.null_tree.bytes() + replaced;
        lists as u64 + trees + self.older.bytes()
    }

    pub(super) fn notes(&self) -> Notes {
        Notes::new(&self.token)
    }

    pub(super) fn is_of(&self, notes: &Notes) -> bool {
        notes.is_for(&self.token)
    }

    pub(super) fn is_gone(&mut self) {
        if self.stage != Stage::Done {
            self.stage = Stage::Gone;
        }
    }

    pub(super) fn keep(&mut self, replaced: Option<Ordered>) {
        self.replaced = replaced;
    }

    /// Goes on for about so many rows.
    pub fn read(&mut self, table: &Table, rows: usize) {
        let Some(notes) = table.notes().filter(|notes| self.is_of(notes)) else {
            return self.is_gone();
        };
        let now = Frozen { rows: table.rows(), older: None, newer: Some(notes) };
        self.stage = match self.stage {
            Stage::Collect => self.collect(table, notes, rows),
            Stage::Recollect(from) => self.recollect(&now, from, rows),
            Stage::Fill(node) => self.fill(&now, node, rows),
            Stage::Remove(from) => {
                let before = Frozen { older: Some(&self.older), ..now };
                let to = (from + rows).min(self.changed.len());
                let (trees, key) = ((&mut self.tree, &mut self.null_tree), &mut self.key);
                let of = Of { rows: &before, columns: &[self.column], sums: &self.sums };
                let changed = &self.changed[from..to];
                match remove(trees, changed.iter().filter(|id| self.older.had(**id)), &of, key) {
                    true if to < self.changed.len() => Stage::Remove(to),
                    true => Stage::Insert(0),
                    false => Stage::Gone,
                }
            }
            Stage::Insert(from) => {
                let to = (from + rows).min(self.changed.len());
                let (trees, key) = ((&mut self.tree, &mut self.null_tree), &mut self.key);
                let of = Of { rows: &now, columns: &[self.column], sums: &self.sums };
                let changed = &self.changed[from..to];
                insert(trees, changed.iter().filter(|id| self.older.has(**id)), &of, key);
                match to < self.changed.len() {
                    true => Stage::Insert(to),
                    false => Stage::Ready,
                }
            }
            other => other,
        };
    }

    /// In the order of the identity: rows without notes have kept theirs.
    fn collect(&mut self, table: &Table, notes: &Notes, most: usize) -> Stage {
        let last = std::mem::take(&mut self.last);
        let low = if last.is_empty() { Bound::Unbounded } else { Bound::Excluded(&last[..]) };
        let range = Range { low, high: Bound::Unbounded };
        let mut found = (0, None);
        for id in table.identity_index().ids(table.rows(), &range, false).take(most) {
            found = (found.0 + 1, Some(id));
            if !notes.know(id) {
                self.push(table.rows(), id);
            }
        }
        match found {
            (count, Some(id)) if count == most => {
                table.put_key_of(id, &mut self.last);
                Stage::Collect
            }
            _ => Stage::Collected,
        }
    }

    fn recollect(&mut self, now: &Frozen<'_>, from: usize, most: usize) -> Stage {
        let to = (from + most).min(self.changed.len());
        for at in from..to {
            let id = self.changed[at];
            if self.older.has(id) {
                self.push(now, id);
            }
        }
        match to < self.changed.len() {
            true => Stage::Recollect(to),
            false => Stage::Sort,
        }
    }

    fn push(&mut self, rows: &impl Fields, id: u32) {
        let Some(Entry { prefix, id }) = entry(rows, &[self.column], id, &mut self.key) else {
            return self.nulls.push(id);
        };
        let key = (self.keys.len() / KEY_UNIT) as u32;
        if !self.is_whole() {
            self.keys.extend_from_slice(&(self.key.len() as u32).to_le_bytes());
            self.keys.extend_from_slice(&self.key);
            self.keys.resize(self.keys.len().next_multiple_of(KEY_UNIT), 0);
        }
        self.entries.push(Keyed { prefix, id, key });
    }

    fn is_whole(&self) -> bool {
        self.column.1.is_key_whole()
    }

    fn fill(&mut self, now: &Frozen<'_>, node: u32, rows: usize) -> Stage {
        let of = Of { rows: now, columns: &[self.column], sums: &self.sums };
        let to = node + (rows / NODE_ROWS).max(1) as u32;
        match (node..to).all(|node| self.tree.fill(node, &of)) {
            true => Stage::Fill(to),
            false => Stage::Ready,
        }
    }

    /// Does what needs nothing of the table.
    pub fn work(&mut self) {
        self.stage = match self.stage {
            Stage::Sift => {
                let older = &self.older;
                self.entries.retain(|entry| !older.know(entry.id));
                self.nulls.retain(|id| !older.know(*id));
                self.changed = older.ids();
                Stage::Recollect(0)
            }
            Stage::Sort => {
                self.sort();
                if self.sums.is_empty() {
                    Stage::Ready
                } else {
                    Stage::Fill(0)
                }
            }
            Stage::List => {
                self.changed = self.older.ids();
                Stage::Remove(0)
            }
            other => other,
        };
    }

    fn sort(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        let keys = std::mem::take(&mut self.keys);
        match self.is_whole() {
            true => entries.sort_unstable_by_key(|entry| (entry.prefix, entry.id)),
            false => entries.sort_unstable_by(|a, b| {
                let by_key = || key_at(&keys, a.key).cmp(key_at(&keys, b.key));
                a.prefix.cmp(&b.prefix).then_with(by_key).then(a.id.cmp(&b.id))
            }),
        }
        let mut nulls = std::mem::take(&mut self.nulls);
        nulls.sort_unstable();
        let entries =
            entries.iter().map(|Keyed { prefix, id, .. }| Entry { prefix: *prefix, id: *id });
        // Totals follow.
        self.tree = Tree::build(entries, self.sums.len(), &Numbers);
        self.null_tree = Tree::build(nulls.iter().map(|id| number(*id)), 0, &Numbers);
    }

    /// Takes the table's notes and gives it new ones. None: these were the last.
    pub(super) fn swap(&mut self, notes: Notes) -> Option<Notes> {
        self.stage = match self.stage {
            Stage::Collected => Stage::Sift,
            Stage::Ready if notes.len() <= LAST_ROWS || self.rounds >= ROUNDS_MAX => {
                self.older = notes;
                return None;
            }
            Stage::Ready => {
                self.rounds += 1;
                Stage::List
            }
            _ => return Some(notes),
        };
        self.older = notes;
        Some(self.notes())
    }

    /// Puts the last rows in.
    pub(super) fn finish(&mut self, rows: &Rows) -> Option<(u16, Ordered)> {
        let (mut tree, mut null_tree) = (
            std::mem::replace(&mut self.tree, Tree::new(0)),
            std::mem::replace(&mut self.null_tree, Tree::new(0)),
        );
        let changed = self.older.ids();
        let trees = (&mut tree, &mut null_tree);
        let before = Frozen { rows, older: Some(&self.older), newer: None };
        let of = Of { rows: &before, columns: &[self.column], sums: &self.sums };
        let had = changed.iter().filter(|id| self.older.had(**id));
        if !remove(trees, had, &of, &mut self.key) {
            self.stage = Stage::Gone;
            return None;
        }
        let of = Of { rows, columns: &[self.column], sums: &self.sums };
        let trees = (&mut tree, &mut null_tree);
        insert(trees, changed.iter().filter(|id| self.older.has(**id)), &of, &mut self.key);
        self.stage = Stage::Done;
        let sums = std::mem::take(&mut self.sums);
        Some((self.column.0, Ordered::of_trees(self.column, sums, (tree, null_tree))))
    }
}

/// False: one was not there.
fn remove<'i>(
    (tree, nulls): (&mut Tree, &mut Tree),
    mut ids: impl Iterator<Item = &'i u32>,
    of: &Of<'_, Frozen<'_>>,
    key: &mut Vec<u8>,
) -> bool {
    ids.all(|id| match entry(of.rows, of.columns, *id, key) {
        Some(entry) => tree.remove(entry, key, of),
        None => nulls.remove(number(*id), &[], &Numbers),
    })
}

fn insert<'i, F: Fields>(
    (tree, nulls): (&mut Tree, &mut Tree),
    ids: impl Iterator<Item = &'i u32>,
    of: &Of<'_, F>,
    key: &mut Vec<u8>,
) {
    for id in ids {
        match entry(of.rows, of.columns, *id, key) {
            Some(entry) => tree.insert(entry, key, of),
            None => nulls.insert(number(*id), &[], &Numbers),
        }
    }
}

fn key_at(keys: &[u8], at: u32) -> &[u8] {
    let rest = keys.get(at as usize * KEY_UNIT..).unwrap_or_default();
    let Some((length, rest)) = rest.split_first_chunk::<4>() else { return &[] };
    rest.get(..u32::from_le_bytes(*length) as usize).unwrap_or_default()
}
