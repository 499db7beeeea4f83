//! The checker of what the read cache promises (docs/cache.md, Freshness): writers through the
//! gateway and beside it keep invariants that no single answer may break, and every reader
//! remembers how far it has seen, and what others were told of before it asked. Once more where commits wait for a standby that is late, so that
//! the stream tells them long before anybody sees them.
//!
//! A checker that finds nothing proves something only if it would have found it. So the same
//! checker is put before caches that are wrong on purpose (`broken.rs`), and has to find each of
//! them, and nothing in their sound twin. They are in-process and small: nothing in the gateway can
//! be switched to do wrong.
//!
//! `PONDAGE_CHECK_ROUNDS` rounds of a few seconds (as many as fit into 30 s), from
//! `PONDAGE_CHECK_SEED`. Threads race, so a seed makes a repetition likely and not certain.

mod broken;
mod door;
#[path = "../it/kit/mod.rs"]
mod kit;
mod late;
mod load;
mod random;
mod reader;
mod reads;
mod schema;

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use broken::{Broken, Fault};
use door::Door;
use kit::cluster::{Cluster, APP};
use kit::{Config, Database, Gateway};
use load::Plan;

/// How long it goes on where nobody has said for how many rounds.
const TIME: Duration = Duration::from_secs(30);

/// A round of the gateway.
const ROUND: Duration = Duration::from_secs(4);

/// Of the answers that are looked at, so many come from the cache in each round.
const HITS_MIN: u64 = 10;

/// Within this time a broken cache has to be found out.
const FOUND_WITHIN: Duration = Duration::from_secs(15);

/// With commits that wait for a standby.
const LATE_TIME: Duration = Duration::from_secs(12);

/// PostgreSQL that tells large transactions while they run.
fn cluster() -> &'static Cluster {
    static CLUSTER: std::sync::OnceLock<Cluster> = std::sync::OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start("cache-check", &["logical_decoding_work_mem = 64kB"]))
}

fn gateway(cluster: &Cluster, database: &Database) -> Gateway {
    let config = Config::of(database)
        .set(&format!("databases.{}.port", database.name), i64::from(cluster.port))
        .set("cache.mode", "auto")
        .set("cache.user", APP)
        .set("cache.wait", "20ms");
    Gateway::start(config)
}

/// Plays rounds, as many as are wanted or fit into the time.
fn judge(door: &Door, time: Duration) {
    let rounds = number("PONDAGE_CHECK_ROUNDS");
    let seed = number("PONDAGE_CHECK_SEED").unwrap_or_else(rand::random);
    println!("PONDAGE_CHECK_SEED={seed}");
    let end = Instant::now() + time;
    let (mut done, mut asked, mut hits, mut mirrored) = (0, 0, 0, 0);
    while rounds.map_or_else(|| Instant::now() < end, |rounds| done < rounds) {
        let mut dice = StdRng::seed_from_u64(seed.wrapping_add(done));
        let plan = Plan { time: ROUND, kills: dice.random_bool(0.6), seed: dice.random() };
        let report = load::play(door, &plan);
        let wrong = report.wrong.join("\n");
        assert!(wrong.is_empty(), "PONDAGE_CHECK_SEED={seed}, round {done}, {plan:?}:\n{wrong}");
        (asked, hits, done) = (asked + report.asked, hits + report.hits, done + 1);
        mirrored += report.mirrored;
    }
    println!(
        "{done} rounds, {asked} reads; {hits} of those looked at were answered from the cache, \
         {mirrored} of them by mirrors"
    );
    // How many were judged proves something, not their share of what a fast machine asks.
    assert!(hits > done * HITS_MIN, "hardly anything came from the cache");
    assert!(mirrored > HITS_MIN, "hardly anything came from mirrors");
}

#[test]
fn no_answer_is_older_than_what_its_client_knows_and_none_is_half_a_commit() {
    let cluster = cluster();
    let database = cluster.database();
    load::set_up(cluster, &database);
    let gateway = gateway(cluster, &database);
    judge(&Door::gateway(cluster, &database, gateway.address()), TIME);
}

#[test]
fn nor_where_commits_wait_for_a_standby_that_is_late() {
    let standby = format!("synchronous_standby_names = '{}'", late::NAME);
    // Only what is written to this database waits.
    let lines = ["synchronous_commit = local", &*standby];
    let cluster: &Cluster = Box::leak(Box::new(Cluster::start("late", &lines)));
    let database = cluster.database();
    load::set_up(cluster, &database);
    let _standby = late::Standby::start(cluster, rand::random());
    let waits = format!("alter database {} set synchronous_commit = on", database.name);
    cluster.superuser("postgres").run(&waits);
    let gateway = gateway(cluster, &database);
    judge(&Door::gateway(cluster, &database, gateway.address()), LATE_TIME);
    let unsettled = gateway.figure("pondage_cache_unsettled_total");
    assert!(unsettled > 0, "nothing was read while a commit waited");
}

#[test]
fn the_checker_finds_every_cache_that_is_wrong() {
    let cluster = cluster();
    for fault in Fault::ALL {
        let database = cluster.database();
        load::set_up(cluster, &database);
        let door = Door::broken(cluster, &database, Broken::new(fault));
        let end = Instant::now() + FOUND_WITHIN;
        let time = Duration::from_secs(2);
        let mut found = None;
        let mut seed = 0;
        while found.is_none() && Instant::now() < end {
            let report = load::play(&door, &Plan { time, kills: false, seed });
            found = report.wrong.into_iter().next();
            seed += 1;
            if fault == Fault::None {
                break;
            }
        }
        println!("{fault:?}: {found:?}");
        assert_eq!(found.is_some(), fault != Fault::None, "{fault:?}: {found:?}");
    }
}

#[test]
fn whatever_is_written_every_answer_is_postgresql_s() {
    let seed = number("PONDAGE_CHECK_SEED").unwrap_or_else(rand::random);
    println!("PONDAGE_CHECK_SEED={seed}");
    random::play(cluster(), seed, number("PONDAGE_CHECK_ROUNDS"));
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|e| panic!("{variable}={text}: {e}")))
}
