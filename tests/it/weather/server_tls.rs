//! Servers that are spoken to in TLS from the first byte (`sslnegotiation=direct`). PostgreSQL
//! does so from version 17 on, and so does Pondage, which stands for it here.

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

/// One that PostgreSQL is behind, for others to be before it.
fn inner(database: &Database, mode: &str) -> Gateway {
    let certificates = &cluster().certificates;
    let config = Config::of(database)
        .set("listen.tls.mode", mode)
        .set("listen.tls.cert", certificates.cert.display().to_string())
        .set("listen.tls.key", certificates.key.display().to_string());
    Gateway::start(config)
}

/// Begins with TLS at `port`, and asks for a certificate for the name `localhost`.
fn outer(database: &Database, port: u16) -> Config {
    let ca = cluster().certificates.ca.display();
    let url = format!(
        "postgres://localhost:{port}/{}?sslmode=verify-full&sslnegotiation=direct&sslrootcert={ca}",
        database.name
    );
    Config::base()
        .set("pool.wait_timeout", "5s")
        .set(&format!("databases.{}.url", database.name), url)
}

#[test]
fn a_server_that_takes_tls_at_once_is_spoken_to_so() {
    let database = cluster().database();
    let inner = inner(&database, "prefer");
    let gateway = Gateway::start(outer(&database, inner.port));
    let mut client = gateway.client(&database);
    assert_eq!(client.one("select 'al' || 'ive'"), "alive");
    let seen = inner.show("clients");
    let ours = seen.iter().find(|row| row["database"] == database.name).expect("a client");
    assert!(ours["tls"].starts_with("TLSv1.3"), "{ours:?}");

    // A cancel request goes the same way.
    client.put(|out| wire::pg::frontend::put_query(out, "select pg_sleep(1000)"));
    let at_work = format!(
        "select count(*) from pg_stat_activity where datname = '{}' and query like '%pg_sleep(10%' \
         and pid <> pg_backend_pid() and state = 'active'",
        database.name
    );
    wait::until("the query to run", || database.one(&at_work) == "1");
    client.cancel(&gateway.address());
    let answer = client.until_ready();
    assert!(answer
        .iter()
        .any(|message| message.tag == b'E' && message.complaint().code == "57014"));
    assert_eq!(client.one("select 'still'"), "still");
}

#[test]
fn a_server_that_has_to_be_asked_first_is_an_error_that_says_so() {
    let database = cluster().database();
    let refused = |gateway: &Gateway| {
        let parameters = [("user", APP), ("database", database.name.as_str())];
        WireClient::try_login(&gateway.address(), APP_PASSWORD, &parameters).err().expect("refused")
    };
    // PostgreSQL 15 takes it for a start-up packet of an impossible length.
    let gateway = Gateway::start(outer(&database, cluster().port));
    let why = format!("{:?}", refused(&gateway));
    assert!(why.contains("tls_negotiation") && why.contains("PostgreSQL 17"), "{why}");
    assert!(gateway.said().contains("TLS handshake failed"));

    // One without TLS.
    let inner = inner(&database, "disable");
    let gateway = Gateway::start(outer(&database, inner.port));
    let why = format!("{:?}", refused(&gateway));
    assert!(why.contains("tls_negotiation") && why.contains("PostgreSQL 17"), "{why}");
}
