//! Which users somebody with a name of another kind may be: pg_ident.conf.
//!
//! Source: `parse_ident_line` and `check_ident_usermap` in `src/backend/libpq/hba.c`.

use std::path::Path;

use super::files::{self, Line};
use super::pattern::Pattern;
use super::tokens::Token;
use super::Fault;

/// Lines of all maps; a log-in looks at all that have the map's name.
const LINES_MAX: usize = 10_000;

/// Regular expressions among them.
const PATTERNS_MAX: usize = 500;

/// All maps.
#[derive(Debug, Default)]
pub struct Maps {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    map: String,
    system: System,
    user: User,
}

#[derive(Debug)]
enum System {
    Is(String),
    Like(Pattern),
}

#[derive(Debug)]
enum User {
    All,
    Is(String),
    /// With what the system's name has in its first group between the two.
    Around(String, String),
    Like(Pattern),
}

/// Why somebody may not be a user. The words are for the log.
#[derive(Debug, PartialEq, Eq)]
pub struct NotMapped(pub String);

impl Maps {
    /// Reads a file and all that it includes.
    ///
    /// # Errors
    /// Every line that is wrong, in order; never empty.
    pub fn read(file: &Path) -> Result<Maps, Vec<Fault>> {
        let (lines, mut faults) = files::read(file);
        let mut entries = Vec::with_capacity(lines.len());
        for line in &lines {
            match entry(line) {
                Ok(entry) => entries.push(entry),
                Err(fault) => faults.push(*fault),
            }
        }
        let patterns = entries.iter().filter(|entry: &&Entry| entry.has_pattern()).count();
        if let (true, Some(last)) =
            (patterns > PATTERNS_MAX || entries.len() > LINES_MAX, lines.last())
        {
            let message =
                format!("more than {LINES_MAX} lines, or {PATTERNS_MAX} with regular expressions");
            faults.push(Fault::new(last.end(), message));
        }
        match faults.is_empty() {
            true => Ok(Maps { entries }),
            false => Err(faults),
        }
    }

    pub fn has(&self, map: &str) -> bool {
        self.entries.iter().any(|entry| entry.map == map)
    }

    /// May who is called `system` elsewhere be `user`? Without a map the names have to be equal.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, map: Option<&str>, system: &str, user: &str) -> Result<(), NotMapped> {
        let Some(map) = map else {
            return match system == user {
                true => Ok(()),
                false => Err(NotMapped(format!("they are \"{system}\""))),
            };
        };
        for entry in self.entries.iter().filter(|entry| entry.map == map) {
            if entry.fits(system, user) {
                return Ok(());
            }
        }
        Err(NotMapped(format!("no line of map \"{map}\" fits \"{system}\"")))
    }
}

impl Entry {
    fn has_pattern(&self) -> bool {
        matches!(self.system, System::Like(_)) || matches!(self.user, User::Like(_))
    }

    fn fits(&self, system: &str, user: &str) -> bool {
        let group = match &self.system {
            System::Is(name) if name == system => None,
            System::Is(_) => return false,
            System::Like(pattern) => match pattern.first_group(system) {
                Some(group) => group,
                None => return false,
            },
        };
        match &self.user {
            User::All => true,
            User::Is(name) => name == user,
            User::Like(pattern) => pattern.fits(user),
            User::Around(before, after) => group.is_some_and(|group| {
                let rest = user.strip_prefix(before.as_str());
                rest.and_then(|rest| rest.strip_suffix(after.as_str())) == Some(group)
            }),
        }
    }
}

fn entry(line: &Line) -> Result<Entry, Box<Fault>> {
    let ([map, system, user], None) = ([0, 1, 2].map(|at| line.fields.get(at)), line.fields.get(3))
    else {
        let message = "the line is not of the form MAP SYSTEM-USERNAME DATABASE-USERNAME";
        return Err(Box::new(Fault::new(line.end(), message)));
    };
    let one = |field: Option<&Vec<Token>>, what: &str| match field.map(Vec::as_slice) {
        Some([token]) => Ok(token.clone()),
        Some([_, second, ..]) => {
            Err(Box::new(Fault::new(line.at(second), format!("more than one {what}"))))
        }
        _ => Err(Box::new(Fault::new(line.end(), format!("the line ends before the {what}")))),
    };
    let map = one(map, "name of a map")?;
    let system = one(system, "system user name")?;
    let user = one(user, "database user name")?;
    let pattern = |token: &Token, written: &str| {
        Pattern::new(written).map_err(|why| {
            let message = format!("invalid regular expression \"{written}\": {why}");
            Box::new(Fault::new(line.at(token), message))
        })
    };
    let known = match system.text.strip_prefix('/') {
        Some(written) => System::Like(pattern(&system, written)?),
        None => System::Is(system.text),
    };
    let who = match (user.text.strip_prefix('/'), &known) {
        (Some(written), _) => User::Like(pattern(&user, written)?),
        (None, _) if user.is("all") => User::All,
        (None, _) if !user.quoted && user.text.starts_with('+') => {
            let message = format!("{} is not supported", user.text);
            let help = "Pondage does not know the members of a role: name the users";
            return Err(Box::new(Fault::new(line.at(&user), message).help(help)));
        }
        (None, System::Like(pattern)) => match user.text.split_once("\\1") {
            Some(_) if !pattern.has_group() => {
                let message = "\\1 needs a group (in parentheses) in the regular expression";
                return Err(Box::new(Fault::new(line.at(&user), message)));
            }
            Some((before, after)) => User::Around(before.to_owned(), after.to_owned()),
            None => User::Is(user.text),
        },
        (None, System::Is(_)) => User::Is(user.text),
    };
    Ok(Entry { map: map.text, system: known, user: who })
}
