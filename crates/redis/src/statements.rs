//! What the gateway's sessions prepare.

use backend::calls::oid::{
    BYTEA, BYTEA_ARRAY, CHAR, CHAR_ARRAY, FLOAT8_ARRAY, INT2, INT2_ARRAY, INT4, INT8, INT8_ARRAY,
    TEXT,
};
use backend::calls::{Calls, Refused};

/// A statement with its name and the types of its parameters.
#[derive(Debug)]
pub struct Statement {
    pub name: &'static str,
    pub sql: &'static str,
    pub types: &'static [u32],
}

impl Statement {
    /// # Errors
    /// As [`Calls::prepare`].
    pub fn prepare(&self, calls: &mut Calls, tag: u64) -> Result<(), Refused> {
        calls.prepare(tag, self.name, self.sql, self.types)
    }
}

/// Any batch; its parameters are written by [`crate::batch::Batch::call`].
pub const APPLY: Statement = Statement {
    name: "apply",
    sql: "SELECT redis.apply(\
          $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
          $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, \
          $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, \
          $57, $58, $59, $60, $61, $62, $63, $64)",
    types: &[
        // shards, epochs, seqs, folded; flushed
        INT2_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT2_ARRAY,
        // k: db, key, name, t, val, kid, n, head, tail, expires, ver, expect
        INT2_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, CHAR_ARRAY, BYTEA_ARRAY, INT8_ARRAY, INT8_ARRAY,
        INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY,
        // k: how many any, absent, version
        INT4, INT4, INT4,
        // d, c: db, key, expect
        INT2_ARRAY, BYTEA_ARRAY, INT8_ARRAY, INT2_ARRAY, BYTEA_ARRAY, INT8_ARRAY,
        // h: kid, field, name, val; hd: kid, field
        INT8_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, INT8_ARRAY, BYTEA_ARRAY,
        // e: kid, member, name; ed: kid, member
        INT8_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, INT8_ARRAY, BYTEA_ARRAY,
        // z: kid, member, name, score; zd: kid, member
        INT8_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, FLOAT8_ARRAY, INT8_ARRAY, BYTEA_ARRAY,
        // l: kid, pos, val; lt: kid, first, last
        INT8_ARRAY, INT8_ARRAY, BYTEA_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY,
        // x: kid, ms, seq, fields; xd: kid, ms, seq
        INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, BYTEA_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY,
        // g: kid, label, name, state; gd: kid, label
        INT8_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, BYTEA_ARRAY, INT8_ARRAY, BYTEA_ARRAY,
        // o: kid, t
        INT8_ARRAY, CHAR_ARRAY,
    ],
};

/// Before a batch: its commit does not wait for the flush.
pub const HURRY: Statement = Statement {
    name: "hurry",
    sql: "SELECT set_config('synchronous_commit', 'off', true)",
    types: &[],
};

/// The common batch; see [`crate::batch::Batch::call`].
pub const PUT_STRINGS: Statement = Statement {
    name: "put_strings",
    sql: "SELECT redis.put_strings($1, $2, $3, $4, $5, $6)",
    types: &[INT2, INT8, INT8, INT2, BYTEA_ARRAY, BYTEA_ARRAY],
};

/// Shard, epoch, number in the journal, effects.
pub const APPEND: Statement = Statement {
    name: "append",
    sql: "SELECT redis.append($1, $2, $3, $4)",
    types: &[INT2, INT8, INT8, BYTEA],
};

/// Batches of a shard's journal behind one number, at most so many: number, effects.
pub const JOURNAL: Statement = Statement {
    name: "journal",
    sql:
        "SELECT seq, effects FROM redis.journal WHERE shard = $1 AND seq > $2 ORDER BY seq LIMIT $3",
    types: &[INT2, INT8, INT8],
};

/// Who had these shards before.
pub const OWNERS: Statement = Statement {
    name: "owners",
    sql: "SELECT owner FROM redis.shard WHERE id = ANY ($1)",
    types: &[INT2_ARRAY],
};

/// Shards, owner: id, epoch, applied, base, appended.
pub const TAKE: Statement =
    Statement { name: "take", sql: "SELECT * FROM redis.take($1, $2)", types: &[INT2_ARRAY, TEXT] };

/// How far shards are: id, epoch, applied, number of the last batch in the journal.
pub const SHARDS: Statement = Statement {
    name: "shards",
    sql: "SELECT s.id, s.epoch, s.applied, e.seq FROM redis.shard s \
          JOIN redis.journal_end e ON e.shard = s.id WHERE s.id = ANY ($1) ORDER BY s.id",
    types: &[INT2_ARRAY],
};

/// Whether this session is the one that serves the database from now on.
pub const LOCK: Statement =
    Statement { name: "lock", sql: "SELECT pg_try_advisory_lock($1)", types: &[INT8] };

/// Database, stored names: rows for [`crate::loaded::read`].
pub const LOAD: Statement = Statement {
    name: "load",
    sql: "SELECT * FROM redis.load($1, $2)",
    types: &[INT2, BYTEA_ARRAY],
};

/// Each database of clients that has keys: how many, how many of them expire, and in how many milliseconds on
/// average. Expired ones are not counted.
pub const DATABASES: Statement = Statement {
    name: "databases",
    sql: "SELECT db, count(*), count(expires_at), \
          coalesce(avg(extract(epoch FROM expires_at - now()) * 1000), 0)::int8 \
          FROM redis.kv WHERE db >= 0 AND (expires_at IS NULL OR expires_at > now()) \
          GROUP BY db ORDER BY db",
    types: &[],
};

/// How many keys a database has, expired ones not counted.
pub const SIZE: Statement = Statement {
    name: "size",
    sql: "SELECT count(*) FROM redis.kv WHERE db = $1 \
          AND (expires_at IS NULL OR expires_at > now())",
    types: &[INT2],
};

/// Database, the stored name before, how many, type or NULL: keys in order of stored names.
pub const KEYS: Statement = Statement {
    name: "keys",
    sql: "SELECT coalesce(name, key) FROM redis.kv WHERE db = $1 AND key > $2 \
          AND ($4 IS NULL OR t = $4) AND (expires_at IS NULL OR expires_at > now()) \
          ORDER BY redis.kv.key LIMIT $3",
    types: &[INT2, BYTEA, INT8, CHAR],
};

/// The same from the first, for there may be a key of no bytes.
pub const FIRST_KEYS: Statement = Statement {
    name: "first_keys",
    sql: "SELECT coalesce(name, key) FROM redis.kv WHERE db = $1 \
          AND ($3 IS NULL OR t = $3) AND (expires_at IS NULL OR expires_at > now()) \
          ORDER BY redis.kv.key LIMIT $2",
    types: &[INT2, INT8, CHAR],
};

/// Some key of a database, or NULL.
pub const RANDOM_KEY: Statement =
    Statement { name: "random_key", sql: "SELECT redis.random_key($1)", types: &[INT2] };

/// How many keys of each type: t, keys, keys that expire.
pub const COUNTS: Statement = Statement {
    name: "counts",
    sql: "SELECT t, count(*), count(expires_at) FROM redis.kv WHERE db = $1 GROUP BY t",
    types: &[INT2],
};

/// How many pages the keys' table has.
pub const PAGES: Statement = Statement {
    name: "pages",
    sql: "SELECT pg_relation_size('redis.kv') / current_setting('block_size')::int8",
    types: &[],
};

/// Keys on pages from the first up to the second whose time is over: database, key, version.
pub const EXPIRED: Statement = Statement {
    name: "expired",
    sql: "SELECT db, coalesce(name, key), ver FROM redis.kv \
          WHERE ctid >= format('(%s,0)', $1)::tid AND ctid < format('(%s,0)', $2)::tid \
          AND expires_at <= now()",
    types: &[INT8, INT8],
};

/// Removes up to so many rows of removed collections: how many it were.
pub const SWEEP: Statement =
    Statement { name: "sweep", sql: "SELECT redis.sweep($1)", types: &[INT8] };

/// All of them.
pub const ALL: &[Statement] = &[
    APPLY,
    PUT_STRINGS,
    HURRY,
    APPEND,
    JOURNAL,
    TAKE,
    SHARDS,
    LOCK,
    LOAD,
    SIZE,
    DATABASES,
    KEYS,
    FIRST_KEYS,
    RANDOM_KEY,
    COUNTS,
    PAGES,
    EXPIRED,
    SWEEP,
];
