//! Those of LISTEN over a connection that is shared.

use super::*;

/// Symptom: a client that listens hung when its COPY had failed. Cause: its ReadyForQuery was held
/// back, and with it the rest of its CopyData, without which it kept the server.
#[test]
fn a_copy_that_fails_early_is_answered_while_its_data_still_come() {
    let mut plan = Plan::quiet("transaction", 1, 1);
    plan.more = "max_pinned = 8\nlisten = \"shared\"\n".to_owned();
    (plan.habits.listens, plan.habits.listens_shared) = (true, true);
    script(plan, &[0, 0], |world| {
        world.settle()?;
        say(world, 0, "listen l1");
        world.settle()?;
        send(&mut world.clients[0], |out| {
            frontend::put_query(out, "copyearly 'x'");
            out.push(frontend::tag::COPY_DATA);
            out.extend_from_slice(&400_004u32.to_be_bytes());
            out.resize(out.len() + 400_000, b'x');
            frontend::put_copy_fail(out, "no more");
        });
        world.settle()?;
        say(world, 1, "echo next");
        say(world, 0, "channels 'x'");
        world.settle()
    });
}
