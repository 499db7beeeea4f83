//! From nested options to what one pool lives by: the nearest value wins.

use std::sync::Arc;

use super::options::default;
use super::{AuthQuery, CacheMode, Config, PoolConfig, PoolOptions, Refusal, Upstream};
use wire::pg::auth::Secret;

/// The pool that the data of Redis clients are behind, with the user of the connections there.
pub(super) fn redis(config: &Config) -> Option<Arc<PoolConfig>> {
    let name = config.redis.database.as_deref()?;
    let database = config.databases.get(name).or_else(|| config.databases.get("*"))?;
    let user = config.redis.user.as_ref().or(database.upstream.user.as_ref())?;
    own_connections(config, name, user)
}

/// The pool whose server is followed for the cache, with the user and password of the stream.
pub(super) fn stream(config: &Config, name: &str) -> Option<Arc<PoolConfig>> {
    let database = config.databases.get(name).or_else(|| config.databases.get("*"))?;
    let user = config.cache.user.as_ref().or(database.upstream.user.as_ref())?;
    let found = own_connections(config, name, user)?;
    let Some(password) = &config.cache.password else { return Some(found) };
    let mut own = PoolConfig::clone(&found);
    own.upstream.password = Some(password.clone());
    Some(Arc::new(own))
}

/// Users of the console are looked up where `auth.query_database` says so: none is asked for.
pub(super) fn auth_query<'a>(config: &'a Config, name: &str) -> Option<&'a AuthQuery> {
    if super::is_console(name) {
        return config.auth.query.as_ref().filter(|query| query.database.is_some());
    }
    let database = config.databases.get(name).or_else(|| config.databases.get("*"))?;
    database.auth_query.as_ref()
}

pub(super) fn console(config: &Config, name: &str) -> Option<Arc<PoolConfig>> {
    let query = auth_query(config, name)?;
    let found = pool(config, query.database.as_deref()?, &query.user).ok()?;
    Some(Arc::new(PoolConfig { database: name.to_owned(), ..PoolConfig::clone(&found) }))
}

/// Whether any pool of a database may cache.
pub(super) fn caches(config: &Config, name: &str) -> bool {
    let Some(database) = config.databases.get(name).or_else(|| config.databases.get("*")) else {
        return false;
    };
    // An empty name stands for users without a section.
    let users = database.users.keys().chain(config.users.keys()).map(String::as_str);
    let mut pools = users.chain([""]).filter_map(|user| pool(config, name, user).ok());
    pools.any(|pool| pool.cache != CacheMode::Off)
}

/// What connections of Pondage's own live by that log in as `user`.
fn own_connections(config: &Config, name: &str, user: &str) -> Option<Arc<PoolConfig>> {
    let found = pool(config, name, user).ok()?;
    if found.upstream.user == user {
        return Some(found);
    }
    // The database forces another user on its clients, whose password is none of this one's.
    let mut own = PoolConfig::clone(&found);
    user.clone_into(&mut own.user);
    user.clone_into(&mut own.upstream.user);
    own.upstream.password = config.secret(user).cloned();
    Some(Arc::new(own))
}

/// By whom the pool is named that `user` is in: where a database logs in as one user for all its
/// clients they share a pool, but for those of whose pools something is said.
pub(super) fn pool_user<'a>(config: &'a Config, name: &str, user: &'a str) -> &'a str {
    let database = config.databases.get(name).or_else(|| config.databases.get("*"));
    let Some((database, forced)) = database.and_then(|it| Some((it, it.upstream.user.as_ref()?)))
    else {
        return user;
    };
    // What PgBouncer's `[users]` says of pools is for those that the server knows as these users.
    let has_options = !config.inputs.is_ini()
        && config.users.get(user).is_some_and(|section| section.options != PoolOptions::default());
    match has_options || database.users.contains_key(user) {
        true => user,
        false => forced,
    }
}

pub(super) fn pool(config: &Config, name: &str, user: &str) -> Result<Arc<PoolConfig>, Refusal> {
    let database = config
        .databases
        .get(name)
        .or_else(|| config.databases.get("*"))
        .ok_or(Refusal::UnknownDatabase)?;
    let user = pool_user(config, name, user);
    let user_section = config.users.get(user);
    let none = PoolOptions::default();
    // Nearest first.
    let layers: [&PoolOptions; 4] = [
        database.users.get(user).unwrap_or(&none),
        user_section.map_or(&none, |section| &section.options),
        &database.options,
        &config.pool,
    ];
    macro_rules! nearest {
        ($field:ident, $default:expr) => {
            layers.iter().find_map(|layer| layer.$field.clone()).unwrap_or($default)
        };
    }
    let upstream_user = database.upstream.user.clone().unwrap_or_else(|| user.to_owned());
    let password = match &database.upstream.password {
        Some(password) => Some(Secret::Plain(password.clone())),
        None => config.secret(&upstream_user).cloned(),
    };
    let pool_size = nearest!(pool_size, default::POOL_SIZE);
    Ok(Arc::new(PoolConfig {
        database: name.to_owned(),
        user: user.to_owned(),
        mode: nearest!(mode, default::MODE),
        pool_size,
        min_pool_size: nearest!(min_pool_size, default::MIN_POOL_SIZE),
        reserve_pool_size: nearest!(reserve_pool_size, default::RESERVE_POOL_SIZE),
        reserve_pool_timeout: nearest!(reserve_pool_timeout, default::RESERVE_POOL_TIMEOUT),
        wait_timeout: nearest!(wait_timeout, default::WAIT_TIMEOUT),
        wait_notify: nearest!(wait_notify, default::WAIT_NOTIFY),
        connect_timeout: nearest!(connect_timeout, default::CONNECT_TIMEOUT),
        server_login_retry: nearest!(server_login_retry, default::SERVER_LOGIN_RETRY),
        server_lifetime: nearest!(server_lifetime, default::SERVER_LIFETIME),
        server_idle_timeout: nearest!(server_idle_timeout, default::SERVER_IDLE_TIMEOUT),
        server_check_delay: nearest!(server_check_delay, default::SERVER_CHECK_DELAY),
        server_check_query: nearest!(server_check_query, default::SERVER_CHECK_QUERY.to_owned()),
        server_reset_query: nearest!(server_reset_query, default::SERVER_RESET_QUERY.to_owned()),
        server_reset_always: nearest!(server_reset_always, default::SERVER_RESET_ALWAYS),
        server_fast_close: nearest!(server_fast_close, default::SERVER_FAST_CLOSE),
        server_round_robin: nearest!(server_round_robin, default::SERVER_ROUND_ROBIN),
        max_prepared_statements: nearest!(
            max_prepared_statements,
            default::MAX_PREPARED_STATEMENTS
        ),
        max_pinned: nearest!(max_pinned, pool_size.saturating_sub(1).max(1)),
        query_timeout: nearest!(query_timeout, default::QUERY_TIMEOUT),
        transaction_timeout: nearest!(transaction_timeout, default::TRANSACTION_TIMEOUT),
        idle_transaction_timeout: nearest!(
            idle_transaction_timeout,
            default::IDLE_TRANSACTION_TIMEOUT
        ),
        client_idle_timeout: nearest!(client_idle_timeout, default::CLIENT_IDLE_TIMEOUT),
        application_name_add_host: nearest!(
            application_name_add_host,
            default::APPLICATION_NAME_ADD_HOST
        ),
        ignore_startup_parameters: nearest!(ignore_startup_parameters, Vec::new()),
        refuse_simple: nearest!(refuse_simple, default::REFUSE_SIMPLE),
        listen: nearest!(listen, default::LISTEN),
        coalesce: nearest!(coalesce, default::COALESCE),
        prepare_simple: nearest!(prepare_simple, default::PREPARE_SIMPLE),
        coalesce_writes: nearest!(coalesce_writes, default::COALESCE_WRITES),
        procedures: nearest!(procedures, default::CALLS),
        coalesce_depth: nearest!(coalesce_depth, default::COALESCE_DEPTH),
        coalesce_short: nearest!(coalesce_short, default::COALESCE_SHORT),
        coalesce_stall: nearest!(coalesce_stall, default::COALESCE_STALL),
        // Its stream follows one server; these may be on another.
        cache: match database.upstream.several.others.is_empty() {
            true => nearest!(cache, config.cache.mode),
            false => CacheMode::Off,
        },
        cache_freshness: nearest!(cache_freshness, config.cache.freshness),
        cache_max_lag: nearest!(cache_max_lag, config.cache.max_lag),
        max_database_clients: config.max_clients_in(database.max_client_connections),
        max_database_servers: database.max_server_connections.filter(|limit| *limit > 0),
        max_user_servers: config.max_servers_of(user),
        disabled: database.disabled,
        upstream: Upstream {
            host: database.upstream.host.clone(),
            port: database.upstream.port,
            several: database.upstream.several.clone(),
            database: database.upstream.dbname.clone().unwrap_or_else(|| name.to_owned()),
            user: upstream_user,
            password,
            tls: database.upstream.tls.clone(),
            protocol: database.upstream.protocol,
            connect_query: database.upstream.connect_query.clone(),
            application_name: database.upstream.application_name.clone(),
        },
    }))
}
