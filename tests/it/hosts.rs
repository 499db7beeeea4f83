//! Several hosts of one database: a primary and its standby, and what happens when the primary is
//! lost.

mod conflicts;
mod probing;
mod splitting;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::config::Config;
use crate::kit::gateway::Gateway;
use crate::kit::place::free_port;
use crate::kit::{wait, Address, WireClient};

fn config(ports: &[u16], target: &str) -> Config {
    let hosts = vec!["127.0.0.1"; ports.len()].join(",");
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    Config::base()
        .set("pool.server_login_retry", "100ms")
        .set("databases.app.host", hosts)
        .set("databases.app.port", ports.join(","))
        .set("databases.app.dbname", "postgres")
        .set("databases.app.target_session_attrs", target)
}

fn client(gateway: &Gateway) -> WireClient {
    WireClient::login(&Address::tcp("127.0.0.1", gateway.port), APP, APP_PASSWORD, "app")
}

/// The port of the server that answers.
fn server(gateway: &Gateway) -> u16 {
    client(gateway).one("select inet_server_port()").parse().expect("a port")
}

#[test]
fn the_host_that_is_asked_for_is_found_in_any_order() {
    let primary = Cluster::start("primary", &[]);
    let standby = primary.standby();
    let (one, other, nobody) = (primary.port, standby.port, free_port());
    for (ports, target, expected) in [
        ([nobody, one], "any", one),
        ([one, other], "read-write", one),
        ([other, one], "read-write", one),
        ([other, one], "primary", one),
        ([one, other], "standby", other),
        ([one, other], "read-only", other),
        ([one, other], "prefer-standby", other),
        ([nobody, one], "prefer-standby", one),
    ] {
        let gateway = Gateway::start(config(&ports, target));
        assert_eq!(server(&gateway), expected, "{ports:?} {target}");
        assert_eq!(gateway.show("databases")[0]["host"], "127.0.0.1,127.0.0.1");
        let servers = gateway.show("servers");
        assert!(servers.iter().all(|server| server["port"] == expected.to_string()));
    }
    let config = config(&[other, nobody], "primary").set("pool.wait_timeout", "1s");
    let gateway = Gateway::start(config);
    let parameters = [("user", APP), ("database", "app")];
    let address = Address::tcp("127.0.0.1", gateway.port);
    let refused = WireClient::try_login(&address, APP_PASSWORD, &parameters).err();
    let refused = refused.expect("no primary");
    assert_eq!(refused.code, "08001", "{refused:?}");
}

#[test]
fn clients_go_on_when_the_standby_has_taken_over() {
    let primary = Cluster::start("primary", &[]);
    let standby = primary.standby();
    let mut superuser = primary.superuser("postgres");
    superuser.run("create table written (n bigint primary key)");
    superuser.run(&format!("grant all on written to {APP}"));
    superuser.run("alter system set synchronous_standby_names = '*'");
    superuser.run("select pg_reload_conf()");
    let state = "select count(*) from pg_stat_replication where sync_state = 'sync'";
    wait::until("a synchronous standby", || superuser.one(state) == "1");
    let config = config(&[primary.port, standby.port], "read-write");
    let gateway = Gateway::start(config.set("pool.wait_timeout", "60s"));
    assert_eq!(server(&gateway), primary.port);
    let mut inside = client(&gateway);
    inside.run("begin");
    inside.run("select 1");
    let (lost, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut idle: Vec<WireClient> = (0..10).map(|_| client(&gateway)).collect();
    idle.iter_mut().for_each(|client| client.run("select 1"));
    let acknowledged = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut client = client(&gateway);
            let (mut acknowledged, mut n) = (Vec::new(), 0);
            while !ended.load(Ordering::SeqCst) {
                n += 1;
                match client.try_query(&format!("insert into written values ({n})")) {
                    Some(replies) if replies.iter().any(|reply| reply.tag == b'C') => {
                        acknowledged.push((n, lost.load(Ordering::SeqCst)));
                    }
                    Some(_) => {}
                    None => client = self::client(&gateway),
                }
            }
            acknowledged
        });
        wait::until("some writes", || {
            standby.superuser("postgres").one("select count(*) > 20 from written") == "t"
        });
        primary.crash();
        standby.superuser("postgres").run("select pg_promote()");
        lost.store(true, Ordering::SeqCst);
        // They were outside of transactions.
        for client in &mut idle {
            assert_eq!(client.one("select inet_server_port()"), standby.port.to_string());
        }
        // This one was inside, and is told so or closed.
        let replies = inside.try_query("select 1").unwrap_or_default();
        assert!(!replies.iter().any(|reply| reply.tag == b'D'), "{replies:?}");
        let mut new = standby.superuser("postgres");
        new.run("alter system set synchronous_standby_names = ''");
        new.run("select pg_reload_conf()");
        let before: u64 = new.one("select count(*) from written").parse().expect("a count");
        wait::until("writes to the other server", || {
            let count: u64 = new.one("select count(*) from written").parse().expect("a count");
            count > before + 20
        });
        ended.store(true, Ordering::SeqCst);
        writer.join().expect("the writer")
    });
    assert!(acknowledged.iter().any(|(_, later)| *later));
    let rows = standby.superuser("postgres").rows("select n from written");
    let there: std::collections::HashSet<String> =
        rows.into_iter().filter_map(|mut row| row.pop().flatten()).collect();
    for (n, _) in acknowledged {
        assert!(there.contains(&n.to_string()), "{n} was acknowledged and is lost");
    }
    // It comes back and believes that it is the primary, as nobody has fenced it.
    primary.launch();
    gateway.console().run("reload");
    gateway.console().run("reconnect");
    assert_eq!(server(&gateway), standby.port);
    assert!(gateway.said().contains("host_changed"));
}

#[test]
fn clients_go_on_through_a_planned_change_of_the_primary() {
    let primary = Cluster::start("primary", &[]);
    let standby = primary.standby();
    let gateway = Gateway::start(
        config(&[primary.port, standby.port], "primary").set("pool.wait_timeout", "60s"),
    );
    let mut clients: Vec<WireClient> = (0..10).map(|_| client(&gateway)).collect();
    clients.iter_mut().for_each(|client| client.run("select 1"));
    // The standby has all of the log then.
    primary.stop("fast");
    standby.superuser("postgres").run("select pg_promote()");
    for client in &mut clients {
        assert_eq!(client.one("select inet_server_port()"), standby.port.to_string());
    }
}

#[test]
fn hosts_in_turn_share_the_servers_and_cancel_requests_find_theirs() {
    let primary = Cluster::start("primary", &[]);
    let standby = primary.standby();
    let ports = [primary.port, standby.port];
    let config = config(&ports, "any").set("databases.app.load_balance_hosts", "round-robin");
    let gateway = Gateway::start(config);
    let mut clients: Vec<WireClient> = (0..4).map(|_| client(&gateway)).collect();
    let mut used: Vec<u16> = Vec::new();
    for client in &mut clients {
        client.run("begin");
        used.push(client.one("select inet_server_port()").parse().expect("a port"));
    }
    for port in ports {
        assert_eq!(used.iter().filter(|used| **used == port).count(), 2, "{used:?}");
    }
    for client in &mut clients {
        client.put(|out| wire::pg::frontend::put_query(out, "select pg_sleep(600)"));
    }
    let sleeping = "select count(*) from pg_stat_activity where query = 'select pg_sleep(600)'";
    for cluster in [&primary, &standby] {
        let mut superuser = cluster.superuser("postgres");
        wait::until("two who sleep", || superuser.one(sleeping) == "2");
    }
    for client in &mut clients {
        client.cancel(&gateway.address());
        let replies = client.until_ready();
        let complaint = replies.iter().find(|reply| reply.tag == b'E').expect("an error");
        assert_eq!(complaint.complaint().code, "57014");
    }
}
