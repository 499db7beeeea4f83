//! What the host gives to the sandbox: functions that return true and values, or false and a
//! message; and what bounds a script that runs.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicU8, Ordering::Relaxed};
use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, Value};

/// The version of Redis that scripts are told.
pub const VERSION: &str = "7.2.0";
const VERSION_NUMBER: i64 = 0x0007_0200;

/// Bytes of any one text that a function of the host makes.
pub const TEXT_BYTES_MAX: usize = 64 << 20;

/// Results that one call may have.
const RESULTS_MAX: usize = 4000;

/// Lua instructions that stand for a millisecond. A script on a clock is ended by that much
/// sooner; this bounds one where there is no clock.
const INSTRUCTIONS_PER_MS: u64 = 100_000;

/// When no limit is set, in milliseconds: one engine serves everybody.
const UNLIMITED_MS: u64 = 60_000;

/// Bytes handled by the host that cost as much as one instruction.
const BYTES_PER_INSTRUCTION: usize = 16;

/// Reads a clock that never goes back, in microseconds.
pub type Clock = fn() -> i64;

/// Why a script ends though it has not come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Ended {
    No,
    /// It has run for too long.
    Time,
    /// It needs too much memory.
    Memory,
    /// A command can't go on now: the script runs again later.
    Command,
}

/// What the script that runs now may still do.
#[derive(Debug)]
pub struct Control {
    ended: AtomicU8,
    left: AtomicI64,
    deadline: AtomicI64,
    clock: Option<Clock>,
    /// What `redis.call` gives: 2 or 3.
    protocol: AtomicU8,
    /// The state of `math.random`, 48 bits.
    random: AtomicU64,
}

/// Source: `src/rand.c` of Redis 7.2: drand48 with its own start.
const RANDOM_START: u64 = 0x1234_abcd_330e;
const RANDOM_MASK: u64 = (1 << 48) - 1;
const RANDOM_MAX: u64 = 0x7fff_ffff;

impl Control {
    pub fn new(clock: Option<Clock>) -> Control {
        Control {
            ended: AtomicU8::new(0),
            left: AtomicI64::new(0),
            deadline: AtomicI64::new(0),
            clock,
            protocol: AtomicU8::new(2),
            random: AtomicU64::new(RANDOM_START),
        }
    }

    pub fn clock(&self) -> Option<Clock> {
        self.clock
    }

    /// A script begins.
    pub fn begin(&self, limit_ms: u64) {
        let limit_ms = if limit_ms == 0 { UNLIMITED_MS } else { limit_ms.min(UNLIMITED_MS) };
        self.ended.store(Ended::No as u8, Relaxed);
        self.protocol.store(2, Relaxed);
        self.left.store((limit_ms * INSTRUCTIONS_PER_MS) as i64, Relaxed);
        let deadline = self.clock.map_or(0, |clock| clock() + limit_ms as i64 * 1000);
        self.deadline.store(deadline, Relaxed);
    }

    /// Counts work. False when there has been too much.
    pub fn spend(&self, instructions: usize) -> bool {
        let spent = i64::try_from(instructions).unwrap_or(i64::MAX);
        let left = self.left.fetch_sub(spent, Relaxed).saturating_sub(spent);
        if left < 0 || self.clock.is_some_and(|clock| clock() > self.deadline.load(Relaxed)) {
            self.end(Ended::Time);
        }
        !self.is_ended()
    }

    pub fn spend_bytes(&self, bytes: usize) -> bool {
        self.spend(bytes / BYTES_PER_INSTRUCTION)
    }

    /// The first reason stays.
    pub fn end(&self, why: Ended) {
        let _ = self.ended.compare_exchange(Ended::No as u8, why as u8, Relaxed, Relaxed);
    }

    pub fn is_ended(&self) -> bool {
        self.ended.load(Relaxed) != Ended::No as u8
    }

    pub fn ended(&self) -> Ended {
        match self.ended.load(Relaxed) {
            0 => Ended::No,
            1 => Ended::Time,
            2 => Ended::Memory,
            _ => Ended::Command,
        }
    }

    pub fn set_protocol(&self, version: u8) {
        self.protocol.store(version, Relaxed);
    }

    pub fn protocol(&self) -> u8 {
        self.protocol.load(Relaxed)
    }

    /// From 0 to 1, without 1.
    pub fn random(&self) -> f64 {
        let state = self.random.load(Relaxed);
        let state = state.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & RANDOM_MASK;
        self.random.store(state, Relaxed);
        ((state >> 17) % RANDOM_MAX) as f64 / RANDOM_MAX as f64
    }

    fn seed(&self, seed: u32) {
        self.random.store(u64::from(seed) << 16 | 0x330e, Relaxed);
    }
}

/// Raised to end a script. The sandbox lets nobody catch it.
pub fn ending() -> mlua::Error {
    mlua::Error::RuntimeError("the script has been ended".into())
}

/// Why a function of the host has no result.
#[derive(Debug)]
pub enum Complaint {
    /// To be raised as an error where the script has called.
    Said(Vec<u8>),
    /// Lua itself could not.
    Lua(mlua::Error),
}

impl From<mlua::Error> for Complaint {
    fn from(error: mlua::Error) -> Complaint {
        Complaint::Lua(error)
    }
}

impl From<String> for Complaint {
    fn from(text: String) -> Complaint {
        Complaint::Said(text.into_bytes())
    }
}

impl From<&str> for Complaint {
    fn from(text: &str) -> Complaint {
        Complaint::Said(text.as_bytes().to_vec())
    }
}

/// As `luaL_argerror` words it; places count from 0.
pub fn bad_argument(at: usize, function: &str, why: &str) -> Complaint {
    format!("bad argument #{} to '{function}' ({why})", at + 1).into()
}

fn bad_type(args: &MultiValue, at: usize, function: &str, expected: &str) -> Complaint {
    let got = args.get(at).map_or("no value", type_name);
    bad_argument(at, function, &format!("{expected} expected, got {got}"))
}

/// As `type` in Lua.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::LightUserData(_) | Value::UserData(_) => "userdata",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}

/// A string, or a number as one.
pub fn text(
    lua: &Lua,
    args: &MultiValue,
    at: usize,
    function: &str,
) -> Result<mlua::LuaString, Complaint> {
    match args.get(at) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value @ (Value::Integer(_) | Value::Number(_))) => {
            lua.coerce_string(value.clone())?.ok_or_else(|| bad_type(args, at, function, "string"))
        }
        _ => Err(bad_type(args, at, function, "string")),
    }
}

/// A number, or a string that reads as one.
pub fn number(lua: &Lua, args: &MultiValue, at: usize, function: &str) -> Result<f64, Complaint> {
    match args.get(at) {
        Some(Value::Integer(number)) => Ok(*number as f64),
        Some(Value::Number(number)) => Ok(*number),
        Some(value @ Value::String(_)) => {
            lua.coerce_number(value.clone())?.ok_or_else(|| bad_type(args, at, function, "number"))
        }
        _ => Err(bad_type(args, at, function, "number")),
    }
}

/// A number without its fraction; `otherwise` when there is none or nil.
pub fn integer_or(
    lua: &Lua,
    args: &MultiValue,
    at: usize,
    function: &str,
    otherwise: i64,
) -> Result<i64, Complaint> {
    match args.get(at) {
        None | Some(Value::Nil) => Ok(otherwise),
        _ => Ok(number(lua, args, at, function)? as i64),
    }
}

/// A value, or an error raised where the script has called.
pub fn give(lua: &Lua, result: Result<Value, Complaint>) -> mlua::Result<Value> {
    result.map_err(|complaint| raised(lua, complaint))
}

/// As [`give`], for any number of values.
pub fn give_several(lua: &Lua, result: Result<Vec<Value>, Complaint>) -> mlua::Result<MultiValue> {
    result.map(MultiValue::from_vec).map_err(|complaint| raised(lua, complaint))
}

/// As [`give`], for so many values in a table.
pub fn give_table(
    lua: &Lua,
    result: Result<(Table, usize), Complaint>,
) -> mlua::Result<MultiValue> {
    let spread = result.and_then(|(table, count)| {
        if count > RESULTS_MAX {
            return Err("too many results".into());
        }
        let values = (1..=count).map(|at| table.raw_get(at));
        Ok(values.collect::<mlua::Result<Vec<Value>>>()?)
    });
    give_several(lua, spread)
}

fn raised(lua: &Lua, complaint: Complaint) -> mlua::Error {
    let text = match complaint {
        Complaint::Said(text) => [place(lua).as_bytes(), &text].concat(),
        Complaint::Lua(error) => return error,
    };
    match lua.create_string(text) {
        Ok(text) => raise(lua, Value::String(text)),
        Err(error) => error,
    }
}

/// Where the sandbox finds the value of an error that the host has raised.
const PENDING: &str = "pending";

/// An error with any value. What Lua gets is an object of the host's, which scripts never see:
/// whatever catches errors puts the value in its place.
pub fn raise(lua: &Lua, value: Value) -> mlua::Error {
    let put =
        lua.named_registry_value::<Table>(PENDING).and_then(|pending| pending.raw_set(1, value));
    put.err().unwrap_or_else(|| mlua::Error::RuntimeError("an error of the host".into()))
}

/// The line that has called, as Lua begins its messages with it (`luaL_where`).
fn place(lua: &Lua) -> String {
    for level in 1..LEVELS_MAX {
        let found = lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let shown = source.short_src.unwrap_or_default();
            match (frame.current_line(), source.what) {
                (Some(line), "Lua" | "main") if shown != SANDBOX => {
                    Some(format!("{shown}:{line}: "))
                }
                (_, "Lua" | "main") => None,
                _ => Some(String::new()),
            }
        });
        match found {
            Some(Some(place)) => return place,
            Some(None) => {}
            None => break,
        }
    }
    String::new()
}

/// The functions that belong to no library.
pub fn install(lua: &Lua, host: &Table, control: &Arc<Control>) -> mlua::Result<()> {
    let pending = lua.create_table()?;
    lua.set_named_registry_value(PENDING, &pending)?;
    host.raw_set(PENDING, pending)?;
    host.raw_set("null", Value::NULL)?;
    host.raw_set("version", VERSION)?;
    host.raw_set("version_number", VERSION_NUMBER)?;
    let shared = control.clone();
    host.raw_set("aborted", lua.create_function(move |_, ()| Ok(shared.is_ended()))?)?;
    let shared = control.clone();
    let random = move |lua: &Lua, args: MultiValue| give(lua, random(lua, &args, &shared));
    host.raw_set("random", lua.create_function(random)?)?;
    let shared = control.clone();
    let seed = move |lua: &Lua, args: MultiValue| {
        let seed = number(lua, &args, 0, "randomseed");
        give(
            lua,
            seed.map(|seed| {
                shared.seed(seed as i64 as u32);
                Value::Nil
            }),
        )
    };
    host.raw_set("randomseed", lua.create_function(seed)?)?;
    let count = |lua: &Lua, ()| Ok(lua.used_memory() as f64 / 1024.0);
    host.raw_set("count", lua.create_function(count)?)?;
    let shared = control.clone();
    // As much as collecting costs, roughly.
    let tick = move |lua: &Lua, ()| {
        if shared.spend_bytes(lua.used_memory()) {
            Ok(())
        } else {
            Err(ending())
        }
    };
    host.raw_set("tick", lua.create_function(tick)?)?;
    host.raw_set("place", lua.create_function(|lua, ()| Ok(script_line(lua)))?)?;
    let shared = control.clone();
    let rep = move |lua: &Lua, args: MultiValue| give(lua, rep(lua, &args, &shared));
    host.raw_set("rep", lua.create_function(rep)?)
}

/// What the sandbox's own code is called.
const SANDBOX: &str = "sandbox";

/// The stack of C calls is not deeper than that.
const LEVELS_MAX: usize = 300;

/// The innermost line that is a script's: its source and number.
fn script_line(lua: &Lua) -> (Option<String>, i64) {
    // Level 0 is this function.
    for level in 1..LEVELS_MAX {
        let found = lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let theirs = source.what == "Lua" || source.what == "main";
            let name = source.source.unwrap_or_default();
            let line = frame.current_line().map_or(-1, |line| line as i64);
            (theirs && name.strip_prefix('=') != Some(SANDBOX)).then(|| (name.into_owned(), line))
        });
        match found {
            None => break,
            Some(Some((name, line))) => return (Some(name), line),
            Some(None) => {}
        }
    }
    (None, 0)
}

/// `math.random`: the same numbers as Redis gives after the same seed.
fn random(lua: &Lua, args: &MultiValue, control: &Control) -> Result<Value, Complaint> {
    let random = control.random();
    let bound = |at| Ok::<f64, Complaint>(number(lua, args, at, "random")?.trunc());
    let (low, high) = match args.len() {
        0 => return Ok(Value::Number(random)),
        1 => (1.0, bound(0)?),
        2 => (bound(0)?, bound(1)?),
        _ => return Err("wrong number of arguments".into()),
    };
    if low > high {
        return Err(bad_argument(args.len() - 1, "random", "interval is empty"));
    }
    Ok(Value::Number((random * (high - low + 1.0)).floor() + low))
}

/// `string.rep`: Lua's own would not notice for minutes that it makes too much.
fn rep(lua: &Lua, args: &MultiValue, control: &Control) -> Result<Value, Complaint> {
    let piece = text(lua, args, 0, "rep")?;
    let times = number(lua, args, 1, "rep")? as i64;
    let piece = piece.as_bytes();
    let times = usize::try_from(times).unwrap_or(0);
    let len = piece.len().saturating_mul(times);
    if len > TEXT_BYTES_MAX {
        return Err("resulting string too large".into());
    }
    control.spend_bytes(len);
    let whole = if piece.is_empty() { Vec::new() } else { piece.repeat(times) };
    Ok(Value::String(lua.create_string(whole)?))
}
