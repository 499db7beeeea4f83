//! All of one worker's clients, servers and pools, without sockets and without a clock.
//!
//! How it is driven: [`Plane::begin_turn`] gives the time; whatever happened is told by
//! [`Plane::control`], [`Plane::server_bytes`], [`Plane::server_closed`],
//! [`Plane::client_connected`], [`Plane::client_bytes`] and [`Plane::client_closed`], servers
//! before clients; [`Plane::end_turn`] does what that has made possible. Then the driver writes
//! `out` of every connection in [`Plane::written_clients`] and [`Plane::written_servers`] and
//! carries out the [`Effect`]s. The epoll driver and the simulator are the two drivers.

mod admission;
mod applying;
mod arrivals;
mod auditing;
mod beginning;
mod cache_commands;
mod caching;
mod calls;
mod commands;
mod company;
mod fairness;
mod fitting;
mod holding;
mod hosts;
mod joining;
mod journal;
mod lending;
mod listening;
mod login;
mod mentions;
mod mirroring;
mod mishaps;
mod naming;
mod opening;
pub mod pins;
mod proxied;
mod pulses;
mod replanning;
mod replies;
mod report;
mod requests;
mod sampling;
mod sharing;
mod splitting;
mod standpoint;
mod statements;
mod surveying;
mod suspending;
mod timers;
mod traces;
mod trains;
mod trips;
mod writes;
mod writing;
mod yielding;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use backend::carrier::Carrier;
use backend::keys::Held;
use backend::login::Credential;
use backend::moment::Moment;
use backend::pool::{self, Budget};
use backend::reply::Owner;
use backend::server::Server;
use backend::settings::{Interner, Settings};
use backend::statement::{Numbers, Registry, Statement};
use cache::request::Request;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sql::Scan;
use wire::pg::auth::ScramVerifier;

use crate::caches::Caches;
use crate::config::{Config, PoolConfig};
use crate::control::messages::{
    Identity, OpenError, Opened, PoolName, Ref, Shutdown, ToControl, ToWorker,
};
use crate::export::Outbox;
use crate::hosts::{Replicas, Seat};
use crate::link::Ends;
use crate::session::cancel_key::CancelKeys;
use crate::session::client::{Client, Hold, Phase, Rest, NONE};
use crate::session::login::Login;
use crate::session::unit::Unit;
use crate::worker::budgets::Budgets;
use crate::worker::holders::Holders;
use crate::worker::shapes::Shapes;
use crate::worker::slots::Slots;
use crate::worker::snapshot::Totals;
use crate::worker::suspects::Suspects;
use caching::PoolCache;
pub use caching::Reads;
use company::Company;
use listening::Room;
use mirroring::Running;
use pins::Pinned;
use pulses::DatabaseCache;
use replies::Happened;
pub use splitting::Sight;
use splitting::Standbys;
use surveying::{Surveys, Touched};
pub use writes::Wrote;

/// Bytes that may wait for a client before its server is no longer read, and the other way round.
pub const OUT_BYTES_HIGH: usize = 256 << 10;

/// Messages up to this size are taken whole; longer ones are passed on in pieces.
pub const WHOLE_BYTES_MAX: usize = 64 << 10;

/// A named Parse has to be kept, so it has a ceiling, in bytes.
pub const STATEMENT_BYTES_MAX: usize = 16 << 20;

/// Write buffers kept for clients that have something to be written.
const BUFFERS_MAX: usize = 256;
const BUFFER_BYTES: usize = 4 << 10;

/// By name, and the worker that has it for itself: at standbys each has pools of its own.
type SharedPools = HashMap<(PoolName, Option<u8>), Arc<pool::Shared>>;

/// What the workers of a process share. Locks are held for a look-up at log-in, never per query.
#[derive(Debug, Default)]
pub struct Common {
    pools: Mutex<SharedPools>,
    /// Servers and clients of a database or a user, over all pools, by kind and name.
    budgets: Mutex<HashMap<(Count, String), Arc<Budget>>>,
    welcomes: Mutex<HashMap<PoolName, Arc<Settings>>>,
    pub clients: Budget,
    statements: Numbers,
    ids: AtomicU64,
    pub caches: Arc<Caches>,
    /// Of statements that were sampled.
    outbox: Arc<Outbox>,
    /// Of calls that are on their way.
    pub(super) keys: Held,
    suspects: Mutex<Suspects>,
    holders: Holders,
    shares: Budgets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Count {
    Servers,
    DatabaseServers,
    UserServers,
    DatabaseClients,
    UserClients,
}

impl Common {
    pub fn new(caches: Arc<Caches>) -> Common {
        Common { caches, ..Common::default() }
    }

    /// With the outbox of the process.
    pub fn with_outbox(self, outbox: Arc<Outbox>) -> Common {
        Common { outbox, ..self }
    }

    /// Who has failed to log in lately.
    pub(in crate::worker) fn suspects(&self) -> MutexGuard<'_, Suspects> {
        self.suspects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `owner`: the only worker that has it.
    fn pool(&self, name: &PoolName, owner: Option<u8>) -> Arc<pool::Shared> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.entry((name.clone(), owner)).or_default().clone()
    }

    fn budget(&self, count: Count, name: &str) -> Arc<Budget> {
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        budgets.entry((count, name.to_owned())).or_default().clone()
    }

    /// Divides the servers of budgets that are short.
    fn divide(&self, now: Moment) {
        let pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pools: Vec<_> = pools.iter().collect();
        // The same world gives the same shares.
        pools.sort_unstable_by_key(|(name, _)| *name);
        let pools: Vec<_> =
            pools.into_iter().map(|((name, _), pool)| (name.clone(), pool.clone())).collect();
        self.shares.divide(&pools, now);
    }

    /// What the servers of a pool report, once one has logged in at some worker.
    fn welcomes(&self, name: &PoolName) -> Option<Arc<Settings>> {
        let welcomes = self.welcomes.lock().unwrap_or_else(PoisonError::into_inner);
        welcomes.get(name).cloned()
    }

    fn welcome(&self, name: &PoolName, defaults: &Arc<Settings>) {
        let mut welcomes = self.welcomes.lock().unwrap_or_else(PoisonError::into_inner);
        welcomes.insert(name.clone(), defaults.clone());
    }

    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// What the driver has to do.
#[derive(Debug)]
pub enum Effect {
    /// Close it once its bytes are written; then [`Plane::client_forgotten`].
    CloseClient(u32),
    /// Close it now; it is forgotten already.
    CloseServer(u32),
    /// Who is the process at the other end of its Unix socket? Answered by
    /// [`ToWorker::PeerNamed`].
    AskPeer(u32),
    /// Is that process of the same system user as this one? Answered by [`Plane::owner_asked`].
    AskOwner(u32),
    /// Its `S` is to be written (or it began with TLS at once, and `early` is what was read of
    /// that); then its socket goes to the control plane and it is forgotten.
    StartTls {
        slot: u32,
        early: Vec<u8>,
    },
    /// The connection of a database's cache.
    CloseLink(u32),
    Control(ToControl),
    Peer(u8, ToWorker),
    /// Send this idle server, forgotten here, to another worker.
    GiveServer {
        slot: u32,
        worker: u8,
        parts: Box<ServerParts>,
    },
}

/// A server that changes workers, without its socket.
#[derive(Debug)]
pub struct ServerParts {
    pub pool: PoolName,
    /// The budgets that it is counted in, beside its pool's.
    pub also: Vec<pool::Ceiling>,
    pub conn: ServerConn,
}

/// What a server connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Idle,
    /// A client has it.
    Lent,
    /// It carries statements of several clients.
    Carrying,
    /// Its client has gone: it is drained, rolled back, reset, or waits for a cancel to be over.
    Cleaning,
}

/// What is done to a server before its client may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparing {
    No,
    /// It was idle for long: does it still answer?
    Checking,
    /// What another client has left in its session is swept out.
    Sweeping,
    /// The client's settings are applied.
    Applying,
    /// What its client's query names is prepared, maybe in a transaction.
    Bringing,
    /// It is told what its client listens to.
    Listening,
    /// It is asked what its client, who is done with it, has set.
    Surveying,
}

#[derive(Debug)]
pub struct ServerConn {
    pub server: Server,
    pub generation: u32,
    pub id: u64,
    pub pool: u32,
    pub place: Place,
    /// Whose statements it carries.
    pub carrier: Carrier,
    /// How often the tail of its train was sent.
    pub tails: u8,
    pub client: u32,
    pub ends: Ends,
    pub tls: Arc<str>,
    pub pid: u32,
    pub key: Arc<[u8]>,
    /// Cancel requests under way: until they are over nobody else may get this server.
    pub cancels: u32,
    pub preparing: Preparing,
    /// Who had it last, by id.
    pub last_client: u64,
    pub close_needed: bool,
    pub reset_wanted: bool,
    /// A client whose pool has a cache has left something in its session that is not reported. It
    /// is reset before others get it: what it answers them may be kept for all.
    pub strange: bool,
    /// Its client has sent what may have changed its session.
    pub touched: Option<Box<Touched>>,
    /// What its client has sent and may have to send again.
    pub(in crate::worker::plane) request: replanning::Kept,
    /// What its client reads on a standby and may ask of the primary instead.
    pub(in crate::worker::plane) read: yielding::Read,
    /// It listens to channels of its client.
    pub listening: bool,
    /// What it was asked for last.
    pub asked: sql::Kept,
    /// Its client keeps it.
    pub pinned: Option<Box<Pinned>>,
    pub replication: bool,
    /// In session mode: the settings of the client whose start-up parameters it was started with,
    /// if they were unlike others'.
    pub start: Option<Arc<Settings>>,
    /// RECONNECTs of the pool that had happened when it was opened.
    pub epoch: u32,
    pub opened_at: SystemTime,
    pub queued_out: bool,
    /// At one of several hosts.
    pub seat: Option<Arc<Seat>>,
    /// Of a standby that is read from: in which of its lives it was opened.
    pub life: u64,
}

/// One (database, user) on this worker.
#[derive(Debug)]
pub struct PoolState {
    pub name: PoolName,
    pub config: Arc<PoolConfig>,
    pub pool: pool::Pool<u32, u32>,
    pub limits: pool::Limits,
    /// All of its servers on this worker.
    pub servers: Vec<u32>,
    /// What its servers report when they have logged in.
    pub welcome: Option<Arc<Settings>>,
    /// What its user proved itself with last: a password, or the keys of a SCRAM proof. With it
    /// Pondage logs in where the configuration has no password.
    pub proven: Option<Credential>,
    /// What the last client got that was greeted.
    pub last_greeting: Option<Greeting>,
    /// A reload has removed its database.
    pub retired: bool,
    /// Clients that are logged in but could not be greeted yet.
    pub greeting: Vec<u32>,
    /// How often in a row a server was kept here though clients of other workers wait.
    pub kept: u32,
    pub clients: u32,
    pub client_budgets: Vec<(Arc<Budget>, Option<u32>, &'static str)>,
    pub paused: bool,
    pub disabled: bool,
    pub epoch: u32,
    /// The epoch of the last change that clients of sessions are not to outlive.
    pub renewed: u32,
    pub totals: Totals,
    pub failing: Option<Failing>,
    pub shapes: Shapes,
    pub company: Company,
    pub surveys: Surveys,
    pub cache: Option<PoolCache>,
    /// Where its reads may go.
    standbys: Option<Box<Standbys>>,
    /// Of the pool of a standby: the one that it is beside; else [`NONE`].
    home: u32,
    /// In which life of the standby its servers are.
    life: u64,
}

/// The end of a log-in for clients that ask for the same.
#[derive(Debug)]
pub struct Greeting {
    pub wanted: Vec<(String, String)>,
    pub welcome: Arc<Settings>,
    pub settings: Arc<Settings>,
    /// Of them, those that are wanted.
    pub start: Option<Arc<Settings>>,
    /// ParameterStatus messages.
    pub reported: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct Failing {
    pub since: SystemTime,
    pub began: Moment,
    pub tries: u32,
    pub error: OpenError,
}

/// Where a connection attempt belongs.
#[derive(Debug)]
enum Ticket {
    Pooled { pool: u32, start: Option<Arc<Settings>> },
    Replication { client: u32, generation: u32 },
}

pub struct Plane {
    pub worker: u8,
    pub config: Arc<Config>,
    common: Arc<Common>,
    now: Moment,
    /// The wall clock when the monotonic one was zero.
    epoch: SystemTime,
    tls_ready: bool,
    /// None: no statement is sampled.
    sampler: Option<sampling::Sampler>,
    pub clients: Slots<Client>,
    pub servers: Slots<ServerConn>,
    pools: Vec<PoolState>,
    pool_by_name: hashbrown::HashMap<PoolName, u32, foldhash::fast::RandomState>,
    tickets: HashMap<u64, Ticket>,
    next_ticket: u64,
    settings: Interner,
    statements: Registry,
    /// No text: what only has to be there under its name.
    nothing: Arc<Statement>,
    no_settings: Arc<Settings>,
    verifiers: HashMap<String, (String, ScramVerifier)>,
    random: StdRng,
    mock_key: [u8; 32],
    cancel_keys: CancelKeys,
    next_stamp: u64,
    events: Vec<(Owner, Happened)>,
    buffers: Vec<Vec<u8>>,
    scan: Scan,
    request: Request,
    running: Running,
    /// Who listens to what, over connections of the control plane's.
    rooms: Vec<Room>,
    /// The caches of the databases.
    caches: Vec<DatabaseCache>,
    /// The hosts of lists.
    replicas: Vec<Arc<Replicas>>,
    /// Those whose connections have bytes to write.
    pub written_links: Vec<u32>,
    #[allow(clippy::vec_box)] // The boxes are what is kept: clients hold one each.
    spare_units: Vec<Box<Unit>>,
    /// Pools whose company is in use.
    shared: Vec<u32>,
    /// Shapes of the statements that a server has just answered.
    paced: Vec<u32>,
    /// Who boards a trip, kept for its room.
    rides: Vec<Owner>,
    pub effects: Vec<Effect>,
    /// Connections with bytes to write.
    pub written_clients: Vec<u32>,
    pub written_servers: Vec<u32>,
    /// Clients whose input can be taken on.
    resumable: Vec<u32>,
    waits: Vec<commands::Wait>,
    /// Since when nothing is read.
    suspended: Option<Moment>,
    /// See [`Plane::look_at_budgets`].
    budgets_due: bool,
    /// Databases under PAUSE, none for all: also for pools that come to be later.
    paused: HashSet<Option<String>>,
    /// Databases under DISABLE.
    disabled: HashSet<String>,
    pub shutdown: Option<Shutdown>,
    next_tick: Moment,
    last_tick: Moment,
    ticks: u64,
    pub turns: u64,
    logging_in: u32,
    /// Clients whose like have failed to log in, and when they may try.
    delayed: Vec<(Moment, Ref)>,
    refused: HashMap<String, u64>,
}

/// What a plane needs from the process.
#[derive(Debug)]
pub struct Setting {
    pub worker: u8,
    pub config: Arc<Config>,
    pub common: Arc<Common>,
    pub seed: [u8; 32],
    pub epoch: SystemTime,
    /// A certificate is loaded: TLS can be offered.
    pub tls_ready: bool,
}

impl Plane {
    pub fn new(setting: Setting) -> Plane {
        let mut random = StdRng::from_seed(setting.seed);
        let mut settings = Interner::default();
        Plane {
            worker: setting.worker,
            sampler: sampling::Sampler::of(&setting.config),
            config: setting.config,
            now: Moment(0),
            epoch: setting.epoch,
            tls_ready: setting.tls_ready,
            clients: Slots::default(),
            servers: Slots::default(),
            pools: Vec::new(),
            pool_by_name: hashbrown::HashMap::default(),
            tickets: HashMap::new(),
            next_ticket: 0,
            no_settings: settings.intern(Settings::default()),
            settings,
            statements: Registry::new(setting.common.statements.clone()),
            nothing: Statement::unregistered(b"", &[0, 0]),
            common: setting.common,
            verifiers: HashMap::new(),
            mock_key: random.random(),
            cancel_keys: CancelKeys::new(random.random()),
            random,
            next_stamp: 0,
            events: Vec::new(),
            buffers: Vec::new(),
            scan: Scan::default(),
            request: Request::default(),
            running: Running::default(),
            rooms: Vec::new(),
            caches: Vec::new(),
            replicas: Vec::new(),
            written_links: Vec::new(),
            spare_units: Vec::new(),
            shared: Vec::new(),
            paced: Vec::new(),
            rides: Vec::new(),
            effects: Vec::new(),
            written_clients: Vec::new(),
            written_servers: Vec::new(),
            resumable: Vec::new(),
            waits: Vec::new(),
            suspended: None,
            budgets_due: false,
            paused: HashSet::new(),
            disabled: HashSet::new(),
            shutdown: None,
            next_tick: Moment(0),
            last_tick: Moment(0),
            ticks: 0,
            turns: 0,
            logging_in: 0,
            delayed: Vec::new(),
            refused: HashMap::new(),
        }
    }

    pub fn begin_turn(&mut self, now: Moment) {
        self.now = now;
        self.turns += 1;
        self.check_definitions();
    }

    /// Goes on with clients that wait no more, and fires what is due.
    pub fn end_turn(&mut self) {
        if self.now >= self.next_tick && self.suspended.is_none() {
            self.next_tick = self.now.after(timers::TICK);
            self.tick();
        }
        self.audit();
        self.wake_readers();
        // A client that is resumed may free a server for the next one; each is resumed at most
        // once a turn and client, so that a long pipeline does not keep the turn from ending.
        for _ in 0..self.resumable.len() {
            let resumable = std::mem::take(&mut self.resumable);
            if resumable.is_empty() {
                break;
            }
            for slot in resumable {
                self.resume(slot);
            }
        }
        self.look_at_budgets();
        if self.suspended.is_none() {
            self.check_carriers();
        }
        self.dispatch();
        self.send_pulses();
        self.check_waits();
        self.clients.end_turn();
        self.servers.end_turn();
    }

    /// Something is left to do that no event will announce.
    pub fn has_more(&self) -> bool {
        !self.resumable.is_empty()
    }

    /// A client's socket was accepted, or its TLS handshake is done.
    pub fn client_connected(&mut self, ends: Ends, tls: Option<Arc<str>>, began: Moment) -> u32 {
        let (id, secret) = (self.common.next_id(), self.random.random());
        let (settings, now) = (self.no_settings.clone(), self.now);
        self.logging_in += 1;
        self.clients.insert(|_, generation| Client {
            generation,
            id,
            ends,
            tls,
            secret,
            long_key: false,
            phase: Phase::LoggingIn(Box::<Login>::default()),
            hold: Hold::No,
            pool: NONE,
            guest: None,
            server: NONE,
            input: Vec::new(),
            out: Vec::new(),
            rest: 0,
            rest_goes: Rest::Dropped,
            settings,
            start: None,
            names: None,
            namings: None,
            batch_open: false,
            copies_in: false,
            copy_ended: false,
            skips: false,
            counted: false,
            unit: None,
            asking: NONE,
            last: None,
            alone: None,
            answered: 0,
            corked: false,
            running: None,
            fill: None,
            reads: None,
            wrote: None,
            begun: None,
            listens: None,
            trace: None,
            sight: None,
            close_needed: false,
            looked_at: false,
            queued_out: false,
            queued_resume: false,
            connected: began,
            asked: now,
            began: now,
            active: now,
        })
    }

    /// What a client's TLS handshake says for its log-in.
    pub fn client_certified(&mut self, slot: u32, identity: Identity) {
        if let Some(Phase::LoggingIn(login)) =
            self.clients.get_mut(slot).map(|client| &mut client.phase)
        {
            login.identity = identity;
        }
    }

    /// Bytes that were read from a client, cut anywhere.
    pub fn client_bytes(&mut self, slot: u32, bytes: &[u8]) {
        let now = self.now;
        let Some(client) = self.clients.get_mut(slot) else { return };
        client.active = now;
        let pool = client.pool;
        if client.input.is_empty() {
            let taken = self.take_input(slot, bytes);
            if let Some(client) = self.clients.get_mut(slot) {
                client.input.extend_from_slice(&bytes[taken..]);
            }
        } else {
            client.input.extend_from_slice(bytes);
            self.resume(slot);
        }
        if let Some(pool) = self.pools.get_mut(pool as usize) {
            pool.totals.received += bytes.len() as u64;
        }
    }

    /// Takes on with what a client has sent before.
    fn resume(&mut self, slot: u32) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        client.queued_resume = false;
        if client.listens.is_some() {
            self.pass_on(slot);
        }
        let Some(client) = self.clients.get_mut(slot) else { return };
        if client.input.is_empty() {
            let server = client.server;
            return self.settle_server(server);
        }
        let mut input = std::mem::take(&mut client.input);
        let taken = self.take_input(slot, &input);
        if let Some(client) = self.clients.get_mut(slot) {
            if taken == input.len() {
                input = Vec::new();
            } else if taken > 0 {
                input.drain(..taken);
            }
            client.input = input;
            // It was not taken from the client while this was to come.
            let server = client.server;
            self.settle_server(server);
        }
    }

    fn resume_later(&mut self, slot: u32) {
        if let Some(client) = self.clients.get_mut(slot) {
            if !std::mem::replace(&mut client.queued_resume, true) {
                self.resumable.push(slot);
            }
        }
    }

    /// Whether the driver may read more from this client now.
    pub fn client_may_read(&self, slot: u32) -> bool {
        self.clients.get(slot).is_some_and(|client| {
            client.hold == Hold::No && (self.suspended.is_none() || !client.is_pooled())
        })
    }

    /// Whether the driver may read more from this server now: not while its client is slow.
    pub fn server_may_read(&self, slot: u32) -> bool {
        let Some(conn) = self.servers.get(slot) else { return false };
        if self.suspended.is_some() {
            return false;
        }
        let reader = match conn.place {
            Place::Carrying => conn.server.works_for().map_or(NONE, |owner| owner.0),
            _ => conn.client,
        };
        match self.clients.get(reader) {
            Some(client) => client.out.len() < OUT_BYTES_HIGH || client.corked,
            None => true,
        }
    }

    /// A client's socket is at its end or broken.
    pub fn client_closed(&mut self, slot: u32) {
        if self.clients.get(slot).is_some() {
            self.log_left(slot, "client unexpected eof");
            self.release_client(slot);
            self.clients[slot].out = Vec::new();
            self.effects.push(Effect::CloseClient(slot));
        }
    }

    /// The driver has closed it.
    pub fn client_forgotten(&mut self, slot: u32) {
        if let Some(client) = self.clients.remove(slot) {
            self.keep_buffer(client.out);
        }
    }

    /// Everything in a client's `out` was written.
    pub fn client_flushed(&mut self, slot: u32) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        client.queued_out = false;
        let out = std::mem::take(&mut client.out);
        if client.hold == Hold::Unread {
            client.hold = Hold::No;
            self.resume_later(slot);
        } else if client.listens.is_some() {
            self.resume_later(slot);
        }
        self.keep_buffer(out);
    }

    /// Everything in a server's `out` was written.
    pub fn server_flushed(&mut self, slot: u32) {
        let Some(conn) = self.servers.get_mut(slot) else { return };
        conn.queued_out = false;
        conn.server.out.clear();
        conn.server.out.shrink_to(WHOLE_BYTES_MAX);
        self.no_longer_full(slot);
    }

    fn keep_buffer(&mut self, mut buffer: Vec<u8>) {
        if self.buffers.len() < BUFFERS_MAX
            && (BUFFER_BYTES..=WHOLE_BYTES_MAX * 2).contains(&buffer.capacity())
        {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// Appends to what a client will be sent.
    fn tell(&mut self, slot: u32, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        replies::ensure_out(&mut client.out, &mut self.buffers);
        write(&mut client.out);
        replies::queue_out(client, slot, &mut self.written_clients);
    }

    /// What names a client to others, while it is there.
    pub fn reference_of(&self, slot: u32) -> Option<Ref> {
        self.clients.get(slot).map(|_| self.reference(slot))
    }

    fn reference(&self, slot: u32) -> Ref {
        let generation = self.clients[slot].generation;
        Ref { worker: self.worker, slot, generation }
    }

    fn wall(&self, moment: Moment) -> SystemTime {
        self.epoch + std::time::Duration::from_micros(moment.0)
    }

    /// A connection that a ticket asked for is there.
    pub fn server_opened(&mut self, ticket: u64, opened: &Opened) -> Option<u32> {
        self.opened(ticket, opened)
    }
}
