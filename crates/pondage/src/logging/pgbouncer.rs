//! Lines as PgBouncer writes them, for what reads its log:
//!
//! ```text
//! 2026-11-20 14:00:00.123 UTC [4711] LOG C-0x2a: app/alice@10.0.0.7:51000 closing because: client close request (age=3s)
//! ```
//!
//! What PgBouncer has no line for is written with its keys behind it, as in the other formats.
//!
//! Source: PgBouncer 1.25, `log_generic` in lib/usual/logging.c, `log_socket_prefix` in src/util.c.

use std::fmt::Write;

use jiff::tz::TimeZone;
use tracing::Level;

use super::{Bare, Shown, THEIRS};
use crate::control::open::UNREACHED;

/// Keys that stand in a line's head, or that its words have.
const TOLD: [&str; 7] = ["event", "client_id", "server_id", "db", "user", "addr", "duration_ms"];

pub(super) type Pairs = [(&'static str, String)];

pub(super) fn line(level: Level, message: &str, pairs: &Pairs) -> String {
    let time = jiff::Timestamp::now().to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S%.3f UTC");
    let tag = match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARNING",
        Level::INFO => "LOG",
        Level::DEBUG => "DEBUG",
        Level::TRACE => "NOISE",
    };
    let pid = std::process::id();
    let line = format!("{time} [{pid}] {tag} {}{}\n", head(pairs), words(message, pairs));
    match find(pairs, "event") == Some("server_connect_failed") && tag == "WARNING" {
        // It says of the connection, too, how it has ended.
        true => format!("{line}{time} [{pid}] LOG {}\n", ended(message, pairs)),
        false => line,
    }
}

/// A connection to a server that did not come about.
fn ended(message: &str, pairs: &Pairs) -> String {
    let of = |key: &str| find(pairs, key).map(shown).unwrap_or_default();
    let why = match of("sqlstate").as_str() {
        UNREACHED => kind(message).to_owned(),
        _ => of(THEIRS),
    };
    format!("S-0x0: {}/{}@unix:0 closing because: {why} (age=0s)", of("db"), of("user"))
}

fn find<'a>(pairs: &'a Pairs, key: &str) -> Option<&'a str> {
    pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str())
}

/// The connection that a line is about, if it is about one.
fn head(pairs: &Pairs) -> String {
    let of = |key: &str, without: &'static str| match find(pairs, key) {
        None | Some("") => without.to_owned(),
        Some(text) => shown(text),
    };
    let (side, id) = match (find(pairs, "client_id"), find(pairs, "server_id")) {
        (Some(id), _) => ('C', id),
        (None, Some(id)) => ('S', id),
        (None, None) => return String::new(),
    };
    let id: u64 = id.parse().unwrap_or(0);
    let (db, user) = (of("db", "(nodb)"), of("user", "(nouser)"));
    format!("{side}-{id:#x}: {db}/{user}@{} ", of("addr", "unix:0"))
}

fn words(message: &str, pairs: &Pairs) -> String {
    let of = |key: &str| find(pairs, key).map(shown).unwrap_or_default();
    let age = || of("duration_ms").parse::<u64>().unwrap_or(0) / 1000;
    let message = shown(message);
    match find(pairs, "event").unwrap_or_default() {
        "client_login" => format!(
            "login attempt: db={} user={} tls={} replication={}",
            of("db"),
            of("user"),
            of("tls"),
            of("replication")
        ),
        "client_closed" | "server_closed" => {
            format!("closing because: {} (age={}s)", of("why"), age())
        }
        "client_refused" => match find(pairs, "detail") {
            Some(detail) => format!("pooler error: {message} ({})", shown(detail)),
            None => format!("pooler error: {message}"),
        },
        "server_opened" => match find(pairs, "from") {
            Some(from) => format!("new connection to server (from {from})"),
            None => "new connection to server".to_owned(),
        },
        "server_connect_failed" if of("sqlstate") == UNREACHED => message,
        "host_banned" => {
            format!("closing because: {} (age=0s): {}: {message}", kind(&message), of("at"))
        }
        "server_connect_failed" => format!("server login failed: FATAL {}", of(THEIRS)),
        "console_command" => match find(pairs, "db") {
            Some(db) => format!("{} '{}' command issued", of("command"), shown(db)),
            None => format!("{} command issued", of("command")),
        },
        "stats" => format!(
            "stats: {} xacts/s, {} queries/s, {} client parses/s, {} server parses/s, {} binds/s, \
             in {} B/s, out {} B/s, xact {} us, query {} us, wait {} us",
            of("xacts"),
            of("queries"),
            of("client_parses"),
            of("server_parses"),
            of("binds"),
            of("received"),
            of("sent"),
            of("xact_us"),
            of("query_us"),
            of("wait_us")
        ),
        _ => {
            let mut words = message;
            let connection = find(pairs, "client_id").or(find(pairs, "server_id")).is_some();
            for (key, value) in pairs.iter().filter(|(key, _)| !connection || !TOLD.contains(key)) {
                // Writing to a String can't fail.
                let _ = write!(words, " {key}={}", Bare(value));
            }
            words.trim_start().to_owned()
        }
    }
}

/// Why a server was not reached, as PgBouncer sorts it.
fn kind(message: &str) -> &'static str {
    if message.contains("cannot resolve the name") {
        "server DNS lookup failed"
    } else if message.contains("no answer within") {
        "connect timeout"
    } else {
        "connect failed"
    }
}

fn shown(text: &str) -> String {
    Shown(text).to_string().replace('\n', "\n\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &str, pairs: &[(&'static str, &str)]) -> String {
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        let line = line(Level::INFO, message, &pairs);
        let (_, rest) = line.split_once("] ").expect("a process id");
        rest.to_owned()
    }

    const CLIENT: [(&str, &str); 4] =
        [("client_id", "42"), ("db", "app"), ("user", "al ice"), ("addr", "10.0.0.7:51000")];

    #[test]
    fn a_line_begins_as_pgbouncers() {
        let line = line(Level::WARN, "x", &[]);
        let (time, rest) = line.split_once(" UTC [").expect("a time");
        assert!(jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S%.3f", time).is_ok(), "{time}");
        assert_eq!(rest, format!("{}] WARNING x\n", std::process::id()));
    }

    #[test]
    fn connections_come_and_go_in_its_words() {
        let with = |event: &'static str, more: &[(&'static str, &'static str)]| {
            let all = [&[("event", event)], &CLIENT[..], more].concat();
            said("gone", &all)
        };
        let head = "LOG C-0x2a: app/al ice@10.0.0.7:51000";
        assert_eq!(
            with("client_login", &[("tls", "no"), ("replication", "no"), ("app", "psql")]),
            format!("{head} login attempt: db=app user=al ice tls=no replication=no\n")
        );
        assert_eq!(
            with("client_closed", &[("duration_ms", "3999"), ("why", "query_wait_timeout")]),
            format!("{head} closing because: query_wait_timeout (age=3s)\n")
        );
        assert_eq!(with("client_refused", &[]), format!("{head} pooler error: gone\n"));
        let server = [("event", "server_opened"), ("server_id", "7"), ("db", "app")];
        let from = [&server[..], &[("addr", "10.0.0.1:5432"), ("from", "10.0.0.2:999")]].concat();
        assert_eq!(
            said("", &from),
            "LOG S-0x7: app/(nouser)@10.0.0.1:5432 new connection to server (from 10.0.0.2:999)\n"
        );
        assert_eq!(
            with("client_pinned", &[("pins", "a temporary table")]),
            format!("{head} gone pins=\"a temporary table\"\n")
        );
    }

    #[test]
    fn statistics_are_in_its_order() {
        let names = ["xacts", "queries", "client_parses", "server_parses", "binds"];
        let more = ["received", "sent", "xact_us", "query_us", "wait_us"];
        let mut pairs = vec![("event", "stats")];
        pairs.extend(names.iter().chain(&more).map(|name| (*name, *name)));
        assert_eq!(
            said("averages", &pairs),
            "LOG stats: xacts xacts/s, queries queries/s, client_parses client parses/s, \
             server_parses server parses/s, binds binds/s, in received B/s, out sent B/s, \
             xact xact_us us, query query_us us, wait wait_us us\n"
        );
    }

    #[test]
    fn failures_are_of_its_kinds() {
        let failed = |message: &str, code: &str| {
            let pairs = [
                ("event", "server_connect_failed"),
                ("db", "app"),
                ("user", "u"),
                ("sqlstate", code),
                ("theirs", "no"),
            ];
            let pairs = pairs.map(|(key, value)| (key, value.to_owned()));
            let text = line(Level::WARN, message, &pairs);
            let lines = text.lines().map(|line| line.split_once("] ").expect("a head").1);
            lines.collect::<Vec<_>>().join("|")
        };
        let head = "LOG S-0x0: app/u@unix:0 closing because:";
        assert_eq!(
            failed("cannot resolve the name: x", "08001"),
            format!("WARNING cannot resolve the name: x|{head} server DNS lookup failed (age=0s)")
        );
        assert!(failed("no answer within 5s", "08001").contains("because: connect timeout ("));
        assert!(failed("refused", "08001").contains("because: connect failed ("));
        assert_eq!(
            failed("cannot log in", "28P01"),
            format!("WARNING server login failed: FATAL no|{head} no (age=0s)")
        );
    }

    #[test]
    fn what_it_has_no_line_for_keeps_its_keys_and_cannot_break_out() {
        assert_eq!(
            said("two\nlines\u{1b}", &[("event", "ready"), ("pid", "1")]),
            "LOG two\n\tlines\\u{1b} event=ready pid=1\n"
        );
        let command = [("event", "console_command"), ("command", "PAUSE"), ("db", "app")];
        assert_eq!(said("Pause", &command), "LOG PAUSE 'app' command issued\n");
    }
}
