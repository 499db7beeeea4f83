//! What the simulator found once, said again by hand: a few clients, each line in its order, at
//! every one of some seeds.

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
