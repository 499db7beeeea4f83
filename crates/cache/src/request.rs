//! What is asked for: the key of a request, and the values in it.

use smallvec::SmallVec;
use sql::Literal;
use wire::pg::frontend::BindTail;

use crate::plan::Plan;
use crate::recipe::{Source, Value, Values};

/// Keys that are longer are not kept. Bytes.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// Types whose text may be a word that means another value tomorrow: `now`, `today`.
///
/// Source: PostgreSQL docs, "Date/Time Input", Special Values.
const TIMES: [u32; 6] = [oid::DATE, oid::TIME, oid::TIMESTAMP, oid::TIMESTAMPTZ, oid::TIMETZ, 702];

/// Source: `src/include/catalog/pg_type.dat`.
mod oid {
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const DATE: u32 = 1082;
    pub const TIME: u32 = 1083;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const TIMETZ: u32 = 1266;
}

/// How the client asks.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The text, with what was scanned in it.
    pub text: &'a [u8],
    pub literals: &'a [Literal],
    /// Values and formats of the extended protocol.
    pub bind: Option<BindTail<'a>>,
}

/// One value: where its bytes are in the key.
#[derive(Debug, Clone, Copy)]
struct Given {
    source: Source,
    type_oid: u32,
    binary: bool,
    /// None: NULL.
    at: Option<(u32, u32)>,
}

/// A request's key, kept between requests for its buffers.
#[derive(Debug, Default)]
pub struct Request {
    key: Vec<u8>,
    values: SmallVec<[Given; 8]>,
}

impl Request {
    /// Takes a request. `encoding` and `formatting` stand for what of the session's settings its
    /// answer may depend on. False: it is none whose answer may be kept.
    pub fn read(&mut self, plan: &Plan, asked: &Asked<'_>, encoding: u64, formatting: u64) -> bool {
        self.key.clear();
        self.values.clear();
        self.key.extend_from_slice(&plan.id.to_be_bytes());
        self.key.extend_from_slice(&encoding.to_be_bytes());
        if plan.settings {
            self.key.extend_from_slice(&formatting.to_be_bytes());
        }
        self.formats(asked.bind.as_ref().map_or(&[][..], |bind| bind.results));
        let given: SmallVec<[_; 8]> = asked.bind.iter().flat_map(BindTail::values).collect();
        for slot in &plan.slots {
            let taken = match slot.source {
                Source::Literal(at) => self.literal(asked, at, slot.type_oid),
                Source::Parameter(number) => match given.get(number as usize - 1) {
                    Some((binary, value)) => {
                        self.parameter(slot.source, slot.type_oid, *binary, *value)
                    }
                    None => false,
                },
            };
            if !taken || self.key.len() > KEY_BYTES_MAX {
                return false;
            }
        }
        true
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// All text is written in one way, whether nothing or zeros were sent.
    fn formats(&mut self, results: &[u8]) {
        let binary = |code: &[u8]| code[1] == 1;
        if !results.chunks_exact(2).any(binary) {
            self.key.push(b't');
        } else if results.chunks_exact(2).all(binary) && results.len() == 2 {
            self.key.push(b'b');
        } else {
            self.key.push(b'm');
            self.key.push((results.len() / 2) as u8);
            self.key.extend(results.chunks_exact(2).map(|code| code[1]));
        }
    }

    fn literal(&mut self, asked: &Asked<'_>, at: u32, type_oid: u32) -> bool {
        let Some(literal) = asked.literals.get(at as usize) else { return false };
        let from = self.begin(b't');
        literal.put_value(asked.text, &mut self.key);
        self.end(Source::Literal(at), type_oid, false, from)
    }

    fn parameter(
        &mut self,
        source: Source,
        type_oid: u32,
        binary: bool,
        value: Option<&[u8]>,
    ) -> bool {
        let Some(value) = value else {
            self.key.push(b'0');
            self.values.push(Given { source, type_oid, binary, at: None });
            return true;
        };
        // Whole numbers are written in one way, so that both protocols share what is kept.
        let number = match (type_oid, binary, value.len()) {
            (oid::INT2, true, 2) => value.try_into().ok().map(i16::from_be_bytes).map(i64::from),
            (oid::INT4, true, 4) => value.try_into().ok().map(i32::from_be_bytes).map(i64::from),
            (oid::INT8, true, 8) => value.try_into().ok().map(i64::from_be_bytes),
            _ => None,
        };
        let from = self.begin(if binary && number.is_none() { b'b' } else { b't' });
        match number {
            Some(number) => {
                self.key.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            }
            None => self.key.extend_from_slice(value),
        }
        self.end(source, type_oid, binary && number.is_none(), from)
    }

    /// A kind and room for a length; where the value begins.
    fn begin(&mut self, kind: u8) -> usize {
        self.key.push(kind);
        self.key.extend_from_slice(&[0; 4]);
        self.key.len()
    }

    fn end(&mut self, source: Source, type_oid: u32, binary: bool, from: usize) -> bool {
        let length = (self.key.len() - from) as u32;
        self.key[from - 4..from].copy_from_slice(&length.to_be_bytes());
        let value = &self.key[from..];
        if TIMES.contains(&type_oid) && !binary && has_word(value) {
            return false;
        }
        self.values.push(Given { source, type_oid, binary, at: Some((from as u32, length)) });
        true
    }
}

impl Values for Request {
    fn get(&self, source: Source) -> Option<(Value<'_>, u32)> {
        let given = self.values.iter().find(|given| given.source == source)?;
        let bytes = given.at.map(|(from, length)| &self.key[from as usize..][..length as usize]);
        let value = match bytes {
            None => Value::Null,
            Some(bytes) if given.binary => Value::Binary(bytes),
            Some(bytes) => Value::Text(bytes),
        };
        Some((value, given.type_oid))
    }
}

/// Letters but for the T and the Z of ISO 8601.
fn has_word(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_alphabetic() && !matches!(byte, b'T' | b't' | b'Z' | b'z'))
        || text.iter().filter(|byte| byte.is_ascii_alphabetic()).count() > 2
}
