//! Streams of changes: one thread follows any number of databases.
//!
//! ```text
//! Streams::follow --> task of the database --> two connections (backend::replication)
//!                       |   '-> consumer: began, changes, published, redefined, lost
//!                       |-> Standing, for console and metrics
//! Tap::copy ------------'-> rows of tables as one snapshot sees them, over other connections
//! ```
//!
//! A stream that ends begins anew by itself, with another slot, after a pause that grows.

mod copying;
mod database;
mod keeping;
mod pace;
mod standing;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use backend::login::Credential;
use backend::moment::Moment;
use backend::replication::Changes;
use tokio::sync::{mpsc, watch, Notify};

use crate::config::PoolConfig;
use crate::control::dial::Dialer;
pub use backend::replication::snapshot::{Found, Limits, Rows, Source};
use copying::Copies;
use database::Database;
pub(crate) use keeping::ask;
use pace::Pace;
pub use standing::{Standing, State};

/// Name of the publication, unless somebody wants another.
pub const PUBLICATION: &str = "pondage";

/// The server's time begins in 2000.
const SERVER_EPOCH: Duration = Duration::from_secs(946_684_800);

/// How a database is followed.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub publication: String,
    /// In bytes; a slot that holds more is dropped, and the stream begins anew. Zero: no limit.
    pub slot_max_wal: u64,
    /// The stream is lost when the server was not heard of for so long.
    pub silence: Duration,
    /// How often tables, rights and definitions are looked at. A look that takes long makes the
    /// next one later.
    pub poll: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            publication: PUBLICATION.to_owned(),
            slot_max_wal: 1 << 30,
            silence: Duration::from_secs(30),
            poll: Duration::from_secs(3),
        }
    }
}

/// The streams of the process. The thread ends when the last of these is gone.
#[derive(Clone)]
pub struct Streams {
    /// With those that have been stopped and have not ended. A plain mutex: held for a look, never
    /// across an await.
    taps: Arc<Mutex<HashMap<String, Tap>>>,
    /// As many messages as databases are followed or left by configuration.
    new: mpsc::UnboundedSender<Database>,
    clock: Clock,
    pace: Arc<Pace>,
}

/// A database that is followed.
#[derive(Clone)]
pub struct Tap(Arc<Shared>);

struct Shared {
    /// Somebody wants to know how far the server is, or that it comes as far as `wanted`.
    pings: Notify,
    /// Somebody wants a look at tables and definitions soon.
    looks: Notify,
    /// A ping was asked for.
    pinged: AtomicBool,
    /// The furthest position that somebody waits for, of this stream.
    wanted: AtomicU64,
    stopped: AtomicBool,
    /// It has become true.
    stop: Notify,
    copies: Copies,
    /// Its consumer is told nothing any more.
    ended: watch::Sender<bool>,
    standing: Mutex<Standing>,
    pace: Arc<Pace>,
}

/// Moments as the server's time.
#[derive(Debug, Clone, Copy)]
struct Clock {
    zero: Instant,
    /// Microseconds from the server's epoch to `zero`.
    epoch: i64,
}

impl Clock {
    fn start() -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH + SERVER_EPOCH);
        let micros = since.map_or(0, |since| since.as_micros());
        Clock { zero: Instant::now(), epoch: i64::try_from(micros).unwrap_or(0) }
    }

    fn now(self) -> Moment {
        Moment(u64::try_from(self.zero.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn instant(self, moment: Moment) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.zero + Duration::from_micros(moment.0))
    }
}

impl Streams {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub fn start(dialer: Arc<Dialer>) -> io::Result<Streams> {
        let pace = Arc::new(Pace::new());
        let resting = pace.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(move || resting.rest())
            .build()?;
        let (new, mut databases) = mpsc::unbounded_channel::<Database>();
        let follow = async move {
            while let Some(database) = databases.recv().await {
                tokio::spawn(database.run(dialer.clone()));
            }
        };
        let thread = std::thread::Builder::new()
            .name("pondage-stream".to_owned())
            .spawn(move || runtime.block_on(follow))?;
        pace.is_of(thread.thread().clone());
        Ok(Streams { taps: Arc::default(), new, clock: Clock::start(), pace })
    }

    /// Follows the database of this pool from now on, as its user, who needs REPLICATION, and
    /// tells `consumer` on the streams' thread. A stream under the same name is stopped, and has
    /// ended before this one begins.
    pub fn follow(
        &self,
        config: Arc<PoolConfig>,
        proven: Option<Credential>,
        options: Options,
        consumer: Box<dyn Changes + Send>,
    ) -> Tap {
        let standing = Mutex::new(Standing::new(&config.database, &options.publication));
        let tap = Tap(Arc::new(Shared {
            pings: Notify::new(),
            looks: Notify::new(),
            pinged: AtomicBool::new(false),
            wanted: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            stop: Notify::new(),
            copies: Copies::default(),
            ended: watch::Sender::new(false),
            standing,
            pace: self.pace.clone(),
        }));
        let before = {
            let mut taps = lock(&self.taps);
            taps.retain(|_, tap| !*tap.0.ended.borrow());
            taps.insert(config.database.clone(), tap.clone())
        };
        before.iter().for_each(Tap::stop);
        let clock = self.clock;
        let database = Database::new(config, proven, options, consumer, tap.clone(), before, clock);
        // The thread ends with this handle and not before.
        let _ = self.new.send(database);
        tap
    }

    /// Ends the stream soon; its consumer is told that it is lost, and dropped.
    pub fn stop(&self, database: &str) {
        lock(&self.taps).get(database).inspect(|tap| tap.stop());
    }

    /// As [`Tap::ping`].
    pub fn ping(&self, database: &str) {
        if let Some(tap) = lock(&self.taps).get(database) {
            tap.ping();
        }
    }

    /// As [`Tap::look`].
    pub fn look(&self, database: &str) {
        if let Some(tap) = lock(&self.taps).get(database) {
            tap.look();
        }
    }

    /// All that are followed, by name.
    pub fn standing(&self) -> Vec<Standing> {
        let taps = lock(&self.taps);
        let mut all: Vec<_> =
            taps.values().filter(|tap| !tap.stopped()).map(Tap::standing).collect();
        all.sort_by(|a, b| a.database.cmp(&b.database));
        all
    }
}

impl Tap {
    /// Has the server say how far its log is: [`Changes::progress`] follows, when all before it
    /// has been told. Calls while one is under way are answered by one more.
    pub fn ping(&self) {
        self.0.pinged.store(true, Ordering::Release);
        self.0.hurry();
    }

    /// Somebody waits until everything before this position has been told: the server is asked
    /// for it where it does not tell by itself.
    pub fn want(&self, position: u64) {
        if self.0.wanted.fetch_max(position, Ordering::AcqRel) < position {
            self.0.hurry();
        }
    }

    /// Has tables and definitions looked at soon, not more often than is good for the server:
    /// something may be new.
    pub fn look(&self) {
        self.0.looks.notify_one();
    }

    pub fn standing(&self) -> Standing {
        lock(&self.0.standing).clone()
    }

    fn stop(&self) {
        self.0.stopped.store(true, Ordering::Release);
        self.0.stop.notify_one();
    }

    async fn ended(&self) {
        // The sender is in it.
        let _ = self.0.ended.subscribe().wait_for(|ended| *ended).await;
    }

    fn stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Acquire)
    }

    fn set(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut lock(&self.0.standing));
    }
}

impl Shared {
    fn hurry(&self) {
        self.pings.notify_one();
        self.pace.hurry();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
