//! COMMAND: what commands there are.

use super::docs::{self, Shown};
use super::keyspecs::{self, Begin, Find, Spec};
use super::{container, glob, Command, Container, Flags, Keys, Sub};
use crate::args::Args;
use crate::call::{has_arity, Call};
use crate::failure::{Failure, Outcome};
use crate::reply::Reply;

const ANY_TIME: Flags = Flags::LOADING.and(Flags::STALE);

pub const COMMANDS: &[Command] =
    &[Command::plain("command", -1, Flags::CONTAINER.and(ANY_TIME), "server", command)];

pub const COMMAND: Container = Container {
    name: "command",
    subs: &[
        Sub::help("command|help"),
        Sub::new("command|count", 2, ANY_TIME, count),
        Sub::new("command|docs", -2, ANY_TIME, say_docs),
        Sub::new("command|getkeys", -3, ANY_TIME, |call| getkeys(call, false)),
        Sub::new("command|getkeysandflags", -3, ANY_TIME, |call| getkeys(call, true)),
        Sub::new("command|info", -2, ANY_TIME, info),
        Sub::new("command|list", -2, ANY_TIME, list),
    ],
    help: &[
        "(no subcommand)",
        "    Return details about all Redis commands.",
        "COUNT",
        "    Return the total number of commands in this Redis server.",
        "LIST",
        "    Return a list of all commands in this Redis server.",
        "INFO [<command-name> ...]",
        "    Return details about multiple Redis commands.",
        "    If no command names are given, documentation details for all",
        "    commands are returned.",
        "DOCS [<command-name> ...]",
        "    Return documentation details about multiple Redis commands.",
        "    If no command names are given, documentation details for all",
        "    commands are returned.",
        "GETKEYS <full-command>",
        "    Return the keys from a full Redis command.",
        "GETKEYSANDFLAGS <full-command>",
        "    Return the keys and the access flags from a full Redis command.",
    ],
};

fn command(call: &mut Call<'_>) -> Outcome {
    if call.args.len() > 1 {
        return COMMAND.run(call);
    }
    say_all(call);
    Ok(())
}

fn say_all(call: &mut Call<'_>) {
    call.reply.array(super::all().count());
    super::all().for_each(|command| say_info(call, Shown::Whole(command)));
}

/// `get`, or `client|list`.
fn find(name: &[u8]) -> Option<Shown> {
    let mut words = name.splitn(2, |byte| *byte == b'|');
    let command = super::find(words.next()?)?;
    match words.next() {
        None => Some(Shown::Whole(command)),
        Some(word) => Some(Shown::Part(command, container(command)?.sub(word)?)),
    }
}

/// The command that these words would run.
pub fn named(args: Args<'_>) -> Option<Shown> {
    let command = super::find(args.at(0))?;
    match (container(command), args.get(1)) {
        (Some(container), Some(word)) => Some(Shown::Part(command, container.sub(word)?)),
        _ => Some(Shown::Whole(command)),
    }
}

pub fn subs(command: &'static Command) -> impl Iterator<Item = Shown> {
    let subs = container(command).map_or(&[][..], |container| container.subs);
    subs.iter().map(move |sub| Shown::Part(command, sub))
}

fn count(call: &mut Call<'_>) -> Outcome {
    call.reply.integer(super::all().count() as i64);
    Ok(())
}

fn info(call: &mut Call<'_>) -> Outcome {
    let names = call.args.from(2);
    if names.is_empty() {
        say_all(call);
        return Ok(());
    }
    call.reply.array(names.len());
    for name in names.iter() {
        match find(name) {
            Some(shown) => say_info(call, shown),
            None => call.reply.null(),
        }
    }
    Ok(())
}

/// `server.c`, `addReplyCommandInfo`.
fn say_info(call: &mut Call<'_>, shown: Shown) {
    let reply = &mut *call.reply;
    let (Shown::Whole(command) | Shown::Part(command, _)) = shown;
    let is_family = matches!(shown, Shown::Whole(_)) && command.flags.has(Flags::CONTAINER);
    let keys = if is_family { Keys::None } else { command.keys };
    let (first, last, step) = match keys {
        Keys::Range(first, last, step) => (first as i64, last as i64, step as i64),
        _ => (0, 0, 0),
    };
    reply.array(10);
    reply.bulk(shown.name().as_bytes());
    reply.integer(i64::from(shown.arity()));
    let flags = shown.flags();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    reply.integer(first);
    reply.integer(last);
    reply.integer(step);
    let categories = shown.categories();
    reply.set(categories.len());
    categories.iter().for_each(|category| reply.simple(&format!("@{category}")));
    reply.array(0);
    let specs = keyspecs::specs(shown.name(), keys);
    call.reply.set(specs.len());
    specs.iter().for_each(|spec| say_spec(call.reply, spec));
    let Shown::Whole(command) = shown else {
        call.reply.array(0);
        return;
    };
    call.reply.array(subs(command).count());
    subs(command).for_each(|sub| say_info(call, sub));
}

fn say_flags(reply: &mut dyn Reply, flags: &str) {
    reply.set(flags.split(' ').count());
    flags.split(' ').for_each(|flag| reply.simple(flag));
}

fn say_fields(reply: &mut dyn Reply, kind: &str, fields: &[(&str, i64)]) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields.len());
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        reply.integer(*value);
    }
}

fn say_spec(reply: &mut dyn Reply, spec: &Spec) {
    reply.map(3);
    reply.bulk(b"flags");
    say_flags(reply, spec.flags);
    reply.bulk(b"begin_search");
    match spec.begin {
        Begin::Index(at) => say_fields(reply, "index", &[("index", at)]),
        Begin::Keyword(word, from) => {
            reply.map(2);
            reply.bulk(b"type");
            reply.bulk(b"keyword");
            reply.bulk(b"spec");
            reply.map(2);
            reply.bulk(b"keyword");
            reply.bulk(word.as_bytes());
            reply.bulk(b"startfrom");
            reply.integer(from);
        }
        Begin::Unknown => say_fields(reply, "unknown", &[]),
    }
    reply.bulk(b"find_keys");
    match spec.find {
        Find::Range(last, step, limit) => {
            let fields = [("lastkey", last), ("keystep", step), ("limit", limit)];
            say_fields(reply, "range", &fields);
        }
        Find::Counted => {
            let fields = [("keynumidx", 0), ("firstkey", 1), ("keystep", 1)];
            say_fields(reply, "keynum", &fields);
        }
        Find::Unknown => say_fields(reply, "unknown", &[]),
    }
}

fn say_docs(call: &mut Call<'_>) -> Outcome {
    let names = call.args.from(2);
    let shown: Vec<Shown> = match names.len() {
        0 => super::all().map(Shown::Whole).collect(),
        _ => names.iter().filter_map(find).collect(),
    };
    call.reply.map(shown.len());
    for shown in shown {
        say_doc(call, shown);
    }
    Ok(())
}

fn say_doc(call: &mut Call<'_>, shown: Shown) {
    let since = docs::since(shown.name());
    let subs: Vec<Shown> = match shown {
        Shown::Whole(command) => subs(command).collect(),
        Shown::Part(..) => Vec::new(),
    };
    call.reply.bulk(shown.name().as_bytes());
    call.reply.map(1 + usize::from(since.is_some()) + usize::from(!subs.is_empty()));
    if let Some(since) = since {
        call.reply.bulk(b"since");
        call.reply.bulk(since.as_bytes());
    }
    call.reply.bulk(b"group");
    call.reply.bulk(shown.group().as_bytes());
    if !subs.is_empty() {
        call.reply.bulk(b"subcommands");
        call.reply.map(subs.len());
        subs.into_iter().for_each(|sub| say_doc(call, sub));
    }
}

fn getkeys(call: &mut Call<'_>, with_flags: bool) -> Outcome {
    let args = call.args.from(2);
    let shown = named(args).ok_or(Failure::text("ERR Invalid command specified"))?;
    let (Shown::Whole(command) | Shown::Part(command, _)) = shown;
    if matches!(command.keys, Keys::None) {
        return Err(Failure::text("ERR The command has no key arguments"));
    }
    if !has_arity(shown.arity(), args) {
        return Err(Failure::text("ERR Invalid number of arguments specified for command"));
    }
    let places = command.keys.places(args);
    if places.is_empty() && command.group == "scripting" {
        // Scripts need no keys.
        call.reply.array(0);
        return Ok(());
    }
    if places.is_empty() {
        return Err(Failure::text("ERR Invalid arguments specified for command"));
    }
    call.reply.array(places.len());
    for place in places {
        if with_flags {
            call.reply.array(2);
        }
        call.reply.bulk(args.at(place));
        if with_flags {
            say_flags(call.reply, keyspecs::flags(shown.name(), command.keys, args, place));
        }
    }
    Ok(())
}

fn list(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let all =
        super::all().flat_map(|command| [Shown::Whole(command)].into_iter().chain(subs(command)));
    let wanted: Vec<Shown> = if args.len() == 2 {
        all.collect()
    } else if args.len() == 5 && args.is(2, "filterby") {
        let value = args.at(4);
        match args.at(3).to_ascii_lowercase().as_slice() {
            b"module" => Vec::new(),
            b"aclcat" => {
                let value = value.to_ascii_lowercase();
                let is = |shown: &Shown| {
                    shown.categories().iter().any(|category| category.as_bytes() == value)
                };
                all.filter(is).collect()
            }
            b"pattern" => {
                all.filter(|shown| glob::matches(value, shown.name().as_bytes(), true)).collect()
            }
            _ => return Err(Failure::SYNTAX),
        }
    } else {
        return Err(Failure::SYNTAX);
    };
    call.reply.array(wanted.len());
    wanted.iter().for_each(|shown| call.reply.bulk(shown.name().as_bytes()));
    Ok(())
}
