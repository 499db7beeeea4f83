//! Commands of strings.
//!
//! <https://redis.io/docs/latest/commands/?group=string>

use super::expiry::{moment, Unit};
use super::number::integer;
use super::{Command, Flags, Keys};
use crate::args::Args;
use crate::call::Call;
use crate::extended::Extended;
use crate::failure::{Failure, Outcome};
use crate::keyspace::{Expiry, NEVER};
use crate::value::{Str, Value};

const READ: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE.and(Flags::DENY_OOM);
const QUICK_WRITE: Flags = WRITE.and(Flags::FAST);
const FIRST: Keys = Keys::Range(1, 1, 1);

const fn row(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, group: "string", run }
}

pub const COMMANDS: &[Command] = &[
    row("get", 2, READ, FIRST, get),
    row("set", -3, WRITE.and(Flags::BLIND_BARE), FIRST, set),
    row("setnx", 3, QUICK_WRITE, FIRST, setnx),
    row("setex", 4, WRITE.and(Flags::BLIND), FIRST, setex),
    row("psetex", 4, WRITE.and(Flags::BLIND), FIRST, psetex),
    row("getset", 3, QUICK_WRITE, FIRST, getset),
    row("getdel", 2, Flags::WRITE.and(Flags::FAST), FIRST, getdel),
    row("getex", -2, Flags::WRITE.and(Flags::FAST), FIRST, getex),
    row("mget", -2, READ, Keys::Range(1, -1, 1), mget),
    row("mset", -3, WRITE.and(Flags::BLIND), Keys::Range(1, -1, 2), mset),
    row("msetnx", -3, WRITE, Keys::Range(1, -1, 2), msetnx),
    row("incr", 2, QUICK_WRITE, FIRST, |call| add(call, 1)),
    row("decr", 2, QUICK_WRITE, FIRST, |call| add(call, -1)),
    row("incrby", 3, QUICK_WRITE, FIRST, incrby),
    row("decrby", 3, QUICK_WRITE, FIRST, decrby),
    row("incrbyfloat", 3, QUICK_WRITE, FIRST, incrbyfloat),
    row("append", 3, QUICK_WRITE, FIRST, append),
    row("strlen", 2, READ, FIRST, strlen),
    row("getrange", 4, Flags::READONLY, FIRST, getrange),
    row("substr", 4, Flags::READONLY, FIRST, getrange),
    row("setrange", 4, WRITE, FIRST, setrange),
    row("lcs", -3, Flags::READONLY, Keys::Range(1, 2, 1), super::lcs::lcs),
];

/// Replies with the string, if there is one.
fn get(call: &mut Call<'_>) -> Outcome {
    match call.keys.string(call.args.at(1))? {
        Some(text) => text.with(|bytes| call.reply.bulk(bytes)),
        None => call.reply.null(),
    }
    Ok(())
}

/// Options of SET and GETEX. At most one of those about the expiry.
#[derive(Debug, Default)]
struct Options<'a> {
    nx: bool,
    xx: bool,
    get: bool,
    keep: bool,
    persist: bool,
    /// The word, its unit, and whether it counts from now.
    expires: Option<(&'a [u8], Unit, bool)>,
}

impl<'a> Options<'a> {
    /// `t_string.c`, `parseExtendedStringArgumentsOrReply`. EX and its like may be repeated, but not
    /// mixed.
    fn parse(args: Args<'a>, of_get: bool) -> Result<Options<'a>, Failure> {
        let mut options = Options::default();
        let mut at = 0;
        while let Some(word) = args.get(at) {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            let free = options.expires.is_none();
            if !of_get && is("nx") && !options.xx {
                options.nx = true;
            } else if !of_get && is("xx") && !options.nx {
                options.xx = true;
            } else if !of_get && is("get") {
                options.get = true;
            } else if !of_get && is("keepttl") && free {
                options.keep = true;
            } else if of_get && is("persist") && free {
                options.persist = true;
            } else {
                let (unit, relative) = match () {
                    () if is("ex") => (Unit::Seconds, true),
                    () if is("px") => (Unit::Milliseconds, true),
                    () if is("exat") => (Unit::Seconds, false),
                    () if is("pxat") => (Unit::Milliseconds, false),
                    () => return Err(Failure::SYNTAX),
                };
                let same = options.expires.is_none_or(|(_, u, r)| (u, r) == (unit, relative));
                let value = args.get(at + 1).filter(|_| same && !options.keep && !options.persist);
                options.expires = Some((value.ok_or(Failure::SYNTAX)?, unit, relative));
                at += 1;
            }
            at += 1;
        }
        Ok(options)
    }
}

/// When a key expires by a word such as EX has; it must lie behind 1970.
fn expires_at(
    call: &Call<'_>,
    word: &[u8],
    unit: Unit,
    relative: bool,
    command: &str,
) -> Result<i64, Failure> {
    let given = integer(word)?;
    let base = if relative { call.keys.now() } else { 0 };
    let at = if given > 0 { moment(given, unit, base) } else { None };
    at.filter(|at| *at > 0).ok_or_else(|| super::expiry::invalid(command))
}

fn set(call: &mut Call<'_>) -> Outcome {
    let (key, value) = (call.args.at(1), call.args.at(2));
    if call.args.len() == 3 {
        return put(call, key, value, Expiry::Never);
    }
    let options = Options::parse(call.args.from(3), false)?;
    let expiry = match options.expires {
        Some((word, unit, relative)) => Expiry::At(expires_at(call, word, unit, relative, "set")?),
        None if options.keep => Expiry::Keep,
        None => Expiry::Never,
    };
    let found = match (options.get, options.nx || options.xx) {
        (true, _) => {
            let text = call.keys.string(key)?;
            let found = text.is_some();
            match text {
                Some(text) => text.with(|bytes| call.reply.bulk(bytes)),
                None => call.reply.null(),
            }
            found
        }
        (false, true) => call.keys.exists(key)?,
        // Whatever was there does not matter.
        (false, false) => false,
    };
    if (options.nx && found) || (options.xx && !found) {
        if !options.get {
            call.reply.null();
        }
        return Ok(());
    }
    if options.get || options.nx || options.xx {
        store(call, key, value, expiry)?;
    } else {
        overwrite(call, key, value, expiry)?;
    }
    if !options.get {
        call.reply.ok();
    }
    Ok(())
}

fn overwrite(call: &mut Call<'_>, key: &[u8], value: &[u8], expiry: Expiry) -> Outcome {
    call.keys.overwrite(key, Value::Str(Str::new(value)), expiry)?;
    written(call, key, expiry)
}

fn store(call: &mut Call<'_>, key: &[u8], value: &[u8], expiry: Expiry) -> Outcome {
    call.keys.set(key, Value::Str(Str::new(value)), expiry)?;
    written(call, key, expiry)
}

fn written(call: &mut Call<'_>, key: &[u8], expiry: Expiry) -> Outcome {
    call.event(b'$', "set", key);
    if let Expiry::At(_) = expiry {
        call.event(b'g', "expire", key);
    }
    Ok(())
}

/// For commands that have not looked at the key.
fn put(call: &mut Call<'_>, key: &[u8], value: &[u8], expiry: Expiry) -> Outcome {
    overwrite(call, key, value, expiry)?;
    call.reply.ok();
    Ok(())
}

fn setnx(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let new = !call.keys.exists(key)?;
    if new {
        store(call, key, call.args.at(2), Expiry::Never)?;
    }
    call.reply.integer(i64::from(new));
    Ok(())
}

fn setex(call: &mut Call<'_>) -> Outcome {
    let at = expires_at(call, call.args.at(2), Unit::Seconds, true, "setex")?;
    put(call, call.args.at(1), call.args.at(3), Expiry::At(at))
}

fn psetex(call: &mut Call<'_>) -> Outcome {
    let at = expires_at(call, call.args.at(2), Unit::Milliseconds, true, "psetex")?;
    put(call, call.args.at(1), call.args.at(3), Expiry::At(at))
}

fn getset(call: &mut Call<'_>) -> Outcome {
    get(call)?;
    store(call, call.args.at(1), call.args.at(2), Expiry::Never)
}

fn getdel(call: &mut Call<'_>) -> Outcome {
    get(call)?;
    let key = call.args.at(1);
    if call.keys.remove(key)? {
        call.event(b'g', "del", key);
    }
    Ok(())
}

fn getex(call: &mut Call<'_>) -> Outcome {
    let options = Options::parse(call.args.from(2), true)?;
    let key = call.args.at(1);
    if call.keys.string(key)?.is_none() {
        call.reply.null();
        return Ok(());
    }
    let expires = match options.expires {
        Some((word, unit, relative)) => Some(expires_at(call, word, unit, relative, "getex")?),
        None => None,
    };
    get(call)?;
    match expires {
        Some(at) if at <= call.keys.now() => {
            call.keys.remove(key)?;
            call.event(b'g', "del", key);
        }
        Some(at) => {
            call.keys.set_expires(key, at)?;
            call.event(b'g', "expire", key);
        }
        None if options.persist && call.keys.expires(key)?.is_some_and(|at| at != NEVER) => {
            call.keys.set_expires(key, NEVER)?;
            call.event(b'g', "persist", key);
        }
        None => {}
    }
    Ok(())
}

fn mget(call: &mut Call<'_>) -> Outcome {
    let keys = call.args.from(1);
    call.reply.array(keys.len());
    for key in keys.iter() {
        match call.keys.look(key)? {
            Some(Value::Str(text)) => text.with(|bytes| call.reply.bulk(bytes)),
            _ => call.reply.null(),
        }
    }
    Ok(())
}

fn set_all(call: &mut Call<'_>) -> Outcome {
    for at in (1..call.args.len()).step_by(2) {
        store(call, call.args.at(at), call.args.at(at + 1), Expiry::Never)?;
    }
    Ok(())
}

fn in_pairs(call: &Call<'_>, command: &str) -> Outcome {
    if call.args.len() % 2 == 0 {
        let text = format!("ERR wrong number of arguments for '{command}' command");
        return Err(Failure::said(text));
    }
    Ok(())
}

fn mset(call: &mut Call<'_>) -> Outcome {
    in_pairs(call, "mset")?;
    set_all(call)?;
    call.reply.ok();
    Ok(())
}

fn msetnx(call: &mut Call<'_>) -> Outcome {
    in_pairs(call, "msetnx")?;
    for at in (1..call.args.len()).step_by(2) {
        if call.keys.exists(call.args.at(at))? {
            call.reply.integer(0);
            return Ok(());
        }
    }
    set_all(call)?;
    call.reply.integer(1);
    Ok(())
}

fn add(call: &mut Call<'_>, by: i64) -> Outcome {
    let key = call.args.at(1);
    let after = call.keys.change_string(key, |before| {
        let before = match before {
            Some(text) => text.integer().ok_or(Failure::NOT_AN_INTEGER)?,
            None => 0,
        };
        let after = before.checked_add(by);
        let after = after.ok_or(Failure::text("ERR increment or decrement would overflow"))?;
        Ok((Str::Int(after), after))
    })?;
    call.event(b'$', "incrby", key);
    call.reply.integer(after);
    Ok(())
}

fn incrby(call: &mut Call<'_>) -> Outcome {
    let by = integer(call.args.at(2))?;
    add(call, by)
}

fn decrby(call: &mut Call<'_>) -> Outcome {
    let by = integer(call.args.at(2))?;
    add(call, by.checked_neg().ok_or(Failure::text("ERR decrement would overflow"))?)
}

fn incrbyfloat(call: &mut Call<'_>) -> Outcome {
    let (key, word) = (call.args.at(1), call.args.at(2));
    let digits = call.keys.change_string(key, |before| {
        let before = match before {
            Some(text) => text.with(Extended::parse).ok_or(Failure::NOT_A_FLOAT)?,
            None => Extended::ZERO,
        };
        let by = Extended::parse(word).ok_or(Failure::NOT_A_FLOAT)?;
        let sum = before.plus(by);
        let sum =
            sum.ok_or(Failure::text("ERR increment would produce NaN or Infinity"))?.to_string();
        // Without trailing zeros it may be an integer, which Redis keeps as text all the same.
        Ok((Str::Bytes(sum.clone().into_bytes()), sum))
    })?;
    call.event(b'$', "incrbyfloat", key);
    call.reply.bulk(digits.as_bytes());
    Ok(())
}

/// `t_string.c`, `checkStringLength`.
fn check_length(call: &Call<'_>, len: usize, more: usize) -> Outcome {
    match len.checked_add(more) {
        Some(total) if total <= call.server.settings.proto_max_bulk_len => Ok(()),
        _ => Err(Failure::text("ERR string exceeds maximum allowed size (proto-max-bulk-len)")),
    }
}

fn append(call: &mut Call<'_>) -> Outcome {
    let (key, more) = (call.args.at(1), call.args.at(2));
    let len = match call.keys.string(key)?.map(Str::len) {
        None => {
            call.keys.set(key, Value::Str(Str::new(more)), Expiry::Never)?;
            more.len()
        }
        Some(len) => {
            check_length(call, len, more.len())?;
            if let Some(text) = call.keys.string_mut(key)? {
                text.append(more);
            }
            len + more.len()
        }
    };
    call.event(b'$', "append", key);
    call.reply.integer(len as i64);
    Ok(())
}

fn strlen(call: &mut Call<'_>) -> Outcome {
    let len = call.keys.string(call.args.at(1))?.map_or(0, Str::len);
    call.reply.integer(len as i64);
    Ok(())
}

fn getrange(call: &mut Call<'_>) -> Outcome {
    let (start, end) = (integer(call.args.at(2))?, integer(call.args.at(3))?);
    match call.keys.string(call.args.at(1))? {
        Some(text) => text.with(|bytes| {
            let range = range(start, end, bytes.len() as i64);
            call.reply.bulk(range.map_or(&[][..], |(start, end)| &bytes[start..=end]));
        }),
        None => call.reply.bulk(b""),
    }
    Ok(())
}

/// From where to where, both included, with negative places counted from the end; none when
/// nothing lies there.
pub fn range(start: i64, end: i64, len: i64) -> Option<(usize, usize)> {
    if start < 0 && end < 0 && start > end {
        return None;
    }
    let place = |at: i64| if at < 0 { at.saturating_add(len).max(0) } else { at };
    let (start, end) = (place(start), place(end).min(len - 1));
    (start <= end).then_some((start as usize, end as usize))
}

fn setrange(call: &mut Call<'_>) -> Outcome {
    let (key, offset, bytes) = (call.args.at(1), integer(call.args.at(2))?, call.args.at(3));
    let Ok(offset) = usize::try_from(offset) else {
        return Err(Failure::text("ERR offset is out of range"));
    };
    let len = call.keys.string(key)?.map(Str::len);
    if bytes.is_empty() {
        call.reply.integer(len.unwrap_or(0) as i64);
        return Ok(());
    }
    check_length(call, offset, bytes.len())?;
    let end = offset + bytes.len();
    if len.is_none() {
        call.keys.set(key, Value::Str(Str::Bytes(Vec::new())), Expiry::Never)?;
    }
    if let Some(text) = call.keys.string_mut(key)? {
        text.grown(end)[offset..end].copy_from_slice(bytes);
    }
    call.event(b'$', "setrange", key);
    call.reply.integer(len.unwrap_or(0).max(end) as i64);
    Ok(())
}
