//! Server connections come and go: asking the control plane for one, what becomes of its answer,
//! and closing.

use std::sync::Arc;

use backend::carrier::Carrier;
use backend::server::Server;
use backend::settings::Settings;

use super::fitting::refuses_parameter;
use super::journal::worn;
use super::{Effect, Failing, Place, Plane, Preparing, ServerConn, Ticket};
use crate::control::messages::{OpenError, OpenKind, Opened, ToControl};
use crate::session::client::NONE;

impl Plane {
    /// Opens connections that are wanted and allowed.
    pub(super) fn open_more(&mut self, at: u32) {
        let now = self.now;
        if self.in_sessions(at) {
            self.serve_sessions(at);
        }
        loop {
            let pool = &mut self.pools[at as usize];
            if pool.paused || pool.retired {
                return;
            }
            let least = if self.shutdown.is_some() { 0 } else { pool.limits.min };
            let missing = least.saturating_sub(pool.pool.shared().servers.taken());
            let greeting = u32::from(!pool.greeting.is_empty());
            let extra = missing.max(greeting) + if missing > 0 { pool.pool.opening() } else { 0 };
            if !pool.pool.open_one(&pool.limits, extra, now) {
                self.is_short(at);
                break;
            }
            self.open(at, None);
        }
        self.ask_other_workers(at, false);
    }

    /// Databases that log in as one user have their least servers without any client.
    pub(super) fn stand_by(&mut self) {
        let config = self.config.clone();
        let of = |name: &String| {
            let database = &config.databases[name];
            config.pool(name, database.upstream.user.as_ref()?).ok()
        };
        let wanted = config.databases.keys().filter(|name| *name != "*").filter_map(of);
        for pool in wanted.filter(|pool| pool.min_pool_size > 0 && !pool.disabled) {
            self.pool_of(pool);
        }
    }

    /// Asks for a connection for which there is room: with the start-up parameters of a client
    /// that has these settings, or with those that all have.
    pub(super) fn open(&mut self, at: u32, start: Option<Arc<Settings>>) {
        let pool = &mut self.pools[at as usize];
        let kind = match (&start, &pool.welcome) {
            (Some(start), Some(plain)) => {
                OpenKind::Session { parameters: start.start_parameters(plain) }
            }
            _ => OpenKind::Pooled,
        };
        self.next_ticket += 1;
        self.tickets.insert(self.next_ticket, Ticket::Pooled { pool: at, start });
        pool.totals.server_opens += 1;
        self.log_reserve(at);
        let pool = &self.pools[at as usize];
        self.effects.push(Effect::Control(ToControl::Open {
            worker: self.worker,
            ticket: self.next_ticket,
            config: pool.config.clone(),
            proven: pool.proven.clone(),
            kind,
        }));
    }

    /// Opens a connection of its own for a client that asked for replication.
    pub(super) fn open_replication(&mut self, slot: u32, parameters: Vec<(String, String)>) {
        self.next_ticket += 1;
        let client = &self.clients[slot];
        let ticket = Ticket::Replication { client: slot, generation: client.generation };
        self.tickets.insert(self.next_ticket, ticket);
        let pool = &self.pools[client.pool as usize];
        let (config, proven) = (pool.config.clone(), pool.proven.clone());
        self.effects.push(Effect::Control(ToControl::Open {
            worker: self.worker,
            ticket: self.next_ticket,
            config,
            proven,
            kind: OpenKind::Replication { parameters },
        }));
    }

    pub(super) fn opened(&mut self, ticket: u64, opened: &Opened) -> Option<u32> {
        let pairs = opened.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let reported = pairs.collect::<Settings>();
        let (at, client, start) = match self.tickets.remove(&ticket)? {
            Ticket::Pooled { pool, start } => (pool, None, start),
            Ticket::Replication { client, generation } => {
                let found = self.clients.find(client, generation)?;
                (found.pool, Some(client), None)
            }
        };
        if client.is_none() {
            self.lives(at, opened.life);
        }
        let asked = start.as_ref().map(|start| start.start_parameters(&reported));
        let asked = asked.iter().flatten().map(|(name, value)| (&**name, &**value));
        let unreported = asked.filter(|(name, _)| reported.get(name).is_none());
        let defaults = self.settings.intern(reported.overlaid(unreported));
        let defaults = self.as_at_home(at, defaults);
        let epoch = self.pools[at as usize].epoch;
        let conn = |_, generation| ServerConn {
            server: Server::new(defaults.clone(), self.now),
            generation,
            id: self.common.next_id(),
            pool: at,
            place: Place::Idle,
            carrier: Carrier::new(self.now),
            tails: 0,
            client: NONE,
            ends: opened.ends,
            tls: opened.tls.as_str().into(),
            pid: opened.pid,
            key: opened.key.as_slice().into(),
            cancels: 0,
            preparing: Preparing::No,
            last_client: 0,
            close_needed: false,
            reset_wanted: false,
            strange: false,
            touched: None,
            request: super::replanning::Kept::default(),
            read: super::yielding::Read::default(),
            listening: false,
            asked: sql::Kept::NOTHING,
            pinned: None,
            replication: client.is_some(),
            start: start.clone(),
            epoch,
            opened_at: self.epoch + std::time::Duration::from_micros(self.now.0),
            queued_out: false,
            seat: opened.seat.clone(),
            life: opened.life,
        };
        let server = self.servers.insert(conn);
        self.log_opened(server);
        let pool = &mut self.pools[at as usize];
        pool.servers.push(server);
        if let Some(slot) = client {
            self.greet_replication(slot, server);
            return Some(server);
        }
        pool.failing = None;
        pool.pool.opened();
        if start.is_none() {
            self.common.welcome(&pool.name, &defaults);
            self.welcome(at, defaults);
        }
        if self.retires(&self.servers[server]) {
            self.retire(server);
        } else {
            self.give(server);
        }
        Some(server)
    }

    /// Greets those who have waited to hear what the pool's servers report.
    pub(super) fn welcome(&mut self, at: u32, defaults: Arc<Settings>) {
        let pool = &mut self.pools[at as usize];
        pool.welcome = Some(defaults);
        for slot in std::mem::take(&mut pool.greeting) {
            self.greet(slot);
        }
    }

    pub(super) fn open_failed(&mut self, ticket: u64, error: OpenError) {
        match self.tickets.remove(&ticket) {
            Some(Ticket::Replication { client, generation })
                if self.clients.find(client, generation).is_some() =>
            {
                self.refuse_for(client, &error, None);
            }
            None | Some(Ticket::Replication { .. }) => {}
            Some(Ticket::Pooled { pool: at, start: Some(start) })
                if refuses_parameter(&error.code) =>
            {
                self.start_refused(at, &start, &error);
            }
            Some(Ticket::Pooled { pool: at, .. }) => {
                let now = self.now;
                let pool = &mut self.pools[at as usize];
                pool.pool.failed(&pool.limits, error.is_crowded(), now);
                let tries = pool.failing.as_ref().map_or(0, |failing| failing.tries) + 1;
                let (since, began) = match &pool.failing {
                    Some(failing) => (failing.since, failing.began),
                    None => (error.at, now),
                };
                tracing::warn!(event = "server_connect_failed", db = %pool.name.database,
                    user = %pool.name.user, sqlstate = %error.code, tries, theirs = %error.theirs,
                    "{}", error.message);
                pool.failing = Some(Failing { since, began, tries, error });
                self.send_home(at);
                self.tell_the_waiting(at);
            }
        }
    }

    /// Ends a connection; its place goes to who waits for one. `why` is for the log.
    pub(super) fn close_server(&mut self, server: u32, why: &str) {
        if let Some(at) = self.forget_server(server, why) {
            self.open_more(at);
        }
    }

    /// Ends one that [`Plane::retires`].
    pub(super) fn retire(&mut self, server: u32) {
        let Some(conn) = self.servers.get(server) else { return };
        let why = worn(conn, &self.pools[conn.pool as usize], self.now);
        self.close_server(server, why);
    }

    /// Ends a connection and gives its place back. Returns the number of its pool.
    pub(super) fn forget_server(&mut self, server: u32, why: &str) -> Option<u32> {
        self.unpin(server);
        let conn = self.servers.remove(server)?;
        self.log_closed(&conn, why);
        let at = conn.pool;
        let pool = &mut self.pools[at as usize];
        pool.servers.retain(|known| *known != server);
        pool.pool.remove_idle(server);
        pool.company.remove_carrier(server);
        pool.totals.server_closes += 1;
        if !conn.replication {
            pool.pool.closed(&pool.limits);
            self.budgets_due |= !pool.limits.also.is_empty();
        }
        if let Some(client) = self.clients.get_mut(conn.client) {
            client.server = NONE;
        }
        self.effects.push(Effect::CloseServer(server));
        Some(at)
    }
}
