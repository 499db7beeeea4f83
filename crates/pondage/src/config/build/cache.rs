//! `[cache]`, and what a pool that caches needs of it.

use std::collections::BTreeMap;

use wire::pg::auth::Secret;

use super::Builder;
use crate::config::options::{default, Section};
use crate::config::report::{Code, Problem};
use crate::config::settings::{Scope, Setting, Settings};
use crate::config::value::{escaped, quoted, Value};
use crate::config::{CacheConfig, CacheMode, Database, Definition, Freshness, MirrorDefinition};

impl Builder<'_> {
    pub(super) fn cache(&mut self, databases: &BTreeMap<String, Database>) -> CacheConfig {
        let scope = Scope::fixed(Section::Cache);
        let settings = self.settings;
        let values = self.values(&scope);
        let cache = CacheConfig {
            mode: values
                .text("mode")
                .and_then(|word| CacheMode::from_name(&word))
                .unwrap_or(default::CACHE_MODE),
            freshness: values
                .text("freshness")
                .and_then(|word| Freshness::from_name(&word))
                .unwrap_or(default::CACHE_FRESHNESS),
            max_lag: values.duration("max_lag").unwrap_or(default::CACHE_MAX_LAG),
            memory: values.size("memory", default::CACHE_MEMORY),
            mirror_memory: values.size("mirror_memory", default::CACHE_MIRROR_MEMORY),
            user: values.text("user"),
            password: values.secret("password").map(Secret::Plain),
            publication: values
                .text("publication")
                .unwrap_or_else(|| default::CACHE_PUBLICATION.to_owned()),
            slot_max_wal: values.size("slot_max_wal", default::CACHE_SLOT_MAX_WAL),
            wait: values.duration("wait").unwrap_or(default::CACHE_WAIT),
        };
        if settings.has(&scope, "user") {
            return cache;
        }
        let lonely = settings.get(&scope, "password_file").or(settings.get(&scope, "password"));
        if let Some(given) = lonely {
            let problem = Problem::new(Code::MissingValue, "`password` needs `user`")
                .help("without `user`, the database's own user and password are taken");
            self.complain(given, problem);
        }
        for (name, database) in databases {
            // With several hosts it is not cached.
            let several = !database.upstream.several.others.is_empty();
            if several || database.upstream.user.is_some() {
                continue;
            }
            if let Some(given) = caching(settings, name) {
                let message = format!(
                    "the cache of database `{}` needs a user that follows its changes",
                    escaped(name)
                );
                let problem = Problem::new(Code::MissingValue, message)
                    .help("set `user` in `[cache]`, or in the database's section");
                self.complain(given, problem);
            }
        }
        cache
    }
}

impl Builder<'_> {
    /// The statements that a database's section names, no two with one name or one meaning.
    pub(super) fn caches(&mut self, scope: &Scope) -> Vec<Definition> {
        let settings = self.settings;
        let Some(given) = settings.get(scope, "caches") else { return Vec::new() };
        let Value::Names(texts) = &given.value else { return Vec::new() };
        let mut caches: Vec<Definition> = Vec::with_capacity(texts.len());
        // Each was read once; what was wrong then is a problem already.
        for cache in texts.iter().filter_map(|text| Definition::configured(text).ok()) {
            let twice = caches.iter().any(|other| {
                other.normal == cache.normal || other.name.is_some() && other.name == cache.name
            });
            if twice {
                let message = format!("`caches` has {} twice", quoted(&cache.query));
                let problem = Problem::new(Code::Contradiction, message).note(
                    "statements that differ only in their constants are one, and so are \
                           those with the same name",
                );
                self.complain(given, problem);
            }
            caches.push(cache);
        }
        caches
    }

    /// The tables that a database's section wants mirrored, each once.
    pub(super) fn mirrors(&mut self, scope: &Scope) -> Vec<MirrorDefinition> {
        let settings = self.settings;
        let Some(given) = settings.get(scope, "mirrors") else { return Vec::new() };
        let Value::Names(texts) = &given.value else { return Vec::new() };
        let mut mirrors: Vec<MirrorDefinition> = Vec::with_capacity(texts.len());
        // Each was read once; what was wrong then is a problem already.
        for mirror in texts.iter().filter_map(|text| MirrorDefinition::configured(text).ok()) {
            if mirrors.iter().any(|other| other.table == mirror.table) {
                let message = format!("`mirrors` has {} twice", mirror.table);
                self.complain(given, Problem::new(Code::Contradiction, message));
            }
            mirrors.push(mirror);
        }
        mirrors
    }
}

/// What makes some pool of `database` cache, if anything does.
fn caching<'s>(settings: &'s Settings, database: &str) -> Option<&'s Setting> {
    let on = |setting: &&Setting| setting.value != Value::Text(CacheMode::Off.name().to_owned());
    let for_all = settings
        .get(&Scope::database(database), "cache")
        .or_else(|| settings.get(&Scope::fixed(Section::Pool), "cache"))
        .or_else(|| settings.get(&Scope::fixed(Section::Cache), "mode"));
    let for_one = || {
        settings.scopes().find_map(|(scope, _)| {
            let user = &scope.user;
            let nearer = Scope::database_user(database, user);
            let counts = match scope.section {
                Section::DatabaseUser => scope.database == database,
                Section::User => settings.get(&nearer, "cache").is_none(),
                _ => false,
            };
            settings.get(scope, "cache").filter(on).filter(|_| counts)
        })
    };
    for_all.filter(on).or_else(for_one)
}
