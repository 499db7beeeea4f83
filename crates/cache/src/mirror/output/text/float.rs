//! `real` and `double precision` with the shortest digits that mean the value.
//!
//! Source: `src/common/d2s.c`, `src/common/f2s.c`: digits that lie just between two values are not
//! taken, though by the rule of even ones they would be read as the value.

use std::io::Write;

use super::put_digits;

/// More digits than any value needs.
const DIGITS_MAX: usize = 20;

/// A value that is not zero and no special one, as a whole number times a power of two.
#[derive(Debug, Clone, Copy)]
struct Binary {
    mantissa: u64,
    exponent: i32,
    /// The next one below is only half as far as the next one above.
    narrow: bool,
}

pub(super) fn put_single(value: f32, out: &mut Vec<u8>) {
    if put_special(value.into(), out) {
        return;
    }
    let bits = value.to_bits() & 0x7fff_ffff;
    let (high, low) = (bits >> 23, bits & 0x7f_ffff);
    let binary = Binary {
        mantissa: if high == 0 { low } else { low | 1 << 23 }.into(),
        exponent: high.max(1) as i32 - 150,
        narrow: low == 0 && high > 1,
    };
    let value = value.abs();
    let reads = |text: &[u8]| parsed::<f32>(text) == Some(value);
    let digits = Digits::shortest(binary, format_args!("{value:e}"), reads, |places| {
        Digits::of(format_args!("{value:.places$e}"))
    });
    digits.put(6, out);
}

pub(super) fn put_double(value: f64, out: &mut Vec<u8>) {
    if put_special(value, out) {
        return;
    }
    let bits = value.to_bits() & !(1 << 63);
    let (high, low) = (bits >> 52, bits & ((1 << 52) - 1));
    let binary = Binary {
        mantissa: if high == 0 { low } else { low | 1 << 52 },
        exponent: high.max(1) as i32 - 1075,
        narrow: low == 0 && high > 1,
    };
    let value = value.abs();
    let reads = |text: &[u8]| parsed::<f64>(text) == Some(value);
    let digits = Digits::shortest(binary, format_args!("{value:e}"), reads, |places| {
        Digits::of(format_args!("{value:.places$e}"))
    });
    digits.put(15, out);
}

fn parsed<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The sign of any value, and all of one that has no digits.
fn put_special(value: f64, out: &mut Vec<u8>) -> bool {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return true;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value.is_infinite() {
        out.extend_from_slice(b"Infinity");
    } else if value == 0.0 {
        out.push(b'0');
    }
    value.is_infinite() || value == 0.0
}

/// Digits with the point behind the first, times ten to the power of `exponent`.
#[derive(Debug, Clone, Copy)]
struct Digits {
    digits: [u8; DIGITS_MAX],
    count: usize,
    exponent: i32,
}

impl Digits {
    /// From Rust's exponential form.
    fn of(shown: std::fmt::Arguments<'_>) -> Digits {
        let mut buffer = [0; 48];
        let mut rest = &mut buffer[..];
        // It has room for the longest.
        let _ = rest.write_fmt(shown);
        let left = rest.len();
        let text = &buffer[..48 - left];
        let mut of = Digits { digits: [0; DIGITS_MAX], count: 0, exponent: 0 };
        let mut parts = text.split(|byte| *byte == b'e');
        let mantissa = parts.next().unwrap_or_default();
        of.exponent = parts.next().and_then(parsed).unwrap_or(0);
        let digits = mantissa.iter().filter(|byte| **byte != b'.');
        for (place, digit) in of.digits.iter_mut().zip(digits) {
            *place = *digit;
            of.count += 1;
        }
        while of.count > 1 && of.digits[of.count - 1] == b'0' {
            of.count -= 1;
        }
        of
    }

    /// `shown` has Rust's digits; `of` rounds to more digits behind the first.
    fn shortest(
        binary: Binary,
        shown: std::fmt::Arguments<'_>,
        reads: impl Fn(&[u8]) -> bool,
        of: impl Fn(usize) -> Digits,
    ) -> Digits {
        let found = Digits::of(shown);
        // Digits that are the middle are read as the value whose mantissa is even.
        let between = binary.mantissa % 2 == 0 && found.is_between(binary);
        if !between && !found.is_tie(binary) {
            return found;
        }
        let mut text = Vec::new();
        for places in found.count - 1..DIGITS_MAX - 1 {
            let longer = of(places);
            text.clear();
            longer.put(0, &mut text);
            if reads(&text) && !longer.is_between(binary) {
                return longer;
            }
            if !between {
                break;
            }
        }
        found
    }

    /// Whether others, as many, are as near to the value: those with an even end are taken.
    fn is_tie(&self, value: Binary) -> bool {
        let Some(digits) = parsed::<u64>(&self.digits[..self.count]) else { return false };
        let (middle, power) = (u128::from(digits) * 10, self.exponent - self.count as i32);
        let value = (value.mantissa.into(), value.exponent);
        same(middle + 5, power, value) || same(middle - 5, power, value)
    }

    /// Whether it is exactly in the middle between the value and one beside it.
    fn is_between(&self, value: Binary) -> bool {
        let Some(digits) = parsed::<u64>(&self.digits[..self.count]) else { return false };
        // In quarters of the value's unit, because below it the middle may be that near.
        let above = (u128::from(value.mantissa) * 4 + 2, value.exponent - 2);
        let below = if value.narrow { 1 } else { 2 };
        let below = (u128::from(value.mantissa) * 4 - below, value.exponent - 2);
        let power = self.exponent + 1 - self.count as i32;
        same(digits.into(), power, above) || same(digits.into(), power, below)
    }

    /// With an exponent below 0.0001 and from ten to the power of `most` on.
    fn put(&self, most: i32, out: &mut Vec<u8>) {
        let (digits, exponent) = (&self.digits[..self.count], self.exponent);
        if exponent < -4 || exponent >= most {
            out.extend_from_slice(&digits[..1]);
            if digits.len() > 1 {
                out.push(b'.');
                out.extend_from_slice(&digits[1..]);
            }
            out.push(b'e');
            out.push(if exponent < 0 { b'-' } else { b'+' });
            return put_digits(exponent.unsigned_abs().into(), 2, out);
        }
        if exponent < 0 {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + (-exponent - 1) as usize, b'0');
            return out.extend_from_slice(digits);
        }
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            out.extend_from_slice(digits);
            out.resize(out.len() + whole - digits.len(), b'0');
        } else {
            out.extend_from_slice(&digits[..whole]);
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }
}

/// Whether `digits` times ten to a power is a whole number times two to another. What overflows has
/// so many factors of five, or of two, on one side alone that it is not.
fn same(digits: u128, power: i32, (whole, exponent): (u128, i32)) -> bool {
    let five = |times: i32| 5u128.checked_pow(times.unsigned_abs());
    let (left, right) = if power >= 0 {
        (five(power).and_then(|five| digits.checked_mul(five)), Some(whole))
    } else {
        (Some(digits), five(power).and_then(|five| whole.checked_mul(five)))
    };
    let (Some(left), Some(right)) = (left, right) else { return false };
    // Now left * 2^power = right * 2^exponent.
    let twos = |number: u128, more: i32| number.trailing_zeros() as i32 + more;
    let odd = |number: u128| number >> number.trailing_zeros().min(127);
    twos(left, power) == twos(right, exponent) && odd(left) == odd(right)
}
