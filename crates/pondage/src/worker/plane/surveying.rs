//! What a client has set is found out from PostgreSQL.
//!
//! Texts only tell that a session may have been changed (`sql::touches`). When the client's
//! transaction is over, and before its server is anybody else's, one hidden query asks PostgreSQL
//! what is set there now: after rollbacks, savepoints, SET LOCAL and whatever functions have done.
//! The answer is what client and server have from then on.
//!
//! What the session keeps that can't be taken to another server is asked for in the same way, and
//! pins the client; see `pins.rs`.
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
use sql::{Deeds, Kept, Leaves, Touch};
use wire::pg::frontend::{self, BindTail};

use super::{pins, Plane, Preparing};
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
    /// What they may do to a session.
    functions: HashMap<Box<[u8]>, Deeds, foldhash::fast::RandomState>,
    since: Moment,
}

/// A session that may have been changed.
#[derive(Debug, Default)]
pub struct Touched {
    /// What of it.
    kinds: Kept,
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

impl Touched {
    /// By what nobody has looked at.
    pub fn anyhow() -> Box<Touched> {
        Box::new(Touched { kinds: Kept::ASKABLE, calls: Vec::new(), listens: false })
    }
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

    fn learn_function(&mut self, name: &[u8], deeds: Deeds) {
        if self.functions.len() < FUNCTIONS_MAX {
            self.functions.insert(name.into(), deeds);
        }
    }

    /// What texts may do to their session, which is `pinned` or not. None: nothing.
    fn look(
        &mut self,
        texts: [&[u8]; 2],
        pinned: bool,
        now: Moment,
        listening: Listening,
    ) -> Option<Touched> {
        let mut touched: Option<Touched> = None;
        let mut each = |touch: Touch<'_>| {
            let (deeds, call) = match touch {
                Touch::Command(deeds) => (deeds, None),
                Touch::Call(name) => {
                    if now.since(self.since) >= FUNCTIONS_FRESH {
                        self.functions.clear();
                        self.since = now;
                    }
                    match self.functions.get(name) {
                        None => (Deeds::ANY, Some(name)),
                        // The names of what it sets are in its body.
                        Some(known) if known.makes.meets(Kept::SETTINGS) => (*known, Some(name)),
                        Some(known) => (*known, None),
                    }
                }
            };
            let mut kinds = deeds.makes;
            if pinned {
                kinds = kinds.and(deeds.ends);
            }
            if listening == Listening::Listens {
                kinds = kinds.and(deeds.ends.only(Kept::CHANNELS));
            }
            if kinds.is_nothing() {
                return;
            }
            let touched = touched.get_or_insert_default();
            // LISTEN itself.
            touched.listens |= listening != Listening::NotShared
                && deeds == Deeds::making(Kept::CHANNELS)
                && call.is_none();
            touched.kinds = touched.kinds.and(kinds);
            if let Some(name) = call.filter(|_| touched.calls.len() < ASKED_MAX) {
                touched.calls.push(name.into());
            }
        };
        texts.iter().for_each(|text| sql::touches(text, &mut each));
        if touched.as_ref().is_some_and(|touched| touched.kinds.meets(Kept::SETTINGS)) {
            let names = texts.iter().flat_map(|text| sql::dotted_names(text));
            names.for_each(|name| self.learn_custom(name));
        }
        touched
    }

    /// The query; `client` has these settings. `channels`: it is asked for what the session listens
    /// to, which is listened to elsewhere for the client.
    fn query(
        &self,
        touched: &Touched,
        custom: impl Iterator<Item = String>,
        channels: bool,
    ) -> String {
        let channels = channels.then(|| CHANNELS.to_owned());
        let held = Some(pins::query(touched.kinds)).filter(|held| !held.is_empty());
        let more: Vec<String> = channels.into_iter().chain(held).collect();
        if !touched.kinds.meets(Kept::SETTINGS) {
            return more.join("\nUNION ALL ");
        }
        let mut names: Vec<String> = self.custom.iter().map(ToString::to_string).collect();
        names.extend(custom);
        let called = touched.calls.iter().map(|name| String::from_utf8_lossy(name).into_owned());
        // What clients have written goes in last: nothing is replaced in it.
        let custom = array(names.into_iter().map(|name| name.to_ascii_lowercase()));
        let more: String = more.iter().map(|part| format!("\nUNION ALL {part}")).collect();
        if touched.calls.is_empty() {
            return NAMED.replace("CUSTOM", &custom) + SETTINGS + &more;
        }
        let called = array(called);
        let head = CALLED.replace("CUSTOM", &custom).replace("CALLED", &called);
        head + SETTINGS + &FUNCTIONS.replace("CALLED", &called) + &more
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
/// `f`: a function, and what it may do; others are those of `pins.rs`.
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
  SELECT c.root, p.proname::pg_catalog.text AS name, p.pronamespace = 11 AS own, p.prosrc,
      pg_catalog.lower(p.prosrc) AS body, l.lanname NOT IN ('internal', 'c', 'sql', 'plpgsql') AS strange
    FROM called c JOIN pg_catalog.pg_proc p ON p.proname = c.name::pg_catalog.name
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang),
custom AS (
  SELECT n COLLATE pg_catalog."C" AS n FROM pg_catalog.unnest(CUSTOM) n
  UNION SELECT m[1] COLLATE pg_catalog."C" FROM bodies,
    pg_catalog.regexp_matches(prosrc, '([A-Za-z_][A-Za-z0-9_$]*(?:[.][A-Za-z_][A-Za-z0-9_$]*)+)', 'g') m
    WHERE NOT own),
"#;

/// What the session listens to, in the bytes that the client gets.
const CHANNELS: &str = "(SELECT 'l'::pg_catalog.text, pg_catalog.encode(
    pg_catalog.convert_to(c, pg_catalog.pg_client_encoding()), 'hex'), NULL::pg_catalog.text
  FROM pg_catalog.pg_listening_channels() c)";

/// Behind it: what is to be known of each, in the letters of [`pins::deeds`].
const FUNCTIONS: &str = r#"
UNION ALL SELECT 'f', n, (SELECT pg_catalog.concat(
    CASE WHEN pg_catalog.bool_or(CASE WHEN own
      THEN name IN ('query_to_xml', 'query_to_xmlschema', 'query_to_xml_and_xmlschema')
      ELSE strange OR body ~ E'\\m(execute|discard|prepare|deallocate)\\M' END) THEN '*' END,
    CASE WHEN pg_catalog.bool_or(CASE WHEN own THEN name = 'set_config'
      ELSE body ~ E'(^|;|\\m(begin|then|else|loop))\\s*(set|reset)\\M(?!\\s+local\\M)' END) THEN 's' END,
    CASE WHEN pg_catalog.bool_or(own AND name ~ '^pg_(try_)?advisory_lock') THEN 'a' END,
    CASE WHEN pg_catalog.bool_or(own AND name ~ '^pg_advisory_unlock') THEN 'A' END,
    CASE WHEN pg_catalog.bool_or(NOT own AND body ~ E'\\mcreate\\s+(global\\s|local\\s|or\\s+replace\\s|recursive\\s|temp|table\\M|view\\M|sequence\\M|type\\M|domain\\M|function\\M|procedure\\M)|\\minto\\s+((global|local)\\s+)?"?(pg_)?temp|\\mpg_temp\\M') THEN 't' END,
    CASE WHEN pg_catalog.bool_or(NOT own AND body ~ E'\\mdrop\\M') THEN 'T' END,
    CASE WHEN pg_catalog.bool_or(NOT own AND body ~ E'\\mwith\\s+hold\\M') THEN 'c' END,
    CASE WHEN pg_catalog.bool_or(NOT own AND body ~ E'\\mclose\\M') THEN 'C' END,
    CASE WHEN pg_catalog.bool_or(NOT own AND body ~ E'\\mlisten\\M') THEN 'l' END,
    CASE WHEN pg_catalog.bool_or(NOT own AND body ~ E'\\munlisten\\M') THEN 'L' END,
    CASE WHEN pg_catalog.bool_or(NOT own AND body ~ E'\\mload\\s+e?[''%$]') THEN 'o' END)
    FROM bodies WHERE root = n)
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
        let listening = match (conn.server.apart, &self.clients[slot].listens) {
            (false, _) => Listening::NotShared,
            (true, None) => Listening::Not,
            (true, Some(_)) => Listening::Listens,
        };
        let pinned = conn.pinned.as_deref();
        // EXECUTE does what the statement does, and what is called for its parameters.
        let names = self.clients[slot].names.as_ref();
        let executed = names.and_then(|names| {
            let (name, rest) = sql::executed(text)?;
            Some((names.known(&name)?.statement.clone(), rest))
        });
        let texts = match &executed {
            Some((statement, rest)) => [sql::prepared(&statement.query), rest],
            None => [text, &[]],
        };
        let looked = pool.surveys.look(texts, pinned.is_some(), self.now, listening);
        // What was not answered is asked for again.
        let unsure = pinned.map_or(Kept::NOTHING, |pinned| pinned.unsure);
        if looked.is_none() && unsure.is_nothing() {
            return;
        }
        let touched = looked.unwrap_or_default();
        if touched.kinds.meets(Kept::LIBRARIES) {
            conn.server.library_loaded();
        }
        // A name may be a parameter.
        for (binary, value) in bind.into_iter().flat_map(BindTail::values) {
            let name = value.filter(|_| !binary).and_then(|name| std::str::from_utf8(name).ok());
            name.into_iter()
                .filter(|name| name.contains('.'))
                .for_each(|name| pool.surveys.learn_custom(name));
        }
        let all = conn.touched.get_or_insert_default();
        all.kinds = all.kinds.and(touched.kinds).and(unsure);
        let room = ASKED_MAX.saturating_sub(all.calls.len());
        all.calls.extend(touched.calls.into_iter().take(room));
        if touched.listens {
            self.will_listen(slot);
        }
    }

    /// Something goes to the client's server that can't be looked at.
    pub(super) fn touch_unseen(&mut self, slot: u32) {
        self.touch(slot, b"do", None);
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
        let Some(mut touched) = conn.touched.take() else { return false };
        let slot = conn.client;
        let pool = &self.pools[conn.pool as usize];
        let mut channels = false;
        if conn.server.apart {
            // They pin nobody.
            channels = touched.kinds.meets(Kept::CHANNELS) || self.clients[slot].listens.is_some();
            touched.kinds = touched.kinds.without(Kept::CHANNELS);
        }
        let settings = &self.clients[slot].settings;
        let custom = settings.iter().map(|(name, _)| name).filter(|name| name.contains('.'));
        let custom = custom.map(str::to_owned);
        let query = pool.surveys.query(&touched, custom, channels);
        conn.server.collect_rows();
        conn.preparing = Preparing::Surveying;
        conn.asked = touched.kinds;
        conn.server.since = self.now;
        self.clients[slot].hold = Hold::SetUp;
        let request = Request::with_fate(Owner(slot), Kind::Query, Fate::Setup);
        self.send(server, request, |out| frontend::put_query(out, &query));
        true
    }

    /// PostgreSQL has said what is set, and what is kept.
    pub(super) fn surveyed(&mut self, slot: u32, server: u32) {
        let conn = &mut self.servers[server];
        let rows = conn.server.take_rows();
        let asked = conn.asked;
        let surveys = &mut self.pools[conn.pool as usize].surveys;
        let defaults = conn.server.defaults.clone();
        let (mut found, mut reasons) = (Vec::new(), Vec::new());
        let mut set = Vec::new();
        let (mut prepared, mut channels) = (Vec::new(), Vec::new());
        for row in &rows {
            let [Some(kind), Some(name), value] = &row[..] else { continue };
            if kind == "s" {
                set.push(name.as_str());
            }
            match (kind.as_str(), value) {
                ("s", Some(value)) if defaults.get(name).is_none() => {
                    found.push((name.as_str(), value.as_str()));
                }
                ("s", _) => {}
                ("l", _) => channels.extend(from_hex(name)),
                ("p", _) => prepared.push(name.as_str()),
                ("f", letters) => {
                    let deeds = pins::deeds(letters.as_deref().unwrap_or_default());
                    if deeds.makes.meets(Kept::LIBRARIES) {
                        conn.server.library_loaded();
                    }
                    surveys.learn_function(name.as_bytes(), deeds);
                }
                (kind, _) => reasons.extend(pins::Reason::of(kind, name)),
            }
        }
        if asked.meets(Kept::SETTINGS) {
            self.trace_surveyed(slot, &found);
            self.settings_surveyed(slot, server, &found);
            self.compare_residents(server, &prepared, rows.len() < ROWS_MAX);
        }
        self.channels_found(slot, server, channels);
        self.clients[slot].hold = Hold::No;
        if self.pin(slot, server, asked, reasons) {
            if asked.meets(Kept::SETTINGS) {
                self.come_back(slot, server, &set);
            }
            self.go_on(slot);
        }
    }

    fn settings_surveyed(&mut self, slot: u32, server: u32, found: &[(&str, &str)]) {
        let conn = &mut self.servers[server];
        let reported = conn.server.settings.restricted_to(&conn.server.defaults);
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
    }

    /// PostgreSQL did not say it: the server is nobody's any more, and the client keeps what was
    /// known of it. One that may have left what can't be taken along keeps its server.
    pub(super) fn survey_failed(&mut self, slot: u32, error: &str) {
        let server = self.clients[slot].server;
        tracing::warn!(
            event = "survey_failed",
            client_id = self.clients[slot].id,
            "what a client has set is not known: {error}"
        );
        self.clients[slot].hold = Hold::No;
        if let Some(conn) = self.servers.get_mut(server) {
            conn.server.take_rows();
            conn.close_needed = true;
            let asked = conn.asked;
            if self.clients[slot].listens.is_some() {
                return self.lost_listening(slot, error);
            }
            if !self.pin_unsure(slot, server, asked) {
                return;
            }
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
            let touched = surveys.look([b"select f(1)", b""], false, at(now), Listening::Not);
            touched.map(|touched| touched.calls.len())
        };
        assert_eq!(calls(&mut surveys, 100), Some(1));
        surveys.learn_function(b"f", Deeds::ending(Kept::LOCKS));
        assert_eq!(calls(&mut surveys, 101), None);
        assert_eq!(calls(&mut surveys, 161), Some(1));
        surveys.learn_function(b"f", Deeds::making(Kept::SETTINGS));
        assert_eq!(calls(&mut surveys, 162), Some(1));
    }

    #[test]
    fn listening_is_looked_at_where_it_is_the_clients() {
        let listens = |text: &str, listening| {
            let touched = Surveys::default().look(
                [b"", text.as_bytes()],
                false,
                Moment::default(),
                listening,
            );
            touched.map(|touched| touched.listens)
        };
        for (listening, listen, unlisten) in [
            (Listening::NotShared, Some(false), None),
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
            surveys.look([text.as_bytes(), b""], false, Moment::default(), Listening::NotShared);
        }
        assert_eq!(surveys.custom.len(), CUSTOM_MAX);
        assert_eq!(array(["a'b\\".to_owned()].into_iter()), r"ARRAY[E'a''b\\']::pg_catalog.text[]");
    }
}
