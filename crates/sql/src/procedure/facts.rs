//! What the catalogues say of relations. The caller fills it in.

use std::collections::BTreeMap;

use super::Lacks;
use crate::analysis::Name;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RelationKind {
    #[default]
    Table,
    Partitioned,
    View,
    MaterializedView,
    Foreign,
    /// Sequences, composite types, indexes.
    Other,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relation {
    /// With its schema: two names in bodies may mean one relation.
    pub title: Option<Name>,
    pub kind: RelationKind,
    pub temporary: bool,
    pub columns: Vec<String>,
    /// Of unique indexes without a predicate and without expressions: their columns in order, the
    /// primary key first.
    pub unique: Vec<Vec<String>>,
    pub foreign_keys: Vec<ForeignKey>,
    /// Functions of its row and statement triggers.
    pub triggers: Vec<Name>,
    /// A view's query, `pg_get_viewdef`.
    pub view: Option<String>,
    /// Rewrite rules other than a view's own.
    pub has_rules: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignKey {
    pub columns: Vec<String>,
    /// With its schema, as in [`Relation::title`].
    pub target: Option<Name>,
    pub target_columns: Vec<String>,
}

/// Relations by the names that bodies use for them, the search path applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    relations: BTreeMap<Name, Relation>,
}

impl Facts {
    pub fn insert(&mut self, name: Name, relation: Relation) {
        self.relations.insert(name, relation);
    }

    /// What others know, where it is not known here.
    pub fn merge(&mut self, others: &Facts) {
        for (name, relation) in &others.relations {
            self.relations.entry(name.clone()).or_insert_with(|| relation.clone());
        }
    }

    /// Each relation by its title.
    pub(super) fn by_title(&self) -> Facts {
        let titled = self.relations.iter().map(|(name, relation)| {
            (relation.title.clone().unwrap_or(name.clone()), relation.clone())
        });
        Facts { relations: titled.collect() }
    }

    pub fn relation(&self, name: &Name) -> Option<&Relation> {
        self.relations.get(name)
    }

    /// One name for each relation, that with the schema where it is known.
    pub fn title(&self, name: &Name) -> Name {
        self.relation(name).and_then(|relation| relation.title.clone()).unwrap_or(name.clone())
    }

    /// Whether all these are known to be absent.
    pub fn confirms(&self, absent: &[Lacks]) -> bool {
        absent.iter().all(|lacks| {
            let relation = self.relation(&lacks.relation);
            relation.is_some_and(|relation| !relation.columns.contains(&lacks.column))
        })
    }

    pub(super) fn foreign_keys(&self) -> impl Iterator<Item = (Name, &ForeignKey)> {
        self.relations.iter().flat_map(|(name, relation)| {
            let title = relation.title.clone().unwrap_or(name.clone());
            relation.foreign_keys.iter().map(move |key| (title.clone(), key))
        })
    }
}
