//! Tags of recipes: what needs which, limits, values that are NULL or not understood.

use std::sync::Arc;

use cache::recipe::{
    Form, Precise, Recipe, Signature, Source, TableDeps, Value, Values, ENTRY_TAGS_MAX,
    TABLE_TAGS_MAX,
};
use cache::tags::{Tag, Tags};
use cache::value::{oid, Kind};
use smallvec::SmallVec;

/// Parameters: text of type `unknown`, NULL where there is none.
struct Given(Vec<Option<String>>);

impl Values for Given {
    fn get(&self, source: Source) -> Option<(Value<'_>, u32)> {
        let Source::Parameter(number) = source else {
            return None;
        };
        let value = self.0.get(number as usize - 1)?;
        Some((value.as_ref().map_or(Value::Null, |v| Value::Text(v.as_bytes())), oid::UNKNOWN))
    }
}

fn given(values: &[&str]) -> Given {
    Given(values.iter().map(|v| (*v != "NULL").then(|| v.to_string())).collect())
}

fn signature(table: u32, columns: usize, form: Form) -> Arc<Signature> {
    let columns = (0..columns).map(|at| (format!("c{at}"), Kind::Int)).collect();
    Arc::new(Signature::new(table, columns, form))
}

fn equal(table: u32, values: &[&[u32]]) -> TableDeps {
    let signature = signature(table, values.len(), Form::Equal);
    let source = |number: &u32| Source::Parameter(*number);
    let values = values.iter().map(|numbers| numbers.iter().map(source).collect()).collect();
    TableDeps { oid: table, restriction: Some(Precise::Equal { signature, values }) }
}

fn any_of(table: u32) -> TableDeps {
    let signature = signature(table, 1, Form::Equal);
    let array = Source::Parameter(1);
    TableDeps { oid: table, restriction: Some(Precise::AnyOf { signature, array }) }
}

fn range(table: u32) -> TableDeps {
    let signature = signature(table, 1, Form::Range);
    let (low, high) = ((Source::Parameter(1), true), (Source::Parameter(2), false));
    let restriction = Precise::Range { signature, low: Some(low), high: Some(high) };
    TableDeps { oid: table, restriction: Some(restriction) }
}

fn tags() -> Tags {
    Tags::new(1 << 20, 5)
}

/// The tags, and whether they are as precise as the recipe.
fn of(tables: Vec<TableDeps>, values: &[&str]) -> (bool, SmallVec<[Tag; 8]>) {
    let mut out = SmallVec::new();
    let precise = Recipe { tables }.tags(&given(values), &tags(), &mut out);
    let mut once = out.to_vec();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), out.len(), "no tag is there twice");
    (precise, out)
}

fn whole(table: u32) -> Vec<Tag> {
    vec![tags().epoch(table), tags().any(table)]
}

#[test]
fn equal_values_have_equal_tags_however_they_are_written() {
    let (precise, tags) = of(vec![equal(1, &[&[1]])], &["5"]);
    assert!(precise);
    assert_eq!(tags.len(), 3, "epoch, wild, value");
    assert_eq!(of(vec![equal(1, &[&[1]])], &[" +05 "]).1, tags);
    assert_eq!(of(vec![any_of(1)], &["{5}"]).1, tags, "= ANY is the same signature");
    assert_eq!(of(vec![equal(1, &[&[1, 2]])], &["5", "0x5"]).1, tags);
    assert_ne!(of(vec![equal(1, &[&[1]])], &["6"]).1, tags);
    assert_ne!(of(vec![equal(2, &[&[1]])], &["5"]).1, tags);
}

#[test]
fn values_of_columns_are_not_mixed_up() {
    let two = |values| of(vec![equal(1, &[&[1], &[2]])], values).1;
    assert_ne!(two(&["1", "2"]), two(&["2", "1"]));
    let (precise, tags) = of(vec![equal(1, &[&[1, 2], &[3, 4, 5]])], &["1", "2", "1", "2", "3"]);
    assert!(precise);
    assert_eq!(tags.len(), 2 + 6, "each combination");
}

#[test]
fn nothing_is_equal_to_null() {
    let nothing = |table: TableDeps, values: &[&str]| {
        let (precise, tags) = of(vec![table], values);
        assert!(precise);
        tags.len()
    };
    assert!(nothing(equal(1, &[&[1]]), &["NULL"]) <= 2);
    assert!(nothing(equal(1, &[&[1], &[2]]), &["1", "NULL"]) <= 2);
    assert!(nothing(any_of(1), &["NULL"]) <= 2);
    assert!(nothing(any_of(1), &["{}"]) <= 2);
    assert!(nothing(range(1), &["NULL", "5"]) <= 2);
    assert!(nothing(range(1), &["7", "7"]) <= 2);
    assert!(nothing(range(1), &["1", "-9223372036854775808"]) <= 2, "below the least");
    assert_eq!(nothing(equal(1, &[&[1, 2]]), &["NULL", "4"]), 3, "NULLs in lists are ignored");
    assert_eq!(nothing(any_of(1), &["{NULL,4}"]), 3);
}

#[test]
fn what_is_not_understood_takes_every_row() {
    for (table, values) in [
        (equal(1, &[&[1]]), &["5.0"] as &[&str]),
        (equal(1, &[&[1]]), &[]),
        (equal(1, &[&[1, 2]]), &["5", "x"]),
        (equal(1, &[&[1], &[2]]), &["5", "x"]),
        (any_of(1), &["{5,x}"]),
        (any_of(1), &["{{5},{6}}"]),
        (any_of(1), &["{5"]),
        (range(1), &["1", "1e3"]),
    ] {
        let (precise, tags) = of(vec![table], values);
        assert!(!precise);
        assert_eq!(tags.to_vec(), whole(1), "{values:?}");
    }
    let mismatched = TableDeps {
        oid: 1,
        restriction: Some(Precise::Range {
            signature: signature(1, 1, Form::Equal),
            low: None,
            high: None,
        }),
    };
    assert_eq!(of(vec![mismatched], &[]).1.to_vec(), whole(1));
    assert_eq!(of(vec![TableDeps { oid: 1, restriction: None }], &[]), (true, whole(1).into()));
}

#[test]
fn limits_of_a_table_and_of_an_answer_are_kept() {
    let array = |count: usize| {
        let numbers: Vec<String> = (0..count).map(|n| n.to_string()).collect();
        format!("{{{}}}", numbers.join(","))
    };
    let (precise, tags) = of(vec![any_of(1)], &[&array(TABLE_TAGS_MAX - 2)]);
    assert!(precise && tags.len() == TABLE_TAGS_MAX);
    let (precise, tags) = of(vec![any_of(1)], &[&array(TABLE_TAGS_MAX - 1)]);
    assert!(!precise && tags.to_vec() == whole(1));
    let (precise, tags) = of(vec![range(1)], &["-7777777777777777777", "7777777777777777777"]);
    assert!(precise && tags.len() <= TABLE_TAGS_MAX);

    let many = |count: u32| (1..=count).map(any_of).collect();
    let (precise, tags) = of(many(6), &[&array(30)]);
    assert!(!precise && tags.len() <= ENTRY_TAGS_MAX, "{} tags", tags.len());
    assert!(whole(6).iter().all(|tag| tags.contains(tag)), "the last ones take every row");
    assert!(!tags.contains(&whole(1)[1]), "the first is precise");
    let (_, tags) = of(many(100), &[&array(30)]);
    assert!((1..=100).all(|table| whole(table).iter().all(|tag| tags.contains(tag))));
}

/// One text of a declared type.
struct Declared(&'static str, u32);

impl Values for Declared {
    fn get(&self, _: Source) -> Option<(Value<'_>, u32)> {
        Some((Value::Text(self.0.as_bytes()), self.1))
    }
}

#[test]
fn a_date_beside_a_timestamp_has_no_time_of_day() {
    let columns = vec![("at".to_owned(), Kind::Timestamp)];
    let signature = Arc::new(Signature::new(7, columns, Form::Equal));
    let values = vec![vec![Source::Parameter(1)]];
    let restriction = Some(Precise::Equal { signature, values });
    let recipe = Recipe { tables: vec![TableDeps { oid: 7, restriction }] };
    let of = |text, type_oid| {
        let mut out = SmallVec::new();
        recipe.tags(&Declared(text, type_oid), &tags(), &mut out).then_some(out)
    };
    let midnight = of("2024-02-29", oid::DATE);
    assert!(midnight.is_some());
    assert_eq!(midnight, of("2024-02-29 00:00:00", oid::TIMESTAMP));
    // PostgreSQL's input of a date ignores what is behind it.
    assert_eq!(of("2024-02-29 12:00:00", oid::DATE), None);
}
