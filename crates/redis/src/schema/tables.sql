-- What the Redis door keeps. Every name, key, field and member is bytea: NUL and bytes that are
-- no UTF-8 are legal in Redis.
--
-- An index row of PostgreSQL has at most about 2700 bytes. A name of more than 2000 bytes is
-- therefore stored in two places: an indexed column has its first 1969 bytes and its SHA-256
-- (2001 bytes, so never equal to a short name), the column `name` has all of it. Short names
-- leave `name` NULL. See redis.stored().

CREATE SCHEMA redis;
COMMENT ON SCHEMA redis IS 'Redis keys and values, served by Pondage';

CREATE TABLE redis.version (version int NOT NULL);

-- Versions of rows that SQL wrote are taken from here and are negative; the gateway's are
-- positive. Identities of collections (kid) that SQL made are taken from here as well.
CREATE SEQUENCE redis.ver;

-- One row for each key of any type.
-- t: s string, h hash, l list, e set, z sorted set, S stream.
CREATE TABLE redis.kv (
    db         int2 NOT NULL,
    t          "char" NOT NULL,
    ver        int8 NOT NULL DEFAULT 0,
    expires_at timestamptz,
    kid        int8,   -- which rows of the tables below are this key's; NULL for strings
    n          int8,   -- how many elements, as of the last Redis command or function
    head       int8,   -- position of a list's first element, NULL is 0
    tail       int8,   -- and of its last
    key        bytea NOT NULL,
    val        bytea,  -- of strings; what else a type keeps of itself
    name       bytea,
    CONSTRAINT kv_pkey PRIMARY KEY (db, key),
    CONSTRAINT kv_t CHECK (t IN ('s', 'h', 'l', 'e', 'z', 'S'))
) WITH (fillfactor = 80);
-- Who owns a collection's rows. Strings are not in it and pay nothing.
CREATE INDEX kv_kid ON redis.kv (kid) WHERE kid IS NOT NULL;

CREATE TABLE redis.hash (
    kid   int8 NOT NULL,
    field bytea NOT NULL,
    val   bytea NOT NULL,
    name  bytea,
    CONSTRAINT hash_pkey PRIMARY KEY (kid, field)
) WITH (fillfactor = 90);

CREATE TABLE redis.set_ (
    kid    int8 NOT NULL,
    member bytea NOT NULL,
    name   bytea,
    CONSTRAINT set_pkey PRIMARY KEY (kid, member)
);

CREATE TABLE redis.zset (
    kid    int8 NOT NULL,
    score  float8 NOT NULL,
    member bytea NOT NULL,
    name   bytea,
    CONSTRAINT zset_pkey PRIMARY KEY (kid, member),
    CONSTRAINT zset_score_is_number CHECK (score <> 'NaN')
);
CREATE INDEX zset_score ON redis.zset (kid, score, member);

CREATE TABLE redis.list (
    kid int8 NOT NULL,
    pos int8 NOT NULL,
    val bytea NOT NULL,
    CONSTRAINT list_pkey PRIMARY KEY (kid, pos)
);

-- ms and seq are the bits of unsigned numbers; fields and state are encoded by the gateway.
CREATE TABLE redis.stream (
    kid    int8 NOT NULL,
    ms     int8 NOT NULL,
    seq    int8 NOT NULL,
    fields bytea NOT NULL,
    CONSTRAINT stream_pkey PRIMARY KEY (kid, ms, seq)
);

CREATE TABLE redis.stream_group (
    kid   int8 NOT NULL,
    label bytea NOT NULL,
    state bytea NOT NULL,
    name  bytea,
    CONSTRAINT stream_group_pkey PRIMARY KEY (kid, label)
);

-- Collections whose key is gone: DEL of a million elements is one row here, and redis.sweep()
-- removes the elements later.
CREATE TABLE redis.orphan (
    kid int8 CONSTRAINT orphan_pkey PRIMARY KEY,
    t   "char" NOT NULL
);

-- A gateway's batches are counted by shard: `applied` is the last one that is in the tables,
-- `base` what it was when the present owner took over. Updated with every batch, so its page
-- has room for versions of the row.
CREATE TABLE redis.shard (
    id       int2 CONSTRAINT shard_pkey PRIMARY KEY,
    epoch    int8 NOT NULL,
    applied  int8 NOT NULL,
    base     int8 NOT NULL,
    owner    text NOT NULL,
    taken_at timestamptz NOT NULL
) WITH (fillfactor = 10);

-- Batches that are acknowledged and not in the tables yet, and the last one of each shard. Not a
-- column of redis.shard: appending must not wait for a batch that is being applied.
CREATE TABLE redis.journal (
    shard   int2 NOT NULL,
    seq     int8 NOT NULL,
    effects bytea NOT NULL,
    CONSTRAINT journal_pkey PRIMARY KEY (shard, seq)
);
-- Effects are short-lived: compressing them costs more than writing them.
ALTER TABLE redis.journal ALTER effects SET STORAGE EXTERNAL;

CREATE TABLE redis.journal_end (
    shard int2 CONSTRAINT journal_end_pkey PRIMARY KEY,
    epoch int8 NOT NULL,
    seq   int8 NOT NULL
) WITH (fillfactor = 10);

-- As which bytes a name is stored where it is indexed.
CREATE FUNCTION redis.stored(bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length($1) <= 2000 THEN $1
                ELSE substr($1, 1, 1969) || sha256($1) END
$$;

-- The whole name if it is longer than what is indexed.
CREATE FUNCTION redis.overlong(bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length($1) > 2000 THEN $1 END
$$;
