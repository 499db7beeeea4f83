//! Who holds the servers that clients wait for: what SHOW BLOCKERS shows, and what a client is told
//! that has waited too long.

use backend::pool::Ceiling;
use wire::pg::backend::TxStatus;
use wire::pg::sqlstate;

use super::lending::user_of;
use super::report::cut;
use super::timers::plain;
use super::{Place, Plane, PoolState, Preparing, ServerConn, OUT_BYTES_HIGH};
use crate::config::PoolMode;
use crate::control::messages::PoolName;
use crate::session::client::{Client, Hold};
use crate::session::login::Refused;
use crate::worker::holders::{Holder, HoldingClient};
use crate::worker::snapshot::Shortage;

impl PoolState {
    /// Clients that wait for a server.
    pub(super) fn waiting(&self) -> usize {
        self.pool.waiting() + self.company.waiting_for_server() + self.greeting.len()
    }

    /// Why clients of this pool wait for servers, while they do.
    pub(super) fn shortage(&self) -> Shortage {
        let reached = self.limits.also.iter().find(|ceiling| ceiling.is_reached());
        match reached {
            _ if self.paused => Shortage::Paused,
            _ if self.pool.shared().servers.taken() >= self.limits.size => Shortage::PoolSize,
            Some(Ceiling { scope, limit, .. }) => Shortage::Shared(*scope, *limit),
            None if self.failing.is_some() => Shortage::Failing,
            None => Shortage::Opening,
        }
    }
}

impl Plane {
    /// Tells the other workers who has had servers for longest, while anybody waits for one.
    pub(super) fn tell_holders(&mut self) {
        let here = self.pools.iter().any(|pool| pool.waiting() > 0);
        let anybody = self.common.holders.anybody_waits(self.worker, here);
        if self.config.runtime.workers < 2 {
            return;
        }
        let longest = match anybody {
            true => self.pools.iter().filter_map(|pool| self.longest_in(pool)).collect(),
            false => Vec::new(),
        };
        self.common.holders.tell(self.worker, longest);
    }

    /// Everyone who holds a server here; nobody while no client waits anywhere.
    pub(super) fn holders(&self) -> Vec<Holder> {
        let here = self.pools.iter().any(|pool| pool.waiting() > 0);
        if !self.common.holders.anybody_waits(self.worker, here) {
            return Vec::new();
        }
        self.servers.iter().filter_map(|(_, conn)| self.holder(conn)).collect()
    }

    pub(super) fn waited_too_long(&mut self, slot: u32, at: u32) {
        let pool = &self.pools[at as usize];
        let wait = pool.config.wait_timeout;
        if let Some(failing) = pool.failing.clone().filter(|_| pool.servers.is_empty()) {
            return self.refuse_for(slot, &failing.error, Some(&failing));
        }
        let shortage = pool.shortage();
        let holder = self.longest_holder(pool, shortage);
        let message = format!(
            "no server connection for \"{}\" became free within {}",
            pool.name.database,
            plain(wait)
        );
        let refused = Refused::new(sqlstate::TOO_MANY_CONNECTIONS, message)
            .detail(self.story(pool, shortage, holder.as_ref()))
            .hint(advice(shortage, holder.as_ref(), pool.pool.shared().pinned.taken() > 0))
            .theirs("query_wait_timeout");
        self.refuse(slot, &refused);
    }

    /// How the pool stands, and who has had a server for longest.
    fn story(&self, pool: &PoolState, shortage: Shortage, holder: Option<&Holder>) -> String {
        let taken = pool.pool.shared().servers.taken();
        let busy = taken.saturating_sub(pool.pool.idle().len() as u32);
        let state = if pool.paused { "paused, " } else { "" };
        let mut text = format!(
            "pool {}/{}: {state}{busy} of {} in use, {} waiting",
            pool.name.database,
            pool.name.user,
            pool.limits.size,
            pool.waiting()
        );
        let pinned = pool.pool.shared().pinned.taken();
        if pinned > 0 {
            text.push_str(&format!("; {pinned} pinned to clients"));
        }
        match shortage {
            Shortage::Shared(_, limit) => {
                text.push_str(&format!("; all {limit} of {} are taken", shortage.option()));
            }
            Shortage::Failing => {
                let why = pool.failing.as_ref().map(|failing| failing.error.message.as_str());
                text.push_str(&format!("; another can't be opened: {}", why.unwrap_or_default()));
            }
            Shortage::Opening => text.push_str("; another is being opened"),
            Shortage::Paused | Shortage::PoolSize => {}
        }
        if let Some(holder) = holder {
            text.push_str(&self.words(pool, holder));
        }
        text
    }

    fn words(&self, pool: &PoolState, holder: &Holder) -> String {
        let seconds = |since| self.now.since(since).as_secs_f64();
        let Holder { state, state_since, .. } = holder;
        let Some(client) = &holder.client else {
            return format!("; oldest holder: {state} for {:.0} s", seconds(*state_since));
        };
        let HoldingClient { id, user, application_name, ends: from } = client;
        let other = match holder.pool == pool.name {
            true => String::new(),
            false => format!(" of database \"{}\"", holder.pool.database),
        };
        format!(
            "; oldest holder: client {id}, application_name \"{application_name}\", {state} for \
             {:.0} s, user \"{user}\"{other} from {from}, has had it for {:.0} s",
            seconds(*state_since),
            seconds(holder.since)
        )
    }

    /// Who has had one of the servers that this pool lacks for longest, at any worker.
    fn longest_holder(&self, pool: &PoolState, shortage: Shortage) -> Option<Holder> {
        let matches = |name: &PoolName| shortage.is_due_to(name, &pool.name);
        let own = self.pools.iter().filter(|pool| matches(&pool.name));
        let own = own.filter_map(|pool| self.longest_in(pool));
        let elsewhere = self.common.holders.longest_elsewhere(self.worker, matches);
        own.chain(elsewhere).min_by_key(|holder| holder.since)
    }

    fn longest_in(&self, pool: &PoolState) -> Option<Holder> {
        let held = pool.servers.iter().filter_map(|server| self.servers.get(*server));
        let held = held.filter(|conn| conn.place != Place::Idle && !conn.replication);
        self.holder(held.min_by_key(|conn| conn.server.since)?)
    }

    fn holder(&self, conn: &ServerConn) -> Option<Holder> {
        if conn.replication {
            return None;
        }
        let pool = &self.pools[conn.pool as usize];
        let client = self.clients.get(conn.client).filter(|_| conn.place == Place::Lent);
        let since = conn.server.since;
        let (state, state_since) = match (conn.place, client) {
            (Place::Idle, _) | (Place::Lent, None) => return None,
            (Place::Carrying, _) => ("shared by several clients", since),
            (Place::Cleaning, _) if conn.cancels > 0 => ("being canceled", since),
            (Place::Cleaning, _) => ("being cleaned", since),
            (Place::Lent, Some(client)) => does(conn, client, pool.config.mode),
        };
        let shape = client.and_then(|client| pool.shapes.get(client.asking));
        let client = client.map(|client| HoldingClient {
            id: client.id,
            user: user_of(client, pool).to_owned(),
            application_name: client.settings.get("application_name").unwrap_or("").to_owned(),
            ends: client.ends,
        });
        let statement = shape.map(|shape| cut(shape.plain_text()));
        Some(Holder { pool: pool.name.clone(), client, state, state_since, since, statement })
    }
}

/// What a client does with its server, and since when.
fn does(
    conn: &ServerConn,
    client: &Client,
    mode: PoolMode,
) -> (&'static str, backend::moment::Moment) {
    if client.hold == Hold::SetUp || conn.preparing != Preparing::No {
        return ("being prepared", client.asked);
    }
    if client.out.len() >= OUT_BYTES_HIGH {
        return ("not reading", client.active);
    }
    if !conn.server.is_quiet() {
        return ("active", client.asked);
    }
    if let Some(since) = conn.idly_pinned() {
        return ("pinned", since);
    }
    let idle = match conn.server.status() {
        TxStatus::InTransaction => "idle in transaction",
        TxStatus::Failed => "idle in transaction (aborted)",
        TxStatus::Idle if client.batch_open => "idle in a batch",
        TxStatus::Idle if mode == PoolMode::Session => "idle in session",
        TxStatus::Idle => "idle",
    };
    (idle, client.active)
}

/// What to do for those who wait.
fn advice(shortage: Shortage, holder: Option<&Holder>, pinned: bool) -> String {
    if shortage == Shortage::Paused {
        return "RESUME the database on the console. [P0413]".to_owned();
    }
    let client = holder.and_then(|holder| holder.client.as_ref());
    let raise = match shortage {
        Shortage::PoolSize | Shortage::Shared(..) => Some(shortage.option()),
        _ => None,
    };
    let show = if pinned { "SHOW PINS" } else { "SHOW BLOCKERS" };
    match (client, raise) {
        (Some(HoldingClient { id, .. }), Some(option)) => {
            format!("KILL_CLIENT {id}, or raise {option}; see {show}. [P0412]")
        }
        (Some(HoldingClient { id, .. }), None) => format!("KILL_CLIENT {id}; see {show}. [P0412]"),
        (None, Some(option)) => format!("Raise {option}; see {show}. [P0412]"),
        (None, None) => format!("See {show} and the log. [P0412]"),
    }
}
