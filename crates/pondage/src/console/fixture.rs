//! Configurations, snapshots and a process for tests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;

use super::{Condition, Pending, Process};
use crate::config::{
    Auth, AuthMethod, Config, Database, Host, Listen, ListenTls, ListenTlsMode, LogFormat, Origin,
    PoolMode, PoolOptions, Runtime, ServerTls, ServerTlsMode, Telemetry, UpstreamOptions, User,
};
use crate::control::messages::{Shutdown, ToWorker};
use crate::link::Ends;
use crate::worker::snapshot::{ConnectionSnapshot, PoolSnapshot, Totals, WorkerSnapshot};

pub fn database(host: &str, dbname: Option<&str>) -> Database {
    Database {
        upstream: UpstreamOptions {
            host: Host::Tcp(host.to_owned()),
            port: 5432,
            dbname: dbname.map(str::to_owned),
            user: None,
            password: None,
            tls: ServerTls { mode: ServerTlsMode::Disable, ca: None, cert: None, key: None },
            connect_query: None,
            application_name: None,
        },
        options: PoolOptions::default(),
        users: BTreeMap::new(),
        max_client_connections: None,
        max_server_connections: None,
        disabled: false,
    }
}

pub fn user(pool_size: Option<u32>) -> User {
    User {
        secret: None,
        options: PoolOptions { pool_size, ..PoolOptions::default() },
        max_client_connections: None,
        max_server_connections: None,
    }
}

/// Databases `app` and `reports`, no wildcard, the user `web`.
pub fn config() -> Config {
    let mut reports = database("replica", Some("reports_v2"));
    reports.upstream.user = Some("reader".to_owned());
    reports.options.mode = Some(PoolMode::Session);
    reports.options.pool_size = Some(5);
    reports.max_server_connections = Some(9);
    Config {
        listen: Listen {
            postgres: Vec::new(),
            http: None,
            tls: ListenTls { mode: ListenTlsMode::Disable, cert: None, key: None, client_ca: None },
            unix_socket_mode: 0o777,
            backlog: 128,
        },
        runtime: Runtime {
            workers: 2,
            max_clients: 100,
            shutdown_timeout: Duration::from_secs(25),
            login_timeout: Duration::from_secs(10),
            pid_file: None,
        },
        auth: Auth {
            method: AuthMethod::Trust,
            file_users: BTreeMap::new(),
            users_file: None,
            query: None,
            admin_users: vec!["root".to_owned()],
            stats_users: vec!["watch".to_owned()],
        },
        pool: PoolOptions::default(),
        databases: BTreeMap::from([
            ("app".to_owned(), database("db.example", None)),
            ("reports".to_owned(), reports),
        ]),
        users: BTreeMap::from([("web".to_owned(), user(Some(7)))]),
        telemetry: Telemetry {
            log_level: "info".to_owned(),
            log_format: LogFormat::Auto,
            log_connections: false,
            log_disconnections: false,
            stats_period: Duration::from_secs(60),
        },
        origin: Origin::File(PathBuf::from("/etc/pondage.toml")),
    }
}

/// An empty pool of a configured database.
pub fn pool(config: &Config, database: &str, user: &str) -> PoolSnapshot {
    let settings = config.pool(database, user).expect("a configured database");
    PoolSnapshot {
        database: database.to_owned(),
        user: user.to_owned(),
        mode: settings.mode,
        config: settings,
        cl_active: 0,
        cl_waiting: 0,
        cl_active_cancel_req: 0,
        cl_waiting_cancel_req: 0,
        sv_active: 0,
        sv_active_cancel: 0,
        sv_being_canceled: 0,
        sv_idle: 0,
        sv_used: 0,
        sv_tested: 0,
        sv_login: 0,
        maxwait: Duration::ZERO,
        paused: false,
        disabled: false,
        totals: Totals::default(),
        failing: None,
    }
}

/// Connected on 2026-11-20 at 14:05:10 UTC.
pub fn connection(slot: u32, id: u64, state: &'static str) -> ConnectionSnapshot {
    let connected = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_183_510);
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    ConnectionSnapshot {
        slot,
        generation: 3,
        state,
        user: "web".to_owned(),
        database: "app".to_owned(),
        replication: "none",
        ends: Ends::Tcp { remote: address("10.0.0.9:40000"), local: address("10.0.0.1:6432") },
        connect_time: connected,
        request_time: None,
        wait: Duration::ZERO,
        close_needed: false,
        link: None,
        remote_pid: None,
        tls: String::new(),
        application_name: "nightly".to_owned(),
        prepared_statements: 2,
        id,
    }
}

/// A process whose workers are a script.
pub struct Fake {
    pub config: Arc<Config>,
    pub condition: Mutex<Condition>,
    pub shutdowns: Mutex<Vec<Shutdown>>,
    pub reload: Mutex<Result<Vec<String>, String>>,
    workers: Vec<mpsc::UnboundedSender<ToWorker>>,
}

/// Messages to one worker.
pub type Inbox = mpsc::UnboundedReceiver<ToWorker>;

impl Fake {
    /// With the receiving end of each worker.
    pub fn new(config: Config, workers: usize) -> (Arc<Fake>, Vec<Inbox>) {
        let (senders, inboxes) = (0..workers).map(|_| mpsc::unbounded_channel()).unzip();
        let fake = Fake {
            config: Arc::new(config),
            condition: Mutex::new(Condition { listening: true, stopping: false }),
            shutdowns: Mutex::default(),
            reload: Mutex::new(Ok(Vec::new())),
            workers: senders,
        };
        (Arc::new(fake), inboxes)
    }
}

impl Process for Fake {
    fn config(&self) -> Arc<Config> {
        self.config.clone()
    }

    fn workers(&self) -> u8 {
        self.workers.len() as u8
    }

    fn send(&self, worker: u8, message: ToWorker) -> bool {
        self.workers[usize::from(worker)].send(message).is_ok()
    }

    fn reload(&self) -> Pending<'_, Result<Vec<String>, String>> {
        let answer = self.reload.lock().expect("not poisoned").clone();
        Box::pin(async move { answer })
    }

    fn shutdown(&self, how: Shutdown) {
        self.shutdowns.lock().expect("not poisoned").push(how);
    }

    fn condition(&self) -> Condition {
        *self.condition.lock().expect("not poisoned")
    }
}

/// A worker that answers nothing but snapshots, with this one.
pub fn answer_snapshots(mut inbox: Inbox, snapshot: WorkerSnapshot) {
    tokio::spawn(async move {
        while let Some(message) = inbox.recv().await {
            if let ToWorker::Snapshot { reply } = message {
                let _ = reply.send(Box::new(snapshot.clone()));
            }
        }
    });
}
