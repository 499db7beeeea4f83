//! A throw-away certificate authority, and a certificate of it for localhost.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
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

/// Who signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Authority {
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        ca.distinguished_name.push(DnType::CommonName, "Pondage test authority");
        let key = KeyPair::generate().expect("a key pair");
        Authority(CertifiedIssuer::self_signed(ca, key).expect("a self-signed certificate"))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for this machine, and its private key.
    pub fn server(&self) -> (String, String) {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let mut server = CertificateParams::new(names).expect("valid names");
        server.distinguished_name.push(DnType::CommonName, "localhost");
        let key = KeyPair::generate().expect("a key pair");
        let cert = server.signed_by(&key, &self.0).expect("a signed certificate");
        (cert.pem(), key.serialize_pem())
    }

    /// A certificate for a client that is called `name`, and its private key.
    pub fn client(&self, name: &str) -> (String, String) {
        let mut client = CertificateParams::default();
        client.distinguished_name = DistinguishedName::new();
        client.distinguished_name.push(DnType::CommonName, name);
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key pair");
        let cert = client.signed_by(&key, &self.0).expect("a signed certificate");
        (cert.pem(), key.serialize_pem())
    }
}

/// Writes `ca.crt`, `server.crt` and `server.key` to `dir`.
pub fn write_to(dir: &Path) -> Certificates {
    let authority = Authority::new();
    let (cert, key) = authority.server();
    let put = |name: &str, pem: String| {
        let path = dir.join(name);
        std::fs::write(&path, pem).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        path
    };
    Certificates {
        ca: put("ca.crt", authority.pem()),
        cert: put("server.crt", cert),
        key: put("server.key", key),
    }
}
