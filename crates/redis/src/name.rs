//! Names of keys, fields, members and groups, as the tables have them.
//!
//! An index row of PostgreSQL has at most about 2700 bytes. A name of more than [`NAME_BYTES_MAX`]
//! is indexed by its beginning and its SHA-256, and stands whole in a column beside that.
//! `redis.stored()` of `schema/tables.sql` does the same.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// Longest name that is indexed as it is.
pub const NAME_BYTES_MAX: usize = 2000;

/// How much of a longer one is. One byte more with the digest than any name that is indexed as it
/// is, so that no such name can be mistaken for a digest.
const BEGINNING_BYTES: usize = NAME_BYTES_MAX + 1 - 32;

/// The bytes under which a name is stored.
pub fn stored(name: &[u8]) -> Cow<'_, [u8]> {
    if name.len() <= NAME_BYTES_MAX {
        return Cow::Borrowed(name);
    }
    let mut short = name[..BEGINNING_BYTES].to_vec();
    short.extend_from_slice(&Sha256::digest(name));
    Cow::Owned(short)
}

/// What the column `name` has of it.
pub fn overlong(name: &[u8]) -> Option<&[u8]> {
    (name.len() > NAME_BYTES_MAX).then_some(name)
}
