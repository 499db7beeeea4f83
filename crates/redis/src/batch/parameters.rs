//! A batch as the parameters of `redis.apply` or `redis.put_strings`, in the order of
//! [`crate::statements::APPLY`].
//!
//! An array without a value in it is NULL: it costs nothing to send and to read, and `unnest` of
//! several arrays makes NULLs of it.

use backend::calls::{oid, Array, Calls, Params, Refused};

use super::elements::{position, score, Element, Table};
use super::{Batch, Expect, Key, KeyRow, Span};
use crate::keyspace::NEVER;
use crate::name::{overlong, stored};
use crate::statements::{APPLY, PUT_STRINGS};
use crate::value::Kind;

/// Latest expiry that is told apart, in milliseconds since 1970: what PostgreSQL's intervals hold,
/// rounded down; in the year 287,168.
const LATEST: i64 = 9_000_000_000_000_000;

/// The number of a batch in one of its shards, and by which ownership.
#[derive(Debug, Clone, Copy)]
pub struct Fence {
    pub shard: u8,
    pub epoch: i64,
    pub seq: i64,
    /// Up to here the shard's journal is in this batch.
    pub folded: Option<i64>,
}

impl Batch {
    /// Appends the call, without a Sync. Every shard that a put names needs a fence.
    ///
    /// # Errors
    /// As [`Calls::call`].
    pub fn call(&self, calls: &mut Calls, tag: u64, fences: &[Fence]) -> Result<(), Refused> {
        if let [fence @ Fence { folded: None, .. }] = fences {
            if self.is_plain() {
                let write = |params: &mut Params<'_>| self.write_plain(params, fence);
                return calls.call(tag, PUT_STRINGS.name, write);
            }
        }
        calls.call(tag, APPLY.name, |params| self.write(params, fences))
    }

    fn write_plain(&self, params: &mut Params<'_>, fence: &Fence) {
        params.int2(i16::from(fence.shard));
        params.int8(fence.epoch);
        params.int8(fence.seq);
        params.int2(self.keys.first().map_or(0, |key| key.db as i16));
        let mut array = params.array(oid::BYTEA);
        self.keys.iter().for_each(|key| array.bytea(key.key.of(&self.bytes)));
        drop(array);
        let mut array = params.array(oid::BYTEA);
        let vals = self.keys.iter().filter_map(|key| key.row.as_ref());
        vals.for_each(|row| array.bytea(row.val.of(&self.bytes)));
    }

    fn write(&self, params: &mut Params<'_>, fences: &[Fence]) {
        let fenced = |of: fn(&Fence) -> Option<i64>| fences.iter().map(of);
        int2s(params, fences.iter().map(|fence| i16::from(fence.shard)));
        int8s(params, fenced(|fence| Some(fence.epoch)));
        int8s(params, fenced(|fence| Some(fence.seq)));
        int8s(params, fenced(|fence| fence.folded));
        int2s(params, self.flushes.iter().map(|db| *db as i16));
        self.write_puts(params, fences);

        let deletes = || self.keys.iter().filter(|key| key.row.is_none());
        int2s(params, deletes().map(|key| key.db as i16));
        self.names(params, deletes().map(|key| key.key));
        int8s(params, deletes().map(|key| key.expect.parameter()));
        int2s(params, self.checks.iter().map(|check| check.db as i16));
        self.names(params, self.checks.iter().map(|check| check.key));
        int8s(params, self.checks.iter().map(|check| check.expect.parameter()));

        self.write_named(params, Table::Hash, |params, rows| self.values(params, rows));
        self.write_named(params, Table::Set, |_, _| {});
        self.write_named(params, Table::Zset, |params, rows| {
            let scores = rows.iter().filter_map(|row| Some(score(row.value?.of(&self.bytes))));
            some(params, oid::FLOAT8, scores.map(Some), |array, score| array.float8(score));
        });
        self.write_lists(params);
        self.write_streams(params);
        self.write_named(params, Table::Group, |params, rows| self.values(params, rows));
        int8s(params, self.orphans.iter().map(|(kid, _)| Some(*kid)));
        chars(params, self.orphans.iter().map(|(_, kind)| kind.letter()));
    }

    fn write_puts(&self, params: &mut Params<'_>, fences: &[Fence]) {
        let puts = || self.keys.iter().filter_map(|key| Some((key, key.row.as_ref()?)));
        let numbers = |params: &mut Params<'_>, of: fn(&KeyRow) -> i64| {
            int8s(params, puts().map(|(_, row)| Some(of(row)).filter(|n| *n != 0)));
        };
        int2s(params, puts().map(|(key, _)| key.db as i16));
        self.names(params, puts().map(|(key, _)| key.key));
        self.overlong(params, puts().map(|(key, _)| key.key));
        chars(params, puts().map(|(_, row)| row.kind.letter()));
        let vals = puts().map(|(_, row)| row);
        let vals = vals.map(|row| (row.kind == Kind::Str || row.val.len > 0).then_some(row.val));
        byteas(params, vals.map(|val| val.map(|val| val.of(&self.bytes))));
        numbers(params, |row| row.kid);
        numbers(params, |row| row.n);
        numbers(params, |row| row.head);
        numbers(params, |row| row.tail);
        let expires = |row: &KeyRow| (row.expires != NEVER).then(|| row.expires.clamp(0, LATEST));
        int8s(params, puts().map(|(_, row)| expires(row)));
        int8s(params, puts().map(|(_, row)| Some(version(fences, row.shard))));
        int8s(params, puts().map(|(key, _)| key.expect.parameter()));
        let count = |of: fn(&Key) -> bool| puts().filter(|(key, _)| of(key)).count() as i32;
        params.int4(count(|key| key.expect == Expect::Anything));
        params.int4(count(|key| key.expect == Expect::Absent));
        params.int4(count(|key| matches!(key.expect, Expect::Version(_))));
    }

    /// A table whose rows have names: what is put with its `rest`, then what is deleted.
    fn write_named(
        &self,
        params: &mut Params<'_>,
        table: Table,
        rest: impl FnOnce(&mut Params<'_>, &[Element]),
    ) {
        let rows = &self.elements[table as usize].rows;
        let put = || rows.iter().filter(|row| row.value.is_some());
        let deleted = || rows.iter().filter(|row| row.value.is_none());
        int8s(params, put().map(|row| Some(row.kid)));
        self.names(params, put().map(|row| row.name));
        self.overlong(params, put().map(|row| row.name));
        rest(params, rows);
        int8s(params, deleted().map(|row| Some(row.kid)));
        self.names(params, deleted().map(|row| row.name));
    }

    fn write_lists(&self, params: &mut Params<'_>) {
        let rows = &self.elements[Table::List as usize].rows;
        let put = || rows.iter().filter(|row| row.value.is_some());
        int8s(params, put().map(|row| Some(row.kid)));
        int8s(params, put().map(|row| Some(position(row.name.of(&self.bytes)))));
        self.values(params, rows);
        let trims = &self.trims.all;
        int8s(params, trims.iter().map(|(kid, ..)| Some(*kid)));
        int8s(params, trims.iter().map(|(_, first, _)| Some(*first)));
        int8s(params, trims.iter().map(|(.., last)| Some(*last)));
    }

    fn write_streams(&self, params: &mut Params<'_>) {
        let rows = &self.elements[Table::Stream as usize].rows;
        let ids = |params: &mut Params<'_>, put: bool| {
            let chosen = || rows.iter().filter(move |row| row.value.is_some() == put);
            let name = |row: &Element| row.name.of(&self.bytes);
            int8s(params, chosen().map(|row| Some(row.kid)));
            int8s(params, chosen().map(|row| Some(position(name(row)))));
            int8s(params, chosen().map(|row| Some(position(&name(row)[8..]))));
        };
        ids(params, true);
        self.values(params, rows);
        ids(params, false);
    }

    fn values(&self, params: &mut Params<'_>, rows: &[Element]) {
        let values = rows.iter().filter_map(|row| row.value);
        byteas(params, values.map(|value| Some(value.of(&self.bytes))));
    }

    /// Names as they are stored.
    fn names(&self, params: &mut Params<'_>, names: impl Iterator<Item = Span> + Clone) {
        let push = |array: &mut Array<'_>, name: Span| array.bytea(&stored(name.of(&self.bytes)));
        some(params, oid::BYTEA, names.map(Some), push);
    }

    /// And whole, those that are not stored so.
    fn overlong(&self, params: &mut Params<'_>, names: impl Iterator<Item = Span> + Clone) {
        byteas(params, names.map(|name| overlong(name.of(&self.bytes))));
    }
}

/// The version of rows of this shard.
fn version(fences: &[Fence], shard: u8) -> i64 {
    let fence = fences.iter().find(|fence| fence.shard == shard);
    debug_assert!(fence.is_some(), "no fence for shard {shard}");
    fence.map_or(i64::MAX, |fence| fence.seq)
}

fn int2s(params: &mut Params<'_>, values: impl Iterator<Item = i16> + Clone) {
    some(params, oid::INT2, values.map(Some), |array, value| array.int2(value));
}

fn int8s(params: &mut Params<'_>, values: impl Iterator<Item = Option<i64>> + Clone) {
    some(params, oid::INT8, values, |array, value| array.int8(value));
}

fn chars(params: &mut Params<'_>, values: impl Iterator<Item = u8> + Clone) {
    some(params, oid::CHAR, values.map(Some), |array, value| array.char(value));
}

fn byteas<'a>(params: &mut Params<'_>, values: impl Iterator<Item = Option<&'a [u8]>> + Clone) {
    some(params, oid::BYTEA, values, |array, value| array.bytea(value));
}

/// An array, or NULL when nothing is in it.
fn some<T>(
    params: &mut Params<'_>,
    of: u32,
    mut values: impl Iterator<Item = Option<T>> + Clone,
    push: impl for<'a> Fn(&mut Array<'a>, T),
) {
    if values.clone().all(|value| value.is_none()) {
        params.null();
        return;
    }
    let mut array = params.array(of);
    values.by_ref().for_each(|value| match value {
        Some(value) => push(&mut array, value),
        None => array.null(),
    });
}
