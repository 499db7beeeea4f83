//! Looks, now and then, at what calls of procedures wait for.
//!
//! Workers say which calls their servers work on, PostgreSQL which of its processes waits for
//! which. What follows from that is kept with each procedure: see `procedures/waits.rs`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{interval, timeout, MissedTickBehavior};

use super::messages::ToWorker;
use super::Control;
use crate::procedures::{observe, Running};

/// One look at each database whose procedures are called.
const EVERY: Duration = Duration::from_secs(1);

/// A worker that has not answered by then is left out.
const ANSWER_MAX: Duration = Duration::from_millis(500);

impl Control {
    /// Looks until it is dropped.
    pub(super) async fn watch_waits(self: Arc<Control>) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = BTreeSet::new();
        loop {
            ticks.tick().await;
            for database in self.procedures.databases() {
                self.look_at_waits(&database).await;
            }
            self.tell_suggestions(&mut told);
        }
    }

    async fn look_at_waits(&self, database: &str) {
        let mut running: HashMap<u32, Running> = HashMap::new();
        for worker in &self.workers {
            let (reply, answer) = oneshot::channel();
            worker.send(ToWorker::Running { database: database.to_owned(), reply });
            if let Ok(Ok(some)) = timeout(ANSWER_MAX, answer).await {
                running.extend(some);
            }
        }
        if running.is_empty() {
            return;
        }
        // One alone waits for nobody whom Pondage knows.
        let blocked = match running.len() {
            1 => Ok(Vec::new()),
            _ => self.judges.blocked(database).await,
        };
        match blocked {
            Ok(blocked) => observe(&running, &blocked),
            Err(error) => {
                tracing::debug!(event = "waits_unseen", db = database, "{error}");
            }
        }
    }

    /// Says once for each procedure which key would help.
    fn tell_suggestions(&self, told: &mut BTreeSet<(String, String)>) {
        for procedure in self.procedures.list() {
            let key = procedure.suggested();
            let name = (procedure.database.clone(), procedure.title.clone());
            if key.is_empty() || !told.insert(name) {
                continue;
            }
            tracing::info!(
                event = "procedure_key_suggested",
                db = procedure.database,
                procedure = procedure.title,
                key = key.join(","),
                "its calls wait for one another where these are equal"
            );
        }
    }
}
