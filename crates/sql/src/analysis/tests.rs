use super::*;
use crate::Scan;

fn analyse(text: &str) -> Analysis {
    let mut scan = Scan::new();
    scan.scan(text.as_bytes());
    PostgresParser.analyse(text, scan.literals()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn names(names: &[Name]) -> String {
    names.iter().map(Name::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn statements_are_told_apart() {
    for (text, statement) in [
        ("select 1", Statement::Select),
        ("(table a)", Statement::Select),
        ("values (1)", Statement::Select),
        ("with a as (select 1) update b set c = 1", Statement::Update),
        ("insert into a default values", Statement::Insert),
        ("delete from a", Statement::Delete),
        ("merge into a using b on a.x = b.x when matched then delete", Statement::Merge),
        ("/* a */ create table a (b int)", Statement::Other("CREATE")),
        ("explain select 1", Statement::Other("EXPLAIN")),
        ("select 1 into a", Statement::Select),
    ] {
        let analysis = analyse(text);
        assert_eq!((analysis.statement, analysis.statements), (statement, 1), "{text}");
    }
    for (text, statements) in [("", 0), (" \n", 0), (";", 0), ("-- a", 0), ("select 1; begin", 2)] {
        assert_eq!(analyse(text).statements, statements, "{text}");
    }
    assert_eq!(analyse("").statement, Statement::Other(""));
    for text in ["selec 1", "select (", "select 'a", "select \0"] {
        assert!(PostgresParser.analyse(text, &[]).is_err(), "{text}");
    }
}

#[test]
fn relations_are_those_that_no_with_names() {
    for (text, relations) in [
        ("select * from a, b.c, (select * from \"D\") x", "D a b.c"),
        ("with a as (select * from b) select * from a, c", "b c"),
        // A WITH without RECURSIVE does not know itself, and schemas are always of tables.
        ("with a as (select * from a) select * from a", "a"),
        ("with recursive a as (select * from a) select * from a", ""),
        ("with a as (select 1) select * from s.a", "s.a"),
        ("with a as (select 1), b as (select * from a, c) select 1", "c"),
        ("with a as (select * from b), b as (select 1) select 1", "b"),
        ("select (with a as (select 1) select * from a) from a", "a"),
        ("with x as (delete from a returning *) select * from x", "a"),
        ("insert into a select * from b", "b"),
        ("update a set b = 1 from c where exists (table d)", "c d"),
        ("delete from a using b", "b"),
        ("merge into a using b on true when matched then do nothing", "b"),
        ("select * from a tablesample system (10)", "a"),
        ("select * from a union (select * from b except select * from c)", "a b c"),
    ] {
        assert_eq!(names(&analyse(text).relations), relations, "{text}");
    }
    let written = |text| analyse(text).written.map(|name| name.to_string());
    assert_eq!(written("insert into s.a values (1)").as_deref(), Some("s.a"));
    assert_eq!(written("update only a set b = 1").as_deref(), Some("a"));
    assert_eq!(written("select * from a"), None);
}

#[test]
fn functions_are_found_wherever_they_hide() {
    for (text, functions) in [
        ("select f(g(1), s.h(2))", "f g s.h"),
        ("select * from f(1), lateral (select g()) x", "f g"),
        ("select * from rows from (f(), g()) as x", "f g"),
        ("select sum(a) filter (where f(a)) over (partition by g(a) order by h(a)) from t", "f g h sum"),
        ("select sum(a) over w from t window w as (rows f() preceding)", "f sum"),
        ("select percentile_cont(0.5) within group (order by f(a)) from t", "f percentile_cont"),
        ("select 1 from t group by rollup (f(a)) having g(b) order by h(c) limit i(1) offset j(1)", "f g h i j"),
        ("select distinct on (f(a)) a from t", "f"),
        ("select a at time zone 'x', extract(year from b), c similar to 'd'",
         "pg_catalog.extract pg_catalog.similar_to_escape pg_catalog.timezone"),
        ("select a like b escape c, position(a in b), (a, b) overlaps (c, d)",
         "pg_catalog.like_escape pg_catalog.overlaps pg_catalog.position"),
        ("select case f(a) when g(b) then h(c) else i(d) end", "f g h i"),
        ("select array[f(1)], (array[1])[g(1)], row(h(1)), (i(1)).x, greatest(j(1))", "f g h i j"),
        ("select coalesce(f(1), nullif(g(1), h(1))) is null", "f g h"),
        ("select * from t tablesample my.method (f(1)) repeatable (g(1))", "f g my.method"),
        ("select * from a join b on f(a.x) where g(b.x) in (select h(1)) and i(1) = any (array[j(1)])",
         "f g h i j"),
        ("insert into t values (f(1)) on conflict (g(a)) where h(a) do update set b = i(1) where j(1) returning k(1)",
         "f g h i j k"),
        ("update t set a = f(1), (b, c) = (select g(1), h(1)), d[i(1)] = 2 where j(1) returning k(1)",
         "f g h i j k"),
        ("merge into t using f() x on g(1) when matched and h(1) then update set a = i(1) when not matched then insert values (j(1))",
         "f g h i j"),
        ("with recursive a as (select f(1) union select g(1) from a) search depth first by x set y select 1", "f g"),
        ("select json_value(f(a), '$.x' passing g(1) as y default h(1) on empty)", "f g h"),
        ("select * from json_table(f(a), '$' columns (b int path '$.b' default g(1) on empty)) x", "f g"),
        ("select xmlelement(name a, xmlattributes(f(1) as b), g(2)), xmlserialize(content h(1) as text)", "f g h"),
        ("select * from xmltable(f(1) passing g(1) columns a int path h(1) default i(1)) x", "f g h i"),
        ("select current_timestamp, current_user, current_time(3)", ""),
        ("select f(a => g(1), variadic h(1))", "f g h"),
        ("select a collate \"C\", f(a)::int[]", "f"),
    ] {
        assert_eq!(names(&analyse(text).functions), functions, "{text}");
    }
}

#[test]
fn operators_are_found_by_all_their_names() {
    for (text, operators) in [
        ("select a + b, -c, d operator(s.@@) e", "+ - s.@@"),
        ("select a in (1, 2), b not in (1)", "<> ="),
        ("select a like b, c not ilike d, e similar to f", "!~~* ~ ~~"),
        ("select a between b and c", "<= >="),
        ("select a not between symmetric b and c", "< >"),
        ("select a is distinct from b", "="),
        ("select nullif(a, b)", "="),
        ("select a in (select 1), b > all (select 1), c = any (array[1])", "= >"),
        ("select case a when 1 then 2 end", "="),
        ("select * from a natural join b", "="),
        ("select * from a join b using (c)", "="),
        ("select a from b order by c using <, d", "<"),
        ("select (a, b) >= (c, d)", ">="),
    ] {
        assert_eq!(names(&analyse(text).operators), operators, "{text}");
    }
}

#[test]
fn types_columns_and_parameters_are_listed() {
    let types = |text| names(&analyse(text).types);
    assert_eq!(types("select a::int, cast(b as s.c[]), date 'd'"), "date pg_catalog.int4 s.c");
    assert_eq!(types("select * from f() as x (a my, b numeric(1))"), "my pg_catalog.numeric");
    assert_eq!(types("select * from json_table(a, '$' columns (b my path '$')) x"), "my");
    assert_eq!(types("select interval '1' day"), "pg_catalog.interval");
    let columns = |text| analyse(text).columns;
    assert_eq!(
        columns("select a, t.b, s.t.c, t.*, (d).e, (f(1)).g[1].h"),
        ["b", "c", "e", "g", "h"]
    );
    assert_eq!(analyse("select $2, $1").parameters, 2);
}

#[test]
fn what_is_no_plain_read_is_said() {
    for (text, obstacle) in [
        ("select 1 for update", "FOR UPDATE or FOR SHARE locks rows"),
        ("select (select 1 from a for key share)", "FOR UPDATE or FOR SHARE locks rows"),
        ("with a as (select 1 for share) select 1", "FOR UPDATE or FOR SHARE locks rows"),
        ("select 1 into a", "INTO makes a table"),
        ("with a as (insert into b values (1) returning 1) select 1", "WITH changes data"),
        ("with a as (with b as (delete from c) select 1) select 1", "WITH changes data"),
        ("select xmlconcat(a, b)", "an XML expression"),
        ("select json_query(a, '$')", "an SQL/JSON expression"),
    ] {
        assert_eq!(analyse(text).obstacles, [obstacle], "{text}");
    }
    assert!(analyse("with a as (select 1) select * from a").obstacles.is_empty());
}

/// `p` for a literal that may become a parameter, `f` for one that may not.
fn uses(text: &str) -> String {
    let mut scan = Scan::new();
    assert!(scan.scan(text.as_bytes()), "{text}");
    let analysis = PostgresParser.analyse(text, scan.literals()).expect(text);
    assert_eq!(analysis.literals.len(), scan.literals().len());
    let all = analysis.literals.iter().zip(scan.literals());
    all.map(|(r#use, literal)| match r#use {
        Use::Parameter(oid) => {
            assert_eq!(*oid, literal.kind.oid(), "{text}");
            'p'
        }
        Use::Fixed => 'f',
    })
    .collect()
}

#[test]
fn literals_become_parameters_where_it_is_proven() {
    for (text, expected) in [
        ("select a from t where a = 1", "p"),
        ("select a from t where 'x' <> t.a and b < -1 or not c >= 1.5", "ppp"),
        ("select a from t where a in (1, -2, 3000000000) and b not in ('x')", "pppp"),
        ("select a from t where a between 1 and -2 and b not between 'c' and 'd'", "pppp"),
        ("insert into t values (1, 'a'), (-2, 1.5)", "pppp"),
        ("insert into t (a, b) values (1, f(2)) returning 3", "pff"),
        ("insert into t values (1) on conflict (a) where b = 2 do update set c = 3 where t.d = 4", "pfpp"),
        ("update t set a = 1, b = 'x', c = c + 5, d = -6 where e = 7", "ppppp"),
        ("delete from t using u where t.a = 1", "p"),
        ("with a as (select 1 from t where b = 2) select * from a where c = 3", "fpp"),
        ("select 1 from (select * from t where a = 2) x join y on y.b = 3 where c = 4", "fppp"),
        ("select a from t where exists (select 1 from u where u.b = 2)", "fp"),
        ("select a from t where b = 1 union select 2 from u where c = 3", "pfp"),
        ("select a from t where case when b = 1 then c = 2 else 3 = d end", "ppp"),
    ] {
        assert_eq!(uses(text), expected, "{text}");
    }
}

#[test]
fn literals_stay_where_nothing_is_proven() {
    for (text, expected) in [
        (
            "select 1, a = 2 from t group by a = 3 having b = 4 order by c = 5 limit 6 offset 7",
            "fffffff",
        ),
        ("select distinct a = 1 from t order by a = 1", "ff"),
        ("select (select 1 from u where b = 2) from t", "ff"),
        ("select a from t where f(1) and b = 'x'::my and c like 'y' and d = interval '1'", "ffff"),
        ("select a from t where 1 = 2 and a = b and c || 'x' = d and e + 'x' = f", "ffff"),
        ("select a from t where a in (1, b) and (c, d) = (2, 3) and e = any ('{4}')", "ffff"),
        ("select a from t where a between symmetric 1 and 2 and b is distinct from 3", "fff"),
        ("select a from t where t.* = 'x' and a[1] = 2 and (b).c = 3", "ffff"),
        ("select a from t where a operator(s.=) 1 and b = -(2)", "ff"),
        ("insert into t (a[1], b) values (2, 3)", "fff"),
        ("insert into t values (1) limit 1", "ff"),
        ("insert into t select 1 from u where a = 2", "fp"),
        ("insert into t select * from (values (1)) x", "f"),
        ("values (1)", "f"),
        ("update t set a[1] = 2, (b, c) = (3, 4) where d = 5", "ffffp"),
        ("merge into t using u on t.a = 1 when matched and t.b = 2 then update set c = 3", "fff"),
        ("select a from t tablesample system (1) where b = $1 and c = 2", "ff"),
        ("select a from generate_series(1, 2) a where case a when 3 then true end", "fff"),
        ("create table a (b int default 1)", "f"),
    ] {
        assert_eq!(uses(text), expected, "{text}");
    }
}

#[test]
fn assigned_texts_are_told() {
    for (text, expected) in [
        ("insert into t values (1, 'a')", true),
        ("insert into t values (1) on conflict (a) do update set b = 'x'", true),
        ("update t set a = 'x'", true),
        ("update t set a = 1 where b = 'x'", false),
        ("insert into t values (1)", false),
        ("insert into t values (f('a'))", false),
    ] {
        let mut scan = Scan::new();
        assert!(scan.scan(text.as_bytes()), "{text}");
        let analysis = PostgresParser.analyse(text, scan.literals()).expect(text);
        assert_eq!(analysis.assigns_texts, expected, "{text}");
    }
}

#[test]
fn literals_that_do_not_line_up_stay() {
    let text = "select a from t where a = 1 and b = 2";
    let mut scan = Scan::new();
    assert!(scan.scan(text.as_bytes()));
    let one = &scan.literals()[..1];
    assert_eq!(PostgresParser.analyse(text, one).expect(text).literals, [Use::Fixed]);
}

#[test]
fn deep_texts_are_refused_and_not_followed() {
    let deep = [
        format!("select {}1{}", "(".repeat(30_000), ")".repeat(30_000)),
        format!("select 1{}", "+1".repeat(30_000)),
        format!("select {}1", "not ".repeat(15_000)),
        format!("select {}1{}", "(select ".repeat(5_000), ")".repeat(5_000)),
        format!("select 1{}", " union select 1".repeat(4_000)),
        format!("select a{}", "[1]".repeat(20_000)),
    ];
    assert!(PostgresParser.analyse(&" ".repeat(crate::TEXT_MAX + 1), &[]).is_err());
    for text in deep {
        // An answer or a refusal; what matters is that there is one, on a thread's small stack.
        let _ = PostgresParser.analyse(&text, &[]);
    }
}
