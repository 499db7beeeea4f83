//! What is known of a statement whose results may be kept.
//!
//! A statement is written in several ways: with constants or parameters, these in any order, with
//! other blanks. All that ask the same are one [`Family`]: they share what is kept. Each way is a
//! [`Plan`], which knows where in the request the family's values are.

use std::sync::Arc;

use crate::mirror::mirrored::Mirrored;
use crate::recipe::{Recipe, Source};
use crate::shared::Shared;

/// A literal or parameter, and the type that PostgreSQL gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub source: Source,
    pub type_oid: u32,
    /// Its text may be a word that means another value tomorrow, such as `now`.
    pub timely: bool,
    /// It is compared with a column and used for nothing else, so that whole numbers of any
    /// width, or texts of any name, mean the same.
    pub compared: bool,
}

/// Statements that ask the same, as one user sees them. As long as it lives, the applier looks at
/// what their answers depend on.
#[derive(Debug)]
pub struct Family {
    /// Tells it from every other, also from an earlier one of the same text.
    id: u64,
    /// Its results depend on settings such as TimeZone.
    settings: bool,
    /// Of it, `Source::Parameter(1)` is the value that comes first in the text, and so on.
    recipe: Recipe,
    /// With the same sources. None: mirrors can't answer it.
    mirrored: Option<Mirrored>,
    /// What the applier must have seen before an answer may be kept.
    generation: u64,
    shared: Arc<Shared>,
}

/// One way to write a statement.
#[derive(Debug)]
pub struct Plan {
    family: Arc<Family>,
    /// All literals and parameters, in order of appearance.
    pub slots: Vec<Slot>,
    /// How many values a Bind has to bring.
    parameters: usize,
    literals: bool,
}

impl Family {
    pub fn new(
        shared: Arc<Shared>,
        id: u64,
        mut recipe: Recipe,
        settings: bool,
        mirrored: Option<Mirrored>,
    ) -> Family {
        let generation = shared.watch.adopt(&mut recipe);
        Family { id, settings, recipe, mirrored, generation, shared }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        self.shared.watch.release(&self.recipe);
    }
}

impl Plan {
    pub fn new(family: Arc<Family>, slots: Vec<Slot>) -> Plan {
        let number = |slot: &Slot| match slot.source {
            Source::Parameter(number) => number as usize,
            Source::Literal(_) => 0,
        };
        let parameters = slots.iter().map(number).max().unwrap_or(0);
        let literals = slots.iter().any(|slot| matches!(slot.source, Source::Literal(_)));
        Plan { family, slots, parameters, literals }
    }

    /// Under this number answers are kept.
    pub fn id(&self) -> u64 {
        self.family.id
    }

    pub fn settings(&self) -> bool {
        self.family.settings
    }

    pub fn recipe(&self) -> &Recipe {
        &self.family.recipe
    }

    pub fn mirrored(&self) -> Option<&Mirrored> {
        self.family.mirrored.as_ref()
    }

    /// Whether commits that are applied from now on are told to its answers.
    pub fn is_watched(&self) -> bool {
        self.family.shared.watch.has_seen(self.family.generation)
    }

    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// Some of its values are in the text.
    pub fn has_literals(&self) -> bool {
        self.literals
    }
}
