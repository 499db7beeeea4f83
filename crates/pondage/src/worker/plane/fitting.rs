//! Session mode: a server is started with the start-up parameters of a client, and lent to those
//! who have come with the same.
//!
//! RESET goes back to what a session was started with, and nothing can change that afterwards. So
//! a server that was started otherwise is no use to a client that keeps it for its whole session:
//! another is opened, and where there is no room, in the place of an idle one.
//!
//! Source: PostgreSQL docs, "RESET"; `process_startup_options` in postinit.c.

use std::sync::Arc;

use backend::settings::Settings;
use wire::pg::sqlstate;

use super::{Plane, ServerConn, Ticket};
use crate::config::PoolMode;
use crate::control::messages::OpenError;

/// So many of those who wait are looked at: whoever is behind them waits for them, too.
const LOOKED_AT_MAX: usize = 64;

impl ServerConn {
    /// What RESET goes back to, as far as a client can tell.
    fn started_with(&self) -> &Settings {
        self.start.as_ref().unwrap_or(&self.server.defaults)
    }
}

impl Plane {
    pub(super) fn in_sessions(&self, at: u32) -> bool {
        self.pools[at as usize].config.mode == PoolMode::Session
    }

    /// The most recently used idle server that is as good for a client as one of its own; or the
    /// least recently used, where they take turns.
    pub(super) fn take_fitting(&mut self, at: u32, slot: u32) -> Option<u32> {
        let wanted = &self.clients[slot].settings;
        let idle = self.pools[at as usize].pool.idle().iter().rev().copied();
        let mut fitting =
            idle.filter(|server| self.servers[*server].started_with().start_like(wanted));
        let found = match self.pools[at as usize].config.server_round_robin {
            true => fitting.next_back()?,
            false => fitting.next()?,
        };
        self.pools[at as usize].pool.remove_idle(found);
        Some(found)
    }

    /// Lends idle servers to those whom they fit, and opens others for the rest. Nobody is passed
    /// over who could be helped by the place of a server that fits somebody later.
    pub(super) fn serve_sessions(&mut self, at: u32) {
        let mut coming = self.coming(at);
        let mut passed = 0;
        let pool = &self.pools[at as usize];
        if pool.paused {
            return;
        }
        let line = pool.pool.line(LOOKED_AT_MAX + pool.pool.idle().len());
        for (slot, since) in line {
            if let Some(server) = self.take_fitting(at, slot) {
                self.pools[at as usize].pool.serve(slot);
                self.attach(slot, server, since);
                self.resume_later(slot);
                continue;
            }
            if passed == LOOKED_AT_MAX {
                break;
            }
            passed += 1;
            let start = self.start_of(at, slot);
            match coming.iter().position(|coming| alike(coming.as_deref(), start.as_deref())) {
                Some(found) => drop(coming.swap_remove(found)),
                None => self.open_for(at, start),
            }
        }
    }

    /// What the connections are started with that are being opened.
    fn coming(&self, at: u32) -> Vec<Option<Arc<Settings>>> {
        let tickets = self.tickets.values();
        let ours = tickets.filter_map(|ticket| match ticket {
            Ticket::Pooled { pool, start } if *pool == at => Some(start.clone()),
            _ => None,
        });
        ours.collect()
    }

    /// What a client's server has to be started with, if that is not what all have.
    fn start_of(&self, at: u32, slot: u32) -> Option<Arc<Settings>> {
        let wanted = &self.clients[slot].settings;
        let plain = self.pools[at as usize].welcome.as_ref()?;
        (!plain.start_like(wanted)).then(|| wanted.clone())
    }

    /// If there is no room, the server that was idle longest makes some.
    fn open_for(&mut self, at: u32, start: Option<Arc<Settings>>) {
        let now = self.now;
        let pool = &mut self.pools[at as usize];
        if pool.retired {
            return;
        }
        let mut room = pool.pool.open_one(&pool.limits, 0, now);
        if !room && pool.pool.wants_one(0, now) {
            let Some(server) = pool.pool.take_oldest() else { return self.is_short(at) };
            self.forget_server(server, "evicted");
            let pool = &mut self.pools[at as usize];
            room = pool.pool.open_one(&pool.limits, 0, now);
        }
        if room {
            self.open(at, start);
        }
    }

    /// PostgreSQL does not take what a client has come with: it alone is told.
    pub(super) fn start_refused(&mut self, at: u32, start: &Settings, error: &OpenError) {
        let pool = &mut self.pools[at as usize];
        // It was reached, and may be asked again at once.
        pool.pool.opened();
        pool.pool.closed(&pool.limits);
        let error = OpenError {
            hint: Some("See the client's connection settings. [P0322]".to_owned()),
            ..error.clone()
        };
        let mut refused = Vec::new();
        for number in 0..pool.pool.waiting() {
            let waiting = pool.pool.queued(number).map(|(slot, _)| slot);
            refused.extend(waiting.filter(|slot| self.clients[*slot].settings.start_like(start)));
        }
        for slot in refused {
            self.refuse_for(slot, &error, None);
        }
        self.serve(at);
    }
}

/// Whether servers that are started so can stand in for one another; none: as all are.
fn alike(one: Option<&Settings>, other: Option<&Settings>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.start_like(other),
        (None, None) => true,
        _ => false,
    }
}

/// Whether a code says that a start-up parameter is not taken: no such name, no such value, no
/// right to set it, only when PostgreSQL itself starts.
pub fn refuses_parameter(code: &str) -> bool {
    ["0A", "22", "42"].iter().any(|class| code.starts_with(class))
        || code == sqlstate::CANT_CHANGE_RUNTIME_PARAM
}
