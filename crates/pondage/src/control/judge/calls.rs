//! A statement that is nothing but a call: which routine it means, and what that does.
//!
//! ```text
//! name, arguments -> candidates -> the only one that fits -> body -> Closure -> registry
//!                    catalogues                      a child process    ^
//!                                                          catalogues --'
//! ```
//!
//! What a call touches follows from tables, triggers and called functions too, so catalogues are
//! asked for each verdict. Bodies are parsed once as long as they stay the same.
//!
//! A function may have settings of its own. Its search_path says what names in it mean. All else
//! does no harm: what it sets is over when it returns, before the transaction commits, so that
//! `synchronous_commit` changes nothing, and a `lock_timeout` is the body's own affair as much as
//! one that it sets by a statement. SECURITY DEFINER changes who asks, not the search_path; only
//! `"$user"` in it may then mean another schema, which is left aside.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sql::procedure::{self, Analysis, Closure, Definition, Hazard, HazardKind, Wanted};
use sql::{Name, Source};
use tokio::time::Instant;

use super::connection::{Connection, Failure};
use super::routines::{Meanings, Named, Routine, BODY_BYTES_MAX};
use super::Place;
use crate::control::bodies::Parser;
use crate::procedures::{Body, Call, Known, Procedure, Procedures};

/// Routines of one name that are looked into.
const EXAMINED_MAX: usize = 16;

/// Analyses that are kept, and the bytes of their definitions together.
const KEPT_MAX: usize = 4096;
const KEPT_BYTES_MAX: usize = 8 << 20;

/// What keeps a body from being understood may have been the machine, and is tried again.
const TRIED_AGAIN: Duration = Duration::from_secs(600);

/// What the texts of bodies say, each found out once.
#[derive(Debug, Default)]
pub struct Bodies {
    parser: Parser,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    analyses: HashMap<(Place, u32), Read>,
    bytes: usize,
}

#[derive(Debug)]
struct Read {
    definition: Definition,
    result: Result<Analysis, String>,
    since: Instant,
}

impl Bodies {
    #[cfg(test)]
    pub fn of(parser: Parser) -> Bodies {
        Bodies { parser, kept: Mutex::default() }
    }

    /// # Errors
    /// Why it is not understood, for people.
    async fn analysis(&self, place: &Place, routine: &Routine) -> Result<Analysis, String> {
        let Routine { definition, .. } = routine;
        match (definition.language.as_str(), routine.kind) {
            ("c" | "internal", _) => return Err("written in C".to_owned()),
            (_, b'a') => return Err("an aggregate function".to_owned()),
            ("plpgsql" | "sql", _) if routine.long => {
                return Err(format!("the body has more than {BODY_BYTES_MAX} bytes"));
            }
            ("plpgsql" | "sql", _) => {}
            (other, _) => return Err(format!("written in {other}")),
        }
        let key = (place.clone(), routine.oid);
        if let Some(read) = self.kept().analyses.get(&key) {
            let lasts = read.result.is_ok() || read.since.elapsed() < TRIED_AGAIN;
            if lasts && read.definition == *definition {
                return read.result.clone();
            }
        }
        let result = match self.parser.parse(definition).await {
            Ok(bytes) => procedure::read(definition, &bytes),
            Err(words) => Err(words),
        };
        let definition = definition.clone();
        let mut kept = self.kept();
        let bytes = definition.source.len();
        if kept.analyses.len() >= KEPT_MAX || kept.bytes + bytes > KEPT_BYTES_MAX {
            *kept = Kept::default();
        }
        kept.bytes += bytes;
        let read = Read { definition, result: result.clone(), since: Instant::now() };
        if let Some(old) = kept.analyses.insert(key, read) {
            kept.bytes -= old.definition.source.len();
        }
        result
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where calls are looked up, and by whom what is found is kept.
pub struct Looking<'a> {
    pub connection: &'a mut Connection,
    pub bodies: &'a Bodies,
    pub procedures: &'a Procedures,
    pub place: &'a Place,
    /// As clients name it.
    pub database: &'a str,
}

impl Looking<'_> {
    /// What this call means, if there is one routine that it can mean, and that is worth to be
    /// known: nothing that is built in, or written in C.
    ///
    /// # Errors
    /// When the server refuses a look-up or the connection is lost.
    pub async fn call(&mut self, call: &sql::Call) -> Result<Option<Call>, Failure> {
        let Named { builtin, routines } = self.named(&call.name).await?;
        let fits = |routine: Routine| Some((arguments(&routine, call)?, routine));
        let mut fitting = routines.into_iter().filter_map(fits);
        let (Some((given, routine)), None, false) = (fitting.next(), fitting.next(), builtin)
        else {
            return Ok(None);
        };
        let kind = if call.procedure { b'p' } else { b'f' };
        let (Given::Places(arguments), true) = (given, routine.kind == kind && is_worth(&routine))
        else {
            return Ok(None);
        };
        let procedure = self.learn(routine).await?;
        Ok(procedure.map(|procedure| Call { procedure, arguments }))
    }

    /// All functions and procedures of a name, whatever a call would mean.
    ///
    /// # Errors
    /// When the server refuses a look-up or the connection is lost.
    pub async fn examine(&mut self, name: &Name) -> Result<Vec<Arc<Procedure>>, Failure> {
        let named = self.named(name).await?;
        let of_interest = |routine: &Routine| matches!(routine.kind, b'f' | b'p');
        let routines = named.routines.into_iter().filter(of_interest).filter(is_worth);
        let mut examined = Vec::new();
        for routine in routines.take(EXAMINED_MAX) {
            examined.extend(self.learn(routine).await?);
        }
        Ok(examined)
    }

    async fn named(&mut self, name: &Name) -> Result<Named, Failure> {
        let gone = self.connection.gone(&self.procedures.oids(self.database)).await?;
        gone.into_iter().for_each(|oid| self.procedures.forget(self.database, oid));
        let mut meanings = self.connection.meanings(None, std::slice::from_ref(name), &[]).await?;
        Ok(meanings.routines.remove(name).unwrap_or_default())
    }

    async fn learn(&mut self, routine: Routine) -> Result<Option<Arc<Procedure>>, Failure> {
        let body = match self.bodies.analysis(self.place, &routine).await {
            Err(words) => Err(words),
            Ok(analysis) => {
                let mut closure = Closure::new(routine.definition.clone(), analysis.clone());
                self.close(&mut closure, routine.path.as_deref()).await?;
                let (summary, facts) = closure.by_title();
                Ok(Body { analysis, summary, facts })
            }
        };
        let Routine { oid, definition, types, comment, .. } = routine;
        let known = Known { oid, definition, types, comment, body };
        Ok(self.procedures.learn(self.database, known))
    }

    /// Each step asks for all that the last one has come upon.
    async fn close(&mut self, closure: &mut Closure, path: Option<&str>) -> Result<(), Failure> {
        loop {
            let (mut routines, mut relations) = (Vec::new(), Vec::new());
            for wanted in closure.next_wanted() {
                match wanted {
                    Wanted::Routine(name) => routines.push(name),
                    Wanted::Relation(name) => relations.push(name),
                }
            }
            if routines.is_empty() && relations.is_empty() {
                return Ok(());
            }
            let meanings = self.connection.meanings(path, &routines, &relations).await?;
            let Meanings { routines: mut meant, relations: mut found } = meanings;
            for name in relations {
                closure.give_relation(&name, found.remove(&name));
            }
            for name in routines {
                // Of one that is not there the closure says itself that nobody looked into it.
                let Some(named) = meant.remove(&name) else { continue };
                let mut all = Vec::with_capacity(named.routines.len());
                for routine in named.routines.into_iter().filter(|one| !is_harmless(one)) {
                    self.reach(routine, path, &mut all).await;
                }
                closure.give_routine(&name, all);
            }
        }
    }

    async fn reach(
        &self,
        routine: Routine,
        path: Option<&str>,
        out: &mut Vec<(Definition, Result<Analysis, String>)>,
    ) {
        let analysis = self.bodies.analysis(self.place, &routine).await;
        let elsewhere = routine.path.as_deref().is_some_and(|own| Some(own) != path);
        let Routine { definition, .. } = routine;
        match analysis {
            Ok(analysis) if elsewhere => out.push((definition, Ok(apart(analysis)))),
            analysis => out.push((definition, analysis)),
        }
    }
}

fn is_worth(routine: &Routine) -> bool {
    !matches!(routine.definition.language.as_str(), "c" | "internal")
}

/// It promises that it only computes, as C does that is believed everywhere else.
fn is_harmless(routine: &Routine) -> bool {
    !is_worth(routine) && routine.immutable
}

/// Of a routine with a search_path of its own, from one with another: what it does by itself
/// counts, and what it names with a schema.
fn apart(mut analysis: Analysis) -> Analysis {
    analysis.functions.retain(|name| name.schema.is_some());
    analysis.relations.retain(|name| name.schema.is_some());
    analysis.touches.retain(|touch| touch.name.schema.is_some());
    analysis.hazards.push(Hazard {
        kind: HazardKind::Unknown,
        line: 0,
        words: "it has a search_path of its own".to_owned(),
        via: Vec::new(),
    });
    analysis
}

/// What is passed to a routine.
enum Given {
    Places(Vec<Option<Source>>),
    /// As an array, as many as there are.
    Variadic,
}

/// What a call passes, if this is a call of it, as far as numbers and names of arguments tell.
///
/// Source: "Calling Functions" in PostgreSQL's chapter on SQL syntax.
fn arguments(routine: &Routine, call: &sql::Call) -> Option<Given> {
    let definition = &routine.definition;
    let written: Vec<usize> =
        (0..definition.arguments.len()).map_while(|at| definition.argument_at(at)).collect();
    let positional = call.arguments.iter().take_while(|argument| argument.name.is_none()).count();
    if routine.variadic && positional + 1 >= written.len() {
        return Some(Given::Variadic);
    }
    let mut given = vec![None; definition.arguments.len()];
    let mut open = written;
    for (at, argument) in call.arguments.iter().enumerate() {
        let found = match &argument.name {
            None if at >= positional => return None,
            None => open.first().map(|_| 0),
            Some(name) => open.iter().position(|place| definition.arguments[*place].name == *name),
        };
        given[open.remove(found?)] = argument.value;
    }
    let inputs = definition.arguments.iter().enumerate();
    let inputs: Vec<usize> =
        inputs.filter(|(_, one)| one.mode.is_input()).map(|(place, _)| place).collect();
    let needed = inputs.len().saturating_sub(routine.defaults);
    let has_default = |place: &usize| inputs[needed..].contains(place);
    open.iter().all(has_default).then_some(Given::Places(given))
}
