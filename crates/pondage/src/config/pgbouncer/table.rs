//! Every option of PgBouncer 1.25, once: what it becomes here, or why it is ignored. The table
//! feeds the conversion and the page `docs/migrating-from-pgbouncer.md`.
//!
//! Source: PgBouncer 1.25's documentation, doc/config.md, and the output of its SHOW CONFIG.

use super::super::options::Section;

/// What becomes of an option.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// The option of that name in a section. In [`Section::Database`] and [`Section::User`], one
    /// of `[pgbouncer]` stands for all of them.
    Taken(Section, &'static str, Turn),
    /// Taken together with others; the text is for the page.
    Joined(&'static str),
    Ignored,
}

/// How a value is written here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn {
    Same,
    /// A number that may be negative to say nothing.
    Count,
    /// Seconds, perhaps with a fraction.
    Seconds,
    /// The same; PgBouncer's 0 means at once, ours never.
    SecondsOrAtOnce,
    Flag,
    /// Of a file. A relative one starts at the directory the process runs in.
    Path,
    /// Theirs and ours.
    Words(&'static [(&'static str, &'static str)]),
}

#[derive(Debug)]
pub(super) struct Known {
    pub name: &'static str,
    pub fate: Fate,
    /// PgBouncer's default where Pondage's is another.
    pub preset: Option<&'static str>,
    /// Why it is ignored, or what is otherwise. Completes "`name` …: ".
    pub about: &'static str,
}

const fn taken(name: &'static str, section: Section, ours: &'static str, turn: Turn) -> Known {
    Known { name, fate: Fate::Taken(section, ours, turn), preset: None, about: "" }
}

const fn joined(name: &'static str, to: &'static str) -> Known {
    Known { name, fate: Fate::Joined(to), preset: None, about: "" }
}

const fn ignored(name: &'static str, about: &'static str) -> Known {
    Known { name, fate: Fate::Ignored, preset: None, about }
}

impl Known {
    const fn preset(mut self, value: &'static str) -> Known {
        self.preset = Some(value);
        self
    }

    const fn about(mut self, about: &'static str) -> Known {
        self.about = about;
        self
    }
}

const POOL: Section = Section::Pool;
const DATABASE: Section = Section::Database;
const USER: Section = Section::User;
const RUNTIME: Section = Section::Runtime;

const METHODS: Turn = Turn::Words(&[
    ("any", "any"),
    ("trust", "trust"),
    ("plain", "password"),
    ("md5", "md5"),
    ("scram-sha-256", "scram-sha-256"),
    ("cert", "cert"),
    ("hba", "hba"),
]);

const SERVER_TLS: Turn = Turn::Words(&[
    ("disable", "disable"),
    ("allow", "prefer"),
    ("prefer", "prefer"),
    ("require", "require"),
    ("verify-ca", "verify-ca"),
    ("verify-full", "verify-full"),
]);

const LEVELS: Turn = Turn::Words(&[("0", "info"), ("1", "debug"), ("2", "trace"), ("3", "trace")]);

const NO_TCP: &str = "sockets have what the system gives them";
const NO_DNS: &str = "names are asked of the system's resolver for every new server";
const NO_SYSLOG: &str = "the log goes to standard error";
const NO_CIPHERS: &str = "TLS is 1.2 or 1.3 with the ciphers that rustls takes for safe";
pub(super) const NO_OLD_TLS: &str = "TLS 1.0 and 1.1 are not offered";

/// `[pgbouncer]`, in the order of SHOW CONFIG.
pub(super) static MAIN: &[Known] = &[
    taken("admin_users", Section::Auth, "admin_users", Turn::Same),
    taken("application_name_add_host", POOL, "application_name_add_host", Turn::Flag),
    joined("auth_dbname", "`auth.query_database`"),
    joined("auth_file", "`auth.users_file`"),
    joined("auth_hba_file", "`auth.hba_file`, with `auth_type = hba`"),
    joined("auth_ident_file", "`auth.ident_file`, with `auth_type = hba`"),
    ignored("auth_ldap_options", "missing, as the auth_type that it belongs to is"),
    joined("auth_query", "`auth.query`"),
    taken("auth_type", Section::Auth, "method", METHODS).preset("md5"),
    joined("auth_user", "`auth.query_user`"),
    ignored("autodb_idle_timeout", "not needed: a database of `*` costs nothing without servers"),
    ignored("cancel_wait_timeout", "not needed: a cancel request does not wait for the pool"),
    taken("client_idle_timeout", POOL, "client_idle_timeout", Turn::Seconds),
    taken("client_login_timeout", Section::Runtime, "login_timeout", Turn::Seconds),
    ignored("client_tls13_ciphers", NO_CIPHERS),
    joined("client_tls_ca_file", "`listen.tls.client_ca`, where certificates are asked for"),
    taken("client_tls_cert_file", Section::ListenTls, "cert", Turn::Path),
    ignored("client_tls_ciphers", NO_CIPHERS),
    ignored("client_tls_dheparams", NO_CIPHERS),
    ignored("client_tls_ecdhcurve", NO_CIPHERS),
    taken("client_tls_key_file", Section::ListenTls, "key", Turn::Path),
    joined("client_tls_protocols", "`listen.tls.min_version` and `listen.tls.max_version`")
        .about(NO_OLD_TLS),
    taken(
        "client_tls_sslmode",
        Section::ListenTls,
        "mode",
        Turn::Words(&[
            ("disable", "disable"),
            ("allow", "prefer"),
            ("prefer", "prefer"),
            ("require", "require"),
            ("verify-ca", "verify-client"),
            ("verify-full", "verify-client"),
        ]),
    )
    .preset("disable"),
    ignored("conffile", "RELOAD reads the file that the command line names"),
    taken("default_pool_size", POOL, "pool_size", Turn::Count),
    taken("disable_pqexec", POOL, "refuse_simple", Turn::Flag),
    ignored("dns_max_ttl", NO_DNS),
    ignored("dns_nxdomain_ttl", NO_DNS),
    ignored("dns_zone_check_period", NO_DNS),
    taken("idle_transaction_timeout", POOL, "idle_transaction_timeout", Turn::Seconds),
    taken("ignore_startup_parameters", POOL, "ignore_startup_parameters", Turn::Same)
        .about("what it does not name is applied, where PgBouncer refuses it"),
    ignored("job_name", "it names a Windows service"),
    joined("listen_addr", "`listen.postgres`"),
    taken("listen_backlog", Section::Listen, "backlog", Turn::Count).preset("128"),
    joined("listen_port", "`listen.postgres`"),
    taken("log_connections", Section::Telemetry, "log_connections", Turn::Flag).preset("1"),
    taken("log_disconnections", Section::Telemetry, "log_disconnections", Turn::Flag).preset("1"),
    ignored("log_pooler_errors", "missing: SHOW STATS and the metrics count them"),
    taken("log_stats", Section::Telemetry, "log_stats", Turn::Flag).preset("1"),
    taken("logfile", Section::Telemetry, "log_file", Turn::Path),
    ignored("login_notify_message", "missing"),
    taken("max_client_conn", Section::Runtime, "max_clients", Turn::Count).preset("100"),
    taken("max_db_client_connections", RUNTIME, "max_database_clients", Turn::Count),
    taken("max_db_connections", DATABASE, "max_server_connections", Turn::Count),
    ignored("max_packet_size", "not needed: messages of any size pass in constant memory"),
    taken("max_prepared_statements", POOL, "max_prepared_statements", Turn::Count),
    taken("max_user_client_connections", RUNTIME, "max_user_clients", Turn::Count),
    taken("max_user_connections", RUNTIME, "max_user_servers", Turn::Count),
    taken("min_pool_size", POOL, "min_pool_size", Turn::Count),
    joined("peer_id", "the line of `[peers]` that is left out of `runtime.peers`"),
    taken("pidfile", Section::Runtime, "pid_file", Turn::Path),
    ignored("pkt_buf", "not needed: a client that is idle holds no buffer"),
    taken("pool_mode", POOL, "mode", Turn::Same).preset("session"),
    ignored("pool_idle_timeout", "not needed: a pool without servers and clients costs nothing"),
    taken("query_timeout", POOL, "query_timeout", Turn::Seconds),
    taken("query_wait_notify", POOL, "wait_notify", Turn::Seconds).preset("5"),
    taken("query_wait_timeout", POOL, "wait_timeout", Turn::Seconds),
    taken("reserve_pool_size", POOL, "reserve_pool_size", Turn::Count),
    taken("reserve_pool_timeout", POOL, "reserve_pool_timeout", Turn::Seconds),
    ignored("resolv_conf", NO_DNS),
    ignored("sbuf_loopcnt", "not needed: turns of clients are bounded otherwise"),
    ignored("scram_iterations", "verifiers made from plain passwords have PostgreSQL's 4096"),
    taken("server_check_delay", POOL, "server_check_delay", Turn::SecondsOrAtOnce),
    joined(
        "server_check_query",
        "`pool.server_check_query`; an empty one is \
        `server_check_delay = 0`, and `<empty>` is an empty one",
    ),
    taken("server_connect_timeout", POOL, "connect_timeout", Turn::Seconds),
    taken("server_fast_close", POOL, "server_fast_close", Turn::Flag),
    taken("server_idle_timeout", POOL, "server_idle_timeout", Turn::Seconds),
    taken("server_lifetime", POOL, "server_lifetime", Turn::SecondsOrAtOnce),
    taken("server_login_retry", POOL, "server_login_retry", Turn::Seconds).preset("15"),
    taken("server_reset_query", POOL, "server_reset_query", Turn::Same),
    taken("server_reset_query_always", POOL, "server_reset_always", Turn::Flag),
    taken("server_round_robin", POOL, "server_round_robin", Turn::Flag),
    ignored("server_tls13_ciphers", NO_CIPHERS),
    taken("server_tls_ca_file", DATABASE, "tls_ca", Turn::Path),
    taken("server_tls_cert_file", DATABASE, "tls_cert", Turn::Path),
    ignored("server_tls_ciphers", NO_CIPHERS),
    taken("server_tls_key_file", DATABASE, "tls_key", Turn::Path),
    joined("server_tls_protocols", "`tls_min_version` and `tls_max_version` of a database")
        .about(NO_OLD_TLS),
    taken("server_tls_sslmode", DATABASE, "tls_mode", SERVER_TLS),
    ignored("service_name", "it names a Windows service"),
    taken("so_reuseport", Section::Listen, "reuse_port", Turn::Flag),
    taken("stats_period", Section::Telemetry, "stats_period", Turn::Seconds),
    taken("stats_users", Section::Auth, "stats_users", Turn::Same),
    taken("suspend_timeout", Section::Runtime, "suspend_timeout", Turn::Seconds),
    ignored("syslog", NO_SYSLOG),
    ignored("syslog_facility", NO_SYSLOG),
    ignored("syslog_ident", NO_SYSLOG),
    ignored("tcp_defer_accept", NO_TCP),
    ignored("tcp_keepalive", NO_TCP),
    ignored("tcp_keepcnt", NO_TCP),
    ignored("tcp_keepidle", NO_TCP),
    ignored("tcp_keepintvl", NO_TCP),
    ignored("tcp_socket_buffer", NO_TCP),
    ignored("tcp_user_timeout", NO_TCP),
    ignored("track_extra_parameters", "not needed: all that PostgreSQL reports is kept"),
    taken("transaction_timeout", POOL, "transaction_timeout", Turn::Seconds),
    joined("unix_socket_dir", "`listen.postgres`, and `host` of databases without one"),
    taken("unix_socket_group", Section::Listen, "unix_socket_group", Turn::Same),
    taken("unix_socket_mode", Section::Listen, "unix_socket_mode", Turn::Same),
    ignored("user", "missing: start the process as that user"),
    taken("verbose", Section::Telemetry, "log_level", LEVELS),
];

const AS_SERVER: &str = "missing: clients say it, or `ALTER DATABASE … SET`";

/// Connection strings of `[databases]`.
pub(super) static DATABASES: &[Known] = &[
    taken("application_name", DATABASE, "application_name", Turn::Same),
    joined("auth_dbname", "`auth_query_database` of a database"),
    joined("auth_query", "`auth_query` of a database"),
    joined("auth_user", "`auth_query_user` of a database"),
    ignored("client_encoding", AS_SERVER),
    taken("connect_query", DATABASE, "connect_query", Turn::Same),
    ignored("datestyle", AS_SERVER),
    taken("dbname", DATABASE, "dbname", Turn::Same),
    joined("host", "`host`; without one, `unix_socket_dir`"),
    taken("load_balance_hosts", DATABASE, "load_balance_hosts", Turn::Same),
    taken("max_db_client_connections", DATABASE, "max_client_connections", Turn::Count),
    taken("max_db_connections", DATABASE, "max_server_connections", Turn::Count),
    taken("min_pool_size", DATABASE, "min_pool_size", Turn::Count),
    taken("password", DATABASE, "password", Turn::Same),
    taken("pool_mode", DATABASE, "mode", Turn::Same),
    taken("pool_size", DATABASE, "pool_size", Turn::Count),
    taken("port", DATABASE, "port", Turn::Same),
    taken("query_wait_timeout", DATABASE, "wait_timeout", Turn::Seconds),
    taken("reserve_pool", DATABASE, "reserve_pool_size", Turn::Count),
    taken("reserve_pool_size", DATABASE, "reserve_pool_size", Turn::Count),
    taken("server_lifetime", DATABASE, "server_lifetime", Turn::SecondsOrAtOnce),
    ignored("timezone", AS_SERVER),
    taken("user", DATABASE, "user", Turn::Same),
];

/// Settings of `[users]`.
pub(super) static USERS: &[Known] = &[
    taken("client_idle_timeout", USER, "client_idle_timeout", Turn::Seconds),
    taken("idle_transaction_timeout", USER, "idle_transaction_timeout", Turn::Seconds),
    taken("max_user_client_connections", USER, "max_client_connections", Turn::Count),
    taken("max_user_connections", USER, "max_server_connections", Turn::Count),
    taken("pool_mode", USER, "mode", Turn::Same),
    taken("pool_size", USER, "pool_size", Turn::Count),
    taken("query_timeout", USER, "query_timeout", Turn::Seconds),
    taken("query_wait_timeout", USER, "wait_timeout", Turn::Seconds),
    taken("reserve_pool_size", USER, "reserve_pool_size", Turn::Count),
    taken("transaction_timeout", USER, "transaction_timeout", Turn::Seconds),
];

/// Connection strings of `[peers]`.
pub(super) static PEERS: &[Known] = &[
    joined("host", "`runtime.peers`"),
    ignored("pool_size", "not needed: a cancel request waits for no other"),
    joined("port", "`runtime.peers`"),
];

pub(super) fn find(table: &'static [Known], name: &str) -> Option<&'static Known> {
    table.iter().find(|known| known.name == name)
}
