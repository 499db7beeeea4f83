//! Streams: entries in order of their ids, groups of consumers that read them.

use std::collections::BTreeMap;

use super::group::Group;
use super::{Track, Tracked};
use crate::rows::Rows;

/// An entry's id: milliseconds, and a number within them.
pub type Id = (u64, u64);

pub const ID_MAX: Id = (u64::MAX, u64::MAX);

/// The id behind this one; none behind the last.
pub fn after(id: Id) -> Option<Id> {
    match id {
        ID_MAX => None,
        (ms, u64::MAX) => Some((ms + 1, 0)),
        (ms, seq) => Some((ms, seq + 1)),
    }
}

/// The id before this one; none before the first.
pub fn before(id: Id) -> Option<Id> {
    match id {
        (0, 0) => None,
        (ms, 0) => Some((ms - 1, u64::MAX)),
        (ms, seq) => Some((ms, seq - 1)),
    }
}

/// What a stream knows beside its entries: its key's row keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// Of the last entry that there ever was.
    pub last: Id,
    /// The greatest id that XDEL has removed.
    pub deleted: Id,
    /// Entries that there ever were.
    pub added: u64,
}

impl Head {
    fn encode(self) -> Vec<u8> {
        let numbers = [self.last.0, self.last.1, self.deleted.0, self.deleted.1, self.added];
        numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
    }

    /// What was never written by [`Head::encode`] is what there is when nothing is known.
    fn decode(bytes: &[u8]) -> Option<Head> {
        let mut numbers = [0; 5];
        let words = bytes.chunks_exact(8);
        if words.len() != numbers.len() || !words.remainder().is_empty() {
            return None;
        }
        for (number, word) in numbers.iter_mut().zip(words) {
            *number = u64::from_be_bytes(word.try_into().ok()?);
        }
        let [a, b, c, d, added] = numbers;
        Some(Head { last: (a, b), deleted: (c, d), added })
    }
}

/// Fields and values by turns, each behind its length, as an entry's row has them.
pub fn encode_fields<'a>(words: impl Iterator<Item = &'a [u8]>) -> Box<[u8]> {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend_from_slice(&(word.len() as u32).to_le_bytes());
        bytes.extend_from_slice(word);
    }
    bytes.into()
}

/// The words of an entry; those that can be read.
pub fn decode_fields(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    std::iter::from_fn(move || {
        let (len, rest) = bytes.split_first_chunk::<4>()?;
        let (word, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        bytes = rest;
        Some(word)
    })
}

/// What has a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Part {
    Entry(Id),
    Group(Box<[u8]>),
}

/// How something was.
#[derive(Debug, Clone)]
enum Before {
    Entry(Id, Option<Box<[u8]>>),
    Group(Box<[u8]>, Option<Box<Group>>),
    Head(Head),
}

#[derive(Debug, Clone, Default)]
pub struct Stream {
    entries: BTreeMap<Id, Box<[u8]>>,
    head: Head,
    groups: BTreeMap<Box<[u8]>, Group>,
    /// Of entries.
    bytes: usize,
    track: Track<Part, Before>,
}

/// What an entry costs beside its fields.
const ENTRY_BYTES: usize = 56;

impl Stream {
    /// As its rows have it: `head` is what [`Tracked::head`] gave, `groups` what was given to
    /// [`Rows::stream_group_put`].
    pub fn load<'a>(
        kid: i64,
        head: &[u8],
        entries: impl IntoIterator<Item = (Id, &'a [u8])>,
        groups: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Stream {
        let mut stream = Stream::default();
        stream.track.kid = kid;
        for (id, fields) in entries {
            stream.put(id, Some(fields.into()));
        }
        stream.groups =
            groups.into_iter().map(|(name, state)| (name.into(), Group::decode(state))).collect();
        // SQL users may have written entries, but never a head.
        let last = stream.entries.keys().next_back().copied().unwrap_or_default();
        let len = stream.entries.len() as u64;
        let head = Head::decode(head).unwrap_or_default();
        stream.head =
            Head { last: head.last.max(last), added: head.added.max(len), deleted: head.deleted };
        stream
    }

    pub fn head_now(&self) -> Head {
        self.head
    }

    /// The first entry's id; 0-0 when there is none.
    pub fn first_id(&self) -> Id {
        self.entries.keys().next().copied().unwrap_or_default()
    }

    /// The last entry's id.
    pub fn top_id(&self) -> Option<Id> {
        self.entries.keys().next_back().copied()
    }

    pub fn get(&self, id: Id) -> Option<&[u8]> {
        self.entries.get(&id).map(|fields| &**fields)
    }

    /// Entries from one id to another, both included.
    pub fn range(&self, from: Id, to: Id) -> impl DoubleEndedIterator<Item = (Id, &[u8])> {
        let some = (from <= to).then(|| self.entries.range(from..=to));
        some.into_iter().flatten().map(|(id, fields)| (*id, &**fields))
    }

    /// `id` is greater than that of any entry there ever was.
    pub fn append(&mut self, id: Id, fields: Box<[u8]>) {
        self.set_head(Head { last: id, added: self.head.added + 1, ..self.head });
        self.put(id, Some(fields));
        self.track.change(Part::Entry(id), || Before::Entry(id, None));
    }

    /// XDEL. False when there is no such entry.
    pub fn delete(&mut self, id: Id) -> bool {
        let there = self.cut(id);
        if there && id > self.head.deleted {
            self.set_head(Head { deleted: id, ..self.head });
        }
        there
    }

    /// Removes the first entries.
    pub fn trim(&mut self, count: usize) {
        for _ in 0..count {
            let Some(id) = self.entries.keys().next().copied() else { return };
            self.cut(id);
        }
    }

    fn cut(&mut self, id: Id) -> bool {
        let Some(fields) = self.put(id, None) else { return false };
        self.track.change(Part::Entry(id), || Before::Entry(id, Some(fields)));
        true
    }

    pub fn set_head(&mut self, head: Head) {
        let before = std::mem::replace(&mut self.head, head);
        self.track.step(|| Before::Head(before));
    }

    fn put(&mut self, id: Id, fields: Option<Box<[u8]>>) -> Option<Box<[u8]>> {
        let weigh = |fields: &[u8]| fields.len() + ENTRY_BYTES;
        self.bytes += fields.as_deref().map_or(0, weigh);
        let gone = match fields {
            Some(fields) => self.entries.insert(id, fields),
            None => self.entries.remove(&id),
        };
        self.bytes -= gone.as_deref().map_or(0, weigh);
        gone
    }

    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }

    /// By name.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.groups.iter().map(|(name, group)| (&**name, group))
    }

    /// The group to be changed. It counts as changed.
    pub fn group_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        let group = self.groups.get_mut(name)?;
        self.track.change(Part::Group(name.into()), || {
            Before::Group(name.into(), Some(Box::new(group.clone())))
        });
        Some(group)
    }

    /// There is none of this name.
    pub fn add_group(&mut self, name: &[u8], group: Group) {
        self.track.change(Part::Group(name.into()), || Before::Group(name.into(), None));
        self.groups.insert(name.into(), group);
    }

    /// False when there is none.
    pub fn remove_group(&mut self, name: &[u8]) -> bool {
        let Some(group) = self.groups.remove(name) else { return false };
        self.track
            .change(Part::Group(name.into()), || Before::Group(name.into(), Some(Box::new(group))));
        true
    }

    /// Whether an entry from this id on may have been removed.
    pub fn has_gaps(&self, from: Id) -> bool {
        let deleted = self.head.deleted;
        !self.entries.is_empty()
            && deleted != (0, 0)
            && self.first_id() <= deleted
            && from <= deleted
    }

    /// How many entries there ever were up to this id, if that can be told
    /// (`t_stream.c`, `streamEstimateDistanceFromFirstEverEntry`).
    pub fn distance(&self, id: Id) -> Option<u64> {
        let Head { last, deleted, added } = self.head;
        let len = self.entries.len() as u64;
        if added == 0 {
            return Some(0);
        }
        if (len == 0 && id <= last) || id == last {
            return Some(added);
        }
        let first = self.first_id();
        if id > last || (deleted != (0, 0) && deleted >= first) {
            return None;
        }
        match id.cmp(&first) {
            std::cmp::Ordering::Less => Some(added.saturating_sub(len)),
            std::cmp::Ordering::Equal => Some((added + 1).saturating_sub(len)),
            std::cmp::Ordering::Greater => None,
        }
    }

    /// Entries that the group has not read, if that can be told.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        let added = self.head.added as i64;
        match group.read {
            _ if added == 0 => Some(0),
            Some(read) if !self.has_gaps(group.last) => Some(added - read as i64),
            _ => Some(added - self.distance(group.last)? as i64),
        }
    }
}

impl Tracked for Stream {
    fn kid(&self) -> i64 {
        self.track.kid
    }

    fn set_kid(&mut self, kid: i64) {
        self.track.kid = kid;
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn weight(&self) -> usize {
        let groups = self.groups.iter().map(|(name, group)| name.len() + group.weight());
        size_of::<Stream>() + self.bytes + groups.sum::<usize>()
    }

    fn edits(&self) -> u64 {
        self.track.edits()
    }

    fn head(&self) -> Option<Vec<u8>> {
        Some(self.head.encode())
    }

    fn drain(&mut self, rows: &mut dyn Rows) {
        let kid = self.track.kid;
        for part in self.track.take() {
            match part {
                Part::Entry(id) => match self.entries.get(&id) {
                    Some(fields) => rows.stream_put(kid, id.0, id.1, fields),
                    None => rows.stream_delete(kid, id.0, id.1),
                },
                Part::Group(name) => match self.groups.get(&name) {
                    Some(group) => rows.stream_group_put(kid, &name, &group.encode()),
                    None => rows.stream_group_delete(kid, &name),
                },
            }
        }
    }

    fn renew(&mut self) {
        for (id, fields) in &self.entries {
            let before = || Before::Entry(*id, Some(fields.clone()));
            self.track.change(Part::Entry(*id), before);
        }
        for (name, group) in &self.groups {
            let before = || Before::Group(name.clone(), Some(Box::new(group.clone())));
            self.track.change(Part::Group(name.clone()), before);
        }
    }

    fn remember(&mut self) {
        self.track.remember();
    }

    fn undo(&mut self) {
        for before in self.track.undo().into_iter().rev() {
            match before {
                Before::Entry(id, fields) => drop(self.put(id, fields)),
                Before::Group(name, Some(group)) => drop(self.groups.insert(name, *group)),
                Before::Group(name, None) => drop(self.groups.remove(&name)),
                Before::Head(head) => self.head = head,
            }
        }
    }

    fn keep(&mut self) {
        self.track.keep();
    }
}
