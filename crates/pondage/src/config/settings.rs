//! What was said, by whom: the values of all sources, the strongest source kept for each option.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::options::{Row, Section};
use super::report::Place;
use super::source::section_path;
use super::value::Value;

/// Sources of values, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Follows from a URL that stands for a whole configuration.
    Implied,
    File,
    Environment,
    Flag,
    /// SET on the console.
    Console,
}

/// One section of a configuration; the names it does not have are empty. A procedure's is in the
/// place of a database's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    pub section: Section,
    pub database: String,
    pub user: String,
}

impl Scope {
    pub fn fixed(section: Section) -> Scope {
        Scope { section, database: String::new(), user: String::new() }
    }

    pub fn database(name: &str) -> Scope {
        Scope { database: name.to_owned(), ..Scope::fixed(Section::Database) }
    }

    pub fn procedure(name: &str) -> Scope {
        Scope { database: name.to_owned(), ..Scope::fixed(Section::Procedure) }
    }

    pub fn user(name: &str) -> Scope {
        Scope { user: name.to_owned(), ..Scope::fixed(Section::User) }
    }

    pub fn database_user(database: &str, user: &str) -> Scope {
        Scope {
            section: Section::DatabaseUser,
            database: database.to_owned(),
            user: user.to_owned(),
        }
    }

    /// As it is written in a file: `databases.app.users.report`.
    pub fn path(&self) -> String {
        section_path(self.section, &self.database, &self.user)
    }
}

#[derive(Debug, Clone)]
pub struct Setting {
    pub value: Value,
    pub layer: Layer,
    pub place: Place,
    /// In the text of the file, for excerpts.
    pub(super) span: Option<Range<usize>>,
}

/// A value on its way into [`Settings`].
#[derive(Debug)]
pub(super) struct Entry {
    pub scope: Scope,
    pub row: &'static Row,
    pub setting: Setting,
}

/// A section that was named, even if it is empty.
#[derive(Debug, Clone, Default)]
pub struct Named {
    pub(super) place: Option<(Place, Option<Range<usize>>)>,
    values: BTreeMap<&'static str, Setting>,
}

#[derive(Debug, Clone, Default)]
pub struct Settings {
    scopes: BTreeMap<Scope, Named>,
    /// Given, but with values that are no values.
    broken: BTreeSet<(Scope, &'static str)>,
}

impl Settings {
    /// Notes that a section exists; the first place counts.
    pub(super) fn name(&mut self, scope: Scope, place: Place, span: Option<Range<usize>>) {
        self.scopes.entry(scope).or_default().place.get_or_insert((place, span));
    }

    /// Takes a value unless a stronger source gave one. A password replaces the file that an
    /// earlier source named for it.
    pub(super) fn insert(&mut self, entry: Entry) {
        let place = (entry.setting.place.clone(), entry.setting.span.clone());
        let named = self.scopes.entry(entry.scope).or_default();
        named.place.get_or_insert(place);
        let name = entry.row.name;
        if named.values.get(name).is_some_and(|known| known.layer > entry.setting.layer) {
            return;
        }
        if name == "password" {
            named.values.remove("password_file");
        }
        named.values.insert(name, entry.setting);
    }

    pub(super) fn name_broken(&mut self, scope: Scope, name: &'static str) {
        self.broken.insert((scope, name));
    }

    /// Whether the option was given at all, well or badly.
    pub(super) fn has(&self, scope: &Scope, name: &'static str) -> bool {
        self.get(scope, name).is_some() || self.broken.contains(&(scope.clone(), name))
    }

    pub fn get(&self, scope: &Scope, name: &str) -> Option<&Setting> {
        self.scopes.get(scope)?.values.get(name)
    }

    pub fn value(&self, scope: &Scope, name: &str) -> Option<&Value> {
        self.get(scope, name).map(|setting| &setting.value)
    }

    /// All sections that were named, in the order of [`Section`], then by name.
    pub fn scopes(&self) -> impl Iterator<Item = (&Scope, &Named)> {
        self.scopes.iter()
    }

    /// The named sections of one kind.
    pub fn of(&self, section: Section) -> impl Iterator<Item = (&Scope, &Named)> {
        self.scopes.iter().filter(move |(scope, _)| scope.section == section)
    }
}
