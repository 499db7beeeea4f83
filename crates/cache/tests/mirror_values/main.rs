//! Values of mirrors against a real PostgreSQL: what it sends, prints, orders, compares, sums.

mod kinds;
#[path = "../values/kit.rs"]
mod kit;
mod sums;

use std::fmt::Write;
use std::sync::Arc;

use backend::replication::SETTINGS;
use cache::mirror::class::{Class, Collation};
use cache::mirror::definition::Column;
use cache::mirror::key::{prefix, put_constant, put_key, Constant};
use cache::mirror::output::{can_put, put_field, Format, Session as Settings};
use cache::mirror::stored::store;
use cache::recipe::Value;
use kinds::{Type, LABELS, TYPES};
use kit::Session;
use proptest::strategy::{Strategy, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;

/// Inputs of each pattern.
const INPUTS: usize = 300;

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

fn session() -> Session {
    let mut session = Session::open();
    let settings = SETTINGS.iter().filter(|(name, _)| *name != "search_path");
    let settings: Vec<String> =
        settings.map(|(name, value)| format!("SET {name} = '{value}';")).collect();
    session.run(&settings.concat());
    session
}

fn settings_of(session: &mut Session) -> Settings {
    let names = [
        "client_encoding",
        "datestyle",
        "timezone",
        "intervalstyle",
        "bytea_output",
        "extra_float_digits",
    ];
    let values: Vec<_> = names
        .iter()
        .map(|name| (*name, session.run(&format!("SHOW {name}"))[0][0].clone()))
        .collect();
    Settings::of(&|name| values.iter().find(|(known, _)| *known == name)?.1.clone())
}

fn column(of: &Type) -> Column {
    let labels: Vec<String> = LABELS.iter().map(|label| (*label).to_owned()).collect();
    Column {
        name: "v".to_owned(),
        attnum: 1,
        type_oid: if of.oid == 0 { 99_999 } else { of.oid },
        type_modifier: -1,
        class: if of.oid == 0 { Class::Enum } else { Class::of(of.oid) },
        collation: Collation::Ordered,
        not_null: false,
        labels: if of.oid == 0 { labels.into() } else { Arc::new([]) },
    }
}

fn named(name: &str) -> &'static Type {
    TYPES.iter().find(|of| of.name == name).expect("a type")
}

/// What PostgreSQL makes of an input; nothing if it refuses it.
struct Taken {
    input: String,
    made: Option<Made>,
}

struct Made {
    /// Printed, sent, and its place in the type's order, the same for equal values.
    output: String,
    sent: Vec<u8>,
    rank: u64,
}

fn taken(session: &mut Session, of: &Type, inputs: &[String]) -> Vec<Taken> {
    session.run(&format!(
        "DROP TABLE IF EXISTS pg_temp.taken; \
         CREATE OR REPLACE FUNCTION pg_temp.attempt_{1}(t text) RETURNS {0} LANGUAGE plpgsql AS \
         $$ BEGIN RETURN t::{0}; EXCEPTION WHEN others THEN RETURN NULL; END $$; \
         CREATE TEMP TABLE taken AS \
         SELECT p, t, pg_temp.attempt_{1}(t) AS v \
         FROM unnest(ARRAY[{2}]::text[]) WITH ORDINALITY AS u (t, p)",
        of.name,
        of.name.replace(' ', "_"),
        literals(inputs),
    ));
    let rows = session.run(&format!(
        "SELECT t, format('%s', v), encode({}(v), 'hex'), dense_rank() OVER (ORDER BY v), \
         v IS NULL FROM taken ORDER BY p",
        of.send,
    ));
    let word = |word: &Option<String>| word.clone().expect("not NULL");
    let made = |row: &Vec<Option<String>>| {
        (word(&row[4]) == "f").then(|| Made {
            output: word(&row[1]),
            sent: unhex(&word(&row[2])),
            rank: word(&row[3]).parse().expect("a number"),
        })
    };
    rows.iter().map(|row| Taken { input: word(&row[0]), made: made(row) }).collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// `before` stands for what is in a buffer already.
fn appended(write: impl FnOnce(&mut Vec<u8>) -> bool) -> Option<Vec<u8>> {
    let mut out = b"before".to_vec();
    let known = write(&mut out);
    assert!(out.starts_with(b"before"));
    assert!(known || out.len() == 6, "nothing is left behind");
    known.then(|| out.split_off(6))
}

fn stored(column: &Column, text: &str) -> Option<Vec<u8>> {
    appended(|out| store(column, text.as_bytes(), out))
}

fn key(class: Class, stored: &[u8]) -> Vec<u8> {
    appended(|out| {
        put_key(class, stored, out);
        true
    })
    .expect("a key")
}

fn constant(column: &Column, type_oid: u32, value: Value<'_>) -> Option<Vec<u8>> {
    appended(|out| put_constant(column, type_oid, value, out) == Constant::Known)
}

fn field(column: &Column, format: Format, stored: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_field(column, format, Some(stored), &mut out);
    let length = u32::from_be_bytes(out[..4].try_into().expect("a length")) as usize;
    assert_eq!(length, out.len() - 4);
    out.split_off(4)
}

fn make_mood(session: &mut Session) {
    let labels = LABELS.map(|label| format!("'{label}'")).join(",");
    session.run(&format!("CREATE TYPE pg_temp.mood AS ENUM ({labels})"));
    session.run("SET search_path = pg_temp, public");
}

#[test]
fn values_are_stored_ordered_and_printed_as_postgresql_does() {
    let mut session = session();
    make_mood(&mut session);
    let settings = settings_of(&mut session);
    for of in TYPES {
        let column = column(of);
        let taken = taken(&mut session, of, &inputs(of.patterns));
        let mut keys: Vec<(u64, Vec<u8>, &str)> = Vec::new();
        for made in taken.iter().filter_map(|taken| taken.made.as_ref()) {
            let what = format!("{}: {:?}", of.name, made.output);
            let stored = stored(&column, &made.output).unwrap_or_else(|| panic!("{what}"));
            let place = LABELS.iter().position(|label| *label == made.output);
            let sent = match of.oid {
                0 => (place.expect("a label") as u16).to_be_bytes().to_vec(),
                // The sign of NaN is not printed, and so gets lost.
                700 if made.output == "NaN" => f32::NAN.to_be_bytes().to_vec(),
                701 if made.output == "NaN" => f64::NAN.to_be_bytes().to_vec(),
                _ => made.sent.clone(),
            };
            assert_eq!(stored, sent, "{what}");
            let width = column.class.width();
            assert!(width.is_none_or(|width| width == stored.len()), "{what}");
            assert!(can_put(&column, Format::Text, &settings), "{what}");
            let printed = field(&column, Format::Text, &stored);
            assert_eq!(String::from_utf8_lossy(&printed), made.output, "{what}");
            let binary = field(&column, Format::Binary, &stored);
            assert_eq!(binary, if of.oid == 0 { made.sent.clone() } else { sent }, "{what}");
            let key = key(column.class, &stored);
            let mut first = key.clone();
            first.resize(8.max(first.len()), 0);
            let first = u64::from_be_bytes(first[..8].try_into().expect("8 bytes"));
            assert_eq!(prefix(column.class, &stored), first, "{what}");
            assert!(!column.class.is_key_whole() || key.len() <= 8, "{what}");
            keys.push((made.rank, key, &made.output));
        }
        keys.sort();
        for pair in keys.windows(2) {
            let what = format!("{}: {} and {}", of.name, pair[0].2, pair[1].2);
            assert_eq!(pair[0].0 == pair[1].0, pair[0].1 == pair[1].1, "{what} equal");
            assert!(pair[0].0 == pair[1].0 || pair[0].1 < pair[1].1, "{what} in order");
            assert!(!pair[1].1.starts_with(&pair[0].1) || pair[0].0 == pair[1].0, "{what}");
        }
    }
}

#[test]
fn constants_are_what_postgresql_reads_or_not_known() {
    for style in ["ISO, MDY; postgres", "SQL, DMY; sql_standard"] {
        let mut session = session();
        make_mood(&mut session);
        let (dates, intervals) = style.split_once("; ").expect("two");
        session.run(&format!("SET DateStyle = '{dates}'; SET IntervalStyle = '{intervals}'"));
        session.run("SET TimeZone = 'Asia/Kolkata'");
        for of in TYPES {
            check_constants(&mut session, of);
        }
    }
}

fn check_constants(session: &mut Session, of: &Type) {
    let column = column(of);
    let (mut understood, mut good) = (0, 0);
    for Taken { input, made } in taken(session, of, &inputs(of.patterns)) {
        let what = format!("{}: {input:?}", of.name);
        let found = constant(&column, 0, Value::Text(input.as_bytes()));
        let Some(made) = made else {
            assert_eq!(found, None, "{what} is refused");
            continue;
        };
        let sent = match of.oid {
            0 => stored(&column, &made.output).expect("a label"),
            _ => made.sent.clone(),
        };
        let expected = key(column.class, &sent);
        good += 1;
        understood += usize::from(found.is_some());
        assert!(found.is_none_or(|found| found == expected), "{what} is {:?}", made.output);
        let binary = constant(&column, column.type_oid, Value::Binary(&made.sent));
        // Infinity is refused: older versions do not have it.
        let infinite = of.name == "numeric" && made.output.ends_with("Infinity");
        assert_eq!(binary, (!infinite).then_some(expected), "{what} in binary");
    }
    let share = understood * 100 / good.max(1);
    assert!(share >= of.understood, "{}: {share} % are understood", of.name);
}

#[test]
fn constants_of_other_types_compare_as_postgresql_does() {
    let mut session = session();
    let numbers = ["smallint", "integer", "bigint", "numeric", "real", "double precision"];
    let mut pairs = vec![("timestamp", "date")];
    pairs.extend(numbers.iter().flat_map(|column| numbers.map(|value| (*column, value))));
    for (column_type, value_type) in pairs {
        let (of, value_of) = (named(column_type), named(value_type));
        let column = column(of);
        if !column.class.compares_with(value_of.oid) {
            continue;
        }
        let mut values = |of: &Type| -> Vec<Made> {
            let taken = taken(&mut session, of, &inputs(of.patterns));
            let mut made: Vec<Made> = taken.into_iter().filter_map(|taken| taken.made).collect();
            let step = (made.len() / 60).max(1);
            made.sort_by_key(|made| made.rank);
            made.into_iter().step_by(step).collect()
        };
        let (left, right) = (values(of), values(value_of));
        let list = |made: &[Made]| {
            literals(&made.iter().map(|made| made.output.clone()).collect::<Vec<_>>())
        };
        session.run("DROP TABLE IF EXISTS pg_temp.l, pg_temp.r CASCADE");
        session.run(&format!(
            "CREATE TEMP TABLE l (p int, v {column_type}); CREATE TEMP TABLE r (p int, v {value_type}); \
             INSERT INTO l SELECT p, t::{column_type} FROM unnest(ARRAY[{}]::text[]) WITH ORDINALITY AS u (t, p); \
             INSERT INTO r SELECT p, t::{value_type} FROM unnest(ARRAY[{}]::text[]) WITH ORDINALITY AS u (t, p)",
            list(&left), list(&right),
        ));
        session.run(
            "CREATE OR REPLACE FUNCTION pg_temp.compared(a l, b r) RETURNS int LANGUAGE plpgsql AS \
             $$ BEGIN RETURN CASE WHEN a.v = b.v THEN 0 WHEN a.v < b.v THEN -1 WHEN a.v > b.v THEN 1 END; \
             EXCEPTION WHEN others THEN RETURN NULL; END $$",
        );
        let signs =
            session.run("SELECT l.p, r.p, pg_temp.compared(l, r) FROM l, r ORDER BY r.p, l.p");
        let mut known = 0;
        for row in signs {
            let number = |at: usize| row[at].as_ref().map(|text| text.parse::<i32>().expect("int"));
            let (l, r) = (
                &left[number(0).expect("p") as usize - 1],
                &right[number(1).expect("p") as usize - 1],
            );
            let key = key(column.class, &l.sent);
            for value in [Value::Text(r.output.as_bytes()), Value::Binary(&r.sent)] {
                let found = constant(&column, value_of.oid, value);
                let what = format!("{column_type} {} and {value_type} {}", l.output, r.output);
                let Some(found) = found else { continue };
                known += 1;
                let sign = number(2).unwrap_or_else(|| panic!("{what}: refused"));
                assert_eq!(key.cmp(&found) as i32, sign, "{what}");
            }
        }
        assert!(known * 3 > left.len() * right.len() * 2, "{column_type} and {value_type}");
    }
}

#[test]
fn text_is_printed_for_the_settings_of_a_session_or_not_at_all() {
    let variants = [
        "",
        "SET DateStyle = 'ISO, DMY'; SET TimeZone = 'Etc/UTC'; SET extra_float_digits = 3",
        "SET DateStyle = 'SQL'",
        "SET DateStyle = 'German'; SET IntervalStyle = 'iso_8601'",
        "SET TimeZone = 'Europe/Berlin'",
        "SET TimeZone = 'GMT'; SET IntervalStyle = 'postgres_verbose'",
        "SET bytea_output = 'escape'; SET extra_float_digits = 0",
        "SET extra_float_digits = -3",
        "SET client_encoding = 'LATIN1'",
    ];
    let mut session = session();
    make_mood(&mut session);
    for of in TYPES {
        let column = column(of);
        let mut can = 0;
        for variant in variants {
            let made = taken(&mut session, of, &inputs(of.patterns));
            let before: Vec<Vec<u8>> = made
                .iter()
                .filter_map(|taken| stored(&column, &taken.made.as_ref()?.output))
                .collect();
            session.run(&format!("BEGIN; {variant}"));
            let settings = settings_of(&mut session);
            let can_put = can_put(&column, Format::Text, &settings);
            let shown = "SELECT format('%s', v) FROM taken WHERE v IS NOT NULL ORDER BY p";
            let shown = if can_put { session.run(shown) } else { Vec::new() };
            session.run("ROLLBACK");
            if !can_put {
                continue;
            }
            can += 1;
            for (stored, row) in before.iter().zip(shown) {
                let printed = field(&column, Format::Text, stored);
                let expected = row[0].clone().expect("text");
                assert_eq!(String::from_utf8_lossy(&printed), expected, "{} {variant}", of.name);
            }
        }
        assert!(can >= 2, "{} is printed", of.name);
    }
}

#[test]
fn floats_have_the_shortest_digits() {
    let mut session = session();
    let mut state = 7u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // Any bits, few bits (which lie between short decimals), whole numbers, decimals.
    let mut bits = |width: u32| -> u64 {
        let some = random();
        let few = (some & 0xff) << (u64::from(width) - 12 - (some >> 8) % 8);
        match random() % 4 {
            0 => some,
            1 => few | (some & 0x3ff) << 52 >> (64 - width),
            2 if width == 64 => ((some >> (40 + some % 20)) as f64).to_bits(),
            2 => u64::from(((some >> 40) as f32).to_bits()),
            _ if width == 64 => ((some >> 44) as f64 / 1000.0).to_bits(),
            _ => u64::from(((some >> 48) as f32 * 1e7).to_bits()),
        }
    };
    let (single, double) = (column(named("real")), column(named("double precision")));
    let some: Vec<f32> = (0..30_000).map(|_| f32::from_bits(bits(32) as u32)).collect();
    let others: Vec<f64> = (0..30_000).map(|_| f64::from_bits(bits(64))).collect();
    let digits = |text: Vec<String>| format!("'{{{}}}'", text.join(","));
    let shown = session.run(&format!(
        "SELECT v FROM unnest({}::real[]) AS u (v)",
        digits(some.iter().map(|value| format!("{:.12e}", value)).collect())
    ));
    for (value, row) in some.iter().zip(&shown) {
        let printed = field(&single, Format::Text, &value.to_be_bytes());
        assert_eq!(Some(String::from_utf8_lossy(&printed).into_owned()), row[0], "{value:e}");
    }
    let shown = session.run(&format!(
        "SELECT v FROM unnest({}::float8[]) AS u (v)",
        digits(others.iter().map(|value| format!("{:.20e}", value)).collect())
    ));
    for (value, row) in others.iter().zip(&shown) {
        let printed = field(&double, Format::Text, &value.to_be_bytes());
        assert_eq!(Some(String::from_utf8_lossy(&printed).into_owned()), row[0], "{value:e}");
    }
}

#[test]
fn null_is_a_length_of_minus_one() {
    let column = column(named("integer"));
    let mut out = Vec::new();
    put_field(&column, Format::Text, None, &mut out);
    assert_eq!(out, [255; 4]);
    assert_eq!(put_constant(&column, 0, Value::Null, &mut out), Constant::Null);
}
