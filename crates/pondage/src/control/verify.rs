//! How certificates are judged: the only places that accept less than rustls would.
//!
//! | mode | chain | name | here |
//! |---|---|---|---|
//! | prefer, require | no | no | [`AnyCertificate`] |
//! | verify-ca | yes | no | [`Authorities`] |
//! | verify-full | yes | yes | [`Authorities`] |
//!
//! Clients' are rustls's to judge, but for those of X.509's first version ([`Clients`]).
//!
//! Source: PostgreSQL documentation, "SSL Support", "Protection Provided in Different Modes".

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    verify_tls12_signature, verify_tls13_signature, verify_tls13_signature_with_raw_key,
    CryptoProvider, WebPkiSupportedAlgorithms,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};

use crate::first_version::FirstVersion;

/// Encrypts without asking who the other side is, as libpq's `require` does: it keeps listeners
/// out, not impostors.
#[derive(Debug)]
pub struct AnyCertificate {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AnyCertificate {
    pub fn new(provider: &CryptoProvider) -> Arc<AnyCertificate> {
        Arc::new(AnyCertificate { algorithms: provider.signature_verification_algorithms })
    }

    /// A certificate that can't be read (X.509 v1, which hand-made ones often are) can't have its
    /// signature checked. As nothing vouches for any certificate in this mode, that gives nothing
    /// away; a log-in is not bound to such a one (`Transport::end_point`). One that can be read is
    /// checked whatever the other end has signed with: who shows another's certificate must not
    /// get away with an algorithm that does not fit its key.
    fn unless_unreadable(
        certificate: &CertificateDer<'_>,
        checked: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        match checked {
            Err(_) if webpki::EndEntityCert::try_from(certificate).is_err() => {
                Ok(HandshakeSignatureValid::assertion())
            }
            _ => checked,
        }
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let checked = verify_tls12_signature(message, certificate, signature, &self.algorithms);
        Self::unless_unreadable(certificate, checked)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let checked = verify_tls13_signature(message, certificate, signature, &self.algorithms);
        Self::unless_unreadable(certificate, checked)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Asks for a chain to a trusted authority, and with `names` for the server's name, too.
///
/// A certificate that is itself in the file of authorities is trusted even if it says that it is
/// an authority: `openssl req -x509` makes such ones, many servers have one, and libpq takes it.
#[derive(Debug)]
pub struct Authorities {
    roots: RootCertStore,
    /// The certificates of the file themselves; empty for the system's authorities.
    listed: Vec<CertificateDer<'static>>,
    names: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Authorities {
    pub fn new(
        provider: &CryptoProvider,
        roots: RootCertStore,
        listed: Vec<CertificateDer<'static>>,
        names: bool,
    ) -> Arc<Authorities> {
        let algorithms = provider.signature_verification_algorithms;
        Arc::new(Authorities { roots, listed, names, algorithms })
    }

    /// Whether `checked` failed for nothing but that the certificate is an authority's, and it is
    /// in the file. Its validity in time is checked before that.
    fn is_listed(&self, checked: &Error, end_entity: &CertificateDer<'_>) -> bool {
        let Error::InvalidCertificate(CertificateError::Other(why)) = checked else { return false };
        let is_authority = matches!(why.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity));
        is_authority && self.listed.iter().any(|listed| listed == end_entity)
    }
}

impl ServerCertVerifier for Authorities {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(first) = FirstVersion::read(end_entity) {
            first.verify(&self.roots, now, self.algorithms.all)?;
            if self.names {
                first.check_name(server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let checked = verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        );
        match checked {
            Err(error) if !self.is_listed(&error, end_entity) => return Err(error),
            _ => {}
        }
        if self.names {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls12(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls13(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// As rustls does it, for certificates of the first version, too.
fn tls12(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    match FirstVersion::read(certificate) {
        Some(first) => first.verify_tls12_signature(message, signature, algorithms),
        None => verify_tls12_signature(message, certificate, signature, algorithms),
    }
}

/// As [`tls12`].
fn tls13(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    match FirstVersion::read(certificate) {
        Some(first) => {
            verify_tls13_signature_with_raw_key(message, first.key(), signature, algorithms)
        }
        None => verify_tls13_signature(message, certificate, signature, algorithms),
    }
}

/// Clients' certificates, those of the first version included.
#[derive(Debug)]
pub struct Clients {
    others: Arc<dyn ClientCertVerifier>,
    roots: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Clients {
    /// `others` judges certificates of later versions, by the same roots.
    pub fn new(
        provider: &CryptoProvider,
        others: Arc<dyn ClientCertVerifier>,
        roots: Arc<RootCertStore>,
    ) -> Arc<Clients> {
        let algorithms = provider.signature_verification_algorithms;
        Arc::new(Clients { others, roots, algorithms })
    }
}

impl ClientCertVerifier for Clients {
    fn offer_client_auth(&self) -> bool {
        self.others.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.others.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.others.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match FirstVersion::read(end_entity) {
            Some(first) => {
                first.verify(&self.roots, now, self.algorithms.all)?;
                Ok(ClientCertVerified::assertion())
            }
            None => self.others.verify_client_cert(end_entity, intermediates, now),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls12(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls13(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
