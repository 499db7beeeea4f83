//! What is known of a statement whose results may be kept.

use std::sync::Arc;

use crate::recipe::{Recipe, Source};
use crate::shared::Shared;

/// A literal or parameter, and the type that PostgreSQL gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub source: Source,
    pub type_oid: u32,
    /// Its text may be a word that means another value tomorrow, such as `now`.
    pub timely: bool,
}

/// Made once for a statement as one user sees it. As long as it lives, the applier looks at what
/// its answers depend on.
#[derive(Debug)]
pub struct Plan {
    /// Tells it from every other, also from an earlier one of the same text.
    pub id: u64,
    /// All literals and parameters.
    pub slots: Vec<Slot>,
    /// Its results depend on settings such as TimeZone.
    pub settings: bool,
    recipe: Recipe,
    /// What the applier must have seen before an answer may be kept.
    generation: u64,
    shared: Arc<Shared>,
}

impl Plan {
    pub fn new(
        shared: Arc<Shared>,
        id: u64,
        mut recipe: Recipe,
        slots: Vec<Slot>,
        settings: bool,
    ) -> Plan {
        let generation = shared.watch.adopt(&mut recipe);
        Plan { id, slots, settings, recipe, generation, shared }
    }

    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Whether commits that are applied from now on are told to its answers.
    pub fn is_watched(&self) -> bool {
        self.shared.watch.has_seen(self.generation)
    }

    /// How many values a Bind has to bring.
    pub fn parameters(&self) -> usize {
        let number = |slot: &Slot| match slot.source {
            Source::Parameter(number) => number as usize,
            Source::Literal(_) => 0,
        };
        self.slots.iter().map(number).max().unwrap_or(0)
    }

    /// Some of its values are in the text.
    pub fn has_literals(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.source, Source::Literal(_)))
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        self.shared.watch.release(&self.recipe);
    }
}
