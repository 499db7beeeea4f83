//! What is delivered and not acknowledged: XPENDING, XCLAIM, XAUTOCLAIM.

use super::{
    bound, id, no_group, parse_id, tell_entry, tell_id, Call, Failure, Id, Outcome, ID_MAX,
    NEW_CONSUMER,
};
use crate::command::number::integer;
use crate::reply::Reply;
use crate::value::group::{Group, Pending};
use crate::value::parse_integer;
use crate::value::stream::Stream;

/// Entries XAUTOCLAIM claims when nothing else is said, and those it looks at for each of them.
const CLAIMED: usize = 100;
const LOOKED_AT: usize = 10;

pub fn xpending(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if args.len() != 3 && !(6..=9).contains(&args.len()) {
        return Err(Failure::SYNTAX);
    }
    let mut range = None;
    if args.len() > 3 {
        let (mut idle, mut at) = (0, 3);
        if args.is(3, "idle") {
            idle = integer(args.at(4))?;
            if args.len() < 8 {
                return Err(Failure::SYNTAX);
            }
            at = 5;
        }
        let count = usize::try_from(integer(args.at(at + 2))?).unwrap_or(0);
        let bounds = (bound(args.at(at), true)?, bound(args.at(at + 1), false)?);
        range = Some((idle, bounds, count, args.get(at + 3)));
    }
    let now = call.keys.now();
    let stream = call.keys.stream(args.at(1))?;
    let group = stream.and_then(|stream| stream.group(args.at(2)));
    let group = group.ok_or_else(|| no_group(args, 1, 2))?;
    let Some((idle, (from, to), count, consumer)) = range else {
        summary(call.reply, group);
        return Ok(());
    };
    let some = (from <= to).then(|| group.pending().range(from..=to));
    let found = some.into_iter().flatten().filter(|(_, pending)| {
        consumer.is_none_or(|name| *pending.consumer == *name)
            && (idle == 0 || now - pending.delivered >= idle)
    });
    let found: Vec<(&Id, &Pending)> = found.take(count).collect();
    call.reply.array(found.len());
    for (id, pending) in found {
        call.reply.array(4);
        tell_id(call.reply, *id);
        call.reply.bulk(&pending.consumer);
        call.reply.integer((now - pending.delivered).max(0));
        call.reply.integer(pending.times as i64);
    }
    Ok(())
}

fn summary(reply: &mut dyn Reply, group: &Group) {
    let pending = group.pending();
    reply.array(4);
    reply.integer(pending.len() as i64);
    let (Some((first, _)), Some((last, _))) = (pending.first_key_value(), pending.last_key_value())
    else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    tell_id(reply, *first);
    tell_id(reply, *last);
    let consumers = group.consumers().iter().filter(|(_, consumer)| !consumer.pending.is_empty());
    reply.array(consumers.clone().count());
    for (name, consumer) in consumers {
        reply.array(2);
        reply.bulk(name);
        reply.bulk(consumer.pending.len().to_string().as_bytes());
    }
}

/// XCLAIM's options, behind its ids.
#[derive(Default)]
struct Options {
    force: bool,
    just_id: bool,
    delivered: Option<i64>,
    times: Option<u64>,
    last: Id,
}

fn options(call: &Call<'_>, mut at: usize) -> Result<Options, Failure> {
    let (args, now) = (call.args, call.keys.now());
    let mut options = Options::default();
    let number = |at: usize, name: &str| {
        let complaint = || Failure::said(format!("ERR Invalid {name} option argument for XCLAIM"));
        parse_integer(args.at(at)).ok_or_else(complaint)
    };
    while at < args.len() {
        let more = at + 1 < args.len();
        if args.is(at, "force") {
            options.force = true;
        } else if args.is(at, "justid") {
            options.just_id = true;
        } else if args.is(at, "idle") && more {
            at += 1;
            options.delivered = Some(now.saturating_sub(number(at, "IDLE")?));
        } else if args.is(at, "time") && more {
            at += 1;
            options.delivered = Some(number(at, "TIME")?);
        } else if args.is(at, "retrycount") && more {
            at += 1;
            options.times = u64::try_from(number(at, "RETRYCOUNT")?).ok();
        } else if args.is(at, "lastid") && more {
            at += 1;
            options.last = id(args.at(at), 0)?;
        } else {
            let word = super::lossy(args.at(at));
            return Err(Failure::said(format!("ERR Unrecognized XCLAIM option '{word}'")));
        }
        at += 1;
    }
    Ok(options)
}

/// An idle time as an argument; less than nothing is nothing.
fn min_idle(word: &[u8], command: &str) -> Result<i64, Failure> {
    let complaint = || Failure::said(format!("ERR Invalid min-idle-time argument for {command}"));
    Ok(parse_integer(word).ok_or_else(complaint)?.max(0))
}

/// Entries that were claimed, and pending ones that exist no more.
#[derive(Default)]
struct Claimed {
    claimed: Vec<Id>,
    removed: Vec<Id>,
}

pub fn xclaim(call: &mut Call<'_>) -> Outcome {
    let (args, key, consumer) = (call.args, call.args.at(1), call.args.at(3));
    let stream = call.keys.stream(key)?;
    if stream.and_then(|stream| stream.group(args.at(2))).is_none() {
        return Err(no_group(args, 1, 2));
    }
    let idle = min_idle(args.at(4), "XCLAIM")?;
    let ids: Vec<Id> = args.from(5).iter().map_while(|word| parse_id(word, 0)).collect();
    let options = options(call, 5 + ids.len())?;
    let now = call.keys.now();
    let delivered = options.delivered.filter(|at| (0..=now).contains(at)).unwrap_or(now);
    let Some(stream) = call.keys.stream_mut(key)? else { return Ok(()) };
    let there: Vec<bool> = ids.iter().map(|id| stream.get(*id).is_some()).collect();
    let Some(group) = stream.group_mut(args.at(2)) else { return Ok(()) };
    group.last = group.last.max(options.last);
    let new = group.saw(consumer, now);
    let mut claimed = Vec::new();
    for (id, there) in ids.into_iter().zip(there) {
        if !there {
            group.settle(id);
            continue;
        }
        let times = match group.pending().get(&id) {
            Some(pending) if idle > 0 && now - pending.delivered < idle => continue,
            Some(pending) => pending.times,
            // As if it had been delivered once.
            None if options.force => 1,
            None => continue,
        };
        let times = options.times.unwrap_or(times + u64::from(!options.just_id));
        group.assign(id, consumer, delivered, times);
        group.served(consumer, now);
        claimed.push(id);
    }
    if new {
        call.event(b't', NEW_CONSUMER, key);
    }
    let stream = call.keys.stream(key)?;
    tell(call.reply, stream, &claimed, options.just_id);
    Ok(())
}

fn tell(reply: &mut dyn Reply, stream: Option<&Stream>, ids: &[Id], just_ids: bool) {
    reply.array(ids.len());
    for id in ids {
        match stream.and_then(|stream| stream.get(*id)) {
            Some(fields) if !just_ids => tell_entry(reply, *id, fields),
            _ => tell_id(reply, *id),
        }
    }
}

pub fn xautoclaim(call: &mut Call<'_>) -> Outcome {
    let (args, key, consumer) = (call.args, call.args.at(1), call.args.at(3));
    let idle = min_idle(args.at(4), "XAUTOCLAIM")?;
    let start = bound(args.at(5), true)?;
    let (mut count, mut just_id, mut at) = (CLAIMED, false, 6);
    while at < args.len() {
        if args.is(at, "count") && at + 1 < args.len() {
            at += 1;
            let given = parse_integer(args.at(at)).and_then(|count| usize::try_from(count).ok());
            let given = given.filter(|count| (1..=i64::MAX as usize / 16).contains(count));
            count = given.ok_or(Failure::text("ERR COUNT must be > 0"))?;
        } else if args.is(at, "justid") {
            just_id = true;
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    let stream = call.keys.stream(key)?;
    if stream.and_then(|stream| stream.group(args.at(2))).is_none() {
        return Err(no_group(args, 1, 2));
    }
    let now = call.keys.now();
    let Some(stream) = call.keys.stream_mut(key)? else { return Ok(()) };
    let (done, next) = choose(stream, args.at(2), start, idle, count, now);
    let Some(group) = stream.group_mut(args.at(2)) else { return Ok(()) };
    let new = group.saw(consumer, now);
    for id in &done.removed {
        group.settle(*id);
    }
    for id in &done.claimed {
        let times = group.pending().get(id).map_or(0, |pending| pending.times);
        group.assign(*id, consumer, now, times + u64::from(!just_id));
        group.served(consumer, now);
    }
    if new {
        call.event(b't', NEW_CONSUMER, key);
    }
    let stream = call.keys.stream(key)?;
    call.reply.array(3);
    tell_id(call.reply, next);
    tell(call.reply, stream, &done.claimed, just_id);
    call.reply.array(done.removed.len());
    done.removed.iter().for_each(|id| tell_id(call.reply, *id));
    Ok(())
}

/// What XAUTOCLAIM takes, and where it goes on the next time; 0-0: at the beginning.
fn choose(
    stream: &Stream,
    group: &[u8],
    start: Id,
    idle: i64,
    count: usize,
    now: i64,
) -> (Claimed, Id) {
    let mut done = Claimed::default();
    let Some(group) = stream.group(group) else { return (done, (0, 0)) };
    let mut left = count.saturating_mul(LOOKED_AT);
    for (id, pending) in group.pending().range(start..=ID_MAX) {
        if left == 0 || done.claimed.len() + done.removed.len() == count {
            return (done, *id);
        }
        left -= 1;
        if stream.get(*id).is_none() {
            done.removed.push(*id);
        } else if idle == 0 || now - pending.delivered >= idle {
            done.claimed.push(*id);
        }
    }
    (done, (0, 0))
}
