//! Commands of hashes.

use super::cursor::{self, Options};
use super::{number, Command, Flags, Keys};
use crate::call::Call;
use crate::extended::Extended;
use crate::failure::{Failure, Outcome};
use crate::reply::Reply;
use crate::value::{parse_integer, Tracked};

const READ: Flags = Flags::READONLY;
const FAST_READ: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST);

pub const COMMANDS: &[Command] = &[
    command("hset", -4, WRITE, hset),
    command("hsetnx", 4, WRITE, hsetnx),
    command("hmset", -4, WRITE, hmset),
    command("hget", 3, FAST_READ, hget),
    command("hmget", -3, FAST_READ, hmget),
    command("hgetall", 2, READ, hgetall),
    command("hdel", -3, Flags::WRITE.and(Flags::FAST), hdel),
    command("hlen", 2, FAST_READ, hlen),
    command("hexists", 3, FAST_READ, hexists),
    command("hkeys", 2, READ, hkeys),
    command("hvals", 2, READ, hvals),
    command("hstrlen", 3, FAST_READ, hstrlen),
    command("hincrby", 4, WRITE, hincrby),
    command("hincrbyfloat", 4, WRITE, hincrbyfloat),
    command("hrandfield", -2, READ, hrandfield),
    command("hscan", -3, READ, hscan),
];

const fn command(
    name: &'static str,
    arity: i32,
    flags: Flags,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys: Keys::Range(1, 1, 1), group: "hash", run }
}

/// Bytes of random elements in one reply, at most.
pub const DRAWN_BYTES_MAX: usize = 512 << 20;

pub const OUT_OF_RANGE: Failure = Failure::text("ERR value is out of range");

fn hset(call: &mut Call<'_>) -> Outcome {
    let new = put_all(call, "hset")?;
    call.reply.integer(new);
    Ok(())
}

fn hmset(call: &mut Call<'_>) -> Outcome {
    put_all(call, "hmset")?;
    call.reply.ok();
    Ok(())
}

/// Gives the number of new fields.
fn put_all(call: &mut Call<'_>, name: &str) -> Result<i64, Failure> {
    let args = call.args;
    if args.len() % 2 == 1 {
        return Err(Failure::said(format!("ERR wrong number of arguments for '{name}' command")));
    }
    let key = args.at(1);
    let hash = call.keys.hash_or_new(key)?;
    let mut new = 0;
    for at in (2..args.len()).step_by(2) {
        new += i64::from(hash.insert(args.at(at), args.at(at + 1)));
    }
    call.event(b'h', "hset", key);
    Ok(new)
}

fn hsetnx(call: &mut Call<'_>) -> Outcome {
    let (key, field) = (call.args.at(1), call.args.at(2));
    if call.keys.hash(key)?.is_some_and(|hash| hash.get(field).is_some()) {
        call.reply.integer(0);
        return Ok(());
    }
    call.keys.hash_or_new(key)?.insert(field, call.args.at(3));
    call.event(b'h', "hset", key);
    call.reply.integer(1);
    Ok(())
}

fn hget(call: &mut Call<'_>) -> Outcome {
    let hash = call.keys.hash(call.args.at(1))?;
    match hash.and_then(|hash| hash.get(call.args.at(2))) {
        Some(value) => call.reply.bulk(value),
        None => call.reply.null(),
    }
    Ok(())
}

fn hmget(call: &mut Call<'_>) -> Outcome {
    let fields = call.args.from(2);
    let hash = call.keys.hash(call.args.at(1))?;
    call.reply.array(fields.len());
    for field in fields.iter() {
        match hash.and_then(|hash| hash.get(field)) {
            Some(value) => call.reply.bulk(value),
            None => call.reply.null(),
        }
    }
    Ok(())
}

fn hgetall(call: &mut Call<'_>) -> Outcome {
    let Some(hash) = call.keys.hash(call.args.at(1))? else {
        call.reply.map(0);
        return Ok(());
    };
    call.reply.map(hash.len());
    for (field, value) in hash.iter() {
        call.reply.bulk(field);
        call.reply.bulk(value);
    }
    Ok(())
}

fn hkeys(call: &mut Call<'_>) -> Outcome {
    tell_each(call, |reply, field, _| reply.bulk(field))
}

fn hvals(call: &mut Call<'_>) -> Outcome {
    tell_each(call, |reply, _, value| reply.bulk(value))
}

fn tell_each(call: &mut Call<'_>, tell: fn(&mut dyn Reply, &[u8], &[u8])) -> Outcome {
    let Some(hash) = call.keys.hash(call.args.at(1))? else {
        call.reply.array(0);
        return Ok(());
    };
    call.reply.array(hash.len());
    hash.iter().for_each(|(field, value)| tell(call.reply, field, value));
    Ok(())
}

fn hdel(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let Some(hash) = call.keys.hash_mut(key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let fields = call.args.from(2);
    let gone = fields.iter().filter(|field| hash.remove(field).is_some()).count();
    if gone > 0 {
        call.event(b'h', "hdel", key);
        if call.keys.settle(key)? {
            call.event(b'g', "del", key);
        }
    }
    call.reply.integer(gone as i64);
    Ok(())
}

fn hlen(call: &mut Call<'_>) -> Outcome {
    let len = call.keys.hash(call.args.at(1))?.map_or(0, Tracked::len);
    call.reply.integer(len as i64);
    Ok(())
}

fn hexists(call: &mut Call<'_>) -> Outcome {
    let hash = call.keys.hash(call.args.at(1))?;
    let there = hash.is_some_and(|hash| hash.get(call.args.at(2)).is_some());
    call.reply.integer(i64::from(there));
    Ok(())
}

fn hstrlen(call: &mut Call<'_>) -> Outcome {
    let hash = call.keys.hash(call.args.at(1))?;
    let value = hash.and_then(|hash| hash.get(call.args.at(2)));
    call.reply.integer(value.map_or(0, <[u8]>::len) as i64);
    Ok(())
}

fn hincrby(call: &mut Call<'_>) -> Outcome {
    let by = number::integer(call.args.at(3))?;
    let (key, field) = (call.args.at(1), call.args.at(2));
    let before = match call.keys.hash(key)?.and_then(|hash| hash.get(field)) {
        Some(value) => {
            parse_integer(value).ok_or(Failure::text("ERR hash value is not an integer"))?
        }
        None => 0,
    };
    let after =
        before.checked_add(by).ok_or(Failure::text("ERR increment or decrement would overflow"))?;
    let mut digits = itoa::Buffer::new();
    call.keys.hash_or_new(key)?.insert(field, digits.format(after).as_bytes());
    call.event(b'h', "hincrby", key);
    call.reply.integer(after);
    Ok(())
}

fn hincrbyfloat(call: &mut Call<'_>) -> Outcome {
    let by = Extended::parse(call.args.at(3)).ok_or(Failure::NOT_A_FLOAT)?;
    // Only an infinity can't be added to nothing.
    let by = by.plus(Extended::ZERO).ok_or(Failure::text("ERR value is NaN or Infinity"))?;
    let (key, field) = (call.args.at(1), call.args.at(2));
    let before = match call.keys.hash(key)?.and_then(|hash| hash.get(field)) {
        Some(value) => {
            Extended::parse(value).ok_or(Failure::text("ERR hash value is not a float"))?
        }
        None => Extended::ZERO,
    };
    let after = before.plus(by);
    let after = after.ok_or(Failure::text("ERR increment would produce NaN or Infinity"))?;
    let digits = after.to_string();
    call.keys.hash_or_new(key)?.insert(field, digits.as_bytes());
    call.event(b'h', "hincrbyfloat", key);
    call.reply.bulk(digits.as_bytes());
    Ok(())
}

/// How many random elements are wanted; negative: the same may come several times.
pub fn draw_count(word: &[u8]) -> Result<i64, Failure> {
    match number::integer(word)? {
        i64::MIN => Err(Failure::text(
            "ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        )),
        count => Ok(count),
    }
}

fn hrandfield(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if args.len() == 2 {
        let hash = call.keys.hash(args.at(1))?;
        let random = &mut call.server.random;
        match hash.and_then(|hash| hash.at(random.below(hash.len()))) {
            Some((field, _)) => call.reply.bulk(field),
            None => call.reply.null(),
        }
        return Ok(());
    }
    let count = draw_count(args.at(2))?;
    let values = args.len() > 3;
    if args.len() > 4 || (values && !args.is(3, "withvalues")) {
        return Err(Failure::SYNTAX);
    }
    if values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(OUT_OF_RANGE);
    }
    draw_fields(call, count, values)
}

fn draw_fields(call: &mut Call<'_>, count: i64, values: bool) -> Outcome {
    let Some(hash) = call.keys.hash(call.args.at(1))? else {
        call.reply.array(0);
        return Ok(());
    };
    let random = &mut call.server.random;
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let several = count < 0;
    let len = if several { wanted } else { wanted.min(hash.len()) };
    let nested = values && call.reply.protocol() > 2;
    let start = call.reply.mark();
    call.reply.array(if values && !nested { len.saturating_mul(2) } else { len });
    let mut tell = |(field, value): (&[u8], &[u8])| {
        if nested {
            call.reply.array(2);
        }
        call.reply.bulk(field);
        if values {
            call.reply.bulk(value);
        }
        match call.reply.mark() - start > DRAWN_BYTES_MAX {
            true => Err(OUT_OF_RANGE),
            false => Ok(()),
        }
    };
    if several {
        for _ in 0..len {
            hash.at(random.below(hash.len())).map_or(Ok(()), &mut tell)?;
        }
        return Ok(());
    }
    for at in random.distinct(len, hash.len()) {
        hash.at(at).map_or(Ok(()), &mut tell)?;
    }
    Ok(())
}

fn hscan(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let from = cursor::parse(args.at(2))?;
    let Some(hash) = call.keys.hash(args.at(1))? else {
        cursor::tell::<&[u8]>(call.reply, 0, &[]);
        return Ok(());
    };
    let mut options = Options::parse(args, 3)?;
    let mut from = from;
    if hash.encoding(&call.server.settings) != "hashtable" {
        (from, options) = (0, options.all());
    }
    let mut found = Vec::new();
    let next = hash.scan(from, options.count, |field, value| {
        if options.matches(field) {
            found.extend([field, value]);
        }
    });
    cursor::tell(call.reply, next, &found);
    Ok(())
}
