//! Configurations, snapshots and a process for tests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use backend::login::Credential;
use cache::mirror;
use cache::mirror::held::MirrorInfo;
use cache::recipe::{Recipe, TableDeps};
use sql::procedure::{Argument, Definition, Mode};
use tokio::sync::mpsc;

use super::{Condition, MirrorMemory, Pending, Process, SetRefused};
use crate::config::{Config, MirrorDefinition, PoolConfig};
use crate::control::caches::Registry;
use crate::control::messages::{Shutdown, ToWorker};
use crate::control::mirrors::{self, Unfit};
use crate::control::{spots, tally};
use crate::export::Counts;
use crate::hosts::Role;
use crate::link::Ends;
use crate::logging::Happening;
use crate::procedures::{Known, Procedure, Procedures};
use crate::route::Cacheable;
use crate::stream::{Standing, PUBLICATION};
use crate::worker::redis::Snapshot;
use crate::worker::snapshot::{ConnectionSnapshot, PoolSnapshot, Totals, WorkerSnapshot};

/// Databases `app` and `reports`, no wildcard, the user `web`.
const CONFIG: &str = r#"
[auth]
method = "trust"
admin_users = ["root"]
stats_users = ["watch"]
[databases.app]
url = "postgres://db.example:5432"
[databases.reports]
url = "postgres://reader@replica:5432/reports_v2"
mode = "session"
pool_size = 5
max_server_connections = 9
[users.web]
pool_size = 7
"#;

pub fn config() -> Config {
    config_and("")
}

/// [`config`] with more sections.
pub fn config_and(more: &str) -> Config {
    match Config::from_text(&format!("{CONFIG}{more}")) {
        Ok(config) => config,
        Err(report) => panic!("{report:?}"),
    }
}

/// A database that takes what no other name matches.
pub const WILDCARD: &str = "[databases.\"*\"]\nurl = \"postgres://anywhere:5432\"\n";

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
        listeners: 0,
        totals: Totals::default(),
        failing: None,
        share: None,
        shortage: None,
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
    pub redis: Mutex<Option<Snapshot>>,
    pub caches: Registry,
    pub streams: Mutex<Vec<Standing>>,
    pub hosts: Mutex<Vec<spots::Standing>>,
    pub pins: mirrors::Registry,
    /// With their databases.
    pub mirrors: Mutex<Vec<(String, MirrorInfo)>>,
    pub procedures: Procedures,
    workers: Vec<mpsc::UnboundedSender<ToWorker>>,
}

/// Messages to one worker.
pub type Inbox = mpsc::UnboundedReceiver<ToWorker>;

impl Fake {
    /// With the receiving end of each worker.
    pub fn new(config: Config, workers: usize) -> (Arc<Fake>, Vec<Inbox>) {
        let (senders, inboxes) = (0..workers).map(|_| mpsc::unbounded_channel()).unzip();
        let fake = Fake {
            condition: Mutex::new(Condition { listening: true, stopping: false }),
            shutdowns: Mutex::default(),
            reload: Mutex::new(Ok(Vec::new())),
            redis: Mutex::default(),
            caches: Registry::default(),
            streams: Mutex::default(),
            hosts: Mutex::default(),
            pins: mirrors::Registry::default(),
            mirrors: Mutex::default(),
            procedures: Procedures::default(),
            workers: senders,
            config: Arc::new(config),
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

    fn set<'a>(
        &'a self,
        name: &'a str,
        value: &'a str,
    ) -> Pending<'a, Result<Vec<String>, SetRefused>> {
        let set = crate::config::set(&self.config, name, value);
        Box::pin(async move { set.map(|_| Vec::new()).map_err(SetRefused::from) })
    }

    fn shutdown(&self, how: Shutdown) {
        self.shutdowns.lock().expect("not poisoned").push(how);
    }

    fn condition(&self) -> Condition {
        *self.condition.lock().expect("not poisoned")
    }

    fn redis(&self, _clients: bool) -> Option<Snapshot> {
        self.redis.lock().expect("not poisoned").clone()
    }

    fn caches(&self) -> &Registry {
        &self.caches
    }

    fn kept(&self) -> cache::store::Standing {
        cache::store::Standing { entries: 7, bytes: 7_000, limit: 9_000, evicted: 3 }
    }

    fn pins(&self) -> &mirrors::Registry {
        &self.pins
    }

    fn mirrors(&self, database: &str) -> Vec<MirrorInfo> {
        let mut all = self.mirrors.lock().expect("not poisoned").clone();
        all.retain(|(at, _)| at == database);
        all.into_iter().map(|(_, info)| info).collect()
    }

    fn mirror_memory(&self) -> MirrorMemory {
        MirrorMemory { used: 5_000, limit: self.config.cache.mirror_memory }
    }

    /// Only `t`, table 7 of schema `public` with column `a`, is there, and catalogues of `reports`
    /// can't be asked.
    fn judge_mirror<'a>(
        &'a self,
        database: &'a str,
        wanted: &'a MirrorDefinition,
    ) -> Pending<'a, Result<Result<mirror::definition::Definition, Unfit>, String>> {
        let judged = match wanted.table.name.as_str() {
            _ if database == "reports" => Err("no route to host".to_owned()),
            "t" => Ok(Ok(mirror::definition::Definition {
                oid: 7,
                filenode: 7,
                schema: "public".to_owned(),
                name: "t".to_owned(),
                columns: Vec::new(),
                identity: Vec::new(),
            })),
            _ => {
                let message = format!("there is no table {}", wanted.table);
                Ok(Err(Unfit::new("42P01", message).hint("Say its schema.")))
            }
        };
        Box::pin(async move { judged })
    }

    fn hosts(&self) -> Vec<spots::Standing> {
        self.hosts.lock().expect("not poisoned").clone()
    }

    fn traces(&self) -> Option<Counts> {
        None
    }

    fn events(&self) -> Vec<Happening> {
        vec![happening("app"), happening("reports")]
    }

    fn look_ups(&self) -> Vec<tally::Standing> {
        vec![look_ups("app"), look_ups("reports")]
    }

    fn streams(&self) -> Vec<Standing> {
        self.streams.lock().expect("not poisoned").clone()
    }

    /// Only what reads `t`, table 7, can be cached, and catalogues of `reports` can't be asked.
    fn judge_cache<'a>(
        &'a self,
        config: &'a PoolConfig,
        _proven: Option<Credential>,
        text: &'a str,
    ) -> Pending<'a, Result<Result<Arc<Cacheable>, String>, String>> {
        let judged = match text.contains("from t") {
            _ if config.database == "reports" => Err("no route to host".to_owned()),
            true => Ok(Ok(Arc::new(cacheable(&config.user)))),
            false => Ok(Err("function now() is not immutable".to_owned())),
        };
        Box::pin(async move { judged })
    }

    fn check_password<'a>(&'a self, user: &'a str, password: &'a str) -> Pending<'a, bool> {
        Box::pin(async move {
            let secret = self.config.secret(user);
            secret.is_some_and(|secret| secret.check_plain(user, password.as_bytes()))
        })
    }

    fn procedures(&self) -> &Procedures {
        &self.procedures
    }

    /// Those that are known, and catalogues of `reports` can't be asked.
    fn examine_procedure<'a>(
        &'a self,
        config: &'a PoolConfig,
        _proven: Option<Credential>,
        schema: Option<&'a str>,
        name: &'a str,
    ) -> Pending<'a, Result<Vec<Arc<Procedure>>, String>> {
        let title = format!("{}.{name}", schema.unwrap_or("public"));
        let mut found = self.procedures.list();
        found.retain(|one| one.database == config.database && one.title == title);
        let answer = match config.database == "reports" {
            true => Err("no route to host".to_owned()),
            false => Ok(found),
        };
        Box::pin(async move { answer })
    }
}

/// A worker that answers nothing but snapshots, with this one.
pub fn answer_snapshots(mut inbox: Inbox, snapshot: WorkerSnapshot) {
    tokio::spawn(async move {
        while let Some(message) = inbox.recv().await {
            if let ToWorker::Snapshot { reply, .. } = message {
                let _ = reply.send(Box::new(snapshot.clone()));
            }
        }
    });
}

/// A stream that is being connected.
pub fn stream(database: &str) -> Standing {
    Standing::new(database, PUBLICATION)
}

/// A standby that is behind, and was just banned.
pub fn host(database: &str) -> spots::Standing {
    spots::Standing {
        database: database.to_owned(),
        host: "db2".to_owned(),
        port: 5433,
        address: Some(([10, 0, 0, 7], 5433).into()),
        role: Some(Role::Standby),
        banned_until: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(60)),
        why: "no answer within 5000 ms".to_owned(),
        connections: 3,
        lag_bytes: Some(4_096),
        lag: Some(Duration::from_millis(1_500)),
        position: 0x1_0000_00a0,
        probed: Some(SystemTime::UNIX_EPOCH),
        probe_took: Duration::from_micros(800),
        probes: 9,
        failed_probes: 2,
        bans: 1,
    }
}

/// Look-ups of users, of which one has failed.
/// Twice, ten seconds apart.
pub fn happening(database: &str) -> Happening {
    let first = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_183_510);
    Happening {
        event: "client_refused".to_owned(),
        level: tracing::Level::WARN,
        database: Some(database.to_owned()),
        sqlstate: Some("53300".to_owned()),
        count: 2,
        first,
        last: first + Duration::from_secs(10),
        detail: "no room".to_owned(),
    }
}

pub fn look_ups(database: &str) -> tally::Standing {
    tally::Standing {
        database: database.to_owned(),
        user: "looker".to_owned(),
        place: Some("users".to_owned()),
        cache: Duration::from_secs(5),
        tally: tally::Tally { asked: 7, known: 3, failed: 1, error: Some("away".to_owned()) },
    }
}

/// The mirror of table 7.
pub fn mirror(state: mirror::held::State) -> MirrorInfo {
    MirrorInfo {
        oid: 7,
        schema: "public".to_owned(),
        name: "t".to_owned(),
        columns: vec!["a".to_owned(), "b".to_owned()],
        state,
        pinned: true,
        rows: 3,
        bytes: 64,
        indexes: vec!["a".to_owned()],
    }
}

/// What reads every row of table 7.
fn cacheable(user: &str) -> Cacheable {
    let tables = vec![TableDeps { oid: 7, restriction: None }];
    let lines = vec![format!("table public.t, as {user}: every row")];
    let mirror = Err("it has no mirror".to_owned());
    Cacheable { recipe: Recipe { tables }, settings: false, slots: Vec::new(), lines, mirror }
}

/// A procedure `(p_w integer, INOUT p_cw integer)` of schema `public`, whose body is not understood.
pub fn procedure(procedures: &Procedures, database: &str, oid: u32, name: &str) -> Arc<Procedure> {
    let known = Known {
        oid,
        definition: definition(name),
        types: vec![23, 23],
        comment: None,
        body: Err("written in C".to_owned()),
    };
    procedures.learn(database, known).expect("room")
}

pub fn definition(name: &str) -> Definition {
    let argument = |name: &str, mode| Argument {
        name: name.to_owned(),
        type_name: "integer".to_owned(),
        mode,
    };
    Definition {
        schema: "public".to_owned(),
        name: name.to_owned(),
        language: "plpgsql".to_owned(),
        arguments: vec![argument("p_w", Mode::In), argument("p_cw", Mode::InOut)],
        is_procedure: true,
        ..Definition::default()
    }
}
