//! Runs the commands about caches, on the console and on ordinary connections, and makes the rows
//! of SHOW CACHES.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use wire::pg::sqlstate;

use super::cache_commands::CacheCommand;
use super::operator::Operator;
use super::session::Notice;
use super::show;
use super::table::{Table, Value};
use super::{columns, streams, Failure};
use crate::config::{
    duration_text, is_console, size_text, CacheMode, Config, Definition, PoolConfig,
};
use crate::control::caches::{CacheInfo, Created, Refused, CACHES_MAX};
use crate::control::messages::ConsoleUser;
use crate::route::{Cacheable, MIRROR_LIMITS};
use crate::stream::{Standing, State};

/// Of a statement, so many characters are shown.
const QUERY_CHARS_MAX: usize = 1_000;

impl Operator {
    pub(super) async fn cache(
        &self,
        who: &ConsoleUser,
        command: CacheCommand,
        notices: &mut Vec<Notice>,
    ) -> Result<Option<Table>, Failure> {
        if !who.admin {
            let failure = Failure::new(sqlstate::INSUFFICIENT_PRIVILEGE, "admin access needed");
            return Err(failure.hint("auth.admin_users lists who may do this."));
        }
        let tag = command.tag();
        let (user, db, name) = (&who.user, &who.database, command.name());
        tracing::info!(event = "cache_command", user, db, command = tag, name);
        match command {
            CacheCommand::Create(definition) => {
                self.create_cache(who, &definition, notices).await.map(|()| None)
            }
            CacheCommand::Explain(definition) => {
                let database = self.database_of(who, &definition.database)?;
                let judged = self.judge(who, &database, &definition).await?;
                let followed = judged.as_ref().ok().map(|found| self.followed(&database, found));
                Ok(Some(explained(judged, followed.unwrap_or_default())))
            }
            CacheCommand::Drop { name, database } => {
                let database = self.perhaps_database_of(who, &database)?;
                let registry = self.process().caches();
                registry.drop_cache(&name, database.as_deref()).map_err(refused)?;
                Ok(None)
            }
            CacheCommand::DropAll { database } => {
                let database = self.perhaps_database_of(who, &database)?;
                let dropped = self.process().caches().drop_all(database.as_deref());
                notices.push(notice("NOTICE", format!("{dropped} dropped"), None));
                Ok(None)
            }
            CacheCommand::Mirror(wanted) => self.mirror(who, wanted, notices).await.map(|()| None),
            CacheCommand::DropMirror { table, database } => {
                let database = self.perhaps_database_of(who, &database)?;
                self.drop_mirror(database.as_deref(), &table).map(|()| None)
            }
        }
    }

    async fn create_cache(
        &self,
        who: &ConsoleUser,
        definition: &Definition,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Failure> {
        let database = self.database_of(who, &definition.database)?;
        let verdict = self.judge(who, &database, definition).await?;
        if let Err(why) = verdict {
            return Err(Failure::new(
                sqlstate::FEATURE_NOT_SUPPORTED,
                "results of this statement can't be cached",
            )
            .detail(why)
            .hint("It works as before: PostgreSQL answers it."));
        }
        let registry = self.process().caches();
        let created = registry.create(&database, definition).map_err(refused)?;
        let (cache, message) = match &created {
            Created::New(cache) if definition.name.is_some() => (cache, None),
            Created::New(cache) => (cache, Some(format!("its name is {}", cache.name))),
            Created::Changed(cache) => {
                (cache, Some(format!("cache {} has other options now", cache.name)))
            }
            Created::Known(cache) => {
                (cache, Some(format!("cache {} is there already", cache.name)))
            }
        };
        cache.judged(&verdict);
        notices.extend(message.map(|message| notice("NOTICE", message, None)));
        let streams = self.process().streams();
        let stream = streams.iter().find(|stream| stream.database == database);
        if let Some(why) = stream.and_then(|stream| not_followed(cache, stream)) {
            let message = "changes of one of its tables are not followed".to_owned();
            notices.push(notice("WARNING", message, Some(why)));
        }
        let config = self.process().config();
        if let mode @ (CacheMode::Off | CacheMode::Advise) = mode_of(&config, &database) {
            let message = format!("the cache of database {database} is \"{}\"", mode.name());
            let detail = "Its statements are not answered from memory before cache = \"manual\" \
                          or \"auto\" for it in the configuration, and RELOAD.";
            notices.push(notice("WARNING", message, Some(detail.to_owned())));
        }
        Ok(())
    }

    /// Whether the changes of what a statement reads are told, line by line.
    fn followed(&self, database: &str, cacheable: &Cacheable) -> Vec<String> {
        let streams = self.process().streams();
        let stream = streams.iter().find(|stream| stream.database == *database);
        let Some(stream) = stream else {
            return vec![match mode_of(&self.process().config(), database) {
                CacheMode::Off => format!("Followed: no, the cache of database {database} is off"),
                _ => "Followed: not yet, nobody has used the database".to_owned(),
            }];
        };
        if stream.state != State::Following {
            return vec![format!("Followed: no, {}", streams::why(&stream.state))];
        }
        let tables: Vec<u32> = cacheable.recipe.tables.iter().map(|table| table.oid).collect();
        let why = untold(&tables, stream);
        if why.is_empty() {
            return vec!["Followed: yes".to_owned()];
        }
        let lines = why.into_iter().map(|why| format!("Why: {why}"));
        ["Followed: no".to_owned()].into_iter().chain(lines).collect()
    }

    /// What parser and catalogues say about a statement.
    async fn judge(
        &self,
        who: &ConsoleUser,
        database: &str,
        definition: &Definition,
    ) -> Result<Result<Arc<Cacheable>, String>, Failure> {
        let config = self.process().config();
        let pool = pool_of(&config, who, database).ok_or_else(|| {
            let message = format!("no such database: {database}");
            Failure::new(sqlstate::INVALID_CATALOG_NAME, message)
        })?;
        let proven = who.proven.clone();
        let judged = self.process().judge_cache(&pool, proven, &definition.query).await;
        judged.map_err(|why| {
            let message = "the catalogues could not be asked about this statement";
            Failure::new(sqlstate::CONNECTION_FAILURE, message).detail(why)
        })
    }

    /// The database that a command is about: on an ordinary connection its own.
    pub(super) fn database_of(
        &self,
        who: &ConsoleUser,
        said: &Option<String>,
    ) -> Result<String, Failure> {
        self.perhaps_database_of(who, said)?.ok_or_else(|| {
            Failure::new(sqlstate::SYNTAX_ERROR, "which database is it about?")
                .detail("The console is in none.")
                .hint("CREATE CACHE name IN DATABASE app FROM SELECT ...")
        })
    }

    fn perhaps_database_of(
        &self,
        who: &ConsoleUser,
        said: &Option<String>,
    ) -> Result<Option<String>, Failure> {
        if is_console(&who.database) {
            self.known("cache in", said)?;
            return Ok(said.clone());
        }
        match said {
            Some(other) if *other != who.database => {
                let message = format!("this connection is in database {}", who.database);
                Err(Failure::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
                    .hint("Connect to the other one, or use the console."))
            }
            _ => Ok(Some(who.database.clone())),
        }
    }
}

/// As whom a statement is judged: on an ordinary connection as its user.
pub(super) fn pool_of(
    config: &Config,
    who: &ConsoleUser,
    database: &str,
) -> Option<Arc<PoolConfig>> {
    if !is_console(&who.database) {
        return config.pool(database, &who.user).ok();
    }
    config.stream_pool(database).or_else(|| config.pool(database, &who.user).ok())
}

/// Of the users that no section names.
pub(super) fn mode_of(config: &Config, database: &str) -> CacheMode {
    config.pool(database, "").map_or(CacheMode::Off, |pool| pool.cache)
}

pub(super) fn notice(severity: &'static str, message: String, detail: Option<String>) -> Notice {
    Notice { severity, message, detail }
}

fn explained(judged: Result<Arc<Cacheable>, String>, followed: Vec<String>) -> Table {
    let lines = match judged {
        Ok(cacheable) => {
            let mirrorable = match &cacheable.mirror {
                Ok(_) => {
                    let most = size_text(MIRROR_LIMITS.bytes as u64);
                    let rows = MIRROR_LIMITS.rows;
                    format!("Mirrorable: yes, up to {rows} rows to look at and {most} to answer")
                }
                Err(why) => format!("Mirrorable: no, {why}"),
            };
            let first = ["Cacheable: yes".to_owned()];
            [&first[..], &cacheable.lines, &[mirrorable], &followed].concat()
        }
        Err(why) => vec!["Cacheable: no".to_owned(), format!("Why: {why}")],
    };
    let rows = lines.into_iter().map(|line| vec![Value::text(line)]).collect();
    Table { columns: columns::PLAN.into(), rows }
}

fn refused(refused: Refused) -> Failure {
    let (code, message) = match &refused {
        Refused::Taken { name } => {
            (sqlstate::DUPLICATE_OBJECT, format!("cache \"{name}\" exists for another statement"))
        }
        Refused::Same { name } => {
            (sqlstate::DUPLICATE_OBJECT, format!("the statement is cached as \"{name}\" already"))
        }
        Refused::Full => (
            sqlstate::CONFIGURATION_LIMIT_EXCEEDED,
            format!("there are {CACHES_MAX} caches already"),
        ),
        Refused::Unknown { name } => {
            (sqlstate::UNDEFINED_OBJECT, format!("there is no cache \"{name}\""))
        }
        Refused::Ambiguous { databases } => (
            sqlstate::UNDEFINED_OBJECT,
            format!("there is one in each of the databases {}", databases.join(", ")),
        ),
    };
    let failure = Failure::new(code, message);
    match refused {
        Refused::Taken { .. } | Refused::Same { .. } | Refused::Full => {
            failure.hint("DROP CACHE name; SHOW CACHES lists them.")
        }
        Refused::Unknown { .. } => failure.hint("SHOW CACHES lists them."),
        Refused::Ambiguous { .. } => failure.hint("DROP CACHE name IN DATABASE app"),
    }
}

/// One row for each cache.
pub fn rows(config: &Config, caches: &[Arc<CacheInfo>], streams: &[Standing]) -> Vec<Vec<Value>> {
    let row = |cache: &Arc<CacheInfo>| {
        let stream = streams.iter().find(|stream| stream.database == cache.database);
        row(config, cache, stream)
    };
    caches.iter().map(row).collect()
}

fn row(config: &Config, cache: &CacheInfo, stream: Option<&Standing>) -> Vec<Value> {
    let pool = config.pool(&cache.database, "").ok();
    let mode = pool.as_ref().map_or(CacheMode::Off, |pool| pool.cache);
    let freshness = cache.freshness.or(pool.as_ref().map(|pool| pool.cache_freshness));
    let lag = cache.max_lag.or(pool.as_ref().map(|pool| pool.cache_max_lag));
    let counters = &cache.counters;
    let (hits, misses) = (load(&counters.hits), load(&counters.misses));
    let (state, why) = match mode {
        CacheMode::Off | CacheMode::Advise => ("off", String::new()),
        CacheMode::Manual | CacheMode::Auto => state(cache, stream),
    };
    vec![
        Value::text(cache.name.clone()),
        Value::text(cache.database.clone()),
        Value::text(shown(&cache.query)),
        Value::text(mode.name()),
        Value::optional(freshness.map(|freshness| freshness.name())),
        Value::optional(lag.map(duration_text)),
        Value::from(hits),
        Value::from(misses),
        percent(hits, hits.saturating_add(misses)),
        Value::from(load(&counters.fills)),
        Value::from(load(&counters.waits)),
        Value::from(counters.kept.entries()),
        Value::from(counters.kept.bytes()),
        Value::text(show::time(cache.created)),
        Value::text(state),
        Value::text(why),
    ]
}

/// How it does where the mode lets it, and why.
fn state(cache: &CacheInfo, stream: Option<&Standing>) -> (&'static str, String) {
    if let Some(why) = cache.verdict().and_then(|judged| judged.why_not.clone()) {
        return ("refused", why);
    }
    match stream {
        None => ("waiting", "nobody has used the database yet".to_owned()),
        Some(stream) if stream.state != State::Following => {
            ("waiting", streams::why(&stream.state))
        }
        Some(stream) => match not_followed(cache, stream) {
            Some(why) => ("waiting", why),
            None => ("ready", String::new()),
        },
    }
}

/// A table of the statement whose changes are not told.
fn not_followed(cache: &CacheInfo, stream: &Standing) -> Option<String> {
    untold(&cache.verdict()?.tables, stream).into_iter().next()
}

/// Those of some tables whose changes are not told, and why.
pub(super) fn untold(tables: &[u32], stream: &Standing) -> Vec<String> {
    let read = stream.tables.iter().filter(|table| tables.contains(&table.oid));
    read.filter_map(|table| streams::not_told(stream, table)).collect()
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// With one decimal; NULL of nothing.
pub(super) fn percent(part: u64, whole: u64) -> Value {
    part.saturating_mul(1_000).checked_div(whole).map_or(Value::Null, Value::Tenths)
}

/// On one line, and not longer than a line of a report can be.
fn shown(query: &str) -> String {
    let mut line = query.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(QUERY_CHARS_MAX) {
        line.truncate(end);
        line.push_str("...");
    }
    line
}

#[cfg(test)]
#[path = "caching_tests.rs"]
pub mod tests;
