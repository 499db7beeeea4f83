//! XINFO.

use super::{no_group_of, tell_entry, tell_id, Args, Call, Failure, Id, Outcome, ID_MAX};
use crate::command::container::unknown_or_arity;
use crate::command::number::integer;
use crate::command::{Container, Flags, Sub};
use crate::reply::Reply;
use crate::value::group::Group;
use crate::value::stream::Stream;
use crate::value::Tracked;

pub const XINFO: Container = Container {
    name: "xinfo",
    subs: &[
        Sub::help("xinfo|help"),
        Sub::new("xinfo|consumers", 4, Flags::READONLY, tell_consumers),
        Sub::new("xinfo|groups", 3, Flags::READONLY, tell_groups),
        Sub::new("xinfo|stream", -3, Flags::READONLY, tell_stream),
    ],
    help: &[
        "CONSUMERS <key> <groupname>",
        "    Show consumers of <groupname>.",
        "GROUPS <key>",
        "    Show the stream consumer groups.",
        "STREAM <key> [FULL [COUNT <count>]",
        "    Show information about the stream.",
    ],
};

/// Entries told of by FULL when nothing else is said.
const TOLD: i64 = 10;

/// Entries of a node of Redis's radix tree, which tools ask for and we do not have.
const NODE: usize = 100;

pub fn xinfo(call: &mut Call<'_>) -> Outcome {
    XINFO.run(call)
}

fn tell_consumers(call: &mut Call<'_>) -> Outcome {
    let (args, now) = (call.args, call.keys.now());
    let stream = call.keys.stream(args.at(2))?.ok_or(Failure::NO_SUCH_KEY)?;
    let group = stream.group(args.at(3)).ok_or_else(|| no_group_of(args))?;
    consumers(call.reply, group, now);
    Ok(())
}

fn tell_groups(call: &mut Call<'_>) -> Outcome {
    let stream = call.keys.stream(call.args.at(2))?.ok_or(Failure::NO_SUCH_KEY)?;
    groups(call.reply, stream);
    Ok(())
}

fn tell_stream(call: &mut Call<'_>) -> Outcome {
    let stream = call.keys.stream(call.args.at(2))?.ok_or(Failure::NO_SUCH_KEY)?;
    match full(call.args)? {
        None => about(call.reply, stream),
        Some(count) => everything(call.reply, stream, count),
    }
    Ok(())
}

/// How many of each FULL tells.
fn full(args: Args<'_>) -> Result<Option<usize>, Failure> {
    let right = match args.len() {
        3 => return Ok(None),
        4 => args.is(3, "full"),
        6 => args.is(3, "full") && args.is(4, "count"),
        _ => false,
    };
    if !right {
        return Err(unknown_or_arity("xinfo", args));
    }
    let given = if args.len() == 6 { integer(args.at(5))? } else { TOLD };
    Ok(Some(match given {
        0 => usize::MAX,
        given if given < 0 => TOLD as usize,
        given => given as usize,
    }))
}

fn consumers(reply: &mut dyn Reply, group: &Group, now: i64) {
    reply.array(group.consumers().len());
    for (name, consumer) in group.consumers() {
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"pending");
        reply.integer(consumer.pending.len() as i64);
        reply.bulk(b"idle");
        reply.integer((now - consumer.seen).max(0));
        reply.bulk(b"inactive");
        reply.integer(consumer.active.map_or(-1, |active| now - active));
    }
}

fn groups(reply: &mut dyn Reply, stream: &Stream) {
    reply.array(stream.groups().len());
    for (name, group) in stream.groups() {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"consumers");
        reply.integer(group.consumers().len() as i64);
        reply.bulk(b"pending");
        reply.integer(group.pending().len() as i64);
        progress(reply, stream, group);
    }
}

fn progress(reply: &mut dyn Reply, stream: &Stream, group: &Group) {
    reply.bulk(b"last-delivered-id");
    tell_id(reply, group.last);
    reply.bulk(b"entries-read");
    tell_or_null(reply, group.read.map(|read| read as i64));
    reply.bulk(b"lag");
    tell_or_null(reply, stream.lag(group));
}

fn tell_or_null(reply: &mut dyn Reply, number: Option<i64>) {
    match number {
        Some(number) => reply.integer(number),
        None => reply.null(),
    }
}

fn tops(reply: &mut dyn Reply, stream: &Stream) {
    let (head, nodes) = (stream.head_now(), stream.len().div_ceil(NODE));
    reply.bulk(b"length");
    reply.integer(stream.len() as i64);
    reply.bulk(b"radix-tree-keys");
    reply.integer(nodes as i64);
    reply.bulk(b"radix-tree-nodes");
    reply.integer(nodes as i64 + 1);
    reply.bulk(b"last-generated-id");
    tell_id(reply, head.last);
    reply.bulk(b"max-deleted-entry-id");
    tell_id(reply, head.deleted);
    reply.bulk(b"entries-added");
    reply.integer(head.added as i64);
    reply.bulk(b"recorded-first-entry-id");
    tell_id(reply, stream.first_id());
}

fn about(reply: &mut dyn Reply, stream: &Stream) {
    reply.map(10);
    tops(reply, stream);
    reply.bulk(b"groups");
    reply.integer(stream.groups().len() as i64);
    let mut all = stream.range((0, 0), ID_MAX);
    let first = all.next();
    for (name, entry) in [("first-entry", first), ("last-entry", all.next_back().or(first))] {
        reply.bulk(name.as_bytes());
        match entry {
            Some((id, fields)) => tell_entry(reply, id, fields),
            None => reply.null(),
        }
    }
}

fn everything(reply: &mut dyn Reply, stream: &Stream, count: usize) {
    reply.map(9);
    tops(reply, stream);
    reply.bulk(b"entries");
    let entries: Vec<(Id, &[u8])> = stream.range((0, 0), ID_MAX).take(count).collect();
    reply.array(entries.len());
    entries.iter().for_each(|(id, fields)| tell_entry(reply, *id, fields));
    reply.bulk(b"groups");
    reply.array(stream.groups().len());
    for (name, group) in stream.groups() {
        reply.map(7);
        reply.bulk(b"name");
        reply.bulk(name);
        progress(reply, stream, group);
        reply.bulk(b"pel-count");
        reply.integer(group.pending().len() as i64);
        reply.bulk(b"pending");
        reply.array(group.pending().len().min(count));
        for (id, pending) in group.pending().iter().take(count) {
            reply.array(4);
            tell_id(reply, *id);
            reply.bulk(&pending.consumer);
            reply.integer(pending.delivered);
            reply.integer(pending.times as i64);
        }
        every_consumer(reply, group, count);
    }
}

fn every_consumer(reply: &mut dyn Reply, group: &Group, count: usize) {
    reply.bulk(b"consumers");
    reply.array(group.consumers().len());
    for (name, consumer) in group.consumers() {
        reply.map(5);
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"seen-time");
        reply.integer(consumer.seen);
        reply.bulk(b"active-time");
        reply.integer(consumer.active.unwrap_or(-1));
        reply.bulk(b"pel-count");
        reply.integer(consumer.pending.len() as i64);
        reply.bulk(b"pending");
        reply.array(consumer.pending.len().min(count));
        for id in consumer.pending.iter().take(count) {
            let Some(pending) = group.pending().get(id) else { continue };
            reply.array(3);
            tell_id(reply, *id);
            reply.integer(pending.delivered);
            reply.integer(pending.times as i64);
        }
    }
}
