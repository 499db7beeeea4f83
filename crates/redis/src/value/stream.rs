//! Streams.

use super::{Track, Tracked};
use crate::rows::Rows;

/// An entry's id: milliseconds, and a number within them.
pub type Id = (u64, u64);

/// An entry and the fields it had.
type Before = (Id, Option<Box<[u8]>>);

#[derive(Debug, Clone, Default)]
pub struct Stream {
    entries: std::collections::BTreeMap<Id, Box<[u8]>>,
    track: Track<Id, Before>,
}

impl Stream {
    /// As its rows have it: `head` is what [`Tracked::head`] gave, `groups` what was given to
    /// [`Rows::stream_group_put`].
    pub fn load<'a>(
        kid: i64,
        _head: &[u8],
        entries: impl IntoIterator<Item = (Id, &'a [u8])>,
        _groups: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Stream {
        let mut stream = Stream::default();
        stream.track.kid = kid;
        stream.entries = entries.into_iter().map(|(id, fields)| (id, fields.into())).collect();
        stream
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
        self.entries.values().map(|fields| fields.len()).sum()
    }

    fn edits(&self) -> u64 {
        self.track.edits()
    }

    fn drain(&mut self, rows: &mut dyn Rows) {
        for (ms, seq) in self.track.take() {
            match self.entries.get(&(ms, seq)) {
                Some(fields) => rows.stream_put(self.track.kid, ms, seq, fields),
                None => rows.stream_delete(self.track.kid, ms, seq),
            }
        }
    }

    fn renew(&mut self) {
        for (id, fields) in &self.entries {
            self.track.change(*id, || (*id, Some(fields.clone())));
        }
    }

    fn remember(&mut self) {
        self.track.remember();
    }

    fn undo(&mut self) {
        for (id, before) in self.track.undo().into_iter().rev() {
            match before {
                Some(fields) => self.entries.insert(id, fields),
                None => self.entries.remove(&id),
            };
        }
    }

    fn keep(&mut self) {
        self.track.keep();
    }
}
