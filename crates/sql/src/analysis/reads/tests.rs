use super::*;
use crate::{Parser, PostgresParser, Scan};

/// Tables `a` to `e` have columns k, x, y; each has one that is its own: ax, bx and so on.
struct Plain<'a>(&'a Reads);

impl Columns for Plain<'_> {
    fn has(&self, table: usize, column: &str) -> Option<bool> {
        let relation = &self.0.tables[table].relation.name;
        if relation == "unknown" {
            return None;
        }
        Some(["k", "x", "y"].contains(&column) || column == format!("{relation}x"))
    }

    fn same(&self, _: (usize, &str), _: (usize, &str)) -> bool {
        true
    }
}

fn reads(text: &str) -> Reads {
    let mut scan = Scan::new();
    assert!(scan.scan(text.as_bytes()), "{text}");
    PostgresParser.reads(text, scan.literals()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// `a: x = 1; b` for the restrictions of every occurrence, in order. Values are those of the text.
fn told(text: &str) -> String {
    let mut scan = Scan::new();
    assert!(scan.scan(text.as_bytes()), "{text}");
    let reads =
        PostgresParser.reads(text, scan.literals()).unwrap_or_else(|e| panic!("{text}: {e}"));
    let value = |source: &Source| match source {
        Source::Parameter(number) => format!("${number}"),
        Source::Literal(place) => {
            let literal = scan.literals()[*place as usize];
            text[literal.start as usize..literal.end as usize].to_owned()
        }
    };
    let one = |Restriction { column, test }: Restriction| match test {
        Test::Equal(values) => {
            let values: Vec<String> = values.iter().map(value).collect();
            format!("{column} = {}", values.join(","))
        }
        Test::AnyOf(array) => format!("{column} any {}", value(&array)),
        Test::Range { low, high } => {
            let low =
                low.map(|(low, with)| format!("{}{}", value(&low), if with { "<=" } else { "<" }));
            let high = high
                .map(|(high, with)| format!("{}{}", if with { "<=" } else { "<" }, value(&high)));
            format!("{}{column}{}", low.unwrap_or_default(), high.unwrap_or_default())
        }
    };
    let mut all = Vec::new();
    for (place, table) in reads.tables.iter().enumerate() {
        let found: Vec<String> =
            reads.restrictions(place, &Plain(&reads)).into_iter().map(one).collect();
        let relation = &table.relation;
        all.push(match found.is_empty() {
            true => relation.to_string(),
            false => format!("{relation}: {}", found.join(" & ")),
        });
    }
    all.join("; ")
}

#[track_caller]
fn expect(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .map(|(text, expected)| (text, expected, told(text)))
        .filter(|(_, expected, told)| told != *expected)
        .map(|(text, expected, told)| format!("{text}\n  expected {expected}\n  told     {told}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn comparisons_with_constants_restrict() {
    expect(&[
        ("select * from a where x = 1", "a: x = 1"),
        ("select * from a where 'v' = x and a.y = $2", "a: x = 'v' & y = $2"),
        ("select * from a where x in (1, $1, -3)", "a: x = 1,$1,-3"),
        ("select * from a where x = any ($1)", "a: x any $1"),
        ("select * from a where x = any ('{1,2}')", "a: x any '{1,2}'"),
        ("select * from a where x = any (array[1, 2])", "a: x = 1,2"),
        ("select * from a where x between 1 and 2", "a: 1<=x<=2"),
        ("select * from a where x > 1 and 5 >= x", "a: 1<x<=5"),
        ("select * from a where 1 <= x", "a: 1<=x"),
        ("select * from a where x < $1", "a: x<$1"),
        ("select * from a where (x, y) = (1, $1)", "a: x = 1 & y = $1"),
        ("select * from a where (x, y) in ((1, 2), (3, 4))", "a: x = 1,3 & y = 2,4"),
        ("select * from a where x operator(pg_catalog.=) 1", "a: x = 1"),
        ("select * from s.a where s.a.x = 1", "s.a: x = 1"),
        ("select * from a t where t.x = 1", "a: x = 1"),
        ("select * from only a where x = 1 for update", "a: x = 1"),
        ("table a", "a"),
        ("select count(*) from a where x = 1 group by y having count(*) > 2", "a: x = 1"),
    ]);
}

#[test]
fn what_is_not_understood_restricts_nothing() {
    expect(&[
        ("select * from a where not x = 1", "a"),
        ("select * from a where x <> 1 and y not in (1, 2) and x not between 1 and 2", "a"),
        ("select * from a where case when x = 1 then true end", "a"),
        ("select * from a where coalesce(x = 1, true)", "a"),
        ("select * from a where (x = 1) is not false", "a"),
        ("select * from a where x operator(s.=) 1", "a"),
        ("select * from a where x = 1 + 1 and x = f(1)", "a"),
        ("select * from a where x in (1, y)", "a"),
        ("select * from a where x = all ($1)", "a"),
        ("select * from a where x is not distinct from 1", "a"),
        ("select * from a where x like 'a' and x between symmetric 1 and 2", "a"),
        ("select x = 1 from a group by x having x = 1", "a"),
        ("select count(*) filter (where x = 1) from a", "a"),
        ("select * from a where x = 1 or true", "a"),
        ("select * from a where x = null and y = true", "a"),
        ("select * from a where x collate \"C\" = 'v'", "a"),
        ("select * from a where (a).x = 1 and a.x[1] = 2", "a"),
        ("select * from a where (x, y) < (1, 2) and x = (select 1)", "a"),
    ]);
}

#[test]
fn an_or_of_equalities_is_a_list() {
    expect(&[
        ("select * from a where x = 1 or x in (2, 3)", "a: x = 1,2,3"),
        ("select * from a where (x = 1 and y = 2) or (y = 3 and x = 4)", "a: x = 1,4 & y = 2,3"),
        ("select * from a where x = 1 or y = 2", "a"),
        ("select * from a where x = 1 or x > 2", "a"),
        ("select * from a, b where a.x = 1 or b.x = 1", "a; b"),
        ("select * from a where y = 5 and (x = 1 or x = 2 or x = 3)", "a: x = 1,2,3 & y = 5"),
    ]);
}

#[test]
fn casts_count_where_they_change_nothing() {
    expect(&[
        ("select * from a where x = $1::int", "a: x = $1"),
        ("select * from a where x = '5'::int and y = cast('v' as text)", "a: x = '5' & y = 'v'"),
        ("select * from a where x = 5::bigint and y = any ($1::int[])", "a: x = 5 & y any $1"),
        // It may be converted: its type is that of another use.
        ("select $1 from a where x = $1::int", "a"),
        ("select $1::text from a where x = $1::int", "a"),
        ("select $1::int from a where x = $1::int", "a: x = $1"),
        ("select * from a where x = 5.7::int and y = 5::float8", "a"),
        ("select * from a where x = $1::varchar(2) and y = 'abc'::char(2)", "a"),
        ("select * from a where x = $1::int::text and y = lower($2)::text", "a"),
        ("select * from a where x::int = 5", "a"),
    ]);
}

#[test]
fn names_belong_to_the_innermost_block_that_has_them() {
    expect(&[
        // Both have x; PostgreSQL refuses it.
        ("select * from a, b where x = 1", "a; b"),
        ("select * from a, b where ax = 1 and bx = 2", "a: ax = 1; b: bx = 2"),
        ("select * from a, b where a.x = 1 and b.y = 2", "a: x = 1; b: y = 2"),
        ("select * from a, unknown where ax = 1", "a; unknown"),
        ("select * from a where exists (select 1 from b where ax = 1)", "a; b"),
        ("select * from a where exists (select 1 from b where a.x = 1)", "a; b"),
        ("select * from a where exists (select 1 from b where x = 1)", "a; b: x = 1"),
        (
            "select * from a where exists (select 1 from b where b.x = a.x) and a.x = 1",
            "a: x = 1; b",
        ),
        ("select * from a as t (k, x) where t.x = 1 and x = 2", "a"),
        ("select * from (a join b on a.x = 1) as j where x = 1 and a.y = 2", "a: x = 1; b"),
        ("select * from a, lateral (select * from b where b.x = a.x and b.y = 1) l", "a; b: y = 1"),
        ("select * from a where z = 1", "a"),
    ]);
}

#[test]
fn joins_restrict_the_sides_that_must_match() {
    expect(&[
        ("select * from a join b on a.x = 1 and b.y = 2", "a: x = 1; b: y = 2"),
        ("select * from a left join b on a.x = 1 and b.y = 2", "a; b: y = 2"),
        ("select * from a right join b on a.x = 1 and b.y = 2", "a: x = 1; b"),
        ("select * from a full join b on a.x = 1 and b.y = 2", "a; b"),
        ("select * from a left join b on true where b.y = 2 and a.x = 1", "a: x = 1; b: y = 2"),
        ("select * from a full join b on true where b.y = 2 and a.x = 1", "a: x = 1; b: y = 2"),
        ("select * from a left join (b join c on b.x = 1) on c.y = 2", "a; b: x = 1; c: y = 2"),
        ("select * from (a left join b on b.x = 1) join c on a.y = 2", "a: y = 2; b: x = 1; c"),
        ("select * from a cross join b where a.x = 1", "a: x = 1; b"),
    ]);
}

#[test]
fn equal_columns_share_what_is_known_of_them() {
    expect(&[
        ("select * from a, b where a.x = b.y and a.x = 5", "a: x = 5; b: y = 5"),
        ("select * from a join b on a.x = b.y where b.y in (1, 2)", "a: x = 1,2; b: y = 1,2"),
        (
            "select * from a join b on a.x = b.y join c on c.k = b.y where a.x = 1",
            "a: x = 1; b: y = 1; c: k = 1",
        ),
        ("select * from (a join b on a.x = 1) left join c on c.x = a.x", "a: x = 1; b; c: x = 1"),
        ("select * from (a join b on a.x = 1) right join c on c.x = a.x", "a: x = 1; b; c"),
        ("select * from c join (a join b on a.x = 1) on c.x = a.x", "c: x = 1; a: x = 1; b"),
        ("select * from (a left join b on b.x = 1) join c on c.x = b.x", "a; b: x = 1; c"),
        ("select * from (a join b on a.x = 1), c where c.x = a.x", "a: x = 1; b; c: x = 1"),
        ("select * from a join b using (x) where x = 3", "a: x = 3; b: x = 3"),
        ("select * from a left join b using (x) where x = 3", "a: x = 3; b: x = 3"),
        ("select * from a right join b using (x) where x = 3", "a: x = 3; b: x = 3"),
        ("select * from a full join b using (x) where x = 3", "a; b"),
        (
            "select * from a join b using (x) join c using (x) where x = 3",
            "a: x = 3; b: x = 3; c: x = 3",
        ),
        ("select * from a natural join b where x = 3", "a; b"),
        ("select * from a natural join (select 1.5 as ax) s where ax = 3 and a.x = 1", "a: x = 1"),
        ("select * from a join (select 1.5 as ax) s using (ax) where ax = 3", "a"),
        ("select * from (a full join b using (x)) join c using (x) where x = 3", "a; b; c"),
        ("select * from a join b using (x) where a.x > 3", "a: 3<x; b: 3<x"),
        ("select * from a left join b on a.x = b.y where a.x = 5", "a: x = 5; b: y = 5"),
        ("select * from a left join b on a.x = b.y where b.y = 5", "a; b: y = 5"),
        ("select * from a left join b on a.x = b.y and a.x = 5", "a; b: y = 5"),
        ("select * from a full join b on a.x = b.y where a.x = 5", "a: x = 5; b"),
        ("select * from a, b where a.x = b.y or a.x = 5", "a; b"),
        ("select * from a where x = y and y = 3", "a: x = 3 & y = 3"),
    ]);
}

#[test]
fn every_occurrence_is_told() {
    expect(&[
        ("select * from a t, a u where t.x = 1", "a: x = 1; a"),
        ("select * from a where x = 1 union all select * from a where x = 2", "a: x = 1; a: x = 2"),
        ("with w as (select * from a where x = 1) select * from w where x = 2", "a: x = 1"),
        ("with recursive w as (select * from a where x = 1 union select a.* from a, w where w.x = 3) select * from w", "a: x = 1; a"),
        ("select (select y from a where x = 1) from b where k in (select k from c where x = 2)", "b; a: x = 1; c: x = 2"),
        ("select * from (select * from a where x = 1) s, b where s.x = 1 and bx = 3", "a: x = 1; b: bx = 3"),
        ("values ((select x from a where y = 1))", "a: y = 1"),
        ("select * from a order by (select x from b where y = 1) limit 5", "a; b: y = 1"),
        ("select * from a join b on exists (select 1 from c where x = 1) and a.x = 2", "a: x = 2; b; c: x = 1"),
    ]);
}

#[test]
fn what_changes_without_a_change_of_data_is_an_obstacle() {
    for (text, obstacle) in [
        ("select current_timestamp", "CURRENT_TIMESTAMP tells the time"),
        ("select 1 from a where x < current_date", "CURRENT_DATE tells the time"),
        ("select localtime(1)", "LOCALTIME tells the time"),
        ("select current_user", "CURRENT_USER tells who asks"),
        ("select session_user", "SESSION_USER tells who asks"),
        ("select current_schema", "CURRENT_SCHEMA tells the search_path"),
        ("select current_catalog", "CURRENT_CATALOG tells where it runs"),
        ("select * from a tablesample system (1)", "TABLESAMPLE takes rows by chance"),
        ("select a.ctid from a", "ctid changes without a change of its row"),
        ("select (select 1 from a where xmin = '5')", "xmin changes without a change of its row"),
    ] {
        assert_eq!(reads(text).obstacles, [obstacle], "{text}");
    }
    assert!(reads("select now(), tableoid from a").obstacles.is_empty());
}

#[test]
fn casts_are_told_with_what_they_are_of() {
    let casts = |text: &str| {
        let casts = reads(text).casts;
        let all = casts.iter().map(|cast| {
            format!("{:?} {}{}", cast.what, cast.to, if cast.array { "[]" } else { "" })
        });
        all.collect::<Vec<_>>().join("; ")
    };
    assert_eq!(casts("select '1'::date from a"), "Constant(Some(Literal(0))) date");
    assert_eq!(
        casts("select date 'now', null::my[]"),
        "Constant(Some(Literal(0))) date; Constant(None) my[]"
    );
    assert_eq!(
        casts("select $1::date, a.x::date from a"),
        "Constant(Some(Parameter(1))) date; Column(\"x\") date"
    );
    assert_eq!(casts("select date(x), f(x, 1) from a"), "Column(\"x\") date");
    assert_eq!(casts("select (x || 'a')::date from a"), "Other date");
}

#[test]
fn rows_as_a_whole_are_told() {
    for (text, whole) in [
        ("select * from a", false),
        ("select a.*, x from a", false),
        ("select count(*) from (select * from a) s", false),
        ("select f(a.*) from a", true),
        ("select row(a.*) from a", true),
        ("select * from a natural join b", true),
        ("select * from a as t (p, q)", true),
        ("select * from (select * from a) as t (p, q)", true),
        ("with w (p, q) as (select * from a) select * from w", true),
    ] {
        assert_eq!(reads(text).whole, whole, "{text}");
    }
    for (text, plain) in [
        ("select x from a join b using (k) where y = 1", true),
        ("select x from a where exists (select 1)", false),
        ("select x from a, f(1)", false),
        ("with w as (select 1) select x from a", false),
    ] {
        assert_eq!(reads(text).plain, plain, "{text}");
    }
}

#[test]
fn only_a_select_is_read() {
    for text in ["delete from a", "select 1; select 2", "", "begin"] {
        assert!(PostgresParser.reads(text, &[]).is_err(), "{text}");
    }
}
