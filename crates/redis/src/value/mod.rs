//! Values: what a key can hold.
//!
//! Every collection keeps account of what has changed since its rows were last written, so that
//! [`Tracked::drain`] writes just that; and, while a script runs, of how to undo it.

pub mod group;
mod hash;
mod index;
mod list;
mod order;
mod packed;
mod set;
pub mod stream;
mod string;
mod table;
mod track;
mod zset;

pub use hash::Hash;
pub use list::List;
pub use set::{Member, Set};
pub use stream::Stream;
pub use string::{parse_integer, Str, Text};
pub use track::Track;
pub use zset::Zset;

use crate::rows::Rows;
use crate::server::Settings;

/// A value's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Str,
    List,
    Set,
    Zset,
    Hash,
    Stream,
}

impl Kind {
    pub const ALL: [Kind; 6] =
        [Kind::Str, Kind::List, Kind::Set, Kind::Zset, Kind::Hash, Kind::Stream];

    /// As TYPE replies.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Str => "string",
            Kind::List => "list",
            Kind::Set => "set",
            Kind::Zset => "zset",
            Kind::Hash => "hash",
            Kind::Stream => "stream",
        }
    }

    /// Column `t` of `redis.kv`.
    pub fn letter(self) -> u8 {
        match self {
            Kind::Str => b's',
            Kind::List => b'l',
            Kind::Set => b'e',
            Kind::Zset => b'z',
            Kind::Hash => b'h',
            Kind::Stream => b'S',
        }
    }

    pub fn from_letter(letter: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.letter() == letter)
    }
}

#[derive(Debug, Clone)]
pub enum Value {
    Str(Str),
    List(Box<List>),
    Set(Box<Set>),
    Zset(Box<Zset>),
    Hash(Box<Hash>),
    Stream(Box<Stream>),
}

/// What the engine wants of every collection.
pub trait Tracked {
    /// The incarnation that its rows carry; 0 until it has rows.
    fn kid(&self) -> i64;
    fn set_kid(&mut self, kid: i64);
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes in memory, roughly, in constant time.
    fn weight(&self) -> usize;
    /// Grows with every effective change, so that it tells whether there was one.
    fn edits(&self) -> u64;
    /// The least and greatest position of a list; what else a key's row has to keep of its value.
    fn ends(&self) -> (i64, i64) {
        (0, 0)
    }
    /// What a key's row keeps as `val`, for collections that have more than elements (streams).
    fn head(&self) -> Option<Vec<u8>> {
        None
    }
    /// Writes the rows of all that has changed since the last time, under [`Tracked::kid`].
    fn drain(&mut self, rows: &mut dyn Rows);
    /// Counts everything as changed: this is a copy, or its rows are gone.
    fn renew(&mut self);
    /// From here on changes can be undone, until [`Tracked::undo`] or [`Tracked::keep`].
    fn remember(&mut self);
    /// Takes back everything since [`Tracked::remember`].
    fn undo(&mut self);
    fn keep(&mut self);
}

impl Value {
    pub fn kind(&self) -> Kind {
        match self {
            Value::Str(_) => Kind::Str,
            Value::List(_) => Kind::List,
            Value::Set(_) => Kind::Set,
            Value::Zset(_) => Kind::Zset,
            Value::Hash(_) => Kind::Hash,
            Value::Stream(_) => Kind::Stream,
        }
    }

    pub fn collection(&self) -> Option<&dyn Tracked> {
        Some(match self {
            Value::Str(_) => return None,
            Value::List(list) => &**list,
            Value::Set(set) => &**set,
            Value::Zset(zset) => &**zset,
            Value::Hash(hash) => &**hash,
            Value::Stream(stream) => &**stream,
        })
    }

    pub fn collection_mut(&mut self) -> Option<&mut dyn Tracked> {
        Some(match self {
            Value::Str(_) => return None,
            Value::List(list) => &mut **list,
            Value::Set(set) => &mut **set,
            Value::Zset(zset) => &mut **zset,
            Value::Hash(hash) => &mut **hash,
            Value::Stream(stream) => &mut **stream,
        })
    }

    /// Bytes in memory, roughly.
    pub fn weight(&self) -> usize {
        match self {
            Value::Str(text) => text.weight(),
            other => other.collection().map_or(0, Tracked::weight),
        }
    }

    /// As OBJECT ENCODING tells it.
    pub fn encoding(&self, settings: &Settings) -> &'static str {
        match self {
            Value::Str(text) => text.encoding(),
            Value::List(list) => list.encoding(settings),
            Value::Set(set) => set.encoding(settings),
            Value::Zset(zset) => zset.encoding(settings),
            Value::Hash(hash) => hash.encoding(settings),
            Value::Stream(_) => "stream",
        }
    }

    /// A collection's incarnation and its kind's letter; 0 for a string.
    pub fn incarnation(&self) -> (i64, u8) {
        (self.collection().map_or(0, Tracked::kid), self.kind().letter())
    }

    /// An empty stream is a value; another collection is gone with its last element.
    pub fn is_gone(&self) -> bool {
        self.kind() != Kind::Stream && self.collection().is_some_and(Tracked::is_empty)
    }
}
