//! A connected socket on its way between the control plane and a worker, with its TLS state.

use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

/// A non-blocking connected socket.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket, its TLS session when it has one (handshake done), and plaintext already read from it.
#[derive(Debug)]
pub struct Link {
    pub socket: Socket,
    pub tls: Option<Box<rustls::Connection>>,
    pub early: Vec<u8>,
}

/// Where a client has come in, and so what it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    Postgres,
    /// PostgreSQL's clients behind proxies, which say where these come from.
    Proxied,
    Redis,
}

/// The two ends of a connection as people see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    Tcp { remote: SocketAddr, local: SocketAddr },
    Unix { peer_pid: Option<i32>, port: u16 },
}

/// The other end.
impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ends::Tcp { remote, .. } => remote.fmt(f),
            Ends::Unix { .. } => f.write_str("a Unix socket"),
        }
    }
}
