//! Streams: list packs of entries, then what the stream and its groups know.
//!
//! ```text
//! packs (n) | id of the first entry (16, BE), list pack | ... | entries (n) | last id (n, n)
//!   from version 2 on: first id (n, n) | greatest deleted id (n, n) | entries ever added (n)
//! groups (n) | name | last id (n, n) | from version 2 on: entries read (n)
//!   pending (n) | id (16, BE), delivered (8, LE), times (n) | ...
//!   consumers (n) | name | seen (8, LE) | from version 3 on: active (8, LE)
//!     pending (n) | id (16, BE) | ...
//!
//! list pack: entries, deleted, fields, each field, 0
//!   | flags, ms and number beyond the first id, [fields, each field,] values, elements before this
//! ```
//!
//! `n` is a number written as lengths are. An entry with the fields of its list pack says so by a
//! flag and has only values (and the fields by turns with them otherwise).
//!
//! Source: Redis 7.2, `rdb.c`, `t_stream.c` (`streamAppendItem`).

use hashbrown::HashMap;

use super::packs::{put_element, put_number as put_integer, seal_list_pack, Element, ListPack};
use super::read::Reader;
use super::{put_len, put_number, put_string};
use crate::value::group::Group;
use crate::value::stream::{decode_fields, encode_fields, Head, Id, Stream, ID_MAX};
use crate::value::Tracked;

/// `STREAM_ITEM_FLAG_DELETED`, `STREAM_ITEM_FLAG_SAMEFIELDS`.
const DELETED: i64 = 1;
const SAME_FIELDS: i64 = 2;

/// A list pack is full at so many entries, or before it has so many bytes: Redis's
/// `stream-node-max-entries` and `stream-node-max-bytes`.
const ENTRIES_MAX: usize = 100;
const BYTES_MAX: usize = 4096;

/// How many entries a group has read is not known.
const UNKNOWN: u64 = u64::MAX;

pub fn put(out: &mut Vec<u8>, stream: &Stream) {
    let packs = packs(stream);
    put_len(out, packs.len());
    for pack in packs {
        put_string(out, &raw(pack.first));
        put_string(out, &pack.sealed());
    }
    put_len(out, stream.len());
    let Head { last, deleted, added } = stream.head_now();
    let first = stream.first_id();
    for number in [last.0, last.1, first.0, first.1, deleted.0, deleted.1, added] {
        put_number(out, number);
    }
    let groups = stream.groups();
    put_len(out, groups.len());
    for (name, group) in groups {
        put_string(out, name);
        put_group(out, group);
    }
}

/// The entries, as Redis packs them when they are added one by one.
fn packs(stream: &Stream) -> Vec<Pack<'_>> {
    let mut packs = Vec::new();
    for (id, fields) in stream.range((0, 0), ID_MAX) {
        let words: Vec<&[u8]> = decode_fields(fields).collect();
        let weight = words.iter().map(|word| word.len()).sum::<usize>();
        if packs.last().is_none_or(|pack: &Pack<'_>| pack.is_full(weight)) {
            packs.push(Pack::new(id, &words));
        }
        if let Some(pack) = packs.last_mut() {
            pack.append(id, &words);
        }
    }
    packs
}

fn put_group(out: &mut Vec<u8>, group: &Group) {
    for number in [group.last.0, group.last.1, group.read.unwrap_or(UNKNOWN)] {
        put_number(out, number);
    }
    put_len(out, group.pending().len());
    for (id, pending) in group.pending() {
        out.extend_from_slice(&raw(*id));
        out.extend_from_slice(&pending.delivered.to_le_bytes());
        put_number(out, pending.times);
    }
    put_len(out, group.consumers().len());
    for (name, consumer) in group.consumers() {
        put_string(out, name);
        out.extend_from_slice(&consumer.seen.to_le_bytes());
        out.extend_from_slice(&consumer.active.unwrap_or(-1).to_le_bytes());
        put_len(out, consumer.pending.len());
        consumer.pending.iter().for_each(|id| out.extend_from_slice(&raw(*id)));
    }
}

/// An id as the bytes that sort like it.
fn raw((ms, seq): Id) -> [u8; 16] {
    (u128::from(ms) << 64 | u128::from(seq)).to_be_bytes()
}

/// A list pack that is being written.
struct Pack<'a> {
    first: Id,
    /// The fields of its first entry.
    fields: Vec<&'a [u8]>,
    /// Those fields, and the entries, as elements.
    head: Vec<u8>,
    body: Vec<u8>,
    elements: usize,
    entries: usize,
}

impl<'a> Pack<'a> {
    fn new(first: Id, words: &[&'a [u8]]) -> Pack<'a> {
        let fields: Vec<_> = words.iter().copied().step_by(2).collect();
        let mut head = Vec::new();
        put_integer(&mut head, 0);
        put_integer(&mut head, fields.len() as i64);
        fields.iter().for_each(|field| put_element(&mut head, field));
        put_integer(&mut head, 0);
        let elements = fields.len() + 4;
        Pack { first, fields, head, body: Vec::new(), elements, entries: 0 }
    }

    /// For another entry of so many bytes.
    fn is_full(&self, weight: usize) -> bool {
        // Its head, its end, and the number of entries, which is at most 100.
        let bytes = super::packs::LIST_PACK_BYTES + 2 + self.head.len() + self.body.len();
        self.entries >= ENTRIES_MAX || bytes + weight >= BYTES_MAX
    }

    fn append(&mut self, id: Id, words: &[&[u8]]) {
        let fields = words.iter().step_by(2);
        let same = fields.clone().eq(&self.fields);
        let body = &mut self.body;
        put_integer(body, if same { SAME_FIELDS } else { 0 });
        put_integer(body, id.0.wrapping_sub(self.first.0) as i64);
        put_integer(body, id.1.wrapping_sub(self.first.1) as i64);
        let mut elements = 3 + words.len() / 2;
        if same {
            words.iter().skip(1).step_by(2).for_each(|value| put_element(body, value));
        } else {
            put_integer(body, fields.len() as i64);
            words.iter().for_each(|word| put_element(body, word));
            elements += fields.len() + 1;
        }
        put_integer(body, elements as i64);
        self.elements += elements + 1;
        self.entries += 1;
    }

    fn sealed(&self) -> Vec<u8> {
        let mut elements = Vec::new();
        put_integer(&mut elements, self.entries as i64);
        elements.extend_from_slice(&self.head);
        elements.extend_from_slice(&self.body);
        seal_list_pack(&elements, self.elements)
    }
}

/// None when it is no stream.
pub fn read(reader: &mut Reader<'_>, form: u8) -> Option<Stream> {
    let mut stream = Stream::default();
    for _ in 0..reader.len()? {
        let first = reader.string()?;
        let first = id_of(first.as_ref().try_into().ok()?);
        let pack = reader.string()?;
        read_pack(reader, &mut stream, first, &pack)?;
    }
    let len = reader.len()?;
    let mut head = Head { last: id(reader)?, ..Head::default() };
    head.added = len as u64;
    if form >= super::STREAM_2 {
        id(reader)?;
        head.deleted = id(reader)?;
        head.added = reader.number()?.max(len as u64);
    }
    if len != stream.len() || stream.top_id().is_some_and(|top| top > head.last) {
        return None;
    }
    stream.set_head(head);
    for _ in 0..reader.len()? {
        let name = reader.string()?;
        let last = id(reader)?;
        let read = match form {
            super::STREAM => stream.distance(last),
            _ => Some(reader.number()?).filter(|read| i64::try_from(*read).is_ok()),
        };
        if stream.group(&name).is_some() {
            return None;
        }
        let group = read_group(reader, Group::new(last, read), form)?;
        stream.add_group(&name, group);
    }
    Some(stream)
}

fn id(reader: &mut Reader<'_>) -> Option<Id> {
    Some((reader.number()?, reader.number()?))
}

fn id_of(raw: [u8; 16]) -> Id {
    let id = u128::from_be_bytes(raw);
    ((id >> 64) as u64, id as u64)
}

fn number(pack: &mut ListPack<'_>) -> Option<i64> {
    match pack.element()? {
        Element::Number(number) => Some(number),
        Element::Text(_) => None,
    }
}

fn count(pack: &mut ListPack<'_>) -> Option<usize> {
    usize::try_from(number(pack)?).ok()
}

/// Appends the words of an element: as [`encode_fields`] would.
fn word(fields: &mut Vec<u8>, element: Element<'_>) {
    let mut digits = itoa::Buffer::new();
    let word = match element {
        Element::Number(number) => digits.format(number).as_bytes(),
        Element::Text(text) => text,
    };
    fields.extend_from_slice(&encode_fields(std::iter::once(word)));
}

fn read_pack(reader: &mut Reader<'_>, stream: &mut Stream, first: Id, pack: &[u8]) -> Option<()> {
    let mut pack = ListPack::open(pack)?;
    let (entries, deleted, shared) = (count(&mut pack)?, count(&mut pack)?, count(&mut pack)?);
    // Where the names of the fields are.
    let names = pack;
    for _ in 0..shared {
        pack.element()?;
    }
    if number(&mut pack)? != 0 {
        return None;
    }
    let (mut live, mut dead) = (0, 0);
    while !pack.is_over() {
        let flags = number(&mut pack)?;
        let ms = first.0.wrapping_add(number(&mut pack)? as u64);
        let seq = first.1.wrapping_add(number(&mut pack)? as u64);
        let mut words = Vec::new();
        if flags & SAME_FIELDS != 0 {
            let mut names = names;
            for _ in 0..shared {
                let before = words.len();
                word(&mut words, names.element()?);
                reader.unfolds(words.len() - before)?;
                word(&mut words, pack.element()?);
            }
        } else {
            for _ in 0..count(&mut pack)?.checked_mul(2)? {
                word(&mut words, pack.element()?);
            }
        }
        number(&mut pack)?;
        if flags & DELETED != 0 {
            dead += 1;
            continue;
        }
        live += 1;
        // In order, and behind those of the pack before.
        if words.is_empty() || stream.top_id().is_some_and(|top| top >= (ms, seq)) {
            return None;
        }
        stream.append((ms, seq), words.into());
    }
    (live == entries && dead == deleted).then_some(())
}

fn read_group(reader: &mut Reader<'_>, mut group: Group, form: u8) -> Option<Group> {
    let mut pending = HashMap::<Id, (i64, u64), foldhash::fast::RandomState>::default();
    for _ in 0..reader.len()? {
        let id = id_of(reader.array()?);
        let delivered = i64::from_le_bytes(reader.array()?);
        if pending.insert(id, (delivered, reader.number()?)).is_some() {
            return None;
        }
    }
    for _ in 0..reader.len()? {
        let name = reader.string()?;
        let seen = i64::from_le_bytes(reader.array()?);
        let active = match form {
            // The best that is known.
            super::STREAM | super::STREAM_2 => seen,
            _ => i64::from_le_bytes(reader.array()?),
        };
        if !group.add_consumer(&name, seen) {
            return None;
        }
        if active != -1 {
            group.served(&name, active);
        }
        for _ in 0..reader.len()? {
            let id = id_of(reader.array()?);
            let (delivered, times) = pending.remove(&id)?;
            group.assign(id, &name, delivered, times);
        }
    }
    // Everything that is pending is somebody's.
    pending.is_empty().then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By a redis-server 7.2.
    const PACK: &str = "56000000190003010001020181740281\
                        6e020001020100010001852d352e3235\
                        06f4141a99be1c000000090501020101\
                        01dfcc02ded4028001050100010101df\
                        cd020101816b028a7171717171717171\
                        71710b0601ff";

    #[test]
    fn entries_are_packed_as_redis_packs_them() {
        let mut stream = Stream::default();
        let mut append = |id: Id, words: &[&[u8]]| {
            stream.append(id, encode_fields(words.iter().copied()));
        };
        append((1526919030474, 55), &[b"t", b"-5.25", b"n", b"123456789012"]);
        append((1526919030475, 3), &[b"t", b"-300", b"n", b""]);
        append((1526919030475, 4), &[b"k", b"qqqqqqqqqq"]);
        let packs = packs(&stream);
        let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let all: Vec<String> = packs.iter().map(|pack| hex(pack.sealed())).collect();
        assert_eq!(all, [PACK]);
    }
}
