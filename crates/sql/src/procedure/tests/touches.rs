//! What a body touches.

use super::*;

const TABLES: [TouchKind; 9] = [
    TouchKind::Read,
    TouchKind::Lock,
    TouchKind::Insert,
    TouchKind::Update,
    TouchKind::Delete,
    TouchKind::Merge,
    TouchKind::Truncate,
    TouchKind::LockTable,
    TouchKind::Ddl,
];

#[track_caller]
fn check(source: &str, expected: &[&str]) {
    let definition = procedure("p int, q int", source);
    assert_eq!(all(&definition, &TABLES), expected, "{source}");
}

#[test]
fn every_kind_of_statement_is_told() {
    check("PERFORM 1 FROM t WHERE a = p;", &["Read t a=p"]);
    check("PERFORM 1 FROM t WHERE a = p FOR UPDATE;", &["Lock t a=p"]);
    check(
        "PERFORM 1 FROM t, u WHERE t.a = p AND u.b = q FOR SHARE OF u;",
        &["Read t a=p", "Lock u b=q"],
    );
    check("PERFORM 1 FROM (SELECT * FROM t WHERE a = p) s FOR UPDATE;", &["Lock t a=p"]);
    check("DELETE FROM t WHERE a = p;", &["Delete t a=p"]);
    check("DELETE FROM t USING u WHERE t.a = p AND u.b = q;", &["Delete t a=p", "Read u b=q"]);
    check("INSERT INTO t (a, b) VALUES (p, 3);", &["Insert t a=p b=3"]);
    check("INSERT INTO t VALUES (p, now(), q);", &["Insert t <p> <?> <q>"]);
    check("INSERT INTO t (a) VALUES (p), (q);", &["Insert t"]);
    check("INSERT INTO t (a, b) SELECT p, q;", &["Insert t a=p b=q"]);
    check("INSERT INTO t SELECT * FROM u WHERE b = p;", &["Insert t", "Read u b=p"]);
    check(
        "INSERT INTO t (a) VALUES (p) ON CONFLICT (a) DO UPDATE SET b = 1;",
        &["Insert t a=p", "Update t a=p"],
    );
    check(
        "INSERT INTO t (a, b) VALUES (p, q) ON CONFLICT (b) DO UPDATE SET c = 1;",
        &["Insert t a=p b=q", "Update t b=q"],
    );
    check("INSERT INTO t VALUES (p) ON CONFLICT DO NOTHING;", &["Insert t <p>"]);
    check(
        "MERGE INTO t USING u ON t.a = p AND u.b = t.b WHEN MATCHED THEN DELETE;",
        &["Merge t a=p", "Read u"],
    );
    check("TRUNCATE TABLE ONLY t, s.u;", &["Truncate t", "Truncate s.u"]);
    check("LOCK TABLE t IN SHARE MODE;", &["LockTable t"]);
    check("DROP TABLE t;", &["Ddl DROP"]);
    check("CREATE TABLE x AS SELECT * FROM t WHERE a = p;", &["Ddl CREATE", "Read t a=p"]);
}

#[test]
fn nothing_inside_of_a_statement_is_missed() {
    check(
        "WITH gone AS (DELETE FROM t WHERE a = p RETURNING *) INSERT INTO u SELECT * FROM gone;",
        &["Delete t a=p", "Insert u"],
    );
    check(
        "UPDATE t SET x = (SELECT max(y) FROM u WHERE b = p) WHERE a = q;",
        &["Update t a=q", "Read u b=p"],
    );
    check("PERFORM 1 FROM t JOIN u ON t.a = p AND u.b = q;", &["Read t a=p", "Read u b=q"]);
    check("PERFORM 1 FROM t LEFT JOIN u ON t.a = p;", &["Read t", "Read u"]);
    check("PERFORM 1 FROM t UNION SELECT 2 FROM u;", &["Read t", "Read u"]);
    check("PERFORM 1 FROM t x(a) WHERE a = p;", &["Read t"]);
    check("IF EXISTS (SELECT 1 FROM t WHERE a = p) THEN NULL; END IF;", &["Read t a=p"]);
    check("p := (SELECT b FROM t WHERE a = q);", &["Read t a=q"]);
    check("RETURN; ", &[]);
    check("RAISE NOTICE '%', (SELECT b FROM t WHERE a = q);", &["Read t a=q"]);
    check("FOR i IN 1 .. (SELECT count(*) FROM t) LOOP NULL; END LOOP;", &["Read t"]);
    let query = "BEGIN RETURN QUERY UPDATE t SET x = 1 WHERE a = p RETURNING x; END";
    let definition = function("f", "p int", "SETOF int", query);
    assert_eq!(all(&definition, &TABLES), ["Update t a=p"]);
}

#[test]
fn the_row_of_a_cursor_has_what_its_query_requires() {
    check(
        "DECLARE c CURSOR FOR SELECT * FROM t WHERE a = p FOR UPDATE; BEGIN\n\
         FOR r IN c LOOP UPDATE t SET x = 1 WHERE CURRENT OF c; END LOOP; END",
        &["Lock t a=p", "Update t a=p"],
    );
    check(
        "DECLARE c refcursor; r record; BEGIN OPEN c FOR SELECT * FROM t WHERE a = p FOR UPDATE;\n\
         FETCH c INTO r; DELETE FROM t WHERE CURRENT OF c; CLOSE c; END",
        &["Lock t a=p", "Delete t a=p"],
    );
    check(
        "DECLARE c refcursor; BEGIN OPEN c FOR SELECT * FROM t WHERE a = p FOR UPDATE; CLOSE c;\n\
         OPEN c FOR SELECT * FROM t WHERE a = q FOR UPDATE; DELETE FROM t WHERE CURRENT OF c; END",
        &["Lock t a=p", "Lock t a=q", "Delete t"],
    );
    // The cursor's argument is a variable of its own.
    check(
        "DECLARE c CURSOR (k s.kind) FOR SELECT * FROM t WHERE a = k AND b = q FOR UPDATE; BEGIN\n\
         OPEN c(p); UPDATE t SET x = 1 WHERE CURRENT OF c; END",
        &["Lock t b=q", "Update t b=q"],
    );
}

#[test]
fn lines_loops_and_conditions_are_told() {
    let definition = procedure(
        "p int",
        "\nBEGIN\nUPDATE t SET x = 1;\nIF p > 1 THEN\n  DELETE FROM t;\nEND IF;\n\
         FOR i IN 1 .. 3 LOOP\n  INSERT INTO t VALUES (i);\nEND LOOP;\nEND",
    );
    let analysis = analysed(&definition);
    let places: Vec<(u32, bool, bool)> =
        analysis.touches.iter().map(|one| (one.line, one.in_loop, one.in_branch)).collect();
    assert_eq!(places, [(3, false, false), (5, false, true), (8, true, false)]);
    let orders: Vec<u32> = analysis.touches.iter().map(|touch| touch.order).collect();
    assert!(orders.windows(2).all(|pair| pair[0] < pair[1]), "{orders:?}");
}

#[test]
fn calls_are_told_with_what_they_are_passed() {
    let definition =
        procedure("p int, q int", "PERFORM s.g(p, 3, q + 1);\nCALL h(q);\nSELECT k(p) FROM t;");
    let calls = all(&definition, &[TouchKind::Call]);
    assert_eq!(calls, ["Call s.g <p> <3> <?>", "Call h <q>", "Call k <p>"]);
    let names: Vec<String> = analysed(&definition).functions.iter().map(Name::to_string).collect();
    assert_eq!(names, ["h", "k", "s.g"]);
}

#[test]
fn bodies_in_sql_are_understood() {
    let plain = sql("p int", "UPDATE t SET x = 1 WHERE a = $1;\n\nDELETE FROM u WHERE b = $1");
    assert_eq!(all(&plain, &TABLES), ["Update t a=p", "Delete u b=p"]);
    assert_eq!(analysed(&plain).touches[1].line, 3);
    let atomic = sql(
        "p int",
        "CREATE OR REPLACE FUNCTION public.f(p integer)\n RETURNS void\n LANGUAGE sql\n\
         BEGIN ATOMIC\n UPDATE t SET x = CASE WHEN true THEN 1 END WHERE (t.a = f.p);\n\
         DELETE FROM u WHERE (u.b = f.p);\nEND\n",
    );
    assert_eq!(all(&atomic, &TABLES), ["Update t a=p", "Delete u b=p"]);
    assert_eq!(analysed(&atomic).touches[0].line, 5);
    let returned = sql(
        "p int",
        "CREATE OR REPLACE FUNCTION public.f(p integer)\n RETURNS integer\n LANGUAGE sql\n\
         RETURN (SELECT t.x FROM t WHERE t.a = p)\n",
    );
    assert_eq!(all(&returned, &TABLES), ["Read t a=p!t.p"]);
}

#[test]
fn types_that_only_the_catalogue_knows_are_no_obstacle() {
    let definition = function(
        "f",
        "p s.kind, r s.row, OUT o public.row[]",
        "s.row[]",
        "DECLARE\n  a s.kind[] := '{}'; b mood; c numeric(10, 2) NOT NULL DEFAULT 0;\n\
         d t%ROWTYPE; e CONSTANT s.dom := 3; g timestamp with time zone; h text COLLATE \"C\";\n\
         i \"Quoted Type\"; j double precision;\n\
         BEGIN\n  a[1] := p; d.x := r.y; SELECT 1, 2 INTO b, c; i.x := 1;\n\
         FOR d IN SELECT * FROM t LOOP NULL; END LOOP;\n\
         UPDATE t SET x = 1 WHERE t.a = p;\nEND",
    );
    assert_eq!(all(&definition, &[TouchKind::Update]), ["Update t a=p"]);
    let line = analysed(&definition).touches.last().map(|touch| touch.line);
    assert_eq!(line, Some(8));
}

#[test]
fn trigger_functions_are_understood() {
    let definition = function(
        "f",
        "",
        "trigger",
        "BEGIN\nIF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\nNEW.x := TG_ARGV[0];\n\
         UPDATE t SET n = n + 1 WHERE a = NEW.a;\nRETURN NEW;\nEND",
    );
    assert_eq!(all(&definition, &TABLES), ["Update t"]);
    let event = function("f", "", "event_trigger", "BEGIN RAISE NOTICE '%', TG_TAG; END");
    assert_eq!(all(&event, &TABLES), Vec::<String>::new());
}
