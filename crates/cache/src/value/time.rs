//! Dates and timestamps in the ISO form that PostgreSQL prints: `2024-02-29`,
//! `2024-02-29 12:30:00.5` (or `T` between), with an offset behind where there is a time zone.
//!
//! With four digits or more in front no setting of `DateStyle` reads these forms otherwise. All
//! other ways to write a time are refused, as are years before 1.

/// Source: `DATEVAL_NOBEGIN` and `DATEVAL_NOEND` in `src/include/datatype/timestamp.h`.
const DATE_FIRST: i64 = i32::MIN as i64;
const DATE_LAST: i64 = i32::MAX as i64;
const TIMESTAMP_FIRST: i64 = i64::MIN;
const TIMESTAMP_LAST: i64 = i64::MAX;

const DAY: i64 = 86_400_000_000;

/// Days since 2000-01-01.
pub(super) fn date(text: &[u8]) -> Option<i64> {
    match infinite(text) {
        Some(true) => Some(DATE_LAST),
        Some(false) => Some(DATE_FIRST),
        None => days(text).and_then(|(days, rest)| rest.is_empty().then_some(days)),
    }
}

pub(super) fn date_binary(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(|bytes| i32::from_be_bytes(bytes).into())
}

/// Microseconds since 2000-01-01; a date alone is its midnight.
pub(super) fn timestamp(text: &[u8]) -> Option<i64> {
    if let Some(last) = infinite(text) {
        return Some(if last { TIMESTAMP_LAST } else { TIMESTAMP_FIRST });
    }
    let (days, rest) = days(text)?;
    if rest.is_empty() {
        return midnight(days);
    }
    let (time, rest) = time_of_day(rest)?;
    if !rest.is_empty() {
        return None;
    }
    midnight(days)?.checked_add(time)
}

/// The same in UTC; the offset must be there, because else the session's time zone counts.
pub(super) fn instant(text: &[u8]) -> Option<i64> {
    if let Some(last) = infinite(text) {
        return Some(if last { TIMESTAMP_LAST } else { TIMESTAMP_FIRST });
    }
    let (days, rest) = days(text)?;
    let (time, rest) = time_of_day(rest)?;
    midnight(days)?.checked_add(time)?.checked_sub(offset(rest)?)
}

/// The timestamp at the beginning of a day.
pub(super) fn midnight(days: i64) -> Option<i64> {
    match days {
        DATE_FIRST => Some(TIMESTAMP_FIRST),
        DATE_LAST => Some(TIMESTAMP_LAST),
        _ => days.checked_mul(DAY),
    }
}

/// Whether it is the greatest or the smallest.
fn infinite(text: &[u8]) -> Option<bool> {
    match text {
        b"infinity" => Some(true),
        b"-infinity" => Some(false),
        _ => None,
    }
}

/// A date at the beginning of a text, and what is behind it.
fn days(text: &[u8]) -> Option<(i64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(4..=6).contains(&digits) {
        return None;
    }
    let year = number(&text[..digits])?;
    let [b'-', m1, m2, b'-', d1, d2, rest @ ..] = &text[digits..] else {
        return None;
    };
    let month = number(&[*m1, *m2])?;
    let day = number(&[*d1, *d2])?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    if year == 0 || !(1..=length).contains(&day) {
        return None;
    }
    Some((day_number(year, month, day), rest))
}

/// Days since 2000-01-01. The year before 1 is 0.
pub(crate) fn day_number(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March have the leap day at their end.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // From 0000-03-01 to 2000-01-01.
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 730_425
}

/// ` 12:30`, ` 12:30:00` or ` 12:30:00.123456`, in microseconds.
fn time_of_day(text: &[u8]) -> Option<(i64, &[u8])> {
    let [b' ' | b'T', h1, h2, b':', m1, m2, rest @ ..] = text else {
        return None;
    };
    let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
    let (seconds, rest) = match rest {
        [b':', s1, s2, rest @ ..] => (number(&[*s1, *s2])?, rest),
        // PostgreSQL takes them for minutes and seconds.
        [b'.', ..] => return None,
        _ => (0, rest),
    };
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let (micros, rest) = match rest {
        [b'.', rest @ ..] => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !(1..=6).contains(&digits) {
                return None;
            }
            (number(&rest[..digits])? * 10i64.pow(6 - digits as u32), &rest[digits..])
        }
        _ => (0, rest),
    };
    Some((((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros, rest))
}

/// `Z`, `+02`, `+05:30` or `+00:19:32`: microseconds to the east of Greenwich.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, rest) = match text {
        b"Z" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, minutes, seconds) = match rest {
        [a, b] => (number(&[*a, *b])?, 0, 0),
        [a, b, b':', c, d] => (number(&[*a, *b])?, number(&[*c, *d])?, 0),
        [a, b, b':', c, d, b':', e, f] => {
            (number(&[*a, *b])?, number(&[*c, *d])?, number(&[*e, *f])?)
        }
        _ => return None,
    };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return None;
    }
    Some(sign * ((hours * 60 + minutes) * 60 + seconds) * 1_000_000)
}

/// Of a few digits.
fn number(digits: &[u8]) -> Option<i64> {
    let mut value = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    Some(value)
}
