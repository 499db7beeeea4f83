//! A throw-away certificate authority, and a certificate of it for localhost.

use std::path::{Path, PathBuf};

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SigningKey,
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

    /// As `openssl x509 -req` makes them: of X.509's first version, for this common name alone. Made
    /// of one of the third by taking its version and extensions away.
    pub fn first_version(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key pair");
        let third = params.signed_by(&key, &self.0).expect("a signed certificate");
        let [signed, algorithm, _] = &parts(third.der())[..] else { panic!("three parts") };
        let kept = parts(signed).into_iter().filter(|part| !matches!(part[0], 0xa0 | 0xa3));
        let signed = whole(0x30, &kept.collect::<Vec<_>>().concat());
        let signature = self.0.key().sign(&signed).expect("a signature");
        let signature = whole(0x03, &[&[0], &signature[..]].concat());
        let first = whole(0x30, &[signed, algorithm.clone(), signature].concat());
        let lines: Vec<String> = STANDARD
            .encode(&first)
            .as_bytes()
            .chunks(64)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        let pem = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            lines.join("\n")
        );
        (pem, key.serialize_pem())
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

/// The elements inside of a DER sequence, each with its head.
fn parts(sequence: &[u8]) -> Vec<Vec<u8>> {
    let (head, _) = lengths(sequence);
    let (mut rest, mut parts) = (&sequence[head..], Vec::new());
    while !rest.is_empty() {
        let (head, length) = lengths(rest);
        let (part, after) = rest.split_at(head + length);
        parts.push(part.to_vec());
        rest = after;
    }
    parts
}

/// Of an element's head and of what is in it.
fn lengths(element: &[u8]) -> (usize, usize) {
    match element[1] {
        0x81 => (3, usize::from(element[2])),
        0x82 => (4, usize::from(element[2]) << 8 | usize::from(element[3])),
        short => (2, usize::from(short)),
    }
}

fn whole(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("a short one").to_be_bytes();
    let head = match value.len() {
        0..=0x7f => vec![tag, length[1]],
        0x80..=0xff => vec![tag, 0x81, length[1]],
        _ => vec![tag, 0x82, length[0], length[1]],
    };
    [head, value.to_vec()].concat()
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
