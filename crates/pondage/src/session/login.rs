//! How a client logs in: first packets, then a challenge by the kind of secret its user has.
//!
//! ```text
//! AwaitFirstPacket --SSLRequest--> (the control plane does TLS; a new login begins inside it)
//!        | StartupMessage
//!        v
//! AwaitSecret ---> AwaitPassword | AwaitMd5 | AwaitSaslInitial -> AwaitSaslFinal
//!                        |             |                               |
//!                        +-------------+----> Accepted <---------------+
//! ```
//! A user that does not exist is challenged like one that does, and fails at the end.
//!
//! Source: PostgreSQL docs, "Message Flow: Start-up" and "SASL Authentication".

use std::borrow::Cow;

use backend::login::Credential;
use wire::pg::auth::{
    Binding, ScramError, ScramKeys, ScramServer, ScramVerifier, Secret, SCRAM_SHA_256,
    SCRAM_SHA_256_PLUS,
};
use wire::pg::backend as reply;
use wire::pg::frontend::{self, tag};
use wire::pg::sqlstate;
use wire::pg::startup::{self, FirstPacket};

use super::{encoding, options};
use crate::control::messages::Identity;

/// A password or SASL message: PostgreSQL's PG_MAX_AUTH_TOKEN_LENGTH, its header apart.
pub const PASSWORD_BYTES_MAX: usize = 65_535;

/// Why a client is not let in; sent as a FATAL error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub code: &'static str,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// What PgBouncer says of it.
    pub theirs: Option<Cow<'static, str>>,
}

impl Refused {
    pub fn new(code: &'static str, message: impl Into<String>) -> Refused {
        Refused { code, message: message.into(), detail: None, hint: None, theirs: None }
    }

    pub fn code(self, code: &'static str) -> Refused {
        Refused { code, ..self }
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Refused {
        self.detail = Some(detail.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Refused {
        self.hint = Some(hint.into());
        self
    }

    pub fn theirs(mut self, theirs: impl Into<Cow<'static, str>>) -> Refused {
        self.theirs = Some(theirs.into());
        self
    }

    fn protocol(message: impl Into<String>) -> Refused {
        Refused::new(sqlstate::PROTOCOL_VIOLATION, message)
    }

    /// As an ErrorResponse of severity FATAL.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.put_as(out, "FATAL");
    }

    /// The same of another severity.
    pub fn put_as(&self, out: &mut Vec<u8>, severity: &'static str) {
        reply::put_error(
            out,
            &reply::ErrorReply {
                severity,
                code: self.code,
                message: &self.message,
                detail: self.detail.as_deref(),
                hint: self.hint.as_deref(),
            },
        );
    }
}

/// The newest minor version of protocol 3 that is spoken here. 3.1 never was.
const NEWEST_MINOR: u16 = 2;

/// What a client asked for in its StartupMessage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    pub user: String,
    pub database: String,
    /// Settings, those in `options` included, in order.
    pub settings: Vec<(String, String)>,
    /// The names of those in `options`.
    optional: Vec<String>,
    /// The value of `replication`, if it asks for a replication connection.
    pub replication: Option<String>,
    /// Its protocol has cancel keys of more than 4 bytes.
    pub long_key: bool,
}

/// What PgBouncer keeps for each client: it is applied though it is to be ignored.
const KEPT: [&str; 6] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "standard_conforming_strings",
];

impl Wish {
    /// Drops the settings of these names; `options` names all in that parameter.
    pub fn ignore(&mut self, names: &[String]) {
        let is = |one: &str, name: &str| one.eq_ignore_ascii_case(name);
        let named = |name: &str| names.iter().any(|one| is(one, name));
        let in_options = |name: &str| self.optional.iter().any(|one| is(one, name));
        let options = named("options");
        self.settings.retain(|(name, _)| {
            let ignored = named(name) || options && in_options(name);
            !ignored || KEPT.iter().any(|kept| is(kept, name))
        });
    }
}

/// What a first packet was.
#[derive(Debug, PartialEq, Eq)]
pub enum First {
    /// Answered `N`; another first packet follows.
    Declined,
    /// Answered `S`: the TLS handshake follows.
    Tls,
    Cancel {
        pid: u32,
        key: Vec<u8>,
    },
    /// The user is to be challenged.
    Start,
}

/// How a client has to prove who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    Nothing,
    /// The password in clear text.
    Password,
    Md5,
    /// SCRAM-SHA-256, or md5 for who has a secret that can't do it.
    Scram,
    ScramOnly,
}

/// What to do after a challenge was begun.
#[derive(Debug, PartialEq, Eq)]
pub enum Challenge {
    Accepted,
    /// The client must answer.
    Sent,
    /// A verifier must be derived from this password (slow) and given to [`Login::challenge`].
    NeedsVerifier {
        password: String,
    },
}

/// What came of a client's answer.
#[derive(Debug)]
pub enum Answer {
    /// It must say more.
    More,
    Accepted,
    /// Checking takes a PBKDF2; [`Login::checked`] follows.
    Check {
        password: Vec<u8>,
        secret: Secret,
    },
}

#[derive(Debug)]
enum Stage {
    AwaitFirstPacket { asked_tls: bool, asked_gss: bool },
    AwaitSecret,
    AwaitPassword { secret: Option<Secret> },
    AwaitCheck,
    AwaitMd5 { secret: Option<Secret>, salt: [u8; 4] },
    AwaitSaslInitial { verifier: ScramVerifier, known: Known },
    AwaitSaslFinal { server: ScramServer, server_key: [u8; 32], known: Known },
    Accepted,
}

/// One log-in. Calls come in the order of the drawing above.
#[derive(Debug)]
pub struct Login {
    stage: Stage,
    pub wish: Wish,
    pub proof: Proof,
    pub identity: Identity,
    /// A proxy is at the other end, and has to say first whom it speaks for.
    pub awaits_proxy: bool,
    /// By which the name of a Unix socket's other end is a user, while it is asked for.
    pub map: Option<String>,
    /// The console's, by the system user that this process runs as.
    pub is_owner: bool,
    /// Nothing is asked of it, but its user has to be one that is known.
    pub must_be_known: bool,
    /// What the client proved itself with; right once it is accepted.
    pub proven: Option<Credential>,
    /// Its secret was found a while ago and may have changed since.
    kept: Option<Box<Kept>>,
}

/// A secret that was found a while ago.
#[derive(Debug)]
struct Kept {
    secret: Option<Secret>,
    /// What the client has answered, if that can be held against another secret.
    answered: Answered,
}

#[derive(Debug)]
enum Answered {
    /// Nothing yet, or by SCRAM: the proof is made with the salt of that secret.
    Nothing,
    Password(Vec<u8>),
    Md5 {
        response: Vec<u8>,
        salt: [u8; 4],
    },
}

/// What is known of a user that SCRAM is done with.
#[derive(Debug)]
enum Known {
    /// There is no such user.
    No,
    /// The verifier is the one stored for it: its proof is good elsewhere.
    Verifier,
    /// The verifier was made here, of this password.
    Password(String),
}

/// How TLS stands when a first packet arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsState {
    pub offered: bool,
    pub required: bool,
    pub active: bool,
}

/// Random values and the key from which answers for unknown users are made.
#[derive(Debug)]
pub struct Chance<'a> {
    pub salt: [u8; 4],
    pub nonce: &'a str,
    pub mock_key: &'a [u8; 32],
}

impl Login {
    pub fn new() -> Login {
        let stage = Stage::AwaitFirstPacket { asked_tls: false, asked_gss: false };
        Login {
            stage,
            wish: Wish::default(),
            proof: Proof::Scram,
            identity: Identity::default(),
            awaits_proxy: false,
            map: None,
            is_owner: false,
            must_be_known: false,
            proven: None,
            kept: None,
        }
    }

    pub fn awaits_first_packet(&self) -> bool {
        matches!(self.stage, Stage::AwaitFirstPacket { .. })
    }

    /// It waits for a message of the client's.
    pub fn awaits_client(&self) -> bool {
        !matches!(self.stage, Stage::AwaitSecret | Stage::AwaitCheck | Stage::Accepted)
    }

    pub fn is_accepted(&self) -> bool {
        matches!(self.stage, Stage::Accepted)
    }

    /// Takes a first packet; says how many bytes it had, none while it is incomplete.
    pub fn first_packet(
        &mut self,
        bytes: &[u8],
        tls: TlsState,
        out: &mut Vec<u8>,
    ) -> Result<Option<(First, usize)>, Refused> {
        let Stage::AwaitFirstPacket { asked_tls, asked_gss } = &mut self.stage else {
            return Err(Refused::protocol("unexpected start-up packet"));
        };
        let packet = startup::first_packet(bytes)
            .map_err(|error| Refused::protocol(format!("invalid start-up packet: {error}")))?;
        let Some((packet, length)) = packet else { return Ok(None) };
        let first = match packet {
            FirstPacket::Ssl => {
                alone(bytes, length, "SSLRequest")?;
                if std::mem::replace(asked_tls, true) || tls.active {
                    return Err(Refused::protocol("SSLRequest was sent twice"));
                }
                out.push(if tls.offered { b'S' } else { b'N' });
                if tls.offered {
                    First::Tls
                } else {
                    First::Declined
                }
            }
            FirstPacket::GssEnc => {
                alone(bytes, length, "GSSENCRequest")?;
                if std::mem::replace(asked_gss, true) {
                    return Err(Refused::protocol("GSSENCRequest was sent twice"));
                }
                out.push(b'N');
                First::Declined
            }
            FirstPacket::Cancel { pid, key } => First::Cancel { pid, key: key.to_vec() },
            FirstPacket::Startup(startup) => {
                self.wish = wish(&startup, tls, out)?;
                self.stage = Stage::AwaitSecret;
                First::Start
            }
        };
        Ok(Some((first, length)))
    }

    /// Begins the challenge. `secret` is the user's, none if there is no such user; `verifier`
    /// is the one derived from a plain secret, once the caller has it.
    pub fn challenge(
        &mut self,
        proof: Proof,
        secret: Option<Secret>,
        verifier: Option<ScramVerifier>,
        chance: &Chance<'_>,
        out: &mut Vec<u8>,
    ) -> Challenge {
        let user = &self.wish.user;
        let plus = self.identity.end_point.is_some();
        self.stage = match (proof, secret) {
            (Proof::Nothing, _) => {
                self.stage = Stage::Accepted;
                return Challenge::Accepted;
            }
            (Proof::Password, secret) => {
                reply::put_auth_cleartext(out);
                Stage::AwaitPassword { secret }
            }
            (Proof::Md5, secret @ (None | Some(Secret::Plain(_) | Secret::Md5(_))))
            | (Proof::Scram, secret @ Some(Secret::Md5(_))) => {
                reply::put_auth_md5(out, chance.salt);
                Stage::AwaitMd5 { secret, salt: chance.salt }
            }
            (_, Some(Secret::Plain(password))) => match verifier {
                None => return Challenge::NeedsVerifier { password },
                Some(verifier) => sasl(verifier, Known::Password(password), plus, out),
            },
            (_, Some(Secret::Scram(verifier))) => sasl(verifier, Known::Verifier, plus, out),
            (_, None | Some(Secret::Md5(_))) => {
                sasl(ScramVerifier::mock(chance.mock_key, user, 4096), Known::No, plus, out)
            }
        };
        Challenge::Sent
    }

    /// Takes the client's answer to the challenge.
    pub fn answer(
        &mut self,
        message_tag: u8,
        body: &[u8],
        nonce: &str,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Refused> {
        if message_tag != tag::PASSWORD {
            return Err(Refused::protocol(format!(
                "expected password response, got message type {message_tag}"
            )));
        }
        let malformed = |error| Refused::protocol(format!("invalid password packet: {error}"));
        self.note_answer(body);
        match std::mem::replace(&mut self.stage, Stage::AwaitCheck) {
            Stage::AwaitPassword { secret } => {
                let password = frontend::password(body).map_err(malformed)?;
                let plain = String::from_utf8(password.to_vec()).ok();
                self.proven = plain.map(|plain| Credential::Secret(Secret::Plain(plain)));
                match secret {
                    Some(secret @ Secret::Scram(_)) => {
                        Ok(Answer::Check { password: password.to_vec(), secret })
                    }
                    Some(secret) if secret.check_plain(&self.wish.user, password) => self.accept(),
                    _ => Err(self.wrong_password()),
                }
            }
            Stage::AwaitMd5 { secret, salt } => {
                let response = frontend::password(body).map_err(malformed)?;
                let right = secret
                    .as_ref()
                    .and_then(|secret| secret.check_md5(&self.wish.user, salt, response))
                    .unwrap_or(false);
                if right {
                    self.proven = secret.map(Credential::Secret);
                    self.accept()
                } else {
                    Err(self.wrong_password())
                }
            }
            Stage::AwaitSaslInitial { verifier, known } => {
                let initial = frontend::sasl_initial(body).map_err(malformed)?;
                let binding = match (initial.mechanism, &self.identity.end_point) {
                    (SCRAM_SHA_256, None) => Binding::Unable,
                    (SCRAM_SHA_256, Some(_)) => Binding::Unused,
                    (SCRAM_SHA_256_PLUS, Some(hash)) => Binding::EndPoint(hash),
                    _ => {
                        let why = "client selected an invalid SASL mechanism";
                        return Err(Refused::protocol(why));
                    }
                };
                let first = initial.response.unwrap_or_default();
                let (server, message) =
                    ScramServer::start(&verifier, first, nonce, binding).map_err(unbound)?;
                reply::put_auth_sasl_continue(out, &message);
                let server_key = verifier.server_key;
                self.stage = Stage::AwaitSaslFinal { server, server_key, known };
                Ok(Answer::More)
            }
            Stage::AwaitSaslFinal { server, server_key, known } => {
                let response = frontend::sasl_response(body).map_err(malformed)?;
                let (message, client_key) = match server.finish(response) {
                    Ok(finished) => finished,
                    Err(error @ ScramError::ChannelBindingMismatch) => return Err(unbound(error)),
                    Err(_) => return Err(self.wrong_sasl()),
                };
                self.proven = Some(match known {
                    Known::No => return Err(self.wrong_sasl()),
                    Known::Verifier => {
                        Credential::Keys(ScramKeys::from_client_key(client_key, server_key))
                    }
                    Known::Password(password) => Credential::Secret(Secret::Plain(password)),
                });
                reply::put_auth_sasl_final(out, &message);
                self.accept()
            }
            _ => Err(Refused::protocol("unexpected password response")),
        }
    }

    /// The answer to [`Answer::Check`].
    pub fn checked(&mut self, right: bool) -> Result<(), Refused> {
        if !right {
            return Err(self.wrong_password());
        }
        self.stage = Stage::Accepted;
        Ok(())
    }

    /// The secret of the challenge was found a while ago: before the client is refused for it,
    /// [`Login::again`] is to be told what it is now.
    pub fn is_kept(&mut self, secret: Option<Secret>) {
        self.kept = Some(Box::new(Kept { secret, answered: Answered::Nothing }));
    }

    /// Whether a wrong proof may be due to a secret that has changed.
    pub fn may_have_changed(&self) -> bool {
        self.kept.is_some()
    }

    fn note_answer(&mut self, body: &[u8]) {
        let Some(kept) = &mut self.kept else { return };
        kept.answered = match &self.stage {
            Stage::AwaitPassword { .. } => Answered::Password(body.to_vec()),
            Stage::AwaitMd5 { salt, .. } => Answered::Md5 { response: body.to_vec(), salt: *salt },
            _ => Answered::Nothing,
        };
    }

    /// The client's proof was wrong for the secret that was known; this is what it is now.
    pub fn again(&mut self, secret: Option<Secret>) -> Result<Answer, Refused> {
        let Some(kept) = self.kept.take() else { return Err(self.wrong_password()) };
        if kept.secret == secret {
            return Err(self.wrong_password());
        }
        let body = match (kept.answered, &secret) {
            (Answered::Password(body), _) => {
                self.stage = Stage::AwaitPassword { secret };
                body
            }
            (Answered::Md5 { response, salt }, None | Some(Secret::Plain(_) | Secret::Md5(_))) => {
                self.stage = Stage::AwaitMd5 { secret, salt };
                response
            }
            _ => {
                let user = &self.wish.user;
                let message = format!("the password of user \"{user}\" has just been changed");
                return Err(Refused::new(sqlstate::CANNOT_CONNECT_NOW, message)
                    .hint("Connect again. [P0324]"));
            }
        };
        // Neither needs a nonce, or has more to say.
        self.answer(tag::PASSWORD, &body, "", &mut Vec::new())
    }

    fn accept(&mut self) -> Result<Answer, Refused> {
        self.stage = Stage::Accepted;
        Ok(Answer::Accepted)
    }

    fn wrong_sasl(&self) -> Refused {
        self.wrong_password().theirs("SASL authentication failed")
    }

    /// PostgreSQL's words, the same for an unknown user.
    fn wrong_password(&self) -> Refused {
        Refused::new(
            sqlstate::INVALID_PASSWORD,
            format!("password authentication failed for user \"{}\"", self.wish.user),
        )
        .theirs("password authentication failed")
    }
}

impl Default for Login {
    fn default() -> Self {
        Login::new()
    }
}

/// `plus`: the exchange can be bound to its TLS connection.
fn sasl(verifier: ScramVerifier, known: Known, plus: bool, out: &mut Vec<u8>) -> Stage {
    let offered: &[&str] = match plus {
        true => &[SCRAM_SHA_256_PLUS, SCRAM_SHA_256],
        false => &[SCRAM_SHA_256],
    };
    reply::put_auth_sasl(out, offered);
    Stage::AwaitSaslInitial { verifier, known }
}

/// Why an exchange ends before the proof counts, in PostgreSQL's words where it has some.
fn unbound(error: ScramError) -> Refused {
    let refuse = |why: &str| {
        Refused::new(sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, why)
            .hint("Somebody between client and Pondage ends TLS, or changes it. [P0323]")
    };
    match error {
        ScramError::ChannelBindingDeclined => refuse("SCRAM channel binding negotiation error")
            .detail(
                "The client supports SCRAM channel binding but thinks the server does not.  \
                 However, this server does support channel binding.",
            ),
        ScramError::ChannelBindingMismatch => refuse("SCRAM channel binding check failed"),
        error => Refused::protocol(format!("SCRAM: {error}")),
    }
}

/// Bytes behind an encryption request were sent before the answer to it: whoever injected them
/// must not have them read as if they had come encrypted (CVE-2021-23214).
fn alone(bytes: &[u8], length: usize, what: &str) -> Result<(), Refused> {
    if bytes.len() == length {
        return Ok(());
    }
    Err(Refused::protocol(format!("received unencrypted data after {what}"))
        .detail("This could be either a client-software bug or evidence of an attempted man-in-the-middle attack."))
}

fn wish(startup: &startup::Startup<'_>, tls: TlsState, out: &mut Vec<u8>) -> Result<Wish, Refused> {
    if startup.major != 3 {
        return Err(Refused::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!(
                "unsupported frontend protocol {}.{}: server supports 3.0 to 3.{NEWEST_MINOR}",
                startup.major, startup.minor
            ),
        ));
    }
    if tls.required && !tls.active {
        return Err(Refused::new(
            sqlstate::INVALID_AUTHORIZATION_SPECIFICATION,
            "this server accepts only TLS connections",
        )
        .hint("Set sslmode=require in the client. [P0301]")
        .theirs("SSL required"));
    }
    let mut wish = Wish { long_key: startup.minor >= 2, ..Wish::default() };
    let mut unknown = Vec::new();
    for (name, value) in startup.params() {
        match name {
            "user" => wish.user = value.to_owned(),
            "database" => wish.database = value.to_owned(),
            "replication" => wish.replication = replication(value)?,
            "options" => {
                let settings = options::parse(value).map_err(|word| {
                    Refused::new(
                        sqlstate::INVALID_PARAMETER_VALUE,
                        format!("unsupported command-line argument \"{word}\" in start-up options"),
                    )
                    .hint("Pondage takes -c name=value and --name=value. [P0302]")
                    .theirs(
                        "unsupported options startup parameter: only '-c config=val' and \
                         '--config=val' are allowed",
                    )
                })?;
                wish.optional.extend(settings.iter().map(|(name, _)| name.clone()));
                wish.settings.extend(settings);
            }
            name if name.starts_with("_pq_.") => unknown.push(name),
            name if options::is_name(name) => {
                wish.settings.push((name.to_owned(), value.to_owned()));
            }
            name => {
                return Err(Refused::new(
                    sqlstate::INVALID_PARAMETER_VALUE,
                    format!("invalid start-up parameter name \"{}\"", name.escape_default()),
                ))
            }
        }
    }
    for (name, value) in &mut wish.settings {
        // Some drivers check what is reported, and whether statements may be shared depends on it.
        if name.eq_ignore_ascii_case("client_encoding") {
            *value = encoding::as_reported(value);
        }
    }
    if wish.user.is_empty() {
        return Err(Refused::new(
            sqlstate::INVALID_AUTHORIZATION_SPECIFICATION,
            "no PostgreSQL user name specified in startup packet",
        )
        .theirs("no username supplied"));
    }
    if wish.database.is_empty() {
        wish.database.clone_from(&wish.user);
    }
    // Source: `ProcessStartupPacket` of PostgreSQL 18.
    if startup.minor > NEWEST_MINOR || !unknown.is_empty() {
        reply::put_negotiate(out, startup.minor.min(NEWEST_MINOR).into(), &unknown);
    }
    Ok(wish)
}

/// Source: `ProcessStartupPacket`: "database" is logical replication, else a boolean.
fn replication(value: &str) -> Result<Option<String>, Refused> {
    match value.to_ascii_lowercase().as_str() {
        "database" | "true" | "on" | "yes" | "1" => Ok(Some(value.to_owned())),
        "false" | "off" | "no" | "0" => Ok(None),
        _ => Err(Refused::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"replication\": \"{}\"", value.escape_default()),
        )
        .hint("Valid values are: \"false\", 0, \"true\", 1, \"database\".")),
    }
}

#[cfg(test)]
mod tests;
