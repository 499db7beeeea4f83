//! The schema comes into a database.

use crate::kit::Database;
use redis::schema;

#[test]
fn installing_at_once_and_again_gives_one_schema() {
    let database = Database::empty();
    assert_eq!(database.sql().one(schema::IS_PRESENT), "f");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let database = database.clone();
            std::thread::spawn(move || database.sql().run(&schema::install()))
        })
        .collect();
    for thread in threads {
        thread.join().expect("nobody fails");
    }
    let mut sql = database.sql();
    sql.run(&schema::install());
    assert_eq!(sql.one(schema::IS_PRESENT), "t");
    let newest = schema::migrations().last().expect("a migration").version;
    assert_eq!(sql.run(schema::VERSION), [newest.to_string()]);
}

#[test]
fn a_schema_of_an_older_program_gets_what_is_missing() {
    let database = Database::empty();
    let mut sql = database.sql();
    sql.run(schema::migrations()[0].sql);
    sql.run("INSERT INTO redis.version VALUES (1); SELECT redis.hset('h', 'f', 'v')");
    sql.run(&schema::install());
    let newest = schema::migrations().last().expect("a migration").version;
    assert_eq!(sql.run(schema::VERSION), [newest.to_string()]);
    assert_eq!(sql.run("SELECT key_text, value_text FROM redis.hashes"), ["h|v"]);
    assert_eq!(sql.one("SELECT count(*) FROM redis.libraries"), "0");
}

#[test]
fn a_schema_of_a_newer_program_is_left_alone() {
    let database = Database::new();
    let mut sql = database.sql();
    sql.run("UPDATE redis.version SET version = 1000");
    let (code, _) = sql.attempt(&schema::install()).expect_err("it is newer");
    assert_eq!(code, "RD006");
}

#[test]
fn migrations_are_numbered_without_gaps() {
    let versions: Vec<_> = schema::migrations().iter().map(|step| step.version).collect();
    assert_eq!(versions, (1..=versions.len() as i32).collect::<Vec<_>>());
}

#[test]
fn one_gateway_serves_a_database() {
    use redis::statements::LOCK;
    let database = Database::new();
    let lock = |session: &mut crate::kit::Session| {
        let rows = session.call(&LOCK, |params| params.int8(schema::GATEWAY_LOCK)).expect("asked");
        rows[0][0] == Some(vec![1])
    };
    let (mut first, mut second) = (database.engine(), database.engine());
    assert!(lock(&mut first) && !lock(&mut second));
    first.run("SELECT pg_advisory_unlock_all()");
    assert!(lock(&mut second));
}
