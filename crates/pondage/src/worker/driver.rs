//! One worker's turns over epoll.
//!
//! A turn: wait for events; take what the control plane and other workers sent; read every
//! readable server, then every readable client, once each; let the plane go on with what that has
//! made possible; write every connection that has something, once, servers first so that they
//! work while the rest is written; close and hand over what is due. What arrived in a turn leaves
//! together, and one reading of the clock serves it all.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Events, Poll};
use rustix::process::geteuid;
use tokio::sync::oneshot;

use backend::moment::Moment;

use super::connections::Connections;
use super::doorway::{self, Doorway, Stranger};
use super::plane::{Effect, Plane};
use super::redis::{self, RedisPlane};
use super::sides::{Clients, Links, RedisClients, RedisLinks, Servers};
use super::transport::Transport;
use super::{ControlSender, Listener, MovedServer, WorkerHandle};
use crate::control::messages::{Identity, OpenError, Opened, Shutdown, ToControl, ToWorker};
use crate::link::{Door, Ends, Link};

/// Read at once from one connection, in bytes; so much of one session goes into a turn.
const READ_BYTES: usize = 64 << 10;

/// Events taken at once.
const EVENTS_MAX: usize = 1024;

/// Connections accepted in a turn, from one listener.
const ACCEPT_MAX: usize = 256;

/// How often timeouts are looked at.
const TICK: Duration = Duration::from_millis(100);

/// Tokens: 0 is the waker (see `mailbox`), then come the doors, then the connections by kind.
const LISTENERS: usize = 1;
const CLIENTS: usize = 1;
const SERVERS: usize = 2;
const REDIS_CLIENTS: usize = 3;
const REDIS_LINKS: usize = 4;
const LINKS: usize = 5;

pub struct Driver {
    poll: Poll,
    inbox: Receiver<ToWorker>,
    woken: Arc<AtomicBool>,
    control: ControlSender,
    peers: Vec<WorkerHandle>,
    plane: Plane,
    /// With a Redis door.
    redis: Option<RedisPlane>,
    began: Instant,
    /// None: closed.
    doors: Vec<Option<Doorway>>,
    /// Told when the Redis clients have gone, too.
    retiring: Option<oneshot::Sender<()>>,
    /// Clients that the control plane has for a TLS handshake.
    handshakes: usize,
    /// Doors at which more clients may stand.
    knocking: Vec<usize>,
    clients: Connections,
    servers: Connections,
    links: Connections,
    redis_clients: Connections,
    redis_links: Connections,
    buffer: Box<[u8]>,
    no_descriptors_until: Moment,
}

pub struct Parts {
    pub poll: Poll,
    pub inbox: Receiver<ToWorker>,
    pub woken: Arc<AtomicBool>,
    pub control: ControlSender,
    pub peers: Vec<WorkerHandle>,
    pub plane: Plane,
    pub redis: Option<RedisPlane>,
    pub began: Instant,
    pub listeners: Vec<(Door, Listener)>,
}

impl Driver {
    pub fn new(parts: Parts) -> io::Result<Driver> {
        let doors = doorway::open(parts.listeners, parts.poll.registry(), LISTENERS)?;
        Ok(Driver {
            poll: parts.poll,
            inbox: parts.inbox,
            woken: parts.woken,
            control: parts.control,
            peers: parts.peers,
            plane: parts.plane,
            redis: parts.redis,
            began: parts.began,
            doors: doors.into_iter().map(Some).collect(),
            retiring: None,
            handshakes: 0,
            knocking: Vec::new(),
            clients: Connections::new(CLIENTS),
            servers: Connections::new(SERVERS),
            links: Connections::new(LINKS),
            redis_clients: Connections::new(REDIS_CLIENTS),
            redis_links: Connections::new(REDIS_LINKS),
            buffer: vec![0; READ_BYTES].into(),
            no_descriptors_until: Moment(0),
        })
    }

    /// Turns until the worker is shut down.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            let busy = self.plane.has_more()
                || self.redis.as_ref().is_some_and(RedisPlane::has_more)
                || self.clients.are_ready()
                || self.servers.are_ready()
                || self.links.are_ready()
                || self.redis_clients.are_ready()
                || self.redis_links.are_ready()
                || !self.knocking.is_empty();
            let timeout = if busy { Duration::ZERO } else { self.patience() };
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            let now = Moment(self.began.elapsed().as_micros() as u64);
            self.plane.begin_turn(now);
            if let Some(redis) = &mut self.redis {
                redis.begin_turn(now);
            }
            for event in &events {
                self.note(event);
            }
            self.take_messages();
            self.accept(now);
            self.links.read(&mut Links(&mut self.plane), &mut self.buffer);
            self.servers.read(&mut Servers(&mut self.plane), &mut self.buffer);
            self.clients.read(&mut Clients(&mut self.plane), &mut self.buffer);
            self.plane.end_turn();
            self.redis_turn();
            self.write();
            self.carry_out(now);
            self.carry_out_redis(now);
            self.clients.linger(&mut Clients(&mut self.plane), now);
            self.clients.unhold(&Clients(&mut self.plane));
            self.servers.unhold(&Servers(&mut self.plane));
            self.links.unhold(&Links(&mut self.plane));
            if let Some(redis) = &mut self.redis {
                self.redis_clients.linger(&mut RedisClients(redis), now);
                self.redis_clients.unhold(&RedisClients(redis));
                self.redis_links.unhold(&RedisLinks(redis));
            }
            if self.retiring.is_some() && self.redis_is_drained() {
                // Who asked may have given up.
                self.retiring.take().map(|reply| reply.send(()));
            }
            if let Some(how) = self.plane.shutdown {
                let waits = matches!(how, Shutdown::WaitForClients | Shutdown::WaitForServers);
                self.close_doors(waits);
                let arriving = self.handshakes > 0 && how != Shutdown::Immediate;
                if self.plane.is_drained() && self.redis_is_drained() && !arriving {
                    self.write();
                    self.carry_out(now);
                    self.carry_out_redis(now);
                    if self.clients.are_quiet() && self.redis_clients.are_quiet() {
                        self.close_servers();
                        return Ok(());
                    }
                }
            }
        }
    }

    fn redis_is_drained(&mut self) -> bool {
        self.redis.as_mut().is_none_or(RedisPlane::is_drained)
    }

    /// Other processes may have the same sockets: epoll is told, or it would go on waking us.
    /// Unix sockets may stay, for the console.
    fn close_doors(&mut self, but_local: bool) {
        for place in &mut self.doors {
            let closes = |doorway: &mut Doorway| !but_local || !doorway.is_local();
            if let Some(mut doorway) = place.take_if(closes) {
                doorway.close(self.poll.registry());
            }
        }
        let doors = &self.doors;
        self.knocking.retain(|door| doors.get(*door).is_some_and(Option::is_some));
    }

    /// Listens at these doors and no others.
    fn open_doors(&mut self, doors: Vec<(Door, Listener)>, reply: oneshot::Sender<()>) {
        self.close_doors(false);
        if let Some(redis) = &mut self.redis {
            redis.retire(doors.is_empty());
        }
        if self.plane.shutdown.is_none() {
            match doorway::open(doors, self.poll.registry(), LISTENERS) {
                Ok(doors) => self.doors = doors.into_iter().map(Some).collect(),
                Err(error) => tracing::error!(event = "doors_failed", %error, "doors stay closed"),
            }
        }
        self.retiring = Some(reply);
    }

    /// How long nothing has to be done unless something happens.
    fn patience(&self) -> Duration {
        let redis = self.redis.as_ref().and_then(RedisPlane::next_due);
        match self.plane.next_due().into_iter().chain(redis).min() {
            Some(due) => {
                let now = Moment(self.began.elapsed().as_micros() as u64);
                due.since(now).min(TICK)
            }
            None => TICK,
        }
    }

    /// Remembers what epoll has told.
    fn note(&mut self, event: &Event) {
        let token = event.token();
        match Connections::kind(token) {
            CLIENTS => self.clients.note(event, &mut Clients(&mut self.plane)),
            SERVERS => self.servers.note(event, &mut Servers(&mut self.plane)),
            LINKS => self.links.note(event, &mut Links(&mut self.plane)),
            REDIS_LINKS => {
                if let Some(redis) = &mut self.redis {
                    self.redis_links.note(event, &mut RedisLinks(redis));
                }
            }
            REDIS_CLIENTS => {
                if let Some(redis) = &mut self.redis {
                    self.redis_clients.note(event, &mut RedisClients(redis));
                }
            }
            _ if token.0 >= LISTENERS => self.knocking.push(token.0 - LISTENERS),
            _ => {}
        }
    }

    fn take_messages(&mut self) {
        if !self.woken.swap(false, Ordering::AcqRel) {
            return;
        }
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                ToWorker::Client { door, link, ends, tls, identity, began } => {
                    self.handshakes = self.handshakes.saturating_sub(1);
                    match door {
                        Door::Postgres | Door::Proxied => {
                            self.client_arrived(link, ends, tls, identity, began);
                        }
                        Door::Redis => self.redis_client_arrived(link, ends, tls, identity, began),
                    }
                }
                ToWorker::HandshakeFailed => self.handshakes = self.handshakes.saturating_sub(1),
                ToWorker::Doors { doors, reply } => self.open_doors(doors, reply),
                ToWorker::ServerOpened { ticket, result: Ok(opened) } => {
                    if let Some(slot) = self.plane.server_opened(ticket, &opened) {
                        let early = opened.link.early.clone();
                        self.server_arrived(slot, Transport::new(opened.link));
                        self.plane.server_bytes(slot, &early);
                    }
                }
                ToWorker::Server(moved) => {
                    if let Some(slot) = self.plane.server_arrived(moved.parts) {
                        self.server_arrived(slot, moved.transport);
                    }
                }
                ToWorker::Reload { config, tls } => {
                    let (also, tls_also) = (config.clone(), tls.clone());
                    self.tell_redis(ToWorker::Reload { config: also, tls: tls_also });
                    self.plane.control(ToWorker::Reload { config, tls });
                }
                ToWorker::Shutdown(shutdown) => {
                    self.tell_redis(ToWorker::Shutdown(shutdown));
                    self.plane.control(ToWorker::Shutdown(shutdown));
                }
                ToWorker::LinkOpened { link, result } => self.link_opened(link as u32, result),
                ToWorker::RedisOpened { link, result } => self.redis_opened(link, result),
                message @ (ToWorker::RedisEvents | ToWorker::LoggedIn { .. }) => {
                    self.tell_redis(message);
                }
                message => self.plane.control(message),
            }
        }
    }

    fn client_arrived(
        &mut self,
        link: Link,
        ends: Ends,
        tls: String,
        identity: Identity,
        began: Moment,
    ) {
        let early = link.early.clone();
        let slot = self.plane.client_connected(ends, Some(tls.into()), began);
        self.plane.client_certified(slot, identity);
        self.keep_client(slot, Transport::new(link));
        if !early.is_empty() {
            self.plane.client_bytes(slot, &early);
        }
    }

    fn tell_redis(&mut self, message: ToWorker) {
        if let Some(redis) = &mut self.redis {
            redis.told(message);
        }
    }

    fn redis_client_arrived(
        &mut self,
        link: Link,
        ends: Ends,
        tls: String,
        identity: Identity,
        began: Moment,
    ) {
        let Some(redis) = &mut self.redis else { return };
        let early = link.early.clone();
        let slot = redis.client_connected(ends, (Some(tls.into()), identity.subject), began);
        self.keep_redis_client(slot, Transport::new(link));
        if let Some(redis) = self.redis.as_mut().filter(|_| !early.is_empty()) {
            redis.client_bytes(slot, &early);
        }
    }

    fn redis_opened(&mut self, link: u64, result: Result<Box<Opened>, OpenError>) {
        let Some(redis) = &mut self.redis else { return };
        let number = link as usize;
        let opened = match result {
            Ok(opened) => opened.link,
            Err(error) => return redis.link_failed(number, &error),
        };
        if !redis.link_opened(number) {
            return;
        }
        let early = opened.early.clone();
        let mut transport = Transport::new(opened);
        // What came between the log-in and now has made its edge before epoll listened.
        transport.readable = true;
        let kept = self.redis_links.keep(number as u32, transport, self.poll.registry());
        if let Err(error) = kept {
            redis.link_closed(number, &error.to_string());
        } else if !early.is_empty() {
            redis.link_bytes(number, &early);
        }
    }

    /// A connection that asks how far PostgreSQL is.
    fn link_opened(&mut self, slot: u32, result: Result<Box<Opened>, OpenError>) {
        let opened = match result {
            Ok(opened) => opened.link,
            Err(error) => return self.plane.link_failed(slot, &error),
        };
        if !self.plane.link_opened(slot) {
            return;
        }
        let early = opened.early.clone();
        let mut transport = Transport::new(opened);
        // What came between the log-in and now has made its edge before epoll listened.
        transport.readable = true;
        if let Err(error) = self.links.keep(slot, transport, self.poll.registry()) {
            self.plane.link_closed(slot, &error.to_string());
        } else if !early.is_empty() {
            self.plane.link_bytes(slot, &early);
        }
    }

    fn keep_redis_client(&mut self, slot: u32, transport: Transport) {
        let kept = self.redis_clients.keep(slot, transport, self.poll.registry());
        if let (Err(_), Some(redis)) = (kept, &mut self.redis) {
            redis.client_broken(slot);
        }
    }

    /// Reads Redis clients, lets their engine have its turn.
    fn redis_turn(&mut self) {
        let Some(redis) = &mut self.redis else { return };
        self.redis_links.read(&mut RedisLinks(redis), &mut self.buffer);
        self.redis_clients.read(&mut RedisClients(redis), &mut self.buffer);
        redis.end_turn();
    }

    fn keep_client(&mut self, slot: u32, transport: Transport) {
        if self.clients.keep(slot, transport, self.poll.registry()).is_err() {
            self.plane.client_closed(slot);
        }
    }

    fn server_arrived(&mut self, slot: u32, mut transport: Transport) {
        // What came between the log-in and now has made its edge before epoll listened.
        transport.readable = true;
        if let Err(error) = self.servers.keep(slot, transport, self.poll.registry()) {
            self.plane.server_closed(slot, &error.to_string());
        }
    }

    fn accept(&mut self, now: Moment) {
        if now < self.no_descriptors_until {
            return;
        }
        let mut knocking = std::mem::take(&mut self.knocking);
        knocking.retain(|door| self.accept_at(*door, now));
        self.knocking.append(&mut knocking);
    }

    /// Accepts who stands at a door; true when more may stand there.
    fn accept_at(&mut self, door: usize, now: Moment) -> bool {
        for _ in 0..ACCEPT_MAX {
            let Some(Some(doorway)) = self.doors.get(door) else { return false };
            let accepted = doorway.accept();
            match accepted {
                Ok(Stranger { mut transport, ends }) => {
                    // A client speaks first, and has mostly done so by now: trying saves a turn.
                    transport.readable = true;
                    self.accepted(door, transport, ends, now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if is_transient(&error) => {}
                Err(error) => {
                    // EMFILE, ENFILE, ENOMEM: who stands at the door waits until there is room.
                    tracing::error!(event = "accept_failed", "cannot accept: {error}");
                    self.no_descriptors_until = now.after(Duration::from_millis(200));
                    return true;
                }
            }
        }
        true
    }

    fn write(&mut self) {
        let registry = self.poll.registry();
        self.servers.write(&mut Servers(&mut self.plane), registry);
        self.links.write(&mut Links(&mut self.plane), registry);
        self.clients.write(&mut Clients(&mut self.plane), registry);
        if let Some(redis) = &mut self.redis {
            self.redis_links.write(&mut RedisLinks(redis), registry);
            self.redis_clients.write(&mut RedisClients(redis), registry);
        }
    }

    fn accepted(&mut self, door: usize, transport: Transport, ends: Ends, now: Moment) {
        let doorway = self.doors.get(door).and_then(Option::as_ref);
        match (doorway.map(Doorway::door), &mut self.redis) {
            (Some(Door::Redis), Some(redis)) => {
                let slot = redis.client_connected(ends, (None, None), now);
                self.keep_redis_client(slot, transport);
            }
            (Some(Door::Redis), None) => {}
            (door, _) => {
                let slot = self.plane.client_connected(ends, None, now);
                if door == Some(Door::Proxied) {
                    self.plane.client_is_proxied(slot);
                }
                self.keep_client(slot, transport);
            }
        }
    }

    fn carry_out(&mut self, now: Moment) {
        for effect in std::mem::take(&mut self.plane.effects) {
            match effect {
                Effect::CloseClient(slot) => self.close_client(slot, now),
                Effect::CloseServer(slot) => {
                    if let Some(mut transport) = self.servers.take(slot) {
                        transport.farewell();
                    }
                }
                Effect::CloseLink(slot) => {
                    if let Some(mut transport) = self.links.take(slot) {
                        transport.farewell();
                    }
                }
                Effect::AskPeer(slot) => self.ask_peer(slot),
                Effect::AskOwner(slot) => {
                    let uid = self.clients.get(slot).and_then(Transport::peer_uid);
                    self.plane.owner_asked(slot, uid == Some(geteuid().as_raw()));
                }
                Effect::StartTls { slot, early } => self.start_tls(slot, early, now),
                Effect::Control(message) => drop(self.control.send(message)),
                Effect::Peer(worker, message) => self.tell_peer(worker, message),
                Effect::GiveServer { slot, worker, parts } => {
                    if let Some(transport) = self.servers.take(slot) {
                        self.give_server(transport, worker, *parts);
                    }
                }
            }
        }
    }

    fn tell_peer(&self, worker: u8, message: ToWorker) {
        if let Some(peer) = self.peers.get(usize::from(worker)) {
            peer.send(message);
        }
    }

    fn carry_out_redis(&mut self, now: Moment) {
        let Some(redis) = &mut self.redis else { return };
        for effect in std::mem::take(&mut redis.effects) {
            let Some(redis) = &mut self.redis else { return };
            match effect {
                redis::Effect::Close(slot) => {
                    self.redis_clients.close(slot, &mut RedisClients(redis), now);
                }
                redis::Effect::StartTls { slot, early } => {
                    let Some(transport) = self.redis_clients.take(slot) else { continue };
                    let Some(client) = redis.clients.get(slot) else { continue };
                    let (ends, began) = (client.ends, client.since());
                    redis.client_forgotten(slot);
                    self.hand_to_tls(Door::Redis, transport, early, ends, began);
                }
                redis::Effect::CloseLink(link) => {
                    if let Some(mut transport) = self.redis_links.take(link as u32) {
                        transport.farewell();
                    }
                }
                redis::Effect::Control(message) => drop(self.control.send(message)),
                redis::Effect::Peer(worker, message) => self.tell_peer(worker, message),
            }
        }
    }

    /// Tells PostgreSQL that the connection ends, which costs it no line in its log.
    fn close_servers(&mut self) {
        let mut terminate = Vec::new();
        wire::pg::frontend::put_terminate(&mut terminate);
        let links = self.redis_links.take_all().into_iter().chain(self.links.take_all());
        for (token, mut transport) in self.servers.take_all().into_iter().chain(links) {
            // It may be gone already, and it is closed all the same.
            let _ = transport.write(&terminate, self.poll.registry(), token);
            transport.farewell();
        }
    }

    fn give_server(&mut self, transport: Transport, worker: u8, parts: super::plane::ServerParts) {
        let Ok(link) = transport.into_link(self.poll.registry()) else { return };
        if let Some(peer) = self.peers.get(usize::from(worker)) {
            let transport = Transport::new(link);
            peer.send(ToWorker::Server(Box::new(MovedServer { parts, transport })));
        }
    }

    fn close_client(&mut self, slot: u32, now: Moment) {
        self.clients.close(slot, &mut Clients(&mut self.plane), now);
    }

    /// The kernel knows its number, the control plane finds the name.
    fn ask_peer(&mut self, slot: u32) {
        let Some(client) = self.plane.reference_of(slot) else { return };
        match self.clients.get(slot).and_then(Transport::peer_uid) {
            Some(uid) => drop(self.control.send(ToControl::NamePeer { client, uid })),
            None => {
                let name = Err("the kernel does not say who it is".to_owned());
                self.plane.control(ToWorker::PeerNamed { client, name });
            }
        }
    }

    /// The `S` is written; the handshake is the control plane's.
    fn start_tls(&mut self, slot: u32, early: Vec<u8>, now: Moment) {
        let unwritten = self.plane.clients.get(slot).is_none_or(|client| !client.out.is_empty());
        let transport = self.clients.take(slot);
        let (Some(transport), false) = (transport, unwritten) else {
            self.plane.client_closed(slot);
            return;
        };
        let (ends, began) = match self.plane.clients.get(slot) {
            Some(client) => (client.ends, client.connected),
            None => return,
        };
        self.plane.client_closed(slot);
        self.close_client(slot, now);
        self.hand_to_tls(Door::Postgres, transport, early, ends, began);
    }

    fn hand_to_tls(
        &mut self,
        door: Door,
        transport: Transport,
        early: Vec<u8>,
        ends: Ends,
        began: Moment,
    ) {
        if let Ok(mut link) = transport.into_link(self.poll.registry()) {
            link.early = early;
            let worker = self.plane.worker;
            let asked = ToControl::AcceptTls { door, worker, link, ends, began };
            self.handshakes += usize::from(self.control.send(asked).is_ok());
        }
    }
}

/// The client was gone before it was accepted: accept(2), "Error handling".
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
            | io::ErrorKind::BrokenPipe
    )
}
