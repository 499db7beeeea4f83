//! Commands and views for SQL users.

use crate::batches::{fence, owner, string};
use crate::kit::Database;
use redis::batch::{Batch, Expect, Put};

#[test]
fn commands_do_in_sql_what_they_do_in_redis() {
    let database = Database::new();
    let mut sql = database.sql();
    let cases = [
        ("get('a')", "-"),
        ("set('a', 'ü')", ""),
        ("get('a')", "ü"),
        ("get('a'::bytea)", "\\xc3bc"),
        ("exists('a')", "t"),
        ("type('a')", "string"),
        ("ttl('a')", "-1"),
        ("expire('a', '1 hour')", "t"),
        ("ttl('a')", "3600"),
        ("set('a', 'b', '10 s')", ""),
        ("ttl('a')", "10"),
        ("expire('a', NULL)", "t"),
        ("ttl('a')", "-1"),
        ("expire('a', '-1 s')", "t"),
        ("exists('a')", "f"),
        ("get('a')", "-"),
        ("type('a')", "none"),
        ("ttl('a')", "-2"),
        ("del('a')", "f"),
        ("expire('a', '1 s')", "f"),
        ("incr('n')", "1"),
        ("incrby('n', 41)", "42"),
        ("incrby('n', -100)", "-58"),
        ("get('n')", "-58"),
        ("del('n')", "t"),
        ("set('x', 'other', db => 3)", ""),
        ("get('x')", "-"),
        ("get('x', 3)", "other"),
        ("hset('h', 'f', 'v')", "t"),
        ("hset('h', 'f', 'w')", "f"),
        ("hset('h', 'g', '')", "t"),
        ("hget('h', 'f')", "w"),
        ("hget('h', 'none')", "-"),
        ("hgetall('h')", "(f,w) (g,\"\")"),
        ("hdel('h', 'f')", "t"),
        ("hdel('h', 'f')", "f"),
        ("hdel('h', 'g')", "t"),
        ("type('h')", "none"),
        ("rpush('l', 'b')", "1"),
        ("rpush('l', 'c')", "2"),
        ("lpush('l', 'a')", "3"),
        ("llen('l')", "3"),
        ("lrange('l', 0, -1)", "a b c"),
        ("lrange('l', -2, 10)", "b c"),
        ("lrange('l', 5, 10)", ""),
        ("lpop('l')", "a"),
        ("rpop('l')", "c"),
        ("rpop('l')", "b"),
        ("rpop('l')", "-"),
        ("exists('l')", "f"),
        ("sadd('s', 'm')", "t"),
        ("sadd('s', 'm')", "f"),
        ("sadd('s', 'n')", "t"),
        ("smembers('s')", "m n"),
        ("sismember('s', 'm')", "t"),
        ("srem('s', 'm')", "t"),
        ("srem('s', 'm')", "f"),
        ("sismember('s', 'm')", "f"),
        ("zadd('z', 2, 'b')", "t"),
        ("zadd('z', 1, 'c')", "t"),
        ("zadd('z', 1, 'a')", "t"),
        ("zadd('z', 0, 'b')", "f"),
        ("zrange('z', 0, -1)", "(b,0) (a,1) (c,1)"),
        ("zscore('z', 'c')", "1"),
        ("zscore('z', 'none')", "-"),
        ("zrem('z', 'c')", "t"),
        ("zrange('z', -1, -1)", "(a,1)"),
        ("keys('')", "s z"),
        ("keys('z')", "z"),
        ("sync()", "t"),
    ];
    for (call, expected) in cases {
        let got = sql.run(&format!("SELECT redis.{call}")).join(" ");
        assert_eq!(got, expected, "{call}");
    }
    let failures = [
        ("get('s')", "RD004"),
        ("incr('s')", "RD004"),
        ("lpush('s', 'x')", "RD004"),
        ("zrange('s', 0, 1)", "RD004"),
        ("incr('x', 3)", "RD005"),
        ("incrby('max', 1)", "RD005"),
        ("zadd('z', 'NaN', 'm')", "RD005"),
    ];
    sql.run("SELECT redis.set('max', '9223372036854775807')");
    for (call, expected) in failures {
        let (code, _) = sql.attempt(&format!("SELECT redis.{call}")).expect_err(call);
        assert_eq!(code, expected, "{call}");
    }
}

#[test]
fn long_names_are_names_like_others() {
    let database = Database::new();
    let mut sql = database.sql();
    let long = "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 300) n)";
    let results = sql.run(&format!(
        "SELECT redis.set({long}, 'v'); SELECT redis.get({long}); \
         SELECT redis.hset('h', {long}, 'v'); SELECT redis.hget('h', {long}); \
         SELECT redis.sadd('s', {long}); SELECT redis.sismember('s', {long}); \
         SELECT redis.zadd('z', 1, {long}); SELECT redis.zscore('z', {long}); \
         SELECT length(redis.smembers('s')); SELECT redis.srem('s', {long}); \
         SELECT max(length(key_text)) FROM redis.strings; SELECT redis.del({long})"
    ));
    assert_eq!(results, ["", "v", "t", "v", "t", "t", "t", "1", "9600", "t", "9600", "t"]);
}

#[test]
fn commands_of_many_transactions_wait_for_one_another() {
    let database = Database::new();
    let threads: Vec<_> = (0..4)
        .map(|at| {
            let database = database.clone();
            std::thread::spawn(move || {
                let mut sql = database.sql();
                for n in 0..50 {
                    sql.run(&format!(
                        "SELECT redis.incr('n'), redis.rpush('l', '{at}'), redis.sadd('s', '{n}'), \
                         redis.hset('h', '{at}-{n}', '')"
                    ));
                    // Keys that come and go are made by one of them.
                    sql.run("SELECT redis.rpush('q', 'x')");
                    sql.run("SELECT redis.lpop('q')");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("nobody fails");
    }
    let mut sql = database.sql();
    assert_eq!(
        sql.run(
            "SELECT redis.get('n'), redis.llen('l'), redis.exists('q'); \
             SELECT count(*) FROM redis.set_; SELECT count(*) FROM redis.hash; \
             SELECT t, n FROM redis.kv WHERE t <> 's' ORDER BY t"
        ),
        ["200|200|f", "50", "200", "e|50", "h|200", "l|200"]
    );
}

#[test]
fn views_show_what_is_alive_as_text_where_it_is() {
    let database = Database::new();
    let (mut engine, mut sql) = (owner(&database), database.sql());
    let mut batch = Batch::new();
    batch.put(string(b"text", "ü\\".as_bytes()), Expect::Absent);
    batch.put(string(b"\xff\0", b"\0"), Expect::Absent);
    batch.put(Put { expires: 1, ..string(b"over", b"v") }, Expect::Absent);
    engine.apply(&batch, &[fence(1)]).expect("applied");
    sql.run(
        "SELECT redis.hset('h', 'f', 'v'), redis.rpush('l', 'a'), redis.rpush('l', 'b'), \
         redis.sadd('s', 'm'), redis.zadd('z', 1.5, 'm'), redis.hset('gone', 'f', 'v'); \
         SELECT redis.expire('gone', '-1 s')",
    );
    assert_eq!(
        sql.run("SELECT key, key_text, value_text FROM redis.strings ORDER BY key"),
        ["\\x74657874|text|ü\\", "\\xff00|-|-"]
    );
    assert_eq!(sql.run("SELECT key_text, field_text, value_text FROM redis.hashes"), ["h|f|v"]);
    assert_eq!(
        sql.run("SELECT key_text, index, value_text FROM redis.lists ORDER BY index"),
        ["l|0|a", "l|1|b"]
    );
    assert_eq!(sql.run("SELECT key_text, member_text FROM redis.sets"), ["s|m"]);
    assert_eq!(sql.run("SELECT key_text, member_text, score FROM redis.zsets"), ["z|m|1.5"]);
}

#[test]
fn a_role_with_the_rights_of_the_manual_can_do_everything() {
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/redis-sql.md");
    let manual = std::fs::read_to_string(manual).expect("the manual");
    let rights = manual.split("## Rights").nth(1).expect("a section");
    let rights = rights.split("```").nth(1).expect("statements").trim_start_matches("sql");
    let database = Database::new();
    let mut sql = database.sql();
    sql.run("CREATE ROLE app");
    sql.run(rights);
    sql.run("SET ROLE app");
    sql.run(
        "SELECT redis.set('a', '1'), redis.incr('a'), redis.hset('h', 'f', 'v'), \
         redis.rpush('l', 'a'), redis.sadd('s', 'm'), redis.zadd('z', 1, 'm'), redis.sync('0 s'); \
         SELECT redis.get('a'), redis.lpop('l'), redis.srem('s', 'm'), redis.del('h'); \
         SELECT * FROM redis.strings; SELECT * FROM redis.zsets; SELECT redis.expire('a', '1 s'); \
         UPDATE redis.zset SET score = 2; DELETE FROM redis.kv",
    );
}
