
#variable_conflict use_variable
DECLARE
    w ALIAS FOR p_w;
    a CONSTANT int NOT NULL := 1;
    b numeric(10, 2) DEFAULT 0;
    c public.mood[] := '{}';
    d warehouse.w_name%TYPE;
    e "Odd Type";
    f timestamp(3) with time zone = now();
    g int[][];
    h text COLLATE "C" := 'x;y';
BEGIN
    c[1] := 'x'; e.part := 3; g[1][2] := p_w;
    SELECT w_name, 1 INTO STRICT d, b FROM warehouse WHERE w_id = w;
    DECLARE
        b int; -- another one
    BEGIN
        b := 2;
        DELETE FROM warehouse WHERE (w_id, 3) = (w, b);
    END;
END
