use backend::moment::Moment;

use super::super::operator::Switches;
use super::super::stats::Sampler;
use super::super::{fixture, view};
use super::*;
use crate::config::Config;
use crate::control::messages::PoolName;
use crate::route::{Way, Why};
use crate::worker::holders::{Holder, HoldingClient};
use crate::worker::snapshot::{Histogram, ReadSnapshot, WorkerSnapshot};

/// A second has a thousand milliseconds.
const RUNNING: Duration = Duration::from_secs(1_000);

fn advised(config: &Config, worker: WorkerSnapshot, running: Duration) -> Vec<Vec<String>> {
    let workers = [worker];
    let pools = view::pools(&workers);
    let facts = Facts {
        config,
        workers: &workers,
        pools: &pools,
        switches: &Switches::default(),
        sampler: &Sampler::new(Moment(1_000_000)),
        caches: &[],
        mirrors: &[],
        pins: &[],
        streams: &[],
        hosts: &[],
        look_ups: &[],
        events: &[],
        procedures: &[],
        kept: cache::store::Standing { entries: 0, bytes: 0, limit: 0, evicted: 0 },
        commands: 0,
        redis: None,
        now: Moment(2_000_000),
    };
    let word = |value: Value| match value {
        Value::Null => "-".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Tenths(tenths) => format!("{}.{}", tenths / 10, tenths % 10),
        Value::Text(text) => text.into_owned(),
    };
    let rows = rows(&facts, running);
    assert!(rows.iter().all(|row| row.len() == 9), "{rows:?}");
    rows.into_iter().map(|row| row.into_iter().map(word).collect()).collect()
}

fn read(text: &str, calls: u64, micros: u64, hits: u64) -> QuerySnapshot {
    QuerySnapshot {
        database: "app".to_owned(),
        user: "web".to_owned(),
        text: text.to_owned(),
        calls,
        time: Histogram { count: calls, sum_us: micros, ..Histogram::default() },
        joined: 0,
        company: 0,
        prepared: 0,
        again: 0,
        errors: 0,
        way: Way::Alone,
        why: Why::New,
        reason: String::new(),
        read: Some(ReadSnapshot {
            normal: text.to_owned(),
            hits: 0,
            advised: hits,
            named: false,
            cacheable: Some(Ok(())),
        }),
    }
}

fn queries(queries: Vec<QuerySnapshot>) -> WorkerSnapshot {
    WorkerSnapshot { queries, ..WorkerSnapshot::default() }
}

#[test]
fn at_first_it_says_how_long_to_wait() {
    let worker = queries(vec![read("select 1", 10, 900_000_000, 9)]);
    let rows = advised(&fixture::config(), worker, Duration::from_secs(45));
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0][2].as_str(), rows[0][8].as_str()), ("none", "45 s of 120 s have passed"));
}

#[test]
fn reads_that_would_have_hit_come_in_order_of_what_they_gain() {
    let mut refused = read("select now()", 100, 90_000_000, 90);
    refused.read.as_mut().expect("a read").cacheable = Some(Err("now() is stable".to_owned()));
    let mut named = read("select 2", 100, 90_000_000, 90);
    named.read.as_mut().expect("a read").named = true;
    let mut unjudged = read("select 3", 100, 90_000_000, 90);
    unjudged.read.as_mut().expect("a read").cacheable = None;
    let worker = queries(vec![
        read("select a", 100, 8_000_000, 50),
        read("select b", 100, 20_000_000, 75),
        read("select never again", 100, 90_000_000, 0),
        read("select seldom", 100, 100_000, 100),
        refused,
        named,
        unjudged,
    ]);
    let rows = advised(&fixture::config(), worker, RUNNING);
    let told = rows.iter().map(|row| (row[0].as_str(), row[1].as_str(), row[7].as_str()));
    let told: Vec<_> = told.collect();
    assert_eq!(
        told,
        [
            ("1", "15.0", "CREATE CACHE IN DATABASE app FROM select b"),
            ("2", "4.0", "CREATE CACHE IN DATABASE app FROM select a"),
        ]
    );
    assert_eq!(
        rows[0][8],
        "75 of 100 calls would have been answered from memory; 20.0 ms a second in all"
    );
}

#[test]
fn where_nothing_is_counted_yet_counting_is_advised() {
    let config = fixture::config();
    let mut worker = queries(vec![read("select a", 100, 60_000_000, 0)]);
    worker.queries[0].read.as_mut().expect("a read").cacheable = Some(Err("off".to_owned()));
    worker.pools = vec![fixture::pool(&config, "app", "web")];
    let rows = advised(&config, worker.clone(), RUNNING);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][7], "[databases.app]\ncache = \"advise\"");
    worker.queries[0].time.sum_us = 40_000_000;
    assert!(advised(&config, worker, RUNNING).is_empty());
}

const BIG: &str = "[databases.big]\nurl = \"postgres://db\"\npool_size = 20\n";

/// A pool of 20 servers that worked and was waited for so many seconds in all.
fn worked(busy: u64, waited_ms: u64) -> WorkerSnapshot {
    let config = fixture::config_and(BIG);
    let mut pool = fixture::pool(&config, "big", "ann");
    pool.totals.xact_count = 1;
    pool.totals.xact_time_us = busy * 1_000_000;
    pool.totals.wait_time_us = waited_ms * 1_000;
    WorkerSnapshot { pools: vec![pool], ..WorkerSnapshot::default() }
}

#[test]
fn pools_are_too_small_where_all_work_and_clients_wait_and_too_big_where_few_do() {
    let config = fixture::config_and(BIG);
    let told = |busy, waited| {
        let rows = advised(&config, worked(busy, waited), RUNNING);
        rows.into_iter().map(|row| format!("{} {}", row[1], row[7])).collect::<Vec<_>>()
    };
    assert_eq!(told(18_000, 30_000), ["30.0 [databases.big]\npool_size = 27"]);
    assert!(told(18_000, 500).is_empty(), "nobody waits");
    // Clients wait though most servers rest: something else is the matter.
    assert!(told(2_000, 30_000).is_empty());
    assert_eq!(told(2_000, 0), ["0.0 [databases.big]\npool_size = 4"]);
    assert!(told(6_000, 0).is_empty(), "it is about right");
}

#[test]
fn who_idles_in_a_transaction_while_others_wait_is_named() {
    let config = fixture::config();
    let mut pool = fixture::pool(&config, "app", "web");
    pool.cl_waiting = 3;
    let holder = |state, since: u64| Holder {
        pool: PoolName { database: "app".to_owned(), user: "web".to_owned(), replica: None },
        client: Some(HoldingClient {
            id: 71,
            user: "ann".to_owned(),
            application_name: "nightly".to_owned(),
            ends: fixture::connection(0, 71, "active").ends,
        }),
        state,
        state_since: Moment(since),
        since: Moment(0),
        statement: None,
    };
    let mut worker = WorkerSnapshot {
        pools: vec![pool],
        holders: vec![
            holder("idle in transaction", 6_000_000),
            holder("idle in transaction", 9_500_000),
            holder("active", 1_000_000),
        ],
        now: Moment(10_000_000),
        ..WorkerSnapshot::default()
    };
    let rows = advised(&config, worker.clone(), RUNNING);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][5], "client 71 \"nightly\" from 10.0.0.9:40000");
    assert_eq!(rows[0][7], "KILL_CLIENT 71");
    assert_eq!(rows[0][8], "idle in transaction for 4.0 s; 3 clients wait for a server");
    worker.pools[0].cl_waiting = 0;
    assert!(advised(&config, worker, RUNNING).is_empty());
}

#[test]
fn lines_of_the_configuration_stand_where_they_count() {
    let told = |more: &str, database: &str| {
        let config = fixture::config_and(more);
        let mut worker = worked(2_000, 0);
        database.clone_into(&mut worker.pools[0].database);
        advised(&config, worker, RUNNING).remove(0).remove(7)
    };
    let big = "[databases.\"a \\\"b\\\"\"]\nurl = \"postgres://db\"\n";
    assert_eq!(told(big, "a \"b\""), "[databases.\"a \\\"b\\\"\"]\npool_size = 4");
    let users = format!("{big}[users.ann]\npool_size = 20\n");
    let expected = "[databases.\"a \\\"b\\\"\".users.ann]\npool_size = 4";
    assert_eq!(told(&users, "a \"b\""), expected);
    // Whoever has come through the wildcard.
    assert_eq!(told("", "some"), "[databases.\"*\"]\npool_size = 4");
}

#[test]
fn a_statement_that_is_shown_in_part_is_not_to_be_run() {
    let worker = queries(vec![read("select a ...", 100, 8_000_000, 50)]);
    let rows = advised(&fixture::config(), worker, RUNNING);
    assert_eq!((rows[0][2].as_str(), rows[0][7].as_str()), ("cache", "-"));
}

#[test]
fn caches_that_the_mode_leaves_out_are_told_of() {
    let config = fixture::config_and(
        "[cache]\nuser = \"follower\"\n[databases.big]\nurl = \"postgres://db\"\ncache = \"advise\"\n",
    );
    let mut named = read("select a", 100, 8_000_000, 50);
    named.read.as_mut().expect("a read").named = true;
    (named.database, named.user) = ("big".to_owned(), "ann".to_owned());
    let mut worker = queries(vec![named]);
    worker.pools = vec![fixture::pool(&config, "big", "ann")];
    let rows = advised(&config, worker, RUNNING);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        (rows[0][1].as_str(), rows[0][7].as_str()),
        ("4.0", "[databases.big]\ncache = \"manual\"")
    );
}
