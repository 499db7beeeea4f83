//! What can be looked at: each page is a SHOW, its most telling columns first.

/// A page, by the digit that shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    Pools,
    Queries,
    Clients,
    Servers,
    Blockers,
    Caches,
    Redis,
    Procedures,
    Hosts,
}

/// How a column is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Text,
    /// As much room as there is left.
    Wide,
    Count,
    /// A counter: what came to it each second.
    Rate,
    Bytes,
    Micros,
    Percent,
}

/// A column of the page: its head, the console's name for it.
pub struct Shown {
    pub head: &'static str,
    pub name: &'static str,
    pub shape: Shape,
}

const fn shown(head: &'static str, name: &'static str, shape: Shape) -> Shown {
    Shown { head, name, shape }
}

use Shape::{Bytes, Count, Micros, Percent, Rate, Text, Wide};

const POOLS: &[Shown] = &[
    shown("DATABASE", "database", Text),
    shown("USER", "user", Text),
    shown("MODE", "pool_mode", Text),
    shown("CLIENTS", "cl_active", Count),
    shown("WAITING", "cl_waiting", Count),
    shown("MAXWAIT s", "maxwait", Count),
    shown("ACTIVE", "sv_active", Count),
    shown("IDLE", "sv_idle", Count),
    shown("LOGIN", "sv_login", Count),
    shown("XACT/s", "xact_count", Rate),
    shown("QUERY/s", "query_count", Rate),
    shown("QUERY p50", "query_p50", Micros),
    shown("p99", "query_p99", Micros),
    shown("WAIT p99", "wait_p99", Micros),
    shown("IN/s", "bytes_received", Rate),
    shown("OUT/s", "bytes_sent", Rate),
];

const QUERIES: &[Shown] = &[
    shown("DATABASE", "database", Text),
    shown("USER", "user", Text),
    shown("CALLS/s", "calls", Rate),
    shown("CALLS", "calls", Count),
    shown("TIME", "total_time", Micros),
    shown("MEAN", "mean", Micros),
    shown("p99", "p99", Micros),
    shown("JOINED", "joined_percent", Percent),
    shown("ERRORS", "errors", Count),
    shown("WAY", "way", Text),
    shown("QUERY", "query", Wide),
];

const CLIENTS: &[Shown] = &[
    shown("ID", "id", Count),
    shown("DATABASE", "database", Text),
    shown("USER", "user", Text),
    shown("STATE", "state", Text),
    shown("WAIT s", "wait", Count),
    shown("ADDRESS", "addr", Text),
    shown("TLS", "tls", Text),
    shown("SINCE", "connect_time", Text),
    shown("LAST", "request_time", Text),
    shown("APPLICATION", "application_name", Wide),
];

const SERVERS: &[Shown] = &[
    shown("PID", "remote_pid", Count),
    shown("DATABASE", "database", Text),
    shown("USER", "user", Text),
    shown("STATE", "state", Text),
    shown("ADDRESS", "addr", Text),
    shown("STATEMENTS", "prepared_statements", Count),
    shown("TLS", "tls", Text),
    shown("SINCE", "connect_time", Text),
    shown("LAST", "request_time", Text),
    shown("APPLICATION", "application_name", Wide),
];

const BLOCKERS: &[Shown] = &[
    shown("DATABASE", "database", Text),
    shown("USER", "user", Text),
    shown("WAITING", "waiting", Count),
    shown("MAXWAIT", "maxwait", Micros),
    shown("WHY", "why", Text),
    shown("CLIENT", "client_id", Count),
    shown("HELD", "held", Micros),
    shown("STATE", "state", Text),
    shown("APPLICATION", "application_name", Text),
    shown("QUERY", "query", Wide),
];

const CACHES: &[Shown] = &[
    shown("NAME", "name", Text),
    shown("DATABASE", "database", Text),
    shown("MODE", "mode", Text),
    shown("HITS/s", "hits", Rate),
    shown("HITS", "hit_percent", Percent),
    shown("MISSES/s", "misses", Rate),
    shown("ENTRIES", "entries", Count),
    shown("BYTES", "bytes", Bytes),
    shown("STATE", "state", Text),
    shown("WHY", "why", Text),
    shown("QUERY", "query", Wide),
];

const REDIS: &[Shown] = &[
    shown("COMMAND", "command", Text),
    shown("CALLS/s", "calls", Rate),
    shown("CALLS", "calls", Count),
    shown("FAILED", "failed", Count),
    shown("REJECTED", "rejected", Count),
];

const PROCEDURES: &[Shown] = &[
    shown("DATABASE", "database", Text),
    shown("PROCEDURE", "procedure", Text),
    shown("MODE", "mode", Text),
    shown("KEY", "key", Text),
    shown("CALLS/s", "calls", Rate),
    shown("p50", "p50_us", Micros),
    shown("p99", "p99_us", Micros),
    shown("JOINED", "joined_percent", Percent),
    shown("TRAIN", "train", Count),
    shown("RETRIES", "retries", Count),
    shown("ERRORS", "errors", Count),
    shown("PROBLEMS", "problems", Wide),
];

const HOSTS: &[Shown] = &[
    shown("DATABASE", "database", Text),
    shown("HOST", "host", Text),
    shown("PORT", "port", Count),
    shown("ROLE", "role", Text),
    shown("STATE", "state", Text),
    shown("SERVERS", "connections", Count),
    shown("LAG", "lag_bytes", Bytes),
    shown("LAG ms", "lag_ms", Count),
    shown("PROBE", "probe_us", Micros),
    shown("BANS", "bans", Count),
    shown("WHY", "why", Wide),
];

impl Page {
    pub const ALL: [Page; 9] = [
        Page::Pools,
        Page::Queries,
        Page::Clients,
        Page::Servers,
        Page::Blockers,
        Page::Caches,
        Page::Redis,
        Page::Procedures,
        Page::Hosts,
    ];

    /// What the head of every page is made of.
    pub const COMMON: [&'static str; 4] =
        ["SHOW VERSION", "SHOW STATS_TOTALS", "SHOW LISTS", "SHOW POOLS"];

    /// Places of the answers to [`Page::COMMON`].
    pub const VERSION: usize = 0;
    pub const TOTALS: usize = 1;
    pub const LISTS: usize = 2;
    pub const POOL_ROWS: usize = 3;

    pub fn named(word: &str) -> Option<Page> {
        Page::ALL.into_iter().find(|page| page.title().eq_ignore_ascii_case(word))
    }

    /// The page of a digit, from 1 on.
    pub fn of_digit(digit: usize) -> Option<Page> {
        Page::ALL.get(digit.checked_sub(1)?).copied()
    }

    pub fn title(self) -> &'static str {
        match self {
            Page::Pools => "Pools",
            Page::Queries => "Queries",
            Page::Clients => "Clients",
            Page::Servers => "Servers",
            Page::Blockers => "Blockers",
            Page::Caches => "Caches",
            Page::Redis => "Redis",
            Page::Procedures => "Procedures",
            Page::Hosts => "Hosts",
        }
    }

    pub fn command(self) -> &'static str {
        match self {
            Page::Pools => "SHOW POOLS_EXTENDED",
            Page::Queries => "SHOW QUERIES",
            Page::Clients => "SHOW CLIENTS",
            Page::Servers => "SHOW SERVERS",
            Page::Blockers => "SHOW BLOCKERS",
            Page::Caches => "SHOW CACHES",
            Page::Redis => "SHOW REDIS_COMMANDS",
            Page::Procedures => "SHOW PROCEDURES",
            Page::Hosts => "SHOW HOSTS",
        }
    }

    pub fn shown(self) -> &'static [Shown] {
        match self {
            Page::Pools => POOLS,
            Page::Queries => QUERIES,
            Page::Clients => CLIENTS,
            Page::Servers => SERVERS,
            Page::Blockers => BLOCKERS,
            Page::Caches => CACHES,
            Page::Redis => REDIS,
            Page::Procedures => PROCEDURES,
            Page::Hosts => HOSTS,
        }
    }

    /// By which a page is sorted at first, the most first.
    pub fn first_sorted(self) -> usize {
        let name = match self {
            Page::Pools => "QUERY/s",
            Page::Queries => "TIME",
            Page::Clients | Page::Servers => "STATE",
            Page::Blockers => "MAXWAIT",
            Page::Caches => "HITS/s",
            Page::Redis | Page::Procedures => "CALLS/s",
            Page::Hosts => "DATABASE",
        };
        self.shown().iter().position(|column| column.head == name).unwrap_or_default()
    }

    /// What to do where there is nothing.
    pub fn empty(self) -> &'static str {
        match self {
            Page::Pools => "no client has come yet: psql -h HOST -p 6432 -U USER DATABASE",
            Page::Queries => "no statement has been seen yet",
            Page::Clients => "nobody is connected",
            Page::Servers => "no connection to PostgreSQL is open: the first statement opens one",
            Page::Blockers => "nobody waits for a server",
            Page::Caches => "no cache: cache.mode = \"auto\", or CREATE CACHE in the console",
            Page::Redis => "no command yet, or no Redis door: listen.redis",
            Page::Procedures => {
                "no procedure has a key: COMMENT ON PROCEDURE p IS '@pondage key=ARGUMENT'"
            }
            Page::Hosts => "no database has several hosts",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::columns_of;

    #[test]
    fn every_column_is_one_of_the_console() {
        for page in Page::ALL {
            let mut names = columns_of(page.command());
            if page == Page::Pools {
                names.extend(columns_of("SHOW POOLS"));
            }
            for column in page.shown() {
                assert!(names.contains(&column.name), "{}: {}", page.title(), column.name);
            }
            assert!(page.first_sorted() > 0 || page == Page::Hosts, "{}", page.title());
        }
    }

    #[test]
    fn pages_are_found_by_digit_and_by_word() {
        assert_eq!(Page::of_digit(1), Some(Page::Pools));
        assert_eq!((Page::of_digit(0), Page::of_digit(10)), (None, None));
        assert_eq!(Page::named("redis"), Some(Page::Redis));
        assert_eq!(Page::named("other"), None);
    }
}
