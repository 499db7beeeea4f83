//! The commands, one line each, by family. See [`Template`](crate::template::Template).
//!
//! Marked `!`, so that no mistake is put in: commands with a time, because a random number would
//! make a key expire within the round; those that block; those that draw as many random members
//! as they are told; those that got options with Redis 7.2.

pub type Family = (&'static str, &'static [&'static str]);

/// All families; a scenario mixes those that it is told to.
pub const FAMILIES: &[Family] = &[
    ("connection", CONNECTION),
    ("string", STRINGS),
    ("bitmap", BITMAPS),
    ("key", KEYS),
    ("hash", HASHES),
    ("list", LISTS),
    ("set", SETS),
    ("zset", SORTED_SETS),
    ("multi", TRANSACTIONS),
    ("pubsub", PUBLISH),
    ("script", SCRIPTS),
    ("stream", STREAMS),
    ("hyperloglog", HYPERLOGLOGS),
    ("geo", GEO),
];

const CONNECTION: &[&str] = &[
    "PING [<v>]",
    "ECHO <v>",
    "!SELECT <db>",
    "!SELECT 0",
    "!HELLO [(2|3|1|4|x)]",
    "!HELLO 3 SETNAME (a-name|<m>)",
    "CLIENT (GETNAME|ID|SETNAME a-name|SETNAME (<m>|<f>)|NO-EVICT on|NOTHING)",
    "DBSIZE",
    "!TIME",
    "COMMAND COUNT",
    "!COMMAND (GETKEYS|GETKEYSANDFLAGS) (MSET a 1 b 2|GET k|EVAL x 1 k|ZUNIONSTORE d 2 a b)",
    "COMMAND INFO (get|SET|nothing)",
    "!WAIT 0 0",
    "MEMORY USAGE <any>",
    "OBJECT (ENCODING|REFCOUNT|FREQ|NOTHING) <any>",
    "!NOTHING [<v>] [<v>]",
    "!GET\r\nx <v>",
];

const STRINGS: &[&str] = &[
    "GET <s>",
    "GET <any>",
    "SET <s> <v>",
    "SET <s> <v> {(NX|XX|GET|KEEPTTL)}",
    "!SET <s> <v> {(NX|XX|GET|KEEPTTL|EX <ttl>|PX <pttl>|EXAT <at>|PXAT <pat>)}",
    "!SET <any> <v> [(NX|XX)] [GET] [(EX <ttl>|PX <pttl>|EXAT <at>|PXAT <pat>|KEEPTTL)]",
    "SETNX <s> <v>",
    "!SETEX <s> <ttl> <v>",
    "!PSETEX <s> <pttl> <v>",
    "GETSET <s> <v>",
    "GETDEL <s>",
    "!GETEX <s> [(EX <ttl>|PX <pttl>|EXAT <at>|PXAT <pat>|PERSIST)]",
    "!GETEX <s> {(EX <ttl>|PERSIST)}",
    "MGET {<any>}",
    "MSET {<s> <v>}",
    "MSETNX {<s> <v>}",
    "INCR <s>",
    "DECR <s>",
    "INCRBY <s> <n>",
    "DECRBY <s> <n>",
    "INCRBYFLOAT <s> <fl>",
    "APPEND <s> <v>",
    "STRLEN <s>",
    "GETRANGE <s> <i> <i>",
    "GETRANGE <s> <n> <n>",
    "SUBSTR <s> <i> <i>",
    "SETRANGE <s> <off> <v>",
    "LCS <s> <s> [(LEN|IDX)] [MINMATCHLEN <c>] [WITHMATCHLEN]",
];

const BITMAPS: &[&str] = &[
    "SETBIT <s> <off> <b>",
    "GETBIT <s> <off>",
    "BITCOUNT <s> [<i> <i> [(BIT|BYTE|x)]]",
    "BITPOS <s> <b> [<i> [<i> [(BIT|BYTE)]]]",
    "BITOP (AND|OR|XOR|NOT|x) <s> {<s>}",
    "BITOP NOT <s> <s>",
    "BITFIELD <s> {(GET <bt> <bo>|SET <bt> <bo> <n>|INCRBY <bt> <bo> <n>|OVERFLOW (WRAP|SAT|FAIL|x))}",
    "BITFIELD <s>",
    "BITFIELD_RO <s> {(GET <bt> <bo>|GET <bt> <bo>|SET u8 0 1)}",
];

/// Without SWAPDB, which the door refuses: it would write every row of two databases.
const KEYS: &[&str] = &[
    "(DEL|UNLINK|EXISTS|TOUCH) {<any>}",
    "TYPE <any>",
    "(TTL|PTTL|EXPIRETIME|PEXPIRETIME|PERSIST) <any>",
    "!EXPIRE <any> <ttl> [(NX|XX|GT|LT|x)] [(NX|XX|GT|LT)]",
    "!PEXPIRE <any> <pttl> [(NX|XX|GT|LT)]",
    "!EXPIREAT <any> <at> [(NX|XX|GT|LT)]",
    "!PEXPIREAT <any> <pat> [(NX|XX|GT|LT)]",
    "!EXPIRE <any>",
    "(RENAME|RENAMENX) <any> <any>",
    "COPY <any> <any> [DB <db>] [REPLACE]",
    "MOVE <any> <db>",
    "KEYS <p>",
    "!OBJECT IDLETIME <any>",
    "!DUMP <any>",
    "!RESTORE <any> 0 <v>",
    "SORT (<l>|<e>|<z>) [LIMIT <i> <c>] [(ASC|DESC)] [ALPHA]",
    "SORT (<l>|<e>|<z>) [BY s*] [{GET (s*|#|h*->f1)}] [(ASC|DESC)] [ALPHA]",
    "SORT (<l>|<z>) BY nosort [LIMIT <i> <c>] [{GET (s*|#)}] [DESC]",
    "SORT (<l>|<e>) [ALPHA] STORE <l>",
    "SORT_RO <l> [LIMIT <i> <c>] [ALPHA]",
    "!RANDOMKEY",
];

const HASHES: &[&str] = &[
    "HSET <h> {<f> <v>}",
    "HMSET <h> {<f> <v>}",
    "HSETNX <h> <f> <v>",
    "HGET <h> <f>",
    "HMGET <h> {<f>}",
    "HGETALL <h>",
    "HDEL <h> {<f>}",
    "HLEN <h>",
    "HEXISTS <h> <f>",
    "HSTRLEN <h> <f>",
    "(HKEYS|HVALS) <h>",
    "HINCRBY <h> <f> <n>",
    "HINCRBYFLOAT <h> <f> <fl>",
    "!HRANDFIELD <h> [<cnt> [WITHVALUES]]",
];

const LISTS: &[&str] = &[
    "(LPUSH|RPUSH) <l> {<v>}",
    "RPUSH <l> {<n>}",
    "(LPUSHX|RPUSHX) <l> {<v>}",
    "(LPOP|RPOP) <l> [<c>]",
    "(LPOP|RPOP) <l> <n>",
    "LLEN <l>",
    "LRANGE <l> <i> <i>",
    "LRANGE <l> 0 -1",
    "LINDEX <l> <i>",
    "LSET <l> <i> <v>",
    "LINSERT <l> (BEFORE|AFTER|x) <v> <v>",
    "LREM <l> <i> <v>",
    "LTRIM <l> <i> <i>",
    "LPOS <l> <v> [RANK <i>] [COUNT <c>] [MAXLEN <c>]",
    "RPOPLPUSH <l> <l>",
    "LMOVE <l> <l> (LEFT|RIGHT|x) (LEFT|RIGHT)",
    "LMPOP <c> {<l>} (LEFT|RIGHT) [COUNT <c>]",
    "LMPOP 2 <l> <l> (LEFT|RIGHT) [COUNT <c>]",
    "!(BLPOP|BRPOP) {<l>} 0.01",
    "!(BLPOP|BRPOP) <l> (x|-1|inf|1e400)",
    "!BRPOPLPUSH <l> <l> 0.01",
    "!BLMOVE <l> <l> (LEFT|RIGHT) (LEFT|RIGHT) 0.01",
    "!BLMPOP 0.01 1 <l> (LEFT|RIGHT) [COUNT <c>]",
];

const SETS: &[&str] = &[
    "SADD <e> {<m>}",
    "SADD <e> {<n>}",
    "SREM <e> {<m>}",
    "SMEMBERS <e>",
    "SISMEMBER <e> <m>",
    "SMISMEMBER <e> {<m>}",
    "SCARD <e>",
    "SMOVE <e> <e> <m>",
    "(SINTER|SUNION|SDIFF) {<e>}",
    "(SINTERSTORE|SUNIONSTORE|SDIFFSTORE) <e> {<e>}",
    "SINTERCARD 2 <e> <e> [LIMIT <c>]",
    "SINTERCARD <c> {<e>} [LIMIT <i>]",
    "!SRANDMEMBER <e> [<cnt>]",
];

const SORTED_SETS: &[&str] = &[
    "ZADD <z> {<sc> <m>}",
    "ZADD <z> {(NX|XX|GT|LT|CH|INCR)} <sc> <m>",
    "ZADD <z> [(NX|XX)] [(GT|LT)] [CH] {<sc> <m>}",
    "ZINCRBY <z> <sc> <m>",
    "ZREM <z> {<m>}",
    "ZCARD <z>",
    "ZCOUNT <z> <g> <g>",
    "ZLEXCOUNT <z> <lex> <lex>",
    "ZSCORE <z> <m>",
    "ZMSCORE <z> {<m>}",
    "!(ZRANK|ZREVRANK) <z> <m>",
    "ZRANGE <z> <i> <i> [REV] [WITHSCORES]",
    "ZRANGE <z> <g> <g> BYSCORE [REV] [LIMIT <i> <i>] [WITHSCORES]",
    "ZRANGE <z> <lex> <lex> BYLEX [REV] [LIMIT <i> <i>] [WITHSCORES]",
    "ZRANGE <z> <i> <i> [LIMIT <i> <i>]",
    "ZRANGESTORE <z> <z> (<i> <i>|<g> <g> BYSCORE|<lex> <lex> BYLEX) [REV] [LIMIT <i> <i>]",
    "ZREVRANGE <z> <i> <i> [WITHSCORES]",
    "(ZRANGEBYSCORE|ZREVRANGEBYSCORE) <z> <g> <g> [WITHSCORES] [LIMIT <i> <i>]",
    "(ZRANGEBYLEX|ZREVRANGEBYLEX) <z> <lex> <lex> [LIMIT <i> <i>]",
    "ZREMRANGEBYRANK <z> <i> <i>",
    "ZREMRANGEBYSCORE <z> <g> <g>",
    "ZREMRANGEBYLEX <z> <lex> <lex>",
    "(ZPOPMIN|ZPOPMAX) <z> [<c>]",
    "ZMPOP 2 <z> <z> (MIN|MAX|x) [COUNT <c>]",
    "(ZUNION|ZINTER) 2 <z> (<z>|<e>) [WEIGHTS <sc> <sc>] [AGGREGATE (SUM|MIN|MAX|x)] [WITHSCORES]",
    "ZDIFF 2 <z> <z> [WITHSCORES]",
    "(ZUNIONSTORE|ZINTERSTORE) <z> 2 <z> (<z>|<e>) [WEIGHTS <sc> <sc>] [AGGREGATE (SUM|MIN|MAX)]",
    "(ZUNIONSTORE|ZINTERSTORE|ZDIFFSTORE) <z> <c> {<z>}",
    "ZDIFFSTORE <z> 2 <z> <z>",
    "ZINTERCARD 2 <z> <z> [LIMIT <c>]",
    "!ZRANDMEMBER <z> [<cnt> [WITHSCORES]]",
    "!(BZPOPMIN|BZPOPMAX) {<z>} 0.01",
    "!BZMPOP 0.01 1 <z> (MIN|MAX) [COUNT <c>]",
];

const TRANSACTIONS: &[&str] =
    &["!MULTI", "!EXEC", "!EXEC", "!DISCARD", "!WATCH {<any>}", "!UNWATCH", "!MULTI x", "!EXEC x"];

const PUBLISH: &[&str] =
    &["PUBLISH nobody <v>", "PUBSUB (CHANNELS nobody*|NUMSUB nobody|NUMSUB|NUMPAT|NOTHING)"];

/// Beside these, each script of the catalogue is called.
const SCRIPTS: &[&str] = &[
    "!SCRIPT EXISTS 0000000000000000000000000000000000000000 x",
    "!SCRIPT (NOTHING|EXISTS|LOAD)",
    "!EVALSHA 0000000000000000000000000000000000000000 0",
    "!EVALSHA x 0",
    "!EVAL 1 (1|-1|x|2)",
    "!EVAL",
];

/// Trimming with `~` has bounds under which nothing may go: how much else goes depends on nodes.
const STREAMS: &[&str] = &[
    "XADD <x> <nid> {<f> <v>}",
    "XADD <x> <nid> {<f> <v>}",
    "XADD <x> <nid> {<f> <v>}",
    "XADD <x> <id> {<f> <v>}",
    "XADD <x> [NOMKSTREAM] [(MAXLEN [=] <c>|MINID [=] <id>|MAXLEN ~ 1000)] <nid> <f> <v>",
    "XLEN <x>",
    "XRANGE <x> (-|<id>|<xid>) (+|<id>|<xid>) [COUNT <c>]",
    "XREVRANGE <x> (+|<id>|<xid>) (-|<id>) [COUNT <c>]",
    "XDEL <x> {<id>}",
    "XTRIM <x> (MAXLEN [=] <c>|MINID [=] <id>|MAXLEN ~ 1000 LIMIT 5|MINID ~ 0-1)",
    "XGROUP CREATE x3 g1 0 MKSTREAM",
    // Only since 7.2 may it not go below what has been deleted.
    "!XSETID (x3 900-1|x3 901-1 ENTRIESADDED 5 MAXDELETEDID 1-1|nothing 1-1|<x> x|e1 9000-1)",
    "XREAD [COUNT <c>] STREAMS <x> <id>",
    "XREAD STREAMS <x> <x> <id> (0|$|<id>)",
    "!XREAD [COUNT 2] BLOCK 10 STREAMS <x> ($|<id>)",
    "XGROUP CREATE <x> <grp> ($|0|<id>) [MKSTREAM] [ENTRIESREAD (-1|2)]",
    "XGROUP CREATE <x> g1 0 MKSTREAM",
    "XGROUP CREATE <x> g1 0 MKSTREAM",
    "XGROUP (DESTROY|CREATECONSUMER|DELCONSUMER|SETID) <x> <grp> [(<con>|<id>|$)]",
    "XREADGROUP GROUP <grp> <con> [COUNT <c>] [NOACK] STREAMS <x> (>|0|<id>)",
    "XREADGROUP GROUP g1 <con> STREAMS <x> >",
    "XREADGROUP GROUP g1 <con> COUNT 2 STREAMS <x> >",
    "!XREADGROUP GROUP <grp> <con> BLOCK 10 STREAMS <x> >",
    "XACK <x> <grp> {<id>}",
    "XPENDING <x> <grp>",
    "!XPENDING <x> <grp> [IDLE (0|100000)] (-|<id>) (+|<id>) <c> [<con>]",
    "!XCLAIM <x> <grp> <con> (0|0|1000000|x) {<id>} [JUSTID] [FORCE] [RETRYCOUNT <c>] [IDLE 0]",
    "!XAUTOCLAIM <x> <grp> <con> (0|0|1000000|x) <id> [COUNT <c>] [JUSTID]",
    "XINFO (STREAM|GROUPS|STREAM) <x>",
    "!XINFO CONSUMERS <x> <grp>",
    "!XINFO STREAM <x> FULL [COUNT <c>]",
];

/// On keys of their own: what a log that other commands have changed says is up to the version.
const HYPERLOGLOGS: &[&str] = &[
    "PFADD <pf> {<m>}",
    "PFADD <pf> {<v>}",
    "PFADD <l> <m>",
    "PFCOUNT {<pf>}",
    "PFCOUNT <pf> <any>",
    "PFMERGE <pf> {<pf>}",
    "PFMERGE <pf> <e>",
];

const GEO: &[&str] = &[
    "GEOADD <z> [(NX|XX)] [CH] {(13.361389 38.115556 m1|15.087269 37.502669 m2|-74 40.7 m3|<n> <n> <m>)}",
    "GEOADD <z> 13.361389 38.115556 m1 15.087269 37.502669 m2",
    "GEOPOS <z> {<m>}",
    "GEODIST <z> <m> <m> [(m|km|mi|ft|x)]",
    "GEOHASH <z> {<m>}",
    "GEOSEARCH <z> (FROMMEMBER <m>|FROMLONLAT 15 37) (BYRADIUS 200 km|BYBOX 400 400 km) ASC [COUNT 2] \
     [WITHCOORD] [WITHDIST] [WITHHASH]",
    "GEOSEARCHSTORE <z> <z> FROMLONLAT 15 37 BYRADIUS 200 km ASC [COUNT 2] [STOREDIST]",
];

#[test]
fn every_line_is_a_template_whose_names_are_known() {
    use crate::{dice::Dice, template::Template};
    let mut dice = Dice::new(7);
    for line in FAMILIES.iter().flat_map(|(_, lines)| *lines) {
        let template = Template::new(line);
        for _ in 0..50 {
            assert!(!template.command(&mut dice).is_empty(), "{line}");
        }
    }
}
