//! SQL and Redis write the same rows.

use crate::kit::Database;
use crate::world::World;

#[test]
fn what_redis_writes_is_rows_and_what_sql_writes_is_seen() {
    let database = Database::empty();
    let mut world = World::new(&database, "one").ready();
    let conn = world.client();
    assert_eq!(world.run(conn, "SET greeting hello"), "OK");
    assert_eq!(world.run(conn, "RPUSH list a b c"), "3");
    assert_eq!(world.run(conn, "HSET hash f v"), "1");
    let mut sql = database.sql();
    let value = "SELECT convert_from(val, 'UTF8') FROM redis.kv WHERE key = 'greeting'";
    assert_eq!(sql.run(value), ["hello"]);
    sql.run("SELECT redis.set('greeting', 'from SQL')");
    world.until("the change is heard", |world| world.run(conn, "GET greeting") == "\"from SQL\"");
    sql.run("SELECT redis.rpush('list', 'd')");
    let all = "[\"a\" \"b\" \"c\" \"d\"]";
    world.until("the push is heard", |world| world.run(conn, "LRANGE list 0 -1") == all);
    sql.run("DELETE FROM redis.kv WHERE key = 'hash'");
    world.until("the removal is heard", |world| world.run(conn, "HLEN hash") == "0");
    assert_eq!(world.run(conn, "DBSIZE"), "2");
}

#[test]
fn no_change_is_overwritten_unseen() {
    let database = Database::empty();
    let mut world = World::new(&database, "one").ready();
    let conn = world.client();
    assert_eq!(world.run(conn, "SET n 0"), "OK");
    let mut sql = database.sql();
    // Both count, in any order, as fast as they can: every step must be there in the end.
    for step in 0..200 {
        let words = ["INCR", "n"].into_iter().collect();
        world.start(conn, words);
        if step % 2 == 0 {
            world.turn();
        }
        sql.run("SELECT redis.incr('n')");
        world.until("the count", |world| world.reply(conn).is_some());
    }
    let value = "SELECT convert_from(val, 'UTF8') FROM redis.kv WHERE key = 'n'";
    assert_eq!(sql.run(value), ["400"]);
    world.until("memory agrees", |world| world.run(conn, "GET n") == "\"400\"");
}

#[test]
fn blocked_poppers_wake_at_the_commit_of_sql() {
    let database = Database::empty();
    let mut world = World::new(&database, "one").ready();
    let (waiting, mut sql) = (world.client(), database.sql());
    world.start(waiting, ["BLPOP", "jobs", "0"].into_iter().collect());
    sql.run("BEGIN");
    sql.run("SELECT redis.lpush('jobs', 'work')");
    for _ in 0..50 {
        world.turn();
    }
    assert!(world.answers.is_empty(), "nothing is committed yet");
    sql.run("COMMIT");
    world.until("the popper wakes", |world| world.answers.contains_key(&waiting));
    assert_eq!(world.answers[&waiting], ["[\"jobs\" \"work\"]"]);
    let none = |world: &mut World| world.run(waiting, "EXISTS jobs") == "0";
    world.until("it was taken", none);
}

#[test]
fn watch_trips_on_a_change_that_nobody_has_heard_of() {
    let database = Database::empty();
    let mut world = World::new(&database, "one").ready();
    let (conn, mut sql) = (world.client(), database.sql());
    assert_eq!(world.run(conn, "SET stock 1"), "OK");
    assert_eq!(world.run(conn, "WATCH stock"), "OK");
    assert_eq!(world.run(conn, "GET stock"), "\"1\"");
    assert_eq!(world.run(conn, "MULTI"), "OK");
    assert_eq!(world.run(conn, "SET order 7"), "QUEUED");
    // Committed before EXEC is given, told only when the engine reads its socket.
    sql.run("SELECT redis.set('stock', '0')");
    assert_eq!(world.run(conn, "EXEC"), "(nil array)");
    assert_eq!(world.run(conn, "GET order"), "(nil)");
}

#[test]
fn rows_whose_time_is_over_are_swept() {
    let database = Database::empty();
    let mut world = World::new(&database, "one").ready();
    let mut sql = database.sql();
    sql.run(
        "INSERT INTO redis.kv (db, key, t, val, expires_at) \
         SELECT 0, int4send(n), 's', 'x', now() + n * interval '1 ms' \
         FROM generate_series(-500, 500) n",
    );
    sql.run("INSERT INTO redis.kv (db, key, t, val) VALUES (0, 'stays', 's', 'x')");
    world.until("the rows are gone", |world| {
        world.turn();
        sql.run("SELECT count(*) FROM redis.kv") == ["1"]
    });
}

#[test]
fn a_row_that_an_sql_transaction_has_locked_delays_its_shard_and_loses_nothing() {
    let database = Database::empty();
    let mut world = World::new(&database, "one").ready();
    let (conn, mut sql) = (world.client(), database.sql());
    assert_eq!(world.run(conn, "SET n 1"), "OK");
    sql.run("BEGIN");
    sql.run("SELECT redis.incr('n')");
    world.start(conn, ["INCR", "n"].into_iter().collect());
    for _ in 0..2_000 {
        world.turn();
    }
    assert_eq!(world.reply(conn), None, "it waits");
    sql.run("COMMIT");
    let mut said = None;
    world.until("it goes on", |world| {
        said = world.reply(conn);
        said.is_some()
    });
    assert_eq!(said.as_deref(), Some("3"), "it was done again on the new row");
}

#[test]
fn a_lock_that_is_held_for_too_long_is_an_error_and_no_write() {
    let database = Database::empty();
    let mut world = World::new(&database, "one").ready();
    let (conn, mut sql) = (world.client(), database.sql());
    assert_eq!(world.run(conn, "SET n 1"), "OK");
    sql.run("BEGIN");
    sql.run("SELECT redis.incr('n')");
    let said = world.run(conn, "INCR n");
    assert!(said.contains("lock timeout"), "{said}");
    sql.run("ROLLBACK");
    assert_eq!(world.run(conn, "INCR n"), "2");
}

#[test]
fn hurried_databases_are_written_too() {
    let database = Database::empty();
    let mut world = World::new(&database, "one").ready();
    let conn = world.client();
    assert_eq!(world.run(conn, "SELECT 9"), "OK");
    assert_eq!(world.run(conn, "SET n 1"), "OK");
    let mut sql = database.sql();
    assert_eq!(sql.run("SELECT db, convert_from(val, 'UTF8') FROM redis.kv"), ["9|1"]);
}
