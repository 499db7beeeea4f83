//! Whether a text may change what its session keeps: settings, roles, temporary tables, locks.
//!
//! It only has to be right in one direction: a text that changes something is noticed, and one that
//! does not costs a look at the session at most. Nearly every text is told by a search for its
//! parentheses and semicolons; nothing is allocated.
//!
//! Source: PostgreSQL docs, SET, RESET, DISCARD, DO; "Functions and Operators".

use crate::keeps::{advisory, selects_into_temporary, statement, Deeds, Kept};

/// What in a text may change its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch<'a> {
    /// A command that does, or that can't be looked into.
    Command(Deeds),
    /// A function is called, or something looks like it, whose deeds are not known here.
    Call(&'a [u8]),
}

/// Names of PostgreSQL's have at most so many bytes. Source: NAMEDATALEN.
const NAME_BYTES_MAX: usize = 63;

/// Tells everything in `text` that may change its session.
pub fn touches(text: &[u8], mut each: impl FnMut(Touch<'_>)) {
    command(statement(text), &mut each);
    for at in memchr::memchr2_iter(b'(', b';', text) {
        if text[at] == b';' {
            command(statement(&text[at + 1..]), &mut each);
        } else {
            called(&text[..at], &text[at + 1..], &mut each);
        }
    }
    if selects_into_temporary(text) {
        each(Touch::Command(Deeds::making(Kept::TEMPORARY)));
    }
}

fn command(deeds: Deeds, each: &mut impl FnMut(Touch<'_>)) {
    if !deeds.is_nothing() {
        each(Touch::Command(deeds));
    }
}

/// `before` ends where a parenthesis opens, and `within` begins there.
fn called(before: &[u8], within: &[u8], each: &mut impl FnMut(Touch<'_>)) {
    let before = before.trim_ascii_end();
    let (name, rest) = match before.last() {
        // The end of a comment.
        Some(b'/') => return each(Touch::Command(Deeds::ANY)),
        Some(b'"') => {
            let inner = &before[..before.len() - 1];
            let open = inner.iter().rposition(|byte| *byte == b'"').unwrap_or(0);
            (&inner[(open + 1).min(inner.len())..], &inner[..open])
        }
        Some(byte) if is_name(*byte) => {
            let from = before.iter().rposition(|byte| !is_name(*byte)).map_or(0, |at| at + 1);
            (&before[from..], &before[..from])
        }
        _ => return,
    };
    let mut folded = [0; NAME_BYTES_MAX];
    let quoted = before.last() == Some(&b'"');
    let Some(folded) = folded.get_mut(..name.len()) else {
        return each(Touch::Command(Deeds::ANY));
    };
    folded.copy_from_slice(name);
    if !quoted {
        folded.make_ascii_lowercase();
    }
    if *folded == *b"set_config" {
        if !ends_with_its_transaction(within) {
            each(Touch::Command(Deeds::making(Kept::SETTINGS)));
        }
        return;
    }
    if let Some(deeds) = advisory(folded) {
        return command(deeds, each);
    }
    if (quoted || !is_harmless(folded)) && !is_target(rest) {
        each(Touch::Call(folded));
    }
}

/// Whether the last argument of `set_config` is plainly true.
fn ends_with_its_transaction(within: &[u8]) -> bool {
    let (mut depth, mut from) = (0, 0);
    let mut quoted = false;
    for (at, byte) in within.iter().enumerate() {
        match byte {
            // Quotes of other kinds and comments could hide where it ends.
            b'\\' => return false,
            b'$' if !within.get(at + 1).is_some_and(u8::is_ascii_digit) => return false,
            b'\'' => quoted = !quoted,
            _ if quoted => {}
            b'/' | b'-' => return false,
            b'(' => depth += 1,
            b')' if depth == 0 => {
                return within[from..at].trim_ascii().eq_ignore_ascii_case(b"true")
            }
            b')' => depth -= 1,
            b',' if depth == 0 => from = at + 1,
            _ => {}
        }
    }
    false
}

/// INSERT INTO, COPY and CREATE TABLE have a table's columns in parentheses.
fn is_target(mut before: &[u8]) -> bool {
    while let Some(schema) = before.trim_ascii_end().strip_suffix(b".") {
        let schema = schema.strip_suffix(b"\"").unwrap_or(schema);
        let from = schema.iter().rposition(|byte| !is_name(*byte)).map_or(0, |at| at + 1);
        before = schema[..from].strip_suffix(b"\"").unwrap_or(&schema[..from]);
    }
    let before = before.trim_ascii_end();
    ["into", "copy", "table", "exists"].iter().any(|word| {
        let from = before.len().checked_sub(word.len());
        from.is_some_and(|from| before[from..].eq_ignore_ascii_case(word.as_bytes()))
    })
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// Words that are no functions, and the functions that are called most.
#[rustfmt::skip]
fn is_harmless(name: &[u8]) -> bool {
    matches!(name,
        b"in" | b"values" | b"and" | b"or" | b"not" | b"on" | b"using" | b"as" | b"over" | b"by"
        | b"filter" | b"any" | b"all" | b"some" | b"exists" | b"select" | b"from" | b"where"
        | b"then" | b"when" | b"else" | b"case" | b"like" | b"between" | b"conflict" | b"key"
        | b"unique" | b"check" | b"array" | b"row" | b"union" | b"except" | b"intersect"
        | b"limit" | b"offset" | b"distinct" | b"having" | b"join" | b"lateral" | b"is"
        | b"materialized" | b"varchar" | b"char" | b"numeric" | b"decimal" | b"timestamp"
        | b"time" | b"interval" | b"bit" | b"float" | b"explain" | b"within" | b"group"
        | b"count" | b"sum" | b"min" | b"max" | b"avg" | b"coalesce" | b"nullif" | b"greatest"
        | b"least" | b"lower" | b"upper" | b"length" | b"now" | b"cast" | b"extract"
        | b"substring" | b"substr" | b"trim" | b"position" | b"date_trunc" | b"to_char" | b"abs"
        | b"round" | b"floor" | b"ceil" | b"array_agg" | b"string_agg" | b"json_agg"
        | b"jsonb_agg" | b"json_build_object" | b"jsonb_build_object" | b"row_number" | b"rank"
        | b"concat" | b"random" | b"generate_series" | b"unnest" | b"nextval" | b"md5"
        | b"replace" | b"left" | b"right" | b"format" | b"current_setting" | b"pg_backend_pid"
        | b"pg_sleep" | b"repeat" | b"to_timestamp" | b"clock_timestamp" | b"row_to_json"
        | b"to_json" | b"to_jsonb" | b"jsonb_set" | b"gen_random_uuid")
}

/// Names of settings that extensions and applications make, which have dots, wherever they may be in
/// a text: in a SET, a quote, a comment.
pub fn dotted_names(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|byte| !is_name(*byte) && *byte != b'.')
        .filter(|name| name.contains(&b'.') && name.len() <= NAME_BYTES_MAX)
        .filter_map(|name| std::str::from_utf8(name).ok())
        .filter(|name| name.split('.').all(|part| !part.is_empty() && !starts_with_digit(part)))
}

fn starts_with_digit(part: &str) -> bool {
    part.starts_with(|first: char| first.is_ascii_digit() || first == '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        touches(text.as_bytes(), |touch| {
            all.push(match touch {
                Touch::Command(deeds) if deeds == Deeds::making(Kept::CHANNELS) => "+".to_owned(),
                Touch::Command(deeds) if deeds == Deeds::ending(Kept::CHANNELS) => "-".to_owned(),
                Touch::Command(_) => "!".to_owned(),
                Touch::Call(name) => String::from_utf8_lossy(name).into_owned(),
            });
        });
        all
    }

    #[test]
    fn commands_that_change_a_session_are_noticed() {
        for text in [
            "set search_path = x",
            " /* a */ SET role bob",
            "set session authorization bob",
            "set session characteristics as transaction read only",
            "set names 'utf8'",
            "set time zone 'UTC'",
            "reset all",
            "DISCARD ALL",
            "do $$ begin end $$",
            "execute p",
            "explain analyze execute p",
            "create table t as execute p",
            "load 'x'",
            "select 1; set a.b = 'c'",
            "begin;\nset work_mem = 1",
            "select 1; create temp table t ()",
            "select 1 into temp t",
            "select pg_advisory_lock(1)",
            "select pg_catalog.PG_TRY_ADVISORY_LOCK (1, 2)",
            "select pg_advisory_unlock(1)",
        ] {
            assert_eq!(of(text), ["!"], "{text}");
        }
    }

    #[test]
    fn what_ends_with_its_transaction_or_does_nothing_is_not() {
        for text in [
            "",
            "select 1",
            "set local role bob",
            "SET LOCAL work_mem = 1; select 2;",
            "set transaction read only",
            "set constraints all deferred",
            "begin; update t set a = 1; commit",
            "insert into t (a, b) values (1, 2) on conflict (a) do nothing",
            "insert into \"s\".\"T\" (a) values (1)",
            "insert into s.t(a) select count(*) from t where a in (1)",
            "copy t (a) from stdin",
            "rollback to a",
            "select 'a;b'",
            "select pg_advisory_xact_lock(1)",
            "delete from temp_t where temp = 'template'",
        ] {
            assert_eq!(of(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn listening_is_told_wherever_a_statement_begins() {
        assert_eq!(of("listen a"), ["+"]);
        assert_eq!(of("UnListen *"), ["-"]);
        assert_eq!(of("begin; /* x */ LISTEN \"a\"; unlisten b;"), ["+", "-"]);
        for text in ["listens", "unlist", "update t set listen = 1", "select 'listen a'", "u", "l"]
        {
            assert_eq!(of(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn calls_are_told_by_their_names() {
        assert_eq!(of("call s.\"P q\"(1)"), ["P q"]);
        assert_eq!(of("select a.f(g(1))"), ["f", "g"]);
        assert_eq!(of("select f /* x */ (1)"), ["!"]);
        assert_eq!(of(&format!("select {}(1)", "f".repeat(64))), ["!"]);
    }

    #[test]
    fn a_setting_for_the_transaction_only_is_none_of_the_sessions() {
        for text in [
            "select set_config('a.b', $1, true)",
            "select PG_CATALOG.Set_Config ('a', lower('b, c)'), TRUE )",
            "select set_config('role', $2, true), set_config('search_path', 'a''b', true)",
        ] {
            assert_eq!(of(text), [""; 0], "{text}");
        }
        for text in [
            "select set_config('a.b', $1, false)",
            "select set_config('a', 'b', $1)",
            "select set_config('a', 'b', not true)",
            "select set_config('a', E'\\'', false), ' , true)'",
            "select set_config('a', $q$'$q$, false), ' , true)'",
            "select set_config('a', 'b', false /* , true) */)",
            "select set_config('a', 'b', false -- , true)\n)",
            "select set_config('a', 'b', true",
        ] {
            assert_eq!(of(text), ["!"], "{text}");
        }
        assert_eq!(of("select set_config('a', f(1), true)"), ["f"]);
    }

    #[test]
    fn names_with_dots_are_found_anywhere() {
        let of = |text: &'static str| dotted_names(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(of("set app.user_id = '1.5'"), ["app.user_id"]);
        assert_eq!(of("select set_config('my.app.x', '', false), 1.2, .5, a."), ["my.app.x"]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>) {
            touches(&text, |_| ());
            dotted_names(&text).for_each(drop);
        }
    }
}
