//! Values against a real PostgreSQL: what its input functions read, its output and send functions
//! write, and its `=` calls equal (trap C13).

mod kit;

use std::collections::HashMap;
use std::fmt::Write;

use cache::value::{
    as_i64, canonical, canonical_binary, elements, elements_binary, oid, Canonical, Element, Kind,
};
use kit::Session;
use proptest::strategy::{Strategy, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;

/// Inputs of each pattern.
const INPUTS: usize = 700;

/// A type, and patterns of what may be its input.
struct Type {
    name: &'static str,
    oid: u32,
    send: &'static str,
    patterns: &'static [&'static str],
    /// How many of the inputs that PostgreSQL takes are to be understood at least. Percent.
    understood: usize,
}

const TYPES: &[Type] = &[
    Type {
        name: "bigint",
        oid: oid::INT8,
        send: "int8send",
        patterns: &[
            "[ \t\n]?[+-]?0{0,3}[0-9]{1,2}[ \r]?",
            "[+-]?9223372036854775[0-9]{2,4}",
            "[+-]{0,2}[0-9a-fxobXOB_. ]{0,6}",
            "[+-]?0[xXoObB]_?[01_]{1,5}",
        ],
        understood: 100,
    },
    Type {
        name: "integer",
        oid: oid::INT4,
        send: "int4send",
        patterns: &["[ ]?[+-]?0{0,3}[0-9]{1,2}[ ]?", "[+-]?214748364[0-9]"],
        understood: 100,
    },
    Type {
        name: "smallint",
        oid: oid::INT2,
        send: "int2send",
        patterns: &["[ ]?[+-]?0{0,3}[0-9]{1,2}[ ]?", "[+-]?3276[0-9]"],
        understood: 100,
    },
    Type {
        name: "boolean",
        oid: oid::BOOL,
        send: "boolsend",
        patterns: &[
            "[ ]?(t|tr|tru|true|TRUE|tRuE|y|ye|yes|on|o|1|f|fa|fal|fals|false|n|no|of|off|0|00|)[ ]?",
            "[a-z]{1,3}",
        ],
        understood: 100,
    },
    Type {
        name: "text",
        oid: oid::TEXT,
        send: "textsend",
        patterns: &["[ab ]{0,4}", "(ä|é|a|\\\\|'|\t){0,3}"],
        understood: 100,
    },
    Type {
        name: "varchar",
        oid: oid::VARCHAR,
        send: "varcharsend",
        patterns: &["[ab ]{0,4}"],
        understood: 100,
    },
    Type {
        name: "bpchar",
        oid: oid::BPCHAR,
        send: "bpcharsend",
        patterns: &["[ab ]{0,4}[ \t]{0,3}", "(ä|a| ){0,4}"],
        understood: 100,
    },
    Type {
        name: "uuid",
        oid: oid::UUID,
        send: "uuid_send",
        patterns: &[
            "\\{?(00aA-?|00Aa-?){8}\\}?",
            "\\{?00aa(-?00aa){7}\\}?",
            "\\{?(00|-0a|0){14,17}\\}?",
            "(00aa|0b){2}-?00aa-?00aa-?00aa-?00aa00aa00aa",
        ],
        understood: 100,
    },
    Type {
        name: "numeric",
        oid: oid::NUMERIC,
        send: "numeric_send",
        patterns: &[
            "[ ]?[+-]?0?[0-2]{0,2}\\.?[0-2]{0,2}0{0,2}[ ]?",
            "[+-]?[01]{1,3}(\\.0{0,6}[012]?)?[eE][+-]?0?[0-9]",
            "[+-]?[0-9]{1,30}\\.[0-9]{0,30}",
            "[ ]?[+-]?(nan|NaN|inf|Infinity|INF|infinit|infinity)[ ]?",
            "[0-9+._eE-]{1,6}",
            "[1-9]e[+-]?[0-9]{1,3}",
        ],
        understood: 100,
    },
    Type {
        name: "date",
        oid: oid::DATE,
        send: "date_send",
        patterns: &[
            "(1999|2000|2024|0001|12024|1900)-(0[1-3]|12)-(0[1-3]|[23][0-9])",
            "(19|2024)-[0-9]{1,2}-[0-9]{1,2}",
            "-?(infinity|Infinity|epoch|inf)",
            "2024-02-29( 23:00|T10:00:00)?( BC)?",
            "[0-9]{1,4}[-/. ][0-9]{1,3}[-/. ][0-9]{1,4}",
        ],
        understood: 15,
    },
    Type {
        name: "timestamp",
        oid: oid::TIMESTAMP,
        send: "timestamp_send",
        patterns: &[
            "(1999|2000|0001|29999)-(0[1-3]|12)-(0[1-3]|3[01])[ T](00|11|23|24):(00|30|59)",
            "2024-02-29 (00|23|24):(00|59):(00|59|60)(\\.[0-9]{0,8})?",
            "2024-02-29( 00:00| 12:30)?(:00)?(\\.[05]{1,6})?",
            "-?infinity",
            "2024-01-01 10:00:00(Z|\\+05|-03:30| BC| PM)?",
        ],
        understood: 50,
    },
    Type {
        name: "timestamptz",
        oid: oid::TIMESTAMPTZ,
        send: "timestamptz_send",
        patterns: &[
            "2024-(01|07)-01[ T](00|05|10|23):(00|30)(:00)?(Z|[+-]0[0-6](:[03]0)?)?",
            "(1850|1999|2024)-02-2[0-9] 10:00:00(\\.[0-9]{1,6})?[+-](00|05|15|16)(:30|:[0-5]0:[0-5]0)?",
            "-?infinity",
            "2024-02-29( 10:00)?( PST| UTC|\\+0530|)",
        ],
        understood: 50,
    },
];

/// What the patterns allow, the same each time.
fn inputs(patterns: &[&str]) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let mut made: Vec<String> = Vec::new();
    for pattern in patterns {
        let strategy = string_regex(pattern).expect("a pattern");
        let some = (0..INPUTS).map(|_| strategy.new_tree(&mut runner).expect("a value").current());
        made.extend(some);
    }
    made.sort();
    made.dedup();
    made
}

fn literals(inputs: &[String]) -> String {
    let mut list = String::new();
    for input in inputs {
        let text = input.replace('\\', "\\\\").replace('\'', "\\'");
        write!(list, "{}E'{text}'", if list.is_empty() { "" } else { "," }).expect("memory");
    }
    list
}

fn session(settings: &str) -> Session {
    let mut session = Session::open();
    session.run(&format!("SET client_encoding = 'UTF8'; {settings}"));
    session
}

/// What PostgreSQL makes of an input.
struct Taken {
    input: String,
    /// Printed, sent, and its place in the type's order, the same for equal values.
    output: String,
    sent: Vec<u8>,
    rank: u64,
}

fn taken(session: &mut Session, of: &Type, inputs: &[String]) -> Vec<Taken> {
    session.run(&format!(
        "DROP FUNCTION IF EXISTS pg_temp.attempt; \
         CREATE FUNCTION pg_temp.attempt(t text) RETURNS {0} LANGUAGE plpgsql AS \
         $$ BEGIN RETURN t::{0}; EXCEPTION WHEN others THEN RETURN NULL; END $$",
        of.name
    ));
    let rows = session.run(&format!(
        "SELECT t, format('%s', v), encode({}(v), 'hex'), dense_rank() OVER (ORDER BY v) \
         FROM (SELECT t, pg_temp.attempt(t) AS v FROM unnest(ARRAY[{}]::text[]) AS u (t)) AS s \
         WHERE v IS NOT NULL",
        of.send,
        literals(inputs),
    ));
    let word = |word: &Option<String>| word.clone().expect("not NULL");
    rows.iter()
        .map(|row| Taken {
            input: word(&row[0]),
            output: word(&row[1]),
            sent: unhex(&word(&row[2])),
            rank: word(&row[3]).parse().expect("a number"),
        })
        .collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn of_text(kind: Kind, text: &str) -> Option<Canonical> {
    let mut out = Canonical::from_slice(b"before");
    let known = canonical(kind, text.as_bytes(), &mut out);
    assert!(out.starts_with(b"before"));
    if !known {
        assert_eq!(out.len(), 6, "nothing is left of {text:?}");
        return None;
    }
    Some(Canonical::from_slice(&out[6..]))
}

#[test]
fn values_are_equal_when_postgresql_says_so() {
    for style in ["ISO, MDY", "ISO, DMY"] {
        let mut session =
            session(&format!("SET DateStyle = '{style}'; SET TimeZone = 'Asia/Kolkata'"));
        for of in TYPES {
            check(&mut session, of);
        }
    }
}

fn check(session: &mut Session, of: &Type) {
    let kind = Kind::of(of.oid).expect("a kind");
    let mut by_rank: HashMap<u64, Canonical> = HashMap::new();
    let mut by_bytes: HashMap<Canonical, u64> = HashMap::new();
    let mut same = |rank: u64, bytes: Canonical, what: &str| {
        let other = by_rank.entry(rank).or_insert_with(|| bytes.clone());
        assert_eq!(*other, bytes, "{}: {what} is equal to others, its bytes are not", of.name);
        let other = *by_bytes.entry(bytes).or_insert(rank);
        assert_eq!(other, rank, "{}: {what} is not what its bytes say", of.name);
    };
    let taken = taken(session, of, &inputs(of.patterns));
    assert!(taken.len() > 20 || kind == Kind::Bool, "{}: {} inputs", of.name, taken.len());
    let mut understood = 0;
    for Taken { input, output, sent, rank } in &taken {
        if let Some(bytes) = of_text(kind, input) {
            understood += 1;
            same(*rank, bytes, &format!("input {input:?}"));
        }
        match of_text(kind, output) {
            Some(bytes) => same(*rank, bytes, &format!("output {output:?}")),
            None => assert!(output.ends_with(" BC"), "{}: {output:?} is printed", of.name),
        }
        let mut bytes = Canonical::new();
        assert!(canonical_binary(kind, of.oid, sent, &mut bytes), "{}: {output} sent", of.name);
        same(*rank, bytes, &format!("{output:?} in binary"));
    }
    let share = understood * 100 / taken.len();
    assert!(share >= of.understood, "{}: {share} % of the inputs are understood", of.name);
    if kind.is_ordered() {
        let mut values: Vec<(u64, i64)> = by_rank
            .iter()
            .map(|(rank, bytes)| (*rank, as_i64(kind, bytes).expect("an integer")))
            .collect();
        values.sort();
        let in_order = values.windows(2).all(|pair| pair[0].1 < pair[1].1);
        assert!(in_order, "{}: integers are ordered as the values are", of.name);
    }
}

#[test]
fn forms_of_newer_versions_are_understood() {
    // PostgreSQL 16 release notes: "Allow non-decimal integer literals", "underscores".
    let int = |text: &str| of_text(Kind::Int, text).and_then(|bytes| as_i64(Kind::Int, &bytes));
    assert_eq!(int("0x1F"), Some(31));
    assert_eq!(int(" -0o17 "), Some(-15));
    assert_eq!(int("+0b_101"), Some(5));
    assert_eq!(int("1_000_000"), Some(1_000_000));
    assert_eq!(int("-0x8000000000000000"), Some(i64::MIN));
    for wrong in ["1__0", "_1", "1_", "0x", "0x_", "0xG", "1.0", "", "-", "+-1", "1 2"] {
        assert_eq!(int(wrong), None, "{wrong}");
    }
    let number = |text: &str| of_text(Kind::Numeric, text);
    assert_eq!(number("0xff"), number("255.0"));
    assert_eq!(number("-0b11"), number("-3"));
    assert_eq!(number("1_0.0_1e0_1"), None);
    assert_eq!(number("1_0.0_1e1"), number("100.1"));
    for wrong in ["1_", "1._5", "1_.5", "1e", "1e+", ".", "0xx", "1e99999"] {
        assert_eq!(number(wrong), None, "{wrong}");
    }
}

#[test]
fn values_of_other_types_are_compared_only_when_nothing_is_lost() {
    let binary = |kind, oid, bytes: &[u8]| {
        let mut out = Canonical::new();
        canonical_binary(kind, oid, bytes, &mut out).then_some(out)
    };
    let seven = of_text(Kind::Int, "7");
    assert_eq!(binary(Kind::Int, oid::INT2, &7i16.to_be_bytes()), seven);
    assert_eq!(binary(Kind::Int, oid::INT8, &7i64.to_be_bytes()), seven);
    assert_eq!(binary(Kind::Int, oid::INT8, &7i32.to_be_bytes()), None);
    assert_eq!(binary(Kind::Int, 701, &7f64.to_be_bytes()), None);
    assert_eq!(
        binary(Kind::Numeric, oid::INT4, &(-70i32).to_be_bytes()),
        of_text(Kind::Numeric, "-7e1")
    );
    assert_eq!(binary(Kind::Numeric, 701, &7f64.to_be_bytes()), None);
    assert_eq!(binary(Kind::Bytes, oid::BPCHAR, b"a "), None);
    // A digit that the scale hides; a digit to the base 10000 that is none.
    assert_eq!(binary(Kind::Numeric, oid::NUMERIC, &[0, 1, 255, 255, 0, 0, 0, 3, 0, 1]), None);
    assert_eq!(binary(Kind::Numeric, oid::NUMERIC, &[0, 1, 0, 0, 0, 0, 0, 0, 39, 16]), None);
    let date = |days: i32| binary(Kind::Timestamp, oid::DATE, &days.to_be_bytes());
    assert_eq!(date(1), of_text(Kind::Timestamp, "2000-01-02 00:00:00"));
    assert_eq!(date(i32::MAX), of_text(Kind::Timestamp, "infinity"));
    assert_eq!(date(i32::MIN), of_text(Kind::Timestamp, "-infinity"));
}

#[test]
fn arrays_are_taken_apart_as_postgresql_does() {
    let mut session = session("");
    session.run(
        "CREATE FUNCTION pg_temp.attempt(t text) RETURNS text[] LANGUAGE plpgsql AS \
         $$ BEGIN RETURN t::text[]; EXCEPTION WHEN others THEN RETURN NULL; END $$",
    );
    let inputs = inputs(&[
        "[ ]?\\{[ ]?((a|b c|\"\"|\" a\"|NULL|null|\"NULL\"|\"x\\\\\\\\y\\\\\"\"|ä)[ ]?,[ ]?){0,4}(a|NULL)\\}[ ]?",
        "\\{[ab\", \\\\{}]{0,5}\\}",
        "(\\[0:1\\]|\\[1:2\\] |\\[1:1\\]\\[1:2\\])=\\{(a,b|\\{a,b\\})\\}",
        "\\{\\}",
    ]);
    let rows = session.run(&format!(
        "SELECT t, format('%s', v), encode(array_send(v), 'hex'), \
         array_to_string(v, E'\\x01', E'\\x02'), cardinality(v), coalesce(array_ndims(v), 0) \
         FROM (SELECT t, pg_temp.attempt(t) AS v FROM unnest(ARRAY[{}]::text[]) AS u (t)) AS s \
         WHERE v IS NOT NULL",
        literals(&inputs),
    ));
    let (mut understood, mut flat) = (0, 0);
    for row in &rows {
        let word = |at: usize| row[at].clone().expect("not NULL");
        let (input, output) = (word(0), word(1));
        let expected: Vec<String> = match word(4).as_str() {
            "0" => Vec::new(),
            _ => word(3).split('\u{1}').map(str::to_owned).collect(),
        };
        let is_flat = word(5).parse::<u32>().expect("a number") < 2;
        flat += usize::from(is_flat);
        if let Some(found) = taken_apart(&input) {
            assert!(is_flat, "{input:?}");
            assert_eq!(found, expected, "{input:?}");
            understood += 1;
        }
        assert_eq!(taken_apart(&output), is_flat.then_some(expected.clone()), "{output:?}");
        let mut found = Vec::new();
        let read = elements_binary(&unhex(&word(2)), |of, element| {
            assert_eq!(of, oid::TEXT);
            found.push(shown(element));
        });
        assert_eq!(read.is_ok(), is_flat, "{output:?} in binary");
        assert!(!is_flat || found == expected, "{output:?} in binary: {found:?}");
    }
    assert!(flat > 100 && understood * 10 > flat * 9, "{understood} of {flat} are understood");
}

fn taken_apart(text: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    elements(text.as_bytes(), |element| found.push(shown(element))).ok().map(|()| found)
}

fn shown(element: Element<'_>) -> String {
    match element {
        Element::Null => "\u{2}".to_owned(),
        Element::Value(value) => String::from_utf8_lossy(value).into_owned(),
    }
}
