//! Unmodified programs and drivers, many clients at once.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use super::crowd::{counters, learn, patient};
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, Gateway, Tool};
use crate::traps::batch::Batch;

#[test]
fn pgbench_joins_in_every_protocol() {
    let database = cluster().database();
    let gateway = Gateway::start(patient(&database).set("pool.pool_size", 4));
    Tool::new("pgbench", &gateway, &database).args(["-i", "-s", "1", "-q"]).run();
    // What pgbench sends, so that parser and catalogues have judged it before.
    let mut client = gateway.client(&database);
    let sql = |id: &str| format!("SELECT abalance FROM pgbench_accounts WHERE aid = {id};");
    learn(&mut client, &Batch::new().query(&sql("1")), "batch");
    let batch = Batch::new().parse("", &sql("$1")).bind("", &["1"]).execute().sync();
    learn(&mut client, &batch, "batch");
    for protocol in ["simple", "extended", "prepared"] {
        let before = counters(&gateway, &database);
        let said = Tool::new("pgbench", &gateway, &database)
            .args(["-n", "-S", "-M", protocol, "-c", "30", "-j", "2", "-t", "200"])
            .run();
        assert!(said.contains("transactions actually processed: 6000/6000"), "{said}");
        assert!(said.contains("number of failed transactions: 0"), "{said}");
        let after = counters(&gateway, &database);
        let grown = |name: &str| after[name] - before[name];
        assert!(grown("joined") > 5_900, "{protocol}: {before:?} {after:?}");
        assert!(grown("joined") > grown("trips"), "{protocol}: {before:?} {after:?}");
    }
}

#[test]
fn pgbench_keeps_its_books_with_writes_in_trains() {
    let database = cluster().database();
    let config = patient(&database)
        .set("pool.pool_size", 4)
        .set("pool.coalesce_writes", true)
        .set("pool.coalesce_stall", "20ms");
    let gateway = Gateway::start(config);
    Tool::new("pgbench", &gateway, &database).args(["-i", "-s", "1", "-q"]).run();
    let directory = crate::kit::place::Directory::new("trains");
    let script = directory.path().join("trains.sql");
    let text = "\\set aid random(1, 20)\n\
        update pgbench_accounts set abalance = abalance + 1 where aid = :aid;\n\
        insert into pgbench_history(tid, bid, aid, delta, mtime) values (1, 1, :aid, 1, now());\n\
        select abalance from pgbench_accounts where aid = :aid;\n";
    std::fs::write(&script, text).expect("a file");
    let file = script.display().to_string();
    for protocol in ["simple", "extended", "prepared"] {
        let said = Tool::new("pgbench", &gateway, &database)
            .args(["-n", "-M", protocol, "-c", "20", "-j", "2", "-t", "50", "-f", &file])
            .run();
        assert!(said.contains("transactions actually processed: 1000/1000"), "{said}");
        assert!(said.contains("number of failed transactions: 0"), "{said}");
    }
    let books = "select (select sum(abalance) from pgbench_accounts) || '/' || \
                        (select count(*) from pgbench_history)";
    assert_eq!(cluster().superuser(&database.name).one(books), "3000/3000");
    let counted = counters(&gateway, &database);
    assert!(counted["trained"] > 3_000, "{counted:?}");
}

/// Runs `rounds` of statements with the client's own marks.
async fn ask_again_and_again(client: Client, number: i32, rounds: i32) {
    let prepared = client.prepare("select $1::text, n / $2 from t where n = $3").await.expect("it");
    for round in 0..rounds {
        let mark = format!("client {number}, round {round}");
        let (divisor, n) = (i32::from(round % 10 != 0), (number * 31 + round) % 100);
        match client.query_one(&prepared, &[&mark, &divisor, &n]).await {
            Ok(row) => {
                assert_eq!((row.get::<_, String>(0), row.get::<_, i32>(1)), (mark.clone(), n));
                assert_eq!(divisor, 1);
            }
            Err(error) => {
                assert_eq!(divisor, 0, "{mark}: {error}");
                assert_eq!(error.code(), Some(&SqlState::DIVISION_BY_ZERO), "{mark}");
            }
        }
        let sql = format!("select '{mark}' as mark, n from t where n = {n}");
        let messages = client.simple_query(&sql).await.expect("rows");
        let row = messages.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        assert_eq!(row.expect("a row").get("mark"), Some(mark.as_str()));
    }
}

#[test]
fn many_clients_of_a_driver_join_and_get_their_own_rows() {
    const CLIENTS: i32 = 40;
    const ROUNDS: i32 = 60;
    const LIMIT: Duration = Duration::from_secs(60);
    let database = cluster().database();
    let set_up = "create table t(n int); insert into t select generate_series(0, 99)";
    crate::traps::servers::direct(&database).run(set_up);
    let gateway = Gateway::start(patient(&database).set("pool.pool_size", 3));
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(gateway.port).dbname(&database.name);
    config.user(APP).password(APP_PASSWORD);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let tasks: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let config = config.clone();
                tokio::spawn(async move {
                    let (client, connection) = config.connect(NoTls).await.expect("a connection");
                    tokio::spawn(connection);
                    ask_again_and_again(client, number, ROUNDS).await;
                })
            })
            .collect();
        for task in tasks {
            tokio::time::timeout(LIMIT, task).await.expect("an end in time").expect("a client");
        }
    });
    drop(runtime);
    let counted = counters(&gateway, &database);
    assert!(counted["joined"] > (CLIENTS * ROUNDS) as u64 / 2, "{counted:?}");
    assert!(counted["batched"] > 0, "{counted:?}");
}
