//! Certificates of X.509's first version. They have no extensions: no names but the common one, no
//! purposes, no word on whether they are an authority's. `openssl x509 -req` makes such ones,
//! OpenSSL takes them, and so do libpq and PgBouncer; webpki does not read them.
//!
//! What is taken here is less than OpenSSL takes: the certificate of a peer, signed by an authority
//! that is listed itself. Between them there can be none, and none of these is an authority.
//!
//! ```text
//! SEQUENCE (certificate)
//!   SEQUENCE (what is signed): serial number, algorithm, issuer, validity, subject, key
//!   SEQUENCE (algorithm)
//!   BIT STRING (signature)
//! ```
//! Source: RFC 5280, 4.1; names as libpq compares them: `src/interfaces/libpq/fe-secure-common.c`.

use std::net::IpAddr;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{
    CertificateDer, ServerName, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore};
use webpki::RawPublicKeyEntity;

use crate::der::{any, element, SEQUENCE};
use crate::hba::Subject;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// A certificate, taken apart. Parts are values without their heads, but for what is signed.
pub struct FirstVersion<'a> {
    signed: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
    issuer: &'a [u8],
    validity: &'a [u8],
    subject: &'a [u8],
    key: SubjectPublicKeyInfoDer<'a>,
}

impl<'a> FirstVersion<'a> {
    /// None: it is of another version, or is none.
    pub fn read(certificate: &'a CertificateDer<'_>) -> Option<FirstVersion<'a>> {
        let mut all: &[u8] = certificate;
        let mut whole = element(&mut all, SEQUENCE)?;
        let (tag, mut parts, signed) = any(&mut whole)?;
        let algorithm = element(&mut whole, SEQUENCE)?;
        let signature = element(&mut whole, BIT_STRING)?.strip_prefix(&[0])?;
        // Others begin with their version.
        element(&mut parts, INTEGER)?;
        let inner = element(&mut parts, SEQUENCE)?;
        let issuer = element(&mut parts, SEQUENCE)?;
        let validity = element(&mut parts, SEQUENCE)?;
        let subject = element(&mut parts, SEQUENCE)?;
        let (key_tag, _, key) = any(&mut parts)?;
        let complete = all.is_empty() && whole.is_empty() && parts.is_empty();
        let sound = tag == SEQUENCE && key_tag == SEQUENCE && inner == algorithm;
        (complete && sound).then_some(FirstVersion {
            signed,
            algorithm,
            signature,
            issuer,
            validity,
            subject,
            key: key.into(),
        })
    }

    pub fn subject(&self) -> Option<Subject> {
        Subject::of_name(self.subject)
    }

    pub fn key(&self) -> &SubjectPublicKeyInfoDer<'a> {
        &self.key
    }

    /// Whether one of `roots` has signed it, and it is valid at this time.
    ///
    /// # Errors
    /// Why not.
    pub fn verify(
        &self,
        roots: &RootCertStore,
        now: UnixTime,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<(), Error> {
        let mut validity = self.validity;
        let (Some(begin), Some(end)) = (time(&mut validity), time(&mut validity)) else {
            return Err(CertificateError::BadEncoding.into());
        };
        if now.as_secs() < begin {
            return Err(CertificateError::NotValidYet.into());
        }
        if now.as_secs() > end {
            return Err(CertificateError::Expired.into());
        }
        let mut why = CertificateError::UnknownIssuer;
        for root in roots.roots.iter().filter(|root| *root.subject == *self.issuer) {
            // Which names an authority is good for is not looked into here.
            if root.name_constraints.is_some() {
                continue;
            }
            let key = sequence(&root.subject_public_key_info).into();
            let fits = |algorithm: &&&dyn SignatureVerificationAlgorithm| {
                algorithm.signature_alg_id().as_ref() == self.algorithm
            };
            if algorithms.iter().filter(fits).any(|one| {
                RawPublicKeyEntity::try_from(&key)
                    .and_then(|key| key.verify_signature(*one, self.signed, self.signature))
                    .is_ok()
            }) {
                return Ok(());
            }
            why = CertificateError::BadSignature;
        }
        Err(why.into())
    }

    /// Whether its common name is the server's.
    ///
    /// # Errors
    /// It is not.
    pub fn check_name(&self, server: &ServerName<'_>) -> Result<(), Error> {
        let name = self.subject().and_then(|subject| subject.common_name).unwrap_or_default();
        let fits = match server {
            ServerName::DnsName(host) => is_for(&name, host.as_ref()),
            ServerName::IpAddress(address) => {
                name.parse::<IpAddr>().is_ok_and(|named| named == IpAddr::from(*address))
            }
            _ => false,
        };
        match fits {
            true => Ok(()),
            false => Err(CertificateError::NotValidForName.into()),
        }
    }

    /// Whether who shows it has its key, by a message of TLS 1.2's handshake that he has signed.
    ///
    /// # Errors
    /// He has not.
    pub fn verify_tls12_signature(
        &self,
        message: &[u8],
        signed: &DigitallySignedStruct,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<HandshakeSignatureValid, Error> {
        let of_scheme = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
        let algorithms = of_scheme.map(|(_, algorithms)| *algorithms).unwrap_or_default();
        let right = RawPublicKeyEntity::try_from(&self.key).is_ok_and(|key| {
            algorithms
                .iter()
                .any(|one| key.verify_signature(*one, message, signed.signature()).is_ok())
        });
        match right {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(CertificateError::BadSignature.into()),
        }
    }
}

/// With its head. What is longer than two bytes can count is no certificate's.
fn sequence(value: &[u8]) -> Vec<u8> {
    let mut whole = vec![SEQUENCE];
    match u8::try_from(value.len()) {
        Ok(short @ 0..=0x7f) => whole.push(short),
        Ok(length) => whole.extend_from_slice(&[0x81, length]),
        Err(_) => {
            let length = u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes();
            whole.extend_from_slice(&[0x82, length[0], length[1]]);
        }
    }
    whole.extend_from_slice(value);
    whole
}

/// `*` stands for the first label alone, before at least two others, as libpq has it.
fn is_for(name: &str, host: &str) -> bool {
    if name.eq_ignore_ascii_case(host) {
        return true;
    }
    match (name.strip_prefix("*."), host.split_once('.')) {
        (Some(domain), Some((label, rest))) => {
            !label.is_empty() && domain.contains('.') && domain.eq_ignore_ascii_case(rest)
        }
        _ => false,
    }
}

/// Takes a time; gives its seconds since 1970. Years before that count as it.
///
/// Source: RFC 5280, 4.1.2.5.
fn time(rest: &mut &[u8]) -> Option<u64> {
    let (tag, value, _) = any(rest)?;
    let digits = value.strip_suffix(b"Z").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let number = |digits: &[u8]| digits.iter().fold(0_i64, |all, d| all * 10 + i64::from(d - b'0'));
    let (year, rest) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let year = number(&digits[..2]);
            (if year < 50 { 2000 + year } else { 1900 + year }, &digits[2..])
        }
        (GENERALIZED_TIME, 14) => (number(&digits[..4]), &digits[4..]),
        _ => return None,
    };
    let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(|at| number(&rest[at..at + 2]));
    let sound = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    sound.then_some(u64::try_from(seconds).unwrap_or(0))
}

/// Days since 1970, in the Gregorian calendar. Years begin in March, so that leap days end them.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let leaps = year / 4 - year / 100 + year / 400;
    year * 365 + leaps + (month * 153 + 2) / 5 + day - 719_469
}

#[cfg(test)]
mod tests {
    use super::*;

    use rustls::pki_types::pem::PemObject;
    use std::time::Duration;

    /// Made by OpenSSL 3.0: `req -x509`, then `x509 -req` for the other.
    const AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBijCCATGgAwIBAgIUbEu5kZIkH0lB2+w51srIatXzgCQwCgYIKoZIzj0EAwIw
GjEYMBYGA1UEAwwPRmlyc3QgYXV0aG9yaXR5MCAXDTI2MTEyMzEzNDQ1NVoYDzIx
MjYxMDMwMTM0NDU1WjAaMRgwFgYDVQQDDA9GaXJzdCBhdXRob3JpdHkwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAATt5C0V2iiFRbFDNQGodsrxjw3Fl3xFLPRc+3d6
tEUDonQ+PCFyrk3p3BaXkwKczwuBf0me8mzmI+d91avqJbAUo1MwUTAdBgNVHQ4E
FgQU0aIXS2TfTtxlscNrWu09juAcgHYwHwYDVR0jBBgwFoAU0aIXS2TfTtxlscNr
Wu09juAcgHYwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiB7WU13
CITZZx1pDu/ZzAkQhltQVJ0DQww01lSgBVhuegIgXBdHm1BCbS8dP67IZy31gRlo
iOR1RLQYS5gG5yiNWH4=
-----END CERTIFICATE-----
";
    const SIGNED: &str = "\
-----BEGIN CERTIFICATE-----
MIIBPjCB5gIUI390JeM+/AAWBpnSJls86MiMx4kwCgYIKoZIzj0EAwIwGjEYMBYG
A1UEAwwPRmlyc3QgYXV0aG9yaXR5MB4XDTI2MTEyMzEzNDQ1NVoXDTI2MTIwMzEz
NDQ1NVowKzEQMA4GA1UECgwHRXhhbXBsZTEXMBUGA1UEAwwOZGIuZXhhbXBsZS5j
b20wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQ+Slqw2fV2ieadbS3tuDD9T1au
oBWE0eap3aj1OTZtZEO5paEsjOpfZ4DdR5p4j1DsRdpDJDvs25myav9kyuenMAoG
CCqGSM49BAMCA0cAMEQCIG9BM1pq8V1XSZORn9orTXZXrN3dUyPc4TGwDRMf0lpv
AiBptA3zjTGqd0L+b1mUVV1nLFNNt7nr5ZMYPQigq4WqIg==
-----END CERTIFICATE-----
";
    const BEGIN: u64 = 1_795_441_495;
    const END: u64 = 1_796_305_495;

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
    }

    fn verified(certificate: &CertificateDer<'_>, seconds: u64) -> Result<(), Error> {
        let mut roots = RootCertStore::empty();
        roots.add(der(AUTHORITY)).expect("an authority");
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let algorithms = provider.signature_verification_algorithms.all;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        FirstVersion::read(certificate).expect("read").verify(&roots, now, algorithms)
    }

    #[test]
    fn one_is_believed_while_it_is_valid() {
        let signed = der(SIGNED);
        assert_eq!(verified(&signed, BEGIN), Ok(()));
        assert_eq!(verified(&signed, END), Ok(()));
        assert_eq!(verified(&signed, BEGIN - 1), Err(CertificateError::NotValidYet.into()));
        assert_eq!(verified(&signed, END + 1), Err(CertificateError::Expired.into()));
        let first = FirstVersion::read(&signed).expect("read");
        let subject = first.subject().expect("a subject");
        assert_eq!(subject.distinguished_name, "CN=db.example.com,O=Example");
        let named = |name: &str| first.check_name(&ServerName::try_from(name).expect("a name"));
        assert_eq!(named("db.example.com"), Ok(()));
        assert_eq!(named("example.com"), Err(CertificateError::NotValidForName.into()));
        assert_eq!(named("10.0.0.1"), Err(CertificateError::NotValidForName.into()));
    }

    #[test]
    fn one_of_another_version_is_not_read() {
        assert!(FirstVersion::read(&der(AUTHORITY)).is_none());
    }

    #[test]
    fn what_is_cut_off_or_altered_is_not_believed() {
        let whole = der(SIGNED);
        for end in 0..whole.len() {
            assert!(FirstVersion::read(&CertificateDer::from(whole[..end].to_vec())).is_none());
        }
        for at in 0..whole.len() {
            let mut altered = whole.to_vec();
            altered[at] ^= 1;
            let altered = CertificateDer::from(altered);
            if FirstVersion::read(&altered).is_some() {
                assert!(verified(&altered, BEGIN + 1).is_err(), "byte {at}");
            }
        }
        let more = CertificateDer::from([&whole[..], &[0]].concat());
        assert!(FirstVersion::read(&more).is_none());
    }

    #[test]
    fn times_are_seconds_since_1970() {
        let seconds = |tag: u8, text: &str| {
            let der = [&[tag, text.len() as u8], text.as_bytes()].concat();
            time(&mut &der[..])
        };
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "000229235959Z", Some(951_868_799)),
            (UTC_TIME, "261123134500Z", Some(1_795_441_500)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "500101000000Z", Some(0)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (GENERALIZED_TIME, "21000301000000Z", Some(4_107_542_400)),
            (UTC_TIME, "261323134500Z", None),
            (UTC_TIME, "2611231345Z", None),
            (UTC_TIME, "261123134500+0000", None),
            (GENERALIZED_TIME, "2050010100000Z", None),
            (0x0c, "261123134500Z", None),
        ] {
            assert_eq!(seconds(tag, text), expected, "{text}");
        }
    }

    #[test]
    fn names_are_compared_as_libpq_does() {
        for (name, host, fits) in [
            ("db.example.com", "DB.example.com", true),
            ("*.example.com", "db.example.com", true),
            ("*.example.com", "a.db.example.com", false),
            ("*.example.com", "example.com", false),
            ("*.com", "example.com", false),
            ("*", "localhost", false),
            ("db*.example.com", "db1.example.com", false),
            ("", "", true),
            ("", "localhost", false),
        ] {
            assert_eq!(is_for(name, host), fits, "{name} {host}");
        }
    }

    #[test]
    fn heads_of_sequences_have_their_length() {
        for length in [0, 0x7f, 0x80, 0xff, 0x100, 0x1234] {
            let whole = sequence(&vec![7; length]);
            assert_eq!(element(&mut &whole[..], SEQUENCE).map(<[u8]>::len), Some(length));
        }
    }
}
