//! What has changed of a collection, and how to undo it.

use std::hash::Hash;

use hashbrown::HashSet;

/// A collection's account of its changes: `K` names an element, `U` is one step of undoing.
#[derive(Debug, Clone)]
pub struct Track<K, U> {
    pub kid: i64,
    edits: u64,
    changed: HashSet<K, foldhash::fast::RandomState>,
    undo: Option<Vec<U>>,
}

impl<K, U> Default for Track<K, U> {
    fn default() -> Track<K, U> {
        Track { kid: 0, edits: 0, changed: HashSet::default(), undo: None }
    }
}

impl<K: Hash + Eq, U> Track<K, U> {
    pub fn edits(&self) -> u64 {
        self.edits
    }

    /// An element is another one than before: its row has to be written or deleted. `undo` says
    /// how it was; it is asked only while a script may have to be undone.
    pub fn change(&mut self, element: K, undo: impl FnOnce() -> U) {
        self.changed.insert(element);
        self.step(undo);
    }

    /// As [`Track::change`] for what has no row of its own.
    pub fn step(&mut self, undo: impl FnOnce() -> U) {
        self.edits += 1;
        if let Some(steps) = &mut self.undo {
            steps.push(undo());
        }
    }

    /// An element's row has to be written again; what is to be undone is noted elsewhere.
    pub fn moved(&mut self, element: K) {
        self.changed.insert(element);
        self.edits += 1;
    }

    /// Whether changes may have to be undone.
    pub fn is_remembering(&self) -> bool {
        self.undo.is_some()
    }

    /// All elements whose rows have to be written, each once; afterwards there are none.
    pub fn take(&mut self) -> HashSet<K, foldhash::fast::RandomState> {
        std::mem::take(&mut self.changed)
    }

    pub fn remember(&mut self) {
        self.undo.get_or_insert_default();
    }

    /// The steps to be undone, to be taken from the end. Elements stay counted as changed: writing
    /// a row that has not changed does no harm.
    pub fn undo(&mut self) -> Vec<U> {
        self.undo.take().unwrap_or_default()
    }

    pub fn keep(&mut self) {
        self.undo = None;
    }
}
