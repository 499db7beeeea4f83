//! C17 and C18: mirrors end with their stream, and memory has an end.

use super::super::place::{Cached, Place};
use super::Mirrored;
use crate::kit::{wait, WireClient};

pub const SET_UP: &str = "create table t(id int primary key, n int not null, s text);
    insert into t select g, 0, repeat('s', 100) from generate_series(1, 60000) g";

pub const POINT: &str = "select n from t where id = 1 and id < {}";
pub const ALL: &str = "select sum(n), count(*) from t where id between 1 and 10000 and n < {}";

fn kill_sender(place: &Place) {
    let name = &place.database.name;
    place.superuser().run(&format!(
        "select pg_terminate_backend(active_pid) from pg_replication_slots
         where database = '{name}' and active"
    ));
}

/// Writes and reads behind it.
pub fn steps(place: &Place, clients: [&mut WireClient; 2], from: i64, rounds: i64) -> i64 {
    let [writer, reader] = clients;
    for n in from + 1..=from + rounds {
        writer.run(&format!("update t set n = {n} where id = 1"));
        for client in [&mut *writer, &mut *reader] {
            let got = client.unheard_one(POINT);
            let hit = client.was_hit();
            assert_eq!(got, n.to_string(), "hit: {hit}");
            let got = client.unheard_rows(ALL);
            let hit = client.was_hit();
            assert_eq!(got, [[Some(n.to_string()), Some("10000".to_owned())]], "hit: {hit}");
        }
    }
    assert_eq!(place.figure("mismatches_total"), 0);
    from + rounds
}

#[test]
fn trap_c17_a_sender_that_is_killed_while_a_mirror_is_copied_or_stands() {
    let place = Place::start(SET_UP);
    let (mut writer, mut reader) = (place.client(), place.client());
    let mut last = 0;
    let copies = || place.gateway.said().text().matches("mirror_copied").count();
    let mut before = 0;
    for round in 1..=6 {
        // Half of them are killed as soon as a copy has begun.
        let begun = wait::within(wait::DEADLINE, || {
            reader.unheard_one(POINT);
            (copies() > before).then_some(())
        });
        assert!(begun.is_some(), "round {round}: no copy has begun");
        if round % 2 == 0 {
            reader.mirror(POINT);
            last = steps(&place, [&mut writer, &mut reader], last, 10);
        }
        before = copies();
        kill_sender(&place);
        last = steps(&place, [&mut writer, &mut reader], last, 20);
    }
    place.mirrors_again(&[POINT, ALL], "many streams");
    steps(&place, [&mut writer, &mut reader], last, 20);
}

#[test]
fn trap_c17_mirrors_do_not_outlive_their_server() {
    let place = Place::start_alone(&[], SET_UP);
    let mut last = 0;
    for mode in ["fast", "immediate"] {
        place.mirrors(&[POINT, ALL]);
        let mut reader = place.client();
        place.cluster().stop(mode);
        wait::until("an error", || match reader.try_query(&super::unheard(POINT)) {
            Some(replies) => replies.iter().any(|reply| reply.tag == b'E'),
            None => true,
        });
        place.cluster().launch();
        last += 1;
        place.beside().run(&format!("update t set n = {last} where id = 1"));
        let mut reader = wait::for_some("a gateway that serves", || {
            let mut reader = place.client();
            let replies = reader.try_query(&super::unheard(POINT))?;
            replies.iter().any(|reply| reply.tag == b'D').then_some(reader)
        });
        assert_eq!(reader.unheard_one(POINT), last.to_string(), "{mode}");
        let mut writer = place.client();
        last = steps(&place, [&mut writer, &mut reader], last, 10);
        place.mirrors_again(&[POINT, ALL], mode);
    }
}

#[test]
fn trap_c18_what_is_too_large_has_no_mirror_and_is_right_all_the_same() {
    let place = Place::start_with(
        "create table small(id int primary key, n int not null);
         insert into small select g, g from generate_series(1, 1000) g;
         create table t(id int primary key, n int not null, s text);
         insert into t select g, 0, repeat('s', 300) from generate_series(1, 30000) g",
        |config| config.set("cache.memory", "8MiB").set("cache.mirror_memory", "4MiB"),
    );
    const WIDE: &str = "select n, s from t where id between 100 and 200 and n < {} order by id";
    const SMALL: &str = "select n from small where id = 5 and id < {}";
    let (mut client, mut beside) = (place.client(), place.beside());
    let mut writer = place.client();
    place.mirrors(&[SMALL]);
    let mut n = 0;
    let mut compare = |client: &mut WireClient| {
        n += 1;
        writer.run(&format!("update t set n = {n} where id = 150"));
        let expected = beside.unheard_rows(WIDE);
        let got = client.unheard_rows(WIDE);
        assert!(got == expected, "hit: {}", client.was_hit());
        assert!(!client.was_hit(), "it does not fit");
        let bytes = place.figure("bytes");
        assert!(bytes * 100 <= (8 << 20) * 105, "{bytes} bytes are kept");
    };
    let said = wait::within(wait::DEADLINE, || {
        compare(&mut client);
        place.gateway.said().contains("does not fit into cache.mirror_memory").then_some(())
    });
    assert!(said.is_some(), "nobody was told");
    for _ in 0..100 {
        compare(&mut client);
    }
    place.mirrors(&[SMALL]);
    // A mirror that outgrows the limit goes.
    client.run("insert into small select g, g from generate_series(1001, 200000) g");
    for _ in 0..20 {
        assert_eq!(client.unheard_one(SMALL), "5");
        let bytes = place.figure("bytes");
        assert!(bytes * 100 <= (8 << 20) * 105, "{bytes} bytes are kept");
    }
    client.run("delete from small where id > 1000");
    place.mirrors_again(&[SMALL], "what was too much is gone");
}
