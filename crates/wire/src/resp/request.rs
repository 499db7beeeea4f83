//! What clients send: commands, one at a time.
//!
//! How a [`Parser`] is driven: [`Parser::next`] gets the bytes that are there, beginning with the
//! first one of a command. `None` means that more are needed: it is called again with the same
//! bytes and more behind them, and takes up where it was, so that no byte of a long value is
//! looked at twice. `Some(n)` means that a command has ended after `n` bytes;
//! [`Parser::arguments`] has what it consists of until the next call, which gets the bytes behind.
//! After an error there is no next command: the client is told and closed.

use std::fmt;
use std::ops::Range;

use super::inline;

/// Most arguments of a command.
///
/// Source: `processMultibulkBuffer` in `src/networking.c` of Redis 6.2.
pub const ARGUMENTS_MAX: i64 = 1 << 20;

/// Most arguments of a command from a client that has yet to log in.
pub const ARGUMENTS_MAX_BEFORE_LOGIN: i64 = 10;

/// Most bytes of an argument of such a client.
pub const BULK_BYTES_MAX_BEFORE_LOGIN: u32 = 16_384;

/// Most bytes of a line, be it a whole command or a count.
///
/// Source: `PROTO_INLINE_MAX_SIZE` in `src/server.h` of Redis 7.2.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Most bytes of an argument if nothing else is configured (`proto-max-bulk-len`).
pub const BULK_BYTES_MAX: u32 = 512 << 20;

/// What a client may send at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an argument.
    pub bulk_bytes: u32,
    /// It has to log in before it may do anything else.
    pub must_log_in: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bulk_bytes: BULK_BYTES_MAX, must_log_in: false }
    }
}

/// Where an argument lies.
pub type Span = Range<u32>;

/// Both ends are below 4 GiB: the parser has seen to that.
pub(super) fn span(start: usize, end: usize) -> Span {
    start as u32..end as u32
}

/// Bytes that are no command. What is displayed is what the client is told, without its `-`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolError {
    CountTooLong,
    Count,
    CountBeforeLogin,
    /// This came where the `$` of an argument was expected.
    NoBulk(u8),
    LengthTooLong,
    Length,
    LengthBeforeLogin,
    Quotes,
    LineTooLong,
}

impl ProtocolError {
    /// The whole reply.
    pub fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"-ERR Protocol error: ");
        match self {
            // The byte as it came, but for what would end the reply.
            ProtocolError::NoBulk(got) => {
                let got = if matches!(got, b'\r' | b'\n') { b' ' } else { got };
                out.extend_from_slice(b"expected '$', got '");
                out.extend_from_slice(&[got, b'\'']);
            }
            error => out.extend_from_slice(error.text().as_bytes()),
        }
        out.extend_from_slice(b"\r\n");
    }

    fn text(self) -> &'static str {
        match self {
            ProtocolError::CountTooLong => "too big mbulk count string",
            ProtocolError::Count => "invalid multibulk length",
            ProtocolError::CountBeforeLogin => "unauthenticated multibulk length",
            ProtocolError::NoBulk(_) => "expected '$'",
            ProtocolError::LengthTooLong => "too big bulk count string",
            ProtocolError::Length => "invalid bulk length",
            ProtocolError::LengthBeforeLogin => "unauthenticated bulk length",
            ProtocolError::Quotes => "unbalanced quotes in request",
            ProtocolError::LineTooLong => "too big inline request",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())?;
        match self {
            ProtocolError::NoBulk(got) => write!(f, ", got '{}'", got.escape_ascii()),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// Takes commands out of a client's bytes. See the module on how it is driven.
#[derive(Debug, Default)]
pub struct Parser {
    spans: Vec<Span>,
    /// The words of a quoted line, if `quoted`.
    text: Vec<u8>,
    quoted: bool,
    /// Bytes of the command that are understood.
    at: usize,
    /// Up to here the end of a line was looked for in vain.
    searched: usize,
    /// Arguments of the command that are still to come; 0: no command has begun.
    missing: u32,
    /// The length of the argument that begins at `at`, if its head is understood.
    bulk: Option<u32>,
}

impl Parser {
    /// The next command of `bytes`: how many of them it takes, or none if more are needed.
    ///
    /// # Errors
    /// The client's: it is told and closed.
    pub fn next(&mut self, bytes: &[u8], limits: Limits) -> Result<Option<usize>, ProtocolError> {
        if self.missing == 0 {
            self.spans.clear();
            self.quoted = false;
            match bytes.first() {
                None => return Ok(None),
                Some(b'*') => {}
                Some(_) => return self.line(bytes),
            }
            let Some((count, end)) = self.number(bytes, ProtocolError::CountTooLong)? else {
                return Ok(None);
            };
            let count = count.filter(|count| *count <= ARGUMENTS_MAX);
            let count = count.ok_or(ProtocolError::Count)?;
            if count > ARGUMENTS_MAX_BEFORE_LOGIN && limits.must_log_in {
                return Err(ProtocolError::CountBeforeLogin);
            }
            if count <= 0 {
                return Ok(Some(self.done(end)));
            }
            // Bounded by `ARGUMENTS_MAX`.
            self.missing = count as u32;
            self.at = end;
            self.searched = end;
        }
        while self.missing > 0 {
            if !self.argument(bytes, limits)? {
                return Ok(None);
            }
        }
        let end = self.at;
        Ok(Some(self.done(end)))
    }

    /// What the last command consists of. Without any arguments it was empty and is passed over.
    pub fn arguments(&self) -> &[Span] {
        &self.spans
    }

    /// What the arguments are pieces of: the command's `bytes`, or a line without its quotes.
    pub fn source<'a>(&'a self, bytes: &'a [u8]) -> &'a [u8] {
        if self.quoted {
            &self.text
        } else {
            bytes
        }
    }

    /// Nothing of a next command is known: another parser could go on in its place.
    pub fn is_between_commands(&self) -> bool {
        self.missing == 0 && self.searched == 0
    }

    /// Bytes from the beginning of the command without which it is not complete, as far as that
    /// is known: where the input should have room for.
    pub fn wants(&self) -> usize {
        self.at + self.bulk.map_or(0, |len| len as usize + 2)
    }

    /// Memory that the parser keeps, in bytes.
    pub fn memory(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.text.capacity()
    }

    fn done(&mut self, end: usize) -> usize {
        self.at = 0;
        self.searched = 0;
        end
    }

    /// One more argument; false if its bytes are not all there.
    fn argument(&mut self, bytes: &[u8], limits: Limits) -> Result<bool, ProtocolError> {
        let len = match self.bulk {
            Some(len) => len,
            None => {
                let Some((len, end)) = self.number(bytes, ProtocolError::LengthTooLong)? else {
                    return Ok(false);
                };
                match bytes.get(self.at) {
                    Some(b'$') => {}
                    other => return Err(ProtocolError::NoBulk(other.copied().unwrap_or(0))),
                }
                let len = len.and_then(|len| u32::try_from(len).ok());
                let len = len.filter(|len| *len <= limits.bulk_bytes);
                let len = len.ok_or(ProtocolError::Length)?;
                if len > BULK_BYTES_MAX_BEFORE_LOGIN && limits.must_log_in {
                    return Err(ProtocolError::LengthBeforeLogin);
                }
                // A span can't say more, whatever the limits are.
                if end as u64 + u64::from(len) + 2 > u64::from(u32::MAX) {
                    return Err(ProtocolError::Length);
                }
                self.at = end;
                self.searched = end;
                self.bulk = Some(len);
                len
            }
        };
        let end = self.at + len as usize;
        if bytes.len() < end + 2 {
            return Ok(false);
        }
        self.spans.push(span(self.at, end));
        self.at = end + 2;
        self.searched = self.at;
        self.bulk = None;
        self.missing -= 1;
        Ok(true)
    }

    /// The number of the line at `at`, which begins with a byte of its own, and where the line
    /// ends. No number stands for one that is none.
    fn number(
        &mut self,
        bytes: &[u8],
        too_long: ProtocolError,
    ) -> Result<Option<Number>, ProtocolError> {
        let begin = self.at;
        // Nearly every number has one or two digits and is there whole.
        match bytes.get(begin + 1..).unwrap_or_default() {
            [digit @ b'0'..=b'9', b'\r', _, ..] => {
                return Ok(Some((Some(i64::from(digit - b'0')), begin + 4)));
            }
            [tens @ b'1'..=b'9', digit @ b'0'..=b'9', b'\r', _, ..] => {
                let number = i64::from(tens - b'0') * 10 + i64::from(digit - b'0');
                return Ok(Some((Some(number), begin + 5)));
            }
            _ => {}
        }
        let from = self.searched.max(begin);
        let found = memchr::memchr(b'\r', bytes.get(from..).unwrap_or_default());
        let end = found.map_or(bytes.len(), |found| from + found);
        if end - begin > LINE_BYTES_MAX {
            return Err(too_long);
        }
        if found.is_none() || bytes.len() < end + 2 {
            self.searched = end;
            return Ok(None);
        }
        let digits = bytes.get(begin + 1..end).unwrap_or_default();
        Ok(Some((integer(digits), end + 2)))
    }

    /// A command that is a line.
    fn line(&mut self, bytes: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let from = self.searched;
        let found = memchr::memchr(b'\n', bytes.get(from..).unwrap_or_default());
        let end = found.map_or(bytes.len(), |found| from + found);
        if end > LINE_BYTES_MAX {
            return Err(ProtocolError::LineTooLong);
        }
        if found.is_none() {
            self.searched = end;
            return Ok(None);
        }
        let line = &bytes[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.quoted = inline::is_quoted(line);
        if self.quoted {
            self.text.clear();
            inline::unquote(line, &mut self.spans, &mut self.text)
                .map_err(|_| ProtocolError::Quotes)?;
        } else {
            inline::split(line, &mut self.spans);
        }
        Ok(Some(self.done(end + 1)))
    }
}

/// A number, if it is one, and where its line ends.
type Number = (Option<i64>, usize);

/// As Redis reads numbers: no blanks, no `+`, no leading zeros.
///
/// Source: `string2ll` in `src/util.c` of Redis 7.2.
fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        b"0" => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if !matches!(digits.first(), Some(b'1'..=b'9')) {
        return None;
    }
    let mut number: i64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        let digit = i64::from(digit - b'0');
        let digit = if negative { -digit } else { digit };
        number = number.checked_mul(10)?.checked_add(digit)?;
    }
    Some(number)
}
