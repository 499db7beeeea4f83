//! Who may come in by this door, and when.
//!
//! The rules are those of the PostgreSQL door, for the database that has the data. What they ask
//! for beside a certificate is a password, shown: Redis has nothing else.

use super::client::Client;
use crate::config::{AuthMethod, Config};
use crate::hba::{Asked, Method, Replication, Subject};
use crate::link::Ends;
use crate::session::login::{Proof, Refused};
use crate::worker::terms::{failed, terms};

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller<'a> {
    pub ends: &'a Ends,
    pub tls: bool,
    /// Of the certificate that it has shown.
    pub subject: Option<&'a Subject>,
}

impl Client {
    pub(super) fn caller(&self) -> Caller<'_> {
        Caller { ends: &self.ends, tls: self.tls.is_some(), subject: self.subject.as_deref() }
    }
}

/// What a user has to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Nothing,
    Password,
}

/// What `user` has to show to come in.
///
/// # Errors
/// Why it can't come in from there, whatever it shows.
pub(super) fn wanted(config: &Config, caller: Caller<'_>, user: &str) -> Result<Wanted, Refused> {
    let auth = &config.auth;
    let asked = Asked {
        user,
        database: config.redis.database.as_deref().unwrap_or_default(),
        replication: Replication::No,
        ends: caller.ends,
        tls: caller.tls,
    };
    let terms = terms(auth, &asked)?;
    terms.check_certificate(auth, user, caller.subject)?;
    if terms.method == Method::Peer {
        let why = "The method peer works on Unix sockets only.";
        return Err(failed("Peer", user).detail(why));
    }
    if terms.proof() != Proof::Nothing {
        return Ok(Wanted::Password);
    }
    let known_only = auth.known_only && auth.method != AuthMethod::Any;
    if known_only && config.secret(user).is_none() {
        return Err(failed("\"trust\"", user).hint("auth.known_only is set. [P0331]"));
    }
    Ok(Wanted::Nothing)
}

/// Who a client is before it has said so, and whether it may come in as that.
pub(super) fn first_user<'a>(config: &'a Config, caller: Caller<'_>) -> (&'a str, bool) {
    let default = config.redis.default_user.as_deref();
    let trusted = |user: &str| wanted(config, caller, user) == Ok(Wanted::Nothing);
    match (default, config.auth.method) {
        (Some(user), _) if trusted(user) => (user, true),
        // There are no users, so to say.
        (None, AuthMethod::Trust | AuthMethod::Any) => {
            (super::login::DEFAULT, !config.auth.known_only)
        }
        _ => (super::login::DEFAULT, false),
    }
}
