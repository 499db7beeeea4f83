//! The process from start to end: log, doors, workers, control plane, console, HTTP, and the exit
//! code.
//!
//! Everything that can be refused is had before the first worker starts: files of certificates,
//! addresses, the pid file. The databases are not: when they are down clients are told so.

mod doors;
mod handover;
mod held;
pub(crate) mod notify;
mod takeover;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use ::redis::tables::{Identity, Tables};
use rustix::process::{getrlimit, setrlimit, Resource};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::caches::Caches;
use crate::cli::exit;
use crate::config::Config;
use crate::console::operator::Operator;
use crate::console::{Console, Process};
use crate::control::caches::Registry;
use crate::control::messages::{Shutdown, ToControl, ToWorker};
use crate::control::signals::Signals;
use crate::control::{tls, Control};
use crate::export::Outbox;
use crate::http::Site;
use crate::link::Door;
use crate::logging::{self, Logging};
use crate::worker::plane::{Common, Setting};
use crate::worker::{self, redis, Inbox, Listener, Start, WorkerHandle};
use doors::{write_pid_file, Doors, Removed};
use handover::{Handover, House};
use takeover::Takeover;

pub use doors::DoorError;

/// Threads for work that blocks: name look-ups and PBKDF2. Each worker's end is awaited on one
/// more.
const BLOCKING_THREADS_MAX: usize = 16;

/// What the runtime's tasks get to end by themselves.
const RUNTIME_END: Duration = Duration::from_millis(200);

/// A batch of the Redis door that PostgreSQL refuses for a reason that may pass (a full disk, a
/// lock) is tried again for so long.
const REFUSED_AFTER: Duration = Duration::from_secs(5);

/// Files besides connections: log, epoll, doors, certificates being read.
const FILES_SPARE: u64 = 100;

/// Why the process ends badly.
struct Failed {
    code: u8,
    why: String,
}

impl Failed {
    fn new(code: u8) -> impl Fn(&dyn std::fmt::Display) -> Failed {
        move |why| Failed { code, why: why.to_string() }
    }
}

impl From<DoorError> for Failed {
    fn from(error: DoorError) -> Failed {
        Failed::new(exit::NO_PERMISSION)(&error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::new(exit::FAILED)(&error)
    }
}

/// Serves until a signal or the console ends it.
pub fn serve(config: Config) -> ExitCode {
    start(config, false, first_steps)
}

/// As [`serve`], with the sockets of the process that runs, which ends with its clients.
pub fn take_over(config: Config) -> ExitCode {
    start(config, true, |_| false)
}

/// Has the process that runs start its successor, and says what came of it.
pub fn upgrade(config: &Config) -> ExitCode {
    let upgraded = control_socket(config).and_then(|path| takeover::upgrade(&path));
    match upgraded {
        Ok(words) => {
            println!("{words}");
            ExitCode::from(exit::FINE)
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(exit::FAILED)
        }
    }
}

/// # Errors
/// P0216: none is configured.
fn control_socket(config: &Config) -> Result<PathBuf, DoorError> {
    config.runtime.control_socket.clone().ok_or_else(|| {
        let why = "runtime.control_socket is not set";
        DoorError::new("P0216", "reach a running process", why, "set it, and restart both")
    })
}

/// As [`serve`]; `ready` is called with the doors' addresses once they take clients, and says
/// whether to stop at once.
pub fn serve_and(config: Config, ready: impl FnOnce(&Addresses) -> bool) -> ExitCode {
    start(config, false, |started| ready(started.addresses))
}

fn start(config: Config, takes_over: bool, ready: impl FnOnce(&Started) -> bool) -> ExitCode {
    let served = logging::start(&config.telemetry)
        .map_err(Failed::from)
        .and_then(|log| run(Arc::new(config), &log, takes_over, ready));
    match served {
        Ok(()) => ExitCode::from(exit::FINE),
        Err(Failed { code, why }) => {
            eprintln!("{why}");
            ExitCode::from(code)
        }
    }
}

/// Where clients and browsers can go.
pub struct Addresses {
    /// "127.0.0.1:6432", "unix:/run/pondage/.s.PGSQL.6432".
    pub postgres: Vec<String>,
    /// For clients of proxies: "127.0.0.1:6434".
    pub proxied: Vec<String>,
    /// "127.0.0.1:6379"
    pub redis: Vec<String>,
    pub http: Option<std::net::SocketAddr>,
    /// A link that logs in at the dashboard, once; none where it is not served.
    pub dashboard: Option<String>,
}

/// A process that takes clients.
struct Started<'a> {
    addresses: &'a Addresses,
    control: &'a Arc<Control>,
    log: &'a Logging,
}

/// Tells who tries a URL in a terminal what to type, and at once whether the server is there.
fn first_steps(started: &Started) -> bool {
    let config = Process::config(&**started.control);
    let Some((database, user)) = config.url() else { return false };
    if io::stderr().is_terminal() {
        let to = started.addresses.postgres.iter().find_map(|door| door.parse().ok());
        let to = to.map(|door: std::net::SocketAddr| {
            let ip = if door.ip().is_unspecified() { [127, 0, 0, 1].into() } else { door.ip() };
            (ip, door.port())
        });
        for (what, command) in to.into_iter().flat_map(|to| steps(to, database, user)) {
            started.log.announce(what, &[("event", "try"), ("command", &command)]);
        }
    }
    let (control, database, user) = (started.control.clone(), database.to_owned(), user.to_owned());
    tokio::spawn(async move { control.first_look(&database, &user).await });
    false
}

fn steps(
    (ip, port): (std::net::IpAddr, u16),
    database: &str,
    user: &str,
) -> [(&'static str, String); 3] {
    let psql = format!("psql -h {ip} -p {port} -U {user}");
    [
        ("your database, with the URL's password", format!("{psql} {database}")),
        ("what would gain most, after two minutes", format!("{psql} pondage -c 'show advice'")),
        ("what goes on, live", format!("pondage top postgres://{user}:PASSWORD@{ip}:{port}")),
    ]
}

fn run(
    config: Arc<Config>,
    log: &Logging,
    takes_over: bool,
    ready: impl FnOnce(&Started) -> bool,
) -> Result<(), Failed> {
    let listen_tls =
        tls::listener(&config.listen.tls).map_err(|e| Failed::new(exit::BAD_CONFIGURATION)(&e))?;
    let (mut takeover, mut handed) = match takes_over {
        true => match Takeover::begin(&control_socket(&config)?) {
            // As PgBouncer: a script that always says -R starts the first one, too.
            Err(error) if error.code == takeover::NONE_RUNS && config.inputs.is_ini() => {
                tracing::warn!(event = "takeover_of_none", "{error}");
                (None, held::activated()?)
            }
            begun => begun.map(|(takeover, handed)| (Some(takeover), handed))?,
        },
        false => (None, held::activated()?),
    };
    let before = takeover::take_links(&mut handed);
    let control_socket = config.runtime.control_socket.as_deref();
    let doors = Doors::open(&config.listen, control_socket, handed)?;
    let Doors { listeners, addresses, proxied, redis, http, .. } = doors;
    let (control_door, files, surplus, held) =
        (doors.control, doors.files, doors.surplus, doors.held);
    let mut house = House { held, files, pid_file: None };
    if takeover.is_none() {
        let written = config.runtime.pid_file.as_deref().map(|path| write_pid_file(path, None));
        house.pid_file = written.transpose()?;
    }
    if control_door.is_none() {
        // Nobody could ask for them.
        house.held.clear();
    }
    let house = Arc::new(Mutex::new(house));
    raise_file_limit(&config);
    for notice in &config.notices {
        tracing::warn!(event = "config_notice", "{notice}");
    }

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX + config.runtime.workers)
        .build()?;
    let began = Instant::now();
    let mailboxes =
        (0..config.runtime.workers).map(|_| worker::mailbox()).collect::<io::Result<Vec<_>>>()?;
    let (handles, inboxes): (Vec<_>, Vec<_>) = mailboxes.into_iter().unzip();
    let (asks, asked) = mpsc::unbounded_channel();
    let epoch = SystemTime::now();
    let shared = redis_shared(&config);
    let caches = Arc::new(Caches::new(
        config.cache.memory,
        config.cache.mirror_memory,
        Registry::new(&config),
    ));
    let outbox = Arc::new(Outbox::default());
    let workers = handles.clone();
    caches.serve(Box::new(move || {
        workers.iter().for_each(|worker| worker.send(ToWorker::Applied));
    }));
    let control = Arc::new(Control::new(
        config.clone(),
        listen_tls.clone(),
        handles.clone(),
        shared.clone(),
        caches.clone(),
        outbox.clone(),
        began,
    ));
    let mut door = Addresses {
        postgres: addresses,
        proxied,
        redis,
        http: http.as_ref().and_then(|listener| listener.local_addr().ok()),
        dashboard: None,
    };
    let tls_ready = listen_tls.is_some();
    let workers = Workers {
        config,
        listeners,
        handles,
        asks,
        shared,
        caches,
        outbox,
        epoch,
        began,
        tls_ready,
    };

    let served = runtime.block_on(async {
        // Before anybody knows that we are there.
        let signals = Signals::listen()?;
        if let Some(takeover) = &mut takeover {
            takeover.ready()?;
        }
        let ended = workers.start(inboxes)?;
        let bounding = control.clone();
        tokio::spawn(async move { bounding.bound_shutdown().await });
        let process: Arc<dyn Process> = control.clone();
        let operator = Arc::new(Operator::new(process.clone()));
        tokio::spawn(signals.obey(control.clone(), operator.clone()));
        let console = Console::new(operator.clone());
        tokio::spawn(control.clone().run(asked, console));
        if let Some(listener) = http {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let site = Arc::new(Site::new(process, operator));
            door.dashboard = door.http.and_then(|address| site.link(address));
            tokio::spawn(serve_http(listener, site, control.clone()));
        }
        for link in before {
            control.predecessors.add(link)?;
        }
        let watchdog = notify::watchdog(takeover.is_some());
        if let Some(takeover) = takeover {
            succeed(takeover, &control, &house, surplus)?;
        }
        if let Some(listener) = control_door {
            let listener = tokio::net::UnixListener::from_std(listener)?;
            tokio::spawn(Handover::new(control.clone(), house.clone()).attend(listener));
        }
        if let Some(period) = watchdog {
            tokio::spawn(show_life(control.clone(), period / 2));
        }
        control.set_listening();
        announce(log, &door);
        notify::tell(&format!("READY=1\nSTATUS=Serving at {}", door.postgres.join(", ")));
        if ready(&Started { addresses: &door, control: &control, log }) {
            control.begin_shutdown(Shutdown::Immediate);
        }
        wait(ended, &control).await
    });
    notify::tell("STOPPING=1");
    runtime.shutdown_timeout(RUNTIME_END);
    tracing::info!(event = "ended", duration_ms = began.elapsed().as_millis() as u64);
    served
}

async fn serve_http(listener: tokio::net::TcpListener, site: Arc<Site>, control: Arc<Control>) {
    let retired = async move { control.handed_over().await };
    if let Err(error) = crate::http::serve(listener, site, retired).await {
        tracing::error!(event = "http_failed", %error, "the HTTP door is closed");
    }
}

/// The workers turn: this process serves from now on, and what the old one would have removed is
/// ours.
fn succeed(
    takeover: Takeover,
    control: &Control,
    house: &Mutex<House>,
    mut surplus: Vec<Removed>,
) -> Result<(), Failed> {
    let pid = takeover.pid;
    if let Some(link) = takeover.serving()? {
        control.predecessors.add(link)?;
    }
    surplus.iter_mut().for_each(Removed::take);
    drop(surplus);
    let mut house = handover::lock(house);
    house.files.iter_mut().for_each(Removed::take);
    if let Some(path) = &control.config().runtime.pid_file {
        match write_pid_file(path, Some(pid)) {
            Ok(written) => house.pid_file = Some(written),
            Err(error) => tracing::warn!(event = "pid_file", "{error}"),
        }
    }
    Ok(())
}

/// Tells the service manager that every worker turns, for ever.
async fn show_life(control: Arc<Control>, period: Duration) {
    loop {
        tokio::time::sleep(period).await;
        control.ping().await;
        notify::tell("WATCHDOG=1");
    }
}

/// What all workers start with.
struct Workers {
    config: Arc<Config>,
    listeners: Vec<(Door, Listener)>,
    handles: Vec<WorkerHandle>,
    asks: mpsc::UnboundedSender<ToControl>,
    shared: Option<Arc<redis::Shared>>,
    caches: Arc<Caches>,
    outbox: Arc<Outbox>,
    epoch: SystemTime,
    began: Instant,
    tls_ready: bool,
}

impl Workers {
    /// Starts one for each inbox; gives what awaits their ends. No socket and no sender stays
    /// here: when every worker has ended, addresses are free and the control plane ends, too.
    fn start(self, inboxes: Vec<Inbox>) -> io::Result<JoinSet<Result<(), String>>> {
        let mut ended = JoinSet::new();
        let caches = self.caches.clone();
        let common = Arc::new(Common::new(self.caches).with_outbox(self.outbox));
        let epoch = self.epoch;
        for (number, inbox) in inboxes.into_iter().enumerate() {
            let doors = self.listeners.iter();
            let listeners = doors
                .map(|(door, listener)| Ok((*door, listener.try_clone()?)))
                .collect::<io::Result<Vec<_>>>()?;
            let setting = Setting {
                worker: u8::try_from(number).map_err(io::Error::other)?,
                config: self.config.clone(),
                common: common.clone(),
                seed: rand::random(),
                epoch,
                tls_ready: self.tls_ready,
            };
            let (control, peers) = (self.asks.clone(), self.handles.clone());
            let redis = self.shared.as_ref().map(|shared| redis::Setting {
                worker: setting.worker,
                config: self.config.clone(),
                shared: shared.clone(),
                caches: caches.clone(),
                common: common.clone(),
                epoch,
                tls_ready: self.tls_ready,
            });
            let start = Start { setting, listeners, redis, control, peers, began: self.began };
            let thread = worker::spawn(inbox, start)?;
            ended.spawn_blocking(move || join(thread));
        }
        Ok(ended)
    }
}

/// The engine of the Redis door, if there is one.
fn redis_shared(config: &Config) -> Option<Arc<redis::Shared>> {
    let pool = config.redis_pool()?;
    let tables = Tables::new(Identity {
        owner: format!("process {} {:016x}", std::process::id(), rand::random::<u64>()),
        database: pool.upstream.database.clone(),
        role: pool.upstream.user.clone(),
        shards: config.redis.writers as usize,
        hurried: config.redis.async_databases.iter().map(|db| *db as u16).collect(),
        journal: !config.redis.journal_databases.is_empty(),
        patience: REFUSED_AFTER,
    });
    Some(Arc::new(redis::Shared::new(config, Box::new(tables), microseconds, rand::random())))
}

/// Since 1970.
fn microseconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn join(thread: JoinHandle<io::Result<()>>) -> Result<(), String> {
    match thread.join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it panicked".to_owned()),
    }
}

/// Until every worker has ended. One that fails takes the others with it: its clients are lost,
/// and half a process would hide that.
async fn wait(mut ended: JoinSet<Result<(), String>>, control: &Control) -> Result<(), Failed> {
    let mut failed = None;
    while let Some(end) = ended.join_next().await {
        if let Err(why) = end.unwrap_or_else(|error| Err(error.to_string())) {
            tracing::error!(event = "worker_failed", error = why, "a worker has failed");
            failed = Some(Failed::new(exit::FAILED)(&format!("error: a worker failed: {why}")));
            control.begin_shutdown(Shutdown::Immediate);
        }
    }
    failed.map_or(Ok(()), Err)
}

fn announce(log: &Logging, door: &Addresses) {
    let postgres = door.postgres.join(",");
    let others = |addresses: &[String]| match addresses.is_empty() {
        true => "off".to_owned(),
        false => addresses.join(","),
    };
    let (proxied, redis) = (others(&door.proxied), others(&door.redis));
    let http = door.http.map_or_else(|| "off".to_owned(), |address| address.to_string());
    // Logs are kept and sent away: only who sits before the process is told how to get in.
    if let Some(link) = door.dashboard.as_ref().filter(|_| io::stderr().is_terminal()) {
        log.announce("the dashboard, for one log-in", &[("event", "dashboard"), ("link", link)]);
    }
    let pid = std::process::id().to_string();
    log.announce(
        "ready",
        &[
            ("event", "ready"),
            ("postgres", &postgres),
            ("proxied", &proxied),
            ("redis", &redis),
            ("http", &http),
            ("pid", &pid),
            ("version", env!("CARGO_PKG_VERSION")),
        ],
    );
}

/// Raises the soft limit of open files to the hard one, and says when that won't do.
fn raise_file_limit(config: &Config) {
    let limit = getrlimit(Resource::Nofile);
    let mut raised = limit;
    raised.current = limit.maximum;
    let limit = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(_) => limit.current,
    };
    // A server for each client is more than any pool has.
    let redis = if config.listen.redis.is_empty() { 0 } else { config.redis.max_clients };
    let needed = u64::from(config.runtime.max_clients) + u64::from(redis) + FILES_SPARE;
    if limit.is_some_and(|limit| limit < needed) {
        tracing::warn!(
            event = "file_limit",
            limit,
            needed,
            "too few open files are allowed for max_clients: raise `ulimit -n` or LimitNOFILE"
        );
    }
}
