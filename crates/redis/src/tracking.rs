//! CLIENT TRACKING: who has to hear that a key it has read is another one now.
//!
//! <https://redis.io/docs/latest/develop/reference/client-side-caching/>
//!
//! A key is remembered when it is read, and forgotten with the first change that is told. Changes
//! are told when they have committed, those by SQL when PostgreSQL has told them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use crate::reply::{Recorded, Reply};
use crate::server::{Event, Server};
use crate::session::{ConnId, Session};

/// Keys that are remembered; beyond it some are told as changed. `tracking-table-max-keys` may say
/// less.
pub const KEYS_MAX: usize = 1_000_000;

/// Where those with RESP2 hear of it, by redirection.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// What one connection wants to know.
#[derive(Debug, Clone, Default)]
pub struct Tracking {
    /// The number of the connection that is told instead; 0: this one.
    pub redirect: u64,
    pub redirect_to: Option<ConnId>,
    /// That connection has gone.
    pub is_broken: bool,
    /// All keys with these prefixes, whether read or not.
    pub broadcast: bool,
    pub prefixes: BTreeSet<Box<[u8]>>,
    pub opt_in: bool,
    pub opt_out: bool,
    /// Not what it has changed itself.
    pub no_loop: bool,
    /// CLIENT CACHING was given for the next command.
    pub caching: bool,
}

#[derive(Debug, Default)]
pub struct Table {
    clients: BTreeSet<ConnId>,
    keys: HashMap<Box<[u8]>, BTreeSet<ConnId>, foldhash::fast::RandomState>,
    prefixes: HashMap<Box<[u8]>, BTreeSet<ConnId>, foldhash::fast::RandomState>,
    /// Room for fewer keys than [`KEYS_MAX`].
    room: Option<usize>,
    /// Keys that there was no room for any more, with those who have read them.
    dropped: Vec<(Box<[u8]>, BTreeSet<ConnId>)>,
    /// Keys that have changed in this turn, and because of whom, by prefix.
    changed: BTreeMap<Box<[u8]>, Changed>,
}

/// Keys that have changed, each with the connection that changed it last.
type Changed = BTreeMap<Box<[u8]>, Option<ConnId>>;

impl Table {
    /// Nobody wants to know anything.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Pairs of a key and one who has read it.
    pub fn items(&self) -> usize {
        self.keys.values().map(BTreeSet::len).sum()
    }

    pub fn prefixes(&self) -> usize {
        self.prefixes.len()
    }

    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    pub fn on(&mut self, session: &mut Session, mut tracking: Tracking) {
        if let Some(before) = session.tracking.take() {
            tracking.prefixes.extend(before.prefixes);
        }
        for prefix in &tracking.prefixes {
            self.prefixes.entry_ref(&**prefix).or_default().insert(session.conn);
        }
        self.clients.insert(session.conn);
        session.tracking = Some(Box::new(tracking));
    }

    pub fn off(&mut self, session: &mut Session) {
        let Some(tracking) = session.tracking.take() else { return };
        self.clients.remove(&session.conn);
        for prefix in &tracking.prefixes {
            if let Some(clients) = self.prefixes.get_mut(prefix) {
                clients.remove(&session.conn);
                if clients.is_empty() {
                    self.prefixes.remove(prefix);
                }
            }
        }
        if self.clients.is_empty() {
            self.keys.clear();
        }
    }

    /// The session has read the key.
    pub fn read(&mut self, session: &Session, key: &[u8]) {
        let Some(tracking) = &session.tracking else { return };
        let asked = match (tracking.opt_in, tracking.opt_out) {
            (true, _) => tracking.caching,
            (_, true) => !tracking.caching,
            _ => true,
        };
        if tracking.broadcast || !asked {
            return;
        }
        self.keys.entry_ref(key).or_default().insert(session.conn);
        self.make_room();
    }

    /// Remembers so many keys at most; 0: as many as there may be.
    pub fn limit(&mut self, keys: usize) {
        self.room = (keys > 0).then_some(keys);
        self.make_room();
    }

    fn make_room(&mut self) {
        let room = self.room.unwrap_or(KEYS_MAX).min(KEYS_MAX);
        let surplus = self.keys.len().saturating_sub(room);
        if surplus > 0 {
            let some: Vec<Box<[u8]>> = self.keys.keys().take(surplus).cloned().collect();
            let gone = some.into_iter().filter_map(|key| self.keys.remove_entry(&key));
            self.dropped.extend(gone);
        }
    }
}

impl Server {
    /// The key is another one, because of this connection. No command runs.
    pub fn invalidate(&mut self, key: &[u8], by: Option<ConnId>) {
        if self.tracking.is_empty() {
            return;
        }
        let readers = self.tracking.keys.remove(key).unwrap_or_default();
        self.tell_readers(key, readers, by);
        let Table { prefixes, changed, .. } = &mut self.tracking;
        for prefix in prefixes.keys().filter(|prefix| key.starts_with(prefix)) {
            changed.entry(prefix.clone()).or_default().insert(key.into(), by);
        }
    }

    fn tell_readers(&mut self, key: &[u8], readers: BTreeSet<ConnId>, by: Option<ConnId>) {
        for conn in readers {
            let session = self.sessions.get(conn);
            let tracking = session.and_then(|session| session.tracking.as_ref());
            if tracking.is_some_and(|tracking| !tracking.broadcast) {
                self.tell_changed(conn, Some(&[key]), by);
            }
        }
    }

    /// Any key may be another one.
    pub fn invalidate_all(&mut self) {
        self.tracking.keys.clear();
        for conn in self.tracking.clients.clone() {
            self.tell_changed(conn, None, None);
        }
    }

    /// Tells of those that there was no room for, and of this turn's changes all that are
    /// interesting by their prefix, in one message for each prefix.
    pub fn tell_gathered(&mut self) {
        for (key, readers) in std::mem::take(&mut self.tracking.dropped) {
            self.tell_readers(&key, readers, None);
        }
        for (prefix, changed) in std::mem::take(&mut self.tracking.changed) {
            let clients = self.tracking.prefixes.get(&prefix).cloned().unwrap_or_default();
            for conn in clients {
                let session = self.sessions.get(conn);
                let tracking = session.and_then(|session| session.tracking.as_ref());
                let not_own = tracking.is_some_and(|tracking| tracking.no_loop);
                let keys = changed.iter().filter(|(_, by)| !not_own || **by != Some(conn));
                let keys: Vec<&[u8]> = keys.map(|(key, _)| &**key).collect();
                if !keys.is_empty() {
                    self.tell_changed(conn, Some(&keys), None);
                }
            }
        }
    }

    /// Without keys: all may be others.
    fn tell_changed(&mut self, conn: ConnId, keys: Option<&[&[u8]]>, by: Option<ConnId>) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        let Some(tracking) = &mut session.tracking else { return };
        if tracking.no_loop && by == Some(conn) {
            return;
        }
        let protocol = session.protocol;
        let mut message = Recorded::new(3);
        match tracking.redirect_to {
            None if protocol > 2 => start(&mut message),
            None => return,
            Some(other) => match self.sessions.get(other) {
                Some(target) if target.protocol > 2 => {
                    start(&mut message);
                    return self.finish(other, message, keys);
                }
                Some(target) if !target.subscriptions.is_empty() => {
                    message.push(3);
                    message.bulk(b"message");
                    message.bulk(CHANNEL);
                    return self.finish(other, message, keys);
                }
                Some(_) => return,
                None => return self.tell_broken(conn),
            },
        }
        self.finish(conn, message, keys);
    }

    fn finish(&mut self, conn: ConnId, mut message: Recorded, keys: Option<&[&[u8]]>) {
        match keys {
            Some(keys) => {
                message.array(keys.len());
                keys.iter().for_each(|key| message.bulk(key));
            }
            None => message.null(),
        }
        self.tell(Event::Push { conn, message: Arc::new(message) });
    }

    /// The one it redirects to has gone.
    fn tell_broken(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(conn) else { return };
        let protocol = session.protocol;
        let Some(tracking) = &mut session.tracking else { return };
        tracking.is_broken = true;
        let redirect = tracking.redirect;
        if protocol > 2 {
            let mut message = Recorded::new(3);
            message.push(2);
            message.bulk(b"tracking-redir-broken");
            message.integer(redirect as i64);
            self.tell(Event::Push { conn, message: Arc::new(message) });
        }
    }
}

fn start(message: &mut Recorded) {
    message.push(2);
    message.bulk(b"invalidate");
}
