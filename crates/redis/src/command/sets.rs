//! Commands of sets.

use super::cursor::{self, Options};
use super::hashes::{draw_count, DRAWN_BYTES_MAX, OUT_OF_RANGE};
use super::{Command, Flags, Keys};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::value::{parse_integer, Tracked};

mod algebra;

const READ: Flags = Flags::READONLY;
const FAST_READ: Flags = Flags::READONLY.and(Flags::FAST);
const FAST_WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const STORE: Flags = Flags::WRITE.and(Flags::DENY_OOM);

const ONE: Keys = Keys::Range(1, 1, 1);
const ALL: Keys = Keys::Range(1, -1, 1);

pub const COMMANDS: &[Command] = &[
    command("sadd", -3, FAST_WRITE.and(Flags::DENY_OOM), ONE, sadd),
    command("srem", -3, FAST_WRITE, ONE, srem),
    command("smembers", 2, READ, ONE, algebra::sinter),
    command("sismember", 3, FAST_READ, ONE, sismember),
    command("smismember", -3, FAST_READ, ONE, smismember),
    command("scard", 2, FAST_READ, ONE, scard),
    command("spop", -2, FAST_WRITE, ONE, spop),
    command("srandmember", -2, READ, ONE, srandmember),
    command("smove", 4, FAST_WRITE, Keys::Range(1, 2, 1), smove),
    command("sinter", -2, READ, ALL, algebra::sinter),
    command("sinterstore", -3, STORE, ALL, algebra::sinterstore),
    command("sintercard", -3, READ, Keys::COUNTED_FIRST, algebra::sintercard),
    command("sunion", -2, READ, ALL, algebra::sunion),
    command("sunionstore", -3, STORE, ALL, algebra::sunionstore),
    command("sdiff", -2, READ, ALL, algebra::sdiff),
    command("sdiffstore", -3, STORE, ALL, algebra::sdiffstore),
    command("sscan", -3, READ, ONE, sscan),
];

const fn command(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, group: "set", run }
}

fn sadd(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let set = call.keys.set_or_new(key)?;
    let members = call.args.from(2);
    let new = members.iter().filter(|member| set.insert(member)).count();
    if new > 0 {
        call.event(b's', "sadd", key);
    }
    call.reply.integer(new as i64);
    Ok(())
}

fn srem(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let Some(set) = call.keys.set_mut(key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let members = call.args.from(2);
    let gone = members.iter().filter(|member| set.remove(member)).count();
    if gone > 0 {
        call.event(b's', "srem", key);
        if call.keys.settle(key)? {
            call.event(b'g', "del", key);
        }
    }
    call.reply.integer(gone as i64);
    Ok(())
}

fn sismember(call: &mut Call<'_>) -> Outcome {
    let set = call.keys.set_of(call.args.at(1))?;
    let there = set.is_some_and(|set| set.contains(call.args.at(2)));
    call.reply.integer(i64::from(there));
    Ok(())
}

fn smismember(call: &mut Call<'_>) -> Outcome {
    let members = call.args.from(2);
    let set = call.keys.set_of(call.args.at(1))?;
    call.reply.array(members.len());
    for member in members.iter() {
        let there = set.is_some_and(|set| set.contains(member));
        call.reply.integer(i64::from(there));
    }
    Ok(())
}

fn scard(call: &mut Call<'_>) -> Outcome {
    let len = call.keys.set_of(call.args.at(1))?.map_or(0, Tracked::len);
    call.reply.integer(len as i64);
    Ok(())
}

fn spop(call: &mut Call<'_>) -> Outcome {
    let (key, args) = (call.args.at(1), call.args);
    match args.len() {
        2 => {}
        3 => return spop_several(call),
        _ => return Err(Failure::SYNTAX),
    }
    let Some(set) = call.keys.set_mut(key)? else {
        call.reply.null();
        return Ok(());
    };
    let at = call.server.random.below(set.len());
    if let Some(member) = set.at(at).map(|member| Box::<[u8]>::from(&*member)) {
        set.remove(&member);
        call.reply.bulk(&member);
    }
    popped(call, key)
}

fn spop_several(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let count = parse_integer(call.args.at(2)).and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(Failure::text("ERR value is out of range, must be positive"))?;
    let Some(set) = call.keys.set_of(key)?.filter(|_| count > 0) else {
        call.reply.set(0);
        return Ok(());
    };
    let chosen = call.server.random.distinct(count, set.len());
    let members = chosen.into_iter().filter_map(|at| set.at(at));
    let members: Vec<Box<[u8]>> = members.map(|member| Box::from(&*member)).collect();
    call.reply.set(members.len());
    members.iter().for_each(|member| call.reply.bulk(member));
    if members.len() == set.len() {
        call.event(b's', "spop", key);
        call.keys.remove(key)?;
        call.event(b'g', "del", key);
        return Ok(());
    }
    if let Some(set) = call.keys.set_mut(key)? {
        for member in &members {
            set.remove(member);
        }
    }
    popped(call, key)
}

fn popped(call: &mut Call<'_>, key: &[u8]) -> Outcome {
    call.event(b's', "spop", key);
    if call.keys.settle(key)? {
        call.event(b'g', "del", key);
    }
    Ok(())
}

fn srandmember(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let count = match args.len() {
        2 => None,
        3 => Some(draw_count(args.at(2))?),
        _ => return Err(Failure::SYNTAX),
    };
    let set = call.keys.set_of(args.at(1))?;
    let random = &mut call.server.random;
    let (Some(set), Some(count)) = (set, count) else {
        match (set.and_then(|set| set.at(random.below(set.len()))), count) {
            (Some(member), _) => call.reply.bulk(&member),
            (None, None) => call.reply.null(),
            (None, Some(_)) => call.reply.array(0),
        }
        return Ok(());
    };
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count >= 0 {
        let len = wanted.min(set.len());
        call.reply.array(len);
        let chosen = random.distinct(len, set.len());
        chosen.into_iter().filter_map(|at| set.at(at)).for_each(|m| call.reply.bulk(&m));
        return Ok(());
    }
    let start = call.reply.mark();
    call.reply.array(wanted);
    for _ in 0..wanted {
        if let Some(member) = set.at(random.below(set.len())) {
            call.reply.bulk(&member);
        }
        if call.reply.mark() - start > DRAWN_BYTES_MAX {
            return Err(OUT_OF_RANGE);
        }
    }
    Ok(())
}

fn smove(call: &mut Call<'_>) -> Outcome {
    let (from, to, member) = (call.args.at(1), call.args.at(2), call.args.at(3));
    let there = call.keys.exists(from)?;
    call.keys.exists(to)?;
    if !there {
        call.reply.integer(0);
        return Ok(());
    }
    let is_member = call.keys.set_of(from)?.is_some_and(|set| set.contains(member));
    call.keys.set_of(to)?;
    if !is_member || from == to {
        call.reply.integer(i64::from(is_member));
        return Ok(());
    }
    if let Some(set) = call.keys.set_mut(from)? {
        set.remove(member);
    }
    call.event(b's', "srem", from);
    if call.keys.settle(from)? {
        call.event(b'g', "del", from);
    }
    if call.keys.set_or_new(to)?.insert(member) {
        call.event(b's', "sadd", to);
    }
    call.reply.integer(1);
    Ok(())
}

fn sscan(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let mut from = cursor::parse(args.at(2))?;
    let Some(set) = call.keys.set_of(args.at(1))? else {
        cursor::tell::<&[u8]>(call.reply, 0, &[]);
        return Ok(());
    };
    let mut options = Options::parse(args, 3)?;
    if set.encoding(&call.server.settings) != "hashtable" {
        (from, options) = (0, options.all());
    }
    let mut found = Vec::new();
    let next = set.scan(from, options.count, |member| {
        if options.matches(&member) {
            found.push(member);
        }
    });
    cursor::tell(call.reply, next, &found);
    Ok(())
}
