//! Totals per database, and their averages over the last period.
//!
//! As PgBouncer has it: every `stats_period` the sample before last is forgotten, and an average
//! compares the counters of now with the older of the two samples kept. It so covers one to two
//! periods.
//!
//! Source: `refresh_stats` and `calc_average` in `src/stats.c` of PgBouncer 1.25.

use std::collections::BTreeMap;

use backend::moment::Moment;

use crate::worker::snapshot::{Cached, Coalesced, Histogram, PoolSnapshot, Totals};

/// Before the first sample: a second, so that the first averages are rates too.
const FIRST_PERIOD_US: u64 = 1_000_000;

/// Twelve figures of SHOW STATS: counts and bytes per second, times in microseconds per item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Averages {
    pub server_assignment_count: u64,
    pub xact_count: u64,
    pub query_count: u64,
    pub received: u64,
    pub sent: u64,
    /// Of a transaction.
    pub xact_time_us: u64,
    /// Of a query.
    pub query_time_us: u64,
    /// Of a server assignment.
    pub wait_time_us: u64,
    pub client_parse_count: u64,
    pub server_parse_count: u64,
    pub bind_count: u64,
    pub client_login_count: u64,
}

/// Totals by database name.
pub type ByDatabase = BTreeMap<String, Totals>;

/// Calls of procedures so far, by database and oid.
pub type Calls = BTreeMap<(String, u32), u64>;

/// The two samples that averages need.
#[derive(Debug)]
pub struct Sampler {
    older: Sample,
    newer: Sample,
}

#[derive(Debug, Default)]
struct Sample {
    at: Moment,
    databases: ByDatabase,
    calls: Calls,
}

impl Sampler {
    pub fn new(now: Moment) -> Sampler {
        let before = Moment(now.0.saturating_sub(FIRST_PERIOD_US));
        Sampler {
            older: Sample { at: before, ..Sample::default() },
            newer: Sample { at: now, ..Sample::default() },
        }
    }

    /// Takes the sample of a period's end.
    pub fn sample(&mut self, now: Moment, databases: ByDatabase, calls: Calls) {
        let newest = Sample { at: now, databases, calls };
        self.older = std::mem::replace(&mut self.newer, newest);
    }

    /// The averages of one database whose totals are `totals` now.
    pub fn averages(&self, now: Moment, database: &str, totals: &Totals) -> Averages {
        let before = self.older.databases.get(database).copied().unwrap_or_default();
        self.between(now, &before, totals)
    }

    /// The averages of all databases together.
    pub fn overall(&self, now: Moment, databases: &ByDatabase) -> Averages {
        let mut before = Totals::default();
        for old in databases.keys().filter_map(|name| self.older.databases.get(name)) {
            add(&mut before, old);
        }
        self.between(now, &before, &sum(databases))
    }

    /// Tenths of calls a second of a procedure that has had `calls` of them until now.
    pub fn call_rate(&self, now: Moment, procedure: &(String, u32), calls: u64) -> u64 {
        let before = self.older.calls.get(procedure).copied().unwrap_or(0);
        let more = u128::from(calls.saturating_sub(before)) * 10_000_000;
        let rate = more.checked_div(now.since(self.older.at).as_micros()).unwrap_or(0);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    fn between(&self, now: Moment, old: &Totals, new: &Totals) -> Averages {
        let Ok(period) = u64::try_from(now.since(self.older.at).as_micros()) else {
            return Averages::default();
        };
        if period == 0 {
            return Averages::default();
        }
        let per_second = |new: u64, old: u64| {
            let rate = u128::from(new.saturating_sub(old)) * 1_000_000 / u128::from(period);
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        let per_item = |new: u64, old: u64, new_items: u64, old_items: u64| {
            let items = new_items.saturating_sub(old_items);
            new.saturating_sub(old).checked_div(items).unwrap_or(0)
        };
        Averages {
            server_assignment_count: per_second(
                new.server_assignment_count,
                old.server_assignment_count,
            ),
            xact_count: per_second(new.xact_count, old.xact_count),
            query_count: per_second(new.query_count, old.query_count),
            received: per_second(new.received, old.received),
            sent: per_second(new.sent, old.sent),
            xact_time_us: per_item(
                new.xact_time_us,
                old.xact_time_us,
                new.xact_count,
                old.xact_count,
            ),
            query_time_us: per_item(
                new.query_time_us,
                old.query_time_us,
                new.query_count,
                old.query_count,
            ),
            wait_time_us: per_item(
                new.wait_time_us,
                old.wait_time_us,
                new.server_assignment_count,
                old.server_assignment_count,
            ),
            client_parse_count: per_second(new.client_parse_count, old.client_parse_count),
            server_parse_count: per_second(new.server_parse_count, old.server_parse_count),
            bind_count: per_second(new.bind_count, old.bind_count),
            client_login_count: per_second(new.client_login_count, old.client_login_count),
        }
    }
}

/// PgBouncer's console is one of the databases, and each of its commands a query.
pub fn of_all(pools: &[PoolSnapshot], commands: u64) -> ByDatabase {
    let mut databases = by_database(pools);
    let console = Totals { query_count: commands, xact_count: commands, ..Totals::default() };
    databases.insert("pgbouncer".to_owned(), console);
    databases
}

/// Sums the totals of a database's pools.
pub fn by_database(pools: &[PoolSnapshot]) -> ByDatabase {
    let mut databases = ByDatabase::new();
    for pool in pools {
        add(databases.entry(pool.database.clone()).or_default(), &pool.totals);
    }
    databases
}

pub fn sum(databases: &ByDatabase) -> Totals {
    let mut all = Totals::default();
    for totals in databases.values() {
        add(&mut all, totals);
    }
    all
}

/// Adds every counter of `more`.
pub fn add(totals: &mut Totals, more: &Totals) {
    // Taken apart so that a new counter is not forgotten here.
    let Totals {
        xact_count,
        query_count,
        server_assignment_count,
        received,
        sent,
        xact_time_us,
        query_time_us,
        wait_time_us,
        client_parse_count,
        server_parse_count,
        bind_count,
        stale,
        replanned,
        client_login_count,
        errors,
        server_opens,
        server_closes,
        given_up,
        cancels,
        notifications,
        split_reads,
        split_returned,
        coalesced,
        cached,
        xact_time,
        query_time,
        wait_time,
    } = more;
    totals.xact_count += xact_count;
    totals.query_count += query_count;
    totals.server_assignment_count += server_assignment_count;
    totals.received += received;
    totals.sent += sent;
    totals.xact_time_us += xact_time_us;
    totals.query_time_us += query_time_us;
    totals.wait_time_us += wait_time_us;
    totals.client_parse_count += client_parse_count;
    totals.server_parse_count += server_parse_count;
    totals.bind_count += bind_count;
    totals.stale += stale;
    totals.replanned += replanned;
    totals.client_login_count += client_login_count;
    totals.errors += errors;
    totals.server_opens += server_opens;
    totals.server_closes += server_closes;
    totals.given_up += given_up;
    totals.cancels += cancels;
    totals.notifications += notifications;
    totals.split_reads += split_reads;
    totals.split_returned += split_returned;
    add_coalesced(&mut totals.coalesced, coalesced);
    add_cached(&mut totals.cached, cached);
    add_histogram(&mut totals.xact_time, xact_time);
    add_histogram(&mut totals.query_time, query_time);
    add_histogram(&mut totals.wait_time, wait_time);
}

fn add_cached(totals: &mut Cached, more: &Cached) {
    let Cached {
        hits,
        advised,
        misses,
        fills,
        waits,
        too_old,
        mirrored,
        unsettled,
        leased,
        unserved,
        audits,
        mismatches,
    } = more;
    totals.hits += hits;
    totals.advised += advised;
    totals.misses += misses;
    totals.fills += fills;
    totals.waits += waits;
    totals.too_old += too_old;
    totals.mirrored += mirrored;
    totals.unsettled += unsettled;
    totals.leased += leased;
    totals.unserved += unserved;
    totals.audits += audits;
    totals.mismatches += mismatches;
}

fn add_coalesced(totals: &mut Coalesced, more: &Coalesced) {
    let Coalesced { why, trips, batched, trained, prepared, skipped, stalled, lost } = more;
    for (count, more) in totals.why.iter_mut().zip(why) {
        *count += more;
    }
    totals.trips += trips;
    totals.batched += batched;
    totals.trained += trained;
    totals.prepared += prepared;
    totals.skipped += skipped;
    totals.stalled += stalled;
    totals.lost += lost;
}

/// Adds bucket by bucket.
pub fn add_histogram(histogram: &mut Histogram, more: &Histogram) {
    for (bucket, count) in histogram.buckets.iter_mut().zip(more.buckets) {
        *bucket += count;
    }
    histogram.count += more.count;
    histogram.sum_us += more.sum_us;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment(seconds * 1_000_000)
    }

    fn totals(queries: u64, time_us: u64) -> Totals {
        Totals {
            query_count: queries,
            query_time_us: time_us,
            xact_count: queries / 2,
            xact_time_us: time_us * 2,
            server_assignment_count: queries / 2,
            wait_time_us: time_us / 2,
            received: queries * 100,
            ..Totals::default()
        }
    }

    fn one(name: &str, totals: Totals) -> ByDatabase {
        ByDatabase::from([(name.to_owned(), totals)])
    }

    #[test]
    fn averages_cover_one_to_two_periods() {
        let mut sampler = Sampler::new(at(100));
        sampler.sample(at(160), one("app", totals(600, 6_000)), Calls::new());
        // 30 s into the second period, 90 s after the start: nothing is forgotten yet.
        let now = sampler.averages(at(190), "app", &totals(900, 9_000));
        assert_eq!(now.query_count, 10);
        sampler.sample(at(220), one("app", totals(1_800, 30_000)), Calls::new());
        // From 160 on: 3,000 queries in 100 s, 60 ms in all.
        let now = sampler.averages(at(260), "app", &totals(3_600, 66_000));
        assert_eq!(now.query_count, 30);
        assert_eq!(now.received, 3_000);
        assert_eq!(now.query_time_us, 20);
        assert_eq!(now.xact_count, 15);
        assert_eq!(now.xact_time_us, 80);
        assert_eq!(now.wait_time_us, 20);
        assert_eq!(now.client_login_count, 0);
    }

    #[test]
    fn before_the_first_period_ends_averages_run_from_a_second_before_the_start() {
        let sampler = Sampler::new(at(100));
        assert_eq!(sampler.averages(at(101), "app", &totals(50, 0)).query_count, 25);
    }

    #[test]
    fn a_pool_that_began_anew_gives_no_negative_rates() {
        let mut sampler = Sampler::new(at(100));
        sampler.sample(at(160), one("app", totals(1_000, 1_000)), Calls::new());
        sampler.sample(at(220), one("app", totals(1_000, 1_000)), Calls::new());
        assert_eq!(sampler.averages(at(221), "app", &totals(10, 10)), Averages::default());
        assert_eq!(sampler.averages(at(160), "app", &totals(9_999, 10)), Averages::default());
    }

    #[test]
    fn the_overall_average_leaves_databases_out_that_are_gone() {
        let mut sampler = Sampler::new(at(0));
        let mut both = one("a", totals(100, 0));
        both.insert("b".to_owned(), totals(1_000_000, 0));
        sampler.sample(at(60), both, Calls::new());
        sampler.sample(at(120), one("a", totals(200, 0)), Calls::new());
        let overall = sampler.overall(at(160), &one("a", totals(1_100, 0)));
        assert_eq!(overall.query_count, 10);
    }

    #[test]
    fn calls_of_procedures_have_rates_too() {
        let mut sampler = Sampler::new(at(100));
        let payment = ("app".to_owned(), 7);
        assert_eq!(sampler.call_rate(at(101), &payment, 5), 25);
        for (seconds, calls) in [(160, 600), (220, 1_200)] {
            let calls = Calls::from([(payment.clone(), calls)]);
            sampler.sample(at(seconds), ByDatabase::new(), calls);
        }
        assert_eq!(sampler.call_rate(at(260), &payment, 1_650), 105);
        assert_eq!(sampler.call_rate(at(260), &payment, 10), 0, "it began anew");
        assert_eq!(sampler.call_rate(at(160), &payment, 700), 0);
    }

    #[test]
    fn histograms_add_up_bucket_by_bucket() {
        let mut left = Totals::default();
        left.query_time.record(10);
        let mut right = Totals::default();
        right.query_time.record(10);
        right.query_time.record(1_000_000);
        add(&mut left, &right);
        assert_eq!(left.query_time.count, 3);
        assert_eq!(left.query_time.sum_us, 1_000_020);
        assert_eq!(left.query_time.buckets[0], 2);
        assert_eq!(left.query_time.buckets.iter().sum::<u64>(), 3);
    }
}
