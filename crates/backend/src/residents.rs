//! Prepared statements that a server has under names of its client's own, because SQL names them:
//! what `PREPARE q` has made, and what `EXECUTE q` or `DEALLOCATE q` needs.
//!
//! Everything that is there under such a name has an entry, until PostgreSQL has said that it is
//! gone: so whoever gets the server next can be kept from finding it.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use crate::statement::Statement;

/// Tells the numbers of places from those of statements.
const PLACE: u64 = 1 << 63;

/// Whether a request's number is one of [`Residents::prepares`] or [`Residents::closes`].
pub(crate) fn is_place(number: u64) -> bool {
    number & PLACE != 0
}

#[derive(Debug, Default)]
pub struct Residents {
    known: HashMap<Box<[u8]>, Resident, foldhash::fast::RandomState>,
    /// What is in flight, by number: the name, and whether it closes.
    asked: HashMap<u64, (Box<[u8]>, bool), foldhash::fast::RandomState>,
    numbers: u64,
}

#[derive(Debug)]
struct Resident {
    statement: Arc<Statement>,
    /// It is this one, as far as the server has replied. Else it may be anything.
    sure: bool,
    last: Option<Asked>,
}

/// The last that is in flight for a name.
#[derive(Debug, Clone, Copy)]
struct Asked {
    number: u64,
    batch: u64,
    closes: bool,
}

impl Residents {
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether `batch` finds this statement under this name. Within a batch what depends on
    /// something that is skipped is skipped with it.
    pub fn has(&self, name: &[u8], statement: &Arc<Statement>, batch: u64) -> bool {
        let resident = self.known.get(name).filter(|one| Arc::ptr_eq(&one.statement, statement));
        resident.is_some_and(|resident| resident.is_there(batch))
    }

    /// Whether it finds any.
    pub fn is_taken(&self, name: &[u8], batch: u64) -> bool {
        self.known.get(name).is_some_and(|resident| resident.is_there(batch))
    }

    /// Whether there may be any.
    pub fn may_have(&self, name: &[u8]) -> bool {
        self.known.contains_key(name)
    }

    /// It will be prepared in `batch`, whatever was there before. The number is its request's.
    pub fn prepares(&mut self, name: &[u8], statement: &Arc<Statement>, batch: u64) -> u64 {
        let last = Some(self.ask(name, batch, false));
        let resident = Resident { statement: statement.clone(), sure: false, last };
        self.known.insert(name.into(), resident);
        self.numbers | PLACE
    }

    /// It will be closed in `batch`; none: there is nothing.
    pub fn closes(&mut self, name: &[u8], batch: u64) -> Option<u64> {
        self.known.get(name)?;
        let last = Some(self.ask(name, batch, true));
        self.known.get_mut(name)?.last = last;
        Some(self.numbers | PLACE)
    }

    fn ask(&mut self, name: &[u8], batch: u64, closes: bool) -> Asked {
        self.numbers += 1;
        let number = self.numbers | PLACE;
        self.asked.insert(number, (name.into(), closes));
        Asked { number, batch, closes }
    }

    /// A request was done, or it failed or was skipped.
    pub(crate) fn settled(&mut self, number: u64, done: bool) {
        let Some((name, closes)) = self.asked.remove(&number) else { return };
        let Some(resident) = self.known.get_mut(&name) else { return };
        if resident.last.is_none_or(|last| last.number != number) {
            // What is asked later may be skipped.
            resident.sure &= !done;
            return;
        }
        resident.last = None;
        if !closes {
            resident.sure = done;
        } else if done {
            self.known.remove(&name);
        }
    }

    /// The client's own PREPARE was done.
    pub fn made(&mut self, name: &[u8], statement: Arc<Statement>) {
        self.known.insert(name.into(), Resident { statement, sure: true, last: None });
    }

    /// Its own DEALLOCATE was.
    pub fn gone(&mut self, name: &[u8]) {
        self.known.remove(name);
    }

    /// A DEALLOCATE of nobody knows which.
    pub fn doubt(&mut self) {
        self.known.values_mut().for_each(|resident| resident.sure = false);
    }

    /// DEALLOCATE ALL, DISCARD ALL.
    pub fn clear(&mut self) {
        self.known.clear();
    }

    /// Names of those that are not surely `own`.
    pub fn foreign(&self, own: impl Fn(&[u8], &Arc<Statement>) -> bool) -> Vec<Box<[u8]>> {
        let mut foreign = Vec::new();
        for (name, resident) in &self.known {
            if !resident.sure || resident.last.is_some() || !own(name, &resident.statement) {
                foreign.push(name.clone());
            }
        }
        foreign
    }

    /// PostgreSQL has listed all that are there. Whether there are others than those known.
    pub fn compare<'n>(&mut self, listed: impl Iterator<Item = &'n [u8]>) -> bool {
        let listed: HashSet<&[u8], foldhash::fast::RandomState> = listed.collect();
        self.known.retain(|name, _| listed.contains(&**name));
        // What is known is listed now.
        listed.len() > self.known.len()
    }
}

impl Resident {
    fn is_there(&self, batch: u64) -> bool {
        match self.last {
            None => self.sure,
            Some(asked) => asked.batch == batch && !asked.closes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement() -> Arc<Statement> {
        Statement::unregistered(b"prepare q as select 1", b"")
    }

    #[test]
    fn a_statement_is_there_for_its_batch_at_once_and_for_others_when_it_is_answered() {
        let (mut residents, q) = (Residents::default(), statement());
        assert!(!residents.has(b"q", &q, 1));
        let number = residents.prepares(b"q", &q, 1);
        assert!(is_place(number));
        assert!(residents.has(b"q", &q, 1) && !residents.has(b"q", &q, 2));
        residents.settled(number, true);
        assert!(residents.has(b"q", &q, 2) && residents.is_taken(b"q", 2));
        assert!(!residents.has(b"q", &statement(), 2), "one of the same name is another");
    }

    #[test]
    fn what_was_skipped_may_be_anything_and_stays_known() {
        let (mut residents, q) = (Residents::default(), statement());
        let number = residents.prepares(b"q", &q, 1);
        residents.settled(number, false);
        assert!(!residents.has(b"q", &q, 2) && residents.may_have(b"q"));
        assert_eq!(residents.foreign(|_, _| true), [b"q".as_slice().into()]);
        residents.made(b"q", q.clone());
        let number = residents.closes(b"q", 3).expect("it is there");
        assert!(!residents.has(b"q", &q, 3));
        residents.settled(number, false);
        assert!(residents.has(b"q", &q, 4), "the Close was skipped");
        let number = residents.closes(b"q", 5).expect("it is there");
        residents.settled(number, true);
        assert!(residents.is_empty());
        assert_eq!(residents.closes(b"q", 6), None);
    }

    #[test]
    fn only_the_last_of_several_requests_decides() {
        let (mut residents, old, new) = (Residents::default(), statement(), statement());
        let first = residents.prepares(b"q", &old, 1);
        let second = residents.prepares(b"q", &new, 2);
        residents.settled(first, true);
        assert!(!residents.has(b"q", &new, 3));
        residents.settled(second, true);
        assert!(residents.has(b"q", &new, 3) && !residents.has(b"q", &old, 3));
    }

    #[test]
    fn a_close_that_was_done_counts_though_the_next_one_is_skipped() {
        let (mut residents, q) = (Residents::default(), statement());
        residents.made(b"q", q.clone());
        let first = residents.closes(b"q", 1).expect("it is there");
        let second = residents.closes(b"q", 2).expect("it may be there");
        residents.settled(first, true);
        residents.settled(second, false);
        assert!(!residents.has(b"q", &q, 3) && residents.may_have(b"q"));
        residents.made(b"r", q.clone());
        residents.doubt();
        assert!(!residents.is_taken(b"r", 3));
    }

    #[test]
    fn a_list_of_postgresqls_corrects_what_is_known() {
        let (mut residents, q) = (Residents::default(), statement());
        residents.made(b"q", q.clone());
        residents.made(b"r", q.clone());
        let others = residents.compare([&b"q"[..], b"made by a function"].into_iter());
        assert!(others && residents.may_have(b"q") && !residents.may_have(b"r"));
        assert!(!residents.compare([&b"q"[..]].into_iter()));
        assert!(residents.foreign(|name, _| name == b"q").is_empty());
    }
}
