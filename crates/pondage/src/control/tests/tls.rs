//! Handshakes of clients.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::certificates::{self_signed, Certificates};
use super::server;
use crate::config::{ListenTls, ListenTlsMode, ServerTls, ServerTlsMode, TlsVersion, TlsVersions};
use crate::control::{client_tls, tls};
use crate::link::{Door, Link, Socket};

struct Files {
    directory: std::path::PathBuf,
    certificates: Certificates,
}

impl Files {
    fn make(name: &str) -> Files {
        let directory =
            std::env::temp_dir().join(format!("pondage-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("directory");
        let certificates = Certificates::make(&directory);
        Files { directory, certificates }
    }

    fn listen(&self, mode: ListenTlsMode) -> ListenTls {
        ListenTls {
            mode,
            cert: Some(self.certificates.server_cert_file.clone()),
            key: Some(self.certificates.server_key_file.clone()),
            client_ca: (mode == ListenTlsMode::VerifyClient)
                .then(|| self.certificates.ca_file.clone()),
            versions: TlsVersions::default(),
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A client that verifies the server, with a certificate or without, with ALPN or without.
fn client(files: &Files, certified: bool, alpn: bool) -> rustls::ClientConnection {
    let certificates = &files.certificates;
    let mut config = client_tls::build(&ServerTls {
        cert: certified.then(|| certificates.client_cert_file.clone()),
        key: certified.then(|| certificates.client_key_file.clone()),
        ..server::tls(ServerTlsMode::VerifyFull, Some(certificates.ca_file.clone()))
    })
    .expect("client");
    if !alpn {
        config.alpn_protocols.clear();
    }
    let name = "localhost".try_into().expect("name");
    rustls::ClientConnection::new(Arc::new(config), name).expect("connection")
}

/// A client thread that handshakes, sends `hello` and waits for the end; and our end of it.
fn connect(mut session: rustls::ClientConnection) -> (TcpStream, std::thread::JoinHandle<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let thread = std::thread::spawn(move || {
        let mut socket = TcpStream::connect(address).expect("connect");
        let mut stream = rustls::Stream::new(&mut session, &mut socket);
        let sent = stream.write_all(b"hello").and_then(|()| stream.flush());
        let mut end = [0; 1];
        let _ = std::io::Read::read(&mut socket, &mut end);
        sent.is_ok()
    });
    let (stream, _) = listener.accept().expect("accept");
    stream.set_nonblocking(true).expect("non-blocking");
    (stream, thread)
}

fn link(stream: TcpStream, early: Vec<u8>) -> Link {
    Link { socket: Socket::Tcp(stream), tls: None, early }
}

/// What the worker reads first of the client.
fn first_bytes(mut link: Link) -> Vec<u8> {
    let mut received = std::mem::take(&mut link.early);
    let Socket::Tcp(socket) = &mut link.socket else { panic!("not TCP") };
    socket.set_nonblocking(false).expect("blocking");
    let Some(rustls::Connection::Server(session)) = link.tls.as_deref_mut() else {
        panic!("not TLS")
    };
    let mut stream = rustls::Stream::new(session, socket);
    let mut buffer = [0; 16];
    while received.len() < 5 {
        let read = std::io::Read::read(&mut stream, &mut buffer).expect("read");
        received.extend_from_slice(&buffer[..read]);
    }
    received
}

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_handshake_hands_over_everything_the_client_sent_after_it() {
    let files = Files::make("handover");
    let config = tls::listener(&files.listen(ListenTlsMode::Prefer)).expect("files").expect("on");
    let (stream, thread) = connect(client(&files, false, true));
    let (link, name) = tls::accept(&config, Door::Postgres, link(stream, Vec::new()), LIMIT)
        .await
        .expect("accept");
    assert!(name.starts_with("TLSv1.3/TLS_"), "{name}");
    assert_eq!(first_bytes(link), b"hello");
    assert!(thread.join().expect("client"));
}

#[tokio::test]
async fn direct_tls_works_with_bytes_already_read_and_needs_alpn() {
    let files = Files::make("direct");
    let config = tls::listener(&files.listen(ListenTlsMode::Require)).expect("files").expect("on");
    for alpn in [true, false] {
        let (mut stream, thread) = connect(client(&files, false, alpn));
        stream.set_nonblocking(false).expect("blocking");
        let mut early = vec![0; 7];
        std::io::Read::read_exact(&mut stream, &mut early).expect("first bytes");
        stream.set_nonblocking(true).expect("non-blocking");
        let accepted = tls::accept(&config, Door::Postgres, link(stream, early), LIMIT).await;
        assert_eq!(accepted.is_ok(), alpn);
        drop(accepted);
        thread.join().expect("client");
    }
}

#[tokio::test]
async fn verify_client_asks_for_a_certificate_of_the_authority() {
    let files = Files::make("verify");
    let config =
        tls::listener(&files.listen(ListenTlsMode::VerifyClient)).expect("files").expect("on");
    for certified in [true, false] {
        let (stream, thread) = connect(client(&files, certified, true));
        let accepted = tls::accept(&config, Door::Postgres, link(stream, Vec::new()), LIMIT).await;
        assert_eq!(accepted.is_ok(), certified);
        drop(accepted);
        thread.join().expect("client");
    }
}

#[tokio::test]
async fn a_client_that_never_speaks_is_given_up() {
    let files = Files::make("silent");
    let config = tls::listener(&files.listen(ListenTlsMode::Prefer)).expect("files").expect("on");
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let _silent = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let (stream, _) = listener.accept().expect("accept");
    stream.set_nonblocking(true).expect("non-blocking");
    let limit = Duration::from_millis(20);
    let error = tls::accept(&config, Door::Postgres, link(stream, Vec::new()), limit)
        .await
        .expect_err("late");
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn a_certificate_that_signs_itself_is_trusted_where_the_file_lists_it_and_while_it_is_valid()
{
    let files = Files::make("itself");
    let (good, good_key) = self_signed(&files.directory, "good", 4000);
    let (other, _) = self_signed(&files.directory, "other", 4000);
    let (old, old_key) = self_signed(&files.directory, "old", 2021);
    use ServerTlsMode::{VerifyCa, VerifyFull};
    for (mode, cert, key, ca, name, trusted) in [
        (VerifyFull, &good, &good_key, &good, "localhost", true),
        (VerifyCa, &good, &good_key, &good, "elsewhere", true),
        (VerifyFull, &good, &good_key, &good, "elsewhere", false),
        (VerifyFull, &good, &good_key, &other, "localhost", false),
        (VerifyCa, &good, &good_key, &other, "localhost", false),
        (VerifyCa, &old, &old_key, &old, "localhost", false),
    ] {
        let listen = ListenTls {
            mode: ListenTlsMode::Require,
            cert: Some(cert.clone()),
            key: Some(key.clone()),
            client_ca: None,
            versions: TlsVersions::default(),
        };
        let config = tls::listener(&listen).expect("files").expect("on");
        let trust = server::tls(mode, Some(ca.clone()));
        let client = Arc::new(client_tls::build(&trust).expect("client"));
        let name = name.try_into().expect("name");
        let session = rustls::ClientConnection::new(client, name).expect("connection");
        let (stream, thread) = connect(session);
        let accepted = tls::accept(&config, Door::Postgres, link(stream, Vec::new()), LIMIT).await;
        drop(accepted);
        assert_eq!(thread.join().expect("client"), trusted, "{mode:?} {cert:?} {ca:?}");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_named_with_its_code() {
    let files = Files::make("unusable");
    let listen = files.listen(ListenTlsMode::Require);
    let error = |listen: &ListenTls| tls::listener(listen).expect_err("unusable").to_string();

    let wrong =
        ListenTls { key: Some(files.certificates.client_key_file.clone()), ..listen.clone() };
    let text = error(&wrong);
    assert!(text.contains("P0204") && text.contains("server.pem"), "{text}");
    assert!(text.contains("does not belong to the private key"), "{text}");

    let absent = ListenTls { cert: Some("/nowhere/server.pem".into()), ..listen.clone() };
    let text = error(&absent);
    assert!(text.contains("P0201") && text.contains("/nowhere/server.pem"), "{text}");

    let empty = ListenTls { key: Some(files.certificates.ca_file.clone()), ..listen };
    let text = error(&empty);
    assert!(text.contains("P0202") && text.contains("ca.pem"), "{text}");
}

/// The version that a client and a listener of these versions agree on.
async fn agreed(files: &Files, listen: TlsVersions, client: TlsVersions) -> Option<String> {
    let listen = ListenTls { versions: listen, ..files.listen(ListenTlsMode::Require) };
    let config = tls::listener(&listen).expect("files").expect("on");
    let trust = ServerTls {
        versions: client,
        ..server::tls(ServerTlsMode::VerifyFull, Some(files.certificates.ca_file.clone()))
    };
    let client = Arc::new(client_tls::build(&trust).expect("client"));
    let name = "localhost".try_into().expect("name");
    let session = rustls::ClientConnection::new(client, name).expect("connection");
    let (stream, thread) = connect(session);
    let accepted = tls::accept(&config, Door::Postgres, link(stream, Vec::new()), LIMIT).await;
    let version =
        accepted.as_ref().ok().and_then(|(_, tls)| Some(tls.split_once('/')?.0.to_owned()));
    drop(accepted);
    let _ = thread.join();
    version
}

#[tokio::test]
async fn versions_of_tls_are_those_that_both_sides_are_allowed() {
    let files = Files::make("versions");
    let both = TlsVersions::default();
    let old = TlsVersions { most: TlsVersion::V1_2, ..both };
    let new = TlsVersions { least: TlsVersion::V1_3, ..both };
    for (listen, client, expected) in [
        (both, both, Some("TLSv1.3")),
        (old, both, Some("TLSv1.2")),
        (both, old, Some("TLSv1.2")),
        (new, both, Some("TLSv1.3")),
        (both, new, Some("TLSv1.3")),
        (new, old, None),
        (old, new, None),
    ] {
        let version = agreed(&files, listen, client).await;
        assert_eq!(version.as_deref(), expected, "{listen:?} {client:?}");
    }
}
