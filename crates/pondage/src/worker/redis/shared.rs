//! What all workers share for Redis clients: the engine.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ::redis::engine::Engine;
use ::redis::figures::{Client, Figures};
use ::redis::notify::Notify;
use ::redis::server::Settings;
use ::redis::store::Store;
use backend::pool::Budget;

use crate::config::Config;

/// One for a process.
pub struct Shared {
    /// Guards all keys and sessions. A plain mutex: it is held for one client's commands of a
    /// turn, or for the engine's own turn, and never while anything waits.
    engine: Mutex<Engine>,
    pub clients: Budget,
}

/// What the engine is and has done.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub figures: Figures,
    pub clients: Vec<Client>,
    /// Milliseconds since 1970.
    pub now: i64,
}

impl Shared {
    /// `clock`: microseconds since 1970, for taking the time of commands and commits, and for TIME.
    /// `seed`: of what commands choose at random.
    pub fn new(
        config: &Config,
        store: Box<dyn Store + Send>,
        clock: fn() -> i64,
        seed: u64,
    ) -> Shared {
        let (shards, now) = (config.redis.writers as usize, clock() / 1_000);
        let engine = Engine::new(settings(config), store, shards, now);
        let engine = engine.with_clock(clock).with_seed(seed);
        Shared { engine: Mutex::new(engine), clients: Budget::default() }
    }

    /// For console and metrics. The lock is held while figures are copied, and clients only if they
    /// are asked for.
    pub fn snapshot(&self, clients: bool) -> Snapshot {
        let engine = self.engine();
        let clients = if clients { engine.clients() } else { Vec::new() };
        Snapshot { figures: engine.figures(), clients, now: engine.server.now }
    }

    pub fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the configuration says of the engine; the rest is as Redis has it.
pub fn settings(config: &Config) -> Settings {
    let redis = &config.redis;
    let threshold = redis.slowlog_threshold;
    Settings {
        databases: redis.databases.min(u32::from(u16::MAX)) as u16,
        journal_databases: redis
            .journal_databases
            .iter()
            .filter_map(|db| u16::try_from(*db).ok())
            .collect(),
        memory: usize::try_from(redis.memory).unwrap_or(usize::MAX),
        queue_limit: usize::try_from(redis.queue_limit).unwrap_or(usize::MAX),
        journal_limit: usize::try_from(redis.journal_limit).unwrap_or(usize::MAX),
        max_clients: redis.max_clients as usize,
        proto_max_bulk_len: redis.value_limit as usize,
        slowlog_slower_than_us: match threshold.is_zero() {
            true => -1,
            false => i64::try_from(threshold.as_micros()).unwrap_or(i64::MAX),
        },
        slowlog_max_len: redis.slowlog_length as usize,
        lua_time_limit_ms: u64::try_from(redis.lua_time_limit.as_millis()).unwrap_or(u64::MAX),
        notify_keyspace_events: Notify::parse(redis.notify_keyspace_events.as_bytes())
            .unwrap_or_default(),
        ..Settings::default()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
