//! Commands of sorted sets: adding, removing, looking at single members.

use super::number::integer;
use super::{glob, Command, Flags, Keys};
use crate::args::Args;
use crate::call::Call;
use crate::double;
use crate::failure::{Failure, Outcome};
use crate::value::{Tracked, Zset};

const WRITE: Flags = Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST);
const READ: Flags = Flags::READONLY;
const FAST: Flags = Flags::READONLY.and(Flags::FAST);

pub const COMMANDS: &[Command] = &[
    of("zadd", -4, WRITE, zadd),
    of("zincrby", 4, WRITE, zincrby),
    of("zrem", -3, Flags::WRITE.and(Flags::FAST), zrem),
    of("zcard", 2, FAST, zcard),
    of("zscore", 3, FAST, zscore),
    of("zmscore", -3, FAST, zmscore),
    of("zrank", -3, FAST, |call| zrank(call, "zrank", false)),
    of("zrevrank", -3, FAST, |call| zrank(call, "zrevrank", true)),
    of("zrandmember", -2, READ, zrandmember),
    of("zscan", -3, READ, zscan),
];

const fn of(
    name: &'static str,
    arity: i32,
    flags: Flags,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys: Keys::Range(1, 1, 1), group: "sortedset", run }
}

const NAN: Failure = Failure::text("ERR resulting score is not a number (NaN)");

/// A score or a weight.
pub fn score(word: &[u8]) -> Result<f64, Failure> {
    double::argument(word).ok_or(Failure::NOT_A_FLOAT)
}

/// ZADD's options.
#[derive(Debug, Clone, Copy, Default)]
pub struct Adding {
    pub only_new: bool,
    pub only_there: bool,
    pub if_greater: bool,
    pub if_less: bool,
    /// Members whose scores have changed count as well as new ones.
    pub count_changed: bool,
    pub increment: bool,
}

/// What has become of one member.
struct Added {
    new: bool,
    changed: bool,
    /// None when the options kept it as it was.
    score: Option<f64>,
}

impl Adding {
    /// Reads options from `at` on; gives where the scores begin.
    fn parse(&mut self, args: Args<'_>, mut at: usize) -> usize {
        while at < args.len() {
            match () {
                () if args.is(at, "nx") => self.only_new = true,
                () if args.is(at, "xx") => self.only_there = true,
                () if args.is(at, "gt") => self.if_greater = true,
                () if args.is(at, "lt") => self.if_less = true,
                () if args.is(at, "ch") => self.count_changed = true,
                () if args.is(at, "incr") => self.increment = true,
                () => break,
            }
            at += 1;
        }
        at
    }

    fn check(self, members: usize) -> Outcome {
        if self.only_new && self.only_there {
            return Err(Failure::text("ERR XX and NX options at the same time are not compatible"));
        }
        let (greater, less) = (self.if_greater, self.if_less);
        if (self.only_new && (greater || less)) || (greater && less) {
            return Err(Failure::text(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if self.increment && members > 1 {
            return Err(Failure::text("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// What the member's score is to be; none when it stays.
    fn decide(self, before: Option<f64>, score: f64) -> Result<Option<f64>, Failure> {
        let Some(before) = before else { return Ok((!self.only_there).then_some(score)) };
        if self.only_new {
            return Ok(None);
        }
        let score = if self.increment { before + score } else { score };
        if score.is_nan() {
            return Err(NAN);
        }
        let kept = (self.if_less && score >= before) || (self.if_greater && score <= before);
        Ok((!kept).then_some(score))
    }

    fn add(self, zset: &mut Zset, member: &[u8], score: f64) -> Result<Added, Failure> {
        let before = zset.score(member);
        let Some(score) = self.decide(before, score)? else {
            return Ok(Added { new: false, changed: false, score: None });
        };
        zset.insert(member, score);
        let changed = before.is_some_and(|before| before != score);
        Ok(Added { new: before.is_none(), changed, score: Some(score) })
    }
}

fn zadd(call: &mut Call<'_>) -> Outcome {
    let mut adding = Adding::default();
    let first = adding.parse(call.args, 2);
    let pairs = call.args.from(first);
    if pairs.len() % 2 != 0 || pairs.is_empty() {
        return Err(Failure::SYNTAX);
    }
    adding.check(pairs.len() / 2)?;
    let mut scores = Vec::with_capacity(pairs.len() / 2);
    for at in (0..pairs.len()).step_by(2) {
        scores.push((score(pairs.at(at))?, pairs.at(at + 1)));
    }
    add(call, adding, &scores)
}

fn zincrby(call: &mut Call<'_>) -> Outcome {
    // It reads options as ZADD does, and then there is no pair left.
    if Adding::default().parse(call.args, 2) > 2 {
        return Err(Failure::SYNTAX);
    }
    let by = score(call.args.at(2))?;
    let adding = Adding { increment: true, ..Adding::default() };
    let member = call.args.at(3);
    add(call, adding, &[(by, member)])
}

/// Adds members to the first key's set and replies as ZADD does.
pub fn add(call: &mut Call<'_>, adding: Adding, members: &[(f64, &[u8])]) -> Outcome {
    let key = call.args.at(1);
    let there = call.keys.zset(key)?;
    // With INCR there is one member: whether it fails is known before anything changes.
    if let (true, Some(zset), [(score, member)]) = (adding.increment, there, members) {
        adding.decide(zset.score(member), *score)?;
    }
    let (mut new, mut changed, mut last) = (0, 0, None);
    if there.is_some() || (!adding.only_there && !members.is_empty()) {
        let zset = call.keys.zset_or_new(key)?;
        for (score, member) in members {
            let added = adding.add(zset, member, *score)?;
            new += i64::from(added.new);
            changed += i64::from(added.changed);
            last = added.score;
        }
    }
    match (adding.increment, last) {
        (true, Some(score)) => call.reply.double(score),
        (true, None) => call.reply.null(),
        (false, _) => call.reply.integer(if adding.count_changed { new + changed } else { new }),
    }
    if new + changed > 0 {
        call.event(b'z', if adding.increment { "zincr" } else { "zadd" }, key);
    }
    Ok(())
}

fn zrem(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let mut removed = 0;
    if call.keys.zset(key)?.is_some() {
        let members = call.args.from(2);
        if let Some(zset) = call.keys.zset_mut(key)? {
            removed = members.iter().filter(|member| zset.remove(member).is_some()).count();
        }
        if removed > 0 {
            self::removed(call, key, "zrem")?;
        }
    }
    call.reply.integer(removed as i64);
    Ok(())
}

/// Members have gone, and with the last one the key.
pub fn removed(call: &mut Call<'_>, key: &[u8], event: &'static str) -> Outcome {
    call.event(b'z', event, key);
    if call.keys.settle(key)? {
        call.event(b'g', "del", key);
    }
    Ok(())
}

fn zcard(call: &mut Call<'_>) -> Outcome {
    let len = call.keys.zset(call.args.at(1))?.map_or(0, Tracked::len);
    call.reply.integer(len as i64);
    Ok(())
}

fn zscore(call: &mut Call<'_>) -> Outcome {
    let zset = call.keys.zset(call.args.at(1))?;
    match zset.and_then(|zset| zset.score(call.args.at(2))) {
        Some(score) => call.reply.double(score),
        None => call.reply.null(),
    }
    Ok(())
}

fn zmscore(call: &mut Call<'_>) -> Outcome {
    let zset = call.keys.zset(call.args.at(1))?;
    let members = call.args.from(2);
    call.reply.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => call.reply.double(score),
            None => call.reply.null(),
        }
    }
    Ok(())
}

fn zrank(call: &mut Call<'_>, name: &str, reverse: bool) -> Outcome {
    if call.args.len() > 4 {
        return Err(Failure::said(format!("ERR wrong number of arguments for '{name}' command")));
    }
    let with_score = call.args.len() > 3;
    if with_score && !call.args.is(3, "withscore") {
        return Err(Failure::SYNTAX);
    }
    let zset = call.keys.zset(call.args.at(1))?;
    let found = zset.and_then(|zset| Some((zset.rank(call.args.at(2))?, zset.len())));
    let Some(((rank, score), len)) = found else {
        match with_score {
            true => call.reply.null_array(),
            false => call.reply.null(),
        }
        return Ok(());
    };
    let rank = if reverse { len - 1 - rank } else { rank };
    if with_score {
        call.reply.array(2);
    }
    call.reply.integer(rank as i64);
    if with_score {
        call.reply.double(score);
    }
    Ok(())
}

/// Replies with so many members: flat pairs in RESP2, arrays of two in RESP3, or names alone.
pub fn reply_members<'a>(
    reply: &mut dyn crate::reply::Reply,
    len: usize,
    members: impl Iterator<Item = (&'a [u8], f64)>,
    with_scores: bool,
) {
    let nested = with_scores && reply.protocol() > 2;
    reply.array(if with_scores && !nested { len * 2 } else { len });
    for (member, score) in members {
        if nested {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(score);
        }
    }
}

/// Members that one ZRANDMEMBER may ask for: its reply is made in memory.
const RANDOM_MAX: u64 = 1 << 24;

fn zrandmember(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let key = args.at(1);
    if args.len() == 2 {
        let random = &mut call.server.random;
        match call.keys.zset(key)?.and_then(|zset| zset.at(random.below(zset.len()))) {
            Some((member, _)) => call.reply.bulk(member),
            None => call.reply.null(),
        }
        return Ok(());
    }
    let count = integer(args.at(2))?;
    if count == i64::MIN {
        return Err(Failure::text(
            "ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        ));
    }
    let with_scores = args.len() > 3;
    if args.len() > 4 || (with_scores && !args.is(3, "withscores")) {
        return Err(Failure::SYNTAX);
    }
    if with_scores && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(Failure::text("ERR value is out of range"));
    }
    let random = &mut call.server.random;
    let Some(zset) = call.keys.zset(key)? else {
        call.reply.array(0);
        return Ok(());
    };
    let ranks = match usize::try_from(count) {
        Ok(count) if count >= zset.len() => (0..zset.len()).collect(),
        Ok(count) => random.distinct(count, zset.len()),
        Err(_) if count.unsigned_abs() > RANDOM_MAX => {
            return Err(Failure::text("ERR value is out of range"));
        }
        Err(_) => (0..count.unsigned_abs()).map(|_| random.below(zset.len())).collect(),
    };
    let members = ranks.iter().filter_map(|rank| zset.at(*rank));
    reply_members(call.reply, ranks.len(), members, with_scores);
    Ok(())
}

fn zscan(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let cursor = cursor(args.at(2))?;
    let settings = &call.server.settings;
    let Some(zset) = call.keys.zset(args.at(1))? else {
        call.reply.array(2);
        call.reply.bulk(b"0");
        call.reply.array(0);
        return Ok(());
    };
    let (count, pattern) = scan_options(args)?;
    let packed = zset.encoding(settings) == "listpack";
    let mut found = Vec::new();
    let matches = |member: &[u8]| pattern.is_none_or(|of| glob::matches(of, member, false));
    let next = if packed {
        found.extend(zset.iter().filter(|(member, _)| matches(member)));
        0
    } else {
        zset.scan(cursor, count, |member, score| {
            if matches(member) {
                found.push((member, score));
            }
        })
    };
    call.reply.array(2);
    call.reply.bulk(itoa::Buffer::new().format(next).as_bytes());
    call.reply.array(found.len() * 2);
    for (member, score) in found {
        call.reply.bulk(member);
        // Redis keeps a small set's scores as texts, and shows 17 digits of a large one's.
        let text = if packed { double::text(score) } else { double::precise(score) };
        call.reply.bulk(&text);
    }
    Ok(())
}

/// A cursor (`parseScanCursorOrReply`): what `strtoul` reads whole.
fn cursor(word: &[u8]) -> Result<u64, Failure> {
    const INVALID: Failure = Failure::text("ERR invalid cursor");
    if word.is_empty() {
        return Ok(0);
    }
    let (negative, digits) = match word.split_first() {
        Some((b'-', digits)) => (true, digits),
        Some((b'+', digits)) => (false, digits),
        _ => (false, word),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(INVALID);
    }
    let digits = std::str::from_utf8(digits).map_err(|_| INVALID)?;
    let number: u64 = digits.parse().map_err(|_| INVALID)?;
    Ok(if negative { number.wrapping_neg() } else { number })
}

/// COUNT and MATCH.
fn scan_options<'a>(args: Args<'a>) -> Result<(usize, Option<&'a [u8]>), Failure> {
    let (mut count, mut pattern, mut at) = (10, None, 3);
    while at < args.len() {
        let Some(value) = args.get(at + 1) else { return Err(Failure::SYNTAX) };
        match () {
            () if args.is(at, "count") => {
                count = usize::try_from(integer(value)?).unwrap_or(0);
                if count == 0 {
                    return Err(Failure::SYNTAX);
                }
            }
            () if args.is(at, "match") => pattern = Some(value).filter(|of| *of != b"*"),
            () => return Err(Failure::SYNTAX),
        }
        at += 2;
    }
    Ok((count, pattern))
}
