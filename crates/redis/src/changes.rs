//! What PostgreSQL tells about keys in words: notifications, and details of errors.
//!
//! `schema/writers.sql` and `schema/engine.sql` write them. A key is `DB HEX`, in the bytes it is
//! stored under ([`crate::name::stored`]).

use crate::name::NAME_BYTES_MAX;

/// The channel on which SQL writers are heard.
pub const CHANNEL: &str = "redis";

/// Another gateway owns the shard, or the batch is in the tables already.
pub const STALE: &str = "RD001";
/// A row that a batch writes is not the one that was expected; the error's detail names keys.
pub const CONFLICT: &str = "RD002";
/// The same of a row that is only watched.
pub const WATCHED: &str = "RD003";

/// What an SQL writer has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    Key {
        db: u16,
        key: Box<[u8]>,
    },
    /// Some key of a database: one whose name is too long to be told.
    Database(u16),
    /// Anything; also what is not understood.
    Everything,
}

/// Reads the payload of a notification.
pub fn changes(payload: &[u8]) -> Changes {
    match payload.strip_prefix(b"k ").and_then(key) {
        Some((db, stored)) if stored.len() > NAME_BYTES_MAX => Changes::Database(db),
        Some((db, key)) => Changes::Key { db, key: key.into() },
        None => Changes::Everything,
    }
}

/// The keys that the detail of a [`CONFLICT`] or [`WATCHED`] names: the first 16.
pub fn named_keys(detail: &str) -> impl Iterator<Item = (u16, Vec<u8>)> + '_ {
    detail.split(',').filter_map(|word| key(word.as_bytes()))
}

fn key(text: &[u8]) -> Option<(u16, Vec<u8>)> {
    let space = text.iter().position(|byte| *byte == b' ')?;
    let (db, hex) = (&text[..space], &text[space + 1..]);
    // A smallint, whose bits are the number.
    let db = std::str::from_utf8(db).ok()?.parse::<i16>().ok()? as u16;
    if hex.len() % 2 != 0 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes = hex.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?));
    Some((db, bytes.collect::<Option<_>>()?))
}
