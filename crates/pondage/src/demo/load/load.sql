-- What the load pays into: few rows, so that calls meet.

CREATE TABLE tills (till int PRIMARY KEY, takings bigint NOT NULL);
INSERT INTO tills SELECT i, 0 FROM generate_series(0, 3) AS i;

CREATE PROCEDURE pay(p_till int) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM name FROM customers WHERE customer_id = 1 + p_till;
    UPDATE tills SET takings = takings + 1 WHERE till = p_till;
END $$;
COMMENT ON PROCEDURE pay IS '@pondage key=p_till';
