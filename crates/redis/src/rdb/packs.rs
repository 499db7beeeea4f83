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

/// Calls `each` with every element; none when it is malformed, or `each` does not want it.
pub fn list_pack(pack: &[u8], each: &mut dyn FnMut(&[u8]) -> Option<()>) -> Option<()> {
    let mut rest = body(pack, 6)?;
    while !rest.is_empty() {
        let before = rest.len();
        let first = byte(&mut rest)?;
        let text = match first {
            0..=0x7f => {
                with_digits(i64::from(first), each)?;
                None
            }
            0x80..=0xbf => Some(usize::from(first & 0x3f)),
            0xc0..=0xdf => {
                let low = byte(&mut rest)?;
                let value = i64::from(first & 0x1f) << 8 | i64::from(low);
                with_digits(value << 51 >> 51, each)?;
                None
            }
            0xe0..=0xef => Some(usize::from(first & 0xf) << 8 | usize::from(byte(&mut rest)?)),
            0xf0 => Some(unsigned(take(&mut rest, 4)?)),
            0xf1..=0xf4 => {
                let width = [2, 3, 4, 8][usize::from(first - 0xf1)];
                with_digits(signed(take(&mut rest, width)?), each)?;
                None
            }
            _ => return None,
        };
        if let Some(len) = text {
            each(take(&mut rest, len)?)?;
        }
        // The entry's length once more, seven bits a byte, to be read from its end.
        let backwards = match before - rest.len() {
            0..=127 => 1,
            128..16383 => 2,
            16383..2097151 => 3,
            2097151..268435455 => 4,
            _ => 5,
        };
        take(&mut rest, backwards)?;
    }
    Some(())
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
