//! The publication is kept: a keeper and a database made of values.

use std::collections::BTreeMap;

use backend::login::ServerError;
use backend::replication::catalogue::{Row, Table};
use backend::replication::keeper::{Keeper, Todo};
use backend::replication::{Ended, PublishedTable};

use super::plan::keyed;

const SLOT: &str = "pondage_1_1";

struct Database {
    version: u32,
    wal_level: &'static str,
    standby: bool,
    replication: bool,
    publication: bool,
    tables: BTreeMap<u32, Table>,
    /// Children and parents.
    edges: Vec<(u32, u32)>,
    /// A statement that names it fails.
    locked: Option<u32>,
    definitions: &'static str,
    /// Running transactions: the first, and the one behind the last.
    snapshot: (u64, u64),
    slot: Option<u64>,
    /// Statements that change the publication, in order.
    ran: Vec<String>,
}

/// What a round brought: lists of tables that were told, and statements that had run before each.
#[derive(Debug, Default)]
struct Round {
    told: Vec<(Vec<u32>, usize)>,
    redefined: bool,
}

fn database(tables: &[Table]) -> Database {
    Database {
        version: 150_000,
        wal_level: "logical",
        standby: false,
        replication: true,
        publication: false,
        tables: tables.iter().map(|table| (table.oid, table.clone())).collect(),
        edges: Vec::new(),
        locked: None,
        definitions: "one",
        snapshot: (50, 50),
        slot: None,
        ran: Vec::new(),
    }
}

fn bool(value: bool) -> String {
    if value { "t" } else { "f" }.to_owned()
}

fn refused(code: &str) -> ServerError {
    ServerError {
        severity: "ERROR".to_owned(),
        code: code.to_owned(),
        message: "no".to_owned(),
        detail: None,
        hint: None,
    }
}

impl Database {
    fn answer(&mut self, sql: &str) -> Result<Vec<Row>, ServerError> {
        let some = |values: Vec<String>| Row::new(values.into_iter().map(Some).collect());
        if sql.starts_with("CREATE PUBLICATION") || sql.starts_with("ALTER PUBLICATION") {
            return self.change(sql).map(|()| Vec::new());
        }
        if sql == "SELECT current_setting('server_version_num')" {
            return Ok(vec![some(vec![self.version.to_string()])]);
        }
        if sql.starts_with("SELECT current_setting('server_version_num'), ") {
            let mut row: Vec<String> = vec![
                self.version.to_string(),
                self.wal_level.to_owned(),
                bool(self.standby),
                "app".to_owned(),
                "db".to_owned(),
                bool(self.replication),
                bool(true),
                "10".to_owned(),
                "10".to_owned(),
                "8192".to_owned(),
            ];
            if self.publication {
                row.extend(["500", "f", "t", "f", "t"].map(str::to_owned));
            }
            return Ok(vec![some(row)]);
        }
        if sql.starts_with("SELECT c.oid") {
            assert_eq!(sql.contains("pg_publication_namespace"), self.version >= 150_000);
            return Ok(self.tables.values().map(|table| some(row(table))).collect());
        }
        if sql.starts_with("SELECT inhrelid") {
            let edge =
                |(child, parent): &(u32, u32)| some(vec![child.to_string(), parent.to_string()]);
            return Ok(self.edges.iter().map(edge).collect());
        }
        if sql.starts_with("SELECT concat_ws") {
            return Ok(vec![some(vec![self.definitions.to_owned()])]);
        }
        if sql.starts_with("SELECT pg_snapshot_xmin") {
            let (xmin, xmax) = self.snapshot;
            let mut row = vec![xmin.to_string(), xmax.to_string(), "0/64".to_owned(), bool(false)];
            if let Some(held) = self.slot {
                row.extend([SLOT.to_owned(), held.to_string(), bool(false)]);
            }
            return Ok(vec![some(row)]);
        }
        assert!(sql.starts_with("SELECT pg_terminate_backend"), "{sql}");
        self.ran.push("terminate".to_owned());
        Ok(Vec::new())
    }

    fn change(&mut self, sql: &str) -> Result<(), ServerError> {
        let names = |oid: &u32| sql.contains(&format!("\"t{oid}\""));
        if self.locked.as_ref().is_some_and(names) {
            return Err(refused("55P03"));
        }
        self.ran.push(sql.to_owned());
        self.publication = true;
        let named: Vec<u32> = self.tables.keys().copied().filter(names).collect();
        for oid in named {
            let table = self.tables.get_mut(&oid).expect("a table");
            table.named = sql.contains(" ADD TABLE ");
            table.told = table.named;
        }
        Ok(())
    }

    fn round(&mut self, keeper: &mut Keeper) -> Result<Round, Ended> {
        let mut round = Round::default();
        let mut todo = keeper.round();
        for _ in 0..1000 {
            todo = match todo {
                Todo::Ask(sql) => keeper.answer(self.answer(&sql))?,
                Todo::Publish(tables) => {
                    round.told.push((oids(&tables), self.ran.len()));
                    keeper.told()
                }
                Todo::Rest { redefined } => {
                    round.redefined = redefined;
                    return Ok(round);
                }
            };
        }
        panic!("the round does not end");
    }
}

fn row(table: &Table) -> Vec<String> {
    let letter = |byte: u8| char::from(byte).to_string();
    vec![
        table.oid.to_string(),
        table.schema.clone(),
        table.name.clone(),
        letter(table.kind),
        letter(table.persistence),
        letter(table.identity),
        bool(table.partition),
        bool(table.owned),
        bool(table.primary),
        bool(table.marked),
        bool(table.generated_key),
        bool(table.generated),
        bool(table.named),
        bool(table.narrowed),
        bool(table.by_schema),
        bool(table.told),
    ]
}

fn oids(tables: &[PublishedTable]) -> Vec<u32> {
    tables.iter().map(|table| table.oid).collect()
}

/// A keeper whose stream has begun.
fn following(database: &mut Database) -> Keeper {
    let mut keeper = Keeper::new("pondage", 1 << 20);
    let round = database.round(&mut keeper).expect("a round");
    assert!(round.told.is_empty(), "nobody follows yet");
    keeper.create_slot(SLOT);
    keeper.follow();
    database.slot = Some(0);
    keeper
}

#[test]
fn the_first_round_makes_the_publication() {
    let mut database = database(&[keyed(1), Table { primary: false, ..keyed(2) }, keyed(3)]);
    let keeper = following(&mut database);
    assert_eq!(
        database.ran,
        [
            "CREATE PUBLICATION \"pondage\" WITH (publish = 'insert, update, delete, truncate', \
             publish_via_partition_root = false);",
            "ALTER PUBLICATION \"pondage\" ADD TABLE ONLY \"public\".\"t1\", \
             ONLY \"public\".\"t3\";",
        ]
    );
    assert_eq!(oids(keeper.published()), [1, 3]);
    assert_eq!(keeper.standing().len(), 3);
}

#[test]
fn a_table_goes_before_it_is_dropped_and_comes_when_it_is_safe() {
    let mut database = database(&[keyed(1), keyed(2)]);
    let mut keeper = following(&mut database);
    let round = database.round(&mut keeper).expect("a round");
    assert!(round.told.is_empty() && !round.redefined);
    // Told before the statement that drops it.
    database.tables.get_mut(&2).expect("a table").primary = false;
    let ran = database.ran.len();
    let round = database.round(&mut keeper).expect("a round");
    assert_eq!(round.told, [(vec![1], ran)]);
    assert!(database.ran[ran].contains("DROP TABLE ONLY \"public\".\"t2\""));
    // A new one is published at once and told when older transactions have ended.
    database.tables.insert(3, keyed(3));
    database.snapshot = (60, 70);
    assert!(database.round(&mut keeper).expect("a round").told.is_empty());
    assert!(database.ran.last().expect("a statement").contains("ADD TABLE ONLY \"public\".\"t3\""));
    database.snapshot = (69, 80);
    assert!(database.round(&mut keeper).expect("a round").told.is_empty());
    database.snapshot = (70, 90);
    let round = database.round(&mut keeper).expect("a round");
    assert_eq!(round.told.iter().map(|(tables, _)| tables.clone()).collect::<Vec<_>>(), [[1, 3]]);
    // Somebody else drops one.
    let table = database.tables.get_mut(&1).expect("a table");
    (table.named, table.told, table.owned) = (false, false, false);
    let round = database.round(&mut keeper).expect("a round");
    assert_eq!(round.told[0].0, [3]);
}

#[test]
fn a_new_partition_comes_at_once_and_a_new_child_takes_its_parent_out() {
    let root = Table { kind: b'p', ..keyed(1) };
    let part = |oid| Table { partition: true, told: true, ..keyed(oid) };
    let mut database = database(&[root, part(2), keyed(5)]);
    database.edges = vec![(2, 1)];
    let mut keeper = following(&mut database);
    assert_eq!(oids(keeper.published()), [1, 2, 5]);
    // Older transactions run on.
    database.snapshot = (60, 70);
    database.tables.insert(3, part(3));
    database.edges.push((3, 1));
    let round = database.round(&mut keeper).expect("a round");
    assert_eq!(round.told[0].0, [1, 2, 3, 5]);
    assert_eq!(keeper.published()[2].ancestors, [1]);
    database.tables.insert(6, keyed(6));
    database.edges.push((6, 5));
    let round = database.round(&mut keeper).expect("a round");
    assert_eq!(round.told.len(), 1);
    assert_eq!(round.told[0].0, [1, 2, 3]);
    database.snapshot = (70, 80);
    let round = database.round(&mut keeper).expect("a round");
    assert_eq!(round.told[0].0, [1, 2, 3, 5, 6]);
}

#[test]
fn one_table_that_is_in_the_way_keeps_no_other() {
    let tables: Vec<Table> = (1..=20).map(keyed).collect();
    let mut database = database(&tables);
    database.locked = Some(13);
    let mut keeper = following(&mut database);
    let expected: Vec<u32> = (1..=20).filter(|oid| *oid != 13).collect();
    assert_eq!(oids(keeper.published()), expected);
    assert!(keeper.complaint.as_ref().expect("a complaint").contains("55P03"));
    // It is tried again, and not in every round.
    database.locked = None;
    let ran = database.ran.len();
    for _ in 0..10 {
        database.round(&mut keeper).expect("a round");
    }
    assert_eq!(database.ran.len(), ran);
    for _ in 0..12 {
        database.round(&mut keeper).expect("a round");
    }
    assert_eq!(keeper.published().len(), 20);
}

#[test]
fn what_can_not_be_followed_is_refused_or_tried_again() {
    let ended = |change: fn(&mut Database)| {
        let mut database = database(&[keyed(1)]);
        change(&mut database);
        database.round(&mut Keeper::new("pondage", 0)).expect_err("no stream")
    };
    let refused = |change| match ended(change) {
        Ended::Refused(missing) => (missing.what, missing.sql.into_iter().next()),
        Ended::Lost(why) => panic!("{why}"),
    };
    assert_eq!(refused(|db| db.version = 120_004).0, "the server is PostgreSQL 12, older than 13");
    let (_, sql) = refused(|db| db.wal_level = "replica");
    assert_eq!(sql.as_deref(), Some("ALTER SYSTEM SET wal_level = 'logical';"));
    let (_, sql) = refused(|db| db.replication = false);
    assert_eq!(sql.as_deref(), Some("ALTER ROLE \"app\" REPLICATION;"));
    assert_eq!(ended(|db| db.standby = true), Ended::Lost("the server is a standby".to_owned()));
    let mut old = database(&[keyed(1)]);
    old.version = 140_000;
    old.round(&mut Keeper::new("pondage", 0)).expect("14 can be followed");
}

#[test]
fn definitions_and_the_slot_are_watched() {
    let mut database = database(&[keyed(1)]);
    let mut keeper = following(&mut database);
    assert!(!database.round(&mut keeper).expect("a round").redefined);
    database.definitions = "two";
    assert!(database.round(&mut keeper).expect("a round").redefined);
    assert!(!database.round(&mut keeper).expect("a round").redefined);
    database.slot = Some((1 << 20) + 1);
    let ended = database.round(&mut keeper).expect_err("too much");
    let why = "the slot held 1 MB of the log, more than slot_max_wal".to_owned();
    assert_eq!((keeper.ending(), ended), (Some(why.as_str()), Ended::Lost(why.clone())));
    assert_eq!(database.ran.last().expect("a statement"), "terminate");

    let mut keeper = following(&mut database);
    database.slot = None;
    let ended = database.round(&mut keeper).expect_err("no slot");
    assert_eq!(ended, Ended::Lost("the slot is gone".to_owned()));
}
