//! PostgreSQL, the gateway, and what goes wrong with them.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::Rng;
use rustix::process::{kill_process, Pid, Signal};

use crate::client::connect;
use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::gateway::{ADMIN, ADMIN_PASSWORD};
use crate::kit::place::free_port;
use crate::kit::{Config, Gateway, WireClient};

/// `conflict` raises a serialization failure two times of three; `raise` raises behind all that it
/// has done.
const SCHEMA: &str = "
    create table account(id int primary key, balance bigint not null);
    create table ledger(token text not null, p_from int, p_to int, amount bigint);
    create sequence tries;
    create procedure pay(p_token text, p_from int, p_to int, p_amount bigint, p_mood text)
    language plpgsql as $$ begin
        insert into ledger values (p_token, p_from, p_to, p_amount);
        if p_mood = 'conflict' and nextval('tries') % 3 <> 0 then
            raise exception 'once more' using errcode = 'serialization_failure';
        end if;
        update account set balance = balance - p_amount where id = p_from;
        update account set balance = balance + p_amount where id = p_to;
        if p_mood = 'raise' then
            raise exception 'refused on purpose' using errcode = 'P0099';
        end if;
    end $$;
    create function paid(p_token text, p_from int, p_to int, p_amount bigint, p_mood text)
    returns bigint language plpgsql as $$ declare rest bigint; begin
        insert into ledger values (p_token, p_from, p_to, p_amount);
        if p_mood = 'conflict' and nextval('tries') % 3 <> 0 then
            raise exception 'once more' using errcode = 'serialization_failure';
        end if;
        update account set balance = balance - p_amount where id = p_from returning balance
            into rest;
        update account set balance = balance + p_amount where id = p_to;
        if p_mood = 'raise' then
            raise exception 'refused on purpose' using errcode = 'P0099';
        end if;
        return rest;
    end $$;
";

/// Everything that clients are not.
pub struct World {
    pub cluster: Cluster,
    /// The gateway's, whichever it is.
    pub port: u16,
    /// Calls that have travelled on trains, as far as a gateway could still be asked.
    pub trained: u64,
    gateway: Option<Gateway>,
    /// How procedures travel now.
    pub options: String,
    config: Config,
    /// What the gateway killed last has said.
    killed_said: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    KillGateway,
    /// The postmaster ends all the others then, and recovers.
    KillBackend,
    TerminateBackends,
    /// Its children end by themselves.
    KillPostmaster,
    CrashPostgres,
}

impl Fault {
    pub fn by_chance(dice: &mut StdRng) -> Fault {
        match dice.random_range(0..100) {
            0..35 => Fault::KillGateway,
            35..55 => Fault::KillBackend,
            55..80 => Fault::TerminateBackends,
            80..92 => Fault::KillPostmaster,
            _ => Fault::CrashPostgres,
        }
    }
}

impl World {
    pub fn start() -> World {
        let settings = [
            "fsync = on",
            "full_page_writes = on",
            // What nobody waits for reaches the disk late.
            "wal_writer_delay = '10s'",
            "wal_writer_flush_after = 0",
            // Clients with transactions of their own are in no lane.
            "deadlock_timeout = '20ms'",
        ];
        let cluster = Cluster::start("ledger", &settings);
        cluster.superuser("postgres").run(&format!("create database ledger owner {APP}"));
        let login = || WireClient::login(&cluster.address(), APP, APP_PASSWORD, "ledger");
        login().run(SCHEMA);
        World {
            cluster,
            port: free_port(),
            trained: 0,
            gateway: None,
            options: String::new(),
            config: Config::default(),
            killed_said: String::new(),
        }
    }

    /// A new gateway in place of the old one, with other options.
    pub fn begin_round(&mut self, dice: &mut StdRng) {
        self.kill_gateway();
        let any =
            |dice: &mut StdRng, words: &[&'static str]| words[dice.random_range(0..words.len())];
        let mode = any(dice, &["train", "train", "train", "lane", "batch"]);
        let durable_ack = any(dice, &["tail", "tail", "tail", "each"]);
        let (max_train, retry) = (dice.random_range(2..=64i64), dice.random_range(0..=3i64));
        let workers = dice.random_range(1..=2i64);
        let pool_size = dice.random_range(2..=6i64);
        self.options = format!(
            "mode {mode}, durable_ack {durable_ack}, max_train {max_train}, retry {retry}, \
             workers {workers}, pool_size {pool_size}"
        );
        self.config = Config::default()
            .set("listen.postgres", [format!("127.0.0.1:{}", self.port).as_str()])
            .set("auth.method", "trust")
            .set("auth.admin_users", [ADMIN])
            .set("runtime.workers", workers)
            .set("runtime.shutdown_timeout", "2s")
            .set("pool.pool_size", pool_size)
            .set("users.app.password", APP_PASSWORD)
            .set("users.admin.password", ADMIN_PASSWORD)
            .set("databases.ledger.host", "127.0.0.1")
            .set("databases.ledger.port", i64::from(self.cluster.port))
            .set("databases.ledger.dbname", "ledger");
        for name in ["procedures.\"public.pay\"", "procedures.\"public.paid\""] {
            // The name has a dot of its own; the last one parts section and option.
            let of = |option: &str| format!("{name}.{option}");
            let config = std::mem::take(&mut self.config);
            self.config = config
                .set(&of("key"), ["p_from"])
                .set(&of("also"), ["p_to"])
                .set(&of("mode"), mode)
                .set(&of("durable_ack"), durable_ack)
                .set(&of("max_train"), max_train)
                .set(&of("retry"), retry);
        }
        self.start_gateway();
    }

    fn start_gateway(&mut self) {
        self.gateway = Some(Gateway::start(self.config.clone()));
    }

    fn kill_gateway(&mut self) {
        if let Some(mut gateway) = self.gateway.take() {
            self.trained += trained(self.port).unwrap_or(0);
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

    /// Makes the fault and mends it.
    pub fn strike(&mut self, fault: Fault, dice: &mut StdRng) {
        match fault {
            Fault::KillGateway => {
                self.kill_gateway();
                self.start_gateway();
            }
            Fault::KillBackend => {
                for pid in self.pids("select pid", 1) {
                    let pid = Pid::from_raw(pid).expect("not zero");
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            Fault::TerminateBackends => {
                for _ in 0..dice.random_range(1..6) {
                    self.pids("select pg_terminate_backend(pid)::int", dice.random_range(1..4));
                    pause(dice, 1, 60);
                }
            }
            Fault::KillPostmaster => {
                self.cluster.kill_postmaster();
                pause(dice, 1, 100);
                self.cluster.launch();
            }
            Fault::CrashPostgres => {
                self.cluster.crash();
                pause(dice, 1, 100);
                self.cluster.launch();
            }
        }
    }

    /// What `select` gives of some of the gateway's servers.
    fn pids(&self, select: &str, most: i32) -> Vec<i32> {
        let sql = format!(
            "{select} from (select pid from pg_stat_activity where usename = '{APP}' \
             and backend_type = 'client backend' and application_name <> 'pondage' \
             order by state = 'active' desc, random() limit {most}) a"
        );
        let rows = self.superuser().and_then(|mut superuser| superuser.try_query(&sql));
        let rows = rows.unwrap_or_default().into_iter().filter(|message| message.tag == b'D');
        rows.filter_map(|row| row.values()[0].as_ref()?.parse().ok()).collect()
    }

    /// Beside the gateway. None: PostgreSQL is not there at the moment.
    pub fn superuser(&self) -> Option<WireClient> {
        let socket = crate::kit::Address::unix(&self.cluster.directory, self.cluster.port);
        connect(&socket, "postgres", "ledger")
    }
}

/// Calls that have travelled on trains, as the gateway tells it.
fn trained(port: u16) -> Option<u64> {
    let address = crate::kit::Address::tcp("127.0.0.1", port);
    let rows = connect(&address, ADMIN, "pondage")?.table("show coalesce");
    Some(rows.iter().filter_map(|row| row["trained"].parse::<u64>().ok()).sum())
}

impl Drop for World {
    fn drop(&mut self) {
        // Ended by then, so that it need not go in order.
        self.kill_gateway();
    }
}

pub fn pause(dice: &mut StdRng, least: u64, most: u64) {
    std::thread::sleep(Duration::from_millis(dice.random_range(least..=most)));
}
