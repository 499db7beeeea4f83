//! A connection while the control plane drives it: plain or TLS, over TCP or a Unix socket.
//!
//! It is made of a std socket or by dialling, driven as an `AsyncRead + AsyncWrite`, and taken
//! apart into a [`Link`] when a worker takes over. Nothing is lost on the way: ciphertext that was
//! read but not yet decrypted stays in the TLS session, plaintext goes into [`Link::early`].

use std::future::{ready, Ready};
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

use super::end_point;
use crate::link::{Link, Socket};

/// A socket that tokio polls.
pub enum Wire {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection before and after its TLS handshake.
pub enum Transport {
    Plain(Wire),
    Client(Box<tokio_rustls::client::TlsStream<Wire>>),
    Server(Box<tokio_rustls::server::TlsStream<Wire>>),
}

impl Wire {
    /// Takes a non-blocking socket from a worker.
    ///
    /// # Errors
    /// When the runtime can't watch it.
    pub fn from_socket(socket: Socket) -> io::Result<Wire> {
        Ok(match socket {
            Socket::Tcp(stream) => Wire::Tcp(TcpStream::from_std(stream)?),
            Socket::Unix(stream) => Wire::Unix(UnixStream::from_std(stream)?),
        })
    }

    fn into_socket(self) -> io::Result<Socket> {
        Ok(match self {
            Wire::Tcp(stream) => Socket::Tcp(stream.into_std()?),
            Wire::Unix(stream) => Socket::Unix(stream.into_std()?),
        })
    }
}

impl Transport {
    /// "TLSv1.3/TLS_AES_256_GCM_SHA384", or empty without TLS.
    pub fn tls(&self) -> String {
        let session: &rustls::CommonState = match self {
            Transport::Plain(_) => return String::new(),
            Transport::Client(stream) => stream.get_ref().1,
            Transport::Server(stream) => stream.get_ref().1,
        };
        let version = match session.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLS",
        };
        // rustls writes TLS13_AES_..., everybody else TLS_AES_...
        let suite = session
            .negotiated_cipher_suite()
            .map(|suite| format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1));
        format!("{version}/{}", suite.unwrap_or_default())
    }

    /// What a log-in to this server can be bound to. Nothing where the certificate can't be read:
    /// then nobody has checked that the other end has its key.
    pub fn end_point(&self) -> Option<Vec<u8>> {
        let Transport::Client(stream) = self else { return None };
        let certificate = stream.get_ref().1.peer_certificates()?.first()?;
        webpki::EndEntityCert::try_from(certificate).ok()?;
        end_point::of(certificate)
    }

    /// Takes the connection apart for a worker. `early` is what was read of it and not used.
    ///
    /// The TLS session may still want to write (an answer to a key update); its owner does that.
    ///
    /// # Errors
    /// When the socket can't be released, or the peer broke TLS in what was already read.
    pub fn into_link(self, mut early: Vec<u8>) -> io::Result<Link> {
        let (wire, mut tls) = match self {
            Transport::Plain(wire) => (wire, None),
            Transport::Client(stream) => {
                let (wire, session) = stream.into_inner();
                (wire, Some(Box::new(rustls::Connection::Client(session))))
            }
            Transport::Server(stream) => {
                let (wire, session) = stream.into_inner();
                (wire, Some(Box::new(rustls::Connection::Server(session))))
            }
        };
        if let Some(session) = &mut tls {
            session.process_new_packets().map_err(io::Error::other)?;
            match session.reader().read_to_end(&mut early) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        Ok(Link { socket: wire.into_socket()?, tls, early })
    }
}

/// What a connection of tokio-postgres's is bound to.
impl TlsStream for Transport {
    fn channel_binding(&self) -> ChannelBinding {
        match self.end_point() {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

/// Leaves to tokio-postgres a connection that is secured already, or is not to be.
pub struct AsItIs;

impl TlsConnect<Transport> for AsItIs {
    type Stream = Transport;
    type Error = io::Error;
    type Future = Ready<io::Result<Transport>>;

    fn connect(self, transport: Transport) -> Self::Future {
        ready(Ok(transport))
    }
}

/// Applies one poll to whichever stream is inside.
macro_rules! each {
    ($self:ident, $kind:ident [$($variant:ident),+], $stream:ident => $call:expr) => {
        match $self.get_mut() {
            $($kind::$variant($stream) => {
                let $stream = Pin::new($stream);
                $call
            })+
        }
    };
}

macro_rules! delegate {
    ($kind:ident [$($variant:ident),+]) => {
        impl AsyncRead for $kind {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                each!(self, $kind [$($variant),+], stream => stream.poll_read(cx, buf))
            }
        }

        impl AsyncWrite for $kind {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                each!(self, $kind [$($variant),+], stream => stream.poll_write(cx, bytes))
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                each!(self, $kind [$($variant),+], stream => stream.poll_flush(cx))
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                each!(self, $kind [$($variant),+], stream => stream.poll_shutdown(cx))
            }
        }
    };
}

delegate!(Wire[Tcp, Unix]);
delegate!(Transport[Plain, Client, Server]);
