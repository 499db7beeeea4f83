//! `[cache]`: what pools come to, what is refused, and as whom changes are followed.

use std::time::Duration;

use wire::pg::auth::Secret;

use super::super::{CacheMode, Config, Freshness};
use super::Directory;

fn valid(text: &str) -> Config {
    Config::from_text(text).unwrap_or_else(|report| panic!("refused:\n{text}\n{report}"))
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let report = Config::from_text(text).err().unwrap_or_else(|| panic!("not refused:\n{text}"));
    let report = report.to_string();
    for part in expected {
        assert!(report.contains(part), "{part}:\n{report}");
    }
}

/// As who, with which password.
fn login(config: &Config, database: &str) -> (String, Option<Secret>) {
    let pool = config.stream_pool(database).expect("a pool");
    (pool.upstream.user.clone(), pool.upstream.password.clone())
}

fn plain(password: &str) -> Option<Secret> {
    Some(Secret::Plain(password.to_owned()))
}

#[test]
fn pools_inherit_what_the_section_says_and_the_nearest_word_wins() {
    let config = valid("[databases.app]\n");
    let pool = config.pool("app", "a").expect("known");
    let (lag, day) = (Duration::from_secs(5), Duration::from_secs(86_400));
    let said = (pool.cache, pool.cache_freshness, pool.cache_max_lag);
    assert_eq!(said, (CacheMode::Off, Freshness::Session, lag));
    let config = valid(
        "[cache]\nmode = \"auto\"\nfreshness = \"strict\"\nuser = \"follower\"\n\
         [databases.app]\ncache = \"manual\"\n[databases.web]\n\
         [databases.app.users.report]\ncache_freshness = \"bounded\"\ncache_max_lag = \"1d\"\n\
         [users.plain]\ncache = \"off\"\n",
    );
    let said = |database, user| {
        let pool = config.pool(database, user).expect("known");
        (pool.cache, pool.cache_freshness, pool.cache_max_lag)
    };
    assert_eq!(said("app", "a"), (CacheMode::Manual, Freshness::Strict, lag));
    assert_eq!(said("web", "a"), (CacheMode::Auto, Freshness::Strict, lag));
    assert_eq!(said("app", "report"), (CacheMode::Manual, Freshness::Bounded, day));
    assert_eq!(said("app", "plain"), (CacheMode::Off, Freshness::Strict, lag));
}

#[test]
fn words_and_sizes_that_are_none_are_refused_with_what_was_expected() {
    let rest = "[databases.app]\nuser = \"u\"\n";
    refused(
        &format!("[cache]\nmode = \"on\"\n{rest}"),
        &["P0105", ":2:8", "`mode` is \"on\"; expected one of off, advise, manual, auto"],
    );
    refused(
        &format!("{rest}cache_freshness = \"fresh\"\n"),
        &["`cache_freshness` is \"fresh\"; expected one of session, strict, bounded"],
    );
    refused(&format!("[cache]\nmax_lag = 5\n{rest}"), &["P0106", "`max_lag` is 5 without a unit"]);
    refused(&format!("[cache]\nmax_lag = 0\n{rest}"), &["P0105", "`max_lag` is 0"]);
    refused(&format!("[cache]\nmemory = \"1KiB\"\n{rest}"), &["P0105", "from 1MiB to 1TiB"]);
    refused(&format!("[cache]\nmod = \"off\"\n{rest}"), &["P0103", "did you mean `mode`?"]);
    refused(&format!("[cach]\n{rest}"), &["P0102", "did you mean `cache`?"]);
    assert_eq!(valid(&format!("[cache]\nwait = 0\n{rest}")).cache.wait, Duration::ZERO);
}

#[test]
fn a_cache_needs_a_user_that_follows_the_changes() {
    let needs = "the cache of database `app` needs a user that follows its changes";
    for asked in [
        "cache.mode = \"manual\"\n[databases.app]\n",
        "pool.cache = \"advise\"\n[databases.app]\n",
        "[databases.app]\ncache = \"auto\"\n",
        "[databases.app.users.a]\ncache = \"auto\"\n",
        "[databases.app]\ncache = \"off\"\n[users.a]\ncache = \"auto\"\n",
    ] {
        refused(asked, &["P0111", needs, "set `user` in `[cache]`, or in the database's section"]);
        valid(&format!("cache.user = \"follower\"\n{asked}"));
    }
    for unasked in [
        "cache.mode = \"manual\"\n[databases.app]\ncache = \"off\"\n",
        "cache.mode = \"manual\"\n[databases.app]\nuser = \"u\"\n",
        "[databases.app.users.a]\ncache = \"off\"\n[users.a]\ncache = \"auto\"\n",
    ] {
        valid(unasked);
    }
}

#[test]
fn the_stream_logs_in_as_its_user_or_as_the_databases() {
    let forced = "[databases.app]\nuser = \"app\"\npassword = \"p\"\n";
    assert_eq!(login(&valid(forced), "app"), ("app".into(), plain("p")));
    let known = format!("cache.user = \"follower\"\n{forced}[users.follower]\npassword = \"f\"\n");
    assert_eq!(login(&valid(&known), "app"), ("follower".into(), plain("f")));
    let own = format!("[cache]\nuser = \"follower\"\npassword = \"own\"\n{forced}");
    assert_eq!(login(&valid(&own), "app"), ("follower".into(), plain("own")));
    assert!(valid("[databases.app]\n").stream_pool("app").is_none());
    assert!(valid(forced).stream_pool("web").is_none());
    refused(
        &format!("[cache]\npassword = \"own\"\n{forced}"),
        &["P0111", "`password` needs `user`"],
    );
}

#[test]
fn its_password_may_be_in_a_file() {
    let directory = Directory::new();
    let file = directory.write("password", "own\n").display().to_string();
    let config = valid(&format!(
        "[cache]\nuser = \"follower\"\npassword_file = \"{file}\"\n[databases.app]\n"
    ));
    assert_eq!(login(&config, "app"), ("follower".into(), plain("own")));
}

#[test]
fn a_database_names_statements_whose_results_are_cached() {
    let config = valid(
        "[databases.app]\ncaches = [\n  \"select a from t where id = 1\",\n  \
         \"by_owner with (freshness = strict) from select a from t where owner = $1\",\n]\n",
    );
    let caches = &config.databases["app"].caches;
    assert_eq!(caches[0].name, None);
    assert_eq!(caches[0].query, "select a from t where id = 1");
    assert_eq!(caches[1].name.as_deref(), Some("by_owner"));
    assert_eq!(caches[1].freshness, Some(Freshness::Strict));
    refused(
        "[databases.app]\ncaches = [\"delete from t\"]\n",
        &["P0105", ":2:10", "`caches` has \"delete from t\": only a SELECT has results"],
    );
    refused("[databases.app]\ncaches = 5\n", &["P0104", "expected a list of statements"]);
    refused(
        "[databases.app]\ncaches = [\"select a where b = 1\", \"select a where b = 2\"]\n",
        &["P0110", "`caches` has \"select a where b = 2\" twice"],
    );
    let variable = [("PONDAGE_DATABASES__APP__CACHES", "select a, b from t; b from select 2;")];
    let variables = super::environment(&variable);
    let config = Config::from_text_and("[databases.app]\n", variables, Default::default());
    assert_eq!(config.expect("valid").databases["app"].caches.len(), 2);
}

#[test]
fn a_database_names_tables_that_are_mirrored() {
    let config =
        valid("[databases.app]\nmirrors = [\"orders\", \"app.items columns (id, price)\"]\n");
    let mirrors = &config.databases["app"].mirrors;
    assert_eq!((mirrors[0].table.name.as_str(), &mirrors[0].columns), ("orders", &None));
    assert_eq!(mirrors[1].table.to_string(), "app.items");
    refused(
        "[databases.app]\nmirrors = [\"orders columns\"]\n",
        &["P0105", ":2:11", "COLUMNS is followed by names in parentheses"],
    );
    refused("[databases.app]\nmirrors = 5\n", &["P0104", "expected a list of tables"]);
    refused(
        "[databases.app]\nmirrors = [\"t\", \"t columns (a)\"]\n",
        &["P0110", "`mirrors` has t twice"],
    );
}
