//! What a client has set is found out from PostgreSQL.
//!
//! Texts only tell that a session may have been changed (`sql::touches`). When the client's
//! transaction is over, and before its server is anybody else's, one hidden query asks PostgreSQL
//! what is set there now: after rollbacks, savepoints, SET LOCAL and whatever functions have done.
//! The answer is what client and server have from then on.
//!
//! Functions that a text calls are looked up by the same query, with all that their bodies call: one
//! that can't change a session is remembered, and its calls cost nothing more.
//!
//! Source: PostgreSQL docs, "pg_settings", "pg_proc", "System Administration Functions".

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use backend::moment::Moment;
use backend::reply::{Fate, Kind, Owner, Request};
use backend::server::ROWS_MAX;
use sql::{Leaves, Touch};
use wire::pg::frontend::{self, BindTail};

use super::{Plane, Preparing};
use crate::config::PoolMode;
use crate::session::client::{Hold, NONE};
use crate::session::options::is_name;

/// Names of settings with dots that a pool remembers: PostgreSQL lists only those it knows itself.
const CUSTOM_MAX: usize = 256;

/// Functions of which a pool remembers whether they may change a session.
const FUNCTIONS_MAX: usize = 4096;

/// They are forgotten after so long: others may replace them.
const FUNCTIONS_FRESH: Duration = Duration::from_secs(60);

/// Functions that are looked up by one query. If a transaction calls more, the others are next time.
const ASKED_MAX: usize = 64;

/// What a pool knows.
#[derive(Debug, Default)]
pub struct Surveys {
    custom: Vec<Box<str>>,
    /// Whether they may change a session.
    functions: HashMap<Box<[u8]>, bool, foldhash::fast::RandomState>,
    since: Moment,
}

/// A session that may have been changed.
#[derive(Debug, Default)]
pub struct Touched {
    calls: Vec<Box<[u8]>>,
    /// A LISTEN is among what it was sent.
    listens: bool,
}

/// What LISTEN and UNLISTEN mean for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listening {
    /// Its channels are not its own.
    NotShared,
    /// It has none.
    Not,
    Listens,
}

impl Surveys {
    /// Definitions have changed.
    pub fn forget(&mut self) {
        self.functions.clear();
    }

    fn learn_custom(&mut self, name: &str) {
        let known = |known: &str| known.eq_ignore_ascii_case(name);
        if self.custom.len() < CUSTOM_MAX
            && is_name(name)
            && !self.custom.iter().any(|one| known(one))
        {
            self.custom.push(name.into());
        }
    }

    fn learn_function(&mut self, name: &[u8], changes: bool) {
        if self.functions.len() < FUNCTIONS_MAX {
            self.functions.insert(name.into(), changes);
        }
    }

    /// What a text may do to its session. None: nothing.
    fn look(&mut self, text: &[u8], now: Moment, listening: Listening) -> Option<Touched> {
        let mut touched: Option<Touched> = None;
        sql::touches(text, |touch| match touch {
            Touch::Listen if listening != Listening::NotShared => {
                touched.get_or_insert_default().listens = true;
            }
            Touch::Unlisten if listening == Listening::Listens => {
                touched.get_or_insert_default();
            }
            Touch::Listen | Touch::Unlisten => {}
            Touch::Command => drop(touched.get_or_insert_default()),
            Touch::Call(name) => {
                if now.since(self.since) >= FUNCTIONS_FRESH {
                    self.functions.clear();
                    self.since = now;
                }
                if self.functions.get(name) != Some(&false) {
                    let calls = &mut touched.get_or_insert_default().calls;
                    if calls.len() < ASKED_MAX {
                        calls.push(name.into());
                    }
                }
            }
        });
        if touched.is_some() {
            sql::dotted_names(text).for_each(|name| self.learn_custom(name));
        }
        touched
    }

    /// The query; `client` has these settings.
    fn query(
        &self,
        touched: &Touched,
        custom: impl Iterator<Item = String>,
        channels: bool,
    ) -> String {
        let channels = if channels { CHANNELS } else { "" };
        let mut names: Vec<String> = self.custom.iter().map(ToString::to_string).collect();
        names.extend(custom);
        let called = touched.calls.iter().map(|name| String::from_utf8_lossy(name).into_owned());
        // What clients have written goes in last: nothing is replaced in it.
        let custom = array(names.into_iter().map(|name| name.to_ascii_lowercase()));
        if touched.calls.is_empty() {
            return NAMED.replace("CUSTOM", &custom) + SETTINGS + channels;
        }
        let called = array(called);
        let head = CALLED.replace("CUSTOM", &custom).replace("CALLED", &called);
        head + SETTINGS + channels + &FUNCTIONS.replace("CALLED", &called)
    }
}

/// The bytes that `encode` has written; none if that was something else.
fn from_hex(digits: &str) -> Option<Box<[u8]>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}

/// A literal, whatever `standard_conforming_strings` is.
fn array(texts: impl Iterator<Item = String>) -> String {
    let mut all = String::from("ARRAY[");
    for (at, text) in texts.enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let text = text.replace('\\', "\\\\").replace('\'', "''");
        let _ = write!(all, "{comma}E'{text}'");
    }
    all.push_str("]::pg_catalog.text[]");
    all
}

/// Rows: what it is, its name, its value. `s`: a setting; `l`: a channel; `p`: a prepared statement;
/// `f`: a function, and whether it may change a session.
const SETTINGS: &str = r#"known AS (SELECT name, setting, source FROM pg_catalog.pg_settings)
SELECT 's', name, setting FROM known WHERE source = 'session'
  AND name NOT IN ('seed', 'transaction_isolation', 'transaction_read_only', 'transaction_deferrable')
UNION ALL SELECT 's', n, pg_catalog.current_setting(n, true) FROM custom
  WHERE pg_catalog.current_setting(n, true) <> ''
    AND pg_catalog.lower(n) NOT IN (SELECT name FROM known)
UNION ALL SELECT 'p', name, NULL FROM pg_catalog.pg_prepared_statements WHERE name !~ '^pondage_'
UNION ALL SELECT 's', 'role', pg_catalog.current_setting('role')
  WHERE pg_catalog.current_setting('role') <> 'none'"#;

/// In front of [`SETTINGS`] where no function was called that is not known.
const NAMED: &str = r#"WITH custom AS (
  SELECT n COLLATE pg_catalog."C" AS n FROM pg_catalog.unnest(CUSTOM) n),
"#;

/// In front of it where some were: what they call, and the names in their bodies.
const CALLED: &str = r#"WITH RECURSIVE called(root, name) AS (
  SELECT n, n COLLATE pg_catalog."C" FROM pg_catalog.unnest(CALLED) n
  UNION SELECT c.root, m[1] COLLATE pg_catalog."C" FROM called c
    JOIN pg_catalog.pg_proc p ON p.proname = c.name::pg_catalog.name AND p.pronamespace <> 11,
    pg_catalog.regexp_matches(pg_catalog.lower(CASE
      WHEN p.prosrc = '' AND p.prokind IN ('f', 'p') THEN pg_catalog.pg_get_functiondef(p.oid)
      ELSE p.prosrc END), E'([a-z_][a-z0-9_$]*)"?\\s*[(]', 'g') m),
bodies AS (
  SELECT c.root, p.proname::pg_catalog.text AS name, p.pronamespace = 11 AS own, p.prosrc FROM called c
    JOIN pg_catalog.pg_proc p ON p.proname = c.name::pg_catalog.name),
custom AS (
  SELECT n COLLATE pg_catalog."C" AS n FROM pg_catalog.unnest(CUSTOM) n
  UNION SELECT m[1] COLLATE pg_catalog."C" FROM bodies,
    pg_catalog.regexp_matches(prosrc, '([A-Za-z_][A-Za-z0-9_$]*(?:[.][A-Za-z_][A-Za-z0-9_$]*)+)', 'g') m
    WHERE NOT own),
"#;

/// Behind it: what the session listens to, in the bytes that the client gets.
const CHANNELS: &str = "
UNION ALL SELECT 'l', pg_catalog.encode(
    pg_catalog.convert_to(c, pg_catalog.pg_client_encoding()), 'hex'), NULL
  FROM pg_catalog.pg_listening_channels() c";

/// Behind it: what is to be known of each.
const FUNCTIONS: &str = r#"
UNION ALL SELECT 'f', n, (SELECT pg_catalog.bool_or(CASE WHEN own
      THEN name IN ('set_config', 'query_to_xml', 'query_to_xmlschema', 'query_to_xml_and_xmlschema')
      ELSE pg_catalog.lower(prosrc) ~ E'(^|;|\\m(begin|then|else|loop))\\s*(set|reset)\\M(?!\\s+local\\M)|\\m(execute|discard|prepare|deallocate)\\M'
      END) FROM bodies WHERE root = n)::pg_catalog.text
  FROM pg_catalog.unnest(CALLED) n"#;

impl Plane {
    /// A text goes to the client's server.
    pub(super) fn touch(&mut self, slot: u32, text: &[u8], bind: Option<&BindTail<'_>>) {
        let server = self.clients[slot].server;
        let Some(conn) = self.servers.get_mut(server) else { return };
        let pool = &mut self.pools[conn.pool as usize];
        if pool.config.mode == PoolMode::Session || conn.replication {
            return;
        }
        let listening = match (pool.shares_listening(), &self.clients[slot].listens) {
            (false, _) => Listening::NotShared,
            (true, None) => Listening::Not,
            (true, Some(_)) => Listening::Listens,
        };
        let Some(touched) = pool.surveys.look(text, self.now, listening) else { return };
        // A name may be a parameter.
        for (binary, value) in bind.into_iter().flat_map(BindTail::values) {
            let name = value.filter(|_| !binary).and_then(|name| std::str::from_utf8(name).ok());
            name.into_iter()
                .filter(|name| name.contains('.'))
                .for_each(|name| pool.surveys.learn_custom(name));
        }
        let all = conn.touched.get_or_insert_default();
        let room = ASKED_MAX.saturating_sub(all.calls.len());
        all.calls.extend(touched.calls.into_iter().take(room));
        if touched.listens {
            self.will_listen(slot);
        }
    }

    /// Something goes to the client's server that can't be looked at.
    pub(super) fn touch_unseen(&mut self, slot: u32) {
        self.touch(slot, b"discard", None);
    }

    /// A portal is made of a prepared statement.
    pub(super) fn touch_bound(
        &mut self,
        slot: u32,
        named: &super::statements::Named,
        tail: Option<&[u8]>,
    ) {
        use super::statements::Named;
        let tail = tail.and_then(|tail| frontend::bind_tail(tail).ok());
        let unnamed = match named {
            Named::Shared(statement) => {
                let statement = statement.clone();
                return self.touch(slot, &statement.query, tail.as_ref());
            }
            Named::Own(name) if name.is_empty() => {
                let names = self.clients[slot].names.as_deref_mut();
                names.and_then(|names| names.unnamed()).and_then(|unnamed| unnamed.text.clone())
            }
            Named::Sql(_, statement) => Some(statement.clone()),
            Named::Own(_) => None,
        };
        match unnamed {
            Some(statement) => self.touch(slot, &statement.query, tail.as_ref()),
            None => self.touch_unseen(slot),
        }
    }

    /// The client is done with a server whose session it may have changed. True: PostgreSQL is
    /// asked, and the client held until the answer is there.
    pub(super) fn survey(&mut self, server: u32) -> bool {
        let conn = &mut self.servers[server];
        let Some(touched) = conn.touched.take() else { return false };
        let slot = conn.client;
        let pool = &self.pools[conn.pool as usize];
        let settings = &self.clients[slot].settings;
        let custom = settings.iter().map(|(name, _)| name).filter(|name| name.contains('.'));
        let custom = custom.map(str::to_owned);
        let query = pool.surveys.query(&touched, custom, pool.shares_listening());
        conn.server.collect_rows();
        conn.preparing = Preparing::Surveying;
        self.clients[slot].hold = Hold::SetUp;
        let request = Request::with_fate(Owner(slot), Kind::Query, Fate::Setup);
        self.send(server, request, |out| frontend::put_query(out, &query));
        true
    }

    /// PostgreSQL has said what is set.
    pub(super) fn surveyed(&mut self, slot: u32, server: u32) {
        let conn = &mut self.servers[server];
        let rows = conn.server.take_rows();
        let surveys = &mut self.pools[conn.pool as usize].surveys;
        let defaults = &conn.server.defaults;
        let (mut found, mut prepared, mut channels) = (Vec::new(), Vec::new(), Vec::new());
        for row in &rows {
            let [Some(kind), Some(name), value] = &row[..] else { continue };
            match (kind.as_str(), value) {
                ("s", Some(value)) if defaults.get(name).is_none() => {
                    found.push((name.as_str(), value.as_str()));
                }
                ("l", _) => channels.extend(from_hex(name)),
                ("f", changes) => {
                    surveys.learn_function(name.as_bytes(), changes.as_deref() == Some("true"));
                }
                ("p", _) => prepared.push(name.as_str()),
                _ => {}
            }
        }
        let reported = conn.server.settings.restricted_to(defaults);
        let all = self.settings.intern(reported.overlaid(found.iter().copied()));
        conn.server.settings = all.clone();
        let client = &mut self.clients[slot];
        // A function has set it, else the text would have told.
        let unlike = found.iter().any(|(name, value)| {
            client.settings.get(name) != Some(value)
                && sql::leaves(format!("set {name}").as_bytes()) == Leaves::Something
        });
        if let Some(reads) = client.reads.as_mut().filter(|_| unlike) {
            reads.strange = true;
        }
        client.settings = all;
        self.compare_residents(server, &prepared, rows.len() < ROWS_MAX);
        self.channels_found(slot, server, channels);
        self.go_on(slot);
    }

    /// PostgreSQL did not say it: the server is nobody's any more, and the client keeps what was
    /// known of it.
    pub(super) fn survey_failed(&mut self, slot: u32, error: &str) {
        let server = self.clients[slot].server;
        if let Some(conn) = self.servers.get_mut(server) {
            conn.server.take_rows();
            conn.close_needed = true;
        }
        tracing::warn!(
            event = "survey_failed",
            client_id = self.clients[slot].id,
            "what a client has set is not known: {error}"
        );
        if self.clients[slot].listens.is_some() {
            return self.lost_listening(slot, error);
        }
        self.go_on(slot);
    }

    fn go_on(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        let kept = client.listens.as_ref().is_some_and(|listens| listens.ready);
        client.hold = if kept { Hold::Listens } else { Hold::No };
        if !client.input.is_empty() && client.server != NONE {
            self.resume_later(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_changes_nothing_is_asked_for_once_a_minute() {
        let mut surveys = Surveys::default();
        let at = |seconds| Moment::default().after(Duration::from_secs(seconds));
        let calls = |surveys: &mut Surveys, now| {
            surveys.look(b"select f(1)", at(now), Listening::Not).map(|touched| touched.calls.len())
        };
        assert_eq!(calls(&mut surveys, 100), Some(1));
        surveys.learn_function(b"f", false);
        assert_eq!(calls(&mut surveys, 101), None);
        assert_eq!(calls(&mut surveys, 161), Some(1));
        surveys.learn_function(b"f", true);
        assert_eq!(calls(&mut surveys, 162), Some(1));
    }

    #[test]
    fn listening_is_looked_at_where_it_is_the_clients() {
        let listens = |text: &str, listening| {
            let touched = Surveys::default().look(text.as_bytes(), Moment::default(), listening);
            touched.map(|touched| touched.listens)
        };
        for (listening, listen, unlisten) in [
            (Listening::NotShared, None, None),
            (Listening::Not, Some(true), None),
            (Listening::Listens, Some(true), Some(false)),
        ] {
            assert_eq!(listens("select 1; listen a", listening), listen, "{listening:?}");
            assert_eq!(listens("unlisten *", listening), unlisten, "{listening:?}");
        }
        assert_eq!(from_hex("61c3a4").as_deref(), Some("aä".as_bytes()));
        assert_eq!(
            (from_hex("6"), from_hex("zz"), from_hex("+1")),
            (Some([6].into()), None, Some([1].into()))
        );
    }

    #[test]
    fn names_that_are_remembered_are_bounded_and_quoted() {
        let mut surveys = Surveys::default();
        for n in 0..CUSTOM_MAX * 2 {
            let text = format!("set a.b{n} = 1");
            surveys.look(text.as_bytes(), Moment::default(), Listening::NotShared);
        }
        assert_eq!(surveys.custom.len(), CUSTOM_MAX);
        assert_eq!(array(["a'b\\".to_owned()].into_iter()), r"ARRAY[E'a''b\\']::pg_catalog.text[]");
    }
}
