//! The order of a sorted set: a B+ tree that counts, so that ranks are found as fast as scores.
//!
//! ```text
//!                    inner: (first, count, node) ...
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
    Inner(Vec<Child>),
}

#[derive(Debug, Clone)]
struct Child {
    first: Place,
    /// Places below it.
    count: usize,
    node: Node,
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
        let leaves = places.chunks(full).map(|chunk| Child::of(Node::Leaf(chunk.to_vec())));
        let mut level: Vec<Child> = leaves.collect();
        while level.len() > full {
            let mut rest = level.into_iter().peekable();
            level = Vec::new();
            while rest.peek().is_some() {
                level.push(Child::of(Node::Inner(rest.by_ref().take(full).collect())));
            }
        }
        Order { root: Node::Inner(level), len: places.len() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// `than` says how a place compares with the new one, which is not there yet.
    pub fn insert(&mut self, place: Place, than: impl Fn(&Place) -> Ordering) {
        self.len += 1;
        if let Some(right) = self.root.insert(place, &than) {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
            self.root = Node::Inner(vec![Child::of(left), right]);
        }
    }

    /// `than` says how a place compares with the one to be removed. False when it is not there.
    pub fn remove(&mut self, than: impl Fn(&Place) -> Ordering) -> bool {
        if !self.root.remove(&than) {
            return false;
        }
        self.len -= 1;
        while let Node::Inner(children) = &mut self.root {
            match children.len() {
                0 => self.root = Node::Leaf(Vec::new()),
                1 => self.root = children.remove(0).node,
                _ => break,
            }
        }
        true
    }

    /// How many places are at the beginning for which `is` holds; it holds for none behind.
    pub fn count_while(&self, is: impl Fn(&Place) -> bool) -> usize {
        let (mut node, mut count) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(places) => return count + places.partition_point(&is),
                Node::Inner(children) => {
                    let after = children.partition_point(|child| is(&child.first));
                    let Some(at) = after.checked_sub(1) else { return count };
                    count += children[..at].iter().map(|child| child.count).sum::<usize>();
                    node = &children[at].node;
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
                Node::Inner(children) => {
                    let mut below = children.iter();
                    let next = below.find(|child| match rank.checked_sub(child.count) {
                        Some(rest) => {
                            rank = rest;
                            false
                        }
                        None => true,
                    });
                    match next {
                        Some(child) => node = &child.node,
                        None => return (&[], 0),
                    }
                }
            }
        }
    }
}

impl Child {
    /// The node is not empty.
    fn of(node: Node) -> Child {
        Child { first: node.first(), count: node.count(), node }
    }
}

impl Node {
    fn first(&self) -> Place {
        match self {
            Node::Leaf(places) => places[0],
            Node::Inner(children) => children[0].first,
        }
    }

    fn count(&self) -> usize {
        match self {
            Node::Leaf(places) => places.len(),
            Node::Inner(children) => children.iter().map(|child| child.count).sum(),
        }
    }

    fn width(&self) -> usize {
        match self {
            Node::Leaf(places) => places.len(),
            Node::Inner(children) => children.len(),
        }
    }

    /// Gives what has to become its right neighbour.
    fn insert(&mut self, place: Place, than: &impl Fn(&Place) -> Ordering) -> Option<Child> {
        match self {
            Node::Leaf(places) => {
                let at = places.partition_point(|other| than(other).is_lt());
                let right = insert_at(places, at, place)?;
                Some(Child::of(Node::Leaf(right)))
            }
            Node::Inner(children) => {
                let after = children.partition_point(|child| than(&child.first).is_lt());
                let at = after.saturating_sub(1);
                let child = &mut children[at];
                let new = child.node.insert(place, than);
                child.first = child.node.first();
                child.count += 1;
                let new = new?;
                child.count -= new.count;
                let right = insert_at(children, at + 1, new)?;
                Some(Child::of(Node::Inner(right)))
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
            Node::Inner(children) => {
                let after = children.partition_point(|child| than(&child.first).is_le());
                let Some(at) = after.checked_sub(1) else { return false };
                let child = &mut children[at];
                if !child.node.remove(than) {
                    return false;
                }
                child.count -= 1;
                if child.count == 0 {
                    children.remove(at);
                } else {
                    child.first = child.node.first();
                    join(children, at);
                }
                true
            }
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

/// Joins a child that has become small with a neighbour, if both fit one node with room to spare.
fn join(children: &mut Vec<Child>, at: usize) {
    if children[at].node.width() > WIDTH / 4 {
        return;
    }
    for left in [at.wrapping_sub(1), at] {
        let (Some(a), Some(b)) = (children.get(left), children.get(left.wrapping_add(1))) else {
            continue;
        };
        if a.node.width() + b.node.width() > WIDTH * 3 / 4 {
            continue;
        }
        let gone = children.remove(left + 1);
        let kept = &mut children[left];
        match (&mut kept.node, gone.node) {
            (Node::Leaf(places), Node::Leaf(mut more)) => places.append(&mut more),
            (Node::Inner(nodes), Node::Inner(mut more)) => nodes.append(&mut more),
            _ => unreachable!("neighbours are of one height"),
        }
        kept.count += gone.count;
        return;
    }
}
