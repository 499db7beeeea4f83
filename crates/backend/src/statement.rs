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
    pub id: u64,
    pub query: Box<[u8]>,
    /// The raw end of the Parse message: an i16 count and that many type OIDs.
    pub types: Box<[u8]>,
}

impl Statement {
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

/// The statements that one server has prepared, or is being told to prepare.
#[derive(Debug, Default)]
pub struct Prepared {
    known: HashMap<u64, Place, foldhash::fast::RandomState>,
    /// Grows with every use, so that the least recently used one has the smallest.
    tick: u64,
}

#[derive(Debug)]
struct Place {
    used: u64,
    /// The batch (requests up to a Sync) that used it last.
    batch: u64,
    /// ParseComplete has arrived.
    confirmed: bool,
}

impl Prepared {
    /// Whether `id` can be bound in `batch`: it is confirmed, or its Parse went out in this batch.
    /// Marks it used.
    pub fn usable(&mut self, id: u64, batch: u64) -> bool {
        self.tick += 1;
        match self.known.get_mut(&id) {
            Some(place) if place.confirmed || place.batch == batch => {
                place.used = self.tick;
                place.batch = batch;
                true
            }
            _ => false,
        }
    }

    /// Its Parse is sent in `batch`.
    pub fn sent(&mut self, id: u64, batch: u64) {
        self.tick += 1;
        self.known.insert(id, Place { used: self.tick, batch, confirmed: false });
    }

    pub fn confirmed(&mut self, id: u64) {
        if let Some(place) = self.known.get_mut(&id) {
            place.confirmed = true;
        }
    }

    /// Its Parse failed or was skipped, or it was closed.
    pub fn forget(&mut self, id: u64) {
        self.known.remove(&id);
    }

    /// A Close that was sent for it was skipped: it is still there.
    pub fn restore(&mut self, id: u64) {
        self.known.insert(id, Place { used: self.tick, batch: 0, confirmed: true });
    }

    /// DEALLOCATE ALL, DISCARD ALL.
    pub fn clear(&mut self) {
        self.known.clear();
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The one to close so that there is room for another under `limit`: the least recently used
    /// that this batch has not touched. It is forgotten here; the caller sends its Close.
    pub fn evict(&mut self, limit: usize, batch: u64) -> Option<u64> {
        if self.known.len() < limit.max(1) {
            return None;
        }
        let evictable =
            self.known.iter().filter(|(_, place)| place.confirmed && place.batch != batch);
        let oldest = evictable.min_by_key(|(_, place)| place.used).map(|(id, _)| *id)?;
        self.known.remove(&oldest);
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn eviction_takes_the_least_recently_used_that_the_batch_has_not_touched() {
        let mut prepared = Prepared::default();
        for id in 1..=3 {
            prepared.sent(id, id);
            prepared.confirmed(id);
        }
        assert!(prepared.usable(1, 9));
        assert_eq!(prepared.evict(4, 9), None, "there is room");
        assert_eq!(prepared.evict(3, 9), Some(2));
        assert_eq!(prepared.evict(1, 9), Some(3));
        assert_eq!(prepared.evict(1, 9), None, "the only one left is bound in this batch");
        assert_eq!(prepared.evict(1, 10), Some(1));
    }

    #[test]
    fn a_statement_another_batch_is_preparing_can_not_be_relied_on() {
        let mut prepared = Prepared::default();
        prepared.sent(7, 1);
        assert!(prepared.usable(7, 1));
        assert!(!prepared.usable(7, 2));
        prepared.confirmed(7);
        assert!(prepared.usable(7, 2));
    }
}
