//! Commands of scripts: EVAL and SCRIPT.

use super::{Command, Container, Flags, Keys, Sub};
use crate::args::Args;
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::script;

const EVAL: Flags =
    Flags::NO_SCRIPT.and(Flags::MOVABLE_KEYS).and(Flags::STALE).and(Flags::UNDOABLE);

/// Of EVAL and FCALL.
pub(super) const KEYS: Keys = Keys::COUNTED_SECOND;

pub const COMMANDS: &[Command] = &[
    Command { name: "eval", arity: -3, flags: EVAL, keys: KEYS, group: GROUP, run: eval },
    Command {
        name: "eval_ro",
        arity: -3,
        flags: EVAL.and(Flags::READONLY),
        keys: KEYS,
        group: GROUP,
        run: eval_ro,
    },
    Command { name: "evalsha", arity: -3, flags: EVAL, keys: KEYS, group: GROUP, run: evalsha },
    Command {
        name: "evalsha_ro",
        arity: -3,
        flags: EVAL.and(Flags::READONLY),
        keys: KEYS,
        group: GROUP,
        run: evalsha_ro,
    },
    Command {
        name: "script",
        arity: -2,
        flags: Flags::CONTAINER.and(Flags::NO_SCRIPT).and(Flags::STALE),
        keys: Keys::None,
        group: GROUP,
        run: run_script,
    },
];

const GROUP: &str = "scripting";

fn eval(call: &mut Call<'_>) -> Outcome {
    script::with(call, |scripts, call| scripts.eval(call, false))
}

fn eval_ro(call: &mut Call<'_>) -> Outcome {
    script::with(call, |scripts, call| scripts.eval(call, true))
}

fn evalsha(call: &mut Call<'_>) -> Outcome {
    script::with(call, |scripts, call| scripts.eval_sha(call, false))
}

fn evalsha_ro(call: &mut Call<'_>) -> Outcome {
    script::with(call, |scripts, call| scripts.eval_sha(call, true))
}

const NO_SCRIPT: Flags = Flags::NO_SCRIPT;

pub const SCRIPT: Container = Container {
    name: "script",
    subs: &[
        Sub::help("script|help"),
        Sub::new("script|debug", 3, NO_SCRIPT, debug),
        Sub::new("script|exists", -3, NO_SCRIPT, exists),
        Sub::new("script|flush", -2, NO_SCRIPT, flush),
        Sub::new("script|kill", 2, NO_SCRIPT, kill),
        Sub::new("script|load", 3, NO_SCRIPT.and(Flags::STALE), load),
    ],
    help: &[
        "DEBUG (YES|SYNC|NO)",
        "    Set the debug mode for subsequent scripts executed.",
        "EXISTS <sha1> [<sha1> ...]",
        "    Return information about the existence of the scripts in the script cache.",
        "FLUSH [ASYNC|SYNC]",
        "    Flush the Lua scripts cache. Very dangerous on replicas.",
        "    When called without the optional mode argument, the behavior is determined by the",
        "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
        "    * ASYNC: Asynchronously flush the scripts cache.",
        "    * SYNC: Synchronously flush the scripts cache.",
        "KILL",
        "    Kill the currently executing Lua script.",
        "LOAD <script>",
        "    Load a script into the scripts cache without executing it.",
    ],
};

/// FLUSH may be told how; it is done at once.
pub(super) fn check_mode(args: Args<'_>, why: &'static str) -> Outcome {
    match args.len() {
        2 => Ok(()),
        3 if args.is(2, "sync") || args.is(2, "async") => Ok(()),
        _ => Err(Failure::text(why)),
    }
}

fn run_script(call: &mut Call<'_>) -> Outcome {
    SCRIPT.run(call)
}

fn load(call: &mut Call<'_>) -> Outcome {
    let text = call.args.at(2);
    let name = script::with(call, |scripts, call| scripts.load(call, text))?;
    call.reply.bulk(&name);
    Ok(())
}

fn exists(call: &mut Call<'_>) -> Outcome {
    call.reply.array(call.args.len() - 2);
    for name in call.args.from(2).iter() {
        let known = call.server.scripts.as_ref().is_some_and(|all| all.has(name));
        call.reply.integer(i64::from(known));
    }
    Ok(())
}

fn flush(call: &mut Call<'_>) -> Outcome {
    check_mode(call.args, "ERR SCRIPT FLUSH only support SYNC|ASYNC option")?;
    script::with(call, |scripts, _| scripts.flush());
    call.reply.ok();
    Ok(())
}

/// Of a script that runs, and of a function.
pub(super) fn kill(_call: &mut Call<'_>) -> Outcome {
    Err(Failure::text("NOTBUSY No scripts in execution right now."))
}

fn debug(call: &mut Call<'_>) -> Outcome {
    match call.args.at(2).to_ascii_lowercase().as_slice() {
        b"no" => call.reply.ok(),
        b"yes" | b"sync" => return Err(Failure::text("ERR scripts can't be debugged here")),
        _ => return Err(Failure::text("ERR Use SCRIPT DEBUG YES/SYNC/NO")),
    }
    Ok(())
}
