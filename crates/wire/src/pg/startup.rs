//! The untagged packets that open a connection.
//!
//! ```text
//! StartupMessage   | length | 3 << 16 | minor   | name\0 value\0 ... \0 |
//! SSLRequest       | 8      | 1234 << 16 | 5679 |
//! GSSENCRequest    | 8      | 1234 << 16 | 5680 |
//! CancelRequest    | length | 1234 << 16 | 5678 | pid u32 | key, 4 to 256 bytes |
//! ```

use super::frame::WireError;
use super::read::Reader;
use super::write::{counted, cstr};

/// Most bytes of a start-up packet, its length word not counted.
///
/// Source: `MAX_STARTUP_PACKET_LENGTH` in `src/include/libpq/pqcomm.h`.
pub const STARTUP_BYTES_MAX: usize = 10_000;

/// Most bytes of a cancel key (protocol 3.2; always 4 in 3.0).
///
/// Source: "Message Formats", CancelRequest.
pub const CANCEL_KEY_BYTES_MAX: usize = 256;

// Source: "Message Formats", CancelRequest, SSLRequest, GSSENCRequest.
const CANCEL_CODE: u32 = 1234 << 16 | 5678;
const SSL_CODE: u32 = 1234 << 16 | 5679;
const GSSENC_CODE: u32 = 1234 << 16 | 5680;
const MAJOR: u16 = 3;

/// A packet a client may send before it is logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPacket<'a> {
    /// Asks for TLS; answered by one byte, `S` or `N`.
    Ssl,
    /// Asks for GSSAPI encryption; answered by one byte, `G` or `N`.
    GssEnc,
    /// Asks to cancel what another connection runs; never answered.
    Cancel { pid: u32, key: &'a [u8] },
    /// Starts a session.
    Startup(Startup<'a>),
}

/// The parameters of a session to be. With a `major` other than 3 there are none: the layout of
/// what follows is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Startup<'a> {
    pub major: u16,
    pub minor: u16,
    /// `name\0value\0` pairs, checked to be complete and UTF-8; the final NUL is cut off.
    params: &'a [u8],
}

impl<'a> Startup<'a> {
    /// Names and values in the order sent, repeated names included.
    pub fn params(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let mut reader = Reader::new(self.params);
        std::iter::from_fn(move || {
            let name = reader.text("parameter name").ok()?;
            Some((name, reader.text("parameter value").ok()?))
        })
    }

    /// The value of a parameter; the last one wins when it is repeated, as in PostgreSQL.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.params().filter(|(n, _)| *n == name).last().map(|(_, value)| value)
    }
}

/// Reads the packet at the start of `bytes` and says how many bytes it took; `None` while it is
/// incomplete. The length is judged as soon as its word is there, before more is waited for.
///
/// # Errors
/// `BadLength` and `TooLong` for the length word; else the field that is wrong.
pub fn first_packet(bytes: &[u8]) -> Result<Option<(FirstPacket<'_>, usize)>, WireError> {
    let Some(&word) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    let len = i32::from_be_bytes(word);
    if len < 8 {
        return Err(WireError::BadLength { tag: 0, len });
    }
    let len = len as usize;
    if len - 4 > STARTUP_BYTES_MAX {
        return Err(WireError::TooLong {
            what: "start-up packet",
            len: len - 4,
            max: STARTUP_BYTES_MAX,
        });
    }
    let Some(packet) = bytes.get(4..len) else {
        return Ok(None);
    };
    let mut reader = Reader::new(packet);
    let code = reader.u32("protocol version")?;
    let first = match code {
        SSL_CODE => {
            reader.end("SSLRequest")?;
            FirstPacket::Ssl
        }
        GSSENC_CODE => {
            reader.end("GSSENCRequest")?;
            FirstPacket::GssEnc
        }
        CANCEL_CODE => cancel(reader)?,
        _ => FirstPacket::Startup(startup(code, reader)?),
    };
    Ok(Some((first, len)))
}

fn cancel(mut reader: Reader<'_>) -> Result<FirstPacket<'_>, WireError> {
    let pid = reader.u32("process id")?;
    Ok(FirstPacket::Cancel { pid, key: cancel_key(reader.rest())? })
}

pub(super) fn cancel_key(key: &[u8]) -> Result<&[u8], WireError> {
    if key.len() < 4 {
        return Err(WireError::Truncated("cancel key"));
    }
    if key.len() > CANCEL_KEY_BYTES_MAX {
        let (len, max) = (key.len(), CANCEL_KEY_BYTES_MAX);
        return Err(WireError::TooLong { what: "cancel key", len, max });
    }
    Ok(key)
}

fn startup(code: u32, mut reader: Reader<'_>) -> Result<Startup<'_>, WireError> {
    let (major, minor) = ((code >> 16) as u16, code as u16);
    if major != MAJOR {
        return Ok(Startup { major, minor, params: &[] });
    }
    let all = reader.rest();
    loop {
        let at = all.len() - reader.rest().len();
        if reader.text("start-up parameter name")?.is_empty() {
            reader.end("start-up parameters")?;
            return Ok(Startup { major, minor, params: &all[..at] });
        }
        reader.text("start-up parameter value")?;
    }
}

/// Appends a StartupMessage of protocol 3.`minor`.
pub fn put_startup(out: &mut Vec<u8>, minor: u16, params: &[(&str, &str)]) {
    counted(out, |out| {
        out.extend_from_slice(&MAJOR.to_be_bytes());
        out.extend_from_slice(&minor.to_be_bytes());
        for (name, value) in params.iter().filter(|(name, _)| !name.is_empty()) {
            cstr(out, name.as_bytes());
            cstr(out, value.as_bytes());
        }
        out.push(0);
    });
}

/// Appends an SSLRequest.
pub fn put_ssl_request(out: &mut Vec<u8>) {
    counted(out, |out| out.extend_from_slice(&SSL_CODE.to_be_bytes()));
}

/// Appends a GSSENCRequest.
pub fn put_gssenc_request(out: &mut Vec<u8>) {
    counted(out, |out| out.extend_from_slice(&GSSENC_CODE.to_be_bytes()));
}

/// Appends a CancelRequest with the process id and key a server gave in its BackendKeyData.
pub fn put_cancel(out: &mut Vec<u8>, pid: u32, key: &[u8]) {
    counted(out, |out| {
        out.extend_from_slice(&CANCEL_CODE.to_be_bytes());
        out.extend_from_slice(&pid.to_be_bytes());
        out.extend_from_slice(key);
    });
}
