//! The read cache.

families! {
    "The read cache", "Only once a database has been used that caches. See \
     [The read cache](cache.md).";
    HITS: Counter Count "pondage_cache_hits_total" ["database", "user"]
        "Reads answered from memory.";
    MIRRORED: Counter Count "pondage_cache_mirrored_total" ["database", "user"]
        "Of the hits, those that mirrors answered.", "See [Mirrors](cache.md#mirrors).";
    ADVISED: Counter Count "pondage_cache_advised_total" ["database", "user"]
        "In mode advise: reads that would have been answered from memory.";
    MISSES: Counter Count "pondage_cache_misses_total" ["database", "user"]
        "Reads of which nothing valid was kept.";
    FILLS: Counter Count "pondage_cache_fills_total" ["database", "user"]
        "Answers that were kept.";
    WAITS: Counter Count "pondage_cache_waits_total" ["database", "user"]
        "Reads that waited for the stream, or for another client's answer.";
    TOO_OLD: Counter Count "pondage_cache_too_old_total" ["database", "user"]
        "Reads that went to PostgreSQL because what is kept could not be shown to be new enough.";
    UNSETTLED: Counter Count "pondage_cache_unsettled_total" ["database", "user"]
        "Answers that were not kept because a change of their rows was not known to be visible.";
    LEASED: Counter Count "pondage_cache_leased_total" ["database", "user"]
        "Misses while PostgreSQL was asked for the same; they waited for that answer, or went to \
         PostgreSQL without keeping theirs.";
    UNSERVED: Counter Count "pondage_cache_unserved_total" ["database", "user"]
        "Reads that came while there was no stream.";
    AUDITS: Counter Count "pondage_cache_audits_total" ["database", "user"]
        "Hits that were asked of PostgreSQL all the same, and compared.";
    MISMATCHES: Counter Count "pondage_cache_mismatches_total" ["database", "user"]
        "Audits that found another answer; its statement is no longer cached.", "Alert on any.";
    STATEMENTS: Gauge Count "pondage_cache_statements" []
        "Statements that are named to be cached.";
    ENTRIES: Gauge Count "pondage_cache_entries" []
        "Results that are kept.";
    BYTES: Gauge Bytes "pondage_cache_bytes" []
        "Their memory, with everything.";
    MEMORY_LIMIT: Gauge Bytes "pondage_cache_memory_limit_bytes" []
        "Its limit.";
    EVICTED: Counter Count "pondage_cache_evicted_total" []
        "Results that made room for others.";
    STREAM_UP: Gauge Flag "pondage_cache_stream_up" ["database"]
        "1 while the database's changes are followed.";
    STREAM_LAG: Gauge Bytes "pondage_cache_stream_lag_bytes" ["database"]
        "How far the stream is behind the server's log.";
    STREAM_SLOT: Gauge Bytes "pondage_cache_stream_slot_bytes" ["database"]
        "WAL that the server keeps because of the stream.";
    STREAM_TABLES: Gauge Count "pondage_cache_stream_tables" ["database"]
        "Tables whose changes are followed.";
    STREAM_INFO: Gauge One "pondage_cache_stream_info" ["database", "state"]
        "1, labelled with the state of the stream.",
        "As in [SHOW STREAMS](console.md#show-streams).";
    STREAM_DELAY: Gauge Seconds "pondage_cache_stream_delay_seconds" ["database"]
        "How long the last transaction took from its commit until it was known here.",
        "Not there before the first.";
    STREAM_BEGUN: Counter Count "pondage_cache_stream_begun_total" ["database"]
        "Times that the stream has begun.";
    MIRRORS: Gauge Count "pondage_cache_mirrors" ["database", "state"]
        "Mirrors of tables, by state.", "`copying`, `waiting`, `ready`, `failed`.";
    MIRROR_ROWS: Gauge Count "pondage_cache_mirror_rows" ["database", "table"]
        "Rows of a mirror that answers.";
    MIRROR_BYTES: Gauge Bytes "pondage_cache_mirror_bytes" ["database", "table"]
        "Its memory, with everything.";
    MIRROR_USED: Gauge Bytes "pondage_cache_mirror_used_bytes" []
        "Memory of all mirrors.";
    MIRROR_LIMIT: Gauge Bytes "pondage_cache_mirror_limit_bytes" []
        "Its limit.", "`cache.mirror_memory`.";
    MIRROR_COPIED: Gauge Ratio "pondage_cache_mirror_copied_ratio" ["database", "table"]
        "The part of a table that is copied, while a mirror is being made.";
}
