//! Groups of consumers: XGROUP, XACK.

use super::{
    help, id, no_group_of, subcommand, subcommand_syntax, Args, Call, Failure, Id, Outcome,
    NEW_CONSUMER,
};
use crate::command::number::integer;
use crate::value::group::Group;

const SUBCOMMANDS: &[(&str, i32)] = &[
    ("create", -5),
    ("createconsumer", 5),
    ("delconsumer", 5),
    ("destroy", 4),
    ("help", 2),
    ("setid", -5),
];

const HELP: &[&str] = &[
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
];

pub fn xgroup(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let name = subcommand(args, "xgroup", SUBCOMMANDS)?;
    if name == "help" {
        help(call, "XGROUP", HELP);
        return Ok(());
    }
    let (make, read) = options(args, name)?;
    let (key, group) = (args.at(2), args.at(3));
    let stream = call.keys.stream(key)?;
    if stream.is_none() && !make {
        return Err(Failure::text(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may \
             want to use the MKSTREAM option to create an empty stream automatically.",
        ));
    }
    let last = stream.map_or((0, 0), |stream| stream.head_now().last);
    let there = stream.is_some_and(|stream| stream.group(group).is_some());
    if !there && !matches!(name, "create" | "destroy") {
        return Err(no_group_of(args));
    }
    match name {
        "create" => create(call, there, last, read),
        "setid" => set_id(call, last, read),
        "destroy" => {
            if there {
                if let Some(stream) = call.keys.stream_mut(key)? {
                    stream.remove_group(group);
                }
                call.event(b't', "xgroup-destroy", key);
                // Whoever is blocked in the group is told that it has gone.
                call.keys.signal(key);
            }
            call.reply.integer(i64::from(there));
            Ok(())
        }
        _ => consumer(call, name == "createconsumer"),
    }
}

/// Whether the stream may be made, and ENTRIESREAD.
fn options(args: Args<'_>, name: &str) -> Result<(bool, Option<u64>), Failure> {
    let (mut make, mut read, mut at) = (false, None, 5);
    while at < args.len() {
        if name == "create" && args.is(at, "mkstream") {
            make = true;
            at += 1;
        } else if matches!(name, "create" | "setid")
            && args.is(at, "entriesread")
            && at + 1 < args.len()
        {
            let given = integer(args.at(at + 1))?;
            if given < -1 {
                return Err(Failure::text("ERR value for ENTRIESREAD must be positive or -1"));
            }
            read = u64::try_from(given).ok();
            at += 2;
        } else {
            return Err(subcommand_syntax(args, "xgroup"));
        }
    }
    Ok((make, read))
}

fn create(call: &mut Call<'_>, there: bool, last: Id, read: Option<u64>) -> Outcome {
    let (args, key) = (call.args, call.args.at(2));
    if args.len() > 8 {
        return Err(subcommand_syntax(args, "xgroup"));
    }
    let from = if args.at(4) == b"$" { last } else { id(args.at(4), 0)? };
    if there {
        return Err(Failure::text("BUSYGROUP Consumer Group name already exists"));
    }
    call.keys.stream_or_new(key)?.add_group(args.at(3), Group::new(from, read));
    call.event(b't', "xgroup-create", key);
    call.reply.ok();
    Ok(())
}

fn set_id(call: &mut Call<'_>, last: Id, read: Option<u64>) -> Outcome {
    let (args, key) = (call.args, call.args.at(2));
    if args.len() != 5 && args.len() != 7 {
        return Err(subcommand_syntax(args, "xgroup"));
    }
    let from = match args.at(4) {
        b"$" => last,
        word => super::bound_or_id(word)?,
    };
    let stream = call.keys.stream_mut(key)?;
    if let Some(group) = stream.and_then(|stream| stream.group_mut(args.at(3))) {
        (group.last, group.read) = (from, read);
    }
    call.event(b't', "xgroup-setid", key);
    call.reply.ok();
    Ok(())
}

fn consumer(call: &mut Call<'_>, creates: bool) -> Outcome {
    let (args, key) = (call.args, call.args.at(2));
    let (name, now) = (args.at(4), call.keys.now());
    let stream = call.keys.stream(key)?;
    let group = stream.and_then(|stream| stream.group(args.at(3)));
    let there = group.is_some_and(|group| group.consumer(name).is_some());
    if there == creates {
        call.reply.integer(0);
        return Ok(());
    }
    let stream = call.keys.stream_mut(key)?;
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
        let stream = call.keys.stream_mut(key)?;
        if let Some(group) = stream.and_then(|stream| stream.group_mut(args.at(2))) {
            for id in &ids {
                group.settle(*id);
            }
        }
    }
    call.reply.integer(ids.len() as i64);
    Ok(())
}
