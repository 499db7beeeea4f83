//! Direct TLS: the handshake without a request before it.

use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::server::{tls, Server};
use crate::config::{PoolConfig, ServerTls, ServerTlsMode, TlsNegotiation};
use crate::control::client_tls;
use crate::control::dial::Dialer;
use crate::control::messages::{OpenError, OpenKind};
use crate::control::pem;

async fn open(config: &PoolConfig) -> Result<String, OpenError> {
    Dialer::default().open(config, None, &OpenKind::Pooled).await.map(|opened| opened.tls)
}

/// Takes TLS at once, as PostgreSQL does from version 17 on, with `alpn` or without any; what is
/// inside goes to `server` as it is. Gives its port.
async fn front(server: &Server, alpn: Option<&[u8]>) -> u16 {
    let certificates = &server.certificates;
    let mut config = rustls::ServerConfig::builder_with_provider(client_tls::provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            pem::certificates(&certificates.server_cert_file).expect("certificate"),
            pem::private_key(&certificates.server_key_file).expect("key"),
        )
        .expect("a pair");
    config.alpn_protocols = alpn.into_iter().map(<[u8]>::to_vec).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let (port, upstream) = (listener.local_addr().expect("address").port(), server.cluster.port());
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.expect("accept");
            let Ok(mut client) = acceptor.accept(client).await else { continue };
            let mut socket = TcpStream::connect(("127.0.0.1", upstream)).await.expect("connect");
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut socket).await });
        }
    });
    port
}

fn direct(server: &Server, mode: ServerTlsMode, port: u16) -> PoolConfig {
    let mut config = server.config("scram");
    let ca = Some(server.certificates.ca_file.clone());
    config.upstream.tls = ServerTls { negotiation: TlsNegotiation::Direct, ..tls(mode, ca) };
    config.upstream.host = crate::config::Host::Tcp("localhost".to_owned());
    config.upstream.port = port;
    config
}

#[tokio::test]
async fn tls_may_begin_at_once_if_both_ends_say_that_it_is_for_postgresql() {
    let server = Server::start().await;
    let port = front(&server, Some(client_tls::ALPN)).await;
    for mode in [ServerTlsMode::Require, ServerTlsMode::VerifyCa, ServerTlsMode::VerifyFull] {
        let opened = open(&direct(&server, mode, port)).await.expect("logged in");
        assert!(opened.starts_with("TLSv1.3"), "{mode:?} {opened}");
    }

    // One that speaks TLS, but does not say for what.
    let port = front(&server, None).await;
    let error = open(&direct(&server, ServerTlsMode::Require, port)).await.expect_err("no ALPN");
    assert!(error.permanent, "{error:?}");
    assert!(error.message.contains("did not agree to speak PostgreSQL"), "{error:?}");

    // One that has another protocol.
    let port = front(&server, Some(b"h2")).await;
    let error = open(&direct(&server, ServerTlsMode::Require, port)).await.expect_err("h2");
    assert!(error.message.contains("TLS handshake failed"), "{error:?}");

    // PostgreSQL 15 takes it for a start-up packet of some length.
    let port = server.cluster.port();
    let error = open(&direct(&server, ServerTlsMode::Require, port)).await.expect_err("15");
    assert!(error.message.contains("TLS handshake failed"), "{error:?}");
    let hint = error.hint.as_deref().unwrap_or_default();
    assert!(hint.contains("tls_negotiation") && hint.contains("PostgreSQL 17"), "{error:?}");
}

#[tokio::test]
async fn a_cancel_request_begins_with_tls_as_its_connection_did() {
    let server = Server::start().await;
    let port = front(&server, Some(client_tls::ALPN)).await;
    let config = direct(&server, ServerTlsMode::VerifyFull, port);
    let dialer = Dialer::default();
    let opened = dialer.open(&config, None, &OpenKind::Pooled).await.expect("logged in");
    let asked = dialer.cancel_or_why(&config, &opened.ends, opened.pid, &opened.key).await;
    assert_eq!(asked, Ok(()));
}
