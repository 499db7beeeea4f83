//! Calls of procedures that lock rows: which lane each belongs to.

use std::hash::{BuildHasher, Hasher};

use backend::lanes::{Key, Keys};
use backend::settings::Settings;
use cache::request::Asked;
use cache::value::{Canonical, Kind};
use cache::written::put_given;
use smallvec::SmallVec;
use sql::{Scan, Source};
use wire::pg::frame::HEADER_BYTES;
use wire::pg::frontend::{self, BindTail};

use super::caching::is_utf8;
use super::Plane;
use crate::procedures::{Call, Lane, Row, Running, Travel, UNKNOWN};
use crate::session::unit::{extended, Form, Unit};
use crate::worker::shapes::Shapes;

impl Plane {
    /// Finds out with whom a statement that rides a train may ride.
    pub(super) fn find_lane(
        &mut self,
        slot: u32,
        unit: &mut Unit,
        text: &[u8],
        bind: Option<(BindTail<'_>, &[u8])>,
    ) {
        let pool = &self.pools[self.clients[slot].pool as usize];
        let verdict = pool.shapes.get(unit.shape).and_then(|shape| shape.verdict.as_deref());
        let call = verdict.and_then(|verdict| verdict.call.as_deref());
        if let (None, Some(row)) = (call, verdict.and_then(|verdict| verdict.row.as_deref())) {
            let settings = &self.clients[slot].settings;
            let sources = row.key.iter().map(|(source, _)| *source);
            let asked = asked(sources, &mut self.scan, settings, text, bind);
            unit.keys.extend(asked.and_then(|asked| key_of_row(row, &asked)));
            return;
        }
        let Some(call) = call else { return };
        let plan = call.procedure.plan();
        let Some(travel) = plan.travel(pool.config.procedures) else { return };
        unit.travel = travel;
        unit.max_train = match travel {
            Travel::Solo => 1,
            _ => u16::try_from(plan.options.max_train()).unwrap_or(u16::MAX),
        };
        unit.retries = plan.retry();
        let Some(lane) = &plan.lane else { return };
        if let Some(asked) =
            asked(call.sources(), &mut self.scan, &self.clients[slot].settings, text, bind)
        {
            unit.keys = keys(call, lane, &asked);
        }
    }

    /// A statement goes its own way: if it is a call it is remembered for as long as it runs, so
    /// that lock waits can tell what calls fight for.
    pub(super) fn note_call<'a>(
        &mut self,
        slot: u32,
        shape: u32,
        text: &'a [u8],
        bind: impl FnOnce() -> Option<(BindTail<'a>, &'a [u8])>,
    ) {
        let client = &mut self.clients[slot];
        client.running = None;
        let pool = &self.pools[client.pool as usize];
        let verdict = pool.shapes.get(shape).and_then(|shape| shape.verdict.as_deref());
        let Some(call) = verdict.and_then(|verdict| verdict.call.as_deref()) else { return };
        if let Some(asked) = asked(call.sources(), &mut self.scan, &client.settings, text, bind()) {
            let (procedure, values) = (call.procedure.clone(), values(call, &asked));
            client.running = Some(Box::new(Running { procedure, values }));
        }
    }

    /// The calls that servers of a database work on.
    pub(super) fn running(&mut self, database: &str) -> Vec<(u32, Running)> {
        let mut running = Vec::new();
        let Plane { pools, servers, clients, scan, .. } = self;
        for pool in pools.iter().filter(|pool| pool.name.database == database) {
            for server in &pool.servers {
                let Some(conn) = servers.get(*server) else { continue };
                let owner = conn.server.works_for();
                let Some(client) = owner.and_then(|owner| clients.get(owner.0)) else { continue };
                let one = match &client.unit {
                    Some(unit) => running_in(unit, &pool.shapes, &client.settings, scan),
                    None => client.running.as_deref().cloned(),
                };
                running.extend(one.map(|one| (conn.pid, one)));
            }
        }
        running
    }
}

/// The call that a unit is.
fn running_in(
    unit: &Unit,
    shapes: &Shapes,
    settings: &Settings,
    scan: &mut Scan,
) -> Option<Running> {
    let call = shapes.get(unit.shape)?.verdict.as_ref()?.call.as_ref()?;
    let procedure = call.procedure.clone();
    let values = match unit.form {
        Form::Query | Form::StandIn { .. } => {
            let text = frontend::query(unit.as_it_came().get(HEADER_BYTES..)?).ok()?;
            values(call, &asked(call.sources(), scan, settings, text, None)?)
        }
        Form::Extended => {
            let whole = extended(&unit.bytes)?;
            let (text, types) = match (&whole.parse, &unit.statement) {
                (Some(parse), _) => (parse.query, parse.types),
                (None, statement) => {
                    let statement = statement.as_ref()?;
                    (&*statement.query, &*statement.types)
                }
            };
            let bind = frontend::bind_tail(whole.values).ok()?;
            values(call, &asked(call.sources(), scan, settings, text, Some((bind, types)))?)
        }
    };
    Some(Running { procedure, values })
}

/// A statement with its literals, if some of what is wanted are among them, as they are scanned now.
fn asked<'a>(
    mut sources: impl Iterator<Item = Source>,
    scan: &'a mut Scan,
    settings: &Settings,
    text: &'a [u8],
    bind: Option<(BindTail<'a>, &'a [u8])>,
) -> Option<Asked<'a>> {
    let utf8 = is_utf8(settings);
    if !sources.any(|source| matches!(source, Source::Literal(_))) {
        return Some(Asked { text, literals: &[], utf8, bind });
    }
    scan.scan(text).then(|| Asked { text, literals: scan.literals(), utf8, bind })
}

fn values(call: &Call, asked: &Asked<'_>) -> SmallVec<[u64; 8]> {
    let hash = |source: &Option<Source>| {
        let mut value = Canonical::new();
        let known = source.and_then(|source| put_bytes(source, asked, &mut value));
        known.map_or(UNKNOWN, |()| hashed(0, &value))
    };
    call.arguments.iter().map(hash).collect()
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
    Some(Key(hashed(space, &values)))
}

fn key_of_row(row: &Row, asked: &Asked<'_>) -> Option<Key> {
    let mut values = Canonical::new();
    for (source, kind) in &row.key {
        put_given(*kind, *source, asked, &mut values)?;
    }
    Some(Key(hashed(row.space, &values)))
}

fn hashed(seed: u64, bytes: &[u8]) -> u64 {
    let mut hasher = foldhash::fast::FixedState::with_seed(seed).build_hasher();
    hasher.write(bytes);
    hasher.finish()
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
