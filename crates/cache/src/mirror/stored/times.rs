//! Dates, times and intervals as they are printed.

use crate::value::day_number;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Days since 2000-01-01: `2024-02-29`, `0044-03-15 BC`.
pub(super) fn date(text: &[u8]) -> Option<i32> {
    match text {
        b"infinity" => return Some(i32::MAX),
        b"-infinity" => return Some(i32::MIN),
        _ => {}
    }
    let (text, before) = era(text);
    let (days, rest) = days(text, before)?;
    i32::try_from(days).ok().filter(|_| rest.is_empty())
}

/// Microseconds since 2000-01-01: `2024-02-29 12:30:00.5`, with `+00` behind where there is a zone.
pub(super) fn timestamp(text: &[u8], zone: bool) -> Option<i64> {
    match text {
        b"infinity" => return Some(i64::MAX),
        b"-infinity" => return Some(i64::MIN),
        _ => {}
    }
    let (text, before) = era(text);
    let (days, rest) = days(text, before)?;
    let (micros, rest) = clock(rest.strip_prefix(b" ")?)?;
    if micros >= DAY || rest != if zone { &b"+00"[..] } else { b"" } {
        return None;
    }
    days.checked_mul(DAY)?.checked_add(micros)
}

/// Without its era, and whether that is before the first year.
fn era(text: &[u8]) -> (&[u8], bool) {
    match text.strip_suffix(b" BC") {
        Some(text) => (text, true),
        None => (text, false),
    }
}

fn days(text: &[u8], before: bool) -> Option<(i64, &[u8])> {
    let end = text.iter().position(|byte| *byte == b'-')?;
    let (year, rest) = text.split_at(end);
    let [b'-', m1, m2, b'-', d1, d2, rest @ ..] = rest else { return None };
    if !(4..=7).contains(&year.len()) {
        return None;
    }
    let (year, month, day) = (digits(year)?, digits(&[*m1, *m2])?, digits(&[*d1, *d2])?);
    if year == 0 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some((day_number(if before { 1 - year } else { year }, month, day), rest))
}

/// Up to `24:00:00`, in microseconds.
pub(super) fn time(text: &[u8]) -> Option<i64> {
    let (micros, rest) = clock(text)?;
    (rest.is_empty() && micros <= DAY).then_some(micros)
}

/// The time, then the seconds west of Greenwich: `04:05:06+01:30`.
pub(super) fn time_with_zone(text: &[u8]) -> Option<[u8; 12]> {
    let (micros, rest) = clock(text)?;
    let (sign, zone) = match rest {
        [b'+', zone @ ..] => (-1, zone),
        [b'-', zone @ ..] => (1, zone),
        _ => return None,
    };
    let (mut seconds, mut unit) = (0, 3600);
    for part in zone.split(|byte| *byte == b':') {
        let count = i32::try_from(digits(part)?).ok()?;
        let most = if unit == 3600 { 15 } else { 59 };
        if part.len() != 2 || count > most || unit == 0 {
            return None;
        }
        seconds += count * unit;
        unit /= 60;
    }
    if micros > DAY {
        return None;
    }
    let mut out = [0; 12];
    out[..8].copy_from_slice(&micros.to_be_bytes());
    out[8..].copy_from_slice(&(sign * seconds).to_be_bytes());
    Some(out)
}

/// Microseconds, days and months: `1 year 2 mons -3 days +04:05:06.7`.
pub(super) fn interval(text: &[u8]) -> Option<[u8; 16]> {
    let (mut months, mut days, mut micros) = (0i32, 0i32, 0i64);
    let mut words = text.split(|byte| *byte == b' ').peekable();
    while let Some(word) = words.next() {
        if word.contains(&b':') {
            let (sign, rest) = match word {
                [b'-', rest @ ..] => (-1, rest),
                [b'+', rest @ ..] => (1, rest),
                rest => (1, rest),
            };
            let (time, rest) = clock(rest)?;
            if !rest.is_empty() || words.peek().is_some() {
                return None;
            }
            micros = sign * time;
            continue;
        }
        let word = word.strip_prefix(b"+").unwrap_or(word);
        let count: i32 = std::str::from_utf8(word).ok()?.parse().ok()?;
        match words.next()? {
            b"year" | b"years" => months = months.checked_add(count.checked_mul(12)?)?,
            b"mon" | b"mons" => months = months.checked_add(count)?,
            b"day" | b"days" => days = days.checked_add(count)?,
            _ => return None,
        }
    }
    let mut out = [0; 16];
    out[..8].copy_from_slice(&micros.to_be_bytes());
    out[8..12].copy_from_slice(&days.to_be_bytes());
    out[12..].copy_from_slice(&months.to_be_bytes());
    Some(out)
}

/// `04:05:06.7` and what is behind it. Hours may have any number of digits.
fn clock(text: &[u8]) -> Option<(i64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit() && !b":.".contains(byte));
    let (clock, rest) = text.split_at(end.unwrap_or(text.len()));
    let mut parts = clock.splitn(3, |byte| *byte == b':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (seconds, fraction) = match seconds.iter().position(|byte| *byte == b'.') {
        Some(at) => (&seconds[..at], &seconds[at + 1..]),
        None => (seconds, &[][..]),
    };
    let (minutes, seconds) = (digits(minutes)?, digits(seconds)?);
    if fraction.len() > 6 || minutes > 59 || seconds > 59 {
        return None;
    }
    let micros = match fraction {
        [] => 0,
        fraction => digits(fraction)? * 10i64.pow(6 - fraction.len() as u32),
    };
    let minutes = digits(hours)?.checked_mul(60)?.checked_add(minutes)?;
    let micros = minutes.checked_mul(60)?.checked_add(seconds)?.checked_mul(SECOND)? + micros;
    Some((micros, rest))
}

fn digits(text: &[u8]) -> Option<i64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}
