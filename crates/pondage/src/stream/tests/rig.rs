//! A PostgreSQL with `wal_level = logical` and a stream from it.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use wire::pg::auth::Secret;
use wire::pg::replication::Lsn;

use super::mirror::{Mirror, Seen};
use crate::config::{Host, PoolConfig, Upstream};
use crate::control::dial::Dialer;
use crate::control::tests::server::{no_tls, pool};
use crate::demo::cluster::Cluster;
use crate::stream::{Options, Standing, State, Streams, Tap};

/// Long enough for a loaded machine with two cores.
pub const DEADLINE: Duration = Duration::from_secs(30);

pub struct Rig {
    pub cluster: Cluster,
    /// The superuser's session.
    pub sql: Client,
    pub streams: Streams,
}

/// A database that is followed, and what was told of it.
pub struct Followed {
    pub tap: Tap,
    pub mirror: Mirror,
}

impl Rig {
    pub async fn start(settings: &[&str]) -> Rig {
        let base = ["wal_level=logical", "max_prepared_transactions=5", "synchronous_commit=on"];
        let settings = [&base[..], settings].concat();
        let cluster = Cluster::start(&settings, &AtomicBool::new(false)).expect("a cluster");
        let sql = connect(&cluster, "postgres").await;
        for text in
            ["CREATE ROLE app LOGIN REPLICATION PASSWORD 'pencil'", "CREATE DATABASE app OWNER app"]
        {
            sql.batch_execute(text).await.expect("a database");
        }
        let sql = connect(&cluster, "app").await;
        let streams = Streams::start(Arc::new(Dialer::default())).expect("a thread");
        Rig { cluster, sql, streams }
    }

    pub async fn run(&self, text: &str) {
        self.sql.batch_execute(text).await.unwrap_or_else(|e| panic!("{text}: {e:?}"));
    }

    /// As the owner of the database.
    pub async fn app(&self, text: &str) {
        self.run("SET ROLE app").await;
        let done = self.sql.batch_execute(text).await;
        self.run("RESET ROLE").await;
        done.unwrap_or_else(|e| panic!("{text}: {e:?}"));
    }

    pub async fn rows(&self, text: &str) -> Vec<Vec<Option<String>>> {
        rows(&self.sql, text).await
    }

    pub async fn one(&self, text: &str) -> String {
        self.rows(text).await[0][0].clone().unwrap_or_default()
    }

    pub fn config(&self, user: &str) -> PoolConfig {
        pool(Upstream {
            host: Host::Tcp("127.0.0.1".to_owned()),
            port: self.cluster.port(),
            database: "app".to_owned(),
            user: user.to_owned(),
            password: Some(Secret::Plain("pencil".to_owned())),
            tls: no_tls(),
            protocol: crate::config::ServerProtocol::V3_0,
            connect_query: None,
            application_name: None,
            several: crate::config::Several::default(),
        })
    }

    pub fn follow_as(&self, user: &str, options: Options) -> Followed {
        let mirror = Mirror::default();
        let config = Arc::new(self.config(user));
        let tap = self.streams.follow(config, None, options, Box::new(mirror.clone()));
        Followed { tap, mirror }
    }

    /// Follows, with looks that are not far apart, and waits until it does.
    pub async fn follow(&self) -> Followed {
        let followed = self.follow_as("app", options());
        followed.begun(1).await;
        followed
    }

    /// Waits until everything that is committed now has been told.
    pub async fn told(&self, followed: &Followed) {
        // The log up to here is flushed by a commit.
        self.run("SELECT pg_logical_emit_message(true, 'flush', '')").await;
        let here: Lsn = self.one("SELECT pg_current_wal_lsn()").await.parse().expect("an LSN");
        followed.tap.ping();
        until("the stream", || followed.mirror.look(|seen| seen.progress >= here.0)).await;
    }
}

impl Rig {
    /// Waits until a look is over that has begun after this. (The first may have begun before.)
    pub async fn looked(&self, followed: &Followed) {
        for _ in 0..2 {
            // It is told how far the log was at its end.
            self.run("SELECT pg_logical_emit_message(true, 'look', '')").await;
            let here: Lsn = self.one("SELECT pg_current_wal_lsn()").await.parse().expect("an LSN");
            until("a look", || followed.tap.standing().server_lsn >= here.0).await;
        }
    }
}

pub fn options() -> Options {
    Options { poll: Duration::from_millis(100), ..Options::default() }
}

impl Followed {
    /// Waits until a stream has begun that many times.
    pub async fn begun(&self, times: usize) {
        let begun = |seen: &Seen| seen.begun >= times && seen.following;
        until(&format!("{times} beginnings"), || {
            let standing = self.tap.standing();
            if let State::Refused { missing, .. } = &standing.state {
                panic!("{missing:?}");
            }
            self.mirror.look(begun) && standing.state == State::Following
        })
        .await;
    }

    /// Waits for a state.
    pub async fn state(&self, what: &str, is: impl Fn(&State) -> bool) -> Standing {
        until(what, || is(&self.tap.standing().state)).await;
        self.tap.standing()
    }
}

pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < end, "waited {DEADLINE:?} for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub async fn connect(cluster: &Cluster, database: &str) -> Client {
    let (client, connection) = cluster.admin(database).connect(NoTls).await.expect("connect");
    tokio::spawn(connection);
    client
}

pub async fn rows(sql: &Client, text: &str) -> Vec<Vec<Option<String>>> {
    let messages = sql.simple_query(text).await.unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect())
        }
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}
