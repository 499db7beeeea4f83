//! Reads from standbys: who is sent where, by what he has seen and by how far each has come.

use pondage::hosts::Role;

use super::*;
use crate::standbys::Standbys;

/// A primary and two standbys.
fn split() -> Plan {
    let mut plan = Plan::quiet("transaction", 1, 4);
    plan.standbys = 2;
    plan
}

fn standbys(world: &World) -> &Standbys {
    world.standbys.as_ref().expect("there are some")
}

/// Which host has answered it: the only one that has read anything meanwhile.
fn asks(world: &mut World, client: usize, text: &str) -> Result<usize, String> {
    let before = world.read_by();
    say(world, client, text);
    world.settle()?;
    let after = world.read_by();
    let read: Vec<usize> = (0..after.len()).filter(|at| after[*at] > before[*at]).collect();
    match read[..] {
        [one] => Ok(one),
        _ => Err(format!("\"{text}\" was read by {read:?}")),
    }
}

fn is_asked(world: &mut World, client: usize, text: &str, host: usize) -> Result<(), String> {
    let asked = asks(world, client, text)?;
    (asked == host)
        .then_some(())
        .ok_or_else(|| format!("\"{text}\" was read by {asked}, not {host}"))
}

/// A statement that is known to read only, of the first client's: the judge does not see it of all.
fn known(world: &mut World, statement: &str) -> Result<String, String> {
    world.tell_of_hosts();
    world.settle()?;
    for number in 0..40 {
        let text = format!("{statement} m{number}");
        for _ in 0..2 {
            standbys(world).have_all(&[1, 2]);
            if asks(world, 0, &text)? > 0 {
                return Ok(text);
            }
        }
    }
    Err("nothing is sent to a standby".to_owned())
}

/// What the judge says of none that it reads only.
const WRITES: &str = "notice 'x'";

#[test]
fn a_read_goes_to_a_standby_that_has_all_that_its_client_has_seen() {
    script(split(), &[0, 0], |world| {
        let text = known(world, "echo")?;
        is_asked(world, 0, WRITES, 0)?;
        is_asked(world, 0, &text, 0)?;
        standbys(world).have_all(&[]);
        is_asked(world, 0, &text, 0)?;
        for place in [2, 1, 2] {
            is_asked(world, 0, WRITES, 0)?;
            standbys(world).have_all(&[place]);
            is_asked(world, 0, &text, place)?;
            // It does not go back while it lives: whoever has read there may go on.
            is_asked(world, 0, &text, place)?;
        }
        // What one client has done is nothing to another.
        is_asked(world, 0, WRITES, 0)?;
        (asks(world, 1, &text)? > 0).then_some(()).ok_or("it has seen nothing yet")?;
        is_asked(world, 0, &text, 0)
    });
}

#[test]
fn who_has_read_from_a_standby_is_not_shown_less_by_another() {
    script(split(), &[0], |world| {
        let text = known(world, "echo")?;
        is_asked(world, 0, WRITES, 0)?;
        standbys(world).have_all(&[1]);
        is_asked(world, 0, &text, 1)?;
        // It is the primary now, say, and the other is behind.
        standbys(world).host(1).set_role(Role::Primary);
        is_asked(world, 0, &text, 0)?;
        standbys(world).have_all(&[1, 2]);
        is_asked(world, 0, &text, 2)?;
        standbys(world).host(2).set_role(Role::Primary);
        is_asked(world, 0, &text, 0)
    });
}

/// With its log, say, or from a backup.
#[test]
fn a_standby_that_has_begun_anew_may_have_less_than_before() {
    script(split(), &[0], |world| {
        let text = known(world, "echo")?;
        is_asked(world, 0, WRITES, 0)?;
        standbys(world).have_all(&[1]);
        is_asked(world, 0, &text, 1)?;
        is_asked(world, 0, &text, 1)?;
        for server in world.servers.iter_mut().filter(|server| server.standby == Some(1)) {
            server.model.die(true);
        }
        standbys(world).host(1).begin_life();
        world.settle()?;
        is_asked(world, 0, &text, 0)?;
        standbys(world).have_all(&[1]);
        is_asked(world, 0, &text, 1)
    });
}

#[test]
fn a_transaction_that_begins_read_only_stays_where_it_has_begun() {
    script(split(), &[0], |world| {
        let text = known(world, "echo")?;
        for (begin, hosts) in [("begin", [0, 0]), ("begin read only", [1, 1])] {
            is_asked(world, 0, WRITES, 0)?;
            standbys(world).have_all(&[1]);
            // It takes no server.
            say(world, 0, begin);
            world.settle()?;
            for host in hosts {
                is_asked(world, 0, &text, host)?;
                is_asked(world, 0, WRITES, host)?;
                // Nobody is moved in the middle.
                standbys(world).have_all(&[2]);
            }
            is_asked(world, 0, "commit", hosts[0])?;
        }
        is_asked(world, 0, WRITES, 0)
    });
}

#[test]
fn what_is_lost_with_a_standby_is_asked_of_the_primary() {
    script(split(), &[0], |world| {
        let text = known(world, "sleep 9000")?;
        is_asked(world, 0, WRITES, 0)?;
        standbys(world).have_all(&[1]);
        say(world, 0, &text);
        let works = |world: &World| {
            world.servers.iter().position(|one| one.standby == Some(1) && one.wakes.is_some())
        };
        world.until(|world| works(world).is_some())?;
        let server = works(world).ok_or("the standby was not asked")?;
        let before = world.read_by();
        world.servers[server].model.die(false);
        world.settle()?;
        let after = world.read_by();
        (after[0] > before[0]).then_some(()).ok_or_else(|| "the primary was not asked".to_owned())
    });
}

/// Symptom: who was sent to a standby waited there until `wait_timeout`, while the primary's idle
/// servers were all that the limit allows. Cause: pools at standbys had no part in what is divided.
#[test]
fn a_standbys_pool_gets_its_part_of_servers_that_are_limited() {
    let mut plan = Plan::quiet("transaction", 1, 1);
    (plan.standbys, plan.budget) = (2, Some(1));
    script(plan, &[0, 0], |world| {
        world.tell_of_hosts();
        world.settle()?;
        for number in 0..6 {
            for client in [0, 1, 0, 1] {
                standbys(world).have_all(&[1, 2]);
                say(world, client, &format!("echo m{number}"));
                world.settle()?;
            }
        }
        let read = world.read_by();
        (read[1] > 0 && read[2] > 0).then_some(()).ok_or_else(|| format!("read by {read:?}"))
    });
}
