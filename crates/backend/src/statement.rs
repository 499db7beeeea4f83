//! Protocol-level prepared statements: one name for one text on every server, and which of them
//! a server has.
//!
//! A client's `Parse` of a text that others have prepared too gets the same [`Statement`]; on a
//! server it is called `pondage_` and its number in hexadecimal, whatever the clients call it.
//!
//! Source: PostgreSQL docs, "Message Flow: Extended Query".

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

/// What server-side names begin with. A client's own name that begins so is never sent as it is.
pub const PREFIX: &[u8] = b"pondage_";

/// Distinct statements a [`Registry`] holds before it drops those that nobody uses.
const SWEEP_AT: usize = 4096;

/// A text with its parameter types, as one `Parse` said it.
#[derive(Debug)]
pub struct Statement {
    /// 0: none.
    pub id: u64,
    pub query: Box<[u8]>,
    /// The raw end of the Parse message: an i16 count and that many type OIDs.
    pub types: Box<[u8]>,
}

impl Statement {
    /// One that no [`Registry`] knows: it has no name on any server.
    pub fn unregistered(query: &[u8], types: &[u8]) -> Arc<Statement> {
        Arc::new(Statement { id: 0, query: query.into(), types: types.into() })
    }

    /// Its name on every server.
    pub fn name(&self) -> ServerName {
        ServerName::new(self.id)
    }

    /// Bytes it holds, its own structure included.
    pub fn size(&self) -> usize {
        std::mem::size_of::<Self>() + self.query.len() + self.types.len()
    }
}

/// `pondage_` and up to 16 hexadecimal digits, without an allocation.
#[derive(Debug, Clone, Copy)]
pub struct ServerName {
    bytes: [u8; PREFIX.len() + 16],
    len: u8,
}

impl ServerName {
    pub fn new(id: u64) -> ServerName {
        let mut bytes = [0u8; PREFIX.len() + 16];
        bytes[..PREFIX.len()].copy_from_slice(PREFIX);
        let digits = (u64::BITS - id.leading_zeros()).div_ceil(4).max(1) as usize;
        for at in 0..digits {
            let nibble = (id >> (4 * (digits - 1 - at))) as usize & 0xf;
            bytes[PREFIX.len() + at] = b"0123456789abcdef"[nibble];
        }
        ServerName { bytes, len: (PREFIX.len() + digits) as u8 }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Numbers for statements, unique in the process: a server that changes its worker keeps its names.
#[derive(Debug, Clone, Default)]
pub struct Numbers(Arc<AtomicU64>);

impl Numbers {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

#[derive(Debug)]
struct ByText(Arc<Statement>);

impl PartialEq for ByText {
    fn eq(&self, other: &Self) -> bool {
        self.0.query == other.0.query && self.0.types == other.0.types
    }
}

impl Eq for ByText {}

impl std::hash::Hash for ByText {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.0.query, &self.0.types).hash(state);
    }
}

#[derive(Hash)]
struct Text<'a>(&'a [u8], &'a [u8]);

impl hashbrown::Equivalent<ByText> for Text<'_> {
    fn equivalent(&self, key: &ByText) -> bool {
        *self.0 == *key.0.query && *self.1 == *key.0.types
    }
}

/// Whether a parameter's type is not said; there may be more parameters than types.
fn leaves_types_open(statement: &Statement) -> bool {
    let types = statement.types.get(2..).unwrap_or_default();
    let said = types.chunks_exact(4).filter(|oid| **oid != [0; 4]).count();
    let dollars = statement.query.iter().filter(|byte| **byte == b'$').count();
    said < dollars || said * 4 < types.len()
}

/// One worker's statements by text.
#[derive(Debug)]
pub struct Registry {
    known: HashSet<ByText, foldhash::fast::RandomState>,
    sweep_at: usize,
    numbers: Numbers,
}

impl Registry {
    pub fn new(numbers: Numbers) -> Registry {
        Registry { known: HashSet::default(), sweep_at: SWEEP_AT, numbers }
    }

    /// A statement that is shared with nobody.
    pub fn own(&self, query: &[u8], types: &[u8]) -> Arc<Statement> {
        Arc::new(Statement { id: self.numbers.next(), query: query.into(), types: types.into() })
    }

    pub fn intern(&mut self, query: &[u8], types: &[u8]) -> Arc<Statement> {
        if let Some(known) = self.known.get(&Text(query, types)) {
            return known.0.clone();
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| Arc::strong_count(&known.0) > 1);
            self.sweep_at = (self.known.len() * 2).max(SWEEP_AT);
        }
        let statement = Arc::new(Statement {
            id: self.numbers.next(),
            query: query.into(),
            types: types.into(),
        });
        self.known.insert(ByText(statement.clone()));
        statement
    }

    /// What it was planned for is defined otherwise now: the next Parse of its text gets another
    /// number, and so is planned anew on every server. Whoever has it keeps it.
    pub fn retire(&mut self, id: u64) {
        self.known.retain(|known| known.0.id != id);
    }

    /// Definitions have changed: as [`Registry::retire`], for all statements that left it to
    /// PostgreSQL what their parameters are. It settled that when it saw them first, for good, and
    /// would take a value of who prepares the text now for something else.
    pub fn redefined(&mut self) {
        self.known.retain(|known| !leaves_types_open(&known.0));
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Bytes of all texts, for SHOW MEM.
    pub fn bytes(&self) -> usize {
        self.known.iter().map(|known| known.0.size()).sum()
    }
}

/// The statements that one server has, or is being told to prepare or close.
///
/// Whether one is there is known for sure only up to the last reply: a Parse or Close in flight may
/// be skipped because of an error before it. Within a batch that does not matter, since what
/// depends on it is skipped with it; for a later batch it does.
#[derive(Debug, Default)]
pub struct Prepared {
    known: HashMap<u64, Place, foldhash::fast::RandomState>,
    /// Those that are there if nothing in flight is skipped.
    wanted: usize,
    /// Grows with every use, so that the least recently used one has the smallest.
    tick: u64,
}

#[derive(Debug, Default)]
struct Place {
    used: u64,
    /// The batch (requests up to a Sync) that used it last.
    batch: u64,
    /// It is there, as far as the server has replied.
    there: bool,
    /// Somebody may have deallocated it.
    doubtful: bool,
    /// It is there if nothing in flight is skipped.
    wanted: bool,
    /// The batch of the last Parse or Close in flight.
    asked_in: u64,
    /// Parses and Closes in flight.
    in_flight: u32,
}

/// What a batch has to do before it can bind a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Nothing,
    Parse,
    /// An earlier batch may or may not have prepared or closed it: close it, then parse it.
    CloseAndParse,
}

impl Prepared {
    /// What `batch` has to do before it binds `id`. Marks it used.
    pub fn need(&mut self, id: u64, batch: u64) -> Need {
        self.tick += 1;
        let Some(place) = self.known.get_mut(&id) else { return Need::Parse };
        let undecided = place.in_flight > 0 && place.asked_in != batch;
        if undecided || (place.in_flight == 0 && place.doubtful) {
            return Need::CloseAndParse;
        }
        if !place.wanted {
            return Need::Parse;
        }
        place.used = self.tick;
        place.batch = batch;
        Need::Nothing
    }

    /// Its Parse, or Close, is sent in `batch`.
    pub fn sent(&mut self, id: u64, parse: bool, batch: u64) {
        self.tick += 1;
        let place = self.known.entry(id).or_default();
        place.used = self.tick;
        place.batch = batch;
        place.asked_in = batch;
        place.in_flight += 1;
        self.wanted = self.wanted + usize::from(parse) - usize::from(place.wanted);
        place.wanted = parse;
    }

    /// Its oldest Parse or Close in flight was done, or it failed or was skipped.
    pub fn settled(&mut self, id: u64, parse: bool, done: bool) {
        let Some(place) = self.known.get_mut(&id) else { return };
        place.in_flight = place.in_flight.saturating_sub(1);
        if done {
            (place.there, place.doubtful) = (parse, false);
        }
        if place.in_flight == 0 {
            self.rest(id);
        }
    }

    /// Nothing is in flight for it: what is there is what is wanted.
    fn rest(&mut self, id: u64) {
        let Some(place) = self.known.get_mut(&id) else { return };
        self.wanted = self.wanted + usize::from(place.there) - usize::from(place.wanted);
        place.wanted = place.there;
        if !place.there {
            self.known.remove(&id);
        }
    }

    /// It could not be bound: perhaps what it was planned for has changed.
    pub fn doubt_one(&mut self, id: u64) {
        if let Some(place) = self.known.get_mut(&id) {
            place.doubtful = true;
        }
    }

    /// DEALLOCATE of nobody knows which: none can be relied on.
    pub fn doubt(&mut self) {
        self.known.values_mut().for_each(|place| place.doubtful = true);
    }

    /// DEALLOCATE ALL, DISCARD ALL.
    pub fn clear(&mut self) {
        self.known.retain(|_, place| {
            place.there = false;
            place.in_flight > 0
        });
        self.wanted = self.known.values().filter(|place| place.wanted).count();
    }

    /// Those that are there if nothing in flight is skipped.
    pub fn len(&self) -> usize {
        self.wanted
    }

    pub fn is_empty(&self) -> bool {
        self.wanted == 0
    }

    /// The one to close so that there is room for another under `limit`: the least recently used
    /// that this batch has not touched. The caller sends its Close.
    pub fn evict(&self, limit: usize, batch: u64) -> Option<u64> {
        if self.wanted < limit.max(1) {
            return None;
        }
        let evictable = self
            .known
            .iter()
            .filter(|(_, place)| place.there && place.in_flight == 0 && place.batch != batch);
        evictable.min_by_key(|(_, place)| place.used).map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_to_postgresql_is_asked_anew_when_definitions_change() {
        let mut registry = Registry::new(Numbers::default());
        let int4 = [0, 1, 0, 0, 0, 23];
        let cases: [(&[u8], &[u8], bool); 5] = [
            (b"insert into t values ($1)", &[0, 0], true),
            (b"insert into t values ($1)", &[0, 1, 0, 0, 0, 0], true),
            (b"insert into t values ($1)", &int4, false),
            (b"insert into t values ($1, $2)", &int4, true),
            (b"select 1", &[0, 0], false),
        ];
        let ids = cases.map(|(query, types, _)| registry.intern(query, types).id);
        registry.redefined();
        for ((query, types, again), id) in cases.into_iter().zip(ids) {
            let text = String::from_utf8_lossy(query);
            assert_eq!(registry.intern(query, types).id != id, again, "{text} {types:?}");
        }
    }

    #[test]
    fn names_are_the_prefix_and_hexadecimal_digits() {
        assert_eq!(ServerName::new(0).as_bytes(), b"pondage_0");
        assert_eq!(ServerName::new(0x1f).as_bytes(), b"pondage_1f");
        assert_eq!(ServerName::new(u64::MAX).as_bytes(), b"pondage_ffffffffffffffff");
    }

    #[test]
    fn equal_texts_with_equal_types_are_one_statement() {
        let mut registry = Registry::new(Numbers::default());
        let a = registry.intern(b"select $1", b"\0\0");
        assert_eq!(registry.intern(b"select $1", b"\0\0").id, a.id);
        assert_ne!(registry.intern(b"select $1", b"\0\x01\0\0\0\x17").id, a.id);
        for n in 0..SWEEP_AT * 3 {
            registry.intern(format!("select {n}").as_bytes(), b"\0\0");
        }
        assert!(registry.len() <= SWEEP_AT + 1);
        assert_eq!(registry.intern(b"select $1", b"\0\0").id, a.id, "a used one is never swept");
    }

    #[test]
    fn a_retired_statement_is_not_found_by_its_text_any_more() {
        let mut registry = Registry::new(Numbers::default());
        let old = registry.intern(b"select 1", b"");
        let other = registry.intern(b"select 2", b"");
        registry.retire(old.id);
        let new = registry.intern(b"select 1", b"");
        assert_ne!(new.id, old.id);
        registry.retire(old.id);
        assert_eq!(
            registry.intern(b"select 1", b"").id,
            new.id,
            "who comes late finds the new one"
        );
        assert_eq!(registry.intern(b"select 2", b"").id, other.id);
    }

    fn with(ids: std::ops::RangeInclusive<u64>) -> Prepared {
        let mut prepared = Prepared::default();
        for id in ids {
            prepared.sent(id, true, id);
            prepared.settled(id, true, true);
        }
        prepared
    }

    #[test]
    fn eviction_takes_the_least_recently_used_that_the_batch_has_not_touched() {
        let mut prepared = with(1..=3);
        let evict = |prepared: &mut Prepared, limit, batch| {
            let id = prepared.evict(limit, batch)?;
            prepared.sent(id, false, batch);
            prepared.settled(id, false, true);
            Some(id)
        };
        assert_eq!(prepared.need(1, 9), Need::Nothing);
        assert_eq!(evict(&mut prepared, 4, 9), None, "there is room");
        assert_eq!(evict(&mut prepared, 3, 9), Some(2));
        assert_eq!(evict(&mut prepared, 1, 9), Some(3));
        assert_eq!(evict(&mut prepared, 1, 9), None, "the only one left is bound in this batch");
        assert_eq!(evict(&mut prepared, 1, 10), Some(1));
        assert!(prepared.is_empty());
    }

    #[test]
    fn what_an_earlier_batch_does_can_not_be_relied_on_before_it_is_answered() {
        let mut prepared = Prepared::default();
        prepared.sent(7, true, 1);
        assert_eq!(prepared.need(7, 1), Need::Nothing);
        assert_eq!(prepared.need(7, 2), Need::CloseAndParse);
        prepared.settled(7, true, true);
        assert_eq!(prepared.need(7, 2), Need::Nothing);
        // Closed in batch 3; batch 4 comes before the answer.
        prepared.sent(7, false, 3);
        assert_eq!(prepared.need(7, 3), Need::Parse);
        assert_eq!(prepared.need(7, 4), Need::CloseAndParse);
    }

    #[test]
    fn after_a_deallocate_of_some_name_every_statement_is_made_certain_again() {
        let mut prepared = with(1..=2);
        prepared.doubt();
        assert_eq!(prepared.need(2, 9), Need::CloseAndParse);
        prepared.sent(2, false, 9);
        prepared.sent(2, true, 9);
        assert_eq!(prepared.need(2, 9), Need::Nothing);
        prepared.settled(2, false, true);
        prepared.settled(2, true, true);
        assert_eq!(prepared.need(2, 10), Need::Nothing);
        assert_eq!(prepared.need(1, 10), Need::CloseAndParse);
    }

    #[test]
    fn a_statement_closed_and_parsed_again_is_still_there_when_both_are_skipped() {
        let mut prepared = with(1..=1);
        prepared.sent(1, false, 5);
        assert_eq!(prepared.len(), 0);
        prepared.sent(1, true, 5);
        assert_eq!(prepared.len(), 1);
        prepared.settled(1, false, false);
        prepared.settled(1, true, false);
        assert_eq!((prepared.need(1, 6), prepared.len()), (Need::Nothing, 1));
        // And gone when the Close was done and the Parse was not.
        prepared.sent(1, false, 7);
        prepared.sent(1, true, 7);
        prepared.settled(1, false, true);
        prepared.settled(1, true, false);
        assert_eq!((prepared.need(1, 8), prepared.len()), (Need::Parse, 0));
    }
}
