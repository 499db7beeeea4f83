
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
END 