//! The library `bit` of Lua BitOp 1.0.2, as Redis has it: operations on 32 bits.

use mlua::{Lua, MultiValue, Table, Value};

use super::host::{give, number, Complaint};

/// Source: `barg` in `deps/lua/src/lua_bit.c`: the low 32 bits, rounded to even.
fn bits(lua: &Lua, args: &MultiValue, at: usize, function: &str) -> Result<u32, Complaint> {
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    let number = number(lua, args, at, function)?;
    Ok((number + SHIFT).to_bits() as u32)
}

type Unary = fn(u32) -> u32;
type Folded = fn(u32, u32) -> u32;

const UNARY: [(&str, Unary); 3] =
    [("tobit", |bits| bits), ("bnot", |bits| !bits), ("bswap", u32::swap_bytes)];

const FOLDED: [(&str, Folded); 3] =
    [("band", |a, b| a & b), ("bor", |a, b| a | b), ("bxor", |a, b| a ^ b)];

const SHIFTS: [(&str, Folded); 5] = [
    ("lshift", |bits, by| bits << by),
    ("rshift", |bits, by| bits >> by),
    ("arshift", |bits, by| (bits as i32 >> by) as u32),
    ("rol", |bits, by| bits.rotate_left(by)),
    ("ror", |bits, by| bits.rotate_right(by)),
];

fn result(bits: u32) -> Value {
    Value::Integer(i64::from(bits as i32))
}

pub fn install(lua: &Lua, host: &Table) -> mlua::Result<()> {
    for (name, operation) in UNARY {
        let run = move |lua: &Lua, args: MultiValue| {
            give(lua, bits(lua, &args, 0, name).map(|bits| result(operation(bits))))
        };
        host.raw_set(name, lua.create_function(run)?)?;
    }
    for (name, operation) in FOLDED {
        let run = move |lua: &Lua, args: MultiValue| {
            let fold = || {
                let mut all = bits(lua, &args, 0, name)?;
                for at in 1..args.len() {
                    all = operation(all, bits(lua, &args, at, name)?);
                }
                Ok(result(all))
            };
            give(lua, fold())
        };
        host.raw_set(name, lua.create_function(run)?)?;
    }
    for (name, operation) in SHIFTS {
        let run = move |lua: &Lua, args: MultiValue| {
            let shift = || {
                let value = bits(lua, &args, 0, name)?;
                Ok(result(operation(value, bits(lua, &args, 1, name)? & 31)))
            };
            give(lua, shift())
        };
        host.raw_set(name, lua.create_function(run)?)?;
    }
    let tohex = |lua: &Lua, args: MultiValue| give(lua, tohex(lua, &args));
    host.raw_set("tohex", lua.create_function(tohex)?)
}

fn tohex(lua: &Lua, args: &MultiValue) -> Result<Value, Complaint> {
    let value = bits(lua, args, 0, "tohex")?;
    let digits = if args.len() < 2 { 8 } else { bits(lua, args, 1, "tohex")? as i32 };
    let shown = digits.unsigned_abs().min(8) as usize;
    let text = if digits < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    Ok(Value::String(lua.create_string(&text[8 - shown..])?))
}
