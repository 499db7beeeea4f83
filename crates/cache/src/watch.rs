//! Which signatures the applier looks at: registered by those who make recipes, read for every
//! changed row.
//!
//! The list is replaced as a whole and has a *generation*. A lease of an answer may be taken when
//! the applier has *seen* the generation of the recipe's signatures: from then on no commit is
//! applied without their tags. What an earlier life of a signature has left is of no use to a new
//! one: the applier raises its wild tag when it first sees it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};

use crate::recipe::{Precise, Recipe, Signature};

/// Most signatures of one table: each costs some time for each of its changed rows.
pub const SIGNATURES_MAX: usize = 64;

/// Most signatures in all.
pub const SIGNATURES_ALL_MAX: usize = 16 * 1024;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Watch {
    list: ArcSwap<List>,
    /// Held while the list is replaced; readers do not need it.
    changing: Mutex<()>,
    seen: AtomicU64,
}

/// The signatures by their tables.
#[derive(Debug, Clone, Default)]
pub struct List {
    pub generation: u64,
    tables: HashMap<u32, Vec<Watched>>,
    count: usize,
}

#[derive(Debug, Clone)]
pub struct Watched {
    pub signature: Arc<Signature>,
    /// The generation with which it came.
    pub since: u64,
    /// How many recipes have it.
    uses: usize,
}

impl List {
    pub fn of(&self, table: u32) -> &[Watched] {
        self.tables.get(&table).map_or(&[], Vec::as_slice)
    }

    /// Those that have come after a generation.
    pub fn since(&self, generation: u64) -> impl Iterator<Item = &Arc<Signature>> {
        let all = self.tables.values().flatten();
        all.filter(move |watched| watched.since > generation).map(|watched| &watched.signature)
    }
}

impl Watch {
    /// Registers all signatures of a recipe, once more if they are there already. Where there is
    /// no room for one, the recipe takes every row of the table. Gives the generation that must
    /// be seen before leases are taken. [`Watch::release`] takes it back.
    pub fn adopt(&self, recipe: &mut Recipe) -> u64 {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list = List::clone(&self.list.load());
        let next = list.generation + 1;
        let mut needed = 0;
        let mut grown = false;
        for table in &mut recipe.tables {
            let Some(restriction) = &table.restriction else {
                continue;
            };
            let signature = restriction.signature();
            let full = list.count >= SIGNATURES_ALL_MAX;
            let watched = list.tables.entry(signature.table).or_default();
            if let Some(known) = watched.iter_mut().find(|known| known.signature == *signature) {
                known.uses += 1;
                needed = needed.max(known.since);
            } else if watched.len() >= SIGNATURES_MAX || full {
                table.restriction = None;
            } else {
                watched.push(Watched { signature: signature.clone(), since: next, uses: 1 });
                list.count += 1;
                grown = true;
            }
        }
        if grown {
            list.generation = next;
            needed = next;
        }
        self.list.store(Arc::new(list));
        needed
    }

    /// A recipe that was adopted is no longer used, and no answer that was made with it is served
    /// any more.
    pub fn release(&self, recipe: &Recipe) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list = List::clone(&self.list.load());
        let before = list.count;
        for restriction in recipe.tables.iter().filter_map(|table| table.restriction.as_ref()) {
            let signature = restriction.signature();
            let Some(watched) = list.tables.get_mut(&signature.table) else {
                continue;
            };
            let Some(at) = watched.iter().position(|known| known.signature == *signature) else {
                continue;
            };
            watched[at].uses -= 1;
            if watched[at].uses == 0 {
                watched.swap_remove(at);
                list.count -= 1;
                if watched.is_empty() {
                    list.tables.remove(&signature.table);
                }
            }
        }
        list.generation += u64::from(list.count != before);
        self.list.store(Arc::new(list));
    }

    pub fn list(&self) -> Guard<Arc<List>> {
        self.list.load()
    }

    /// Whether commits that are applied from now on raise the tags of a generation's signatures.
    pub fn has_seen(&self, generation: u64) -> bool {
        self.seen.load(Ordering::Acquire) >= generation
    }

    /// The applier says so.
    pub(crate) fn saw(&self, generation: u64) {
        self.seen.store(generation, Ordering::Release);
    }
}

impl Precise {
    pub fn signature(&self) -> &Arc<Signature> {
        match self {
            Precise::Equal { signature, .. }
            | Precise::AnyOf { signature, .. }
            | Precise::Range { signature, .. } => signature,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Form, Source, TableDeps};
    use crate::value::Kind;

    fn by(table: u32, column: &str) -> Recipe {
        let columns = vec![(column.to_owned(), Kind::Int)];
        let signature = Arc::new(Signature::new(table, columns, Form::Equal));
        let restriction = Precise::AnyOf { signature, array: Source::Parameter(1) };
        Recipe { tables: vec![TableDeps { oid: table, restriction: Some(restriction) }] }
    }

    #[test]
    fn a_signature_is_kept_as_long_as_a_recipe_has_it() {
        let watch = Watch::default();
        let (mut one, mut other) = (by(1, "a"), by(1, "a"));
        assert_eq!(watch.adopt(&mut one), 1);
        assert_eq!(watch.adopt(&mut other), 1, "it is there already");
        assert_eq!(watch.list().of(1).len(), 1);
        assert!(!watch.has_seen(1));
        watch.saw(1);
        assert!(watch.has_seen(1));
        watch.release(&one);
        assert_eq!((watch.list().of(1).len(), watch.list().generation), (1, 1));
        watch.release(&other);
        assert_eq!((watch.list().of(1).len(), watch.list().generation), (0, 2));
        assert_eq!(watch.adopt(&mut one), 3, "a new life has a new generation");
        assert!(!watch.has_seen(3));
        assert_eq!(watch.list().since(2).count(), 1);
    }

    #[test]
    fn where_there_is_no_room_a_recipe_takes_every_row() {
        let watch = Watch::default();
        for column in 0..SIGNATURES_MAX {
            watch.adopt(&mut by(1, &format!("c{column}")));
        }
        let mut one_more = by(1, "one_more");
        assert_eq!(watch.adopt(&mut one_more), 0, "nothing has to be seen");
        assert!(one_more.tables[0].restriction.is_none());
        let mut known = by(1, "c0");
        watch.adopt(&mut known);
        assert!(known.tables[0].restriction.is_some());
        watch.release(&one_more);
        assert_eq!(watch.list().of(1).len(), SIGNATURES_MAX);
    }
}
