//! Statements of different clients on one server: which server takes them, and when.
//!
//! What has gathered in a turn leaves at its end as one *trip*. A few servers carry all: each has
//! up to two trips in flight, so what arrives meanwhile gathers for the next one. Nothing waits for
//! company: with nothing in flight a statement leaves at once, alone.

use std::sync::Arc;
use std::time::Duration;

use backend::carrier::TRIPS_MAX;
use backend::keys::{Workers, KEPT_FOR};
use backend::lanes::Train;
use backend::moment::Moment;
use backend::reply::Owner;
use backend::settings::Settings;

use super::{Effect, Place, Plane, PoolState};
use crate::control::messages::ToWorker;
use crate::procedures::Travel;
use crate::route::{Way, Why};
use crate::session::client::NONE;

/// Servers that carry trains of one group at the most.
const CARRIERS_MAX: usize = 32;

/// Statements that have waited so long may have another server.
const PATIENCE: Duration = Duration::from_millis(1);

/// An answer of so many bytes is a long one.
pub(super) const LONG_ANSWER_BYTES: usize = 16 << 10;

impl Plane {
    /// Sends what has gathered.
    pub(super) fn dispatch(&mut self) {
        for turn in 0..self.shared.len() {
            let at = self.shared[turn];
            for group in 0..self.pools[at as usize].company.groups.len() {
                let pool = &mut self.pools[at as usize];
                let most = pool.config.pool_size as usize;
                pool.company.groups[group].waiting.unpark();
                pool.company.groups[group].climb.look(self.now, most.min(CARRIERS_MAX));
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
        let Some((first, arrived)) = of.waiting.first() else { return false };
        let first = first.0;
        if pool.paused || of.queued.is_some() {
            return false;
        }
        // Who waits for a server of its own and came first is not overtaken.
        let overtakes = pool.pool.oldest_waiting().is_some_and(|(_, since)| since < arrived);
        let carrier = if overtakes { None } else { self.carrier_with_room(at, group) };
        if let Some(server) = carrier {
            return self.load(server, group);
        }
        let pool = &self.pools[at as usize];
        let of = &pool.company.groups[group];
        let open = of.carriers.iter().filter(|server| {
            let conn = &self.servers[**server];
            !conn.carrier.is_closed() && !self.retires(conn)
        });
        let most = of.most_carriers();
        let impatient = of.grows_impatient() && now.since(arrived) >= PATIENCE;
        if !(open.count() < most || impatient || overtakes) {
            self.pools[at as usize].company.groups[group].climb.full();
            return false;
        }
        if let Some(server) = self.idle_with(at, &of.settings.clone()) {
            self.carry(server, group);
            return self.load(server, group);
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
        fresh && conn.server.litter == 0 && Arc::ptr_eq(&conn.server.settings, settings)
    }

    /// One of the group waits in the pool's queue, as a client without a server does.
    fn queue_up(&mut self, at: u32, group: usize, slot: u32, arrived: Moment) {
        let pool = &mut self.pools[at as usize];
        pool.company.groups[group].queued = Some(slot);
        pool.pool.wait(slot, arrived, self.clients[slot].party());
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

    /// Writes one trip. False: nobody who waits may be on it.
    fn load(&mut self, server: u32, group: usize) -> bool {
        let at = self.servers[server].pool as usize;
        let writes = self.pools[at].company.groups[group].writes;
        let mut rides = std::mem::take(&mut self.rides);
        let mut alone = Vec::new();
        self.board(server, group, &mut rides, &mut alone);
        for owner in alone {
            self.travel_bare(owner.0);
        }
        let loaded = !rides.is_empty();
        let travel = self.travels(&rides);
        // One alone commits as it would on a connection of its client's.
        let several = writes && rides.len() > 1;
        let train = several && travel.waits_for_tail();
        if train {
            self.begin_train(server, travel);
        }
        let mut open = false;
        for owner in rides.drain(..) {
            let slot = owner.0;
            let Some(mut unit) = self.clients.get_mut(slot).and_then(|client| client.unit.take())
            else {
                continue;
            };
            let conn = &mut self.servers[server];
            conn.carrier.board(owner, self.now);
            (unit.server, unit.unparsed) = (server, false);
            unit.held = several || unit.retries > 0;
            unit.tail = train;
            open = self.write_unit(server, slot, &unit, open);
            self.clients[slot].corked = unit.held;
            self.clients[slot].unit = Some(unit);
        }
        self.rides = rides;
        if open {
            self.end_batch(server);
        }
        if !loaded {
            self.settle_carrier(server);
            return false;
        }
        self.depart(server);
        if train {
            self.end_train(server, travel);
        }
        true
    }

    /// Chooses who rides: what has waited longest, as long as it is not too much for one trip.
    fn board(&mut self, server: u32, group: usize, rides: &mut Vec<Owner>, alone: &mut Vec<Owner>) {
        let carrier = &self.servers[server].carrier;
        let at = self.servers[server].pool as usize;
        let PoolState { company, config, shapes, .. } = &mut self.pools[at];
        let of = &mut company.groups[group];
        let writes = of.writes;
        let trips = if of.writes { 1 } else { TRIPS_MAX };
        let mut most = carrier.room(config.coalesce_depth as usize, trips);
        if of.writes {
            most = most.min(of.share(config.pool_size as usize));
        }
        // What is slow makes short trips: the last of one is not to wait until it stalls.
        let budget = config.coalesce_stall / 2;
        let mut expected = Duration::ZERO;
        let (has_room, mut taken) = (most > 0, 0);
        let clients = &self.clients;
        let mut goes_on = |owner: Owner| {
            let unit = clients.get(owner.0).and_then(|client| client.unit.as_ref());
            let shape = unit.and_then(|unit| shapes.get(unit.shape));
            expected += shape.map_or(Duration::ZERO, |shape| match writes {
                true => shape.history.work(),
                false => shape.history.pace(),
            });
            most = most.min(unit.map_or(0, |unit| usize::from(unit.max_train)));
            taken += 1;
            taken < most && expected <= budget
        };
        let (common, worker, now) = (&self.common, self.worker, self.now);
        let (shares_keys, mut wakes) = (self.config.runtime.workers > 1, 0);
        let mut train = Train {
            rides,
            alone,
            goes_on: &mut goes_on,
            has_room,
            reserve: &mut |keys| !shares_keys || common.keys.take(keys, worker, now, &mut wakes),
            class: None,
        };
        of.waiting.load(server, &mut train);
        self.wake_for_keys(wakes);
    }

    /// How a train travels, which is the same for all who ride.
    fn travels(&self, rides: &[Owner]) -> Travel {
        let first = rides.first().and_then(|owner| self.clients.get(owner.0));
        first.and_then(|client| client.unit.as_ref()).map_or(Travel::Train, |unit| unit.travel)
    }

    /// What has boarded is written.
    fn depart(&mut self, server: u32) {
        let conn = &mut self.servers[server];
        let pool = &mut self.pools[conn.pool as usize];
        pool.totals.coalesced.trips += 1;
        pool.totals.server_assignment_count += 1;
        let company = conn.carrier.len().min(usize::from(u16::MAX)) as u16;
        for owner in conn.carrier.boarding() {
            let Some(client) = self.clients.get_mut(owner.0) else { continue };
            let Some(unit) = &mut client.unit else { continue };
            unit.company = company - 1;
            let waited = self.now.since(unit.arrived);
            if let Some(trace) = &mut client.trace {
                trace.wait = waited;
            }
            let waited = waited.as_micros() as u64;
            pool.totals.wait_time_us += waited;
            pool.totals.wait_time.record(waited);
        }
        conn.carrier.depart();
    }

    /// Workers that wait for keys which are free now.
    fn wake_for_keys(&mut self, wakes: Workers) {
        for worker in 0..self.config.runtime.workers.min(64) as u8 {
            if wakes & 1 << worker != 0 && worker != self.worker {
                self.effects.push(Effect::Peer(worker, ToWorker::KeysFree));
            }
        }
    }

    /// A statement on a train was answered.
    pub(super) fn rode(&mut self, slot: u32) {
        let Some(group) = self.group_of(slot) else { return };
        let pool = self.clients[slot].pool as usize;
        self.pools[pool].company.groups[group].climb.done();
    }

    /// A statement on a train holds no lock any more: it has committed, or failed.
    pub(super) fn release_keys(&mut self, slot: u32) {
        let Some(group) = self.group_of(slot) else { return };
        let client = &self.clients[slot];
        let Some(unit) = client.unit.as_ref().filter(|unit| unit.server != NONE && !unit.done)
        else {
            return;
        };
        self.pools[client.pool as usize].company.groups[group].waiting.done(&unit.keys);
        if self.config.runtime.workers > 1 {
            let wakes = self.common.keys.give(&unit.keys, self.worker, self.now);
            self.wake_for_keys(wakes);
        }
    }

    /// A server that carries statements has been read: with nothing in flight it is given back,
    /// and who waits for one, here or alone, gets it.
    pub(super) fn settle_carrier(&mut self, server: u32) {
        let conn = &mut self.servers[server];
        if !conn.server.is_quiet() || !conn.carrier.is_empty() {
            return self.cancel_late(server);
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
        if self.suspended.is_some() {
            return None;
        }
        let due = self.shared.iter().flat_map(|at| {
            let pool = &self.pools[*at as usize];
            let limit = pool.config.coalesce_stall;
            let carriers = pool.company.carriers();
            let stalls =
                carriers.filter_map(move |server| self.servers[server].carrier.stalls_at(limit));
            let waits = pool.company.groups.iter().filter_map(|group| {
                let waits = group.queued.is_none() && group.grows_impatient();
                let (_, arrived) = group.waiting.first().filter(|_| waits)?;
                (!pool.paused).then(|| arrived.after(PATIENCE))
            });
            let groups = pool.company.groups.iter();
            let parked = groups.filter(|group| group.waiting.is_parked());
            stalls.chain(waits).chain(parked.map(|_| self.now.after(KEPT_FOR)))
        });
        due.chain(self.pulses_due()).min()
    }
}
