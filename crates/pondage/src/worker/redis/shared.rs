//! What all workers share for Redis clients: the engine.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use ::redis::engine::Engine;
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

impl Shared {
    /// `now`: milliseconds since 1970.
    pub fn new(config: &Config, store: Box<dyn Store + Send>, now: i64) -> Shared {
        let shards = config.redis.writers as usize;
        let engine = Engine::new(settings(config), store, shards, now).with_clock(microseconds);
        Shared { engine: Mutex::new(engine), clients: Budget::default() }
    }

    pub fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Since 1970: for taking the time of commands and commits, and for TIME.
fn microseconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
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
