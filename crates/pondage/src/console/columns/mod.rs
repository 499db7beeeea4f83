//! The columns of every SHOW: PgBouncer 1.25's names, order and types, on which monitoring tools
//! rely; those of the SHOWs that PgBouncer does not have are our own. Each says what is in it.
//!
//! Source: `src/admin.c` and `src/stats.c` of PgBouncer 1.25.

use std::borrow::Cow;

use super::cache_commands::CacheCommand;
use super::command::{ConstantValue, Request};
use super::procedure_commands::ProcedureCommand;
use super::shows::Show;
use super::table::{Column, Kind};

/// A column is its type, its name, its unit if it has one, and what is in it, in the words of the
/// manual: `docs/console.md` is made of them. There is none without.
macro_rules! columns {
    ($($kind:ident $name:literal $(($unit:ident))?: $about:literal;)+) => {
        &[$($crate::console::table::Column {
            name: $name,
            kind: $crate::console::table::Kind::$kind,
            unit: columns!(@unit $($unit)?),
            about: $about,
        },)+]
    };
    (@unit) => { $crate::console::table::Unit::None };
    (@unit $unit:ident) => { $crate::console::table::Unit::$unit };
}

mod cache;
mod pools;
mod procedures;
mod process;
mod redis;
mod statements;
mod stats;

use cache::{CACHES, MIRRORS, PROXIED_QUERIES, STREAMS};
use pools::{
    BLOCKERS, CHANNELS, CONNECTION_COLUMNS, DATABASES, HOSTS, LOOKUPS, PINS, POOLS, POOLS_EXTENDED,
    SOCKETS, USERS,
};
use procedures::PROCEDURES;
use process::{
    CONFIG, DNS_HOSTS, DNS_ZONES, EVENTS, LISTS, MEM, PEERS, PEER_POOLS, STATE, VERSION,
};
use redis::{REDIS, REDIS_CLIENTS, REDIS_COMMANDS, REDIS_KEYS};
use statements::{ADVICE, COALESCE, QUERIES};
use stats::{STATS, STATS_AVERAGES, STATS_TOTALS, TOTALS};

/// As PostgreSQL's EXPLAIN has it.
pub const PLAN: &[Column] = columns! { Text "QUERY PLAN": "a line of the answer"; };

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
            Some(Cow::Owned(vec![Column::bare(setting.name, Kind::Text)]))
        }
        Request::Select(constants) => Some(
            constants
                .iter()
                .map(|constant| {
                    let kind = match constant.value {
                        ConstantValue::Int(_) => Kind::Int4,
                        _ => Kind::Text,
                    };
                    Column::bare(constant.name, kind)
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
    use crate::console::table::Unit;
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
    fn every_column_says_what_is_in_it_and_its_unit_is_the_one_in_its_name() {
        let units = [("_us", Unit::Micros), ("_ms", Unit::Millis), ("_percent", Unit::Percent)];
        let mut seen = 0;
        for show in Show::ALL {
            for column in of_show(*show).unwrap_or_default() {
                let Column { name, kind, unit, about } = *column;
                let told = !about.trim().is_empty() && !about.ends_with(['.', ' ']);
                assert!(told || about.ends_with(".)"), "{show:?} {name}: {about:?}");
                for (end, named) in units.iter().filter(|(end, _)| name.ends_with(end)) {
                    assert_eq!(unit, *named, "{show:?} {name} ends with {end}");
                }
                let in_bytes = name.ends_with("bytes") || name.starts_with("bytes_");
                let bytes = matches!(unit, Unit::Bytes | Unit::BytesPerSecond);
                assert!(!in_bytes || bytes, "{show:?} {name} is in {unit:?}");
                let of_text = matches!(unit, Unit::None | Unit::Utc);
                assert!(kind != Kind::Text || of_text, "{show:?} {name} is a text in {unit:?}");
                seen += 1;
            }
        }
        assert!(seen > 300, "only {seen} columns");
    }

    #[test]
    fn only_help_and_what_is_not_available_have_no_table() {
        let without: Vec<&Show> =
            Show::ALL.iter().filter(|show| of_show(**show).is_none()).collect();
        assert_eq!(without, [&Show::Help, &Show::Fds]);
    }
}
