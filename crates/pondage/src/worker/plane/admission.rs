//! Whether a client may try to log in, and how it has to prove who it is.
//!
//! ```text
//! start --> waits, if its like have failed --> terms --> certificate --> peer --> challenge
//! ```

use wire::pg::sqlstate;

use super::login::CONSOLE;
use super::{Effect, Plane};
use crate::config::AuthMethod;
use crate::control::messages::Ref;
use crate::hba::{Asked, Method, NotMapped, Replication};
use crate::link::Ends;
use crate::session::client::{Client, Hold, Phase};
use crate::session::login::{Login, Proof, Refused};
use crate::worker::suspects::{Try, TOO_MANY_FAILED, TRY_LATER};
use crate::worker::terms::{failed, terms};

/// Users of the console that need no secret at a Unix socket, if they run as the system user that
/// Pondage runs as.
///
/// Source: PgBouncer's documentation, "Admin console"; `pgbouncer` is its name for this user.
const OWNERS: [&str; 2] = ["pondage", "pgbouncer"];

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
                let refused =
                    Refused::new(sqlstate::TOO_MANY_CONNECTIONS, TOO_MANY_FAILED).hint(TRY_LATER);
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
        if let Err(refused) = self.name_anybody(slot) {
            return self.refuse(slot, &refused);
        }
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

    /// With the method `any` a client is whom its database works as, whatever it calls itself.
    ///
    /// Source: `set_pool` in `src/client.c` of PgBouncer.
    fn name_anybody(&mut self, slot: u32) -> Result<(), Refused> {
        let config = &self.config;
        let Phase::LoggingIn(login) = &mut self.clients[slot].phase else { return Ok(()) };
        let database = login.wish.database.as_str();
        if config.auth.method != AuthMethod::Any || CONSOLE.contains(&database) {
            return Ok(());
        }
        let section = config.databases.get(database).or_else(|| config.databases.get("*"));
        match section.and_then(|section| section.upstream.user.as_ref()) {
            Some(user) => login.wish.user.clone_from(user),
            None => {
                let message = format!("no user is configured for database \"{database}\"");
                let code = sqlstate::INVALID_AUTHORIZATION_SPECIFICATION;
                return Err(Refused::new(code, message).hint(
                    "With auth.method any, the section of the database needs a user. [P0220]",
                ));
            }
        }
        Ok(())
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
        let client = &self.clients[slot];
        let Phase::LoggingIn(login) = &client.phase else { return };
        let auth = &self.config.auth;
        let terms = terms(auth, &asked(client, login)).and_then(|terms| {
            let subject = login.identity.subject.as_deref();
            terms.check_certificate(auth, &login.wish.user, subject).map(|()| terms)
        });
        let terms = match terms {
            Ok(terms) => terms,
            Err(refused) => return self.refuse(slot, &refused),
        };
        let known_only = auth.known_only && auth.method != AuthMethod::Any;
        let client = &mut self.clients[slot];
        let Phase::LoggingIn(login) = &mut client.phase else { return };
        login.proof = terms.proof();
        login.must_be_known = known_only && login.proof == Proof::Nothing;
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
