//! Tables that somebody wants mirrored, by `MIRROR TABLE` or in the configuration, whatever is
//! asked of them.
//!
//! Who commands only notes what is wanted. The task in `pinning.rs` asks the catalogues, once the
//! database is followed and again whenever definitions change, and holds the wish for the mirror.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cache::mirror::wish::Wish;
use tokio::sync::Notify;

use super::caches::Origin;
use crate::config::{Config, MirrorDefinition, TableName};

/// Tables that are wanted, over all databases.
pub const MIRRORS_MAX: usize = 1024;

/// Why a table can't be mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// SQLSTATE.
    pub code: &'static str,
    pub message: String,
    /// What mends it.
    pub hint: Option<String>,
}

impl Unfit {
    pub fn new(code: &'static str, message: String) -> Unfit {
        Unfit { code, message, hint: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Unfit {
        self.hint = Some(hint.into());
        self
    }
}

/// A table that is wanted.
#[derive(Debug, Clone)]
pub struct Pin {
    /// As clients name it.
    pub database: String,
    pub wanted: MirrorDefinition,
    pub origin: Origin,
    /// What the catalogues said. None: they were not asked yet.
    pub found: Option<Result<Arc<Wish>, String>>,
    pub looked: Option<Looked>,
    /// No two have one.
    number: u64,
}

/// When the catalogues were asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looked {
    /// The count of the database's definitions before.
    pub definitions: u64,
    pub at: Instant,
}

impl Pin {
    /// The table, if the catalogues have one that fits.
    pub fn oid(&self) -> Option<u32> {
        let wish = self.found.as_ref()?.as_ref().ok()?;
        wish.tables.first().map(|wanted| wanted.definition.oid)
    }

    pub fn why_not(&self) -> Option<&str> {
        self.found.as_ref()?.as_ref().err().map(String::as_str)
    }

    /// Whether a name without a schema, or with one, means this table.
    fn is_called(&self, table: &TableName) -> bool {
        let own = &self.wanted.table;
        let schema = table.schema.is_none() || table.schema == own.schema;
        own.name == table.name && (schema || self.is_in(table.schema.as_deref()))
    }

    fn is_in(&self, schema: Option<&str>) -> bool {
        let Some(Ok(wish)) = &self.found else { return false };
        wish.tables.first().is_some_and(|wanted| Some(&*wanted.definition.schema) == schema)
    }
}

/// Why nothing was noted or dropped.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    Full,
    Unknown,
    /// In several databases or schemas.
    Ambiguous(Vec<String>),
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinned {
    New,
    /// It was wanted with other columns.
    Changed,
    Known,
}

/// Every database's.
#[derive(Debug, Default)]
pub struct Registry {
    /// Held for a look or a change of the list.
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    pins: Vec<Pin>,
    last: u64,
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

    /// Wants what a new configuration wants, and no longer what only the old one did. What was
    /// commanded stays.
    pub fn configure(&self, config: &Config) {
        let of = |database: &str| {
            config.databases.get(database).map_or(&[][..], |section| &section.mirrors)
        };
        let mut state = self.state();
        state
            .pins
            .retain(|pin| pin.origin == Origin::Command || of(&pin.database).contains(&pin.wanted));
        // The wildcard is no database.
        for database in config.databases.keys().filter(|name| *name != "*") {
            for mirror in of(database) {
                let known = |pin: &Pin| pin.database == *database && pin.is_called(&mirror.table);
                if state.pins.iter().any(known) {
                    continue;
                }
                if state.pins.len() >= MIRRORS_MAX {
                    let db = database;
                    tracing::warn!(event = "mirrors_full", db, "more than {MIRRORS_MAX} mirrors");
                    break;
                }
                state.add(database, mirror.clone(), Origin::Configuration);
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Wants a table. Its name has its schema.
    ///
    /// # Errors
    /// There are [`MIRRORS_MAX`].
    pub fn pin(&self, database: &str, wanted: MirrorDefinition) -> Result<Pinned, Refused> {
        let mut state = self.state();
        let at = |pin: &Pin| pin.database == database && pin.is_called(&wanted.table);
        let before = state.pins.iter().position(at);
        let pinned = match before.map(|at| &state.pins[at].wanted.columns) {
            Some(columns) if *columns == wanted.columns => return Ok(Pinned::Known),
            Some(_) => Pinned::Changed,
            None if state.pins.len() >= MIRRORS_MAX => return Err(Refused::Full),
            None => Pinned::New,
        };
        if let Some(at) = before {
            state.pins.remove(at);
        }
        state.add(database, wanted, Origin::Command);
        drop(state);
        self.changed.notify_one();
        Ok(pinned)
    }

    /// Wants a table no longer, in any database and schema if none is given.
    ///
    /// # Errors
    /// When there is none of this name, or more than one.
    pub fn unpin(&self, database: Option<&str>, table: &TableName) -> Result<(), Refused> {
        let mut state = self.state();
        let is = |pin: &Pin| {
            database.is_none_or(|database| database == pin.database) && pin.is_called(table)
        };
        let found: Vec<&Pin> = state.pins.iter().filter(|pin| is(pin)).collect();
        match found.as_slice() {
            [] => Err(Refused::Unknown),
            [one] => {
                let number = one.number;
                state.pins.retain(|pin| pin.number != number);
                drop(state);
                self.changed.notify_one();
                Ok(())
            }
            several => {
                let title = |pin: &&Pin| format!("{} in {}", pin.wanted.table, pin.database);
                Err(Refused::Ambiguous(several.iter().map(title).collect()))
            }
        }
    }

    /// In order of their databases and names.
    pub fn all(&self) -> Vec<Pin> {
        let mut pins = self.state().pins.clone();
        let key = |pin: &Pin| (pin.database.clone(), pin.wanted.table.to_string());
        pins.sort_by_cached_key(key);
        pins
    }

    /// What is known of one of [`Registry::all`], which may be gone by now. `looked`: none if the
    /// catalogues could not be asked.
    pub fn found(&self, pin: &Pin, found: Result<Arc<Wish>, String>, looked: Option<Looked>) {
        let mut state = self.state();
        if let Some(known) = state.pins.iter_mut().find(|known| known.number == pin.number) {
            (known.found, known.looked) = (Some(found), looked);
        }
    }

    /// Waits until something is wanted, or wanted no longer.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl State {
    fn add(&mut self, database: &str, wanted: MirrorDefinition, origin: Origin) {
        self.last += 1;
        let database = database.to_owned();
        let number = self.last;
        self.pins.push(Pin { database, wanted, origin, found: None, looked: None, number });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> MirrorDefinition {
        MirrorDefinition::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    fn table(text: &str) -> TableName {
        wanted(text).table
    }

    fn titles(registry: &Registry) -> Vec<String> {
        let pins = registry.all();
        pins.iter().map(|pin| format!("{}/{}", pin.database, pin.wanted.table)).collect()
    }

    #[test]
    fn a_table_is_wanted_once_with_the_columns_that_were_said_last() {
        let registry = Registry::default();
        assert_eq!(registry.pin("app", wanted("public.t columns (a)")), Ok(Pinned::New));
        assert_eq!(registry.pin("app", wanted("public.t columns (a)")), Ok(Pinned::Known));
        assert_eq!(registry.pin("app", wanted("public.t")), Ok(Pinned::Changed));
        assert_eq!(registry.pin("web", wanted("public.t")), Ok(Pinned::New));
        assert_eq!(titles(&registry), ["app/public.t", "web/public.t"]);
    }

    #[test]
    fn it_is_dropped_by_a_name_that_means_only_it() {
        let registry = Registry::default();
        for (database, text) in [("app", "a.t"), ("app", "b.t"), ("web", "b.t")] {
            assert_eq!(registry.pin(database, wanted(text)), Ok(Pinned::New));
        }
        let several = registry.unpin(None, &table("b.t"));
        let both = ["b.t in app".to_owned(), "b.t in web".to_owned()];
        assert_eq!(several, Err(Refused::Ambiguous(both.to_vec())));
        assert_eq!(registry.unpin(Some("app"), &table("c.t")), Err(Refused::Unknown));
        assert_eq!(registry.unpin(Some("app"), &table("b.t")), Ok(()));
        assert_eq!(registry.unpin(Some("app"), &table("t")), Ok(()));
        assert_eq!(titles(&registry), ["web/b.t"]);
    }

    #[test]
    fn a_configuration_replaces_what_the_last_one_wanted_and_nothing_else() {
        let config = |mirrors: &str| {
            let text =
                format!("[databases.app]\nurl = \"postgres://db:5432\"\nmirrors = [{mirrors}]\n");
            Config::from_text(&text).unwrap_or_else(|report| panic!("{report}"))
        };
        let registry = Registry::new(&config("\"a\", \"b\""));
        assert_eq!(registry.pin("app", wanted("public.c")), Ok(Pinned::New));
        registry.configure(&config("\"b\", \"d columns (x)\""));
        assert_eq!(titles(&registry), ["app/b", "app/d", "app/public.c"]);
    }

    #[test]
    fn their_number_has_a_limit() {
        let registry = Registry::default();
        for number in 0..MIRRORS_MAX {
            assert_eq!(registry.pin("app", wanted(&format!("a.t{number}"))), Ok(Pinned::New));
        }
        assert_eq!(registry.pin("app", wanted("a.more")), Err(Refused::Full));
    }
}
