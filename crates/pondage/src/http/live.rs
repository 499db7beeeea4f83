//! What the dashboard shows, once a second: a task of its own takes samples for charts, and makes
//! the state while somebody watches, once for all who do.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{json, Map, Value};
use tokio::sync::watch;

use super::cache_metrics::Caches;
use super::overview::{Overview, Sample};
use super::site::Site;
use super::{cache_state, state, WORKER_WAIT};
use crate::console::command::Show;
use crate::console::table::Table;
use crate::console::view::{self, View};
use crate::control::messages::ConsoleUser;
use crate::worker::snapshot::Detail;

pub const INTERVAL: Duration = Duration::from_secs(1);
/// Fifteen minutes of them are kept.
const SAMPLES_MAX: usize = 900;
/// Rows of a table; SHOW has them all.
const ROWS_MAX: usize = 100;
/// Clients that watch at one time.
const WATCHERS_MAX: usize = 64;

/// The SHOWs that the dashboard has, each under its name in small letters.
const TABLES: &[Show] = &[
    Show::Pools,
    Show::PoolsExtended,
    Show::Blockers,
    Show::Pins,
    Show::Hosts,
    Show::Queries,
    Show::ProxiedQueries,
    Show::Coalesce,
    Show::Caches,
    Show::Mirrors,
    Show::Streams,
    Show::Procedures,
    Show::Redis,
    Show::RedisCommands,
    Show::RedisKeys,
    Show::Events,
    Show::Advice,
];

/// The state as JSON, in one line.
pub type Text = Arc<str>;

pub struct Live {
    /// None before the first one, and when the process hands its doors over.
    latest: watch::Sender<Option<Text>>,
    /// The doors are another process's.
    ended: AtomicBool,
    /// Held to push one and to copy all.
    samples: Mutex<VecDeque<Overview>>,
}

impl Default for Live {
    fn default() -> Live {
        Live {
            latest: watch::Sender::new(None),
            ended: AtomicBool::new(false),
            samples: Mutex::default(),
        }
    }
}

impl Live {
    /// None: too many watch, or it is over.
    pub fn watch(&self) -> Option<watch::Receiver<Option<Text>>> {
        if self.ended.load(Ordering::Acquire) {
            return None;
        }
        (self.latest.receiver_count() < WATCHERS_MAX).then(|| self.latest.subscribe())
    }

    /// Whoever watches is to ask elsewhere.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.latest.send_replace(None);
    }

    pub fn history(&self) -> Value {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let samples: Vec<Value> = samples.iter().map(Overview::json).collect();
        json!({ "interval_seconds": INTERVAL.as_secs(), "samples": samples })
    }

    fn last(&self) -> Overview {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.back().copied().unwrap_or_default()
    }

    fn push(&self, overview: Overview) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(overview);
    }
}

/// Samples for ever.
pub async fn keep(site: Arc<Site>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last: Option<(Instant, Sample)> = None;
    loop {
        ticks.tick().await;
        let watched = site.live.latest.receiver_count() > 0;
        let detail = if watched { Detail::STATEMENTS } else { Detail::POOLS };
        let view = view::look(&*site.process, WORKER_WAIT, detail).await;
        let (now, sample) = (Instant::now(), Sample::of(&*site.process, &view));
        if let Some((then, before)) = &last {
            let passed = now.saturating_duration_since(*then);
            site.live.push(Overview::between(before, &sample, passed, unix_seconds()));
        }
        last = Some((now, sample));
        if watched {
            let text: Text = whole(&site, view).to_string().into();
            site.live.latest.send_replace(Some(text));
        }
    }
}

/// Everything the dashboard shows, of this moment.
pub async fn now(site: &Site) -> Value {
    whole(site, view::look(&*site.process, WORKER_WAIT, Detail::STATEMENTS).await)
}

fn whole(site: &Site, view: View) -> Value {
    let process = &*site.process;
    let (config, condition, overview) = (process.config(), process.condition(), site.live.last());
    let mut whole = state::state(&view, condition);
    let caches = Caches::of(process);
    whole["cache"] = cache_state::cache(&config, &caches, &process.pins().all());
    whole["time"] = json!(unix_seconds());
    whole["uptime_seconds"] = json!(site.operator.uptime().as_secs());
    whole["health"] = state::sentence(&view, process.redis(false).as_ref(), condition, &config);
    whole["overview"] = overview.json();
    whole["tables"] = tables(site, view);
    whole
}

/// As an administrator of the console sees them; nobody else is told the state.
fn tables(site: &Site, view: View) -> Value {
    let (user, database) = (String::new(), "pondage".to_owned());
    let who = ConsoleUser { user, database, admin: true, proven: None };
    let made = site.operator.tables(&who, view, TABLES).into_iter();
    let named = made.map(|(show, made)| (show.word().to_lowercase(), table(&made)));
    Value::Object(named.collect::<Map<String, Value>>())
}

/// A result of the console.
pub fn table(table: &Table) -> Value {
    let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let rows: Vec<Vec<Value>> = table
        .rows
        .iter()
        .take(ROWS_MAX)
        .map(|row| row.iter().map(cache_state::plain).collect())
        .collect();
    let more = table.rows.len() - rows.len();
    json!({ "columns": columns, "rows": rows, "more": more })
}

fn unix_seconds() -> f64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}
