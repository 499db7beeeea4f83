//! Commands of bitmaps.

use crate::rig::Rig;

/// Commands and replies, as a redis-server 7.0 gives them.
const TABLE: &str = r#"
SETBIT bm 7 1 => 0
SETBIT bm 7 0 => 1
SETBIT bm 100 1 => 0
STRLEN bm => 13
SETBIT bm 4294967296 1 => !ERR bit offset is not an integer or out of range
SETBIT bm 4294967295 2 => !ERR bit is not an integer or out of range
SETBIT bm -1 1 => !ERR bit offset is not an integer or out of range
SETBIT bm x 1 => !ERR bit offset is not an integer or out of range
SETBIT bm 1 x => !ERR bit is not an integer or out of range
GETBIT bm 100 => 1
GETBIT bm 99 => 0
GETBIT bm 10000 => 0
GETBIT nokey 1 => 0
GETBIT bm 4294967296 => !ERR bit offset is not an integer or out of range
SET empty "" => OK
SET bc foobar => OK
BITCOUNT bc => 26
BITCOUNT bc 0 0 => 4
BITCOUNT bc 1 1 BYTE => 6
BITCOUNT bc 5 30 BIT => 17
BITCOUNT bc 5 30 foo => !ERR syntax error
BITCOUNT bc 0 => !ERR syntax error
BITCOUNT bc -1 -2 => 0
BITCOUNT bc -1 -2 foo => 0
BITCOUNT bc 0 -5 => 10
BITCOUNT bc 0 100 BIT => 26
BITCOUNT bc -2 -1 => 7
BITCOUNT nokey 0 => 0
BITCOUNT nokey => 0
BITCOUNT empty 0 -1 => 0
BITCOUNT bc a b => !ERR value is not an integer or out of range
BITCOUNT bc 0 1 BIT x => !ERR syntax error
SET bp "\xff\xf0\x00" => OK
BITPOS bp 0 => 12
BITPOS bp 1 => 0
BITPOS bp 1 2 => -1
BITPOS bp 0 0 0 => -1
BITPOS bp 1 2 -1 BYTE => -1
BITPOS bp 1 7 15 BIT => 7
BITPOS bp 0 7 -3 BIT => 12
BITPOS bp 2 => !ERR The bit argument must be 1 or 0.
BITPOS bp x => !ERR value is not an integer or out of range
BITPOS bp 1 0 1 2 3 => !ERR syntax error
BITPOS bp 1 0 1 foo => !ERR syntax error
BITPOS nokey 0 => 0
BITPOS nokey 1 x => -1
BITPOS empty 0 => -1
SET bp "\xff\xff\xff" => OK
BITPOS bp 0 => 24
BITPOS bp 0 0 -1 => -1
BITPOS bp 0 2 => 24
BITPOS bp 0 5 => -1
BITPOS bp 0 -1 -2 => -1
SET x1 foobar => OK
SET x2 abcdef12 => OK
BITOP AND dest x1 x2 => 8
GET dest => "`bc`ab\x00\x00"
BITOP OR dest x1 x2 nokey => 8
GET dest => "goofev12"
BITOP XOR dest x1 x2 => 8
GET dest => "\x07\r\x0c\x06\x04\x1412"
BITOP NOT dest x1 => 6
GET dest => "\x99\x90\x90\x9d\x9e\x8d"
BITOP NOT dest x1 x2 => !ERR BITOP NOT must be called with a single source key.
BITOP FOO dest x1 => !ERR syntax error
BITOP AND dest nokey x1 => 6
GET dest => "\x00\x00\x00\x00\x00\x00"
BITOP AND dest nokey => 0
EXISTS dest => 0
BITFIELD bf INCRBY i5 100 1 GET u4 0 => [1 0]
BITFIELD bf SET u8 0 255 GET u8 0 GET i8 0 => [0 255 -1]
BITFIELD bf INCRBY u8 0 10 OVERFLOW SAT INCRBY u8 0 250 OVERFLOW FAIL INCRBY u8 0 250 => [9 255 (nil)]
BITFIELD bf OVERFLOW FOO => !ERR Invalid OVERFLOW type specified
BITFIELD bf GET u64 0 => !ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
BITFIELD bf GET i64 0 => [-72057594037927936]
BITFIELD bf GET i0 0 => !ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
BITFIELD bf GET x8 0 => !ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
BITFIELD bf GET u8 => !ERR syntax error
BITFIELD bf SET u8 0 => !ERR syntax error
BITFIELD bf SET u8 #-1 5 => !ERR bit offset is not an integer or out of range
BITFIELD bf SET u8 4294967296 5 => !ERR bit offset is not an integer or out of range
BITFIELD bf SET u8 0 x => !ERR value is not an integer or out of range
BITFIELD bf SET u8 0 -1 GET u8 0 => [255 255]
BITFIELD bf OVERFLOW SAT SET u8 0 -1 GET u8 0 => [255 255]
BITFIELD bf OVERFLOW SAT SET i8 0 -1000 GET i8 0 => [-1 -128]
BITFIELD bf OVERFLOW SAT SET i8 0 -9223372036854775808 GET i8 0 => [-128 127]
BITFIELD bf OVERFLOW FAIL SET i8 0 1000 GET i8 0 => [(nil) 127]
BITFIELD bf SET i64 0 -9223372036854775808 INCRBY i64 0 -1 GET i64 0 => [9151314442816847872 9223372036854775807 9223372036854775807]
BITFIELD bf OVERFLOW SAT INCRBY i64 0 9223372036854775807 INCRBY i64 0 9223372036854775807 => [9223372036854775807 9223372036854775807]
BITFIELD bf => []
BITFIELD nokey GET u8 0 => [0]
EXISTS nokey => 0
BITFIELD_RO bf GET u8 3 GET i12 #2 => [255 -1]
BITFIELD_RO bf SET u8 0 1 => !ERR BITFIELD_RO only supports the GET subcommand
BITFIELD bf INCRBY i13 2345 -7 INCRBY i13 2345 -7 => [-7 -14]
STRLEN bf => 295
"#;

#[test]
fn commands_of_bitmaps_reply_as_redis_does() {
    Rig::new().table(TABLE);
}
