//! Who is logged in at the dashboard, and one-time links to it. Without IO.
//!
//! A browser holds a token of 128 bits in a cookie; here its digest is kept, so that neither a dump
//! of the memory nor the time of a look-up tells it. Sessions end when they are not used for a
//! while, at an age, when their user's secret changes, and when the process ends.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backend::moment::Moment;
use sha2::{Digest, Sha256};
use wire::pg::auth::Secret;

use crate::config::Config;
use crate::control::messages::ConsoleUser;
use crate::link::Ends;
use crate::worker::suspects::{Suspects, Try};

/// Sessions at one time; the one that was used longest ago gives way.
const SESSIONS_MAX: usize = 256;
/// A session that nobody uses ends.
const IDLE_MAX: Duration = Duration::from_secs(3_600);
/// A session ends, used or not.
const AGE_MAX: Duration = Duration::from_secs(12 * 3_600);
/// A link is good for so long, and once.
const LINK_AGE_MAX: Duration = Duration::from_secs(900);
const LINKS_MAX: usize = 16;
/// Who came by a link. No role is asked for: who reads the process's terminal owns the process.
pub const LINK_USER: &str = "link";

/// 128 bits in hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

type Hash = [u8; 32];

impl Token {
    fn random() -> Token {
        Token(format!("{:032x}", rand::random::<u128>()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn hash(token: &str) -> Hash {
    Sha256::digest(token.as_bytes()).into()
}

struct Session {
    user: String,
    /// What the user's secret was; none for who came by a link.
    secret: Option<Secret>,
    csrf: Token,
    opened: Instant,
    used: Instant,
}

/// Who asks, and what a command of theirs has to carry.
#[derive(Clone)]
pub struct Visitor {
    pub who: ConsoleUser,
    /// None for who shows a password with each request: no other site can make a browser do that.
    pub csrf: Option<Token>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<Hash, Session>,
    links: HashMap<Hash, Instant>,
    suspects: Suspects,
}

pub struct Sessions {
    began: Instant,
    /// Held for look-ups only.
    state: Mutex<State>,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions { began: Instant::now(), state: Mutex::default() }
    }
}

impl Sessions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moment(&self, now: Instant) -> Moment {
        Moment(0).after(now.saturating_duration_since(self.began))
    }

    /// How long a try to log in has to wait; none: it is not taken at all.
    pub fn attempt(&self, from: SocketAddr, user: &str, now: Instant) -> Option<Duration> {
        let at = self.moment(now);
        match self.state().suspects.attempt(&ends(from), user, at) {
            Try::Now => Some(Duration::ZERO),
            Try::At(later) => Some(later.since(at)),
            Try::Never => None,
        }
    }

    pub fn tried(&self, from: SocketAddr, user: &str, right: bool, now: Instant) {
        let at = self.moment(now);
        match right {
            true => self.state().suspects.succeeded(&ends(from), user),
            false => self.state().suspects.failed(&ends(from), user, at),
        }
    }

    /// A link's token, good once.
    pub fn link(&self, now: Instant) -> Token {
        let token = Token::random();
        let mut state = self.state();
        state.links.retain(|_, made| now.saturating_duration_since(*made) < LINK_AGE_MAX);
        if state.links.len() < LINKS_MAX {
            state.links.insert(hash(token.as_str()), now);
        }
        token
    }

    /// Whether this is a link's token. It is none from now on.
    pub fn take_link(&self, token: &str, now: Instant) -> bool {
        let made = self.state().links.remove(&hash(token));
        made.is_some_and(|made| now.saturating_duration_since(made) < LINK_AGE_MAX)
    }

    /// Opens a session: the cookie's value. `secret`: the one that was shown to be known.
    pub fn open(&self, user: &str, secret: Option<Secret>, now: Instant) -> Token {
        let (token, csrf) = (Token::random(), Token::random());
        let session = Session { user: user.to_owned(), secret, csrf, opened: now, used: now };
        let mut state = self.state();
        if state.sessions.len() >= SESSIONS_MAX {
            let oldest = state.sessions.iter().min_by_key(|(_, one)| one.used);
            if let Some(oldest) = oldest.map(|(hash, _)| *hash) {
                state.sessions.remove(&oldest);
            }
        }
        state.sessions.insert(hash(token.as_str()), session);
        token
    }

    /// Whose cookie this is, by the configuration of now. The session is used by it.
    pub fn visitor(&self, cookie: &str, config: &Config, now: Instant) -> Option<Visitor> {
        let at = hash(cookie);
        let mut state = self.state();
        let visitor = state.visitor(at, config, now)?;
        if let Some(session) = state.sessions.get_mut(&at) {
            session.used = now;
        }
        Some(visitor)
    }

    /// Whether there is still such a session; it is not used by that.
    pub fn is_open(&self, cookie: &str, config: &Config, now: Instant) -> bool {
        self.state().visitor(hash(cookie), config, now).is_some()
    }

    pub fn close(&self, cookie: &str) {
        self.state().sessions.remove(&hash(cookie));
    }
}

impl State {
    fn visitor(&mut self, at: Hash, config: &Config, now: Instant) -> Option<Visitor> {
        let session = self.sessions.get(&at)?;
        let since = |then: Instant| now.saturating_duration_since(then);
        let by_link = session.secret.is_none();
        let same = by_link || config.secret(&session.user) == session.secret.as_ref();
        let who = match by_link {
            true => Some(console_user(&session.user, true)),
            false => role(config, &session.user),
        };
        let over = since(session.used) >= IDLE_MAX || since(session.opened) >= AGE_MAX || !same;
        let Some(who) = who.filter(|_| !over) else {
            self.sessions.remove(&at);
            return None;
        };
        Some(Visitor { who, csrf: Some(session.csrf.clone()) })
    }
}

/// What a console user may do; none: this is no user of the console.
pub fn role(config: &Config, user: &str) -> Option<ConsoleUser> {
    let admin = config.is_admin(user);
    (admin || config.is_stats(user)).then(|| console_user(user, admin))
}

fn console_user(user: &str, admin: bool) -> ConsoleUser {
    ConsoleUser { user: user.to_owned(), database: "pondage".to_owned(), admin, proven: None }
}

fn ends(from: SocketAddr) -> Ends {
    Ends::Tcp { remote: from, local: from }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::fixture;

    fn config(password: &str) -> Config {
        fixture::config_and(&format!("[users.root]\npassword = \"{password}\"\n"))
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn a_session_ends_unused_at_its_age_and_with_its_secret() {
        let (sessions, config, start) = (Sessions::default(), config("x"), Instant::now());
        let secret = config.secret("root").cloned();
        let open = || sessions.open("root", secret.clone(), start);
        let known = |token: &Token, seconds| {
            sessions.visitor(token.as_str(), &config, after(start, seconds)).is_some()
        };
        let unused = open();
        assert!(known(&unused, 3_599) && known(&unused, 7_198) && !known(&unused, 10_798));
        assert!(!known(&unused, 7_199), "it came back");
        let watched = open();
        let is_open = |seconds| sessions.is_open(watched.as_str(), &config, after(start, seconds));
        assert!(is_open(3_599) && !is_open(3_600), "looking on is no use");
        let used = open();
        assert!((0..12).all(|hour| known(&used, hour * 3_600 + 3_599 - hour)));
        assert!(!known(&used, 43_200));
        let changed = open();
        assert!(sessions.visitor(changed.as_str(), &self::config("y"), start).is_none());
        assert!(!known(&changed, 0), "the old secret is back, the session is not");
        assert!(!known(&Token("0".repeat(32)), 0));
    }

    #[test]
    fn a_link_is_good_once_and_for_a_while() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let link = sessions.link(start);
        assert_eq!(link.as_str().len(), 32);
        assert!(sessions.take_link(link.as_str(), after(start, 899)));
        assert!(!sessions.take_link(link.as_str(), start), "twice");
        let late = sessions.link(start);
        assert!(!sessions.take_link(late.as_str(), after(start, 900)));
        let token = sessions.open(LINK_USER, None, start);
        let visitor = sessions.visitor(token.as_str(), &config("x"), start).expect("a session");
        assert!(visitor.who.admin && visitor.who.user == LINK_USER);
    }

    #[test]
    fn who_is_no_console_user_any_more_is_out() {
        let (sessions, config, start) = (Sessions::default(), config("x"), Instant::now());
        let secret = config.secret("root").cloned();
        let token = sessions.open("root", secret, start);
        let like = |users: &str| {
            let text = "[users.root]\npassword = \"x\"\n[databases.app]\nurl = \"postgres://db\"\n";
            Config::from_text(&format!("{text}[auth]\n{users}")).expect("a configuration")
        };
        let stats = like("stats_users = [\"root\"]");
        let visitor = sessions.visitor(token.as_str(), &stats, start).expect("still a user");
        assert!(!visitor.who.admin);
        let none = like("");
        assert!(sessions.visitor(token.as_str(), &none, start).is_none());
    }

    #[test]
    fn there_are_never_more_than_the_ceiling() {
        let (sessions, config, start) = (Sessions::default(), config("x"), Instant::now());
        let first = sessions.open(LINK_USER, None, start);
        for more in 1..=SESSIONS_MAX as u64 {
            sessions.open(LINK_USER, None, after(start, more));
        }
        assert_eq!(sessions.state().sessions.len(), SESSIONS_MAX);
        assert!(sessions.visitor(first.as_str(), &config, start).is_none());
        for _ in 0..LINKS_MAX {
            sessions.link(start);
        }
        let one_more = sessions.link(start);
        assert!(!sessions.take_link(one_more.as_str(), start));
    }

    #[test]
    fn who_guesses_waits_longer_and_longer_and_is_turned_away() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let from: SocketAddr = "127.0.0.1:4000".parse().expect("an address");
        for _ in 0..20 {
            sessions.tried(from, "root", false, now);
        }
        assert!(sessions.attempt(from, "root", now).is_some_and(|wait| !wait.is_zero()));
        let waits = (0..10).map(|_| sessions.attempt(from, "root", now));
        assert!(waits.into_iter().any(|wait| wait.is_none()), "nobody is turned away");
        sessions.tried(from, "root", true, now);
        assert_eq!(sessions.attempt(from, "root", now), Some(Duration::ZERO));
    }
}
