//! What the simulator found once, said again by hand: a few clients, each line in its order, at
//! every one of some seeds.

mod listening;
mod plans;
mod reads;
mod splitting;

use pondage::session::client::{Hold, NONE};
use wire::pg::frontend::{self, Target};

use crate::client::Client;
use crate::plan::Plan;
use crate::world::World;

const SEEDS: u64 = 12;

/// A run in which nothing happens by itself. Clients stand at the workers given.
fn script(plan: Plan, at: &[usize], act: impl Fn(&mut World) -> Result<(), String>) {
    for seed in 0..SEEDS {
        let mut plan = plan.clone();
        plan.clients = at.len();
        let mut world = World::new(seed, plan);
        for (client, plane) in world.clients.iter_mut().zip(at) {
            client.plane = *plane;
            client.operations = 0;
            client.stays = true;
        }
        let outcome = act(&mut world).and_then(|()| world.end());
        if let Err(error) = outcome {
            panic!("seed {seed}: {error}");
        }
    }
}

fn say(world: &mut World, client: usize, query: &str) {
    world.clients[client].say(query);
}

fn parse(out: &mut Vec<u8>, name: &str, text: &str) {
    frontend::put_parse(out, name.as_bytes(), text.as_bytes(), &[]);
}

fn run(out: &mut Vec<u8>, name: &str) {
    frontend::put_bind(out, b"", name.as_bytes(), &[]);
    frontend::put_execute(out, b"", 0);
}

fn send(client: &mut Client, write: impl FnOnce(&mut Vec<u8>)) {
    let mut out = Vec::new();
    write(&mut out);
    client.send(out);
}

/// Symptom: with as many servers as the pool may have at one worker, a client of another worker
/// was never greeted. Cause: it waited for a server of its own worker to say what it reports.
#[test]
fn clients_of_a_worker_that_can_open_no_server_are_greeted() {
    script(Plan::quiet("transaction", 2, 1), &[0, 0, 1], |world| {
        world.hold_back(2);
        world.settle()?;
        say(world, 0, "begin");
        world.settle()?;
        world.let_in(2);
        world.settle()?;
        say(world, 0, "commit");
        say(world, 2, "echo hello");
        world.settle()
    });
}

/// Symptom: two clients waited at one worker, two servers were idle at another, one was given.
/// Cause: a question to the other workers brings one server, and was put once.
#[test]
fn every_idle_server_of_another_worker_comes_to_those_who_wait() {
    script(Plan::quiet("transaction", 2, 2), &[0, 0, 1, 1], |world| {
        world.settle()?;
        for query in ["begin", "rollback"] {
            (0..2).for_each(|client| say(world, client, query));
            world.settle()?;
        }
        for query in ["begin", "rollback"] {
            (2..4).for_each(|client| say(world, client, query));
            world.settle()?;
        }
        Ok(())
    });
}

/// Symptom: in session mode a Bind of the unnamed statement that no client had parsed ran the
/// pooler's own `SELECT set_config($1, $2, ...)`. Cause: it was left behind when a client's
/// settings had been applied.
#[test]
fn the_poolers_own_unnamed_statement_is_not_found_by_a_client() {
    let mut plan = Plan::quiet("session", 1, 1);
    plan.habits.sets = true;
    script(plan, &[0], |world| {
        world.settle()?;
        send(&mut world.clients[0], |out| {
            run(out, "");
            frontend::put_sync(out);
        });
        world.settle()
    });
}

/// Symptom: a Bind of the unnamed statement worked after `DEALLOCATE name`, which PostgreSQL's
/// simple protocol does not let it. Cause: that DEALLOCATE is answered by the pooler.
#[test]
fn a_deallocate_answered_by_the_pooler_drops_the_unnamed_statement_too() {
    script(Plan::quiet("transaction", 1, 1), &[0], |world| {
        world.settle()?;
        send(&mut world.clients[0], |out| {
            parse(out, "s1", "echo one");
            parse(out, "", "echo two");
            run(out, "");
            frontend::put_sync(out);
        });
        world.settle()?;
        say(world, 0, "deallocate s1");
        world.settle()?;
        send(&mut world.clients[0], |out| {
            run(out, "");
            frontend::put_sync(out);
            run(out, "s1");
            frontend::put_sync(out);
        });
        world.settle()
    });
}

/// Symptom: 42P05 for the second of two pipelined batches that use one statement, on a server
/// that lacked it; 26000 when the first of them failed. Cause: a Parse in flight was taken for
/// certain, or for absent.
#[test]
fn pipelined_batches_may_use_a_statement_that_their_server_lacks() {
    script(Plan::quiet("transaction", 1, 2), &[0, 0], |world| {
        world.settle()?;
        send(&mut world.clients[0], |out| {
            parse(out, "s1", "echo shared");
            frontend::put_sync(out);
        });
        world.settle()?;
        // Takes the server that has it.
        say(world, 1, "begin");
        world.settle()?;
        send(&mut world.clients[0], |out| {
            run(out, "missing");
            run(out, "s1");
            frontend::put_sync(out);
            for name in ["s1", "s2", "s1"] {
                if name == "s2" {
                    parse(out, name, "echo shared");
                }
                run(out, name);
                frontend::put_sync(out);
            }
            frontend::put_close(out, Target::Statement, b"s1");
            run(out, "s1");
            frontend::put_sync(out);
        });
        world.settle()?;
        say(world, 1, "rollback");
        world.settle()
    });
}

/// Symptom: in a failed transaction a Parse of a text that the server had already was answered
/// with ParseComplete, and its name lived on. Cause: it was answered without asking PostgreSQL.
#[test]
fn a_parse_in_a_failed_transaction_is_refused_even_if_the_server_has_the_text() {
    script(Plan::quiet("transaction", 1, 1), &[0], |world| {
        world.settle()?;
        send(&mut world.clients[0], |out| {
            parse(out, "s1", "echo shared");
            frontend::put_sync(out);
        });
        say(world, 0, "begin; fail now");
        world.settle()?;
        send(&mut world.clients[0], |out| {
            parse(out, "s2", "echo shared");
            frontend::put_sync(out);
        });
        say(world, 0, "rollback");
        send(&mut world.clients[0], |out| {
            run(out, "s2");
            frontend::put_sync(out);
            run(out, "s1");
            frontend::put_sync(out);
        });
        world.settle()
    });
}

/// Statements join wherever they may.
fn sharing(workers: usize, pool_size: u32) -> Plan {
    let mut plan = Plan::quiet("transaction", workers, pool_size);
    let text = "coalesce_short = \"100s\"\ncoalesce_writes = true\n";
    plan.sharing = [text.to_owned(), text.to_owned()];
    plan
}

/// A statement of this shape comes often enough to join.
fn warm(world: &mut World, client: usize, shape: &str) -> Result<(), String> {
    for turn in 0..8 {
        say(world, client, &shape.replace('?', &format!("'warm{client}-{turn}'")));
        world.settle()?;
    }
    Ok(())
}

/// Symptom: a Bind of the unnamed statement worked after a simple query that was cancelled while
/// it waited for a server. Cause: the query was taken back as if it had not been.
#[test]
fn a_cancelled_query_drops_the_unnamed_statement() {
    script(Plan::quiet("transaction", 1, 1), &[0, 0], |world| {
        world.settle()?;
        send(&mut world.clients[0], |out| {
            parse(out, "", "echo one");
            run(out, "");
            frontend::put_sync(out);
        });
        world.settle()?;
        say(world, 1, "begin");
        world.settle()?;
        say(world, 0, "echo two");
        world.until(|world| world.known(0).is_some_and(|client| client.hold == Hold::Waiting))?;
        world.cancel(0, true);
        world.until(|world| world.known(0).is_some_and(|client| client.hold == Hold::No))?;
        say(world, 1, "rollback");
        world.settle()?;
        send(&mut world.clients[0], |out| {
            run(out, "");
            frontend::put_sync(out);
        });
        world.settle()
    });
}

/// Symptom: a client got two FATAL errors. Cause: it stood in the pool's queue for all who had
/// gathered, and was refused once for each.
#[test]
fn a_client_that_waits_for_its_group_is_refused_once() {
    let mut plan = sharing(1, 1);
    plan.habits.storm = true;
    script(plan, &[0, 0], |world| {
        warm(world, 0, "echo ?")?;
        world.unreachable = true;
        world.kill_servers(true);
        world.settle()?;
        say(world, 0, "echo 'first'");
        say(world, 1, "echo 'second'");
        world.settle()?;
        world.unreachable = false;
        Ok(())
    });
}

/// Symptom: a client heard of its write before that was on disk. Cause: the answer was put behind
/// one that was being written.
#[test]
fn the_answer_to_a_write_waits_also_behind_one_that_is_being_written() {
    let mut plan = sharing(1, 2);
    (plan.slow, plan.sluggish) = (true, 0.9);
    script(plan, &[0], |world| {
        warm(world, 0, "write 0 ?")?;
        for turn in 0..30 {
            say(world, 0, &format!("big 900 'before{turn}'"));
            world.until(|world| world.known(0).is_some_and(|client| !client.out.is_empty()))?;
            say(world, 0, &format!("write 0 'now{turn}'"));
            world.settle()?;
        }
        Ok(())
    });
}

/// Symptom: a Bind of the unnamed statement was answered by the error of a Parse before it.
/// Cause: a statement among others kept what it had parsed, though the Parse had failed.
#[test]
fn an_unnamed_statement_that_was_refused_is_not_there() {
    script(sharing(1, 1), &[0], |world| {
        world.settle()?;
        for mark in ["1", "2", "3", "4", "5", "6", "7", "invalid-8"] {
            send(&mut world.clients[0], |out| {
                parse(out, "", &format!("echo '{mark}'"));
                run(out, "");
                frontend::put_sync(out);
            });
            world.settle()?;
        }
        send(&mut world.clients[0], |out| {
            run(out, "");
            frontend::put_sync(out);
        });
        world.settle()
    });
}

/// Symptom: 26000 for an unnamed statement that had just been used. Cause: it had been skipped
/// behind another's error, and was held to be refused though it was parsed the second time.
#[test]
fn an_unnamed_statement_that_was_skipped_and_sent_again_is_there() {
    let mut plan = sharing(1, 1);
    (plan.prepared, plan.sluggish) = (1, 0.9);
    script(plan, &[0, 0, 0], |world| {
        let (mut whole, mut bound) = (Vec::new(), Vec::new());
        parse(&mut whole, "", "echo shared");
        for out in [&mut whole, &mut bound] {
            run(out, "");
            frontend::put_sync(out);
        }
        warm(world, 1, "echo ?")?;
        for _ in 0..8 {
            world.clients[0].send(whole.clone());
            world.settle()?;
        }
        for turn in 0..10 {
            say(world, 1, &format!("echo 'invalid-{turn}'"));
            world.clients[0].send(whole.clone());
            world.until(|world| {
                let unit = world.known(0).and_then(|client| client.unit.as_ref());
                unit.is_some_and(|unit| unit.server != NONE)
            })?;
            world.clients[2].send(whole.clone());
            world.settle()?;
            world.clients[0].send(bound.clone());
            world.settle()?;
        }
        Ok(())
    });
}

/// Symptom: a client that had been told of a server's end got more rows. Cause: its statement had
/// begun to be answered, but the server had nothing left of it, so it was sent again.
#[test]
fn a_statement_is_not_sent_again_to_a_client_that_was_told() {
    let mut plan = sharing(1, 1);
    plan.habits.storm = true;
    script(plan, &[0, 0], |world| {
        warm(world, 0, "sleep 0 ?")?;
        say(world, 0, "sleep 1000000000 'long'");
        world.until(World::is_asleep)?;
        world.flush_servers();
        world.until(|world| {
            world.clients[0].history.back().is_some_and(|last| last.contains("T "))
        })?;
        world.kill_servers(true);
        world.settle()
    });
}

/// Symptom: a client that was killed while its write waited for the flush was not told, and never
/// closed. Cause: what it was told was held back with the answer.
#[test]
fn a_client_that_is_killed_before_the_flush_hears_of_that_and_not_of_its_write() {
    let mut plan = sharing(1, 1);
    plan.sluggish = 0.9;
    plan.habits.storm = true;
    script(plan, &[0], |world| {
        warm(world, 0, "write 0 ?")?;
        say(world, 0, "write 0 'now'");
        world.until(|world| {
            world.known(0).is_some_and(|client| client.corked && !client.out.is_empty())
        })?;
        world.kill_client(0);
        world.settle()
    });
}

/// Symptom: a client was told that something had been cancelled when it had asked for nothing.
/// Cause: its request had been cancelled while its server was prepared; the server died, and the
/// client was put into the queue for another.
#[test]
fn a_client_whose_request_was_cancelled_does_not_wait_for_a_server() {
    let mut plan = Plan::quiet("transaction", 1, 1);
    (plan.check_delay_ms, plan.sluggish) = (1, 0.9);
    plan.habits.storm = true;
    script(plan, &[0, 0], |world| {
        world.settle()?;
        say(world, 0, "echo one");
        world.until(|world| world.known(0).is_some_and(|client| client.hold == Hold::SetUp))?;
        world.cancel(0, true);
        world.until(|world| world.known(0).is_some_and(|client| client.input.is_empty()))?;
        world.kill_servers(false);
        world.until(|world| world.known(0).is_some_and(|client| client.hold != Hold::SetUp))?;
        world.cancel(0, true);
        world.settle()?;
        say(world, 0, "echo two");
        world.settle()
    });
}

/// Symptom: after reloads a database's last place could not be taken. Cause: a server that was on
/// its way between two workers at a reload was counted by the old rules, for ever.
#[test]
fn a_server_that_moves_during_a_reload_is_counted_by_the_new_rules() {
    script(Plan::quiet("transaction", 2, 1), &[0, 1], |world| {
        world.reload(1);
        world.settle()?;
        say(world, 0, "echo one");
        world.settle()?;
        say(world, 1, "echo two");
        world.until(World::is_server_moving)?;
        world.reload(0);
        world.settle()?;
        world.reload(1);
        world.settle()?;
        world.kill_servers(true);
        world.settle()?;
        say(world, 0, "echo three");
        world.settle()
    });
}

/// Not a bug that was: a cancel that comes late hits another's write in the same train, which is
/// sent again.
#[test]
fn a_cancel_that_hits_anothers_write_is_not_heard_of() {
    let mut plan = sharing(1, 2);
    plan.sharing[0].push_str("coalesce_stall = \"5ms\"\n");
    plan.sharing[1].push_str("coalesce_stall = \"5ms\"\n");
    script(plan, &[0, 0, 0], |world| {
        warm(world, 0, "write 0 ?")?;
        for turn in 0..10 {
            for client in 0..3 {
                say(world, client, &format!("write 90000 'locked{turn}-{client}'"));
            }
            world.until(World::is_asleep)?;
            world.cancel(0, true);
            world.settle()?;
        }
        Ok(())
    });
}

/// Symptom: a train was given up, its clients with it, when one of them had cancelled. Cause:
/// PostgreSQL may get the signal twice, and the second one hit the tail.
#[test]
fn a_cancel_that_hits_the_tail_of_a_train_ends_nobody() {
    let hits = std::cell::Cell::new(0);
    script(sharing(1, 1), &[0, 0, 0], |world| {
        warm(world, 0, "write 0 ?")?;
        for turn in 0..10 {
            for server in &mut world.servers {
                server.model.cancel_at = Some("pg_logical_emit_message");
            }
            for client in 0..3 {
                say(world, client, &format!("write 2000 'now{turn}-{client}'"));
            }
            world.settle()?;
            let hit = |server: &&crate::world::Server| server.model.cancel_at.is_none();
            hits.set(hits.get() + world.servers.iter().filter(hit).count());
        }
        let closed = world.clients.iter().filter(|client| client.fatal.is_some()).count();
        match closed {
            0 => Ok(()),
            _ => Err(format!("{closed} clients were closed")),
        }
    });
    assert!(hits.get() > SEEDS as usize, "{} tails were cancelled", hits.get());
}
