//! What has to be measured.

use std::time::Duration;

use super::super::finding::Finding;
use super::super::patient::Patient;
use super::Judged;

/// Of each.
const TIMES: usize = 21;

/// Clocks may differ by so much, in seconds.
const CLOCK_MAX: f64 = 1.0;

/// A round trip on one machine or in one building takes less.
const TRIP_MAX: Duration = Duration::from_millis(2);

/// A flush of a disk that is meant for it takes less.
const COMMIT_MAX: Duration = Duration::from_millis(10);

/// Commits as a transaction does that has written, and leaves nothing.
const COMMIT: &str = "SELECT pg_logical_emit_message(true, 'pondage doctor', '')";

pub async fn clock(patient: &mut Patient<'_>) -> Result<Judged, String> {
    let (before, unsure) = patient.clock().await?;
    Ok(clock_is(before, unsure))
}

fn clock_is(before: f64, unsure: f64) -> Judged {
    let standing = format!("{:.3} s apart from this machine's", before.abs());
    if before.abs() <= CLOCK_MAX + unsure {
        return (standing, Vec::new());
    }
    let side = if before > 0.0 { "before" } else { "behind" };
    let finding = Finding::warning(format!(
        "the server's clock is {:.1} s {side} this machine's",
        before.abs()
    ))
    .effect("passwords that are VALID UNTIL a time end at another one, and logs do not match")
    .fix("-- have both machines keep time: systemctl enable --now chrony")
    .verify("SELECT clock_timestamp(); -- beside: date --utc");
    (standing, vec![finding])
}

pub async fn latency(patient: &mut Patient<'_>) -> Result<Judged, String> {
    let trips = patient.time("SELECT 1", TIMES).await?;
    let trip = median(&trips);
    let commit = match patient.facts.standby {
        true => None,
        false => Some(median(&patient.time(COMMIT, TIMES).await?)),
    };
    Ok(latency_is(trip, commit, patient.facts.remote))
}

fn median(sorted: &[Duration]) -> Duration {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn latency_is(trip: Duration, commit: Option<Duration>, remote: bool) -> Judged {
    let mut findings = Vec::new();
    if trip > TRIP_MAX {
        let place = if remote { "another machine" } else { "this machine" };
        findings.push(
            Finding::note(format!("a round trip to the server, on {place}, takes {trip:.1?}"))
                .effect("each statement waits so long at least, and holds its server meanwhile")
                .fix("-- run Pondage near the server: clients feel the distance once, not for each statement")
                .verify("-- pondage doctor measures it again"),
        );
    }
    let mut standing = format!("a round trip takes {trip:.1?}");
    if let Some(commit) = commit {
        standing = format!("{standing}, a commit {commit:.1?}");
        if commit.saturating_sub(trip) > COMMIT_MAX {
            findings.push(
                Finding::note(format!("a commit takes {commit:.1?}"))
                    .effect("each write waits for it, and holds its server meanwhile")
                    .fix("-- in the configuration: coalesce_writes = true lets writes of several clients share it")
                    .fix("-- or faster storage for pg_wal: measure it with pg_test_fsync")
                    .verify("-- pondage doctor measures it again"),
            );
        }
    }
    (standing, findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_judged_as_far_as_they_are_known() {
        assert_eq!(clock_is(0.4, 0.0).1, []);
        assert_eq!(clock_is(-1.4, 0.5).1, []);
        let (_, found) = clock_is(-61.0, 0.5);
        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains("61.0 s behind"), "{}", found[0].what);
    }

    #[test]
    fn what_is_slow_is_named_with_its_figure() {
        let of = |trip, commit| {
            let commit = Some(Duration::from_micros(commit));
            latency_is(Duration::from_micros(trip), commit, true).1
        };
        assert_eq!(of(300, 3_000), []);
        assert!(of(5_000, 6_000)[0].what.contains("another machine, takes 5.0ms"));
        assert!(of(300, 25_000)[0].what.contains("a commit takes 25.0ms"));
        assert_eq!(median(&[]), Duration::ZERO);
    }
}
