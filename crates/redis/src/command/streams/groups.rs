//! Groups of consumers: XGROUP, XACK.

use super::{id, no_group_of, Args, Call, Failure, Id, Outcome, NEW_CONSUMER};
use crate::command::container::unknown_or_arity;
use crate::command::number::integer;
use crate::command::{Container, Flags, Sub};
use crate::value::group::Group;

const WRITE: Flags = Flags::WRITE;

pub const XGROUP: Container = Container {
    name: "xgroup",
    subs: &[
        Sub::help("xgroup|help"),
        Sub::new("xgroup|create", -5, WRITE.and(Flags::DENY_OOM), create),
        Sub::new("xgroup|createconsumer", 5, WRITE.and(Flags::DENY_OOM), create_consumer),
        Sub::new("xgroup|delconsumer", 5, WRITE, delete_consumer),
        Sub::new("xgroup|destroy", 4, WRITE, destroy),
        Sub::new("xgroup|setid", -5, WRITE, set_id),
    ],
    help: &[
        "CREATE <key> <groupname> <id|$> [option]",
        "    Create a new consumer group. Options are:",
        "    * MKSTREAM",
        "      Create the empty stream if it does not exist.",
        "    * ENTRIESREAD entries_read",
        "      Set the group's entries_read counter (internal use).",
        "CREATECONSUMER <key> <groupname> <consumer>",
        "    Create a new consumer in the specified group.",
        "DELCONSUMER <key> <groupname> <consumer>",
        "    Remove the specified consumer.",
        "DESTROY <key> <groupname>",
        "    Remove the specified group.",
        "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
        "    Set the current group ID and entries_read counter.",
    ],
};

pub fn xgroup(call: &mut Call<'_>) -> Outcome {
    XGROUP.run(call)
}

/// The stream's last id; it has to be there.
fn last_id(call: &mut Call<'_>) -> Result<Id, Failure> {
    match call.keys.stream(call.args.at(2))? {
        Some(stream) => Ok(stream.head_now().last),
        None => Err(Failure::text(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may \
             want to use the MKSTREAM option to create an empty stream automatically.",
        )),
    }
}

/// As [`last_id`], for commands of a group that is there.
fn last_id_of_group(call: &mut Call<'_>) -> Result<Id, Failure> {
    let last = last_id(call)?;
    match call.keys.stream(call.args.at(2))?.and_then(|stream| stream.group(call.args.at(3))) {
        Some(_) => Ok(last),
        None => Err(no_group_of(call.args)),
    }
}

/// Whether the stream may be made, and ENTRIESREAD.
fn options(args: Args<'_>, creates: bool) -> Result<(bool, Option<u64>), Failure> {
    let (mut make, mut read, mut at) = (false, None, 5);
    while at < args.len() {
        if creates && args.is(at, "mkstream") {
            make = true;
            at += 1;
        } else if args.is(at, "entriesread") && at + 1 < args.len() {
            let given = integer(args.at(at + 1))?;
            if given < -1 {
                return Err(Failure::text("ERR value for ENTRIESREAD must be positive or -1"));
            }
            read = u64::try_from(given).ok();
            at += 2;
        } else {
            return Err(unknown_or_arity("xgroup", args));
        }
    }
    Ok((make, read))
}

fn create(call: &mut Call<'_>) -> Outcome {
    let (args, key) = (call.args, call.args.at(2));
    let (make, read) = options(args, true)?;
    if args.len() > 8 {
        return Err(unknown_or_arity("xgroup", args));
    }
    let last = match make && call.keys.stream(key)?.is_none() {
        true => (0, 0),
        false => last_id(call)?,
    };
    let from = if args.at(4) == b"$" { last } else { id(args.at(4), 0)? };
    let stream = call.keys.stream(key)?;
    if stream.is_some_and(|stream| stream.group(args.at(3)).is_some()) {
        return Err(Failure::text("BUSYGROUP Consumer Group name already exists"));
    }
    let group = Group::new(from, read);
    match call.keys.groups_mut(key)? {
        Some(stream) => stream.add_group(args.at(3), group),
        None => call.keys.stream_or_new(key)?.add_group(args.at(3), group),
    }
    call.event(b't', "xgroup-create", key);
    call.reply.ok();
    Ok(())
}

fn destroy(call: &mut Call<'_>) -> Outcome {
    let (key, group) = (call.args.at(2), call.args.at(3));
    last_id(call)?;
    let removed = match call.keys.stream(key)?.and_then(|stream| stream.group(group)) {
        Some(_) => call.keys.groups_mut(key)?,
        None => None,
    };
    if let Some(stream) = removed {
        stream.remove_group(group);
        call.event(b't', "xgroup-destroy", key);
        // Whoever is blocked in the group is told that it has gone.
        call.keys.signal(key);
        call.reply.integer(1);
    } else {
        call.reply.integer(0);
    }
    Ok(())
}

fn set_id(call: &mut Call<'_>) -> Outcome {
    let (args, key) = (call.args, call.args.at(2));
    let (_, read) = options(args, false)?;
    let last = last_id_of_group(call)?;
    if args.len() != 5 && args.len() != 7 {
        return Err(unknown_or_arity("xgroup", args));
    }
    let from = match args.at(4) {
        b"$" => last,
        word => super::bound_or_id(word)?,
    };
    let stream = call.keys.groups_mut(key)?;
    if let Some(group) = stream.and_then(|stream| stream.group_mut(args.at(3))) {
        (group.last, group.read) = (from, read);
    }
    call.event(b't', "xgroup-setid", key);
    call.reply.ok();
    Ok(())
}

fn create_consumer(call: &mut Call<'_>) -> Outcome {
    consumer(call, true)
}

fn delete_consumer(call: &mut Call<'_>) -> Outcome {
    consumer(call, false)
}

fn consumer(call: &mut Call<'_>, creates: bool) -> Outcome {
    last_id_of_group(call)?;
    let (args, key) = (call.args, call.args.at(2));
    let (name, now) = (args.at(4), call.keys.now());
    let stream = call.keys.stream(key)?;
    let group = stream.and_then(|stream| stream.group(args.at(3)));
    let there = group.is_some_and(|group| group.consumer(name).is_some());
    if there == creates {
        call.reply.integer(0);
        return Ok(());
    }
    let stream = call.keys.groups_mut(key)?;
    let Some(group) = stream.and_then(|stream| stream.group_mut(args.at(3))) else { return Ok(()) };
    if creates {
        group.add_consumer(name, now);
        call.event(b't', NEW_CONSUMER, key);
        call.reply.integer(1);
    } else {
        let pending = group.remove_consumer(name).unwrap_or(0);
        call.event(b't', "xgroup-delconsumer", key);
        call.reply.integer(pending as i64);
    }
    Ok(())
}

pub fn xack(call: &mut Call<'_>) -> Outcome {
    let (args, key) = (call.args, call.args.at(1));
    let stream = call.keys.stream(key)?;
    let Some(group) = stream.and_then(|stream| stream.group(args.at(2))) else {
        call.reply.integer(0);
        return Ok(());
    };
    let ids: Result<Vec<Id>, Failure> = args.from(3).iter().map(|word| id(word, 0)).collect();
    let mut ids = ids?;
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| group.pending().contains_key(id));
    if !ids.is_empty() {
        let stream = call.keys.groups_mut(key)?;
        if let Some(group) = stream.and_then(|stream| stream.group_mut(args.at(2))) {
            for id in &ids {
                group.settle(*id);
            }
        }
    }
    call.reply.integer(ids.len() as i64);
    Ok(())
}
