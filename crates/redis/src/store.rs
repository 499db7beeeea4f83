//! What the engine wants of the tables, without saying how it is done.

use backend::moment::Moment;

use crate::flow::Sealed;
use crate::keyspace::Keyspace;
use crate::query::{Answer, Query};
use crate::session::ConnId;
use crate::value::Value;

/// The tables as the engine sees them: it gives orders and is told of results by [`Told`]s.
pub trait Store {
    /// Writes the batch's rows ([`Keyspace::write_rows`]) and sends it as one transaction. It is
    /// tried again as long as its outcome is not known and nobody else has taken over.
    fn send(&mut self, keys: &mut Keyspace, sealed: &Sealed);
    /// Looks these keys up.
    fn load(&mut self, db: u16, keys: Vec<Box<[u8]>>);
    fn ask(&mut self, conn: ConnId, query: Query);
    /// Whether batches can be taken now; not while PostgreSQL is away.
    fn is_ready(&self) -> bool;
    /// Batches that were sent once more: a serialization failure, a deadlock, a lost connection.
    fn retries(&self) -> u64 {
        0
    }
    /// Bytes of the journal that are not in the tables yet.
    fn backlog(&self) -> usize {
        0
    }
    /// Somebody waits until what is in the journal is in the tables.
    fn hurry(&mut self) {}
    /// What has happened since the last time.
    fn told(&mut self) -> Vec<Told>;
    fn links(&mut self) -> &mut dyn Links;
}

/// The store's connections to PostgreSQL, by number, for whoever has sockets. One worker drives
/// them all; after another worker's turn it has to write what there is in [`Links::out`].
pub trait Links {
    fn count(&self) -> usize;
    /// Which are to be opened now: each is answered by [`Links::opened`] or [`Links::failed`].
    fn wanted(&mut self, now: Moment) -> Vec<usize>;
    /// It is logged in and idle.
    fn opened(&mut self, link: usize, now: Moment);
    fn failed(&mut self, link: usize, why: &str, now: Moment);
    fn receive(&mut self, link: usize, bytes: &[u8], now: Moment);
    fn closed(&mut self, link: usize, why: &str, now: Moment);
    /// When [`Links::wanted`] has to be called though nothing happens: there is something to be tried
    /// again, or to be given up.
    fn next_due(&self) -> Option<Moment>;
    /// Bytes to be sent, to be taken from the front.
    fn out(&mut self, link: usize) -> &mut Vec<u8>;
    /// Links to be closed; they are forgotten here already.
    fn dropped(&mut self) -> Vec<usize>;
}

/// A key's row.
#[derive(Debug, Clone)]
pub struct Row {
    pub value: Value,
    /// Milliseconds since 1970, or [`crate::keyspace::NEVER`].
    pub expires: i64,
    pub version: i64,
}

#[derive(Debug, Clone)]
pub enum Told {
    /// This gateway has the tables to itself: the number of each shard's last batch, and where the
    /// numbers of collections go on. `same`: nobody else had them meanwhile.
    Taken {
        applied: Vec<u64>,
        kids: i64,
        same: bool,
    },
    /// Nothing can be had until the next [`Told::Taken`]; copies can't be trusted.
    Away {
        why: String,
    },
    /// A sealed batch is in the tables.
    Committed {
        number: u64,
    },
    /// The journal's shard is in the tables up to this batch. How many keys were written for that,
    /// and how many microseconds it took.
    Folded {
        seq: u64,
        keys: usize,
        took_us: u64,
    },
    /// What is in the journal could not be written into the tables; it is tried again.
    NotFolded {
        why: String,
    },
    /// It is not, and will not be: an SQL writer was there first.
    Conflict {
        number: u64,
    },
    /// It is not, and will not be: PostgreSQL has refused it for good, whatever is tried.
    Refused {
        number: u64,
        why: String,
    },
    Loaded {
        db: u16,
        key: Box<[u8]>,
        row: Option<Row>,
    },
    /// The connection was lost while these keys were looked up.
    Postponed {
        db: u16,
        keys: Vec<Box<[u8]>>,
    },
    /// These keys could not be looked up.
    NotLoaded {
        db: u16,
        keys: Vec<Box<[u8]>>,
        why: String,
    },
    Answered {
        conn: ConnId,
        answer: Answer,
    },
    /// Rows whose time is over, with their versions.
    Expired {
        keys: Vec<(u16, Box<[u8]>, i64)>,
    },
    /// Somebody has changed a key by SQL.
    Changed {
        db: u16,
        key: Box<[u8]>,
    },
    /// Or many, of one database or of all.
    ChangedMany {
        db: Option<u16>,
    },
}
