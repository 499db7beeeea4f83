//! DUMP and RESTORE.

use super::number::integer;
use crate::args::Args;
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::keyspace::Expiry;
use crate::rdb::{self, Refused};

pub fn dump(call: &mut Call<'_>) -> Outcome {
    let Some(value) = call.keys.peek(call.args.at(1))? else {
        call.reply.null();
        return Ok(());
    };
    let payload = rdb::dump(value);
    call.reply.bulk(&payload);
    Ok(())
}

#[derive(Debug, Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle: Option<i64>,
    frequency: Option<i64>,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Options, Failure> {
        let mut options = Options::default();
        let mut at = 0;
        while at < args.len() {
            let more = at + 1 < args.len();
            if args.is(at, "replace") {
                options.replace = true;
            } else if args.is(at, "absttl") {
                options.absolute = true;
            } else if args.is(at, "idletime") && more && options.frequency.is_none() {
                let idle = integer(args.at(at + 1))?;
                if idle < 0 {
                    return Err(Failure::text("ERR Invalid IDLETIME value, must be >= 0"));
                }
                options.idle = Some(idle);
                at += 1;
            } else if args.is(at, "freq") && more && options.idle.is_none() {
                let frequency = integer(args.at(at + 1))?;
                if !(0..=255).contains(&frequency) {
                    return Err(Failure::text("ERR Invalid FREQ value, must be >= 0 and <= 255"));
                }
                options.frequency = Some(frequency);
                at += 1;
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }
}

/// FREQ is checked and not kept: frequencies are not tracked.
pub fn restore(call: &mut Call<'_>) -> Outcome {
    let (key, payload) = (call.args.at(1), call.args.at(3));
    let options = Options::parse(call.args.from(4))?;
    let there = call.keys.exists(key)?;
    if there && !options.replace {
        return Err(Failure::text("BUSYKEY Target key name already exists."));
    }
    let ttl = integer(call.args.at(2))?;
    if ttl < 0 {
        return Err(Failure::text("ERR Invalid TTL value, must be >= 0"));
    }
    let value = rdb::restore(payload).map_err(|refused| match refused {
        Refused::Footer => Failure::text("ERR DUMP payload version or checksum are wrong"),
        Refused::Format => Failure::text("ERR Bad data format"),
    })?;
    let base = if options.absolute { 0 } else { call.keys.now() };
    let expiry = match ttl {
        0 => Expiry::Never,
        ttl => Expiry::At(ttl.saturating_add(base)),
    };
    if matches!(expiry, Expiry::At(at) if at <= call.keys.now()) {
        if call.keys.remove(key)? {
            call.event(b'g', "del", key);
        }
    } else {
        call.keys.set(key, value, expiry)?;
        if let Some(idle) = options.idle {
            call.keys.set_idle(key, u32::try_from(idle).unwrap_or(u32::MAX))?;
        }
        call.keys.signal(key);
        call.event(b'g', "restore", key);
    }
    call.reply.ok();
    Ok(())
}
