//! Commands of bitmaps; BITFIELD is in `bitfield.rs`.
//!
//! <https://redis.io/docs/latest/commands/?group=bitmap>

use super::number::integer;
use super::strings::range;
use super::{Command, Flags, Keys};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::keyspace::Expiry;
use crate::value::{parse_integer, Str, Value};

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE.and(Flags::DENY_OOM);
const FIRST: Keys = Keys::Range(1, 1, 1);

const fn row(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, group: "bitmap", run }
}

pub const COMMANDS: &[Command] = &[
    row("setbit", 4, WRITE, FIRST, setbit),
    row("getbit", 3, READ.and(Flags::FAST), FIRST, getbit),
    row("bitcount", -2, READ, FIRST, bitcount),
    row("bitpos", -3, READ, FIRST, bitpos),
    row("bitop", -4, WRITE, Keys::Range(2, -1, 1), bitop),
    row("bitfield", -2, WRITE, FIRST, super::bitfield::bitfield),
    row("bitfield_ro", -2, READ.and(Flags::FAST), FIRST, super::bitfield::bitfield_ro),
];

/// Where a bit is (`bitops.c`, `getBitOffsetFromArgument`). `width`: for BITFIELD, where `#2` means
/// the third field of this many bits.
pub fn offset(call: &Call<'_>, word: &[u8], width: Option<u64>) -> Result<u64, Failure> {
    let failure = Failure::text("ERR bit offset is not an integer or out of range");
    let (digits, factor) = match (word, width) {
        ([b'#', digits @ ..], Some(width)) => (digits, width as i64),
        _ => (word, 1),
    };
    let at = parse_integer(digits).and_then(|at| at.checked_mul(factor));
    let max = call.server.settings.proto_max_bulk_len as u64;
    let at = at.and_then(|at| u64::try_from(at).ok()).filter(|at| at >> 3 < max);
    at.ok_or(failure)
}

/// The string with room for a bit, to be changed in place; a new one when the key does not exist.
/// Its type has been looked at.
pub fn room_for<'a>(call: &'a mut Call<'_>, key: &[u8], bit: u64) -> Result<&'a mut [u8], Failure> {
    if !call.keys.exists(key)? {
        call.keys.set(key, Value::Str(Str::Bytes(Vec::new())), Expiry::Never)?;
    }
    match call.keys.string_mut(key)? {
        Some(text) => Ok(text.grown((bit >> 3) as usize + 1)),
        None => Err(Failure::WRONG_TYPE),
    }
}

fn bit_of(bytes: &[u8], at: u64) -> bool {
    bytes.get((at >> 3) as usize).is_some_and(|byte| byte >> (7 - (at & 7)) & 1 == 1)
}

fn setbit(call: &mut Call<'_>) -> Outcome {
    let (key, at) = (call.args.at(1), offset(call, call.args.at(2), None)?);
    let on = match parse_integer(call.args.at(3)) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(Failure::text("ERR bit is not an integer or out of range")),
    };
    let before = call.keys.string(key)?;
    let long = before.is_some_and(|text| text.len() as u64 > at >> 3);
    let was = before.is_some_and(|text| text.with(|bytes| bit_of(bytes, at)));
    if !long || was != on {
        let bytes = room_for(call, key, at)?;
        let (byte, mask) = (&mut bytes[(at >> 3) as usize], 1 << (7 - (at & 7)));
        *byte = if on { *byte | mask } else { *byte & !mask };
        call.event(b'$', "setbit", key);
    }
    call.reply.integer(i64::from(was));
    Ok(())
}

fn getbit(call: &mut Call<'_>) -> Outcome {
    let at = offset(call, call.args.at(2), None)?;
    let text = call.keys.string(call.args.at(1))?;
    let on = text.is_some_and(|text| text.with(|bytes| bit_of(bytes, at)));
    call.reply.integer(i64::from(on));
    Ok(())
}

/// BIT or BYTE.
fn counts_bits(call: &Call<'_>, at: usize) -> Result<bool, Failure> {
    match call.args.len() > at {
        true if call.args.is(at, "bit") => Ok(true),
        true if !call.args.is(at, "byte") => Err(Failure::SYNTAX),
        _ => Ok(false),
    }
}

/// The byte at `at` with those of its bits that are not between two bits, both included, as
/// `outside` says.
fn within(bytes: &[u8], at: usize, first: usize, last: usize, outside: bool) -> u8 {
    let mut mask = 0xff;
    if at == first >> 3 {
        mask &= 0xff >> (first & 7);
    }
    if at == last >> 3 {
        mask &= !(0x7f >> (last & 7));
    }
    if outside {
        bytes[at] | !mask
    } else {
        bytes[at] & mask
    }
}

/// Bits that are on between two, both included.
fn count(bytes: &[u8], first: usize, last: usize) -> u64 {
    let (from, to) = (first >> 3, last >> 3);
    let ends = u64::from(within(bytes, from, first, last, false).count_ones());
    if from == to {
        return ends;
    }
    let ends = ends + u64::from(within(bytes, to, first, last, false).count_ones());
    // Eight bytes at once.
    let words = bytes[from + 1..to].chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from(u64::from_ne_bytes(word).count_ones())
    });
    ends + words.sum::<u64>()
}

/// The first bit that is `on` between two, both included.
fn find(bytes: &[u8], on: bool, first: usize, last: usize) -> Option<usize> {
    let (from, to) = (first >> 3, last >> 3);
    let nothing = if on { 0 } else { 0xff };
    let place = |at: usize| {
        let byte = within(bytes, at, first, last, !on) ^ nothing;
        (byte != 0).then(|| at * 8 + byte.leading_zeros() as usize)
    };
    place(from).or_else(|| {
        let inner = bytes.get(from + 1..to).unwrap_or_default();
        let skip = inner.iter().position(|byte| *byte != nothing);
        place(skip.map_or(to, |skip| from + 1 + skip))
    })
}

/// From which bit to which, both included; none when nothing lies there.
fn bit_range(start: i64, end: i64, len: usize, bits: bool) -> Option<(usize, usize)> {
    match bits {
        true => range(start, end, len as i64 * 8),
        false => range(start, end, len as i64).map(|(start, end)| (start * 8, end * 8 + 7)),
    }
}

fn bitcount(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let Some(text) = call.keys.string(args.at(1))? else {
        call.reply.integer(0);
        return Ok(());
    };
    let len = text.len();
    let asked = match args.len() {
        2 => (0, -1, false),
        4 | 5 => {
            let (start, end) = (integer(args.at(2))?, integer(args.at(3))?);
            // Redis does not look at the last word then.
            let empty = start < 0 && end < 0 && start > end;
            (start, end, !empty && counts_bits(call, 4)?)
        }
        _ => return Err(Failure::SYNTAX),
    };
    let range = bit_range(asked.0, asked.1, len, asked.2);
    let counted = match (range, call.keys.string(args.at(1))?) {
        (Some((first, last)), Some(text)) => text.with(|bytes| count(bytes, first, last)),
        _ => 0,
    };
    call.reply.integer(counted as i64);
    Ok(())
}

fn bitpos(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let on = match integer(args.at(2))? {
        0 => false,
        1 => true,
        _ => return Err(Failure::text("ERR The bit argument must be 1 or 0.")),
    };
    let Some(text) = call.keys.string(args.at(1))? else {
        call.reply.integer(if on { -1 } else { 0 });
        return Ok(());
    };
    let len = text.len();
    let (start, end, bits) = match args.len() {
        3 => (0, None, false),
        4..=6 => {
            let start = integer(args.at(3))?;
            let bits = counts_bits(call, 5)?;
            let end = if args.len() > 4 { Some(integer(args.at(4))?) } else { None };
            (start, end, bits)
        }
        _ => return Err(Failure::SYNTAX),
    };
    let total = if bits { len as i64 * 8 } else { len as i64 };
    // Other than BITCOUNT it does not look at whether both are negative and in the wrong order.
    let place = |at: i64| if at < 0 { at.saturating_add(total).max(0) } else { at };
    let (first, last) = (place(start), place(end.unwrap_or(-1)).min(total - 1));
    let found = match (call.keys.string(args.at(1))?, bit_range(first, last, len, bits)) {
        (Some(text), Some((first, last))) if total > 0 => {
            let found = text.with(|bytes| find(bytes, on, first, last)).map(|at| at as i64);
            // Behind the end of the string there are zeros, when no end was given.
            let beyond = if on || end.is_some() { -1 } else { len as i64 * 8 };
            found.unwrap_or(beyond)
        }
        _ => -1,
    };
    call.reply.integer(found);
    Ok(())
}

fn bitop(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let operation: fn(u8, u8) -> u8 = match () {
        () if args.is(1, "and") => |a, b| a & b,
        () if args.is(1, "or") => |a, b| a | b,
        () if args.is(1, "xor") => |a, b| a ^ b,
        () if args.is(1, "not") => |a, _| !a,
        () => return Err(Failure::SYNTAX),
    };
    if args.is(1, "not") && args.len() != 4 {
        return Err(Failure::text("ERR BITOP NOT must be called with a single source key."));
    }
    let mut len = 0;
    for key in args.from(3).iter() {
        len = len.max(call.keys.string(key)?.map_or(0, Str::len));
    }
    let mut result = vec![0u8; len];
    for (at, key) in args.from(3).iter().enumerate() {
        let copy = |to: &mut [u8], bytes: &[u8]| to[..bytes.len()].copy_from_slice(bytes);
        match (call.keys.string(key)?, at) {
            (Some(text), 0) => text.with(|bytes| copy(&mut result, bytes)),
            (Some(text), _) => text.with(|bytes| combine(&mut result, bytes, operation)),
            (None, 0) => {}
            (None, _) => combine(&mut result, b"", operation),
        }
    }
    if args.is(1, "not") {
        combine(&mut result, b"", operation);
    }
    let target = args.at(2);
    if len > 0 {
        call.keys.set(target, Value::Str(Str::raw(result)), Expiry::Never)?;
        call.event(b'$', "set", target);
    } else if call.keys.remove(target)? {
        call.event(b'g', "del", target);
    }
    call.reply.integer(len as i64);
    Ok(())
}

/// `bytes` has zeros at its end to be as long.
fn combine(result: &mut [u8], bytes: &[u8], operation: fn(u8, u8) -> u8) {
    let (head, tail) = result.split_at_mut(bytes.len());
    head.iter_mut().zip(bytes).for_each(|(to, from)| *to = operation(*to, *from));
    tail.iter_mut().for_each(|to| *to = operation(*to, 0));
}
