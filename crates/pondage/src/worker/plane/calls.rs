//! Calls of procedures that lock rows: which lane each belongs to.

use std::hash::{BuildHasher, Hasher};

use backend::lanes::{Key, Keys};
use cache::request::Asked;
use cache::value::{Canonical, Kind};
use cache::written::put_given;
use sql::Source;
use wire::pg::frontend::BindTail;

use super::caching::is_utf8;
use super::Plane;
use crate::procedures::{Call, Lane};
use crate::session::unit::Unit;

impl Plane {
    /// Finds out with whom a statement that rides a train may ride. What the text has in it was
    /// scanned last.
    pub(super) fn find_lane(
        &mut self,
        slot: u32,
        unit: &mut Unit,
        text: &[u8],
        bind: Option<(BindTail<'_>, &[u8])>,
    ) {
        let pool = &self.pools[self.clients[slot].pool as usize];
        let verdict = pool.shapes.get(unit.shape).and_then(|shape| shape.verdict.as_deref());
        let Some(call) = verdict.and_then(|verdict| verdict.call.as_deref()) else { return };
        let plan = call.procedure.plan();
        let Some(travel) = plan.travel(pool.config.procedures) else { return };
        unit.travel = travel;
        unit.max_train = u16::try_from(plan.options.max_train()).unwrap_or(u16::MAX);
        unit.retries = plan.retry();
        let Some(lane) = &plan.lane else { return };
        // Literals are found again: notes about writes may have scanned nothing.
        if bind.is_none() && !self.scan.scan(text) {
            return;
        }
        let utf8 = is_utf8(&self.clients[slot].settings);
        let asked = Asked { text, literals: self.scan.literals(), utf8, bind };
        unit.keys = keys(call, lane, &asked);
    }
}

/// The keys of one call, the lane that it waits in first; none if that can't be told.
fn keys(call: &Call, lane: &Lane, asked: &Asked<'_>) -> Keys {
    let mut keys = Keys::new();
    let Some(first) = key(call, lane.space, &lane.key, asked) else { return keys };
    keys.push(first);
    for also in &lane.also {
        match key(call, lane.space, also, asked) {
            Some(other) if !keys.contains(&other) => keys.push(other),
            _ => {}
        }
    }
    keys
}

fn key(call: &Call, space: u64, of: &[(usize, Option<Kind>)], asked: &Asked<'_>) -> Option<Key> {
    let mut values = Canonical::new();
    for (place, kind) in of {
        let source = (*call.arguments.get(*place)?)?;
        match kind {
            Some(kind) => put_given(*kind, source, asked, &mut values)?,
            None => put_bytes(source, asked, &mut values)?,
        }
    }
    let mut hasher = foldhash::fast::FixedState::with_seed(space).build_hasher();
    hasher.write(&values);
    Some(Key(hasher.finish()))
}

/// A value of a type that is not compared here, as it is written.
fn put_bytes(source: Source, asked: &Asked<'_>, out: &mut Canonical) -> Option<()> {
    match source {
        Source::Literal(at) => {
            let mut text = Vec::new();
            asked.literals.get(at as usize)?.put_value(asked.text, &mut text);
            out.extend_from_slice(&text);
        }
        Source::Parameter(number) => {
            let (bind, _) = asked.bind.as_ref()?;
            let (_, value) = bind.values().nth((number as usize).checked_sub(1)?)?;
            out.extend_from_slice(value?);
        }
    }
    // So that two values are never another two.
    out.push(0);
    Some(())
}
