-- Redis commands to call from SQL, in the caller's transaction, on database 0 or the one named.
-- Names and values are bytea. Writers lock the key's row first, the triggers tell the gateway.
-- Error codes: RD004 the key has another type, RD005 not a number or out of range.

-- A time that goes on within a transaction, as Redis has it.
CREATE FUNCTION redis.expired(timestamptz) RETURNS boolean
LANGUAGE sql VOLATILE AS $$ SELECT coalesce($1 <= clock_timestamp(), false) $$;

CREATE FUNCTION redis.check_type(have "char", want "char") RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
    IF have <> want THEN
        RAISE EXCEPTION 'WRONGTYPE Operation against a key holding the wrong kind of value'
        USING ERRCODE = 'RD004';
    END IF;
END $$;

-- The key's row if it is there, of this type and not expired, else a row of NULLs.
CREATE FUNCTION redis.seen(key bytea, db int, want "char") RETURNS redis.kv
LANGUAGE plpgsql AS $$
DECLARE
    found_row redis.kv;
BEGIN
    SELECT k.* INTO found_row FROM redis.kv k
    WHERE k.db = $2 AND k.key = redis.stored($1) AND NOT redis.expired(k.expires_at);
    PERFORM redis.check_type(found_row.t, want);
    RETURN found_row;
END $$;

-- The same, locked. An expired row is removed.
CREATE FUNCTION redis.held(key bytea, db int, want "char") RETURNS redis.kv
LANGUAGE plpgsql AS $$
DECLARE
    found_row redis.kv;
BEGIN
    SELECT k.* INTO found_row FROM redis.kv k
    WHERE k.db = $2 AND k.key = redis.stored($1) FOR UPDATE;
    IF redis.expired(found_row.expires_at) THEN
        DELETE FROM redis.kv k WHERE k.db = $2 AND k.key = redis.stored($1);
        RETURN NULL;
    END IF;
    PERFORM redis.check_type(found_row.t, want);
    RETURN found_row;
END $$;

-- The same, made when it is not there.
CREATE FUNCTION redis.made(key bytea, db int, want "char") RETURNS redis.kv
LANGUAGE plpgsql AS $$
DECLARE
    found_row redis.kv;
BEGIN
    LOOP
        found_row := redis.held($1, $2, want);
        IF found_row.t IS NOT NULL THEN
            RETURN found_row;
        END IF;
        INSERT INTO redis.kv AS k (db, key, name, t, val, kid, n, head, tail)
        VALUES ($2, redis.stored($1), redis.overlong($1), want,
                CASE WHEN want = 's' THEN ''::bytea END,
                CASE WHEN want <> 's' THEN -nextval('redis.ver') END, 0,
                CASE WHEN want = 'l' THEN 0 END, CASE WHEN want = 'l' THEN -1 END)
        ON CONFLICT ON CONSTRAINT kv_pkey DO NOTHING
        RETURNING k.* INTO found_row;
        -- Somebody else may have made it, and removed it again.
        IF FOUND THEN
            RETURN found_row;
        END IF;
    END LOOP;
END $$;

-- Has the key's row written again, with more or fewer elements.
CREATE FUNCTION redis.grown(of redis.kv, more int8) RETURNS void
LANGUAGE sql AS $$
    UPDATE redis.kv k SET n = greatest(coalesce(k.n, 0) + $2, 0)
    WHERE k.db = ($1).db AND k.key = ($1).key
$$;

-- Keys

CREATE FUNCTION redis.exists(key bytea, db int DEFAULT 0) RETURNS boolean
LANGUAGE sql AS $$
    SELECT EXISTS (SELECT FROM redis.kv k WHERE k.db = $2 AND k.key = redis.stored($1)
                   AND NOT redis.expired(k.expires_at))
$$;

CREATE FUNCTION redis.type(key bytea, db int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$
    SELECT coalesce((
        SELECT CASE k.t WHEN 's' THEN 'string' WHEN 'h' THEN 'hash' WHEN 'l' THEN 'list'
                        WHEN 'e' THEN 'set' WHEN 'z' THEN 'zset' ELSE 'stream' END
        FROM redis.kv k WHERE k.db = $2 AND k.key = redis.stored($1)
        AND NOT redis.expired(k.expires_at)), 'none')
$$;

CREATE FUNCTION redis.del(key bytea, db int DEFAULT 0) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    was timestamptz;
BEGIN
    DELETE FROM redis.kv k WHERE k.db = $2 AND k.key = redis.stored($1)
    RETURNING k.expires_at INTO was;
    RETURN FOUND AND NOT redis.expired(was);
END $$;

-- In how long the key expires; NULL ends its expiry. False when there is no such key.
CREATE FUNCTION redis.expire(key bytea, after interval, db int DEFAULT 0) RETURNS boolean
LANGUAGE plpgsql AS $$ BEGIN
    UPDATE redis.kv k SET expires_at = clock_timestamp() + after
    WHERE k.db = $3 AND k.key = redis.stored($1) AND NOT redis.expired(k.expires_at);
    RETURN FOUND;
END $$;

-- Seconds until the key expires; -1 when it does not, -2 when there is no such key.
CREATE FUNCTION redis.ttl(key bytea, db int DEFAULT 0) RETURNS int8
LANGUAGE sql AS $$
    SELECT coalesce((
        SELECT coalesce(round(extract(epoch FROM k.expires_at - clock_timestamp()))::int8, -1)
        FROM redis.kv k WHERE k.db = $2 AND k.key = redis.stored($1)
        AND NOT redis.expired(k.expires_at)), -2)
$$;

-- All keys that begin so, in order.
CREATE FUNCTION redis.keys(prefix bytea DEFAULT '', db int DEFAULT 0) RETURNS SETOF bytea
LANGUAGE sql AS $$
    SELECT coalesce(k.name, k.key) FROM redis.kv k
    WHERE k.db = $2 AND k.key >= substr($1, 1, 1969)
      AND substr(coalesce(k.name, k.key), 1, octet_length($1)) = $1
      AND substr(k.key, 1, least(octet_length($1), 1969)) = substr($1, 1, 1969)
      AND NOT redis.expired(k.expires_at)
    ORDER BY k.key
$$;

-- Strings

CREATE FUNCTION redis.get(key bytea, db int DEFAULT 0) RETURNS bytea
LANGUAGE plpgsql AS $$ BEGIN
    RETURN (redis.seen($1, $2, 's')).val;
END $$;

CREATE FUNCTION redis.set(key bytea, value bytea, ex interval DEFAULT NULL, db int DEFAULT 0)
RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO redis.kv AS k (db, key, name, t, val, expires_at)
    VALUES ($4, redis.stored($1), redis.overlong($1), 's', $2, clock_timestamp() + ex)
    ON CONFLICT ON CONSTRAINT kv_pkey DO UPDATE
    SET t = 's', val = excluded.val, expires_at = excluded.expires_at, name = excluded.name,
        kid = NULL, n = NULL, head = NULL, tail = NULL;
END $$;

CREATE FUNCTION redis.incrby(key bytea, by int8, db int DEFAULT 0) RETURNS int8
LANGUAGE plpgsql AS $$
DECLARE
    old redis.kv := redis.made($1, $3, 's');
    said text := encode(old.val, 'escape');
    sum numeric;
BEGIN
    IF said = '' AND old.n = 0 THEN
        said := '0';  -- made just now
    END IF;
    IF said !~ '^(0|-?[1-9][0-9]{0,18})$' THEN
        RAISE EXCEPTION 'ERR value is not an integer or out of range' USING ERRCODE = 'RD005';
    END IF;
    sum := said::numeric + by;
    IF said::numeric NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
        RAISE EXCEPTION 'ERR value is not an integer or out of range' USING ERRCODE = 'RD005';
    END IF;
    IF sum NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
        RAISE EXCEPTION 'ERR increment or decrement would overflow' USING ERRCODE = 'RD005';
    END IF;
    UPDATE redis.kv k SET val = convert_to(sum::text, 'UTF8'), n = NULL
    WHERE k.db = $3 AND k.key = redis.stored($1);
    RETURN sum;
END $$;

CREATE FUNCTION redis.incr(key bytea, db int DEFAULT 0) RETURNS int8
LANGUAGE sql AS $$ SELECT redis.incrby($1, 1, $2) $$;

-- Hashes

CREATE FUNCTION redis.hset(key bytea, field bytea, value bytea, db int DEFAULT 0) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.made($1, $4, 'h');
BEGIN
    -- The owner first: then what the elements' triggers look for is done already.
    PERFORM redis.grown(owner, 0);
    UPDATE redis.hash r SET val = $3 WHERE r.kid = owner.kid AND r.field = redis.stored($2);
    IF FOUND THEN
        RETURN false;
    END IF;
    PERFORM redis.grown(owner, 1);
    INSERT INTO redis.hash (kid, field, name, val)
    VALUES (owner.kid, redis.stored($2), redis.overlong($2), $3);
    RETURN true;
END $$;

CREATE FUNCTION redis.hget(key bytea, field bytea, db int DEFAULT 0) RETURNS bytea
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.seen($1, $3, 'h');
BEGIN
    RETURN (SELECT r.val FROM redis.hash r
            WHERE r.kid = owner.kid AND r.field = redis.stored($2));
END $$;

CREATE FUNCTION redis.hgetall(key bytea, db int DEFAULT 0)
RETURNS TABLE (field bytea, value bytea) LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.seen($1, $2, 'h');
BEGIN
    RETURN QUERY SELECT coalesce(r.name, r.field), r.val FROM redis.hash r
                 WHERE r.kid = owner.kid ORDER BY r.field;
END $$;

CREATE FUNCTION redis.hdel(key bytea, field bytea, db int DEFAULT 0) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.held($1, $3, 'h');
BEGIN
    IF NOT EXISTS (SELECT FROM redis.hash r
                   WHERE r.kid = owner.kid AND r.field = redis.stored($2)) THEN
        RETURN false;
    END IF;
    PERFORM redis.grown(owner, -1);
    DELETE FROM redis.hash r WHERE r.kid = owner.kid AND r.field = redis.stored($2);
    RETURN true;
END $$;

-- Lists

CREATE FUNCTION redis.push(key bytea, value bytea, db int, at_head boolean) RETURNS int8
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.made($1, $3, 'l');
    first int8 := (SELECT min(r.pos) FROM redis.list r WHERE r.kid = owner.kid);
    last int8 := (SELECT max(r.pos) FROM redis.list r WHERE r.kid = owner.kid);
    place int8;
BEGIN
    IF at_head THEN
        place := coalesce(first - 1, 0);
    ELSE
        place := coalesce(last + 1, 0);
    END IF;
    UPDATE redis.kv k SET head = least(first, place), tail = greatest(last, place),
                          n = coalesce(k.n, 0) + 1
    WHERE k.db = owner.db AND k.key = owner.key;
    INSERT INTO redis.list (kid, pos, val) VALUES (owner.kid, place, $2);
    RETURN greatest(last, place) - least(first, place) + 1;
END $$;

CREATE FUNCTION redis.pop(key bytea, db int, at_head boolean) RETURNS bytea
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.held($1, $2, 'l');
    first int8 := (SELECT min(r.pos) FROM redis.list r WHERE r.kid = owner.kid);
    last int8 := (SELECT max(r.pos) FROM redis.list r WHERE r.kid = owner.kid);
    place int8 := CASE WHEN at_head THEN first ELSE last END;
    popped bytea;
BEGIN
    IF place IS NULL THEN
        RETURN NULL;
    END IF;
    UPDATE redis.kv k SET head = CASE WHEN at_head THEN first + 1 ELSE first END,
                          tail = CASE WHEN at_head THEN last ELSE last - 1 END,
                          n = greatest(k.n - 1, 0)
    WHERE k.db = owner.db AND k.key = owner.key;
    DELETE FROM redis.list r WHERE r.kid = owner.kid AND r.pos = place
    RETURNING r.val INTO popped;
    RETURN popped;
END $$;

CREATE FUNCTION redis.lpush(key bytea, value bytea, db int DEFAULT 0) RETURNS int8
LANGUAGE sql AS $$ SELECT redis.push($1, $2, $3, true) $$;

CREATE FUNCTION redis.rpush(key bytea, value bytea, db int DEFAULT 0) RETURNS int8
LANGUAGE sql AS $$ SELECT redis.push($1, $2, $3, false) $$;

CREATE FUNCTION redis.lpop(key bytea, db int DEFAULT 0) RETURNS bytea
LANGUAGE sql AS $$ SELECT redis.pop($1, $2, true) $$;

CREATE FUNCTION redis.rpop(key bytea, db int DEFAULT 0) RETURNS bytea
LANGUAGE sql AS $$ SELECT redis.pop($1, $2, false) $$;

CREATE FUNCTION redis.llen(key bytea, db int DEFAULT 0) RETURNS int8
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.seen($1, $2, 'l');
BEGIN
    RETURN (SELECT coalesce(max(r.pos) - min(r.pos) + 1, 0) FROM redis.list r
            WHERE r.kid = owner.kid);
END $$;

-- From and to which rank: negative ones count from the end, which is included.
CREATE FUNCTION redis.lrange(key bytea, start int8, stop int8, db int DEFAULT 0)
RETURNS SETOF bytea LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.seen($1, $4, 'l');
    many int8 := (SELECT count(*) FROM redis.list r WHERE r.kid = owner.kid);
    first int8 := greatest(CASE WHEN start < 0 THEN many + start ELSE start END, 0);
    last int8 := CASE WHEN stop < 0 THEN many + stop ELSE stop END;
BEGIN
    RETURN QUERY SELECT r.val FROM redis.list r WHERE r.kid = owner.kid ORDER BY r.pos
                 OFFSET first LIMIT greatest(least(last, many - 1) - first + 1, 0);
END $$;

-- Sets

CREATE FUNCTION redis.sadd(key bytea, member bytea, db int DEFAULT 0) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.made($1, $3, 'e');
BEGIN
    IF EXISTS (SELECT FROM redis.set_ r
               WHERE r.kid = owner.kid AND r.member = redis.stored($2)) THEN
        RETURN false;
    END IF;
    PERFORM redis.grown(owner, 1);
    INSERT INTO redis.set_ (kid, member, name)
    VALUES (owner.kid, redis.stored($2), redis.overlong($2));
    RETURN true;
END $$;

CREATE FUNCTION redis.srem(key bytea, member bytea, db int DEFAULT 0) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.held($1, $3, 'e');
BEGIN
    IF NOT EXISTS (SELECT FROM redis.set_ r
                   WHERE r.kid = owner.kid AND r.member = redis.stored($2)) THEN
        RETURN false;
    END IF;
    PERFORM redis.grown(owner, -1);
    DELETE FROM redis.set_ r WHERE r.kid = owner.kid AND r.member = redis.stored($2);
    RETURN true;
END $$;

CREATE FUNCTION redis.smembers(key bytea, db int DEFAULT 0) RETURNS SETOF bytea
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.seen($1, $2, 'e');
BEGIN
    RETURN QUERY SELECT coalesce(r.name, r.member) FROM redis.set_ r
                 WHERE r.kid = owner.kid ORDER BY r.member;
END $$;

CREATE FUNCTION redis.sismember(key bytea, member bytea, db int DEFAULT 0) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.seen($1, $3, 'e');
BEGIN
    RETURN EXISTS (SELECT FROM redis.set_ r
                   WHERE r.kid = owner.kid AND r.member = redis.stored($2));
END $$;

-- Sorted sets

CREATE FUNCTION redis.zadd(key bytea, score float8, member bytea, db int DEFAULT 0)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv;
BEGIN
    IF score IS NULL OR score = 'NaN' THEN
        RAISE EXCEPTION 'ERR value is not a valid float' USING ERRCODE = 'RD005';
    END IF;
    owner := redis.made($1, $4, 'z');
    PERFORM redis.grown(owner, 0);
    UPDATE redis.zset r SET score = $2
    WHERE r.kid = owner.kid AND r.member = redis.stored($3);
    IF FOUND THEN
        RETURN false;
    END IF;
    PERFORM redis.grown(owner, 1);
    INSERT INTO redis.zset (kid, score, member, name)
    VALUES (owner.kid, $2, redis.stored($3), redis.overlong($3));
    RETURN true;
END $$;

CREATE FUNCTION redis.zrem(key bytea, member bytea, db int DEFAULT 0) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.held($1, $3, 'z');
BEGIN
    IF NOT EXISTS (SELECT FROM redis.zset r
                   WHERE r.kid = owner.kid AND r.member = redis.stored($2)) THEN
        RETURN false;
    END IF;
    PERFORM redis.grown(owner, -1);
    DELETE FROM redis.zset r WHERE r.kid = owner.kid AND r.member = redis.stored($2);
    RETURN true;
END $$;

CREATE FUNCTION redis.zscore(key bytea, member bytea, db int DEFAULT 0) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.seen($1, $3, 'z');
BEGIN
    RETURN (SELECT r.score FROM redis.zset r
            WHERE r.kid = owner.kid AND r.member = redis.stored($2));
END $$;

CREATE FUNCTION redis.zrange(key bytea, start int8, stop int8, db int DEFAULT 0)
RETURNS TABLE (member bytea, score float8) LANGUAGE plpgsql AS $$
DECLARE
    owner redis.kv := redis.seen($1, $4, 'z');
    many int8 := (SELECT count(*) FROM redis.zset r WHERE r.kid = owner.kid);
    first int8 := greatest(CASE WHEN start < 0 THEN many + start ELSE start END, 0);
    last int8 := CASE WHEN stop < 0 THEN many + stop ELSE stop END;
BEGIN
    RETURN QUERY SELECT coalesce(r.name, r.member), r.score FROM redis.zset r
                 WHERE r.kid = owner.kid ORDER BY r.score, r.member
                 OFFSET first LIMIT greatest(least(last, many - 1) - first + 1, 0);
END $$;

-- Waits until everything that Redis clients had been told before is in the tables: the journals
-- are folded up to where they were. False when `patience` ran out.
CREATE FUNCTION redis.sync(patience interval DEFAULT '1 min') RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    until timestamptz := clock_timestamp() + patience;
    ids int2[];
    ends int8[];
BEGIN
    SELECT array_agg(e.shard), array_agg(e.seq) INTO ids, ends FROM redis.journal_end e;
    WHILE EXISTS (SELECT FROM unnest(ids, ends) u (shard, seq)
                  JOIN redis.journal j ON j.shard = u.shard AND j.seq <= u.seq) LOOP
        IF clock_timestamp() >= until THEN
            RETURN false;
        END IF;
        PERFORM pg_sleep(0.005);
    END LOOP;
    RETURN true;
END $$;
