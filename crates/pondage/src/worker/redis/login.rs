//! The commands that are the door's own: AUTH, HELLO, and what comes of RESET.
//!
//! Users are those that the PostgreSQL door knows, with the same secrets. A password in the clear
//! against a SCRAM verifier takes milliseconds, and so does asking a database: the control plane
//! does it, and the client's commands wait.
//!
//! Source of the words: `src/acl.c` and `src/networking.c` of Redis 7.2.

use ::redis::args::Args;
use ::redis::call::{self, whole};
use ::redis::command::Flags;
use ::redis::monitor::REDACTED;
use ::redis::reply::Reply;
use ::redis::session::ConnId;
use wire::pg::auth::Secret;
use wire::resp::Protocol;

use super::admission::{first_user, wanted, Wanted};
use super::client::{Client, Hold};
use super::running::{Flow, Turn};
use super::Effect;
use crate::config::Config;
use crate::control::messages::ToControl;
use crate::session::login::Refused;
use crate::worker::suspects::{Try, TOO_MANY_FAILED, TRY_LATER};

/// The name that stands for the configured default user.
pub(super) const DEFAULT: &str = "default";

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const NOT_AUTHENTICATED: &str = "NOAUTH Authentication required.";
const HELLO_NOT_AUTHENTICATED: &str =
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
     <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
     protocol version at the same time";
const NO_DEFAULT_USER: &str =
    "ERR AUTH <password> called without any password configured for the default user. Are you \
     sure your configuration is correct?";

/// Longer ones are nobody's: PostgreSQL's names have 63 bytes, and a password is no novel.
const PASSWORD_BYTES_MAX: usize = 4096;

/// A log-in whose password is being checked, or has to wait for that.
#[derive(Debug)]
pub(super) struct Pending {
    user: String,
    /// Empty while it is being checked elsewhere.
    password: Vec<u8>,
    wish: Wish,
    /// Bytes of the command.
    command: usize,
    /// They are still in the input.
    waited: bool,
}

/// What a log-in is part of.
#[derive(Debug)]
enum Wish {
    Auth,
    Hello { protocol: Option<Protocol>, name: Option<Box<[u8]>> },
}

/// What can be said of a password at once.
enum Judged {
    Right,
    Wrong,
    /// Whatever the password.
    Refused(Refused),
    /// The control plane has to look.
    Ask(Option<Secret>),
}

impl Client {
    /// The commands that are not the engine's, and those that it may not run yet.
    pub(super) fn own_command(
        &mut self,
        turn: &mut Turn<'_>,
        args: Args<'_>,
        taken: usize,
    ) -> Option<Flow> {
        match args.at(0).len() {
            4 if args.is(0, "auth") => return Some(self.auth(turn, args, taken)),
            // In a transaction it is queued as any other.
            5 if args.is(0, "hello") && !(self.open && in_multi(self.conn, turn)) => {
                return Some(self.hello(turn, args, taken));
            }
            // A browser that was talked into speaking to us.
            4 if args.is(0, "post") => return Some(self.browser()),
            5 if args.is(0, "host:") => return Some(self.browser()),
            5 if args.is(0, "reset") && args.len() == 1 => self.log_out(turn),
            _ => {}
        }
        if self.open {
            return None;
        }
        // Commands that are none are told so first.
        let allowed = call::find(args).map_or(true, |known| known.flags.has(Flags::NO_AUTH));
        if allowed {
            return None;
        }
        self.say(taken, |to| to.error(NOT_AUTHENTICATED.as_bytes()));
        Some(Flow::Next)
    }

    /// It reads nothing of what it may have had done.
    fn browser(&mut self) -> Flow {
        tracing::warn!(event = "redis_http", "HTTP at the Redis door: the connection is closed");
        Flow::Cut
    }

    /// What the engine does for RESET is not all.
    fn log_out(&mut self, turn: &mut Turn<'_>) {
        let (user, open) = first_user(turn.config, self.caller());
        self.open = open;
        self.protocol = Protocol::Resp2;
        self.be(turn, user);
    }

    fn be(&mut self, turn: &mut Turn<'_>, user: &str) {
        if let Some(session) = turn.engine.session(self.conn) {
            session.user = user.into();
        }
    }

    fn auth(&mut self, turn: &mut Turn<'_>, args: Args<'_>, taken: usize) -> Flow {
        let in_multi = self.spoils_multi(turn);
        let error = match args.len() {
            1 => Some("ERR wrong number of arguments for 'auth' command"),
            2 | 3 if in_multi => Some("ERR Command not allowed inside a transaction"),
            2 | 3 => None,
            _ => Some("ERR syntax error"),
        };
        if let Some(error) = error {
            self.say(taken, |to| to.error(error.as_bytes()));
            return Flow::Next;
        }
        show(turn, self.conn, args, |at| at > 0);
        let (user, password) = match args.len() {
            2 => one_word(turn.config, args.at(1)),
            _ => (Some(args.at(1)), args.at(2)),
        };
        self.log_in(turn, user, password, Wish::Auth, taken)
    }

    /// Between MULTI and EXEC a log-in can't be queued, as in Redis it can: its check may take a
    /// while. It makes EXEC fail as any command does that can't be queued.
    fn spoils_multi(&self, turn: &mut Turn<'_>) -> bool {
        let session = turn.engine.session(self.conn);
        match session.and_then(|session| session.multi.as_mut()) {
            Some(multi) => {
                multi.failed = true;
                true
            }
            None => false,
        }
    }

    fn hello(&mut self, turn: &mut Turn<'_>, args: Args<'_>, taken: usize) -> Flow {
        // Whatever stands behind the word, in the right place or not.
        let secret = |at: usize| (1..=2).any(|back| at > back && args.is(at - back, "auth"));
        show(turn, self.conn, args, secret);
        let Hello { protocol, credentials, name } = match read_hello(args) {
            Ok(asked) => asked,
            Err(error) => {
                self.say(taken, |to| to.error(&error));
                return Flow::Next;
            }
        };
        let wish = Wish::Hello { protocol, name: name.map(Into::into) };
        match credentials {
            Some((user, password)) => self.log_in(turn, Some(user), password, wish, taken),
            None if !self.open => {
                self.say(taken, |to| to.error(HELLO_NOT_AUTHENTICATED.as_bytes()));
                Flow::Next
            }
            None => {
                self.greet(turn, wish, taken, false);
                Flow::Next
            }
        }
    }

    fn log_in(
        &mut self,
        turn: &mut Turn<'_>,
        user: Option<&[u8]>,
        password: &[u8],
        wish: Wish,
        taken: usize,
    ) -> Flow {
        let config = turn.config;
        let named = user.and_then(|user| std::str::from_utf8(user).ok());
        let default = config.redis.default_user.as_deref();
        let user = match named {
            Some(DEFAULT) => default.or(named),
            Some(named) => Some(named),
            None if user.is_some() => None,
            None => default,
        };
        let Some(user) = user.map(str::to_owned) else {
            match named.is_none() && default.is_none() {
                true => self.say(taken, |to| to.error(NO_DEFAULT_USER.as_bytes())),
                false => self.say(taken, |to| to.error(WRONG_PASSWORD.as_bytes())),
            }
            return Flow::Next;
        };
        let password = password.get(..=PASSWORD_BYTES_MAX).unwrap_or(password).to_vec();
        let pending = Pending { user, password, wish, command: taken, waited: false };
        let tried = turn.common.suspects().attempt(&self.ends, &pending.user, turn.moment);
        match tried {
            Try::Now => return self.try_password(turn, pending),
            Try::At(at) => {
                turn.delayed.push((at, turn.client));
                self.hold = Hold::Login(Box::new(pending));
                return Flow::Stay;
            }
            Try::Never => {
                let error = format!("ERR {TOO_MANY_FAILED}. {TRY_LATER}");
                self.say(taken, |to| to.error(error.as_bytes()));
            }
        }
        Flow::Next
    }

    /// It has waited because its like have failed.
    pub(super) fn has_waited(&mut self, turn: &mut Turn<'_>) {
        if !matches!(self.hold, Hold::Login(_)) {
            return;
        }
        let Hold::Login(pending) = std::mem::replace(&mut self.hold, Hold::No) else { return };
        self.try_password(turn, Pending { waited: true, ..*pending });
    }

    fn try_password(&mut self, turn: &mut Turn<'_>, mut pending: Pending) -> Flow {
        let wanted = wanted(turn.config, self.caller(), &pending.user);
        let judged = match wanted {
            Err(refused) => Judged::Refused(refused),
            Ok(_) if !is_listed(turn.config, &pending.user) => Judged::Wrong,
            Ok(Wanted::Nothing) => Judged::Right,
            Ok(Wanted::Password) => {
                judge(turn.config, turn.pool.is_some(), &pending.user, &pending.password)
            }
        };
        if let Judged::Ask(secret) = judged {
            // It is asked for only where there is one.
            let Some(pool) = turn.pool else { return Flow::Next };
            turn.effects.push(Effect::Control(ToControl::LogIn {
                client: turn.client,
                config: pool.clone(),
                user: pending.user.clone(),
                password: std::mem::take(&mut pending.password),
                secret,
            }));
            pending.waited = true;
            self.hold = Hold::Login(Box::new(pending));
            return Flow::Stay;
        }
        self.judged(turn, pending, judged);
        Flow::Next
    }

    /// The control plane has looked.
    pub(super) fn logged_in(&mut self, turn: &mut Turn<'_>, right: Result<bool, String>) {
        if !matches!(self.hold, Hold::Login(_)) {
            return;
        }
        let Hold::Login(pending) = std::mem::replace(&mut self.hold, Hold::No) else { return };
        match right {
            Ok(true) => self.judged(turn, *pending, Judged::Right),
            Ok(false) => self.judged(turn, *pending, Judged::Wrong),
            Err(why) => {
                let error = format!("ERR the user could not be looked up: {why}");
                self.say_waited(pending.command, |to| to.error(error.as_bytes()));
            }
        }
    }

    /// Whether it may come in is known.
    fn judged(&mut self, turn: &mut Turn<'_>, pending: Pending, judged: Judged) {
        let Pending { user, wish, command, waited, .. } = pending;
        let error = match judged {
            Judged::Right => {
                turn.common.suspects().succeeded(&self.ends, &user);
                self.open = true;
                self.be(turn, &user);
                return self.greet(turn, wish, command, waited);
            }
            Judged::Refused(refused) => {
                tracing::warn!(
                    event = "redis_login_refused",
                    client = turn.client.slot,
                    user,
                    "{}",
                    refused.message
                );
                let more = [refused.detail, refused.hint];
                let more = more.into_iter().flatten().map(|more| format!(" {more}"));
                format!("NOPERM {}.{}", refused.message, more.collect::<String>())
            }
            Judged::Wrong | Judged::Ask(_) => {
                turn.common.suspects().failed(&self.ends, &user, turn.moment);
                refused(turn, &user);
                WRONG_PASSWORD.to_owned()
            }
        };
        match waited {
            true => self.say_waited(command, |to| to.error(error.as_bytes())),
            false => self.say(command, |to| to.error(error.as_bytes())),
        }
    }

    /// What AUTH or HELLO says when all is well.
    fn greet(&mut self, turn: &mut Turn<'_>, wish: Wish, command: usize, waited: bool) {
        let (protocol, name) = match wish {
            Wish::Auth => {
                return match waited {
                    true => self.say_waited(command, |to| to.ok()),
                    false => self.say(command, |to| to.ok()),
                };
            }
            Wish::Hello { protocol, name } => (protocol, name),
        };
        self.protocol = protocol.unwrap_or(self.protocol);
        let number = protocol.map(|protocol| if protocol == Protocol::Resp3 { 3 } else { 2 });
        let conn = self.conn;
        let engine = &mut *turn.engine;
        let hello = |to: &mut super::writer::Writer<'_>| {
            engine.hello(conn, number, name.as_deref(), to);
        };
        match waited {
            true => self.say_waited(command, hello),
            false => self.say(command, hello),
        }
    }
}

fn in_multi(conn: ConnId, turn: &mut Turn<'_>) -> bool {
    turn.engine.session(conn).is_some_and(|session| session.multi.is_some())
}

/// MONITOR shows the command, without its secrets.
fn show(turn: &mut Turn<'_>, conn: ConnId, args: Args<'_>, secret: impl Fn(usize) -> bool) {
    if !turn.engine.server.monitors.is_empty() {
        let words = args.iter().enumerate();
        let words = words.map(|(at, word)| if secret(at) { REDACTED } else { word });
        turn.engine.show(conn, &words.collect());
    }
}

fn refused(turn: &Turn<'_>, user: &str) {
    let slot = turn.client.slot;
    tracing::warn!(event = "redis_login_refused", client = slot, user, "wrong user or password");
}

/// `user:password` in one word, where the first part is a user; else a password.
fn one_word<'a>(config: &Config, word: &'a [u8]) -> (Option<&'a [u8]>, &'a [u8]) {
    let Some(colon) = word.iter().position(|byte| *byte == b':') else { return (None, word) };
    let (user, password) = (&word[..colon], &word[colon + 1..]);
    let known = std::str::from_utf8(user).is_ok_and(|user| config.secret(user).is_some());
    // Without a default user a password alone can't be meant.
    match known || config.redis.default_user.is_none() {
        true => (Some(user), password),
        false => (None, word),
    }
}

/// Whether the user is one of this door.
fn is_listed(config: &Config, user: &str) -> bool {
    let users = &config.redis.users;
    users.is_empty() || users.iter().any(|known| known == user)
}

fn judge(config: &Config, can_ask: bool, user: &str, password: &[u8]) -> Judged {
    if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
        return Judged::Wrong;
    }
    match config.secret(user) {
        Some(secret @ Secret::Scram(_)) if can_ask => Judged::Ask(Some(secret.clone())),
        Some(secret) => match secret.check_plain(user, password) {
            true => Judged::Right,
            false => Judged::Wrong,
        },
        None if can_ask && asks(config) => Judged::Ask(None),
        None => Judged::Wrong,
    }
}

/// Whether the database with the data has users of its own.
fn asks(config: &Config) -> bool {
    config.redis.database.as_deref().is_some_and(|database| config.auth_query(database).is_some())
}

/// What a HELLO asks for.
struct Hello<'a> {
    protocol: Option<Protocol>,
    credentials: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

/// Source: `helloCommand` in `src/networking.c` of Redis 7.2.
fn read_hello<'a>(args: Args<'a>) -> Result<Hello<'a>, Vec<u8>> {
    let mut hello = Hello { protocol: None, credentials: None, name: None };
    if let Some(version) = args.get(1) {
        let text = std::str::from_utf8(version).unwrap_or_default();
        hello.protocol = match text.parse::<i64>() {
            Ok(2) => Some(Protocol::Resp2),
            Ok(3) => Some(Protocol::Resp3),
            Ok(_) => return Err("NOPROTO unsupported protocol version".into()),
            Err(_) => return Err("ERR Protocol version is not an integer or out of range".into()),
        };
    }
    let mut at = 2;
    while at < args.len() {
        let more = args.len() - 1 - at;
        if args.is(at, "auth") && more >= 2 {
            hello.credentials = Some((args.at(at + 1), args.at(at + 2)));
            at += 3;
        } else if args.is(at, "setname") && more >= 1 {
            let name = args.at(at + 1);
            if !whole(name).iter().all(|byte| (b'!'..=b'~').contains(byte)) {
                return Err("ERR Client names cannot contain spaces, newlines or special \
                            characters."
                    .into());
            }
            hello.name = Some(name);
            at += 2;
        } else {
            let option = whole(args.at(at));
            return Err([b"ERR Syntax error in HELLO option '", option, b"'"].concat());
        }
    }
    Ok(hello)
}
