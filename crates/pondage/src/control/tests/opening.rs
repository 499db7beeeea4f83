//! Opening server connections: every method, every mode, and the words of every failure.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use wire::pg::auth::Secret;

use super::server::{tls, Server};
use crate::config::{Host, PoolConfig, ServerTlsMode};
use crate::control::dial::Dialer;
use crate::control::messages::{OpenError, OpenKind, Opened};
use crate::link::{Ends, Link, Socket};

async fn open(config: &PoolConfig) -> Result<Opened, OpenError> {
    Dialer::default().open(config, None, &OpenKind::Pooled).await
}

async fn refused(config: &PoolConfig) -> OpenError {
    open(config).await.expect_err("a refusal")
}

/// Whether a handed-over connection answers a query.
fn answers(link: Link) -> bool {
    run(link, "SELECT 'here'").contains("here")
}

/// Runs a query on a handed-over connection as a worker would; gives what came back as text.
pub fn run(mut link: Link, sql: &str) -> String {
    let mut query = Vec::new();
    wire::pg::frontend::put_query(&mut query, sql);
    let mut received = std::mem::take(&mut link.early);
    let patience = Some(Duration::from_secs(20));
    match &mut link.socket {
        Socket::Tcp(stream) => {
            stream.set_nonblocking(false).expect("blocking");
            stream.set_read_timeout(patience).expect("timeout");
            match link.tls.as_deref_mut() {
                Some(rustls::Connection::Client(session)) => {
                    exchange(&mut rustls::Stream::new(session, stream), &query, &mut received)
                }
                Some(other) => panic!("{other:?} towards a server"),
                None => exchange(stream, &query, &mut received),
            }
        }
        Socket::Unix(stream) => {
            stream.set_nonblocking(false).expect("blocking");
            stream.set_read_timeout(patience).expect("timeout");
            exchange(stream, &query, &mut received)
        }
    }
    String::from_utf8_lossy(&received).into_owned()
}

fn exchange(stream: &mut (impl Read + Write), query: &[u8], received: &mut Vec<u8>) {
    stream.write_all(query).expect("write");
    let mut buffer = [0; 4096];
    // The answer ends in ReadyForQuery: Z, a length of 5, I.
    while !received.ends_with(b"Z\0\0\0\x05I") {
        let read = stream.read(&mut buffer).expect("read");
        assert_ne!(read, 0, "closed");
        received.extend_from_slice(&buffer[..read]);
    }
}

#[tokio::test]
async fn every_method_of_authentication_logs_in() {
    let server = Server::start().await;
    for user in ["trusted", "clear", "md5", "scram"] {
        let opened = open(&server.config(user)).await.unwrap_or_else(|e| panic!("{user}: {e:?}"));
        assert!(opened.pid != 0 && opened.key.len() == 4 && opened.tls.is_empty());
        assert!(opened.parameters.iter().any(|(name, _)| name == "server_version"));
        assert!(answers(opened.link), "{user}");
    }
    let socket = Host::Unix(server.cluster.directory().to_owned());
    let opened = open(&server.config_to("scram", None, socket)).await.expect("Unix socket");
    assert!(answers(opened.link));

    let hash = server.value("SELECT rolpassword FROM pg_authid WHERE rolname = 'md5'").await;
    let mut config = server.config("md5");
    config.upstream.password = Secret::parse(&hash).ok();
    assert!(answers(open(&config).await.expect("md5 from its hash").link));

    let replication = OpenKind::Replication {
        parameters: vec![
            ("user".to_owned(), "nobody".to_owned()),
            ("replication".to_owned(), "database".to_owned()),
            ("application_name".to_owned(), "copy".to_owned()),
        ],
    };
    server.run("ALTER ROLE scram REPLICATION").await;
    let opened = Dialer::default().open(&server.config("scram"), None, &replication).await;
    let opened = opened.expect("replication");
    let name = opened.parameters.iter().find(|(name, _)| name == "application_name");
    assert_eq!(name.map(|(_, value)| value.as_str()), Some("copy"));
    assert!(answers(opened.link));
}

#[tokio::test]
async fn every_refusal_says_what_where_and_why() {
    let server = Server::start().await;
    let port = server.cluster.port();
    let at = format!("127.0.0.1:{port}");

    let mut config = server.config("scram");
    config.upstream.password = Some(Secret::Plain("wrong".to_owned()));
    let error = refused(&config).await;
    assert_eq!((error.code.as_str(), error.permanent), ("28P01", true));
    let login = format!("cannot log in to the server of database \"app\" at {at} as \"scram\": ");
    assert_eq!(error.message, format!("{login}password authentication failed for user \"scram\""));

    config.upstream.password = None;
    let error = refused(&config).await;
    assert_eq!((error.code.as_str(), error.permanent), ("28P01", true));
    let why = "the server asks for SCRAM-SHA-256 authentication and no password is known";
    assert_eq!(error.message, format!("{login}{why}"));
    assert!(error.hint.is_some());

    let verifier = server.value("SELECT rolpassword FROM pg_authid WHERE rolname = 'scram'").await;
    config.upstream.password = Secret::parse(&verifier).ok();
    assert_eq!(refused(&config).await.code, "28P01");

    let error = refused(&server.config("refused")).await;
    assert_eq!((error.code.as_str(), error.permanent), ("28000", true));

    let mut config = server.config("scram");
    config.upstream.database = "nowhere".to_owned();
    let error = refused(&config).await;
    assert_eq!((error.code.as_str(), error.permanent), ("3D000", true));

    let mut config = server.config("scram");
    config.upstream.connect_query = Some("SELECT 1; SELECT nothing".to_owned());
    let error = refused(&config).await;
    assert_eq!(error.code, "42703");
    assert!(error.message.starts_with("connect_query of database \"app\" failed at"), "{error:?}");
    config.upstream.connect_query = Some("SET TimeZone = 'Asia/Tokyo'".to_owned());
    let opened = open(&config).await.expect("connect_query");
    let zone = opened.parameters.iter().find(|(name, _)| name == "TimeZone");
    assert_eq!(zone.map(|(_, value)| value.as_str()), Some("Asia/Tokyo"));

    drop(server);
    let error = refused(&config).await;
    assert_eq!((error.code.as_str(), error.permanent), ("08001", false));
    assert_eq!(
        error.message,
        format!(
            "cannot connect to the server of database \"app\" at {at}: Connection refused (os \
             error 111)"
        )
    );
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_given_up_after_connect_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("bind");
    let mut config = super::server::pool(crate::config::Upstream {
        host: Host::Tcp("127.0.0.1".to_owned()),
        port: silent.local_addr().expect("address").port(),
        database: "app".to_owned(),
        user: "app".to_owned(),
        password: None,
        tls: tls(ServerTlsMode::Prefer, None),
        protocol: crate::config::ServerProtocol::V3_0,
        connect_query: None,
        application_name: None,
        several: crate::config::Several::default(),
    });
    config.connect_timeout = Duration::from_millis(50);
    let error = refused(&config).await;
    assert_eq!((error.code.as_str(), error.permanent), ("08001", false));
    assert!(
        error.message.ends_with("no answer within 50ms (connect_timeout) to the TLS request"),
        "{error:?}"
    );
    config.upstream.tls.mode = ServerTlsMode::Disable;
    let error = refused(&config).await;
    assert!(error.message.ends_with("(connect_timeout) to the log-in"), "{error:?}");
}

#[tokio::test]
async fn tls_modes_protect_as_they_do_in_libpq() {
    let server = Server::start().await;
    let certificates = &server.certificates;
    let ca = || Some(certificates.ca_file.clone());
    let other = || Some(certificates.other_ca_file.clone());
    let by_name = Host::Tcp("localhost".to_owned());
    let by_address = Host::Tcp("127.0.0.1".to_owned());
    let with = |host: &Host, tls| {
        let mut config = server.config_to("scram", Some("pencil"), host.clone());
        config.upstream.tls = tls;
        config
    };
    use ServerTlsMode::{Prefer, Require, VerifyCa, VerifyFull};
    for (host, tls) in [
        (&by_address, tls(Prefer, None)),
        (&by_address, tls(Require, other())),
        (&by_address, tls(VerifyCa, ca())),
        (&by_name, tls(VerifyFull, ca())),
    ] {
        let mode = tls.mode;
        let opened = open(&with(host, tls)).await.unwrap_or_else(|e| panic!("{mode:?}: {e:?}"));
        assert!(opened.tls.starts_with("TLSv1.3/TLS_"), "{mode:?}: {}", opened.tls);
        assert!(answers(opened.link), "{mode:?}");
    }
    for (host, tls, why) in [
        (&by_address, tls(VerifyCa, other()), "UnknownIssuer"),
        (&by_name, tls(VerifyFull, other()), "UnknownIssuer"),
        (&by_address, tls(VerifyFull, ca()), "not valid for name"),
    ] {
        let error = refused(&with(host, tls)).await;
        assert!(error.permanent && error.message.contains(why), "{error:?}");
        assert!(error.message.contains("TLS handshake failed"), "{error:?}");
    }

    let mut config = with(&by_name, tls(VerifyFull, ca()));
    config.upstream.user = "certified".to_owned();
    config.upstream.password = None;
    assert_eq!(refused(&config).await.code, "28000");
    config.upstream.tls.cert = Some(certificates.client_cert_file.clone());
    config.upstream.tls.key = Some(certificates.client_key_file.clone());
    assert!(answers(open(&config).await.expect("certificate").link));
    config.upstream.tls.key = Some(certificates.server_key_file.clone());
    let error = refused(&config).await;
    assert!(error.message.contains("P0204") && error.message.contains("client.pem"), "{error:?}");
    config.upstream.tls.ca = Some("/nowhere/ca.pem".into());
    let error = refused(&config).await;
    assert!(error.permanent, "{error:?}");
    assert!(error.message.contains("P0201") && error.message.contains("/nowhere/ca.pem"));

    server.run("ALTER SYSTEM SET ssl = off").await;
    server.run("SELECT pg_reload_conf()").await;
    while server.value("SHOW ssl").await != "off" {}
    assert!(open(&with(&by_address, tls(Prefer, None))).await.expect("plain").tls.is_empty());
    let error = refused(&with(&by_address, tls(Require, None))).await;
    assert!(error.permanent && error.message.contains("does not support TLS"), "{error:?}");
}

/// A Unix socket of the test's server where that of a local PostgreSQL would be.
struct WellKnown(std::path::PathBuf);

impl WellKnown {
    fn make(server: &Server) -> WellKnown {
        let name = format!(".s.PGSQL.{}", server.cluster.port());
        let place = std::path::Path::new("/tmp").join(&name);
        std::os::unix::fs::symlink(server.cluster.directory().join(name), &place).expect("link");
        WellKnown(place)
    }
}

impl Drop for WellKnown {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn localhost_is_the_unix_socket_unless_that_lets_the_user_not_in_or_tls_is_wanted() {
    let server = Server::start().await;
    let well_known = WellKnown::make(&server);
    let dialer = Dialer::default();
    let ends = async |user: &str, mode| {
        let mut config = server.config_to(user, Some("pencil"), Host::Tcp("localhost".to_owned()));
        config.upstream.tls = tls(mode, None);
        let opened = dialer.open(&config, None, &OpenKind::Pooled).await.expect("open");
        (matches!(opened.ends, Ends::Unix { .. }), config)
    };
    assert!(ends("scram", ServerTlsMode::Prefer).await.0);
    assert!(!ends("scram", ServerTlsMode::Require).await.0);
    let (unix, config) = ends("peered", ServerTlsMode::Disable).await;
    assert!(!unix && dialer.shortcut(&config.upstream).is_none());
    dialer.forget();
    assert_eq!(dialer.shortcut(&config.upstream).as_ref(), Some(&well_known.0));

    // The socket of a server that is gone does not stop the connection over TCP.
    std::fs::remove_file(&well_known.0).expect("remove");
    drop(std::os::unix::net::UnixListener::bind(&well_known.0).expect("bind"));
    assert!(!ends("scram", ServerTlsMode::Disable).await.0);
}

#[tokio::test]
async fn bytes_after_the_answer_to_the_tls_request_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("address").port();
    let impostor = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accept");
        let mut request = [0; 8];
        stream.read_exact(&mut request).expect("request");
        stream.write_all(b"SR\0\0\0\x08\0\0\0\0").expect("answer");
        // Until the other side has closed.
        let _ = stream.read(&mut request);
    });
    let config = super::server::pool(crate::config::Upstream {
        host: Host::Tcp("127.0.0.1".to_owned()),
        port,
        database: "app".to_owned(),
        user: "app".to_owned(),
        password: None,
        tls: tls(ServerTlsMode::Require, None),
        protocol: crate::config::ServerProtocol::V3_0,
        connect_query: None,
        application_name: None,
        several: crate::config::Several::default(),
    });
    let error = refused(&config).await;
    assert!(error.message.contains("unencrypted bytes after it had agreed to TLS"), "{error:?}");
    impostor.join().expect("impostor");
}
