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
    /// How many keys each database has, for INFO; databases without any may be left out. It is
    /// asked seldom enough for counting ([`crate::command::info`]).
    Databases,
}

impl Query {
    /// The database that it is about; none when it is about all.
    pub fn db(&self) -> Option<u16> {
        match self {
            Query::Size { db } | Query::Keys { db, .. } | Query::Random { db } => Some(*db),
            Query::Databases => None,
        }
    }
}

/// A logical database, as INFO tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Database {
    pub db: u16,
    /// Expired ones not counted.
    pub keys: u64,
    /// Those that will expire.
    pub expires: u64,
    /// Milliseconds that these have left, on average.
    pub left_ms: i64,
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
    /// In order.
    Databases(Vec<Database>),
    Failed(String),
}
