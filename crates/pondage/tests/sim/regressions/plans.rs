//! Those of plans that do not fit any more, of drivers that prepare with a Flush.

use super::*;

/// What the client says arrives in one piece.
fn whole(world: &mut World, client: usize, write: impl FnOnce(&mut Vec<u8>)) {
    send(&mut world.clients[client], write);
    let bytes: Vec<u8> = world.clients[client].to_send.drain(..).collect();
    world.arrived(client, bytes.len());
    let slot = world.clients[client].slot.expect("it is logged in");
    world.planes[world.clients[client].plane].client_bytes(slot, &bytes);
}

/// One client has prepared a text, whose plan fits no more; the other prepares it.
fn stale(world: &mut World) -> Result<(), String> {
    world.settle()?;
    send(&mut world.clients[0], |out| {
        parse(out, "s1", "echo shared");
        frontend::put_sync(out);
    });
    world.settle()?;
    for server in &mut world.servers {
        server.model.stale = server.model.statements.keys().cloned().collect();
    }
    whole(world, 1, |out| {
        parse(out, "s2", "echo shared");
        frontend::put_describe(out, Target::Statement, b"s2");
        frontend::put_flush(out);
    });
    Ok(())
}

/// A Sync is on its way that is none of the client's.
fn ends(world: &mut World) -> Result<(), String> {
    let held = |world: &World| world.known(1).is_some_and(|one| one.hold == Hold::Uncertain);
    world.until(held)?;
    held(world).then_some(()).ok_or_else(|| "it was never held".to_owned())
}

fn runs(out: &mut Vec<u8>) {
    run(out, "s2");
    frontend::put_sync(out);
}

#[test]
fn a_description_that_is_flushed_is_that_of_a_plan_that_fits() {
    for mode in ["transaction", "statement"] {
        script(Plan::quiet(mode, 1, 1), &[0, 0], |world| {
            stale(world)?;
            world.settle()?;
            send(&mut world.clients[1], runs);
            world.settle()?;
            // Both have the new plan, and the server is free again.
            send(&mut world.clients[0], |out| {
                run(out, "s1");
                frontend::put_sync(out);
            });
            world.settle()
        });
    }
}

#[test]
fn what_follows_the_flush_is_not_in_front_of_what_is_sent_again() {
    script(Plan::quiet("transaction", 1, 1), &[0, 0], |world| {
        stale(world)?;
        ends(world)?;
        send(&mut world.clients[1], |out| {
            run(out, "s2");
            frontend::put_describe(out, Target::Statement, b"s2");
            runs(out);
        });
        world.settle()?;
        send(&mut world.clients[1], runs);
        world.settle()
    });
}

#[test]
fn who_leaves_before_it_is_sent_again_leaves_a_server_that_others_can_use() {
    script(Plan::quiet("transaction", 1, 1), &[0, 0], |world| {
        stale(world)?;
        ends(world)?;
        world.clients[1].vanished = true;
        world.settle()?;
        for _ in 0..2 {
            say(world, 0, "echo next");
            world.settle()?;
        }
        send(&mut world.clients[0], |out| {
            frontend::put_close(out, Target::Statement, b"s1");
            parse(out, "s1", "echo shared");
            frontend::put_describe(out, Target::Statement, b"s1");
            run(out, "s1");
            frontend::put_sync(out);
        });
        world.settle()
    });
}
