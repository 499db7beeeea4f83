-- What happens when SQL writes the tables: the row's version becomes another one, so that no
-- batch of the gateway overwrites it unseen, and the gateway is told to forget its copy.
--
-- The gateway's own sessions have the setting redis.engine = 'on' and skip all of this in the
-- WHEN of the triggers, but for one thing: a key that gets another collection, or loses the one
-- it had, leaves an orphan. (A blind SET does not know what it overwrites.)
--
-- Payloads of the channel `redis`: `k DB HEX` one key, in the bytes it is stored under;
-- `*` everything.

-- Tells the gateway about one key. Who changes very many in one transaction announces everything
-- once instead: PostgreSQL keeps each notification until all listeners have read it.
CREATE FUNCTION redis.announce(db int2, key bytea) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    told int := coalesce(nullif(current_setting('redis.announced', true), ''), '0')::int;
BEGIN
    IF told < 1000 THEN
        PERFORM set_config('redis.announced', (told + 1)::text, true);
        PERFORM pg_notify('redis', 'k ' || db || ' ' || encode(key, 'hex'));
    ELSE
        PERFORM pg_notify('redis', '*');
    END IF;
END $$;

-- DO UPDATE rather than DO NOTHING: a sweep that just removes the row is waited for.
CREATE FUNCTION redis.abandon(kid int8, t "char") RETURNS void
LANGUAGE sql AS $$
    INSERT INTO redis.orphan VALUES ($1, $2)
    ON CONFLICT ON CONSTRAINT orphan_pkey DO UPDATE SET t = excluded.t
$$;

CREATE FUNCTION redis.kv_written() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    engine boolean := current_setting('redis.engine', true) IS NOT DISTINCT FROM 'on';
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.kid IS NOT NULL THEN
        IF TG_OP = 'DELETE' THEN
            PERFORM redis.abandon(OLD.kid, OLD.t);
        ELSIF OLD.kid IS DISTINCT FROM NEW.kid THEN
            PERFORM redis.abandon(OLD.kid, OLD.t);
        END IF;
    END IF;
    IF TG_OP = 'DELETE' THEN
        IF NOT engine THEN
            PERFORM redis.announce(OLD.db, OLD.key);
        END IF;
        RETURN OLD;
    END IF;
    IF NOT engine THEN
        NEW.ver := -nextval('redis.ver');
        PERFORM redis.announce(NEW.db, NEW.key);
        IF TG_OP = 'UPDATE' THEN
            IF (OLD.db, OLD.key) <> (NEW.db, NEW.key) THEN
                PERFORM redis.announce(OLD.db, OLD.key);
            END IF;
        END IF;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER kv_inserted BEFORE INSERT ON redis.kv FOR EACH ROW
WHEN (current_setting('redis.engine', true) IS DISTINCT FROM 'on')
EXECUTE FUNCTION redis.kv_written();

CREATE TRIGGER kv_updated BEFORE UPDATE ON redis.kv FOR EACH ROW
WHEN (OLD.kid IS DISTINCT FROM NEW.kid
      OR current_setting('redis.engine', true) IS DISTINCT FROM 'on')
EXECUTE FUNCTION redis.kv_written();

CREATE TRIGGER kv_deleted BEFORE DELETE ON redis.kv FOR EACH ROW
WHEN (OLD.kid IS NOT NULL OR current_setting('redis.engine', true) IS DISTINCT FROM 'on')
EXECUTE FUNCTION redis.kv_written();

-- A table has been emptied. What has no elements is no key; only a stream may be empty.
CREATE FUNCTION redis.truncated() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    engine text := coalesce(current_setting('redis.engine', true), '');
BEGIN
    IF TG_ARGV[0] IN ('h', 'e', 'z', 'l') THEN
        DELETE FROM redis.kv k WHERE k.t = TG_ARGV[0]::"char";
    ELSIF TG_TABLE_NAME = 'kv' THEN
        -- No row of theirs has an owner any more; so nothing has to be told of each.
        PERFORM set_config('redis.engine', 'on', true);
        DELETE FROM redis.hash;
        DELETE FROM redis.set_;
        DELETE FROM redis.zset;
        DELETE FROM redis.list;
        DELETE FROM redis.stream;
        DELETE FROM redis.stream_group;
        PERFORM set_config('redis.engine', engine, true);
    END IF;
    PERFORM pg_notify('redis', '*');
    RETURN NULL;
END $$;

-- A row of a collection's table has changed: so has its key, once in a transaction.
CREATE FUNCTION redis.element_written() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    own text := (pg_current_xact_id()::text::numeric % 4294967296)::text;
    gone boolean;
BEGIN
    IF TG_OP <> 'DELETE' THEN
        UPDATE redis.kv k SET ver = 0 WHERE k.kid = NEW.kid AND k.xmin::text <> own;
    END IF;
    IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND OLD.kid <> NEW.kid) THEN
        IF TG_ARGV[0] <> 'S' THEN
            EXECUTE format('SELECT NOT EXISTS (SELECT FROM %I.%I WHERE kid = $1)',
                           TG_TABLE_SCHEMA, TG_TABLE_NAME) INTO gone USING OLD.kid;
        END IF;
        -- A key goes with its last element; only a stream may be empty.
        IF gone THEN
            DELETE FROM redis.kv k WHERE k.kid = OLD.kid AND k.t = TG_ARGV[0]::"char";
        ELSE
            UPDATE redis.kv k SET ver = 0 WHERE k.kid = OLD.kid AND k.xmin::text <> own;
        END IF;
    END IF;
    RETURN NULL;
END $$;

DO $do$
DECLARE
    place text[];
BEGIN
    FOREACH place SLICE 1 IN ARRAY ARRAY[
        ['hash', 'h'], ['set_', 'e'], ['zset', 'z'], ['list', 'l'],
        ['stream', 'S'], ['stream_group', 'S'], ['kv', '']]
    LOOP
        EXECUTE format(
            'CREATE TRIGGER truncated AFTER TRUNCATE ON redis.%I
             FOR EACH STATEMENT EXECUTE FUNCTION redis.truncated(%L)', place[1], place[2]);
        CONTINUE WHEN place[1] = 'kv';
        EXECUTE format(
            'CREATE TRIGGER element_written AFTER INSERT OR UPDATE OR DELETE ON redis.%I
             FOR EACH ROW WHEN (current_setting(''redis.engine'', true) IS DISTINCT FROM ''on'')
             EXECUTE FUNCTION redis.element_written(%L)', place[1], place[2]);
    END LOOP;
END $do$;
