//! `sum` and `avg`, byte for byte.

use cache::mirror::decimal::Sum;
use proptest::strategy::{Strategy, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;

use super::{column, named, session, stored, unhex};

const GROUPS: usize = 1500;

/// Column type, and what values look like; each group of values takes one pattern.
const KINDS: &[(&str, &[&str])] = &[
    ("smallint", &["-?[0-9]{1,4}", "[0-3]"]),
    ("integer", &["-?[0-9]{1,9}", "-?[0-9]", "0", "-?1000[01]"]),
    ("bigint", &["-?[0-9]{1,18}", "-?[0-9]", "922337203685477580[0-7]", "-?9999[0-9]{1,4}"]),
    (
        "numeric",
        &[
            "-?[0-9]{1,4}\\.[0-9]{2}",
            "-?[0-9]{1,30}(\\.[0-9]{1,30})?",
            "-?0(\\.0{0,9}[0-9]{0,3})?",
            "-?0\\.0{20,60}[1-9]",
            "-?[1-9]0{0,40}",
            "(1|2|NaN|Infinity|-Infinity)(\\.0)?",
            "-?(9999|0001|10000|5000)(\\.(9999|0001|5|0))?",
            "-?1(\\.0{0,300})?",
        ],
    ),
];

#[test]
fn sums_and_averages_are_those_of_postgresql() {
    let mut runner = TestRunner::deterministic();
    let mut session = session();
    for (name, patterns) in KINDS {
        let column = column(named(name));
        let mut groups: Vec<Vec<String>> = Vec::new();
        for at in 0..GROUPS {
            let pattern = string_regex(patterns[at % patterns.len()]).expect("a pattern");
            let length = match at % 7 {
                0 => 1,
                6 => 40,
                some => some + at / 7 % 5,
            };
            let one = |_| pattern.new_tree(&mut runner).expect("a value").current();
            // A word with a fraction is no number.
            let read = |text: String| stored(&column, &text).is_some().then_some(text);
            groups.push((0..length).map(one).filter_map(read).collect());
        }
        let rows: Vec<String> = groups
            .iter()
            .enumerate()
            .flat_map(|(at, values)| values.iter().map(move |value| format!("({at},'{value}')")))
            .collect();
        let send =
            if matches!(*name, "smallint" | "integer") { "int8send" } else { "numeric_send" };
        let answers = session.run(&format!(
            "SELECT g, encode({send}(sum(v::{name})), 'hex'), encode(numeric_send(avg(v::{name})), 'hex') \
             FROM (VALUES {}) AS t (g, v) GROUP BY g",
            rows.join(","),
        ));
        for row in answers {
            let word = |at: usize| row[at].clone().expect("not NULL");
            let values = &groups[word(0).parse::<usize>().expect("a number")];
            let mut sum = Sum::default();
            for value in values {
                sum.add(column.class, &stored(&column, value).expect("a value"));
            }
            assert_eq!(sum.count(), values.len() as u64);
            let mut out = Vec::new();
            assert!(sum.put_sum(column.class, &mut out), "sum of {values:?}");
            assert_eq!(out, unhex(&word(1)), "sum of {name} {values:?}");
            out.clear();
            assert!(sum.put_avg(column.class, &mut out), "avg of {values:?}");
            assert_eq!(out, unhex(&word(2)), "avg of {name} {values:?}");
        }
    }
}

#[test]
fn what_has_no_sum_is_not_told() {
    let (integer, text) = (column(named("integer")).class, column(named("text")).class);
    let mut out = Vec::new();
    let mut sum = Sum::default();
    assert!(!sum.put_sum(integer, &mut out) && !sum.put_avg(integer, &mut out));
    sum.add_total(i128::from(i64::MAX) + 1, 2);
    assert!(!sum.put_sum(integer, &mut out) && !sum.put_avg(integer, &mut out));
    let mut sum = Sum::default();
    sum.add(text, b"1");
    assert!(!sum.put_sum(text, &mut out) && !sum.put_avg(text, &mut out));
    assert!(out.is_empty());
}
