//! Whether it is worth the trouble to look for kept results of a shape: measured, and given up for
//! a while where it is not. And whether it is worth waiting for the stream.

use std::time::Duration;

/// Looks that are judged together.
const WINDOW: u32 = 4096;

/// Windows without gain before the shape is left alone. The first ones fill what is empty.
const PATIENCE: u32 = 8;

/// Where memory is full nothing is learnt from those who only come again, and a quarter of a window
/// tells as much.
const FULL_COUNTS: u32 = 4;

/// One of so many looks has to find something, or somebody who has been here before. A look costs
/// about a hundredth of a trip.
const GAIN_ONE_OF: u32 = 64;

/// So many statements the shape is left alone; then it is tried again.
const REST: u32 = WINDOW * 32;

/// See the module's documentation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Worth {
    looks: u32,
    gains: u32,
    idle: u32,
    rests: u32,
}

impl Worth {
    /// A statement of the shape comes. False: it is not looked for.
    pub fn is_tried(&mut self) -> bool {
        if self.rests > 0 {
            self.rests -= 1;
            return false;
        }
        true
    }

    /// It was looked for. `gain`: it was found, or will be the next time. `full`: there is no room
    /// for more.
    pub fn looked(&mut self, gain: bool, full: bool) {
        let counts = if full { FULL_COUNTS } else { 1 };
        self.looks += counts;
        self.gains += u32::from(gain) * counts;
        if self.looks < WINDOW {
            return;
        }
        let gains = self.gains * GAIN_ONE_OF >= self.looks;
        let idle = if gains { 0 } else { self.idle + 1 };
        *self = match idle {
            // One window is enough from now on.
            PATIENCE => Worth { idle: PATIENCE - 1, rests: REST, ..Worth::default() },
            idle => Worth { idle, ..Worth::default() },
        };
    }

    /// It is left alone at the moment.
    pub fn rests(&self) -> bool {
        self.rests > 0
    }
}

/// Whether it is worth the trouble to wait for the stream: against the time that is waited stands
/// the time that the hits behind it save.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patience {
    /// Judgements in a row that waiting takes more than it saves.
    bad: u32,
    waits: u32,
    waited_us: u64,
    hits: u64,
    /// What a trip to PostgreSQL takes instead, an average that moves.
    trip_us: u64,
    refused: u32,
}

/// Waits that are judged together.
const WAITS: u32 = 64;

/// So many judgements in a row count: what holds up the stream once, holds up all who wait then.
const BAD_ENOUGH: u32 = 2;

/// One of so many waits is tried although it is not worth it.
const TRY_ONE_OF: u32 = 32;

impl Patience {
    /// Whether a read is to wait.
    pub fn waits(&mut self) -> bool {
        let worth_it = self.bad < BAD_ENOUGH;
        self.refused = self.refused.wrapping_add(u32::from(!worth_it));
        worth_it || self.refused % TRY_ONE_OF == 0
    }

    pub fn hit(&mut self) {
        self.hits += 1;
    }

    /// A read has waited, to good purpose or not.
    pub fn waited(&mut self, took: Duration) {
        self.waits += 1;
        self.waited_us += took.as_micros() as u64;
        if self.waits >= WAITS {
            // Where others have fetched what is kept, nobody knows yet what that takes.
            let saves = self.trip_us == 0 || self.hits * self.trip_us >= self.waited_us;
            self.bad = if saves { 0 } else { BAD_ENOUGH.min(self.bad + 1) };
            (self.waits, self.waited_us, self.hits) = (0, 0, 0);
        }
    }

    /// A read was answered by PostgreSQL.
    pub fn went(&mut self, took: Duration) {
        let took = took.as_micros() as u64;
        self.trip_us = if self.trip_us == 0 { took } else { (self.trip_us * 15 + took) / 16 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(worth: &mut Worth, times: u32, hit_one_of: u32) {
        for n in 0..times {
            if worth.is_tried() {
                worth.looked(hit_one_of > 0 && n % hit_one_of == 0, false);
            }
        }
    }

    #[test]
    fn where_memory_is_full_it_is_known_sooner() {
        let mut worth = Worth::default();
        for _ in 0..WINDOW / FULL_COUNTS * PATIENCE {
            assert!(worth.is_tried() && !worth.rests());
            worth.looked(false, true);
        }
        assert!(worth.rests());
    }

    #[test]
    fn what_never_hits_is_left_alone_and_tried_again() {
        let mut worth = Worth::default();
        looks(&mut worth, WINDOW * PATIENCE - 1, 0);
        assert!(!worth.rests());
        looks(&mut worth, 1, 0);
        assert!(worth.rests());
        looks(&mut worth, REST, 0);
        assert!(!worth.rests(), "it is tried again");
        looks(&mut worth, WINDOW, 0);
        assert!(worth.rests(), "and not for long");
        looks(&mut worth, REST, 0);
        looks(&mut worth, WINDOW, 2);
        looks(&mut worth, WINDOW * (PATIENCE - 1), 0);
        assert!(!worth.rests(), "a gain is remembered");
    }

    #[test]
    fn what_hits_now_and_then_is_worth_it() {
        let mut worth = Worth::default();
        looks(&mut worth, WINDOW * PATIENCE * 4, GAIN_ONE_OF);
        assert!(!worth.rests());
    }

    #[test]
    fn one_waits_where_the_hits_behind_it_save_more() {
        let mut patience = Patience::default();
        patience.went(Duration::from_micros(100));
        for _ in 0..WAITS {
            (0..20).for_each(|_| patience.hit());
            patience.waited(Duration::from_micros(1_000));
        }
        assert!((0..100).all(|_| patience.waits()));
        for _ in 0..WAITS * BAD_ENOUGH {
            (0..5).for_each(|_| patience.hit());
            patience.waited(Duration::from_micros(1_000));
        }
        let waits = (0..TRY_ONE_OF * 10).filter(|_| patience.waits()).count();
        assert_eq!(waits, 10, "now and then it is tried");
    }

    /// Every hit waits, a little less than a trip takes.
    fn wait_shortly(patience: &mut Patience, times: u32) {
        for _ in 0..times {
            patience.hit();
            patience.waited(Duration::from_micros(80));
        }
    }

    #[test]
    fn one_long_wait_is_no_reason_to_wait_no_longer() {
        let mut patience = Patience::default();
        patience.went(Duration::from_micros(100));
        for long in [1, WAITS / 4] {
            wait_shortly(&mut patience, WAITS * 2);
            (0..long).for_each(|_| patience.waited(Duration::from_secs(1)));
            for _ in 0..WAITS * 2 {
                assert!(patience.waits());
                wait_shortly(&mut patience, 1);
            }
        }
        for _ in 0..WAITS * BAD_ENOUGH {
            patience.waited(Duration::from_micros(2_000));
        }
        assert!(!patience.waits(), "it goes on");
        wait_shortly(&mut patience, WAITS * 2);
        assert!(patience.waits(), "it is over");
    }

    #[test]
    fn where_others_fetch_all_that_is_kept_one_waits() {
        let mut patience = Patience::default();
        wait_shortly(&mut patience, WAITS * 4);
        assert!(patience.waits());
    }
}
