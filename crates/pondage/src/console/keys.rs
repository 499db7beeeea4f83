//! The rows of those SHOWs whose first column is a name: what each is, for the manual.

use super::shows::Show;
use super::table::Unit;

/// A row that is always there, or there whenever it has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    pub unit: Unit,
    /// Markdown, links from `docs/`.
    pub about: &'static str,
}

macro_rules! keys {
    ($($name:literal $(($unit:ident))?: $about:literal;)+) => {
        &[$(Key { name: $name, unit: keys!(@unit $($unit)?), about: $about },)+]
    };
    (@unit) => { Unit::None };
    (@unit $unit:ident) => { Unit::$unit };
}

/// In the order of the rows; empty for a SHOW whose rows are named by what there is.
pub fn of_show(show: Show) -> &'static [Key] {
    match show {
        Show::Lists => LISTS,
        Show::Mem => MEM,
        Show::State => STATE,
        Show::Totals => TOTALS,
        Show::Redis => REDIS,
        _ => &[],
    }
}

const LISTS: &[Key] = keys! {
    "databases": "configured, and reached through `*`";
    "users": "of SHOW USERS";
    "peers": "0";
    "pools": "of SHOW POOLS";
    "peer_pools": "0";
    "free_clients": "0: no slots are kept for clients to come";
    "used_clients": "clients that have logged in";
    "login_clients": "clients that are logging in";
    "free_servers": "0: the same";
    "used_servers": "connections to PostgreSQL";
    "dns_names": "0, as all that follow: no answer of DNS is kept";
    "dns_zones": "0";
    "dns_queries": "0";
    "dns_pending": "0";
};

/// In order of names.
const MEM: &[Key] = keys! {
    "buffer_bytes": "buffers: `used` for bytes of clients that are under way, `free` kept for the \
        next";
    "cache": "results that the read cache has kept: `size` is their average, and `free` how many \
        more of that size fit. Not there while none is kept";
    "client": "what is known of a client";
    "pool": "what is known of a pool";
    "server": "what is known of a connection to PostgreSQL";
    "settings": "sets of settings of clients, counted: their size is not known";
    "statement_bytes": "texts of prepared statements";
};

const STATE: &[Key] = keys! {
    "active": "neither of the two";
    "paused": "PAUSE of all databases is in force";
    "suspended": "SUSPEND is in force";
};

const TOTALS: &[Key] = keys! {
    "total_server_assignment_count": "times a client was given a server";
    "total_xact_count": "transactions";
    "total_query_count": "queries; in the extended protocol, Syncs";
    "total_client_bytes" (Bytes): "from clients";
    "total_server_bytes" (Bytes): "to clients";
    "total_xact_time" (Micros): "in transactions";
    "total_query_time" (Micros): "in queries";
    "total_wait_time" (Micros): "that clients waited for a server";
    "total_ps_client_parse_count": "statements that clients prepared";
    "total_ps_server_parse_count": "statements that Pondage prepared on servers";
    "total_ps_bind_count": "Binds";
    "total_client_login_count": "clients that logged in";
    "avg_server_assignment_count" (PerSecond): "times a client was given a server";
    "avg_xact_count" (PerSecond): "transactions";
    "avg_query_count" (PerSecond): "queries; in the extended protocol, Syncs";
    "avg_client_bytes" (BytesPerSecond): "from clients";
    "avg_server_bytes" (BytesPerSecond): "to clients";
    "avg_xact_time" (Micros): "of a transaction";
    "avg_query_time" (Micros): "of a query";
    "avg_wait_time" (Micros): "of a wait";
    "avg_ps_client_parse_count" (PerSecond): "statements that clients prepared";
    "avg_ps_server_parse_count" (PerSecond): "statements that Pondage prepared on servers";
    "avg_ps_bind_count" (PerSecond): "Binds";
    "avg_client_login_count" (PerSecond): "clients that logged in";
};

const REDIS: &[Key] = keys! {
    "state": "`ready`; `away` while its tables can't be used; `off` without a door";
    "why": "if `away`: the reason, as PostgreSQL says it";
    "since" (Utc): "if `away`: since when";
    "database": "the database section that has the data";
    "user": "the role of the door's connections";
    "clients": "Redis clients";
    "blocked_clients": "those of them that wait for a key";
    "connections": "clients that came";
    "commands": "commands that ran";
    "errors": "errors that were replied";
    "batches": "batches of writes sent to PostgreSQL";
    "batches_in_flight": "those not answered yet";
    "rows": "rows in all of them";
    "rows_per_batch": "on average";
    "commits": "batches that are committed";
    "commit_us" (Micros): "from sending a batch to the answer to its COMMIT, on average";
    "last_commit_us" (Micros): "the same of the last one";
    "retries": "batches sent once more: a deadlock, a lock, a full disk";
    "conflicts": "batches undone because SQL had changed a row first; their commands ran again";
    "refused": "batches that PostgreSQL refused for good; their clients got its error";
    "journal_backlog_bytes" (Bytes): "what is in the journal of databases in journal mode and not in \
        the tables";
    "journal_limit" (Bytes): "beyond it their writers wait";
    "folds": "times that the journal was written into the tables";
    "keys_per_fold": "on average";
    "last_fold_us" (Micros): "how long the last of these took";
    "fold_failures": "times that it has failed";
    "fold_error": "why it fails now; empty when it does not";
    "fold_overwritten": "changes by SQL that it has overwritten";
    "lookups": "questions for rows";
    "looked_up_keys": "keys in them";
    "resident_keys": "keys with a copy in memory, or known not to exist";
    "resident_bytes" (Bytes): "what these take";
    "memory" (Bytes): "the limit of that";
    "hits": "keys that were found in memory";
    "misses": "keys that PostgreSQL had to be asked for; a command that has waited for a key counts \
        in both";
    "hit_percent" (Percent): "`hits` of both; empty: none yet";
    "evicted": "copies that made room for others";
    "expired": "keys that expired";
    "channels": "with subscribers";
    "patterns": "with subscribers";
    "shard_channels": "with subscribers";
};
