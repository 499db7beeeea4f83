//! Values as bytes that are the same exactly when PostgreSQL's `=` says that the values are.
//!
//! A value comes in three ways: from the replication stream as PostgreSQL prints it, from a
//! statement as something that PostgreSQL's input functions would read (a literal, a parameter in
//! text format), or as a binary parameter. All three must give the same bytes: the stream's tell
//! what has changed, the others what an answer depends on. What is not understood for certain is
//! refused, and who asks then depends on the whole table. So only these mistakes matter: to take
//! a value for another one. Input that PostgreSQL itself would refuse may be understood or not.
//!
//! The stream is expected in UTF-8, with `DateStyle` ISO; text of statements in the same encoding.
//!
//! Source: the input, output and receive functions in `src/backend/utils/adt` (`int.c`,
//! `numutils.c`, `bool.c`, `uuid.c`, `numeric.c`, `date.c`, `timestamp.c`, `datetime.c`).

mod array;
mod numeric;
mod time;

use smallvec::SmallVec;

pub use array::{elements, elements_binary, Element, NotUnderstood};
pub(crate) use time::day_number;

/// Canonical bytes; longer values are rare enough to be put on the heap.
pub type Canonical = SmallVec<[u8; 64]>;

/// How the values of a column are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `smallint`, `integer`, `bigint`.
    Int,
    Bool,
    /// `text` and `varchar`, of a deterministic collation.
    Bytes,
    /// `character(n)`: blanks at the end do not count.
    Padded,
    Uuid,
    Numeric,
    Date,
    /// Without time zone.
    Timestamp,
    /// `timestamp with time zone`.
    TimestampTz,
}

/// Object identifiers of types. Source: `src/include/catalog/pg_type.dat`.
pub mod oid {
    pub const BOOL: u32 = 16;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const UNKNOWN: u32 = 705;
    pub const BPCHAR: u32 = 1042;
    pub const VARCHAR: u32 = 1043;
    pub const DATE: u32 = 1082;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const NUMERIC: u32 = 1700;
    pub const UUID: u32 = 2950;
}

/// The type of the elements of an array type with one of [`Kind`]'s. 0 and `unknown` give 0: the
/// elements then take the type that they are compared with.
pub fn element_oid(array_oid: u32) -> Option<u32> {
    match array_oid {
        0 | oid::UNKNOWN => Some(0),
        1000 => Some(oid::BOOL),
        1005 => Some(oid::INT2),
        1007 => Some(oid::INT4),
        1009 => Some(oid::TEXT),
        1014 => Some(oid::BPCHAR),
        1015 => Some(oid::VARCHAR),
        1016 => Some(oid::INT8),
        1115 => Some(oid::TIMESTAMP),
        1182 => Some(oid::DATE),
        1185 => Some(oid::TIMESTAMPTZ),
        1231 => Some(oid::NUMERIC),
        2951 => Some(oid::UUID),
        _ => None,
    }
}

impl Kind {
    /// None: values of this type are not compared here.
    pub fn of(type_oid: u32) -> Option<Kind> {
        match type_oid {
            oid::INT2 | oid::INT4 | oid::INT8 => Some(Kind::Int),
            oid::BOOL => Some(Kind::Bool),
            oid::TEXT | oid::VARCHAR => Some(Kind::Bytes),
            oid::BPCHAR => Some(Kind::Padded),
            oid::UUID => Some(Kind::Uuid),
            oid::NUMERIC => Some(Kind::Numeric),
            oid::DATE => Some(Kind::Date),
            oid::TIMESTAMP => Some(Kind::Timestamp),
            oid::TIMESTAMPTZ => Some(Kind::TimestampTz),
            _ => None,
        }
    }

    /// Whether values have a place among the `i64` ([`as_i64`]), so that ranges can be told.
    pub fn is_ordered(self) -> bool {
        matches!(self, Kind::Int | Kind::Date | Kind::Timestamp | Kind::TimestampTz)
    }

    /// Whether a column of this kind, compared with a value of that type, finds a row only if
    /// their canonical bytes are equal. Not so for `double precision`, for example: `numeric` is
    /// then compared as that. 0 and `unknown` become the column's own type.
    pub fn compares_with(self, type_oid: u32) -> bool {
        if matches!(type_oid, 0 | oid::UNKNOWN) {
            return true;
        }
        match self {
            Kind::Int => matches!(type_oid, oid::INT2 | oid::INT4 | oid::INT8),
            Kind::Bool => type_oid == oid::BOOL,
            // Not bpchar: it loses its blanks on the way to text.
            Kind::Bytes => matches!(type_oid, oid::TEXT | oid::VARCHAR),
            // As text, blanks of the value count; then fewer rows are found, not others.
            Kind::Padded => matches!(type_oid, oid::BPCHAR | oid::TEXT | oid::VARCHAR),
            Kind::Uuid => type_oid == oid::UUID,
            Kind::Numeric => {
                matches!(type_oid, oid::NUMERIC | oid::INT2 | oid::INT4 | oid::INT8)
            }
            Kind::Date => type_oid == oid::DATE,
            Kind::Timestamp => matches!(type_oid, oid::TIMESTAMP | oid::DATE),
            Kind::TimestampTz => type_oid == oid::TIMESTAMPTZ,
        }
    }
}

/// Appends the canonical bytes of a value in text, printed by PostgreSQL or to be read by it.
/// False: not known for certain, and `out` is as it was.
pub fn canonical(kind: Kind, text: &[u8], out: &mut Canonical) -> bool {
    match kind {
        Kind::Int => put(out, int(text)),
        Kind::Bool => match boolean(text) {
            Some(value) => put_byte(out, value),
            None => false,
        },
        Kind::Bytes => put_bytes(out, text),
        Kind::Padded => put_bytes(out, unpadded(text)),
        Kind::Uuid => match uuid(text) {
            Some(value) => put_bytes(out, &value),
            None => false,
        },
        Kind::Numeric => numeric::canonical(text, out),
        Kind::Date => put(out, time::date(text)),
        Kind::Timestamp => put(out, time::timestamp(text)),
        Kind::TimestampTz => put(out, time::instant(text)),
    }
}

/// The same for a value in binary format of the given type. 0 and `unknown` stand for a type that
/// the caller does not know; integers then tell theirs by their length.
pub fn canonical_binary(kind: Kind, type_oid: u32, bytes: &[u8], out: &mut Canonical) -> bool {
    if !kind.compares_with(type_oid) {
        return false;
    }
    match kind {
        Kind::Int => put(out, int_binary(type_oid, bytes)),
        Kind::Bool => match bytes {
            [byte] => put_byte(out, *byte != 0),
            _ => false,
        },
        Kind::Bytes => put_bytes(out, bytes),
        Kind::Padded => put_bytes(out, unpadded(bytes)),
        Kind::Uuid => bytes.len() == 16 && put_bytes(out, bytes),
        Kind::Numeric if Kind::of(type_oid) == Some(Kind::Int) => {
            int_binary(type_oid, bytes).is_some_and(|value| numeric::canonical_int(value, out))
        }
        Kind::Numeric => numeric::canonical_binary(bytes, out),
        Kind::Date => put(out, time::date_binary(bytes)),
        Kind::Timestamp if type_oid == oid::DATE => {
            put(out, time::date_binary(bytes).and_then(time::midnight))
        }
        Kind::Timestamp | Kind::TimestampTz => {
            put(out, bytes.try_into().ok().map(i64::from_be_bytes))
        }
    }
}

/// The place of a value among its kind, by its canonical bytes: an integer itself, days of a date
/// and microseconds of a timestamp since 2000.
pub fn as_i64(kind: Kind, canonical: &[u8]) -> Option<i64> {
    if !kind.is_ordered() {
        return None;
    }
    canonical.try_into().ok().map(i64::from_be_bytes)
}

fn put(out: &mut Canonical, value: Option<i64>) -> bool {
    let Some(value) = value else {
        return false;
    };
    put_bytes(out, &value.to_be_bytes())
}

fn put_byte(out: &mut Canonical, value: bool) -> bool {
    out.push(u8::from(value));
    true
}

fn put_bytes(out: &mut Canonical, bytes: &[u8]) -> bool {
    out.extend_from_slice(bytes);
    true
}

/// C's `isspace`, which input functions skip.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text {
        if !is_space(*first) {
            break;
        }
        text = rest;
    }
    while let [rest @ .., last] = text {
        if !is_space(*last) {
            break;
        }
        text = rest;
    }
    text
}

fn unpadded(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

/// The sign, and what is behind it.
fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

fn int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = signed(trimmed(text));
    let magnitude = magnitude(digits)?;
    let value = if negative { -i128::from(magnitude) } else { i128::from(magnitude) };
    i64::try_from(value).ok()
}

/// Digits, in another radix after `0x`, `0o` or `0b`, with single underscores between them.
fn magnitude(text: &[u8]) -> Option<u64> {
    let (radix, digits) = match text {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', b'o' | b'O', rest @ ..] => (8, rest),
        [b'0', b'b' | b'B', rest @ ..] => (2, rest),
        _ => (10, text),
    };
    let mut value = 0u64;
    // Behind a prefix an underscore may come first.
    let mut after_digit = radix != 10;
    for byte in digits {
        if *byte == b'_' && after_digit {
            after_digit = false;
            continue;
        }
        let digit = char::from(*byte).to_digit(radix)?;
        value = value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))?;
        after_digit = true;
    }
    (after_digit && !digits.is_empty()).then_some(value)
}

fn int_binary(type_oid: u32, bytes: &[u8]) -> Option<i64> {
    let length = match type_oid {
        oid::INT2 => 2,
        oid::INT4 => 4,
        oid::INT8 => 8,
        _ => bytes.len(),
    };
    if bytes.len() != length {
        return None;
    }
    match *bytes {
        [a, b] => Some(i16::from_be_bytes([a, b]).into()),
        [a, b, c, d] => Some(i32::from_be_bytes([a, b, c, d]).into()),
        _ => bytes.try_into().ok().map(i64::from_be_bytes),
    }
}

/// Beginnings of the words, whatever their case.
fn boolean(text: &[u8]) -> Option<bool> {
    let text = trimmed(text);
    let begins = |word: &[u8], least: usize| {
        text.len() >= least
            && word.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
    };
    if begins(b"true", 1) || begins(b"yes", 1) || begins(b"on", 2) || text == b"1" {
        Some(true)
    } else if begins(b"false", 1) || begins(b"no", 1) || begins(b"off", 2) || text == b"0" {
        Some(false)
    } else {
        None
    }
}

/// In braces or not, with a hyphen behind any four digits or none.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let text = match text {
        [b'{', inner @ .., b'}'] => inner,
        _ => text,
    };
    let mut value = [0; 16];
    let mut rest = text;
    for (at, byte) in value.iter_mut().enumerate() {
        if let [b'-', after @ ..] = rest {
            if at % 2 != 0 || at == 0 {
                return None;
            }
            rest = after;
        }
        let [high, low, after @ ..] = rest else {
            return None;
        };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
        rest = after;
    }
    rest.is_empty().then_some(value)
}
