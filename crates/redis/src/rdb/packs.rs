//! Collections in one string: list packs, zip lists, zip maps, sets of integers.
//!
//! ```text
//! list pack   bytes (4) count (2) | encoding, data, length backwards | ... | 0xff
//! zip list    bytes (4) tail (4) count (2) | length before, encoding, data | ... | 0xff
//! zip map     count (1) | length, field, length, unused (1), value, unused bytes | ... | 0xff
//! intset      width (4) count (4) | integers of that width
//! ```
//!
//! Numbers are in little endian but for lengths in a zip list. Counts are hints: the end is told by
//! the last byte. Source: Redis 7.2, `listpack.c`, `ziplist.c`, `zipmap.c`, `intset.c`.

use crate::value::parse_integer;

/// What a list pack has beside its elements.
pub const LIST_PACK_BYTES: usize = 7;

/// Takes bytes off the front, if they are there.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(taken)
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    take(rest, 1).map(|taken| taken[0])
}

/// A signed integer of at most eight bytes in little endian.
fn signed(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unused = 64 - 8 * bytes.len() as u32;
    i64::from_le_bytes(wide) << unused >> unused
}

fn unsigned(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte))
}

fn with_digits(number: i64, each: &mut dyn FnMut(&[u8]) -> Option<()>) -> Option<()> {
    each(itoa::Buffer::new().format(number).as_bytes())
}

/// The pack without its head and its last byte, if both say the right thing.
fn body(pack: &[u8], head: usize) -> Option<&[u8]> {
    let (size, _) = pack.split_first_chunk::<4>()?;
    let (last, rest) = pack.split_last()?;
    let right = u32::from_le_bytes(*size) as usize == pack.len() && *last == 0xff;
    if right {
        rest.get(head..)
    } else {
        None
    }
}

/// An element of a list pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element<'a> {
    Number(i64),
    Text(&'a [u8]),
}

/// The elements of a list pack, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct ListPack<'a> {
    rest: &'a [u8],
}

impl<'a> ListPack<'a> {
    pub fn open(pack: &'a [u8]) -> Option<ListPack<'a>> {
        body(pack, 6).map(|rest| ListPack { rest })
    }

    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// None when there is none, or it is malformed.
    pub fn element(&mut self) -> Option<Element<'a>> {
        let rest = &mut self.rest;
        let before = rest.len();
        let first = byte(rest)?;
        let text = |rest: &mut &'a [u8], len| take(rest, len).map(Element::Text);
        let element = match first {
            0..=0x7f => Element::Number(i64::from(first)),
            0x80..=0xbf => text(rest, usize::from(first & 0x3f))?,
            0xc0..=0xdf => {
                let value = i64::from(first & 0x1f) << 8 | i64::from(byte(rest)?);
                Element::Number(value << 51 >> 51)
            }
            0xe0..=0xef => {
                let len = usize::from(first & 0xf) << 8 | usize::from(byte(rest)?);
                text(rest, len)?
            }
            0xf0 => {
                let len = unsigned(take(rest, 4)?);
                text(rest, len)?
            }
            0xf1..=0xf4 => {
                let width = [2, 3, 4, 8][usize::from(first - 0xf1)];
                Element::Number(signed(take(rest, width)?))
            }
            _ => return None,
        };
        let len = before - rest.len();
        take(rest, backwards(len))?;
        Some(element)
    }
}

/// Bytes of an entry's length once more, seven bits each, to be read from its end.
fn backwards(len: usize) -> usize {
    match len {
        0..=127 => 1,
        128..16383 => 2,
        16383..2097151 => 3,
        2097151..268435455 => 4,
        _ => 5,
    }
}

/// Calls `each` with every element; none when it is malformed, or `each` does not want it.
pub fn list_pack(pack: &[u8], each: &mut dyn FnMut(&[u8]) -> Option<()>) -> Option<()> {
    let mut pack = ListPack::open(pack)?;
    while !pack.is_over() {
        match pack.element()? {
            Element::Number(number) => with_digits(number, each)?,
            Element::Text(text) => each(text)?,
        }
    }
    Some(())
}

/// Appends an element as a list pack has it; what is written like an integer is one.
pub fn put_element(out: &mut Vec<u8>, text: &[u8]) {
    if let Some(number) = parse_integer(text) {
        return put_number(out, number);
    }
    let begin = out.len();
    match text.len() {
        len @ 0..64 => out.push(0x80 | len as u8),
        len @ 64..4096 => out.extend_from_slice(&(len as u16 | 0xe000).to_be_bytes()),
        len => {
            out.push(0xf0);
            out.extend_from_slice(&(len as u32).to_le_bytes());
        }
    }
    out.extend_from_slice(text);
    put_backwards(out, begin);
}

pub fn put_number(out: &mut Vec<u8>, number: i64) {
    let begin = out.len();
    let bytes = number.to_le_bytes();
    match number {
        0..=127 => out.push(number as u8),
        -4096..=4095 => {
            out.extend_from_slice(&(number as u16 & 0x1fff | 0xc000).to_be_bytes());
        }
        _ => {
            let widths = [(0xf1, 2), (0xf2, 3), (0xf3, 4), (0xf4, 8)];
            let fits = |width: usize| signed(&bytes[..width]) == number;
            let (encoding, width) =
                widths.into_iter().find(|(_, width)| fits(*width)).unwrap_or((0xf4, 8));
            out.push(encoding);
            out.extend_from_slice(&bytes[..width]);
        }
    }
    put_backwards(out, begin);
}

/// The length of the entry that begins there.
fn put_backwards(out: &mut Vec<u8>, begin: usize) {
    let len = out.len() - begin;
    let bytes = backwards(len);
    for at in (0..bytes).rev() {
        let bits = (len >> (7 * at) & 0x7f) as u8;
        // The last one to be read is the first, and says so.
        out.push(if at + 1 == bytes { bits } else { bits | 0x80 });
    }
}

/// A list pack of these elements, which are `count`.
pub fn seal_list_pack(elements: &[u8], count: usize) -> Vec<u8> {
    let bytes = elements.len() + LIST_PACK_BYTES;
    let mut pack = Vec::with_capacity(bytes);
    pack.extend_from_slice(&(bytes as u32).to_le_bytes());
    // The greatest stands for an unknown number.
    pack.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
    pack.extend_from_slice(elements);
    pack.push(0xff);
    pack
}

pub fn zip_list(pack: &[u8], each: &mut dyn FnMut(&[u8]) -> Option<()>) -> Option<()> {
    let mut rest = body(pack, 10)?;
    while !rest.is_empty() {
        // The length of the entry before, which nobody needs here.
        if byte(&mut rest)? == 254 {
            take(&mut rest, 4)?;
        }
        let first = byte(&mut rest)?;
        let text = match first {
            0..=0x3f => usize::from(first),
            0x40..=0x7f => usize::from(first & 0x3f) << 8 | usize::from(byte(&mut rest)?),
            0x80..=0xbf => {
                let len = take(&mut rest, 4)?;
                len.iter().fold(0, |len, byte| len << 8 | usize::from(*byte))
            }
            0xf1..=0xfd => {
                with_digits(i64::from(first & 0xf) - 1, each)?;
                continue;
            }
            0xc0 | 0xd0 | 0xe0 | 0xf0 | 0xfe => {
                let width = match first {
                    0xc0 => 2,
                    0xd0 => 4,
                    0xe0 => 8,
                    0xf0 => 3,
                    _ => 1,
                };
                with_digits(signed(take(&mut rest, width)?), each)?;
                continue;
            }
            _ => return None,
        };
        each(take(&mut rest, text)?)?;
    }
    Some(())
}

/// Calls `each` with every field and, next, its value.
pub fn zip_map(pack: &[u8], each: &mut dyn FnMut(&[u8]) -> Option<()>) -> Option<()> {
    let (last, rest) = pack.split_last()?;
    let mut rest = rest.get(1..).filter(|_| *last == 0xff)?;
    let len = |rest: &mut &[u8]| match byte(rest)? {
        254 => take(rest, 4).map(unsigned),
        255 => None,
        short => Some(usize::from(short)),
    };
    while !rest.is_empty() {
        let field = len(&mut rest)?;
        each(take(&mut rest, field)?)?;
        let value = len(&mut rest)?;
        let unused = byte(&mut rest)?;
        each(take(&mut rest, value)?)?;
        take(&mut rest, usize::from(unused))?;
    }
    Some(())
}

pub fn int_set(pack: &[u8], each: &mut dyn FnMut(&[u8]) -> Option<()>) -> Option<()> {
    let (head, integers) = pack.split_first_chunk::<8>()?;
    let (width, count) = (unsigned(&head[..4]), unsigned(&head[4..]));
    if !matches!(width, 2 | 4 | 8) || count.checked_mul(width)? != integers.len() {
        return None;
    }
    integers.chunks(width).try_for_each(|integer| with_digits(signed(integer), each))
}
