//! Commands of scripts: EVAL and SCRIPT.

use super::{Command, Flags, Keys};
use crate::args::Args;
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::script;

const SCRIPT: Flags =
    Flags::NO_SCRIPT.and(Flags::MOVABLE_KEYS).and(Flags::STALE).and(Flags::UNDOABLE);

/// Of EVAL and FCALL: as many as the second argument says.
pub(super) const KEYS: Keys = Keys::By(|args| Keys::counted(args, 2));

pub const COMMANDS: &[Command] = &[
    Command { name: "eval", arity: -3, flags: SCRIPT, keys: KEYS, group: GROUP, run: eval },
    Command {
        name: "eval_ro",
        arity: -3,
        flags: SCRIPT.and(Flags::READONLY),
        keys: KEYS,
        group: GROUP,
        run: eval_ro,
    },
    Command { name: "evalsha", arity: -3, flags: SCRIPT, keys: KEYS, group: GROUP, run: evalsha },
    Command {
        name: "evalsha_ro",
        arity: -3,
        flags: SCRIPT.and(Flags::READONLY),
        keys: KEYS,
        group: GROUP,
        run: evalsha_ro,
    },
    Command {
        name: "script",
        arity: -2,
        flags: Flags::NO_SCRIPT.and(Flags::STALE),
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

const HELP: &[&str] = &[
    "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
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
    "HELP",
    "    Print this help.",
];

/// Subcommands with the words they take, `SCRIPT` included; negative: at least so many.
const SUBCOMMANDS: &[(&str, i32)] =
    &[("debug", 3), ("exists", -3), ("flush", -2), ("help", 2), ("kill", 2), ("load", 3)];

/// The subcommand, if there is one of that name and with so many words.
pub(super) fn subcommand(
    args: Args<'_>,
    command: &str,
    all: &[(&'static str, i32)],
) -> Result<&'static str, Failure> {
    let Some((name, arity)) = all.iter().find(|(name, _)| args.is(1, name)) else {
        let word = args.at(1);
        let word = String::from_utf8_lossy(&word[..word.len().min(128)]);
        let command = command.to_ascii_uppercase();
        return Err(Failure::said(format!("ERR unknown subcommand '{word}'. Try {command} HELP.")));
    };
    let named = arity.unsigned_abs() as usize;
    if if *arity < 0 { args.len() >= named } else { args.len() == named } {
        return Ok(name);
    }
    Err(Failure::said(format!("ERR wrong number of arguments for '{command}|{name}' command")))
}

/// FLUSH may be told how; it is done at once.
pub(super) fn check_mode(args: Args<'_>, why: &'static str) -> Outcome {
    match args.len() {
        2 => Ok(()),
        3 if args.is(2, "sync") || args.is(2, "async") => Ok(()),
        _ => Err(Failure::text(why)),
    }
}

fn run_script(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    match subcommand(args, "script", SUBCOMMANDS)? {
        "load" => {
            let load =
                |scripts: &mut script::Scripts, call: &mut Call<'_>| scripts.load(call, args.at(2));
            let name = script::with(call, load)?;
            call.reply.bulk(&name);
        }
        "exists" => {
            call.reply.array(args.len() - 2);
            for name in args.from(2).iter() {
                let known = call.server.scripts.as_ref().is_some_and(|all| all.has(name));
                call.reply.integer(i64::from(known));
            }
        }
        "flush" => {
            check_mode(args, "ERR SCRIPT FLUSH only support SYNC|ASYNC option")?;
            script::with(call, |scripts, _| scripts.flush());
            call.reply.ok();
        }
        "kill" => return Err(Failure::text("NOTBUSY No scripts in execution right now.")),
        "debug" if args.is(2, "no") => call.reply.ok(),
        "debug" if args.is(2, "yes") || args.is(2, "sync") => {
            return Err(Failure::text("ERR scripts can't be debugged here"));
        }
        "debug" => return Err(Failure::text("ERR Use SCRIPT DEBUG YES/SYNC/NO")),
        _ => {
            call.reply.array(HELP.len());
            HELP.iter().for_each(|line| call.reply.simple(line));
        }
    }
    Ok(())
}
