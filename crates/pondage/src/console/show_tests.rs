use std::time::Duration;

use super::*;
use crate::console::table::{put_row, Formats};
use crate::console::{fixture, keys};
use crate::worker::snapshot::MemorySnapshot;

/// A row as text, NULL as `-`.
fn words(row: &[Value]) -> String {
    let word = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Tenths(tenths) => format!("{}.{}", tenths / 10, tenths % 10),
        Value::Text(text) => format!("'{text}'"),
    };
    row.iter().map(word).collect::<Vec<_>>().join(" ")
}

struct Given {
    redis: Option<crate::worker::redis::Snapshot>,
    config: Config,
    workers: Vec<WorkerSnapshot>,
    switches: Switches,
    sampler: Sampler,
    now: Moment,
}

impl Given {
    fn new(workers: Vec<WorkerSnapshot>) -> Given {
        Given {
            config: fixture::config(),
            workers,
            switches: Switches::default(),
            sampler: Sampler::new(Moment(1_000_000)),
            redis: None,
            now: Moment(2_000_000),
        }
    }

    fn show(&self, show: Show) -> Vec<String> {
        let pools = view::pools(&self.workers);
        let facts = Facts {
            config: &self.config,
            workers: &self.workers,
            pools: &pools,
            switches: &self.switches,
            sampler: &self.sampler,
            caches: &[],
            mirrors: &[],
            pins: &[],
            streams: &[],
            hosts: &[],
            look_ups: &[fixture::look_ups("app")],
            events: &[fixture::happening("app")],
            procedures: &[],
            kept: cache::store::Standing { entries: 7, bytes: 7_000, limit: 9_000, evicted: 3 },
            commands: 3,
            redis: self.redis.as_ref(),
            now: self.now,
        };
        let table = table(show, &facts).expect("a table");
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len(), "{show:?}");
            put_row(&mut Vec::new(), &table.columns, row, &Formats::default());
        }
        table.rows.iter().map(|row| words(row)).collect()
    }
}

/// Two workers that share the pool app/web; the second has one of reports/web too.
fn two_workers() -> Vec<WorkerSnapshot> {
    let config = fixture::config();
    let mut first = fixture::pool(&config, "app", "web");
    first.cl_active = 3;
    first.cl_waiting = 1;
    first.sv_active = 2;
    first.sv_idle = 1;
    first.maxwait = Duration::from_micros(2_000_050);
    first.totals.query_count = 100;
    first.totals.query_time_us = 5_000;
    first.totals.received = 7;
    let mut second = fixture::pool(&config, "app", "web");
    second.cl_active = 10;
    second.sv_login = 4;
    second.cl_waiting_cancel_req = 1;
    second.maxwait = Duration::from_micros(1_999_999);
    second.totals.query_count = 50;
    second.totals.sent = 9;
    let mut reports = fixture::pool(&config, "reports", "web");
    reports.paused = true;
    reports.sv_tested = 1;
    vec![
        WorkerSnapshot { worker: 0, pools: vec![first], logging_in: 2, ..Default::default() },
        WorkerSnapshot { worker: 1, pools: vec![reports, second], ..Default::default() },
    ]
}

#[test]
fn every_show_with_a_table_renders_with_nothing_there_and_with_two_workers() {
    for given in [Given::new(Vec::new()), Given::new(two_workers())] {
        for show in Show::ALL {
            if columns::of_show(*show).is_some() {
                given.show(*show);
            }
        }
    }
}

#[test]
fn pools_of_several_workers_are_one_row() {
    assert_eq!(
        Given::new(two_workers()).show(Show::Pools),
        [
            "'app' 'web' 13 1 0 1 2 0 0 1 0 0 4 2 50 'transaction' -",
            "'reports' 'web' 0 0 0 0 0 0 0 0 0 1 0 0 0 'session' -",
        ]
    );
}

#[test]
fn databases_show_their_settings_and_what_is_connected() {
    let mut given = Given::new(two_workers());
    assert_eq!(
        given.show(Show::Databases),
        [
            "'app' 'db.example' 5432 'app' - 20 0 0 3600 - - 0 7 0 14 0 0",
            "'reports' 'replica' 5432 'reports_v2' 'reader' 5 0 0 3600 'session' - 9 1 0 0 1 0",
            CONSOLE,
        ]
    );
    // Without a pool, what the console did counts, and the wildcard shows itself and its guests.
    given.config = fixture::config_and(fixture::WILDCARD);
    let guest = fixture::pool(&given.config, "guest", "web");
    given.workers = vec![WorkerSnapshot { pools: vec![guest], ..Default::default() }];
    given.switches = Switches::paused("app");
    assert_eq!(
        given.show(Show::Databases),
        [
            "'*' 'anywhere' 5432 - - 20 0 0 3600 - - 0 0 0 0 0 0",
            "'app' 'db.example' 5432 'app' - 20 0 0 3600 - - 0 0 0 0 1 0",
            "'guest' 'anywhere' 5432 'guest' - 20 0 0 3600 - - 0 0 0 0 0 0",
            "'reports' 'replica' 5432 'reports_v2' 'reader' 5 0 0 3600 'session' - 9 0 0 0 0 0",
            CONSOLE,
        ]
    );
}

const CONSOLE: &str =
    "'pgbouncer' - 6432 'pgbouncer' 'pgbouncer' 2 0 0 3600 'statement' - 0 0 0 0 0 0";

#[test]
fn limits_of_all_count_for_the_console_too() {
    let mut given = Given::new(Vec::new());
    given.config = fixture::config_and(
        "[runtime]\nmax_database_clients = 9\nmax_user_clients = 8\nmax_user_servers = 7\n\
         [users.batch]\nmax_client_connections = 0\nmax_server_connections = 1\n\
         [databases.own]\nhost = 'a,b'\nmax_client_connections = 3\n",
    );
    let mut client = fixture::connection(0, 1, "idle");
    client.database = "pgbouncer".to_owned();
    given.workers = vec![WorkerSnapshot { clients: vec![client], ..Default::default() }];
    assert_eq!(
        given.show(Show::Databases),
        [
            "'app' 'db.example' 5432 'app' - 20 0 0 3600 - - 0 0 9 0 0 0",
            "'own' 'a,b' 5432 'own' - 20 0 0 3600 - 'disable' 0 0 3 0 0 0",
            "'reports' 'replica' 5432 'reports_v2' 'reader' 5 0 0 3600 'session' - 9 0 9 0 0 0",
            "'pgbouncer' - 6432 'pgbouncer' 'pgbouncer' 2 0 0 3600 'statement' - 0 0 9 1 0 0",
        ]
    );
    assert_eq!(given.show(Show::Users), ["'batch' '' '' - 1 0 0 0", "'web' '7' '' - 7 0 8 1"]);
}

#[test]
fn users_of_the_configuration_and_of_pools_are_listed() {
    let mut given = Given::new(two_workers());
    given.config = fixture::config_and(
        "[users.batch]\nmode = 'statement'\nmax_server_connections = 3\nmax_client_connections = 30",
    );
    given.workers[0].pools[0].user = "other".to_owned();
    // Who shares the pool of another is counted as who it is.
    let mut guest = fixture::connection(1, 2, "idle");
    guest.user = "other".to_owned();
    given.workers[0].clients = vec![fixture::connection(0, 1, "idle"), guest];
    given.workers[1].clients = vec![fixture::connection(0, 3, "idle")];
    assert_eq!(
        given.show(Show::Users),
        ["'batch' '' '' 'statement' 3 0 30 0", "'other' '' '' - 0 3 0 1", "'web' '7' '' - 0 5 0 2",]
    );
}

#[test]
fn linked_connections_name_one_another() {
    let mut client = fixture::connection(16, 71, "active");
    client.link = Some((5, 9));
    client.wait = Duration::from_micros(1_500_000);
    let mut server = fixture::connection(5, 72, "active");
    server.generation = 9;
    server.link = Some((16, 3));
    server.remote_pid = Some(4711);
    server.close_needed = true;
    server.ends = Ends::Unix { peer_pid: Some(4711), port: 5432 };
    let given = Given::new(vec![
        WorkerSnapshot::default(),
        WorkerSnapshot {
            worker: 1,
            clients: vec![client],
            servers: vec![server],
            ..Default::default()
        },
    ]);
    let when = "'2026-11-20 14:05:10 UTC' '2026-11-20 14:05:10 UTC'";
    let (c, s) = ("'0xc1010000001000000003'", "'0x5e010000000500000009'");
    let client = format!("'10.0.0.9' 40000 '10.0.0.1' 6432 {when} 1 500000 0 {c} {s} 0");
    let server = format!("'unix' 5432 'unix' 5432 {when} 0 0 1 {s} {c} 4711");
    assert_eq!(
        given.show(Show::Clients),
        [format!("'C' 'web' 'app' 'none' 'active' {client} '' 'nightly' 2 71")]
    );
    assert_eq!(
        given.show(Show::Servers),
        [format!("'S' 'web' 'app' 'none' 'active' {server} '' 'nightly' 2 72")]
    );
    let nulls = "- - - - - - -";
    assert_eq!(
        given.show(Show::Sockets),
        [
            format!("'C' 'web' 'app' 'none' 'cl_active' {client} '' 'nightly' 2 71 {nulls}"),
            format!("'S' 'web' 'app' 'none' 'sv_active' {server} '' 'nightly' 2 72 {nulls}"),
        ]
    );
}

#[test]
fn who_is_joined_to_nobody_is_idle() {
    let clients = vec![fixture::connection(0, 1, "active"), fixture::connection(1, 2, "waiting")];
    let given = Given::new(vec![WorkerSnapshot { clients, ..Default::default() }]);
    let rows = given.show(Show::Clients);
    assert!(
        rows[0].contains("'none' 'idle' ") && rows[1].contains("'none' 'waiting' "),
        "{rows:?}"
    );
    assert!(given.show(Show::Sockets)[0].contains("'none' 'cl_active' "));
}

#[test]
fn idle_connections_are_not_active_sockets() {
    let mut linked = fixture::connection(1, 1, "active");
    linked.link = Some((9, 9));
    let clients =
        vec![fixture::connection(0, 0, "idle"), linked, fixture::connection(2, 2, "waiting")];
    let servers = vec![fixture::connection(3, 3, "idle")];
    let given = Given::new(vec![WorkerSnapshot { clients, servers, ..Default::default() }]);
    assert_eq!(given.show(Show::Sockets).len(), 4);
    let active = given.show(Show::ActiveSockets);
    assert_eq!(active.len(), 2);
    assert!(active[0].contains("'cl_active'") && active[1].contains("'cl_waiting'"), "{active:?}");
}

#[test]
fn lists_count_what_is_there() {
    let mut workers = two_workers();
    (workers[1].clients_len, workers[0].servers_len) = (2, 1);
    let part = MemorySnapshot { name: "client", size: 512, used: 2, free: 6, memtotal: 4096 };
    workers[0].memory = vec![part.clone()];
    workers[1].memory = vec![part];
    let given = Given::new(workers);
    assert_eq!(
        given.show(Show::Lists).join(", "),
        "'databases' 2, 'users' 1, 'peers' 0, 'pools' 2, 'peer_pools' 0, 'free_clients' 12, \
         'used_clients' 2, 'login_clients' 2, 'free_servers' 0, 'used_servers' 1, 'dns_names' 0, \
         'dns_zones' 0, 'dns_queries' 0, 'dns_pending' 0"
    );
    assert_eq!(given.show(Show::Mem), ["'cache' 1000 7 2 7000", "'client' 512 4 12 8192"]);
}

#[test]
fn state_tells_a_pause_of_everything() {
    let mut given = Given::new(Vec::new());
    assert_eq!(given.show(Show::State), ["'active' 'yes'", "'paused' 'no'", "'suspended' 'no'"]);
    given.switches = Switches::paused("app");
    assert_eq!(given.show(Show::State)[0], "'active' 'yes'");
    given.switches = Switches::everything_paused();
    assert_eq!(given.show(Show::State), ["'active' 'no'", "'paused' 'yes'", "'suspended' 'no'"]);
}

#[test]
fn statistics_are_sums_of_pools_and_averages_of_the_last_period() {
    let mut given = Given::new(two_workers());
    // From the second before the beginning to now: two seconds.
    let totals = "0 0 150 7 9 0 5000 0 0 0 0 0";
    let averages = "0 0 75 3 4 0 33 0 0 0 0 0";
    let zeros = "0 0 0 0 0 0 0 0 0 0 0 0";
    assert_eq!(
        given.show(Show::Stats),
        [
            format!("'app' {totals} {averages}"),
            // Commands of the console.
            "'pgbouncer' 0 3 3 0 0 0 0 0 0 0 0 0 0 1 1 0 0 0 0 0 0 0 0 0".to_owned(),
            format!("'reports' {zeros} {zeros}"),
        ]
    );
    assert_eq!(given.show(Show::StatsTotals)[0], format!("'app' {totals}"));
    assert_eq!(given.show(Show::StatsAverages)[0], format!("'app' {averages}"));
    let rows = given.show(Show::Totals);
    assert_eq!(rows.len(), 24);
    assert_eq!(rows[2], "'total_query_count' 153");
    assert_eq!(rows[3], "'total_client_bytes' 7");
    assert_eq!(rows[14], "'avg_query_count' 76");
    assert_eq!(rows[18], "'avg_query_time' 32");

    let before = stats::by_database(&view::pools(&given.workers));
    given.sampler.sample(Moment(2_000_000), before.clone(), Default::default());
    given.sampler.sample(Moment(62_000_000), before, Default::default());
    given.workers[0].pools[0].totals.query_count += 1_000;
    given.now = Moment(102_000_000);
    assert!(given.show(Show::StatsAverages)[0].starts_with("'app' 0 0 10 "));
}

#[test]
fn the_version_is_pondages() {
    let version = Given::new(Vec::new()).show(Show::Version);
    assert_eq!(version, [format!("'Pondage {}'", env!("CARGO_PKG_VERSION"))]);
}

#[test]
fn times_outside_of_the_calendar_do_no_harm() {
    assert_eq!(time(SystemTime::UNIX_EPOCH - Duration::from_secs(5)), "1970-01-01 00:00:00 UTC");
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 50);
    assert!(time(far).starts_with("9999-12-30"));
}

#[test]
fn events_say_what_happened_how_often_and_when() {
    let given = Given::new(Vec::new());
    assert_eq!(
        given.show(Show::Events),
        ["'2026-11-20 14:05:20 UTC' 'warn' 'client_refused' 'app' '53300' 2 \
          '2026-11-20 14:05:10 UTC' 'no room'"]
    );
}

#[test]
fn look_ups_say_who_asks_where_and_why_the_last_failed() {
    let given = Given::new(Vec::new());
    assert_eq!(given.show(Show::Lookups), ["'app' 'looker' 'users' 5000 7 3 1 'away'"]);
}

/// SHOW MEM is not among them: workers name what they have, see `tests/it/tools.rs`.
#[test]
fn rows_with_names_are_those_that_the_manual_explains() {
    let mut given = Given::new(vec![WorkerSnapshot::default()]);
    given.redis = Some(crate::worker::redis::Snapshot::default());
    let explained = |show| keys::of_show(show).iter().map(|key| key.name).collect::<Vec<_>>();
    for show in [Show::Lists, Show::State, Show::Totals, Show::Redis] {
        let rows = given.show(show);
        let names: Vec<&str> = rows.iter().filter_map(|row| row.split('\'').nth(1)).collect();
        assert_eq!(names, explained(show), "{show:?}");
    }
}
