//! The tables in PostgreSQL: batches go out and are committed exactly once, rows come in.
//!
//! One link (the *loader*) holds the advisory lock that makes this gateway the only one, listens
//! to what SQL writers announce, and looks things up. Each shard has a *writer*. When all are
//! ready the shards are *taken*: their epoch grows, so that nothing that was sent before can be
//! applied any more, and `applied` tells which batches had been. So after every loss of a
//! connection it is known what has become of each batch.
//!
//! With databases in journal mode there are two links more: one appends, one folds ([`journal`]).

mod flights;
mod journal;
mod links;
mod lookups;
mod start;
mod sweep;

use backend::calls::Calls;
use backend::moment::Moment;
use hashbrown::HashMap;

use crate::batch::Batch;
use crate::engine::row_shards;
use crate::flow::Sealed;
use crate::keyspace::Keyspace;
use crate::query::Query;
use crate::session::ConnId;
use crate::store::{Links, Store, Told};
use flights::Flight;
use journal::Journal;
use links::Link;
use lookups::Lookup;

/// The loader's number; the writers' follow.
const LOADER: usize = 0;

/// What this gateway is to the tables.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Names this process and no other, in `redis.shard`.
    pub owner: String,
    /// Where its connections lead, and as which role: for what an operator is told.
    pub database: String,
    pub role: String,
    /// Writers, and so shards.
    pub shards: usize,
    /// Logical databases whose commits don't wait for the flush.
    pub hurried: Vec<u16>,
    /// Whether there are databases in journal mode; their shard comes after the writers'.
    pub journal: bool,
    /// How long a batch that can't be applied for a reason that may pass is tried again.
    pub patience: std::time::Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Links are missing.
    Away,
    /// All links are ready; the loader is asked for the shards.
    Taking,
    /// The shards are taken; what is in the journal comes into the tables.
    Replaying,
    Ready,
}

/// What has been counted since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    pub batches: u64,
    pub rows: u64,
    pub commit_us: u64,
    pub retries: u64,
    pub conflicts: u64,
    pub lookups: u64,
    pub looked_up_keys: u64,
}

#[derive(Debug)]
pub struct Tables {
    identity: Identity,
    links: Vec<Link>,
    phase: Phase,
    /// Of each writer's shard; 0 before it was first taken.
    epochs: Vec<i64>,
    journal: Journal,
    /// The link that folds.
    folder: usize,
    /// Batches that are not known to be committed, in order.
    flights: Vec<Flight>,
    /// Shards in which a batch was given up: those behind it can't be applied any more.
    undone: u32,
    /// Somebody else has had the shards since they were last ready here.
    was_others: bool,
    /// Answers of the present taking.
    taking: start::Taking,
    lookups: HashMap<u64, Lookup, foldhash::fast::RandomState>,
    /// Batches to be used again, for their buffers.
    spare: Vec<Batch>,
    /// All links have to be dropped, and why.
    doomed: Option<String>,
    tags: u64,
    sweep: sweep::Sweep,
    told: Vec<Told>,
    dropped: Vec<usize>,
    now: Moment,
    pub figures: Figures,
}

impl Tables {
    pub fn new(identity: Identity) -> Tables {
        let shards = row_shards(identity.shards);
        let links = 1 + shards + if identity.journal { 2 } else { 0 };
        Tables {
            links: (0..links).map(|_| Link::default()).collect(),
            journal: Journal::new(),
            // Without a link of its own there is only to be folded what was left, before the first
            // writer has anything to do.
            folder: if identity.journal { links - 1 } else { 1 },
            phase: Phase::Away,
            epochs: vec![0; shards],
            flights: Vec::new(),
            undone: 0,
            was_others: false,
            taking: start::Taking::default(),
            lookups: HashMap::default(),
            spare: Vec::new(),
            doomed: None,
            tags: start::TAGS,
            sweep: sweep::Sweep::default(),
            told: Vec::new(),
            dropped: Vec::new(),
            now: Moment(0),
            figures: Figures::default(),
            identity,
        }
    }

    fn tag(&mut self) -> u64 {
        self.tags += 1;
        self.tags
    }

    fn calls(&mut self, link: usize) -> &mut Calls {
        &mut self.links[link].calls
    }

    /// Nothing can be done until the links are there again.
    fn leave(&mut self, why: &str) {
        if self.phase != Phase::Away {
            self.phase = Phase::Away;
        }
        self.told.push(Told::Away { why: why.to_owned() });
    }
}

impl Store for Tables {
    fn send(&mut self, keys: &mut Keyspace, sealed: &Sealed) {
        let flight = self.write(keys, sealed);
        self.flights.push(flight);
        self.pump();
    }

    fn load(&mut self, db: u16, keys: Vec<Box<[u8]>>) {
        self.look_up(db, keys);
    }

    fn ask(&mut self, conn: ConnId, query: Query) {
        self.look_for(conn, query);
    }

    fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    fn retries(&self) -> u64 {
        self.figures.retries
    }

    fn backlog(&self) -> usize {
        self.journal.backlog()
    }

    fn hurry(&mut self) {
        self.journal.hurry();
    }

    fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    fn links(&mut self) -> &mut dyn Links {
        self
    }
}
