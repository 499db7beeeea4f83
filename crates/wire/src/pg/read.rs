//! The cursor all parsers share: takes fields off the front of a message body.

use super::frame::WireError;
use super::frontend::NAME_BYTES_MAX;

/// What is left of a message body. Each call takes one field, named for the error.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Reader { rest: body }
    }

    pub(super) fn bytes(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or(WireError::Truncated(what))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated(what))?;
        self.rest = rest;
        Ok(*head)
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, WireError> {
        self.array::<1>(what).map(|[b]| b)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, WireError> {
        self.array(what).map(u16::from_be_bytes)
    }

    pub(super) fn i32(&mut self, what: &'static str) -> Result<i32, WireError> {
        self.array(what).map(i32::from_be_bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, WireError> {
        self.array(what).map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, WireError> {
        self.array(what).map(u64::from_be_bytes)
    }

    pub(super) fn i64(&mut self, what: &'static str) -> Result<i64, WireError> {
        self.array(what).map(i64::from_be_bytes)
    }

    /// Four raw bytes, such as an md5 salt.
    pub(super) fn word(&mut self, what: &'static str) -> Result<[u8; 4], WireError> {
        self.array(what)
    }

    /// Bytes up to a NUL, which is taken but not returned.
    pub(super) fn cstr(&mut self, what: &'static str) -> Result<&'a [u8], WireError> {
        let end = memchr::memchr(0, self.rest).ok_or(WireError::NotTerminated(what))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        Ok(text)
    }

    /// The name of a statement or portal, judged by its length before its end is there.
    pub(super) fn name(&mut self, what: &'static str) -> Result<&'a [u8], WireError> {
        let window = &self.rest[..self.rest.len().min(NAME_BYTES_MAX + 1)];
        if window.len() > NAME_BYTES_MAX && memchr::memchr(0, window).is_none() {
            return Err(WireError::TooLong { what, len: window.len(), max: NAME_BYTES_MAX });
        }
        self.cstr(what)
    }

    pub(super) fn text(&mut self, what: &'static str) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.cstr(what)?).map_err(|_| WireError::NotUtf8(what))
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn end(self, message: &'static str) -> Result<(), WireError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(WireError::Trailing(message))
        }
    }
}
