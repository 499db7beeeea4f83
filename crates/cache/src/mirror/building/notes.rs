//! What rows were before they changed.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::super::rows::{Fields, Rows};

/// More are given up.
const ROWS_MAX: usize = 1 << 20;
const BYTES_MAX: usize = 64 << 20;

/// By a row's number. Numbers are used again: the row before and the one after may be two.
#[derive(Debug)]
pub(in super::super) struct Notes {
    token: Arc<()>,
    rows: HashMap<u32, Note, RandomState>,
    /// Of what rows were.
    bytes: usize,
}

#[derive(Debug)]
struct Note {
    /// None: there was no row.
    before: Option<Box<[u8]>>,
    /// There is one now.
    lives: bool,
}

/// A table as it was when `older` notes began or, without those, `newer` ones.
#[derive(Clone, Copy)]
pub(in super::super) struct Frozen<'a> {
    pub rows: &'a Rows,
    pub older: Option<&'a Notes>,
    pub newer: Option<&'a Notes>,
}

impl Notes {
    pub fn new(token: &Arc<()>) -> Notes {
        Notes { token: token.clone(), rows: HashMap::default(), bytes: 0 }
    }

    pub fn is_for(&self, token: &Arc<()>) -> bool {
        Arc::ptr_eq(&self.token, token)
    }

    pub fn bytes(&self) -> u64 {
        // A table is an eighth larger than what it may hold, and has a byte for each place.
        let places = self.rows.capacity() * 8 / 7;
        (places * (size_of::<(u32, Note)>() + 1) + self.bytes) as u64
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn know(&self, id: u32) -> bool {
        self.rows.contains_key(&id)
    }

    /// Whether there was a row.
    pub fn had(&self, id: u32) -> bool {
        self.rows.get(&id).is_some_and(|note| note.before.is_some())
    }

    /// Whether there is one since.
    pub fn has(&self, id: u32) -> bool {
        self.rows.get(&id).is_some_and(|note| note.lives)
    }

    pub fn ids(&self) -> Vec<u32> {
        self.rows.keys().copied().collect()
    }

    /// A row is about to go or to be another. False: there are too many.
    pub fn goes(&mut self, id: u32, rows: &Rows) -> bool {
        let Notes { rows: notes, bytes, .. } = self;
        let note = notes.entry(id).or_insert_with(|| {
            let before = rows.image(id);
            *bytes += before.len();
            Note { before: Some(before), lives: true }
        });
        note.lives = false;
        self.is_bounded()
    }

    /// A row has come. False: there are too many.
    pub fn came(&mut self, id: u32) -> bool {
        self.rows.entry(id).or_insert(Note { before: None, lives: true }).lives = true;
        self.is_bounded()
    }

    fn is_bounded(&self) -> bool {
        self.rows.len() <= ROWS_MAX && self.bytes <= BYTES_MAX
    }

    /// None: it knows nothing of this row.
    fn before(&self, id: u32) -> Option<Option<&[u8]>> {
        self.rows.get(&id).map(|note| note.before.as_deref())
    }
}

impl Fields for Frozen<'_> {
    fn field(&self, id: u32, column: u16) -> Option<&[u8]> {
        let older = self.older.and_then(|notes| notes.before(id));
        match older.or_else(|| self.newer.and_then(|notes| notes.before(id))) {
            Some(before) => self.rows.field_in(before?, column),
            None => self.rows.field(id, column),
        }
    }
}
