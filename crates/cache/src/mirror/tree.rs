//! A B+tree of rows in the order of a key, that knows how many rows each part has, and sums of
//! columns over them.
//!
//! A leaf has for each row its number and the first eight bytes of its key. Where those are equal
//! and not the whole key, the rows are asked ([`Keys`]); then the numbers decide. An inner node has
//! for each child its first row, how many there are, and the totals.

mod build;
mod change;

use std::cmp::Ordering;

/// Rows of a leaf, and children of an inner node.
pub(super) const LEAF_MAX: usize = 64;
pub(super) const INNER_MAX: usize = 64;

const NONE: u32 = u32::MAX;

/// What the tree has to ask of the rows.
pub trait Keys {
    /// The first bytes are the whole key.
    fn is_whole(&self) -> bool;

    /// The key of a row beside another one whose first bytes are the same.
    fn compare(&self, id: u32, key: &[u8]) -> Ordering;

    /// A row's value in the column of a sum, by the sum's place. None: NULL.
    fn value(&self, id: u32, sum: usize) -> Option<i128>;
}

/// A sum over rows, and how many of them have a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    pub sum: i128,
    pub count: u64,
}

/// A place in the order.
#[derive(Debug, Clone, Copy)]
pub struct Probe<'k> {
    pub prefix: u64,
    pub key: &'k [u8],
    pub tie: Tie,
}

/// Among rows with an equal key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tie {
    /// Before all of them.
    Before,
    /// Behind all of them.
    After,
    /// That of a row.
    Row(u32),
    /// Before all rows, whatever their keys.
    Start,
    /// Behind all rows.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub prefix: u64,
    pub id: u32,
}

#[derive(Debug)]
struct Leaf {
    len: u32,
    before: u32,
    behind: u32,
    ids: [u32; LEAF_MAX],
    prefixes: [u64; LEAF_MAX],
}

#[derive(Debug, Default)]
struct Inner {
    slots: Vec<Slot>,
    /// Of each slot those of all sums.
    totals: Vec<Total>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    first: Entry,
    child: u32,
    count: u64,
}

/// See the module's documentation.
#[derive(Debug)]
#[allow(clippy::vec_box)] // A list of large nodes would be copied as it grows.
pub struct Tree {
    leaves: Vec<Box<Leaf>>,
    inners: Vec<Box<Inner>>,
    free_leaves: Vec<u32>,
    free_inners: Vec<u32>,
    root: u32,
    /// Levels of inner nodes; zero: the root is a leaf.
    height: u32,
    count: u64,
    sums: usize,
}

impl Total {
    pub fn add(&mut self, other: Total) {
        self.sum += other.sum;
        self.count += other.count;
    }

    fn take(&mut self, other: Total) {
        self.sum -= other.sum;
        self.count -= other.count;
    }

    pub fn of(value: Option<i128>) -> Total {
        value.map_or(Total::default(), |sum| Total { sum, count: 1 })
    }
}

impl Leaf {
    fn new() -> Box<Leaf> {
        Box::new(Leaf {
            len: 0,
            before: NONE,
            behind: NONE,
            ids: [0; LEAF_MAX],
            prefixes: [0; LEAF_MAX],
        })
    }

    fn len(&self) -> usize {
        self.len as usize
    }

    fn entry(&self, at: usize) -> Entry {
        Entry { prefix: self.prefixes[at], id: self.ids[at] }
    }

    fn ids(&self) -> &[u32] {
        &self.ids[..self.len()]
    }
}

/// Where a row is beside a place. Of its own row that is equal.
fn order(entry: Entry, probe: &Probe<'_>, keys: &impl Keys) -> Ordering {
    let tied = |entry: Entry| match probe.tie {
        Tie::Before | Tie::Start => Ordering::Greater,
        Tie::After | Tie::End => Ordering::Less,
        Tie::Row(id) => entry.id.cmp(&id),
    };
    match entry.prefix.cmp(&probe.prefix) {
        _ if matches!(probe.tie, Tie::Start | Tie::End) => tied(entry),
        Ordering::Equal if keys.is_whole() => tied(entry),
        Ordering::Equal => keys.compare(entry.id, probe.key).then_with(|| tied(entry)),
        order => order,
    }
}

fn position(leaf: &Leaf, probe: &Probe<'_>, keys: &impl Keys) -> usize {
    let (mut low, mut high) = (0, leaf.len());
    while low < high {
        let middle = (low + high) / 2;
        match order(leaf.entry(middle), probe, keys) {
            Ordering::Less => low = middle + 1,
            Ordering::Equal | Ordering::Greater => high = middle,
        }
    }
    low
}

/// The child in which a place is.
fn child(inner: &Inner, probe: &Probe<'_>, keys: &impl Keys) -> usize {
    let not_behind = |slot: &Slot| order(slot.first, probe, keys) != Ordering::Greater;
    inner.slots.partition_point(not_behind).saturating_sub(1)
}

impl Tree {
    /// An empty one with so many sums.
    pub fn new(sums: usize) -> Tree {
        Tree {
            leaves: vec![Leaf::new()],
            inners: Vec::new(),
            free_leaves: Vec::new(),
            free_inners: Vec::new(),
            root: 0,
            height: 0,
            count: 0,
            sums,
        }
    }

    pub fn len(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All that it takes.
    pub fn bytes(&self) -> u64 {
        let lists = (self.leaves.capacity() + self.inners.capacity()) * size_of::<Box<Leaf>>()
            + (self.free_leaves.capacity() + self.free_inners.capacity()) * size_of::<u32>();
        // Inner nodes that are free have no slots.
        let room = (INNER_MAX + 1) * (size_of::<Slot>() + self.sums * size_of::<Total>());
        let inners = self.inners.len() * size_of::<Inner>()
            + (self.inners.len() - self.free_inners.len()) * room;
        (self.leaves.len() * size_of::<Leaf>() + inners + lists) as u64
    }

    fn leaf(&self, at: u32) -> &Leaf {
        &self.leaves[at as usize]
    }

    fn inner(&self, at: u32) -> &Inner {
        &self.inners[at as usize]
    }

    /// How many rows are before a place, and the leaf and the position in it.
    fn seek(&self, probe: &Probe<'_>, keys: &impl Keys) -> (u64, u32, usize) {
        let (mut node, mut before) = (self.root, 0);
        for _ in 0..self.height {
            let inner = self.inner(node);
            let at = child(inner, probe, keys);
            before += inner.slots[..at].iter().map(|slot| slot.count).sum::<u64>();
            node = inner.slots[at].child;
        }
        let at = position(self.leaf(node), probe, keys);
        (before + at as u64, node, at)
    }

    /// The leaf of a place, and the position in it.
    fn reach(&self, probe: &Probe<'_>, keys: &impl Keys) -> (u32, usize) {
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = self.inner(node);
            node = inner.slots[child(inner, probe, keys)].child;
        }
        (node, position(self.leaf(node), probe, keys))
    }

    /// How many rows are before a place.
    pub fn rank(&self, probe: &Probe<'_>, keys: &impl Keys) -> u64 {
        match probe.tie {
            Tie::Start => 0,
            Tie::End => self.count,
            _ => self.seek(probe, keys).0,
        }
    }

    /// How many rows are before a place, and the total of a sum over them.
    pub fn total(&self, probe: &Probe<'_>, sum: usize, keys: &impl Keys) -> (u64, Total) {
        let (mut node, mut before, mut total) = (self.root, 0, Total::default());
        let mut of_node = None;
        for _ in 0..self.height {
            let inner = self.inner(node);
            let at = child(inner, probe, keys);
            for (slot, totals) in inner.slots[..at].iter().zip(inner.totals.chunks(self.sums)) {
                before += slot.count;
                total.add(totals[sum]);
            }
            of_node = Some(inner.totals[at * self.sums + sum]);
            node = inner.slots[at].child;
        }
        let leaf = self.leaf(node);
        let at = position(leaf, probe, keys);
        let of = |ids: &[u32]| {
            let mut part = Total::default();
            ids.iter().for_each(|id| part.add(Total::of(keys.value(*id, sum))));
            part
        };
        // Rows are far from each other: the shorter part of the leaf is looked at.
        match of_node {
            Some(all) if at > leaf.len() / 2 => {
                total.add(all);
                total.take(of(&leaf.ids()[at..]));
            }
            _ => total.add(of(&leaf.ids()[..at])),
        }
        (before + at as u64, total)
    }

    /// Rows from a place on, or backwards from it: those between two places.
    pub fn ids(
        &self,
        low: &Probe<'_>,
        high: &Probe<'_>,
        backwards: bool,
        keys: &impl Keys,
    ) -> Ids<'_> {
        let (before, leaf, at) = self.seek(low, keys);
        let (behind, last, end) = self.seek(high, keys);
        let left = behind.saturating_sub(before);
        match backwards {
            false => Ids { tree: self, leaf, at, left, backwards },
            true => Ids { tree: self, leaf: last, at: end, left, backwards },
        }
    }

    /// All of them.
    pub fn all(&self, backwards: bool) -> Ids<'_> {
        let mut node = self.root;
        for _ in 0..self.height {
            let slots = &self.inner(node).slots;
            let slot = if backwards { slots.last() } else { slots.first() };
            node = slot.map_or(NONE, |slot| slot.child);
        }
        let at = if backwards { self.leaf(node).len() } else { 0 };
        Ids { tree: self, leaf: node, at, left: self.count, backwards }
    }

    /// The first row that is not before a place.
    pub fn first(&self, probe: &Probe<'_>, keys: &impl Keys) -> Option<Entry> {
        let (leaf, at) = self.reach(probe, keys);
        self.at_or_behind(leaf, at)
    }

    fn at_or_behind(&self, leaf: u32, at: usize) -> Option<Entry> {
        let found = self.leaf(leaf);
        if at < found.len() {
            return Some(found.entry(at));
        }
        let next = self.leaves.get(found.behind as usize)?;
        (next.len > 0).then(|| next.entry(0))
    }
}

/// Numbers of rows.
#[derive(Debug, Clone)]
pub struct Ids<'t> {
    tree: &'t Tree,
    leaf: u32,
    /// The next one; backwards the one behind it.
    at: usize,
    left: u64,
    backwards: bool,
}

impl Iterator for Ids<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let mut leaf = self.tree.leaf(self.leaf);
        if self.backwards {
            while self.at == 0 {
                self.leaf = leaf.before;
                leaf = self.tree.leaves.get(self.leaf as usize)?;
                self.at = leaf.len();
            }
            self.at -= 1;
            return Some(leaf.ids[self.at]);
        }
        while self.at == leaf.len() {
            self.leaf = leaf.behind;
            leaf = self.tree.leaves.get(self.leaf as usize)?;
            self.at = 0;
        }
        self.at += 1;
        Some(leaf.ids[self.at - 1])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}
