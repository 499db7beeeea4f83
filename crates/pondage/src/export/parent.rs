//! `traceparent` in a comment of a statement, as sqlcommenter writes it.
//!
//! ```text
//! SELECT 1 /*application='web',traceparent='00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'*/
//!                                           version  trace                      parent          flags
//! ```
//!
//! Source: W3C Trace Context, "traceparent Header"; sqlcommenter, "Format".

/// So much of a comment is looked at.
const COMMENT_BYTES_MAX: usize = 2048;

const KEY: &[u8] = b"traceparent=";

/// The caller's span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    pub trace: [u8; 16],
    pub span: [u8; 8],
    pub sampled: bool,
}

/// The `traceparent` in the comment that a text begins or ends with.
pub fn find(text: &[u8]) -> Option<Parent> {
    first_comment(text).and_then(within).or_else(|| last_comment(text).and_then(within))
}

fn first_comment(text: &[u8]) -> Option<&[u8]> {
    let inner = text.trim_ascii_start().strip_prefix(b"/*")?;
    let inner = &inner[..inner.len().min(COMMENT_BYTES_MAX)];
    Some(&inner[..inner.windows(2).position(|two| two == b"*/")?])
}

fn last_comment(text: &[u8]) -> Option<&[u8]> {
    let mut text = text.trim_ascii_end();
    while let Some(rest) = text.strip_suffix(b";") {
        text = rest.trim_ascii_end();
    }
    let inner = text.strip_suffix(b"*/")?;
    let inner = &inner[inner.len().saturating_sub(COMMENT_BYTES_MAX)..];
    Some(&inner[inner.windows(2).rposition(|two| two == b"/*")? + 2..])
}

fn within(comment: &[u8]) -> Option<Parent> {
    let starts = |at: &usize| {
        *at == 0 || !comment[at - 1].is_ascii_alphanumeric() && comment[at - 1] != b'_'
    };
    let mut all = comment.windows(KEY.len()).enumerate();
    let at = all.find(|(at, word)| *word == KEY && starts(at))?.0;
    let value = &comment[at + KEY.len()..];
    parse(value.strip_prefix(b"'").unwrap_or(value))
}

fn parse(value: &[u8]) -> Option<Parent> {
    let (head, rest) = value.split_at_checked(55)?;
    let [version, trace, span, flags] = [&head[..2], &head[3..35], &head[36..52], &head[53..]];
    if [head[2], head[35], head[52]] != [b'-'; 3] {
        return None;
    }
    let [version] = hex(version)?;
    let (trace, span): ([u8; 16], [u8; 8]) = (hex(trace)?, hex(span)?);
    let [flags] = hex(flags)?;
    // Later versions may be longer.
    let ends = match rest.first() {
        None => true,
        Some(b'-') => version > 0,
        Some(byte) => !byte.is_ascii_alphanumeric(),
    };
    let valid = ends && version != 0xff && trace != [0; 16] && span != [0; 8];
    valid.then_some(Parent { trace, span, sampled: flags & 1 == 1 })
}

/// In small letters, as the standard has it.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut out = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";

    #[test]
    fn it_is_found_at_either_end_of_a_text() {
        for text in [
            format!("select 1 /*traceparent='00-{ID}-01'*/"),
            format!("/*traceparent='00-{ID}-01'*/ select 1"),
            format!("select 1/* app='x',traceparent='00-{ID}-01',tracestate='a%3Db' */ ; \n"),
            format!("/* a */ select 1 /* traceparent=00-{ID}-01 */;;"),
            format!("/*traceparent='00-{ID}-03'*/ select 1 /* b */"),
            format!("select 1 /*traceparent='cc-{ID}-01-more'*/"),
        ] {
            let found = find(text.as_bytes()).expect(&text);
            assert_eq!((found.trace[0], found.trace[15]), (0x4b, 0x36), "{text}");
            assert_eq!((found.span[0], found.span[7], found.sampled), (0, 0xb7, true), "{text}");
        }
        let text = format!("select 1 /*traceparent='00-{ID}-00'*/");
        assert!(!find(text.as_bytes()).expect("one").sampled);
    }

    #[test]
    fn what_is_not_one_is_not_taken_for_one() {
        let zeros = "0".repeat(32);
        for text in [
            "select 1".to_owned(),
            String::new(),
            "/*".to_owned(),
            "*/".to_owned(),
            format!("select 'traceparent=00-{ID}-01'"),
            format!("select /*traceparent='00-{ID}-01'*/ 1"),
            format!("select 1 -- traceparent='00-{ID}-01'"),
            format!("select 1 /*xtraceparent='00-{ID}-01'*/"),
            format!("select 1 /*traceparent='ff-{ID}-01'*/"),
            format!("select 1 /*traceparent='00-{ID}-01-more'*/"),
            format!("select 1 /*traceparent='00-{ID}-0'*/"),
            format!("select 1 /*traceparent='00-{}-01'*/", ID.to_uppercase()),
            format!("select 1 /*traceparent='00-{zeros}-00f067aa0ba902b7-01'*/"),
            format!("/*{}traceparent='00-{ID}-01'*/ select 1", " ".repeat(COMMENT_BYTES_MAX)),
        ] {
            assert_eq!(find(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<u8>(), 0..80)) {
            find(&text);
            find(&[b"/*traceparent='", &text[..], b"*/"].concat());
        }
    }
}
