//! Functions and procedures whose calls would fight for the same rows: what is known of each, what
//! is said of it, and how its calls travel for that.
//!
//! ```text
//! catalogues, body --learn()--> Known --.
//! comment, configuration, console ------+--> Plan, of all procedures of a database together
//! ```
//!
//! The control plane learns; workers hold an [`Arc<Procedure>`] in the verdict on a call
//! ([`Call`]), and read its [`Plan`] for each call without a lock. A plan is made anew when
//! anything changes that it follows from: a key says which *values* are kept apart, and the same
//! value has to mean the same row for all procedures of a database.

mod declared;
mod fared;
mod plan;
mod waits;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use cache::value::Kind;
use smallvec::SmallVec;
use sql::procedure::{Analysis, Definition, Facts, Summary};
use sql::Source;

use crate::config::ProcedureOptions;
pub use fared::Fared;
pub use plan::{KeyOrigin, Lane, Plan, Travel};
pub use waits::{observe, Waits, UNKNOWN};

/// Procedures that are known of all databases together.
pub const PROCEDURES_MAX: usize = 4096;

/// A function or procedure of one database. Those with one name and other arguments are others.
#[derive(Debug)]
pub struct Procedure {
    /// As clients name it.
    pub database: String,
    pub oid: u32,
    /// `public.payment`
    pub title: String,
    plan: ArcSwap<Plan>,
    /// Held for an addition or a copy.
    fared: Mutex<Fared>,
    /// What its calls are seen to wait for, now and then.
    waits: Mutex<Waits>,
}

impl Procedure {
    pub fn plan(&self) -> Arc<Plan> {
        self.plan.load_full()
    }

    /// Whether a name means it, with or without its schema.
    pub fn is_named(&self, schema: Option<&str>, name: &str) -> bool {
        let before = self.title.strip_suffix(name).and_then(|rest| rest.strip_suffix('.'));
        before.is_some_and(|own| schema.is_none_or(|schema| schema == own))
    }

    /// As far as workers have told.
    pub fn fared(&self) -> Fared {
        *self.fared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn tell(&self, more: &Fared) {
        self.fared.lock().unwrap_or_else(PoisonError::into_inner).add(more);
    }

    /// Parameters by which its calls would be kept apart, as lock waits have it, where no key does
    /// that.
    pub fn suggested(&self) -> Vec<String> {
        let plan = self.plan();
        if plan.lane.is_some() && plan.declared {
            return Vec::new();
        }
        let places = self.waits().suggested();
        places.into_iter().filter_map(|place| plan.arguments.get(place).cloned()).collect()
    }

    pub fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A statement that is nothing but a call.
#[derive(Debug, Clone)]
pub struct Call {
    pub procedure: Arc<Procedure>,
    /// Where the value of each argument is, by its place in the definition. None: it has its
    /// default, is NULL, or an expression.
    pub arguments: Vec<Option<Source>>,
}

impl Call {
    pub fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        self.arguments.iter().flatten().copied()
    }
}

impl PartialEq for Call {
    fn eq(&self, other: &Call) -> bool {
        Arc::ptr_eq(&self.procedure, &other.procedure) && self.arguments == other.arguments
    }
}

impl Eq for Call {}

/// A row that a plain statement writes, found by a unique key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// As in [`Lane::space`]: procedures whose key is this row's share its lane.
    pub space: u64,
    pub key: Vec<(Source, Kind)>,
}

/// A call that is on its way, for comparison with others.
#[derive(Debug, Clone)]
pub struct Running {
    pub procedure: Arc<Procedure>,
    /// A hash of each argument, by place.
    pub values: SmallVec<[u64; 8]>,
}

/// What catalogues and body say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub oid: u32,
    pub definition: Definition,
    /// Of [`Definition::arguments`], by place.
    pub types: Vec<u32>,
    /// `COMMENT ON FUNCTION`.
    pub comment: Option<String>,
    /// Or why it was not understood: `written in C`.
    pub body: Result<Body, String>,
}

/// What a body does, with all that it calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    pub analysis: Analysis,
    pub summary: Summary,
    pub facts: Facts,
}

#[derive(Debug)]
struct Entry {
    procedure: Arc<Procedure>,
    known: Known,
}

#[derive(Debug, Default)]
struct State {
    /// By database and oid.
    entries: BTreeMap<(String, u32), Entry>,
    configured: BTreeMap<String, ProcedureOptions>,
    commanded: BTreeMap<String, ProcedureOptions>,
    /// By database: what the columns of its tables hold values of.
    dimensions: BTreeMap<String, BTreeMap<String, String>>,
}

/// All procedures that somebody has called, or asked about.
#[derive(Debug, Default)]
pub struct Procedures {
    /// Held while plans are made, which takes some milliseconds where there are hundreds.
    state: Mutex<State>,
}

impl Procedures {
    pub fn new(configured: &BTreeMap<String, ProcedureOptions>) -> Procedures {
        let state = State { configured: configured.clone(), ..State::default() };
        Procedures { state: Mutex::new(state) }
    }

    /// Something was found out about a procedure. None: there are too many.
    pub fn learn(&self, database: &str, known: Known) -> Option<Arc<Procedure>> {
        let mut state = self.lock();
        let key = (database.to_owned(), known.oid);
        let title = known.definition.title().to_string();
        let kept = state.entries.get(&key).filter(|entry| entry.procedure.title == title);
        let procedure = match kept {
            Some(entry) if entry.known == known => return Some(entry.procedure.clone()),
            Some(entry) => entry.procedure.clone(),
            None if state.entries.len() >= PROCEDURES_MAX => return None,
            None => Arc::new(Procedure {
                database: database.to_owned(),
                oid: known.oid,
                title,
                plan: ArcSwap::default(),
                fared: Mutex::default(),
                waits: Mutex::default(),
            }),
        };
        state.entries.insert(key, Entry { procedure: procedure.clone(), known });
        state.plan(database);
        Some(procedure)
    }

    /// It has been dropped.
    pub fn forget(&self, database: &str, oid: u32) {
        let mut state = self.lock();
        if state.entries.remove(&(database.to_owned(), oid)).is_some() {
            state.plan(database);
        }
    }

    /// Those of this database that are known.
    pub fn oids(&self, database: &str) -> Vec<u32> {
        let of = (database.to_owned(), 0)..=(database.to_owned(), u32::MAX);
        self.lock().entries.range(of).map(|((_, oid), _)| *oid).collect()
    }

    /// What the configuration says has changed (RELOAD).
    pub fn configure(&self, configured: &BTreeMap<String, ProcedureOptions>) {
        let mut state = self.lock();
        state.configured.clone_from(configured);
        state.plan_all();
    }

    /// `SET PROCEDURE`: until the process ends, or [`Procedures::reset`]. What is not said stays.
    ///
    /// # Errors
    /// Too much was said already.
    pub fn set(&self, title: &str, options: ProcedureOptions) -> Result<(), String> {
        let mut state = self.lock();
        if state.commanded.len() >= PROCEDURES_MAX && !state.commanded.contains_key(title) {
            return Err(format!("SET PROCEDURE was given for {PROCEDURES_MAX} others already"));
        }
        let said = state.commanded.remove(title).unwrap_or_default();
        state.commanded.insert(title.to_owned(), options.over(&said));
        state.plan_all();
        Ok(())
    }

    /// `RESET PROCEDURE`. False: nothing was set.
    pub fn reset(&self, title: &str) -> bool {
        let mut state = self.lock();
        let was_set = state.commanded.remove(title).is_some();
        state.plan_all();
        was_set
    }

    /// Of rows that are found by these columns, such as `public.warehouse.w_id`.
    pub fn space(&self, database: &str, columns: &[String]) -> u64 {
        let state = self.lock();
        let known = state.dimensions.get(database);
        let of =
            |column: &String| known.and_then(|known| known.get(column)).unwrap_or(column).clone();
        plan::space(database, columns.iter().map(of))
    }

    /// Databases that some are known of.
    pub fn databases(&self) -> Vec<String> {
        self.lock().dimensions.keys().cloned().collect()
    }

    /// Those that are known, by database and title.
    pub fn list(&self) -> Vec<Arc<Procedure>> {
        let state = self.lock();
        let mut list: Vec<_> =
            state.entries.values().map(|entry| entry.procedure.clone()).collect();
        list.sort_by(|a, b| (&a.database, &a.title, a.oid).cmp(&(&b.database, &b.title, b.oid)));
        list
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn plan_all(&mut self) {
        let databases: Vec<String> = self.entries.keys().map(|(name, _)| name.clone()).collect();
        let mut last = None;
        for database in databases {
            if last.as_ref() != Some(&database) {
                self.plan(&database);
                last = Some(database);
            }
        }
    }

    /// Makes the plans of one database's procedures.
    fn plan(&mut self, database: &str) {
        let of = (database.to_owned(), 0)..=(database.to_owned(), u32::MAX);
        let entries: Vec<&Entry> = self.entries.range(of).map(|(_, entry)| entry).collect();
        let known: Vec<&Known> = entries.iter().map(|entry| &entry.known).collect();
        let (derived, dimensions) = plan::derive(&known);
        for (entry, derived) in entries.into_iter().zip(derived) {
            let title = &entry.procedure.title;
            let said = plan::Said::of(
                self.commanded.get(title),
                self.configured.get(title),
                entry.known.comment.as_deref(),
            );
            entry.procedure.plan.store(Arc::new(Plan::new(database, &entry.known, said, derived)));
        }
        self.dimensions.insert(database.to_owned(), dimensions);
    }
}
