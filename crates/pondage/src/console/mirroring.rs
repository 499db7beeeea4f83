//! Runs the commands about mirrors, and makes the rows of SHOW MIRRORS.

use cache::mirror::held::{MirrorInfo, State};
use wire::pg::sqlstate;

use super::caching::{mode_of, notice, percent, untold};
use super::operator::Operator;
use super::session::Notice;
use super::streams;
use super::table::Value;
use super::{Failure, Process};
use crate::config::{CacheMode, Config, MirrorDefinition, TableName};
use crate::control::messages::ConsoleUser;
use crate::control::mirrors::{Pin, Pinned, Refused, Unfit, MIRRORS_MAX};
use crate::stream::{self, Standing};

impl Operator {
    pub(super) async fn mirror(
        &self,
        who: &ConsoleUser,
        wanted: MirrorDefinition,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Failure> {
        let database = self.database_of(who, &wanted.database)?;
        if self.process().mirror_memory().limit == 0 {
            let message = "there is no memory for mirrors";
            return Err(Failure::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .detail("cache.mirror_memory is 0.")
                .hint("Set mirror_memory in [cache], and restart."));
        }
        let judged = self.process().judge_mirror(&database, &wanted).await.map_err(|why| {
            let message = "the catalogues could not be asked about this table";
            Failure::new(sqlstate::CONNECTION_FAILURE, message).detail(why)
        })?;
        let found = judged.map_err(unfit)?;
        let table = TableName { schema: Some(found.schema.clone()), name: found.name.clone() };
        let title = table.to_string();
        let wanted = MirrorDefinition { table, database: None, ..wanted };
        let message = match self.process().pins().pin(&database, wanted).map_err(refused)? {
            Pinned::New => None,
            Pinned::Changed => Some(format!("mirror of {title} gets other columns")),
            Pinned::Known => Some(format!("{title} is to be mirrored already")),
        };
        notices.extend(message.map(|message| notice("NOTICE", message, None)));
        let streams = self.process().streams();
        let stream = streams.iter().find(|stream| stream.database == database);
        let why = stream.and_then(|stream| untold(&[found.oid], stream).into_iter().next());
        if let Some(why) = why {
            let message = "changes of the table are not followed".to_owned();
            notices.push(notice("WARNING", message, Some(why)));
        }
        let mode = mode_of(&self.process().config(), &database);
        if let CacheMode::Off | CacheMode::Advise = mode {
            let message = format!("the cache of database {database} is \"{}\"", mode.name());
            let detail = "Nothing is answered from memory before cache = \"manual\" or \"auto\" \
                          for it in the configuration, and RELOAD.";
            notices.push(notice("WARNING", message, Some(detail.to_owned())));
        }
        Ok(())
    }

    pub(super) fn drop_mirror(
        &self,
        database: Option<&str>,
        table: &TableName,
    ) -> Result<(), Failure> {
        self.process().pins().unpin(database, table).map_err(|why| match why {
            Refused::Unknown => {
                let message = format!("nobody has asked for a mirror of {table}");
                Failure::new(sqlstate::UNDEFINED_OBJECT, message)
                    .detail("Mirrors that mode \"auto\" has made go when nobody reads them.")
                    .hint("SHOW MIRRORS lists them: those that are pinned can be dropped.")
            }
            other => refused(other),
        })
    }
}

fn unfit(unfit: Unfit) -> Failure {
    let failure = Failure::new(unfit.code, unfit.message);
    match unfit.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn refused(refused: Refused) -> Failure {
    match refused {
        Refused::Full => {
            let message = format!("{MIRRORS_MAX} tables are to be mirrored already");
            Failure::new(sqlstate::CONFIGURATION_LIMIT_EXCEEDED, message)
                .hint("DROP MIRROR table; SHOW MIRRORS lists them.")
        }
        Refused::Unknown => Failure::new(sqlstate::UNDEFINED_OBJECT, "there is no such mirror"),
        Refused::Ambiguous(several) => {
            let message = format!("there is more than one: {}", several.join(", "));
            Failure::new(sqlstate::UNDEFINED_OBJECT, message)
                .hint("DROP MIRROR schema.table IN DATABASE app")
        }
    }
}

/// The mirrors of every database that is followed.
pub fn of(process: &dyn Process) -> Vec<(String, MirrorInfo)> {
    let streams = process.streams();
    let databases = streams.into_iter().map(|stream| stream.database);
    let infos = |database: String| {
        let all = process.mirrors(&database);
        all.into_iter().map(move |info| (database.clone(), info))
    };
    databases.flat_map(infos).collect()
}

/// What SHOW MIRRORS is made of.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    pub config: &'a Config,
    pub streams: &'a [Standing],
    /// With their databases.
    pub mirrors: &'a [(String, MirrorInfo)],
    /// In order of databases and names.
    pub pins: &'a [Pin],
}

/// One row for each mirror, and for each table that is to have one.
pub fn rows(facts: Known<'_>) -> Vec<Vec<Value>> {
    let mut rows: Vec<(String, String, Vec<Value>)> = Vec::new();
    for (database, info) in facts.mirrors {
        let title = format!("{}.{}", info.schema, info.name);
        rows.push((database.clone(), title, row(database, info)));
    }
    for pin in facts.pins {
        let known = |(database, info): &(String, MirrorInfo)| {
            *database == pin.database && pin.oid() == Some(info.oid)
        };
        if !facts.mirrors.iter().any(known) {
            let title = pin.wanted.table.to_string();
            rows.push((pin.database.clone(), title, pinned(facts, pin)));
        }
    }
    rows.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    rows.into_iter().map(|(_, _, row)| row).collect()
}

fn row(database: &str, info: &MirrorInfo) -> Vec<Value> {
    let (why, copied) = match &info.state {
        State::Copying { done, total } => (String::new(), percent(*done, *total)),
        State::Waiting => ("it waits for the stream".to_owned(), Value::Null),
        State::Ready => (String::new(), Value::Tenths(1_000)),
        State::Failed { why } => (why.clone(), Value::Null),
    };
    vec![
        Value::text(database.to_owned()),
        Value::text(format!("{}.{}", info.schema, info.name)),
        Value::text(info.columns.join(", ")),
        Value::text(word(&info.state)),
        Value::text(why),
        Value::text(if info.pinned { "yes" } else { "no" }),
        Value::from(info.rows),
        Value::from(info.bytes),
        Value::text(info.indexes.join(", ")),
        copied,
    ]
}

/// One word for a state, in tables and metrics.
pub fn word(state: &State) -> &'static str {
    match state {
        State::Copying { .. } => "copying",
        State::Waiting => "waiting",
        State::Ready => "ready",
        State::Failed { .. } => "failed",
    }
}

/// The row of a table that has no mirror yet.
fn pinned(facts: Known<'_>, pin: &Pin) -> Vec<Value> {
    let stream = facts.streams.iter().find(|stream| stream.database == pin.database);
    let (state, why) = match (mode_of(facts.config, &pin.database), stream) {
        (CacheMode::Off, _) => ("off", String::new()),
        (_, None) => ("waiting", "nobody has used the database yet".to_owned()),
        (_, Some(stream)) if stream.state != stream::State::Following => {
            ("waiting", streams::why(&stream.state))
        }
        _ => match pin.why_not() {
            Some(why) => ("refused", why.to_owned()),
            None => ("waiting", String::new()),
        },
    };
    vec![
        Value::text(pin.database.clone()),
        Value::text(pin.wanted.table.to_string()),
        Value::text(pin.wanted.columns.as_deref().unwrap_or_default().join(", ")),
        Value::text(state),
        Value::text(why),
        Value::text("yes"),
        Value::from(0_u64),
        Value::from(0_u64),
        Value::text(""),
        Value::Null,
    ]
}

#[cfg(test)]
#[path = "mirroring_tests.rs"]
mod tests;
