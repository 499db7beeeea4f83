//! RELOAD and the streams: those that it concerns begin anew or end, the others go on.

use std::fs;

use super::place::{Cached, Place};
use crate::kit::cluster::OTHER_PASSWORD;
use crate::kit::{wait, WireClient};

const SET_UP: &str = "create table t(id int primary key, n int not null);
    insert into t values (1, 0), (2, 0)";
const READ: &str = "select n from t where id = 1";

/// The configuration with a section's line replaced or added, from now on.
pub fn reload(place: &Place, section: &str, key: &str, value: &str) {
    let text = fs::read_to_string(&place.gateway.file).expect("a configuration");
    let mut within = false;
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            within = line == format!("[{section}]");
        }
        if !(within && line.starts_with(&format!("{key} ="))) {
            lines.push(line.to_owned());
        }
        if line == format!("[{section}]") {
            lines.push(format!("{key} = {value}"));
        }
    }
    rewrite(place, &lines.join("\n"));
}

fn rewrite(place: &Place, text: &str) {
    fs::write(&place.gateway.file, text).expect("a file");
    place.gateway.console().run("reload");
}

/// The slot of the stream, once it is followed.
fn slot(place: &Place) -> String {
    wait::for_some("a stream", || {
        let streams = place.gateway.show("streams");
        let row = streams.iter().find(|row| row["database"] == place.database.name)?;
        (row["state"] == "following").then(|| row["slot"].clone())
    })
}

/// Slots of the database in the server.
fn slots(place: &Place) -> String {
    let name = &place.database.name;
    let sql = format!("select count(*) from pg_replication_slots where database = '{name}'");
    place.superuser().one(&sql)
}

/// What is written is seen and kept.
fn goes_on(place: &Place, client: &mut WireClient) {
    place.beside().run("update t set n = n + 1 where id = 1");
    let now = place.beside().one(READ);
    place.becomes(client, READ, &now);
}

#[test]
fn options_of_the_stream_begin_it_anew_and_others_leave_it_alone() {
    let place = Place::start(SET_UP);
    let mut client = place.client();
    client.warm(READ);
    let mut before = slot(&place);
    for (key, value) in [
        ("wait", "\"900ms\""),
        ("max_lag", "\"6s\""),
        ("freshness", "\"strict\""),
        ("freshness", "\"session\""),
    ] {
        reload(&place, "cache", key, value);
        goes_on(&place, &mut client);
        assert_eq!(slot(&place), before, "{key}");
    }
    reload(&place, "pool", "pool_size", "4");
    goes_on(&place, &mut client);
    assert_eq!(slot(&place), before);

    place.superuser().run("alter role plain replication");
    place.superuser().run("create publication others for all tables");
    let password = place.gateway.directory.path().join("password");
    fs::write(&password, OTHER_PASSWORD).expect("a file");
    let password = format!("{:?}", password.display().to_string());
    for (key, value) in [
        ("slot_max_wal", "\"512MiB\""),
        ("publication", "\"others\""),
        // Its own password, then the same one from a file.
        ("user", "\"plain\""),
        ("password_file", password.as_str()),
        ("publication", "\"pondage\""),
    ] {
        reload(&place, "cache", key, value);
        if key == "publication" && value.contains("pondage") {
            let streams = place.gateway.show("streams");
            assert_eq!(streams[0]["publication"], "pondage");
        }
        goes_on(&place, &mut client);
        let after = slot(&place);
        assert_eq!(after == before, key == "password_file", "{key}: {before}, {after}");
        assert_eq!(slots(&place), "1", "{key}");
        before = after;
    }
    let walsender = "select usename from pg_stat_replication join pg_replication_slots \
                     on active_pid = pid where slot_name =";
    assert_eq!(place.superuser().one(&format!("{walsender} '{before}'")), "plain");
}

#[test]
fn a_database_that_nobody_caches_is_followed_no_longer() {
    let place = Place::start(SET_UP);
    let mut client = place.client();
    client.warm(READ);
    let gone = || {
        wait::until("the end of the slot", || slots(&place) == "0");
        assert!(place.gateway.show("streams").is_empty());
    };
    reload(&place, "cache", "mode", "\"off\"");
    gone();
    client.never_hits(READ);
    // The same clients go on where they were.
    reload(&place, "cache", "mode", "\"auto\"");
    goes_on(&place, &mut client);
    // One user is enough.
    let before = slot(&place);
    reload(&place, "users.plain", "cache", "\"auto\"");
    reload(&place, "cache", "mode", "\"off\"");
    client.never_hits(READ);
    assert_eq!(slot(&place), before);
    reload(&place, "users.plain", "cache", "\"off\"");
    gone();
    reload(&place, "cache", "mode", "\"auto\"");
    goes_on(&place, &mut client);
    // And one that is no longer there.
    let text = fs::read_to_string(&place.gateway.file).expect("a configuration");
    let section = format!("[databases.{}]", place.database.name);
    rewrite(&place, &text.replace(&section, "[databases.another]"));
    gone();
    rewrite(&place, &text);
    let mut client = place.client();
    goes_on(&place, &mut client);
}

/// What was kept of the old server's database is not served for the new one's, whoever holds an old
/// connection.
#[test]
fn another_server_s_rows_are_not_served() {
    let place = Place::start_with(SET_UP, |config| config.set("users.plain.mode", "session"));
    let other = place.cluster().database();
    other.run(&SET_UP.replace("(1, 0)", "(1, 70)"));
    other.run("alter table t owner to app; grant select on t to plain");
    place.beside().run("grant select on t to plain");
    let mut client = place.client();
    client.warm(READ);
    let mut held = place.plain();
    held.warm(READ);
    let section = format!("databases.{}", place.database.name);
    let names = [&other.name, &place.database.name];
    for round in 0..6 {
        reload(&place, &section, "dbname", &format!("{:?}", names[round % 2]));
        let (now, before) = if round % 2 == 0 { ("70", "0") } else { ("0", "70") };
        // Its server may still be the old one; what it gets must not be kept for others.
        let mut seen = Vec::new();
        for _ in 0..30 {
            seen.push(held.one(READ));
            let got = client.one(READ);
            assert_eq!(got, now, "round {round}, not {before}; hit: {}", client.was_hit());
        }
        place.becomes(&mut client, READ, now);
        assert!(seen.iter().all(|one| one == "0" || one == "70"), "{seen:?}");
        held = place.plain();
        place.becomes(&mut held, READ, now);
    }
}
