//! Servers change hands between workers: an idle one goes where clients wait.

use std::sync::atomic::Ordering;

use backend::server::Unnamed;

use super::{Effect, Plane, ServerConn, ServerParts};
use crate::control::messages::{PoolName, ToWorker};
use crate::session::client::NONE;

impl Plane {
    /// Moves an idle server to another worker.
    pub(super) fn give_away(&mut self, server: u32, to: u8) {
        let Some(conn) = self.servers.remove(server) else { return };
        let pool = &mut self.pools[conn.pool as usize];
        pool.pool.remove_idle(server);
        pool.servers.retain(|known| *known != server);
        let (name, also) = (pool.name.clone(), pool.limits.also.clone());
        let parts = Box::new(ServerParts { pool: name, also, conn: *conn });
        self.effects.push(Effect::GiveServer { slot: server, worker: to, parts });
    }

    /// An idle server from another worker.
    pub fn server_arrived(&mut self, parts: ServerParts) -> Option<u32> {
        parts.also.iter().for_each(|ceiling| ceiling.budget.give_back());
        let Ok(config) = self.config.pool(&parts.pool.database, &parts.pool.user) else {
            self.common.pool(&parts.pool, None).servers.give_back();
            return None;
        };
        let at = self.pool_of(config);
        // A reload may have been between: then it is counted by other rules from now on.
        for ceiling in &self.pools[at as usize].limits.also {
            ceiling.budget.take(u32::MAX);
        }
        let epoch = self.pools[at as usize].epoch;
        let server = self.servers.insert(|_, generation| ServerConn {
            generation,
            pool: at,
            client: NONE,
            queued_out: false,
            epoch,
            ..parts.conn
        });
        if self.pools[at as usize].welcome.is_none() && self.servers[server].start.is_none() {
            let defaults = self.servers[server].server.defaults.overlaid([]);
            let defaults = self.settings.intern(defaults);
            self.welcome(at, defaults);
        }
        let pool = &mut self.pools[at as usize];
        let conn = &mut self.servers[server];
        conn.server.settings = self.settings.intern(conn.server.settings.overlaid([]));
        // Stamps are this worker's own.
        conn.server.set_unnamed(Unnamed::Stale);
        pool.servers.push(server);
        if self.retires(&self.servers[server]) {
            self.retire(server);
        } else {
            self.give(server);
        }
        self.ask_other_workers(at, true);
        Some(server)
    }

    /// Clients wait and nothing more may be opened here: other workers may have idle servers.
    /// Each question brings one server at the most, so it is put `again` when one has come.
    pub(super) fn ask_other_workers(&mut self, at: u32, again: bool) {
        let workers = self.config.runtime.workers as u8;
        if workers < 2 || self.pools[at as usize].home != NONE {
            return;
        }
        let pool = &self.pools[at as usize];
        let (starving, mine) = (&pool.pool.shared().starving, 1u64 << self.worker);
        let served = pool.pool.waiting() as u64 <= u64::from(pool.pool.opening());
        if served || pool.paused {
            starving.fetch_and(!mine, Ordering::Relaxed);
            return;
        }
        let before = starving.fetch_or(mine, Ordering::Relaxed);
        if again || before & mine == 0 {
            for peer in (0..workers).filter(|peer| *peer != self.worker) {
                let wanted = ToWorker::Wanted { pool: pool.name.clone(), worker: self.worker };
                self.effects.push(Effect::Peer(peer, wanted));
            }
        }
    }

    /// Another worker's clients wait.
    pub(super) fn wanted(&mut self, name: &PoolName, worker: u8) {
        let Some(&at) = self.pool_by_name.get(name) else { return };
        let pool = &mut self.pools[at as usize];
        if pool.pool.waiting() == 0 && !pool.paused {
            if let Some(server) = pool.pool.take_oldest() {
                self.give_away(server, worker);
            }
        }
    }
}
