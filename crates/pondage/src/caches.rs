//! What all threads share of the caches: the store, and what the streams have told of each
//! database.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use cache::doorkeeper::Doorkeeper;
use cache::plan::{Plan, Slot};
use cache::shared::Shared;
use cache::store::Store;
use cache::tags::{Tags, TAGS_DEFAULT};

use crate::control::caches::Registry;
use crate::control::messages::PoolName;
use crate::route::Cacheable;

/// What is kept where nobody has said how much: in tests of workers.
const MEMORY_DEFAULT: u64 = 64 << 20;

/// See the module's documentation. A database comes to be when its first client logs in.
pub struct Caches {
    store: Arc<Store>,
    databases: Mutex<HashMap<String, Arc<Shared>>>,
    /// Of each database.
    tags: usize,
    seed: u64,
    wake: Arc<OnceLock<Wake>>,
    plans: Mutex<Plans>,
    pub doorkeeper: Doorkeeper,
    /// Statements that somebody has named.
    pub named: Registry,
}

/// Wakes all workers.
type Wake = Box<dyn Fn() + Send + Sync>;

/// The plans that somebody has.
#[derive(Default)]
struct Plans {
    known: HashMap<(PoolName, Box<[u8]>), Known>,
    last: u64,
    sweep_at: usize,
}

struct Known {
    plan: Weak<Plan>,
    /// What it was made from.
    verdict: Arc<Cacheable>,
    /// Of [`Shared::definitions`].
    definitions: u64,
}

/// Plans that are remembered before those that nobody has are dropped, at the least.
const SWEEP_AT: usize = 4096;

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caches").field("store", &self.store.standing()).finish_non_exhaustive()
    }
}

impl Default for Caches {
    fn default() -> Caches {
        Caches::new(MEMORY_DEFAULT, Registry::default())
    }
}

impl Caches {
    pub fn new(memory: u64, named: Registry) -> Caches {
        Caches::with_tags(memory, named, TAGS_DEFAULT, rand::random())
    }

    /// With so many tags for each database, which values share as `seed` says.
    pub fn with_tags(memory: u64, named: Registry, tags: usize, seed: u64) -> Caches {
        Caches {
            store: Arc::new(Store::new(memory)),
            databases: Mutex::default(),
            tags,
            seed,
            wake: Arc::default(),
            plans: Mutex::default(),
            doorkeeper: Doorkeeper::default(),
            named,
        }
    }

    /// The workers are there: `wake` is called when a stream has come as far as one of them waits
    /// for.
    pub fn serve(&self, wake: Wake) {
        // There is one set of workers in a process.
        let _ = self.wake.set(wake);
    }

    pub fn store(&self) -> Arc<Store> {
        self.store.clone()
    }

    pub fn database(&self, name: &str) -> Arc<Shared> {
        let mut databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = databases.get(name) {
            return known.clone();
        }
        let wake = self.wake.clone();
        let wake = move || wake.get().into_iter().for_each(|wake| wake());
        let tags = Tags::new(self.tags, self.seed);
        let shared = Arc::new(Shared::new(tags, Box::new(wake)));
        databases.insert(name.to_owned(), shared.clone());
        shared
    }

    /// Whether the stream tells every change of the tables that a statement reads.
    pub fn follows(&self, database: &str, cacheable: &Cacheable) -> bool {
        let shared = self.database(database);
        let published = shared.published();
        cacheable.recipe.tables.iter().all(|table| published.contains_key(&table.oid))
    }

    /// The plan of a statement that was found to be cacheable when `definitions` was the database's
    /// count. The same one for all workers, and a new one when anything about it has changed, so
    /// that what was kept under the old one is not found any more.
    pub fn plan(
        &self,
        pool: &PoolName,
        text: &[u8],
        verdict: &Arc<Cacheable>,
        definitions: u64,
    ) -> Arc<Plan> {
        let shared = self.database(&pool.database);
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (pool.clone(), Box::from(text));
        if let Some(known) = plans.known.get(&name) {
            let same = known.definitions == definitions && known.verdict == *verdict;
            if let (true, Some(plan)) = (same, known.plan.upgrade()) {
                return plan;
            }
        }
        plans.last += 1;
        let slot = |slot: &crate::route::Slot| Slot {
            source: slot.source,
            type_oid: slot.type_oid,
            timely: slot.timely,
        };
        let slots = verdict.slots.iter().map(slot).collect();
        let recipe = verdict.recipe.clone();
        let plan = Arc::new(Plan::new(shared, plans.last, recipe, slots, verdict.settings));
        if plans.known.len() >= plans.sweep_at.max(SWEEP_AT) {
            plans.known.retain(|_, known| known.plan.strong_count() > 0);
            plans.sweep_at = plans.known.len() * 2;
        }
        let verdict = verdict.clone();
        plans.known.insert(name, Known { plan: Arc::downgrade(&plan), verdict, definitions });
        plan
    }
}
