//! Ranges of sorted sets: by rank, by score, by name.

use super::lists::clamp;
use super::number::integer;
use super::zsets::{removed, reply_members};
use super::{Command, Flags, Keys};
use crate::call::Call;
use crate::double;
use crate::failure::{Failure, Outcome};
use crate::keyspace::Expiry;
use crate::value::{Tracked, Value, Zset};

const READ: Flags = Flags::READONLY;
const FAST: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE;

pub const COMMANDS: &[Command] = &[
    of("zrange", -4, READ, ONE, |call| range_to_client(call, None, None)),
    of("zrevrange", -4, READ, ONE, |call| range_to_client(call, Some(By::Rank), Some(true))),
    of("zrangebyscore", -4, READ, ONE, |call| range_to_client(call, SCORE, Some(false))),
    of("zrevrangebyscore", -4, READ, ONE, |call| range_to_client(call, SCORE, Some(true))),
    of("zrangebylex", -4, READ, ONE, |call| range_to_client(call, LEX, Some(false))),
    of("zrevrangebylex", -4, READ, ONE, |call| range_to_client(call, LEX, Some(true))),
    of("zrangestore", -5, WRITE.and(Flags::DENY_OOM), Keys::Range(1, 2, 1), zrangestore),
    of("zcount", 4, FAST, ONE, |call| count(call, By::Score)),
    of("zlexcount", 4, FAST, ONE, |call| count(call, By::Lex)),
    of("zremrangebyrank", 4, WRITE, ONE, |call| remove(call, By::Rank, "zremrangebyrank")),
    of("zremrangebyscore", 4, WRITE, ONE, |call| remove(call, By::Score, "zremrangebyscore")),
    of("zremrangebylex", 4, WRITE, ONE, |call| remove(call, By::Lex, "zremrangebylex")),
];

const ONE: Keys = Keys::Range(1, 1, 1);
const SCORE: Option<By> = Some(By::Score);
const LEX: Option<By> = Some(By::Lex);

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
enum By {
    Rank,
    Score,
    Lex,
}

/// From one member to another.
#[derive(Debug, Clone, Copy)]
enum Span<'a> {
    /// Both are in it, and may count from the end.
    Ranks(i64, i64),
    Scores(Limit<f64>, Limit<f64>),
    Names(Edge<'a>, Edge<'a>),
}

#[derive(Debug, Clone, Copy)]
pub struct Limit<T> {
    pub at: T,
    pub excluded: bool,
}

/// Where a range of names begins or ends.
#[derive(Debug, Clone, Copy)]
enum Edge<'a> {
    Least,
    At(Limit<&'a [u8]>),
    Greatest,
}

/// A range as it was asked for.
struct Wanted<'a> {
    span: Span<'a>,
    reverse: bool,
    with_scores: bool,
    offset: i64,
    /// Negative: all.
    limit: i64,
}

impl By {
    fn parse<'a>(self, min: &'a [u8], max: &'a [u8]) -> Result<Span<'a>, Failure> {
        Ok(match self {
            By::Rank => Span::Ranks(integer(min)?, integer(max)?),
            By::Score => {
                const WHY: Failure = Failure::text("ERR min or max is not a float");
                let (min, max) = (score_limit(min).ok_or(WHY)?, score_limit(max).ok_or(WHY)?);
                Span::Scores(min, max)
            }
            By::Lex => {
                const WHY: Failure = Failure::text("ERR min or max not valid string range item");
                Span::Names(edge(min).ok_or(WHY)?, edge(max).ok_or(WHY)?)
            }
        })
    }
}

/// `zslParseRange`: `(` excludes.
fn score_limit(word: &[u8]) -> Option<Limit<f64>> {
    let rest = word.strip_prefix(b"(");
    let at = double::parse(rest.unwrap_or(word)).filter(|at| !at.is_nan())?;
    Some(Limit { at, excluded: rest.is_some() })
}

/// `zslParseLexRangeItem`.
fn edge(word: &[u8]) -> Option<Edge<'_>> {
    Some(match word {
        b"-" => Edge::Least,
        b"+" => Edge::Greatest,
        [b'[', at @ ..] => Edge::At(Limit { at, excluded: false }),
        [b'(', at @ ..] => Edge::At(Limit { at, excluded: true }),
        _ => return None,
    })
}

impl Edge<'_> {
    /// Whether a range that begins here begins behind the name.
    fn is_behind(self, name: &[u8]) -> bool {
        match self {
            Edge::Least => false,
            Edge::Greatest => true,
            Edge::At(Limit { at, excluded }) => name < at || (excluded && name == at),
        }
    }

    /// Whether a range that ends here ends behind the name.
    fn ends_behind(self, name: &[u8]) -> bool {
        match self {
            Edge::Least => false,
            Edge::Greatest => true,
            Edge::At(Limit { at, excluded }) => name < at || (!excluded && name == at),
        }
    }
}

impl Span<'_> {
    /// The ranks of its members.
    fn ranks(&self, zset: &Zset) -> std::ops::Range<usize> {
        let (from, to) = match *self {
            Span::Ranks(start, stop) => return clamp(start, stop, zset.len()),
            Span::Scores(min, max) => (
                zset.count_while(|_, score| score < min.at || (min.excluded && score == min.at)),
                zset.count_while(|_, score| score < max.at || (!max.excluded && score == max.at)),
            ),
            Span::Names(min, max) => (
                zset.count_while(|name, _| min.is_behind(name)),
                zset.count_while(|name, _| max.ends_behind(name)),
            ),
        };
        from..to.max(from)
    }
}

impl<'a> Wanted<'a> {
    /// From `<min> <max>` at `at` on. `by` and `reverse` are given where the command's name says
    /// them; ZRANGE has options.
    fn parse(
        call: &Call<'a>,
        at: usize,
        by: Option<By>,
        reverse: Option<bool>,
        stores: bool,
    ) -> Result<Wanted<'a>, Failure> {
        let args = call.args;
        let (mut chosen, mut reversed) = (by, reverse);
        let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
        let mut option = at + 2;
        while option < args.len() {
            match () {
                () if !stores && args.is(option, "withscores") => with_scores = true,
                () if args.is(option, "limit") && option + 2 < args.len() => {
                    offset = integer(args.at(option + 1))?;
                    limit = integer(args.at(option + 2))?;
                    option += 2;
                }
                () if reversed.is_none() && args.is(option, "rev") => reversed = Some(true),
                () if chosen.is_none() && args.is(option, "bylex") => chosen = LEX,
                () if chosen.is_none() && args.is(option, "byscore") => chosen = SCORE,
                () => return Err(Failure::SYNTAX),
            }
            option += 1;
        }
        let (by, reverse) = (chosen.unwrap_or(By::Rank), reversed.unwrap_or(false));
        if limit != -1 && by == By::Rank {
            return Err(Failure::text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        if with_scores && by == By::Lex {
            return Err(Failure::text(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let (first, second) = (args.at(at), args.at(at + 1));
        let span = match reverse && by != By::Rank {
            true => by.parse(second, first)?,
            false => by.parse(first, second)?,
        };
        Ok(Wanted { span, reverse, with_scores, offset, limit })
    }

    /// The ranks of the members that it has, LIMIT applied.
    fn ranks(&self, zset: &Zset) -> std::ops::Range<usize> {
        let len = zset.len();
        let all = self.span.ranks(zset);
        if let Span::Ranks(..) = self.span {
            // Ranks count from the other end.
            return match self.reverse {
                true => len - all.end..len - all.start,
                false => all,
            };
        }
        let Ok(skip) = usize::try_from(self.offset) else { return 0..0 };
        let skip = skip.min(all.len());
        let left = all.len() - skip;
        let take = usize::try_from(self.limit).map_or(left, |limit| limit.min(left));
        match self.reverse {
            true => all.end - skip - take..all.end - skip,
            false => all.start + skip..all.start + skip + take,
        }
    }
}

fn range_to_client(call: &mut Call<'_>, by: Option<By>, reverse: Option<bool>) -> Outcome {
    let wanted = Wanted::parse(call, 2, by, reverse, false)?;
    let Some(zset) = call.keys.zset(call.args.at(1))? else {
        call.reply.array(0);
        return Ok(());
    };
    let ranks = wanted.ranks(zset);
    let members = zset.range(ranks.start, ranks.end);
    match wanted.reverse {
        true => reply_members(call.reply, ranks.len(), members.rev(), wanted.with_scores),
        false => reply_members(call.reply, ranks.len(), members, wanted.with_scores),
    }
    Ok(())
}

fn zrangestore(call: &mut Call<'_>) -> Outcome {
    let wanted = Wanted::parse(call, 3, None, None, true)?;
    let (target, source) = (call.args.at(1), call.args.at(2));
    let found = call.keys.zset(source)?.map(|zset| {
        let ranks = wanted.ranks(zset);
        zset.range(ranks.start, ranks.end).map(|(name, score)| (name.into(), score)).collect()
    });
    let members: Vec<(Box<[u8]>, f64)> = found.unwrap_or_default();
    store(call, target, members, "zrangestore")
}

/// Makes these the key's members, whatever it was, and replies with how many they are; without any
/// the key is gone.
pub fn store(
    call: &mut Call<'_>,
    key: &[u8],
    members: Vec<(Box<[u8]>, f64)>,
    event: &'static str,
) -> Outcome {
    let count = members.len();
    if count > 0 {
        let zset = Value::Zset(Box::new(Zset::collect(members)));
        call.keys.set(key, zset, Expiry::Never)?;
        call.event(b'z', event, key);
    } else if call.keys.remove(key)? {
        call.event(b'g', "del", key);
    }
    call.reply.integer(count as i64);
    Ok(())
}

fn count(call: &mut Call<'_>, by: By) -> Outcome {
    let span = by.parse(call.args.at(2), call.args.at(3))?;
    let count = call.keys.zset(call.args.at(1))?.map_or(0, |zset| span.ranks(zset).len());
    call.reply.integer(count as i64);
    Ok(())
}

fn remove(call: &mut Call<'_>, by: By, event: &'static str) -> Outcome {
    let span = by.parse(call.args.at(2), call.args.at(3))?;
    let key = call.args.at(1);
    let ranks = call.keys.zset(key)?.map_or(0..0, |zset| span.ranks(zset));
    if !ranks.is_empty() {
        if let Some(zset) = call.keys.zset_mut(key)? {
            zset.remove_range(ranks.start, ranks.end);
        }
        removed(call, key, event)?;
    }
    call.reply.integer(ranks.len() as i64);
    Ok(())
}
