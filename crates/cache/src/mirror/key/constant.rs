//! Values of statements. PostgreSQL is not asked: what its input functions would refuse must not be
//! understood here, and what they read depending on a setting neither.

use smallvec::SmallVec;

use super::super::class::Class;
use super::super::decimal::put_integer;
use super::super::definition::Column;
use super::super::stored::number::{Numeric, NAN, NEGATIVE};
use super::super::stored::{float, store, store_class};
use super::{int, put_key};
use crate::recipe::Value;
use crate::value::{as_i64, canonical, oid, Canonical, Kind};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Longer texts of numerics are not read. Bytes.
const NUMERIC_MAX: usize = 1000;

/// Source: `IS_VALID_DATE` and `IS_VALID_TIMESTAMP` in `src/include/datatype/timestamp.h`.
const DATES: std::ops::Range<i64> = -2_451_545..2_145_031_949;
const TIMESTAMPS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

/// Seconds. Source: `TZDISP_LIMIT` in the same file.
const ZONE_LIMIT: i64 = 16 * 3600;

/// Source: `NUMERIC_DSCALE_MAX` in `src/backend/utils/adt/numeric.c`.
const SCALE_MAX: u16 = 0x3fff;

/// What the key of a statement's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    Known,
    Null,
    /// It is not understood for certain.
    Unknown,
}

/// A stored form on its way to a key.
type Stored = SmallVec<[u8; 64]>;

/// Appends the key of a value that is compared with the column. Of what is not [`Constant::Known`]
/// nothing is appended.
pub fn put_constant(
    column: &Column,
    type_oid: u32,
    value: Value<'_>,
    out: &mut Vec<u8>,
) -> Constant {
    if value == Value::Null {
        return Constant::Null;
    }
    if !column.compares_with(type_oid) {
        return Constant::Unknown;
    }
    let own = matches!(type_oid, 0 | oid::UNKNOWN) || type_oid == column.type_oid;
    let class = if own { column.class } else { Class::of(type_oid) };
    let start = out.len();
    let read = match value {
        Value::Null => false,
        Value::Text(text) => read_text(column, class, text, out),
        Value::Binary(bytes) => read_binary(column, class, bytes, out),
    };
    let stored = Stored::from_slice(&out[start..]);
    out.truncate(start);
    let known = read.then(|| put_compared(column.class, class, &stored, value, out)).flatten();
    match known {
        Some(()) => Constant::Known,
        None => Constant::Unknown,
    }
}

/// Appends what the keys of all texts begin with that are LIKE a pattern, and of no others. That is
/// told where the only `%` are at the end: what is before them, or of a pattern without them all of
/// its key. Which collation counts makes no difference then, if different bytes are different texts.
///
/// Source: `MatchText` in `src/backend/utils/adt/like_match.c`.
pub fn put_pattern(
    column: &Column,
    type_oid: u32,
    value: Value<'_>,
    out: &mut Vec<u8>,
) -> Constant {
    let pattern = match value {
        Value::Null => return Constant::Null,
        Value::Text(pattern) | Value::Binary(pattern) => pattern,
    };
    let known = column.class == Class::Text && column.compares_with(type_oid) && is_text(pattern);
    if !known || pattern.iter().any(|byte| matches!(byte, b'_' | b'\\')) {
        return Constant::Unknown;
    }
    match pattern.iter().position(|byte| *byte == b'%') {
        None => put_key(Class::Text, pattern, out),
        Some(end) if pattern[end..].iter().all(|byte| *byte == b'%') => {
            out.extend_from_slice(&pattern[..end]);
        }
        Some(_) => return Constant::Unknown,
    }
    Constant::Known
}

/// Appends the key of a stored value of one class as it is compared with a column of another.
fn put_compared(
    column: Class,
    class: Class,
    stored: &[u8],
    value: Value<'_>,
    out: &mut Vec<u8>,
) -> Option<()> {
    let is_int = matches!(class, Class::Int2 | Class::Int4 | Class::Int8);
    let integer = match class {
        Class::Int2 => int::<2>(stored),
        Class::Int4 => int::<4>(stored),
        _ => int::<8>(stored),
    };
    match (column, class) {
        (Class::Numeric, _) if is_int => {
            let mut number = Vec::new();
            put_integer(integer, &mut number);
            put_key(column, &number, out);
        }
        (Class::Float4 | Class::Float8, _) if is_int => {
            put_key(Class::Float8, &(integer as f64).to_be_bytes(), out);
        }
        // As double precision, which is what is nearest to its digits.
        (Class::Float4 | Class::Float8, Class::Numeric) => {
            let Value::Text(text) = value else { return None };
            put_key(Class::Float8, &real::<f64>(text)?.to_be_bytes(), out);
        }
        (Class::Timestamp, Class::Date) => {
            let midnight = match int::<4>(stored) {
                days if days == i64::from(i32::MAX) => i64::MAX,
                days if days == i64::from(i32::MIN) => i64::MIN,
                days => days.checked_mul(DAY)?,
            };
            put_key(column, &midnight.to_be_bytes(), out);
        }
        // Integers and floats have the same keys whatever their width.
        _ => put_key(class, stored, out),
    }
    Some(())
}

/// Appends the stored form of what PostgreSQL's input function would read.
fn read_text(column: &Column, class: Class, text: &[u8], out: &mut Vec<u8>) -> bool {
    let kind = match class {
        Class::Opaque => return false,
        Class::Text | Class::Padded => {
            let known = is_text(text);
            if known {
                out.extend_from_slice(text);
            }
            return known;
        }
        // Infinity is an error before version 14.
        Class::Numeric => {
            let digits = text.first().is_some_and(|byte| !byte.is_ascii_alphabetic());
            let plain = digits && !text.ends_with(b"y") || text == b"NaN";
            return plain
                && text.len() <= NUMERIC_MAX
                && store_class(class, &column.labels, text, out);
        }
        Class::Float4 => {
            return real::<f32>(text).is_some() && store_class(class, &column.labels, text, out)
        }
        Class::Float8 => {
            return real::<f64>(text).is_some() && store_class(class, &column.labels, text, out)
        }
        Class::Time | Class::TimeTz => {
            let clock = matches!(text, [_, _, b':', _, _, b':', a, b, ..]
                if a.is_ascii_digit() && b.is_ascii_digit());
            let fraction = text.get(8..).unwrap_or_default();
            return clock
                && !is_bare_point(fraction)
                && store_class(class, &column.labels, text, out);
        }
        Class::Interval => {
            return is_interval(text) && store_class(class, &column.labels, text, out)
        }
        Class::Int2 | Class::Int4 | Class::Int8 | Class::Bytea | Class::Enum => {
            return store_class(class, &column.labels, text, out)
        }
        Class::Bool => Kind::Bool,
        Class::Uuid => Kind::Uuid,
        Class::Date => Kind::Date,
        Class::Timestamp => Kind::Timestamp,
        Class::TimestampTz => Kind::TimestampTz,
    };
    let mut bytes = Canonical::new();
    if !canonical(kind, text, &mut bytes) {
        return false;
    }
    let Some(value) = as_i64(kind, &bytes) else {
        out.extend_from_slice(&bytes);
        return true;
    };
    if kind == Kind::Date {
        let days = i32::try_from(value).ok().filter(|_| is_date(value));
        out.extend(days.map(i32::to_be_bytes).into_iter().flatten());
        return days.is_some();
    }
    out.extend_from_slice(&value.to_be_bytes());
    is_timestamp(value)
}

/// Appends the stored form of what PostgreSQL's receive function would take.
fn read_binary(column: &Column, class: Class, bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let time = |bytes: &[u8]| (0..=DAY).contains(&int::<8>(bytes));
    let known = match class {
        Class::Enum => return store(column, bytes, out),
        Class::Bool => {
            out.push(u8::from(bytes != [0]));
            return bytes.len() == 1;
        }
        Class::Opaque => false,
        Class::Text | Class::Padded => is_text(bytes),
        Class::Numeric => is_numeric(bytes),
        _ if class.width().is_some_and(|width| width != bytes.len()) => false,
        Class::Date => is_date(int::<4>(bytes)),
        Class::Timestamp | Class::TimestampTz => is_timestamp(int::<8>(bytes)),
        Class::Time => time(bytes),
        Class::TimeTz => {
            let zone = int::<4>(bytes.get(8..).unwrap_or_default());
            time(bytes) && -ZONE_LIMIT < zone && zone < ZONE_LIMIT
        }
        _ => true,
    };
    if known {
        out.extend_from_slice(bytes);
    }
    known
}

fn is_text(text: &[u8]) -> bool {
    !text.contains(&0) && std::str::from_utf8(text).is_ok()
}

fn is_date(days: i64) -> bool {
    DATES.contains(&days) || days == i64::from(i32::MIN) || days == i64::from(i32::MAX)
}

fn is_timestamp(micros: i64) -> bool {
    TIMESTAMPS.contains(&micros) || micros == i64::MIN || micros == i64::MAX
}

/// Only in the one form that PostgreSQL itself sends, with nothing that the scale hides.
fn is_numeric(bytes: &[u8]) -> bool {
    let Some(count) = bytes.first_chunk::<2>().map(|count| u16::from_be_bytes(*count)) else {
        return false;
    };
    let number = Numeric::new(bytes);
    if bytes.len() != 8 + 2 * usize::from(count) || bytes.len() > NUMERIC_MAX {
        return false;
    }
    match number.sign {
        0 | NEGATIVE => {
            // Digits behind the point that the last group has.
            let places = (i32::from(count) - 1 - i32::from(number.weight)) * 4;
            let last = number.groups().last().unwrap_or(0);
            let zeros = (1..4).take_while(|power| last % 10u16.pow(*power) == 0).count() as i32;
            number.groups().all(|group| group < 10_000)
                && number.groups().next() != Some(0)
                && (count == 0 || last != 0 && places - zeros <= i32::from(number.scale))
                && number.scale <= SCALE_MAX
        }
        NAN => count == 0,
        _ => false,
    }
}

/// A number that is neither too great nor too small for its type, which PostgreSQL says.
fn real<T: std::str::FromStr + Into<f64> + Copy>(text: &[u8]) -> Option<T> {
    let value: T = float(text)?;
    let double: f64 = value.into();
    let mantissa = text.split(|byte| matches!(byte, b'e' | b'E')).next().unwrap_or_default();
    let too_great = double.is_infinite() && mantissa.iter().any(u8::is_ascii_digit);
    let too_small = double == 0.0 && mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9'));
    (!too_great && !too_small).then_some(value)
}

/// Whether there is a point with no digit behind it.
fn is_bare_point(fraction: &[u8]) -> bool {
    matches!(fraction, [b'.'] | [b'.', b'+' | b'-', ..])
}

/// Whether it means the same with every `IntervalStyle`: that is sure without signs. Units come
/// once, the greatest first, and there are few digits.
fn is_interval(text: &[u8]) -> bool {
    let mut before = 0;
    let mut words = text.split(|byte| *byte == b' ');
    while let Some(word) = words.next() {
        let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=6).contains(&digits) || word.ends_with(b".") {
            return false;
        }
        let unit = match words.next() {
            _ if digits < word.len() => 4,
            Some(b"year" | b"years") => 1,
            Some(b"mon" | b"mons") => 2,
            Some(b"day" | b"days") => 3,
            _ => return false,
        };
        if unit <= before {
            return false;
        }
        before = unit;
    }
    before > 0
}
