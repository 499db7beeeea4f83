//! `numeric`: sign, the place of the first digit, and the digits without zeros at either end.
//!
//! A value is one byte of [`form`]; a number that is not zero goes on with the exponent of ten of
//! its first digit (four bytes) and its digits in ASCII. So `1.0`, `1.00` and `1e0` are the same,
//! as are `0`, `-0` and `0.000`.

use super::{signed, trimmed, Canonical};

/// Longer texts are refused: they would cost more than they are worth. Bytes.
const TEXT_MAX: usize = 1024;

/// Greater exponents of ten are refused; PostgreSQL's own limits are at 131072 and -16383.
const EXPONENT_MAX: i32 = 10_000;

mod form {
    pub const ZERO: u8 = b'0';
    pub const POSITIVE: u8 = b'+';
    pub const NEGATIVE: u8 = b'-';
    pub const NAN: u8 = b'N';
    pub const INFINITY: u8 = b'I';
    pub const MINUS_INFINITY: u8 = b'i';
}

pub(super) fn canonical(text: &[u8], out: &mut Canonical) -> bool {
    let text = trimmed(text);
    if text.len() > TEXT_MAX {
        return false;
    }
    let (negative, rest) = signed(text);
    if text.eq_ignore_ascii_case(b"nan") {
        out.push(form::NAN);
        return true;
    }
    if rest.eq_ignore_ascii_case(b"infinity") || rest.eq_ignore_ascii_case(b"inf") {
        out.push(if negative { form::MINUS_INFINITY } else { form::INFINITY });
        return true;
    }
    let start = out.len();
    let known = decimal(negative, rest, out).is_some();
    if !known {
        out.truncate(start);
    }
    known
}

/// Digits with a point and an exponent, single underscores between digits; or an integer in
/// another radix.
fn decimal(negative: bool, text: &[u8], out: &mut Canonical) -> Option<()> {
    if let [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', ..] = text {
        let magnitude = i128::from(super::magnitude(text)?);
        put_integer(if negative { -magnitude } else { magnitude }, out);
        return Some(());
    }
    let end = text.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at(end);
    let exponent = match exponent {
        [] => 0,
        [_, digits @ ..] => {
            let (negative, digits) = signed(digits);
            let magnitude = i32::try_from(plain(digits)?).ok()?;
            if negative {
                -magnitude
            } else {
                magnitude
            }
        }
    };
    let mut number = Number::begin(negative, out);
    let mut digits = 0;
    let mut fraction = None;
    let mut before = b'.';
    for byte in mantissa {
        match byte {
            b'0'..=b'9' => {
                number.digit(*byte);
                digits += 1;
                if let Some(fraction) = &mut fraction {
                    *fraction += 1;
                }
            }
            b'.' if fraction.is_none() && before != b'_' => fraction = Some(0),
            b'_' if before.is_ascii_digit() => {}
            _ => return None,
        }
        before = *byte;
    }
    if digits == 0 || before == b'_' || exponent.abs() > EXPONENT_MAX {
        return None;
    }
    number.end(exponent - fraction.unwrap_or(0));
    Some(())
}

/// Digits with single underscores between them.
fn plain(digits: &[u8]) -> Option<u64> {
    if digits.first() == Some(&b'0') && digits.iter().any(|byte| !byte.is_ascii_digit()) {
        return None;
    }
    super::magnitude(digits)
}

pub(super) fn canonical_int(value: i64, out: &mut Canonical) -> bool {
    put_integer(value.into(), out);
    true
}

fn put_integer(value: i128, out: &mut Canonical) {
    let mut number = Number::begin(value < 0, out);
    let mut magnitude = value.unsigned_abs();
    let mut digits = [0; 40];
    let mut at = digits.len();
    while magnitude > 0 {
        at -= 1;
        digits[at] = b'0' + (magnitude % 10) as u8;
        magnitude /= 10;
    }
    digits[at..].iter().for_each(|digit| number.digit(*digit));
    number.end(0);
}

/// The format of `numeric_send`: counts and flags as words, then digits to the base 10000.
pub(super) fn canonical_binary(bytes: &[u8], out: &mut Canonical) -> bool {
    let Some((head, digits)) = bytes.split_first_chunk::<8>() else {
        return false;
    };
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let (count, weight, sign, scale) = (word(0), word(2) as i16, word(4), word(6));
    let negative = match sign {
        0x0000 => false,
        0x4000 => true,
        0xc000 | 0xd000 | 0xf000 => {
            out.push(match sign {
                0xc000 => form::NAN,
                0xd000 => form::INFINITY,
                _ => form::MINUS_INFINITY,
            });
            return true;
        }
        _ => return false,
    };
    let start = out.len();
    if digits.len() != usize::from(count) * 2 || digits.len() > TEXT_MAX {
        return false;
    }
    let mut number = Number::begin(negative, out);
    for pair in digits.chunks_exact(2) {
        let digit = u16::from_be_bytes([pair[0], pair[1]]);
        if digit > 9999 {
            out.truncate(start);
            return false;
        }
        for power in [1000, 100, 10, 1] {
            number.digit(b'0' + (digit / power % 10) as u8);
        }
    }
    // Behind the last digit: 4 places for each digit past the one at the point.
    let exponent = (i32::from(weight) + 1 - i32::from(count)) * 4;
    // PostgreSQL drops digits that the scale does not show.
    if number.lowest(exponent) < -i32::from(scale) {
        out.truncate(start);
        return false;
    }
    number.end(exponent);
    true
}

/// Where the exponent is, behind the byte of the form.
const EXPONENT_BYTES: usize = 4;

/// A number that is being written digit by digit, from the greatest.
struct Number<'a> {
    out: &'a mut Canonical,
    start: usize,
    /// Zeros that count only if another digit follows.
    zeros: usize,
}

impl<'a> Number<'a> {
    fn begin(negative: bool, out: &'a mut Canonical) -> Number<'a> {
        let start = out.len();
        out.push(if negative { form::NEGATIVE } else { form::POSITIVE });
        out.extend_from_slice(&[0; EXPONENT_BYTES]);
        Number { out, start, zeros: 0 }
    }

    fn digits_at(&self) -> usize {
        self.start + 1 + EXPONENT_BYTES
    }

    fn digit(&mut self, digit: u8) {
        if digit == b'0' {
            self.zeros += usize::from(self.out.len() > self.digits_at());
            return;
        }
        self.out.extend(std::iter::repeat_n(b'0', self.zeros));
        self.zeros = 0;
        self.out.push(digit);
    }

    /// The place of the last digit that is not zero, if the last one written is at `exponent`.
    fn lowest(&self, exponent: i32) -> i32 {
        if self.out.len() == self.digits_at() {
            0
        } else {
            exponent + self.zeros as i32
        }
    }

    /// The last digit written stands at this power of ten.
    fn end(self, exponent: i32) {
        let digits = self.out.len() - self.digits_at();
        if digits == 0 {
            self.out.truncate(self.start);
            self.out.push(form::ZERO);
            return;
        }
        let first = exponent + (self.zeros + digits) as i32 - 1;
        let at = self.start + 1;
        self.out[at..at + EXPONENT_BYTES].copy_from_slice(&first.to_be_bytes());
    }
}
