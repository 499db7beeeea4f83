//! The Lua state that all scripts of an engine run in.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};

use super::host::{self, ending, raise, Clock, Control, Ended};
use super::{bits, cjson, cmsgpack, convert, patterns, sha1, structs};
use crate::args::Words;
use crate::call::{self, Call};
use crate::command::{self, Command, Flags};
use crate::failure::Failure;
use crate::flow::Flow;
use crate::keyspace::Keyspace;
use crate::reply::{Recorded, Reply};
use crate::server::Server;
use crate::session::Session;

/// Bytes that all of Lua may use.
const MEMORY_MAX: usize = 128 << 20;

/// Bytes that may still be in use when everything was collected after a script; beyond that the
/// state is made anew.
const RESIDUE_MAX: usize = 32 << 20;

/// Instructions between two looks at the clock.
const INSTRUCTIONS: u32 = 500;

/// What a command costs, in instructions.
const COMMAND_COST: usize = 200;

/// Bytes of one command that a script gives.
const COMMAND_BYTES_MAX: usize = 512 << 20;

pub struct Machine {
    lua: Lua,
    pub control: Arc<Control>,
    stage: Stage,
    run: Function,
    call: Function,
    compile: Function,
    load: Function,
    forget: Function,
    forget_function: Function,
}

/// How a script has ended.
pub enum Ending {
    /// With a value, to be told in this version of the protocol.
    Value(Value, u8),
    /// With an error: what `error` was given, described.
    Error(Value),
    /// By the host.
    Ended(Ended),
    /// By a command that can't go on.
    Failed(Failure),
}

/// What is run: a script by its number, or a library's function by its.
#[derive(Debug, Clone, Copy)]
pub enum Entry {
    Script(u64),
    Function(u64),
}

/// A function that a library has registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    pub name: Vec<u8>,
    pub description: Option<Vec<u8>>,
    pub flags: Vec<&'static str>,
}

impl Machine {
    pub fn new(clock: Option<Clock>) -> mlua::Result<Machine> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let control = Arc::new(Control::new(clock));
        let host = lua.create_table()?;
        host::install(&lua, &host, &control)?;
        cjson::install(&lua, &host, &control)?;
        cmsgpack::install(&lua, &host, &control)?;
        structs::install(&lua, &host)?;
        bits::install(&lua, &host)?;
        patterns::install(&lua, &host, &control)?;
        let stage = Stage::default();
        install(&lua, &host, &control, &stage)?;
        let sandbox = lua.load(include_str!("sandbox.lua")).set_name("=sandbox");
        let sandbox: Table = sandbox.into_function()?.call(host)?;
        lua.set_globals(sandbox.raw_get("environment")?)?;
        let shared = control.clone();
        let triggers = HookTriggers::new().every_nth_instruction(INSTRUCTIONS);
        lua.set_global_hook(triggers, move |_, _| {
            if shared.spend(INSTRUCTIONS as usize) {
                Ok(VmState::Continue)
            } else {
                Err(ending())
            }
        })?;
        lua.set_memory_limit(MEMORY_MAX)?;
        Ok(Machine {
            control,
            stage,
            run: sandbox.raw_get("run")?,
            call: sandbox.raw_get("call")?,
            compile: sandbox.raw_get("compile")?,
            load: sandbox.raw_get("load")?,
            forget: sandbox.raw_get("forget")?,
            forget_function: sandbox.raw_get("forget_function")?,
            lua,
        })
    }

    /// Makes a script of a text, under a number. Else says what is wrong with it.
    pub fn compile(&self, id: u64, text: &[u8], limit_ms: u64) -> Result<(), Vec<u8>> {
        self.control.begin(limit_ms);
        let compiled: mlua::Result<Option<mlua::LuaString>> =
            self.lua.create_string(text).and_then(|text| self.compile.call((id, text)));
        match compiled {
            Ok(None) => Ok(()),
            Ok(Some(why)) => Err(why.as_bytes().to_vec()),
            Err(error) => Err(short(&error).into_bytes()),
        }
    }

    pub fn forget(&self, id: u64) {
        // Only the lack of memory could keep it from being forgotten.
        let _ = self.forget.call::<()>(id);
    }

    pub fn forget_function(&self, id: u64) {
        let _ = self.forget_function.call::<()>(id);
    }

    /// Runs a library, so that it registers its functions under numbers from `first`.
    pub fn load(&self, text: &[u8], first: u64, limit_ms: u64) -> Result<Vec<Registered>, String> {
        self.control.begin(limit_ms);
        let text = self.lua.create_string(text).map_err(|error| short(&error))?;
        let loaded: mlua::Result<(Option<mlua::LuaString>, Option<Table>)> =
            self.load.call((text, first));
        match loaded {
            Ok((Some(why), _)) => Err(lossy(&why)),
            Ok((None, Some(rows))) => {
                let rows = rows.sequence_values::<Table>().map(|row| registered(&row?));
                rows.collect::<mlua::Result<_>>().map_err(|error| short(&error))
            }
            Ok((None, None)) => Ok(Vec::new()),
            Err(error) => Err(short(&error)),
        }
    }

    pub fn run(
        &self,
        entry: Entry,
        call: &mut Call<'_>,
        (keys, read_only): (usize, bool),
        scratch: &mut Scratch,
    ) -> Ending {
        self.control.begin(call.server.settings.lua_time_limit_ms);
        let args = call.args.from(3);
        self.set_up(call, read_only, std::mem::take(scratch));
        let ran = (|| {
            let keys_table = self.texts(args.iter().take(keys))?;
            let args_table = self.texts(args.iter().skip(keys))?;
            match entry {
                Entry::Script(id) => self.run.call((id, keys_table, args_table)),
                Entry::Function(id) => self.call.call((id, keys_table, args_table)),
            }
        })();
        let failure = self.clear(call, scratch);
        if let Some(failure) = failure {
            return Ending::Failed(failure);
        }
        if self.control.is_ended() {
            return Ending::Ended(self.control.ended());
        }
        match ran {
            Ok((true, value)) => Ending::Value(value, self.control.protocol()),
            Ok((false, value)) if is_out_of_memory(&value) => Ending::Ended(Ended::Memory),
            Ok((false, value)) => Ending::Error(value),
            Err(_) => Ending::Ended(Ended::Memory),
        }
    }

    /// The functions of the host live as long as the Lua state, so what they work on is moved to
    /// where they find it, for the time of a script.
    fn set_up(&self, call: &mut Call<'_>, read_only: bool, scratch: Scratch) {
        let nobody = Session::new(call.session.conn, 0, 0, Default::default(), 0);
        let mut running = Running {
            keys: std::mem::replace(call.keys, Keyspace::new(0, Flow::new(&[]), &[])),
            session: std::mem::replace(call.session, nobody),
            server: std::mem::take(call.server),
            read_only,
            scratch,
            failure: None,
        };
        running.session.in_script = true;
        *lock(&self.stage) = Some(Box::new(running));
    }

    fn clear(&self, call: &mut Call<'_>, scratch: &mut Scratch) -> Option<Failure> {
        let running = *lock(&self.stage).take()?;
        *call.keys = running.keys;
        *call.session = running.session;
        call.session.in_script = false;
        *call.server = running.server;
        *scratch = running.scratch;
        running.failure
    }

    fn texts<'a>(&self, words: impl Iterator<Item = &'a [u8]>) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(words.size_hint().0, 0)?;
        for (at, word) in words.enumerate() {
            table.raw_set(at + 1, self.lua.create_string(word)?)?;
        }
        Ok(table)
    }

    /// Whether so much is left behind that the state should be made anew. It looks only when much
    /// is in use.
    pub fn is_worn(&self) -> bool {
        if self.lua.used_memory() <= RESIDUE_MAX {
            return false;
        }
        self.lua.gc_collect().is_err() || self.lua.used_memory() > RESIDUE_MAX
    }

    /// Bytes in use.
    pub fn memory(&self) -> usize {
        self.lua.used_memory()
    }
}

/// An error that is Lua's own, which no script sees as a table.
fn is_out_of_memory(value: &Value) -> bool {
    match value {
        Value::Error(_) => true,
        Value::String(text) => &*text.as_bytes() == b"not enough memory",
        _ => false,
    }
}

fn lossy(text: &mlua::LuaString) -> String {
    String::from_utf8_lossy(&text.as_bytes()).into_owned()
}

fn short(error: &mlua::Error) -> String {
    match error {
        mlua::Error::MemoryError(_) => "not enough memory".into(),
        other => other.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

fn registered(row: &Table) -> mlua::Result<Registered> {
    let name: mlua::LuaString = row.raw_get(1)?;
    let description = match row.raw_get(2)? {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        _ => None,
    };
    let given: Table = row.raw_get(3)?;
    let mut flags = Vec::new();
    for flag in super::shebang::FLAGS {
        if given.raw_get::<bool>(flag)? {
            flags.push(flag);
        }
    }
    Ok(Registered { name: name.as_bytes().to_vec(), description, flags })
}

/// What is used again by each command of each script.
#[derive(Debug, Default)]
pub struct Scratch {
    words: Words,
    reply: Recorded,
}

/// A script that runs, with all that its commands work on.
struct Running {
    keys: Keyspace,
    session: Session,
    server: Server,
    read_only: bool,
    scratch: Scratch,
    /// Why the script can't go on.
    failure: Option<Failure>,
}

/// Nothing while no script runs. Lua has one thread: the lock is never waited for.
type Stage = Arc<Mutex<Option<Box<Running>>>>;

fn lock(stage: &Stage) -> MutexGuard<'_, Option<Box<Running>>> {
    stage.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is wrong with a call of `redis.call`: the error's text, and whether a command has said it.
struct Wrong(&'static str, bool);

/// The functions of the table `redis` that may raise errors.
fn install(lua: &Lua, host: &Table, control: &Arc<Control>, stage: &Stage) -> mlua::Result<()> {
    for (name, raises) in [("call", true), ("pcall", false)] {
        let (control, stage) = (control.clone(), stage.clone());
        let run = move |lua: &Lua, args: MultiValue| {
            let (failed, value) = match &mut *lock(&stage) {
                Some(running) => running.command(lua, &args, &control)?,
                None => {
                    let why = b"ERR redis.call/pcall can only be called inside a script invocation";
                    (true, convert::error_table(lua, why, false)?)
                }
            };
            if failed && raises {
                Err(raise(lua, value))
            } else {
                Ok(value)
            }
        };
        host.raw_set(name, lua.create_function(run)?)?;
    }
    let run = |lua: &Lua, args: MultiValue| {
        if args.len() != 1 {
            return Err(fail(lua, "wrong number of arguments"));
        }
        // What is no text has none.
        let text = host::text(lua, &args, 0, "sha1hex").map(|text| text.as_bytes().to_vec());
        let digest = sha1::sha1(&text.unwrap_or_default());
        lua.create_string(sha1::hex(&digest))
    };
    host.raw_set("sha1hex", lua.create_function(run)?)?;
    let control = control.clone();
    let run = move |lua: &Lua, args: MultiValue| match (args.len(), number(&args, 0)) {
        (1, Some(version)) if version == 2.0 || version == 3.0 => {
            control.set_protocol(version as u8);
            Ok(())
        }
        (1, _) => Err(fail(lua, "RESP version must be 2 or 3.")),
        _ => Err(fail(lua, "redis.setresp() requires one argument.")),
    };
    host.raw_set("setresp", lua.create_function(run)?)?;
    let run = |lua: &Lua, args: MultiValue| match (args.len(), number(&args, 0)) {
        // There are no replicas to tell or not to tell.
        (1, flags) if (0.0..4.0).contains(&flags.unwrap_or_default()) => Ok(()),
        (1, _) => Err(fail(
            lua,
            "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        )),
        _ => Err(fail(lua, "redis.set_repl() requires one argument.")),
    };
    host.raw_set("set_repl", lua.create_function(run)?)?;
    let run = |lua: &Lua, args: MultiValue| {
        if args.is_empty() {
            return Err(fail(lua, "Please specify at least one argument for this redis lib call"));
        }
        let name = host::text(lua, &args, 0, "acl_check_cmd");
        match name.is_ok_and(|name| command::find(&name.as_bytes()).is_some()) {
            true => Ok(true),
            false => Err(fail(lua, "Invalid command passed to redis.acl_check_cmd()")),
        }
    };
    host.raw_set("acl_check_cmd", lua.create_function(run)?)?;
    // There is no log that a script could write to; what Redis refuses is refused.
    let run = |lua: &Lua, args: MultiValue| match (args.len(), number(&args, 0)) {
        (0 | 1, _) => Err(fail(lua, "redis.log() requires two arguments or more.")),
        (_, None) => Err(fail(lua, "First argument must be a number (log level).")),
        (_, Some(level)) if (0.0..4.0).contains(&level) => Ok(()),
        _ => Err(fail(lua, "Invalid debug level.")),
    };
    host.raw_set("log", lua.create_function(run)?)
}

fn number(args: &MultiValue, at: usize) -> Option<f64> {
    match args.get(at)? {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// An error as `redis.call` raises it.
fn fail(lua: &Lua, why: &str) -> mlua::Error {
    match convert::error_table(lua, format!("ERR {why}").as_bytes(), false) {
        Ok(table) => raise(lua, table),
        Err(error) => error,
    }
}

impl Running {
    /// Whether it has failed, and the reply.
    fn command(
        &mut self,
        lua: &Lua,
        args: &MultiValue,
        control: &Control,
    ) -> mlua::Result<(bool, Value)> {
        if !control.spend(COMMAND_COST) {
            return Err(ending());
        }
        match self.read(args).and_then(|()| self.find()) {
            Ok(command) => self.perform(lua, command, control),
            Err(Wrong(why, told)) => {
                if told {
                    self.server.stats.error(why.as_bytes());
                    if let Some((_, number)) =
                        command::find_numbered(self.scratch.words.args().at(0))
                    {
                        self.server.stats.of(number).rejected += 1;
                    }
                }
                Ok((true, convert::error_table(lua, why.as_bytes(), told)?))
            }
        }
    }

    fn read(&mut self, args: &MultiValue) -> Result<(), Wrong> {
        self.scratch.words.clear();
        if args.is_empty() {
            let why = "ERR Please specify at least one argument for this redis lib call";
            return Err(Wrong(why, false));
        }
        if args.iter().all(|word| self.scratch.push(word)) {
            Ok(())
        } else if self.scratch.words.weight() > COMMAND_BYTES_MAX {
            Err(Wrong("ERR the command is too long", false))
        } else {
            let why = "ERR Lua redis lib command arguments must be strings or integers";
            Err(Wrong(why, false))
        }
    }

    /// The command, if a script may give it.
    fn find(&self) -> Result<&'static Command, Wrong> {
        let args = self.scratch.words.args();
        let Some(command) = command::find(args.at(0)) else {
            return Err(Wrong("ERR Unknown Redis command called from script", true));
        };
        if !call::has_arity(command.arity, args) {
            return Err(Wrong("ERR Wrong number of args calling Redis command from script", true));
        }
        let sub = command::container(command).and_then(|family| family.find(args).ok().flatten());
        let flags = sub.map_or(command.flags, |sub| command.flags.and(sub.flags));
        let may_debug = command.name == "debug" && self.server.scripts_may_debug;
        if flags.has(Flags::NO_SCRIPT) && !may_debug {
            return Err(Wrong("ERR This Redis command is not allowed from script", true));
        }
        // What others hear counts as written.
        let writes = command.flags.has(Flags::WRITE)
            || matches!(command.name, "publish" | "spublish" | "pfcount");
        if self.read_only && writes {
            return Err(Wrong("ERR Write commands are not allowed from read-only scripts.", true));
        }
        Ok(command)
    }

    fn perform(
        &mut self,
        lua: &Lua,
        command: &'static Command,
        control: &Control,
    ) -> mlua::Result<(bool, Value)> {
        let Scratch { words, reply } = &mut self.scratch;
        let args = words.args();
        reply.reuse(control.protocol());
        let known = self.keys.all_known(command, args);
        let outcome = known.and_then(|()| {
            let mut nothing = Recorded::default();
            let mut call = Call {
                args,
                reply: &mut nothing,
                keys: &mut self.keys,
                session: &mut self.session,
                server: &mut self.server,
                nested: true,
            };
            call.run(command, args, reply)
        });
        match outcome {
            Ok(()) => {}
            Err(Failure::Said(text)) => {
                reply.rewind(0);
                reply.error(&text);
            }
            Err(failure) => {
                self.failure = Some(failure);
                control.end(Ended::Command);
                return Err(ending());
            }
        }
        if !control.spend_bytes(reply.weight()) {
            return Err(ending());
        }
        let failed = reply.is_error();
        match convert::to_lua(lua, reply) {
            Ok(value) => Ok((failed, value)),
            Err(_) => {
                control.end(Ended::Memory);
                Err(ending())
            }
        }
    }
}

impl Scratch {
    /// Gives back what a large command has taken.
    pub fn trim(&mut self, bytes: usize) {
        if self.words.weight() > bytes || self.reply.weight() > bytes {
            *self = Scratch::default();
        }
    }

    /// False for what can't be a word.
    fn push(&mut self, value: &Value) -> bool {
        match value {
            _ if self.words.weight() > COMMAND_BYTES_MAX => return false,
            Value::String(text) => self.words.push(&text.as_bytes()),
            Value::Integer(number) if number.unsigned_abs() < 1 << 62 => {
                self.words.push(itoa::Buffer::new().format(*number).as_bytes());
            }
            Value::Integer(number) => self.push_number(*number as f64),
            Value::Number(number) => self.push_number(*number),
            _ => return false,
        }
        true
    }

    fn push_number(&mut self, number: f64) {
        let mut text = Vec::new();
        convert::number_text(number, &mut text);
        self.words.push(&text);
    }
}
