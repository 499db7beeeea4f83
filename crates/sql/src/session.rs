//! Texts that begin or end a transaction and no more, and texts after which a session is not what
//! it was.
//!
//! Source: PostgreSQL docs, BEGIN, START TRANSACTION, COMMIT, ROLLBACK, SET, DISCARD.

use crate::leading::{at_end, blank, word};

/// A whole text that begins or ends a transaction and does nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    Begin(Isolation),
    /// The same, by START TRANSACTION: the answer says so.
    Start(Isolation),
    Commit,
    Rollback,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// READ COMMITTED, or what the session's default is.
    Usual,
    Other,
}

impl Transaction {
    /// What CommandComplete says.
    pub fn tag(self) -> &'static str {
        match self {
            Transaction::Begin(_) => "BEGIN",
            Transaction::Start(_) => "START TRANSACTION",
            Transaction::Commit => "COMMIT",
            Transaction::Rollback => "ROLLBACK",
        }
    }
}

/// Nearly every text is told by its first letter to be none.
pub fn transaction(text: &[u8]) -> Option<Transaction> {
    let rest = blank(text);
    if !matches!(rest.first()?.to_ascii_lowercase(), b'b' | b's' | b'c' | b'e' | b'r' | b'a') {
        return None;
    }
    let (first, rest) = word(rest);
    let is = |wanted: &str| first.eq_ignore_ascii_case(wanted.as_bytes());
    if is("begin") {
        return modes(take_any(rest, &["work", "transaction"])).map(Transaction::Begin);
    }
    if is("start") {
        let rest = take(rest, "transaction")?;
        return modes(rest).map(Transaction::Start);
    }
    let ends = match () {
        () if is("commit") || is("end") => Transaction::Commit,
        () if is("rollback") || is("abort") => Transaction::Rollback,
        () => return None,
    };
    let rest = take_any(rest, &["work", "transaction"]);
    let rest = match take(rest, "and") {
        Some(rest) => take(take(rest, "no")?, "chain")?,
        None => rest,
    };
    at_end(rest).then_some(ends)
}

/// Whether a whole text begins a transaction that says READ ONLY, and that a standby can have: none
/// of its modes is SERIALIZABLE or READ WRITE.
pub fn begins_read_only(text: &[u8]) -> bool {
    if !matches!(transaction(text), Some(Transaction::Begin(_) | Transaction::Start(_))) {
        return false;
    }
    let (mut only, mut rest) = (false, blank(text));
    while !rest.is_empty() {
        let (found, after) = word(rest);
        if found.is_empty() {
            // A comma or a semicolon.
            rest = blank(&rest[1..]);
            continue;
        }
        only |= found.eq_ignore_ascii_case(b"only");
        if found.eq_ignore_ascii_case(b"write") || found.eq_ignore_ascii_case(b"serializable") {
            return false;
        }
        rest = blank(after);
    }
    only
}

/// What modes come to, up to the end.
fn modes(mut rest: &[u8]) -> Option<Isolation> {
    let mut isolation = Isolation::Usual;
    while !at_end(rest) {
        rest = blank(mode(rest, &mut isolation)?);
        if let Some(more) = rest.strip_prefix(b",") {
            if at_end(more) {
                return None;
            }
            rest = more;
        }
    }
    Some(isolation)
}

fn mode<'a>(rest: &'a [u8], isolation: &mut Isolation) -> Option<&'a [u8]> {
    if let Some(rest) = take(rest, "isolation") {
        return level(take(rest, "level")?, isolation);
    }
    if let Some(rest) = take(rest, "not") {
        return take(rest, "deferrable");
    }
    if let Some(rest) = take(rest, "deferrable") {
        return Some(rest);
    }
    let rest = take(rest, "read")?;
    take(rest, "only").or_else(|| take(rest, "write"))
}

/// Where several are named the last one counts, so that with another one it may be either.
fn level<'a>(rest: &'a [u8], isolation: &mut Isolation) -> Option<&'a [u8]> {
    if let Some(rest) = take(rest, "read").and_then(|rest| take(rest, "committed")) {
        return Some(rest);
    }
    *isolation = Isolation::Other;
    if let Some(rest) = take(rest, "serializable") {
        return Some(rest);
    }
    match take(rest, "repeatable") {
        Some(rest) => take(rest, "read"),
        None => take(take(rest, "read")?, "uncommitted"),
    }
}

fn take<'a>(rest: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    let (found, rest) = word(blank(rest));
    found.eq_ignore_ascii_case(wanted.as_bytes()).then_some(rest)
}

fn take_any<'a>(rest: &'a [u8], wanted: &[&str]) -> &'a [u8] {
    wanted.iter().find_map(|wanted| take(rest, wanted)).unwrap_or(rest)
}

/// What a text does to the session that it runs in, as far as that is not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// Nothing.
    Nothing,
    /// Perhaps something that changes what later texts mean or answer: a setting, a role, a
    /// temporary table.
    Something,
    /// What was left before is gone.
    Clean,
}

/// Settings that are reported when they change, or that change no answer.
const HARMLESS: [&[u8]; 13] = [
    // RESET ALL: a role and temporary tables stay, the rest is as it was.
    b"all",
    b"application_name",
    b"client_encoding",
    b"client_min_messages",
    b"datestyle",
    b"idle_in_transaction_session_timeout",
    b"intervalstyle",
    b"lock_timeout",
    b"names",
    b"standard_conforming_strings",
    b"statement_timeout",
    b"synchronous_commit",
    b"timezone",
];

/// For texts that go to PostgreSQL. A semicolon within a quote is taken for the end of a statement,
/// which may make more of a text than there is, never less.
pub fn leaves(text: &[u8]) -> Leaves {
    if take(text, "discard").and_then(|rest| take(rest, "all")).is_some_and(at_end) {
        return Leaves::Clean;
    }
    let something = text.split(|byte| *byte == b';').any(statement_leaves)
        || words(text).any(|word| ANYWHERE.iter().any(|one| word.eq_ignore_ascii_case(one)));
    if something {
        Leaves::Something
    } else {
        Leaves::Nothing
    }
}

/// Words that tell it wherever they are.
const ANYWHERE: [&[u8]; 4] = [b"set_config", b"temp", b"temporary", b"pg_temp"];

fn statement_leaves(text: &[u8]) -> bool {
    let (first, rest) = word(blank(text));
    let is = |wanted: &str| first.eq_ignore_ascii_case(wanted.as_bytes());
    if is("set") || is("reset") {
        let name = setting(rest).unwrap_or_default();
        // It ends with its transaction, and reads within that are PostgreSQL's.
        if is("set") && name.eq_ignore_ascii_case(b"local") {
            return false;
        }
        return !HARMLESS.iter().any(|known| name.eq_ignore_ascii_case(known));
    }
    is("do") || is("call") || is("load") || is("discard")
}

/// The name behind SET or RESET.
fn setting(rest: &[u8]) -> Option<&[u8]> {
    let rest = take(rest, "session").unwrap_or(rest);
    let (name, after) = word(blank(rest));
    if name.eq_ignore_ascii_case(b"time") {
        return take(after, "zone").map(|_| &b"timezone"[..]);
    }
    (!name.is_empty()).then_some(name)
}

/// All words, wherever they are: in quotes and comments as well.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    text.split(move |byte| !is_word(byte)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Transaction> {
        transaction(text.as_bytes())
    }

    #[test]
    fn transactions_that_only_read_say_so() {
        for text in [
            "begin read only",
            "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;",
            "start transaction read /* x */ only deferrable",
            "begin read only, isolation level read committed",
        ] {
            assert!(begins_read_only(text.as_bytes()), "{text}");
        }
        for text in [
            "begin",
            "begin -- read only",
            "begin /* read only */ ;",
            "begin read write",
            "begin read only, read write",
            "begin isolation level serializable read only",
            "begin read only; select 1",
            "select 'begin read only'",
            "commit",
            "",
        ] {
            assert!(!begins_read_only(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_plainest_transactions_are_known() {
        for text in [
            "begin",
            "BEGIN;",
            " /* x */ Begin Work ; -- y",
            "begin transaction",
            "begin isolation level read committed",
            "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
            "begin read write not deferrable",
        ] {
            assert_eq!(of(text), Some(Transaction::Begin(Isolation::Usual)), "{text}");
        }
        for text in [
            "begin isolation level serializable",
            "begin isolation level repeatable read, read only",
            "begin isolation level read uncommitted;",
            "begin work isolation level serializable read only deferrable",
            "begin isolation level serializable isolation level read committed",
        ] {
            assert_eq!(of(text), Some(Transaction::Begin(Isolation::Other)), "{text}");
        }
        let starts = of("start transaction read only deferrable");
        assert_eq!(starts, Some(Transaction::Start(Isolation::Usual)));
        for text in ["commit", "END", "commit work;", "end transaction", "commit and no chain"] {
            assert_eq!(of(text), Some(Transaction::Commit), "{text}");
        }
        for text in ["rollback", "abort", "ROLLBACK WORK", "rollback and no chain ;"] {
            assert_eq!(of(text), Some(Transaction::Rollback), "{text}");
        }
    }

    #[test]
    fn whatever_says_more_is_another() {
        for text in [
            "",
            "b",
            "begin isolation level",
            "begin isolation level read",
            "begin isolation level repeatable",
            "begin isolation serializable",
            "begin isolation level serializable x",
            "begin not",
            "begin read only,",
            "begin; select 1",
            "begin x",
            "start",
            "start slave",
            "commit and chain",
            "commit prepared 'x'",
            "rollback to savepoint a",
            "rollback to a",
            "rollback prepared 'x'",
            "abort and chain",
            "end x",
            "commit; begin",
            "select 1",
            "create table a ()",
            "alter table a add b int",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn what_a_session_keeps_is_noticed() {
        for text in [
            "set search_path = x",
            "SET role bob",
            "set session authorization bob",
            "set extra_float_digits to 0",
            "reset role",
            "select set_config('a.b', 'c', false)",
            "create temp table t ()",
            "CREATE LOCAL TEMPORARY TABLE t ()",
            "create table pg_temp.t ()",
            "select 1 into temp x",
            "select 1; set search_path = x",
            "set timezone = 'UTC'; set search_path = x",
            "do $$ begin end $$",
            "call p()",
            "discard temp",
            "set local role bob; set role bob",
        ] {
            assert_eq!(leaves(text.as_bytes()), Leaves::Something, "{text}");
        }
        for text in [
            "select 1",
            "set timezone = 'UTC'",
            "SET TIME ZONE 'UTC';",
            "set application_name to 'a'",
            "set session statement_timeout = 0",
            "set local role bob",
            "SET LOCAL search_path = x",
            "set names 'utf8'",
            "insert into offset_table values (1)",
            "update t set a = 1",
            "begin; update t set a = 1; commit",
            "insert into t values (1) on conflict do nothing",
            "reset all",
            "create table temperatures ()",
        ] {
            assert_eq!(leaves(text.as_bytes()), Leaves::Nothing, "{text}");
        }
        assert_eq!(leaves(b"discard all;"), Leaves::Clean);
    }
}
