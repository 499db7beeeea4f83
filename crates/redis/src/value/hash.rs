//! Hashes: small ones packed, others in a table.

use super::packed::{self, Packed, ITEM_BYTES_MAX};
use super::table::{self, Named, Table};
use super::{Track, Tracked};
use crate::rows::Rows;
use crate::server::Settings;

/// Fields of a packed hash: Redis's `hash-max-listpack-entries`.
const PACKED_MAX: usize = 128;

/// What an element in the table owns beside its bytes: the allocator's part.
const ELEMENT_BYTES: usize = 16;

/// A field and the value it had.
type Before = (Box<[u8]>, Option<Box<[u8]>>);

#[derive(Debug, Clone, Default)]
pub struct Hash {
    fields: Fields,
    /// Of what elements in the table own.
    bytes: usize,
    /// As many fields as there ever were, and the longest field or value: Redis never goes back to
    /// a smaller encoding.
    most: usize,
    longest: usize,
    track: Track<Box<[u8]>, Before>,
}

#[derive(Debug, Clone)]
enum Fields {
    /// Field, value, field, value.
    Packed(Packed),
    Table(Table<Pair>),
}

impl Default for Fields {
    fn default() -> Fields {
        Fields::Packed(Packed::default())
    }
}

/// A field and its value, one behind the other.
#[derive(Debug, Clone)]
struct Pair {
    bytes: Box<[u8]>,
    /// Where the value begins.
    split: u32,
}

impl Pair {
    fn new(field: &[u8], value: &[u8]) -> Pair {
        Pair { bytes: [field, value].concat().into(), split: field.len() as u32 }
    }

    fn value(&self) -> &[u8] {
        &self.bytes[self.split as usize..]
    }

    fn both(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.split as usize)
    }

    fn set(&mut self, value: &[u8]) {
        if self.value().len() == value.len() {
            self.bytes[self.split as usize..].copy_from_slice(value);
        } else {
            *self = Pair::new(self.name(), value);
        }
    }
}

impl Named for Pair {
    fn name(&self) -> &[u8] {
        &self.bytes[..self.split as usize]
    }
}

impl Hash {
    /// As its rows have it.
    pub fn load<'a>(kid: i64, rows: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Hash {
        let mut hash = Hash::default();
        hash.track.kid = kid;
        for (field, value) in rows {
            hash.put(field, value);
        }
        if let Fields::Packed(packed) = &mut hash.fields {
            packed.shrink();
        }
        hash
    }

    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        match &self.fields {
            Fields::Packed(packed) => {
                let at = packed.find(field, 2)?;
                Some(packed.get(packed.after(at)))
            }
            Fields::Table(table) => Some(table.get(table.find(field)?).value()),
        }
    }

    /// While it is small, in the order in which fields came.
    pub fn iter(&self) -> Iter<'_> {
        match &self.fields {
            Fields::Packed(packed) => Iter(Elements::Packed(packed.iter())),
            Fields::Table(table) => Iter(Elements::Table(table.iter())),
        }
    }

    /// The field at `at` and its value, in the order of [`Hash::iter`], to choose at random.
    pub fn at(&self, at: usize) -> Option<(&[u8], &[u8])> {
        match &self.fields {
            Fields::Packed(_) => self.iter().nth(at),
            Fields::Table(table) => (at < table.len()).then(|| table.get(at).both()),
        }
    }

    /// About `count` fields from `cursor` on, and the cursor to go on with; 0 begins and ends.
    pub fn scan<'a>(
        &'a self,
        cursor: u64,
        count: usize,
        mut each: impl FnMut(&'a [u8], &'a [u8]),
    ) -> u64 {
        match &self.fields {
            Fields::Packed(_) => {
                self.iter().for_each(|(field, value)| each(field, value));
                0
            }
            Fields::Table(table) => table.scan(cursor, count, |pair| {
                let (field, value) = pair.both();
                each(field, value);
            }),
        }
    }

    /// As OBJECT ENCODING replies.
    pub fn encoding(&self, settings: &Settings) -> &'static str {
        let small = self.most <= settings.hash_max_listpack_entries
            && self.longest <= settings.hash_max_listpack_value;
        if small {
            "listpack"
        } else {
            "hashtable"
        }
    }

    /// True when the field is new.
    pub fn insert(&mut self, field: &[u8], value: &[u8]) -> bool {
        let before = self.track.is_remembering().then(|| self.get(field).map(Box::from));
        let new = self.put(field, value);
        self.track.change(field.into(), || (field.into(), before.flatten()));
        new
    }

    pub fn remove(&mut self, field: &[u8]) -> Option<Box<[u8]>> {
        let before = self.cut(field)?;
        self.track.change(field.into(), || (field.into(), Some(before.clone())));
        Some(before)
    }

    /// True when the field is new.
    fn put(&mut self, field: &[u8], value: &[u8]) -> bool {
        let longest = field.len().max(value.len());
        self.longest = self.longest.max(longest);
        if let Fields::Packed(packed) = &mut self.fields {
            let place = packed.find(field, 2);
            let fits = longest <= ITEM_BYTES_MAX;
            match place {
                Some(at) if fits => {
                    packed.replace(packed.after(at), value);
                    return false;
                }
                None if fits && packed.len() / 2 < PACKED_MAX => {
                    packed.push(field);
                    packed.push(value);
                    self.most = self.most.max(packed.len() / 2);
                    return true;
                }
                _ => self.unpack(),
            }
        }
        let Fields::Table(table) = &mut self.fields else { return false };
        match table.find(field) {
            Some(at) => {
                let pair = table.get_mut(at);
                self.bytes = self.bytes + value.len() - pair.value().len();
                pair.set(value);
                false
            }
            None => {
                table.insert(Pair::new(field, value));
                self.bytes += field.len() + value.len() + ELEMENT_BYTES;
                self.most = self.most.max(table.len());
                true
            }
        }
    }

    fn cut(&mut self, field: &[u8]) -> Option<Box<[u8]>> {
        match &mut self.fields {
            Fields::Packed(packed) => {
                let at = packed.find(field, 2)?;
                let value = packed.get(packed.after(at)).into();
                packed.remove(at, 2);
                Some(value)
            }
            Fields::Table(table) => {
                let pair = table.remove(table.find(field)?);
                self.bytes -= pair.bytes.len() + ELEMENT_BYTES;
                Some(pair.value().into())
            }
        }
    }

    fn unpack(&mut self) {
        let mut table = Table::with_capacity(self.len() + 1);
        for (field, value) in self.iter() {
            table.insert(Pair::new(field, value));
        }
        self.bytes = table.iter().map(|pair| pair.bytes.len() + ELEMENT_BYTES).sum();
        self.fields = Fields::Table(table);
    }
}

/// Fields and values.
#[derive(Debug)]
pub struct Iter<'a>(Elements<'a>);

#[derive(Debug)]
enum Elements<'a> {
    Packed(packed::Iter<'a>),
    Table(table::Iter<'a, Pair>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        match &mut self.0 {
            Elements::Packed(items) => Some((items.next()?, items.next()?)),
            Elements::Table(pairs) => pairs.next().map(Pair::both),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            Elements::Packed(items) => items.len() / 2,
            Elements::Table(pairs) => pairs.len(),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl Tracked for Hash {
    fn kid(&self) -> i64 {
        self.track.kid
    }

    fn set_kid(&mut self, kid: i64) {
        self.track.kid = kid;
    }

    fn len(&self) -> usize {
        match &self.fields {
            Fields::Packed(packed) => packed.len() / 2,
            Fields::Table(table) => table.len(),
        }
    }

    fn weight(&self) -> usize {
        let fields = match &self.fields {
            Fields::Packed(packed) => packed.weight(),
            Fields::Table(table) => table.weight() + self.bytes,
        };
        size_of::<Hash>() + fields
    }

    fn edits(&self) -> u64 {
        self.track.edits()
    }

    fn drain(&mut self, rows: &mut dyn Rows) {
        for field in self.track.take() {
            match self.get(&field) {
                Some(value) => rows.hash_put(self.track.kid, &field, value),
                None => rows.hash_delete(self.track.kid, &field),
            }
        }
    }

    fn renew(&mut self) {
        let mut track = std::mem::take(&mut self.track);
        for (field, value) in self.iter() {
            track.change(field.into(), || (field.into(), Some(value.into())));
        }
        self.track = track;
    }

    fn remember(&mut self) {
        self.track.remember();
    }

    fn undo(&mut self) {
        for (field, before) in self.track.undo().into_iter().rev() {
            match before {
                Some(value) => {
                    self.put(&field, &value);
                }
                None => {
                    self.cut(&field);
                }
            }
        }
    }

    fn keep(&mut self) {
        self.track.keep();
    }
}
