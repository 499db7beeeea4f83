//! Statements that somebody has named, by `CREATE CACHE` or in the configuration: those that
//! `manual` caches, and where counters of each are.
//!
//! Workers look a statement's normal text up when they meet its shape for the first time, and
//! again when [`Named::generation`] has changed. Nothing is locked for that. Who creates and drops
//! takes the one lock.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use cache::kept::Kept;
use sha2::{Digest, Sha256};

use crate::config::{Config, Definition, Freshness};
use crate::route::Cacheable;

/// Statements that are named, over all databases.
pub const CACHES_MAX: usize = 4096;

/// Bytes of a hash that a cache without a name is called by.
const HASH_BYTES: usize = 8;

/// A statement whose results are cached.
#[derive(Debug)]
pub struct CacheInfo {
    pub name: String,
    /// As clients name it.
    pub database: String,
    /// As it was written.
    pub query: String,
    /// What statements are looked up by.
    pub normal: Box<[u8]>,
    /// None: the pool's.
    pub freshness: Option<Freshness>,
    pub max_lag: Option<Duration>,
    pub origin: Origin,
    pub created: SystemTime,
    pub counters: Counters,
    judged: ArcSwapOption<Judged>,
}

/// What parser and catalogues have said of it last.
#[derive(Debug, PartialEq, Eq)]
pub struct Judged {
    /// Why its statements are not answered from memory.
    pub why_not: Option<String>,
    /// Those that it reads, with their partitions, by oid.
    pub tables: Vec<u32>,
}

/// Who named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// `CREATE CACHE`: until the process ends.
    Command,
    /// `caches` in the configuration.
    Configuration,
}

/// What became of its statements, over all workers.
#[derive(Debug, Default)]
pub struct Counters {
    /// Answered with what was kept.
    pub hits: AtomicU64,
    /// Nothing was kept, or it was no longer valid.
    pub misses: AtomicU64,
    /// Answers that were kept.
    pub fills: AtomicU64,
    /// Had to wait for the stream.
    pub waits: AtomicU64,
    /// Answers that are in memory, of those that were kept since it was named.
    pub kept: Arc<Kept>,
}

impl Counters {
    /// One more.
    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl CacheInfo {
    fn new(database: &str, definition: &Definition, origin: Origin, now: SystemTime) -> CacheInfo {
        CacheInfo {
            name: definition.name.clone().unwrap_or_else(|| name_of(&definition.normal)),
            database: database.to_owned(),
            query: definition.query.clone(),
            normal: definition.normal.clone(),
            freshness: definition.freshness,
            max_lag: definition.max_lag,
            origin,
            created: now,
            counters: Counters::default(),
            judged: ArcSwapOption::empty(),
        }
    }

    /// Whether the definition says what this says.
    fn is(&self, definition: &Definition) -> bool {
        let named = definition.name.as_ref().is_none_or(|name| *name == self.name);
        let same = (self.freshness, self.max_lag) == (definition.freshness, definition.max_lag);
        named && same && self.normal == definition.normal
    }

    /// Its statement was judged.
    pub fn judged(&self, verdict: &Result<Arc<Cacheable>, String>) {
        let tables = verdict.iter().flat_map(|cacheable| &cacheable.recipe.tables);
        let judged = Judged {
            why_not: verdict.as_ref().err().cloned(),
            tables: tables.map(|table| table.oid).collect(),
        };
        self.judged.store(Some(Arc::new(judged)));
    }

    /// None: it was not judged yet.
    pub fn verdict(&self) -> Option<Arc<Judged>> {
        self.judged.load_full()
    }
}

/// `q_` and a hash: the same for the same statement in every process.
fn name_of(normal: &[u8]) -> String {
    let mut name = String::from("q_");
    for byte in &Sha256::digest(normal)[..HASH_BYTES] {
        // Writing to a String can't fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

type ByNormal = HashMap<Box<[u8]>, Arc<CacheInfo>>;

/// What is named in one database.
#[derive(Debug, Default)]
pub struct Named {
    caches: ArcSwap<ByNormal>,
    generation: AtomicU64,
}

impl Named {
    /// The cache of the statements with this normal text.
    pub fn find(&self, normal: &[u8]) -> Option<Arc<CacheInfo>> {
        self.caches.load().get(normal).cloned()
    }

    /// Raised after each change.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn publish(&self, caches: ByNormal) {
        self.caches.store(Arc::new(caches));
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn by_name(&self, name: &str) -> Option<Arc<CacheInfo>> {
        self.caches.load().values().find(|cache| cache.name == name).cloned()
    }
}

/// Why a cache was not created or dropped.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// Another statement has this name.
    Taken {
        name: String,
    },
    /// The statement has a cache of another name.
    Same {
        name: String,
    },
    Full,
    Unknown {
        name: String,
    },
    /// In several databases.
    Ambiguous {
        databases: Vec<String>,
    },
}

/// What came of a wish for a cache.
#[derive(Debug)]
pub enum Created {
    New(Arc<CacheInfo>),
    /// It was there with other options.
    Changed(Arc<CacheInfo>),
    /// It was there.
    Known(Arc<CacheInfo>),
}

/// Every database's.
#[derive(Debug, Default)]
pub struct Registry {
    /// Guards who changes what; readers of [`Named`] do without. Held for a change of maps.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    databases: BTreeMap<String, Arc<Named>>,
    /// Definitions of each section of `databases`, `*` included.
    configured: HashMap<String, Vec<Definition>>,
}

impl Registry {
    pub fn new(config: &Config) -> Registry {
        let registry = Registry::default();
        registry.configure(config);
        registry
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is named in a database, with what the configuration names there.
    pub fn of(&self, database: &str) -> Arc<Named> {
        self.state().of(database)
    }

    /// Makes the caches of a new configuration, and drops those that it no longer has. Those that
    /// were created by command stay.
    pub fn configure(&self, config: &Config) {
        let mut state = self.state();
        let sections = config.databases.iter();
        state.configured =
            sections.map(|(name, section)| (name.clone(), section.caches.clone())).collect();
        let named = config.databases.keys().filter(|name| *name != "*");
        let names: Vec<String> = named.chain(state.databases.keys()).cloned().collect();
        for name in names {
            state.renew(&name);
        }
    }

    /// # Errors
    /// When the name or the statement is another's, or there are [`CACHES_MAX`] caches.
    pub fn create(&self, database: &str, definition: &Definition) -> Result<Created, Refused> {
        let mut state = self.state();
        let count = state.count();
        let named = state.of(database);
        let new =
            Arc::new(CacheInfo::new(database, definition, Origin::Command, SystemTime::now()));
        let known = named.find(&definition.normal);
        if let Some(known) = &known {
            if known.is(definition) {
                return Ok(Created::Known(known.clone()));
            }
            if definition.name.as_ref().is_some_and(|name| *name != known.name) {
                return Err(Refused::Same { name: known.name.clone() });
            }
        } else if named.by_name(&new.name).is_some() {
            return Err(Refused::Taken { name: new.name.clone() });
        } else if count >= CACHES_MAX {
            return Err(Refused::Full);
        }
        let mut caches = ByNormal::clone(&named.caches.load());
        caches.insert(new.normal.clone(), new.clone());
        named.publish(caches);
        Ok(if known.is_some() { Created::Changed(new) } else { Created::New(new) })
    }

    /// Drops a cache, in any database if none is given.
    ///
    /// # Errors
    /// When there is none of this name, or one in each of several databases.
    pub fn drop_cache(&self, name: &str, database: Option<&str>) -> Result<(), Refused> {
        let state = self.state();
        let found: Vec<(&String, &Arc<Named>)> = state
            .databases
            .iter()
            .filter(|(at, _)| database.is_none_or(|database| database == *at))
            .filter(|(_, named)| named.by_name(name).is_some())
            .collect();
        match found.as_slice() {
            [] => Err(Refused::Unknown { name: name.to_owned() }),
            [(_, named)] => {
                let mut caches = ByNormal::clone(&named.caches.load());
                caches.retain(|_, cache| cache.name != name);
                named.publish(caches);
                Ok(())
            }
            several => Err(Refused::Ambiguous {
                databases: several.iter().map(|(at, _)| (*at).clone()).collect(),
            }),
        }
    }

    /// Drops every cache, of one database or of all; says how many.
    pub fn drop_all(&self, database: Option<&str>) -> usize {
        let state = self.state();
        let mut dropped = 0;
        for (at, named) in &state.databases {
            let count = named.caches.load().len();
            if count > 0 && database.is_none_or(|database| database == at) {
                dropped += count;
                named.publish(ByNormal::new());
            }
        }
        dropped
    }

    /// In order of their databases and names.
    pub fn all(&self) -> Vec<Arc<CacheInfo>> {
        let state = self.state();
        let mut caches = Vec::with_capacity(state.count());
        for named in state.databases.values() {
            let first = caches.len();
            caches.extend(named.caches.load().values().cloned());
            caches[first..].sort_by(|one: &Arc<CacheInfo>, other| one.name.cmp(&other.name));
        }
        caches
    }
}

impl State {
    fn of(&mut self, database: &str) -> Arc<Named> {
        if !self.databases.contains_key(database) {
            self.databases.insert(database.to_owned(), Arc::default());
            self.renew(database);
        }
        self.databases.entry(database.to_owned()).or_default().clone()
    }

    fn count(&self) -> usize {
        self.databases.values().map(|named| named.caches.load().len()).sum()
    }

    /// What the configuration names in this database is there, and nothing else of its kind.
    fn renew(&mut self, database: &str) {
        let mut room = CACHES_MAX.saturating_sub(self.count());
        let named = self.databases.entry(database.to_owned()).or_default();
        let section = self.configured.get(database).or_else(|| self.configured.get("*"));
        let wanted = section.map_or(&[][..], Vec::as_slice);
        let old = named.caches.load_full();
        let mut caches = ByNormal::clone(&old);
        caches.retain(|_, cache| {
            let kept = cache.origin == Origin::Command
                || wanted.iter().any(|definition| cache.is(definition));
            room += usize::from(!kept);
            kept
        });
        for definition in wanted {
            let cache =
                CacheInfo::new(database, definition, Origin::Configuration, SystemTime::now());
            let there = caches.contains_key(&cache.normal)
                || caches.values().any(|other| other.name == cache.name);
            if there {
                continue;
            }
            if room == 0 {
                let db = database;
                tracing::warn!(event = "caches_full", db, "more than {CACHES_MAX} caches");
                break;
            }
            room -= 1;
            caches.insert(cache.normal.clone(), Arc::new(cache));
        }
        let same = caches.len() == old.len()
            && caches.iter().all(|(normal, cache)| {
                old.get(normal).is_some_and(|known| Arc::ptr_eq(known, cache))
            });
        if !same {
            named.publish(caches);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(text: &str) -> Definition {
        Definition::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    fn config(text: &str) -> Config {
        Config::from_text(text).unwrap_or_else(|report| panic!("{report}"))
    }

    fn names(registry: &Registry) -> Vec<String> {
        let caches = registry.all();
        caches.iter().map(|cache| format!("{}.{}", cache.database, cache.name)).collect()
    }

    #[test]
    fn a_statement_is_found_by_what_it_asks_whatever_its_values() {
        let registry = Registry::default();
        let named = registry.of("app");
        let before = named.generation();
        let created = registry.create("app", &definition("one FROM select a from t where id = 5"));
        assert!(matches!(created, Ok(Created::New(_))));
        assert!(named.generation() > before, "workers look again");
        let found = named.find(b"select a from t where id=$1").expect("the cache");
        assert_eq!((found.name.as_str(), found.database.as_str()), ("one", "app"));
        assert!(named.find(b"select b from t where id=$1").is_none());
        assert!(registry.of("other").find(b"select a from t where id=$1").is_none());
    }

    #[test]
    fn a_cache_without_a_name_is_called_by_what_it_asks() {
        let registry = Registry::default();
        for text in ["from select a from t where id = 5", "from SELECT a FROM t WHERE id=$1"] {
            assert!(registry.create("app", &definition(text)).is_ok());
        }
        let names = names(&registry);
        assert_eq!(names.len(), 1, "they are one");
        assert_eq!(names[0].len(), "app.q_".len() + 2 * HASH_BYTES);
    }

    #[test]
    fn the_same_wish_twice_changes_nothing_and_another_one_changes_its_options() {
        let registry = Registry::default();
        let (plain, strict) =
            (definition("a from select 1"), definition("a with (freshness=strict) from select 1"));
        assert!(matches!(registry.create("app", &plain), Ok(Created::New(_))));
        let generation = registry.of("app").generation();
        assert!(matches!(registry.create("app", &plain), Ok(Created::Known(_))));
        assert_eq!(registry.of("app").generation(), generation);
        assert!(matches!(registry.create("app", &strict), Ok(Created::Changed(_))));
        assert_eq!(registry.all()[0].freshness, Some(Freshness::Strict));
    }

    #[test]
    fn a_name_and_a_statement_belong_together() {
        let registry = Registry::default();
        assert!(registry.create("app", &definition("a from select x from t")).is_ok());
        let taken = registry.create("app", &definition("a from select y from t"));
        assert_eq!(taken.err(), Some(Refused::Taken { name: "a".to_owned() }));
        let same = registry.create("app", &definition("b from select x from t"));
        assert_eq!(same.err(), Some(Refused::Same { name: "a".to_owned() }));
        assert!(registry.create("web", &definition("a from select y from t")).is_ok());
    }

    #[test]
    fn caches_are_dropped_by_name_and_a_name_in_two_databases_is_not_enough() {
        let registry = Registry::default();
        for (database, text) in
            [("app", "a from select x"), ("web", "a from select x"), ("web", "b from select y")]
        {
            assert!(registry.create(database, &definition(text)).is_ok());
        }
        let databases = vec!["app".to_owned(), "web".to_owned()];
        assert_eq!(registry.drop_cache("a", None), Err(Refused::Ambiguous { databases }));
        assert_eq!(registry.drop_cache("a", Some("web")), Ok(()));
        assert_eq!(registry.drop_cache("a", None), Ok(()));
        let unknown = Err(Refused::Unknown { name: "a".to_owned() });
        assert_eq!(registry.drop_cache("a", None), unknown);
        assert_eq!(names(&registry), ["web.b"]);
        assert!(registry.create("app", &definition("c from select z")).is_ok());
        assert_eq!(registry.drop_all(Some("app")), 1);
        assert_eq!(names(&registry), ["web.b"]);
        assert_eq!((registry.drop_all(None), registry.drop_all(None)), (1, 0));
    }

    #[test]
    fn a_reload_makes_what_is_new_drops_what_is_gone_and_leaves_the_rest() {
        let one = config("[databases.app]\ncaches = [\"a FROM select 1\", \"b FROM select w\"]\n");
        let registry = Registry::new(&one);
        assert!(registry.create("app", &definition("mine from select x")).is_ok());
        let kept = registry.of("app").by_name("a").expect("configured");
        Counters::count(&kept.counters.hits);
        let two = config(
            "[databases.app]\ncaches = [\"a FROM select 1\", \"c FROM select y\"]\n\
             [databases.\"*\"]\ncaches = [\"d FROM select z\"]\n",
        );
        registry.configure(&two);
        assert_eq!(names(&registry), ["app.a", "app.c", "app.mine"]);
        let hits = &registry.of("app").by_name("a").expect("still there").counters.hits;
        assert_eq!(hits.load(Ordering::Relaxed), 1);
        assert!(registry.of("any").by_name("d").is_some(), "the wildcard's");
        let generation = registry.of("app").generation();
        registry.configure(&two);
        assert_eq!(registry.of("app").generation(), generation, "nothing has changed");
    }

    #[test]
    fn there_is_a_ceiling() {
        let registry = Registry::default();
        for number in 0..CACHES_MAX {
            let text = format!("from select a{number}");
            assert!(registry.create("app", &definition(&text)).is_ok());
        }
        let one_more = registry.create("web", &definition("from select one_more"));
        assert_eq!(one_more.err(), Some(Refused::Full));
    }
}
