//! Which client has which server: taking, preparing, releasing, cleaning; and how a client ends.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use backend::moment::Moment;
use backend::pool::{self, Ceiling, Pool, Scope};
use backend::reply::{Fate, Kind, Owner, Request};
use backend::server::LastWords;
use wire::pg::backend::{error_fields, TxStatus};
use wire::pg::frame;
use wire::pg::frontend;
use wire::pg::sqlstate;

use super::company::Company;
use super::replies::Sink;
use super::surveying::{Surveys, Touched};
use super::{Count, Effect, Place, Plane, PoolState, Preparing, ServerConn};
use crate::config::{PoolConfig, PoolMode};
use crate::control::messages::{PoolName, Ref, ToControl};
use crate::session::client::{Client, Hold, Phase, Rest, NONE};
use crate::session::login::Refused;
use crate::worker::shapes::Shapes;
use crate::worker::snapshot::Totals;

/// Removes what another client has prepared in a way that was not seen.
const SWEEP: &str = "DEALLOCATE ALL";

/// A [`PoolName`] that owns nothing.
#[derive(Hash)]
struct NameOf<'a> {
    database: &'a str,
    user: &'a str,
    replica: Option<usize>,
}

impl hashbrown::Equivalent<PoolName> for NameOf<'_> {
    fn equivalent(&self, name: &PoolName) -> bool {
        (self.database, self.user, self.replica)
            == (name.database.as_str(), name.user.as_str(), name.replica)
    }
}

/// A worker whose clients wait keeps a server that becomes free so many times; then it is the turn
/// of another worker, if clients wait there.
const KEPT_MAX: u32 = 8;

impl Plane {
    pub(super) fn known_pool(&self, database: &str, user: &str) -> Option<u32> {
        self.pool_by_name.get(&NameOf { database, user, replica: None }).copied()
    }

    /// The number of a pool, made if it is new.
    pub(super) fn pool_of(&mut self, config: Arc<PoolConfig>) -> u32 {
        let name = PoolName::of(&config);
        if let Some(known) = self.pool_by_name.get(&name) {
            return *known;
        }
        let at = self.pools.len() as u32;
        // Servers of a standby are this worker's alone: those of one are of one life.
        let owner = name.replica.map(|_| self.worker);
        let shared = self.common.pool(&name, owner);
        let disabled = config.disabled || self.disabled.contains(&config.database);
        let paused =
            self.paused.contains(&None) || self.paused.contains(&Some(config.database.clone()));
        let mut limits = self.limits(&config);
        if name.replica.is_some() {
            self.limits_beside(&mut limits);
        }
        shared.share_with(limits.also.clone());
        self.pools.push(PoolState {
            limits,
            client_budgets: self.client_budgets(&config),
            name: name.clone(),
            pool: Pool::new(shared),
            servers: Vec::new(),
            welcome: None,
            proven: None,
            greeting: Vec::new(),
            kept: 0,
            last_greeting: None,
            retired: false,
            clients: 0,
            paused,
            disabled,
            epoch: 0,
            renewed: 0,
            totals: Totals::default(),
            failing: None,
            shapes: Shapes::default(),
            company: Company::default(),
            surveys: Surveys::default(),
            cache: None,
            standbys: None,
            home: NONE,
            life: 0,
            config,
        });
        self.pool_by_name.insert(name, at);
        at
    }

    pub(super) fn limits(&self, config: &PoolConfig) -> pool::Limits {
        let mut also = Vec::new();
        if let Some(limit) = self.config.runtime.max_servers {
            let budget = self.common.budget(Count::Servers, "");
            also.push(Ceiling { scope: Scope::Process, budget, limit });
        }
        if let Some(limit) = config.max_database_servers {
            let budget = self.common.budget(Count::DatabaseServers, &config.database);
            also.push(Ceiling { scope: Scope::Database, budget, limit });
        }
        if let Some(limit) = config.max_user_servers {
            let budget = self.common.budget(Count::UserServers, &config.user);
            also.push(Ceiling { scope: Scope::User, budget, limit });
        }
        pool::Limits {
            size: config.pool_size,
            min: config.min_pool_size,
            // A timeout of 0 means never.
            reserve: match config.reserve_pool_timeout.is_zero() {
                true => 0,
                false => config.reserve_pool_size,
            },
            reserve_after: config.reserve_pool_timeout,
            retry_after: config.server_login_retry,
            also,
        }
    }

    pub(super) fn client_budgets(
        &self,
        config: &PoolConfig,
    ) -> Vec<(Arc<pool::Budget>, Option<u32>, &'static str)> {
        let common = &self.common;
        vec![
            (
                common.budget(Count::DatabaseClients, &config.database),
                config.max_database_clients,
                "database",
            ),
            (
                common.budget(Count::UserClients, &config.user),
                self.config.max_clients_of(&config.user),
                "user",
            ),
        ]
    }

    /// Whether the client has a server that is ready for it; if not it waits from now on.
    pub(super) fn ensure_server(&mut self, slot: u32) -> bool {
        let has = self.take_server(slot);
        if has && self.clients[slot].begun.is_some() {
            self.begin_now(slot);
        }
        has
    }

    fn take_server(&mut self, slot: u32) -> bool {
        let client = &mut self.clients[slot];
        let now = self.now;
        if let Some(conn) = self.servers.get(client.server) {
            if conn.server.is_quiet() && !client.batch_open {
                client.asked = now;
                if conn.server.status() == TxStatus::Idle && client.begun.is_none() {
                    client.began = now;
                }
            }
            return client.hold == Hold::No;
        }
        client.asked = now;
        if client.begun.is_none() {
            client.began = now;
        }
        if client.sight.is_some() {
            self.choose_for_transaction(slot);
        }
        let at = self.clients[slot].pool;
        let pool = &mut self.pools[at as usize];
        let open = !pool.paused;
        let found = match pool.config.mode {
            _ if !open => None,
            PoolMode::Session => self.take_fitting(at, slot),
            PoolMode::Transaction | PoolMode::Statement if pool.config.server_round_robin => {
                pool.pool.take_in_turn()
            }
            PoolMode::Transaction | PoolMode::Statement => pool.pool.take(),
        };
        if let Some(server) = found {
            self.attach(slot, server, now);
            return self.clients.get(slot).is_some_and(|client| client.hold == Hold::No);
        }
        let client = &mut self.clients[slot];
        self.pools[at as usize].pool.wait(slot, now, client.party());
        client.hold = Hold::Waiting;
        self.open_more(at);
        false
    }

    /// Lends `server` to a client that has waited since `since`. What has to be prepared first
    /// holds the client back until it is done.
    pub(super) fn attach(&mut self, slot: u32, server: u32, since: Moment) {
        let now = self.now;
        let (client, conn) = (&mut self.clients[slot], &mut self.servers[server]);
        let pool = &mut self.pools[conn.pool as usize];
        let waited = now.since(since).as_micros() as u64;
        pool.totals.server_assignment_count += 1;
        pool.totals.wait_time_us += waited;
        pool.totals.wait_time.record(waited);
        let idle = now.since(conn.server.since);
        if let Some(trace) = &mut client.trace {
            trace.wait = now.since(since);
        }
        client.server = server;
        client.hold = Hold::No;
        conn.client = slot;
        conn.read.begun = None;
        conn.place = Place::Lent;
        conn.server.lend(Some(Owner(slot)));
        conn.server.single = pool.config.mode == PoolMode::Statement;
        conn.server.apart = pool.shares_listening();
        conn.server.since = now;
        let delay = pool.config.server_check_delay;
        if !delay.is_zero() && idle >= delay {
            let check = pool.config.server_check_query.clone();
            return self.prepare(slot, server, Preparing::Checking, &check);
        }
        self.set_up(slot, server);
    }

    /// Runs one query of the pooler's own on a server while its client waits.
    fn prepare(&mut self, slot: u32, server: u32, preparing: Preparing, query: &str) {
        self.clients[slot].hold = Hold::SetUp;
        self.servers[server].preparing = preparing;
        let request = Request::with_fate(Owner(slot), Kind::Query, Fate::Setup);
        self.send(server, request, |out| frontend::put_query(out, query));
    }

    /// What is still to be done before the client may use its server. Called again when a step
    /// is answered.
    pub(super) fn set_up(&mut self, slot: u32, server: u32) {
        let (Some(client), Some(conn)) = (self.clients.get_mut(slot), self.servers.get_mut(server))
        else {
            return;
        };
        match std::mem::replace(&mut conn.preparing, Preparing::No) {
            Preparing::No | Preparing::Checking | Preparing::Sweeping => {}
            Preparing::Surveying => return self.surveyed(slot, server),
            Preparing::Bringing => return,
            Preparing::Listening => return self.channels_brought(slot),
            Preparing::Applying => {
                conn.last_client = client.id;
                self.unify_settings(slot, server);
                self.bring_channels(slot, server);
                return;
            }
        }
        let other = std::mem::replace(&mut conn.last_client, client.id) != client.id;
        if other && conn.server.litter > 0 {
            return self.prepare(slot, server, Preparing::Sweeping, SWEEP);
        }
        let alike = Arc::ptr_eq(&client.settings, &conn.server.settings);
        let listens = client.listens.is_some();
        self.close_foreign(slot, server);
        if !alike {
            self.apply_settings(slot, server);
        }
        if listens && self.servers[server].preparing == Preparing::No {
            self.bring_channels(slot, server);
        }
    }

    /// The server refused a setting of the client's: PostgreSQL would have refused the connection.
    pub(super) fn set_up_failed(&mut self, slot: u32, error: &[u8]) {
        let server = self.clients[slot].server;
        if let Some(conn) = self.servers.get_mut(server) {
            let preparing = std::mem::replace(&mut conn.preparing, Preparing::No);
            if preparing == Preparing::Surveying {
                let fields = error_fields(error).ok();
                let message = fields.and_then(|fields| fields.message().map(str::to_owned));
                return self.survey_failed(slot, &message.unwrap_or_default());
            }
            if preparing == Preparing::Bringing {
                return self.bringing_failed(slot, error);
            }
            conn.close_needed |= preparing != Preparing::Applying;
            if preparing == Preparing::Listening {
                let fields = error_fields(error).ok();
                let message = fields.and_then(|fields| fields.message().map(str::to_owned));
                return self.lost_listening(slot, &message.unwrap_or_default());
            }
        }
        self.clients[slot].hold = Hold::No;
        let fields = error_fields(error).ok();
        let text = |pick: fn(&wire::pg::backend::ErrorFields<'_>) -> Option<String>| {
            fields.as_ref().and_then(pick)
        };
        let code = text(|fields| fields.code().map(str::to_owned)).unwrap_or_default();
        let message = text(|fields| fields.message().map(str::to_owned)).unwrap_or_default();
        self.tell(slot, |out| {
            wire::pg::backend::put_error(
                out,
                &wire::pg::backend::ErrorReply {
                    severity: "FATAL",
                    code: &code,
                    message: &message,
                    detail: Some(
                        "A start-up parameter or setting of this client was refused by the server.",
                    ),
                    hint: Some("See the client's connection settings. [P0322]"),
                },
            );
        });
        self.close_told(slot, &message);
    }

    /// The server died while it was being prepared: nothing of the client's was sent, so the
    /// client goes back to the head of the queue.
    pub(super) fn lost_in_set_up(&mut self, server: u32, slot: u32) {
        let at = self.servers[server].pool;
        let client = &mut self.clients[slot];
        if client.listens.as_ref().is_some_and(|listens| listens.ready) {
            // It was to say what the client listens to now.
            self.close_server(server, "server lost");
            return self.lost_listening(slot, "the server was lost before it said to what");
        }
        if let Some(listens) = &mut client.listens {
            listens.begins = false;
        }
        client.server = NONE;
        // Its request may have been cancelled meanwhile.
        let asks = matches!(frame::header(&client.input), Ok(Some(_)));
        client.hold = if asks { Hold::Waiting } else { Hold::No };
        let since = client.asked;
        self.servers[server].client = NONE;
        self.close_server(server, "server lost");
        if asks {
            let party = self.clients[slot].party();
            self.pools[at as usize].pool.wait_first(slot, since, party);
        }
        self.serve(at);
    }

    /// Appends a request to a server's bytes and to its reply queue.
    pub(super) fn send(&mut self, server: u32, request: Request, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(conn) = self.servers.get_mut(server) else { return };
        write(&mut conn.server.out);
        let mut sink = Sink {
            clients: &mut self.clients,
            buffers: &mut self.buffers,
            written: &mut self.written_clients,
            events: &mut self.events,
            sent: 0,
        };
        conn.server.push(request, &mut sink);
        if !conn.server.out.is_empty() && !std::mem::replace(&mut conn.queued_out, true) {
            self.written_servers.push(server);
        }
    }

    /// Bytes that need no reply.
    pub(super) fn send_bytes(&mut self, server: u32, bytes: &[u8]) {
        let Some(conn) = self.servers.get_mut(server) else { return };
        conn.server.out.extend_from_slice(bytes);
        if !std::mem::replace(&mut conn.queued_out, true) {
            self.written_servers.push(server);
        }
    }

    pub(super) fn fence(&mut self, server: u32) {
        let Some(conn) = self.servers.get_mut(server) else { return };
        let mut sink = Sink {
            clients: &mut self.clients,
            buffers: &mut self.buffers,
            written: &mut self.written_clients,
            events: &mut self.events,
            sent: 0,
        };
        conn.server.fence(&mut sink);
        if !std::mem::replace(&mut conn.queued_out, true) {
            self.written_servers.push(server);
        }
    }

    pub(super) fn rollback(&mut self, server: u32) {
        let request = Request::with_fate(Owner::NOBODY, Kind::Query, Fate::Must);
        self.send(server, request, |out| frontend::put_query(out, "ROLLBACK"));
    }

    /// The client has finished with its server.
    pub(super) fn release(&mut self, server: u32) {
        let conn = &mut self.servers[server];
        let slot = std::mem::replace(&mut conn.client, NONE);
        let reads = self.clients.get_mut(slot).and_then(|client| client.reads.as_mut());
        conn.strange |= reads.is_some_and(|reads| std::mem::take(&mut reads.left));
        let config = &self.pools[conn.pool as usize].config;
        let always = config.mode == PoolMode::Session || config.server_reset_always;
        conn.reset_wanted = always || conn.strange;
        conn.server.lend(None);
        conn.place = Place::Cleaning;
        self.go_home(slot);
        if let Some(client) = self.clients.get_mut(slot) {
            client.server = NONE;
            client.slim();
            if client.hold == Hold::ServerFull {
                // A COPY has failed before the server took what was sent.
                client.hold = Hold::No;
            }
            if client.close_needed {
                self.close_client(slot, Some(&removed()));
            } else if !client.input.is_empty() {
                self.resume_later(slot);
            }
        }
        if self.clients.get(slot).is_some_and(|client| client.listens.is_some()) {
            self.ask_to_listen(slot);
        }
        self.clean(server);
    }

    /// The client has gone and left this server as it is.
    fn abandon(&mut self, server: u32, slot: u32, left: Left) {
        let Some(conn) = self.servers.get_mut(server) else { return };
        conn.client = NONE;
        conn.place = Place::Cleaning;
        conn.server.since = self.now;
        conn.server.disown(Owner(slot));
        if conn.preparing == Preparing::Surveying {
            conn.preparing = Preparing::No;
            conn.server.take_rows();
            conn.touched = Some(Touched::anyhow());
        }
        if self.unpin(server) {
            self.servers[server].touched = Some(Touched::anyhow());
        }
        let Some(conn) = self.servers.get_mut(server) else { return };
        let unsound = left.half_sent || left.in_set_up;
        if unsound || conn.server.copies_in() || conn.replication {
            self.close_server(server, "client disconnect while server was not ready");
            return;
        }
        let config = &self.pools[conn.pool as usize].config;
        let always = config.mode == PoolMode::Session || config.server_reset_always;
        conn.reset_wanted = always || conn.strange;
        if left.batch_open {
            let request = Request::with_fate(Owner::NOBODY, Kind::Sync, Fate::Hide);
            self.send(server, request, frontend::put_sync);
        }
        if !self.servers[server].server.is_quiet() {
            self.cancel_server(server);
        }
        self.clean(server);
    }

    /// Asks PostgreSQL to cancel what this server does.
    pub(super) fn cancel_server(&mut self, server: u32) {
        self.cancel_server_for(server, None);
    }

    /// The same for a CancelRequest, whose sender waits until PostgreSQL has heard it.
    pub(super) fn cancel_server_for(&mut self, server: u32, asker: Option<Ref>) {
        let conn = &mut self.servers[server];
        conn.cancels += 1;
        let pool = &mut self.pools[conn.pool as usize];
        pool.totals.cancels += 1;
        let reference = Ref { worker: self.worker, slot: server, generation: conn.generation };
        self.effects.push(Effect::Control(ToControl::Cancel {
            server: reference,
            asker,
            upstream: pool.config.clone(),
            ends: conn.ends,
            pid: conn.pid,
            key: conn.key.to_vec(),
        }));
    }

    /// Brings a server that nobody has into a state in which the next client may get it: one step
    /// at a time, called again when the step is answered.
    pub(super) fn clean(&mut self, server: u32) {
        let Some(conn) = self.servers.get(server) else { return };
        if conn.server.is_broken() || conn.server.is_dying() || conn.server.copies_in() {
            self.close_server(server, "idle server got dirty");
            return;
        }
        if !conn.server.is_quiet() {
            return;
        }
        if conn.server.status() != TxStatus::Idle {
            self.rollback(server);
            return;
        }
        if conn.server.owes_ready() {
            self.fence(server);
            return;
        }
        if self.retires(&self.servers[server]) {
            self.retire(server);
            return;
        }
        let conn = &mut self.servers[server];
        let pool = &self.pools[conn.pool as usize];
        if conn.touched.take().is_some() {
            // Its client went before anybody asked what it had set.
            (conn.strange, conn.listening) = (false, false);
            let request = Request::with_fate(Owner::NOBODY, Kind::Query, Fate::Must);
            self.send(server, request, |out| frontend::put_query(out, "DISCARD ALL"));
            return;
        }
        if std::mem::replace(&mut conn.reset_wanted, false) {
            let query = pool.config.server_reset_query.clone();
            if !query.is_empty() {
                conn.strange = false;
                let request = Request::with_fate(Owner::NOBODY, Kind::Query, Fate::Must);
                self.send(server, request, |out| frontend::put_query(out, &query));
                return;
            }
        }
        if std::mem::replace(&mut conn.listening, false) {
            let request = Request::with_fate(Owner::NOBODY, Kind::Query, Fate::Must);
            self.send(server, request, |out| frontend::put_query(out, "UNLISTEN *"));
            return;
        }
        if conn.cancels > 0 {
            return;
        }
        self.give(server);
    }

    /// A server that is to be closed as soon as nothing is in flight.
    pub(super) fn retires(&self, conn: &ServerConn) -> bool {
        let pool = &self.pools[conn.pool as usize];
        let lifetime = pool.config.server_lifetime;
        let old = !lifetime.is_zero() && self.now.since(conn.server.opened) >= lifetime;
        let unwanted = conn.close_needed || conn.is_unfit() || conn.epoch != pool.epoch;
        // Its RESET would be wrong for all others.
        let odd = conn.start.is_some() && pool.config.mode != PoolMode::Session;
        old || odd || unwanted || conn.server.has_library() || conn.server.is_dying()
    }

    /// A clean server: to whoever waits longest, here or at another worker, else it rests.
    pub(super) fn give(&mut self, server: u32) {
        let (now, worker) = (self.now, self.worker);
        let conn = &mut self.servers[server];
        conn.place = Place::Idle;
        conn.server.since = now;
        let at = conn.pool;
        if self.is_owed(at) {
            return self.close_server(server, "evicted");
        }
        let pool = &mut self.pools[at as usize];
        let starving = pool.pool.shared().starving.load(Ordering::Relaxed) & !(1 << worker);
        let own = pool.pool.waiting() > 0 && pool.kept < KEPT_MAX;
        if starving != 0 && !own && !pool.paused {
            pool.kept = 0;
            // The next one in a circle, so that two workers never share it between them alone.
            let next = u32::from(worker) + 1;
            let to = (next + starving.rotate_right(next).trailing_zeros()) % u64::BITS;
            self.give_away(server, to as u8);
            self.ask_other_workers(at, false);
            return;
        }
        pool.kept = if starving == 0 { 0 } else { pool.kept + 1 };
        pool.pool.rest(server);
        self.serve(at);
    }

    /// Lends idle servers to waiting clients as long as there are both, and opens more if needed.
    pub(super) fn serve(&mut self, at: u32) {
        while !self.in_sessions(at) {
            let pool = &mut self.pools[at as usize];
            if pool.paused || pool.pool.waiting() == 0 {
                break;
            }
            let Some(&server) = pool.pool.idle().last() else { break };
            pool.pool.remove_idle(server);
            let Some((slot, since)) = pool.pool.next_waiting() else { break };
            if self.clients[slot].unit.is_some() {
                self.queue_served(slot, server, since);
                continue;
            }
            self.attach(slot, server, since);
            self.resume_later(slot);
        }
        self.open_more(at);
    }

    /// Makes a client ready to be forgotten: it leaves its queue, its server, its counts.
    /// `why`: what it is told, if it does not leave by itself.
    pub(super) fn release_client(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        match std::mem::replace(&mut client.phase, Phase::Leaving) {
            Phase::Leaving => return,
            Phase::LoggingIn(_) | Phase::AwaitWelcome(_) => self.logging_in -= 1,
            Phase::Pooled => {}
            Phase::Console(who) => {
                self.console_places(&who.user).iter().for_each(|budget| budget.give_back());
                let gone = ToControl::ConsoleGone { client: self.reference(slot) };
                self.effects.push(Effect::Control(gone));
            }
        }
        if self.clients[slot].trace.is_some() {
            self.sample_lost(slot);
        }
        self.unit_abandoned(slot);
        self.stop_listening(slot);
        let client = &mut self.clients[slot];
        client.input = Vec::new();
        let server = std::mem::replace(&mut client.server, NONE);
        let strange = client.reads.as_ref().is_some_and(|reads| reads.left);
        if let Some(conn) = self.servers.get_mut(server) {
            conn.strange |= strange;
        }
        let client = &mut self.clients[slot];
        let at = std::mem::replace(&mut client.pool, NONE);
        let counted = std::mem::replace(&mut client.counted, false);
        let preparing = self.servers.get(server).map(|conn| conn.preparing);
        let surveyed = preparing == Some(Preparing::Surveying);
        let left = Left {
            half_sent: client.rest > 0 && client.rest_goes == Rest::ToServer,
            batch_open: client.batch_open,
            in_set_up: client.hold == Hold::SetUp && !surveyed,
        };
        let guest = client.guest.take();
        if let Some(pool) = self.pools.get_mut(at as usize) {
            pool.clients -= 1;
            let places = pool.client_budgets.iter().map(|(budget, _, _)| budget);
            match &guest {
                None => places.for_each(|budget| budget.give_back()),
                Some(guest) => {
                    places.take(1).for_each(|budget| budget.give_back());
                    guest.clients.give_back();
                }
            }
            pool.pool.leave(slot);
            pool.greeting.retain(|waiting| *waiting != slot);
        }
        if counted {
            self.common.clients.give_back();
        }
        if server != NONE {
            self.abandon(server, slot, left);
        }
    }

    /// Ends a client: it is told why, then closed. One that has part of a message is only closed:
    /// an error would be taken for the rest of it.
    pub(super) fn close_client(&mut self, slot: u32, refused: Option<&Refused>) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        if matches!(client.phase, Phase::Leaving) {
            return;
        }
        // What is held back is not safe yet, and stays unheard.
        let corked = std::mem::take(&mut client.corked);
        if corked {
            client.out.clear();
        }
        // In the middle of a row the client would take the reason for a part of it; and the server
        // may have given one already.
        let server = client.unit.as_ref().map_or(client.server, |unit| unit.server);
        let deaf = self.servers.get(server).is_some_and(|conn| {
            conn.server.is_within_message(Owner(slot))
                || *conn.server.last_words() == LastWords::ToldTo(Owner(slot))
        });
        let refused = refused.map(|refused| refused.in_words(self.config.listen.errors));
        let why = refused.as_ref().map_or("client close request", |refused| &refused.message);
        self.log_left(slot, why);
        if let Some(refused) = refused.filter(|_| corked || !deaf) {
            self.tell(slot, |out| refused.put(out));
        }
        self.release_client(slot);
        self.effects.push(Effect::CloseClient(slot));
    }

    /// Ends a client that has been told why.
    pub(super) fn close_told(&mut self, slot: u32, why: &str) {
        self.log_left(slot, why);
        self.release_client(slot);
        self.effects.push(Effect::CloseClient(slot));
    }
}

/// What clients of a database are told that a reload has removed.
pub(super) fn removed() -> Refused {
    Refused::new(sqlstate::ADMIN_SHUTDOWN, "the database was removed from the configuration")
        .theirs("database removed")
}

/// As whom a client has logged in.
pub(super) fn user_of<'a>(client: &'a Client, pool: &'a PoolState) -> &'a str {
    client.guest.as_ref().map_or(&pool.name.user, |guest| &guest.user)
}

/// How a client that has gone left its server.
#[derive(Debug, Clone, Copy)]
struct Left {
    /// A message was passed on in part.
    half_sent: bool,
    batch_open: bool,
    in_set_up: bool,
}
