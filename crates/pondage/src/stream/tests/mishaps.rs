//! Streams that end, and begin again.

use std::time::Duration;

use rustix::process::{kill_process, Pid, Signal};

use wire::pg::auth::Secret;

use super::mirror::Mirror;
use super::rig::{connect, options, rows, until, Followed, Rig};
use crate::config::Host;
use crate::stream::{Options, State};

const WALSENDER: &str = "SELECT active_pid FROM pg_replication_slots";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_killed_begins_again() {
    let rig = Rig::start(&[]).await;
    rig.app("CREATE TABLE keyed (a int PRIMARY KEY)").await;
    let followed = rig.follow().await;
    let slot = followed.tap.standing().slot;
    rig.run("INSERT INTO keyed VALUES (1)").await;
    rig.told(&followed).await;
    rig.run("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots").await;
    followed.begun(2).await;
    let lost = followed.mirror.look(|seen| seen.lost.clone());
    assert!(lost.len() == 1 && lost[0].contains("57P01"), "{lost:?}");
    assert_ne!(followed.tap.standing().slot, slot);
    rig.run("INSERT INTO keyed VALUES (2)").await;
    rig.told(&followed).await;
    // What was there before is nobody's change.
    assert_eq!(followed.mirror.copy("keyed"), ["2"]);

    // The other connection can be had again without the stream.
    rig.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'pondage' AND backend_type = 'client backend'",
    )
    .await;
    rig.app("CREATE TABLE more (a int PRIMARY KEY)").await;
    until("the new table", || followed.mirror.tables().len() == 2).await;
    assert_eq!(followed.mirror.look(|seen| seen.begun), 2);

    rig.streams.stop("app");
    until("the end", || followed.mirror.look(|seen| !seen.following)).await;
    assert_eq!(followed.mirror.look(|seen| seen.lost[1].clone()), "it was stopped");
    let end = std::time::Instant::now() + super::rig::DEADLINE;
    while !rig.rows(WALSENDER).await.is_empty() {
        assert!(std::time::Instant::now() < end, "the slot is still there");
    }
    assert!(rig.streams.standing().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_is_given_up() {
    let rig = Rig::start(&[]).await;
    rig.app("CREATE TABLE keyed (a int PRIMARY KEY)").await;
    let silence = Duration::from_secs(1);
    let followed = rig.follow_as("app", Options { silence, ..options() });
    followed.begun(1).await;
    // Long without a change is no silence.
    tokio::time::sleep(silence * 2).await;
    assert_eq!(followed.mirror.look(|seen| seen.lost.len()), 0);
    let pid: i32 = rig.one(WALSENDER).await.parse().expect("a process");
    let pid = Pid::from_raw(pid).expect("not zero");
    kill_process(pid, Signal::STOP).expect("stopped");
    followed.begun(2).await;
    kill_process(pid, Signal::CONT).expect("goes on");
    let lost = followed.mirror.look(|seen| seen.lost.clone());
    assert_eq!(lost, ["nothing was heard of the server for 1s"]);
    rig.run("INSERT INTO keyed VALUES (2)").await;
    rig.told(&followed).await;
    assert_eq!(followed.mirror.copy("keyed"), ["2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_never_holds_much_of_the_log() {
    let rig = Rig::start(&[]).await;
    rig.app("CREATE TABLE keyed (a int PRIMARY KEY, b text)").await;
    let options = Options { slot_max_wal: 2 << 20, ..options() };
    let followed = rig.follow_as("app", options);
    followed.begun(1).await;
    // Decoding would have to begin again where the oldest open transaction did.
    let other = connect(&rig.cluster, "app").await;
    rows(&other, "BEGIN").await;
    rows(&other, "INSERT INTO keyed VALUES (1)").await;
    rig.run("INSERT INTO keyed SELECT i, repeat('x', 500) FROM generate_series(2, 9000) i").await;
    until("the loss", || followed.mirror.look(|seen| !seen.lost.is_empty())).await;
    let lost = followed.mirror.look(|seen| seen.lost[0].clone());
    assert!(lost.ends_with("of the log, more than slot_max_wal"), "{lost}");
    rows(&other, "COMMIT").await;
    followed.begun(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_do_not_wait_for_a_stream_that_counts_as_a_standby() {
    let rig = Rig::start(&[]).await;
    rig.app("CREATE TABLE keyed (a int PRIMARY KEY)").await;
    let followed = rig.follow().await;
    rig.run("ALTER SYSTEM SET synchronous_standby_names = '*'").await;
    rig.run("SELECT pg_reload_conf()").await;
    let end = std::time::Instant::now() + super::rig::DEADLINE;
    let state = "SELECT sync_state FROM pg_stat_replication";
    while rig.one(state).await != "sync" {
        assert!(std::time::Instant::now() < end, "no synchronous standby");
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let began = std::time::Instant::now();
    for number in 0..50 {
        rig.run(&format!("INSERT INTO keyed VALUES ({number})")).await;
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    rig.told(&followed).await;
    assert_eq!(followed.mirror.copy("keyed").len(), 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_takes_another_s_place_begins_when_that_has_ended() {
    let rig = Rig::start(&[]).await;
    let first = rig.follow().await;
    let slots = "SELECT slot_name FROM pg_replication_slots";
    let slot = rig.one(slots).await;
    let second = rig.follow_as("app", options());
    // It is stopped while it waits, and so never begins.
    let third = rig.follow_as("app", options());
    third.begun(1).await;
    assert_eq!(first.mirror.look(|seen| seen.lost.clone()), ["it was stopped"]);
    assert_eq!(second.mirror.look(|seen| seen.begun), 0);
    assert_ne!(rig.one(slots).await, slot);
    assert_eq!(rig.streams.standing().len(), 1);
    rig.streams.stop("app");
    until("the end of the slot", || third.mirror.look(|seen| !seen.following)).await;
    assert_eq!(rig.streams.standing(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_is_tried_again_and_a_wrong_password_is_said() {
    let rig = Rig::start(&[]).await;
    let mut config = rig.config("app");
    config.upstream.password = Some(Secret::Plain("pen".to_owned()));
    let mirror = Mirror::default();
    let tap = rig.streams.follow(config.into(), None, options(), Box::new(mirror.clone()));
    let followed = Followed { tap, mirror };
    let is_refused = |state: &State| matches!(state, State::Refused { .. });
    let standing = followed.state("a refusal", is_refused).await;
    let State::Refused { missing, .. } = standing.state else { unreachable!() };
    assert!(missing.what.contains("password authentication failed"), "{missing:?}");
    let mut config = rig.config("app");
    config.upstream.host = Host::Unix("/nowhere".into());
    let mirror = Mirror::default();
    let tap = rig.streams.follow(config.into(), None, options(), Box::new(mirror.clone()));
    let followed = Followed { tap, mirror };
    let is_lost = |state: &State| matches!(state, State::Lost { .. });
    let standing = followed.state("a loss", is_lost).await;
    let State::Lost { why, .. } = standing.state else { unreachable!() };
    assert!(why.contains("cannot connect"), "{why}");
    assert_eq!(followed.mirror.look(|seen| (seen.begun, seen.lost.len())), (0, 0));
}
