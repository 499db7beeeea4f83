//! A server that carries statements of several owners at once: who is on it, in which order, and
//! whether it still moves.
//!
//! How it is driven: what is written to the server together is a *trip*. The caller asks
//! [`Carrier::room`], lets owners [`Carrier::board`], and calls [`Carrier::depart`] when the trip
//! is written. An owner whose statement is answered, or came to nothing, or who has gone, leaves
//! by [`Carrier::leave`]; after each reading of the server [`Carrier::pace`] says how long those
//! that were answered took. A carrier whose first passenger is still the same at
//! [`Carrier::stalls_at`] is emptied of all who wait behind it ([`Carrier::abandon`]) and closed.

use std::collections::VecDeque;
use std::time::Duration;

use crate::moment::Moment;
use crate::reply::Owner;

/// Trips in flight on one server: one that it works on, and one that waits in its socket, so that
/// it never idles between two. A third would only be smaller trips for the same statements.
pub const TRIPS_MAX: usize = 2;

#[derive(Debug)]
pub struct Carrier {
    passengers: VecDeque<Passenger>,
    /// Passengers of the trip that is being written.
    boarding: u32,
    trip: u32,
    /// When the first passenger's turn came: it was written to an idle server, or the one before
    /// it was answered.
    moved: Moment,
    /// Answered since the last look at the clock.
    answered: u32,
    /// It takes no more: it stalls, or a cancel is on its way to it.
    closed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Passenger {
    owner: Owner,
    trip: u32,
}

impl Carrier {
    pub fn new(now: Moment) -> Carrier {
        Carrier {
            passengers: VecDeque::new(),
            boarding: 0,
            trip: 0,
            moved: now,
            answered: 0,
            closed: false,
        }
    }

    pub fn len(&self) -> usize {
        self.passengers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.passengers.is_empty()
    }

    /// In the order in which they are answered.
    pub fn owners(&self) -> impl Iterator<Item = Owner> + '_ {
        self.passengers.iter().map(|passenger| passenger.owner)
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    /// It is empty, and takes statements from now on.
    pub fn open(&mut self, now: Moment) {
        (self.closed, self.moved, self.answered) = (false, now, 0);
    }

    /// Trips in flight, the one being written not counted.
    pub fn trips(&self) -> usize {
        let departed = self.passengers.len() - self.boarding as usize;
        let mut count = 0;
        let mut last = None;
        for passenger in self.passengers.iter().take(departed) {
            if last.replace(passenger.trip) != Some(passenger.trip) {
                count += 1;
            }
        }
        count
    }

    /// How many more may board now.
    pub fn room(&self, depth: usize, trips_max: usize) -> usize {
        if self.closed || self.trips() >= trips_max {
            return 0;
        }
        depth.saturating_sub(self.passengers.len())
    }

    pub fn board(&mut self, owner: Owner, now: Moment) {
        if self.passengers.is_empty() {
            self.moved = now;
        }
        self.passengers.push_back(Passenger { owner, trip: self.trip });
        self.boarding += 1;
    }

    /// Those in the trip that is being written.
    pub fn boarding(&self) -> impl Iterator<Item = Owner> + '_ {
        let departed = self.passengers.len() - self.boarding as usize;
        self.owners().skip(departed)
    }

    /// What has boarded is written.
    pub fn depart(&mut self) {
        self.trip = self.trip.wrapping_add(1);
        self.boarding = 0;
    }

    /// True if the owner was on it.
    pub fn leave(&mut self, owner: Owner, answered: bool) -> bool {
        // Nearly always the first.
        let Some(at) = self.passengers.iter().position(|passenger| passenger.owner == owner) else {
            return false;
        };
        self.passengers.remove(at);
        self.answered += u32::from(answered);
        true
    }

    /// How long each of those took that were answered since the last call; none: nobody was.
    pub fn pace(&mut self, now: Moment) -> Option<Duration> {
        let answered = std::mem::take(&mut self.answered);
        if answered == 0 {
            return None;
        }
        now.since(std::mem::replace(&mut self.moved, now)).checked_div(answered)
    }

    /// When it is to be looked at again: it stalls if its first passenger is still the same then.
    pub fn stalls_at(&self, limit: Duration) -> Option<Moment> {
        (!self.closed && !self.passengers.is_empty()).then(|| self.moved.after(limit))
    }

    /// Takes everybody off but `stays`, in order.
    pub fn abandon(&mut self, stays: Option<Owner>) -> Vec<Owner> {
        let (kept, left): (VecDeque<Passenger>, VecDeque<Passenger>) =
            self.passengers.drain(..).partition(|passenger| Some(passenger.owner) == stays);
        self.passengers = kept;
        left.iter().map(|passenger| passenger.owner).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(20);

    fn boarded(owners: std::ops::Range<u32>) -> Carrier {
        let mut carrier = Carrier::new(Moment(0));
        owners.for_each(|owner| carrier.board(Owner(owner), Moment(100)));
        carrier
    }

    #[test]
    fn there_is_room_for_so_many_trips_and_so_many_statements() {
        let mut carrier = boarded(0..3);
        assert_eq!((carrier.trips(), carrier.room(8, 2)), (0, 5), "not yet departed");
        carrier.depart();
        assert_eq!((carrier.trips(), carrier.room(8, 2), carrier.room(8, 1)), (1, 5, 0));
        carrier.board(Owner(3), Moment(110));
        carrier.depart();
        assert_eq!((carrier.trips(), carrier.room(8, 2)), (2, 0));
        for owner in 0..3 {
            assert!(carrier.leave(Owner(owner), true));
        }
        assert_eq!((carrier.trips(), carrier.room(8, 2), carrier.room(1, 2)), (1, 7, 0));
        assert!(!carrier.leave(Owner(0), true), "it has left");
        carrier.close();
        assert_eq!(carrier.room(8, 2), 0);
    }

    #[test]
    fn those_answered_together_share_the_time_they_took() {
        let mut carrier = boarded(0..5);
        carrier.depart();
        for owner in 0..4 {
            carrier.leave(Owner(owner), true);
        }
        assert_eq!(carrier.pace(Moment(500)), Some(Duration::from_micros(100)));
        assert_eq!(carrier.pace(Moment(600)), None, "nobody was answered");
        carrier.leave(Owner(4), true);
        assert_eq!(carrier.pace(Moment(700)), Some(Duration::from_micros(200)));
    }

    #[test]
    fn it_stalls_when_the_first_passenger_stays_too_long() {
        let mut carrier = boarded(0..3);
        carrier.depart();
        assert_eq!(carrier.stalls_at(LIMIT), Some(Moment(20_100)));
        carrier.leave(Owner(0), true);
        carrier.pace(Moment(5_000));
        assert_eq!(carrier.stalls_at(LIMIT), Some(Moment(25_000)));
        assert_eq!(carrier.abandon(Some(Owner(1))), [Owner(2)]);
        assert_eq!(carrier.owners().collect::<Vec<_>>(), [Owner(1)]);
        carrier.close();
        assert_eq!(carrier.stalls_at(LIMIT), None);
    }
}
