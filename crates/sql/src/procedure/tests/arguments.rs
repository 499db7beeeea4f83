//! When a name is an argument.

use super::*;

const UPDATES: [TouchKind; 1] = [TouchKind::Update];

/// Arguments, a body with one UPDATE, and what is found of it.
#[track_caller]
fn check(list: &str, source: &str, expected: &str) {
    let definition = procedure(list, source);
    let found = all(&definition, &UPDATES).join("; ");
    assert_eq!(found, expected, "{source}");
}

#[test]
fn conditions_are_found_in_any_order_and_form() {
    let cases = [
        ("UPDATE t SET x = 1 WHERE a = p;", "Update t a=p"),
        ("UPDATE t SET x = 1 WHERE p = a;", "Update t a=p"),
        ("UPDATE t SET x = 1 WHERE b = q AND (x > 3 AND a = p);", "Update t b=q a=p"),
        ("UPDATE t SET x = 1 WHERE a = p::bigint AND b = CAST(q AS text);", "Update t a=p b=q"),
        ("UPDATE t SET x = 1 WHERE a IN (p);", "Update t a=p"),
        ("UPDATE t SET x = 1 WHERE a IN (p, q);", "Update t"),
        ("UPDATE t SET x = 1 WHERE (a, b) = (p, q);", "Update t a=p b=q"),
        ("UPDATE t SET x = 1 WHERE ROW(a, b) = ROW(q, p);", "Update t a=q b=p"),
        ("UPDATE t SET x = 1 WHERE (a, b) IN ((p, q));", "Update t a=p b=q"),
        ("UPDATE t SET x = 1 WHERE a = 5 AND b = 'x';", "Update t a=5 b='x'"),
        ("UPDATE t SET x = 1 WHERE a = $1 AND b = $2;", "Update t a=p b=q"),
        ("UPDATE t SET x = 1 WHERE a = f.p;", "Update t a=p"),
        ("UPDATE t AS y SET x = 1 WHERE y.a = p;", "Update t a=p"),
        ("UPDATE s.t SET x = 1 WHERE s.t.a = p AND t.b = q;", "Update s.t a=p b=q"),
        ("UPDATE \"T\" SET x = 1 WHERE \"A\" = p;", "Update T A=p"),
        ("UPDATE t SET x = 1 WHERE A = P;", "Update t a=p"),
    ];
    for (source, expected) in cases {
        check("p int, q int", source, expected);
    }
}

#[test]
fn what_is_not_certain_is_no_condition() {
    let cases = [
        "UPDATE t SET x = 1 WHERE a = p OR b = q;",
        "UPDATE t SET x = 1 WHERE NOT (a = p);",
        "UPDATE t SET x = 1 WHERE a <> p;",
        "UPDATE t SET x = 1 WHERE a = p + 1;",
        "UPDATE t SET x = 1 WHERE a = q.p;",
        "UPDATE t SET x = 1 WHERE a = (SELECT p);",
        "UPDATE t SET x = 1 WHERE a = ANY (p);",
        "UPDATE t SET x = 1 WHERE a = p[1];",
        "UPDATE t SET x = 1 WHERE a::text = p;",
        "UPDATE t SET x = 1 WHERE a IS NOT DISTINCT FROM p;",
        "UPDATE t SET x = 1 WHERE u.a = p;",
        "UPDATE t SET x = 1 WHERE p = q;",
        "UPDATE t SET x = 1 WHERE a = NULL;",
        "UPDATE t SET x = 1 WHERE a OPERATOR(s.=) p;",
        "UPDATE t SET x = 1 WHERE CASE WHEN a = p THEN true END;",
    ];
    for source in cases {
        check("p int, q int", source, "Update t");
    }
}

#[test]
fn a_parameter_that_is_assigned_is_none() {
    let update = "UPDATE t SET x = 1 WHERE a = p AND b = q;";
    let cases = [
        "p := 3;",
        "p = 3;",
        "$1 := 3;",
        "p[1] := 3;",
        "IF q > 1 THEN p := 3; END IF;",
        "BEGIN BEGIN IF q > 1 THEN NULL; ELSE p := 2; END IF; END; END;",
        "SELECT 1 INTO p;",
        "SELECT INTO STRICT p 1;",
        "UPDATE u SET x = 1 RETURNING y INTO p;",
        "EXECUTE 'select 1' INTO p;",
        "FOR p IN SELECT 1 LOOP NULL; END LOOP;",
        "FOR p IN 1 .. 3 LOOP NULL; END LOOP;",
        "FOR p IN EXECUTE 'select 1' LOOP NULL; END LOOP;",
        "FOREACH p IN ARRAY ARRAY[1, 2] LOOP NULL; END LOOP;",
        "GET DIAGNOSTICS p = ROW_COUNT;",
        "DECLARE p int; BEGIN p := 1; END;",
        "DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; FETCH c INTO p; END;",
        "DECLARE z ALIAS FOR p; BEGIN z := 2; END;",
        "CASE q WHEN 1 THEN p := 2; ELSE NULL; END CASE;",
        "LOOP p := 1; EXIT; END LOOP;",
        "BEGIN NULL; EXCEPTION WHEN others THEN p := 1; END;",
    ];
    for case in cases {
        for source in [format!("{case}\n{update}"), format!("{update}\n{case}")] {
            let source = format!("BEGIN\n{source}\nEND");
            let definition = procedure("p int, q int", &source);
            let found = all(&definition, &UPDATES);
            assert!(found.contains(&"Update t b=q".to_owned()), "{source}: {found:?}");
        }
    }
    check("p int, q int", update, "Update t a=p b=q");
}

#[test]
fn what_a_call_may_write_to_is_an_argument_on_condition() {
    let update = "UPDATE t SET x = 1 WHERE a = p AND b = q;";
    let cases = [
        ("CALL g(p);", "Update t a=p!g(0) b=q"),
        ("CALL s.g(1, p + q);", "Update t a=p!s.g(1) b=q!s.g(1)"),
        ("CALL g($1);", "Update t a=p!g(0) b=q"),
        ("CALL g(p[1]);", "Update t a=p!g(0) b=q"),
        ("CALL g(x => p);", "Update t b=q"),
        ("PERFORM g(p);", "Update t a=p b=q"),
        ("IF q > 1 THEN CALL g(f.p); END IF;", "Update t a=p!g(0) b=q"),
    ];
    for (call, expected) in cases {
        check("p int, q int", &format!("{call}\n{update}"), expected);
    }
}

#[test]
fn only_what_goes_in_is_an_argument() {
    let update = "UPDATE t SET x = 1 WHERE a = p;";
    check("INOUT p int", update, "Update t a=p");
    check("OUT p int", update, "Update t");
    check("INOUT p int", &format!("p := 1; {update}"), "Update t");
    check("OUT o int, p int, VARIADIC q int[]", update, "Update t a=p");
    let positional = "UPDATE t SET x = 1 WHERE a = $2;";
    check("OUT o int, int", positional, "Update t a=$2");
    let of_sql = sql("OUT o int, q int", "UPDATE t SET x = 1 WHERE a = $1");
    assert_eq!(all(&of_sql, &UPDATES), ["Update t a=q"]);
    let rows = function(
        "f",
        "p int, TABLE a int",
        "TABLE(a int)",
        "BEGIN UPDATE t SET x = 1 WHERE t.a = p; RETURN QUERY SELECT 1; END",
    );
    assert_eq!(all(&rows, &UPDATES), ["Update t a=p"]);
}

#[test]
fn a_variable_that_is_a_copy_counts_as_the_parameter() {
    let cases = [
        ("DECLARE w int := p; BEGIN UPDATE t SET x = 1 WHERE a = w; END", "Update t a=p"),
        ("DECLARE w int; BEGIN w := p; UPDATE t SET x = 1 WHERE a = w; END", "Update t a=p"),
        ("DECLARE w int := f.p; BEGIN UPDATE t SET x = 1 WHERE a = w; END", "Update t a=p"),
        (
            "DECLARE w int := p; v int := w; BEGIN UPDATE t SET x = 1 WHERE a = v; END",
            "Update t a=p",
        ),
        ("DECLARE w ALIAS FOR $1; BEGIN UPDATE t SET x = 1 WHERE a = w; END", "Update t a=p"),
        ("DECLARE w ALIAS FOR p; BEGIN UPDATE t SET x = 1 WHERE a = w; END", "Update t a=p"),
        ("DECLARE w int := p + 1; BEGIN UPDATE t SET x = 1 WHERE a = w; END", "Update t"),
        ("DECLARE w int := 1; BEGIN w := p; UPDATE t SET x = 1 WHERE a = w; END", "Update t"),
        ("DECLARE w int := p; BEGIN w := w + 1; UPDATE t SET x = 1 WHERE a = w; END", "Update t"),
        (
            "DECLARE w int := p; BEGIN SELECT 1 INTO w; UPDATE t SET x = 1 WHERE a = w; END",
            "Update t",
        ),
        ("DECLARE w int := p; BEGIN p := 2; UPDATE t SET x = 1 WHERE a = w; END", "Update t"),
        (
            "DECLARE w int := p; BEGIN DECLARE w int; BEGIN UPDATE t SET x = 1 WHERE a = w; END; \
             END",
            "Update t",
        ),
        ("DECLARE w t.a%TYPE := p; BEGIN UPDATE t SET x = 1 WHERE a = w; END", "Update t a=p"),
    ];
    for (source, expected) in cases {
        check("p int", source, expected);
    }
}

#[test]
fn the_language_decides_between_columns_and_variables() {
    let update = "UPDATE t SET x = 1 WHERE a = p;";
    let block = format!("BEGIN {update} END");
    check("p int", &format!("#variable_conflict error\n{block}"), "Update t a=p");
    check("p int", &format!("#variable_conflict use_variable\n{block}"), "Update t a=p");
    check("p int", &format!("#variable_conflict use_column\n{block}"), "Update t a=p!t.p");
    // A column with the name of a variable is the variable, or an error.
    check("p int, a int", update, "Update t");
    check("p int, a int", "UPDATE t SET x = 1 WHERE t.a = p;", "Update t a=p");
    let column = "#variable_conflict use_column\nBEGIN UPDATE t SET x = 1 WHERE a = p; END";
    check("p int, a int", column, "Update t a=p!t.p");
    let of_sql = sql("p int", "UPDATE t SET x = 1 WHERE a = p");
    assert_eq!(all(&of_sql, &UPDATES), ["Update t a=p!t.p"]);
    let qualified = sql("p int", "UPDATE t SET x = 1 WHERE a = f.p");
    assert_eq!(all(&qualified, &UPDATES), ["Update t a=p"]);
    // Of several tables it has to be known which has the column.
    let from = "UPDATE t SET x = 1 FROM u WHERE a = p;";
    check("p int", from, "Update t a=p!u.a");
    check("p int", "UPDATE t SET x = 1 FROM u WHERE t.a = p AND u.b = t.b;", "Update t a=p");
    check("p int", "UPDATE t SET x = 1 FROM (SELECT 1) u WHERE a = p;", "Update t");
    check("p int", "UPDATE t SET x = 1 FROM u f WHERE t.a = f.p;", "Update t");
    check("p int", "<<f>> BEGIN UPDATE t SET x = 1 WHERE t.a = f.p; END", "Update t");
}

#[test]
fn the_facts_confirm_what_must_not_exist() {
    let definition = sql("p int", "UPDATE t SET x = 1 WHERE a = p");
    let analysis = analysed(&definition);
    for (columns, found) in [("a x", 1), ("a p x", 0)] {
        let mut facts = Facts::default();
        facts.insert(name("t"), table(columns, "a"));
        assert_eq!(footprints(&analysis.touches, &facts).len(), found, "{columns}");
    }
    assert_eq!(footprints(&analysis.touches, &Facts::default()), []);
}
