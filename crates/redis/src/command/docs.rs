//! What COMMAND and ACL tell of commands beside the table: flags by name, categories, since when.

use super::{Command, Flags, Sub};

/// Since which version of Redis there are which commands.
const SINCE: &[(&str, &str)] = &[
    (
        "1.0.0",
        "auth bgrewriteaof bgsave dbsize debug decr decrby del echo exists expire flushall flushdb \
         get getset incr incrby info keys lastsave lindex llen lpop lpush lrange lrem lset ltrim \
         mget monitor move ping quit randomkey rename renamenx rpop rpush sadd save scard sdiff sdiffstore \
         select set setnx shutdown sinter sinterstore sismember slaveof smembers smove sort spop \
         srandmember srem substr sunion sunionstore ttl type",
    ),
    ("1.0.1", "mset msetnx"),
    ("1.0.5", "zrangebyscore"),
    (
        "1.2.0",
        "exec expireat multi rpoplpush zadd zcard zincrby zrange zrem zremrangebyscore zrevrange \
         zscore",
    ),
    (
        "2.0.0",
        "append blpop brpop config discard hdel hexists hget hgetall hincrby hkeys hlen hmget \
         hmset hset hsetnx hvals psubscribe publish punsubscribe setex subscribe unsubscribe \
         zcount zinterstore zrank zremrangebyrank zrevrank zunionstore",
    ),
    (
        "2.2.0",
        "brpoplpush getbit linsert lpushx persist rpushx setbit setrange strlen unwatch watch \
         zrevrangebyscore",
    ),
    ("2.2.3", "object"),
    ("2.2.12", "slowlog"),
    ("2.4.0", "client getrange"),
    (
        "2.6.0",
        "bitcount bitop dump eval evalsha hincrbyfloat incrbyfloat migrate pexpire pexpireat \
         psetex pttl restore script time",
    ),
    ("2.8.0", "hscan pubsub scan sscan zscan"),
    ("2.8.7", "bitpos"),
    ("2.8.9", "pfadd pfcount pfmerge zlexcount zrangebylex zremrangebylex zrevrangebylex"),
    ("2.8.12", "role"),
    ("2.8.13", "command latency"),
    ("3.0.0", "asking cluster readonly readwrite wait"),
    ("3.2.0", "bitfield geoadd geodist geohash geopos georadius georadiusbymember hstrlen"),
    ("3.2.1", "touch"),
    ("3.2.10", "georadius_ro georadiusbymember_ro"),
    ("4.0.0", "memory module swapdb unlink"),
    (
        "5.0.0",
        "bzpopmax bzpopmin lolwut replicaof xack xadd xclaim xdel xgroup xinfo xlen xpending \
         xrange xread xreadgroup xrevrange xsetid xtrim zpopmax zpopmin",
    ),
    ("6.0.0", "acl bitfield_ro hello"),
    ("6.0.6", "lpos"),
    (
        "6.2.0",
        "blmove copy failover geosearch geosearchstore getdel getex hrandfield lmove reset \
         smismember xautoclaim zdiff zdiffstore zinter zmscore zrandmember zrangestore zunion",
    ),
    (
        "7.0.0",
        "blmpop bzmpop eval_ro evalsha_ro expiretime fcall fcall_ro function lcs lmpop \
         pexpiretime sintercard sort_ro spublish ssubscribe sunsubscribe zintercard zmpop",
    ),
    ("7.2.0", "waitaof"),
];

pub fn since(name: &str) -> Option<&'static str> {
    let has = |names: &str| names.split(' ').any(|other| other == name);
    SINCE.iter().find(|(_, names)| has(names)).map(|(version, _)| *version)
}

/// All categories, in Redis's order (`acl.c`, `ACLCommandCategories`).
pub const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// Dangerous though no administrator's.
const DANGEROUS: [&str; 13] = [
    "flushall",
    "flushdb",
    "info",
    "keys",
    "lastsave",
    "migrate",
    "replconf",
    "restore",
    "role",
    "sort",
    "sort_ro",
    "swapdb",
    "client|list",
];

/// An administrator's though without the flag.
const ADMINS: [&str; 2] = ["lastsave", "role"];

/// In the category of connections though of another group.
const CONNECTIONS: [&str; 7] =
    ["asking", "command", "readonly", "readwrite", "wait", "waitaof", "client"];

/// May be given while a script runs for too long.
const ALLOWED_WHEN_BUSY: [&str; 8] =
    ["auth", "discard", "hello", "multi", "quit", "reset", "unwatch", "watch"];

/// A command, or one of a family.
#[derive(Clone, Copy)]
pub enum Shown {
    Whole(&'static Command),
    Part(&'static Command, &'static Sub),
}

impl Shown {
    pub fn name(self) -> &'static str {
        match self {
            Shown::Whole(command) => command.name,
            Shown::Part(_, sub) => sub.name,
        }
    }

    pub fn arity(self) -> i32 {
        match self {
            Shown::Whole(command) => command.arity,
            Shown::Part(_, sub) => sub.arity,
        }
    }

    /// The engine's flags without what Redis says in another way: EXEC writes what the queued
    /// commands write, a family is what its commands are.
    fn own_flags(self) -> Flags {
        match self {
            Shown::Whole(command) if command.flags.has(Flags::CONTAINER) => Flags::NONE,
            Shown::Whole(command) if self.group() == "transactions" => {
                command.flags.without(Flags::WRITE)
            }
            Shown::Whole(command) => command.flags,
            Shown::Part(_, sub) => sub.flags,
        }
    }

    pub fn flags(self) -> Vec<&'static str> {
        let own = self.own_flags();
        let is_busy = ALLOWED_WHEN_BUSY.contains(&self.name());
        let flags = [
            ("write", own.has(Flags::WRITE)),
            ("readonly", own.has(Flags::READONLY)),
            ("denyoom", own.has(Flags::DENY_OOM)),
            ("admin", own.has(Flags::ADMIN)),
            ("pubsub", own.has(Flags::PUBSUB)),
            ("noscript", own.has(Flags::NO_SCRIPT)),
            ("blocking", own.has(Flags::BLOCKING)),
            ("loading", own.has(Flags::LOADING)),
            ("stale", own.has(Flags::STALE)),
            ("skip_slowlog", self.name() == "exec"),
            ("fast", own.has(Flags::FAST)),
            ("no_auth", own.has(Flags::NO_AUTH)),
            ("no_multi", own.has(Flags::NO_MULTI.and(Flags::ADMIN))),
            ("movablekeys", own.has(Flags::MOVABLE_KEYS)),
            ("allow_busy", is_busy),
        ];
        flags.iter().filter(|(_, set)| *set).map(|(flag, _)| *flag).collect()
    }

    /// As Redis's documentation groups commands.
    pub fn group(self) -> &'static str {
        let (Shown::Whole(command) | Shown::Part(command, _)) = self;
        match command.group {
            "keyspace" | "key" | "keys" => "generic",
            "zset" | "sortedset" | "sorted_set" => "sorted-set",
            "transaction" => "transactions",
            other => other,
        }
    }

    pub fn categories(self) -> Vec<&'static str> {
        let (own, name) = (self.own_flags(), self.name());
        let of_group = match self.group() {
            "generic" => "keyspace",
            "sorted-set" => "sortedset",
            "transactions" => "transaction",
            other => other,
        };
        let is_connection = CONNECTIONS.contains(&name) || of_group == "connection";
        let is_admin = own.has(Flags::ADMIN) || ADMINS.contains(&name);
        let belongs = |category: &str| match category {
            "read" => own.has(Flags::READONLY) && of_group != "scripting",
            "write" => own.has(Flags::WRITE),
            "admin" => is_admin,
            "dangerous" => is_admin || DANGEROUS.contains(&name),
            "pubsub" => own.has(Flags::PUBSUB),
            "fast" => own.has(Flags::FAST),
            "slow" => !own.has(Flags::FAST),
            "blocking" => own.has(Flags::BLOCKING),
            "connection" => is_connection && !matches!(self, Shown::Whole(c) if is_family(c)),
            "keyspace" => of_group == "keyspace" && !is_connection && !is_whole_family(self),
            other => other == of_group && !is_whole_family(self),
        };
        CATEGORIES.into_iter().filter(|category| belongs(category)).collect()
    }
}

fn is_family(command: &Command) -> bool {
    command.flags.has(Flags::CONTAINER)
}

fn is_whole_family(shown: Shown) -> bool {
    matches!(shown, Shown::Whole(command) if is_family(command))
}
