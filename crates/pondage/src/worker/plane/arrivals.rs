//! Statements that shared a server are answered.

use std::sync::Arc;
use std::time::Duration;

use backend::reply::Owner;
use backend::statement::Statement;
use wire::pg::backend::TxStatus;
use wire::pg::frontend::Parse;

use super::replies::queue_out;
use super::trips::LONG_ANSWER_BYTES;
use super::Plane;
use crate::procedures::Travel;
use crate::route::{Way, Why};
use crate::session::client::Hold;
use crate::session::explain::Last;
use crate::session::unit::{extended, Form, Unit};

impl Plane {
    /// A statement that travelled with others is answered whole.
    pub(super) fn unit_answered(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        if client.unit.as_ref().is_some_and(|unit| unit.way == Way::Train && !unit.done) {
            self.release_keys(slot);
            self.rode(slot);
            let client = &mut self.clients[slot];
            let Some(unit) = &mut client.unit else { return };
            unit.done = true;
            if unit.tail {
                if unit.travel == Travel::Batch {
                    // The transaction is not the client's.
                    if let Some(status) = client.out.last_mut() {
                        *status = TxStatus::Idle.as_byte();
                    }
                }
                return;
            }
        }
        let client = &mut self.clients[slot];
        let Some(unit) = client.unit.take() else { return };
        let long = client.answered >= LONG_ANSWER_BYTES;
        if let Some(begun) = &mut client.begun {
            // The client thinks that it was in its transaction: ReadyForQuery, which is the last
            // that it was told and has not been written yet, says so.
            begun.failed |= unit.failed;
            if let Some(status) = client.out.last_mut() {
                *status = begun.status().as_byte();
            }
        }
        if std::mem::take(&mut client.corked) {
            queue_out(client, slot, &mut self.written_clients);
        }
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
        self.names_kept(slot, &unit);
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

    /// The client may bind the unnamed statement again without parsing it, and in a transaction
    /// use its portal again.
    fn names_kept(&mut self, slot: u32, unit: &Unit) {
        if unit.form != Form::Extended {
            return self.forget_portal(slot);
        }
        let Some(asked) = extended(&unit.bytes) else { return };
        if let Some(parse) = &asked.parse {
            if unit.unparsed {
                return self.clients[slot].names().forget_unnamed();
            }
            self.unnamed_parsed(slot, parse, unit.statement.clone());
        }
        if self.clients[slot].begun.is_some() {
            self.keep_portal(slot, unit.statement.as_ref(), asked.values);
        }
    }

    /// The client has parsed its unnamed statement, on no server of its own.
    pub(super) fn unnamed_parsed(
        &mut self,
        slot: u32,
        parse: &Parse<'_>,
        known: Option<Arc<Statement>>,
    ) {
        let text = known.unwrap_or_else(|| Statement::unregistered(parse.query, parse.types));
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
            match (took, pool.shapes.get_mut(shape)) {
                (Some(took), Some(shape)) if shape.way == Way::Train => shape.history.rode(took),
                (Some(took), Some(shape)) => shape.history.ran_among_others(took, short, stall),
                _ => {}
            }
        }
    }
}
