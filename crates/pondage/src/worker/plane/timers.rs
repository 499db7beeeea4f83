//! What is due: timeouts of clients and servers, told by one look at all of them per tick.

use std::time::{Duration, SystemTime};

use backend::moment::Moment;
use wire::pg::backend::TxStatus;
use wire::pg::{backend as reply, sqlstate};

use super::{Failing, Place, Plane, ServerConn};
use crate::config::{PoolConfig, PoolMode};
use crate::session::client::{Hold, Phase, NONE};
use crate::session::login::Refused;

/// How exact timeouts are.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// All clients are looked at every so many ticks.
const CLIENTS_EVERY: u64 = 5;

/// While no server of a pool can be reached, a client is told so after this time, or after its
/// wait_timeout if that is shorter. A database that restarts is mostly back before.
const UNREACHABLE_WAIT: Duration = Duration::from_secs(5);

/// A server whose client vanished in a query may take this long to be cancelled.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// While the process ends, servers that nobody has used for so long are given back.
const DRAINING_IDLE: Duration = Duration::from_secs(1);

impl Plane {
    pub(super) fn tick(&mut self) {
        if self.ticks == 0 {
            self.stand_by();
        }
        for at in 0..self.pools.len() as u32 {
            self.pool_due(at);
        }
        for slot in self.servers.numbers() {
            self.server_due(slot);
        }
        self.tell_holders();
        self.divide_servers();
        let now = self.now;
        self.last_tick = now;
        self.caches.iter_mut().for_each(|database| database.settle_mirrors(now));
        self.admit_delayed();
        self.ticks += 1;
        if self.ticks % CLIENTS_EVERY == 0 {
            for slot in self.clients.numbers() {
                self.client_due(slot);
            }
        }
    }

    fn pool_due(&mut self, at: u32) {
        self.welcome_from_others(at);
        let pool = &mut self.pools[at as usize];
        if pool.cache.is_some() {
            pool.shapes.tell();
        }
        self.tell_the_waiting(at);
        let now = self.now;
        let pool = &mut self.pools[at as usize];
        let wait = pool.config.wait_timeout;
        if !wait.is_zero() && (pool.pool.waiting() > 0 || pool.company.is_waiting()) {
            if let Some(since) = before(now, wait) {
                let mut late = pool.pool.waiting_since(since);
                let gathered = pool.company.waiting();
                late.extend(gathered.filter(|slot| self.clients[*slot].asked <= since));
                for slot in late {
                    self.waited_too_long(slot, at);
                }
            }
        }
        self.notify_the_waiting(at);
        // Also the reserve, the minimum, and a new try after a failure.
        self.serve(at);
        self.ask_other_workers(at, true);
    }

    /// Tells those who have waited for so long since the last look.
    fn notify_the_waiting(&mut self, at: u32) {
        let pool = &self.pools[at as usize];
        let wait = pool.config.wait_notify;
        let waits = pool.pool.waiting() > 0 || pool.company.is_waiting();
        let (false, true, Some(until)) = (wait.is_zero(), waits, before(self.now, wait)) else {
            return;
        };
        let from = before(self.last_tick, wait);
        let mut told = pool.pool.waiting_since(until);
        told.extend(pool.company.waiting().filter(|slot| self.clients[*slot].asked <= until));
        for slot in told {
            if self.clients[slot].is_pooled()
                && from.is_none_or(|from| self.clients[slot].asked > from)
            {
                self.tell(slot, put_queued);
            }
        }
    }

    /// Other workers may have all servers that the pool can have: then none is opened here, but
    /// what they report is known.
    pub(super) fn welcome_from_others(&mut self, at: u32) {
        let pool = &self.pools[at as usize];
        if pool.welcome.is_some() || pool.greeting.is_empty() {
            return;
        }
        if let Some(defaults) = self.common.welcomes(&pool.name) {
            let defaults = self.settings.intern(defaults.overlaid([]));
            self.welcome(at, defaults);
        }
    }

    /// Tells those who wait that no server can be had, when that is how it is.
    pub(super) fn tell_the_waiting(&mut self, at: u32) {
        let now = self.now;
        let pool = &self.pools[at as usize];
        let Some(failing) = pool.failing.clone() else { return };
        if !pool.servers.is_empty() {
            return;
        }
        let patience = match (failing.error.permanent, pool.config.wait_timeout) {
            (true, _) => Duration::ZERO,
            (false, wait) if wait.is_zero() && failing.error.is_crowded() => return,
            (false, wait) if wait.is_zero() => UNREACHABLE_WAIT,
            // Another of several hosts may be about to take over; what has no room has some when
            // somebody leaves.
            (false, wait) if !pool.config.upstream.several.others.is_empty() => wait,
            (false, wait) if failing.error.is_crowded() => wait,
            (false, wait) => wait.min(UNREACHABLE_WAIT),
        };
        let Some(since) = before(now, patience) else { return };
        let mut told = pool.pool.waiting_since(since);
        told.extend(pool.company.waiting().filter(|slot| self.clients[*slot].asked <= since));
        told.extend(pool.greeting.iter().filter(|slot| self.clients[**slot].asked <= since));
        for slot in told {
            self.refuse_for(slot, &failing.error, Some(&failing));
        }
    }

    fn server_due(&mut self, slot: u32) {
        let Some(conn) = self.servers.get(slot) else { return };
        let pool = &self.pools[conn.pool as usize];
        let config = &pool.config;
        let rested = self.now.since(conn.server.since);
        let passed = |limit: Duration, took: Duration| !limit.is_zero() && took >= limit;
        match conn.place {
            Place::Idle => {
                let draining = self.shutdown.is_some();
                let lean = draining || pool.pool.shared().servers.taken() > pool.limits.min;
                let idle_timeout = match draining {
                    // The process that has taken over wants their places.
                    true => DRAINING_IDLE,
                    false => config.server_idle_timeout,
                };
                let old = passed(config.server_lifetime, self.now.since(conn.server.opened));
                if conn.close_needed || conn.is_unfit() || old {
                    self.retire(slot);
                } else if lean && passed(idle_timeout, rested) {
                    self.close_server(slot, "server idle timeout");
                }
            }
            Place::Cleaning => {
                let drain = if conn.cancels > 0 { DRAIN_MAX * 3 } else { DRAIN_MAX };
                if rested >= drain {
                    tracing::warn!(
                        event = "server_drain",
                        server = slot,
                        "closed: it could not be drained"
                    );
                    self.close_server(slot, "could not be drained");
                } else if conn.cancels == 0 && conn.server.runs_for_nobody() {
                    // A cancel ends one statement; the next of a pipeline has begun since.
                    self.cancel_server(slot);
                }
            }
            Place::Carrying => {
                let config = config.clone();
                while let Some(late) = self.carried_too_long(slot) {
                    self.ran_too_long(late, &config);
                }
            }
            Place::Lent if self.is_overtaken(conn) => {
                let holder = conn.client;
                self.close_client(holder, Some(&changed()));
            }
            // What a walsender does has no end.
            Place::Lent if conn.replication => {}
            Place::Lent => {
                let Some(client) = self.clients.get(conn.client) else { return };
                let holder = conn.client;
                let busy = !conn.server.is_quiet();
                let stuck = self.now.since(client.asked);
                let idle = self.now.since(client.active);
                let prepares = client.hold == Hold::SetUp && !self.would_lose(conn);
                if prepares && passed(config.connect_timeout, rested) {
                    // A server that does not answer its check: as dead as one that closed.
                    self.lost_in_set_up(slot, holder);
                } else if busy && passed(config.query_timeout, stuck) {
                    let config = config.clone();
                    self.ran_too_long(holder, &config);
                } else if (busy || conn.server.status() != TxStatus::Idle)
                    && passed(config.transaction_timeout, self.now.since(client.began))
                {
                    let refused = transaction_late(config);
                    self.close_client(holder, Some(&refused));
                } else if !busy
                    && conn.server.status() != TxStatus::Idle
                    && passed(config.idle_transaction_timeout, idle)
                {
                    let refused = idle_late(config);
                    self.close_client(holder, Some(&refused));
                }
            }
        }
    }

    /// Its client would keep it beyond RECONNECT, or a change of where its database is: for its
    /// session, or for as long as it replicates.
    fn is_overtaken(&self, conn: &ServerConn) -> bool {
        let pool = &self.pools[conn.pool as usize];
        if conn.epoch >= pool.renewed {
            return false;
        }
        let free = conn.server.is_quiet() && conn.server.status() == TxStatus::Idle;
        let session = pool.config.server_fast_close && pool.config.mode == PoolMode::Session;
        let open = self.clients.get(conn.client).is_some_and(|client| client.batch_open);
        conn.replication || (session && free && !open)
    }

    fn ran_too_long(&mut self, slot: u32, config: &PoolConfig) {
        let refused =
            Refused::new(sqlstate::QUERY_CANCELED, "canceling statement due to query timeout")
                .detail(format!("query_timeout is {}.", plain(config.query_timeout)))
                .hint("The connection was closed. [P0422]")
                .theirs("query timeout");
        self.close_client(slot, Some(&refused));
    }

    fn client_due(&mut self, slot: u32) {
        let Some(client) = self.clients.get(slot) else { return };
        match &client.phase {
            Phase::LoggingIn(_) => {
                let limit = self.config.runtime.login_timeout;
                if !limit.is_zero() && self.now.since(client.connected) >= limit {
                    let refused = Refused::new(
                        sqlstate::QUERY_CANCELED,
                        "canceling authentication due to timeout",
                    )
                    .theirs("client_login_timeout");
                    self.refuse(slot, &refused);
                }
            }
            Phase::AwaitWelcome(_) => {
                let at = client.pool;
                let wait = self.pools[at as usize].config.wait_timeout;
                if !wait.is_zero() && self.now.since(client.asked) >= wait {
                    self.waited_too_long(slot, at);
                }
            }
            // Of which no server knows yet.
            Phase::Pooled if client.begun.is_some() => {
                let config = &self.pools[client.pool as usize].config;
                let passed =
                    |limit: Duration, since| !limit.is_zero() && self.now.since(since) >= limit;
                let late = match client.hold {
                    Hold::No if passed(config.transaction_timeout, client.began) => {
                        transaction_late(config)
                    }
                    Hold::No if passed(config.idle_transaction_timeout, client.active) => {
                        idle_late(config)
                    }
                    _ => return,
                };
                self.close_client(slot, Some(&late));
            }
            Phase::Pooled => {
                let limit = self.pools[client.pool as usize].config.client_idle_timeout;
                let kept = self.servers.get(client.server).and_then(ServerConn::idly_pinned);
                let free = client.server == NONE || kept.is_some();
                let idle = free && client.hold == Hold::No;
                if idle && !limit.is_zero() && self.now.since(client.active) >= limit {
                    let refused = Refused::new(
                        sqlstate::IDLE_SESSION_TIMEOUT,
                        "terminating connection due to client idle timeout",
                    )
                    .detail(format!("client_idle_timeout is {}.", plain(limit)))
                    .theirs("client_idle_timeout");
                    self.close_client(slot, Some(&refused));
                }
            }
            Phase::Console(_) | Phase::Leaving => {}
        }
    }

    /// The failure that a pool is in, if any.
    pub(super) fn failing(&self, at: u32) -> Option<&Failing> {
        self.pools[at as usize].failing.as_ref()
    }
}

/// PostgreSQL's words, from 17 on.
fn transaction_late(config: &PoolConfig) -> Refused {
    let message = "terminating connection due to transaction timeout";
    Refused::new(sqlstate::TRANSACTION_TIMEOUT, message)
        .detail(format!("transaction_timeout is {}.", plain(config.transaction_timeout)))
        .theirs("transaction timeout")
}

fn idle_late(config: &PoolConfig) -> Refused {
    let message = "terminating connection due to idle-in-transaction timeout";
    Refused::new(sqlstate::IDLE_IN_TRANSACTION_SESSION_TIMEOUT, message)
        .detail(format!("idle_transaction_timeout is {}.", plain(config.idle_transaction_timeout)))
        .theirs("idle transaction timeout")
}

/// PgBouncer's words, which scripts may know.
fn put_queued(out: &mut Vec<u8>) {
    reply::put_notice(
        out,
        &reply::ErrorReply {
            severity: "NOTICE",
            code: sqlstate::SUCCESSFUL_COMPLETION,
            message: "No server connection available in postgres backend, client being queued",
            detail: None,
            hint: Some("SHOW BLOCKERS on the console tells who has the servers."),
        },
    );
}

/// PgBouncer's words, too.
fn changed() -> Refused {
    Refused::new(sqlstate::ADMIN_SHUTDOWN, "database configuration changed")
        .detail("The server that this session had is to be used no longer.")
        .hint("Connect again. [P0326]")
}

/// The moment that lies `wait` back; none before the beginning of time.
fn before(now: Moment, wait: Duration) -> Option<Moment> {
    u64::try_from(wait.as_micros()).ok().and_then(|wait| now.0.checked_sub(wait)).map(Moment)
}

/// "5 s", "250 ms".
pub(super) fn plain(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}

/// "2026-11-20T13:40:15Z".
pub(super) fn utc(time: SystemTime) -> String {
    match jiff::Timestamp::try_from(time) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => String::from("an unknown time"),
    }
}
