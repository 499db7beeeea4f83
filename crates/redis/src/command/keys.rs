//! Commands of keys, whatever they hold. When keys expire is in `expiry.rs`, all keys of a database
//! are in `scan.rs`.
//!
//! <https://redis.io/docs/latest/commands/?group=generic>

use super::number::integer;
use super::{Command, Container, Flags, Keys, Sub};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::keyspace::Expiry;
use crate::value::{Kind, Str, Value};

const WRITE: Flags = Flags::WRITE;
const QUICK_WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const QUICK_READ: Flags = Flags::READONLY.and(Flags::FAST);
const FIRST: Keys = Keys::Range(1, 1, 1);
const ALL: Keys = Keys::Range(1, -1, 1);
const TWO: Keys = Keys::Range(1, 2, 1);
/// COPY and MOVE look at a key of another database, which nobody has looked for before.
const ELSEWHERE: Flags = Flags::UNDOABLE;

const fn row(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, group: "keyspace", run }
}

pub const COMMANDS: &[Command] = &[
    row("del", -2, WRITE, ALL, del),
    row("unlink", -2, QUICK_WRITE, ALL, del),
    row("exists", -2, QUICK_READ, ALL, exists),
    row("touch", -2, QUICK_READ, ALL, touch),
    row("type", 2, QUICK_READ, FIRST, kind),
    row("rename", 3, WRITE, TWO, |call| rename(call, false)),
    row("renamenx", 3, QUICK_WRITE, TWO, |call| rename(call, true)),
    row("copy", -3, WRITE.and(Flags::DENY_OOM).and(ELSEWHERE), TWO, copy),
    row("move", 3, QUICK_WRITE.and(ELSEWHERE), FIRST, move_key),
    row("swapdb", 3, QUICK_WRITE, Keys::None, swapdb),
    row("object", -2, Flags::CONTAINER.and(Flags::READONLY), Keys::Range(2, 2, 1), object),
    row("dump", 2, Flags::READONLY, FIRST, super::dump::dump),
    row("restore", -4, WRITE.and(Flags::DENY_OOM), FIRST, super::dump::restore),
];

fn del(call: &mut Call<'_>) -> Outcome {
    let mut gone = 0;
    for key in call.args.from(1).iter() {
        if call.keys.remove(key)? {
            gone += 1;
            call.event(b'g', "del", key);
        }
    }
    call.reply.integer(gone);
    Ok(())
}

fn exists(call: &mut Call<'_>) -> Outcome {
    let mut there = 0;
    for key in call.args.from(1).iter() {
        there += i64::from(call.keys.peek(key)?.is_some());
    }
    call.reply.integer(there);
    Ok(())
}

fn touch(call: &mut Call<'_>) -> Outcome {
    let mut there = 0;
    for key in call.args.from(1).iter() {
        there += i64::from(call.keys.exists(key)?);
    }
    call.reply.integer(there);
    Ok(())
}

fn kind(call: &mut Call<'_>) -> Outcome {
    let kind = call.keys.peek(call.args.at(1))?.map(Value::kind);
    call.reply.simple(kind.map_or("none", Kind::name));
    Ok(())
}

fn rename(call: &mut Call<'_>, only_new: bool) -> Outcome {
    let (from, to) = (call.args.at(1), call.args.at(2));
    if !call.keys.exists(from)? {
        return Err(Failure::NO_SUCH_KEY);
    }
    let taken = call.keys.exists(to)?;
    let same = from == to;
    if !(same || only_new && taken) {
        if let Some((value, expires)) = call.keys.take(from)? {
            call.keys.set(to, value, Expiry::At(expires))?;
            call.keys.signal(to);
            call.event(b'g', "rename_from", from);
            call.event(b'g', "rename_to", to);
        }
    }
    match only_new {
        true => call.reply.integer(i64::from(!taken && !same)),
        false => call.reply.ok(),
    }
    Ok(())
}

/// A database's number as a command gives it (`getIntFromObjectOrReply`).
pub(super) fn database(call: &Call<'_>, word: &[u8]) -> Result<u16, Failure> {
    let number = integer(word)?;
    if i32::try_from(number).is_err() {
        return Err(Failure::said(format!(
            "ERR value is out of range, value must between {} and {}",
            i32::MIN,
            i32::MAX
        )));
    }
    let number = u16::try_from(number).ok().filter(|number| *number < call.keys.databases());
    number.ok_or(Failure::text("ERR DB index is out of range"))
}

const SAME: Failure = Failure::text("ERR source and destination objects are the same");

fn copy(call: &mut Call<'_>) -> Outcome {
    let (from, to, source) = (call.args.at(1), call.args.at(2), call.keys.db());
    let (mut target, mut replace, mut at) = (source, false, 3);
    while at < call.args.len() {
        if call.args.is(at, "replace") {
            replace = true;
        } else if call.args.is(at, "db") && at + 1 < call.args.len() {
            target = database(call, call.args.at(at + 1))?;
            at += 1;
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    if source == target && from == to {
        return Err(SAME);
    }
    let taken = exists_in(call, target, to)?;
    let (there, expires) = (call.keys.exists(from)?, call.keys.expires(from)?);
    let (true, Some(expires)) = (there && (replace || !taken), expires) else {
        call.reply.integer(0);
        return Ok(());
    };
    if let Some(mut value) = call.keys.look(from)?.cloned() {
        // Rows of its own.
        if let Some(collection) = value.collection_mut() {
            collection.keep();
            collection.set_kid(0);
            collection.renew();
        }
        put_in(call, target, to, value, expires, "copy_to")?;
    }
    call.reply.integer(1);
    Ok(())
}

fn exists_in(call: &mut Call<'_>, db: u16, key: &[u8]) -> Result<bool, Failure> {
    let before = call.keys.db();
    call.keys.select(db);
    let exists = call.keys.exists(key);
    call.keys.select(before);
    exists
}

fn put_in(
    call: &mut Call<'_>,
    db: u16,
    key: &[u8],
    value: Value,
    expires: i64,
    event: &'static str,
) -> Outcome {
    let before = call.keys.db();
    call.keys.select(db);
    let put = call.keys.set(key, value, Expiry::At(expires));
    call.keys.signal(key);
    call.event(b'g', event, key);
    call.keys.select(before);
    put
}

fn move_key(call: &mut Call<'_>) -> Outcome {
    let (key, source) = (call.args.at(1), call.keys.db());
    let target = database(call, call.args.at(2))?;
    if source == target {
        return Err(SAME);
    }
    let (there, taken) = (call.keys.exists(key)?, exists_in(call, target, key)?);
    // Only now may it be taken away.
    let moved = if there && !taken { call.keys.take(key)? } else { None };
    call.reply.integer(i64::from(moved.is_some()));
    let Some((value, expires)) = moved else { return Ok(()) };
    call.event(b'g', "move_from", key);
    put_in(call, target, key, value, expires, "move_to")
}

fn swapdb(call: &mut Call<'_>) -> Outcome {
    let number = |at: usize, which: &'static str| {
        let number = integer(call.args.at(at)).ok();
        number.filter(|number| i32::try_from(*number).is_ok()).ok_or(Failure::text(which))
    };
    let first = number(1, "ERR invalid first DB index")?;
    let second = number(2, "ERR invalid second DB index")?;
    let databases = i64::from(call.keys.databases());
    if !(0..databases).contains(&first) || !(0..databases).contains(&second) {
        return Err(Failure::text("ERR DB index is out of range"));
    }
    if first != second {
        return Err(Failure::text(
            "ERR SWAPDB is not possible: every row names its database, so all rows of both would \
             have to be written; use RENAME or MOVE for the keys in question",
        ));
    }
    call.reply.ok();
    Ok(())
}

pub const OBJECT: Container = Container {
    name: "object",
    subs: &[
        Sub::help("object|help"),
        Sub::new("object|encoding", 3, Flags::READONLY, encoding),
        Sub::new("object|freq", 3, Flags::READONLY, freq),
        Sub::new("object|idletime", 3, Flags::READONLY, idletime),
        Sub::new("object|refcount", 3, Flags::READONLY, refcount),
    ],
    help: &[
        "ENCODING <key>",
        "    Return the kind of internal representation used in order to store the value",
        "    associated with a <key>.",
        "FREQ <key>",
        "    Return the access frequency index of the <key>. The returned integer is",
        "    proportional to the logarithm of the recent access frequency of the key.",
        "IDLETIME <key>",
        "    Return the idle time of the <key>, that is the approximated number of",
        "    seconds elapsed since the last access to the key.",
        "REFCOUNT <key>",
        "    Return the number of references of the value associated with the specified",
        "    <key>.",
    ],
};

/// Small integers that Redis keeps once for all keys (`server.h`, `OBJ_SHARED_INTEGERS`), and the
/// number of references that they have.
const SHARED: std::ops::Range<i64> = 0..10_000;
const SHARED_REFERENCES: i64 = 2_147_483_647;

fn object(call: &mut Call<'_>) -> Outcome {
    OBJECT.run(call)
}

fn encoding(call: &mut Call<'_>) -> Outcome {
    match call.keys.peek(call.args.at(2))? {
        Some(value) => call.reply.bulk(value.encoding(&call.server.settings).as_bytes()),
        None => call.reply.null(),
    }
    Ok(())
}

fn freq(call: &mut Call<'_>) -> Outcome {
    if call.keys.peek(call.args.at(2))?.is_none() {
        call.reply.null();
        return Ok(());
    }
    Err(Failure::text(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
         that when switching between policies at runtime LRU and LFU data will take some time to \
         adjust.",
    ))
}

fn refcount(call: &mut Call<'_>) -> Outcome {
    match call.keys.peek(call.args.at(2))? {
        Some(Value::Str(Str::Int(number))) if SHARED.contains(number) => {
            call.reply.integer(SHARED_REFERENCES);
        }
        Some(_) => call.reply.integer(1),
        None => call.reply.null(),
    }
    Ok(())
}

fn idletime(call: &mut Call<'_>) -> Outcome {
    match call.keys.idle(call.args.at(2))? {
        Some(idle) => call.reply.integer(i64::from(idle)),
        None => call.reply.null(),
    }
    Ok(())
}
