//! What all connections share beside the keys.

use std::sync::Arc;

use crate::flow::Barrier;
use crate::pubsub::Hub;
use crate::query::Query;
use crate::random::Random;
use crate::reply::Recorded;
use crate::session::{ConnId, Sessions};

/// What a worker has to do for a connection of its own.
#[derive(Debug)]
pub enum Event {
    /// Something has committed: see which held replies may go.
    Release(ConnId),
    /// The command that was parked can run again.
    Resume(ConnId),
    /// Held replies whose [`crate::flow::Fate`] is undone have to be made again; or, when
    /// PostgreSQL has refused them for good, to become this error.
    Redo {
        conn: ConnId,
        refused: Option<Arc<str>>,
    },
    /// The reply of a command that had blocked, to be held until `barrier`.
    Answer {
        conn: ConnId,
        reply: Arc<Recorded>,
        barrier: Option<Barrier>,
    },
    /// Out of band: a message of a channel, an invalidation.
    Push {
        conn: ConnId,
        message: Arc<Recorded>,
    },
    Close(ConnId),
}

impl Event {
    pub fn conn(&self) -> ConnId {
        match self {
            Event::Release(conn)
            | Event::Resume(conn)
            | Event::Close(conn)
            | Event::Redo { conn, .. }
            | Event::Answer { conn, .. }
            | Event::Push { conn, .. } => *conn,
        }
    }
}

/// What CONFIG SET can change and commands go by. Values in the units of Redis's `redis.conf`.
#[derive(Debug, Clone)]
pub struct Settings {
    pub databases: u16,
    /// How long commands wait for a PostgreSQL that is away before they fail.
    pub patience_ms: i64,
    /// Bytes of clean copies in memory.
    pub memory: usize,
    pub max_clients: usize,
    pub proto_max_bulk_len: usize,
    pub hash_max_listpack_entries: usize,
    pub hash_max_listpack_value: usize,
    pub list_max_listpack_size: i64,
    pub set_max_intset_entries: usize,
    pub set_max_listpack_entries: usize,
    pub set_max_listpack_value: usize,
    pub zset_max_listpack_entries: usize,
    pub zset_max_listpack_value: usize,
    pub slowlog_slower_than_us: i64,
    pub slowlog_max_len: usize,
    pub lua_time_limit_ms: u64,
    pub notify_keyspace_events: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            databases: 16,
            patience_ms: 5_000,
            memory: 256 << 20,
            max_clients: 10_000,
            proto_max_bulk_len: 512 << 20,
            hash_max_listpack_entries: 128,
            hash_max_listpack_value: 64,
            list_max_listpack_size: -2,
            set_max_intset_entries: 512,
            set_max_listpack_entries: 128,
            set_max_listpack_value: 64,
            zset_max_listpack_entries: 128,
            zset_max_listpack_value: 64,
            slowlog_slower_than_us: 10_000,
            slowlog_max_len: 128,
            lua_time_limit_ms: 5_000,
            notify_keyspace_events: String::new(),
        }
    }
}

/// Everything but keys.
#[derive(Debug, Default)]
pub struct Server {
    pub sessions: Sessions,
    pub hub: Hub,
    pub settings: Settings,
    pub random: Random,
    /// For the workers, in order.
    pub events: Vec<(u8, Event)>,
    /// Asked by commands, for PostgreSQL.
    pub queries: Vec<(ConnId, Query)>,
    /// Of SCAN.
    pub cursors: crate::cursors::Cursors,
    /// Made when the first script comes; away while one runs.
    pub scripts: Option<Box<crate::script::Scripts>>,
    /// By which scripts are ended that run for too long.
    pub clock: Option<crate::script::Clock>,
    /// Milliseconds since 1970.
    pub started: i64,
}

impl Server {
    /// Tells all who listen to the channel; gives how many.
    pub fn publish(&mut self, _channel: &[u8], _message: &[u8]) -> usize {
        0
    }

    pub fn tell(&mut self, event: Event) {
        if let Some(session) = self.sessions.get(event.conn()) {
            self.events.push((session.worker, event));
        }
    }
}
