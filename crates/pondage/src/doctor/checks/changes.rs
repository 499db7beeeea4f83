//! What the read cache needs: the server's log, read as changes.

use backend::replication::catalogue::{Row, Server};
use backend::replication::missing::{literal, Missing};

use super::super::finding::Finding;
use super::super::patient::Patient;
use super::{listed, of_cache, Judged, NAMED_MAX};

const NO_CACHE: &str = "reads are pooled and never cached";

fn missing(patient: &Patient<'_>, missing: Missing) -> Finding {
    of_cache(patient, missing.what).effect(NO_CACHE).fixes(missing.sql)
}

pub fn wal_level_sql(_: &Patient<'_>) -> String {
    "SHOW wal_level".to_owned()
}

pub fn wal_level(patient: &Patient<'_>, mut rows: Vec<Row>) -> Judged {
    let wal_level = rows.first_mut().map(Row::text).unwrap_or_default();
    let findings = match wal_level.as_str() {
        "logical" => Vec::new(),
        _ => {
            let server = Server { wal_level: wal_level.clone(), ..Server::default() };
            vec![missing(patient, Missing::wal_level(&server)).verify("SHOW wal_level; -- logical")]
        }
    };
    (wal_level, findings)
}

pub fn replication(patient: &Patient<'_>, _: Vec<Row>) -> Judged {
    let facts = &patient.facts;
    let streams = patient.config.stream_pool(&patient.pool.database);
    let who = streams.as_deref().map_or(&facts.user, |stream| &stream.upstream.user);
    if *who != facts.user {
        let other = format!("the stream logs in as \"{who}\": see to it with --user {who}");
        return (other, Vec::new());
    }
    let findings = match facts.replication || facts.superuser {
        true => Vec::new(),
        false => {
            let server = Server { user: facts.user.clone(), ..Server::default() };
            vec![missing(patient, Missing::replication(&server)).verify(format!(
                "SELECT rolreplication FROM pg_roles WHERE rolname = {}; -- t",
                literal(&facts.user)
            ))]
        }
    };
    (format!("\"{who}\" may follow the log"), findings)
}

pub fn slots_sql(_: &Patient<'_>) -> String {
    "SELECT current_setting('max_wal_senders'), (SELECT count(*) FROM pg_stat_replication), \
     current_setting('max_replication_slots'), (SELECT count(*) FROM pg_replication_slots)"
        .to_owned()
}

pub fn slots(patient: &Patient<'_>, mut rows: Vec<Row>) -> Judged {
    let Some(row) = rows.first_mut() else { return Judged::default() };
    let number = |row: &mut Row| row.number::<u32>().unwrap_or_default();
    let (senders_max, senders) = (number(row), number(row));
    let (slots_max, slots) = (number(row), number(row));
    let server = Server { senders_max, slots_max, ..Server::default() };
    let mut findings = Vec::new();
    if senders >= senders_max {
        let finding = missing(patient, Missing::senders(&server));
        findings.push(finding.verify("SELECT count(*) FROM pg_stat_replication;"));
    }
    if slots >= slots_max {
        let finding = missing(patient, Missing::slots(&server));
        findings.push(finding.verify("SELECT count(*) FROM pg_replication_slots;"));
    }
    let used =
        format!("{slots} of {slots_max} slots and {senders} of {senders_max} senders in use");
    (used, findings)
}

/// Rows: a slot that nobody reads, what is kept for it, what is left of it; behind them a row
/// of the server's limit.
pub fn kept_sql(_: &Patient<'_>) -> String {
    "SELECT slot_name, pg_size_pretty(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() \
       THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END, restart_lsn)), \
       coalesce(wal_status, '') \
     FROM pg_replication_slots WHERE NOT active \
     UNION ALL SELECT NULL, current_setting('max_slot_wal_keep_size'), ''"
        .to_owned()
}

pub fn kept(_: &Patient<'_>, rows: Vec<Row>) -> Judged {
    let mut findings = Vec::new();
    let mut limit = String::new();
    for mut row in rows {
        let (slot, kept, status) = (row.text(), row.text(), row.text());
        if slot.is_empty() {
            limit = if kept == "-1" { "no limit".to_owned() } else { kept };
            continue;
        }
        let (what, effect) = match status.as_str() {
            "lost" => (
                format!("slot {slot} has lost what it was kept for"),
                "whoever comes back to it has to begin anew".to_owned(),
            ),
            _ => (
                format!("nobody reads slot {slot}, for which {kept} of the log are kept"),
                "the log grows until the disk is full, and rows that were deleted stay".to_owned(),
            ),
        };
        findings.push(
            Finding::warning(what)
                .effect(effect)
                .fix(format!("SELECT pg_drop_replication_slot({});", literal(&slot)))
                .fix("ALTER SYSTEM SET max_slot_wal_keep_size = '10GB';")
                .fix("SELECT pg_reload_conf();")
                .verify("SELECT slot_name, active, restart_lsn FROM pg_replication_slots;"),
        );
    }
    (format!("no slot is left over; max_slot_wal_keep_size: {limit}"), findings)
}

/// Rows: a table without an identity, a unique index that could be it, how many there are.
pub fn identity_sql(_: &Patient<'_>) -> String {
    format!(
        "SELECT c.oid::regclass::text, (SELECT quote_ident(i.relname) FROM pg_index x \
             JOIN pg_class i ON i.oid = x.indexrelid \
             WHERE x.indrelid = c.oid AND x.indisunique AND x.indimmediate AND x.indisvalid \
               AND x.indpred IS NULL AND x.indexprs IS NULL AND NOT EXISTS (SELECT 1 \
                 FROM pg_attribute a WHERE a.attrelid = c.oid \
                   AND a.attnum = ANY (x.indkey::int2[]) AND NOT a.attnotnull) \
             ORDER BY x.indnatts, i.relname LIMIT 1), count(*) OVER () \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND n.nspname !~ '^pg_' \
           AND n.nspname <> 'information_schema' AND CASE c.relreplident WHEN 'f' THEN false \
             WHEN 'n' THEN true WHEN 'i' THEN NOT EXISTS (SELECT 1 FROM pg_index x \
               WHERE x.indrelid = c.oid AND x.indisreplident AND x.indisvalid) \
             ELSE NOT EXISTS (SELECT 1 FROM pg_index x WHERE x.indrelid = c.oid \
               AND x.indisprimary AND x.indimmediate AND x.indisvalid) END \
         ORDER BY c.oid LIMIT {NAMED_MAX}"
    )
}

pub fn identity(patient: &Patient<'_>, rows: Vec<Row>) -> Judged {
    let mut all = 0;
    let mut names = Vec::new();
    let mut fixes = Vec::new();
    for mut row in rows {
        let (table, index) = (row.text(), row.text());
        all = row.number().unwrap_or_default();
        fixes.push(match index.is_empty() {
            true => {
                format!("ALTER TABLE {table} REPLICA IDENTITY FULL; -- or give it a primary key")
            }
            false => format!("ALTER TABLE {table} REPLICA IDENTITY USING INDEX {index};"),
        });
        names.push(table);
    }
    let mut findings = Vec::new();
    if !names.is_empty() {
        let what = format!("tables whose old rows the log does not name: {}", listed(&names, all));
        findings.push(
            of_cache(patient, what)
                .effect("they are not published, for that would make UPDATE and DELETE fail; reads of them are not cached")
                .fixes(fixes)
                .verify("SELECT oid::regclass, relreplident FROM pg_class WHERE relkind IN ('r', 'p');"),
        );
    }
    ("every table has one".to_owned(), findings)
}
