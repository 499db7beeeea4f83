//! The metrics of procedures: how their calls fare. Labels are names of databases, schemas and
//! procedures: never SQL.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::exposition::Exposition;
use super::families::{self, Family};
use crate::procedures::{Fared, Procedure};

/// Procedures that have series: those that were called most.
const SERIES_MAX: usize = 256;

/// Those of one database and name, whatever their arguments are.
#[derive(Debug, Default)]
struct Sums {
    fared: Fared,
    /// Calls that were looked at by chance, and those of them that waited for a lock.
    seen: u64,
    waited: u64,
}

type Counter = (&'static Family, fn(&Sums) -> u64);

const COUNTERS: [Counter; 7] = [
    (families::procedures::CALLS, |sums| sums.fared.calls),
    (families::procedures::JOINED, |sums| sums.fared.joined),
    (families::procedures::COMPANY, |sums| sums.fared.company),
    (families::procedures::RETRIES, |sums| sums.fared.retried),
    (families::procedures::ERRORS, |sums| sums.fared.errors),
    (families::procedures::SAMPLED, |sums| sums.seen),
    (families::procedures::LOCK_WAITS, |sums| sums.waited),
];

/// Writes the families; none before the first call.
pub fn families(page: &mut Exposition, procedures: &[Arc<Procedure>]) {
    let mut sums: BTreeMap<(&str, &str), Sums> = BTreeMap::new();
    for procedure in procedures {
        let fared = procedure.fared();
        if fared.calls > 0 {
            let sum = sums.entry((&procedure.database, &procedure.title)).or_default();
            sum.fared.add(&fared);
            let waits = procedure.waits();
            sum.seen += waits.seen;
            sum.waited += waits.waited;
        }
    }
    let mut shown: Vec<((&str, &str), Sums)> = sums.into_iter().collect();
    shown.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.fared.calls));
    shown.truncate(SERIES_MAX);
    shown.sort_by_key(|(names, _)| *names);
    if shown.is_empty() {
        return;
    }
    for (family, value) in COUNTERS {
        page.family(family);
        for ((database, procedure), sums) in &shown {
            page.sample(&[("database", database), ("procedure", procedure)], value(sums));
        }
    }
    page.family(families::procedures::DURATION);
    for ((database, procedure), sums) in &shown {
        page.histogram(&[("database", database), ("procedure", procedure)], &sums.fared.time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::fixture;
    use crate::procedures::Procedures;

    fn page(procedures: &Procedures) -> String {
        let mut page = Exposition::default();
        families(&mut page, &procedures.list());
        page.into_text()
    }

    #[test]
    fn what_nobody_has_called_has_no_series() {
        let procedures = Procedures::default();
        assert_eq!(page(&procedures), "");
        fixture::procedure(&procedures, "app", 7, "payment");
        assert_eq!(page(&procedures), "");
    }

    #[test]
    fn procedures_with_one_name_are_one_series() {
        let procedures = Procedures::default();
        let mut fared = Fared { calls: 3, joined: 2, company: 9, retried: 1, ..Fared::default() };
        fared.time.record(1_500);
        for oid in [7, 8] {
            fixture::procedure(&procedures, "app", oid, "payment").tell(&fared);
        }
        let text = page(&procedures);
        let labels = "database=\"app\",procedure=\"public.payment\"";
        for line in [
            format!("pondage_procedure_calls_total{{{labels}}} 6"),
            format!("pondage_procedure_joined_total{{{labels}}} 4"),
            format!("pondage_procedure_company_total{{{labels}}} 18"),
            format!("pondage_procedure_retries_total{{{labels}}} 2"),
            format!("pondage_procedure_errors_total{{{labels}}} 0"),
            format!("pondage_procedure_lock_waits_total{{{labels}}} 0"),
            format!("pondage_procedure_duration_seconds_count{{{labels}}} 2"),
            format!("pondage_procedure_duration_seconds_sum{{{labels}}} 0.003"),
        ] {
            assert!(text.lines().any(|got| got == line), "{line}:\n{text}");
        }
    }

    #[test]
    fn those_called_most_have_series() {
        let procedures = Procedures::default();
        let many = SERIES_MAX as u32 + 5;
        for oid in 0..many {
            let calls = u64::from(oid + 1);
            let procedure = fixture::procedure(&procedures, "app", oid, &format!("p{oid}"));
            procedure.tell(&Fared { calls, ..Fared::default() });
        }
        let text = page(&procedures);
        let lines = text.lines().filter(|line| line.starts_with("pondage_procedure_calls_total{"));
        assert_eq!(lines.count(), SERIES_MAX);
        assert!(!text.contains("public.p4\"") && text.contains("public.p5\""));
    }
}
