//! `SET pondage.trace = on`.

use std::time::Duration;

use wire::pg::backend::tag;

use crate::caching::place::{Cached, Place};
use crate::coalescing::crowd::{patient, Crowd};
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::wireclient::Message;
use crate::kit::{cluster, wait, Config, Gateway, WireClient};
use crate::traps::batch::{tags, Batch};

const ON: &str = "set pondage.trace = on";

/// What the last statement has told.
fn told(client: &mut WireClient, run: impl FnOnce(&mut WireClient)) -> String {
    client.notices.clear();
    run(client);
    let [notice] = &client.notices[..] else {
        panic!("not one notice but {:?}", client.notices);
    };
    assert_eq!((&*notice.severity, &*notice.code), ("NOTICE", "00000"));
    assert!(notice.message.starts_with("pondage: "), "{notice:?}");
    notice.message.clone()
}

#[track_caller]
fn quiet(client: &mut WireClient, run: impl FnOnce(&mut WireClient)) {
    client.notices.clear();
    run(client);
    assert_eq!(client.notices, []);
}

fn select(client: &mut WireClient) {
    assert_eq!(client.one("select 1"), "1");
}

/// Milliseconds in front of these words.
fn millis(told: &str, words: &str) -> f64 {
    let head = told.split(words).next().expect("a part").trim_end().trim_end_matches("ms").trim();
    let number = head.rsplit(' ').next().expect("a number");
    number.parse().unwrap_or_else(|_| panic!("no time before {words:?} in {told:?}"))
}

fn gateway() -> (Gateway, crate::kit::Database) {
    let database = cluster().database();
    (Gateway::start(Config::of(&database).set("runtime.workers", 1)), database)
}

#[test]
fn who_asks_is_told_of_each_answer_and_nobody_else() {
    let (gateway, database) = gateway();
    let (mut client, mut other) = (gateway.client(&database), gateway.client(&database));
    quiet(&mut client, |client| client.run(ON));
    let text = told(&mut client, select);
    let place = format!(" ms at server 127.0.0.1:{} (pid ", cluster().port);
    assert!(text.contains(&place) && text.ends_with("), engine: pool"), "{text}");
    assert!(millis(&text, "for a server") >= 0.0 && millis(&text, "at server") >= 0.0, "{text}");
    quiet(&mut other, select);
    // In front of ReadyForQuery, whatever the answer was.
    let simple = client.query("select 1 where false");
    assert_eq!(tags(&simple), "TCNZ");
    assert_eq!(tags(&client.query("select 1; select 2")), "TDCTDCNZ");
    assert_eq!(tags(&client.query("select 1/0")), "ENZ");
    assert_eq!(tags(&client.query("")), "INZ");
    assert_eq!(tags(&client.extended("select $1", &[Some(b"7")])), "12DCNZ");
    assert_eq!(tags(&client.query("copy (values (1), (2)) to stdout")), "HddcCNZ");
    let started = told(&mut client, |client| client.run("begin"));
    assert_eq!(started, "pondage: no server, engine: pondage");
    told(&mut client, select);
    told(&mut client, |client| client.run("commit"));
    assert_eq!(client.one("show pondage.trace"), "on");
    quiet(&mut client, |client| client.run("set pondage.trace to off"));
    quiet(&mut client, select);
    assert_eq!(client.one("show pondage.trace"), "off");
    assert_eq!(client.error("set pondage.trace = loud").code, "22023");
    quiet(&mut client, select);
    // PostgreSQL has not heard of any of it.
    let known = "select coalesce(current_setting('pondage.trace', true), 'none')";
    assert_eq!(client.one(known), "none");
}

#[test]
fn every_answer_of_a_pipeline_has_its_own() {
    let (gateway, database) = gateway();
    let mut client = gateway.client(&database);
    client.run(ON);
    let mut batch = Batch::new();
    for n in 0..20 {
        batch = batch.parse("", &format!("select {n}, repeat('x', {n}000)"));
        batch = batch.bind("", &[]).execute().sync();
    }
    let simple: Vec<String> = (0..20).map(|n| format!("select {n}, {n}/(10-{n})")).collect();
    for sql in &simple {
        batch = batch.query(sql);
    }
    client.send(&batch.0);
    for n in 0..40 {
        let answer = client.until_ready();
        let expected = match n {
            0..20 => "12DCNZ",
            30 => "TENZ",
            _ => "TDCNZ",
        };
        // PostgreSQL may say what the rows are before it finds that there are none.
        let got = tags(&answer).replace("TEN", "EN");
        assert_eq!(got, expected.replace("TEN", "EN"), "{n}");
        if let Some(row) = answer.iter().find(|message| message.tag == tag::DATA_ROW) {
            assert_eq!(row.values()[0], Some((n % 20).to_string()));
        }
    }
    // A batch that has not ended is answered by no ReadyForQuery, so by no notice.
    let open = Batch::new().parse("", "select 1").bind("", &[]).execute().flush();
    client.send(&open.0);
    client.expect_tags("12DC");
    client.send(&Batch::new().sync().0);
    assert_eq!(tags(&client.until_ready()), "NZ");
}

#[test]
fn a_client_may_come_with_it_and_goes_back_to_that() {
    let (gateway, database) = gateway();
    let with = |name, value| {
        let own = [("user", APP), ("database", &*database.name), (name, value)];
        WireClient::try_login(&gateway.address(), APP_PASSWORD, &own)
    };
    for (name, value) in [("pondage.trace", "true"), ("options", "-c pondage.trace=on")] {
        let mut client = with(name, value).expect("a log-in");
        told(&mut client, select);
        quiet(&mut client, |client| client.run("set pondage.trace = off"));
        quiet(&mut client, select);
        quiet(&mut client, |client| client.run("reset pondage.trace"));
        told(&mut client, select);
        client.run("set pondage.trace = off");
        client.run("reset all");
        told(&mut client, select);
        client.run("set pondage.trace = off");
        client.run("discard all");
        told(&mut client, select);
    }
    let refused = with("pondage.trace", "loud").err().expect("no log-in");
    assert_eq!((&*refused.severity, &*refused.code), ("FATAL", "22023"));
    assert!(refused.hint.ends_with("[P0428]"), "{refused:?}");
    let mut client = gateway.client(&database);
    client.run(ON);
    client.run("discard all");
    quiet(&mut client, select);
}

#[test]
fn set_local_lasts_as_long_as_its_transaction() {
    let (gateway, database) = gateway();
    let mut client = gateway.client(&database);
    let warned = client.query("set local pondage.trace = on");
    assert_eq!(tags(&warned), "NCZ");
    assert_eq!(warned[0].complaint().code, "25P01");
    quiet(&mut client, select);
    for end in ["commit", "rollback"] {
        client.run("begin");
        quiet(&mut client, select);
        quiet(&mut client, |client| client.run("set local pondage.trace = on"));
        told(&mut client, select);
        told(&mut client, |client| client.run(end));
        quiet(&mut client, select);
    }
    // Nobody's transaction is known to a server yet.
    client.run("begin");
    client.run("set local pondage.trace = on");
    told(&mut client, |client| client.run("commit"));
    quiet(&mut client, select);
    // In a failed transaction PostgreSQL refuses it.
    client.run("begin");
    client.error("select 1/0");
    assert_eq!(client.error("set pondage.trace = on").code, "25P02");
    client.run("rollback");
    quiet(&mut client, select);
}

#[test]
fn it_is_set_in_both_protocols_and_in_whatever_words() {
    let (gateway, database) = gateway();
    let mut client = gateway.client(&database);
    let batch = Batch::new().parse("", ON).bind("", &[]).describe_portal("").execute().sync();
    assert_eq!(tags(&batch.answer(&mut client)), "12nCZ");
    told(&mut client, select);
    let show = Batch::new().parse("", "show pondage.trace").bind("", &[]);
    let answer = show.describe_portal("").execute().sync().answer(&mut client);
    assert_eq!(tags(&answer), "12TDCZ");
    assert_eq!(answer[3].values(), [Some("on".to_owned())]);
    // Prepared, behind others, by a function: PostgreSQL is asked what is set.
    for set in [
        Batch::new().parse("s", ON).bind("s", &[]).execute().close("s").sync(),
        Batch::new().query("select 1; set pondage.trace = on"),
        Batch::new().query("select set_config('pondage.trace', 'on', false)"),
        Batch::new().query("/* mine */ set pondage.trace = on"),
    ] {
        let mut client = gateway.client(&database);
        quiet(&mut client, |client| drop(set.answer(client)));
        told(&mut client, select);
        assert_eq!(client.one("show pondage.trace"), "on");
        client.run("set pondage.trace = off");
        quiet(&mut client, select);
        client.run(ON);
        told(&mut client, select);
        client.run("reset pondage.trace");
        quiet(&mut client, select);
        quiet(&mut client, select);
    }
}

#[test]
fn who_has_waited_is_told_for_how_long() {
    const AT_LEAST: Duration = Duration::from_millis(50);
    let database = cluster().database();
    let gateway = Gateway::start(patient(&database));
    let (mut holder, mut client) = (gateway.client(&database), gateway.client(&database));
    client.run(ON);
    holder.run("begin");
    select(&mut holder);
    client.notices.clear();
    client.send(&Batch::new().query("select 1").0);
    wait::until("the client to wait", || {
        gateway.show("pools").iter().any(|pool| pool["cl_waiting"] == "1")
    });
    std::thread::sleep(AT_LEAST);
    holder.run("commit");
    client.until_ready();
    let text = client.notices.pop().expect("a notice").message;
    assert!(millis(&text, "for a server") >= AT_LEAST.as_secs_f64() * 1e3, "{text}");
    // The next one does not inherit it, and other settings are told apart from waiting.
    client.run("begin");
    select(&mut client);
    let text = told(&mut client, select);
    assert_eq!(millis(&text, "for a server"), 0.0, "{text}");
    client.run("commit");
    client.run("set extra_float_digits = 2");
    holder.run("select 1");
    let text = told(&mut client, |client| client.run("begin; select 1; commit"));
    assert!(text.contains("to prepare it"), "{text}");
}

fn notice(answer: &[Message]) -> Option<String> {
    let notice = answer.iter().find(|message| message.tag == tag::NOTICE)?;
    Some(notice.complaint().message)
}

#[test]
fn trips_and_trains_tell_how_many_they_are() {
    let tables = "create table t(id int primary key, n int);
        insert into t select g, 0 from generate_series(1, 100) g";
    let mut crowd = Crowd::start(5, tables, |config| config.set("pool.coalesce_writes", true));
    let write = |id: usize| Batch::new().query(&format!("update t set n = n + 1 where id = {id}"));
    for (way, batch) in [
        ("batch", Batch::new().query("select n from t where id = 7")),
        (
            "batch",
            Batch::new()
                .parse("", "select n from t where id = $1")
                .bind("", &["7"])
                .execute()
                .sync(),
        ),
        ("train", write(7)),
    ] {
        crowd.learn(&batch, way);
        crowd.clients[1].run(ON);
        let batches: Vec<Batch> = match way {
            "train" => (1..=5).map(write).collect(),
            _ => vec![batch; 5],
        };
        let answers = crowd.together(&batches);
        crowd.clients[1].run("set pondage.trace = off");
        for (at, answer) in answers.iter().enumerate() {
            match (notice(answer), at) {
                (Some(text), 1) => {
                    let engine = if way == "train" { "train" } else { "trip" };
                    assert!(text.ends_with(&format!(", engine: {engine} of 5")), "{text}");
                    assert!(text.contains(" ms at server 127.0.0.1:"), "{text}");
                    assert!(tags(answer).ends_with("CNZ"), "{}", tags(answer));
                }
                (None, 0 | 2..) => {}
                (text, _) => panic!("{at}: {text:?}"),
            }
        }
    }
}

#[test]
fn what_is_kept_tells_how_fresh_it_is() {
    let place =
        Place::start("create table t(id int primary key, n int); insert into t values (1, 7)");
    let mut client = place.client();
    let sql = "select n from t where id = 1";
    client.warm(sql);
    client.run(ON);
    let (mut text, mut before) = (String::new(), 0);
    wait::until("an answer from the cache", || {
        text = told(&mut client, |client| assert_eq!(client.one(sql), "7"));
        before += 1;
        text.contains("engine: cache")
    });
    let (head, tail) = text.split_once(" (fresh as of LSN ").expect("freshness");
    assert!(head.starts_with("pondage: no server") && head.ends_with("engine: cache"), "{text}");
    assert!(tail.ends_with(" ms old)"), "{text}");
    // A notice is no part of what is kept, in either direction.
    let mut other = place.client();
    other.warm(sql);
    quiet(&mut other, |client| assert_eq!(client.one(sql), "7"));
    let parse = Batch::new().parse("", "select n from t where id = $1").bind("", &["1"]);
    let batch = parse.execute().sync();
    wait::until("an answer of the extended protocol from the cache", || {
        let answer = batch.answer(&mut client);
        assert_eq!(tags(&answer), "12DCNZ");
        notice(&answer).is_some_and(|text| text.contains("engine: cache"))
    });
    // Reads of a transaction that no server knows.
    client.run("begin");
    let text = told(&mut client, |client| assert_eq!(client.one(sql), "7"));
    assert!(text.contains("engine: "), "{text}");
    client.run("commit");
}

#[test]
fn a_mirror_tells_how_fresh_it_is() {
    let place = Place::start(
        "create table t(id int primary key, n int);
         insert into t select g, g from generate_series(1, 500) g",
    );
    place.client().run("mirror table t");
    let mut client = place.client();
    client.run(ON);
    let mut unheard = 1_000_000;
    let mut last = String::new();
    let found = wait::within(wait::DEADLINE, || {
        unheard += 1;
        last = told(&mut client, |client| {
            client.rows(&format!("select n from t where id between 3 and 9 and n < {unheard}"));
        });
        last.contains("engine: mirror").then_some(())
    });
    assert!(found.is_some(), "never from a mirror: {last}");
    assert!(last.contains("(fresh as of LSN ") && last.ends_with(')'), "{last}");
}
