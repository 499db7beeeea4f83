//! Commands in every form and in pieces, and what ends a connection.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use super::open;
use crate::kit::{cluster, Gateway, RedisClient};

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

#[test]
fn inline_commands_are_understood_as_redis_understands_them() {
    let gateway = Gateway::start(open(&cluster().database()));
    let mut client = RedisClient::connect(&gateway);
    client.says(b"PING\r\n", b"+PONG\r\n");
    client.says(b"  ping \t \"a b\" \n", b"$3\r\na b\r\n");
    client.says(b"PING '\\n\\'' \r\n", b"$3\r\n\\n'\r\n");
    client.says(b"PING \"\\x00\\xff\\n\"\r\n", b"$3\r\n\0\xff\n\r\n");
    client.says(b"\r\n\n*0\r\n*-1\r\nPING\r\n", b"+PONG\r\n");
    client.says(b"PING \"a\r\n", b"-ERR Protocol error: unbalanced quotes in request\r\n");
    client.ends();
}

#[test]
fn what_is_no_command_is_told_as_redis_tells_it_and_ends_the_connection() {
    let gateway = Gateway::start(open(&cluster().database()));
    let long = [b'1'; 70_000];
    for (bytes, told) in [
        (&b"*3000000000\r\n"[..], "invalid multibulk length"),
        (b"*a\r\n", "invalid multibulk length"),
        (b"*1\r\n$-10\r\n", "invalid bulk length"),
        (b"*1\r\n$2000000000\r\n", "invalid bulk length"),
        (b"*1\r\nfoo\r\n", "expected '$', got 'f'"),
        (&long, "too big inline request"),
        (&[b"*", &long[..]].concat(), "too big mbulk count string"),
        (&[b"*1\r\n$", &long[..]].concat(), "too big bulk count string"),
    ] {
        let mut client = RedisClient::connect(&gateway);
        client.send(PING);
        client.hears(b"+PONG\r\n");
        client.send(bytes);
        client.hears(format!("-ERR Protocol error: {told}\r\n").as_bytes());
        client.ends();
    }
}

#[test]
fn a_pipeline_is_answered_however_it_is_cut() {
    let gateway = Gateway::start(open(&cluster().database()));
    let bytes = b"PING\r\n*2\r\n$4\r\nPING\r\n$6\r\n\r\nab\r\n\r\n*0\r\nping \"x y\"\r\n*2\r\n$6\r\nselect\r\n$1\r\n3\r\n";
    let expected = b"+PONG\r\n$6\r\n\r\nab\r\n\r\n$3\r\nx y\r\n+OK\r\n";
    let mut client = RedisClient::connect(&gateway);
    for cut in 1..bytes.len() {
        client.send(&bytes[..cut]);
        // The kernel may still join the pieces; a turn between them is what usually happens.
        std::thread::yield_now();
        client.says(&bytes[cut..], expected);
    }
    for byte in bytes {
        client.send(&[*byte]);
    }
    client.hears(expected);
}

#[test]
fn ten_thousand_commands_on_one_connection_are_all_answered() {
    let gateway = Gateway::start(open(&cluster().database()));
    let mut client = RedisClient::connect(&gateway);
    client.says(&PING.repeat(10_000), &b"+PONG\r\n".repeat(10_000));
    client.says(b"HELLO 4\r\n", b"-NOPROTO unsupported protocol version\r\n");
}

#[test]
fn who_closes_its_side_is_answered_first() {
    let gateway = Gateway::start(open(&cluster().database()));
    let mut socket = RedisClient::socket(&gateway);
    socket.write_all(&PING.repeat(3_000)).expect("written");
    socket.shutdown(Shutdown::Write).expect("half closed");
    let mut heard = Vec::new();
    socket.read_to_end(&mut heard).expect("read");
    assert_eq!(heard, b"+PONG\r\n".repeat(3_000));
}

#[test]
fn a_client_that_does_not_read_is_no_longer_read_and_keeps_nobody_waiting() {
    let gateway = Gateway::start(open(&cluster().database()));
    let mut deaf = RedisClient::socket(&gateway);
    let command = [b"*2\r\n$4\r\nPING\r\n$10000\r\n".as_slice(), &[b'x'; 10_000], b"\r\n"].concat();
    deaf.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let mut sent = 0;
    // Until neither the gateway nor the kernel takes more.
    let stuck = loop {
        match deaf.write(&command[sent % command.len()..]) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
        assert!(sent < 200 << 20, "the gateway takes everything");
    };
    assert_eq!(stuck.kind(), std::io::ErrorKind::WouldBlock);
    let mut other = RedisClient::connect(&gateway);
    other.says(PING, b"+PONG\r\n");

    let reply = [b"$10000\r\n".as_slice(), &[b'x'; 10_000], b"\r\n"].concat();
    let mut heard = vec![0; reply.len()];
    for _ in 0..sent / command.len() {
        deaf.read_exact(&mut heard).expect("every whole command is answered");
        assert!(heard == reply);
    }
    let rest = &command[sent % command.len()..];
    deaf.write_all(rest).expect("it is read again");
    deaf.read_exact(&mut heard).expect("the last one, too");
}

#[test]
fn several_workers_serve_one_door() {
    let gateway = Gateway::start(open(&cluster().database()).set("runtime.workers", 3));
    let mut clients: Vec<_> = (0..30).map(|_| RedisClient::connect(&gateway)).collect();
    for _ in 0..20 {
        clients.iter_mut().for_each(|client| client.send(PING));
        clients.iter_mut().for_each(|client| client.hears(b"+PONG\r\n"));
    }
}

#[test]
fn resp3_is_spoken_to_who_asks_for_it() {
    let gateway = Gateway::start(open(&cluster().database()));
    let mut client = RedisClient::connect(&gateway);
    client.says(b"HELLO 3\r\n", b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n");
    drop(client);
    let mut client = RedisClient::connect(&gateway);
    client.says(b"HELLO 2\r\n", b"*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n");
}

#[test]
fn clients_are_let_go_when_the_gateway_ends() {
    let mut gateway = Gateway::start(open(&cluster().database()));
    let mut client = RedisClient::connect(&gateway);
    client.says(PING, b"+PONG\r\n");
    gateway.signal(rustix::process::Signal::TERM);
    client.ends();
    assert!(gateway.wait().success());
}
