//! Data: what is answered is in the tables, whatever happens to connections and gateways.

use rustix::process::{kill_process, Pid, Signal};

use super::open;
use crate::caching::place::Cached;
use crate::kit::cluster::APP;
use crate::kit::{cluster, Config, Gateway, RedisClient};

fn set(key: &str, value: &str) -> Vec<u8> {
    let (k, v) = (key.len(), value.len());
    format!("*3\r\n$3\r\nSET\r\n${k}\r\n{key}\r\n${v}\r\n{value}\r\n").into_bytes()
}

fn get(key: &str) -> Vec<u8> {
    format!("*2\r\n$3\r\nGET\r\n${}\r\n{key}\r\n", key.len()).into_bytes()
}

fn bulk(value: &str) -> Vec<u8> {
    format!("${}\r\n{value}\r\n", value.len()).into_bytes()
}

#[test]
fn what_was_answered_is_there_for_sql_and_for_the_next_gateway() {
    let database = cluster().database();
    let gateway = Gateway::start(open(&database));
    let mut client = RedisClient::connect(&gateway);
    client.says(&get("none"), b"$-1\r\n");
    client.says(&[set("a", "1"), get("a"), set("a", "2")].concat(), b"+OK\r\n$1\r\n1\r\n+OK\r\n");
    client.says(
        b"MULTI\r\nSET b 3\r\nINCRBY a 5\r\nEXEC\r\n",
        b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:7\r\n",
    );
    let value = database.one("select convert_from(val, 'UTF8') from redis.kv where key = 'a'");
    assert_eq!(value, "7");
    drop(client);
    drop(gateway);
    let gateway = Gateway::start(open(&database));
    let mut client = RedisClient::connect(&gateway);
    client.says(&[get("a"), get("b")].concat(), b"$1\r\n7\r\n$1\r\n3\r\n");
}

#[test]
fn libraries_of_functions_survive_a_kill() {
    let database = cluster().database();
    let mut gateway = Gateway::start(open(&database));
    let mut client = RedisClient::connect(&gateway);
    let load = |name: &str| {
        let code = format!(
            "#!lua name={name}\nredis.register_function('{name}', function(keys) \
             return redis.call('incr', keys[1]) end)"
        );
        [b"*3\r\n$8\r\nFUNCTION\r\n$4\r\nLOAD\r\n".to_vec(), bulk(&code)].concat()
    };
    client.says(&[load("a"), load("b")].concat(), b"$1\r\na\r\n$1\r\nb\r\n");
    client.says(b"FUNCTION DELETE b\r\nFCALL a 1 n\r\n", b"+OK\r\n:1\r\n");
    gateway.signal(Signal::KILL);
    gateway.wait();
    drop(client);
    assert_eq!(database.one("select name from redis.libraries"), "a");
    let gateway = Gateway::start(open(&database));
    let mut client = RedisClient::connect(&gateway);
    client.says(b"FCALL a 1 n\r\nFCALL b 1 n\r\n", b":2\r\n-ERR Function not found\r\n");
    client.says(b"FUNCTION FLUSH\r\nFCALL a 1 n\r\n", b"+OK\r\n-ERR Function not found\r\n");
}

#[test]
fn ten_thousand_writes_in_one_pipeline_are_all_answered_and_all_there() {
    let database = cluster().database();
    let gateway = Gateway::start(open(&database).set("runtime.workers", 2));
    let mut client = RedisClient::connect(&gateway);
    let keys: Vec<String> = (0..10_000).map(|number| format!("key:{number}")).collect();
    let writes: Vec<u8> = keys.iter().flat_map(|key| set(key, &key.repeat(3))).collect();
    client.says(&writes, &b"+OK\r\n".repeat(10_000));
    assert_eq!(database.one("select count(*) from redis.kv"), "10000");
    let reads: Vec<u8> = keys.iter().flat_map(|key| get(key)).collect();
    let expected: Vec<u8> = keys.iter().flat_map(|key| bulk(&key.repeat(3))).collect();
    let mut other = RedisClient::connect(&gateway);
    other.says(&reads, &expected);
}

#[test]
fn a_lost_connection_loses_nothing_that_was_answered_and_answers_the_rest() {
    let database = cluster().database();
    let gateway = Gateway::start(open(&database));
    let mut client = RedisClient::connect(&gateway);
    client.says(b"SET n 0\r\n", b"+OK\r\n");
    for round in 0..5 {
        for number in 0..50 {
            let expected = format!(":{}\r\n", round * 50 + number + 1);
            client.send(b"INCRBY n 1\r\n");
            if number == 25 {
                database.run(
                    "select pg_terminate_backend(pid) from pg_stat_activity \
                     where datname = current_database() and application_name = 'pondage redis'",
                );
            }
            client.hears(expected.as_bytes());
        }
    }
    assert_eq!(database.one("select convert_from(val, 'UTF8') from redis.kv"), "250");
}

#[test]
fn who_waits_for_a_list_is_answered_by_a_push_whatever_worker_it_came_to() {
    let database = cluster().database();
    let gateway = Gateway::start(open(&database).set("runtime.workers", 3));
    let mut poppers: Vec<_> = (0..6).map(|_| RedisClient::connect(&gateway)).collect();
    for (number, popper) in poppers.iter_mut().enumerate() {
        popper.says(b"PING\r\n", b"+PONG\r\n");
        // What follows a command that blocks waits with it.
        popper.send(format!("BLPOP q:{number} 0\r\nPING\r\n").as_bytes());
    }
    let mut pusher = RedisClient::connect(&gateway);
    for (number, popper) in poppers.iter_mut().enumerate() {
        pusher.says(format!("RPUSH q:{number} x\r\n").as_bytes(), b":1\r\n");
        popper.hears(format!("*2\r\n$3\r\nq:{number}\r\n$1\r\nx\r\n+PONG\r\n").as_bytes());
    }
    pusher.says(b"EXISTS q:0 q:1 q:2 q:3 q:4 q:5\r\n", b":0\r\n");
}

#[test]
fn what_was_answered_is_seen_by_who_reads_sql_through_the_cache() {
    let database = cluster().database();
    let cached = |config: Config| {
        let port = format!("databases.{}.port", database.name);
        let config = config.set(&port, i64::from(cluster().port)).set("cache.mode", "auto");
        config.set("cache.user", APP).set("cache.wait", "20ms")
    };
    let gateway = Gateway::start(cached(open(&database)));
    let mut redis = RedisClient::connect(&gateway);
    redis.says(&set("a", "0"), b"+OK\r\n");
    let read = "select encode(val, 'escape') from redis.kv where db = 0 and key = 'a'";
    let mut reader = gateway.client(&database);
    reader.warm(read);
    // From now on the stream tells nothing.
    let sender = "select active_pid from pg_replication_slots where database = current_database()";
    let sender: i32 = database.one(sender).parse().expect("a process id");
    let sender = Pid::from_raw(sender).expect("not zero");
    kill_process(sender, Signal::STOP).expect("the sender runs");
    let seen: Vec<String> = ["1", "2", "3"]
        .into_iter()
        .map(|value| {
            redis.says(&set("a", value), b"+OK\r\n");
            reader.one(read)
        })
        .collect();
    kill_process(sender, Signal::CONT).expect("the sender is there");
    assert_eq!(seen, ["1", "2", "3"]);
    assert_eq!(reader.warm(read), [[Some("3".to_owned())]]);
}
