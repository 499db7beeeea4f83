
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
END 