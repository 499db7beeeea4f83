//! Stored values as clients get them.

mod text;

use super::class::Class;
use super::definition::Column;

/// What of a session's settings matters to the text of values. What is not known for certain counts
/// as something that is not understood here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Session {
    /// `DateStyle` is ISO.
    iso: bool,
    /// `TimeZone` is UTC.
    utc: bool,
    /// `IntervalStyle` is postgres.
    intervals: bool,
    /// `bytea_output` is hex.
    hex: bool,
    /// `extra_float_digits` is above 0.
    shortest: bool,
    /// `client_encoding` is UTF8.
    utf8: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Binary,
}

impl Session {
    /// From the session's settings by their names in lower case; none where it is not known.
    pub fn of(get: &dyn Fn(&str) -> Option<String>) -> Session {
        let is = |name: &str, values: &[&str]| {
            let value = get(name);
            value.is_some_and(|value| values.iter().any(|known| value.eq_ignore_ascii_case(known)))
        };
        let iso =
            get("datestyle").is_some_and(|style| style.to_ascii_lowercase().starts_with("iso"));
        let digits = get("extra_float_digits").and_then(|digits| digits.trim().parse::<i32>().ok());
        Session {
            iso,
            utc: is("timezone", &["UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Universal"]),
            intervals: is("intervalstyle", &["postgres"]),
            hex: is("bytea_output", &["hex"]),
            shortest: digits.is_some_and(|digits| digits > 0),
            utf8: is("client_encoding", &["UTF8", "UTF-8", "UNICODE"]),
        }
    }
}

/// Whether [`put_field`] says what PostgreSQL would. (Of NaN in binary format the sign may be
/// another one: what the stream prints does not tell it.) Whether the text of an opaque value
/// depends on a setting is not known here.
pub fn can_put(column: &Column, format: Format, session: &Session) -> bool {
    let text = matches!(column.class, Class::Text | Class::Padded | Class::Enum | Class::Opaque);
    if text && !session.utf8 {
        return false;
    }
    if format == Format::Binary {
        return column.class != Class::Opaque;
    }
    match column.class {
        Class::Date | Class::Timestamp => session.iso,
        Class::TimestampTz => session.iso && session.utc,
        Class::Interval => session.intervals,
        Class::Bytea => session.hex,
        Class::Float4 | Class::Float8 => session.shortest,
        _ => true,
    }
}

/// A field of a DataRow: its length and its bytes.
pub fn put_field(column: &Column, format: Format, stored: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(stored) = stored else {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return;
    };
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match (format, column.class) {
        (_, Class::Enum) => {
            let place = stored.try_into().map_or(0, u16::from_be_bytes);
            let label = column.labels.get(usize::from(place));
            out.extend_from_slice(label.map_or(&[][..], |label| label.as_bytes()));
        }
        (Format::Binary, _) => out.extend_from_slice(stored),
        (Format::Text, class) => text::put(class, stored, out),
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}
