//! What channel binding binds to: the hash of the certificate that the server's end has shown.
//!
//! Source: RFC 5929, section 4 (`tls-server-end-point`); `be_tls_get_certificate_hash` in
//! `src/backend/libpq/be-secure-openssl.c`.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};

use crate::der::{element, OID, SEQUENCE};

/// 1.2.840.113549.1.1
const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
/// 1.2.840.10045.4
const ECDSA: [u8; 6] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 4];
/// 2.16.840.1.101.3.4.2
const HASHES: [u8; 8] = [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2];
/// 1.3.14.3.2.26
const SHA1: [u8; 5] = [0x2b, 0x0e, 3, 2, 0x1a];

/// The hash that signatures of an algorithm are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha224,
    /// Also where the signature has MD5 or SHA-1, which are too weak.
    Sha256,
    Sha384,
    Sha512,
    Sha512224,
    Sha512256,
}

/// The hash of a certificate (DER) by the hash of its signature. None where the signature has none
/// of its own (Ed25519), and for algorithms that are not known here.
pub fn of(certificate: &[u8]) -> Option<Vec<u8>> {
    Some(match hash_of(certificate)? {
        Hash::Sha224 => Sha224::digest(certificate).to_vec(),
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
        Hash::Sha512224 => Sha512_224::digest(certificate).to_vec(),
        Hash::Sha512256 => Sha512_256::digest(certificate).to_vec(),
    })
}

/// A certificate is a SEQUENCE of what is signed, the algorithm, and the signature.
fn hash_of(certificate: &[u8]) -> Option<Hash> {
    let mut rest = certificate;
    let mut parts = element(&mut rest, SEQUENCE)?;
    element(&mut parts, SEQUENCE)?;
    let mut algorithm = element(&mut parts, SEQUENCE)?;
    let name = element(&mut algorithm, OID)?;
    if let Some(kind) = name.strip_prefix(&RSA) {
        return match kind {
            [10] => of_pss(algorithm),
            [4 | 5 | 11] => Some(Hash::Sha256),
            [12] => Some(Hash::Sha384),
            [13] => Some(Hash::Sha512),
            [14] => Some(Hash::Sha224),
            [15] => Some(Hash::Sha512224),
            [16] => Some(Hash::Sha512256),
            _ => None,
        };
    }
    match name.strip_prefix(&ECDSA)? {
        [1] | [3, 2] => Some(Hash::Sha256),
        [3, 1] => Some(Hash::Sha224),
        [3, 3] => Some(Hash::Sha384),
        [3, 4] => Some(Hash::Sha512),
        _ => None,
    }
}

/// RSASSA-PSS says its hash in the first of its parameters; SHA-1 where it does not.
///
/// Source: RFC 4055, section 3.1.
fn of_pss(mut parameters: &[u8]) -> Option<Hash> {
    const FIRST: u8 = 0xa0;
    let mut parameters = element(&mut parameters, SEQUENCE)?;
    let Some(mut first) = element(&mut parameters, FIRST) else { return Some(Hash::Sha256) };
    let mut algorithm = element(&mut first, SEQUENCE)?;
    let name = element(&mut algorithm, OID)?;
    if name == SHA1 {
        return Some(Hash::Sha256);
    }
    match name.strip_prefix(&HASHES)? {
        [1] => Some(Hash::Sha256),
        [2] => Some(Hash::Sha384),
        [3] => Some(Hash::Sha512),
        [4] => Some(Hash::Sha224),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate of which only the algorithm of its signature is there.
    fn signed_by(algorithm: &[u8]) -> Vec<u8> {
        let mut inner = vec![SEQUENCE, 0, SEQUENCE, algorithm.len() as u8];
        inner.extend_from_slice(algorithm);
        let mut whole = vec![SEQUENCE, inner.len() as u8];
        whole.extend_from_slice(&inner);
        whole
    }

    fn named(prefix: &[u8], kind: &[u8]) -> Vec<u8> {
        let mut name = vec![OID, (prefix.len() + kind.len()) as u8];
        name.extend_from_slice(prefix);
        name.extend_from_slice(kind);
        name
    }

    #[test]
    fn hash_is_the_signatures_unless_that_is_weak() {
        let cases: [(&[u8], &[u8], Option<Hash>); 11] = [
            (&RSA, &[4], Some(Hash::Sha256)),
            (&RSA, &[5], Some(Hash::Sha256)),
            (&RSA, &[11], Some(Hash::Sha256)),
            (&RSA, &[12], Some(Hash::Sha384)),
            (&RSA, &[13], Some(Hash::Sha512)),
            (&ECDSA, &[1], Some(Hash::Sha256)),
            (&ECDSA, &[3, 2], Some(Hash::Sha256)),
            (&ECDSA, &[3, 3], Some(Hash::Sha384)),
            (&ECDSA, &[3, 4], Some(Hash::Sha512)),
            // Ed25519, and something that nobody knows.
            (&[0x2b, 0x65], &[0x70], None),
            (&RSA, &[99], None),
        ];
        for (prefix, kind, hash) in cases {
            assert_eq!(hash_of(&signed_by(&named(prefix, kind))), hash, "{prefix:?} {kind:?}");
        }
        let certificate = signed_by(&named(&RSA, &[12]));
        assert_eq!(of(&certificate), Some(Sha384::digest(&certificate).to_vec()));
    }

    #[test]
    fn pss_says_its_hash_itself() {
        let pss = |parameters: &[u8]| {
            let mut algorithm = named(&RSA, &[10]);
            algorithm.extend_from_slice(parameters);
            hash_of(&signed_by(&algorithm))
        };
        let with = |name: &[u8]| {
            let mut parameters = vec![SEQUENCE, name.len() as u8 + 4, 0xa0, name.len() as u8 + 2];
            parameters.extend_from_slice(&[SEQUENCE, name.len() as u8]);
            parameters.extend_from_slice(name);
            pss(&parameters)
        };
        assert_eq!(pss(&[SEQUENCE, 0]), Some(Hash::Sha256), "SHA-1 by default");
        assert_eq!(with(&named(&SHA1, &[])), Some(Hash::Sha256));
        assert_eq!(with(&named(&HASHES, &[3])), Some(Hash::Sha512));
        assert_eq!(with(&named(&HASHES, &[99])), None);
        assert_eq!(pss(&[]), None);
    }

    #[test]
    fn what_is_cut_off_or_altered_has_no_hash_or_one_and_never_panics() {
        let whole = signed_by(&named(&ECDSA, &[3, 3]));
        for end in 0..whole.len() {
            assert_eq!(of(&whole[..end]), None);
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0x80, 0x81, 0x82, 0xff] {
                let mut altered = whole.clone();
                altered[at] = byte;
                let _ = of(&altered);
            }
        }
    }
}
