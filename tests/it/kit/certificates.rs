//! A throw-away certificate authority, and a certificate of it for localhost.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

/// PEM files in one directory.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// The authority's certificate: what a verifying client is given.
    pub ca: PathBuf,
    /// For `localhost`, `127.0.0.1` and `::1`.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Writes `ca.crt`, `server.crt` and `server.key` to `dir`.
pub fn write_to(dir: &Path) -> Certificates {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    ca.distinguished_name.push(DnType::CommonName, "Pondage test authority");
    let ca_key = KeyPair::generate().expect("a key pair");
    let ca = CertifiedIssuer::self_signed(ca, ca_key).expect("a self-signed certificate");

    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut server = CertificateParams::new(names).expect("valid names");
    server.distinguished_name.push(DnType::CommonName, "localhost");
    let key = KeyPair::generate().expect("a key pair");
    let cert = server.signed_by(&key, &ca).expect("a signed certificate");

    let put = |name: &str, pem: String| {
        let path = dir.join(name);
        std::fs::write(&path, pem).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        path
    };
    Certificates {
        ca: put("ca.crt", ca.pem()),
        cert: put("server.crt", cert.pem()),
        key: put("server.key", key.serialize_pem()),
    }
}
