//! `/api/v1/state`, `/healthz` and `/readyz`: JSON made of the workers' snapshots.

use std::time::{Duration, SystemTime};

use serde_json::{json, Value};

use super::cache_state;
use crate::config::Config;
use crate::console::view::{self, View};
use crate::console::Condition;
use crate::worker::redis::Snapshot;
use crate::worker::snapshot::{PinSnapshot, PoolSnapshot};

/// Who waits longer for a server is worth a word.
const WAIT_LONG: Duration = Duration::from_secs(1);

/// What the process is and does, pool by pool.
pub fn state(view: &View, condition: Condition) -> Value {
    let pools: Vec<Value> = view::pools(&view.workers).iter().map(pool).collect();
    let workers: Vec<Value> = view
        .workers
        .iter()
        .map(|worker| {
            json!({
                "worker": worker.worker,
                "turns": worker.turns,
                "logging_in": worker.logging_in,
                "clients": worker.clients_len,
                "servers": worker.servers_len,
            })
        })
        .collect();
    let pins: Vec<Value> = view.workers.iter().flat_map(|worker| &worker.pins).map(pin).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "listening": condition.listening,
        "stopping": condition.stopping,
        "workers": workers,
        "silent_workers": view.silent,
        "pools": pools,
        "pins": pins,
    })
}

fn pin(pin: &PinSnapshot) -> Value {
    let reasons: Vec<&str> = pin.reasons.iter().map(|(kind, _)| *kind).collect();
    json!({
        "database": pin.database,
        "user": pin.user,
        "client_id": pin.client_id,
        "application_name": pin.application_name,
        // Kinds alone: the names of what they keep are the console's.
        "reasons": reasons,
        "since": unix_seconds(pin.since),
        "server_id": pin.server_id,
        "remote_pid": pin.remote_pid,
    })
}

fn pool(pool: &PoolSnapshot) -> Value {
    let totals = &pool.totals;
    let failing = pool.failing.as_ref().map(|(since, tries, error)| {
        json!({ "since": unix_seconds(*since), "tries": tries, "error": error })
    });
    json!({
        "database": pool.database,
        "user": pool.user,
        "pool_mode": pool.mode.name(),
        "pool_size": pool.config.pool_size,
        "paused": pool.paused,
        "disabled": pool.disabled,
        "failing": failing,
        "maxwait_us": u64::try_from(pool.maxwait.as_micros()).unwrap_or(u64::MAX),
        "clients": {
            "active": pool.cl_active,
            "waiting": pool.cl_waiting,
            "active_cancel_req": pool.cl_active_cancel_req,
            "waiting_cancel_req": pool.cl_waiting_cancel_req,
        },
        "servers": {
            "active": pool.sv_active,
            "active_cancel": pool.sv_active_cancel,
            "being_canceled": pool.sv_being_canceled,
            "idle": pool.sv_idle,
            "used": pool.sv_used,
            "tested": pool.sv_tested,
            "login": pool.sv_login,
        },
        "totals": {
            "transactions": totals.xact_count,
            "queries": totals.query_count,
            "server_assignments": totals.server_assignment_count,
            "received_bytes": totals.received,
            "sent_bytes": totals.sent,
            "transaction_us": totals.xact_time_us,
            "query_us": totals.query_time_us,
            "wait_us": totals.wait_time_us,
            "client_logins": totals.client_login_count,
            "errors": totals.errors,
            "server_opens": totals.server_opens,
            "server_closes": totals.server_closes,
            "cancels": totals.cancels,
        },
        "cache": cache_state::reads(&totals.cached),
    })
}

fn unix_seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Whether every worker answered; else the answer names those that did not.
pub fn health(view: &View) -> Result<Value, Value> {
    if view.silent.is_empty() {
        return Ok(json!({ "status": "ok" }));
    }
    let reasons: Vec<String> = view
        .silent
        .iter()
        .map(|worker| format!("worker {worker} did not answer within 1 s"))
        .collect();
    Err(json!({ "status": "failed", "reasons": reasons }))
}

/// Whether clients can be served: the doors are open, every worker answers, the Redis door can use
/// its tables if there is one, and no configured database is out of reach. A database nobody has tried is taken to be well, and so is one of
/// whose users another has a server: then it is the user that fails.
pub fn readiness(
    view: &View,
    redis: Option<&Snapshot>,
    condition: Condition,
    config: &Config,
) -> Result<Value, Value> {
    let mut reasons = Vec::new();
    if condition.stopping {
        reasons.push("shutting down".to_owned());
    } else if !condition.listening {
        reasons.push("not listening yet".to_owned());
    }
    reasons.extend(view.silent.iter().map(|worker| format!("worker {worker} does not answer")));
    let away = redis.and_then(|redis| redis.figures.away.as_ref());
    reasons.extend(away.map(|(why, _)| format!("Redis door: {why}")));
    let pools = view::pools(&view.workers);
    for name in config.databases.keys().filter(|name| *name != "*") {
        reasons.extend(out_of_reach(name, &pools));
    }
    if reasons.is_empty() {
        return Ok(json!({ "status": "ready" }));
    }
    Err(json!({ "status": "not ready", "reasons": reasons }))
}

/// How the process is, in a sentence: the worst first.
pub fn sentence(
    view: &View,
    redis: Option<&Snapshot>,
    condition: Condition,
    config: &Config,
) -> Value {
    let pools = view::pools(&view.workers);
    let clients: u32 = pools.iter().map(view::clients).sum();
    let servers: u32 = pools.iter().map(view::servers).sum();
    let waiting: u32 = pools.iter().map(|pool| pool.cl_waiting).sum();
    let longest = pools.iter().map(|pool| pool.maxwait).max().unwrap_or_default();
    let paused = pools.iter().find(|pool| pool.paused);
    let (ok, sentence) = match readiness(view, redis, condition, config) {
        Err(why) => {
            let reasons = why["reasons"].as_array().into_iter().flatten();
            let reasons: Vec<&str> = reasons.filter_map(Value::as_str).collect();
            (false, format!("Clients can't be served: {}.", reasons.join("; ")))
        }
        Ok(_) if paused.is_some() => {
            let database = paused.map_or("", |pool| pool.database.as_str());
            (false, format!("{database} is paused: {waiting} clients wait for RESUME."))
        }
        Ok(_) if longest >= WAIT_LONG => {
            let seconds = longest.as_secs_f64();
            (false, format!("{waiting} clients wait for a server, one for {seconds:.1} s."))
        }
        Ok(_) => (true, format!("All is well: {clients} clients share {servers} servers.")),
    };
    json!({ "ok": ok, "sentence": sentence })
}

fn out_of_reach(database: &str, pools: &[PoolSnapshot]) -> Option<String> {
    let mut error = None;
    for pool in pools.iter().filter(|pool| pool.database == database) {
        if view::working_servers(pool) > 0 {
            return None;
        }
        error = error.or(pool.failing.as_ref());
    }
    let (_, tries, error) = error?;
    Some(format!("database {database}: {error} (after {tries} tries)"))
}

/// An object's text, ended by a line feed for people with curl.
pub fn text(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
