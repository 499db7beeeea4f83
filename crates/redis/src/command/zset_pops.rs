//! Commands that take the least or greatest members of sorted sets, and those that wait for one.

use super::lists::{count_of_keys, count_option, positive};
use super::lists_blocking::timeout;
use super::zsets::removed;
use super::{Command, Flags, Keys};
use crate::args::Args;
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::session::Otherwise;
use crate::value::Tracked;

const FAST: Flags = Flags::WRITE.and(Flags::FAST);
const BLOCKING: Flags = Flags::WRITE.and(Flags::BLOCKING);
const ONE: Keys = Keys::Range(1, 1, 1);
const MANY: Keys = Keys::Range(1, -2, 1);

pub const COMMANDS: &[Command] = &[
    of("zpopmin", -2, FAST, ONE, |call| zpop(call, End::Min)),
    of("zpopmax", -2, FAST, ONE, |call| zpop(call, End::Max)),
    of("bzpopmin", -3, BLOCKING.and(Flags::FAST), MANY, |call| bzpop(call, End::Min)),
    of("bzpopmax", -3, BLOCKING.and(Flags::FAST), MANY, |call| bzpop(call, End::Max)),
    of("zmpop", -4, Flags::WRITE.and(Flags::MOVABLE_KEYS), Keys::COUNTED_FIRST, zmpop),
    of("bzmpop", -5, BLOCKING.and(Flags::MOVABLE_KEYS), Keys::COUNTED_SECOND, bzmpop),
];

const fn of(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, group: "sortedset", run }
}

/// An end of a sorted set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

impl End {
    fn parse(word: &[u8]) -> Result<End, Failure> {
        match () {
            () if word.eq_ignore_ascii_case(b"min") => Ok(End::Min),
            () if word.eq_ignore_ascii_case(b"max") => Ok(End::Max),
            () => Err(Failure::SYNTAX),
        }
    }

    fn event(self) -> &'static str {
        match self {
            End::Min => "zpopmin",
            End::Max => "zpopmax",
        }
    }
}

/// Takes `count` members from the key's set, which is there, and replies with them one by one,
/// each an array of two if `nested`.
fn take(call: &mut Call<'_>, key: &[u8], end: End, count: usize, nested: bool) -> Outcome {
    let mut members: Vec<(Box<[u8]>, f64)> = Vec::with_capacity(count);
    if let Some(zset) = call.keys.zset_mut(key)? {
        let copy = |(name, score): (&[u8], f64)| (Box::from(name), score);
        match end {
            End::Min => members.extend(zset.iter().take(count).map(copy)),
            End::Max => members.extend(zset.iter().rev().take(count).map(copy)),
        }
        members.iter().for_each(|(name, _)| {
            zset.remove(name);
        });
    }
    for (name, score) in &members {
        if nested {
            call.reply.array(2);
        }
        call.reply.bulk(name);
        call.reply.double(*score);
    }
    removed(call, key, end.event())
}

fn zpop(call: &mut Call<'_>, end: End) -> Outcome {
    if call.args.len() > 3 {
        return Err(Failure::SYNTAX);
    }
    let count = call.args.get(2).map(positive).transpose()?;
    let key = call.args.at(1);
    let len = call.keys.zset(key)?.map_or(0, Tracked::len);
    let taken = count.unwrap_or(1).min(len);
    let nested = count.is_some() && call.reply.protocol() > 2;
    call.reply.array(if nested { taken } else { taken * 2 });
    match taken {
        0 => Ok(()),
        _ => take(call, key, end, taken, nested),
    }
}

/// The first of the keys that has members, and how many.
fn first<'a>(
    call: &mut Call<'a>,
    keys: std::ops::Range<usize>,
) -> Result<Option<(&'a [u8], usize)>, Failure> {
    for key in keys.map(|at| call.args.at(at)) {
        if let Some(zset) = call.keys.zset(key)? {
            return Ok(Some((key, zset.len())));
        }
    }
    Ok(None)
}

fn bzpop(call: &mut Call<'_>, end: End) -> Outcome {
    let last = call.args.len() - 1;
    let timeout = timeout(call.args.at(last), call.keys.now())?;
    if let Some((key, _)) = first(call, 1..last)? {
        call.reply.array(3);
        call.reply.bulk(key);
        return take(call, key, end, 1, false);
    }
    let keys: Vec<&[u8]> = (1..last).map(|at| call.args.at(at)).collect();
    call.block(&keys, timeout, Otherwise::NullArray)
}

/// From `numkeys` on: how many keys, which end, how many members.
fn parse(args: Args<'_>, at: usize) -> Result<(usize, End, usize), Failure> {
    let (keys, place) = count_of_keys(args, at)?;
    let end = End::parse(args.at(place))?;
    Ok((keys, end, count_option(args, place + 1)?))
}

/// Replies with key and members; false when there are none.
fn mpop(
    call: &mut Call<'_>,
    keys: std::ops::Range<usize>,
    end: End,
    count: usize,
) -> Result<bool, Failure> {
    let Some((key, len)) = first(call, keys)? else { return Ok(false) };
    let count = count.min(len);
    call.reply.array(2);
    call.reply.bulk(key);
    call.reply.array(count);
    take(call, key, end, count, true)?;
    Ok(true)
}

fn zmpop(call: &mut Call<'_>) -> Outcome {
    let (keys, end, count) = parse(call.args, 1)?;
    if !mpop(call, 2..2 + keys, end, count)? {
        call.reply.null_array();
    }
    Ok(())
}

fn bzmpop(call: &mut Call<'_>) -> Outcome {
    let (keys, end, count) = parse(call.args, 2)?;
    let timeout = timeout(call.args.at(1), call.keys.now())?;
    if mpop(call, 3..3 + keys, end, count)? {
        return Ok(());
    }
    let keys: Vec<&[u8]> = (3..3 + keys).map(|at| call.args.at(at)).collect();
    call.block(&keys, timeout, Otherwise::NullArray)
}
