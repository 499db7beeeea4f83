//! Questions about all keys of a database. Memory does not know them all, so PostgreSQL is asked,
//! after everything that was done before has been committed.

/// What a command asks by [`crate::call::Call::ask`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// How many keys, expired ones not counted.
    Size { db: u16 },
    /// At most `limit` keys after `after` in order of bytes, of one type or any.
    Keys { db: u16, after: Option<Box<[u8]>>, limit: usize, kind: Option<u8> },
    /// Some key.
    Random { db: u16 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Size(u64),
    /// The keys, and whether there may be more behind the last.
    Keys {
        keys: Vec<Box<[u8]>>,
        more: bool,
    },
    Random(Option<Box<[u8]>>),
    Failed(String),
}
