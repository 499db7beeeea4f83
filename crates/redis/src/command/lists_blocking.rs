//! Commands of lists that wait for an element.

use super::lists::{move_element, parse_mpop, pop_first, End};
use super::{Command, Flags, Keys};
use crate::call::Call;
use crate::double;
use crate::failure::{Failure, Outcome};
use crate::session::Otherwise;

const WRITE: Flags = Flags::WRITE.and(Flags::BLOCKING);

pub const COMMANDS: &[Command] = &[
    of("blpop", -3, WRITE, Keys::Range(1, -2, 1), |call| bpop(call, End::Left)),
    of("brpop", -3, WRITE, Keys::Range(1, -2, 1), |call| bpop(call, End::Right)),
    of("brpoplpush", 4, WRITE.and(Flags::DENY_OOM), Keys::Range(1, 2, 1), brpoplpush),
    of("blmove", 6, WRITE.and(Flags::DENY_OOM), Keys::Range(1, 2, 1), blmove),
    of("blmpop", -5, WRITE.and(Flags::MOVABLE_KEYS), Keys::COUNTED_SECOND, blmpop),
];

const fn of(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, group: "list", run }
}

/// A timeout in seconds, as milliseconds; 0: for ever (`getTimeoutFromObjectOrReply`). `now`:
/// milliseconds since 1970.
pub fn timeout(word: &[u8], now: i64) -> Result<i64, Failure> {
    const OUT_OF_RANGE: Failure = Failure::text("ERR timeout is out of range");
    let seconds = double::argument(word).or_else(|| double::beyond(word));
    let seconds = seconds.ok_or(Failure::text("ERR timeout is not a float or out of range"))?;
    let ms = (seconds * 1000.0).ceil();
    if ms >= i64::MAX as f64 {
        return Err(OUT_OF_RANGE);
    }
    if ms < 0.0 {
        return Err(Failure::text("ERR timeout is negative"));
    }
    if ms as i64 > i64::MAX - now {
        return Err(OUT_OF_RANGE);
    }
    Ok(ms as i64)
}

fn bpop(call: &mut Call<'_>, end: End) -> Outcome {
    let last = call.args.len() - 1;
    let timeout = timeout(call.args.at(last), call.keys.now())?;
    if pop_first(call, 1..last, end, None)? {
        return Ok(());
    }
    let keys: Vec<&[u8]> = (1..last).map(|at| call.args.at(at)).collect();
    call.block(&keys, timeout, Otherwise::NullArray)
}

fn blmpop(call: &mut Call<'_>) -> Outcome {
    let (keys, end, count) = parse_mpop(call.args, 2)?;
    let timeout = timeout(call.args.at(1), call.keys.now())?;
    if pop_first(call, 3..3 + keys, end, Some(count))? {
        return Ok(());
    }
    let keys: Vec<&[u8]> = (3..3 + keys).map(|at| call.args.at(at)).collect();
    call.block(&keys, timeout, Otherwise::NullArray)
}

fn blmove(call: &mut Call<'_>) -> Outcome {
    let (from, to) = (End::parse(call.args.at(3))?, End::parse(call.args.at(4))?);
    let timeout = timeout(call.args.at(5), call.keys.now())?;
    move_or_block(call, from, to, timeout)
}

fn brpoplpush(call: &mut Call<'_>) -> Outcome {
    let timeout = timeout(call.args.at(3), call.keys.now())?;
    move_or_block(call, End::Right, End::Left, timeout)
}

fn move_or_block(call: &mut Call<'_>, from: End, to: End, timeout: i64) -> Outcome {
    let source = call.args.at(1);
    if call.keys.list(source)?.is_some() {
        return move_element(call, from, to);
    }
    if call.nested {
        call.reply.null();
        return Ok(());
    }
    call.block(&[source], timeout, Otherwise::NullArray)
}
