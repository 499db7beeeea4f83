//! Hashes.

use hashbrown::HashMap;

use super::{Track, Tracked};
use crate::rows::Rows;
use crate::server::Settings;

type Map = HashMap<Box<[u8]>, Box<[u8]>, foldhash::fast::RandomState>;

/// A field and the value it had.
type Before = (Box<[u8]>, Option<Box<[u8]>>);

#[derive(Debug, Clone, Default)]
pub struct Hash {
    fields: Map,
    bytes: usize,
    track: Track<Box<[u8]>, Before>,
}

/// What an element costs beside its bytes.
const ELEMENT_BYTES: usize = 40;

impl Hash {
    /// As its rows have it.
    pub fn load<'a>(kid: i64, rows: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Hash {
        let mut hash = Hash::default();
        hash.track.kid = kid;
        for (field, value) in rows {
            hash.put(field.into(), Some(value.into()));
        }
        hash
    }

    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        self.fields.get(field).map(|value| &**value)
    }

    /// As Redis would keep it.
    pub fn encoding(&self, settings: &Settings) -> &'static str {
        let longest = self.iter().map(|(field, value)| field.len().max(value.len())).max();
        let small = self.fields.len() <= settings.hash_max_listpack_entries
            && longest.is_none_or(|longest| longest <= settings.hash_max_listpack_value);
        if small {
            "listpack"
        } else {
            "hashtable"
        }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|(field, value)| (&**field, &**value))
    }

    /// True when the field is new.
    pub fn insert(&mut self, field: &[u8], value: &[u8]) -> bool {
        let before = self.put(field.into(), Some(value.into()));
        let new = before.is_none();
        self.track.change(field.into(), || (field.into(), before));
        new
    }

    pub fn remove(&mut self, field: &[u8]) -> Option<Box<[u8]>> {
        let before = self.put(field.into(), None)?;
        self.track.change(field.into(), || (field.into(), Some(before.clone())));
        Some(before)
    }

    fn put(&mut self, field: Box<[u8]>, value: Option<Box<[u8]>>) -> Option<Box<[u8]>> {
        let name = field.len();
        let added = value.as_ref().map_or(0, |value| name + value.len() + ELEMENT_BYTES);
        let before = match value {
            Some(value) => self.fields.insert(field, value),
            None => self.fields.remove(&field),
        };
        let gone = before.as_ref().map_or(0, |value| name + value.len() + ELEMENT_BYTES);
        self.bytes = self.bytes + added - gone;
        before
    }
}

impl Tracked for Hash {
    fn kid(&self) -> i64 {
        self.track.kid
    }

    fn set_kid(&mut self, kid: i64) {
        self.track.kid = kid;
    }

    fn len(&self) -> usize {
        self.fields.len()
    }

    fn weight(&self) -> usize {
        self.bytes
    }

    fn edits(&self) -> u64 {
        self.track.edits()
    }

    fn drain(&mut self, rows: &mut dyn Rows) {
        for field in self.track.take() {
            match self.fields.get(&field) {
                Some(value) => rows.hash_put(self.track.kid, &field, value),
                None => rows.hash_delete(self.track.kid, &field),
            }
        }
    }

    fn renew(&mut self) {
        for (field, value) in &self.fields {
            self.track.change(field.clone(), || (field.clone(), Some(value.clone())));
        }
    }

    fn remember(&mut self) {
        self.track.remember();
    }

    fn undo(&mut self) {
        for (field, before) in self.track.undo().into_iter().rev() {
            self.put(field, before);
        }
    }

    fn keep(&mut self) {
        self.track.keep();
    }
}
