//! What a session may keep beyond its transaction, and which commands make it or end it.
//!
//! Source: PostgreSQL docs, CREATE TABLE, SELECT INTO, DECLARE, LISTEN, LOAD, DISCARD, "Advisory
//! Lock Functions".

use crate::leading::{blank, next_word, word};
use crate::mention::executes;

/// A set of kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept(u8);

impl Kept {
    pub const NOTHING: Kept = Kept(0);
    /// Settings and roles.
    pub const SETTINGS: Kept = Kept(1);
    /// Temporary tables and whatever else is in the session's own schema.
    pub const TEMPORARY: Kept = Kept(1 << 1);
    /// Cursors WITH HOLD.
    pub const CURSORS: Kept = Kept(1 << 2);
    /// What it listens to.
    pub const CHANNELS: Kept = Kept(1 << 3);
    /// Advisory locks of the session.
    pub const LOCKS: Kept = Kept(1 << 4);
    /// What was loaded; nobody can say it afterwards.
    pub const LIBRARIES: Kept = Kept(1 << 5);
    /// What PostgreSQL can be asked for.
    pub const ASKABLE: Kept = Kept(0b1_1111);
    /// The same but for settings, which are taken to another server.
    pub const HELD: Kept = Kept(0b1_1110);

    pub const fn and(self, other: Kept) -> Kept {
        Kept(self.0 | other.0)
    }

    pub fn is_nothing(self) -> bool {
        self.0 == 0
    }

    /// Whether they have a kind in common.
    pub fn meets(self, other: Kept) -> bool {
        self.0 & other.0 != 0
    }

    pub fn without(self, other: Kept) -> Kept {
        Kept(self.0 & !other.0)
    }

    pub fn only(self, other: Kept) -> Kept {
        Kept(self.0 & other.0)
    }
}

/// What a command may do to what its session keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deeds {
    pub makes: Kept,
    pub ends: Kept,
}

impl Deeds {
    /// It can't be looked into.
    pub const ANY: Deeds = Deeds { makes: Kept::ASKABLE, ends: Kept::HELD };

    pub const fn making(makes: Kept) -> Deeds {
        Deeds { makes, ends: Kept::NOTHING }
    }

    pub const fn ending(ends: Kept) -> Deeds {
        Deeds { makes: Kept::NOTHING, ends }
    }

    pub fn is_nothing(self) -> bool {
        self == Deeds::default()
    }
}

/// What a statement that begins so does by itself.
pub(crate) fn statement(text: &[u8]) -> Deeds {
    let rest = blank(text);
    let first = rest.first().map(u8::to_ascii_lowercase);
    if !matches!(first, Some(b's' | b'r' | b'd' | b'e' | b'l' | b'c' | b'u')) {
        return Deeds::default();
    }
    let (first, rest) = word(rest);
    let is = |wanted: &str| first.eq_ignore_ascii_case(wanted.as_bytes());
    if is("select") || is("update") || is("delete") || is("commit") {
        return Deeds::default();
    }
    match () {
        () if is("set") => {
            // These end with the transaction.
            let (second, _) = next_word(rest);
            let passes = ["local", "transaction", "constraints"];
            match passes.iter().any(|one| second.eq_ignore_ascii_case(one.as_bytes())) {
                true => Deeds::default(),
                false => Deeds::making(Kept::SETTINGS),
            }
        }
        // What a library brings are settings, and its success is told by its tag.
        () if is("reset") || is("load") => Deeds::making(Kept::SETTINGS),
        () if is("discard") => Deeds { makes: Kept::SETTINGS, ends: Kept::HELD },
        () if is("do") && loads(rest) => {
            Deeds { makes: Kept::ASKABLE.and(Kept::LIBRARIES), ..Deeds::ANY }
        }
        () if is("do") || executes(text) => Deeds::ANY,
        // With ANALYZE what it explains is done.
        () if is("explain") && found(rest, b"create").next().is_some() => Deeds::ANY,
        // Without TEMP, too: a search_path may begin with pg_temp.
        () if is("create") => Deeds::making(Kept::TEMPORARY),
        () if is("drop") => Deeds::ending(Kept::TEMPORARY),
        () if is("declare") && found(rest, b"hold").next().is_some() => {
            Deeds::making(Kept::CURSORS)
        }
        () if is("close") => Deeds::ending(Kept::CURSORS),
        () if is("listen") => Deeds::making(Kept::CHANNELS),
        () if is("unlisten") => Deeds::ending(Kept::CHANNELS),
        () => Deeds::default(),
    }
}

/// Whether LOAD stands anywhere in a text, with what may be the name of a library behind it.
fn loads(text: &[u8]) -> bool {
    found(text, b"load").any(|at| {
        let rest = text[at + 4..].trim_ascii_start();
        let rest = rest.strip_prefix(b"e").or(rest.strip_prefix(b"E")).unwrap_or(rest);
        let inside = at > 0 && text[at - 1].is_ascii_alphanumeric();
        !inside && matches!(rest.first(), Some(b'\'' | b'%' | b'$'))
    })
}

/// Where a word stands in a text, or in another word.
fn found<'a>(text: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let is = |(_, window): &(usize, &[u8])| window.eq_ignore_ascii_case(wanted);
    text.windows(wanted.len()).enumerate().filter(is).map(|(at, _)| at)
}

/// What a function whose name begins as those of advisory locks do; none: it is no such function.
pub(crate) fn advisory(name: &[u8]) -> Option<Deeds> {
    let rest = name.strip_prefix(b"pg_try_advisory_").or(name.strip_prefix(b"pg_advisory_"))?;
    match rest {
        b"lock" | b"lock_shared" => Some(Deeds::making(Kept::LOCKS)),
        b"unlock" | b"unlock_shared" | b"unlock_all" => Some(Deeds::ending(Kept::LOCKS)),
        b"xact_lock" | b"xact_lock_shared" => Some(Deeds::default()),
        _ => None,
    }
}

/// Whether there is an INTO TEMP, INTO TEMPORARY or INTO pg_temp in a text, which is what SELECT
/// makes such tables by. Nearly every `p` is none.
pub(crate) fn selects_into_temporary(text: &[u8]) -> bool {
    memchr::memchr2_iter(b'p', b'P', text).any(|at| {
        let Some(from) = at.checked_sub(3) else { return false };
        text[from..at].eq_ignore_ascii_case(b"tem") && follows_into(&text[..from])
    })
}

/// Whether a text ends with INTO, and perhaps words that may stand between it and TEMP.
fn follows_into(text: &[u8]) -> bool {
    let text = match text.len().checked_sub(3).map(|from| text.split_at(from)) {
        Some((before, schema)) if schema.eq_ignore_ascii_case(b"pg_") => before,
        _ => text,
    };
    let text = text.strip_suffix(b"\"").unwrap_or(text).trim_ascii_end();
    // A comment may hide it.
    ["into", "local", "global", "/"].iter().any(|word| {
        let from = text.len().checked_sub(word.len());
        from.is_some_and(|from| text[from..].eq_ignore_ascii_case(word.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_and_what_ends_state_is_told_by_its_first_words() {
        let making = |text: &str| statement(text.as_bytes()).makes;
        let ending = |text: &str| statement(text.as_bytes()).ends;
        assert_eq!(making("create temp table t ()"), Kept::TEMPORARY);
        assert_eq!(making(" /* x */ CREATE table pg_temp.t ()"), Kept::TEMPORARY);
        assert_eq!(making("declare c cursor With Hold for select 1"), Kept::CURSORS);
        assert_eq!(making("declare c cursor for select 1"), Kept::NOTHING);
        assert_eq!(making("LISTEN a"), Kept::CHANNELS);
        assert_eq!(making("load 'x'"), Kept::SETTINGS);
        assert_eq!(making("do $$ begin load 'x'; end $$"), Kept::ASKABLE.and(Kept::LIBRARIES));
        for text in ["do $$ begin end $$", "do $$ begin payload := 'x'; load := 1; end $$"] {
            assert_eq!(statement(text.as_bytes()), Deeds::ANY, "{text}");
        }
        let hidden = making("do $$ begin execute format('LOAD %L', x); end $$");
        assert_eq!(hidden, Kept::ASKABLE.and(Kept::LIBRARIES));
        assert_eq!(statement(b"explain analyze create temp table t as select 1"), Deeds::ANY);
        assert_eq!(ending("drop table t"), Kept::TEMPORARY);
        assert_eq!(ending("close c"), Kept::CURSORS);
        assert_eq!(ending("unlisten *"), Kept::CHANNELS);
        assert_eq!(ending("discard temp"), Kept::HELD);
        for text in ["select 1", "commit", "copy t from stdin", "update t set a = 1", "create"] {
            assert!(!making(text).meets(Kept::SETTINGS), "{text}");
            assert_eq!(ending(text), Kept::NOTHING, "{text}");
        }
    }

    #[test]
    fn advisory_locks_of_transactions_are_none_of_the_sessions() {
        assert_eq!(advisory(b"pg_try_advisory_lock_shared"), Some(Deeds::making(Kept::LOCKS)));
        assert_eq!(advisory(b"pg_advisory_unlock_all"), Some(Deeds::ending(Kept::LOCKS)));
        assert_eq!(advisory(b"pg_advisory_xact_lock"), Some(Deeds::default()));
        assert_eq!(advisory(b"pg_advisory_story"), None);
        assert_eq!(advisory(b"lock"), None);
    }

    #[test]
    fn a_select_into_a_temporary_table_is_found() {
        for text in [
            "select 1 into temp t",
            "SELECT 1 INTO Temporary TABLE t",
            "select a into local temp t from x",
            "select 1 into pg_temp.t",
            "select 1 into \"pg_temp\".t",
            "select 1 into /* here */ temp t",
        ] {
            assert!(selects_into_temporary(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "select temp from readings",
            "insert into template (attempts) values (1)"
                .replace("into template", "into x")
                .as_str(),
            "select a into t from pg_temp.x",
            "p",
        ] {
            assert!(!selects_into_temporary(text.as_bytes()), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>) {
            statement(&text);
            advisory(&text);
            selects_into_temporary(&text);
        }
    }
}
