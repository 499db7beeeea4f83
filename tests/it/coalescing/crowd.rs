//! Clients whose statements meet, because the test makes them.
//!
//! The pool has one server. While a client holds it in a transaction, the statements of all others
//! gather; when it lets go, they leave as one trip. So who shares with whom is never up to time.

use std::collections::BTreeMap;

use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::wireclient::Message;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};
use crate::traps::batch::Batch;

/// Statements of a shape that have to run alone first are five; then parser and catalogues answer.
pub struct Crowd {
    pub clients: Vec<WireClient>,
    holder: WireClient,
    // After the clients, so that these have gone when the gateway is told to end.
    pub gateway: Gateway,
    pub database: Database,
    cluster: &'static Cluster,
}

/// What keeps time out of it: nothing is too slow to join, nothing stalls.
pub fn patient(database: &Database) -> Config {
    Config::of(database)
        .set("runtime.workers", 1)
        .set("pool.pool_size", 1)
        .set("pool.coalesce_short", "10s")
        .set("pool.coalesce_stall", "10s")
}

impl Crowd {
    /// With `set_up` run in the database by its owner, and more settings than those of [`patient`].
    #[track_caller]
    pub fn start(size: usize, set_up: &str, settings: impl FnOnce(Config) -> Config) -> Crowd {
        Crowd::start_in(cluster(), size, set_up, settings)
    }

    /// In a cluster that is another test's or nobody's.
    #[track_caller]
    pub fn start_in(
        cluster: &'static Cluster,
        size: usize,
        set_up: &str,
        settings: impl FnOnce(Config) -> Config,
    ) -> Crowd {
        let database = cluster.database();
        let port = format!("databases.{}.port", database.name);
        let config = patient(&database).set(&port, i64::from(cluster.port));
        WireClient::login(&cluster.address(), APP, APP_PASSWORD, &database.name).run(set_up);
        let gateway = Gateway::start(settings(config));
        let holder = gateway.client(&database);
        let clients = (0..size).map(|_| gateway.client(&database)).collect();
        Crowd { clients, holder, gateway, database, cluster }
    }

    /// Beside the gateway, as the owner.
    #[track_caller]
    pub fn beside(&self) -> WireClient {
        WireClient::login(&self.cluster.address(), APP, APP_PASSWORD, &self.database.name)
    }

    /// Beside the gateway, as superuser.
    #[track_caller]
    pub fn superuser(&self) -> WireClient {
        self.cluster.superuser(&self.database.name)
    }

    /// Repeats a statement until it may join by this way.
    #[track_caller]
    pub fn learn(&mut self, batch: &Batch, way: &str) {
        learn(&mut self.clients[0], batch, way);
    }

    /// From now on statements gather.
    #[track_caller]
    pub fn hold(&mut self) {
        self.holder.run("begin; select 1");
        self.holder.one("select pg_backend_pid()");
    }

    /// Waits until so many statements have gathered.
    #[track_caller]
    pub fn gathered(&self, count: usize) {
        let mut last = String::new();
        let all = wait::within(wait::DEADLINE, || {
            last = self.pool()["cl_waiting"].clone();
            (last == count.to_string()).then_some(())
        });
        assert!(all.is_some(), "{last} statements have gathered, not {count}");
    }

    /// What has gathered leaves.
    #[track_caller]
    pub fn release(&mut self) {
        self.holder.run("commit");
    }

    /// The first clients send one of these each; all leave together. Returns their answers.
    #[track_caller]
    pub fn together(&mut self, batches: &[Batch]) -> Vec<Vec<Message>> {
        assert!(batches.len() <= self.clients.len(), "{} clients are too few", self.clients.len());
        self.hold();
        for (client, batch) in self.clients.iter_mut().zip(batches) {
            batch.to(client);
        }
        self.gathered(batches.len());
        self.release();
        let clients = self.clients.iter_mut().zip(batches);
        clients.map(|(client, _)| client.until_ready()).collect()
    }

    /// The first clients send one of these each, one after the other; all leave together.
    #[track_caller]
    pub fn leave_together(&mut self, batches: &[Batch]) {
        assert!(batches.len() <= self.clients.len(), "{} clients are too few", self.clients.len());
        self.hold();
        for (at, batch) in batches.iter().enumerate() {
            batch.to(&mut self.clients[at]);
            self.gathered(at + 1);
        }
        self.release();
    }

    /// As [`Crowd::together`], and asserts that one trip took all of them by this way.
    #[track_caller]
    pub fn together_by(&mut self, way: &str, batches: &[Batch]) -> Vec<Vec<Message>> {
        let before = self.counters();
        let answers = self.together(batches);
        let after = self.counters();
        let grown = |name: &str| after[name] - before[name];
        assert_eq!(grown("trips"), 1, "{before:?} {after:?}");
        assert_eq!(grown("joined"), batches.len() as u64, "{before:?} {after:?}");
        let expected = match batches.len() - 1 {
            0 => format!("Way: {way}, with no others at that moment"),
            1 => format!("Way: {way}, with 1 other"),
            others => format!("Way: {way}, with {others} others"),
        };
        for client in &mut self.clients[..batches.len()] {
            let told = explained(client);
            assert_eq!(told[1], expected, "{told:?}");
        }
        answers
    }

    /// SHOW POOLS of the pool.
    #[track_caller]
    pub fn pool(&self) -> BTreeMap<String, String> {
        let mut pools = self.gateway.show("pools");
        pools.retain(|row| row["database"] == self.database.name);
        pools.pop().expect("the pool")
    }

    /// SHOW COALESCE of the pool, the whole numbers.
    #[track_caller]
    pub fn counters(&self) -> BTreeMap<String, u64> {
        counters(&self.gateway, &self.database)
    }
}

#[track_caller]
pub fn counters(gateway: &Gateway, database: &Database) -> BTreeMap<String, u64> {
    let rows = gateway.show("coalesce");
    let row = rows.into_iter().find(|row| row["database"] == database.name).expect("the pool");
    let numbers = row.into_iter();
    numbers.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

/// Repeats a statement until it may join by this way.
#[track_caller]
pub fn learn(client: &mut WireClient, batch: &Batch, way: &str) {
    let mut told = Vec::new();
    let learned = wait::within(wait::DEADLINE, || {
        for _ in 0..5 {
            batch.answer(client);
        }
        told = explained(client);
        told.get(1).is_some_and(|line| line.starts_with(&format!("Way: {way}"))).then_some(())
    });
    let text = String::from_utf8_lossy(&batch.0).into_owned();
    assert!(learned.is_some(), "{text:?} never travelled by {way}: {told:#?}");
}

/// Repeats a statement until parser and catalogues have judged it; it must travel alone then, and
/// did before. Returns the reason.
#[track_caller]
pub fn alone_because(client: &mut WireClient, batch: &Batch) -> String {
    let mut told = Vec::new();
    wait::for_some("a reason to travel alone", || {
        batch.answer(client);
        told = explained(client);
        assert_eq!(told.get(1).map(String::as_str), Some("Way: alone"), "{told:#?}");
        let why = told[2].strip_prefix("Why: ").expect("a reason").to_owned();
        let passing =
            ["it has not been seen often enough", "parser and catalogues have not judged"];
        (!passing.iter().any(|words| why.starts_with(words))).then_some(why)
    })
}

/// The lines of EXPLAIN LAST STATEMENT.
#[track_caller]
pub fn explained(client: &mut WireClient) -> Vec<String> {
    client.rows("explain last statement").into_iter().flatten().flatten().collect()
}
