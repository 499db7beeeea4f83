//! What has become of look-ups of users, for the console and the metrics.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::authquery::LookedUp;
use crate::config::{is_console, Config};

/// The look-ups of one database's users: of a section, or of the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub database: String,
    /// As whom its query runs, and where if that is said.
    pub user: String,
    pub place: Option<String>,
    pub cache: Duration,
    pub tally: Tally,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Queries that were answered.
    pub asked: u64,
    /// Log-ins for which what was known did, or another's query.
    pub known: u64,
    /// Log-ins that got no answer.
    pub failed: u64,
    /// Why the last of these got none.
    pub error: Option<String>,
}

/// By section: clients may make up names for `*`.
#[derive(Default)]
pub struct Tallies {
    /// A plain mutex: held to count, never across an await.
    tallies: Mutex<BTreeMap<String, Tally>>,
}

impl Tallies {
    pub fn count(&self, config: &Config, database: &str, answer: &Result<LookedUp, String>) {
        let has_section = is_console(database) || config.databases.contains_key(database);
        let section = if has_section { database } else { "*" };
        let mut tallies = self.tallies();
        if !tallies.contains_key(section) {
            tallies.insert(section.to_owned(), Tally::default());
        }
        let Some(tally) = tallies.get_mut(section) else { return };
        match answer {
            Ok(LookedUp { kept: true, .. }) => tally.known += 1,
            Ok(_) => tally.asked += 1,
            Err(why) => {
                tally.failed += 1;
                tally.error = Some(why.clone());
            }
        }
    }

    /// Those of databases whose users are looked up, in order.
    pub fn standing(&self, config: &Config) -> Vec<Standing> {
        let mut tallies = self.tallies();
        tallies.retain(|name, _| is_console(name) || config.databases.contains_key(name));
        let consoles = crate::config::CONSOLE_DATABASES.into_iter();
        let consoles = consoles.filter(|name| tallies.contains_key(*name));
        let mut names: Vec<&str> = config.databases.keys().map(String::as_str).collect();
        names.extend(consoles);
        let standing = |name: &str| {
            let query = config.auth_query(name)?;
            Some(Standing {
                database: name.to_owned(),
                user: query.user.clone(),
                place: query.database.clone(),
                cache: query.cache,
                tally: tallies.get(name).cloned().unwrap_or_default(),
            })
        };
        names.into_iter().filter_map(standing).collect()
    }

    fn tallies(&self) -> MutexGuard<'_, BTreeMap<String, Tally>> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ups_count_for_their_section_and_names_that_clients_make_up_for_the_star() {
        let text = "[auth]\nquery_user = \"q\"\nquery_database = \"app\"\n[databases.app]\n\
                    auth_query_user = \"r\"\n[databases.\"*\"]\n[users.a]\n";
        let config = Config::from_text(text).expect("valid");
        let tallies = Tallies::default();
        let answer = |kept| LookedUp { known: false, secret: None, kept };
        let (asked, known) = (answer(false), answer(true));
        for name in ["app", "x", "y", "pgbouncer"] {
            tallies.count(&config, name, &Ok(asked.clone()));
        }
        tallies.count(&config, "app", &Ok(known));
        tallies.count(&config, "z", &Err("away".to_owned()));
        let standing = tallies.standing(&config);
        let rows: Vec<_> = standing
            .iter()
            .map(|row| {
                let Tally { asked, known, failed, error } = &row.tally;
                let names = (row.database.as_str(), row.user.as_str());
                (names, *asked, *known, *failed, error.as_deref())
            })
            .collect();
        assert_eq!(
            rows,
            [
                (("*", "q"), 2, 0, 1, Some("away")),
                (("app", "r"), 1, 1, 0, None),
                (("pgbouncer", "q"), 1, 0, 0, None),
            ]
        );
        // A reload without users to look up.
        let config = Config::from_text("[databases.app]\n[users.a]\n").expect("valid");
        assert_eq!(tallies.standing(&config), []);
    }
}
