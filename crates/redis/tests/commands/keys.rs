//! Commands of keys.

use crate::rig::Rig;

/// Commands and replies, as a redis-server 7.0 gives them.
const TABLE: &str = r#"
MSET a 1 b 2 c 3 => OK
DEL a b nokey => 2
UNLINK c nokey c => 1
TYPE a => none
SET ap v => OK
TYPE ap => string
TOUCH ap nokey ap => 2
EXISTS ap nokey ap => 2
TTL nokey => -2
PTTL nokey => -2
EXPIRETIME nokey => -2
PEXPIRETIME ap => -1
EXPIRE ap 100 => 1
TTL ap => 100
EXPIRE ap 100 NX => 0
EXPIRE ap 200 XX => 1
EXPIRE ap 100 GT => 0
EXPIRE ap 300 GT => 1
EXPIRE ap 400 LT => 0
EXPIRE ap 50 LT => 1
TTL ap => 50
EXPIRE ap 50 NX XX => !ERR NX and XX, GT or LT options at the same time are not compatible
EXPIRE ap 50 NX GT => !ERR NX and XX, GT or LT options at the same time are not compatible
EXPIRE ap 50 GT LT => !ERR GT and LT options at the same time are not compatible
EXPIRE ap 50 FOO => !ERR Unsupported option FOO
EXPIRE ap x => !ERR value is not an integer or out of range
EXPIRE ap 9223372036854775807 => !ERR invalid expire time in 'expire' command
EXPIRE ap -9223372036854775808 => !ERR invalid expire time in 'expire' command
PEXPIRE ap 9223372036854775807 => !ERR invalid expire time in 'pexpire' command
PEXPIRE nokey 100 => 0
PERSIST ap => 1
PERSIST ap => 0
PERSIST nokey => 0
EXPIRE ap 100 GT => 0
EXPIRE ap 100 XX => 0
EXPIRE ap 100 LT => 1
PEXPIREAT ap 99999999999999 => 1
PEXPIRETIME ap => 99999999999999
EXPIREAT ap 99999999999 => 1
EXPIRETIME ap => 99999999999
EXPIRE ap -1 => 1
EXISTS ap => 0
SET ap v => OK
PEXPIREAT ap 0 => 1
EXISTS ap => 0
SET x1 one => OK
SET x2 two => OK
SET r1 v1 EX 100 => OK
RENAME r1 r2 => OK
TTL r2 => 100
GET r1 => (nil)
RENAME r1 r3 => !ERR no such key
RENAME r2 r2 => OK
RENAMENX r2 r2 => 0
RENAMENX r2 x1 => 0
RENAMENX r2 r9 => 1
RENAMENX nokey r9 => !ERR no such key
COPY r9 r10 => 1
GET r10 => "v1"
TTL r10 => 100
COPY r9 r10 => 0
COPY r9 x1 REPLACE => 1
GET x1 => "v1"
COPY r9 r9 => !ERR source and destination objects are the same
COPY r9 r9 DB 0 => !ERR source and destination objects are the same
COPY r9 r9 DB 1 => 1
COPY r9 r9 DB 1 => 0
COPY r9 r9 DB 1 REPLACE => 1
COPY r9 z DB 16 => !ERR DB index is out of range
COPY r9 z DB -1 => !ERR DB index is out of range
COPY r9 z DB x => !ERR value is not an integer or out of range
COPY r9 z DB 99999999999 => !ERR value is out of range, value must between -2147483648 and 2147483647
COPY r9 z foo => !ERR syntax error
COPY r9 z DB => !ERR syntax error
COPY nokey z => 0
SELECT 1 => OK
GET r9 => "v1"
TTL r9 => 100
SELECT 0 => OK
MOVE r9 1 => 0
GET r9 => "v1"
MOVE x1 0 => !ERR source and destination objects are the same
MOVE x1 1 => 1
MOVE x1 16 => !ERR DB index is out of range
MOVE x1 x => !ERR value is not an integer or out of range
EXISTS x1 => 0
MOVE nokey 1 => 0
SELECT 1 => OK
GET x1 => "v1"
SELECT 0 => OK
SWAPDB 0 x => !ERR invalid second DB index
SWAPDB x 0 => !ERR invalid first DB index
SWAPDB 0 16 => !ERR DB index is out of range
SWAPDB 0 0 => OK
SCAN x => !ERR invalid cursor
SCAN 0 COUNT 0 => !ERR syntax error
SCAN 0 COUNT x => !ERR value is not an integer or out of range
SCAN 0 MATCH => !ERR syntax error
SCAN 0 foo bar => !ERR syntax error
SCAN 0 TYPE foo COUNT 1000 => ["0" []]
SCAN 0 TYPE list COUNT 1000 => ["0" []]
SCAN " 1" => !ERR invalid cursor
KEYS nothing* => []
KEYS x2 => ["x2"]
KEYS [x]2 => ["x2"]
FLUSHDB foo => !ERR syntax error
FLUSHALL a b => !ERR syntax error
RESTORE k -1 x => !ERR Invalid TTL value, must be >= 0
RESTORE k 0 x => !ERR DUMP payload version or checksum are wrong
RESTORE k 0 "" => !ERR DUMP payload version or checksum are wrong
RESTORE x2 0 x => !BUSYKEY Target key name already exists.
RESTORE k x x => !ERR value is not an integer or out of range
RESTORE k 0 x IDLETIME -1 => !ERR Invalid IDLETIME value, must be >= 0
RESTORE k 0 x FREQ 256 => !ERR Invalid FREQ value, must be >= 0 and <= 255
RESTORE k 0 x FREQ 1 IDLETIME 1 => !ERR syntax error
RESTORE k 0 x IDLETIME => !ERR syntax error
RESTORE k 0 x foo => !ERR syntax error
SET e 12345 => OK
OBJECT ENCODING e => "int"
OBJECT REFCOUNT e => 1
SET e 1234 => OK
OBJECT REFCOUNT e => 2147483647
SET e abc => OK
OBJECT ENCODING e => "embstr"
OBJECT REFCOUNT e => 1
SET e aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa => OK
OBJECT ENCODING e => "embstr"
SET e aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa => OK
OBJECT ENCODING e => "raw"
OBJECT ENCODING nokey => (nil)
OBJECT FREQ e => !ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
OBJECT FREQ nokey => (nil)
OBJECT IDLETIME e => 0
OBJECT IDLETIME nokey => (nil)
OBJECT foo e => !ERR unknown subcommand 'foo'. Try OBJECT HELP.
OBJECT ENCODING => !ERR wrong number of arguments for 'object|encoding' command
OBJECT ENCODING a b => !ERR wrong number of arguments for 'object|encoding' command
OBJECT HELP a => !ERR wrong number of arguments for 'object|help' command
OBJECT => !ERR wrong number of arguments for 'object' command
FLUSHDB ASYNC => OK
DBSIZE => 0
RANDOMKEY => (nil)
KEYS * => []
SCAN 0 => ["0" []]
SELECT 1 => OK
DBSIZE => 2
FLUSHALL SYNC => OK
DBSIZE => 0
"#;

#[test]
fn commands_of_keys_reply_as_redis_does() {
    Rig::new().table(TABLE);
}

#[test]
fn a_key_may_expire_after_the_last_moment_of_the_tables() {
    let mut rig = Rig::new();
    rig.table(
        r#"
SET k v PXAT 9223372036854770000 => OK
PEXPIRETIME k => 9223372036854770000
SET l v => OK
PEXPIREAT l 9223372036854775806 => 1
PEXPIREAT l 9223372036854775807 => 1
PEXPIREAT none 9223372036854775807 => 0
"#,
    );
    let last = redis::keyspace::LAST_MOMENT;
    assert!(rig.tables.lock().tables.kv.values().all(|row| row.expires == last));
    rig.forget();
    rig.check("PEXPIRETIME k", &last.to_string());
    rig.check("PERSIST k", "1");
    rig.reads("TTL k", "-1");
}

#[test]
fn what_has_expired_is_not_there() {
    let mut rig = Rig::new();
    rig.table(
        r#"
SET a 1 PX 100 => OK
SET b 1 PX 100 => OK
SET c 1 => OK
"#,
    );
    rig.pass(100);
    rig.reads("MGET a b c", "[(nil) (nil) \"1\"]");
    rig.table(
        r#"
TYPE a => none
DBSIZE => 1
KEYS * => ["c"]
RENAME a z => !ERR no such key
COPY a z => 0
MOVE a 1 => 0
EXPIRE a 10 => 0
GETDEL a => (nil)
INCR a => 1
TTL a => -1
APPEND b x => 1
TTL b => -1
DEL a b => 2
"#,
    );
}

#[test]
fn a_client_that_touches_nothing_leaves_the_time_of_use() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.check("CLIENT NO-TOUCH on", "OK");
    rig.pass(5000);
    rig.check("GET a", "\"1\"");
    rig.check("OBJECT IDLETIME a", "5");
    let about = rig.run("DEBUG OBJECT a");
    assert!(about.contains(" encoding:int ") && about.ends_with(" lru_seconds_idle:5"), "{about}");
    rig.check("TOUCH a", "1");
    rig.check("OBJECT IDLETIME a", "0");
    rig.check("CLIENT NO-TOUCH off", "OK");
    rig.pass(5000);
    rig.check("GET a", "\"1\"");
    rig.check("OBJECT IDLETIME a", "0");
    rig.check("DEBUG OBJECT none", "!ERR no such key");
}
