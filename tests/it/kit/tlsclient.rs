//! A client inside of TLS, as far as tests of doors and certificates need one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use wire::pg::{frontend, startup};

use super::wireclient::Address;

/// How long the gateway may be silent. A test that meets it has failed.
const SILENCE: Duration = Duration::from_secs(60);

/// A connection; its socket can be used before the first byte of TLS.
pub struct TlsClient(pub StreamOwned<ClientConnection, TcpStream>);

impl TlsClient {
    /// Trusts `ca` for the name `localhost` and offers this protocol by ALPN; nothing has been sent
    /// yet.
    #[track_caller]
    pub fn connect(address: &Address, ca: &Path, alpn: Option<&str>) -> TlsClient {
        let Address::Tcp(host, port) = address else { panic!("TCP") };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(ca).expect("authorities") {
            roots.add(certificate.expect("an authority")).expect("an authority");
        }
        let mut config =
            ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = "localhost".try_into().expect("a name");
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        let socket = TcpStream::connect((host.as_str(), *port)).expect("connect");
        socket.set_read_timeout(Some(SILENCE)).expect("a limit");
        TlsClient(StreamOwned::new(session, socket))
    }

    /// Asks for TLS; what follows is the handshake.
    #[track_caller]
    pub fn ask(&mut self) {
        let mut request = Vec::new();
        startup::put_ssl_request(&mut request);
        self.0.sock.write_all(&request).expect("SSLRequest");
        let mut answer = [0];
        self.0.sock.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"S");
    }

    /// Logs in where nothing has to be proven; whether that went well.
    pub fn log_in(&mut self, user: &str, database: &str) -> bool {
        let mut out = Vec::new();
        startup::put_startup(&mut out, 0, &[("user", user), ("database", database)]);
        self.0.write_all(&out).is_ok() && self.until_ready().is_some()
    }

    /// What a simple query is answered; none: the connection ended.
    pub fn query(&mut self, sql: &str) -> Option<String> {
        let mut out = Vec::new();
        frontend::put_query(&mut out, sql);
        self.0.write_all(&out).ok()?;
        Some(String::from_utf8_lossy(&self.until_ready()?).into_owned())
    }

    /// Of the gateway, once the handshake is done.
    pub fn certificate(&self) -> Option<Vec<u8>> {
        Some(self.0.conn.peer_certificates()?.first()?.to_vec())
    }

    /// Reads until a ReadyForQuery outside of a transaction.
    fn until_ready(&mut self) -> Option<Vec<u8>> {
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        while !received.ends_with(b"Z\0\0\0\x05I") {
            match self.0.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(read) => received.extend_from_slice(&buffer[..read]),
            }
        }
        Some(received)
    }
}
