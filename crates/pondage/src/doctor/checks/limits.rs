//! Connections, and who holds what.

use backend::replication::catalogue::Row;
use backend::replication::missing::identifier;

use super::super::finding::Finding;
use super::super::patient::Patient;
use super::{Judged, NAMED_MAX};
use crate::config::{CacheMode, Config, PoolConfig};

/// A transaction that waits for its client for so long is worth a word, in seconds.
const IDLE_SECONDS: u32 = 60;

/// Of the stream of changes: one that follows, one that asks.
const OF_CACHE: u64 = 2;

pub fn connections_sql(_: &Patient<'_>) -> String {
    // reserved_connections is there from 16 on.
    "SELECT current_setting('max_connections'), \
     current_setting('superuser_reserved_connections'), \
     coalesce(current_setting('reserved_connections', true), '0')"
        .to_owned()
}

pub fn connections(patient: &Patient<'_>, mut rows: Vec<Row>) -> Judged {
    let Some(row) = rows.first_mut() else { return Judged::default() };
    let number = |row: &mut Row| row.number::<u64>().unwrap_or_default();
    let most = number(row);
    let kept = number(row) + number(row);
    let facts = &patient.facts;
    let wanted = wanted(patient.config, patient.pool);
    let mut findings = Vec::new();
    let room = most.saturating_sub(kept);
    if wanted > room {
        findings.push(
            Finding::problem(format!(
                "Pondage may open {wanted} connections, and max_connections = {most} leaves room \
                 for {room}"
            ))
            .effect("under load clients wait for servers that PostgreSQL refuses")
            .fix(format!("ALTER SYSTEM SET max_connections = {};", wanted + kept + 10))
            .fix("-- then restart the server; or give less in pool_size, max_server_connections or runtime.max_servers")
            .verify("SHOW max_connections;"),
        );
    }
    let limits = [
        (facts.role_limit, "ROLE", &facts.user),
        (facts.database_limit, "DATABASE", &facts.database),
    ];
    let of_database = u64::from(patient.pool.pool_size + patient.pool.reserve_pool_size);
    for (limit, kind, name) in limits {
        let Some(limit) = limit.filter(|limit| u64::from(*limit) < of_database) else { continue };
        let name = identifier(name);
        let what = kind.to_ascii_lowercase();
        findings.push(
            Finding::problem(format!(
                "the pool may open {of_database} connections, and {what} {name} may have {limit}"
            ))
            .effect("under load clients wait for servers that PostgreSQL refuses")
            .fix(format!("ALTER {kind} {name} CONNECTION LIMIT {of_database};"))
            .verify("SELECT rolconnlimit FROM pg_roles; SELECT datconnlimit FROM pg_database;"),
        );
    }
    (format!("up to {wanted} of {room}"), findings)
}

/// Connections that all pools may have at the server of this one, as far as the configuration
/// tells: one user for each database, as many as the databases' and the whole's limits let.
fn wanted(config: &Config, pool: &PoolConfig) -> u64 {
    let here = |other: &PoolConfig| {
        (&other.upstream.host, other.upstream.port) == (&pool.upstream.host, pool.upstream.port)
    };
    let mut sum = 0;
    let mut cache = 0;
    let mut counted = false;
    let names = config.databases.iter().filter(|(name, it)| *name != "*" && !it.disabled);
    for (name, _) in names {
        let Ok(other) = config.pool(name, &pool.user) else { continue };
        if !here(&other) {
            continue;
        }
        counted = counted || other.database == pool.database;
        sum += of_pool(&other);
        cache += if other.cache == CacheMode::Off { 0 } else { OF_CACHE };
    }
    if !counted {
        sum += of_pool(pool);
        cache += if pool.cache == CacheMode::Off { 0 } else { OF_CACHE };
    }
    let most = config.runtime.max_servers.map_or(u64::MAX, u64::from);
    sum.min(most) + cache
}

fn of_pool(pool: &PoolConfig) -> u64 {
    let most = pool.max_database_servers.map_or(u64::MAX, u64::from);
    u64::from(pool.pool_size + pool.reserve_pool_size).min(most)
}

/// Rows: what it is, its number or name, whose, for how many seconds.
pub fn transactions_sql(_: &Patient<'_>) -> String {
    format!(
        "(SELECT 'idle', pid::text, coalesce(usename, '') || ' ' || coalesce(application_name, ''), \
            floor(EXTRACT(epoch FROM now() - state_change))::int8 \
          FROM pg_stat_activity WHERE datname = current_database() \
            AND state LIKE 'idle in transaction%' \
            AND state_change < now() - interval '{IDLE_SECONDS} seconds' \
          ORDER BY 4 DESC LIMIT {NAMED_MAX}) \
         UNION ALL (SELECT 'prepared', quote_literal(gid), owner, \
            floor(EXTRACT(epoch FROM now() - prepared))::int8 \
          FROM pg_prepared_xacts WHERE database = current_database() \
            AND prepared < now() - interval '{IDLE_SECONDS} seconds' \
          ORDER BY 4 DESC LIMIT {NAMED_MAX})"
    )
}

pub fn transactions(_: &Patient<'_>, rows: Vec<Row>) -> Judged {
    let effect = "its locks stay, nothing that it may see is cleaned up, and a slot can't begin \
                  before it has ended";
    let finding = |mut row: Row| {
        let (kind, name, owner) = (row.text(), row.text(), row.text());
        let seconds = row.text();
        let owner = owner.trim_end();
        match kind.as_str() {
            "idle" => Finding::warning(format!(
                "process {name} of {owner} has been idle in a transaction for {seconds} s"
            ))
            .effect(effect)
            .fix(format!("SELECT pg_terminate_backend({name});"))
            .fix("-- behind Pondage: idle_transaction_timeout = \"1m\"")
            .verify("SELECT pid, state_change FROM pg_stat_activity WHERE state LIKE 'idle in%';"),
            _ => Finding::warning(format!(
                "transaction {name} of {owner} has been prepared for {seconds} s"
            ))
            .effect(effect)
            .fix(format!("ROLLBACK PREPARED {name}; -- or COMMIT PREPARED: ask who made it"))
            .verify("SELECT gid, prepared FROM pg_prepared_xacts;"),
        }
    };
    let findings = rows.into_iter().map(finding).collect();
    (format!("none has been idle for {IDLE_SECONDS} s, as far as this role sees"), findings)
}
