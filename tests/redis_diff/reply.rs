//! Replies of RESP2 and RESP3, kept so that writing them again gives the same bytes.

use std::fmt;

/// Deepest nesting that is read; scripts give some levels, no command more.
const DEPTH_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    /// `+ - : , # ( _`: a tag and the rest of the line.
    Line(u8, Vec<u8>),
    /// `$ = !` with a length.
    Bulk(u8, Vec<u8>),
    /// `* ~ % > |` with a count. A map holds its keys and values in turn.
    Many(u8, Vec<Reply>),
    /// `$-1` and `*-1`.
    Nil(u8),
}

use Reply::{Bulk, Line, Many, Nil};

impl Reply {
    /// The first reply in `bytes` and its length; nothing when it is not whole.
    ///
    /// # Errors
    /// What is wrong with it, for bytes that no server may send.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
        let mut at = 0;
        let reply = parse(bytes, &mut at, DEPTH_MAX)?;
        Ok(reply.map(|reply| (reply, at)))
    }

    pub fn error(&self) -> Option<&[u8]> {
        match self {
            Line(b'-', text) | Bulk(b'!', text) => Some(text),
            _ => None,
        }
    }

    /// The text of a bulk or simple string.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Line(b'+', text) | Bulk(_, text) => Some(text),
            _ => None,
        }
    }

    pub fn children(&self) -> &[Reply] {
        match self {
            Many(_, children) => children,
            _ => &[],
        }
    }

    pub fn integer(&self) -> Option<i64> {
        match self {
            Line(b':', text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }
}

fn parse(bytes: &[u8], at: &mut usize, depth: usize) -> Result<Option<Reply>, String> {
    let rest = &bytes[*at..];
    let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
        return Ok(None);
    };
    let Some((&tag, line)) = rest[..end].split_first() else {
        return Err("an empty line where a reply begins".to_owned());
    };
    *at += end + 2;
    match tag {
        b'+' | b'-' | b':' | b',' | b'#' | b'(' | b'_' => Ok(Some(Line(tag, line.to_vec()))),
        b'$' | b'=' | b'!' => match length(tag, line)? {
            None => Ok(Some(Nil(tag))),
            Some(length) => {
                let Some(body) = bytes.get(*at..*at + length + 2) else {
                    return Ok(None);
                };
                *at += length + 2;
                match body.strip_suffix(b"\r\n") {
                    Some(body) => Ok(Some(Bulk(tag, body.to_vec()))),
                    None => Err("a bulk string without CRLF at its end".to_owned()),
                }
            }
        },
        b'*' | b'~' | b'%' | b'>' | b'|' => match length(tag, line)? {
            None => Ok(Some(Nil(tag))),
            Some(_) if depth == 0 => Err("nested too deep".to_owned()),
            Some(count) => {
                let count = if tag == b'%' || tag == b'|' { count * 2 } else { count };
                let mut children = Vec::new();
                for _ in 0..count {
                    match parse(bytes, at, depth - 1)? {
                        Some(child) => children.push(child),
                        None => return Ok(None),
                    }
                }
                Ok(Some(Many(tag, children)))
            }
        },
        _ => Err(format!("no reply begins with {:?}", char::from(tag))),
    }
}

/// A length as servers write it, -1 for nil: so that two spellings of one number differ.
fn length(tag: u8, line: &[u8]) -> Result<Option<usize>, String> {
    let text = String::from_utf8_lossy(line);
    if text == "-1" {
        return Ok(None);
    }
    let number: usize = text.parse().map_err(|_| format!("{}{text}", char::from(tag)))?;
    if number.to_string() != text {
        return Err(format!("the length {text:?}"));
    }
    Ok(Some(number))
}

/// On one line, bytes that are no text escaped.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line(tag, text) => write!(f, "{}{}", char::from(*tag), text.escape_ascii()),
            Bulk(b'$', text) => f.write_str(&quoted(text)),
            Bulk(tag, text) => write!(f, "{}{}", char::from(*tag), quoted(text)),
            Nil(tag) => write!(f, "{}-1", char::from(*tag)),
            Many(tag, children) => {
                write!(f, "{}[", char::from(*tag))?;
                for (number, child) in children.iter().enumerate() {
                    let comma = if number == 0 { "" } else { ", " };
                    write!(f, "{comma}{child}")?;
                }
                f.write_str("]")
            }
        }
    }
}

/// A word between quotes; of a long one its beginning, and how long it is.
pub fn quoted(word: &[u8]) -> String {
    const BYTES_MAX: usize = 400;
    match word.get(..BYTES_MAX) {
        Some(start) if word.len() > BYTES_MAX => {
            format!("\"{}\"... of {} bytes", start[..40].escape_ascii(), word.len())
        }
        _ => format!("\"{}\"", word.escape_ascii()),
    }
}

#[test]
fn replies_are_read_whole_or_not_at_all() {
    let bytes = b"*3\r\n$-1\r\n%1\r\n+a\r\n:1\r\n~1\r\n=7\r\ntxt:a\r\n\r\n";
    let whole = Many(
        b'*',
        vec![
            Nil(b'$'),
            Many(b'%', vec![Line(b'+', b"a".to_vec()), Line(b':', b"1".to_vec())]),
            Many(b'~', vec![Bulk(b'=', b"txt:a\r\n".to_vec())]),
        ],
    );
    assert_eq!(Reply::parse(bytes), Ok(Some((whole, bytes.len()))));
    for end in 0..bytes.len() {
        assert_eq!(Reply::parse(&bytes[..end]), Ok(None), "cut at {end}");
    }
    assert!(Reply::parse(b"$01\r\na\r\n").is_err());
    assert!(Reply::parse(b"nonsense\r\n").is_err());
}
