//! Connections come and go.

use std::time::Duration;

use backend::calls::{Calls, Heard};
use backend::moment::Moment;

use super::{Phase, Tables, LOADER};
use crate::store::Links;

/// Between two tries to open a link: at first, and at most.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// A link that has been silent for so long while something was asked of it is given up. A question
/// about all keys may take its time; a batch that does is found in the tables, or is not, when the
/// shards are taken again.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const SILENCE_OF_WRITERS_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    #[default]
    Closed,
    Opening,
    /// Logged in; what it needs is being prepared.
    Preparing,
    Ready,
}

#[derive(Debug, Default)]
pub struct Link {
    pub state: State,
    pub calls: Calls,
    pub retry_at: Moment,
    delay: Duration,
    /// Since when nothing has been heard though something is unanswered.
    silent: Option<Moment>,
    /// Numbers of batches sent on it, one for each group to be answered, in order.
    pub groups: std::collections::VecDeque<u64>,
    /// Why the group that is being answered has failed: SQLSTATE and text.
    pub error: Option<(String, String)>,
}

impl Link {
    fn reset(&mut self, now: Moment) {
        self.state = State::Closed;
        self.calls = Calls::new();
        self.silent = None;
        self.groups.clear();
        self.error = None;
        self.retry_at = now.after(self.delay);
        self.delay = (self.delay * 2).clamp(RETRY_MIN, RETRY_MAX);
    }

    /// It works: the next loss is mended at once.
    pub fn is_well(&mut self) {
        self.delay = Duration::ZERO;
    }
}

impl Links for Tables {
    fn count(&self) -> usize {
        self.links.len()
    }

    fn wanted(&mut self, now: Moment) -> Vec<usize> {
        self.now = now;
        self.drop_silent();
        self.pump();
        self.sweep();
        // The writers need what the loader sets up.
        let prepared = self.links[LOADER].state == State::Ready;
        let mut wanted = Vec::new();
        for (number, link) in self.links.iter_mut().enumerate() {
            let may = number == LOADER || prepared;
            if link.state == State::Closed && may && now >= link.retry_at {
                link.state = State::Opening;
                wanted.push(number);
            }
        }
        wanted
    }

    fn opened(&mut self, link: usize, now: Moment) {
        self.now = now;
        self.links[link].state = State::Preparing;
        if link == LOADER {
            self.prepare_loader();
        } else {
            self.prepare_writer(link);
        }
    }

    fn failed(&mut self, link: usize, why: &str, now: Moment) {
        self.now = now;
        self.links[link].reset(now);
        self.leave(why);
    }

    fn receive(&mut self, link: usize, bytes: &[u8], now: Moment) {
        self.now = now;
        self.links[link].silent = None;
        let mut calls = std::mem::take(&mut self.links[link].calls);
        let result = calls.receive(bytes, &mut |heard| self.hear(link, heard));
        self.links[link].calls = calls;
        if let Err(broken) = result {
            self.drop_link(link, &broken.to_string());
        }
        self.go_on(link);
    }

    fn closed(&mut self, link: usize, why: &str, now: Moment) {
        self.now = now;
        self.lose(link, why);
    }

    fn next_due(&self) -> Option<Moment> {
        let prepared = self.links[LOADER].state == State::Ready;
        let links = self.links.iter().enumerate().filter_map(|(number, link)| match link.state {
            State::Closed => (number == LOADER || prepared).then_some(link.retry_at),
            _ => link.silent.map(|since| since.after(most_silent(number))),
        });
        let work = match self.phase {
            Phase::Ready => [self.next_retry(), self.journal.next_due(), self.next_sweep()],
            Phase::Replaying => [self.journal.next_due(), None, None],
            Phase::Away | Phase::Taking => [None; 3],
        };
        links.chain(work.into_iter().flatten()).min()
    }

    fn out(&mut self, link: usize) -> &mut Vec<u8> {
        &mut self.links[link].calls.out
    }

    fn dropped(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.dropped)
    }
}

impl Tables {
    fn hear(&mut self, link: usize, mut heard: Heard<'_>) {
        if let Heard::Notification { payload, .. } = heard {
            self.notified(payload);
            return;
        }
        match (link, self.links[link].state) {
            (_, State::Preparing) => self.hear_preparing(link, heard),
            (LOADER, _) if self.phase == Phase::Taking => self.hear_taking(&mut heard),
            (LOADER, _) if self.phase == Phase::Replaying => self.hear_page(&mut heard),
            (LOADER, _) => self.hear_lookup(heard),
            _ => self.hear_writer(link, heard),
        }
    }

    /// Does what has become possible or necessary by what was heard.
    fn go_on(&mut self, link: usize) {
        if let Some(why) = self.doomed.take() {
            self.drop_all(&why);
            return;
        }
        if self.links[link].state == State::Preparing {
            self.prepare_on(link);
        }
        self.taken();
        self.replay_on();
        self.take_when_ready();
        self.pump();
    }

    /// The connection is gone: what was sent on it may have been done or not.
    fn lose(&mut self, link: usize, why: &str) {
        let now = self.now;
        self.links[link].reset(now);
        self.flights_lost(link);
        if link == LOADER {
            self.lose_lookups();
        }
        self.leave(why);
    }

    /// Closes a link that is of no use any more.
    pub(super) fn drop_link(&mut self, link: usize, why: &str) {
        self.dropped.push(link);
        self.lose(link, why);
    }

    pub(super) fn drop_all(&mut self, why: &str) {
        for link in 0..self.links.len() {
            if matches!(self.links[link].state, State::Preparing | State::Ready) {
                self.drop_link(link, why);
            }
        }
    }

    fn drop_silent(&mut self) {
        for link in 0..self.links.len() {
            let most = most_silent(link);
            let state = &mut self.links[link];
            if state.calls.unanswered() == 0 {
                state.silent = None;
            } else if self.now.since(*state.silent.get_or_insert(self.now)) > most {
                self.drop_link(link, "a connection has been silent for too long");
            }
        }
    }

    /// A link has been prepared; when all are, the shards are taken.
    pub(super) fn is_ready_now(&mut self, link: usize) {
        self.links[link].state = State::Ready;
        self.links[link].is_well();
    }

    /// Whether all links are there and nothing is on its way.
    pub(super) fn take_when_ready(&mut self) {
        // The loader may still be answering questions; they are not to be taken for its answers.
        let ready = |link: &Link| link.state == State::Ready && link.calls.unanswered() == 0;
        let all = self.links.iter().all(ready);
        if self.phase == Phase::Away && all && !self.any_sent() {
            self.phase = Phase::Taking;
            self.take();
        }
    }
}

fn most_silent(link: usize) -> Duration {
    if link == LOADER {
        SILENCE_MAX
    } else {
        SILENCE_OF_WRITERS_MAX
    }
}
