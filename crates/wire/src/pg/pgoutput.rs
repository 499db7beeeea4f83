//! Changes as the output plugin `pgoutput` tells them, in its protocol versions 1 to 4.
//!
//! ```text
//! Begin Relation Insert Update ... Commit                          one transaction, at its commit
//! StreamStart(first) ... StreamStop  StreamStart ... StreamStop    one that is still running (v2)
//!     StreamAbort(sub)   StreamCommit | StreamAbort | StreamPrepare
//! BeginPrepare ... Prepare   CommitPrepared | RollbackPrepared     two-phase, if asked for (v3)
//! ```
//!
//! Between StreamStart and StreamStop every change has the number of its (sub)transaction in
//! front; the reader has to say whether it is there. Version 4 lets StreamAbort tell where and
//! when, if the client asked for `streaming 'parallel'`.
//!
//! Source: "Logical Replication Message Formats".

mod build;
mod row;

pub use build::put;
pub use row::{put_tuple, Field, Relation, RelationColumn, Tuple};

use super::frame::WireError;
use super::read::Reader;

/// What is known of a row before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Old<'a> {
    /// It was not there: an INSERT.
    Absent,
    /// Nothing but that its identity is the new row's.
    Unknown,
    /// The columns of the replica identity; the others are [`Field::Null`].
    Key(Tuple<'a>),
    /// All of it (REPLICA IDENTITY FULL).
    Whole(Tuple<'a>),
}

/// Times are microseconds since 2000-01-01, positions those of the log. `xid` is the number of
/// the (sub)transaction, of a change only if it is part of a streamed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// What follows is one transaction. `commit` is the position of its commit.
    Begin {
        commit: u64,
        time: i64,
        xid: u32,
    },
    Commit {
        commit: u64,
        end: u64,
        time: i64,
    },
    /// Where a transaction comes from that was itself replicated.
    Origin {
        commit: u64,
        name: &'a [u8],
    },
    /// `pg_logical_emit_message`.
    Emitted {
        xid: Option<u32>,
        transactional: bool,
        at: u64,
        prefix: &'a [u8],
        content: &'a [u8],
    },
    Relation {
        xid: Option<u32>,
        relation: Relation,
    },
    /// A type that is not built in. `schema` is empty for `pg_catalog`.
    Type {
        xid: Option<u32>,
        oid: u32,
        schema: &'a [u8],
        name: &'a [u8],
    },
    Insert {
        xid: Option<u32>,
        relation: u32,
        new: Tuple<'a>,
    },
    Update {
        xid: Option<u32>,
        relation: u32,
        old: Old<'a>,
        new: Tuple<'a>,
    },
    /// `old` is known.
    Delete {
        xid: Option<u32>,
        relation: u32,
        old: Old<'a>,
    },
    /// `options`: 1 CASCADE, 2 RESTART IDENTITY.
    Truncate {
        xid: Option<u32>,
        options: u8,
        relations: Oids<'a>,
    },
    /// What follows is a part of a transaction that is still running.
    StreamStart {
        xid: u32,
        first: bool,
    },
    StreamStop,
    StreamCommit {
        xid: u32,
        commit: u64,
        end: u64,
        time: i64,
    },
    /// `sub` is undone; it may be `xid` itself. Where and when: only as a parallel stream.
    StreamAbort {
        xid: u32,
        sub: u32,
        place: Option<(u64, i64)>,
    },
    BeginPrepare(Prepared<'a>),
    Prepare(Prepared<'a>),
    /// `at` is the position of the commit.
    CommitPrepared(Prepared<'a>),
    /// `at` is the end of the prepared transaction, `end` that of its rollback.
    RollbackPrepared {
        prepared: Prepared<'a>,
        rolled_back: i64,
    },
    StreamPrepare(Prepared<'a>),
}

/// A step of two-phase commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared<'a> {
    pub at: u64,
    pub end: u64,
    pub time: i64,
    pub xid: u32,
    pub gid: &'a [u8],
}

/// Numbers of relations. They have been counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oids<'a>(&'a [u8]);

impl<'a> Oids<'a> {
    /// `None` unless `bytes` are whole numbers of four bytes, the highest first.
    pub fn of(bytes: &'a [u8]) -> Option<Oids<'a>> {
        (bytes.len() % 4 == 0).then_some(Oids(bytes))
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + 'a {
        self.0.chunks_exact(4).map(|oid| u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]]))
    }
}

/// Reads one message. `streamed`: it stands between StreamStart and StreamStop.
///
/// # Errors
/// `Unexpected` for a message or a flag that is not known; else the field that is wrong.
pub fn message(data: &[u8], streamed: bool) -> Result<Message<'_>, WireError> {
    let mut reader = Reader::new(data);
    let kind = reader.u8("kind of a change")?;
    let message = match kind {
        b'M' | b'R' | b'Y' | b'I' | b'U' | b'D' | b'T' => {
            let xid = match streamed {
                true => Some(reader.u32("transaction of a change")?),
                false => None,
            };
            change(kind, xid, &mut reader)?
        }
        _ => boundary(kind, &mut reader)?,
    };
    reader.end("a change")?;
    Ok(message)
}

fn change<'a>(
    kind: u8,
    xid: Option<u32>,
    reader: &mut Reader<'a>,
) -> Result<Message<'a>, WireError> {
    Ok(match kind {
        b'M' => {
            let transactional = reader.u8("flags of a message")? & 1 != 0;
            let at = reader.u64("position of a message")?;
            let prefix = reader.cstr("prefix of a message")?;
            let length = reader.u32("length of a message")? as usize;
            let content = reader.bytes(length, "content of a message")?;
            Message::Emitted { xid, transactional, at, prefix, content }
        }
        b'R' => Message::Relation { xid, relation: Relation::read(reader)? },
        b'Y' => Message::Type {
            xid,
            oid: reader.u32("oid of a type")?,
            schema: reader.cstr("schema of a type")?,
            name: reader.cstr("name of a type")?,
        },
        b'I' => {
            let relation = reader.u32("relation of a change")?;
            expect(reader, b'N')?;
            Message::Insert { xid, relation, new: Tuple::read(reader)? }
        }
        b'U' => {
            let relation = reader.u32("relation of a change")?;
            let old = match reader.u8("kind of a row")? {
                b'N' => Old::Unknown,
                kind => {
                    let old = old(kind, reader)?;
                    expect(reader, b'N')?;
                    old
                }
            };
            Message::Update { xid, relation, old, new: Tuple::read(reader)? }
        }
        b'D' => {
            let relation = reader.u32("relation of a change")?;
            let kind = reader.u8("kind of a row")?;
            Message::Delete { xid, relation, old: old(kind, reader)? }
        }
        _ => {
            let count = reader.u32("count of relations")? as usize;
            let options = reader.u8("options of TRUNCATE")?;
            let bytes = count.checked_mul(4).ok_or(WireError::Truncated("relations"))?;
            let relations = Oids(reader.bytes(bytes, "relations")?);
            Message::Truncate { xid, options, relations }
        }
    })
}

fn old<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Old<'a>, WireError> {
    match kind {
        b'K' => Tuple::read(reader).map(Old::Key),
        b'O' => Tuple::read(reader).map(Old::Whole),
        got => Err(WireError::Unexpected { what: "kind of a row", got: got.into() }),
    }
}

fn expect(reader: &mut Reader<'_>, kind: u8) -> Result<(), WireError> {
    match reader.u8("kind of a row")? {
        got if got == kind => Ok(()),
        got => Err(WireError::Unexpected { what: "kind of a row", got: got.into() }),
    }
}

/// Where transactions begin and end.
fn boundary<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Message<'a>, WireError> {
    Ok(match kind {
        b'B' => Message::Begin {
            commit: reader.u64("position of the commit")?,
            time: reader.i64("time of the commit")?,
            xid: reader.u32("number of the transaction")?,
        },
        b'C' => {
            flags(reader)?;
            let (commit, end, time) = ended(reader)?;
            Message::Commit { commit, end, time }
        }
        b'O' => Message::Origin {
            commit: reader.u64("position at the origin")?,
            name: reader.cstr("name of the origin")?,
        },
        b'S' => Message::StreamStart {
            xid: reader.u32("number of the transaction")?,
            first: reader.u8("first part of a transaction")? != 0,
        },
        b'E' => Message::StreamStop,
        b'c' => {
            let xid = reader.u32("number of the transaction")?;
            flags(reader)?;
            let (commit, end, time) = ended(reader)?;
            Message::StreamCommit { xid, commit, end, time }
        }
        b'A' => {
            let xid = reader.u32("number of the transaction")?;
            let sub = reader.u32("number of the subtransaction")?;
            let place = match reader.rest() {
                [] => None,
                _ => Some((reader.u64("position of the abort")?, reader.i64("its time")?)),
            };
            Message::StreamAbort { xid, sub, place }
        }
        b'b' => Message::BeginPrepare(prepared(reader)?),
        b'P' => {
            flags(reader)?;
            Message::Prepare(prepared(reader)?)
        }
        b'K' => {
            flags(reader)?;
            Message::CommitPrepared(prepared(reader)?)
        }
        b'r' => {
            flags(reader)?;
            let (at, end, time) = ended(reader)?;
            let rolled_back = reader.i64("time of the rollback")?;
            let (xid, gid) = named(reader)?;
            Message::RollbackPrepared {
                prepared: Prepared { at, end, time, xid, gid },
                rolled_back,
            }
        }
        b'p' => {
            flags(reader)?;
            Message::StreamPrepare(prepared(reader)?)
        }
        got => return Err(WireError::Unexpected { what: "kind of a change", got: got.into() }),
    })
}

/// None is defined, and what one would mean can't be guessed.
fn flags(reader: &mut Reader<'_>) -> Result<(), WireError> {
    match reader.u8("flags")? {
        0 => Ok(()),
        got => Err(WireError::Unexpected { what: "flags", got: got.into() }),
    }
}

fn ended(reader: &mut Reader<'_>) -> Result<(u64, u64, i64), WireError> {
    let at = reader.u64("position of the end")?;
    let end = reader.u64("position behind the end")?;
    Ok((at, end, reader.i64("time of the end")?))
}

fn named<'a>(reader: &mut Reader<'a>) -> Result<(u32, &'a [u8]), WireError> {
    let xid = reader.u32("number of the transaction")?;
    Ok((xid, reader.cstr("name of the prepared transaction")?))
}

fn prepared<'a>(reader: &mut Reader<'a>) -> Result<Prepared<'a>, WireError> {
    let (at, end, time) = ended(reader)?;
    let (xid, gid) = named(reader)?;
    Ok(Prepared { at, end, time, xid, gid })
}
