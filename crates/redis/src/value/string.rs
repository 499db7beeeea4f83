//! Strings: bytes, or a number while it is one.

use smallvec::SmallVec;

/// A string. One that reads as a 64-bit integer in canonical form may be kept as that.
#[derive(Debug, Clone)]
pub enum Str {
    Int(i64),
    Bytes(Vec<u8>),
}

/// Strings up to this length are `embstr`, in bytes (`object.c`, `OBJ_ENCODING_EMBSTR_SIZE_LIMIT`).
const EMBEDDED_MAX: usize = 44;

/// Room that a string which grows gets in advance, at most, in bytes.
const SPARE_MAX: usize = 1 << 20;

/// A string's bytes: borrowed, or an integer's digits in place.
pub type Text = SmallVec<[u8; 24]>;

impl Str {
    pub fn new(bytes: &[u8]) -> Str {
        match parse_integer(bytes) {
            Some(number) => Str::Int(number),
            None => Str::Bytes(bytes.to_vec()),
        }
    }

    /// What is built of other strings: no number, and `raw`.
    pub fn raw(mut bytes: Vec<u8>) -> Str {
        let len = bytes.len();
        make_room(&mut bytes, len);
        Str::Bytes(bytes)
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

    /// Puts bytes behind the last one.
    pub fn append(&mut self, more: &[u8]) {
        let bytes = self.bytes_mut();
        make_room(bytes, bytes.len() + more.len());
        bytes.extend_from_slice(more);
    }

    /// At least `len` bytes, zeros where there were none, to be changed in place.
    pub fn grown(&mut self, len: usize) -> &mut [u8] {
        let bytes = self.bytes_mut();
        let len = len.max(bytes.len());
        make_room(bytes, len);
        bytes.resize(len, 0);
        bytes
    }

    /// As OBJECT ENCODING names it: what has been changed in place has room to grow and is `raw`.
    pub fn encoding(&self) -> &'static str {
        match self {
            Str::Int(_) => "int",
            Str::Bytes(bytes) if bytes.len() <= EMBEDDED_MAX && bytes.capacity() == bytes.len() => {
                "embstr"
            }
            Str::Bytes(_) => "raw",
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

/// Room for `len` bytes and more: twice as many, but not without end (`sds.c`, `_sdsMakeRoomFor`).
fn make_room(bytes: &mut Vec<u8>, len: usize) {
    if bytes.capacity() <= len {
        bytes.reserve_exact(len - bytes.len() + len.clamp(1, SPARE_MAX));
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
