//! A session at the database, and what the server says of itself.

use std::time::{Duration, Instant, SystemTime};

use backend::replication::catalogue::Row;

use super::finding::Unreached;
use crate::config::{Config, PoolConfig};
use crate::control::dial::Dialer;
use crate::control::messages::OpenKind;
use crate::control::open::Session;
use crate::stream;

/// What the session begins with: values have one text form whatever the role, the database or the
/// server say, and nobody waits for locks.
const SETTINGS: [(&str, &str); 8] = [
    ("application_name", "pondage doctor"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "10s"),
    ("lock_timeout", "1s"),
    ("default_transaction_read_only", "off"),
];

/// Asked before anything else, while names mean what they mean to the role.
const FACTS: &str = "SELECT pg_catalog.current_setting('server_version_num'), \
     pg_catalog.current_setting('server_version'), r.rolname, d.datname, \
     pg_catalog.pg_is_in_recovery(), r.rolsuper, r.oid = 10, r.rolreplication, r.rolconnlimit, \
     d.datconnlimit, \
     CASE WHEN pg_catalog.isfinite(r.rolvaliduntil) THEN \
       pg_catalog.floor(EXTRACT(epoch FROM r.rolvaliduntil - pg_catalog.now()) / 86400) END, \
     pg_catalog.has_database_privilege(d.oid, 'CREATE'), \
     pg_catalog.array_to_string(pg_catalog.current_schemas(false), E'\\n'), \
     pg_catalog.inet_server_addr() IS NOT NULL \
       AND NOT pg_catalog.inet_client_addr() <<= '127.0.0.0/8' \
       AND pg_catalog.inet_client_addr() <> '::1' \
       AND pg_catalog.inet_client_addr() <> pg_catalog.inet_server_addr() \
     FROM pg_catalog.pg_roles r, pg_catalog.pg_database d \
     WHERE r.rolname = current_user AND d.datname = pg_catalog.current_database()";

/// From here on names are the catalogues'.
const NAMES: &str = "SET search_path = ''";

/// See [`FACTS`].
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// As in `server_version_num`.
    pub version: u32,
    pub version_text: String,
    pub user: String,
    pub database: String,
    pub standby: bool,
    pub superuser: bool,
    /// The role that initdb made, which stays a superuser.
    pub first_superuser: bool,
    pub replication: bool,
    /// None: as many as the server takes.
    pub role_limit: Option<u32>,
    pub database_limit: Option<u32>,
    /// Until the password is no longer valid.
    pub days_left: Option<i64>,
    pub may_create: bool,
    pub schemas: Vec<String>,
    /// Another machine, as the server sees it.
    pub remote: bool,
}

/// Who is examined.
pub struct Patient<'a> {
    pub config: &'a Config,
    pub pool: &'a PoolConfig,
    pub facts: Facts,
    /// Of the connection; empty without.
    pub tls: String,
    session: Session,
}

impl<'a> Patient<'a> {
    /// Logs in as the pool's servers do.
    ///
    /// # Errors
    /// Where it was tried, and why it is not.
    pub async fn meet(
        dialer: &Dialer,
        config: &'a Config,
        pool: &'a PoolConfig,
    ) -> Result<Patient<'a>, (String, Unreached)> {
        let own = SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let kind = OpenKind::Replication { parameters: own.collect() };
        let place = pool.upstream.place();
        let mut session = dialer.start(pool, None, &kind).await.map_err(|error| {
            let message = match error.detail {
                Some(detail) => format!("{} ({detail})", error.message),
                None => error.message,
            };
            (place, Unreached { code: error.code, message, hint: error.hint })
        })?;
        let tls = session.tls();
        let facts = facts(&mut session).await.map_err(|why| {
            let message = format!("the server does not say what it is: {why}");
            (session.at.clone(), Unreached { code: "08000".to_owned(), message, hint: None })
        })?;
        Ok(Patient { config, pool, facts, tls, session })
    }

    pub async fn ask(&mut self, sql: &str) -> Result<Vec<Row>, String> {
        ask(&mut self.session, sql).await
    }

    /// How long each of so many takes.
    pub async fn time(&mut self, sql: &str, times: usize) -> Result<Vec<Duration>, String> {
        let mut taken = Vec::with_capacity(times);
        for _ in 0..times {
            let began = Instant::now();
            self.ask(sql).await?;
            taken.push(began.elapsed());
        }
        taken.sort_unstable();
        Ok(taken)
    }

    /// How far the server's clock is before this machine's, in seconds, and how sure that is.
    pub async fn clock(&mut self) -> Result<(f64, f64), String> {
        let seconds = |time: SystemTime| {
            time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
        };
        let before = seconds(SystemTime::now());
        let began = Instant::now();
        let mut rows = self.ask("SELECT EXTRACT(epoch FROM clock_timestamp())").await?;
        let way = began.elapsed().as_secs_f64() / 2.0;
        let theirs: Option<f64> = rows.first_mut().and_then(Row::number);
        let theirs = theirs.ok_or("the server does not say what time it is")?;
        Ok((theirs - (before + way), way))
    }

    /// "PostgreSQL 15.20 at 127.0.0.1:5432".
    pub fn server(&self) -> String {
        format!("{} (PostgreSQL {})", self.session.at, self.facts.version_text)
    }
}

async fn facts(session: &mut Session) -> Result<Facts, String> {
    let mut rows = ask(session, FACTS).await?;
    let row = rows.first_mut().ok_or("it has no such role or database")?;
    let limit = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
    let facts = Facts {
        version: row.number().unwrap_or_default(),
        version_text: row.text(),
        user: row.text(),
        database: row.text(),
        standby: row.bool(),
        superuser: row.bool(),
        first_superuser: row.bool(),
        replication: row.bool(),
        role_limit: limit(row.number()),
        database_limit: limit(row.number()),
        days_left: row.number(),
        may_create: row.bool(),
        schemas: row.text().lines().map(str::to_owned).collect(),
        remote: row.bool(),
    };
    ask(session, NAMES).await?;
    Ok(facts)
}

async fn ask(session: &mut Session, sql: &str) -> Result<Vec<Row>, String> {
    stream::ask(session, sql).await?.map_err(|error| error.to_string())
}
