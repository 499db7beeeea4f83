//! Which tables can be told: random catalogues against what must always hold.

use std::collections::{BTreeMap, BTreeSet};

use backend::replication::catalogue::{Publication, Server, Table};
use backend::replication::plan::{Kind, Look, Unfit, BATCH_MAX};
use proptest::prelude::*;

pub const PUBLICATION: u32 = 500;

pub fn server() -> Server {
    Server {
        version: 150_000,
        wal_level: "logical".to_owned(),
        user: "app".to_owned(),
        database: "app".to_owned(),
        replication: true,
        may_create: true,
        senders_max: 10,
        slots_max: 10,
        wal_block: 8192,
        standby: false,
    }
}

pub fn publication() -> Publication {
    Publication { oid: PUBLICATION, whole: true, owned: true, ..Publication::default() }
}

/// An ordinary table with a primary key, which the role owns.
pub fn keyed(oid: u32) -> Table {
    Table {
        oid,
        schema: "public".to_owned(),
        name: format!("t{oid}"),
        kind: b'r',
        persistence: b'p',
        identity: b'd',
        owned: true,
        primary: true,
        ..Table::default()
    }
}

fn root(oid: u32) -> Table {
    Table { kind: b'p', ..keyed(oid) }
}

fn part(oid: u32) -> Table {
    Table { partition: true, ..keyed(oid) }
}

/// The database as PostgreSQL would have it behind the changes that are wanted.
#[derive(Debug)]
struct World {
    publication: Option<Publication>,
    tables: BTreeMap<u32, Table>,
    edges: Vec<(u32, u32)>,
}

impl World {
    fn new(tables: &[Table], edges: &[(u32, u32)]) -> World {
        let tables = tables.iter().map(|table| (table.oid, table.clone())).collect();
        World { publication: Some(publication()), tables, edges: edges.to_vec() }
    }

    fn look(&mut self) -> Look {
        let all = self.publication.as_ref().is_some_and(|publication| publication.all);
        let named: BTreeSet<u32> =
            self.tables.values().filter(|t| t.named || t.by_schema || all).map(|t| t.oid).collect();
        let oids: Vec<u32> = self.tables.keys().copied().collect();
        for oid in oids {
            let above = self.roots(oid);
            let told = named.contains(&oid) || above.iter().any(|root| named.contains(root));
            let table = self.tables.get_mut(&oid).expect("a table");
            table.told = told && table.kind == b'r' && table.persistence == b'p';
        }
        let tables = self.tables.values().cloned().collect();
        Look::new(server(), "pondage", self.publication.clone(), tables, &self.edges)
    }

    /// The partitioned tables above.
    fn roots(&self, oid: u32) -> Vec<u32> {
        let mut above = Vec::new();
        let mut at = oid;
        while self.tables[&at].partition {
            let Some((_, parent)) = self.edges.iter().find(|(child, _)| *child == at) else {
                break;
            };
            above.push(*parent);
            at = *parent;
        }
        above
    }

    /// Makes every change that the look asks for; gives whether there was any.
    fn change(&mut self) -> bool {
        let look = self.look();
        let changes = look.changes().expect("changes");
        for change in &changes {
            assert!(change.tables.len() <= BATCH_MAX);
            assert!(!look.sql(change).is_empty());
            match change.kind {
                Kind::Create => {
                    assert!(self.publication.is_none());
                    self.publication = Some(publication());
                }
                Kind::Whole => self.publication.as_mut().expect("one").whole = true,
                Kind::Partitions => self.publication.as_mut().expect("one").via_root = false,
                Kind::Add | Kind::Drop => {
                    for oid in &change.tables {
                        let table = self.tables.get_mut(oid).expect("a table");
                        assert_ne!(table.named, change.kind == Kind::Add, "{oid}");
                        assert!(table.owned || change.kind == Kind::Drop);
                        table.named = change.kind == Kind::Add;
                    }
                }
            }
        }
        !changes.is_empty()
    }

    /// Of the ones that are named, directly or by a root, whose UPDATEs would fail.
    fn harmed(&self) -> Vec<u32> {
        let named = |oid: &u32| self.tables[oid].named;
        self.tables
            .values()
            .filter(|table| table.kind != b'f' && table.persistence == b'p')
            .filter(|table| named(&table.oid) || self.roots(table.oid).iter().any(named))
            .filter(|table| match table.identity {
                b'd' => !table.primary,
                b'i' => !table.marked,
                b'n' => true,
                _ => false,
            })
            .map(|table| table.oid)
            .collect()
    }
}

fn told(world: &mut World) -> Vec<u32> {
    world.look().published().iter().map(|table| table.oid).collect()
}

#[test]
fn a_partitioned_table_is_named_itself_only_with_a_key() {
    let mut world = World::new(&[root(1), part(2), part(3)], &[(2, 1), (3, 1)]);
    assert!(world.change() && !world.change());
    assert!(world.tables[&1].named && !world.tables[&2].named);
    assert_eq!(told(&mut world), [1, 2, 3]);
    assert_eq!(world.look().published()[1].ancestors, [1]);
    // A partition that nobody should publish takes the root with it, not the other partition.
    world.tables.get_mut(&3).expect("a partition").identity = b'n';
    assert!(world.change() && !world.change());
    assert!(!world.tables[&1].named && world.tables[&2].named && !world.tables[&3].named);
    assert_eq!(told(&mut world), [2]);
    // FULL is no promise for partitions that come later.
    let full = Table { identity: b'f', primary: false, ..root(1) };
    let mut world = World::new(&[full, part(2)], &[(2, 1)]);
    world.change();
    assert_eq!(told(&mut world), [2]);
    let standing = world.look().standing();
    assert_eq!(standing[0].told, Err(Unfit::NoKeyForPartitions));
}

#[test]
fn a_parent_is_told_when_its_children_are() {
    let bare = Table { primary: false, ..keyed(2) };
    let mut world = World::new(&[keyed(1), bare.clone(), keyed(3)], &[(2, 1), (3, 1)]);
    world.change();
    assert_eq!(told(&mut world), [3]);
    world.tables.get_mut(&2).expect("a child").primary = true;
    world.change();
    assert_eq!(told(&mut world), [1, 2, 3]);
}

#[test]
fn what_only_another_role_can_change_is_said() {
    let mut world = World::new(&[keyed(1), Table { owned: false, ..keyed(2) }], &[]);
    world.change();
    assert_eq!(told(&mut world), [1]);
    let Err(Unfit::Foreigner { sql }) = &world.look().standing()[1].told else { panic!() };
    assert_eq!(sql, "ALTER PUBLICATION \"pondage\" ADD TABLE ONLY \"public\".\"t2\";");
    // Another role's publication is used as it is.
    let theirs = Publication { owned: false, ..publication() };
    let named = Table { named: true, ..keyed(1) };
    let mut world = World::new(&[named, keyed(2)], &[]);
    world.publication = Some(theirs.clone());
    assert!(!world.change());
    assert_eq!(told(&mut world), [1]);
    for (publication, what) in [
        (Publication { whole: false, ..theirs.clone() }, "leaves kinds of changes out"),
        (Publication { via_root: true, ..theirs }, "behind their root"),
    ] {
        world.publication = Some(publication);
        let missing = world.look().changes().expect_err("refused");
        assert!(missing.what.contains(what) && missing.sql.len() == 1, "{missing:?}");
    }
}

#[test]
fn a_publication_with_filters_tells_too_little() {
    let narrowed = Table { named: true, narrowed: true, ..keyed(1) };
    let narrow_root = Table { named: true, narrowed: true, ..root(2) };
    let mut world = World::new(&[narrowed, narrow_root, part(3)], &[(3, 2)]);
    assert!(!world.change(), "somebody meant it so");
    assert_eq!(told(&mut world), []);
}

#[test]
fn generated_columns_of_an_identity_are_not_told() {
    let mut world = World::new(&[Table { generated_key: true, ..keyed(1) }], &[]);
    assert!(!world.change());
    let full = Table { identity: b'f', generated: true, ..keyed(1) };
    let look = |version| {
        let server = Server { version, ..server() };
        let look = Look::new(server, "p", Some(publication()), vec![full.clone()], &[]);
        look.changes().expect("changes").len()
    };
    assert_eq!((look(170_000), look(180_000)), (1, 0));
}

#[test]
fn many_tables_are_added_in_batches() {
    let tables: Vec<Table> = (1..=1000).map(keyed).collect();
    let mut world = World::new(&tables, &[]);
    world.publication = None;
    assert_eq!(world.look().changes().expect("changes").len(), 5);
    assert!(world.change() && !world.change());
    assert_eq!(told(&mut world).len(), 1000);
}

fn any_table(oid: u32) -> impl Strategy<Value = Table> {
    let flags = prop::array::uniform6(prop::bool::weighted(0.3));
    let identity = prop_oneof![4 => Just(b'd'), 1 => Just(b'n'), 1 => Just(b'f'), 1 => Just(b'i')];
    let kind = prop_oneof![5 => Just(b'r'), 2 => Just(b'p'), 1 => Just(b'f')];
    (flags, identity, kind).prop_map(move |(flags, identity, kind)| Table {
        kind,
        identity,
        persistence: if flags[0] && flags[1] { b'u' } else { b'p' },
        owned: !(flags[1] && flags[2]),
        primary: !flags[2],
        marked: flags[3],
        named: flags[4] && kind != b'f',
        generated_key: flags[5] && flags[0],
        ..keyed(oid)
    })
}

/// Tables, each perhaps below an earlier one.
fn any_world() -> impl Strategy<Value = World> {
    let tables: Vec<_> = (1..=12u32).map(any_table).collect();
    let parents = prop::collection::vec(prop::option::of(any::<prop::sample::Index>()), 12);
    (tables, parents).prop_map(|(mut tables, parents)| {
        let mut edges = Vec::new();
        for at in 1..tables.len() {
            let Some(parent) = parents[at].map(|parent| parent.index(at)) else { continue };
            match tables[parent].kind {
                b'p' => tables[at].partition = true,
                // Only an ordinary table has children that are ordinary.
                b'r' if tables[at].kind == b'r' => {}
                _ => continue,
            }
            edges.push((tables[at].oid, tables[parent].oid));
        }
        World::new(&tables, &edges)
    })
}

proptest! {
    #[test]
    fn changes_come_to_an_end_and_harm_nobody(mut world in any_world()) {
        let mut rounds = 0;
        while world.change() {
            rounds += 1;
            prop_assert!(rounds < 4, "it goes on and on");
        }
        prop_assert_eq!(world.harmed(), Vec::<u32>::new());
        let told = world.look().published();
        for table in &told {
            let of = &world.tables[&table.oid];
            prop_assert!(of.kind != b'f' && of.persistence == b'p');
            prop_assert!(of.identity == b'f' || !of.generated_key);
            prop_assert!(of.told || of.kind == b'p');
            // Whatever is below is told as well.
            for (child, parent) in &world.edges {
                if *parent == table.oid {
                    let below = &world.tables[child];
                    prop_assert!(below.told || below.kind == b'p', "{child} below {parent}");
                }
            }
        }
    }
}
