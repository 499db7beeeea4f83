//! The data plane: a few threads, each with its own clients, servers and epoll.
//!
//! [`plane`] holds the logic, without sockets and clock; [`driver`] moves the bytes, in turns.

mod budgets;
mod connections;
mod doorway;
pub mod driver;
pub mod holders;
pub mod plane;
pub mod redis;
pub mod shapes;
mod sides;
pub mod slots;
pub mod snapshot;
pub mod suspects;
mod terms;
pub mod transport;
pub mod worth;

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use mio::{Poll, Token, Waker};

use crate::control::messages::{ToControl, ToWorker};
use crate::link::Door;
use plane::{Plane, Setting};
use redis::RedisPlane;

/// From workers to the control plane. A worker must never wait for it, so the channel has no
/// ceiling of its own; it is bounded by what may ask: one question for each client that logs in,
/// one for each connection being opened or cancelled, one message for each that a console client
/// sends.
pub type ControlSender = tokio::sync::mpsc::UnboundedSender<ToControl>;

/// A bound, non-blocking socket of a door. Each worker has a copy.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix { listener: UnixListener, port: u16 },
}

impl Listener {
    pub fn try_clone(&self) -> io::Result<Listener> {
        Ok(match self {
            Listener::Tcp(listener) => Listener::Tcp(listener.try_clone()?),
            Listener::Unix { listener, port } => {
                Listener::Unix { listener: listener.try_clone()?, port: *port }
            }
        })
    }
}

/// Where messages for a worker go. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WorkerHandle {
    sender: Sender<ToWorker>,
    waker: Arc<Waker>,
    /// The worker was woken and has not looked yet: it need not be woken again.
    woken: Arc<AtomicBool>,
}

impl WorkerHandle {
    /// Never waits. A message to a worker that has ended is dropped.
    pub fn send(&self, message: ToWorker) {
        if self.sender.send(message).is_ok() && !self.woken.swap(true, Ordering::AcqRel) {
            if let Err(error) = self.waker.wake() {
                tracing::error!(event = "wake_failed", "cannot wake a worker: {error}");
            }
        }
    }
}

/// The receiving end of a [`WorkerHandle`], for [`spawn`].
pub struct Inbox {
    poll: Poll,
    receiver: Receiver<ToWorker>,
    woken: Arc<AtomicBool>,
}

/// A worker's mailbox. All are made before the first worker starts, since each knows the others'.
pub fn mailbox() -> io::Result<(WorkerHandle, Inbox)> {
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), Token(0))?);
    let woken = Arc::new(AtomicBool::new(false));
    // Bounded by what is asked: every message but RELOAD's like answers a question of the worker's.
    let (sender, receiver) = std::sync::mpsc::channel();
    let handle = WorkerHandle { sender, waker, woken: woken.clone() };
    Ok((handle, Inbox { poll, receiver, woken }))
}

/// What a worker starts with.
pub struct Start {
    pub setting: Setting,
    pub listeners: Vec<(Door, Listener)>,
    /// What the Redis door needs, if there is one.
    pub redis: Option<redis::Setting>,
    pub control: ControlSender,
    /// All workers by number, this one included.
    pub peers: Vec<WorkerHandle>,
    /// When `setting.epoch` was.
    pub began: Instant,
}

/// Starts a worker's thread; it ends after [`ToWorker::Shutdown`].
pub fn spawn(inbox: Inbox, start: Start) -> io::Result<JoinHandle<io::Result<()>>> {
    let name = format!("worker-{}", start.setting.worker);
    std::thread::Builder::new().name(name).spawn(move || {
        let parts = driver::Parts {
            poll: inbox.poll,
            inbox: inbox.receiver,
            woken: inbox.woken,
            control: start.control,
            peers: start.peers,
            plane: Plane::new(start.setting),
            redis: start.redis.map(RedisPlane::new),
            began: start.began,
            listeners: start.listeners,
        };
        driver::Driver::new(parts)?.run()
    })
}

/// An idle server on its way to another worker.
#[derive(Debug)]
pub struct MovedServer {
    pub parts: plane::ServerParts,
    pub transport: transport::Transport,
}
