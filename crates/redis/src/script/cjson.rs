//! The library `cjson`: lua-cjson 2.1.0 as Redis has it.
//!
//! Source: `deps/lua/src/lua_cjson.c` of Redis 7.2.

mod decode;
mod encode;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::{Lua, MultiValue, Table, Value};

use super::host::{self, bad_argument, give, give_several, Complaint, Control};

/// Tables within tables; scripts may set less, not more. Redis has 1000; this much fits into the
/// stack of any thread.
const DEPTH_MAX: usize = 300;

/// What scripts can set. It stays for later scripts, as in Redis.
#[derive(Debug, Clone)]
struct Settings {
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth: usize,
    decode_depth: usize,
    precision: usize,
    keep_buffer: bool,
    encode_invalid: Invalid,
    decode_invalid: bool,
}

/// What becomes of infinities and NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Invalid {
    Refused,
    Written,
    Null,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth: 1000,
            decode_depth: 1000,
            precision: 14,
            keep_buffer: true,
            encode_invalid: Invalid::Refused,
            decode_invalid: true,
        }
    }
}

/// Locked for the time of a call only; Lua has one thread.
type Shared = Arc<Mutex<Settings>>;

fn lock(shared: &Shared) -> MutexGuard<'_, Settings> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

type Setter = fn(&Lua, &MultiValue, &mut Settings) -> Result<Value, Complaint>;

const SETTERS: [(&str, Setter); 6] = [
    ("encode_max_depth", |lua, args, settings| {
        let depth = &mut settings.encode_depth;
        set_integer(lua, args, 0, "encode_max_depth", (1, i64::from(i32::MAX)), depth)
    }),
    ("decode_max_depth", |lua, args, settings| {
        let depth = &mut settings.decode_depth;
        set_integer(lua, args, 0, "decode_max_depth", (1, i64::from(i32::MAX)), depth)
    }),
    ("encode_number_precision", |lua, args, settings| {
        set_integer(lua, args, 0, "encode_number_precision", (1, 14), &mut settings.precision)
    }),
    ("encode_keep_buffer", |_, args, settings| {
        set_switch(args, 0, "encode_keep_buffer", &mut settings.keep_buffer)
    }),
    ("decode_invalid_numbers", |_, args, settings| {
        set_switch(args, 0, "decode_invalid_numbers", &mut settings.decode_invalid)
    }),
    ("encode_invalid_numbers", |lua, args, settings| set_invalid(lua, args, settings)),
];

pub fn install(lua: &Lua, host: &Table, control: &Arc<Control>) -> mlua::Result<()> {
    let shared = Shared::default();
    for (name, setter) in SETTERS {
        let shared = shared.clone();
        let run = move |lua: &Lua, args: MultiValue| {
            let set = at_most(&args, 1, name).and_then(|()| setter(lua, &args, &mut lock(&shared)));
            give(lua, set)
        };
        host.raw_set(name, lua.create_function(run)?)?;
    }
    let settings = shared.clone();
    let sparse =
        move |lua: &Lua, args: MultiValue| give_several(lua, set_sparse(lua, &args, &settings));
    host.raw_set("encode_sparse_array", lua.create_function(sparse)?)?;
    let (settings, shared_control) = (shared.clone(), control.clone());
    let encode = move |lua: &Lua, args: MultiValue| {
        let encoded = one(&args, "encode")
            .and_then(|value| encode::encode(value, lock(&settings).clone(), &shared_control));
        give(lua, encoded.and_then(|text| Ok(Value::String(lua.create_string(text)?))))
    };
    host.raw_set("encode", lua.create_function(encode)?)?;
    let (settings, shared_control) = (shared, control.clone());
    let decode = move |lua: &Lua, args: MultiValue| {
        let decoded = one(&args, "decode").and_then(|_| {
            let text = host::text(lua, &args, 0, "decode")?;
            let text = text.as_bytes();
            shared_control.spend_bytes(text.len() * 16);
            decode::decode(lua, &text, lock(&settings).clone())
        });
        give(lua, decoded)
    };
    host.raw_set("decode", lua.create_function(decode)?)
}

fn one<'a>(args: &'a MultiValue, function: &str) -> Result<&'a Value, Complaint> {
    match args.len() {
        1 => Ok(&args[0]),
        _ => Err(bad_argument(0, function, "expected 1 argument")),
    }
}

fn at_most(args: &MultiValue, most: usize, function: &str) -> Result<(), Complaint> {
    match args.len() <= most {
        true => Ok(()),
        false => Err(bad_argument(most, function, "found too many arguments")),
    }
}

fn set_integer<N: TryInto<i64> + TryFrom<i64> + Copy>(
    lua: &Lua,
    args: &MultiValue,
    at: usize,
    function: &str,
    (least, most): (i64, i64),
    setting: &mut N,
) -> Result<Value, Complaint> {
    if args.get(at).is_some_and(|value| !value.is_nil()) {
        let value = host::number(lua, args, at, function)? as i64;
        if !(least..=most).contains(&value) {
            let why = format!("expected integer between {least} and {most}");
            return Err(bad_argument(0, function, &why));
        }
        if let Ok(value) = N::try_from(value) {
            *setting = value;
        }
    }
    Ok(Value::Integer((*setting).try_into().unwrap_or(i64::MAX)))
}

fn set_switch(
    args: &MultiValue,
    at: usize,
    function: &str,
    setting: &mut bool,
) -> Result<Value, Complaint> {
    match args.get(at) {
        None | Some(Value::Nil) => {}
        Some(Value::Boolean(on)) => *setting = *on,
        Some(Value::String(text)) if &*text.as_bytes() == b"on" => *setting = true,
        Some(Value::String(text)) if &*text.as_bytes() == b"off" => *setting = false,
        Some(value) => return Err(bad_option(value, at, function)),
    }
    Ok(Value::Boolean(*setting))
}

fn bad_option(value: &Value, at: usize, function: &str) -> Complaint {
    match value {
        Value::String(text) => {
            let shown = String::from_utf8_lossy(&text.as_bytes()).into_owned();
            bad_argument(at, function, &format!("invalid option '{shown}'"))
        }
        Value::Integer(number) => bad_argument(at, function, &format!("invalid option '{number}'")),
        value => {
            let got = host::type_name(value);
            bad_argument(at, function, &format!("string expected, got {got}"))
        }
    }
}

fn set_invalid(lua: &Lua, args: &MultiValue, settings: &mut Settings) -> Result<Value, Complaint> {
    let is_null = |text: &mlua::LuaString| &*text.as_bytes() == b"null";
    if matches!(args.front(), Some(Value::String(text)) if is_null(text)) {
        settings.encode_invalid = Invalid::Null;
    } else if args.front().is_some_and(|value| !value.is_nil()) {
        let mut written = false;
        set_switch(args, 0, "encode_invalid_numbers", &mut written)?;
        settings.encode_invalid = if written { Invalid::Written } else { Invalid::Refused };
    }
    Ok(match settings.encode_invalid {
        Invalid::Refused => Value::Boolean(false),
        Invalid::Written => Value::Boolean(true),
        Invalid::Null => Value::String(lua.create_string("null")?),
    })
}

fn set_sparse(lua: &Lua, args: &MultiValue, shared: &Shared) -> Result<Vec<Value>, Complaint> {
    const NAME: &str = "encode_sparse_array";
    at_most(args, 3, NAME)?;
    let mut settings = lock(shared);
    let range = (0, i64::from(i32::MAX));
    Ok(vec![
        set_switch(args, 0, NAME, &mut settings.sparse_convert)?,
        set_integer(lua, args, 1, NAME, range, &mut settings.sparse_ratio)?,
        set_integer(lua, args, 2, NAME, range, &mut settings.sparse_safe)?,
    ])
}
