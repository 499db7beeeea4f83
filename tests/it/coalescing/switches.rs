//! Coalescing is switched for a database, a user or everybody, while statements run; and what it
//! does can be seen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use super::crowd::{counters, explained, learn, patient, Crowd};
use crate::kit::cluster::{APP, APP_PASSWORD, OTHER_PASSWORD};
use crate::kit::{cluster, wait, Gateway, WireClient};
use crate::traps::batch::Batch;
use crate::traps::servers::direct;

const TABLE: &str = "create table t(id int primary key, n int);
    insert into t select g, g from generate_series(1, 100) g; grant select on t to public";

const SQL: &str = "select n from t where id = 7";

fn read() -> Batch {
    Batch::new().query(SQL)
}

/// Many runs, after which it would have joined if it could.
fn repeat(client: &mut WireClient) -> Vec<String> {
    (0..40).for_each(|_| drop(read().answer(client)));
    explained(client)
}

#[test]
fn it_is_off_for_one_database_and_for_one_user() {
    let [on, off] = [(); 2].map(|()| cluster().database());
    for database in [&on, &off] {
        direct(database).run(TABLE);
    }
    let config = patient(&on)
        .database(&off.name)
        .set(&format!("databases.{}.coalesce", off.name), "off")
        .set("users.plain.password", OTHER_PASSWORD)
        .set("users.plain.coalesce", "off");
    let gateway = Gateway::start(config);
    let mut client = gateway.client(&on);
    learn(&mut client, &read(), "batch");

    let mut other = WireClient::login(&gateway.address(), "plain", OTHER_PASSWORD, &on.name);
    for mut client in [gateway.client(&off), std::mem::replace(&mut other, gateway.client(&on))] {
        let told = repeat(&mut client);
        assert_eq!(told[1], "Way: alone", "{told:?}");
        assert!(told[2].contains("coalesce is off"), "{told:?}");
    }
    let rows = gateway.show("coalesce");
    let of = |database: &str, user: &str| {
        let row = rows.iter().find(|row| row["database"] == database && row["user"] == user);
        let row = row.expect("a row of the pool");
        [row["joined"].parse::<u64>().expect("a number"), row["alone_off"].parse().expect("one")]
    };
    assert!(of(&on.name, APP)[0] > 0, "{rows:#?}");
    assert_eq!(of(&on.name, "plain"), [0, 40], "{rows:#?}");
    assert_eq!(of(&off.name, APP), [0, 40], "{rows:#?}");
}

#[test]
fn without_prepare_simple_no_stand_in_is_made() {
    let mut crowd = Crowd::start(4, TABLE, |config| config.set("pool.prepare_simple", false));
    crowd.learn(&read(), "batch");
    (0..5).for_each(|_| drop(crowd.together_by("batch", &[read(), read(), read(), read()])));
    assert_eq!(crowd.counters()["prepared"], 0);
    let names = "select count(*) from pg_prepared_statements";
    assert_eq!(crowd.clients[0].one(names), "0");

    let mut crowd = Crowd::start(4, TABLE, |config| config);
    crowd.learn(&read(), "batch");
    (0..5).for_each(|_| drop(crowd.together_by("batch", &[read(), read(), read(), read()])));
    assert!(crowd.counters()["prepared"] >= 20);
    let statement = "select statement from pg_prepared_statements";
    assert_eq!(crowd.clients[0].one(statement), "select n from t where id = $1");
}

#[test]
fn it_is_switched_off_and_on_while_statements_run() {
    const CLIENTS: usize = 12;
    let database = cluster().database();
    direct(&database).run(TABLE);
    let on = patient(&database).set("pool.pool_size", 2);
    let gateway = Gateway::start(on.clone());
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (stop, mut client) = (stop.clone(), gateway.client(&database));
            std::thread::spawn(move || {
                let mut runs = 0;
                while !stop.load(Ordering::Relaxed) {
                    let id = (number * 7 + runs) % 100 + 1;
                    let sql = format!("select n, '{number}/{runs}' from t where id = {id}");
                    let row = client.rows(&sql).remove(0);
                    assert_eq!(row, [Some(id.to_string()), Some(format!("{number}/{runs}"))]);
                    runs += 1;
                }
                client.terminate();
                runs
            })
        })
        .collect();
    let count = |name: &str| counters(&gateway, &database)[name];
    for coalesce in ["off", "batch", "off", "pipeline", "off", "batch"] {
        let (joined, off) = (count("joined"), count("alone_off"));
        gateway.rewrite(on.clone().set("pool.coalesce", coalesce));
        gateway.console().run("reload");
        wait::until("the switch to be seen", || match coalesce {
            "off" => count("alone_off") > off + 100,
            _ => count("joined") > joined + 100,
        });
        if coalesce == "off" {
            // Those that had joined before may still be answered; then no more are.
            let (mut joined, mut off) = (count("joined"), count("alone_off"));
            wait::until("none to join any more while others travel alone", || {
                if count("alone_off") <= off + 100 {
                    return false;
                }
                let before = std::mem::replace(&mut joined, count("joined"));
                off = count("alone_off");
                joined == before
            });
        }
    }
    stop.store(true, Ordering::Relaxed);
    let runs: usize = threads.into_iter().map(|thread| thread.join().expect("a client")).sum();
    let counted = counters(&gateway, &database);
    let all: u64 =
        counted.iter().filter(|(name, _)| name.starts_with("alone_")).map(|(_, n)| n).sum();
    // Those in flight at a switch may be counted as neither.
    let neither = 6 * CLIENTS as u64;
    assert!(all + counted["joined"] + neither >= runs as u64, "{runs} runs: {counted:?}");
}

#[test]
fn the_console_and_the_connection_tell_the_same() {
    let mut crowd = Crowd::start(8, TABLE, |config| config);
    let batches: Vec<Batch> =
        (0..8).map(|id| Batch::new().query(&format!("select n from t where id = {id}"))).collect();
    crowd.learn(&batches[1], "batch");
    assert!(crowd.gateway.show("coalesce").len() == 1);
    for _ in 0..4 {
        crowd.together_by("batch", &batches);
    }
    let queries = crowd.gateway.show("queries");
    let text = "select n from t where id = ?";
    let row = queries.iter().find(|row| row["query"] == text).expect("a row of the shape");
    let number = |name: &str| row[name].parse::<f64>().expect("a number");
    assert!(number("joined") >= 32.0 && number("prepared") >= 32.0, "{row:?}");
    assert!(number("calls") >= number("joined") + 5.0, "{row:?}");
    assert!(number("depth") >= 3.0, "{row:?}");
    assert_eq!((row["way"].as_str(), row["why"].as_str()), ("batch", "nothing stands against it"));
    let told = explained(&mut crowd.clients[5]);
    let expected = [
        "Statement: select n from t where id = ?",
        "Way: batch, with 7 others",
        "Why: nothing stands against it",
        "Sent as: prepared statement",
    ];
    assert_eq!(told[..4], expected);
    // Asking is no statement itself.
    assert_eq!(explained(&mut crowd.clients[5]), told);
    assert!(!queries.iter().any(|row| row["query"].contains("explain last")), "{queries:?}");
    let mut fresh = crowd.gateway.client(&crowd.database);
    assert_eq!(explained(&mut fresh), ["No statement has been run on this connection."]);
    // Of several statements in one text nothing is known but that.
    crowd.clients[5].run("select 1; select 2");
    let told = explained(&mut crowd.clients[5]);
    assert_eq!(told[0], "Statement: one whose shape is not followed");
    assert_eq!(told[2], "Why: it is not one plain statement");
    let mut direct =
        WireClient::login(&cluster().address(), APP, APP_PASSWORD, &crowd.database.name);
    assert_eq!(direct.error("explain last statement").code, "42601");
}
