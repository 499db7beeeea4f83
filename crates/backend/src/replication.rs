//! What a replication stream tells, in the order of commits.

use wire::pg::pgoutput::{Relation, Tuple};

/// What is known of a row before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Old<'a> {
    /// Nothing; of an UPDATE also that its identity is the new row's.
    Unknown,
    /// The columns of the replica identity; the others are [`wire::pg::pgoutput::Field::Null`].
    Key(Tuple<'a>),
    /// All of it (REPLICA IDENTITY FULL).
    Whole(Tuple<'a>),
}

/// Who is told. Large transactions are told while they run (*streamed*): rows of several then
/// come mixed, each with the number of its transaction, and only [`Changes::commit`] says that
/// they count.
pub trait Changes {
    /// Rows of this table look like this from now on.
    fn relation(&mut self, relation: &Relation);

    /// A transaction that is not streamed: all that follows is its own, up to its commit.
    fn begin(&mut self, xid: u32);

    /// A row was inserted (`new` only), updated or deleted (no `new`). `xid` is that of the
    /// subtransaction where the transaction is streamed.
    fn row(&mut self, xid: u32, relation: u32, old: Old<'_>, new: Option<Tuple<'_>>);

    fn truncate(&mut self, xid: u32, relations: &mut dyn Iterator<Item = u32>);

    /// `end` is the position behind the commit record. COMMIT PREPARED as well.
    fn commit(&mut self, xid: u32, end: u64);

    /// Of a streamed transaction: `sub` and what it did is undone; `sub == xid`: all of it.
    fn abort(&mut self, xid: u32, sub: u32);

    /// Everything before this position has been told.
    fn progress(&mut self, lsn: u64);
}
