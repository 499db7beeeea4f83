//! What a server says. Functions that take a [`Protocol`] say the same thing in both versions as
//! Redis does: what RESP2 has no type for becomes an array, a bulk or an integer.

use std::fmt::Write;

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

pub fn put_double(out: &mut Vec<u8>, number: f64, protocol: Protocol) {
    let mut text = Text::default();
    text.double(number);
    match protocol {
        Protocol::Resp2 => put_bulk(out, text.bytes()),
        Protocol::Resp3 => put_line(out, b',', text.bytes()),
    }
}

/// The text of a double: 17 digits, as C's `%.17g`; `inf`, `-inf`, `nan`.
///
/// Source: `addReplyDouble` in `src/networking.c` of Redis 7.0.
pub fn put_double_text(out: &mut Vec<u8>, number: f64) {
    let mut text = Text::default();
    text.double(number);
    out.extend_from_slice(text.bytes());
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

/// A number as text, on the stack. The longest is `-1.7976931348623157e+308`, of 24 bytes.
struct Text {
    bytes: [u8; 40],
    len: usize,
}

impl Default for Text {
    fn default() -> Self {
        Text { bytes: [0; 40], len: 0 }
    }
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

    fn double(&mut self, number: f64) {
        /// Below this a whole number is written with all its digits.
        const WHOLE: f64 = 1e17;
        if number.is_nan() {
            return self.push(b"nan");
        }
        if number.is_infinite() {
            return self.push(if number > 0.0 { b"inf" } else { b"-inf" });
        }
        let is_minus_zero = number == 0.0 && number.is_sign_negative();
        if number.trunc() == number && number.abs() < WHOLE && !is_minus_zero {
            return self.digits(number as i64);
        }
        // Rust writes the exact digits, but no more than are asked for: d.ddddddddddddddddeN.
        let mut exact = Text::default();
        let _ = write!(exact, "{number:.16e}");
        let Some(mark) = memchr::memchr(b'e', exact.bytes()) else { return };
        let (mantissa, exponent) = (&exact.bytes()[..mark], &exact.bytes()[mark + 1..]);
        let exponent = std::str::from_utf8(exponent).ok().and_then(|text| text.parse().ok());
        let exponent: i32 = exponent.unwrap_or(0);
        let (sign, mantissa) = match mantissa {
            [b'-', rest @ ..] => (&b"-"[..], rest),
            rest => (&b""[..], rest),
        };
        let mut digits = [b'0'; 17];
        let found = mantissa.iter().filter(|byte| byte.is_ascii_digit());
        for (digit, found) in digits.iter_mut().zip(found) {
            *digit = *found;
        }
        let kept = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
        self.push(sign);
        self.general(&digits[..kept], exponent);
    }

    /// `%g`: with an exponent where that is far from zero, without trailing zeros anyway.
    fn general(&mut self, digits: &[u8], exponent: i32) {
        const ZEROS: &[u8; 17] = b"00000000000000000";
        let (first, rest) = digits.split_at(1);
        match exponent {
            -4..=-1 => {
                self.push(b"0.");
                self.push(&ZEROS[..(-exponent - 1) as usize]);
                self.push(digits);
            }
            0..=16 => {
                let whole = exponent as usize + 1;
                let (before, after) = digits.split_at(whole.min(digits.len()));
                self.push(before);
                self.push(&ZEROS[..whole - before.len()]);
                if !after.is_empty() {
                    self.push(b".");
                    self.push(after);
                }
            }
            _ => {
                self.push(first);
                if !rest.is_empty() {
                    self.push(b".");
                    self.push(rest);
                }
                let _ =
                    write!(self, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
            }
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}
