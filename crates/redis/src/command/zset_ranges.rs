//! Ranges of sorted sets: by rank, by score, by name.

use std::ops::Range;

use super::lists::clamp;
use super::number::integer;
use super::zsets::{removed, reply_members};
use super::{Command, Flags, Keys};
use crate::call::{whole, Call};
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

/// `zslParseRange`: `(` excludes, and a zero byte is the end.
fn score_limit(word: &[u8]) -> Option<Limit<f64>> {
    let word = whole(word);
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

    /// Whether nothing can be between the two (`sdscmplex`).
    fn is_past(self, max: Edge<'_>) -> bool {
        match (self, max) {
            (Edge::At(min), Edge::At(max)) => {
                min.at > max.at || (min.at == max.at && (min.excluded || max.excluded))
            }
            (Edge::Least, Edge::Least) | (Edge::Greatest, _) => true,
            (Edge::At(_), Edge::Least) => true,
            (Edge::Least, _) | (Edge::At(_), Edge::Greatest) => false,
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
    fn ranks(&self, zset: &Zset) -> Range<usize> {
        self.behind(zset, 0, false)
    }

    /// Without the first `skip` members, counted from the end for `reverse`.
    fn behind(&self, zset: &Zset, skip: usize, reverse: bool) -> Range<usize> {
        let (from, to) = match *self {
            Span::Ranks(start, stop) => return clamp(start, stop, zset.len()),
            Span::Names(min, max) if is_walked(zset) => {
                return match reverse {
                    true => walk_back(zset, min, max, skip),
                    false => walk(zset, min, max, skip),
                };
            }
            Span::Scores(min, max) => (
                zset.count_while(|_, score| score < min.at || (min.excluded && score == min.at)),
                zset.count_while(|_, score| score < max.at || (!max.excluded && score == max.at)),
            ),
            Span::Names(min, max) => (
                zset.count_while(|name, _| min.is_behind(name)),
                zset.count_while(|name, _| max.ends_behind(name)),
            ),
        };
        let to = to.max(from);
        match reverse {
            true => from..to.saturating_sub(skip).max(from),
            false => from.saturating_add(skip).min(to)..to,
        }
    }
}

/// Larger sets are no lists in Redis (`zset-max-listpack-entries`).
const WALKED_MAX: usize = 128;

/// Whether scores differ, so that names are in no order. What a range of names has then is left
/// open by Redis's documentation; of a small set it is what a walk over it finds.
fn is_walked(zset: &Zset) -> bool {
    let score = |rank| zset.range(rank, rank + 1).next().map(|(_, score)| score);
    (2..=WALKED_MAX).contains(&zset.len()) && score(0) != score(zset.len() - 1)
}

/// The names in the order of scores, each with whether it is at or above `min` and at or below
/// `max`; none when a look at the bounds and at both ends says that the range is empty
/// (`zzlIsInLexRange`).
fn sides(zset: &Zset, min: Edge<'_>, max: Edge<'_>) -> Vec<(bool, bool)> {
    let side = |name: &[u8]| (!min.is_behind(name), max.ends_behind(name));
    let all: Vec<(bool, bool)> = zset.range(0, zset.len()).map(|(name, _)| side(name)).collect();
    let ends = all.last().is_some_and(|last| last.0) && all.first().is_some_and(|first| first.1);
    if ends && !min.is_past(max) {
        all
    } else {
        Vec::new()
    }
}

/// `zzlFirstInLexRange`, and as far as the names are in the range.
fn walk(zset: &Zset, min: Edge<'_>, max: Edge<'_>, skip: usize) -> Range<usize> {
    let all = sides(zset, min, max);
    let first = all.iter().position(|(above, _)| *above).filter(|at| all[*at].1);
    let Some(from) = first.map(|at| at.saturating_add(skip).min(all.len())) else { return 0..0 };
    from..from + all[from..].iter().take_while(|(_, below)| *below).count()
}

/// As [`walk`] from the other end (`zzlLastInLexRange`).
fn walk_back(zset: &Zset, min: Edge<'_>, max: Edge<'_>, skip: usize) -> Range<usize> {
    let all = sides(zset, min, max);
    let last = all.iter().rposition(|(_, below)| *below).filter(|at| all[*at].0);
    let Some(to) = last.map(|at| (at + 1).saturating_sub(skip)) else { return 0..0 };
    to - all[..to].iter().rev().take_while(|(above, _)| *above).count()..to
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
    fn ranks(&self, zset: &Zset) -> Range<usize> {
        let len = zset.len();
        if let Span::Ranks(..) = self.span {
            // Ranks count from the other end.
            let all = self.span.ranks(zset);
            return match self.reverse {
                true => len - all.end..len - all.start,
                false => all,
            };
        }
        let Ok(skip) = usize::try_from(self.offset) else { return 0..0 };
        let left = self.span.behind(zset, skip, self.reverse);
        let take = usize::try_from(self.limit).map_or(left.len(), |limit| limit.min(left.len()));
        match self.reverse {
            true => left.end - take..left.end,
            false => left.start..left.start + take,
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
