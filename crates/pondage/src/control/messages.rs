//! What the control plane and the workers say to one another.
//!
//! A worker never waits for an answer: it sends a [`ToControl`] and goes on with its turn; the
//! answer comes back as a [`ToWorker`], found by slot and generation so that a late answer for a
//! connection that is gone is dropped.

use std::sync::Arc;
use std::time::SystemTime;

use backend::login::Credential;
use backend::moment::Moment;
use cache::plan::Plan;
use tokio::sync::oneshot;
use wire::pg::auth::Secret;
use wire::pg::sqlstate;

use super::authquery::LookedUp;
use crate::config::{Config, PoolConfig, Upstream};
use crate::hba::Subject;
use crate::hosts::{Replicas, Seat};
use crate::link::{Door, Ends, Link};
use crate::procedures::Running;
use crate::route::Verdict;
use crate::worker::snapshot::{Detail, WorkerSnapshot};
use crate::worker::Listener;

/// A connection on a worker; `generation` tells it from an earlier one in the same slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ref {
    pub worker: u8,
    pub slot: u32,
    pub generation: u32,
}

/// From a worker to the control plane.
#[derive(Debug)]
pub enum ToControl {
    /// Dial, secure and log in; answered by [`ToWorker::ServerOpened`].
    Open {
        worker: u8,
        ticket: u64,
        config: Arc<PoolConfig>,
        /// What the pool's user proved itself with here, for a user whose password is not
        /// configured.
        proven: Option<Credential>,
        kind: OpenKind,
    },
    /// The client sent SSLRequest and was told `S` (or spoke TLS at once): do the handshake;
    /// answered by [`ToWorker::Client`], or the socket is dropped.
    AcceptTls {
        door: Door,
        worker: u8,
        link: Link,
        ends: Ends,
        began: Moment,
    },
    /// Ask the database for the user's secret; answered by [`ToWorker::AuthAnswer`].
    AuthQuery {
        client: Ref,
        config: Arc<PoolConfig>,
        user: String,
        /// What is known from before does not count.
        again: bool,
    },
    /// What is the user of the operating system called that has this number? Answered by
    /// [`ToWorker::PeerNamed`].
    NamePeer {
        client: Ref,
        uid: u32,
    },
    /// A clear-text password against a SCRAM verifier takes a PBKDF2; answered by
    /// [`ToWorker::PasswordChecked`].
    CheckPassword {
        client: Ref,
        user: String,
        password: Vec<u8>,
        secret: Secret,
    },
    /// May a Redis client come in with this password? The user's secret is looked up in the
    /// database of `config` if it is not given; answered by [`ToWorker::LoggedIn`].
    LogIn {
        client: Ref,
        config: Arc<PoolConfig>,
        user: String,
        password: Vec<u8>,
        secret: Option<Secret>,
    },
    /// SCRAM needs a verifier, which takes a PBKDF2 of the plain password; answered by
    /// [`ToWorker::Derived`].
    Derive {
        client: Ref,
        password: String,
    },
    /// Send a CancelRequest and wait until the server closes; answered by
    /// [`ToWorker::CancelDone`] whatever comes of it.
    Cancel {
        server: Ref,
        asker: Option<Ref>,
        upstream: Arc<PoolConfig>,
        ends: Ends,
        pid: u32,
        key: Vec<u8>,
    },
    /// One whole message of a console client; answers are [`ToWorker::ConsoleReply`].
    Console {
        client: Ref,
        who: Arc<ConsoleUser>,
        message: Vec<u8>,
    },
    ConsoleGone {
        client: Ref,
    },
    /// A command about caches on an ordinary connection, with all its messages up to its end;
    /// answered by [`ToWorker::CacheReply`].
    CacheCommand {
        client: Ref,
        config: Arc<PoolConfig>,
        /// As whom the client has logged in.
        user: String,
        proven: Option<Credential>,
        messages: Vec<u8>,
    },
    /// No client of this process has the key of a cancel request; one of a process that this one
    /// has taken over from may, or of a peer.
    CancelElsewhere {
        number: u32,
        key: Vec<u8>,
    },
    /// What may be done with statements like `text`, as this pool's user sees the database;
    /// answered by [`ToWorker::Judged`].
    Judge {
        worker: u8,
        config: Arc<PoolConfig>,
        proven: Option<Credential>,
        /// The worker's number of the shape.
        shape: u32,
        text: Box<[u8]>,
    },
    /// Results of this database's reads are to be kept: its stream is to be followed, if it is not
    /// already.
    Follow {
        config: Arc<PoolConfig>,
        proven: Option<Credential>,
    },
    /// Channels that nobody at this worker listened to before, or that nobody does any more.
    Listen {
        worker: u8,
        audience: Arc<Audience>,
        config: Arc<PoolConfig>,
        proven: Option<Credential>,
        more: Vec<Arc<[u8]>>,
        fewer: Vec<Arc<[u8]>>,
        /// Who is told [`ToWorker::Listened`], with this number, when it is so and all
        /// notifications of what was committed before have been sent.
        asker: Option<(Ref, u32)>,
    },
    /// What listens for clients of this database, or of all, is to be another connection, which
    /// takes over from it; or is given up, for this reason.
    ListenAnew {
        database: Option<String>,
        why: Option<&'static str>,
    },
    /// A server of this pool is lost, or has said what one that is fit would not: which of its hosts
    /// is what is to be found out.
    Doubt {
        config: Arc<PoolConfig>,
    },
    /// A client has changed definitions in this database: every worker is told
    /// [`ToWorker::Redefined`].
    Redefined {
        database: String,
    },
    /// Others see what a client has defined in this database: its publication is to be looked at.
    Defined {
        database: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenKind {
    /// For the pool.
    Pooled,
    /// The same, with start-up parameters of a client that will have it for its whole session.
    Session { parameters: Vec<(String, String)> },
    /// For one client that asked for replication, with its own start-up parameters.
    Replication { parameters: Vec<(String, String)> },
    /// To ask how far PostgreSQL is; answered by [`ToWorker::LinkOpened`], the ticket being the
    /// connection's number.
    Pulse,
    /// For the engine of the Redis door; answered by [`ToWorker::RedisOpened`], the ticket being
    /// the connection's number.
    Redis,
    /// To ask one of several hosts what it is.
    Probe,
}

/// Who speaks on a console connection, or asks about caches on an ordinary one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleUser {
    pub user: String,
    pub database: String,
    pub admin: bool,
    /// On an ordinary connection: what the pool's user proved itself with last.
    pub proven: Option<Credential>,
}

/// A server connection that has logged in and said ReadyForQuery.
#[derive(Debug)]
pub struct Opened {
    pub link: Link,
    pub ends: Ends,
    /// What the server reported: ParameterStatus in order of arrival, the last value of each name.
    pub parameters: Vec<(String, String)>,
    pub pid: u32,
    pub key: Vec<u8>,
    /// For SHOW SERVERS: "TLSv1.3/TLS_AES_256_GCM_SHA384", or empty.
    pub tls: String,
    /// At one of several hosts.
    pub seat: Option<Arc<Seat>>,
    /// For reads from a standby: in which life of the server.
    pub life: u64,
}

/// Why a server connection could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenError {
    /// The server's own code (28P01, 3D000, 53300 ...), or 08001 when it was not reached.
    pub code: String,
    /// One line: what, where, why.
    pub message: String,
    /// What PgBouncer tells: the server's own words.
    pub theirs: String,
    /// The server's own detail and hint, if it said any.
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// A new try with the same settings would end the same way (wrong password, no such
    /// database): waiting clients are told at once.
    pub permanent: bool,
    pub at: SystemTime,
}

/// What a client's TLS handshake says for its log-in.
#[derive(Debug, Default)]
pub struct Identity {
    /// Of the certificate that it has shown.
    pub subject: Option<Box<Subject>>,
    /// Of the certificate that it was shown: what SCRAM can be bound to.
    pub end_point: Option<Arc<[u8]>>,
}

/// From the control plane (or another worker) to a worker.
#[derive(Debug)]
pub enum ToWorker {
    /// A client whose TLS handshake is done; what it has to say comes next.
    Client {
        door: Door,
        link: Link,
        ends: Ends,
        tls: String,
        identity: Identity,
        began: Moment,
    },
    /// The handshake of a client at this door has failed, and its socket is closed.
    HandshakeFailed,
    /// Listen at these doors and no others; with none the Redis clients are let go, too. Replied
    /// when that is done.
    Doors {
        doors: Vec<(Door, Listener)>,
        reply: oneshot::Sender<()>,
    },
    /// Replied by every worker that turns.
    Ping {
        reply: oneshot::Sender<()>,
    },
    /// A cancel request that came to the process that has taken over from this one.
    CancelRequest {
        number: u32,
        key: Vec<u8>,
    },
    ServerOpened {
        ticket: u64,
        result: Result<Box<Opened>, OpenError>,
    },
    LinkOpened {
        link: u64,
        result: Result<Box<Opened>, OpenError>,
    },
    RedisOpened {
        link: u64,
        result: Result<Box<Opened>, OpenError>,
    },
    /// The answer is already checked for VALID UNTIL.
    AuthAnswer {
        client: Ref,
        answer: Result<LookedUp, String>,
    },
    /// An error: it has no name, or none could be had.
    PeerNamed {
        client: Ref,
        name: Result<String, String>,
    },
    PasswordChecked {
        client: Ref,
        right: bool,
    },
    /// To a Redis client's password. An error: its user could not be looked up.
    LoggedIn {
        client: Ref,
        right: Result<bool, String>,
    },
    Derived {
        client: Ref,
        password: String,
        verifier: wire::pg::auth::ScramVerifier,
    },
    CancelDone {
        server: Ref,
        asker: Option<Ref>,
    },
    /// Nothing that this CancelRequest has set off is under way any more.
    CancelHeard {
        asker: Ref,
    },
    /// Parser and catalogues have looked at a statement. An error is one that may pass (the
    /// database can't be reached); the shape is judged again later.
    Judged {
        pool: PoolName,
        shape: u32,
        verdict: Result<Box<Verdict>, String>,
        /// How its results may be kept.
        kept: Option<Arc<Plan>>,
        /// Of [`cache::shared::Shared::definitions`], before it was judged.
        definitions: u64,
    },
    Listened {
        client: Ref,
        number: u32,
    },
    /// A NotificationResponse, whole, for who listens to its channel.
    Notified {
        audience: Arc<Audience>,
        message: Arc<[u8]>,
    },
    /// The connection that listened is gone, or could not be had: notifications may be missed.
    ListenLost {
        audience: Arc<Audience>,
        why: String,
    },
    /// A host of some list is another thing than it was: what is no longer fit there is to be closed.
    HostsChanged {
        replicas: Option<Arc<Replicas>>,
    },
    /// What was judged in this database may have changed.
    Redefined {
        database: String,
    },
    /// Bytes for a console client; `close` ends the connection after them.
    ConsoleReply {
        client: Ref,
        bytes: Vec<u8>,
        close: bool,
    },
    /// The whole answer to a command about caches.
    CacheReply {
        client: Ref,
        bytes: Vec<u8>,
    },
    Snapshot {
        detail: Detail,
        reply: oneshot::Sender<Box<WorkerSnapshot>>,
    },
    /// Which calls are on their way in this database: with the process of PostgreSQL that has them.
    Running {
        database: String,
        reply: oneshot::Sender<Vec<(u32, Running)>>,
    },
    Command {
        command: Command,
        reply: oneshot::Sender<Result<(), String>>,
    },
    Reload {
        config: Arc<Config>,
        tls: Option<Arc<super::tls::Listener>>,
    },
    Shutdown(Shutdown),
    /// The stream of a database has come so far as somebody waits for.
    Applied,
    /// Between workers: keys that this one waits for may be free.
    KeysFree,
    /// Between workers: the engine of the Redis door has something for this one.
    RedisEvents,
    /// Between workers: `worker` has clients waiting in this pool and no server for them.
    Wanted {
        pool: PoolName,
        worker: u8,
    },
    /// Between workers: an idle server changes hands.
    Server(Box<crate::worker::MovedServer>),
    /// Between workers: cancel what this client does, if the key is right.
    CancelKey {
        asker: Option<Ref>,
        slot: u32,
        key: Box<[u8]>,
    },
}

/// The clients that one connection listens for. PostgreSQL converts what it sends to the encoding
/// that they have asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Audience {
    pub database: String,
    pub encoding: String,
}

/// The pair that names a pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolName {
    pub database: String,
    pub user: String,
    /// For reads from standbys: which of its hosts.
    pub replica: Option<usize>,
}

impl PoolName {
    pub fn of(config: &PoolConfig) -> PoolName {
        let replica = config.upstream.several.replica.as_ref().map(|replica| replica.1);
        PoolName { database: config.database.clone(), user: config.user.clone(), replica }
    }
}

/// Console commands that change what a worker does. A `None` database means: all.
/// The reply is sent when it is done; PAUSE, WAIT_CLOSE and SUSPEND may take long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// New statements wait; replied when no server of it is in use.
    Pause {
        database: Option<String>,
    },
    Resume {
        database: Option<String>,
    },
    /// Write what there is and read nothing more until Resume; replied when all is written. `force`
    /// closes those that do not read.
    Suspend {
        force: bool,
    },
    /// Close every server when it is released; idle ones at once.
    Reconnect {
        database: Option<String>,
    },
    Disable {
        database: String,
    },
    Enable {
        database: String,
    },
    /// Close its clients and servers at once, and pause it.
    Kill {
        database: Option<String>,
    },
    KillClient {
        slot: u32,
        generation: u32,
    },
    /// Replied when no server from before the last RECONNECT or reload is left.
    WaitClose {
        database: Option<String>,
    },
}

impl OpenError {
    /// PostgreSQL has no room: somebody has to leave first.
    pub fn is_crowded(&self) -> bool {
        self.code == sqlstate::TOO_MANY_CONNECTIONS
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Another process has the doors: as [`Shutdown::WaitForClients`], but those whose log-in has
    /// begun come in.
    HandedOver,
    /// No new clients; end when every client has left (TERM, SHUTDOWN WAIT_FOR_CLIENTS).
    WaitForClients,
    /// Clients are closed when they hold no server; end when every server is idle
    /// (INT, SHUTDOWN WAIT_FOR_SERVERS).
    WaitForServers,
    Immediate,
}

impl Upstream {
    /// "app at db.example:5432", for messages.
    pub fn place(&self) -> String {
        match &self.host {
            crate::config::Host::Tcp(host) => format!("{}:{}", host, self.port),
            crate::config::Host::Unix(dir) => format!("{}/.s.PGSQL.{}", dir.display(), self.port),
        }
    }
}
