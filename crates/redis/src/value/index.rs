//! Elements by name: a hash table in the order of hashes, so that a scan can go on where it was
//! though the table has grown or shrunk meanwhile.
//!
//! Cells are sorted by hash. An element's *home* is given by its hash's leading bits; it lies there
//! or, if that is taken, behind, with no empty cell in between (linear probing that keeps the
//! order). The cursor of a scan is a hash: what has that hash or a greater one is still to come,
//! wherever the cells are by then.

use std::hash::BuildHasher;
use std::sync::LazyLock;

/// Where an element is kept.
pub type Slot = u32;

#[derive(Debug, Clone, Copy)]
struct Cell {
    hash: u32,
    slot: Slot,
}

const EMPTY: Cell = Cell { hash: 0, slot: Slot::MAX };

impl Cell {
    fn is_empty(self) -> bool {
        self.slot == Slot::MAX
    }
}

/// At most this many leading bits are used.
const BITS_MAX: u32 = 30;
const BITS_MIN: u32 = 4;

#[derive(Debug, Clone, Default)]
pub struct Index {
    /// One for each home, and a few behind the last.
    cells: Vec<Cell>,
    bits: u32,
    len: usize,
}

/// The same in the whole process, so that a value that was dropped from memory and loaded again
/// goes on with its scans; another one in each process, so that nobody can aim at collisions.
pub fn hash(name: &[u8]) -> u32 {
    static SEED: LazyLock<foldhash::quality::RandomState> = LazyLock::new(Default::default);
    (SEED.hash_one(name) >> 32) as u32
}

impl Index {
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn home(&self, hash: u32) -> usize {
        (hash >> (32 - self.bits)) as usize
    }

    /// The first cell from a hash's home on that is empty or has this hash or a greater one.
    fn seek(&self, hash: u32) -> usize {
        let mut at = self.home(hash);
        while self.cells.get(at).is_some_and(|cell| !cell.is_empty() && cell.hash < hash) {
            at += 1;
        }
        at
    }

    /// The element of this hash that `is` says.
    pub fn find(&self, hash: u32, is: impl Fn(Slot) -> bool) -> Option<Slot> {
        if self.cells.is_empty() {
            return None;
        }
        let same = self.cells[self.seek(hash).min(self.cells.len())..].iter();
        let mut same = same.take_while(|cell| !cell.is_empty() && cell.hash == hash);
        same.find(|cell| is(cell.slot)).map(|cell| cell.slot)
    }

    /// It is not there yet.
    pub fn insert(&mut self, hash: u32, slot: Slot) {
        if self.cells.is_empty() || (self.len + 1) * 5 > (1 << self.bits) * 4 {
            self.resize((self.bits + 1).clamp(BITS_MIN, BITS_MAX));
        }
        let at = self.seek(hash);
        let rest = self.cells.get(at..).unwrap_or_default();
        let end = rest.iter().position(|cell| cell.is_empty()).map_or(self.cells.len(), |n| at + n);
        if end == self.cells.len() {
            self.cells.push(EMPTY);
        }
        self.cells.copy_within(at..end, at + 1);
        self.cells[at] = Cell { hash, slot };
        self.len += 1;
    }

    pub fn remove(&mut self, hash: u32, slot: Slot) {
        if self.cells.is_empty() {
            return;
        }
        let from = self.seek(hash);
        let rest = self.cells.get(from..).unwrap_or_default();
        let Some(at) = rest.iter().position(|cell| cell.slot == slot).map(|n| from + n) else {
            return;
        };
        let mut end = at + 1;
        while self.cells.get(end).is_some_and(|cell| !cell.is_empty() && self.home(cell.hash) < end)
        {
            end += 1;
        }
        self.cells.copy_within(at + 1..end, at);
        self.cells[end - 1] = EMPTY;
        self.len -= 1;
        if self.bits > BITS_MIN && self.len * 8 < 1 << self.bits {
            self.resize(self.bits - 1);
        }
    }

    fn resize(&mut self, bits: u32) {
        let before = std::mem::take(&mut self.cells);
        self.bits = bits;
        self.cells = vec![EMPTY; 1 << bits];
        let mut free = 0;
        for cell in before.into_iter().filter(|cell| !cell.is_empty()) {
            let at = free.max(self.home(cell.hash));
            if at == self.cells.len() {
                self.cells.push(EMPTY);
            }
            self.cells[at] = cell;
            free = at + 1;
        }
    }

    /// Calls `found` with about `count` elements from `cursor` on (0: from the beginning) and gives
    /// where to go on; 0 when there are no more. What is there from a scan's beginning to its end
    /// is found.
    pub fn scan(&self, cursor: u64, count: usize, mut found: impl FnMut(Slot)) -> u64 {
        let Ok(from) = u32::try_from(cursor) else { return 0 };
        if self.cells.is_empty() {
            return 0;
        }
        let start = self.home(from).min(self.cells.len());
        let cells = self.cells[start..].iter();
        let (mut left, mut last) = (count, None);
        for cell in cells.filter(|cell| !cell.is_empty() && cell.hash >= from) {
            if left == 0 && last != Some(cell.hash) {
                return u64::from(cell.hash);
            }
            left = left.saturating_sub(1);
            last = Some(cell.hash);
            found(cell.slot);
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_with_few_hashes_are_found_and_scanned() {
        for spread in [1, 1 << 10, 1 << 20, 1 << 25] {
            let mut index = Index::default();
            let hash = |slot: u32| (slot % 97).wrapping_mul(spread).wrapping_sub(slot % 3);
            for slot in 0..500 {
                index.insert(hash(slot), slot);
            }
            for slot in (0..500).filter(|slot| slot % 4 == 1) {
                index.remove(hash(slot), slot);
            }
            for slot in 0..500 {
                let found = index.find(hash(slot), |other| other == slot);
                assert_eq!(found, (slot % 4 != 1).then_some(slot));
            }
            let (mut seen, mut cursor) = (Vec::new(), 0);
            loop {
                cursor = index.scan(cursor, 7, |slot| seen.push(slot));
                if cursor == 0 {
                    break;
                }
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..500).filter(|slot| slot % 4 != 1).collect::<Vec<_>>());
            for slot in (0..500).filter(|slot| slot % 4 != 1) {
                index.remove(hash(slot), slot);
            }
            assert!(index.is_empty());
        }
    }

    #[test]
    fn what_stays_is_scanned_though_the_table_changes() {
        let mut index = Index::default();
        let name = |slot: u32| hash(&slot.to_le_bytes());
        (0..1000).for_each(|slot| index.insert(name(slot), slot));
        let (mut seen, mut cursor, mut round) = (Vec::new(), 0, 0);
        loop {
            cursor = index.scan(cursor, 10, |slot| seen.push(slot));
            if cursor == 0 {
                break;
            }
            match round {
                0..20 => {
                    (0..100).for_each(|n| {
                        let slot = 1000 + round * 100 + n;
                        index.insert(name(slot), slot);
                    });
                }
                20..60 => {
                    (0..70).for_each(|n| {
                        let slot = 100 + (round - 20) * 70 + n;
                        index.remove(name(slot), slot);
                    });
                }
                _ => {}
            }
            round += 1;
        }
        (0..100).for_each(|slot| assert!(seen.contains(&slot), "{slot}"));
    }
}
