//! Values as they are stored: as PostgreSQL sends them in binary format, an enum as the place of its
//! label.
//!
//! Source: the output and send functions in `src/backend/utils/adt` (`numeric.c`, `timestamp.c`,
//! `date.c`, `datetime.c`, `varlena.c`).

pub(super) mod number;
pub(super) mod times;

use super::class::Class;
use super::definition::Column;
use crate::value::{canonical, Canonical, Kind};

/// Appends the stored form of a value as PostgreSQL prints it with
/// [`SETTINGS`](backend::replication::SETTINGS). False: it is not understood, and `out` is as it
/// was.
pub fn store(column: &Column, text: &[u8], out: &mut Vec<u8>) -> bool {
    store_class(column.class, &column.labels, text, out)
}

pub(super) fn store_class(class: Class, labels: &[String], text: &[u8], out: &mut Vec<u8>) -> bool {
    match class {
        Class::Text | Class::Padded | Class::Opaque => put(out, Some(text)),
        Class::Int2 => put(out, parsed::<i16>(text).map(i16::to_be_bytes)),
        Class::Int4 => put(out, parsed::<i32>(text).map(i32::to_be_bytes)),
        Class::Int8 => put(out, parsed::<i64>(text).map(i64::to_be_bytes)),
        Class::Bool => put(
            out,
            match text {
                b"t" => Some([1]),
                b"f" => Some([0]),
                _ => None,
            },
        ),
        Class::Uuid => {
            let mut bytes = Canonical::new();
            let known = canonical(Kind::Uuid, text, &mut bytes);
            put(out, known.then_some(bytes))
        }
        Class::Bytea => number::put_hex(text, out),
        Class::Numeric => number::put_numeric(text, out),
        Class::Float4 => put(out, float::<f32>(text).map(f32::to_be_bytes)),
        Class::Float8 => put(out, float::<f64>(text).map(f64::to_be_bytes)),
        Class::Date => put(out, times::date(text).map(i32::to_be_bytes)),
        Class::Timestamp => put(out, times::timestamp(text, false).map(i64::to_be_bytes)),
        Class::TimestampTz => put(out, times::timestamp(text, true).map(i64::to_be_bytes)),
        Class::Time => put(out, times::time(text).map(i64::to_be_bytes)),
        Class::TimeTz => put(out, times::time_with_zone(text)),
        Class::Interval => put(out, times::interval(text)),
        Class::Enum => {
            let at = labels.iter().position(|label| label.as_bytes() == text);
            put(out, at.and_then(|at| u16::try_from(at).ok()).map(u16::to_be_bytes))
        }
    }
}

fn put(out: &mut Vec<u8>, value: Option<impl AsRef<[u8]>>) -> bool {
    let Some(value) = value else { return false };
    out.extend_from_slice(value.as_ref());
    true
}

/// As it is printed: no blanks, no plus.
fn parsed<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    if text.first() == Some(&b'+') {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A `real` or `double precision`, as it is printed or as it may be written without blanks.
pub(super) fn float<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    let first = text.strip_prefix(b"-").unwrap_or(text).first()?;
    let plain = first.is_ascii_digit() || *first == b'.';
    if plain || matches!(text, b"NaN" | b"Infinity" | b"-Infinity") {
        return std::str::from_utf8(text).ok()?.parse().ok();
    }
    None
}
