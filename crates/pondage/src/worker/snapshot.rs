//! What a worker tells the console, the metrics and the dashboard: copies, made when asked for.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend::moment::Moment;
use backend::pool::Scope;

use super::holders::Holder;
use crate::config::{PoolConfig, PoolMode};
use crate::control::messages::PoolName;
use crate::link::Ends;
use crate::route::{Way, Why};

#[derive(Debug, Clone, Default)]
pub struct WorkerSnapshot {
    pub worker: u8,
    pub pools: Vec<PoolSnapshot>,
    /// Clients that have logged in, and servers; whether or not they were asked for one by one.
    pub clients_len: usize,
    pub servers_len: usize,
    pub clients: Vec<ConnectionSnapshot>,
    pub servers: Vec<ConnectionSnapshot>,
    pub pins: Vec<PinSnapshot>,
    pub memory: Vec<MemorySnapshot>,
    pub queries: Vec<QuerySnapshot>,
    pub channels: Vec<ChannelSnapshot>,
    pub turns: u64,
    /// Log-ins under way, not yet in a pool.
    pub logging_in: u32,
    /// Clients refused or failed before they were in a pool, by SQLSTATE.
    pub refused: Vec<(String, u64)>,
    /// Who has servers; nobody while no client waits.
    pub holders: Vec<Holder>,
    pub now: Moment,
}

/// What a snapshot holds beside the pools: each is a copy of many texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detail {
    /// Clients and servers one by one.
    pub connections: bool,
    /// Statements by shape, and channels.
    pub statements: bool,
}

impl Detail {
    pub const POOLS: Detail = Detail { connections: false, statements: false };
    pub const CONNECTIONS: Detail = Detail { connections: true, statements: false };
    pub const STATEMENTS: Detail = Detail { connections: false, statements: true };
    pub const ALL: Detail = Detail { connections: true, statements: true };
}

/// A row of SHOW QUERIES: the statements of one shape in one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct QuerySnapshot {
    pub database: String,
    pub user: String,
    /// With `?` for every constant, cut at a named ceiling.
    pub text: String,
    pub calls: u64,
    /// From the request to the last byte of its answer.
    pub time: Histogram,
    /// Those that were sent together with others' or might have been.
    pub joined: u64,
    /// Statements on their way with them, summed over `joined`; the mean depth is their ratio.
    pub company: u64,
    /// Simple queries that were sent as a prepared statement.
    pub prepared: u64,
    /// Sent once more: skipped behind another's error, stalled, or a server lost.
    pub again: u64,
    pub errors: u64,
    /// How the last one travelled, and why.
    pub way: Way,
    pub why: Why,
    /// The verdict's own words.
    pub reason: String,
    /// None: it is no read.
    pub read: Option<ReadSnapshot>,
}

/// A row of SHOW CHANNELS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelSnapshot {
    pub database: String,
    pub channel: String,
    /// That listen to it.
    pub clients: u64,
    /// Notifications times clients, since somebody began to listen.
    pub delivered: u64,
}

/// What the read cache makes of a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSnapshot {
    /// Its normal text, which `CREATE CACHE` takes; cut at a named ceiling.
    pub normal: String,
    /// Answered from memory.
    pub hits: u64,
    /// In mode `advise`: would have been.
    pub advised: u64,
    /// Somebody has named it.
    pub named: bool,
    /// Whether its results can be kept, or why not; none: not judged yet.
    pub cacheable: Option<Result<(), String>>,
}

#[derive(Debug, Clone)]
pub struct PoolSnapshot {
    pub database: String,
    pub user: String,
    pub config: Arc<PoolConfig>,
    pub mode: PoolMode,
    pub cl_active: u32,
    pub cl_waiting: u32,
    pub cl_active_cancel_req: u32,
    pub cl_waiting_cancel_req: u32,
    pub sv_active: u32,
    pub sv_active_cancel: u32,
    pub sv_being_canceled: u32,
    pub sv_idle: u32,
    pub sv_used: u32,
    pub sv_tested: u32,
    pub sv_login: u32,
    /// The oldest waiting client has waited this long.
    pub maxwait: Duration,
    pub paused: bool,
    pub disabled: bool,
    /// Clients that listen over a shared connection.
    pub listeners: u32,
    pub totals: Totals,
    /// The last try to open a server failed: since when, how often, and the error.
    pub failing: Option<(SystemTime, u32, String)>,
    /// How many servers it may have while other pools lack some.
    pub share: Option<u32>,
    /// While clients wait: why.
    pub shortage: Option<Shortage>,
}

/// Why clients of a pool wait for servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    Paused,
    /// All of the pool's servers are in use.
    PoolSize,
    /// All that several pools may have together are taken: so many.
    Shared(Scope, u32),
    /// No more can be opened.
    Failing,
    /// More are on the way.
    Opening,
}

impl Shortage {
    /// The option that ends it, or a word.
    pub fn option(self) -> &'static str {
        match self {
            Shortage::Paused => "paused",
            Shortage::PoolSize => "pool_size",
            Shortage::Shared(scope, _) => scope.option(),
            Shortage::Failing => "failing",
            Shortage::Opening => "opening",
        }
    }

    /// Whether a server of the pool `holder` is one of those that `lacking` lacks.
    pub fn is_due_to(self, holder: &PoolName, lacking: &PoolName) -> bool {
        match self {
            Shortage::Shared(Scope::Process, _) => true,
            Shortage::Shared(Scope::Database, _) => holder.database == lacking.database,
            Shortage::Shared(Scope::User, _) => holder.user == lacking.user,
            _ => holder == lacking,
        }
    }
}

/// Counters of one pool since the process began; those of SHOW STATS and more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub xact_count: u64,
    pub query_count: u64,
    pub server_assignment_count: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
    pub xact_time_us: u64,
    pub query_time_us: u64,
    pub wait_time_us: u64,
    pub client_parse_count: u64,
    pub server_parse_count: u64,
    pub bind_count: u64,
    /// Statements whose plan PostgreSQL refused, because definitions had changed.
    pub stale: u64,
    /// Of these, those that were planned anew without a word.
    pub replanned: u64,
    pub client_login_count: u64,
    /// ErrorResponses that reached clients.
    pub errors: u64,
    pub server_opens: u64,
    pub server_closes: u64,
    /// Of these, the ones that were given up for other pools.
    pub given_up: u64,
    pub cancels: u64,
    /// Notifications that clients were told, over connections that listen for all.
    pub notifications: u64,
    /// Statements and transactions that went to a standby.
    pub split_reads: u64,
    /// Of these, the ones that the primary was asked for after all.
    pub split_returned: u64,
    pub coalesced: Coalesced,
    pub cached: Cached,
    /// From a transaction's first statement to its end; a statement alone is one.
    pub xact_time: Histogram,
    pub query_time: Histogram,
    pub wait_time: Histogram,
}

/// What reads came to whose results may be kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cached {
    /// Answered with what was kept.
    pub hits: u64,
    /// In mode `advise`: would have been.
    pub advised: u64,
    /// Nothing was kept, or it was no longer valid.
    pub misses: u64,
    /// Answers that were kept.
    pub fills: u64,
    /// Hits and others that had to wait for the stream, or for another client's answer.
    pub waits: u64,
    /// What was kept could not be shown to be new enough in time.
    pub too_old: u64,
    /// Of the hits, those that mirrors answered.
    pub mirrored: u64,
    /// Not kept, because a change of the same rows was not known to be visible.
    pub unsettled: u64,
    /// Missed while somebody else asked for the same.
    pub leased: u64,
    /// There was no stream.
    pub unserved: u64,
    /// Hits that were asked of PostgreSQL all the same, and compared.
    pub audits: u64,
    /// Of these, the ones that differed.
    pub mismatches: u64,
}

/// What statements that shared trips came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coalesced {
    /// Statements that travelled, by [`Why`]; [`Why::Free`] are those that joined.
    pub why: [u64; Why::ALL.len()],
    /// Writes to a server that took statements of one or more clients along.
    pub trips: u64,
    /// Of those that joined: behind a shared Sync, in a train, as a prepared statement though the
    /// client sent a simple query.
    pub batched: u64,
    pub trained: u64,
    pub prepared: u64,
    /// Sent again: behind another's error, behind a stalled statement, after a lost server.
    pub skipped: u64,
    pub stalled: u64,
    pub lost: u64,
}

/// Durations in buckets that double: bucket `i` counts those up to `50 us << i`; the last one
/// counts all that are longer (from about 13 s on).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Histogram {
    pub buckets: [u64; Histogram::BUCKETS],
    pub count: u64,
    pub sum_us: u64,
}

impl Histogram {
    pub const BUCKETS: usize = 20;

    /// Upper bound of a bucket in microseconds; none for the last.
    pub fn bound_us(bucket: usize) -> Option<u64> {
        (bucket + 1 < Self::BUCKETS).then(|| 50u64 << bucket)
    }

    pub fn record(&mut self, micros: u64) {
        let steps = micros.saturating_sub(1) / 50;
        let bucket = (u64::BITS - steps.leading_zeros()) as usize;
        self.buckets[bucket.min(Self::BUCKETS - 1)] += 1;
        self.count += 1;
        self.sum_us += micros;
    }
}

/// A row of SHOW CLIENTS or SHOW SERVERS.
#[derive(Debug, Clone)]
pub struct ConnectionSnapshot {
    pub slot: u32,
    pub generation: u32,
    /// PgBouncer's words: active, waiting, idle (clients); active, idle, used, tested, login,
    /// active_cancel, being_canceled (servers).
    pub state: &'static str,
    pub user: String,
    pub database: String,
    pub replication: &'static str,
    pub ends: Ends,
    pub connect_time: SystemTime,
    pub request_time: Option<SystemTime>,
    pub wait: Duration,
    pub close_needed: bool,
    /// The other side's slot and generation while the two are joined.
    pub link: Option<(u32, u32)>,
    /// Of a server: PostgreSQL's process id; of a client on a Unix socket: its process id.
    pub remote_pid: Option<u32>,
    pub tls: String,
    pub application_name: String,
    pub prepared_statements: u32,
    /// Unique in this process.
    pub id: u64,
}

/// A client that keeps its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinSnapshot {
    pub database: String,
    pub user: String,
    /// Slot and generation.
    pub client: (u32, u32),
    pub client_id: u64,
    pub application_name: String,
    /// Kinds, and texts for people.
    pub reasons: Vec<(&'static str, String)>,
    pub since: SystemTime,
    pub server: (u32, u32),
    pub server_id: u64,
    pub remote_pid: u32,
}

/// A row of SHOW MEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemorySnapshot {
    pub name: &'static str,
    /// Bytes of one.
    pub size: u64,
    pub used: u64,
    pub free: u64,
    pub memtotal: u64,
}
