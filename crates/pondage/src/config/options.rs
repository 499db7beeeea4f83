//! Every option, once. The table feeds the parser (known keys, types, nearest name), the names of
//! environment variables, `SHOW CONFIG`, the output of `pondage check` and the reference page
//! `docs/configuration.md`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::value::{Kind, Value};
use super::{
    AuthMethod, Balance, CacheMode, Calls, ChannelBinding, Coalesce, DurableAck, Freshness,
    ListenMode, ListenTlsMode, LogFormat, PoolMode, ProcedureMode, ServerProtocol, ServerTlsMode,
    SessionAttrs, TlsNegotiation, TlsVersion, Words,
};

/// Where an option may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    Listen,
    ListenTls,
    Runtime,
    Auth,
    Pool,
    /// `[databases.NAME]`
    Database,
    /// `[databases.NAME.users.NAME]`
    DatabaseUser,
    /// `[users.NAME]`
    User,
    Cache,
    /// `[procedures."schema.name"]`
    Procedure,
    Redis,
    Telemetry,
}

impl Section {
    pub const ALL: [Section; 12] = [
        Section::Listen,
        Section::ListenTls,
        Section::Runtime,
        Section::Auth,
        Section::Pool,
        Section::Database,
        Section::DatabaseUser,
        Section::User,
        Section::Cache,
        Section::Procedure,
        Section::Redis,
        Section::Telemetry,
    ];

    /// As it is written in the file, names as `NAME`.
    pub fn path(self) -> &'static str {
        match self {
            Section::Listen => "listen",
            Section::ListenTls => "listen.tls",
            Section::Runtime => "runtime",
            Section::Auth => "auth",
            Section::Pool => "pool",
            Section::Database => "databases.NAME",
            Section::DatabaseUser => "databases.NAME.users.NAME",
            Section::User => "users.NAME",
            Section::Cache => "cache",
            Section::Procedure => "procedures.NAME",
            Section::Redis => "redis",
            Section::Telemetry => "telemetry",
        }
    }

    /// The same for people: the name of a procedure has a dot, so it is in quotes.
    pub fn written(self) -> &'static str {
        match self {
            Section::Procedure => "procedures.\"SCHEMA.NAME\"",
            other => other.path(),
        }
    }

    pub fn has_name(self) -> bool {
        matches!(
            self,
            Section::Database | Section::DatabaseUser | Section::User | Section::Procedure
        )
    }

    /// For the reference page.
    pub fn about(self) -> &'static str {
        match self {
            Section::Listen => "Where clients come in.",
            Section::ListenTls => "TLS towards clients.",
            Section::Runtime => "The process as a whole.",
            Section::Auth => "Who may come in.",
            Section::Pool => {
                "Defaults of every pool. The same keys may stand in `[databases.NAME]`, \
                 `[users.NAME]` and `[databases.NAME.users.NAME]`; the nearest wins: user of a \
                 database, then user, then database, then `[pool]`."
            }
            Section::Database => {
                "One per name that clients may ask for, and `[databases.\"*\"]` for every other \
                 name. The names `pondage`, `pgbouncer` and `admin` are the console's. Takes the \
                 keys of `[pool]` too."
            }
            Section::DatabaseUser => "What differs for one user of one database.",
            Section::User => {
                "Users that may log in, beside those of `auth.users_file` and `auth.query`, and \
                 what differs for them. Takes the keys of `[pool]` too."
            }
            Section::Cache => {
                "Results of reads, kept right by what PostgreSQL replicates \
                 ([The read cache](cache.md)). Databases and users may differ: `cache`, \
                 `cache_freshness` and `cache_max_lag` of `[pool]`."
            }
            Section::Procedure => {
                "Functions and procedures whose calls would fight for the same rows, by schema and \
                 name: `[procedures.\"public.payment\"]` ([Procedure calls](procedures.md)). It \
                 holds for all databases, and goes before what `COMMENT ON FUNCTION` says there."
            }
            Section::Redis => {
                "What Redis clients find behind `listen.redis`: their data are rows of the schema \
                 `redis` in one of the databases."
            }
            Section::Telemetry => "What Pondage tells about itself.",
        }
    }
}

/// The default of an option, typed as the code that needs it has it.
#[derive(Debug, Clone, Copy)]
pub enum Preset {
    /// Absent unless given.
    None,
    Flag(bool),
    Count(u32),
    Octal(u32),
    Duration(Duration),
    Text(&'static str),
    Address(SocketAddr),
    /// A list of one.
    Addresses(SocketAddr),
    NoNames,
    NoNumbers,
    /// No address.
    Off,
    Size(u64),
    Auto,
}

#[derive(Debug)]
pub struct Row {
    pub sections: &'static [Section],
    pub name: &'static str,
    pub kind: Kind,
    pub default: Preset,
    /// RELOAD puts a new value into force; otherwise it waits for a restart.
    pub reloadable: bool,
    /// PgBouncer's names for it.
    pub pgbouncer: &'static [&'static str],
    pub help: &'static str,
}

impl Row {
    pub fn default_value(&self) -> Option<Value> {
        Some(match self.default {
            Preset::None => return None,
            Preset::Flag(on) => Value::Flag(on),
            Preset::Count(count) => Value::Count(count),
            Preset::Octal(bits) => Value::Permissions(bits),
            Preset::Duration(duration) => Value::Duration(duration),
            Preset::Text(text) => Value::Text(text.to_owned()),
            Preset::Address(address) => Value::SocketAddress(Some(address)),
            Preset::Addresses(address) => Value::Addresses(vec![super::Address::Tcp(address)]),
            Preset::NoNames => Value::Names(Vec::new()),
            Preset::NoNumbers => Value::Numbers(Vec::new()),
            Preset::Off => Value::SocketAddresses(Vec::new()),
            Preset::Size(bytes) => Value::Size(bytes),
            Preset::Auto => Value::Workers(None),
        })
    }

    /// `PONDAGE_RUNTIME__MAX_CLIENTS`, names as `NAME`.
    pub fn variable(&self, section: Section) -> String {
        let path = section.path().replace('.', "__");
        format!("{VARIABLE_PREFIX}{path}__{}", self.name).to_ascii_uppercase()
    }
}

pub const VARIABLE_PREFIX: &str = "PONDAGE_";

/// The row of `name` in `section`.
pub fn find(section: Section, name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name && row.sections.contains(&section))
}

/// The rows of a section in the order of the table.
pub fn rows(section: Section) -> impl Iterator<Item = &'static Row> {
    TABLE.iter().filter(move |row| row.sections.contains(&section))
}

/// Defaults, where code and table take them from.
pub mod default {
    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    pub const LISTEN_PORT: u16 = 6432;
    pub const LISTEN_POSTGRES: SocketAddr = SocketAddr::new(LOOPBACK, LISTEN_PORT);
    pub const LISTEN_HTTP: SocketAddr = SocketAddr::new(LOOPBACK, 6433);
    /// Source: PostgreSQL documentation, `unix_socket_permissions`.
    pub const UNIX_SOCKET_MODE: u32 = 0o777;
    pub const REUSE_PORT: bool = false;
    /// The kernel lowers it to `net.core.somaxconn`.
    pub const BACKLOG: u32 = 1024;
    pub const ERRORS: Words = Words::Pondage;

    pub const MAX_CLIENTS: u32 = 10_000;
    pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(25);
    pub const UPGRADE_TIMEOUT: Duration = Duration::from_secs(3600);
    /// As PgBouncer.
    pub const SUSPEND_TIMEOUT: Duration = Duration::from_secs(10);
    pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);

    pub const AUTH_METHOD: AuthMethod = AuthMethod::Scram;
    pub const KNOWN_ONLY: bool = false;
    /// With `query_user` and without `query`.
    pub const AUTH_QUERY: &str = "SELECT rolname, rolpassword, rolvaliduntil \
                                  FROM pg_catalog.pg_authid WHERE rolname = $1 AND rolcanlogin";

    /// A role that is changed or dropped is so at once.
    pub const AUTH_QUERY_CACHE: Duration = Duration::ZERO;

    pub const MODE: PoolMode = PoolMode::Transaction;
    pub const POOL_SIZE: u32 = 20;
    pub const MIN_POOL_SIZE: u32 = 0;
    pub const RESERVE_POOL_SIZE: u32 = 0;
    pub const RESERVE_POOL_TIMEOUT: Duration = Duration::from_secs(5);
    pub const WAIT_TIMEOUT: Duration = Duration::from_secs(120);
    pub const WAIT_NOTIFY: Duration = Duration::ZERO;
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
    pub const SERVER_LOGIN_RETRY: Duration = Duration::from_secs(1);
    pub const SERVER_LIFETIME: Duration = Duration::from_secs(3600);
    pub const SERVER_IDLE_TIMEOUT: Duration = Duration::from_secs(600);
    pub const HOST_CHECK_INTERVAL: Duration = Duration::from_secs(1);
    pub const SERVER_CHECK_DELAY: Duration = Duration::from_secs(30);
    pub const SERVER_CHECK_QUERY: &str = "";
    pub const SERVER_RESET_QUERY: &str = "DISCARD ALL";
    pub const SERVER_RESET_ALWAYS: bool = false;
    pub const SERVER_FAST_CLOSE: bool = false;
    pub const SERVER_ROUND_ROBIN: bool = false;
    pub const REFUSE_SIMPLE: bool = false;
    pub const MAX_PREPARED_STATEMENTS: u32 = 200;
    pub const QUERY_TIMEOUT: Duration = Duration::ZERO;
    pub const TRANSACTION_TIMEOUT: Duration = Duration::ZERO;
    pub const IDLE_TRANSACTION_TIMEOUT: Duration = Duration::ZERO;
    pub const CLIENT_IDLE_TIMEOUT: Duration = Duration::ZERO;
    pub const LISTEN: ListenMode = ListenMode::Shared;
    pub const COALESCE: Coalesce = Coalesce::Batch;
    pub const APPLICATION_NAME_ADD_HOST: bool = false;
    pub const PREPARE_SIMPLE: bool = true;
    pub const COALESCE_WRITES: bool = false;
    pub const COALESCE_DEPTH: u32 = 64;
    pub const COALESCE_SHORT: Duration = Duration::from_millis(1);
    pub const COALESCE_STALL: Duration = Duration::from_millis(20);

    pub const CACHE_MODE: CacheMode = CacheMode::Off;
    pub const CACHE_FRESHNESS: Freshness = Freshness::Session;
    pub const CACHE_MAX_LAG: Duration = Duration::from_secs(5);
    pub const CACHE_MEMORY: u64 = 256 << 20;
    pub const CACHE_MIRROR_MEMORY: u64 = 192 << 20;
    pub const CACHE_PUBLICATION: &str = "pondage";
    pub const CACHE_SLOT_MAX_WAL: u64 = 1 << 30;
    /// A commit is in the stream about a millisecond after it is acknowledged.
    pub const CACHE_WAIT: Duration = Duration::from_millis(2);

    pub const CALLS: Calls = Calls::Declared;
    pub const PROCEDURE_MODE: ProcedureMode = ProcedureMode::Train;
    pub const DURABLE_ACK: DurableAck = DurableAck::Tail;
    pub const MAX_TRAIN: u32 = 64;
    pub const PROCEDURE_RETRY: u32 = 3;

    pub const SERVER_HOST: &str = "localhost";
    pub const SERVER_PORT: u16 = 5432;
    /// libpq's default too.
    pub const SERVER_TLS_MODE: ServerTlsMode = ServerTlsMode::Prefer;
    pub const TLS_NEGOTIATION: TlsNegotiation = TlsNegotiation::Postgres;
    /// libpq's default: there are servers, and poolers before them, that close when asked for more.
    pub const SERVER_PROTOCOL: ServerProtocol = ServerProtocol::V3_0;
    pub const CHANNEL_BINDING: ChannelBinding = ChannelBinding::Prefer;
    pub const DISABLED: bool = false;

    /// As Redis.
    pub const REDIS_DATABASES: u32 = 16;
    pub const REDIS_MEMORY: u64 = 256 << 20;
    /// One is idle while another commits.
    pub const REDIS_WRITERS: u32 = 2;
    /// `maxclients` of Redis.
    pub const REDIS_MAX_CLIENTS: u32 = 10_000;
    /// What Redis lets a subscriber have waiting (`client-output-buffer-limit`).
    pub const REDIS_OUTPUT_LIMIT: u64 = 32 << 20;
    /// `proto-max-bulk-len` of Redis.
    pub const REDIS_VALUE_LIMIT: u64 = wire::resp::request::BULK_BYTES_MAX as u64;
    pub const REDIS_QUEUE_LIMIT: u64 = 64 << 20;
    pub const REDIS_JOURNAL_LIMIT: u64 = 256 << 20;
    /// `slowlog-log-slower-than` and `slowlog-max-len` of Redis.
    pub const REDIS_SLOWLOG_THRESHOLD: Duration = Duration::from_millis(10);
    pub const REDIS_SLOWLOG_LENGTH: u32 = 128;
    /// `busy-reply-threshold` of Redis.
    pub const REDIS_LUA_TIME_LIMIT: Duration = Duration::from_secs(5);

    pub const LOG_LEVEL: &str = "info";
    pub const LOG_FORMAT: LogFormat = LogFormat::Auto;
    /// PostgreSQL's default; a line per connection costs more than a short query.
    pub const LOG_CONNECTIONS: bool = false;
    pub const LOG_DISCONNECTIONS: bool = false;
    pub const OTLP_TIMEOUT: Duration = Duration::from_secs(10);
    pub const TRACE_ONE_IN: u32 = 1000;
    pub const STATS_PERIOD: Duration = Duration::from_secs(60);
    pub const LOG_STATS: bool = false;
}

/// Ceilings, checked when the configuration is read.
pub mod limit {
    /// A worker is named by a byte; more threads than this only wake one another up.
    pub const WORKERS: u32 = 64;
    /// A process has at most 2^20 file descriptors on a default Linux.
    pub const CLIENTS: u32 = 1_000_000;
    /// PostgreSQL's `max_connections` ends at 262143.
    pub const SERVERS: u32 = 262_143;
    pub const PREPARED_STATEMENTS: u32 = 1_000_000;
    pub const DEPTH: u32 = 1024;
    pub const TRAIN: u32 = 256;
    pub const RETRY: u32 = 100;
    pub const BACKLOG: u32 = 65_535;
    /// Logical databases: a row has their number as an `int2`.
    pub const REDIS_DATABASES: u32 = 32_768;
    pub const REDIS_WRITERS: u32 = 64;
    pub const SLOWLOG: u32 = 100_000;
    /// As much as the limits of memory can mean on any machine: a tebibyte.
    pub const BYTES: u64 = 1 << 40;
}

const POOLS: &[Section] = &[Section::Pool, Section::Database, Section::DatabaseUser, Section::User];

const SERVERS: Kind = Kind::Count { least: 0, most: limit::SERVERS };
const CLIENTS: Kind = Kind::Count { least: 0, most: limit::CLIENTS };
const NEVER: Kind = Kind::Duration { zero: Some("never") };

/// A row that RELOAD puts into force; [`fixed`] makes it one that waits for a restart.
const fn row(
    sections: &'static [Section],
    name: &'static str,
    kind: Kind,
    default: Preset,
    pgbouncer: &'static [&'static str],
    help: &'static str,
) -> Row {
    Row { sections, name, kind, default, reloadable: true, pgbouncer, help }
}

const fn fixed(mut row: Row) -> Row {
    row.reloadable = false;
    row
}

const LISTEN: &[Section] = &[Section::Listen];
const LISTEN_TLS: &[Section] = &[Section::ListenTls];
const RUNTIME: &[Section] = &[Section::Runtime];
const AUTH: &[Section] = &[Section::Auth];
const DATABASE: &[Section] = &[Section::Database];
const DATABASE_AND_USER: &[Section] = &[Section::Database, Section::User];
const USER: &[Section] = &[Section::User];
const CACHE: &[Section] = &[Section::Cache];
const PROCEDURE: &[Section] = &[Section::Procedure];
const REDIS: &[Section] = &[Section::Redis];
const TELEMETRY: &[Section] = &[Section::Telemetry];

#[rustfmt::skip] // One option, one paragraph.
pub static TABLE: &[Row] = &[
    fixed(row(LISTEN, "postgres", Kind::Addresses, Preset::Addresses(default::LISTEN_POSTGRES),
        &["listen_addr", "listen_port", "unix_socket_dir"],
        "Addresses for PostgreSQL clients: `\"127.0.0.1:6432\"`, `\"[::]:6432\"`, \
         `\"localhost:6432\"` (which is 127.0.0.1), `\"unix:/run/pondage\"` (the socket is \
         `.s.PGSQL.PORT` in that directory, with the port of the first TCP address) or \
         `\"unix:/run/pondage/.s.PGSQL.6433\"`.")),
    fixed(row(LISTEN, "proxied", Kind::SocketAddresses, Preset::Off, &[],
        "More addresses for PostgreSQL clients, who come through proxies that begin with the PROXY \
         protocol, such as `\"0.0.0.0:6434\"`, or `\"off\"`. Who begins otherwise is refused.")),
    row(LISTEN, "proxies", Kind::Networks, Preset::None, &[],
        "Where these proxies are: networks and addresses, such as `\"10.0.0.0/8\"`. Nobody else \
         may say where a client comes from."),
    fixed(row(LISTEN, "http", Kind::SocketAddress, Preset::Address(default::LISTEN_HTTP), &[],
        "Address of metrics, health checks and the [dashboard](dashboard.md), or `\"off\"`. The \
         dashboard is served on loopback addresses only.")),
    row(LISTEN, "http_names", Kind::Names, Preset::NoNames, &[],
        "Names that browsers may call the dashboard by, beside `localhost` and addresses."),
    fixed(row(LISTEN, "redis", Kind::SocketAddresses, Preset::Off, &[],
        "Addresses for Redis clients, such as `\"127.0.0.1:6379\"`, or `\"off\"`. With a \
         certificate in `[listen.tls]` they may speak TLS from their first byte.")),
    fixed(row(LISTEN, "unix_socket_mode", Kind::Permissions,
        Preset::Octal(default::UNIX_SOCKET_MODE), &["unix_socket_mode"],
        "Permission bits of Unix sockets, octal in quotes.")),
    fixed(row(LISTEN, "unix_socket_group", Kind::Name, Preset::None, &["unix_socket_group"],
        "The group of Unix sockets, by name or number.")),
    fixed(row(LISTEN, "reuse_port", Kind::Flag, Preset::Flag(default::REUSE_PORT),
        &["so_reuseport"],
        "Other processes that say the same may listen on the same addresses; the kernel shares \
         new connections out among them. The workers of one process need it not.")),
    fixed(row(LISTEN, "backlog", Kind::Count { least: 1, most: limit::BACKLOG },
        Preset::Count(default::BACKLOG), &["listen_backlog"],
        "Connections the kernel holds before they are accepted.")),
    row(LISTEN, "errors", Kind::Choice(Words::WORDS), Preset::Text(default::ERRORS.name()), &[],
        "In whose words PostgreSQL clients are told what Pondage itself refuses. `pgbouncer`: in \
         PgBouncer's, with its SQLSTATE (08P01), where it has some; Pondage's come as the detail."),

    row(LISTEN_TLS, "mode", Kind::Choice(ListenTlsMode::WORDS), Preset::None,
        &["client_tls_sslmode"],
        "`prefer`: TLS for clients that ask for it; `require`: for all; `verify-client`: for all, \
         with a certificate that `client_ca` signed. Without it: `prefer` when `cert` and `key` \
         are given, else `disable`."),
    row(LISTEN_TLS, "cert", Kind::Path, Preset::None, &["client_tls_cert_file"],
        "Certificate chain shown to clients, PEM."),
    row(LISTEN_TLS, "key", Kind::Path, Preset::None, &["client_tls_key_file"],
        "Its private key, PEM."),
    row(LISTEN_TLS, "client_ca", Kind::Path, Preset::None, &["client_tls_ca_file"],
        "Certificates that may have signed a client's, PEM."),
    row(LISTEN_TLS, "min_version", Kind::TlsVersion,
        Preset::Text(TlsVersion::V1_2.name()), &["client_tls_protocols"],
        "The oldest version of TLS that clients may speak, as PostgreSQL's \
         ssl_min_protocol_version."),
    row(LISTEN_TLS, "max_version", Kind::TlsVersion,
        Preset::Text(TlsVersion::V1_3.name()), &["client_tls_protocols"],
        "The newest one."),

    fixed(row(RUNTIME, "workers", Kind::Workers, Preset::Auto, &[],
        "Threads that move data. `\"auto\"`: one on two cores or fewer, else half the cores and \
         four at most, so that a PostgreSQL on the same machine keeps the rest.")),
    row(RUNTIME, "max_clients", Kind::Count { least: 1, most: limit::CLIENTS },
        Preset::Count(default::MAX_CLIENTS), &["max_client_conn"],
        "Clients in all; the next one is refused with 53300."),
    row(RUNTIME, "max_servers", SERVERS, Preset::None, &[],
        "Servers of all pools together; 0: no limit. When it is reached, pools whose clients wait \
         get their share from those that have more ([Sharing servers](pooling.md#sharing-servers))."),
    row(RUNTIME, "max_database_clients", CLIENTS, Preset::None, &["max_db_client_connections"],
        "Clients of each database that says nothing else, the console included (administrators \
         come in all the same); 0: no limit."),
    row(RUNTIME, "max_user_clients", CLIENTS, Preset::None, &["max_user_client_connections"],
        "Clients of each user that says nothing else, over all databases; 0: no limit."),
    row(RUNTIME, "max_user_servers", SERVERS, Preset::None, &["max_user_connections"],
        "Servers of each user that says nothing else, over all databases; 0: no limit."),
    row(RUNTIME, "shutdown_timeout", Kind::Duration { zero: Some("without bound") },
        Preset::Duration(default::SHUTDOWN_TIMEOUT), &[],
        "How long a shutdown waits for clients or servers."),
    row(RUNTIME, "upgrade_timeout", Kind::Duration { zero: Some("without bound") },
        Preset::Duration(default::UPGRADE_TIMEOUT), &[],
        "How long a process that another has taken over from serves the clients that it has; \
         then it shuts down."),
    row(RUNTIME, "suspend_timeout", Kind::Duration { zero: Some("without bound") },
        Preset::Duration(default::SUSPEND_TIMEOUT), &["suspend_timeout"],
        "How long SUSPEND waits until everything is written; who has not read it by then is \
         closed."),
    row(RUNTIME, "login_timeout", NEVER, Preset::Duration(default::LOGIN_TIMEOUT),
        &["client_login_timeout"],
        "A client that has not logged in by then is closed."),
    fixed(row(RUNTIME, "pid_file", Kind::Path, Preset::None, &["pidfile"],
        "Where to write the process id.")),
    fixed(row(RUNTIME, "control_socket", Kind::Path, Preset::None, &[],
        "A Unix socket by which a new process takes over from the one that runs, see \
         [Upgrade](operating.md#upgrade). Only this user and root get in.")),

    row(RUNTIME, "peers", Kind::Text, Preset::None, &[],
        "Other Pondages behind the same balancer, which may get cancel requests of this one's \
         clients, and this one theirs: `\"pooler-2:6432,unix:/run/other/.s.PGSQL.6432\"` \
         ([Several processes](operating.md#several-processes))."),

    row(AUTH, "method", Kind::Choice(AuthMethod::WORDS),
        Preset::Text(default::AUTH_METHOD.name()), &["auth_type"],
        "How clients log in. `scram` is SCRAM-SHA-256; a user whose stored secret is an md5 hash \
         is asked for md5 instead, because a hash can't do SCRAM. `password` is clear text: only \
         inside TLS. `scram-sha-256` never becomes md5. `trust` lets everybody in; `any`, too, and a \
         client is whom its database has as `user`, or an administrator at the console. `cert`: the certificate that the client shows, \
         signed by `client_ca` of `[listen.tls]`, has the user's name as its common name. `peer`: \
         the process at the other end of a Unix socket runs as a user of that name. `hba`: as \
         `hba_file` says."),
    row(AUTH, "known_only", Kind::Flag, Preset::Flag(default::KNOWN_ONLY), &[],
        "Where nothing is asked for (`trust`, `cert`, `peer`), a user still has to be one whose \
         secret the configuration, the users file or the database has. PgBouncer's way, and so \
         that of an ini file."),
    row(AUTH, "hba_file", Kind::Path, Preset::None, &["auth_hba_file"],
        "Who may come in from where and how, in the format of PostgreSQL's `pg_hba.conf`, for \
         the method `hba`."),
    row(AUTH, "ident_file", Kind::Path, Preset::None, &["auth_ident_file"],
        "Maps from names in certificates and of the operating system to users, in the format of \
         PostgreSQL's `pg_ident.conf`."),
    row(AUTH, "ident_map", Kind::Name, Preset::None, &[],
        "The map of `ident_file` that the methods `cert` and `peer` use; without it, names have \
         to be equal."),
    row(AUTH, "users_file", Kind::Path, Preset::None, &["auth_file"],
        "Users and secrets in the format of PgBouncer's userlist.txt: lines of \
         `\"user\" \"secret\"`, the secret a password, an md5 hash or a SCRAM verifier; quotes \
         inside are doubled; lines that start with `;` or `#` are comments."),
    row(AUTH, "query", Kind::Text, Preset::None, &["auth_query"],
        "Asks the database for users that are nowhere else. Takes the name as `$1` and returns \
         name, secret and, if there is a third column, until when the secret is valid. With \
         `query_user` alone, `pg_authid` is asked."),
    row(AUTH, "query_user", Kind::Name, Preset::None, &["auth_user"],
        "The user that runs `query`. Databases may have queries of their own: `auth_query` and what \
         follows it there."),
    row(AUTH, "query_database", Kind::Name, Preset::None, &["auth_dbname"],
        "The database that runs `query`, as clients name it; without it, the one the client asks \
         for."),
    row(AUTH, "query_cache", Kind::Duration { zero: Some("not at all") },
        Preset::Duration(default::AUTH_QUERY_CACHE), &[],
        "How long what `query` has found is used again. A password that is changed meanwhile, or a \
         role that is dropped, goes on for so long; see \
         [Users that are looked up](tls-and-authentication.md#users-that-are-looked-up)."),
    row(AUTH, "admin_users", Kind::Names, Preset::NoNames, &["admin_users"],
        "Users that may run every console command."),
    row(AUTH, "stats_users", Kind::Names, Preset::NoNames, &["stats_users"],
        "Users that may run SHOW in the console."),

    row(POOLS, "mode", Kind::Choice(PoolMode::WORDS), Preset::Text(default::MODE.name()),
        &["pool_mode"],
        "When a client gives its server back: at its end, after each transaction or after each \
         statement."),
    row(POOLS, "pool_size", Kind::Count { least: 1, most: limit::SERVERS },
        Preset::Count(default::POOL_SIZE), &["default_pool_size"],
        "Servers of one pool, that is of one database and user."),
    row(POOLS, "min_pool_size", SERVERS, Preset::Count(default::MIN_POOL_SIZE),
        &["min_pool_size"],
        "Servers that are kept open although idle: once a client has used the pool, or from the \
         start where the database says its `user`."),
    row(POOLS, "reserve_pool_size", SERVERS, Preset::Count(default::RESERVE_POOL_SIZE),
        &["reserve_pool_size"],
        "Servers beyond `pool_size` when clients wait for long."),
    row(POOLS, "reserve_pool_timeout", NEVER, Preset::Duration(default::RESERVE_POOL_TIMEOUT),
        &["reserve_pool_timeout"],
        "A client that waits this long may use the reserve."),
    row(POOLS, "wait_timeout", NEVER, Preset::Duration(default::WAIT_TIMEOUT),
        &["query_wait_timeout"],
        "A client that waited this long for a server is told 53300."),
    row(POOLS, "wait_notify", NEVER, Preset::Duration(default::WAIT_NOTIFY),
        &["query_wait_notify"],
        "A client that has waited this long for a server gets a notice that it does."),
    row(POOLS, "connect_timeout", NEVER, Preset::Duration(default::CONNECT_TIMEOUT),
        &["server_connect_timeout"],
        "Connecting and logging in to a server may take this long."),
    row(POOLS, "server_login_retry", Kind::Duration { zero: Some("at once") },
        Preset::Duration(default::SERVER_LOGIN_RETRY), &["server_login_retry"],
        "Pause after a server that could not be opened."),
    row(POOLS, "server_lifetime", NEVER, Preset::Duration(default::SERVER_LIFETIME),
        &["server_lifetime"],
        "A server older than this is closed when it is free."),
    row(POOLS, "server_idle_timeout", NEVER, Preset::Duration(default::SERVER_IDLE_TIMEOUT),
        &["server_idle_timeout"],
        "A server idle for this long is closed."),
    row(POOLS, "server_check_delay", NEVER, Preset::Duration(default::SERVER_CHECK_DELAY),
        &["server_check_delay"],
        "A server idle for this long is checked before it is lent."),
    row(POOLS, "server_check_query", Kind::Text, Preset::Text(default::SERVER_CHECK_QUERY),
        &["server_check_query"],
        "The check; empty: an empty query."),
    row(POOLS, "server_reset_query", Kind::Text, Preset::Text(default::SERVER_RESET_QUERY),
        &["server_reset_query"],
        "Run in session mode before a server changes hands; empty: nothing is run."),
    row(POOLS, "server_reset_always", Kind::Flag, Preset::Flag(default::SERVER_RESET_ALWAYS),
        &["server_reset_query_always"],
        "Run it in the other modes too."),
    row(POOLS, "server_fast_close", Kind::Flag, Preset::Flag(default::SERVER_FAST_CLOSE),
        &["server_fast_close"],
        "In session mode, a server that is to be closed (RECONNECT, or its database has moved in \
         the configuration) is closed at the end of its transaction, and its client with it; \
         else when the client leaves."),
    row(POOLS, "server_round_robin", Kind::Flag, Preset::Flag(default::SERVER_ROUND_ROBIN),
        &["server_round_robin"],
        "The server that has been idle longest is lent next; else the one used last, so that the \
         others may close."),
    row(POOLS, "max_prepared_statements",
        Kind::Count { least: 0, most: limit::PREPARED_STATEMENTS },
        Preset::Count(default::MAX_PREPARED_STATEMENTS), &["max_prepared_statements"],
        "Prepared statements that a server keeps for all clients; the least recently used goes \
         first. 0: statements are not followed, and prepared statements work in session mode \
         only."),
    row(POOLS, "max_pinned", SERVERS, Preset::None, &[],
        "Clients that may keep their server beyond a transaction, for what can't be taken to \
         another: temporary tables, advisory locks and the like. 0: none, they are closed. Not \
         given: one less than `pool_size`, but 1 at the least."),
    row(POOLS, "query_timeout", NEVER, Preset::Duration(default::QUERY_TIMEOUT),
        &["query_timeout"],
        "A query that runs longer is cancelled and its client closed."),
    row(POOLS, "transaction_timeout", NEVER,
        Preset::Duration(default::TRANSACTION_TIMEOUT), &["transaction_timeout"],
        "A transaction that takes longer is rolled back and its client told 25P04 and closed. A \
         statement outside of one counts as one, unless it shares a trip."),
    row(POOLS, "idle_transaction_timeout", NEVER,
        Preset::Duration(default::IDLE_TRANSACTION_TIMEOUT), &["idle_transaction_timeout"],
        "A client that is idle in a transaction for longer is closed."),
    row(POOLS, "client_idle_timeout", NEVER, Preset::Duration(default::CLIENT_IDLE_TIMEOUT),
        &["client_idle_timeout"],
        "A client that is idle outside of a transaction for longer is closed."),
    row(POOLS, "application_name_add_host", Kind::Flag,
        Preset::Flag(default::APPLICATION_NAME_ADD_HOST), &["application_name_add_host"],
        "The application_name with which a client begins becomes `name - address:port`, so that \
         PostgreSQL's views and log have its address. Clients with different names don't share \
         trips ([why](pooling.md#clients-addresses))."),
    row(POOLS, "ignore_startup_parameters", Kind::Names, Preset::NoNames,
        &["ignore_startup_parameters"],
        "Start-up parameters of clients that are dropped instead of applied; `options` stands for \
         all settings in that parameter. What PostgreSQL reports is applied all the same: \
         application_name, client_encoding, DateStyle, IntervalStyle, TimeZone and \
         standard_conforming_strings."),
    row(POOLS, "refuse_simple", Kind::Flag, Preset::Flag(default::REFUSE_SIMPLE),
        &["disable_pqexec"],
        "Clients may not use the simple query protocol, in which one text may hold several \
         statements: who does is told P0325 and closed."),
    row(POOLS, "listen", Kind::Choice(ListenMode::WORDS), Preset::Text(default::LISTEN.name()), &[],
        "LISTEN in transaction and statement mode. `shared`: one connection of the database \
         listens for all clients ([LISTEN](pooling.md#listen)); `server`: the server that runs it \
         listens, and its client keeps that."),
    row(POOLS, "coalesce", Kind::Choice(Coalesce::WORDS), Preset::Text(default::COALESCE.name()),
        &[],
        "Short reads outside of transactions, of different clients, share trips to the server. \
         `pipeline`: back to back on one server, each its own transaction; `batch`: also, in the \
         extended protocol, several in one transaction; `off`: each travels alone."),
    row(POOLS, "prepare_simple", Kind::Flag, Preset::Flag(default::PREPARE_SIMPLE), &[],
        "Simple queries that differ only in constants and come often are sent as a prepared \
         statement, where `coalesce` is not `off`."),
    row(POOLS, "coalesce_writes", Kind::Flag, Preset::Flag(default::COALESCE_WRITES), &[],
        "Single writes outside of transactions share a flush: each is its own transaction with \
         `synchronous_commit = off`, and nobody is answered before a synchronous commit behind \
         them is. Others may see a row for that moment before it is safe."),
    row(POOLS, "procedures", Kind::Choice(Calls::WORDS), Preset::Text(default::CALLS.name()), &[],
        "Which standalone calls of functions and procedures travel in lanes and trains \
         ([Procedure calls](procedures.md)): `declared`: those of which a comment, the \
         configuration or `SET PROCEDURE` says something; `auto`: also those whose bodies tell \
         which rows they lock; `off`: none. Needs `coalesce` to be on."),
    row(POOLS, "coalesce_depth", Kind::Count { least: 1, most: limit::DEPTH },
        Preset::Count(default::COALESCE_DEPTH), &[],
        "Statements of different clients that may be in flight on one server."),
    row(POOLS, "coalesce_short", Kind::Duration { zero: None },
        Preset::Duration(default::COALESCE_SHORT), &[],
        "A statement joins others while 9 of 10 like it take no longer."),
    row(POOLS, "coalesce_stall", Kind::Duration { zero: None },
        Preset::Duration(default::COALESCE_STALL), &[],
        "Reads behind a statement that takes longer are sent again on another server."),

    row(POOLS, "cache", Kind::Choice(CacheMode::WORDS), Preset::None, &[],
        "The read cache, in the words of `cache.mode`; without it, `cache.mode`."),
    row(POOLS, "cache_freshness", Kind::Choice(Freshness::WORDS), Preset::None, &[],
        "What cached answers promise; without it, `cache.freshness`."),
    row(POOLS, "cache_max_lag", Kind::Duration { zero: None }, Preset::None, &[],
        "How far behind the stream of changes may be; without it, `cache.max_lag`."),

    row(DATABASE, "url", Kind::Url, Preset::None, &[],
        "The server in one line, `postgres://user:password@host:port/dbname?sslmode=require`, \
         instead of the keys it says. Parameters: sslmode, sslnegotiation, ssl_min_protocol_version, \
         ssl_max_protocol_version, sslrootcert, sslcert, sslkey, \
         application_name, channel_binding, connect_timeout, max_protocol_version, \
         target_session_attrs, host, port, dbname, user, password."),
    row(DATABASE, "host", Kind::Host, Preset::Text(default::SERVER_HOST), &["host"],
        "Name or address of the server, or the directory of its Unix socket. `localhost` uses the \
         Unix socket when there is one. Names and addresses may be a list, `\"db1,db2\"` \
         ([Several hosts](pooling.md#several-hosts))."),
    row(DATABASE, "port", Kind::Ports, Preset::Text("5432"), &["port"],
        "Port of the server; of a list of hosts, the port of all, or a list with one for each."),
    row(DATABASE, "target_session_attrs", Kind::Choice(SessionAttrs::WORDS),
        Preset::Text(SessionAttrs::Any.name()), &[],
        "Which servers will do, with the meanings of libpq; all but `any` need PostgreSQL 14."),
    row(DATABASE, "load_balance_hosts", Kind::Choice(Balance::WORDS),
        Preset::Text(Balance::Disable.name()), &["load_balance_hosts"],
        "Of a list of hosts, whether new connections go to the one that did last time, to all in \
         turn, or to the one with the fewest connections of this process."),
    row(DATABASE, "split_reads", Kind::Flag, Preset::Flag(false), &[],
        "Reads outside of transactions, and transactions that begin READ ONLY, go to standbys of \
         the list that have all that their client has written and read \
         ([Reads from standbys](pooling.md#reads-from-standbys))."),
    row(DATABASE, "host_check_interval", NEVER, Preset::Duration(default::HOST_CHECK_INTERVAL),
        &[],
        "Each host of a list is asked this often whether it is there, what it is and how far it \
         is, on one connection that is kept."),
    row(DATABASE, "dbname", Kind::Name, Preset::None, &["dbname"],
        "The server's name for the database; without it, the name the client asks for."),
    row(DATABASE, "user", Kind::Name, Preset::None, &["user"],
        "Every client works as this user of the server, and all share one pool, but for users of whose \
         pools something is said; without it, as the user it logged in as."),
    row(DATABASE, "password", Kind::Secret, Preset::None, &["password"],
        "Password for the server; without it, the secret that the user has here."),
    row(DATABASE, "password_file", Kind::Path, Preset::None, &[],
        "File that holds `password`; line ends after it don't count."),
    row(DATABASE, "tls_mode", Kind::Choice(ServerTlsMode::WORDS),
        Preset::Text(default::SERVER_TLS_MODE.name()), &["server_tls_sslmode"],
        "TLS towards the server, with the meanings of libpq's sslmode."),
    row(DATABASE, "tls_negotiation", Kind::Choice(TlsNegotiation::WORDS),
        Preset::Text(default::TLS_NEGOTIATION.name()), &[],
        "How TLS towards the server begins, as libpq's sslnegotiation: `direct` saves a trip and \
         needs PostgreSQL 17 and a `tls_mode` from `require` on."),
    row(DATABASE, "tls_min_version", Kind::TlsVersion,
        Preset::Text(TlsVersion::V1_2.name()), &["server_tls_protocols"],
        "The oldest version of TLS towards the server, as libpq's ssl_min_protocol_version."),
    row(DATABASE, "tls_max_version", Kind::TlsVersion,
        Preset::Text(TlsVersion::V1_3.name()), &["server_tls_protocols"],
        "The newest one."),
    row(DATABASE, "tls_ca", Kind::Path, Preset::None, &["server_tls_ca_file"],
        "Certificates that may have signed the server's, PEM; without it, the system's."),
    row(DATABASE, "tls_cert", Kind::Path, Preset::None, &["server_tls_cert_file"],
        "Certificate shown to the server, PEM."),
    row(DATABASE, "tls_key", Kind::Path, Preset::None, &["server_tls_key_file"],
        "Its private key, PEM."),
    row(DATABASE, "channel_binding", Kind::Choice(ChannelBinding::WORDS),
        Preset::Text(default::CHANNEL_BINDING.name()), &[],
        "Whether SCRAM towards the server is bound to its certificate, as libpq's."),
    row(DATABASE, "max_protocol_version", Kind::Choice(ServerProtocol::WORDS),
        Preset::Text(default::SERVER_PROTOCOL.name()), &[],
        "The newest protocol that the server is asked for, as libpq's: 3.2, which PostgreSQL 18 \
         speaks, has cancel keys that can't be guessed."),
    row(DATABASE, "connect_query", Kind::Text, Preset::None, &["connect_query"],
        "Run on every new server before its first client."),
    row(DATABASE, "application_name", Kind::Text, Preset::None, &[],
        "application_name of servers that no client has named yet."),
    row(DATABASE, "auth_query", Kind::Text, Preset::None, &["auth_query"],
        "As `auth.query`, for clients of this database; without it, `auth.query`."),
    row(DATABASE, "auth_query_user", Kind::Name, Preset::None, &["auth_user"],
        "The user that runs it; without it, `auth.query_user`."),
    row(DATABASE, "auth_query_database", Kind::Name, Preset::None, &["auth_dbname"],
        "The database that runs it, as clients name it; without it, `auth.query_database`."),
    row(DATABASE, "auth_query_cache", Kind::Duration { zero: Some("not at all") }, Preset::None, &[],
        "How long what it has found is used again; without it, `auth.query_cache`."),
    row(DATABASE, "disabled", Kind::Flag, Preset::Flag(default::DISABLED), &[],
        "Refuse new clients."),
    row(DATABASE, "caches", Kind::Caches, Preset::NoNames, &[],
        "Statements whose results are cached, where `cache` is `manual`: each a SELECT, or what \
         may follow `CREATE CACHE` ([The read cache](cache.md#commands)). In a variable they are \
         separated by semicolons."),
    row(DATABASE, "mirrors", Kind::Mirrors, Preset::NoNames, &[],
        "Tables that are kept in memory: each what may follow `MIRROR TABLE`, such as \
         `orders COLUMNS (id, total)` ([Mirrors](cache.md#mirrors)). In a variable they are \
         separated by semicolons."),
    row(DATABASE_AND_USER, "max_client_connections", CLIENTS, Preset::None,
        &["max_db_client_connections", "max_user_client_connections"],
        "Clients of this database, or of this user over all databases; 0: no limit."),
    row(DATABASE_AND_USER, "max_server_connections", SERVERS, Preset::None,
        &["max_db_connections", "max_user_connections"],
        "Servers of this database, or of this user over all databases; 0: no limit."),

    row(USER, "password", Kind::Secret, Preset::None, &[],
        "What the user logs in with: a password, an md5 hash as in `pg_authid` or a SCRAM \
         verifier (`SCRAM-SHA-256$…`)."),
    row(USER, "password_file", Kind::Path, Preset::None, &[],
        "File that holds `password`; line ends after it don't count."),

    row(CACHE, "mode", Kind::Choice(CacheMode::WORDS), Preset::Text(default::CACHE_MODE.name()),
        &[],
        "`off`: every read goes to PostgreSQL; `advise`: too, and what \
         `auto` would have answered from memory is counted; `manual`: reads that \
         `CREATE CACHE` or `caches` names are cached; `auto`: those that can be, once the same \
         question comes again."),
    row(CACHE, "freshness", Kind::Choice(Freshness::WORDS),
        Preset::Text(default::CACHE_FRESHNESS.name()), &[],
        "`session`: a client never sees less than what it has written or read before, and than what \
         anybody was told is written through Pondage; `strict`: never less than what was committed \
         when its statement came; `bounded`: never less than what was committed `max_lag` ago."),
    row(CACHE, "max_lag", Kind::Duration { zero: None }, Preset::Duration(default::CACHE_MAX_LAG),
        &[],
        "With `bounded`, how old an answer may be. In every mode, a stream of changes that is \
         further behind answers nothing: reads go to PostgreSQL."),
    fixed(row(CACHE, "memory", Kind::Size { least: 1 << 20, most: limit::BYTES },
        Preset::Size(default::CACHE_MEMORY), &[],
        "Memory for results and mirrors. Beyond it those results go that are worth least.")),
    fixed(row(CACHE, "mirror_memory", Kind::Size { least: 0, most: limit::BYTES },
        Preset::Size(default::CACHE_MIRROR_MEMORY), &[],
        "How much of `memory`, up to seven eighths, mirrors of tables may take. A table that does \
         not fit has none. 0: there are no mirrors.")),
    row(CACHE, "user", Kind::Name, Preset::None, &[],
        "The role that follows the stream of changes; it needs REPLICATION. Without it, the \
         database's `user`."),
    row(CACHE, "password", Kind::Secret, Preset::None, &[],
        "Its password for the server; without it, the secret that `user` has here."),
    row(CACHE, "password_file", Kind::Path, Preset::None, &[],
        "File that holds `password`; line ends after it don't count."),
    row(CACHE, "publication", Kind::Name, Preset::Text(default::CACHE_PUBLICATION), &[],
        "The publication that names the tables whose changes are followed."),
    row(CACHE, "slot_max_wal", Kind::Size { least: 1 << 20, most: limit::BYTES },
        Preset::Size(default::CACHE_SLOT_MAX_WAL), &[],
        "WAL that the server may keep for the stream; beyond it the stream is given up, and \
         begun again."),
    row(CACHE, "wait", Kind::Duration { zero: Some("not at all") },
        Preset::Duration(default::CACHE_WAIT), &[],
        "How long a read whose answer is not yet known to be fresh waits for the stream before it \
         goes to PostgreSQL."),

    row(PROCEDURE, "key", Kind::Names, Preset::NoNames, &[],
        "Parameters, by name or as `$1`: calls with the same values would wait for one another's \
         rows, so they travel one behind the other. Procedures whose keys have parameters of the \
         same names share lanes. Without it every call may travel with every other."),
    row(PROCEDURE, "also", Kind::Names, Preset::NoNames, &[],
        "Parameters that name another row of the kind that `key` names, which is locked as well: \
         as many as `key` has, or several times as many."),
    row(PROCEDURE, "mode", Kind::Choice(ProcedureMode::WORDS),
        Preset::Text(default::PROCEDURE_MODE.name()), &[],
        "`off`: calls travel as all statements do; `lane`: those with one key one behind the \
         other, each with a commit and a flush of its own; `train`: they share a flush; `batch`: \
         they share a transaction, where nothing stands against it."),
    row(PROCEDURE, "durable_ack", Kind::Choice(DurableAck::WORDS),
        Preset::Text(default::DURABLE_ACK.name()), &[],
        "`tail`: a call is answered when the flush behind its train is done, so others may see \
         what it did in the moment before that; `each`: every call flushes before it is visible."),
    row(PROCEDURE, "max_train", Kind::Count { least: 1, most: limit::TRAIN },
        Preset::Count(default::MAX_TRAIN), &[],
        "Most calls of one train."),
    row(PROCEDURE, "retry", Kind::Count { least: 0, most: limit::RETRY },
        Preset::Count(default::PROCEDURE_RETRY), &[],
        "So many times a call that came to nothing by a deadlock or a serialization failure \
         (40P01, 40001) is sent again before its client hears of it."),

    fixed(row(REDIS, "database", Kind::Name, Preset::None, &[],
        "The name of a database section: the data are there, in the schema `redis`. Without it, \
         the only database that is configured by name.")),
    fixed(row(REDIS, "user", Kind::Name, Preset::None, &[],
        "As whom Pondage's own connections for this log in to the server; without it, as the \
         database's `user`.")),
    row(REDIS, "default_user", Kind::Name, Preset::None, &[],
        "The user that AUTH with a password alone means, and Redis's name `default`. Where \
         `auth.method` is `trust`, clients that do not log in are this user."),
    row(REDIS, "users", Kind::Names, Preset::NoNames, &[],
        "Users that may come in; without it, all that Pondage knows."),
    fixed(row(REDIS, "databases", Kind::Count { least: 1, most: limit::REDIS_DATABASES },
        Preset::Count(default::REDIS_DATABASES), &[],
        "Logical databases, which SELECT chooses by number.")),
    fixed(row(REDIS, "async_databases", Kind::Numbers, Preset::NoNumbers, &[],
        "Logical databases whose writes are answered before they are flushed \
         (`synchronous_commit = off`): a crash of the server may lose the last ones.")),
    fixed(row(REDIS, "journal_databases", Kind::Numbers, Preset::NoNumbers, &[],
        "Logical databases whose writes go to a journal first, and from there into the tables \
         within a second: faster for keys that change often. In the others they go into the \
         tables at once.")),
    fixed(row(REDIS, "writers", Kind::Count { least: 1, most: limit::REDIS_WRITERS },
        Preset::Count(default::REDIS_WRITERS), &[],
        "Connections that write, each with its share of the keys.")),
    row(REDIS, "memory", Kind::Size { least: 1 << 20, most: limit::BYTES },
        Preset::Size(default::REDIS_MEMORY), &[],
        "Memory for copies of rows. Beyond it the copies used least recently go; the rows stay."),
    row(REDIS, "queue_limit", Kind::Size { least: 64 << 10, most: limit::BYTES },
        Preset::Size(default::REDIS_QUEUE_LIMIT), &[],
        "Writes that wait for their commit, in bytes; beyond it new ones wait to be begun."),
    row(REDIS, "journal_limit", Kind::Size { least: 64 << 10, most: limit::BYTES },
        Preset::Size(default::REDIS_JOURNAL_LIMIT), &[],
        "What may be in the journal and not yet in the tables, in bytes; beyond it writes to \
         `journal_databases` wait."),
    row(REDIS, "max_clients", Kind::Count { least: 1, most: limit::CLIENTS },
        Preset::Count(default::REDIS_MAX_CLIENTS), &[],
        "Redis clients; the next one is refused."),
    row(REDIS, "output_limit", Kind::Size { least: 64 << 10, most: limit::BYTES },
        Preset::Size(default::REDIS_OUTPUT_LIMIT), &[],
        "A client that does not read is closed when this much waits for it."),
    row(REDIS, "value_limit", Kind::Size { least: 1 << 10, most: default::REDIS_VALUE_LIMIT },
        Preset::Size(default::REDIS_VALUE_LIMIT), &[],
        "The longest argument of a command."),
    row(REDIS, "slowlog_threshold", NEVER, Preset::Duration(default::REDIS_SLOWLOG_THRESHOLD), &[],
        "Commands that take longer are listed by SLOWLOG."),
    row(REDIS, "slowlog_length", Kind::Count { least: 0, most: limit::SLOWLOG },
        Preset::Count(default::REDIS_SLOWLOG_LENGTH), &[],
        "Commands that SLOWLOG keeps."),
    row(REDIS, "lua_time_limit", Kind::Duration { zero: None },
        Preset::Duration(default::REDIS_LUA_TIME_LIMIT), &[],
        "A script may run this long."),
    row(REDIS, "notify_keyspace_events", Kind::KeyspaceEvents, Preset::Text(""), &[],
        "Changes of keys that are published, in Redis's letters; empty: none."),

    row(TELEMETRY, "log_level",
        Kind::Choice(&["off", "error", "warn", "info", "debug", "trace"]),
        Preset::Text(default::LOG_LEVEL), &["verbose"],
        "The least important messages to log."),
    row(TELEMETRY, "log_file", Kind::Path, Preset::None, &["logfile"],
        "The log goes there, too, beside standard error. HUP and RELOAD open it anew, so that it \
         may be renamed before."),
    fixed(row(TELEMETRY, "log_format", Kind::Choice(LogFormat::WORDS),
        Preset::Text(default::LOG_FORMAT.name()), &[],
        "`auto`: `text` on a terminal, else `logfmt`. `pgbouncer`: lines as PgBouncer writes them, \
         see [PgBouncer's log](log.md#pgbouncers-log).")),
    row(TELEMETRY, "log_connections", Kind::Flag, Preset::Flag(default::LOG_CONNECTIONS),
        &["log_connections"],
        "Log every client that logs in, and every server that is opened."),
    row(TELEMETRY, "log_disconnections", Kind::Flag, Preset::Flag(default::LOG_DISCONNECTIONS),
        &["log_disconnections"],
        "Log every client that leaves and every server that is closed, and why."),
    row(TELEMETRY, "stats_period", Kind::Duration { zero: None },
        Preset::Duration(default::STATS_PERIOD), &["stats_period"],
        "Period of the averages in SHOW STATS."),
    row(TELEMETRY, "log_stats", Kind::Flag, Preset::Flag(default::LOG_STATS), &["log_stats"],
        "Log the averages of all databases together at the end of each period."),
    row(TELEMETRY, "otlp_endpoint", Kind::Text, Preset::None, &[],
        "Collector of traces, by OTLP over HTTP, such as `\"http://127.0.0.1:4318\"`; see \
         [Traces](tracing.md#traces). Without one nothing is traced."),
    row(TELEMETRY, "otlp_headers", Kind::Secret, Preset::None, &[],
        "Headers for the collector: `\"api-key=…,x-tenant=7\"`."),
    row(TELEMETRY, "otlp_timeout", Kind::Duration { zero: None }, Preset::Duration(default::OTLP_TIMEOUT),
        &[], "The collector has to answer within this time."),
    row(TELEMETRY, "trace_one_in", Kind::Count { least: 0, most: u32::MAX },
        Preset::Count(default::TRACE_ONE_IN), &[],
        "One statement of so many is traced, beside those whose caller is; 0: only these."),
];
