//! What a client has prepared, under the names it gave.
//!
//! A change is made when the request passes, so that the next one of the same pipeline finds it,
//! and taken back when PostgreSQL turns out to have skipped the request. A name whose last change
//! belongs to a batch that is not answered yet is *uncertain* for later batches; the session
//! holds such a request back until it knows.

use std::collections::VecDeque;
use std::sync::Arc;

use backend::statement::Statement;
use hashbrown::HashMap;

#[derive(Debug, Default)]
pub struct Names {
    known: HashMap<Box<[u8]>, Arc<Statement>, foldhash::fast::RandomState>,
    /// Changes in flight, in order.
    pending: VecDeque<Change>,
    /// Those of the batch being answered that were skipped, in order.
    skipped: Vec<Change>,
    batch: u32,
}

#[derive(Debug)]
struct Change {
    name: Box<[u8]>,
    before: Option<Arc<Statement>>,
    batch: u32,
}

impl Names {
    pub fn get(&self, name: &[u8]) -> Option<&Arc<Statement>> {
        self.known.get(name)
    }

    /// The first name that fits.
    pub fn find(&self, fits: impl Fn(&[u8]) -> bool) -> Option<Box<[u8]>> {
        self.known.keys().find(|name| fits(name)).cloned()
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.pending.is_empty() && self.skipped.is_empty()
    }

    /// Whether an unanswered earlier batch decides what this name means.
    pub fn is_uncertain(&self, name: &[u8]) -> bool {
        self.pending.iter().any(|change| change.batch != self.batch && *change.name == *name)
    }

    /// A Parse with this name has been sent; [`Names::settled`] follows.
    pub fn prepare(&mut self, name: &[u8], statement: Arc<Statement>) {
        let before = self.known.insert(name.into(), statement);
        self.pending.push_back(Change { name: name.into(), before, batch: self.batch });
    }

    /// A Close of this name has been sent; [`Names::settled`] follows.
    pub fn close(&mut self, name: &[u8]) {
        let before = self.known.remove(name);
        self.pending.push_back(Change { name: name.into(), before, batch: self.batch });
    }

    /// The oldest change in flight was done, or was skipped.
    pub fn settled(&mut self, done: bool) {
        if let Some(change) = self.pending.pop_front() {
            if !done {
                self.skipped.push(change);
            }
        }
    }

    /// A Sync or a Query has been sent: what follows is another batch.
    pub fn next_batch(&mut self) {
        self.batch = self.batch.wrapping_add(1);
    }

    /// A batch is answered: what it skipped is undone, the last change first.
    pub fn answered(&mut self) {
        while let Some(change) = self.skipped.pop() {
            match change.before {
                Some(statement) => self.known.insert(change.name, statement),
                None => self.known.remove(&change.name),
            };
        }
    }

    /// DEALLOCATE name.
    pub fn forget(&mut self, name: &[u8]) {
        self.known.remove(name);
    }

    /// DEALLOCATE ALL, DISCARD ALL: what was sent after it stays.
    pub fn clear(&mut self) {
        let pending = &self.pending;
        self.known.retain(|name, _| pending.iter().any(|change| change.name == *name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backend::statement::{Numbers, Registry};

    #[test]
    fn a_skipped_batch_leaves_everything_as_it_was() {
        let mut registry = Registry::new(Numbers::default());
        let (a, b) = (registry.intern(b"a", b""), registry.intern(b"b", b""));
        let mut names = Names::default();
        names.prepare(b"kept", a.clone());
        names.settled(true);
        names.next_batch();
        names.answered();

        names.close(b"kept");
        names.prepare(b"kept", b.clone());
        names.prepare(b"new", b.clone());
        names.close(b"new");
        names.next_batch();
        assert!(names.is_uncertain(b"kept") && names.is_uncertain(b"new"));
        assert!(!names.is_uncertain(b"other"));
        for _ in 0..4 {
            names.settled(false);
        }
        names.answered();
        assert_eq!(names.get(b"kept").map(|statement| statement.id), Some(a.id));
        assert!(names.get(b"new").is_none());
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn within_a_batch_a_name_is_certain() {
        let mut registry = Registry::new(Numbers::default());
        let mut names = Names::default();
        names.prepare(b"s", registry.intern(b"a", b""));
        assert!(!names.is_uncertain(b"s"));
        names.next_batch();
        assert!(names.is_uncertain(b"s"));
        names.settled(true);
        assert!(!names.is_uncertain(b"s"));
    }
}
