//! What becomes of statements that share a server when something goes wrong: an error before them,
//! a server that stalls or is lost, a client that goes or cancels.

use backend::reply::{Again, Owner};
use backend::server::LastWords;
use wire::pg::sqlstate;

use super::{Place, Plane};
use crate::procedures::Travel;
use crate::route::{Way, Why};
use crate::session::client::{Hold, NONE};
use crate::session::login::Refused;
use crate::session::unit::Form;

/// A statement that came to nothing so often among others travels alone.
const TRIES_MAX: u8 = 3;

impl Plane {
    /// A statement came to nothing where it was, and left nothing: it is sent again.
    pub(super) fn unit_again(&mut self, slot: u32, again: Again) {
        self.release_keys(slot);
        let client = &mut self.clients[slot];
        let Some(unit) = &mut client.unit else { return };
        if let Some(conn) = self.servers.get_mut(unit.server) {
            conn.carrier.leave(Owner(slot), true);
        }
        if unit.travel == Travel::Batch {
            unit.travel = Travel::Train;
        }
        let totals = &mut self.pools[client.pool as usize].totals.coalesced;
        totals.skipped += u64::from(!matches!(again, Again::Conflict | Again::Stale));
        match again {
            // Who has a server for itself.
            Again::Elsewhere => {}
            Again::Skipped => {}
            // It has the new one already.
            Again::Stale => self.pools[client.pool as usize].totals.replanned += 1,
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
                return self.travel_bare(slot);
            }
            Again::Conflict => {
                client.out.clear();
                (unit.tries, unit.retries) = (0, unit.retries.saturating_sub(1));
                if let Some(shape) = self.pools[client.pool as usize].shapes.get_mut(unit.shape) {
                    shape.retried += 1;
                }
            }
        }
        self.requeue(slot);
    }

    /// Back among those who wait, at the place of its arrival.
    pub(super) fn requeue(&mut self, slot: u32) {
        let Some(group) = self.group_of(slot) else { return };
        let client = &mut self.clients[slot];
        let Some(unit) = &mut client.unit else { return };
        (client.corked, client.answered) = (false, 0);
        (unit.server, unit.held, unit.tail) = (NONE, false, false);
        unit.tries += 1;
        if unit.tries >= TRIES_MAX {
            return self.travel_alone(slot, Why::Again);
        }
        let (arrived, at) = (unit.arrived, client.pool as usize);
        let (keys, class) = (unit.keys.clone(), unit.travel.class());
        if let Some(shape) = self.pools[at].shapes.get_mut(unit.shape) {
            shape.again += 1;
        }
        let waiting = &mut self.pools[at].company.groups[group].waiting;
        waiting.wait(Owner(slot), arrived, keys, class);
        self.shares(at as u32);
    }

    /// A statement can't ride with others: it goes without them. A call stays what can be tried
    /// again after a deadlock, which is as likely now.
    pub(super) fn travel_bare(&mut self, slot: u32) {
        let unit = self.clients.get_mut(slot).and_then(|client| client.unit.as_mut());
        match unit.filter(|unit| unit.retries > 0 && unit.travel != Travel::Each) {
            Some(unit) => {
                unit.travel = Travel::Each;
                unit.keys.clear();
                self.requeue(slot);
            }
            None => self.travel_alone(slot, Why::Again),
        }
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
    pub(super) fn leave_group(&mut self, slot: u32) {
        let Some(group) = self.group_of(slot) else { return };
        let at = self.clients[slot].pool as usize;
        let pool = &mut self.pools[at];
        let of = &mut pool.company.groups[group];
        let keys = self.clients[slot].unit.as_ref().map(|unit| unit.keys.clone());
        of.waiting.remove(Owner(slot), &keys.unwrap_or_default());
        if of.queued == Some(slot) {
            of.queued = None;
            pool.pool.leave(slot);
        }
    }

    /// Its statement writes: what was sent of it can't be taken back.
    fn rides_train(&self, slot: u32) -> bool {
        let unit = self.clients.get(slot).and_then(|client| client.unit.as_ref());
        unit.is_some_and(|unit| unit.way == Way::Train)
    }

    /// A client goes, with its statement on its way or waiting.
    pub(super) fn unit_abandoned(&mut self, slot: u32) {
        self.leave_group(slot);
        self.release_keys(slot);
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

    /// The first statement on a server takes too long, or is to be cancelled: the others are sent
    /// again elsewhere, and their late answers are swallowed.
    pub(super) fn empty_carrier(&mut self, server: u32) {
        let carrier = &self.servers[server].carrier;
        let group_writes = carrier.owners().any(|owner| self.rides_train(owner.0));
        let conn = &mut self.servers[server];
        conn.carrier.close();
        let works_for = conn.server.works_for();
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
        let unknown = refused.clone().code(sqlstate::TRANSACTION_RESOLUTION_UNKNOWN);
        owners.iter().for_each(|owner| self.release_keys(owner.0));
        self.pools[pool].company.remove_carrier(server);
        self.close_server(server, &refused.message);
        for ((owner, begun), within) in owners.into_iter().zip(begun).zip(within) {
            let trains = self.rides_train(owner.0);
            let Some(client) = self.clients.get_mut(owner.0) else { continue };
            if !begun && told != owner && !trains {
                self.pools[pool].totals.coalesced.lost += 1;
                self.requeue(owner.0);
                continue;
            }
            if let Some(unit) = &mut client.unit {
                unit.server = NONE;
            }
            let silent = !client.corked && (within || told == owner);
            let refused = if trains { &unknown } else { refused };
            self.close_client(owner.0, (!silent).then_some(refused));
        }
    }

    /// The client of a statement among others wants it cancelled: maybe by this server, which
    /// is then to be told.
    pub(super) fn cancel_unit(&mut self, slot: u32) -> Option<u32> {
        let unit = self.clients[slot].unit.as_ref()?;
        let server = unit.server;
        if server == NONE {
            self.travel_alone(slot, Why::Again);
            self.drop_request(slot);
            return None;
        }
        let owner = Owner(slot);
        let writes = self.rides_train(slot);
        let conn = &mut self.servers[server];
        if conn.server.is_dying() {
            return None;
        }
        if conn.server.works_for() == Some(owner) {
            conn.server.cancelling = Some(owner);
            self.empty_carrier(server);
            return Some(server);
        }
        if !writes {
            conn.server.disown(owner);
            conn.carrier.leave(owner, false);
            if let Some(unit) = &mut self.clients[slot].unit {
                unit.server = NONE;
            }
            self.carries_nobody(server);
            self.travel_alone(slot, Why::Again);
            self.drop_request(slot);
        } else if let Some(unit) = &mut self.clients[slot].unit {
            unit.cancelled = !unit.done;
        }
        None
    }

    /// Cancels what a server works on, if that was wished for before it was its turn.
    pub(super) fn cancel_late(&mut self, server: u32) {
        let conn = &mut self.servers[server];
        let Some(owner) = conn.server.works_for() else { return };
        let unit = self.clients.get_mut(owner.0).and_then(|client| client.unit.as_mut());
        let Some(unit) = unit.filter(|unit| unit.cancelled) else { return };
        unit.cancelled = false;
        // It may come late, for whoever boards then.
        conn.carrier.close();
        if !conn.server.is_dying() {
            conn.server.cancelling = Some(owner);
            self.cancel_server(server);
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

    pub(super) fn lost_words(place: &str, why: &str) -> Refused {
        Refused::new(
            sqlstate::CONNECTION_FAILURE,
            format!("server connection to {place} was lost: {why}"),
        )
        .detail("What was in flight may or may not have been done.")
        .hint("Connect again. [P0431]")
    }
}
