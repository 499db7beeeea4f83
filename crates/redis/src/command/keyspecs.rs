//! Where commands have their keys and what they do with them, as COMMAND INFO tells it.
//!
//! <https://redis.io/docs/latest/develop/reference/key-specs/>

use super::Keys;
use crate::args::Args;

/// Some of a command's keys.
#[derive(Clone, Copy)]
pub struct Spec {
    pub flags: &'static str,
    pub begin: Begin,
    pub find: Find,
}

#[derive(Clone, Copy)]
pub enum Begin {
    Index(i64),
    /// Behind this word, looked for from there on.
    Keyword(&'static str, i64),
    Unknown,
}

#[derive(Clone, Copy)]
pub enum Find {
    /// The last key from the first one, or from the end; step; 2 for the first half of the rest.
    Range(i64, i64, i64),
    /// Their number comes first.
    Counted,
    Unknown,
}

/// What is done with the keys of commands that have one range of them.
const RANGES: &[(&str, &str)] = &[
    ("OW insert", "msetnx setnx"),
    ("OW update", "mset psetex restore setex"),
    ("RM delete", "del unlink"),
    (
        "RO",
        "exists hexists hlen hstrlen llen memory|usage object object|encoding object|freq \
         object|idletime object|refcount scard sismember strlen touch type watch xlen zcard",
    ),
    (
        "RO access",
        "bitcount bitfield_ro bitpos dump expiretime geodist geohash geopos georadius_ro \
         georadiusbymember_ro geosearch get getbit getrange hget hgetall hkeys hmget hrandfield \
         hscan hvals lcs lindex lpos lrange mget pexpiretime pttl sdiff sinter smembers \
         smismember srandmember sscan substr sunion ttl xinfo xinfo|consumers xinfo|groups \
         xinfo|stream xpending xrange xrevrange zcount zlexcount zmscore zrandmember zrange \
         zrangebylex zrangebyscore zrank zrevrange zrevrangebylex zrevrangebyscore zrevrank \
         zscan zscore",
    ),
    ("RW access", "pfcount pfdebug"),
    ("RW access delete", "blpop brpop bzpopmax bzpopmin getdel lpop rpop spop zpopmax zpopmin"),
    (
        "RW access update",
        "decr decrby getex getset hincrby hincrbyfloat incr incrby incrbyfloat move setbit \
         zincrby",
    ),
    ("RW access update variable_flags", "bitfield set"),
    (
        "RW delete",
        "hdel lrem ltrim srem xautoclaim xdel xgroup|delconsumer xgroup|destroy xtrim zrem \
         zremrangebylex zremrangebyrank zremrangebyscore",
    ),
    (
        "RW insert",
        "append hsetnx linsert lpush lpushx pfadd rpush rpushx sadd xgroup|create \
         xgroup|createconsumer",
    ),
    (
        "RW update",
        "expire expireat geoadd hmset hset lset persist pexpire pexpireat setrange xack xadd \
         xclaim xgroup xgroup|setid xsetid zadd",
    ),
    ("not_key", "spublish ssubscribe sunsubscribe"),
];

const fn one(flags: &'static str, at: i64) -> Spec {
    Spec { flags, begin: Begin::Index(at), find: Find::Range(0, 1, 0) }
}

const fn rest(flags: &'static str, at: i64) -> Spec {
    Spec { flags, begin: Begin::Index(at), find: Find::Range(-1, 1, 0) }
}

const fn counted(flags: &'static str, at: i64) -> Spec {
    Spec { flags, begin: Begin::Index(at), find: Find::Counted }
}

const fn behind(flags: &'static str, word: &'static str, from: i64) -> Spec {
    Spec { flags, begin: Begin::Keyword(word, from), find: Find::Range(0, 1, 0) }
}

const fn unknown(flags: &'static str) -> Spec {
    Spec { flags, begin: Begin::Unknown, find: Find::Unknown }
}

const fn streams(from: i64) -> Spec {
    let begin = Begin::Keyword("STREAMS", from);
    Spec { flags: "RO access", begin, find: Find::Range(-1, 1, 2) }
}

/// Commands that do different things with their keys, or have words that tell where they are.
const OTHERS: &[(&str, &[Spec])] = &[
    ("bitop", &[one("OW update", 2), rest("RO access", 3)]),
    ("blmove brpoplpush lmove rpoplpush smove", &[one("RW access delete", 1), one("RW insert", 2)]),
    ("blmpop bzmpop", &[counted("RW access delete", 2)]),
    ("lmpop zmpop", &[counted("RW access delete", 1)]),
    ("copy", &[one("RO access", 1), one("OW update", 2)]),
    ("eval evalsha fcall", &[counted("RW access update", 2)]),
    ("eval_ro evalsha_ro fcall_ro", &[counted("RO access", 2)]),
    (
        "georadius",
        &[
            one("RO access", 1),
            behind("OW update", "STORE", 6),
            behind("OW update", "STOREDIST", 6),
        ],
    ),
    (
        "georadiusbymember",
        &[
            one("RO access", 1),
            behind("OW update", "STORE", 5),
            behind("OW update", "STOREDIST", 5),
        ],
    ),
    ("geosearchstore zrangestore", &[one("OW update", 1), one("RO access", 2)]),
    ("pfmerge", &[one("RW access insert", 1), rest("RO access", 2)]),
    ("rename", &[one("RW access delete", 1), one("OW update", 2)]),
    ("renamenx", &[one("RW access delete", 1), one("OW insert", 2)]),
    ("sdiffstore sunionstore", &[one("OW update", 1), rest("RO access", 2)]),
    ("sinterstore", &[one("RW update", 1), rest("RO access", 2)]),
    ("sintercard zdiff zinter zintercard zunion", &[counted("RO access", 1)]),
    ("sort", &[one("RO access", 1), unknown("RO access"), unknown("OW update")]),
    ("sort_ro", &[one("RO access", 1), unknown("RO access")]),
    ("xread", &[streams(1)]),
    ("xreadgroup", &[streams(4)]),
    ("zdiffstore zinterstore zunionstore", &[one("OW update", 1), counted("RO access", 2)]),
];

/// The specifications of a command, or of a part of one such as `object|freq`, that has `keys`.
pub fn specs(name: &str, keys: Keys) -> Vec<Spec> {
    let among = |names: &str| names.split(' ').any(|other| other == name);
    if let Some((_, specs)) = OTHERS.iter().find(|(names, _)| among(names)) {
        return specs.to_vec();
    }
    let Some((flags, _)) = RANGES.iter().find(|(_, names)| among(names)) else {
        return Vec::new();
    };
    let Keys::Range(first, last, step) = keys else {
        return vec![unknown(flags)];
    };
    let last = if last < 0 { last } else { last - first as isize };
    let find = Find::Range(last as i64, step as i64, 0);
    vec![Spec { flags, begin: Begin::Index(first as i64), find }]
}

/// What the command does with the key at `place` of `args`.
pub fn flags(name: &str, keys: Keys, args: Args<'_>, place: usize) -> &'static str {
    let begins = |spec: &&Spec| match spec.begin {
        Begin::Index(at) | Begin::Keyword(_, at) => at <= place as i64,
        Begin::Unknown => place > 1,
    };
    let specs = specs(name, keys);
    let flags = specs.iter().rev().find(begins).map_or("", |spec| spec.flags);
    let has = |word: &str| (2..args.len()).any(|at| args.is(at, word));
    match name {
        "set" if has("get") => "RW access update",
        "set" => "OW update",
        "bitfield" if has("set") || has("incrby") => "RW access update",
        "bitfield" => "RO access",
        _ => flags,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    #[test]
    fn every_command_with_keys_says_what_it_does_with_them() {
        for command in command::all() {
            if command::container(command).is_none() && !matches!(command.keys, Keys::None) {
                assert!(!specs(command.name, command.keys).is_empty(), "{}", command.name);
            }
        }
    }
}
