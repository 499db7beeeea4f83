//! Writes through the gateway whose clients have been told that they are done: whoever reads
//! afterwards sees them, whichever session wrote.
//!
//! The stream tells of a commit a moment after its client was. So what a write may have changed is
//! counted in a few thousand *places* before the client is told, by the tags that answers depend
//! on. Who finds a place changed since it last looked waits until the stream has come as far as
//! PostgreSQL was at that moment. Two things that share a place cost a wait now and then.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::position::{Pulses, Seen};
use crate::tags::Tag;

/// A power of two.
const PLACES: usize = 4096;

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
    total: AtomicU64,
    places: Box<[AtomicU64]>,
}

impl Default for Acks {
    fn default() -> Acks {
        let places = std::iter::repeat_with(AtomicU64::default).take(PLACES).collect();
        Acks { total: AtomicU64::new(0), places }
    }
}

impl Acks {
    /// To be called before the writer is told.
    pub fn tell(&self, written: &[Place]) {
        for place in written {
            self.places[usize::from(place.0)].fetch_add(1, Ordering::Release);
        }
        if !written.is_empty() {
            self.total.fetch_add(1, Ordering::Release);
        }
    }
}

/// What one worker knows of them.
#[derive(Debug)]
pub struct Acked {
    total: Known,
    places: Box<[Known]>,
}

/// A count, and how far PostgreSQL may have been when it was first seen.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    count: u64,
    seen: Seen,
}

impl Known {
    /// What has to be told and applied first, if anything has.
    fn look(&mut self, count: u64, pulses: &Pulses, applied: u64) -> Result<(), Seen> {
        if self.count != count {
            *self = Known { count, seen: pulses.now() };
        }
        match pulses.resolve(self.seen) {
            Some(lsn) if lsn <= applied => {
                // Positions of pulses are forgotten after a while.
                self.seen = Seen::default();
                Ok(())
            }
            Some(lsn) => Err(Seen::Lsn(lsn)),
            None => Err(self.seen),
        }
    }
}

impl Default for Acked {
    fn default() -> Acked {
        Acked { total: Known::default(), places: vec![Known::default(); PLACES].into() }
    }
}

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
        let total = acks.total.load(Ordering::Acquire);
        if self.total.look(total, pulses, applied).is_ok() {
            return Ok(());
        }
        for place in tags.iter().map(|tag| Place::of(*tag)).chain([Place::ANYTHING]) {
            let at = usize::from(place.0);
            let count = acks.places[at].load(Ordering::Acquire);
            self.places[at].look(count, pulses, applied)?;
        }
        Ok(())
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
    fn nothing_written_is_nothing_to_wait_for() {
        let (acks, mut acked, pulses) = (Acks::default(), Acked::default(), Pulses::default());
        acks.tell(&[]);
        assert_eq!(acked.are_applied(&acks, &[], &pulses, 0), Ok(()));
    }
}
