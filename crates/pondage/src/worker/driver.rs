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
use mio::net::{TcpListener, UnixListener};
use mio::{Events, Interest, Poll, Token};

use backend::moment::Moment;

use super::plane::{Effect, Plane};
use super::transport::{Got, Transport};
use super::{ControlSender, Listener, MovedServer, WorkerHandle};
use crate::control::messages::{ToControl, ToWorker};
use crate::link::{Ends, Link};

/// Read at once from one connection, in bytes; so much of one session goes into a turn.
const READ_BYTES: usize = 64 << 10;

/// Events taken at once.
const EVENTS_MAX: usize = 1024;

/// Connections accepted in a turn, from one listener.
const ACCEPT_MAX: usize = 256;

/// How often timeouts are looked at.
const TICK: Duration = Duration::from_millis(100);

/// A client that does not read its last message may stay so long.
const LINGER: Duration = Duration::from_secs(5);

/// Tokens: 0 is the waker (see `mailbox`), then come the doors, then the connections by slot.
const LISTENERS: usize = 1;
const CLIENTS: usize = 1 << 32;
const SERVERS: usize = 2 << 32;
const SLOT: usize = 0xffff_ffff;

enum Door {
    Tcp { listener: TcpListener, local: std::net::SocketAddr },
    Unix { listener: UnixListener, port: u16 },
}

pub struct Driver {
    poll: Poll,
    inbox: Receiver<ToWorker>,
    woken: Arc<AtomicBool>,
    control: ControlSender,
    peers: Vec<WorkerHandle>,
    plane: Plane,
    began: Instant,
    doors: Vec<Door>,
    /// Doors at which more clients may stand.
    knocking: Vec<usize>,
    clients: Vec<Option<Transport>>,
    servers: Vec<Option<Transport>>,
    ready_clients: Vec<u32>,
    ready_servers: Vec<u32>,
    /// Readable, but the plane does not want to read them now.
    held_clients: Vec<u32>,
    held_servers: Vec<u32>,
    /// To be closed when their last bytes are written.
    lingering: Vec<(u32, Moment)>,
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
    pub began: Instant,
    pub listeners: Vec<Listener>,
}

impl Driver {
    pub fn new(parts: Parts) -> io::Result<Driver> {
        let mut doors = Vec::new();
        for listener in parts.listeners {
            let token = Token(LISTENERS + doors.len());
            doors.push(match listener {
                Listener::Tcp(listener) => {
                    // Accepted sockets inherit both.
                    let socket = socket2::SockRef::from(&listener);
                    socket.set_tcp_nodelay(true)?;
                    socket.set_keepalive(true)?;
                    let local = listener.local_addr()?;
                    let mut listener = TcpListener::from_std(listener);
                    parts.poll.registry().register(&mut listener, token, Interest::READABLE)?;
                    Door::Tcp { listener, local }
                }
                Listener::Unix { listener, port } => {
                    let mut listener = UnixListener::from_std(listener);
                    parts.poll.registry().register(&mut listener, token, Interest::READABLE)?;
                    Door::Unix { listener, port }
                }
            });
        }
        Ok(Driver {
            poll: parts.poll,
            inbox: parts.inbox,
            woken: parts.woken,
            control: parts.control,
            peers: parts.peers,
            plane: parts.plane,
            began: parts.began,
            doors,
            knocking: Vec::new(),
            clients: Vec::new(),
            servers: Vec::new(),
            ready_clients: Vec::new(),
            ready_servers: Vec::new(),
            held_clients: Vec::new(),
            held_servers: Vec::new(),
            lingering: Vec::new(),
            buffer: vec![0; READ_BYTES].into(),
            no_descriptors_until: Moment(0),
        })
    }

    /// Turns until the worker is shut down.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            let busy = self.plane.has_more()
                || !self.ready_clients.is_empty()
                || !self.ready_servers.is_empty()
                || !self.knocking.is_empty();
            let timeout = if busy { Duration::ZERO } else { self.patience() };
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            let now = Moment(self.began.elapsed().as_micros() as u64);
            self.plane.begin_turn(now);
            for event in &events {
                self.note(event);
            }
            self.take_messages();
            self.accept(now);
            self.read_servers();
            self.read_clients();
            self.plane.end_turn();
            self.write();
            self.carry_out(now);
            self.linger(now);
            self.unhold();
            if self.plane.shutdown.is_some() {
                self.doors.clear();
                if self.plane.is_drained() {
                    self.write();
                    self.carry_out(now);
                    if self.lingering.is_empty() {
                        self.close_servers();
                        return Ok(());
                    }
                }
            }
        }
    }

    /// How long nothing has to be done unless something happens.
    fn patience(&self) -> Duration {
        match self.plane.next_due() {
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
        let slot = (token.0 & SLOT) as u32;
        match token.0 {
            0 => {}
            token if token < CLIENTS => self.knocking.push(token - LISTENERS),
            token if token < SERVERS => {
                let Some(Some(transport)) = self.clients.get_mut(slot as usize) else { return };
                if event.is_writable() {
                    self.plane.written_clients.push(slot);
                }
                readable(event, transport, slot, &mut self.ready_clients);
            }
            _ => {
                let Some(Some(transport)) = self.servers.get_mut(slot as usize) else { return };
                if event.is_writable() {
                    self.plane.written_servers.push(slot);
                }
                readable(event, transport, slot, &mut self.ready_servers);
            }
        }
    }

    fn take_messages(&mut self) {
        if !self.woken.swap(false, Ordering::AcqRel) {
            return;
        }
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                ToWorker::Client { link, ends, tls, began } => {
                    self.client_arrived(link, ends, tls, began);
                }
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
                message => self.plane.control(message),
            }
        }
    }

    fn client_arrived(&mut self, link: Link, ends: Ends, tls: String, began: Moment) {
        let early = link.early.clone();
        let slot = self.plane.client_connected(ends, Some(tls.into()), began);
        self.keep_client(slot, Transport::new(link));
        if !early.is_empty() {
            self.plane.client_bytes(slot, &early);
        }
    }

    fn keep_client(&mut self, slot: u32, mut transport: Transport) {
        let token = Token(CLIENTS | slot as usize);
        let registered = transport.register(self.poll.registry(), token);
        if transport.readable {
            transport.queued = true;
            self.ready_clients.push(slot);
        }
        place(&mut self.clients, slot, transport);
        if registered.is_err() {
            self.plane.client_closed(slot);
        }
    }

    fn server_arrived(&mut self, slot: u32, mut transport: Transport) {
        let token = Token(SERVERS | slot as usize);
        transport.queued = true;
        let registered = transport.register(self.poll.registry(), token);
        // What came between the log-in and now has made its edge before epoll listened.
        transport.readable = true;
        self.ready_servers.push(slot);
        place(&mut self.servers, slot, transport);
        if let Err(error) = registered {
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
            let accepted = match self.doors.get(door) {
                None => return false,
                Some(Door::Tcp { listener, local }) => listener.accept().map(|(stream, remote)| {
                    let local = if local.ip().is_unspecified() {
                        stream.local_addr().unwrap_or(*local)
                    } else {
                        *local
                    };
                    (Transport::tcp(stream), Ends::Tcp { remote, local })
                }),
                Some(Door::Unix { listener, port }) => listener.accept().map(|(stream, _)| {
                    (Transport::unix(stream), Ends::Unix { peer_pid: None, port: *port })
                }),
            };
            match accepted {
                Ok((mut transport, ends)) => {
                    // A client speaks first, and has mostly done so by now: trying saves a turn.
                    transport.readable = true;
                    let slot = self.plane.client_connected(ends, None, now);
                    self.keep_client(slot, transport);
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

    fn read_servers(&mut self) {
        for slot in std::mem::take(&mut self.ready_servers) {
            let Some(Some(transport)) = self.servers.get_mut(slot as usize) else { continue };
            transport.queued = false;
            if !self.plane.server_may_read(slot) {
                self.held_servers.push(slot);
                continue;
            }
            match transport.read(&mut self.buffer) {
                Ok(Got::Bytes { count, more }) => {
                    self.plane.server_bytes(slot, &self.buffer[..count]);
                    read_again(&mut self.servers, slot, more, &mut self.ready_servers);
                }
                Ok(Got::Nothing) => transport.readable = false,
                Ok(Got::End) => self.plane.server_closed(slot, "the server closed the connection"),
                Err(error) => self.plane.server_closed(slot, &error.to_string()),
            }
        }
    }

    fn read_clients(&mut self) {
        for slot in std::mem::take(&mut self.ready_clients) {
            let Some(Some(transport)) = self.clients.get_mut(slot as usize) else { continue };
            transport.queued = false;
            if !self.plane.client_may_read(slot) {
                if transport.ended {
                    // It has gone while it was made to wait.
                    self.plane.client_closed(slot);
                } else {
                    self.held_clients.push(slot);
                }
                continue;
            }
            match transport.read(&mut self.buffer) {
                Ok(Got::Bytes { count, more }) => {
                    self.plane.client_bytes(slot, &self.buffer[..count]);
                    read_again(&mut self.clients, slot, more, &mut self.ready_clients);
                }
                Ok(Got::Nothing) => transport.readable = false,
                Ok(Got::End) | Err(_) => self.plane.client_closed(slot),
            }
        }
    }

    /// Those that could not be read and now can.
    fn unhold(&mut self) {
        let plane = &self.plane;
        retain_held(&mut self.held_clients, &mut self.clients, &mut self.ready_clients, |slot| {
            plane.client_may_read(slot)
        });
        retain_held(&mut self.held_servers, &mut self.servers, &mut self.ready_servers, |slot| {
            plane.server_may_read(slot)
        });
    }

    fn write(&mut self) {
        let registry = self.poll.registry();
        for slot in std::mem::take(&mut self.plane.written_servers) {
            let Some(Some(transport)) = self.servers.get_mut(slot as usize) else { continue };
            let Some(conn) = self.plane.servers.get_mut(slot) else { continue };
            let token = Token(SERVERS | slot as usize);
            match transport.write(&conn.server.out, registry, token) {
                Ok(done) if done == conn.server.out.len() && !transport.is_unfinished() => {
                    self.plane.server_flushed(slot);
                }
                // TLS may have taken all and not yet sent it: it must not be given again.
                Ok(done) => drop(conn.server.out.drain(..done)),
                // What the server said before it closed is read first; then its end is seen.
                Err(_) => {
                    conn.server.out.clear();
                    transport.readable = true;
                    if !std::mem::replace(&mut transport.queued, true) {
                        self.ready_servers.push(slot);
                    }
                }
            }
        }
        for slot in std::mem::take(&mut self.plane.written_clients) {
            let Some(Some(transport)) = self.clients.get_mut(slot as usize) else { continue };
            let Some(client) = self.plane.clients.get_mut(slot) else { continue };
            let token = Token(CLIENTS | slot as usize);
            match transport.write(&client.out, registry, token) {
                Ok(done) if done == client.out.len() && !transport.is_unfinished() => {
                    self.plane.client_flushed(slot);
                }
                Ok(done) => drop(client.out.drain(..done)),
                Err(_) => self.plane.client_closed(slot),
            }
        }
    }

    fn carry_out(&mut self, now: Moment) {
        for effect in std::mem::take(&mut self.plane.effects) {
            match effect {
                Effect::CloseClient(slot) => self.close_client(slot, now),
                Effect::CloseServer(slot) => {
                    if let Some(mut transport) =
                        self.servers.get_mut(slot as usize).and_then(Option::take)
                    {
                        transport.farewell();
                    }
                }
                Effect::StartTls { slot, early } => self.start_tls(slot, early, now),
                Effect::Control(message) => drop(self.control.send(message)),
                Effect::Peer(worker, message) => {
                    if let Some(peer) = self.peers.get(usize::from(worker)) {
                        peer.send(message);
                    }
                }
                Effect::GiveServer { slot, worker, parts } => {
                    let Some(transport) =
                        self.servers.get_mut(slot as usize).and_then(Option::take)
                    else {
                        continue;
                    };
                    self.give_server(transport, worker, *parts);
                }
            }
        }
    }

    /// Tells PostgreSQL that the connection ends, which costs it no line in its log.
    fn close_server(&self, mut transport: Transport, slot: u32) {
        let mut terminate = Vec::new();
        wire::pg::frontend::put_terminate(&mut terminate);
        let token = Token(SERVERS | slot as usize);
        // It may be gone already, and it is closed all the same.
        let _ = transport.write(&terminate, self.poll.registry(), token);
        transport.farewell();
    }

    fn close_servers(&mut self) {
        for (slot, transport) in std::mem::take(&mut self.servers).into_iter().enumerate() {
            if let Some(transport) = transport {
                self.close_server(transport, slot as u32);
            }
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
        if self.is_unwritten(slot) {
            if !self.lingering.iter().any(|(lingering, _)| *lingering == slot) {
                self.lingering.push((slot, now.after(LINGER)));
            }
            return;
        }
        if let Some(mut transport) = self.clients.get_mut(slot as usize).and_then(Option::take) {
            transport.farewell();
        }
        self.plane.client_forgotten(slot);
    }

    /// The client has not been sent everything: in its buffer, or encrypted and kept by TLS.
    fn is_unwritten(&self, slot: u32) -> bool {
        let transport = self.clients.get(slot as usize).and_then(Option::as_ref);
        transport.is_some_and(|transport| {
            let out = self.plane.clients.get(slot).is_some_and(|client| !client.out.is_empty());
            out || transport.is_unfinished()
        })
    }

    fn linger(&mut self, now: Moment) {
        if self.lingering.is_empty() {
            return;
        }
        for (slot, until) in std::mem::take(&mut self.lingering) {
            if now >= until {
                drop(self.clients.get_mut(slot as usize).and_then(Option::take));
            }
            if self.is_unwritten(slot) {
                self.lingering.push((slot, until));
            } else {
                self.close_client(slot, now);
            }
        }
    }

    /// The `S` is written; the handshake is the control plane's.
    fn start_tls(&mut self, slot: u32, early: Vec<u8>, now: Moment) {
        let unwritten = self.plane.clients.get(slot).is_none_or(|client| !client.out.is_empty());
        let transport = self.clients.get_mut(slot as usize).and_then(Option::take);
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
        if let Ok(mut link) = transport.into_link(self.poll.registry()) {
            link.early = early;
            let worker = self.plane.worker;
            let _ = self.control.send(ToControl::AcceptTls { worker, link, ends, began });
        }
    }
}

fn readable(event: &Event, transport: &mut Transport, slot: u32, ready: &mut Vec<u32>) {
    transport.ended |= event.is_read_closed() || event.is_error();
    if event.is_readable() || transport.ended {
        transport.readable = true;
        if !std::mem::replace(&mut transport.queued, true) {
            ready.push(slot);
        }
    }
}

/// After a read: the rest, or the end that epoll has told of, is read in the next turn.
fn read_again(transports: &mut [Option<Transport>], slot: u32, more: bool, ready: &mut Vec<u32>) {
    let Some(Some(transport)) = transports.get_mut(slot as usize) else { return };
    transport.readable = more || transport.ended;
    if transport.readable && !std::mem::replace(&mut transport.queued, true) {
        ready.push(slot);
    }
}

fn retain_held(
    held: &mut Vec<u32>,
    transports: &mut [Option<Transport>],
    ready: &mut Vec<u32>,
    may_read: impl Fn(u32) -> bool,
) {
    held.retain(|slot| {
        let Some(Some(transport)) = transports.get_mut(*slot as usize) else { return false };
        if transport.ended || may_read(*slot) {
            if !std::mem::replace(&mut transport.queued, true) {
                ready.push(*slot);
            }
            return false;
        }
        true
    });
}

fn place(transports: &mut Vec<Option<Transport>>, slot: u32, transport: Transport) {
    let at = slot as usize;
    if transports.len() <= at {
        transports.resize_with(at + 1, || None);
    }
    transports[at] = Some(transport);
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
