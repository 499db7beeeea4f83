//! Servers that several pools share: nobody keeps all of them, nobody starves, and they do not
//! change hands without need.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use wire::pg::backend::tag;
use wire::pg::frontend;

use crate::kit::cluster::{Cluster, APP, APP_PASSWORD, OTHER_PASSWORD};
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

const TRANSACTION: &str = "begin; select pg_sleep(0.005); commit";

/// Everybody is let in, so that a crowd is there quickly.
fn config(databases: &[Database], max_servers: i64) -> Config {
    let config = Config::base()
        .set("auth.method", "trust")
        .set("users.legacy.password", OTHER_PASSWORD)
        .set("runtime.max_servers", max_servers)
        .set("pool.pool_size", 10);
    databases.iter().fold(config, |config, database| config.database(&database.name))
}

fn client(gateway: &Gateway, user: &str, database: &Database) -> WireClient {
    WireClient::login(&gateway.address(), user, "", &database.name)
}

/// Servers over all pools; exact with one worker.
fn servers(gateway: &Gateway) -> u64 {
    let pools = gateway.show("pools_extended");
    pools.iter().map(|pool| pool["servers"].parse::<u64>().expect("a number")).sum()
}

#[test]
fn a_crowd_leaves_the_single_clients_of_other_pools_their_servers() {
    let databases = [(); 3].map(|()| cluster().database());
    let gateway = Gateway::start(config(&databases, 3).set("runtime.workers", 1));
    let [crowded, second, third] = &databases;
    let stop = AtomicBool::new(false);
    let (gateway, stop) = (&gateway, &stop);
    std::thread::scope(|threads| {
        let mut crowd: Vec<_> = (0..20).map(|_| client(gateway, APP, crowded)).collect();
        let crowd: Vec<_> = crowd
            .drain(..)
            .map(|mut client| {
                threads.spawn(move || {
                    let mut done = 0;
                    while !stop.load(Ordering::Relaxed) {
                        client.run(TRANSACTION);
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        wait::until("the crowd to have all servers", || {
            let pools = gateway.show("pools_extended");
            pools.iter().any(|pool| pool["servers"] == "3")
        });
        let singles = [(APP, second), ("legacy", third)].map(|(user, database)| {
            threads.spawn(move || {
                let mut client = client(gateway, user, database);
                client.run(TRANSACTION);
                let before = gateway.figure("pondage_server_opens_total");
                (0..40).for_each(|_| client.run(TRANSACTION));
                gateway.figure("pondage_server_opens_total") - before
            })
        });
        while !singles.iter().all(|single| single.is_finished()) {
            let taken = servers(gateway);
            assert!(taken <= 3, "{taken} servers");
            std::thread::sleep(Duration::from_millis(20));
        }
        let opened = singles.map(|single| single.join().expect("nobody starves"));
        // The other comes in meanwhile, and a pause of a second costs one its server.
        assert!(
            opened.iter().all(|opened| *opened < 20),
            "not one for each transaction: {opened:?}"
        );
        stop.store(true, Ordering::Relaxed);
        for member in crowd {
            assert!(member.join().expect("the crowd goes on") > 0);
        }
    });
    assert!(gateway.figure("pondage_server_given_up_total") >= 2);
    assert!(gateway.said().text().contains("event=servers_short"));
    // With the crowd gone there is no limit but the budget.
    wait::until("no shares any more", || {
        gateway.show("pools_extended").iter().all(|pool| pool["share"].is_empty())
    });
}

#[test]
fn an_idle_server_is_closed_for_a_pool_whose_client_waits_at_any_worker() {
    let databases = [(); 3].map(|()| cluster().database());
    let gateway = Gateway::start(config(&databases, 1).set("runtime.workers", 3));
    for _ in 0..2 {
        for database in &databases {
            assert_eq!(client(&gateway, APP, database).one("select 'served'"), "served");
        }
    }
    assert_eq!(gateway.figure("pondage_server_given_up_total"), 5);
}

#[test]
fn more_pools_than_servers_take_turns() {
    let databases = [(); 3].map(|()| cluster().database());
    let config = config(&databases, 1).set("runtime.workers", 2).set("pool.coalesce", "batch");
    let gateway = &Gateway::start(config);
    std::thread::scope(|threads| {
        for database in &databases {
            for _ in 0..4 {
                threads.spawn(move || {
                    let mut client = client(gateway, APP, database);
                    for round in 0..20 {
                        client.run(if round % 2 == 0 { TRANSACTION } else { "select 1" });
                    }
                });
            }
        }
    });
}

#[test]
fn limits_of_a_database_and_of_a_user_are_shared_fairly_too() {
    let databases = [(); 2].map(|()| cluster().database());
    let [both, other] = &databases;
    let path = format!("databases.{}.max_server_connections", both.name);
    let config = config(&databases, 0).set(&path, 1).set("users.app.max_server_connections", 1);
    let gateway = Gateway::start(config);
    // Of the database: from one user to the other; of the user: from one database to the other.
    for (user, database) in [(APP, both), ("legacy", both), (APP, other), (APP, both)] {
        assert_eq!(client(&gateway, user, database).one("select 'served'"), "served");
    }
}

#[test]
fn a_server_that_is_held_is_not_taken_away_and_its_holder_is_named() {
    let databases = [(); 2].map(|()| cluster().database());
    let config = config(&databases, 1).set("pool.wait_timeout", "3s");
    let gateway = Gateway::start(config);
    let [first, second] = &databases;
    let mut waits = client(&gateway, APP, second);
    let parameters =
        [("user", APP), ("database", first.name.as_str()), ("application_name", "nightly")];
    let mut holder = WireClient::login_with(&gateway.address(), "", &parameters);
    holder.run("begin; select 1");
    waits.put(|out| frontend::put_query(out, "select 1"));
    wait::until("the holder to be shown", || {
        gateway.show("blockers").iter().any(|row| {
            row["why"] == "max_servers"
                && row["database"] == second.name
                && row["holder_database"] == first.name
                && row["application_name"] == "nightly"
        })
    });
    let last = waits.until_closed();
    let error = last.iter().rev().find(|message| message.tag == tag::ERROR).expect("a reason");
    let complaint = error.complaint();
    assert_eq!(complaint.code, "53300");
    let detail = "; all 1 of max_servers are taken; oldest holder: client ";
    assert!(complaint.detail.contains(detail), "{complaint:?}");
    let whose = format!("user \"app\" of database \"{}\" from ", first.name);
    assert!(complaint.detail.contains(&whose), "{complaint:?}");
    assert!(complaint.hint.contains("or raise max_servers; see SHOW BLOCKERS"), "{complaint:?}");
    holder.run("commit");
    assert_eq!(client(&gateway, APP, second).one("select 'served'"), "served");
}

#[test]
fn a_limit_that_a_reload_has_lowered_is_reached_and_one_that_it_has_raised_is_used() {
    let databases = [(); 2].map(|()| cluster().database());
    let gateway = Gateway::start(config(&databases, 6).set("runtime.workers", 1));
    let begin = |client: &mut WireClient| client.run("begin; select 1");
    let [first, second] = &databases;
    let mut clients: Vec<_> = (0..3).map(|_| client(&gateway, APP, first)).collect();
    clients.extend((0..3).map(|_| client(&gateway, APP, second)));
    clients.iter_mut().for_each(begin);
    assert_eq!(servers(&gateway), 6);
    gateway.rewrite(config(&databases, 2).set("runtime.workers", 1));
    gateway.signal(Signal::HUP);
    wait::until("the new limit", || {
        gateway
            .show("config")
            .iter()
            .any(|row| row["key"] == "runtime.max_servers" && row["value"] == "2")
    });
    assert_eq!(servers(&gateway), 6, "nobody loses the server that he works with");
    clients.iter_mut().for_each(|client| client.run("commit"));
    wait::until("two servers", || servers(&gateway) == 2);
    gateway.rewrite(config(&databases, 6).set("runtime.workers", 1));
    gateway.signal(Signal::HUP);
    wait::until("the old limit", || {
        gateway
            .show("config")
            .iter()
            .any(|row| row["key"] == "runtime.max_servers" && row["value"] == "6")
    });
    clients.iter_mut().for_each(begin);
    assert_eq!(servers(&gateway), 6);
}

#[test]
fn while_postgresql_has_no_room_clients_wait_for_it() {
    let own = Cluster::start("crowded", &["max_connections = 6", "max_wal_senders = 0"]);
    let gateway = |wait: &str| {
        Gateway::start(
            Config::base()
                .set("databases.app.host", "127.0.0.1")
                .set("databases.app.port", i64::from(own.port))
                .set("databases.app.dbname", "postgres")
                .set("pool.server_login_retry", "200ms")
                .set("pool.wait_timeout", wait),
        )
    };
    // Three places are the superusers'.
    let others: Vec<_> =
        (0..3).map(|_| WireClient::login(&own.address(), APP, APP_PASSWORD, "postgres")).collect();
    let full = gateway("1s");
    let parameters = [("user", APP), ("database", "app")];
    let refused = WireClient::try_login(&full.address(), APP_PASSWORD, &parameters).err();
    let complaint = refused.expect("there is no room");
    assert_eq!(complaint.code, "53300", "{complaint:?}");
    assert!(complaint.hint.contains("max_servers"), "{complaint:?}");
    let patient = gateway("60s");
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| {
            let mut client = WireClient::login(&patient.address(), APP, APP_PASSWORD, "app");
            client.one("select 'served'")
        });
        wait::until("some tries", || {
            patient.said().text().matches("server_connect_failed").count() >= 2
        });
        // Longer than clients of a server that can't be reached are kept waiting.
        std::thread::sleep(Duration::from_millis(5500));
        assert!(!waiting.is_finished());
        drop(others);
        assert_eq!(waiting.join().expect("served"), "served");
    });
}

#[test]
fn users_who_share_a_pool_take_turns_in_it() {
    let database = cluster().database();
    database.run("create sequence turns; grant all on turns to app");
    let name = &database.name;
    let config = Config::of(&database)
        .set("auth.method", "trust")
        .set("runtime.workers", 1)
        .set(&format!("databases.{name}.user"), APP)
        .set(&format!("databases.{name}.password"), APP_PASSWORD)
        .set("pool.pool_size", 1);
    let gateway = Gateway::start(config);
    let mut holder = client(&gateway, "ann", &database);
    holder.run("begin; select 1");
    let mut clients: Vec<_> = (0..10).map(|_| client(&gateway, "ann", &database)).collect();
    clients.push(client(&gateway, "bob", &database));
    for client in &mut clients {
        client.put(|out| frontend::put_query(out, "select nextval('turns')"));
    }
    wait::until("all of them to wait", || {
        let rows = gateway.show("blockers");
        rows.first().is_some_and(|row| row["waiting"] == "11" && row["holder_user"] == "ann")
    });
    holder.run("commit");
    let turn = |client: &mut WireClient| client.until_ready()[1].values()[0].clone();
    let turns: Vec<_> = clients.iter_mut().map(turn).collect();
    let bobs = turns[10].as_deref().and_then(|turn| turn.parse::<u32>().ok());
    assert!(bobs.is_some_and(|turn| turn <= 2), "ten came before: {turns:?}");
}
