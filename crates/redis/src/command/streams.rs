//! Commands of streams.
//!
//! <https://redis.io/docs/latest/develop/data-types/streams/>

use super::{Command, Flags, Keys};
use crate::args::Args;
use crate::call::{printed, Call};
use crate::failure::{Failure, Outcome};
use crate::reply::Reply;
use crate::value::stream::{after, before, decode_fields, Id, ID_MAX};

mod claims;
mod entries;
mod groups;
mod info;
mod reading;

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE;
const FAST: Flags = Flags::WRITE.and(Flags::FAST);

const FIRST: Keys = Keys::Range(1, 1, 1);
const SECOND: Keys = Keys::Range(2, 2, 1);
const NAMED: Keys = Keys::By(reading::places);

pub const COMMANDS: &[Command] = &[
    command("xadd", -5, FAST.and(Flags::DENY_OOM), FIRST, entries::xadd),
    command("xlen", 2, READ.and(Flags::FAST), FIRST, entries::xlen),
    command("xrange", -4, READ, FIRST, entries::xrange),
    command("xrevrange", -4, READ, FIRST, entries::xrevrange),
    command("xdel", -3, FAST, FIRST, entries::xdel),
    command("xtrim", -4, WRITE, FIRST, entries::xtrim),
    command("xsetid", -3, FAST.and(Flags::DENY_OOM), FIRST, entries::xsetid),
    command("xread", -4, READ.and(Flags::BLOCKING).and(Flags::MOVABLE_KEYS), NAMED, reading::xread),
    command(
        "xreadgroup",
        -7,
        WRITE.and(Flags::BLOCKING).and(Flags::MOVABLE_KEYS),
        NAMED,
        reading::xreadgroup,
    ),
    command("xgroup", -2, WRITE.and(Flags::DENY_OOM), SECOND, groups::xgroup),
    command("xack", -4, FAST, FIRST, groups::xack),
    command("xpending", -3, READ, FIRST, claims::xpending),
    command("xclaim", -6, FAST, FIRST, claims::xclaim),
    command("xautoclaim", -6, FAST, FIRST, claims::xautoclaim),
    command("xinfo", -2, READ, SECOND, info::xinfo),
];

const fn command(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, group: "stream", run }
}

/// Told when a consumer is made, be it by reading or claiming.
const NEW_CONSUMER: &str = "xgroup-createconsumer";

/// Longer words are no ids, in bytes.
const ID_BYTES_MAX: usize = 127;

/// An id whose number may be missing (`t_stream.c`, `streamGenericParseIDOrReply`).
fn id(word: &[u8], missing: u64) -> Result<Id, Failure> {
    let invalid = Failure::text("ERR Invalid stream ID specified as stream command argument");
    parse_id(word, missing).ok_or(invalid)
}

fn parse_id(word: &[u8], missing: u64) -> Option<Id> {
    if word.len() > ID_BYTES_MAX {
        return None;
    }
    Some(match word.iter().position(|byte| *byte == b'-') {
        Some(dash) => (unsigned(&word[..dash])?, unsigned(&word[dash + 1..])?),
        None => (unsigned(word)?, missing),
    })
}

/// As [`id`], or `-` and `+`, or behind `(` one that is not included itself.
fn bound(word: &[u8], is_start: bool) -> Result<Id, Failure> {
    let missing = if is_start { 0 } else { u64::MAX };
    match word {
        b"-" => Ok((0, 0)),
        b"+" => Ok(ID_MAX),
        [b'(', rest @ ..] if !rest.is_empty() => {
            let given = id(rest, missing)?;
            match is_start {
                true => after(given).ok_or(Failure::text("ERR invalid start ID for the interval")),
                false => before(given).ok_or(Failure::text("ERR invalid end ID for the interval")),
            }
        }
        _ => id(word, missing),
    }
}

/// As [`id`], or `-` and `+`.
fn bound_or_id(word: &[u8]) -> Result<Id, Failure> {
    match word {
        b"-" => Ok((0, 0)),
        b"+" => Ok(ID_MAX),
        _ => id(word, 0),
    }
}

/// `string2ull`: what is no canonical integer is read as `strtoull` does, whole.
fn unsigned(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"+").unwrap_or(word);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn tell_id(reply: &mut dyn Reply, (ms, seq): Id) {
    reply.bulk(format!("{ms}-{seq}").as_bytes());
}

fn tell_entry(reply: &mut dyn Reply, id: Id, fields: &[u8]) {
    let words = decode_fields(fields);
    reply.array(2);
    tell_id(reply, id);
    reply.array(words.clone().count());
    words.for_each(|word| reply.bulk(word));
}

fn wrong_number(name: &str) -> Failure {
    Failure::said(format!("ERR wrong number of arguments for '{name}' command"))
}

fn no_group(args: Args<'_>, key: usize, group: usize) -> Failure {
    let (key, group) = (lossy(args.at(key)), lossy(args.at(group)));
    Failure::said(format!("NOGROUP No such key '{key}' or consumer group '{group}'"))
}

fn no_group_of(args: Args<'_>) -> Failure {
    let (key, group) = (lossy(args.at(2)), lossy(args.at(3)));
    Failure::said(format!("NOGROUP No such consumer group '{group}' for key name '{key}'"))
}

fn lossy(word: &[u8]) -> std::borrow::Cow<'_, str> {
    crate::call::printed(word, word.len())
}

/// The subcommand and whether it has as many words as it may have; else Redis's complaint.
fn subcommand(
    args: Args<'_>,
    family: &str,
    all: &[(&'static str, i32)],
) -> Result<&'static str, Failure> {
    let Some((name, arity)) = all.iter().find(|(name, _)| args.is(1, name)) else {
        let shown = printed(args.at(1), 128);
        let upper = family.to_ascii_uppercase();
        return Err(Failure::said(format!("ERR unknown subcommand '{shown}'. Try {upper} HELP.")));
    };
    let len = args.len() as i32;
    if (*arity >= 0 && len != *arity) || len < -arity {
        return Err(wrong_number(&format!("{family}|{name}")));
    }
    Ok(name)
}

/// What is left to complain about a subcommand.
fn subcommand_syntax(args: Args<'_>, family: &str) -> Failure {
    let shown = printed(args.at(1), 128);
    let upper = family.to_ascii_uppercase();
    Failure::said(format!(
        "ERR unknown subcommand or wrong number of arguments for '{shown}'. Try {upper} HELP."
    ))
}

fn help(call: &mut Call<'_>, family: &str, lines: &[&str]) {
    let first = format!("{family} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    call.reply.array(lines.len() + 3);
    call.reply.simple(&first);
    lines.iter().chain(&["HELP", "    Print this help."]).for_each(|line| call.reply.simple(line));
}
