//! A batch as one value, for the journal, and back.
//!
//! ```text
//! 1                                           the format's version
//! F db | O kid kind                           flush, orphan
//! D db key | P shard db kind kid n head tail expires key val
//! - table kid name | + table kid name value   an element is deleted, put
//! T kid first last                            a list is trimmed
//! ```
//!
//! Numbers are little-endian and as long as they need be, seven bits in a byte; signed ones with
//! their sign in the lowest bit. Bytes have their number in front.
//!
//! What was expected is not kept: a batch in the journal has been acknowledged, so nothing can be
//! asked of the tables any more.

use std::fmt;

use super::elements::{position, Table, TABLES};
use super::{Batch, Expect, Key, Put};
use crate::rows::Rows;
use crate::value::Kind;

const VERSION: u8 = 1;

/// Bytes that are no batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row of the journal is damaged, or of a newer version")
    }
}

impl std::error::Error for Malformed {}

impl Batch {
    /// Appends the batch to `out`.
    pub fn write_effects(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        for db in &self.flushes {
            out.push(b'F');
            number(out, u64::from(*db));
        }
        for (kid, kind) in &self.orphans {
            out.push(b'O');
            signed(out, *kid);
            out.push(kind.letter());
        }
        for key in &self.keys {
            self.write_key(out, key);
        }
        for (kid, first, last) in &self.trims.all {
            out.push(b'T');
            [kid, first, last].into_iter().for_each(|n| signed(out, *n));
        }
        for (table, elements) in self.elements.iter().enumerate() {
            for row in &elements.rows {
                out.push(if row.value.is_some() { b'+' } else { b'-' });
                out.push(table as u8);
                signed(out, row.kid);
                counted(out, row.name.of(&self.bytes));
                if let Some(value) = row.value {
                    counted(out, value.of(&self.bytes));
                }
            }
        }
    }

    fn write_key(&self, out: &mut Vec<u8>, key: &Key) {
        let Some(row) = &key.row else {
            out.push(b'D');
            number(out, u64::from(key.db));
            counted(out, key.key.of(&self.bytes));
            return;
        };
        out.push(b'P');
        out.push(row.shard);
        number(out, u64::from(key.db));
        out.push(row.kind.letter());
        let numbers = [row.kid, row.n, row.head, row.tail, row.expires];
        numbers.into_iter().for_each(|n| signed(out, n));
        counted(out, key.key.of(&self.bytes));
        counted(out, row.val.of(&self.bytes));
    }

    /// Adds what [`Batch::write_effects`] has written.
    ///
    /// # Errors
    /// [`Malformed`]; a part may have been added then.
    pub fn read_effects(&mut self, effects: &[u8]) -> Result<(), Malformed> {
        let mut rest = Rest(effects);
        if rest.byte()? != VERSION {
            return Err(Malformed);
        }
        while !rest.0.is_empty() {
            match rest.byte()? {
                b'F' => self.flush(rest.small()?),
                b'O' => {
                    let kid = rest.signed()?;
                    self.orphan(kid, rest.kind()?);
                }
                b'D' => {
                    let db = rest.small()?;
                    self.delete(db, rest.counted()?, Expect::Anything);
                }
                b'P' => {
                    let put = Put {
                        shard: rest.byte()?,
                        db: rest.small()?,
                        kind: rest.kind()?,
                        kid: rest.signed()?,
                        n: rest.signed()?,
                        head: rest.signed()?,
                        tail: rest.signed()?,
                        expires: rest.signed()?,
                        key: rest.counted()?,
                        val: rest.counted()?,
                    };
                    self.put(put, Expect::Anything);
                }
                b'T' => {
                    let (kid, first) = (rest.signed()?, rest.signed()?);
                    self.list_trim(kid, first, rest.signed()?);
                }
                kind @ (b'+' | b'-') => self.read_element(&mut rest, kind == b'+')?,
                _ => return Err(Malformed),
            }
        }
        Ok(())
    }

    fn read_element(&mut self, rest: &mut Rest<'_>, put: bool) -> Result<(), Malformed> {
        let table = usize::from(rest.byte()?);
        let (kid, name) = (rest.signed()?, rest.counted()?);
        let value = if put { Some(rest.counted()?) } else { None };
        let name_bytes = [(Table::List as usize, 8), (Table::Stream as usize, 16)];
        let right_name = name_bytes.iter().all(|(of, len)| *of != table || name.len() == *len);
        let right_value = table != Table::Zset as usize || value.is_none_or(|v| v.len() == 8);
        if table >= TABLES || !right_name || !right_value {
            return Err(Malformed);
        }
        if table == Table::List as usize && put {
            self.trims.has(kid, position(name));
        }
        self.elements[table].write(&mut self.bytes, kid, name, value);
        Ok(())
    }
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn signed(out: &mut Vec<u8>, value: i64) {
    number(out, (value << 1 ^ value >> 63) as u64);
}

fn counted(out: &mut Vec<u8>, bytes: &[u8]) {
    number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// What is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let (byte, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*byte)
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(Malformed);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn signed(&mut self) -> Result<i64, Malformed> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn small(&mut self) -> Result<u16, Malformed> {
        u16::try_from(self.number()?).map_err(|_| Malformed)
    }

    fn kind(&mut self) -> Result<Kind, Malformed> {
        Kind::from_letter(self.byte()?).ok_or(Malformed)
    }

    fn counted(&mut self) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }
}
