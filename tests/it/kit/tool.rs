//! The programs that come with PostgreSQL, run against a gateway.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use super::cluster::{Database, APP, APP_PASSWORD};
use super::place::postgres_program;
use super::{wait, Gateway};

/// Most of the time a tool may take; pgbench on a loaded machine is the slowest.
const LIMIT: Duration = Duration::from_secs(120);

/// A program about to be run as the user `app`, by the variables that libpq reads.
pub struct Tool {
    name: String,
    command: Command,
    input: Vec<u8>,
}

/// What it did.
#[derive(Debug)]
pub struct Done {
    what: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Tool {
    #[track_caller]
    pub fn new(name: &str, gateway: &Gateway, database: &Database) -> Tool {
        let mut command = Command::new(postgres_program(name));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", gateway.port.to_string())
            .env("PGUSER", APP)
            .env("PGPASSWORD", APP_PASSWORD)
            .env("PGDATABASE", &database.name)
            .env("PGCONNECT_TIMEOUT", "20")
            .env("PSQLRC", "/dev/null")
            .env("LC_ALL", "C");
        Tool { name: name.to_owned(), command, input: Vec::new() }
    }

    /// psql without headers and padding.
    #[track_caller]
    pub fn psql(gateway: &Gateway, database: &Database) -> Tool {
        Tool::new("psql", gateway, database).args(["-X", "-A", "-t", "-q"])
    }

    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Tool {
        self.command.args(arguments);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Tool {
        self.command.env(name, value);
        self
    }

    /// As another user of the system, which needs root.
    pub fn uid(mut self, uid: u32) -> Tool {
        self.command.uid(uid);
        self
    }

    /// What it reads on stdin; nothing unless set.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Tool {
        self.input = input.into();
        self
    }

    /// Runs it to its end, however that is.
    #[track_caller]
    pub fn outcome(mut self) -> Done {
        let what = format!("{:?}", self.command);
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = self.command.spawn().unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let mut stdin = process.stdin.take().expect("piped");
        let input = self.input;
        // A program may end without having read all its input.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let stdout = read_all(process.stdout.take().expect("piped"));
        let stderr = read_all(process.stderr.take().expect("piped"));
        let ended = wait::within(LIMIT, || process.try_wait().expect("a child of ours"));
        if ended.is_none() {
            let _ = process.kill();
            let _ = process.wait();
        }
        writer.join().expect("the writer of stdin");
        let stdout = stdout.join().expect("the reader of stdout");
        let stderr = stderr.join().expect("the reader of stderr");
        let Some(status) = ended else {
            panic!("{what} still ran after {LIMIT:?}\n{stdout}\n{stderr}");
        };
        Done { what, status, stdout, stderr }
    }

    /// Runs it; it must succeed. Returns its standard output.
    #[track_caller]
    pub fn run(self) -> String {
        let done = self.outcome();
        done.expect_status(0);
        done.stdout
    }
}

impl Done {
    #[track_caller]
    pub fn expect_status(&self, code: i32) {
        let Done { what, status, stdout, stderr } = self;
        assert_eq!(status.code(), Some(code), "{what}: {status}\n{stdout}\n{stderr}");
    }
}

fn read_all(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
