//! A gateway that caches, its database, and whether a statement was answered from the cache.

use std::time::{Duration, Instant};

use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

/// Rows of text.
pub type Rows = Vec<Vec<Option<String>>>;

/// What is changed beside the gateway in the catalogues is known to it within this time, and what
/// a debug build on a busy machine takes beside.
pub const KNOWN_WITHIN: Duration = Duration::from_secs(8);

/// So often a statement is repeated that must never be answered from the cache.
const REPEATED: usize = 40;

/// See the module's documentation.
pub struct Place {
    pub gateway: Gateway,
    pub database: Database,
    cluster: &'static Cluster,
}

impl Place {
    /// In the shared cluster, with `set_up` run by the owner.
    #[track_caller]
    pub fn start(set_up: &str) -> Place {
        Place::start_with(set_up, |config| config)
    }

    #[track_caller]
    pub fn start_with(set_up: &str, settings: impl FnOnce(Config) -> Config) -> Place {
        Place::start_in(cluster(), cluster().port, set_up, settings)
    }

    /// In a cluster of its own, with these lines of postgresql.conf. It stays until the process of
    /// the tests ends.
    #[track_caller]
    pub fn start_alone(lines: &[&str], set_up: &str) -> Place {
        Place::start_alone_with(lines, set_up, |config| config)
    }

    #[track_caller]
    pub fn start_alone_with(
        lines: &[&str],
        set_up: &str,
        settings: impl FnOnce(Config) -> Config,
    ) -> Place {
        let alone: &Cluster = Box::leak(Box::new(Cluster::start("caching", lines)));
        Place::start_in(alone, alone.port, set_up, settings)
    }

    /// In this cluster, which the gateway reaches at another port.
    #[track_caller]
    pub fn start_behind(cluster: &'static Cluster, port: u16, set_up: &str) -> Place {
        Place::start_in(cluster, port, set_up, |config| config)
    }

    #[track_caller]
    fn start_in(
        cluster: &'static Cluster,
        at: u16,
        set_up: &str,
        settings: impl FnOnce(Config) -> Config,
    ) -> Place {
        let database = cluster.database();
        let port = format!("databases.{}.port", database.name);
        let config = Config::of(&database)
            .set(&port, i64::from(at))
            .set("cache.mode", "auto")
            .set("cache.user", APP)
            .set("auth.admin_users", ["admin", APP])
            // A stream that is slow for a moment is no miss.
            .set("cache.wait", "1s")
            .set("users.plain.password", crate::kit::cluster::OTHER_PASSWORD);
        let place = |gateway| Place { gateway, database: database.clone(), cluster };
        direct(cluster, &database).run("create table control(id int primary key)");
        if !set_up.is_empty() {
            direct(cluster, &database).run(set_up);
        }
        let place = place(Gateway::start(settings(config)));
        // From here on the stream is there.
        place.client().warm("select count(*) from control");
        place
    }

    /// A client of the gateway.
    #[track_caller]
    pub fn client(&self) -> WireClient {
        self.gateway.client(&self.database)
    }

    /// Another role of the gateway's, which owns nothing.
    #[track_caller]
    pub fn plain(&self) -> WireClient {
        let password = crate::kit::cluster::OTHER_PASSWORD;
        WireClient::login(&self.gateway.address(), "plain", password, &self.database.name)
    }

    /// Beside the gateway, as the owner.
    #[track_caller]
    pub fn beside(&self) -> WireClient {
        direct(self.cluster, &self.database)
    }

    #[track_caller]
    pub fn superuser(&self) -> WireClient {
        self.cluster.superuser(&self.database.name)
    }

    pub fn cluster(&self) -> &'static Cluster {
        self.cluster
    }

    /// Another server has its database from now on.
    pub fn moves_to(&mut self, cluster: &'static Cluster) {
        self.cluster = cluster;
    }

    /// One of the cache's figures.
    #[track_caller]
    pub fn figure(&self, name: &str) -> u64 {
        self.gateway.figure(&format!("pondage_cache_{name}"))
    }

    /// Behind each of `writes`, made beside the gateway and through it in turns, all `reads` give
    /// what PostgreSQL gives itself. Before each they come from the cache.
    #[track_caller]
    pub fn compares(&self, reads: &[String], writes: &[String]) {
        let (mut client, mut other, mut beside) = (self.client(), self.client(), self.beside());
        for (at, write) in writes.iter().enumerate() {
            // By rounds, so that one read that waits for the stream has waited for all.
            let mut cold: Vec<&String> = reads.iter().collect();
            let warm = wait::within(wait::DEADLINE, || {
                cold.retain(|read| {
                    client.query(read);
                    !client.was_hit()
                });
                cold.is_empty().then_some(())
            });
            assert!(warm.is_some(), "never answered from the cache before {write}: {cold:?}");
            let by = if at % 2 == 0 { &mut beside } else { &mut other };
            by.run(write);
            // From here on it may see nothing older.
            client.run("select random()");
            for read in reads {
                let (got, expected) = (client.query(read), beside.query(read));
                let hit = client.was_hit();
                assert_eq!(got, expected, "{read} behind {write}, hit: {hit}");
            }
        }
    }

    /// Waits until `sql` gives `expected` from the cache. Before, PostgreSQL's new answer and the
    /// kept old one may take turns, where nobody has told the gateway of the change.
    #[track_caller]
    pub fn becomes(&self, client: &mut WireClient, sql: &str, expected: &str) {
        let begun = Instant::now();
        loop {
            let got = client.one(sql);
            if got == expected && client.was_hit() {
                return;
            }
            let late = begun.elapsed();
            assert!(late < KNOWN_WITHIN, "{sql}: still {got} and not {expected} after {late:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let page = self.gateway.page("/metrics").unwrap_or_default();
            let figures = page.lines().filter(|line| line.starts_with("pondage_cache_"));
            eprintln!("--- the cache's figures:\n{}", figures.collect::<Vec<_>>().join("\n"));
        }
    }
}

#[track_caller]
fn direct(cluster: &Cluster, database: &Database) -> WireClient {
    WireClient::login(&cluster.address(), APP, APP_PASSWORD, &database.name)
}

/// Whether answers came from the cache.
pub trait Cached {
    /// Whether the last statement was answered from the cache.
    fn was_hit(&mut self) -> bool;

    /// Repeats a simple query until it is answered from the cache; what it gives then.
    fn warm(&mut self, sql: &str) -> Rows;

    /// Repeats whatever `run` does until it is answered from the cache.
    fn warm_by<T>(&mut self, what: &str, run: impl FnMut(&mut WireClient) -> T) -> T;

    /// Repeats a statement that must not be answered from the cache, ever.
    fn never_hits(&mut self, sql: &str);
}

impl Cached for WireClient {
    #[track_caller]
    fn was_hit(&mut self) -> bool {
        let told = self.rows("explain last statement");
        told.iter().flatten().flatten().any(|line| line.starts_with("Way: cache"))
    }

    #[track_caller]
    fn warm(&mut self, sql: &str) -> Rows {
        self.warm_by(sql, |client| client.rows(sql))
    }

    #[track_caller]
    fn warm_by<T>(&mut self, what: &str, mut run: impl FnMut(&mut WireClient) -> T) -> T {
        let given = wait::within(wait::DEADLINE, || {
            let given = run(self);
            self.was_hit().then_some(given)
        });
        given.unwrap_or_else(|| {
            let told = self.rows("explain last statement");
            let plan = self.query(&format!("explain create cache from {what}"));
            panic!("{what:.200}: never answered from the cache: {told:?}; {plan:?}")
        })
    }

    #[track_caller]
    fn never_hits(&mut self, sql: &str) {
        for _ in 0..REPEATED {
            self.query(sql);
            assert!(!self.was_hit(), "{sql}: answered from the cache");
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}
