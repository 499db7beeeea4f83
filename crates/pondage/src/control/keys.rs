//! The SCRAM keys of passwords, so that PBKDF2 runs once for each and not once for each
//! connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;
use wire::pg::auth::ScramKeys;

/// Most keys kept: one for each (password, salt, iterations), so about one for each server user.
pub const KEYS_MAX: usize = 1024;

type Source = (String, Vec<u8>, u32);

/// Keys that were derived, or are being derived. Whoever asks for keys that another is deriving
/// waits for those.
#[derive(Default)]
pub struct KeyCache {
    /// A plain mutex: held for a look or an insertion, never across an await.
    known: Mutex<HashMap<Source, Arc<OnceCell<ScramKeys>>>>,
}

impl KeyCache {
    /// The keys of `password`, salted like this. Derives them on a thread for blocking work.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn keys(
        &self,
        password: &str,
        salt: &[u8],
        iterations: u32,
    ) -> std::io::Result<ScramKeys> {
        let source = (password.to_owned(), salt.to_vec(), iterations);
        let cell = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= KEYS_MAX && !known.contains_key(&source) {
                known.clear();
            }
            known.entry(source.clone()).or_default().clone()
        };
        let derive = || async move {
            let (password, salt, iterations) = source;
            let derive = move || ScramKeys::derive(&password, &salt, iterations);
            tokio::task::spawn_blocking(derive).await.map_err(std::io::Error::other)
        };
        cell.get_or_try_init(derive).await.cloned()
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
        assert_eq!(cache.known.lock().expect("lock").len(), 2);
    }

    #[tokio::test]
    async fn no_more_keys_are_kept_than_the_ceiling() {
        let cache = KeyCache::default();
        for i in 0..=KEYS_MAX {
            cache.keys("pencil", &i.to_be_bytes(), 1).await.expect("keys");
        }
        assert!(cache.known.lock().expect("lock").len() <= KEYS_MAX);
    }
}
