//! A private PostgreSQL, made with initdb and gone when the test process is, however it ends.
//!
//! Roles, each with the password of its constant: `postgres` and `app` (scram), `legacy` (md5),
//! `plain` (clear text), `tlsonly` (scram, refused without TLS), `trusting` (no password).

use std::fs;
use std::os::unix::fs::{chown, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use rustix::process::{kill_process, Pid, Signal};

use super::certificates::{self, Certificates};
use super::place::{free_port, postgres_program, Directory};
use super::wait;
use super::wireclient::{Address, WireClient};

pub const SUPERUSER: &str = "postgres";
pub const SUPERUSER_PASSWORD: &str = "postgres secret";
/// The role of everyday tests: owns every [`Database`], may replicate, is no superuser.
pub const APP: &str = "app";
pub const APP_PASSWORD: &str = "app secret";
/// Of `legacy`, `plain` and `tlsonly`.
pub const OTHER_PASSWORD: &str = "other secret";

/// The cluster that all tests of this process share.
pub fn cluster() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| Cluster::start("shared", &[]))
}

/// A running PostgreSQL on 127.0.0.1, ::1 and a Unix socket, TLS on, `wal_level = logical`.
#[derive(Debug)]
pub struct Cluster {
    /// The directory of everything, the Unix socket too.
    pub directory: PathBuf,
    pub port: u16,
    pub certificates: Certificates,
    account: Option<Account>,
    /// A shell that waits for the end of its standard input, then stops the server at once and
    /// removes the directory: the one way that works after a crash of the tests as well.
    guard: Option<Child>,
}

/// PostgreSQL refuses to run as root.
#[derive(Debug, Clone, Copy)]
struct Account {
    uid: u32,
    gid: u32,
}

/// A database of its own for one test, owned by `app`.
#[derive(Debug, Clone)]
pub struct Database {
    pub name: String,
}

impl Cluster {
    /// A cluster of its own for a test that stops the server or needs other settings; each of
    /// `settings` is a line of postgresql.conf.
    pub fn start(what: &str, settings: &[&str]) -> Cluster {
        let cluster = Cluster::empty(what);
        cluster.init();
        cluster.configure(settings);
        cluster.launch();
        cluster.create_roles();
        cluster
    }

    /// Another server that follows this one by its log, until it is promoted.
    #[track_caller]
    pub fn standby(&self) -> Cluster {
        let standby = Cluster::empty("standby");
        let port = self.port;
        let conninfo = format!("host=127.0.0.1 port={port} user={APP} password='{APP_PASSWORD}'");
        let data = standby.data();
        let options = ["-D", &data, "-d", &conninfo, "-R", "-X", "stream", "-c", "fast", "-N"];
        standby.run("pg_basebackup", &options);
        let conf = Path::new(&data).join("postgresql.auto.conf");
        // The last line of a setting counts.
        let copied = fs::read_to_string(&conf).expect("postgresql.auto.conf");
        fs::write(&conf, format!("{copied}\n{}", standby.settings())).expect("its own settings");
        standby.launch();
        standby
    }

    /// A directory with certificates, a port, and nothing that runs.
    fn empty(what: &str) -> Cluster {
        let directory = Directory::new(what);
        let certificates = certificates::write_to(directory.path());
        fs::set_permissions(&certificates.key, fs::Permissions::from_mode(0o600)).expect("chmod");
        let account = rustix::process::geteuid().is_root().then(unprivileged_account);
        if let Some(Account { uid, gid }) = account {
            for path in [directory.path(), &certificates.cert, &certificates.key] {
                chown(path, Some(uid), Some(gid)).expect("chown as root");
            }
        }
        let mut cluster = Cluster {
            directory: directory.keep(),
            port: free_port(),
            certificates,
            account,
            guard: None,
        };
        cluster.guard = Some(cluster.spawn_guard());
        cluster
    }

    /// Where clients reach it by TCP.
    pub fn address(&self) -> Address {
        Address::tcp("127.0.0.1", self.port)
    }

    /// Logged in as superuser, directly, without a gateway.
    #[track_caller]
    pub fn superuser(&self, database: &str) -> WireClient {
        WireClient::login(&self.address(), SUPERUSER, SUPERUSER_PASSWORD, database)
    }

    /// Creates a database with a name that no other test has.
    #[track_caller]
    pub fn database(&self) -> Database {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let name = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.superuser("postgres").run(&format!("create database {name} owner {APP}"));
        Database { name }
    }

    /// How many server processes serve clients in `database` now; the gateway's own connection to
    /// the catalogues is none of the pool's.
    #[track_caller]
    pub fn backends(&self, database: &Database) -> usize {
        let count = format!(
            "select count(*) from pg_stat_activity \
             where datname = '{}' and backend_type = 'client backend' \
             and application_name <> 'pondage'",
            database.name
        );
        self.superuser("postgres").one(&count).parse().expect("a count")
    }

    /// Starts the server after [`Cluster::stop`] and waits until it accepts connections.
    #[track_caller]
    pub fn launch(&self) {
        let log = self.directory.join("log");
        let (data, log) = (self.data(), log.display().to_string());
        self.run("pg_ctl", &["start", "-w", "-t", "60", "-s", "-D", &data, "-l", &log]);
    }

    /// Stops the server; `mode` is `fast` or `immediate` (as in a crash).
    #[track_caller]
    pub fn stop(&self, mode: &str) {
        self.run("pg_ctl", &["stop", "-w", "-t", "60", "-s", "-m", mode, "-D", &self.data()]);
    }

    /// Kills the server and all its processes where they are; [`Cluster::launch`] recovers.
    #[track_caller]
    pub fn crash(&self) {
        let (postmaster, children) = self.processes();
        // The postmaster first, so that it does not look after the others.
        for pid in [postmaster].iter().chain(&children) {
            let _ = kill_process(*pid, Signal::KILL);
        }
        self.ended(postmaster, &children);
    }

    /// Kills the postmaster alone and waits until its children have seen that and ended by
    /// themselves; [`Cluster::launch`] recovers.
    #[track_caller]
    pub fn kill_postmaster(&self) {
        let (postmaster, children) = self.processes();
        kill_process(postmaster, Signal::KILL).expect("the postmaster runs");
        self.ended(postmaster, &children);
    }

    /// The postmaster and its children.
    #[track_caller]
    fn processes(&self) -> (Pid, Vec<Pid>) {
        let lock = self.directory.join("data/postmaster.pid");
        let text = fs::read_to_string(&lock).expect("postmaster.pid");
        let postmaster = text.lines().next().expect("a process id").to_owned();
        let children = format!("/proc/{postmaster}/task/{postmaster}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        let pid =
            |text: &str| Pid::from_raw(text.parse().expect("a process id")).expect("not zero");
        (pid(&postmaster), children.split_whitespace().map(pid).collect())
    }

    /// Waits for the end of all processes of a killed server.
    #[track_caller]
    fn ended(&self, postmaster: Pid, children: &[Pid]) {
        let ended = |pid: &Pid| {
            // A zombie is one whose parent has not asked yet.
            let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            stat.map_or(true, |stat| stat.contains(") Z "))
        };
        wait::until("the end of the server's processes", || {
            ended(&postmaster) && children.iter().all(ended)
        });
        // It counts zombies among the living.
        for path in ["data/postmaster.pid", &format!(".s.PGSQL.{}.lock", self.port)] {
            let path = self.directory.join(path);
            fs::remove_file(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
    }

    fn data(&self) -> String {
        self.directory.join("data").display().to_string()
    }

    fn init(&self) {
        let options = ["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"];
        let data = self.data();
        self.run("initdb", &[&options[..], &["-D", &data]].concat());
    }

    /// Lines that every server has.
    fn settings(&self) -> String {
        let socket = self.directory.display();
        let cert = self.certificates.cert.display();
        let key = self.certificates.key.display();
        let port = self.port;
        // While nobody commits, what open transactions have written is flushed, and so told to
        // streams, only after many times `wal_writer_delay`: seconds, if that is not made short.
        format!(
            "port = {port}\n\
             listen_addresses = '127.0.0.1, ::1'\n\
             unix_socket_directories = '{socket}'\n\
             ssl = on\nssl_cert_file = '{cert}'\nssl_key_file = '{key}'\n\
             max_connections = 400\nshared_buffers = 64MB\nwal_level = logical\n\
             fsync = off\nfull_page_writes = off\n\
             max_wal_senders = 60\nmax_replication_slots = 60\n\
             wal_writer_delay = 10ms\n\
             timezone = 'UTC'\nlog_min_messages = warning\n"
        )
    }

    fn configure(&self, settings: &[&str]) {
        let hba = "local   all          all                    trust\n\
                   hostssl all          tlsonly   all          scram-sha-256\n\
                   host    all          tlsonly   all          reject\n\
                   host    all          legacy    all          md5\n\
                   host    all          plain     all          password\n\
                   host    all          trusting  all          trust\n\
                   host    all          all       127.0.0.1/32 scram-sha-256\n\
                   host    all          all       ::1/128      scram-sha-256\n\
                   host    replication  all       127.0.0.1/32 scram-sha-256\n";
        let data = Path::new(&self.data()).to_owned();
        let conf = format!("{}{}\n", self.settings(), settings.join("\n"));
        fs::write(data.join("postgresql.auto.conf"), conf).expect("postgresql.auto.conf");
        fs::write(data.join("pg_hba.conf"), hba).expect("pg_hba.conf");
    }

    fn create_roles(&self) {
        let socket = Address::unix(&self.directory, self.port);
        let mut sql = WireClient::login(&socket, SUPERUSER, "", "postgres");
        sql.run("set password_encryption = 'scram-sha-256'");
        sql.run(&format!("alter role {SUPERUSER} password '{SUPERUSER_PASSWORD}'"));
        sql.run(&format!("create role {APP} login replication password '{APP_PASSWORD}'"));
        sql.run(&format!("create role plain login password '{OTHER_PASSWORD}'"));
        sql.run(&format!("create role tlsonly login password '{OTHER_PASSWORD}'"));
        sql.run("create role trusting login");
        sql.run("set password_encryption = 'md5'");
        sql.run(&format!("create role legacy login password '{OTHER_PASSWORD}'"));
    }

    /// Runs a program of PostgreSQL as the account of the server, and panics when it fails.
    #[track_caller]
    fn run(&self, program: &str, arguments: &[&str]) {
        let path = postgres_program(program);
        let mut command = Command::new(&path);
        command.args(arguments).current_dir(&self.directory).stdin(Stdio::null());
        self.as_account(&mut command);
        // Not captured by pipes: the server that pg_ctl leaves behind would hold them open.
        let said = self.directory.join(format!("{program}.out"));
        let file = fs::File::create(&said).unwrap_or_else(|e| panic!("{}: {e}", said.display()));
        command.stdout(file.try_clone().expect("dup")).stderr(file);
        let status = command.status().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if !status.success() {
            let said = fs::read_to_string(&said).unwrap_or_default();
            let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            panic!("{program} {arguments:?}: {status}\n{said}\n{log}");
        }
    }

    fn spawn_guard(&self) -> Child {
        const SCRIPT: &str = "cat >/dev/null; \"$0\" stop -m immediate -s -D \"$1/data\"; \
                              rm -rf \"$1\"";
        let mut command = Command::new("sh");
        command.arg("-c").arg(SCRIPT).arg(postgres_program("pg_ctl")).arg(&self.directory);
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C in a terminal must end the tests, not what cleans up after them.
        command.process_group(0);
        self.as_account(&mut command);
        command.spawn().expect("sh")
    }

    fn as_account(&self, command: &mut Command) {
        if let Some(Account { uid, gid }) = self.account {
            command.uid(uid).gid(gid);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
    }
}

impl Database {
    /// Runs statements as superuser, directly.
    #[track_caller]
    pub fn run(&self, sql: &str) {
        cluster().superuser(&self.name).run(sql);
    }

    /// The one value that `sql` gives, asked as superuser, directly.
    #[track_caller]
    pub fn one(&self, sql: &str) -> String {
        cluster().superuser(&self.name).one(sql)
    }
}

fn unprivileged_account() -> Account {
    let passwd = fs::read_to_string("/etc/passwd").expect("/etc/passwd");
    let find = |name: &str| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2);
        Some(Account { uid: ids.next()?.parse().ok()?, gid: ids.next()?.parse().ok()? })
    };
    find("postgres").or_else(|| find("nobody")).expect("an account `postgres` or `nobody`")
}
