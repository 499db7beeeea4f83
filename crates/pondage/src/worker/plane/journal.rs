//! What the log is told of connections that come and go.

use std::fmt;

use backend::moment::Moment;

use super::lending::user_of;
use super::{Plane, PoolState, ServerConn};
use crate::link::Ends;
use crate::session::client::{Client, Phase};

impl Plane {
    /// A client has been greeted.
    pub(super) fn log_login(&self, slot: u32) {
        let client = &self.clients[slot];
        if !self.config.telemetry.log_connections {
            return;
        }
        let (db, user) = self.names_of(client);
        let replication = self.servers.get(client.server).is_some_and(|conn| conn.replication);
        tracing::info!(event = "client_login", client_id = client.id, db, user,
            addr = %Address(&client.ends), app = client.settings.get("application_name").unwrap_or(""),
            tls = client.tls.as_deref().unwrap_or("no"),
            replication = if replication { "yes" } else { "no" });
    }

    /// A client is about to be forgotten.
    pub(super) fn log_left(&self, slot: u32, why: &str) {
        let Some(client) = self.clients.get(slot) else { return };
        let (db, user) = self.names_of(client);
        // Who has not even said its name may be anybody's health check.
        if !self.config.telemetry.log_disconnections || user.is_empty() {
            return;
        }
        let stayed = self.now.since(client.connected).as_millis() as u64;
        tracing::info!(event = "client_closed", client_id = client.id, db, user,
            addr = %Address(&client.ends), duration_ms = stayed, why);
    }

    /// The database and the user that a client has named; empty before.
    pub(super) fn names_of<'a>(&'a self, client: &'a Client) -> (&'a str, &'a str) {
        match &client.phase {
            Phase::LoggingIn(login) | Phase::AwaitWelcome(login) => {
                (&login.wish.database, &login.wish.user)
            }
            Phase::Console(who) => (&who.database, &who.user),
            Phase::Pooled => self
                .pools
                .get(client.pool as usize)
                .map_or(("", ""), |pool| (&pool.name.database, user_of(client, pool))),
            Phase::Leaving => ("", ""),
        }
    }

    /// A server has logged in.
    pub(super) fn log_opened(&self, server: u32) {
        let Some(conn) = self.servers.get(server) else { return };
        if !self.config.telemetry.log_connections {
            return;
        }
        let config = &self.pools[conn.pool as usize].config;
        let from = match &conn.ends {
            Ends::Tcp { local, .. } => Some(local),
            Ends::Unix { .. } => None,
        };
        tracing::info!(event = "server_opened", server_id = conn.id, db = %config.database,
            user = %config.upstream.user, addr = %Address(&conn.ends),
            from = from.map(tracing::field::display), remote_pid = conn.pid, "new connection to server");
    }

    /// A server is closed.
    pub(super) fn log_closed(&self, conn: &ServerConn, why: &str) {
        if !self.config.telemetry.log_disconnections {
            return;
        }
        let config = &self.pools[conn.pool as usize].config;
        let lived = self.now.since(conn.server.opened).as_millis() as u64;
        tracing::info!(event = "server_closed", server_id = conn.id, db = %config.database,
            user = %config.upstream.user, addr = %Address(&conn.ends), duration_ms = lived,
            why);
    }

    /// A pool opens a server beyond its size.
    pub(super) fn log_reserve(&self, at: u32) {
        let pool = &self.pools[at as usize];
        let servers = pool.pool.shared().servers.taken();
        if servers > pool.limits.size {
            tracing::warn!(event = "reserve_taken", db = %pool.name.database, user = %pool.name.user,
                servers, "taking connection from reserve_pool");
        }
    }
}

/// Why a server that [`Plane::retires`] is closed, in PgBouncer's words where it has some.
pub(super) fn worn(conn: &ServerConn, pool: &PoolState, now: Moment) -> &'static str {
    let lifetime = pool.config.server_lifetime;
    match () {
        () if conn.epoch != pool.epoch => "database configuration changed",
        () if conn.close_needed => "close_needed",
        () if conn.is_unfit() => "host is no longer what is asked for",
        () if conn.server.is_dying() => "server is shutting down",
        () if conn.server.has_library() => "session has loaded a library",
        () if !lifetime.is_zero() && now.since(conn.server.opened) >= lifetime => {
            "server lifetime over"
        }
        () => "obsolete connection",
    }
}

/// The far end of a connection, in PgBouncer's manner.
pub(super) struct Address<'a>(pub &'a Ends);

impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ends::Tcp { remote, .. } => remote.fmt(f),
            Ends::Unix { peer_pid: Some(pid), port } => write!(f, "unix({pid}):{port}"),
            Ends::Unix { peer_pid: None, port } => write!(f, "unix:{port}"),
        }
    }
}
