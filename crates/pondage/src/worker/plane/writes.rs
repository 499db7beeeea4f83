//! What clients write through the gateway, so that whoever reads afterwards sees it: noted when a
//! statement goes to PostgreSQL, told before its client hears that it is done.

use std::sync::Arc;

use cache::acks::Place;
use cache::request::Asked;
use cache::shared::Shared;
use cache::written::{add, Places};
use wire::pg::backend::TxStatus;
use wire::pg::frontend::{self, BindTail};

use super::caching::is_utf8;
use super::statements::Named;
use super::Plane;
use crate::route::Writes;

/// What a client's transaction may have written so far.
#[derive(Debug, Default)]
pub struct Wrote {
    places: Places,
    /// Of what was watched when it was noted: places of what came later are not among these.
    generation: u64,
    /// `COMMIT AND CHAIN`: it is done, though a transaction goes on.
    chained: bool,
}

impl Plane {
    /// What of this client's database is kept, if anything may be.
    fn kept_of(&self, slot: u32) -> Option<Arc<Shared>> {
        let pool = &self.pools[self.clients[slot].pool as usize];
        match &pool.cache {
            Some(cache) => Some(self.caches[cache.at].shared.clone()),
            // Others' pools of the same database may keep something.
            None => self.common.caches.known(&pool.config.database),
        }
    }

    /// Whether nobody has to know what this client writes.
    fn writes_unseen(&self, slot: u32) -> bool {
        let pool = &self.pools[self.clients[slot].pool as usize];
        pool.cache.is_none() && !self.common.caches.is_used()
    }

    /// A text goes to PostgreSQL. `bind`: the values that come with it, and the declared types.
    pub(super) fn note_writes(
        &mut self,
        slot: u32,
        text: &[u8],
        bind: Option<(BindTail<'_>, &[u8])>,
    ) {
        if self.writes_unseen(slot) || sql::transaction(text).is_some() {
            return;
        }
        if !self.scan.scan(text) {
            // It may be several statements, some of them COMMIT.
            self.note_unknown(slot);
            return self.chained(slot);
        }
        let pool = &mut self.pools[self.clients[slot].pool as usize];
        let id = pool.shapes.of(self.scan.shape());
        let verdict = pool.shapes.get(id).and_then(|shape| shape.verdict.as_deref());
        match verdict.map(|verdict| verdict.writes.clone()) {
            Some(Writes::Nothing) => return,
            Some(Writes::Rows(written)) => {
                let Some(shared) = self.kept_of(slot) else { return };
                let generation = shared.watch.list().generation;
                let utf8 = is_utf8(&self.clients[slot].settings);
                let asked = Asked { text, literals: self.scan.literals(), utf8, bind };
                let places = written.places(&asked, &shared);
                self.add_written(slot, &places, generation);
            }
            Some(Writes::Anything) | None => self.note_unknown(slot),
        }
        if ["commit", "end"].iter().any(|word| sql::after(text, &[word]).is_some()) {
            self.chained(slot);
        }
        self.judge_alone(slot, id, text);
    }

    /// A portal is made of a prepared statement. `tail`: the formats and values of the Bind, if
    /// they are all there.
    pub(super) fn note_bound(&mut self, slot: u32, named: &Named, tail: Option<&[u8]>) {
        if self.writes_unseen(slot) {
            return;
        }
        let names = self.clients[slot].names.as_deref();
        let statement = match named {
            Named::Shared(statement) => Some(statement.clone()),
            Named::Own(name) if name.is_empty() => {
                names.and_then(|names| names.unnamed()).and_then(|unnamed| unnamed.text.clone())
            }
            Named::Own(_) | Named::Sql(..) => None,
        };
        let bind = tail.and_then(|tail| frontend::bind_tail(tail).ok());
        match (statement, bind) {
            (Some(statement), Some(bind)) => {
                self.note_writes(slot, &statement.query, Some((bind, &statement.types)));
            }
            _ => self.note_unknown(slot),
        }
    }

    /// Something goes to PostgreSQL of which it is not known what it does.
    pub(super) fn note_unknown(&mut self, slot: u32) {
        if !self.writes_unseen(slot) {
            self.add_written(slot, &[Place::ANYTHING], 0);
        }
    }

    fn add_written(&mut self, slot: u32, places: &[Place], generation: u64) {
        if places.is_empty() {
            return;
        }
        let first = || Box::new(Wrote { generation, ..Wrote::default() });
        add(&mut self.clients[slot].wrote.get_or_insert_with(first).places, places);
    }

    fn chained(&mut self, slot: u32) {
        if let Some(wrote) = &mut self.clients[slot].wrote {
            wrote.chained = true;
        }
    }

    /// Behind this the client hears what has become of what it has sent.
    pub(super) fn tell_written(&mut self, slot: u32, status: TxStatus) {
        let client = &self.clients[slot];
        let Some(wrote) = &client.wrote else { return };
        if status != TxStatus::Idle && !wrote.chained {
            return;
        }
        if let Some(shared) = self.kept_of(slot) {
            match shared.watch.list().generation == wrote.generation {
                true => shared.acks.tell(&wrote.places),
                false => shared.acks.tell(&[Place::ANYTHING]),
            }
        }
        // Some of it may belong to what is still on its way.
        if self.servers.get(client.server).is_none_or(|conn| conn.server.is_quiet()) {
            self.clients[slot].wrote = None;
        }
    }
}
