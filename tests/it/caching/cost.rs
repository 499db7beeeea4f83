//! What a pool without a cache pays for what a cache has to know: nothing.

use std::fs;

use super::place::{Cached, Place};
use crate::kit::wait;

/// So often `what` was run by those who ask the catalogues about statements.
fn asked(place: &Place, what: &str) -> usize {
    let log = fs::read_to_string(place.cluster().directory.join("log")).expect("a log");
    let of_it = |line: &&str| line.starts_with("[pondage] ") && line.contains(what);
    log.lines().filter(of_it).count()
}

#[test]
fn a_pool_without_a_cache_asks_nothing_for_one() {
    let place = Place::start_alone_with(
        &["log_statement = 'all'", "log_line_prefix = '[%a] '"],
        "create table t(id int primary key, n int); insert into t values (1, 10);
         grant select on t to plain",
        |config| config.set("users.plain.cache", "off"),
    );
    let (before, facts) =
        (asked(&place, "execute relations"), asked(&place, "execute table_columns"));
    assert!(facts > 0, "the pool that caches has asked");
    let mut plain = place.plain();
    let read = "select n from t where id = 1";
    wait::until("a verdict", || {
        plain.rows(read);
        asked(&place, "execute relations") > before
    });
    plain.never_hits(read);
    assert_eq!(asked(&place, "execute table_columns"), facts);
    // One that is to cache from now on has to know, also of what it has run before.
    let text = fs::read_to_string(&place.gateway.file).expect("a configuration");
    let text = text.replace("cache = \"off\"", "cache = \"auto\"");
    fs::write(&place.gateway.file, text).expect("a file");
    place.gateway.console().run("reload");
    let mut plain = place.plain();
    plain.warm(read);
    assert!(asked(&place, "execute table_columns") > facts);
}
