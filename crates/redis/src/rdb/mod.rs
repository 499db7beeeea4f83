//! Values in Redis's RDB format, as DUMP gives and RESTORE takes them.
//!
//! ```text
//! +------+----------------------+---------+----------------------+
//! | type | value                | version | CRC64 of all before  |
//! | 1    |                      | 2, LE   | 8, LE                |
//! +------+----------------------+---------+----------------------+
//! ```
//!
//! Written are the plain types, which every Redis reads and keeps compact by its own settings;
//! streams as Redis 7.2 has them. Read is whatever a Redis up to 7.4 writes, but for modules and
//! hashes whose fields expire.
//! A payload comes from a client: nothing in it is believed, and what it may unfold to is bounded.
//!
//! Source: Redis 7.2, `rdb.h`, `rdb.c`, `cluster.c` (`createDumpPayload`, `verifyDumpPayload`).

mod lzf;
mod packs;
mod read;
mod streams;

use crate::value::{parse_integer, Kind, Str, Value};

/// The version written: every Redis 7 reads it.
const VERSION: u16 = 10;

/// The version that knows how streams are written here: Redis 7.2's.
const VERSION_OF_STREAMS: u16 = 11;

/// `RDB_OPCODE_FUNCTION2`.
const LIBRARY: u8 = 245;

/// The latest version read.
const VERSION_MAX: u16 = 12;

/// Version and checksum, in bytes.
const FOOTER: usize = 10;

// Types of values, as `rdb.h` numbers them.
const STRING: u8 = 0;
const LIST: u8 = 1;
const SET: u8 = 2;
const ZSET: u8 = 3;
const HASH: u8 = 4;
const ZSET_2: u8 = 5;
const HASH_ZIPMAP: u8 = 9;
const LIST_ZIPLIST: u8 = 10;
const SET_INTSET: u8 = 11;
const ZSET_ZIPLIST: u8 = 12;
const HASH_ZIPLIST: u8 = 13;
const LIST_QUICKLIST: u8 = 14;
const STREAM: u8 = 15;
const HASH_LISTPACK: u8 = 16;
const ZSET_LISTPACK: u8 = 17;
const LIST_QUICKLIST_2: u8 = 18;
const STREAM_2: u8 = 19;
const SET_LISTPACK: u8 = 20;
const STREAM_3: u8 = 21;

// How a string is encoded, when its length's highest bits say that it is.
const INT8: u8 = 0;
const INT16: u8 = 1;
const INT32: u8 = 2;
const LZF: u8 = 3;

/// Why a payload is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Too short, of a later version, or its checksum is another.
    Footer,
    /// It is not a value.
    Format,
}

/// The payload.
pub fn dump(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let kind = match value.kind() {
        Kind::Str => STRING,
        Kind::List => LIST,
        Kind::Set => SET,
        Kind::Zset => ZSET_2,
        Kind::Hash => HASH,
        Kind::Stream => STREAM_3,
    };
    out.push(kind);
    if let Some(collection) = value.collection().filter(|_| kind != STREAM_3) {
        put_len(&mut out, collection.len());
    }
    match value {
        Value::Str(Str::Int(number)) => {
            put_string(&mut out, itoa::Buffer::new().format(*number).as_bytes());
        }
        Value::Str(Str::Bytes(bytes)) => put_string(&mut out, bytes),
        Value::List(list) => list.iter().for_each(|element| put_string(&mut out, element)),
        Value::Set(set) => set.iter().for_each(|member| put_string(&mut out, &member)),
        Value::Zset(zset) => zset.iter().for_each(|(member, score)| {
            put_string(&mut out, member);
            out.extend_from_slice(&score.to_le_bytes());
        }),
        Value::Hash(hash) => hash.iter().for_each(|(field, value)| {
            put_string(&mut out, field);
            put_string(&mut out, value);
        }),
        Value::Stream(stream) => streams::put(&mut out, stream),
    }
    seal(&mut out, if kind == STREAM_3 { VERSION_OF_STREAMS } else { VERSION });
    out
}

/// What FUNCTION DUMP gives: the code of each library.
pub fn dump_libraries<'a>(codes: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for code in codes {
        out.push(LIBRARY);
        put_string(&mut out, code);
    }
    seal(&mut out, VERSION);
    out
}

/// The libraries of such a payload; none for one that has something else in it.
pub fn libraries(payload: &[u8]) -> Result<Option<Vec<Vec<u8>>>, Refused> {
    check(payload)?;
    Ok(read::libraries(&payload[..payload.len() - FOOTER]))
}

fn seal(out: &mut Vec<u8>, version: u16) {
    out.extend_from_slice(&version.to_le_bytes());
    let sum = crc64(out);
    out.extend_from_slice(&sum.to_le_bytes());
}

/// The value of a payload.
pub fn restore(payload: &[u8]) -> Result<Value, Refused> {
    check(payload)?;
    read::value(&payload[..payload.len() - FOOTER])
}

/// Looks at a payload's footer.
pub fn check(payload: &[u8]) -> Result<(), Refused> {
    let (rest, sum) = payload.split_last_chunk::<8>().ok_or(Refused::Footer)?;
    let (_, version) = rest.split_last_chunk::<2>().ok_or(Refused::Footer)?;
    let known = u16::from_le_bytes(*version) <= VERSION_MAX;
    if known && crc64(rest) == u64::from_le_bytes(*sum) {
        Ok(())
    } else {
        Err(Refused::Footer)
    }
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    put_number(out, len as u64);
}

/// A number as lengths are written.
fn put_number(out: &mut Vec<u8>, number: u64) {
    match number {
        0..64 => out.push(number as u8),
        64..16384 => out.extend_from_slice(&(number as u16 | 0x4000).to_be_bytes()),
        _ => match u32::try_from(number) {
            Ok(number) => {
                out.push(0x80);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Err(_) => {
                out.push(0x81);
                out.extend_from_slice(&number.to_be_bytes());
            }
        },
    }
}

/// Strings of at most so many bytes may be written as integers, and longer than this be compressed.
const INTEGER_MAX: usize = 11;
const COMPRESSED_MIN: usize = 20;

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let encoded = |encoding: u8| 0xc0 | encoding;
    if bytes.len() <= INTEGER_MAX {
        if let Some(number) = parse_integer(bytes) {
            if let Ok(number) = i8::try_from(number) {
                return out.extend_from_slice(&[encoded(INT8), number as u8]);
            } else if let Ok(number) = i16::try_from(number) {
                out.push(encoded(INT16));
                return out.extend_from_slice(&number.to_le_bytes());
            } else if let Ok(number) = i32::try_from(number) {
                out.push(encoded(INT32));
                return out.extend_from_slice(&number.to_le_bytes());
            }
        }
    }
    if bytes.len() > COMPRESSED_MIN {
        if let Some(small) = lzf::compress(bytes) {
            out.push(encoded(LZF));
            put_len(out, small.len());
            put_len(out, bytes.len());
            return out.extend_from_slice(&small);
        }
    }
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// CRC-64 of Jones: <http://www0.cs.ucl.ac.uk/staff/d.jones/crcnote.pdf>, as `crc64.c` has it.
fn crc64(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    const TABLE: [u64; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            let (mut value, mut bit) = (at as u64, 0);
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
                bit += 1;
            }
            table[at] = value;
            at += 1;
        }
        table
    };
    bytes.iter().fold(0, |sum, byte| TABLE[usize::from(sum as u8 ^ byte)] ^ sum >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_redis_own() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
