//! The tables of options in `docs/migrating-from-pgbouncer.md`.

use std::fmt::Write;

use super::table::{Fate, Known, Turn, DATABASES, MAIN, PEERS, USERS};
use crate::config::options::Section;

/// Every option of PgBouncer and what becomes of it.
pub fn options_of_pgbouncer() -> String {
    let mut page = String::new();
    for (section, table) in
        [("pgbouncer", MAIN), ("databases", DATABASES), ("users", USERS), ("peers", PEERS)]
    {
        // Writing to a String can't fail.
        let _ = write!(page, "\n`[{section}]`\n\n| PgBouncer | Pondage | |\n|---|---|---|\n");
        for known in table {
            let _ = writeln!(page, "| `{}` | {} | {} |", known.name, becomes(known), more(known));
        }
    }
    page
}

fn becomes(known: &Known) -> String {
    match known.fate {
        Fate::Taken(Section::Database, ours, _) => format!("`{ours}` of a database"),
        Fate::Taken(Section::User, ours, _) => format!("`{ours}` of a user"),
        Fate::Taken(section, ours, _) => format!("`{}.{ours}`", section.path()),
        Fate::Joined(ours) => ours.to_owned(),
        Fate::Ignored => "ignored".to_owned(),
    }
}

fn more(known: &Known) -> String {
    let mut parts = Vec::new();
    if let Fate::Taken(_, _, Turn::Words(words)) = known.fate {
        let others = words.iter().filter(|(theirs, ours)| theirs != ours);
        let others: Vec<String> =
            others.map(|(theirs, ours)| format!("`{theirs}` is `{ours}`")).collect();
        parts.push(others.join(", "));
    }
    if let Fate::Taken(_, _, Turn::SecondsOrAtOnce) = known.fate {
        parts.push("0 is `1ms`".to_owned());
    }
    if let Some(preset) = known.preset {
        parts.push(format!("an ini that says nothing means `{preset}`"));
    }
    if !known.about.is_empty() {
        parts.push(known.about.to_owned());
    }
    parts.join("; ")
}
