//! Publish and subscribe.

use crate::session::ConnId;

/// What one connection listens to.
#[derive(Debug, Default)]
pub struct Subscriptions {
    pub channels: Vec<Box<[u8]>>,
    pub patterns: Vec<Box<[u8]>>,
}

impl Subscriptions {
    pub fn len(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Who listens to what.
#[derive(Debug, Default)]
pub struct Hub {}

impl Hub {
    /// The connection listens to nothing any more.
    pub fn gone(&mut self, _conn: ConnId, _subscriptions: &Subscriptions) {}
}
