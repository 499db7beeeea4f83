//! Opening a server connection: dial, StartupMessage, log-in, the database's connect_query; in
//! the end it belongs to a worker.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use backend::login::{self, Credential, LoggedIn, Login, LoginError, ServerError, Step};
use rand::distr::{Alphanumeric, SampleString};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::pg::auth::Secret;
use wire::pg::backend::tag;
use wire::pg::{frontend, sqlstate, startup};

use super::dial::{Deadline, DialError, Dialed, Dialer, CLOSED};
use super::messages::{OpenError, OpenKind, Opened};
use super::transport::Transport;
use crate::config::{ChannelBinding, Host, PoolConfig, ServerProtocol};
use crate::hosts::Seat;
use crate::link::Ends;

/// Characters of a SCRAM nonce: about 140 bits.
const NONCE_CHARS: usize = 24;

/// Bytes asked of the socket at once while logging in.
const READ_BYTES: usize = 4096;

impl Dialer {
    /// Opens a connection for `config`'s pool, or for one replication client.
    ///
    /// # Errors
    /// What went wrong, where and why, and whether a new try could end otherwise.
    ///
    /// # Cancel safety
    /// Dropping it closes what was opened.
    pub async fn open(
        &self,
        config: &PoolConfig,
        proven: Option<Credential>,
        kind: &OpenKind,
    ) -> Result<Opened, OpenError> {
        let Session { transport, mut received, read, ends, at, logged_in, seat, life } =
            self.start(config, proven, kind).await?;
        let tls = transport.tls();
        received.drain(..read);
        let link = transport
            .into_link(received)
            .map_err(|error| unreached(&config.database, &DialError::passing(at, error)))?;
        let LoggedIn { parameters, pid, key } = logged_in;
        Ok(Opened { link, ends, parameters, pid, key, tls, seat: seat.map(Arc::new), life })
    }

    /// As [`Dialer::open`], on the one host that `config` names first, at this one of its addresses
    /// if one is given.
    pub(super) async fn start_at(
        &self,
        config: &PoolConfig,
        address: Option<SocketAddr>,
        proven: Option<Credential>,
        kind: &OpenKind,
    ) -> Result<Session, OpenError> {
        // The semaphore is never closed; without a permit the bound would only be missed.
        let _permit = self.opening.acquire().await;
        let upstream = &config.upstream;
        // A verifier can check a client but not log in; what the client has proved can.
        let stored = upstream.password.clone().map(Credential::Secret);
        let credential = match (stored, proven) {
            (Some(Credential::Secret(Secret::Scram(_))) | None, Some(proven)) => Some(proven),
            (stored, _) => stored,
        };
        let task = Task { config, kind, credential };
        if let Some(socket) = self.shortcut(upstream) {
            let deadline = Deadline::after(config.connect_timeout);
            let dialed = self.dial_unix(&socket, deadline).await;
            match self.log_in(&task, dialed, deadline).await {
                // pg_hba.conf may ask for `peer` on Unix sockets and for a password over TCP.
                Err(error) if error.code.starts_with("28") => self.refuse_shortcut(upstream),
                // Left over from a server that is gone.
                Err(error) if error.code == UNREACHED => {}
                other => return other,
            }
        }
        let deadline = Deadline::after(config.connect_timeout);
        let dialed = match &upstream.host {
            Host::Unix(directory) => {
                let socket = super::dial::socket_path(directory, upstream.port);
                self.dial_unix(&socket, deadline).await
            }
            Host::Tcp(host) => match address {
                Some(address) => self.dial_address(upstream, host, address, deadline).await,
                None => self.dial_tcp(upstream, host, deadline).await,
            },
        };
        self.log_in(&task, dialed, deadline).await
    }

    async fn log_in(
        &self,
        task: &Task<'_>,
        dialed: Result<Dialed, DialError>,
        deadline: Deadline,
    ) -> Result<Session, OpenError> {
        let Task { config, kind, .. } = *task;
        let Dialed { transport, ends, at } =
            dialed.map_err(|error| unreached(&config.database, &error))?;
        let place = Place { config, at: at.clone() };
        let logged_in = LoggedIn::default();
        let received = Vec::new();
        let mut session =
            Session { transport, received, read: 0, ends, at, logged_in, seat: None, life: 0 };
        let work = async {
            session.start(self, task).await.map_err(|e| place.login(e))?;
            match &config.upstream.connect_query {
                Some(query) if matches!(kind, OpenKind::Pooled | OpenKind::Session { .. }) => {
                    session.query(query).await.map_err(|e| place.connect_query(e))
                }
                _ => Ok(()),
            }
        };
        deadline.run(work).await.map_err(|late| {
            unreached(
                &config.database,
                &DialError::passing(place.at.clone(), format!("{late} to the log-in")),
            )
        })??;
        Ok(session)
    }
}

/// What is to be opened.
struct Task<'a> {
    config: &'a PoolConfig,
    kind: &'a OpenKind,
    credential: Option<Credential>,
}

/// The code of an [`OpenError`] when no server was reached.
pub const UNREACHED: &str = sqlstate::CONNECTION_UNABLE_TO_ESTABLISH;

/// A connection from its StartupMessage on, until a worker takes it over.
pub(crate) struct Session {
    transport: Transport,
    received: Vec<u8>,
    /// Bytes of `received` that are used up.
    read: usize,
    ends: Ends,
    /// For messages.
    pub(crate) at: String,
    /// What the server said when the log-in was done, and since.
    pub(super) logged_in: LoggedIn,
    /// At one of several hosts.
    pub(super) seat: Option<Seat>,
    /// Of a standby that is read from.
    pub(super) life: u64,
}

/// Why a session did not come about, or ended.
pub(crate) enum Failure {
    Login(LoginError),
    /// The connection ended or broke.
    Lost(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Login(error) => error.fmt(f),
            Failure::Lost(why) => f.write_str(why),
        }
    }
}

impl From<LoginError> for Failure {
    fn from(error: LoginError) -> Self {
        Failure::Login(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Lost(error.to_string())
    }
}

impl Session {
    async fn start(&mut self, dialer: &Dialer, task: &Task<'_>) -> Result<(), Failure> {
        let Task { config, kind, credential } = task;
        let mut out = Vec::new();
        let minor = match config.upstream.protocol {
            ServerProtocol::V3_0 => 0,
            ServerProtocol::V3_2 | ServerProtocol::Latest => 2,
        };
        startup::put_startup(&mut out, minor, &start_parameters(config, kind));
        let nonce = Alphanumeric.sample_string(&mut rand::rng(), NONCE_CHARS);
        let binding = config.upstream.tls.binding;
        let end_point = match binding {
            ChannelBinding::Disable => None,
            _ => self.transport.end_point(),
        };
        let mut login = Login::start(&config.upstream.user, credential.clone(), &nonce)
            .bound(end_point, binding == ChannelBinding::Require);
        loop {
            if !out.is_empty() {
                self.send(&out).await?;
                out.clear();
            }
            let (kind, body) = self.message().await?;
            match login.message(kind, body, &mut out)? {
                Step::Await(next) => login = next,
                Step::Keys(needs) => {
                    let (password, salt, iterations) = needs.source();
                    let keys = dialer.keys.keys(password, salt, iterations).await?;
                    login = needs.with_keys(&keys, &mut out);
                }
                Step::Done(logged_in) => {
                    self.logged_in = logged_in;
                    return Ok(());
                }
            }
        }
    }

    /// Runs a query and throws its rows away; parameters that it changes are noted.
    pub(super) async fn query(&mut self, query: &str) -> Result<(), Failure> {
        let mut out = Vec::new();
        frontend::put_query(&mut out, query);
        self.send(&out).await?;
        loop {
            let (kind, body) = self.message().await?;
            match kind {
                tag::READY_FOR_QUERY => return Ok(()),
                tag::ERROR => {
                    let error = ServerError::read(body).map_err(LoginError::from)?;
                    return Err(LoginError::Server(error).into());
                }
                tag::PARAMETER_STATUS => {
                    let (name, value) =
                        wire::pg::backend::parameter_status(body).map_err(LoginError::from)?;
                    let (name, value) = (name.to_owned(), value.to_owned());
                    self.logged_in.report(&name, &value).map_err(LoginError::from)?;
                }
                tag::COPY_IN | tag::COPY_OUT | tag::COPY_BOTH => {
                    return Err(Failure::Lost("connect_query starts a COPY".to_owned()));
                }
                _ => {}
            }
        }
    }

    /// "TLSv1.3/TLS_AES_256_GCM_SHA384", or empty without TLS.
    pub(crate) fn tls(&self) -> String {
        self.transport.tls()
    }

    /// The connection, and what has come and was not used, for who cuts messages himself.
    pub(crate) fn into_parts(mut self) -> (Transport, Vec<u8>) {
        self.received.drain(..self.read);
        (self.transport, self.received)
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.transport.write_all(bytes).await?;
        self.transport.flush().await
    }

    /// The next whole message: its tag and body.
    pub(crate) async fn message(&mut self) -> Result<(u8, &[u8]), Failure> {
        loop {
            let waiting = &self.received[self.read..];
            if let Some(message) = login::next_message(waiting).map_err(LoginError::from)? {
                let whole = self.read..self.read + message.total;
                self.read = whole.end;
                let message = &self.received[whole];
                return Ok((message[0], &message[wire::pg::HEADER_BYTES..]));
            }
            self.received.drain(..self.read);
            self.read = 0;
            self.received.reserve(READ_BYTES);
            if self.transport.read_buf(&mut self.received).await? == 0 {
                return Err(Failure::Lost(CLOSED.to_owned()));
            }
        }
    }
}

/// The StartupMessage's parameters. A replication client's own are kept, but for who it is.
fn start_parameters<'a>(config: &'a PoolConfig, kind: &'a OpenKind) -> Vec<(&'a str, &'a str)> {
    let upstream = &config.upstream;
    let mut parameters =
        vec![("user", upstream.user.as_str()), ("database", upstream.database.as_str())];
    match kind {
        OpenKind::Pooled | OpenKind::Session { .. } => {
            let name = upstream.application_name.as_deref();
            parameters.extend(name.map(|name| ("application_name", name)));
            if let OpenKind::Session { parameters: own } = kind {
                parameters.extend(own.iter().map(|(name, value)| (&**name, &**value)));
            }
        }
        OpenKind::Pulse => parameters.push(("application_name", "pondage cache")),
        OpenKind::Probe => parameters.push(("application_name", "pondage probe")),
        OpenKind::Redis => {
            let name = upstream.application_name.as_deref().unwrap_or("pondage redis");
            parameters.push(("application_name", name));
        }
        OpenKind::Replication { parameters: own } => {
            let own = own.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            // Protocol options are between us and the client.
            let kept =
                |name: &str| !matches!(name, "user" | "database") && !name.starts_with("_pq_.");
            parameters.extend(own.filter(|(name, _)| kept(name)));
        }
    }
    parameters
}

/// Where it happened, for messages.
struct Place<'a> {
    config: &'a PoolConfig,
    at: String,
}

impl Place<'_> {
    fn login(&self, failure: Failure) -> OpenError {
        let Place { config, at } = self;
        self.error(failure, |why| {
            format!(
                "cannot log in to the server of database \"{}\" at {at} as \"{}\": {why}",
                config.database, config.upstream.user
            )
        })
    }

    fn connect_query(&self, failure: Failure) -> OpenError {
        let Place { config, at } = self;
        self.error(failure, |why| {
            format!("connect_query of database \"{}\" failed at {at}: {why}", config.database)
        })
    }

    fn error(&self, failure: Failure, words: impl FnOnce(&str) -> String) -> OpenError {
        match failure {
            Failure::Lost(why) => {
                let error = DialError::passing(self.at.clone(), why);
                unreached(&self.config.database, &error)
            }
            Failure::Login(error) => {
                let why = match &error {
                    LoginError::Server(error) => error.message.clone(),
                    other => other.to_string(),
                };
                let theirs = match &error {
                    LoginError::SecretUnfit { .. } => "wrong password type".to_owned(),
                    _ => why.clone(),
                };
                let detail = match &error {
                    LoginError::Server(error) => error.detail.clone(),
                    _ => None,
                };
                OpenError {
                    code: error.code().to_owned(),
                    message: words(&why),
                    theirs,
                    detail,
                    hint: error.hint().map(str::to_owned),
                    permanent: error.permanent(),
                    at: SystemTime::now(),
                }
            }
        }
    }
}

fn unreached(database: &str, error: &DialError) -> OpenError {
    let DialError { at, why, hint, permanent } = error;
    let theirs = "server login has been failing, cached error: connect failed (server_login_retry)";
    OpenError {
        code: UNREACHED.to_owned(),
        message: format!("cannot connect to the server of database \"{database}\" at {at}: {why}"),
        theirs: theirs.to_owned(),
        detail: None,
        hint: hint.map(str::to_owned),
        permanent: *permanent,
        at: SystemTime::now(),
    }
}
