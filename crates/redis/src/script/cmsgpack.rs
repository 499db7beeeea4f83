//! The library `cmsgpack`: lua-cmsgpack 0.4.0 as Redis has it.
//!
//! Source: `deps/lua/src/lua_cmsgpack.c` of Redis 7.2; <https://github.com/msgpack/msgpack/blob/master/spec.md>

use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, Value};

use super::host::{
    self, bad_argument, ending, give, give_table, integer_or, Complaint, Control, TEXT_BYTES_MAX,
};

/// Tables within tables that are packed; deeper ones become nil (`LUACMSGPACK_MAX_NESTING`).
const PACK_DEPTH_MAX: usize = 16;

/// Tables within tables that are unpacked.
const UNPACK_DEPTH_MAX: usize = 300;

pub fn install(lua: &Lua, host: &Table, control: &Arc<Control>) -> mlua::Result<()> {
    let shared = control.clone();
    let pack = move |lua: &Lua, args: MultiValue| give(lua, pack(lua, &args, &shared));
    host.raw_set("msgpack", lua.create_function(pack)?)?;
    let shared = control.clone();
    let unpack_all = move |lua: &Lua, args: MultiValue| {
        give_table(lua, unpack(lua, &args, "unpack", (0, 0), &shared))
    };
    host.raw_set("msgunpack", lua.create_function(unpack_all)?)?;
    let shared = control.clone();
    let unpack_one = move |lua: &Lua, args: MultiValue| {
        let offset = integer_or(lua, &args, 1, "unpack_one", 0);
        let values =
            offset.and_then(|offset| unpack(lua, &args, "unpack_one", (1, offset), &shared));
        give_table(lua, values)
    };
    host.raw_set("msgunpack_one", lua.create_function(unpack_one)?)?;
    let shared = control.clone();
    let unpack_limit = move |lua: &Lua, args: MultiValue| {
        const NAME: &str = "unpack_limit";
        let limits = host::number(lua, &args, 1, NAME)
            .and_then(|limit| Ok((limit as i64, integer_or(lua, &args, 2, NAME, 0)?)));
        give_table(lua, limits.and_then(|limits| unpack(lua, &args, NAME, limits, &shared)))
    };
    host.raw_set("msgunpack_limit", lua.create_function(unpack_limit)?)
}

fn pack(lua: &Lua, args: &MultiValue, control: &Control) -> Result<Value, Complaint> {
    if args.is_empty() {
        // The original counts this argument from nothing.
        return Err("bad argument #0 to 'pack' (MessagePack pack needs input.)".into());
    }
    let mut packer = Packer { out: Vec::new(), complaint: None };
    for value in args {
        packer.value(value, 0)?;
    }
    control.spend_bytes(packer.out.len() * 16);
    Ok(Value::String(lua.create_string(packer.out)?))
}

struct Packer {
    out: Vec<u8>,
    /// What was wrong inside of a table, while that is left.
    complaint: Option<Complaint>,
}

impl Packer {
    fn value(&mut self, value: &Value, level: usize) -> Result<(), Complaint> {
        if self.out.len() > TEXT_BYTES_MAX {
            return Err("resulting string too large".into());
        }
        match value {
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Boolean(value) => self.out.push(0xc2 + u8::from(*value)),
            Value::Integer(number) => self.integer(*number),
            Value::Number(number) => self.double(*number),
            Value::Table(table) if level < PACK_DEPTH_MAX => self.table(table, level)?,
            _ => self.out.push(0xc0),
        }
        Ok(())
    }

    fn string(&mut self, text: &[u8]) {
        let len = text.len();
        match len {
            0..32 => self.out.push(0xa0 | len as u8),
            32..=0xff => self.out.extend_from_slice(&[0xd9, len as u8]),
            _ => self.head(len, 0xda),
        }
        self.out.extend_from_slice(text);
    }

    /// A length of two bytes, or of four with the next code.
    fn head(&mut self, len: usize, code: u8) {
        match u16::try_from(len) {
            Ok(len) => {
                self.out.push(code);
                self.out.extend_from_slice(&len.to_be_bytes());
            }
            Err(_) => {
                self.out.push(code + 1);
                self.out.extend_from_slice(&(len as u32).to_be_bytes());
            }
        }
    }

    fn integer(&mut self, number: i64) {
        let bytes = number.to_be_bytes();
        let (code, width) = match number {
            -32..=127 => return self.out.push(number as u8),
            128..=0xff => (0xcc, 1),
            0x100..=0xffff => (0xcd, 2),
            0x1_0000..=0xffff_ffff => (0xce, 4),
            0x1_0000_0000.. => (0xcf, 8),
            -128..-32 => (0xd0, 1),
            -0x8000..-128 => (0xd1, 2),
            -0x8000_0000..-0x8000 => (0xd2, 4),
            _ => (0xd3, 8),
        };
        self.out.push(code);
        self.out.extend_from_slice(&bytes[8 - width..]);
    }

    fn double(&mut self, number: f64) {
        let single = number as f32;
        if f64::from(single) == number {
            self.out.push(0xca);
            self.out.extend_from_slice(&single.to_be_bytes());
        } else {
            self.out.push(0xcb);
            self.out.extend_from_slice(&number.to_be_bytes());
        }
    }

    fn table(&mut self, table: &Table, level: usize) -> Result<(), Complaint> {
        let (mut count, mut most, mut array) = (0usize, 0i64, true);
        table.for_each(|key: Value, _: Value| {
            match key {
                Value::Integer(at) if (1..=i64::from(i32::MAX)).contains(&at) => {
                    most = most.max(at)
                }
                _ => array = false,
            }
            count += 1;
            Ok(())
        })?;
        if array && most == count as i64 {
            match count {
                0..16 => self.out.push(0x90 | count as u8),
                _ => self.head(count, 0xdc),
            }
            for at in 1..=count {
                let element: Value = table.raw_get(at)?;
                self.value(&element, level + 1)?;
            }
            return Ok(());
        }
        match count {
            0..16 => self.out.push(0x80 | count as u8),
            _ => self.head(count, 0xde),
        }
        let walked = table.for_each(|key: Value, value: Value| {
            let put = self.value(&key, level + 1).and_then(|()| self.value(&value, level + 1));
            put.map_err(|complaint| {
                self.complaint = Some(complaint);
                ending()
            })
        });
        match self.complaint.take() {
            Some(complaint) => Err(complaint),
            None => Ok(walked?),
        }
    }
}

/// `limit` and `offset` both 0: everything. Else the first value is where to go on, or -1.
fn unpack(
    lua: &Lua,
    args: &MultiValue,
    function: &str,
    (limit, offset): (i64, i64),
    control: &Control,
) -> Result<(Table, usize), Complaint> {
    let text = host::text(lua, args, 0, function)?;
    let text = text.as_bytes();
    let len = text.len();
    if offset < 0 || limit < 0 {
        let why = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return Err(why.into());
    }
    if offset as usize > len {
        let why = format!("Start offset {offset} greater than input length {len}.");
        return Err(why.into());
    }
    control.spend_bytes((len - offset as usize) * 16);
    let all = limit == 0 && offset == 0;
    let limit = if all { i64::from(i32::MAX) } else { limit };
    let mut cursor = Cursor { lua, rest: &text[offset as usize..] };
    let values = lua.create_table()?;
    let mut count = 0;
    while !cursor.rest.is_empty() && (count as i64) < limit {
        count += 1;
        let value = cursor.value(0)?;
        values.raw_set(count + usize::from(!all), value)?;
    }
    if !all {
        let next = match cursor.rest.len() {
            0 => -1,
            left => (len - left) as i64,
        };
        values.raw_set(1, next)?;
        count += 1;
    }
    Ok((values, count))
}

struct Cursor<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Complaint> {
        match self.rest.split_at_checked(len) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err("Missing bytes in input.".into()),
        }
    }

    fn unsigned(&mut self, width: usize) -> Result<u64, Complaint> {
        let bytes = self.take(width)?;
        Ok(bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    }

    fn signed(&mut self, width: usize) -> Result<i64, Complaint> {
        let shift = 64 - 8 * width;
        Ok((self.unsigned(width)? << shift) as i64 >> shift)
    }

    fn string(&mut self, len: usize) -> Result<Value, Complaint> {
        let bytes = self.take(len)?;
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    fn value(&mut self, depth: usize) -> Result<Value, Complaint> {
        if depth > UNPACK_DEPTH_MAX {
            return Err(bad_argument(0, "unpack", "too many nested tables"));
        }
        let code = self.take(1)?[0];
        Ok(match code {
            0x00..=0x7f => Value::Integer(i64::from(code)),
            0x80..=0x8f => self.map(usize::from(code & 15), depth)?,
            0x90..=0x9f => self.array(usize::from(code & 15), depth)?,
            0xa0..=0xbf => self.string(usize::from(code & 31))?,
            0xc0 => Value::Nil,
            0xc2 => Value::Boolean(false),
            0xc3 => Value::Boolean(true),
            0xca => Value::Number(f64::from(f32::from_bits(self.unsigned(4)? as u32))),
            0xcb => Value::Number(f64::from_bits(self.unsigned(8)?)),
            0xcc..=0xcf => {
                let number = self.unsigned(1 << (code - 0xcc))?;
                i64::try_from(number).map_or(Value::Number(number as f64), Value::Integer)
            }
            0xd0..=0xd3 => Value::Integer(self.signed(1 << (code - 0xd0))?),
            0xd9..=0xdb => {
                let len = self.unsigned(1 << (code - 0xd9))? as usize;
                self.string(len)?
            }
            0xdc | 0xdd => {
                let len = self.unsigned(2 << (code - 0xdc))? as usize;
                self.array(len, depth)?
            }
            0xde | 0xdf => {
                let len = self.unsigned(2 << (code - 0xde))? as usize;
                self.map(len, depth)?
            }
            0xe0..=0xff => Value::Integer(i64::from(code as i8)),
            _ => return Err("Bad data format in input.".into()),
        })
    }

    fn array(&mut self, len: usize, depth: usize) -> Result<Value, Complaint> {
        let table = self.lua.create_table()?;
        for at in 1..=len {
            let value = self.value(depth + 1)?;
            table.raw_set(at, value)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, len: usize, depth: usize) -> Result<Value, Complaint> {
        let table = self.lua.create_table()?;
        for _ in 0..len {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            match key {
                Value::Nil => return Err("table index is nil".into()),
                Value::Number(number) if number.is_nan() => {
                    return Err("table index is NaN".into());
                }
                key => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }
}
