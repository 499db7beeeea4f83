//! Databases in journal mode: what is acknowledged is in the journal, and soon in the tables.

use redis::args::Words;
use redis::engine::Ran;
use redis::reply::Recorded;
use redis::server::Settings;
use redis::session::ConnId;

use crate::kit::{Database, Session};
use crate::losses::Random;
use crate::world::{wall, World};

/// A client of the database in journal mode.
fn client(world: &mut World) -> ConnId {
    let conn = world.client();
    assert_eq!(world.run(conn, "SELECT 1"), "OK");
    conn
}

/// Until all that is in the journal is in the tables.
fn sync(world: &mut World, sql: &mut Session) {
    world.until("what is acknowledged is in the tables", |world| {
        world.turn();
        sql.run("SELECT redis.sync('0.005 s')") == ["t"]
    });
    world.until("memory knows", |world| world.engine.store().backlog() == 0);
    world.turn();
}

fn value(sql: &mut Session, key: &str) -> Vec<String> {
    sql.run(&format!(
        "SELECT convert_from(val, 'UTF8') FROM redis.kv WHERE db = 1 AND key = '{key}'"
    ))
}

/// PostgreSQL refuses to write keys until [`allow`].
fn forbid(sql: &mut Session) {
    sql.run("ALTER TABLE redis.kv ADD CONSTRAINT no CHECK (db <> 1) NOT VALID");
}

fn allow(sql: &mut Session) {
    sql.run("ALTER TABLE redis.kv DROP CONSTRAINT no");
}

#[test]
fn what_is_acknowledged_is_read_before_it_is_folded() {
    let database = Database::empty();
    let mut world = World::journaled(&database, "one").ready();
    let (conn, other, mut sql) = (client(&mut world), client(&mut world), database.sql());
    forbid(&mut sql);
    assert_eq!(world.run(conn, "SET a 1"), "OK");
    assert_eq!(world.run(conn, "RPUSH list x y"), "2");
    assert_eq!(world.run(other, "GET a"), "\"1\"");
    world.until("a fold has failed", |world| world.engine.figures().folds.failed > 0);
    assert!(value(&mut sql, "a").is_empty());
    assert_ne!(sql.run("SELECT count(*) FROM redis.journal"), ["0"]);
    assert_eq!(sql.run("SELECT redis.sync('0.01 s')"), ["f"]);
    let figures = world.engine.figures();
    assert!(figures.folds.error.is_some_and(|why| why.contains("\"no\"")));
    assert_ne!(figures.folds.backlog, 0);
    assert_eq!(world.run(other, "INCR a"), "2", "it goes on");
    allow(&mut sql);
    sync(&mut world, &mut sql);
    assert_eq!(value(&mut sql, "a"), ["2"]);
    assert_eq!(sql.run("SELECT count(*) FROM redis.list"), ["2"]);
    assert_eq!(sql.run("SELECT count(*) FROM redis.journal"), ["0"]);
    assert_eq!(world.engine.figures().folds.error, None);
}

#[test]
fn a_hot_key_is_one_row_of_a_fold() {
    let database = Database::empty();
    let mut world = World::journaled(&database, "one").ready();
    let (conn, mut sql) = (client(&mut world), database.sql());
    for count in 1..=300 {
        assert_eq!(world.run(conn, "INCR hot"), count.to_string());
    }
    sync(&mut world, &mut sql);
    assert_eq!(value(&mut sql, "hot"), ["300"]);
    let folds = world.engine.figures().folds;
    assert_eq!(folds.keys, folds.folds, "one each time");
    assert!(folds.folds < 100, "{folds:?}");
    assert!(folds.last_us > 0);
}

#[test]
fn another_engine_folds_what_was_left() {
    let database = Database::empty();
    let mut first = World::journaled(&database, "first").ready();
    let (conn, mut sql) = (client(&mut first), database.sql());
    forbid(&mut sql);
    for count in 1..=200 {
        assert_eq!(first.run(conn, "INCR n"), count.to_string());
        assert_eq!(first.run(conn, "HSET hash f v g w"), if count == 1 { "2" } else { "0" });
    }
    assert_eq!(first.run(conn, "DEL hash"), "1");
    drop(first);
    let mut second = World::new(&database, "second");
    for _ in 0..200 {
        second.turn();
    }
    assert!(!second.engine.store().is_ready(), "what was acknowledged comes first");
    allow(&mut sql);
    // It has no journal, but knows of it.
    let mut second = second.ready();
    assert_eq!(sql.run("SELECT count(*) FROM redis.journal"), ["0"]);
    let conn = client(&mut second);
    assert_eq!(second.run(conn, "INCR n"), "201");
    assert_eq!(second.run(conn, "EXISTS hash"), "0");
    drop(second);
    let mut third = World::journaled(&database, "third").ready();
    let conn = client(&mut third);
    assert_eq!(third.run(conn, "INCR n"), "202");
}

#[test]
fn exec_over_both_kinds_of_databases_is_one_transaction() {
    let database = Database::empty();
    let mut world = World::journaled(&database, "one").ready();
    let (conn, mut sql) = (client(&mut world), database.sql());
    for count in 1..=20 {
        assert_eq!(world.run(conn, "INCR n"), (2 * count - 1).to_string());
        for line in ["MULTI", "INCR n", "SELECT 0", "INCR rows", "SELECT 1"] {
            world.run(conn, line);
        }
        let said = format!("[{} OK {count} OK]", 2 * count);
        assert_eq!(world.run(conn, "EXEC"), said);
        // It is in the tables, with all that came before.
        assert_eq!(value(&mut sql, "n"), [(2 * count).to_string()]);
        assert_eq!(
            sql.run("SELECT convert_from(val, 'UTF8') FROM redis.kv WHERE db = 0"),
            [count.to_string()]
        );
    }
    assert_eq!(world.run(conn, "MOVE n 0"), "1");
    assert!(value(&mut sql, "n").is_empty());
    assert_eq!(world.run(conn, "SET n again"), "OK");
    assert_eq!(world.run(conn, "FLUSHALL"), "OK");
    assert_eq!(sql.run("SELECT count(*) FROM redis.kv"), ["0"]);
    assert_eq!(world.run(conn, "GET n"), "(nil)");
    assert_eq!(world.run(conn, "SET n 5"), "OK");
    sync(&mut world, &mut sql);
    assert_eq!(value(&mut sql, "n"), ["5"]);
    assert_eq!(world.engine.figures().batches.conflicts, 0);
}

#[test]
fn what_is_not_folded_is_never_evicted() {
    let database = Database::empty();
    let settings = Settings { journal_databases: vec![1], memory: 2_000, ..Settings::default() };
    let mut world = World::with(&database, "one", settings).ready();
    let (conn, mut sql) = (client(&mut world), database.sql());
    assert_eq!(world.run(conn, "PING"), "PONG");
    forbid(&mut sql);
    for round in 1..=3 {
        for key in 0..200 {
            assert_eq!(world.run(conn, &format!("INCR key{key}")), round.to_string());
        }
        for key in 0..200 {
            let said = world.run(conn, &format!("GET key{key}"));
            assert_eq!(said, format!("\"{round}\""));
        }
        if round == 2 {
            allow(&mut sql);
            sync(&mut world, &mut sql);
            world.until("it is evicted", |world| world.engine.figures().bytes < 2_000);
        }
    }
}

#[test]
fn all_keys_are_seen_when_they_are_acknowledged() {
    let database = Database::empty();
    let mut world = World::journaled(&database, "one").ready();
    let conn = client(&mut world);
    for count in 1..=5 {
        assert_eq!(world.run(conn, &format!("SET key{count} x")), "OK");
        assert_eq!(world.run(conn, "DBSIZE"), count.to_string());
        assert!(world.run(conn, "KEYS *").contains(&format!("\"key{count}\"")));
    }
    assert_eq!(world.run(conn, "DEL key1 key2 key3 key4"), "4");
    assert_eq!(world.run(conn, "KEYS *"), "[\"key5\"]");
    assert_eq!(world.run(conn, "FLUSHDB"), "OK");
    assert_eq!(world.run(conn, "SET last x"), "OK");
    assert_eq!(world.run(conn, "SCAN 0"), "[\"0\" [\"last\"]]");
}

#[test]
fn sql_that_writes_what_is_not_folded_loses_and_is_counted() {
    let database = Database::empty();
    let mut world = World::journaled(&database, "one").ready();
    let (conn, mut sql) = (client(&mut world), database.sql());
    assert_eq!(world.run(conn, "SET a 1"), "OK");
    sync(&mut world, &mut sql);
    // In time, it is as in any database.
    sql.run("UPDATE redis.kv SET val = '7' WHERE db = 1 AND key = 'a'");
    world.until("the change is heard", |world| world.run(conn, "GET a") == "\"7\"");
    assert_eq!(world.run(conn, "INCR a"), "8");
    sql.run("UPDATE redis.kv SET val = '9' WHERE db = 1 AND key = 'a'");
    world.until("it is counted", |world| world.engine.figures().overwritten == 1);
    sync(&mut world, &mut sql);
    assert_eq!(value(&mut sql, "a"), ["8"]);
    assert_eq!(world.run(conn, "GET a"), "\"8\"");
}

#[test]
fn all_kinds_of_values_are_what_memory_has_whatever_is_cut() {
    let database = Database::empty();
    let mut world = World::journaled(&database, "one").ready();
    let (conn, mut sql) = (client(&mut world), database.sql());
    let mut random = Random(20_261_122);
    for _ in 0..1_500 {
        let (key, name) = (random.below(4), random.below(5));
        let line = match random.below(12) {
            0 => format!("SADD set{key} {name}"),
            1 => format!("SREM set{key} {name}"),
            2 => format!("ZADD zset{key} {name} {name}"),
            3 => format!("ZREM zset{key} {name}"),
            4 => format!("RPUSH list{key} {name}"),
            5 => format!("LPOP list{key}"),
            6 => format!("HSET hash{key} {name} x"),
            7 => format!("RENAME hash{key} hash{name}"),
            8 => format!("XADD stream{key} * f {name}"),
            9 => format!("DEL set{name} list{key} stream{name}"),
            10 => format!("SET hash{key} {name}"),
            _ => format!("DEL hash{key}"),
        };
        world.run(conn, &line);
        if random.below(150) == 0 {
            world.cut_any(random.below(64) as usize);
        }
    }
    sync(&mut world, &mut sql);
    let all = |world: &mut World, conn: ConnId| {
        let mut said = Vec::new();
        for key in 0..5 {
            for line in [
                "SORT set? ALPHA",
                "ZRANGE zset? 0 -1 WITHSCORES",
                "LRANGE list? 0 -1",
                "GET hash?",
                "HLEN hash?",
                "XRANGE stream? - +",
            ] {
                said.push(world.run(conn, &line.replace('?', &key.to_string())));
            }
        }
        said
    };
    let before = all(&mut world, conn);
    drop(world);
    let mut world = World::journaled(&database, "two").ready();
    let conn = client(&mut world);
    assert_eq!(all(&mut world, conn), before);
}

#[test]
fn what_the_journal_refuses_is_told_and_the_rest_goes_on() {
    let database = Database::empty();
    let mut world = World::journaled(&database, "one").ready();
    let (conn, mut sql) = (client(&mut world), database.sql());
    assert_eq!(world.run(conn, "SET a 1"), "OK");
    sql.run("ALTER TABLE redis.journal ADD CONSTRAINT small CHECK (octet_length(effects) < 1000)");
    let others: Vec<_> = (0..4).map(|_| client(&mut world)).collect();
    let big = "x".repeat(2_000);
    for round in 1..=3 {
        let line = format!("SET a {big}");
        world.start(conn, line.split(' ').collect());
        world.turn();
        // Behind it, and on their way when it is refused.
        for other in &others {
            world.start(*other, ["INCR", "n"].into_iter().collect());
        }
        let mut said = None;
        world.until("it is refused", |world| {
            said = world.reply(conn);
            said.is_some()
        });
        assert!(said.is_some_and(|said| said.contains("\"small\"")));
        for other in &others {
            world.until("it is counted or refused", |world| world.reply(*other).is_some());
        }
        assert_eq!(world.run(conn, "GET a"), format!("\"{round}\""));
        assert_eq!(world.run(conn, "INCR a"), (round + 1).to_string());
    }
    sync(&mut world, &mut sql);
    assert_eq!(value(&mut sql, "a"), ["4"]);
    let counted = world.run(conn, "GET n");
    assert_eq!(value(&mut sql, "n"), [counted.trim_matches('"')]);
}

/// What does not come into the tables fills the journal to its limit: then writes wait, in memory as
/// many as fit there, and nothing else does.
#[test]
fn a_full_journal_holds_writes_until_it_is_folded() {
    let database = Database::empty();
    let (journal_limit, queue_limit) = (50_000, 100_000);
    let settings =
        Settings { journal_databases: vec![1], journal_limit, queue_limit, ..Settings::default() };
    let mut world = World::with(&database, "one", settings).ready();
    let (conn, mut sql) = (client(&mut world), database.sql());
    forbid(&mut sql);
    let text = "x".repeat(1_000);
    let set = |n: usize| ["SET", &format!("k{n}"), &text].into_iter().collect::<Words>();
    let mut acknowledged = 0;
    loop {
        world.start(conn, set(acknowledged));
        let mut said = None;
        for _ in 0..500 {
            world.turn();
            said = said.or_else(|| world.reply(conn));
            if said.is_some() {
                break;
            }
        }
        if said.is_none() {
            break;
        }
        acknowledged += 1;
        assert!(acknowledged < 200, "the journal takes everything");
    }
    let backlog = world.engine.store().backlog();
    assert!(backlog > journal_limit && backlog < journal_limit + 5_000, "{backlog} bytes");
    assert_eq!(world.engine.figures().folds.backlog, backlog);
    // Those that read, and those that write elsewhere, do not wait.
    let other = world.client();
    assert_eq!(world.run(other, "SET row 1"), "OK");
    let reader = client(&mut world);
    assert_eq!(world.run(reader, "GET k0"), format!("\"{text}\""));
    // As many as memory may take are begun.
    let mut begun = acknowledged + 1;
    let parked = loop {
        let next = client(&mut world);
        match world.engine.run(next, set(begun).args(), wall(), &mut Recorded::new(2)) {
            Ran::Done { barrier: Some(_), .. } => begun += 1,
            Ran::Parked => break next,
            ran => panic!("{ran:?}"),
        }
        assert!(begun < acknowledged + 500, "memory takes everything");
    };
    assert!(begun > acknowledged + 50, "{begun}");
    for _ in 0..200 {
        world.turn();
    }
    assert_eq!(world.reply(conn), None, "nothing is acknowledged that can still be lost");
    allow(&mut sql);
    world.until("the first one is written", |world| world.reply(conn).as_deref() == Some("OK"));
    world.until("there is room again", |world| !world.engine.keys.flow.has_open());
    assert_eq!(world.run(parked, "SET last 1"), "OK");
    sync(&mut world, &mut sql);
    let count = sql.one("SELECT count(*) FROM redis.kv WHERE db = 1");
    assert_eq!(count, (begun + 1).to_string());
}
