//! TLS towards servers: one rustls configuration for each way that was configured, built once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

use super::pem::{self, FileError};
use super::verify::{AnyCertificate, Authorities};
use crate::config::{ServerTls, ServerTlsMode, TlsVersion, TlsVersions};

/// Most configurations kept; each may hold the system's authorities, some hundred kilobytes.
pub const CLIENT_TLS_MAX: usize = 64;

/// The name by which both sides of TLS agree to speak PostgreSQL.
///
/// Source: PostgreSQL documentation, "SSL Session Encryption".
pub const ALPN: &[u8] = b"postgresql";

/// As rustls has them.
pub fn versions(versions: TlsVersions) -> &'static [&'static SupportedProtocolVersion] {
    static NEWEST_FIRST: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    let first = usize::from(versions.most == TlsVersion::V1_2);
    let end = if versions.least == TlsVersion::V1_3 { 1 } else { 2 };
    NEWEST_FIRST.get(first..end).unwrap_or_default()
}

/// The cryptography of this process.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// The configurations in use. Files are read at the first use and after [`ClientTls::forget`].
#[derive(Default)]
pub struct ClientTls {
    /// A plain mutex: held for a look or an insertion, never across an await.
    known: Mutex<HashMap<ServerTls, Arc<ClientConfig>>>,
}

impl ClientTls {
    /// # Errors
    /// When a file that `tls` names can't be used.
    pub fn config(&self, tls: &ServerTls) -> Result<Arc<ClientConfig>, FileError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = known.get(tls) {
            return Ok(config.clone());
        }
        let config = Arc::new(build(tls)?);
        if known.len() >= CLIENT_TLS_MAX {
            known.clear();
        }
        known.insert(tls.clone(), config.clone());
        Ok(config)
    }

    /// Reads every file again when it is next needed (RELOAD).
    pub fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Builds what `tls` says.
///
/// # Errors
/// When a file that it names can't be used.
pub fn build(tls: &ServerTls) -> Result<ClientConfig, FileError> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions(tls.versions))
        .map_err(|error| unusable("certificate authorities", tls.ca.as_deref(), &error))?;
    let builder = match tls.mode {
        ServerTlsMode::Disable | ServerTlsMode::Prefer | ServerTlsMode::Require => {
            builder.dangerous().with_custom_certificate_verifier(AnyCertificate::new(&provider))
        }
        ServerTlsMode::VerifyCa | ServerTlsMode::VerifyFull => {
            let (roots, listed) = authorities(tls)?;
            let names = tls.mode == ServerTlsMode::VerifyFull;
            let verifier = Authorities::new(&provider, roots, listed, names);
            builder.dangerous().with_custom_certificate_verifier(verifier)
        }
    };
    let mut config = match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => {
            let certified =
                pem::certified(pem::certificates(cert)?, pem::private_key(key)?, &provider)
                    .map_err(|error| pem::mismatch(cert, key, &error))?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}

/// The authorities to trust, and what the file lists: those of the file, or else those of the system, found where its TLS
/// library looks for them (SSL_CERT_FILE and SSL_CERT_DIR included).
fn authorities(tls: &ServerTls) -> Result<(RootCertStore, Listed), FileError> {
    if let Some(file) = &tls.ca {
        return Ok((pem::authorities(file)?, pem::certificates(file)?));
    }
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map_or("none found".to_owned(), ToString::to_string);
        return Err(unusable("certificate authorities", None, &why));
    }
    Ok((roots, Listed::new()))
}

type Listed = Vec<CertificateDer<'static>>;

fn unusable(what: &'static str, file: Option<&Path>, why: &dyn ToString) -> FileError {
    let file = file.unwrap_or(Path::new("of the system")).to_owned();
    FileError { code: "P0203", what, file, why: why.to_string() }
}
