//! Writes through the gateway whose clients have been told that they are done: whoever reads
//! afterwards sees them, whichever session wrote.
//!
//! The stream tells of a commit a moment after its client was. So before the client is told, what
//! its write may have changed is marked in some thousand *places*, by the tags that answers depend
//! on, with a number that grows. Whoever finds a number that is not known to be applied waits until
//! the stream has come as far as PostgreSQL was when the number was first seen. Two things that
//! share a place cost a wait now and then.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::position::{Pulses, Seen};
use crate::tags::Tag;

/// A power of two.
const PLACES: usize = 1 << 14;

/// Where something that may have been written is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u16);

impl Place {
    /// Nobody knows what was written.
    pub const ANYTHING: Place = Place(0);

    pub fn of(tag: Tag) -> Place {
        // Tags are hashes already; the first place is taken.
        Place((1 + tag.number() as usize % (PLACES - 1)) as u16)
    }
}

/// Told by all workers of a database.
#[derive(Debug)]
pub struct Acks {
    last: AtomicU64,
    /// The last number of each.
    places: Box<[AtomicU64]>,
}

impl Default for Acks {
    fn default() -> Acks {
        let places = std::iter::repeat_with(AtomicU64::default).take(PLACES).collect();
        Acks { last: AtomicU64::new(0), places }
    }
}

impl Acks {
    /// To be called when PostgreSQL has said that it is done, and before the writer is told.
    pub fn tell(&self, written: &[Place]) {
        if written.is_empty() {
            return;
        }
        let number = self.last.fetch_add(1, Ordering::AcqRel) + 1;
        for place in written {
            self.places[usize::from(place.0)].fetch_max(number, Ordering::AcqRel);
        }
    }
}

/// How far PostgreSQL may have been when this number was first seen.
#[derive(Debug, Clone, Copy)]
struct Mark {
    number: u64,
    seen: Seen,
}

/// What one worker knows of them.
#[derive(Debug, Default)]
pub struct Acked {
    /// All up to this number is applied.
    applied: u64,
    /// What is not, in order.
    marks: VecDeque<Mark>,
}

/// Marks that are kept; beyond it the oldest counts as the one behind it.
const MARKS_MAX: usize = 64;

impl Acked {
    /// Whether all that was acknowledged by now, and that an answer with these tags may depend on,
    /// is applied.
    ///
    /// # Errors
    /// What has to be told, and applied, first.
    pub fn are_applied(
        &mut self,
        acks: &Acks,
        tags: &[Tag],
        pulses: &Pulses,
        applied: u64,
    ) -> Result<(), Seen> {
        let last = acks.last.load(Ordering::Acquire);
        if last == self.applied {
            return Ok(());
        }
        self.mark(last, pulses);
        while let Some(mark) = self.marks.front() {
            if pulses.resolve(mark.seen).is_none_or(|lsn| lsn > applied) {
                break;
            }
            self.applied = mark.number;
            self.marks.pop_front();
        }
        if self.applied >= last {
            return Ok(());
        }
        for place in tags.iter().map(|tag| Place::of(*tag)).chain([Place::ANYTHING]) {
            let number = acks.places[usize::from(place.0)].load(Ordering::Acquire);
            if number <= self.applied {
                continue;
            }
            // It may have been told since `last` was read.
            self.mark(number, pulses);
            let at = self.marks.partition_point(|mark| mark.number < number);
            let seen = self.marks.get(at).map_or_else(|| pulses.now(), |mark| mark.seen);
            return Err(pulses.resolve(seen).map_or(seen, Seen::Lsn));
        }
        Ok(())
    }

    /// Up to this number all has been acknowledged.
    fn mark(&mut self, number: u64, pulses: &Pulses) {
        let seen = pulses.now();
        match self.marks.back_mut() {
            Some(mark) if mark.number >= number => {}
            Some(mark) if mark.seen == seen => mark.number = number,
            _ => self.marks.push_back(Mark { number, seen }),
        }
        if self.marks.len() > MARKS_MAX {
            self.marks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tags::Tags;

    #[test]
    fn what_was_acknowledged_is_waited_for_by_who_depends_on_it() {
        let tags = Tags::new(1 << 10, 1);
        let (written, other) = (tags.any(1), tags.any(2));
        assert_ne!(Place::of(written), Place::of(other));
        let (acks, mut acked, mut pulses) = (Acks::default(), Acked::default(), Pulses::default());
        assert_eq!(acked.are_applied(&acks, &[written], &pulses, 0), Ok(()));
        pulses.send();
        acks.tell(&[Place::of(written)]);
        // The pulse that is on its way was sent before.
        let needed = Seen::Open(1);
        assert_eq!(acked.are_applied(&acks, &[other, written], &pulses, 0), Err(needed));
        assert_eq!(acked.are_applied(&acks, &[other], &pulses, 0), Ok(()));
        pulses.answer(b"5:5:", 100, 0);
        assert_eq!(acked.are_applied(&acks, &[written], &pulses, 100), Err(needed));
        pulses.send();
        pulses.answer(b"6:6:", 120, 100);
        assert_eq!(acked.are_applied(&acks, &[written], &pulses, 110), Err(Seen::Lsn(120)));
        assert_eq!(acked.are_applied(&acks, &[written], &pulses, 120), Ok(()));
        acks.tell(&[Place::ANYTHING]);
        assert!(acked.are_applied(&acks, &[other], &pulses, 120).is_err());
        assert!(acked.are_applied(&acks, &[], &pulses, 120).is_err());
    }

    #[test]
    fn what_was_applied_unseen_is_not_waited_for() {
        let tags = Tags::new(1 << 10, 1);
        let (row, other) = (tags.any(1), tags.any(2));
        let (acks, mut acked, mut pulses) = (Acks::default(), Acked::default(), Pulses::default());
        acks.tell(&[Place::of(row), Place::ANYTHING]);
        assert!(acked.are_applied(&acks, &[other], &pulses, 0).is_err());
        pulses.send();
        pulses.answer(b"5:5:", 100, 0);
        assert_eq!(acked.are_applied(&acks, &[other], &pulses, 100), Ok(()));
        // Something else is written; the row was never looked at, and is known all the same.
        acks.tell(&[Place::of(other)]);
        assert_eq!(acked.are_applied(&acks, &[row], &pulses, 100), Ok(()));
        assert!(acked.are_applied(&acks, &[other], &pulses, 100).is_err());
    }

    #[test]
    fn who_is_far_behind_remembers_only_so_much() {
        let tags = Tags::new(1 << 10, 1);
        let row = tags.any(1);
        let (acks, mut acked, mut pulses) = (Acks::default(), Acked::default(), Pulses::default());
        for n in 0..MARKS_MAX as u64 * 3 {
            acks.tell(&[Place::of(row)]);
            assert!(acked.are_applied(&acks, &[row], &pulses, 50).is_err());
            pulses.send();
            pulses.answer(format!("{n}:{n}:").as_bytes(), 100 + n, 50);
        }
        assert!(acked.marks.len() <= MARKS_MAX);
        assert_eq!(acked.are_applied(&acks, &[row], &pulses, 1_000), Ok(()));
    }

    #[test]
    fn nothing_written_is_nothing_to_wait_for() {
        let (acks, mut acked, pulses) = (Acks::default(), Acked::default(), Pulses::default());
        acks.tell(&[]);
        assert_eq!(acked.are_applied(&acks, &[], &pulses, 0), Ok(()));
    }
}
