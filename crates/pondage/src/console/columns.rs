//! The columns of every SHOW: PgBouncer 1.25's names, order and types, on which monitoring tools
//! rely; QUERIES, COALESCE, PINS and those about Redis are our own.
//!
//! Source: `src/admin.c` and `src/stats.c` of PgBouncer 1.25.

use std::borrow::Cow;

use super::cache_commands::CacheCommand;
use super::command::{ConstantValue, Request, Show};
use super::procedure_commands::ProcedureCommand;
use super::table::{Column, Kind};

macro_rules! columns {
    ($($kind:ident: $($name:literal)+;)+) => {
        &[$($(Column { name: $name, kind: Kind::$kind },)+)+]
    };
}

const DATABASES: &[Column] = columns! {
    Text: "name" "host";
    Int4: "port";
    Text: "database" "force_user";
    Int4: "pool_size" "min_pool_size" "reserve_pool_size" "server_lifetime";
    Text: "pool_mode" "load_balance_hosts";
    Int4: "max_connections" "current_connections" "max_client_connections"
        "current_client_connections" "paused" "disabled";
};

const POOLS: &[Column] = columns! {
    Text: "database" "user";
    Int4: "cl_active" "cl_waiting" "cl_active_cancel_req" "cl_waiting_cancel_req" "sv_active"
        "sv_active_cancel" "sv_being_canceled" "sv_idle" "sv_used" "sv_tested" "sv_login" "maxwait"
        "maxwait_us";
    Text: "pool_mode" "load_balance_hosts";
};

const HOSTS: &[Column] = columns! {
    Text: "database" "host";
    Int4: "port";
    Text: "address" "role" "state" "banned_until" "why";
    Int4: "connections";
    Text: "position";
    Int8: "lag_bytes" "lag_ms";
    Text: "last_probe";
    Int8: "probe_us" "probes" "failed_probes" "bans";
};

const ADVICE: &[Column] = columns! {
    Numeric: "rank" "gain_ms_per_second";
    Text: "kind" "database" "user" "subject" "advice" "command" "basis";
};

const EVENTS: &[Column] = columns! {
    Text: "last" "level" "event" "database" "sqlstate";
    Int8: "count";
    Text: "first" "detail";
};

const LOOKUPS: &[Column] = columns! {
    Text: "database" "query_user" "query_database";
    Int8: "cache_ms" "asked" "known" "failed";
    Text: "last_error";
};

const USERS: &[Column] = columns! {
    Text: "name" "pool_size" "reserve_pool_size" "pool_mode";
    Int4: "max_user_connections" "current_connections" "max_user_client_connections"
        "current_client_connections";
};

/// SHOW SOCKETS and SHOW ACTIVE_SOCKETS; SHOW CLIENTS and SHOW SERVERS have the first
/// [`CONNECTION_COLUMNS`] of them.
const SOCKETS: &[Column] = columns! {
    Text: "type" "user" "database" "replication" "state" "addr";
    Int4: "port";
    Text: "local_addr";
    Int4: "local_port";
    Text: "connect_time" "request_time";
    Int4: "wait" "wait_us" "close_needed";
    Text: "ptr" "link";
    Int4: "remote_pid";
    Text: "tls" "application_name";
    Int4: "prepared_statements" "id" "recv_pos" "pkt_pos" "pkt_remain" "send_pos" "send_remain"
        "pkt_avail" "send_avail";
};

pub const CONNECTION_COLUMNS: usize = 21;

const STATS: &[Column] = columns! {
    Text: "database";
    Numeric: "total_server_assignment_count" "total_xact_count" "total_query_count"
        "total_received" "total_sent" "total_xact_time" "total_query_time" "total_wait_time"
        "total_client_parse_count" "total_server_parse_count" "total_bind_count"
        "total_client_login_count" "avg_server_assignment_count" "avg_xact_count" "avg_query_count"
        "avg_recv" "avg_sent" "avg_xact_time" "avg_query_time" "avg_wait_time"
        "avg_client_parse_count" "avg_server_parse_count" "avg_bind_count" "avg_client_login_count";
};

const STATS_TOTALS: &[Column] = columns! {
    Text: "database";
    Numeric: "server_assignment_count" "xact_count" "query_count" "bytes_received" "bytes_sent"
        "xact_time" "query_time" "wait_time" "client_parse_count" "server_parse_count" "bind_count"
        "client_login_count";
};

const STATS_AVERAGES: &[Column] = columns! {
    Text: "database";
    Numeric: "server_assignment_count" "xact_count" "query_count" "bytes_received" "bytes_sent"
        "xact_time" "query_time" "wait_time" "avg_client_parse_count" "avg_server_parse_count"
        "avg_bind_count" "avg_client_login_count";
};

const TOTALS: &[Column] = columns! { Text: "name"; Numeric: "value"; };
const LISTS: &[Column] = columns! { Text: "list"; Int4: "items"; };
const MEM: &[Column] = columns! { Text: "name"; Int4: "size" "used" "free" "memtotal"; };
const STATE: &[Column] = columns! { Text: "key" "value"; };
const CONFIG: &[Column] = columns! { Text: "key" "value" "default" "changeable"; };
const VERSION: &[Column] = columns! { Text: "version"; };
const DNS_HOSTS: &[Column] = columns! { Text: "hostname"; Int8: "ttl"; Text: "addrs"; };
const DNS_ZONES: &[Column] = columns! { Text: "zonename"; Int8: "serial"; Int4: "count"; };
const PEERS: &[Column] = columns! { Int4: "peer_id"; Text: "host"; Int4: "port" "pool_size"; };
const PEER_POOLS: &[Column] = columns! {
    Int4: "peer_id" "cl_active_cancel_req" "cl_waiting_cancel_req" "sv_active_cancel" "sv_login";
};

const POOLS_EXTENDED: &[Column] = columns! {
    Text: "database" "user";
    Numeric: "xact_count" "query_count" "bytes_received" "bytes_sent" "xact_p50" "xact_p95"
        "xact_p99" "query_p50" "query_p95" "query_p99" "wait_p50" "wait_p95" "wait_p99" "servers" "share"
        "given_up";
};

const BLOCKERS: &[Column] = columns! {
    Text: "database" "user";
    Numeric: "waiting" "maxwait";
    Text: "why";
    Numeric: "client_id";
    Text: "holder_database" "holder_user" "application_name" "addr";
    Int4: "port";
    Text: "state";
    Numeric: "state_age" "held";
    Text: "query";
};

const QUERIES: &[Column] = columns! {
    Text: "database" "user" "query";
    Numeric: "calls" "total_time" "mean" "p50" "p99" "joined" "joined_percent" "depth" "prepared"
        "again" "errors";
    Text: "way" "why";
};

/// After the counters, a column for each [`crate::route::Why`] but `Free`.
const COALESCE: &[Column] = columns! {
    Text: "database" "user";
    Numeric: "trips" "joined" "depth" "batched" "trained" "prepared" "skipped" "stalled" "lost"
        "alone_off" "alone_transaction" "alone_pipelined" "alone_unreadable" "alone_new"
        "alone_unjudged" "alone_judged" "alone_writes_off" "alone_slow" "alone_settings"
        "alone_again";
};

const REDIS: &[Column] = columns! { Text: "key" "value"; };
const REDIS_COMMANDS: &[Column] = columns! {
    Text: "command";
    Numeric: "calls" "failed" "rejected";
};
const REDIS_KEYS: &[Column] = columns! { Int4: "db"; Text: "key"; Numeric: "calls"; };
const REDIS_CLIENTS: &[Column] = columns! {
    Int8: "id";
    Text: "user" "state" "addr" "local_addr";
    Int4: "db" "protocol";
    Text: "name" "library" "last_command" "connect_time" "request_time";
};

const CACHES: &[Column] = columns! {
    Text: "name" "database" "query" "mode" "freshness" "max_lag";
    Numeric: "hits" "misses" "hit_percent" "fills" "waits" "entries" "bytes";
    Text: "created" "state" "why";
};
const PROXIED_QUERIES: &[Column] = columns! {
    Text: "database" "user" "query";
    Numeric: "calls" "total_time" "would_hit";
    Text: "cacheable" "why";
};
const STREAMS: &[Column] = columns! {
    Text: "database" "state" "why" "since" "lsn" "server_lsn";
    Numeric: "lag_bytes" "delay_us";
    Text: "slot";
    Numeric: "slot_bytes";
    Text: "publication";
    Numeric: "tables" "followed" "begun";
    Text: "not_followed" "complaint";
};

const MIRRORS: &[Column] = columns! {
    Text: "database" "table" "columns" "state" "why" "pinned";
    Numeric: "rows" "bytes";
    Text: "indexes";
    Numeric: "copied_percent";
};

const PROCEDURES: &[Column] = columns! {
    Text: "database" "procedure" "arguments" "mode" "key" "also" "key_source";
    Numeric: "calls" "calls_per_second" "p50_us" "p99_us" "joined_percent" "train" "retries"
        "errors" "lock_wait_percent";
    Text: "problems";
};

const CHANNELS: &[Column] = columns! {
    Text: "database" "channel";
    Numeric: "clients" "delivered";
};

const PINS: &[Column] = columns! {
    Text: "database" "user" "client";
    Int4: "client_id";
    Text: "application_name" "reasons" "since" "server";
    Int4: "server_id" "remote_pid";
};

/// As PostgreSQL's EXPLAIN has it.
pub const PLAN: &[Column] = columns! { Text: "QUERY PLAN"; };

/// The columns of a SHOW that answers with a table. HELP is a notice; FDS is not available.
pub fn of_show(show: Show) -> Option<&'static [Column]> {
    Some(match show {
        Show::Help | Show::Fds => return None,
        Show::Config => CONFIG,
        Show::Databases => DATABASES,
        Show::Pools => POOLS,
        Show::Clients | Show::Servers => &SOCKETS[..CONNECTION_COLUMNS],
        Show::Users => USERS,
        Show::Version => VERSION,
        Show::Peers => PEERS,
        Show::PeerPools => PEER_POOLS,
        Show::Sockets | Show::ActiveSockets => SOCKETS,
        Show::Lists => LISTS,
        Show::Mem => MEM,
        Show::State => STATE,
        Show::DnsHosts => DNS_HOSTS,
        Show::DnsZones => DNS_ZONES,
        Show::Stats => STATS,
        Show::StatsTotals => STATS_TOTALS,
        Show::StatsAverages => STATS_AVERAGES,
        Show::Totals => TOTALS,
        Show::PoolsExtended => POOLS_EXTENDED,
        Show::Blockers => BLOCKERS,
        Show::Queries => QUERIES,
        Show::Coalesce => COALESCE,
        Show::Redis => REDIS,
        Show::RedisCommands => REDIS_COMMANDS,
        Show::RedisKeys => REDIS_KEYS,
        Show::RedisClients => REDIS_CLIENTS,
        Show::Caches => CACHES,
        Show::ProxiedQueries => PROXIED_QUERIES,
        Show::Streams => STREAMS,
        Show::Mirrors => MIRRORS,
        Show::Procedures => PROCEDURES,
        Show::Channels => CHANNELS,
        Show::Hosts => HOSTS,
        Show::Advice => ADVICE,
        Show::Events => EVENTS,
        Show::Lookups => LOOKUPS,
        Show::Pins => PINS,
    })
}

/// The columns of a request's table; none when it answers without one.
pub fn of(request: &Request) -> Option<Cow<'static, [Column]>> {
    match request {
        Request::Show(show) => of_show(*show).map(Cow::Borrowed),
        Request::ShowSetting(setting) => {
            Some(Cow::Owned(vec![Column { name: setting.name, kind: Kind::Text }]))
        }
        Request::Select(constants) => Some(
            constants
                .iter()
                .map(|constant| {
                    let kind = match constant.value {
                        ConstantValue::Int(_) => Kind::Int4,
                        _ => Kind::Text,
                    };
                    Column { name: constant.name, kind }
                })
                .collect(),
        ),
        Request::Cache(command) => {
            matches!(**command, CacheCommand::Explain(_)).then_some(Cow::Borrowed(PLAN))
        }
        Request::Procedure(command) => {
            let explains = matches!(**command, ProcedureCommand::Explain { .. });
            explains.then_some(Cow::Borrowed(PLAN))
        }
        Request::Ignored { .. } | Request::Act(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Why;

    /// Names as PgBouncer's source lists them, and its type letters: s text, i int4, q int8,
    /// N numeric, T a time, which is text too.
    fn check(show: Show, letters: &str, names: &str) {
        let columns = of_show(show).unwrap();
        let got: Vec<&str> = columns.iter().map(|column| column.name).collect();
        let names: Vec<&str> = names.split_whitespace().collect();
        assert_eq!(got, names, "{show:?}");
        let kinds: Vec<Kind> = columns.iter().map(|column| column.kind).collect();
        let letters: Vec<Kind> = letters
            .chars()
            .map(|letter| match letter {
                's' | 'T' => Kind::Text,
                'i' => Kind::Int4,
                'q' => Kind::Int8,
                'N' => Kind::Numeric,
                other => panic!("no type {other}"),
            })
            .collect();
        assert_eq!(kinds, letters, "{show:?}");
    }

    const SOCKET: &str = "type user database replication state addr port local_addr local_port \
        connect_time request_time wait wait_us close_needed ptr link remote_pid tls \
        application_name prepared_statements id";

    #[test]
    fn every_show_has_pgbouncers_columns_in_its_order_and_types() {
        check(
            Show::Databases,
            "ssissiiiissiiiiii",
            "name host port database force_user pool_size min_pool_size reserve_pool_size \
             server_lifetime pool_mode load_balance_hosts max_connections current_connections \
             max_client_connections current_client_connections paused disabled",
        );
        check(
            Show::Pools,
            "ssiiiiiiiiiiiiiss",
            "database user cl_active cl_waiting cl_active_cancel_req cl_waiting_cancel_req \
             sv_active sv_active_cancel sv_being_canceled sv_idle sv_used sv_tested sv_login \
             maxwait maxwait_us pool_mode load_balance_hosts",
        );
        for show in [Show::Clients, Show::Servers] {
            check(show, "ssssssisiTTiiississii", SOCKET);
        }
        for show in [Show::Sockets, Show::ActiveSockets] {
            check(
                show,
                "ssssssisiTTiiississiiiiiiiii",
                &format!(
                    "{SOCKET} recv_pos pkt_pos pkt_remain send_pos send_remain pkt_avail send_avail"
                ),
            );
        }
        check(
            Show::Users,
            "ssssiiii",
            "name pool_size reserve_pool_size pool_mode max_user_connections current_connections \
             max_user_client_connections current_client_connections",
        );
        check(Show::Peers, "isii", "peer_id host port pool_size");
        check(
            Show::PeerPools,
            "iiiii",
            "peer_id cl_active_cancel_req cl_waiting_cancel_req sv_active_cancel sv_login",
        );
        check(Show::Lists, "si", "list items");
        check(Show::Mem, "siiii", "name size used free memtotal");
        check(Show::State, "ss", "key value");
        check(Show::Config, "ssss", "key value default changeable");
        check(Show::Version, "s", "version");
        check(Show::DnsHosts, "sqs", "hostname ttl addrs");
        check(Show::DnsZones, "sqi", "zonename serial count");
    }

    #[test]
    fn the_statistics_have_pgbouncers_columns_in_its_order_and_types() {
        check(
            Show::Stats,
            &format!("s{}", "N".repeat(24)),
            "database total_server_assignment_count total_xact_count total_query_count \
             total_received total_sent total_xact_time total_query_time total_wait_time \
             total_client_parse_count total_server_parse_count total_bind_count \
             total_client_login_count avg_server_assignment_count avg_xact_count avg_query_count \
             avg_recv avg_sent avg_xact_time avg_query_time avg_wait_time avg_client_parse_count \
             avg_server_parse_count avg_bind_count avg_client_login_count",
        );
        check(
            Show::StatsTotals,
            &format!("s{}", "N".repeat(12)),
            "database server_assignment_count xact_count query_count bytes_received bytes_sent \
             xact_time query_time wait_time client_parse_count server_parse_count bind_count \
             client_login_count",
        );
        check(
            Show::StatsAverages,
            &format!("s{}", "N".repeat(12)),
            "database server_assignment_count xact_count query_count bytes_received bytes_sent \
             xact_time query_time wait_time avg_client_parse_count avg_server_parse_count \
             avg_bind_count avg_client_login_count",
        );
        check(Show::Totals, "sN", "name value");
    }

    #[test]
    fn whatever_keeps_a_statement_alone_has_a_column() {
        let last: Vec<&str> =
            COALESCE.iter().filter_map(|column| column.name.strip_prefix("alone_")).collect();
        let others = Why::ALL.iter().filter(|why| **why != Why::Free).map(|why| why.word());
        assert_eq!(last, others.collect::<Vec<_>>());
    }

    #[test]
    fn only_help_and_what_is_not_available_have_no_table() {
        let without: Vec<&Show> =
            Show::ALL.iter().filter(|show| of_show(**show).is_none()).collect();
        assert_eq!(without, [&Show::Help, &Show::Fds]);
    }
}
