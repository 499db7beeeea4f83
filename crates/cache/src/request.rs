//! What is asked for: the key of a request, and the values in it.

use smallvec::SmallVec;
use sql::Literal;
use wire::pg::frontend::BindTail;

use crate::plan::{Plan, Slot};
use crate::recipe::{Source, Value, Values};
use crate::value::oid;

/// Keys that are longer are not kept. Bytes.
pub const KEY_BYTES_MAX: usize = 8 << 10;

const OID_BYTES: usize = 4;

/// How the client asks.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The text, with what was scanned in it.
    pub text: &'a [u8],
    pub literals: &'a [Literal],
    /// It is in UTF-8. Else only ASCII is compared with what the stream tells.
    pub utf8: bool,
    /// Values and formats of the extended protocol, and the declared types as in a Parse.
    pub bind: Option<(BindTail<'a>, &'a [u8])>,
}

/// One value: where its bytes are in the key.
#[derive(Debug, Clone, Copy)]
struct Given {
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
    utf8: bool,
}

impl Request {
    /// Takes a request. `encoding` and `formatting` stand for what of the session's settings its
    /// answer may depend on. False: it is none whose answer may be kept.
    pub fn read(&mut self, plan: &Plan, asked: &Asked<'_>, encoding: u64, formatting: u64) -> bool {
        self.key.clear();
        self.values.clear();
        self.utf8 = asked.utf8;
        self.key.extend_from_slice(&plan.id().to_be_bytes());
        self.key.extend_from_slice(&encoding.to_be_bytes());
        if plan.settings() {
            self.key.extend_from_slice(&formatting.to_be_bytes());
        }
        let types = asked.bind.map_or(&[][..], |(_, types)| types.get(2..).unwrap_or_default());
        self.formats(asked.bind.map_or(&[][..], |(bind, _)| bind.results));
        let given: SmallVec<[_; 8]> =
            asked.bind.iter().flat_map(|(bind, _)| bind.values()).collect();
        if asked.bind.is_some() && given.len() != plan.parameters().max(types.len() / OID_BYTES) {
            // PostgreSQL says that they are too many, or too few.
            return false;
        }
        for slot in &plan.slots {
            let taken = match slot.source {
                Source::Literal(at) => self.literal(asked, at, slot),
                Source::Parameter(number) => {
                    let at = (number as usize).wrapping_sub(1);
                    match (given.get(at), declared(types, at, slot.type_oid)) {
                        (Some((binary, value)), Some(type_oid)) => {
                            if !is_same(slot, type_oid) {
                                self.put_type(type_oid);
                            }
                            let slot = Slot { type_oid, ..*slot };
                            self.parameter(&slot, *binary, *value)
                        }
                        _ => false,
                    }
                }
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

    fn literal(&mut self, asked: &Asked<'_>, at: u32, slot: &Slot) -> bool {
        let Some(literal) = asked.literals.get(at as usize) else { return false };
        self.put_width(slot, (literal.end - literal.start) as usize);
        let from = self.begin(b't');
        literal.put_value(asked.text, &mut self.key);
        self.end(slot, false, from)
    }

    fn parameter(&mut self, slot: &Slot, binary: bool, value: Option<&[u8]>) -> bool {
        let type_oid = slot.type_oid;
        let Some(value) = value else {
            self.key.push(b'0');
            self.values.push(Given { type_oid, binary, at: None });
            return true;
        };
        // Whole numbers are written in one way, so that both protocols share what is kept.
        let number = match (type_oid, binary, value.len()) {
            (oid::INT2, true, 2) => value.try_into().ok().map(i16::from_be_bytes).map(i64::from),
            (oid::INT4, true, 4) => value.try_into().ok().map(i32::from_be_bytes).map(i64::from),
            (oid::INT8, true, 8) => value.try_into().ok().map(i64::from_be_bytes),
            _ => None,
        };
        let mut digits = itoa::Buffer::new();
        let (binary, value) = match number {
            Some(number) => (false, digits.format(number).as_bytes()),
            None => (binary, value),
        };
        self.put_width(slot, value.len());
        let from = self.begin(if binary { b'b' } else { b't' });
        self.key.extend_from_slice(value);
        self.end(slot, binary, from)
    }

    /// Whole numbers with few digits mean the same whatever the width of their type. For more of
    /// them some type has no room, and PostgreSQL says so.
    fn put_width(&mut self, slot: &Slot, length: usize) {
        let fits = match slot.type_oid {
            oid::INT2 => 4,
            oid::INT4 | oid::INT8 => 9,
            _ => return,
        };
        if slot.compared && length > fits {
            self.put_type(slot.type_oid);
        }
    }

    fn put_type(&mut self, type_oid: u32) {
        self.key.push(b'o');
        self.key.extend_from_slice(&type_oid.to_be_bytes());
    }

    /// A kind and room for a length; where the value begins.
    fn begin(&mut self, kind: u8) -> usize {
        self.key.push(kind);
        self.key.extend_from_slice(&[0; 4]);
        self.key.len()
    }

    fn end(&mut self, slot: &Slot, binary: bool, from: usize) -> bool {
        let Slot { type_oid, timely, .. } = *slot;
        let length = (self.key.len() - from) as u32;
        self.key[from - 4..from].copy_from_slice(&length.to_be_bytes());
        let value = &self.key[from..];
        if timely && !binary && has_word(value) {
            return false;
        }
        self.values.push(Given { type_oid, binary, at: Some((from as u32, length)) });
        true
    }
}

impl Values for Request {
    /// The first value of the text is `Source::Parameter(1)`, whatever the request calls it.
    fn get(&self, source: Source) -> Option<(Value<'_>, u32)> {
        let Source::Parameter(number) = source else { return None };
        let given = self.values.get((number as usize).checked_sub(1)?)?;
        let bytes = given.at.map(|(from, length)| &self.key[from as usize..][..length as usize]);
        let readable = |bytes: &&[u8]| self.utf8 || bytes.is_ascii();
        let value = match bytes {
            Some(bytes) if !readable(&bytes) => return None,
            None => Value::Null,
            Some(bytes) if given.binary => Value::Binary(bytes),
            Some(bytes) => Value::Text(bytes),
        };
        Some((value, given.type_oid))
    }
}

/// Whether it makes no difference that the client says this type.
fn is_same(slot: &Slot, type_oid: u32) -> bool {
    type_oid == slot.type_oid || slot.compared && common(type_oid) == common(slot.type_oid)
}

/// One type for all that mean the same where they are compared with a column.
pub fn common(type_oid: u32) -> u32 {
    match type_oid {
        oid::INT2 | oid::INT4 => oid::INT8,
        oid::VARCHAR => oid::TEXT,
        other => other,
    }
}

fn is_whole(type_oid: u32) -> bool {
    common(type_oid) == oid::INT8
}

/// The type that a parameter has: the client's own choice goes before what PostgreSQL would take.
/// None: what is known of the statement may not hold for this one.
fn declared(types: &[u8], at: usize, known: u32) -> Option<u32> {
    let own = types.get(at * 4..at * 4 + 4).and_then(|oid| oid.try_into().ok());
    let own = own.map_or(0, u32::from_be_bytes);
    let family = |oid: u32| match oid {
        _ if is_whole(oid) => 1,
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::UNKNOWN => 2,
        _ => 0,
    };
    match own {
        0 => Some(known),
        own if own == known || (family(own) != 0 && family(own) == family(known)) => Some(own),
        _ => None,
    }
}

/// Two letters in a row: `now`, `today`, but also names of months and zones. What is left is the
/// same moment every time.
fn has_word(text: &[u8]) -> bool {
    !text.is_ascii() || text.windows(2).any(|pair| pair.iter().all(u8::is_ascii_alphabetic))
}
