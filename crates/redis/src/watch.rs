//! WATCH: who wants to know that a key has changed.

use hashbrown::HashMap;

use crate::session::ConnId;

/// Watchers by key. A change trips all watchers of the key: their EXEC does nothing.
#[derive(Debug, Default)]
pub struct Watched {
    keys: HashMap<(u16, Box<[u8]>), Vec<ConnId>, foldhash::fast::RandomState>,
    /// Connections whose watched keys have changed, to be told to their sessions.
    tripped: Vec<ConnId>,
}

impl Watched {
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn add(&mut self, db: u16, key: &[u8], conn: ConnId) {
        let watchers = self.keys.entry((db, key.into())).or_default();
        if !watchers.contains(&conn) {
            watchers.push(conn);
        }
    }

    pub fn remove(&mut self, db: u16, key: &[u8], conn: ConnId) {
        let name = (db, Box::from(key));
        if let Some(watchers) = self.keys.get_mut(&name) {
            watchers.retain(|watcher| *watcher != conn);
            if watchers.is_empty() {
                self.keys.remove(&name);
            }
        }
    }

    pub fn changed(&mut self, db: u16, key: &[u8]) {
        if self.keys.is_empty() {
            return;
        }
        if let Some(watchers) = self.keys.get(&(db, Box::from(key))) {
            self.tripped.extend(watchers);
        }
    }

    pub fn all_changed(&mut self, db: Option<u16>) {
        for ((of, _), watchers) in &self.keys {
            if db.is_none_or(|db| db == *of) {
                self.tripped.extend(watchers);
            }
        }
    }

    /// All keys of a database have gone. Trips who watches one that nobody knows; what is known is
    /// told by [`Watched::changed`].
    pub fn flushed(&mut self, db: u16, is_known: impl Fn(&[u8]) -> bool) {
        for ((of, key), watchers) in &self.keys {
            if *of == db && !is_known(key) {
                self.tripped.extend(watchers);
            }
        }
    }

    pub fn take_tripped(&mut self) -> Vec<ConnId> {
        std::mem::take(&mut self.tripped)
    }
}
