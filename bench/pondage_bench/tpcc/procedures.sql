-- Payment (TPC-C 2.5) and new-order (2.4) as an application would have them in the database.
CREATE TYPE payment_receipt AS (
    paid_at timestamptz,
    w_street_1 text, w_street_2 text, w_city text, w_state text, w_zip text,
    d_street_1 text, d_street_2 text, d_city text, d_state text, d_zip text,
    c_id int, c_first text, c_middle text, c_last text,
    c_street_1 text, c_street_2 text, c_city text, c_state text, c_zip text,
    c_phone text, c_since timestamptz, c_credit text, c_credit_lim numeric,
    c_discount numeric, c_balance numeric, c_data text
);

-- The customer by number, or by last name where that is given.
CREATE PROCEDURE payment(
    p_w int, p_d int, p_cw int, p_cd int, p_c int, p_last text, p_amount numeric,
    OUT receipt payment_receipt
) LANGUAGE plpgsql AS $$
DECLARE
    v_c int := p_c;
    v_w_name text;
    v_d_name text;
BEGIN
    receipt.paid_at := now();
    UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w
    RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip
    INTO STRICT v_w_name, receipt.w_street_1, receipt.w_street_2, receipt.w_city,
        receipt.w_state, receipt.w_zip;
    UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w AND d_id = p_d
    RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip
    INTO STRICT v_d_name, receipt.d_street_1, receipt.d_street_2, receipt.d_city,
        receipt.d_state, receipt.d_zip;
    IF p_last IS NOT NULL THEN
        SELECT named.c_id INTO STRICT v_c
        FROM (SELECT c_id, row_number() OVER (ORDER BY c_first) AS place, count(*) OVER () AS people
              FROM customer WHERE c_w_id = p_cw AND c_d_id = p_cd AND c_last = p_last) named
        WHERE place = (people + 1) / 2;
    END IF;
    SELECT c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip,
        c_phone, c_since, c_credit, c_credit_lim, c_discount
    INTO STRICT receipt.c_id, receipt.c_first, receipt.c_middle, receipt.c_last,
        receipt.c_street_1, receipt.c_street_2, receipt.c_city, receipt.c_state, receipt.c_zip,
        receipt.c_phone, receipt.c_since, receipt.c_credit, receipt.c_credit_lim,
        receipt.c_discount
    FROM customer WHERE c_w_id = p_cw AND c_d_id = p_cd AND c_id = v_c FOR UPDATE;
    IF receipt.c_credit = 'BC' THEN
        UPDATE customer SET c_balance = c_balance - p_amount,
            c_ytd_payment = c_ytd_payment + p_amount, c_payment_cnt = c_payment_cnt + 1,
            c_data = left(concat_ws(' ', v_c, p_cd, p_cw, p_d, p_w, p_amount, c_data), 500)
        WHERE c_w_id = p_cw AND c_d_id = p_cd AND c_id = v_c
        RETURNING c_balance, left(c_data, 200) INTO receipt.c_balance, receipt.c_data;
    ELSE
        UPDATE customer SET c_balance = c_balance - p_amount,
            c_ytd_payment = c_ytd_payment + p_amount, c_payment_cnt = c_payment_cnt + 1
        WHERE c_w_id = p_cw AND c_d_id = p_cd AND c_id = v_c
        RETURNING c_balance INTO receipt.c_balance;
    END IF;
    INSERT INTO history VALUES (
        v_c, p_cd, p_cw, p_d, p_w, receipt.paid_at, p_amount, v_w_name || '    ' || v_d_name);
END $$;

CREATE TYPE ordered_line AS (
    i_name text, s_quantity int, brand_generic text, i_price numeric, ol_amount numeric
);
CREATE TYPE order_receipt AS (
    o_id int, o_entry_d timestamptz, c_last text, c_credit text, c_discount numeric,
    w_tax numeric, d_tax numeric, total numeric, lines ordered_line[]
);

CREATE FUNCTION neworder(
    p_w int, p_d int, p_c int, p_items int[], p_supply int[], p_quantity int[]
) RETURNS order_receipt LANGUAGE plpgsql AS $$
DECLARE
    r order_receipt;
    v_count int := cardinality(p_items);
    v_line ordered_line;
    v_i_data text;
    v_s_data text;
    v_dist text;
BEGIN
    r.o_entry_d := now();
    r.total := 0;
    SELECT w_tax INTO STRICT r.w_tax FROM warehouse WHERE w_id = p_w;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w AND d_id = p_d
    RETURNING d_next_o_id - 1, d_tax INTO STRICT r.o_id, r.d_tax;
    SELECT c_discount, c_last, c_credit INTO STRICT r.c_discount, r.c_last, r.c_credit
    FROM customer WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = p_c;
    INSERT INTO orders VALUES (
        p_w, p_d, r.o_id, p_c, r.o_entry_d, NULL, v_count, (p_w = ALL (p_supply))::int);
    INSERT INTO new_order VALUES (p_w, p_d, r.o_id);
    FOR n IN 1 .. v_count LOOP
        SELECT i_price, i_name, i_data INTO v_line.i_price, v_line.i_name, v_i_data
        FROM item WHERE i_id = p_items[n];
        IF NOT FOUND THEN
            RAISE EXCEPTION 'item number is not valid' USING ERRCODE = 'foreign_key_violation';
        END IF;
        UPDATE stock SET
            s_quantity = s_quantity - p_quantity[n]
                + CASE WHEN s_quantity - p_quantity[n] >= 10 THEN 0 ELSE 91 END,
            s_ytd = s_ytd + p_quantity[n], s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (p_supply[n] <> p_w)::int
        WHERE s_w_id = p_supply[n] AND s_i_id = p_items[n]
        RETURNING s_quantity, s_data, CASE p_d
            WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
            WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
            WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
            ELSE s_dist_10 END
        INTO STRICT v_line.s_quantity, v_s_data, v_dist;
        v_line.brand_generic := CASE
            WHEN v_i_data LIKE '%ORIGINAL%' AND v_s_data LIKE '%ORIGINAL%' THEN 'B' ELSE 'G' END;
        v_line.ol_amount := p_quantity[n] * v_line.i_price;
        INSERT INTO order_line VALUES (
            p_w, p_d, r.o_id, n, p_items[n], p_supply[n], NULL, p_quantity[n],
            v_line.ol_amount, v_dist);
        r.total := r.total + v_line.ol_amount;
        r.lines := r.lines || v_line;
    END LOOP;
    r.total := r.total * (1 - r.c_discount) * (1 + r.w_tax + r.d_tax);
    RETURN r;
END $$;
