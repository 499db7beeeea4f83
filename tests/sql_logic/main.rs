//! SQL logic tests: files of statements and queries, played in PostgreSQL itself and through a
//! gateway that caches, cold and warm. Every answer must be PostgreSQL's own, and must come from
//! the cache in the end wherever it can.
//!
//! - Our own files are in `slt`, with what PostgreSQL is expected to answer
//!   (`PONDAGE_LOGIC_UPDATE=1` writes it). Each of their queries says whether it can be cached.
//! - `PONDAGE_LOGIC_DIR` names a directory of files that others have published (`make sql-logic`),
//!   `PONDAGE_LOGIC_PART` a part of the names of those that are played, and with
//!   `PONDAGE_LOGIC_ONE_OF=10` only each tenth of them is.

mod answer;
mod directory;
#[path = "../it/kit/mod.rs"]
mod kit;
mod own;
mod pair;
mod published;

use std::path::Path;
use std::sync::OnceLock;

use kit::cluster::{Cluster, APP};
use kit::{Config, Database};
use pair::Totals;

/// Of all queries outside of transactions that PostgreSQL answers, so many of a hundred have to
/// come from the cache in every form.
const CACHEABLE_PERCENT: u64 = 70;

/// Statements of the same text must be answered in the same order: nothing may move rows but they.
fn cluster() -> &'static Cluster {
    const SETTINGS: [&str; 4] = [
        "autovacuum = off",
        "max_wal_senders = 60",
        "max_replication_slots = 60",
        "synchronous_commit = off",
    ];
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start("sql-logic", &SETTINGS))
}

/// A gateway that caches whatever it can.
fn caching(cluster: &Cluster, database: &Database) -> Config {
    Config::of(database)
        .set(&format!("databases.{}.port", database.name), i64::from(cluster.port))
        .set("cache.mode", "auto")
        .set("cache.user", APP)
        // EXPLAIN CREATE CACHE is for administrators.
        .set("auth.admin_users", ["admin", APP])
        // A stream that is slow for a moment is no miss.
        .set("cache.wait", "1s")
}

fn assert_hits(totals: &Totals, warmed_percent: u64) {
    let outside = totals.queries - totals.refused - totals.inside - totals.again;
    assert!(
        totals.cacheable * 100 >= outside * CACHEABLE_PERCENT,
        "hardly anything can be cached: {totals}"
    );
    assert!(totals.warmed * 100 >= totals.cacheable * warmed_percent, "too few: {totals}");
    assert!(totals.hits >= totals.warmed * 2, "not in every form: {totals}");
}

#[test]
fn what_the_cache_answers_is_what_postgresql_answers() {
    let cluster = cluster();
    if std::env::var_os("PONDAGE_LOGIC_UPDATE").is_some() {
        own::update(cluster);
    }
    let mut all = Totals::default();
    for (_, totals) in own::play(cluster) {
        all.add(&totals);
    }
    println!("all: {all}");
    assert_hits(&all, 100);
}

#[test]
#[ignore = "needs files that others have published: make sql-logic DIR=..."]
fn published_files_are_answered_as_postgresql_does() {
    let directory = std::env::var("PONDAGE_LOGIC_DIR").unwrap_or_default();
    assert!(Path::new(&directory).is_dir(), "PONDAGE_LOGIC_DIR={directory}: no directory");
    let part = std::env::var("PONDAGE_LOGIC_PART").unwrap_or_default();
    let one_of = std::env::var("PONDAGE_LOGIC_ONE_OF").ok().filter(|text| !text.is_empty());
    let one_of = one_of.map_or(1, |text| text.parse().expect("PONDAGE_LOGIC_ONE_OF: a number"));
    directory::play(cluster(), Path::new(&directory), &part, one_of);
}
