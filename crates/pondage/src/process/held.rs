//! Listening sockets as they go from process to process: from systemd to the first, and from each
//! to the one that takes over.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::{fcntl_setfd, FdFlags};
use serde_json::{json, Value};
use socket2::{Socket, Type};

use super::doors::DoorError;
use crate::worker::Listener;

/// What systemd passes starts here.
///
/// Source: sd_listen_fds(3), SD_LISTEN_FDS_START.
const FIRST: i32 = 3;

/// Sockets from systemd; it passes what its units list.
const PASSED_MAX: i32 = 128;

/// What a socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    Postgres,
    Proxied,
    Redis,
    Http,
    Control,
    /// Not a door: the way to a process that was taken over from and has clients still.
    Before,
}

impl Usage {
    const ALL: [(Usage, &'static str); 6] = [
        (Usage::Postgres, "postgres"),
        (Usage::Proxied, "proxied"),
        (Usage::Redis, "redis"),
        (Usage::Http, "http"),
        (Usage::Control, "control"),
        (Usage::Before, "before"),
    ];

    fn word(self) -> &'static str {
        Usage::ALL.iter().find(|(usage, _)| *usage == self).map_or("", |(_, word)| word)
    }

    fn of(word: &str) -> Option<Usage> {
        Usage::ALL.iter().find(|(_, name)| *name == word).map(|(usage, _)| *usage)
    }
}

#[derive(Debug)]
pub struct Held {
    pub usage: Usage,
    /// The address as it is configured, or the path of a Unix socket.
    pub name: String,
    /// The service manager has made it.
    pub activated: bool,
    pub unix_port: Option<u16>,
    pub fd: OwnedFd,
}

impl Held {
    /// # Errors
    /// No file descriptor is left.
    pub fn copy(&self) -> io::Result<Held> {
        let Held { usage, activated, unix_port, .. } = *self;
        let fd = self.fd.try_clone()?;
        Ok(Held { usage, name: self.name.clone(), activated, unix_port, fd })
    }

    /// A copy for who accepts.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn listener(&self) -> io::Result<Listener> {
        let fd = self.fd.try_clone()?;
        socket2::SockRef::from(&fd).set_nonblocking(true)?;
        Ok(match self.unix_port {
            Some(port) => Listener::Unix { listener: fd.into(), port },
            None => Listener::Tcp(fd.into()),
        })
    }

    /// All but the socket, for another process.
    pub fn describe(&self) -> Value {
        json!({
            "usage": self.usage.word(),
            "name": self.name,
            "activated": self.activated,
            "unix_port": self.unix_port,
        })
    }

    /// From what [`Held::describe`] gave; a usage that is not known here is `None`.
    pub fn from_description(described: &Value, fd: OwnedFd) -> Option<Held> {
        Some(Held {
            usage: Usage::of(described["usage"].as_str()?)?,
            name: described["name"].as_str()?.to_owned(),
            activated: described["activated"].as_bool()?,
            unix_port: described["unix_port"].as_u64().and_then(|port| port.try_into().ok()),
            fd,
        })
    }
}

/// The one of this use and name.
pub fn take(held: &mut Vec<Held>, usage: Usage, name: &str) -> Option<Held> {
    let at = held.iter().position(|one| one.usage == usage && one.name == name)?;
    Some(held.remove(at))
}

/// Sockets that systemd has made for this process (socket activation). To be called once.
///
/// # Errors
/// P0218: one of them is no listening stream socket.
pub fn activated() -> Result<Vec<Held>, DoorError> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    if variable("LISTEN_PID").parse() != Ok(std::process::id()) {
        return Ok(Vec::new());
    }
    let count = variable("LISTEN_FDS").parse::<i32>().unwrap_or(0).clamp(0, PASSED_MAX);
    let names = variable("LISTEN_FDNAMES");
    let mut names = names.split(':');
    (FIRST..FIRST + count)
        .map(|number| {
            let name = names.next().unwrap_or_default();
            let help = "the socket unit needs ListenStream=, and Accept=no";
            let what = format!("listen on file descriptor {number} (\"{name}\")");
            listening(passed(number), name)
                .map_err(|error| DoorError::new("P0218", what, error, help))
        })
        .collect()
}

/// SAFETY: LISTEN_PID says that this process was started with the descriptor open and that it is
/// meant for us; `activated` runs once, before anything else here could have closed it.
#[allow(unsafe_code)]
fn passed(number: i32) -> OwnedFd {
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Names that are no word of ours are PostgreSQL's doors: by default a socket is called like its
/// unit.
fn listening(fd: OwnedFd, name: &str) -> io::Result<Held> {
    fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
    let socket = Socket::from(fd);
    if socket.r#type()? != Type::STREAM || !socket.is_listener()? {
        return Err(io::Error::other("it is no stream socket that listens"));
    }
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    let (name_of_it, unix_port) = match (address.as_socket(), address.as_pathname()) {
        (Some(address), _) => (address.to_string(), None),
        (None, Some(path)) => {
            let port = path.extension().and_then(|port| port.to_str()?.parse().ok());
            (path.display().to_string(), Some(port.unwrap_or(0)))
        }
        (None, None) => return Err(io::Error::other("it is no TCP or Unix socket with a path")),
    };
    let usage = match name {
        "proxied" => Usage::Proxied,
        "redis" => Usage::Redis,
        "http" => Usage::Http,
        _ => Usage::Postgres,
    };
    if usage != Usage::Postgres && unix_port.is_some() {
        return Err(io::Error::other("this door takes TCP only"));
    }
    Ok(Held { usage, name: name_of_it, activated: true, unix_port, fd: socket.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_described_and_known_again() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
        let local = listener.local_addr().expect("an address");
        let held = listening(listener.into(), "http").expect("it listens");
        assert_eq!((held.usage, held.name.as_str()), (Usage::Http, local.to_string().as_str()));
        let fd = held.fd.try_clone().expect("a copy");
        let again = Held::from_description(&held.describe(), fd).expect("described");
        assert_eq!((again.usage, again.name, again.activated), (held.usage, held.name, true));
    }

    #[test]
    fn what_does_not_listen_is_refused() {
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("bind");
        assert!(listening(datagrams.into(), "postgres").is_err());
        let (pair, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        assert!(listening(pair.into(), "postgres").is_err());
    }
}
