//! Rows of `redis.load`: a key with all its elements.

use backend::calls::{self, Columns, Elements};
use backend::WireError;

use crate::keyspace::NEVER;
use crate::store::Row;
use crate::value::{Hash, Kind, List, Set, Str, Stream, Tracked, Value, Zset};

/// Reads a row: the key's whole name, and what there is of it.
///
/// # Errors
/// What is not as [`crate::statements::LOAD`] gives it.
pub fn read(mut columns: Columns<'_>) -> Result<(Box<[u8]>, Row), WireError> {
    let key = columns.bytea()?.into();
    let kind = columns.char()?.and_then(Kind::from_letter);
    let kind = kind.ok_or(WireError::Unexpected { what: "type of a key", got: 0 })?;
    let val = columns.raw()?.unwrap_or_default();
    let kid = columns.int8()?.unwrap_or(0);
    let _n = columns.int8()?;
    let _head = columns.int8()?;
    let _tail = columns.int8()?;
    let expires = columns.int8()?.unwrap_or(NEVER);
    let version = columns.int8()?.ok_or(WireError::Truncated("version"))?;
    let (names, vals) = (columns.array()?, columns.array()?);
    let (scores, positions, seqs) = (columns.array()?, columns.array()?, columns.array()?);
    let (labels, states) = (columns.array()?, columns.array()?);
    let value = match kind {
        Kind::Str => Value::Str(Str::new(val)),
        Kind::Hash => Value::Hash(Box::new(Hash::load(kid, pairs(bytes(names)?, bytes(vals)?)?))),
        Kind::Set => Value::Set(Box::new(Set::load(kid, bytes(names)?))),
        Kind::Zset => {
            let scores = numbers(scores, calls::float8)?;
            Value::Zset(Box::new(Zset::load(kid, pairs(bytes(names)?, scores)?)))
        }
        Kind::List => {
            Value::List(Box::new(list(kid, &numbers(positions, calls::int8)?, bytes(vals)?)?))
        }
        Kind::Stream => {
            let ids = pairs(numbers(positions, unsigned)?, numbers(seqs, unsigned)?)?;
            let entries = pairs(ids.collect(), bytes(vals)?)?;
            let groups = pairs(bytes(labels)?, bytes(states)?)?;
            Value::Stream(Box::new(Stream::load(kid, val, entries, groups)))
        }
    };
    Ok((key, Row { value, expires, version }))
}

/// A list counts its positions on from the first. Where SQL has left gaps, it is one whose rows
/// all have to be written again, as another incarnation; the old one becomes an orphan then.
fn list(kid: i64, positions: &[i64], values: Vec<&[u8]>) -> Result<List, WireError> {
    let first = positions.first().copied().unwrap_or(0);
    if positions.len() != values.len() {
        return Err(UNEVEN);
    }
    let whole = positions.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    if whole {
        return Ok(List::load(kid, first, values));
    }
    let mut list = List::load(0, 0, values);
    list.renew();
    Ok(list)
}

const UNEVEN: WireError = WireError::Truncated("elements of a collection");

fn bytes(elements: Elements<'_>) -> Result<Vec<&[u8]>, WireError> {
    elements.map(|element| element?.ok_or(UNEVEN)).collect()
}

fn numbers<T>(
    elements: Elements<'_>,
    read: impl Fn(&[u8]) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    elements.map(|element| read(element?.ok_or(UNEVEN)?)).collect()
}

/// The tables have the bits of unsigned numbers.
fn unsigned(bytes: &[u8]) -> Result<u64, WireError> {
    Ok(calls::int8(bytes)? as u64)
}

fn pairs<A, B>(left: Vec<A>, right: Vec<B>) -> Result<impl Iterator<Item = (A, B)>, WireError> {
    if left.len() != right.len() {
        return Err(UNEVEN);
    }
    Ok(left.into_iter().zip(right))
}
