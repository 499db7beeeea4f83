//! Replies and commits: nothing is said before it is safe, all is said in order, and what was
//! undone runs again.

use std::sync::Arc;

use ::redis::reply::{Recorded, Reply};
use ::redis::server::Event;

use super::{World, TRUSTING};
use crate::control::messages::{OpenError, OpenKind, ToControl, ToWorker};
use crate::worker::redis::client::Hold;

#[test]
fn replies_wait_for_the_commit_and_those_behind_them_too() {
    let mut world = World::new(TRUSTING);
    let client = world.connect();
    world.says(client, b"SET a 0\r\n", "");
    world.commit();
    assert_eq!(world.heard(client), "+OK\\r\\n");
    world.says(
        client,
        b"PING\r\nSET a 1\r\nPING x\r\nGET none\r\nSET b 2\r\nPING y\r\n",
        "+PONG\r\n",
    );
    // Others are not told what is not safe.
    let other = world.connect();
    world.says(other, b"GET a\r\nPING\r\n", "$1\r\n0\r\n+PONG\r\n");
    let expected = "+OK\r\n$1\r\nx\r\n$-1\r\n+OK\r\n$1\r\ny\r\n";
    world.commit();
    world.commit();
    assert_eq!(world.heard(client), expected.escape_default().to_string());
    world.says(other, b"GET a\r\n", "$1\r\n1\r\n");
    let client = &world.plane.clients[client];
    assert!(client.input.is_empty() && client.held.is_empty() && client.held.commands == 0);
}

#[test]
fn what_was_undone_runs_again_in_order_and_is_then_told() {
    let mut world = World::new(TRUSTING);
    let client = world.connect();
    world.says(client, b"SET n 5\r\n", "");
    world.commit();
    assert_eq!(world.heard(client), "+OK\\r\\n");
    world.says(client, b"INCRBY n 1\r\n*0\r\nPING\r\nSELECT 1\r\nINCRBY m 1\r\nPING x\r\n", "");
    for _ in 0..3 {
        world.undo();
        assert_eq!(world.heard(client), "");
    }
    world.commit();
    world.commit();
    // The tables of this test keep nothing, so `n` begins anew.
    let expected = ":1\r\n+PONG\r\n+OK\r\n:1\r\n$1\r\nx\r\n";
    assert_eq!(world.heard(client), expected.escape_default().to_string());
    // The last database that was chosen stays chosen.
    let conn = world.plane.clients[client].conn;
    assert_eq!(world.plane.shared.engine().session(conn).expect("a session").db, 1);
    assert!(world.plane.clients[client].input.is_empty());
}

/// What ran again was undone once more. In the same turn a row came that a later command waited for:
/// that one and what was behind it ran before the first.
#[test]
fn what_is_undone_twice_keeps_its_order() {
    let mut world = World::new(TRUSTING);
    let client = world.connect();
    world.says(client, b"INCR a\r\nINCR b\r\nSET a 9\r\n", "");
    world.fail();
    for _ in 0..100 {
        world.plane.told(ToWorker::RedisEvents);
        world.turn();
        // What was begun again waits for the row of `b`, and the batch of `a` is on its way.
        let waits = matches!(&world.plane.clients[client].redo, Some(redo) if redo.at == 1);
        if waits && !world.tables.lock().told.is_empty() && !world.tables.lock().sent.is_empty() {
            break;
        }
    }
    assert!(!world.tables.lock().sent.is_empty());
    world.undo();
    for _ in 0..3 {
        world.commit();
    }
    assert_eq!(world.heard(client), ":1\\r\\n:1\\r\\n+OK\\r\\n");
}

/// A command that had blocked ran again while an EXEC behind it had begun to: it was queued.
#[test]
fn what_had_blocked_is_not_queued_when_it_is_undone_twice() {
    let mut world = World::new(TRUSTING);
    let (client, other) = (world.connect(), world.connect());
    world.says(client, b"BLPOP l 0\r\nMULTI\r\nINCR b\r\nEXEC\r\n", "");
    world.says(other, b"RPUSH l x\r\n", "");
    world.fail();
    let conn = world.plane.clients[client].conn;
    for _ in 0..100 {
        world.plane.told(ToWorker::RedisEvents);
        world.turn();
        let begun = matches!(&world.plane.clients[client].redo, Some(redo) if redo.at > 0);
        let multi = world.plane.shared.engine().session(conn).is_some_and(|s| s.multi.is_some());
        if begun && multi && !world.tables.lock().sent.is_empty() {
            break;
        }
    }
    assert!(!world.tables.lock().sent.is_empty());
    world.undo();
    for _ in 0..3 {
        world.commit();
    }
    let expected = "*2\r\n$1\r\nl\r\n$1\r\nx\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n";
    assert_eq!(world.heard(client), expected.escape_default().to_string());
}

#[test]
fn an_undone_exec_has_its_commands_again_and_a_later_multi_stays() {
    let mut world = World::new(TRUSTING);
    let client = world.connect();
    let queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n";
    world.says(client, b"MULTI\r\nSET a 1\r\nINCRBY a 4\r\nEXEC\r\nMULTI\r\nPING\r\n", queued);
    world.undo();
    world.commit();
    let expected = "*2\r\n+OK\r\n:5\r\n+OK\r\n+QUEUED\r\n";
    assert_eq!(world.heard(client), expected.escape_default().to_string());
    world.says(client, b"EXEC\r\n", "*1\r\n+PONG\r\n");
}

#[test]
fn a_pipeline_of_writes_is_held_within_bounds() {
    let mut world = World::new(TRUSTING);
    let client = world.connect();
    let command = [b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$9000\r\n".as_slice(), &[b'x'; 9000], b"\r\n"];
    let command = command.concat();
    let mut sent = 0;
    while world.plane.client_may_read(client) {
        world.send(client, &command.repeat(7));
        sent += 7;
        world.turn();
        assert!(sent < 2_000, "it is read for ever");
    }
    assert!(world.plane.clients[client].input.len() < 6 << 20);
    while !world.tables.lock().sent.is_empty() {
        world.commit();
    }
    assert_eq!(world.read[&client].len(), sent * 5);
    assert!(world.plane.client_may_read(client));
}

#[test]
fn who_has_gone_leaves_its_writes_behind() {
    let mut world = World::new(TRUSTING);
    let (client, other) = (world.connect(), world.connect());
    world.says(client, b"SET a 1\r\n", "");
    world.plane.client_broken(client);
    world.settle();
    assert_eq!(world.closed, [client]);
    world.commit();
    world.says(other, b"GET a\r\n", "$1\r\n1\r\n");
}

#[test]
fn an_end_of_input_waits_for_the_commit_of_what_came_before() {
    let mut world = World::new(TRUSTING);
    let client = world.connect();
    world.send(client, b"SET a 1\r\nPING\r\n");
    world.plane.client_closed(client);
    world.settle();
    assert!(world.closed.is_empty());
    world.commit();
    assert_eq!(world.heard(client), "+OK\\r\\n+PONG\\r\\n");
    assert_eq!(world.closed, [client]);
}

#[test]
fn the_first_worker_opens_and_feeds_the_engines_connections() {
    let mut world = World::new(TRUSTING);
    world.tables.lock().wanted.push(0);
    world.plane.told(ToWorker::RedisEvents);
    world.settle();
    let Some(ToControl::Open { ticket: 0, kind: OpenKind::Redis, config, .. }) =
        world.control.pop()
    else {
        panic!("no connection is opened")
    };
    assert_eq!(config.upstream.user, "u");
    let error = OpenError {
        code: "08001".to_owned(),
        message: "no".to_owned(),
        theirs: "no".to_owned(),
        detail: None,
        hint: None,
        permanent: false,
        at: std::time::SystemTime::UNIX_EPOCH,
    };
    world.plane.link_failed(0, &error);
    assert!(world.plane.link_opened(0));
    world.plane.link_bytes(0, b"Z");
    world.tables.lock().out.extend_from_slice(b"Q");
    world.plane.end_turn();
    assert_eq!(std::mem::take(&mut world.plane.written_links), [0]);
    assert_eq!(world.plane.link_out(0).expect("a link").as_slice(), b"Q");
    world.plane.link_flushed(0);
    world.plane.link_closed(0, "gone");
    world.settle();
    assert_eq!(world.closed_links, [0]);
    let asked = world.tables.lock();
    assert_eq!(asked.happened, ["failed 0: no", "opened 0", "closed 0: gone"]);
    assert_eq!(asked.received, b"Z");
}

#[test]
fn another_worker_wakes_the_first_when_there_is_something_to_send() {
    let mut world = World::with_worker(TRUSTING, 1, false);
    world.tables.lock().out.extend_from_slice(b"Q");
    let client = world.connect();
    world.says(client, b"PING\r\n", "+PONG\r\n");
    assert!(world.peers.iter().any(|(worker, _)| *worker == 0));
    assert!(world.control.is_empty());
}

/// A client whose first command of `input`, of `command` bytes, waits for a key.
fn blocked(world: &mut World, input: &[u8], command: usize) -> u32 {
    let client = world.connect();
    world.says(client, b"PING\r\n", "+PONG\r\n");
    let state = &mut world.plane.clients[client];
    state.hold = Hold::Blocked(command);
    state.input = input.to_vec();
    client
}

fn answer(world: &mut World, client: u32, text: &str) {
    let conn = world.plane.clients[client].conn;
    let mut reply = Recorded::new(2);
    reply.bulk(text.as_bytes());
    let event = Event::Answer { conn, reply: Arc::new(reply), barrier: None };
    world.plane.shared.engine().server.tell(event);
    world.plane.told(ToWorker::RedisEvents);
    world.settle();
}

#[test]
fn a_blocked_command_is_answered_later_and_what_follows_waits() {
    let mut world = World::new(TRUSTING);
    let client = blocked(&mut world, b"BLPOP a 0\r\nPING\r\n", 11);
    world.says(client, b"PING x\r\n", "");
    assert!(world.plane.client_may_read(client));
    answer(&mut world, client, "popped");
    assert_eq!(world.heard(client), "$6\\r\\npopped\\r\\n+PONG\\r\\n$1\\r\\nx\\r\\n");
    assert!(world.plane.clients[client].input.is_empty());
    // An answer that nobody waits for is nobody's.
    answer(&mut world, client, "late");
    assert_eq!(world.heard(client), "");
}

#[test]
fn a_blocked_client_that_leaves_is_closed_at_once() {
    let mut world = World::new(TRUSTING);
    let client = blocked(&mut world, b"BLPOP a 0\r\n", 11);
    world.plane.client_closed(client);
    world.settle();
    assert_eq!(world.closed, [client]);
    assert!(world.plane.by_conn.is_empty());
}
