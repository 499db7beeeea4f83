//! SLOWLOG and LATENCY.

use super::{Command, Container, Flags, Sub};
use crate::call::{whole, Call};
use crate::failure::{Failure, Outcome};
use crate::value::parse_integer;

const ANY_TIME: Flags = Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE);
const OUTSIDE: Flags = ANY_TIME.and(Flags::NO_SCRIPT);

pub const COMMANDS: &[Command] = &[
    Command::plain("slowlog", -2, Flags::CONTAINER.and(ANY_TIME), "server", slowlog),
    Command::plain("latency", -2, Flags::CONTAINER.and(OUTSIDE), "server", latency),
];

pub const SLOWLOG: Container = Container {
    name: "slowlog",
    subs: &[
        Sub::help("slowlog|help"),
        Sub::new("slowlog|get", -2, ANY_TIME, get),
        Sub::new("slowlog|len", 2, ANY_TIME, len),
        Sub::new("slowlog|reset", 2, ANY_TIME, reset),
    ],
    help: &[
        "GET [<count>]",
        "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
        "    Entries are made of:",
        "    id, timestamp, time in microseconds, arguments array, client IP and port,",
        "    client name",
        "LEN",
        "    Return the length of the slowlog.",
        "RESET",
        "    Reset the slowlog.",
    ],
};

/// Nothing is monitored here: what takes long is in the slow log, and the time of commits in INFO.
pub const LATENCY: Container = Container {
    name: "latency",
    subs: &[
        Sub::help("latency|help"),
        Sub::new("latency|doctor", 2, OUTSIDE, doctor),
        Sub::new("latency|graph", 3, OUTSIDE, graph),
        Sub::new("latency|histogram", -2, OUTSIDE, histogram),
        Sub::new("latency|history", 3, OUTSIDE, nothing),
        Sub::new("latency|latest", 2, OUTSIDE, nothing),
        Sub::new("latency|reset", -2, OUTSIDE, reset_latency),
    ],
    help: &[
        "DOCTOR",
        "    Return a human readable latency analysis report.",
        "GRAPH <event>",
        "    Return an ASCII latency graph for the <event> class.",
        "HISTORY <event>",
        "    Return time-latency samples for the <event> class.",
        "LATEST",
        "    Return the latest latency samples for all events.",
        "RESET [<event> ...]",
        "    Reset latency data of one or more <event> classes.",
        "    (default: reset all data for all event classes)",
        "HISTOGRAM [COMMAND ...]",
        "    Return a cumulative distribution of latencies in the format of a histogram for the \
         specified command names.",
        "    If no commands are specified then all histograms are replied.",
    ],
};

fn slowlog(call: &mut Call<'_>) -> Outcome {
    SLOWLOG.run(call)
}

fn get(call: &mut Call<'_>) -> Outcome {
    let wrong = Failure::text("ERR count should be greater than or equal to -1");
    let count = match call.args.len() {
        2 => 10,
        3 => parse_integer(call.args.at(2)).filter(|count| *count >= -1).ok_or(wrong)?,
        _ => return Err(super::container::unknown_or_arity("slowlog", call.args)),
    };
    let entries = &call.server.stats.slow.entries;
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(entries.len());
    call.reply.array(count);
    for slow in entries.iter().take(count) {
        call.reply.array(6);
        call.reply.integer(slow.number as i64);
        call.reply.integer(slow.at);
        call.reply.integer(slow.microseconds as i64);
        let words = slow.words.args();
        call.reply.array(words.len());
        words.iter().for_each(|word| call.reply.bulk(word));
        call.reply.bulk(slow.address.as_bytes());
        call.reply.bulk(&slow.name);
    }
    Ok(())
}

fn len(call: &mut Call<'_>) -> Outcome {
    call.reply.integer(call.server.stats.slow.entries.len() as i64);
    Ok(())
}

fn reset(call: &mut Call<'_>) -> Outcome {
    call.server.stats.slow.entries.clear();
    call.reply.ok();
    Ok(())
}

fn latency(call: &mut Call<'_>) -> Outcome {
    LATENCY.run(call)
}

fn nothing(call: &mut Call<'_>) -> Outcome {
    call.reply.array(0);
    Ok(())
}

fn doctor(call: &mut Call<'_>) -> Outcome {
    call.reply.verbatim(
        "txt",
        b"Events are not monitored here. SLOWLOG has the commands that took long, and the section \
          Pondage of INFO has the time of commits.\n",
    );
    Ok(())
}

fn graph(call: &mut Call<'_>) -> Outcome {
    let event = whole(call.args.at(2));
    Err(Failure::joined(&[b"ERR No samples available for event '", event, b"'"]))
}

fn histogram(call: &mut Call<'_>) -> Outcome {
    call.reply.map(0);
    Ok(())
}

fn reset_latency(call: &mut Call<'_>) -> Outcome {
    call.reply.integer(0);
    Ok(())
}
