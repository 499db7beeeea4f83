//! The same messages from values to bytes, for whoever plays the server.

use super::row::put_relation;
use super::{Message, Old, Prepared, Tuple};
use crate::pg::write::cstr;

/// Appends a message as `pgoutput` writes it. Numbers of (sub)transactions are written where the
/// message has them.
pub fn put(out: &mut Vec<u8>, message: &Message<'_>) {
    match message {
        Message::Begin { commit, time, xid } => {
            out.push(b'B');
            out.extend_from_slice(&commit.to_be_bytes());
            out.extend_from_slice(&time.to_be_bytes());
            out.extend_from_slice(&xid.to_be_bytes());
        }
        Message::Commit { commit, end, time } => {
            out.extend_from_slice(b"C\0");
            put_end(out, *commit, *end, *time);
        }
        Message::Origin { commit, name } => {
            out.push(b'O');
            out.extend_from_slice(&commit.to_be_bytes());
            cstr(out, name);
        }
        Message::StreamStart { xid, first } => {
            out.push(b'S');
            out.extend_from_slice(&xid.to_be_bytes());
            out.push(u8::from(*first));
        }
        Message::StreamStop => out.push(b'E'),
        Message::StreamCommit { xid, commit, end, time } => {
            out.push(b'c');
            out.extend_from_slice(&xid.to_be_bytes());
            out.push(0);
            put_end(out, *commit, *end, *time);
        }
        Message::StreamAbort { xid, sub, place } => {
            out.push(b'A');
            out.extend_from_slice(&xid.to_be_bytes());
            out.extend_from_slice(&sub.to_be_bytes());
            if let Some((at, time)) = place {
                out.extend_from_slice(&at.to_be_bytes());
                out.extend_from_slice(&time.to_be_bytes());
            }
        }
        Message::BeginPrepare(prepared) => put_prepared(out, b"b", prepared),
        Message::Prepare(prepared) => put_prepared(out, b"P\0", prepared),
        Message::CommitPrepared(prepared) => put_prepared(out, b"K\0", prepared),
        Message::StreamPrepare(prepared) => put_prepared(out, b"p\0", prepared),
        Message::RollbackPrepared { prepared, rolled_back } => {
            out.extend_from_slice(b"r\0");
            put_end(out, prepared.at, prepared.end, prepared.time);
            out.extend_from_slice(&rolled_back.to_be_bytes());
            out.extend_from_slice(&prepared.xid.to_be_bytes());
            cstr(out, prepared.gid);
        }
        change => put_change(out, change),
    }
}

fn put_change(out: &mut Vec<u8>, message: &Message<'_>) {
    let mut start = |kind: u8, xid: &Option<u32>| {
        out.push(kind);
        out.extend(xid.iter().flat_map(|xid| xid.to_be_bytes()));
    };
    match message {
        Message::Emitted { xid, transactional, at, prefix, content } => {
            start(b'M', xid);
            out.push(u8::from(*transactional));
            out.extend_from_slice(&at.to_be_bytes());
            cstr(out, prefix);
            out.extend_from_slice(&(content.len() as u32).to_be_bytes());
            out.extend_from_slice(content);
        }
        Message::Relation { xid, relation } => {
            start(b'R', xid);
            put_relation(out, relation);
        }
        Message::Type { xid, oid, schema, name } => {
            start(b'Y', xid);
            out.extend_from_slice(&oid.to_be_bytes());
            cstr(out, schema);
            cstr(out, name);
        }
        Message::Insert { xid, relation, new } => {
            start(b'I', xid);
            out.extend_from_slice(&relation.to_be_bytes());
            put_row(out, b'N', new);
        }
        Message::Update { xid, relation, old, new } => {
            start(b'U', xid);
            out.extend_from_slice(&relation.to_be_bytes());
            put_old(out, old);
            put_row(out, b'N', new);
        }
        Message::Delete { xid, relation, old } => {
            start(b'D', xid);
            out.extend_from_slice(&relation.to_be_bytes());
            put_old(out, old);
        }
        Message::Truncate { xid, options, relations } => {
            start(b'T', xid);
            out.extend_from_slice(&((relations.0.len() / 4) as u32).to_be_bytes());
            out.push(*options);
            out.extend_from_slice(relations.0);
        }
        // The others are where transactions begin and end.
        _ => {}
    }
}

fn put_row(out: &mut Vec<u8>, kind: u8, row: &Tuple<'_>) {
    out.push(kind);
    row.put(out);
}

fn put_old(out: &mut Vec<u8>, old: &Old<'_>) {
    match old {
        Old::Absent | Old::Unknown => {}
        Old::Key(row) => put_row(out, b'K', row),
        Old::Whole(row) => put_row(out, b'O', row),
    }
}

fn put_end(out: &mut Vec<u8>, at: u64, end: u64, time: i64) {
    out.extend_from_slice(&at.to_be_bytes());
    out.extend_from_slice(&end.to_be_bytes());
    out.extend_from_slice(&time.to_be_bytes());
}

fn put_prepared(out: &mut Vec<u8>, head: &[u8], prepared: &Prepared<'_>) {
    out.extend_from_slice(head);
    put_end(out, prepared.at, prepared.end, prepared.time);
    out.extend_from_slice(&prepared.xid.to_be_bytes());
    cstr(out, prepared.gid);
}
