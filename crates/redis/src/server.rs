//! What all connections share beside the keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::flow::{After, Barrier};
use crate::notify::Notify;
use crate::pubsub::{Hub, Space};
use crate::query::{Database, Query};
use crate::random::Random;
use crate::reply::{Recorded, Reply};
use crate::session::{ConnId, Sessions};
use crate::stats::Stats;

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
    /// Those whose writes go to the journal first.
    pub journal_databases: Vec<u16>,
    /// How long commands wait for a PostgreSQL that is away before they fail.
    pub patience_ms: i64,
    /// Bytes of clean copies in memory.
    pub memory: usize,
    /// Bytes of values that may wait in open batches; beyond it writers are parked.
    pub queue_limit: usize,
    /// Bytes of the journal that may wait to come into the tables; beyond it nothing is appended.
    pub journal_limit: usize,
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
    /// Entries that Redis keeps in one node of a stream: `~` removes whole nodes.
    pub stream_node_max_entries: usize,
    pub tracking_table_max_keys: usize,
    pub slowlog_slower_than_us: i64,
    pub slowlog_max_len: usize,
    pub lua_time_limit_ms: u64,
    pub notify_keyspace_events: Notify,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            databases: 16,
            journal_databases: Vec::new(),
            patience_ms: 5_000,
            memory: 256 << 20,
            queue_limit: 64 << 20,
            journal_limit: 256 << 20,
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
            stream_node_max_entries: 100,
            tracking_table_max_keys: crate::tracking::KEYS_MAX,
            slowlog_slower_than_us: 10_000,
            slowlog_max_len: 128,
            lua_time_limit_ms: 5_000,
            notify_keyspace_events: Notify::default(),
        }
    }
}

/// CLIENT PAUSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Milliseconds since 1970.
    pub until: i64,
    /// Reads wait, too.
    pub all: bool,
}

/// Everything but keys.
#[derive(Debug, Default)]
pub struct Server {
    pub sessions: Sessions,
    pub hub: Hub,
    pub tracking: crate::tracking::Table,
    pub monitors: crate::monitor::Monitors,
    pub settings: Settings,
    /// What was set by CONFIG SET of parameters that nothing goes by.
    pub parameters: BTreeMap<&'static str, String>,
    pub random: Random,
    /// For the workers, in order.
    pub events: Vec<(u8, Event)>,
    /// Asked by commands, for PostgreSQL.
    pub queries: Vec<(ConnId, Query)>,
    /// Whom CLIENT UNBLOCK has ended the wait of, and whether with an error.
    pub unblocked: Vec<(ConnId, bool)>,
    pub stats: Stats,
    pub pause: Option<Pause>,
    /// Whose command waits for its end.
    pub paused: Vec<ConnId>,
    /// DEBUG SET-DISABLE-DENY-SCRIPTS 1: scripts may give DEBUG.
    pub scripts_may_debug: bool,
    /// DEBUG SET-ACTIVE-EXPIRE 0: expired keys are removed only when they are written.
    pub keeps_expired: bool,
    /// What INFO was told last of the databases, and until when it is good enough.
    pub databases: (Vec<Database>, i64),
    /// Why PostgreSQL can't be used now, and since when, in milliseconds since 1970.
    pub away: Option<(String, i64)>,
    /// Of SCAN.
    pub cursors: crate::cursors::Cursors,
    /// Made when the first script comes; away while one runs.
    pub scripts: Option<Box<crate::script::Scripts>>,
    /// Milliseconds since 1970.
    pub started: i64,
    /// The time as far as it is known, for what happens between commands.
    pub now: i64,
    /// Microseconds since 1970, for taking the time of commands.
    pub clock: Option<fn() -> i64>,
}

impl Server {
    /// Microseconds since 1970: by the clock, else by the milliseconds that commands are given.
    pub fn microseconds(&self) -> i64 {
        match self.clock {
            Some(clock) => clock(),
            None => self.now.saturating_mul(1000),
        }
    }

    /// Tells all who listen to the channel; gives how many.
    pub fn publish(&mut self, space: Space, channel: &[u8], message: &[u8]) -> usize {
        let word = if space == Space::Shard { "smessage" } else { "message" };
        let mut pushes = Vec::new();
        if let Some(listeners) = self.hub.of(space).get(channel) {
            pushes.push((record(&[word.as_bytes(), channel, message]), listeners.clone()));
        }
        for (pattern, listeners) in self.hub.matching(space, channel) {
            let words = [b"pmessage", pattern, channel, message];
            pushes.push((record(&words), listeners.clone()));
        }
        let mut receivers = 0;
        for (message, listeners) in pushes {
            receivers += listeners.len();
            for conn in listeners {
                self.tell(Event::Push { conn, message: message.clone() });
            }
        }
        receivers
    }

    /// A change that was waited for has committed.
    pub fn follow(&mut self, after: After, notify: Notify) {
        match after {
            After::Publish { space, channel, message } => {
                self.publish(space, &channel, &message);
            }
            After::Event { db, name, key } if !self.hub.is_silent() => {
                if notify.by_key() {
                    let channel = [format!("__keyspace@{db}__:").as_bytes(), &key].concat();
                    self.publish(Space::Channel, &channel, name.as_bytes());
                }
                if notify.by_event() {
                    let channel = format!("__keyevent@{db}__:{name}");
                    self.publish(Space::Channel, channel.as_bytes(), &key);
                }
            }
            After::Event { .. } => {}
            After::Changed { key, by } => self.invalidate(&key, by),
            After::Flushed => self.invalidate_all(),
        }
    }

    /// What the unit that has ended has shown.
    pub fn tell_monitors(&mut self) {
        let (conns, lines) = self.monitors.take();
        for conn in conns {
            match &lines {
                None => self.tell(Event::Close(conn)),
                Some(lines) => lines.iter().for_each(|line| {
                    self.tell(Event::Push { conn, message: line.clone() });
                }),
            }
        }
    }

    /// CLIENT UNBLOCK of the client with this CLIENT ID: as if its time were over, or with an error.
    /// True when it waits for a key; it is answered after this command.
    pub fn unblock(&mut self, number: u64, with_error: bool) -> bool {
        let mut waiting = self.sessions.iter().filter(|session| session.blocked.is_some());
        let Some(session) = waiting.find(|session| session.number == number) else { return false };
        let conn = session.conn;
        let new = self.unblocked.iter().all(|(other, _)| *other != conn);
        if new {
            self.unblocked.push((conn, with_error));
        }
        new
    }

    pub fn tell(&mut self, event: Event) {
        if let Some(worker) = self.sessions.worker(event.conn()) {
            self.events.push((worker, event));
        }
    }
}

/// A message, the same for all who get it in either protocol.
fn record(words: &[&[u8]]) -> Arc<Recorded> {
    let mut message = Recorded::new(3);
    message.push(words.len());
    words.iter().for_each(|word| message.bulk(word));
    Arc::new(message)
}
