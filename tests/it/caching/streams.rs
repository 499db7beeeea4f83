//! C17 and C18: the stream ends, stalls or is lost with its server; memory has an end.

use std::time::{Duration, Instant};

use rustix::process::{kill_process, Pid, Signal};

use super::place::{Cached, Place};
use crate::kit::{wait, Config, WireClient};

const SET_UP: &str = "create table t(id int primary key, n int not null, s text);
    insert into t select g, 0, 'x' from generate_series(1, 10) g";
const READ: &str = "select n from t where id = 1";

/// The process that sends the stream.
fn sender(place: &Place) -> String {
    let asked = format!(
        "select active_pid from pg_replication_slots where database = '{}' and active",
        place.database.name
    );
    let mut superuser = place.superuser();
    wait::for_some("a sender of the stream", || {
        let rows = superuser.rows(&asked);
        rows.first().and_then(|row| row[0].clone())
    })
}

fn begun(place: &Place) -> u64 {
    let streams = place.gateway.show("streams");
    streams.iter().map(|row| row["begun"].parse::<u64>().expect("a number")).sum()
}

/// Changes by somebody else are seen in order, and none is missed for longer than `patience`.
fn goes_on(
    place: &Place,
    reader: &mut WireClient,
    from: i64,
    rounds: i64,
    patience: Duration,
) -> i64 {
    let mut beside = place.beside();
    // What others have written it need not have seen.
    let mut last: i64 = reader.one(READ).parse().expect("a number");
    for n in from + 1..=from + rounds {
        beside.run(&format!("update t set n = {n} where id = 1"));
        let end = Instant::now() + patience;
        loop {
            let now: i64 = reader.one(READ).parse().expect("a number");
            let hit = reader.was_hit();
            assert!(now >= last, "from {last} back to {now}, hit: {hit}");
            last = now;
            if now == n {
                break;
            }
            assert!(Instant::now() < end, "{now} and not {n} after {patience:?}, hit: {hit}");
        }
    }
    last
}

#[test]
fn trap_c17_a_sender_that_is_killed_ends_what_is_kept() {
    let place = Place::start(SET_UP);
    let mut reader = place.client();
    let mut last = 0;
    for _ in 0..3 {
        reader.warm(READ);
        let before = begun(&place);
        let pid = sender(&place);
        place.superuser().run(&format!("select pg_terminate_backend({pid})"));
        last = goes_on(&place, &mut reader, last, 30, Duration::from_secs(3));
        assert_eq!(reader.warm(READ), [[Some(last.to_string())]]);
        assert!(begun(&place) > before, "a new stream");
    }
}

#[test]
fn trap_c17_nothing_is_served_while_postgresql_is_down_or_from_before() {
    let place = Place::start_alone(&[], SET_UP);
    let mut last = 0;
    for mode in ["fast", "immediate"] {
        let mut reader = place.client();
        reader.warm(READ);
        place.cluster().stop(mode);
        let end = Instant::now() + Duration::from_secs(2);
        let mut refused = 0;
        while Instant::now() < end && refused < 3 {
            refused += match reader.try_query(READ) {
                Some(replies) => usize::from(replies.iter().any(|reply| reply.tag == b'E')),
                // It was sent away.
                None => 3,
            };
        }
        assert!(refused > 0, "{mode}: answers while there is no PostgreSQL");
        place.cluster().launch();
        last += 1;
        place.beside().run(&format!("update t set n = {last} where id = 1"));
        let mut reader = wait::for_some("a gateway that serves", || {
            let mut reader = place.client();
            let replies = reader.try_query(READ)?;
            replies.iter().any(|reply| reply.tag == b'D').then_some(reader)
        });
        assert_eq!(reader.one(READ), last.to_string(), "{mode}");
        last = goes_on(&place, &mut reader, last, 5, Duration::from_secs(3));
        assert_eq!(reader.warm(READ), [[Some(last.to_string())]]);
    }
}

#[test]
fn trap_c17_a_stream_that_falls_silent_serves_nothing_after_max_lag() {
    let lag = Duration::from_millis(800);
    let place = Place::start_with(SET_UP, |config| {
        config.set("cache.max_lag", "800ms").set("cache.wait", "20ms")
    });
    let mut reader = place.client();
    reader.warm(READ);
    let pid: i32 = sender(&place).parse().expect("a process id");
    let pid = Pid::from_raw(pid).expect("not zero");
    kill_process(pid, Signal::STOP).expect("the sender runs");
    let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // A writer sees its own writes at once.
        let mut writer = place.client();
        for n in 1..=10 {
            writer.run(&format!("update t set n = {n} where id = 1"));
            assert_eq!(writer.one(READ), n.to_string());
        }
        goes_on(&place, &mut reader, 10, 10, lag + Duration::from_secs(2))
    }));
    kill_process(pid, Signal::CONT).expect("the sender is there");
    let last = stopped.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let last = goes_on(&place, &mut reader, last, 10, Duration::from_secs(3));
    assert_eq!(reader.warm(READ), [[Some(last.to_string())]]);
}

#[test]
fn trap_c17_a_slot_that_holds_too_much_is_given_up() {
    // Alone: whoever wants a slot waits for the transaction that is held here.
    let settings = |config: Config| config.set("cache.slot_max_wal", "4MiB");
    let place = Place::start_alone_with(&[], SET_UP, settings);
    let mut reader = place.client();
    reader.warm(READ);
    let mut holder = place.beside();
    // A transaction that stays open keeps the log from where it began.
    holder.run("begin; update t set s = 'held' where id = 9");
    let mut beside = place.beside();
    let mut last = 0;
    const HELD: &str = "select count(*) from pg_replication_slots where active";
    let mut superuser = place.superuser();
    wait::until("the end of the slot", || {
        beside
            .run("insert into t select g, 0, repeat('y', 500) from generate_series(1000, 3000) g");
        beside.run("delete from t where id >= 1000");
        last = goes_on(&place, &mut reader, last, 2, Duration::from_secs(3));
        superuser.one(HELD) == "0"
    });
    holder.run("commit");
    last = goes_on(&place, &mut reader, last, 10, Duration::from_secs(3));
    assert_eq!(reader.warm(READ), [[Some(last.to_string())]]);
}

#[test]
fn trap_c18_memory_has_an_end() {
    let place = Place::start_with(
        "create table wide(id int primary key, s text);
         insert into wide select g, repeat(chr(97 + g % 26), 1500) from generate_series(1, 4000) g",
        |config| config.set("cache.memory", "1MiB"),
    );
    let mut client = place.client();
    client.warm("select s from wide where id = 1");
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", place.gateway.pid()));
        let status = status.expect("the gateway runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a line");
        line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number") << 10
    };
    let before = resident();
    for id in 1..=4000 {
        for _ in 0..3 {
            let got = client.one(&format!("select s from wide where id = {id}"));
            assert_eq!(got.as_bytes()[0], b'a' + (id % 26) as u8);
        }
        if id % 200 == 0 {
            let bytes = place.figure("bytes");
            assert!(bytes * 100 <= (1 << 20) * 105, "{bytes} bytes are kept");
        }
    }
    assert!(place.figure("evicted_total") > 1000);
    // A mirror that is just being made takes room, and gives it back.
    let mut id = 0;
    wait::until("a hundred entries", || {
        id = id % 4000 + 1;
        (0..3).for_each(|_| drop(client.one(&format!("select s from wide where id = {id}"))));
        place.figure("entries") > 100
    });
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more are resident");
    // What is asked for all the time stays.
    client.warm("select s from wide where id = 7");
}
