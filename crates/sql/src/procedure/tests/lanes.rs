//! Keys, and words about them.

use super::*;

fn facts() -> Facts {
    let mut facts = Facts::default();
    for (name_of, columns, unique) in [
        ("warehouse", "w_id w_name w_tax w_ytd", "w_id"),
        ("district", "d_w_id d_id d_name d_ytd d_next_o_id", "d_w_id d_id"),
        ("customer", "c_w_id c_d_id c_id c_first c_last c_balance", "c_w_id c_d_id c_id"),
        ("orders", "o_w_id o_d_id o_id o_c_id o_entry_d o_carrier_id", "o_w_id o_d_id o_id"),
        ("new_order", "no_w_id no_d_id no_o_id", "no_w_id no_d_id no_o_id"),
        ("order_line", "ol_w_id ol_d_id ol_o_id ol_number", "ol_w_id ol_d_id ol_o_id ol_number"),
        ("item", "i_id i_price i_name i_data", "i_id"),
        ("stock", "s_w_id s_i_id s_quantity", "s_w_id s_i_id"),
        ("account", "id owner balance", "id"),
        ("ledger", "account_id entry amount", "account_id entry"),
    ] {
        let mut relation = table(columns, unique);
        relation.title = Some(name(&format!("public.{name_of}")));
        facts.insert(name(name_of), relation);
    }
    facts.insert(name("history"), table("h_c_id h_c_d_id h_c_w_id", ""));
    facts
}

struct Known {
    definition: Definition,
    analysis: Analysis,
    summary: Summary,
}

#[track_caller]
fn known(definition: Definition) -> Known {
    let analysis = analysed(&definition);
    let summary = Closure::new(definition.clone(), analysis.clone()).summary();
    let hazards = analysis.hazards.clone();
    Known { definition, analysis, summary: Summary { hazards, ..summary } }
}

fn derived(known: &[Known], facts: &Facts) -> Vec<(Derived, Vec<String>)> {
    let list: Vec<Procedure> = known
        .iter()
        .map(|one| Procedure {
            definition: &one.definition,
            analysis: &one.analysis,
            summary: &one.summary,
        })
        .collect();
    let keys = derive(&list, facts);
    keys.into_iter().zip(&list).map(|(key, one)| (key.clone(), key.lines(one))).collect()
}

fn keys(known: &[Known], facts: &Facts) -> Vec<(Vec<usize>, Vec<Vec<usize>>)> {
    derived(known, facts).into_iter().map(|(one, _)| (one.key, one.also)).collect()
}

fn payment() -> Known {
    let list = "p_w int, p_d int, p_cw int, p_cd int, p_c int, p_last text, p_amount numeric, \
                OUT receipt payment_receipt";
    let body = include_str!("../../../tests/corpus/procedures/tpcc_payment.sql");
    known(function("payment", list, "", body))
}

fn neworder() -> Known {
    let list = "p_w int, p_d int, p_c int, p_items int[], p_supply int[], p_quantity int[]";
    let body = include_str!("../../../tests/corpus/procedures/tpcc_neworder.sql");
    known(function("neworder", list, "order_receipt", body))
}

#[test]
fn tpcc_has_the_warehouse_for_its_key() {
    // There is no foreign key from customers to warehouses, but neworder reads both by one
    // argument.
    let both = [payment(), neworder()];
    assert_eq!(keys(&both, &facts()), [(vec![0], vec![vec![2]]), (vec![0], vec![])]);
    assert_eq!(keys(&[payment()], &facts()), [(vec![0], vec![])]);
}

#[test]
fn tpcc_with_foreign_keys_reserves_the_customers_warehouse_too() {
    let mut facts = facts();
    let mut district = table("d_w_id d_id d_ytd d_next_o_id", "d_w_id d_id");
    let mut customer = table("c_w_id c_d_id c_id c_last", "c_w_id c_d_id c_id");
    let key = |columns: &[&str], target: &str, others: &[&str]| ForeignKey {
        columns: columns.iter().map(|one| (*one).to_owned()).collect(),
        target: Some(name(target)),
        target_columns: others.iter().map(|one| (*one).to_owned()).collect(),
    };
    district.title = Some(name("public.district"));
    district.foreign_keys = vec![key(&["d_w_id"], "public.warehouse", &["w_id"])];
    customer.title = Some(name("public.customer"));
    customer.foreign_keys =
        vec![key(&["c_w_id", "c_d_id"], "public.district", &["d_w_id", "d_id"])];
    facts.insert(name("district"), district);
    facts.insert(name("customer"), customer);
    let found = derived(&[payment(), neworder()], &facts);
    assert_eq!((&found[0].0.key, &found[0].0.also), (&vec![0], &vec![vec![2]]));
    assert_eq!((&found[1].0.key, &found[1].0.also), (&vec![0], &Vec::new()));
    let lines = [
        "line 8: UPDATE public.warehouse: w_id = p_w; one row",
        "line 12: UPDATE public.district: d_w_id = p_w, d_id = p_d; one row",
        "line 22: SELECT FOR UPDATE public.customer: c_w_id = p_cw, c_d_id = p_cd; the first \
         columns of a key",
        "line 30: UPDATE public.customer: c_w_id = p_cw, c_d_id = p_cd; the first columns of a \
         key; under a condition",
        "line 36: UPDATE public.customer: c_w_id = p_cw, c_d_id = p_cd; the first columns of a \
         key; under a condition",
        "key (p_w) also (p_cw): 2 of 5 footprints are within one w_id of public.warehouse; calls \
         of neworder are kept apart by the same; (p_cw) may name another one of them",
        "move UPDATE warehouse (line 8) to just before line 41, which depends on it: its row is \
         then held for 4 fewer statements",
    ];
    assert_eq!(found[0].1, lines);
    let lines = [
        "line 13: UPDATE public.district: d_w_id = p_w, d_id = p_d; one row",
        "key (p_w): 1 of 1 footprints are within one d_w_id of public.district; calls of payment \
         are kept apart by the same",
        "move UPDATE district (line 13) to just before line 17, which depends on it: its row is \
         then held for 1 fewer statement",
    ];
    assert_eq!(found[1].1, lines);
}

#[test]
fn neworder_alone_has_the_district() {
    assert_eq!(keys(&[neworder()], &facts()), [(vec![0, 1], vec![])]);
}

#[test]
fn two_rows_of_one_table_are_a_key_and_an_also() {
    let transfer = known(procedure(
        "p_from int, p_to int, p_amount numeric",
        "UPDATE account SET balance = balance - p_amount WHERE id = p_from;\n\
         UPDATE account SET balance = balance + p_amount WHERE id = p_to;",
    ));
    assert_eq!(keys(&[transfer], &facts()), [(vec![0], vec![vec![1]])]);
}

#[test]
fn without_footprints_there_is_no_key() {
    let cases = [
        ("UPDATE account SET balance = 0;", "no statement that changes"),
        ("PERFORM 1 FROM account WHERE id = p;", "it changes and locks no rows"),
        ("UPDATE account SET balance = 0 WHERE owner = p;", "no statement that changes"),
        ("UPDATE ledger SET amount = 0 WHERE entry = p;", "no statement that changes"),
        ("UPDATE elsewhere SET amount = 0 WHERE id = p;", "no statement that changes"),
    ];
    for (source, why) in cases {
        let found = derived(&[known(procedure("p int", source))], &facts());
        assert!(found[0].0.key.is_empty(), "{source}");
        assert!(found[0].0.why.starts_with(why), "{source}: {}", found[0].0.why);
    }
}

#[test]
fn prefixes_and_inserts_count_for_what_they_are() {
    let cases = [
        ("DELETE FROM ledger WHERE account_id = p;", vec![0]),
        ("UPDATE ledger SET amount = 0 WHERE account_id = 5 AND entry = p;", vec![0]),
        ("INSERT INTO account VALUES (p, 'x', 0);", vec![0]),
        ("INSERT INTO account (balance, id) VALUES (0, p);", vec![0]),
        ("INSERT INTO ledger VALUES (p, nextval('s'), 0);", vec![]),
        ("PERFORM 1 FROM account WHERE id = p FOR UPDATE;", vec![0]),
        (
            "MERGE INTO account USING (SELECT 1) s ON account.id = p WHEN MATCHED THEN DELETE;",
            vec![0],
        ),
    ];
    for (source, key) in cases {
        let found = keys(&[known(procedure("p int", source))], &facts());
        assert_eq!(found[0].0, key, "{source}");
    }
}

#[test]
fn procedures_without_a_table_in_common_have_keys_of_their_own() {
    let one = known(procedure("p int", "UPDATE account SET balance = 0 WHERE id = p;"));
    let other = known(procedure(
        "a int, b int",
        "UPDATE stock SET s_quantity = 0 WHERE s_w_id = b AND s_i_id = a;",
    ));
    assert_eq!(keys(&[one, other], &facts()), [(vec![0], vec![]), (vec![1, 0], vec![])]);
}

#[test]
fn advice_moves_the_hottest_row_as_far_down_as_it_can() {
    let hot = "UPDATE account SET balance = 0 WHERE id = p";
    let cases = [
        (
            format!("{hot};\nDELETE FROM item;"),
            Some("last: its row is then held for 1 fewer statement"),
        ),
        (format!("{hot};\nDELETE FROM item;\nDELETE FROM stock;"), Some("for 2 fewer statements")),
        (format!("DELETE FROM item;\n{hot};"), None),
        (format!("{hot};\nPERFORM 1 FROM account;\nDELETE FROM item;"), None),
        (format!("{hot} RETURNING id INTO q;\nDELETE FROM item WHERE i_id = q;"), None),
        (
            format!("{hot} RETURNING id INTO q;\nDELETE FROM item;\nPERFORM q;"),
            Some("to just before line 5"),
        ),
        (format!("{hot};\nIF NOT FOUND THEN RETURN; END IF;\nDELETE FROM item;"), None),
        (format!("{hot};\nGET DIAGNOSTICS q = ROW_COUNT;\nDELETE FROM item;"), None),
        (format!("{hot};\nIF q > 1 THEN RETURN; END IF;\nDELETE FROM item;"), None),
        (format!("{hot};\nEXECUTE 'x';\nDELETE FROM item;"), None),
        (format!("{hot};\nDELETE FROM item;\nRETURN;"), Some("last")),
        (format!("LOOP {hot}; EXIT; END LOOP;\nDELETE FROM item;"), None),
    ];
    for (source, expected) in cases {
        let found = derived(&[known(procedure("p int, OUT q int", &source))], &facts());
        let advice = found[0].0.advice.as_deref();
        let right = match (advice, expected) {
            (Some(advice), Some(expected)) => advice.contains(expected),
            (advice, expected) => advice.is_none() && expected.is_none(),
        };
        assert!(right, "{source}: {advice:?}, expected {expected:?}");
    }
}
