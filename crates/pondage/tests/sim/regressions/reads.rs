//! Those of kept results.

use std::cell::Cell;

use super::*;
use crate::plan::Caching;

/// Results are kept, nothing goes wrong by itself.
fn keeping(workers: usize, pool_size: u32) -> Plan {
    Plan::quiet("transaction", workers, pool_size).with(1, Caching::quiet())
}

/// This read has been judged, and its result is kept.
fn keep(world: &mut World, client: usize, text: &str) -> Result<(), String> {
    for _ in 0..12 {
        say(world, client, text);
        world.settle()?;
    }
    Ok(())
}

/// Symptom: ReadyForQuery said that there was no transaction, or that all was well with it, after
/// a statement of a transaction had been cancelled while it waited for a server. Cause: no server
/// knew of that transaction yet, and what was cancelled there failed nothing.
#[test]
fn a_transaction_that_no_server_knows_fails_with_what_is_cancelled_in_it() {
    for extended in [false, true] {
        script(keeping(1, 1), &[0, 0], |world| {
            keep(world, 0, "look t1 key 1")?;
            say(world, 1, "begin; echo 'mine'");
            world.settle()?;
            say(world, 0, "begin");
            world.settle()?;
            match extended {
                false => say(world, 0, "echo 'one'"),
                true => send(&mut world.clients[0], |out| {
                    parse(out, "", "echo 'one'");
                    run(out, "");
                    frontend::put_sync(out);
                }),
            }
            world
                .until(|world| world.known(0).is_some_and(|client| client.hold == Hold::Waiting))?;
            world.cancel(0, true);
            world.until(|world| world.known(0).is_some_and(|client| client.hold == Hold::No))?;
            say(world, 1, "commit");
            world.settle()?;
            for text in ["look t1 key 1", "echo 'two'", "commit"] {
                say(world, 0, text);
                world.settle()?;
            }
            Ok(())
        });
    }
}

/// Symptom: as above. Cause: the request was cancelled while its server was prepared, and only the
/// Sync behind it came to that server, which had not been told of the transaction.
#[test]
fn a_sync_alone_brings_a_transaction_to_its_server() {
    let mut plan = keeping(1, 1);
    (plan.check_delay_ms, plan.sluggish) = (1, 0.9);
    script(plan, &[0], |world| {
        keep(world, 0, "look t1 key 1")?;
        say(world, 0, "begin");
        world.settle()?;
        send(&mut world.clients[0], |out| {
            parse(out, "", "echo 'one'");
            run(out, "");
            frontend::put_sync(out);
        });
        world.until(|world| world.known(0).is_some_and(|client| client.hold == Hold::SetUp))?;
        world.cancel(0, true);
        world.settle()?;
        say(world, 0, "commit");
        world.settle()
    });
}

/// Symptom: an audit found another answer than was kept. Cause: what was kept was dropped when
/// definitions were changed, but not when that was committed, and what had been judged and kept in
/// between lived on.
#[test]
fn definitions_change_when_their_transaction_is_committed() {
    script(keeping(1, 2), &[0, 0], |world| {
        keep(world, 0, "look t1 key 1")?;
        for text in ["begin", "alter 'mine'"] {
            say(world, 1, text);
            world.settle()?;
        }
        keep(world, 0, "look t1 key 1")?;
        say(world, 1, "commit");
        world.settle()?;
        for client in [0, 1] {
            say(world, client, "look t1 key 1");
            world.settle()?;
        }
        Ok(())
    });
}

/// Not a bug that was: who waits for the stream is at nobody's mercy. It is cancelled, alone or in a
/// transaction of which no server knows, or goes away.
#[test]
fn a_read_that_waits_for_the_stream_can_be_cancelled_and_left() {
    let caching = Caching { freshness: "strict", slow: 0.95, wait_ms: 1_000, ..Caching::quiet() };
    let plan = Plan::quiet("transaction", 1, 1).with(1, caching);
    let waited = Cell::new(0);
    let waits = |world: &World, client| {
        let waits = |known: &pondage::session::client::Client| known.hold == Hold::Stream;
        world.known(client).is_some_and(waits)
    };
    script(plan, &[0, 0], |world| {
        keep(world, 0, "look t1 key 1")?;
        for begin in ["echo 'no'", "begin"] {
            say(world, 0, begin);
            world.settle()?;
            say(world, 0, "look t1 key 1");
            world.until(|world| waits(world, 0))?;
            waited.set(waited.get() + u32::from(waits(world, 0)));
            world.cancel(0, true);
            world.settle()?;
            say(world, 0, "rollback");
            world.settle()?;
        }
        say(world, 1, "look t1 key 1");
        world.until(|world| waits(world, 1))?;
        world.clients[1].terminate();
        world.settle()
    });
    assert!(waited.get() > SEEDS as u32 / 2, "they waited only {} times", waited.get());
}

/// Symptom: with `strict` a read did not see what others had committed before it came. Cause: an
/// earlier request of its client's had waited for the stream and then been cancelled, and what that
/// one had found when it arrived was taken for this one's.
#[test]
fn what_a_cancelled_request_has_waited_for_is_not_the_next_ones() {
    let caching = Caching { freshness: "strict", slow: 0.98, wait_ms: 1, ..Caching::quiet() };
    let plan = Plan::quiet("transaction", 1, 1).with(1, caching);
    script(plan, &[0, 0], |world| {
        // Client 1 writes keys 2 and 3.
        say(world, 1, "put t1 2 0 'first'");
        world.settle()?;
        keep(world, 0, "look t1 key 2")?;
        for mark in ["second", "third", "fourth"] {
            say(world, 1, &format!("begin; put t1 2 0 '{mark}'"));
            world.settle()?;
            say(world, 0, "look t1 key 2");
            world.until(|world| world.known(0).is_some_and(|known| known.hold == Hold::Waiting))?;
            world.cancel(0, true);
            world.until(|world| world.known(0).is_some_and(|known| known.hold == Hold::No))?;
            say(world, 1, "commit");
            world.until(|world| world.known(1).is_some_and(|known| known.server == NONE))?;
            say(world, 0, "look t1 key 2");
            world.settle()?;
        }
        Ok(())
    });
}

/// A read's whole request, and what asks for its portal later.
fn read_all(out: &mut Vec<u8>, name: &str, text: &str) {
    if name.is_empty() {
        parse(out, name, text);
    }
    run(out, name);
    frontend::put_sync(out);
}

fn look_at_portal(out: &mut Vec<u8>) {
    frontend::put_describe(out, Target::Portal, b"");
    frontend::put_execute(out, b"", 0);
    frontend::put_close(out, Target::Portal, b"");
    frontend::put_sync(out);
}

/// Symptom: 34000 for the unnamed portal of a read, asked for once more in the same transaction.
/// Cause: the transaction had not begun on any server when the read was answered.
#[test]
fn the_portal_of_a_read_before_its_transaction_lives_as_long_as_that() {
    let (hot, cold) = ("look t1 key 1", "look t1 key 2");
    for mode in ["transaction", "session"] {
        let plan = Plan::quiet(mode, 1, 2).with(1, Caching::quiet());
        script(plan, &[0], |world| {
            keep(world, 0, hot)?;
            send(&mut world.clients[0], |out| {
                parse(out, "hot", hot);
                parse(out, "cold", cold);
                frontend::put_sync(out);
            });
            world.settle()?;
            for (name, text) in [("", hot), ("", cold), ("hot", hot), ("cold", cold)] {
                for end in ["commit", "fail 'all'", "rollback"] {
                    say(world, 0, "begin");
                    world.settle()?;
                    send(&mut world.clients[0], |out| read_all(out, name, text));
                    world.settle()?;
                    // Twice: the first Close has ended it.
                    for _ in 0..2 {
                        send(&mut world.clients[0], look_at_portal);
                        world.settle()?;
                    }
                    say(world, 0, "rollback");
                    world.settle()?;

                    say(world, 0, "begin");
                    world.settle()?;
                    send(&mut world.clients[0], |out| read_all(out, name, text));
                    world.settle()?;
                    say(world, 0, end);
                    send(&mut world.clients[0], look_at_portal);
                    say(world, 0, "rollback");
                    world.settle()?;
                }
            }
            Ok(())
        });
    }
}

/// As above, when the transaction has come to a server before the portal is asked for; a statement
/// in between that has a portal of its own name leaves the unnamed one alone.
#[test]
fn the_portal_of_a_read_is_there_when_its_transaction_has_begun_meanwhile() {
    script(keeping(1, 2), &[0], |world| {
        keep(world, 0, "look t1 key 1")?;
        for another in [true, false] {
            say(world, 0, "begin");
            world.settle()?;
            send(&mut world.clients[0], |out| read_all(out, "", "look t1 key 1"));
            world.settle()?;
            send(&mut world.clients[0], |out| {
                parse(out, "other", "echo other");
                let portal: &[u8] = if another { b"" } else { b"p" };
                frontend::put_bind(out, portal, b"other", &[]);
                frontend::put_execute(out, portal, 0);
                frontend::put_close(out, Target::Statement, b"other");
                frontend::put_sync(out);
            });
            send(&mut world.clients[0], look_at_portal);
            world.settle()?;
            say(world, 0, "commit");
            world.settle()?;
        }
        Ok(())
    });
}

/// Symptom: 26000 for the unnamed statement of a read. Cause: in session mode a statement that was
/// parsed with a kept read was not known to the session's server.
#[test]
fn an_unnamed_statement_that_was_answered_from_memory_can_be_bound_again() {
    for mode in ["transaction", "session"] {
        let plan = Plan::quiet(mode, 1, 2).with(1, Caching::quiet());
        script(plan, &[0], |world| {
            keep(world, 0, "look t1 key 1")?;
            for begin in ["echo 'no'", "begin"] {
                say(world, 0, begin);
                world.settle()?;
                send(&mut world.clients[0], |out| read_all(out, "", "look t1 key 1"));
                world.settle()?;
                for _ in 0..2 {
                    send(&mut world.clients[0], |out| {
                        run(out, "");
                        frontend::put_sync(out);
                    });
                    world.settle()?;
                }
                say(world, 0, "rollback");
                world.settle()?;
            }
            Ok(())
        });
    }
}

/// Symptom: an audit found another answer than was kept, and so nothing more was kept of a
/// statement, though nothing was wrong with it. Cause: definitions had changed while PostgreSQL was
/// asked, and were taken for those under which it had been kept.
#[test]
fn an_audit_is_of_no_use_when_definitions_change_meanwhile() {
    for reads in 2..12 {
        for workers in [1, 2] {
            let mut plan = keeping(workers, 2);
            plan.sluggish = 0.9;
            script(plan, &[0, workers - 1], |world| {
                for _ in 0..reads {
                    say(world, 0, "look t1 key 1");
                    world.settle()?;
                }
                say(world, 1, "alter 'mine'");
                say(world, 0, "look t1 key 1");
                world.settle()
            });
        }
    }
}
