//! Clients that begin with TLS instead of asking for it (`sslnegotiation=direct` of libpq 17).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use wire::pg::{frontend, startup};

use crate::kit::cluster::APP;
use crate::kit::{cluster, Address, Config, Database, Gateway};

type Stream = StreamOwned<ClientConnection, TcpStream>;

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
fn client(gateway: &Gateway, alpn: Option<&str>) -> Stream {
    let Address::Tcp(host, port) = gateway.address() else { panic!("TCP") };
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(&cluster().certificates.ca).expect("an authority");
    roots.add(ca).expect("an authority");
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = "localhost".try_into().expect("a name");
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    let socket = TcpStream::connect((host.as_str(), port)).expect("connect");
    StreamOwned::new(session, socket)
}

/// Reads until a ReadyForQuery; none: the connection ended before.
fn until_ready(stream: &mut Stream) -> Option<Vec<u8>> {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    while !received.ends_with(b"Z\0\0\0\x05I") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => received.extend_from_slice(&buffer[..read]),
        }
    }
    Some(received)
}

/// Logs in and asks something.
fn asks(mut stream: Stream, database: &Database) -> bool {
    let mut out = Vec::new();
    startup::put_startup(&mut out, 0, &[("user", APP), ("database", &database.name)]);
    if stream.write_all(&out).is_err() || until_ready(&mut stream).is_none() {
        return false;
    }
    out.clear();
    frontend::put_query(&mut out, "select 'al' || 'ive'");
    stream.write_all(&out).expect("a query");
    let answer = until_ready(&mut stream).expect("an answer");
    String::from_utf8_lossy(&answer).contains("alive")
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
        let mut stream = client(&gateway, alpn);
        let mut request = Vec::new();
        startup::put_ssl_request(&mut request);
        stream.sock.write_all(&request).expect("SSLRequest");
        let mut answer = [0];
        stream.sock.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"S");
        assert_eq!(asks(stream, &database), lets_in, "{alpn:?}");
    }
}

/// The handshake may come in pieces: the worker passes on what it has read of it.
#[test]
fn direct_tls_works_in_pieces() {
    let database = cluster().database();
    let gateway = gateway(&database, "require");
    let mut stream = client(&gateway, Some("postgresql"));
    stream.sock.set_nodelay(true).expect("no delay");
    let mut hello = Vec::new();
    stream.conn.write_tls(&mut hello).expect("a ClientHello");
    assert_eq!(hello[0], 0x16);
    for byte in &hello {
        stream.sock.write_all(std::slice::from_ref(byte)).expect("a byte");
    }
    assert!(asks(stream, &database));
}

/// It has come encrypted already: who asks for TLS again is confused, or led astray.
#[test]
fn an_ssl_request_inside_of_direct_tls_is_refused() {
    let database = cluster().database();
    let gateway = gateway(&database, "prefer");
    let mut stream = client(&gateway, Some("postgresql"));
    let mut request = Vec::new();
    startup::put_ssl_request(&mut request);
    stream.write_all(&request).expect("SSLRequest");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(String::from_utf8_lossy(&answer).contains("SSLRequest was sent twice"), "{answer:?}");
}
