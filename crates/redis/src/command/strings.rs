//! Commands of strings.

use super::{Command, Flags, Keys};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::keyspace::Expiry;
use crate::value::{Str, Value};

pub const COMMANDS: &[Command] = &[
    Command {
        name: "get",
        arity: 2,
        flags: Flags::READONLY.and(Flags::FAST),
        keys: Keys::Range(1, 1, 1),
        group: "string",
        run: get,
    },
    Command {
        name: "set",
        arity: -3,
        flags: Flags::WRITE.and(Flags::DENY_OOM),
        keys: Keys::Range(1, 1, 1),
        group: "string",
        run: set,
    },
    Command {
        name: "incrby",
        arity: 3,
        flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST),
        keys: Keys::Range(1, 1, 1),
        group: "string",
        run: incrby,
    },
];

fn get(call: &mut Call<'_>) -> Outcome {
    match call.keys.string(call.args.at(1))? {
        Some(text) => text.with(|bytes| call.reply.bulk(bytes)),
        None => call.reply.null(),
    }
    Ok(())
}

fn set(call: &mut Call<'_>) -> Outcome {
    if call.args.len() > 3 {
        return Err(Failure::SYNTAX);
    }
    let value = Value::Str(Str::new(call.args.at(2)));
    call.keys.overwrite(call.args.at(1), value, Expiry::Never)?;
    call.reply.ok();
    Ok(())
}

fn incrby(call: &mut Call<'_>) -> Outcome {
    let by = super::number::integer(call.args.at(2))?;
    let key = call.args.at(1);
    let before = match call.keys.string(key)? {
        Some(text) => text.integer().ok_or(Failure::NOT_AN_INTEGER)?,
        None => 0,
    };
    let after =
        before.checked_add(by).ok_or(Failure::text("ERR increment or decrement would overflow"))?;
    call.keys.set(key, Value::Str(Str::Int(after)), Expiry::Keep)?;
    call.reply.integer(after);
    Ok(())
}
