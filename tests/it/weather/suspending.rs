//! SUSPEND, and the signals that pause and resume.

use std::time::Duration;

use rustix::process::Signal;
use wire::pg::frontend;

use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

/// Long enough for a wrong message to arrive.
const QUIET: Duration = Duration::from_millis(200);

fn started(option: &str, value: &str) -> (Database, Gateway) {
    let database = cluster().database();
    let config = Config::of(&database).set("pool.pool_size", 2).set(option, value);
    (database, Gateway::start(config))
}

fn ask(client: &mut WireClient, sql: &str) {
    client.put(|out| frontend::put_query(out, sql));
}

#[track_caller]
fn answered(client: &mut WireClient, value: &str) {
    assert_eq!(client.until_ready()[1].values(), [Some(value.to_owned())]);
}

fn state(gateway: &Gateway, key: &str) -> String {
    let state = gateway.show("state");
    state.iter().find(|row| row["key"] == key).expect("a row")["value"].clone()
}

#[test]
fn what_is_said_while_suspended_waits_for_resume_and_nobody_notices() {
    let (database, gateway) = started("pool.query_timeout", "3s");
    let mut working = gateway.client(&database);
    let mut idle = gateway.client(&database);
    idle.run("select 1");
    working.run("begin; select 1");
    let mut console = gateway.console();
    ask(&mut working, "select 'worked' from pg_sleep(0.3)");
    console.run("suspend");
    assert_eq!([state(&gateway, "active"), state(&gateway, "suspended")], ["no", "yes"]);
    ask(&mut idle, "select 'later'");
    // Who comes now gets in and waits. As long as a query may take, and longer.
    let mut newcomer = gateway.client(&database);
    ask(&mut newcomer, "select 'new'");
    newcomer.expect_silence(Duration::from_millis(3500));
    idle.expect_silence(QUIET);
    working.expect_silence(QUIET);
    for command in ["suspend", "pause"] {
        assert_eq!(console.error(command).message, "already suspended/paused");
    }
    console.run("resume");
    answered(&mut working, "worked");
    answered(&mut idle, "later");
    working.run("commit");
    answered(&mut newcomer, "new");
    assert_eq!([state(&gateway, "active"), state(&gateway, "suspended")], ["yes", "no"]);
    console.run(&format!("pause {}", database.name));
    assert_eq!(console.error("suspend").message, "cannot suspend with paused databases");
}

#[test]
fn a_suspension_ends_with_the_last_console_client() {
    let (database, gateway) = started("pool.mode", "session");
    let mut client = gateway.client(&database);
    client.run("select 1");
    let (mut console, mut other) = (gateway.console(), gateway.console());
    other.run("show version");
    console.run("suspend");
    ask(&mut client, "select 'heard'");
    console.terminate();
    client.expect_silence(QUIET);
    drop(other);
    answered(&mut client, "heard");
    wait::until("a line", || gateway.said().contains("event=resumed"));
}

#[test]
fn who_does_not_read_is_closed_after_suspend_timeout() {
    let (database, gateway) = started("runtime.suspend_timeout", "300ms");
    let mut deaf = gateway.client(&database);
    ask(&mut deaf, "select repeat('x', 1000) from generate_series(1, 100000)");
    let mut superuser = cluster().superuser("postgres");
    let full = format!(
        "select count(*) from pg_stat_activity \
         where datname = '{}' and wait_event = 'ClientWrite'",
        database.name
    );
    wait::until("its socket to be full", || superuser.one(&full) == "1");
    let mut other = gateway.client(&database);
    other.run("select 1");
    let mut console = gateway.console();
    console.run("suspend");
    ask(&mut other, "select 'reads'");
    console.run("resume");
    answered(&mut other, "reads");
    wait::until("the end of the one that does not read", || {
        let clients = gateway.show("clients");
        clients.iter().filter(|row| row["database"] == database.name).count() == 1
    });
    // What it had been sent comes, and then the end.
    while deaf.try_message_or_cut().is_some() {}
}

#[test]
fn usr1_pauses_and_usr2_resumes() {
    let (database, gateway) = started("pool.mode", "transaction");
    let mut client = gateway.client(&database);
    client.run("select 1");
    gateway.signal(Signal::USR2);
    wait::until("a word about it", || {
        gateway.said().contains("got SIGUSR2, but not paused/suspended")
    });
    gateway.signal(Signal::USR1);
    wait::until("the pause", || gateway.said().contains("got SIGUSR1, pausing all activity"));
    ask(&mut client, "select 'after'");
    client.expect_silence(QUIET);
    gateway.signal(Signal::USR1);
    wait::until("a word about it", || gateway.said().contains("got SIGUSR1, but already paused"));
    gateway.signal(Signal::USR2);
    answered(&mut client, "after");
    let mut console = gateway.console();
    console.run("suspend");
    ask(&mut client, "select 'again'");
    client.expect_silence(QUIET);
    gateway.signal(Signal::USR2);
    answered(&mut client, "again");
}

#[test]
fn a_shutdown_ends_a_suspension() {
    let (database, mut gateway) = started("pool.mode", "transaction");
    let mut client = gateway.client(&database);
    client.run("begin; select 1");
    let mut console = gateway.console();
    console.run("suspend");
    ask(&mut client, "select 'heard'");
    client.expect_silence(QUIET);
    gateway.signal(Signal::TERM);
    answered(&mut client, "heard");
    assert_eq!(console.error("resume").message, "pooler is shutting down");
    client.run("commit");
    client.terminate();
    console.terminate();
    assert!(gateway.wait().success());
}
