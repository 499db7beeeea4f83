//! The values of one run, as keys of the columns that they are compared with.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use sql::Source;

use crate::recipe::{Value, Values};
use crate::value::{element_oid, elements, elements_binary, Element};

use super::super::definition::{Column, Definition};
use super::super::key::{put_constant, put_pattern, Constant};
use super::super::plan::At;
use super::Refused;

/// Most values of one run, elements of arrays included.
const KEYS_MAX: usize = 1 << 14;

/// What one condition compares its column with.
#[derive(Debug, Clone)]
pub(in super::super) struct Leaf {
    pub column: At,
    pub among: Among,
}

#[derive(Debug, Clone)]
pub(in super::super) enum Among {
    Each(Vec<Source>),
    /// The elements of an array.
    Array(Source),
    /// A truth value.
    Truth(bool),
    /// A pattern of LIKE. Its keys are the least that it admits and one behind all of them.
    Like(Source),
}

impl Among {
    /// Whether it is one value, or NULL.
    pub fn is_single(&self) -> bool {
        match self {
            Among::Each(sources) => sources.len() == 1,
            Among::Truth(_) => true,
            Among::Array(_) | Among::Like(_) => false,
        }
    }
}

/// A value's key: see [`Constants::bytes`].
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Key {
    /// Its first eight bytes, with zeros behind if it is shorter.
    pub prefix: u64,
    start: u32,
    end: u32,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(in super::super) struct Constants {
    bytes: Vec<u8>,
    keys: Vec<Key>,
    leaves: Vec<Given>,
}

/// What was given for one condition.
#[derive(Debug)]
struct Given {
    /// In their order, each once. NULL has none: nothing is equal to it, or less.
    keys: Range<usize>,
    null: bool,
}

impl Constants {
    /// Reads all values, because PostgreSQL would complain of a wrong one even if nothing were
    /// compared with it.
    pub fn read(
        &mut self,
        leaves: &[Leaf],
        tables: &[Arc<Definition>],
        values: &impl Values,
    ) -> Result<(), Refused> {
        self.bytes.clear();
        self.keys.clear();
        self.leaves.clear();
        for leaf in leaves {
            let (table, column) = leaf.column;
            let column = tables
                .get(usize::from(table))
                .and_then(|table| table.columns.get(usize::from(column)))
                .ok_or(Refused::Unready)?;
            let start = self.keys.len();
            let mut null = false;
            match &leaf.among {
                Among::Each(sources) => {
                    for source in sources {
                        let (value, type_oid) = values.get(*source).ok_or(Refused::Value)?;
                        null |= value == Value::Null;
                        self.put(column, type_oid, value)?;
                    }
                }
                Among::Truth(value) => {
                    self.put(column, column.type_oid, Value::Binary(&[u8::from(*value)]))?;
                }
                Among::Like(source) => {
                    let (value, type_oid) = values.get(*source).ok_or(Refused::Value)?;
                    self.put_like(column, type_oid, value)?;
                }
                Among::Array(source) => {
                    let (value, type_oid) = values.get(*source).ok_or(Refused::Value)?;
                    self.put_elements(column, type_oid, value)?;
                }
            }
            self.order(start);
            self.leaves.push(Given { keys: start..self.keys.len(), null });
        }
        Ok(())
    }

    fn put(&mut self, column: &Column, type_oid: u32, value: Value<'_>) -> Result<(), Refused> {
        let start = self.bytes.len();
        match put_constant(column, type_oid, value, &mut self.bytes) {
            Constant::Unknown => Err(Refused::Value),
            Constant::Null => Ok(()),
            Constant::Known => self.push(start),
        }
    }

    /// A pattern's least key, and one behind all: that with a byte behind it that no text has.
    fn put_like(
        &mut self,
        column: &Column,
        type_oid: u32,
        value: Value<'_>,
    ) -> Result<(), Refused> {
        let start = self.bytes.len();
        match put_pattern(column, type_oid, value, &mut self.bytes) {
            Constant::Unknown => return Err(Refused::Value),
            Constant::Null => return Ok(()),
            Constant::Known => self.push(start)?,
        }
        let end = self.bytes.len();
        self.bytes.extend_from_within(start..);
        self.bytes.push(0xff);
        self.push(end)
    }

    /// The key that begins at `start`.
    fn push(&mut self, start: usize) -> Result<(), Refused> {
        let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(self.bytes.len())) else {
            return Err(Refused::TooMuch);
        };
        if self.keys.len() == KEYS_MAX {
            return Err(Refused::TooMuch);
        }
        let prefix = prefix(&self.bytes[start as usize..]);
        self.keys.push(Key { prefix, start, end });
        Ok(())
    }

    fn put_elements(
        &mut self,
        column: &Column,
        type_oid: u32,
        array: Value<'_>,
    ) -> Result<(), Refused> {
        let of = element_oid(type_oid).ok_or(Refused::Value)?;
        let mut put = Ok(());
        let read = match array {
            Value::Null => return Ok(()),
            Value::Text(text) => elements(text, |element| {
                if let (Element::Value(text), Ok(())) = (element, put) {
                    put = self.put(column, of, Value::Text(text));
                }
            }),
            Value::Binary(bytes) => elements_binary(bytes, |has, element| {
                if of != 0 && has != of {
                    put = Err(Refused::Value);
                }
                if let (Element::Value(bytes), Ok(())) = (element, put) {
                    put = self.put(column, has, Value::Binary(bytes));
                }
            }),
        };
        put?;
        read.map_err(|_| Refused::Value)
    }

    pub fn trim(&mut self, most: usize) {
        super::trim(&mut self.bytes, most);
        super::trim(&mut self.keys, most);
    }

    fn order(&mut self, start: usize) {
        if self.keys.len() - start < 2 {
            return;
        }
        let Constants { bytes, keys, .. } = self;
        let compare = |a: &Key, b: &Key| compare(bytes, a, b);
        keys[start..].sort_unstable_by(compare);
        let mut kept = start;
        for at in start + 1..keys.len() {
            if compare(&keys[kept], &keys[at]).is_ne() {
                kept += 1;
                keys[kept] = keys[at];
            }
        }
        keys.truncate(kept + 1);
    }

    /// The keys of the condition with this number, in order.
    pub fn keys(&self, leaf: usize) -> &[Key] {
        self.leaves.get(leaf).map_or(&[], |given| &self.keys[given.keys.clone()])
    }

    /// Whether one of the values of the condition is NULL.
    pub fn has_null(&self, leaf: usize) -> bool {
        self.leaves.get(leaf).is_some_and(|given| given.null)
    }

    pub fn bytes(&self, key: &Key) -> &[u8] {
        &self.bytes[key.start as usize..key.end as usize]
    }

    pub fn compare(&self, a: &Key, b: &Key) -> Ordering {
        compare(&self.bytes, a, b)
    }
}

fn compare(bytes: &[u8], a: &Key, b: &Key) -> Ordering {
    let of = |key: &Key| &bytes[key.start as usize..key.end as usize];
    a.prefix.cmp(&b.prefix).then_with(|| of(a).cmp(of(b)))
}

/// The first eight bytes of a key.
pub(in super::super) fn prefix(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = key.len().min(8);
    first[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(first)
}
