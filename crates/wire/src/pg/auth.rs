//! Proving who a client is, and proving it to a server: stored secrets, md5 and SCRAM-SHA-256.
//!
//! Nothing here draws random numbers: salts and nonces are arguments. PBKDF2 is slow by design
//! (some milliseconds): [`Secret::check_plain`] of a SCRAM secret, [`ScramVerifier::derive`] and
//! [`ScramKeys::derive`] don't belong on a thread that serves others.
//!
//! Source: PostgreSQL documentation, "SASL Authentication", "Password Authentication".

mod saslprep;
mod scram_client;
mod scram_server;
mod verifier;

use std::fmt;

use base64::prelude::{Engine, BASE64_STANDARD};
use md5::{Digest, Md5};
use sha2::Sha256;
use subtle::ConstantTimeEq;

pub use scram_client::{AwaitServerFinal, ScramClient, ScramNeedsKeys};
pub use scram_server::ScramServer;
pub use verifier::{ScramKeys, ScramVerifier, SCRAM_ITERATIONS_MAX};

use super::frame::WireError;

/// The SASL mechanism both ends of this crate speak.
pub const SCRAM_SHA_256: &str = "SCRAM-SHA-256";

/// The same, bound to the TLS connection that it takes place on.
pub const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// How an exchange is bound to its TLS connection, so that nobody can pass it on to another one.
///
/// Source: RFC 5802, section 6; RFC 5929, section 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding<'a> {
    /// This end can't: there is no TLS, or no hash for the certificate.
    Unable,
    /// This end could. As a client it says that the server did not offer it; as a server it has,
    /// and refuses who says otherwise: somebody between them has taken the offer away.
    Unused,
    /// By the hash of the server's certificate, `tls-server-end-point`.
    EndPoint(&'a [u8]),
}

const END_POINT: &str = "tls-server-end-point";

impl Binding<'_> {
    /// The header of a client's first message.
    fn header(self) -> String {
        match self {
            Binding::Unable => "n,,".to_owned(),
            Binding::Unused => "y,,".to_owned(),
            Binding::EndPoint(_) => format!("p={END_POINT},,"),
        }
    }

    /// The `c=` value of its last.
    fn repeated(self) -> String {
        let mut data = self.header().into_bytes();
        if let Binding::EndPoint(hash) = self {
            data.extend_from_slice(hash);
        }
        BASE64_STANDARD.encode(data)
    }
}

/// Most bytes of a SCRAM message. PostgreSQL takes 1024 of a client, libpq 2000 of a server.
///
/// Source: `PG_MAX_SASL_MESSAGE_LENGTH` in `src/include/libpq/sasl.h`; `PQconnectPoll` in
/// `src/interfaces/libpq/fe-connect.c`.
pub const SCRAM_MESSAGE_BYTES_MAX: usize = 2000;

/// A password as it is stored: in the clear, as PostgreSQL's md5 hash, or as a SCRAM verifier.
/// Its `Debug` form never shows it.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    Plain(String),
    /// 32 hexadecimal digits of md5(password, user), lower case.
    Md5([u8; 32]),
    Scram(ScramVerifier),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Secret::Plain(_) => "Secret::Plain(..)",
            Secret::Md5(_) => "Secret::Md5(..)",
            Secret::Scram(_) => "Secret::Scram(..)",
        })
    }
}

impl Secret {
    /// Reads `rolpassword` or a line of PgBouncer's user list: `md5` and 32 hexadecimal digits,
    /// `SCRAM-SHA-256$iterations:salt$stored:server`, or else a password in the clear.
    ///
    /// # Errors
    /// `BadSecret` for a text that starts as a SCRAM verifier and is none: it would be a password
    /// everybody who has seen the file knows.
    ///
    /// Source: `get_password_type` in `src/backend/libpq/crypt.c`.
    pub fn parse(stored: &str) -> Result<Secret, WireError> {
        if stored.starts_with("SCRAM-SHA-256$") {
            return Ok(Secret::Scram(ScramVerifier::parse(stored)?));
        }
        let is_hex = |c: &u8| c.is_ascii_digit() || (b'a'..=b'f').contains(c);
        match stored.strip_prefix("md5").map(|hex| <[u8; 32]>::try_from(hex.as_bytes())) {
            Some(Ok(hex)) if hex.iter().all(is_hex) => Ok(Secret::Md5(hex)),
            _ => Ok(Secret::Plain(stored.to_owned())),
        }
    }

    /// Whether `password`, received in the clear, is the right one. Takes constant time for
    /// passwords of one length; derives keys (slow) when the secret is a SCRAM verifier. An empty
    /// password is never right, as in PostgreSQL.
    pub fn check_plain(&self, user: &str, password: &[u8]) -> bool {
        let right = match self {
            Secret::Plain(plain) => same(plain.as_bytes(), password),
            Secret::Md5(hex) => same(hex, &md5_hex(&[password, user.as_bytes()])),
            Secret::Scram(verifier) => verifier.check_plain(password),
        };
        right && !password.is_empty()
    }

    /// Whether `response` answers an md5 request with `salt`; `None` when this secret can't tell:
    /// a SCRAM verifier, or an empty password.
    pub fn check_md5(&self, user: &str, salt: [u8; 4], response: &[u8]) -> Option<bool> {
        let hash = match self {
            Secret::Plain(plain) if plain.is_empty() => return None,
            Secret::Plain(plain) => md5_hex(&[plain.as_bytes(), user.as_bytes()]),
            Secret::Md5(hex) => *hex,
            Secret::Scram(_) => return None,
        };
        Some(same(md5_response_from_hash(&hash, salt).as_bytes(), response))
    }

    /// The verifier for a SCRAM exchange: the stored one, or one derived (slow) from a password in
    /// the clear; `None` when there can be none: an md5 hash, or an empty password.
    pub fn scram_verifier(&self, salt: &[u8], iterations: u32) -> Option<ScramVerifier> {
        match self {
            Secret::Plain(plain) if plain.is_empty() => None,
            Secret::Plain(plain) => Some(ScramVerifier::derive(plain, salt, iterations)),
            Secret::Md5(_) => None,
            Secret::Scram(verifier) => Some(verifier.clone()),
        }
    }
}

/// The answer to an md5 request: `md5` and md5(md5(password, user), salt) in hexadecimal.
///
/// Source: "Message Flow", AuthenticationMD5Password.
pub fn md5_response(user: &str, password: &str, salt: [u8; 4]) -> String {
    md5_response_from_hash(&md5_hex(&[password.as_bytes(), user.as_bytes()]), salt)
}

/// As [`md5_response`], from the 32 hexadecimal digits of [`Secret::Md5`].
pub fn md5_response_from_hash(hash: &[u8; 32], salt: [u8; 4]) -> String {
    let mut response = String::with_capacity(35);
    response.push_str("md5");
    response.extend(md5_hex(&[hash, &salt]).iter().map(|b| char::from(*b)));
    response
}

fn md5_hex(parts: &[&[u8]]) -> [u8; 32] {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(part);
    }
    let mut hex = [0; 32];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(md5.finalize()) {
        pair[0] = HEX_DIGITS[usize::from(byte >> 4)];
        pair[1] = HEX_DIGITS[usize::from(byte & 15)];
    }
    hex
}

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Compares secrets. Their digests are compared, so neither the place of the first difference nor
/// the length of the secret shows in the time taken.
fn same(a: &[u8], b: &[u8]) -> bool {
    Sha256::digest(a).ct_eq(&Sha256::digest(b)).into()
}

/// Why a SCRAM exchange ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScramError {
    /// A message of more than [`SCRAM_MESSAGE_BYTES_MAX`] bytes.
    TooLong { len: usize },
    /// This part of a message breaks the grammar of RFC 5802.
    Malformed(&'static str),
    /// The peer wants something RFC 5802 offers and this end does not: channel binding, an
    /// authorization identity or a mandatory extension.
    Unsupported(&'static str),
    /// The client thinks that this end does not offer channel binding, which it does.
    ChannelBindingDeclined,
    /// The channel-binding data is not of this connection, or does not repeat the header of the
    /// first message.
    ChannelBindingMismatch,
    /// The nonce is not the one of this exchange.
    NonceMismatch,
    /// The client's proof is wrong: in all likelihood the password.
    WrongProof,
    /// The server's signature is wrong: it does not know the password.
    WrongServerSignature,
    /// The server wants more PBKDF2 rounds than this end is ready to spend.
    TooManyIterations { got: u32, max: u32 },
    /// The server ended the exchange with this error (`e=`).
    Server(String),
}

impl fmt::Display for ScramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScramError::TooLong { len } => {
                write!(f, "SCRAM message of {len} bytes, at most {SCRAM_MESSAGE_BYTES_MAX}")
            }
            ScramError::Malformed(what) => write!(f, "malformed SCRAM message: {what}"),
            ScramError::Unsupported(what) => write!(f, "SCRAM {what} is not supported"),
            ScramError::ChannelBindingDeclined => {
                f.write_str("SCRAM channel binding negotiation error")
            }
            ScramError::ChannelBindingMismatch => f.write_str("SCRAM channel binding mismatch"),
            ScramError::NonceMismatch => f.write_str("SCRAM nonce mismatch"),
            ScramError::WrongProof => f.write_str("wrong SCRAM proof"),
            ScramError::WrongServerSignature => f.write_str("wrong SCRAM server signature"),
            ScramError::TooManyIterations { got, max } => {
                write!(f, "server asks for {got} SCRAM iterations, at most {max} are done")
            }
            ScramError::Server(error) => write!(f, "server ended the SCRAM exchange: {error}"),
        }
    }
}

impl std::error::Error for ScramError {}

/// Takes `name=value` off the front of a SCRAM message, and the comma after it.
fn attribute<'a>(
    rest: &mut &'a str,
    name: char,
    what: &'static str,
) -> Result<&'a str, ScramError> {
    let text = rest
        .strip_prefix(name)
        .and_then(|text| text.strip_prefix('='))
        .ok_or(ScramError::Malformed(what))?;
    let (value, after) = text.split_once(',').unwrap_or((text, ""));
    *rest = after;
    Ok(value)
}

/// A nonce is not empty and of printable ASCII without comma.
///
/// Source: RFC 5802, section 7, `printable`.
fn is_nonce(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && b != b',')
}

/// A SCRAM message as text, without NULs.
fn message_text(message: &[u8]) -> Result<&str, ScramError> {
    if message.len() > SCRAM_MESSAGE_BYTES_MAX {
        return Err(ScramError::TooLong { len: message.len() });
    }
    match std::str::from_utf8(message) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(ScramError::Malformed("text")),
    }
}
