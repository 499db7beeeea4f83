//! What is in the database.

use backend::replication::catalogue::Row;
use backend::replication::missing::identifier;

use super::super::finding::Finding;
use super::super::patient::Patient;
use super::{listed, Judged, NAMED_MAX};
use crate::config::PoolMode;

pub fn plans_sql(_: &Patient<'_>) -> String {
    "SELECT current_setting('plan_cache_mode'), (SELECT string_agg(setting, ', ') FROM ( \
       SELECT coalesce(quote_ident(r.rolname), 'everybody') AS setting FROM pg_db_role_setting s \
       LEFT JOIN pg_roles r ON r.oid = s.setrole, unnest(s.setconfig) c \
       WHERE c LIKE 'plan_cache_mode=%' ORDER BY 1) there)"
        .to_owned()
}

pub fn plans(patient: &Patient<'_>, mut rows: Vec<Row>) -> Judged {
    let Some(row) = rows.first_mut() else { return Judged::default() };
    let (mode, set_for) = (row.text(), row.text());
    let mut findings = Vec::new();
    let from = match set_for.is_empty() {
        true => "",
        false => "; it is set for a role or database",
    };
    let effect = match mode.as_str() {
        "force_custom_plan" => {
            "prepared statements are planned each time, which takes longer than a short one runs"
        }
        "force_generic_plan" => "one plan serves all parameters, also those for which it is bad",
        _ => "",
    };
    if !effect.is_empty() {
        let finding = Finding::warning(format!("plan_cache_mode is {mode}{from}")).effect(effect);
        let user = identifier(&patient.facts.user);
        let finding = match set_for.is_empty() {
            true => {
                finding.fix("ALTER SYSTEM RESET plan_cache_mode;").fix("SELECT pg_reload_conf();")
            }
            false => finding.fix(format!("ALTER ROLE {user} RESET plan_cache_mode;")),
        };
        findings.push(finding.verify("SHOW plan_cache_mode; -- auto"));
    }
    if patient.pool.max_prepared_statements == 0 && patient.pool.mode != PoolMode::Session {
        findings.push(
            Finding::warning("max_prepared_statements is 0 in transaction mode")
                .effect("a client's prepared statement is on one server only: it is unknown on the next")
                .fix("-- in the configuration: max_prepared_statements = 200")
                .verify("SHOW CONFIG; -- of Pondage's console"),
        );
    }
    (format!("plan_cache_mode {mode}"), findings)
}

/// Rows: a function, what it leaves behind, how many there are.
pub fn functions_sql(_: &Patient<'_>) -> String {
    // What makes a thing of the session; whether it is really left is asked when it has run.
    let kinds = [
        ("a temporary table", r"\mcreate\s+(global\s+|local\s+)?temp"),
        ("LISTEN", r"\mlisten\s+\w"),
        ("an advisory lock of the session", r"\mpg_(try_)?advisory_lock(_shared)?\s*\("),
        ("a cursor WITH HOLD", r"\mwith\s+hold\M"),
        ("a prepared statement", r"\mprepare\s+\w+\s*(\([^)]*\))?\s*as\M"),
    ];
    let case = kinds.map(|(name, pattern)| {
        format!("CASE WHEN p.prosrc ~* E'{}' THEN '{name}' END", pattern.replace('\\', "\\\\"))
    });
    format!(
        "SELECT name, leaves, count(*) OVER () FROM (SELECT p.oid::regprocedure::text AS name, \
           concat_ws(', ', {}) AS leaves FROM pg_proc p \
           JOIN pg_namespace n ON n.oid = p.pronamespace \
           JOIN pg_language l ON l.oid = p.prolang \
           WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
             AND l.lanname IN ('sql', 'plpgsql') \
             AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') \
         ) found WHERE leaves <> '' ORDER BY name LIMIT {NAMED_MAX}",
        case.join(", ")
    )
}

pub fn functions(patient: &Patient<'_>, rows: Vec<Row>) -> Judged {
    let mut all = 0;
    let mut names = Vec::new();
    for mut row in rows {
        let (name, leaves) = (row.text(), row.text());
        all = row.number().unwrap_or_default();
        names.push(format!("{name} ({leaves})"));
    }
    let mut findings = Vec::new();
    if !names.is_empty() && patient.pool.mode != PoolMode::Session {
        findings.push(
            Finding::note(format!(
                "functions that may leave something in a session: {}",
                listed(&names, all)
            ))
            .effect("a client that calls one keeps its server until that is gone")
            .fix("-- ON COMMIT DROP for temporary tables, pg_advisory_xact_lock for locks")
            .verify("SHOW PINS; -- of Pondage's console, under load"),
        );
    }
    ("none that leaves something in a session".to_owned(), findings)
}

/// Rows: what it is, its name, the version that it was used with, the version that there is.
pub fn collations_sql(patient: &Patient<'_>) -> String {
    let own = match patient.facts.version >= 150_000 {
        true => {
            " UNION ALL SELECT 'DATABASE', quote_ident(datname), datcollversion, \
               pg_database_collation_actual_version(oid) FROM pg_database \
             WHERE datname = current_database() \
               AND datcollversion <> pg_database_collation_actual_version(oid)"
        }
        false => "",
    };
    format!(
        "(SELECT 'COLLATION', format('%I.%I', n.nspname, c.collname), c.collversion, \
            pg_collation_actual_version(c.oid) FROM pg_collation c \
          JOIN pg_namespace n ON n.oid = c.collnamespace \
          WHERE c.collversion <> pg_collation_actual_version(c.oid) \
          ORDER BY 2 LIMIT {NAMED_MAX}){own}"
    )
}

pub fn collations(patient: &Patient<'_>, rows: Vec<Row>) -> Judged {
    let database = identifier(&patient.facts.database);
    let finding = |mut row: Row| {
        let (kind, name, used, actual) = (row.text(), row.text(), row.text(), row.text());
        let what = kind.to_ascii_lowercase();
        let refresh = match kind.as_str() {
            "DATABASE" => format!("ALTER DATABASE {name} REFRESH COLLATION VERSION;"),
            _ => format!("ALTER COLLATION {name} REFRESH VERSION;"),
        };
        Finding::problem(format!(
            "the order of {what} {name} was that of version {used}, and the system's is {actual}"
        ))
        .effect("indexes over text are in the old order: rows are not found, and unique ones come twice")
        .fix(format!("REINDEX DATABASE {database}; -- or of the indexes over text that use it"))
        .fix(refresh)
        .verify("-- pondage doctor says no more of it")
    };
    ("as the system has them".to_owned(), rows.into_iter().map(finding).collect())
}
