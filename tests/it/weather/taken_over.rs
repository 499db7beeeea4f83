//! Options that PgBouncer's operators know.

use std::time::Duration;

use wire::pg::frontend;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::gateway::{ADMIN, ADMIN_PASSWORD};
use crate::kit::{cluster, wait, Address, Config, Database, Gateway, WireClient};

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

#[test]
fn a_transaction_that_has_no_server_yet_is_late_like_any_other() {
    for (option, code) in [("idle_transaction_timeout", "25P03"), ("transaction_timeout", "25P04")]
    {
        let (database, gateway) = started(|config| {
            let config = config.set("telemetry.log_disconnections", true);
            config.set(&format!("pool.{option}"), "300ms").set("pool.client_idle_timeout", "100ms")
        });
        let mut client = gateway.client(&database);
        client.run("begin");
        let last = client.until_closed().pop().expect("a reason").complaint();
        assert_eq!((last.code.as_str(), last.severity.as_str()), (code, "FATAL"));
        // The log says why, too.
        let why = format!("why=\"{}\"", last.message);
        wait::until("a line", || {
            let said = gateway.said().text();
            let mut lines = said.lines().filter(|line| line.contains("event=client_closed"));
            lines.any(|line| line.contains(&why))
        });
    }
    // Nor is its client idle.
    let (database, gateway) = started(|config| config.set("pool.client_idle_timeout", "100ms"));
    let mut client = gateway.client(&database);
    client.run("begin");
    client.expect_silence(QUIET * 5);
    assert_eq!(client.one("select 'goes on'"), "goes on");
}

#[test]
fn the_console_is_there_at_the_unix_socket_while_a_shutdown_waits() {
    for command in ["shutdown wait_for_clients", "shutdown wait_for_servers"] {
        let (database, mut gateway) = started(|config| {
            config.set("listen.postgres", ["127.0.0.1:{port}", "unix:{directory}"])
        });
        let socket = Address::unix(gateway.directory.path(), gateway.port);
        let mut client = gateway.client(&database);
        client.run("begin; select 1");
        gateway.console().run(command);
        wait::until("its address to be closed", || {
            WireClient::try_connect(&gateway.address()).is_err()
        });
        let mut console = WireClient::login(&socket, ADMIN, ADMIN_PASSWORD, "pgbouncer");
        assert!(!console.table("show clients").is_empty());
        let parameters = [("user", APP), ("database", database.name.as_str())];
        let refused = WireClient::try_login(&socket, APP_PASSWORD, &parameters).err();
        assert_eq!(refused.expect("no new clients").code, "57P03");
        // Who has said nothing yet keeps nobody.
        let silent = WireClient::connect(&socket);
        client.run("commit");
        client.terminate();
        assert!(gateway.wait().success());
        drop(silent);
        assert!(!gateway.directory.path().join(format!(".s.PGSQL.{}", gateway.port)).exists());
    }
}

#[test]
fn processes_may_share_an_address_if_both_say_so() {
    let (database, first) = started(|config| config.set("listen.reuse_port", true));
    let address = format!("127.0.0.1:{}", first.port);
    let same = |shared: bool| {
        let config = Config::of(&database).set("listen.postgres", [address.as_str()]);
        config.set("listen.reuse_port", shared)
    };
    let refused = Gateway::refused(same(false));
    assert!(refused.stderr.contains("error[P0211]"), "{}", refused.stderr);
    let second = Gateway::start(same(true));
    // New clients go to the one that is left.
    drop(first);
    let mut parameters = vec![("user", APP), ("database", database.name.as_str())];
    parameters.push(("application_name", "second"));
    let address = Address::tcp("127.0.0.1", address[10..].parse().expect("a port"));
    let mut client = WireClient::login_with(&address, APP_PASSWORD, &parameters);
    assert_eq!(client.one("select 1"), "1");
    drop(second);
}

#[test]
fn unix_sockets_have_the_group_that_is_asked_for() {
    use std::os::unix::fs::MetadataExt;
    let group = match rustix::process::geteuid().is_root() {
        true => 65_534,
        false => rustix::process::getegid().as_raw(),
    };
    let with = |config: Config, group: &str| {
        let doors = ["127.0.0.1:{port}", "unix:{directory}"];
        config.set("listen.postgres", doors).set("listen.unix_socket_group", group)
    };
    let (database, gateway) = started(|config| with(config, &group.to_string()));
    let path = gateway.directory.path().join(format!(".s.PGSQL.{}", gateway.port));
    assert_eq!(std::fs::metadata(path).expect("the socket").gid(), group);
    let refused = Gateway::refused(with(Config::of(&database), "no such group"));
    assert!(refused.stderr.contains("error[P0213]"), "{}", refused.stderr);
    assert!(refused.stderr.contains("no such group"), "{}", refused.stderr);
}
