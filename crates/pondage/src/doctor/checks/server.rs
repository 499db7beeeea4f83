//! The server as a whole.

use backend::replication::catalogue::Row;
use backend::replication::SERVER_VERSION_MIN;

use super::super::finding::Finding;
use super::super::patient::Patient;
use super::Judged;
use crate::config::ServerTlsMode;

/// The day of the last release of each major version.
///
/// Source: <https://www.postgresql.org/support/versioning/>
const SUPPORTED_UNTIL: [(u32, &str); 6] = [
    (13, "2025-11-13"),
    (14, "2026-11-12"),
    (15, "2027-11-11"),
    (16, "2028-11-09"),
    (17, "2029-11-08"),
    (18, "2030-11-14"),
];

/// What the session knows already.
pub fn nothing(_: &Patient<'_>) -> String {
    String::new()
}

pub fn version_sql(_: &Patient<'_>) -> String {
    "SELECT to_char(now(), 'YYYY-MM-DD')".to_owned()
}

pub fn version(patient: &Patient<'_>, mut rows: Vec<Row>) -> Judged {
    let today = rows.first_mut().map(Row::text).unwrap_or_default();
    version_on(patient.facts.version, &patient.facts.version_text, &today)
}

fn version_on(version: u32, text: &str, today: &str) -> Judged {
    let major = version / 10_000;
    let verify = "SHOW server_version;";
    if version < SERVER_VERSION_MIN {
        let oldest = SERVER_VERSION_MIN / 10_000;
        let finding = Finding::warning(format!("PostgreSQL {text} is older than {oldest}"))
            .effect("pooling works; the read cache and the Redis door do not, and nobody mends it")
            .fix("-- upgrade with pg_upgrade or by logical replication")
            .verify(verify);
        return (String::new(), vec![finding]);
    }
    let until = SUPPORTED_UNTIL.iter().find(|(known, _)| *known == major).map(|(_, until)| *until);
    match until {
        // Days in this form are in the order of their texts.
        Some(until) if today > until => {
            let finding = Finding::warning(format!(
                "PostgreSQL {major} has had its last release on {until}; this is {text}"
            ))
            .effect("errors and security holes of the server are not mended any more")
            .fix("-- upgrade with pg_upgrade or by logical replication")
            .verify(verify);
            (String::new(), vec![finding])
        }
        Some(until) => (format!("{text}, supported until {until}"), Vec::new()),
        None => (format!("{text}, newer than this program"), Vec::new()),
    }
}

pub fn standby(patient: &Patient<'_>, _: Vec<Row>) -> Judged {
    if !patient.facts.standby {
        return ("a primary".to_owned(), Vec::new());
    }
    let finding = Finding::warning("this server is a standby")
        .effect("writes fail here, and nothing of it can be cached or served by the Redis door")
        .fix(
            "-- in the configuration: host = \"this,other\" and target_session_attrs = \"primary\"",
        )
        .verify("SELECT pg_is_in_recovery(); -- f");
    (String::new(), vec![finding])
}

pub fn tls(patient: &Patient<'_>, _: Vec<Row>) -> Judged {
    let mode = patient.pool.upstream.tls.mode;
    let checked = matches!(mode, ServerTlsMode::VerifyCa | ServerTlsMode::VerifyFull);
    tls_is(&patient.tls, patient.facts.remote, checked)
}

fn tls_is(tls: &str, remote: bool, checked: bool) -> Judged {
    match (tls.is_empty(), remote) {
        (true, false) => ("none, on one machine".to_owned(), Vec::new()),
        (true, true) => {
            let finding = Finding::warning("the connection to another machine is not encrypted")
                .effect("whoever is on the way reads and changes queries and rows")
                .fix("ALTER SYSTEM SET ssl = on; -- with server.crt and server.key in its data directory")
                .fix("SELECT pg_reload_conf();")
                .fix("-- in the configuration: tls_mode = \"verify-full\"")
                .verify("SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid(); -- t");
            (String::new(), vec![finding])
        }
        (false, true) if !checked => {
            let finding = Finding::note(format!("{tls}, and nobody checks whose server it is"))
                .effect("who can answer in the server's place can read all")
                .fix("-- in the configuration: tls_mode = \"verify-full\", and tls_ca where the system does not trust its issuer")
                .verify("-- pondage doctor says no more of it");
            (String::new(), vec![finding])
        }
        (false, _) => (tls.to_owned(), Vec::new()),
    }
}

pub fn durability_sql(_: &Patient<'_>) -> String {
    "SELECT current_setting('fsync'), current_setting('full_page_writes'), \
     current_setting('synchronous_commit')"
        .to_owned()
}

pub fn durability(_: &Patient<'_>, mut rows: Vec<Row>) -> Judged {
    let Some(row) = rows.first_mut() else { return Judged::default() };
    let (fsync, pages, commit) = (row.text(), row.text(), row.text());
    let mut findings = Vec::new();
    let on = |finding: Finding, name: &str| {
        finding
            .fix(format!("ALTER SYSTEM SET {name} = on;"))
            .fix("SELECT pg_reload_conf();")
            .verify(format!("SHOW {name}; -- on"))
    };
    if fsync == "off" {
        let finding = Finding::problem("fsync is off").effect(
            "a crash of the machine loses commits that were acknowledged, or the whole cluster",
        );
        findings.push(on(finding, "fsync"));
    }
    if pages == "off" {
        let finding = Finding::problem("full_page_writes is off").effect(
            "a crash of the machine in the middle of a write leaves a page that is half old",
        );
        findings.push(on(finding, "full_page_writes"));
    }
    if commit == "off" {
        let finding = Finding::warning("synchronous_commit is off")
            .effect("a crash loses the last commits although they were acknowledged, those of Redis clients too");
        findings.push(on(finding, "synchronous_commit"));
    }
    (format!("fsync on, synchronous_commit {commit}"), findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_between_machines_tls_is_missed() {
        let weights = |tls, remote, checked| {
            let (_, found) = tls_is(tls, remote, checked);
            found.iter().map(|finding| finding.weight.word()).collect::<Vec<_>>()
        };
        assert_eq!(weights("", false, false), [""; 0]);
        assert_eq!(weights("", true, false), ["warning"]);
        assert_eq!(weights("TLSv1.3", true, false), ["note"]);
        assert_eq!(weights("TLSv1.3", true, true), [""; 0]);
        assert_eq!(weights("TLSv1.3", false, false), [""; 0]);
    }

    #[test]
    fn versions_are_judged_by_the_day() {
        let of = |version, today| version_on(version, "x", today).1.len();
        assert_eq!(of(150_020, "2026-11-23"), 0);
        assert_eq!(of(150_020, "2027-11-11"), 0);
        assert_eq!(of(150_020, "2027-11-12"), 1);
        assert_eq!(of(140_020, "2026-11-23"), 1);
        assert_eq!(of(120_001, "2020-01-01"), 1);
        // Nobody knows yet.
        assert_eq!(of(990_000, "2050-01-01"), 0);
    }
}
