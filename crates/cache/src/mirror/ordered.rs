//! An index of a table: its rows in the order of one column, or of its identity.

mod compare;

use std::cmp::Ordering;
use std::ops::Bound;

use smallvec::SmallVec;

use super::class::Class;
use super::definition::Column;
use super::key::{prefix, put_key};
use super::rows::{Fields, Rows};
use super::tree::{Entry, Ids, Keys, Probe, Tie, Total, Tree};

/// Bounds of keys.
#[derive(Debug, Clone, Copy)]
pub struct Range<'k> {
    pub low: Bound<&'k [u8]>,
    pub high: Bound<&'k [u8]>,
}

/// See the module's documentation. Rows whose column is NULL are apart.
#[derive(Debug)]
pub struct Ordered {
    columns: SmallVec<[(u16, Class); 2]>,
    /// Columns whose sums are known, with their classes.
    sums: Vec<(u16, Class)>,
    tree: Tree,
    nulls: Tree,
    /// A row's key, while it is needed.
    key: Vec<u8>,
}

/// The rows as a tree asks for them.
pub(super) struct Of<'a, F> {
    pub rows: &'a F,
    pub columns: &'a [(u16, Class)],
    pub sums: &'a [(u16, Class)],
}

/// Numbers of rows as their own keys.
pub(super) struct Numbers;

impl<F: Fields> Keys for Of<'_, F> {
    fn is_whole(&self) -> bool {
        is_whole(self.columns)
    }

    fn compare(&self, id: u32, key: &[u8]) -> Ordering {
        compare::compare(self.rows, self.columns, id, key)
    }

    fn value(&self, id: u32, sum: usize) -> Option<i128> {
        let (column, _) = self.sums.get(sum)?;
        int(self.rows.field(id, *column)?)
    }
}

impl Keys for Numbers {
    fn is_whole(&self) -> bool {
        true
    }

    fn compare(&self, _: u32, _: &[u8]) -> Ordering {
        Ordering::Equal
    }

    fn value(&self, _: u32, _: usize) -> Option<i128> {
        None
    }
}

/// Of a stored integer.
fn int(stored: &[u8]) -> Option<i128> {
    Some(match stored.len() {
        2 => i16::from_be_bytes(stored.try_into().ok()?).into(),
        4 => i32::from_be_bytes(stored.try_into().ok()?).into(),
        8 => i64::from_be_bytes(stored.try_into().ok()?).into(),
        _ => return None,
    })
}

fn is_whole(columns: &[(u16, Class)]) -> bool {
    matches!(columns, [(_, class)] if class.is_key_whole())
}

fn first_bytes(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = key.len().min(8);
    first[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(first)
}

/// Whether sums of such columns can be known.
pub fn has_sums(class: Class) -> bool {
    matches!(class, Class::Int2 | Class::Int4 | Class::Int8)
}

impl Ordered {
    /// Of these rows.
    pub fn build(
        columns: &[u16],
        sums: &[u16],
        of: &[Column],
        rows: &Rows,
        ids: impl Iterator<Item = u32>,
    ) -> Ordered {
        let with_class = |at: &u16| of.get(usize::from(*at)).map(|column| (*at, column.class));
        let columns: SmallVec<_> = columns.iter().filter_map(with_class).collect();
        let sums: Vec<_> =
            sums.iter().filter_map(with_class).filter(|(_, class)| has_sums(*class)).collect();
        let mut key = Vec::new();
        let mut entries = Vec::new();
        let mut nulls = Vec::new();
        for id in ids {
            match entry(rows, &columns, id, &mut key) {
                Some(entry) => entries.push(entry),
                None => nulls.push(id),
            }
        }
        let keys = Of { rows, columns: &columns, sums: &sums };
        if keys.is_whole() {
            entries.sort_unstable_by_key(|entry| (entry.prefix, entry.id));
        } else {
            entries.sort_unstable_by(|a, b| {
                a.prefix.cmp(&b.prefix).then_with(|| {
                    put_row_key(rows, &columns, b.id, &mut key);
                    keys.compare(a.id, &key).then(a.id.cmp(&b.id))
                })
            });
        }
        nulls.sort_unstable();
        let tree = Tree::build(entries.iter().copied(), sums.len(), &keys);
        let nulls = Tree::build(nulls.iter().map(|id| number(*id)), 0, &Numbers);
        Ordered { columns, sums, tree, nulls, key: Vec::new() }
    }

    pub(super) fn of_trees(
        (column, class): (u16, Class),
        sums: Vec<(u16, Class)>,
        (tree, nulls): (Tree, Tree),
    ) -> Ordered {
        let columns = SmallVec::from_slice(&[(column, class)]);
        Ordered { columns, sums, tree, nulls, key: Vec::new() }
    }

    /// With nothing in it.
    pub(super) fn empty(&self) -> Ordered {
        let (columns, sums) = (self.columns.clone(), self.sums.clone());
        Ordered { columns, tree: Tree::new(sums.len()), sums, nulls: Tree::new(0), key: Vec::new() }
    }

    pub fn is_of(&self, columns: &[u16]) -> bool {
        self.columns.iter().map(|(column, _)| column).eq(columns)
    }

    pub fn knows_sum(&self, column: u16) -> bool {
        self.sums.iter().any(|(known, _)| *known == column)
    }

    pub(super) fn sums(&self) -> impl Iterator<Item = u16> + '_ {
        self.sums.iter().map(|(column, _)| *column)
    }

    pub(super) fn has_column(&self, column: u16) -> bool {
        self.columns.iter().any(|(known, _)| *known == column)
    }

    pub fn len(&self) -> u64 {
        self.tree.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    pub fn null_count(&self) -> u64 {
        self.nulls.len()
    }

    pub fn bytes(&self) -> u64 {
        self.tree.bytes() + self.nulls.bytes() + self.key.capacity() as u64
    }

    /// How many rows are in a range.
    pub fn count(&self, rows: &Rows, range: &Range<'_>) -> u64 {
        let keys = self.keys(rows);
        let high = self.tree.rank(&high(range), &keys);
        high.saturating_sub(self.tree.rank(&low(range), &keys))
    }

    /// The sum of a column over a range, and how many of its values are not NULL. None: it is not
    /// known here.
    pub fn sum(&self, rows: &Rows, range: &Range<'_>, column: u16) -> Option<(i128, u64)> {
        let sum = self.sums.iter().position(|(known, _)| *known == column)?;
        let keys = self.keys(rows);
        let (before, less) = self.tree.total(&low(range), sum, &keys);
        let (behind, more) = self.tree.total(&high(range), sum, &keys);
        match behind > before {
            true => Some((more.sum - less.sum, more.count - less.count)),
            false => Some((0, 0)),
        }
    }

    /// The rows of a range in the order of their keys.
    pub fn ids<'a>(&'a self, rows: &Rows, range: &Range<'_>, backwards: bool) -> Ids<'a> {
        self.tree.ids(&low(range), &high(range), backwards, &self.keys(rows))
    }

    /// Those without a value.
    pub fn nulls(&self) -> Ids<'_> {
        self.nulls.all(false)
    }

    /// The first row with this key.
    pub(super) fn find(&self, rows: &Rows, key: &[u8]) -> Option<u32> {
        let probe = Probe { prefix: first_bytes(key), key, tie: Tie::Before };
        let keys = self.keys(rows);
        let entry = self.tree.first(&probe, &keys)?;
        let same = entry.prefix == probe.prefix
            && (keys.is_whole() || keys.compare(entry.id, key) == Ordering::Equal);
        same.then_some(entry.id)
    }

    fn keys<'a>(&'a self, rows: &'a Rows) -> Of<'a, Rows> {
        Of { rows, columns: &self.columns, sums: &self.sums }
    }

    /// A row has come, and is among `rows`.
    pub(super) fn insert(&mut self, rows: &Rows, id: u32) {
        let Ordered { columns, sums, tree, nulls, key } = self;
        let keys = Of { rows, columns, sums };
        match entry(rows, columns, id, key) {
            None => nulls.insert(number(id), &[], &Numbers),
            Some(entry) => tree.insert(entry, key, &keys),
        }
    }

    /// A row is about to go. False: it was not here.
    pub(super) fn remove(&mut self, rows: &Rows, id: u32) -> bool {
        let Ordered { columns, sums, tree, nulls, key } = self;
        let keys = Of { rows, columns, sums };
        match entry(rows, columns, id, key) {
            None => nulls.remove(number(id), &[], &Numbers),
            Some(entry) => tree.remove(entry, key, &keys),
        }
    }

    /// A row's values in the columns of sums as they are now.
    pub(super) fn totals(&self, rows: &Rows, id: u32) -> SmallVec<[Total; 4]> {
        let keys = self.keys(rows);
        (0..self.sums.len()).map(|sum| Total::of(keys.value(id, sum))).collect()
    }

    /// A row has been changed that has kept its key; what its totals were.
    pub(super) fn adjust(&mut self, rows: &Rows, id: u32, before: &[Total]) {
        let now = self.totals(rows, id);
        if now.as_slice() == before {
            return;
        }
        let Ordered { columns, sums, tree, key, .. } = self;
        let keys = Of { rows, columns, sums };
        let Some(entry) = entry(rows, columns, id, key) else { return };
        for (sum, (old, new)) in before.iter().zip(&now).enumerate() {
            if old != new {
                tree.adjust(entry, key, sum, (*old, *new), &keys);
            }
        }
    }
}

/// A row and its key, which is not needed if its first bytes are all of it. None: a column is NULL.
pub(super) fn entry(
    rows: &impl Fields,
    columns: &[(u16, Class)],
    id: u32,
    key: &mut Vec<u8>,
) -> Option<Entry> {
    key.clear();
    if let ([(column, class)], true) = (columns, is_whole(columns)) {
        return Some(Entry { prefix: prefix(*class, rows.field(id, *column)?), id });
    }
    put_row_key(rows, columns, id, key)?;
    Some(Entry { prefix: first_bytes(key), id })
}

/// Gives nothing if a column is NULL.
fn put_row_key(
    rows: &impl Fields,
    columns: &[(u16, Class)],
    id: u32,
    key: &mut Vec<u8>,
) -> Option<()> {
    key.clear();
    columns.iter().try_for_each(|(column, class)| {
        put_key(*class, rows.field(id, *column)?, key);
        Some(())
    })
}

/// A row in the order of numbers.
pub(super) fn number(id: u32) -> Entry {
    Entry { prefix: id.into(), id }
}

fn low<'k>(range: &Range<'k>) -> Probe<'k> {
    match range.low {
        Bound::Unbounded => Probe { prefix: 0, key: &[], tie: Tie::Start },
        Bound::Included(key) => Probe { prefix: first_bytes(key), key, tie: Tie::Before },
        Bound::Excluded(key) => Probe { prefix: first_bytes(key), key, tie: Tie::After },
    }
}

fn high<'k>(range: &Range<'k>) -> Probe<'k> {
    match range.high {
        Bound::Unbounded => Probe { prefix: u64::MAX, key: &[], tie: Tie::End },
        Bound::Included(key) => Probe { prefix: first_bytes(key), key, tie: Tie::After },
        Bound::Excluded(key) => Probe { prefix: first_bytes(key), key, tie: Tie::Before },
    }
}
