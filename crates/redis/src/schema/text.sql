-- The same commands on text, which is UTF-8 in Redis. What is no text there is an error here.

CREATE FUNCTION redis.b(text) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT convert_to($1, 'UTF8') $$;

CREATE FUNCTION redis.exists(key text, db int DEFAULT 0) RETURNS boolean
LANGUAGE sql AS $$ SELECT redis.exists(redis.b($1), $2) $$;
CREATE FUNCTION redis.type(key text, db int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$ SELECT redis.type(redis.b($1), $2) $$;
CREATE FUNCTION redis.del(key text, db int DEFAULT 0) RETURNS boolean
LANGUAGE sql AS $$ SELECT redis.del(redis.b($1), $2) $$;
CREATE FUNCTION redis.expire(key text, after interval, db int DEFAULT 0) RETURNS boolean
LANGUAGE sql AS $$ SELECT redis.expire(redis.b($1), $2, $3) $$;
CREATE FUNCTION redis.ttl(key text, db int DEFAULT 0) RETURNS int8
LANGUAGE sql AS $$ SELECT redis.ttl(redis.b($1), $2) $$;
CREATE FUNCTION redis.keys(prefix text, db int DEFAULT 0) RETURNS SETOF text
LANGUAGE sql AS $$ SELECT convert_from(k, 'UTF8') FROM redis.keys(redis.b($1), $2) k $$;

CREATE FUNCTION redis.get(key text, db int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$ SELECT convert_from(redis.get(redis.b($1), $2), 'UTF8') $$;
CREATE FUNCTION redis.set(key text, value text, ex interval DEFAULT NULL, db int DEFAULT 0)
RETURNS void LANGUAGE sql AS $$ SELECT redis.set(redis.b($1), redis.b($2), $3, $4) $$;
CREATE FUNCTION redis.incrby(key text, by int8, db int DEFAULT 0) RETURNS int8
LANGUAGE sql AS $$ SELECT redis.incrby(redis.b($1), $2, $3) $$;
CREATE FUNCTION redis.incr(key text, db int DEFAULT 0) RETURNS int8
LANGUAGE sql AS $$ SELECT redis.incrby(redis.b($1), 1, $2) $$;

CREATE FUNCTION redis.hset(key text, field text, value text, db int DEFAULT 0) RETURNS boolean
LANGUAGE sql AS $$ SELECT redis.hset(redis.b($1), redis.b($2), redis.b($3), $4) $$;
CREATE FUNCTION redis.hget(key text, field text, db int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$ SELECT convert_from(redis.hget(redis.b($1), redis.b($2), $3), 'UTF8') $$;
CREATE FUNCTION redis.hgetall(key text, db int DEFAULT 0) RETURNS TABLE (field text, value text)
LANGUAGE sql AS $$
    SELECT convert_from(r.field, 'UTF8'), convert_from(r.value, 'UTF8')
    FROM redis.hgetall(redis.b($1), $2) r
$$;
CREATE FUNCTION redis.hdel(key text, field text, db int DEFAULT 0) RETURNS boolean
LANGUAGE sql AS $$ SELECT redis.hdel(redis.b($1), redis.b($2), $3) $$;

CREATE FUNCTION redis.lpush(key text, value text, db int DEFAULT 0) RETURNS int8
LANGUAGE sql AS $$ SELECT redis.push(redis.b($1), redis.b($2), $3, true) $$;
CREATE FUNCTION redis.rpush(key text, value text, db int DEFAULT 0) RETURNS int8
LANGUAGE sql AS $$ SELECT redis.push(redis.b($1), redis.b($2), $3, false) $$;
CREATE FUNCTION redis.lpop(key text, db int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$ SELECT convert_from(redis.pop(redis.b($1), $2, true), 'UTF8') $$;
CREATE FUNCTION redis.rpop(key text, db int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$ SELECT convert_from(redis.pop(redis.b($1), $2, false), 'UTF8') $$;
CREATE FUNCTION redis.llen(key text, db int DEFAULT 0) RETURNS int8
LANGUAGE sql AS $$ SELECT redis.llen(redis.b($1), $2) $$;
CREATE FUNCTION redis.lrange(key text, start int8, stop int8, db int DEFAULT 0)
RETURNS SETOF text LANGUAGE sql AS $$
    SELECT convert_from(v, 'UTF8') FROM redis.lrange(redis.b($1), $2, $3, $4) v
$$;

CREATE FUNCTION redis.sadd(key text, member text, db int DEFAULT 0) RETURNS boolean
LANGUAGE sql AS $$ SELECT redis.sadd(redis.b($1), redis.b($2), $3) $$;
CREATE FUNCTION redis.srem(key text, member text, db int DEFAULT 0) RETURNS boolean
LANGUAGE sql AS $$ SELECT redis.srem(redis.b($1), redis.b($2), $3) $$;
CREATE FUNCTION redis.smembers(key text, db int DEFAULT 0) RETURNS SETOF text
LANGUAGE sql AS $$ SELECT convert_from(m, 'UTF8') FROM redis.smembers(redis.b($1), $2) m $$;
CREATE FUNCTION redis.sismember(key text, member text, db int DEFAULT 0) RETURNS boolean
LANGUAGE sql AS $$ SELECT redis.sismember(redis.b($1), redis.b($2), $3) $$;

CREATE FUNCTION redis.zadd(key text, score float8, member text, db int DEFAULT 0)
RETURNS boolean LANGUAGE sql AS $$ SELECT redis.zadd(redis.b($1), $2, redis.b($3), $4) $$;
CREATE FUNCTION redis.zrem(key text, member text, db int DEFAULT 0) RETURNS boolean
LANGUAGE sql AS $$ SELECT redis.zrem(redis.b($1), redis.b($2), $3) $$;
CREATE FUNCTION redis.zscore(key text, member text, db int DEFAULT 0) RETURNS float8
LANGUAGE sql AS $$ SELECT redis.zscore(redis.b($1), redis.b($2), $3) $$;
CREATE FUNCTION redis.zrange(key text, start int8, stop int8, db int DEFAULT 0)
RETURNS TABLE (member text, score float8) LANGUAGE sql AS $$
    SELECT convert_from(r.member, 'UTF8'), r.score
    FROM redis.zrange(redis.b($1), $2, $3, $4) r
$$;
