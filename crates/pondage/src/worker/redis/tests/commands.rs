//! Pipelines in pieces, fairness, clients that do not read, ends.

use std::sync::Arc;

use ::redis::reply::{Recorded, Reply};
use ::redis::server::Event;

use super::{World, TRUSTING};
use crate::control::messages::{Shutdown, ToWorker};

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

#[test]
fn commands_are_answered_however_they_are_cut() {
    let bytes = b"PING\r\n*0\r\n\r\n*2\r\n$4\r\nPING\r\n$5\r\na\r\nbc\r\nping \"x y\"\nPING\r\n";
    let expected = "+PONG\r\n$5\r\na\r\nbc\r\n$3\r\nx y\r\n+PONG\r\n";
    for cut in 0..=bytes.len() {
        let mut world = World::new(TRUSTING);
        let client = world.connect();
        world.send(client, &bytes[..cut]);
        if cut % 2 == 0 {
            world.settle();
        }
        world.says(client, &bytes[cut..], expected);
        assert!(world.plane.clients[client].input.is_empty());
    }
}

#[test]
fn a_protocol_error_is_told_behind_what_came_before_and_ends_the_connection() {
    let mut world = World::new(TRUSTING);
    let client = world.connect();
    let expected = "+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n";
    world.says(client, b"PING\r\n*1\r\n!4\r\nPING\r\nPING\r\n", expected);
    assert_eq!(world.closed, [client]);
}

#[test]
fn ten_thousand_commands_of_one_keep_nobody_else_waiting() {
    let mut world = World::new(TRUSTING);
    let (greedy, other) = (world.connect(), world.connect());
    for piece in PING.repeat(10_000).chunks(64 << 10) {
        world.send(greedy, piece);
    }
    world.send(other, PING);
    world.turn();
    assert_eq!(world.heard(other), "+PONG\\r\\n");
    let early = world.read[&greedy].len() / 7;
    assert!((1..=3000).contains(&early), "{early} of its commands ran in the first turn");
    world.settle();
    assert_eq!(world.read[&greedy].len(), 70_000);
}

#[test]
fn a_client_may_send_a_long_pipeline_before_it_reads() {
    let mut world = World::new(TRUSTING);
    let client = world.connect();
    world.deaf.push(client);
    let command = [b"*2\r\n$4\r\nPING\r\n$1000\r\n".as_slice(), &[b'x'; 1000], b"\r\n"].concat();
    let mut sent = 0;
    while world.plane.client_may_read(client) {
        world.send(client, &command.repeat(60));
        sent += 60;
        world.turn();
        assert!(sent < 10_000, "it is read for ever");
    }
    assert!(sent > 8_000, "it would wait for ever");
    assert!(world.plane.clients[client].out.len() < 400 << 10);
    let other = world.connect();
    world.says(other, PING, "+PONG\r\n");

    world.deaf.clear();
    world.plane.written.push(client);
    world.settle();
    assert!(world.plane.client_may_read(client));
    assert_eq!(world.read[&client].len(), sent * 1009);
    assert!(world.plane.clients[client].input.is_empty());
}

#[test]
fn who_closes_its_side_is_answered_all_that_it_has_sent() {
    let mut world = World::new(TRUSTING);
    let client = world.connect();
    world.send(client, &PING.repeat(2000));
    world.plane.client_closed(client);
    world.settle();
    assert_eq!(world.read[&client].len(), 14_000);
    assert_eq!(world.closed, [client]);
}

#[test]
fn one_client_more_than_allowed_is_told_so() {
    let mut world = World::new(&format!("{TRUSTING}redis.max_clients = 1\n"));
    let (first, second) = (world.connect(), world.connect());
    world.says(second, PING, "-ERR max number of clients reached\r\n");
    assert_eq!(world.closed, [second]);
    world.plane.client_closed(first);
    world.settle();
    let third = world.connect();
    world.says(third, PING, "+PONG\r\n");
}

#[test]
fn messages_nobody_asked_for_come_in_order_and_not_without_end() {
    let mut world = World::new(&format!("{TRUSTING}redis.output_limit = \"64KiB\"\n"));
    let client = world.connect();
    world.send(client, b"HELLO 3\r\nPING\r\nSET a 1\r\nPING\r\n");
    world.settle();
    assert!(world.heard(client).ends_with("*0\\r\\n+PONG\\r\\n"));
    let conn = world.plane.clients[client].conn;
    let mut message = Recorded::new(3);
    message.push(1);
    message.bulk(&[b'x'; 1000]);
    let message = Arc::new(message);
    let push = |world: &mut World| {
        let message = message.clone();
        world.plane.shared.engine().server.tell(Event::Push { conn, message });
        world.plane.told(ToWorker::RedisEvents);
        world.turn();
    };
    push(&mut world);
    assert_eq!(world.heard(client), "", "it waits behind what waits");
    world.commit();
    let expected = format!("+OK\\r\\n+PONG\\r\\n>1\\r\\n$1000\\r\\n{}\\r\\n", "x".repeat(1000));
    assert_eq!(world.heard(client), expected);

    world.deaf.push(client);
    for _ in 0..60 {
        push(&mut world);
        assert!(world.closed.is_empty());
    }
    for _ in 0..10 {
        push(&mut world);
    }
    assert_eq!(world.closed, [client]);
}

#[test]
fn a_browser_is_cut_off() {
    let requests = [
        &b"POST / HTTP/1.1\r\n"[..],
        b"Host: 127.0.0.1\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"SET a 1\r\nPOST / HTTP/1.1\r\n",
    ];
    for request in requests {
        let mut world = World::new(TRUSTING);
        let client = world.connect();
        world.says(client, request, "");
        assert_eq!(world.closed, [client]);
    }
}

#[test]
fn at_the_end_clients_leave_when_they_are_answered() {
    let mut world = World::new(TRUSTING);
    let (idle, busy) = (world.connect(), world.connect());
    world.send(busy, b"SET a 1\r\n");
    world.settle();
    world.plane.told(ToWorker::Shutdown(Shutdown::WaitForClients));
    world.settle();
    assert_eq!(world.closed, [idle]);
    assert!(!world.plane.is_drained());
    world.commit();
    assert_eq!(world.heard(busy), "+OK\\r\\n");
    assert!(world.plane.is_drained());
    world.turn();
    assert_eq!(world.closed, [idle, busy]);
    let late = world.connect();
    world.says(late, PING, "-ERR Pondage is shutting down\r\n");
}

#[test]
fn tls_goes_to_the_control_plane_if_there_is_a_certificate() {
    let mut world = World::with_worker(TRUSTING, 0, true);
    let client = world.connect();
    world.send(client, b"\x16\x03\x01");
    world.settle();
    assert!(world.tls.is_empty(), "it is disabled");
    world.plane.config = {
        let mut config = crate::config::Config::from_text(TRUSTING).expect("config");
        config.listen.tls.mode = crate::config::ListenTlsMode::Require;
        config.into()
    };
    let (secret, plain) = (world.connect(), world.connect());
    world.send(secret, b"\x16\x03\x01");
    world.says(plain, PING, "-ERR TLS is required\r\n");
    assert_eq!(world.tls, [(secret, b"\x16\x03\x01".to_vec())]);
    assert_eq!(world.closed, [plain]);
}
