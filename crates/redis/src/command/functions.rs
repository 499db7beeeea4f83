//! Commands of libraries of functions: FUNCTION and FCALL.

use super::container::unknown_or_arity;
use super::scripts::{check_mode, kill, KEYS};
use super::{glob, Command, Container, Flags, Keys, Sub};
use crate::call::{whole, Call};
use crate::failure::{Failure, Outcome};
use crate::rdb;
use crate::script::{self, Policy, Scripts};

const FCALL: Flags =
    Flags::NO_SCRIPT.and(Flags::MOVABLE_KEYS).and(Flags::STALE).and(Flags::UNDOABLE);

pub const COMMANDS: &[Command] = &[
    Command { name: "fcall", arity: -3, flags: FCALL, keys: KEYS, group: GROUP, run: fcall },
    Command {
        name: "fcall_ro",
        arity: -3,
        flags: FCALL.and(Flags::READONLY),
        keys: KEYS,
        group: GROUP,
        run: fcall_ro,
    },
    Command {
        name: "function",
        arity: -2,
        // It may find that it has to wait for the libraries behind what EXEC has changed.
        flags: Flags::CONTAINER.and(Flags::NO_SCRIPT).and(Flags::UNDOABLE),
        keys: Keys::None,
        group: GROUP,
        run: function,
    },
];

const GROUP: &str = "scripting";

fn fcall(call: &mut Call<'_>) -> Outcome {
    script::with_libraries(call, |scripts, call| scripts.call(call, false))
}

fn fcall_ro(call: &mut Call<'_>) -> Outcome {
    script::with_libraries(call, |scripts, call| scripts.call(call, true))
}

const NO_SCRIPT: Flags = Flags::NO_SCRIPT;
const CHANGE: Flags = Flags::NO_SCRIPT.and(Flags::WRITE);

pub const FUNCTION: Container = Container {
    name: "function",
    subs: &[
        Sub::help("function|help"),
        Sub::new("function|delete", 3, CHANGE, delete),
        Sub::new("function|dump", 2, NO_SCRIPT, dump),
        Sub::new("function|flush", -2, CHANGE, flush),
        Sub::new("function|kill", 2, NO_SCRIPT, kill),
        Sub::new("function|list", -2, NO_SCRIPT, list),
        Sub::new("function|load", -3, CHANGE.and(Flags::DENY_OOM), load),
        Sub::new("function|restore", -3, CHANGE.and(Flags::DENY_OOM), restore),
        Sub::new("function|stats", 2, NO_SCRIPT, stats),
    ],
    help: &[
        "LOAD [REPLACE] <FUNCTION CODE>",
        "    Create a new library with the given library name and code.",
        "DELETE <LIBRARY NAME>",
        "    Delete the given library.",
        "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
        "    Return general information on all the libraries:",
        "    * Library name",
        "    * The engine used to run the Library",
        "    * Library description",
        "    * Functions list",
        "    * Library code (if WITHCODE is given)",
        "    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
        "STATS",
        "    Return information about the current function running:",
        "    * Function name",
        "    * Command used to run the function",
        "    * Duration in MS that the function is running",
        "    If no function is running, return nil",
        "    In addition, returns a list of available engines.",
        "KILL",
        "    Kill the current running function.",
        "FLUSH [ASYNC|SYNC]",
        "    Delete all the libraries.",
        "    When called without the optional mode argument, the behavior is determined by the",
        "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
        "    * ASYNC: Asynchronously flush the libraries.",
        "    * SYNC: Synchronously flush the libraries.",
        "DUMP",
        "    Return a serialized payload representing the current libraries, can be restored using \
         FUNCTION RESTORE command",
        "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
        "    Restore the libraries represented by the given payload, it is possible to give a restore \
         policy to",
        "    control how to handle existing libraries (default APPEND):",
        "    * FLUSH: delete all existing libraries.",
        "    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
        "    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace \
         the old",
        "      libraries with the new libraries (notice that even on this option there is a chance of \
         failure",
        "      in case of functions name collision with another library).",
    ],
};

fn function(call: &mut Call<'_>) -> Outcome {
    FUNCTION.run(call)
}

fn dump(call: &mut Call<'_>) -> Outcome {
    let payload = script::with_libraries(call, |scripts, _| {
        let codes = scripts.libraries().iter().map(|library| &*library.code);
        Ok(rdb::dump_libraries(codes))
    })?;
    call.reply.bulk(&payload);
    Ok(())
}

fn delete(call: &mut Call<'_>) -> Outcome {
    let name = call.args.at(2);
    if !script::with_libraries(call, |scripts, call| scripts.delete_library(call, name))? {
        return Err(Failure::text("ERR Library not found"));
    }
    call.reply.ok();
    Ok(())
}

fn flush(call: &mut Call<'_>) -> Outcome {
    if call.args.len() > 3 {
        return Err(unknown_or_arity("function", call.args));
    }
    check_mode(call.args, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option")?;
    script::with_libraries(call, Scripts::flush_libraries)?;
    call.reply.ok();
    Ok(())
}

fn load(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let last = args.len() - 1;
    for at in 2..last {
        if !args.is(at, "replace") {
            return Err(Failure::joined(&[b"ERR Unknown option given: ", whole(args.at(at))]));
        }
    }
    let load = |scripts: &mut Scripts, call: &mut Call<'_>| {
        scripts.load_library(call, args.at(last), last > 2)
    };
    let name = script::with_libraries(call, load)?;
    call.reply.bulk(&name);
    Ok(())
}

fn restore(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if args.len() > 4 {
        return Err(unknown_or_arity("function", args));
    }
    let policy =
        match args.len() {
            3 => Policy::Append,
            _ if args.is(3, "append") => Policy::Append,
            _ if args.is(3, "replace") => Policy::Replace,
            _ if args.is(3, "flush") => Policy::Flush,
            _ => return Err(Failure::text(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            )),
        };
    let codes = rdb::libraries(args.at(2))
        .map_err(|_| Failure::text("ERR DUMP payload version or checksum are wrong"))?
        .ok_or(Failure::text("ERR given type is not a function"))?;
    let restore = |scripts: &mut Scripts, call: &mut Call<'_>| {
        scripts.restore_libraries(call, &codes, policy)
    };
    script::with_libraries(call, restore)?;
    call.reply.ok();
    Ok(())
}

fn stats(call: &mut Call<'_>) -> Outcome {
    script::with_libraries(call, tell_stats)
}

fn tell_stats(scripts: &mut Scripts, call: &mut Call<'_>) -> Outcome {
    let (libraries, reply) = (scripts.libraries(), &mut *call.reply);
    reply.map(2);
    reply.bulk(b"running_script");
    reply.null();
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.integer(libraries.len() as i64);
    reply.bulk(b"functions_count");
    reply.integer(libraries.functions() as i64);
    Ok(())
}

fn list(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let (mut with_code, mut pattern, mut at) = (false, None, 2);
    while at < args.len() {
        if !with_code && args.is(at, "withcode") {
            with_code = true;
        } else if pattern.is_none() && args.is(at, "libraryname") {
            at += 1;
            let given = args.get(at);
            let missing = Failure::text("ERR library name argument was not given");
            pattern = Some(given.ok_or(missing)?);
        } else {
            return Err(Failure::joined(&[b"ERR Unknown argument ", whole(args.at(at))]));
        }
        at += 1;
    }
    script::with_libraries(call, |scripts, call| {
        tell(scripts, call, pattern, with_code);
        Ok(())
    })
}

fn tell(scripts: &mut Scripts, call: &mut Call<'_>, pattern: Option<&[u8]>, with_code: bool) {
    let wanted = |library: &&script::Library| {
        pattern.is_none_or(|pattern| glob::matches(pattern, &library.name, true))
    };
    let libraries: Vec<_> = scripts.libraries().iter().filter(wanted).collect();
    let reply = &mut *call.reply;
    reply.array(libraries.len());
    for library in libraries {
        reply.map(if with_code { 4 } else { 3 });
        reply.bulk(b"library_name");
        reply.bulk(&library.name);
        reply.bulk(b"engine");
        reply.bulk(b"LUA");
        reply.bulk(b"functions");
        reply.array(library.functions.len());
        for function in &library.functions {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(&function.name);
            reply.bulk(b"description");
            match &function.description {
                Some(text) => reply.bulk(text),
                None => reply.null(),
            }
            reply.bulk(b"flags");
            reply.set(function.flags.len());
            function.flags.iter().for_each(|flag| reply.simple(flag));
        }
        if with_code {
            reply.bulk(b"library_code");
            reply.bulk(&library.code);
        }
    }
}
