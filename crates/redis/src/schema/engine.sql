-- What the gateway calls. One call is one transaction and one round trip.
--
-- Error codes: RD001 the shard is another gateway's, or the batch has been applied already;
-- RD002 a row is not the one it was (DETAIL: `DB HEX` of up to 16 keys, comma between);
-- RD003 the same of a key that is only watched.

CREATE FUNCTION redis.raise_stale(shards int2[]) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION USING ERRCODE = 'RD001',
        MESSAGE = 'the batch is not the next one of its shard and owner',
        DETAIL = (SELECT string_agg(format('shard %s epoch %s applied %s', s.id, s.epoch,
                                           s.applied), ', ' ORDER BY s.id)
                  FROM redis.shard s WHERE s.id = ANY (shards));
END $$;

CREATE FUNCTION redis.raise_conflict(code text, keys text) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION USING ERRCODE = code,
        MESSAGE = 'a key has been changed by somebody else', DETAIL = keys;
END $$;

-- The common batch: strings without expiry, whatever was there before, of one shard and database.
CREATE FUNCTION redis.put_strings(
    shard int2, shard_epoch int8, shard_seq int8, kv_db int2, keys bytea[], vals bytea[])
RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    UPDATE redis.shard s SET applied = shard_seq
    WHERE s.id = shard AND s.epoch = shard_epoch AND s.applied = shard_seq - 1;
    IF NOT FOUND THEN
        PERFORM redis.raise_stale(ARRAY[shard]);
    END IF;
    INSERT INTO redis.kv (db, key, t, val, ver)
    SELECT kv_db, u.key, 's', u.val, shard_seq FROM unnest(keys, vals) u (key, val)
    ON CONFLICT ON CONSTRAINT kv_pkey DO UPDATE
    SET t = 's', val = excluded.val, ver = excluded.ver, expires_at = NULL, name = NULL,
        kid = NULL, n = NULL, head = NULL, tail = NULL;
END $$;

-- Any batch. Arrays that would be empty are NULL; what is expected of a key (`expect`) is NULL
-- for anything, 0 for its absence, else its version. `folded` is up to where a shard's journal
-- is in this batch.
CREATE FUNCTION redis.apply(
    shards int2[], epochs int8[], seqs int8[], folded int8[],
    flushed int2[],
    k_db int2[], k_key bytea[], k_name bytea[], k_t "char"[], k_val bytea[], k_kid int8[],
    k_n int8[], k_head int8[], k_tail int8[], k_expires int8[], k_ver int8[], k_expect int8[],
    k_any int4, k_absent int4, k_version int4,
    d_db int2[], d_key bytea[], d_expect int8[],
    c_db int2[], c_key bytea[], c_expect int8[],
    h_kid int8[], h_field bytea[], h_name bytea[], h_val bytea[], hd_kid int8[], hd_field bytea[],
    e_kid int8[], e_member bytea[], e_name bytea[], ed_kid int8[], ed_member bytea[],
    z_kid int8[], z_member bytea[], z_name bytea[], z_score float8[],
    zd_kid int8[], zd_member bytea[],
    l_kid int8[], l_pos int8[], l_val bytea[], lt_kid int8[], lt_first int8[], lt_last int8[],
    x_kid int8[], x_ms int8[], x_seq int8[], x_fields bytea[],
    xd_kid int8[], xd_ms int8[], xd_seq int8[],
    g_kid int8[], g_label bytea[], g_name bytea[], g_state bytea[],
    gd_kid int8[], gd_label bytea[],
    o_kid int8[], o_t "char"[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    changed int8;
    wrong text;
BEGIN
    IF cardinality(shards) > 1 THEN
        -- In one order, whatever the plan of the UPDATE: two batches must not wait for another.
        PERFORM FROM redis.shard s WHERE s.id = ANY (shards) ORDER BY s.id FOR UPDATE;
        SELECT count(*) INTO changed FROM unnest(shards, epochs, seqs) u (id, epoch, seq)
        JOIN redis.shard s ON s.id = u.id AND s.epoch = u.epoch AND s.applied = u.seq - 1;
        IF changed <> cardinality(shards) THEN
            PERFORM redis.raise_stale(shards);
        END IF;
    END IF;
    UPDATE redis.shard s SET applied = u.seq FROM unnest(shards, epochs, seqs) u (id, epoch, seq)
    WHERE s.id = u.id AND s.epoch = u.epoch AND s.applied = u.seq - 1;
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed <> cardinality(shards) THEN
        PERFORM redis.raise_stale(shards);
    END IF;
    IF folded IS NOT NULL THEN
        DELETE FROM redis.journal j USING unnest(shards, folded) u (id, seq)
        WHERE j.shard = u.id AND j.seq <= u.seq;
    END IF;

    IF c_key IS NOT NULL THEN
        -- Who would change them after this has to wait until the batch is committed.
        PERFORM FROM unnest(c_db, c_key) c (db, key)
            JOIN redis.kv k ON k.db = c.db AND k.key = c.key FOR SHARE OF k;
        SELECT string_agg(c.db || ' ' || encode(c.key, 'hex'), ',') INTO wrong
        FROM (SELECT c.db, c.key FROM unnest(c_db, c_key, c_expect) c (db, key, expect)
              WHERE c.expect IS DISTINCT FROM coalesce(
                  (SELECT k.ver FROM redis.kv k WHERE k.db = c.db AND k.key = c.key), 0)
              LIMIT 16) c;
        IF wrong IS NOT NULL THEN
            PERFORM redis.raise_conflict('RD003', wrong);
        END IF;
    END IF;

    IF flushed IS NOT NULL THEN
        DELETE FROM redis.kv k WHERE k.db = ANY (flushed);
    END IF;
    IF d_key IS NOT NULL THEN
        WITH gone AS (
            DELETE FROM redis.kv k USING unnest(d_db, d_key, d_expect) d (db, key, expect)
            WHERE k.db = d.db AND k.key = d.key AND k.ver = coalesce(d.expect, k.ver)
            RETURNING k.db, k.key)
        SELECT string_agg(w.db || ' ' || encode(w.key, 'hex'), ',') INTO wrong
        FROM (SELECT d.db, d.key FROM unnest(d_db, d_key, d_expect) d (db, key, expect)
              WHERE d.expect IS NOT NULL
              EXCEPT SELECT gone.db, gone.key FROM gone
              LIMIT 16) w;
        IF wrong IS NOT NULL THEN
            PERFORM redis.raise_conflict('RD002', wrong);
        END IF;
    END IF;

    IF k_any > 0 THEN
        INSERT INTO redis.kv (db, key, name, t, val, kid, n, head, tail, expires_at, ver)
        SELECT u.db, u.key, u.name, u.t, u.val, u.kid, u.n, u.head, u.tail,
               timestamptz 'epoch' + u.expires * interval '1 ms', u.ver
        FROM unnest(k_db, k_key, k_name, k_t, k_val, k_kid, k_n, k_head, k_tail, k_expires, k_ver,
                    k_expect)
            u (db, key, name, t, val, kid, n, head, tail, expires, ver, expect)
        WHERE u.expect IS NULL
        ON CONFLICT ON CONSTRAINT kv_pkey DO UPDATE
        SET name = excluded.name, t = excluded.t, val = excluded.val, kid = excluded.kid,
            n = excluded.n, head = excluded.head, tail = excluded.tail,
            expires_at = excluded.expires_at, ver = excluded.ver;
    END IF;
    IF k_version > 0 THEN
        UPDATE redis.kv k
        SET name = u.name, t = u.t, val = u.val, kid = u.kid, n = u.n, head = u.head,
            tail = u.tail, expires_at = timestamptz 'epoch' + u.expires * interval '1 ms',
            ver = u.ver
        FROM unnest(k_db, k_key, k_name, k_t, k_val, k_kid, k_n, k_head, k_tail, k_expires, k_ver,
                    k_expect)
            u (db, key, name, t, val, kid, n, head, tail, expires, ver, expect)
        WHERE u.expect <> 0 AND k.db = u.db AND k.key = u.key AND k.ver = u.expect;
        GET DIAGNOSTICS changed = ROW_COUNT;
        IF changed <> k_version THEN
            PERFORM redis.raise_conflict('RD002', redis.not_written(k_db, k_key, k_ver, k_expect,
                                                                    false));
        END IF;
    END IF;
    IF k_absent > 0 THEN
        INSERT INTO redis.kv (db, key, name, t, val, kid, n, head, tail, expires_at, ver)
        SELECT u.db, u.key, u.name, u.t, u.val, u.kid, u.n, u.head, u.tail,
               timestamptz 'epoch' + u.expires * interval '1 ms', u.ver
        FROM unnest(k_db, k_key, k_name, k_t, k_val, k_kid, k_n, k_head, k_tail, k_expires, k_ver,
                    k_expect)
            u (db, key, name, t, val, kid, n, head, tail, expires, ver, expect)
        WHERE u.expect = 0
        ON CONFLICT ON CONSTRAINT kv_pkey DO NOTHING;
        GET DIAGNOSTICS changed = ROW_COUNT;
        IF changed <> k_absent THEN
            PERFORM redis.raise_conflict('RD002', redis.not_written(k_db, k_key, k_ver, k_expect,
                                                                    true));
        END IF;
    END IF;

    IF hd_kid IS NOT NULL THEN
        DELETE FROM redis.hash r USING unnest(hd_kid, hd_field) u (kid, field)
        WHERE r.kid = u.kid AND r.field = u.field;
    END IF;
    IF h_kid IS NOT NULL THEN
        INSERT INTO redis.hash (kid, field, name, val)
        SELECT * FROM unnest(h_kid, h_field, h_name, h_val)
        ON CONFLICT ON CONSTRAINT hash_pkey DO UPDATE SET val = excluded.val;
    END IF;
    IF ed_kid IS NOT NULL THEN
        DELETE FROM redis.set_ r USING unnest(ed_kid, ed_member) u (kid, member)
        WHERE r.kid = u.kid AND r.member = u.member;
    END IF;
    IF e_kid IS NOT NULL THEN
        INSERT INTO redis.set_ (kid, member, name) SELECT * FROM unnest(e_kid, e_member, e_name)
        ON CONFLICT ON CONSTRAINT set_pkey DO NOTHING;
    END IF;
    IF zd_kid IS NOT NULL THEN
        DELETE FROM redis.zset r USING unnest(zd_kid, zd_member) u (kid, member)
        WHERE r.kid = u.kid AND r.member = u.member;
    END IF;
    IF z_kid IS NOT NULL THEN
        INSERT INTO redis.zset (kid, member, name, score)
        SELECT * FROM unnest(z_kid, z_member, z_name, z_score)
        ON CONFLICT ON CONSTRAINT zset_pkey DO UPDATE SET score = excluded.score;
    END IF;
    IF lt_kid IS NOT NULL THEN
        -- Two statements, for each is a short walk from one end of the index.
        DELETE FROM redis.list r USING unnest(lt_kid, lt_first) u (kid, first)
        WHERE r.kid = u.kid AND r.pos < u.first;
        DELETE FROM redis.list r USING unnest(lt_kid, lt_last) u (kid, last)
        WHERE r.kid = u.kid AND r.pos > u.last;
    END IF;
    IF l_kid IS NOT NULL THEN
        INSERT INTO redis.list (kid, pos, val) SELECT * FROM unnest(l_kid, l_pos, l_val)
        ON CONFLICT ON CONSTRAINT list_pkey DO UPDATE SET val = excluded.val;
    END IF;
    IF xd_kid IS NOT NULL THEN
        DELETE FROM redis.stream r USING unnest(xd_kid, xd_ms, xd_seq) u (kid, ms, seq)
        WHERE r.kid = u.kid AND r.ms = u.ms AND r.seq = u.seq;
    END IF;
    IF x_kid IS NOT NULL THEN
        INSERT INTO redis.stream (kid, ms, seq, fields)
        SELECT * FROM unnest(x_kid, x_ms, x_seq, x_fields)
        ON CONFLICT ON CONSTRAINT stream_pkey DO UPDATE SET fields = excluded.fields;
    END IF;
    IF gd_kid IS NOT NULL THEN
        DELETE FROM redis.stream_group r USING unnest(gd_kid, gd_label) u (kid, label)
        WHERE r.kid = u.kid AND r.label = u.label;
    END IF;
    IF g_kid IS NOT NULL THEN
        INSERT INTO redis.stream_group (kid, label, name, state)
        SELECT * FROM unnest(g_kid, g_label, g_name, g_state)
        ON CONFLICT ON CONSTRAINT stream_group_pkey DO UPDATE SET state = excluded.state;
    END IF;
    IF o_kid IS NOT NULL THEN
        INSERT INTO redis.orphan (kid, t)
        SELECT DISTINCT ON (u.kid) u.kid, u.t FROM unnest(o_kid, o_t) u (kid, t)
        ON CONFLICT ON CONSTRAINT orphan_pkey DO UPDATE SET t = excluded.t;
    END IF;
END $$;

-- The keys of a batch that expected something (absence, or a version) and were not written.
CREATE FUNCTION redis.not_written(
    k_db int2[], k_key bytea[], k_ver int8[], k_expect int8[], absent boolean)
RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(w.db || ' ' || encode(w.key, 'hex'), ',')
    FROM (SELECT u.db, u.key FROM unnest($1, $2, $3, $4) u (db, key, ver, expect)
          WHERE (u.expect = 0) = $5
            AND NOT EXISTS (SELECT FROM redis.kv k
                            WHERE k.db = u.db AND k.key = u.key AND k.ver = u.ver)
          LIMIT 16) w
$$;

-- Appends one batch to a shard's journal.
CREATE FUNCTION redis.append(shard_id int2, shard_epoch int8, batch int8, effects bytea)
RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    UPDATE redis.journal_end e SET seq = batch
    WHERE e.shard = shard_id AND e.epoch = shard_epoch AND e.seq = batch - 1;
    IF NOT FOUND THEN
        PERFORM redis.raise_stale(ARRAY[shard_id]);
    END IF;
    INSERT INTO redis.journal VALUES (shard_id, batch, effects);
END $$;

-- Makes `by` the owner of shards: no batch of an older epoch is applied from now on. `appended`
-- is the last batch of the journal; those that are not folded yet come first.
CREATE FUNCTION redis.take(ids int2[], by text)
RETURNS TABLE (id int2, epoch int8, applied int8, base int8, appended int8)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO redis.shard AS s (id, epoch, applied, base, owner, taken_at)
    SELECT u.id, 1, 0, 0, by, clock_timestamp() FROM unnest(ids) u (id) ORDER BY u.id
    ON CONFLICT ON CONSTRAINT shard_pkey DO UPDATE
    SET epoch = s.epoch + 1, base = s.applied, owner = excluded.owner,
        taken_at = excluded.taken_at;
    -- An owner before may have had more shards, and a batch of one of them still on its way.
    UPDATE redis.shard s SET epoch = s.epoch + 1, owner = by, taken_at = clock_timestamp()
    WHERE s.id <> ALL (ids);
    INSERT INTO redis.journal_end AS e (shard, epoch, seq)
    SELECT s.id, s.epoch, 0 FROM redis.shard s WHERE s.id = ANY (ids) ORDER BY s.id
    ON CONFLICT ON CONSTRAINT journal_end_pkey DO UPDATE SET epoch = excluded.epoch;
    RETURN QUERY
        SELECT s.id, s.epoch, s.applied, s.base, e.seq
        FROM redis.shard s JOIN redis.journal_end e ON e.shard = s.id
        WHERE s.id = ANY (ids) ORDER BY s.id;
END $$;

-- The elements of one collection. STABLE, so that it sees what the calling query sees.
CREATE FUNCTION redis.elements(
    t "char", kid int8,
    OUT names bytea[], OUT vals bytea[], OUT scores float8[], OUT positions int8[],
    OUT seqs int8[], OUT labels bytea[], OUT states bytea[])
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    CASE elements.t
    WHEN 'h' THEN
        SELECT array_agg(coalesce(r.name, r.field)), array_agg(r.val) INTO names, vals
        FROM redis.hash r WHERE r.kid = elements.kid;
    WHEN 'e' THEN
        SELECT array_agg(coalesce(r.name, r.member)) INTO names
        FROM redis.set_ r WHERE r.kid = elements.kid;
    WHEN 'z' THEN
        SELECT array_agg(coalesce(r.name, r.member)), array_agg(r.score) INTO names, scores
        FROM redis.zset r WHERE r.kid = elements.kid;
    WHEN 'l' THEN
        SELECT array_agg(r.pos), array_agg(r.val) INTO positions, vals
        FROM (SELECT l.pos, l.val FROM redis.list l WHERE l.kid = elements.kid ORDER BY l.pos) r;
    WHEN 'S' THEN
        SELECT array_agg(r.ms), array_agg(r.seq), array_agg(r.fields)
        INTO positions, seqs, vals FROM redis.stream r WHERE r.kid = elements.kid;
        SELECT array_agg(coalesce(r.name, r.label)), array_agg(r.state) INTO labels, states
        FROM redis.stream_group r WHERE r.kid = elements.kid;
    ELSE NULL;
    END CASE;
END $$;

-- All there is of these keys (in the bytes they are stored under), in one snapshot; a key that is
-- not there gives no row, one that has expired does.
CREATE FUNCTION redis.load(kv_db int2, keys bytea[])
RETURNS TABLE (
    key bytea, t "char", val bytea, kid int8, n int8, head int8, tail int8, expires_at int8,
    ver int8, names bytea[], vals bytea[], scores float8[], positions int8[], seqs int8[],
    labels bytea[], states bytea[])
LANGUAGE sql STABLE AS $$
    SELECT coalesce(k.name, k.key), k.t, k.val, k.kid, k.n, k.head, k.tail,
           CASE WHEN k.expires_at < 'infinity'
                THEN round(extract(epoch FROM greatest(k.expires_at, 'epoch')) * 1000)::int8 END,
           k.ver, e.*
    FROM unnest($2) u (key)
    JOIN redis.kv k ON k.db = $1 AND k.key = u.key
    -- OFFSET keeps the condition inside, where it is asked before the function is called.
    LEFT JOIN LATERAL (SELECT * FROM redis.elements(k.t, k.kid) WHERE k.t <> 's' OFFSET 0) e
        ON true
$$;

-- Removes up to `most` rows of collections that have no key any more; gives how many.
CREATE FUNCTION redis.sweep(most int8) RETURNS int8
LANGUAGE plpgsql AS $$
DECLARE
    gone record;
    place text;
    removed int8 := 0;
    swept int8;
BEGIN
    WHILE removed < most LOOP
        SELECT o.kid, o.t INTO gone FROM redis.orphan o LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        -- A key that was renamed has taken its collection along.
        IF NOT EXISTS (SELECT FROM redis.kv k WHERE k.kid = gone.kid) THEN
            FOREACH place IN ARRAY CASE gone.t
                WHEN 'h' THEN ARRAY['hash'] WHEN 'e' THEN ARRAY['set_']
                WHEN 'z' THEN ARRAY['zset'] WHEN 'l' THEN ARRAY['list']
                ELSE ARRAY['stream', 'stream_group'] END
            LOOP
                EXECUTE format('DELETE FROM redis.%1$I WHERE ctid = ANY (ARRAY('
                               'SELECT ctid FROM redis.%1$I WHERE kid = $1 LIMIT $2))', place)
                USING gone.kid, most - removed;
                GET DIAGNOSTICS swept = ROW_COUNT;
                removed := removed + swept;
                IF removed >= most THEN
                    RETURN removed;
                END IF;
            END LOOP;
        END IF;
        DELETE FROM redis.orphan o WHERE o.kid = gone.kid;
        removed := removed + 1;
    END LOOP;
    RETURN removed;
END $$;

-- Some key of a database, or NULL when it is empty.
CREATE FUNCTION redis.random_key(kv_db int2) RETURNS bytea
LANGUAGE plpgsql AS $$
DECLARE
    pages int8 := pg_relation_size('redis.kv') / current_setting('block_size')::int8;
    page int8;
    found_key bytea;
BEGIN
    -- Some pages at a random place; where keys are few, or another database's, all of them.
    FOR attempt IN 1..4 LOOP
        page := floor(random() * pages);
        SELECT coalesce(k.name, k.key) INTO found_key FROM redis.kv k
        WHERE k.ctid >= format('(%s,0)', page)::tid AND k.ctid < format('(%s,0)', page + 4)::tid
          AND k.db = kv_db AND (k.expires_at IS NULL OR k.expires_at > now())
        ORDER BY random() LIMIT 1;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    SELECT coalesce(k.name, k.key) INTO found_key FROM redis.kv k
    WHERE k.db = kv_db AND (k.expires_at IS NULL OR k.expires_at > now())
    ORDER BY random() LIMIT 1;
    RETURN found_key;
END $$;
