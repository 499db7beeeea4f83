//! Scripts: EVAL, FCALL and what belongs to them, in Lua 5.1.
//!
//! One Lua state serves all scripts of an engine; the engine's lock is its lock. A script is a
//! unit: what it does takes effect as a whole.
//!
//! # When a script can't go on
//!
//! `redis.call` may name keys that nobody has announced. When such a key is not in memory the
//! script is ended, everything it has changed is undone ([`crate::keyspace::Keyspace::undo`]), and
//! it runs again from its beginning when the key is there. No script can notice or prevent that:
//! what catches errors in Lua (`pcall`, `xpcall`, coroutines) lets this end pass, see
//! `sandbox.lua`. What a script leaves behind in Lua is not undone, but it can't leave anything
//! behind save in local variables of a library.
//!
//! # Limits
//!
//! A script that runs for longer than `lua-time-limit`, or needs too much memory, is ended with an
//! error, and what it has changed is undone, be it in an EXEC, where the whole transaction is
//! undone. Redis would let it run and keep what it has written. Time is looked at between Lua's
//! instructions, so one call of a function on large data may overrun it.
//!
//! A script that ends with an error of its own keeps what it has done until then, as in Redis.

mod bits;
mod cache;
mod cjson;
mod cmsgpack;
mod convert;
mod host;
mod library;
mod machine;
mod patterns;
mod sha1;
mod shebang;
mod structs;

use std::fmt;

use mlua::Value;

pub use host::Clock;
pub use library::{Libraries, Library, Policy};
pub use machine::Registered;

use crate::args::Args;
use crate::call::Call;
use crate::command::Command;
use crate::failure::{Failure, Outcome};
use cache::{Cache, Script};
use host::Ended;
use machine::{Ending, Entry, Machine, Scratch};
use sha1::Digest;

/// Bytes of one script or library.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// Bytes of one command of a script that are kept for the next.
const SCRATCH_BYTES_MAX: usize = 64 << 10;

const NO_SCRIPT: Failure = Failure::text("NOSCRIPT No matching script. Please use EVAL.");
const TOO_LONG: &str = "the script is too long";

/// Everything about scripts that one engine has.
#[derive(Default)]
pub struct Scripts {
    machine: Option<Machine>,
    cache: Cache,
    libraries: Libraries,
    /// The edition of what is stored that they are ([`crate::keyspace::Keyspace::libraries_edition`]).
    edition: Option<u64>,
    /// Numbers of scripts and functions inside of the Lua state.
    next: u64,
    scratch: Scratch,
}

/// What there is, and bytes of memory: of Lua, of texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub lua: usize,
    pub scripts: usize,
    pub script_bytes: usize,
    pub libraries: usize,
    pub functions: usize,
    pub library_bytes: usize,
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripts").field("cached", &self.cache.len()).finish_non_exhaustive()
    }
}

/// Whether the script or function that this command runs says that it writes nothing.
pub fn is_read_only(scripts: Option<&Scripts>, command: &Command, args: Args<'_>) -> bool {
    let permits =
        |text: &[u8]| shebang::of_script(text).is_ok_and(|(permits, _)| permits.no_writes);
    match command.name {
        "eval_ro" | "evalsha_ro" | "fcall_ro" => true,
        "eval" => permits(args.at(1)),
        "evalsha" => {
            let digest = sha1::unhex(args.at(1));
            let script = scripts.zip(digest).and_then(|(all, digest)| all.cache.get(&digest));
            script.is_some_and(|script| script.permits.no_writes)
        }
        "fcall" => {
            let callee = scripts.and_then(|all| all.libraries.find(args.at(1)));
            callee.is_some_and(|callee| callee.no_writes)
        }
        _ => false,
    }
}

/// Borrows what there is about scripts together with the call.
pub fn with<R>(call: &mut Call<'_>, f: impl FnOnce(&mut Scripts, &mut Call<'_>) -> R) -> R {
    let mut scripts = call.server.scripts.take().unwrap_or_default();
    let result = f(&mut scripts, call);
    call.server.scripts = Some(scripts);
    result
}

/// As [`with`], with the libraries that are stored.
pub fn with_libraries<R>(
    call: &mut Call<'_>,
    f: impl FnOnce(&mut Scripts, &mut Call<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    with(call, |scripts, call| {
        scripts.follow(call)?;
        f(scripts, call)
    })
}

fn said(why: impl fmt::Display) -> Failure {
    Failure::said(format!("ERR {why}"))
}

impl Scripts {
    /// EVAL and EVAL_RO.
    pub fn eval(&mut self, call: &mut Call<'_>, read_only: bool) -> Outcome {
        let keys = number_of_keys(call)?;
        let text = call.args.at(1);
        let digest = sha1::sha1(text);
        if !self.cache.has(&digest) {
            self.add(call, digest, text, false)?;
        }
        self.run_script(call, &digest, keys, read_only)
    }

    /// EVALSHA and EVALSHA_RO.
    pub fn eval_sha(&mut self, call: &mut Call<'_>, read_only: bool) -> Outcome {
        if call.args.at(1).len() != 40 {
            return Err(NO_SCRIPT);
        }
        let keys = number_of_keys(call)?;
        let digest = sha1::unhex(call.args.at(1)).ok_or(NO_SCRIPT)?;
        self.run_script(call, &digest, keys, read_only)
    }

    /// SCRIPT LOAD: gives the script's name.
    pub fn load(&mut self, call: &mut Call<'_>, text: &[u8]) -> Result<[u8; 40], Failure> {
        let digest = sha1::sha1(text);
        if self.cache.has(&digest) {
            self.cache.keep(&digest);
        } else if self.cache.may_load(text.len()) {
            self.add(call, digest, text, true)?;
        } else {
            return Err(said("too many scripts have been loaded, SCRIPT FLUSH removes them"));
        }
        Ok(sha1::hex(&digest))
    }

    /// SCRIPT EXISTS.
    pub fn has(&self, name: &[u8]) -> bool {
        sha1::unhex(name).is_some_and(|digest| self.cache.has(&digest))
    }

    /// SCRIPT FLUSH.
    pub fn flush(&mut self) {
        self.cache = Cache::default();
        if self.libraries.is_empty() {
            self.machine = None;
        } else {
            self.renew();
        }
    }

    pub fn usage(&self) -> Usage {
        Usage {
            lua: self.machine.as_ref().map_or(0, Machine::memory),
            scripts: self.cache.len(),
            script_bytes: self.cache.bytes(),
            libraries: self.libraries.len(),
            functions: self.libraries.functions(),
            library_bytes: self.libraries.bytes(),
        }
    }

    pub fn libraries(&self) -> &Libraries {
        &self.libraries
    }

    /// Makes of the stored libraries what can be called.
    fn follow(&mut self, call: &mut Call<'_>) -> Outcome {
        let stored = call.keys.libraries()?.is_some();
        let edition = Some(call.keys.libraries_edition());
        if self.edition == edition {
            return Ok(());
        }
        if stored || !self.libraries.is_empty() {
            let machine = machine(&mut self.machine, call)?;
            let stored = call.keys.libraries()?.into_iter().flat_map(|stored| stored.iter());
            self.libraries.follow(machine, &mut self.next, stored);
        }
        self.edition = edition;
        Ok(())
    }

    /// FUNCTION LOAD: gives the library's name.
    pub fn load_library(
        &mut self,
        call: &mut Call<'_>,
        code: &[u8],
        replace: bool,
    ) -> Result<Vec<u8>, Failure> {
        if code.len() > TEXT_BYTES_MAX {
            return Err(said(TOO_LONG));
        }
        let machine = machine(&mut self.machine, call)?;
        let name = self.libraries.load(machine, &mut self.next, code, replace).map_err(said)?;
        call.keys.store_library(&name, code)?;
        Ok(name)
    }

    /// FUNCTION DELETE: false when there is no such library.
    pub fn delete_library(&mut self, call: &mut Call<'_>, name: &[u8]) -> Result<bool, Failure> {
        let known = self.libraries.delete(self.machine.as_ref(), name);
        // One that could not be loaded is stored all the same.
        Ok(call.keys.remove_library(name)? || known)
    }

    /// FUNCTION FLUSH.
    pub fn flush_libraries(&mut self, call: &mut Call<'_>) -> Outcome {
        self.libraries.flush(self.machine.as_ref());
        call.keys.remove_libraries()
    }

    /// FUNCTION RESTORE.
    pub fn restore_libraries(
        &mut self,
        call: &mut Call<'_>,
        codes: &[Vec<u8>],
        policy: Policy,
    ) -> Outcome {
        let machine = machine(&mut self.machine, call)?;
        let names = self.libraries.restore(machine, &mut self.next, codes, policy).map_err(said)?;
        if policy == Policy::Flush {
            call.keys.remove_libraries()?;
        }
        for (name, code) in names.iter().zip(codes) {
            call.keys.store_library(name, code)?;
        }
        Ok(())
    }

    /// FCALL and FCALL_RO.
    pub fn call(&mut self, call: &mut Call<'_>, read_only: bool) -> Outcome {
        let name = call.args.at(1);
        let callee = self.libraries.find(name).ok_or(said("Function not found"))?;
        if crate::value::parse_integer(call.args.at(2)).is_none() {
            return Err(said("Bad number of keys provided"));
        }
        let keys = number_of_keys(call)?;
        if read_only && !callee.no_writes {
            return Err(said("Can not execute a script with write flag using *_ro command."));
        }
        let read_only = read_only || callee.no_writes;
        self.run(call, Entry::Function(callee.id), name, (keys, read_only))
    }

    fn add(&mut self, call: &mut Call<'_>, digest: Digest, text: &[u8], loaded: bool) -> Outcome {
        if text.len() > TEXT_BYTES_MAX {
            return Err(said(TOO_LONG));
        }
        let (permits, _) = shebang::of_script(text).map_err(said)?;
        self.next += 1;
        let mut script =
            Script { id: self.next, permits, text: text.into(), loaded, compiled: false };
        let machine = machine(&mut self.machine, call)?;
        compile(machine, &mut script, call)?;
        for id in self.cache.insert(digest, script) {
            machine.forget(id);
        }
        Ok(())
    }

    fn run_script(
        &mut self,
        call: &mut Call<'_>,
        digest: &Digest,
        keys: usize,
        read_only: bool,
    ) -> Outcome {
        let script = self.cache.get_mut(digest).ok_or(NO_SCRIPT)?;
        if !script.compiled {
            compile(machine(&mut self.machine, call)?, script, call)?;
        }
        let permits = script.permits;
        if read_only && !permits.anything && !permits.no_writes {
            return Err(said("Can not execute a script with write flag using *_ro command."));
        }
        let entry = Entry::Script(script.id);
        let read_only = read_only || permits.no_writes;
        self.run(call, entry, &sha1::hex(digest), (keys, read_only))
    }

    fn run(
        &mut self,
        call: &mut Call<'_>,
        entry: Entry,
        name: &[u8],
        how: (usize, bool),
    ) -> Outcome {
        let machine = machine(&mut self.machine, call)?;
        let db = call.session.db;
        let ending = machine.run(entry, call, how, &mut self.scratch);
        // SELECT within a script is the script's own.
        call.session.db = db;
        call.keys.select(db);
        let outcome = match ending {
            Ending::Value(value, protocol) => {
                call.server.stats.is_counted = is_counted(&value);
                let told = convert::tell(&value, protocol, call.reply);
                call.server.stats.is_counted &= told.is_err();
                told
            }
            Ending::Error(value) => {
                call.server.stats.is_counted = is_counted(&value);
                Err(Failure::said(worded(&value, name)))
            }
            Ending::Ended(why) => Err(Failure::undone(undone(why))),
            Ending::Failed(failure) => Err(failure),
        };
        self.scratch.trim(SCRATCH_BYTES_MAX);
        if machine.is_worn() {
            self.renew();
        }
        outcome
    }

    /// Another Lua state, without what scripts have left behind.
    fn renew(&mut self) {
        self.cache.uncompiled();
        let clock = self.machine.as_ref().and_then(|machine| machine.control.clock());
        self.machine = Machine::new(clock).ok();
        if let Some(machine) = &self.machine {
            self.libraries.reload(machine, &mut self.next);
        }
    }
}

/// The Lua state, made when it is first needed.
fn machine<'a>(machine: &'a mut Option<Machine>, call: &Call<'_>) -> Result<&'a Machine, Failure> {
    let made = match machine.take() {
        Some(made) => made,
        None => Machine::new(call.server.clock).map_err(|_| said("not enough memory"))?,
    };
    Ok(machine.insert(made))
}

fn compile(machine: &Machine, script: &mut Script, call: &Call<'_>) -> Outcome {
    let (_, begin) = shebang::of_script(&script.text).map_err(said)?;
    let limit = call.server.settings.lua_time_limit_ms;
    machine
        .compile(script.id, &script.text[begin..], limit)
        .map_err(|why| said(format!("Error compiling script (new function): {why}")))?;
    script.compiled = true;
    Ok(())
}

/// How many of the words behind the third are keys.
fn number_of_keys(call: &Call<'_>) -> Result<usize, Failure> {
    let keys = crate::command::number::integer(call.args.at(2))?;
    match usize::try_from(keys) {
        Err(_) => Err(said("Number of keys can't be negative")),
        Ok(keys) if keys > call.args.len() - 3 => {
            Err(said("Number of keys can't be greater than number of args"))
        }
        Ok(keys) => Ok(keys),
    }
}

fn undone(why: Ended) -> &'static str {
    match why {
        Ended::Memory => {
            "ERR The script needs too much memory. It has been ended, and what it did is undone."
        }
        _ => {
            "ERR The script has run for longer than lua-time-limit. It has been ended, and what it \
             did is undone."
        }
    }
}

/// Whether a script's error is that of a command of its, which has been counted.
fn is_counted(value: &Value) -> bool {
    let Value::Table(table) = value else { return false };
    table.raw_get::<bool>(convert::COUNTED).is_ok_and(|counted| counted)
}

/// What a client is told of a script's error (`luaCallFunction`).
fn worded(value: &Value, name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let Value::Table(table) = value else {
        let why = match value {
            Value::String(text) => convert::one_line(&text.as_bytes()),
            _ => "execution failure".into(),
        };
        let why: String = why.chars().take(100).collect();
        return format!("ERR Error running script {name}, {why}");
    };
    let field = |field: &str| match table.raw_get::<Value>(field) {
        Ok(Value::String(text)) => Some(convert::one_line(&text.as_bytes())),
        Ok(Value::Integer(number)) => Some(number.to_string()),
        _ => None,
    };
    let message = field("err").unwrap_or_else(|| "ERR unknown error".into());
    match (field("source"), field("line")) {
        (Some(source), Some(line)) => format!("{message} script: {name}, on {source}:{line}."),
        _ => message,
    }
}
