//! From settings to the types of [`Config`](super::Config), and every check that needs more than
//! one value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wire::pg::auth::Secret;

use super::environment::unreadable;
use super::files;
use super::options::{default, Section};
use super::peer::PEERS_MAX;
use super::report::{Code, Place, Problem};
use super::settings::{Layer, Named, Scope, Setting, Settings};
use super::source::Source;
use super::value::{escaped, is_name, quoted, Value};
use super::{
    Address, Auth, AuthMethod, CacheConfig, CacheMode, Calls, ChannelBinding, Coalesce, Database,
    Freshness, Listen, ListenMode, ListenTls, ListenTlsMode, LogFormat, Peer, PoolMode,
    PoolOptions, ProcedureOptions, Redis, Runtime, ServerProtocol, ServerTls, ServerTlsMode,
    Telemetry, UpstreamOptions, User, Words,
};

mod admission;
mod cache;
mod hosts;
mod lookups;
mod otlp;
mod procedures;
mod proxied;
mod redis;
mod tls;

pub(super) struct Builder<'a> {
    pub settings: &'a Settings,
    pub source: &'a Source<'a>,
    pub problems: Vec<Problem>,
    pub notices: Vec<String>,
}

pub(super) struct Parts {
    pub listen: Listen,
    pub runtime: Runtime,
    pub auth: Auth,
    pub pool: PoolOptions,
    pub databases: BTreeMap<String, Database>,
    pub users: BTreeMap<String, User>,
    pub cache: CacheConfig,
    pub procedures: BTreeMap<String, ProcedureOptions>,
    pub redis: Redis,
    pub telemetry: Telemetry,
}

/// The values of one section, by their types.
struct Values<'a> {
    settings: &'a Settings,
    scope: &'a Scope,
}

impl Values<'_> {
    fn value(&self, name: &str) -> Option<&Value> {
        self.settings.value(self.scope, name)
    }

    fn flag(&self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Flag(on) => Some(*on),
            _ => None,
        }
    }

    fn count(&self, name: &str) -> Option<u32> {
        match self.value(name)? {
            Value::Count(count) => Some(*count),
            _ => None,
        }
    }

    fn duration(&self, name: &str) -> Option<Duration> {
        match self.value(name)? {
            Value::Duration(duration) => Some(*duration),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn secret(&self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::Secret(secret) => Some(secret.clone()),
            _ => None,
        }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        match self.value(name)? {
            Value::Path(path) => Some(path.clone()),
            _ => None,
        }
    }

    fn size(&self, name: &str, preset: u64) -> u64 {
        match self.value(name) {
            Some(Value::Size(bytes)) => *bytes,
            _ => preset,
        }
    }

    fn names(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(Value::Names(names)) => names.clone(),
            _ => Vec::new(),
        }
    }

    /// The limit of connections in `name`; 0 is none.
    fn limit(&self, name: &str) -> Option<u32> {
        self.count(name).filter(|limit| *limit > 0)
    }
}

/// Half the cores at most, because PostgreSQL needs its share when it is on the same machine; on
/// two cores a second worker cost more than it gave. To be measured again on larger machines.
fn automatic_workers(cores: usize) -> usize {
    match cores {
        0..=2 => 1,
        cores => (cores / 2).min(4),
    }
}

impl Builder<'_> {
    pub fn build(mut self) -> (Parts, Vec<Problem>, Vec<String>) {
        let listen = self.listen();
        let auth = self.auth(&listen);
        let databases = self.databases();
        let parts = Parts {
            cache: self.cache(&databases),
            procedures: self.procedures(),
            redis: self.redis(&listen, &auth, &databases),
            listen,
            runtime: self.runtime(),
            auth,
            pool: self.pool(&Scope::fixed(Section::Pool)),
            databases,
            users: self.users(),
            telemetry: self.telemetry(),
        };
        (parts, self.problems, self.notices)
    }

    fn values<'a>(&'a self, scope: &'a Scope) -> Values<'a> {
        Values { settings: self.settings, scope }
    }

    fn complain(&mut self, setting: &Setting, problem: Problem) {
        let place = (setting.place.clone(), setting.span.clone());
        self.complain_at(Some(&place), problem);
    }

    fn complain_at(
        &mut self,
        place: Option<&(Place, Option<std::ops::Range<usize>>)>,
        problem: Problem,
    ) {
        self.problems.push(match place {
            Some((_, Some(span))) => self.source.locate(problem, span),
            Some((place, None)) => problem.at(place.clone()),
            None => problem,
        });
    }

    fn listen(&mut self) -> Listen {
        let scope = Scope::fixed(Section::Listen);
        let tls = self.listen_tls();
        let values = self.values(&scope);
        let postgres = match values.value("postgres") {
            Some(Value::Addresses(addresses)) => addresses.clone(),
            _ => vec![Address::Tcp(default::LISTEN_POSTGRES)],
        };
        let http = match values.value("http") {
            Some(Value::SocketAddress(address)) => *address,
            _ => Some(default::LISTEN_HTTP),
        };
        let redis = match values.value("redis") {
            Some(Value::SocketAddresses(addresses)) => addresses.clone(),
            _ => Vec::new(),
        };
        let (proxied, proxies) = self.proxied(&scope, &postgres, http);
        let values = self.values(&scope);
        let http_names = values.names("http_names");
        let unix_socket_mode = match values.value("unix_socket_mode") {
            Some(Value::Permissions(bits)) => *bits,
            _ => default::UNIX_SOCKET_MODE,
        };
        let backlog = values.count("backlog").unwrap_or(default::BACKLOG);
        let unix_socket_group = values.text("unix_socket_group");
        let reuse_port = values.flag("reuse_port").unwrap_or(default::REUSE_PORT);
        let errors = values.text("errors").and_then(|word| Words::from_name(&word));
        let errors = errors.unwrap_or(default::ERRORS);
        if let Some(http) = http.filter(|http| postgres.contains(&Address::Tcp(*http))) {
            let message = format!("`http` and `postgres` both listen on {http}");
            let problem = Problem::new(Code::DuplicateAddress, message);
            let settings = self.settings;
            let given = settings.get(&scope, "http").or_else(|| settings.get(&scope, "postgres"));
            match given {
                Some(setting) => self.complain(setting, problem),
                None => self.problems.push(problem),
            }
        }
        Listen {
            postgres,
            proxied,
            proxies,
            redis,
            http,
            http_names,
            tls,
            unix_socket_mode,
            unix_socket_group,
            reuse_port,
            backlog,
            errors,
        }
    }

    fn listen_tls(&mut self) -> ListenTls {
        let scope = Scope::fixed(Section::ListenTls);
        let settings = self.settings;
        let values = self.values(&scope);
        let (cert, key, client_ca) =
            (values.path("cert"), values.path("key"), values.path("client_ca"));
        let given_mode = values.text("mode").and_then(|word| ListenTlsMode::from_name(&word));
        let mode = given_mode.unwrap_or(match cert.is_some() && key.is_some() {
            true => ListenTlsMode::Prefer,
            false => ListenTlsMode::Disable,
        });
        self.certificate_pair(&scope, "cert", "key");
        if let Some(given) = settings.get(&scope, "mode") {
            let present = settings.has(&scope, "cert") || settings.has(&scope, "key");
            if mode != ListenTlsMode::Disable && !present {
                let message = format!("mode `{}` needs `cert` and `key`", mode.name());
                self.complain(given, Problem::new(Code::MissingValue, message));
            }
            if mode == ListenTlsMode::VerifyClient && !settings.has(&scope, "client_ca") {
                let message = "mode `verify-client` needs `client_ca`";
                self.complain(given, Problem::new(Code::MissingValue, message));
            }
        }
        if let Some(given) = settings.get(&scope, "client_ca") {
            let broken = settings.has(&scope, "mode") && given_mode.is_none();
            let used = match mode {
                ListenTlsMode::VerifyClient => true,
                ListenTlsMode::Disable => false,
                ListenTlsMode::Prefer | ListenTlsMode::Require => self.may_ask_for_certificates(),
            };
            if !used && !broken {
                let message = format!("`client_ca` is not used in mode `{}`", mode.name());
                let mut problem = Problem::new(Code::Contradiction, message)
                    .help("set `mode = \"verify-client\"` to have certificates of clients checked");
                if mode != ListenTlsMode::Disable {
                    problem = problem.help(
                        "or `auth.method` to \"cert\" or \"hba\", which ask for them where needed",
                    );
                }
                self.complain(given, problem);
            }
        }
        self.readable(&scope, "client_ca", files::check_certificates);
        let versions = self.tls_versions(&scope, "min_version", "max_version");
        ListenTls { mode, cert, key, client_ca, versions }
    }

    /// A certificate and its key are both there, readable, or both absent.
    fn certificate_pair(&mut self, scope: &Scope, cert: &'static str, key: &'static str) {
        let settings = self.settings;
        for (one, other) in [(cert, key), (key, cert)] {
            if let (Some(given), false) = (settings.get(scope, one), settings.has(scope, other)) {
                let message = format!("`{one}` needs `{other}`");
                self.complain(given, Problem::new(Code::MissingValue, message));
            }
        }
        self.readable(scope, cert, files::check_certificates);
        self.readable(scope, key, files::check_key);
    }

    fn readable(&mut self, scope: &Scope, name: &str, check: impl Fn(&Path) -> Result<(), String>) {
        let settings = self.settings;
        let Some(given) = settings.get(scope, name) else { return };
        let Value::Path(path) = &given.value else { return };
        if let Err(why) = check(path) {
            self.complain(given, unreadable(path, &why));
        }
    }

    fn runtime(&mut self) -> Runtime {
        let scope = Scope::fixed(Section::Runtime);
        let values = self.values(&scope);
        let workers = match values.value("workers") {
            Some(Value::Workers(Some(count))) => usize::try_from(*count).unwrap_or(1),
            _ => automatic_workers(std::thread::available_parallelism().map_or(1, usize::from)),
        };
        let peers = Peer::parse_all(&values.text("peers").unwrap_or_default());
        let settings = self.settings;
        if let (Err(part), Some(given)) = (&peers, settings.get(&scope, "peers")) {
            let message = format!("`peers` has {}, which is no address", quoted(part));
            let problem = Problem::new(Code::BadValue, message);
            let help = format!("host:port or unix:/path, {PEERS_MAX} at the most");
            self.complain(given, problem.help(help));
        }
        let values = self.values(&scope);
        Runtime {
            workers,
            peers: peers.unwrap_or_default(),
            max_clients: values.count("max_clients").unwrap_or(default::MAX_CLIENTS),
            max_servers: values.limit("max_servers"),
            max_database_clients: values.limit("max_database_clients"),
            max_user_clients: values.limit("max_user_clients"),
            max_user_servers: values.limit("max_user_servers"),
            shutdown_timeout: values
                .duration("shutdown_timeout")
                .unwrap_or(default::SHUTDOWN_TIMEOUT),
            suspend_timeout: values.duration("suspend_timeout").unwrap_or(default::SUSPEND_TIMEOUT),
            login_timeout: values.duration("login_timeout").unwrap_or(default::LOGIN_TIMEOUT),
            upgrade_timeout: values.duration("upgrade_timeout").unwrap_or(default::UPGRADE_TIMEOUT),
            pid_file: values.path("pid_file"),
            control_socket: values.path("control_socket"),
        }
    }

    fn auth(&mut self, listen: &Listen) -> Auth {
        let scope = Scope::fixed(Section::Auth);
        let settings = self.settings;
        let values = self.values(&scope);
        let method = values
            .text("method")
            .and_then(|word| AuthMethod::from_name(&word))
            .unwrap_or(default::AUTH_METHOD);
        let users_file = values.path("users_file");
        let known_only = values.flag("known_only").unwrap_or(default::KNOWN_ONLY);
        let (admin_users, stats_users) = (values.names("admin_users"), values.names("stats_users"));
        let query = self.auth_query(&scope);
        self.check_lonely_query(&scope);
        let mut file_users = BTreeMap::new();
        if let (Some(path), Some(given)) = (&users_file, settings.get(&scope, "users_file")) {
            match files::read(path) {
                Err(why) => self.complain(given, unreadable(path, &why)),
                Ok(text) => match files::parse_users(&path.display().to_string(), &text) {
                    Ok(users) => file_users = users,
                    Err(problems) => self.problems.extend(problems),
                },
            }
        }
        if matches!(method, AuthMethod::Trust | AuthMethod::Any) {
            self.check_trust(&scope, listen);
        }
        let (hba, maps, ident_map) = self.admission(method, listen);
        Auth {
            method,
            known_only,
            file_users,
            users_file,
            hba,
            maps,
            ident_map,
            query,
            admin_users,
            stats_users,
        }
    }

    /// Nobody chose trust when a URL without password led to it, so it must stay on this machine.
    fn check_trust(&mut self, scope: &Scope, listen: &Listen) {
        let reachable = listen.tcp().find(|address| !address.ip().is_loopback());
        let settings = self.settings;
        let (Some(address), Some(method)) = (reachable, settings.get(scope, "method")) else {
            return;
        };
        if method.layer > Layer::Implied {
            let notice = match &method.value {
                Value::Text(word) if word == AuthMethod::Any.name() => format!(
                    "auth.method is any: whoever reaches {address} may come in, and use the console"
                ),
                _ => format!("auth.method is trust: whoever reaches {address} may come in"),
            };
            self.notices.push(notice);
            return;
        }
        let message =
            format!("without a password in the URL, whoever reaches {address} could come in");
        let problem = Problem::new(Code::TrustTooWide, message)
            .help("put a user and a password into the URL: clients log in with them")
            .help("or listen on 127.0.0.1, or set PONDAGE_AUTH__METHOD=trust");
        self.complain(method, problem);
    }

    fn telemetry(&mut self) -> Telemetry {
        let scope = Scope::fixed(Section::Telemetry);
        let otlp = self.otlp(&scope);
        let values = self.values(&scope);
        Telemetry {
            log_file: values.path("log_file"),
            log_level: values.text("log_level").unwrap_or_else(|| default::LOG_LEVEL.to_owned()),
            log_format: values
                .text("log_format")
                .and_then(|word| LogFormat::from_name(&word))
                .unwrap_or(default::LOG_FORMAT),
            log_connections: values.flag("log_connections").unwrap_or(default::LOG_CONNECTIONS),
            log_disconnections: values
                .flag("log_disconnections")
                .unwrap_or(default::LOG_DISCONNECTIONS),
            stats_period: values.duration("stats_period").unwrap_or(default::STATS_PERIOD),
            log_stats: values.flag("log_stats").unwrap_or(default::LOG_STATS),
            otlp,
        }
    }

    fn databases(&mut self) -> BTreeMap<String, Database> {
        let settings = self.settings;
        let mut databases = BTreeMap::new();
        for (scope, named) in settings.of(Section::Database) {
            self.check_name("database", &scope.database, named);
            databases.insert(scope.database.clone(), self.database(scope));
        }
        for (scope, named) in settings.of(Section::DatabaseUser) {
            self.check_name("user", &scope.user, named);
            let options = self.pool(scope);
            // A section of a user names the database too.
            let database = Scope::database(&scope.database);
            databases
                .entry(scope.database.clone())
                .or_insert_with(|| self.database(&database))
                .users
                .insert(scope.user.clone(), options);
        }
        databases
    }

    fn check_name(&mut self, what: &str, name: &str, named: &Named) {
        let shown = escaped(name);
        let problem = if what == "database" && super::is_console(name) {
            Problem::new(Code::BadName, format!("the database name `{shown}` is the console's"))
                .help("give it another name here and set `dbname`")
        } else if what == "user" && name == "*" {
            Problem::new(Code::BadName, "`*` is no user")
                .help("what is the same for every user stands in `[pool]`")
        } else if !is_name(name) {
            let message = format!("`{shown}` can't be the name of a {what}");
            Problem::new(Code::BadName, message)
                .note("names have 1 to 63 bytes and no control characters")
        } else {
            return;
        };
        self.complain_at(named.place.as_ref(), problem);
    }

    fn database(&mut self, scope: &Scope) -> Database {
        let options = self.pool(scope);
        self.certificate_pair(scope, "tls_cert", "tls_key");
        self.readable(scope, "tls_ca", files::check_certificates);
        let (host, port, several) = self.hosts(scope);
        let negotiation = self.tls_negotiation(scope);
        let versions = self.tls_versions(scope, "tls_min_version", "tls_max_version");
        let auth_query = self.auth_query(scope);
        let values = self.values(scope);
        let mode = values.text("tls_mode").and_then(|word| ServerTlsMode::from_name(&word));
        let mode = mode.unwrap_or(default::SERVER_TLS_MODE);
        let binding =
            values.text("channel_binding").and_then(|word| ChannelBinding::from_name(&word));
        let protocol =
            values.text("max_protocol_version").and_then(|word| ServerProtocol::from_name(&word));
        Database {
            upstream: UpstreamOptions {
                host,
                port,
                several,
                dbname: values.text("dbname"),
                user: values.text("user"),
                password: values.secret("password"),
                tls: ServerTls {
                    mode,
                    ca: values.path("tls_ca"),
                    cert: values.path("tls_cert"),
                    key: values.path("tls_key"),
                    binding: binding.unwrap_or(default::CHANNEL_BINDING),
                    negotiation,
                    versions,
                },
                protocol: protocol.unwrap_or(default::SERVER_PROTOCOL),
                connect_query: values.text("connect_query"),
                application_name: values.text("application_name"),
            },
            options,
            users: BTreeMap::new(),
            max_client_connections: values.count("max_client_connections"),
            max_server_connections: values.count("max_server_connections"),
            disabled: values.flag("disabled").unwrap_or(default::DISABLED),
            auth_query,
            caches: self.caches(scope),
            mirrors: self.mirrors(scope),
        }
    }

    fn users(&mut self) -> BTreeMap<String, User> {
        let settings = self.settings;
        let mut users = BTreeMap::new();
        for (scope, named) in settings.of(Section::User) {
            self.check_name("user", &scope.user, named);
            let options = self.pool(scope);
            let values = self.values(scope);
            let max_client_connections = values.count("max_client_connections");
            let max_server_connections = values.count("max_server_connections");
            let secret = match values.secret("password").map(|stored| Secret::parse(&stored)) {
                None => None,
                Some(Ok(secret)) => Some(secret),
                Some(Err(_)) => {
                    let given =
                        settings.get(scope, "password_file").or(settings.get(scope, "password"));
                    if let Some(given) = given {
                        let message = "`password` is a malformed SCRAM verifier";
                        self.complain(given, Problem::new(Code::BadSecret, message));
                    }
                    None
                }
            };
            let user = User { secret, options, max_client_connections, max_server_connections };
            users.insert(scope.user.clone(), user);
        }
        users
    }

    fn pool(&mut self, scope: &Scope) -> PoolOptions {
        self.check_pool_sizes(scope);
        let values = self.values(scope);
        PoolOptions {
            mode: values.text("mode").and_then(|word| PoolMode::from_name(&word)),
            pool_size: values.count("pool_size"),
            min_pool_size: values.count("min_pool_size"),
            reserve_pool_size: values.count("reserve_pool_size"),
            reserve_pool_timeout: values.duration("reserve_pool_timeout"),
            wait_timeout: values.duration("wait_timeout"),
            wait_notify: values.duration("wait_notify"),
            connect_timeout: values.duration("connect_timeout"),
            server_login_retry: values.duration("server_login_retry"),
            server_lifetime: values.duration("server_lifetime"),
            server_idle_timeout: values.duration("server_idle_timeout"),
            server_check_delay: values.duration("server_check_delay"),
            server_check_query: values.text("server_check_query"),
            server_reset_query: values.text("server_reset_query"),
            server_reset_always: values.flag("server_reset_always"),
            server_fast_close: values.flag("server_fast_close"),
            server_round_robin: values.flag("server_round_robin"),
            max_prepared_statements: values.count("max_prepared_statements"),
            max_pinned: values.count("max_pinned"),
            query_timeout: values.duration("query_timeout"),
            transaction_timeout: values.duration("transaction_timeout"),
            idle_transaction_timeout: values.duration("idle_transaction_timeout"),
            client_idle_timeout: values.duration("client_idle_timeout"),
            application_name_add_host: values.flag("application_name_add_host"),
            ignore_startup_parameters: values
                .value("ignore_startup_parameters")
                .map(|_| values.names("ignore_startup_parameters")),
            refuse_simple: values.flag("refuse_simple"),
            listen: values.text("listen").and_then(|word| ListenMode::from_name(&word)),
            coalesce: values.text("coalesce").and_then(|word| Coalesce::from_name(&word)),
            prepare_simple: values.flag("prepare_simple"),
            coalesce_writes: values.flag("coalesce_writes"),
            procedures: values.text("procedures").and_then(|word| Calls::from_name(&word)),
            coalesce_depth: values.count("coalesce_depth"),
            coalesce_short: values.duration("coalesce_short"),
            coalesce_stall: values.duration("coalesce_stall"),
            cache: values.text("cache").and_then(|word| CacheMode::from_name(&word)),
            cache_freshness: values
                .text("cache_freshness")
                .and_then(|word| Freshness::from_name(&word)),
            cache_max_lag: values.duration("cache_max_lag"),
        }
    }

    /// The smallest size of a pool is not above its size, with what a section inherits.
    fn check_pool_sizes(&mut self, scope: &Scope) {
        let settings = self.settings;
        let mut layers = vec![scope.clone()];
        if scope.section == Section::DatabaseUser {
            layers.push(Scope::user(&scope.user));
            layers.push(Scope::database(&scope.database));
        }
        if scope.section != Section::Pool {
            layers.push(Scope::fixed(Section::Pool));
        }
        let effective = |name: &str, preset: u32| {
            layers
                .iter()
                .find_map(|layer| match settings.value(layer, name) {
                    Some(Value::Count(count)) => Some(*count),
                    _ => None,
                })
                .unwrap_or(preset)
        };
        let size = effective("pool_size", default::POOL_SIZE);
        let least = effective("min_pool_size", default::MIN_POOL_SIZE);
        let given = settings.get(scope, "min_pool_size").or(settings.get(scope, "pool_size"));
        if let (true, Some(given)) = (least > size, given) {
            let message = format!("min_pool_size is {least}, above pool_size, which is {size}");
            self.complain(given, Problem::new(Code::Contradiction, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::automatic_workers;

    #[test]
    fn one_worker_on_two_cores_and_four_at_most() {
        let workers = [1, 2, 3, 4, 6, 8, 64].map(automatic_workers);
        assert_eq!(workers, [1, 1, 1, 2, 3, 4, 4]);
    }
}
