//! The first words of a text.
//!
//! Source: PostgreSQL docs, "Lexical Structure"; BEGIN, START TRANSACTION, DEALLOCATE.

/// What a text begins with, so far as the pooler cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leading<'a> {
    /// BEGIN or START TRANSACTION.
    Begin,
    /// The whole text is one DEALLOCATE.
    Deallocate(Dropped<'a>),
    Other,
}

/// What a DEALLOCATE drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped<'a> {
    All,
    /// As it is spelled in quotes, a doubled quote not yet single.
    Quoted(&'a [u8]),
    /// Without quotes: PostgreSQL folds it to lower case.
    Plain(&'a [u8]),
}

impl Dropped<'_> {
    /// Whether it drops the statement of this name.
    pub fn names(&self, name: &[u8]) -> bool {
        match self {
            Dropped::All => true,
            Dropped::Plain(word) => word.to_ascii_lowercase() == name,
            Dropped::Quoted(word) => {
                let mut quoted = word.iter();
                let mut plain = std::iter::from_fn(|| {
                    let next = quoted.next()?;
                    if *next == b'"' {
                        quoted.next();
                    }
                    Some(next)
                });
                name.iter().all(|byte| plain.next() == Some(byte)) && plain.next().is_none()
            }
        }
    }
}

pub fn leading(text: &[u8]) -> Leading<'_> {
    let rest = blank(text);
    // Only B, D and S can begin what is looked for; nearly every text ends here.
    match rest.first().map(u8::to_ascii_lowercase) {
        Some(b'b' | b'd' | b's') => {}
        _ => return Leading::Other,
    }
    let (first, rest) = word(rest);
    if first.eq_ignore_ascii_case(b"begin") {
        return Leading::Begin;
    }
    if first.eq_ignore_ascii_case(b"start") {
        let (second, _) = word(blank(rest));
        return if second.eq_ignore_ascii_case(b"transaction") {
            Leading::Begin
        } else {
            Leading::Other
        };
    }
    if first.eq_ignore_ascii_case(b"deallocate") {
        return deallocate(rest).map_or(Leading::Other, Leading::Deallocate);
    }
    Leading::Other
}

/// Whether a text is just these words, in any case, but for white space, comments and semicolons.
pub fn says(text: &[u8], words: &[&str]) -> bool {
    after(text, words).is_some_and(at_end)
}

/// What follows these words, in any case, where a text begins with them.
pub fn after<'t>(text: &'t [u8], words: &[&str]) -> Option<&'t [u8]> {
    let mut rest = text;
    for wanted in words {
        let found;
        (found, rest) = next_word(rest);
        if !found.eq_ignore_ascii_case(wanted.as_bytes()) {
            return None;
        }
    }
    Some(rest)
}

/// The first word of a text, past white space and comments, and what follows it. Empty: something
/// else comes first.
pub fn next_word(text: &[u8]) -> (&[u8], &[u8]) {
    word(blank(text))
}

fn deallocate(rest: &[u8]) -> Option<Dropped<'_>> {
    let mut rest = blank(rest);
    let (prepare, after) = word(rest);
    if prepare.eq_ignore_ascii_case(b"prepare") && !at_end(after) {
        rest = blank(after);
    }
    let (dropped, rest) = if rest.first() == Some(&b'"') {
        let mut end = 1;
        loop {
            match (rest.get(end)?, rest.get(end + 1)) {
                (b'"', Some(b'"')) => end += 2,
                (b'"', _) => break,
                _ => end += 1,
            }
        }
        (Dropped::Quoted(&rest[1..end]), &rest[end + 1..])
    } else {
        let (name, rest) = word(rest);
        let dropped =
            if name.eq_ignore_ascii_case(b"all") { Dropped::All } else { Dropped::Plain(name) };
        (!name.is_empty()).then_some((dropped, rest))?
    };
    at_end(rest).then_some(dropped)
}

/// Nothing but white space, comments and semicolons follows.
pub(crate) fn at_end(mut rest: &[u8]) -> bool {
    loop {
        rest = blank(rest);
        match rest.first() {
            None => return true,
            Some(b';') => rest = &rest[1..],
            Some(_) => return false,
        }
    }
}

pub(crate) fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let is_word =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || *byte >= 0x80;
    let end = text.iter().position(|byte| !is_word(byte)).unwrap_or(text.len());
    text.split_at(end)
}

/// What follows white space and comments. A block comment nests.
pub fn blank(mut text: &[u8]) -> &[u8] {
    loop {
        text = match text {
            [b' ' | b'\t' | b'\n' | b'\r' | 0x0c | 0x0b, rest @ ..] => rest,
            [b'-', b'-', rest @ ..] => {
                let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                &rest[end.unwrap_or(rest.len())..]
            }
            [b'/', b'*', rest @ ..] => block_comment(rest),
            _ => return text,
        };
    }
}

fn block_comment(mut text: &[u8]) -> &[u8] {
    let mut depth = 1;
    while depth > 0 {
        text = match text {
            [b'/', b'*', rest @ ..] => {
                depth += 1;
                rest
            }
            [b'*', b'/', rest @ ..] => {
                depth -= 1;
                rest
            }
            [_, rest @ ..] => rest,
            [] => return text,
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Leading<'_> {
        leading(text.as_bytes())
    }

    #[test]
    fn a_text_says_just_these_words_or_it_does_not() {
        let it = |text: &str| says(text.as_bytes(), &["vacuum", "full"]);
        for text in
            ["vacuum full", " VACUUM\tFull ; ;", "vacuum/* /* */ */full -- now", "vacuum--\nfull"]
        {
            assert!(it(text), "{text}");
        }
        for text in [
            "",
            "vacuum",
            "vacuumfull",
            "vacuum fully",
            "full vacuum",
            "vacuum full; x",
            "vacuum (full)",
        ] {
            assert!(!it(text), "{text}");
        }
    }

    #[test]
    fn what_follows_words_is_given_as_it_is() {
        let rest = |text: &'static str| after(text.as_bytes(), &["create", "cache"]);
        assert_eq!(rest(" CREATE /* a */ Cache\tx from y"), Some(&b"\tx from y"[..]));
        assert_eq!(rest("create cache"), Some(&b""[..]));
        for text in ["", "create", "create caches", "create \"cache\"", "recreate cache"] {
            assert_eq!(rest(text), None, "{text}");
        }
        assert_eq!(next_word(b" -- x\n a9$ (b"), (&b"a9$"[..], &b" (b"[..]));
        assert_eq!(next_word(b" (b"), (&b""[..], &b"(b"[..]));
    }

    #[test]
    fn transactions_begin_with_two_statements() {
        for text in
            ["BEGIN", "begin;", " /* a /* b */ c */ -- d\n\tBegin work", "start  transaction"]
        {
            assert_eq!(of(text), Leading::Begin, "{text}");
        }
        for text in [
            "",
            "beginning",
            "START",
            "select 1; begin",
            "/* begin",
            "-- begin",
            "start_transaction",
        ] {
            assert_eq!(of(text), Leading::Other, "{text}");
        }
    }

    #[test]
    fn a_lone_deallocate_says_what_it_drops() {
        assert_eq!(of("DEALLOCATE ALL"), Leading::Deallocate(Dropped::All));
        assert_eq!(of("deallocate prepare all ;"), Leading::Deallocate(Dropped::All));
        assert_eq!(of("deallocate _pg3_0"), Leading::Deallocate(Dropped::Plain(b"_pg3_0")));
        assert_eq!(of("deallocate prepare"), Leading::Deallocate(Dropped::Plain(b"prepare")));
        assert_eq!(
            of("deallocate \"A\"\"b\" -- x"),
            Leading::Deallocate(Dropped::Quoted(b"A\"\"b"))
        );
        for text in ["deallocate", "deallocate a; select 1", "deallocate \"a", "deallocate a b"] {
            assert_eq!(of(text), Leading::Other, "{text}");
        }
    }

    #[test]
    fn names_are_compared_as_postgresql_folds_them() {
        assert!(Dropped::Plain(b"Abc").names(b"abc"));
        assert!(!Dropped::Plain(b"Abc").names(b"Abc"));
        assert!(Dropped::Quoted(b"A\"\"b").names(b"A\"b"));
        assert!(!Dropped::Quoted(b"A\"\"b").names(b"A\"bc"));
        assert!(!Dropped::Quoted(b"Abc").names(b"Ab"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>) {
            leading(&text);
        }
    }
}
