//! Which statements mirrors can answer, by the catalogues of a real PostgreSQL. Trap C12: the order
//! of texts is known for C and POSIX alone.

use std::sync::Arc;

use super::judging_caches::Court;
use crate::route::Mirrored;

const TABLES: &str = r#"
SET search_path = app;
CREATE TYPE weather AS ENUM ('rain', 'sun', 'fog');
ALTER TYPE weather ADD VALUE 'snow' BEFORE 'sun';
CREATE DOMAIN tiny AS int;
CREATE TYPE two AS (one int, other int);
CREATE COLLATION german (provider = icu, locale = 'de');
CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE sorts (b int, a int, plain text COLLATE "C", posix varchar(9) COLLATE "POSIX",
  local text COLLATE german, free text COLLATE loose, code char(4) COLLATE "C", small smallint,
  big bigint, exact numeric, price numeric(10, 2), rough float8, "when" timestamptz, span interval,
  sky weather, tiny tiny, tags text[], doc jsonb, days date[], twice int GENERATED ALWAYS AS (a * 2) STORED,
  flag bool, note text COLLATE "C", pair two, PRIMARY KEY (a, b) INCLUDE (plain));
CREATE TABLE keyed (x int, id int NOT NULL UNIQUE, name text COLLATE "C");
ALTER TABLE keyed REPLICA IDENTITY USING INDEX keyed_id_key;
CREATE TABLE full_key (id int PRIMARY KEY, name text COLLATE german); ALTER TABLE full_key REPLICA IDENTITY FULL;
CREATE TABLE tiny_key (id tiny PRIMARY KEY, x int);
CREATE TABLE loose_key (name text COLLATE loose PRIMARY KEY, x int);
CREATE VIEW seen AS SELECT a FROM sorts;
GRANT SELECT ON ALL TABLES IN SCHEMA app TO PUBLIC;
"#;

async fn open() -> Court {
    let court = Court::open().await;
    court.server.run(TABLES).await;
    court
}

async fn mirror(court: &Court, text: &str) -> Result<Arc<Mirrored>, String> {
    let cacheable = court.judge(text).await;
    cacheable.map_err(|why| format!("not cacheable: {why}"))?.mirror.clone()
}

async fn expect(court: &Court, cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let told = match mirror(court, text).await {
            Ok(_) => "yes".to_owned(),
            Err(why) => why,
        };
        if told != *expected {
            wrong.push(format!("{text}\n    expected {expected}\n    told     {told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_its_role_may_not_read_is_not_answered() {
    let court = open().await;
    const REVOKE: &str = "REVOKE SELECT ON app.sorts FROM PUBLIC";
    court.server.run(&format!("{REVOKE}; GRANT SELECT (a) ON app.sorts TO PUBLIC")).await;
    const NOT: &str = "its role may not read sorts";
    expect(
        &court,
        &[
            // What only the mirror needs, its key, is nobody's to read.
            ("SELECT a FROM sorts WHERE a > 5", "yes"),
            ("SELECT count(*) FROM sorts", "yes"),
            ("SELECT a FROM sorts WHERE b > 5", NOT),
            ("SELECT b FROM sorts WHERE a > 5", NOT),
            ("SELECT s.a FROM sorts s, keyed k WHERE s.a = k.id AND s.big = 1", NOT),
        ],
    )
    .await;
}

#[tokio::test]
async fn definitions_have_what_the_statement_and_the_key_need() {
    let court = open().await;
    let text = "SELECT s.sky AS w, k.x FROM sorts s JOIN keyed k ON k.x = s.small WHERE s.big > 5";
    let mirrored = mirror(&court, text).await.unwrap();
    let [sorts, keyed] = &mirrored.tables[..] else { panic!("{mirrored:?}") };
    let names = |table: &cache::mirror::definition::Definition| {
        table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!((sorts.schema.as_str(), sorts.name.as_str()), ("app", "sorts"));
    assert_eq!(names(sorts), ["b", "a", "small", "big", "sky"]);
    // In the order of the key, without what its index only includes.
    assert_eq!(sorts.identity, [1, 0]);
    assert_eq!(*sorts.columns[4].labels, ["rain", "snow", "sun", "fog"].map(str::to_owned));
    assert_eq!((names(keyed), &keyed.identity[..]), (vec!["x".into(), "id".into()], &[1][..]));
    assert!(!keyed.columns[0].not_null && keyed.columns[1].not_null);
    let node = "SELECT relfilenode FROM pg_class WHERE oid = 'app.sorts'::regclass";
    assert_eq!(court.server.value(node).await, sorts.filenode.to_string());
    assert_eq!(mirrored.select.outputs[1], sql::Output::Column((1, 0)));
    assert_eq!(mirrored.select.shown, 2);
    assert_eq!(mirrored.description[..4], [0, 2, b'w', 0]);
    assert_eq!(mirrored.output_types[1], 23);
}

#[tokio::test]
async fn texts_are_ordered_where_their_bytes_are() {
    let court = open().await;
    expect(
        &court,
        &[
            ("SELECT a FROM sorts WHERE plain > 'a'", "yes"),
            ("SELECT a FROM sorts WHERE posix BETWEEN 'a' AND $1 ORDER BY posix", "yes"),
            ("SELECT max(plain) FROM sorts", "yes"),
            ("SELECT max(posix) FROM sorts", "yes"),
            ("SELECT a FROM sorts WHERE local = 'a'", "yes"),
            ("SELECT DISTINCT local FROM sorts", "yes"),
            ("SELECT local, count(*) FROM sorts GROUP BY local", "yes"),
            (
                "SELECT a FROM sorts WHERE local > 'a'",
                "local has an order other than that of its bytes",
            ),
            (
                "SELECT a FROM sorts ORDER BY local",
                "local has an order other than that of its bytes",
            ),
            ("SELECT min(local) FROM sorts", "local has an order other than that of its bytes"),
            ("SELECT free FROM sorts WHERE a = 1", "yes"),
            ("SELECT a FROM sorts WHERE free = 'a'", "free is compared with another type"),
            ("SELECT s.a FROM sorts s JOIN keyed k ON k.name = s.plain", "yes"),
            ("SELECT s.a FROM sorts s JOIN full_key k ON k.name = s.local", "yes"),
            (
                "SELECT s.a FROM sorts s JOIN keyed k ON k.name = s.posix",
                "it compares texts of two collations",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn types_are_compared_added_and_shown_as_they_are() {
    let court = open().await;
    expect(
        &court,
        &[
            ("SELECT * FROM keyed", "yes"),
            ("SELECT a FROM sorts WHERE sky = 'sun' ORDER BY sky LIMIT 3", "yes"),
            ("SELECT a FROM sorts WHERE big = $1 AND small = 3000000000", "yes"),
            ("SELECT a FROM sorts WHERE code = 'a'", "yes"),
            ("SELECT a FROM sorts WHERE a = ANY ($1) OR a IN (1, 2)", "yes"),
            ("SELECT a FROM sorts WHERE a = 1.5", "a is compared with another type"),
            ("SELECT a FROM sorts WHERE rough > 5", "yes"),
            ("SELECT sum(a), avg(big), sum(exact), count(rough), max(price) FROM sorts", "yes"),
            ("SELECT sum(rough) FROM sorts", "a sum of what is not exact"),
            ("SELECT avg(span) FROM sorts", "an average of what is not exact"),
            ("SELECT tags, tiny, doc FROM sorts", "yes"),
            ("SELECT days FROM sorts", "what days looks like depends on settings"),
            ("SELECT a FROM sorts WHERE tiny = 5", "tiny is compared with another type"),
            ("SELECT DISTINCT tags FROM sorts", "values of tags can be equal and look different"),
            ("SELECT twice FROM sorts", "column twice is generated"),
            ("SELECT count(*) FROM sorts WHERE flag = $1", "yes"),
        ],
    )
    .await;
}

#[tokio::test]
async fn conditions_are_turned_round_and_columns_are_numbered() {
    let court = open().await;
    expect(
        &court,
        &[
            ("SELECT a FROM sorts WHERE a BETWEEN -5 AND - 1 AND big = -7", "yes"),
            ("SELECT a FROM sorts WHERE NOT (a <> 1 AND big NOT IN (1, $1))", "yes"),
            ("SELECT count(1) FROM sorts WHERE exact NOT BETWEEN -1 AND 5", "yes"),
            ("SELECT a FROM sorts WHERE sky <> 'sun' AND local <> 'x'", "yes"),
            ("SELECT a FROM sorts WHERE flag AND NOT (flag = true) OR flag IS NOT FALSE", "yes"),
            ("SELECT a FROM sorts WHERE flag IS UNKNOWN OR true", "yes"),
            ("SELECT a FROM sorts WHERE note LIKE 'a%' AND posix NOT LIKE $1", "yes"),
            ("SELECT a FROM sorts WHERE local LIKE 'a%'", "yes"),
            ("SELECT a FROM sorts WHERE code LIKE 'a%'", "code is compared with another type"),
            (
                "SELECT a FROM sorts WHERE NOT local > 'a'",
                "local has an order other than that of its bytes",
            ),
            ("SELECT a FROM sorts WHERE free LIKE 'a'", "free is compared with another type"),
            ("SELECT a AS n, big FROM sorts ORDER BY n, 2", "yes"),
            ("SELECT sky, count(*) FROM sorts GROUP BY 1 ORDER BY 2 DESC", "yes"),
            ("SELECT a FROM sorts WHERE pair IS NULL", "pair is perhaps a row with NULLs in it"),
            ("SELECT a FROM sorts WHERE NOT (tags IS NULL OR a = 1)", "yes"),
        ],
    )
    .await;
    let text = "SELECT sky, count(*) FROM sorts WHERE a > 3 GROUP BY 1 ORDER BY 2";
    let mirrored = mirror(&court, text).await.unwrap();
    let literal = sql::Source::Literal;
    assert_eq!(mirrored.fixed, [(literal(1), 1), (literal(2), 2)]);
}

#[tokio::test]
async fn tables_are_plain_and_have_keys() {
    let court = open().await;
    expect(
        &court,
        &[
            ("SELECT name FROM full_key WHERE id = 1", "yes"),
            ("SELECT name FROM indexed WHERE id = 1", "yes"),
            ("SELECT id FROM orders WHERE id = 1 AND day > '2024-01-01'", "yes"),
            ("SELECT a.id FROM orders a JOIN orders b ON a.id = b.customer_id", "yes"),
            ("SELECT name FROM whole", "app.whole has no primary key that tells its rows apart"),
            (
                "SELECT x FROM tiny_key",
                "app.tiny_key is identified by id, whose values are not compared",
            ),
            (
                "SELECT x FROM loose_key",
                "app.loose_key is identified by name, whose values are not compared",
            ),
            ("SELECT a FROM seen", "app.seen is not a plain table"),
            ("SELECT id FROM parts", "app.parts is not a plain table"),
            ("SELECT id FROM parts_1", "app.parts_1 has parts, or is part of another table"),
            ("SELECT id FROM parent", "app.parent has parts, or is part of another table"),
            ("SELECT id FROM child", "app.child has parts, or is part of another table"),
            ("SELECT id FROM secured", "not cacheable: table app.secured has row security"),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_is_not_told_is_not_answered() {
    let court = open().await;
    expect(
        &court,
        &[
            ("SELECT a FROM sorts LIMIT 5", "it has LIMIT or OFFSET without ORDER BY"),
            ("SELECT a FROM sorts OFFSET 5", "it has LIMIT or OFFSET without ORDER BY"),
            ("SELECT count(*) FROM sorts LIMIT 5", "yes"),
            ("SELECT a FROM sorts s LEFT JOIN keyed ON x = a", "it has an outer join"),
        ],
    )
    .await;
}

#[tokio::test]
async fn somebody_s_own_operator_or_aggregate_may_be_meant() {
    let court = open().await;
    court
        .server
        .run(
            "SET search_path = app;
             CREATE FUNCTION same(real, int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT true';
             CREATE OPERATOR = (LEFTARG = real, RIGHTARG = int, FUNCTION = same);
             CREATE OPERATOR <> (LEFTARG = real, RIGHTARG = int, FUNCTION = same);
             CREATE FUNCTION like_it(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT true';
             CREATE OPERATOR ~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = like_it);
             CREATE AGGREGATE max(int) (SFUNC = int4larger, STYPE = int);",
        )
        .await;
    expect(
        &court,
        &[
            ("SELECT a FROM sorts WHERE a = 5", "there is an operator app.="),
            ("SELECT a FROM sorts WHERE a > 5", "yes"),
            ("SELECT a FROM sorts WHERE NOT a > 5", "yes"),
            ("SELECT a FROM sorts WHERE a <> 5", "there is an operator app.<>"),
            ("SELECT a FROM sorts WHERE a NOT IN (5)", "there is an operator app.<>"),
            ("SELECT a FROM sorts WHERE note LIKE 'a'", "there is an operator app.~~"),
            ("SELECT max(a) FROM sorts", "there is a function app.max()"),
            ("SELECT min(a) FROM sorts", "yes"),
        ],
    )
    .await;
}
