//! Connections by number. A number is used again, so each use has a generation that tells it from
//! the one before; nothing is used again within a turn, so what a turn still knows of a connection
//! that has gone never means another.

use std::ops::{Index, IndexMut};

#[derive(Debug)]
pub struct Slots<T> {
    slots: Vec<Option<Box<T>>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    /// Vacated in this turn.
    resting: Vec<u32>,
    len: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        let (slots, generations) = (Vec::new(), Vec::new());
        Slots { slots, generations, free: Vec::new(), resting: Vec::new(), len: 0 }
    }
}

impl<T> Slots<T> {
    /// Stores what `make` builds from its slot and generation.
    pub fn insert(&mut self, make: impl FnOnce(u32, u32) -> T) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.generations.push(0);
            (self.slots.len() - 1) as u32
        });
        let at = slot as usize;
        self.generations[at] = self.generations[at].wrapping_add(1);
        self.slots[at] = Some(Box::new(make(slot, self.generations[at])));
        self.len += 1;
        slot
    }

    pub fn remove(&mut self, slot: u32) -> Option<Box<T>> {
        let taken = self.slots.get_mut(slot as usize)?.take()?;
        self.resting.push(slot);
        self.len -= 1;
        Some(taken)
    }

    /// The turn is over: what it vacated can be used again.
    pub fn end_turn(&mut self) {
        self.free.append(&mut self.resting);
    }

    pub fn get(&self, slot: u32) -> Option<&T> {
        self.slots.get(slot as usize)?.as_deref()
    }

    pub fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)?.as_deref_mut()
    }

    /// The one that has this generation.
    pub fn find(&mut self, slot: u32, generation: u32) -> Option<&mut T> {
        if self.generations.get(slot as usize) != Some(&generation) {
            return None;
        }
        self.get_mut(slot)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbered = self.slots.iter().enumerate();
        numbered.filter_map(|(slot, value)| Some((slot as u32, value.as_deref()?)))
    }

    pub fn numbers(&self) -> Vec<u32> {
        self.iter().map(|(slot, _)| slot).collect()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn capacity(&self) -> usize {
        self.slots.len()
    }
}

impl<T> Index<u32> for Slots<T> {
    type Output = T;

    /// # Panics
    /// When the slot is vacant: the caller has lost track of who exists.
    fn index(&self, slot: u32) -> &T {
        self.get(slot).expect("the slot is taken")
    }
}

impl<T> IndexMut<u32> for Slots<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        self.get_mut(slot).expect("the slot is taken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vacated_slot_is_used_again_after_the_turn_with_another_generation() {
        let mut slots = Slots::default();
        let first = slots.insert(|_, generation| generation);
        let generation = slots[first];
        slots.remove(first);
        assert_ne!(slots.insert(|_, _| 0), first, "not within the turn");
        slots.end_turn();
        let again = slots.insert(|_, generation| generation);
        assert_eq!(again, first);
        assert!(slots.find(again, generation).is_none());
        let now = slots[again];
        assert!(slots.find(again, now).is_some());
        assert_eq!(slots.len(), 2);
    }
}
