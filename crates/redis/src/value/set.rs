//! Sets.

use hashbrown::HashSet;

use super::{Track, Tracked};
use crate::rows::Rows;
use crate::server::Settings;

/// A member, and whether it was there.
type Before = (Box<[u8]>, bool);

#[derive(Debug, Clone, Default)]
pub struct Set {
    members: HashSet<Box<[u8]>, foldhash::fast::RandomState>,
    bytes: usize,
    track: Track<Box<[u8]>, Before>,
}

/// What a member costs beside its bytes.
const MEMBER_BYTES: usize = 24;

impl Set {
    /// As its rows have it.
    pub fn load<'a>(kid: i64, rows: impl IntoIterator<Item = &'a [u8]>) -> Set {
        let mut set = Set::default();
        set.track.kid = kid;
        for member in rows {
            set.put(member, true);
        }
        set
    }

    pub fn contains(&self, member: &[u8]) -> bool {
        self.members.contains(member)
    }

    /// As Redis would keep it.
    pub fn encoding(&self, settings: &Settings) -> &'static str {
        let len = self.members.len();
        let longest = self.iter().map(<[u8]>::len).max().unwrap_or(0);
        if self.iter().all(|member| super::parse_integer(member).is_some()) {
            return if len <= settings.set_max_intset_entries { "intset" } else { "hashtable" };
        }
        let small =
            len <= settings.set_max_listpack_entries && longest <= settings.set_max_listpack_value;
        if small {
            "listpack"
        } else {
            "hashtable"
        }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.members.iter().map(|member| &**member)
    }

    /// True when it is new.
    pub fn insert(&mut self, member: &[u8]) -> bool {
        let new = self.put(member, true);
        if new {
            self.track.change(member.into(), || (member.into(), false));
        }
        new
    }

    /// True when it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let was = self.put(member, false);
        if was {
            self.track.change(member.into(), || (member.into(), true));
        }
        was
    }

    /// True when that changes something.
    fn put(&mut self, member: &[u8], there: bool) -> bool {
        let changed = match there {
            true => !self.members.contains(member) && self.members.insert(member.into()),
            false => self.members.remove(member),
        };
        let bytes = if changed { member.len() + MEMBER_BYTES } else { 0 };
        self.bytes = if there { self.bytes + bytes } else { self.bytes - bytes };
        changed
    }
}

impl Tracked for Set {
    fn kid(&self) -> i64 {
        self.track.kid
    }

    fn set_kid(&mut self, kid: i64) {
        self.track.kid = kid;
    }

    fn len(&self) -> usize {
        self.members.len()
    }

    fn weight(&self) -> usize {
        self.bytes
    }

    fn edits(&self) -> u64 {
        self.track.edits()
    }

    fn drain(&mut self, rows: &mut dyn Rows) {
        for member in self.track.take() {
            match self.members.contains(&member) {
                true => rows.set_put(self.track.kid, &member),
                false => rows.set_delete(self.track.kid, &member),
            }
        }
    }

    fn renew(&mut self) {
        for member in &self.members {
            self.track.change(member.clone(), || (member.clone(), true));
        }
    }

    fn remember(&mut self) {
        self.track.remember();
    }

    fn undo(&mut self) {
        for (member, was) in self.track.undo().into_iter().rev() {
            self.put(&member, was);
        }
    }

    fn keep(&mut self) {
        self.track.keep();
    }
}
