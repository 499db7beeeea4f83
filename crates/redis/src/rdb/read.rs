//! Reading a value. Whatever is not as it should be, or unfolds to too much, is refused.

use std::borrow::Cow;

use super::{lzf, packs, streams, Refused};
use crate::command::number::float;
use crate::value::{Hash, List, Set, Str, Value, Zset};

/// Bytes that the compressed strings of one payload, and the fields that entries of a stream share,
/// may unfold to.
const UNFOLDED_MAX: usize = 1 << 30;

pub(super) struct Reader<'a> {
    rest: &'a [u8],
    unfolded: usize,
}

/// A length, or how a string is encoded.
enum Len {
    Bytes(u64),
    Encoded(u8),
}

pub fn value(payload: &[u8]) -> Result<Value, Refused> {
    let mut reader = Reader { rest: payload, unfolded: 0 };
    let value = reader.value().ok_or(Refused::Format)?;
    // Redis keeps no empty collection.
    if value.is_gone() {
        return Err(Refused::Format);
    }
    Ok(value)
}

/// The code of each library.
pub fn libraries(payload: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader { rest: payload, unfolded: 0 };
    let mut codes = Vec::new();
    while !reader.rest.is_empty() {
        if reader.byte()? != super::LIBRARY {
            return None;
        }
        codes.push(reader.string()?.into_owned());
    }
    Some(codes)
}

impl<'a> Reader<'a> {
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn len_or_encoding(&mut self) -> Option<Len> {
        let first = self.byte()?;
        let len = match first >> 6 {
            0 => u64::from(first),
            1 => u64::from(first & 0x3f) << 8 | u64::from(self.byte()?),
            2 if first == 0x80 => u64::from(u32::from_be_bytes(self.array()?)),
            2 if first == 0x81 => u64::from_be_bytes(self.array()?),
            2 => return None,
            _ => return Some(Len::Encoded(first & 0x3f)),
        };
        Some(Len::Bytes(len))
    }

    /// A number that is written as lengths are.
    pub fn number(&mut self) -> Option<u64> {
        match self.len_or_encoding()? {
            Len::Bytes(number) => Some(number),
            Len::Encoded(_) => None,
        }
    }

    pub fn len(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    /// So many bytes more than the payload has are kept of it.
    pub fn unfolds(&mut self, bytes: usize) -> Option<()> {
        self.unfolded = self.unfolded.checked_add(bytes)?;
        (self.unfolded <= UNFOLDED_MAX).then_some(())
    }

    pub fn string(&mut self) -> Option<Cow<'a, [u8]>> {
        let number = match self.len_or_encoding()? {
            Len::Bytes(len) => {
                return self.take(usize::try_from(len).ok()?).map(Cow::Borrowed);
            }
            Len::Encoded(super::INT8) => i32::from(i8::from_le_bytes(self.array()?)),
            Len::Encoded(super::INT16) => i32::from(i16::from_le_bytes(self.array()?)),
            Len::Encoded(super::INT32) => i32::from_le_bytes(self.array()?),
            Len::Encoded(super::LZF) => {
                let (small, len) = (self.len()?, self.len()?);
                let small = self.take(small)?;
                self.unfolds(len)?;
                return lzf::decompress(small, len).map(Cow::Owned);
            }
            Len::Encoded(_) => return None,
        };
        Some(Cow::Owned(itoa::Buffer::new().format(number).as_bytes().to_vec()))
    }

    fn value(&mut self) -> Option<Value> {
        Some(match self.byte()? {
            super::STRING => Value::Str(Str::new(&self.string()?)),
            super::LIST => {
                let mut list = List::default();
                for _ in 0..self.len()? {
                    list.push_back(&self.string()?);
                }
                Value::List(Box::new(list))
            }
            super::SET => {
                let mut set = Set::default();
                for _ in 0..self.len()? {
                    set.insert(&self.string()?).then_some(())?;
                }
                Value::Set(Box::new(set))
            }
            super::HASH => {
                let mut hash = Hash::default();
                for _ in 0..self.len()? {
                    let field = self.string()?;
                    hash.insert(&field, &self.string()?).then_some(())?;
                }
                Value::Hash(Box::new(hash))
            }
            super::ZSET => self.zset(Reader::written_score)?,
            super::ZSET_2 => self.zset(|reader| reader.array().map(f64::from_le_bytes))?,
            super::LIST_ZIPLIST => self.list(packs::zip_list)?,
            super::LIST_QUICKLIST => self.quick_list(false)?,
            super::LIST_QUICKLIST_2 => self.quick_list(true)?,
            super::SET_INTSET => self.set(packs::int_set)?,
            super::SET_LISTPACK => self.set(packs::list_pack)?,
            super::ZSET_ZIPLIST => self.packed_zset(packs::zip_list)?,
            super::ZSET_LISTPACK => self.packed_zset(packs::list_pack)?,
            super::HASH_ZIPMAP => self.hash(packs::zip_map)?,
            super::HASH_ZIPLIST => self.hash(packs::zip_list)?,
            super::HASH_LISTPACK => self.hash(packs::list_pack)?,
            form @ (super::STREAM | super::STREAM_2 | super::STREAM_3) => {
                Value::Stream(Box::new(streams::read(self, form)?))
            }
            _ => return None,
        })
    }

    /// Digits behind their number; three numbers stand for what has none.
    fn written_score(&mut self) -> Option<f64> {
        match self.byte()? {
            255 => Some(f64::NEG_INFINITY),
            254 => Some(f64::INFINITY),
            253 => None,
            len => float(self.take(usize::from(len))?).ok(),
        }
    }

    fn zset(&mut self, score: impl Fn(&mut Reader<'a>) -> Option<f64>) -> Option<Value> {
        let mut zset = Zset::default();
        for _ in 0..self.len()? {
            let member = self.string()?;
            let score = score(self).filter(|score| !score.is_nan())?;
            zset.insert(&member, score).is_none().then_some(())?;
        }
        Some(Value::Zset(Box::new(zset)))
    }

    fn list(&mut self, unpack: Unpack) -> Option<Value> {
        let (mut list, pack) = (List::default(), self.string()?);
        unpack(&pack, &mut |element| {
            list.push_back(element);
            Some(())
        })?;
        Some(Value::List(Box::new(list)))
    }

    /// Packs one behind the other. `marked`: each says whether it is one or a single element.
    fn quick_list(&mut self, marked: bool) -> Option<Value> {
        let mut list = List::default();
        for _ in 0..self.len()? {
            let container = if marked { self.len()? } else { 0 };
            let pack = self.string()?;
            let mut push = |element: &[u8]| {
                list.push_back(element);
                Some(())
            };
            match container {
                0 if !marked => packs::zip_list(&pack, &mut push)?,
                1 => push(&pack)?,
                2 => packs::list_pack(&pack, &mut push)?,
                _ => return None,
            }
        }
        Some(Value::List(Box::new(list)))
    }

    fn set(&mut self, unpack: Unpack) -> Option<Value> {
        let (mut set, pack) = (Set::default(), self.string()?);
        unpack(&pack, &mut |member| set.insert(member).then_some(()))?;
        Some(Value::Set(Box::new(set)))
    }

    fn packed_zset(&mut self, unpack: Unpack) -> Option<Value> {
        let mut zset = Zset::default();
        self.pairs(unpack, |member, score| {
            let score = float(score).ok()?;
            zset.insert(member, score).is_none().then_some(())
        })?;
        Some(Value::Zset(Box::new(zset)))
    }

    fn hash(&mut self, unpack: Unpack) -> Option<Value> {
        let mut hash = Hash::default();
        self.pairs(unpack, |field, value| hash.insert(field, value).then_some(()))?;
        Some(Value::Hash(Box::new(hash)))
    }

    /// Elements that follow in twos.
    fn pairs(
        &mut self,
        unpack: Unpack,
        mut pair: impl FnMut(&[u8], &[u8]) -> Option<()>,
    ) -> Option<()> {
        let pack = self.string()?;
        let mut first: Option<Vec<u8>> = None;
        unpack(&pack, &mut |element| match first.take() {
            Some(name) => pair(&name, element),
            None => {
                first = Some(element.to_vec());
                Some(())
            }
        })?;
        first.is_none().then_some(())
    }
}

/// Goes through a pack.
type Unpack = fn(&[u8], &mut dyn FnMut(&[u8]) -> Option<()>) -> Option<()>;
