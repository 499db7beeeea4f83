//! LISTEN in transaction and statement mode: a client's channels are its own, whichever server it
//! has, and an idle client that listens has none.
//!
//! LISTEN and UNLISTEN run as they come. A server that is lent to a client that listens is told its
//! channels first. When the transaction is over, the survey asks which channels the server listens
//! to now: folded, cut, rolled back and undone by savepoints as PostgreSQL does it. Its ReadyForQuery
//! is kept back until the connection that listens for all (`control/listening.rs`) listens to them,
//! and has passed on what was committed before; then the server has no part in it any more.
//!
//! What the client is told comes from that connection, except for notifications of its own: see
//! `session/listens.rs`.
//!
//! A client that keeps its server (`pins.rs`) is told over that connection too: between its
//! transactions at once, whatever its server hears then, within them at their end. Its server goes
//! on to listen to its channels, so it is told them only once.

use std::collections::HashMap;
use std::sync::Arc;

use backend::reply::{Fate, Kind, Owner, Request};
use wire::pg::backend::{self as reply, TxStatus};
use wire::pg::frontend::{self, tag};
use wire::pg::sqlstate;

use super::login::key_number;
use super::{Effect, Plane, PoolState, Preparing, OUT_BYTES_HIGH};
use crate::config::{ListenMode, PoolMode};
use crate::control::messages::{Audience, Ref, ToControl};
use crate::session::client::{Client, Hold, NONE};
use crate::session::listens::{channel_of, put_command, Listens};
use crate::session::login::Refused;
use crate::worker::snapshot::ChannelSnapshot;

/// Bytes of notifications that may wait for one client.
const HELD_BYTES_MAX: usize = 8 << 20;

/// Channels that one client may listen to.
const CHANNELS_MAX: usize = 1024;

/// ReadyForQuery outside of a transaction.
const READY: &[u8] = b"Z\0\0\0\x05I";

/// The clients of one audience at this worker.
#[derive(Debug)]
pub struct Room {
    audience: Arc<Audience>,
    channels: HashMap<Arc<[u8]>, Channel, foldhash::fast::RandomState>,
}

#[derive(Debug, Default)]
struct Channel {
    clients: Vec<u32>,
    /// Clients that wait until it is listened to.
    coming: u32,
    delivered: u64,
}

impl Room {
    /// A client listens to it no more, or waits no longer for it. True: nobody does.
    fn leave(&mut self, channel: &[u8], slot: u32, came: bool) -> bool {
        let Some(known) = self.channels.get_mut(channel) else { return false };
        match came {
            true => known.clients.retain(|client| *client != slot),
            false => known.coming = known.coming.saturating_sub(1),
        }
        let empty = known.clients.is_empty() && known.coming == 0;
        if empty {
            self.channels.remove(channel);
        }
        empty
    }

    /// A client wants to listen to it. With whether nobody did.
    fn await_channel(&mut self, channel: &[u8]) -> (Arc<[u8]>, bool) {
        if let Some((name, _)) = self.channels.get_key_value(channel) {
            let name = name.clone();
            self.channels.entry(name.clone()).or_default().coming += 1;
            return (name, false);
        }
        let name: Arc<[u8]> = channel.into();
        self.channels.insert(name.clone(), Channel { coming: 1, ..Channel::default() });
        (name, true)
    }
}

/// What becomes of a client's channels.
#[derive(Debug, Default)]
struct Changes {
    more: Vec<Arc<[u8]>>,
    fewer: Vec<Arc<[u8]>>,
}

impl PoolState {
    /// Its clients' channels are their own.
    pub(super) fn shares_listening(&self) -> bool {
        self.config.listen == ListenMode::Shared && self.config.mode != PoolMode::Session
    }
}

impl Plane {
    /// A text that listens goes to the client's server.
    pub(super) fn will_listen(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        client.listens.get_or_insert_default();
        self.servers[client.server].listening = true;
    }

    /// Whether a message of a client that listens has to wait for an earlier batch: behind that
    /// comes a ReadyForQuery that is kept back.
    pub(super) fn waits_its_turn(&self, slot: u32, tag: u8) -> bool {
        let client = &self.clients[slot];
        if client.listens.is_none()
            || matches!(tag, tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL)
        {
            return false;
        }
        let Some(conn) = self.servers.get(client.server) else { return false };
        let copies = client.copies_in || conn.server.copies_in();
        !conn.server.is_quiet() && !client.batch_open && !copies
    }

    /// A server that a client has got is told what the client listens to, in one query. The client
    /// is held until then, and until it has been told what was committed before.
    pub(super) fn bring_channels(&mut self, slot: u32, server: u32) {
        let (Some(client), Some(conn)) = (self.clients.get_mut(slot), self.servers.get_mut(server))
        else {
            return;
        };
        let Some(listens) = client.listens.as_mut().filter(|all| all.has_channels()) else {
            return;
        };
        if std::mem::replace(&mut conn.listening, true) {
            return;
        }
        let mut query = Vec::new();
        for channel in listens.channels.iter().chain(&listens.coming) {
            put_command(&mut query, b"LISTEN", channel);
        }
        client.hold = Hold::SetUp;
        conn.preparing = Preparing::Listening;
        let request = Request::with_fate(Owner(slot), Kind::Query, Fate::Setup);
        self.send(server, request, |out| frontend::put_query(out, query));
        self.ask_what_was(slot);
    }

    /// Before a client that listens begins, it is told what was committed until now.
    fn ask_what_was(&mut self, slot: u32) {
        let (asker, client) = (self.reference(slot), &mut self.clients[slot]);
        let Some(listens) = &mut client.listens else { return };
        (listens.begins, listens.rests) = (true, false);
        listens.asked = listens.asked.wrapping_add(1);
        let (room, pool, number) = (listens.audience, client.pool, listens.asked);
        self.tell_changes(room, pool, Changes::default(), Some((asker, number)));
    }

    /// A client that keeps its server, and listens, goes on there. True: it is held until it has
    /// been told what was committed before.
    pub(super) fn begins_again(&mut self, slot: u32) -> bool {
        let client = &mut self.clients[slot];
        let Some(listens) = client.listens.as_mut().filter(|listens| listens.rests) else {
            return false;
        };
        listens.rests = false;
        if !listens.has_channels() {
            return false;
        }
        client.hold = Hold::Listens;
        self.ask_what_was(slot);
        true
    }

    /// A client that keeps its server, and listens, has done with it for now.
    pub(super) fn rest_pinned(&mut self, slot: u32) {
        let Some(listens) = &mut self.clients[slot].listens else { return };
        if std::mem::replace(&mut listens.rests, true) {
            return;
        }
        self.ask_to_listen(slot);
        self.pass_on(slot);
    }

    /// The client's server knows its channels.
    pub(super) fn channels_brought(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        if client.listens.as_ref().is_some_and(|listens| listens.begins) {
            client.hold = Hold::Listens;
        }
    }

    /// A client's server was told something, on a channel that the client listens to.
    pub(super) fn notified_by_server(&mut self, slot: u32, body: &[u8]) {
        let Some(listens) = &mut self.clients[slot].listens else { return };
        if listens.rests {
            // It is told by the connection that listens for all.
            return;
        }
        let mut message = Vec::with_capacity(body.len() + 5);
        message.push(reply::tag::NOTIFICATION);
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(body);
        if listens.hold_here(message.into()) > HELD_BYTES_MAX {
            self.too_slow(slot);
        }
    }

    /// A client that listens, or has tried to, has been answered outside of a transaction: it gets
    /// the ReadyForQuery when its channels are listened to.
    pub(super) fn keep_ready(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        let (Some(listens), Some(conn)) = (&mut client.listens, self.servers.get(client.server))
        else {
            return;
        };
        // Of a COPY that has failed there may be more to come, and the server stays until it has.
        let whole = conn.server.is_quiet()
            && !client.batch_open
            && client.rest == 0
            && client.out.ends_with(READY);
        if listens.ready || !whole {
            return;
        }
        client.out.truncate(client.out.len() - READY.len());
        listens.ready = true;
        listens.pid = conn.pid;
        client.hold = Hold::Listens;
    }

    /// The survey has found these channels on the client's server.
    pub(super) fn channels_found(&mut self, slot: u32, server: u32, found: Vec<Box<[u8]>>) {
        let conn = &mut self.servers[server];
        conn.listening |= !found.is_empty();
        let client = &mut self.clients[slot];
        if !conn.server.apart {
            return;
        }
        if client.listens.is_some() || !found.is_empty() {
            client.listens.get_or_insert_default().found = Some(found);
        }
    }

    /// A client that listens is done with its server.
    pub(super) fn ask_to_listen(&mut self, slot: u32) {
        if self.other_encoding(slot) {
            return;
        }
        let Some(mut listens) = self.clients[slot].listens.take() else { return };
        if !listens.ready && listens.found.is_none() {
            self.clients[slot].listens = Some(listens);
            return;
        }
        let changes = self.change_channels(slot, &mut listens);
        let some = listens.has_channels();
        let (room, ready) = (listens.audience, listens.ready);
        let asks = some && (ready || !listens.coming.is_empty());
        if asks {
            listens.asked = listens.asked.wrapping_add(1);
        }
        let number = listens.asked;
        let many = listens.channels.len() + listens.coming.len() > CHANNELS_MAX;
        self.clients[slot].listens = Some(listens);
        let asker = asks.then(|| (self.reference(slot), number));
        self.tell_changes(room, self.clients[slot].pool, changes, asker);
        if many {
            let message = format!("a client may listen to {CHANNELS_MAX} channels");
            let refused = Refused::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("Listen to fewer channels, or on several connections. [P0443]");
            return self.close_client(slot, Some(&refused));
        }
        if ready && !some {
            self.listens_now(slot);
        } else if !some {
            self.forget_listening(slot);
        }
    }

    /// Makes a client's channels those that were found.
    fn change_channels(&mut self, slot: u32, listens: &mut Listens) -> Changes {
        let mut changes = Changes::default();
        let Some(found) = listens.found.take() else { return changes };
        if !listens.has_channels() {
            if found.is_empty() {
                return changes;
            }
            listens.audience = self.room_of(slot);
        }
        let room = &mut self.rooms[listens.audience as usize];
        let wanted: std::collections::HashSet<&[u8]> = found.iter().map(|one| &**one).collect();
        for (all, came) in [(&mut listens.channels, true), (&mut listens.coming, false)] {
            all.retain(|channel| {
                let stays = wanted.contains(&**channel);
                if !stays && room.leave(channel, slot, came) {
                    changes.fewer.push(channel.clone());
                }
                stays
            });
        }
        let known = listens.channels.iter().chain(&listens.coming);
        let known: std::collections::HashSet<&[u8]> = known.map(|one| &**one).collect();
        let fresh: Vec<_> = found.iter().filter(|one| !known.contains(&***one)).collect();
        for channel in fresh {
            let (name, first) = room.await_channel(channel);
            if first {
                changes.more.push(name.clone());
            }
            listens.coming.push(name);
        }
        changes
    }

    /// The number of the room for a client with these settings, made if it is new.
    fn room_of(&mut self, slot: u32) -> u32 {
        let client = &self.clients[slot];
        let audience = Audience {
            database: self.pools[client.pool as usize].name.database.clone(),
            encoding: client.settings.get("client_encoding").unwrap_or("SQL_ASCII").to_owned(),
        };
        let known = self.rooms.iter().position(|room| *room.audience == audience);
        known.unwrap_or_else(|| {
            let channels = HashMap::default();
            self.rooms.push(Room { audience: Arc::new(audience), channels });
            self.rooms.len() - 1
        }) as u32
    }

    fn tell_changes(&mut self, room: u32, pool: u32, changes: Changes, asker: Option<(Ref, u32)>) {
        let Changes { more, fewer } = changes;
        let (Some(room), Some(pool)) =
            (self.rooms.get(room as usize), self.pools.get(pool as usize))
        else {
            return;
        };
        if more.is_empty() && fewer.is_empty() && asker.is_none() {
            return;
        }
        self.effects.push(Effect::Control(ToControl::Listen {
            worker: self.worker,
            audience: room.audience.clone(),
            config: pool.config.clone(),
            proven: pool.proven.clone(),
            more,
            fewer,
            asker,
        }));
    }

    /// What a client has asked for is listened to now.
    pub(super) fn listened(&mut self, client: Ref, number: u32) {
        let Some(found) = self.clients.find(client.slot, client.generation) else { return };
        let Some(listens) = &mut found.listens else { return };
        let Some(room) = self.rooms.get_mut(listens.audience as usize) else { return };
        for channel in listens.coming.drain(..) {
            let known = room.channels.entry(channel.clone()).or_default();
            known.coming = known.coming.saturating_sub(1);
            known.clients.push(client.slot);
            listens.channels.push(channel);
        }
        if listens.asked != number {
            self.pass_on(client.slot);
        } else if listens.ready {
            self.listens_now(client.slot);
        } else if std::mem::take(&mut listens.begins) {
            self.begins_now(client.slot);
        } else {
            self.pass_on(client.slot);
        }
    }

    /// The client gets what has come meanwhile, and its ReadyForQuery.
    fn listens_now(&mut self, slot: u32) {
        let pid = key_number(self.worker, slot);
        let client = &mut self.clients[slot];
        client.hold = Hold::No;
        let Some(mut listens) = client.listens.take() else { return };
        listens.ready = false;
        let mut told = 0;
        self.tell(slot, |out| {
            told = listens.tell(pid, out);
            reply::put_ready(out, TxStatus::Idle);
        });
        self.clients[slot].listens = Some(listens);
        self.count_told(slot, told);
        self.forget_listening(slot);
        self.resume_later(slot);
    }

    /// The client has a server, and has sent it nothing: it is idle still.
    fn begins_now(&mut self, slot: u32) {
        let Some(mut listens) = self.clients[slot].listens.take() else { return };
        let mut told = 0;
        if listens.is_owed() {
            self.tell(slot, |out| told = listens.tell(0, out));
        }
        let client = &mut self.clients[slot];
        client.listens = Some(listens);
        if client.hold == Hold::Listens {
            client.hold = Hold::No;
            self.resume_later(slot);
        }
        self.count_told(slot, told);
    }

    fn count_told(&mut self, slot: u32, told: u64) {
        if told > 0 {
            self.count(slot, |totals| totals.notifications += told);
            self.read_notified(slot);
        }
    }

    fn forget_listening(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        if client.listens.as_ref().is_some_and(|listens| listens.is_over()) {
            client.listens = None;
        }
    }

    /// A notification has come for all clients here that listen to its channel.
    pub(super) fn notified(&mut self, audience: &Audience, message: &Arc<[u8]>) {
        let channel = channel_of(message);
        let Some(at) = self.rooms.iter().position(|room| *room.audience == *audience) else {
            return;
        };
        let Some(known) = self.rooms[at].channels.get_mut(channel) else { return };
        known.delivered += known.clients.len() as u64;
        let clients = std::mem::take(&mut known.clients);
        let mut slow = Vec::new();
        for slot in &clients {
            let Some(client) = self.clients.get_mut(*slot) else { continue };
            let Some(listens) = &mut client.listens else { continue };
            if listens.hold(message.clone()) > HELD_BYTES_MAX {
                slow.push(*slot);
            }
            self.pass_on(*slot);
        }
        if let Some(known) = self.rooms[at].channels.get_mut(channel) {
            known.clients = clients;
        }
        slow.into_iter().for_each(|slot| self.too_slow(slot));
    }

    /// An idle client is told what waits for it, as long as it reads.
    pub(super) fn pass_on(&mut self, slot: u32) {
        let mut told = 0;
        while let Some(client) = self.clients.get_mut(slot) {
            let Some(listens) = &mut client.listens else { break };
            let idle = (client.server == NONE || listens.rests) && !listens.ready;
            if !idle || client.out.len() >= OUT_BYTES_HIGH {
                break;
            }
            let Some(message) = listens.take() else { break };
            self.tell(slot, |out| out.extend_from_slice(&message));
            told += 1;
        }
        self.count_told(slot, told);
    }

    /// More notifications wait for a client than are kept.
    fn too_slow(&mut self, slot: u32) {
        let message = format!("more than {HELD_BYTES_MAX} bytes of notifications wait");
        let refused = Refused::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
            .detail("The client does not read, or is in a transaction for long.")
            .hint("Connect and LISTEN again; notifications are missed till then. [P0442]");
        self.close_client(slot, Some(&refused));
    }

    /// A client leaves, and what it listened to.
    pub(super) fn stop_listening(&mut self, slot: u32) {
        let Some(listens) = self.clients[slot].listens.take() else { return };
        let Some(room) = self.rooms.get_mut(listens.audience as usize) else { return };
        let mut changes = Changes::default();
        for (all, came) in [(&listens.channels, true), (&listens.coming, false)] {
            let gone = all.iter().filter(|channel| room.leave(channel, slot, came)).cloned();
            changes.fewer.extend(gone);
        }
        self.tell_changes(listens.audience, self.clients[slot].pool, changes, None);
    }

    /// Nobody has listened for these clients for a while: each is told, as it would be if its own
    /// connection had been lost.
    pub(super) fn listening_lost(&mut self, audience: &Audience, why: &str) {
        let Some(at) = self.rooms.iter().position(|room| *room.audience == *audience) else {
            return;
        };
        self.all_lost_listening(why, |_, listens| listens.audience == at as u32);
    }

    /// By a reload: who listens from now on does so on his own server.
    pub(super) fn no_longer_shared(&mut self, pool: u32) {
        let why = "clients of this pool listen on their own servers since a reload";
        self.all_lost_listening(why, |client, _| client.pool == pool);
    }

    fn all_lost_listening(&mut self, why: &str, which: impl Fn(&Client, &Listens) -> bool) {
        let lost = |client: &Client| client.listens.as_ref().is_some_and(|all| which(client, all));
        let clients: Vec<u32> =
            self.clients.iter().filter(|(_, client)| lost(client)).map(|(slot, _)| slot).collect();
        clients.into_iter().for_each(|slot| self.lost_listening(slot, why));
    }

    pub(super) fn lost_listening(&mut self, slot: u32, why: &str) {
        let refused = Refused::new(
            sqlstate::ADMIN_SHUTDOWN,
            "the connection that listens for this client is lost",
        )
        .detail(why)
        .hint("Connect and LISTEN again; notifications may have been missed. [P0441]");
        self.close_client(slot, Some(&refused));
    }

    /// The client has another encoding than the one in which it is told: then it is closed.
    fn other_encoding(&mut self, slot: u32) -> bool {
        let client = &self.clients[slot];
        let Some(listens) = client.listens.as_ref() else { return false };
        let room = self.rooms.get(listens.audience as usize);
        let Some(room) = room.filter(|_| listens.has_channels()) else { return false };
        let now = client.settings.get("client_encoding");
        if now.is_none_or(|now| now == room.audience.encoding) {
            return false;
        }
        let refused = Refused::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            "client_encoding can't be changed while the client listens",
        )
        .hint("Set it before LISTEN, or UNLISTEN * first. [P0444]");
        self.close_client(slot, Some(&refused));
        true
    }

    /// Rows of SHOW CHANNELS.
    pub(super) fn channels(&self) -> Vec<ChannelSnapshot> {
        let of_room = |room: &Room| -> Vec<ChannelSnapshot> {
            let row = |(channel, known): (&Arc<[u8]>, &Channel)| ChannelSnapshot {
                database: room.audience.database.clone(),
                channel: String::from_utf8_lossy(channel).into_owned(),
                clients: known.clients.len() as u64,
                delivered: known.delivered,
            };
            room.channels.iter().map(row).collect()
        };
        self.rooms.iter().flat_map(of_room).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_there_while_anybody_wants_it() {
        let audience = Audience { database: "app".to_owned(), encoding: "UTF8".to_owned() };
        let channels = HashMap::default();
        let mut room = Room { audience: Arc::new(audience), channels };
        let (name, first) = room.await_channel(b"a");
        assert!(first);
        let (again, second) = room.await_channel(b"a");
        assert!(!second && Arc::ptr_eq(&name, &again), "one name for all");
        room.channels.get_mut(&name).expect("known").clients.push(7);
        // One gives up, one leaves, one was never there.
        assert!(!room.leave(b"a", 8, false));
        assert!(!room.leave(b"a", 9, true));
        assert!(!room.leave(b"b", 7, true));
        assert!(!room.leave(b"a", 7, true), "one still waits");
        assert!(room.leave(b"a", 8, false));
        assert!(room.channels.is_empty());
    }
}
