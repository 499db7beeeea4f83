//! What a client has prepared, under the names it gave, and its unnamed statement.
//!
//! A change is made when the request passes, so that the next one of the same pipeline finds it,
//! and taken back when PostgreSQL turns out to have skipped the request. A name whose last change
//! belongs to a batch that is not answered yet is *uncertain* for later batches; the session
//! holds such a request back until it knows.

use std::collections::VecDeque;
use std::sync::Arc;

use backend::reply::Outcome;
use backend::statement::Statement;
use hashbrown::HashMap;

/// The last unnamed Parse, so that it can be repeated on another server.
#[derive(Debug)]
pub struct Unnamed {
    /// Tells it from every other client's, and from this one's earlier ones.
    pub stamp: u64,
    /// None when it was too long to be kept.
    pub text: Option<Arc<Statement>>,
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub struct Known {
    /// By SQL its text is the PREPARE, and it is this client's alone.
    pub statement: Arc<Statement>,
    pub sql: bool,
    /// The client has been told what types its parameters have.
    described: bool,
}

/// What a text in flight changes, as soon as PostgreSQL says that it is done.
#[derive(Debug)]
pub enum Naming {
    Prepare { name: Box<[u8]>, statement: Arc<Statement> },
    Deallocate(Box<[u8]>),
    All,
}

#[derive(Debug, Default)]
pub struct Names {
    known: HashMap<Box<[u8]>, Known, foldhash::fast::RandomState>,
    unnamed: Option<Box<Unnamed>>,
    /// Changes in flight, in order.
    pending: VecDeque<Change>,
    /// Those of the batch being answered that were skipped, in order.
    skipped: Vec<Change>,
    batch: u32,
}

#[derive(Debug)]
struct Change {
    batch: u32,
    undo: Undo,
}

/// What was there before.
#[derive(Debug)]
enum Undo {
    Named {
        name: Box<[u8]>,
        before: Option<Known>,
    },
    /// `all`: the named ones will be dropped too, when the answer says so.
    Unnamed {
        before: Option<Box<Unnamed>>,
        all: bool,
    },
}

impl Undo {
    fn is_of(&self, of: &[u8]) -> bool {
        match self {
            Undo::Named { name, .. } => **name == *of,
            Undo::Unnamed { all, .. } => *all || of.is_empty(),
        }
    }
}

impl Names {
    /// What it has by the protocol under this name.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<Statement>> {
        self.known.get(name).filter(|known| !known.sql).map(|known| &known.statement)
    }

    /// What it has under this name, whichever way it came there.
    pub fn known(&self, name: &[u8]) -> Option<&Known> {
        self.known.get(name)
    }

    /// A PREPARE is done.
    pub fn prepared_by_sql(&mut self, name: Box<[u8]>, statement: Arc<Statement>) {
        self.known.insert(name, Known { statement, sql: true, described: false });
    }

    /// The client will be told what this one's parameters are.
    pub fn described(&mut self, name: &[u8]) {
        if let Some(known) = self.known.get_mut(name) {
            known.described = true;
        }
    }

    /// Whether it has been.
    pub fn is_described(&self, name: &[u8]) -> bool {
        self.known.get(name).is_some_and(|known| known.described)
    }

    pub fn unnamed(&self) -> Option<&Unnamed> {
        self.unnamed.as_deref()
    }

    /// The first name of a statement by the protocol that fits.
    pub fn find(&self, fits: impl Fn(&[u8]) -> bool) -> Option<Box<[u8]>> {
        let mut by_protocol = self.known.iter().filter(|(_, known)| !known.sql);
        by_protocol.find(|(name, _)| fits(name)).map(|(name, _)| name.clone())
    }

    /// Wherever it has the statement of this number, it has the other one from now on.
    pub fn replace(&mut self, id: u64, by: &Arc<Statement>) {
        let old = self.known.values_mut().filter(|known| known.statement.id == id);
        old.for_each(|known| known.statement = by.clone());
    }

    /// Its statement of this number.
    pub fn numbered(&self, id: u64) -> Option<&Arc<Statement>> {
        self.known.values().map(|known| &known.statement).find(|statement| statement.id == id)
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
            && self.unnamed.is_none()
            && self.pending.is_empty()
            && self.skipped.is_empty()
    }

    /// Whether an unanswered earlier batch decides what this name means; the empty one is the
    /// unnamed statement's.
    pub fn is_uncertain(&self, name: &[u8]) -> bool {
        // In this batch, what follows a skipped request is skipped too.
        let mut changes = self.skipped.iter().chain(&self.pending);
        let last = changes.rfind(|change| change.undo.is_of(name));
        last.is_some_and(|change| change.batch != self.batch)
    }

    /// A Parse with this name has been sent; [`Names::settled`] follows.
    pub fn prepare(&mut self, name: &[u8], statement: Arc<Statement>) {
        let before =
            self.known.insert(name.into(), Known { statement, sql: false, described: false });
        self.change(Undo::Named { name: name.into(), before });
    }

    /// A Close of this name has been sent; [`Names::settled`] follows.
    pub fn close(&mut self, name: &[u8]) {
        let before = self.known.remove(name);
        self.change(Undo::Named { name: name.into(), before });
    }

    /// The unnamed statement was parsed or, by none, dropped; [`Names::settled`] follows.
    pub fn set_unnamed(&mut self, unnamed: Option<Box<Unnamed>>) {
        let before = std::mem::replace(&mut self.unnamed, unnamed);
        self.change(Undo::Unnamed { before, all: false });
    }

    /// The unnamed statement was parsed in a request with nothing else in flight, and is
    /// answered.
    pub fn keep_unnamed(&mut self, stamp: u64, text: Arc<Statement>) {
        let text = Some(text);
        match &mut self.unnamed {
            Some(unnamed) => **unnamed = Unnamed { stamp, text },
            None => self.unnamed = Some(Box::new(Unnamed { stamp, text })),
        }
    }

    /// A simple query has been sent, which drops the unnamed statement, and perhaps all. Whether
    /// [`Names::settled`] has to follow.
    pub fn queried(&mut self, drops_all: bool) -> bool {
        let mut changes = self.skipped.iter().chain(&self.pending);
        let drops = self.unnamed.is_some() || changes.any(|change| change.undo.is_of(b""));
        if drops || drops_all {
            let before = self.unnamed.take();
            self.change(Undo::Unnamed { before, all: drops_all });
        }
        drops || drops_all
    }

    fn change(&mut self, undo: Undo) {
        self.pending.push_back(Change { batch: self.batch, undo });
    }

    /// The oldest change in flight was done, or not.
    pub fn settled(&mut self, outcome: Outcome) {
        let Some(mut change) = self.pending.pop_front() else { return };
        match outcome {
            Outcome::Done => return,
            Outcome::Failed => {
                // PostgreSQL drops the old one before it looks at the new one.
                // Source: `exec_parse_message` in postgres.c, drop_unnamed_stmt.
                if let Undo::Unnamed { before, .. } = &mut change.undo {
                    *before = None;
                }
            }
            Outcome::Skipped => {}
        }
        self.skipped.push(change);
    }

    /// A Sync or a Query has been sent: what follows is another batch.
    pub fn next_batch(&mut self) {
        self.batch = self.batch.wrapping_add(1);
    }

    /// A batch is answered: what it skipped is undone, the last change first.
    pub fn answered(&mut self) {
        while let Some(change) = self.skipped.pop() {
            self.undo(change.undo);
        }
    }

    /// Nothing that is in flight will be answered.
    pub fn lost(&mut self) {
        while !self.pending.is_empty() {
            self.settled(Outcome::Skipped);
        }
        self.answered();
    }

    fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Named { name, before: was } => {
                for change in &mut self.pending {
                    if let Undo::Named { name: later, before } = &mut change.undo {
                        if *later == name {
                            *before = was;
                            return;
                        }
                    }
                }
                match was {
                    Some(known) => self.known.insert(name, known),
                    None => self.known.remove(&name),
                };
            }
            Undo::Unnamed { before: was, .. } => {
                for change in &mut self.pending {
                    if let Undo::Unnamed { before, .. } = &mut change.undo {
                        *before = was;
                        return;
                    }
                }
                self.unnamed = was;
            }
        }
    }

    /// DEALLOCATE name.
    pub fn forget(&mut self, name: &[u8]) {
        self.known.remove(name);
    }

    /// DEALLOCATE ALL, DISCARD ALL: what was sent after it stays.
    pub fn clear(&mut self) {
        let names = self.pending.iter().filter_map(|change| match &change.undo {
            Undo::Named { name, .. } => Some(&**name),
            Undo::Unnamed { .. } => None,
        });
        let later: Vec<&[u8]> = names.collect();
        self.known.retain(|name, _| later.contains(&&**name));
    }

    /// DISCARD ALL.
    pub fn forget_unnamed(&mut self) {
        let later = |change: &Change| matches!(change.undo, Undo::Unnamed { .. });
        if !self.pending.iter().any(later) {
            self.unnamed = None;
        }
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
        names.settled(Outcome::Done);
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
            names.settled(Outcome::Skipped);
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
        names.settled(Outcome::Done);
        assert!(!names.is_uncertain(b"s"));
    }

    fn stamp(names: &Names) -> Option<u64> {
        names.unnamed().map(|unnamed| unnamed.stamp)
    }

    #[test]
    fn a_skipped_unnamed_parse_leaves_the_one_before_and_a_failed_one_none() {
        let unnamed = |stamp| Some(Box::new(Unnamed { stamp, text: None }));
        let mut names = Names::default();
        names.set_unnamed(unnamed(1));
        names.next_batch();
        names.settled(Outcome::Done);
        names.answered();

        names.set_unnamed(unnamed(2));
        names.next_batch();
        assert!(names.is_uncertain(b""));
        names.settled(Outcome::Skipped);
        assert!(names.is_uncertain(b""), "it is undone only when the batch is answered");
        names.answered();
        assert_eq!((names.is_uncertain(b""), stamp(&names)), (false, Some(1)));

        names.set_unnamed(unnamed(3));
        names.next_batch();
        names.set_unnamed(unnamed(4));
        assert!(!names.is_uncertain(b""), "this batch has its own");
        names.settled(Outcome::Failed);
        names.answered();
        assert_eq!(stamp(&names), Some(4));
        names.next_batch();
        names.settled(Outcome::Skipped);
        names.answered();
        assert_eq!(stamp(&names), None);
        assert!(names.is_empty());
    }
}
