//! Unions, intersections and differences of sorted sets; sets take part with score 1.

use std::cmp::Ordering;

use hashbrown::HashMap;

use super::number::integer;
use super::zset_ranges::store;
use super::zsets::reply_members;
use super::{Command, Flags, Keys};
use crate::args::Args;
use crate::call::Call;
use crate::double;
use crate::failure::{Failure, Outcome};
use crate::value::{parse_integer, Tracked, Value};

const READ: Flags = Flags::READONLY.and(Flags::MOVABLE_KEYS);
const WRITE: Flags = Flags::WRITE.and(Flags::DENY_OOM).and(Flags::MOVABLE_KEYS);

pub const COMMANDS: &[Command] = &[
    of("zunion", -3, READ, SOURCES, |call| run(call, "zunion", Operation::Union, false)),
    of("zinter", -3, READ, SOURCES, |call| run(call, "zinter", Operation::Inter, false)),
    of("zdiff", -3, READ, SOURCES, |call| run(call, "zdiff", Operation::Diff, false)),
    of("zintercard", -3, READ, SOURCES, zintercard),
    of("zunionstore", -4, WRITE, STORED, |call| run(call, "zunionstore", Operation::Union, true)),
    of("zinterstore", -4, WRITE, STORED, |call| run(call, "zinterstore", Operation::Inter, true)),
    of("zdiffstore", -4, WRITE, STORED, |call| run(call, "zdiffstore", Operation::Diff, true)),
];

const SOURCES: Keys = Keys::COUNTED_FIRST;
const STORED: Keys = Keys::By(|args| {
    let mut places = Keys::counted(args, 2)?;
    places.insert(0, 1);
    Some(places)
});

const fn of(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, group: "sortedset", run }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

#[derive(Debug, Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Aggregate::Sum => zero_if_nan(a + b),
            Aggregate::Min if b < a => b,
            Aggregate::Max if b > a => b,
            _ => a,
        }
    }
}

/// inf - inf and 0 * inf are 0 here.
fn zero_if_nan(score: f64) -> f64 {
    if score.is_nan() {
        0.0
    } else {
        score
    }
}

type Member = (Box<[u8]>, f64);

/// A key of the command, with how many members it has and its weight.
#[derive(Debug, Clone, Copy)]
struct Source<'a> {
    key: &'a [u8],
    len: usize,
    weight: f64,
}

/// How many keys there are from behind `at` on, where their number is.
fn count_keys(args: Args<'_>, at: usize, name: &str) -> Result<usize, Failure> {
    let count = integer(args.at(at))?;
    if count < 1 {
        return Err(Failure::said(format!(
            "ERR at least 1 input key is needed for '{name}' command"
        )));
    }
    match usize::try_from(count) {
        Ok(count) if count < args.len() - at => Ok(count),
        _ => Err(Failure::SYNTAX),
    }
}

fn sources<'a>(call: &mut Call<'a>, at: usize, count: usize) -> Result<Vec<Source<'a>>, Failure> {
    let mut sources = Vec::with_capacity(count);
    for key in (at..at + count).map(|at| call.args.at(at)) {
        let len = match call.keys.look(key)? {
            None => 0,
            Some(Value::Zset(zset)) => zset.len(),
            Some(Value::Set(set)) => set.len(),
            Some(_) => return Err(Failure::WRONG_TYPE),
        };
        sources.push(Source { key, len, weight: 1.0 });
    }
    Ok(sources)
}

fn run(call: &mut Call<'_>, name: &'static str, operation: Operation, stores: bool) -> Outcome {
    let at = if stores { 2 } else { 1 };
    let count = count_keys(call.args, at, name)?;
    let mut sources = sources(call, at + 1, count)?;
    let mut aggregate = Aggregate::Sum;
    let mut with_scores = false;
    let args = call.args;
    let mut option = at + 1 + count;
    while option < args.len() {
        let left = args.len() - option;
        let merges = operation != Operation::Diff;
        match () {
            () if merges && left > count && args.is(option, "weights") => {
                for (n, source) in sources.iter_mut().enumerate() {
                    const WHY: Failure = Failure::text("ERR weight value is not a float");
                    source.weight = double::argument(args.at(option + 1 + n)).ok_or(WHY)?;
                }
                option += count;
            }
            () if merges && left > 1 && args.is(option, "aggregate") => {
                option += 1;
                aggregate = match () {
                    () if args.is(option, "sum") => Aggregate::Sum,
                    () if args.is(option, "min") => Aggregate::Min,
                    () if args.is(option, "max") => Aggregate::Max,
                    () => return Err(Failure::SYNTAX),
                };
            }
            () if !stores && args.is(option, "withscores") => with_scores = true,
            () => return Err(Failure::SYNTAX),
        }
        option += 1;
    }
    let mut members = match operation {
        Operation::Union => union(call, sources, aggregate)?,
        Operation::Inter => inter(call, sources, aggregate, usize::MAX)?,
        Operation::Diff => diff(call, &sources)?,
    };
    if stores {
        return store(call, call.args.at(1), members, name);
    }
    members.sort_unstable_by(|(a, x), (b, y)| {
        x.partial_cmp(y).unwrap_or(Ordering::Equal).then_with(|| a.cmp(b))
    });
    let shown = members.iter().map(|(name, score)| (&**name, *score));
    reply_members(call.reply, members.len(), shown, with_scores);
    Ok(())
}

/// Calls `each` with the key's members and their scores, until it is false.
fn each(
    call: &mut Call<'_>,
    key: &[u8],
    mut each: impl FnMut(&[u8], f64) -> bool,
) -> Result<(), Failure> {
    match call.keys.look(key)? {
        Some(Value::Zset(zset)) => {
            let _ = zset.iter().all(|(name, score)| each(name, score));
        }
        Some(Value::Set(set)) => {
            let _ = set.iter().all(|name| each(&name, 1.0));
        }
        _ => {}
    }
    Ok(())
}

fn union(
    call: &mut Call<'_>,
    mut sources: Vec<Source<'_>>,
    aggregate: Aggregate,
) -> Result<Vec<Member>, Failure> {
    sources.sort_by_key(|source| source.len);
    let mut all: HashMap<Box<[u8]>, f64, foldhash::fast::RandomState> = HashMap::default();
    for source in sources {
        each(call, source.key, |name, score| {
            let score = zero_if_nan(source.weight * score);
            match all.get_mut(name) {
                Some(sum) => *sum = aggregate.of(*sum, score),
                None => {
                    all.insert(name.into(), score);
                }
            }
            true
        })?;
    }
    Ok(all.into_iter().collect())
}

/// The members that all have, at most `limit` of them if there is one source.
fn inter(
    call: &mut Call<'_>,
    mut sources: Vec<Source<'_>>,
    aggregate: Aggregate,
    limit: usize,
) -> Result<Vec<Member>, Failure> {
    sources.sort_by_key(|source| source.len);
    let Some((first, others)) = sources.split_first() else { return Ok(Vec::new()) };
    if first.len == 0 {
        return Ok(Vec::new());
    }
    let limit = if others.is_empty() { limit } else { usize::MAX };
    let mut members: Vec<Member> = Vec::new();
    each(call, first.key, |name, score| {
        members.push((name.into(), zero_if_nan(first.weight * score)));
        members.len() < limit
    })?;
    for source in others {
        let of = |name: &[u8], value: &Value| match value {
            Value::Zset(zset) => zset.score(name),
            Value::Set(set) => set.contains(name).then_some(1.0),
            _ => None,
        };
        let Some(value) = call.keys.look(source.key)? else { return Ok(Vec::new()) };
        members.retain_mut(|(name, sum)| match of(name, value) {
            Some(score) => {
                *sum = aggregate.of(*sum, score * source.weight);
                true
            }
            None => false,
        });
    }
    Ok(members)
}

/// The members that only the first has.
fn diff(call: &mut Call<'_>, sources: &[Source<'_>]) -> Result<Vec<Member>, Failure> {
    let mut left: HashMap<Box<[u8]>, f64, foldhash::fast::RandomState> = HashMap::default();
    let Some((first, others)) = sources.split_first() else { return Ok(Vec::new()) };
    each(call, first.key, |name, score| {
        left.insert(name.into(), score);
        true
    })?;
    for source in others {
        let Some(value) = call.keys.look(source.key)? else { continue };
        match value {
            Value::Zset(zset) if zset.len() > left.len() => {
                left.retain(|name, _| zset.score(name).is_none());
            }
            Value::Set(set) if set.len() > left.len() => {
                left.retain(|name, _| !set.contains(name));
            }
            _ => each(call, source.key, |name, _| {
                left.remove(name);
                !left.is_empty()
            })?,
        }
    }
    Ok(left.into_iter().collect())
}

fn zintercard(call: &mut Call<'_>) -> Outcome {
    let count = count_keys(call.args, 1, "zintercard")?;
    let sources = sources(call, 2, count)?;
    let (args, mut limit) = (call.args, usize::MAX);
    let mut option = 2 + count;
    while option < args.len() {
        if !args.is(option, "limit") || option + 1 >= args.len() {
            return Err(Failure::SYNTAX);
        }
        let number = parse_integer(args.at(option + 1)).and_then(|n| usize::try_from(n).ok());
        limit = match number.ok_or(Failure::text("ERR LIMIT can't be negative"))? {
            0 => usize::MAX,
            limit => limit,
        };
        option += 2;
    }
    let found = inter(call, sources, Aggregate::Sum, limit)?.len();
    call.reply.integer(found.min(limit) as i64);
    Ok(())
}
