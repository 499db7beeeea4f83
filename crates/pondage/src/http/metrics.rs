//! `/metrics`: every counter and gauge there is, for Prometheus. Labels are names from the
//! configuration and catalogues and fixed words, never SQL.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cache_metrics::Caches;
use super::exposition::{Exposition, Kind, Labels};
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
    process(&mut page, usage);
    page.into_text()
}

fn about(page: &mut Exposition, condition: Condition) {
    page.family("pondage_build_info", Kind::Gauge, "1, labelled with the version that runs.");
    page.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.family("pondage_listening", Kind::Gauge, "1 while the PostgreSQL doors take clients.");
    page.sample(&[], condition.listening.into());
    page.family("pondage_stopping", Kind::Gauge, "1 while the process shuts down.");
    page.sample(&[], condition.stopping.into());
}

fn workers(page: &mut Exposition, view: &View) {
    page.family("pondage_worker_up", Kind::Gauge, "1 if the worker answered in time, else 0.");
    let mut up: Vec<(u8, u64)> = view.workers.iter().map(|worker| (worker.worker, 1)).collect();
    up.extend(view.silent.iter().map(|worker| (*worker, 0)));
    up.sort_unstable();
    for (worker, up) in up {
        page.sample(&[("worker", &worker.to_string())], up);
    }
    page.family("pondage_worker_turns_total", Kind::Counter, "Turns of the worker's loop.");
    for worker in &view.workers {
        page.sample(&[("worker", &worker.worker.to_string())], worker.turns);
    }
    page.family("pondage_login_connections", Kind::Gauge, "Clients that are logging in.");
    page.sample(&[], view.workers.iter().map(|worker| u64::from(worker.logging_in)).sum());

    page.family(
        "pondage_client_refused_total",
        Kind::Counter,
        "Clients that failed or were refused before they had a pool, by SQLSTATE.",
    );
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
    page.family("pondage_memory_used_bytes", Kind::Gauge, "Memory in use, by what it is for.");
    for (name, (used, _)) in &memory {
        page.sample(&[("name", name)], *used);
    }
    page.family("pondage_memory_bytes", Kind::Gauge, "Memory held, by what it is for.");
    for (name, (_, held)) in &memory {
        page.sample(&[("name", name)], *held);
    }
}

/// Name, kind and help of a family.
type Family = (&'static str, Kind, &'static str);

/// Writes a family with what `write` writes for each pool.
fn for_each(
    page: &mut Exposition,
    pools: &[PoolSnapshot],
    (name, kind, help): Family,
    write: impl Fn(&mut Exposition, &Labels<'_>, &PoolSnapshot),
) {
    page.family(name, kind, help);
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
    let family = ("pondage_client_connections", Kind::Gauge, "Clients with a pool, by state.");
    for_each(page, pools, family, |page, labels, pool| {
        let counts = [
            ("active", pool.cl_active),
            ("waiting", pool.cl_waiting),
            ("active_cancel_req", pool.cl_active_cancel_req),
            ("waiting_cancel_req", pool.cl_waiting_cancel_req),
        ];
        states(page, labels, &counts);
    });
    let family = ("pondage_server_connections", Kind::Gauge, "Server connections, by state.");
    for_each(page, pools, family, |page, labels, pool| {
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
    let family = ("pondage_pool_info", Kind::Gauge, "1, labelled with the pool's mode.");
    for_each(page, pools, family, |page, labels, pool| {
        let mut labels = labels.to_vec();
        labels.push(("pool_mode", pool.mode.name()));
        page.sample(&labels, 1);
    });
    let family = ("pondage_pool_size", Kind::Gauge, "Most server connections of the pool.");
    for_each(page, pools, family, |page, labels, pool| {
        page.sample(labels, pool.config.pool_size.into());
    });
    let family =
        ("pondage_pool_maxwait_seconds", Kind::Gauge, "How long the oldest waiting client waits.");
    for_each(page, pools, family, |page, labels, pool| {
        let micros = u64::try_from(pool.maxwait.as_micros()).unwrap_or(u64::MAX);
        page.seconds(labels, micros);
    });
    let family = ("pondage_pool_paused", Kind::Gauge, "1 while the pool is paused.");
    for_each(page, pools, family, |page, labels, pool| page.sample(labels, pool.paused.into()));
    let family = ("pondage_pool_disabled", Kind::Gauge, "1 while its database is disabled.");
    for_each(page, pools, family, |page, labels, pool| page.sample(labels, pool.disabled.into()));
    let family =
        ("pondage_pool_listeners", Kind::Gauge, "Clients that listen over a shared connection.");
    for_each(page, pools, family, |page, labels, pool| page.sample(labels, pool.listeners.into()));
    let family =
        ("pondage_pool_failing", Kind::Gauge, "1 while the last try to open a server failed.");
    for_each(page, pools, family, |page, labels, pool| {
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
    let family = (
        "pondage_pins",
        Kind::Gauge,
        "Clients that keep a server beyond a transaction, by reason.",
    );
    for_each(page, pools, family, |page, labels, pool| {
        for reason in REASONS {
            let mut labels = labels.to_vec();
            labels.push(("reason", reason));
            let count = counts.get(&(pool.database.as_str(), pool.user.as_str(), reason));
            page.sample(&labels, count.copied().unwrap_or(0));
        }
    });
}

/// A counter of [`Totals`].
type Counter = (&'static str, &'static str, fn(&Totals) -> u64);

const COUNTERS: [Counter; 23] = [
    ("pondage_transactions_total", "Transactions.", |totals| totals.xact_count),
    ("pondage_queries_total", "Queries.", |totals| totals.query_count),
    ("pondage_server_assignments_total", "Times a client was given a server.", |totals| {
        totals.server_assignment_count
    }),
    ("pondage_received_bytes_total", "Bytes from clients.", |totals| totals.received),
    ("pondage_sent_bytes_total", "Bytes to clients.", |totals| totals.sent),
    ("pondage_client_parses_total", "Statements that clients prepared.", |totals| {
        totals.client_parse_count
    }),
    ("pondage_server_parses_total", "Statements prepared on servers.", |totals| {
        totals.server_parse_count
    }),
    ("pondage_binds_total", "Prepared statements bound.", |totals| totals.bind_count),
    (
        "pondage_stale_plans_total",
        "Prepared statements that did not fit what is defined now.",
        |totals| totals.stale,
    ),
    ("pondage_replanned_total", "Of these, those that clients did not notice.", |totals| {
        totals.replanned
    }),
    ("pondage_client_logins_total", "Clients that logged in.", |totals| totals.client_login_count),
    ("pondage_client_errors_total", "Errors that reached clients.", |totals| totals.errors),
    ("pondage_server_opens_total", "Server connections opened.", |totals| totals.server_opens),
    ("pondage_server_closes_total", "Server connections closed.", |totals| totals.server_closes),
    (
        "pondage_server_given_up_total",
        "Server connections closed so that another pool could open one.",
        |totals| totals.given_up,
    ),
    ("pondage_cancels_total", "Cancel requests.", |totals| totals.cancels),
    (
        "pondage_notifications_total",
        "Notifications that clients were told over shared connections.",
        |totals| totals.notifications,
    ),
    (
        "pondage_split_reads_total",
        "Statements and transactions that went to a standby, with split_reads.",
        |totals| totals.split_reads,
    ),
    (
        "pondage_split_returned_total",
        "Of these, the ones that the standby gave up and the primary was asked for.",
        |totals| totals.split_returned,
    ),
    (
        "pondage_coalesce_trips_total",
        "Writes to a server that took statements of one or more clients along.",
        |totals| totals.coalesced.trips,
    ),
    ("pondage_coalesce_batched_total", "Statements that shared a transaction.", |totals| {
        totals.coalesced.batched
    }),
    ("pondage_coalesce_trained_total", "Writes that shared a flush.", |totals| {
        totals.coalesced.trained
    }),
    (
        "pondage_coalesce_prepared_total",
        "Simple queries that were sent as a prepared statement.",
        |totals| totals.coalesced.prepared,
    ),
];

const TIMES: [Counter; 3] = [
    ("pondage_transaction_seconds_total", "Time in transactions.", |totals| totals.xact_time_us),
    ("pondage_query_seconds_total", "Time in queries.", |totals| totals.query_time_us),
    ("pondage_client_wait_seconds_total", "Time clients waited for a server.", |totals| {
        totals.wait_time_us
    }),
];

fn pool_counters(page: &mut Exposition, pools: &[PoolSnapshot]) {
    for (name, help, value) in COUNTERS {
        for_each(page, pools, (name, Kind::Counter, help), |page, labels, pool| {
            page.sample(labels, value(&pool.totals));
        });
    }
    for (name, help, micros) in TIMES {
        for_each(page, pools, (name, Kind::Counter, help), |page, labels, pool| {
            page.seconds(labels, micros(&pool.totals));
        });
    }
}

fn coalescing(page: &mut Exposition, pools: &[PoolSnapshot]) {
    let help = "Statements, by why they travelled as they did; free: together, else alone.";
    let family = ("pondage_coalesce_statements_total", Kind::Counter, help);
    for_each(page, pools, family, |page, labels, pool| {
        for (why, count) in Why::ALL.iter().zip(pool.totals.coalesced.why) {
            page.sample(&and(labels, ("why", why.word())), count);
        }
    });
    let help = "Statements sent again: behind an error, behind a stalled one, after a lost server.";
    let family = ("pondage_coalesce_resent_total", Kind::Counter, help);
    for_each(page, pools, family, |page, labels, pool| {
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
    let help = "Time from a query's arrival to its end, by where its answer came from.";
    let family = ("pondage_query_duration_seconds", Kind::Histogram, help);
    for_each(page, pools, family, |page, labels, pool| {
        let mut labels = labels.to_vec();
        labels.push(("source", "server"));
        page.histogram(&labels, &pool.totals.query_time);
    });
    let help = "Time of a transaction, from its first statement to its end.";
    let family = ("pondage_transaction_duration_seconds", Kind::Histogram, help);
    for_each(page, pools, family, |page, labels, pool| {
        page.histogram(labels, &pool.totals.xact_time);
    });
    let help = "Time a client waited before it was given a server.";
    let family = ("pondage_pool_wait_seconds", Kind::Histogram, help);
    for_each(page, pools, family, |page, labels, pool| {
        page.histogram(labels, &pool.totals.wait_time);
    });
}

/// Under the names that every Prometheus client library uses.
fn process(page: &mut Exposition, usage: &Usage) {
    if let Some(micros) = usage.cpu_us {
        page.family("process_cpu_seconds_total", Kind::Counter, "User and system CPU time.");
        page.seconds(&[], micros);
    }
    let gauges: [(&'static str, &str, Option<u64>); 6] = [
        ("process_resident_memory_bytes", "Resident memory.", usage.resident_bytes),
        ("process_virtual_memory_bytes", "Virtual memory.", usage.virtual_bytes),
        ("process_threads", "Threads.", usage.threads),
        ("process_open_fds", "Open file descriptors.", usage.open_fds),
        ("process_max_fds", "Most file descriptors.", usage.max_fds),
        ("process_start_time_seconds", "Start in Unix time.", usage.start_time),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            page.family(name, Kind::Gauge, help);
            page.sample(&[], value);
        }
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
