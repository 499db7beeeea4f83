//! The Redis door.

families! {
    "The Redis door", "Only with `listen.redis`. As in [SHOW REDIS](console.md#show-redis): counters \
     begin anew with CONFIG RESETSTAT.";
    UP: Gauge Flag "pondage_redis_up" []
        "1 while the tables can be used.";
    CLIENTS: Gauge Count "pondage_redis_clients" []
        "Redis clients.";
    BLOCKED_CLIENTS: Gauge Count "pondage_redis_blocked_clients" []
        "Those that wait for a key.";
    BATCHES_IN_FLIGHT: Gauge Count "pondage_redis_batches_in_flight" []
        "Batches sent to PostgreSQL that have not been answered.";
    RESIDENT_KEYS: Gauge Count "pondage_redis_resident_keys" []
        "Keys in memory, those included that are known not to exist.";
    RESIDENT_BYTES: Gauge Bytes "pondage_redis_resident_bytes" []
        "Memory of those keys.";
    MEMORY_LIMIT: Gauge Bytes "pondage_redis_memory_limit_bytes" []
        "Its limit.";
    CHANNELS: Gauge Count "pondage_redis_channels" []
        "Channels with subscribers.";
    JOURNAL_BACKLOG: Gauge Bytes "pondage_redis_journal_backlog_bytes" []
        "What is in the journal and not in the tables.";
    JOURNAL_LIMIT: Gauge Bytes "pondage_redis_journal_limit_bytes" []
        "Its limit.", "Beyond it writers wait.";
    FOLD_FAILING: Gauge Flag "pondage_redis_fold_failing" []
        "1 while the journal can't be written into the tables.",
        "[SHOW REDIS](console.md#show-redis) says why (`fold_error`).";
    COMMANDS: Counter Count "pondage_redis_commands_total" ["command"]
        "Commands that ran, by name.";
    COMMAND_ERRORS: Counter Count "pondage_redis_command_errors_total" ["command", "outcome"]
        "Commands answered with an error, by name; rejected: before they ran.",
        "`failed`, `rejected`.";
    BATCH_ROWS: Histogram Count "pondage_redis_batch_rows" []
        "Rows of a batch.", "1 to 1024; its count is that of batches, its sum that of rows.";
    COMMIT: Histogram Seconds "pondage_redis_commit_seconds" []
        "Time from sending a batch to the answer to its COMMIT.", "50 µs to 1.6 s.";
    CONNECTIONS: Counter Count "pondage_redis_connections_total" []
        "Redis clients that came.";
    ERRORS: Counter Count "pondage_redis_errors_total" []
        "Errors that were replied.";
    BATCH_RETRIES: Counter Count "pondage_redis_batch_retries_total" []
        "Batches that were sent once more.";
    BATCH_CONFLICTS: Counter Count "pondage_redis_batch_conflicts_total" []
        "Batches that were undone because SQL had changed a row first.";
    BATCH_REFUSED: Counter Count "pondage_redis_batch_refused_total" []
        "Batches that PostgreSQL refused for good.";
    FOLDS: Counter Count "pondage_redis_folds_total" []
        "Times that the journal was written into the tables.";
    FOLDED_KEYS: Counter Count "pondage_redis_folded_keys_total" []
        "Keys that this has written.";
    FOLD_FAILURES: Counter Count "pondage_redis_fold_failures_total" []
        "Times that it has failed.";
    FOLD_OVERWRITTEN: Counter Count "pondage_redis_fold_overwritten_total" []
        "Changes by SQL that the journal has overwritten.";
    LOOKUPS: Counter Count "pondage_redis_lookups_total" []
        "Questions for rows.";
    LOOKUP_KEYS: Counter Count "pondage_redis_lookup_keys_total" []
        "Keys in those questions.";
    HITS: Counter Count "pondage_redis_hits_total" []
        "Keys that were found in memory.";
    MISSES: Counter Count "pondage_redis_misses_total" []
        "Keys that PostgreSQL was asked for.";
    EVICTED: Counter Count "pondage_redis_evicted_total" []
        "Copies that made room for others.";
    EXPIRED: Counter Count "pondage_redis_expired_total" []
        "Keys that expired.";
}
