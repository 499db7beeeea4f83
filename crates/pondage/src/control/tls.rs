//! TLS of clients: the listener's configuration, and handshakes on behalf of the workers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{PeerIncompatible, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::client_tls::{provider, versions, ALPN};
use super::end_point;
use super::pem::{self, FileError};
use super::transport::{Transport, Wire};
use super::verify::Clients;
use crate::config::{ListenTls, ListenTlsMode};
use crate::hba::Subject;
use crate::link::{Door, Link};

/// What the listeners need for TLS.
#[derive(Debug)]
pub struct Listener {
    pub config: Arc<ServerConfig>,
    /// What log-ins over its connections can be bound to.
    pub end_point: Option<Arc<[u8]>>,
}

/// The configuration of the listeners; none when TLS is off.
///
/// # Errors
/// When a file can't be used, or certificate and key don't belong together.
pub fn listener(tls: &ListenTls) -> Result<Option<Arc<Listener>>, FileError> {
    if tls.mode == ListenTlsMode::Disable {
        return Ok(None);
    }
    let missing = |what| FileError {
        code: "P0205",
        what,
        file: "[listen.tls]".into(),
        why: "not set, and the mode asks for it".to_owned(),
    };
    let cert = tls.cert.as_deref().ok_or_else(|| missing("certificate"))?;
    let key = tls.key.as_deref().ok_or_else(|| missing("private key"))?;
    let provider = provider();
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions(tls.versions))
        .map_err(|error| pem::mismatch(cert, key, &error))?;
    let builder = match &tls.client_ca {
        Some(file) => {
            let roots = Arc::new(pem::authorities(file)?);
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
            let verifier = match tls.mode {
                ListenTlsMode::VerifyClient => verifier,
                _ => verifier.allow_unauthenticated(),
            };
            let verifier = verifier.build().map_err(|error| FileError {
                code: "P0203",
                what: "certificate authorities",
                file: file.clone(),
                why: error.to_string(),
            })?;
            builder.with_client_cert_verifier(Clients::new(&provider, verifier, roots))
        }
        None if tls.mode == ListenTlsMode::VerifyClient => {
            return Err(missing("certificate authorities"))
        }
        None => builder.with_no_client_auth(),
    };
    let chain = pem::certificates(cert)?;
    let end_point = chain.first().and_then(|first| end_point::of(first)).map(Arc::from);
    let certified = pem::certified(chain, pem::private_key(key)?, &provider)
        .map_err(|error| pem::mismatch(cert, key, &error))?;
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Connections live long and libpq never resumes a session: tickets would cost every handshake
    // bytes and nobody would use them. PostgreSQL switches them off, too.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Some(Arc::new(Listener { config: Arc::new(config), end_point })))
}

/// rustls does not say in so many words that a client is too old, or too new.
fn explained(error: io::Error) -> io::Error {
    use PeerIncompatible::{SupportedVersionsExtensionRequired, Tls12NotOfferedOrEnabled};
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref());
    match tls {
        Some(rustls::Error::PeerIncompatible(
            SupportedVersionsExtensionRequired | Tls12NotOfferedOrEnabled,
        )) => {
            let why = "the client speaks no version of TLS that it may speak here";
            io::Error::other(format!("{why} ({error})"))
        }
        _ => error,
    }
}

/// Who the certificate of a client whose handshake is done is made out to, if it has shown one. It
/// was verified then, or there would be no connection.
pub fn subject(link: &Link) -> Option<Subject> {
    let certificates = link.tls.as_ref()?.peer_certificates()?;
    Subject::of(certificates.first()?)
}

/// Does a client's handshake. [`Link::early`] holds the start of it, if the client spoke TLS at
/// once and the worker has read it; after an SSLRequest it is empty (the worker refuses bytes that
/// came with the request: CVE-2021-23214).
///
/// # Errors
/// `TimedOut` after `limit`; what rustls or the socket says.
pub async fn accept(
    listener: &Listener,
    door: Door,
    link: Link,
    limit: Duration,
) -> io::Result<(Link, String)> {
    let direct = door == Door::Postgres && !link.early.is_empty();
    let mut early = io::Cursor::new(link.early);
    let mut refused = None;
    let handshake = TlsAcceptor::from(listener.config.clone()).accept_with(
        Wire::from_socket(link.socket)?,
        |session| {
            while early.position() < early.get_ref().len() as u64 {
                let fed = session
                    .read_tls(&mut early)
                    .and_then(|_| session.process_new_packets().map_err(io::Error::other));
                if let Err(error) = fed {
                    refused = Some(error);
                    return;
                }
            }
        },
    );
    let late = || io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake took too long");
    let handshake = async {
        match refused {
            Some(error) => Err(error),
            None => handshake.await,
        }
        .map_err(explained)
    };
    let stream = tokio::time::timeout(limit, handshake).await.map_err(|_| late())??;
    // Direct TLS without ALPN is refused as PostgreSQL does: it stops a browser or a mail server
    // from being talked into sending us something (ALPACA).
    if direct && stream.get_ref().1.alpn_protocol() != Some(ALPN) {
        return Err(io::Error::other("direct TLS without the ALPN protocol \"postgresql\""));
    }
    let transport = Transport::Server(Box::new(stream));
    let tls = transport.tls();
    Ok((transport.into_link(Vec::new())?, tls))
}
