//! Doubles as Redis reads and writes them.

use crate::value::Text;

/// As replies and stored scores show it: an integer's digits, else the shortest text that reads as
/// the same double (`util.c`, `d2string`).
pub fn text(value: f64) -> Text {
    if value.is_nan() {
        return Text::from_slice(b"nan");
    }
    if value.is_infinite() {
        return Text::from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
    }
    if value == 0.0 {
        return Text::from_slice(if value.is_sign_negative() { b"-0" } else { b"0" });
    }
    if value.fract() == 0.0 && value.abs() <= INTEGER_MAX {
        return Text::from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    }
    let (negative, digits, exponent) = digits(&format!("{value:e}"));
    let mut text = Text::new();
    if negative {
        text.push(b'-');
    }
    // Of the last digit.
    let scale = exponent - (digits.len() as i32 - 1);
    if scale >= 0 && exponent < digits.len() as i32 + 7 {
        text.extend_from_slice(&digits);
        text.extend((0..scale).map(|_| b'0'));
    } else if scale < 0 && (scale > -7 || exponent.abs() < 4) {
        put_decimal(&mut text, &digits, exponent);
    } else {
        put_scientific(&mut text, &digits, exponent, 1);
    }
    text
}

/// With 17 digits, as C's `%.17g`: what ZSCAN shows of a large sorted set.
pub fn precise(value: f64) -> Text {
    if value == 0.0 || !value.is_finite() {
        return text(value);
    }
    let (negative, mut digits, exponent) = digits(&format!("{value:.16e}"));
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    let mut text = Text::new();
    if negative {
        text.push(b'-');
    }
    if (-4..17).contains(&exponent) {
        put_decimal(&mut text, &digits, exponent);
    } else {
        put_scientific(&mut text, &digits, exponent, 2);
    }
    text
}

/// As C's `%.17Lf` without the zeros at its end: what GEOPOS shows (`util.c`, `LD_STR_HUMAN`).
pub fn human(value: f64) -> Text {
    let text = format!("{value:.17}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    Text::from_slice(if text == "-0" { b"0" } else { text.as_bytes() })
}

/// Greater integers are written as other doubles are.
const INTEGER_MAX: f64 = (i64::MAX / 2) as f64;

/// Sign, digits and exponent of what `{:e}` writes.
fn digits(text: &str) -> (bool, Text, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    (mantissa.starts_with('-'), digits, exponent.parse().unwrap_or(0))
}

fn put_decimal(text: &mut Text, digits: &[u8], exponent: i32) {
    match usize::try_from(exponent) {
        Ok(exponent) if digits.len() <= exponent + 1 => {
            text.extend_from_slice(digits);
            text.extend((digits.len()..exponent + 1).map(|_| b'0'));
        }
        Ok(exponent) => {
            text.extend_from_slice(&digits[..exponent + 1]);
            text.push(b'.');
            text.extend_from_slice(&digits[exponent + 1..]);
        }
        Err(_) => {
            text.extend_from_slice(b"0.");
            text.extend((exponent + 1..0).map(|_| b'0'));
            text.extend_from_slice(digits);
        }
    }
}

fn put_scientific(text: &mut Text, digits: &[u8], exponent: i32, width: usize) {
    text.push(digits[0]);
    if digits.len() > 1 {
        text.push(b'.');
        text.extend_from_slice(&digits[1..]);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    text.extend_from_slice(format!("e{sign}{:0width$}", exponent.abs()).as_bytes());
}

/// What C's `strtod` reads, if it reads all: decimal or hexadecimal, `inf`, `infinity`, `nan`, with
/// blanks before it; nothing at all is 0.
pub fn parse(word: &[u8]) -> Option<f64> {
    if word.is_empty() {
        return Some(0.0);
    }
    let text = std::str::from_utf8(word).ok()?;
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let value = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => hexadecimal(&digits[2..])?,
        // The sign has been taken; Rust would take another one.
        [b'0'..=b'9' | b'.', ..] => digits.parse().ok()?,
        _ => match digits.to_ascii_lowercase().as_str() {
            "inf" | "infinity" => f64::INFINITY,
            "nan" => f64::NAN,
            _ => return None,
        },
    };
    Some(if negative { -value } else { value })
}

/// `1f.8p3`: digits beyond the 53rd bit are cut off.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent = exponent.saturating_sub(4 * i32::try_from(fraction.len()).ok()?);
    Some(value * 2f64.powi(exponent))
}

/// A double argument (`getDoubleFromObject`): all of the word, no blanks, no NaN, nothing that is
/// too great or too small.
pub fn argument(word: &[u8]) -> Option<f64> {
    let value = in_range(word)?;
    let blank = word.first().is_none_or(|byte| byte.is_ascii_whitespace() || *byte == 0x0b);
    (!blank && !value.is_nan()).then_some(value)
}

/// As [`parse`], without numbers that are too great for a double, or so small that it is zero.
pub fn in_range(word: &[u8]) -> Option<f64> {
    let value = parse(word)?;
    let literal = word.iter().any(u8::is_ascii_digit);
    let out = (literal && value.is_infinite()) || (value == 0.0 && is_underflow(word));
    (!out).then_some(value)
}

/// Infinity for a number that a double cannot hold and x86's `long double`, by which Redis reads
/// timeouts, can.
pub fn beyond(word: &[u8]) -> Option<f64> {
    const LONG_DIGITS_MAX: usize = 4932;
    let value = parse(word).filter(|value| value.is_infinite())?;
    let text = std::str::from_utf8(word).ok()?;
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: usize = exponent.parse().ok()?;
    (exponent.saturating_add(digits.len()) <= LONG_DIGITS_MAX).then_some(value)
}

/// A zero whose digits are not all zero.
fn is_underflow(word: &[u8]) -> bool {
    let end = word.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(word.len());
    word[..end].iter().any(|byte| (b'1'..=b'9').contains(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn doubles_are_written_as_redis_writes_them() {
        for (value, shown) in [
            (1.0, "1"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (2.75, "2.75"),
            (-1.5e-5, "-0.000015"),
            (1e-7, "1e-7"),
            (1.234e-7, "1.234e-7"),
            (1e18, "1000000000000000000"),
            (1e19, "1e+19"),
            (123456789012345680000.0, "123456789012345680000"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(std::str::from_utf8(&text(value)), Ok(shown));
        }
        assert_eq!(&precise(0.1)[..], b"0.10000000000000001");
        assert_eq!(&precise(1e-7)[..], b"9.9999999999999995e-08");
        assert_eq!(&precise(1e18)[..], b"1e+18");
        assert_eq!(&precise(1e15)[..], b"1000000000000000");
        assert_eq!(&human(13.361389338970184)[..], b"13.36138933897018433");
    }

    #[test]
    fn doubles_are_read_as_strtod_reads_them() {
        for (word, value) in [
            ("1", Some(1.0)),
            ("+1.5e3", Some(1500.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("0x1F", Some(31.0)),
            ("-0x.8p1", Some(-1.0)),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("0e5", Some(0.0)),
            ("", None),
            (" 1", None),
            ("1 ", None),
            ("nan", None),
            ("1e400", None),
            ("1e-400", None),
            ("+-1", None),
            ("1e", None),
            ("abc", None),
        ] {
            assert_eq!(argument(word.as_bytes()), value, "{word:?}");
        }
        assert_eq!(parse(b""), Some(0.0));
        assert_eq!(parse(b" 7"), Some(7.0));
        assert_eq!(parse(b"1e400"), Some(f64::INFINITY));
    }

    proptest! {
        #[test]
        fn doubles_are_read_back_as_they_were(bits: u64) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            for text in [text(number), precise(number)] {
                let back = parse(&text).map(f64::to_bits);
                prop_assert_eq!(back, Some(bits), "{:?}", text);
            }
        }
    }
}
