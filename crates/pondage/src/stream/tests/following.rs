//! What was done is what was told.

use super::rig::Rig;

/// The rows of a table as [`super::mirror::Mirror::copy`] has them.
pub async fn table(rig: &Rig, name: &str) -> Vec<String> {
    let rows = rig.rows(&format!("SELECT * FROM {name}")).await;
    let text = |row: Vec<Option<String>>| {
        let fields = row.iter().map(|field| field.as_deref().unwrap_or("-"));
        fields.collect::<Vec<_>>().join("|")
    };
    let mut rows: Vec<String> = rows.into_iter().map(text).collect();
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_change_is_told_as_it_was_done() {
    let rig = Rig::start(&["logical_decoding_work_mem=64kB"]).await;
    rig.app(
        "CREATE TABLE account (id int PRIMARY KEY, name text, sum numeric(12, 2), at timestamptz);
         CREATE TABLE whole (a int, b text); ALTER TABLE whole REPLICA IDENTITY FULL;
         CREATE TABLE marked (a int NOT NULL, b int NOT NULL, c text);
         CREATE UNIQUE INDEX marked_b ON marked (b);
         ALTER TABLE marked REPLICA IDENTITY USING INDEX marked_b;
         CREATE TABLE big (id int PRIMARY KEY, n int, body text);
         ALTER TABLE big ALTER body SET STORAGE EXTERNAL;
         CREATE TABLE parted (id int, k int, t text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
         CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
         CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (200);",
    )
    .await;
    let followed = rig.follow().await;
    let mirror = &followed.mirror;
    let tables = mirror.tables();
    for name in ["account", "whole", "marked", "big", "parted", "parted_1", "parted_2"] {
        assert!(tables.contains(&name.to_owned()), "{name} in {tables:?}");
    }
    let same = |names: &'static [&'static str]| {
        let (rig, followed) = (&rig, &followed);
        async move {
            rig.told(followed).await;
            for name in names {
                assert_eq!(followed.mirror.copy(name), table(rig, name).await, "{name}");
            }
        }
    };

    rig.run("SET timezone = 'America/New_York'; SET datestyle = 'German'").await;
    rig.run(
        "INSERT INTO account SELECT i, 'n' || i, i * 1.5, timestamptz '2026-01-01 00:00:00+00'
           + i * interval '1 day' FROM generate_series(1, 50) i;
         UPDATE account SET sum = sum + 1 WHERE id % 2 = 0;
         UPDATE account SET id = id + 1000 WHERE id > 45;
         DELETE FROM account WHERE id % 5 = 0;
         INSERT INTO whole SELECT i % 3, CASE WHEN i % 2 = 0 THEN 'x' END
           FROM generate_series(1, 12) i;
         UPDATE whole SET a = a + 10 WHERE b IS NULL; DELETE FROM whole WHERE a = 1;
         INSERT INTO marked SELECT i, i * 10, 'c' FROM generate_series(1, 9) i;
         UPDATE marked SET b = b + 1 WHERE a < 4; UPDATE marked SET c = NULL WHERE a > 6;
         DELETE FROM marked WHERE b = 50;",
    )
    .await;
    rig.run("SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'").await;
    same(&["account", "whole", "marked"]).await;

    // Large values that stay are not told again.
    rig.run(
        "INSERT INTO big SELECT i, 0, repeat(md5(i::text), 400) FROM generate_series(1, 5) i;
         UPDATE big SET n = n + 1; UPDATE big SET id = id + 100 WHERE id = 1;
         UPDATE big SET body = 'short' WHERE id = 2;",
    )
    .await;
    same(&["big"]).await;
    assert!(mirror.look(|seen| seen.unchanged) >= 5);

    // Partitions under their own names; a row that moves; TRUNCATE of one and of all.
    rig.run(
        "INSERT INTO parted SELECT i, i, 't' FROM generate_series(1, 199) i;
         UPDATE parted SET id = 150 + 1000 - 1000 + 0 WHERE false;
         DELETE FROM parted WHERE id IN (150, 151); UPDATE parted SET id = 150 WHERE id = 50;
         CREATE TABLE parted_3 PARTITION OF parted FOR VALUES FROM (200) TO (300);
         INSERT INTO parted VALUES (201, 1, 'new'); UPDATE parted SET t = 'u' WHERE id = 201;",
    )
    .await;
    same(&["parted_1", "parted_2", "parted_3"]).await;
    rig.run("TRUNCATE parted_1").await;
    same(&["parted_1", "parted_2", "parted_3"]).await;
    rig.run("TRUNCATE parted").await;
    same(&["parted_1", "parted_2", "parted_3"]).await;
    rig.run("BEGIN; TRUNCATE account, whole; INSERT INTO account VALUES (1); COMMIT").await;
    same(&["account", "whole"]).await;

    // Transactions that are told while they run, with parts undone.
    let before = mirror.look(|seen| (seen.streamed, seen.aborted_parts));
    rig.run(
        "BEGIN; INSERT INTO account SELECT i, repeat('x', 100) FROM generate_series(2, 2000) i;
         SAVEPOINT a; UPDATE account SET name = repeat('y', 100); ROLLBACK TO a;
         SAVEPOINT b; DELETE FROM account WHERE id < 100; SAVEPOINT c;
         INSERT INTO account SELECT i, repeat('z', 100) FROM generate_series(1, 99) i;
         RELEASE c; COMMIT",
    )
    .await;
    rig.run(
        "BEGIN; INSERT INTO whole SELECT i, repeat('x', 100) FROM generate_series(1, 3000) i;
         ROLLBACK",
    )
    .await;
    same(&["account", "whole"]).await;
    let after = mirror.look(|seen| (seen.streamed, seen.aborted_parts));
    assert!(after.0 > before.0 && after.1 > before.1, "{before:?} {after:?}");

    // Two phases: told when they are committed.
    rig.run(
        "BEGIN; INSERT INTO account VALUES (5000, 'p'); PREPARE TRANSACTION 'one';
         BEGIN; INSERT INTO account VALUES (5001, 'q'); PREPARE TRANSACTION 'two';",
    )
    .await;
    rig.told(&followed).await;
    assert!(!mirror.copy("account").iter().any(|row| row.starts_with("5000|")));
    rig.run("COMMIT PREPARED 'one'; ").await;
    rig.run("ROLLBACK PREPARED 'two'").await;
    same(&["account"]).await;
    assert!(mirror.copy("account").iter().any(|row| row.starts_with("5000|")));

    // A table that becomes another.
    rig.run(
        "ALTER TABLE account ADD more text DEFAULT 'd'; ALTER TABLE account DROP name;
         TRUNCATE account; INSERT INTO account (id, more) VALUES (1, 'm');",
    )
    .await;
    rig.told(&followed).await;
    assert_eq!(mirror.copy("account"), ["1|-|-|m"]);
    assert_eq!(mirror.look(|seen| seen.lost.clone()), Vec::<String>::new());
    assert!(followed.tap.standing().delay.is_some());
}
