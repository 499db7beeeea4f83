//! What all threads share of the caches: the store, and what the streams have told of each
//! database.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use cache::doorkeeper::Doorkeeper;
use cache::mirror::budget::Budget;
use cache::mirror::mirrored::Mirrored;
use cache::plan::{Family, Plan, Slot};
use cache::recipe::{Recipe, Source};
use cache::request::common;
use cache::shared::Shared;
use cache::store::Store;
use cache::tags::{Tags, TAGS_DEFAULT};
use sql::{Scan, Use};

use crate::control::caches::Registry;
use crate::control::messages::PoolName;
use crate::route::{Cacheable, Verdict};

/// What is kept where nobody has said how much: in tests of workers.
const MEMORY_DEFAULT: u64 = 64 << 20;

/// So much of all memory is left for results.
const RESULTS_PART: u64 = 8;

/// See the module's documentation. A database comes to be when its first client logs in.
pub struct Caches {
    store: Arc<Store>,
    /// Memory for mirrors, a part of the store's.
    mirrors: Arc<Budget>,
    databases: Mutex<HashMap<String, Arc<Shared>>>,
    /// Of each database.
    tags: usize,
    seed: u64,
    wake: Arc<OnceLock<Wake>>,
    families: Mutex<Families>,
    /// There is a database in `databases`.
    used: AtomicBool,
    pub doorkeeper: Doorkeeper,
    /// Statements that somebody has named.
    pub named: Registry,
}

/// Wakes all workers.
type Wake = Box<dyn Fn() + Send + Sync>;

/// The families of which somebody has a plan.
#[derive(Default)]
struct Families {
    known: HashMap<Name, (Weak<Family>, u64)>,
    last: u64,
    sweep_at: usize,
}

/// What tells families apart, beside the definitions that are in force.
#[derive(PartialEq, Eq, Hash)]
struct Name {
    pool: PoolName,
    /// As [`sql::normal_with`] has it.
    text: Vec<u8>,
    /// Type of each value, and whether its text may be a word that means a moment.
    values: Vec<(u32, bool)>,
    settings: bool,
    recipe: Recipe,
}

/// Families that are remembered before those that nobody has are dropped, at the least.
const SWEEP_AT: usize = 4096;

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caches").field("store", &self.store.standing()).finish_non_exhaustive()
    }
}

impl Default for Caches {
    fn default() -> Caches {
        Caches::new(MEMORY_DEFAULT, 0, Registry::default())
    }
}

impl Caches {
    /// `mirrors` of the memory may be mirrors'; some is always left for results.
    pub fn new(memory: u64, mirrors: u64, named: Registry) -> Caches {
        Caches::with_tags(memory, mirrors, named, TAGS_DEFAULT, rand::random())
    }

    /// With so many tags for each database, which values share as `seed` says.
    pub fn with_tags(memory: u64, mirrors: u64, named: Registry, tags: usize, seed: u64) -> Caches {
        let mirrors = Arc::new(Budget::new(mirrors.min(memory - memory / RESULTS_PART)));
        Caches {
            store: Arc::new(Store::beside(memory, mirrors.clone())),
            mirrors,
            databases: Mutex::default(),
            used: AtomicBool::new(false),
            tags,
            seed,
            wake: Arc::default(),
            families: Mutex::default(),
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

    pub fn mirror_budget(&self) -> &Budget {
        &self.mirrors
    }

    /// Whether results of any database may be kept.
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Acquire)
    }

    /// None: nobody has asked for results of this database.
    pub fn known(&self, name: &str) -> Option<Arc<Shared>> {
        self.databases.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub fn database(&self, name: &str) -> Arc<Shared> {
        let mut databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = databases.get(name) {
            return known.clone();
        }
        let wake = self.wake.clone();
        let wake = move || wake.get().into_iter().for_each(|wake| wake());
        let tags = Tags::new(self.tags, self.seed);
        let shared = Shared::mirroring(tags, Box::new(wake), self.mirrors.clone());
        let shared = Arc::new(shared);
        databases.insert(name.to_owned(), shared.clone());
        self.used.store(true, Ordering::Release);
        shared
    }

    /// Whether the stream tells every change of the tables that a statement reads.
    pub fn follows(&self, database: &str, cacheable: &Cacheable) -> bool {
        let shared = self.database(database);
        let published = shared.published();
        cacheable.recipe.tables.iter().all(|table| published.contains_key(&table.oid))
    }

    /// The plan of a statement that was found to be cacheable when `definitions` was the database's
    /// count. Its family is the same for all workers and for every way to write the statement, and
    /// a new one when anything about it has changed, so that what was kept under the old one is not
    /// found any more. None: its text is not understood.
    pub fn plan(
        &self,
        pool: &PoolName,
        text: &[u8],
        verdict: &Verdict,
        definitions: u64,
    ) -> Option<Arc<Plan>> {
        let cacheable = verdict.cache.as_ref().ok()?;
        let mut scan = Scan::new();
        if !scan.scan(text) {
            return None;
        }
        let uses = verdict.literals.as_deref().unwrap_or_default();
        let stays = |at: usize| uses.get(at).is_none_or(|r#use| *r#use == Use::Fixed);
        let (text, sources) = sql::normal_with(scan.shape(), stays);
        let slots = slots(cacheable, &sources)?;
        let place = |wanted: Source| {
            let at = sources.iter().position(|source| *source == wanted)?;
            Some(Source::Parameter(u32::try_from(at).ok()? + 1))
        };
        let recipe = cacheable.recipe.clone().with_sources(place)?;
        let value = |slot: &Slot| match slot.compared {
            true => (common(slot.type_oid), slot.timely),
            false => (slot.type_oid, slot.timely),
        };
        let values = slots.iter().map(value).collect();
        let settings = cacheable.settings;
        let mirrored = || {
            let mirror = cacheable.mirror.as_ref().ok()?;
            let select = mirror.select.clone().with_sources(place)?;
            let type_of = |source: Source| match source {
                Source::Parameter(number) => {
                    let slot = (number as usize).checked_sub(1).and_then(|at| slots.get(at));
                    slot.map_or(0, |slot| slot.type_oid)
                }
                Source::Literal(_) => 0,
            };
            let fixed = |(source, number): &(Source, usize)| Some((place(*source)?, *number));
            let fixed = mirror.fixed.iter().map(fixed).collect::<Option<Vec<_>>>()?;
            let description = mirror.description.clone();
            Mirrored::new(select, mirror.tables.clone(), &type_of, description, fixed).ok()
        };
        let name = Name { pool: pool.clone(), text, values, settings, recipe };
        Some(Arc::new(Plan::new(self.family(name, definitions, mirrored), slots.clone())))
    }

    /// `mirrored` makes what mirrors know of a new one.
    fn family(
        &self,
        name: Name,
        definitions: u64,
        mirrored: impl FnOnce() -> Option<Mirrored>,
    ) -> Arc<Family> {
        let shared = self.database(&name.pool.database);
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, of)) = families.known.get(&name) {
            if let (true, Some(family)) = (*of == definitions, known.upgrade()) {
                return family;
            }
        }
        families.last += 1;
        let recipe = name.recipe.clone();
        let mirrored = if self.mirrors.limit() > 0 { mirrored() } else { None };
        let family = Family::new(shared, families.last, recipe, name.settings, mirrored);
        let family = Arc::new(family);
        if families.known.len() >= families.sweep_at.max(SWEEP_AT) {
            families.known.retain(|_, (known, _)| known.strong_count() > 0);
            families.sweep_at = families.known.len() * 2;
        }
        families.known.insert(name, (Arc::downgrade(&family), definitions));
        family
    }
}

/// What is known of the values, in their order.
fn slots(cacheable: &Cacheable, sources: &[Source]) -> Option<Vec<Slot>> {
    let slot = |source: &Source| {
        let known = cacheable.slots.iter().find(|slot| slot.source == *source)?;
        let once = sources.iter().filter(|other| *other == source).count() == 1;
        Some(Slot {
            source: *source,
            type_oid: known.type_oid,
            timely: known.timely,
            compared: once && cacheable.recipe.compares(*source),
        })
    };
    sources.iter().map(slot).collect()
}
