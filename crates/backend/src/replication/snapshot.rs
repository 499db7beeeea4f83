//! Tables as one snapshot sees them, for who keeps a copy that the stream then goes on with.
//!
//! ```text
//! Holder   BEGIN, LOCK TABLE ... ACCESS SHARE, export the snapshot, look at the tables
//!            '-> Rows::began          then a look at who waits for the locks, now and then
//! Copier   BEGIN, SET TRANSACTION SNAPSHOT, COPY piece, COPY piece ...   (several of them)
//!            '-> Rows::row
//! ```
//!
//! No slot is needed: the snapshot says by number which transactions are in the copy, and the
//! stream tells the others by theirs. The locks are taken before the snapshot: nobody can have
//! emptied or rewritten a table between the two, which its rows would not show.
//!
//! While a copy runs its snapshot keeps VACUUM from removing what has died since, and its locks
//! keep away what changes the tables' definitions. It gives way to who waits for them, see
//! [`holder::Holder::look`].

pub mod copier;
pub mod holder;
mod line;
pub mod pieces;

use super::missing::identifier;

/// Most tables of one copy.
pub const SOURCES_MAX: usize = 256;

/// Beside [`super::SETTINGS`], for all connections of a copy. Who may not see all rows is refused
/// instead of seeing some. A piece is read by its place, whatever the planner thinks of the table.
/// Nothing waits long for a lock: others would wait behind it.
pub const SETTINGS: [(&str, &str); 7] = [
    ("row_security", "off"),
    ("enable_seqscan", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("jit", "off"),
    ("lock_timeout", "1s"),
    ("statement_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
];

/// A table to be copied, as it is known. Where the server knows it otherwise, nothing is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    /// Those that are copied, in this order: `attnum` and name.
    pub columns: Vec<(i16, String)>,
    /// `pg_class.relfilenode`: a rewritten table has another.
    pub filenode: u32,
}

impl Source {
    /// `"schema"."name"`.
    pub fn sql(&self) -> String {
        format!("{}.{}", identifier(&self.schema), identifier(&self.name))
    }

    fn columns_sql(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|(_, name)| identifier(name)).collect();
        names.join(", ")
    }
}

/// How much is done at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections that copy, beside the one that holds snapshot and locks.
    pub connections: usize,
    /// Blocks of a table that are copied with one statement.
    pub piece_blocks: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { connections: 2, piece_blocks: 8192 }
    }
}

/// What the catalogues say of a [`Source`] while it is copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    pub oid: u32,
    pub filenode: u32,
    pub blocks: u32,
    /// Those of the source, in its order.
    pub columns: Vec<FoundColumn>,
    /// `attnum`s of the replica identity's index, or of the primary key where the identity is the
    /// whole row; empty if there is neither.
    pub identity: Vec<i16>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundColumn {
    pub attnum: i16,
    pub name: String,
    pub type_oid: u32,
    pub type_modifier: i32,
    pub not_null: bool,
    /// Zero: values of this type have none.
    pub collation: u32,
}

/// Who is told.
///
/// ```text
/// began (row | progress)* (done | failed)
/// failed
/// ```
///
/// Rows of several tables come mixed. A transaction of the stream is in them exactly when the
/// snapshot sees its number; those that were told before `began` may not be.
pub trait Rows: Send {
    /// `snapshot` is `pg_current_snapshot` as text; whatever it sees ends before `lsn`. An error ends
    /// the copy.
    fn began(&mut self, snapshot: &str, lsn: u64, tables: &[Found]) -> Result<(), String>;

    /// A row of the table at this place of the sources: values as text, NULL is none. An error ends
    /// the copy.
    fn row(&mut self, table: usize, fields: &[Option<&[u8]>]) -> Result<(), String>;

    /// So many blocks of that table have been copied.
    fn progress(&mut self, table: usize, blocks_done: u64, blocks_total: u64);

    /// Every row was told.
    fn done(&mut self);

    /// Nothing is told any more, and what was counts no more.
    fn failed(&mut self, why: &str);
}
