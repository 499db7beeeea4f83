//! Every SHOW: its words, and what the manual and SHOW HELP say of it.

/// What belongs together in the manual, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Pools,
    Statistics,
    Statements,
    Cache,
    Procedures,
    Redis,
    Process,
    Empty,
}

impl Subject {
    pub const ALL: [Subject; 8] = [
        Subject::Pools,
        Subject::Statistics,
        Subject::Statements,
        Subject::Cache,
        Subject::Procedures,
        Subject::Redis,
        Subject::Process,
        Subject::Empty,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Subject::Pools => "Pools, clients, servers",
            Subject::Statistics => "Statistics",
            Subject::Statements => "Statements",
            Subject::Cache => "The read cache",
            Subject::Procedures => "Procedures",
            Subject::Redis => "The Redis door",
            Subject::Process => "The process",
            Subject::Empty => "Of PgBouncer, and empty here",
        }
    }
}

macro_rules! shows {
    ($($variant:ident $word:literal $(or $also:literal)* in $subject:ident:
        $brief:literal, $about:literal;)+) => {
        /// What SHOW shows: PgBouncer's words first, then our own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Show {
            $($variant,)+
        }

        impl Show {
            pub const ALL: &'static [Show] = &[$(Show::$variant,)+];

            pub fn word(self) -> &'static str {
                match self {
                    $(Show::$variant => $word,)+
                }
            }

            /// Other ways to write it.
            pub fn aliases(self) -> &'static [&'static str] {
                match self {
                    $(Show::$variant => &[$($also,)*],)+
                }
            }

            pub fn subject(self) -> Subject {
                match self {
                    $(Show::$variant => Subject::$subject,)+
                }
            }

            /// Plain text, for SHOW HELP.
            pub fn brief(self) -> &'static str {
                match self {
                    $(Show::$variant => $brief,)+
                }
            }

            /// What the manual adds: Markdown, links from `docs/`.
            pub fn about(self) -> &'static str {
                match self {
                    $(Show::$variant => $about,)+
                }
            }
        }
    };
}

shows! {
    Help "HELP" in Process: "What can be asked here, in a notice.", "";
    Config "CONFIG" in Process: "The configuration in force.",
        "A row for each [option](configuration.md) that applies to all, what is said of procedures \
         (`procedures.\"public.payment\".key`), and, for programs that look for them, options of \
         PgBouncer by its names and in its units. Passwords are not shown.";
    Databases "DATABASES" in Pools: "Where databases are, and their limits.",
        "A row for each database that is configured, for each that was reached through `*`, and for \
         the console.";
    Pools "POOLS" in Pools: "Clients and servers of each pool.",
        "A row for each pair of database and user that has been used.";
    Clients "CLIENTS" in Pools: "Clients one by one.", "Those of the console are among them.";
    Servers "SERVERS" in Pools: "Connections to PostgreSQL one by one.", "";
    Users "USERS" in Pools: "Users, and their limits.",
        "A row for each user of the configuration, of the users file, or of a pool.";
    Version "VERSION" in Process: "The version that runs.", "";
    Peers "PEERS" in Empty: "Empty: SHOW CONFIG has runtime.peers.",
        "See [several processes](operating.md#several-processes).";
    PeerPools "PEER_POOLS" in Empty: "Empty: a cancel request is passed on, and nothing is kept.", "";
    Fds "FDS" in Empty: "Refused: file descriptors are never handed to a client.",
        "The error is 0A000.";
    Sockets "SOCKETS" in Pools: "Clients and servers one by one, with PgBouncer's words for states.",
        "";
    ActiveSockets "ACTIVE_SOCKETS" in Pools: "Those of them that are joined, or wait.", "";
    Lists "LISTS" in Process: "How many databases, clients and the like there are.", "";
    Mem "MEM" in Process: "Memory by what it is for.", "A row for each kind, over all workers.";
    State "STATE" in Process: "Whether the process is paused or suspended.", "";
    DnsHosts "DNS_HOSTS" in Empty: "Empty: the system's resolver is asked at every dial.", "";
    DnsZones "DNS_ZONES" in Empty: "Empty, for the same reason.", "";
    Stats "STATS" in Statistics: "What each database has done, in total and on average.",
        "A row for each database, and one for the console. `total_` is since the start, `avg_` over \
         the last one to two `stats_period`s.";
    StatsTotals "STATS_TOTALS" in Statistics: "The totals of SHOW STATS.", "Since the start.";
    StatsAverages "STATS_AVERAGES" in Statistics: "The averages of SHOW STATS.",
        "Over the last one to two `stats_period`s. The first eight figures have PgBouncer's names, \
         which are those of totals.";
    Totals "TOTALS" in Statistics: "Totals and averages of all databases together.",
        "A row for each figure.";
    PoolsExtended "POOLS_EXTENDED" in Pools: "How long clients of each pool wait, and PostgreSQL \
        takes.",
        "A row for each pool, since the start: as Odyssey has it. Percentiles are the upper bounds of \
         the buckets in which durations are counted, 50 µs and doubling; NULL: none yet.";
    Queries "QUERIES" in Statements: "Statements by shape, what took most time first.",
        "A row for each shape of statement in a pool, 4,096 at the most. A *shape* is a text without \
         its constants. Users in `auth.stats_users` see the texts too. See \
         [Coalescing](coalescing.md).";
    Coalesce "COALESCE" in Statements: "Which statements shared trips, and why others did not.",
        "A row for each pool, counters since the start. See [Coalescing](coalescing.md).";
    Redis "REDIS" in Redis: "The Redis door: its state and its figures.",
        "A row for each figure, since the start or CONFIG RESETSTAT. Only `state` with the value \
         `off` if the door is not open.";
    RedisCommands "REDIS_COMMANDS" or "REDIS COMMANDS" in Redis: "Redis commands, what was given \
        most first.", "Since the start or CONFIG RESETSTAT.";
    RedisKeys "REDIS_KEYS" or "REDIS KEYS" in Redis: "The 64 Redis keys that are named most.",
        "Users in `auth.stats_users` see them too.";
    RedisClients "REDIS_CLIENTS" or "REDIS CLIENTS" in Redis: "Clients of the Redis door one by \
        one.", "";
    Caches "CACHES" in Cache: "Statements that are named to be cached.",
        "See [Commands](cache.md#commands) of the read cache.";
    ProxiedQueries "PROXIED_QUERIES" or "PROXIED QUERIES" in Cache: "Reads that went to PostgreSQL, \
        and whether they could be cached.",
        "A row for each shape of reads in a pool that nothing in memory has answered and nobody has \
         named, what took most time first, 4,096 at the most.";
    Streams "STREAMS" in Cache: "The streams of changes: how far, and what is wrong.",
        "A row for each database that is followed.";
    Mirrors "MIRRORS" in Cache: "Tables in memory.",
        "A row for each [mirror](cache.md#mirrors), and for each table that is to have one. A table \
         may have two: one that answers, and one that is being made with more columns.";
    Procedures "PROCEDURES" in Procedures: "Procedures: how their calls travel, and how they fare.",
        "A row for each procedure or function of a database that was called, or explained. See \
         [Procedure calls](procedures.md).";
    Channels "CHANNELS" in Pools: "What clients listen to over shared connections.",
        "A row for each channel that clients [listen](pooling.md#listen) to so.";
    Blockers "BLOCKERS" in Pools: "Who holds the servers that others wait for.",
        "A row for each pool whose clients wait now and each holder of the servers that it lacks, at \
         whatever worker, 1,000 at the most. Pools come in order of what their waiting comes to \
         (`waiting` times `maxwait`), the holders of each by how long they have had their server. \
         Empty while nobody waits.";
    Hosts "HOSTS" in Pools: "Hosts of databases that have several.",
        "A row for each host of the databases that have [several](pooling.md#several-hosts), and for \
         each address of a name that has several.";
    Lookups "LOOKUPS" in Pools: "Users that were looked up.",
        "A row for each database whose users are [looked up](tls-and-authentication.md#authquery), \
         counted since the start. Names that fall to `*` are counted there.";
    Pins "PINS" in Pools: "Clients that keep their server beyond a transaction, and why.",
        "A row for each such client, see [Pins](pooling.md#pins). Users in `auth.stats_users` see \
         the names too.";
    Events "EVENTS" in Process: "What the log has said lately, the last first.",
        "Reloads, pauses, hosts that changed, streams that were lost, clients that were refused. \
         Events of one kind, database and SQLSTATE are one row; there are 200 at the most, and those \
         that `telemetry.log_level` leaves out are not known here.";
    Advice "ADVICE" in Statements: "What would gain most.",
        "After two minutes of traffic; 50 rows at the most. Nothing is measured for it: it reads \
         what the other SHOWs have, since the start.";
}

impl Show {
    /// By its word or an alias, in any case.
    pub fn find(text: &str) -> Option<Show> {
        Show::ALL.iter().copied().find(|show| {
            let mut names = [show.word()].into_iter().chain(show.aliases().iter().copied());
            names.any(|name| name.eq_ignore_ascii_case(text))
        })
    }
}
