//! How many servers at once get most done, found out by trying.
//!
//! How it is driven: whoever is answered is counted by [`Climb::done`]; when all servers are busy
//! and somebody waits, by [`Climb::full`]. From window to window one server more or less is tried.
//! While nobody waits there is nothing to find out.

use std::time::Duration;

use crate::moment::Moment;

/// What was done is compared from window to window.
const WINDOW: Duration = Duration::from_secs(1);

/// Answers in a window that say something.
const DONE_MIN: u32 = 200;

/// A window in which fewer had to wait has other limits.
const FULL_MIN: u32 = 20;

/// More or less by so many of a hundred is no chance.
const TELLING: u64 = 5;

/// Where more and fewer are as good, the next try waits so many windows.
const REST: u32 = 10;

/// One that waits for its flush does nothing else.
const FEWEST: usize = 2;

/// See the module's documentation.
#[derive(Debug)]
pub struct Climb {
    servers: usize,
    up: bool,
    began: Moment,
    done: u32,
    full: u32,
    /// A second, in the window before, with how many servers.
    before: Option<(u64, usize)>,
    rests: u32,
}

impl Climb {
    pub fn new(servers: usize) -> Climb {
        Climb { servers, up: true, began: Moment(0), done: 0, full: 0, before: None, rests: 0 }
    }

    pub fn servers(&self) -> usize {
        self.servers
    }

    /// Somebody was answered.
    pub fn done(&mut self) {
        self.done += 1;
    }

    /// Somebody waits, and all servers are busy.
    pub fn full(&mut self) {
        self.full += 1;
    }

    /// Time has passed. There can be at most so many servers.
    pub fn look(&mut self, now: Moment, most: usize) {
        let took = now.since(self.began);
        if took < WINDOW {
            return;
        }
        let (done, full) = (std::mem::take(&mut self.done), std::mem::take(&mut self.full));
        self.began = now;
        let most = most.max(FEWEST);
        self.servers = self.servers.clamp(FEWEST, most);
        if done < DONE_MIN || full < FULL_MIN || took > WINDOW * 3 {
            self.before = None;
            return;
        }
        if self.rests > 0 {
            self.rests -= 1;
            return;
        }
        let rate = u64::from(done) * 1_000_000 / (took.as_micros().max(1) as u64);
        let here = self.servers;
        match self.before.replace((rate, here)) {
            None => {}
            Some((_, there)) if there == here => {}
            Some((old, _)) if rate * 100 > old * (100 + TELLING) => {}
            Some((old, there)) if rate * 100 < old * (100 - TELLING) => {
                // Back to where it was better, and on from there another time.
                self.up = there > here;
                (self.servers, self.rests) = (there, REST);
                self.before = None;
                return;
            }
            Some((_, there)) => {
                self.servers = there.min(here);
                self.up = !self.up;
                self.rests = REST;
                self.before = None;
                return;
            }
        }
        let next = if self.up { here + 1 } else { here - 1 };
        if (FEWEST..=most).contains(&next) {
            self.servers = next;
        } else {
            self.up = !self.up;
            self.rests = REST;
            self.before = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs windows in which so many statements a second are done with so many servers.
    fn run(climb: &mut Climb, windows: u64, most: usize, rate: impl Fn(usize, u64) -> u64) -> u64 {
        let mut sum = 0;
        for at in 1..=windows {
            let done = rate(climb.servers(), at);
            sum += done;
            for _ in 0..done {
                climb.done();
                climb.full();
            }
            climb.look(Moment(at * 1_000_000), most);
        }
        sum / windows
    }

    #[test]
    fn it_stays_near_the_best_number() {
        for best in [2, 3, 5, 8, 12] {
            // Noise of two of a hundred.
            let rate = |servers: usize, at: u64| {
                let off = servers.abs_diff(best) as u64;
                (10_000 - off * 900) * (99 + at % 3) / 100
            };
            let mut climb = Climb::new(4);
            run(&mut climb, 200, 16, rate);
            let mean = run(&mut climb, 400, 16, rate);
            assert!(mean > 9_300, "{best}: {mean}");
        }
    }

    #[test]
    fn it_takes_no_more_servers_than_do_something() {
        let mut climb = Climb::new(8);
        run(&mut climb, 400, 16, |servers, _| 10_000.min(servers as u64 * 2_500));
        assert!(climb.servers() <= 6, "{}", climb.servers());
    }

    #[test]
    fn without_anybody_waiting_nothing_changes() {
        let mut climb = Climb::new(4);
        for at in 1..100 {
            (0..5_000).for_each(|_| climb.done());
            climb.look(Moment(at * 1_000_000), 16);
        }
        assert_eq!(climb.servers(), 4);
        climb.look(Moment(200 * 1_000_000), 3);
        assert_eq!(climb.servers(), 3, "there are no more");
    }
}
