//! Several Pondages behind one balancer: a cancel request may come to any.

use wire::pg::backend::tag;
use wire::pg::frontend;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::place::free_port;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

/// One process at each port, which has these for peers.
fn process(database: &Database, port: u16, peers: &[u16]) -> Gateway {
    let address = |port: &u16| format!("127.0.0.1:{port}");
    let peers: Vec<String> = peers.iter().map(address).collect();
    let config = Config::of(database).set("listen.postgres", [address(&port).as_str()]);
    let mut gateway = Gateway::start(config.set("runtime.peers", peers.join(",")));
    gateway.port = port;
    gateway
}

fn sleep(client: &mut WireClient, database: &Database) {
    client.put(|out| frontend::put_query(out, "select pg_sleep(600)"));
    let asleep = format!(
        "select count(*) from pg_stat_activity where datname = '{}' and wait_event = 'PgSleep'",
        database.name
    );
    wait::until("the query to sleep", || cluster().superuser("postgres").one(&asleep) == "1");
}

#[test]
fn a_cancel_request_finds_its_client_at_a_peer() {
    let database = cluster().database();
    let ports = [free_port(), free_port(), free_port()];
    // The first asks the second, which asks nobody: whoever is to be found has to be in the list.
    let first = process(&database, ports[0], &[ports[1], ports[2]]);
    let second = process(&database, ports[1], &[ports[0]]);
    let parameters = [("user", APP), ("database", database.name.as_str())];
    for minor in [0, 2] {
        let mut client = WireClient::connect(&second.address());
        client.put(|out| wire::pg::startup::put_startup(out, minor, &parameters));
        client.authenticate(APP, APP_PASSWORD).expect("logged in");
        sleep(&mut client, &database);
        client.cancel(&first.address());
        let answer = client.until_ready();
        let error = answer.iter().find(|message| message.tag == tag::ERROR);
        assert_eq!(error.expect("cancelled").complaint().code, "57014");
        assert_eq!(client.one("select 'goes on'"), "goes on");
    }
    // Nobody listens at the third address, which only the log tells.
    wait::until("a word about it", || first.said().contains("event=peer_failed"));
    // What a peer has passed on goes no further.
    let third = process(&database, ports[2], &[ports[1]]);
    let mut client = first.client(&database);
    sleep(&mut client, &database);
    client.cancel(&third.address());
    client.expect_silence(std::time::Duration::from_millis(500));
    client.cancel(&second.address());
    client.until_ready();
}
