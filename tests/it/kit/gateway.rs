//! A running Pondage.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{kill_process, Pid, Signal};

use super::cluster::{Database, APP, APP_PASSWORD};
use super::config::{Config, Value};
use super::place::{free_port, profile_directory, Directory};
use super::wait;
use super::wireclient::{Address, WireClient};

pub const ADMIN: &str = "admin";
pub const ADMIN_PASSWORD: &str = "admin secret";

/// `pondage serve` with a configuration of its own. Dropping it sends SIGTERM and asserts a clean
/// exit; after a panic of the test it prints what the gateway said and ends it at once.
pub struct Gateway {
    pub port: u16,
    pub http_port: u16,
    /// For `listen.redis`, which has to be set.
    pub redis_port: u16,
    /// The configuration file; a test may rewrite it and reload.
    pub file: PathBuf,
    /// Shared with those that have taken over from it.
    pub directory: Arc<Directory>,
    process: Child,
    said: Said,
    /// Copies stderr to `said` until its end.
    reader: Option<JoinHandle<()>>,
    ended: Option<ExitStatus>,
}

/// What a process wrote to stderr so far, line by line.
#[derive(Clone, Default)]
pub struct Said(Arc<Mutex<Vec<String>>>);

/// How `pondage` ended that was not expected to serve.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Gateway {
    /// Starts with `config` and waits for `ready`. The doors are on free ports unless `config` sets
    /// them; its values may use `{port}`, `{http_port}`, `{redis_port}` and `{directory}`.
    #[track_caller]
    pub fn start(config: Config) -> Gateway {
        Gateway::start_with(config, &[])
    }

    /// Transaction mode, one database, the users `app` and `admin`.
    #[track_caller]
    pub fn of(database: &Database) -> Gateway {
        Gateway::start(Config::of(database))
    }

    /// As [`Gateway::start`], with variables added to the environment.
    #[track_caller]
    pub fn start_with(config: Config, environment: &[(&str, &str)]) -> Gateway {
        let directory = Arc::new(Directory::new("gateway"));
        let ports = [free_port(), free_port(), free_port()];
        let file = write_file(config, &directory, ports);
        let mut command = pondage(environment);
        command.arg("serve").arg("-c").arg(&file);
        Gateway::launch(command, ports, file, directory)
    }

    /// Runs an ini file of PgBouncer; `ini` makes its text of the port and the directory.
    #[track_caller]
    pub fn start_ini(ini: impl FnOnce(u16, &Path) -> String) -> Gateway {
        let directory = Arc::new(Directory::new("gateway"));
        let port = free_port();
        let file = directory.path().join("pgbouncer.ini");
        std::fs::write(&file, ini(port, directory.path())).expect("the ini file");
        let mut command = pondage(&[]);
        command.arg("--pgbouncer-ini").arg(&file);
        Gateway::launch(command, [port, free_port(), free_port()], file, directory)
    }

    /// A process of the same configuration file that takes over from this one.
    #[track_caller]
    pub fn successor(&self, environment: &[(&str, &str)]) -> Gateway {
        let mut command = pondage(environment);
        command.arg("serve").arg("--takeover").arg("-c").arg(&self.file);
        let ports = [self.port, self.http_port, self.redis_port];
        Gateway::launch(command, ports, self.file.clone(), self.directory.clone())
    }

    /// As [`Gateway::successor`], of an ini file of PgBouncer.
    #[track_caller]
    pub fn ini_successor(&self) -> Gateway {
        let mut command = pondage(&[]);
        command.arg("--takeover").arg("--pgbouncer-ini").arg(&self.file);
        let ports = [self.port, self.http_port, self.redis_port];
        Gateway::launch(command, ports, self.file.clone(), self.directory.clone())
    }

    /// As [`Gateway::start`], in place of a process that the test itself plays.
    #[track_caller]
    pub fn taking_over(config: Config) -> Gateway {
        let directory = Arc::new(Directory::new("gateway"));
        let ports = [free_port(), free_port(), free_port()];
        let file = write_file(config, &directory, ports);
        let mut command = pondage(&[]);
        command.arg("serve").arg("--takeover").arg("-c").arg(&file);
        Gateway::launch(command, ports, file, directory)
    }

    /// As [`Gateway::start`], with a socket that a service manager would have made, by this name.
    #[track_caller]
    pub fn activated(config: Config, socket: OwnedFd, name: &str) -> Gateway {
        let directory = Arc::new(Directory::new("gateway"));
        let ports = [free_port(), free_port(), free_port()];
        let file = write_file(config, &directory, ports);
        Gateway::spawn(activated(&file, socket, name), ports, file, directory)
    }

    /// As [`Gateway::activated`], with a socket that must be refused.
    #[track_caller]
    pub fn refused_activated(config: Config, socket: OwnedFd) -> Ended {
        let directory = Directory::new("refused");
        let file = write_file(config, &directory, [free_port(), free_port(), free_port()]);
        Gateway::ended(activated(&file, socket, "postgres"))
    }

    #[track_caller]
    fn launch(
        mut command: Command,
        ports: [u16; 3],
        file: PathBuf,
        directory: Arc<Directory>,
    ) -> Gateway {
        command.stdin(Stdio::null());
        Gateway::spawn(command, ports, file, directory)
    }

    #[track_caller]
    fn spawn(
        mut command: Command,
        [port, http_port, redis_port]: [u16; 3],
        file: PathBuf,
        directory: Arc<Directory>,
    ) -> Gateway {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|e| panic!("{:?}: {e}", binary()));
        let (said, reader) = Said::of(&mut process);
        let reader = Some(reader);
        let mut gateway = Gateway {
            port,
            http_port,
            redis_port,
            file,
            directory,
            process,
            said,
            reader,
            ended: None,
        };
        wait::until("`ready` from the gateway", || {
            if let Some(status) = gateway.try_wait() {
                panic!("the gateway ended with {status}:\n{}", gateway.said.text());
            }
            gateway.said.contains("ready")
        });
        gateway
    }

    /// The configuration.
    pub fn file(&self) -> &Path {
        &self.file
    }

    pub fn address(&self) -> Address {
        Address::tcp("127.0.0.1", self.port)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Everything on stderr so far.
    pub fn said(&self) -> &Said {
        &self.said
    }

    /// A client logged in as `app`.
    #[track_caller]
    pub fn client(&self, database: &Database) -> WireClient {
        WireClient::login(&self.address(), APP, APP_PASSWORD, &database.name)
    }

    /// The console, as `admin`.
    #[track_caller]
    pub fn console(&self) -> WireClient {
        WireClient::login(&self.address(), ADMIN, ADMIN_PASSWORD, "pondage")
    }

    /// The rows of a SHOW command, each by column name; NULL is an empty string.
    #[track_caller]
    pub fn show(&self, what: &str) -> Vec<BTreeMap<String, String>> {
        self.console().table(&format!("show {what}"))
    }

    /// A page of the HTTP door, with its head, as `admin` sees it.
    ///
    /// # Errors
    /// The gateway is not there.
    pub fn page(&self, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.http_port))?;
        // `admin:admin secret`.
        const BASIC: &str = "Authorization: Basic YWRtaW46YWRtaW4gc2VjcmV0";
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\n{BASIC}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok(page)
    }

    /// One of the figures for Prometheus, over all databases and users.
    #[track_caller]
    pub fn figure(&self, name: &str) -> u64 {
        let page = self.page("/metrics").expect("the HTTP door answers");
        let of_it = page.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
        of_it.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Replaces the configuration file, keeping the doors, without telling the gateway.
    pub fn rewrite(&self, config: Config) {
        write_file(config, &self.directory, [self.port, self.http_port, self.redis_port]);
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("the gateway runs");
    }

    /// The exit status, when it has ended.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.process.try_wait().expect("a child of ours");
            if self.ended.is_some() {
                // Its last words are often why it ended.
                self.reader.take().map(JoinHandle::join);
            }
        }
        self.ended
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        wait::for_some("the end of the gateway", || self.try_wait())
    }

    /// Runs the binary with `arguments` to its end, for commands that do not serve.
    #[track_caller]
    pub fn command(arguments: &[&str], environment: &[(&str, &str)]) -> Ended {
        let mut command = pondage(environment);
        command.args(arguments).stdin(Stdio::null());
        Gateway::ended(command)
    }

    #[track_caller]
    fn ended(mut command: Command) -> Ended {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|e| panic!("{:?}: {e}", binary()));
        let (said, errors) = Said::of(&mut process);
        let stdout = process.stdout.take().expect("piped");
        let output = std::thread::spawn(move || std::io::read_to_string(stdout));
        let ended = wait::within(wait::DEADLINE, || process.try_wait().expect("a child of ours"));
        let Some(status) = ended else {
            let _ = process.kill();
            panic!("{command:?} still runs:\n{}", said.text());
        };
        errors.join().expect("the reader of stderr");
        let stdout = output.join().expect("the reader of stdout").expect("UTF-8 on stdout");
        Ended { status, stdout, stderr: said.text() }
    }

    /// As [`Gateway::start`] for a configuration that must be refused: waits for the end.
    #[track_caller]
    pub fn refused(config: Config) -> Ended {
        let directory = Directory::new("refused");
        let file = write_file(config, &directory, [free_port(), free_port(), free_port()]);
        Gateway::command(&["serve", "-c", &file.display().to_string()], &[])
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.process.kill();
            let _ = self.process.wait();
            eprintln!("--- the gateway said:\n{}--- end", self.said.text());
            return;
        }
        if self.try_wait().is_none() {
            self.signal(Signal::TERM);
            let limit = Duration::from_secs(15);
            if wait::within(limit, || self.try_wait()).is_none() {
                let _ = self.process.kill();
                let _ = self.process.wait();
                panic!("the gateway still ran {limit:?} after SIGTERM:\n{}", self.said.text());
            }
            let status = self.wait();
            assert!(status.success(), "the gateway ended with {status}:\n{}", self.said.text());
        }
        assert!(!self.said.contains("panicked"), "a panic in the gateway:\n{}", self.said.text());
    }
}

impl Said {
    /// Reads the child's stderr on a thread of its own until its end.
    fn of(process: &mut Child) -> (Said, JoinHandle<()>) {
        let said = Said::default();
        let lines = said.clone();
        let stderr = BufReader::new(process.stderr.take().expect("piped"));
        let reader = std::thread::spawn(move || {
            for line in stderr.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                lines.0.lock().expect("no panic while held").push(line);
            }
        });
        (said, reader)
    }

    pub fn contains(&self, text: &str) -> bool {
        self.0.lock().expect("no panic while held").iter().any(|line| line.contains(text))
    }

    pub fn text(&self) -> String {
        self.0.lock().expect("no panic while held").iter().fold(String::new(), |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        })
    }
}

/// Adds the doors where `config` names none, and puts what only the kit knows in place of
/// `{port}`, `{http_port}`, `{redis_port}` and `{directory}`.
fn write_file(mut config: Config, directory: &Directory, ports: [u16; 3]) -> PathBuf {
    let [port, http_port, redis_port] = ports;
    for (path, value) in [
        ("listen.postgres", Value::from(["127.0.0.1:{port}"])),
        ("listen.http", Value::from("127.0.0.1:{http_port}")),
    ] {
        if config.get(path).is_none() {
            config = config.set(path, value);
        }
    }
    let text = config
        .toml()
        .replace("{port}", &port.to_string())
        .replace("{http_port}", &http_port.to_string())
        .replace("{redis_port}", &redis_port.to_string())
        .replace("{directory}", &directory.path().display().to_string());
    let file = directory.path().join("pondage.toml");
    std::fs::write(&file, text).expect("the configuration file");
    file
}

/// `pondage serve` as a service manager starts it that has made a socket.
fn activated(file: &Path, socket: OwnedFd, name: &str) -> Command {
    let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ exec \"$0\" serve -c \"$1\"";
    let mut command = Command::new("sh");
    command.env_remove("PONDAGE_BIN").args(["-c", script]).arg(binary()).arg(file);
    command.envs([("LISTEN_FDS", "1"), ("LISTEN_FDNAMES", name)]).stdin(socket);
    command
}

/// The binary about to run, with `environment` and nothing of ours that it reads as an option.
fn pondage(environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("PONDAGE_") || text.starts_with("PG") || text == "DATABASE_URL" {
            command.env_remove(name);
        }
    }
    command.envs(environment.iter().copied());
    command
}

/// `PONDAGE_BIN`, or the binary of the same profile as these tests, which `make test` builds
/// first: cargo builds the binaries of a package for its own tests only.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("PONDAGE_BIN") {
        return path.into();
    }
    let path = profile_directory().join("pondage");
    assert!(path.is_file(), "{} is missing: cargo build -p pondage", path.display());
    path
}
