//! Parameters of a call, written in binary straight into the bytes to send.

use wire::pg::frame::MESSAGE_BYTES_MAX;
use wire::pg::frontend::tag;

use super::oid;

/// Appends a Bind of the unnamed portal with the parameters that `write` writes, asking for
/// binary results. False when it is longer than PostgreSQL takes; the caller takes it back.
pub(super) fn put_bind(
    out: &mut Vec<u8>,
    statement: &[u8],
    write: impl FnOnce(&mut Params<'_>),
) -> bool {
    out.push(tag::BIND);
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(0); // the unnamed portal
    out.extend(statement.iter().take_while(|byte| **byte != 0));
    out.push(0);
    out.extend_from_slice(&[0, 1, 0, 1]); // one format for all parameters: binary
    let count_at = out.len();
    out.extend_from_slice(&[0; 2]);
    let mut params = Params { out, count: 0, sound: true };
    write(&mut params);
    let Params { out, count, sound } = params;
    out.extend_from_slice(&[0, 1, 0, 1]); // and for all columns
    let Ok(count) = u16::try_from(count) else {
        return false;
    };
    out[count_at..count_at + 2].copy_from_slice(&count.to_be_bytes());
    let length = out.len() - length_at;
    if !sound || length + 1 > MESSAGE_BYTES_MAX {
        return false;
    }
    out[length_at..length_at + 4].copy_from_slice(&(length as u32).to_be_bytes());
    true
}

/// Takes the parameters of one call, in order.
#[derive(Debug)]
pub struct Params<'a> {
    out: &'a mut Vec<u8>,
    count: usize,
    /// Whether every length fits its word.
    sound: bool,
}

impl Params<'_> {
    pub fn null(&mut self) {
        self.count += 1;
        self.out.extend_from_slice(&(-1i32).to_be_bytes());
    }

    pub fn int2(&mut self, value: i16) {
        self.fixed(value.to_be_bytes());
    }

    pub fn int4(&mut self, value: i32) {
        self.fixed(value.to_be_bytes());
    }

    pub fn int8(&mut self, value: i64) {
        self.fixed(value.to_be_bytes());
    }

    /// A value of PostgreSQL's one-byte type `"char"`.
    pub fn char(&mut self, value: u8) {
        self.fixed([value]);
    }

    pub fn bytea(&mut self, value: &[u8]) {
        self.count += 1;
        self.sound &= put_counted(self.out, value);
    }

    /// Text in the connection's encoding, UTF-8.
    pub fn text(&mut self, value: &str) {
        self.bytea(value.as_bytes());
    }

    /// An array with elements of the type `of`, which are pushed until the [`Array`] is dropped.
    pub fn array(&mut self, of: u32) -> Array<'_> {
        self.count += 1;
        let start = self.out.len();
        self.out.extend_from_slice(&[0; ARRAY_HEAD_BYTES]);
        Array { out: self.out, sound: &mut self.sound, start, of, elements: 0, nulls: false }
    }

    fn fixed<const N: usize>(&mut self, bytes: [u8; N]) {
        self.count += 1;
        self.out.extend_from_slice(&(N as u32).to_be_bytes());
        self.out.extend_from_slice(&bytes);
    }
}

/// Bytes before the first element: the length of the whole, how many dimensions, whether there
/// are NULLs, the type; and of the one dimension its size and first index.
///
/// Source: `array_recv` in `src/backend/utils/adt/arrayfuncs.c`.
const ARRAY_HEAD_BYTES: usize = 24;

/// An array that is being written; complete when dropped.
#[derive(Debug)]
pub struct Array<'a> {
    out: &'a mut Vec<u8>,
    sound: &'a mut bool,
    start: usize,
    of: u32,
    elements: u32,
    nulls: bool,
}

impl Array<'_> {
    pub fn null(&mut self) {
        self.elements += 1;
        self.nulls = true;
        self.out.extend_from_slice(&(-1i32).to_be_bytes());
    }

    pub fn int2(&mut self, value: i16) {
        debug_assert_eq!(self.of, oid::INT2);
        self.fixed(value.to_be_bytes());
    }

    pub fn int8(&mut self, value: i64) {
        debug_assert_eq!(self.of, oid::INT8);
        self.fixed(value.to_be_bytes());
    }

    pub fn float8(&mut self, value: f64) {
        debug_assert_eq!(self.of, oid::FLOAT8);
        self.fixed(value.to_be_bytes());
    }

    pub fn char(&mut self, value: u8) {
        debug_assert_eq!(self.of, oid::CHAR);
        self.fixed([value]);
    }

    pub fn bytea(&mut self, value: &[u8]) {
        debug_assert!(self.of == oid::BYTEA || self.of == oid::TEXT);
        self.elements += 1;
        *self.sound &= put_counted(self.out, value);
    }

    fn fixed<const N: usize>(&mut self, bytes: [u8; N]) {
        self.elements += 1;
        self.out.extend_from_slice(&(N as u32).to_be_bytes());
        self.out.extend_from_slice(&bytes);
    }
}

impl Drop for Array<'_> {
    fn drop(&mut self) {
        if self.elements == 0 {
            // No dimensions, and so no size and first index.
            self.out.truncate(self.start + ARRAY_HEAD_BYTES - 8);
        }
        let length = self.out.len() - self.start - 4;
        *self.sound &= i32::try_from(length).is_ok() && i32::try_from(self.elements).is_ok();
        let dimensions = u32::from(self.elements > 0);
        let head = [length as u32, dimensions, u32::from(self.nulls), self.of, self.elements, 1u32];
        let words = if self.elements == 0 { 4 } else { 6 };
        for (index, word) in head[..words].iter().enumerate() {
            let at = self.start + 4 * index;
            self.out[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
    }
}

/// Appends a value with its length in front; false when the length does not fit its word.
fn put_counted(out: &mut Vec<u8>, value: &[u8]) -> bool {
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
    i32::try_from(value.len()).is_ok()
}
