//! The publication: what is in it, what is not, and who has to do what.

use std::time::Duration;

use super::rig::{connect, options, rows, until, Followed, Rig};
use crate::stream::{Options, State};

/// Waits until a table is among the told ones, or is not.
async fn is_told(followed: &Followed, name: &str, told: bool) {
    let what = format!("{name} to be told: {told}");
    until(&what, || followed.mirror.tables().iter().any(|table| table == name) == told).await;
}

fn why_not(followed: &Followed, name: &str) -> String {
    let standing = followed.tap.standing();
    let table = standing.tables.iter().find(|table| table.name == name);
    match &table.unwrap_or_else(|| panic!("no {name} in {:?}", standing.tables)).told {
        Ok(()) => String::new(),
        Err(unfit) => unfit.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_without_a_usable_identity_is_left_alone() {
    let rig = Rig::start(&[]).await;
    rig.app(
        "CREATE TABLE keyed (a int PRIMARY KEY); CREATE TABLE bare (a int);
         CREATE TABLE nothing (a int PRIMARY KEY); ALTER TABLE nothing REPLICA IDENTITY NOTHING;
         CREATE TABLE later (a int PRIMARY KEY DEFERRABLE);
         CREATE UNLOGGED TABLE unlogged (a int PRIMARY KEY);
         CREATE TABLE bare_root (a int) PARTITION BY LIST (a);
         CREATE TABLE bare_part PARTITION OF bare_root FOR VALUES IN (1);
         CREATE TABLE keyed_part PARTITION OF bare_root (PRIMARY KEY (a)) FOR VALUES IN (2);
         CREATE TABLE parent (a int PRIMARY KEY); CREATE TABLE child () INHERITS (parent);
         CREATE SCHEMA \"od\"\"d\"; CREATE TABLE \"od\"\"d\".\"it's\" (a int PRIMARY KEY);",
    )
    .await;
    rig.run("CREATE TABLE foreigner (a int PRIMARY KEY)").await;
    let followed = rig.follow().await;
    let mut tables = followed.mirror.tables();
    tables.sort();
    assert_eq!(tables, ["it's", "keyed", "keyed_part"]);
    for (name, why) in [
        ("bare", "it has no primary key that is not deferrable"),
        ("later", "it has no primary key that is not deferrable"),
        ("nothing", "its replica identity is NOTHING"),
        ("unlogged", "it is unlogged"),
        ("bare_root", "it has no primary key that is not deferrable"),
        ("parent", "its part \"public\".\"child\" can't be told"),
        ("foreigner", "it is not in the publication and another role's"),
    ] {
        assert_eq!(why_not(&followed, name), why, "{name}");
    }
    for name in ["keyed", "bare", "nothing", "later", "unlogged", "bare_root", "parent", "child"] {
        rig.app(&format!("INSERT INTO {name} VALUES (1); UPDATE {name} SET a = 1")).await;
        rig.app(&format!("DELETE FROM {name}")).await;
    }

    rig.app("ALTER TABLE bare ADD PRIMARY KEY (a)").await;
    is_told(&followed, "bare", true).await;
    rig.app("ALTER TABLE keyed REPLICA IDENTITY NOTHING").await;
    is_told(&followed, "keyed", false).await;
    let published = "SELECT count(*) FROM pg_publication_tables WHERE tablename = 'keyed'";
    until("the publication", || futures_now(&rig, published, "0")).await;
    rig.app("INSERT INTO keyed VALUES (1); UPDATE keyed SET a = 2").await;
    rig.run("ALTER PUBLICATION pondage ADD TABLE foreigner").await;
    is_told(&followed, "foreigner", true).await;
    rig.app("DROP TABLE bare; ALTER TABLE child ADD PRIMARY KEY (a)").await;
    is_told(&followed, "bare", false).await;
    is_told(&followed, "parent", true).await;
    let ancestors = followed.mirror.look(|seen| {
        let find = |name| seen.tables.iter().find(|table| table.name == name).cloned();
        (find("child").expect("child").ancestors, find("parent").expect("parent").oid)
    });
    assert_eq!(ancestors.0, [ancestors.1]);
    assert_eq!(followed.mirror.look(|seen| seen.lost.len()), 0);
}

/// Whether a query gives this value now.
fn futures_now(rig: &Rig, text: &str, value: &str) -> bool {
    let handle = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| handle.block_on(rig.one(text))) == value
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_table_is_told_when_nobody_can_have_changed_it_unseen() {
    let rig = Rig::start(&[]).await;
    rig.app("CREATE TABLE first (a int PRIMARY KEY)").await;
    let followed = rig.follow().await;
    let other = connect(&rig.cluster, "app").await;
    rig.app("CREATE TABLE second (a int PRIMARY KEY)").await;
    rows(&other, "BEGIN").await;
    rows(&other, "INSERT INTO second VALUES (1)").await;
    let published = "SELECT count(*) FROM pg_publication_tables WHERE tablename = 'second'";
    until("the publication", || futures_now(&rig, published, "1")).await;
    // It is published and must not be told of.
    for _ in 0..3 {
        rig.looked(&followed).await;
    }
    assert_eq!(followed.mirror.tables(), ["first"]);
    rows(&other, "COMMIT").await;
    is_told(&followed, "second", true).await;
    rig.run("INSERT INTO second VALUES (2)").await;
    rig.told(&followed).await;
    assert!(followed.mirror.copy("second").contains(&"2".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_that_is_asked_for_comes_soon_and_others_follow_while_a_table_waits() {
    let rig = Rig::start(&[]).await;
    rig.app("CREATE TABLE first (a int PRIMARY KEY)").await;
    let poll = Duration::from_secs(3600);
    let followed = rig.follow_as("app", Options { poll, ..options() });
    followed.begun(1).await;
    for name in ["second", "third"] {
        rig.app(&format!("CREATE TABLE {name} (a int PRIMARY KEY)")).await;
        followed.tap.look();
        is_told(&followed, name, true).await;
    }
    let other = connect(&rig.cluster, "app").await;
    rows(&other, "BEGIN; SELECT pg_current_xact_id()").await;
    rig.app("CREATE TABLE fourth (a int PRIMARY KEY)").await;
    followed.tap.look();
    let published = "SELECT count(*) FROM pg_publication_tables WHERE tablename = 'fourth'";
    until("the publication", || futures_now(&rig, published, "1")).await;
    assert!(!followed.mirror.tables().contains(&"fourth".to_owned()));
    rows(&other, "COMMIT").await;
    is_told(&followed, "fourth", true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_partition_is_known_soon_after_its_first_row() {
    let rig = Rig::start(&[]).await;
    rig.app("CREATE TABLE root (a int PRIMARY KEY) PARTITION BY LIST (a)").await;
    let poll = Duration::from_secs(3600);
    let followed = rig.follow_as("app", Options { poll, ..options() });
    followed.begun(1).await;
    is_told(&followed, "root", true).await;
    rig.app("CREATE TABLE part PARTITION OF root FOR VALUES IN (1)").await;
    rig.run("INSERT INTO root VALUES (1)").await;
    is_told(&followed, "part", true).await;
    assert_eq!(followed.mirror.copy("part"), ["1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_named_with_the_sql_that_grants_it() {
    let rig = Rig::start(&["max_wal_senders=1", "max_replication_slots=1"]).await;
    rig.app("CREATE TABLE keyed (a int PRIMARY KEY)").await;
    rig.run("CREATE ROLE other LOGIN PASSWORD 'pencil'").await;
    let followed = rig.follow_as("other", options());
    let refused = |state: &State| match state {
        State::Refused { missing, .. } => Some((missing.what.clone(), missing.sql.clone())),
        _ => None,
    };
    let is_about = |about: &'static str| {
        move |state: &State| refused(state).is_some_and(|(what, _)| what.contains(about))
    };
    let sql = |state: &State| refused(state).expect("refused").1;

    let standing = followed.state("REPLICATION", is_about("REPLICATION")).await;
    assert_eq!(sql(&standing.state), ["ALTER ROLE \"other\" REPLICATION;"]);
    rig.run(&sql(&standing.state)[0]).await;

    let standing = followed.state("a publication", is_about("publication")).await;
    let create = sql(&standing.state);
    assert!(create[0]
        .starts_with("CREATE PUBLICATION \"pondage\" FOR TABLE ONLY \"public\".\"keyed\" WITH ("));
    // Another's, with less in it.
    rig.run("CREATE PUBLICATION pondage FOR TABLE keyed WITH (publish = 'insert')").await;
    let standing = followed.state("all kinds", is_about("kinds of changes")).await;
    rig.run(&sql(&standing.state)[0]).await;
    rig.run("ALTER PUBLICATION pondage SET (publish_via_partition_root)").await;
    let standing = followed.state("partitions", is_about("behind their root")).await;
    rig.run("DROP PUBLICATION pondage").await;
    rig.run("SELECT pg_create_physical_replication_slot('taken')").await;
    assert_eq!(sql(&standing.state).len(), 1);
    rig.run(&create[0]).await;

    let standing = followed.state("a slot", is_about("max_replication_slots")).await;
    assert_eq!(sql(&standing.state)[0], "ALTER SYSTEM SET max_replication_slots = 11;");
    rig.run("SELECT pg_drop_replication_slot('taken')").await;
    until("the stream", || followed.tap.standing().state == State::Following).await;
    assert_eq!(followed.mirror.tables(), ["keyed"]);

    // The one walsender is taken now.
    let second = rig.follow_as("app", Options { publication: "second".to_owned(), ..options() });
    // It has the same name and takes the other's place, so the sender is free again.
    second.begun(1).await;
    assert_eq!(followed.mirror.look(|seen| seen.lost.clone()), ["it was stopped"]);
    let third = crate::stream::Streams::start(Default::default()).expect("a thread");
    let mirror = super::mirror::Mirror::default();
    let tap = third.follow(rig.config("app").into(), None, options(), Box::new(mirror));
    let third = Followed { tap, mirror: super::mirror::Mirror::default() };
    let standing = third.state("a sender", is_about("max_wal_senders")).await;
    assert_eq!(sql(&standing.state)[0], "ALTER SYSTEM SET max_wal_senders = 11;");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_logical_decoding_is_refused() {
    let rig = Rig::start(&["wal_level=replica"]).await;
    let followed = rig.follow_as("app", options());
    let refused = |state: &State| matches!(state, State::Refused { .. });
    let standing = followed.state("a refusal", refused).await;
    let State::Refused { missing, .. } = standing.state else { unreachable!() };
    assert_eq!(missing.what, "wal_level of the server is replica, not logical");
    assert_eq!(missing.sql[0], "ALTER SYSTEM SET wal_level = 'logical';");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_changes_what_a_statement_means_is_noticed() {
    let rig = Rig::start(&[]).await;
    rig.app("CREATE TABLE keyed (a int PRIMARY KEY, b text)").await;
    rig.run("CREATE ROLE reader; CREATE ROLE staff").await;
    let followed = rig.follow().await;
    let look = || followed.mirror.look(|seen| seen.redefined);
    for text in [
        "GRANT SELECT ON keyed TO reader",
        "GRANT SELECT (a) ON keyed TO staff",
        "GRANT staff TO reader",
        "REVOKE staff FROM reader",
        "ALTER ROLE reader BYPASSRLS",
        "ALTER ROLE reader SET search_path = nowhere",
        "CREATE VIEW seen AS SELECT a FROM keyed",
        "CREATE OR REPLACE VIEW seen AS SELECT a + 1 - 1 AS a FROM keyed",
        "CREATE FUNCTION f() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1'",
        "CREATE OR REPLACE FUNCTION f() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 2'",
        "REVOKE EXECUTE ON FUNCTION f() FROM public",
        "CREATE POLICY p ON keyed USING (a > 1)",
        "ALTER POLICY p ON keyed USING (a > 2)",
        "ALTER TABLE keyed ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE keyed RENAME b TO c",
        "ALTER TABLE keyed RENAME TO renamed",
        "CREATE TYPE mood AS ENUM ('sad')",
        "ALTER TYPE mood RENAME VALUE 'sad' TO 'low'",
        "GRANT USAGE ON SCHEMA public TO reader",
        // Undone at once.
        "GRANT INSERT ON renamed TO staff; REVOKE INSERT ON renamed FROM staff",
        "REVOKE USAGE ON SCHEMA public FROM reader; GRANT USAGE ON SCHEMA public TO reader",
        "GRANT staff TO reader; REVOKE staff FROM reader",
        // A table's indexes are as old as it is from here on.
        "TRUNCATE renamed",
    ] {
        // A look that has begun before may see it or not.
        rig.looked(&followed).await;
        let before = look();
        rig.run(text).await;
        until(text, || look() > before).await;
    }
    // The server tells what it has counted at the end of a transaction, when a second has passed.
    tokio::time::sleep(Duration::from_millis(1_250)).await;
    rig.run("SELECT 1").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = look();
    rig.run("INSERT INTO renamed VALUES (5); TRUNCATE renamed; ANALYZE renamed").await;
    rig.run("CREATE TEMP TABLE own (a int); DROP TABLE own").await;
    rig.run("VACUUM renamed").await;
    for _ in 0..3 {
        rig.looked(&followed).await;
    }
    assert_eq!(look(), before, "nothing was redefined");
    let tables = followed.mirror.look(|seen| seen.tables.clone());
    assert_eq!(tables[0].name, "renamed");
}
