//! How users are looked up: `query` of `[auth]`, and what databases say instead.

use super::Builder;
use crate::config::options::{default, Section};
use crate::config::report::{Code, Problem};
use crate::config::settings::Scope;
use crate::config::value::{quoted, Value};
use crate::config::{is_console, AuthQuery};

/// The names of its options in `[auth]` and in the section of a database.
const QUERY: [&str; 2] = ["query", "auth_query"];
const USER: [&str; 2] = ["query_user", "auth_query_user"];
const DATABASE: [&str; 2] = ["query_database", "auth_query_database"];
const CACHE: [&str; 2] = ["query_cache", "auth_query_cache"];

impl Builder<'_> {
    /// The query of a section, `[auth]` or a database: what it does not say, `[auth]` says.
    pub(super) fn auth_query(&mut self, scope: &Scope) -> Option<AuthQuery> {
        let own = usize::from(scope.section == Section::Database);
        self.check_auth_query(scope, own);
        let user = self.nearest_text(scope, USER)?;
        let sql = self.nearest_text(scope, QUERY);
        let cache = match self.nearest(scope, CACHE) {
            Some(Value::Duration(time)) => *time,
            _ => default::AUTH_QUERY_CACHE,
        };
        Some(AuthQuery {
            sql: sql.as_deref().unwrap_or(default::AUTH_QUERY).into(),
            user,
            database: self.nearest_text(scope, DATABASE),
            cache,
        })
    }

    fn nearest(&self, scope: &Scope, [all, own]: [&'static str; 2]) -> Option<&Value> {
        let auth = Scope::fixed(Section::Auth);
        self.settings.value(scope, own).or_else(|| self.settings.value(&auth, all))
    }

    fn nearest_text(&self, scope: &Scope, names: [&'static str; 2]) -> Option<String> {
        match self.nearest(scope, names)? {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Whether `[auth]`'s query is that of a database.
    fn has_users_of_all(&self) -> bool {
        let settings = self.settings;
        let mut databases = settings.of(Section::Database).peekable();
        databases.peek().is_none() || databases.any(|(at, _)| !settings.has(at, QUERY[1]))
    }

    /// What is said in this section is right; `own`: which names it uses.
    fn check_auth_query(&mut self, scope: &Scope, own: usize) {
        let settings = self.settings;
        let used = own == 1 || self.has_users_of_all();
        if let Some(given) = settings.get(scope, QUERY[own]).filter(|_| used) {
            let has_name = matches!(&given.value, Value::Text(sql) if sql.contains("$1"));
            if !has_name {
                let name = QUERY[own];
                let message = format!("`{name}` has no $1, which stands for the name of the user");
                self.complain(given, Problem::new(Code::BadValue, message));
            }
        }
        if let Some(given) = settings.get(scope, DATABASE[own]) {
            if let Value::Text(database) = &given.value {
                if is_console(database) {
                    let (name, shown) = (DATABASE[own], quoted(database));
                    let message = format!("`{name}` is {shown}, which is the console");
                    let problem = Problem::new(Code::BadValue, message)
                        .help("name the section of a database that has the users");
                    self.complain(given, problem);
                }
            }
        }
        let auth = Scope::fixed(Section::Auth);
        if own == 0 || settings.has(scope, USER[1]) || settings.has(&auth, USER[0]) {
            return;
        }
        for [_, name] in [QUERY, DATABASE, CACHE] {
            if let Some(given) = settings.get(scope, name) {
                let message = format!("`{name}` needs `auth_query_user`");
                let problem = Problem::new(Code::MissingValue, message)
                    .help("or `query_user` in `[auth]`, for all databases");
                self.complain(given, problem);
            }
        }
    }

    /// Of `[auth]`: somebody has to run the query, for all databases or for some.
    pub(super) fn check_lonely_query(&mut self, scope: &Scope) {
        let settings = self.settings;
        let mut databases = settings.of(Section::Database);
        if settings.has(scope, USER[0]) || databases.any(|(at, _)| settings.has(at, USER[1])) {
            return;
        }
        for [name, _] in [QUERY, DATABASE] {
            if let Some(given) = settings.get(scope, name) {
                let message = format!("`{name}` needs `query_user`");
                self.complain(given, Problem::new(Code::MissingValue, message));
            }
        }
    }
}
