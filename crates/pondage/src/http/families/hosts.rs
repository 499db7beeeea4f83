//! Hosts of databases that have several, reads from standbys, and users that are looked up.

families! {
    "Hosts and look-ups", "`pondage_host_…` are there for databases with \
     [several hosts](pooling.md#several-hosts), as in [SHOW HOSTS](console.md#show-hosts); \
     `pondage_lookups_total` while users are looked up, as in [SHOW LOOKUPS](console.md#show-lookups).";
    UP: Gauge Flag "pondage_host_up" ["database", "host", "port", "address"]
        "1 while the host answers, as far as is known.";
    BANNED: Gauge Flag "pondage_host_banned" ["database", "host", "port", "address"]
        "1 while the host is tried last.";
    CONNECTIONS: Gauge Count "pondage_host_connections" ["database", "host", "port", "address"]
        "Server connections that this process has at the host, for any database.";
    LAG: Gauge Bytes "pondage_host_lag_bytes" ["database", "host", "port", "address"]
        "Log of the primary that a standby has not replayed.", "Not there while it is not known.";
    PROBES: Counter Count "pondage_host_probes_total" ["database", "host", "port", "address"]
        "Times that the host was asked.";
    PROBE_FAILURES: Counter Count "pondage_host_probe_failures_total"
        ["database", "host", "port", "address"]
        "Times that it gave no answer.";
    BANS: Counter Count "pondage_host_bans_total" ["database", "host", "port", "address"]
        "Times that it was banned.";
    ROLE: Gauge One "pondage_host_role" ["database", "host", "port", "address", "role"]
        "1, labelled with what the host is.";
    SPLIT_READS: Counter Count "pondage_split_reads_total" ["database", "user"]
        "Statements and transactions that went to a standby, with split_reads.",
        "There for each pool ([when](pooling.md#reads-from-standbys)), as the next.";
    SPLIT_RETURNED: Counter Count "pondage_split_returned_total" ["database", "user"]
        "Of these, the ones that the standby gave up and the primary was asked for.";
    LOOKUPS: Counter Count "pondage_lookups_total" ["database", "outcome"]
        "Log-ins whose user was looked up, by what has become of that.",
        "`asked`, `known`, `failed`.";
}
