//! The commands: one table, a file for each group.
//!
//! A command is a function of a [`Call`]: it reads and changes keys ([`crate::keyspace`] has the
//! rules), writes one reply, or fails.

use std::sync::LazyLock;

use hashbrown::HashMap;

use crate::args::Args;
use crate::call::Call;
use crate::failure::Outcome;
pub use container::{container, Container, Sub};

mod acl;
mod bitfield;
mod bits;
mod client;
mod config;
pub mod connection;
mod container;
mod cursor;
mod debug;
mod docs;
mod dump;
mod expiry;
mod functions;
mod geo;
pub mod glob;
mod hashes;
mod hyperloglog;
pub mod info;
mod introspection;
mod keys;
mod keyspecs;
mod lcs;
mod lists;
mod lists_blocking;
mod memory;
pub mod number;
mod pubsub;
mod scan;
mod scripts;
mod server;
mod sets;
mod slowlog;
mod sort;
mod standing;
mod streams;
mod strings;
mod tracking;
pub(crate) mod transactions;
mod zset_algebra;
mod zset_pops;
mod zset_ranges;
mod zsets;

/// What a command is like, as COMMAND INFO tells it and the engine needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    pub const NONE: Flags = Flags(0);
    /// May change keys: works on the latest state.
    pub const WRITE: Flags = Flags(1);
    pub const READONLY: Flags = Flags(1 << 1);
    pub const FAST: Flags = Flags(1 << 2);
    pub const ADMIN: Flags = Flags(1 << 3);
    pub const PUBSUB: Flags = Flags(1 << 4);
    pub const NO_SCRIPT: Flags = Flags(1 << 5);
    pub const BLOCKING: Flags = Flags(1 << 6);
    pub const LOADING: Flags = Flags(1 << 7);
    pub const STALE: Flags = Flags(1 << 8);
    pub const NO_AUTH: Flags = Flags(1 << 9);
    pub const DENY_OOM: Flags = Flags(1 << 10);
    /// Not queued by MULTI.
    pub const NO_MULTI: Flags = Flags(1 << 11);
    pub const MOVABLE_KEYS: Flags = Flags(1 << 12);
    /// Overwrites its keys without looking at them: they need not be in memory.
    pub const BLIND: Flags = Flags(1 << 13);
    /// May miss a key after it has changed others, and is undone then: scripts.
    pub const UNDOABLE: Flags = Flags(1 << 14);
    /// May run while a client is subscribed in RESP2.
    pub const WHILE_SUBSCRIBED: Flags = Flags(1 << 15);

    /// A family, whose second word names the command.
    pub const CONTAINER: Flags = Flags(1 << 28);
    /// No effect on what SLOWLOG shows: it would tell secrets, or itself.
    pub const UNLOGGED: Flags = Flags(1 << 29);
    /// As [`Flags::BLIND`] when it has no more words than it needs.
    pub const BLIND_BARE: Flags = Flags(1 << 16);

    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// It writes, or is a script that might.
    pub const fn may_write(self) -> bool {
        self.has(Flags::WRITE) || (self.has(Flags::UNDOABLE) && !self.has(Flags::READONLY))
    }
}

/// Where a command's keys are among its words.
#[derive(Clone, Copy)]
pub enum Keys {
    None,
    /// First, last (negative: from the end) and step, as COMMAND INFO tells them.
    Range(usize, isize, usize),
    /// For commands whose options say where: the places of the keys; none when the command is
    /// malformed.
    By(fn(Args<'_>) -> Option<Vec<usize>>),
}

impl Keys {
    /// As many as the first argument says, behind it.
    pub const COUNTED_FIRST: Keys = Keys::By(|args| Keys::counted(args, 1));
    /// As many as the second argument says, behind it.
    pub const COUNTED_SECOND: Keys = Keys::By(|args| Keys::counted(args, 2));

    /// Places of the keys among the words.
    pub fn places(&self, args: Args<'_>) -> Vec<usize> {
        match self {
            Keys::None => Vec::new(),
            Keys::Range(first, last, step) => {
                let last = if *last < 0 { args.len() as isize + last } else { *last };
                let last = last.min(args.len() as isize - 1);
                (*first..=usize::try_from(last).unwrap_or(0)).step_by(*step).collect()
            }
            Keys::By(places) => places(args).unwrap_or_default(),
        }
    }

    /// Places counted from a `numkeys` word, as in EVAL, ZUNION or LMPOP.
    pub fn counted(args: Args<'_>, at: usize) -> Option<Vec<usize>> {
        let count = crate::value::parse_integer(args.get(at)?)?;
        let count = usize::try_from(count).ok().filter(|count| at + count < args.len())?;
        Some((at + 1..=at + count).collect())
    }
}

pub struct Command {
    /// In small letters.
    pub name: &'static str,
    /// Words with the name; negative: at least so many.
    pub arity: i32,
    pub flags: Flags,
    pub keys: Keys,
    /// ACL categories beside those that follow from flags: `@string`, `@hash` ...
    pub group: &'static str,
    pub run: fn(&mut Call<'_>) -> Outcome,
}

impl Command {
    /// One without keys.
    pub const fn plain(
        name: &'static str,
        arity: i32,
        flags: Flags,
        group: &'static str,
        run: fn(&mut Call<'_>) -> Outcome,
    ) -> Command {
        Command { name, arity, flags, keys: Keys::None, group, run }
    }

    /// Whether MONITOR does not show it: what administrators do.
    pub fn is_hidden(&self, args: Args<'_>) -> bool {
        match container(self).and_then(|container| container.sub(args.get(1)?)) {
            Some(sub) => sub.flags.has(Flags::ADMIN),
            None => self.flags.has(Flags::ADMIN),
        }
    }

    /// Whether it is one of those that run others by Lua.
    pub fn runs_a_script(&self) -> bool {
        matches!(self.name, "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro")
    }

    /// Whether this call overwrites its keys without looking at them.
    pub fn is_blind(&self, args: Args<'_>) -> bool {
        let bare = args.len() == self.arity.unsigned_abs() as usize;
        self.flags.has(Flags::BLIND) || (bare && self.flags.has(Flags::BLIND_BARE))
    }
}

/// All commands of all groups.
pub fn all() -> impl Iterator<Item = &'static Command> {
    GROUPS.iter().flat_map(|group| group.iter())
}

const GROUPS: &[&[Command]] = &[
    connection::COMMANDS,
    client::COMMANDS,
    server::COMMANDS,
    standing::COMMANDS,
    info::COMMANDS,
    config::COMMANDS,
    introspection::COMMANDS,
    slowlog::COMMANDS,
    memory::COMMANDS,
    acl::COMMANDS,
    debug::COMMANDS,
    strings::COMMANDS,
    bits::COMMANDS,
    keys::COMMANDS,
    expiry::COMMANDS,
    scan::COMMANDS,
    hashes::COMMANDS,
    lists::COMMANDS,
    lists_blocking::COMMANDS,
    sets::COMMANDS,
    sort::COMMANDS,
    hyperloglog::COMMANDS,
    zsets::COMMANDS,
    zset_ranges::COMMANDS,
    zset_pops::COMMANDS,
    zset_algebra::COMMANDS,
    geo::COMMANDS,
    transactions::COMMANDS,
    pubsub::COMMANDS,
    scripts::COMMANDS,
    functions::COMMANDS,
    streams::COMMANDS,
];

/// Longer words are no command's name.
const NAME_BYTES_MAX: usize = 32;

type Numbered = (&'static Command, u16);

/// By name in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    find_numbered(name).map(|(command, _)| command)
}

/// The command's place in [`all`].
pub fn number(command: &Command) -> u16 {
    find_numbered(command.name.as_bytes()).map_or(0, |(_, number)| number)
}

/// With its place in [`all`].
pub fn find_numbered(name: &[u8]) -> Option<Numbered> {
    static TABLE: LazyLock<HashMap<&'static [u8], Numbered, foldhash::fast::RandomState>> =
        LazyLock::new(|| {
            let all = all().zip(0..);
            all.map(|(command, number)| (command.name.as_bytes(), (command, number))).collect()
        });
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = &mut lower[..name.len()];
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    TABLE.get(&*lower).copied()
}
