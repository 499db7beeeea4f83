//! The columns of what is about pools, their clients and their servers.

use crate::console::table::Column;

pub const DATABASES: &[Column] = columns! {
    Text "name": "what clients ask for; `*` is the wildcard, `pgbouncer` the console, as PgBouncer \
        lists it";
    Text "host": "where it is: the address of its server, several with commas between them, or the \
        directory of a Unix socket";
    Int4 "port": "of the (first) host";
    Text "database": "its name there; NULL for `*`: the one that the client asks for";
    Text "force_user": "the user every client works as; NULL: each as itself";
    Int4 "pool_size": "servers of a pool at the most, for users of whom nothing nearer is said";
    Int4 "min_pool_size": "servers that are kept open, for the same";
    Int4 "reserve_pool_size": "servers beyond `pool_size` for clients that wait long, for the same";
    Int4 "server_lifetime" (Seconds): "a server older than this is closed when it is free, for the \
        same";
    Text "pool_mode": "if one is configured for the database, else NULL";
    Text "load_balance_hosts": "with [several hosts](pooling.md#several-hosts): how new servers are \
        spread; else NULL";
    Int4 "max_connections": "servers of the database at the most; 0: no limit";
    Int4 "current_connections": "servers that there are, those that are being opened included";
    Int4 "max_client_connections": "clients of the database at the most; 0: no limit";
    Int4 "current_client_connections": "clients that there are";
    Int4 "paused" (Flag): "1 from PAUSE or KILL until RESUME";
    Int4 "disabled" (Flag): "1 from DISABLE until ENABLE, or as configured";
};

pub const POOLS: &[Column] = columns! {
    Text "database": "of the pool";
    Text "user": "of the pool: as whom its clients have logged in, or the user that the database \
        forces";
    Int4 "cl_active": "clients that do not wait, idle ones included";
    Int4 "cl_waiting": "clients that wait for a server, or for the pool's first server to greet \
        them";
    Int4 "cl_active_cancel_req": "cancel requests under way to PostgreSQL";
    Int4 "cl_waiting_cancel_req": "cancel requests that wait for a connection: always 0, none has \
        to wait";
    Int4 "sv_active": "servers that clients have";
    Int4 "sv_active_cancel": "connections to PostgreSQL that carry a cancel request";
    Int4 "sv_being_canceled": "servers that nobody gets until a cancel for them is over";
    Int4 "sv_idle": "servers ready to be lent";
    Int4 "sv_used": "servers between two clients: being drained, rolled back or reset. (PgBouncer: \
        idle and due for a check.)";
    Int4 "sv_tested": "servers being checked before they are lent";
    Int4 "sv_login": "connections being opened";
    Int4 "maxwait" (Seconds): "how long the oldest waiting client has waited, whole seconds";
    Int4 "maxwait_us" (Micros): "the part of a second beyond them";
    Text "pool_mode": "`session`, `transaction` or `statement`";
    Text "load_balance_hosts": "NULL: SHOW DATABASES has it";
};

pub const POOLS_EXTENDED: &[Column] = columns! {
    Text "database": "of the pool";
    Text "user": "of the pool";
    Numeric "xact_count": "transactions";
    Numeric "query_count": "queries; in the extended protocol, Syncs";
    Numeric "bytes_received" (Bytes): "from clients";
    Numeric "bytes_sent" (Bytes): "to clients";
    Numeric "xact_p50" (Micros): "half of the transactions took no longer, from their first \
        statement to their end; a bucket's upper bound, as the next eight";
    Numeric "xact_p95" (Micros): "95 of 100 took no longer";
    Numeric "xact_p99" (Micros): "99 of 100 took no longer";
    Numeric "query_p50" (Micros): "half of the queries took no longer";
    Numeric "query_p95" (Micros): "95 of 100 took no longer";
    Numeric "query_p99" (Micros): "99 of 100 took no longer";
    Numeric "wait_p50" (Micros): "half of the waits for a server took no longer";
    Numeric "wait_p95" (Micros): "95 of 100 took no longer";
    Numeric "wait_p99" (Micros): "99 of 100 took no longer";
    Numeric "servers": "how many it has, those that are being opened included";
    Numeric "share": "how many it may have while other pools lack some \
        ([Sharing servers](pooling.md#sharing-servers)); NULL while none does";
    Numeric "given_up": "servers that it has closed for other pools";
};

pub const BLOCKERS: &[Column] = columns! {
    Text "database": "of the pool whose clients wait";
    Text "user": "of the pool whose clients wait";
    Numeric "waiting": "how many clients wait";
    Numeric "maxwait" (Seconds): "how long the first of them has waited, with one decimal";
    Text "why": "what there is too little of: `pool_size`, `max_servers`, `the database's \
        max_server_connections`, `the user's max_server_connections`; or `paused`; `failing`: no \
        more can be opened, the log says why; `opening`: more are on the way";
    Numeric "client_id": "who has a server: the `id` for KILL_CLIENT; NULL when it is no single \
        client";
    Text "holder_database": "of the holder; another one if the limit is one that pools share";
    Text "holder_user": "of the holder";
    Text "application_name": "of the holder; NULL without a client, as the next two";
    Text "addr": "of the holder; `unix` at a Unix socket";
    Int4 "port": "of the holder";
    Text "state": "`active`, `idle in transaction`, `idle in transaction (aborted)`, `idle in \
        session` (session mode), `idle in a batch` (no Sync yet), `not reading` (its answer waits \
        for it), `being prepared`; without a client: `shared by several clients`, `being cleaned`, \
        `being canceled`";
    Numeric "state_age" (Seconds): "how long it has been in this state, with one decimal";
    Numeric "held" (Seconds): "how long it has had this server, with one decimal";
    Text "query": "the shape of the statement that runs, if it is one that is followed";
};

pub const USERS: &[Column] = columns! {
    Text "name": "of the configuration, of the users file, or of a pool";
    Text "pool_size": "if configured for the user, else empty";
    Text "reserve_pool_size": "if configured for the user, else empty";
    Text "pool_mode": "if configured for the user, else NULL";
    Int4 "max_user_connections": "servers of the user at the most; 0: no limit";
    Int4 "current_connections": "servers of the user's pools";
    Int4 "max_user_client_connections": "clients of the user at the most; 0: no limit";
    Int4 "current_client_connections": "clients that have logged in as this user";
};

/// SHOW SOCKETS and SHOW ACTIVE_SOCKETS; SHOW CLIENTS and SHOW SERVERS have the first
/// [`CONNECTION_COLUMNS`] of them.
pub const SOCKETS: &[Column] = columns! {
    Text "type": "`C`: a client; `S`: a server";
    Text "user": "a client: as whom it has logged in; a server: its user there";
    Text "database": "a client: what it has asked for; a server: that of its pool";
    Text "replication": "`none`, or `logical` for a replication connection of either kind";
    Text "state": "clients: `active` (has a server), `waiting`, `idle`. Servers: `active`, `idle`, \
        `used`, `tested`, `being_canceled`, as in SHOW POOLS. SHOW SOCKETS and SHOW ACTIVE_SOCKETS \
        have `cl_` or `sv_` before it, and `cl_active` for an idle client";
    Text "addr": "the far end; `unix` for a Unix socket";
    Int4 "port": "of the far end";
    Text "local_addr": "the near end; `unix` for a Unix socket";
    Int4 "local_port": "of the near end";
    Text "connect_time" (Utc): "when it was connected";
    Text "request_time" (Utc): "clients: when it last sent something; servers: when it was last \
        lent or became idle";
    Int4 "wait" (Seconds): "how long a client has been waiting for a server, whole seconds";
    Int4 "wait_us" (Micros): "the part of a second beyond them";
    Int4 "close_needed" (Flag): "1 if it is closed as soon as it is free";
    Text "ptr": "a name of the connection, written as an address";
    Text "link": "the `ptr` of what it is joined with; empty: with nothing";
    Int4 "remote_pid": "servers: PostgreSQL's process id; clients at a Unix socket: theirs; else 0";
    Text "tls": "version and cipher; empty: no TLS";
    Text "application_name": "as set";
    Int4 "prepared_statements": "how many the client has, or the server";
    Int4 "id": "for KILL_CLIENT; never used twice";
    Int4 "recv_pos": "NULL, as all that follow: positions in buffers, and an idle connection has no \
        buffer here";
    Int4 "pkt_pos": "NULL";
    Int4 "pkt_remain": "NULL";
    Int4 "send_pos": "NULL";
    Int4 "send_remain": "NULL";
    Int4 "pkt_avail": "NULL";
    Int4 "send_avail": "NULL";
};

pub const CONNECTION_COLUMNS: usize = 21;

pub const PINS: &[Column] = columns! {
    Text "database": "of the pool";
    Text "user": "of the pool";
    Text "client": "`ptr` of SHOW CLIENTS";
    Int4 "client_id": "`id` of SHOW CLIENTS, which KILL_CLIENT takes";
    Text "application_name": "of the client";
    Text "reasons": "what it keeps: `temporary table t, advisory lock 42`; 20 of each kind at the \
        most";
    Text "since" (Utc): "when it was pinned";
    Text "server": "`ptr` of SHOW SERVERS";
    Int4 "server_id": "`id` of SHOW SERVERS";
    Int4 "remote_pid": "PostgreSQL's process id";
};

pub const CHANNELS: &[Column] = columns! {
    Text "database": "in which the channel is";
    Text "channel": "its name";
    Numeric "clients": "that listen to it now";
    Numeric "delivered": "notifications, times the clients that they were for, since somebody began \
        to listen to it at each worker";
};

pub const HOSTS: &[Column] = columns! {
    Text "database": "as configured";
    Text "host": "as configured";
    Int4 "port": "as configured";
    Text "address": "of a name that has several, else NULL";
    Text "role": "`primary`, `standby`, `read-only` (a primary whose sessions begin so), or \
        `unknown`";
    Text "state": "`up`, `banned` (tried last), or `unknown`";
    Text "banned_until" (Utc): "if it is banned, else NULL";
    Text "why": "why it is banned; NULL if it is not";
    Int4 "connections": "servers of this process there, for any database with the same list";
    Text "position": "where it is in PostgreSQL's log: what a standby has replayed; NULL: not known";
    Int8 "lag_bytes" (Bytes): "of a standby: log of the primary that it has not replayed; NULL: not \
        known";
    Int8 "lag_ms" (Millis): "of a standby: how old the last transaction is that it has; 0 when \
        nothing is missing, NULL: not known";
    Text "last_probe" (Utc): "when it answered last; NULL: not yet";
    Int8 "probe_us" (Micros): "how long that took";
    Int8 "probes": "times it was asked, since the start";
    Int8 "failed_probes": "times it gave no answer";
    Int8 "bans": "times it was banned";
};

pub const LOOKUPS: &[Column] = columns! {
    Text "database": "as configured; `pondage`, `pgbouncer` or `admin` for users of the console";
    Text "query_user": "who runs the query";
    Text "query_database": "where it is run, if that is said, else NULL";
    Int8 "cache_ms" (Millis): "for how long what is found is used again";
    Int8 "asked": "log-ins for which the database was asked, since the start";
    Int8 "known": "log-ins for which what was known did, or the query of another log-in at the same \
        moment";
    Int8 "failed": "log-ins that got no answer";
    Text "last_error": "why the last of these got none; NULL: none has failed";
};
