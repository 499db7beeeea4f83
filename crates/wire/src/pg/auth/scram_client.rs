//! The client's side of SCRAM-SHA-256: a chain of values, one for each thing waited for.
//!
//! ```text
//! ScramClient --server-first--> ScramNeedsKeys --keys--> AwaitServerFinal --server-final--> done
//! ```
//!
//! Deriving the keys is slow, so it is left to the caller, who may keep them or do it elsewhere.
//!
//! Source: RFC 5802, sections 5 and 7.

use base64::prelude::{Engine, BASE64_STANDARD};
use subtle::ConstantTimeEq;

use super::verifier::{hmac, iterations_of, key_of, xor};
use super::{
    attribute, is_nonce, message_text, Binding, ScramError, ScramKeys, SCRAM_ITERATIONS_MAX,
};

/// The client-first message without its header. The name is left empty, as libpq does: the
/// server takes it from the start-up packet.
const BARE_PREFIX: &str = "n=,r=";

/// Waits for the server-first message.
pub struct ScramClient {
    nonce: String,
    /// The `c=` value.
    binding: String,
}

/// Waits for the keys of the password, salted as the server says.
pub struct ScramNeedsKeys {
    pub salt: Vec<u8>,
    /// From 1 to [`SCRAM_ITERATIONS_MAX`].
    pub iterations: u32,
    /// client-first-bare "," server-first ","
    auth_message: String,
    /// client-final without its proof.
    without_proof: String,
}

/// Waits for the server-final message.
pub struct AwaitServerFinal {
    signature: [u8; 32],
}

impl ScramClient {
    /// Gives the client-first message. `nonce` is fresh and random, of at least 18 bytes of
    /// base64 or other printable ASCII without comma.
    pub fn start(nonce: &str, binding: Binding<'_>) -> (ScramClient, Vec<u8>) {
        let first = format!("{}{BARE_PREFIX}{nonce}", binding.header());
        (ScramClient { nonce: nonce.to_owned(), binding: binding.repeated() }, first.into_bytes())
    }

    /// Takes the server-first message.
    ///
    /// # Errors
    /// `Malformed`, `NonceMismatch`, `TooManyIterations`, or `Unsupported` for a mandatory
    /// extension.
    pub fn server_first(self, message: &[u8]) -> Result<ScramNeedsKeys, ScramError> {
        let text = message_text(message)?;
        if text.starts_with("m=") {
            return Err(ScramError::Unsupported("mandatory extension"));
        }
        let mut rest = text;
        let nonce = attribute(&mut rest, 'r', "nonce")?;
        match nonce.strip_prefix(&self.nonce) {
            Some(theirs) if is_nonce(theirs) => {}
            _ => return Err(ScramError::NonceMismatch),
        }
        let salt = attribute(&mut rest, 's', "salt")?;
        let salt = BASE64_STANDARD.decode(salt).map_err(|_| ScramError::Malformed("salt"))?;
        let got = iterations_of(attribute(&mut rest, 'i', "iteration count")?)
            .ok_or(ScramError::Malformed("iteration count"))?;
        if got > SCRAM_ITERATIONS_MAX {
            return Err(ScramError::TooManyIterations { got, max: SCRAM_ITERATIONS_MAX });
        }
        Ok(ScramNeedsKeys {
            salt,
            iterations: got,
            auth_message: format!("{BARE_PREFIX}{},{text},", self.nonce),
            without_proof: format!("c={},r={nonce}", self.binding),
        })
    }
}

impl ScramNeedsKeys {
    /// Gives the client-final message; `keys` are those of [`ScramKeys::derive`] for `salt` and
    /// `iterations`.
    pub fn with_keys(self, keys: &ScramKeys) -> (AwaitServerFinal, Vec<u8>) {
        let message = [self.auth_message.as_bytes(), self.without_proof.as_bytes()];
        let proof = xor(&keys.client_key, &hmac(&keys.stored_key, &message));
        let proof = BASE64_STANDARD.encode(proof);
        let client_final = format!("{},p={proof}", self.without_proof);
        let signature = hmac(&keys.server_key, &message);
        (AwaitServerFinal { signature }, client_final.into_bytes())
    }
}

impl AwaitServerFinal {
    /// Takes the server-final message, which proves that the server knows the password.
    ///
    /// # Errors
    /// `Server` with its error, `WrongServerSignature`, `Malformed`.
    pub fn server_final(self, message: &[u8]) -> Result<(), ScramError> {
        let mut rest = message_text(message)?;
        if rest.starts_with("e=") {
            return Err(ScramError::Server(attribute(&mut rest, 'e', "error")?.to_owned()));
        }
        let signature = key_of(attribute(&mut rest, 'v', "server signature")?)
            .ok_or(ScramError::Malformed("server signature"))?;
        if bool::from(signature.ct_eq(&self.signature)) {
            Ok(())
        } else {
            Err(ScramError::WrongServerSignature)
        }
    }
}
