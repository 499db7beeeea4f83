-- What fills the tables, by TPC-C 4.3.3.1. The schema `fill` is dropped after loading.
CREATE SCHEMA fill;

-- Customer last names, 4.3.2.3.
CREATE FUNCTION fill.last_name(number int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])
        [number / 100 + 1]
    || (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])
        [number / 10 % 10 + 1]
    || (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])
        [number % 10 + 1];

CREATE FUNCTION fill.whole(low int, high int) RETURNS int LANGUAGE sql VOLATILE
RETURN low + floor(random() * (high - low + 1))::int;

-- 128 letters and digits.
CREATE FUNCTION fill.letters() RETURNS text LANGUAGE sql VOLATILE
RETURN encode(sha512(float8send(random())), 'hex');

-- A random string of `low` to `high` of them.
CREATE FUNCTION fill.text(low int, high int) RETURNS text LANGUAGE sql VOLATILE
RETURN left(fill.letters(), fill.whole(low, high));

CREATE FUNCTION fill.zip() RETURNS text LANGUAGE sql VOLATILE
RETURN lpad(fill.whole(0, 9999)::text, 4, '0') || '11111';

-- 26 to 50 characters; a tenth of all hold ORIGINAL somewhere.
CREATE FUNCTION fill.data() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    plain text := fill.text(26, 50);
BEGIN
    IF random() >= 0.1 THEN
        RETURN plain;
    END IF;
    RETURN overlay(plain PLACING 'ORIGINAL' FROM fill.whole(1, length(plain) - 7));
END $$;

-- 2.1.6
CREATE FUNCTION fill.nurand(a int, low int, high int, c int) RETURNS int LANGUAGE sql VOLATILE
RETURN ((fill.whole(0, a) | fill.whole(low, high)) + c) % (high - low + 1) + low;

CREATE PROCEDURE fill.items(items int) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM setseed(0.5);
    INSERT INTO item
    SELECT i, fill.whole(1, 10000), fill.text(14, 24), fill.whole(100, 10000) / 100.0, fill.data()
    FROM generate_series(1, items) i;
END $$;

-- One warehouse with all that belongs to it. The same every time: the seed is its number.
CREATE PROCEDURE fill.warehouse(w int, customers int, items int, c_last_c int)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM setseed(1.0 / (w + 1));
    INSERT INTO warehouse VALUES (
        w, fill.text(6, 10), fill.text(10, 20), fill.text(10, 20), fill.text(10, 20),
        upper(fill.text(2, 2)), fill.zip(), fill.whole(0, 2000) / 10000.0, 10 * customers * 10);
    INSERT INTO stock
    SELECT w, i, fill.whole(10, 100),
        substr(x.s, 1, 24), substr(x.s, 25, 24), substr(x.s, 49, 24), substr(x.s, 73, 24),
        substr(x.s, 97, 24), substr(x.s, 121, 24), substr(x.s, 145, 24), substr(x.s, 169, 24),
        substr(x.s, 193, 24), substr(x.s, 217, 24),
        0, 0, 0, fill.data()
    -- Named after the row, so that it is made for each.
    FROM generate_series(1, items) i,
        LATERAL (SELECT fill.letters() || fill.letters() || left('', i) AS s) x;
    FOR d IN 1 .. 10 LOOP
        CALL fill.district(w, d, customers, items, c_last_c);
    END LOOP;
END $$;

CREATE PROCEDURE fill.district(w int, d int, customers int, items int, c_last_c int)
LANGUAGE plpgsql AS $$
DECLARE
    -- The last three tenths are not delivered.
    delivered int := customers * 7 / 10;
    names int := least(customers, 1000);
BEGIN
    INSERT INTO district VALUES (
        w, d, fill.text(6, 10), fill.text(10, 20), fill.text(10, 20), fill.text(10, 20),
        upper(fill.text(2, 2)), fill.zip(), fill.whole(0, 2000) / 10000.0,
        customers * 10, customers + 1);
    INSERT INTO customer
    SELECT w, d, c, fill.text(8, 16), 'OE',
        fill.last_name(CASE WHEN c <= names THEN c - 1
                  ELSE fill.nurand(255, 0, names - 1, c_last_c) END),
        fill.text(10, 20), fill.text(10, 20), fill.text(10, 20), upper(fill.text(2, 2)),
        fill.zip(), lpad(floor(random() * 1e16)::int8::text, 16, '0'), now(),
        CASE WHEN random() < 0.1 THEN 'BC' ELSE 'GC' END, 50000,
        fill.whole(0, 5000) / 10000.0, -10, 10, 1, 0,
        left(fill.letters() || fill.letters() || fill.letters() || fill.letters(),
             fill.whole(300, 500))
    FROM generate_series(1, customers) c;
    INSERT INTO history
    SELECT c, d, w, d, w, now(), 10, fill.text(12, 24) FROM generate_series(1, customers) c;
    -- As many orders as customers, each customer once, in random order.
    WITH placed AS (
        INSERT INTO orders
        SELECT w, d, o, c, now(), CASE WHEN o <= delivered THEN fill.whole(1, 10) END,
            fill.whole(5, 15), 1
        FROM (SELECT row_number() OVER (ORDER BY random())::int AS o, c
              FROM generate_series(1, customers) c) shuffled
        RETURNING *
    )
    INSERT INTO order_line
    SELECT w, d, o_id, number, fill.whole(1, items), w,
        CASE WHEN o_id <= delivered THEN o_entry_d END, 5,
        CASE WHEN o_id <= delivered THEN 0 ELSE fill.whole(1, 999999) / 100.0 END,
        left(fill.letters(), 24)
    FROM placed, generate_series(1, o_ol_cnt) number;
    INSERT INTO new_order SELECT w, d, o FROM generate_series(delivered + 1, customers) o;
END $$;
