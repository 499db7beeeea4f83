//! The server's side of SCRAM-SHA-256: two steps, one value.
//!
//! `start` takes the client-first message and gives the server-first one; `finish` takes the
//! client-final message and gives the server-final one. Either error ends the exchange.
//!
//! Where channel binding is not offered (`SCRAM-SHA-256-PLUS`), a client may say that it can't do
//! it (`n`) or that it believes this end can't (`y`), not that it uses it (`p=`). Where it is
//! offered, `y` is a lie of somebody in between.
//!
//! Source: RFC 5802, sections 5 and 7.

use base64::prelude::{Engine, BASE64_STANDARD};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::verifier::{hmac, key_of, xor};
use super::{attribute, is_nonce, message_text, Binding, ScramError, ScramVerifier, END_POINT};

/// Waits for the client-final message.
pub struct ScramServer {
    stored_key: [u8; 32],
    server_key: [u8; 32],
    /// The `c=` value that repeats the client's header.
    binding: String,
    /// The client's nonce and ours.
    nonce: String,
    /// client-first-bare "," server-first ","
    auth_message: String,
}

impl ScramServer {
    /// Answers the client-first message. `nonce` is fresh and random, of at least 18 bytes of
    /// base64 or other printable ASCII.
    ///
    /// # Errors
    /// `Malformed`, `ChannelBindingDeclined`, or `Unsupported` for channel binding, an
    /// authorization identity or a mandatory extension.
    pub fn start(
        verifier: &ScramVerifier,
        client_first: &[u8],
        nonce: &str,
        binding: Binding<'_>,
    ) -> Result<(ScramServer, Vec<u8>), ScramError> {
        let text = message_text(client_first)?;
        let (flag, after) =
            text.split_once(',').ok_or(ScramError::Malformed("channel-binding flag"))?;
        let binding = said(flag, binding)?;
        let bare = match after.split_once(',') {
            Some(("", bare)) => bare,
            Some((authzid, _)) if authzid.starts_with("a=") => {
                return Err(ScramError::Unsupported("authorization identity"))
            }
            _ => return Err(ScramError::Malformed("authorization identity")),
        };
        if bare.starts_with("m=") {
            return Err(ScramError::Unsupported("mandatory extension"));
        }
        let mut rest = bare;
        // The name counts as little as in PostgreSQL: the start-up packet had it.
        attribute(&mut rest, 'n', "user name")?;
        let client_nonce = attribute(&mut rest, 'r', "nonce")?;
        if !is_nonce(client_nonce) {
            return Err(ScramError::Malformed("nonce"));
        }
        let nonce = format!("{client_nonce}{nonce}");
        let salt = BASE64_STANDARD.encode(&verifier.salt);
        let server_first = format!("r={nonce},s={salt},i={}", verifier.iterations);
        let server = ScramServer {
            stored_key: verifier.stored_key,
            server_key: verifier.server_key,
            binding: binding.repeated(),
            nonce,
            auth_message: format!("{bare},{server_first},"),
        };
        Ok((server, server_first.into_bytes()))
    }

    /// Checks the client-final message. Gives the server-final message and the ClientKey, with
    /// which this end can log in elsewhere as that client.
    ///
    /// # Errors
    /// `Malformed`, `ChannelBindingMismatch`, `NonceMismatch`, `WrongProof`.
    pub fn finish(self, client_final: &[u8]) -> Result<(Vec<u8>, [u8; 32]), ScramError> {
        let text = message_text(client_final)?;
        // The proof is the last attribute, and base64 has no comma.
        let (without_proof, proof) =
            text.rsplit_once(",p=").ok_or(ScramError::Malformed("proof"))?;
        let proof = key_of(proof).ok_or(ScramError::Malformed("proof"))?;
        let mut rest = without_proof;
        if attribute(&mut rest, 'c', "channel binding")? != self.binding {
            return Err(ScramError::ChannelBindingMismatch);
        }
        if attribute(&mut rest, 'r', "nonce")? != self.nonce {
            return Err(ScramError::NonceMismatch);
        }
        let message = [self.auth_message.as_bytes(), without_proof.as_bytes()];
        let client_key = xor(&proof, &hmac(&self.stored_key, &message));
        if !bool::from(Sha256::digest(client_key).ct_eq(&self.stored_key)) {
            return Err(ScramError::WrongProof);
        }
        let signature = BASE64_STANDARD.encode(hmac(&self.server_key, &message));
        Ok((format!("v={signature}").into_bytes(), client_key))
    }
}

impl std::fmt::Debug for ScramServer {
    /// Never prints what is derived from a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScramServer(..)")
    }
}

/// What a client's flag says, if it may say so.
///
/// Source: `read_client_first_message` in `src/backend/libpq/auth-scram.c`.
fn said<'a>(flag: &str, ours: Binding<'a>) -> Result<Binding<'a>, ScramError> {
    match (flag, ours) {
        ("n" | "y", Binding::EndPoint(_)) => Err(ScramError::Malformed("channel-binding flag")),
        ("n", _) => Ok(Binding::Unable),
        ("y", Binding::Unable) => Ok(Binding::Unused),
        ("y", Binding::Unused) => Err(ScramError::ChannelBindingDeclined),
        _ => match (flag.strip_prefix("p="), ours) {
            (Some(END_POINT), Binding::EndPoint(_)) => Ok(ours),
            (Some(_), Binding::EndPoint(_)) => Err(ScramError::Unsupported("channel-binding type")),
            (Some(_), _) => Err(ScramError::Unsupported("channel binding")),
            (None, _) => Err(ScramError::Malformed("channel-binding flag")),
        },
    }
}
