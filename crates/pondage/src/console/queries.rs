//! The rows of SHOW QUERIES, SHOW PROXIED QUERIES, SHOW COALESCE and SHOW POOLS_EXTENDED: which statements shared trips,
//! and what kept the others from it; which reads could be answered from memory.

use std::collections::BTreeMap;

use super::table::Value;
use super::{stats, view};
use crate::route::Why;
use crate::worker::snapshot::{Histogram, PoolSnapshot, QuerySnapshot, WorkerSnapshot};

/// Rows of SHOW QUERIES at the most: those that took most time. As many as one worker follows.
const ROWS_MAX: usize = 4_096;

/// One row for each shape of a pool, over all workers; what took most time comes first.
pub fn rows(workers: &[WorkerSnapshot]) -> Vec<Vec<Value>> {
    let mut shapes = merge(workers);
    shapes.sort_by_key(|shape| std::cmp::Reverse(shape.time.sum_us));
    shapes.iter().take(ROWS_MAX).map(row).collect()
}

/// Rows of SHOW PROXIED QUERIES: reads that nothing in memory has answered and nobody has named,
/// what took most time first.
pub fn proxied(workers: &[WorkerSnapshot]) -> Vec<Vec<Value>> {
    let mut shapes = merge(workers);
    shapes.sort_by_key(|shape| std::cmp::Reverse(shape.time.sum_us));
    shapes.iter().filter_map(proxied_row).take(ROWS_MAX).collect()
}

fn proxied_row(shape: &QuerySnapshot) -> Option<Vec<Value>> {
    let read = shape.read.as_ref().filter(|read| !read.named && read.hits == 0)?;
    let (cacheable, why) = match &read.cacheable {
        None => ("unknown", ""),
        Some(Ok(())) => ("yes", ""),
        Some(Err(why)) => ("no", why.as_str()),
    };
    Some(vec![
        Value::text(shape.database.clone()),
        Value::text(shape.user.clone()),
        Value::text(read.normal.clone()),
        Value::from(shape.calls),
        Value::from(shape.time.sum_us),
        Value::from(read.advised),
        Value::text(cacheable),
        Value::text(why.to_owned()),
    ])
}

/// The shapes of all workers, those of one pool and text as one, in order of their names.
pub fn merge(workers: &[WorkerSnapshot]) -> Vec<QuerySnapshot> {
    let mut merged: BTreeMap<(&str, &str, &str), QuerySnapshot> = BTreeMap::new();
    for shape in workers.iter().flat_map(|worker| &worker.queries) {
        merged
            .entry((&shape.database, &shape.user, &shape.text))
            .and_modify(|sum| add(sum, shape))
            .or_insert_with(|| shape.clone());
    }
    merged.into_values().collect()
}

fn add(sum: &mut QuerySnapshot, shape: &QuerySnapshot) {
    // Taken apart so that a new field is not forgotten here.
    let QuerySnapshot {
        database: _,
        user: _,
        text: _,
        calls,
        time,
        joined,
        company,
        prepared,
        again,
        errors,
        way,
        why,
        reason,
        read,
    } = shape;
    // Nobody knows which worker had the last one; the busier is the more telling.
    if *calls > sum.calls {
        (sum.way, sum.why) = (*way, *why);
        sum.reason.clone_from(reason);
    }
    sum.calls += calls;
    stats::add_histogram(&mut sum.time, time);
    sum.joined += joined;
    sum.company += company;
    sum.prepared += prepared;
    sum.again += again;
    sum.errors += errors;
    if let (Some(sum), Some(read)) = (&mut sum.read, read) {
        sum.hits += read.hits;
        sum.advised += read.advised;
        sum.named |= read.named;
        if sum.cacheable.is_none() {
            sum.cacheable.clone_from(&read.cacheable);
        }
    }
}

fn row(shape: &QuerySnapshot) -> Vec<Value> {
    let time = &shape.time;
    vec![
        Value::text(shape.database.clone()),
        Value::text(shape.user.clone()),
        Value::text(shape.text.clone()),
        Value::from(shape.calls),
        Value::from(time.sum_us),
        time.sum_us.checked_div(time.count).map_or(Value::Null, Value::from),
        bound(time, 50),
        bound(time, 99),
        Value::from(shape.joined),
        ratio(shape.joined.saturating_mul(100), shape.calls),
        ratio(shape.company, shape.joined),
        Value::from(shape.prepared),
        Value::from(shape.again),
        Value::from(shape.errors),
        Value::text(shape.way.word()),
        Value::text(shape.why.told(&shape.reason)),
    ]
}

/// How long what PostgreSQL answers takes the clients of one pool: Odyssey's SHOW POOLS_EXTENDED.
pub fn latencies(pool: &PoolSnapshot) -> Vec<Value> {
    let totals = &pool.totals;
    let mut row = vec![
        Value::text(pool.database.clone()),
        Value::text(pool.user.clone()),
        Value::from(totals.xact_count),
        Value::from(totals.query_count),
        Value::from(totals.received),
        Value::from(totals.sent),
    ];
    for time in [&totals.xact_time, &totals.query_time, &totals.wait_time] {
        row.extend([50, 95, 99].map(|percent| bound(time, percent)));
    }
    row.push(Value::from(view::servers(pool)));
    row.push(pool.share.map_or(Value::Null, Value::from));
    row.push(Value::from(totals.given_up));
    row
}

/// The counters of one pool.
pub fn coalesced(pool: &PoolSnapshot) -> Vec<Value> {
    let counters = &pool.totals.coalesced;
    let joined = counters.why[Why::Free as usize];
    let mut row = vec![
        Value::text(pool.database.clone()),
        Value::text(pool.user.clone()),
        Value::from(counters.trips),
        Value::from(joined),
        ratio(joined, counters.trips),
        Value::from(counters.batched),
        Value::from(counters.trained),
        Value::from(counters.prepared),
        Value::from(counters.skipped),
        Value::from(counters.stalled),
        Value::from(counters.lost),
    ];
    let alone = Why::ALL.iter().zip(counters.why).filter(|(why, _)| **why != Why::Free);
    row.extend(alone.map(|(_, count)| Value::from(count)));
    row
}

/// With one decimal, rounded; NULL over nothing.
pub(super) fn ratio(part: u64, whole: u64) -> Value {
    let tenths = part.saturating_mul(10).saturating_add(whole / 2);
    tenths.checked_div(whole).map_or(Value::Null, Value::Tenths)
}

/// The upper bound of the bucket in which this share of the durations is reached, in microseconds.
/// The last bucket has none: its lower bound stands for it. NULL without durations.
pub(super) fn bound(time: &Histogram, percent: u64) -> Value {
    quantile(time, percent).map_or(Value::Null, Value::from)
}

/// The same, as a number.
pub fn quantile(time: &Histogram, percent: u64) -> Option<u64> {
    let count: u64 = time.buckets.iter().sum();
    if count == 0 {
        return None;
    }
    let wanted = count.saturating_mul(percent).div_ceil(100);
    let mut below = 0;
    let bucket = time.buckets.iter().position(|count| {
        below += count;
        below >= wanted
    });
    let last = Histogram::BUCKETS - 2;
    Histogram::bound_us(bucket.unwrap_or(last).min(last))
}

#[cfg(test)]
#[path = "queries_tests.rs"]
mod tests;
