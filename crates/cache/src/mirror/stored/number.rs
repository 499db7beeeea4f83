//! Numbers of any length, and strings of bytes.

/// Source: `NUMERIC_NEG` and others in `src/backend/utils/adt/numeric.c`.
pub(in crate::mirror) const NEGATIVE: u16 = 0x4000;
pub(in crate::mirror) const NAN: u16 = 0xC000;
pub(in crate::mirror) const INFINITY: u16 = 0xD000;
pub(in crate::mirror) const MINUS_INFINITY: u16 = 0xF000;

/// Decimal digits in one of the binary form.
const GROUP: usize = 4;

/// A numeric as it is printed: `-12.340`, `NaN`, `Infinity`, `-Infinity`.
pub(in crate::mirror) fn put_numeric(text: &[u8], out: &mut Vec<u8>) -> bool {
    let special = match text {
        b"NaN" => Some(NAN),
        b"Infinity" => Some(INFINITY),
        b"-Infinity" => Some(MINUS_INFINITY),
        _ => None,
    };
    if let Some(sign) = special {
        out.extend_from_slice(&special_head(sign));
        return true;
    }
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (NEGATIVE, digits),
        digits => (0, digits),
    };
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &[][..]),
    };
    let plain = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    let empty = whole.is_empty() && fraction.is_empty();
    if empty || !plain(whole) || !plain(fraction) {
        return false;
    }
    let Ok(scale) = u16::try_from(fraction.len()) else { return false };
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    // Groups of four to the left and to the right of the point.
    let lead = whole.len() % GROUP;
    let (first, rest) = whole.split_at(lead);
    let groups = std::iter::once(first)
        .filter(|first| !first.is_empty())
        .chain(rest.chunks(GROUP))
        .map(|group| (group, group.len()))
        .chain(fraction.chunks(GROUP).map(|group| (group, GROUP)));
    let mut weight = whole.len().div_ceil(GROUP) as i64 - 1;
    for (group, width) in groups {
        let value = group.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'));
        let value = value * 10u16.pow((width - group.len()) as u32);
        // No zeros in front.
        if value == 0 && out.len() == start + 8 {
            weight -= 1;
            continue;
        }
        out.extend_from_slice(&value.to_be_bytes());
    }
    while out.len() > start + 8 && out.ends_with(&[0, 0]) {
        out.truncate(out.len() - 2);
    }
    let count = (out.len() - start - 8) / 2;
    let (Ok(count), Ok(weight)) = (i16::try_from(count), i16::try_from(weight)) else {
        out.truncate(start);
        return false;
    };
    let (weight, sign) = if count == 0 { (0, 0) } else { (weight, sign) };
    out[start..start + 8].copy_from_slice(&head(count, weight, sign, scale));
    true
}

/// What a numeric begins with: its groups are counted, and the first one's weight told.
pub(in crate::mirror) fn head(count: i16, weight: i16, sign: u16, scale: u16) -> [u8; 8] {
    let ([a, b], [c, d]) = (count.to_be_bytes(), weight.to_be_bytes());
    let ([e, f], [g, h]) = (sign.to_be_bytes(), scale.to_be_bytes());
    [a, b, c, d, e, f, g, h]
}

/// All of a value that is no number. Infinity comes with a scale, which nobody reads: where that
/// would be are bits of its own sign (`NUMERIC_DSCALE`).
pub(in crate::mirror) fn special_head(sign: u16) -> [u8; 8] {
    head(0, 0, sign, if sign == NAN { 0 } else { 32 })
}

/// A numeric, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mirror) struct Numeric<'a> {
    /// Of the first group: its value counts as many times 10000.
    pub weight: i16,
    /// Zero or one of the above.
    pub sign: u16,
    /// Digits behind the point that are shown.
    pub scale: u16,
    groups: &'a [u8],
}

impl<'a> Numeric<'a> {
    pub(in crate::mirror) fn new(stored: &'a [u8]) -> Numeric<'a> {
        let word = |at: usize| {
            stored.get(at..at + 2).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        let groups = stored.get(8..).unwrap_or_default();
        Numeric { weight: word(2) as i16, sign: word(4), scale: word(6), groups }
    }

    pub(in crate::mirror) fn is_zero(&self) -> bool {
        matches!(self.sign, 0 | NEGATIVE) && self.groups.is_empty()
    }

    /// Values below 10000.
    pub(in crate::mirror) fn groups(&self) -> impl Iterator<Item = u16> + 'a {
        self.groups.chunks_exact(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }
}

/// `\x` and two hexadecimal digits for each byte.
pub(super) fn put_hex(text: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(digits) = text.strip_prefix(b"\\x").filter(|digits| digits.len() % 2 == 0) else {
        return false;
    };
    let start = out.len();
    let value = |digit: u8| char::from(digit).to_digit(16);
    for pair in digits.chunks_exact(2) {
        let (Some(high), Some(low)) = (value(pair[0]), value(pair[1])) else {
            out.truncate(start);
            return false;
        };
        out.push((high << 4 | low) as u8);
    }
    true
}
