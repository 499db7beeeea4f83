//! The metrics of traces, where they are sent to somebody.

use super::exposition::Exposition;
use super::families;
use crate::export::Counts;

pub fn families(page: &mut Exposition, counts: Option<Counts>) {
    let Some(counts) = counts else { return };
    page.family(families::process::TRACES);
    let outcomes = [("sent", counts.sent), ("dropped", counts.dropped), ("failed", counts.failed)];
    for (outcome, count) in outcomes {
        page.sample(&[("outcome", outcome)], count);
    }
}
