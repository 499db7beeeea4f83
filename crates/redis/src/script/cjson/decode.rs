//! JSON as Lua values.
//!
//! Like the original it ends at a zero byte, and takes what `strtod` takes for a number.

use mlua::{Lua, Value};

use super::{Settings, DEPTH_MAX};
use crate::script::host::Complaint;

pub(super) fn decode(lua: &Lua, text: &[u8], settings: Settings) -> Result<Value, Complaint> {
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err("JSON parser does not support UTF-16 or UTF-32".into());
    }
    let depth_max = settings.decode_depth.min(DEPTH_MAX);
    let invalid = settings.decode_invalid;
    let mut parser = Parser { lua, text, at: 0, depth: 0, depth_max, invalid };
    let first = parser.next();
    let value = parser.value(first)?;
    match parser.next() {
        (Token::End, _) => Ok(value),
        other => Err(unexpected("the end", &other)),
    }
}

enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

/// A token and where it begins.
type Placed = (Token, usize);

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Error(what) => what,
        }
    }
}

fn unexpected(expected: &str, (found, at): &Placed) -> Complaint {
    let found = found.name();
    format!("Expected {expected} but found {found} at character {}", at + 1).into()
}

struct Parser<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
    depth: usize,
    depth_max: usize,
    invalid: bool,
}

impl Parser<'_> {
    fn value(&mut self, token: Placed) -> Result<Value, Complaint> {
        Ok(match token.0 {
            Token::String(text) => Value::String(self.lua.create_string(text)?),
            Token::Number(number) => Value::Number(number),
            Token::Boolean(value) => Value::Boolean(value),
            // Under nil a table has nothing.
            Token::Null => Value::NULL,
            Token::ObjectBegin => self.object()?,
            Token::ArrayBegin => self.array()?,
            _ => return Err(unexpected("value", &token)),
        })
    }

    fn descend(&mut self) -> Result<(), Complaint> {
        self.depth += 1;
        if self.depth <= self.depth_max {
            return Ok(());
        }
        let (depth, at) = (self.depth, self.at);
        Err(format!("Found too many nested data structures ({depth}) at character {at}").into())
    }

    fn object(&mut self) -> Result<Value, Complaint> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if matches!(token.0, Token::ObjectEnd) {
            self.depth -= 1;
            return Ok(Value::Table(table));
        }
        loop {
            let Token::String(key) = token.0 else {
                return Err(unexpected("object key string", &token));
            };
            match self.next() {
                (Token::Colon, _) => {}
                other => return Err(unexpected("colon", &other)),
            }
            let begins = self.next();
            let value = self.value(begins)?;
            table.raw_set(self.lua.create_string(key)?, value)?;
            match self.next() {
                (Token::ObjectEnd, _) => break,
                (Token::Comma, _) => {}
                other => return Err(unexpected("comma or object end", &other)),
            }
            token = self.next();
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn array(&mut self) -> Result<Value, Complaint> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if matches!(token.0, Token::ArrayEnd) {
            self.depth -= 1;
            return Ok(Value::Table(table));
        }
        for at in 1i64.. {
            let value = self.value(token)?;
            table.raw_set(at, value)?;
            match self.next() {
                (Token::ArrayEnd, _) => break,
                (Token::Comma, _) => {}
                other => return Err(unexpected("comma or array end", &other)),
            }
            token = self.next();
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    /// The byte so far ahead; zero at the end.
    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn next(&mut self) -> Placed {
        while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let begin = self.at;
        let single = match self.byte(0) {
            0 => return (Token::End, begin),
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => return self.string(begin),
            b'-' | b'0'..=b'9' => {
                if !self.invalid && self.is_invalid_number() {
                    return (Token::Error("invalid number"), begin);
                }
                return self.number(begin);
            }
            b'f' | b'i' | b'I' | b'n' | b'N' | b't' | b'+' => return self.word(begin),
            _ => return (Token::Error("invalid token"), begin),
        };
        self.at += 1;
        (single, begin)
    }

    fn word(&mut self, begin: usize) -> Placed {
        let words = [
            (&b"true"[..], Token::Boolean(true)),
            (b"false", Token::Boolean(false)),
            (b"null", Token::Null),
        ];
        for (word, token) in words {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return (token, begin);
            }
        }
        if self.invalid && self.is_invalid_number() {
            return self.number(begin);
        }
        (Token::Error("invalid token"), begin)
    }

    /// What `strtod` takes and JSON does not.
    fn is_invalid_number(&self) -> bool {
        let sign = usize::from(self.byte(0) == b'-');
        match self.byte(sign) {
            b'+' => sign == 0,
            b'0' => matches!(self.byte(sign + 1), b'x' | b'X' | b'0'..=b'9'),
            0..=b'9' => false,
            _ => {
                let word = self.text.get(self.at + sign..self.at + sign + 3).unwrap_or_default();
                word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
            }
        }
    }

    fn number(&mut self, begin: usize) -> Placed {
        match strtod(&self.text[self.at..]) {
            Some((number, len)) => {
                self.at += len;
                (Token::Number(number), begin)
            }
            None => (Token::Error("invalid number"), begin),
        }
    }

    fn string(&mut self, begin: usize) -> Placed {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            // What needs no look is copied in one piece.
            let rest = &self.text[self.at.min(self.text.len())..];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0));
            let plain = &rest[..plain.unwrap_or(rest.len())];
            text.extend_from_slice(plain);
            self.at += plain.len();
            match self.byte(0) {
                b'"' => break,
                0 => return (Token::Error("unexpected end of string"), self.at),
                _ => {}
            }
            let plain = match self.byte(1) {
                b'u' => match self.unicode() {
                    Some((letter, len)) => {
                        text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                        self.at += len;
                        continue;
                    }
                    None => return (Token::Error("invalid unicode escape code"), self.at),
                },
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'f' => 12,
                b'r' => b'\r',
                byte @ (b'"' | b'\\' | b'/') => byte,
                _ => return (Token::Error("invalid escape code"), self.at),
            };
            text.push(plain);
            self.at += 2;
        }
        self.at += 1;
        (Token::String(text), begin)
    }

    /// The letter of `\uXXXX`, or of two that are a surrogate pair, and how long that is.
    fn unicode(&self) -> Option<(char, usize)> {
        let first = self.hex(2)?;
        if first & 0xf800 != 0xd800 {
            return Some((char::from_u32(first)?, 6));
        }
        if self.byte(6) != b'\\' || self.byte(7) != b'u' {
            return None;
        }
        let second = self.hex(8)?;
        if first & 0x400 != 0 || second & 0xfc00 != 0xdc00 {
            return None;
        }
        let letter = ((first & 0x3ff) << 10 | (second & 0x3ff)) + 0x1_0000;
        Some((char::from_u32(letter)?, 12))
    }

    fn hex(&self, ahead: usize) -> Option<u32> {
        (0..4)
            .try_fold(0, |all, at| Some(all << 4 | char::from(self.byte(ahead + at)).to_digit(16)?))
    }
}

/// The number that a text begins with, and how long that is.
fn strtod(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let signed = |number: f64| if text[0] == b'-' { -number } else { number };
    let rest = &text[sign..];
    let begins =
        |word: &[u8]| rest.len() >= word.len() && rest[..word.len()].eq_ignore_ascii_case(word);
    for (word, number) in
        [(&b"infinity"[..], f64::INFINITY), (b"inf", f64::INFINITY), (b"nan", f64::NAN)]
    {
        if begins(word) {
            return Some((signed(number), sign + word.len()));
        }
    }
    if begins(b"0x") {
        if let Some((number, len)) = hexadecimal(&rest[2..]) {
            return Some((signed(number), sign + 2 + len));
        }
        return Some((signed(0.0), sign + 1));
    }
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(rest);
    let mut len = whole;
    let mut fraction = 0;
    if rest.get(len) == Some(&b'.') {
        fraction = digits(&rest[len + 1..]);
        len += 1 + fraction;
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(rest.get(len), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(rest.get(len + 1), Some(b'-' | b'+')));
        let power = digits(rest.get(len + 1 + signed..).unwrap_or_default());
        if power > 0 {
            len += 1 + signed + power;
        }
    }
    let number = std::str::from_utf8(&rest[..len]).ok()?.parse().ok()?;
    Some((signed(number), sign + len))
}

/// Behind `0x`: digits, a fraction, a power of two.
fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let (mut number, mut scale, mut len, mut any, mut behind) = (0.0, 1.0, 0, false, false);
    while let Some(byte) = text.get(len) {
        match char::from(*byte).to_digit(16) {
            Some(digit) if behind => {
                scale /= 16.0;
                number += f64::from(digit) * scale;
                any = true;
            }
            Some(digit) => {
                number = number * 16.0 + f64::from(digit);
                any = true;
            }
            None if *byte == b'.' && !behind => behind = true,
            None => break,
        }
        len += 1;
    }
    if !any {
        return None;
    }
    if matches!(text.get(len), Some(b'p' | b'P')) {
        let signed = usize::from(matches!(text.get(len + 1), Some(b'-' | b'+')));
        let digits = text.get(len + 1 + signed..).unwrap_or_default();
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count > 0 {
            let power = std::str::from_utf8(&digits[..count]).ok()?.parse().unwrap_or(9999);
            let power: i32 = if text[len + 1] == b'-' { -power } else { power };
            number *= 2f64.powi(power);
            len += 1 + signed + count;
        }
    }
    Some((number, len))
}

#[cfg(test)]
mod tests {
    use super::strtod;

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        assert_eq!(strtod(b"12,"), Some((12.0, 2)));
        assert_eq!(strtod(b"-1.5e3]"), Some((-1500.0, 6)));
        assert_eq!(strtod(b"1e+"), Some((1.0, 1)));
        assert_eq!(strtod(b"1.e1"), Some((10.0, 4)));
        assert_eq!(strtod(b"0x1F}"), Some((31.0, 4)));
        assert_eq!(strtod(b"0x.8p1"), Some((1.0, 6)));
        assert_eq!(strtod(b"0xg"), Some((0.0, 1)));
        assert_eq!(strtod(b"Infinity"), Some((f64::INFINITY, 8)));
        assert_eq!(strtod(b"-inf"), Some((f64::NEG_INFINITY, 4)));
        assert_eq!(strtod(b"-"), None);
        assert_eq!(strtod(b"-."), None);
    }
}
