//! What is looked at, in the order of the report.

mod changes;
mod limits;
mod measures;
mod objects;
mod roles;
mod server;

use std::future::Future;
use std::pin::Pin;

use backend::replication::catalogue::Row;

use super::finding::{Examined, Finding, Weight};
use super::patient::Patient;
use crate::config::CacheMode;

/// Rows of one kind that are named; the others are counted.
const NAMED_MAX: usize = 20;

/// How things are, in one line, and what is found.
type Judged = (String, Vec<Finding>);

/// One thing to look at.
pub struct Check {
    name: &'static str,
    look: Look,
}

enum Look {
    /// At what one query answers.
    Query { sql: fn(&Patient<'_>) -> String, judge: fn(&Patient<'_>, Vec<Row>) -> Judged },
    /// At what is measured.
    Measure(for<'a> fn(&'a mut Patient<'_>) -> Measured<'a>),
}

type Measured<'a> = Pin<Box<dyn Future<Output = Result<Judged, String>> + 'a>>;

pub const ALL: &[Check] = &[
    query("version", server::version_sql, server::version),
    query("standby", server::nothing, server::standby),
    query("tls", server::nothing, server::tls),
    query("durability", server::durability_sql, server::durability),
    query("rights", server::nothing, roles::rights),
    query("verifiers", roles::verifiers_sql, roles::verifiers),
    query("search_path", roles::search_path_sql, roles::search_path),
    query("connections", limits::connections_sql, limits::connections),
    query("transactions", limits::transactions_sql, limits::transactions),
    query("wal_level", changes::wal_level_sql, changes::wal_level),
    query("replication", server::nothing, changes::replication),
    query("slots", changes::slots_sql, changes::slots),
    query("wal_kept", changes::kept_sql, changes::kept),
    query("identity", changes::identity_sql, changes::identity),
    query("plans", objects::plans_sql, objects::plans),
    query("functions", objects::functions_sql, objects::functions),
    query("collations", objects::collations_sql, objects::collations),
    Check { name: "clock", look: Look::Measure(|patient| Box::pin(measures::clock(patient))) },
    Check { name: "latency", look: Look::Measure(|patient| Box::pin(measures::latency(patient))) },
];

const fn query(
    name: &'static str,
    sql: fn(&Patient<'_>) -> String,
    judge: fn(&Patient<'_>, Vec<Row>) -> Judged,
) -> Check {
    Check { name, look: Look::Query { sql, judge } }
}

impl Check {
    pub async fn run(&self, patient: &mut Patient<'_>) -> Examined {
        let judged = match &self.look {
            Look::Measure(measure) => measure(patient).await,
            Look::Query { sql, judge } => {
                let sql = sql(patient);
                let rows = match sql.is_empty() {
                    true => Ok(Vec::new()),
                    false => patient.ask(&sql).await,
                };
                rows.map(|rows| judge(patient, rows))
            }
        };
        let (standing, findings) = match judged {
            Ok((standing, findings)) => (Ok(standing), findings),
            Err(why) => (Err(why), Vec::new()),
        };
        Examined { check: self.name, standing, findings }
    }
}

/// What keeps a database from being cached weighs less where nobody wants that.
fn of_cache(patient: &Patient<'_>, what: impl Into<String>) -> Finding {
    let weight = match patient.pool.cache {
        CacheMode::Off => Weight::Note,
        CacheMode::Advise | CacheMode::Manual | CacheMode::Auto => Weight::Warning,
    };
    Finding::new(weight, what)
}

/// "a, b and 3 more".
fn listed(names: &[String], all: usize) -> String {
    let more = all.saturating_sub(names.len());
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
