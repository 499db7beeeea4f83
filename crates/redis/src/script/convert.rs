//! Replies of commands as Lua values, and Lua values as replies.
//!
//! Source: `src/script_lua.c` of Redis 7.2; <https://redis.io/docs/latest/develop/interact/programmability/lua-api/>

use mlua::{Lua, Table, Value};

use super::host::TEXT_BYTES_MAX;
use crate::failure::{Failure, Outcome};
use crate::reply::{Recorded, Reply};

/// Tables within tables of what a script returns.
const DEPTH_MAX: usize = 128;

/// Values of what a script returns: a table may be in it many times.
const VALUES_MAX: usize = 1 << 20;

/// A command's reply as what `redis.call` returns.
pub fn to_lua(lua: &Lua, recorded: &Recorded) -> mlua::Result<Value> {
    let mut builder = Builder {
        lua,
        protocol: recorded.protocol(),
        open: Vec::new(),
        result: Value::Nil,
        failed: None,
    };
    recorded.tell(&mut builder);
    match builder.failed {
        Some(error) => Err(error),
        None => Ok(builder.result),
    }
}

/// In the table of an error: it has been counted. Scripts see it, as in Redis.
pub const COUNTED: &str = "ignore_error_stats_update";

/// The table of an error: `{err = ...}`. `told`: it is a command's own.
pub fn error_table(lua: &Lua, text: &[u8], told: bool) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 4)?;
    // A text without a code gets one.
    if text.contains(&b' ') {
        table.raw_set("err", lua.create_string(text)?)?;
    } else {
        table.raw_set("err", lua.create_string([b"ERR ", text].concat())?)?;
    }
    if told {
        table.raw_set(COUNTED, true)?;
    }
    Ok(Value::Table(table))
}

/// Builds Lua values from a reply as it is told.
struct Builder<'a> {
    lua: &'a Lua,
    protocol: u8,
    open: Vec<Open>,
    result: Value,
    failed: Option<mlua::Error>,
}

/// An aggregate whose elements are being told.
struct Open {
    table: Table,
    /// What holds it: `{map = ...}` and `{set = ...}` in RESP3.
    holder: Option<Table>,
    kind: Kind,
    /// Elements to come.
    left: usize,
    at: usize,
    key: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Array,
    Map,
    Set,
}

impl Builder<'_> {
    fn put(&mut self, value: mlua::Result<Value>) {
        let mut value = match value {
            Ok(value) if self.failed.is_none() => value,
            Ok(_) => return,
            Err(error) => {
                self.failed.get_or_insert(error);
                return;
            }
        };
        while let Some(open) = self.open.last_mut() {
            if let Err(error) = open.add(value) {
                self.failed = Some(error);
                return;
            }
            if open.left > 0 {
                return;
            }
            let Some(done) = self.open.pop() else { return };
            value = Value::Table(done.holder.unwrap_or(done.table));
        }
        self.result = value;
    }

    fn begin(&mut self, kind: Kind, len: usize) {
        let array = if kind == Kind::Array { len } else { 0 };
        let open = (|| {
            let table = self.lua.create_table_with_capacity(array, len - array)?;
            let holder = match kind {
                Kind::Array => None,
                Kind::Map => Some(self.held("map", &table)?),
                Kind::Set => Some(self.held("set", &table)?),
            };
            let left = if kind == Kind::Map { len * 2 } else { len };
            Ok(Open { table, holder, kind, left, at: 0, key: Value::Nil })
        })();
        match open {
            Ok(open) if len == 0 => self.put(Ok(Value::Table(open.holder.unwrap_or(open.table)))),
            Ok(open) => self.open.push(open),
            Err(error) => self.put(Err(error)),
        }
    }

    fn held(&self, name: &str, value: impl mlua::IntoLua) -> mlua::Result<Table> {
        let holder = self.lua.create_table_with_capacity(0, 1)?;
        holder.raw_set(name, value)?;
        Ok(holder)
    }

    fn text(&self, bytes: &[u8]) -> mlua::Result<Value> {
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    fn absent(&mut self) {
        self.put(Ok(if self.protocol == 2 { Value::Boolean(false) } else { Value::Nil }));
    }
}

impl Open {
    fn add(&mut self, value: Value) -> mlua::Result<()> {
        self.left -= 1;
        self.at += 1;
        match self.kind {
            Kind::Array => self.table.raw_set(self.at, value),
            Kind::Set => set(&self.table, value, Value::Boolean(true)),
            Kind::Map if self.at % 2 == 1 => {
                self.key = value;
                Ok(())
            }
            Kind::Map => set(&self.table, std::mem::take(&mut self.key), value),
        }
    }
}

/// Nothing can be under nil.
fn set(table: &Table, key: Value, value: Value) -> mlua::Result<()> {
    if key.is_nil() {
        return Ok(());
    }
    table.raw_set(key, value)
}

impl Reply for Builder<'_> {
    fn protocol(&self) -> u8 {
        self.protocol
    }

    fn simple(&mut self, text: &str) {
        let value = self.lua.create_string(text).and_then(|text| self.held("ok", text));
        self.put(value.map(Value::Table));
    }

    fn error(&mut self, text: &str) {
        self.put(error_table(self.lua, text.as_bytes(), true));
    }

    fn integer(&mut self, value: i64) {
        self.put(Ok(Value::Integer(value)));
    }

    fn bulk(&mut self, bytes: &[u8]) {
        let value = self.text(bytes);
        self.put(value);
    }

    fn null(&mut self) {
        self.absent();
    }

    fn null_array(&mut self) {
        self.absent();
    }

    fn array(&mut self, len: usize) {
        self.begin(Kind::Array, len);
    }

    fn map(&mut self, len: usize) {
        match self.protocol {
            2 => self.begin(Kind::Array, len * 2),
            _ => self.begin(Kind::Map, len),
        }
    }

    fn set(&mut self, len: usize) {
        match self.protocol {
            2 => self.begin(Kind::Array, len),
            _ => self.begin(Kind::Set, len),
        }
    }

    fn push(&mut self, len: usize) {
        self.begin(Kind::Array, len);
    }

    fn double(&mut self, value: f64) {
        let value = if self.protocol == 2 {
            self.text(&crate::double::text(value))
        } else {
            self.held("double", value).map(Value::Table)
        };
        self.put(value);
    }

    fn boolean(&mut self, value: bool) {
        self.put(Ok(match self.protocol {
            2 => Value::Integer(i64::from(value)),
            _ => Value::Boolean(value),
        }));
    }

    fn big_number(&mut self, digits: &str) {
        let value = if self.protocol == 2 {
            self.text(digits.as_bytes())
        } else {
            self.held("big_number", digits).map(Value::Table)
        };
        self.put(value);
    }

    fn verbatim(&mut self, format: &str, bytes: &[u8]) {
        let value = if self.protocol == 2 {
            self.text(bytes)
        } else {
            (|| {
                let inner = self.held("string", self.lua.create_string(bytes)?)?;
                inner.raw_set("format", format)?;
                self.held("verbatim_string", inner).map(Value::Table)
            })()
        };
        self.put(value);
    }

    fn mark(&self) -> usize {
        0
    }

    /// What is recorded is told whole.
    fn rewind(&mut self, _mark: usize) {}
}

/// Tells what a script has returned. `protocol` is that of the script, 2 or 3.
/// # Errors
/// It is an error, or too large.
pub fn tell(value: &Value, protocol: u8, reply: &mut dyn Reply) -> Outcome {
    if !matches!(value, Value::Table(_)) {
        scalar(value, protocol, reply);
        return Ok(());
    }
    let mut recorded = Recorded::new(reply.protocol());
    let mut teller = Teller { protocol, values: 0 };
    match teller.tell(value, 0, &mut recorded) {
        Ok(()) => match recorded.error_text() {
            Some(text) => Err(Failure::said(text)),
            None => {
                recorded.tell(reply);
                Ok(())
            }
        },
        Err(TooLarge) => Err(Failure::text("ERR the script's reply is too large")),
    }
}

/// As `redis.call` gets a number: without exponent and fraction where it has none.
pub fn number_text(number: f64, out: &mut Vec<u8>) {
    if number.trunc() == number && number.abs() < 4.6e18 {
        return out.extend_from_slice(itoa::Buffer::new().format(number as i64).as_bytes());
    }
    shortest(number, out);
}

/// The fewest digits that read back as the same number (`fpconv_dtoa`).
fn shortest(number: f64, out: &mut Vec<u8>) {
    if number.is_nan() {
        return out.extend_from_slice(if number.is_sign_negative() { b"-nan" } else { b"nan" });
    }
    if number.is_infinite() {
        return out.extend_from_slice(if number > 0.0 { b"inf" } else { b"-inf" });
    }
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    if mantissa.starts_with('-') {
        out.push(b'-');
    }
    // The last digit's power of ten, as the C code has it.
    let (count, last) = (digits.len() as i32, exponent - digits.len() as i32 + 1);
    if last >= 0 && exponent.abs() < count + 7 {
        out.extend_from_slice(&digits);
        out.resize(out.len() + last as usize, b'0');
    } else if last < 0 && (last > -7 || exponent.abs() < 4) {
        let whole = count + last;
        if whole <= 0 {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + whole.unsigned_abs() as usize, b'0');
            out.extend_from_slice(&digits);
        } else {
            let (before, after) = digits.split_at(whole as usize);
            out.extend_from_slice(before);
            out.push(b'.');
            out.extend_from_slice(after);
        }
    } else {
        out.push(digits[0]);
        if count > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{}", exponent.abs()).as_bytes());
    }
}

struct TooLarge;

impl From<mlua::Error> for TooLarge {
    fn from(_: mlua::Error) -> TooLarge {
        TooLarge
    }
}

struct Teller {
    protocol: u8,
    values: usize,
}

impl Teller {
    fn tell(&mut self, value: &Value, depth: usize, to: &mut Recorded) -> Result<(), TooLarge> {
        self.values += 1;
        if self.values > VALUES_MAX || to.weight() > TEXT_BYTES_MAX * 8 {
            return Err(TooLarge);
        }
        let Value::Table(table) = value else {
            scalar(value, self.protocol, to);
            return Ok(());
        };
        if depth == DEPTH_MAX {
            to.error("ERR reached lua stack limit");
            return Ok(());
        }
        if self.marked(table, depth, to)? {
            return Ok(());
        }
        let (mark, mut count, mut failed) = (to.mark(), 0, false);
        to.array(0);
        table.for_each_value(|element: Value| {
            count += 1;
            failed = self.tell(&element, depth + 1, to).is_err();
            if failed {
                Err(super::host::ending())
            } else {
                Ok(())
            }
        })?;
        to.patch(mark, count);
        Ok(())
    }

    /// A table whose field says what it is meant to be.
    fn marked(&mut self, table: &Table, depth: usize, to: &mut Recorded) -> Result<bool, TooLarge> {
        if let Value::String(text) = table.raw_get::<Value>("err")? {
            to.error(&one_line(&text.as_bytes()));
        } else if let Value::String(text) = table.raw_get::<Value>("ok")? {
            to.simple(&one_line(&text.as_bytes()));
        } else if let Some(number) = as_number(&table.raw_get("double")?) {
            to.double(number);
        } else if let Value::String(digits) = table.raw_get::<Value>("big_number")? {
            to.big_number(&one_line(&digits.as_bytes()));
        } else if let Some((format, text)) = verbatim(table)? {
            to.verbatim(&String::from_utf8_lossy(&format.as_bytes()), &text.as_bytes());
        } else if let Value::Table(map) = table.raw_get::<Value>("map")? {
            let (mark, mut count) = (to.mark(), 0);
            to.map(0);
            map.for_each(|key: Value, value: Value| {
                count += 1;
                let told = self.tell(&key, depth + 1, to);
                told.and_then(|()| self.tell(&value, depth + 1, to))
                    .map_err(|_| super::host::ending())
            })?;
            to.patch(mark, count);
        } else if let Value::Table(set) = table.raw_get::<Value>("set")? {
            let (mark, mut count) = (to.mark(), 0);
            to.set(0);
            set.for_each(|key: Value, _: Value| {
                count += 1;
                self.tell(&key, depth + 1, to).map_err(|_| super::host::ending())
            })?;
            to.patch(mark, count);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

fn verbatim(table: &Table) -> mlua::Result<Option<(mlua::LuaString, mlua::LuaString)>> {
    let Value::Table(inner) = table.raw_get::<Value>("verbatim_string")? else { return Ok(None) };
    match (inner.raw_get("format")?, inner.raw_get("string")?) {
        (Value::String(format), Value::String(text)) => Ok(Some((format, text))),
        _ => Ok(None),
    }
}

fn scalar(value: &Value, protocol: u8, reply: &mut dyn Reply) {
    match value {
        Value::String(text) => reply.bulk(&text.as_bytes()),
        Value::Boolean(value) if protocol == 3 => reply.boolean(*value),
        Value::Boolean(true) => reply.integer(1),
        Value::Integer(number) => reply.integer(*number),
        Value::Number(number) => reply.integer(truncated(*number)),
        _ => reply.null(),
    }
}

/// What is beyond an integer is its least one, as the processor says.
fn truncated(number: f64) -> i64 {
    if number.abs() < 9.3e18 && number < 9_223_372_036_854_775_808.0 {
        number as i64
    } else {
        i64::MIN
    }
}

fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// An error or status can't have a line end.
pub fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_written_as_redis_writes_them() {
        let text = |number: f64| {
            let mut out = Vec::new();
            super::number_text(number, &mut out);
            String::from_utf8(out).unwrap()
        };
        let cases = [
            (0.1, "0.1"),
            (3.0, "3"),
            (-0.0, "0"),
            (1e9, "1000000000"),
            (1e15 + 0.5, "1000000000000000.5"),
            (1.5e-7, "1.5e-7"),
            (0.00001, "0.00001"),
            (1e20, "1e+20"),
            (-2.5, "-2.5"),
            (1e300, "1e+300"),
            (123456.789, "123456.789"),
            (f64::INFINITY, "inf"),
        ];
        for (number, expected) in cases {
            assert_eq!(text(number), expected);
        }
    }
}
