//! The metrics of the Redis door. Labels are names of commands: never a key, never a value.

use redis::stats::{BATCH_ROWS, COMMIT_US};

use super::exposition::Exposition;
use super::families;
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
        (families::redis::UP, u64::from(figures.away.is_none())),
        (families::redis::CLIENTS, figures.connected as u64),
        (families::redis::BLOCKED_CLIENTS, figures.blocked as u64),
        (families::redis::BATCHES_IN_FLIGHT, figures.in_flight as u64),
        (families::redis::RESIDENT_KEYS, figures.resident as u64),
        (families::redis::RESIDENT_BYTES, figures.bytes as u64),
        (families::redis::MEMORY_LIMIT, figures.bytes_max as u64),
        (families::redis::CHANNELS, figures.channels as u64),
        (families::redis::JOURNAL_BACKLOG, figures.folds.backlog as u64),
        (families::redis::JOURNAL_LIMIT, figures.journal_max as u64),
        (families::redis::FOLD_FAILING, u64::from(figures.folds.error.is_some())),
    ];
    for (family, value) in gauges {
        page.family(family);
        page.sample(&[], value);
    }
}

fn commands(page: &mut Exposition, Snapshot { figures, .. }: &Snapshot) {
    page.family(families::redis::COMMANDS);
    for (name, calls) in &figures.commands {
        page.sample(&[("command", name)], calls.calls);
    }
    page.family(families::redis::COMMAND_ERRORS);
    for (name, calls) in &figures.commands {
        page.sample(&[("command", name), ("outcome", "failed")], calls.failed);
        page.sample(&[("command", name), ("outcome", "rejected")], calls.rejected);
    }
}

fn batches(page: &mut Exposition, Snapshot { figures, .. }: &Snapshot) {
    let batches = &figures.batches;
    page.family(families::redis::BATCH_ROWS);
    let bounds = BATCH_ROWS.map(|rows| rows.to_string());
    page.buckets(&bounds, &batches.sizes, batches.rows);
    page.family(families::redis::COMMIT);
    page.buckets_of_seconds(&COMMIT_US, &batches.commits, batches.commit_us);
}

fn counters(page: &mut Exposition, Snapshot { figures, .. }: &Snapshot) {
    let (batches, folds) = (&figures.batches, &figures.folds);
    let counters = [
        (families::redis::CONNECTIONS, figures.connections),
        (families::redis::ERRORS, figures.errors_replied),
        (families::redis::BATCH_RETRIES, figures.retries),
        (families::redis::BATCH_CONFLICTS, batches.conflicts),
        (families::redis::BATCH_REFUSED, batches.refused),
        (families::redis::FOLDS, folds.folds),
        (families::redis::FOLDED_KEYS, folds.keys),
        (families::redis::FOLD_FAILURES, folds.failed),
        (families::redis::FOLD_OVERWRITTEN, figures.overwritten),
        (families::redis::LOOKUPS, figures.loads),
        (families::redis::LOOKUP_KEYS, figures.loaded),
        (families::redis::HITS, figures.hits),
        (families::redis::MISSES, figures.misses),
        (families::redis::EVICTED, figures.evicted),
        (families::redis::EXPIRED, figures.expired),
    ];
    for (family, value) in counters {
        page.family(family);
        page.sample(&[], value);
    }
}
