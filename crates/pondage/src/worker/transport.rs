//! A non-blocking socket registered with epoll, with TLS inside it or not.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;

use crate::link::{Link, Socket};

/// Plaintext that TLS may hold encrypted before the socket has taken it, in bytes.
const TLS_CHUNK_BYTES: usize = 64 << 10;

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Debug)]
pub struct Transport {
    stream: Stream,
    tls: Option<Box<rustls::Connection>>,
    /// There may be something to read. Epoll tells each edge once, so this remembers it.
    pub readable: bool,
    /// The peer has closed, or nothing can be read any more.
    pub ended: bool,
    /// It is in the driver's list of connections to be read.
    pub queued: bool,
    /// Epoll is asked to tell when it can be written again.
    awaits_writable: bool,
}

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    /// Bytes; `more` when another read may bring more at once.
    Bytes {
        count: usize,
        more: bool,
    },
    Nothing,
    End,
}

impl Transport {
    pub fn new(link: Link) -> Transport {
        let stream = match link.socket {
            Socket::Tcp(stream) => Stream::Tcp(TcpStream::from_std(stream)),
            Socket::Unix(stream) => Stream::Unix(UnixStream::from_std(stream)),
        };
        Transport::with(stream, link.tls)
    }

    /// The user of the process that made the other end of a Unix socket (SO_PEERCRED).
    pub fn peer_uid(&self) -> Option<u32> {
        match &self.stream {
            Stream::Tcp(_) => None,
            Stream::Unix(stream) => getsockopt(stream, PeerCredentials).ok().map(|who| who.uid()),
        }
    }

    pub fn tcp(stream: TcpStream) -> Transport {
        Transport::with(Stream::Tcp(stream), None)
    }

    pub fn unix(stream: UnixStream) -> Transport {
        Transport::with(Stream::Unix(stream), None)
    }

    fn with(stream: Stream, tls: Option<Box<rustls::Connection>>) -> Transport {
        // TLS may hold plaintext that epoll knows nothing of.
        let readable = tls.is_some();
        Transport { stream, tls, readable, ended: false, queued: false, awaits_writable: false }
    }

    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.stream {
            Stream::Tcp(stream) => registry.register(stream, token, Interest::READABLE),
            Stream::Unix(stream) => registry.register(stream, token, Interest::READABLE),
        }
    }

    /// Asks epoll to tell when it can be written, or to stop telling: on a Unix socket every read
    /// of the peer would wake us otherwise.
    fn await_writable(
        &mut self,
        registry: &Registry,
        token: Token,
        wanted: bool,
    ) -> io::Result<()> {
        if self.awaits_writable == wanted {
            return Ok(());
        }
        self.awaits_writable = wanted;
        let interest =
            if wanted { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        match &mut self.stream {
            Stream::Tcp(stream) => registry.reregister(stream, token, interest),
            Stream::Unix(stream) => registry.reregister(stream, token, interest),
        }
    }

    /// Takes it out of epoll, for another thread.
    pub fn into_link(mut self, registry: &Registry) -> io::Result<Link> {
        let socket = match &mut self.stream {
            Stream::Tcp(stream) => registry.deregister(stream),
            Stream::Unix(stream) => registry.deregister(stream),
        };
        socket?;
        let socket = match self.stream {
            Stream::Tcp(stream) => Socket::Tcp(OwnedFd::from(stream).into()),
            Stream::Unix(stream) => Socket::Unix(OwnedFd::from(stream).into()),
        };
        Ok(Link { socket, tls: self.tls, early: Vec::new() })
    }

    /// Reads once. A read that does not fill the buffer has emptied the socket (epoll(7), Q9), so
    /// no second one is made to hear EAGAIN.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Got> {
        let Some(tls) = &mut self.tls else {
            return raw_read(&mut self.stream, buffer);
        };
        loop {
            match tls.reader().read(buffer) {
                Ok(0) => return Ok(Got::End),
                Ok(count) => return Ok(Got::Bytes { count, more: true }),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            match tls.read_tls(&mut self.stream) {
                // The peer left without close_notify: for a protocol that says Terminate, an end.
                Ok(0) => return Ok(Got::End),
                Ok(_) => {
                    tls.process_new_packets().map_err(io::Error::other)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Got::Nothing),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes as much as it takes; says how many bytes of `bytes` are done with. If that is not
    /// all, epoll will tell when to go on.
    pub fn write(&mut self, bytes: &[u8], registry: &Registry, token: Token) -> io::Result<usize> {
        let done = match &mut self.tls {
            None => raw_write(&mut self.stream, bytes)?,
            Some(tls) => tls_write(tls, &mut self.stream, bytes)?,
        };
        let unfinished =
            done < bytes.len() || self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        self.await_writable(registry, token, unfinished)?;
        Ok(done)
    }

    /// Encrypted bytes are left to be written though the plaintext is done with.
    pub fn is_unfinished(&self) -> bool {
        self.awaits_writable
    }

    /// Says goodbye where the protocol has one.
    pub fn farewell(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.stream);
        }
    }
}

fn raw_read(stream: &mut Stream, buffer: &mut [u8]) -> io::Result<Got> {
    loop {
        match stream.read(buffer) {
            Ok(0) => return Ok(Got::End),
            Ok(count) => return Ok(Got::Bytes { count, more: count == buffer.len() }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Got::Nothing),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn raw_write(stream: &mut Stream, mut bytes: &[u8]) -> io::Result<usize> {
    let all = bytes.len();
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all - bytes.len())
}

fn tls_write(
    tls: &mut rustls::Connection,
    stream: &mut Stream,
    mut bytes: &[u8],
) -> io::Result<usize> {
    let all = bytes.len();
    loop {
        while tls.wants_write() {
            match tls.write_tls(stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(all - bytes.len());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if bytes.is_empty() {
            return Ok(all);
        }
        let chunk = &bytes[..bytes.len().min(TLS_CHUNK_BYTES)];
        let taken = tls.writer().write(chunk)?;
        bytes = &bytes[taken..];
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
