mod cache;
mod cases;
mod errors;
mod options;
mod procedures;
mod redis;
mod sources;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Config, Environment};

/// A directory that goes when the test ends.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "pondage-config-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        Directory(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a temporary file can be written");
        path
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A certificate and a key as far as the configuration looks at them.
pub(super) const PEM: &str = "\
-----BEGIN CERTIFICATE-----
AAAA
-----END CERTIFICATE-----
-----BEGIN PRIVATE KEY-----
AAAA
-----END PRIVATE KEY-----
";

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::new(variables.iter().copied())
}

/// What a configuration says, without where it was said.
fn meaning(config: &Config) -> String {
    format!("{:#?}\n{}", config.pool, meaning_beside_pool(config))
}

fn meaning_beside_pool(config: &Config) -> String {
    format!(
        "{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}",
        config.listen,
        config.runtime,
        config.auth,
        config.databases,
        config.users,
        config.cache,
        config.procedures,
        config.redis,
        config.telemetry
    )
}
