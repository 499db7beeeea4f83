//! SELECTs that can be answered without PostgreSQL, and those that can't.

#[path = "../shapes/corpus.rs"]
mod corpus;
mod refused;
mod told;

use sql::{Parser, PostgresParser, Scan};
use told::told;

/// Tables `t` and `u`; `v` has columns of its own.
fn columns(table: &str) -> Vec<String> {
    let names: &[&str] = match table {
        "t" => &["id", "k", "c"],
        "u" => &["id", "t_id", "Name"],
        _ => &["x", "y"],
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn answer(text: &str) -> Result<String, String> {
    let mut scan = Scan::new();
    assert!(scan.scan(text.as_bytes()), "{text}");
    let selected = PostgresParser.select(text, scan.literals())?;
    let tables: Vec<String> = selected.tables.iter().map(|(table, _)| table.name.clone()).collect();
    let select = selected.resolved(&|place| columns(&tables[place]))?;
    let names: Vec<String> = selected.tables.iter().map(|(_, name)| name.clone()).collect();
    let value = |source: sql::Source| match source {
        sql::Source::Parameter(number) => format!("${number}"),
        sql::Source::Literal(place) => {
            let literal = scan.literals()[place as usize];
            text[literal.start as usize..literal.end as usize].to_owned()
        }
    };
    let fixed = |(source, number): &(sql::Source, usize)| {
        assert_eq!(value(*source), number.to_string());
        value(*source)
    };
    let fixed: Vec<String> = selected.fixed.iter().map(fixed).collect();
    let fixed =
        if fixed.is_empty() { String::new() } else { format!(" fixed {}", fixed.join(",")) };
    Ok(told(&select, &names, &value) + &fixed)
}

fn accepts(text: &str, wanted: &str) {
    assert_eq!(answer(text).unwrap_or_else(|why| format!("refused: {why}")), wanted, "{text}");
}

#[test]
fn select_lists() {
    accepts("SELECT id, t.k FROM t", "t.id, t.k");
    accepts("SELECT c AS id FROM t AS a", "a.c");
    accepts("SELECT * FROM t", "t.id, t.k, t.c");
    accepts("TABLE t", "t.id, t.k, t.c");
    accepts("SELECT u.*, k FROM t, u", "u.id, u.t_id, u.Name, t.k");
    accepts("SELECT * FROM t a JOIN v b ON a.id = b.x", "a.id, a.k, a.c, b.x, b.y | a.id = b.x");
    accepts(
        "SELECT count(*), count(k), pg_catalog.sum(k), min(k), max(c), avg(id) FROM app.t",
        "count(*), count(t.k), sum(t.k), min(t.k), max(t.c), avg(t.id)",
    );
    accepts("SELECT DISTINCT c FROM t", "distinct t.c");
    accepts(
        "SELECT count(1), count(9999999999), count(true) FROM t",
        "count(*), count(*), count(*)",
    );
    accepts("SELECT \"Name\" FROM ONLY u", "u.Name");
    accepts("(SELECT x FROM v)", "v.x");
}

#[test]
fn conditions() {
    accepts("SELECT c FROM t WHERE id = 5", "t.c | t.id = 5");
    accepts("SELECT c FROM t WHERE -5 < id", "t.c | t.id > -5");
    accepts("SELECT c FROM t WHERE $1 >= id", "t.c | t.id <= $1");
    accepts("SELECT c FROM t WHERE id OPERATOR(pg_catalog.=) 5", "t.c | t.id = 5");
    accepts("SELECT c FROM t WHERE id BETWEEN 1 AND $1", "t.c | (t.id >= 1 and t.id <= $1)");
    accepts(
        "SELECT c FROM t WHERE k > 1 AND (id IN (1, 2, 3) OR c IS NULL) AND c IS NOT NULL",
        "t.c | (t.k > 1 and (t.id in (1, 2, 3) or t.c is null) and t.c is not null)",
    );
    accepts("SELECT c FROM t WHERE id = ANY ($1)", "t.c | t.id any $1");
    accepts("SELECT c FROM t WHERE id = ANY ('{1,2}')", "t.c | t.id any '{1,2}'");
    accepts("SELECT c FROM t WHERE id = ANY ($1::int[])", "t.c | t.id any $1");
    accepts("SELECT c FROM t WHERE id = ANY (ARRAY[1, $1])", "t.c | t.id in (1, $1)");
    accepts("SELECT c FROM t WHERE c > date '2000-01-01'", "t.c | t.c > '2000-01-01'");
    accepts("SELECT c FROM t WHERE c = 'x'::text", "t.c | t.c = 'x'");
    accepts("SELECT c FROM t WHERE id = CAST(5 AS bigint)", "t.c | t.id = 5");
    accepts("SELECT c FROM t WHERE id = $1::int4", "t.c | t.id = $1");
    accepts("SELECT c FROM t WHERE id = k", "t.c | t.id = t.k");
}

#[test]
fn signs() {
    accepts("SELECT c FROM t WHERE k BETWEEN -5 AND - 1", "t.c | (t.k >= -5 and t.k <= - 1)");
    accepts(
        "SELECT c FROM t WHERE k IN (-1, -2) AND k = - 5",
        "t.c | (t.k in (-1, -2) and t.k = - 5)",
    );
    accepts("SELECT c FROM t WHERE t.k NOT BETWEEN -2 AND -1", "t.c | (t.k < -2 or t.k > -1)");
}

#[test]
fn truth_values() {
    accepts("SELECT c FROM t WHERE k AND NOT t.id", "t.c | (t.k is true and t.id is false)");
    accepts("SELECT c FROM t WHERE k = true OR false <> id", "t.c | (t.k is true or t.id is true)");
    accepts(
        "SELECT c FROM t WHERE k != TRUE OR NOT k = false",
        "t.c | (t.k is false or t.k is true)",
    );
    accepts(
        "SELECT c FROM t WHERE k IS TRUE AND NOT k IS FALSE",
        "t.c | (t.k is true and (t.k is true or t.k is null))",
    );
    accepts("SELECT c FROM t WHERE k IS NOT TRUE", "t.c | (t.k is false or t.k is null)");
    accepts("SELECT c FROM t WHERE NOT k IS NOT FALSE", "t.c | t.k is false");
    accepts("SELECT c FROM t WHERE k IS UNKNOWN", "t.c | t.k is null");
    accepts("SELECT c FROM t WHERE k IS NOT UNKNOWN", "t.c | t.k is not null");
    accepts("SELECT c FROM t WHERE true", "t.c");
    accepts("SELECT c FROM t WHERE k = 1 AND NOT true", "t.c | (t.k = 1 and ())");
}

#[test]
fn what_is_false() {
    accepts(
        "SELECT c FROM t WHERE k <> 1 AND 2 != id",
        "t.c | (t.k not in (1) and t.id not in (2))",
    );
    accepts("SELECT c FROM t WHERE k NOT IN (1, $1)", "t.c | t.k not in (1, $1)");
    accepts("SELECT c FROM t WHERE NOT k NOT IN (1, $1)", "t.c | t.k in (1, $1)");
    accepts("SELECT c FROM t WHERE NOT id = ANY (ARRAY[1, $1])", "t.c | t.id not in (1, $1)");
    accepts(
        "SELECT c FROM t WHERE NOT (k = 1 AND (id < 2 OR NOT c >= 'a') OR c IS NULL)",
        "t.c | ((t.k not in (1) or (t.id >= 2 and t.c >= 'a')) and t.c is not null)",
    );
    accepts(
        "SELECT c FROM t WHERE NOT 5 <= k AND NOT k > 1 AND NOT k <> 1",
        "t.c | (t.k < 5 and t.k <= 1 and t.k = 1)",
    );
    accepts("SELECT c FROM t WHERE NOT k BETWEEN 1 AND 2", "t.c | (t.k < 1 or t.k > 2)");
    accepts("SELECT c FROM t WHERE NOT k NOT BETWEEN 1 AND 2", "t.c | (t.k >= 1 and t.k <= 2)");
}

#[test]
fn patterns() {
    accepts("SELECT c FROM t WHERE c LIKE 'a%'", "t.c | t.c like 'a%'");
    accepts("SELECT c FROM t WHERE NOT c NOT LIKE $1", "t.c | t.c like $1");
    accepts("SELECT c FROM t WHERE c NOT LIKE 'a%'", "t.c | t.c not like 'a%'");
    accepts("SELECT c FROM t WHERE NOT t.c LIKE 'a%'", "t.c | t.c not like 'a%'");
}

#[test]
fn joins() {
    accepts(
        "SELECT k, \"Name\" FROM t JOIN u ON t.id = u.t_id WHERE k = 1",
        "t.k, u.Name | (t.id = u.t_id and t.k = 1)",
    );
    accepts("SELECT x FROM t, v WHERE y = k AND t.id = 1", "v.x | (v.y = t.k and t.id = 1)");
    accepts("SELECT x FROM t CROSS JOIN v", "v.x");
    accepts("SELECT a.k FROM t a JOIN t b ON a.id = b.k", "a.k | a.id = b.k");
    accepts(
        "SELECT y FROM t JOIN (u JOIN v ON x = u.t_id) ON t.id = u.id",
        "v.y | (v.x = u.t_id and t.id = u.id)",
    );
}

#[test]
fn orders() {
    accepts("SELECT c FROM t ORDER BY c", "t.c order 0");
    accepts("SELECT c FROM t ORDER BY id DESC, t.c", "t.c +t.id order 1 desc, 0");
    accepts("SELECT c AS id FROM t ORDER BY id", "t.c order 0");
    accepts("SELECT c AS id FROM t ORDER BY t.id", "t.c +t.id order 1");
    accepts("SELECT id, c FROM t ORDER BY 2, 1 DESC", "t.id, t.c order 1, 0 desc fixed 2,1");
    accepts("SELECT k FROM t ORDER BY k NULLS FIRST", "t.k order 0 first");
    accepts("SELECT k FROM t ORDER BY k DESC NULLS FIRST", "t.k order 0 desc");
    accepts("SELECT k FROM t ORDER BY k DESC NULLS LAST", "t.k order 0 desc last");
    accepts("SELECT k FROM t ORDER BY k, k DESC", "t.k order 0");
    accepts(
        "SELECT * FROM t ORDER BY k LIMIT 10 OFFSET $1",
        "t.id, t.k, t.c order 1 limit 10 offset $1",
    );
    accepts("SELECT k FROM t ORDER BY k FETCH FIRST 5 ROWS ONLY", "t.k order 0 limit 5");
    accepts("SELECT c, t.c FROM t ORDER BY c", "t.c, t.c order 0");
    accepts("SELECT DISTINCT k, c FROM t ORDER BY c", "distinct t.k, t.c order 1");
    accepts("SELECT k FROM t LIMIT 1", "t.k limit 1");
}

#[test]
fn groups() {
    accepts("SELECT k, count(*) FROM t GROUP BY k", "t.k, count(*) group t.k");
    accepts("SELECT c AS kind, sum(k) FROM t GROUP BY kind", "t.c, sum(t.k) group t.c");
    // A table's column comes first.
    accepts("SELECT k AS c FROM t GROUP BY k, c", "t.k group t.k, t.c");
    accepts("SELECT k, max(id) FROM t GROUP BY 1", "t.k, max(t.id) group t.k fixed 1");
    accepts("SELECT count(*) FROM t GROUP BY t.k, k", "count(*) group t.k");
    accepts(
        "SELECT k, count(*) FROM t GROUP BY k ORDER BY count(*) DESC, sum(id)",
        "t.k, count(*) +sum(t.id) group t.k order 1 desc, 2",
    );
    accepts(
        "SELECT k, count(*) FROM t GROUP BY k ORDER BY count",
        "t.k, count(*) group t.k order 1",
    );
    accepts("SELECT count(*) FROM t GROUP BY k ORDER BY k", "count(*) +t.k group t.k order 1");
}

#[test]
fn sources_are_told_and_changed() {
    let text = "SELECT c FROM t WHERE id IN (1, $1) AND k = 2 ORDER BY c LIMIT 3 OFFSET 4";
    let mut scan = Scan::new();
    assert!(scan.scan(text.as_bytes()));
    let selected = PostgresParser.select(text, scan.literals()).unwrap();
    let select = selected.resolved(&|_| columns("t")).unwrap();
    use sql::Source::{Literal, Parameter};
    let all = vec![Literal(0), Parameter(1), Literal(1), Literal(2), Literal(3)];
    assert_eq!(select.sources().collect::<Vec<_>>(), all);
    let number = |source| match source {
        Literal(place) => Parameter(place + 10),
        parameter => parameter,
    };
    let changed = select.clone().with_sources(|source| Some(number(source))).unwrap();
    assert_eq!(
        changed.sources().collect::<Vec<_>>(),
        all.into_iter().map(number).collect::<Vec<_>>()
    );
    assert_eq!(
        select.clone().with_sources(|source| (source != Literal(3)).then_some(source)),
        None
    );
    let same = select.clone().map(&mut |column| Ok::<_, ()>(column));
    assert_eq!(same, Ok(select));
}

/// Nothing ends in a panic, and what is accepted has an answer to each of its names.
#[test]
fn statements_of_postgresqls_regression_tests_are_accepted_or_refused() {
    let mut accepted = 0;
    let mut scan = Scan::new();
    for text in corpus::statements() {
        if !scan.scan(text.as_bytes()) {
            continue;
        }
        let Ok(selected) = PostgresParser.select(&text, scan.literals()) else { continue };
        accepted += 1;
        if let Ok(select) = selected.resolved(&|_| columns("t")) {
            assert!(select.shown <= select.outputs.len(), "{text}");
            assert!(select.order.iter().all(|order| order.output < select.outputs.len()), "{text}");
        }
    }
    assert!(accepted > 500, "{accepted} were accepted");
}
