//! Clients that log in.

use std::sync::Arc;

use backend::pool::Budget;
use backend::settings::Settings;
use wire::pg::auth::{ScramVerifier, Secret};
use wire::pg::{backend as reply, frame, sqlstate};

use super::journal::Address;
use super::{replies, Count, Effect, Greeting, Plane};
use crate::config::{AuthMethod, ListenTlsMode, PoolConfig, Refusal};
use crate::control::authquery::LookedUp;
use crate::control::messages::{ConsoleUser, OpenError, Shutdown, ToControl, ToWorker};
use crate::session::client::{Client, Guest, Hold, Phase, NONE};
use crate::session::login::{
    Answer, Challenge, Chance, First, Proof, Refused, TlsState, PASSWORD_BYTES_MAX,
};
use crate::session::trace::Trace;
use crate::worker::terms::failed;

/// Databases that are the console.
pub const CONSOLE: [&str; 3] = ["pondage", "pgbouncer", "admin"];

/// The first byte of a TLS connection: a client that does not ask first (direct TLS). No start-up
/// packet begins with it, since it would be 385 MB long. Source: RFC 8446, 5.1.
const TLS_HANDSHAKE: u8 = 0x16;

/// Verifiers derived from plain passwords that a worker keeps; each is about 200 bytes.
const VERIFIERS_MAX: usize = 10_000;

impl Client {
    /// The console's, or one at a Unix socket that has not said yet what it wants: a shutdown does
    /// not wait for it.
    pub(super) fn is_for_console(&self) -> bool {
        match &self.phase {
            Phase::Console(_) => true,
            Phase::LoggingIn(login) if login.awaits_first_packet() => {
                matches!(self.ends, crate::link::Ends::Unix { .. })
            }
            Phase::LoggingIn(login) => CONSOLE.contains(&login.wish.database.as_str()),
            _ => false,
        }
    }
}

impl Plane {
    /// Takes what a client sends while it logs in; says how many bytes it took.
    pub(super) fn login_input(&mut self, slot: u32, bytes: &[u8]) -> usize {
        let client = &mut self.clients[slot];
        let Phase::LoggingIn(login) = &mut client.phase else { return 0 };
        if login.awaits_proxy {
            return self.proxy_header(slot, bytes);
        }
        if login.awaits_first_packet() {
            return self.first_packet(slot, bytes);
        }
        if !login.awaits_client() {
            return 0;
        }
        let malformed = |what: &str| Refused::new(sqlstate::PROTOCOL_VIOLATION, what);
        let header = match frame::header(bytes) {
            Ok(Some(header)) if header.total <= frame::HEADER_BYTES + PASSWORD_BYTES_MAX => header,
            Ok(None) => return 0,
            _ => {
                self.refuse(slot, &malformed("invalid password packet size"));
                return bytes.len();
            }
        };
        if bytes.len() < header.total {
            return 0;
        }
        let nonce = self.nonce();
        self.answer(slot, header.tag, &bytes[frame::HEADER_BYTES..header.total], &nonce);
        header.total
    }

    fn tls_state(&self, active: bool) -> TlsState {
        let mode = self.config.listen.tls.mode;
        TlsState {
            offered: self.tls_ready && mode != ListenTlsMode::Disable && !active,
            required: matches!(mode, ListenTlsMode::Require | ListenTlsMode::VerifyClient),
            active,
        }
    }

    fn first_packet(&mut self, slot: u32, bytes: &[u8]) -> usize {
        let unix = matches!(self.clients[slot].ends, crate::link::Ends::Unix { .. });
        let mut tls = self.tls_state(self.clients[slot].tls.is_some());
        if unix {
            // As in PostgreSQL, TLS makes no sense on a Unix socket.
            (tls.offered, tls.required) = (false, false);
        }
        if tls.offered && bytes.first() == Some(&TLS_HANDSHAKE) {
            self.clients[slot].hold = Hold::Control;
            self.effects.push(Effect::StartTls { slot, early: bytes.to_vec() });
            return bytes.len();
        }
        let client = &mut self.clients[slot];
        let Phase::LoggingIn(login) = &mut client.phase else { return 0 };
        replies::ensure_out(&mut client.out, &mut self.buffers);
        let first = login.first_packet(bytes, tls, &mut client.out);
        client.long_key = login.wish.long_key;
        if !client.out.is_empty() {
            replies::queue_out(client, slot, &mut self.written_clients);
        }
        match first {
            Err(refused) => self.refuse(slot, &refused),
            Ok(None) => return 0,
            Ok(Some((First::Declined, length))) => return length,
            Ok(Some((First::Tls, length))) => {
                self.clients[slot].hold = Hold::Control;
                self.effects.push(Effect::StartTls { slot, early: Vec::new() });
                return length;
            }
            Ok(Some((First::Cancel { pid, key }, _))) => {
                self.cancel_requested(slot, pid, &key);
            }
            Ok(Some((First::Start, length))) => {
                self.start(slot);
                return length;
            }
        }
        bytes.len()
    }

    /// The start-up packet is there: is there room?
    fn start(&mut self, slot: u32) {
        let ending = self.shutdown.is_some_and(|how| how != Shutdown::HandedOver);
        if ending && !self.clients[slot].is_for_console() {
            let refused = Refused::new(sqlstate::CANNOT_CONNECT_NOW, "Pondage is shutting down")
                .hint("Connect again later. [P0311]")
                .theirs("pooler is shutting down");
            return self.refuse(slot, &refused);
        }
        let max = self.config.runtime.max_clients;
        if !self.common.clients.take(max) {
            let refused =
                Refused::new(sqlstate::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
                    .detail(format!("All {max} places for clients are taken."))
                    .hint("Raise runtime.max_clients (PgBouncer's max_client_conn); see SHOW CLIENTS. [P0312]")
                    .theirs("no more connections allowed (max_client_conn)");
            return self.refuse(slot, &refused);
        }
        self.clients[slot].counted = true;
        self.knock(slot);
    }

    /// The client may try. What secret has to be shown?
    pub(super) fn look_up(&mut self, slot: u32) {
        let Phase::LoggingIn(login) = &self.clients[slot].phase else { return };
        let (proof, must_be_known) = (login.proof, login.must_be_known);
        let (user, database) = (login.wish.user.clone(), login.wish.database.clone());
        if CONSOLE.contains(&database.as_str()) {
            let known = self.is_admin(&user) || self.config.is_stats(&user);
            if !known && !login.is_owner {
                let refused = Refused::new(
                    sqlstate::INVALID_AUTHORIZATION_SPECIFICATION,
                    format!("user \"{user}\" may not use the console"),
                )
                .hint("List the user in auth.admin_users or auth.stats_users. [P0313]")
                .theirs("not allowed");
                return self.refuse(slot, &refused);
            }
        }
        let known = self.config.secret(&user).cloned();
        let asks = known.is_none() && (proof != Proof::Nothing || must_be_known);
        let asked = match asks && self.config.auth_query(&database).is_some() {
            true => self.pool_config(&database, &user).ok(),
            false => None,
        };
        match asked {
            Some(config) => self.ask_for_secret(slot, config, user, false),
            // A database that does not exist is told of only to who has proven who it is.
            None => self.challenge(slot, known, None),
        }
    }

    /// May the user run every command of the console?
    fn is_admin(&self, user: &str) -> bool {
        self.config.auth.method == AuthMethod::Any || self.config.is_admin(user)
    }

    /// The database knows the secret; `again`: what is known of it does not count.
    fn ask_for_secret(&mut self, slot: u32, config: Arc<PoolConfig>, user: String, again: bool) {
        self.clients[slot].hold = Hold::Control;
        let client = self.reference(slot);
        let ask = ToControl::AuthQuery { client, config, user, again };
        self.effects.push(Effect::Control(ask));
    }

    /// What a pool lives by: as it is known here, else from the configuration.
    /// For the console, by which its users are looked up.
    fn pool_config(&self, database: &str, user: &str) -> Result<Arc<PoolConfig>, Refusal> {
        if CONSOLE.contains(&database) {
            return self.config.console_pool(database).ok_or(Refusal::UnknownDatabase);
        }
        match self.known_pool(database, self.config.pool_user(database, user)) {
            Some(at) if !self.pools[at as usize].retired => {
                Ok(self.pools[at as usize].config.clone())
            }
            _ => self.config.pool(database, user),
        }
    }

    fn nonce(&mut self) -> String {
        use rand::distr::{Alphanumeric, SampleString};
        Alphanumeric.sample_string(&mut self.random, 24)
    }

    fn challenge(&mut self, slot: u32, secret: Option<Secret>, verifier: Option<ScramVerifier>) {
        let nonce = self.nonce();
        let salt: [u8; 4] = rand::Rng::random(&mut self.random);
        let Some(client) = self.clients.get_mut(slot) else { return };
        let Phase::LoggingIn(login) = &mut client.phase else { return };
        if login.must_be_known && secret.is_none() {
            let refused = stranger(&login.wish.user);
            return self.refuse(slot, &refused);
        }
        let derived = match (&secret, verifier) {
            (_, Some(verifier)) => Some(verifier),
            (Some(Secret::Plain(password)), None) => self
                .verifiers
                .get(&login.wish.user)
                .filter(|(known, _)| known == password)
                .map(|(_, verifier)| verifier.clone()),
            _ => None,
        };
        let mut out = Vec::new();
        let chance = Chance { salt, nonce: &nonce, mock_key: &self.mock_key };
        let challenge = login.challenge(login.proof, secret, derived, &chance, &mut out);
        client.hold = Hold::No;
        match challenge {
            Challenge::Sent => self.tell(slot, |to| to.extend_from_slice(&out)),
            Challenge::Accepted => self.accepted(slot),
            Challenge::NeedsVerifier { password } => {
                self.clients[slot].hold = Hold::Control;
                let client = self.reference(slot);
                self.effects.push(Effect::Control(ToControl::Derive { client, password }));
            }
        }
    }

    fn answer(&mut self, slot: u32, tag: u8, body: &[u8], nonce: &str) {
        let Phase::LoggingIn(login) = &mut self.clients[slot].phase else { return };
        let mut out = Vec::new();
        let answer = login.answer(tag, body, nonce, &mut out);
        if !out.is_empty() {
            self.tell(slot, |to| to.extend_from_slice(&out));
        }
        self.judged_proof(slot, answer);
    }

    fn judged_proof(&mut self, slot: u32, answer: Result<Answer, Refused>) {
        match answer {
            Ok(Answer::More) => {}
            Ok(Answer::Accepted) => self.accepted(slot),
            Ok(Answer::Check { password, secret }) => {
                let Phase::LoggingIn(login) = &self.clients[slot].phase else { return };
                let user = login.wish.user.clone();
                self.clients[slot].hold = Hold::Control;
                let client = self.reference(slot);
                let check = ToControl::CheckPassword { client, user, password, secret };
                self.effects.push(Effect::Control(check));
            }
            Err(refused) => self.refuse_proof(slot, &refused),
        }
    }

    /// A proof was wrong. If the secret was found a while ago it may have changed since.
    fn refuse_proof(&mut self, slot: u32, refused: &Refused) {
        let Phase::LoggingIn(login) = &self.clients[slot].phase else { return };
        let wrong = refused.code == sqlstate::INVALID_PASSWORD;
        let config = match wrong && login.may_have_changed() {
            true => self.pool_config(&login.wish.database, &login.wish.user).ok(),
            false => None,
        };
        let Some(config) = config else { return self.refuse(slot, refused) };
        let user = login.wish.user.clone();
        self.ask_for_secret(slot, config, user, true);
    }

    /// What the user's secret is, at its log-in or after a wrong proof.
    fn looked_up(&mut self, slot: u32, LookedUp { known, secret, kept }: LookedUp) {
        let Phase::LoggingIn(login) = &mut self.clients[slot].phase else { return };
        login.must_be_known &= !known;
        if login.may_have_changed() {
            self.clients[slot].hold = Hold::No;
            let Phase::LoggingIn(login) = &mut self.clients[slot].phase else { return };
            let answer = login.again(secret);
            return self.judged_proof(slot, answer);
        }
        if kept {
            login.is_kept(secret.clone());
        }
        self.challenge(slot, secret, None);
    }

    /// Answers of the control plane to a log-in.
    pub(super) fn login_answer(&mut self, message: ToWorker) {
        match message {
            ToWorker::AuthAnswer { client, answer } => {
                if self.clients.find(client.slot, client.generation).is_none() {
                    return;
                }
                match answer {
                    Ok(found) => self.looked_up(client.slot, found),
                    Err(error) => {
                        let refused = Refused::new(
                            sqlstate::CONNECTION_FAILURE,
                            "the user could not be looked up",
                        )
                        .detail(error)
                        .hint("See auth.query in the configuration. [P0315]")
                        .theirs("bouncer config error");
                        self.refuse(client.slot, &refused);
                    }
                }
            }
            ToWorker::PasswordChecked { client, right } => {
                let Some(found) = self.clients.find(client.slot, client.generation) else { return };
                found.hold = Hold::No;
                let Phase::LoggingIn(login) = &mut found.phase else { return };
                match login.checked(right) {
                    Ok(()) => self.accepted(client.slot),
                    Err(refused) => self.refuse_proof(client.slot, &refused),
                }
            }
            ToWorker::Derived { client, password, verifier } => {
                let Some(found) = self.clients.find(client.slot, client.generation) else { return };
                let Phase::LoggingIn(login) = &found.phase else { return };
                let user = login.wish.user.clone();
                if self.verifiers.len() >= VERIFIERS_MAX {
                    self.verifiers.clear();
                }
                self.verifiers.insert(user, (password.clone(), verifier.clone()));
                self.challenge(client.slot, Some(Secret::Plain(password)), Some(verifier));
                self.resume_later(client.slot);
            }
            _ => {}
        }
    }

    /// The client is who it says. Into its pool, or to the console.
    fn accepted(&mut self, slot: u32) {
        let Phase::LoggingIn(login) = &self.clients[slot].phase else { return };
        let (user, database) = (login.wish.user.clone(), login.wish.database.clone());
        let proven = login.proven.clone();
        self.common.suspects().succeeded(&self.clients[slot].ends, &user);
        if CONSOLE.contains(&database.as_str()) {
            let admin = login.is_owner || self.is_admin(&user);
            if let Err(refused) = self.take_console_places(&user, admin) {
                return self.refuse(slot, &refused);
            }
            return self.greet_console(slot, ConsoleUser { user, database, admin, proven: None });
        }
        let wish = match &mut self.clients[slot].phase {
            Phase::LoggingIn(login) => login.wish.take_trace(),
            _ => return,
        };
        let traced = match wish {
            Ok(traced) => traced,
            Err(refused) => return self.refuse(slot, &refused),
        };
        let config = match self.pool_config(&database, &user) {
            Ok(config) => config,
            Err(Refusal::UnknownDatabase) => {
                return self.refuse(slot, &unknown_database(&database))
            }
        };
        let at = self.pool_of(config);
        let pool = &mut self.pools[at as usize];
        if pool.disabled {
            let refused = Refused::new(
                sqlstate::CANNOT_CONNECT_NOW,
                format!("database \"{database}\" is disabled"),
            )
            .hint("An administrator can ENABLE it on the console. [P0316]")
            .theirs(format!("database \"{database}\" is disabled"));
            return self.refuse(slot, &refused);
        }
        let guest = (pool.name.user != user).then(|| {
            let clients = self.common.budget(Count::UserClients, &user);
            Box::new(Guest { user: user.clone(), clients })
        });
        let mut places = pool.client_budgets.clone();
        if let (Some(guest), Some(place)) = (&guest, places.last_mut()) {
            *place = (guest.clients.clone(), self.config.max_clients_of(&user), "user");
        }
        for (taken, (budget, limit, what)) in places.iter().enumerate() {
            if budget.take(limit.unwrap_or(u32::MAX)) {
                continue;
            }
            places[..taken].iter().for_each(|(budget, _, _)| budget.give_back());
            return self.refuse(slot, &no_place(what, limit.unwrap_or(0)));
        }
        if let (Phase::LoggingIn(login), [_, ..]) =
            (&mut self.clients[slot].phase, &*pool.config.ignore_startup_parameters)
        {
            login.wish.ignore(&pool.config.ignore_startup_parameters);
        }
        let upstream = &pool.config.upstream;
        let stored = matches!(upstream.password, Some(Secret::Plain(_) | Secret::Md5(_)));
        let wanted = !stored && upstream.user == user;
        if wanted && proven.is_some() && proven != pool.proven {
            pool.proven = proven;
            // What has failed for want of it may work now.
            pool.failing = None;
        }
        pool.clients += 1;
        pool.totals.client_login_count += 1;
        self.reads_begin(slot, at);
        self.split_begins(slot, at);
        self.name_by_address(slot, at);
        let client = &mut self.clients[slot];
        client.pool = at;
        client.guest = guest;
        client.trace = traced.then(|| Box::new(Trace::from_start()));
        let Phase::LoggingIn(login) = std::mem::replace(&mut client.phase, Phase::Leaving) else {
            return;
        };
        client.phase = Phase::AwaitWelcome(login);
        client.hold = Hold::Waiting;
        client.asked = self.now;
        self.enter(slot, at);
    }

    fn enter(&mut self, slot: u32, at: u32) {
        let Phase::AwaitWelcome(login) = &self.clients[slot].phase else { return };
        if let Some(kind) = login.wish.replication.clone() {
            let mut parameters = login.wish.settings.clone();
            parameters.push(("replication".to_owned(), kind));
            return self.open_replication(slot, parameters);
        }
        let pool = &mut self.pools[at as usize];
        let permanent = pool.failing.as_ref().filter(|failing| failing.error.permanent).cloned();
        if pool.welcome.is_some() {
            self.greet(slot);
        } else if let Some(failing) = permanent {
            self.refuse_for(slot, &failing.error, Some(&failing));
        } else {
            pool.greeting.push(slot);
            self.welcome_from_others(at);
        }
        self.open_more(at);
    }

    /// Says all that PostgreSQL says at the end of a log-in, in one write.
    pub(super) fn greet(&mut self, slot: u32) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        let Phase::AwaitWelcome(login) = std::mem::replace(&mut client.phase, Phase::Pooled) else {
            return;
        };
        self.logging_in -= 1;
        client.hold = Hold::No;
        let pool = &mut self.pools[client.pool as usize];
        let Some(welcome) = &pool.welcome else { return };
        // Clients of one application say the same: what the last one got is made once.
        let known = pool.last_greeting.as_ref().is_some_and(|last| {
            last.wanted == login.wish.settings && Arc::ptr_eq(&last.welcome, welcome)
        });
        if !known {
            let wanted =
                login.wish.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let settable = wanted.filter(|(name, _)| !backend::settings::read_only(name));
            let start = Settings::default().overlaid(settable);
            let settings = self.settings.intern(welcome.overlaid(start.iter()));
            let start = (start != Settings::default()).then(|| self.settings.intern(start));
            pool.last_greeting = Some(Greeting {
                reported: parameter_statuses(&settings.restricted_to(welcome)),
                wanted: login.wish.settings.clone(),
                welcome: welcome.clone(),
                settings,
                start,
            });
        }
        let Some(greeting) = pool.last_greeting.take() else { return };
        client.settings = greeting.settings.clone();
        client.start = greeting.start.clone();
        self.greet_with(slot, &greeting.reported);
        if let Some(pool) = self.pools.get_mut(self.clients[slot].pool as usize) {
            pool.last_greeting = Some(greeting);
        }
        if !self.clients[slot].input.is_empty() {
            self.resume_later(slot);
        }
    }

    /// `reported`: the ParameterStatus messages.
    fn greet_with(&mut self, slot: u32, reported: &[u8]) {
        let (worker, key) = (self.worker, self.cancel_keys.of(&self.clients[slot]));
        self.tell(slot, |out| {
            reply::put_auth_ok(out);
            out.extend_from_slice(reported);
            reply::put_backend_key(out, key_number(worker, slot), &key);
            reply::put_ready(out, wire::pg::backend::TxStatus::Idle);
        });
        self.log_login(slot);
    }

    /// A replication client has its own server now, and keeps it.
    pub(super) fn greet_replication(&mut self, slot: u32, server: u32) {
        let client = &mut self.clients[slot];
        client.phase = Phase::Pooled;
        client.server = server;
        client.hold = Hold::No;
        self.logging_in -= 1;
        let conn = &mut self.servers[server];
        conn.client = slot;
        conn.place = super::Place::Lent;
        conn.server.lend(Some(backend::reply::Owner(slot)));
        client.settings = conn.server.defaults.clone();
        let reported = parameter_statuses(&conn.server.defaults);
        self.greet_with(slot, &reported);
        self.resume_later(slot);
    }

    /// Clients of the console count, too; administrators are let in beyond the limits.
    fn take_console_places(&self, user: &str, admin: bool) -> Result<(), Refused> {
        let of = |limit: Option<u32>| limit.filter(|_| !admin);
        let limits =
            [of(self.config.runtime.max_database_clients), of(self.config.max_clients_of(user))];
        let [database, own] = self.console_places(user);
        if !database.take(limits[0].unwrap_or(u32::MAX)) {
            return Err(no_place("database", limits[0].unwrap_or(0)));
        }
        if !own.take(limits[1].unwrap_or(u32::MAX)) {
            database.give_back();
            return Err(no_place("user", limits[1].unwrap_or(0)));
        }
        Ok(())
    }

    /// Where a client of the console is counted.
    pub(super) fn console_places(&self, user: &str) -> [Arc<Budget>; 2] {
        let database = self.common.budget(Count::DatabaseClients, CONSOLE[0]);
        [database, self.common.budget(Count::UserClients, user)]
    }

    fn greet_console(&mut self, slot: u32, who: ConsoleUser) {
        let admin = who.admin;
        let (worker, key) = (self.worker, self.cancel_keys.of(&self.clients[slot]));
        self.tell(slot, |out| {
            reply::put_auth_ok(out);
            for (name, value) in [
                ("server_version", concat!(env!("CARGO_PKG_VERSION"), "/pondage")),
                ("client_encoding", "UTF8"),
                ("server_encoding", "UTF8"),
                ("DateStyle", "ISO, MDY"),
                ("TimeZone", "UTC"),
                ("standard_conforming_strings", "on"),
                ("integer_datetimes", "on"),
                ("is_superuser", if admin { "on" } else { "off" }),
            ] {
                reply::put_parameter_status(out, name, value);
            }
            reply::put_backend_key(out, key_number(worker, slot), &key);
            reply::put_ready(out, wire::pg::backend::TxStatus::Idle);
        });
        self.logging_in -= 1;
        let client = &mut self.clients[slot];
        client.hold = Hold::No;
        client.pool = NONE;
        client.phase = Phase::Console(Arc::new(who));
        self.log_login(slot);
        self.resume_later(slot);
    }

    pub(super) fn refuse(&mut self, slot: u32, refused: &Refused) {
        *self.refused.entry(refused.code.to_owned()).or_default() += 1;
        if let (sqlstate::INVALID_PASSWORD, Phase::LoggingIn(login)) =
            (refused.code, &self.clients[slot].phase)
        {
            let ends = &self.clients[slot].ends;
            self.common.suspects().failed(ends, &login.wish.user, self.now);
        }
        let client = &self.clients[slot];
        let (db, user) = self.names_of(client);
        let told = refused.in_words(self.config.listen.errors);
        tracing::warn!(event = "client_refused", client_id = client.id, db, user,
            addr = %Address(&client.ends), sqlstate = told.code, detail = told.detail.as_deref(),
            "{}", told.message);
        self.close_client(slot, Some(refused));
    }

    /// Tells a client why there is no server for it.
    pub(super) fn refuse_for(
        &mut self,
        slot: u32,
        error: &OpenError,
        failing: Option<&super::Failing>,
    ) {
        *self.refused.entry(error.code.clone()).or_default() += 1;
        let error = error.in_words(self.config.listen.errors);
        let detail = match (failing, &error.detail) {
            (Some(failing), _) if failing.tries > 1 || !error.permanent => Some(format!(
                "It has been failing for {:.0} s, since {}; {} tries.",
                self.now.since(failing.began).as_secs_f64(),
                super::timers::utc(failing.since),
                failing.tries
            )),
            (_, detail) => detail.clone(),
        };
        let known = match error.is_crowded() {
            true => {
                "Others have PostgreSQL's connections: raise its max_connections, or lower \
                     max_servers. [P0411]"
            }
            false => "Pondage keeps trying. See SHOW POOLS and its log. [P0411]",
        };
        let hint = error.hint.clone().unwrap_or_else(|| known.to_owned());
        self.tell(slot, |out| {
            reply::put_error(
                out,
                &reply::ErrorReply {
                    severity: "FATAL",
                    code: &error.code,
                    message: &error.message,
                    detail: detail.as_deref(),
                    hint: Some(&hint),
                },
            );
        });
        self.close_told(slot, &error.message);
    }
}

pub(super) fn parameter_statuses(settings: &Settings) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in settings.iter() {
        reply::put_parameter_status(&mut out, name, value);
    }
    out
}

/// The process id half of a client's cancel key: which worker, which slot. Never zero or negative.
pub(super) fn key_number(worker: u8, slot: u32) -> u32 {
    (u32::from(worker & 0x7f) << 24) | ((slot + 1) & 0x00ff_ffff)
}

/// The worker and the slot in a cancel key.
pub(super) fn key_parts(number: u32) -> Option<(u8, u32)> {
    let slot = (number & 0x00ff_ffff).checked_sub(1)?;
    Some(((number >> 24) as u8, slot))
}

fn no_place(what: &str, limit: u32) -> Refused {
    let theirs =
        if what == "user" { "max_user_client_connections" } else { "max_db_client_connections" };
    Refused::new(sqlstate::TOO_MANY_CONNECTIONS, format!("too many connections for {what}"))
        .detail(format!("All {limit} places for clients of this {what} are taken."))
        .hint(format!(
            "Raise max_client_connections (PgBouncer's {theirs}); see SHOW CLIENTS. [P0317]"
        ))
        .theirs(format!("client connections exceeded ({theirs})"))
}

/// PgBouncer's words, as far as they go.
fn stranger(user: &str) -> Refused {
    failed("\"trust\"", user)
        .detail("No secret of this user is known, and auth.known_only is set.")
        .hint("Add it to auth.users_file, or set auth.query_user. [P0331]")
        .theirs("\"trust\" authentication failed")
}

fn unknown_database(name: &str) -> Refused {
    let message = format!("database \"{name}\" does not exist");
    Refused::new(sqlstate::INVALID_CATALOG_NAME, message)
        .detail("No section [databases] of the configuration has this name, and there is no \"*\".")
        .hint("See SHOW DATABASES on the console. [P0314]")
        .theirs(format!("no such database: {name}"))
}
