//! A door as one worker stands at it: a listening socket in its epoll.

use std::io;
use std::net::SocketAddr;

use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};

use super::transport::Transport;
use super::Listener;
use crate::link::{Door, Ends};

enum Listening {
    Tcp { listener: TcpListener, local: SocketAddr },
    Unix { listener: UnixListener, port: u16 },
}

pub struct Doorway {
    door: Door,
    listening: Listening,
}

/// Who came in.
pub struct Stranger {
    pub transport: Transport,
    pub ends: Ends,
}

/// Has epoll watch all of them; the first gets the token `first`.
///
/// # Errors
/// When a socket is not what it was bound as, or epoll does not take it.
pub fn open(
    listeners: Vec<(Door, Listener)>,
    registry: &Registry,
    first: usize,
) -> io::Result<Vec<Doorway>> {
    let watch = |(at, (door, listener)): (usize, (Door, Listener))| {
        let token = Token(first + at);
        let listening = match listener {
            Listener::Tcp(listener) => {
                // Accepted sockets inherit both.
                let socket = socket2::SockRef::from(&listener);
                socket.set_tcp_nodelay(true)?;
                socket.set_keepalive(true)?;
                let local = listener.local_addr()?;
                let mut listener = TcpListener::from_std(listener);
                registry.register(&mut listener, token, Interest::READABLE)?;
                Listening::Tcp { listener, local }
            }
            Listener::Unix { listener, port } => {
                let mut listener = UnixListener::from_std(listener);
                registry.register(&mut listener, token, Interest::READABLE)?;
                Listening::Unix { listener, port }
            }
        };
        Ok(Doorway { door, listening })
    };
    listeners.into_iter().enumerate().map(watch).collect()
}

impl Doorway {
    pub fn door(&self) -> Door {
        self.door
    }

    /// A Unix socket of PostgreSQL's clients, so the console's as well.
    pub fn is_local(&self) -> bool {
        self.door == Door::Postgres && matches!(self.listening, Listening::Unix { .. })
    }

    /// # Errors
    /// accept(2)'s.
    pub fn accept(&self) -> io::Result<Stranger> {
        match &self.listening {
            Listening::Tcp { listener, local } => {
                let (stream, remote) = listener.accept()?;
                let local = match local.ip().is_unspecified() {
                    true => stream.local_addr().unwrap_or(*local),
                    false => *local,
                };
                let ends = Ends::Tcp { remote, local };
                Ok(Stranger { transport: Transport::tcp(stream), ends })
            }
            Listening::Unix { listener, port } => {
                let (stream, _) = listener.accept()?;
                let ends = Ends::Unix { peer_pid: None, port: *port };
                Ok(Stranger { transport: Transport::unix(stream), ends })
            }
        }
    }

    /// epoll forgets a socket by itself only when no process has it any more.
    pub fn close(&mut self, registry: &Registry) {
        // It is closed in any case.
        let _ = match &mut self.listening {
            Listening::Tcp { listener, .. } => registry.deregister(listener),
            Listening::Unix { listener, .. } => registry.deregister(listener),
        };
    }
}
