//! The normal text of a statement: one for all texts that ask the same with other values.
//!
//! Every literal and every parameter is `$1`, `$2` and so on, in order of appearance; letters
//! outside of quotes are small; blanks that part nothing are gone. So `where id = 5` and
//! `WHERE id=$1` have the same normal text, and whoever names a statement names all of these.
//!
//! It is a name, not a statement to be run: of `a = $1 or b = $1` it says `a=$1 or b=$2`.

use crate::scan::LiteralKind;
use crate::Source;

/// What two pieces of text are to one another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Letters, digits, quoted names, literals: two in a row need a blank.
    Word,
    /// Characters of operators: with a blank between them they are two.
    Sign,
    /// Parentheses, commas.
    Alone,
}

/// The normal text of a shape, as [`crate::Scan::shape`] gives it.
pub fn normal(shape: &[u8]) -> Vec<u8> {
    normal_with(shape, |_| false).0
}

/// The normal text, but for the literals that can be nothing else: `keeps` says of the n-th one
/// whether it is such, and it stays as it is in the shape. And where the values are, in order of
/// appearance; a parameter that is named twice is there twice.
pub fn normal_with(shape: &[u8], keeps: impl Fn(usize) -> bool) -> (Vec<u8>, Vec<Source>) {
    let mut out = Vec::with_capacity(shape.len() + 16);
    let mut sources = Vec::new();
    let (mut values, mut literals) = (0u32, 0u32);
    let mut last = Part::Alone;
    let mut rest = shape;
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b' ' {
            rest = after;
            continue;
        }
        let blank = rest.len() < shape.len() && shape[shape.len() - rest.len() - 1] == b' ';
        let (part, length) = piece(rest);
        match (last, part) {
            (Part::Word, Part::Word) => out.push(b' '),
            (Part::Sign, Part::Sign) if blank => out.push(b' '),
            _ => {}
        }
        let text = &rest[..length];
        let source = source(text, literals);
        literals += u32::from(matches!(source, Some(Source::Literal(_))));
        sources.extend(source);
        let kept = matches!(source, Some(Source::Literal(at)) if keeps(at as usize));
        if source.is_some() && !kept {
            values += 1;
            out.extend_from_slice(format!("${values}").as_bytes());
        } else if byte == b'"' {
            out.extend_from_slice(text);
        } else {
            out.extend(text.iter().map(u8::to_ascii_lowercase));
        }
        last = part;
        rest = &rest[length..];
    }
    (out, sources)
}

/// The kind and the length of the piece that `text` begins with.
fn piece(text: &[u8]) -> (Part, usize) {
    let run = |holds: fn(u8) -> bool| {
        text.iter().skip(1).position(|byte| !holds(*byte)).map_or(text.len(), |end| end + 1)
    };
    match text.first() {
        Some(b'"') => (Part::Word, quoted(text)),
        Some(b'$') => (Part::Word, run(|byte| byte.is_ascii_digit())),
        Some(byte) if is_word(*byte) => (Part::Word, run(|byte| is_word(byte) || byte == b'$')),
        Some(byte) if is_literal(*byte) => (Part::Word, 1),
        Some(b'(' | b')' | b'[' | b']' | b',') => (Part::Alone, 1),
        _ => (Part::Sign, 1.min(text.len())),
    }
}

/// The length of a name in quotes, of which two in a row are one of its letters.
fn quoted(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(end) = text[at..].iter().position(|byte| *byte == b'"') {
        at += end + 1;
        if text.get(at) != Some(&b'"') {
            return at;
        }
        at += 1;
    }
    text.len()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn is_literal(byte: u8) -> bool {
    use LiteralKind::{Int4, Int8, Numeric, Text};
    [Int4, Int8, Numeric, Text].iter().any(|kind| kind.byte() == byte)
}

/// The value that a piece stands for; `literals` came before it.
fn source(piece: &[u8], literals: u32) -> Option<Source> {
    match piece {
        [b'$', number @ ..] if !number.is_empty() => {
            // A number that is too large belongs to no parameter that could be bound.
            let number = std::str::from_utf8(number).ok()?.parse().unwrap_or(u32::MAX);
            Some(Source::Parameter(number))
        }
        [byte] if is_literal(*byte) => Some(Source::Literal(literals)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scan;

    fn of(text: &str) -> String {
        let mut scan = Scan::new();
        assert!(scan.scan(text.as_bytes()), "{text}");
        String::from_utf8(normal(scan.shape())).expect("UTF-8")
    }

    #[track_caller]
    fn same(texts: &[&str]) {
        for text in texts {
            assert_eq!(of(text), of(texts[0]), "{text}");
        }
    }

    #[test]
    fn literals_and_parameters_are_numbered_in_order_of_appearance() {
        assert_eq!(
            of("SELECT a FROM t WHERE id = 5 AND b IN ('x', $1) LIMIT 10;"),
            "select a from t where id=$1 and b in($2,$3)limit $4"
        );
        same(&["select a from t where id = 5", "select a from t where id = $1"]);
        same(&[
            "select 1 where a = 1.5",
            "select $2 where a = $1",
            "select 'x' where a = 9999999999",
        ]);
        same(&["select a where b = $1 and c = $1", "select a where b = 1 and c = 2"]);
        same(&["select a where b = -5", "select a where b = $7"]);
    }

    #[test]
    fn case_and_blanks_outside_of_quotes_do_not_matter() {
        same(&[
            "select a.x, count(*) from t a where id=5",
            "SELECT A.X , Count ( * )\n  FROM T  a -- all\n WHERE /* the */ id = $1 ;",
        ]);
        same(&["select \"A b\" from t", "SELECT  \"A b\"FROM t"]);
        for (one, other) in [
            ("select \"A\" from t", "select \"a\" from t"),
            ("select \"A  b\" from t", "select \"A b\" from t"),
            ("select a b from t", "select ab from t"),
            ("select a < - b from t", "select a <- b from t"),
            ("select a from t where b = 1", "select a from t where c = 1"),
            ("select a where b in (1)", "select a where b in (1, 2)"),
        ] {
            assert_ne!(of(one), of(other));
        }
    }

    #[test]
    fn values_are_told_in_order_of_appearance_and_what_is_kept_stays() {
        use Source::{Literal, Parameter};
        let with = |text: &str, kept: &[usize]| {
            let mut scan = Scan::new();
            assert!(scan.scan(text.as_bytes()), "{text}");
            let (normal, sources) = normal_with(scan.shape(), |at| kept.contains(&at));
            (String::from_utf8(normal).expect("UTF-8"), sources)
        };
        let (text, sources) = with("select a from t where b = $2 and c in (5, $1, 'x', $2)", &[]);
        assert_eq!(text, "select a from t where b=$1 and c in($2,$3,$4,$5)");
        assert_eq!(sources, [Parameter(2), Literal(0), Parameter(1), Literal(1), Parameter(2)]);
        let (text, sources) = with("select a from t where b = 7 order by 1", &[1]);
        assert_eq!(text, "select a from t where b=$1 order by \u{1}");
        assert_eq!(sources, [Literal(0), Literal(1)]);
        assert_ne!(text, with("select a from t where b = 7 order by $1", &[]).0);
    }

    #[test]
    fn a_name_that_holds_a_dollar_is_no_parameter() {
        assert_eq!(of("select a$1, $1 from t$2"), "select a$1,$1 from t$2");
    }

    #[test]
    fn names_with_quotes_in_them_stay_as_they_are() {
        assert_eq!(of("select \"a\"\"B $1 5\" from t"), "select \"a\"\"B $1 5\" from t");
    }

    proptest::proptest! {
        #[test]
        fn the_normal_text_of_a_normal_text_is_itself(
            words in proptest::collection::vec(
                proptest::sample::select(&[
                    "select", "A", "\"B  c\"", "5", "'x'", "$3", "=", "<", "-", "(", ")", ",", ".",
                    " ", "  ", "\n", "and", "é", "::", "1.5", "*", "[", "]", "a$1",
                ][..]),
                1..20,
            ),
        ) {
            let text = words.concat();
            let mut scan = Scan::new();
            if scan.scan(text.as_bytes()) {
                let once = normal(scan.shape());
                if scan.scan(&once) {
                    proptest::prop_assert_eq!(&normal(scan.shape()), &once, "{}", text);
                }
            }
        }

        #[test]
        fn no_bytes_make_it_panic(shape: Vec<u8>) {
            normal(&shape);
        }
    }
}
