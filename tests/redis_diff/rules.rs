//! When two replies count as the same: byte for byte, but for the cases named here.

use crate::reply::Reply::{self, Bulk, Line, Many};
use crate::scenario::Command;

/// What a reply's bytes depend on beside the command and the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Exact,
    /// Members of a set come in any order.
    Unordered,
    /// So do a hash's fields, each with its value.
    UnorderedPairs,
    /// SORT BY leaves open how equal weights are ordered, and a set that is not sorted; what GET
    /// adds goes with them.
    UnorderedGroups(usize),
    /// SORT ALPHA compares C's strings: those with the same bytes before a zero byte come in any
    /// order.
    Collated,
    /// A time that runs: the replies are read one after the other.
    Near(i64),
    /// Chance, a clock or an implementation decides: kind and number of elements only.
    Shape,
    /// Fields that tell about the process or about nodes of a tree; times are near.
    WithoutFields(&'static [&'static str]),
    /// XPENDING: id, consumer, milliseconds, count.
    IdleThird,
}

/// How far clocks may be apart, in milliseconds: a loaded machine, and the door's batches.
const MILLISECONDS: i64 = 5_000;
const SECONDS: i64 = 5;

/// A time in milliseconds since 1970 and not a count.
const MODERN: i64 = 1_500_000_000_000;

fn rule(command: &[Vec<u8>]) -> Rule {
    let upper = |at: usize| {
        let word = command.get(at).map_or(&[][..], Vec::as_slice);
        String::from_utf8_lossy(word).to_uppercase()
    };
    match upper(0).as_str() {
        "SMEMBERS" | "SINTER" | "SUNION" | "SDIFF" | "KEYS" | "HKEYS" | "HVALS" | "PUBSUB" => {
            Rule::Unordered
        }
        "HGETALL" => Rule::UnorderedPairs,
        "SORT" | "SORT_RO" => sorted_by(command),
        "TTL" | "EXPIRETIME" => Rule::Near(SECONDS),
        "PTTL" | "PEXPIRETIME" => Rule::Near(MILLISECONDS),
        "RANDOMKEY" | "SRANDMEMBER" | "HRANDFIELD" | "ZRANDMEMBER" | "SPOP" | "TIME" | "DUMP"
        | "MEMORY" | "SCAN" | "HSCAN" | "SSCAN" | "ZSCAN" => Rule::Shape,
        // Redis 7.2 has encodings that 7.0 has not; the door has none of them.
        "OBJECT" => match upper(1).as_str() {
            // In Redis a small integer is one object for all keys, and counts from its last use.
            "IDLETIME" | "ENCODING" | "REFCOUNT" => Rule::Shape,
            _ => Rule::Exact,
        },
        "CLIENT" if upper(1) == "ID" => Rule::Shape,
        // Whether there was one is judged by XINFO.
        "XGROUP" if upper(1) == "CREATECONSUMER" => Rule::Shape,
        // Redis 7.2 has more commands, and tells more about each.
        "COMMAND" if matches!(upper(1).as_str(), "COUNT" | "INFO" | "") => Rule::Shape,
        "HELLO" => Rule::WithoutFields(&["version", "id", "modules"]),
        "XPENDING" if command.len() > 3 => Rule::IdleThird,
        "XINFO" => Rule::WithoutFields(&[
            "radix-tree-keys",
            "radix-tree-nodes",
            "idle",
            // Since Redis 7.2.
            "inactive",
            "active-time",
        ]),
        _ => Rule::Exact,
    }
}

fn sorted_by(command: &[Vec<u8>]) -> Rule {
    let is = |word: &Vec<u8>, name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let has = |name: &str| command.iter().skip(2).any(|word| is(word, name));
    let gets = command.iter().filter(|word| is(word, "GET")).count();
    match (has("BY"), has("LIMIT")) {
        // What comes first in a set that is not sorted is anybody's guess.
        (true, true) => Rule::Shape,
        (true, false) => Rule::UnorderedGroups(gets.max(1)),
        // What is stored is compared as bytes.
        (false, _) if has("ALPHA") && !has("STORE") => Rule::Collated,
        (false, _) => Rule::Exact,
    }
}

/// What Redis 7.0 says, and what the door and Redis 7.2 say instead.
const REWORDED: &[(&str, &str)] = &[
    ("ERR timeout is negative", "ERR timeout is out of range"),
    (
        "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
        "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified.",
    ),
    (
        "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
        "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be \
         specified.",
    ),
    (
        "ERR Protocol error: invalid multibulk length",
        "ERR Protocol error: too big mbulk count string",
    ),
];

/// How strict a comparison is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The oracle is older than Redis 7.2, which words some errors anew and writes scores with
    /// as few digits as they need.
    pub old_oracle: bool,
}

impl Rules {
    /// Whether `subject` says the same as `oracle`. `queued` are the commands that an EXEC has
    /// run.
    pub fn same(
        self,
        command: &[Vec<u8>],
        queued: &[Command],
        oracle: &Reply,
        subject: &Reply,
    ) -> bool {
        if let (Some(left), Some(right)) = (oracle.error(), subject.error()) {
            return oracle == subject || self.reworded(left, right);
        }
        if let (true, Many(tag, left), Many(other, right)) = (is_exec(command), oracle, subject) {
            return tag == other
                && left.len() == right.len()
                && (0..left.len()).all(|at| {
                    let command = queued.get(at).map_or(&[][..], Vec::as_slice);
                    self.same(command, &[], &left[at], &right[at])
                });
        }
        let rule = rule(command);
        match (rule, oracle, subject) {
            (Rule::Exact, ..) => {
                oracle == subject
                    || same_sketches(oracle, subject)
                    || (tells_scores(command) && self.same_scores(oracle, subject))
            }
            (Rule::Collated, ..) => collated(oracle) == collated(subject),
            (Rule::Near(by), Line(b':', _), Line(b':', _)) => near(oracle, subject, by),
            (Rule::Shape, Many(tag, left), Many(other, right)) => {
                tag == other && (varies(command) || left.len() == right.len())
            }
            (Rule::Shape, Line(tag, _) | Bulk(tag, _), Line(other, _) | Bulk(other, _)) => {
                tag == other
            }
            (Rule::WithoutFields(names), ..) => {
                let (oracle, subject) = if self.old_oracle && lists_consumers(command) {
                    (only_pending(oracle), only_pending(subject))
                } else {
                    (oracle.clone(), subject.clone())
                };
                // Only since 7.2 does a consumer exist that has asked and got nothing.
                let more: &[&str] = if self.old_oracle { &["consumers"] } else { &[] };
                let names = [names, more].concat();
                same_trees(&without(&oracle, &names), &without(&subject, &names))
            }
            (Rule::IdleThird, ..) => same_pending(oracle, subject),
            (_, Many(..), Many(..)) => in_order(rule, oracle) == in_order(rule, subject),
            _ => oracle == subject,
        }
    }

    /// Equal, but for the sign of a score that is 0, which Redis forgets in small sets and keeps
    /// in large ones, and in an old oracle for numbers with 17 digits where fewer say the same.
    fn same_scores(self, oracle: &Reply, subject: &Reply) -> bool {
        match (oracle, subject) {
            (Many(tag, left), Many(other, right)) => {
                tag == other
                    && left.len() == right.len()
                    && left.iter().zip(right).all(|(left, right)| self.same_scores(left, right))
            }
            (Line(tag @ b',', left), Line(other, right))
            | (Bulk(tag, left), Bulk(other, right)) => {
                let number = |text| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
                let signed = |text: &Vec<u8>| text.strip_prefix(b"-").unwrap_or(text) == b"0";
                let same = |(left, right): (f64, f64)| left.to_bits() == right.to_bits();
                let reads_same = || number(left).zip(number(right)).is_some_and(same);
                tag == other
                    && (left == right
                        || (signed(left) && signed(right))
                        || (self.old_oracle && reads_same()))
            }
            _ => oracle == subject,
        }
    }

    pub fn reworded(self, oracle: &[u8], subject: &[u8]) -> bool {
        let pair =
            |(old, new): &(&str, &str)| old.as_bytes() == oracle && new.as_bytes() == subject;
        self.old_oracle && REWORDED.iter().any(pair)
    }
}

/// Commands whose replies hold scores, scripts among them.
fn tells_scores(command: &[Vec<u8>]) -> bool {
    let name = command.first().map_or(&[][..], Vec::as_slice).to_ascii_uppercase();
    [&b"Z"[..], b"BZ", b"EVAL", b"GEO"].iter().any(|start| name.starts_with(start))
}

/// Elements of a whole iteration, where ZSCAN has scores: as Redis keeps them in a small set, and
/// with up to 17 digits in a large one and in one that SORT has looked at.
pub fn same_pages(oracle: &[Reply], subject: &[Reply]) -> bool {
    let rules = Rules { old_oracle: true };
    oracle.len() == subject.len()
        && oracle.iter().zip(subject).all(|(left, right)| rules.same_scores(left, right))
}

/// HyperLogLogs that are equal but for the cached number of elements: in Redis PFCOUNT writes it,
/// while the door's PFCOUNT only reads.
fn same_sketches(oracle: &Reply, subject: &Reply) -> bool {
    const CACHED: std::ops::Range<usize> = 8..16;
    let (Bulk(_, left), Bulk(_, right)) = (oracle, subject) else { return false };
    left.starts_with(b"HYLL")
        && left.len() >= CACHED.end
        && right.len() == left.len()
        && left[..CACHED.start] == right[..CACHED.start]
        && left[CACHED.end..] == right[CACHED.end..]
}

pub fn is_exec(command: &[Vec<u8>]) -> bool {
    command.first().is_some_and(|word| word.eq_ignore_ascii_case(b"EXEC"))
}

fn lists_consumers(command: &[Vec<u8>]) -> bool {
    command.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"CONSUMERS"))
}

/// XINFO CONSUMERS without those for whom nothing is pending.
fn only_pending(reply: &Reply) -> Reply {
    let pends = |consumer: &&Reply| {
        let fields = consumer.children();
        fields.windows(2).any(|two| {
            two[0].text() == Some(b"pending") && two[1].integer().is_some_and(|count| count > 0)
        })
    };
    match reply {
        Many(tag, consumers) => Many(*tag, consumers.iter().filter(pends).cloned().collect()),
        other => other.clone(),
    }
}

/// Replies whose number of elements belongs to the implementation.
fn varies(command: &[Vec<u8>]) -> bool {
    command.first().is_some_and(|word| word.eq_ignore_ascii_case(b"COMMAND"))
}

fn near(left: &Reply, right: &Reply, by: i64) -> bool {
    match (left.integer(), right.integer()) {
        // No expiry, and no key.
        (Some(left), Some(right)) if left < 0 || right < 0 => left == right,
        (Some(left), Some(right)) => left.abs_diff(right) <= by.unsigned_abs(),
        _ => false,
    }
}

/// Up to a zero byte.
fn collated(reply: &Reply) -> Reply {
    match reply {
        Many(tag, children) => Many(*tag, children.iter().map(collated).collect()),
        Bulk(tag, text) => {
            Bulk(*tag, text.split(|byte| *byte == 0).next().unwrap_or_default().to_vec())
        }
        other => other.clone(),
    }
}

fn in_order(rule: Rule, reply: &Reply) -> Reply {
    let Many(tag, children) = reply else {
        return reply.clone();
    };
    let size = match rule {
        Rule::UnorderedPairs => 2,
        Rule::UnorderedGroups(size) => size,
        _ => 1,
    };
    let mut groups: Vec<&[Reply]> = children.chunks(size).collect();
    groups.sort();
    Many(*tag, groups.concat())
}

/// `reply` without these fields of its maps, which RESP2 writes as arrays.
fn without(reply: &Reply, names: &[&str]) -> Reply {
    let Many(tag, children) = reply else {
        return reply.clone();
    };
    let mut kept = Vec::new();
    let mut rest = children.iter();
    while let Some(child) = rest.next() {
        let text = child.text().map(String::from_utf8_lossy);
        if text.is_some_and(|text| names.contains(&text.as_ref())) {
            rest.next();
        } else {
            kept.push(without(child, names));
        }
    }
    Many(*tag, kept)
}

/// Equal, but for times of the present.
fn same_trees(left: &Reply, right: &Reply) -> bool {
    match (left, right) {
        (Many(tag, left), Many(other, right)) => {
            tag == other
                && left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same_trees(left, right))
        }
        _ => left == right || (is_time(left) && is_time(right) && near(left, right, MILLISECONDS)),
    }
}

fn is_time(reply: &Reply) -> bool {
    reply.integer().is_some_and(|number| number > MODERN)
}

fn same_pending(left: &Reply, right: &Reply) -> bool {
    let (left, right) = (left.children(), right.children());
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| {
            let (left, right) = (left.children(), right.children());
            left.len() == right.len()
                && left.iter().zip(right).enumerate().all(|(at, (left, right))| match at {
                    2 => near(left, right, MILLISECONDS),
                    _ => left == right,
                })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::words;

    fn read(text: &str) -> Reply {
        Reply::parse(text.as_bytes()).expect("a reply").expect("a whole one").0
    }

    #[track_caller]
    fn check(command: &str, left: &str, right: &str, expected: bool) {
        let rules = Rules { old_oracle: false };
        let verdict = rules.same(&words(command), &[], &read(left), &read(right));
        assert_eq!(verdict, expected, "{command}");
    }

    #[test]
    fn only_what_the_list_names_is_let_through() {
        check("GET a", "$1\r\na\r\n", "$1\r\nb\r\n", false);
        check("GET a", "$-1\r\n", "*-1\r\n", false);
        check("SMEMBERS a", "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:1\r\n", true);
        check("SMEMBERS a", "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:2\r\n", false);
        check("SMEMBERS a", "*1\r\n:1\r\n", "~1\r\n:1\r\n", false);
        check("LRANGE a 0 -1", "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:1\r\n", false);
        check("PTTL a", ":1000\r\n", ":1100\r\n", true);
        check("PTTL a", ":-1\r\n", ":-2\r\n", false);
        check("PTTL a", ":1000\r\n", ":100000\r\n", false);
        check("PTTL a", "-ERR x\r\n", ":100000\r\n", false);
        check("SORT a BY nosort", "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:1\r\n", true);
        check("SORT a", "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:1\r\n", false);
        check("SORT a ALPHA", "*2\r\n$1\r\n\0\r\n$0\r\n\r\n", "*2\r\n$0\r\n\r\n$1\r\n\0\r\n", true);
        check("SORT a ALPHA", "*1\r\n$1\r\na\r\n", "*1\r\n$1\r\nb\r\n", false);
        check("XINFO GROUPS a", "*2\r\n+idle\r\n:1\r\n", "*2\r\n+idle\r\n:2\r\n", true);
        check("XINFO GROUPS a", "*2\r\n+lag\r\n:1\r\n", "*2\r\n+lag\r\n:2\r\n", false);
    }

    #[test]
    fn what_exec_returns_is_judged_by_what_was_queued() {
        let (left, right) = ("*1\r\n*2\r\n:1\r\n:2\r\n", "*1\r\n*2\r\n:2\r\n:1\r\n");
        for (queued, expected) in [("SMEMBERS a", true), ("LRANGE a 0 1", false)] {
            let queued = [words(queued)];
            let rules = Rules { old_oracle: false };
            let verdict = rules.same(&words("EXEC"), &queued, &read(left), &read(right));
            assert_eq!(verdict, expected, "{queued:?}");
        }
    }

    #[test]
    fn an_older_oracle_words_some_things_differently() {
        let scores = ("$19\r\n0.10000000000000001\r\n", "$3\r\n0.1\r\n");
        let errors = ("-ERR timeout is negative\r\n", "-ERR timeout is out of range\r\n");
        for (command, (left, right)) in [("ZSCORE z m", scores), ("BLPOP l inf", errors)] {
            for old_oracle in [false, true] {
                let rules = Rules { old_oracle };
                let verdict = rules.same(&words(command), &[], &read(left), &read(right));
                assert_eq!(verdict, old_oracle, "{command}");
            }
        }
        let strict = Rules { old_oracle: true };
        assert!(!strict.same(&words("GET s"), &[], &read(scores.0), &read(scores.1)));
    }
}
