//! Figures of the engine for the process's console, its metrics, and INFO.

use crate::call::whole;
use crate::command;
use crate::engine::Engine;
use crate::pubsub::Space;
use crate::session::Session;
use crate::stats::{Batches, Calls, Folds};

#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Commands that were given, by name.
    pub commands: Vec<(&'static str, Calls)>,
    /// Errors that were replied, by code.
    pub errors: Vec<(Box<str>, u64)>,
    pub processed: u64,
    pub errors_replied: u64,
    pub connected: usize,
    /// Connections since the beginning.
    pub connections: u64,
    pub blocked: usize,
    pub in_flight: usize,
    pub batches: Batches,
    /// Batches that were sent once more.
    pub retries: u64,
    pub folds: Folds,
    /// Bytes that may wait in the journal.
    pub journal_max: usize,
    /// Changes by SQL that the journal has overwritten.
    pub overwritten: u64,
    /// Questions for rows, and rows asked for.
    pub loads: u64,
    pub loaded: u64,
    /// Keys in memory, with those that are known not to exist, and their bytes.
    pub resident: usize,
    pub bytes: usize,
    pub bytes_max: usize,
    /// Commands that found what they asked for in memory, and those that had to ask PostgreSQL.
    pub hits: u64,
    pub misses: u64,
    pub evicted: u64,
    pub expired: u64,
    pub channels: usize,
    pub patterns: usize,
    pub shard_channels: usize,
    /// Why PostgreSQL can't be used now, and since when, in milliseconds since 1970.
    pub away: Option<(String, i64)>,
    /// Database, key, and about how often it was named lately.
    pub hot: Vec<(u16, Box<[u8]>, u64)>,
}

/// A connection.
#[derive(Debug, Clone)]
pub struct Client {
    /// CLIENT ID.
    pub number: u64,
    pub user: Box<str>,
    pub address: Box<str>,
    pub local_address: Box<str>,
    /// CLIENT SETNAME.
    pub name: String,
    /// The client library and its version.
    pub library: String,
    pub db: u16,
    pub protocol: u8,
    /// Milliseconds since 1970.
    pub since: i64,
    pub last_seen: i64,
    pub last_command: &'static str,
    pub state: &'static str,
}

impl Client {
    fn of(session: &Session) -> Client {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (library, version) = (whole(&session.library.0), whole(&session.library.1));
        Client {
            number: session.number,
            user: session.user.clone(),
            address: session.address.clone(),
            local_address: session.local_address.clone(),
            name: text(whole(&session.name)),
            library: text(&[library, version].join(&b' ')).trim_end().to_owned(),
            db: session.db,
            protocol: session.protocol,
            since: session.since,
            last_seen: session.last_seen,
            last_command: session.last_command,
            state: match session {
                Session { blocked: Some(_), .. } => "blocked",
                Session { multi: Some(_), .. } => "transaction",
                _ if session.outstanding > 0 => "loading",
                _ if !session.subscriptions.is_empty() => "subscribed",
                _ => "idle",
            },
        }
    }
}

impl Engine {
    /// Everybody who is connected, in the order in which they came.
    pub fn clients(&self) -> Vec<Client> {
        let mut clients: Vec<Client> = self.server.sessions.iter().map(Client::of).collect();
        clients.sort_unstable_by_key(|client| client.number);
        clients
    }

    pub fn figures(&self) -> Figures {
        let (stats, keys) = (&self.server.stats, &self.keys);
        let calls = stats.commands.iter().copied();
        Figures {
            commands: command::all()
                .map(|command| command.name)
                .zip(calls)
                .filter(|(_, calls)| calls.calls + calls.rejected > 0)
                .collect(),
            errors: stats.errors.iter().map(|(code, count)| (code.clone(), *count)).collect(),
            processed: stats.processed,
            errors_replied: stats.errors_replied,
            connected: self.server.sessions.len(),
            connections: self.server.sessions.opened(),
            blocked: self.server.sessions.iter().filter(|s| s.blocked.is_some()).count(),
            in_flight: self.in_flight(),
            batches: stats.batches,
            retries: self.store.retries(),
            folds: stats.folds.clone(),
            journal_max: self.server.settings.journal_limit,
            overwritten: keys.stats.overwritten,
            loads: stats.loads,
            loaded: stats.loaded,
            resident: keys.resident(),
            bytes: keys.bytes(),
            bytes_max: self.server.settings.memory,
            hits: keys.stats.hits,
            misses: keys.stats.misses,
            evicted: keys.stats.evicted,
            expired: keys.stats.expired,
            channels: self.server.hub.of(Space::Channel).len(),
            patterns: self.server.hub.of(Space::Pattern).len(),
            shard_channels: self.server.hub.of(Space::Shard).len(),
            away: self.server.away.clone(),
            hot: stats.hot.keys(),
        }
    }
}
