//! Sets: small ones of integers as such, other small ones packed, others in a table.

use std::ops::Deref;

use super::packed::{self, Packed, ITEM_BYTES_MAX};
use super::table::{self, Table};
use super::{parse_integer, Track, Tracked};
use crate::rows::Rows;
use crate::server::Settings;

/// Members of a set of integers, and of a packed one: Redis's `set-max-intset-entries` and
/// `set-max-listpack-entries`.
const INTS_MAX: usize = 512;
const PACKED_MAX: usize = 128;

/// What a member in the table owns beside its bytes: the allocator's part.
const MEMBER_BYTES: usize = 16;

/// A member, and whether it was there.
type Before = (Box<[u8]>, bool);

#[derive(Debug, Clone, Default)]
pub struct Set {
    members: Members,
    /// Of what members in the table own.
    bytes: usize,
    grown: Grown,
    track: Track<Box<[u8]>, Before>,
}

#[derive(Debug, Clone)]
enum Members {
    /// In ascending order.
    Ints(Vec<i64>),
    Packed(Packed),
    Table(Table<Box<[u8]>>),
}

impl Default for Members {
    fn default() -> Members {
        Members::Ints(Vec::new())
    }
}

/// What a set has been like: Redis never goes back to a smaller encoding.
#[derive(Debug, Clone, Copy, Default)]
struct Grown {
    /// Members while all were integers, at most.
    ints: usize,
    /// Members since one was not, at most; none: all have been integers.
    others: Option<usize>,
    longest: usize,
}

impl Grown {
    fn added(&mut self, member: &[u8], is_int: bool, len: usize) {
        self.longest = self.longest.max(member.len());
        match &mut self.others {
            Some(most) => *most = len.max(*most),
            None if is_int => self.ints = self.ints.max(len),
            None => self.others = Some(len),
        }
    }
}

/// A member's bytes: borrowed, or an integer's digits.
#[derive(Debug, Clone)]
pub enum Member<'a> {
    Bytes(&'a [u8]),
    Digits { digits: [u8; 20], len: u8 },
}

impl Member<'_> {
    fn of(number: i64) -> Member<'static> {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(number).as_bytes();
        let mut digits = [0; 20];
        digits[..text.len()].copy_from_slice(text);
        Member::Digits { digits, len: text.len() as u8 }
    }
}

impl Deref for Member<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Member::Bytes(bytes) => bytes,
            Member::Digits { digits, len } => &digits[..usize::from(*len)],
        }
    }
}

impl AsRef<[u8]> for Member<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Set {
    /// As its rows have it.
    pub fn load<'a>(kid: i64, rows: impl IntoIterator<Item = &'a [u8]>) -> Set {
        let mut set = Set::default();
        set.track.kid = kid;
        for member in rows {
            set.put(member);
        }
        match &mut set.members {
            Members::Ints(ints) => ints.shrink_to_fit(),
            Members::Packed(packed) => packed.shrink(),
            Members::Table(_) => {}
        }
        set
    }

    /// One that is not anybody's value yet: [`Tracked::renew`] has its rows written.
    pub fn of<M: AsRef<[u8]>>(members: impl IntoIterator<Item = M>) -> Set {
        let mut set = Set::default();
        for member in members {
            set.put(member.as_ref());
        }
        set
    }

    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.members {
            Members::Ints(ints) => {
                parse_integer(member).is_some_and(|number| ints.binary_search(&number).is_ok())
            }
            Members::Packed(packed) => packed.find(member, 1).is_some(),
            Members::Table(table) => table.find(member).is_some(),
        }
    }

    /// Integers in ascending order; else, while it is small, in the order in which they came.
    pub fn iter(&self) -> Iter<'_> {
        Iter(match &self.members {
            Members::Ints(ints) => Elements::Ints(ints.iter()),
            Members::Packed(packed) => Elements::Packed(packed.iter()),
            Members::Table(table) => Elements::Table(table.iter()),
        })
    }

    /// The member at `at` in the order of [`Set::iter`], to choose at random.
    pub fn at(&self, at: usize) -> Option<Member<'_>> {
        match &self.members {
            Members::Ints(ints) => ints.get(at).map(|number| Member::of(*number)),
            Members::Packed(packed) => packed.iter().nth(at).map(Member::Bytes),
            Members::Table(table) => (at < table.len()).then(|| Member::Bytes(table.get(at))),
        }
    }

    /// About `count` members from `cursor` on, and the cursor to go on with; 0 begins and ends.
    pub fn scan<'a>(&'a self, cursor: u64, count: usize, mut each: impl FnMut(Member<'a>)) -> u64 {
        match &self.members {
            Members::Table(table) => table.scan(cursor, count, |name| each(Member::Bytes(name))),
            _ => {
                self.iter().for_each(each);
                0
            }
        }
    }

    /// As OBJECT ENCODING replies.
    pub fn encoding(&self, settings: &Settings) -> &'static str {
        let Grown { ints, others, longest } = self.grown;
        match others {
            _ if ints > settings.set_max_intset_entries => "hashtable",
            None => "intset",
            Some(most)
                if most <= settings.set_max_listpack_entries
                    && longest <= settings.set_max_listpack_value =>
            {
                "listpack"
            }
            Some(_) => "hashtable",
        }
    }

    /// True when it is new.
    pub fn insert(&mut self, member: &[u8]) -> bool {
        let new = self.put(member);
        if new {
            self.track.change(member.into(), || (member.into(), false));
        }
        new
    }

    /// True when it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let was = self.cut(member);
        if was {
            self.track.change(member.into(), || (member.into(), true));
        }
        was
    }

    /// True when it is new.
    fn put(&mut self, member: &[u8]) -> bool {
        let number = parse_integer(member);
        if let Members::Ints(ints) = &mut self.members {
            match number.map(|number| (number, ints.binary_search(&number))) {
                Some((_, Ok(_))) => return false,
                Some((number, Err(at))) if ints.len() < INTS_MAX => {
                    ints.insert(at, number);
                    self.grown.added(member, true, ints.len());
                    return true;
                }
                _ if ints.len() < PACKED_MAX && member.len() <= ITEM_BYTES_MAX => self.pack(),
                _ => self.unpack(),
            }
        }
        if let Members::Packed(packed) = &mut self.members {
            if packed.find(member, 1).is_some() {
                return false;
            }
            if packed.len() < PACKED_MAX && member.len() <= ITEM_BYTES_MAX {
                packed.push(member);
                self.grown.added(member, number.is_some(), packed.len());
                return true;
            }
            self.unpack();
        }
        let Members::Table(table) = &mut self.members else { return false };
        if table.find(member).is_some() {
            return false;
        }
        table.insert(member.into());
        self.bytes += member.len() + MEMBER_BYTES;
        self.grown.added(member, number.is_some(), table.len());
        true
    }

    /// True when it was there.
    fn cut(&mut self, member: &[u8]) -> bool {
        match &mut self.members {
            Members::Ints(ints) => {
                let place = parse_integer(member).map(|number| ints.binary_search(&number));
                if let Some(Ok(at)) = place {
                    ints.remove(at);
                    return true;
                }
            }
            Members::Packed(packed) => {
                if let Some(at) = packed.find(member, 1) {
                    packed.remove(at, 1);
                    return true;
                }
            }
            Members::Table(table) => {
                if let Some(at) = table.find(member) {
                    self.bytes -= table.remove(at).len() + MEMBER_BYTES;
                    return true;
                }
            }
        }
        false
    }

    fn pack(&mut self) {
        let mut packed = Packed::default();
        self.iter().for_each(|member| packed.push(&member));
        self.members = Members::Packed(packed);
    }

    fn unpack(&mut self) {
        let mut table: Table<Box<[u8]>> = Table::with_capacity(self.len() + 1);
        self.iter().for_each(|member| table.insert((*member).into()));
        self.bytes = table.iter().map(|member| member.len() + MEMBER_BYTES).sum();
        self.members = Members::Table(table);
    }
}

/// Members.
#[derive(Debug)]
pub struct Iter<'a>(Elements<'a>);

#[derive(Debug)]
enum Elements<'a> {
    Ints(std::slice::Iter<'a, i64>),
    Packed(packed::Iter<'a>),
    Table(table::Iter<'a, Box<[u8]>>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        match &mut self.0 {
            Elements::Ints(ints) => ints.next().map(|number| Member::of(*number)),
            Elements::Packed(items) => items.next().map(Member::Bytes),
            Elements::Table(names) => names.next().map(|name| Member::Bytes(name)),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Elements::Ints(ints) => ints.size_hint(),
            Elements::Packed(items) => items.size_hint(),
            Elements::Table(names) => names.size_hint(),
        }
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl Tracked for Set {
    fn kid(&self) -> i64 {
        self.track.kid
    }

    fn set_kid(&mut self, kid: i64) {
        self.track.kid = kid;
    }

    fn len(&self) -> usize {
        match &self.members {
            Members::Ints(ints) => ints.len(),
            Members::Packed(packed) => packed.len(),
            Members::Table(table) => table.len(),
        }
    }

    fn weight(&self) -> usize {
        let members = match &self.members {
            Members::Ints(ints) => ints.capacity() * size_of::<i64>(),
            Members::Packed(packed) => packed.weight(),
            Members::Table(table) => table.weight() + self.bytes,
        };
        size_of::<Set>() + members
    }

    fn edits(&self) -> u64 {
        self.track.edits()
    }

    fn drain(&mut self, rows: &mut dyn Rows) {
        for member in self.track.take() {
            match self.contains(&member) {
                true => rows.set_put(self.track.kid, &member),
                false => rows.set_delete(self.track.kid, &member),
            }
        }
    }

    fn renew(&mut self) {
        let mut track = std::mem::take(&mut self.track);
        for member in self.iter() {
            track.change((*member).into(), || ((*member).into(), true));
        }
        self.track = track;
    }

    fn remember(&mut self) {
        self.track.remember();
    }

    fn undo(&mut self) {
        for (member, was) in self.track.undo().into_iter().rev() {
            match was {
                true => self.put(&member),
                false => self.cut(&member),
            };
        }
    }

    fn keep(&mut self) {
        self.track.keep();
    }
}
