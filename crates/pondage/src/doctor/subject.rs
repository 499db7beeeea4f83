//! Which databases are examined, and as whom.

use std::sync::Arc;

use wire::pg::auth::Secret;

use crate::config::{Config, PoolConfig};

/// Most databases of one run.
const SUBJECTS_MAX: usize = 100;

/// The pool that clients of a database would get.
#[derive(Debug)]
pub struct Subject {
    pub pool: Arc<PoolConfig>,
}

/// The databases that the configuration names, or the one that is asked for.
///
/// # Errors
/// There is none, or nobody who could log in.
pub fn of(
    config: &Config,
    database: Option<&str>,
    user: Option<&str>,
) -> Result<Vec<Subject>, String> {
    let named: Vec<&str> = match database {
        Some(name) => vec![name],
        None => {
            let enabled = config.databases.iter().filter(|(_, section)| !section.disabled);
            enabled.map(|(name, _)| name.as_str()).filter(|name| *name != "*").collect()
        }
    };
    if named.is_empty() {
        return Err(
            "the configuration names no database: say which with --database NAME".to_owned()
        );
    }
    if named.len() > SUBJECTS_MAX {
        return Err(format!(
            "the configuration names {} databases, and {SUBJECTS_MAX} are examined in one run: say \
             which with --database NAME",
            named.len()
        ));
    }
    named.into_iter().map(|name| subject(config, name, user)).collect()
}

fn subject(config: &Config, database: &str, user: Option<&str>) -> Result<Subject, String> {
    let unknown = || format!("there is no database \"{database}\" in the configuration");
    let section =
        config.databases.get(database).or_else(|| config.databases.get("*")).ok_or_else(unknown)?;
    let user = match (user, section.upstream.user.as_deref()) {
        (Some(user), _) | (None, Some(user)) => user.to_owned(),
        (None, None) => known_user(config).ok_or_else(|| {
            format!(
                "nobody is known who could log in to database \"{database}\": say who with --user \
                 NAME, and the password in the configuration"
            )
        })?,
    };
    let pool = config.pool(database, &user).map_err(|_| unknown())?;
    Ok(Subject { pool })
}

/// The first one whose password is stored in clear text. Users of the console are often no roles
/// of the server, so they come last.
fn known_user(config: &Config) -> Option<String> {
    let plain = |secret: &Secret| matches!(secret, Secret::Plain(_));
    let of_sections = config
        .users
        .iter()
        .filter(|(_, user)| user.secret.as_ref().is_some_and(plain))
        .map(|(name, _)| name);
    let of_file =
        config.auth.file_users.iter().filter(|(_, secret)| plain(secret)).map(|(name, _)| name);
    let known = of_sections.chain(of_file);
    let console = [&config.auth.admin_users, &config.auth.stats_users];
    let is_of_console = |name: &str| console.iter().any(|users| users.iter().any(|u| u == name));
    known.min_by_key(|name| is_of_console(name)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(
        toml: &str,
        database: Option<&str>,
        user: Option<&str>,
    ) -> Result<Vec<String>, String> {
        let config = Config::from_text(toml).expect("valid");
        let subjects = of(&config, database, user)?;
        let told =
            |subject: &Subject| format!("{} {}", subject.pool.database, subject.pool.upstream.user);
        Ok(subjects.iter().map(told).collect())
    }

    const TWO: &str = "[databases.app]\nhost = \"db\"\nuser = \"web\"\n\
                       [databases.logs]\nhost = \"db\"\n\
                       [databases.off]\nhost = \"db\"\ndisabled = true\n\
                       [databases.\"*\"]\nhost = \"db\"\n\
                       [users.report]\npassword = \"x\"\n";

    #[test]
    fn all_that_are_named_are_examined_as_who_can_log_in() {
        assert_eq!(named(TWO, None, None).expect("two"), ["app web", "logs report"]);
        assert_eq!(named(TWO, None, Some("me")).expect("two"), ["app web", "logs me"]);
        assert_eq!(named(TWO, Some("any"), None).expect("one"), ["any report"]);
    }

    #[test]
    fn users_of_the_console_are_taken_only_where_there_is_nobody_else() {
        let admin = "[databases.app]\nhost = \"db\"\n[auth]\nadmin_users = [\"ada\"]\n\
                     stats_users = [\"bob\"]\n[users.ada]\npassword = \"x\"\n\
                     [users.bob]\npassword = \"x\"\n";
        assert_eq!(named(admin, None, None).expect("one"), ["app ada"]);
        let web = format!("{admin}[users.web]\npassword = \"x\"\n");
        assert_eq!(named(&web, None, None).expect("one"), ["app web"]);
    }

    #[test]
    fn what_is_missing_is_asked_for() {
        let no_user = "[databases.app]\nhost = \"db\"\n";
        assert!(named(no_user, None, None).expect_err("nobody").contains("--user"));
        assert!(named(no_user, Some("other"), None).expect_err("unknown").contains("\"other\""));
        let all = "[databases.\"*\"]\nhost = \"db\"\n";
        assert!(named(all, None, None).expect_err("which").contains("--database"));
    }
}
