//! Reaching a server: name to addresses, addresses to a socket, a socket to TLS.
//!
//! `localhost` is a special name: where the mode does not insist on TLS, the server's Unix socket
//! is tried first, because a query over it costs a fifth to a third less. See [`shortcut`].

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use wire::pg::startup;

use super::client_tls::{ClientTls, ALPN};
use super::keys::KeyCache;
use super::spots::Spots;
use super::transport::{Transport, Wire};
use crate::config::{ChannelBinding, Host, ServerTlsMode, TlsNegotiation, Upstream};
use crate::link::Ends;

/// Most connections that are being opened at one time; more wait their turn, which does not count
/// as connect_timeout.
pub const OPENING_MAX: usize = 128;

/// Most (port, user, database) triples remembered that the socket of `localhost` refused.
const REFUSED_MAX: usize = 4096;

/// An idle connection is probed after this long, then at this interval; three unanswered probes
/// end it.
const KEEPALIVE_TIME: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;

/// Where servers put their Unix sockets: Debian's and Red Hat's directory, PostgreSQL's own.
///
/// Source: `DEFAULT_PGSOCKET_DIR` in `src/include/pg_config_manual.h`; Debian's patch
/// 51-default-sockets-in-var.patch.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// What all connections to servers share.
pub struct Dialer {
    pub tls: ClientTls,
    pub keys: KeyCache,
    pub opening: Semaphore,
    pub(super) spots: Spots,
    /// Who was refused over the Unix socket of `localhost` (pg_hba.conf may ask for `peer` there)
    /// and so goes by TCP until the next RELOAD. A plain mutex: never held across an await.
    refused: Mutex<HashSet<(u16, String, String)>>,
}

/// A connection, not yet logged in.
pub struct Dialed {
    pub transport: Transport,
    pub ends: Ends,
    /// For messages.
    pub at: String,
}

/// Why a server could not be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialError {
    /// "127.0.0.1:5432", "db.example:5432 (10.0.0.7)", "/tmp/.s.PGSQL.5432".
    pub at: String,
    pub why: String,
    pub hint: Option<&'static str>,
    /// Somebody has to change a setting first.
    pub permanent: bool,
}

/// When connect_timeout is over; zero means never.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    limit: Duration,
    end: Option<Instant>,
}

/// The time was over.
#[derive(Debug, Clone, Copy)]
pub struct TimedOut(Duration);

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer within {:?} (connect_timeout)", self.0)
    }
}

impl Deadline {
    pub fn after(limit: Duration) -> Deadline {
        let end = (!limit.is_zero()).then(|| Instant::now().checked_add(limit)).flatten();
        Deadline { limit, end }
    }

    /// # Errors
    /// When the time is over before `work` is done.
    pub async fn run<T>(self, work: impl Future<Output = T>) -> Result<T, TimedOut> {
        match self.end {
            Some(end) => tokio::time::timeout_at(end, work).await.map_err(|_| TimedOut(self.limit)),
            None => Ok(work.await),
        }
    }

    /// An equal part of what is left, for one of `parts` tries.
    fn part(self, parts: usize) -> Deadline {
        let Some(end) = self.end else { return self };
        let now = Instant::now();
        let share =
            end.saturating_duration_since(now) / u32::try_from(parts.max(1)).unwrap_or(u32::MAX);
        Deadline { limit: self.limit, end: Some(now + share) }
    }
}

impl Default for Dialer {
    fn default() -> Self {
        Dialer {
            tls: ClientTls::default(),
            keys: KeyCache::default(),
            opening: Semaphore::new(OPENING_MAX),
            spots: Spots::default(),
            refused: Mutex::default(),
        }
    }
}

/// The Unix socket that stands for `localhost`, when there is one and the mode does not insist on
/// TLS.
pub fn shortcut(upstream: &Upstream) -> Option<PathBuf> {
    let tls = &upstream.tls;
    let insists = !matches!(tls.mode, ServerTlsMode::Disable | ServerTlsMode::Prefer)
        || tls.binding == ChannelBinding::Require;
    match &upstream.host {
        // A list has no sockets: cancel requests find their server by its address.
        Host::Tcp(name)
            if name == "localhost" && !insists && upstream.several.others.is_empty() =>
        {
            SOCKET_DIRECTORIES
                .iter()
                .map(|directory| socket_path(Path::new(directory), upstream.port))
                .find(|path| path.exists())
        }
        _ => None,
    }
}

/// Source: PostgreSQL documentation, "Connection Settings", unix_socket_directories.
pub fn socket_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

impl Dialer {
    /// As [`shortcut`], unless this user was refused there before.
    pub fn shortcut(&self, upstream: &Upstream) -> Option<PathBuf> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        (!refused.contains(&refusal(upstream))).then(|| shortcut(upstream)).flatten()
    }

    /// Remembers that the shortcut does not work for this user.
    pub fn refuse_shortcut(&self, upstream: &Upstream) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= REFUSED_MAX {
            refused.clear();
        }
        refused.insert(refusal(upstream));
    }

    /// Forgets what files said and what servers refused (RELOAD).
    pub fn forget(&self) {
        self.tls.forget();
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Connects to a Unix socket. There is no TLS there, whatever the mode, as with libpq.
    pub async fn dial_unix(&self, path: &Path, deadline: Deadline) -> Result<Dialed, DialError> {
        let at = path.display().to_string();
        let stream = match deadline.run(UnixStream::connect(path)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(DialError::passing(at, error)),
            Err(late) => return Err(DialError::passing(at, late)),
        };
        let port = path.extension().and_then(|port| port.to_str()?.parse().ok()).unwrap_or(0);
        let ends = Ends::Unix { peer_pid: None, port };
        Ok(Dialed { transport: Transport::Plain(Wire::Unix(stream)), ends, at })
    }

    /// Connects to the first address of the host that answers, and secures the connection as its
    /// mode says.
    pub async fn dial_tcp(
        &self,
        upstream: &Upstream,
        host: &str,
        deadline: Deadline,
    ) -> Result<Dialed, DialError> {
        let at = format!("{host}:{}", upstream.port);
        let lookup = deadline.run(tokio::net::lookup_host((host, upstream.port))).await;
        let addresses: Vec<SocketAddr> = match lookup {
            Ok(Ok(found)) => found.collect(),
            Ok(Err(error)) => {
                return Err(DialError::passing(at, format!("cannot resolve the name: {error}")))
            }
            Err(late) => return Err(DialError::passing(at, late)),
        };
        let mut last = DialError::passing(at, "the name has no address");
        for (tried, address) in addresses.iter().enumerate() {
            let part = deadline.part(addresses.len() - tried);
            match self.dial_address(upstream, host, *address, part).await {
                Ok(dialed) => return Ok(dialed),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Connects to this very address of the host.
    pub async fn dial_address(
        &self,
        upstream: &Upstream,
        host: &str,
        address: SocketAddr,
        deadline: Deadline,
    ) -> Result<Dialed, DialError> {
        let at = match host.parse::<std::net::IpAddr>() {
            Ok(_) => address.to_string(),
            Err(_) => format!("{host}:{} ({})", upstream.port, address.ip()),
        };
        let reached = async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let keepalive = TcpKeepalive::new()
                .with_time(KEEPALIVE_TIME)
                .with_interval(KEEPALIVE_INTERVAL)
                .with_retries(KEEPALIVE_RETRIES);
            SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
            let local = stream.local_addr()?;
            io::Result::Ok((stream, local))
        };
        let (stream, local) = match deadline.run(reached).await {
            Ok(Ok(reached)) => reached,
            Ok(Err(error)) => return Err(DialError::passing(at, error)),
            Err(late) => return Err(DialError::passing(at, late)),
        };
        let wire = Wire::Tcp(stream);
        let transport = match deadline.run(self.secure(wire, upstream, host, address)).await {
            Ok(Ok(transport)) => transport,
            Ok(Err(error)) => return Err(DialError { at, ..error }),
            Err(late) => return Err(DialError::passing(at, format!("{late} to the TLS request"))),
        };
        Ok(Dialed { transport, ends: Ends::Tcp { remote: address, local }, at })
    }

    /// Asks for TLS, where that is how it begins, and does its handshake, as the mode says. The
    /// error's place is left empty.
    ///
    /// Source: "Message Flow", "SSL Session Encryption".
    async fn secure(
        &self,
        mut wire: Wire,
        upstream: &Upstream,
        host: &str,
        address: SocketAddr,
    ) -> Result<Transport, DialError> {
        let mode = upstream.tls.mode;
        if mode == ServerTlsMode::Disable {
            return Ok(Transport::Plain(wire));
        }
        let config = self.tls.config(&upstream.tls).map_err(DialError::lasting)?;
        let direct = upstream.tls.negotiation == TlsNegotiation::Direct;
        if !direct && !ask_for_tls(&mut wire, mode).await? {
            return Ok(Transport::Plain(wire));
        }
        let name = match ServerName::try_from(host.to_owned()) {
            Ok(name) => name,
            // Only verify-full looks at the name.
            Err(_) if mode != ServerTlsMode::VerifyFull => address.ip().into(),
            Err(_) => return Err(DialError::lasting("the host's name cannot be verified")),
        };
        match TlsConnector::from(config).connect(name, wire).await {
            // Else we might be talked into sending PostgreSQL's protocol to another kind of
            // server that has a certificate of this name (ALPACA).
            Ok(stream) if direct && stream.get_ref().1.alpn_protocol() != Some(ALPN) => {
                let why = "the server did not agree to speak PostgreSQL over direct TLS (ALPN)";
                Err(DialError { hint: Some(ASKS_FIRST), ..DialError::lasting(why) })
            }
            Ok(stream) => Ok(Transport::Client(Box::new(stream))),
            Err(error) if direct => {
                let error = handshake_error(&error);
                let hint = (!error.permanent).then_some(ASKS_FIRST);
                Err(DialError { hint, ..error })
            }
            Err(error) => Err(handshake_error(&error)),
        }
    }
}

/// Asks for TLS, and says whether the server will.
async fn ask_for_tls(wire: &mut Wire, mode: ServerTlsMode) -> Result<bool, DialError> {
    let lost = |error: io::Error| DialError::passing(String::new(), error);
    let mut request = Vec::new();
    startup::put_ssl_request(&mut request);
    wire.write_all(&request).await.map_err(lost)?;
    // One byte is the answer; whatever comes with it was not sent by the TLS peer and would
    // be taken for the server's (CVE-2021-23222).
    let mut answer = [0; 16];
    match wire.read(&mut answer).await.map_err(lost)? {
        0 => return Err(DialError::passing(String::new(), CLOSED)),
        1 => {}
        _ if answer[0] == b'S' => {
            let why = "the server sent unencrypted bytes after it had agreed to TLS";
            return Err(DialError::passing(String::new(), why));
        }
        _ => {}
    }
    match answer[0] {
        b'S' => Ok(true),
        b'N' if mode == ServerTlsMode::Prefer => Ok(false),
        b'N' => {
            let why = "the server does not support TLS, and the database's tls mode asks for it";
            let hint = Some("Switch on `ssl` in postgresql.conf, or set the mode to `prefer`.");
            Err(DialError { hint, ..DialError::lasting(why) })
        }
        // The text of an error is not shown: nobody vouches for it (CVE-2024-10977).
        b'E' => {
            let why = "the server answered the TLS request with an error";
            Err(DialError::passing(String::new(), why))
        }
        other => {
            let why = format!(
                "the server answered the TLS request with '{}'; is it PostgreSQL?",
                other.escape_ascii()
            );
            Err(DialError::passing(String::new(), why))
        }
    }
}

const ASKS_FIRST: &str = "Before PostgreSQL 17, and at many poolers, TLS has to be asked for: \
                          set `tls_negotiation` to `postgres`.";

pub const CLOSED: &str = "the server closed the connection";

fn handshake_error(error: &io::Error) -> DialError {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let permanent = matches!(tls, Some(rustls::Error::InvalidCertificate(_)));
    let why = format!("TLS handshake failed: {error}");
    DialError { permanent, ..DialError::passing(String::new(), why) }
}

fn refusal(upstream: &Upstream) -> (u16, String, String) {
    (upstream.port, upstream.user.clone(), upstream.database.clone())
}

impl DialError {
    /// It may be gone at the next try.
    pub fn passing(at: String, why: impl ToString) -> DialError {
        DialError { at, why: why.to_string(), hint: None, permanent: false }
    }

    fn lasting(why: impl ToString) -> DialError {
        DialError { permanent: true, ..DialError::passing(String::new(), why) }
    }
}
