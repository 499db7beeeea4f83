//! `[redis]` and its door: what is refused, and what its connections log in with.

use std::time::Duration;

use wire::pg::auth::Secret;

use super::super::Config;

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
fn login(config: &Config) -> (String, Option<Secret>) {
    let pool = config.redis_pool().expect("a pool");
    (pool.upstream.user.clone(), pool.upstream.password.clone())
}

fn plain(password: &str) -> Option<Secret> {
    Some(Secret::Plain(password.to_owned()))
}

#[test]
fn the_door_is_off_unless_asked_for_and_may_have_several_addresses() {
    assert!(valid("databases.app.user = \"u\"\n").redis_pool().is_none());
    let off = valid("listen.redis = \"off\"\ndatabases.app.user = \"u\"\n");
    assert!(off.listen.redis.is_empty());
    let one = valid("listen.redis = \"localhost:6379\"\ndatabases.app.user = \"u\"\n");
    assert_eq!(one.listen.redis, [([127, 0, 0, 1], 6379).into()]);
    let two = "listen.redis = [\"127.0.0.1:6379\", \"[::1]:6379\"]\ndatabases.app.user = \"u\"\n";
    assert_eq!(valid(two).listen.redis.len(), 2);
}

#[test]
fn the_only_database_by_name_has_the_data() {
    let door = "listen.redis = \"127.0.0.1:6379\"\n";
    let only = valid(&format!("{door}[databases.app]\nuser = \"u\"\n[databases.\"*\"]\n"));
    assert_eq!(only.redis.database.as_deref(), Some("app"));
    let which = "`listen.redis` needs `redis.database`: which database has the data?";
    refused(&format!("{door}[databases.a]\n[databases.b]\n"), &["P0111", ":1:16", which]);
    refused(&format!("{door}[databases.\"*\"]\nuser = \"u\"\n"), &["P0111", which]);
    let absent = format!("{door}databases.app.user = \"u\"\n[redis]\ndatabase = \"ap\"\n");
    refused(&absent, &["P0105", ":4:12", "`database` is \"ap\", which has no section"]);
    let any = valid(&format!(
        "{door}redis.database = \"new\"\n[databases.\"*\"]\nuser = \"u\"\npassword = \"p\"\n"
    ));
    let pool = any.redis_pool().expect("a pool");
    assert_eq!((pool.upstream.database.as_str(), login(&any)), ("new", ("u".into(), plain("p"))));
}

#[test]
fn its_connections_log_in_as_its_user_or_as_the_databases() {
    let door = "listen.redis = \"127.0.0.1:6379\"\n";
    refused(
        &format!("{door}[databases.app]\n"),
        &[
            "P0111",
            ":1:16",
            "`listen.redis` needs a user for its connections to the server",
            "set `user` in `[redis]`, or in the database's section",
        ],
    );
    let forced =
        "[databases.app]\nuser = \"app\"\npassword = \"p\"\n[users.kv]\npassword = \"k\"\n";
    assert_eq!(login(&valid(&format!("{door}{forced}"))), ("app".into(), plain("p")));
    let own = valid(&format!("{door}redis.user = \"kv\"\n{forced}"));
    assert_eq!(login(&own), ("kv".into(), plain("k")));
    let free = "redis.user = \"kv\"\n[databases.app]\npassword = \"p\"\n";
    assert_eq!(login(&valid(&format!("{door}{free}"))), ("kv".into(), plain("p")));
}

#[test]
fn limits_have_units_and_bounds() {
    let redis = |line: &str| format!("[databases.app]\n[redis]\n{line}\n");
    let config = valid(&redis("memory = \"2GiB\"\nslowlog_threshold = 0\nasync_databases = 3"));
    assert_eq!((config.redis.memory, config.redis.async_databases), (2 << 30, vec![3]));
    assert_eq!(config.redis.slowlog_threshold, Duration::ZERO);
    let units = "units of sizes are B, KiB, MiB, GiB and TiB";
    refused(&redis("memory = 5"), &["P0106", ":3:10", "`memory` is 5 without a unit", units]);
    refused(&redis("memory = \"5MB\""), &["P0106", "`memory` is \"5MB\", whose unit", units]);
    refused(&redis("memory = \"1KiB\""), &["P0105", "from 1MiB to 1TiB"]);
    refused(&redis("memory = true"), &["P0104", "`memory` is true; expected a size"]);
    refused(&redis("value_limit = \"513MiB\""), &["P0105", "from 1KiB to 512MiB"]);
    refused(&redis("databases = 0"), &["P0105", "`databases` is 0"]);
    refused(
        &redis("notify_keyspace_events = \"KQ\""),
        &["P0105", "letters out of KEg$lshzxetdmnA"],
    );
    refused(
        &redis("journal_databases = [1, 16]"),
        &["P0110", ":3:21", "`journal_databases` has 16, but databases end with 15"],
    );
    refused(
        &redis("async_databases = [\"a\"]"),
        &["P0104", "a list of whole numbers from 0 to 32767"],
    );
    refused(&redis("databses = 3"), &["P0103", "did you mean `databases`?"]);
}

#[test]
fn no_other_door_has_its_address_and_trust_stays_on_this_machine() {
    let rest = "databases.app.user = \"u\"\n";
    refused(
        &format!("listen.redis = \"127.0.0.1:6432\"\n{rest}"),
        &["P0114", "`redis` and `postgres` both listen on 127.0.0.1:6432"],
    );
    refused(
        &format!("listen.redis = \"127.0.0.1:6433\"\n{rest}"),
        &["P0114", "`redis` and `http` both listen on 127.0.0.1:6433"],
    );
    let twice = format!("listen.redis = [\"127.0.0.1:1\", \"127.0.0.1:1\"]\n{rest}");
    refused(&twice, &["P0114", "`redis` has \"127.0.0.1:1\" twice"]);
    refused(&format!("listen.redis = []\n{rest}"), &["P0105", "a list of addresses"]);
    let trust = format!("listen.redis = \"0.0.0.0:6379\"\nauth.method = \"trust\"\n{rest}");
    let notice = "auth.method is trust: whoever reaches 0.0.0.0:6379 may come in";
    assert_eq!(valid(&trust).notices, [notice]);
}
