//! INFO.
//!
//! The fields that clients, dashboards and exporters read have the meaning they have in Redis,
//! where there is one; what Redis does not know is in the section Pondage.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::connection::VERSION;
use super::{Command, Flags};
use crate::call::Call;
use crate::failure::{Failure, Outcome};
use crate::pubsub::Space;
use crate::query::{Answer, Query};
use crate::script::Usage;
use crate::server::Server;
use crate::session::Session;
use crate::stats::BATCH_ROWS;

pub const COMMANDS: &[Command] = &[Command::plain(
    "info",
    -1,
    Flags::LOADING.and(Flags::STALE).and(Flags::UNDOABLE),
    "server",
    info,
)];

/// Sections in order, and whether INFO alone shows them.
const SECTIONS: [(&str, bool); 14] = [
    ("server", true),
    ("clients", true),
    ("memory", true),
    ("persistence", true),
    ("stats", true),
    ("replication", true),
    ("cpu", true),
    ("modules", true),
    ("commandstats", false),
    ("errorstats", true),
    ("latencystats", false),
    ("cluster", true),
    ("keyspace", true),
    ("pondage", true),
];

/// Counting keys may take this part of PostgreSQL's time: what it told is good enough for so many
/// times as long as it took.
const COUNTED_RESTS: i64 = 20;

fn info(call: &mut Call<'_>) -> Outcome {
    let wanted = wanted(call);
    if wanted.contains(&"keyspace") {
        count_keys(call)?;
    }
    let mut text = String::new();
    for section in wanted {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        write_section(&mut text, section, call);
    }
    call.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn wanted(call: &Call<'_>) -> Vec<&'static str> {
    let words: Vec<Vec<u8>> = call.args.from(1).iter().map(<[u8]>::to_ascii_lowercase).collect();
    let has = |word: &str| words.iter().any(|other| other == word.as_bytes());
    let all = has("all") || has("everything");
    let default = words.is_empty() || has("default");
    let shown = SECTIONS.iter().filter(|(name, usual)| all || (default && *usual) || has(name));
    shown.map(|(name, _)| *name).collect()
}

/// Asks how many keys there are, unless that was asked lately or can't be.
fn count_keys(call: &mut Call<'_>) -> Outcome {
    // A transaction has to ask the same questions each time it runs.
    let asked = call.nested || !call.session.answers.is_empty();
    if !asked && (call.server.away.is_some() || call.server.now < call.server.databases.1) {
        return Ok(());
    }
    if call.session.answers.is_empty() {
        call.session.asked_at = call.server.now;
    }
    match call.ask(Query::Databases) {
        Ok(Answer::Databases(databases)) => {
            let now = call.server.now;
            let took = now.saturating_sub(call.session.asked_at).max(0);
            call.server.databases = (databases, now.saturating_add(took * COUNTED_RESTS));
            Ok(())
        }
        // What was known before is better than no INFO at all.
        Ok(_) | Err(Failure::Said(_)) => Ok(()),
        Err(again) => Err(again),
    }
}

fn write_section(text: &mut String, section: &str, call: &Call<'_>) {
    match section {
        "server" => server(text, call),
        "clients" => clients(text, call),
        "memory" => memory(text, call),
        "persistence" => persistence(text, call),
        "stats" => stats(text, call),
        "replication" => fields(
            text,
            "Replication",
            &[
                ("role", &"master"),
                ("connected_slaves", &0),
                ("master_failover_state", &"no-failover"),
                ("master_replid", &"0000000000000000000000000000000000000000"),
                ("master_replid2", &"0000000000000000000000000000000000000000"),
                ("master_repl_offset", &0),
                ("second_repl_offset", &-1),
                ("repl_backlog_active", &0),
                ("repl_backlog_size", &0),
                ("repl_backlog_first_byte_offset", &0),
                ("repl_backlog_histlen", &0),
            ],
        ),
        // The process's own figures are in its metrics: the engine is but a part of it.
        "cpu" => fields(
            text,
            "CPU",
            &[
                ("used_cpu_sys", &"0.000000"),
                ("used_cpu_user", &"0.000000"),
                ("used_cpu_sys_children", &"0.000000"),
                ("used_cpu_user_children", &"0.000000"),
            ],
        ),
        "modules" => fields(text, "Modules", &[]),
        "commandstats" => commandstats(text, call),
        "errorstats" => {
            fields(text, "Errorstats", &[]);
            for (code, count) in &call.server.stats.errors {
                let _ = write!(text, "errorstat_{code}:count={count}\r\n");
            }
        }
        "latencystats" => fields(text, "Latencystats", &[]),
        "cluster" => fields(text, "Cluster", &[("cluster_enabled", &0)]),
        "keyspace" => {
            fields(text, "Keyspace", &[]);
            for database in call.server.databases.0.iter().filter(|database| database.keys > 0) {
                let _ = write!(
                    text,
                    "db{}:keys={},expires={},avg_ttl={}\r\n",
                    database.db, database.keys, database.expires, database.left_ms
                );
            }
        }
        _ => pondage(text, call),
    }
}

type Field<'a> = (&'a str, &'a dyn std::fmt::Display);

fn fields(text: &mut String, title: &str, fields: &[Field<'_>]) {
    let _ = write!(text, "# {title}\r\n");
    for (name, value) in fields {
        let _ = write!(text, "{name}:{value}\r\n");
    }
}

fn server(text: &mut String, call: &Call<'_>) {
    let now = call.server.microseconds();
    let up = call.server.now.saturating_sub(call.server.started).max(0) / 1000;
    let address = &call.session.local_address;
    let port = address.rsplit_once(':').map_or("0", |(_, port)| port);
    fields(
        text,
        "Server",
        &[
            ("redis_version", &VERSION),
            ("redis_git_sha1", &"00000000"),
            ("redis_git_dirty", &0),
            ("redis_build_id", &"0"),
            ("redis_mode", &"standalone"),
            ("os", &std::env::consts::OS),
            ("arch_bits", &usize::BITS),
            ("monotonic_clock", &"POSIX clock_gettime"),
            ("multiplexing_api", &"epoll"),
            ("atomicvar_api", &"c11-builtin"),
            ("process_id", &std::process::id()),
            ("process_supervised", &"no"),
            ("run_id", &format_args!("{:040x}", call.server.started)),
            ("tcp_port", &port),
            ("server_time_usec", &now),
            ("uptime_in_seconds", &up),
            ("uptime_in_days", &(up / 86_400)),
            ("hz", &10),
            ("configured_hz", &10),
            ("lru_clock", &((now / 1_000_000) & 0xff_ffff)),
            ("executable", &""),
            ("config_file", &""),
            ("io_threads_active", &0),
        ],
    );
}

fn clients(text: &mut String, call: &Call<'_>) {
    let server = &*call.server;
    let blocked = server.sessions.iter().filter(|session| session.blocked.is_some()).count();
    let others = server.sessions.iter().chain([&*call.session]);
    let pubsub = others.filter(|session| !session.subscriptions.is_empty()).count();
    fields(
        text,
        "Clients",
        &[
            ("connected_clients", &server.sessions.len()),
            ("cluster_connections", &0),
            ("maxclients", &server.settings.max_clients),
            ("client_recent_max_input_buffer", &0),
            ("client_recent_max_output_buffer", &0),
            ("blocked_clients", &(blocked + server.paused.len())),
            ("tracking_clients", &server.tracking.clients()),
            ("pubsub_clients", &pubsub),
            ("clients_in_timeout_table", &blocked),
            ("total_blocking_keys", &call.keys.awaited.len()),
            ("total_blocking_keys_on_nokey", &awaited_in_groups(server)),
        ],
    );
}

/// Keys whose end somebody wants to hear of: XREADGROUP.
fn awaited_in_groups(server: &Server) -> usize {
    let blocked = server.sessions.iter().filter_map(|session| session.blocked.as_ref());
    let in_groups = blocked.filter(|blocked| blocked.kind.is_none());
    let keys = in_groups.flat_map(|blocked| blocked.keys.iter().map(|key| (blocked.db, key)));
    keys.collect::<BTreeSet<_>>().len()
}

/// As Redis shows bytes to people (`bytesToHuman`).
fn human(bytes: usize) -> String {
    let units = [("G", 1u64 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    for (unit, size) in units {
        if bytes as u64 >= size {
            return format!("{:.2}{unit}", bytes as f64 / size as f64);
        }
    }
    format!("{bytes}B")
}

/// Copies of rows are what is counted, with what clients and scripts need: a limit on them evicts
/// no key.
fn memory(text: &mut String, call: &Call<'_>) {
    let (dataset, limit) = (call.keys.bytes(), call.server.settings.memory);
    let percentage = format!("{:.2}%", dataset as f64 * 100.0 / limit.max(1) as f64);
    let scripts = call.server.scripts.as_ref().map_or(Usage::default(), |all| all.usage());
    let Usage { lua, scripts, script_bytes, libraries, functions, library_bytes } = scripts;
    let texts = script_bytes + library_bytes;
    let clients = call.server.sessions.len() * size_of::<Session>();
    let used = dataset + clients + lua + texts;
    fields(
        text,
        "Memory",
        &[
            ("used_memory", &used),
            ("used_memory_human", &human(used)),
            ("used_memory_rss", &used),
            ("used_memory_rss_human", &human(used)),
            ("used_memory_peak", &used),
            ("used_memory_peak_human", &human(used)),
            ("used_memory_peak_perc", &percentage),
            ("used_memory_overhead", &(used - dataset)),
            ("used_memory_startup", &0),
            ("used_memory_dataset", &dataset),
            ("used_memory_dataset_perc", &"100.00%"),
            ("allocator_allocated", &used),
            ("allocator_active", &used),
            ("allocator_resident", &used),
            ("total_system_memory", &0),
            ("total_system_memory_human", &"0B"),
            ("used_memory_lua", &lua),
            ("used_memory_vm_eval", &lua),
            ("used_memory_lua_human", &human(lua)),
            ("used_memory_scripts_eval", &script_bytes),
            ("number_of_cached_scripts", &scripts),
            ("number_of_functions", &functions),
            ("number_of_libraries", &libraries),
            // One Lua state runs both.
            ("used_memory_vm_functions", &0),
            ("used_memory_vm_total", &lua),
            ("used_memory_vm_total_human", &human(lua)),
            ("used_memory_functions", &library_bytes),
            ("used_memory_scripts", &texts),
            ("used_memory_scripts_human", &human(texts)),
            ("maxmemory", &0),
            ("maxmemory_human", &"0B"),
            ("maxmemory_policy", &"noeviction"),
            ("allocator_frag_ratio", &"1.00"),
            ("allocator_frag_bytes", &0),
            ("allocator_rss_ratio", &"1.00"),
            ("allocator_rss_bytes", &0),
            ("rss_overhead_ratio", &"1.00"),
            ("rss_overhead_bytes", &0),
            ("mem_fragmentation_ratio", &"1.00"),
            ("mem_fragmentation_bytes", &0),
            ("mem_not_counted_for_evict", &0),
            ("mem_replication_backlog", &0),
            ("mem_total_replication_buffers", &0),
            ("mem_clients_slaves", &0),
            ("mem_clients_normal", &clients),
            ("mem_cluster_links", &0),
            ("mem_aof_buffer", &0),
            ("mem_allocator", &"libc"),
            ("active_defrag_running", &0),
            ("lazyfree_pending_objects", &0),
            ("lazyfreed_objects", &0),
        ],
    );
}

/// What is acknowledged is saved: PostgreSQL's WAL takes the place of the append-only file.
fn persistence(text: &mut String, call: &Call<'_>) {
    let state = if call.server.away.is_none() { "ok" } else { "err" };
    fields(
        text,
        "Persistence",
        &[
            ("loading", &0),
            ("async_loading", &0),
            ("current_cow_peak", &0),
            ("current_cow_size", &0),
            ("current_cow_size_age", &0),
            ("current_fork_perc", &"0.00"),
            ("current_save_keys_processed", &0),
            ("current_save_keys_total", &0),
            ("rdb_changes_since_last_save", &0),
            ("rdb_bgsave_in_progress", &0),
            ("rdb_last_save_time", &(call.server.now / 1000)),
            ("rdb_last_bgsave_status", &"ok"),
            ("rdb_last_bgsave_time_sec", &0),
            ("rdb_current_bgsave_time_sec", &-1),
            ("rdb_saves", &0),
            ("rdb_last_cow_size", &0),
            ("rdb_last_load_keys_expired", &0),
            ("rdb_last_load_keys_loaded", &0),
            ("aof_enabled", &1),
            ("aof_rewrite_in_progress", &0),
            ("aof_rewrite_scheduled", &0),
            ("aof_last_rewrite_time_sec", &-1),
            ("aof_current_rewrite_time_sec", &-1),
            ("aof_last_bgrewrite_status", &"ok"),
            ("aof_rewrites", &0),
            ("aof_rewrites_consecutive_failures", &0),
            ("aof_last_write_status", &state),
            ("aof_last_cow_size", &0),
            ("module_fork_in_progress", &0),
            ("module_fork_last_cow_size", &0),
        ],
    );
}

fn stats(text: &mut String, call: &Call<'_>) {
    let (server, keys) = (&*call.server, &call.keys.stats);
    let up = call.server.now.saturating_sub(server.started).max(1000) / 1000;
    fields(
        text,
        "Stats",
        &[
            ("total_connections_received", &server.sessions.opened()),
            ("total_commands_processed", &server.stats.processed),
            ("instantaneous_ops_per_sec", &(server.stats.processed / up as u64)),
            ("total_net_input_bytes", &0),
            ("total_net_output_bytes", &0),
            ("instantaneous_input_kbps", &"0.00"),
            ("instantaneous_output_kbps", &"0.00"),
            ("rejected_connections", &0),
            ("sync_full", &0),
            ("sync_partial_ok", &0),
            ("sync_partial_err", &0),
            ("expired_keys", &keys.expired),
            ("expired_stale_perc", &"0.00"),
            ("expired_time_cap_reached_count", &0),
            ("evicted_keys", &0),
            ("evicted_clients", &0),
            ("total_eviction_exceeded_time", &0),
            ("current_eviction_exceeded_time", &0),
            ("keyspace_hits", &keys.found),
            ("keyspace_misses", &keys.absent),
            ("pubsub_channels", &server.hub.of(Space::Channel).len()),
            ("pubsub_patterns", &server.hub.of(Space::Pattern).len()),
            ("pubsubshard_channels", &server.hub.of(Space::Shard).len()),
            ("latest_fork_usec", &0),
            ("total_forks", &0),
            ("migrate_cached_sockets", &0),
            ("tracking_total_keys", &server.tracking.keys()),
            ("tracking_total_items", &server.tracking.items()),
            ("tracking_total_prefixes", &server.tracking.prefixes()),
            ("unexpected_error_replies", &0),
            ("total_error_replies", &server.stats.errors_replied),
            ("acl_access_denied_auth", &0),
            ("acl_access_denied_cmd", &0),
            ("acl_access_denied_key", &0),
            ("acl_access_denied_channel", &0),
        ],
    );
}

fn commandstats(text: &mut String, call: &Call<'_>) {
    fields(text, "Commandstats", &[]);
    for (command, calls) in super::all().zip(&call.server.stats.commands) {
        if calls.calls + calls.rejected == 0 {
            continue;
        }
        let each = calls.microseconds as f64 / calls.calls.max(1) as f64;
        let _ = write!(
            text,
            "cmdstat_{}:calls={},usec={},usec_per_call={each:.2},rejected_calls={},\
             failed_calls={}\r\n",
            command.name, calls.calls, calls.microseconds, calls.rejected, calls.failed
        );
    }
}

fn pondage(text: &mut String, call: &Call<'_>) {
    let (stats, keys) = (&call.server.stats, &*call.keys);
    let (batches, folds) = (&stats.batches, &stats.folds);
    let per = |sum: u64, count: u64| format!("{:.2}", sum as f64 / count.max(1) as f64);
    let asked = keys.stats.hits + keys.stats.misses;
    let mut sizes = String::new();
    for (at, count) in batches.sizes.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        match BATCH_ROWS.get(at) {
            Some(bound) => write!(sizes, "{comma}le_{bound}={count}"),
            None => write!(sizes, "{comma}more={count}"),
        }
        .unwrap_or_default();
    }
    fields(
        text,
        "Pondage",
        &[
            ("batches", &batches.sent),
            ("batch_rows", &batches.rows),
            ("batch_rows_avg", &per(batches.rows, batches.sent)),
            ("batch_rows_histogram", &sizes),
            ("commits", &batches.committed),
            ("commit_usec", &batches.commit_us),
            ("commit_usec_avg", &per(batches.commit_us, batches.committed)),
            ("commit_usec_last", &batches.last_commit_us),
            ("conflicts", &batches.conflicts),
            ("refused", &batches.refused),
            ("journal_backlog_bytes", &folds.backlog),
            ("folds", &folds.folds),
            ("fold_failures", &folds.failed),
            ("fold_keys", &folds.keys),
            ("fold_keys_last", &folds.last_keys),
            ("fold_usec_last", &folds.last_us),
            ("fold_error", &folds.error.as_deref().unwrap_or_default()),
            ("fold_overwritten", &keys.stats.overwritten),
            ("resident_keys", &keys.resident()),
            ("resident_bytes", &keys.bytes()),
            ("resident_bytes_max", &call.server.settings.memory),
            ("resident_hits", &keys.stats.hits),
            ("resident_misses", &keys.stats.misses),
            ("resident_hit_rate", &per(keys.stats.hits * 100, asked)),
            ("resident_evicted", &keys.stats.evicted),
            ("loads", &stats.loads),
            ("loaded_keys", &stats.loaded),
            ("away", &call.server.away.as_ref().map_or("", |(why, _)| why)),
        ],
    );
}
