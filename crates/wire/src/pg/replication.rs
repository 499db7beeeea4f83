//! What travels in CopyData while a server streams its write-ahead log.
//!
//! ```text
//! server:  'w' | start u64 | end u64 | time i64 | data ...                     XLogData
//!          'k' | end u64 | time i64 | reply u8                                 keepalive
//! client:  'r' | written u64 | flushed u64 | applied u64 | time i64 | reply u8  status update
//! ```
//!
//! Times are microseconds since 2000-01-01. A server asks for a status update, and a client for a
//! keepalive, with a `reply` of 1.
//!
//! Source: "Streaming Replication Protocol".

use std::fmt;
use std::str::FromStr;

use super::backend::tag;
use super::frame::WireError;
use super::read::Reader;
use super::write::message;

/// A position in the write-ahead log, shown as PostgreSQL shows it: `16/B374D848`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

impl FromStr for Lsn {
    type Err = WireError;

    /// Source: `pg_lsn_in_internal` in `src/backend/utils/adt/pg_lsn.c`.
    fn from_str(text: &str) -> Result<Lsn, WireError> {
        let half = |digits: &str| match digits.len() {
            1..=8 if digits.bytes().all(|c| c.is_ascii_hexdigit()) => {
                u64::from_str_radix(digits, 16).ok()
            }
            _ => None,
        };
        text.split_once('/')
            .and_then(|(high, low)| Some(Lsn(half(high)? << 32 | half(low)?)))
            .ok_or(WireError::Unexpected { what: "position in the log", got: 0 })
    }
}

/// What a server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FromServer<'a> {
    Data {
        /// Where the data begins in the log. Of decoded changes: the record they come from.
        start: u64,
        /// The end of the log as the server knew it. Of decoded changes: the same as `start`.
        end: u64,
        time: i64,
        data: &'a [u8],
    },
    Keepalive {
        /// Everything before this position has been sent.
        end: u64,
        time: i64,
        /// It wants a status update at once.
        reply: bool,
    },
}

/// Reads the body of a server's CopyData.
///
/// # Errors
/// `Unexpected` for a kind that is neither `w` nor `k`; else the field that is wrong.
pub fn from_server(body: &[u8]) -> Result<FromServer<'_>, WireError> {
    let mut reader = Reader::new(body);
    match reader.u8("kind of a replication message")? {
        b'w' => Ok(FromServer::Data {
            start: reader.u64("start of the data")?,
            end: reader.u64("end of the log")?,
            time: reader.i64("time of the data")?,
            data: reader.rest(),
        }),
        b'k' => {
            let end = reader.u64("end of the log")?;
            let time = reader.i64("time of a keepalive")?;
            let reply = reader.u8("wish for a reply")? != 0;
            reader.end("keepalive")?;
            Ok(FromServer::Keepalive { end, time, reply })
        }
        got => {
            Err(WireError::Unexpected { what: "kind of a replication message", got: got.into() })
        }
    }
}

/// Appends a CopyData with what a server sends.
pub fn put_from_server(out: &mut Vec<u8>, what: &FromServer<'_>) {
    message(out, tag::COPY_DATA, |out| match what {
        FromServer::Data { start, end, time, data } => {
            out.push(b'w');
            out.extend_from_slice(&start.to_be_bytes());
            out.extend_from_slice(&end.to_be_bytes());
            out.extend_from_slice(&time.to_be_bytes());
            out.extend_from_slice(data);
        }
        FromServer::Keepalive { end, time, reply } => {
            out.push(b'k');
            out.extend_from_slice(&end.to_be_bytes());
            out.extend_from_slice(&time.to_be_bytes());
            out.push(u8::from(*reply));
        }
    });
}

/// How far a client has come. Each position is the one behind the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusUpdate {
    pub written: u64,
    pub flushed: u64,
    pub applied: u64,
    pub time: i64,
    /// It wants a keepalive at once.
    pub reply: bool,
}

/// Reads the body of a client's CopyData that is a status update.
///
/// # Errors
/// `Unexpected` for another kind; else the field that is wrong.
pub fn status_update(body: &[u8]) -> Result<StatusUpdate, WireError> {
    let mut reader = Reader::new(body);
    match reader.u8("kind of a replication message")? {
        b'r' => {}
        got => {
            let what = "kind of a replication message";
            return Err(WireError::Unexpected { what, got: got.into() });
        }
    }
    let update = StatusUpdate {
        written: reader.u64("written position")?,
        flushed: reader.u64("flushed position")?,
        applied: reader.u64("applied position")?,
        time: reader.i64("time of a status update")?,
        reply: reader.u8("wish for a reply")? != 0,
    };
    reader.end("status update")?;
    Ok(update)
}

/// Appends a CopyData with a status update.
pub fn put_status_update(out: &mut Vec<u8>, update: &StatusUpdate) {
    message(out, tag::COPY_DATA, |out| {
        out.push(b'r');
        for position in [update.written, update.flushed, update.applied] {
            out.extend_from_slice(&position.to_be_bytes());
        }
        out.extend_from_slice(&update.time.to_be_bytes());
        out.push(u8::from(update.reply));
    });
}
