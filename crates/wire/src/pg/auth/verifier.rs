//! What SCRAM-SHA-256 stores and derives.
//!
//! ```text
//! SaltedPassword = PBKDF2(password, salt, iterations)       slow
//! ClientKey      = HMAC(SaltedPassword, "Client Key")       proves a client
//! StoredKey      = SHA-256(ClientKey)                       checks that proof
//! ServerKey      = HMAC(SaltedPassword, "Server Key")       proves a server
//! ```
//!
//! Source: RFC 5802, section 3; RFC 7677.

use std::fmt;

use base64::prelude::{Engine, BASE64_STANDARD};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::super::frame::WireError;
use super::saslprep::prepared;

/// Most PBKDF2 iterations done at the request of a server (PostgreSQL's default is 4096): about
/// a second of work, so that a hostile server can't keep a thread busy for hours.
pub const SCRAM_ITERATIONS_MAX: u32 = 1_000_000;

/// Bytes of the salt of a made-up verifier, as of PostgreSQL's own.
///
/// Source: `SCRAM_DEFAULT_SALT_LEN` in `src/include/common/scram-common.h`.
const SALT_BYTES: usize = 16;

/// What a server keeps of a password: enough to check a client, not enough to be one.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramVerifier {
    pub iterations: u32,
    pub salt: Vec<u8>,
    pub stored_key: [u8; 32],
    pub server_key: [u8; 32],
}

/// What a client needs to log in without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramKeys {
    pub client_key: [u8; 32],
    pub stored_key: [u8; 32],
    pub server_key: [u8; 32],
}

impl ScramVerifier {
    /// Reads PostgreSQL's text form, `SCRAM-SHA-256$iterations:salt$stored:server`.
    ///
    /// # Errors
    /// `BadSecret` with the part that is wrong.
    ///
    /// Source: `parse_scram_secret` in `src/backend/libpq/auth-scram.c`.
    pub fn parse(text: &str) -> Result<ScramVerifier, WireError> {
        let rest = text
            .strip_prefix("SCRAM-SHA-256$")
            .ok_or(WireError::BadSecret("not a SCRAM-SHA-256 verifier"))?;
        let (head, keys) =
            rest.split_once('$').ok_or(WireError::BadSecret("SCRAM verifier without keys"))?;
        let (iterations, salt) =
            head.split_once(':').ok_or(WireError::BadSecret("SCRAM verifier without salt"))?;
        let (stored, server) = keys
            .split_once(':')
            .ok_or(WireError::BadSecret("SCRAM verifier without server key"))?;
        Ok(ScramVerifier {
            iterations: iterations_of(iterations)
                .ok_or(WireError::BadSecret("SCRAM iteration count"))?,
            salt: BASE64_STANDARD.decode(salt).map_err(|_| WireError::BadSecret("SCRAM salt"))?,
            stored_key: key_of(stored).ok_or(WireError::BadSecret("SCRAM stored key"))?,
            server_key: key_of(server).ok_or(WireError::BadSecret("SCRAM server key"))?,
        })
    }

    /// Derives the verifier of a password. Slow.
    pub fn derive(password: &str, salt: &[u8], iterations: u32) -> ScramVerifier {
        let keys = ScramKeys::derive(password, salt, iterations);
        ScramVerifier {
            iterations,
            salt: salt.to_vec(),
            stored_key: keys.stored_key,
            server_key: keys.server_key,
        }
    }

    /// The verifier of a user who does not exist. Nobody can pass it, and whoever tries sees what
    /// he would see of an existing user with a wrong password: one salt for one name, for as long
    /// as `server_secret` stays. `iterations` is what real users have, 4096 as a rule.
    ///
    /// Source: `mock_scram_secret` in `src/backend/libpq/auth-scram.c`.
    pub fn mock(server_secret: &[u8; 32], user: &str, iterations: u32) -> ScramVerifier {
        let derived =
            |label: &[u8]| hmac(server_secret, &[b"pondage mock ", label, b"\0", user.as_bytes()]);
        ScramVerifier {
            iterations,
            salt: derived(b"salt")[..SALT_BYTES].to_vec(),
            stored_key: derived(b"stored key"),
            server_key: derived(b"server key"),
        }
    }

    pub(super) fn check_plain(&self, password: &[u8]) -> bool {
        let keys = ScramKeys::derive_bytes(password, &self.salt, self.iterations);
        keys.stored_key.ct_eq(&self.stored_key).into()
    }
}

/// PostgreSQL's text form, as in `pg_authid.rolpassword`.
impl fmt::Display for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SCRAM-SHA-256${}:{}${}:{}",
            self.iterations,
            BASE64_STANDARD.encode(&self.salt),
            BASE64_STANDARD.encode(self.stored_key),
            BASE64_STANDARD.encode(self.server_key)
        )
    }
}

impl fmt::Debug for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramVerifier(..)")
    }
}

impl ScramKeys {
    /// Derives the keys of a password. Slow: `iterations` rounds of HMAC-SHA-256.
    pub fn derive(password: &str, salt: &[u8], iterations: u32) -> ScramKeys {
        ScramKeys::derive_bytes(password.as_bytes(), salt, iterations)
    }

    fn derive_bytes(password: &[u8], salt: &[u8], iterations: u32) -> ScramKeys {
        let mut salted = [0; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(&prepared(password), salt, iterations, &mut salted);
        ScramKeys::from_client_key(hmac(&salted, &[b"Client Key"]), hmac(&salted, &[b"Server Key"]))
    }

    /// The keys of a client that proved itself: what `ScramServer::finish` returned and the
    /// server key of the verifier it proved itself against. Valid for servers with that verifier.
    pub fn from_client_key(client_key: [u8; 32], server_key: [u8; 32]) -> ScramKeys {
        ScramKeys { client_key, stored_key: Sha256::digest(client_key).into(), server_key }
    }
}

impl fmt::Debug for ScramKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramKeys(..)")
    }
}

pub(super) fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC pads a key to a block of the hash with zeros.
    let mut block = [0; 64];
    block[..32].copy_from_slice(key);
    let mut mac = <Hmac<Sha256> as Mac>::new(&block.into());
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

pub(super) fn xor(a: &[u8; 32], b: &[u8; 32]) -> [u8; 32] {
    std::array::from_fn(|i| a[i] ^ b[i])
}

/// A positive count without sign or leading zero.
pub(super) fn iterations_of(text: &str) -> Option<u32> {
    if !text.starts_with(|c: char| matches!(c, '1'..='9')) {
        return None;
    }
    text.parse().ok().filter(|n| *n <= i32::MAX as u32)
}

/// 32 bytes in base64.
pub(super) fn key_of(text: &str) -> Option<[u8; 32]> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok()
}
