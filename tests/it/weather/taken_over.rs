//! Options that PgBouncer's operators know.

use std::time::Duration;

use wire::pg::frontend;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

/// Long enough for a wrong message to arrive.
const QUIET: Duration = Duration::from_millis(200);

fn started(config: impl FnOnce(Config) -> Config) -> (Database, Gateway) {
    let database = cluster().database();
    let config = config(Config::of(&database).set("pool.coalesce", "off"));
    (database, Gateway::start(config))
}

fn ask(client: &mut WireClient, sql: &str) {
    client.put(|out| frontend::put_query(out, sql));
}

fn login(gateway: &Gateway, database: &Database, more: &[(&str, &str)]) -> WireClient {
    let mut parameters = vec![("user", APP), ("database", database.name.as_str())];
    parameters.extend(more);
    WireClient::login_with(&gateway.address(), APP_PASSWORD, &parameters)
}

#[test]
fn who_waits_for_long_is_told_each_time() {
    let (database, gateway) =
        started(|config| config.set("pool.pool_size", 1).set("pool.wait_notify", "100ms"));
    let mut holder = gateway.client(&database);
    let mut waiter = gateway.client(&database);
    assert!(waiter.query("select 1").iter().all(|message| message.tag != b'N'));
    for _ in 0..2 {
        holder.run("begin; select 1");
        ask(&mut waiter, "select 'served'");
        let notice = waiter.expect(b'N').complaint();
        assert_eq!(notice.severity, "NOTICE");
        let words = "No server connection available in postgres backend, client being queued";
        assert_eq!(notice.message, words);
        // Once for each wait.
        waiter.expect_silence(QUIET * 2);
        holder.run("commit");
        assert_eq!(waiter.until_ready()[1].values(), [Some("served".to_owned())]);
    }
}

#[test]
fn the_simple_protocol_can_be_refused() {
    let (database, gateway) = started(|config| config.set("pool.refuse_simple", true));
    let mut client = gateway.client(&database);
    let answer = client.extended("select 1", &[]);
    assert!(answer.iter().any(|message| message.tag == b'D'));
    ask(&mut client, "select 1");
    let last = client.until_closed().pop().expect("a reason").complaint();
    assert_eq!((last.severity.as_str(), last.code.as_str()), ("FATAL", "08P01"));
    assert!(last.hint.contains("[P0325]"), "{last:?}");
    // The console speaks it all the same.
    assert!(!gateway.show("pools").is_empty());
}

#[test]
fn start_up_parameters_can_be_ignored() {
    let names = ["extra_float_digits", "nonsense", "application_name", "options"];
    let (database, gateway) = started(|config| config.set("pool.ignore_startup_parameters", names));
    let more = [
        ("Extra_Float_Digits", "3"),
        ("nonsense", "1"),
        ("work_mem", "1234kB"),
        ("application_name", "kept"),
        ("options", "-c search_path=nowhere -c timezone=Europe/Lisbon -c more_nonsense=2"),
    ];
    let mut client = login(&gateway, &database, &more);
    assert_eq!(client.one("show extra_float_digits"), "1");
    assert_eq!(client.one("show search_path"), "\"$user\", public");
    // What is not named is applied; what PgBouncer keeps for each client, too.
    assert_eq!(client.one("show work_mem"), "1234kB");
    assert_eq!(client.one("show application_name"), "kept");
    assert_eq!(client.one("show timezone"), "Europe/Lisbon");
}

#[test]
fn a_session_that_outlives_reconnect_can_be_closed_at_the_end_of_its_transaction() {
    for fast in [false, true] {
        let (database, gateway) = started(|config| {
            config.set("pool.mode", "session").set("pool.server_fast_close", fast)
        });
        let mut idle = gateway.client(&database);
        let mut busy = gateway.client(&database);
        idle.run("select 1");
        busy.run("begin; select 1");
        let mut console = gateway.console();
        console.run(&format!("reconnect {}", database.name));
        if !fast {
            idle.expect_silence(QUIET);
            idle.run("select 1");
            busy.run("commit");
            continue;
        }
        for client in [&mut idle, &mut busy] {
            if client.status == b'T' {
                client.expect_silence(QUIET);
                client.run("commit");
            }
            let last = client.until_closed().pop().expect("a reason").complaint();
            assert_eq!((last.code.as_str(), last.severity.as_str()), ("57P01", "FATAL"));
            assert_eq!(last.message, "database configuration changed");
            assert!(last.hint.contains("[P0326]"), "{last:?}");
        }
        console.run("wait_close");
        let mut next = gateway.client(&database);
        next.run("select 1");
        // A pause is no such change.
        ask(&mut console, "pause");
        next.expect_silence(QUIET);
        assert_eq!(next.one("select 'stays'"), "stays");
        next.terminate();
        console.until_ready();
    }
}

#[test]
fn servers_may_take_turns() {
    for (mode, turns) in
        [("transaction", false), ("transaction", true), ("session", false), ("session", true)]
    {
        let (database, gateway) = started(|config| {
            config
                .set("pool.pool_size", 2)
                .set("pool.server_round_robin", turns)
                .set("pool.mode", mode)
        });
        let hold = |client: &mut WireClient| {
            client.run("begin");
            client.one("select pg_backend_pid()")
        };
        let mut clients = [gateway.client(&database), gateway.client(&database)];
        let pids = clients.each_mut().map(hold);
        assert_ne!(pids[0], pids[1]);
        for client in clients {
            client.terminate();
        }
        wait::until("two idle servers", || {
            let pools = gateway.show("pools");
            pools.iter().any(|row| row["database"] == database.name && row["sv_idle"] == "2")
        });
        let mut seen = Vec::new();
        for _ in 0..4 {
            let mut client = gateway.client(&database);
            seen.push(client.one("select pg_backend_pid()"));
            client.terminate();
            wait::until("it is given back", || {
                let pools = gateway.show("pools");
                pools.iter().any(|row| row["database"] == database.name && row["sv_idle"] == "2")
            });
        }
        let alternate = seen[0] != seen[1] && seen[0] == seen[2] && seen[1] == seen[3];
        let same = seen.iter().all(|pid| *pid == seen[0]);
        assert_eq!((alternate, same), (turns, !turns), "{mode}: {seen:?}");
    }
}

#[test]
fn replication_ends_with_reconnect_and_not_with_a_timeout() {
    let (database, gateway) = started(|config| {
        config.set("pool.query_timeout", "300ms").set("pool.idle_transaction_timeout", "300ms")
    });
    let mut client = login(&gateway, &database, &[("replication", "database")]);
    assert_eq!(client.one("select 'slow' from pg_sleep(1)"), "slow");
    let mut console = gateway.console();
    console.run("pause");
    client.run("select 1");
    console.run("resume");
    console.run(&format!("reconnect {}", database.name));
    let last = client.until_closed().pop().expect("a reason").complaint();
    assert_eq!(last.message, "database configuration changed");
    console.run("wait_close");
}

#[test]
fn the_averages_can_be_logged() {
    let (database, gateway) = started(|config| {
        config.set("telemetry.log_stats", true).set("telemetry.stats_period", "1s")
    });
    gateway.client(&database).run("select 1");
    wait::until("a line of averages", || gateway.said().contains("event=stats"));
}
