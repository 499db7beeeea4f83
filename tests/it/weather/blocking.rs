//! Clients that wait for servers: who holds them is shown and told.

use std::collections::BTreeMap;

use wire::pg::backend::tag;
use wire::pg::frontend;

use crate::kit::cluster::{APP, APP_PASSWORD, OTHER_PASSWORD};
use crate::kit::wireclient::Complaint;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

fn named(gateway: &Gateway, database: &Database, application: &str) -> WireClient {
    let parameters =
        [("user", APP), ("database", database.name.as_str()), ("application_name", application)];
    WireClient::login_with(&gateway.address(), APP_PASSWORD, &parameters)
}

fn id_of(gateway: &Gateway, application: &str) -> String {
    let clients = gateway.show("clients");
    let row = clients.iter().find(|row| row["application_name"] == application);
    row.expect("it is there")["id"].clone()
}

/// The rows of SHOW BLOCKERS once there are some like this.
fn blockers(
    gateway: &Gateway,
    what: &str,
    wanted: impl Fn(&BTreeMap<String, String>) -> bool,
) -> Vec<BTreeMap<String, String>> {
    wait::for_some(what, || {
        let rows = gateway.show("blockers");
        (!rows.is_empty() && rows.iter().any(&wanted)).then_some(rows)
    })
}

#[track_caller]
fn last_word(client: &mut WireClient) -> Complaint {
    let last = client.until_closed();
    let error = last.iter().rev().find(|message| message.tag == tag::ERROR);
    error.unwrap_or_else(|| panic!("no reason: {last:?}")).complaint()
}

#[test]
fn whoever_holds_the_servers_of_a_full_pool_is_shown_with_how_many_wait() {
    let database = cluster().database();
    let config = Config::of(&database).set("pool.pool_size", 2).set("runtime.workers", 2);
    let gateway = Gateway::start(config);
    assert_eq!(gateway.show("blockers"), []);
    let (mut first, mut second) =
        (named(&gateway, &database, "first"), named(&gateway, &database, "second"));
    first.run("begin; select 1");
    second.run("begin; select 1");
    let _ = second.error("select 1/0");
    assert_eq!(gateway.show("blockers"), [], "nobody waits");
    let mut waiting: Vec<_> = (0..5).map(|_| gateway.client(&database)).collect();
    for client in &mut waiting {
        client.put(|out| frontend::put_query(out, "select 'served'"));
    }
    let rows = blockers(&gateway, "five waiting", |row| row["waiting"] == "5");
    assert_eq!(rows.len(), 2, "{rows:?}");
    for (row, (application, state)) in rows
        .iter()
        .zip([("first", "idle in transaction"), ("second", "idle in transaction (aborted)")])
    {
        assert_eq!(row["database"], database.name);
        assert_eq!(row["user"], APP);
        assert_eq!(row["why"], "pool_size");
        assert_eq!(row["application_name"], application, "longest holder first: {rows:?}");
        assert_eq!(row["client_id"], id_of(&gateway, application));
        assert_eq!((row["holder_user"].as_str(), row["addr"].as_str()), (APP, "127.0.0.1"));
        assert_eq!(row["state"], state);
        assert!(row["held"].parse::<f64>().is_ok_and(|held| held >= 0.0), "{row:?}");
    }
    first.put(|out| frontend::put_query(out, "select pg_sleep(60)"));
    blockers(&gateway, "it works", |row| {
        row["application_name"] == "first" && row["state"] == "active"
    });
    // Who is named is who is in the way.
    gateway.console().run(&format!("kill_client {}", id_of(&gateway, "second")));
    for client in &mut waiting {
        assert_eq!(client.until_ready()[1].values(), [Some("served".into())]);
    }
    wait::until("nobody to be blocked", || gateway.show("blockers").is_empty());
}

#[test]
fn who_waits_at_another_worker_than_the_holder_is_told_its_name_too() {
    let database = cluster().database();
    let config = Config::of(&database)
        .set("pool.pool_size", 1)
        .set("pool.wait_timeout", "2s")
        .set("runtime.workers", 4);
    let gateway = Gateway::start(config);
    let mut holder = named(&gateway, &database, "nightly");
    holder.run("begin; select 1");
    let id = id_of(&gateway, "nightly");
    let mut waiting: Vec<_> = (0..8).map(|_| gateway.client(&database)).collect();
    for client in &mut waiting {
        client.put(|out| frontend::put_query(out, "select 1"));
    }
    for client in &mut waiting {
        let complaint = last_word(client);
        assert_eq!(complaint.code, "53300");
        let holder = format!(
            "oldest holder: client {id}, application_name \"nightly\", idle in transaction for "
        );
        assert!(complaint.detail.contains(&holder), "{complaint:?}");
        assert!(complaint.hint.starts_with(&format!("KILL_CLIENT {id}, or ")), "{complaint:?}");
    }
    // The log has the story too.
    wait::until("the story in the log", || {
        let said = gateway.said().text();
        said.lines().any(|line| line.contains("client_refused") && line.contains("nightly"))
    });
}

#[test]
fn of_servers_that_a_databases_users_share_another_users_client_is_named() {
    let database = cluster().database();
    let name = &database.name;
    let config = Config::of(&database)
        .set("users.legacy.password", OTHER_PASSWORD)
        .set(&format!("databases.{name}.max_server_connections"), 2)
        .set("pool.wait_timeout", "2s");
    let gateway = Gateway::start(config);
    // The other pool has a server, so that its clients come in.
    let login = || WireClient::login(&gateway.address(), "legacy", OTHER_PASSWORD, name);
    let (mut keeps, mut waits) = (login(), login());
    keeps.run("begin; select 1");
    let mut holder = named(&gateway, &database, "nightly");
    holder.run("begin; select 1");
    waits.put(|out| frontend::put_query(out, "select 1"));
    let rows = blockers(&gateway, "one waiting", |row| row["waiting"] == "1");
    let holders: Vec<_> = rows.iter().map(|row| row["holder_user"].as_str()).collect();
    assert_eq!(holders, ["legacy", APP]);
    assert_eq!(rows[0]["why"], "the database's max_server_connections");
    let complaint = last_word(&mut waits);
    assert_eq!(complaint.code, "53300");
    let taken = "; all 2 of the database's max_server_connections are taken; oldest holder: ";
    assert!(complaint.detail.contains(taken), "{complaint:?}");
    let raise = "or raise the database's max_server_connections; see SHOW BLOCKERS. [P0412]";
    assert!(complaint.hint.ends_with(raise), "{complaint:?}");
}
