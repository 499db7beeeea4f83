//! The valid configuration. Raw text becomes these types once ([`load`]); nothing after that
//! checks a value again. A running process swaps a whole [`Config`] at reload; whatever a
//! connection already uses stays until it lets go.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wire::pg::auth::Secret;

use crate::hba::{Maps, Net, Rules};

mod build;
mod definition;
mod document;
mod environment;
mod files;
mod hosts;
mod load;
mod mirror;
pub(crate) mod nearest;
pub mod options;
pub mod otlp;
mod peer;
mod pgbouncer;
mod postgres_url;
pub mod report;
mod resolve;
mod settings;
mod show;
mod source;
#[cfg(test)]
mod tests;
mod tls;
mod value;
mod words;

pub use definition::{Definition, Head};
pub use environment::Environment;
pub use files::FILE_MAX;
pub use hosts::{Balance, SessionAttrs, Several};
pub use load::{reload, set, Flags, Inputs};
pub use mirror::{MirrorDefinition, TableName};
pub use peer::Peer;
pub use pgbouncer::{import, options_of_pgbouncer, Imported};
pub use postgres_url::has_scheme as is_postgres_url;
pub use report::{Code, Report};
pub use settings::{Layer, Scope, Setting, Settings};
pub use show::{changed_unreloadable, effective, reference, show_config, told, Change, ConfigRow};
pub use tls::{TlsNegotiation, TlsVersion, TlsVersions};
pub use value::{duration_text, size_text, Kind, Value};

/// Names of databases that are the console.
pub const CONSOLE_DATABASES: [&str; 3] = ["pondage", "pgbouncer", "admin"];

pub fn is_console(database: &str) -> bool {
    CONSOLE_DATABASES.contains(&database)
}

/// Everything that was configured, valid.
#[derive(Debug)]
pub struct Config {
    pub listen: Listen,
    pub runtime: Runtime,
    pub auth: Auth,
    /// Defaults of every database and user (`[pool]`), nested under the next two.
    pub pool: PoolOptions,
    /// By the name that clients ask for; `*` takes what no other name matches.
    pub databases: BTreeMap<String, Database>,
    /// `[users.NAME]`.
    pub users: BTreeMap<String, User>,
    pub cache: CacheConfig,
    /// `[procedures."schema.name"]`.
    pub procedures: BTreeMap<String, ProcedureOptions>,
    pub redis: Redis,
    pub telemetry: Telemetry,
    /// The file it came from, for RELOAD and for messages.
    pub origin: Origin,
    /// What was said and where, for SHOW CONFIG and `check`.
    pub settings: Settings,
    /// What the log says once when this comes into force.
    pub notices: Vec<String>,
    pub(crate) inputs: Inputs,
}

/// Where a configuration came from, and so where RELOAD looks again.
#[derive(Debug, Clone)]
pub enum Origin {
    File(PathBuf),
    /// `pondage URL` and `pondage demo`.
    CommandLine,
}

#[derive(Debug, Clone)]
pub struct Listen {
    pub postgres: Vec<Address>,
    /// For clients of proxies, who begin with the PROXY protocol; none: there is no such door.
    pub proxied: Vec<SocketAddr>,
    /// Where these proxies are.
    pub proxies: Vec<Net>,
    /// For Redis clients; none: there is no such door.
    pub redis: Vec<SocketAddr>,
    pub http: Option<SocketAddr>,
    /// What browsers may call it, beside `localhost` and addresses.
    pub http_names: Vec<String>,
    pub tls: ListenTls,
    /// Permission bits of Unix sockets, default 0o777 as PostgreSQL's.
    pub unix_socket_mode: u32,
    /// Their group, by name or number.
    pub unix_socket_group: Option<String>,
    /// Addresses may be other processes' as well (`SO_REUSEPORT`).
    pub reuse_port: bool,
    /// Connections the kernel holds before they are accepted (`listen(2)`).
    pub backlog: u32,
    pub errors: Words,
}

/// In whose words clients are told what Pondage itself refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Words {
    #[default]
    Pondage,
    /// PgBouncer's, where it has some.
    Pgbouncer,
}

impl Listen {
    /// All doors for PostgreSQL clients that come over a network.
    pub fn tcp(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let own = self.postgres.iter().filter_map(|address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Unix { .. } => None,
        });
        own.chain(self.proxied.iter().copied())
    }

    /// Whether a proxy may be there.
    pub fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|net| net.has(address.to_canonical()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    /// The socket `DIR/.s.PGSQL.PORT`, named as libpq looks for it.
    Unix {
        directory: PathBuf,
        port: u16,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenTlsMode {
    Disable,
    Prefer,
    Require,
    /// `require`, and the client shows a certificate that `client_ca` signed.
    VerifyClient,
}

#[derive(Debug, Clone)]
pub struct ListenTls {
    pub mode: ListenTlsMode,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub client_ca: Option<PathBuf>,
    pub versions: TlsVersions,
}

#[derive(Debug, Clone)]
pub struct Runtime {
    /// Data-plane threads.
    pub workers: usize,
    /// Clients in all, over all workers; beyond it a client is told 53300.
    pub max_clients: u32,
    /// Servers of all pools, over all workers.
    pub max_servers: Option<u32>,
    /// Others who may know the key of a cancel request.
    pub peers: Vec<Peer>,
    /// Of each database and each user that says nothing else; the console is a database, too.
    pub max_database_clients: Option<u32>,
    pub max_user_clients: Option<u32>,
    pub max_user_servers: Option<u32>,
    pub shutdown_timeout: Duration,
    pub suspend_timeout: Duration,
    /// A client has this long to log in.
    pub login_timeout: Duration,
    /// How long a process that another has taken over from serves its clients.
    pub upgrade_timeout: Duration,
    pub pid_file: Option<PathBuf>,
    /// Where a new process takes over.
    pub control_socket: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// SCRAM-SHA-256; a secret that can't do it (md5) falls back to md5 as PostgreSQL's `md5` does.
    Scram,
    /// SCRAM-SHA-256 and nothing else.
    ScramOnly,
    Md5,
    /// The password in clear text (inside TLS, one hopes).
    Password,
    Trust,
    /// The same, and a client is whom its database works as.
    Any,
    /// The subject of the client's certificate is its user's name, or mapped to it.
    Cert,
    /// So is the owner of the process at the other end of a Unix socket.
    Peer,
    /// As the lines of [`Auth::hba`] say.
    Hba,
}

#[derive(Debug, Clone)]
pub struct Auth {
    pub method: AuthMethod,
    /// Nobody comes in whose secret is known nowhere, also where none has to be shown.
    pub known_only: bool,
    /// Users of `users_file`, read with the configuration.
    pub file_users: BTreeMap<String, Secret>,
    pub users_file: Option<PathBuf>,
    /// Read with the configuration; there with the method `hba`.
    pub hba: Option<Arc<Rules>>,
    /// Of `ident_file`, read with the configuration.
    pub maps: Arc<Maps>,
    /// The map that the methods `cert` and `peer` use.
    pub ident_map: Option<String>,
    /// For users of the console; databases have theirs, which may be this one.
    pub query: Option<AuthQuery>,
    /// May run every console command.
    pub admin_users: Vec<String>,
    /// May run SHOW.
    pub stats_users: Vec<String>,
}

/// `SELECT user, secret [, valid_until] ... WHERE user = $1`, run as `user`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthQuery {
    pub sql: Arc<str>,
    pub user: String,
    /// Where it runs, as clients name it; none: in the one the client asks for.
    pub database: Option<String>,
    /// How long what it has found is used. Zero: once.
    pub cache: Duration,
}

#[derive(Debug, Clone)]
pub struct User {
    pub secret: Option<Secret>,
    pub options: PoolOptions,
    /// Over all databases.
    pub max_client_connections: Option<u32>,
    pub max_server_connections: Option<u32>,
}

#[derive(Debug, Clone)]
pub struct Database {
    pub upstream: UpstreamOptions,
    pub options: PoolOptions,
    /// `[databases.X.users.Y]`.
    pub users: BTreeMap<String, PoolOptions>,
    pub max_client_connections: Option<u32>,
    pub max_server_connections: Option<u32>,
    pub disabled: bool,
    /// Who it is asked for users that are nowhere else.
    pub auth_query: Option<AuthQuery>,
    /// Of statements that are named in the configuration.
    pub caches: Vec<Definition>,
    /// Tables that are mirrored whatever is asked.
    pub mirrors: Vec<MirrorDefinition>,
}

/// What a database section says about its server; what is absent follows the client.
#[derive(Debug, Clone)]
pub struct UpstreamOptions {
    pub host: Host,
    pub port: u16,
    pub several: Several,
    /// None: the name the client asked for.
    pub dbname: Option<String>,
    /// None: the client's user. Some: the forced user.
    pub user: Option<String>,
    pub password: Option<String>,
    pub tls: ServerTls,
    pub protocol: ServerProtocol,
    pub connect_query: Option<String>,
    pub application_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name or an address. `localhost` uses the server's Unix socket when it is there.
    Tcp(String),
    /// The directory of a Unix socket.
    Unix(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerTlsMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The newest protocol that servers are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerProtocol {
    V3_0,
    V3_2,
    Latest,
}

/// Whether SCRAM towards a server is bound to its TLS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChannelBinding {
    Disable,
    /// Where both ends can.
    Prefer,
    /// A server is not used without.
    Require,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerTls {
    pub mode: ServerTlsMode,
    /// None: the system's roots.
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub binding: ChannelBinding,
    pub negotiation: TlsNegotiation,
    pub versions: TlsVersions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolMode {
    Session,
    Transaction,
    Statement,
}

/// Where what LISTEN asks for is, in transaction and statement mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenMode {
    /// With the server that happens to run it.
    Server,
    /// With the client: one connection listens for all of a database.
    Shared,
}

/// How statements of different clients may share a server's round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coalesce {
    Off,
    /// Back to back on one server, each in its own transaction.
    Pipeline,
    /// And reads of the extended protocol behind one Sync.
    Batch,
}

/// Which reads are answered from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheMode {
    Off,
    /// None; what `Auto` would have answered is counted.
    Advise,
    /// Those that somebody named.
    Manual,
    /// Those that can be, once they come again.
    Auto,
}

/// What an answer from memory promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Freshness {
    /// No less than what this client has written or read.
    Session,
    /// No less than what was committed when the statement came.
    Strict,
    /// No less than what was committed `max_lag` ago.
    Bounded,
}

/// What can be said for all, per database, per user and per user of a database; the nearest wins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PoolOptions {
    pub mode: Option<PoolMode>,
    pub pool_size: Option<u32>,
    pub min_pool_size: Option<u32>,
    pub reserve_pool_size: Option<u32>,
    pub reserve_pool_timeout: Option<Duration>,
    pub wait_timeout: Option<Duration>,
    pub wait_notify: Option<Duration>,
    pub connect_timeout: Option<Duration>,
    pub server_login_retry: Option<Duration>,
    pub server_lifetime: Option<Duration>,
    pub server_idle_timeout: Option<Duration>,
    pub server_check_delay: Option<Duration>,
    pub server_check_query: Option<String>,
    pub server_reset_query: Option<String>,
    pub server_reset_always: Option<bool>,
    pub server_fast_close: Option<bool>,
    pub server_round_robin: Option<bool>,
    pub max_prepared_statements: Option<u32>,
    pub max_pinned: Option<u32>,
    pub query_timeout: Option<Duration>,
    pub transaction_timeout: Option<Duration>,
    pub idle_transaction_timeout: Option<Duration>,
    pub client_idle_timeout: Option<Duration>,
    pub application_name_add_host: Option<bool>,
    pub ignore_startup_parameters: Option<Vec<String>>,
    pub refuse_simple: Option<bool>,
    pub listen: Option<ListenMode>,
    pub coalesce: Option<Coalesce>,
    pub prepare_simple: Option<bool>,
    pub coalesce_writes: Option<bool>,
    pub procedures: Option<Calls>,
    pub coalesce_depth: Option<u32>,
    pub coalesce_short: Option<Duration>,
    pub coalesce_stall: Option<Duration>,
    pub cache: Option<CacheMode>,
    pub cache_freshness: Option<Freshness>,
    pub cache_max_lag: Option<Duration>,
}

/// The read cache, where pools say nothing else. Sizes are in bytes.
#[derive(Debug, Clone)]
pub struct CacheConfig {
    pub mode: CacheMode,
    pub freshness: Freshness,
    /// Of the stream; one that is further behind answers nothing.
    pub max_lag: Duration,
    pub memory: u64,
    /// Of `memory`, for mirrors of tables.
    pub mirror_memory: u64,
    /// As whom streams log in; none: as the database's user.
    pub user: Option<String>,
    /// None: the secret that `user` has in the configuration.
    pub password: Option<Secret>,
    pub publication: String,
    /// What the server may keep for one stream.
    pub slot_max_wal: u64,
    /// How long a read waits for the stream. Zero: not at all.
    pub wait: Duration,
}

/// Which calls of functions and procedures travel in lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Calls {
    Off,
    /// Those of which somebody has said something.
    Declared,
    /// And those whose body tells a key.
    Auto,
}

/// How calls of a function or procedure travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcedureMode {
    /// As all statements do.
    Off,
    /// Those with one key one behind the other, each with its own commit.
    Lane,
    /// And with one flush for all.
    Train,
    /// In one transaction.
    Batch,
}

/// When what a call has done is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DurableAck {
    /// Before its client hears of it.
    Tail,
    /// Before anybody sees it.
    Each,
}

/// What is said of a function or procedure; none: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcedureOptions {
    /// Parameters whose values tell which calls would wait for one another.
    pub key: Vec<String>,
    /// Others that name rows of the same kind; as many as `key`, or a multiple.
    pub also: Vec<String>,
    pub mode: Option<ProcedureMode>,
    pub durable_ack: Option<DurableAck>,
    pub max_train: Option<u32>,
    pub retry: Option<u32>,
}

/// What Redis clients find, and within which bounds. Sizes are in bytes.
#[derive(Debug, Clone)]
pub struct Redis {
    /// The section of `databases` that has the data. None only where there is no door.
    pub database: Option<String>,
    /// As whom our own connections log in; none: as the database's user.
    pub user: Option<String>,
    /// Who a client is that names nobody.
    pub default_user: Option<String>,
    /// Who may come in; empty: all.
    pub users: Vec<String>,
    /// Logical databases.
    pub databases: u32,
    /// Those among them that are answered before a flush.
    pub async_databases: Vec<u32>,
    /// Those that write a journal first.
    pub journal_databases: Vec<u32>,
    pub writers: u32,
    pub memory: u64,
    pub queue_limit: u64,
    pub journal_limit: u64,
    pub max_clients: u32,
    pub output_limit: u64,
    pub value_limit: u32,
    /// Zero: never.
    pub slowlog_threshold: Duration,
    pub slowlog_length: u32,
    pub lua_time_limit: Duration,
    pub notify_keyspace_events: String,
}

#[derive(Debug, Clone)]
pub struct Telemetry {
    pub log_level: String,
    /// Beside standard error.
    pub log_file: Option<PathBuf>,
    pub log_format: LogFormat,
    pub log_connections: bool,
    pub log_disconnections: bool,
    /// Period of the averages in SHOW STATS.
    pub stats_period: Duration,
    /// A line in the log at the end of each.
    pub log_stats: bool,
    /// Where sampled statements are told.
    pub otlp: Option<Arc<otlp::Otlp>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Auto,
    Text,
    Logfmt,
    Json,
    /// Lines as PgBouncer's.
    Pgbouncer,
}

/// What one pool, a (database, user) pair, lives by. Durations of zero mean: never.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolConfig {
    /// As the client names it.
    pub database: String,
    /// The user that logged in at Pondage.
    pub user: String,
    pub mode: PoolMode,
    pub pool_size: u32,
    pub min_pool_size: u32,
    pub reserve_pool_size: u32,
    pub reserve_pool_timeout: Duration,
    pub wait_timeout: Duration,
    pub wait_notify: Duration,
    pub connect_timeout: Duration,
    pub server_login_retry: Duration,
    pub server_lifetime: Duration,
    pub server_idle_timeout: Duration,
    pub server_check_delay: Duration,
    /// Empty: an empty query.
    pub server_check_query: String,
    pub server_reset_query: String,
    pub server_reset_always: bool,
    pub server_fast_close: bool,
    pub server_round_robin: bool,
    /// Per server; 0: statements are not followed, as PgBouncer's max_prepared_statements = 0.
    pub max_prepared_statements: u32,
    /// Clients that may keep a server beyond their transaction; 0: none.
    pub max_pinned: u32,
    pub query_timeout: Duration,
    pub transaction_timeout: Duration,
    pub idle_transaction_timeout: Duration,
    pub client_idle_timeout: Duration,
    /// PostgreSQL is told of clients' addresses in their application_name.
    pub application_name_add_host: bool,
    /// Start-up parameters that are dropped.
    pub ignore_startup_parameters: Vec<String>,
    /// The simple query protocol is not spoken.
    pub refuse_simple: bool,
    pub listen: ListenMode,
    pub coalesce: Coalesce,
    /// Simple queries seen often are sent as prepared statements.
    pub prepare_simple: bool,
    /// Autocommit writes share a flush.
    pub coalesce_writes: bool,
    pub procedures: Calls,
    /// Statements in flight on one server.
    pub coalesce_depth: u32,
    /// A statement joins others while 9 of 10 of its kind take no longer.
    pub coalesce_short: Duration,
    /// What waits behind a statement that takes longer goes to another server.
    pub coalesce_stall: Duration,
    pub cache: CacheMode,
    pub cache_freshness: Freshness,
    pub cache_max_lag: Duration,
    pub max_database_clients: Option<u32>,
    pub max_database_servers: Option<u32>,
    pub max_user_servers: Option<u32>,
    pub disabled: bool,
    pub upstream: Upstream,
}

/// Where and as whom a pool's servers log in.
#[derive(Debug, Clone, PartialEq)]
pub struct Upstream {
    pub host: Host,
    pub port: u16,
    pub several: Several,
    pub database: String,
    pub user: String,
    /// None: only trust, peer and certificates can work.
    pub password: Option<Secret>,
    pub tls: ServerTls,
    pub protocol: ServerProtocol,
    pub connect_query: Option<String>,
    pub application_name: Option<String>,
}

/// Why there is no pool for a (database, user).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// 3D000
    UnknownDatabase,
}

impl Config {
    /// The pool of a client that asks for `database` as `user`. The wildcard database `*` takes
    /// names that no section has.
    pub fn pool(&self, database: &str, user: &str) -> Result<Arc<PoolConfig>, Refusal> {
        resolve::pool(self, database, user)
    }

    /// By whom that pool is named.
    pub fn pool_user<'a>(&'a self, database: &str, user: &'a str) -> &'a str {
        resolve::pool_user(self, database, user)
    }

    /// How users are looked up that the configuration does not have, when a client asks for
    /// `database`.
    pub fn auth_query(&self, database: &str) -> Option<&AuthQuery> {
        resolve::auth_query(self, database)
    }

    /// What the look-up of a console's user lives by, if there is any.
    pub fn console_pool(&self, console: &str) -> Option<Arc<PoolConfig>> {
        resolve::console(self, console)
    }

    /// PgBouncer's way of things.
    pub fn is_ini(&self) -> bool {
        self.inputs.is_ini()
    }

    /// The database and the user of the URL that stands for a configuration, if one does and says
    /// who. libpq's default for a database is the user's name.
    pub fn url(&self) -> Option<(&str, &str)> {
        if !self.inputs.are_a_url() {
            return None;
        }
        let user = self.databases.get("*")?.upstream.user.as_deref()?;
        let named = self.databases.keys().map(String::as_str).find(|name| *name != "*");
        Some((named.unwrap_or(user), user))
    }

    /// How many clients may log in as this user.
    pub fn max_clients_of(&self, user: &str) -> Option<u32> {
        let own = self.users.get(user).and_then(|section| section.max_client_connections);
        own_or(own, self.runtime.max_user_clients)
    }

    /// How many servers there may be that work for this user.
    pub fn max_servers_of(&self, user: &str) -> Option<u32> {
        let own = self.users.get(user).and_then(|section| section.max_server_connections);
        own_or(own, self.runtime.max_user_servers)
    }

    /// How many clients a database may have that says this of itself.
    pub fn max_clients_in(&self, own: Option<u32>) -> Option<u32> {
        own_or(own, self.runtime.max_database_clients)
    }

    /// Where the data of Redis clients are, and as whom to log in there. None without that door.
    pub fn redis_pool(&self) -> Option<Arc<PoolConfig>> {
        if self.listen.redis.is_empty() {
            return None;
        }
        resolve::redis(self)
    }

    /// Whether any pool of `database` may cache.
    pub fn caches(&self, database: &str) -> bool {
        resolve::caches(self, database)
    }

    /// Where and as whom the changes of `database` are followed; any of its pools may cache.
    pub fn stream_pool(&self, database: &str) -> Option<Arc<PoolConfig>> {
        resolve::stream(self, database)
    }

    /// The stored secret of a user from the configuration or the users file.
    pub fn secret(&self, user: &str) -> Option<&Secret> {
        self.users
            .get(user)
            .and_then(|known| known.secret.as_ref())
            .or_else(|| self.auth.file_users.get(user))
    }

    pub fn is_admin(&self, user: &str) -> bool {
        self.auth.admin_users.iter().any(|name| name == user)
    }

    pub fn is_stats(&self, user: &str) -> bool {
        self.auth.stats_users.iter().any(|name| name == user)
    }
}

/// A limit of one, or of all of them; an own one of 0 is none.
fn own_or(own: Option<u32>, all: Option<u32>) -> Option<u32> {
    own.or(all).filter(|limit| *limit > 0)
}
