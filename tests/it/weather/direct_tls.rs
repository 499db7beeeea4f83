//! Clients that begin with TLS instead of asking for it (`sslnegotiation=direct` of libpq 17).

use std::io::{Read, Write};

use wire::pg::startup;

use crate::kit::cluster::APP;
use crate::kit::{cluster, Config, Database, Gateway, TlsClient};

fn gateway(database: &Database, mode: &str) -> Gateway {
    let certificates = &cluster().certificates;
    let config = Config::of(database)
        .set("auth.method", "trust")
        .set("listen.tls.mode", mode)
        .set("listen.tls.cert", certificates.cert.display().to_string())
        .set("listen.tls.key", certificates.key.display().to_string());
    Gateway::start(config)
}

/// A client that offers this protocol by ALPN; nothing has been sent yet.
fn client(gateway: &Gateway, alpn: Option<&str>) -> TlsClient {
    TlsClient::connect(&gateway.address(), &cluster().certificates.ca, alpn)
}

/// Logs in and asks something.
fn asks(mut client: TlsClient, database: &Database) -> bool {
    client.log_in(APP, &database.name)
        && client.query("select 'al' || 'ive'").expect("an answer").contains("alive")
}

#[test]
fn direct_tls_works_with_alpn_and_only_with_it() {
    let database = cluster().database();
    for mode in ["prefer", "require"] {
        let gateway = gateway(&database, mode);
        assert!(asks(client(&gateway, Some("postgresql")), &database), "{mode}");
        // A browser or a mail server that is talked into it; whatever the other end says.
        for alpn in [None, Some("http/1.1")] {
            assert!(!asks(client(&gateway, alpn), &database), "{mode} {alpn:?}");
        }
        assert!(asks(client(&gateway, Some("postgresql")), &database), "{mode} lives on");
    }
    let gateway = gateway(&database, "disable");
    assert!(!asks(client(&gateway, Some("postgresql")), &database));
}

/// Behind an SSLRequest, ALPN may be left out: older drivers do not know it. Wrong is wrong.
#[test]
fn alpn_is_optional_behind_an_ssl_request() {
    let database = cluster().database();
    let gateway = gateway(&database, "require");
    for (alpn, lets_in) in [(None, true), (Some("postgresql"), true), (Some("h2"), false)] {
        let mut client = client(&gateway, alpn);
        client.ask();
        assert_eq!(asks(client, &database), lets_in, "{alpn:?}");
    }
}

/// The handshake may come in pieces: the worker passes on what it has read of it.
#[test]
fn direct_tls_works_in_pieces() {
    let database = cluster().database();
    let gateway = gateway(&database, "require");
    let mut client = client(&gateway, Some("postgresql"));
    let TlsClient(stream) = &mut client;
    stream.sock.set_nodelay(true).expect("no delay");
    let mut hello = Vec::new();
    stream.conn.write_tls(&mut hello).expect("a ClientHello");
    assert_eq!(hello[0], 0x16);
    for byte in &hello {
        stream.sock.write_all(std::slice::from_ref(byte)).expect("a byte");
    }
    assert!(asks(client, &database));
}

/// It has come encrypted already: who asks for TLS again is confused, or led astray.
#[test]
fn an_ssl_request_inside_of_direct_tls_is_refused() {
    let database = cluster().database();
    let gateway = gateway(&database, "prefer");
    let TlsClient(mut stream) = client(&gateway, Some("postgresql"));
    let mut request = Vec::new();
    startup::put_ssl_request(&mut request);
    stream.write_all(&request).expect("SSLRequest");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(String::from_utf8_lossy(&answer).contains("SSLRequest was sent twice"), "{answer:?}");
}
