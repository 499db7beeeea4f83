//! Asking a database for the secrets of its users (`auth.query`).
//!
//! ```text
//! look_up -> what is known -> queue of the (server, database, query_user, query) -> task with one
//!                                                                                    connection
//! ```
//!
//! The connection is the control plane's own. Nothing of a client ever reaches it but the name it
//! asks for, as a bound parameter: no start-up parameter (CVE-2025-12819), no pasted text. Its
//! search_path is pinned to pg_catalog. Look-ups are pipelined; those of one user at one moment are
//! one query, whose answer is kept for as long as the configuration says ([`super::secrets`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, Semaphore};
use tokio::time::Instant;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{config, Client, Row, Statement};
use wire::pg::auth::Secret;

use super::dial::{Deadline, DialError, Dialer};
use super::secrets::{Answer, Ask, Found, Name, Secrets, Until, ENTRIES_MAX};
use super::tally::Tallies;
use super::transport::AsItIs;
use crate::config::{
    is_console, AuthQuery, ChannelBinding, Config, Host, PoolConfig, ServerTls, SessionAttrs,
    Upstream,
};

/// Look-ups that may wait for one connection; one more is refused.
pub const LOOK_UPS_MAX: usize = 8192;

/// Queries in flight on one connection; more wait.
const IN_FLIGHT_MAX: usize = 64;

/// Connections for look-ups at one time.
pub const CONNECTIONS_MAX: usize = 64;

/// A connection that nobody has used for so long is closed.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// What a look-up takes at most when connect_timeout has no limit.
const LIMIT_DEFAULT: Duration = Duration::from_secs(15);

/// What there is to say of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookedUp {
    /// There is such a user, and it may log in now.
    pub known: bool,
    /// `None` when there is no such user, or one whom no password proves.
    pub secret: Option<Secret>,
    /// It was found, or asked for, a while ago.
    pub kept: bool,
}

struct Query {
    user: String,
    reply: oneshot::Sender<Result<Found, Failure>>,
}

/// Why a query has no answer.
#[derive(Debug)]
enum Failure {
    /// The connection was lost meanwhile: the query does no harm and may be sent again.
    Lost,
    Other(String),
}

/// Which connection a look-up needs, and how long its answer is kept: databases where all of it is
/// the same share both.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// All of them: lists that begin alike may lead to different servers.
    pub hosts: Vec<(Host, u16)>,
    pub database: String,
    pub user: String,
    /// Who asks for a verified server is not told what another's connection has heard.
    pub tls: ServerTls,
    pub sql: Arc<str>,
    pub cache: Duration,
}

/// The way to a connection for look-ups.
struct Line {
    queries: mpsc::Sender<Query>,
    /// What is left of [`IN_FLIGHT_MAX`].
    room: Arc<Semaphore>,
    used: Instant,
}

impl Line {
    fn is_idle(&self) -> bool {
        self.queries.capacity() == LOOK_UPS_MAX && self.room.available_permits() == IN_FLIGHT_MAX
    }
}

/// The connections for look-ups.
pub struct AuthQueries {
    dialer: Arc<Dialer>,
    /// A plain mutex: held for a look or an insertion, never across an await.
    lines: Mutex<HashMap<Arc<Key>, Line>>,
    secrets: Secrets,
    pub tallies: Tallies,
}

impl AuthQueries {
    pub fn new(dialer: Arc<Dialer>) -> AuthQueries {
        let (lines, secrets) = (Mutex::default(), Secrets::default());
        AuthQueries { dialer, lines, secrets, tallies: Tallies::default() }
    }

    /// Asks the database of `pool`, or the one that it names for that, for the secret of `user`;
    /// `again`: what is known does not count.
    ///
    /// # Errors
    /// A line that a client may see: it names no address. The log has the whole story.
    pub async fn look_up(
        &self,
        config: &Config,
        pool: &PoolConfig,
        user: String,
        again: bool,
    ) -> Result<LookedUp, String> {
        let answer = self.answer(config, pool, user, again).await;
        self.tallies.count(config, &pool.database, &answer);
        answer
    }

    async fn answer(
        &self,
        config: &Config,
        pool: &PoolConfig,
        user: String,
        again: bool,
    ) -> Result<LookedUp, String> {
        // A reload may have taken it away since.
        let Some(query) = config.auth_query(&pool.database) else {
            return Err("no auth.query is configured".to_owned());
        };
        let upstream = query_place(config, query, pool)?;
        let limit = match pool.connect_timeout {
            Duration::ZERO => LIMIT_DEFAULT,
            limit => limit,
        };
        let key = Key {
            hosts: upstream.hosts(),
            database: upstream.database.clone(),
            user: upstream.user.clone(),
            tls: upstream.tls.clone(),
            sql: query.sql.clone(),
            cache: query.cache,
        };
        let name = (Arc::new(key), user);
        let found = |found: Found, kept| {
            let Found { known, secret, .. } = found.now();
            LookedUp { known, secret, kept }
        };
        match self.secrets.ask(&name, again, Instant::now()) {
            Ask::Known(known) => Ok(found(known, true)),
            Ask::Full => Err(format!("more than {ENTRIES_MAX} users wait to be looked up")),
            Ask::Wait(answer) => match tokio::time::timeout(limit, answer).await {
                Ok(Ok(answer)) => answer.map(|answer| found(answer, true)),
                Ok(Err(_)) => Err(LOST.to_owned()),
                Err(_) => Err(late(limit)),
            },
            Ask::LookUp => {
                let asking = Asking { secrets: &self.secrets, name: &name };
                let task = Task { upstream, sql: query.sql.clone(), limit };
                let answer = match tokio::time::timeout(limit, self.query(&name, &task)).await {
                    Ok(answer) => answer,
                    Err(_) => Err(late(limit)),
                };
                asking.secrets.answered(&name, &answer, name.0.cache, Instant::now());
                answer.map(|answer| found(answer, false))
            }
        }
    }

    /// Runs the query, once more if the connection is lost meanwhile.
    async fn query(&self, (key, user): &Name, task: &Task) -> Answer {
        for _ in 0..2 {
            let (reply, answer) = oneshot::channel();
            self.enqueue(key, task, Query { user: user.clone(), reply })?;
            match answer.await {
                Ok(Ok(found)) => return Ok(found),
                Ok(Err(Failure::Other(why))) => return Err(why),
                Ok(Err(Failure::Lost)) | Err(_) => {}
            }
        }
        Err(LOST.to_owned())
    }

    fn enqueue(&self, key: &Arc<Key>, task: &Task, query: Query) -> Result<(), String> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|_, line| !line.queries.is_closed());
        if !lines.contains_key(key) && lines.len() >= CONNECTIONS_MAX {
            // It ends when nobody sends to it any more.
            let idle = lines.iter().filter(|(_, line)| line.is_idle());
            let oldest = idle.min_by_key(|(_, line)| line.used).map(|(key, _)| key.clone());
            match oldest {
                Some(oldest) => drop(lines.remove(&oldest)),
                None => return Err(format!("look-ups run in {CONNECTIONS_MAX} databases already")),
            }
        }
        let line = lines.entry(key.clone()).or_insert_with(|| {
            let (queries, receiver) = mpsc::channel(LOOK_UPS_MAX);
            let room = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
            tokio::spawn(task.clone().run(self.dialer.clone(), receiver, room.clone()));
            Line { queries, room, used: Instant::now() }
        });
        line.used = Instant::now();
        // Its task can't end meanwhile: it runs on this thread.
        line.queries
            .try_send(query)
            .map_err(|_| format!("more than {LOOK_UPS_MAX} users wait to be looked up"))
    }

    /// Forgets what was found, and closes every connection when its look-ups are answered (RELOAD).
    pub fn forget(&self) {
        self.secrets.forget();
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

const LOST: &str = "the connection for look-ups was lost";

fn late(limit: Duration) -> String {
    format!("the look-up took longer than {limit:?}")
}

/// Somebody looks up a user: when he goes without an answer, those who wait hear so.
struct Asking<'a> {
    secrets: &'a Secrets,
    name: &'a Name,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.secrets.given_up(self.name);
    }
}

/// Where the query of `pool`'s database runs, and as whom.
fn query_place(config: &Config, query: &AuthQuery, pool: &PoolConfig) -> Result<Upstream, String> {
    let mut upstream = match &query.database {
        None if is_console(&pool.database) => return Err(NO_PLACE.to_owned()),
        None => pool.upstream.clone(),
        Some(name) => match config.pool(name, &query.user) {
            Ok(found) if found.disabled => {
                return Err(format!("authentication database \"{name}\" is disabled"))
            }
            Ok(found) => found.upstream.clone(),
            // PgBouncer wants it configured; the console has no server of its own.
            Err(_) if config.is_ini() || is_console(&pool.database) => {
                return Err(format!("authentication database \"{name}\" is not configured"))
            }
            Err(_) => Upstream { database: name.clone(), ..pool.upstream.clone() },
        },
    };
    if upstream.user != query.user {
        upstream.password = config.secret(&query.user).cloned();
        upstream.user = query.user.clone();
    }
    Ok(upstream)
}

const NO_PLACE: &str = "users of the console are looked up with auth.query_database alone";

#[derive(Clone)]
struct Task {
    upstream: Upstream,
    sql: Arc<str>,
    limit: Duration,
}

impl Task {
    /// Answers until the queue is closed or idle, or the connection can't be made again.
    async fn run(
        self,
        dialer: Arc<Dialer>,
        mut queries: mpsc::Receiver<Query>,
        room: Arc<Semaphore>,
    ) {
        let mut live: Option<Arc<(Client, Statement)>> = None;
        while let Ok(Some(query)) = tokio::time::timeout(IDLE_MAX, queries.recv()).await {
            let connected = match live.take().filter(|live| !live.0.is_closed()) {
                Some(live) => live,
                None => match self.connect(&dialer).await {
                    Ok(made) => Arc::new(made),
                    Err(why) => return refuse_all(query, queries, &why),
                },
            };
            live = Some(connected.clone());
            // The semaphore is never closed.
            let permit = room.clone().acquire_owned().await;
            tokio::spawn(async move {
                let _permit = permit;
                let (client, statement) = &*connected;
                let answer = match client.query(statement, &[&query.user]).await {
                    Ok(rows) => found(&rows, &query.user).map_err(|why| {
                        tracing::warn!(event = "auth_query_failed", user = query.user, error = why);
                        Failure::Other(why)
                    }),
                    Err(error) => {
                        let why = reason(&error);
                        tracing::warn!(event = "auth_query_failed", user = query.user, error = why);
                        Err(match is_lost(&error) {
                            true => Failure::Lost,
                            false => Failure::Other("the query failed".to_owned()),
                        })
                    }
                };
                // Who asked may have given up.
                let _ = query.reply.send(answer);
            });
        }
    }

    /// Any host of the database can answer.
    async fn connect(&self, dialer: &Dialer) -> Result<(Client, Statement), String> {
        let mut answer = Err("there is no host".to_owned());
        for spot in dialer.spots.order(&self.upstream, SessionAttrs::Any, Instant::now()) {
            let (upstream, sql) = (self.upstream.at(spot.place), self.sql.clone());
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
        let mut settings = tokio_postgres::Config::new();
        settings
            .user(&self.upstream.user)
            .dbname(&self.upstream.database)
            .application_name("pondage auth_query")
            .options("-c search_path=pg_catalog")
            // The connection is secured already, as the database's tls mode says: there is nothing
            // to be asked for first.
            .ssl_mode(config::SslMode::Require)
            .ssl_negotiation(config::SslNegotiation::Direct)
            .channel_binding(match self.upstream.tls.binding {
                ChannelBinding::Disable => config::ChannelBinding::Disable,
                ChannelBinding::Prefer => config::ChannelBinding::Prefer,
                ChannelBinding::Require => config::ChannelBinding::Require,
            });
        match &self.upstream.password {
            Some(Secret::Plain(password)) => drop(settings.password(password)),
            Some(_) => {
                let why = "the query user's own password has to be known, not its hash";
                return Err(failed(dialed.at, why.to_owned()));
            }
            None => {}
        }
        let work = async {
            let (client, connection) = settings.connect_raw(dialed.transport, AsItIs).await?;
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

/// tokio-postgres's own words are "db error"; the reason is in its source.
fn reason(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} {}: {}", said.severity(), said.code().code(), said.message()),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

/// The connection has ended, and with it the query.
fn is_lost(error: &tokio_postgres::Error) -> bool {
    // A server that ends it says so first: the class of operators' interventions.
    let ended = |code: &str| code.starts_with("57P");
    error.is_closed() || error.code().is_some_and(|code| ended(code.code()))
}

fn refuse_all(first: Query, mut queries: mpsc::Receiver<Query>, why: &str) {
    queries.close();
    let _ = first.reply.send(Err(Failure::Other(why.to_owned())));
    while let Ok(query) = queries.try_recv() {
        let _ = query.reply.send(Err(Failure::Other(why.to_owned())));
    }
}

fn check(statement: &Statement) -> Result<(), String> {
    let columns = statement.columns();
    let params = statement.params().len();
    if params != 1 {
        return Err(format!("auth.query must take one parameter, $1, the user; it takes {params}"));
    }
    if !(2..=3).contains(&columns.len()) {
        let count = columns.len();
        return Err(format!(
            "auth.query must give two columns, user and secret, or a third, until when the secret \
             is valid; it gives {count}"
        ));
    }
    for column in &columns[..2] {
        let (name, kind) = (column.name(), column.type_());
        if !<&str as FromSql>::accepts(kind) && *kind != Type::UNKNOWN {
            return Err(format!("the column \"{name}\" of auth.query is {kind}, not text"));
        }
    }
    match columns.get(2).map(|column| column.type_().clone()) {
        None | Some(Type::TIMESTAMPTZ) => Ok(()),
        Some(other) => Err(format!("the third column of auth.query is {other}, not timestamptz")),
    }
}

/// What the rows say of `user`. A secret that is another's is none of his.
fn found(rows: &[Row], user: &str) -> Answer {
    let nobody = Found::nobody();
    let row = match rows {
        [] => return Ok(nobody),
        [row] => row,
        more => return Err(format!("auth.query gave {} rows, not one", more.len())),
    };
    let unreadable = |_| "auth.query gave columns that are not text".to_owned();
    match row.try_get::<_, Option<&str>>(0).map_err(unreadable)? {
        None => return Err("auth.query gave a row whose user is NULL".to_owned()),
        Some(other) if other != user => {
            tracing::warn!(event = "auth_query_other", user, other, "it gave another user's row");
            return Ok(nobody);
        }
        Some(_) => {}
    }
    // A role without a password may come by a certificate.
    let stored = row.try_get::<_, Option<&str>>(1).map_err(unreadable)?;
    let until = match row.columns().len() {
        ..=2 => None,
        _ => row.try_get::<_, Option<Until>>(2).map_err(unreadable)?,
    };
    let secret = stored.map(Secret::parse).transpose().map_err(|error| error.to_string())?;
    Ok(Found { known: true, secret, until })
}
