//! What a server sends.
//!
//! Parsers take the body: the bytes after the length word.
//!
//! Source: "Message Formats".

use super::frame::WireError;
use super::read::Reader;
use super::write::{count, cstr, empty, message, value};

/// The tags of backend messages.
pub mod tag {
    pub const AUTHENTICATION: u8 = b'R';
    pub const READY_FOR_QUERY: u8 = b'Z';
    pub const ROW_DESCRIPTION: u8 = b'T';
    pub const DATA_ROW: u8 = b'D';
    pub const COMMAND_COMPLETE: u8 = b'C';
    pub const ERROR: u8 = b'E';
    pub const NOTICE: u8 = b'N';
    pub const PARAMETER_STATUS: u8 = b'S';
    pub const BACKEND_KEY_DATA: u8 = b'K';
    pub const PARSE_COMPLETE: u8 = b'1';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const CLOSE_COMPLETE: u8 = b'3';
    pub const NO_DATA: u8 = b'n';
    pub const EMPTY_QUERY: u8 = b'I';
    pub const PORTAL_SUSPENDED: u8 = b's';
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    pub const COPY_IN: u8 = b'G';
    pub const COPY_OUT: u8 = b'H';
    pub const COPY_BOTH: u8 = b'W';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const NOTIFICATION: u8 = b'A';
    pub const FUNCTION_RESULT: u8 = b'V';
    pub const NEGOTIATE: u8 = b'v';
}

/// Most mechanisms an AuthenticationSASL may offer; PostgreSQL 18 knows three.
pub const SASL_MECHANISMS_MAX: usize = 32;

/// The transaction status in a ReadyForQuery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxStatus {
    Idle,
    InTransaction,
    /// In a transaction that takes nothing but its end.
    Failed,
}

impl TxStatus {
    pub fn from_byte(byte: u8) -> Option<TxStatus> {
        match byte {
            b'I' => Some(TxStatus::Idle),
            b'T' => Some(TxStatus::InTransaction),
            b'E' => Some(TxStatus::Failed),
            _ => None,
        }
    }

    pub fn as_byte(self) -> u8 {
        match self {
            TxStatus::Idle => b'I',
            TxStatus::InTransaction => b'T',
            TxStatus::Failed => b'E',
        }
    }
}

/// # Errors
/// `Unexpected` for a status the protocol does not define; else the field that is wrong.
pub fn ready(body: &[u8]) -> Result<TxStatus, WireError> {
    let mut reader = Reader::new(body);
    let byte = reader.u8("transaction status")?;
    reader.end("ReadyForQuery")?;
    TxStatus::from_byte(byte)
        .ok_or(WireError::Unexpected { what: "transaction status", got: byte.into() })
}

/// The fields of an ErrorResponse or NoticeResponse. Any may be missing: old servers, poolers and
/// protocol 2 postmasters leave some out. A field that is not UTF-8 counts as missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorFields<'a> {
    /// Checked: fields of a type byte and a NUL-terminated string, then a NUL.
    body: &'a [u8],
}

/// # Errors
/// `NotTerminated` when a field or the list has no end.
pub fn error_fields(body: &[u8]) -> Result<ErrorFields<'_>, WireError> {
    let mut reader = Reader::new(body);
    while reader.u8("error field type")? != 0 {
        reader.cstr("error field")?;
    }
    reader.end("ErrorResponse")?;
    Ok(ErrorFields { body })
}

impl<'a> ErrorFields<'a> {
    /// The raw value of a field by its type byte.
    ///
    /// Source: "Error and Notice Message Fields".
    pub fn field(&self, kind: u8) -> Option<&'a [u8]> {
        let mut reader = Reader::new(self.body);
        loop {
            match reader.u8("error field type").ok()? {
                0 => return None,
                k => {
                    let text = reader.cstr("error field").ok()?;
                    if k == kind {
                        return Some(text);
                    }
                }
            }
        }
    }

    fn text(&self, kind: u8) -> Option<&'a str> {
        std::str::from_utf8(self.field(kind)?).ok()
    }

    /// "ERROR", "FATAL", "PANIC" or of a notice "WARNING" and below; a localised word from
    /// servers before 9.6.
    pub fn severity(&self) -> Option<&'a str> {
        self.text(b'V').or_else(|| self.text(b'S'))
    }

    /// The SQLSTATE.
    pub fn code(&self) -> Option<&'a str> {
        self.text(b'C')
    }

    pub fn message(&self) -> Option<&'a str> {
        self.text(b'M')
    }

    pub fn detail(&self) -> Option<&'a str> {
        self.text(b'D')
    }

    pub fn hint(&self) -> Option<&'a str> {
        self.text(b'H')
    }

    /// A decimal position in the query text, in characters from 1.
    pub fn position(&self) -> Option<&'a str> {
        self.text(b'P')
    }
}

/// An error or notice of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorReply<'a> {
    /// "ERROR", "FATAL"; of a notice "WARNING", "NOTICE" and so on.
    pub severity: &'a str,
    /// Five characters; see `sqlstate`.
    pub code: &'a str,
    pub message: &'a str,
    pub detail: Option<&'a str>,
    pub hint: Option<&'a str>,
}

/// Appends an ErrorResponse.
pub fn put_error(out: &mut Vec<u8>, reply: &ErrorReply<'_>) {
    put_reply(out, tag::ERROR, reply);
}

/// Appends a NoticeResponse.
pub fn put_notice(out: &mut Vec<u8>, reply: &ErrorReply<'_>) {
    put_reply(out, tag::NOTICE, reply);
}

fn put_reply(out: &mut Vec<u8>, tag: u8, reply: &ErrorReply<'_>) {
    let fields = [
        (b'S', Some(reply.severity)),
        (b'V', Some(reply.severity)),
        (b'C', Some(reply.code)),
        (b'M', Some(reply.message)),
        (b'D', reply.detail),
        (b'H', reply.hint),
    ];
    message(out, tag, |out| {
        for (kind, text) in fields {
            if let Some(text) = text {
                out.push(kind);
                cstr(out, text.as_bytes());
            }
        }
        out.push(0);
    });
}

/// Name and value of a ParameterStatus.
///
/// # Errors
/// The field that is wrong. A value that is not UTF-8 is `NotUtf8("parameter value")`.
pub fn parameter_status(body: &[u8]) -> Result<(&str, &str), WireError> {
    let mut reader = Reader::new(body);
    let name = reader.text("parameter name")?;
    let value = reader.text("parameter value")?;
    reader.end("ParameterStatus")?;
    Ok((name, value))
}

/// Process id and cancel key; the key has 4 bytes in protocol 3.0, up to 256 in 3.2.
///
/// # Errors
/// `Truncated` or `TooLong` by the key's length.
pub fn backend_key(body: &[u8]) -> Result<(u32, &[u8]), WireError> {
    let mut reader = Reader::new(body);
    let pid = reader.u32("process id")?;
    Ok((pid, super::startup::cancel_key(reader.rest())?))
}

/// Who notifies, the channel and the payload of a NotificationResponse.
///
/// # Errors
/// The field that is wrong.
pub fn notification(body: &[u8]) -> Result<(u32, &[u8], &[u8]), WireError> {
    let mut reader = Reader::new(body);
    let pid = reader.u32("process id")?;
    let channel = reader.cstr("channel")?;
    let payload = reader.cstr("payload")?;
    reader.end("NotificationResponse")?;
    Ok((pid, channel, payload))
}

/// The tag of a CommandComplete, such as `SELECT 1`.
///
/// # Errors
/// `NotTerminated`, or `Trailing` for a NUL within.
pub fn command_tag(body: &[u8]) -> Result<&[u8], WireError> {
    let mut reader = Reader::new(body);
    let text = reader.cstr("command tag")?;
    reader.end("CommandComplete")?;
    Ok(text)
}

/// The values of a DataRow; `None` is NULL.
///
/// # Errors
/// `Truncated` or `Trailing` when values and count don't match; `Unexpected` for a length below
/// that of NULL, -1.
pub fn data_row(body: &[u8]) -> Result<Vec<Option<&[u8]>>, WireError> {
    let mut reader = Reader::new(body);
    let count = reader.u16("column count")?;
    let mut values = Vec::new();
    for _ in 0..count {
        let what = "length of a value";
        let length = reader.i32(what)?;
        values.push(match usize::try_from(length) {
            Ok(length) => Some(reader.bytes(length, "value")?),
            Err(_) if length == -1 => None,
            Err(_) => return Err(WireError::Unexpected { what, got: length as u32 }),
        });
    }
    reader.end("DataRow")?;
    Ok(values)
}

/// The names of a RowDescription's columns.
///
/// # Errors
/// `Truncated` or `Trailing` when columns and count don't match, `NotUtf8` for such a name.
pub fn column_names(body: &[u8]) -> Result<Vec<String>, WireError> {
    let mut reader = Reader::new(body);
    let count = reader.u16("column count")?;
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(reader.text("name of a column")?.to_owned());
        // Table, place in it, type, its size, modifier, format.
        reader.bytes(4 + 2 + 4 + 2 + 4 + 2, "column")?;
    }
    reader.end("RowDescription")?;
    Ok(names)
}

/// The types of a ParameterDescription, by their oids.
///
/// # Errors
/// `Truncated` or `Trailing` when types and count don't match.
pub fn parameter_types(body: &[u8]) -> Result<Vec<u32>, WireError> {
    let mut reader = Reader::new(body);
    let count = reader.u16("parameter count")?;
    let mut types = Vec::new();
    for _ in 0..count {
        types.push(reader.u32("type of a parameter")?);
    }
    reader.end("ParameterDescription")?;
    Ok(types)
}

/// The types of a RowDescription's columns, by their oids.
///
/// # Errors
/// `Truncated` or `Trailing` when columns and count don't match.
pub fn column_types(body: &[u8]) -> Result<Vec<u32>, WireError> {
    let mut reader = Reader::new(body);
    let count = reader.u16("column count")?;
    let mut types = Vec::new();
    for _ in 0..count {
        reader.cstr("name of a column")?;
        reader.bytes(6, "table of a column")?;
        types.push(reader.u32("type of a column")?);
        reader.bytes(8, "size and format of a column")?;
    }
    reader.end("RowDescription")?;
    Ok(types)
}

/// What an Authentication message asks for or says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth<'a> {
    Ok,
    Cleartext,
    /// Answer with `auth::md5_response` for this salt.
    Md5([u8; 4]),
    /// The mechanisms offered, best first.
    Sasl(Vec<&'a str>),
    SaslContinue(&'a [u8]),
    SaslFinal(&'a [u8]),
    /// Kerberos, GSSAPI, SSPI and what may come: not supported.
    Other(u32),
}

/// # Errors
/// The field that is wrong; `TooLong` beyond [`SASL_MECHANISMS_MAX`].
pub fn auth(body: &[u8]) -> Result<Auth<'_>, WireError> {
    let mut reader = Reader::new(body);
    let auth = match reader.u32("authentication kind")? {
        0 => Auth::Ok,
        3 => Auth::Cleartext,
        5 => Auth::Md5(reader.word("md5 salt")?),
        10 => Auth::Sasl(mechanisms(&mut reader)?),
        11 => return Ok(Auth::SaslContinue(reader.rest())),
        12 => return Ok(Auth::SaslFinal(reader.rest())),
        other => return Ok(Auth::Other(other)),
    };
    reader.end("Authentication")?;
    Ok(auth)
}

fn mechanisms<'a>(reader: &mut Reader<'a>) -> Result<Vec<&'a str>, WireError> {
    let mut names = Vec::new();
    loop {
        let name = reader.text("SASL mechanism")?;
        if name.is_empty() {
            return Ok(names);
        }
        if names.len() == SASL_MECHANISMS_MAX {
            let (len, max) = (names.len() + 1, SASL_MECHANISMS_MAX);
            return Err(WireError::TooLong { what: "SASL mechanism list", len, max });
        }
        names.push(name);
    }
}

/// A NegotiateProtocolVersion: what the server can do instead of what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiate<'a> {
    /// The newest minor version of protocol 3 the server speaks.
    pub minor: u32,
    /// How many options it did not recognise.
    pub count: usize,
    /// Their names: `count` of NUL-terminated, checked strings.
    options: &'a [u8],
}

impl<'a> Negotiate<'a> {
    /// The names of the options the server did not recognise.
    pub fn options(&self) -> impl Iterator<Item = &'a str> {
        let mut reader = Reader::new(self.options);
        std::iter::from_fn(move || reader.text("option name").ok())
    }
}

/// # Errors
/// `Unexpected` for another major version; else the field that is wrong.
pub fn negotiate(body: &[u8]) -> Result<Negotiate<'_>, WireError> {
    let mut reader = Reader::new(body);
    // The whole version, 3 << 16 | minor, though the documentation says "minor version".
    // Source: `SendNegotiateProtocolVersion` in src/backend/tcop/backend_startup.c.
    let version = reader.u32("protocol version")?;
    let minor = match version >> 16 {
        0 | 3 => version & 0xffff,
        _ => return Err(WireError::Unexpected { what: "protocol version", got: version }),
    };
    let n = reader.i32("option count")?;
    let options = reader.rest();
    let count = usize::try_from(n)
        .ok()
        .filter(|n| *n <= options.len())
        .ok_or(WireError::Truncated("options"))?;
    for _ in 0..count {
        reader.text("option name")?;
    }
    reader.end("NegotiateProtocolVersion")?;
    Ok(Negotiate { minor, count, options })
}

/// Appends a ReadyForQuery.
pub fn put_ready(out: &mut Vec<u8>, status: TxStatus) {
    message(out, tag::READY_FOR_QUERY, |out| out.push(status.as_byte()));
}

/// Appends a ParameterStatus.
pub fn put_parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, tag::PARAMETER_STATUS, |out| {
        cstr(out, name.as_bytes());
        cstr(out, value.as_bytes());
    });
}

/// Appends a BackendKeyData; 4 bytes of key for protocol 3.0, 4 to 256 for 3.2.
pub fn put_backend_key(out: &mut Vec<u8>, pid: u32, key: &[u8]) {
    message(out, tag::BACKEND_KEY_DATA, |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        out.extend_from_slice(key);
    });
}

fn put_auth(out: &mut Vec<u8>, kind: u32, data: &[u8]) {
    message(out, tag::AUTHENTICATION, |out| {
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// Appends an AuthenticationOk.
pub fn put_auth_ok(out: &mut Vec<u8>) {
    put_auth(out, 0, &[]);
}

/// Appends an AuthenticationCleartextPassword.
pub fn put_auth_cleartext(out: &mut Vec<u8>) {
    put_auth(out, 3, &[]);
}

/// Appends an AuthenticationMD5Password.
pub fn put_auth_md5(out: &mut Vec<u8>, salt: [u8; 4]) {
    put_auth(out, 5, &salt);
}

/// Appends an AuthenticationSASL that offers `mechanisms`, best first.
pub fn put_auth_sasl(out: &mut Vec<u8>, mechanisms: &[&str]) {
    message(out, tag::AUTHENTICATION, |out| {
        out.extend_from_slice(&10u32.to_be_bytes());
        for name in mechanisms.iter().filter(|name| !name.is_empty()) {
            cstr(out, name.as_bytes());
        }
        out.push(0);
    });
}

/// Appends an AuthenticationSASLContinue.
pub fn put_auth_sasl_continue(out: &mut Vec<u8>, data: &[u8]) {
    put_auth(out, 11, data);
}

/// Appends an AuthenticationSASLFinal.
pub fn put_auth_sasl_final(out: &mut Vec<u8>, data: &[u8]) {
    put_auth(out, 12, data);
}

/// A column of a RowDescription that belongs to no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    pub name: &'a str,
    /// The type's oid, such as 25 for `text`.
    pub oid: u32,
    /// The type's size in bytes; -1 when it varies.
    pub size: i16,
    /// 0 text, 1 binary.
    pub format: i16,
}

/// Appends a RowDescription.
pub fn put_row_description(out: &mut Vec<u8>, columns: &[Column<'_>]) {
    message(out, tag::ROW_DESCRIPTION, |out| {
        count(out, columns.len());
        for column in columns {
            cstr(out, column.name.as_bytes());
            out.extend_from_slice(&[0; 6]); // no table, no attribute
            out.extend_from_slice(&column.oid.to_be_bytes());
            out.extend_from_slice(&column.size.to_be_bytes());
            out.extend_from_slice(&(-1i32).to_be_bytes()); // no type modifier
            out.extend_from_slice(&column.format.to_be_bytes());
        }
    });
}

/// Appends a DataRow; `None` is NULL.
pub fn put_data_row(out: &mut Vec<u8>, values: &[Option<&[u8]>]) {
    message(out, tag::DATA_ROW, |out| {
        count(out, values.len());
        for v in values {
            value(out, *v);
        }
    });
}

/// Appends a NotificationResponse.
pub fn put_notification(out: &mut Vec<u8>, pid: u32, channel: &str, payload: &str) {
    message(out, tag::NOTIFICATION, |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        cstr(out, channel.as_bytes());
        cstr(out, payload.as_bytes());
    });
}

/// Appends a CommandComplete.
pub fn put_command_complete(out: &mut Vec<u8>, command_tag: &str) {
    message(out, tag::COMMAND_COMPLETE, |out| cstr(out, command_tag.as_bytes()));
}

/// Appends a NoData.
pub fn put_no_data(out: &mut Vec<u8>) {
    empty(out, tag::NO_DATA);
}

/// Appends a ParseComplete.
pub fn put_parse_complete(out: &mut Vec<u8>) {
    empty(out, tag::PARSE_COMPLETE);
}

/// Appends a BindComplete.
pub fn put_bind_complete(out: &mut Vec<u8>) {
    empty(out, tag::BIND_COMPLETE);
}

/// Appends a CloseComplete.
pub fn put_close_complete(out: &mut Vec<u8>) {
    empty(out, tag::CLOSE_COMPLETE);
}

/// Appends an EmptyQueryResponse.
pub fn put_empty_query(out: &mut Vec<u8>) {
    empty(out, tag::EMPTY_QUERY);
}

/// Appends a PortalSuspended.
pub fn put_portal_suspended(out: &mut Vec<u8>) {
    empty(out, tag::PORTAL_SUSPENDED);
}

/// Appends a ParameterDescription.
pub fn put_parameter_description(out: &mut Vec<u8>, oids: &[u32]) {
    message(out, tag::PARAMETER_DESCRIPTION, |out| {
        count(out, oids.len());
        for oid in oids {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    });
}

/// Appends a NegotiateProtocolVersion: the newest `minor` of protocol 3 spoken here and the
/// start-up options (`_pq_.` and more) that are not known.
pub fn put_negotiate(out: &mut Vec<u8>, minor: u32, options: &[&str]) {
    message(out, tag::NEGOTIATE, |out| {
        out.extend_from_slice(&(3 << 16 | (minor & 0xffff)).to_be_bytes());
        out.extend_from_slice(&(options.len() as u32).to_be_bytes());
        for name in options {
            cstr(out, name.as_bytes());
        }
    });
}
