//! A configuration file in the making.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::cluster::{cluster, Database};

/// Settings by section, both dotted: `config.set("pool.pool_size", 4)`.
#[derive(Debug, Clone, Default)]
pub struct Config {
    sections: BTreeMap<String, BTreeMap<String, Value>>,
}

/// A value as TOML writes it.
#[derive(Debug, Clone)]
pub struct Value(String);

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        Value(format!("\"{escaped}\""))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::from(text.as_str())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value(number.to_string())
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value(truth.to_string())
    }
}

impl<const N: usize> From<[&str; N]> for Value {
    fn from(items: [&str; N]) -> Value {
        let items: Vec<String> = items.iter().map(|item| Value::from(*item).0).collect();
        Value(format!("[{}]", items.join(", ")))
    }
}

impl<const N: usize> From<[i64; N]> for Value {
    fn from(items: [i64; N]) -> Value {
        Value::from(&items[..])
    }
}

impl From<&[i64]> for Value {
    fn from(items: &[i64]) -> Value {
        Value(format!("{items:?}"))
    }
}

impl From<Vec<String>> for Value {
    fn from(items: Vec<String>) -> Value {
        let items: Vec<String> = items.into_iter().map(|item| Value::from(item).0).collect();
        Value(format!("[{}]", items.join(", ")))
    }
}

impl Config {
    /// What most tests start from: [`Config::base`], and `database` under its own name with the
    /// role `app` of the same password.
    pub fn of(database: &Database) -> Config {
        Config::base().database(&database.name)
    }

    /// Transaction mode, SCRAM, the users `app` and `admin`.
    pub fn base() -> Config {
        Config::default()
            .set("auth.method", "scram")
            .set("auth.admin_users", ["admin"])
            .set("runtime.shutdown_timeout", "5s")
            .set("pool.mode", "transaction")
            .set("pool.pool_size", 5)
            .set("users.app.password", super::cluster::APP_PASSWORD)
            .set("users.admin.password", super::gateway::ADMIN_PASSWORD)
    }

    /// Adds a database of the cluster under its own name.
    pub fn database(self, name: &str) -> Config {
        self.set(&format!("databases.{name}.host"), "127.0.0.1")
            .set(&format!("databases.{name}.port"), i64::from(cluster().port))
            .set(&format!("databases.{name}.dbname"), name)
    }

    /// Sets `section.key`; the last dot parts them. A value set before is replaced.
    pub fn set(mut self, path: &str, value: impl Into<Value>) -> Config {
        let (section, key) = path.rsplit_once('.').expect("a path of section.key");
        self.sections.entry(section.into()).or_default().insert(key.into(), value.into());
        self
    }

    /// The value of `section.key` as TOML writes it.
    pub fn get(&self, path: &str) -> Option<&str> {
        let (section, key) = path.rsplit_once('.')?;
        Some(&self.sections.get(section)?.get(key)?.0)
    }

    /// The text of the file.
    pub fn toml(&self) -> String {
        let mut text = String::new();
        for (section, keys) in &self.sections {
            writeln!(text, "[{section}]").expect("strings take all");
            for (key, Value(value)) in keys {
                writeln!(text, "{key} = {value}").expect("strings take all");
            }
            text.push('\n');
        }
        text
    }
}
