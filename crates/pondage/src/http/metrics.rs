//! `/metrics`: every counter and gauge there is, for Prometheus. Labels are names from the
//! configuration and catalogues and fixed words, never SQL.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cache_metrics::Caches;
use super::exposition::{Exposition, Labels};
use super::families::{self, Family};
use super::process::Usage;
use super::{
    cache_metrics, host_metrics, lookup_metrics, procedure_metrics, redis_metrics, trace_metrics,
};
use crate::console::view::{self, View};
use crate::console::Condition;
use crate::control::{spots, tally};
use crate::export::Counts;
use crate::procedures::Procedure;
use crate::route::Why;
use crate::worker::plane::pins::REASONS;
use crate::worker::redis::Snapshot;
use crate::worker::snapshot::{PoolSnapshot, Totals};

/// What has metrics beside the pools.
#[derive(Debug, Clone, Copy)]
pub struct Rooms<'a> {
    pub caches: &'a Caches,
    /// Of databases that have several.
    pub hosts: &'a [spots::Standing],
    pub look_ups: &'a [tally::Standing],
    pub procedures: &'a [Arc<Procedure>],
    /// None if nobody is told of traces.
    pub traces: Option<Counts>,
    /// None if there is no Redis door.
    pub redis: Option<&'a Snapshot>,
}

/// Writes the page.
pub fn page(view: &View, rooms: &Rooms<'_>, condition: Condition, usage: &Usage) -> String {
    let mut page = Exposition::default();
    about(&mut page, condition);
    workers(&mut page, view);
    let pools = view::pools(&view.workers);
    pool_gauges(&mut page, &pools);
    pinned(&mut page, view, &pools);
    pool_counters(&mut page, &pools);
    coalescing(&mut page, &pools);
    durations(&mut page, &pools);
    cache_metrics::families(&mut page, &pools, rooms.caches);
    host_metrics::families(&mut page, rooms.hosts);
    lookup_metrics::families(&mut page, rooms.look_ups);
    procedure_metrics::families(&mut page, rooms.procedures);
    redis_metrics::families(&mut page, rooms.redis);
    trace_metrics::families(&mut page, rooms.traces);
    own(&mut page, usage);
    page.into_text()
}

fn about(page: &mut Exposition, condition: Condition) {
    page.family(families::process::BUILD_INFO);
    page.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.family(families::process::LISTENING);
    page.sample(&[], condition.listening.into());
    page.family(families::process::STOPPING);
    page.sample(&[], condition.stopping.into());
}

fn workers(page: &mut Exposition, view: &View) {
    page.family(families::process::WORKER_UP);
    let mut up: Vec<(u8, u64)> = view.workers.iter().map(|worker| (worker.worker, 1)).collect();
    up.extend(view.silent.iter().map(|worker| (*worker, 0)));
    up.sort_unstable();
    for (worker, up) in up {
        page.sample(&[("worker", &worker.to_string())], up);
    }
    page.family(families::process::WORKER_TURNS);
    for worker in &view.workers {
        page.sample(&[("worker", &worker.worker.to_string())], worker.turns);
    }
    page.family(families::process::LOGIN_CONNECTIONS);
    page.sample(&[], view.workers.iter().map(|worker| u64::from(worker.logging_in)).sum());

    page.family(families::process::CLIENT_REFUSED);
    let mut refused: BTreeMap<&str, u64> = BTreeMap::new();
    for (code, count) in view.workers.iter().flat_map(|worker| &worker.refused) {
        *refused.entry(code).or_default() += count;
    }
    for (code, count) in refused {
        page.sample(&[("sqlstate", code)], count);
    }

    let mut memory: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for part in view.workers.iter().flat_map(|worker| &worker.memory) {
        let sums = memory.entry(part.name).or_default();
        sums.0 += part.used.saturating_mul(part.size);
        sums.1 += part.memtotal;
    }
    page.family(families::process::MEMORY_USED);
    for (name, (used, _)) in &memory {
        page.sample(&[("name", name)], *used);
    }
    page.family(families::process::MEMORY);
    for (name, (_, held)) in &memory {
        page.sample(&[("name", name)], *held);
    }
}

/// Writes a family with what `write` writes for each pool.
fn for_each(
    page: &mut Exposition,
    pools: &[PoolSnapshot],
    family: &'static Family,
    write: impl Fn(&mut Exposition, &Labels<'_>, &PoolSnapshot),
) {
    page.family(family);
    for pool in pools {
        write(page, &[("database", &pool.database), ("user", &pool.user)], pool);
    }
}

/// One sample for each state.
fn states(page: &mut Exposition, labels: &Labels<'_>, states: &[(&str, u32)]) {
    for (state, count) in states {
        let mut labels = labels.to_vec();
        labels.push(("state", state));
        page.sample(&labels, u64::from(*count));
    }
}

fn pool_gauges(page: &mut Exposition, pools: &[PoolSnapshot]) {
    for_each(page, pools, families::pools::CLIENTS, |page, labels, pool| {
        let counts = [
            ("active", pool.cl_active),
            ("waiting", pool.cl_waiting),
            ("active_cancel_req", pool.cl_active_cancel_req),
            ("waiting_cancel_req", pool.cl_waiting_cancel_req),
        ];
        states(page, labels, &counts);
    });
    for_each(page, pools, families::pools::SERVERS, |page, labels, pool| {
        let counts = [
            ("active", pool.sv_active),
            ("active_cancel", pool.sv_active_cancel),
            ("being_canceled", pool.sv_being_canceled),
            ("idle", pool.sv_idle),
            ("used", pool.sv_used),
            ("tested", pool.sv_tested),
            ("login", pool.sv_login),
        ];
        states(page, labels, &counts);
    });
    for_each(page, pools, families::pools::INFO, |page, labels, pool| {
        let mut labels = labels.to_vec();
        labels.push(("pool_mode", pool.mode.name()));
        page.sample(&labels, 1);
    });
    for_each(page, pools, families::pools::SIZE, |page, labels, pool| {
        page.sample(labels, pool.config.pool_size.into());
    });
    for_each(page, pools, families::pools::MAXWAIT, |page, labels, pool| {
        let micros = u64::try_from(pool.maxwait.as_micros()).unwrap_or(u64::MAX);
        page.seconds(labels, micros);
    });
    for_each(page, pools, families::pools::PAUSED, |page, labels, pool| {
        page.sample(labels, pool.paused.into())
    });
    for_each(page, pools, families::pools::DISABLED, |page, labels, pool| {
        page.sample(labels, pool.disabled.into())
    });
    for_each(page, pools, families::pools::LISTENERS, |page, labels, pool| {
        page.sample(labels, pool.listeners.into())
    });
    for_each(page, pools, families::pools::FAILING, |page, labels, pool| {
        page.sample(labels, pool.failing.is_some().into());
    });
}

/// A client that keeps its server for several kinds of things counts for each.
fn pinned(page: &mut Exposition, view: &View, pools: &[PoolSnapshot]) {
    let mut counts: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for pin in view.workers.iter().flat_map(|worker| &worker.pins) {
        let kinds: BTreeSet<&str> = pin.reasons.iter().map(|(kind, _)| *kind).collect();
        for kind in kinds {
            *counts.entry((&pin.database, &pin.user, kind)).or_default() += 1;
        }
    }
    for_each(page, pools, families::pools::PINS, |page, labels, pool| {
        for reason in REASONS {
            let mut labels = labels.to_vec();
            labels.push(("reason", reason));
            let count = counts.get(&(pool.database.as_str(), pool.user.as_str(), reason));
            page.sample(&labels, count.copied().unwrap_or(0));
        }
    });
}

/// A counter of [`Totals`].
type Counter = (&'static Family, fn(&Totals) -> u64);

const COUNTERS: [Counter; 23] = [
    (families::pools::TRANSACTIONS, |totals| totals.xact_count),
    (families::pools::QUERIES, |totals| totals.query_count),
    (families::pools::SERVER_ASSIGNMENTS, |totals| totals.server_assignment_count),
    (families::pools::RECEIVED, |totals| totals.received),
    (families::pools::SENT, |totals| totals.sent),
    (families::pools::CLIENT_PARSES, |totals| totals.client_parse_count),
    (families::pools::SERVER_PARSES, |totals| totals.server_parse_count),
    (families::pools::BINDS, |totals| totals.bind_count),
    (families::pools::STALE_PLANS, |totals| totals.stale),
    (families::pools::REPLANNED, |totals| totals.replanned),
    (families::pools::CLIENT_LOGINS, |totals| totals.client_login_count),
    (families::pools::CLIENT_ERRORS, |totals| totals.errors),
    (families::pools::SERVER_OPENS, |totals| totals.server_opens),
    (families::pools::SERVER_CLOSES, |totals| totals.server_closes),
    (families::pools::SERVER_GIVEN_UP, |totals| totals.given_up),
    (families::pools::CANCELS, |totals| totals.cancels),
    (families::pools::NOTIFICATIONS, |totals| totals.notifications),
    (families::hosts::SPLIT_READS, |totals| totals.split_reads),
    (families::hosts::SPLIT_RETURNED, |totals| totals.split_returned),
    (families::statements::TRIPS, |totals| totals.coalesced.trips),
    (families::statements::BATCHED, |totals| totals.coalesced.batched),
    (families::statements::TRAINED, |totals| totals.coalesced.trained),
    (families::statements::PREPARED, |totals| totals.coalesced.prepared),
];

const TIMES: [Counter; 3] = [
    (families::pools::TRANSACTION_SECONDS, |totals| totals.xact_time_us),
    (families::pools::QUERY_SECONDS, |totals| totals.query_time_us),
    (families::pools::CLIENT_WAIT_SECONDS, |totals| totals.wait_time_us),
];

fn pool_counters(page: &mut Exposition, pools: &[PoolSnapshot]) {
    for (family, value) in COUNTERS {
        for_each(page, pools, family, |page, labels, pool| {
            page.sample(labels, value(&pool.totals));
        });
    }
    for (family, micros) in TIMES {
        for_each(page, pools, family, |page, labels, pool| {
            page.seconds(labels, micros(&pool.totals));
        });
    }
}

fn coalescing(page: &mut Exposition, pools: &[PoolSnapshot]) {
    for_each(page, pools, families::statements::STATEMENTS, |page, labels, pool| {
        for (why, count) in Why::ALL.iter().zip(pool.totals.coalesced.why) {
            page.sample(&and(labels, ("why", why.word())), count);
        }
    });
    for_each(page, pools, families::statements::RESENT, |page, labels, pool| {
        let counters = &pool.totals.coalesced;
        let counts =
            [("skipped", counters.skipped), ("stalled", counters.stalled), ("lost", counters.lost)];
        for (why, count) in counts {
            page.sample(&and(labels, ("why", why)), count);
        }
    });
}

/// One label more.
fn and<'a>(labels: &Labels<'a>, label: (&'a str, &'a str)) -> Vec<(&'a str, &'a str)> {
    labels.iter().copied().chain([label]).collect()
}

fn durations(page: &mut Exposition, pools: &[PoolSnapshot]) {
    for_each(page, pools, families::pools::QUERY_DURATION, |page, labels, pool| {
        let mut labels = labels.to_vec();
        labels.push(("source", "server"));
        page.histogram(&labels, &pool.totals.query_time);
    });
    for_each(page, pools, families::pools::TRANSACTION_DURATION, |page, labels, pool| {
        page.histogram(labels, &pool.totals.xact_time);
    });
    for_each(page, pools, families::pools::POOL_WAIT, |page, labels, pool| {
        page.histogram(labels, &pool.totals.wait_time);
    });
}

/// Under the names that every Prometheus client library uses.
fn own(page: &mut Exposition, usage: &Usage) {
    if let Some(micros) = usage.cpu_us {
        page.family(families::process::CPU);
        page.seconds(&[], micros);
    }
    let gauges: [(&'static Family, Option<u64>); 6] = [
        (families::process::RESIDENT, usage.resident_bytes),
        (families::process::VIRTUAL, usage.virtual_bytes),
        (families::process::THREADS, usage.threads),
        (families::process::OPEN_FDS, usage.open_fds),
        (families::process::MAX_FDS, usage.max_fds),
        (families::process::START_TIME, usage.start_time),
    ];
    for (family, value) in gauges {
        if let Some(value) = value {
            page.family(family);
            page.sample(&[], value);
        }
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
