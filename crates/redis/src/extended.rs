//! Floats of 80 bits, which INCRBYFLOAT and HINCRBYFLOAT count with (`long double` on x86): 64 bits
//! of mantissa, so that 0.1 and 0.2 make 0.3.

use std::fmt;

/// `mantissa` times two to the `exponent`; the mantissa's highest bit is set, but for zero.
/// Numbers are finite. The exponent has no lower end: what is that small prints as zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extended {
    negative: bool,
    mantissa: u64,
    exponent: i32,
    infinite: bool,
}

/// Beyond this exponent a number is infinite: 2^16384 is.
const EXPONENT_MAX: i32 = 16383 - 63;

/// Half of the smallest number has its highest bit here.
const EXPONENT_MIN: i32 = -16446;

/// Longer words are no numbers (`util.h`, `MAX_LONG_DOUBLE_CHARS`), in bytes.
const WORD_MAX: usize = 5 * 1024;

/// Decimal exponents beyond these are infinite, or too small for any digit to count.
const DECIMAL_MAX: i64 = 5_000;
const DECIMAL_MIN: i64 = -5_000;

/// Digits behind the point.
const FRACTION_DIGITS: u32 = 17;

impl Extended {
    pub const ZERO: Extended =
        Extended { negative: false, mantissa: 0, exponent: 0, infinite: false };

    /// What `strtold` reads whole: decimal or hexadecimal, or an infinity; not what is too large or
    /// too small for a number (`util.c`, `string2ld`).
    pub fn parse(word: &[u8]) -> Option<Extended> {
        if word.is_empty() || word.len() >= WORD_MAX {
            return None;
        }
        let (negative, rest) = match word[0] {
            b'-' => (true, &word[1..]),
            b'+' => (false, &word[1..]),
            _ => (false, word),
        };
        if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
            return Some(Extended { negative, infinite: true, ..Extended::ZERO });
        }
        let number = match rest {
            [b'0', b'x' | b'X', digits @ ..] => hexadecimal(digits)?,
            _ => decimal(rest)?,
        };
        // What is too small for even the smallest number is an error, other than zero.
        let lost = number.mantissa != 0 && number.exponent + 63 < EXPONENT_MIN;
        (!lost).then_some(Extended { negative, ..number })
    }

    /// None when the sum is infinite.
    pub fn plus(self, other: Extended) -> Option<Extended> {
        if self.infinite || other.infinite {
            return None;
        }
        if self.mantissa == 0 || other.mantissa == 0 {
            return Some(if self.mantissa == 0 { other } else { self });
        }
        let (large, small) =
            if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        // 63 bits below the mantissa; what is shifted out leaves its trace in the last of them.
        let shift = large.exponent.abs_diff(small.exponent).min(127);
        let (a, whole) = (u128::from(large.mantissa) << 63, u128::from(small.mantissa) << 63);
        let b = (whole >> shift) | u128::from(whole & ((1 << shift) - 1) != 0);
        let (negative, sum) = match (large.negative == small.negative, a >= b) {
            (true, _) => (large.negative, a + b),
            (false, true) => (large.negative, a - b),
            (false, false) => (small.negative, b - a),
        };
        if sum == 0 {
            return Some(Extended::ZERO);
        }
        Extended::round(sum, large.exponent - 63, false).map(|sum| Extended { negative, ..sum })
    }

    /// The nearest number, the even one of two; none when that is infinite. `more`: there are
    /// further bits below.
    fn round(value: u128, exponent: i32, more: bool) -> Option<Extended> {
        let zeros = value.leading_zeros();
        let value = value << zeros;
        let mut mantissa = (value >> 64) as u64;
        let mut exponent = exponent + 64 - zeros as i32;
        let (rest, half) = (value as u64, 1u64 << 63);
        if rest > half || (rest == half && (more || mantissa & 1 == 1)) {
            mantissa = match mantissa.checked_add(1) {
                Some(mantissa) => mantissa,
                None => {
                    exponent += 1;
                    half
                }
            };
        }
        let number = Extended { negative: false, mantissa, exponent, infinite: false };
        (exponent <= EXPONENT_MAX).then_some(number)
    }
}

/// Digits with at most one point, and where the exponent's letter is: the digits, how many of them
/// are behind the point, the exponent.
fn parts<const RADIX: u32>(word: &[u8], letter: u8) -> Option<(Vec<u8>, i64, i64)> {
    let end = word.iter().position(|byte| byte.eq_ignore_ascii_case(&letter));
    let (number, exponent) = match end {
        Some(end) => (&word[..end], exponent(&word[end + 1..])?),
        None => (word, 0),
    };
    let (mut digits, mut behind, mut point) = (Vec::new(), 0, false);
    for byte in number {
        match (*byte as char).to_digit(RADIX) {
            Some(digit) => {
                digits.push(digit as u8);
                behind += i64::from(point);
            }
            None if *byte == b'.' && !point => point = true,
            None => return None,
        }
    }
    (!digits.is_empty()).then_some((digits, behind, exponent))
}

/// An exponent with its sign; one without end is as good as a million.
fn exponent(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word.split_first()? {
        (b'-', digits) => (true, digits),
        (b'+', digits) => (false, digits),
        _ => (false, word),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits
        .iter()
        .fold(0i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(1_000_000));
    Some(if negative { -value } else { value })
}

fn decimal(word: &[u8]) -> Option<Extended> {
    let (digits, behind, exponent) = parts::<10>(word, b'e')?;
    let first = digits.iter().position(|digit| *digit != 0);
    let Some(first) = first else { return Some(Extended::ZERO) };
    let digits = &digits[first..];
    let scale = exponent - behind;
    let magnitude = scale + digits.len() as i64;
    if !(DECIMAL_MIN..=DECIMAL_MAX).contains(&magnitude) {
        return None;
    }
    let mut above = Big::default();
    digits.iter().for_each(|digit| above.times_plus(10, u64::from(*digit)));
    let mut below = Big(vec![1]);
    let scaled = if scale >= 0 { &mut above } else { &mut below };
    (0..scale.unsigned_abs()).for_each(|_| scaled.times_plus(10, 0));
    above.over(below)
}

fn hexadecimal(word: &[u8]) -> Option<Extended> {
    let (digits, behind, exponent) = parts::<16>(word, b'p')?;
    let (mut value, mut dropped, mut more) = (0u128, 0i64, false);
    for digit in digits {
        if value >> 120 == 0 {
            value = value << 4 | u128::from(digit);
        } else {
            dropped += 4;
            more |= digit != 0;
        }
    }
    if value == 0 {
        return Some(Extended::ZERO);
    }
    let exponent = exponent - behind * 4 + dropped;
    Extended::round(value, i32::try_from(exponent).ok()?, more)
}

/// A natural number without end, its lowest limb first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Big(Vec<u64>);

impl Big {
    fn times_plus(&mut self, factor: u64, more: u64) {
        let mut carry = u128::from(more);
        for limb in &mut self.0 {
            carry += u128::from(*limb) * u128::from(factor);
            *limb = carry as u64;
            carry >>= 64;
        }
        if carry != 0 {
            self.0.push(carry as u64);
        }
    }

    fn bits(&self) -> usize {
        self.0.last().map_or(0, |limb| self.0.len() * 64 - limb.leading_zeros() as usize)
    }

    fn shift(&mut self, bits: usize) {
        let mut carry = 0;
        let rest = bits % 64;
        if rest != 0 {
            for limb in &mut self.0 {
                (carry, *limb) = (*limb >> (64 - rest), *limb << rest | carry);
            }
        }
        if carry != 0 {
            self.0.push(carry);
        }
        self.0.splice(0..0, std::iter::repeat_n(0, bits / 64));
    }

    fn is_at_least(&self, other: &Big) -> bool {
        let (ours, theirs) = (self.bits(), other.bits());
        ours > theirs || (ours == theirs && self.0.iter().rev().ge(other.0.iter().rev()))
    }

    /// `other` is at most as large.
    fn subtract(&mut self, other: &Big) {
        let mut borrow = false;
        for (at, limb) in self.0.iter_mut().enumerate() {
            let (left, first) = limb.overflowing_sub(other.0.get(at).copied().unwrap_or(0));
            let (left, second) = left.overflowing_sub(u64::from(borrow));
            (*limb, borrow) = (left, first || second);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// The nearest number to a quotient of two that are not zero; none when that is infinite.
    fn over(mut self, mut other: Big) -> Option<Extended> {
        // Both get the same length, then each step gives a bit: 66 are enough to round.
        let (ours, theirs) = (self.bits(), other.bits());
        let exponent = ours as i32 - theirs as i32;
        if ours < theirs {
            self.shift(theirs - ours);
        } else {
            other.shift(ours - theirs);
        }
        let mut quotient = 0u128;
        for _ in 0..67 {
            quotient <<= 1;
            if self.is_at_least(&other) {
                self.subtract(&other);
                quotient |= 1;
            }
            self.shift(1);
        }
        Extended::round(quotient, exponent - 66, !self.0.is_empty())
    }
}

/// As `%.17Lf` without zeros at its end (`util.c`, `ld2string`).
impl fmt::Display for Extended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.exponent >= 0 && self.mantissa != 0 {
            let mut whole = Big(vec![self.mantissa]);
            whole.shift(self.exponent as usize);
            return write!(f, "{}{}", if self.negative { "-" } else { "" }, to_digits(whole));
        }
        let scaled = u128::from(self.mantissa) * 10u128.pow(FRACTION_DIGITS);
        // The nearest number of such digits, the even one of two.
        let rounded = match self.exponent.unsigned_abs() {
            0 => 0,
            shift if shift >= 128 => 0,
            shift => {
                let (value, rest) = (scaled >> shift, scaled & ((1 << shift) - 1));
                let half = 1u128 << (shift - 1);
                value + u128::from(rest > half || (rest == half && value & 1 == 1))
            }
        };
        let mut digits = rounded.to_string();
        let places = FRACTION_DIGITS as usize;
        if digits.len() <= places {
            digits.insert_str(0, &"0".repeat(places + 1 - digits.len()));
        }
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let fraction = fraction.trim_end_matches('0');
        let sign = if self.negative && (whole != "0" || !fraction.is_empty()) { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

/// Decimal digits.
fn to_digits(mut number: Big) -> String {
    const CHUNK: u64 = 10_000_000_000_000_000_000;
    let mut chunks = Vec::new();
    while !number.0.is_empty() {
        let mut rest = 0u128;
        for limb in number.0.iter_mut().rev() {
            let value = rest << 64 | u128::from(*limb);
            *limb = (value / u128::from(CHUNK)) as u64;
            rest = value % u128::from(CHUNK);
        }
        chunks.push(rest as u64);
        while number.0.last() == Some(&0) {
            number.0.pop();
        }
    }
    let Some(first) = chunks.pop() else { return "0".into() };
    let mut text = first.to_string();
    chunks.iter().rev().for_each(|chunk| text.push_str(&format!("{chunk:019}")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn sum(a: &str, b: &str, expected: &str) {
        let parse = |text: &str| Extended::parse(text.as_bytes()).expect(text);
        let sum = parse(a).plus(parse(b)).map(|sum| sum.to_string());
        assert_eq!(sum.as_deref().unwrap_or("infinite"), expected, "{a} + {b}");
    }

    /// Checked against a redis-server.
    #[test]
    fn sums_are_those_of_a_long_double() {
        sum("0.1", "0.2", "0.3");
        sum("3", "1.1", "4.1");
        sum("5.0e3", "200", "5200");
        sum("1e5", "-1e5", "0");
        sum("-0.5", "0.25", "-0.25");
        sum("-0", "-0", "0");
        sum("0x1p-1", "0x10", "16.5");
        sum("18446744073709551615", "1", "18446744073709551616");
        sum("1e4932", "1e4932", "infinite");
        sum("inf", "1", "infinite");
        sum("1e-30", "0", "0");
        sum("-1e-18", "0", "0");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for word in ["", " 1", "1 ", "nan", "1e", "e1", ".", "0x", "1e5000", "1e-5000", "1.2.3"] {
            assert_eq!(Extended::parse(word.as_bytes()), None, "{word}");
        }
        assert!(Extended::parse(b".5").is_some());
        assert!(Extended::parse(b"5.").is_some());
        assert!(Extended::parse(b"+5").is_some());
    }
}
