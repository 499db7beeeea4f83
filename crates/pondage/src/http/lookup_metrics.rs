//! The metrics of users that are looked up, for databases where they are.

use super::exposition::Exposition;
use super::families;
use crate::control::tally::Standing;

/// Writes the family; none while nobody is looked up.
pub fn families(page: &mut Exposition, look_ups: &[Standing]) {
    if look_ups.is_empty() {
        return;
    }
    page.family(families::hosts::LOOKUPS);
    for row in look_ups {
        let tally = &row.tally;
        let outcomes = [("asked", tally.asked), ("known", tally.known), ("failed", tally.failed)];
        for (outcome, count) in outcomes {
            page.sample(&[("database", &row.database), ("outcome", outcome)], count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::fixture;

    #[test]
    fn look_ups_are_counted_by_what_has_become_of_them() {
        let mut page = Exposition::default();
        families(&mut page, &[fixture::look_ups("app")]);
        let text = page.into_text();
        for (outcome, count) in [("asked", 7), ("known", 3), ("failed", 1)] {
            let line =
                format!("pondage_lookups_total{{database=\"app\",outcome=\"{outcome}\"}} {count}");
            assert!(text.contains(&line), "{line}\n{text}");
        }
        let mut none = Exposition::default();
        families(&mut none, &[]);
        assert!(none.into_text().is_empty());
    }
}
