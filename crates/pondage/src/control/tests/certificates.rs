//! An authority, a server certificate for `localhost` (not for 127.0.0.1) and a client certificate
//! for the role `certified`.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};

pub struct Certificates {
    /// PEM texts.
    pub ca: String,
    pub server_cert: String,
    pub server_key: String,
    /// Files.
    pub ca_file: PathBuf,
    pub other_ca_file: PathBuf,
    pub server_cert_file: PathBuf,
    pub server_key_file: PathBuf,
    pub client_cert_file: PathBuf,
    pub client_key_file: PathBuf,
}

impl Certificates {
    pub fn make(directory: &Path) -> Certificates {
        let (ca, issuer) = authority("Test authority");
        let (other_ca, _) = authority("Another authority");
        let (server_cert, server_key) =
            signed(&issuer, &["localhost"], "server", ExtendedKeyUsagePurpose::ServerAuth);
        let (client_cert, client_key) =
            signed(&issuer, &[], "certified", ExtendedKeyUsagePurpose::ClientAuth);
        let file = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::write(&path, text).expect("write");
            path
        };
        Certificates {
            ca_file: file("ca.pem", &ca),
            other_ca_file: file("other-ca.pem", &other_ca),
            server_cert_file: file("server.pem", &server_cert),
            server_key_file: file("server-key.pem", &server_key),
            client_cert_file: file("client.pem", &client_cert),
            client_key_file: file("client-key.pem", &client_key),
            ca,
            server_cert,
            server_key,
        }
    }
}

fn named(params: &mut CertificateParams, name: &str) {
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
}

fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().expect("key");
    let mut params = CertificateParams::default();
    named(&mut params, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).expect("signed");
    (certificate.pem(), Issuer::new(params, key))
}

fn signed(
    issuer: &Issuer<'static, KeyPair>,
    names: &[&str],
    common_name: &str,
    usage: ExtendedKeyUsagePurpose,
) -> (String, String) {
    let key = KeyPair::generate().expect("key");
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    named(&mut params, common_name);
    params.extended_key_usages = vec![usage];
    (params.signed_by(&key, issuer).expect("signed").pem(), key.serialize_pem())
}

/// A certificate for `localhost` that signs itself and says that it is an authority, as
/// `openssl req -x509` makes them; valid from 2020 up to `year`. Gives files of it and its key.
pub fn self_signed(directory: &Path, name: &str, year: i32) -> (PathBuf, PathBuf) {
    let key = KeyPair::generate().expect("key");
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("names");
    named(&mut params, "localhost");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let certificate = params.self_signed(&key).expect("signed").pem();
    let files = (directory.join(format!("{name}.pem")), directory.join(format!("{name}-key.pem")));
    fs::write(&files.0, certificate).expect("write");
    fs::write(&files.1, key.serialize_pem()).expect("write");
    files
}
