//! Replies of the engine as RESP.

use ::redis::double;
use ::redis::reply::Reply;
use wire::resp::reply;
use wire::resp::Protocol;

/// Appends replies to a buffer.
pub(super) struct Writer<'a> {
    pub out: &'a mut Vec<u8>,
    pub protocol: Protocol,
}

impl Reply for Writer<'_> {
    fn protocol(&self) -> u8 {
        match self.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }

    fn switch(&mut self, protocol: u8) {
        self.protocol = if protocol == 3 { Protocol::Resp3 } else { Protocol::Resp2 };
    }

    fn simple(&mut self, text: &str) {
        reply::put_simple(self.out, text);
    }

    fn error(&mut self, text: &[u8]) {
        reply::put_error(self.out, text);
    }

    fn integer(&mut self, value: i64) {
        reply::put_integer(self.out, value);
    }

    fn bulk(&mut self, bytes: &[u8]) {
        reply::put_bulk(self.out, bytes);
    }

    fn null(&mut self) {
        reply::put_null(self.out, self.protocol);
    }

    fn null_array(&mut self) {
        reply::put_null_array(self.out, self.protocol);
    }

    fn array(&mut self, len: usize) {
        reply::put_array(self.out, len);
    }

    fn map(&mut self, len: usize) {
        reply::put_map(self.out, len, self.protocol);
    }

    fn set(&mut self, len: usize) {
        reply::put_set(self.out, len, self.protocol);
    }

    fn push(&mut self, len: usize) {
        reply::put_push(self.out, len, self.protocol);
    }

    fn double(&mut self, value: f64) {
        reply::put_double(self.out, &double::text(value), self.protocol);
    }

    fn decimal(&mut self, value: f64) {
        reply::put_double(self.out, &double::human(value), self.protocol);
    }

    fn boolean(&mut self, value: bool) {
        reply::put_boolean(self.out, value, self.protocol);
    }

    fn big_number(&mut self, digits: &str) {
        reply::put_big_number(self.out, digits, self.protocol);
    }

    fn verbatim(&mut self, format: &str, bytes: &[u8]) {
        reply::put_verbatim(self.out, format, bytes, self.protocol);
    }

    fn mark(&self) -> usize {
        self.out.len()
    }

    fn rewind(&mut self, mark: usize) {
        self.out.truncate(mark);
    }
}
