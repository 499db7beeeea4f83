//! Log-ins that are bound to their TLS connection, with PostgreSQL as the judge.

use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{copy_bidirectional, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use wire::pg::startup;

use super::server::{no_tls, tls, Server};
use crate::config::{ChannelBinding, PoolConfig, ServerTls, ServerTlsMode};
use crate::control::client_tls;
use crate::control::dial::Dialer;
use crate::control::messages::{OpenError, OpenKind};
use crate::control::pem;

async fn open(config: &PoolConfig) -> Result<(), OpenError> {
    Dialer::default().open(config, None, &OpenKind::Pooled).await.map(|_| ())
}

fn bound(server: &Server, user: &str, tls: ServerTls, binding: ChannelBinding) -> PoolConfig {
    let mut config = server.config(user);
    config.upstream.tls = ServerTls { binding, ..tls };
    config
}

fn encrypted() -> ServerTls {
    tls(ServerTlsMode::Require, None)
}

#[tokio::test]
async fn a_log_in_is_bound_to_the_servers_certificate() {
    let server = Server::start().await;
    // PostgreSQL refuses who could have bound itself and did not.
    for binding in [ChannelBinding::Disable, ChannelBinding::Prefer, ChannelBinding::Require] {
        let opened = open(&bound(&server, "scram", encrypted(), binding)).await;
        assert_eq!(opened, Ok(()), "{binding:?}");
    }
    let unbound = [
        (no_tls(), "scram", "there is no TLS"),
        (encrypted(), "trusted", "the server asks for no proof that can be bound"),
        (encrypted(), "clear", "the server asks for no proof that can be bound"),
        (encrypted(), "md5", "the server asks for no proof that can be bound"),
    ];
    for (tls, user, why) in unbound {
        let config = bound(&server, user, tls, ChannelBinding::Require);
        let error = open(&config).await.expect_err(user);
        assert!(error.permanent && error.code == "28000", "{error:?}");
        let expected = format!("channel binding is required, but {why}");
        assert!(error.message.contains(&expected), "{error:?}");
    }
}

/// Always the same chain and key, whether they belong together or not.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// Somebody between us and the server who ends TLS and passes on what is said. Gives its port.
async fn between(server: &Server, certificate: &str, key: &rcgen::KeyPair) -> u16 {
    let directory = server.cluster.directory();
    let (cert_file, key_file) = (directory.join("between.pem"), directory.join("between.key"));
    std::fs::write(&cert_file, certificate).expect("write");
    std::fs::write(&key_file, key.serialize_pem()).expect("write");
    let provider = client_tls::provider();
    let key = provider
        .key_provider
        .load_private_key(pem::private_key(&key_file).expect("key"))
        .expect("usable");
    let chain = pem::certificates(&cert_file).expect("certificate");
    let shown = Arc::new(Shown(Arc::new(CertifiedKey::new(chain, key))));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_cert_resolver(shown);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let connector = TlsConnector::from(Arc::new(client_tls::build(&encrypted()).expect("client")));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let (port, upstream) = (listener.local_addr().expect("address").port(), server.cluster.port());
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.expect("accept");
            let mut request = [0; 8];
            client.read_exact(&mut request).await.expect("SSLRequest");
            client.write_all(b"S").await.expect("answer");
            let Ok(mut client) = acceptor.accept(client).await else { continue };
            let mut socket = TcpStream::connect(("127.0.0.1", upstream)).await.expect("connect");
            let mut request = Vec::new();
            startup::put_ssl_request(&mut request);
            socket.write_all(&request).await.expect("SSLRequest");
            let mut answer = [0];
            socket.read_exact(&mut answer).await.expect("answer");
            let name = "localhost".try_into().expect("name");
            let mut socket = connector.connect(name, socket).await.expect("handshake");
            let _ = copy_bidirectional(&mut client, &mut socket).await;
        }
    });
    port
}

#[tokio::test]
async fn a_log_in_that_is_passed_on_to_another_connection_is_found_out() {
    let server = Server::start().await;
    let key = rcgen::KeyPair::generate().expect("key");
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("names");
    let certificate = params.self_signed(&key).expect("signed").pem();
    let port = between(&server, &certificate, &key).await;
    for (binding, refused) in [
        (ChannelBinding::Disable, false),
        (ChannelBinding::Prefer, true),
        (ChannelBinding::Require, true),
    ] {
        let mut config = bound(&server, "scram", encrypted(), binding);
        config.upstream.port = port;
        match open(&config).await {
            Ok(()) => assert!(!refused, "{binding:?}"),
            Err(error) => {
                assert!(refused, "{binding:?}: {error:?}");
                assert!(error.message.contains("channel binding check failed"), "{error:?}");
            }
        }
    }
}

/// A certificate is no secret. Who shows the server's must have its key, too, or the binding to it
/// would mean nothing; also where nobody asks who has signed it, and with whatever algorithm.
#[tokio::test]
async fn who_shows_the_servers_certificate_without_its_key_is_found_out() {
    let server = Server::start().await;
    for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519] {
        let key = rcgen::KeyPair::generate_for(algorithm).expect("key");
        let port = between(&server, &server.certificates.server_cert, &key).await;
        let mut config = bound(&server, "scram", encrypted(), ChannelBinding::Prefer);
        config.upstream.port = port;
        let error = open(&config).await.expect_err("an impostor");
        assert!(error.message.contains("TLS handshake failed"), "{error:?}");
    }
}

/// The connection for look-ups was encrypted, but not bound to anything.
#[tokio::test]
async fn look_ups_are_bound_as_their_databases_log_ins_are() {
    let mut asking = super::lookups::Asking::start("looking").await;
    let key = rcgen::KeyPair::generate().expect("key");
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("names");
    let certificate = params.self_signed(&key).expect("signed").pem();
    let direct = asking.server.cluster.port();
    let between = between(&asking.server, &certificate, &key).await;
    let require = ChannelBinding::Require;
    for (tls, binding, port, refused) in [
        (no_tls(), ChannelBinding::Prefer, direct, None),
        (no_tls(), require, direct, Some("channel binding")),
        (encrypted(), require, direct, None),
        (encrypted(), ChannelBinding::Disable, between, None),
        (encrypted(), ChannelBinding::Prefer, between, Some("channel binding check failed")),
        (encrypted(), require, between, Some("channel binding check failed")),
    ] {
        asking.pool.upstream.tls = ServerTls { binding, ..tls };
        asking.pool.upstream.port = port;
        asking.forget();
        match (asking.ask("scram").await, refused) {
            (Ok(secret), None) => assert!(secret.is_some(), "{binding:?}"),
            (Err(said), Some(why)) => assert!(said.contains(why), "{binding:?}: {said}"),
            (answer, _) => panic!("{binding:?}: {answer:?}"),
        }
    }
}
