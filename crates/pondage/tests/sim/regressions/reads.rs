//! Those of kept results.

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
