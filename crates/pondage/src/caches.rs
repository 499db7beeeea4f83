//! What all threads share of the caches: the store, and what the streams have told of each
//! database.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cache::shared::Shared;
use cache::store::Store;
use cache::tags::{Tags, TAGS_DEFAULT};

use crate::control::messages::ToWorker;
use crate::worker::WorkerHandle;

/// What is kept where nobody has said how much: in tests of workers.
const MEMORY_DEFAULT: u64 = 64 << 20;

/// See the module's documentation. A database comes to be when its first client logs in.
pub struct Caches {
    store: Arc<Store>,
    databases: Mutex<HashMap<String, Arc<Shared>>>,
    workers: Arc<OnceLock<Vec<WorkerHandle>>>,
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caches").field("store", &self.store.standing()).finish_non_exhaustive()
    }
}

impl Default for Caches {
    fn default() -> Caches {
        Caches::new(MEMORY_DEFAULT)
    }
}

impl Caches {
    pub fn new(memory: u64) -> Caches {
        Caches {
            store: Arc::new(Store::new(memory)),
            databases: Mutex::default(),
            workers: Arc::default(),
        }
    }

    /// The workers are there: they are woken when a stream has come as far as one of them waits
    /// for.
    pub fn serve(&self, workers: Vec<WorkerHandle>) {
        // There is one set of workers in a process.
        let _ = self.workers.set(workers);
    }

    pub fn store(&self) -> Arc<Store> {
        self.store.clone()
    }

    pub fn database(&self, name: &str) -> Arc<Shared> {
        let mut databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = databases.get(name) {
            return known.clone();
        }
        let workers = self.workers.clone();
        let wake = move || {
            let workers = workers.get().into_iter().flatten();
            workers.for_each(|worker| worker.send(ToWorker::Applied));
        };
        let tags = Tags::new(TAGS_DEFAULT, rand::random());
        let shared = Arc::new(Shared::new(tags, Box::new(wake)));
        databases.insert(name.to_owned(), shared.clone());
        shared
    }
}
