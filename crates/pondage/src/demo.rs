//! `pondage demo`: a private PostgreSQL with sample data, served with every door open, gone
//! without a trace when it ends.

pub mod cluster;

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

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
    /// What was taken, and what is used instead.
    moved: Vec<String>,
    /// A signal came before the process could obey it.
    stop: Arc<AtomicBool>,
}

fn prepare(options: DemoOptions) -> Result<Demo, Refused> {
    // From here on a signal ends the demo in order, instead of leaving a server behind.
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).map_err(Refused::Signals)?;
    }
    eprintln!("demo: making a private PostgreSQL with sample data ...");
    let cluster = Cluster::start(&SETTINGS, &stop).map_err(Refused::Cluster)?;
    load_sample(&cluster)?;
    let (config, moved) = configure(options, &cluster).map_err(Refused::Config)?;
    match stop.load(Ordering::Relaxed) {
        true => Err(Refused::Stopped),
        false => Ok(Demo { cluster, config, moved, stop }),
    }
}

impl Demo {
    fn serve(self) -> ExitCode {
        let Demo { cluster, config, moved, stop } = self;
        let directory = cluster.directory().display().to_string();
        let code = process::serve_and(config, |addresses| {
            for line in moved {
                eprintln!("{line}");
            }
            eprint!("{}", welcome(addresses, &directory));
            stop.load(Ordering::Relaxed)
        });
        eprintln!("demo: removing {directory}");
        code
    }
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
    let DemoOptions { environment, mut flags } = options;
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
    let run = async {
        execute(cluster, "postgres", &format!("CREATE ROLE {NAME} LOGIN PASSWORD '{NAME}'"))
            .await?;
        execute(cluster, "postgres", &format!("CREATE DATABASE {NAME} OWNER {NAME}")).await?;
        execute(cluster, NAME, &format!("SET SESSION AUTHORIZATION {NAME}; {SAMPLE}")).await?;
        let schema = redis::schema::install();
        let as_owner = format!("SET SESSION AUTHORIZATION {NAME}");
        execute(cluster, NAME, &format!("{as_owner}; {schema}; {KEYS}")).await?;
        // So that the first plans are good ones.
        execute(cluster, NAME, "VACUUM ANALYZE").await
    };
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
        let options = DemoOptions { environment: Environment::default(), flags };
        let (config, _) = configure(options, &cluster).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(config.listen.postgres, [Address::Tcp(taken)]);
    }
}
