//! The applier: what is rare, and what is too much.

use std::sync::Arc;

use backend::moment::Moment;
use backend::replication::{Changes, Old, PublishedTable};
use cache::apply::{Applier, SUBTRANSACTIONS_MAX, TAGS_OF_ALL_MAX, TAGS_OF_ONE_MAX};
use cache::mirror::budget::Budget;
use cache::mirror::class::{Class, Collation};
use cache::mirror::definition::{Column, Definition};
use cache::mirror::held::{MirrorInfo, State};
use cache::mirror::wish::{Wanted, Wish};
use cache::recipe::{Form, Precise, Recipe, Signature, Source, TableDeps, Value, Values};
use cache::shared::{Shared, Snapshot};
use cache::tags::{Tag, Tags};
use cache::value::{oid, Kind};
use smallvec::SmallVec;
use wire::pg::pgoutput::{put_tuple, Field, Relation, RelationColumn, Tuple};

const ROOT: u32 = 10;
const LEAF: u32 = 11;
const ALONE: u32 = 20;
const NEW: u32 = 30;

const NOW: Moment = Moment(1);

struct One(&'static str);

impl Values for One {
    fn get(&self, _source: Source) -> Option<(Value<'_>, u32)> {
        Some((Value::Text(self.0.as_bytes()), oid::UNKNOWN))
    }
}

fn table(oid: u32, ancestors: &[u32]) -> PublishedTable {
    PublishedTable {
        oid,
        schema: "public".to_owned(),
        name: format!("t{oid}"),
        partitioned: oid == ROOT,
        ancestors: ancestors.to_vec(),
    }
}

fn tables() -> Vec<PublishedTable> {
    vec![table(ROOT, &[]), table(LEAF, &[ROOT]), table(ALONE, &[])]
}

/// With a key `id` and a text.
fn relation(oid: u32) -> Relation {
    let column = |name: &str, type_oid, key| RelationColumn {
        name: name.to_owned(),
        type_oid,
        modifier: -1,
        key,
    };
    Relation {
        oid,
        schema: "public".to_owned(),
        name: format!("t{oid}"),
        identity: b'd',
        columns: vec![column("id", oid::INT4, true), column("name", oid::TEXT, false)],
    }
}

/// The database as one test has it.
struct Followed {
    shared: Arc<Shared>,
    applier: Applier,
    lsn: u64,
}

impl Followed {
    fn new() -> Followed {
        let budget = Arc::new(Budget::new(1 << 20));
        let shared = Shared::mirroring(Tags::new(1 << 20, 7), Box::new(|| {}), budget);
        let shared = Arc::new(shared);
        let mut applier = Applier::new(shared.clone());
        applier.began(5, &tables());
        for oid in [LEAF, ALONE, NEW] {
            applier.relation(&relation(oid));
        }
        Followed { shared, applier, lsn: 5 }
    }

    /// What an answer depends on that restricts a column of a table to a value.
    fn answer(&mut self, oid: u32, column: &str, kind: Kind, value: &'static str) -> Answer {
        let columns = vec![(column.to_owned(), kind)];
        let signature = Arc::new(Signature::new(oid, columns, Form::Equal));
        let values = vec![vec![Source::Parameter(1)]];
        let restriction = Some(Precise::Equal { signature, values });
        let mut recipe = Recipe { tables: vec![TableDeps { oid, restriction }] };
        let generation = self.shared.watch.adopt(&mut recipe);
        assert!(recipe.tables[0].restriction.is_some());
        self.applier.look();
        assert!(self.shared.watch.has_seen(generation));
        let mut tags = SmallVec::new();
        assert!(recipe.tags(&One(value), &self.shared.tags, &mut tags));
        Answer { tags, version: self.shared.applied().number }
    }

    /// Somebody wants a mirror of this table, and the applier follows it from now on.
    fn mirror(&mut self, oid: u32) -> Arc<Wish> {
        let wish = self.wish(oid, &["id"], true);
        self.arrange();
        wish
    }

    /// `columns`: the key, and more.
    fn wish(&self, oid: u32, columns: &[&str], pinned: bool) -> Arc<Wish> {
        let column = |(place, name): (usize, &&str)| Column {
            name: (*name).to_owned(),
            attnum: i16::try_from(place + 1).expect("a few"),
            type_oid: oid::INT4,
            type_modifier: -1,
            class: Class::of(oid::INT4),
            collation: Collation::Ordered,
            not_null: place == 0,
            labels: Arc::from([]),
        };
        let (schema, name) = ("public".to_owned(), format!("t{oid}"));
        let (columns, identity) = (columns.iter().enumerate().map(column).collect(), vec![0]);
        let definition = Definition { oid, filenode: 1, schema, name, columns, identity };
        let wanted = Wanted { definition, indexes: Vec::new() };
        let wish = Arc::new(Wish::new(vec![wanted], pinned, NOW));
        self.shared.mirrors.wish(&wish);
        wish
    }

    /// The thread that makes mirrors looks, and the applier.
    fn arrange(&mut self) {
        self.shared.mirrors.arrange(NOW, |_| true);
        self.applier.look();
    }

    /// Makes the mirror that is to be copied, of a table without rows. False: there is none.
    fn make(&mut self) -> bool {
        self.settle("900:900:");
        let Some(mut copy) = self.shared.mirrors.next_copy() else { return false };
        copy.began("900:900:", self.lsn).expect("a snapshot");
        self.shared.mirrors.loaded(copy.finish().expect("an empty table"));
        self.settle("900:900:");
        self.shared.mirrors.stand(NOW);
        true
    }

    /// The columns of all mirrors, and which do not answer yet.
    fn mirrors(&self) -> Vec<String> {
        let info = self.shared.mirrors.info();
        let waits = |state| if state == State::Ready { "" } else { ", waits" };
        let show = |one: MirrorInfo| one.columns.join(" ") + waits(one.state);
        let mut all: Vec<String> = info.into_iter().map(show).collect();
        all.sort();
        all
    }

    /// PostgreSQL shows what this snapshot sees.
    fn settle(&self, snapshot: &str) {
        let snapshot = Snapshot::parse(snapshot.as_bytes()).expect("a snapshot");
        self.shared.settle(snapshot, self.shared.starts());
    }

    fn by_id(&mut self, oid: u32, id: &'static str) -> Answer {
        self.answer(oid, "id", Kind::Int, id)
    }

    fn insert(&mut self, xid: u32, oid: u32, id: &str) {
        let mut bytes = Vec::new();
        put_tuple(&mut bytes, &[Field::Text(id.as_bytes()), Field::Text(b"x")]);
        self.applier.row(xid, oid, Old::Absent, Some(Tuple::parse(&bytes).expect("a row")));
    }

    fn commit(&mut self, xid: u32) {
        self.lsn += 8;
        self.applier.commit(xid, self.lsn);
        assert_eq!(self.shared.applied().lsn, self.lsn);
    }

    fn holds(&self, answer: &Answer) -> bool {
        self.shared.tags.hold(&answer.tags, answer.version)
    }
}

struct Answer {
    tags: SmallVec<[Tag; 8]>,
    version: u64,
}

#[test]
fn a_mirror_is_not_copied_before_all_that_was_told_without_it_is_visible() {
    let mut db = Followed::new();
    db.settle("900:900:");
    db.applier.begin(900);
    db.insert(900, ALONE, "1");
    db.commit(900);
    let _wish = db.mirror(ALONE);
    db.applier.begin(901);
    db.insert(901, ALONE, "2");
    db.commit(901);
    db.settle("900:902:900");
    assert!(db.shared.mirrors.next_copy().is_none(), "a copy would lack what 900 has done");
    db.settle("902:902:");
    assert!(db.shared.mirrors.next_copy().is_some());
}

#[test]
fn a_mirror_is_not_made_of_a_transaction_that_was_told_in_part_before() {
    let mut db = Followed::new();
    db.settle("900:900:");
    db.applier.begin(900);
    db.insert(900, ALONE, "1");
    let _wish = db.mirror(ALONE);
    let mut copy = db.shared.mirrors.next_copy().expect("nothing is waited for");
    db.commit(900);
    copy.began("900:901:900", db.lsn).expect("a snapshot");
    db.shared.mirrors.loaded(copy.finish().expect("an empty table"));
    db.settle("901:901:");
    db.shared.mirrors.stand(NOW);
    let [info] = &db.shared.mirrors.info()[..] else { panic!("one mirror") };
    assert!(matches!(info.state, State::Failed { .. }), "{:?}", info.state);
}

/// Columns that were named, and are not any more, go: whoever looks at a mirror while its wish is
/// replaced, in whatever order the old one ends and the new one comes.
#[test]
fn a_mirror_whose_columns_are_named_anew_is_made_anew() {
    for old_lives in [false, true] {
        let mut db = Followed::new();
        let mut old = Some(db.wish(ALONE, &["id", "n"], true));
        db.arrange();
        assert!(db.make());
        assert_eq!(db.mirrors(), ["id n"]);
        if !old_lives {
            old.take();
        }
        let _new = db.wish(ALONE, &["id"], true);
        db.arrange();
        if old_lives {
            assert!(!db.make(), "both are wanted");
            old.take();
            db.arrange();
        }
        // The old one answers until the new one does.
        assert_eq!(db.mirrors(), ["id n", "id, waits"]);
        assert!(db.make());
        assert_eq!(db.mirrors(), ["id"]);
        db.arrange();
        assert!(!db.make(), "once");
    }
}

#[test]
fn columns_that_statements_want_of_a_mirror_that_was_named_stay() {
    let mut db = Followed::new();
    let _named = db.wish(ALONE, &["id"], true);
    db.arrange();
    assert!(db.make());
    let statement = db.wish(ALONE, &["id", "n"], false);
    db.arrange();
    assert!(db.make());
    drop(statement);
    db.arrange();
    assert!(!db.make(), "it may come again");
    assert_eq!(db.mirrors(), ["id n"]);
}

#[test]
fn what_changes_a_partition_changes_the_table_above() {
    let mut db = Followed::new();
    let (root, other) = (db.by_id(ROOT, "1"), db.by_id(ROOT, "2"));
    let (leaf, alone) = (db.by_id(LEAF, "1"), db.by_id(ALONE, "1"));
    db.applier.begin(900);
    db.insert(900, LEAF, "1");
    assert!(db.holds(&root), "nothing counts before the commit");
    db.commit(900);
    assert!(!db.holds(&root) && !db.holds(&leaf));
    assert!(db.holds(&other) && db.holds(&alone));
    let root = db.by_id(ROOT, "1");
    db.applier.begin(901);
    db.applier.truncate(901, &mut [LEAF].into_iter());
    db.commit(901);
    assert!(!db.holds(&root) && !db.holds(&other) && db.holds(&alone));
}

#[test]
fn a_partition_that_nobody_knows_may_belong_to_any_table_with_partitions() {
    let mut db = Followed::new();
    let (root, leaf) = (db.by_id(ROOT, "1"), db.by_id(LEAF, "1"));
    let alone = db.by_id(ALONE, "1");
    db.applier.begin(900);
    db.insert(900, NEW, "5");
    db.commit(900);
    assert!(!db.holds(&root) && !db.holds(&leaf) && db.holds(&alone));
}

#[test]
fn tables_that_are_published_or_no_longer_are_changed_as_a_whole() {
    let mut db = Followed::new();
    db.applier.streaming(800);
    db.insert(800, NEW, "7");
    let (root, alone) = (db.by_id(ROOT, "7"), db.by_id(ALONE, "1"));
    let before = db.shared.definitions();
    let now = [table(ROOT, &[]), table(LEAF, &[ROOT]), table(NEW, &[ROOT])];
    db.applier.published(&now);
    assert!(db.shared.definitions() > before);
    assert!(!db.holds(&root) && !db.holds(&alone));
    assert!(!db.shared.published().contains_key(&ALONE));
    let root = db.by_id(ROOT, "7");
    db.commit(800);
    assert!(!db.holds(&root), "the row came when it was not yet known where it belongs");
    let root = db.by_id(ROOT, "7");
    db.applier.begin(900);
    db.insert(900, NEW, "7");
    db.commit(900);
    assert!(!db.holds(&root), "it is one of this table's now");
}

#[test]
fn another_description_changes_the_table_at_once_and_at_the_commit() {
    let mut db = Followed::new();
    let (first, other) = (db.by_id(ALONE, "1"), db.by_id(LEAF, "1"));
    let described = relation(ALONE);
    db.applier.relation(&described);
    assert!(db.holds(&first), "it is the same");
    db.applier.begin(900);
    let mut described = relation(ALONE);
    described.columns[0].type_oid = oid::NUMERIC;
    db.applier.relation(&described);
    assert!(!db.holds(&first));
    let second = db.by_id(ALONE, "1");
    db.commit(900);
    assert!(!db.holds(&second) && db.holds(&other));
    // The signature's column is of another type now: what its values are can't be told.
    let third = db.by_id(ALONE, "1");
    db.applier.begin(901);
    db.insert(901, ALONE, "2");
    db.commit(901);
    assert!(!db.holds(&third));
}

#[test]
fn an_undone_part_of_a_streamed_transaction_is_forgotten() {
    let mut db = Followed::new();
    let answers = ["1", "2", "3", "4"].map(|id| db.by_id(ALONE, id));
    db.applier.streaming(800);
    db.insert(800, ALONE, "1");
    db.insert(801, ALONE, "2");
    db.applier.streaming(810);
    db.insert(810, ALONE, "4");
    db.applier.streaming(800);
    db.insert(802, ALONE, "3");
    db.applier.abort(800, 801);
    db.applier.abort(810, 810);
    assert!(answers.iter().all(|answer| db.holds(answer)));
    db.commit(800);
    assert_eq!(answers.each_ref().map(|answer| db.holds(answer)), [false, true, false, true]);
}

#[test]
fn with_too_many_tags_whole_tables_are_raised() {
    let mut db = Followed::new();
    let (absent, leaf) = (db.by_id(ALONE, "-1"), db.by_id(LEAF, "-1"));
    db.applier.begin(900);
    for id in 0..TAGS_OF_ONE_MAX * 9 / 8 {
        db.insert(900, ALONE, &id.to_string());
    }
    db.commit(900);
    assert!(!db.holds(&absent) && db.holds(&leaf));
    let absent = db.by_id(ALONE, "-1");
    db.applier.begin(901);
    db.insert(901, ALONE, "1");
    db.commit(901);
    assert!(db.holds(&absent), "the next one is as precise as ever");
}

#[test]
fn all_open_transactions_together_are_bounded() {
    let mut db = Followed::new();
    let absent = ["-1", "-2", "-3"].map(|id| db.by_id(ALONE, id));
    let each = TAGS_OF_ONE_MAX - 100;
    let many = TAGS_OF_ALL_MAX / each + 1;
    for part in 0..many {
        db.applier.streaming(800 + part as u32);
        for id in 0..each {
            db.insert(800 + part as u32, ALONE, &(part * each + id).to_string());
        }
    }
    db.commit(800);
    // A tag may be shared with one of so many.
    let kept = absent.iter().filter(|answer| db.holds(answer)).count();
    assert!(kept > 0, "the first one is known by its tags");
    db.commit(800 + many as u32 - 1);
    assert!(!absent.iter().any(|answer| db.holds(answer)), "the last one by its tables only");
}

#[test]
fn parts_beyond_the_limit_count_even_when_they_are_undone() {
    let mut db = Followed::new();
    let (one, late, absent) = (db.by_id(ALONE, "1"), db.by_id(ALONE, "-7"), db.by_id(ALONE, "-1"));
    db.applier.streaming(800);
    for sub in 0..SUBTRANSACTIONS_MAX as u32 + 10 {
        db.insert(1000 + sub, ALONE, if sub == 0 { "1" } else { "2" });
    }
    let sub = 1000 + SUBTRANSACTIONS_MAX as u32 + 10;
    db.insert(sub, ALONE, "-7");
    db.applier.abort(800, 1000);
    db.applier.abort(800, sub);
    db.commit(800);
    assert!(db.holds(&one) && db.holds(&absent));
    assert!(!db.holds(&late));
}

#[test]
fn a_change_of_nobodys_ends_the_stream() {
    let mut db = Followed::new();
    assert!(db.shared.is_following());
    db.insert(900, ALONE, "1");
    assert!(!db.shared.is_following());
    let why = db.shared.why_lost().expect("a reason");
    assert!(why.contains("outside of a transaction"), "{why}");
}

#[test]
fn what_is_redefined_or_begins_anew_raises_all() {
    let mut db = Followed::new();
    let (one, other) = (db.by_id(ALONE, "1"), db.by_id(LEAF, "1"));
    db.applier.redefined();
    assert!(!db.holds(&one) && !db.holds(&other));
    let one = db.by_id(ALONE, "1");
    db.applier.streaming(800);
    db.insert(800, ALONE, "1");
    db.applier.lost("the server has gone");
    assert!(db.holds(&one), "it is just not served");
    db.applier.began(3, &tables());
    assert!(!db.holds(&one));
    assert_eq!(db.shared.applied().lsn, 3, "positions may be those of another server");
    let one = db.by_id(ALONE, "1");
    db.lsn = 3;
    db.applier.begin(901);
    db.commit(901);
    assert!(db.holds(&one), "what the old stream told of 800 is forgotten");
}

#[test]
fn a_signature_that_comes_late_misses_nothing() {
    let mut db = Followed::new();
    db.applier.streaming(800);
    db.insert(800, ALONE, "1");
    let late = db.answer(ALONE, "name", Kind::Bytes, "x");
    let other = db.by_id(LEAF, "1");
    db.commit(800);
    assert!(!db.holds(&late), "the row was looked at before");
    assert!(db.holds(&other));
}
