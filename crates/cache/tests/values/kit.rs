//! A PostgreSQL of this test's own, and a session in it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use backend::calls::{Calls, Heard};
use wire::pg::{backend as server, frame, startup};

/// The cluster that all tests of this process share.
#[derive(Debug)]
struct Cluster {
    /// Where its socket is.
    directory: PathBuf,
    /// Stops the server and removes its directory when this process ends, however it ends.
    _guard: Child,
}

fn cluster() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(Cluster::start)
}

impl Cluster {
    fn start() -> Cluster {
        let name = format!("pondage-cache-test-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).expect("a directory");
        let account = rustix::process::geteuid().is_root().then(account);
        if let Some((uid, gid)) = account {
            chown(&directory, Some(uid), Some(gid)).expect("chown as root");
        }
        let data = directory.join("data").display().to_string();
        let program = |name: &str| {
            let mut command = Command::new(postgres(name));
            command.current_dir(&directory).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            if let Some((uid, gid)) = account {
                command.uid(uid).gid(gid);
            }
            command
        };
        let options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N", "-D"];
        let made = program("initdb").args(options).arg(&data).status().expect("initdb");
        assert!(made.success(), "initdb: {made}");
        let settings = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\n\
             fsync = off\nfull_page_writes = off\nshared_buffers = 32MB\n",
            directory.display()
        );
        fs::write(Path::new(&data).join("postgresql.auto.conf"), settings).expect("settings");
        let log = directory.join("log").display().to_string();
        let arguments = ["start", "-w", "-s", "-t", "60", "-D", &data, "-l", &log];
        let started = program("pg_ctl").args(arguments).status().expect("pg_ctl");
        assert!(started.success(), "{}", fs::read_to_string(&log).unwrap_or_default());
        let mut guard = Command::new("sh");
        guard.arg("-c").arg("cat >/dev/null; \"$0\" stop -m immediate -s -D \"$1\"; rm -rf \"$2\"");
        guard.arg(postgres("pg_ctl")).arg(&data).arg(&directory);
        guard.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        guard.process_group(0);
        if let Some((uid, gid)) = account {
            guard.uid(uid).gid(gid);
        }
        let guard = guard.spawn().expect("sh");
        Cluster { directory, _guard: guard }
    }
}

/// PostgreSQL refuses to run as root.
fn account() -> (u32, u32) {
    let passwd = fs::read_to_string("/etc/passwd").expect("/etc/passwd");
    let find = |name: &str| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2);
        Some((ids.next()?.parse().ok()?, ids.next()?.parse().ok()?))
    };
    find("postgres").or_else(|| find("nobody")).expect("an account `postgres` or `nobody`")
}

/// A program of the newest PostgreSQL that Debian has installed, else of PATH.
fn postgres(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())))
        .max();
    newest.map_or_else(|| name.into(), |(_, path)| path.join("bin").join(name))
}

/// A connection that is logged in and idle.
pub fn log_in(database: &str) -> UnixStream {
    let path = cluster().directory.join(".s.PGSQL.5432");
    let mut socket = UnixStream::connect(path).expect("a connection");
    let mut out = Vec::new();
    startup::put_startup(&mut out, 0, &[("user", "postgres"), ("database", database)]);
    socket.write_all(&out).expect("sent");
    let mut input = Vec::new();
    loop {
        let mut some = [0; 4096];
        let read = socket.read(&mut some).expect("an answer");
        assert!(read > 0, "refused: {}", input.escape_ascii());
        input.extend_from_slice(&some[..read]);
        let mut at = 0;
        while let Some(head) = frame::header(&input[at..]).expect("a header") {
            assert_ne!(head.tag, server::tag::ERROR, "{}", input.escape_ascii());
            if head.tag == server::tag::READY_FOR_QUERY {
                return socket;
            }
            at += head.total;
        }
    }
}

/// One connection.
#[derive(Debug)]
pub struct Session {
    socket: UnixStream,
    calls: Calls,
}

impl Session {
    pub fn open() -> Session {
        Session { socket: log_in("postgres"), calls: Calls::default() }
    }

    /// Runs statements; their rows as text.
    #[track_caller]
    pub fn run(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        self.calls.query(0, sql).expect("appended");
        let out = std::mem::take(&mut self.calls.out);
        self.socket.write_all(&out).expect("sent");
        let mut rows = Vec::new();
        let mut buffer = vec![0; 65_536];
        while self.calls.unanswered() > 0 {
            let read = self.socket.read(&mut buffer).expect("an answer");
            assert!(read > 0, "the server has gone");
            let mut on = |what: Heard<'_>| match what {
                Heard::Row { mut columns, .. } => {
                    let mut row = Vec::new();
                    while columns.left() > 0 {
                        let value = columns.raw().expect("a column");
                        row.push(value.map(|value| String::from_utf8_lossy(value).into_owned()));
                    }
                    rows.push(row);
                }
                Heard::Failed { error, .. } => panic!("{sql:.300}: {}", error.message),
                _ => {}
            };
            self.calls.receive(&buffer[..read], &mut on).expect("sound replies");
        }
        rows
    }
}
