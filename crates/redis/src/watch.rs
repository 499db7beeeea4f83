//! WATCH: who wants to know that a key has changed.

use hashbrown::HashMap;

use crate::session::ConnId;

/// Watchers by key. A change trips all watchers of the key: their EXEC does nothing.
#[derive(Debug, Default)]
pub struct Watched {
    keys: HashMap<(u16, Box<[u8]>), Vec<Watcher>, foldhash::fast::RandomState>,
    /// Connections whose watched keys have changed, to be told to their sessions.
    tripped: Vec<ConnId>,
}

#[derive(Debug)]
struct Watcher {
    conn: ConnId,
    /// The key's time was over when WATCH came, and its row is still there: that it goes is no
    /// change.
    is_stale: bool,
}

impl Watched {
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn add(&mut self, db: u16, key: &[u8], conn: ConnId) {
        let watchers = self.keys.entry((db, key.into())).or_default();
        if !watchers.iter().any(|watcher| watcher.conn == conn) {
            watchers.push(Watcher { conn, is_stale: false });
        }
    }

    /// What the connection watches is a key whose time is over.
    pub fn note_stale(&mut self, db: u16, key: &[u8], conn: ConnId) {
        let watchers = self.keys.get_mut(&(db, Box::from(key)));
        let mut watchers = watchers.into_iter().flatten();
        if let Some(watcher) = watchers.find(|watcher| watcher.conn == conn) {
            watcher.is_stale = true;
        }
    }

    pub fn is_stale(&self, db: u16, key: &[u8], conn: ConnId) -> bool {
        let watchers = self.keys.get(&(db, Box::from(key)));
        let mut watchers = watchers.into_iter().flatten();
        watchers.any(|watcher| watcher.conn == conn && watcher.is_stale)
    }

    pub fn remove(&mut self, db: u16, key: &[u8], conn: ConnId) {
        let name = (db, Box::from(key));
        if let Some(watchers) = self.keys.get_mut(&name) {
            watchers.retain(|watcher| watcher.conn != conn);
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
            self.tripped.extend(watchers.iter().map(|watcher| watcher.conn));
        }
    }

    /// The key is not there any more.
    pub fn removed(&mut self, db: u16, key: &[u8]) {
        let Some(watchers) = self.keys.get_mut(&(db, Box::from(key))) else { return };
        for watcher in watchers {
            if !std::mem::take(&mut watcher.is_stale) {
                self.tripped.push(watcher.conn);
            }
        }
    }

    pub fn all_changed(&mut self, db: Option<u16>) {
        for ((of, _), watchers) in &self.keys {
            if db.is_none_or(|db| db == *of) {
                self.tripped.extend(watchers.iter().map(|watcher| watcher.conn));
            }
        }
    }

    /// All keys of a database have gone. Trips who watches one that nobody knows; what is known is
    /// told by [`Watched::changed`].
    pub fn flushed(&mut self, db: u16, is_known: impl Fn(&[u8]) -> bool) {
        for ((of, key), watchers) in &self.keys {
            if *of == db && !is_known(key) {
                self.tripped.extend(watchers.iter().map(|watcher| watcher.conn));
            }
        }
    }

    pub fn take_tripped(&mut self) -> Vec<ConnId> {
        std::mem::take(&mut self.tripped)
    }
}
