//! What a replication stream tells, in the order of commits.
//!
//! A database is followed with two connections:
//!
//! ```text
//! ordinary one:     Keeper  look at server, publication, tables -> change the publication -> look
//!                           every few seconds: look, compare definitions and rights, size of slot
//! replication=database: Client  CREATE_REPLICATION_SLOT -> START_REPLICATION -> changes
//! ```
//!
//! The consumer ([`Changes`]) is told where the stream begins and which tables it tells of. When
//! it is lost, all that was told counts no more: the next one begins anew, with another slot.
//!
//! What tables had in them before is copied under a snapshot, with connections of its own: see
//! [`snapshot`].

pub mod catalogue;
pub mod client;
mod decode;
pub mod keeper;
pub mod missing;
pub mod plan;
pub mod snapshot;

use wire::pg::pgoutput::{Relation, Tuple};

pub use wire::pg::pgoutput::Old;

/// The oldest server that can be followed: it knows `publish_via_partition_root` and
/// `pg_current_snapshot`.
pub const SERVER_VERSION_MIN: u32 = 130_000;

/// What both connections begin with: values have one text form whatever the role, the database or
/// the server say, and names mean what the catalogues call them.
pub const SETTINGS: [(&str, &str); 10] = [
    ("application_name", "pondage"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("IntervalStyle", "postgres"),
    ("extra_float_digits", "1"),
    ("bytea_output", "hex"),
    ("search_path", ""),
    ("standard_conforming_strings", "on"),
    ("default_transaction_isolation", "read committed"),
];

/// Why a database is not followed, or no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Somebody has to change something first.
    Refused(missing::Missing),
    /// A new try may go well.
    Lost(String),
}

/// Who is told. Large transactions are told while they run (*streamed*): rows of several then
/// come mixed, each with the number of its transaction, and only [`Changes::commit`] says that
/// they count.
///
/// ```text
/// comes_from began { relation* begin (relation | row | truncate)* commit
///       | streaming (relation | row | truncate | abort)*  ... commit | abort
///       | progress | published | redefined }*  lost
/// ```
pub trait Changes {
    /// The next stream comes from the server that was started then, in its microseconds since 2000:
    /// one that takes over for another was started at another time.
    fn comes_from(&mut self, started: i64) {
        let _ = started;
    }

    /// A stream begins: transactions that commit behind `lsn` are told, as far as they change
    /// these tables. Nothing that an earlier stream told is of use any more.
    fn began(&mut self, lsn: u64, tables: &[PublishedTable]);

    /// The tables whose changes are told have become others. Those that will be told no longer
    /// are missing here before that happens; new ones come when no transaction is left that could
    /// have changed them without being told.
    fn published(&mut self, tables: &[PublishedTable]);

    /// Rights, functions, views, policies or the shape of tables may have changed. It is found out
    /// by asking, within seconds.
    fn redefined(&mut self);

    /// Nothing is told any more, until a new stream begins.
    fn lost(&mut self, why: &str);

    /// Rows of this table look like this from now on. It may be told again unchanged.
    fn relation(&mut self, relation: &Relation);

    /// A transaction that is not streamed: all that follows is its own, up to its commit.
    fn begin(&mut self, xid: u32);

    /// What follows belongs to the streamed transaction `xid`, up to the next call of this or of
    /// `begin`. Called before each of its parts; rows have the numbers of its subtransactions.
    fn streaming(&mut self, xid: u32);

    /// A row was inserted (`new` only), updated or deleted (no `new`). `xid` is that of the
    /// subtransaction where the transaction is streamed.
    fn row(&mut self, xid: u32, relation: u32, old: Old<'_>, new: Option<Tuple<'_>>);

    fn truncate(&mut self, xid: u32, relations: &mut dyn Iterator<Item = u32>);

    /// `end` is the position behind the commit record. COMMIT PREPARED as well.
    fn commit(&mut self, xid: u32, end: u64);

    /// Of a streamed transaction: `sub` and what it did is undone; `sub == xid`: all of it.
    fn abort(&mut self, xid: u32, sub: u32);

    /// Everything before this position has been told. Called at the end of each piece of the
    /// stream in which the server said how far it is, even if that is no further than before: an
    /// idle server says so when it is asked, and every few seconds.
    fn progress(&mut self, lsn: u64);
}

/// A table of which every change is told, those of its partitions and children included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedTable {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    /// A partitioned table: its rows are its partitions', and changes name those.
    pub partitioned: bool,
    /// The tables that it is a partition or child of, directly or not. A change of this table is
    /// one of theirs as well.
    pub ancestors: Vec<u32>,
}
