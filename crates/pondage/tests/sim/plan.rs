//! What kind of run a seed makes.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::client::{Habits, Reading, PASSWORD};
use crate::reader::often;
use crate::standbys;

/// What kind of run a seed makes.
#[derive(Debug, Clone)]
pub struct Plan {
    pub mode: &'static str,
    pub workers: usize,
    pub pool_size: u32,
    pub reserve: u32,
    /// Servers of all databases, until a reload.
    pub budget: Option<u32>,
    pub clients: usize,
    pub databases: usize,
    /// Of each database, to read from.
    pub standbys: usize,
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
    /// Results of reads are kept.
    pub caching: Option<Caching>,
    pub habits: Habits,
}

/// What is done with results of reads, and how the world around them behaves.
#[derive(Debug, Clone)]
pub struct Caching {
    /// Before a reload and after it.
    pub modes: [&'static str; 2],
    pub freshness: &'static str,
    pub max_lag_ms: u64,
    pub wait_ms: u64,
    pub tags: usize,
    /// So often something is written.
    pub writes: f64,
    /// So often a commit is decoded before it is visible.
    pub late: f64,
    /// So often the stream tells nothing though it could.
    pub slow: f64,
    /// So often it is lost.
    pub loses: f64,
    /// The connections for pulses are lost so often.
    pub breaks: f64,
    /// Some statements have names.
    pub names: bool,
    /// Sessions are made unlike the others.
    pub strange: bool,
    /// Bytes that mirrors may take.
    pub mirrors: u64,
    pub fault: Option<Fault>,
}

/// What is broken on purpose. The judgement has to find each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The stream does not tell some rows.
    RowSkipped,
    /// It tells a commit's rows with the next commit.
    RowsTooLate,
    TruncateSkipped,
    /// An old row is told as if there had been none.
    OldUntold,
    /// It says that it begins, and leaves out what comes first.
    BeginsTooLate,
    /// The end of the log was told as it was some time ago.
    PulseTooOld,
    /// Snapshots say that all have ended who run.
    NothingRuns,
    /// The judge forgets a table.
    TableForgotten,
    /// It does not say that answers depend on settings.
    SettingsForgotten,
    /// It does not say what is written.
    WriteForgotten,
    /// A session that is unlike the others is not seen to be.
    StrangeUnseen,
    /// A mirror is filled with rows as they were some time ago.
    CopyTooOld,
    /// Some rows are not copied.
    CopyForgets,
    /// Changes that a copy lacks are taken for such as it has.
    CopySeesAll,
    /// A mirror answers before the others have come as far.
    StandsTooSoon,
    /// Commits are shown before anybody can see them.
    ShownTooSoon,
}

impl Fault {
    pub const ALL: [Fault; 11] = [
        Fault::RowSkipped,
        Fault::RowsTooLate,
        Fault::TruncateSkipped,
        Fault::OldUntold,
        Fault::BeginsTooLate,
        Fault::PulseTooOld,
        Fault::NothingRuns,
        Fault::TableForgotten,
        Fault::SettingsForgotten,
        Fault::WriteForgotten,
        Fault::StrangeUnseen,
    ];

    /// Those of mirrors.
    pub const OF_MIRRORS: [Fault; 6] = [
        Fault::RowSkipped,
        Fault::CopyTooOld,
        Fault::CopyForgets,
        Fault::CopySeesAll,
        Fault::StandsTooSoon,
        Fault::ShownTooSoon,
    ];
}

impl Caching {
    /// So many of ten seeds keep results.
    const SEEDS_OF_TEN: u64 = 4;

    pub fn of(seed: u64) -> Option<Caching> {
        (seed % 10 < Caching::SEEDS_OF_TEN).then(|| Caching::any(seed))
    }

    fn any(seed: u64) -> Caching {
        let random = &mut StdRng::seed_from_u64(seed ^ 0xcac4e);
        let modes = ["auto", "auto", "auto", "auto", "auto", "manual", "advise", "off"];
        let first = modes[random.random_range(0..6)];
        let modes = [first, modes[random.random_range(0..modes.len())]];
        Caching {
            modes,
            freshness: ["session", "session", "strict", "bounded"][random.random_range(0..4)],
            max_lag_ms: [5, 100, 5_000, 5_000][random.random_range(0..4)],
            wait_ms: [0, 1, 2, 20][random.random_range(0..4)],
            tags: [1 << 10, 1 << 14][random.random_range(0..2)],
            writes: [0.02, 0.1, 0.3][random.random_range(0..3)],
            late: [0.0, 0.2, 0.6][random.random_range(0..3)],
            slow: [0.0, 0.5, 0.9][random.random_range(0..3)],
            loses: [0.0, 0.0, 0.0005, 0.005][random.random_range(0..4)],
            breaks: [0.0, 0.0, 0.005][random.random_range(0..3)],
            names: modes.contains(&"manual") || random.random_bool(0.2),
            strange: !modes.contains(&"off") && random.random_bool(0.3),
            mirrors: [0, 0, 0, 3 << 19, 5 << 19, 1 << 25, 1 << 25, 1 << 25]
                [random.random_range(0..8)],
            fault: None,
        }
    }

    /// Nothing goes wrong.
    pub fn quiet() -> Caching {
        Caching {
            modes: ["auto", "auto"],
            freshness: "session",
            max_lag_ms: 5_000,
            wait_ms: 20,
            tags: 1 << 14,
            writes: 0.1,
            late: 0.0,
            slow: 0.0,
            loses: 0.0,
            breaks: 0.0,
            names: false,
            strange: false,
            mirrors: 0,
            fault: None,
        }
    }

    fn config(&self, after: bool) -> String {
        format!(
            "[cache]\nuser = \"follower\"\nmode = \"{}\"\nfreshness = \"{}\"\nmax_lag = \"{}ms\"\nwait = \"{}ms\"\n",
            self.modes[usize::from(after)],
            self.freshness,
            self.max_lag_ms,
            self.wait_ms
        )
    }
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
            // Of itself, so that seeds are the same worlds with and without it.
            listens: mode != "session" && StdRng::seed_from_u64(seed ^ 0x1157e).random_bool(0.3),
            listens_shared: StdRng::seed_from_u64(seed ^ 0x54a7e).random_bool(0.6),
            drops: random.random_bool(0.4),
            sleeps: random.random_bool(0.5),
            lone,
            writes: random.random_bool(0.6),
            alters: random.random_bool(0.2),
            vanishes: storm || random.random_bool(0.4),
            big: [0, 0, 300, 300_000][random.random_range(0..if bytewise { 3 } else { 4 })],
            storm,
            reads: None,
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
        if habits.listens {
            let listen = if habits.listens_shared { "shared" } else { "server" };
            more.push_str(&format!("max_pinned = 8\nlisten = \"{listen}\"\n"));
        }
        let (sharing, other) = (sharing(random), sharing(random));
        if random.random_bool(0.2) {
            more.push_str("min_pool_size = 1\n");
        }
        let plan = Plan {
            budget: None,
            more,
            sharing: [sharing, other],
            caching: None,
            mode,
            workers: [1, 1, 2][random.random_range(0..3)],
            pool_size: random.random_range(1..4),
            reserve: [0, 0, 1][random.random_range(0..3)],
            clients: random.random_range(2..if bytewise { 8 } else { 24 }),
            sluggish: [0.2, 0.8, 0.9][random.random_range(0..3)],
            databases: if lone && random.random_bool(0.6) { 1 } else { random.random_range(1..3) },
            standbys: 0,
            prepared: [1, 2, 3, 20][random.random_range(0..4)],
            scram: random.random_bool(0.1),
            bytewise,
            slow: random.random_bool(0.3),
            check_delay_ms: [0, 0, 1, 20][random.random_range(0..4)],
            commands: random.random_bool(0.3),
            habits,
        };
        let plan = plan.budgeted(seed);
        match Caching::of(seed) {
            Some(caching) => plan.with(seed, caching),
            None => plan,
        }
    }

    /// Some runs have fewer servers than their pools want.
    fn budgeted(mut self, seed: u64) -> Plan {
        let random = &mut StdRng::seed_from_u64(seed ^ 0xb0d6e7);
        if random.random_bool(0.3) {
            self.budget = Some(random.random_range(1..=self.pool_size * self.databases as u32));
        }
        self
    }

    pub fn with(mut self, seed: u64, caching: Caching) -> Plan {
        self.habits.reads = Some(Reading {
            clients: self.clients,
            often: often(&mut StdRng::seed_from_u64(seed), self.clients, caching.mirrors > 0),
            finds: caching.mirrors > 0,
            writes: caching.writes,
            strange: caching.strange,
            unseen: caching.fault == Some(Fault::StrangeUnseen),
        });
        if !self.bytewise {
            self.habits.operations = 20..70;
        }
        self.caching = Some(caching);
        self
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
            listens: false,
            listens_shared: false,
            drops: false,
            sleeps: false,
            lone: false,
            writes: false,
            alters: false,
            vanishes: false,
            big: 0,
            storm: false,
            reads: None,
        };
        Plan {
            mode,
            workers,
            pool_size,
            reserve: 0,
            budget: None,
            clients: 0,
            databases: 1,
            standbys: 0,
            prepared: 3,
            scram: false,
            bytewise: false,
            slow: false,
            sluggish: 0.2,
            check_delay_ms: 0,
            commands: false,
            more: String::new(),
            sharing: [String::new(), String::new()],
            caching: None,
            habits,
        }
    }

    /// `limited`: each database says how many servers it may have, which is no less.
    pub fn config(&self, limited: bool) -> String {
        let mut text = format!(
            "[listen]\npostgres = [\"127.0.0.1:6432\"]\n[runtime]\nworkers = {}\nmax_servers = {}\n[auth]\nmethod = \"{}\"\n\
             [users.ann]\npassword = \"{PASSWORD}\"\n\
             [pool]\nmode = \"{}\"\npool_size = {}\nreserve_pool_size = {}\nreserve_pool_timeout = \"1s\"\n\
             max_prepared_statements = {}\nserver_check_delay = \"{}ms\"\nserver_check_query = \"echo check\"\n",
            self.workers,
            self.budget.filter(|_| !limited).unwrap_or(0),
            if self.scram { "scram" } else { "trust" },
            self.mode,
            self.pool_size,
            self.reserve,
            self.prepared,
            self.check_delay_ms
        );
        text.push_str(&self.more);
        text.push_str(&self.sharing[usize::from(limited)]);
        text.extend(self.caching.as_ref().map(|caching| caching.config(limited)));
        for database in 0..self.databases {
            text.push_str(&format!("[databases.db{database}]\n"));
            text.push_str(&standbys::hosts(self.standbys));
            if limited {
                let most = self.pool_size + self.reserve;
                text.push_str(&format!("max_server_connections = {most}\n"));
            }
        }
        text
    }
}
