//! The metrics of the Redis door. Labels are names of commands: never a key, never a value.

use redis::stats::{BATCH_ROWS, COMMIT_US};

use super::exposition::{Exposition, Kind};
use crate::worker::redis::Snapshot;

/// Writes the families; none if there is no door.
pub fn families(page: &mut Exposition, snapshot: Option<&Snapshot>) {
    let Some(snapshot) = snapshot else { return };
    gauges(page, snapshot);
    commands(page, snapshot);
    batches(page, snapshot);
    counters(page, snapshot);
}

fn gauges(page: &mut Exposition, Snapshot { figures, .. }: &Snapshot) {
    let gauges = [
        ("pondage_redis_up", "1 while the tables can be used.", u64::from(figures.away.is_none())),
        ("pondage_redis_clients", "Redis clients.", figures.connected as u64),
        ("pondage_redis_blocked_clients", "Those that wait for a key.", figures.blocked as u64),
        (
            "pondage_redis_batches_in_flight",
            "Batches sent to PostgreSQL that have not been answered.",
            figures.in_flight as u64,
        ),
        (
            "pondage_redis_resident_keys",
            "Keys in memory, those included that are known not to exist.",
            figures.resident as u64,
        ),
        ("pondage_redis_resident_bytes", "Memory of those keys.", figures.bytes as u64),
        ("pondage_redis_memory_limit_bytes", "Its limit.", figures.bytes_max as u64),
        ("pondage_redis_channels", "Channels with subscribers.", figures.channels as u64),
        (
            "pondage_redis_journal_backlog_bytes",
            "What is in the journal and not in the tables.",
            figures.folds.backlog as u64,
        ),
        ("pondage_redis_journal_limit_bytes", "Its limit.", figures.journal_max as u64),
        (
            "pondage_redis_fold_failing",
            "1 while the journal can't be written into the tables.",
            u64::from(figures.folds.error.is_some()),
        ),
    ];
    for (name, help, value) in gauges {
        page.family(name, Kind::Gauge, help);
        page.sample(&[], value);
    }
}

fn commands(page: &mut Exposition, Snapshot { figures, .. }: &Snapshot) {
    page.family("pondage_redis_commands_total", Kind::Counter, "Commands that ran, by name.");
    for (name, calls) in &figures.commands {
        page.sample(&[("command", name)], calls.calls);
    }
    let help = "Commands answered with an error, by name; rejected: before they ran.";
    page.family("pondage_redis_command_errors_total", Kind::Counter, help);
    for (name, calls) in &figures.commands {
        page.sample(&[("command", name), ("outcome", "failed")], calls.failed);
        page.sample(&[("command", name), ("outcome", "rejected")], calls.rejected);
    }
}

fn batches(page: &mut Exposition, Snapshot { figures, .. }: &Snapshot) {
    let batches = &figures.batches;
    page.family("pondage_redis_batch_rows", Kind::Histogram, "Rows of a batch.");
    let bounds = BATCH_ROWS.map(|rows| rows.to_string());
    page.buckets(&bounds, &batches.sizes, batches.rows);
    let help = "Time from sending a batch to the answer to its COMMIT.";
    page.family("pondage_redis_commit_seconds", Kind::Histogram, help);
    page.buckets_of_seconds(&COMMIT_US, &batches.commits, batches.commit_us);
}

fn counters(page: &mut Exposition, Snapshot { figures, .. }: &Snapshot) {
    let (batches, folds) = (&figures.batches, &figures.folds);
    let counters = [
        ("pondage_redis_connections_total", "Redis clients that came.", figures.connections),
        ("pondage_redis_errors_total", "Errors that were replied.", figures.errors_replied),
        ("pondage_redis_batch_retries_total", "Batches that were sent once more.", figures.retries),
        (
            "pondage_redis_batch_conflicts_total",
            "Batches that were undone because SQL had changed a row first.",
            batches.conflicts,
        ),
        (
            "pondage_redis_batch_refused_total",
            "Batches that PostgreSQL refused for good.",
            batches.refused,
        ),
        (
            "pondage_redis_folds_total",
            "Times that the journal was written into the tables.",
            folds.folds,
        ),
        ("pondage_redis_folded_keys_total", "Keys that this has written.", folds.keys),
        ("pondage_redis_fold_failures_total", "Times that it has failed.", folds.failed),
        (
            "pondage_redis_fold_overwritten_total",
            "Changes by SQL that the journal has overwritten.",
            figures.overwritten,
        ),
        ("pondage_redis_lookups_total", "Questions for rows.", figures.loads),
        ("pondage_redis_lookup_keys_total", "Keys in those questions.", figures.loaded),
        ("pondage_redis_hits_total", "Keys that were found in memory.", figures.hits),
        ("pondage_redis_misses_total", "Keys that PostgreSQL was asked for.", figures.misses),
        ("pondage_redis_evicted_total", "Copies that made room for others.", figures.evicted),
        ("pondage_redis_expired_total", "Keys that expired.", figures.expired),
    ];
    for (name, help, value) in counters {
        page.family(name, Kind::Counter, help);
        page.sample(&[], value);
    }
}
