//! Every family of metrics: its name, type, unit, labels and meaning. A family can be made nowhere
//! else, so none can be written that is not here; the manual's `docs/metrics.md` is made of it.

use std::fmt::Write;

use super::exposition::Kind;

/// What the samples of a family count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Always 1: its labels say it.
    One,
    /// 0 or 1.
    Flag,
    /// A number of things.
    Count,
    Seconds,
    Bytes,
    /// A part of one.
    Ratio,
    /// Seconds since 1970.
    UnixTime,
}

impl Unit {
    /// As the manual has it.
    fn word(self) -> &'static str {
        match self {
            Unit::One => "1",
            Unit::Flag => "0 or 1",
            Unit::Count => "",
            Unit::Seconds => "s",
            Unit::Bytes => "bytes",
            Unit::Ratio => "0 to 1",
            Unit::UnixTime => "s since 1970",
        }
    }
}

/// See [`Family::labels`] and its like: fields are for this module alone, that no other makes one.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    name: &'static str,
    kind: Kind,
    unit: Unit,
    labels: &'static [&'static str],
    help: &'static str,
    more: &'static str,
}

impl Family {
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Names of the labels of each sample, in order; `le` of a histogram's buckets is not among
    /// them.
    pub fn labels(&self) -> &'static [&'static str] {
        self.labels
    }

    /// For HELP, and for the manual, which has `more` behind it.
    pub fn help(&self) -> &'static str {
        self.help
    }
}

/// Families that belong together.
pub struct Group {
    title: &'static str,
    /// When they are written, if not always, and what their labels are. Markdown.
    about: &'static str,
    families: &'static [&'static Family],
}

/// `NAME: Kind Unit "name" [labels] "help"`, and what the manual adds, in Markdown with links from
/// `docs/`.
macro_rules! families {
    ($title:literal, $about:literal;
     $($constant:ident: $kind:ident $unit:ident $name:literal [$($label:literal),*]
        $help:literal $(, $more:literal)?;)+) => {
        $(pub const $constant: &super::Family = &super::Family {
            name: $name,
            kind: super::Kind::$kind,
            unit: super::Unit::$unit,
            labels: &[$($label),*],
            help: $help,
            more: concat!($($more)?),
        };)+

        pub(super) const GROUP: super::Group = super::Group {
            title: $title,
            about: $about,
            families: &[$($constant),+],
        };
    };
}

pub mod cache;
pub mod hosts;
pub mod pools;
pub mod procedures;
pub mod process;
pub mod redis;
pub mod statements;

/// In the order of the manual.
const GROUPS: [Group; 7] = [
    process::GROUP,
    pools::GROUP,
    statements::GROUP,
    hosts::GROUP,
    procedures::GROUP,
    cache::GROUP,
    redis::GROUP,
];

/// All there are.
pub fn all() -> impl Iterator<Item = &'static Family> {
    GROUPS.into_iter().flat_map(|group| group.families.iter().copied())
}

/// The page `docs/metrics.md`.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    for Group { title, about, families } in GROUPS {
        // Writing to a String can't fail.
        let _ = write!(page, "\n## {title}\n\n{about}\n\n");
        page.push_str("| family | type | labels | unit | meaning |\n|---|---|---|---|---|\n");
        for Family { name, kind, unit, labels, help, more } in families {
            let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
            let (kind, labels, unit) = (kind.word(), labels.join(", "), unit.word());
            let gap = if more.is_empty() { "" } else { " " };
            let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {unit} | {help}{gap}{more} |");
        }
    }
    page
}

const INTRODUCTION: &str = "\
# Metrics

<!-- Generated from crates/pondage/src/http/families. To change this page, change a table and run
`UPDATE_DOCS=1 cargo test -p pondage reference_page`. -->

`/metrics` on the HTTP door (`listen.http`) has all families in Prometheus' text format, 0.0.4. Values
of labels are names from the configuration, log-in or catalogues and fixed words, never SQL. Counters
begin with the process. Histograms have the label `le` beside those that are named.

[Alerts and a dashboard for Grafana](installing.md#prometheus-and-grafana) come with Pondage.

## What to watch

- **Clients wait:** `pondage_pool_maxwait_seconds`. [`SHOW BLOCKERS`](console.md#show-blockers) says
  for whom.
- **PostgreSQL can't be reached:** `pondage_pool_failing`.
- **Clients are refused:** the rate of `pondage_client_refused_total`.
- **A worker hangs:** `pondage_worker_up`.
- **The cache:** `pondage_cache_stream_up`, and the rates of hits and misses;
  `pondage_cache_mismatches_total` must not grow.
- **Procedures that ride:** `pondage_procedure_lock_waits_total` over
  `pondage_procedure_sampled_total` says whether their keys keep apart who waits for whom.
- **The Redis door:** `pondage_redis_up`, the upper end of `pondage_redis_commit_seconds`, and the
  rates of `pondage_redis_batch_refused_total` (clients get errors) and `pondage_redis_misses_total`
  (memory is too small); with databases in journal mode also `pondage_redis_fold_failing`, and how
  near the journal is to its limit, where writers wait.
";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn reference_page_of_the_metrics_matches_their_table() {
        crate::written::expect("metrics.md", &page());
    }

    /// As Prometheus' "Metric and label naming" has it.
    #[test]
    fn names_tell_type_and_unit_and_come_once() {
        let mut names = BTreeSet::new();
        for family in all() {
            let Family { name, kind, unit, labels, help, more } = family;
            assert!(names.insert(*name), "{name} twice");
            assert!(name.starts_with("pondage_") || name.starts_with("process_"), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            let base = name.strip_suffix("_total").unwrap_or(name);
            let said = match base.rsplit('_').next() {
                Some("seconds") => matches!(unit, Unit::Seconds | Unit::UnixTime),
                Some("bytes") => *unit == Unit::Bytes,
                Some("ratio") => *unit == Unit::Ratio,
                Some("info" | "role") => *unit == Unit::One,
                _ => matches!(unit, Unit::Count | Unit::Flag),
            };
            assert!(said, "{name} is in {unit:?}");
            assert!(help.ends_with('.') && !help.contains(['`', '|', '\n']), "{name}: {help}");
            assert!(
                more.is_empty() || more.ends_with('.') && !more.contains('|'),
                "{name}: {more}"
            );
            let distinct: BTreeSet<_> = labels.iter().collect();
            assert_eq!(distinct.len(), labels.len(), "{name}: {labels:?}");
        }
        assert!(names.len() > 110, "only {} families", names.len());
    }
}
