//! Commands about all keys of a database. Memory does not have them all, so PostgreSQL is asked for
//! pages of them, in order of bytes; what a pattern begins with narrows down what is asked for.
//!
//! The answer knows what had been committed before the command was given; over it lies what
//! commands before it in the same MULTI or script have changed.

use super::{glob, Command, Flags, Keys};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::query::{Answer, Query};
use crate::value::{parse_integer, Kind};

/// Keys that KEYS asks for at once, and SCAN at most.
const PAGE: usize = 10_000;

/// Keys that SCAN asks for when it is not told.
const COUNT: i64 = 10;

/// Bytes of a pattern's beginning that narrow down what is asked for: fewer than those by which a
/// name that is too long for an index is in order (`name.rs`).
const PREFIX_MAX: usize = 1024;

/// A question ends the command, which may be a part of EXEC and is undone then.
const READ: Flags = Flags::READONLY.and(Flags::UNDOABLE);

const fn row(
    name: &'static str,
    arity: i32,
    flags: Flags,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys: Keys::None, group: "keyspace", run }
}

pub const COMMANDS: &[Command] = &[
    row("keys", 2, READ, keys),
    row("scan", -2, READ, scan),
    row("randomkey", 1, READ, randomkey),
    row("dbsize", 1, READ.and(Flags::FAST), dbsize),
    row("flushdb", -1, Flags::WRITE, flushdb),
    row("flushall", -1, Flags::WRITE, flushall),
];

/// The part of all keys that a pattern can match.
struct Range {
    prefix: Vec<u8>,
}

impl Range {
    fn of(pattern: &[u8]) -> Range {
        let mut prefix = glob::prefix(pattern);
        prefix.truncate(PREFIX_MAX);
        Range { prefix }
    }

    /// A key that lies before the first one, with hardly any in between.
    fn before(&self) -> Option<Box<[u8]>> {
        let mut before = self.prefix.clone();
        if let Some(last) = before.pop() {
            if let Some(smaller) = last.checked_sub(1) {
                before.push(smaller);
                before.extend_from_slice(&[0xff; 8]);
            }
            return Some(before.into());
        }
        None
    }

    fn is_behind(&self, key: &[u8]) -> bool {
        !self.prefix.is_empty() && !key.starts_with(&self.prefix) && *key > *self.prefix
    }
}

fn keys(call: &mut Call<'_>) -> Outcome {
    let (pattern, db) = (call.args.at(1), call.keys.db());
    let every = pattern == b"*";
    let matches = |key: &[u8]| every || glob::matches(pattern, key, false);
    let range = Range::of(pattern);
    let (mut after, mut pages) = (range.before(), Vec::new());
    loop {
        let query = Query::Keys { db, after: after.clone(), limit: PAGE, kind: None };
        let page = call.answered(query)?;
        let newest = page + 1 == call.session.answers.len();
        let Answer::Keys { keys, more } = &mut call.session.answers[page] else { break };
        let last = keys.last().cloned();
        if newest {
            // The last one is kept: the next page is behind it.
            keys.retain(|key| matches(key) || Some(key) == last.as_ref());
        }
        pages.push(page);
        match last {
            Some(last) if *more && !range.is_behind(&last) => after = Some(last),
            _ => break,
        }
    }
    let overlay = call.keys.overlay(db)?;
    let mut found: Vec<&[u8]> = Vec::new();
    for page in pages {
        if let Answer::Keys { keys, .. } = &call.session.answers[page] {
            let counts = |key: &&[u8]| matches(key) && !overlay.hides(key);
            found.extend(keys.iter().map(|key| &**key).filter(counts));
        }
    }
    found.extend(overlay.there().map(|(key, _)| key).filter(|key| matches(key)));
    call.reply.array(found.len());
    found.into_iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

/// What `strtoul` reads whole.
fn cursor(word: &[u8]) -> Option<u64> {
    let (negative, digits) = match word.split_first() {
        Some((b'-', digits)) => (true, digits),
        Some((b'+', digits)) => (false, digits),
        _ => (false, word),
    };
    if word.is_empty() {
        return Some(0);
    }
    let text = std::str::from_utf8(digits).ok()?;
    let number: u64 = if text.starts_with('+') { return None } else { text.parse().ok()? };
    Some(if negative { number.wrapping_neg() } else { number })
}

fn scan(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let cursor = cursor(args.at(1)).ok_or(Failure::text("ERR invalid cursor"))?;
    let (mut count, mut pattern, mut kind, mut at) = (COUNT, &b"*"[..], None, 2);
    while at < args.len() {
        let value = args.get(at + 1).ok_or(Failure::SYNTAX)?;
        match () {
            () if args.is(at, "count") => {
                count = parse_integer(value).ok_or(Failure::NOT_AN_INTEGER)?;
                if count < 1 {
                    return Err(Failure::SYNTAX);
                }
            }
            () if args.is(at, "match") => pattern = value,
            () if args.is(at, "type") => {
                let named = |kind: &Kind| value.eq_ignore_ascii_case(kind.name().as_bytes());
                kind = Some(Kind::ALL.into_iter().find(named));
            }
            () => return Err(Failure::SYNTAX),
        }
        at += 2;
    }
    let range = Range::of(pattern);
    let db = call.keys.db();
    let after = call.server.cursors.find(cursor, db).or_else(|| range.before());
    let letter = match kind {
        Some(None) => return page(call, None, &[]),
        Some(Some(kind)) => Some(kind.letter()),
        None => None,
    };
    let limit = usize::try_from(count).unwrap_or(PAGE).min(PAGE);
    let query = Query::Keys { db, after: after.clone(), limit, kind: letter };
    let Answer::Keys { keys, more } = call.ask(query)? else {
        return page(call, None, &[]);
    };
    let overlay = call.keys.overlay(db)?;
    let last = keys.last().filter(|_| more);
    let next = last.filter(|last| !range.is_behind(last)).cloned();
    let is_here = |key: &[u8]| {
        after.as_deref().is_none_or(|after| key > after) && last.is_none_or(|last| key <= &**last)
    };
    let changed = overlay.there().filter(|(_, holds)| kind.is_none_or(|kind| kind == Some(*holds)));
    let changed = changed.map(|(key, _)| key).filter(|key| is_here(key));
    let stored = keys.iter().map(|key| &**key).filter(|key| !overlay.hides(key));
    let every = pattern == b"*";
    let matching = stored.chain(changed).filter(|key| every || glob::matches(pattern, key, false));
    page(call, next.as_deref(), &matching.collect::<Vec<_>>())
}

/// SCAN's reply: where to go on, and keys.
fn page(call: &mut Call<'_>, after: Option<&[u8]>, keys: &[&[u8]]) -> Outcome {
    let (db, now) = (call.keys.db(), call.keys.now());
    let cursor = after.map_or(0, |after| call.server.cursors.add(db, after, now));
    call.reply.array(2);
    call.reply.bulk(itoa::Buffer::new().format(cursor).as_bytes());
    call.reply.array(keys.len());
    keys.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

fn randomkey(call: &mut Call<'_>) -> Outcome {
    let db = call.keys.db();
    let drawn = call.ask(Query::Random { db })?;
    let overlay = call.keys.overlay(db)?;
    if let Answer::Random(Some(key)) = drawn {
        if !overlay.hides(&key) {
            call.reply.bulk(&key);
            return Ok(());
        }
    }
    if let Some((key, _)) = overlay.there().next() {
        call.reply.bulk(key);
        return Ok(());
    }
    // What was drawn, and maybe more, is gone: of one key more than that any is left.
    let query = Query::Keys { db, after: None, limit: overlay.len() + 1, kind: None };
    let left = match overlay.is_empty() {
        true => Answer::Random(None),
        false => call.ask(query)?,
    };
    match left {
        Answer::Keys { keys, .. } => match keys.iter().find(|key| !overlay.hides(key)) {
            Some(key) => call.reply.bulk(key),
            None => call.reply.null(),
        },
        _ => call.reply.null(),
    }
    Ok(())
}

fn dbsize(call: &mut Call<'_>) -> Outcome {
    let db = call.keys.db();
    if let Answer::Size(size) = call.ask(Query::Size { db })? {
        let size = call.keys.overlay(db)?.size(size);
        call.reply.integer(size as i64);
    }
    Ok(())
}

/// There is no difference between ASYNC and SYNC: the reply comes when it is committed.
fn check_flush_options(call: &Call<'_>) -> Outcome {
    let args = call.args;
    match args.len() {
        1 => Ok(()),
        2 if args.is(1, "sync") || args.is(1, "async") => Ok(()),
        _ => Err(Failure::SYNTAX),
    }
}

fn flushdb(call: &mut Call<'_>) -> Outcome {
    check_flush_options(call)?;
    let db = call.keys.db();
    call.keys.flush(db);
    call.reply.ok();
    Ok(())
}

fn flushall(call: &mut Call<'_>) -> Outcome {
    check_flush_options(call)?;
    (0..call.keys.databases()).for_each(|db| call.keys.flush(db));
    call.reply.ok();
    Ok(())
}
