//! The operator's commands, with real clients.

use std::time::Duration;

use rustix::process::Signal;
use wire::pg::backend::tag;
use wire::pg::frontend;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

/// Long enough for a wrong message to arrive.
const QUIET: Duration = Duration::from_millis(200);

fn started() -> (Database, Gateway) {
    let database = cluster().database();
    let gateway = Gateway::start(Config::of(&database).set("pool.pool_size", 2));
    (database, gateway)
}

fn ask(client: &mut WireClient, sql: &str) {
    client.put(|out| frontend::put_query(out, sql));
}

#[track_caller]
fn answered(client: &mut WireClient, value: &str) {
    assert_eq!(client.until_ready()[1].values(), [Some(value.to_owned())]);
}

#[test]
fn pause_waits_for_transactions_and_holds_new_ones_until_resume() {
    for name in [false, true] {
        let (database, gateway) = started();
        let suffix = if name { format!(" {}", database.name) } else { String::new() };
        let (mut busy, mut other) = (gateway.client(&database), gateway.client(&database));
        busy.run("begin; select 1");
        let mut console = gateway.console();
        ask(&mut console, &format!("pause{suffix}"));
        console.expect_silence(QUIET);
        ask(&mut other, "select 'after'");
        other.expect_silence(QUIET);
        assert_eq!(busy.one("select 'goes on'"), "goes on");
        busy.run("commit");
        assert_eq!(console.until_ready()[0].command_tag(), "PAUSE");
        assert_eq!(cluster().backends(&database), 0, "its servers are closed");
        other.expect_silence(QUIET);
        // New clients get in, and wait.
        let rows = gateway.show("databases");
        let row = rows.iter().find(|row| row["name"] == database.name).expect("the database");
        assert_eq!(row["paused"], "1");
        console.run(&format!("resume{suffix}"));
        answered(&mut other, "after");
    }
}

#[test]
fn reconnect_closes_servers_as_they_are_released_and_wait_close_waits_for_it() {
    let (database, gateway) = started();
    let mut busy = gateway.client(&database);
    let mut idle = gateway.client(&database);
    busy.run("begin; select 1");
    let old = busy.one("select pg_backend_pid()");
    idle.run("select 1");
    let mut console = gateway.console();
    console.run(&format!("reconnect {}", database.name));
    wait::until("the idle server to close", || cluster().backends(&database) == 1);
    let mut waiter = gateway.console();
    ask(&mut waiter, &format!("wait_close {}", database.name));
    waiter.expect_silence(QUIET);
    assert_eq!(busy.one("select pg_backend_pid()"), old, "not within a transaction");
    busy.run("commit");
    waiter.until_ready();
    assert_ne!(busy.one("select pg_backend_pid()"), old);
}

#[test]
fn disable_refuses_new_clients_and_enable_lets_them_in() {
    let (database, gateway) = started();
    let mut inside = gateway.client(&database);
    inside.run("select 1");
    let mut console = gateway.console();
    console.run(&format!("disable {}", database.name));
    let parameters = [("user", APP), ("database", database.name.as_str())];
    let refused = WireClient::try_login(&gateway.address(), APP_PASSWORD, &parameters).err();
    let refused = refused.expect("it is disabled");
    assert_eq!(refused.severity, "FATAL");
    assert!(refused.message.contains("disabled"), "{refused:?}");
    assert_eq!(inside.one("select 'stays'"), "stays");
    console.run(&format!("enable {}", database.name));
    gateway.client(&database).run("select 1");
}

#[test]
fn kill_drops_everything_of_a_database_at_once_and_resume_brings_it_back() {
    let (database, gateway) = started();
    let mut busy = gateway.client(&database);
    let mut idle = gateway.client(&database);
    idle.run("select 1");
    ask(&mut busy, "select pg_sleep(60)");
    wait::until("the query to run", || {
        let row = gateway.show("pools");
        row.iter().any(|row| row["database"] == database.name && row["cl_active"] != "0")
    });
    let mut console = gateway.console();
    console.run(&format!("kill {}", database.name));
    for client in [&mut busy, &mut idle] {
        let last = client.until_closed();
        assert_eq!(last.last().expect("a reason").complaint().severity, "FATAL");
    }
    wait::until("its servers to be gone", || cluster().backends(&database) == 0);
    console.run(&format!("resume {}", database.name));
    gateway.client(&database).run("select 1");
}

#[test]
fn kill_client_ends_one_client_and_gives_its_server_back() {
    let database = cluster().database();
    let gateway = Gateway::start(Config::of(&database).set("pool.pool_size", 1));
    let mut victim = gateway.client(&database);
    victim.run("begin; select 1");
    let id = |state: &str| {
        let clients = gateway.show("clients");
        let mut mine = clients.iter().filter(|row| row["database"] == database.name);
        mine.find(|row| row["state"] == state).map(|row| row["id"].clone())
    };
    let active = wait::for_some("the victim", || id("active"));
    let mut other = gateway.client(&database);
    ask(&mut other, "select 'served'");
    other.expect_silence(QUIET);
    gateway.console().run(&format!("kill_client {active}"));
    let last = victim.until_closed();
    assert_eq!(last.last().expect("a reason").complaint().severity, "FATAL");
    answered(&mut other, "served");
    let complaint = gateway.console().error("kill_client 999999");
    assert!(!complaint.message.is_empty());
}

#[test]
fn events_are_counted_and_advice_waits_for_traffic() {
    let (database, gateway) = started();
    for _ in 0..2 {
        gateway.console().run("reload");
        let parameters = [("user", APP), ("database", database.name.as_str())];
        let refused = WireClient::try_login(&gateway.address(), "wrong", &parameters);
        assert!(refused.is_err());
    }
    let events = gateway.show("events");
    let of = |name: &str| events.iter().find(|row| row["event"] == name);
    let reload = of("reload").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!((reload["count"].as_str(), reload["level"].as_str()), ("2", "info"));
    let refused = of("client_refused").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!((refused["count"].as_str(), refused["sqlstate"].as_str()), ("2", "28P01"));
    assert!(refused["first"] <= refused["last"]);
    let told: String = events.iter().flat_map(|row| row.values()).cloned().collect();
    assert!(!told.contains("wrong"), "{told}");
    let advice = gateway.show("advice");
    assert_eq!(advice.len(), 1);
    assert!(advice[0]["basis"].ends_with(" s of 120 s have passed"), "{advice:?}");
}

#[test]
fn show_tells_what_there_is() {
    let (database, gateway) = started();
    let parameters =
        [("user", APP), ("database", database.name.as_str()), ("application_name", "shown")];
    let mut client = WireClient::login_with(&gateway.address(), APP_PASSWORD, &parameters);
    client.run("begin; select 1");
    for what in [
        "pools",
        "clients",
        "servers",
        "stats",
        "stats_totals",
        "stats_averages",
        "totals",
        "databases",
        "users",
        "lists",
        "config",
        "sockets",
        "active_sockets",
        "mem",
        "version",
        "state",
        "help",
        "dns_hosts",
        "dns_zones",
        "fds",
    ] {
        // FDS, DNS_HOSTS and DNS_ZONES may not exist; the console must live on.
        let replies = gateway.console().query(&format!("show {what}"));
        assert_eq!(replies.last().expect("an answer").tag, tag::READY_FOR_QUERY, "{what}");
    }
    let mine = |what: &str, column: &str| {
        let rows = gateway.show(what);
        let found = rows.iter().find(|row| row[column] == database.name).cloned();
        found.unwrap_or_else(|| panic!("{what}: {rows:?}"))
    };
    let pool = mine("pools", "database");
    assert_eq!((pool["cl_active"].as_str(), pool["sv_active"].as_str()), ("1", "1"));
    let seen = mine("clients", "database");
    assert_eq!((seen["state"].as_str(), seen["application_name"].as_str()), ("active", "shown"));
    let server = mine("servers", "database");
    assert_eq!(server["state"], "active");
    assert_eq!(server["remote_pid"], client.one("select pg_backend_pid()"));
    let lists = gateway.show("lists");
    let count =
        |list: &str| lists.iter().find(|row| row["list"] == list).map(|row| row["items"].clone());
    assert_eq!(count("used_servers").as_deref(), Some("1"));
    client.run("commit");
    assert_eq!(mine("pools", "database")["sv_idle"], "1");
    let stats = mine("stats", "database");
    let number = |column: &str| stats[column].parse::<u64>().expect("a number");
    assert!(number("total_query_count") >= 3 && number("total_xact_count") >= 1, "{stats:?}");
    assert!(number("total_received") > 0 && number("total_sent") > 0, "{stats:?}");
}

#[test]
fn shutdown_in_its_forms() {
    for (command, in_transaction) in [
        ("shutdown wait_for_clients", true),
        ("shutdown wait_for_servers", true),
        ("shutdown", false),
        ("shutdown immediate", false),
    ] {
        let database = cluster().database();
        let mut gateway = Gateway::start(Config::of(&database));
        let mut client = gateway.client(&database);
        client.run("begin; select 1");
        let mut console = gateway.console();
        let mut late = WireClient::connect(&gateway.address());
        ask(&mut console, command);
        if in_transaction {
            // The transaction may end.
            assert_eq!(client.one("select 'goes on'"), "goes on", "{command}");
            wait::until("the doors to be closed", || {
                std::net::TcpStream::connect(("127.0.0.1", gateway.port)).is_err()
            });
            // Who was inside the door already is told why he can't come in.
            let parameters = [("user", APP), ("database", database.name.as_str())];
            if command.ends_with("clients") {
                late.put(|out| wire::pg::startup::put_startup(out, 0, &parameters));
            }
            let refused = late.until_closed();
            assert_eq!(refused[0].complaint().code, "57P03", "{command}");
            client.run("commit");
            if command.ends_with("clients") {
                assert_eq!(client.one("select 'still served'"), "still served");
                client.terminate();
            } else {
                let last = client.until_closed();
                assert_eq!(last.last().expect("a reason").complaint().code, "57P01");
            }
            drop(console);
        } else {
            client.until_closed();
        }
        let status = gateway.wait();
        assert!(status.success(), "{command}: {status}");
        wait::until("its servers to be gone", || cluster().backends(&database) == 0);
    }
}

#[test]
fn signals_drain_or_end() {
    for (signal, drains) in [(Signal::TERM, true), (Signal::INT, true), (Signal::QUIT, false)] {
        let database = cluster().database();
        let mut gateway = Gateway::start(Config::of(&database));
        let mut client = gateway.client(&database);
        client.run("begin; select 1");
        gateway.signal(signal);
        if drains {
            assert_eq!(client.one("select 'goes on'"), "goes on", "{signal:?}");
            client.run("commit");
            if signal == Signal::TERM {
                client.terminate();
            } else {
                client.until_closed();
            }
        } else {
            client.until_closed();
        }
        let status = gateway.wait();
        assert!(status.success(), "{signal:?}: {status}");
    }
    // A drain is bounded, and a second TERM ends it.
    let database = cluster().database();
    let config = Config::of(&database).set("runtime.shutdown_timeout", "500ms");
    let mut gateway = Gateway::start(config);
    let mut client = gateway.client(&database);
    client.run("begin; select 1");
    gateway.signal(Signal::TERM);
    client.until_closed();
    gateway.wait();
    let config = Config::of(&database).set("runtime.shutdown_timeout", "60s");
    let mut gateway = Gateway::start(config);
    let mut client = gateway.client(&database);
    client.run("begin; select 1");
    gateway.signal(Signal::TERM);
    // Two signals at once would count as one.
    wait::until("the doors to close", || {
        std::net::TcpStream::connect(("127.0.0.1", gateway.port)).is_err()
    });
    assert_eq!(client.one("select 'goes on'"), "goes on");
    gateway.signal(Signal::TERM);
    client.until_closed();
    gateway.wait();
}
