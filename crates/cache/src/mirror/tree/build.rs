//! A tree from rows that are sorted already.

use smallvec::SmallVec;

use super::{Entry, Inner, Keys, Leaf, Slot, Total, Tree, INNER_MAX, LEAF_MAX, NONE};

/// So full nodes are made: what comes later finds room.
const LEAF_FILL: usize = LEAF_MAX * 9 / 10;
const INNER_FILL: usize = INNER_MAX * 9 / 10;

impl Tree {
    /// One of these rows, which are in order.
    pub fn build(
        mut entries: impl ExactSizeIterator<Item = Entry>,
        sums: usize,
        keys: &impl Keys,
    ) -> Tree {
        let mut tree = Tree::new(sums);
        let all = entries.len();
        if all == 0 {
            return tree;
        }
        tree.leaves = Vec::new();
        tree.count = all as u64;
        let parts = all.div_ceil(LEAF_FILL);
        tree.leaves.reserve_exact(parts + parts / 8);
        for part in 0..parts {
            let mut leaf = Leaf::new();
            // In equal parts: a last one with few would be too small.
            let (from, to) = (all * part / parts, all * (part + 1) / parts);
            for (at, entry) in entries.by_ref().take(to - from).enumerate() {
                (leaf.ids[at], leaf.prefixes[at]) = (entry.id, entry.prefix);
            }
            leaf.len = (to - from) as u32;
            leaf.before = part.checked_sub(1).map_or(NONE, |before| before as u32);
            leaf.behind = if part + 1 < parts { part as u32 + 1 } else { NONE };
            tree.leaves.push(leaf);
        }
        let mut level: Vec<u32> = (0..parts as u32).collect();
        while level.len() > 1 {
            let parts = level.len().div_ceil(INNER_FILL);
            let mut above = Vec::with_capacity(parts);
            for part in 0..parts {
                let children = &level[level.len() * part / parts..level.len() * (part + 1) / parts];
                let mut inner = Box::new(Inner::with_room(sums));
                for child in children {
                    let (slot, totals) = tree.summary(*child, tree.height, keys);
                    inner.slots.push(slot);
                    inner.totals.extend(totals);
                }
                above.push(tree.inners.len() as u32);
                tree.inners.push(inner);
            }
            tree.height += 1;
            level = above;
        }
        tree.root = level.first().copied().unwrap_or(0);
        tree
    }

    /// Finds the totals of an inner node of a tree that was just built. Those of nodes with smaller
    /// numbers have to be known. False: there is no such node.
    pub fn fill(&mut self, node: u32, keys: &impl Keys) -> bool {
        let Some(inner) = self.inners.get(node as usize) else { return false };
        let children: SmallVec<[u32; INNER_MAX]> =
            inner.slots.iter().map(|slot| slot.child).collect();
        let lowest = self.leaves.len().div_ceil(INNER_FILL);
        let height = if (node as usize) < lowest { 0 } else { 1 };
        for (at, child) in children.into_iter().enumerate() {
            let (_, totals) = self.summary(child, height, keys);
            let own = &mut self.inners[node as usize].totals;
            own[at * self.sums..(at + 1) * self.sums].copy_from_slice(&totals);
        }
        true
    }

    /// What a node's parent has to know of it. `height`: inner levels below the parent's.
    pub(super) fn summary(
        &self,
        node: u32,
        height: u32,
        keys: &impl Keys,
    ) -> (Slot, SmallVec<[Total; 4]>) {
        let mut totals: SmallVec<[Total; 4]> = SmallVec::from_elem(Total::default(), self.sums);
        if height == 0 {
            let leaf = self.leaf(node);
            for (sum, total) in totals.iter_mut().enumerate() {
                leaf.ids().iter().for_each(|id| total.add(Total::of(keys.value(*id, sum))));
            }
            let slot = Slot { first: leaf.entry(0), child: node, count: leaf.len.into() };
            return (slot, totals);
        }
        let inner = self.inner(node);
        for (at, total) in inner.totals.iter().enumerate() {
            totals[at % self.sums].add(*total);
        }
        let first = inner.slots.first().map_or(Entry { prefix: 0, id: NONE }, |slot| slot.first);
        let count = inner.slots.iter().map(|slot| slot.count).sum();
        (Slot { first, child: node, count }, totals)
    }
}

impl Inner {
    pub(super) fn with_room(sums: usize) -> Inner {
        // One more than stays: a node that is too large is split behind it.
        Inner {
            slots: Vec::with_capacity(INNER_MAX + 1),
            totals: Vec::with_capacity((INNER_MAX + 1) * sums),
        }
    }
}
