//! The five bytes in front of every message, and the errors of all parsers.

use std::fmt;

/// Bytes of a message's tag and length word.
pub const HEADER_BYTES: usize = 5;

/// Most bytes of one message, tag and length word included: a body of one gigabyte less one.
///
/// PostgreSQL refuses a longer one as "invalid message length" and cannot build one itself.
/// Source: `MaxAllocSize` in `src/include/utils/memutils.h`, which bounds what a server builds,
/// and `PQ_LARGE_MESSAGE_LIMIT` in `src/include/libpq/libpq.h`, what it takes.
pub const MESSAGE_BYTES_MAX: usize = HEADER_BYTES + 0x3fff_ffff;

/// What the first five bytes of a message say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of message; its meaning depends on the direction.
    pub tag: u8,
    /// Bytes of the whole message, tag and length word included.
    pub total: usize,
}

/// Reads the header at the start of `bytes`; `None` while fewer than five bytes are there.
///
/// # Errors
/// `BadLength` when the length word does not even cover itself (negative ones included),
/// `TooLong` beyond [`MESSAGE_BYTES_MAX`]. The stream can't be followed after either.
///
/// Source: "Message Formats".
#[inline]
pub fn header(bytes: &[u8]) -> Result<Option<Header>, WireError> {
    let Some(&[tag, a, b, c, d]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let len = i32::from_be_bytes([a, b, c, d]);
    if len < 4 {
        return Err(WireError::BadLength { tag, len });
    }
    let total = len as usize + 1;
    if total > MESSAGE_BYTES_MAX {
        return Err(WireError::TooLong { what: "message", len: total, max: MESSAGE_BYTES_MAX });
    }
    Ok(Some(Header { tag, total }))
}

/// Bytes that are not the message they should be. Fields are named as in the PostgreSQL docs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireError {
    /// A length word that does not cover itself. `tag` is 0 for a start-up packet.
    BadLength { tag: u8, len: i32 },
    /// The message ends before or within this field.
    Truncated(&'static str),
    /// This string has no NUL at its end.
    NotTerminated(&'static str),
    /// This string is not UTF-8.
    NotUtf8(&'static str),
    /// Bytes follow the last field of this message.
    Trailing(&'static str),
    /// A field holds a value the protocol does not define.
    Unexpected { what: &'static str, got: u32 },
    /// `len` of `what` (bytes, unless `what` names a count) where at most `max` are allowed.
    TooLong { what: &'static str, len: usize, max: usize },
    /// A stored secret that claims a format it does not have.
    BadSecret(&'static str),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::BadLength { tag: 0, len } => {
                write!(f, "invalid length {len} of a start-up packet")
            }
            WireError::BadLength { tag, len } => {
                write!(f, "invalid length {len} of message '{}'", tag.escape_ascii())
            }
            WireError::Truncated(what) => write!(f, "message ends within {what}"),
            WireError::NotTerminated(what) => write!(f, "{what} is not terminated"),
            WireError::NotUtf8(what) => write!(f, "{what} is not UTF-8"),
            WireError::Trailing(what) => write!(f, "bytes after the end of {what}"),
            WireError::Unexpected { what, got } => write!(f, "unexpected {what}: {got}"),
            WireError::TooLong { what, len, max } => {
                write!(f, "{what} too long: {len}, at most {max}")
            }
            WireError::BadSecret(why) => write!(f, "invalid stored secret: {why}"),
        }
    }
}

impl std::error::Error for WireError {}
