//! What an operator sees of the Redis door: console, metrics, log, and what is said when its data
//! can't be used.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use super::open;
use crate::kit::place::free_port;
use crate::kit::{cluster, wait, Gateway, RedisClient};

/// SHOW REDIS.
fn redis(gateway: &Gateway) -> BTreeMap<String, String> {
    let rows = gateway.show("redis").into_iter();
    rows.map(|row| (row["key"].clone(), row["value"].clone())).collect()
}

/// What is answered to a command, as one line.
fn answer(gateway: &Gateway, command: &str) -> String {
    let mut socket = RedisClient::socket(gateway);
    socket.write_all(command.as_bytes()).expect("written");
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).expect("a line");
    line.trim_end().to_owned()
}

fn metrics(gateway: &Gateway) -> String {
    page(gateway, "/metrics")
}

fn page(gateway: &Gateway, path: &str) -> String {
    gateway.page(path).expect("a page")
}

/// SHOW REDIS has this reason, and so has the log.
#[track_caller]
fn is_away(gateway: &Gateway, why: &str) {
    wait::until(why, || {
        let figures = redis(gateway);
        figures["state"] == "away" && figures["why"].contains(why)
    });
    wait::until("the log to say so", || {
        let said = gateway.said().text().replace("\\\"", "\"");
        said.lines().any(|line| line.contains("event=redis_away") && line.contains(why))
    });
}

#[test]
fn console_and_metrics_tell_what_redis_clients_do() {
    let database = cluster().database();
    let gateway = Gateway::start(open(&database));
    // What comes before that runs twice, and is counted twice.
    wait::until("the tables", || redis(&gateway)["state"] == "ready");
    let mut client = RedisClient::connect(&gateway);
    client.says(b"SET a 1\r\nCLIENT SETNAME me\r\nLPUSH a x\r\n", b"+OK\r\n+OK\r\n-WRONGTYPE");
    let mut popper = RedisClient::connect(&gateway);
    popper.send(b"BLPOP q 0\r\n");
    wait::until("a blocked client", || redis(&gateway)["blocked_clients"] == "1");

    let figures = redis(&gateway);
    assert_eq!((&*figures["state"], &*figures["why"]), ("ready", ""));
    assert_eq!((&*figures["database"], &*figures["user"]), (&*database.name, "app"));
    assert_eq!((&*figures["clients"], &*figures["commits"]), ("2", "1"));
    assert_eq!((&*figures["rows"], &*figures["errors"]), ("1", "1"));

    let commands = gateway.show("redis commands");
    let push = commands.iter().find(|row| row["command"] == "lpush").expect("it was given");
    assert_eq!((&*push["calls"], &*push["failed"]), ("1", "1"));
    let clients = gateway.show("redis_clients");
    let states: Vec<&str> = clients.iter().map(|row| &*row["state"]).collect();
    assert_eq!(states, ["idle", "blocked"]);
    assert_eq!((&*clients[0]["name"], &*clients[0]["last_command"]), ("me", "lpush"));
    client.hears(b" Operation against a key holding the wrong kind of value\r\n");
    client.says(&b"GET a\r\n".repeat(1_000), &b"$1\r\n1\r\n".repeat(1_000));
    let keys = gateway.show("redis keys");
    assert_eq!((&*keys[0]["db"], &*keys[0]["key"]), ("0", "a"));

    assert!(page(&gateway, "/readyz").starts_with("HTTP/1.1 200 "));
    let page = metrics(&gateway);
    for sample in [
        "pondage_redis_up 1",
        "pondage_redis_clients 2",
        "pondage_redis_blocked_clients 1",
        "pondage_redis_commands_total{command=\"get\"} 1000",
        "pondage_redis_command_errors_total{command=\"lpush\",outcome=\"failed\"} 1",
        "pondage_redis_batch_rows_bucket{le=\"1\"} 1",
        "pondage_redis_batch_rows_sum 1",
        "pondage_redis_commit_seconds_count 1",
    ] {
        assert!(page.lines().any(|line| line == sample), "{sample}:\n{page}");
    }
}

#[test]
fn a_journal_that_is_not_folded_is_told() {
    let database = cluster().database();
    let gateway = Gateway::start(open(&database).set("redis.journal_databases", [1]));
    let mut client = RedisClient::connect(&gateway);
    client.says(b"SELECT 1\r\nSET a 1\r\n", b"+OK\r\n+OK\r\n");
    wait::until("a fold", || redis(&gateway)["folds"] == "1");
    let figures = redis(&gateway);
    assert_eq!((&*figures["journal_backlog_bytes"], &*figures["keys_per_fold"]), ("0", "1"));
    assert_eq!((&*figures["fold_error"], &*figures["journal_limit"]), ("", "268435456"));
    assert!(metrics(&gateway).contains("\npondage_redis_fold_failing 0\n"));

    database.run("alter table redis.kv add constraint no check (db <> 1) not valid");
    client.says(b"SET a 2\r\n", b"+OK\r\n");
    wait::until("a fold that fails", || redis(&gateway)["fold_error"].contains("\"no\""));
    let figures = redis(&gateway);
    assert_ne!((&*figures["journal_backlog_bytes"], &*figures["fold_failures"]), ("0", "0"));
    let page = metrics(&gateway);
    for (name, value) in [
        ("pondage_redis_folds_total", 1),
        ("pondage_redis_folded_keys_total", 1),
        ("pondage_redis_fold_failing", 1),
        ("pondage_redis_journal_limit_bytes", 256 << 20),
    ] {
        assert!(page.contains(&format!("\n{name} {value}\n")), "{name}:\n{page}");
    }
    assert!(!page.contains("\npondage_redis_journal_backlog_bytes 0\n"), "{page}");
    database.run("alter table redis.kv drop constraint no");
    wait::until("a fold that does not", || redis(&gateway)["fold_error"].is_empty());
}

#[test]
fn a_gateway_without_the_door_says_that_it_is_off() {
    let gateway = Gateway::of(&cluster().database());
    assert_eq!(redis(&gateway)["state"], "off");
    assert!(gateway.show("redis keys").is_empty());
    assert!(!metrics(&gateway).contains("pondage_redis_"));
}

#[test]
fn commands_fail_after_five_seconds_when_the_database_is_down() {
    let database = cluster().database();
    let nobody = i64::from(free_port());
    let config = open(&database).set(&format!("databases.{}.port", database.name), nobody);
    let gateway = Gateway::start(config);
    let began = Instant::now();
    let said = answer(&gateway, "SET a 1\r\n");
    assert!(said.starts_with("-ERR PostgreSQL can't be reached: "), "{said}");
    assert!(said.contains("Connection refused"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    // From then on at once.
    let again = Instant::now();
    assert_eq!(answer(&gateway, "GET a\r\n"), said);
    assert!(again.elapsed() < Duration::from_secs(3), "{:?}", again.elapsed());
    assert_eq!(answer(&gateway, "PING\r\n"), "+PONG");
    is_away(&gateway, "Connection refused");
    assert!(metrics(&gateway).contains("pondage_redis_up 0"));
    let ready = page(&gateway, "/readyz");
    assert!(ready.starts_with("HTTP/1.1 503 ") && ready.contains("Redis door: "), "{ready}");
}

#[test]
fn a_wrong_password_of_the_doors_own_role_is_told_to_log_and_console() {
    let config = open(&cluster().database())
        .set("redis.user", "postgres")
        .set("users.postgres.password", "not this one");
    let gateway = Gateway::start(config);
    is_away(&gateway, "password authentication failed for user \"postgres\"");
}

#[test]
fn a_role_that_may_not_make_the_schema_is_told_which_grant_it_needs() {
    let database = cluster().database();
    let role = format!("kv of {}", database.name);
    database.run(&format!("create role \"{role}\" login password 'kv'"));
    let config = open(&database)
        .set("redis.user", role.as_str())
        .set(&format!("users.\"{role}\".password"), "kv");
    let gateway = Gateway::start(config);
    let grant = format!("GRANT CREATE ON DATABASE \"{}\" TO \"{role}\"", database.name);
    is_away(&gateway, &grant);
    // What is said there helps.
    database.run(&grant);
    assert_eq!(answer(&gateway, "SET a 1\r\n"), "+OK");
    assert_eq!(redis(&gateway)["state"], "ready");
    assert!(gateway.said().contains("event=redis_ready"), "{}", gateway.said().text());
    drop(gateway);
    database.run(&format!("drop owned by \"{role}\" cascade; drop role \"{role}\""));
}

#[test]
fn a_second_gateway_on_the_same_tables_waits_for_the_first_to_leave() {
    let database = cluster().database();
    let first = Gateway::start(open(&database));
    assert_eq!(answer(&first, "SET a 1\r\n"), "+OK");
    let second = Gateway::start(open(&database));
    is_away(&second, "another gateway serves these tables");
    assert_eq!(answer(&first, "SET a 2\r\n"), "+OK");
    drop(first);
    wait::until("the second to take over", || redis(&second)["state"] == "ready");
    assert_eq!(answer(&second, "GETSET a 3\r\n"), "$1");
}

#[test]
fn mistakes_in_its_section_are_told_with_line_and_column() {
    let database = cluster().database();
    let ended = Gateway::refused(open(&database).set("redis.databse", "app"));
    assert_eq!(ended.status.code(), Some(78));
    for part in ["P0103", "unknown key `databse`", "did you mean `database`?"] {
        assert!(ended.stderr.contains(part), "{part}:\n{}", ended.stderr);
    }
    let ended = Gateway::refused(open(&database).set("redis.database", "absent"));
    assert_eq!(ended.status.code(), Some(78));
    let line = ended.stderr.lines().find(|line| line.contains(".toml:")).expect("a place");
    assert_eq!(line.split(':').count(), 3, "{line}");
    for part in ["P0105", "`database` is \"absent\", which has no section"] {
        assert!(ended.stderr.contains(part), "{part}:\n{}", ended.stderr);
    }
}
