//! Servers at hosts that are another thing than they were: a standby that was promoted, a primary
//! that is one no more, an address that its name has no more.

use std::sync::Arc;

use super::{Effect, Place, Plane, ServerConn};
use crate::control::messages::ToControl;
use crate::hosts::Replicas;

impl ServerConn {
    /// Its host is no longer what is asked for.
    pub(super) fn is_unfit(&self) -> bool {
        self.seat.as_ref().is_some_and(|seat| seat.is_unfit())
    }
}

impl Plane {
    /// A server is lost, or has said what one that is fit would not. Its hosts are looked at.
    pub(super) fn doubt(&mut self, server: u32) {
        let Some(conn) = self.servers.get(server).filter(|conn| conn.seat.is_some()) else {
            return;
        };
        let config = self.pools[conn.pool as usize].config.clone();
        self.effects.push(Effect::Control(ToControl::Doubt { config }));
    }

    /// Closes servers that are no longer fit: those that nobody has at once, the others when they
    /// are given back.
    pub(super) fn leave_hosts(&mut self, replicas: Option<Arc<Replicas>>) {
        if let Some(replicas) = replicas {
            self.know_replicas(replicas);
        }
        for slot in self.servers.numbers() {
            let conn = &mut self.servers[slot];
            if !conn.is_unfit() {
                continue;
            }
            conn.close_needed = true;
            let idle = conn.place == Place::Idle;
            let pool = &mut self.pools[conn.pool as usize];
            tracing::info!(event = "host_left", db = %pool.name.database, user = %pool.name.user,
                server = slot, idle, "a server is closed: its host is no longer what is asked for");
            // Another host may do now.
            pool.pool.retry_now();
            if idle {
                self.retire(slot);
            }
        }
        for at in 0..self.pools.len() as u32 {
            self.serve(at);
        }
    }
}
