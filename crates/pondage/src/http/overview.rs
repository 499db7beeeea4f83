//! The figures of one second: differences of totals. Without IO.

use std::time::Duration;

use serde_json::{json, Value};

use crate::console::queries::quantile;
use crate::console::view::{self, View};
use crate::console::{procedures, stats, Process};
use crate::worker::snapshot::Histogram;

/// Totals at one moment.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    queries: u64,
    transactions: u64,
    wait: Histogram,
    server: Histogram,
    hits: u64,
    misses: u64,
    redis_commands: u64,
    procedure_calls: u64,
    clients: u64,
    waiting: u64,
    servers: u64,
    lag: Option<u64>,
}

impl Sample {
    pub fn of(process: &dyn Process, view: &View) -> Sample {
        let mut sample = Sample::default();
        for pool in view::pools(&view.workers) {
            let totals = &pool.totals;
            sample.queries += totals.query_count;
            sample.transactions += totals.xact_count;
            stats::add_histogram(&mut sample.wait, &totals.wait_time);
            stats::add_histogram(&mut sample.server, &totals.query_time);
            sample.hits += totals.cached.hits;
            sample.misses += totals.cached.misses;
            sample.clients += u64::from(view::clients(&pool));
            sample.waiting += u64::from(pool.cl_waiting);
            sample.servers += u64::from(view::servers(&pool));
        }
        let redis = process.redis(false);
        let commands = redis.iter().flat_map(|redis| &redis.figures.commands);
        sample.redis_commands = commands.map(|(_, calls)| calls.calls).sum();
        sample.procedure_calls = procedures::calls(&process.procedures().list()).values().sum();
        sample.lag = process.streams().iter().map(|stream| stream.lag()).max();
        sample
    }
}

/// What came of the time between two samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overview {
    /// Seconds since 1970.
    pub time: f64,
    statements: f64,
    transactions: f64,
    /// Median and 99th percentile, as the console gives them: upper bounds of buckets.
    waiting_us: [Option<u64>; 2],
    server_us: [Option<u64>; 2],
    clients: u64,
    waiting: u64,
    servers: u64,
    hit_rate: Option<f64>,
    lag: Option<u64>,
    redis_commands: f64,
    procedure_calls: f64,
}

impl Overview {
    pub fn between(old: &Sample, new: &Sample, passed: Duration, time: f64) -> Overview {
        let seconds = passed.as_secs_f64().max(0.001);
        // A pool that is gone takes its totals along.
        let more = |old: u64, new: u64| new.saturating_sub(old);
        let rate = |old: u64, new: u64| more(old, new) as f64 / seconds;
        let (hits, misses) = (more(old.hits, new.hits), more(old.misses, new.misses));
        let quantiles = |old: &Histogram, new: &Histogram| {
            let time = since(old, new);
            [50, 99].map(|percent| quantile(&time, percent))
        };
        Overview {
            time,
            statements: rate(old.queries, new.queries),
            transactions: rate(old.transactions, new.transactions),
            waiting_us: quantiles(&old.wait, &new.wait),
            server_us: quantiles(&old.server, &new.server),
            clients: new.clients,
            waiting: new.waiting,
            servers: new.servers,
            hit_rate: (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64),
            lag: new.lag,
            redis_commands: rate(old.redis_commands, new.redis_commands),
            procedure_calls: rate(old.procedure_calls, new.procedure_calls),
        }
    }

    pub fn json(&self) -> Value {
        let seconds = |micros: Option<u64>| micros.map(|micros| micros as f64 / 1e6);
        let split = |at: usize| {
            json!({
                "waiting": seconds(self.waiting_us[at]),
                "server": seconds(self.server_us[at]),
            })
        };
        json!({
            "time": self.time,
            "statements_per_second": self.statements,
            "transactions_per_second": self.transactions,
            "p50_seconds": split(0),
            "p99_seconds": split(1),
            "clients": self.clients,
            "clients_waiting": self.waiting,
            "servers": self.servers,
            "hit_rate": self.hit_rate,
            "replication_lag_bytes": self.lag,
            "redis_commands_per_second": self.redis_commands,
            "procedure_calls_per_second": self.procedure_calls,
        })
    }
}

fn since(old: &Histogram, new: &Histogram) -> Histogram {
    let mut more = *new;
    for (bucket, before) in more.buckets.iter_mut().zip(old.buckets) {
        *bucket = bucket.saturating_sub(before);
    }
    more.count = more.count.saturating_sub(old.count);
    more.sum_us = more.sum_us.saturating_sub(old.sum_us);
    more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_time_between() {
        let mut old = Sample { queries: 100, hits: 5, misses: 5, ..Sample::default() };
        (0..90).for_each(|_| old.server.record(1_000_000));
        let mut new = old.clone();
        (0..98).for_each(|_| new.server.record(90));
        (0..2).for_each(|_| new.server.record(700));
        (new.queries, new.hits, new.misses) = (300, 8, 6);
        (new.clients, new.lag) = (7, Some(64));
        let second = Overview::between(&old, &new, Duration::from_secs(2), 5.0).json();
        assert_eq!(second["statements_per_second"], json!(100.0));
        assert_eq!(second["p50_seconds"], json!({ "waiting": null, "server": 0.0001 }));
        assert_eq!(second["p99_seconds"]["server"], json!(0.0008));
        assert_eq!(second["hit_rate"], json!(0.75));
        assert_eq!((&second["clients"], &second["replication_lag_bytes"]), (&json!(7), &json!(64)));
        let none = Overview::between(&new, &old, Duration::ZERO, 5.0).json();
        assert_eq!(
            (&none["statements_per_second"], &none["hit_rate"]),
            (&json!(0.0), &Value::Null)
        );
    }
}
