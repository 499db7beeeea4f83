//! What plans ask for and promise, and what they refuse, without a database.

use std::collections::HashMap;
use std::sync::Arc;

use cache::mirror::class::{Class, Collation};
use cache::mirror::definition::{Column, Definition};
use cache::mirror::output::Session;
use cache::mirror::plan::{Need, Plan, Ties};
use cache::mirror::run::{run, Limits, Ran, Refused, Scratch, Terms};
use cache::mirror::table::Table;
use cache::recipe::{Value, Values};
use cache::value::oid;
use sql::{Comparison, Filter, Order, Output, Select, Source};

type At = (u16, u16);

const ID: At = (0, 0);
const K: At = (0, 1);
const C: At = (0, 2);
const PRICE: At = (0, 3);
const RATE: At = (0, 4);
const PLACE: At = (0, 5);

const FLOAT8: u32 = 701;
const POINT: u32 = 600;

fn column(name: &str, type_oid: u32) -> Column {
    Column {
        name: name.to_owned(),
        attnum: name.len() as i16,
        type_oid,
        type_modifier: -1,
        class: Class::of(type_oid),
        collation: if name == "c" { Collation::EqualOnly } else { Collation::Ordered },
        not_null: name == "id",
        labels: Arc::from([]),
    }
}

fn definition(oid: u32, names: &[&str]) -> Arc<Definition> {
    let types = HashMap::from([
        ("id", oid::INT4),
        ("k", oid::INT4),
        ("c", oid::TEXT),
        ("price", oid::NUMERIC),
        ("rate", FLOAT8),
        ("place", POINT),
    ]);
    let columns: Vec<Column> = names.iter().map(|name| column(name, types[name])).collect();
    let id = names.iter().position(|name| *name == "id").expect("an identity");
    let (schema, name) = ("public".to_owned(), format!("t{oid}"));
    Arc::new(Definition { oid, filenode: 1, schema, name, columns, identity: vec![id as u16] })
}

const ALL: [&str; 6] = ["id", "k", "c", "price", "rate", "place"];

fn select(outputs: &[Output<At>], filter: Filter<At>) -> Select<At> {
    Select {
        distinct: false,
        outputs: outputs.to_vec(),
        shown: outputs.len(),
        filter,
        group: vec![],
        order: vec![],
        limit: None,
        offset: None,
    }
}

fn compare(at: At, comparison: Comparison) -> Filter<At> {
    Filter::Compare(at, comparison, Source::Parameter(1))
}

fn equal(at: At) -> Filter<At> {
    compare(at, Comparison::Equal)
}

fn by(output: usize) -> Order {
    Order { output, descending: false, nulls_first: false }
}

fn plan_of(select: Select<At>, tables: usize, type_oid: u32) -> Result<Plan, String> {
    let tables = (1..=tables as u32).map(|oid| definition(oid, &ALL)).collect();
    Plan::new(select, tables, &|_| type_oid)
}

fn plan(select: Select<At>) -> Plan {
    plan_of(select, 1, 0).expect("a plan")
}

/// The indexes that a plan needs: table, column, sums.
fn needs(plan: &Plan) -> Vec<(u32, u16, Vec<u16>)> {
    plan.needs().map(|Need { table, index, sums, .. }| (table, index, sums)).collect()
}

const NOTHING: Filter<At> = Filter::And(vec![]);

#[test]
fn indexes_are_those_of_what_is_asked() {
    let c = [Output::Column(C)];
    let all = || compare(ID, Comparison::Greater);
    // The identity has an index of its own.
    assert_eq!(needs(&plan(select(&c, equal(ID)))), []);
    assert_eq!(needs(&plan(select(&c, all()))), []);
    assert_eq!(needs(&plan(select(&c, equal(K)))), [(1, 1, vec![])]);
    // A value tells more than a range.
    let both = Filter::And(vec![equal(K), compare(PRICE, Comparison::Less)]);
    assert_eq!(needs(&plan(select(&c, both))), [(1, 1, vec![])]);
    let either = Filter::Or(vec![equal(K), equal(C)]);
    assert_eq!(needs(&plan(select(&c, either))), []);
    // All rows but some are most of them.
    let other = || Filter::NotIn(K, vec![Source::Parameter(1)]);
    assert_eq!(needs(&plan(select(&c, other()))), []);
    let pattern = |wanted| Filter::Like(C, Source::Parameter(1), wanted);
    assert_eq!(needs(&plan(select(&c, pattern(true)))), [(1, 2, vec![])]);
    assert_eq!(needs(&plan(select(&c, pattern(false)))), []);
    let both = Filter::And(vec![other(), pattern(true)]);
    assert_eq!(needs(&plan(select(&c, both))), [(1, 2, vec![])]);
    // sysbench's sum of a range of the identity.
    assert_eq!(needs(&plan(select(&[Output::Sum(K)], all()))), [(1, 0, vec![1])]);
    assert_eq!(needs(&plan(select(&[Output::CountRows], all()))), []);
    assert_eq!(needs(&plan(select(&[Output::CountRows], NOTHING))), []);
    assert_eq!(needs(&plan(select(&[Output::Avg(K)], NOTHING))), [(1, 1, vec![1])]);
    assert_eq!(needs(&plan(select(&[Output::Max(K)], NOTHING))), [(1, 1, vec![])]);
    let first = Select {
        order: vec![by(0)],
        limit: Some(Source::Parameter(1)),
        ..select(&[Output::Column(K)], NOTHING)
    };
    assert_eq!(needs(&plan(first)), [(1, 1, vec![])]);
}

#[test]
fn the_first_columns_of_an_identity_need_no_index() {
    let mut two = (*definition(1, &ALL)).clone();
    two.identity = vec![1, 0];
    two.columns[1].not_null = true;
    let two = Arc::new(two);
    let plan = |filter: Filter<At>| {
        let select = select(&[Output::Column(ID)], filter);
        Plan::new(select, vec![two.clone()], &|_| 0).expect("a plan")
    };
    assert_eq!(needs(&plan(equal(K))), []);
    assert_eq!(needs(&plan(Filter::And(vec![equal(K), equal(ID)]))), []);
    assert_eq!(needs(&plan(Filter::And(vec![equal(K), equal(PRICE)]))), [(1, 3, vec![])]);
    assert_eq!(needs(&plan(equal(ID))), [(1, 0, vec![])]);
    let mut table = Table::new(two.clone());
    for id in 1..=100i32 {
        let (id, k) = (id.to_be_bytes(), (-1 - id % 5).to_be_bytes());
        table.load(&[Some(&id), Some(&k), None, None, None, None]).expect("a row");
    }
    table.finish().expect("each once");
    let tables = HashMap::from([(1, table)]);
    // No more than these are looked at.
    assert_eq!(ran(&plan(equal(K)), &tables, Some("-1"), 20), Ran::Rows(20));
    assert_eq!(ran(&plan(equal(K)), &tables, Some("0"), 0), Ran::Rows(0));
    assert_eq!(ran(&plan(equal(K)), &tables, None, 0), Ran::Rows(0));
}

#[test]
fn joins_need_indexes_on_the_way_from_what_is_known() {
    let join = Filter::And(vec![Filter::Same((0, 0), (1, 1)), equal((0, 0))]);
    let plan = plan_of(select(&[Output::Column((1, 2))], join), 2, 0).expect("a plan");
    // The value is the other column's as well.
    assert_eq!(needs(&plan), [(2, 1, vec![])]);
    let join = Filter::And(vec![Filter::Same((0, 1), (1, 0)), equal((0, 3))]);
    let plan = plan_of(select(&[Output::Column((1, 2))], join), 2, 0).expect("a plan");
    assert_eq!(needs(&plan), [(1, 3, vec![])]);
}

#[test]
fn ties_are_what_the_order_leaves_open() {
    let k = [Output::Column(K)];
    let limit = Some(Source::Parameter(1));
    let ties = |select: Select<At>| plan(select).ties();
    assert_eq!(ties(select(&k, NOTHING)), Ties::Free);
    assert_eq!(ties(Select { limit, ..select(&k, NOTHING) }), Ties::Cut);
    assert_eq!(ties(select(&k, equal(ID))), Ties::Total);
    assert_eq!(ties(Select { order: vec![by(0)], limit, ..select(&k, NOTHING) }), Ties::Total);
    // 1.0 and 1.00 have one place and look different.
    let price = [Output::Column(PRICE)];
    assert_eq!(ties(Select { order: vec![by(0)], ..select(&price, NOTHING) }), Ties::Free);
    let two = [Output::Column(PRICE), Output::Column(K)];
    assert_eq!(ties(Select { order: vec![by(1)], limit, ..select(&two, NOTHING) }), Ties::Cut);
    let hidden = [Output::Column(PRICE), Output::Column(ID)];
    let hidden = Select { shown: 1, order: vec![by(1)], limit, ..select(&hidden, NOTHING) };
    assert_eq!(ties(hidden), Ties::Total);
    assert_eq!(ties(select(&[Output::CountRows], NOTHING)), Ties::Total);
    let groups = [Output::Column(K), Output::CountRows];
    let groups = Select { group: vec![K], ..select(&groups, NOTHING) };
    assert_eq!(ties(groups.clone()), Ties::Free);
    assert_eq!(ties(Select { order: vec![by(0)], ..groups.clone() }), Ties::Total);
    assert_eq!(ties(Select { order: vec![by(1)], limit, ..groups }), Ties::Cut);
}

#[test]
fn what_is_not_certain_is_refused() {
    let refused = |select: Select<At>, type_oid: u32| {
        plan_of(select, 1, type_oid).map(drop).expect_err("it is not certain")
    };
    let c = [Output::Column(C)];
    assert_eq!(refused(select(&c, equal(K)), oid::TEXT), "k is compared with another type");
    assert_eq!(refused(select(&c, equal(PLACE)), 0), "place is compared with another type");
    assert_eq!(
        refused(select(&c, compare(C, Comparison::Less)), 0),
        "c has an order other than that of its bytes"
    );
    assert_eq!(refused(select(&c, Filter::Same(K, C)), 0), "k and c have other types");
    assert_eq!(refused(select(&c, Filter::Is(K, true)), 0), "k is a condition and no bool");
    let pattern = Filter::Like(K, Source::Parameter(1), true);
    assert_eq!(refused(select(&c, pattern), 0), "k is no text that has a pattern");
    for output in [Output::Sum(RATE), Output::Avg(RATE), Output::Sum(C)] {
        assert!(refused(select(&[output], NOTHING), 0).contains("of what is not exact"));
    }
    let different = "values of price can be equal and look different";
    assert_eq!(refused(select(&[Output::Max(PRICE)], NOTHING), 0), different);
    let distinct = Select { distinct: true, ..select(&[Output::Column(PRICE)], NOTHING) };
    assert_eq!(refused(distinct, 0), different);
    let group = Select { group: vec![PRICE], ..select(&[Output::CountRows], NOTHING) };
    assert_eq!(refused(group, 0), different);
    let order = Select { order: vec![by(0)], ..select(&c, NOTHING) };
    assert_eq!(refused(order, 0), "c has an order other than that of its bytes");
    let place = [Output::Column(PLACE)];
    let order = Select { order: vec![by(0)], ..select(&place, NOTHING) };
    assert_eq!(refused(order, 0), "place has a type whose order is not known");
    let ungrouped = Select { group: vec![K], ..select(&c, NOTHING) };
    assert_eq!(refused(ungrouped, 0), "a column that is not grouped by");
    let deep = (0..40).fold(equal(K), |inner, _| Filter::Or(vec![inner]));
    assert!(refused(select(&c, deep), 0).contains("deep in each other"));
    let many = Filter::And((0..2000).map(|_| equal(K)).collect());
    assert!(refused(select(&c, many), 0).contains("more than 1024 conditions"));
    let limit = Select { limit: Some(Source::Parameter(1)), ..select(&c, NOTHING) };
    assert_eq!(refused(limit, oid::NUMERIC), "LIMIT or OFFSET is no whole number");
    let joined = Filter::And((0..65).map(|_| Filter::Same((0, 1), (1, 1))).collect());
    let joined = plan_of(select(&c, joined), 2, 0).map(drop);
    assert_eq!(joined, Err("more than 64 equalities between tables".to_owned()));
    assert!(plan_of(select(&c, NOTHING), 9, 0).is_err());
    assert!(plan_of(select(&c, NOTHING), 0, 0).is_err());
}

struct Given(Option<&'static str>);

impl Values for Given {
    fn get(&self, _: Source) -> Option<(Value<'_>, u32)> {
        Some((self.0.map_or(Value::Null, |text| Value::Text(text.as_bytes())), oid::UNKNOWN))
    }
}

/// With rows 1 to 100.
fn tables(names: &[&str], indexed: bool) -> HashMap<u32, Table> {
    let mut tables = HashMap::new();
    for oid in [1, 2] {
        let mut table = Table::new(definition(oid, names));
        for id in 1..=100i32 {
            let (id, k) = (id.to_be_bytes(), (id / 10).to_be_bytes());
            let value = |name: &&str| match *name {
                "id" => Some(&id[..]),
                "k" => Some(&k[..]),
                _ => None,
            };
            let fields: Vec<_> = names.iter().map(value).collect();
            table.load(&fields).expect("a row");
        }
        table.finish().expect("each once");
        if indexed {
            let k = names.iter().position(|name| *name == "k").expect("a column");
            table.add_index(k as u16, &[]);
        }
        tables.insert(oid, table);
    }
    tables
}

fn ran(plan: &Plan, tables: &HashMap<u32, Table>, value: Option<&'static str>, rows: u64) -> Ran {
    let limits = Limits { rows, bytes: 1_000 };
    let (session, mut out) = (Session::default(), b"before".to_vec());
    let terms = Terms { formats: &[], session: &session, limits };
    let mut scratch = Scratch::default();
    let ran = run(plan, tables, &Given(value), terms, &mut scratch, &mut out);
    assert_eq!(ran == Ran::Rows(0) || matches!(ran, Ran::Rows(_)), out.len() > 6);
    assert!(out.starts_with(b"before"));
    ran
}

#[test]
fn a_plan_is_placed_where_tables_have_other_columns_too() {
    let tables = tables(&["place", "k", "c", "id", "price", "rate"], true);
    let plan = plan(select(&[Output::Column(K)], equal(ID)));
    assert_eq!(ran(&plan, &tables, Some("7"), 9), Ran::Refused(Refused::Unready));
    let placed = plan.placed(&tables).expect("its columns are there");
    assert_eq!(ran(&placed, &tables, Some("7"), 9), Ran::Rows(1));
    let without = self::tables(&["id", "c"], false);
    assert!(plan.placed(&without).is_none());
    assert!(plan.placed(&HashMap::new()).is_none());
}

#[test]
fn limits_and_values_refuse_and_leave_nothing() {
    let tables = tables(&ALL, true);
    let count = plan(select(&[Output::CountRows], compare(K, Comparison::Less)));
    assert_eq!(ran(&count, &tables, Some("9"), 0), Ran::Rows(1));
    for wrong in ["nine", "99999999999", ""] {
        assert_eq!(ran(&count, &tables, Some(wrong), 9), Ran::Refused(Refused::Value));
    }
    let rows = plan(select(&[Output::Column(K)], compare(K, Comparison::Less)));
    assert_eq!(ran(&rows, &tables, Some("1"), 9), Ran::Rows(9));
    assert_eq!(ran(&rows, &tables, Some("1"), 8), Ran::Refused(Refused::TooMuch));
    assert_eq!(ran(&rows, &tables, Some("9"), 100), Ran::Refused(Refused::TooMuch));
    assert_eq!(ran(&rows, &tables, None, 8), Ran::Rows(0));
    let limit = Some(Source::Parameter(1));
    let first = plan(Select { limit, ..select(&[Output::Column(K)], NOTHING) });
    assert_eq!(ran(&first, &tables, Some("3"), 9), Ran::Rows(3));
    assert_eq!(ran(&first, &tables, Some("-1"), 9), Ran::Refused(Refused::Value));
    assert_eq!(ran(&first, &tables, Some("0"), 9), Ran::Rows(0));
    assert_eq!(ran(&first, &tables, None, 100), Ran::Refused(Refused::TooMuch));
}

#[test]
fn joins_without_an_index_wait_for_it() {
    let join = || Filter::Same((0, 1), (1, 1));
    let plan = plan_of(select(&[Output::CountRows], join()), 2, 0).expect("a plan");
    assert_eq!(ran(&plan, &tables(&ALL, true), None, 10_000), Ran::Rows(1));
    let bare = tables(&ALL, false);
    assert_eq!(ran(&plan, &bare, None, 100_000), Ran::Refused(Refused::Unready));
    // From the other side there is one, though more rows are looked at.
    let join = Filter::And(vec![
        Filter::Same((0, 1), (1, 0)),
        Filter::Compare((1, 0), Comparison::LessEqual, Source::Parameter(1)),
    ]);
    let plan = plan_of(select(&[Output::Column((0, 0))], join), 2, 0).expect("a plan");
    assert_eq!(ran(&plan, &bare, Some("1"), 300), Ran::Rows(10));
    assert_eq!(ran(&plan, &bare, Some("2"), 300), Ran::Rows(20));
}
