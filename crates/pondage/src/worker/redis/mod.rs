//! One worker's Redis clients, without sockets and without a clock.
//!
//! How it is driven: [`RedisPlane::begin_turn`] gives the time; [`RedisPlane::client_connected`],
//! [`RedisPlane::client_bytes`], [`RedisPlane::client_closed`] and [`RedisPlane::told`] tell what
//! has happened; [`RedisPlane::end_turn`] has the engine do what that has made possible and takes
//! its events. Then the driver writes `out` of every client in [`RedisPlane::written`] and carries
//! out the [`Effect`]s.
//!
//! Commands run where they were read, under the engine's lock ([`Shared`]). A reply that waits for
//! a commit is *held*, and so are all behind it; their commands are kept, because if a batch is
//! undone they run again (`running.rs`).

mod admission;
mod client;
mod events;
mod links;
mod login;
mod running;
mod shared;
mod spares;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ::redis::engine::NOT_YET;
use ::redis::session::{ConnId, Peer};
use backend::moment::Moment;
use hashbrown::HashMap;
use wire::resp::Protocol;

use crate::caches::Caches;
use crate::config::{Config, ListenTlsMode, PoolConfig};
use crate::control::messages::{Ref, Shutdown, ToControl, ToWorker};
use crate::hba::Subject;
use crate::link::Ends;
use crate::worker::plane::Common;
use crate::worker::slots::Slots;
use admission::Caller;
pub use client::Client;
use client::{Held, Hold};
use links::Link;
use running::Turn;
pub use shared::{Shared, Snapshot};
use spares::Spares;

/// The first byte of a TLS connection, and of no command. Source: RFC 8446, 5.1.
const TLS_HANDSHAKE: u8 = 0x16;

/// Bytes of one client's commands that have not run: a command may be as long.
///
/// Source: `client-query-buffer-limit` of Redis.
const INPUT_BYTES_MAX: usize = 1 << 30;

/// Times in a turn that the engine is asked what its own events have made possible.
const ROUNDS_MAX: usize = 4;

/// How exact timeouts are.
const TICK: Duration = Duration::from_millis(100);

/// All clients are looked at every so many ticks.
const CLIENTS_EVERY: u64 = 5;

/// What the driver has to do.
#[derive(Debug)]
pub enum Effect {
    /// Close it once its bytes are written; then [`RedisPlane::client_forgotten`].
    Close(u32),
    /// Its socket goes to the control plane, with what was read of the handshake; it is forgotten.
    StartTls {
        slot: u32,
        early: Vec<u8>,
    },
    CloseLink(usize),
    Control(ToControl),
    Peer(u8, ToWorker),
}

/// What a plane needs from the process.
#[derive(Debug)]
pub struct Setting {
    pub worker: u8,
    pub config: Arc<Config>,
    pub shared: Arc<Shared>,
    pub caches: Arc<Caches>,
    pub common: Arc<Common>,
    pub epoch: SystemTime,
    pub tls_ready: bool,
}

pub struct RedisPlane {
    worker: u8,
    config: Arc<Config>,
    /// Where users are looked up that the configuration does not have.
    pool: Option<Arc<PoolConfig>>,
    shared: Arc<Shared>,
    caches: Arc<Caches>,
    common: Arc<Common>,
    /// Log-ins that wait because others of their like have failed, and until when.
    delayed: Vec<(Moment, Ref)>,
    /// Batches that were committed when this was last looked at.
    committed: u64,
    now: Moment,
    /// Milliseconds since 1970 when the clock was zero.
    epoch: i64,
    tls_ready: bool,
    pub clients: Slots<Client>,
    by_conn: HashMap<ConnId, u32, foldhash::fast::RandomState>,
    /// Clients with bytes to write.
    pub written: Vec<u32>,
    /// The engine's own connections, at the worker that has them.
    links: Vec<Link>,
    pub written_links: Vec<u32>,
    /// Clients whose input can be taken on.
    resumable: Vec<u32>,
    /// And those that have had their share of this turn.
    later: Vec<u32>,
    pub effects: Vec<Effect>,
    spares: Spares,
    /// Something has happened that the engine may have to act upon.
    touched: bool,
    due: Option<Moment>,
    next_tick: Moment,
    ticks: u64,
    shutdown: Option<Shutdown>,
    /// Why the tables can't be used, as the log has been told.
    reported: Option<String>,
}

impl RedisPlane {
    pub fn new(setting: Setting) -> RedisPlane {
        let epoch = setting.epoch.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        RedisPlane {
            worker: setting.worker,
            pool: setting.config.redis_pool(),
            config: setting.config,
            shared: setting.shared,
            caches: setting.caches,
            common: setting.common,
            delayed: Vec::new(),
            committed: 0,
            now: Moment(0),
            epoch: i64::try_from(epoch.as_millis()).unwrap_or(i64::MAX),
            tls_ready: setting.tls_ready,
            clients: Slots::default(),
            by_conn: HashMap::default(),
            written: Vec::new(),
            links: Vec::new(),
            written_links: Vec::new(),
            resumable: Vec::new(),
            later: Vec::new(),
            effects: Vec::new(),
            spares: Spares::default(),
            touched: true,
            due: None,
            next_tick: Moment(0),
            ticks: 0,
            shutdown: None,
            reported: Some(NOT_YET.to_owned()),
        }
    }

    pub fn begin_turn(&mut self, now: Moment) {
        self.now = now;
    }

    /// Milliseconds since 1970.
    fn wall(&self) -> i64 {
        self.epoch.saturating_add_unsigned(self.now.0 / 1000)
    }

    /// A client's socket was accepted, or its TLS handshake is done, in which it may have shown a
    /// certificate.
    pub fn client_connected(
        &mut self,
        ends: Ends,
        (tls, subject): (Option<Arc<str>>, Option<Box<Subject>>),
        began: Moment,
    ) -> u32 {
        let config = self.config.clone();
        let caller = Caller { ends: &ends, tls: tls.is_some(), subject: subject.as_deref() };
        let (user, open) = admission::first_user(&config, caller);
        let counted = self.shared.clients.take(config.redis.max_clients);
        let wall = self.wall();
        let conn = {
            let mut engine = self.shared.engine();
            let (address, local_address) = addresses(&ends);
            let user = user.into();
            engine.connect(self.worker, Peer { address, local_address, user, fd: 0 }, wall)
        };
        let slot = self.clients.insert(|_, generation| Client {
            generation,
            conn,
            ends,
            fresh: tls.is_none(),
            tls,
            subject,
            open,
            protocol: Protocol::Resp2,
            hold: Hold::No,
            ended: false,
            leaving: false,
            counted,
            closing: false,
            input: Vec::new(),
            parser: None,
            out: Vec::new(),
            held: Held::default(),
            redo: None,
            queued_out: false,
            queued_resume: false,
            connected: began,
        });
        self.by_conn.insert(conn, slot);
        if !counted {
            self.turn_away(slot, b"-ERR max number of clients reached\r\n");
        } else if self.shutdown.is_some() {
            self.turn_away(slot, b"-ERR Pondage is shutting down\r\n");
        }
        slot
    }

    /// Says why, and closes.
    fn turn_away(&mut self, slot: u32, why: &[u8]) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        client.out.extend_from_slice(why);
        client.leaving = true;
        self.settle(slot);
    }

    /// Bytes that were read from a client, cut anywhere.
    pub fn client_bytes(&mut self, slot: u32, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        if client.leaving {
            return;
        }
        if std::mem::take(&mut client.fresh) && self.greets_with_tls(slot, bytes) {
            return;
        }
        let client = &mut self.clients[slot];
        if client.input.is_empty() {
            let done = self.advance(slot, bytes);
            if let Some(client) = self.clients.get_mut(slot) {
                let rest = bytes.get(done..).unwrap_or_default();
                if !rest.is_empty() {
                    self.spares.give_buffer(&mut client.input);
                    client.input.extend_from_slice(rest);
                }
            }
        } else if client.input.len() + bytes.len() > INPUT_BYTES_MAX {
            let number = client.conn.slot;
            tracing::warn!(
                event = "redis_input_limit",
                client = number,
                "closed: its commands are too long"
            );
            self.cut(slot);
        } else {
            client.input.extend_from_slice(bytes);
            self.go_on(slot);
        }
        self.settle(slot);
    }

    /// A client that begins with TLS goes to the control plane; one that should have and did not
    /// is turned away.
    fn greets_with_tls(&mut self, slot: u32, bytes: &[u8]) -> bool {
        let mode = self.config.listen.tls.mode;
        if !self.tls_ready || mode == ListenTlsMode::Disable {
            return false;
        }
        if bytes.first() == Some(&TLS_HANDSHAKE) {
            self.effects.push(Effect::StartTls { slot, early: bytes.to_vec() });
            return true;
        }
        let required = matches!(mode, ListenTlsMode::Require | ListenTlsMode::VerifyClient);
        if required {
            self.turn_away(slot, b"-ERR TLS is required\r\n");
        }
        required
    }

    /// Takes on with what a client has sent before.
    fn go_on(&mut self, slot: u32) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        let mut input = std::mem::take(&mut client.input);
        let done = self.advance(slot, &input);
        input.drain(..done.min(input.len()));
        if let Some(client) = self.clients.get_mut(slot) {
            client.input = input;
        }
    }

    /// Runs commands; says how many bytes of `input` are done with.
    fn advance(&mut self, slot: u32, input: &[u8]) -> usize {
        let Some(client) = self.clients.get_mut(slot) else { return 0 };
        if !client.may_run() {
            return 0;
        }
        let mut parser = client.parser.take().unwrap_or_else(|| self.spares.parser());
        self.spares.give_buffer(&mut client.out);
        self.spares.give_held(&mut client.held);
        let shared = self.shared.clone();
        let mut turn = Turn {
            engine: &mut shared.engine(),
            config: &self.config,
            pool: self.pool.as_ref(),
            client: Ref { worker: self.worker, slot, generation: client.generation },
            now: self.epoch.saturating_add_unsigned(self.now.0 / 1000),
            moment: self.now,
            common: &self.common,
            delayed: &mut self.delayed,
            effects: &mut self.effects,
        };
        let (done, more) = client.advance(&mut turn, &mut parser, input);
        if !parser.is_between_commands() {
            client.parser = Some(parser);
        } else {
            self.spares.keep_parser(parser);
        }
        if more {
            queue(&mut self.later, client, slot);
        }
        self.touched = true;
        done
    }

    /// The client has closed its side.
    pub fn client_closed(&mut self, slot: u32) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        client.ended = true;
        if matches!(client.hold, Hold::Blocked(_)) || client.fresh {
            client.leaving = true;
        }
        self.settle(slot);
    }

    /// What it is sent can't be written any more.
    pub fn client_broken(&mut self, slot: u32) {
        self.cut(slot);
    }

    pub fn client_may_read(&self, slot: u32) -> bool {
        self.clients.get(slot).is_some_and(Client::may_read)
    }

    /// Everything in `out` is written.
    pub fn client_flushed(&mut self, slot: u32) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        client.queued_out = false;
        client.out.clear();
        if matches!(client.hold, Hold::Full) && !client.is_full() {
            client.hold = Hold::No;
            queue(&mut self.resumable, client, slot);
        }
        self.settle(slot);
    }

    /// The driver has closed it.
    pub fn client_forgotten(&mut self, slot: u32) {
        let Some(client) = self.clients.remove(slot) else { return };
        self.by_conn.remove(&client.conn);
        self.shared.engine().disconnect(client.conn);
        if client.counted {
            self.shared.clients.give_back();
        }
        self.touched = true;
    }

    /// Closes it without a word: what waits for it is thrown away.
    fn cut(&mut self, slot: u32) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        client.out.clear();
        client.held = Held::default();
        client.input = Vec::new();
        client.redo = None;
        client.hold = Hold::No;
        client.leaving = true;
        self.settle(slot);
    }

    /// Sees what is to be written, and whether it is to be closed.
    fn settle(&mut self, slot: u32) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        if !client.out.is_empty() && !std::mem::replace(&mut client.queued_out, true) {
            self.written.push(slot);
        }
        if client.is_over() {
            if !std::mem::replace(&mut client.closing, true) {
                self.effects.push(Effect::Close(slot));
            }
        } else {
            self.spares.take_from(client);
        }
    }

    /// Goes on with clients that wait no more, has the engine do its part, and fires what is due.
    pub fn end_turn(&mut self) {
        if self.now >= self.next_tick {
            self.next_tick = self.now.after(TICK);
            self.tick();
        }
        self.resumable.append(&mut self.later);
        if !self.delayed.is_empty() {
            self.admit_delayed();
        }
        for _ in 0..ROUNDS_MAX {
            for slot in std::mem::take(&mut self.resumable) {
                let Some(client) = self.clients.get_mut(slot) else { continue };
                client.queued_resume = false;
                self.go_on(slot);
                self.settle(slot);
            }
            let due = self.due.is_some_and(|due| self.now >= due);
            if !std::mem::take(&mut self.touched) && !due {
                break;
            }
            self.engine_turn();
            if self.resumable.is_empty() {
                break;
            }
        }
        self.clients.end_turn();
    }

    /// A message for this plane.
    pub fn told(&mut self, message: ToWorker) {
        match message {
            ToWorker::RedisEvents => self.touched = true,
            ToWorker::LoggedIn { client: of, right } => self.logged_in(of, right),
            ToWorker::Reload { config, tls } => self.reload(config, tls.is_some()),
            ToWorker::Shutdown(shutdown) => self.shut_down(shutdown),
            _ => {}
        }
    }

    fn logged_in(&mut self, of: Ref, right: Result<bool, String>) {
        self.with_client(of, |client, turn| client.logged_in(turn, right));
    }

    /// Log-ins whose wait is over go on.
    fn admit_delayed(&mut self) {
        let now = self.now;
        let due: Vec<Ref> = self
            .delayed
            .extract_if(.., |(turn, _)| *turn <= now)
            .map(|(_, client)| client)
            .collect();
        for client in due {
            self.with_client(client, Client::has_waited);
        }
    }

    /// Does something for a client that waits, if it is still there.
    fn with_client(&mut self, of: Ref, act: impl FnOnce(&mut Client, &mut Turn<'_>)) {
        let shared = self.shared.clone();
        let Some(client) = self.clients.find(of.slot, of.generation) else { return };
        let mut turn = Turn {
            engine: &mut shared.engine(),
            config: &self.config,
            pool: self.pool.as_ref(),
            client: of,
            now: self.epoch.saturating_add_unsigned(self.now.0 / 1000),
            moment: self.now,
            common: &self.common,
            delayed: &mut self.delayed,
            effects: &mut self.effects,
        };
        act(client, &mut turn);
        if client.may_run() {
            queue(&mut self.resumable, client, of.slot);
        }
        self.settle(of.slot);
    }

    fn reload(&mut self, config: Arc<Config>, tls_ready: bool) {
        self.tls_ready = tls_ready;
        self.pool = config.redis_pool();
        if self.worker == 0 {
            // How many there are is decided at the start.
            let mut engine = self.shared.engine();
            let databases = engine.server.settings.databases;
            engine.server.settings = shared::settings(&config);
            engine.server.settings.databases = databases;
        }
        self.config = config;
    }

    fn shut_down(&mut self, shutdown: Shutdown) {
        self.shutdown = Some(shutdown);
        if shutdown == Shutdown::Immediate {
            for slot in self.clients.numbers() {
                self.cut(slot);
            }
        }
        self.leave_idle();
    }

    /// Another process takes the tables: clients go as in a shutdown. Or it has not come about.
    pub fn retire(&mut self, retires: bool) {
        match retires {
            true => self.shut_down(Shutdown::HandedOver),
            false => self.shutdown = None,
        }
    }

    /// While shutting down, a client is closed as soon as all that it has sent is answered: Redis
    /// clients stay connected for ever, and connect again.
    fn leave_idle(&mut self) {
        for slot in self.clients.numbers() {
            let client = &mut self.clients[slot];
            client.leaving |= client.input.is_empty() && client.held.is_empty();
            client.leaving |= matches!(client.hold, Hold::Blocked(_));
            self.settle(slot);
        }
    }

    /// Nobody is left, and nothing that anybody has written is still on its way.
    pub fn is_drained(&mut self) -> bool {
        if self.shutdown.is_none() {
            return true;
        }
        self.leave_idle();
        let immediate = self.shutdown_is_over();
        let closed = self.clients.iter().all(|(_, client)| client.closing);
        closed && (immediate || self.shared.engine().keys.flow.is_drained())
    }

    fn tick(&mut self) {
        self.ticks += 1;
        // Connections are opened again, and what waits for them is given up, when it is time.
        self.touched |= self.misses_links();
        if self.ticks % CLIENTS_EVERY != 0 {
            return;
        }
        let timeout = self.config.runtime.login_timeout;
        if timeout.is_zero() {
            return;
        }
        for slot in self.clients.numbers() {
            let client = &self.clients[slot];
            if !client.open && self.now.since(client.connected) >= timeout {
                self.cut(slot);
            }
        }
    }

    fn shutdown_is_over(&self) -> bool {
        self.shutdown == Some(Shutdown::Immediate)
    }

    /// Something is left to do that no event will announce.
    pub fn has_more(&self) -> bool {
        self.touched || !self.resumable.is_empty() || !self.later.is_empty()
    }

    /// When something has to be done though nothing happens.
    pub fn next_due(&self) -> Option<Moment> {
        self.delayed.iter().map(|(turn, _)| *turn).chain(self.due).min()
    }
}

fn queue(resumable: &mut Vec<u32>, client: &mut Client, slot: u32) {
    if !std::mem::replace(&mut client.queued_resume, true) {
        resumable.push(slot);
    }
}

/// As CLIENT LIST shows them.
fn addresses(ends: &Ends) -> (Box<str>, Box<str>) {
    match ends {
        Ends::Tcp { remote, local } => (remote.to_string().into(), local.to_string().into()),
        Ends::Unix { .. } => ("".into(), "".into()),
    }
}
