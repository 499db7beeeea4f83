//! Pools, their clients and servers.

families! {
    "Pools", "For each pair of `database` and `user` that has been used, as in \
     [SHOW POOLS](console.md#show-pools).";
    CLIENTS: Gauge Count "pondage_client_connections" ["database", "user", "state"]
        "Clients with a pool, by state.",
        "`active`, `waiting`, `active_cancel_req`, `waiting_cancel_req`.";
    SERVERS: Gauge Count "pondage_server_connections" ["database", "user", "state"]
        "Server connections, by state.",
        "`active`, `active_cancel`, `being_canceled`, `idle`, `used`, `tested`, `login`.";
    INFO: Gauge One "pondage_pool_info" ["database", "user", "pool_mode"]
        "1, labelled with the pool's mode.";
    SIZE: Gauge Count "pondage_pool_size" ["database", "user"]
        "Most server connections of the pool.", "As configured.";
    MAXWAIT: Gauge Seconds "pondage_pool_maxwait_seconds" ["database", "user"]
        "How long the oldest waiting client waits.";
    PAUSED: Gauge Flag "pondage_pool_paused" ["database", "user"]
        "1 while the pool is paused.";
    DISABLED: Gauge Flag "pondage_pool_disabled" ["database", "user"]
        "1 while its database is disabled.";
    LISTENERS: Gauge Count "pondage_pool_listeners" ["database", "user"]
        "Clients that listen over a shared connection.";
    FAILING: Gauge Flag "pondage_pool_failing" ["database", "user"]
        "1 while the last try to open a server failed.";
    PINS: Gauge Count "pondage_pins" ["database", "user", "reason"]
        "Clients that keep a server beyond a transaction, by reason.",
        "`temporary`, `cursor`, `listen`, `lock`, `library`, `unknown`; a client that has several \
         counts for each ([Pins](pooling.md#pins)).";
    TRANSACTIONS: Counter Count "pondage_transactions_total" ["database", "user"]
        "Transactions.";
    QUERIES: Counter Count "pondage_queries_total" ["database", "user"]
        "Queries.", "In the extended protocol, Syncs.";
    SERVER_ASSIGNMENTS: Counter Count "pondage_server_assignments_total" ["database", "user"]
        "Times a client was given a server.";
    RECEIVED: Counter Bytes "pondage_received_bytes_total" ["database", "user"]
        "Bytes from clients.";
    SENT: Counter Bytes "pondage_sent_bytes_total" ["database", "user"]
        "Bytes to clients.";
    CLIENT_PARSES: Counter Count "pondage_client_parses_total" ["database", "user"]
        "Statements that clients prepared.";
    SERVER_PARSES: Counter Count "pondage_server_parses_total" ["database", "user"]
        "Statements prepared on servers.";
    BINDS: Counter Count "pondage_binds_total" ["database", "user"]
        "Prepared statements bound.";
    STALE_PLANS: Counter Count "pondage_stale_plans_total" ["database", "user"]
        "Prepared statements that did not fit what is defined now.",
        "PostgreSQL's 0A000 ([when](pooling.md#prepared-statements)).";
    REPLANNED: Counter Count "pondage_replanned_total" ["database", "user"]
        "Of these, those that clients did not notice.";
    CLIENT_LOGINS: Counter Count "pondage_client_logins_total" ["database", "user"]
        "Clients that logged in.";
    CLIENT_ERRORS: Counter Count "pondage_client_errors_total" ["database", "user"]
        "Errors that reached clients.", "ErrorResponses of servers.";
    SERVER_OPENS: Counter Count "pondage_server_opens_total" ["database", "user"]
        "Server connections opened.", "Those that came to nothing included.";
    SERVER_CLOSES: Counter Count "pondage_server_closes_total" ["database", "user"]
        "Server connections closed.";
    SERVER_GIVEN_UP: Counter Count "pondage_server_given_up_total" ["database", "user"]
        "Server connections closed so that another pool could open one.";
    CANCELS: Counter Count "pondage_cancels_total" ["database", "user"]
        "Cancel requests.", "Those that were sent to PostgreSQL.";
    NOTIFICATIONS: Counter Count "pondage_notifications_total" ["database", "user"]
        "Notifications that clients were told over shared connections.";
    TRANSACTION_SECONDS: Counter Seconds "pondage_transaction_seconds_total" ["database", "user"]
        "Time in transactions.";
    QUERY_SECONDS: Counter Seconds "pondage_query_seconds_total" ["database", "user"]
        "Time in queries.";
    CLIENT_WAIT_SECONDS: Counter Seconds "pondage_client_wait_seconds_total" ["database", "user"]
        "Time clients waited for a server.";
    QUERY_DURATION: Histogram Seconds "pondage_query_duration_seconds" ["database", "user", "source"]
        "Time from a query's arrival to its end, by where its answer came from.",
        "`source` is `server`. Buckets from 50 µs, doubling, to 13 s, as in the next two.";
    TRANSACTION_DURATION: Histogram Seconds "pondage_transaction_duration_seconds"
        ["database", "user"]
        "Time of a transaction, from its first statement to its end.";
    POOL_WAIT: Histogram Seconds "pondage_pool_wait_seconds" ["database", "user"]
        "Time a client waited before it was given a server.";
}
