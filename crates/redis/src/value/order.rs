//! The order of a sorted set: a B+ tree that counts, so that ranks are found as fast as scores.
//!
//! ```text
//!                    inner: firsts, counts, nodes   
//!                   /                               \
//!      leaf: place place place ...          leaf: place place ...
//! ```
//!
//! A place is a score and the slot of its member, which decides between equal scores; the caller
//! compares, since it has the members. `first` is a node's first place, always exact, so that no
//! removed member is ever compared. Nodes split when full and are joined with a neighbour when both
//! are small; a leaf that is full at the end of the order stays full, since scores often grow.

use std::cmp::Ordering;

use super::index::Slot;

#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub score: f64,
    pub slot: Slot,
}

/// Places in a leaf, children of an inner node.
const WIDTH: usize = 64;

#[derive(Debug, Clone)]
enum Node {
    Leaf(Vec<Place>),
    Inner(Box<Inner>),
}

/// Children, each with its first place and how many places are below it. Kept apart, since a search
/// looks at a few of the first and a rank at many of the second.
#[derive(Debug, Clone, Default)]
struct Inner {
    firsts: Vec<Place>,
    counts: Vec<u32>,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone)]
pub struct Order {
    root: Node,
    len: usize,
}

impl Default for Order {
    fn default() -> Order {
        Order { root: Node::Leaf(Vec::new()), len: 0 }
    }
}

impl Order {
    /// The places are in order.
    pub fn build(places: &[Place]) -> Order {
        let full = WIDTH * 3 / 4;
        if places.len() <= full {
            return Order { root: Node::Leaf(places.to_vec()), len: places.len() };
        }
        let leaves = places.chunks(full).map(|chunk| Node::Leaf(chunk.to_vec()));
        let mut level: Vec<Node> = leaves.collect();
        while level.len() > full {
            let mut rest = level.into_iter().peekable();
            level = Vec::new();
            while rest.peek().is_some() {
                level.push(Node::Inner(Box::new(rest.by_ref().take(full).collect())));
            }
        }
        Order { root: Node::Inner(Box::new(level.into_iter().collect())), len: places.len() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// `than` says how a place compares with the new one, which is not there yet.
    pub fn insert(&mut self, place: Place, than: impl Fn(&Place) -> Ordering) {
        self.len += 1;
        if let Some(right) = self.root.insert(place, &than) {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
            self.root = Node::Inner(Box::new([left, right].into_iter().collect()));
        }
    }

    /// `than` says how a place compares with the one to be removed. False when it is not there.
    pub fn remove(&mut self, than: impl Fn(&Place) -> Ordering) -> bool {
        if !self.root.remove(&than) {
            return false;
        }
        self.len -= 1;
        while let Node::Inner(inner) = &mut self.root {
            if inner.nodes.len() > 1 {
                break;
            }
            self.root = inner.nodes.pop().unwrap_or(Node::Leaf(Vec::new()));
        }
        true
    }

    /// How many places are at the beginning for which `is` holds; it holds for none behind.
    pub fn count_while(&self, is: impl Fn(&Place) -> bool) -> usize {
        let (mut node, mut count) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(places) => return count + places.partition_point(&is),
                Node::Inner(inner) => {
                    let after = inner.firsts.partition_point(&is);
                    let Some(at) = after.checked_sub(1) else { return count };
                    count += inner.counts[..at].iter().sum::<u32>() as usize;
                    node = &inner.nodes[at];
                }
            }
        }
    }

    /// The leaf with the place of this rank, and where in it that is.
    pub fn leaf(&self, rank: usize) -> (&[Place], usize) {
        let (mut node, mut rank) = (&self.root, rank);
        loop {
            match node {
                Node::Leaf(places) => return (places, rank),
                Node::Inner(inner) => {
                    let next = inner.counts.iter().position(|count| {
                        let count = *count as usize;
                        let here = rank < count;
                        rank -= if here { 0 } else { count };
                        here
                    });
                    match next {
                        Some(at) => node = &inner.nodes[at],
                        None => return (&[], 0),
                    }
                }
            }
        }
    }
}

impl Node {
    /// It is not empty.
    fn first(&self) -> Place {
        match self {
            Node::Leaf(places) => places[0],
            Node::Inner(inner) => inner.firsts[0],
        }
    }

    fn count(&self) -> u32 {
        match self {
            Node::Leaf(places) => places.len() as u32,
            Node::Inner(inner) => inner.counts.iter().sum(),
        }
    }

    fn width(&self) -> usize {
        match self {
            Node::Leaf(places) => places.len(),
            Node::Inner(inner) => inner.nodes.len(),
        }
    }

    /// Gives what has to become its right neighbour.
    fn insert(&mut self, place: Place, than: &impl Fn(&Place) -> Ordering) -> Option<Node> {
        match self {
            Node::Leaf(places) => {
                let at = places.partition_point(|other| than(other).is_lt());
                insert_at(places, at, place).map(Node::Leaf)
            }
            Node::Inner(inner) => {
                let after = inner.firsts.partition_point(|first| than(first).is_lt());
                let at = after.saturating_sub(1);
                let new = inner.nodes[at].insert(place, than);
                inner.firsts[at] = inner.nodes[at].first();
                inner.counts[at] += 1;
                let new = new?;
                inner.counts[at] -= new.count();
                inner.insert(at + 1, new).map(|right| Node::Inner(Box::new(right)))
            }
        }
    }

    fn remove(&mut self, than: &impl Fn(&Place) -> Ordering) -> bool {
        match self {
            Node::Leaf(places) => {
                let at = places.partition_point(|other| than(other).is_lt());
                let found = places.get(at).is_some_and(|other| than(other).is_eq());
                if found {
                    places.remove(at);
                }
                found
            }
            Node::Inner(inner) => {
                let after = inner.firsts.partition_point(|first| than(first).is_le());
                let Some(at) = after.checked_sub(1) else { return false };
                if !inner.nodes[at].remove(than) {
                    return false;
                }
                inner.counts[at] -= 1;
                if inner.counts[at] == 0 {
                    inner.remove(at);
                } else {
                    inner.firsts[at] = inner.nodes[at].first();
                    inner.join(at);
                }
                true
            }
        }
    }
}

impl FromIterator<Node> for Inner {
    fn from_iter<I: IntoIterator<Item = Node>>(nodes: I) -> Inner {
        let nodes: Vec<Node> = nodes.into_iter().collect();
        let firsts = nodes.iter().map(Node::first).collect();
        let counts = nodes.iter().map(Node::count).collect();
        Inner { firsts, counts, nodes }
    }
}

impl Inner {
    /// Gives the right half, if it has become too wide.
    fn insert(&mut self, at: usize, node: Node) -> Option<Inner> {
        let firsts = insert_at(&mut self.firsts, at, node.first());
        let counts = insert_at(&mut self.counts, at, node.count());
        let nodes = insert_at(&mut self.nodes, at, node);
        Some(Inner { firsts: firsts?, counts: counts?, nodes: nodes? })
    }

    fn remove(&mut self, at: usize) -> Node {
        self.firsts.remove(at);
        self.counts.remove(at);
        self.nodes.remove(at)
    }

    /// Joins a child that has become small with a neighbour, if both fit one node with room to
    /// spare.
    fn join(&mut self, at: usize) {
        if self.nodes[at].width() > WIDTH / 4 {
            return;
        }
        for left in [at.wrapping_sub(1), at] {
            let (a, b) = (self.nodes.get(left), self.nodes.get(left.wrapping_add(1)));
            let (Some(a), Some(b)) = (a, b) else { continue };
            if a.width() + b.width() > WIDTH * 3 / 4 {
                continue;
            }
            let more = self.counts[left + 1];
            match (self.remove(left + 1), &mut self.nodes[left]) {
                (Node::Leaf(mut more), Node::Leaf(places)) => places.append(&mut more),
                (Node::Inner(mut more), Node::Inner(inner)) => {
                    inner.firsts.append(&mut more.firsts);
                    inner.counts.append(&mut more.counts);
                    inner.nodes.append(&mut more.nodes);
                }
                _ => unreachable!("neighbours are of one height"),
            }
            self.counts[left] += more;
            return;
        }
    }
}

/// Gives the right half, if it has become too wide.
fn insert_at<T>(items: &mut Vec<T>, at: usize, item: T) -> Option<Vec<T>> {
    if items.len() < WIDTH {
        items.insert(at, item);
        return None;
    }
    if at == items.len() {
        return Some(vec![item]);
    }
    let mut right = items.split_off(WIDTH / 2);
    match at.checked_sub(items.len()) {
        Some(at) => right.insert(at, item),
        None => items.insert(at, item),
    }
    Some(right)
}
