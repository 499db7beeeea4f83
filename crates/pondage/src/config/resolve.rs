//! From nested options to what one pool lives by: the nearest value wins.

use std::sync::Arc;
use std::time::Duration;

use super::{Config, PoolConfig, PoolMode, PoolOptions, Refusal, Upstream};
use wire::pg::auth::Secret;

pub(super) fn pool(config: &Config, name: &str, user: &str) -> Result<Arc<PoolConfig>, Refusal> {
    let database = config
        .databases
        .get(name)
        .or_else(|| config.databases.get("*"))
        .ok_or(Refusal::UnknownDatabase)?;
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
    let seconds = Duration::from_secs;
    let upstream_user = database.upstream.user.clone().unwrap_or_else(|| user.to_owned());
    let password = match &database.upstream.password {
        Some(password) => Some(Secret::Plain(password.clone())),
        None => config.secret(&upstream_user).cloned(),
    };
    Ok(Arc::new(PoolConfig {
        database: name.to_owned(),
        user: user.to_owned(),
        mode: nearest!(mode, PoolMode::Transaction),
        pool_size: nearest!(pool_size, 20),
        min_pool_size: nearest!(min_pool_size, 0),
        reserve_pool_size: nearest!(reserve_pool_size, 0),
        reserve_pool_timeout: nearest!(reserve_pool_timeout, seconds(5)),
        wait_timeout: nearest!(wait_timeout, seconds(120)),
        connect_timeout: nearest!(connect_timeout, seconds(15)),
        server_login_retry: nearest!(server_login_retry, seconds(1)),
        server_lifetime: nearest!(server_lifetime, seconds(3600)),
        server_idle_timeout: nearest!(server_idle_timeout, seconds(600)),
        server_check_delay: nearest!(server_check_delay, seconds(30)),
        server_check_query: nearest!(server_check_query, String::new()),
        server_reset_query: nearest!(server_reset_query, "DISCARD ALL".to_owned()),
        server_reset_always: nearest!(server_reset_always, false),
        max_prepared_statements: nearest!(max_prepared_statements, 200),
        query_timeout: nearest!(query_timeout, Duration::ZERO),
        idle_transaction_timeout: nearest!(idle_transaction_timeout, Duration::ZERO),
        client_idle_timeout: nearest!(client_idle_timeout, Duration::ZERO),
        max_database_clients: database.max_client_connections,
        max_user_clients: user_section.and_then(|section| section.max_client_connections),
        max_database_servers: database.max_server_connections,
        max_user_servers: user_section.and_then(|section| section.max_server_connections),
        disabled: database.disabled,
        upstream: Upstream {
            host: database.upstream.host.clone(),
            port: database.upstream.port,
            database: database.upstream.dbname.clone().unwrap_or_else(|| name.to_owned()),
            user: upstream_user,
            password,
            tls: database.upstream.tls.clone(),
            connect_query: database.upstream.connect_query.clone(),
            application_name: database.upstream.application_name.clone(),
        },
    }))
}
