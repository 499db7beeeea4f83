//! XREAD and XREADGROUP.

use super::{
    after, id, lossy, tell_entry, tell_id, Args, Call, Failure, Id, Outcome, ID_MAX, NEW_CONSUMER,
};
use crate::args::Words;
use crate::command::number::integer;
use crate::session::Otherwise;
use crate::value::stream::Stream;

/// What is asked for.
struct Wish<'a> {
    /// Milliseconds; 0: for ever.
    block: Option<i64>,
    count: usize,
    no_ack: bool,
    /// Group and consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    keys: Args<'a>,
    ids: Args<'a>,
}

/// From where on a stream is read.
#[derive(Clone, Copy, PartialEq)]
enum From {
    /// What comes behind this entry.
    Behind(Id),
    /// What the group has not got.
    New,
    /// What the consumer has got behind this entry, and not acknowledged.
    Own(Id),
}

/// Where the keys are.
pub fn places(args: Args<'_>) -> Option<Vec<usize>> {
    let mut at = 1;
    while at < args.len() && !args.is(at, "streams") {
        at += match () {
            () if args.is(at, "block") || args.is(at, "count") => 2,
            () if args.is(at, "group") => 3,
            () => 1,
        };
    }
    let count = args.len().checked_sub(at + 1)?;
    (count > 0 && count % 2 == 0).then(|| (at + 1..=at + count / 2).collect())
}

fn parse<'a>(args: Args<'a>, in_group: bool, in_script: bool) -> Result<Wish<'a>, Failure> {
    let mut wish = Wish {
        block: None,
        count: usize::MAX,
        no_ack: false,
        group: None,
        keys: args.to(0),
        ids: args.to(0),
    };
    let mut at = 1;
    while at < args.len() {
        let more = args.len() - at - 1;
        if args.is(at, "block") && more > 0 {
            if in_script {
                return Err(Failure::said(format!(
                    "ERR {} command is not allowed with BLOCK option from scripts",
                    lossy(args.at(0))
                )));
            }
            at += 1;
            wish.block = Some(timeout(args.at(at))?);
        } else if args.is(at, "count") && more > 0 {
            at += 1;
            let count = usize::try_from(integer(args.at(at))?).unwrap_or(0);
            wish.count = if count == 0 { usize::MAX } else { count };
        } else if args.is(at, "streams") && more > 0 {
            if more % 2 == 1 {
                let (name, symbol) = if in_group { ("xreadgroup", '>') } else { ("xread", '$') };
                return Err(Failure::said(format!(
                    "ERR Unbalanced '{name}' list of streams: for each stream key an ID or \
                     '{symbol}' must be specified."
                )));
            }
            wish.keys = args.from(at + 1).to(more / 2);
            wish.ids = args.from(at + 1 + more / 2);
            break;
        } else if args.is(at, "group") && more >= 2 {
            if !in_group {
                return Err(only_in_group("GROUP"));
            }
            wish.group = Some((args.at(at + 1), args.at(at + 2)));
            at += 2;
        } else if args.is(at, "noack") {
            if !in_group {
                return Err(only_in_group("NOACK"));
            }
            wish.no_ack = true;
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    if wish.keys.is_empty() {
        return Err(Failure::SYNTAX);
    }
    if in_group && wish.group.is_none() {
        return Err(Failure::text("ERR Missing GROUP option for XREADGROUP"));
    }
    Ok(wish)
}

fn only_in_group(option: &str) -> Failure {
    Failure::said(format!(
        "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
    ))
}

/// Milliseconds to wait (`timeout.c`, `getTimeoutFromObjectOrReply`).
fn timeout(word: &[u8]) -> Result<i64, Failure> {
    let given = crate::value::parse_integer(word)
        .ok_or(Failure::text("ERR timeout is not an integer or out of range"))?;
    if given < 0 {
        return Err(Failure::text("ERR timeout is negative"));
    }
    Ok(given)
}

/// From where on each stream is read, and whether its id was `$`.
fn starts(call: &mut Call<'_>, wish: &Wish<'_>) -> Result<Vec<From>, Failure> {
    let mut found = Vec::with_capacity(wish.keys.len());
    for (key, word) in wish.keys.iter().zip(wish.ids.iter()) {
        let stream = call.keys.stream(key)?;
        if let Some((group, _)) = wish.group {
            if stream.and_then(|stream| stream.group(group)).is_none() {
                return Err(Failure::said(format!(
                    "NOGROUP No such key '{}' or consumer group '{}' in XREADGROUP with GROUP \
                     option",
                    lossy(key),
                    lossy(group)
                )));
            }
        }
        found.push(match (word, wish.group) {
            (b"$", Some(_)) => {
                return Err(Failure::text(
                    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read \
                     the history of this consumer by specifying a proper ID, or use the > ID to \
                     get new messages. The $ ID would just return an empty result set.",
                ))
            }
            (b"$", None) => From::Behind(stream.map_or((0, 0), |stream| stream.head_now().last)),
            (b">", Some(_)) => From::New,
            (b">", None) => {
                return Err(Failure::text(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP \
                     <group> <consumer> option.",
                ))
            }
            (word, Some(_)) => match id(word, 0)? {
                // As Redis has it: the greatest id is as good as `>`.
                ID_MAX => From::New,
                id => From::Own(id),
            },
            (word, None) => From::Behind(id(word, 0)?),
        });
    }
    Ok(found)
}

/// What a stream has for the asker; none when it is not told of at all.
fn entries(stream: &Stream, wish: &Wish<'_>, from: From) -> Option<Vec<Id>> {
    let group = wish.group.and_then(|(name, consumer)| Some((stream.group(name)?, consumer)));
    let behind = match (from, group) {
        (From::Behind(id), _) => id,
        (From::New, Some((group, _))) => group.last,
        (From::Own(id), Some((group, consumer))) => {
            let pending = group.consumer(consumer).map(|consumer| &consumer.pending);
            let first = after(id);
            let ids = pending.into_iter().zip(first);
            let ids = ids.flat_map(|(pending, first)| pending.range(first..));
            return Some(ids.copied().take(wish.count).collect());
        }
        _ => return None,
    };
    let found = stream.range(after(behind)?, ID_MAX).map(|(id, _)| id).take(wish.count);
    let found: Vec<Id> = found.collect();
    (!found.is_empty()).then_some(found)
}

pub fn xread(call: &mut Call<'_>) -> Outcome {
    read(call, false)
}

pub fn xreadgroup(call: &mut Call<'_>) -> Outcome {
    read(call, true)
}

fn read(call: &mut Call<'_>, in_group: bool) -> Outcome {
    let wish = parse(call.args, in_group, call.session.in_script)?;
    let starts = starts(call, &wish)?;
    // All that is there is found first: who is blocked again changes nothing.
    let mut found = Vec::new();
    for (key, from) in wish.keys.iter().zip(&starts) {
        let ids = call.keys.stream(key)?.and_then(|stream| entries(stream, &wish, *from));
        found.push(ids);
    }
    let served = found.iter().flatten().count();
    if let (Some(reader), true) = (wish.group, served > 0 || is_new(call)) {
        for (at, key) in wish.keys.iter().enumerate() {
            if deliver(call, key, reader, (starts[at], found[at].as_deref()), wish.no_ack)? {
                call.event(b't', NEW_CONSUMER, key);
            }
        }
    }
    if served == 0 {
        return nothing(call, &wish, &starts);
    }
    if call.reply.protocol() > 2 {
        call.reply.map(served);
    } else {
        call.reply.array(served);
    }
    for (key, ids) in wish.keys.iter().zip(&found) {
        let Some(ids) = ids else { continue };
        if call.reply.protocol() == 2 {
            call.reply.array(2);
        }
        call.reply.bulk(key);
        call.reply.array(ids.len());
        let Some(stream) = call.keys.stream(key)? else { continue };
        for id in ids {
            match stream.get(*id) {
                Some(fields) => tell_entry(call.reply, *id, fields),
                None => {
                    call.reply.array(2);
                    tell_id(call.reply, *id);
                    call.reply.null_array();
                }
            }
        }
    }
    Ok(())
}

/// The consumer has asked for a stream's entries and gets these. True when it is new.
fn deliver(
    call: &mut Call<'_>,
    key: &[u8],
    (group, consumer): (&[u8], &[u8]),
    (from, ids): (From, Option<&[Id]>),
    no_ack: bool,
) -> Result<bool, Failure> {
    let now = call.keys.now();
    let progress = match (from, ids, call.keys.stream(key)?) {
        (From::New, Some(ids), Some(stream)) => {
            stream.group(group).map(|group| progress(stream, group.read, ids))
        }
        _ => None,
    };
    let there = existing(call, key, ids.unwrap_or_default())?;
    let Some(stream) = call.keys.stream_mut(key)? else { return Ok(false) };
    let Some(group) = stream.group_mut(group) else { return Ok(false) };
    let new = group.saw(consumer, now);
    let Some(ids) = ids else { return Ok(new) };
    if from != From::New {
        // Delivered once more.
        for id in there {
            let times = group.pending().get(&id).map_or(0, |pending| pending.times);
            group.assign(id, consumer, now, times + 1);
        }
        return Ok(new);
    }
    if let (Some(last), Some(read)) = (ids.last(), progress) {
        (group.last, group.read) = (*last, read);
    }
    if !no_ack {
        ids.iter().for_each(|id| group.assign(*id, consumer, now, 1));
        group.served(consumer, now);
    }
    Ok(new)
}

/// Whether the command has not been blocked yet.
fn is_new(call: &Call<'_>) -> bool {
    call.session.blocked.is_none()
}

/// Those of the entries that have not been removed.
fn existing(call: &mut Call<'_>, key: &[u8], ids: &[Id]) -> Result<Vec<Id>, Failure> {
    let stream = call.keys.stream(key)?;
    let there = |id: &&Id| stream.is_some_and(|stream| stream.get(**id).is_some());
    Ok(ids.iter().filter(there).copied().collect())
}

/// Entries that a group has read when it has got these, too.
fn progress(stream: &Stream, mut read: Option<u64>, ids: &[Id]) -> Option<u64> {
    for id in ids {
        read = match read {
            Some(read) if !stream.has_gaps(*id) => Some(read + 1),
            _ => stream.distance(*id),
        };
    }
    read
}

fn nothing(call: &mut Call<'_>, wish: &Wish<'_>, starts: &[From]) -> Outcome {
    let Some(timeout) = wish.block else {
        call.reply.null_array();
        return Ok(());
    };
    let keys: Vec<&[u8]> = wish.keys.iter().collect();
    let first = is_new(call);
    let outcome = call.block(&keys, timeout, Otherwise::NullArray);
    // It runs again when something has come: `$` is where the stream is now.
    if let (true, Some(blocked)) = (first, &mut call.session.blocked) {
        let mut words: Words = call.args.to(call.args.len() - wish.ids.len()).into();
        for (word, from) in wish.ids.iter().zip(starts) {
            match from {
                From::Behind((ms, seq)) => words.push(format!("{ms}-{seq}").as_bytes()),
                _ => words.push(word),
            }
        }
        blocked.words = words;
    }
    outcome
}
