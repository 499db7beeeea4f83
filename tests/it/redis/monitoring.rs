//! MONITOR at the door: secrets are not shown, and who does not read is closed.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use super::{guarded, open};
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, wait, Gateway, RedisClient};

/// What a monitor has been shown next, without the time.
fn line(monitor: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    monitor.read_line(&mut line).expect("a line");
    let (time, rest) = line.trim_end().split_once(' ').expect("a time");
    assert!(time.starts_with('+') && time.contains('.'), "{line}");
    rest.to_owned()
}

/// A password may have blanks in it.
fn auth() -> String {
    let words = ["AUTH", APP, APP_PASSWORD];
    let words = words.map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*3\r\n{}", words.concat())
}

/// Monitors, once `OK` has been said so many times.
fn monitor(gateway: &Gateway, before: &str, count: usize) -> BufReader<TcpStream> {
    let mut socket = RedisClient::socket(gateway);
    socket.write_all(before.as_bytes()).expect("written");
    socket.write_all(b"MONITOR\r\n").expect("written");
    let mut monitor = BufReader::new(socket);
    let mut said = String::new();
    for _ in 0..count {
        said.clear();
        monitor.read_line(&mut said).expect("a line");
        assert_eq!(said, "+OK\r\n");
    }
    monitor
}

#[test]
fn no_monitor_is_shown_a_password() {
    let gateway = Gateway::start(guarded(&cluster().database()).set("runtime.workers", 2));
    let mut monitor = monitor(&gateway, &auth(), 2);
    // Over several connections, and so both workers.
    for _ in 0..3 {
        let mut client = RedisClient::connect(&gateway);
        client.send(format!("HELLO 2 AUTH {APP} wrong SETNAME me\r\n").as_bytes());
        client.hears(b"-WRONGPASS invalid username-password pair or user is disabled.\r\n");
        client.send(format!("HELLO x auth {APP}\r\n").as_bytes());
        client.hears(b"-ERR Protocol version is not an integer or out of range\r\n");
        client.says(auth().as_bytes(), b"+OK\r\n");
        client.says(b"SET a 1\r\nCONFIG GET port\r\nGET a\r\n", b"+OK\r\n");
        for expected in [
            r#""HELLO" "2" "AUTH" "(redacted)" "(redacted)" "SETNAME" "me""#,
            r#""HELLO" "x" "auth" "(redacted)""#,
            r#""AUTH" "(redacted)" "(redacted)""#,
            r#""SET" "a" "1""#,
            r#""GET" "a""#,
        ] {
            let shown = line(&mut monitor);
            let (place, shown) = shown.split_once("] ").expect("a place");
            assert!(place.starts_with("[0 127.0.0.1:"), "{place}");
            assert_eq!(shown, expected);
        }
    }
}

#[test]
fn a_monitor_that_does_not_read_is_closed() {
    let gateway = Gateway::start(open(&cluster().database()).set("redis.output_limit", "1MiB"));
    let deaf = monitor(&gateway, "", 1);
    let mut client = RedisClient::connect(&gateway);
    let value = "x".repeat(100_000);
    let echo = format!("*2\r\n$4\r\nECHO\r\n$100000\r\n{value}\r\n");
    let answer = format!("$100000\r\n{value}\r\n");
    wait::until("the monitor to be closed", || {
        client.says(echo.as_bytes(), answer.as_bytes());
        gateway.said().contains("event=redis_output_limit")
    });
    wait::until("it to be gone", || gateway.show("redis_clients").len() == 1);
    drop(deaf);
}
