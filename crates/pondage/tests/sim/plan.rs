//! What kind of run a seed makes.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::client::{Habits, PASSWORD};

/// What kind of run a seed makes.
#[derive(Debug, Clone)]
pub struct Plan {
    pub mode: &'static str,
    pub workers: usize,
    pub pool_size: u32,
    pub reserve: u32,
    pub clients: usize,
    pub databases: usize,
    pub prepared: u32,
    pub scram: bool,
    pub bytewise: bool,
    pub slow: bool,
    /// So often a server does nothing though it could.
    pub sluggish: f64,
    pub check_delay_ms: u32,
    pub commands: bool,
    /// More lines of the section `[pool]`.
    pub more: String,
    /// What they say of statements that join, before a reload and after it.
    pub sharing: [String; 2],
    pub habits: Habits,
}

/// How statements may join.
fn sharing(random: &mut StdRng) -> String {
    let ways = ["batch", "batch", "batch", "batch", "pipeline", "off"];
    let shorts = ["1ms", "100s", "100s", "100s", "100s", "100s"];
    format!(
        "coalesce = \"{}\"\ncoalesce_depth = {}\ncoalesce_short = \"{}\"\n\
         coalesce_stall = \"{}ms\"\ncoalesce_writes = {}\nprepare_simple = {}\n",
        ways[random.random_range(0..6)],
        [1, 2, 4, 16, 64][random.random_range(0..5)],
        shorts[random.random_range(0..6)],
        [20, 10_000, 10_000, 10_000][random.random_range(0..4)],
        random.random_bool(0.7),
        random.random_bool(0.7),
    )
}

impl Plan {
    pub fn of(seed: u64) -> Plan {
        let random = &mut StdRng::seed_from_u64(seed);
        let lone = random.random_bool(0.7);
        let modes = ["transaction", "transaction", "transaction", "statement", "session"];
        let mode = modes[random.random_range(0..if lone { 4 } else { 5 })];
        let storm = random.random_bool(0.3);
        let bytewise = random.random_bool(0.15);
        let habits = Habits {
            operations: if lone && !bytewise { 10..60 } else { 1..12 },
            statement_mode: mode == "statement",
            session_mode: mode == "session",
            pipelines: random.random_bool(if lone { 0.2 } else { 0.6 }),
            blocks: mode != "statement" && random.random_bool(0.7),
            copies: random.random_bool(0.6),
            sets: random.random_bool(0.5),
            drops: random.random_bool(0.4),
            sleeps: random.random_bool(0.5),
            lone,
            writes: random.random_bool(0.6),
            alters: random.random_bool(0.2),
            vanishes: storm || random.random_bool(0.4),
            big: [0, 0, 300, 300_000][random.random_range(0..if bytewise { 3 } else { 4 })],
            storm,
        };
        let mut more = String::new();
        let mut maybe = |random: &mut StdRng, name: &str, millis: std::ops::Range<u32>| {
            if random.random_bool(0.3) {
                more.push_str(&format!("{name} = \"{}ms\"\n", random.random_range(millis)));
            }
        };
        maybe(random, "server_idle_timeout", 50..500);
        maybe(random, "server_lifetime", 50..1_000);
        if storm {
            maybe(random, "query_timeout", 20..500);
            maybe(random, "wait_timeout", 50..5_000);
            maybe(random, "idle_transaction_timeout", 20..500);
            maybe(random, "client_idle_timeout", 200..2_000);
        }
        let (sharing, other) = (sharing(random), sharing(random));
        if random.random_bool(0.2) {
            more.push_str("min_pool_size = 1\n");
        }
        Plan {
            more,
            sharing: [sharing, other],
            mode,
            workers: [1, 1, 2][random.random_range(0..3)],
            pool_size: random.random_range(1..4),
            reserve: [0, 0, 1][random.random_range(0..3)],
            clients: random.random_range(2..if bytewise { 8 } else { 24 }),
            sluggish: [0.2, 0.8, 0.9][random.random_range(0..3)],
            databases: if lone && random.random_bool(0.6) { 1 } else { random.random_range(1..3) },
            prepared: [1, 2, 3, 20][random.random_range(0..4)],
            scram: random.random_bool(0.1),
            bytewise,
            slow: random.random_bool(0.3),
            check_delay_ms: [0, 0, 1, 20][random.random_range(0..4)],
            commands: random.random_bool(0.3),
            habits,
        }
    }

    /// Nothing happens by itself.
    pub fn quiet(mode: &'static str, workers: usize, pool_size: u32) -> Plan {
        let habits = Habits {
            operations: 1..12,
            statement_mode: mode == "statement",
            session_mode: mode == "session",
            pipelines: false,
            blocks: false,
            copies: false,
            sets: false,
            drops: false,
            sleeps: false,
            lone: false,
            writes: false,
            alters: false,
            vanishes: false,
            big: 0,
            storm: false,
        };
        Plan {
            mode,
            workers,
            pool_size,
            reserve: 0,
            clients: 0,
            databases: 1,
            prepared: 3,
            scram: false,
            bytewise: false,
            slow: false,
            sluggish: 0.2,
            check_delay_ms: 0,
            commands: false,
            more: String::new(),
            sharing: [String::new(), String::new()],
            habits,
        }
    }

    /// `limited`: each database says how many servers it may have, which is no less.
    pub fn config(&self, limited: bool) -> String {
        let mut text = format!(
            "[listen]\npostgres = [\"127.0.0.1:6432\"]\n[runtime]\nworkers = {}\n[auth]\nmethod = \"{}\"\n\
             [users.ann]\npassword = \"{PASSWORD}\"\n\
             [pool]\nmode = \"{}\"\npool_size = {}\nreserve_pool_size = {}\nreserve_pool_timeout = \"1s\"\n\
             max_prepared_statements = {}\nserver_check_delay = \"{}ms\"\nserver_check_query = \"echo check\"\n",
            self.workers,
            if self.scram { "scram" } else { "trust" },
            self.mode,
            self.pool_size,
            self.reserve,
            self.prepared,
            self.check_delay_ms
        );
        text.push_str(&self.more);
        text.push_str(&self.sharing[usize::from(limited)]);
        for database in 0..self.databases {
            text.push_str(&format!("[databases.db{database}]\nhost = \"127.0.0.1\"\n"));
            if limited {
                let most = self.pool_size + self.reserve;
                text.push_str(&format!("max_server_connections = {most}\n"));
            }
        }
        text
    }
}
