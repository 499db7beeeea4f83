//! Logging in to a server, without a socket: whole messages in, bytes to send out.
//!
//! ```text
//! start -> AwaitRequest --trust-----------------------------------> AwaitReady --> LoggedIn
//!               |--password, md5-------------------> AwaitOk -----------^
//!               '--SASL--> AwaitFirst --keys--> AwaitFinal --> AwaitOk -'
//! ```
//!
//! The caller sends the StartupMessage itself, cuts what comes back with [`next_message`] and gives
//! each message to [`Login::message`]; it sends the bytes that appear in `out` before it reads on.
//! When a step asks for keys ([`Step::Keys`]) the caller derives them, which is slow, or takes them
//! from where it keeps them.
//!
//! Source: PostgreSQL documentation, "Message Flow", "Start-up"; "SASL Authentication".

mod error;

use wire::pg::auth::{
    self, AwaitServerFinal, Binding, ScramClient, ScramKeys, ScramNeedsKeys, Secret,
};
use wire::pg::backend::{self, tag, Auth, TxStatus};
use wire::pg::{frontend, header, WireError};

pub use error::{LoginError, ServerError};

/// Most bytes of one message during log-in. libpq stops at 2,000 (30,000 for errors).
///
/// Source: `MAX_ERRLEN` in `src/interfaces/libpq/fe-connect.c`.
pub const LOGIN_MESSAGE_BYTES_MAX: usize = 65_536;

/// Most parameters a server may report while it logs a client in; PostgreSQL 18 reports 15.
pub const LOGIN_PARAMETERS_MAX: usize = 256;

/// A whole message of a server.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    pub tag: u8,
    /// Without tag and length word.
    pub body: &'a [u8],
    /// Bytes of all of it.
    pub total: usize,
}

/// Cuts the first message off `bytes`; `None` while it is incomplete.
///
/// # Errors
/// As [`header`]; `TooLong` beyond [`LOGIN_MESSAGE_BYTES_MAX`].
pub fn next_message(bytes: &[u8]) -> Result<Option<Message<'_>>, WireError> {
    let Some(head) = header(bytes)? else { return Ok(None) };
    if head.total > LOGIN_MESSAGE_BYTES_MAX {
        return Err(WireError::TooLong {
            what: "message during log-in",
            len: head.total,
            max: LOGIN_MESSAGE_BYTES_MAX,
        });
    }
    Ok(bytes
        .get(..head.total)
        .and_then(|message| message.get(wire::pg::HEADER_BYTES..))
        .map(|body| Message { tag: head.tag, body, total: head.total }))
}

/// What a log-in proves itself with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    Secret(Secret),
    /// What a client proved itself with: good for every server that has the same verifier.
    Keys(ScramKeys),
}

/// A log-in that waits for the server's next message.
pub struct Login {
    /// What it can be bound to, the hash of the server's certificate: none without TLS.
    end_point: Option<Vec<u8>>,
    /// A log-in that is not bound fails, also one that the server asks no proof for.
    must_bind: bool,
    user: String,
    credential: Option<Credential>,
    nonce: String,
    state: State,
}

enum State {
    Request,
    First(ScramClient),
    Final(AwaitServerFinal),
    Ok,
    Ready(LoggedIn),
}

/// What a message led to.
pub enum Step {
    /// Send what is in `out`, then give the next message.
    Await(Login),
    /// SCRAM needs the keys of the password.
    Keys(NeedsKeys),
    /// ReadyForQuery: the connection is idle.
    Done(LoggedIn),
}

/// What a server says about a connection before its first ReadyForQuery.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedIn {
    /// ParameterStatus in order of arrival, the last value of each name.
    pub parameters: Vec<(String, String)>,
    /// 0, and no key, when the server gave none (poolers); it can't be asked to cancel then.
    pub pid: u32,
    /// 4 bytes in protocol 3.0, up to 256 in 3.2.
    pub key: Vec<u8>,
}

/// A SCRAM log-in that waits for the keys of a password.
pub struct NeedsKeys {
    login: Login,
    password: String,
    scram: ScramNeedsKeys,
}

impl NeedsKeys {
    /// What the keys are derived from: password, salt, iterations.
    pub fn source(&self) -> (&str, &[u8], u32) {
        (&self.password, &self.scram.salt, self.scram.iterations)
    }

    /// Goes on with the keys that [`ScramKeys::derive`] makes of [`NeedsKeys::source`].
    pub fn with_keys(self, keys: &ScramKeys, out: &mut Vec<u8>) -> Login {
        let (wait, response) = self.scram.with_keys(keys);
        frontend::put_sasl_response(out, &response);
        self.login.awaiting(State::Final(wait))
    }
}

impl Login {
    /// A log-in as `user`, after the StartupMessage. `nonce` is fresh and random, of at least 18
    /// bytes of printable ASCII without comma.
    pub fn start(user: &str, credential: Option<Credential>, nonce: &str) -> Login {
        Login {
            end_point: None,
            must_bind: false,
            user: user.to_owned(),
            credential,
            nonce: nonce.to_owned(),
            state: State::Request,
        }
    }

    /// Binds it to the TLS connection whose server has shown a certificate of this hash, if the
    /// server can do that; `must_bind`: or else it fails.
    pub fn bound(self, end_point: Option<Vec<u8>>, must_bind: bool) -> Login {
        Login { end_point, must_bind, ..self }
    }

    fn awaiting(self, state: State) -> Login {
        Login { state, ..self }
    }

    /// Takes the server's next message.
    ///
    /// # Errors
    /// `Server` with the server's own error; every other ends the log-in as well.
    pub fn message(mut self, kind: u8, body: &[u8], out: &mut Vec<u8>) -> Result<Step, LoginError> {
        match kind {
            tag::ERROR => return Err(LoginError::Server(ServerError::read(body)?)),
            tag::NOTICE => {
                backend::error_fields(body)?;
                return Ok(Step::Await(self));
            }
            _ => {}
        }
        match std::mem::replace(&mut self.state, State::Request) {
            State::Request if kind == tag::NEGOTIATE => {
                // It takes a lower version or leaves options out; nothing we send needs either.
                backend::negotiate(body)?;
                Ok(Step::Await(self))
            }
            State::Request => {
                self.request(authentication("an authentication request", kind, body)?, out)
            }
            State::First(scram) => {
                match authentication("AuthenticationSASLContinue", kind, body)? {
                    Auth::SaslContinue(data) => self.server_first(scram.server_first(data)?, out),
                    Auth::Ok => Err(LoginError::ServerNotProven),
                    _ => Err(unexpected("AuthenticationSASLContinue", kind)),
                }
            }
            State::Final(wait) => match authentication("AuthenticationSASLFinal", kind, body)? {
                Auth::SaslFinal(data) => {
                    wait.server_final(data)?;
                    Ok(Step::Await(self.awaiting(State::Ok)))
                }
                Auth::Ok => Err(LoginError::ServerNotProven),
                _ => Err(unexpected("AuthenticationSASLFinal", kind)),
            },
            State::Ok => match authentication("AuthenticationOk", kind, body)? {
                Auth::Ok => Ok(Step::Await(self.awaiting(State::Ready(LoggedIn::default())))),
                _ => Err(unexpected("AuthenticationOk", kind)),
            },
            State::Ready(session) => self.session(session, kind, body),
        }
    }

    /// The server says how the user is to prove himself, or that he need not.
    fn request(self, request: Auth<'_>, out: &mut Vec<u8>) -> Result<Step, LoginError> {
        match request {
            Auth::Ok | Auth::Cleartext | Auth::Md5(_) if self.must_bind => {
                Err(LoginError::Unbound("the server asks for no proof that can be bound"))
            }
            Auth::Ok => Ok(Step::Await(self.awaiting(State::Ready(LoggedIn::default())))),
            Auth::Cleartext => match &self.credential {
                Some(Credential::Secret(Secret::Plain(password))) => {
                    frontend::put_password(out, password.as_bytes());
                    Ok(Step::Await(self.awaiting(State::Ok)))
                }
                other => Err(unfit("clear-text password", other.is_some())),
            },
            Auth::Md5(salt) => {
                let response = match &self.credential {
                    Some(Credential::Secret(Secret::Plain(password))) => {
                        auth::md5_response(&self.user, password, salt)
                    }
                    Some(Credential::Secret(Secret::Md5(hash))) => {
                        auth::md5_response_from_hash(hash, salt)
                    }
                    other => return Err(unfit("md5", other.is_some())),
                };
                frontend::put_password(out, response.as_bytes());
                Ok(Step::Await(self.awaiting(State::Ok)))
            }
            Auth::Sasl(mechanisms) => {
                let (mechanism, binding) = self.mechanism(&mechanisms)?;
                match &self.credential {
                    Some(Credential::Secret(Secret::Plain(_)) | Credential::Keys(_)) => {}
                    other => return Err(unfit(auth::SCRAM_SHA_256, other.is_some())),
                }
                let (scram, first) = ScramClient::start(&self.nonce, binding);
                frontend::put_sasl_initial(out, mechanism, &first);
                Ok(Step::Await(self.awaiting(State::First(scram))))
            }
            Auth::Other(kind) => Err(LoginError::UnsupportedRequest { kind }),
            Auth::SaslContinue(_) | Auth::SaslFinal(_) => {
                Err(unexpected("an authentication request", tag::AUTHENTICATION))
            }
        }
    }

    /// Which of the offered mechanisms, and to what it is bound.
    fn mechanism(&self, offered: &[&str]) -> Result<(&'static str, Binding<'_>), LoginError> {
        match &self.end_point {
            Some(hash) if offered.contains(&auth::SCRAM_SHA_256_PLUS) => {
                return Ok((auth::SCRAM_SHA_256_PLUS, Binding::EndPoint(hash)));
            }
            Some(_) if self.must_bind => {
                return Err(LoginError::Unbound("the server does not offer SCRAM-SHA-256-PLUS"));
            }
            None if self.must_bind => {
                let why = "there is no TLS, or the server's certificate has no hash to bind to";
                return Err(LoginError::Unbound(why));
            }
            _ => {}
        }
        if !offered.contains(&auth::SCRAM_SHA_256) {
            return Err(LoginError::NoMechanism { offered: offered.join(", ") });
        }
        let binding = match self.end_point {
            Some(_) => Binding::Unused,
            None => Binding::Unable,
        };
        Ok((auth::SCRAM_SHA_256, binding))
    }

    /// The server has said how its verifier is salted.
    fn server_first(self, scram: ScramNeedsKeys, out: &mut Vec<u8>) -> Result<Step, LoginError> {
        match &self.credential {
            Some(Credential::Secret(Secret::Plain(password))) => {
                let password = password.clone();
                Ok(Step::Keys(NeedsKeys { login: self, password, scram }))
            }
            Some(Credential::Keys(keys)) => {
                let (wait, response) = scram.with_keys(keys);
                frontend::put_sasl_response(out, &response);
                Ok(Step::Await(self.awaiting(State::Final(wait))))
            }
            other => Err(unfit(auth::SCRAM_SHA_256, other.is_some())),
        }
    }

    /// Between AuthenticationOk and the first ReadyForQuery.
    fn session(self, mut session: LoggedIn, kind: u8, body: &[u8]) -> Result<Step, LoginError> {
        match kind {
            tag::PARAMETER_STATUS => {
                let (name, value) = backend::parameter_status(body)?;
                session.report(name, value)?;
            }
            tag::BACKEND_KEY_DATA => {
                let (pid, key) = backend::backend_key(body)?;
                session.pid = pid;
                session.key = key.to_vec();
            }
            tag::READY_FOR_QUERY => {
                return match backend::ready(body)? {
                    TxStatus::Idle => Ok(Step::Done(session)),
                    _ => Err(unexpected("ReadyForQuery outside of a transaction", kind)),
                };
            }
            _ => return Err(unexpected("ParameterStatus, BackendKeyData or ReadyForQuery", kind)),
        }
        Ok(Step::Await(self.awaiting(State::Ready(session))))
    }
}

impl LoggedIn {
    /// Notes a reported parameter; a name that is known gets its new value.
    ///
    /// # Errors
    /// `TooLong` beyond [`LOGIN_PARAMETERS_MAX`].
    pub fn report(&mut self, name: &str, value: &str) -> Result<(), WireError> {
        if let Some(known) = self.parameters.iter_mut().find(|(known, _)| known == name) {
            known.1 = value.to_owned();
            return Ok(());
        }
        if self.parameters.len() == LOGIN_PARAMETERS_MAX {
            return Err(WireError::TooLong {
                what: "list of reported parameters",
                len: self.parameters.len() + 1,
                max: LOGIN_PARAMETERS_MAX,
            });
        }
        self.parameters.push((name.to_owned(), value.to_owned()));
        Ok(())
    }
}

fn authentication<'a>(
    expected: &'static str,
    kind: u8,
    body: &'a [u8],
) -> Result<Auth<'a>, LoginError> {
    if kind != tag::AUTHENTICATION {
        return Err(unexpected(expected, kind));
    }
    Ok(backend::auth(body)?)
}

/// There is no credential, or one that can't answer what is asked.
fn unfit(asked: &'static str, any: bool) -> LoginError {
    match any {
        true => LoginError::SecretUnfit { asked },
        false => LoginError::NoPassword { asked },
    }
}

fn unexpected(expected: &'static str, got: u8) -> LoginError {
    LoginError::Unexpected { expected, got }
}

#[cfg(test)]
mod tests;
