//! Strings: bytes, or a number while it is one.

use smallvec::SmallVec;

/// A string. One that reads as a 64-bit integer in canonical form may be kept as that.
#[derive(Debug, Clone)]
pub enum Str {
    Int(i64),
    Bytes(Vec<u8>),
}

/// A string's bytes: borrowed, or an integer's digits in place.
pub type Text = SmallVec<[u8; 24]>;

impl Str {
    pub fn new(bytes: &[u8]) -> Str {
        match parse_integer(bytes) {
            Some(number) => Str::Int(number),
            None => Str::Bytes(bytes.to_vec()),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Str::Int(number) => itoa::Buffer::new().format(*number).len(),
            Str::Bytes(bytes) => bytes.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `with` with the bytes, wherever they are.
    pub fn with<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Str::Int(number) => with(itoa::Buffer::new().format(*number).as_bytes()),
            Str::Bytes(bytes) => with(bytes),
        }
    }

    pub fn text(&self) -> Text {
        self.with(Text::from_slice)
    }

    /// The bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        if let Str::Int(number) = self {
            *self = Str::Bytes(itoa::Buffer::new().format(*number).as_bytes().to_vec());
        }
        match self {
            Str::Bytes(bytes) => bytes,
            Str::Int(_) => unreachable!("it has just been made bytes"),
        }
    }

    pub fn integer(&self) -> Option<i64> {
        match self {
            Str::Int(number) => Some(*number),
            Str::Bytes(bytes) => parse_integer(bytes),
        }
    }

    pub fn weight(&self) -> usize {
        match self {
            Str::Int(_) => 0,
            Str::Bytes(bytes) => bytes.capacity(),
        }
    }
}

/// An integer as Redis reads it (`string2ll`): canonical decimal, no sign `+`, no leading zeros,
/// no blanks.
pub fn parse_integer(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, bytes),
    };
    if digits.is_empty()
        || digits.len() > 19
        || (digits[0] == b'0' && (negative || digits.len() > 1))
    {
        return None;
    }
    let mut value: u64 = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    if negative {
        0i64.checked_sub_unsigned(value)
    } else {
        i64::try_from(value).ok()
    }
}
