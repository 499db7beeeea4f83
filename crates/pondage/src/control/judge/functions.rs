//! Functions that are judged by name, because what their volatility says is too much or too little.

/// Functions that are not volatile (in some version at least) and still must not run where a
/// transaction is shared, with the reason as it is told.
const REFUSED: &[(&str, &str)] = &[
    // They give the transaction a number, which is a write: the reads that share it would show it
    // and wait for its commit.
    ("txid_current", "numbers its transaction"),
    ("pg_current_xact_id", "numbers its transaction"),
    // They answer for the whole transaction, which others would be in. (`pg_current_snapshot` and
    // `txid_current_snapshot` are not here: under READ COMMITTED each statement has its own
    // snapshot, and reads give the transaction no number that it could show.)
    ("txid_current_if_assigned", "shows its transaction"),
    ("pg_current_xact_id_if_assigned", "shows its transaction"),
    // They show the connection, or what a session has left on it.
    ("pg_backend_pid", "shows its connection"),
    ("inet_client_addr", "shows its connection"),
    ("inet_client_port", "shows its connection"),
    ("inet_server_addr", "shows its connection"),
    ("inet_server_port", "shows its connection"),
    ("pg_listening_channels", "shows its session"),
    ("pg_cursor", "shows its session"),
    ("pg_prepared_statement", "shows its session"),
    ("pg_my_temp_schema", "shows its session"),
    ("currval", "shows its session"),
    ("lastval", "shows its session"),
    // They change the session.
    ("set_config", "changes its session"),
    ("setseed", "changes its session"),
    // Its snapshot is good until the end of the transaction, which is not the caller's.
    ("pg_export_snapshot", "exports the snapshot of its transaction"),
    ("pg_notify", "notifies others when its transaction ends"),
    // They read what the statement does not name: tables by name or oid, or a text of SQL that
    // may call anything.
    ("query_to_xml", "runs a query that is not judged"),
    ("query_to_xmlschema", "runs a query that is not judged"),
    ("query_to_xml_and_xmlschema", "runs a query that is not judged"),
    ("cursor_to_xml", "runs a query that is not judged"),
    ("cursor_to_xmlschema", "runs a query that is not judged"),
    ("table_to_xml", "reads tables that are not judged"),
    ("table_to_xmlschema", "reads tables that are not judged"),
    ("table_to_xml_and_xmlschema", "reads tables that are not judged"),
    ("schema_to_xml", "reads tables that are not judged"),
    ("schema_to_xmlschema", "reads tables that are not judged"),
    ("schema_to_xml_and_xmlschema", "reads tables that are not judged"),
    ("database_to_xml", "reads tables that are not judged"),
    ("database_to_xmlschema", "reads tables that are not judged"),
    ("database_to_xml_and_xmlschema", "reads tables that are not judged"),
    ("ts_stat", "runs a query that is not judged"),
    ("ts_rewrite", "runs a query that is not judged"),
];

/// Families of functions of which none may share, whatever a database says of them.
const REFUSED_PREFIXES: &[(&str, &str)] = &[
    ("dblink", "works in another session"),
    ("pg_advisory_", "locks beyond its statement"),
    ("pg_try_advisory_", "locks beyond its statement"),
    ("lo_", "works on large objects"),
];

/// Volatile built-in functions that read: another value each time, but nothing of it is kept and
/// nobody waits for it. In their own transaction they may travel behind others.
const HARMLESS: &[&str] = &[
    // Chance. The generator is the server process's, and nobody may rely on whose turn it is.
    "random",
    "random_normal",
    "gen_random_uuid",
    "uuidv4",
    "uuidv7",
    // The clock; it goes on within a transaction, so two calls may differ.
    "clock_timestamp",
    "timeofday",
    // How far the server is; checks of health and replicas ask for it all the time.
    "pg_is_in_recovery",
    "pg_current_wal_lsn",
    "pg_current_wal_insert_lsn",
    "pg_current_wal_flush_lsn",
    "pg_last_wal_receive_lsn",
    "pg_last_wal_replay_lsn",
    "pg_last_xact_replay_timestamp",
];

/// Built-in functions that a write in its own transaction may call besides [`HARMLESS`] ones.
const HARMLESS_IN_WRITES: &[&str] = &[
    // A sequence is beyond transactions: its numbers never come back.
    "nextval",
    // The write has its own transaction, which gets a number anyway.
    "txid_current",
    "pg_current_xact_id",
];

/// Why this function may not share, by its name alone.
pub fn refused(name: &str, writes: bool) -> Option<&'static str> {
    if writes && HARMLESS_IN_WRITES.contains(&name) {
        return None;
    }
    let family = REFUSED_PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    REFUSED.iter().find(|(refused, _)| *refused == name).or(family).map(|(_, why)| *why)
}

/// Whether this built-in function is harmless although it is volatile.
pub fn harmless(name: &str, writes: bool) -> bool {
    HARMLESS.contains(&name) || (writes && HARMLESS_IN_WRITES.contains(&name))
}
