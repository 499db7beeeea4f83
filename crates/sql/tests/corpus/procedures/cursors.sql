
DECLARE
    some_rows CURSOR (k int, other text) FOR
        SELECT * FROM customer WHERE c_w_id = k FOR UPDATE;
    any_rows refcursor;
    v_row record;
BEGIN
    FOR one IN some_rows(k := p_w, other := 'x') LOOP
        UPDATE customer SET c_balance = 0 WHERE CURRENT OF some_rows;
    END LOOP;
    OPEN some_rows(p_w, 'y');
    FETCH NEXT FROM some_rows INTO v_row;
    MOVE FORWARD 2 FROM some_rows;
    CLOSE some_rows;
    OPEN any_rows SCROLL FOR SELECT * FROM stock WHERE s_w_id = p_w;
    FETCH ABSOLUTE 3 FROM any_rows INTO v_row;
    CLOSE any_rows;
    OPEN any_rows FOR EXECUTE 'SELECT * FROM stock WHERE s_w_id = $1' USING p_w;
    CLOSE any_rows;
END
