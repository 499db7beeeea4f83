//! Replies as what they mean. The door writes them as RESP2 or RESP3; scripts read them as Lua
//! values; a [`Recorded`] one is kept for later or for several clients.

use std::fmt;

/// Where a command writes its reply: one value; an aggregate's header is followed by its elements.
///
/// <https://redis.io/docs/latest/develop/reference/protocol-spec/>
pub trait Reply {
    /// 2 or 3: some commands reply with another shape.
    fn protocol(&self) -> u8;
    /// A status such as `OK`.
    fn simple(&mut self, text: &str);
    /// Code and text, without the leading `-`.
    fn error(&mut self, text: &str);
    fn integer(&mut self, value: i64);
    fn bulk(&mut self, bytes: &[u8]);
    /// No value: a null bulk string in RESP2.
    fn null(&mut self);
    /// No aggregate: a null array in RESP2.
    fn null_array(&mut self);
    fn array(&mut self, len: usize);
    /// `len` pairs follow, flat; twice as many elements of an array in RESP2.
    fn map(&mut self, len: usize);
    fn set(&mut self, len: usize);
    /// Out of band; an array in RESP2.
    fn push(&mut self, len: usize);
    /// A bulk string in RESP2.
    fn double(&mut self, value: f64);
    /// An integer in RESP2.
    fn boolean(&mut self, value: bool);
    /// A bulk string in RESP2.
    fn big_number(&mut self, digits: &str);
    /// A bulk string in RESP2; `format` has three letters.
    fn verbatim(&mut self, format: &str, bytes: &[u8]);
    /// How much has been written, for [`Reply::rewind`].
    fn mark(&self) -> usize;
    /// Takes back all that was written since the mark.
    fn rewind(&mut self, mark: usize);

    fn ok(&mut self) {
        self.simple("OK");
    }
}

/// A reply that is written once and told later, or to several.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    steps: Vec<u8>,
    protocol: u8,
}

const SIMPLE: u8 = 1;
const ERROR: u8 = 2;
const INTEGER: u8 = 3;
const BULK: u8 = 4;
const NULL: u8 = 5;
const NULL_ARRAY: u8 = 6;
const ARRAY: u8 = 7;
const MAP: u8 = 8;
const SET: u8 = 9;
const PUSH: u8 = 10;
const DOUBLE: u8 = 11;
const BOOLEAN: u8 = 12;
const BIG_NUMBER: u8 = 13;
const VERBATIM: u8 = 14;

impl Recorded {
    pub fn new(protocol: u8) -> Recorded {
        Recorded { steps: Vec::new(), protocol }
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// In bytes.
    pub fn weight(&self) -> usize {
        self.steps.len()
    }

    fn step(&mut self, what: u8, number: u64) {
        self.steps.push(what);
        self.steps.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, what: u8, bytes: &[u8]) {
        self.step(what, bytes.len() as u64);
        self.steps.extend_from_slice(bytes);
    }

    /// Empties it for another reply.
    pub fn reuse(&mut self, protocol: u8) {
        self.steps.clear();
        self.protocol = protocol;
    }

    /// Says afterwards how many elements the aggregate has that was begun at this mark.
    pub fn patch(&mut self, mark: usize, len: usize) {
        if let Some(number) = self.steps.get_mut(mark + 1..mark + 9) {
            number.copy_from_slice(&(len as u64).to_le_bytes());
        }
    }

    /// Whether it begins with an error.
    pub fn is_error(&self) -> bool {
        self.steps.first() == Some(&ERROR)
    }

    /// The error that it is.
    pub fn error_text(&self) -> Option<&str> {
        match next(&self.steps)? {
            (ERROR, len, rest) => std::str::from_utf8(rest.get(..len as usize)?).ok(),
            _ => None,
        }
    }

    /// Writes it all to `reply`.
    pub fn tell(&self, reply: &mut dyn Reply) {
        let mut rest = &self.steps[..];
        while let Some((what, number, after)) = next(rest) {
            rest = after;
            match what {
                SIMPLE | ERROR | BULK | BIG_NUMBER | VERBATIM => {
                    let (bytes, after) = rest.split_at(number as usize);
                    rest = after;
                    let text = || std::str::from_utf8(bytes).unwrap_or_default();
                    match what {
                        SIMPLE => reply.simple(text()),
                        // An error may quote what a client sent, so it may be no UTF-8.
                        ERROR => reply.error(&String::from_utf8_lossy(bytes)),
                        BULK => reply.bulk(bytes),
                        BIG_NUMBER => reply.big_number(text()),
                        _ => reply.verbatim(
                            std::str::from_utf8(&bytes[..3]).unwrap_or("txt"),
                            &bytes[3..],
                        ),
                    }
                }
                INTEGER => reply.integer(number as i64),
                NULL => reply.null(),
                NULL_ARRAY => reply.null_array(),
                ARRAY => reply.array(number as usize),
                MAP => reply.map(number as usize),
                SET => reply.set(number as usize),
                PUSH => reply.push(number as usize),
                DOUBLE => reply.double(f64::from_bits(number)),
                _ => reply.boolean(number != 0),
            }
        }
    }
}

fn next(steps: &[u8]) -> Option<(u8, u64, &[u8])> {
    let (what, rest) = steps.split_first()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    Some((*what, u64::from_le_bytes(*number), rest))
}

impl Reply for Recorded {
    fn protocol(&self) -> u8 {
        self.protocol
    }

    fn simple(&mut self, text: &str) {
        self.text(SIMPLE, text.as_bytes());
    }

    fn error(&mut self, text: &str) {
        self.text(ERROR, text.as_bytes());
    }

    fn integer(&mut self, value: i64) {
        self.step(INTEGER, value as u64);
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.text(BULK, bytes);
    }

    fn null(&mut self) {
        self.step(NULL, 0);
    }

    fn null_array(&mut self) {
        self.step(NULL_ARRAY, 0);
    }

    fn array(&mut self, len: usize) {
        self.step(ARRAY, len as u64);
    }

    fn map(&mut self, len: usize) {
        self.step(MAP, len as u64);
    }

    fn set(&mut self, len: usize) {
        self.step(SET, len as u64);
    }

    fn push(&mut self, len: usize) {
        self.step(PUSH, len as u64);
    }

    fn double(&mut self, value: f64) {
        self.step(DOUBLE, value.to_bits());
    }

    fn boolean(&mut self, value: bool) {
        self.step(BOOLEAN, u64::from(value));
    }

    fn big_number(&mut self, digits: &str) {
        self.text(BIG_NUMBER, digits.as_bytes());
    }

    fn verbatim(&mut self, format: &str, bytes: &[u8]) {
        self.step(VERBATIM, (3 + bytes.len()) as u64);
        let mut letters = [b' '; 3];
        letters.iter_mut().zip(format.bytes()).for_each(|(to, from)| *to = from);
        self.steps.extend_from_slice(&letters);
        self.steps.extend_from_slice(bytes);
    }

    fn mark(&self) -> usize {
        self.steps.len()
    }

    fn rewind(&mut self, mark: usize) {
        self.steps.truncate(mark);
    }
}

/// Prints a reply as `redis-cli` does not quite: one line, for tests and logs.
impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = Line { text: String::new(), open: Vec::new(), protocol: self.protocol };
        self.tell(&mut line);
        f.write_str(&line.text)
    }
}

/// `[1 "a" (nil)]`; statuses bare, errors behind `!`, doubles behind `,`.
struct Line {
    text: String,
    /// Elements left of each open aggregate, and what closes it.
    open: Vec<(usize, char)>,
    protocol: u8,
}

impl Line {
    fn item(&mut self, text: &str) {
        self.space();
        self.text.push_str(text);
        self.close();
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(['[', '{', '<', '~']) {
            self.text.push(' ');
        }
    }

    fn close(&mut self) {
        while let Some((left, end)) = self.open.last_mut() {
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.text.push(*end);
            self.open.pop();
        }
    }

    fn aggregate(&mut self, begin: &str, end: char, len: usize) {
        self.space();
        self.text.push_str(begin);
        if len == 0 {
            self.text.push(end);
            self.close();
        } else {
            self.open.push((len, end));
        }
    }
}

impl Reply for Line {
    fn protocol(&self) -> u8 {
        self.protocol
    }

    fn simple(&mut self, text: &str) {
        self.item(text);
    }

    fn error(&mut self, text: &str) {
        self.item(&format!("!{text}"));
    }

    fn integer(&mut self, value: i64) {
        self.item(&value.to_string());
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.item(&format!("\"{}\"", bytes.escape_ascii()));
    }

    fn null(&mut self) {
        self.item("(nil)");
    }

    fn null_array(&mut self) {
        self.item("(nil array)");
    }

    fn array(&mut self, len: usize) {
        self.aggregate("[", ']', len);
    }

    fn map(&mut self, len: usize) {
        self.aggregate("{", '}', len * 2);
    }

    fn set(&mut self, len: usize) {
        self.aggregate("~[", ']', len);
    }

    fn push(&mut self, len: usize) {
        self.aggregate("<", '>', len);
    }

    fn double(&mut self, value: f64) {
        self.item(&format!(",{value}"));
    }

    fn boolean(&mut self, value: bool) {
        self.item(if value { "#t" } else { "#f" });
    }

    fn big_number(&mut self, digits: &str) {
        self.item(digits);
    }

    fn verbatim(&mut self, format: &str, bytes: &[u8]) {
        self.item(&format!("={format}:\"{}\"", bytes.escape_ascii()));
    }

    fn mark(&self) -> usize {
        self.text.len()
    }

    fn rewind(&mut self, mark: usize) {
        self.text.truncate(mark);
    }
}
