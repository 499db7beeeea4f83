//! When keys expire: the EXPIRE and TTL families and PERSIST.

use super::number::integer;
use super::{Command, Flags, Keys};
use crate::args::Args;
use crate::call::{whole, Call};
use crate::failure::{Failure, Outcome};
use crate::keyspace::NEVER;

const WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const READ: Flags = Flags::READONLY.and(Flags::FAST);

const fn row(
    name: &'static str,
    arity: i32,
    flags: Flags,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys: Keys::Range(1, 1, 1), group: "keyspace", run }
}

pub const COMMANDS: &[Command] = &[
    row("expire", -3, WRITE, |call| expire(call, "expire", Unit::Seconds, true)),
    row("pexpire", -3, WRITE, |call| expire(call, "pexpire", Unit::Milliseconds, true)),
    row("expireat", -3, WRITE, |call| expire(call, "expireat", Unit::Seconds, false)),
    row("pexpireat", -3, WRITE, |call| expire(call, "pexpireat", Unit::Milliseconds, false)),
    row("ttl", 2, READ, |call| ttl(call, Unit::Seconds, true)),
    row("pttl", 2, READ, |call| ttl(call, Unit::Milliseconds, true)),
    row("expiretime", 2, READ, |call| ttl(call, Unit::Seconds, false)),
    row("pexpiretime", 2, READ, |call| ttl(call, Unit::Milliseconds, false)),
    row("persist", 2, WRITE, persist),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Milliseconds,
}

/// Milliseconds since 1970; none when that can't be told. The last of all stands for never: it
/// counts as the one before.
pub fn moment(given: i64, unit: Unit, base: i64) -> Option<i64> {
    let given = match unit {
        Unit::Seconds => given.checked_mul(1000)?,
        Unit::Milliseconds => given,
    };
    given.checked_add(base).map(|at| at.min(NEVER - 1))
}

pub fn invalid(command: &str) -> Failure {
    Failure::said(format!("ERR invalid expire time in '{command}' command"))
}

#[derive(Debug, Default)]
struct Only {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Only {
    fn parse(args: Args<'_>) -> Result<Only, Failure> {
        let mut only = Only::default();
        for word in args.iter() {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            match () {
                () if is("nx") => only.nx = true,
                () if is("xx") => only.xx = true,
                () if is("gt") => only.gt = true,
                () if is("lt") => only.lt = true,
                () => {
                    return Err(Failure::joined(&[b"ERR Unsupported option ", whole(word)]));
                }
            }
        }
        if only.nx && (only.xx || only.gt || only.lt) {
            return Err(Failure::text(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if only.gt && only.lt {
            return Err(Failure::text("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(only)
    }

    /// Whether a key that expires then may expire at `at` instead.
    fn allows(&self, now: i64, at: i64) -> bool {
        let never = now == NEVER;
        !(self.nx && !never || self.xx && never || self.gt && at <= now || self.lt && at >= now)
    }
}

fn expire(call: &mut Call<'_>, name: &str, unit: Unit, relative: bool) -> Outcome {
    let only = Only::parse(call.args.from(3))?;
    let given = integer(call.args.at(2))?;
    let base = if relative { call.keys.now() } else { 0 };
    let at = moment(given, unit, base).ok_or_else(|| invalid(name))?;
    let key = call.args.at(1);
    let Some(expires) = call.keys.expires(key)?.filter(|expires| only.allows(*expires, at)) else {
        call.reply.integer(0);
        return Ok(());
    };
    if at <= call.keys.now() {
        call.keys.remove(key)?;
        call.event(b'g', "del", key);
    } else {
        if at != expires {
            call.keys.set_expires(key, at)?;
        }
        call.event(b'g', "expire", key);
    }
    call.reply.integer(1);
    Ok(())
}

fn ttl(call: &mut Call<'_>, unit: Unit, relative: bool) -> Outcome {
    let left = match call.keys.expires(call.args.at(1))? {
        None => -2,
        Some(NEVER) => -1,
        Some(at) => {
            let ms = if relative { (at - call.keys.now()).max(0) } else { at };
            match unit {
                Unit::Seconds => ms.saturating_add(500) / 1000,
                Unit::Milliseconds => ms,
            }
        }
    };
    call.reply.integer(left);
    Ok(())
}

fn persist(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let expires = call.keys.expires(key)?.is_some_and(|at| at != NEVER);
    if expires {
        call.keys.set_expires(key, NEVER)?;
        call.event(b'g', "persist", key);
    }
    call.reply.integer(i64::from(expires));
    Ok(())
}
