//! The rows of every SHOW.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend::moment::Moment;
use cache::mirror::held::MirrorInfo;

use super::command::Show;
use super::operator::{Switches, FIRST_MOMENT};
use super::stats::{self, Averages, Sampler};
use super::table::{Table, Value};
use super::{
    advice, blockers, caching, channels, columns, events, hosts, mirroring, procedures, queries,
    redis, streams, view,
};
use crate::config::options::default;
use crate::config::{is_console, Address, Config, Host, PoolMode, PoolOptions};
use crate::control::caches::CacheInfo;
use crate::control::mirrors::Pin;
use crate::control::{spots, tally};
use crate::link::Ends;
use crate::logging::Happening;
use crate::procedures::Procedure;
use crate::stream::Standing;
use crate::worker::redis::Snapshot;
use crate::worker::snapshot::{
    ConnectionSnapshot, PinSnapshot, PoolSnapshot, Totals, WorkerSnapshot,
};

/// What every SHOW is made of.
pub struct Facts<'a> {
    pub config: &'a Config,
    pub workers: &'a [WorkerSnapshot],
    /// Those of `workers`, put together: [`view::pools`].
    pub pools: &'a [PoolSnapshot],
    pub switches: &'a Switches,
    pub sampler: &'a Sampler,
    /// In order of databases and names.
    pub caches: &'a [Arc<CacheInfo>],
    pub streams: &'a [Standing],
    /// In order of databases.
    pub hosts: &'a [spots::Standing],
    pub look_ups: &'a [tally::Standing],
    /// The last one first.
    pub events: &'a [Happening],
    /// With their databases.
    pub mirrors: &'a [(String, MirrorInfo)],
    /// In order of databases and names.
    pub pins: &'a [Pin],
    /// In order of databases and names.
    pub procedures: &'a [Arc<Procedure>],
    /// Results, of all databases.
    pub kept: cache::store::Standing,
    /// Commands of console clients.
    pub commands: u64,
    /// None if there is no Redis door.
    pub redis: Option<&'a Snapshot>,
    pub now: Moment,
}

/// "Pondage 0.1.0", where PgBouncer says "PgBouncer 1.25.2".
pub fn version() -> String {
    format!("Pondage {}", env!("CARGO_PKG_VERSION"))
}

/// The table of a SHOW; none for those that have no columns.
pub fn table(show: Show, facts: &Facts<'_>) -> Option<Table> {
    let columns = columns::of_show(show)?;
    let rows = match show {
        Show::Help | Show::Fds => return None,
        Show::Config => config(facts.config),
        Show::Databases => databases(facts),
        Show::Pools => facts.pools.iter().map(pool).collect(),
        Show::Clients => connections(facts, Side::Client),
        Show::Servers => connections(facts, Side::Server),
        Show::Sockets => sockets(facts, |_| true),
        Show::ActiveSockets => sockets(facts, |one| one.link.is_some() || one.state == "waiting"),
        Show::Users => users(facts),
        Show::Version => vec![vec![Value::text(version())]],
        Show::Lists => lists(facts),
        Show::Mem => memory(facts.workers, facts.kept),
        Show::State => state(facts.switches),
        // Pondage asks the system's resolver at every dial and keeps nothing; it has no peers.
        Show::DnsHosts | Show::DnsZones | Show::Peers | Show::PeerPools => Vec::new(),
        Show::Stats => stats(facts, Figures::Both),
        Show::StatsTotals => stats(facts, Figures::Totals),
        Show::StatsAverages => stats(facts, Figures::Averages),
        Show::Totals => totals(facts),
        Show::PoolsExtended => facts.pools.iter().map(queries::latencies).collect(),
        Show::Blockers => blockers::rows(facts.pools, facts.workers),
        Show::Queries => queries::rows(facts.workers),
        Show::Coalesce => facts.pools.iter().map(queries::coalesced).collect(),
        Show::Redis => redis::overview(facts.config, facts.redis),
        Show::RedisCommands => facts.redis.map_or_else(Vec::new, redis::commands),
        Show::RedisKeys => facts.redis.map_or_else(Vec::new, redis::keys),
        Show::Caches => caching::rows(facts.config, facts.caches, facts.streams),
        Show::ProxiedQueries => queries::proxied(facts.workers),
        Show::Mirrors => {
            let Facts { config, streams, mirrors, pins, .. } = *facts;
            mirroring::rows(mirroring::Known { config, streams, mirrors, pins })
        }
        Show::Procedures => procedures::rows(facts),
        Show::Channels => channels::rows(facts.workers),
        Show::Streams => facts.streams.iter().map(streams::row).collect(),
        Show::Hosts => facts.hosts.iter().map(hosts::row).collect(),
        Show::Advice => advice::rows(facts, facts.now.since(FIRST_MOMENT)),
        Show::Events => facts.events.iter().map(events::row).collect(),
        Show::Lookups => facts.look_ups.iter().map(look_ups).collect(),
        Show::Pins => facts.workers.iter().flat_map(pins).collect(),
        Show::RedisClients => facts.redis.map_or_else(Vec::new, redis::clients),
    };
    Some(Table { columns: columns.into(), rows })
}

fn look_ups(row: &tally::Standing) -> Vec<Value> {
    vec![
        Value::text(row.database.clone()),
        Value::text(row.user.clone()),
        Value::optional(row.place.clone()),
        Value::from(u64::try_from(row.cache.as_millis()).unwrap_or(u64::MAX)),
        Value::from(row.tally.asked),
        Value::from(row.tally.known),
        Value::from(row.tally.failed),
        Value::optional(row.tally.error.clone()),
    ]
}

fn config(config: &Config) -> Vec<Vec<Value>> {
    crate::config::show_config(config)
        .into_iter()
        .map(|row| {
            let changeable = if row.changeable { "yes" } else { "no" };
            vec![
                Value::text(row.key),
                Value::text(row.value),
                Value::text(row.default),
                Value::text(changeable),
            ]
        })
        .collect()
}

/// Configured databases, and those that came through the wildcard.
fn database_names<'a>(facts: &'a Facts<'_>) -> BTreeSet<&'a str> {
    let configured = facts.config.databases.keys().map(String::as_str);
    configured.chain(facts.pools.iter().map(|pool| pool.database.as_str())).collect()
}

fn databases(facts: &Facts<'_>) -> Vec<Vec<Value>> {
    let named = database_names(facts).into_iter().filter_map(|name| database(facts, name));
    named.chain([console(facts)]).collect()
}

/// PgBouncer lists its console among the databases, with a pool that it does not have.
fn console(facts: &Facts<'_>) -> Vec<Value> {
    let Config { listen, runtime, pool, .. } = facts.config;
    let port = listen.postgres.first().map_or(default::LISTEN_PORT, |address| match address {
        Address::Tcp(address) => address.port(),
        Address::Unix { port, .. } => *port,
    });
    let rows = facts.workers.iter().flat_map(|worker| &worker.clients);
    let clients = rows.filter(|client| is_console(&client.database)).count();
    let name = || Value::text("pgbouncer");
    vec![
        name(),
        Value::Null,
        Value::from(u32::from(port)),
        name(),
        name(),
        Value::from(2u32),
        Value::from(0u32),
        Value::from(0u32),
        Value::from(pool.server_lifetime.unwrap_or(default::SERVER_LIFETIME).as_secs()),
        Value::text(PoolMode::Statement.name()),
        Value::Null,
        Value::from(0u32),
        Value::from(0u32),
        Value::from(runtime.max_database_clients.unwrap_or(0)),
        Value::from(clients),
        Value::from(false),
        Value::from(false),
    ]
}

fn host_text(host: &Host) -> String {
    match host {
        Host::Tcp(host) => host.clone(),
        Host::Unix(directory) => directory.display().to_string(),
    }
}

fn database(facts: &Facts<'_>, name: &str) -> Option<Vec<Value>> {
    let section = facts.config.databases.get(name).or_else(|| facts.config.databases.get("*"))?;
    // Of a user that no section names: what the database itself says.
    let pool = facts.config.pool(name, "").ok()?;
    let pools: Vec<&PoolSnapshot> =
        facts.pools.iter().filter(|pool| pool.database == name).collect();
    let upstream = &section.upstream;
    let others = upstream.several.others.iter().map(|(host, _)| host);
    let host = [&upstream.host].into_iter().chain(others).map(host_text).collect::<Vec<_>>();
    let database = match &upstream.dbname {
        Some(dbname) => Value::text(dbname.clone()),
        None if name == "*" => Value::Null,
        None => Value::text(name.to_owned()),
    };
    Some(vec![
        Value::text(name.to_owned()),
        Value::text(host.join(",")),
        Value::from(u32::from(upstream.port)),
        database,
        Value::optional(upstream.user.clone()),
        Value::from(pool.pool_size),
        Value::from(pool.min_pool_size),
        Value::from(pool.reserve_pool_size),
        Value::from(pool.server_lifetime.as_secs()),
        Value::optional(section.options.mode.map(|mode| mode.name())),
        Value::optional((host.len() > 1).then(|| upstream.several.balance.name())),
        Value::from(section.max_server_connections.unwrap_or(0)),
        Value::from(pools.iter().map(|pool| view::servers(pool)).sum::<u32>()),
        Value::from(facts.config.max_clients_in(section.max_client_connections).unwrap_or(0)),
        Value::from(pools.iter().map(|pool| view::clients(pool)).sum::<u32>()),
        Value::from(facts.switches.is_paused(name, &pools)),
        Value::from(facts.switches.is_disabled(name, section.disabled, &pools)),
    ])
}

fn pool(pool: &PoolSnapshot) -> Vec<Value> {
    vec![
        Value::text(pool.database.clone()),
        Value::text(pool.user.clone()),
        Value::from(pool.cl_active),
        Value::from(pool.cl_waiting),
        Value::from(pool.cl_active_cancel_req),
        Value::from(pool.cl_waiting_cancel_req),
        Value::from(pool.sv_active),
        Value::from(pool.sv_active_cancel),
        Value::from(pool.sv_being_canceled),
        Value::from(pool.sv_idle),
        Value::from(pool.sv_used),
        Value::from(pool.sv_tested),
        Value::from(pool.sv_login),
        Value::from(pool.maxwait.as_secs()),
        Value::from(pool.maxwait.subsec_micros()),
        Value::text(pool.mode.name()),
        Value::Null,
    ]
}

fn user_names<'a>(facts: &'a Facts<'_>) -> BTreeSet<&'a str> {
    let configured = facts.config.users.keys().chain(facts.config.auth.file_users.keys());
    let seen = facts.pools.iter().map(|pool| &pool.user);
    configured.chain(seen).map(String::as_str).collect()
}

fn users(facts: &Facts<'_>) -> Vec<Vec<Value>> {
    let none = PoolOptions::default();
    // Where a database logs in as one user for all, its clients are others.
    let mut clients: HashMap<&str, u32> = HashMap::new();
    for client in facts.workers.iter().flat_map(|worker| &worker.clients) {
        *clients.entry(&client.user).or_default() += 1;
    }
    let row = |name: &str| {
        let section = facts.config.users.get(name);
        let options = section.map_or(&none, |section| &section.options);
        let pools = || facts.pools.iter().filter(|pool| pool.user == name);
        // An absent size is an empty text, as PgBouncer has it.
        let size = |size: Option<u32>| Value::text(size.map_or(String::new(), |n| n.to_string()));
        vec![
            Value::text(name.to_owned()),
            size(options.pool_size),
            size(options.reserve_pool_size),
            Value::optional(options.mode.map(|mode| mode.name())),
            Value::from(facts.config.max_servers_of(name).unwrap_or(0)),
            Value::from(pools().map(view::servers).sum::<u32>()),
            Value::from(facts.config.max_clients_of(name).unwrap_or(0)),
            Value::from(clients.get(name).copied().unwrap_or(0)),
        ]
    };
    user_names(facts).into_iter().map(row).collect()
}

fn connections(facts: &Facts<'_>, side: Side) -> Vec<Vec<Value>> {
    let rows = |worker| side.of(worker).iter().map(move |one| connection(worker.worker, one, side));
    facts.workers.iter().flat_map(rows).collect()
}

/// All connections with their states as SHOW POOLS words them, and without the positions in
/// buffers that PgBouncer shows: an idle connection has no buffer here.
fn sockets(facts: &Facts<'_>, wanted: fn(&ConnectionSnapshot) -> bool) -> Vec<Vec<Value>> {
    const STATE_COLUMN: usize = 4;
    const BUFFER_COLUMNS: usize = 7;
    let mut rows = Vec::new();
    for worker in facts.workers {
        for side in [Side::Client, Side::Server] {
            for one in side.of(worker).iter().filter(|one| wanted(one)) {
                let mut row = connection(worker.worker, one, side);
                row[STATE_COLUMN] = Value::text(side.socket_state(one.state));
                row.extend(std::iter::repeat_n(Value::Null, BUFFER_COLUMNS));
                rows.push(row);
            }
        }
    }
    rows
}

#[derive(Clone, Copy)]
enum Side {
    Client,
    Server,
}

impl Side {
    fn of(self, worker: &WorkerSnapshot) -> &[ConnectionSnapshot] {
        match self {
            Side::Client => &worker.clients,
            Side::Server => &worker.servers,
        }
    }

    fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    fn letter(self) -> &'static str {
        match self {
            Side::Client => "C",
            Side::Server => "S",
        }
    }

    fn socket_state(self, state: &str) -> String {
        match self {
            Side::Client if state == "idle" => "cl_active".to_owned(),
            Side::Client => format!("cl_{state}"),
            Side::Server => format!("sv_{state}"),
        }
    }

    /// A stable name of a connection, written as an address: side, worker, slot, generation.
    fn pointer(self, worker: u8, slot: u32, generation: u32) -> String {
        let side = match self {
            Side::Client => 0xc1,
            Side::Server => 0x5e,
        };
        format!("0x{side:02x}{worker:02x}{slot:08x}{generation:08x}")
    }
}

fn connection(worker: u8, one: &ConnectionSnapshot, side: Side) -> Vec<Value> {
    let (remote, remote_port, local, local_port) = match one.ends {
        Ends::Tcp { remote, local } => {
            (remote.ip().to_string(), remote.port(), local.ip().to_string(), local.port())
        }
        Ends::Unix { port, .. } => ("unix".to_owned(), port, "unix".to_owned(), port),
    };
    // As PgBouncer words it: who is joined to nobody is idle.
    let state = match one.state {
        "active" if one.link.is_none() => "idle",
        other => other,
    };
    let link = one.link.map(|(slot, generation)| side.other().pointer(worker, slot, generation));
    vec![
        Value::text(side.letter()),
        Value::text(one.user.clone()),
        Value::text(one.database.clone()),
        Value::text(one.replication),
        Value::text(state),
        Value::text(remote),
        Value::from(u32::from(remote_port)),
        Value::text(local),
        Value::from(u32::from(local_port)),
        Value::text(time(one.connect_time)),
        Value::text(time(one.request_time.unwrap_or(one.connect_time))),
        Value::from(one.wait.as_secs()),
        Value::from(one.wait.subsec_micros()),
        Value::from(one.close_needed),
        Value::text(side.pointer(worker, one.slot, one.generation)),
        Value::text(link.unwrap_or_default()),
        Value::from(one.remote_pid.unwrap_or(0)),
        Value::text(one.tls.clone()),
        Value::text(one.application_name.clone()),
        Value::from(one.prepared_statements),
        Value::from(one.id),
    ]
}

/// Clients that keep their servers, and why.
fn pins(worker: &WorkerSnapshot) -> Vec<Vec<Value>> {
    let pointer =
        |side: Side, (slot, generation)| Value::text(side.pointer(worker.worker, slot, generation));
    let row = |pin: &PinSnapshot| {
        let reasons: Vec<&str> = pin.reasons.iter().map(|(_, text)| text.as_str()).collect();
        vec![
            Value::text(pin.database.clone()),
            Value::text(pin.user.clone()),
            pointer(Side::Client, pin.client),
            Value::from(pin.client_id),
            Value::text(pin.application_name.clone()),
            Value::text(reasons.join(", ")),
            Value::text(time(pin.since)),
            pointer(Side::Server, pin.server),
            Value::from(pin.server_id),
            Value::from(pin.remote_pid),
        ]
    };
    worker.pins.iter().map(row).collect()
}

/// "2026-11-20 14:05:10 UTC"; a clock outside of years 1970 to 9999 shows its limit.
pub fn time(at: SystemTime) -> String {
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let timestamp = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .unwrap_or(jiff::Timestamp::MAX);
    timestamp.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn lists(facts: &Facts<'_>) -> Vec<Vec<Value>> {
    // Kinds of memory as workers name them.
    let free = |kind: &str| {
        let parts = facts.workers.iter().flat_map(|worker| &worker.memory);
        Value::from(parts.filter(|part| part.name == kind).map(|part| part.free).sum::<u64>())
    };
    let count = |number: usize| Value::from(number);
    let sum = |list: fn(&WorkerSnapshot) -> usize| {
        Value::from(facts.workers.iter().map(list).sum::<usize>())
    };
    [
        ("databases", count(database_names(facts).len())),
        ("users", count(user_names(facts).len())),
        ("peers", count(0)),
        ("pools", count(facts.pools.len())),
        ("peer_pools", count(0)),
        ("free_clients", free("client")),
        ("used_clients", sum(|worker| worker.clients_len)),
        ("login_clients", sum(|worker| worker.logging_in as usize)),
        ("free_servers", free("server")),
        ("used_servers", sum(|worker| worker.servers_len)),
        // No cache of DNS answers, see `table`.
        ("dns_names", count(0)),
        ("dns_zones", count(0)),
        ("dns_queries", count(0)),
        ("dns_pending", count(0)),
    ]
    .map(|(name, items)| vec![Value::text(name), items])
    .into()
}

/// One row for each kind of memory, over all workers, and one for results that are kept: their size
/// is an average.
fn memory(workers: &[WorkerSnapshot], kept: cache::store::Standing) -> Vec<Vec<Value>> {
    let mut kinds: BTreeMap<(&str, u64), [u64; 3]> = BTreeMap::new();
    if let Some(size) = kept.bytes.checked_div(kept.entries) {
        let free = kept.limit.saturating_sub(kept.bytes) / size.max(1);
        kinds.insert(("cache", size), [kept.entries, free, kept.bytes]);
    }
    for part in workers.iter().flat_map(|worker| &worker.memory) {
        let sums = kinds.entry((part.name, part.size)).or_default();
        for (sum, more) in sums.iter_mut().zip([part.used, part.free, part.memtotal]) {
            *sum += more;
        }
    }
    let row = |((name, size), [used, free, total]): ((&str, u64), [u64; 3])| {
        let name = Value::text(name.to_owned());
        vec![name, Value::from(size), Value::from(used), Value::from(free), Value::from(total)]
    };
    kinds.into_iter().map(row).collect()
}

fn state(switches: &Switches) -> Vec<Vec<Value>> {
    let yes = |flag| Value::text(if flag { "yes" } else { "no" });
    let (paused, suspended) = (switches.all_paused(), switches.suspended());
    [("active", !paused && !suspended), ("paused", paused), ("suspended", suspended)]
        .map(|(key, flag)| vec![Value::text(key), yes(flag)])
        .into()
}

#[derive(Clone, Copy, PartialEq)]
enum Figures {
    Totals,
    Averages,
    Both,
}

fn stats(facts: &Facts<'_>, figures: Figures) -> Vec<Vec<Value>> {
    let row = |(name, totals): (String, Totals)| {
        let averages = facts.sampler.averages(facts.now, &name, &totals);
        let mut row = vec![Value::text(name)];
        if figures != Figures::Averages {
            row.extend(total_figures(&totals).map(Value::from));
        }
        if figures != Figures::Totals {
            row.extend(average_figures(&averages).map(Value::from));
        }
        row
    };
    stats::of_all(facts.pools, facts.commands).into_iter().map(row).collect()
}

/// In the order of SHOW STATS.
fn total_figures(totals: &Totals) -> [u64; 12] {
    [
        totals.server_assignment_count,
        totals.xact_count,
        totals.query_count,
        totals.received,
        totals.sent,
        totals.xact_time_us,
        totals.query_time_us,
        totals.wait_time_us,
        totals.client_parse_count,
        totals.server_parse_count,
        totals.bind_count,
        totals.client_login_count,
    ]
}

fn average_figures(averages: &Averages) -> [u64; 12] {
    [
        averages.server_assignment_count,
        averages.xact_count,
        averages.query_count,
        averages.received,
        averages.sent,
        averages.xact_time_us,
        averages.query_time_us,
        averages.wait_time_us,
        averages.client_parse_count,
        averages.server_parse_count,
        averages.bind_count,
        averages.client_login_count,
    ]
}

/// All databases together, a figure a row, named as PgBouncer's counters are inside.
fn totals(facts: &Facts<'_>) -> Vec<Vec<Value>> {
    const NAMES: [&str; 12] = [
        "server_assignment_count",
        "xact_count",
        "query_count",
        "client_bytes",
        "server_bytes",
        "xact_time",
        "query_time",
        "wait_time",
        "ps_client_parse_count",
        "ps_server_parse_count",
        "ps_bind_count",
        "client_login_count",
    ];
    let databases = stats::of_all(facts.pools, facts.commands);
    let averages = facts.sampler.overall(facts.now, &databases);
    let rows = |prefix: &'static str, figures: [u64; 12]| {
        NAMES.into_iter().zip(figures).map(move |(name, figure)| {
            vec![Value::text(format!("{prefix}_{name}")), Value::from(figure)]
        })
    };
    let totals = rows("total", total_figures(&stats::sum(&databases)));
    totals.chain(rows("avg", average_figures(&averages))).collect()
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
