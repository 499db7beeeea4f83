//! Commands that are families: CLIENT LIST, CONFIG GET.

use super::{Command, Flags};
use crate::args::Args;
use crate::call::{has_arity, printed, Call};
use crate::failure::{Failure, Outcome};

/// A command behind a family's name.
pub struct Sub {
    /// With the family's, as `client|list`.
    pub name: &'static str,
    /// Words with both names; negative: at least so many.
    pub arity: i32,
    pub flags: Flags,
    pub run: fn(&mut Call<'_>) -> Outcome,
}

impl Sub {
    pub const fn new(
        name: &'static str,
        arity: i32,
        flags: Flags,
        run: fn(&mut Call<'_>) -> Outcome,
    ) -> Sub {
        Sub { name, arity, flags, run }
    }

    /// What every family has.
    pub const fn help(name: &'static str) -> Sub {
        Sub { name, arity: 2, flags: Flags::LOADING.and(Flags::STALE), run: say_help }
    }

    /// Without the family's name.
    pub fn word(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, word)| word)
    }
}

pub struct Container {
    pub name: &'static str,
    pub subs: &'static [Sub],
    /// What HELP says of each.
    pub help: &'static [&'static str],
}

/// All families with a table of their own.
const CONTAINERS: &[&Container] = &[
    &super::client::CLIENT,
    &super::config::CONFIG,
    &super::introspection::COMMAND,
    &super::slowlog::SLOWLOG,
    &super::slowlog::LATENCY,
    &super::memory::MEMORY,
    &super::acl::ACL,
    &super::pubsub::PUBSUB,
    &super::standing::CLUSTER,
    &super::standing::MODULE,
    &super::keys::OBJECT,
    &super::scripts::SCRIPT,
    &super::functions::FUNCTION,
    &super::streams::XGROUP,
    &super::streams::XINFO,
];

/// The family that the command is; none for one that is whole by itself.
pub fn container(command: &Command) -> Option<&'static Container> {
    if !command.flags.has(Flags::CONTAINER) {
        return None;
    }
    CONTAINERS.iter().copied().find(|container| container.name == command.name)
}

impl Container {
    /// The command that the second word names, with the right number of words; none for the
    /// family's name alone.
    pub fn find(&self, args: Args<'_>) -> Result<Option<&'static Sub>, Failure> {
        let Some(word) = args.get(1) else { return Ok(None) };
        let Some(sub) = self.sub(word) else {
            return Err(Failure::joined(&[
                b"ERR unknown subcommand '",
                printed(word, 128),
                b"'. Try ",
                self.name.to_ascii_uppercase().as_bytes(),
                b" HELP.",
            ]));
        };
        self.check_arity(sub.arity, sub.word(), args).map(|()| Some(sub))
    }

    pub fn sub(&self, word: &[u8]) -> Option<&'static Sub> {
        self.subs.iter().find(|sub| word.eq_ignore_ascii_case(sub.word().as_bytes()))
    }

    fn check_arity(&self, arity: i32, word: &str, args: Args<'_>) -> Result<(), Failure> {
        if has_arity(arity, args) {
            return Ok(());
        }
        let name = self.name;
        Err(Failure::said(format!("ERR wrong number of arguments for '{name}|{word}' command")))
    }

    pub fn run(&self, call: &mut Call<'_>) -> Outcome {
        match self.find(call.args)? {
            Some(sub) => (sub.run)(call),
            None => say_help(call),
        }
    }
}

/// `networking.c`, `addReplyHelp`.
fn say_help(call: &mut Call<'_>) -> Outcome {
    let family = super::find(call.args.at(0)).and_then(container);
    let (name, help) = family.map_or(("", &[][..]), |family| (family.name, family.help));
    call.reply.array(help.len() + 3);
    call.reply.simple(&format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        name.to_ascii_uppercase()
    ));
    help.iter().for_each(|line| call.reply.simple(line));
    call.reply.simple("HELP");
    call.reply.simple("    Print this help.");
    Ok(())
}

/// What Redis says when a subcommand takes fewer words than its table says
/// (`addReplySubcommandSyntaxError`).
pub fn unknown_or_arity(family: &str, args: Args<'_>) -> Failure {
    Failure::joined(&[
        b"ERR unknown subcommand or wrong number of arguments for '",
        printed(args.at(1), 128),
        b"'. Try ",
        family.to_ascii_uppercase().as_bytes(),
        b" HELP.",
    ])
}
