//! Statements that may share a server with others' are recognised here, when they arrive whole
//! from a client that has nothing else in flight.

use std::sync::Arc;

use backend::reply::Owner;
use backend::statement::Statement;
use wire::pg::backend::TxStatus;
use wire::pg::frame::{Header, HEADER_BYTES};
use wire::pg::frontend::{self, tag};

use super::caching::{Ask, Bound};
use super::requests::Taken;
use super::{Effect, Plane, PoolState, WHOLE_BYTES_MAX};
use crate::config::{Coalesce, PoolMode};
use crate::control::messages::{PoolName, ToControl};
use crate::route::{route, Verdict, Way, Why};
use crate::session::client::{Hold, NONE};
use crate::session::explain;
use crate::session::unit::{extended, Extended, Form, Unit};

/// Units kept for the next statements.
const SPARE_UNITS_MAX: usize = 256;

impl Plane {
    /// Takes a statement whose result is kept, that may travel with others', or that begins or ends
    /// a transaction of which no server knows. None: it goes its own way.
    pub(super) fn join(&mut self, slot: u32, header: Header, bytes: &[u8]) -> Option<Taken> {
        let client = &self.clients[slot];
        if client.batch_open || client.skips {
            return None;
        }
        if !matches!(header.tag, tag::QUERY | tag::PARSE | tag::BIND) {
            return None;
        }
        let pool = &self.pools[client.pool as usize];
        let off = pool.config.coalesce == Coalesce::Off || pool.config.mode == PoolMode::Session;
        // What a client that listens is answered has to wait for its notifications.
        let listens = client.listens.is_some();
        let joins = !off && !listens && !client.has_server() && client.begun.is_none();
        // What stands before it in the same transaction, or is still on its way, comes first.
        let kept = pool.cache.is_some()
            && !listens
            && !self.is_pinned(slot)
            && match &client.begun {
                Some(begun) => !client.has_server() && !begun.failed && begun.reads,
                None => self.quiet_status(slot) == Some(TxStatus::Idle),
            };
        let bounds = client.begun.is_some() || self.begins_late(slot);
        if !(joins || kept || bounds) || bytes.len() > WHOLE_BYTES_MAX {
            return None;
        }
        match header.tag {
            tag::QUERY => self.join_query(slot, header, bytes, joins, kept),
            _ => self.join_extended(slot, bytes, joins, kept),
        }
    }

    fn join_query(
        &mut self,
        slot: u32,
        header: Header,
        bytes: &[u8],
        joins: bool,
        kept: bool,
    ) -> Option<Taken> {
        if header.total > bytes.len() {
            return None;
        }
        let text = bytes[HEADER_BYTES..header.total].strip_suffix(b"\0")?;
        if explain::is_request(text) {
            return None;
        }
        if self.transaction_here(slot, text, None) {
            return Some(Taken::Bytes(header.total));
        }
        if !(joins || kept) {
            return None;
        }
        let shape = self.shape_of(slot, text)?;
        if kept {
            let ask = Ask { text, bound: None, bytes: header.total };
            if let Some(taken) = self.read_kept(slot, shape, &ask) {
                return Some(taken);
            }
        }
        if !(joins || kept && self.reads_outside(slot, shape)) {
            self.judge_alone(slot, shape, text);
            return None;
        }
        if header.total < bytes.len() {
            return self.alone(slot, shape, Why::Pipelined);
        }
        let Some(way) = self.way(slot, shape, text) else {
            self.note_call(slot, shape, text, || None);
            return None;
        };
        let mut unit = self.new_unit(slot, shape, way);
        unit.bytes.extend_from_slice(bytes);
        let client = &mut self.clients[slot];
        let pool = &mut self.pools[client.pool as usize];
        let prepares = pool.config.prepare_simple && pool.config.max_prepared_statements > 0;
        if prepares && way != Way::Train {
            let values = unit.bytes.len() as u32;
            let (shapes, registry) = (&mut pool.shapes, &mut self.statements);
            let out = &mut unit.bytes;
            if let Some(statement) = shapes.stand_in(shape, text, &self.scan, registry, out) {
                unit.statement = Some(statement);
                unit.form = Form::StandIn { values };
            }
        }
        // As every simple query does.
        if let Some(names) = &mut client.names {
            names.forget_unnamed();
        }
        if way == Way::Train {
            self.note_writes(slot, text, None);
            self.find_lane(slot, &mut unit, text, None);
        }
        self.enqueue(slot, unit)
    }

    fn join_extended(&mut self, slot: u32, bytes: &[u8], joins: bool, kept: bool) -> Option<Taken> {
        if self.pools[self.clients[slot].pool as usize].config.max_prepared_statements == 0 {
            return None;
        }
        let asked = extended(bytes)?;
        let statement = match &asked.parse {
            Some(_) => None,
            None => {
                let names = self.clients[slot].names.as_ref()?;
                Some(names.get(asked.bind.statement)?.clone())
            }
        };
        let (text, types) = match (&asked.parse, &statement) {
            (Some(parse), _) => (parse.query, parse.types),
            (None, Some(statement)) => (&*statement.query, &*statement.types),
            (None, None) => return None,
        };
        let bounds = sql::transaction(text).is_some();
        if !(joins || kept || bounds) {
            return None;
        }
        let shape = match &statement {
            None => self.shape_of(slot, text)?,
            Some(statement) => {
                let pool = self.clients[slot].pool as usize;
                let shape = self.pools[pool].shapes.of_statement(statement, &mut self.scan)?;
                self.note(slot, shape)
            }
        };
        if kept || bounds {
            if let Ok(tail) = frontend::bind_tail(asked.values) {
                let Extended { parse, values, describe, .. } = asked;
                let statement = statement.as_ref();
                let bound = Bound { statement, values, tail, types, parse, describe };
                if self.transaction_here(slot, text, Some(&bound)) {
                    return Some(Taken::Bytes(bytes.len()));
                }
                let ask = Ask { text, bound: Some(bound), bytes: bytes.len() };
                let taken = if kept { self.read_kept(slot, shape, &ask) } else { None };
                if taken.is_some() {
                    return taken;
                }
            }
        }
        if !(joins || kept && self.reads_outside(slot, shape)) {
            self.judge_alone(slot, shape, text);
            return None;
        }
        // Most statements need none of it.
        let bind = || frontend::bind_tail(asked.values).ok().map(|bind| (bind, types));
        let Some(way) = self.way(slot, shape, text) else {
            self.note_call(slot, shape, text, bind);
            return None;
        };
        let mut unit = self.new_unit(slot, shape, way);
        if way == Way::Train {
            let bind = bind();
            self.note_writes(slot, text, bind);
            self.find_lane(slot, &mut unit, text, bind);
        }
        let statement = match way {
            Way::Train => statement,
            _ => statement.or_else(|| self.unnamed(&asked)),
        };
        unit.form = Form::Extended;
        unit.statement = statement;
        unit.bytes.extend_from_slice(bytes);
        self.enqueue(slot, unit)
    }

    /// An unnamed statement without constants is shared as a named one is.
    fn unnamed(&mut self, asked: &Extended<'_>) -> Option<Arc<Statement>> {
        let parse = asked.parse.as_ref().filter(|_| self.scan.literals().is_empty())?;
        Some(self.statements.intern(parse.query, parse.types))
    }

    fn shape_of(&mut self, slot: u32, text: &[u8]) -> Option<u32> {
        if !self.scan.scan(text) {
            self.count_why(slot, Why::Unreadable);
            return None;
        }
        let pool = self.clients[slot].pool as usize;
        let shape = self.pools[pool].shapes.of(self.scan.shape());
        Some(self.note(slot, shape))
    }

    /// A query goes to the client's own server. In a transaction nobody has looked at it yet.
    pub(super) fn follow(&mut self, slot: u32, text: &[u8]) {
        let client = &self.clients[slot];
        let pool = &self.pools[client.pool as usize];
        let config = &pool.config;
        if client.asking != NONE || config.coalesce == Coalesce::Off {
            return;
        }
        if self.quiet_status(slot).is_some_and(|status| status != TxStatus::Idle) {
            if let Some(shape) = self.shape_of(slot, text) {
                self.alone(slot, shape, Why::Transaction);
                // The next transaction of this kind may begin late.
                self.judge_alone(slot, shape, text);
            }
        }
    }

    /// The statement that is coming is of this shape.
    pub(super) fn note(&mut self, slot: u32, shape: u32) -> u32 {
        self.clients[slot].asking = shape;
        shape
    }

    /// A statement is prepared on a server of its client's own.
    pub(super) fn learn(&mut self, slot: u32, text: &[u8]) {
        let pool = &mut self.pools[self.clients[slot].pool as usize];
        if pool.cache.is_some() && self.scan.scan(text) {
            let shape = pool.shapes.of(self.scan.shape());
            self.judge_alone(slot, shape, text);
        }
    }

    /// A statement that goes to a server of its client's own is judged for what is kept.
    pub(super) fn judge_alone(&mut self, slot: u32, id: u32, text: &[u8]) {
        let at = self.clients[slot].pool;
        let pool = &mut self.pools[at as usize];
        let asks = pool.cache.is_some()
            && pool.shapes.get_mut(id).is_some_and(|shape| shape.ask(self.now));
        if asks {
            self.judge(at, id, text);
        }
    }

    /// How a statement of this shape travels; none: alone.
    fn way(&mut self, slot: u32, id: u32, text: &[u8]) -> Option<Way> {
        let client = &mut self.clients[slot];
        let at = client.pool;
        let pool = &mut self.pools[at as usize];
        let shape = pool.shapes.get_mut(id)?;
        if let Some(why) = client.alone {
            self.alone(slot, id, why);
            return None;
        }
        let (mut way, mut why) = route(&pool.config, shape.verdict.as_deref(), &shape.history);
        if way == Way::Batch && shape.fails_often() {
            way = Way::Pipeline;
        }
        let asks = why != Why::New && shape.ask(self.now);
        let settings = client.settings.clone();
        if asks {
            self.judge(at, id, text);
        }
        if way != Way::Alone {
            let PoolState { company, welcome, .. } = &mut self.pools[at as usize];
            let writes = way == Way::Train;
            let group = welcome.as_ref().and_then(|all| company.group(&settings, all, writes));
            if group.is_none() {
                (way, why) = (Way::Alone, Why::Settings);
            }
        }
        // What is corked is not put behind an answer that is being written.
        let client = &self.clients[slot];
        if way == Way::Train && (client.queued_out || !client.out.is_empty()) {
            (way, why) = (Way::Alone, Why::Pipelined);
        }
        if way == Way::Alone {
            self.alone(slot, id, why);
            return None;
        }
        Some(way)
    }

    pub(super) fn alone(&mut self, slot: u32, id: u32, why: Why) -> Option<Taken> {
        self.count_why(slot, why);
        let pool = self.clients[slot].pool as usize;
        if let Some(shape) = self.pools[pool].shapes.get_mut(id) {
            (shape.way, shape.why) = (Way::Alone, why);
        }
        None
    }

    fn count_why(&mut self, slot: u32, why: Why) {
        let pool = self.clients[slot].pool as usize;
        self.pools[pool].totals.coalesced.why[why as usize] += 1;
    }

    /// Asks parser and catalogues what may be done with a shape.
    pub(super) fn judge(&mut self, at: u32, shape: u32, text: &[u8]) {
        let pool = &self.pools[at as usize];
        self.effects.push(Effect::Control(ToControl::Judge {
            worker: self.worker,
            config: pool.config.clone(),
            proven: pool.proven.clone(),
            shape,
            text: text.into(),
        }));
    }

    fn new_unit(&mut self, slot: u32, shape: u32, way: Way) -> Box<Unit> {
        self.clients[slot].asking = NONE;
        let mut unit = self.spare_units.pop().unwrap_or_default();
        let bytes = std::mem::take(&mut unit.bytes);
        *unit = Unit { bytes, shape, way, arrived: self.now, ..Unit::default() };
        unit
    }

    pub(super) fn keep_unit(&mut self, mut unit: Box<Unit>) {
        if self.spare_units.len() < SPARE_UNITS_MAX && unit.bytes.capacity() <= WHOLE_BYTES_MAX {
            unit.bytes.clear();
            unit.statement = None;
            self.spare_units.push(unit);
        }
    }

    /// From now on the statement waits for the end of the turn.
    fn enqueue(&mut self, slot: u32, unit: Box<Unit>) -> Option<Taken> {
        let now = self.now;
        let taken = unit.as_it_came().len();
        let client = &mut self.clients[slot];
        let company = &mut self.pools[client.pool as usize].company;
        let group = company.find(&client.settings, unit.way == Way::Train)?;
        let (keys, class) = (unit.keys.clone(), unit.travel.class());
        company.groups[group].waiting.wait(Owner(slot), unit.arrived, keys, class);
        client.unit = Some(unit);
        client.hold = Hold::Joined;
        (client.asked, client.began) = (now, now);
        let at = client.pool;
        self.shares(at);
        Some(Taken::Bytes(taken))
    }

    /// Parser and catalogues have answered.
    pub(super) fn judged(
        &mut self,
        name: &PoolName,
        id: u32,
        verdict: Result<Box<Verdict>, String>,
    ) {
        let Some(&at) = self.pool_by_name.get(name) else { return };
        let Some(shape) = self.pools[at as usize].shapes.get_mut(id) else { return };
        if let Err(error) = &verdict {
            tracing::debug!(event = "judge_failed", db = %name.database, user = %name.user,
                "statements can't be judged: {error}");
        }
        shape.judged(verdict.ok());
    }

    /// Definitions have been changed on this server: what was judged counts no longer, here at once.
    pub(super) fn redefined_on(&mut self, server: u32) {
        let Some(conn) = self.servers.get(server) else { return };
        let pool = conn.pool as usize;
        let database = self.pools[pool].name.database.clone();
        if let Some(shared) = self.common.caches.known(&database) {
            // What was kept is not found any more, by no worker and for no user, before the client
            // is told.
            shared.redefine();
        }
        self.redefined(&database);
        self.effects.push(Effect::Control(ToControl::Redefined { database }));
    }

    /// There may be new tables on this server, whose changes are to be followed soon.
    pub(super) fn defined_on(&mut self, server: u32) {
        let Some(conn) = self.servers.get(server) else { return };
        let database = &self.pools[conn.pool as usize].name.database;
        if self.common.caches.known(database).is_some() {
            let database = database.clone();
            self.effects.push(Effect::Control(ToControl::Defined { database }));
        }
    }

    pub(super) fn redefined(&mut self, database: &str) {
        self.statements.redefined();
        let pools = self.pools.iter_mut().filter(|pool| pool.name.database == database);
        pools.for_each(|pool| {
            pool.shapes.redefined();
            pool.surveys.forget();
        });
    }
}
