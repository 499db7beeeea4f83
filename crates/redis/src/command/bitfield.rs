//! BITFIELD: integers of any width at any bit of a string.
//!
//! <https://redis.io/docs/latest/commands/bitfield/>

use super::bits::{offset, room_for};
use super::number::integer;
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::value::{parse_integer, Str};

#[derive(Debug, Clone, Copy)]
struct Field {
    signed: bool,
    /// In bits: 64 at most, 63 when unsigned.
    width: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Get,
    Set(i64),
    Add(i64),
}

#[derive(Debug, Clone, Copy)]
struct Operation {
    what: What,
    field: Field,
    at: u64,
    overflow: Overflow,
}

pub fn bitfield(call: &mut Call<'_>) -> Outcome {
    run(call, false)
}

pub fn bitfield_ro(call: &mut Call<'_>) -> Outcome {
    run(call, true)
}

fn run(call: &mut Call<'_>, read_only: bool) -> Outcome {
    let operations = parse(call)?;
    let key = call.args.at(1);
    let writes = operations.iter().filter(|op| !matches!(op.what, What::Get));
    let highest = writes.map(|op| op.at + op.field.width - 1).max();
    let Some(highest) = highest else {
        let text = call.keys.string(key)?;
        call.reply.array(operations.len());
        for op in &operations {
            let value = match text {
                Some(text) => text.with(|bytes| op.field.read(bytes, op.at)),
                None => 0,
            };
            call.reply.integer(value);
        }
        return Ok(());
    };
    if read_only {
        return Err(Failure::text("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    let len = call.keys.string(key)?.map_or(0, Str::len);
    // Redis makes room even when nothing is written in the end.
    let grows = len as u64 <= highest >> 3;
    let bytes = room_for(call, key, highest)?;
    let (mut results, mut changed) = (Vec::with_capacity(operations.len()), false);
    for op in &operations {
        let old = op.field.read(bytes, op.at);
        let (wanted, gives_old) = match op.what {
            What::Get => {
                results.push(Some(old));
                continue;
            }
            What::Set(value) => (op.field.whole(value), true),
            What::Add(by) => (i128::from(old) + i128::from(by), false),
        };
        let new = op.field.fit(wanted, op.overflow);
        if let Some(new) = new {
            op.field.write(bytes, op.at, new);
            changed |= grows || new != old;
        }
        results.push(new.map(|new| if gives_old { old } else { new }));
    }
    call.reply.array(results.len());
    for result in results {
        match result {
            Some(value) => call.reply.integer(value),
            None => call.reply.null(),
        }
    }
    if changed {
        call.event(b'$', "setbit", key);
    }
    Ok(())
}

fn parse(call: &Call<'_>) -> Result<Vec<Operation>, Failure> {
    let args = call.args;
    let (mut operations, mut overflow, mut at) = (Vec::new(), Overflow::Wrap, 2);
    while at < args.len() {
        let left = args.len() - at - 1;
        if args.is(at, "overflow") && left >= 1 {
            overflow = match () {
                () if args.is(at + 1, "wrap") => Overflow::Wrap,
                () if args.is(at + 1, "sat") => Overflow::Saturate,
                () if args.is(at + 1, "fail") => Overflow::Fail,
                () => return Err(Failure::text("ERR Invalid OVERFLOW type specified")),
            };
            at += 2;
            continue;
        }
        let (get, set) = (args.is(at, "get"), args.is(at, "set"));
        if !(get && left >= 2 || (set || args.is(at, "incrby")) && left >= 3) {
            return Err(Failure::SYNTAX);
        }
        let field = Field::parse(args.at(at + 1))?;
        let place = offset(call, args.at(at + 2), Some(field.width))?;
        let what = match (get, set) {
            (true, _) => What::Get,
            (false, true) => What::Set(integer(args.at(at + 3))?),
            (false, false) => What::Add(integer(args.at(at + 3))?),
        };
        operations.push(Operation { what, field, at: place, overflow });
        at += if get { 3 } else { 4 };
    }
    Ok(operations)
}

impl Field {
    fn parse(word: &[u8]) -> Result<Field, Failure> {
        let failure = Failure::text(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported \
             but i64 is.",
        );
        let (signed, digits) = match word {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => return Err(failure),
        };
        let width = parse_integer(digits).and_then(|width| u64::try_from(width).ok());
        let most = if signed { 64 } else { 63 };
        let width = width.filter(|width| (1..=most).contains(width)).ok_or(failure)?;
        Ok(Field { signed, width })
    }

    /// Beyond the string's end there are zeros.
    fn read(self, bytes: &[u8], at: u64) -> i64 {
        let (byte, shift) = ((at >> 3) as usize, at & 7);
        let mut window = [0u8; 16];
        let there = bytes.get(byte..).unwrap_or_default();
        let there = &there[..there.len().min(9)];
        window[..there.len()].copy_from_slice(there);
        let value = u128::from_be_bytes(window) << shift >> (128 - self.width);
        self.signed_as_is(value as u64)
    }

    /// The low bits of a number, with the sign that they have.
    fn signed_as_is(self, value: u64) -> i64 {
        let unused = 64 - self.width;
        match self.signed {
            true => (value << unused) as i64 >> unused,
            false => (value << unused >> unused) as i64,
        }
    }

    fn write(self, bytes: &mut [u8], at: u64, value: i64) {
        for bit in 0..self.width {
            let place = at + bit;
            let mask = 1u8 << (7 - (place & 7));
            let on = value >> (self.width - 1 - bit) & 1 == 1;
            if let Some(byte) = bytes.get_mut((place >> 3) as usize) {
                *byte = if on { *byte | mask } else { *byte & !mask };
            }
        }
    }

    /// A number given to SET. Without a sign it is read as one of 64 bits. Redis takes one that is
    /// very far below the field's range for one above it: the difference to the greatest does not
    /// fit (`bitops.c`, `checkSignedBitfieldOverflow`).
    fn whole(self, value: i64) -> i128 {
        if !self.signed {
            return i128::from(value as u64);
        }
        let most = (1i128 << (self.width - 1)) - 1;
        let far = self.width < 64 && most - i128::from(value) > i128::from(i64::MAX);
        i128::from(value) + if far { 1 << 64 } else { 0 }
    }

    /// What is written for a number that may not fit; none when that is to fail.
    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = match self.signed {
            true => (-(1i128 << (self.width - 1)), (1i128 << (self.width - 1)) - 1),
            false => (0, (1i128 << self.width) - 1),
        };
        if (least..=most).contains(&value) {
            return Some(value as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.signed_as_is(value as u64)),
            Overflow::Saturate => Some(if value < least { least as i64 } else { most as i64 }),
            Overflow::Fail => None,
        }
    }
}
