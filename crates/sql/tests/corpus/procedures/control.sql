
<<outer_block>>
DECLARE
    v_count int := 0;
    v_row stock%ROWTYPE;
BEGIN
    IF p_w > 1 THEN
        UPDATE stock SET s_quantity = 1 WHERE s_w_id = p_w;
    ELSIF p_w < 0 THEN
        RAISE EXCEPTION 'no warehouse %', p_w USING ERRCODE = 'no_data_found', HINT = 'none';
    ELSE
        NULL;
    END IF;
    CASE p_w WHEN 1, 2 THEN PERFORM pg_notify('a', 'b'); ELSE v_count := v_count + 1; END CASE;
    CASE WHEN p_w IS NULL THEN NULL; ELSE v_count := 2; END CASE;
    <<rows>>
    FOR v_row IN SELECT * FROM stock WHERE s_w_id = p_w LOOP
        CONTINUE rows WHEN v_row.s_quantity > 3;
        EXIT rows WHEN v_count > 10;
        v_count := v_count + 1;
    END LOOP rows;
    WHILE v_count > 0 LOOP v_count := v_count - 1; END LOOP;
    FOR n IN REVERSE 10 .. 1 BY 2 LOOP INSERT INTO history VALUES (n, p_w); END LOOP;
    FOREACH v_count IN ARRAY ARRAY[1, 2] LOOP NULL; END LOOP;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    ASSERT v_count > 0, 'some';
    EXECUTE format('UPDATE %I SET x = $1', 'stock') USING p_w;
    BEGIN
        WITH gone AS (DELETE FROM new_order WHERE no_w_id = p_w RETURNING *)
        INSERT INTO history SELECT no_o_id FROM gone;
    EXCEPTION
        WHEN unique_violation OR lock_not_available THEN
            GET STACKED DIAGNOSTICS v_count = RETURNED_SQLSTATE;
        WHEN OTHERS THEN
            RAISE;
    END;
    CALL payment(p_w);
    COMMIT;
END outer_block
