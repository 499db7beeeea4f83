//! Hosts are asked what they are: who is another thing than it was is left, who does not answer is
//! banned and comes back.

use std::collections::BTreeMap;

use super::{client, config, server};
use crate::kit::cluster::{Cluster, APP};
use crate::kit::gateway::Gateway;
use crate::kit::wait;

fn host(gateway: &Gateway, port: u16) -> BTreeMap<String, String> {
    let mut hosts = gateway.show("hosts");
    hosts.retain(|host| host["port"] == port.to_string());
    assert_eq!(hosts.len(), 1, "{hosts:?}");
    hosts.remove(0)
}

fn is(gateway: &Gateway, port: u16, column: &str, value: &str) {
    let mut found = String::new();
    let holds = wait::within(wait::DEADLINE, || {
        found = host(gateway, port)[column].clone();
        (found == value).then_some(())
    });
    assert!(holds.is_some(), "{column} of {port} is {found}, not {value}");
}

#[test]
fn a_standby_that_was_promoted_is_left_by_those_who_want_standbys() {
    let primary = Cluster::start("primary", &[]);
    let (first, second) = (primary.standby(), primary.standby());
    let ports = [primary.port, first.port, second.port];
    let gateway =
        Gateway::start(config(&ports, "standby").set("databases.app.host_check_interval", "100ms"));
    assert_eq!(server(&gateway), first.port);
    for (port, role) in [(ports[0], "primary"), (ports[1], "standby"), (ports[2], "standby")] {
        is(&gateway, port, "role", role);
        is(&gateway, port, "state", "up");
    }
    let mut inside = client(&gateway);
    inside.run("begin isolation level repeatable read");
    inside.run("select 1");
    first.superuser("postgres").run("select pg_promote()");
    is(&gateway, first.port, "role", "primary");
    // Idle connections there are closed at once.
    wait::until("the other standby", || server(&gateway) == second.port);
    // One that is in use, when it is given back.
    assert_eq!(inside.one("select inet_server_port()"), first.port.to_string());
    inside.run("commit");
    assert_eq!(inside.one("select inet_server_port()"), second.port.to_string());
    is(&gateway, first.port, "connections", "0");
    assert!(gateway.said().contains("host_role") && gateway.said().contains("host_left"));
}

#[test]
fn a_server_that_refuses_writes_is_asked_at_once_and_left_if_it_means_all() {
    let (one, other) = (Cluster::start("one", &[]), Cluster::start("other", &[]));
    for cluster in [&one, &other] {
        let mut superuser = cluster.superuser("postgres");
        superuser.run(&format!("create table t (n int); grant all on t to {APP}"));
    }
    // Nobody asks by himself for a long time.
    let config = config(&[one.port, other.port], "read-write");
    let gateway = Gateway::start(config.set("databases.app.host_check_interval", "1h"));
    let mut client = client(&gateway);
    client.run("insert into t values (1)");
    is(&gateway, one.port, "role", "primary");
    is(&gateway, other.port, "role", "primary");
    let probes = || host(&gateway, one.port)["probes"].parse::<u64>().expect("a count");
    let before = probes();
    client.run("begin read only");
    assert_eq!(client.error("insert into t values (1)").code, "25006");
    client.run("rollback");
    wait::until("a probe", || probes() > before);
    client.run("insert into t values (1)");
    assert_eq!(other.superuser("postgres").one("select count(*) from t"), "0", "it was only he");
    let mut superuser = one.superuser("postgres");
    superuser.run("alter system set default_transaction_read_only = on");
    superuser.run("select pg_reload_conf()");
    wait::until("a write at the other server", || {
        // What a server reports while a client has it is taken for the client's own setting.
        let replies = self::client(&gateway).query("insert into t values (2)");
        let errors = replies.iter().filter(|reply| reply.tag == b'E');
        errors.for_each(|reply| assert_eq!(reply.complaint().code, "25006"));
        other.superuser("postgres").one("select count(*) from t") != "0"
    });
    is(&gateway, one.port, "role", "read-only");
}

#[test]
fn a_host_that_does_not_answer_is_banned_with_the_reason_until_it_is_back() {
    let primary = Cluster::start("primary", &[]);
    let standby = primary.standby();
    let ports = [primary.port, standby.port];
    let interval = "databases.app.host_check_interval";
    let gateway = Gateway::start(config(&ports, "primary").set(interval, "100ms"));
    assert_eq!(server(&gateway), primary.port);
    is(&gateway, primary.port, "connections", "1");
    is(&gateway, standby.port, "role", "standby");
    is(&gateway, standby.port, "connections", "0");
    let mut superuser = primary.superuser("postgres");
    superuser.run("create table t (n int); insert into t select generate_series(1, 1000)");
    is(&gateway, standby.port, "lag_bytes", "0");
    standby.superuser("postgres").run("select pg_wal_replay_pause()");
    superuser.run("insert into t select generate_series(1, 1000)");
    wait::until("a standby that is behind", || {
        host(&gateway, standby.port)["lag_bytes"].parse().is_ok_and(|lag: u64| lag > 10_000)
    });
    standby.crash();
    is(&gateway, standby.port, "state", "banned");
    let banned = host(&gateway, standby.port);
    assert!(banned["why"].contains("onnect"), "{banned:?}");
    assert!(!banned["banned_until"].is_empty(), "{banned:?}");
    let page = gateway.page("/metrics").expect("the metrics");
    let labels = format!("database=\"app\",host=\"127.0.0.1\",port=\"{}\"", standby.port);
    for line in ["pondage_host_banned", "pondage_host_up"] {
        assert!(page.contains(&format!("{line}{{{labels},")), "{line}\n{page}");
    }
    assert_eq!(server(&gateway), primary.port, "nobody minds");
    standby.launch();
    is(&gateway, standby.port, "state", "up");
    assert!(gateway.said().contains("host_banned") && gateway.said().contains("host_back"));
}

#[test]
fn the_host_with_the_fewest_connections_gets_the_next_one() {
    let primary = Cluster::start("primary", &[]);
    let standby = primary.standby();
    let ports = [primary.port, standby.port];
    let balance = "databases.app.load_balance_hosts";
    let gateway = Gateway::start(config(&ports, "any").set(balance, "least-connections"));
    let mut clients: Vec<_> = (0..4).map(|_| client(&gateway)).collect();
    for client in &mut clients {
        client.run("begin");
        client.run("select 1");
    }
    for port in ports {
        is(&gateway, port, "connections", "2");
    }
}
