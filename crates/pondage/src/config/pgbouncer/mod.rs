//! PgBouncer's configuration as ours: read as it is (`--pgbouncer-ini`), or written as TOML
//! (`pondage import`). Both take the same way: lines ([`ini`]), what each becomes ([`table`],
//! [`convert`]), and then the settings that a TOML file would give.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::document::Sheet;
use super::options;
use super::report::{Place, Report};
use super::settings::Scope;
use super::value::{toml_text, Value};

mod convert;
mod ini;
mod page;
mod table;
#[cfg(test)]
mod tests;

use convert::Converted;
use ini::{Item, Part};

pub(super) use ini::Ini;
pub use page::options_of_pgbouncer;

/// An ini file as TOML.
#[derive(Debug)]
pub struct Imported {
    pub toml: String,
    /// What is not taken and what will be otherwise, each with file and line.
    pub notes: Vec<String>,
}

/// What an ini file says, with notes on what is not taken. `console`: names and values that the
/// console has set since; those of ours are not for here.
pub(super) fn read(ini: &Ini, console: &[(String, String)]) -> (Sheet, Vec<String>) {
    split(converted(ini.clone(), None, console))
}

/// What an option of `[pgbouncer]` is where there is no ini file.
pub(super) fn one(name: &str, value: &str) -> (Sheet, Vec<String>) {
    split(convert::one(name, value))
}

/// Our name of an option of `[pgbouncer]` that holds for all: `pool.pool_size`.
pub(super) fn ours(name: &str) -> Option<String> {
    match table::find(table::MAIN, name)?.fate {
        table::Fate::Taken(section, ours, _) if !section.has_name() => {
            Some(format!("{}.{ours}", section.path()))
        }
        _ => None,
    }
}

fn split(converted: Converted) -> (Sheet, Vec<String>) {
    (converted.sheet, converted.notes.iter().map(ToString::to_string).collect())
}

/// Writes an ini file as TOML. `users` is a file to take instead of its `auth_file`.
///
/// # Errors
/// Everything in the file that PgBouncer would not understand, or Pondage can't do.
pub fn import(path: &Path, users: Option<&Path>) -> Result<Imported, Report> {
    let Converted { sheet, notes } = converted(Ini::read(path), users, &[]);
    match sheet.problems.is_empty() {
        true => {
            let notes = notes.iter().map(ToString::to_string).collect();
            Ok(Imported { toml: toml(path, &sheet), notes })
        }
        false => Err(Report { problems: sheet.problems }),
    }
}

fn converted(mut ini: Ini, users: Option<&Path>, console: &[(String, String)]) -> Converted {
    for (key, value) in console.iter().filter(|(key, _)| !key.contains('.')) {
        ini.items.retain(|item| (item.part, &item.key) != (Part::Main, key));
        let (key, value, place) = (key.clone(), value.clone(), Place::Console);
        ini.items.push(Item { part: Part::Main, key, value, place });
    }
    let mut converted = convert::convert(&ini.items, users);
    converted.sheet.problems.extend(ini.problems);
    converted
}

/// Sections in the order of the reference page, options in the order of the table.
fn toml(path: &Path, sheet: &Sheet) -> String {
    let mut sections: BTreeMap<&Scope, BTreeMap<&str, &Value>> = BTreeMap::new();
    for (scope, ..) in &sheet.scopes {
        sections.entry(scope).or_default();
    }
    // What is said later is stronger.
    for entry in &sheet.entries {
        let section = sections.entry(&entry.scope).or_default();
        section.insert(entry.row.name, &entry.setting.value);
    }
    let mut text = format!("# Made from {} by `pondage import`.\n", path.display());
    for (scope, values) in sections {
        // Writing to a String can't fail.
        let _ = writeln!(text, "\n[{}]", scope.path());
        for row in options::rows(scope.section) {
            let written = match values.get(row.name) {
                Some(Value::Secret(secret)) => toml_text(secret),
                Some(value) => value.to_toml(),
                None => continue,
            };
            let _ = writeln!(text, "{} = {written}", row.name);
        }
    }
    text
}
