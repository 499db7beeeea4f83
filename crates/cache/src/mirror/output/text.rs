//! Values as PostgreSQL prints them.
//!
//! Source: the output functions in `src/backend/utils/adt` (`numeric.c`, `date.c`, `timestamp.c`,
//! `datetime.c`).

mod float;

use super::super::class::Class;
use super::super::stored::number::{Numeric, INFINITY, MINUS_INFINITY, NAN, NEGATIVE};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Days from the first of March of the year 0 to 2000-01-01.
const MARCH_0_TO_2000: i64 = 730_425;

pub(super) fn put(class: Class, stored: &[u8], out: &mut Vec<u8>) {
    match class {
        Class::Text | Class::Padded | Class::Opaque | Class::Enum => out.extend_from_slice(stored),
        Class::Int2 => put_int(stored.try_into().map_or(0, i16::from_be_bytes).into(), out),
        Class::Int4 => put_int(int4(stored).into(), out),
        Class::Int8 => put_int(int8(stored), out),
        Class::Bool => out.push(if stored.first() == Some(&0) { b'f' } else { b't' }),
        Class::Uuid => put_uuid(stored, out),
        Class::Bytea => {
            out.extend_from_slice(b"\\x");
            stored.iter().for_each(|byte| put_hex(*byte, out));
        }
        Class::Numeric => put_numeric(&Numeric::new(stored), out),
        Class::Float4 => {
            float::put_single(f32::from_bits(stored.try_into().map_or(0, u32::from_be_bytes)), out);
        }
        Class::Float8 => {
            float::put_double(f64::from_bits(stored.try_into().map_or(0, u64::from_be_bytes)), out);
        }
        Class::Date => match int4(stored) {
            i32::MAX => out.extend_from_slice(b"infinity"),
            i32::MIN => out.extend_from_slice(b"-infinity"),
            days => {
                let before = put_date(days.into(), out);
                put_era(before, out);
            }
        },
        Class::Timestamp => put_timestamp(int8(stored), false, out),
        Class::TimestampTz => put_timestamp(int8(stored), true, out),
        Class::Time => put_time(int8(stored), out),
        Class::TimeTz => {
            put_time(int8(stored.get(..8).unwrap_or_default()), out);
            put_zone(-int4(stored.get(8..).unwrap_or_default()), out);
        }
        Class::Interval => put_interval(stored, out),
    }
}

fn int4(stored: &[u8]) -> i32 {
    stored.try_into().map_or(0, i32::from_be_bytes)
}

fn int8(stored: &[u8]) -> i64 {
    stored.try_into().map_or(0, i64::from_be_bytes)
}

pub(super) fn put_int(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    put_digits(value.unsigned_abs(), 1, out);
}

/// With zeros in front.
fn put_digits(mut value: u64, least: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while value > 0 || digits.len() - at < least {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&digits[at..]);
}

fn put_hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

fn put_uuid(stored: &[u8], out: &mut Vec<u8>) {
    for (at, byte) in stored.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        put_hex(*byte, out);
    }
}

fn put_numeric(number: &Numeric<'_>, out: &mut Vec<u8>) {
    match number.sign {
        NAN => return out.extend_from_slice(b"NaN"),
        INFINITY => return out.extend_from_slice(b"Infinity"),
        MINUS_INFINITY => return out.extend_from_slice(b"-Infinity"),
        NEGATIVE => out.push(b'-'),
        _ => {}
    }
    let mut groups = number.groups();
    let weight = i32::from(number.weight);
    if weight < 0 {
        out.push(b'0');
    }
    for at in 0..=weight {
        let group = groups.next().unwrap_or(0);
        put_digits(group.into(), if at == 0 { 1 } else { 4 }, out);
    }
    let scale = usize::from(number.scale);
    if scale == 0 {
        return;
    }
    out.push(b'.');
    let start = out.len();
    let mut at = -1;
    while out.len() - start < scale {
        let group = if at > weight { 0 } else { groups.next().unwrap_or(0) };
        put_digits(group.into(), 4, out);
        at -= 1;
    }
    out.truncate(start + scale);
}

/// Year, month and day, and whether that is before the first year. Days count from 2000-01-01.
fn put_date(days: i64, out: &mut Vec<u8>) -> bool {
    let (year, month, day) = civil(days + MARCH_0_TO_2000);
    let before = year <= 0;
    put_digits(if before { 1 - year } else { year } as u64, 4, out);
    out.push(b'-');
    put_digits(month, 2, out);
    out.push(b'-');
    put_digits(day, 2, out);
    before
}

/// `days` since the first of March of the year 0, in eras of 400 years.
fn civil(days: i64) -> (i64, u64, u64) {
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month as u64, day as u64)
}

fn put_era(before: bool, out: &mut Vec<u8>) {
    if before {
        out.extend_from_slice(b" BC");
    }
}

fn put_timestamp(micros: i64, zone: bool, out: &mut Vec<u8>) {
    match micros {
        i64::MAX => return out.extend_from_slice(b"infinity"),
        i64::MIN => return out.extend_from_slice(b"-infinity"),
        _ => {}
    }
    let before = put_date(micros.div_euclid(DAY), out);
    out.push(b' ');
    put_time(micros.rem_euclid(DAY), out);
    if zone {
        out.extend_from_slice(b"+00");
    }
    put_era(before, out);
}

fn put_time(micros: i64, out: &mut Vec<u8>) {
    let seconds = (micros / SECOND) as u64;
    put_digits(seconds / 3600, 2, out);
    out.push(b':');
    put_digits(seconds / 60 % 60, 2, out);
    out.push(b':');
    put_digits(seconds % 60, 2, out);
    put_fraction((micros % SECOND) as u64, out);
}

/// Without zeros at the end.
fn put_fraction(micros: u64, out: &mut Vec<u8>) {
    if micros == 0 {
        return;
    }
    out.push(b'.');
    put_digits(micros, 6, out);
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

/// Seconds east of Greenwich.
fn put_zone(east: i32, out: &mut Vec<u8>) {
    out.push(if east < 0 { b'-' } else { b'+' });
    let seconds = u64::from(east.unsigned_abs());
    put_digits(seconds / 3600, 2, out);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    if minutes != 0 || seconds != 0 {
        out.push(b':');
        put_digits(minutes, 2, out);
    }
    if seconds != 0 {
        out.push(b':');
        put_digits(seconds, 2, out);
    }
}

fn put_interval(stored: &[u8], out: &mut Vec<u8>) {
    let part = |from: usize, to: usize| stored.get(from..to).unwrap_or_default();
    let (micros, days, months) = (int8(part(0, 8)), int4(part(8, 12)), int4(part(12, 16)));
    let start = out.len();
    // Behind something negative a positive part has its sign.
    let mut negative = false;
    let units = [(months / 12, "year"), (months % 12, "mon"), (days, "day")];
    for (count, unit) in units.into_iter().filter(|(count, _)| *count != 0) {
        if out.len() > start {
            out.push(b' ');
        }
        if negative && count > 0 {
            out.push(b'+');
        }
        put_int(count.into(), out);
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if count != 1 {
            out.push(b's');
        }
        negative = count < 0;
    }
    if out.len() > start && micros == 0 {
        return;
    }
    if out.len() > start {
        out.push(b' ');
    }
    match (micros < 0, negative) {
        (true, _) => out.push(b'-'),
        (false, true) => out.push(b'+'),
        (false, false) => {}
    }
    let micros = micros.unsigned_abs();
    let seconds = micros / SECOND as u64;
    put_digits(seconds / 3600, 2, out);
    out.push(b':');
    put_digits(seconds / 60 % 60, 2, out);
    out.push(b':');
    put_digits(seconds % 60, 2, out);
    put_fraction(micros % SECOND as u64, out);
}
