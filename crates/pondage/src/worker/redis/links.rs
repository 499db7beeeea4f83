//! The engine's own connections to PostgreSQL, which the first worker drives: opened by the
//! control plane, read and written by the driver, understood by the engine's store.

use ::redis::store::Links;

use super::{Effect, RedisPlane};
use crate::control::messages::{OpenError, OpenKind, ToControl, ToWorker};

/// The worker that has them.
pub const WORKER: u8 = 0;

/// A connection as the worker knows it.
#[derive(Debug, Default)]
pub struct Link {
    open: bool,
    /// Bytes to be written, taken from the store.
    pub out: Vec<u8>,
    queued_out: bool,
}

impl RedisPlane {
    /// A connection that was wanted is there; its socket is read from now on. False if it is not
    /// wanted any more.
    pub fn link_opened(&mut self, link: usize) -> bool {
        let known = self.shared.engine().store().links().count() > link;
        if !known || self.shutdown_is_over() {
            return false;
        }
        if self.links.len() <= link {
            self.links.resize_with(link + 1, Link::default);
        }
        self.links[link] = Link { open: true, ..Link::default() };
        let now = self.now;
        self.of_links(|links| links.opened(link, now));
        true
    }

    pub fn link_failed(&mut self, link: usize, error: &OpenError) {
        tracing::warn!(event = "redis_connect_failed", sqlstate = %error.code, "{}", error.message);
        let now = self.now;
        self.of_links(|links| links.failed(link, &error.message, now));
    }

    pub fn link_bytes(&mut self, link: usize, bytes: &[u8]) {
        let now = self.now;
        self.of_links(|links| links.receive(link, bytes, now));
    }

    pub fn link_closed(&mut self, link: usize, why: &str) {
        let Some(known) = self.links.get_mut(link).filter(|known| known.open) else { return };
        *known = Link::default();
        tracing::warn!(event = "redis_connection_lost", link, "{why}");
        self.effects.push(Effect::CloseLink(link));
        let now = self.now;
        self.of_links(|links| links.closed(link, why, now));
    }

    pub fn link_out(&mut self, link: usize) -> Option<&mut Vec<u8>> {
        self.links.get_mut(link).map(|link| &mut link.out)
    }

    pub fn link_flushed(&mut self, link: usize) {
        if let Some(link) = self.links.get_mut(link) {
            // The buffer goes back to the store with the next swap.
            link.out.clear();
            link.queued_out = false;
        }
    }

    fn of_links(&mut self, what: impl FnOnce(&mut dyn Links)) {
        what(self.shared.engine().store().links());
        self.touched = true;
    }

    /// Some connection is missing, so time matters.
    pub(super) fn misses_links(&self) -> bool {
        let open = self.links.iter().filter(|link| link.open).count();
        self.worker == WORKER && open < self.shared.engine().store().links().count()
    }

    /// After the engine's turn: what there is to be sent, opened and closed.
    pub(super) fn take_link_work(&mut self, links: &mut dyn Links) {
        if self.worker != WORKER {
            let waiting = (0..links.count()).any(|link| !links.out(link).is_empty());
            if waiting {
                self.effects.push(Effect::Peer(WORKER, ToWorker::RedisEvents));
            }
            return;
        }
        for link in links.dropped() {
            if let Some(known) = self.links.get_mut(link).filter(|known| known.open) {
                *known = Link::default();
                self.effects.push(Effect::CloseLink(link));
            }
        }
        for (at, link) in self.links.iter_mut().enumerate().filter(|(_, link)| link.open) {
            let out = links.out(at);
            if link.out.is_empty() {
                std::mem::swap(&mut link.out, out);
            } else {
                link.out.append(out);
            }
            if !link.out.is_empty() && !std::mem::replace(&mut link.queued_out, true) {
                self.written_links.push(at as u32);
            }
        }
        let Some(pool) = &self.pool else { return };
        if self.shutdown.is_some() && self.clients.is_empty() {
            return;
        }
        for link in links.wanted(self.now) {
            self.effects.push(Effect::Control(ToControl::Open {
                worker: self.worker,
                ticket: link as u64,
                config: pool.clone(),
                proven: None,
                kind: OpenKind::Redis,
            }));
        }
    }
}
