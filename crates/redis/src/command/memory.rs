//! MEMORY: of the copies of rows in memory.

use super::{Command, Container, Flags, Keys, Sub};
use crate::args::Args;
use crate::call::Call;
use crate::failure::{Failure, Outcome};

pub const COMMANDS: &[Command] = &[Command {
    name: "memory",
    arity: -2,
    flags: Flags::CONTAINER.and(Flags::READONLY).and(Flags::MOVABLE_KEYS),
    keys: Keys::By(key),
    group: "server",
    run: memory,
}];

pub const MEMORY: Container = Container {
    name: "memory",
    subs: &[
        Sub::help("memory|help"),
        Sub::new("memory|doctor", 2, Flags::NONE, doctor),
        Sub::new("memory|malloc-stats", 2, Flags::NONE, malloc_stats),
        Sub::new("memory|purge", 2, Flags::NONE, purge),
        Sub::new("memory|stats", 2, Flags::NONE, stats),
        Sub::new("memory|usage", -3, Flags::READONLY, usage),
    ],
    help: &[
        "DOCTOR",
        "    Return memory problems reports.",
        "MALLOC-STATS",
        "    Return internal statistics report from the memory allocator.",
        "PURGE",
        "    Attempt to purge dirty pages for reclamation by the allocator.",
        "STATS",
        "    Return information about the memory usage of the server.",
        "USAGE <key> [SAMPLES <count>]",
        "    Return memory in bytes used by <key> and its value. Nested values are",
        "    sampled up to <count> times (default: 5, 0 means sample all).",
    ],
};

fn key(args: Args<'_>) -> Option<Vec<usize>> {
    (args.is(1, "usage") && args.len() > 2).then(|| vec![2])
}

fn memory(call: &mut Call<'_>) -> Outcome {
    MEMORY.run(call)
}

fn usage(call: &mut Call<'_>) -> Outcome {
    let mut at = 3;
    while at < call.args.len() {
        if !call.args.is(at, "samples") || at + 1 >= call.args.len() {
            return Err(Failure::SYNTAX);
        }
        if super::number::integer(call.args.at(at + 1))? < 0 {
            return Err(Failure::SYNTAX);
        }
        at += 2;
    }
    match call.keys.weight(call.args.at(2))? {
        Some(bytes) => call.reply.integer(bytes as i64),
        None => call.reply.null(),
    }
    Ok(())
}

fn doctor(call: &mut Call<'_>) -> Outcome {
    call.reply.verbatim(
        "txt",
        b"Memory holds copies of rows up to a limit; the section Pondage of INFO has their bytes \
          and how often they were of use.\n",
    );
    Ok(())
}

fn malloc_stats(call: &mut Call<'_>) -> Outcome {
    call.reply.verbatim("txt", b"Stats not supported for the current allocator");
    Ok(())
}

fn purge(call: &mut Call<'_>) -> Outcome {
    call.reply.ok();
    Ok(())
}

fn stats(call: &mut Call<'_>) -> Outcome {
    let (bytes, keys) = (call.keys.bytes() as i64, call.keys.resident() as i64);
    let counts = [
        ("peak.allocated", bytes),
        ("total.allocated", bytes),
        ("startup.allocated", 0),
        ("replication.backlog", 0),
        ("clients.slaves", 0),
        ("clients.normal", 0),
        ("cluster.links", 0),
        ("aof.buffer", 0),
        ("lua.caches", 0),
        ("functions.caches", 0),
        ("overhead.total", 0),
        ("keys.count", keys),
        ("keys.bytes-per-key", bytes / keys.max(1)),
        ("dataset.bytes", bytes),
    ];
    call.reply.map(counts.len() + 2);
    for (name, count) in counts {
        call.reply.bulk(name.as_bytes());
        call.reply.integer(count);
    }
    for (name, percentage) in [("dataset.percentage", 100.0), ("peak.percentage", 100.0)] {
        call.reply.bulk(name.as_bytes());
        call.reply.double(percentage);
    }
    Ok(())
}
