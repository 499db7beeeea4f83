//! Unmodified programs and drivers, many clients at once.

use super::crowd::{counters, learn, patient};
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
