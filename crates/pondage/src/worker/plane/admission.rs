//! Whether a client may try to log in, and how it has to prove who it is.
//!
//! ```text
//! start --> waits, if its like have failed --> rule --> certificate --> peer --> challenge
//! ```

use wire::pg::sqlstate;

use super::login::CONSOLE;
use super::{Effect, Plane};
use crate::config::AuthMethod;
use crate::control::messages::Ref;
use crate::hba::{Asked, Certificate, Identity, Method, NotMapped, Replication, NAME_BYTES_MAX};
use crate::link::Ends;
use crate::session::client::{Client, Hold, Phase};
use crate::session::login::{Login, Proof, Refused};
use crate::worker::suspects::Try;

/// Users of the console that need no secret at a Unix socket, if they run as the system user that
/// Pondage runs as.
///
/// Source: PgBouncer's documentation, "Admin console"; `pgbouncer` is its name for this user.
const OWNERS: [&str; 2] = ["pondage", "pgbouncer"];

/// What is asked of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Terms {
    method: Method,
    certificate: Certificate,
    identity: Identity,
    map: Option<String>,
    /// `scram-sha-256` of a rule is never md5, as it may be with `auth.method`.
    scram_only: bool,
}

impl Terms {
    fn of(method: Method) -> Terms {
        Terms {
            method,
            certificate: match method {
                Method::Cert => Certificate::VerifyFull,
                _ => Certificate::Any,
            },
            identity: Identity::CommonName,
            map: None,
            scram_only: false,
        }
    }

    fn proof(&self) -> Proof {
        match self.method {
            // Nothing more is asked of who has shown a certificate, or is known to the system.
            Method::Trust | Method::Cert | Method::Peer => Proof::Nothing,
            Method::Password => Proof::Password,
            Method::Md5 => Proof::Md5,
            Method::Scram if self.scram_only => Proof::ScramOnly,
            Method::Scram | Method::Reject => Proof::Scram,
        }
    }
}

impl Plane {
    /// A client has said who it wants to be. Whose like has failed too often waits.
    pub(super) fn knock(&mut self, slot: u32) {
        let client = &self.clients[slot];
        let Phase::LoggingIn(login) = &client.phase else { return };
        let attempt = self.common.suspects().attempt(&client.ends, &login.wish.user, self.now);
        match attempt {
            Try::Now => self.admit(slot),
            Try::At(turn) => {
                self.clients[slot].hold = Hold::Control;
                let client = self.reference(slot);
                self.delayed.push((turn, client));
            }
            Try::Never => {
                let refused = Refused::new(
                    sqlstate::TOO_MANY_CONNECTIONS,
                    "too many failed log-ins from this address",
                )
                .hint("Try again in a minute. [P0320]");
                self.refuse(slot, &refused);
            }
        }
    }

    /// Those whose wait is over go on.
    pub(super) fn admit_delayed(&mut self) {
        if self.delayed.is_empty() {
            return;
        }
        let now = self.now;
        let due: Vec<Ref> = self
            .delayed
            .extract_if(.., |(turn, _)| *turn <= now)
            .map(|(_, client)| client)
            .collect();
        for client in due {
            let Some(found) = self.clients.find(client.slot, client.generation) else { continue };
            found.hold = Hold::No;
            self.admit(client.slot);
        }
    }

    fn admit(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        let Phase::LoggingIn(login) = &client.phase else { return };
        let wish = &login.wish;
        if matches!(client.ends, Ends::Unix { .. })
            && CONSOLE.contains(&wish.database.as_str())
            && OWNERS.contains(&wish.user.as_str())
        {
            client.hold = Hold::Control;
            return self.effects.push(Effect::AskOwner(slot));
        }
        self.admit_on_terms(slot);
    }

    /// Whoever could end this process may use its console.
    pub fn owner_asked(&mut self, slot: u32, is_owner: bool) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        client.hold = Hold::No;
        let Phase::LoggingIn(login) = &mut client.phase else { return };
        login.is_owner = is_owner;
        if is_owner {
            login.proof = Proof::Nothing;
            return self.look_up(slot);
        }
        self.admit_on_terms(slot);
    }

    fn admit_on_terms(&mut self, slot: u32) {
        let terms = match self.terms(slot) {
            Ok(terms) => terms,
            Err(refused) => return self.refuse(slot, &refused),
        };
        let client = &mut self.clients[slot];
        let Phase::LoggingIn(login) = &mut client.phase else { return };
        login.proof = terms.proof();
        if let Err(refused) = self.check_certificate(slot, &terms) {
            return self.refuse(slot, &refused);
        }
        if terms.method != Method::Peer {
            return self.look_up(slot);
        }
        let client = &mut self.clients[slot];
        let Phase::LoggingIn(login) = &mut client.phase else { return };
        if matches!(client.ends, Ends::Tcp { .. }) {
            let refused = failed("Peer", &login.wish.user)
                .detail("The method peer works on Unix sockets only.");
            return self.refuse(slot, &refused);
        }
        login.map = terms.map;
        client.hold = Hold::Control;
        self.effects.push(Effect::AskPeer(slot));
    }

    /// The control plane has found who the process at the other end of a Unix socket is.
    pub(super) fn peer_named(&mut self, client: Ref, name: Result<String, String>) {
        let Some(found) = self.clients.find(client.slot, client.generation) else { return };
        found.hold = Hold::No;
        let Phase::LoggingIn(login) = &mut found.phase else { return };
        let (user, map) = (login.wish.user.clone(), login.map.take());
        let checked = name
            .map_err(NotMapped)
            .and_then(|name| self.config.auth.maps.check(map.as_deref(), &name, &user));
        match checked {
            Ok(()) => self.look_up(client.slot),
            Err(NotMapped(why)) => {
                tracing::info!(event = "peer_refused", %user, "{why}");
                self.refuse(client.slot, &failed("Peer", &user));
            }
        }
    }

    /// What `auth.method`, or the first rule that fits, asks of the client.
    fn terms(&self, slot: u32) -> Result<Terms, Refused> {
        let auth = &self.config.auth;
        let of = |method| Ok(Terms { map: auth.ident_map.clone(), ..Terms::of(method) });
        match auth.method {
            AuthMethod::Trust => of(Method::Trust),
            AuthMethod::Password => of(Method::Password),
            AuthMethod::Md5 => of(Method::Md5),
            AuthMethod::Scram => of(Method::Scram),
            AuthMethod::Cert => of(Method::Cert),
            AuthMethod::Peer => of(Method::Peer),
            AuthMethod::Hba => self.terms_of_rules(slot),
        }
    }

    fn terms_of_rules(&self, slot: u32) -> Result<Terms, Refused> {
        let client = &self.clients[slot];
        let (Phase::LoggingIn(login), Some(rules)) = (&client.phase, &self.config.auth.hba) else {
            return Err(nobody());
        };
        let wish = &login.wish;
        // PostgreSQL cuts longer names: they would pass by the rules for what they are cut to.
        if wish.user.len() > NAME_BYTES_MAX || wish.database.len() > NAME_BYTES_MAX {
            return Err(nobody().detail(format!(
                "Names of users and databases have at most {NAME_BYTES_MAX} bytes."
            )));
        }
        let rule = rules.find(&asked(client, login));
        match rule {
            None => Err(no_entry(client, login)),
            Some(rule) if rule.method == Method::Reject => {
                let (file, line) = (&rule.place.file, rule.place.line);
                tracing::info!(event = "hba_rejected", user = %wish.user, rule = %format_args!("{file}:{line}"));
                Err(rejected(client, login))
            }
            Some(rule) => Ok(Terms {
                method: rule.method,
                certificate: rule.certificate,
                identity: rule.identity,
                map: rule.map.clone(),
                scram_only: rule.method == Method::Scram,
            }),
        }
    }

    /// Source: `ClientAuthentication` and `CheckCertAuth` in `src/backend/libpq/auth.c`.
    fn check_certificate(&self, slot: u32, terms: &Terms) -> Result<(), Refused> {
        let Phase::LoggingIn(login) = &self.clients[slot].phase else { return Ok(()) };
        if terms.certificate == Certificate::Any {
            return Ok(());
        }
        let Some(subject) = &login.identity.subject else {
            return Err(Refused::new(
                sqlstate::INVALID_AUTHORIZATION_SPECIFICATION,
                "connection requires a valid client certificate",
            ));
        };
        if terms.certificate == Certificate::VerifyCa {
            return Ok(());
        }
        let user = &login.wish.user;
        let name = match terms.identity {
            Identity::CommonName => subject.common_name.as_deref(),
            Identity::DistinguishedName => Some(subject.distinguished_name.as_str()),
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(
                failed("certificate", user).detail("The client's certificate has no such name.")
            );
        };
        self.config.auth.maps.check(terms.map.as_deref(), name, user).map_err(|NotMapped(why)| {
            tracing::info!(event = "certificate_refused", %user, "{why}");
            failed("certificate", user)
        })
    }
}

fn asked<'a>(client: &'a Client, login: &'a Login) -> Asked<'a> {
    let wish = &login.wish;
    Asked {
        user: &wish.user,
        database: &wish.database,
        replication: match &wish.replication {
            None => Replication::No,
            Some(kind) if kind.eq_ignore_ascii_case("database") => Replication::Logical,
            Some(_) => Replication::Physical,
        },
        ends: &client.ends,
        tls: client.tls.is_some(),
    }
}

/// PostgreSQL's words.
fn failed(method: &str, user: &str) -> Refused {
    let message = format!("{method} authentication failed for user \"{user}\"");
    Refused::new(sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, message)
}

fn nobody() -> Refused {
    Refused::new(sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, "no rule lets this client in")
}

fn no_entry(client: &Client, login: &Login) -> Refused {
    let who = who(client, login);
    let message = match asked(client, login).replication {
        Replication::Physical => {
            format!("no pg_hba.conf entry for replication connection from {who}")
        }
        _ => format!("no pg_hba.conf entry for {who}"),
    };
    Refused::new(sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, message)
        .hint("The file is auth.hba_file. [P0318]")
}

fn rejected(client: &Client, login: &Login) -> Refused {
    let who = who(client, login);
    let message = match asked(client, login).replication {
        Replication::Physical => format!("pg_hba.conf rejects replication connection for {who}"),
        _ => format!("pg_hba.conf rejects connection for {who}"),
    };
    Refused::new(sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, message)
        .hint("The file is auth.hba_file. [P0319]")
}

/// Source: `ClientAuthentication` in `src/backend/libpq/auth.c`.
fn who(client: &Client, login: &Login) -> String {
    let host = match &client.ends {
        Ends::Unix { .. } => "[local]".to_owned(),
        Ends::Tcp { remote, .. } => remote.ip().to_canonical().to_string(),
    };
    let wish = &login.wish;
    let encryption = if client.tls.is_some() { "SSL encryption" } else { "no encryption" };
    match asked(client, login).replication {
        Replication::Physical => format!("host \"{host}\", user \"{}\", {encryption}", wish.user),
        _ => format!(
            "host \"{host}\", user \"{}\", database \"{}\", {encryption}",
            wish.user, wish.database
        ),
    }
}
