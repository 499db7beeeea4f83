//! Limits and timeouts: who is over them is told what and what to do.

use std::time::Duration;

use wire::pg::backend::tag;
use wire::pg::{frontend, startup};

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::gateway::{ADMIN, ADMIN_PASSWORD};
use crate::kit::wireclient::Complaint;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};
use crate::traps::batch::Batch;

#[track_caller]
fn refused(gateway: &Gateway, user: &str, password: &str, database: &Database) -> Complaint {
    let parameters = [("user", user), ("database", database.name.as_str())];
    let refused = WireClient::try_login(&gateway.address(), password, &parameters).err();
    refused.expect("one client too many")
}

/// The FATAL that the gateway closes with.
#[track_caller]
fn last_word(client: &mut WireClient) -> Complaint {
    let last = client.until_closed();
    let error = last.iter().rev().find(|message| message.tag == tag::ERROR);
    let complaint = error.unwrap_or_else(|| panic!("no reason: {last:?}")).complaint();
    assert_eq!(complaint.severity, "FATAL");
    complaint
}

#[test]
fn a_full_pool_says_who_holds_it_and_what_to_do() {
    let database = cluster().database();
    let config = Config::of(&database).set("pool.pool_size", 1).set("pool.wait_timeout", "700ms");
    let gateway = Gateway::start(config);
    let parameters =
        [("user", APP), ("database", database.name.as_str()), ("application_name", "nightly")];
    let mut holder = WireClient::login_with(&gateway.address(), APP_PASSWORD, &parameters);
    holder.run("begin; select 1");
    let clients = gateway.show("clients");
    let row = clients.iter().find(|row| row["application_name"] == "nightly").expect("the holder");
    let id = row["id"].clone();

    let mut waiting = gateway.client(&database);
    waiting.put(|out| frontend::put_query(out, "select 1"));
    let complaint = last_word(&mut waiting);
    assert_eq!(complaint.code, "53300");
    let name = &database.name;
    let message = format!("no server connection for \"{name}\" became free within 700 ms");
    assert_eq!(complaint.message, message);
    let detail = format!(
        "pool {name}/app: 1 of 1 in use, 1 waiting; oldest holder: client {id}, \
         application_name \"nightly\", idle in transaction for "
    );
    assert!(complaint.detail.starts_with(&detail), "{complaint:?}");
    assert!(complaint.detail.contains(" s, user \"app\" from 127.0.0.1:"), "{complaint:?}");
    assert!(complaint.detail.contains(", has had it for "), "{complaint:?}");
    assert!(complaint.detail.ends_with(" s"), "{complaint:?}");
    let hint = format!("KILL_CLIENT {id}, or raise pool_size; see SHOW BLOCKERS. [P0412]");
    assert_eq!(complaint.hint, hint);
    // The hint works.
    let mut waiting = gateway.client(&database);
    waiting.put(|out| frontend::put_query(out, "select 'free'"));
    gateway.console().run(&format!("kill_client {id}"));
    assert_eq!(waiting.until_ready()[1].values(), [Some("free".into())]);
}

#[test]
fn the_reserve_is_opened_for_clients_that_wait_long() {
    let database = cluster().database();
    let config = Config::of(&database)
        .set("pool.pool_size", 1)
        .set("pool.reserve_pool_size", 1)
        .set("pool.reserve_pool_timeout", "300ms");
    let gateway = Gateway::start(config);
    let (mut holder, mut patient, mut third) =
        (gateway.client(&database), gateway.client(&database), gateway.client(&database));
    holder.run("begin; select 1");
    patient.run("begin; select 1");
    assert_eq!(cluster().backends(&database), 2);
    third.put(|out| frontend::put_query(out, "select 'third'"));
    third.expect_silence(Duration::from_millis(600));
    assert_eq!(cluster().backends(&database), 2, "size and reserve");
    holder.run("commit");
    assert_eq!(third.until_ready()[1].values(), [Some("third".into())]);
}

#[test]
fn the_minimum_is_kept_open_once_the_pool_is_used() {
    let database = cluster().database();
    let config =
        Config::of(&database).set("pool.min_pool_size", 3).set("pool.server_idle_timeout", "200ms");
    let gateway = Gateway::start(config);
    gateway.client(&database).run("select 1");
    wait::until("three servers", || cluster().backends(&database) == 3);
    cluster().superuser("postgres").run(&format!(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{}'",
        database.name
    ));
    wait::until("three servers again", || {
        cluster().backends(&database) == 3 && gateway.show("servers").len() == 3
    });
}

#[test]
fn servers_are_closed_when_idle_or_old() {
    let database = cluster().database();
    let config =
        Config::of(&database).set("pool.pool_size", 3).set("pool.server_idle_timeout", "300ms");
    let gateway = Gateway::start(config);
    let mut clients: Vec<_> = (0..3).map(|_| gateway.client(&database)).collect();
    clients.iter_mut().for_each(|client| client.run("begin; select 1"));
    assert_eq!(cluster().backends(&database), 3);
    clients.iter_mut().for_each(|client| client.run("commit"));
    wait::until("idle servers to close", || cluster().backends(&database) == 0);
    assert_eq!(clients[0].one("select 'alive'"), "alive");

    let config = Config::of(&database).set("pool.server_lifetime", "400ms");
    let gateway = Gateway::start(config);
    let mut client = gateway.client(&database);
    let first = client.one("select pg_backend_pid()");
    wait::until("another server", || client.one("select pg_backend_pid()") != first);
    // An old server is not taken away in a transaction.
    client.run("begin; select 1");
    let pid = client.one("select pg_backend_pid()");
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(client.one("select pg_backend_pid()"), pid);
    client.run("commit");
}

#[test]
fn more_clients_than_allowed_are_refused_in_all_per_database_and_per_user() {
    let database = cluster().database();
    let name = &database.name;
    let of = || {
        Config::of(&database)
            .set("users.other.password", "other")
            .set(&format!("databases.{name}.user"), APP)
            .set(&format!("databases.{name}.password"), APP_PASSWORD)
    };
    // In all: the console counts as well, so one place is left for it.
    let gateway = Gateway::start(of().set("runtime.max_clients", 3));
    let clients: Vec<_> = (0..3).map(|_| gateway.client(&database)).collect();
    let complaint = refused(&gateway, APP, APP_PASSWORD, &database);
    assert_eq!(complaint.code, "53300");
    assert!(complaint.hint.contains("max_clients"), "{complaint:?}");
    drop(clients);
    wait::until("room again", || {
        let parameters = [("user", APP), ("database", name.as_str())];
        WireClient::try_login(&gateway.address(), APP_PASSWORD, &parameters).is_ok()
    });

    let path = format!("databases.{name}.max_client_connections");
    let gateway = Gateway::start(of().set(&path, 2));
    let _clients: Vec<_> = (0..2).map(|_| gateway.client(&database)).collect();
    let complaint = refused(&gateway, "other", "other", &database);
    assert_eq!(complaint.code, "53300");
    assert!(complaint.message.contains("database"), "{complaint:?}");
    assert!(!gateway.show("databases").is_empty(), "the console is not that database");

    let gateway = Gateway::start(of().set("users.app.max_client_connections", 1));
    let first = gateway.client(&database);
    let complaint = refused(&gateway, APP, APP_PASSWORD, &database);
    assert_eq!(complaint.code, "53300");
    assert!(complaint.message.contains("user"), "{complaint:?}");
    WireClient::login(&gateway.address(), "other", "other", name).run("select 1");
    drop(first);
    wait::until("room again", || {
        let parameters = [("user", APP), ("database", name.as_str())];
        WireClient::try_login(&gateway.address(), APP_PASSWORD, &parameters).is_ok()
    });
}

#[test]
fn servers_are_limited_per_database_and_per_user_over_all_pools() {
    let database = cluster().database();
    let name = &database.name;
    let config = Config::of(&database)
        .set("users.legacy.password", crate::kit::cluster::OTHER_PASSWORD)
        .set(&format!("databases.{name}.max_server_connections"), 2)
        .set("pool.pool_size", 2)
        .set("pool.wait_timeout", "3s");
    let gateway = Gateway::start(config);
    let mut holders = [gateway.client(&database), gateway.client(&database)];
    holders.iter_mut().for_each(|holder| holder.run("begin; select 1"));
    let complaint = refused(&gateway, "legacy", crate::kit::cluster::OTHER_PASSWORD, &database);
    assert_eq!(complaint.code, "53300", "{complaint:?}");
    assert_eq!(cluster().backends(&database), 2);
}

#[test]
fn a_query_over_its_timeout_is_cancelled_and_its_client_closed() {
    let database = cluster().database();
    let config = Config::of(&database).set("pool.pool_size", 1).set("pool.query_timeout", "400ms");
    let gateway = Gateway::start(config);
    let mut client = gateway.client(&database);
    client.put(|out| frontend::put_query(out, "select pg_sleep(60)"));
    let complaint = last_word(&mut client);
    assert_eq!(complaint.code, "57014");
    assert!(complaint.detail.contains("query_timeout is 400 ms"), "{complaint:?}");
    assert_eq!(gateway.client(&database).one("select 'alive'"), "alive");
    // Many quick ones take longer together.
    let mut client = gateway.client(&database);
    for _ in 0..8 {
        client.run("select pg_sleep(0.1)");
    }
}

#[test]
fn an_idle_transaction_over_its_timeout_is_rolled_back_and_its_client_closed() {
    let database = cluster().database();
    database.run("create table t(a int); grant all on t to app");
    let config = Config::of(&database)
        .set("pool.pool_size", 1)
        .set("pool.idle_transaction_timeout", "400ms");
    let gateway = Gateway::start(config);
    let mut client = gateway.client(&database);
    client.run("begin; insert into t values (1)");
    assert_eq!(last_word(&mut client).code, "25P03");
    let mut next = gateway.client(&database);
    assert_eq!(next.one("select count(*) from t"), "0");
    // Neither an idle client nor a long query is an idle transaction.
    next.run("begin; select pg_sleep(1); commit");
    std::thread::sleep(Duration::from_millis(800));
    assert_eq!(next.one("select 'alive'"), "alive");
}

#[test]
fn a_transaction_over_its_timeout_is_rolled_back_and_its_client_closed() {
    let database = cluster().database();
    database.run("create table t(a int); grant all on t to app");
    for mode in ["transaction", "session"] {
        let config = Config::of(&database)
            .set("pool.mode", mode)
            .set("pool.pool_size", 1)
            .set("pool.transaction_timeout", "900ms");
        let gateway = Gateway::start(config);
        let mut client = gateway.client(&database);
        // Time between transactions does not count.
        for _ in 0..3 {
            client.run("begin; select pg_sleep(0.1); commit");
            std::thread::sleep(Duration::from_millis(400));
        }
        // Busy all the time, but too long as a whole.
        client.run("begin; insert into t values (1)");
        client.run("select pg_sleep(0.1)");
        client.put(|out| frontend::put_query(out, "select pg_sleep(600)"));
        assert_eq!(last_word(&mut client).code, "25P04", "{mode}");
        let mut next = gateway.client(&database);
        assert_eq!(next.one("select count(*) from t"), "0", "{mode}");
        next.run("begin");
        next.run("insert into t values (2)");
        // Idle in it counts, too.
        assert_eq!(last_word(&mut next).code, "25P04", "{mode}");
        assert_eq!(gateway.client(&database).one("select count(*) from t"), "0", "{mode}");
    }
}

#[test]
fn an_idle_client_over_its_timeout_is_closed() {
    let database = cluster().database();
    let config = Config::of(&database).set("pool.client_idle_timeout", "600ms");
    let gateway = Gateway::start(config);
    let (mut idle, mut busy) = (gateway.client(&database), gateway.client(&database));
    busy.run("begin; select 1");
    assert_eq!(last_word(&mut idle).code, "57P05");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(busy.one("select 'in a transaction'"), "in a transaction");
    busy.run("commit");
}

#[test]
fn a_client_that_does_not_log_in_is_closed() {
    let database = cluster().database();
    let gateway = Gateway::start(Config::of(&database).set("runtime.login_timeout", "700ms"));
    let mut silent = WireClient::connect(&gateway.address());
    let mut half = WireClient::connect(&gateway.address());
    let parameters = [("user", APP), ("database", database.name.as_str())];
    half.put(|out| startup::put_startup(out, 0, &parameters));
    half.expect(tag::AUTHENTICATION);
    for client in [&mut silent, &mut half] {
        let last = client.until_closed();
        if let Some(last) = last.last() {
            assert_eq!(last.complaint().severity, "FATAL");
        }
    }
    // Who has logged in stays.
    let mut client = gateway.client(&database);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(client.one("select 'alive'"), "alive");
    WireClient::login(&gateway.address(), ADMIN, ADMIN_PASSWORD, "pondage").run("show version");
}

#[test]
fn a_statement_too_long_to_keep_is_refused_and_a_long_query_is_not() {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    let mut client = gateway.client(&database);
    let long = format!("select length('{}')", "x".repeat(20 << 20));
    assert_eq!(client.one(&long), (20 << 20).to_string());
    let answer = length_of(&"y".repeat(20 << 20)).answer(&mut client);
    assert_eq!(answer[2].values(), [Some((20 << 20).to_string())]);
    // The ceiling is for the text of a Parse, which has to be kept.
    let parse = Batch::new().parse("s", &long).sync();
    let _ = client.try_send(&parse.0);
    let complaint = last_word(&mut client);
    assert_eq!(complaint.code, "54000");
    assert!(complaint.hint.contains("P0423"), "{complaint:?}");
}

fn length_of(value: &str) -> Batch {
    Batch::new().parse("", "select length($1)").bind("", &[value]).execute().sync()
}
