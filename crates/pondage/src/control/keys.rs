//! What PBKDF2 makes of passwords, kept, so that it runs once for each and not once for each
//! connection.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::{OnceCell, Semaphore};
use wire::pg::auth::{ScramKeys, ScramVerifier, Secret};

/// Most entries of each kind: one for each (password, salt, iterations) of a server's user, one
/// for each plain password of a client.
pub const KEYS_MAX: usize = 1024;

/// Most users whose password is known to be right.
pub const RIGHT_MAX: usize = 16_384;

/// Derivations at one time: clients that fail to log in must not take all the processors.
const DERIVING_MAX: usize = 2;

/// As many as PostgreSQL's `scram_iterations`.
const ITERATIONS: u32 = 4096;

/// Bytes of a salt.
///
/// Source: `SCRAM_DEFAULT_SALT_LEN` in `src/include/common/scram-common.h`.
const SALT_BYTES: usize = 16;

/// Values that were made, or are being made. Whoever asks for one that is being made waits for it.
struct Kept<K, V> {
    /// A plain mutex: held for a look or an insertion, never across an await.
    known: Mutex<HashMap<K, Arc<OnceCell<V>>>>,
}

impl<K: Hash + Eq, V: Clone> Kept<K, V> {
    async fn get<F: Future<Output = io::Result<V>>>(
        &self,
        key: K,
        make: impl FnOnce() -> F,
    ) -> io::Result<V> {
        let cell = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= KEYS_MAX && !known.contains_key(&key) {
                known.clear();
            }
            known.entry(key).or_default().clone()
        };
        cell.get_or_try_init(make).await.cloned()
    }
}

/// What is derived from passwords, on threads for blocking work.
pub struct KeyCache {
    keys: Kept<(String, Vec<u8>, u32), ScramKeys>,
    verifiers: Kept<String, ScramVerifier>,
    /// By the stored key of a verifier, the digest of the password that fits it: a client that
    /// comes again costs no second PBKDF2. Wrong passwords leave nothing behind. A plain mutex:
    /// held for a look or an insertion.
    right: Mutex<HashMap<[u8; 32], [u8; 32]>>,
    /// Makes digests worth nothing to anybody else.
    pepper: [u8; 32],
    deriving: Semaphore,
}

impl Default for KeyCache {
    fn default() -> Self {
        KeyCache {
            keys: Kept { known: Mutex::default() },
            verifiers: Kept { known: Mutex::default() },
            right: Mutex::default(),
            pepper: rand::random(),
            deriving: Semaphore::new(DERIVING_MAX),
        }
    }
}

impl KeyCache {
    /// The keys of `password`, salted like this, to log in to a server.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn keys(
        &self,
        password: &str,
        salt: &[u8],
        iterations: u32,
    ) -> io::Result<ScramKeys> {
        let (secret, salt) = (password.to_owned(), salt.to_vec());
        let key = (secret.clone(), salt.clone(), iterations);
        let derive = move || ScramKeys::derive(&secret, &salt, iterations);
        self.keys.get(key, || self.slowly(derive)).await
    }

    /// A verifier of `password`, to check clients; the same one until it is forgotten.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn verifier(&self, password: &str) -> io::Result<ScramVerifier> {
        let secret = password.to_owned();
        let salt: [u8; SALT_BYTES] = rand::random();
        let derive = move || ScramVerifier::derive(&secret, &salt, ITERATIONS);
        self.verifiers.get(password.to_owned(), || self.slowly(derive)).await
    }

    /// Whether a password that came in the clear is the user's.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn check(&self, secret: Secret, user: String, password: Vec<u8>) -> io::Result<bool> {
        let digest: [u8; 32] =
            Sha256::new().chain_update(self.pepper).chain_update(&password).finalize().into();
        let stored_key = match &secret {
            Secret::Scram(verifier) => Some(verifier.stored_key),
            Secret::Plain(_) | Secret::Md5(_) => None,
        };
        let right = || self.right.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = stored_key.and_then(|key| right().get(&key).copied()) {
            if bool::from(known.ct_eq(&digest)) {
                return Ok(true);
            }
        }
        let is_right = self.slowly(move || secret.check_plain(&user, &password)).await?;
        if let Some(key) = stored_key.filter(|_| is_right) {
            let mut right = right();
            if right.len() >= RIGHT_MAX {
                right.clear();
            }
            right.insert(key, digest);
        }
        Ok(is_right)
    }

    /// Does work that takes milliseconds of processor where it stops nobody else.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn slowly<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let _permit = self.deriving.acquire().await.map_err(io::Error::other)?;
        tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keys_are_derived_once_and_differ_by_salt() {
        let cache = KeyCache::default();
        let first = cache.keys("pencil", b"salt", 8).await.expect("keys");
        assert_eq!(first, ScramKeys::derive("pencil", b"salt", 8));
        assert_eq!(cache.keys("pencil", b"salt", 8).await.expect("keys"), first);
        assert_ne!(cache.keys("pencil", b"other", 8).await.expect("keys"), first);
        assert_eq!(cache.keys.known.lock().expect("lock").len(), 2);
    }

    #[tokio::test]
    async fn clients_that_ask_at_once_share_one_verifier() {
        let cache = KeyCache::default();
        let (one, two) = tokio::join!(cache.verifier("pencil"), cache.verifier("pencil"));
        assert_eq!(one.expect("verifier"), two.expect("verifier"));
        assert_ne!(cache.verifier("other").await.expect("verifier").salt, [0; SALT_BYTES]);
    }

    #[tokio::test]
    async fn a_right_password_is_derived_once_and_a_wrong_one_is_wrong_each_time() {
        let cache = KeyCache::default();
        // So many rounds that a second derivation would be noticed.
        let verifier = ScramVerifier::derive("pencil", b"salt", 200_000);
        let check = |password: &str| {
            let secret = Secret::Scram(verifier.clone());
            cache.check(secret, "user".to_owned(), password.as_bytes().to_vec())
        };
        assert!(!check("pencils").await.expect("checked"));
        assert!(check("pencil").await.expect("checked"));
        let began = std::time::Instant::now();
        for _ in 0..1000 {
            assert!(check("pencil").await.expect("checked"));
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(5), "each is derived");
        assert!(!check("pencils").await.expect("checked"));
        assert_eq!(cache.right.lock().expect("lock").len(), 1);
        let md5 = Secret::parse("md51a24d5231e5b35504f6501bbdf87b4f6").expect("a hash");
        assert!(cache.check(md5, "hash".to_owned(), b"pencil".to_vec()).await.expect("checked"));
    }

    #[tokio::test]
    async fn no_more_keys_are_kept_than_the_ceiling() {
        let cache = KeyCache::default();
        for i in 0..=KEYS_MAX {
            cache.keys("pencil", &i.to_be_bytes(), 1).await.expect("keys");
        }
        assert!(cache.keys.known.lock().expect("lock").len() <= KEYS_MAX);
    }
}
