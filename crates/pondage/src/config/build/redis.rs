//! `[redis]`, and what `listen.redis` needs of it.

use std::collections::BTreeMap;

use super::{Builder, Values};
use crate::config::options::{default, Section};
use crate::config::report::{Code, Problem};
use crate::config::settings::{Layer, Scope};
use crate::config::value::{quoted, Value};
use crate::config::{Auth, AuthMethod, Database, Listen, Redis};

impl Values<'_> {
    fn numbers(&self, name: &str) -> Vec<u32> {
        match self.value(name) {
            Some(Value::Numbers(numbers)) => numbers.clone(),
            _ => Vec::new(),
        }
    }
}

impl Builder<'_> {
    pub(super) fn redis(
        &mut self,
        listen: &Listen,
        auth: &Auth,
        databases: &BTreeMap<String, Database>,
    ) -> Redis {
        let scope = Scope::fixed(Section::Redis);
        let values = self.values(&scope);
        let value_limit = values.size("value_limit", default::REDIS_VALUE_LIMIT);
        let mut redis = Redis {
            database: values.text("database"),
            user: values.text("user"),
            default_user: values.text("default_user"),
            users: values.names("users"),
            databases: values.count("databases").unwrap_or(default::REDIS_DATABASES),
            async_databases: values.numbers("async_databases"),
            journal_databases: values.numbers("journal_databases"),
            writers: values.count("writers").unwrap_or(default::REDIS_WRITERS),
            memory: values.size("memory", default::REDIS_MEMORY),
            queue_limit: values.size("queue_limit", default::REDIS_QUEUE_LIMIT),
            journal_limit: values.size("journal_limit", default::REDIS_JOURNAL_LIMIT),
            max_clients: values.count("max_clients").unwrap_or(default::REDIS_MAX_CLIENTS),
            output_limit: values.size("output_limit", default::REDIS_OUTPUT_LIMIT),
            value_limit: u32::try_from(value_limit).unwrap_or(u32::MAX),
            slowlog_threshold: values
                .duration("slowlog_threshold")
                .unwrap_or(default::REDIS_SLOWLOG_THRESHOLD),
            slowlog_length: values.count("slowlog_length").unwrap_or(default::REDIS_SLOWLOG_LENGTH),
            lua_time_limit: values
                .duration("lua_time_limit")
                .unwrap_or(default::REDIS_LUA_TIME_LIMIT),
            notify_keyspace_events: values.text("notify_keyspace_events").unwrap_or_default(),
        };
        self.check_numbers(&scope, &redis);
        if listen.redis.is_empty() {
            return redis;
        }
        self.check_redis_addresses(listen, auth);
        redis.database = self.redis_database(&scope, redis.database, databases);
        let database = redis.database.as_ref();
        let database = database.and_then(|name| databases.get(name).or(databases.get("*")));
        if let (Some(database), None) = (database, &redis.user) {
            if database.upstream.user.is_none() {
                let message = "`listen.redis` needs a user for its connections to the server";
                let problem = Problem::new(Code::MissingValue, message)
                    .help("set `user` in `[redis]`, or in the database's section");
                self.complain_about_redis(problem);
            }
        }
        redis
    }

    /// Logical databases that are named exist.
    fn check_numbers(&mut self, scope: &Scope, redis: &Redis) {
        let settings = self.settings;
        let named = [
            ("async_databases", &redis.async_databases),
            ("journal_databases", &redis.journal_databases),
        ];
        for (name, numbers) in named {
            let missing = numbers.iter().find(|number| **number >= redis.databases);
            if let (Some(number), Some(given)) = (missing, settings.get(scope, name)) {
                let last = redis.databases - 1;
                let message = format!("`{name}` has {number}, but databases end with {last}");
                self.complain(given, Problem::new(Code::Contradiction, message));
            }
        }
    }

    fn check_redis_addresses(&mut self, listen: &Listen, auth: &Auth) {
        let twice = listen.redis.iter().find_map(|address| {
            if listen.postgres.contains(&crate::config::Address::Tcp(*address)) {
                return Some((*address, "postgres"));
            }
            if listen.proxied.contains(address) {
                return Some((*address, "proxied"));
            }
            (listen.http == Some(*address)).then_some((*address, "http"))
        });
        if let Some((address, other)) = twice {
            let message = format!("`redis` and `{other}` both listen on {address}");
            self.complain_about_redis(Problem::new(Code::DuplicateAddress, message));
        }
        let reachable = listen.redis.iter().find(|address| !address.ip().is_loopback());
        let method = self.settings.get(&Scope::fixed(Section::Auth), "method");
        if auth.method == AuthMethod::Peer {
            let notice = "auth.method is peer: nobody can come in at `listen.redis`";
            self.notices.push(notice.to_owned());
        }
        let trusts = matches!(auth.method, AuthMethod::Trust | AuthMethod::Any);
        let (Some(address), true, Some(method)) = (reachable, trusts, method) else { return };
        if method.layer > Layer::Implied {
            let name = auth.method.name();
            let notice = format!("auth.method is {name}: whoever reaches {address} may come in");
            self.notices.push(notice);
            return;
        }
        let message =
            format!("without a password in the URL, whoever reaches {address} could come in");
        let problem = Problem::new(Code::TrustTooWide, message)
            .help("put a user and a password into the URL: clients log in with them");
        self.complain(method, problem);
    }

    fn redis_database(
        &mut self,
        scope: &Scope,
        said: Option<String>,
        databases: &BTreeMap<String, Database>,
    ) -> Option<String> {
        if let Some(name) = said {
            let known = databases.contains_key(&name) || databases.contains_key("*");
            if let (false, Some(given)) = (known, self.settings.get(scope, "database")) {
                let message = format!("`database` is {}, which has no section", quoted(&name));
                let problem =
                    Problem::new(Code::BadValue, message).help("name a section of `[databases]`");
                self.complain(given, problem);
            }
            return Some(name);
        }
        let mut named = databases.keys().filter(|name| *name != "*");
        let only = named.next().cloned();
        if only.is_some() && named.next().is_none() {
            return only;
        }
        let message = "`listen.redis` needs `redis.database`: which database has the data?";
        self.complain_about_redis(Problem::new(Code::MissingValue, message));
        None
    }

    /// A problem with a door that was asked for.
    fn complain_about_redis(&mut self, problem: Problem) {
        match self.settings.get(&Scope::fixed(Section::Listen), "redis") {
            Some(setting) => self.complain(setting, problem),
            None => self.problems.push(problem),
        }
    }
}
