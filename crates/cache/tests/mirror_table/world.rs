//! A table and the map that it has to be like.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use cache::mirror::class::{Class, Collation};
use cache::mirror::definition::{Column, Definition};
use cache::mirror::key::put_key;
use cache::mirror::ordered::{has_sums, Ordered, Range};
use cache::mirror::stored::store;
use cache::mirror::table::{Field, Table};

use crate::random::Random;

type Row = Vec<Option<Vec<u8>>>;

pub struct World {
    pub table: Table,
    definition: Arc<Definition>,
    /// By the identity's key.
    rows: BTreeMap<Vec<u8>, Row>,
}

fn fields(row: &Row) -> Vec<Option<&[u8]>> {
    row.iter().map(Option::as_deref).collect()
}

impl World {
    pub fn new(columns: &[(Class, bool)], identity: &[u16]) -> World {
        let column = |(at, (class, not_null)): (usize, &(Class, bool))| Column {
            name: format!("c{at}"),
            attnum: at as i16 + 1,
            type_oid: 0,
            type_modifier: -1,
            class: *class,
            collation: Collation::Ordered,
            not_null: *not_null,
            labels: [].into(),
        };
        let definition = Arc::new(Definition {
            oid: 1,
            filenode: 1,
            schema: "public".to_owned(),
            name: "t".to_owned(),
            columns: columns.iter().enumerate().map(column).collect(),
            identity: identity.to_vec(),
        });
        World { table: Table::new(definition.clone()), definition, rows: BTreeMap::new() }
    }

    /// Columns whose sums can be known.
    pub fn sums(&self) -> Vec<u16> {
        let columns = (0..).zip(&self.definition.columns);
        columns.filter(|(_, column)| has_sums(column.class)).map(|(at, _)| at).collect()
    }

    fn key(&self, row: &Row) -> Vec<u8> {
        let mut key = Vec::new();
        self.table.put_identity(&fields(row), &mut key);
        key
    }

    fn value(&self, at: usize, random: &mut Random) -> Option<Vec<u8>> {
        let column = &self.definition.columns[at];
        if !column.not_null && random.one_in(5) {
            return None;
        }
        Some(value(column, random))
    }

    fn row(&self, random: &mut Random) -> Row {
        (0..self.definition.columns.len()).map(|at| self.value(at, random)).collect()
    }

    pub fn load(&mut self, count: usize, random: &mut Random) {
        for _ in 0..count {
            let row = self.row(random);
            let key = self.key(&row);
            if !self.rows.contains_key(&key) {
                self.table.load(&fields(&row)).expect("a row");
                self.rows.insert(key, row);
            }
        }
        self.table.finish().expect("identities differ");
    }

    pub fn change(&mut self, random: &mut Random) {
        match random.below(400) {
            0..140 => self.insert(random),
            140..280 => drop(self.delete(random)),
            _ => self.update(random),
        }
    }

    pub fn insert_sometimes(&mut self, random: &mut Random) {
        if random.one_in(10) {
            self.insert(random);
        }
    }

    fn insert(&mut self, random: &mut Random) {
        let row = self.row(random);
        let key = self.key(&row);
        let new = !self.rows.contains_key(&key);
        assert_eq!(self.table.insert(&fields(&row)).is_ok(), new);
        if new {
            self.rows.insert(key, row);
        }
    }

    fn any(&self, random: &mut Random) -> Option<Vec<u8>> {
        let row = self.row(random);
        let key = self.key(&row);
        let behind = self.rows.range(key..).next().or_else(|| self.rows.iter().next());
        behind.map(|(key, _)| key.clone())
    }

    /// False: there are no rows.
    pub fn delete(&mut self, random: &mut Random) -> bool {
        let Some(key) = self.any(random) else { return false };
        self.table.delete(&key).expect("it is there");
        self.rows.remove(&key);
        assert!(self.table.delete(&key).is_err());
        true
    }

    fn update(&mut self, random: &mut Random) {
        let Some(key) = self.any(random) else { return };
        let mut row = self.rows[&key].clone();
        let (kept, often) = (random.one_in(2), 1 + random.below(4));
        let mut changes = Vec::new();
        for (at, old) in row.iter_mut().enumerate() {
            let identity = self.definition.identity.contains(&(at as u16));
            if (kept && identity) || !random.one_in(often) {
                changes.push(None);
            } else {
                *old = self.value(at, random);
                changes.push(Some(old.clone()));
            }
        }
        let changes: Vec<Field<'_>> = changes
            .iter()
            .map(|change| match change {
                None => Field::Unchanged,
                Some(None) => Field::Null,
                Some(Some(value)) => Field::Value(value),
            })
            .collect();
        let new = self.key(&row);
        let free = new == key || !self.rows.contains_key(&new);
        assert_eq!(self.table.update(&key, &changes).is_ok(), free);
        if free {
            self.rows.remove(&key);
            self.rows.insert(new, row);
        }
    }

    pub fn truncate(&mut self) {
        self.table.truncate();
        self.rows.clear();
    }

    pub fn refusals(&mut self) {
        let row = self.rows.values().next().expect("rows").clone();
        let key = self.key(&row);
        let one = Some(&[0, 0, 0, 1][..]);
        let table = &mut self.table;
        assert!(table.insert(&fields(&row)).is_err(), "it is there");
        assert!(table.insert(&[one]).is_err(), "too few columns");
        assert!(table.insert(&[None, one]).is_err(), "no identity");
        assert!(table.insert(&[Some(&[0xff; 4]), None]).is_err(), "NULL");
        assert!(table.insert(&[Some(&[0xff; 4]), Some(&[0; 2])]).is_err(), "another width");
        assert!(table.update(&key, &[Field::Null, Field::Unchanged]).is_err(), "no identity");
        assert!(table.update(&key, &[Field::Unchanged, Field::Null]).is_err(), "NULL");
        assert!(table.update(&key, &[Field::Unchanged]).is_err(), "too few columns");
        assert!(table.update(&key, &[Field::Unchanged; 3]).is_err(), "too many columns");
    }

    /// Everything that can be asked is as in the map.
    pub fn check(&self, random: &mut Random) {
        assert_eq!(self.table.len(), self.rows.len() as u64);
        for (key, row) in &self.rows {
            let id = self.table.find(key).expect("it is there");
            self.is_row(id, row);
        }
        self.check_index(self.table.identity_index(), &self.definition.identity, random);
        for column in 0..self.definition.columns.len() as u16 {
            if let Some(index) = self.table.index(column) {
                self.check_index(index, &[column], random);
            }
        }
    }

    fn is_row(&self, id: u32, row: &Row) {
        for (at, value) in row.iter().enumerate() {
            assert_eq!(self.table.field(id, at as u16), value.as_deref());
        }
    }

    fn key_of(&self, columns: &[u16], row: &Row) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        for at in columns {
            let at = usize::from(*at);
            put_key(self.definition.columns[at].class, row[at].as_deref()?, &mut key);
        }
        Some(key)
    }

    fn check_index(&self, index: &Ordered, columns: &[u16], random: &mut Random) {
        let mut keys: Vec<(Vec<u8>, &Row)> = Vec::new();
        let mut nulls = Vec::new();
        for (identity, row) in &self.rows {
            match self.key_of(columns, row) {
                Some(key) => keys.push((key, row)),
                None => nulls.extend(self.table.find(identity)),
            }
        }
        keys.sort_by(|one, other| one.0.cmp(&other.0));
        nulls.sort_unstable();
        assert_eq!(index.nulls().collect::<Vec<_>>(), nulls);
        assert_eq!((index.len(), index.null_count()), (keys.len() as u64, nulls.len() as u64));
        self.check_range(index, &keys, Bound::Unbounded, Bound::Unbounded, columns);
        for _ in 0..20 {
            let (low, high) = (self.bound(columns, random), self.bound(columns, random));
            self.check_range(index, &keys, as_slice(&low), as_slice(&high), columns);
        }
    }

    fn bound(&self, columns: &[u16], random: &mut Random) -> Bound<Vec<u8>> {
        let known = self.any(random).filter(|_| random.one_in(2));
        let row = known.map_or_else(|| self.row(random), |key| self.rows[&key].clone());
        match (self.key_of(columns, &row), random.below(3)) {
            (Some(key), 0) => Bound::Included(key),
            (Some(key), 1) => Bound::Excluded(key),
            _ => Bound::Unbounded,
        }
    }

    fn check_range(
        &self,
        index: &Ordered,
        keys: &[(Vec<u8>, &Row)],
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        columns: &[u16],
    ) {
        let from = match low {
            Bound::Unbounded => 0,
            Bound::Included(low) => keys.partition_point(|(key, _)| &key[..] < low),
            Bound::Excluded(low) => keys.partition_point(|(key, _)| &key[..] <= low),
        };
        let to = match high {
            Bound::Unbounded => keys.len(),
            Bound::Included(high) => keys.partition_point(|(key, _)| &key[..] <= high),
            Bound::Excluded(high) => keys.partition_point(|(key, _)| &key[..] < high),
        };
        let expected = &keys[from.min(to)..to];
        let (rows, range) = (self.table.rows(), Range { low, high });
        assert_eq!(index.count(rows, &range), expected.len() as u64);
        let ids: Vec<u32> = index.ids(rows, &range, false).collect();
        let mut backwards: Vec<u32> = index.ids(rows, &range, true).collect();
        backwards.reverse();
        assert_eq!(ids, backwards);
        assert_eq!(ids.len(), expected.len());
        for (id, (key, _)) in ids.iter().zip(expected) {
            let row = (0..self.definition.columns.len() as u16)
                .map(|at| self.table.field(*id, at).map(<[u8]>::to_vec))
                .collect();
            assert_eq!(self.key_of(columns, &row).as_ref(), Some(key));
        }
        let tied =
            |pair: &[u32], at: usize| expected[at].0 != expected[at + 1].0 || pair[0] < pair[1];
        assert!(ids.windows(2).enumerate().all(|(at, pair)| tied(pair, at)));
        for column in self.sums().into_iter().filter(|column| index.knows_sum(*column)) {
            let value = |row: &&Row| row[usize::from(column)].as_deref().map(int);
            let values: Vec<i128> = expected.iter().filter_map(|(_, row)| value(row)).collect();
            let sum = (values.iter().sum(), values.len() as u64);
            assert_eq!(index.sum(rows, &range, column), Some(sum));
        }
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
    }
}

fn int(stored: &[u8]) -> i128 {
    let negative = stored[0] & 0x80 != 0;
    stored.iter().fold(if negative { -1 } else { 0 }, |value, byte| value << 8 | i128::from(*byte))
}

fn value(column: &Column, random: &mut Random) -> Vec<u8> {
    let number = random.next() as i64 % [10, 10_000, i64::MAX][random.below(3)];
    let most = *random.of(&[3, 20, 400]);
    let length = random.below(most);
    let letters = |random: &mut Random| -> String {
        let start = *random.of(&["", "the same beginning ", "z"]);
        start.chars().chain((0..length).map(|_| *random.of(&['a', 'b', 'é']))).collect()
    };
    let text = match column.class {
        Class::Int2 => return (number as i16).to_be_bytes().to_vec(),
        Class::Int4 => return (number as i32).to_be_bytes().to_vec(),
        Class::Int8 => return number.to_be_bytes().to_vec(),
        Class::Bool => return vec![random.below(2) as u8],
        Class::Uuid => {
            let half = *random.of(&[0, u64::MAX, 7]);
            let rest = *random.of(&[0, u64::MAX, random.0]);
            return [half.to_be_bytes(), rest.to_be_bytes()].concat();
        }
        Class::Bytea => return (0..length).map(|_| *random.of(&[0, 1, 255])).collect(),
        Class::Interval | Class::TimeTz => {
            let width = column.class.width().unwrap_or_default();
            return (0..width).map(|_| *random.of(&[0, 1, 2])).collect();
        }
        Class::Text => return letters(random).into_bytes(),
        Class::Padded => {
            let blanks = " ".repeat(random.below(5));
            return (letters(random) + &blanks).into_bytes();
        }
        Class::Numeric => format!("{}.{}", number, "50".repeat(random.below(4)) + "0"),
        class => unreachable!("no values of {class:?}"),
    };
    let mut stored = Vec::new();
    assert!(store(column, text.as_bytes(), &mut stored), "{text}");
    stored
}
