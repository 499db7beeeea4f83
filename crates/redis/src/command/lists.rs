//! Commands of lists that don't wait.

use super::number::integer;
use super::{Command, Flags, Keys};
use crate::args::Args;
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::value::{parse_integer, List, Tracked};

const WRITE: Flags = Flags::WRITE.and(Flags::DENY_OOM);
const FAST: Flags = Flags::FAST;
const READ: Flags = Flags::READONLY;

pub const COMMANDS: &[Command] = &[
    of("lpush", -3, WRITE.and(FAST), ONE, |call| push(call, End::Left, false)),
    of("rpush", -3, WRITE.and(FAST), ONE, |call| push(call, End::Right, false)),
    of("lpushx", -3, WRITE.and(FAST), ONE, |call| push(call, End::Left, true)),
    of("rpushx", -3, WRITE.and(FAST), ONE, |call| push(call, End::Right, true)),
    of("lpop", -2, Flags::WRITE.and(FAST), ONE, |call| pop(call, End::Left)),
    of("rpop", -2, Flags::WRITE.and(FAST), ONE, |call| pop(call, End::Right)),
    of("llen", 2, READ.and(FAST), ONE, llen),
    of("lindex", 3, READ, ONE, lindex),
    of("lset", 4, WRITE, ONE, lset),
    of("linsert", 5, WRITE, ONE, linsert),
    of("lrange", 4, READ, ONE, lrange),
    of("lrem", 4, Flags::WRITE, ONE, lrem),
    of("ltrim", 4, Flags::WRITE, ONE, ltrim),
    of("lpos", -3, READ, ONE, lpos),
    of("rpoplpush", 3, WRITE, Keys::Range(1, 2, 1), |call| {
        move_element(call, End::Right, End::Left)
    }),
    of("lmove", 5, WRITE, Keys::Range(1, 2, 1), lmove),
    of("lmpop", -4, Flags::WRITE.and(Flags::MOVABLE_KEYS), Keys::COUNTED_FIRST, lmpop),
];

const ONE: Keys = Keys::Range(1, 1, 1);

const fn of(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, group: "list", run }
}

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Left,
    Right,
}

impl End {
    pub fn parse(word: &[u8]) -> Result<End, Failure> {
        match () {
            () if word.eq_ignore_ascii_case(b"left") => Ok(End::Left),
            () if word.eq_ignore_ascii_case(b"right") => Ok(End::Right),
            () => Err(Failure::SYNTAX),
        }
    }

    fn push(self, list: &mut List, element: &[u8]) {
        match self {
            End::Left => list.push_front(element),
            End::Right => list.push_back(element),
        }
    }

    fn pop(self, list: &mut List) -> Option<Box<[u8]>> {
        match self {
            End::Left => list.pop_front(),
            End::Right => list.pop_back(),
        }
    }

    fn pushed(self) -> &'static str {
        match self {
            End::Left => "lpush",
            End::Right => "rpush",
        }
    }

    fn popped(self) -> &'static str {
        match self {
            End::Left => "lpop",
            End::Right => "rpop",
        }
    }
}

fn push(call: &mut Call<'_>, end: End, only_if_there: bool) -> Outcome {
    let key = call.args.at(1);
    if only_if_there && call.keys.list(key)?.is_none() {
        call.reply.integer(0);
        return Ok(());
    }
    let list = call.keys.list_or_new(key)?;
    for element in call.args.from(2).iter() {
        end.push(list, element);
    }
    let len = list.len();
    call.reply.integer(len as i64);
    call.event(b'l', end.pushed(), key);
    Ok(())
}

fn pop(call: &mut Call<'_>, end: End) -> Outcome {
    if call.args.len() > 3 {
        let name = end.popped();
        return Err(Failure::said(format!("ERR wrong number of arguments for '{name}' command")));
    }
    let count = call.args.get(2).map(positive).transpose()?;
    let key = call.args.at(1);
    let len = call.keys.list(key)?.map(Tracked::len);
    match (len, count) {
        (None, None) => call.reply.null(),
        (None, Some(_)) => call.reply.null_array(),
        (Some(_), Some(0)) => call.reply.array(0),
        (Some(_), None) => {
            let element = call.keys.list_mut(key)?.and_then(|list| end.pop(list));
            call.reply.bulk(&element.unwrap_or_default());
            removed(call, key, end.popped())?;
        }
        (Some(len), Some(count)) => pop_many(call, key, end, count.min(len))?,
    }
    Ok(())
}

/// Pops `count` elements, which are there, and replies with them.
fn pop_many(call: &mut Call<'_>, key: &[u8], end: End, count: usize) -> Outcome {
    call.reply.array(count);
    if let Some(list) = call.keys.list_mut(key)? {
        for _ in 0..count {
            call.reply.bulk(&end.pop(list).unwrap_or_default());
        }
    }
    removed(call, key, end.popped())
}

/// Elements have gone, and with the last one the key.
fn removed(call: &mut Call<'_>, key: &[u8], event: &'static str) -> Outcome {
    call.event(b'l', event, key);
    if call.keys.settle(key)? {
        call.event(b'g', "del", key);
    }
    Ok(())
}

/// A count (`getPositiveLongFromObject`).
pub fn positive(word: &[u8]) -> Result<usize, Failure> {
    at_least_0(word, "ERR value is out of range, must be positive")
}

fn at_least_0(word: &[u8], why: &'static str) -> Result<usize, Failure> {
    let number = parse_integer(word).and_then(|number| usize::try_from(number).ok());
    number.ok_or(Failure::text(why))
}

fn llen(call: &mut Call<'_>) -> Outcome {
    let len = call.keys.list(call.args.at(1))?.map_or(0, Tracked::len);
    call.reply.integer(len as i64);
    Ok(())
}

fn lindex(call: &mut Call<'_>) -> Outcome {
    let Some(list) = call.keys.list(call.args.at(1))? else {
        call.reply.null();
        return Ok(());
    };
    let index = integer(call.args.at(2))?;
    match place(index, list.len()).and_then(|at| list.get(at)) {
        Some(element) => call.reply.bulk(element),
        None => call.reply.null(),
    }
    Ok(())
}

/// Where an index, which may count from the end, points to; none when that is before the first.
fn place(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index + len as i64 } else { index };
    usize::try_from(index).ok()
}

fn lset(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let Some(list) = call.keys.list(key)? else { return Err(Failure::NO_SUCH_KEY) };
    let len = list.len();
    let index = integer(call.args.at(2))?;
    let at = place(index, len).filter(|at| *at < len).ok_or(Failure::OUT_OF_RANGE)?;
    if let Some(list) = call.keys.list_mut(key)? {
        list.set(at, call.args.at(3));
    }
    call.reply.ok();
    call.event(b'l', "lset", key);
    Ok(())
}

fn linsert(call: &mut Call<'_>) -> Outcome {
    let after = match () {
        () if call.args.is(2, "after") => 1,
        () if call.args.is(2, "before") => 0,
        () => return Err(Failure::SYNTAX),
    };
    let (key, pivot) = (call.args.at(1), call.args.at(3));
    let Some(list) = call.keys.list(key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let Some(at) = list.iter().position(|element| element == pivot) else {
        call.reply.integer(-1);
        return Ok(());
    };
    let len = list.len() + 1;
    if let Some(list) = call.keys.list_mut(key)? {
        list.insert(at + after, call.args.at(4));
    }
    call.event(b'l', "linsert", key);
    call.reply.integer(len as i64);
    Ok(())
}

/// The part of `0..len` from one index to another, both of which are in it and may count from the
/// end; empty when there is none.
pub fn clamp(start: i64, stop: i64, len: usize) -> std::ops::Range<usize> {
    let from = |index: i64| if index < 0 { index.saturating_add(len as i64) } else { index };
    let (start, stop) = (from(start).max(0), from(stop));
    if start > stop || start >= len as i64 {
        return 0..0;
    }
    start as usize..(stop as usize + 1).min(len)
}

fn bounds(args: Args<'_>) -> Result<(i64, i64), Failure> {
    Ok((integer(args.at(2))?, integer(args.at(3))?))
}

fn lrange(call: &mut Call<'_>) -> Outcome {
    let (start, stop) = bounds(call.args)?;
    let Some(list) = call.keys.list(call.args.at(1))? else {
        call.reply.array(0);
        return Ok(());
    };
    let range = clamp(start, stop, list.len());
    call.reply.array(range.len());
    list.range(range.start, range.end).for_each(|element| call.reply.bulk(element));
    Ok(())
}

fn ltrim(call: &mut Call<'_>) -> Outcome {
    let (start, stop) = bounds(call.args)?;
    let key = call.args.at(1);
    if call.keys.list(key)?.is_none() {
        call.reply.ok();
        return Ok(());
    }
    if let Some(list) = call.keys.list_mut(key)? {
        let len = list.len();
        let kept = clamp(start, stop, len);
        let (before, behind) = match kept.is_empty() {
            true => (len, 0),
            false => (kept.start, len - kept.end),
        };
        (0..before).for_each(|_| drop(list.pop_front()));
        (0..behind).for_each(|_| drop(list.pop_back()));
    }
    removed(call, key, "ltrim")?;
    call.reply.ok();
    Ok(())
}

fn lrem(call: &mut Call<'_>) -> Outcome {
    let count = integer(call.args.at(2))?;
    let (key, element) = (call.args.at(1), call.args.at(3));
    let Some(list) = call.keys.list(key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let limit = match usize::try_from(count.unsigned_abs()) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(limit) => limit,
    };
    let same = |(at, other): (usize, &[u8])| (other == element).then_some(at);
    let mut places: Vec<usize> = match count < 0 {
        true => list.iter().enumerate().rev().filter_map(same).take(limit).collect(),
        false => list.iter().enumerate().filter_map(same).take(limit).collect(),
    };
    if count < 0 {
        places.reverse();
    }
    if !places.is_empty() {
        if let Some(list) = call.keys.list_mut(key)? {
            list.remove(&places);
        }
        removed(call, key, "lrem")?;
    }
    call.reply.integer(places.len() as i64);
    Ok(())
}

/// RANK, COUNT and MAXLEN of LPOS.
struct Search {
    /// Matches that are passed over.
    skipped: usize,
    backward: bool,
    count: Option<usize>,
    /// How many elements are looked at.
    len: usize,
}

fn lpos(call: &mut Call<'_>) -> Outcome {
    let search = parse_search(call.args)?;
    let element = call.args.at(2);
    let Some(list) = call.keys.list(call.args.at(1))? else {
        match search.count {
            Some(_) => call.reply.array(0),
            None => call.reply.null(),
        }
        return Ok(());
    };
    let same = |(at, other): (usize, &[u8])| (other == element).then_some(at);
    let limit = match search.count {
        None => 1,
        Some(0) => usize::MAX,
        Some(count) => count,
    };
    let Search { skipped, len, .. } = search;
    let elements = list.iter().enumerate();
    let found: Vec<usize> = match search.backward {
        true => elements.rev().take(len).filter_map(same).skip(skipped).take(limit).collect(),
        false => elements.take(len).filter_map(same).skip(skipped).take(limit).collect(),
    };
    match (search.count, found.first()) {
        (Some(_), _) => {
            call.reply.array(found.len());
            found.iter().for_each(|at| call.reply.integer(*at as i64));
        }
        (None, Some(at)) => call.reply.integer(*at as i64),
        (None, None) => call.reply.null(),
    }
    Ok(())
}

fn parse_search(args: Args<'_>) -> Result<Search, Failure> {
    const ZERO: Failure = Failure::text(
        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or \
         use negative to start from the end of the list",
    );
    let mut search = Search { skipped: 0, backward: false, count: None, len: usize::MAX };
    let mut at = 3;
    while at < args.len() {
        let Some(value) = args.get(at + 1) else { return Err(Failure::SYNTAX) };
        match () {
            () if args.is(at, "rank") => {
                let rank = integer(value)?;
                if rank == i64::MIN {
                    return Err(Failure::text(
                        "ERR value is out of range, value must between -9223372036854775807 and \
                         9223372036854775807",
                    ));
                }
                search.backward = rank < 0;
                search.skipped = rank.unsigned_abs().checked_sub(1).ok_or(ZERO)? as usize;
            }
            () if args.is(at, "count") => {
                search.count = Some(at_least_0(value, "ERR COUNT can't be negative")?);
            }
            () if args.is(at, "maxlen") => {
                search.len = match at_least_0(value, "ERR MAXLEN can't be negative")? {
                    0 => usize::MAX,
                    len => len,
                };
            }
            () => return Err(Failure::SYNTAX),
        }
        at += 2;
    }
    Ok(search)
}

fn lmove(call: &mut Call<'_>) -> Outcome {
    let (from, to) = (End::parse(call.args.at(3))?, End::parse(call.args.at(4))?);
    move_element(call, from, to)
}

/// From the first key's list to the second's, which may be the same.
pub fn move_element(call: &mut Call<'_>, from: End, to: End) -> Outcome {
    let (source, target) = (call.args.at(1), call.args.at(2));
    if call.keys.list(source)?.is_none() {
        call.reply.null();
        return Ok(());
    }
    call.keys.list(target)?;
    let element = call.keys.list_mut(source)?.and_then(|list| from.pop(list)).unwrap_or_default();
    to.push(call.keys.list_or_new(target)?, &element);
    call.reply.bulk(&element);
    call.event(b'l', to.pushed(), target);
    removed(call, source, from.popped())
}

/// LMPOP's and BLMPOP's words from `numkeys` on: how many keys, from which end, how many elements.
pub fn parse_mpop(args: Args<'_>, at: usize) -> Result<(usize, End, usize), Failure> {
    let (keys, place) = count_of_keys(args, at)?;
    let end = End::parse(args.at(place))?;
    Ok((keys, end, count_option(args, place + 1)?))
}

/// How many keys there are, and the place of the word behind them.
pub fn count_of_keys(args: Args<'_>, at: usize) -> Result<(usize, usize), Failure> {
    let keys = parse_integer(args.at(at)).and_then(|keys| usize::try_from(keys).ok());
    let keys = keys.filter(|keys| *keys > 0);
    let keys = keys.ok_or(Failure::text("ERR numkeys should be greater than 0"))?;
    match at.checked_add(keys).and_then(|last| last.checked_add(1)) {
        Some(place) if place < args.len() => Ok((keys, place)),
        _ => Err(Failure::SYNTAX),
    }
}

/// `COUNT n` or nothing, which is 1.
pub fn count_option(args: Args<'_>, at: usize) -> Result<usize, Failure> {
    if at == args.len() {
        return Ok(1);
    }
    if !args.is(at, "count") || at + 1 >= args.len() {
        return Err(Failure::SYNTAX);
    }
    let count = parse_integer(args.at(at + 1));
    let count = count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
    let count = count.ok_or(Failure::text("ERR count should be greater than 0"))?;
    if at + 2 < args.len() {
        return Err(Failure::SYNTAX);
    }
    Ok(count)
}

fn lmpop(call: &mut Call<'_>) -> Outcome {
    let (keys, end, count) = parse_mpop(call.args, 1)?;
    if !pop_first(call, 2..2 + keys, end, Some(count))? {
        call.reply.null_array();
    }
    Ok(())
}

/// Pops from the first of the keys that has a list, and replies with key and elements: one alone,
/// or an array of up to `count`. False when there is none.
pub fn pop_first(
    call: &mut Call<'_>,
    keys: std::ops::Range<usize>,
    end: End,
    count: Option<usize>,
) -> Result<bool, Failure> {
    for key in keys.map(|at| call.args.at(at)) {
        let Some(len) = call.keys.list(key)?.map(Tracked::len) else { continue };
        call.reply.array(2);
        call.reply.bulk(key);
        match count {
            Some(count) => pop_many(call, key, end, count.min(len))?,
            None => {
                let element = call.keys.list_mut(key)?.and_then(|list| end.pop(list));
                call.reply.bulk(&element.unwrap_or_default());
                removed(call, key, end.popped())?;
            }
        }
        return Ok(true);
    }
    Ok(false)
}
