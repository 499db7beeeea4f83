//! The control plane: slow and rare work, on one thread of its own.
//!
//! ```text
//! worker --ToControl--> Control --task each--> dial, TLS, log-in, look-up, PBKDF2, cancel
//!    ^-----ToWorker--------'                        '--> the same worker
//! signals, console, HTTP --> Process --> reload, shut down: to every worker
//! ```
//!
//! Each message becomes a task, so nothing that waits keeps anything else. How many tasks there
//! are follows from who may ask (see [`crate::worker::ControlSender`]); what a task may use is
//! bounded where it is used: [`dial::OPENING_MAX`], [`HANDSHAKES_MAX`], [`CANCELS_MAX`],
//! [`authquery::LOOK_UPS_MAX`], [`judge::QUESTIONS_MAX`], [`bodies::CHILDREN_MAX`].

pub mod authquery;
pub mod bodies;
pub mod caches;
pub mod cancel;
pub mod client_tls;
pub mod dial;
mod end_point;
mod exporting;
mod first_look;
mod following;
mod hosts;
pub mod judge;
pub mod keys;
mod listening;
pub mod messages;
mod mirroring;
pub mod mirrors;
pub mod open;
pub mod peering;
mod peers;
pub mod pem;
mod pinning;
pub mod predecessors;
mod probing;
mod process;
mod retiring;
pub mod secrets;
pub mod signals;
pub mod spots;
mod succeeding;
pub mod tally;
pub mod tls;
pub mod transport;
pub mod verify;
mod waits;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use backend::moment::Moment;
use tokio::sync::{mpsc, watch, Semaphore};
use wire::pg::auth::Secret;

use crate::caches::Caches;
use crate::config::{CacheMode, Config, PoolConfig};
use crate::console::Console;
use crate::export::Outbox;
use crate::link::{Door, Ends, Link};
use crate::procedures::Procedures;
use crate::route::Verdict;
use crate::stream::Streams;
use crate::worker::{redis, WorkerHandle};
use authquery::AuthQueries;
use dial::Dialer;
use following::Following;
use judge::Judges;
use listening::Links;
use messages::{Identity, OpenKind, PoolName, Ref, Shutdown, ToControl, ToWorker};
use peering::Peering;
use predecessors::Predecessors;

/// Handshakes of clients under way at one time; the connection of one more is dropped.
pub const HANDSHAKES_MAX: usize = 4096;

/// Cancel requests under way at one time; more wait their turn.
pub const CANCELS_MAX: usize = 256;

/// What the process knows and can do; shared by the control plane's tasks, console and HTTP.
pub struct Control {
    config: ArcSwap<Config>,
    listen_tls: ArcSwapOption<tls::Listener>,
    workers: Vec<WorkerHandle>,
    dialer: Arc<Dialer>,
    auth_queries: AuthQueries,
    judges: Judges,
    procedures: Arc<Procedures>,
    caches: Arc<Caches>,
    /// Tables that somebody wants mirrored.
    mirrors: mirrors::Registry,
    /// Started when the first database is followed.
    streams: OnceLock<Option<Streams>>,
    following: Following,
    listening_for: Links,
    outbox: Arc<Outbox>,
    redis: Option<Arc<redis::Shared>>,
    handshakes: Semaphore,
    cancels: Semaphore,
    /// The clock of every [`Moment`].
    began: Instant,
    /// The doors take clients.
    listening: AtomicBool,
    /// How the process ends, once it does; a later way may be faster, never slower.
    shutdown: watch::Sender<Option<Shutdown>>,
    /// Processes that this one has taken over from, while they have clients.
    pub predecessors: Predecessors,
    /// Processes beside this one.
    peering: Peering,
    /// One reload at a time.
    reloading: tokio::sync::Mutex<()>,
}

impl Control {
    pub fn new(
        config: Arc<Config>,
        listen_tls: Option<Arc<tls::Listener>>,
        workers: Vec<WorkerHandle>,
        redis: Option<Arc<redis::Shared>>,
        caches: Arc<Caches>,
        outbox: Arc<Outbox>,
        began: Instant,
    ) -> Control {
        let dialer = Arc::new(Dialer::default());
        let procedures = Arc::new(Procedures::new(&config.procedures));
        let mirrors = mirrors::Registry::new(&config);
        Control {
            config: ArcSwap::new(config),
            listen_tls: ArcSwapOption::new(listen_tls),
            workers,
            auth_queries: AuthQueries::new(dialer.clone()),
            judges: Judges::new(dialer.clone(), procedures.clone()),
            procedures,
            dialer,
            caches,
            mirrors,
            streams: OnceLock::new(),
            following: Following::default(),
            listening_for: Links::default(),
            outbox,
            redis,
            handshakes: Semaphore::new(HANDSHAKES_MAX),
            cancels: Semaphore::new(CANCELS_MAX),
            began,
            listening: AtomicBool::new(false),
            shutdown: watch::Sender::new(None),
            predecessors: Predecessors::default(),
            peering: Peering::default(),
            reloading: tokio::sync::Mutex::default(),
        }
    }

    /// Does what workers ask for, until every worker has ended.
    pub async fn run(
        self: Arc<Self>,
        mut asked: mpsc::UnboundedReceiver<ToControl>,
        mut console: Console,
    ) {
        let watching = tokio::spawn(self.clone().watch_waits());
        let mirroring = tokio::spawn(self.clone().keep_mirrors());
        let probing = tokio::spawn(self.clone().keep_probing());
        let exporting = tokio::spawn(self.clone().keep_exporting());
        while let Some(message) = asked.recv().await {
            match message {
                ToControl::Console { client, who, message } => {
                    console.message(client, &who, message);
                }
                ToControl::ConsoleGone { client } => console.gone(client),
                ToControl::CacheCommand { client, config, user, proven, messages } => {
                    console.command(client, &config, user, proven, messages);
                }
                // In order.
                ToControl::Listen { .. } => self.listen(message),
                ToControl::ListenAnew { database, why } => {
                    self.listening_for.renew(
                        |name, _| {
                            database.as_ref().is_none_or(|database| name.database == *database)
                        },
                        why,
                    );
                }
                message => drop(tokio::spawn(self.clone().answer(message))),
            }
        }
        watching.abort();
        mirroring.abort();
        probing.abort();
        exporting.abort();
    }

    fn streams(&self) -> Option<&Streams> {
        let start = || {
            let started = Streams::start(self.dialer.clone());
            let failed = |error: &std::io::Error| {
                tracing::error!(event = "streams_failed", %error, "no database can be followed");
            };
            started.inspect_err(failed).ok()
        };
        self.streams.get_or_init(start).as_ref()
    }

    fn tell(&self, worker: u8, message: ToWorker) {
        if let Some(worker) = self.workers.get(usize::from(worker)) {
            worker.send(message);
        }
    }

    /// One message that needs no order.
    async fn answer(self: Arc<Self>, message: ToControl) {
        match message {
            ToControl::Open { worker, ticket, config, proven, kind } => {
                let result = self.dialer.open(&config, proven, &kind).await.map(Box::new);
                self.tell(
                    worker,
                    match kind {
                        OpenKind::Pulse => ToWorker::LinkOpened { link: ticket, result },
                        OpenKind::Redis => ToWorker::RedisOpened { link: ticket, result },
                        _ => ToWorker::ServerOpened { ticket, result },
                    },
                );
            }
            ToControl::AcceptTls { door, worker, link, ends, began } => {
                self.accept_tls(door, worker, link, ends, began).await;
            }
            ToControl::AuthQuery { client, config, user, again } => {
                let now = self.config.load();
                let answer = self.auth_queries.look_up(&now, &config, user, again).await;
                self.tell(client.worker, ToWorker::AuthAnswer { client, answer });
            }
            ToControl::NamePeer { client, uid } => {
                let name = peers::name(uid).await;
                self.tell(client.worker, ToWorker::PeerNamed { client, name });
            }
            ToControl::CheckPassword { client, user, password, secret } => {
                let right = self.dialer.keys.check(secret, user, password).await.unwrap_or(false);
                self.tell(client.worker, ToWorker::PasswordChecked { client, right });
            }
            ToControl::LogIn { client, config, user, password, secret } => {
                let right = self.log_in(&config, user, password, secret).await;
                self.tell(client.worker, ToWorker::LoggedIn { client, right });
            }
            ToControl::Derive { client, password } => self.derive(client, password).await,
            ToControl::Cancel { server, asker, upstream, ends, pid, key } => {
                let _permit = self.cancels.acquire().await;
                self.dialer.cancel(&upstream, &ends, pid, &key).await;
                self.tell(server.worker, ToWorker::CancelDone { server, asker });
            }
            ToControl::Judge { worker, config, proven, shape, text } => {
                let pool = PoolName::of(&config);
                let caches = config.cache != CacheMode::Off;
                let definitions = match caches {
                    true => self.caches.database(&config.database).definitions(),
                    false => 0,
                };
                let verdict = self.judges.judge(&config, proven, &text).await.map(Box::new);
                // What another server's catalogues say counts no more.
                let now = self.config.load().pool(&pool.database, &pool.user);
                let caches = caches && now.is_ok_and(|now| now.upstream == config.upstream);
                let follows = |verdict: &Verdict| {
                    let cacheable = verdict.cache.as_ref();
                    caches && cacheable.is_ok_and(|all| self.caches.follows(&config.database, all))
                };
                let kept = verdict
                    .as_ref()
                    .ok()
                    .filter(|verdict| follows(verdict))
                    .and_then(|verdict| self.caches.plan(&pool, &text, verdict, definitions));
                if kept.as_ref().is_some_and(|plan| !plan.is_watched()) {
                    // Where nothing is written the stream would tell nothing for a while.
                    let streams = self.streams.get().and_then(Option::as_ref);
                    streams.inspect(|streams| streams.ping(&config.database));
                }
                self.tell(worker, ToWorker::Judged { pool, shape, verdict, kept, definitions });
            }
            ToControl::Follow { config, proven } => self.follow(&config, proven),
            ToControl::Doubt { config } => self.doubt(&config),
            ToControl::Redefined { database } => {
                let mut names = self.judges.forget(&database);
                names.push(database);
                for (database, worker) in
                    names.iter().flat_map(|name| self.workers.iter().map(move |at| (name, at)))
                {
                    worker.send(ToWorker::Redefined { database: database.clone() });
                }
            }
            ToControl::Defined { database } => {
                let streams = self.streams.get().and_then(Option::as_ref);
                streams.inspect(|streams| streams.look(&database));
            }
            ToControl::CancelElsewhere { number, key } => {
                let (key, passed_on) = peering::unmarked(&key);
                self.predecessors.cancel(number, key);
                if !passed_on {
                    self.peering.cancel(&self.config.load().runtime.peers, number, key);
                }
            }
            ToControl::Console { .. }
            | ToControl::ConsoleGone { .. }
            | ToControl::Listen { .. }
            | ToControl::ListenAnew { .. }
            | ToControl::CacheCommand { .. } => {}
        }
    }

    async fn derive(&self, client: Ref, password: String) {
        match self.dialer.keys.verifier(&password).await {
            Ok(verifier) => {
                self.tell(client.worker, ToWorker::Derived { client, password, verifier });
            }
            Err(error) => tracing::error!(event = "derive_failed", %error),
        }
    }

    async fn log_in(
        &self,
        config: &PoolConfig,
        user: String,
        password: Vec<u8>,
        secret: Option<Secret>,
    ) -> Result<bool, String> {
        let now = self.config.load();
        let check = |secret: Option<Secret>| async {
            let Some(secret) = secret else { return Ok(false) };
            let right = self.dialer.keys.check(secret, user.clone(), password.clone()).await;
            right.map_err(|error| error.to_string())
        };
        if secret.is_some() {
            return check(secret).await;
        }
        let known = self.auth_queries.look_up(&now, config, user.clone(), false).await?;
        let right = check(known.secret.clone()).await?;
        if right || !known.kept {
            return Ok(right);
        }
        // It may have changed since it was found.
        let again = self.auth_queries.look_up(&now, config, user.clone(), true).await?;
        if again.secret == known.secret {
            return Ok(false);
        }
        check(again.secret).await
    }

    async fn accept_tls(&self, door: Door, worker: u8, link: Link, ends: Ends, began: Moment) {
        let Some(listener) = self.listen_tls.load_full() else {
            return self.tell(worker, ToWorker::HandshakeFailed);
        };
        let Ok(_permit) = self.handshakes.try_acquire() else {
            tracing::warn!(event = "tls_refused", "more than {HANDSHAKES_MAX} TLS handshakes");
            return self.tell(worker, ToWorker::HandshakeFailed);
        };
        let limit = match self.config.load().runtime.login_timeout {
            Duration::ZERO => Duration::MAX,
            limit => limit.saturating_sub(self.now().since(began)),
        };
        match tls::accept(&listener, door, link, limit).await {
            Ok((link, tls)) => {
                let subject = tls::subject(&link).map(Box::new);
                let identity = Identity { subject, end_point: listener.end_point.clone() };
                self.tell(worker, ToWorker::Client { door, link, ends, tls, identity, began });
            }
            Err(error) => {
                tracing::info!(event = "tls_failed", client = %ends, %error, "TLS handshake failed");
                self.tell(worker, ToWorker::HandshakeFailed);
            }
        }
    }

    fn now(&self) -> Moment {
        Moment(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
pub(crate) mod tests;
