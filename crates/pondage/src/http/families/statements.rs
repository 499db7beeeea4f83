//! Statements that share trips.

families! {
    "Coalescing", "For each pair of `database` and `user`, as in \
     [SHOW COALESCE](console.md#show-coalesce).";
    TRIPS: Counter Count "pondage_coalesce_trips_total" ["database", "user"]
        "Writes to a server that took statements of one or more clients along.";
    BATCHED: Counter Count "pondage_coalesce_batched_total" ["database", "user"]
        "Statements that shared a transaction.";
    TRAINED: Counter Count "pondage_coalesce_trained_total" ["database", "user"]
        "Writes that shared a flush.";
    PREPARED: Counter Count "pondage_coalesce_prepared_total" ["database", "user"]
        "Simple queries that were sent as a prepared statement.";
    STATEMENTS: Counter Count "pondage_coalesce_statements_total" ["database", "user", "why"]
        "Statements, by why they travelled as they did; free: together, else alone.",
        "All [the words](coalescing.md#why-does-my-statement-not-join).";
    RESENT: Counter Count "pondage_coalesce_resent_total" ["database", "user", "why"]
        "Statements sent again: behind an error, behind a stalled one, after a lost server.",
        "`skipped` (behind another's error, a stand-in that was refused, a write in a train that met \
         a lock), `stalled`, `lost`.";
}
