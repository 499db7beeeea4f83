//! What console, HTTP and signals do to the whole process.

use std::collections::HashSet;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use backend::login::Credential;
use cache::mirror::held::MirrorInfo;

use super::caches::Registry;
use super::messages::{Shutdown, ToWorker};
use super::mirrors::{self, Unfit};
use super::{spots, tally, tls, Control};
use crate::config::{self, CacheMode, Config, MirrorDefinition, PoolConfig};
use crate::console::{Condition, MirrorMemory, Pending, Process, SetRefused};
use crate::export::Counts;
use crate::logging;
use crate::procedures::{Procedure, Procedures};
use crate::process::notify;
use crate::route::Cacheable;
use crate::stream::{Standing, Streams};
use crate::worker::redis;

impl Process for Control {
    fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    fn workers(&self) -> u8 {
        u8::try_from(self.workers.len()).unwrap_or(u8::MAX)
    }

    fn send(&self, worker: u8, message: ToWorker) -> bool {
        match self.workers.get(usize::from(worker)) {
            Some(worker) => {
                worker.send(message);
                true
            }
            None => false,
        }
    }

    fn reload(&self) -> Pending<'_, Result<Vec<String>, String>> {
        Box::pin(async {
            let _alone = self.reloading.lock().await;
            notify::reloading();
            let reloaded = self.reload_now();
            notify::tell("READY=1");
            let (notes, again) = reloaded?;
            tracing::info!(event = "reload", "configuration reloaded");
            for note in &notes {
                tracing::warn!(event = "reload_note", "{note}");
            }
            self.follow_again(again).await;
            Ok(notes)
        })
    }

    fn set<'a>(
        &'a self,
        name: &'a str,
        value: &'a str,
    ) -> Pending<'a, Result<Vec<String>, SetRefused>> {
        Box::pin(async move {
            let _alone = self.reloading.lock().await;
            let old = self.config.load_full();
            let new = config::set(&old, name, value).map_err(SetRefused::from)?;
            if !config::changed_unreloadable(&old, &new).is_empty() {
                return Err(SetRefused::Restart);
            }
            let known: HashSet<&String> = old.notices.iter().collect();
            let notes = new.notices.iter().filter(|note| !known.contains(note)).cloned().collect();
            let again = self.put_in_force(&old, new).map_err(SetRefused::Unfit)?;
            self.follow_again(again).await;
            Ok(notes)
        })
    }

    fn shutdown(&self, how: Shutdown) {
        self.begin_shutdown(how);
    }

    fn condition(&self) -> Condition {
        let stopping = self.shutdown.borrow().is_some();
        Condition { listening: self.listening.load(Ordering::Relaxed) && !stopping, stopping }
    }

    fn redis(&self, clients: bool) -> Option<redis::Snapshot> {
        self.redis.as_ref().map(|shared| shared.snapshot(clients))
    }

    fn caches(&self) -> &Registry {
        &self.caches.named
    }

    fn pins(&self) -> &mirrors::Registry {
        &self.mirrors
    }

    fn mirrors(&self, database: &str) -> Vec<MirrorInfo> {
        self.caches.known(database).map_or_else(Vec::new, |shared| shared.mirrors.info())
    }

    fn mirror_memory(&self) -> MirrorMemory {
        let budget = self.caches.mirror_budget();
        MirrorMemory { used: budget.used(), limit: budget.limit() }
    }

    fn judge_mirror<'a>(
        &'a self,
        database: &'a str,
        wanted: &'a MirrorDefinition,
    ) -> Pending<'a, Result<Result<cache::mirror::definition::Definition, Unfit>, String>> {
        Box::pin(self.mirrorable(database, wanted))
    }

    fn hosts(&self) -> Vec<spots::Standing> {
        let config = self.config.load();
        let sections = config.databases.iter();
        let several = sections.filter(|(_, database)| !database.upstream.several.others.is_empty());
        several
            .flat_map(|(name, database)| {
                self.dialer.spots.standing(name, &database.upstream.hosts())
            })
            .collect()
    }

    fn traces(&self) -> Option<Counts> {
        let traced = self.config.load().telemetry.otlp.is_some();
        let counts = self.outbox.counts();
        (traced || counts != Counts::default()).then_some(counts)
    }

    fn events(&self) -> Vec<logging::Happening> {
        logging::recent()
    }

    fn look_ups(&self) -> Vec<tally::Standing> {
        self.auth_queries.tallies.standing(&self.config.load())
    }

    fn streams(&self) -> Vec<Standing> {
        self.streams.get().into_iter().flatten().flat_map(Streams::standing).collect()
    }

    fn kept(&self) -> cache::store::Standing {
        self.caches.store().standing()
    }

    fn judge_cache<'a>(
        &'a self,
        config: &'a PoolConfig,
        proven: Option<Credential>,
        text: &'a str,
    ) -> Pending<'a, Result<Result<Arc<Cacheable>, String>, String>> {
        Box::pin(async move {
            let mut config = PoolConfig::clone(config);
            if config.cache == CacheMode::Off {
                config.cache = CacheMode::Manual;
            }
            let verdict = self.judges.judge(&config, proven, text.as_bytes()).await?;
            Ok(verdict.cache)
        })
    }

    fn check_password<'a>(&'a self, user: &'a str, password: &'a str) -> Pending<'a, bool> {
        Box::pin(async move {
            let Some(secret) = self.config.load().secret(user).cloned() else { return false };
            let (user, password) = (user.to_owned(), password.as_bytes().to_vec());
            // Only the end of the process keeps it from being found out.
            self.dialer.keys.check(secret, user, password).await.unwrap_or(false)
        })
    }

    fn procedures(&self) -> &Procedures {
        &self.procedures
    }

    fn examine_procedure<'a>(
        &'a self,
        config: &'a PoolConfig,
        proven: Option<Credential>,
        schema: Option<&'a str>,
        name: &'a str,
    ) -> Pending<'a, Result<Vec<Arc<Procedure>>, String>> {
        Box::pin(self.judges.examine(config, proven, schema, name))
    }
}

impl Control {
    /// Reads configuration and certificates whole, and only then swaps them. What needs a restart
    /// is listed and stays as it was. With the databases that are to be followed anew.
    fn reload_now(&self) -> Result<(Vec<String>, Vec<String>), String> {
        let old = self.config.load_full();
        let new = config::reload(&old).map_err(|report| report.to_string())?;
        let changed = config::changed_unreloadable(&old, &new);
        let mut notes: Vec<String> = changed
            .iter()
            .map(|change| {
                let config::Change { key, old, new } = change;
                format!("{key} stays {old} until a restart; the configuration says {new}")
            })
            .collect();
        notes.extend(new.notices.iter().cloned());
        let again = self.put_in_force(&old, new)?;
        Ok((notes, again))
    }

    /// Makes a configuration everybody's; gives the databases that are to be followed again.
    fn put_in_force(&self, old: &Config, mut new: Config) -> Result<Vec<String>, String> {
        let listen_tls = tls::listener(&new.listen.tls).map_err(|error| error.to_string())?;
        // The planes number their peers by it.
        new.runtime.workers = old.runtime.workers;
        let new = Arc::new(new);
        logging::configure(&new.telemetry).map_err(|error| error.to_string())?;
        self.config.store(new.clone());
        self.listen_tls.store(listen_tls.clone());
        self.dialer.forget();
        self.auth_queries.forget();
        self.judges.reload();
        self.procedures.configure(&new.procedures);
        self.caches.named.configure(&new);
        self.mirrors.configure(&new);
        let again = self.unfollow(&new);
        self.listen_elsewhere(&new);
        for worker in &self.workers {
            worker.send(ToWorker::Reload { config: new.clone(), tls: listen_tls.clone() });
        }
        Ok(again)
    }

    /// The doors are open.
    pub fn set_listening(&self) {
        self.listening.store(true, Ordering::Relaxed);
    }

    /// Tells every worker to end. A way that waits less replaces one that waits more.
    pub fn begin_shutdown(&self, how: Shutdown) {
        let haste = |how: Shutdown| match how {
            Shutdown::HandedOver => 0,
            Shutdown::WaitForClients => 1,
            Shutdown::WaitForServers => 2,
            Shutdown::Immediate => 3,
        };
        let begun = self.shutdown.send_if_modified(|now| {
            let faster = now.is_none_or(|now| haste(how) > haste(now));
            if faster {
                *now = Some(how);
            }
            faster
        });
        if begun {
            tracing::info!(event = "shutdown", how = ?how, "shutting down");
            for worker in &self.workers {
                worker.send(ToWorker::Shutdown(how));
            }
        }
    }

    /// How the process ends, once it does.
    pub fn stopping(&self) -> Option<Shutdown> {
        *self.shutdown.borrow()
    }

    /// When this process begins to end, or another has taken over.
    pub async fn stopped(&self) {
        // The sender is ours.
        let _ = self.shutdown.subscribe().wait_for(Option::is_some).await;
    }

    /// When another process has taken over.
    pub async fn handed_over(&self) {
        let handed = |how: &Option<Shutdown>| *how == Some(Shutdown::HandedOver);
        if self.shutdown.subscribe().wait_for(handed).await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits for a shutdown to begin and bounds it. After a hand-over the clients have
    /// upgrade_timeout to leave by themselves; then those without a server are closed. What is left
    /// after shutdown_timeout is closed at once.
    pub async fn bound_shutdown(&self) {
        let mut begun = self.shutdown.subscribe();
        if begun.wait_for(Option::is_some).await.is_err() {
            return;
        }
        if self.stopping() == Some(Shutdown::HandedOver) {
            let limit = self.config.load().runtime.upgrade_timeout;
            let faster = begun.wait_for(|how| *how != Some(Shutdown::HandedOver));
            if within(limit, faster).await.is_none() {
                let waited = limit.as_millis();
                tracing::warn!(
                    event = "upgrade_timeout",
                    duration_ms = waited,
                    "clients are closed"
                );
                self.begin_shutdown(Shutdown::WaitForServers);
            }
        }
        let limit = self.config.load().runtime.shutdown_timeout;
        if limit.is_zero() {
            return;
        }
        tokio::time::sleep(limit).await;
        if self.stopping() != Some(Shutdown::Immediate) {
            let waited = limit.as_millis();
            tracing::warn!(event = "shutdown_timeout", duration_ms = waited, "clients are closed");
            self.begin_shutdown(Shutdown::Immediate);
        }
    }
}

/// Zero: without bound.
async fn within<T>(limit: Duration, what: impl Future<Output = T>) -> Option<T> {
    match limit.is_zero() {
        true => Some(what.await),
        false => tokio::time::timeout(limit, what).await.ok(),
    }
}
