//! Commands of HyperLogLogs.

use super::{Command, Flags, Keys};
use crate::args::Args;
use crate::call::{whole, Call};
use crate::failure::{Failure, Outcome};
use crate::hyperloglog::{self, HyperLogLog, REGISTERS};
use crate::keyspace::{Expiry, Keyspace};
use crate::value::{Str, Value};

const WRITE: Flags = Flags::WRITE.and(Flags::DENY_OOM);

pub const COMMANDS: &[Command] = &[
    command("pfadd", -2, WRITE.and(Flags::FAST), Keys::Range(1, 1, 1), pfadd),
    command("pfcount", -2, Flags::READONLY, Keys::Range(1, -1, 1), pfcount),
    command("pfmerge", -2, WRITE, Keys::Range(1, -1, 1), pfmerge),
    command("pfdebug", -3, WRITE.and(Flags::ADMIN), Keys::Range(2, 2, 1), pfdebug),
];

const fn command(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, group: "hyperloglog", run }
}

fn find(keys: &mut Keyspace, key: &[u8]) -> Result<Option<HyperLogLog>, Failure> {
    let bytes = keys.string(key)?.map(|text| text.with(<[u8]>::to_vec));
    bytes.map(HyperLogLog::new).transpose()
}

fn store(call: &mut Call<'_>, key: &[u8], value: HyperLogLog) -> Outcome {
    let value = Value::Str(Str::Bytes(value.into_bytes()));
    call.keys.set(key, value, Expiry::Keep)
}

fn pfadd(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let found = find(call.keys, key)?;
    let mut changed = found.is_none();
    let mut value = found.unwrap_or_default();
    for element in call.args.from(2).iter() {
        changed |= value.add(element)?;
    }
    if changed {
        value.invalidate();
        store(call, key, value)?;
        call.event(b'$', "pfadd", key);
    }
    call.reply.integer(i64::from(changed));
    Ok(())
}

fn pfcount(call: &mut Call<'_>) -> Outcome {
    let count = if call.args.len() == 2 {
        find(call.keys, call.args.at(1))?.map_or(Ok(0), |value| value.count())?
    } else {
        hyperloglog::count(&union(call.keys, call.args.from(1))?.0)
    };
    call.reply.integer(count as i64);
    Ok(())
}

/// The greatest of each register, and whether one of them is dense.
fn union(keys: &mut Keyspace, names: Args<'_>) -> Result<(Box<[u8; REGISTERS]>, bool), Failure> {
    let mut registers = Box::new([0; REGISTERS]);
    let mut dense = false;
    for key in names.iter() {
        if let Some(value) = find(keys, key)? {
            dense |= value.is_dense();
            value.raise_all(&mut registers)?;
        }
    }
    Ok((registers, dense))
}

fn pfmerge(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let (registers, dense) = union(call.keys, call.args.from(1))?;
    let mut value = find(call.keys, key)?.unwrap_or_default();
    if dense {
        value.make_dense()?;
    }
    for (register, to) in registers.iter().enumerate().filter(|(_, to)| **to > 0) {
        value.raise(register, *to)?;
    }
    value.invalidate();
    store(call, key, value)?;
    call.event(b'$', "pfadd", key);
    call.reply.ok();
    Ok(())
}

fn pfdebug(call: &mut Call<'_>) -> Outcome {
    let (args, key) = (call.args, call.args.at(2));
    let found = find(call.keys, key)?;
    let mut value = found.ok_or(Failure::text("ERR The specified key does not exist"))?;
    let was_dense = value.is_dense();
    let known = ["getreg", "decode", "encoding", "todense"];
    let name = whole(args.at(1));
    if !known.iter().any(|known| args.is(1, known)) {
        return Err(Failure::joined(&[b"ERR Unknown PFDEBUG subcommand '", name, b"'"]));
    }
    if args.len() != 3 {
        let why = b"ERR Wrong number of arguments for the '";
        return Err(Failure::joined(&[why, name, b"' subcommand"]));
    }
    if args.is(1, "encoding") {
        call.reply.simple(if was_dense { "dense" } else { "sparse" });
        return Ok(());
    }
    if args.is(1, "decode") {
        if was_dense {
            return Err(Failure::text("ERR HLL encoding is not sparse"));
        }
        let runs: Vec<String> = value.runs().map(decoded).collect();
        call.reply.bulk(runs.join(" ").as_bytes());
        return Ok(());
    }
    value.make_dense()?;
    if args.is(1, "getreg") {
        call.reply.array(REGISTERS);
        value.dense_registers().for_each(|value| call.reply.integer(i64::from(value)));
    } else {
        call.reply.integer(i64::from(!was_dense));
    }
    if !was_dense {
        store(call, key, value)?;
    }
    Ok(())
}

fn decoded(run: hyperloglog::Run) -> String {
    match (run.value, run.long) {
        (0, false) => format!("z:{}", run.len),
        (0, true) => format!("Z:{}", run.len),
        (value, _) => format!("v:{value},{}", run.len),
    }
}
