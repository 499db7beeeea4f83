//! The metrics of traces, where they are sent to somebody.

use super::exposition::{Exposition, Kind};
use crate::export::Counts;

pub fn families(page: &mut Exposition, counts: Option<Counts>) {
    let Some(counts) = counts else { return };
    let help = "Statements that were sampled for traces, by what has become of them.";
    page.family("pondage_traces_total", Kind::Counter, help);
    let outcomes = [("sent", counts.sent), ("dropped", counts.dropped), ("failed", counts.failed)];
    for (outcome, count) in outcomes {
        page.sample(&[("outcome", outcome)], count);
    }
}
