//! What goes wrong: the faults, one function each.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::Rng;
use rustix::process::{kill_process, Pid, Signal};

use crate::client::Shared;
use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::gateway::ADMIN_PASSWORD;
use crate::kit::{Config, Gateway};
use crate::proxy::Proxy;
use crate::sql::{block_on, connect, Place};

/// The room of the file system that becomes full.
const SMALL_DISK: &str = "size=48m";

/// Longer than Pondage lets its clients wait for PostgreSQL.
const LONG: Duration = Duration::from_millis(6_500);

/// Everything that clients are not.
pub struct World {
    pub cluster: Cluster,
    pub place: Place,
    pub shared: Arc<Shared>,
    proxy: Proxy,
    gateway: Option<Gateway>,
    /// A file system with the tables on it; none where mounting is not allowed.
    disk: Option<Disk>,
    pub writers: i64,
    /// Writes go to the journal first; then SQL only reads, for what it writes may be overwritten.
    pub journal: bool,
    /// What the gateway killed last has said.
    killed_said: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    KillGateway,
    KillGatewayTwice,
    KillBackend,
    TerminateBackends,
    CrashPostgres,
    CutConnection,
    HoldBytes,
    PauseBackends,
    StatementTimeout,
    DiskFull,
    Takeover,
    Away,
}

/// Faults and how often they come.
const FAULTS: &[(Fault, u32)] = &[
    (Fault::KillGateway, 30),
    (Fault::KillGatewayTwice, 5),
    (Fault::KillBackend, 6),
    (Fault::TerminateBackends, 14),
    (Fault::CrashPostgres, 6),
    (Fault::CutConnection, 16),
    (Fault::HoldBytes, 8),
    (Fault::PauseBackends, 8),
    (Fault::StatementTimeout, 4),
    (Fault::DiskFull, 4),
    (Fault::Takeover, 5),
    (Fault::Away, 1),
];

impl Fault {
    pub fn by_chance(dice: &mut StdRng) -> Fault {
        let all: u32 = FAULTS.iter().map(|(_, weight)| weight).sum();
        let mut at = dice.random_range(0..all);
        for (fault, weight) in FAULTS {
            if at < *weight {
                return *fault;
            }
            at -= weight;
        }
        Fault::KillGateway
    }

    pub fn named(name: &str) -> Option<Fault> {
        FAULTS.iter().map(|(fault, _)| *fault).find(|fault| format!("{fault:?}") == name)
    }
}

impl World {
    /// `journal`: one that must use the journal, or must not.
    pub fn start(dice: &mut StdRng, journal: Option<bool>) -> World {
        let cluster = Cluster::start("kills", &["fsync = on", "full_page_writes = on"]);
        let disk = Disk::mount(&cluster);
        cluster.superuser("postgres").run(&format!("create database kills owner {APP}"));
        if let Some(disk) = &disk {
            let mut sql = cluster.superuser("postgres");
            sql.run(&format!("create tablespace small location '{}'", disk.data().display()));
            sql.run("alter database kills set tablespace small");
        }
        let proxy = Proxy::start(cluster.port);
        let place = Place { port: cluster.port, database: "kills".to_owned() };
        let writers = [1, 2, 4][dice.random_range(0..3)];
        let journal = journal.unwrap_or(dice.random_bool(0.3));
        let shared = Arc::default();
        let mut world = World {
            cluster,
            place,
            shared,
            proxy,
            gateway: None,
            disk,
            writers,
            journal,
            killed_said: String::new(),
        };
        world.start_gateway(dice);
        world
    }

    pub fn start_gateway(&mut self, dice: &mut StdRng) {
        let gateway = self.another_gateway(dice);
        self.shared.port.store(gateway.redis_port, Ordering::Relaxed);
        self.gateway = Some(gateway);
    }

    fn another_gateway(&self, dice: &mut StdRng) -> Gateway {
        let journaled: &[i64] = if self.journal { &[0] } else { &[] };
        let config = Config::default()
            .set("redis.journal_databases", journaled)
            .set("auth.method", "trust")
            .set("auth.admin_users", ["admin"])
            .set("runtime.workers", dice.random_range(1..=2i64))
            .set("runtime.shutdown_timeout", "2s")
            .set("users.app.password", APP_PASSWORD)
            .set("users.admin.password", ADMIN_PASSWORD)
            .set("databases.kills.host", "127.0.0.1")
            .set("databases.kills.port", i64::from(self.proxy.port))
            .set("databases.kills.dbname", "kills")
            .set("listen.redis", "127.0.0.1:{redis_port}")
            .set("redis.user", APP)
            .set("redis.default_user", APP)
            .set("redis.writers", self.writers)
            // The least there is: with the ballast, copies are dropped all the time.
            .set("redis.memory", if dice.random_bool(0.5) { "1MiB" } else { "64MiB" });
        Gateway::start(config)
    }

    pub fn kill_gateway(&mut self) {
        if let Some(mut gateway) = self.gateway.take() {
            gateway.signal(Signal::KILL);
            gateway.wait();
            self.killed_said = gateway.said().text();
        }
    }

    /// Whether the gateway lives though nobody has killed it.
    pub fn gateway_lives(&mut self) -> bool {
        self.gateway.as_mut().is_some_and(|gateway| gateway.try_wait().is_none())
    }

    /// What this gateway and the one before have said.
    pub fn said(&self) -> String {
        let now = self.gateway.as_ref().map_or_else(String::new, |gateway| gateway.said().text());
        format!("{}-- killed\n{now}", self.killed_said)
    }

    /// Makes the fault and mends it. False: it can't be had here.
    pub fn strike(&mut self, fault: Fault, dice: &mut StdRng) -> bool {
        match fault {
            Fault::KillGateway => {
                self.kill_gateway();
                self.start_gateway(dice);
            }
            Fault::KillGatewayTwice => {
                for _ in 0..2 {
                    self.kill_gateway();
                    self.start_gateway(dice);
                    wait(dice, 1, 60);
                }
            }
            Fault::KillBackend => {
                self.each_backend(1, Signal::KILL);
                wait(dice, 50, 200);
            }
            Fault::TerminateBackends => {
                for _ in 0..dice.random_range(1..4) {
                    self.terminate(dice.random_range(1..4));
                    wait(dice, 1, 80);
                }
            }
            Fault::CrashPostgres => {
                self.cluster.crash();
                wait(dice, 1, 200);
                self.cluster.launch();
            }
            Fault::CutConnection => self.cut(dice),
            Fault::HoldBytes => {
                let (there, back) = (dice.random_bool(0.6), dice.random_bool(0.6));
                self.proxy.to_server.hold(there);
                self.proxy.to_client.hold(back);
                wait(dice, 20, 600);
            }
            Fault::PauseBackends => {
                self.each_backend(100, Signal::STOP);
                wait(dice, 20, 600);
                if dice.random_bool(0.3) {
                    // Its last batches are with PostgreSQL, and will go on when it is gone.
                    self.kill_gateway();
                    self.each_backend(100, Signal::CONT);
                    self.start_gateway(dice);
                }
                self.each_backend(100, Signal::CONT);
            }
            Fault::StatementTimeout => {
                self.superuser(&format!("alter role {APP} set statement_timeout = '2ms'"));
                self.terminate(100);
                wait(dice, 100, 500);
                self.superuser(&format!("alter role {APP} reset statement_timeout"));
                self.terminate(100);
            }
            Fault::DiskFull => {
                let Some(disk) = &self.disk else { return false };
                disk.fill();
                wait(dice, 100, 500);
                disk.empty();
            }
            Fault::Takeover => self.take_over(dice),
            Fault::Away => {
                self.cluster.crash();
                std::thread::sleep(LONG);
                self.cluster.launch();
            }
        }
        self.proxy.calm();
        true
    }

    fn cut(&self, dice: &mut StdRng) {
        for _ in 0..dice.random_range(1..5) {
            let direction = match dice.random_bool(0.5) {
                true => &self.proxy.to_server,
                false => &self.proxy.to_client,
            };
            direction.cut_after(dice.random_range(0..6_000));
            wait(dice, 5, 120);
        }
    }

    /// A second gateway gets the tables while the first still lives.
    fn take_over(&mut self, dice: &mut StdRng) {
        let second = self.another_gateway(dice);
        for _ in 0..dice.random_range(1..4) {
            self.terminate(100);
            wait(dice, 1, 60);
        }
        self.shared.port.store(second.redis_port, Ordering::Relaxed);
        self.terminate(100);
        wait(dice, 50, 300);
        self.kill_gateway();
        self.gateway = Some(second);
    }

    fn superuser(&self, sql: &str) -> Vec<i32> {
        block_on(async {
            let Ok(client) = connect(&self.place).await else { return Vec::new() };
            let rows = client.query(sql, &[]).await.unwrap_or_default();
            rows.iter().filter_map(|row| row.try_get::<_, i32>(0).ok()).collect()
        })
    }

    fn backends(&self, most: i32) -> Vec<i32> {
        self.superuser(&format!(
            "select pid from pg_stat_activity where usename = '{APP}' \
             and backend_type = 'client backend' order by random() limit {most}"
        ))
    }

    fn terminate(&self, most: i32) {
        self.superuser(&format!(
            "select pid from (select pid from pg_stat_activity where usename = '{APP}' \
             and backend_type = 'client backend' order by random() limit {most}) a \
             where pg_terminate_backend(pid)"
        ));
    }

    fn each_backend(&self, most: i32, signal: Signal) {
        for pid in self.backends(most) {
            let pid = Pid::from_raw(pid).expect("not zero");
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Ended by then, so that it need not go in order.
        self.kill_gateway();
        if self.disk.is_some() {
            self.cluster.stop("immediate");
            self.disk = None;
        }
    }
}

fn wait(dice: &mut StdRng, least: u64, most: u64) {
    std::thread::sleep(Duration::from_millis(dice.random_range(least..=most)));
}

/// A small file system.
struct Disk {
    path: PathBuf,
}

impl Disk {
    fn mount(cluster: &Cluster) -> Option<Disk> {
        let path = cluster.directory.join("small");
        std::fs::create_dir(&path).expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", SMALL_DISK, "tmpfs"]).arg(&path);
        let said = mount.output();
        if !said.as_ref().is_ok_and(|said| said.status.success()) {
            println!("no fault DiskFull: a file system can't be mounted ({said:?})");
            return None;
        }
        let disk = Disk { path };
        std::fs::create_dir(disk.data()).expect("a directory");
        let of = std::fs::metadata(&cluster.directory).expect("the cluster's directory");
        use std::os::unix::fs::{chown, MetadataExt};
        chown(disk.data(), Some(of.uid()), Some(of.gid())).expect("chown as root");
        Some(disk)
    }

    fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    fn fill(&self) {
        let mut file = File::create(self.path.join("filler")).expect("a file");
        while file.write_all(&[0; 8 << 10]).is_ok() {}
    }

    fn empty(&self) {
        std::fs::remove_file(self.path.join("filler")).expect("the filler");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}
