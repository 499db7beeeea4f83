//! The rows of SHOW REDIS and of what belongs to it: what Redis clients do, and what becomes of it.

use std::time::{Duration, SystemTime};

use ::redis::figures::{Client, Figures};

use super::show::time;
use super::table::Value;
use crate::config::Config;
use crate::worker::redis::Snapshot;

/// Of a key, so many bytes are shown.
const KEY_BYTES_MAX: usize = 200;

/// One row for each figure. Without a door there is one that says so.
pub fn overview(config: &Config, snapshot: Option<&Snapshot>) -> Vec<Vec<Value>> {
    let row = |(key, value): (&'static str, String)| vec![Value::text(key), Value::text(value)];
    let Some(Snapshot { figures, .. }) = snapshot else {
        return vec![row(("state", "off".to_owned()))];
    };
    state(config, figures).into_iter().chain(counted(figures)).map(row).collect()
}

fn state(config: &Config, figures: &Figures) -> Vec<(&'static str, String)> {
    let (state, why, since) = match &figures.away {
        None => ("ready", "", String::new()),
        Some((why, since)) => ("away", why.as_str(), when(*since)),
    };
    let pool = config.redis_pool();
    let upstream = pool.as_ref().map(|pool| &pool.upstream);
    vec![
        ("state", state.to_owned()),
        ("why", why.to_owned()),
        ("since", since),
        ("database", config.redis.database.clone().unwrap_or_default()),
        ("user", upstream.map_or_else(String::new, |upstream| upstream.user.clone())),
    ]
}

fn counted(figures: &Figures) -> Vec<(&'static str, String)> {
    let (batches, folds) = (&figures.batches, &figures.folds);
    let mean = |sum: u64, count: u64| sum.checked_div(count).unwrap_or(0).to_string();
    let asked = figures.hits + figures.misses;
    let rate = match asked {
        0 => String::new(),
        _ => format!("{:.1}", figures.hits as f64 * 100.0 / asked as f64),
    };
    vec![
        ("clients", figures.connected.to_string()),
        ("blocked_clients", figures.blocked.to_string()),
        ("connections", figures.connections.to_string()),
        ("commands", figures.processed.to_string()),
        ("errors", figures.errors_replied.to_string()),
        ("batches", batches.sent.to_string()),
        ("batches_in_flight", figures.in_flight.to_string()),
        ("rows", batches.rows.to_string()),
        ("rows_per_batch", mean(batches.rows, batches.sent)),
        ("commits", batches.committed.to_string()),
        ("commit_us", mean(batches.commit_us, batches.committed)),
        ("last_commit_us", batches.last_commit_us.to_string()),
        ("retries", figures.retries.to_string()),
        ("conflicts", batches.conflicts.to_string()),
        ("refused", batches.refused.to_string()),
        ("journal_backlog_bytes", folds.backlog.to_string()),
        ("journal_limit", figures.journal_max.to_string()),
        ("folds", folds.folds.to_string()),
        ("keys_per_fold", mean(folds.keys, folds.folds)),
        ("last_fold_us", folds.last_us.to_string()),
        ("fold_failures", folds.failed.to_string()),
        ("fold_error", folds.error.clone().unwrap_or_default()),
        ("fold_overwritten", figures.overwritten.to_string()),
        ("lookups", figures.loads.to_string()),
        ("looked_up_keys", figures.loaded.to_string()),
        ("resident_keys", figures.resident.to_string()),
        ("resident_bytes", figures.bytes.to_string()),
        ("memory", figures.bytes_max.to_string()),
        ("hits", figures.hits.to_string()),
        ("misses", figures.misses.to_string()),
        ("hit_percent", rate),
        ("evicted", figures.evicted.to_string()),
        ("expired", figures.expired.to_string()),
        ("channels", figures.channels.to_string()),
        ("patterns", figures.patterns.to_string()),
        ("shard_channels", figures.shard_channels.to_string()),
    ]
}

/// One row for each command that was given; what was given most comes first.
pub fn commands(snapshot: &Snapshot) -> Vec<Vec<Value>> {
    let mut commands = snapshot.figures.commands.clone();
    commands.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.calls));
    let row = |(name, calls): (&'static str, ::redis::stats::Calls)| {
        vec![
            Value::text(name),
            Value::from(calls.calls),
            Value::from(calls.failed),
            Value::from(calls.rejected),
        ]
    };
    commands.into_iter().map(row).collect()
}

/// The keys that were named most since the start, with about how often.
pub fn keys(snapshot: &Snapshot) -> Vec<Vec<Value>> {
    let row = |(db, key, calls): &(u16, Box<[u8]>, u64)| {
        vec![Value::from(u32::from(*db)), Value::text(shown(key)), Value::from(*calls)]
    };
    snapshot.figures.hot.iter().map(row).collect()
}

/// As text, unless it is none: then as SQL and Redis write bytes.
fn shown(key: &[u8]) -> String {
    let part = &key[..key.len().min(KEY_BYTES_MAX)];
    let more = if part.len() < key.len() { "..." } else { "" };
    match std::str::from_utf8(part) {
        Ok(text) if !text.contains(char::is_control) => format!("{text}{more}"),
        _ => format!("{}{more}", part.escape_ascii()),
    }
}

pub fn clients(snapshot: &Snapshot) -> Vec<Vec<Value>> {
    snapshot.clients.iter().map(client).collect()
}

fn client(client: &Client) -> Vec<Value> {
    let user = if client.user.is_empty() { "default" } else { &client.user };
    let text = |text: &str| Value::text(text.to_owned());
    vec![
        Value::from(client.number),
        text(user),
        text(client.state),
        text(&client.address),
        text(&client.local_address),
        Value::from(u32::from(client.db)),
        Value::from(u32::from(client.protocol)),
        text(&client.name),
        text(&client.library),
        text(client.last_command),
        Value::text(when(client.since)),
        Value::text(when(client.last_seen)),
    ]
}

/// Of milliseconds since 1970.
fn when(milliseconds: i64) -> String {
    let since = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
    time(SystemTime::UNIX_EPOCH + since)
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    fn value(rows: &[Vec<Value>], key: &'static str) -> Value {
        let row = rows.iter().find(|row| row[0] == Value::text(key));
        row.unwrap_or_else(|| panic!("there is no {key}"))[1].clone()
    }

    #[test]
    fn a_door_that_is_closed_says_so() {
        let rows = overview(&fixture::config(), None);
        assert_eq!(rows, [[Value::text("state"), Value::text("off")]]);
    }

    #[test]
    fn why_the_data_cannot_be_used_is_told_with_the_time_since_when() {
        let away = Some(("password authentication failed".to_owned(), 1_795_183_510_000));
        let figures = Figures { away, hits: 2, misses: 1, ..Figures::default() };
        let snapshot = Snapshot { figures, ..Snapshot::default() };
        let rows = overview(&fixture::config(), Some(&snapshot));
        assert_eq!(value(&rows, "state"), Value::text("away"));
        assert_eq!(value(&rows, "why"), Value::text("password authentication failed"));
        assert_eq!(value(&rows, "since"), Value::text("2026-11-20 14:05:10 UTC"));
        assert_eq!(value(&rows, "hit_percent"), Value::text("66.7"));
    }

    #[test]
    fn keys_are_shown_as_text_where_they_are_some() {
        assert_eq!(shown("größe".as_bytes()), "größe");
        assert_eq!(shown(b"a\0\xff"), "a\\x00\\xff");
        assert_eq!(shown(&[b'k'; 300]).len(), KEY_BYTES_MAX + 3);
    }
}
