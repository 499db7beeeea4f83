-- Rows that people read: expired keys are left out, and the columns ending in _text have what is
-- valid text as text, else NULL.

-- Plain ASCII is the common case; what is not needs a subtransaction to be tried.
CREATE FUNCTION redis.try_text(bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT AS $$ BEGIN
    RETURN convert_from($1, 'UTF8');
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;

CREATE FUNCTION redis.readable(bytea) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE WHEN position('\' in encode($1, 'escape')) = 0 THEN encode($1, 'escape')
                ELSE redis.try_text($1) END
$$;

CREATE VIEW redis.strings AS
SELECT k.db, coalesce(k.name, k.key) AS key, redis.readable(coalesce(k.name, k.key)) AS key_text,
       k.val AS value, redis.readable(k.val) AS value_text, k.expires_at
FROM redis.kv k
WHERE k.t = 's' AND (k.expires_at IS NULL OR k.expires_at > now());

CREATE VIEW redis.hashes AS
SELECT k.db, coalesce(k.name, k.key) AS key, redis.readable(coalesce(k.name, k.key)) AS key_text,
       coalesce(r.name, r.field) AS field, redis.readable(coalesce(r.name, r.field)) AS field_text,
       r.val AS value, redis.readable(r.val) AS value_text, k.expires_at
FROM redis.kv k JOIN redis.hash r ON r.kid = k.kid
WHERE k.t = 'h' AND (k.expires_at IS NULL OR k.expires_at > now());

CREATE VIEW redis.lists AS
SELECT k.db, coalesce(k.name, k.key) AS key, redis.readable(coalesce(k.name, k.key)) AS key_text,
       row_number() OVER (PARTITION BY k.db, k.key ORDER BY r.pos) - 1 AS index,
       r.val AS value, redis.readable(r.val) AS value_text, k.expires_at
FROM redis.kv k JOIN redis.list r ON r.kid = k.kid
WHERE k.t = 'l' AND (k.expires_at IS NULL OR k.expires_at > now());

CREATE VIEW redis.sets AS
SELECT k.db, coalesce(k.name, k.key) AS key, redis.readable(coalesce(k.name, k.key)) AS key_text,
       coalesce(r.name, r.member) AS member,
       redis.readable(coalesce(r.name, r.member)) AS member_text, k.expires_at
FROM redis.kv k JOIN redis.set_ r ON r.kid = k.kid
WHERE k.t = 'e' AND (k.expires_at IS NULL OR k.expires_at > now());

CREATE VIEW redis.zsets AS
SELECT k.db, coalesce(k.name, k.key) AS key, redis.readable(coalesce(k.name, k.key)) AS key_text,
       coalesce(r.name, r.member) AS member,
       redis.readable(coalesce(r.name, r.member)) AS member_text, r.score, k.expires_at
FROM redis.kv k JOIN redis.zset r ON r.kid = k.kid
WHERE k.t = 'z' AND (k.expires_at IS NULL OR k.expires_at > now());
