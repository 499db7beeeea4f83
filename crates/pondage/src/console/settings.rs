//! Settings of PostgreSQL that drivers set or ask for right after they connect.

#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    /// What SHOW answers.
    pub value: &'static str,
}

/// Those that have an answer; the first five are PgBouncer's, with its values.
static SHOWN: [Setting; 10] = [
    Setting { name: "client_encoding", value: "UTF-8" },
    Setting { name: "default_transaction_isolation", value: "read committed" },
    Setting { name: "standard_conforming_strings", value: "on" },
    Setting { name: "datestyle", value: "ISO" },
    Setting { name: "timezone", value: "GMT" },
    Setting { name: "transaction_isolation", value: "read committed" },
    Setting { name: "transaction_read_only", value: "off" },
    Setting { name: "default_transaction_read_only", value: "off" },
    Setting { name: "in_hot_standby", value: "off" },
    Setting { name: "server_encoding", value: "UTF8" },
];

/// Those that are only ever set. Not transaction_timeout: that is PgBouncer's as well.
const SET_ONLY: [&str; 16] = [
    "application_name",
    "bytea_output",
    "client_min_messages",
    "default_transaction_deferrable",
    "extra_float_digits",
    "geqo",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "intervalstyle",
    "jit",
    "lc_messages",
    "lock_timeout",
    "role",
    "search_path",
    "session_authorization",
    "statement_timeout",
];

/// Those that SHOW answers.
pub fn shown() -> &'static [Setting] {
    &SHOWN
}

pub fn find(name: &str) -> Option<&'static Setting> {
    SHOWN.iter().find(|setting| setting.name.eq_ignore_ascii_case(name))
}

/// Sections of Pondage's own configuration.
const SECTIONS: [&str; 11] = [
    "auth",
    "cache",
    "coalesce",
    "databases",
    "listen",
    "pool",
    "procedures",
    "redis",
    "runtime",
    "telemetry",
    "users",
];

/// Whether `SET name` is meant for PostgreSQL and can be ignored. Extensions' settings have a dot,
/// as `myapp.tenant` has; so have Pondage's own, which begin with a section's name.
pub fn is_postgres(name: &str) -> bool {
    let known = |list: &[&str], name: &str| list.iter().any(|one| one.eq_ignore_ascii_case(name));
    match name.split_once('.') {
        Some((section, _)) => !known(&SECTIONS, section),
        None => find(name).is_some() || known(&SET_ONLY, name),
    }
}
