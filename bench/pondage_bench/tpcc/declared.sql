-- By which arguments calls of procedures.sql conflict, as Pondage reads it.
COMMENT ON PROCEDURE payment IS '@pondage key=p_w also=p_cw';
COMMENT ON FUNCTION neworder IS '@pondage key=p_w';
COMMENT ON FUNCTION neworder_refused IS '@pondage key=p_w';
