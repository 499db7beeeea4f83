//! Tables that somebody wants mirrored by their names, by the catalogues of a real PostgreSQL.

use cache::mirror::definition::Definition;

use super::judging_caches::Court;
use crate::config::MirrorDefinition;
use crate::control::mirrors::Unfit;

const TABLES: &str = r#"
CREATE TABLE app.plain (id int PRIMARY KEY, name text, twice int GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE app.hidden (id int PRIMARY KEY);
GRANT SELECT ON ALL TABLES IN SCHEMA app TO scram;
REVOKE ALL ON app.hidden FROM scram;
CREATE SCHEMA closed; CREATE TABLE closed.t (id int PRIMARY KEY); GRANT SELECT ON closed.t TO scram;
"#;

async fn look(court: &Court, text: &str) -> Result<Definition, Unfit> {
    let wanted = MirrorDefinition::parse(text).expect("a mirror");
    let config = court.server.config("scram");
    court.judges.table(&config, None, wanted).await.unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[tokio::test]
async fn a_definition_has_what_was_said_and_the_key() {
    let court = Court::open().await;
    court.server.run(TABLES).await;
    let names = |found: &Definition| {
        let names: Vec<&str> = found.columns.iter().map(|column| &*column.name).collect();
        names.join(" ")
    };
    let all = look(&court, "plain").await.expect("a table");
    assert_eq!((all.schema.as_str(), names(&all).as_str()), ("app", "id name"));
    assert_eq!(all.identity, [0]);
    let some = look(&court, "app.items columns (name)").await.expect("a table");
    assert_eq!(names(&some), "order_id line name");
    assert!(look(&court, "app.indexed").await.is_ok(), "an index is its identity");
}

#[tokio::test]
async fn what_cannot_be_mirrored_says_why_and_what_mends_it() {
    let court = Court::open().await;
    court.server.run(TABLES).await;
    for (text, code, message, hint) in [
        ("nowhere", "42P01", "there is no table nowhere", "Is it on the search_path of scram?"),
        ("app.nowhere", "42P01", "there is no table app.nowhere", ""),
        ("plain columns (nam)", "42703", "table app.plain has no column nam", ""),
        ("plain columns (twice)", "0A000", "column twice is generated", ""),
        ("parts", "0A000", "table app.parts is partitioned", "Its partitions can be cached"),
        ("parts_1", "0A000", "app.parts_1 has parts, or is part of another table", ""),
        ("cheap", "42809", "app.cheap is a view", "Plain tables"),
        ("counted", "42809", "app.counted is a materialized view", "Plain tables"),
        ("numbers", "42809", "app.numbers is no table", "Plain tables"),
        ("fleeting", "0A000", "table app.fleeting is unlogged", "ALTER TABLE \"app\".\"fleeting\" SET"),
        ("secured", "0A000", "table app.secured has row-level security", "Which of its rows"),
        (
            "bare",
            "55000",
            "rows of table app.bare can't be told apart: it has no primary key that is not deferrable",
            "ALTER TABLE \"app\".\"bare\" ADD PRIMARY KEY (...);",
        ),
        (
            "silent",
            "55000",
            "rows of table app.silent can't be told apart: its replica identity is NOTHING",
            "ALTER TABLE \"app\".\"silent\" REPLICA IDENTITY DEFAULT;",
        ),
        (
            "hidden",
            "42501",
            "scram may not read table app.hidden, and so can't copy it",
            "GRANT SELECT ON \"app\".\"hidden\" TO \"scram\";",
        ),
        (
            "closed.t",
            "42501",
            "scram may not read table closed.t, and so can't copy it",
            "GRANT USAGE ON SCHEMA \"closed\" TO \"scram\";",
        ),
    ] {
        let unfit = look(&court, text).await.expect_err(text);
        assert_eq!((unfit.code, unfit.message.as_str()), (code, message), "{text}");
        assert!(unfit.hint.unwrap_or_default().starts_with(hint), "{text}");
    }
}
