//! The secret half of a client's cancel key: 4 bytes in protocol 3.0, 32 in 3.2.
//!
//! The short one is drawn and stored. The long one is not: it is made of the client's number and
//! its short one, with a key that this worker alone has, when it is sent and when a request shows
//! one. A process that takes over has other keys; it can't make one of an earlier process's client
//! and passes the request on, as it does with short ones.
//!
//! Source: PostgreSQL documentation, "Message Formats", BackendKeyData.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use smallvec::SmallVec;
use subtle::ConstantTimeEq;

use super::client::Client;
use crate::control::peering::unmarked;

/// As many as PostgreSQL's. Source: `MAX_CANCEL_KEY_LENGTH` in `src/include/libpq/pqcomm.h`.
const LONG_BYTES: usize = 32;

pub type CancelKey = SmallVec<[u8; LONG_BYTES]>;

/// Of one worker.
#[derive(Debug)]
pub struct CancelKeys(Hmac<Sha256>);

impl CancelKeys {
    pub fn new(random: [u8; 32]) -> CancelKeys {
        // The block of SHA-256 has 64 bytes, of which these are the first.
        let mut block = [0; 64];
        block[..random.len()].copy_from_slice(&random);
        CancelKeys(Hmac::new(&block.into()))
    }

    pub fn of(&self, client: &Client) -> CancelKey {
        self.make(client.id, client.secret, client.long_key)
    }

    /// In a time that does not tell how much of `shown` is right. A peer may have passed it on.
    pub fn is_of(&self, client: &Client, shown: &[u8]) -> bool {
        let (shown, _) = unmarked(shown);
        self.of(client).as_slice().ct_eq(shown).into()
    }

    fn make(&self, id: u64, secret: u32, long: bool) -> CancelKey {
        if !long {
            return SmallVec::from_slice(&secret.to_be_bytes());
        }
        let mut mac = self.0.clone();
        mac.update(&id.to_be_bytes());
        mac.update(&secret.to_be_bytes());
        SmallVec::from_slice(&mac.finalize().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_is_the_same_each_time_and_nobody_elses() {
        let keys = CancelKeys::new([7; 32]);
        let long = keys.make(1, 2, true);
        assert_eq!(long.len(), LONG_BYTES);
        assert!(!long.spilled());
        assert_eq!(long, keys.make(1, 2, true));
        for (other, id, secret) in [(&keys, 2, 2), (&keys, 1, 3), (&CancelKeys::new([8; 32]), 1, 2)]
        {
            assert_ne!(long, other.make(id, secret, true));
        }
    }

    #[test]
    fn a_short_key_is_the_secret() {
        assert_eq!(CancelKeys::new([7; 32]).make(1, 0x0102_0304, false).as_slice(), [1, 2, 3, 4]);
    }
}
