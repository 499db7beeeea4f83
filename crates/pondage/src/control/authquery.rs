//! Asking a database for the secrets of its users (`auth.query`).
//!
//! ```text
//! look_up -> queue of the (server, database, query_user) -> task with one connection
//! ```
//!
//! The connection is the control plane's own. Nothing of a client ever reaches it but the name it
//! asks for, as a bound parameter: no start-up parameter (CVE-2025-12819), no pasted text. Its
//! search_path is pinned to pg_catalog. Look-ups are pipelined.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, NoTls, Row, Statement};
use wire::pg::auth::Secret;

use super::dial::{Deadline, DialError, Dialer};
use crate::config::{Config, Host, PoolConfig, Upstream};

/// Look-ups that may wait for one connection; one more is refused.
pub const LOOK_UPS_MAX: usize = 8192;

/// Connections for look-ups at one time.
pub const CONNECTIONS_MAX: usize = 64;

/// A connection that nobody has used for so long is closed.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// What a look-up takes at most when connect_timeout has no limit.
const LIMIT_DEFAULT: Duration = Duration::from_secs(15);

/// A user's secret; `None` when there is no such user, or none that may log in now.
pub type Answer = Result<Option<Secret>, String>;

struct Ask {
    user: String,
    reply: oneshot::Sender<Answer>,
}

/// Which connection a look-up needs.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// All of them: lists that begin alike may lead to different servers.
    hosts: Vec<(Host, u16)>,
    database: String,
    user: String,
}

/// The connections for look-ups.
pub struct AuthQueries {
    dialer: Arc<Dialer>,
    /// A plain mutex: held for a look or an insertion, never across an await.
    queues: Mutex<HashMap<Key, mpsc::Sender<Ask>>>,
}

impl AuthQueries {
    pub fn new(dialer: Arc<Dialer>) -> AuthQueries {
        AuthQueries { dialer, queues: Mutex::default() }
    }

    /// Asks the database of `pool` for the secret of `user`.
    ///
    /// # Errors
    /// A line that a client may see: it names no address. The log has the whole story.
    pub async fn look_up(&self, config: &Config, pool: &PoolConfig, user: String) -> Answer {
        let Some((upstream, sql)) = query_place(config, pool) else {
            return Err("no auth.query is configured".to_owned());
        };
        let limit = match pool.connect_timeout {
            Duration::ZERO => LIMIT_DEFAULT,
            limit => limit,
        };
        let (reply, answer) = oneshot::channel();
        self.enqueue(upstream, sql, limit, Ask { user, reply })?;
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err("the connection for look-ups was lost".to_owned()),
            Err(_) => Err(format!("the look-up took longer than {limit:?}")),
        }
    }

    fn enqueue(
        &self,
        upstream: Upstream,
        sql: String,
        limit: Duration,
        ask: Ask,
    ) -> Result<(), String> {
        let key = Key {
            hosts: upstream.hosts(),
            database: upstream.database.clone(),
            user: upstream.user.clone(),
        };
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|_, queue| !queue.is_closed());
        if !queues.contains_key(&key) && queues.len() >= CONNECTIONS_MAX {
            return Err(format!("look-ups run in {CONNECTIONS_MAX} databases already"));
        }
        let queue = queues.entry(key).or_insert_with(|| {
            let (queue, asks) = mpsc::channel(LOOK_UPS_MAX);
            tokio::spawn(Task { upstream, sql, limit }.run(self.dialer.clone(), asks));
            queue
        });
        // Its task can't end meanwhile: it runs on this thread.
        queue
            .try_send(ask)
            .map_err(|_| format!("more than {LOOK_UPS_MAX} users wait to be looked up"))
    }

    /// Closes every connection when its look-ups are answered (RELOAD).
    pub fn forget(&self) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Where the query of `pool`'s database runs, as whom, and the query.
fn query_place(config: &Config, pool: &PoolConfig) -> Option<(Upstream, String)> {
    let query = config.auth.query.as_ref()?;
    let mut upstream = pool.upstream.clone();
    if upstream.user != query.user {
        upstream.password = config.secret(&query.user).cloned();
        upstream.user = query.user.clone();
    }
    if let Some(database) = &query.database {
        upstream.database = database.clone();
    }
    Some((upstream, query.sql.clone()))
}

struct Task {
    upstream: Upstream,
    sql: String,
    limit: Duration,
}

impl Task {
    /// Answers until the queue is closed or idle, or the connection can't be made again.
    async fn run(self, dialer: Arc<Dialer>, mut asks: mpsc::Receiver<Ask>) {
        let mut live: Option<Arc<(Client, Statement)>> = None;
        while let Ok(Some(ask)) = tokio::time::timeout(IDLE_MAX, asks.recv()).await {
            let connected = match live.take().filter(|live| !live.0.is_closed()) {
                Some(live) => live,
                None => match self.connect(&dialer).await {
                    Ok(made) => Arc::new(made),
                    Err(why) => return refuse_all(ask, asks, &why),
                },
            };
            live = Some(connected.clone());
            tokio::spawn(async move {
                let (client, statement) = &*connected;
                let answer = match client.query(statement, &[&ask.user]).await {
                    Ok(rows) => answer_of(&rows),
                    Err(error) => {
                        let why = reason(&error);
                        tracing::warn!(event = "auth_query_failed", user = ask.user, error = why);
                        Err("the query failed".to_owned())
                    }
                };
                // Who asked may have given up.
                let _ = ask.reply.send(answer);
            });
        }
    }

    /// Any host of the database can answer.
    async fn connect(&self, dialer: &Dialer) -> Result<(Client, Statement), String> {
        let mut answer = Err("there is no host".to_owned());
        for place in dialer.turns.order(&self.upstream, Instant::now()) {
            let (upstream, sql) = (self.upstream.at(place), self.sql.clone());
            let task = Task { upstream, sql, limit: self.limit };
            answer = task.connect_here(dialer).await;
            if answer.is_ok() {
                break;
            }
        }
        answer
    }

    async fn connect_here(&self, dialer: &Dialer) -> Result<(Client, Statement), String> {
        let deadline = Deadline::after(self.limit);
        let connected = match dialer.shortcut(&self.upstream) {
            Some(socket) => {
                match self.log_in(dialer.dial_unix(&socket, deadline).await, deadline).await {
                    Ok(connected) => Ok(connected),
                    Err(failed) => {
                        if failed.refused {
                            dialer.refuse_shortcut(&self.upstream);
                        }
                        self.dial(dialer, deadline).await
                    }
                }
            }
            None => self.dial(dialer, deadline).await,
        };
        connected.map_err(|Failed { at, why, .. }| {
            let (db, user) = (&self.upstream.database, &self.upstream.user);
            tracing::warn!(event = "auth_query_failed", db, query_user = user, at, error = why);
            format!("no connection to the database: {why}")
        })
    }

    async fn dial(
        &self,
        dialer: &Dialer,
        deadline: Deadline,
    ) -> Result<(Client, Statement), Failed> {
        let dialed = match &self.upstream.host {
            Host::Tcp(host) => dialer.dial_tcp(&self.upstream, host, deadline).await,
            Host::Unix(directory) => {
                let socket = super::dial::socket_path(directory, self.upstream.port);
                dialer.dial_unix(&socket, deadline).await
            }
        };
        self.log_in(dialed, deadline).await
    }

    /// Logs in and prepares the query.
    async fn log_in(
        &self,
        dialed: Result<super::dial::Dialed, DialError>,
        deadline: Deadline,
    ) -> Result<(Client, Statement), Failed> {
        let failed = |at: String, why: String| Failed { at, why, refused: false };
        let dialed = dialed.map_err(|error| failed(error.at, error.why))?;
        let mut config = tokio_postgres::Config::new();
        config
            .user(&self.upstream.user)
            .dbname(&self.upstream.database)
            .application_name("pondage auth_query")
            .options("-c search_path=pg_catalog")
            // The connection is secured already, as the database's tls mode says.
            .ssl_mode(tokio_postgres::config::SslMode::Disable);
        match &self.upstream.password {
            Some(Secret::Plain(password)) => drop(config.password(password)),
            Some(_) => {
                let why = "the query user's own password has to be known, not its hash";
                return Err(failed(dialed.at, why.to_owned()));
            }
            None => {}
        }
        let work = async {
            let (client, connection) = config.connect_raw(dialed.transport, NoTls).await?;
            // It ends with its client.
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    let error = reason(&error);
                    tracing::debug!(event = "auth_query_closed", error);
                }
            });
            let statement = client.prepare(&self.sql).await?;
            Ok::<_, tokio_postgres::Error>((client, statement))
        };
        match deadline.run(work).await {
            Ok(Ok((client, statement))) => match check(&statement) {
                Ok(()) => Ok((client, statement)),
                Err(why) => Err(failed(dialed.at, why)),
            },
            Ok(Err(error)) => {
                let refused = error.code().is_some_and(|code| code.code().starts_with("28"));
                Err(Failed { at: dialed.at, why: reason(&error), refused })
            }
            Err(late) => Err(failed(dialed.at, late.to_string())),
        }
    }
}

/// Why there is no connection.
struct Failed {
    at: String,
    why: String,
    /// The server did not let the query user in.
    refused: bool,
}

/// tokio-postgres's own words are "db error"; the server's are in its source.
fn reason(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} {}: {}", said.severity(), said.code().code(), said.message()),
        None => error.to_string(),
    }
}

fn refuse_all(first: Ask, mut asks: mpsc::Receiver<Ask>, why: &str) {
    asks.close();
    let _ = first.reply.send(Err(why.to_owned()));
    while let Ok(ask) = asks.try_recv() {
        let _ = ask.reply.send(Err(why.to_owned()));
    }
}

fn check(statement: &Statement) -> Result<(), String> {
    let columns = statement.columns();
    if statement.params().len() != 1 || columns.len() < 2 {
        return Err("auth.query must take one parameter, $1, and give user and secret".to_owned());
    }
    match columns.get(2).map(|column| column.type_().clone()) {
        None | Some(Type::TIMESTAMPTZ) => Ok(()),
        Some(other) => Err(format!("the third column of auth.query is {other}, not timestamptz")),
    }
}

fn answer_of(rows: &[Row]) -> Answer {
    let row = match rows {
        [] => return Ok(None),
        [row] => row,
        more => return Err(format!("auth.query gave {} rows, not one", more.len())),
    };
    let unreadable = |_| "auth.query gave columns that are not text".to_owned();
    let Some(stored) = row.try_get::<_, Option<&str>>(1).map_err(unreadable)? else {
        return Ok(None);
    };
    if row.columns().len() > 2 {
        let until = row.try_get::<_, Option<Until>>(2).map_err(unreadable)?;
        if until.is_some_and(|until| until.is_past(SystemTime::now())) {
            return Ok(None);
        }
    }
    Secret::parse(stored).map(Some).map_err(|error| error.to_string())
}

/// A timestamptz: microseconds since 2000-01-01 UTC; the largest and the smallest are infinite.
///
/// Source: `src/include/datatype/timestamp.h`.
#[derive(Clone, Copy)]
struct Until(i64);

/// Microseconds from 1970 to 2000.
const POSTGRES_EPOCH_MICROS: i128 = 946_684_800_000_000;

impl Until {
    /// Source: `get_role_password` in `src/backend/libpq/crypt.c`.
    fn is_past(self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        self.0 != i64::MAX
            && i128::from(self.0) + POSTGRES_EPOCH_MICROS < i128::try_from(now).unwrap_or(i128::MAX)
    }
}

impl FromSql<'_> for Until {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Until, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Until(i64::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infinite_date_never_passes_and_a_past_one_has() {
        let now = SystemTime::now();
        assert!(!Until(i64::MAX).is_past(now));
        assert!(Until(i64::MIN).is_past(now));
        assert!(Until(0).is_past(now));
        assert!(!Until(0).is_past(SystemTime::UNIX_EPOCH));
    }
}
