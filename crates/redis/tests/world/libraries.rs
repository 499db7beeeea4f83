//! Libraries of functions survive the gateway.

use redis::args::Words;

use crate::kit::Database;
use crate::world::World;

fn load(name: &str, says: &str) -> Words {
    let code = format!(
        "#!lua name={name}\nredis.register_function('{name}', function() return '{says}' end)"
    );
    ["FUNCTION", "LOAD", "REPLACE", &code].into_iter().collect()
}

#[track_caller]
fn run(world: &mut World, words: Words) -> String {
    let conn = world.client();
    world.start(conn, words);
    let mut said = None;
    world.until("a reply", |world| {
        said = world.reply(conn);
        said.is_some()
    });
    said.unwrap_or_default()
}

#[test]
fn libraries_that_were_acknowledged_are_there_for_the_next_gateway() {
    let database = Database::empty();
    let mut world = World::journaled(&database, "one").ready();
    for (name, says) in [("a", "first"), ("b", "second"), ("c", "third"), ("a", "again")] {
        assert_eq!(run(&mut world, load(name, says)), format!("{name:?}"));
    }
    assert_eq!(run(&mut world, ["FUNCTION", "DELETE", "b"].into_iter().collect()), "OK");
    // In one transaction with a key of a database in journal mode.
    let conn = world.client();
    assert_eq!(world.run(conn, "SELECT 1"), "OK");
    assert_eq!(world.run(conn, "MULTI"), "OK");
    world.start(conn, load("d", "fourth"));
    world.until("it is queued", |world| world.reply(conn).is_some());
    assert_eq!(world.run(conn, "SET k v"), "QUEUED");
    assert_eq!(world.run(conn, "EXEC"), "[\"d\" OK]");
    drop(world);

    let mut world = World::journaled(&database, "two").ready();
    let conn = world.client();
    for (name, says) in [("a", "\"again\""), ("b", ""), ("c", "\"third\""), ("d", "\"fourth\"")] {
        let expected = if says.is_empty() { "!ERR Function not found" } else { says };
        assert_eq!(world.run(conn, &format!("FCALL {name} 0")), expected);
    }
    assert_eq!(world.run(conn, "DBSIZE"), "0");
    let databases = world.run(conn, "INFO keyspace");
    assert!(
        databases.contains("db1:keys=1,") && databases.matches("db").count() == 1,
        "{databases}"
    );
    let names = "SELECT string_agg(name, ' ' ORDER BY name) FROM redis.libraries";
    assert_eq!(database.sql().one(names), "a c d");
    assert_eq!(database.sql().one("SELECT count(*) FROM redis.hashes"), "0");
    assert_eq!(world.run(conn, "FUNCTION FLUSH"), "OK");
    drop(world);

    let mut world = World::new(&database, "three").ready();
    let conn = world.client();
    assert_eq!(world.run(conn, "FUNCTION LIST"), "[]");
    // SQL may store one, too.
    database.sql().run(
        "SELECT redis.hset('libraries', 'l', E'#!lua name=l\\n\
         redis.register_function(''f'', function() return 7 end)', db => -1)",
    );
    world.until("it is heard", |world| world.run(conn, "FCALL f 0") == "7");
    database.sql().run("DELETE FROM redis.hash");
    world.until("it is gone", |world| world.run(conn, "FCALL f 0") == "!ERR Function not found");
}

#[test]
fn a_library_is_loaded_once_whatever_is_cut() {
    let database = Database::empty();
    let mut world = World::new(&database, "one").ready();
    for round in 0..60 {
        let conn = world.client();
        world.start(conn, load("l", &format!("{round}")));
        for _ in 0..round % 9 {
            world.turn();
        }
        world.cut_any(round);
        let mut said = None;
        world.until("it is loaded", |world| {
            said = world.reply(conn);
            said.is_some()
        });
        assert_eq!(said.as_deref(), Some("\"l\""));
        assert_eq!(world.run(conn, "FCALL l 0"), format!("\"{round}\""));
    }
    assert!(world.lost.is_empty(), "nobody else was there");
}
