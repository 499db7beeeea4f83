//! Where rows are that a folding batch has named before. It has places only: their names are the
//! batch's, which is looked at to tell them apart.

use std::hash::BuildHasher;

use hashbrown::HashTable;

#[derive(Debug, Default)]
pub(super) struct Index {
    hasher: foldhash::fast::RandomState,
    /// Hashes and places.
    table: HashTable<(u64, usize)>,
}

impl Index {
    /// The place of what belongs to `of` and has that name; if there is none, `next` becomes it.
    pub fn find_or_add(
        &mut self,
        of: i64,
        name: &[u8],
        next: usize,
        is_same: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let hash = self.hash(of, name);
        let found = self.get(hash, is_same);
        if found.is_none() {
            self.table.insert_unique(hash, (hash, next), |(hash, _)| *hash);
        }
        found
    }

    pub fn find(&self, of: i64, name: &[u8], is_same: impl Fn(usize) -> bool) -> Option<usize> {
        self.get(self.hash(of, name), is_same)
    }

    fn get(&self, hash: u64, is_same: impl Fn(usize) -> bool) -> Option<usize> {
        self.table.find(hash, |(_, at)| is_same(*at)).map(|(_, at)| *at)
    }

    fn hash(&self, of: i64, name: &[u8]) -> u64 {
        self.hasher.hash_one((of, name))
    }

    pub fn clear(&mut self) {
        self.table.clear();
    }
}
