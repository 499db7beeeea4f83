//! Publish and subscribe: who listens to what.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::command::glob;
use crate::session::ConnId;

/// Subscriptions of one connection.
pub const SUBSCRIPTIONS_MAX: usize = 1 << 20;

/// What a subscription names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    Channel,
    Pattern,
    /// A channel of SSUBSCRIBE: a name space of its own.
    Shard,
}

impl Space {
    const ALL: [Space; 3] = [Space::Channel, Space::Pattern, Space::Shard];
}

/// What one connection listens to.
#[derive(Debug, Default)]
pub struct Subscriptions {
    pub channels: BTreeSet<Box<[u8]>>,
    pub patterns: BTreeSet<Box<[u8]>>,
    pub shards: BTreeSet<Box<[u8]>>,
}

impl Subscriptions {
    pub fn of(&self, space: Space) -> &BTreeSet<Box<[u8]>> {
        match space {
            Space::Channel => &self.channels,
            Space::Pattern => &self.patterns,
            Space::Shard => &self.shards,
        }
    }

    fn of_mut(&mut self, space: Space) -> &mut BTreeSet<Box<[u8]>> {
        match space {
            Space::Channel => &mut self.channels,
            Space::Pattern => &mut self.patterns,
            Space::Shard => &mut self.shards,
        }
    }

    /// As replies to (P|S)SUBSCRIBE count: channels and patterns together, shards alone.
    pub fn count(&self, space: Space) -> usize {
        match space {
            Space::Shard => self.shards.len(),
            _ => self.channels.len() + self.patterns.len(),
        }
    }

    pub fn len(&self) -> usize {
        Space::ALL.iter().map(|space| self.of(*space).len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// In order of connections, so that one among many leaves in no time.
type Listeners = BTreeSet<ConnId>;
type Index = HashMap<Box<[u8]>, Listeners, foldhash::fast::RandomState>;

/// Who listens to what.
#[derive(Debug, Default)]
pub struct Hub {
    channels: Index,
    patterns: Index,
    shards: Index,
}

impl Hub {
    pub fn of(&self, space: Space) -> &Index {
        match space {
            Space::Channel => &self.channels,
            Space::Pattern => &self.patterns,
            Space::Shard => &self.shards,
        }
    }

    fn of_mut(&mut self, space: Space) -> &mut Index {
        match space {
            Space::Channel => &mut self.channels,
            Space::Pattern => &mut self.patterns,
            Space::Shard => &mut self.shards,
        }
    }

    /// Whether nobody can hear a message of a channel that is not a shard's.
    pub fn is_silent(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty()
    }

    pub fn subscribe(
        &mut self,
        space: Space,
        conn: ConnId,
        subscriptions: &mut Subscriptions,
        name: &[u8],
    ) {
        if subscriptions.of_mut(space).insert(name.into()) {
            self.of_mut(space).entry_ref(name).or_default().insert(conn);
        }
    }

    pub fn unsubscribe(
        &mut self,
        space: Space,
        conn: ConnId,
        subscriptions: &mut Subscriptions,
        name: &[u8],
    ) {
        if subscriptions.of_mut(space).remove(name) {
            self.forget(space, conn, name);
        }
    }

    fn forget(&mut self, space: Space, conn: ConnId, name: &[u8]) {
        let index = self.of_mut(space);
        if let Some(listeners) = index.get_mut(name) {
            listeners.remove(&conn);
            if listeners.is_empty() {
                index.remove(name);
            }
        }
    }

    /// The connection listens to nothing any more.
    pub fn gone(&mut self, conn: ConnId, subscriptions: &Subscriptions) {
        for space in Space::ALL {
            for name in subscriptions.of(space) {
                self.forget(space, conn, name);
            }
        }
    }

    /// How many get a message of this channel; one who listens to it in two ways gets it twice.
    pub fn receivers(&self, space: Space, channel: &[u8]) -> usize {
        let direct = self.of(space).get(channel).map_or(0, BTreeSet::len);
        direct + self.matching(space, channel).map(|(_, listeners)| listeners.len()).sum::<usize>()
    }

    /// Patterns that this channel matches, with those who have subscribed to them.
    pub fn matching<'a>(
        &'a self,
        space: Space,
        channel: &'a [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a Listeners)> {
        let patterns = (space == Space::Channel).then_some(&self.patterns);
        patterns
            .into_iter()
            .flatten()
            .filter(move |(pattern, _)| glob::matches(pattern, channel, false))
            .map(|(pattern, listeners)| (&**pattern, listeners))
    }
}
