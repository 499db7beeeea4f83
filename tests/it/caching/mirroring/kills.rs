//! C17: whoever has to do with a copy is killed in the middle of it.

use rustix::process::{kill_process, Pid, Signal};

use super::super::place::Place;
use super::losses::{steps, ALL, POINT};
use crate::kit::cluster::APP;
use crate::kit::{wait, Config, Gateway, WireClient};

/// Small in the server, and far more than all buffers between it and Pondage when it is copied.
const SET_UP: &str = "create table t(id int primary key, n int not null, s text);
    insert into t select g, 0, repeat('s', 6000) from generate_series(1, 10000) g";

/// Who copies, or holds the copy's snapshot.
const COPIES: &str = "query like 'COPY%' and state = 'active'";
const HOLDER: &str = "query not like 'COPY%' and state = 'idle in transaction'";

/// Processes of the server for this database.
fn pids(place: &Place, which: &str) -> Vec<String> {
    let name = &place.database.name;
    let rows = place.superuser().rows(&format!(
        "select pid from pg_stat_activity where datname = '{name}' and pid <> pg_backend_pid()
         and {which}"
    ));
    rows.into_iter().flatten().flatten().collect()
}

/// Stops Pondage while it copies; the processes of the server that wait for it.
fn stopped(place: &Place, which: &str) -> Vec<String> {
    wait::for_some("a copy", || {
        if pids(place, COPIES).is_empty() {
            return None;
        }
        place.gateway.signal(Signal::STOP);
        let copies = pids(place, COPIES);
        let found = pids(place, which);
        if copies.is_empty() || found.is_empty() {
            place.gateway.signal(Signal::CONT);
            return None;
        }
        Some(found)
    })
}

fn slots(place: &Place) -> Vec<String> {
    let name = &place.database.name;
    let all = format!("select slot_name from pg_replication_slots where database = '{name}'");
    place.superuser().rows(&all).into_iter().flatten().flatten().collect()
}

/// Behind the end of one of the copy's backends.
fn is_made_again(which: &str) {
    let place = Place::start(SET_UP);
    let (mut writer, mut reader) = (place.client(), place.client());
    let stream = slots(&place);
    writer.run("mirror table t");
    for pid in stopped(&place, which) {
        place.superuser().run(&format!("select pg_terminate_backend({pid})"));
    }
    place.gateway.signal(Signal::CONT);
    let last = steps(&place, [&mut writer, &mut reader], 0, 10);
    wait::until("a copy that has failed", || place.gateway.said().contains("mirror_failed"));
    place.mirrors_again(&[POINT, ALL], which);
    steps(&place, [&mut writer, &mut reader], last, 10);
    assert_eq!(slots(&place), stream, "the stream goes on, and no copy has a slot");
    assert!(pids(&place, COPIES).is_empty() && pids(&place, HOLDER).is_empty());
}

#[test]
fn trap_c17_a_copy_whose_backend_is_ended_is_made_again() {
    is_made_again(COPIES);
}

#[test]
fn trap_c17_a_copy_whose_snapshot_is_lost_is_made_again() {
    is_made_again(HOLDER);
}

#[test]
fn trap_c17_a_copy_whose_backend_is_killed_takes_the_server_with_it() {
    let place = Place::start_alone(&[], SET_UP);
    let before = slots(&place);
    place.client().run("mirror table t");
    let pid = stopped(&place, COPIES)[0].parse().expect("a process id");
    kill_process(Pid::from_raw(pid).expect("not zero"), Signal::KILL).expect("it runs");
    place.gateway.signal(Signal::CONT);
    let (mut writer, mut reader) = wait::for_some("a gateway that serves", || {
        let answered = |client: &mut WireClient| {
            let replies = client.try_query(&super::unheard(POINT))?;
            replies.iter().any(|reply| reply.tag == b'D').then_some(())
        };
        let (mut one, mut other) = (place.client(), place.client());
        answered(&mut one).and_then(|()| answered(&mut other)).map(|()| (one, other))
    });
    let last = steps(&place, [&mut writer, &mut reader], 0, 10);
    place.mirrors_again(&[POINT, ALL], "a server that was started anew");
    steps(&place, [&mut writer, &mut reader], last, 10);
    let after = slots(&place);
    assert!(after.len() == 1 && after != before, "{before:?}, {after:?}");
}

#[test]
fn trap_c17_a_gateway_that_is_killed_while_it_copies_leaves_nothing() {
    let mut place = Place::start(SET_UP);
    place.client().run("mirror table t");
    stopped(&place, COPIES);
    assert_eq!(slots(&place).len(), 1);
    place.gateway.signal(Signal::KILL);
    place.gateway.wait();
    wait::until("a server without any of its connections", || {
        slots(&place).is_empty() && pids(&place, "true").is_empty()
    });
    // Nobody waits for what it held.
    place.beside().run("alter table t alter column n type bigint");
    let name = &place.database.name;
    let config = Config::of(&place.database)
        .set("cache.mode", "auto")
        .set("cache.user", APP)
        .set("auth.admin_users", ["admin", APP])
        .set("cache.wait", "1s")
        .set(&format!("databases.{name}.mirrors"), ["t"]);
    place.gateway = Gateway::start(config);
    place.mirrors(&[POINT, ALL]);
    let (mut writer, mut reader) = (place.client(), place.client());
    steps(&place, [&mut writer, &mut reader], 0, 10);
}
