//! Keys: bytes whose order is PostgreSQL's order of the values, and that are equal exactly when the
//! values are.
//!
//! ```text
//! integers, date, timestamps, time   i64, its sign turned
//! real, double precision             as f64: all bits turned, or the sign; -0 as 0; NaN last
//! numeric                            sort of value, weight, groups + 1, 0; turned if negative
//! text, character(n)                 bytes (without blanks at the end), 0
//! bytea                              bytes, 0 as 0 255; 0 0
//! ```
//!
//! Source: the comparison functions in `src/backend/utils/adt` (`numeric.c`, `date.c`,
//! `timestamp.c`, `varchar.c`, `float.c`).

mod constant;

pub use constant::{put_constant, put_pattern, Constant};

use super::class::Class;
use super::stored::number::{Numeric, INFINITY, MINUS_INFINITY, NEGATIVE};

const DAY_MICROS: i128 = 86_400_000_000;
const DAYS_OF_MONTH: i128 = 30;

/// Appends the key of a stored value. Keys of several columns, one behind the other, are ordered
/// like rows of them.
pub fn put_key(class: Class, stored: &[u8], out: &mut Vec<u8>) {
    match class {
        Class::Bool | Class::Uuid | Class::Enum => out.extend_from_slice(stored),
        Class::Text | Class::Opaque => put_text(stored, out),
        Class::Padded => put_text(unpadded(stored), out),
        Class::Bytea => {
            put_bytes(stored, out);
            out.extend_from_slice(&[0, 0]);
        }
        Class::Numeric => put_number(&Numeric::new(stored), out),
        Class::TimeTz => {
            let (instant, zone) = time_with_zone(stored);
            out.extend_from_slice(&turned(instant).to_be_bytes());
            out.extend_from_slice(&turned(zone).to_be_bytes());
        }
        Class::Interval => out.extend_from_slice(&span(stored).to_be_bytes()),
        _ => out.extend_from_slice(&prefix(class, stored).to_be_bytes()),
    }
}

/// The first eight bytes of the key, filled up with zeros.
pub fn prefix(class: Class, stored: &[u8]) -> u64 {
    match class {
        Class::Int2 => turned(int::<2>(stored)),
        Class::Int4 | Class::Date => turned(int::<4>(stored)),
        Class::Int8 | Class::Timestamp | Class::TimestampTz | Class::Time => {
            turned(int::<8>(stored))
        }
        Class::Float4 => {
            let bits = stored.try_into().map_or(0, u32::from_be_bytes);
            of_float(f64::from(f32::from_bits(bits)))
        }
        Class::Float8 => of_float(f64::from_bits(stored.try_into().map_or(0, u64::from_be_bytes))),
        Class::Bool | Class::Uuid | Class::Enum | Class::Text | Class::Opaque => first(stored),
        Class::Padded => first(unpadded(stored)),
        Class::Bytea => {
            let mut key = First::default();
            put_bytes(stored.get(..8).unwrap_or(stored), &mut key);
            u64::from_be_bytes(key.bytes)
        }
        Class::Numeric => {
            let mut key = First::default();
            put_number(&Numeric::new(stored), &mut key);
            u64::from_be_bytes(key.bytes)
        }
        Class::TimeTz => turned(time_with_zone(stored).0),
        Class::Interval => (span(stored) >> 64) as u64,
    }
}

/// The first bytes of a key; further ones get lost.
#[derive(Debug, Default)]
struct First {
    bytes: [u8; 8],
    length: usize,
}

impl Extend<u8> for First {
    fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        for (place, byte) in room.iter_mut().zip(bytes) {
            *place = byte;
            self.length += 1;
        }
    }
}

/// When it is there, and seconds west of Greenwich.
fn time_with_zone(stored: &[u8]) -> (i64, i64) {
    let zone = int::<4>(stored.get(8..).unwrap_or_default());
    (int::<8>(stored) + zone * 1_000_000, zone)
}

/// An interval with months of 30 days and days of 24 hours, its sign turned.
fn span(stored: &[u8]) -> u128 {
    let part = |from| stored.get(from..).unwrap_or_default();
    let (time, days, months) = (int::<8>(stored), int::<4>(part(8)), int::<4>(part(12)));
    let days = i128::from(months) * DAYS_OF_MONTH + i128::from(days);
    (days * DAY_MICROS + i128::from(time)) as u128 ^ 1 << 127
}

fn first(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

/// Of a stored integer.
fn int<const WIDTH: usize>(stored: &[u8]) -> i64 {
    let Some(bytes) = stored.first_chunk::<WIDTH>() else { return 0 };
    let negative = bytes[0] & 0x80 != 0;
    bytes.iter().fold(if negative { -1 } else { 0 }, |value, byte| value << 8 | i64::from(*byte))
}

fn turned(value: i64) -> u64 {
    value as u64 ^ 1 << 63
}

fn of_float(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    // -0 is 0.
    let bits = (value + 0.0).to_bits();
    match bits >> 63 {
        0 => bits ^ 1 << 63,
        _ => !bits,
    }
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    // Texts have no such byte.
    out.push(0);
}

pub(super) fn unpadded(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

fn put_bytes(stored: &[u8], out: &mut impl Extend<u8>) {
    for byte in stored {
        out.extend([*byte]);
        if *byte == 0 {
            out.extend([255]);
        }
    }
}

fn put_number(number: &Numeric<'_>, out: &mut impl Extend<u8>) {
    let sort = match number.sign {
        MINUS_INFINITY => 1,
        _ if number.is_zero() => 3,
        NEGATIVE => 2,
        0 => 4,
        INFINITY => 5,
        _ => 6,
    };
    out.extend([sort]);
    if !matches!(sort, 2 | 4) {
        return;
    }
    let flipped = if sort == 2 { u16::MAX } else { 0 };
    out.extend((number.weight as u16 ^ 1 << 15 ^ flipped).to_be_bytes());
    for group in number.groups() {
        out.extend(((group + 1) ^ flipped).to_be_bytes());
    }
    out.extend(flipped.to_be_bytes());
}
