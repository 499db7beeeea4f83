//! The console: PgBouncer's administration commands on the PostgreSQL door, as the databases
//! `pondage`, `pgbouncer` and `admin`.
//!
//! Workers log its clients in and hand over whole messages; everything else happens here, on the
//! control plane. Each client has a task that takes its messages in order, so that a PAUSE that
//! waits keeps nobody else.
//!
//! ```text
//! ToControl::Console -> Console -> task: Session (protocol) <-> Operator (commands) <-> Process
//!                                   `-> ToWorker::ConsoleReply
//! ```

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use backend::login::Credential;
use cache::mirror::definition::Definition;
use cache::mirror::held::MirrorInfo;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use wire::pg::{header, sqlstate};

use crate::config::{Code, Config, MirrorDefinition, PoolConfig, Report};
use crate::control::caches::Registry;
use crate::control::messages::{ConsoleUser, Ref, Shutdown, ToWorker};
use crate::control::mirrors::{self, Unfit};
use crate::control::{spots, tally};
use crate::export::Counts;
use crate::logging::Happening;
use crate::procedures::{Procedure, Procedures};
use crate::route::Cacheable;
use crate::stream::Standing;
use crate::worker::redis::Snapshot;

mod advice;
pub mod blockers;
pub mod cache_commands;
pub mod caching;
pub mod channels;
pub mod columns;
pub mod command;
mod events;
pub mod hosts;
mod keys;
pub mod mirroring;
pub mod operator;
pub mod procedure_commands;
pub mod procedures;
pub mod queries;
pub mod redis;
pub mod reference;
pub mod session;
mod settings;
pub mod show;
pub mod shows;
pub mod stats;
pub mod streams;
pub mod table;
mod tokens;
pub mod verbs;
pub mod view;

/// The names of a SHOW's columns.
#[cfg(test)]
pub fn columns_of(command: &str) -> Vec<&'static str> {
    let word = command.strip_prefix("SHOW ").expect("a SHOW");
    let show = command::Show::ALL.iter().find(|show| show.word() == word).expect("one of ours");
    let columns = columns::of_show(*show).expect("a table");
    columns.iter().map(|column| column.name).collect()
}

use operator::Operator;
use session::{Answer, Session};

/// Console clients at one time.
pub const SESSIONS_MAX: usize = 128;
/// Longest message of a console client, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// What one client may have sent ahead while a command runs, in messages and in bytes.
const AHEAD_MESSAGES_MAX: usize = 1_024;
const AHEAD_BYTES_MAX: usize = 256 << 10;

/// A future without a name.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why an option keeps its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetRefused {
    /// It may have another one from the next start only.
    Restart,
    /// There is no such option here; in one or more lines, as the next.
    Unknown(String),
    /// The value is none, or does not fit the others.
    Unfit(String),
}

impl From<Report> for SetRefused {
    fn from(report: Report) -> SetRefused {
        let unknown = report.problems.iter().any(|problem| problem.code == Code::UnknownKey);
        match unknown {
            true => SetRefused::Unknown(report.to_string()),
            false => SetRefused::Unfit(report.to_string()),
        }
    }
}

/// The process as the console and the HTTP door see it; the control plane is one.
pub trait Process: Send + Sync + 'static {
    fn config(&self) -> Arc<Config>;

    /// Workers are numbered from 0.
    fn workers(&self) -> u8;

    /// Queues a message; false when the worker is gone.
    fn send(&self, worker: u8, message: ToWorker) -> bool;

    /// Reads the configuration again and makes it everybody's. `Ok` lists what needs a restart.
    ///
    /// # Errors
    /// Why the old configuration stays, in one or more lines.
    fn reload(&self) -> Pending<'_, Result<Vec<String>, String>>;

    /// Puts one option into force until the next RELOAD. `Ok` lists what is to be said about it.
    ///
    /// # Errors
    /// Why the old configuration stays.
    fn set<'a>(
        &'a self,
        name: &'a str,
        value: &'a str,
    ) -> Pending<'a, Result<Vec<String>, SetRefused>>;

    /// Begins to shut down.
    fn shutdown(&self, how: Shutdown);

    fn condition(&self) -> Condition;

    /// The engine of the Redis door, if there is one.
    fn redis(&self, clients: bool) -> Option<Snapshot>;

    /// Statements that are named to be cached.
    fn caches(&self) -> &Registry;

    /// The results that are kept, of all databases.
    fn kept(&self) -> cache::store::Standing;

    /// The streams of changes, one for each database that is followed.
    fn streams(&self) -> Vec<Standing>;

    /// The hosts of databases that have several.
    fn hosts(&self) -> Vec<spots::Standing>;

    /// What has become of statements that were sampled, where they are.
    fn traces(&self) -> Option<Counts>;

    /// What has been logged lately, the last one first.
    fn events(&self) -> Vec<Happening>;

    /// What has become of the look-ups of users, where there are any.
    fn look_ups(&self) -> Vec<tally::Standing>;

    /// Tables that somebody wants mirrored.
    fn pins(&self) -> &mirrors::Registry;

    /// The mirrors of a database, those that are being made included.
    fn mirrors(&self, database: &str) -> Vec<MirrorInfo>;

    /// What all of them take.
    fn mirror_memory(&self) -> MirrorMemory;

    /// What the catalogues say of a table that is to be mirrored, or why it can't be.
    ///
    /// # Errors
    /// Why they could not be asked.
    fn judge_mirror<'a>(
        &'a self,
        database: &'a str,
        wanted: &'a MirrorDefinition,
    ) -> Pending<'a, Result<Result<Definition, Unfit>, String>>;

    /// What parser and catalogues say about caching a statement, as this pool's user sees the
    /// database: what its answers depend on, or why it can't be.
    ///
    /// # Errors
    /// Why they could not be asked.
    fn judge_cache<'a>(
        &'a self,
        config: &'a PoolConfig,
        proven: Option<Credential>,
        text: &'a str,
    ) -> Pending<'a, Result<Result<Arc<Cacheable>, String>, String>>;

    /// Whether this is the password of a user whose secret is known here; false as well if none is.
    fn check_password<'a>(&'a self, user: &'a str, password: &'a str) -> Pending<'a, bool>;

    /// Procedures that somebody has called, or asked about.
    fn procedures(&self) -> &Procedures;

    /// Finds out what there is to know of those with this name, as this pool's user sees the
    /// database; without a schema, as its search_path finds them. Empty: there is none.
    ///
    /// # Errors
    /// Why the catalogues could not be asked.
    fn examine_procedure<'a>(
        &'a self,
        config: &'a PoolConfig,
        proven: Option<Credential>,
        schema: Option<&'a str>,
        name: &'a str,
    ) -> Pending<'a, Result<Vec<Arc<Procedure>>, String>>;
}

/// Bytes of mirrors, over all databases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MirrorMemory {
    pub used: u64,
    pub limit: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The PostgreSQL doors take clients.
    pub listening: bool,
    pub stopping: bool,
}

/// Why a command was not done; becomes an ErrorResponse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// SQLSTATE.
    pub code: &'static str,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
}

impl Failure {
    pub fn new(code: &'static str, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), detail: None, hint: None }
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Failure {
        self.detail = Some(detail.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}

/// Every console client. Lives inside a tokio runtime.
pub struct Console {
    operator: Arc<Operator>,
    clients: HashMap<Ref, Client>,
    sampling: AbortHandle,
}

struct Client {
    inbox: mpsc::Sender<Vec<u8>>,
    /// Bytes in `inbox`.
    ahead: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.sampling.abort();
    }
}

impl Console {
    /// Starts the sampling for averages, too.
    pub fn new(operator: Arc<Operator>) -> Console {
        let sampling = tokio::spawn(operator.clone().sample_for_ever()).abort_handle();
        Console { operator, clients: HashMap::new(), sampling }
    }

    /// Takes a whole message of a client that has logged in.
    pub fn message(&mut self, client: Ref, who: &Arc<ConsoleUser>, message: Vec<u8>) {
        if message.len() > MESSAGE_BYTES_MAX {
            let reason = format!("a message longer than {MESSAGE_BYTES_MAX} bytes");
            return self.refuse(client, sqlstate::PROGRAM_LIMIT_EXCEEDED, &reason);
        }
        if !self.clients.contains_key(&client) {
            self.clients.retain(|_, client| !client.inbox.is_closed());
            if self.clients.len() == SESSIONS_MAX {
                let reason = format!("more than {SESSIONS_MAX} console clients");
                return self.refuse(client, sqlstate::TOO_MANY_CONNECTIONS, &reason);
            }
            let started = start(self.operator.clone(), client, who.clone());
            self.clients.insert(client, started);
        }
        let Some(entry) = self.clients.get(&client) else { return };
        let bytes = message.len();
        let ahead = entry.ahead.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let full = ahead > AHEAD_BYTES_MAX
            || matches!(entry.inbox.try_send(message), Err(mpsc::error::TrySendError::Full(_)));
        if full {
            let reason = "too many commands sent while one runs";
            self.refuse(client, sqlstate::PROGRAM_LIMIT_EXCEEDED, reason);
        }
    }

    /// Forgets a client; what it waits for is waited for no longer. SUSPEND ends with the last
    /// client, as in PgBouncer: nobody is left who would say RESUME.
    pub fn gone(&mut self, client: Ref) {
        if self.clients.remove(&client).is_some() && self.clients.is_empty() {
            let operator = self.operator.clone();
            tokio::spawn(async move {
                operator.end_suspension("the last console client left while suspended").await;
            });
        }
    }

    /// Answers a command about caches, of a client of a pool: all of its messages at once.
    pub fn command(
        &self,
        client: Ref,
        config: &PoolConfig,
        user: String,
        proven: Option<Credential>,
        messages: Vec<u8>,
    ) {
        let operator = self.operator.clone();
        let now = operator.process().config();
        let database = config.database.clone();
        let admin = now.is_admin(&user);
        let allowed = admin || now.is_stats(&user);
        let who = ConsoleUser { user, database, admin, proven };
        tokio::spawn(async move {
            let bytes = unit(&operator, &who, allowed, &messages).await;
            operator.process().send(client.worker, ToWorker::CacheReply { client, bytes });
        });
    }

    fn refuse(&mut self, client: Ref, code: &'static str, reason: &str) {
        self.clients.remove(&client);
        let mut session = Session::new(self.operator.process().config().listen.errors);
        session.fatal(code, reason);
        reply(&self.operator, client, &mut session);
    }
}

fn start(operator: Arc<Operator>, client: Ref, who: Arc<ConsoleUser>) -> Client {
    let (inbox, messages) = mpsc::channel(AHEAD_MESSAGES_MAX);
    let ahead = Arc::new(AtomicUsize::new(0));
    let task = tokio::spawn(serve(operator, client, who, messages, ahead.clone())).abort_handle();
    Client { inbox, ahead, task }
}

/// One client, until it is gone or closed.
async fn serve(
    operator: Arc<Operator>,
    client: Ref,
    who: Arc<ConsoleUser>,
    mut messages: mpsc::Receiver<Vec<u8>>,
    ahead: Arc<AtomicUsize>,
) {
    let mut session = Session::new(operator.process().config().listen.errors);
    while let Some(message) = messages.recv().await {
        ahead.fetch_sub(message.len(), Ordering::Relaxed);
        session.take(&message);
        while let Some(request) = session.request() {
            let answer = operator.run(&who, request).await;
            session.answer(answer);
            reply(&operator, client, &mut session);
        }
        if !reply(&operator, client, &mut session) {
            return;
        }
    }
}

/// The answer to messages that end with a Query or a Sync.
async fn unit(operator: &Operator, who: &ConsoleUser, allowed: bool, messages: &[u8]) -> Vec<u8> {
    let mut session = Session::new(operator.process().config().listen.errors);
    let mut bytes = Vec::new();
    let mut rest = messages;
    while let Ok(Some(head)) = header(rest) {
        let Some((message, after)) = rest.split_at_checked(head.total) else { break };
        session.take(message);
        while let Some(request) = session.request() {
            session.answer(match allowed {
                true => operator.run(who, request).await,
                false => Answer { notices: Vec::new(), result: Err(not_allowed()) },
            });
        }
        bytes.extend(session.output().bytes);
        rest = after;
    }
    bytes
}

fn not_allowed() -> Failure {
    Failure::new(sqlstate::INSUFFICIENT_PRIVILEGE, "commands about caches are an administrator's")
        .hint("auth.admin_users lists who may use them, auth.stats_users who may SHOW.")
}

/// Sends what a session has to say; false when that was its last word.
fn reply(operator: &Operator, client: Ref, session: &mut Session) -> bool {
    let output = session.output();
    let close = output.close;
    if close || !output.bytes.is_empty() {
        let message = ToWorker::ConsoleReply { client, bytes: output.bytes, close };
        operator.process().send(client.worker, message);
    }
    !close
}

#[cfg(test)]
mod driver_tests;
#[cfg(test)]
pub mod fixture;
#[cfg(test)]
mod tests;
