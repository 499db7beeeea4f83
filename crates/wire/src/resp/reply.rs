//! What a server says. Functions that take a [`Protocol`] say the same thing in both versions as
//! Redis does: what RESP2 has no type for becomes an array, a bulk or an integer.

use super::Protocol;

/// `+OK`. The text has no line ends.
pub fn put_simple(out: &mut Vec<u8>, text: &str) {
    put_line(out, b'+', text.as_bytes());
}

/// `-ERR ...`, its first word being the code. Line ends in it become blanks, because they would
/// end the reply.
pub fn put_error(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'-');
    let from = out.len();
    out.extend_from_slice(text);
    for byte in &mut out[from..] {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\r\n");
}

pub fn put_integer(out: &mut Vec<u8>, number: i64) {
    if let Ok(small @ 0..=9) = u8::try_from(number) {
        return out.extend_from_slice(&[b':', b'0' + small, b'\r', b'\n']);
    }
    out.push(b':');
    put_digits(out, number);
    out.extend_from_slice(b"\r\n");
}

pub fn put_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    put_head(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// A number as a bulk.
pub fn put_bulk_integer(out: &mut Vec<u8>, number: i64) {
    let mut text = Text::default();
    text.digits(number);
    put_bulk(out, text.bytes());
}

/// There is no such value.
pub fn put_null(out: &mut Vec<u8>, protocol: Protocol) {
    out.extend_from_slice(match protocol {
        Protocol::Resp2 => b"$-1\r\n",
        Protocol::Resp3 => b"_\r\n",
    });
}

/// There is no such list.
pub fn put_null_array(out: &mut Vec<u8>, protocol: Protocol) {
    out.extend_from_slice(match protocol {
        Protocol::Resp2 => b"*-1\r\n",
        Protocol::Resp3 => b"_\r\n",
    });
}

/// `count` replies follow.
pub fn put_array(out: &mut Vec<u8>, count: usize) {
    put_head(out, b'*', count);
}

/// `pairs` times a key and a value follow.
pub fn put_map(out: &mut Vec<u8>, pairs: usize, protocol: Protocol) {
    match protocol {
        Protocol::Resp2 => put_head(out, b'*', pairs * 2),
        Protocol::Resp3 => put_head(out, b'%', pairs),
    }
}

pub fn put_set(out: &mut Vec<u8>, count: usize, protocol: Protocol) {
    match protocol {
        Protocol::Resp2 => put_head(out, b'*', count),
        Protocol::Resp3 => put_head(out, b'~', count),
    }
}

/// A message that nobody asked for.
pub fn put_push(out: &mut Vec<u8>, count: usize, protocol: Protocol) {
    match protocol {
        Protocol::Resp2 => put_head(out, b'*', count),
        Protocol::Resp3 => put_head(out, b'>', count),
    }
}

pub fn put_double(out: &mut Vec<u8>, text: &[u8], protocol: Protocol) {
    match protocol {
        Protocol::Resp2 => put_bulk(out, text),
        Protocol::Resp3 => put_line(out, b',', text),
    }
}

pub fn put_boolean(out: &mut Vec<u8>, is: bool, protocol: Protocol) {
    out.extend_from_slice(match (protocol, is) {
        (Protocol::Resp2, true) => b":1\r\n",
        (Protocol::Resp2, false) => b":0\r\n",
        (Protocol::Resp3, true) => b"#t\r\n",
        (Protocol::Resp3, false) => b"#f\r\n",
    });
}

/// An integer of any size, as text.
pub fn put_big_number(out: &mut Vec<u8>, digits: &str, protocol: Protocol) {
    match protocol {
        Protocol::Resp2 => put_bulk(out, digits.as_bytes()),
        Protocol::Resp3 => put_line(out, b'(', digits.as_bytes()),
    }
}

/// A text to be shown as it is. `format` has three letters: `txt` or `mkd`.
pub fn put_verbatim(out: &mut Vec<u8>, format: &str, text: &[u8], protocol: Protocol) {
    match protocol {
        Protocol::Resp2 => put_bulk(out, text),
        Protocol::Resp3 => {
            put_head(out, b'=', format.len() + 1 + text.len());
            out.extend_from_slice(format.as_bytes());
            out.push(b':');
            out.extend_from_slice(text);
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn put_line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn put_head(out: &mut Vec<u8>, kind: u8, count: usize) {
    if let Ok(small @ 0..=9) = u8::try_from(count) {
        return out.extend_from_slice(&[kind, b'0' + small, b'\r', b'\n']);
    }
    out.push(kind);
    // No buffer holds more than `i64::MAX` bytes.
    put_digits(out, count as i64);
    out.extend_from_slice(b"\r\n");
}

fn put_digits(out: &mut Vec<u8>, number: i64) {
    let mut text = Text::default();
    text.digits(number);
    out.extend_from_slice(text.bytes());
}

/// An integer as text, on the stack.
#[derive(Default)]
struct Text {
    bytes: [u8; 20],
    len: usize,
}

impl Text {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
            self.len = end;
        }
    }

    fn digits(&mut self, number: i64) {
        let mut backwards = [0; 20];
        let (mut rest, mut at) = (number.unsigned_abs(), backwards.len());
        loop {
            at -= 1;
            backwards[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            self.push(b"-");
        }
        self.push(&backwards[at..]);
    }
}
