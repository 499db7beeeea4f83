//! A hash table whose elements can be chosen at random and scanned in pieces.
//!
//! ```text
//! buckets   [ 2 | - | 0 | - ]            hash & 3: the first element of a chain
//!             |       |
//! slots     [ 0: hash, next 1 | 1: hash, end | 2: hash, end ]
//! ```
//!
//! Elements lie in one vector, so that one at random takes a look at one place. A removed one's
//! place is taken by the last.
//!
//! A scan goes from bucket to bucket, counting from the highest bit of the bucket's number
//! downwards, as Redis's `dictScan` does: what was in one bucket is in buckets that follow each
//! other in this order when there are more buckets, and the other way round. So what is there from a scan's
//! beginning to its end is told, however often the table grows and shrinks meanwhile. Hashes are
//! the same for all tables of a process: a scan can go on after the value has left memory and has
//! been loaded again.

use std::hash::BuildHasher;
use std::sync::LazyLock;

/// What is found by its name.
pub trait Named {
    fn name(&self) -> &[u8];
}

impl Named for Box<[u8]> {
    fn name(&self) -> &[u8] {
        self
    }
}

#[derive(Debug, Clone)]
pub struct Table<E> {
    slots: Vec<Slot<E>>,
    /// As many as a power of two; none while there is no element.
    buckets: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Slot<E> {
    hash: u32,
    next: u32,
    element: E,
}

/// The end of a chain.
const END: u32 = u32::MAX;

const BUCKETS_MIN: usize = 16;

/// Fewer elements than a bucket in so many make the table smaller.
const SPARSE: usize = 8;

/// Empty buckets a scan looks at, for each element asked for.
const EMPTY_MAX: usize = 10;

impl<E> Default for Table<E> {
    fn default() -> Table<E> {
        Table { slots: Vec::new(), buckets: Vec::new() }
    }
}

fn hash(name: &[u8]) -> u32 {
    static HASHER: LazyLock<foldhash::quality::RandomState> =
        LazyLock::new(foldhash::quality::RandomState::default);
    HASHER.hash_one(name) as u32
}

impl<E: Named> Table<E> {
    pub fn with_capacity(elements: usize) -> Table<E> {
        let buckets = elements.next_power_of_two().max(BUCKETS_MIN);
        Table { slots: Vec::with_capacity(elements), buckets: vec![END; buckets] }
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of the table without what its elements own.
    pub fn weight(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<E>>() + self.buckets.len() * size_of::<u32>()
    }

    /// In no particular order.
    pub fn iter(&self) -> Iter<'_, E> {
        Iter { slots: self.slots.iter() }
    }

    /// `at`: less than [`Table::len`].
    pub fn get(&self, at: usize) -> &E {
        &self.slots[at].element
    }

    /// The element keeps its name.
    pub fn get_mut(&mut self, at: usize) -> &mut E {
        &mut self.slots[at].element
    }

    pub fn find(&self, name: &[u8]) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let hash = hash(name);
        let mut at = self.buckets[self.bucket(hash)];
        while at != END {
            let slot = &self.slots[at as usize];
            if slot.hash == hash && slot.element.name() == name {
                return Some(at as usize);
            }
            at = slot.next;
        }
        None
    }

    /// None of its name is there.
    pub fn insert(&mut self, element: E) {
        if self.slots.len() >= self.buckets.len() {
            self.resize((self.buckets.len() * 2).max(BUCKETS_MIN));
        }
        let hash = hash(element.name());
        let bucket = self.bucket(hash);
        let next = std::mem::replace(&mut self.buckets[bucket], self.slots.len() as u32);
        self.slots.push(Slot { hash, next, element });
    }

    pub fn remove(&mut self, at: usize) -> E {
        let next = self.slots[at].next;
        *self.link_to(at) = next;
        let last = self.slots.len() - 1;
        if at != last {
            *self.link_to(last) = at as u32;
        }
        let slot = self.slots.swap_remove(at);
        if self.buckets.len() > BUCKETS_MIN && self.slots.len() < self.buckets.len() / SPARSE {
            self.slots.shrink_to_fit();
            self.resize((self.buckets.len() / SPARSE * 2).max(BUCKETS_MIN));
        }
        slot.element
    }

    /// Gives elements to `each`, about `count` of them, from `cursor` on; 0 begins. Gives the
    /// cursor to go on with; 0 ends.
    pub fn scan<'a>(&'a self, cursor: u64, count: usize, mut each: impl FnMut(&'a E)) -> u64 {
        if self.slots.is_empty() {
            return 0;
        }
        let mask = self.buckets.len() as u64 - 1;
        let (mut cursor, mut given) = (cursor, 0);
        let mut buckets_left = count.saturating_mul(EMPTY_MAX);
        loop {
            let mut at = self.buckets[(cursor & mask) as usize];
            while at != END {
                let slot = &self.slots[at as usize];
                each(&slot.element);
                given += 1;
                at = slot.next;
            }
            // One more, with the carry going from the highest bit of the mask downwards.
            cursor = (cursor | !mask).reverse_bits().wrapping_add(1).reverse_bits();
            if cursor == 0 || given >= count || buckets_left == 0 {
                return cursor;
            }
            buckets_left -= 1;
        }
    }

    fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// What says that the element at `at` follows.
    fn link_to(&mut self, at: usize) -> &mut u32 {
        let bucket = self.bucket(self.slots[at].hash);
        let mut before = self.buckets[bucket];
        if before as usize == at {
            return &mut self.buckets[bucket];
        }
        while self.slots[before as usize].next as usize != at {
            before = self.slots[before as usize].next;
        }
        &mut self.slots[before as usize].next
    }

    fn resize(&mut self, buckets: usize) {
        self.buckets.clear();
        self.buckets.resize(buckets, END);
        self.buckets.shrink_to_fit();
        let mask = buckets - 1;
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let head = &mut self.buckets[slot.hash as usize & mask];
            slot.next = std::mem::replace(head, at as u32);
        }
    }
}

#[derive(Debug)]
pub struct Iter<'a, E> {
    slots: std::slice::Iter<'a, Slot<E>>,
}

impl<'a, E> Iterator for Iter<'a, E> {
    type Item = &'a E;

    fn next(&mut self) -> Option<&'a E> {
        self.slots.next().map(|slot| &slot.element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl<E> ExactSizeIterator for Iter<'_, E> {}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::random::Random;

    fn name(number: usize) -> Box<[u8]> {
        number.to_string().into_bytes().into()
    }

    #[test]
    fn a_table_has_what_a_model_has() {
        let mut random = Random::new(3);
        let mut table = Table::default();
        let mut model = HashSet::new();
        for round in 0..40_000 {
            let most = if round / 10_000 % 2 == 0 { 3_000 } else { 10 };
            let element = name(random.below(3_000));
            match table.find(&element) {
                Some(at) => {
                    assert!(model.remove(&element));
                    assert_eq!(table.remove(at), element);
                }
                None if model.len() < most => {
                    assert!(model.insert(element.clone()));
                    table.insert(element);
                }
                None if table.len() > 0 => {
                    let gone = table.remove(random.below(table.len()));
                    assert!(model.remove(&gone));
                }
                None => {}
            }
            assert_eq!(table.len(), model.len());
        }
        assert_eq!(table.iter().cloned().collect::<HashSet<_>>(), model);
    }

    #[test]
    fn a_scan_tells_all_that_stays_however_the_table_changes() {
        let mut random = Random::new(5);
        for round in 0..60 {
            let stay = 1 + random.below(400);
            let mut table = Table::default();
            (0..stay).for_each(|number| table.insert(name(number)));
            let mut others = 1_000_000;
            let mut told: HashMap<Box<[u8]>, usize> = HashMap::new();
            let mut cursor = 0;
            loop {
                cursor = table.scan(cursor, 1 + random.below(20), |element| {
                    *told.entry(element.clone()).or_default() += 1;
                });
                if cursor == 0 {
                    break;
                }
                match random.below(3) {
                    0 => (0..random.below(600)).for_each(|_| {
                        others += 1;
                        table.insert(name(others));
                    }),
                    1 => {
                        while others > 1_000_000 {
                            let at = table.find(&name(others)).unwrap();
                            table.remove(at);
                            others -= 1;
                        }
                    }
                    // As if it had left memory.
                    _ => {
                        let mut again = Table::default();
                        table.iter().for_each(|element| again.insert(element.clone()));
                        table = again;
                    }
                }
            }
            assert!((0..stay).all(|number| told.contains_key(&name(number))), "round {round}");
        }
    }

    #[test]
    fn a_scan_of_what_does_not_change_tells_everything_once() {
        let mut table = Table::default();
        (0..1000).for_each(|number| table.insert(name(number)));
        let (mut told, mut cursor, mut calls) = (Vec::new(), 0, 0);
        loop {
            cursor = table.scan(cursor, 10, |element| told.push(element.clone()));
            calls += 1;
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(told.len(), 1000);
        assert_eq!(told.into_iter().collect::<HashSet<_>>().len(), 1000);
        assert!((50..=120).contains(&calls), "{calls}");
    }
}
