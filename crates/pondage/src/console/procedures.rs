//! Runs the commands about procedures, and makes the rows of SHOW PROCEDURES.

use std::sync::Arc;

use wire::pg::auth::Secret;
use wire::pg::sqlstate;

use super::caching::{notice, pool_of};
use super::operator::Operator;
use super::procedure_commands::{ProcedureCommand, SCHEMA};
use super::queries::{bound, ratio};
use super::session::Notice;
use super::show::Facts;
use super::stats::Calls as Counts;
use super::table::{Table, Value};
use super::{columns, view, Failure};
use crate::config::nearest::nearest;
use crate::config::{is_console, Calls, Coalesce, Config, PoolConfig, PoolMode, ProcedureOptions};
use crate::control::messages::ConsoleUser;
use crate::procedures::{KeyOrigin, Plan, Procedure, Travel};
use crate::worker::snapshot::PoolSnapshot;

impl Operator {
    pub(super) async fn procedure(
        &self,
        who: &ConsoleUser,
        command: ProcedureCommand,
        notices: &mut Vec<Notice>,
    ) -> Result<Option<Table>, Failure> {
        if !who.admin {
            let failure = Failure::new(sqlstate::INSUFFICIENT_PRIVILEGE, "admin access needed");
            return Err(failure.hint("auth.admin_users lists who may do this."));
        }
        let (user, tag) = (&who.user, command.tag());
        tracing::info!(event = "procedure_command", user, command = tag, "{command:?}");
        match command {
            ProcedureCommand::Set { title, options } => {
                self.set_procedure(&title, options, notices).map(|()| None)
            }
            ProcedureCommand::Reset { title } => {
                if self.process().procedures().reset(&title) {
                    return Ok(None);
                }
                let message = format!("SET PROCEDURE has said nothing of {title}");
                let failure = Failure::new(sqlstate::UNDEFINED_OBJECT, message);
                Err(failure.hint(self.known_name(&title).unwrap_or_else(|| {
                    "What a comment or the configuration says is changed there.".to_owned()
                })))
            }
            ProcedureCommand::Explain { schema, name, database } => {
                let database = self.database_of_procedure(who, &name, &database)?;
                let schema = schema.as_deref();
                let found = self.examined(who, &database, schema, &name, notices).await?;
                if found.is_empty() {
                    let said = schema.map_or(name.clone(), |schema| format!("{schema}.{name}"));
                    let message =
                        format!("database {database} has no procedure or function {said}");
                    let failure = Failure::new(sqlstate::UNDEFINED_FUNCTION, message);
                    let title = format!("{}.{name}", schema.unwrap_or(SCHEMA));
                    return Err(match self.known_name(&title) {
                        Some(hint) => failure.hint(hint),
                        None => failure.hint("SHOW PROCEDURES lists those that were called."),
                    });
                }
                let config = self.process().config();
                let mut lines = Vec::new();
                for procedure in found {
                    lines.extend((!lines.is_empty()).then(String::new));
                    lines.extend(explained(&procedure, &config));
                }
                let rows = lines.into_iter().map(|line| vec![Value::text(line)]).collect();
                Ok(Some(Table { columns: columns::PLAN.into(), rows }))
            }
        }
    }

    fn set_procedure(
        &self,
        title: &str,
        options: ProcedureOptions,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Failure> {
        let procedures = self.process().procedures();
        procedures
            .set(title, options)
            .map_err(|why| Failure::new(sqlstate::CONFIGURATION_LIMIT_EXCEEDED, why))?;
        let known: Vec<_> =
            procedures.list().into_iter().filter(|one| one.title == title).collect();
        if known.is_empty() {
            let message = format!("nobody has called {title} yet; it counts from the first call");
            notices.push(notice("NOTICE", message, self.known_name(title)));
        }
        let config = self.process().config();
        for procedure in known {
            let (database, plan) = (&procedure.database, procedure.plan());
            let of = format!("in database {database}");
            notices.extend(plan.complaints.iter().map(|complaint| {
                notice("WARNING", complaint.clone(), Some(format!("{title} {of}")))
            }));
            if let Some(why) = forbidden(&config, database) {
                notices.push(notice("WARNING", format!("{title} stays as it was {of}"), Some(why)));
            }
        }
        Ok(())
    }

    /// A known one that has almost this name.
    fn known_name(&self, title: &str) -> Option<String> {
        let list = self.process().procedures().list();
        let titles = list.iter().map(|procedure| procedure.title.as_str());
        let near = nearest(title, titles.filter(|known| *known != title))?;
        Some(format!("Did you mean {near}?"))
    }

    /// On an ordinary connection its own; on the console the one that is said, or the only one that
    /// can be meant.
    fn database_of_procedure(
        &self,
        who: &ConsoleUser,
        name: &str,
        said: &Option<String>,
    ) -> Result<String, Failure> {
        if !is_console(&who.database) {
            return match said {
                Some(other) if *other != who.database => {
                    let message = format!("this connection is in database {}", who.database);
                    Err(Failure::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
                        .hint("Connect to the other one, or use the console."))
                }
                _ => Ok(who.database.clone()),
            };
        }
        self.known("explain procedures of", said)?;
        if let Some(said) = said {
            return Ok(said.clone());
        }
        let list = self.process().procedures().list();
        let mut called: Vec<&String> = list
            .iter()
            .filter(|one| one.is_named(None, name))
            .map(|procedure| &procedure.database)
            .collect();
        called.dedup();
        let config = self.process().config();
        let mut configured = config.databases.keys().filter(|name| *name != "*");
        match (called.as_slice(), configured.next(), configured.next()) {
            ([one], ..) => Ok((*one).clone()),
            ([], Some(one), None) => Ok(one.clone()),
            _ => Err(Failure::new(sqlstate::SYNTAX_ERROR, "which database is it about?")
                .detail("The console is in none.")
                .hint(format!("EXPLAIN PROCEDURE {name} IN DATABASE app"))),
        }
    }

    /// As whom the catalogues are asked. The console's administrator need not be a role there, so
    /// on the console it is the database's user, or one whose pool is in use.
    async fn pool_to_ask(
        &self,
        who: &ConsoleUser,
        database: &str,
    ) -> Result<Arc<PoolConfig>, Failure> {
        let config = self.process().config();
        let of_database = || {
            pool_of(&config, who, database).ok_or_else(|| {
                let message = format!("no such database: {database}");
                Failure::new(sqlstate::INVALID_CATALOG_NAME, message)
            })
        };
        if !is_console(&who.database) || config.stream_pool(database).is_some() {
            return of_database();
        }
        let view = self.look().await?;
        let mut pools = view::pools(&view.workers).into_iter();
        let logs_in = |pool: &PoolSnapshot| {
            let password = pool.config.upstream.password.as_ref();
            pool.database == database && matches!(password, Some(Secret::Plain(_)))
        };
        match pools.find(logs_in) {
            Some(pool) => Ok(pool.config),
            None => of_database(),
        }
    }

    /// What the catalogues say now; if they can't be asked, what is known from calls.
    async fn examined(
        &self,
        who: &ConsoleUser,
        database: &str,
        schema: Option<&str>,
        name: &str,
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<Arc<Procedure>>, Failure> {
        let pool = self.pool_to_ask(who, database).await?;
        let proven = who.proven.clone();
        let why = match self.process().examine_procedure(&pool, proven, schema, name).await {
            Ok(found) => return Ok(found),
            Err(why) => why,
        };
        let message = "the catalogues could not be asked";
        let mut known = self.process().procedures().list();
        known.retain(|one| one.database == database && one.is_named(schema, name));
        if known.is_empty() {
            return Err(Failure::new(sqlstate::CONNECTION_FAILURE, message).detail(why));
        }
        let message = format!("{message}: this is what was known when it was called");
        notices.push(notice("WARNING", message, Some(why)));
        Ok(known)
    }
}

/// What the users that no section names have for `procedures`; where nothing travels, nothing.
fn calls_of(config: &Config, database: &str) -> Calls {
    match (config.pool(database, ""), forbidden(config, database)) {
        (Ok(pool), None) => pool.procedures,
        _ => Calls::Off,
    }
}

fn forbidden(config: &Config, database: &str) -> Option<String> {
    let pool = config.pool(database, "").ok()?;
    match (pool.mode, pool.coalesce, pool.procedures) {
        (PoolMode::Session, ..) => Some(format!("database {database} is in session mode")),
        (_, Coalesce::Off, _) => Some(format!("coalesce = \"off\" for database {database}")),
        (.., Calls::Off) => Some(format!("procedures = \"off\" for database {database}")),
        _ => None,
    }
}

fn explained(procedure: &Procedure, config: &Config) -> Vec<String> {
    let plan = procedure.plan();
    let calls = calls_of(config, &procedure.database);
    let kind = if plan.is_procedure { "Procedure" } else { "Function" };
    let mut lines = vec![
        format!("{kind}: {}({})", procedure.title, plan.signature),
        format!("Mode: {}", mode_and_why(&plan, calls, forbidden(config, &procedure.database))),
    ];
    if calls != Calls::Auto {
        let auto = plan.travel(Calls::Auto).map_or("off", Travel::word);
        lines.push(format!("With procedures = \"auto\": {auto}"));
    }
    let key = match &plan.lane {
        None => "none, so every call may travel beside every other".to_owned(),
        Some(_) => {
            let also = also(&plan);
            let also = if also.is_empty() { also } else { format!(" also ({also})") };
            format!("({}){also}, {}", key(&plan), said_by(plan.origin))
        }
    };
    lines.push(format!("Key: {key}"));
    if plan.ride.is_some() {
        let own = &plan.derived;
        let body = match own.key.is_empty() {
            true => format!("no key: {}", own.why),
            false => {
                let list = |places: &Vec<usize>| names(&plan, places.iter().copied());
                let also = own.also.iter().map(|places| format!(" also ({})", list(places)));
                let also: String = also.collect();
                format!("key ({}){also}: {}", list(&own.key), own.why)
            }
        };
        lines.push(format!("Its body: {body}"));
    }
    lines.extend(plan.footprints.iter().map(|line| format!("Rows: {line}")));
    let hazard = if plan.ride.is_some() { "Hazard" } else { "Its body is not understood" };
    lines.extend(plan.hazards.iter().map(|line| format!("{hazard}: {line}")));
    lines.extend(problems(procedure, &plan).into_iter().map(|line| format!("Problem: {line}")));
    let suggested = suggestion(procedure, &plan);
    if let Some(suggested) = suggested.map(|(why, command)| format!("{why}: {command}")) {
        lines.push(format!("Advice: {suggested}"));
    }
    // Of rows that another key is about, it would not be the hottest one.
    let own = plan.lane.as_ref().is_none_or(|lane| {
        lane.key.iter().map(|(place, _)| *place).eq(plan.derived.key.iter().copied())
    });
    lines.extend(plan.derived.advice.iter().filter(|_| own).map(|line| format!("Advice: {line}")));
    lines
}

/// What calls get, and what stands against more.
fn mode_and_why(plan: &Plan, calls: Calls, forbidden: Option<String>) -> String {
    let travel = plan.travel(calls);
    let word = travel.map_or("off", Travel::word);
    let hazard = || plan.hazards.first().cloned();
    let why = match (travel, calls) {
        (None, Calls::Off) => forbidden,
        (None, Calls::Declared) if !plan.declared => {
            Some("nobody has said how its calls travel, and procedures = \"declared\"".to_owned())
        }
        (None, _) if plan.options.mode.is_some_and(|mode| mode.name() == "off") => None,
        (None, Calls::Auto) if !plan.declared && plan.origin != KeyOrigin::Body => {
            Some("nobody has said how its calls travel, and its body tells no key".to_owned())
        }
        (None, _) => hazard(),
        (Some(Travel::Secluded), _) => Some(
            "only calls of one key share a train, because a handler of exceptions may take a \
             lock_timeout for its own"
                .to_owned(),
        ),
        (Some(_), _) if word == plan.options.mode().name() => None,
        (Some(Travel::Each), _) if hazard().is_none() => Some("durable_ack = \"each\"".to_owned()),
        (Some(_), _) => hazard(),
    };
    why.map_or(word.to_owned(), |why| format!("{word}: {why}"))
}

/// What was said and can't be done, and what lock waits say against the key.
fn problems(procedure: &Procedure, plan: &Plan) -> Vec<String> {
    let mut problems = plan.complaints.clone();
    let places: Vec<usize> =
        plan.lane.iter().flat_map(|lane| &lane.key).map(|(place, _)| *place).collect();
    let despite = procedure.waits().despite(&places);
    if let Some(pairs) = despite {
        problems.push(format!(
            "the key does not keep apart who waits for whom: of {pairs} pairs of calls that were \
             seen waiting for one another, hardly any had the same ({})",
            key(plan)
        ));
    }
    problems
}

/// The key that lock waits tell, if it is another one: why, and the command that sets it.
pub fn suggestion(procedure: &Procedure, plan: &Plan) -> Option<(String, String)> {
    let places = procedure.waits().suggested();
    let own = plan.lane.iter().flat_map(|lane| &lane.key).map(|(place, _)| *place);
    if places.is_empty() || own.eq(places.iter().copied()) {
        return None;
    }
    let (title, names) = (&procedure.title, names(plan, places.into_iter()));
    let why = format!("calls that wait for one another have the same ({names})");
    Some((why, format!("SET PROCEDURE {title} KEY ({names})")))
}

fn said_by(origin: KeyOrigin) -> &'static str {
    match origin {
        KeyOrigin::Nobody => "by nobody",
        KeyOrigin::Body => "as its body tells",
        KeyOrigin::Comment => "as its comment says",
        KeyOrigin::Configuration => "as the configuration says",
        KeyOrigin::Command => "as SET PROCEDURE says",
    }
}

fn names(plan: &Plan, places: impl Iterator<Item = usize>) -> String {
    let name = |place: usize| plan.arguments.get(place).cloned().unwrap_or_default();
    places.map(name).collect::<Vec<_>>().join(", ")
}

/// `p_w, p_d`, of the key in force.
fn key(plan: &Plan) -> String {
    plan.lane
        .as_ref()
        .map_or(String::new(), |lane| names(plan, lane.key.iter().map(|(place, _)| *place)))
}

/// `p_cw, p_cd; p_sw, p_sd`
fn also(plan: &Plan) -> String {
    let lists = plan.lane.iter().flat_map(|lane| &lane.also);
    let list = lists.map(|list| names(plan, list.iter().map(|(place, _)| *place)));
    list.collect::<Vec<_>>().join("; ")
}

/// For averages.
pub fn calls(procedures: &[Arc<Procedure>]) -> Counts {
    let count = |one: &Arc<Procedure>| ((one.database.clone(), one.oid), one.fared().calls);
    procedures.iter().map(count).collect()
}

/// One row for each procedure of a database.
pub fn rows(facts: &Facts<'_>) -> Vec<Vec<Value>> {
    facts.procedures.iter().map(|procedure| row(procedure, facts)).collect()
}

fn row(procedure: &Procedure, facts: &Facts<'_>) -> Vec<Value> {
    let (plan, fared) = (procedure.plan(), procedure.fared());
    let travel = plan.travel(calls_of(facts.config, &procedure.database));
    // Its own statement: it holds a lock that the problems take as well.
    let waited = procedure.waits().share();
    let identity = (procedure.database.clone(), procedure.oid);
    let rate = facts.sampler.call_rate(facts.now, &identity, fared.calls);
    vec![
        Value::text(procedure.database.clone()),
        Value::text(procedure.title.clone()),
        Value::text(plan.signature.clone()),
        Value::text(travel.map_or("off", Travel::word)),
        Value::text(key(&plan)),
        Value::text(also(&plan)),
        Value::text(plan.origin.word()),
        Value::from(fared.calls),
        Value::Tenths(rate),
        bound(&fared.time, 50),
        bound(&fared.time, 99),
        ratio(fared.joined.saturating_mul(100), fared.calls),
        ratio(fared.company.saturating_add(fared.joined), fared.joined),
        Value::from(fared.retried),
        Value::from(fared.errors),
        waited.map_or(Value::Null, Value::from),
        Value::text(problems(procedure, &plan).join("; ")),
    ]
}

#[cfg(test)]
#[path = "procedures_tests.rs"]
mod tests;
