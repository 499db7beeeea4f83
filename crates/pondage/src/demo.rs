//! `pondage demo`: a private PostgreSQL with sample data, served with every door open, gone
//! without a trace when it ends.

pub mod cluster;
mod load;

use std::fmt;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use tokio_postgres::NoTls;

use crate::cli::{exit, DemoOptions};
use crate::config::{Address, Config, Report};
use crate::process::{self, Addresses};
use cluster::{Cluster, ClusterError};

/// User, password and database of the demo.
const NAME: &str = "demo";

/// The Redis door's usual address; in the demo it is open.
const REDIS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6379);

const REDIS_VARIABLE: &str = "PONDAGE_LISTEN__REDIS";

/// The load has a row of reads that are cached.
const CACHE_VARIABLE: &str = "PONDAGE_CACHE__MODE";

/// Logical decoding is what caches and streams need.
const SETTINGS: [&str; 1] = ["wal_level=logical"];

const SAMPLE: &str = include_str!("demo/sample.sql");
const KEYS: &str = include_str!("demo/keys.sql");

/// Why there is no demo.
enum Refused {
    Cluster(ClusterError),
    Config(Report),
    Sample(String),
    Signals(io::Error),
    Stopped,
}

impl Refused {
    fn code(&self) -> u8 {
        match self {
            Refused::Cluster(ClusterError::Stopped) | Refused::Stopped => exit::FINE,
            Refused::Cluster(ClusterError::NotInstalled) => exit::UNAVAILABLE,
            Refused::Config(_) => exit::BAD_CONFIGURATION,
            _ => exit::FAILED,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Cluster(ClusterError::NotInstalled) => write!(
                f,
                "error[P0231]: the demo needs PostgreSQL's programs, and `initdb` is not in PATH, \
                 not where `pg_config --bindir` says, and not in /usr/lib/postgresql/*/bin\n   \
                 = help: install it: {}",
                install_command(&std::fs::read_to_string("/etc/os-release").unwrap_or_default())
            ),
            Refused::Cluster(ClusterError::Stopped) | Refused::Stopped => f.write_str("stopped"),
            Refused::Cluster(error) => write!(f, "error[P0232]: {error}"),
            Refused::Config(report) => report.fmt(f),
            Refused::Sample(why) => write!(f, "error[P0233]: cannot load the sample data: {why}"),
            Refused::Signals(error) => write!(f, "error: cannot listen for signals: {error}"),
        }
    }
}

/// Runs the demo until a signal ends it.
pub fn run(options: DemoOptions) -> ExitCode {
    match prepare(options) {
        Ok(demo) => demo.serve(),
        Err(refused) => {
            eprintln!("{refused}");
            ExitCode::from(refused.code())
        }
    }
}

struct Demo {
    /// Dropped, and so removed, after serving.
    cluster: Cluster,
    config: Config,
    load: Duration,
    /// What was taken, and what is used instead.
    moved: Vec<String>,
    /// A signal came before the process could obey it.
    stop: Arc<AtomicBool>,
}

fn prepare(mut options: DemoOptions) -> Result<Demo, Refused> {
    // From here on a signal ends the demo in order, instead of leaving a server behind.
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).map_err(Refused::Signals)?;
    }
    eprintln!("demo: making a private PostgreSQL with sample data ...");
    let cluster = Cluster::start(&SETTINGS, &stop).map_err(Refused::Cluster)?;
    load_sample(&cluster)?;
    let load = options.load;
    if !load.is_zero() {
        load_more(&cluster)?;
        options.environment = options.environment.or(CACHE_VARIABLE, "auto");
    }
    let (config, moved) = configure(options, &cluster).map_err(Refused::Config)?;
    match stop.load(Ordering::Relaxed) {
        true => Err(Refused::Stopped),
        false => Ok(Demo { cluster, config, load, moved, stop }),
    }
}

impl Demo {
    fn serve(self) -> ExitCode {
        let Demo { cluster, config, load, moved, stop } = self;
        let directory = cluster.directory().display().to_string();
        let mut thread = None;
        let code = process::serve_and(config, |addresses| {
            for line in moved {
                eprintln!("{line}");
            }
            eprint!("{}", welcome(addresses, &directory));
            if !load.is_zero() {
                thread = start_load(addresses, &cluster, load, stop.clone());
            }
            stop.load(Ordering::Relaxed)
        });
        stop.store(true, Ordering::Relaxed);
        if let Some(thread) = thread {
            // Nothing of it must be left when PostgreSQL goes.
            let _ = thread.join();
        }
        eprintln!("demo: removing {directory}");
        code
    }
}

/// None: there is no door by TCP, or no thread.
fn start_load(
    addresses: &Addresses,
    cluster: &Cluster,
    total: Duration,
    stop: Arc<AtomicBool>,
) -> Option<std::thread::JoinHandle<()>> {
    let door = reachable(addresses.postgres.iter().find_map(|address| address.parse().ok())?);
    let redis = addresses.redis.iter().find_map(|address| address.parse().ok()).map(reachable);
    let at = |address: SocketAddr| {
        let mut config = tokio_postgres::Config::new();
        config.host(address.ip().to_string()).port(address.port());
        config.user(NAME).password(NAME).dbname(NAME).application_name("demo load");
        config
    };
    let direct = (Ipv4Addr::LOCALHOST, cluster.port()).into();
    let places = load::Places { direct: at(direct), through: at(door), redis };
    let next = next(door, redis, addresses);
    let run = move || {
        let seconds = total.as_secs();
        eprintln!(
            "demo: PostgreSQL without and with Pondage, by turns, for some {seconds} s ...\n"
        );
        if load::run(&places, total, io::stderr().is_terminal(), &stop) {
            eprint!("{next}");
        }
    };
    let spawned = std::thread::Builder::new().name("demo load".to_owned()).spawn(run);
    spawned.map_err(|error| eprintln!("demo: no load: {error}")).ok()
}

/// What to try next, behind the table.
fn next(door: SocketAddr, redis: Option<SocketAddr>, addresses: &Addresses) -> String {
    let mut text = format!(
        "\nAll of it runs on until Ctrl-C. Try next:\n\n\
         \x20 psql 'postgres://{NAME}:{NAME}@{door}/pondage' -c 'SHOW QUERIES'\n"
    );
    if let Some(redis) = redis {
        text += &format!(
            "  redis-cli -u redis://{NAME}:{NAME}@{redis} --no-auth-warning ZREVRANGE best 0 4\n"
        );
    }
    match (&addresses.dashboard, addresses.http) {
        (Some(link), _) => text += &format!("  {link}    # the dashboard, once\n"),
        (None, Some(http)) => text += &format!("  curl http://{}/metrics\n", reachable(http)),
        (None, None) => {}
    }
    text.push('\n');
    text
}

/// The lines to copy and paste.
fn welcome(addresses: &Addresses, directory: &str) -> String {
    let mut text =
        format!("\nA private PostgreSQL runs in {directory}; all of it goes with Ctrl-C.\n\n");
    let tcp = addresses.postgres.iter().find_map(|address| address.parse::<SocketAddr>().ok());
    if let Some(door) = tcp {
        let door = reachable(door);
        let url = format!("postgres://{NAME}:{NAME}@{door}");
        text += &format!(
            "  psql '{url}/{NAME}' -c 'SELECT city, count(*), sum(total) FROM customers JOIN \
             orders USING (customer_id) GROUP BY 1 ORDER BY 3 DESC'\n\
             \x20 psql '{url}/pondage' -c 'SHOW POOLS'\n\
             \x20 PGPASSWORD={NAME} pgbench -h {} -p {} -U {NAME} -n -S -M prepared -c 8 -T 5 {NAME}\n",
            door.ip(),
            door.port(),
        );
    }
    let redis = addresses.redis.iter().find_map(|address| address.parse::<SocketAddr>().ok());
    if let Some(redis) = redis {
        let redis = reachable(redis);
        text += &format!(
            "  redis-cli -u redis://{NAME}:{NAME}@{redis} --no-auth-warning HGETALL customer:1\n"
        );
    }
    if let Some(link) = &addresses.dashboard {
        text +=
            &format!("  {link}    # the dashboard, in a browser; later log in as {NAME}, {NAME}\n");
    }
    if let Some(http) = addresses.http {
        let http = reachable(http);
        text += &format!("  curl http://{http}/metrics\n  curl http://{http}/healthz\n");
    }
    text.push('\n');
    text
}

/// Where a client on this machine finds a door that is open on all addresses.
fn reachable(door: SocketAddr) -> SocketAddr {
    match door.ip().is_unspecified() {
        true if door.is_ipv4() => (Ipv4Addr::LOCALHOST, door.port()).into(),
        true => (std::net::Ipv6Addr::LOCALHOST, door.port()).into(),
        false => door,
    }
}

/// The configuration of the demo. Default ports that are taken are replaced by free ones; ports
/// that somebody asked for are not.
fn configure(options: DemoOptions, cluster: &Cluster) -> Result<(Config, Vec<String>), Report> {
    let DemoOptions { environment, mut flags, .. } = options;
    let (directory, port) = (cluster.directory().display(), cluster.port());
    let url = format!("postgres://{NAME}:{NAME}@/{NAME}?host={directory}&port={port}");
    let config = Config::from_url(&url, environment.clone(), flags.clone())?;
    let mut moved = Vec::new();
    // Elsewhere it is off unless somebody says otherwise; who says so here means it.
    let opens_redis = flags.redis.is_none() && !environment.has(REDIS_VARIABLE);
    if opens_redis {
        let free = free_instead(REDIS, &mut moved);
        flags.redis = Some(free.unwrap_or(REDIS).to_string());
    }
    let defaults =
        Config::from_url(&url, crate::config::Environment::default(), Default::default())?;
    if flags.listen.is_empty() && config.listen.postgres == defaults.listen.postgres {
        let elsewhere = |address: &Address| match address {
            Address::Tcp(address) => {
                free_instead(*address, &mut moved).map(|free| free.to_string())
            }
            Address::Unix { .. } => None,
        };
        flags.listen = config.listen.postgres.iter().filter_map(elsewhere).collect();
    }
    if flags.http.is_none() && config.listen.http == defaults.listen.http {
        let free = config.listen.http.and_then(|address| free_instead(address, &mut moved));
        flags.http = free.map(|address| address.to_string());
    }
    match moved.is_empty() && !opens_redis {
        true => Ok((config, moved)),
        false => Ok((Config::from_url(&url, environment, flags)?, moved)),
    }
}

/// A free port in place of one that is taken; none when it is free.
fn free_instead(address: SocketAddr, moved: &mut Vec<String>) -> Option<SocketAddr> {
    match TcpListener::bind(address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
        _ => return None,
    }
    let free = TcpListener::bind((address.ip(), 0)).and_then(|any| any.local_addr()).ok()?;
    moved.push(format!("demo: {address} is taken, {free} is used instead"));
    Some(free)
}

fn load_sample(cluster: &Cluster) -> Result<(), Refused> {
    wait_for(async {
        execute(
            cluster,
            "postgres",
            &format!("CREATE ROLE {NAME} LOGIN REPLICATION PASSWORD '{NAME}'"),
        )
        .await?;
        execute(cluster, "postgres", &format!("CREATE DATABASE {NAME} OWNER {NAME}")).await?;
        execute(cluster, NAME, &format!("SET SESSION AUTHORIZATION {NAME}; {SAMPLE}")).await?;
        let schema = redis::schema::install();
        let as_owner = format!("SET SESSION AUTHORIZATION {NAME}");
        execute(cluster, NAME, &format!("{as_owner}; {schema}; {KEYS}")).await?;
        // So that the first plans are good ones.
        execute(cluster, NAME, "VACUUM ANALYZE").await
    })
}

/// The sample of the load.
fn load_more(cluster: &Cluster) -> Result<(), Refused> {
    let sql = format!("SET SESSION AUTHORIZATION {NAME}; {}", load::SAMPLE);
    wait_for(execute(cluster, NAME, &sql))
}

fn wait_for(
    run: impl std::future::Future<Output = Result<(), tokio_postgres::Error>>,
) -> Result<(), Refused> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Refused::Sample(error.to_string()))?
        .block_on(run)
        .map_err(|error| {
            Refused::Sample(match error.as_db_error() {
                Some(said) => said.to_string(),
                None => error.to_string(),
            })
        })
}

async fn execute(
    cluster: &Cluster,
    database: &str,
    sql: &str,
) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = cluster.admin(database).connect(NoTls).await?;
    let work = async {
        let done = client.batch_execute(sql).await;
        drop(client);
        done
    };
    // The connection ends with its client.
    let (done, _) = tokio::join!(work, connection);
    done
}

/// How PostgreSQL is installed on the system that `/etc/os-release` describes.
fn install_command(os_release: &str) -> &'static str {
    let names: Vec<&str> = os_release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .flat_map(|value| value.trim_matches('"').split(' '))
        .collect();
    let is = |name: &str| names.contains(&name);
    if is("alpine") {
        "apk add postgresql"
    } else if is("arch") {
        "sudo pacman -S postgresql"
    } else if is("fedora") || is("rhel") || is("centos") {
        "sudo dnf install postgresql-server"
    } else if is("suse") || is("opensuse") {
        "sudo zypper install postgresql-server"
    } else {
        "sudo apt-get install -y postgresql"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Flags};

    #[test]
    fn the_install_command_is_that_of_the_system() {
        assert_eq!(install_command("ID=debian\n"), "sudo apt-get install -y postgresql");
        assert_eq!(
            install_command("NAME=x\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"),
            "sudo dnf install postgresql-server"
        );
        assert_eq!(install_command("ID=alpine"), "apk add postgresql");
    }

    #[test]
    fn the_cluster_has_the_sample_and_leaves_nothing_behind() {
        let stop = AtomicBool::new(false);
        let mut cluster = Cluster::start(&SETTINGS, &stop).unwrap_or_else(|e| panic!("{e}"));
        load_sample(&cluster).unwrap_or_else(|e| panic!("{e}"));
        assert!(cluster.alive());
        let counts = "SELECT 1/(count(*) = 5000)::int FROM orders; \
                      SELECT 1/(count(*) = 100000)::int FROM pgbench_accounts; \
                      SELECT 1/(count(*) = 104)::int FROM redis.kv; \
                      SELECT 1/(current_setting('wal_level') = 'logical')::int";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let counted = runtime.expect("runtime").block_on(execute(&cluster, NAME, counts));
        assert!(counted.is_ok(), "{counted:?}");

        let (directory, port) = (cluster.directory().to_owned(), cluster.port());
        drop(cluster);
        assert!(!directory.exists());
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    }

    #[test]
    fn a_start_that_fails_or_is_stopped_half_way_leaves_nothing_behind() {
        let left = || {
            let entries = std::fs::read_dir(std::env::temp_dir()).expect("temp");
            let names = entries.flatten().map(|entry| entry.file_name());
            names.filter(|name| name.to_string_lossy().contains("half-way")).count()
        };
        let refused =
            Cluster::start_in("half-way", &["no_such_setting=1"], &AtomicBool::new(false));
        let Err(ClusterError::Failed { why, .. }) = refused else { panic!("it started") };
        assert!(why.contains("no_such_setting"), "{why}");
        let stopped = Cluster::start_in("half-way", &[], &AtomicBool::new(true));
        assert!(matches!(stopped, Err(ClusterError::Stopped)));
        assert_eq!(left(), 0);
    }

    #[test]
    fn default_ports_that_are_taken_are_replaced_and_wanted_ones_are_not() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("bind").local_addr().expect("address");
        let _held = TcpListener::bind(taken).expect("bind");
        let mut moved = Vec::new();
        let free = free_instead(taken, &mut moved).expect("another");
        assert_ne!(free.port(), taken.port());
        assert_eq!(moved, [format!("demo: {taken} is taken, {free} is used instead")]);

        let cluster = Cluster::start(&[], &AtomicBool::new(false)).expect("cluster");
        let flags = Flags { listen: vec![taken.to_string()], ..Flags::default() };
        let load = Duration::ZERO;
        let options = DemoOptions { environment: Environment::default(), flags, load };
        let (config, _) = configure(options, &cluster).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(config.listen.postgres, [Address::Tcp(taken)]);
    }
}
