-- Version 2: libraries of functions (FUNCTION LOAD). They are a hash under one key of database -1,
-- which no client can select: the code of each by its name.

COMMENT ON COLUMN redis.kv.db IS 'logical database; -1 has the libraries of functions';

CREATE VIEW redis.libraries AS
SELECT redis.readable(coalesce(r.name, r.field)) AS name, redis.readable(r.val) AS code
FROM redis.kv k JOIN redis.hash r ON r.kid = k.kid
WHERE k.db = -1 AND k.key = 'libraries' AND k.t = 'h';

CREATE OR REPLACE VIEW redis.hashes AS
SELECT k.db, coalesce(k.name, k.key) AS key, redis.readable(coalesce(k.name, k.key)) AS key_text,
       coalesce(r.name, r.field) AS field, redis.readable(coalesce(r.name, r.field)) AS field_text,
       r.val AS value, redis.readable(r.val) AS value_text, k.expires_at
FROM redis.kv k JOIN redis.hash r ON r.kid = k.kid
WHERE k.t = 'h' AND k.db >= 0 AND (k.expires_at IS NULL OR k.expires_at > now());
