//! The columns of PgBouncer's statistics.

use crate::console::table::Column;

pub const STATS: &[Column] = columns! {
    Text "database": "`pgbouncer` is the console: each of its commands is a query";
    Numeric "total_server_assignment_count": "times a client was given a server";
    Numeric "total_xact_count": "transactions";
    Numeric "total_query_count": "queries; in the extended protocol, Syncs";
    Numeric "total_received" (Bytes): "from clients";
    Numeric "total_sent" (Bytes): "to clients";
    Numeric "total_xact_time" (Micros): "in transactions";
    Numeric "total_query_time" (Micros): "in queries";
    Numeric "total_wait_time" (Micros): "that clients waited for a server";
    Numeric "total_client_parse_count": "statements that clients prepared";
    Numeric "total_server_parse_count": "statements that Pondage prepared on servers";
    Numeric "total_bind_count": "Binds";
    Numeric "total_client_login_count": "clients that logged in";
    Numeric "avg_server_assignment_count" (PerSecond): "times a client was given a server";
    Numeric "avg_xact_count" (PerSecond): "transactions";
    Numeric "avg_query_count" (PerSecond): "queries";
    Numeric "avg_recv" (BytesPerSecond): "from clients";
    Numeric "avg_sent" (BytesPerSecond): "to clients";
    Numeric "avg_xact_time" (Micros): "of a transaction";
    Numeric "avg_query_time" (Micros): "of a query";
    Numeric "avg_wait_time" (Micros): "of a wait: that a client waited for each server it was given";
    Numeric "avg_client_parse_count" (PerSecond): "statements that clients prepared";
    Numeric "avg_server_parse_count" (PerSecond): "statements that Pondage prepared on servers";
    Numeric "avg_bind_count" (PerSecond): "Binds";
    Numeric "avg_client_login_count" (PerSecond): "clients that logged in";
};

pub const STATS_TOTALS: &[Column] = columns! {
    Text "database": "as in SHOW STATS";
    Numeric "server_assignment_count": "times a client was given a server";
    Numeric "xact_count": "transactions";
    Numeric "query_count": "queries; in the extended protocol, Syncs";
    Numeric "bytes_received" (Bytes): "from clients";
    Numeric "bytes_sent" (Bytes): "to clients";
    Numeric "xact_time" (Micros): "in transactions";
    Numeric "query_time" (Micros): "in queries";
    Numeric "wait_time" (Micros): "that clients waited for a server";
    Numeric "client_parse_count": "statements that clients prepared";
    Numeric "server_parse_count": "statements that Pondage prepared on servers";
    Numeric "bind_count": "Binds";
    Numeric "client_login_count": "clients that logged in";
};

/// PgBouncer gives the first eight the names of totals.
pub const STATS_AVERAGES: &[Column] = columns! {
    Text "database": "as in SHOW STATS";
    Numeric "server_assignment_count" (PerSecond): "times a client was given a server";
    Numeric "xact_count" (PerSecond): "transactions";
    Numeric "query_count" (PerSecond): "queries; in the extended protocol, Syncs";
    Numeric "bytes_received" (BytesPerSecond): "from clients";
    Numeric "bytes_sent" (BytesPerSecond): "to clients";
    Numeric "xact_time" (Micros): "of a transaction";
    Numeric "query_time" (Micros): "of a query";
    Numeric "wait_time" (Micros): "of a wait";
    Numeric "avg_client_parse_count" (PerSecond): "statements that clients prepared";
    Numeric "avg_server_parse_count" (PerSecond): "statements that Pondage prepared on servers";
    Numeric "avg_bind_count" (PerSecond): "Binds";
    Numeric "avg_client_login_count" (PerSecond): "clients that logged in";
};

pub const TOTALS: &[Column] = columns! {
    Text "name": "`total_` or `avg_`, and the name of a figure";
    Numeric "value": "of all databases together, in the unit that SHOW STATS has for it";
};
