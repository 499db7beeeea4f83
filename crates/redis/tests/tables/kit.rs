//! A PostgreSQL of this test's own, and sessions that are driven by [`Calls`] over a socket.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use backend::calls::{Calls, Heard, Params};
use redis::batch::{Batch, Fence};
use redis::statements::{self, Statement};
use redis::store::Row;
use redis::{loaded, schema};
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
        let name = format!("pondage-redis-test-{}", std::process::id());
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

/// A database of its own for one test.
#[derive(Debug, Clone)]
pub struct Database(pub String);

impl Database {
    /// With nothing in it.
    pub fn empty() -> Database {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let name = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Session::open("postgres").run(&format!("CREATE DATABASE {name}"));
        Database(name)
    }

    /// With the schema.
    pub fn new() -> Database {
        let database = Database::empty();
        database.sql().run(&schema::install());
        database
    }

    /// A session like anybody's.
    pub fn sql(&self) -> Session {
        Session::open(&self.0)
    }

    /// A session as the gateway has them.
    pub fn engine(&self) -> Session {
        let mut session = Session::open(&self.0);
        session.run(schema::SESSION);
        for statement in statements::ALL {
            statement.prepare(&mut session.calls, 0).expect("appended");
        }
        session.sync().expect("all statements can be prepared");
        session
    }
}

/// SQLSTATE and detail.
pub type Refusal = (String, String);

pub type Values = Vec<Option<Vec<u8>>>;

#[derive(Debug)]
pub struct Session {
    socket: UnixStream,
    calls: Calls,
    /// Payloads of notifications that have come.
    pub heard: Vec<String>,
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

impl Session {
    fn open(database: &str) -> Session {
        Session { socket: log_in(database), calls: Calls::new(), heard: Vec::new() }
    }

    /// Sends what is appended and hears until all of it is answered.
    fn finish(&mut self, mut row: impl FnMut(backend::calls::Columns<'_>)) -> Result<(), Refusal> {
        let out = std::mem::take(&mut self.calls.out);
        self.socket.write_all(&out).expect("sent");
        let mut result = Ok(());
        let mut buffer = vec![0; 65_536];
        while self.calls.unanswered() > 0 {
            let read = self.socket.read(&mut buffer).expect("an answer");
            assert!(read > 0, "the server has gone");
            let heard = &mut self.heard;
            let mut on = |what: Heard<'_>| match what {
                Heard::Row { columns, .. } => row(columns),
                Heard::Failed { error, .. } if result.is_ok() => {
                    let detail = match error.sqlstate {
                        "RD001" | "RD002" | "RD003" => error.detail.to_owned(),
                        _ => format!("{} {}", error.message, error.detail),
                    };
                    result = Err((error.sqlstate.to_owned(), detail));
                }
                Heard::Synced { committed, .. } => {
                    assert!(committed || result.is_err(), "a group fails for a reason");
                }
                Heard::Notification { channel, payload } => {
                    assert_eq!(channel, redis::changes::CHANNEL.as_bytes());
                    heard.push(String::from_utf8(payload.to_vec()).expect("ASCII"));
                }
                _ => {}
            };
            self.calls.receive(&buffer[..read], &mut on).expect("sound replies");
        }
        result
    }

    pub fn sync(&mut self) -> Result<(), Refusal> {
        self.calls.sync().expect("appended");
        self.finish(|_| {})
    }

    /// Runs statements; their rows, values with `|` between.
    pub fn attempt(&mut self, sql: &str) -> Result<Vec<String>, Refusal> {
        self.calls.query(0, sql).expect("appended");
        let mut rows = Vec::new();
        self.finish(|mut columns| {
            let mut words = Vec::new();
            while columns.left() > 0 {
                let value = columns.raw().expect("a column");
                words.push(value.map_or("-".into(), |v| String::from_utf8_lossy(v).into_owned()));
            }
            rows.push(words.join("|"));
        })?;
        Ok(rows)
    }

    #[track_caller]
    pub fn run(&mut self, sql: &str) -> Vec<String> {
        match self.attempt(sql) {
            Ok(rows) => rows,
            Err((code, detail)) => panic!("{sql:.200}: {code} {detail}"),
        }
    }

    /// The one value of the one row.
    #[track_caller]
    pub fn one(&mut self, sql: &str) -> String {
        self.run(sql).pop().unwrap_or_default()
    }

    /// Calls a prepared statement; its rows as they came.
    pub fn call(
        &mut self,
        statement: &Statement,
        write: impl FnOnce(&mut Params<'_>),
    ) -> Result<Vec<Values>, Refusal> {
        self.calls.call(0, statement.name, write).expect("appended");
        self.calls.sync().expect("appended");
        let mut rows = Vec::new();
        self.finish(|mut columns| {
            let mut row = Vec::new();
            while columns.left() > 0 {
                row.push(columns.raw().expect("a column").map(<[u8]>::to_vec));
            }
            rows.push(row);
        })?;
        Ok(rows)
    }

    pub fn apply(&mut self, batch: &Batch, fences: &[Fence]) -> Result<(), Refusal> {
        batch.call(&mut self.calls, 0, fences).expect("appended");
        self.sync()
    }

    pub fn load(&mut self, db: i16, keys: &[&[u8]]) -> Vec<(Box<[u8]>, Row)> {
        let write = |params: &mut Params<'_>| {
            params.int2(db);
            let mut array = params.array(backend::calls::oid::BYTEA);
            keys.iter().for_each(|key| array.bytea(&redis::name::stored(key)));
        };
        self.calls.call(0, statements::LOAD.name, write).expect("appended");
        self.calls.sync().expect("appended");
        let mut rows = Vec::new();
        self.finish(|columns| rows.push(loaded::read(columns).expect("a sound row")))
            .expect("keys are loaded");
        rows
    }

    /// Takes shards over: for each id, epoch, applied, base, last in the journal.
    pub fn take(&mut self, shards: &[i16], owner: &str) -> Vec<[i64; 5]> {
        let write = |params: &mut Params<'_>| {
            let mut array = params.array(backend::calls::oid::INT2);
            shards.iter().for_each(|shard| array.int2(*shard));
            drop(array);
            params.text(owner);
        };
        let rows = self.call(&statements::TAKE, write).expect("shards are taken");
        rows.iter().map(|row| std::array::from_fn(|at| integer(row[at].as_deref()))).collect()
    }
}

/// An integer of any size.
pub fn integer(value: Option<&[u8]>) -> i64 {
    let value = value.expect("not NULL");
    value.iter().fold(if value[0] >= 0x80 { -1 } else { 0 }, |n, byte| n << 8 | i64::from(*byte))
}
