//! The library `struct`: values in the shapes of C.
//!
//! Source: `deps/lua/src/lua_struct.c` of Redis 7.2; <http://www.inf.puc-rio.br/~roberto/struct/>

use mlua::{Lua, MultiValue, Table, Value};

use super::host::{self, bad_argument, give, give_table, integer_or, Complaint, TEXT_BYTES_MAX};

/// Bytes of an integer, at most.
const INTEGER_BYTES_MAX: usize = 32;

/// What `!` alone aligns to.
const ALIGNMENT: usize = 8;

pub fn install(lua: &Lua, host: &Table) -> mlua::Result<()> {
    let run = |lua: &Lua, args: MultiValue| give(lua, pack(lua, &args));
    host.raw_set("structpack", lua.create_function(run)?)?;
    let run = |lua: &Lua, args: MultiValue| give_table(lua, unpack(lua, &args));
    host.raw_set("structunpack", lua.create_function(run)?)?;
    let run = |lua: &Lua, args: MultiValue| give(lua, size(lua, &args));
    host.raw_set("structsize", lua.create_function(run)?)
}

/// Walks through a format.
struct Format<'a> {
    rest: &'a [u8],
    function: &'static str,
    big: bool,
    align: usize,
}

impl<'a> Format<'a> {
    fn new(text: &'a [u8], function: &'static str) -> Format<'a> {
        // It is a string of C.
        let end = memchr::memchr(0, text).unwrap_or(text.len());
        Format { rest: &text[..end], function, big: false, align: 1 }
    }

    /// The next option, its size, and the filling before it at this place.
    fn next(&mut self, at: usize) -> Result<Option<(u8, usize, usize)>, Complaint> {
        let Some((option, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let size = match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_BYTES_MAX {
                    let why =
                        format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                    return Err(why.into());
                }
                size
            }
            _ => 0,
        };
        let filling = if size == 0 || *option == b'c' {
            0
        } else {
            let size = size.min(self.align);
            (size.wrapping_sub(at & size.wrapping_sub(1))) & size.wrapping_sub(1)
        };
        Ok(Some((*option, size, filling)))
    }

    fn number(&mut self, otherwise: usize) -> Result<usize, Complaint> {
        if !self.rest.first().is_some_and(u8::is_ascii_digit) {
            return Ok(otherwise);
        }
        let mut number = 0usize;
        while let Some((digit @ b'0'..=b'9', rest)) = self.rest.split_first() {
            number = number * 10 + usize::from(digit - b'0');
            if number > i32::MAX as usize {
                return Err("integral size overflow".into());
            }
            self.rest = rest;
        }
        Ok(number)
    }

    /// What is not a value: byte order and alignment.
    fn control(&mut self, option: u8) -> Result<(), Complaint> {
        match option {
            b' ' => {}
            b'>' => self.big = true,
            b'<' => self.big = false,
            b'!' => {
                let align = self.number(ALIGNMENT)?;
                if !align.is_power_of_two() {
                    return Err(format!("alignment {align} is not a power of 2").into());
                }
                self.align = align;
            }
            other => {
                let why = format!("invalid format option '{}'", char::from(other));
                return Err(bad_argument(0, self.function, &why));
            }
        }
        Ok(())
    }
}

fn is_integer(option: u8) -> bool {
    matches!(option, b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I')
}

fn pack(lua: &Lua, args: &MultiValue) -> Result<Value, Complaint> {
    let format = host::text(lua, args, 0, "pack")?;
    let format = format.as_bytes();
    let mut format = Format::new(&format, "pack");
    let (mut out, mut arg) = (Vec::new(), 1);
    while let Some((option, size, filling)) = format.next(out.len())? {
        if out.len() + size > TEXT_BYTES_MAX {
            return Err("resulting string too large".into());
        }
        out.resize(out.len() + filling, 0);
        match option {
            option if is_integer(option) => {
                let number = host::number(lua, args, arg, "pack")?;
                put_integer(&mut out, number, size, format.big);
                arg += 1;
            }
            b'x' => out.push(0),
            b'f' => {
                let number = host::number(lua, args, arg, "pack")? as f32;
                let bytes = if format.big { number.to_be_bytes() } else { number.to_le_bytes() };
                out.extend_from_slice(&bytes);
                arg += 1;
            }
            b'd' => {
                let number = host::number(lua, args, arg, "pack")?;
                let bytes = if format.big { number.to_be_bytes() } else { number.to_le_bytes() };
                out.extend_from_slice(&bytes);
                arg += 1;
            }
            b'c' | b's' => {
                let text = host::text(lua, args, arg, "pack")?;
                let text = text.as_bytes();
                arg += 1;
                let size = if size == 0 { text.len() } else { size };
                if text.len() < size {
                    return Err(bad_argument(arg - 1 + 1, "pack", "string too short"));
                }
                out.extend_from_slice(&text[..size]);
                if option == b's' {
                    out.push(0);
                }
            }
            other => format.control(other)?,
        }
    }
    Ok(Value::String(lua.create_string(out)?))
}

fn put_integer(out: &mut Vec<u8>, number: f64, size: usize, big: bool) {
    let value = if number < 0.0 { number as i64 as u64 } else { number as u64 };
    let begin = out.len();
    // Beyond eight bytes there is nothing more of it.
    out.extend((0..size).map(|at| if at < 8 { (value >> (8 * at)) as u8 } else { 0 }));
    if big {
        out[begin..].reverse();
    }
}

fn unpack(lua: &Lua, args: &MultiValue) -> Result<(Table, usize), Complaint> {
    const SHORT: &str = "data string too short";
    let format = host::text(lua, args, 0, "unpack")?;
    let format = format.as_bytes();
    let data = host::text(lua, args, 1, "unpack")?;
    let data = data.as_bytes();
    let from = integer_or(lua, args, 2, "unpack", 1)?;
    let Some(mut at) = usize::try_from(from).ok().and_then(|from| from.checked_sub(1)) else {
        return Err(bad_argument(2, "unpack", "offset must be 1 or greater"));
    };
    let mut format = Format::new(&format, "unpack");
    let values = lua.create_table()?;
    let (mut count, mut last) = (0, None);
    while let Some((option, mut size, filling)) = format.next(at)? {
        at = at.saturating_add(filling);
        let there = |size: usize| at.checked_add(size).and_then(|end| data.get(at..end));
        let bytes = there(size).ok_or_else(|| bad_argument(1, "unpack", SHORT))?;
        let value = match option {
            option if is_integer(option) => {
                Value::Number(read_integer(bytes, format.big, option.is_ascii_lowercase()))
            }
            b'f' => {
                let bits = read(bytes, format.big) as u32;
                Value::Number(f64::from(f32::from_bits(bits)))
            }
            b'd' => Value::Number(f64::from_bits(read(bytes, format.big))),
            b'c' if size == 0 => {
                let Some(len) = last.take() else {
                    return Err("format 'c0' needs a previous size".into());
                };
                size = len as usize;
                count -= 1;
                let text = there(size).ok_or_else(|| bad_argument(1, "unpack", SHORT))?;
                Value::String(lua.create_string(text)?)
            }
            b'c' => Value::String(lua.create_string(bytes)?),
            b's' => {
                let rest = data.get(at..).unwrap_or_default();
                let Some(len) = memchr::memchr(0, rest) else {
                    return Err("unfinished string in data".into());
                };
                size = len + 1;
                Value::String(lua.create_string(&rest[..len])?)
            }
            b'x' => Value::Nil,
            other => {
                format.control(other)?;
                Value::Nil
            }
        };
        at += size;
        if !value.is_nil() {
            count += 1;
            last = value.as_f64().filter(|_| value.is_number());
            values.raw_set(count, value)?;
        }
    }
    values.raw_set(count + 1, at as i64 + 1)?;
    Ok((values, count + 1))
}

fn read(bytes: &[u8], big: bool) -> u64 {
    let add = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
    if big {
        bytes.iter().fold(0, add)
    } else {
        bytes.iter().rev().fold(0, add)
    }
}

fn read_integer(bytes: &[u8], big: bool, signed: bool) -> f64 {
    let value = read(bytes, big);
    if !signed {
        return value as f64;
    }
    let unused = 64usize.saturating_sub(8 * bytes.len()).min(63) as u32;
    ((value << unused) as i64 >> unused) as f64
}

fn size(lua: &Lua, args: &MultiValue) -> Result<Value, Complaint> {
    let format = host::text(lua, args, 0, "size")?;
    let format = format.as_bytes();
    let mut format = Format::new(&format, "size");
    let mut at = 0;
    while let Some((option, size, filling)) = format.next(at)? {
        match (option, size) {
            (b's', _) => return Err(bad_argument(0, "size", "option 's' has no fixed size")),
            (b'c', 0) => return Err(bad_argument(0, "size", "option 'c0' has no fixed size")),
            (option, _) if !option.is_ascii_alphanumeric() => format.control(option)?,
            _ => {}
        }
        at += filling + size;
    }
    Ok(Value::Integer(at as i64))
}
