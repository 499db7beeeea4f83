//! PgBouncer's configuration as ours: read as it is (`--pgbouncer-ini`), or written as TOML
//! (`pondage import`). Both take the same way: lines ([`ini`]), what each becomes ([`table`],
//! [`convert`]), and then the settings that a TOML file would give.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::document::Sheet;
use super::options;
use super::report::Report;
use super::settings::Scope;
use super::value::{toml_text, Value};

mod convert;
mod ini;
mod page;
mod table;
#[cfg(test)]
mod tests;

use convert::Converted;

pub use page::options_of_pgbouncer;

/// An ini file as TOML.
#[derive(Debug)]
pub struct Imported {
    pub toml: String,
    /// What is not taken and what will be otherwise, each with file and line.
    pub notes: Vec<String>,
}

/// What an ini file says, with notes on what is not taken.
pub(super) fn read(path: &Path) -> (Sheet, Vec<String>) {
    let Converted { sheet, notes } = converted(path, None);
    (sheet, notes.iter().map(ToString::to_string).collect())
}

/// Writes an ini file as TOML. `users` is a file to take instead of its `auth_file`.
///
/// # Errors
/// Everything in the file that PgBouncer would not understand, or Pondage can't do.
pub fn import(path: &Path, users: Option<&Path>) -> Result<Imported, Report> {
    let Converted { sheet, notes } = converted(path, users);
    match sheet.problems.is_empty() {
        true => {
            let notes = notes.iter().map(ToString::to_string).collect();
            Ok(Imported { toml: toml(path, &sheet), notes })
        }
        false => Err(Report { problems: sheet.problems }),
    }
}

fn converted(path: &Path, users: Option<&Path>) -> Converted {
    let ini = ini::read(path);
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
