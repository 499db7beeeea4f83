//! What PBKDF2 makes of passwords, kept, so that it runs once for each and not once for each
//! connection.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OnceCell, Semaphore};
use wire::pg::auth::{ScramKeys, ScramVerifier};

/// Most entries of each kind: one for each (password, salt, iterations) of a server's user, one
/// for each plain password of a client.
pub const KEYS_MAX: usize = 1024;

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
    deriving: Semaphore,
}

impl Default for KeyCache {
    fn default() -> Self {
        KeyCache {
            keys: Kept { known: Mutex::default() },
            verifiers: Kept { known: Mutex::default() },
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
    async fn no_more_keys_are_kept_than_the_ceiling() {
        let cache = KeyCache::default();
        for i in 0..=KEYS_MAX {
            cache.keys("pencil", &i.to_be_bytes(), 1).await.expect("keys");
        }
        assert!(cache.keys.known.lock().expect("lock").len() <= KEYS_MAX);
    }
}
