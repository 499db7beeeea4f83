//! Copies of what is, for the console and the metrics.

use std::time::{Duration, SystemTime};

use super::lending::user_of;
use super::{Place, Plane, PoolState, Preparing, ServerConn};
use crate::link::Ends;
use crate::session::client::{Client, Hold, Phase, NONE};
use crate::worker::shapes::Shape;
use crate::worker::snapshot::{
    ConnectionSnapshot, Detail, MemorySnapshot, PoolSnapshot, QuerySnapshot, ReadSnapshot,
    WorkerSnapshot,
};

impl Plane {
    pub(super) fn snapshot(&self, detail: Detail) -> WorkerSnapshot {
        let rows = self.pools.iter().enumerate().map(|(at, pool)| self.pool_row(at, pool));
        let mut pools: Vec<PoolSnapshot> = rows.collect();
        for (_, client) in self.clients.iter().filter(|(_, client)| client.listens.is_some()) {
            if let Some(pool) = pools.get_mut(client.pool as usize) {
                pool.listeners += 1;
            }
        }
        WorkerSnapshot {
            worker: self.worker,
            pools,
            clients: match detail.connections {
                true => self.client_rows(),
                false => Vec::new(),
            },
            servers: match detail.connections {
                true => self.server_rows(),
                false => Vec::new(),
            },
            clients_len: self.clients.iter().filter(|(_, client)| is_in(client)).count(),
            servers_len: self.servers.len(),
            pins: self.pin_rows(),
            memory: self.memory(),
            queries: if detail.statements { self.queries() } else { Vec::new() },
            channels: if detail.statements { self.channels() } else { Vec::new() },
            turns: self.turns,
            logging_in: self.logging_in,
            holders: self.holders(),
            now: self.now,
            refused: self.refused.iter().map(|(code, count)| (code.clone(), *count)).collect(),
        }
    }

    fn client_rows(&self) -> Vec<ConnectionSnapshot> {
        self.clients.iter().filter_map(|(slot, client)| self.client_row(slot, client)).collect()
    }

    fn server_rows(&self) -> Vec<ConnectionSnapshot> {
        self.servers.iter().map(|(slot, conn)| self.server_row(slot, conn)).collect()
    }

    fn queries(&self) -> Vec<QuerySnapshot> {
        let of_pool = |pool: &PoolState| -> Vec<QuerySnapshot> {
            let rows = pool.shapes.iter().filter(|shape| shape.calls > 0);
            rows.map(|shape| query_row(pool, shape)).collect()
        };
        self.pools.iter().flat_map(of_pool).collect()
    }

    fn pool_row(&self, at: usize, pool: &PoolState) -> PoolSnapshot {
        let mut row = PoolSnapshot {
            database: pool.name.database.clone(),
            user: pool.name.user.clone(),
            config: pool.config.clone(),
            mode: pool.config.mode,
            cl_active: 0,
            cl_waiting: 0,
            cl_active_cancel_req: 0,
            cl_waiting_cancel_req: 0,
            sv_active: 0,
            sv_active_cancel: 0,
            sv_being_canceled: 0,
            sv_idle: 0,
            sv_used: 0,
            sv_tested: 0,
            sv_login: pool.pool.opening(),
            maxwait: pool
                .pool
                .oldest_waiting()
                .map_or(Duration::ZERO, |(_, since)| self.now.since(since)),
            paused: pool.paused,
            disabled: pool.disabled,
            listeners: 0,
            totals: pool.totals,
            failing: self
                .failing(at as u32)
                .map(|failing| (failing.since, failing.tries, failing.error.message.clone())),
            share: Some(pool.pool.shared().share()).filter(|share| *share < u32::MAX),
            shortage: None,
        };
        row.cl_waiting = pool.waiting() as u32;
        row.shortage = (row.cl_waiting > 0).then(|| pool.shortage());
        row.cl_active = pool.clients.saturating_sub(row.cl_waiting);
        for server in &pool.servers {
            let Some(conn) = self.servers.get(*server) else { continue };
            // A cancel under way: its own connection to PostgreSQL, and who it is for.
            row.sv_active_cancel += conn.cancels;
            row.cl_active_cancel_req += conn.cancels;
            match self.server_state(conn) {
                "active" => row.sv_active += 1,
                "idle" => row.sv_idle += 1,
                "tested" => row.sv_tested += 1,
                "being_canceled" => row.sv_being_canceled += 1,
                _ => row.sv_used += 1,
            }
        }
        row
    }

    fn server_state(&self, conn: &ServerConn) -> &'static str {
        match conn.place {
            Place::Lent if conn.preparing == Preparing::Checking => "tested",
            Place::Lent | Place::Carrying => "active",
            Place::Idle => "idle",
            Place::Cleaning if conn.cancels > 0 => "being_canceled",
            Place::Cleaning => "used",
        }
    }

    fn server_row(&self, slot: u32, conn: &ServerConn) -> ConnectionSnapshot {
        let pool = &self.pools[conn.pool as usize];
        let client = self.clients.get(conn.client);
        ConnectionSnapshot {
            slot,
            generation: conn.generation,
            state: self.server_state(conn),
            user: pool.config.upstream.user.clone(),
            database: pool.name.database.clone(),
            replication: if conn.replication { "logical" } else { "none" },
            ends: conn.ends,
            connect_time: conn.opened_at,
            request_time: Some(self.wall(conn.server.since)),
            wait: Duration::ZERO,
            close_needed: conn.close_needed || conn.epoch != pool.epoch,
            link: client.map(|client| (conn.client, client.generation)),
            remote_pid: Some(conn.pid),
            tls: conn.tls.to_string(),
            application_name: conn.server.settings.get("application_name").unwrap_or("").to_owned(),
            prepared_statements: conn.server.prepared.len() as u32,
            id: conn.id,
        }
    }

    fn client_row(&self, slot: u32, client: &Client) -> Option<ConnectionSnapshot> {
        let (user, database) = match &client.phase {
            Phase::Pooled | Phase::AwaitWelcome(_) => {
                let pool = &self.pools[client.pool as usize];
                (user_of(client, pool).to_owned(), pool.name.database.clone())
            }
            Phase::Console(who) => (who.user.clone(), who.database.clone()),
            Phase::LoggingIn(_) | Phase::Leaving => return None,
        };
        let unsent = client.unit.as_ref().is_some_and(|unit| unit.server == NONE);
        let waits = client.hold == Hold::Waiting || unsent;
        let server = self.servers.get(client.server);
        let pid = match client.ends {
            Ends::Unix { peer_pid, .. } => peer_pid.and_then(|pid| u32::try_from(pid).ok()),
            Ends::Tcp { .. } => None,
        };
        Some(ConnectionSnapshot {
            slot,
            generation: client.generation,
            state: if waits { "waiting" } else { "active" },
            user,
            database,
            replication: if server.is_some_and(|conn| conn.replication) {
                "logical"
            } else {
                "none"
            },
            ends: client.ends,
            connect_time: self.wall(client.connected),
            request_time: Some(self.wall(client.active)),
            wait: if waits { self.now.since(client.asked) } else { Duration::ZERO },
            close_needed: client.close_needed,
            link: server
                .filter(|_| client.server != NONE)
                .map(|conn| (client.server, conn.generation)),
            remote_pid: pid,
            tls: client.tls.as_deref().unwrap_or("").to_owned(),
            application_name: client.settings.get("application_name").unwrap_or("").to_owned(),
            prepared_statements: client.names.as_ref().map_or(0, |names| names.len()) as u32,
            id: client.id,
        })
    }

    fn memory(&self) -> Vec<MemorySnapshot> {
        let row = |name, size: usize, used: usize, free: usize| MemorySnapshot {
            name,
            size: size as u64,
            used: used as u64,
            free: free as u64,
            memtotal: (size * (used + free)) as u64,
        };
        let pending: usize = self
            .clients
            .iter()
            .map(|(_, client)| client.out.capacity() + client.input.capacity())
            .sum();
        let buffered: usize = self.buffers.iter().map(Vec::capacity).sum();
        vec![
            row("client", std::mem::size_of::<Client>(), self.clients.len(), 0),
            row("server", std::mem::size_of::<ServerConn>(), self.servers.len(), 0),
            row("pool", std::mem::size_of::<PoolState>(), self.pools.len(), 0),
            row("settings", 1, self.settings.len(), 0),
            row("statement_bytes", 1, self.statements.bytes(), 0),
            row("buffer_bytes", 1, pending, buffered),
        ]
    }

    /// When the process began, by the wall clock.
    pub fn started(&self) -> SystemTime {
        self.epoch
    }
}

/// Characters of a statement that are shown.
const TEXT_SHOWN_MAX: usize = 1000;

fn query_row(pool: &PoolState, shape: &Shape) -> QuerySnapshot {
    let text = cut(shape.plain_text());
    QuerySnapshot {
        database: pool.name.database.clone(),
        user: pool.name.user.clone(),
        text,
        calls: shape.calls,
        time: shape.time,
        joined: shape.joined,
        company: shape.company,
        prepared: shape.prepared,
        again: shape.again,
        errors: shape.errors,
        way: shape.way,
        why: shape.why,
        reason: shape.reason().to_owned(),
        read: read_row(shape),
    }
}

fn read_row(shape: &Shape) -> Option<ReadSnapshot> {
    let normal = shape.normal();
    let start = normal.iter().position(|byte| *byte != b'(')?;
    let (first, _) = sql::next_word(&normal[start..]);
    let reads = [&b"select"[..], b"with", b"values", b"table"].contains(&first);
    reads.then(|| ReadSnapshot {
        normal: cut(String::from_utf8_lossy(&normal).into_owned()),
        hits: shape.hits,
        advised: shape.advised,
        named: shape.is_named(),
        cacheable: shape.verdict.as_ref().map(|verdict| match &verdict.cache {
            Ok(_) => Ok(()),
            Err(why) => Err(why.clone()),
        }),
    })
}

pub(super) fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_SHOWN_MAX) {
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

/// A client that has a row: it has logged in and is not about to go.
fn is_in(client: &Client) -> bool {
    matches!(client.phase, Phase::Pooled | Phase::AwaitWelcome(_) | Phase::Console(_))
}
