//! Prometheus' text format.
//!
//! Source: "Exposition formats", Prometheus documentation, text format 0.0.4.

use std::collections::HashSet;
use std::fmt::Write;

use super::families::Family;
use crate::worker::snapshot::Histogram;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// Names and values of labels; the order is kept.
pub type Labels<'a> = [(&'a str, &'a str)];

/// A page of metrics. Begin a family, then write its samples, then the next.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    family: &'static str,
    /// Of the family.
    labels: &'static [&'static str],
    families: HashSet<&'static str>,
}

impl Exposition {
    /// Begins a family; each once.
    pub fn family(&mut self, family: &'static Family) {
        let name = family.name();
        let fresh = self.families.insert(name);
        debug_assert!(fresh, "{name} twice");
        (self.family, self.labels) = (name, family.labels());
        let help = family.help().replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {}", family.kind().word()));
    }

    pub fn sample(&mut self, labels: &Labels<'_>, value: u64) {
        self.check(labels);
        let labels = braces(labels);
        let family = self.family;
        self.line(format_args!("{family}{labels} {value}"));
    }

    /// A part of one.
    pub fn millionths(&mut self, labels: &Labels<'_>, value: u64) {
        self.seconds(labels, value);
    }

    pub fn seconds(&mut self, labels: &Labels<'_>, micros: u64) {
        self.check(labels);
        let labels = braces(labels);
        let family = self.family;
        self.line(format_args!("{family}{labels} {}", Seconds(micros)));
    }

    /// Writes the buckets, sum and count of durations, in seconds.
    pub fn histogram(&mut self, labels: &Labels<'_>, histogram: &Histogram) {
        let bounds = (0..histogram.buckets.len()).map_while(Histogram::bound_us);
        let bounds: Vec<String> = bounds.map(|us| Seconds(us).to_string()).collect();
        self.write_buckets(labels, &bounds, &histogram.buckets, &Seconds(histogram.sum_us));
    }

    /// Writes a histogram of whole numbers: the upper bounds of all buckets but the last, what is
    /// in each, and the sum of all.
    pub fn buckets(&mut self, bounds: &[String], counts: &[u64], sum: u64) {
        self.write_buckets(&[], bounds, counts, &sum);
    }

    /// The same of durations in microseconds, written as seconds.
    pub fn buckets_of_seconds(&mut self, bounds: &[u64], counts: &[u64], sum: u64) {
        let bounds: Vec<String> = bounds.iter().map(|us| Seconds(*us).to_string()).collect();
        self.write_buckets(&[], &bounds, counts, &Seconds(sum));
    }

    fn write_buckets(
        &mut self,
        labels: &Labels<'_>,
        bounds: &[String],
        counts: &[u64],
        sum: &dyn std::fmt::Display,
    ) {
        self.check(labels);
        let family = self.family;
        let mut below = 0;
        for (bucket, count) in counts.iter().enumerate() {
            below += count;
            let mut labels = labels.to_vec();
            labels.push(("le", bounds.get(bucket).map_or("+Inf", String::as_str)));
            let labels = braces(&labels);
            self.line(format_args!("{family}_bucket{labels} {below}"));
        }
        let labels = braces(labels);
        self.line(format_args!("{family}_sum{labels} {sum}"));
        // Of the same addition as the last bucket, with which it has to agree.
        self.line(format_args!("{family}_count{labels} {below}"));
    }

    /// Every sample has the labels that the table gives its family.
    fn check(&self, labels: &Labels<'_>) {
        let names = labels.iter().map(|(name, _)| *name);
        debug_assert!(
            names.eq(self.labels.iter().copied()),
            "{} has {labels:?}, not {:?}",
            self.family,
            self.labels
        );
    }

    pub fn into_text(self) -> String {
        self.text
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // A String takes every write.
        let _ = writeln!(self.text, "{line}");
    }
}

/// Microseconds, written as seconds without loss.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let fraction = format!("{rest:06}");
        write!(f, "{whole}.{}", fraction.trim_end_matches('0'))
    }
}

fn braces(labels: &Labels<'_>) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let mut text = String::from("{");
    for (place, (name, value)) in labels.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for letter in value.chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::families::pools;

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(
            braces(&[("database", "a\"b\\c\nd"), ("user", "ü")]),
            r#"{database="a\"b\\c\nd",user="ü"}"#
        );
        assert_eq!(braces(&[]), "");
    }

    #[test]
    fn seconds_are_written_without_loss() {
        let seconds = |us| Seconds(us).to_string();
        assert_eq!(seconds(0), "0");
        assert_eq!(seconds(50), "0.00005");
        assert_eq!(seconds(1_000_000), "1");
        assert_eq!(seconds(12_345_600), "12.3456");
    }

    #[test]
    fn a_histogram_counts_up_and_ends_with_its_count() {
        let mut durations = Histogram::default();
        for us in [10, 60, 60, 1_000, 90_000_000] {
            durations.record(us);
        }
        let mut page = Exposition::default();
        page.family(pools::POOL_WAIT);
        page.histogram(&[("database", "d"), ("user", "u")], &durations);
        let text = page.into_text();
        let lines: Vec<&str> = text.lines().collect();
        let name = pools::POOL_WAIT.name();
        assert_eq!(lines[0], format!("# HELP {name} {}", pools::POOL_WAIT.help()));
        assert_eq!(lines[1], format!("# TYPE {name} histogram"));
        for (at, expected) in [
            (2, r#"_bucket{database="d",user="u",le="0.00005"} 1"#),
            (3, r#"_bucket{database="d",user="u",le="0.0001"} 3"#),
            (7, r#"_bucket{database="d",user="u",le="0.0016"} 4"#),
            (21, r#"_bucket{database="d",user="u",le="+Inf"} 5"#),
            (22, r#"_sum{database="d",user="u"} 90.00113"#),
            (23, r#"_count{database="d",user="u"} 5"#),
        ] {
            assert_eq!(lines[at].strip_prefix(name), Some(expected));
        }
        assert_eq!(lines.len(), 24);
    }
}
