
BEGIN
    PERFORM neworder(p_w, p_d, p_c, p_items, p_supply, p_quantity);
    RAISE EXCEPTION 'an order of an item that does not exist was taken';
EXCEPTION WHEN foreign_key_violation THEN
    RETURN SQLERRM;
END 