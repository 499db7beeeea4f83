//! Asking a database for the secrets of its users (`auth.query`).
//!
//! ```text
//! look_up -> what is known -> queue of the (server, database, query_user) -> task with one connection
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
use tokio_postgres::types::Type;
use tokio_postgres::{config, Client, Row, Statement};
use wire::pg::auth::Secret;

use super::dial::{Deadline, DialError, Dialer};
use super::secrets::{Answer, Ask, Found, Secrets, Until, ENTRIES_MAX};
use super::transport::AsItIs;
use crate::config::{AuthQuery, ChannelBinding, Config, Host, PoolConfig, SessionAttrs, Upstream};

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
    /// `None` when there is no such user, or none that may log in now.
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

/// Which connection a look-up needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// All of them: lists that begin alike may lead to different servers.
    pub hosts: Vec<(Host, u16)>,
    pub database: String,
    pub user: String,
}

/// The connections for look-ups.
pub struct AuthQueries {
    dialer: Arc<Dialer>,
    /// A plain mutex: held for a look or an insertion, never across an await.
    queues: Mutex<HashMap<Key, mpsc::Sender<Query>>>,
    secrets: Secrets,
}

impl AuthQueries {
    pub fn new(dialer: Arc<Dialer>) -> AuthQueries {
        AuthQueries { dialer, queues: Mutex::default(), secrets: Secrets::default() }
    }

    /// Asks the database of `pool` for the secret of `user`; `again`: what is known does not count.
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
        let Some(query) = &config.auth.query else {
            return Err("no auth.query is configured".to_owned());
        };
        let upstream = query_place(config, query, pool);
        let limit = match pool.connect_timeout {
            Duration::ZERO => LIMIT_DEFAULT,
            limit => limit,
        };
        let key = Key {
            hosts: upstream.hosts(),
            database: upstream.database.clone(),
            user: upstream.user.clone(),
        };
        let name = (key, user);
        let found = |found: Found, kept| LookedUp { secret: found.now(), kept };
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
                asking.secrets.answered(&name, &answer, query.cache, Instant::now());
                answer.map(|answer| found(answer, false))
            }
        }
    }

    /// Runs the query, once more if the connection is lost meanwhile.
    async fn query(&self, (key, user): &(Key, String), task: &Task) -> Answer {
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

    fn enqueue(&self, key: &Key, task: &Task, query: Query) -> Result<(), String> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|_, queue| !queue.is_closed());
        if !queues.contains_key(key) && queues.len() >= CONNECTIONS_MAX {
            return Err(format!("look-ups run in {CONNECTIONS_MAX} databases already"));
        }
        let queue = queues.entry(key.clone()).or_insert_with(|| {
            let (queue, queries) = mpsc::channel(LOOK_UPS_MAX);
            tokio::spawn(task.clone().run(self.dialer.clone(), queries));
            queue
        });
        // Its task can't end meanwhile: it runs on this thread.
        queue
            .try_send(query)
            .map_err(|_| format!("more than {LOOK_UPS_MAX} users wait to be looked up"))
    }

    /// Forgets what was found, and closes every connection when its look-ups are answered (RELOAD).
    pub fn forget(&self) {
        self.secrets.forget();
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

const LOST: &str = "the connection for look-ups was lost";

fn late(limit: Duration) -> String {
    format!("the look-up took longer than {limit:?}")
}

/// Somebody looks up a user: when he goes without an answer, those who wait hear so.
struct Asking<'a> {
    secrets: &'a Secrets,
    name: &'a (Key, String),
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.secrets.given_up(self.name);
    }
}

/// Where the query of `pool`'s database runs, and as whom.
fn query_place(config: &Config, query: &AuthQuery, pool: &PoolConfig) -> Upstream {
    let mut upstream = pool.upstream.clone();
    if upstream.user != query.user {
        upstream.password = config.secret(&query.user).cloned();
        upstream.user = query.user.clone();
    }
    if let Some(database) = &query.database {
        upstream.database = database.clone();
    }
    upstream
}

#[derive(Clone)]
struct Task {
    upstream: Upstream,
    sql: String,
    limit: Duration,
}

impl Task {
    /// Answers until the queue is closed or idle, or the connection can't be made again.
    async fn run(self, dialer: Arc<Dialer>, mut queries: mpsc::Receiver<Query>) {
        let mut live: Option<Arc<(Client, Statement)>> = None;
        let room = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
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
                    Ok(rows) => found(&rows).map_err(Failure::Other),
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
    if statement.params().len() != 1 || columns.len() < 2 {
        return Err("auth.query must take one parameter, $1, and give user and secret".to_owned());
    }
    match columns.get(2).map(|column| column.type_().clone()) {
        None | Some(Type::TIMESTAMPTZ) => Ok(()),
        Some(other) => Err(format!("the third column of auth.query is {other}, not timestamptz")),
    }
}

fn found(rows: &[Row]) -> Answer {
    let nobody = Found { secret: None, until: None };
    let row = match rows {
        [] => return Ok(nobody),
        [row] => row,
        more => return Err(format!("auth.query gave {} rows, not one", more.len())),
    };
    let unreadable = |_| "auth.query gave columns that are not text".to_owned();
    let Some(stored) = row.try_get::<_, Option<&str>>(1).map_err(unreadable)? else {
        return Ok(nobody);
    };
    let until = match row.columns().len() {
        ..=2 => None,
        _ => row.try_get::<_, Option<Until>>(2).map_err(unreadable)?,
    };
    let secret = Secret::parse(stored).map_err(|error| error.to_string())?;
    Ok(Found { secret: Some(secret), until })
}
