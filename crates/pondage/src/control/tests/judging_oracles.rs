//! What is said to be kept, against what PostgreSQL itself finds in the same statement when it makes
//! a view of it.

use std::collections::BTreeSet;

use super::judging_caches::Court;

/// Every stable function that can be called by SQL, as a call with NULLs of its types.
const STABLE: &str = r"
SELECT string_agg(n.nspname || '.' || quote_ident(p.proname) || '('
  || coalesce((
    SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY i)
    FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a(t, i)), '')
  || ')', E'\n')
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.provolatile = 's' AND p.prokind = 'f' AND n.nspname = 'pg_catalog'
  AND NOT EXISTS (SELECT 1 FROM pg_type t WHERE t.oid = ANY (p.proargtypes) AND t.typtype = 'p')";

/// Those of them whose answers are kept, because what they depend on is in the key.
const KEPT: &[&str] = &[
    "concat_ws",
    "date",
    "date_part",
    "date_trunc",
    "extract",
    "format",
    "generate_series",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "length",
    "make_timestamptz",
    "overlaps",
    "time",
    "timestamp",
    "timestamptz",
];

#[tokio::test]
async fn no_other_stable_function_of_the_catalogue_is_kept() {
    let court = Court::open().await;
    let calls = court.server.value(STABLE).await;
    let (mut refused, mut kept, mut wrong) = (0, BTreeSet::new(), Vec::new());
    for call in calls.lines() {
        let name = call.split('(').next().unwrap_or_default();
        let name = name.trim_start_matches("pg_catalog.").trim_matches('"');
        match court.judge(&format!("SELECT {call} FROM app.orders")).await {
            Ok(kept_one) => {
                // Of texts only, these depend on nothing.
                let of_texts = ["length", "format", "concat_ws"].contains(&name);
                let plain = kept_one.settings || of_texts || name.contains("json");
                // Comparisons of dates with moments.
                let cross = name.contains("timestamptz") || name.contains("_date");
                if !(plain && (cross || KEPT.contains(&name))) {
                    wrong.push(call);
                }
                kept.insert(name.to_owned());
            }
            Err(reason) => {
                refused += 1;
                let told = [name, "type", "cast", "PostgreSQL", "tells", "known", "view"];
                assert!(told.iter().any(|word| reason.contains(word)), "{call}: {reason}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(refused > 300 && kept.len() > 30, "{refused} refused, kept {kept:?}");
}

/// Scripts of PostgreSQL's regression tests.
const SCRIPTS: [&str; 24] = [
    "aggregates",
    "arrays",
    "case",
    "create_view",
    "date",
    "enum",
    "equivclass",
    "expressions",
    "groupingsets",
    "horology",
    "inherit",
    "join",
    "jsonb",
    "limit",
    "numeric",
    "rowtypes",
    "select_distinct",
    "strings",
    "subselect",
    "timestamp",
    "timestamptz",
    "union",
    "window",
    "with",
];

/// The tables that most scripts read, as in test_setup.sql.
const TABLES: &str = r"
CREATE TABLE onek (unique1 int4, unique2 int4, two int4, four int4, ten int4, twenty int4,
  hundred int4, thousand int4, twothousand int4, fivethous int4, tenthous int4, odd int4,
  even int4, stringu1 name, stringu2 name, string4 name);
CREATE TABLE onek2 (LIKE onek); CREATE TABLE tenk1 (LIKE onek); CREATE TABLE tenk2 (LIKE onek);
CREATE TABLE int2_tbl (f1 int2); CREATE TABLE int4_tbl (f1 int4); CREATE TABLE int8_tbl (q1 int8, q2 int8);
CREATE TABLE float4_tbl (f1 float4); CREATE TABLE float8_tbl (f1 float8);
CREATE TABLE text_tbl (f1 text); CREATE TABLE varchar_tbl (f1 varchar(4)); CREATE TABLE char_tbl (f1 char(4));
CREATE TABLE point_tbl (f1 point);
CREATE TABLE person (name text, age int4, location point);
CREATE TABLE emp (salary int4, manager name) INHERITS (person);
CREATE TABLE student (gpa float8) INHERITS (person);";

/// Functions and SQL value functions of a view that are not immutable.
const CHANGING_IN_VIEW: &str = r"
SELECT coalesce(string_agg(DISTINCT p.proname, ' '), '')
    || CASE WHEN bool_or(ev_action::text ~ 'SQLVALUEFUNCTION') THEN ' value function' ELSE '' END
FROM pg_rewrite w
LEFT JOIN LATERAL regexp_matches(ev_action::text, ':(?:op|agg|win)?(?:func|fno)id (\d+)', 'g') m
  ON true
LEFT JOIN pg_proc p ON p.oid = m[1]::oid AND p.provolatile <> 'i'
WHERE w.ev_class = 'judged'::regclass";

/// Tables that a view depends on.
const TABLES_OF_VIEW: &str = r"
SELECT DISTINCT c.oid::int8 FROM pg_depend d
JOIN pg_rewrite w ON d.objid = w.oid AND d.classid = 'pg_rewrite'::regclass
JOIN pg_class c ON c.oid = d.refobjid AND d.refclassid = 'pg_class'::regclass
WHERE w.ev_class = 'judged'::regclass AND c.relkind = 'r'";

/// Settings that are a part of the key only where something depends on them.
const SETTINGS: [&str; 2] = [
    "SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'German, DMY'; SET IntervalStyle = 'iso_8601';
     SET extra_float_digits = 0; SET bytea_output = 'escape'",
    "SET TimeZone = 'America/Caracas'; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres';
     SET extra_float_digits = 3; SET bytea_output = 'hex'",
];

async fn answer(client: &tokio_postgres::Client, text: &str) -> Option<Vec<Option<String>>> {
    let messages = client.simple_query(text).await.ok()?;
    let rows = messages.into_iter().filter_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let values = |row: tokio_postgres::SimpleQueryRow| {
        (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect::<Vec<_>>()
    };
    Some(rows.flat_map(values).collect())
}

/// So that nothing is refused for want of an identity.
const IDENTIFY: &str = r"
DO $$ DECLARE t regclass; BEGIN
  FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND oid >= 16384
    AND relreplident = 'd' AND relpersistence = 'p'
  LOOP EXECUTE 'ALTER TABLE ' || t || ' REPLICA IDENTITY FULL'; END LOOP;
END $$";

/// What PostgreSQL finds by types must have been found by names.
#[tokio::test]
async fn postgresql_finds_no_more_in_what_is_kept() {
    let court = Court::open().await;
    let setting_up = court.admin().await;
    setting_up.batch_execute(TABLES).await.expect("tables");
    setting_up.batch_execute(IDENTIFY).await.expect("identities");
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../sql/tests/corpus/regress");
    let (mut checked, mut compared) = (0, 0);
    for name in SCRIPTS {
        let script = std::fs::read_to_string(format!("{corpus}/{name}.sql")).expect(name);
        let (mut running, checking) = (court.admin().await, court.admin().await);
        checking
            .batch_execute("SET lock_timeout = '100ms'; SET statement_timeout = '10s'")
            .await
            .expect("a setting");
        for statement in script.split(";\n") {
            court.judges.forget("app");
            let Ok(kept) = court.judge(statement).await else {
                // Not all of the script was taken over, so some of it fails.
                let _ = running.batch_execute(statement).await;
                // COPY from a script is not followed.
                if running.is_closed() {
                    running = court.admin().await;
                }
                if statement.to_ascii_lowercase().contains("create") {
                    // A transaction of the script may have locked some.
                    let _ = checking.batch_execute(IDENTIFY).await;
                }
                continue;
            };
            let made = format!("BEGIN; CREATE TEMP VIEW judged AS {statement}");
            if checking.batch_execute(&made).await.is_ok() {
                let row = checking.query_one(CHANGING_IN_VIEW, &[]).await.expect("functions");
                let found: &str = row.get(0);
                let known = |function: &str| crate::control::judge::depends_on_settings(function);
                assert!(found.split_whitespace().all(known), "{name}: {statement}: {found}");
                let rows = checking.query(TABLES_OF_VIEW, &[]).await.expect("tables");
                let tables: Vec<u32> = kept.recipe.tables.iter().map(|table| table.oid).collect();
                for row in rows {
                    let oid = row.get::<_, i64>(0) as u32;
                    assert!(tables.contains(&oid), "{name}: {statement}: {oid} in {tables:?}");
                }
                checked += 1;
            }
            checking.batch_execute("ROLLBACK").await.expect("rollback");
            if !kept.settings {
                let mut answers = Vec::new();
                for settings in SETTINGS {
                    checking.batch_execute(settings).await.expect("settings");
                    answers.push(answer(&checking, statement).await);
                }
                assert_eq!(answers[0], answers[1], "{name}: {statement}");
                compared += usize::from(answers[0].as_ref().is_some_and(|rows| !rows.is_empty()));
            }
        }
    }
    println!("{checked} statements, {compared} compared");
    assert!(checked > 400 && compared > 100, "{checked} statements, {compared} compared");
}
