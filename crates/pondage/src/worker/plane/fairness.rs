//! This worker's part in dividing servers that several pools share: it tells what its pools need,
//! and gives up what they owe.

use std::time::Duration;

use backend::pool::Demand;

use super::{Place, Plane, PoolState};

/// A server that has rested for less still counts as wanted, so that it is not closed and opened
/// again for every transaction.
const RECENTLY: Duration = Duration::from_secs(1);

impl Plane {
    /// Tells what the pool needs, if it shares servers with others.
    pub(super) fn tell_demand(&self, at: u32) {
        let pool = &self.pools[at as usize];
        if pool.limits.also.is_empty() {
            return;
        }
        let mut demand = Demand { works: pool.pool.opening(), ..Demand::default() };
        for conn in pool.servers.iter().filter_map(|server| self.servers.get(*server)) {
            if conn.replication {
                continue;
            }
            let rests = self.now.since(conn.server.since) >= RECENTLY;
            match conn.place {
                Place::Carrying if conn.close_needed => demand.leaving += 1,
                Place::Idle if rests => {}
                _ => demand.works += 1,
            }
        }
        // Where none can be opened, none is needed.
        if !pool.paused && !pool.retired && pool.pool.may_open(self.now) {
            demand.waits = (pool.pool.waiting() + pool.greeting.len()) as u32;
        }
        demand.most = pool.pool.most(&pool.limits, self.now);
        pool.pool.shared().tell_demand(self.worker, demand);
    }

    /// A limit that pools share keeps this one from a server.
    pub(super) fn is_short(&mut self, at: u32) {
        let pool = &self.pools[at as usize];
        if pool.pool.is_short() && is_asked(pool) {
            self.common.shares.is_short(self.config.runtime.workers < 2, self.now);
            self.budgets_due |= self.common.shares.is_due(self.now);
        }
    }

    /// Servers have been closed that others may open in their place, or somebody lacks some.
    pub(super) fn look_at_budgets(&mut self) {
        if !std::mem::take(&mut self.budgets_due) {
            return;
        }
        self.divide_servers();
        for at in 0..self.pools.len() as u32 {
            if is_asked(&self.pools[at as usize]) {
                self.open_more(at);
            }
        }
    }

    /// Divides what is shared anew, if it is time, and gives up what is owed here.
    pub(super) fn divide_servers(&mut self) {
        if self.common.shares.asks() {
            for at in 0..self.pools.len() as u32 {
                self.tell_demand(at);
            }
        }
        if self.common.shares.is_due(self.now) {
            self.common.divide(self.now);
        }
        for at in 0..self.pools.len() as u32 {
            self.pay_debts(at);
        }
    }

    /// Closes idle servers that the pool owes to others. One that carries statements of many is
    /// never idle while there are any: it gets no more of them, and is closed when it has answered.
    fn pay_debts(&mut self, at: u32) {
        while let Some(server) = self.owed_idle(at) {
            self.close_server(server, "evicted");
        }
        let pool = &mut self.pools[at as usize];
        if !pool.pool.shared().owes() {
            return;
        }
        let mut left = false;
        for server in pool.company.carriers() {
            let Some(conn) = self.servers.get_mut(server) else { continue };
            if conn.close_needed {
                continue;
            }
            if !pool.pool.shared().pay() {
                break;
            }
            (conn.close_needed, left) = (true, true);
            pool.totals.given_up += 1;
        }
        if left {
            self.tell_demand(at);
        }
    }

    fn owed_idle(&mut self, at: u32) -> Option<u32> {
        let pool = &mut self.pools[at as usize];
        let oldest = *pool.pool.idle().first()?;
        if !pool.pool.shared().pay() {
            return None;
        }
        pool.totals.given_up += 1;
        Some(oldest)
    }

    /// A server that has become free: the pool owes it to another.
    pub(super) fn is_owed(&mut self, at: u32) -> bool {
        let pool = &mut self.pools[at as usize];
        let owed = pool.pool.shared().pay();
        pool.totals.given_up += u64::from(owed);
        owed
    }
}

/// Somebody waits for a server of this pool.
fn is_asked(pool: &PoolState) -> bool {
    pool.pool.waiting() > 0 || !pool.greeting.is_empty()
}
