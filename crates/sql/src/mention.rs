//! SQL's own prepared statements: what a text prepares, executes and deallocates.
//!
//! [`may_mention`] is for every text and looks at the first words of its statements only. A text that
//! may is read to its end by [`mentions`]; what stands in quotes, comments and parentheses is passed
//! over, nothing is understood.
//!
//! Source: PostgreSQL docs, PREPARE, EXECUTE, DEALLOCATE, DISCARD, EXPLAIN, CREATE TABLE AS,
//! "Lexical Structure".

use std::borrow::Cow;

use crate::leading::{blank, next_word, word};

/// Names of PostgreSQL's have at most so many bytes. Source: NAMEDATALEN.
const NAME_BYTES_MAX: usize = 63;

/// What a statement of a text does with a prepared statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mention<'a> {
    /// `text` is this PREPARE alone.
    Prepare {
        name: Cow<'a, [u8]>,
        text: &'a [u8],
    },
    /// It is run, explained, or what a table is made of.
    Execute(Cow<'a, [u8]>),
    Deallocate(Cow<'a, [u8]>),
    /// DEALLOCATE ALL, DISCARD ALL.
    All,
    /// Something of the kind that could not be read.
    Unclear,
}

/// Whether a text may have mentions.
pub fn may_mention(text: &[u8]) -> bool {
    begins(text) || memchr::memchr_iter(b';', text).any(|at| begins(&text[at + 1..]))
}

fn begins(text: &[u8]) -> bool {
    let rest = blank(text);
    let first = rest.first().map(u8::to_ascii_lowercase);
    if !matches!(first, Some(b'p' | b'e' | b'd' | b'c')) {
        return false;
    }
    let (first, _) = word(rest);
    let is = |wanted: &str| first.eq_ignore_ascii_case(wanted.as_bytes());
    is("prepare") || is("deallocate") || is("discard") || executes(rest)
}

/// Whether a text may begin with a statement that runs, or plans, a prepared one.
pub(crate) fn executes(text: &[u8]) -> bool {
    let (first, rest) = next_word(text);
    let is = |wanted: &str| first.eq_ignore_ascii_case(wanted.as_bytes());
    let within = || {
        let mut words = rest.split(|byte| !byte.is_ascii_alphabetic());
        words.any(|word| word.eq_ignore_ascii_case(b"execute"))
    };
    is("execute") || (is("explain") || is("create")) && within()
}

/// Tells all mentions of a text, in their order.
pub fn mentions(text: &[u8]) -> Vec<Mention<'_>> {
    let mut all = Vec::new();
    let mut rest = text;
    while !blank(rest).is_empty() {
        let from = blank(rest);
        let end = statement_end(from);
        all.extend(mention(&from[..end]));
        rest = from.get(end + 1..).unwrap_or_default();
    }
    all
}

/// Of a text that is an EXECUTE and nothing else: the name, and what stands behind it.
pub fn executed(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let (first, rest) = next_word(text);
    if !first.eq_ignore_ascii_case(b"execute") {
        return None;
    }
    // Where strings end is up to the session, so any other semicolon may be a statement's end.
    let alone = memchr::memchr(b';', rest).is_none_or(|at| blank(&rest[at + 1..]).is_empty());
    name(rest).filter(|_| alone)
}

/// What a PREPARE prepares, behind its AS; a text that is none is itself.
pub fn prepared(text: &[u8]) -> &[u8] {
    let (first, rest) = next_word(text);
    let Some((_, mut rest)) = name(rest).filter(|_| first.eq_ignore_ascii_case(b"prepare")) else {
        return text;
    };
    let mut depth = 0usize;
    while let Some((token, after)) = token(blank(rest)) {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Word(word) if depth == 0 && word.eq_ignore_ascii_case(b"as") => return after,
            _ => {}
        }
        rest = after;
    }
    text
}

fn mention(text: &[u8]) -> Option<Mention<'_>> {
    let (first, rest) = word(text);
    let is = |wanted: &str| first.eq_ignore_ascii_case(wanted.as_bytes());
    if is("prepare") {
        return prepare(text, rest);
    }
    if is("execute") {
        return Some(name(rest).map_or(Mention::Unclear, |(name, _)| Mention::Execute(name)));
    }
    if is("deallocate") {
        return Some(deallocate(rest).unwrap_or(Mention::Unclear));
    }
    if is("discard") {
        let (second, _) = next_word(rest);
        return second.eq_ignore_ascii_case(b"all").then_some(Mention::All);
    }
    match is("explain") || is("create") {
        true => executed_within(rest, is("explain")),
        false => None,
    }
}

fn prepare<'a>(text: &'a [u8], rest: &'a [u8]) -> Option<Mention<'a>> {
    let Some((name, rest)) = name(rest) else { return Some(Mention::Unclear) };
    let (second, _) = next_word(rest);
    let types = blank(rest).first() == Some(&b'(');
    if !types && !second.eq_ignore_ascii_case(b"as") {
        // PREPARE TRANSACTION 'x', or an error.
        return None;
    }
    Some(Mention::Prepare { name, text })
}

fn deallocate(rest: &[u8]) -> Option<Mention<'_>> {
    let (prepare, after) = next_word(rest);
    let named = prepare.eq_ignore_ascii_case(b"prepare") && !blank(after).is_empty();
    let rest = if named { after } else { rest };
    let (first, _) = next_word(rest);
    if first.eq_ignore_ascii_case(b"all") {
        return Some(Mention::All);
    }
    name(rest).map(|(name, _)| Mention::Deallocate(name))
}

/// `EXPLAIN ... EXECUTE name`, `CREATE TABLE ... AS EXECUTE name`.
fn executed_within(mut rest: &[u8], mut may: bool) -> Option<Mention<'_>> {
    let mut depth = 0usize;
    loop {
        rest = blank(rest);
        let (token, after) = token(rest)?;
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Word(word) if depth == 0 => {
                let is = |wanted: &[u8]| word.eq_ignore_ascii_case(wanted);
                if may && is(b"execute") {
                    let name = name(after).map(|(name, _)| Mention::Execute(name));
                    return Some(name.unwrap_or(Mention::Unclear));
                }
                let passes = [&b"analyze"[..], b"analyse", b"verbose"];
                may = is(b"as") || may && passes.iter().any(|one| is(one));
            }
            _ => may &= depth > 0,
        }
        rest = after;
        if matches!(token, Token::Close) && depth == 0 {
            // The options of EXPLAIN; or a table's columns, behind which AS comes first.
            may = true;
        }
    }
}

/// A name at the beginning of a text, as PostgreSQL folds and cuts it, and what follows it.
fn name(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let rest = blank(text);
    if rest.first() == Some(&b'"') {
        let end = quoted_end(rest, b'"');
        let inner = rest.get(1..end.checked_sub(1)?)?;
        if inner.is_empty() || rest.get(end - 1) != Some(&b'"') {
            return None;
        }
        return Some((cut(single(inner)), &rest[end..]));
    }
    let (name, after) = word(rest);
    // U&"..." says its letters by numbers.
    let coded = name.eq_ignore_ascii_case(b"u") && after.starts_with(b"&\"");
    if coded || name.first().is_none_or(u8::is_ascii_digit) || name[0] == b'$' {
        return None;
    }
    let lower = match name.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    };
    Some((cut(lower), after))
}

/// A doubled quote is one.
fn single(inner: &[u8]) -> Cow<'_, [u8]> {
    if !inner.contains(&b'"') {
        return Cow::Borrowed(inner);
    }
    let mut plain = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        plain.push(*byte);
        if *byte == b'"' {
            bytes.next();
        }
    }
    Cow::Owned(plain)
}

/// At the end of a character, if it is UTF-8.
fn cut(name: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let mut end = NAME_BYTES_MAX;
    while end > 0 && name[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    Cow::Owned(name[..end].to_vec())
}

#[derive(Debug, Clone, Copy)]
enum Token<'a> {
    Word(&'a [u8]),
    Open,
    Close,
    Semicolon,
    /// A string, a quoted name, an operator.
    Other,
}

/// Where the statement at the beginning of a text ends: its semicolon, or the text's end. One within
/// parentheses is a rule's.
fn statement_end(text: &[u8]) -> usize {
    let (mut rest, mut depth) = (text, 0usize);
    loop {
        rest = blank(rest);
        let Some((token, after)) = token(rest) else { return text.len() };
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Semicolon if depth == 0 => return text.len() - rest.len(),
            _ => {}
        }
        rest = after;
    }
}

/// The first token of a text that begins with one, and what follows it.
fn token(text: &[u8]) -> Option<(Token<'_>, &[u8])> {
    let first = *text.first()?;
    let (token, end) = match first {
        b'(' => (Token::Open, 1),
        b')' => (Token::Close, 1),
        b';' => (Token::Semicolon, 1),
        b'"' | b'\'' => (Token::Other, quoted_end(text, first)),
        b'$' => (Token::Other, dollar_end(text)),
        _ => {
            let (word, after) = word(text);
            match (word, after.first()) {
                // Backslashes count in E'...' only.
                (b"e" | b"E", Some(b'\'')) => (Token::Other, 1 + escaped_end(after)),
                ([], _) => (Token::Other, 1),
                _ => (Token::Word(word), word.len()),
            }
        }
    };
    Some((token, &text[end.min(text.len())..]))
}

/// Behind the quote that ends what begins with one.
fn quoted_end(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memchr(quote, text.get(at..).unwrap_or_default()) {
        at += found + 1;
        if text.get(at) != Some(&quote) {
            return at;
        }
        at += 1;
    }
    text.len()
}

fn escaped_end(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match (byte, text.get(at + 1)) {
            (b'\\', _) | (b'\'', Some(b'\'')) => at += 2,
            (b'\'', _) => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// Behind `$tag$...$tag$`; a parameter is one byte.
fn dollar_end(text: &[u8]) -> usize {
    let tag = text[1..].iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
    let Some(length) = tag.filter(|at| text[1 + at] == b'$').map(|at| at + 2) else { return 1 };
    if text[1].is_ascii_digit() {
        return 1;
    }
    let (tag, body) = text.split_at(length);
    memchr::memmem::find(body, tag).map_or(text.len(), |at| length + at + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let all = mentions(text.as_bytes());
        assert!(all.is_empty() || may_mention(text.as_bytes()), "{text}");
        let plain = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let one = |mention: &Mention| match mention {
            Mention::Prepare { name, text } => format!("+{}: {}", plain(name), plain(text)),
            Mention::Execute(name) => format!("!{}", plain(name)),
            Mention::Deallocate(name) => format!("-{}", plain(name)),
            Mention::All => "all".to_owned(),
            Mention::Unclear => "?".to_owned(),
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn each_statement_of_a_text_is_told_in_its_order() {
        assert_eq!(of("prepare q as select 1"), ["+q: prepare q as select 1"]);
        assert_eq!(
            of(" /* ; */ Prepare \"Q;\"\"\" (int, text) AS select $1, ';' ; execute Q(1);DEALLOCATE q "),
            ["+Q;\": Prepare \"Q;\"\"\" (int, text) AS select $1, ';' ", "!q", "-q"]
        );
        assert_eq!(of("select ';execute q'; -- ;execute q\n execute r"), ["!r"]);
        assert_eq!(of("select $a$;execute q;$a$, $1, E'\\';execute q'; execute r"), ["!r"]);
        assert_eq!(of("begin; deallocate prepare all; discard all; discard plans"), ["all", "all"]);
        assert_eq!(of("deallocate prepare q; deallocate prepare"), ["-q", "-prepare"]);
    }

    #[test]
    fn what_executes_within_another_statement_is_found() {
        for text in [
            "execute q(1, 'a')",
            "explain execute q",
            "EXPLAIN ANALYZE verbose Execute Q (1)",
            "explain (analyze, format json) execute q",
            "create table t as execute q",
            "create temp table if not exists s.\"as\" (a, b) with (x = 1) on commit drop as execute q(1) with no data",
            "explain analyze create table t as execute q",
        ] {
            assert_eq!(of(text), ["!q"], "{text}");
        }
    }

    #[test]
    fn what_has_to_do_with_none_is_none() {
        for text in [
            "",
            "select 1; update t set a = 'execute q'",
            "prepare transaction 'x'",
            "explain select execute from t",
            "create trigger a before insert on t for each row execute function f()",
            "create function execute() returns int as 'select 1' language sql",
            "create view execute as select 1",
            "discard temp",
            "create rule r as on insert to t do (delete from a; execute q)",
        ] {
            assert_eq!(of(text), [""; 0], "{text}");
        }
        for text in ["select 1", "create table t (a int)", "copy t from stdin", "delete from t"] {
            assert!(!may_mention(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn names_are_folded_and_cut_and_odd_ones_are_unclear() {
        let long = "x".repeat(70);
        assert_eq!(of(&format!("execute {long}")), [format!("!{}", "x".repeat(63))]);
        assert_eq!(
            of(&format!("execute \"{}é\"", "x".repeat(62))),
            [format!("!{}", "x".repeat(62))]
        );
        for text in
            ["execute U&\"q\"", "execute", "execute \"", "deallocate \"\"", "prepare 1 as x"]
        {
            assert_eq!(of(text), ["?"], "{text}");
        }
    }

    #[test]
    fn a_text_that_is_an_execute_alone_is_told_apart() {
        let of = |text: &'static str| {
            let told = |(name, rest): (Cow<'_, [u8]>, &[u8])| {
                [&name[..], rest].map(|part| String::from_utf8_lossy(part).trim().to_owned())
            };
            executed(text.as_bytes()).map(told)
        };
        for (text, name, rest) in [
            ("execute q", "q", ""),
            (" /* x */ EXECUTE Q;", "q", ";"),
            ("execute \"Q q\"(1, f('a')) ; -- end", "Q q", "(1, f('a')) ; -- end"),
        ] {
            assert_eq!(of(text), Some([name.to_owned(), rest.to_owned()]), "{text}");
        }
        for text in [
            "",
            "execute",
            "execute u&\"q\"",
            "select 1",
            "explain execute q",
            "create table t as execute q",
            "execute q; set a.b = 1",
            "execute q('\\''); set work_mem = '1MB'",
            "execute q(';')",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_prepared_stands_behind_as() {
        for (text, wanted) in [
            ("prepare q as select f(1)", " select f(1)"),
            (
                "PREPARE \"as\" (int, numeric(1, 2)) /* as */ AS\nvalues (1) -- as",
                "\nvalues (1) -- as",
            ),
            ("prepare q", "prepare q"),
            ("prepare q(int as) x", "prepare q(int as) x"),
            ("select 1 as x", "select 1 as x"),
        ] {
            assert_eq!(String::from_utf8_lossy(prepared(text.as_bytes())), wanted, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>) {
            mentions(&text);
        }

        #[test]
        fn no_likely_text_makes_it_panic(text in "(prepare|execute|explain|create|as|[;'\"$a() E\\\\-]){0,20}") {
            mentions(text.as_bytes());
        }
    }
}
