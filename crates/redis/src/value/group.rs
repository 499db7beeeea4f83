//! A group of consumers of a stream: what each has got and not yet acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::stream::Id;

/// An entry that was delivered and not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub consumer: Arc<[u8]>,
    /// When it was delivered last: milliseconds since 1970.
    pub delivered: i64,
    pub times: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consumer {
    /// When it asked last: milliseconds since 1970.
    pub seen: i64,
    /// When it got something last.
    pub active: Option<i64>,
    pub pending: BTreeSet<Id>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// The last entry that was delivered.
    pub last: Id,
    /// Entries up to that one; none when that is not known.
    pub read: Option<u64>,
    pending: BTreeMap<Id, Pending>,
    consumers: BTreeMap<Arc<[u8]>, Consumer>,
}

/// What a pending entry and a consumer cost in memory.
const PENDING_BYTES: usize = 120;
const CONSUMER_BYTES: usize = 128;

/// The first byte of a group's row.
const VERSION: u8 = 1;

impl Group {
    pub fn new(last: Id, read: Option<u64>) -> Group {
        Group { last, read, ..Group::default() }
    }

    pub fn weight(&self) -> usize {
        size_of::<Group>()
            + self.pending.len() * PENDING_BYTES
            + self.consumers.len() * CONSUMER_BYTES
    }

    /// In order of ids.
    pub fn pending(&self) -> &BTreeMap<Id, Pending> {
        &self.pending
    }

    /// By name.
    pub fn consumers(&self) -> &BTreeMap<Arc<[u8]>, Consumer> {
        &self.consumers
    }

    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.consumers.get(name)
    }

    /// True when it is new.
    pub fn add_consumer(&mut self, name: &[u8], now: i64) -> bool {
        let new = !self.consumers.contains_key(name);
        if new {
            let consumer = Consumer { seen: now, ..Consumer::default() };
            self.consumers.insert(name.into(), consumer);
        }
        new
    }

    /// The consumer has asked for something; it is made if need be. True when it was.
    pub fn saw(&mut self, name: &[u8], now: i64) -> bool {
        let new = self.add_consumer(name, now);
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.seen = now;
        }
        new
    }

    /// The consumer has got something.
    pub fn served(&mut self, name: &[u8], now: i64) {
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.active = Some(now);
        }
    }

    /// Gives how many entries it had pending.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let consumer = self.consumers.remove(name)?;
        for id in &consumer.pending {
            self.pending.remove(id);
        }
        Some(consumer.pending.len())
    }

    /// The entry becomes this consumer's, which exists, whosever it was.
    pub fn assign(&mut self, id: Id, consumer: &[u8], delivered: i64, times: u64) {
        self.settle(id);
        let Some((name, _)) = self.consumers.get_key_value(consumer) else { return };
        let name = name.clone();
        if let Some(consumer) = self.consumers.get_mut(consumer) {
            consumer.pending.insert(id);
        }
        self.pending.insert(id, Pending { consumer: name, delivered, times });
    }

    /// False when the entry is not pending.
    pub fn settle(&mut self, id: Id) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        if let Some(consumer) = self.consumers.get_mut(&pending.consumer) {
            consumer.pending.remove(&id);
        }
        true
    }

    /// As its row has it, numbers in big endian: version, last id, entries read (-1: unknown);
    /// each consumer's name with its length before it, when it was seen and active (-1: never), how
    /// many entries it has pending, and for each id, delivery time and count.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        let number = |bytes: &mut Vec<u8>, number: u64| {
            bytes.extend_from_slice(&number.to_be_bytes());
        };
        number(&mut bytes, self.last.0);
        number(&mut bytes, self.last.1);
        number(&mut bytes, self.read.unwrap_or(u64::MAX));
        for (name, consumer) in &self.consumers {
            number(&mut bytes, name.len() as u64);
            bytes.extend_from_slice(name);
            number(&mut bytes, consumer.seen as u64);
            number(&mut bytes, consumer.active.unwrap_or(-1) as u64);
            number(&mut bytes, consumer.pending.len() as u64);
            for id in &consumer.pending {
                let pending = &self.pending[id];
                number(&mut bytes, id.0);
                number(&mut bytes, id.1);
                number(&mut bytes, pending.delivered as u64);
                number(&mut bytes, pending.times);
            }
        }
        bytes
    }

    /// What can be read of it.
    pub fn decode(bytes: &[u8]) -> Group {
        let mut group = Group::default();
        if let Some((&VERSION, rest)) = bytes.split_first() {
            let _ = group.read_from(rest);
        }
        group
    }

    fn read_from(&mut self, mut rest: &[u8]) -> Option<()> {
        self.last = (number(&mut rest)?, number(&mut rest)?);
        self.read = Some(number(&mut rest)?).filter(|read| *read != u64::MAX);
        while !rest.is_empty() {
            let len = usize::try_from(number(&mut rest)?).ok()?;
            let (name, behind) = rest.split_at_checked(len)?;
            rest = behind;
            self.add_consumer(name, number(&mut rest)? as i64);
            let active = number(&mut rest)? as i64;
            if let Some(consumer) = self.consumers.get_mut(name) {
                consumer.active = (active != -1).then_some(active);
            }
            for _ in 0..number(&mut rest)? {
                let id = (number(&mut rest)?, number(&mut rest)?);
                let delivered = number(&mut rest)? as i64;
                self.assign(id, name, delivered, number(&mut rest)?);
            }
        }
        Some(())
    }
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_what_its_row_says_and_garbage_does_no_harm() {
        let mut group = Group::new((5, u64::MAX), Some(3));
        group.saw(b"a", 10);
        group.saw(b"", 11);
        group.served(b"a", 12);
        group.assign((1, 2), b"a", 10, 1);
        group.assign((1, 3), b"a", 10, 7);
        group.assign((1, 2), b"", 20, 2);
        let state = group.encode();
        assert_eq!(Group::decode(&state), group);
        for len in 0..state.len() {
            Group::decode(&state[..len]);
        }
        assert_eq!(group.remove_consumer(b""), Some(1));
        assert!(group.settle((1, 3)) && !group.settle((1, 2)));
        assert!(group.pending().is_empty());
    }
}
