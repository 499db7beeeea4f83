//! A throw-away PostgreSQL: made in a directory for temporary files, run as a child process,
//! removed when dropped.
//!
//! ```text
//! DIRECTORY/data          the cluster
//! DIRECTORY/.s.PGSQL.PORT its Unix socket; only its owner and root get at it
//! DIRECTORY/log           what it says
//! ```

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{chown, DirBuilderExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{geteuid, kill_process, Pid, Signal};

/// PostgreSQL has this long to accept connections; recovery does not happen here.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A fast shutdown has this long; then it is an immediate one.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How often its state is looked at meanwhile.
const POLL: Duration = Duration::from_millis(20);

/// The superuser of the cluster.
pub const SUPERUSER: &str = "postgres";

/// A running PostgreSQL.
pub struct Cluster {
    directory: PathBuf,
    child: Option<Child>,
    port: u16,
}

/// Why there is none.
#[derive(Debug)]
pub enum ClusterError {
    /// No `initdb` on this machine.
    NotInstalled,
    /// It was told to stop before it was ready.
    Stopped,
    /// This step failed, with what the program said.
    Failed { step: &'static str, why: String },
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterError::NotInstalled => f.write_str("PostgreSQL is not installed here"),
            ClusterError::Stopped => f.write_str("stopped before it was ready"),
            ClusterError::Failed { step, why } => write!(f, "cannot {step}: {why}"),
        }
    }
}

impl std::error::Error for ClusterError {}

/// The owner of a process: PostgreSQL refuses to run as root.
#[derive(Debug, Clone, Copy)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl Cluster {
    /// Makes and starts a cluster that trusts its Unix socket, asks for SCRAM over TCP on a free
    /// port of 127.0.0.1, and runs with `settings` (`name=value`). Gives up soon after `stop` has
    /// become true.
    ///
    /// # Errors
    /// `NotInstalled`, `Stopped`, or the step that failed; nothing is left behind.
    pub fn start(settings: &[&str], stop: &AtomicBool) -> Result<Cluster, ClusterError> {
        Cluster::start_in("pondage-demo", settings, stop)
    }

    /// As [`Cluster::start`], in a directory whose name begins like this.
    pub(super) fn start_in(
        prefix: &str,
        settings: &[&str],
        stop: &AtomicBool,
    ) -> Result<Cluster, ClusterError> {
        let bin = find_bin().ok_or(ClusterError::NotInstalled)?;
        let owner = owner().map_err(failed("find a user to run PostgreSQL as"))?;
        let port = free_port().map_err(failed("find a free port"))?;
        let directory = make_directory(prefix).map_err(failed("make a directory"))?;
        // From here on dropping it removes everything.
        let mut cluster = Cluster { directory, child: None, port };
        if let Some(Owner { uid, gid }) = owner {
            chown(&cluster.directory, Some(uid), Some(gid))
                .map_err(failed("give PostgreSQL its directory"))?;
        }
        cluster.initdb(&bin, owner)?;
        if stop.load(Ordering::Relaxed) {
            return Err(ClusterError::Stopped);
        }
        cluster.run(&bin, owner, settings)?;
        cluster.wait_until_ready(stop)?;
        Ok(cluster)
    }

    /// The directory of its Unix socket.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connects as the superuser, over the Unix socket.
    pub fn admin(&self, database: &str) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.host_path(&self.directory).port(self.port).user(SUPERUSER).dbname(database);
        config
    }

    /// Whether the server process still runs.
    pub fn alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    fn initdb(&self, bin: &Path, owner: Option<Owner>) -> Result<(), ClusterError> {
        let step = "make a database cluster";
        let output = command(&bin.join("initdb"), owner)
            .current_dir(&self.directory)
            .arg("--pgdata")
            .arg(self.data())
            .args(["--username", SUPERUSER, "--encoding=UTF8", "--locale=C", "--no-sync"])
            .args(["--auth-local=trust", "--auth-host=scram-sha-256"])
            .stdin(Stdio::null())
            .process_group(0)
            .output()
            .map_err(failed(step))?;
        if output.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(ClusterError::Failed { step, why })
    }

    fn run(
        &mut self,
        bin: &Path,
        owner: Option<Owner>,
        settings: &[&str],
    ) -> Result<(), ClusterError> {
        let step = "start PostgreSQL";
        let log = fs::File::create(self.log()).map_err(failed(step))?;
        let mut postgres = command(&bin.join("postgres"), owner);
        postgres
            .current_dir(&self.directory)
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(&self.directory)
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            // Its data is gone when it stops, so it need not reach the disk.
            .args(["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"])
            // Ctrl-C is for us; we stop it in order.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed(step))?)
            .stderr(log);
        for setting in settings {
            postgres.args(["-c", setting]);
        }
        self.child = Some(postgres.spawn().map_err(failed(step))?);
        Ok(())
    }

    fn wait_until_ready(&mut self, stop: &AtomicBool) -> Result<(), ClusterError> {
        let socket = self.directory.join(format!(".s.PGSQL.{}", self.port));
        // The postmaster writes "ready" here once it takes connections.
        // Source: `LOCK_FILE_LINE_PM_STATUS` in src/include/miscadmin.h and utils/pidfile.h.
        let pid_file = self.data().join("postmaster.pid");
        let began = Instant::now();
        while began.elapsed() < START_TIMEOUT {
            let ready = fs::read_to_string(&pid_file)
                .is_ok_and(|text| text.lines().nth(7).is_some_and(|line| line.trim() == "ready"));
            if ready && UnixStream::connect(&socket).is_ok() {
                return Ok(());
            }
            if stop.load(Ordering::Relaxed) {
                return Err(ClusterError::Stopped);
            }
            if !self.alive() {
                break;
            }
            std::thread::sleep(POLL);
        }
        let said = fs::read_to_string(self.log()).unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(5).collect();
        let why = last.into_iter().rev().collect::<Vec<_>>().join("\n");
        Err(ClusterError::Failed { step: "start PostgreSQL", why })
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // Source: PostgreSQL documentation, "Shutting Down the Server": INT is fast, QUIT is now.
        for signal in [Signal::INT, Signal::QUIT] {
            // It fails when the process has ended, which is what is wanted.
            let _ = kill_process(Pid::from_child(&child), signal);
            let began = Instant::now();
            while began.elapsed() < STOP_TIMEOUT {
                if !matches!(child.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(POLL);
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            let directory = self.directory.display();
            tracing::warn!(event = "demo_stop", error = %error, "cannot remove {directory}");
        }
    }
}

/// The newest directory with `initdb` and `postgres`: that of PATH, of `pg_config`, of Debian.
pub fn find_bin() -> Option<PathBuf> {
    let complete = |bin: &PathBuf| bin.join("initdb").is_file() && bin.join("postgres").is_file();
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A link in PATH leads to the directory where the other programs are, too.
    let in_path = std::env::split_paths(&path)
        .filter_map(|directory| fs::canonicalize(directory.join("initdb")).ok())
        .filter_map(|initdb| initdb.parent().map(Path::to_owned))
        .find(complete);
    in_path.or_else(|| pg_config_bin().filter(complete)).or_else(|| debian_bin(complete))
}

fn pg_config_bin() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

fn debian_bin(complete: impl Fn(&PathBuf) -> bool) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    versions
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())))
        .map(|(version, path)| (version, path.join("bin")))
        .filter(|(_, bin)| complete(bin))
        .max_by_key(|(version, _)| *version)
        .map(|(_, bin)| bin)
}

/// As whom to run it: none means as ourselves; `postgres` or `nobody` when we are root.
fn owner() -> io::Result<Option<Owner>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    ["postgres", "nobody"]
        .iter()
        .find_map(|name| user(&users, name))
        .map(Some)
        .ok_or_else(|| io::Error::other("neither `postgres` nor `nobody` is in /etc/passwd"))
}

fn user(passwd: &str, name: &str) -> Option<Owner> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some(Owner { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
}

/// Only its owner gets at it; its name can't be guessed.
fn make_directory(prefix: &str) -> io::Result<PathBuf> {
    use rand::distr::{Alphanumeric, SampleString};
    let name = Alphanumeric.sample_string(&mut rand::rng(), 8);
    let directory = std::env::temp_dir().join(format!("{prefix}-{name}"));
    fs::DirBuilder::new().mode(0o700).create(&directory)?;
    Ok(directory)
}

fn failed(step: &'static str) -> impl Fn(io::Error) -> ClusterError {
    move |error| ClusterError::Failed { step, why: error.to_string() }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn command(program: &Path, owner: Option<Owner>) -> Command {
    let mut command = Command::new(program);
    if let Some(Owner { uid, gid }) = owner {
        command.uid(uid).gid(gid);
    }
    // Settings of the person at the terminal are not for this server.
    for (name, _) in std::env::vars_os() {
        if AsRef::<OsStr>::as_ref(&name).as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
    command
}
