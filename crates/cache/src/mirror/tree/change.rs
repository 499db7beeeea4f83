//! Rows that come and go.

use super::{
    child, position, Entry, Inner, Keys, Leaf, Probe, Slot, Tie, Total, Tree, INNER_MAX, LEAF_MAX,
    NONE,
};

const LEAF_MIN: usize = LEAF_MAX / 2;
const INNER_MIN: usize = INNER_MAX / 2;

impl Tree {
    /// Adds a row; `key` is its whole key. The rows have it already.
    pub fn insert(&mut self, entry: Entry, key: &[u8], keys: &impl Keys) {
        let probe = Probe { prefix: entry.prefix, key, tie: Tie::Row(entry.id) };
        let (root, height) = (self.root, self.height);
        self.count += 1;
        let Some(right) = self.insert_below(root, height, entry, &probe, keys) else { return };
        let mut inner = Box::new(Inner::with_room(self.sums));
        for node in [root, right] {
            let (slot, totals) = self.summary(node, height, keys);
            inner.slots.push(slot);
            inner.totals.extend(totals);
        }
        self.root = self.put_inner(inner);
        self.height += 1;
    }

    /// Gives the node that has come to be on the right.
    fn insert_below(
        &mut self,
        node: u32,
        height: u32,
        entry: Entry,
        probe: &Probe<'_>,
        keys: &impl Keys,
    ) -> Option<u32> {
        if height == 0 {
            return self.insert_leaf(node, entry, probe, keys);
        }
        let at = child(self.inner(node), probe, keys);
        let below = self.inner(node).slots[at].child;
        let right = self.insert_below(below, height - 1, entry, probe, keys);
        let Some(right) = right else {
            let first = self.first_of(below, height - 1);
            let sums = self.sums;
            let inner = &mut self.inners[node as usize];
            inner.slots[at].count += 1;
            inner.slots[at].first = first;
            for sum in 0..sums {
                inner.totals[at * sums + sum].add(Total::of(keys.value(entry.id, sum)));
            }
            return None;
        };
        self.refresh(node, at, below, height, keys);
        let (slot, totals) = self.summary(right, height - 1, keys);
        let sums = self.sums;
        let inner = &mut self.inners[node as usize];
        inner.slots.insert(at + 1, slot);
        inner.totals.splice((at + 1) * sums..(at + 1) * sums, totals);
        if inner.slots.len() <= INNER_MAX {
            return None;
        }
        let half = inner.slots.len() / 2;
        let mut new = Box::new(Inner::with_room(sums));
        new.slots.extend(inner.slots.drain(half..));
        new.totals.extend(inner.totals.drain(half * sums..));
        Some(self.put_inner(new))
    }

    fn insert_leaf(
        &mut self,
        node: u32,
        entry: Entry,
        probe: &Probe<'_>,
        keys: &impl Keys,
    ) -> Option<u32> {
        let leaf = &mut self.leaves[node as usize];
        let mut at = position(leaf, probe, keys);
        let mut into = node;
        let mut right = None;
        if leaf.len() == LEAF_MAX {
            // Rows that come in order leave full leaves behind.
            let last = at == LEAF_MAX && leaf.behind == NONE;
            let half = if last { LEAF_MAX - 1 } else { LEAF_MAX / 2 };
            let new = self.split_leaf(node, half);
            if at > half || last {
                (into, at) = (new, at - half);
            }
            right = Some(new);
        }
        let leaf = &mut self.leaves[into as usize];
        let len = leaf.len();
        leaf.ids.copy_within(at..len, at + 1);
        leaf.prefixes.copy_within(at..len, at + 1);
        (leaf.ids[at], leaf.prefixes[at]) = (entry.id, entry.prefix);
        leaf.len += 1;
        right
    }

    fn split_leaf(&mut self, node: u32, half: usize) -> u32 {
        let mut new = Leaf::new();
        let leaf = &mut self.leaves[node as usize];
        let moved = leaf.len() - half;
        new.ids[..moved].copy_from_slice(&leaf.ids[half..half + moved]);
        new.prefixes[..moved].copy_from_slice(&leaf.prefixes[half..half + moved]);
        (new.len, leaf.len) = (moved as u32, half as u32);
        (new.before, new.behind) = (node, leaf.behind);
        let behind = leaf.behind;
        let at = self.put_leaf(new);
        self.leaves[node as usize].behind = at;
        if let Some(behind) = self.leaves.get_mut(behind as usize) {
            behind.before = at;
        }
        at
    }

    /// Takes a row out; `key` is its whole key, and the rows still have it. False: it is not there.
    pub fn remove(&mut self, entry: Entry, key: &[u8], keys: &impl Keys) -> bool {
        let probe = Probe { prefix: entry.prefix, key, tie: Tie::Row(entry.id) };
        let (root, height) = (self.root, self.height);
        if !self.remove_below(root, height, entry, &probe, keys) {
            return false;
        }
        self.count -= 1;
        while self.height > 0 && self.inner(self.root).slots.len() == 1 {
            let only = self.inner(self.root).slots[0].child;
            self.drop_inner(self.root);
            self.root = only;
            self.height -= 1;
        }
        true
    }

    fn remove_below(
        &mut self,
        node: u32,
        height: u32,
        entry: Entry,
        probe: &Probe<'_>,
        keys: &impl Keys,
    ) -> bool {
        if height == 0 {
            let leaf = &mut self.leaves[node as usize];
            let at = position(leaf, probe, keys);
            let len = leaf.len();
            if at == len || leaf.ids[at] != entry.id {
                return false;
            }
            leaf.ids.copy_within(at + 1..len, at);
            leaf.prefixes.copy_within(at + 1..len, at);
            leaf.len -= 1;
            return true;
        }
        let at = child(self.inner(node), probe, keys);
        let below = self.inner(node).slots[at].child;
        if !self.remove_below(below, height - 1, entry, probe, keys) {
            return false;
        }
        let (len, min) = match height {
            1 => (self.leaf(below).len(), LEAF_MIN),
            _ => (self.inner(below).slots.len(), INNER_MIN),
        };
        if len < min && self.inner(node).slots.len() > 1 {
            self.rebalance(node, at, height, keys);
            return true;
        }
        let first = if len > 0 { Some(self.first_of(below, height - 1)) } else { None };
        let sums = self.sums;
        let inner = &mut self.inners[node as usize];
        inner.slots[at].count -= 1;
        if let Some(first) = first {
            inner.slots[at].first = first;
        }
        for sum in 0..sums {
            inner.totals[at * sums + sum].take(Total::of(keys.value(entry.id, sum)));
        }
        true
    }

    /// A child that has become small gives its rows to a neighbour, or takes some from it.
    fn rebalance(&mut self, node: u32, at: usize, height: u32, keys: &impl Keys) {
        let left = if at + 1 < self.inner(node).slots.len() { at } else { at - 1 };
        let slots = &self.inner(node).slots;
        let (one, other) = (slots[left].child, slots[left + 1].child);
        let merged = match height {
            1 => self.balance_leaves(one, other),
            _ => self.balance_inners(one, other),
        };
        if merged {
            let sums = self.sums;
            let inner = &mut self.inners[node as usize];
            inner.slots.remove(left + 1);
            inner.totals.drain((left + 1) * sums..(left + 2) * sums);
        } else {
            self.refresh(node, left + 1, other, height, keys);
        }
        self.refresh(node, left, one, height, keys);
    }

    /// Whether the second is gone.
    fn balance_leaves(&mut self, one: u32, other: u32) -> bool {
        let right = &self.leaves[other as usize];
        let (right_len, behind) = (right.len(), right.behind);
        let left_len = self.leaf(one).len();
        let all = left_len + right_len;
        let mut ids = [0; 2 * LEAF_MAX];
        let mut prefixes = [0; 2 * LEAF_MAX];
        for (from, to) in [(one, 0), (other, left_len)] {
            let leaf = self.leaf(from);
            ids[to..to + leaf.len()].copy_from_slice(leaf.ids());
            prefixes[to..to + leaf.len()].copy_from_slice(&leaf.prefixes[..leaf.len()]);
        }
        // A leaf that is full would soon be split again.
        let merges = all <= LEAF_MAX * 7 / 8;
        let half = if merges { all } else { all / 2 };
        for (node, from, to) in [(one, 0, half), (other, half, all)] {
            let leaf = &mut self.leaves[node as usize];
            leaf.ids[..to - from].copy_from_slice(&ids[from..to]);
            leaf.prefixes[..to - from].copy_from_slice(&prefixes[from..to]);
            leaf.len = (to - from) as u32;
        }
        if merges {
            self.leaves[one as usize].behind = behind;
            if let Some(behind) = self.leaves.get_mut(behind as usize) {
                behind.before = one;
            }
            self.free_leaves.push(other);
        }
        merges
    }

    fn balance_inners(&mut self, one: u32, other: u32) -> bool {
        let sums = self.sums;
        let mut right = std::mem::take(&mut *self.inners[other as usize]);
        let left = &mut self.inners[one as usize];
        left.slots.append(&mut right.slots);
        left.totals.append(&mut right.totals);
        if left.slots.len() <= INNER_MAX * 7 / 8 {
            self.free_inners.push(other);
            return true;
        }
        let half = left.slots.len() / 2;
        right.slots.extend(left.slots.drain(half..));
        right.totals.extend(left.totals.drain(half * sums..));
        // It has grown beyond what a node keeps.
        left.slots.shrink_to(INNER_MAX + 1);
        left.totals.shrink_to((INNER_MAX + 1) * sums);
        *self.inners[other as usize] = right;
        false
    }

    /// A row's value in the column of a sum has become another; its key has not.
    pub fn adjust(
        &mut self,
        entry: Entry,
        key: &[u8],
        sum: usize,
        (old, new): (Total, Total),
        keys: &impl Keys,
    ) {
        let probe = Probe { prefix: entry.prefix, key, tie: Tie::Row(entry.id) };
        let (mut node, sums) = (self.root, self.sums);
        for _ in 0..self.height {
            let at = child(self.inner(node), &probe, keys);
            let inner = &mut self.inners[node as usize];
            let total = &mut inner.totals[at * sums + sum];
            total.take(old);
            total.add(new);
            node = inner.slots[at].child;
        }
    }
}

impl Tree {
    fn first_of(&self, node: u32, height: u32) -> Entry {
        match height {
            0 => self.leaf(node).entry(0),
            _ => self.inner(node).slots[0].first,
        }
    }

    fn refresh(&mut self, node: u32, at: usize, below: u32, height: u32, keys: &impl Keys) {
        let (slot, totals): (Slot, _) = self.summary(below, height - 1, keys);
        let sums = self.sums;
        let inner = &mut self.inners[node as usize];
        inner.slots[at] = slot;
        inner.totals[at * sums..(at + 1) * sums].copy_from_slice(&totals);
    }

    fn put_leaf(&mut self, leaf: Box<Leaf>) -> u32 {
        match self.free_leaves.pop() {
            Some(at) => {
                self.leaves[at as usize] = leaf;
                at
            }
            None => {
                self.leaves.push(leaf);
                self.leaves.len() as u32 - 1
            }
        }
    }

    fn put_inner(&mut self, inner: Box<Inner>) -> u32 {
        match self.free_inners.pop() {
            Some(at) => {
                self.inners[at as usize] = inner;
                at
            }
            None => {
                self.inners.push(inner);
                self.inners.len() as u32 - 1
            }
        }
    }

    fn drop_inner(&mut self, at: u32) {
        *self.inners[at as usize] = Inner::default();
        self.free_inners.push(at);
    }
}
