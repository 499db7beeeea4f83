//! Sharing a server makes no wait that separate connections would not have: C holds a lock, A
//! waits for it, B stands behind A on the same server, and C waits for B before it commits.

use wire::pg::backend::tag;

use super::crowd::{counters, explained, learn, patient, Crowd};
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};
use crate::traps::batch::Batch;
use crate::traps::servers::direct;

const TABLES: &str = "
    create table locked(id int primary key, n int);
    insert into locked select g, 0 from generate_series(1, 100) g;
    create table free(id int primary key, n int);
    insert into free select g, 0 from generate_series(1, 100) g;
";

/// Three servers; statements that stall are found out by the default limit.
struct Knot {
    holders: [WireClient; 2],
    c: WireClient,
    a: WireClient,
    b: WireClient,
    gateway: Gateway,
    database: Database,
}

impl Knot {
    fn start(settings: impl FnOnce(Config) -> Config) -> Knot {
        let database = cluster().database();
        direct(&database).run(TABLES);
        let config = patient(&database).set("pool.pool_size", 3).set("pool.coalesce_stall", "20ms");
        let gateway = Gateway::start(settings(config));
        let [first, second, c, a, b] = [(); 5].map(|()| gateway.client(&database));
        Knot { holders: [first, second], c, a, b, gateway, database }
    }

    /// `lock` is run by C in a transaction on one server; A's and B's statements leave together
    /// on another one, A's first; the third comes free then. C commits after B has been answered.
    fn tie(&mut self, lock: &str, a: &Batch, b: &Batch) -> [String; 2] {
        for client in self.holders.iter_mut().chain([&mut self.c]) {
            client.run("begin; select 1");
            client.one("select pg_backend_pid()");
        }
        self.c.run(lock);
        a.to(&mut self.a);
        self.gathered(1);
        b.to(&mut self.b);
        self.gathered(2);
        let before = counters(&self.gateway, &self.database);
        self.holders[0].run("commit");
        wait::until("A and B to leave together", || {
            let now = counters(&self.gateway, &self.database);
            now["trips"] > before["trips"]
        });
        self.holders[1].run("commit");
        // With the deadline of every answer: B is not kept by A.
        let answered = self.b.until_ready();
        let done = |answer: Vec<crate::kit::wireclient::Message>| {
            let complete = answer.iter().find(|message| message.tag == tag::COMMAND_COMPLETE);
            complete.unwrap_or_else(|| panic!("no success: {answer:?}")).command_tag()
        };
        let b = done(answered);
        self.a.expect_silence(std::time::Duration::from_millis(1));
        self.c.run("commit");
        [done(self.a.until_ready()), b]
    }

    fn gathered(&self, count: usize) {
        wait::until("statements that wait for the held server", || {
            let pools = self.gateway.show("pools");
            let pool = pools.iter().find(|row| row["database"] == self.database.name);
            pool.expect("the pool")["cl_waiting"] == count.to_string()
        });
    }
}

fn reads_behind_a_locked_table(coalesce: &str, form: fn(&str) -> Batch) {
    let mut knot = Knot::start(|config| config.set("pool.coalesce", coalesce));
    let b = form("select n from free where id = 1");
    learn(&mut knot.b, &b, coalesce);
    for round in 0..3 {
        // Another shape each time: one that has waited so long twice travels alone.
        let a = form(&format!("select n as n{round} from locked where id = 1"));
        learn(&mut knot.a, &a, coalesce);
        let lock = "lock table locked in access exclusive mode";
        assert_eq!(knot.tie(lock, &a, &b), ["SELECT 1", "SELECT 1"]);
    }
    let counted = counters(&knot.gateway, &knot.database);
    assert!(counted["stalled"] >= 3, "B was behind A: {counted:?}");
}

fn simple(sql: &str) -> Batch {
    Batch::new().query(sql)
}

fn extended(sql: &str) -> Batch {
    Batch::new().parse("", sql).bind("", &[]).describe_portal("").execute().sync()
}

#[test]
fn a_read_behind_one_that_waits_for_a_table_is_answered_in_a_pipeline() {
    reads_behind_a_locked_table("pipeline", simple);
    reads_behind_a_locked_table("pipeline", extended);
}

#[test]
fn a_read_behind_one_that_waits_for_a_table_is_answered_in_a_batch() {
    reads_behind_a_locked_table("batch", simple);
    reads_behind_a_locked_table("batch", extended);
}

fn writes_behind_a_locked_row(form: fn(&str) -> Batch) {
    let mut knot = Knot::start(|config| config.set("pool.coalesce_writes", true));
    let a = form("update locked set n = n + 1 where id = 1");
    let b = form("update free set n = n + 1 where id = 1");
    learn(&mut knot.a, &a, "train");
    learn(&mut knot.b, &b, "train");
    let sums = "select (select n from locked where id = 1), (select n from free where id = 1)";
    let number = |row: &[Option<String>]| -> Vec<i64> {
        row.iter().flatten().map(|text| text.parse().expect("a number")).collect()
    };
    let mut straight = direct(&knot.database);
    let before = number(&straight.rows(sums)[0]);
    for _ in 0..3 {
        let lock = "update locked set n = n + 1000000 where id = 1";
        assert_eq!(knot.tie(lock, &a, &b), ["UPDATE 1", "UPDATE 1"]);
        let told = explained(&mut knot.b);
        assert!(told[1].starts_with("Way: train"), "{told:?}");
        // It was on a train of its own, or gave up its place on one with B.
        let told = explained(&mut knot.a);
        let again = told[1] == "Way: alone" && told[2].contains("sent again");
        assert!(again || told[1] == "Way: train, with no others at that moment", "{told:?}");
    }
    let after = number(&straight.rows(sums)[0]);
    assert_eq!([after[0] - before[0], after[1] - before[1]], [3_000_003, 3], "each exactly once");
}

#[test]
fn a_write_behind_one_that_waits_for_a_row_is_answered_in_a_train() {
    writes_behind_a_locked_row(simple);
    writes_behind_a_locked_row(extended);
}

/// A client of other settings than everybody else's.
fn odd_one(crowd: &Crowd, number: usize) -> WireClient {
    let name = format!("odd {number}");
    let database = crowd.database.name.as_str();
    let parameters = [("user", APP), ("database", database), ("application_name", &name)];
    WireClient::login_with(&crowd.gateway.address(), APP_PASSWORD, &parameters)
}

/// Symptom: with clients of other settings around, those of a group waited for more than 20 s.
/// Cause: a group has one place in the queue of the pool. Who stands there took a server of other
/// settings for itself, and the next of the group went to the end of the queue. Fix: it has the
/// place of its arrival.
#[test]
fn a_group_is_not_overtaken_by_clients_of_other_settings_that_came_later() {
    let mut crowd = Crowd::start(8, "create table log(n int)", |config| config);
    let read = Batch::new().query("select count(*) from log");
    crowd.learn(&read, "batch");
    let mut odd: Vec<WireClient> = (0..4).map(|number| odd_one(&crowd, number)).collect();
    let mut holder = odd_one(&crowd, 99);
    for round in 0..5 {
        holder.run("begin; select 1");
        holder.one("select pg_backend_pid()");
        crowd.clients.iter_mut().for_each(|client| read.to(client));
        crowd.gathered(8);
        for client in &mut odd {
            Batch::new().query("insert into log values (1)").to(client);
        }
        crowd.gathered(12);
        holder.run("commit");
        for client in &mut crowd.clients {
            let answer = client.until_ready();
            let seen = (round * odd.len()).to_string();
            assert_eq!(answer[1].values(), [Some(seen)], "they came before the writes");
        }
        odd.iter_mut().for_each(|client| drop(client.until_ready()));
    }
    let counted = crowd.counters();
    assert!(counted["alone_settings"] >= 5 && counted["joined"] >= 5 * 7, "{counted:?}");
}
