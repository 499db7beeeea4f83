//! Certificates and keys in files.

use std::fmt;
use std::path::{Path, PathBuf};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, RootCertStore};

use crate::first_version::FirstVersion;

/// A certificate, key or CA file that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// `P0201` and on.
    pub code: &'static str,
    /// What the file is for: "certificate", "private key", "certificate authorities".
    pub what: &'static str,
    pub file: PathBuf,
    pub why: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileError { code, what, file, why } = self;
        write!(f, "error[{code}]: cannot use the {what} {}: {why}", file.display())
    }
}

impl std::error::Error for FileError {}

impl FileError {
    fn read(what: &'static str, file: &Path, error: pem::Error) -> FileError {
        let (code, why) = match error {
            pem::Error::Io(error) => ("P0201", error.to_string()),
            pem::Error::NoItemsFound => ("P0202", format!("no {what} in PEM format in it")),
            other => ("P0202", format!("not in PEM format ({other})")),
        };
        FileError { code, what, file: file.to_owned(), why }
    }
}

/// The certificate chain in `file`, its owner's first.
///
/// # Errors
/// P0201 when it can't be read, P0202 when it has none.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    read_certificates("certificate", file)
}

fn read_certificates(
    what: &'static str,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let refuse = |error| FileError::read(what, file, error);
    let found: Vec<_> = CertificateDer::pem_file_iter(file)
        .map_err(refuse)?
        .collect::<Result<_, _>>()
        .map_err(refuse)?;
    if found.is_empty() {
        return Err(refuse(pem::Error::NoItemsFound));
    }
    Ok(found)
}

/// The private key in `file` (PKCS#8, PKCS#1 or SEC1, not encrypted).
///
/// # Errors
/// P0201 when it can't be read, P0202 when it has none.
pub fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, FileError> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| FileError::read("private key", file, error))
}

/// The certificate authorities in `file`.
///
/// # Errors
/// P0201 when it can't be read, P0202 when it has none, P0203 for one that is no authority.
pub fn authorities(file: &Path) -> Result<RootCertStore, FileError> {
    let what = "certificate authorities";
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(what, file)? {
        roots.add(certificate).map_err(|error| FileError {
            code: "P0203",
            what,
            file: file.to_owned(),
            why: error.to_string(),
        })?;
    }
    Ok(roots)
}

/// A chain with its key, if they belong together. Certificates of X.509's first version may be
/// shown, too, although rustls does not read them.
///
/// # Errors
/// rustls's, if they do not.
pub fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, rustls::Error> {
    let Some(first) = chain.first().and_then(FirstVersion::read) else {
        return CertifiedKey::from_der(chain, key, provider);
    };
    let private = provider.key_provider.load_private_key(key)?;
    let matches = private.public_key().is_none_or(|public| public == *first.key());
    match matches {
        true => Ok(CertifiedKey::new(chain, private)),
        false => Err(InconsistentKeys::KeyMismatch.into()),
    }
}

/// What rustls says about a certificate and its key.
pub fn mismatch(certificate: &Path, key: &Path, error: &rustls::Error) -> FileError {
    let why = match error {
        rustls::Error::InconsistentKeys(_) => {
            format!("it does not belong to the private key {}", key.display())
        }
        other => format!("{other} (private key {})", key.display()),
    };
    FileError { code: "P0204", what: "certificate", file: certificate.to_owned(), why }
}
