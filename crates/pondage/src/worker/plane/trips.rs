//! Statements of different clients on one server: which server takes them, how they are written,
//! and what becomes of them when something goes wrong.
//!
//! What has gathered in a turn leaves at its end as one *trip*. A few servers carry all: each has
//! up to two trips in flight, so what arrives meanwhile gathers for the next one. Nothing waits for
//! company: with nothing in flight a statement leaves at once, alone.

use std::sync::Arc;
use std::time::Duration;

use backend::carrier::TRIPS_MAX;
use backend::moment::Moment;
use backend::reply::{Again, Fate, Guest, Kind, Made, Owner, Request};
use backend::server::{LastWords, Unnamed as OnServer};
use backend::settings::Settings;
use wire::pg::frontend::{self, Target};
use wire::pg::sqlstate;

use super::{Effect, Place, Plane};
use crate::control::messages::{PoolName, ToControl};
use crate::route::{Verdict, Way, Why};
use crate::session::client::{Hold, NONE};
use crate::session::explain::Last;
use crate::session::login::Refused;
use crate::session::unit::{extended, Form, Unit};

/// Servers that carry a group's statements while they keep up.
const CARRIERS: usize = 2;

/// Statements that have waited so long may have another server.
const PATIENCE: Duration = Duration::from_millis(1);

/// A statement that came to nothing so often among others travels alone.
const TRIES_MAX: u8 = 3;

/// An answer of so many bytes is a long one.
pub(super) const LONG_ANSWER_BYTES: usize = 16 << 10;

impl Plane {
    /// Sends what has gathered.
    pub(super) fn dispatch(&mut self) {
        for turn in 0..self.shared.len() {
            let at = self.shared[turn];
            for group in 0..self.pools[at as usize].company.groups.len() {
                while self.send_some(at, group) {}
            }
        }
        let pools = &mut self.pools;
        self.shared.retain(|at| {
            let company = &mut pools[*at as usize].company;
            company.in_use = company.is_waiting() || company.carriers().next().is_some();
            company.in_use
        });
    }

    /// Statements of this pool's clients wait, or are on their way.
    pub(super) fn shares(&mut self, at: u32) {
        if !std::mem::replace(&mut self.pools[at as usize].company.in_use, true) {
            self.shared.push(at);
        }
    }

    /// Finds a server for those of a group that wait longest. False: there is none now, or nobody
    /// waits.
    fn send_some(&mut self, at: u32, group: usize) -> bool {
        let now = self.now;
        let pool = &self.pools[at as usize];
        let of = &pool.company.groups[group];
        let Some(&first) = of.waiting.front() else { return false };
        if pool.paused || of.queued.is_some() {
            return false;
        }
        let arrived = self.clients[first].unit.as_ref().map_or(now, |unit| unit.arrived);
        // Who waits for a server of its own and came first is not overtaken.
        let overtakes = pool.pool.oldest_waiting().is_some_and(|(_, since)| since < arrived);
        let carrier = if overtakes { None } else { self.carrier_with_room(at, group) };
        if let Some(server) = carrier {
            self.load(server, group);
            return true;
        }
        let pool = &self.pools[at as usize];
        let of = &pool.company.groups[group];
        let open = of.carriers.iter().filter(|server| {
            let conn = &self.servers[**server];
            !conn.carrier.is_closed() && !self.retires(conn)
        });
        let most = if of.writes { 1 } else { CARRIERS };
        let impatient = now.since(arrived) >= PATIENCE;
        if !(open.count() < most || impatient || overtakes) {
            return false;
        }
        if let Some(server) = self.idle_with(at, &of.settings.clone()) {
            self.carry(server, group);
            self.load(server, group);
            return true;
        }
        if pool.pool.idle().is_empty() || pool.pool.waiting() > 0 {
            self.queue_up(at, group, first, arrived);
            return false;
        }
        if !of.carriers.is_empty() && !impatient {
            return false;
        }
        // Only servers with other settings: the first of the group brings them to one.
        self.travel_alone(first, Why::Settings);
        true
    }

    /// The least loaded server of the group that can take a statement.
    fn carrier_with_room(&self, at: u32, group: usize) -> Option<u32> {
        let pool = &self.pools[at as usize];
        let of = &pool.company.groups[group];
        let depth = pool.config.coalesce_depth as usize;
        let trips = if of.writes { 1 } else { TRIPS_MAX };
        let has_room = |server: &&u32| {
            let conn = &self.servers[**server];
            conn.carrier.room(depth, trips) > 0 && !self.retires(conn)
        };
        let free = of.carriers.iter().filter(has_room);
        free.min_by_key(|server| self.servers[**server].carrier.len()).copied()
    }

    /// An idle server with these settings that needs nothing done to it first.
    fn idle_with(&self, at: u32, settings: &Arc<Settings>) -> Option<u32> {
        let pool = &self.pools[at as usize];
        if pool.pool.waiting() > 0 {
            return None;
        }
        pool.pool.idle().iter().rev().copied().find(|server| self.fits(*server, settings))
    }

    fn fits(&self, server: u32, settings: &Arc<Settings>) -> bool {
        let conn = &self.servers[server];
        let delay = self.pools[conn.pool as usize].config.server_check_delay;
        let fresh = delay.is_zero() || self.now.since(conn.server.since) < delay;
        fresh && !conn.server.littered && Arc::ptr_eq(&conn.server.settings, settings)
    }

    /// One of the group waits in the pool's queue, as a client without a server does.
    fn queue_up(&mut self, at: u32, group: usize, slot: u32, arrived: Moment) {
        let pool = &mut self.pools[at as usize];
        pool.company.groups[group].queued = Some(slot);
        pool.pool.wait(slot, arrived);
        self.open_more(at);
    }

    /// A server has come for who stood in the queue for its group.
    pub(super) fn queue_served(&mut self, slot: u32, server: u32, since: Moment) {
        let at = self.servers[server].pool;
        let Some(group) = self.group_of(slot) else { return };
        let of = &mut self.pools[at as usize].company.groups[group];
        of.queued = None;
        let settings = of.settings.clone();
        if self.fits(server, &settings) {
            self.carry(server, group);
            self.load(server, group);
        } else {
            let shape = self.clients[slot].unit.as_ref().map_or(NONE, |unit| unit.shape);
            self.travel_alone(slot, Why::Settings);
            // It has a server, so nobody looks at it again.
            self.note(slot, shape);
            self.alone(slot, shape, Why::Settings);
            self.attach(slot, server, since);
        }
    }

    pub(super) fn group_of(&self, slot: u32) -> Option<usize> {
        let client = self.clients.get(slot)?;
        let unit = client.unit.as_ref()?;
        let company = &self.pools.get(client.pool as usize)?.company;
        company.find(&client.settings, unit.way == Way::Train)
    }

    /// The server carries statements of this group from now on.
    fn carry(&mut self, server: u32, group: usize) {
        let now = self.now;
        let conn = &mut self.servers[server];
        let pool = &mut self.pools[conn.pool as usize];
        pool.pool.remove_idle(server);
        pool.company.groups[group].carriers.push(server);
        conn.place = Place::Carrying;
        conn.carrier.open(now);
        conn.server.single = false;
        conn.server.since = now;
        // A client that gets it next finds it as another client has left it.
        conn.last_client = 0;
    }

    /// Writes one trip.
    fn load(&mut self, server: u32, group: usize) {
        let conn = &self.servers[server];
        let at = conn.pool as usize;
        let config = &self.pools[at].config;
        let writes = self.pools[at].company.groups[group].writes;
        let trips = if writes { 1 } else { TRIPS_MAX };
        let room = conn.carrier.room(config.coalesce_depth as usize, trips);
        if writes {
            self.begin_train(server);
        }
        // What is slow makes short trips: the last of one is not to wait until it stalls.
        let budget = self.pools[at].config.coalesce_stall / 2;
        let mut expected = Duration::ZERO;
        let mut open = false;
        for _ in 0..room {
            if expected > budget {
                break;
            }
            let waiting = &mut self.pools[at].company.groups[group].waiting;
            let Some(slot) = waiting.pop_front() else { break };
            let Some(mut unit) = self.clients.get_mut(slot).and_then(|client| client.unit.take())
            else {
                continue;
            };
            let shape = self.pools[at].shapes.get(unit.shape);
            expected += shape.map_or(Duration::ZERO, |shape| shape.history.pace());
            let conn = &mut self.servers[server];
            conn.carrier.board(Owner(slot), self.now);
            (unit.server, unit.unparsed) = (server, false);
            open = self.write_unit(server, slot, &unit, open);
            self.clients[slot].corked = writes;
            self.clients[slot].unit = Some(unit);
        }
        if open {
            self.end_batch(server);
        }
        let pool = &mut self.pools[at];
        pool.totals.coalesced.trips += 1;
        pool.totals.server_assignment_count += 1;
        let conn = &mut self.servers[server];
        let company = conn.carrier.len().min(usize::from(u16::MAX)) as u16;
        for owner in conn.carrier.boarding() {
            let Some(client) = self.clients.get_mut(owner.0) else { continue };
            let Some(unit) = &mut client.unit else { continue };
            unit.company = company - 1;
            let waited = self.now.since(unit.arrived).as_micros() as u64;
            pool.totals.wait_time_us += waited;
            pool.totals.wait_time.record(waited);
        }
        conn.carrier.depart();
        if writes {
            self.end_train(server);
        }
    }

    fn end_batch(&mut self, server: u32) {
        let sync = Request::with_fate(Owner::NOBODY, Kind::Sync, Fate::Hide);
        self.send(server, sync, frontend::put_sync);
    }

    /// Writes one statement. `open`: a batch without its Sync is before it. Whether one is behind.
    fn write_unit(&mut self, server: u32, slot: u32, unit: &Unit, open: bool) -> bool {
        let owner = Owner(slot);
        let hurried = unit.way == Way::Train;
        let shares = unit.way == Way::Batch && unit.form != Form::Query;
        if open && !shares {
            self.end_batch(server);
        }
        match unit.form {
            Form::Query => {
                let guest = if hurried { Guest::Hurried } else { Guest::Plain };
                self.send(server, Request::forward(owner, Kind::Query).guest(guest), |out| {
                    out.extend_from_slice(&unit.bytes);
                });
                return false;
            }
            Form::StandIn { values } => self.write_stand_in(server, owner, unit, values),
            Form::Extended => self.write_extended(server, slot, unit),
        }
        if shares {
            let part = Fate::Made(Made::ReadyForQuery);
            self.send(server, Request::with_fate(owner, Kind::Part, part), |_| {});
        } else {
            self.send(server, Request::forward(owner, Kind::Sync), frontend::put_sync);
        }
        shares
    }

    fn write_stand_in(&mut self, server: u32, owner: Owner, unit: &Unit, values: u32) {
        let Some(statement) = &unit.statement else { return };
        let guest = Guest::StandIn;
        self.prepare_on(server, statement, owner, guest);
        let values = &unit.bytes[values as usize..];
        let bind = Request::with_fate(owner, Kind::Bind, Fate::HideSuccess).guest(guest);
        self.send(server, bind, |out| {
            frontend::put_bind_head(out, values.len(), b"", statement.name().as_bytes());
            out.extend_from_slice(values);
        });
        self.send(server, Request::forward(owner, Kind::Describe).guest(guest), |out| {
            frontend::put_describe(out, Target::Portal, b"");
        });
        self.send(server, Request::forward(owner, Kind::Execute).guest(guest), |out| {
            frontend::put_execute(out, b"", 0);
        });
    }

    fn write_extended(&mut self, server: u32, slot: u32, unit: &Unit) {
        let Some(asked) = extended(&unit.bytes) else { return };
        let owner = Owner(slot);
        // A named statement takes the place of the client's unnamed one.
        let stands_in = asked.parse.is_some() && unit.statement.is_some();
        let guest = match unit.way {
            Way::Train => Guest::Hurried,
            _ if stands_in => Guest::StandIn,
            _ => Guest::Plain,
        };
        let request = |kind| Request::forward(owner, kind).guest(guest);
        match (&asked.parse, &unit.statement) {
            (Some(parse), None) => {
                self.next_stamp += 1;
                let stamp = self.next_stamp;
                self.servers[server].server.set_unnamed(OnServer::Of(stamp));
                self.send(server, request(Kind::Parse).telling(true), |out| {
                    frontend::put_parse(out, b"", parse.query, parse.types);
                });
            }
            (_, Some(statement)) => self.prepare_on(server, statement, owner, guest),
            (None, None) => {}
        }
        let name = unit.statement.as_ref().map(|statement| statement.name());
        let bind = match stands_in {
            true => Request::with_fate(owner, Kind::Bind, Fate::HideSuccess).guest(guest),
            false => request(Kind::Bind),
        };
        self.send(server, bind, |out| {
            let name = name.as_ref().map_or(&b""[..], |name| name.as_bytes());
            frontend::put_bind_head(out, asked.values.len(), b"", name);
            out.extend_from_slice(asked.values);
        });
        if stands_in {
            // The client hears nothing before it is certain that the shared one will do.
            for made in [Made::ParseComplete, Made::BindComplete] {
                let request = Request::with_fate(owner, Kind::Bind, Fate::Made(made));
                self.send(server, request, |_| {});
            }
        }
        if asked.describe {
            self.send(server, request(Kind::Describe), |out| {
                frontend::put_describe(out, Target::Portal, b"");
            });
        }
        self.send(server, request(Kind::Execute), |out| frontend::put_execute(out, b"", 0));
    }

    /// A statement that travelled with others is answered whole.
    pub(super) fn unit_answered(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        let Some(mut unit) = client.unit.take() else { return };
        if unit.way == Way::Train && !unit.done {
            unit.done = true;
            client.unit = Some(unit);
            return;
        }
        let long = client.out.len() >= LONG_ANSWER_BYTES;
        client.corked = false;
        client.hold = Hold::No;
        let at = client.pool as usize;
        if !client.input.is_empty() {
            self.resume_later(slot);
        }
        if let Some(conn) = self.servers.get_mut(unit.server) {
            conn.carrier.leave(Owner(slot), true);
        }
        let took = self.now.since(unit.arrived).as_micros();
        self.clients[slot].last = Some(Last {
            shape: Some(unit.shape),
            way: unit.way,
            why: Why::Free,
            company: unit.company,
            prepared: matches!(unit.form, Form::StandIn { .. }),
            took_us: u32::try_from(took).unwrap_or(u32::MAX),
        });
        self.unit_counted(slot, &unit, long);
        self.unnamed_kept(slot, &unit);
        let pool = &mut self.pools[at];
        if let (true, Some(shape)) = (long, pool.shapes.get_mut(unit.shape)) {
            shape.history.ran_alone(Duration::ZERO, true);
        }
        self.paced.push(unit.shape);
        self.keep_unit(unit);
    }

    fn unit_counted(&mut self, slot: u32, unit: &Unit, long: bool) {
        let client = &self.clients[slot];
        let took = self.now.since(unit.arrived).as_micros() as u64;
        let pool = &mut self.pools[client.pool as usize];
        let totals = &mut pool.totals.coalesced;
        let stands_in = matches!(unit.form, Form::StandIn { .. });
        totals.why[Why::Free as usize] += 1;
        totals.batched += u64::from(unit.way == Way::Batch && unit.form != Form::Query);
        totals.trained += u64::from(unit.way == Way::Train);
        totals.prepared += u64::from(stands_in);
        pool.totals.bind_count += u64::from(unit.form == Form::Extended);
        let Some(shape) = pool.shapes.get_mut(unit.shape) else { return };
        (shape.way, shape.why) = (unit.way, if long { Why::Slow } else { Why::Free });
        shape.calls += 1;
        shape.joined += 1;
        shape.company += u64::from(unit.company);
        shape.prepared += u64::from(stands_in);
        shape.errors += u64::from(unit.failed);
        shape.time.record(took);
    }

    /// The client may bind the unnamed statement again without parsing it.
    fn unnamed_kept(&mut self, slot: u32, unit: &Unit) {
        if unit.form != Form::Extended {
            return;
        }
        let Some(parse) = extended(&unit.bytes).and_then(|asked| asked.parse) else { return };
        if unit.unparsed {
            return self.clients[slot].names().forget_unnamed();
        }
        let text = match &unit.statement {
            Some(statement) => statement.clone(),
            None => backend::statement::Statement::unregistered(parse.query, parse.types),
        };
        self.next_stamp += 1;
        let stamp = self.next_stamp;
        self.clients[slot].names().keep_unnamed(stamp, text);
        let pool = self.clients[slot].pool as usize;
        self.pools[pool].totals.client_parse_count += 1;
    }

    /// A server's replies have been read: those that were answered share the time it took.
    pub(super) fn pace(&mut self, server: u32) {
        let Some(conn) = self.servers.get_mut(server) else { return };
        let took = conn.carrier.pace(self.now);
        let pool = &mut self.pools[conn.pool as usize];
        let (short, stall) = (pool.config.coalesce_short, pool.config.coalesce_stall);
        for shape in self.paced.drain(..) {
            if let (Some(took), Some(shape)) = (took, pool.shapes.get_mut(shape)) {
                shape.history.ran_among_others(took, short, stall);
            }
        }
    }

    /// A statement came to nothing where it was, and left nothing: it is sent again.
    pub(super) fn unit_again(&mut self, slot: u32, again: Again) {
        let client = &mut self.clients[slot];
        let Some(unit) = &mut client.unit else { return };
        if let Some(conn) = self.servers.get_mut(unit.server) {
            conn.carrier.leave(Owner(slot), true);
        }
        let totals = &mut self.pools[client.pool as usize].totals.coalesced;
        totals.skipped += 1;
        match again {
            Again::Skipped => {}
            Again::Refused => {
                let statement = unit.statement.take();
                if let Some((conn, statement)) = self.servers.get_mut(unit.server).zip(statement) {
                    conn.server.prepared.doubt_one(statement.id);
                }
                if let Form::StandIn { values } = unit.form {
                    unit.bytes.truncate(values as usize);
                    unit.form = Form::Query;
                }
                if let Some(shape) = self.pools[client.pool as usize].shapes.get_mut(unit.shape) {
                    shape.stand_in_refused();
                }
            }
            Again::Hurried => {
                // What it has been given so far was kept back.
                client.out.clear();
                return self.travel_alone(slot, Why::Again);
            }
        }
        self.requeue(slot);
    }

    /// Back among those who wait, at the place of its arrival.
    fn requeue(&mut self, slot: u32) {
        let Some(group) = self.group_of(slot) else { return };
        let client = &mut self.clients[slot];
        let Some(unit) = &mut client.unit else { return };
        unit.server = NONE;
        unit.tries += 1;
        if unit.tries >= TRIES_MAX {
            return self.travel_alone(slot, Why::Again);
        }
        let (arrived, at) = (unit.arrived, client.pool as usize);
        if let Some(shape) = self.pools[at].shapes.get_mut(unit.shape) {
            shape.again += 1;
        }
        let clients = &self.clients;
        let waiting = &mut self.pools[at].company.groups[group].waiting;
        let earlier = |slot: &u32| {
            let unit = clients.get(*slot).and_then(|client| client.unit.as_ref());
            unit.is_some_and(|unit| unit.arrived <= arrived)
        };
        let place = waiting.partition_point(earlier);
        waiting.insert(place, slot);
        self.shares(at as u32);
    }

    /// Makes the client's statement wait for a server of its own, as if it had just come.
    pub(super) fn travel_alone(&mut self, slot: u32, why: Why) {
        self.leave_group(slot);
        let client = &mut self.clients[slot];
        let Some(unit) = client.unit.take() else { return };
        let mut input = unit.as_it_came().to_vec();
        input.extend_from_slice(&client.input);
        client.input = input;
        client.corked = false;
        client.alone = Some(why);
        client.hold = Hold::No;
        self.keep_unit(unit);
        self.resume_later(slot);
    }

    /// It waits no more.
    fn leave_group(&mut self, slot: u32) {
        let Some(group) = self.group_of(slot) else { return };
        let at = self.clients[slot].pool as usize;
        let pool = &mut self.pools[at];
        let of = &mut pool.company.groups[group];
        of.waiting.retain(|waiting| *waiting != slot);
        if of.queued == Some(slot) {
            of.queued = None;
            pool.pool.leave(slot);
        }
    }

    /// A client goes, with its statement on its way or waiting.
    pub(super) fn unit_abandoned(&mut self, slot: u32) {
        self.leave_group(slot);
        let Some(unit) = self.clients[slot].unit.take() else { return };
        self.clients[slot].corked = false;
        let server = unit.server;
        self.keep_unit(unit);
        let Some(conn) = self.servers.get_mut(server) else { return };
        conn.server.disown(Owner(slot));
        conn.carrier.leave(Owner(slot), false);
        self.carries_nobody(server);
    }

    /// If all have left a server that still works, what it does is nobody's.
    fn carries_nobody(&mut self, server: u32) {
        let Some(conn) = self.servers.get_mut(server) else { return };
        let pool = conn.pool as usize;
        if conn.place != Place::Carrying || !conn.carrier.is_empty() {
            return;
        }
        conn.place = Place::Cleaning;
        conn.server.cancelling = None;
        conn.server.since = self.now;
        let busy = conn.server.runs_for_nobody();
        self.pools[pool].company.remove_carrier(server);
        if busy {
            self.cancel_server(server);
        }
        self.clean(server);
    }

    /// A server that carries statements has been read: with nothing in flight it is given back,
    /// and who waits for one, here or alone, gets it.
    pub(super) fn settle_carrier(&mut self, server: u32) {
        let conn = &mut self.servers[server];
        if !conn.server.is_quiet() || !conn.carrier.is_empty() {
            return;
        }
        conn.place = Place::Cleaning;
        conn.server.cancelling = None;
        let pool = conn.pool as usize;
        self.pools[pool].company.remove_carrier(server);
        self.clean(server);
    }

    /// Looks whether every server that carries statements moves.
    pub(super) fn check_carriers(&mut self) {
        for turn in 0..self.shared.len() {
            let pool = &self.pools[self.shared[turn] as usize];
            let limit = pool.config.coalesce_stall;
            let due = |server: &u32| {
                let due = self.servers[*server].carrier.stalls_at(limit);
                due.is_some_and(|due| due <= self.now)
            };
            let stalled: Vec<u32> = pool.company.carriers().filter(due).collect();
            for server in stalled {
                self.empty_carrier(server);
            }
        }
    }

    /// When something has to be done though nothing happens.
    pub fn next_due(&self) -> Option<Moment> {
        let due = self.shared.iter().flat_map(|at| {
            let pool = &self.pools[*at as usize];
            let limit = pool.config.coalesce_stall;
            let carriers = pool.company.carriers();
            let stalls =
                carriers.filter_map(move |server| self.servers[server].carrier.stalls_at(limit));
            let waits = pool.company.groups.iter().filter_map(|group| {
                let &first = group.waiting.front().filter(|_| group.queued.is_none())?;
                let unit = self.clients.get(first)?.unit.as_ref()?;
                (!pool.paused).then(|| unit.arrived.after(PATIENCE))
            });
            stalls.chain(waits)
        });
        due.min()
    }

    /// The first statement on a server takes too long, or is to be cancelled: the others are sent
    /// again elsewhere, and their late answers are swallowed.
    pub(super) fn empty_carrier(&mut self, server: u32) {
        let conn = &mut self.servers[server];
        conn.carrier.close();
        let works_for = conn.server.works_for();
        let group_writes = conn.carrier.owners().any(|owner| self.clients[owner.0].corked);
        if conn.server.is_dying() {
            // Its end tells what becomes of whom.
            return;
        }
        if group_writes {
            // A write that was sent can't be taken back; each waits for a lock only so long.
            return;
        }
        let moved = conn.carrier.abandon(works_for);
        for owner in &moved {
            conn.server.disown(*owner);
        }
        self.pools[conn.pool as usize].totals.coalesced.stalled += moved.len() as u64;
        for owner in moved {
            self.requeue(owner.0);
        }
        self.carries_nobody(server);
    }

    /// A server that carried statements is lost: reads that nobody has heard of are sent again,
    /// for the others it is as if they had had it for themselves.
    pub(super) fn carrier_lost(&mut self, server: u32, refused: &Refused) {
        let conn = &mut self.servers[server];
        let owners: Vec<Owner> = conn.carrier.abandon(None);
        let begun: Vec<bool> = owners.iter().map(|owner| conn.server.has_begun(*owner)).collect();
        let within: Vec<bool> =
            owners.iter().map(|owner| conn.server.is_within_message(*owner)).collect();
        let told = match conn.server.last_words() {
            LastWords::ToldTo(owner) => *owner,
            _ => Owner::NOBODY,
        };
        let pool = conn.pool as usize;
        self.pools[pool].company.remove_carrier(server);
        self.close_server(server);
        for ((owner, begun), within) in owners.into_iter().zip(begun).zip(within) {
            let Some(client) = self.clients.get_mut(owner.0) else { continue };
            if !begun && told != owner && !client.corked {
                self.pools[pool].totals.coalesced.lost += 1;
                self.requeue(owner.0);
                continue;
            }
            if let Some(unit) = &mut client.unit {
                unit.server = NONE;
            }
            let silent = !client.corked && (within || told == owner);
            self.close_client(owner.0, (!silent).then_some(refused));
        }
    }

    /// The client of a statement among others wants it cancelled.
    pub(super) fn cancel_unit(&mut self, slot: u32) {
        let Some(unit) = &self.clients[slot].unit else { return };
        let server = unit.server;
        if server == NONE {
            self.travel_alone(slot, Why::Again);
            return self.drop_request(slot);
        }
        let owner = Owner(slot);
        let writes = self.clients[slot].corked;
        let conn = &mut self.servers[server];
        if conn.server.is_dying() {
            return;
        }
        if conn.server.works_for() == Some(owner) {
            conn.server.cancelling = Some(owner);
            self.empty_carrier(server);
            self.cancel_server(server);
        } else if !writes {
            conn.server.disown(owner);
            conn.carrier.leave(owner, false);
            if let Some(unit) = &mut self.clients[slot].unit {
                unit.server = NONE;
            }
            self.carries_nobody(server);
            self.travel_alone(slot, Why::Again);
            self.drop_request(slot);
        }
    }

    /// A statement that others share ran longer than `query_timeout`.
    pub(super) fn carried_too_long(&mut self, server: u32) -> Option<u32> {
        let conn = self.servers.get(server)?;
        let limit = self.pools[conn.pool as usize].config.query_timeout;
        let slow = |slot: &u32| {
            let client = self.clients.get(*slot);
            client.is_some_and(|client| self.now.since(client.asked) >= limit)
        };
        let mut owners = conn.carrier.owners().map(|owner| owner.0);
        owners.find(|slot| !limit.is_zero() && slow(slot))
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

    /// A client has changed definitions: what was judged counts no longer, here at once.
    pub(super) fn redefined_by(&mut self, slot: u32) {
        let pool = self.clients[slot].pool as usize;
        let database = self.pools[pool].name.database.clone();
        self.redefined(&database);
        self.effects.push(Effect::Control(ToControl::Redefined { database }));
    }

    pub(super) fn redefined(&mut self, database: &str) {
        let pools = self.pools.iter_mut().filter(|pool| pool.name.database == database);
        pools.for_each(|pool| pool.shapes.redefined());
    }

    pub(super) fn lost_words(place: &str, why: &str) -> Refused {
        Refused::new(
            sqlstate::CONNECTION_FAILURE,
            format!("server connection to {place} was lost: {why}"),
        )
        .detail("What was in flight may or may not have been done.")
        .hint("Connect again. [P0431]")
    }
}
