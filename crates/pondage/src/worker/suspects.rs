//! Who has failed to log in lately, and has to wait before the next try.
//!
//! A wait comes before the challenge, so that giving up early tells nothing, and tries of one
//! origin queue for it, so that many connections guess no faster than one. An origin is an address
//! with a user; an address alone counts too, much later, for who tries many users. Waits end by
//! themselves, and a success ends those of its address and user.
//!
//! Nobody who comes from elsewhere waits for it: a user can't be locked out by strangers.

use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::Duration;

use backend::moment::Moment;

use crate::link::Ends;

/// Origins remembered; the one that failed longest ago gives way.
const ORIGINS_MAX: usize = 4096;

/// Half of what has failed is forgotten after so long.
const HALF_LIFE: Duration = Duration::from_secs(60);

/// Failures of an address with a user that cost nothing: people mistype.
const FREE: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Failures of an address alone that cost nothing. Behind a proxy all clients have one.
const ADDRESS_FREE: u32 = 100;
const ADDRESS_WAIT: Duration = Duration::from_millis(20);

/// Who would have to queue for longer is turned away.
const QUEUE_MAX: Duration = Duration::from_secs(10);

/// What who would wait for too long is told, whatever the door.
pub const TOO_MANY_FAILED: &str = "too many failed log-ins from this address";
pub const TRY_LATER: &str = "Try again in a minute. [P0320]";

#[derive(Debug, Default)]
pub struct Suspects {
    /// By a hash with a secret key: which origins share one can't be found out.
    known: HashMap<u64, Suspect>,
    hashes: RandomState,
}

#[derive(Debug, Clone, Copy)]
struct Suspect {
    failures: u32,
    last: Moment,
    /// When the next try may go on.
    next: Moment,
}

/// What becomes of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Try {
    Now,
    At(Moment),
    /// Too many wait already.
    Never,
}

impl Suspects {
    /// Somebody wants to log in.
    pub fn attempt(&mut self, ends: &Ends, user: &str, now: Moment) -> Try {
        if self.known.is_empty() {
            return Try::Now;
        }
        let [pair, address] = self.origins(ends, user);
        let mut at = now;
        for (origin, wait) in [(pair, pair_wait as fn(u32) -> Duration), (address, address_wait)] {
            let Some(suspect) = self.known.get_mut(&origin) else { continue };
            let wait = wait(suspect.left(now));
            if wait.is_zero() {
                continue;
            }
            let turn = suspect.next.max(now).after(wait);
            if turn.since(now) > QUEUE_MAX {
                return Try::Never;
            }
            suspect.next = turn;
            at = at.max(turn);
        }
        match at > now {
            true => Try::At(at),
            false => Try::Now,
        }
    }

    /// The password was wrong.
    pub fn failed(&mut self, ends: &Ends, user: &str, now: Moment) {
        for origin in self.origins(ends, user) {
            if !self.known.contains_key(&origin) && self.known.len() >= ORIGINS_MAX {
                let oldest = self.known.iter().min_by_key(|(_, suspect)| suspect.last);
                if let Some(oldest) = oldest.map(|(origin, _)| *origin) {
                    self.known.remove(&oldest);
                }
            }
            let fresh = Suspect { failures: 0, last: now, next: now };
            let suspect = self.known.entry(origin).or_insert(fresh);
            suspect.failures = suspect.left(now).saturating_add(1);
            suspect.last = now;
        }
    }

    /// The password was right.
    pub fn succeeded(&mut self, ends: &Ends, user: &str) {
        if !self.known.is_empty() {
            let [pair, _] = self.origins(ends, user);
            self.known.remove(&pair);
        }
    }

    fn origins(&self, ends: &Ends, user: &str) -> [u64; 2] {
        let address = match ends {
            Ends::Unix { .. } => None,
            Ends::Tcp { remote, .. } => Some(match remote.ip().to_canonical() {
                IpAddr::V4(address) => u128::from(address.to_bits()),
                // Who has one address of a /64 has all of them.
                IpAddr::V6(address) => address.to_bits() >> 64 << 64,
            }),
        };
        [self.hashes.hash_one((address, Some(user))), self.hashes.hash_one((address, None::<&str>))]
    }
}

impl Suspect {
    /// Failures that are not forgotten.
    fn left(&self, now: Moment) -> u32 {
        let halvings = now.since(self.last).as_secs() / HALF_LIFE.as_secs();
        u32::try_from(halvings).ok().and_then(|by| self.failures.checked_shr(by)).unwrap_or(0)
    }
}

fn pair_wait(failures: u32) -> Duration {
    match failures.checked_sub(FREE) {
        None | Some(0) => Duration::ZERO,
        Some(more) => (FIRST_WAIT * (1 << (more - 1).min(16))).min(WAIT_MAX),
    }
}

fn address_wait(failures: u32) -> Duration {
    match failures > ADDRESS_FREE {
        true => ADDRESS_WAIT,
        false => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment(seconds * 1_000_000)
    }

    fn from(address: &str) -> Ends {
        let at = |text: &str| format!("{text}:1").parse().expect("an address");
        Ends::Tcp { remote: at(address), local: at("127.0.0.1") }
    }

    fn fail(suspects: &mut Suspects, ends: &Ends, user: &str, times: u32) {
        (0..times).for_each(|_| suspects.failed(ends, user, at(1)));
    }

    #[test]
    fn a_few_mistakes_cost_nothing_and_more_cost_more() {
        let (mut suspects, ends) = (Suspects::default(), from("192.0.2.1"));
        fail(&mut suspects, &ends, "bob", FREE);
        assert_eq!(suspects.attempt(&ends, "bob", at(1)), Try::Now);
        let mut waits = Vec::new();
        for second in 1..=8 {
            suspects.failed(&ends, "bob", at(1));
            match suspects.attempt(&ends, "bob", at(100 * second).max(at(1))) {
                Try::At(turn) => waits.push(turn.since(at(100 * second)).as_millis()),
                other => waits.push(if other == Try::Now { 0 } else { u128::MAX }),
            }
        }
        // After 100 s half is forgotten: it takes twice as many.
        assert!(waits.iter().all(|wait| *wait <= WAIT_MAX.as_millis()), "{waits:?}");
        let mut suspects = Suspects::default();
        fail(&mut suspects, &ends, "bob", FREE + 3);
        assert_eq!(suspects.attempt(&ends, "bob", at(1)), Try::At(at(1).after(FIRST_WAIT * 4)));
    }

    #[test]
    fn many_connections_guess_no_faster_than_one() {
        let (mut suspects, ends) = (Suspects::default(), from("192.0.2.1"));
        fail(&mut suspects, &ends, "bob", 50);
        let tries: Vec<Try> = (0..1000).map(|_| suspects.attempt(&ends, "bob", at(1))).collect();
        let turns = tries.iter().filter(|each| matches!(each, Try::At(_))).count();
        assert_eq!(turns as u64, QUEUE_MAX.as_secs() / WAIT_MAX.as_secs());
        assert_eq!(tries.last(), Some(&Try::Never));
    }

    #[test]
    fn strangers_lock_nobody_out_and_a_success_ends_it() {
        let mut suspects = Suspects::default();
        fail(&mut suspects, &from("192.0.2.1"), "bob", 50);
        assert_eq!(suspects.attempt(&from("192.0.2.2"), "bob", at(1)), Try::Now);
        assert_eq!(suspects.attempt(&from("192.0.2.1"), "alice", at(1)), Try::Now);
        suspects.succeeded(&from("192.0.2.1"), "bob");
        assert_eq!(suspects.attempt(&from("192.0.2.1"), "bob", at(1)), Try::Now);
    }

    #[test]
    fn who_tries_many_users_waits_for_the_address() {
        let (mut suspects, ends) = (Suspects::default(), from("192.0.2.1"));
        (0..=ADDRESS_FREE).for_each(|each| suspects.failed(&ends, &each.to_string(), at(1)));
        let turn = at(1).after(ADDRESS_WAIT);
        assert_eq!(suspects.attempt(&ends, "new", at(1)), Try::At(turn));
        assert_eq!(suspects.attempt(&ends, "new", at(3600)), Try::Now, "forgotten");
    }

    #[test]
    fn memory_is_bounded() {
        let mut suspects = Suspects::default();
        for each in 0..3 * ORIGINS_MAX as u64 {
            suspects.failed(&from("192.0.2.1"), &each.to_string(), Moment(each));
        }
        assert_eq!(suspects.known.len(), ORIGINS_MAX);
    }
}
