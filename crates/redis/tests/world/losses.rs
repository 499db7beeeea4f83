//! Connections are lost at any moment; no acknowledged write is lost, none happens twice.

use crate::kit::Database;
use crate::world::World;

/// A small generator of its own, so that a failure can be had again by its seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[test]
fn every_count_is_there_once_whatever_is_cut() {
    let database = Database::empty();
    count_and_cut(&database, World::new(&database, "one").ready(), 0);
}

#[test]
fn every_count_of_the_journal_is_there_once_whatever_is_cut() {
    let database = Database::empty();
    count_and_cut(&database, World::journaled(&database, "one").ready(), 1);
}

fn count_and_cut(database: &Database, mut world: World, db: u16) {
    let seed = std::env::var("PONDAGE_LOSSES_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x9e37_79b9_7f4a_7c15);
    println!("PONDAGE_LOSSES_SEED={seed}");
    let mut random = Random(seed);
    let mut sql = database.sql();
    let clients: Vec<_> = (0..8).map(|_| world.client()).collect();
    for client in &clients {
        assert_eq!(world.run(*client, &format!("SELECT {db}")), "OK");
    }
    let mut counts = vec![0u64; clients.len()];
    let mut waiting = vec![false; clients.len()];
    for step in 0..4_000 {
        let at = random.below(clients.len() as u64) as usize;
        if !waiting[at] {
            let key = format!("count{at}");
            world.start(clients[at], ["INCR", &key].into_iter().collect());
            waiting[at] = true;
        }
        match random.below(400) {
            0 => world.cut_any(random.below(64) as usize),
            1 => {
                // PostgreSQL ends sessions in the middle of whatever they do.
                sql.run(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid() \
                     ORDER BY random() LIMIT 1",
                );
            }
            _ => world.turn(),
        }
        for at in 0..clients.len() {
            if let Some(said) = world.reply(clients[at]) {
                counts[at] += 1;
                assert_eq!(said, counts[at].to_string(), "client {at} at step {step}");
                waiting[at] = false;
            }
        }
    }
    for at in 0..clients.len() {
        if waiting[at] {
            world.until("the last count", |world| world.reply(clients[at]).is_some());
            counts[at] += 1;
        }
        world.until("it is in the tables", |world| {
            world.turn();
            sql.run("SELECT redis.sync('0.005 s')") == ["t"]
        });
        let stored = sql.run(&format!(
            "SELECT convert_from(val, 'UTF8') FROM redis.kv WHERE key = 'count{at}'"
        ));
        assert_eq!(stored, [counts[at].to_string()], "client {at}");
    }
    assert!(world.lost.is_empty(), "nobody else was there");
}

#[test]
fn a_gateway_that_was_superseded_acknowledges_nothing_more() {
    let database = Database::empty();
    let mut first = World::new(&database, "first").ready();
    let conn = first.client();
    assert_eq!(first.run(conn, "SET a 1"), "OK");
    let mut second = World::new(&database, "second");
    for _ in 0..200 {
        second.turn();
    }
    assert!(!second.engine.store().is_ready(), "the first one has the tables");
    // The first one's lock goes with its connection; its writers are still there.
    database.sql().run(
        "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
         WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database()",
    );
    let mut second = second.ready();
    let other = second.client();
    assert_eq!(second.run(other, "INCR a"), "2");
    // Written by the first one without having heard of that.
    first.start(conn, ["INCR", "a"].into_iter().collect());
    for _ in 0..200 {
        first.turn();
    }
    assert_eq!(first.reply(conn), None, "it does not own the tables");
    assert_eq!(second.run(other, "GET a"), "\"2\"");
    drop(second);
    first.until("the first one is back", |world| world.engine.store().is_ready());
    first.until("what it held is lost or done", |world| {
        !world.lost.is_empty() || world.reply(conn).is_some()
    });
    let next = first.client();
    let now = first.run(next, "GET a");
    assert!(now == "\"2\"" || now == "\"3\"", "{now}");
}

#[test]
fn a_unit_over_rows_and_journal_happens_once_whatever_is_cut() {
    let database = Database::empty();
    let mut world = World::journaled(&database, "one").ready();
    let (conn, mut sql) = (world.client(), database.sql());
    let mut random = Random(20_261_122);
    let mut count = 0;
    for round in 1..=150 {
        // By the journal alone, then by both.
        assert_eq!(world.run(conn, "SELECT 1"), "OK");
        count += 1;
        assert_eq!(world.run(conn, "INCR n"), count.to_string());
        count += 1;
        for line in ["MULTI", "INCR n", "SELECT 0", "INCR rows"] {
            world.run(conn, line);
        }
        world.start(conn, ["EXEC"].into_iter().collect());
        for _ in 0..random.below(12) {
            world.turn();
        }
        if random.below(3) == 0 {
            world.cut_any(random.below(64) as usize);
        }
        let mut said = None;
        world.until("the unit is done", |world| {
            said = world.reply(conn);
            said.is_some()
        });
        assert_eq!(said, Some(format!("[{count} OK {round}]")));
        // Both are in the tables at the same time.
        let both = "SELECT db, convert_from(val, 'UTF8') FROM redis.kv ORDER BY db";
        assert_eq!(sql.run(both), [format!("0|{round}"), format!("1|{count}")]);
    }
    assert!(world.lost.is_empty(), "nobody else was there");
}

/// What has to be tried again was tried again only when something else happened.
#[test]
fn what_failed_is_tried_again_though_nothing_else_happens() {
    let database = Database::empty();
    let mut sql = database.sql();
    for (db, journaled) in [(0, false), (1, true)] {
        let mut world = match journaled {
            true => World::journaled(&database, "one").ready(),
            false => World::new(&database, "one").ready(),
        };
        let client = world.client();
        world.run(client, &format!("SELECT {db}"));
        assert_eq!(world.run(client, "SET a 1"), "OK");
        sql.run(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE 'full' USING ERRCODE = '53100'; END $$; \
             CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON redis.kv EXECUTE FUNCTION fail()",
        );
        world.start(client, ["SET", "a", "2"].into_iter().collect());
        // It fails for a while.
        for _ in 0..1_000 {
            world.turn();
        }
        sql.run("DROP TRIGGER fail ON redis.kv; DROP FUNCTION fail()");
        world.until("the row", |_| {
            let row = format!("SELECT val = '2' FROM redis.kv WHERE db = {db} AND key = 'a'");
            sql.one(&row) == "t"
        });
    }
}
