//! What a client sends once its connection is open.
//!
//! Parsers take the body: the bytes after the length word. Names and query texts are bytes, for
//! they are in the client's encoding.
//!
//! Source: "Message Formats".

use super::frame::WireError;
use super::read::Reader;
use super::write::{count, cstr, empty, message, value};

/// The tags of frontend messages.
pub mod tag {
    pub const QUERY: u8 = b'Q';
    pub const PARSE: u8 = b'P';
    pub const BIND: u8 = b'B';
    pub const DESCRIBE: u8 = b'D';
    pub const EXECUTE: u8 = b'E';
    pub const SYNC: u8 = b'S';
    pub const FLUSH: u8 = b'H';
    pub const CLOSE: u8 = b'C';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_FAIL: u8 = b'f';
    pub const FUNCTION_CALL: u8 = b'F';
    pub const TERMINATE: u8 = b'X';
    /// PasswordMessage, SASLInitialResponse, SASLResponse and GSSResponse alike.
    pub const PASSWORD: u8 = b'p';
}

/// Most bytes of the body of a message with tag [`tag::PASSWORD`].
///
/// Source: `PG_MAX_AUTH_TOKEN_LENGTH` (65535, length word included) in
/// `src/include/libpq/auth.h`.
pub const AUTH_BODY_BYTES_MAX: usize = 65_535 - 4;

/// Most bytes of a statement's or portal's name. PostgreSQL has no limit but looks at 63 bytes
/// only; this one bounds what is held while the head of a Bind is waited for.
pub const NAME_BYTES_MAX: usize = 8192;

/// A Parse message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// Empty for the unnamed statement.
    pub name: &'a [u8],
    pub query: &'a [u8],
    /// Raw: a 16-bit count and that many type oids.
    pub types: &'a [u8],
}

/// # Errors
/// The field that is wrong, or `Trailing` when the type oids don't match their count.
pub fn parse(body: &[u8]) -> Result<Parse<'_>, WireError> {
    let mut reader = Reader::new(body);
    let name = reader.name("statement name")?;
    let query = reader.cstr("query text")?;
    let types = reader.rest();
    let n = reader.u16("parameter type count")?;
    reader.bytes(usize::from(n) * 4, "parameter types")?;
    reader.end("Parse")?;
    Ok(Parse { name, query, types })
}

/// The two names at the start of a Bind message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindHead<'a> {
    /// Empty for the unnamed portal.
    pub portal: &'a [u8],
    /// Empty for the unnamed statement.
    pub statement: &'a [u8],
    /// Offset in the body where the rest (formats and values) begins.
    pub rest: usize,
}

/// Reads the names of a Bind whose body may not have arrived whole; `None` while they are
/// incomplete, which is at most 2 * ([`NAME_BYTES_MAX`] + 1) bytes. A body that *is* whole and
/// still gives `None` is malformed.
///
/// # Errors
/// `TooLong` beyond [`NAME_BYTES_MAX`].
pub fn bind_head(body: &[u8]) -> Result<Option<BindHead<'_>>, WireError> {
    let mut reader = Reader::new(body);
    let mut name = |what| match reader.name(what) {
        Ok(name) => Ok(Some(name)),
        Err(WireError::NotTerminated(_)) => Ok(None),
        Err(error) => Err(error),
    };
    let Some(portal) = name("portal name")? else {
        return Ok(None);
    };
    let Some(statement) = name("statement name")? else {
        return Ok(None);
    };
    Ok(Some(BindHead { portal, statement, rest: portal.len() + statement.len() + 2 }))
}

/// What follows the names in a Bind message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindTail<'a> {
    /// Two bytes each: none (all are text), one for all, or one for each value.
    formats: &'a [u8],
    values: &'a [u8],
    count: u16,
    /// The same for the columns of the result.
    pub results: &'a [u8],
}

/// Reads the rest of a Bind, which is whole: what [`BindHead::rest`] points to.
///
/// # Errors
/// When it is cut, has bytes behind it, or other formats than text and binary.
pub fn bind_tail(rest: &[u8]) -> Result<BindTail<'_>, WireError> {
    let mut reader = Reader::new(rest);
    let formats = |reader: &mut Reader<'_>| {
        let count = reader.u16("number of formats")?;
        let all = reader.rest();
        for _ in 0..count {
            match reader.u16("format")? {
                0 | 1 => {}
                got => return Err(WireError::Unexpected { what: "format", got: got.into() }),
            }
        }
        Ok::<_, WireError>(all.len() - reader.rest().len())
    };
    let from = |reader: Reader<'_>| rest.len() - reader.rest().len();
    let length = formats(&mut reader)?;
    let end = from(reader);
    let given = &rest[end - length..end];
    let count = reader.u16("number of values")?;
    if ![0, 2, usize::from(count) * 2].contains(&given.len()) {
        return Err(WireError::Unexpected { what: "number of formats", got: given.len() as u32 });
    }
    let began = from(reader);
    for _ in 0..count {
        bound(&mut reader)?;
    }
    let values = &rest[began..from(reader)];
    let length = formats(&mut reader)?;
    let end = from(reader);
    reader.end("Bind")?;
    Ok(BindTail { formats: given, values, count, results: &rest[end - length..end] })
}

fn bound<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, WireError> {
    match reader.i32("length of a value")? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) => reader.bytes(length, "value").map(Some),
            Err(_) => Err(WireError::Truncated("value")),
        },
    }
}

impl<'a> BindTail<'a> {
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Each value, none for NULL, and whether it is binary.
    pub fn values(&self) -> impl Iterator<Item = (bool, Option<&'a [u8]>)> {
        let mut reader = Reader::new(self.values);
        let formats = self.formats;
        (0..self.len()).map_while(move |at| {
            let format = match formats.len() {
                0 => 0,
                2 => formats[1],
                _ => formats[at * 2 + 1],
            };
            bound(&mut reader).ok().map(|value| (format == 1, value))
        })
    }
}

/// What a Describe or Close names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Statement,
    Portal,
}

impl Target {
    fn as_byte(self) -> u8 {
        match self {
            Target::Statement => b'S',
            Target::Portal => b'P',
        }
    }
}

/// # Errors
/// `Unexpected` for a kind that is neither `S` nor `P`; else the field that is wrong.
pub fn describe(body: &[u8]) -> Result<(Target, &[u8]), WireError> {
    target(body, "Describe")
}

/// # Errors
/// As [`describe`].
pub fn close(body: &[u8]) -> Result<(Target, &[u8]), WireError> {
    target(body, "Close")
}

fn target<'a>(body: &'a [u8], what: &'static str) -> Result<(Target, &'a [u8]), WireError> {
    let mut reader = Reader::new(body);
    let kind = match reader.u8("target kind")? {
        b'S' => Target::Statement,
        b'P' => Target::Portal,
        other => return Err(WireError::Unexpected { what: "target kind", got: other.into() }),
    };
    let name = reader.name("target name")?;
    reader.end(what)?;
    Ok((kind, name))
}

/// The text of a simple query, without its NUL.
///
/// # Errors
/// `NotTerminated`, or `Trailing` for a NUL within the text.
pub fn query(body: &[u8]) -> Result<&[u8], WireError> {
    only_cstr(body, "Query")
}

/// Portal and row limit of an Execute; a limit of zero or less is none.
///
/// # Errors
/// The field that is wrong.
pub fn execute(body: &[u8]) -> Result<(&[u8], i32), WireError> {
    let mut reader = Reader::new(body);
    let portal = reader.name("portal name")?;
    let max_rows = reader.i32("row limit")?;
    reader.end("Execute")?;
    Ok((portal, max_rows))
}

/// The answer to a cleartext or md5 request, without its NUL.
///
/// # Errors
/// `TooLong` beyond [`AUTH_BODY_BYTES_MAX`]; `NotTerminated`, or `Trailing` for a NUL within.
pub fn password(body: &[u8]) -> Result<&[u8], WireError> {
    only_cstr(auth_body(body)?, "PasswordMessage")
}

/// A SASLInitialResponse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaslInitial<'a> {
    pub mechanism: &'a str,
    /// `None` when the client sent no initial response (length -1).
    pub response: Option<&'a [u8]>,
}

/// # Errors
/// `TooLong` beyond [`AUTH_BODY_BYTES_MAX`]; else the field that is wrong.
pub fn sasl_initial(body: &[u8]) -> Result<SaslInitial<'_>, WireError> {
    let mut reader = Reader::new(auth_body(body)?);
    let mechanism = reader.text("SASL mechanism")?;
    let response = match reader.i32("SASL response length")? {
        -1 => None,
        len => {
            let what = "SASL response length";
            let len = usize::try_from(len)
                .map_err(|_| WireError::Unexpected { what, got: len as u32 })?;
            Some(reader.bytes(len, "SASL response")?)
        }
    };
    reader.end("SASLInitialResponse")?;
    Ok(SaslInitial { mechanism, response })
}

/// The data of a SASLResponse: the whole body.
///
/// # Errors
/// `TooLong` beyond [`AUTH_BODY_BYTES_MAX`].
pub fn sasl_response(body: &[u8]) -> Result<&[u8], WireError> {
    auth_body(body)
}

fn auth_body(body: &[u8]) -> Result<&[u8], WireError> {
    if body.len() > AUTH_BODY_BYTES_MAX {
        let (len, max) = (body.len(), AUTH_BODY_BYTES_MAX);
        return Err(WireError::TooLong { what: "authentication response", len, max });
    }
    Ok(body)
}

fn only_cstr<'a>(body: &'a [u8], what: &'static str) -> Result<&'a [u8], WireError> {
    let mut reader = Reader::new(body);
    let text = reader.cstr(what)?;
    reader.end(what)?;
    Ok(text)
}

/// Appends a simple query.
pub fn put_query(out: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    message(out, tag::QUERY, |out| cstr(out, text.as_ref()));
}

/// Appends a Parse; `types` is raw, as in [`Parse::types`], or empty for no types at all.
pub fn put_parse(out: &mut Vec<u8>, name: &[u8], query: &[u8], types: &[u8]) {
    message(out, tag::PARSE, |out| {
        cstr(out, name);
        cstr(out, query);
        out.extend_from_slice(if types.is_empty() { &[0, 0] } else { types });
    });
}

/// Appends the start of a Bind: tag, length and names. The caller appends `total_rest` bytes
/// (formats and values) after it. The names hold no NUL.
pub fn put_bind_head(out: &mut Vec<u8>, total_rest: usize, portal: &[u8], statement: &[u8]) {
    let len = 4 + portal.len() + 1 + statement.len() + 1 + total_rest;
    debug_assert!(memchr::memchr(0, portal).is_none() && memchr::memchr(0, statement).is_none());
    out.push(tag::BIND);
    out.extend_from_slice(&(len as u32).to_be_bytes());
    for name in [portal, statement] {
        out.extend_from_slice(name);
        out.push(0);
    }
}

/// Appends a Bind with values in text format (`None` is NULL) that asks for text results.
/// At most 65535 values.
pub fn put_bind(out: &mut Vec<u8>, portal: &[u8], statement: &[u8], values: &[Option<&[u8]>]) {
    message(out, tag::BIND, |out| {
        cstr(out, portal);
        cstr(out, statement);
        count(out, 0);
        count(out, values.len());
        for v in values {
            value(out, *v);
        }
        count(out, 0);
    });
}

/// Appends a Describe.
pub fn put_describe(out: &mut Vec<u8>, target: Target, name: &[u8]) {
    put_target(out, tag::DESCRIBE, target, name);
}

/// Appends a Close.
pub fn put_close(out: &mut Vec<u8>, target: Target, name: &[u8]) {
    put_target(out, tag::CLOSE, target, name);
}

fn put_target(out: &mut Vec<u8>, tag: u8, target: Target, name: &[u8]) {
    message(out, tag, |out| {
        out.push(target.as_byte());
        cstr(out, name);
    });
}

/// Appends an Execute; zero rows means all.
pub fn put_execute(out: &mut Vec<u8>, portal: &[u8], max_rows: i32) {
    message(out, tag::EXECUTE, |out| {
        cstr(out, portal);
        out.extend_from_slice(&max_rows.to_be_bytes());
    });
}

/// Appends a Sync.
pub fn put_sync(out: &mut Vec<u8>) {
    empty(out, tag::SYNC);
}

/// Appends a Flush.
pub fn put_flush(out: &mut Vec<u8>) {
    empty(out, tag::FLUSH);
}

/// Appends a Terminate.
pub fn put_terminate(out: &mut Vec<u8>) {
    empty(out, tag::TERMINATE);
}

/// Appends a PasswordMessage: the password itself or an md5 response.
pub fn put_password(out: &mut Vec<u8>, password: &[u8]) {
    message(out, tag::PASSWORD, |out| cstr(out, password));
}

/// Appends a SASLInitialResponse.
pub fn put_sasl_initial(out: &mut Vec<u8>, mechanism: &str, response: &[u8]) {
    message(out, tag::PASSWORD, |out| {
        cstr(out, mechanism.as_bytes());
        value(out, Some(response));
    });
}

/// Appends a SASLResponse.
pub fn put_sasl_response(out: &mut Vec<u8>, response: &[u8]) {
    message(out, tag::PASSWORD, |out| out.extend_from_slice(response));
}

/// Appends a CopyFail with its reason.
pub fn put_copy_fail(out: &mut Vec<u8>, reason: &str) {
    message(out, tag::COPY_FAIL, |out| cstr(out, reason.as_bytes()));
}
