//! The thread that makes a database's mirrors: it looks what is wanted, has tables copied, builds
//! indexes, and lets mirrors answer when they have caught up.
//!
//! A copy runs on the streams' thread, beside its stream; what takes long without waiting for a
//! server is done here.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backend::moment::Moment;
use cache::mirror::held::Copy;
use cache::shared::Shared;
use cache::store::Store;

use crate::stream::{Found, Limits, Rows, Source, Tap};

/// How often is looked while something is being made, and while nothing is.
const BUSY: Duration = Duration::from_millis(10);
const IDLE: Duration = Duration::from_secs(1);

/// The thread, as others see it. It ends when this is gone.
pub struct Maker(Arc<Common>);

struct Common {
    state: Mutex<State>,
    changed: Condvar,
    began: Instant,
}

#[derive(Default)]
struct State {
    /// There is something to look at.
    poked: bool,
    copied: Vec<Copy>,
    copying: bool,
    ended: bool,
}

struct Thread {
    common: Arc<Common>,
    shared: Arc<Shared>,
    store: Arc<Store>,
    tap: Tap,
}

/// Takes what a copy tells.
struct Copying {
    common: Arc<Common>,
    shared: Arc<Shared>,
    copy: Option<Copy>,
}

impl Maker {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub fn start(
        shared: Arc<Shared>,
        store: Arc<Store>,
        tap: Tap,
        began: Instant,
    ) -> io::Result<Maker> {
        let state = Mutex::default();
        let common = Arc::new(Common { state, changed: Condvar::new(), began });
        let poked = Arc::downgrade(&common);
        shared.mirrors.tell(Box::new(move || {
            if let Some(common) = poked.upgrade() {
                common.tell(|state| state.poked = true);
            }
        }));
        let thread = Thread { common: common.clone(), shared, store, tap };
        std::thread::Builder::new()
            .name("pondage-mirror".to_owned())
            .spawn(move || thread.run())?;
        Ok(Maker(common))
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        self.0.tell(|state| state.ended = true);
    }
}

impl Common {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_one();
    }

    fn now(&self) -> Moment {
        Moment(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

impl Thread {
    fn run(self) {
        let mut pause = IDLE;
        while let Some(copied) = self.rest(pause) {
            for copy in copied {
                let mirror = copy.mirror;
                match copy.finish() {
                    Ok(loaded) => self.shared.mirrors.loaded(loaded),
                    Err(why) => self.failed(mirror, &why),
                }
            }
            self.turn();
            pause = if self.shared.mirrors.is_making() { BUSY } else { IDLE };
        }
    }

    /// Waits for a while, or until there is something to do. None: that is over.
    fn rest(&self, pause: Duration) -> Option<Vec<Copy>> {
        let idle = |state: &mut State| !state.poked && !state.ended && state.copied.is_empty();
        let waited = self.common.changed.wait_timeout_while(self.common.lock(), pause, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.poked = false;
        (!state.ended).then(|| std::mem::take(&mut state.copied))
    }

    fn turn(&self) {
        let mirrors = &self.shared.mirrors;
        mirrors.bury();
        if self.shared.is_following() {
            let told = self.shared.published();
            mirrors.arrange(self.common.now(), |oid| told.contains_key(&oid));
        }
        if mirrors.waits_for_stream() {
            // An idle server tells nothing until it is asked.
            self.tap.ping();
        }
        mirrors.stand(self.common.now());
        // One after the other, as long as there are some.
        while mirrors.add_index(self.common.now()) {}
        self.store.fit();
        let busy = self.common.lock().copying;
        if let Some(copy) = (!busy).then(|| mirrors.next_copy()).flatten() {
            self.begin(copy);
        }
    }

    /// One at a time: each holds a lock on its table.
    fn begin(&self, copy: Copy) {
        let definition = copy.definition.clone();
        let columns = definition.columns.iter();
        let source = Source {
            oid: definition.oid,
            schema: definition.schema.clone(),
            name: definition.name.clone(),
            columns: columns.map(|column| (column.attnum, column.name.clone())).collect(),
            filenode: definition.filenode,
        };
        tracing::info!(event = "mirror_copied", db = %self.tap.standing().database,
            table = %source.name, "a mirror is being made");
        self.common.lock().copying = true;
        let (common, shared) = (self.common.clone(), self.shared.clone());
        let rows = Copying { common, shared, copy: Some(copy) };
        self.tap.copy(vec![source], Limits::default(), Box::new(rows));
    }

    fn failed(&self, mirror: u64, why: &str) {
        tracing::warn!(event = "mirror_failed", db = %self.tap.standing().database, "{why}");
        self.shared.mirrors.failed(mirror, why, self.common.now());
    }
}

impl Rows for Copying {
    fn began(&mut self, snapshot: &str, lsn: u64, tables: &[Found]) -> Result<(), String> {
        let copy = self.copy.as_mut().ok_or("it has ended")?;
        let same = tables.first().is_some_and(|found| is_same(found, copy));
        if !same {
            return Err("the table has changed".to_owned());
        }
        copy.began(snapshot, lsn)
    }

    fn row(&mut self, _: usize, fields: &[Option<&[u8]>]) -> Result<(), String> {
        self.copy.as_mut().ok_or("it has ended")?.row(fields)
    }

    fn progress(&mut self, _: usize, done: u64, total: u64) {
        if let Some(copy) = &self.copy {
            self.shared.mirrors.progress(copy.mirror, done, total);
        }
    }

    fn done(&mut self) {
        let copy = self.copy.take();
        self.common.tell(|state| {
            state.copied.extend(copy);
            state.copying = false;
        });
    }

    fn failed(&mut self, why: &str) {
        if let Some(copy) = self.copy.take() {
            tracing::warn!(event = "mirror_failed", table = %copy.definition.name, "{why}");
            self.shared.mirrors.failed(copy.mirror, why, self.common.now());
            // The table may be another one by now than statements were judged by.
            self.shared.redefine();
        }
        self.common.tell(|state| {
            state.poked = true;
            state.copying = false;
        });
    }
}

/// Whether the catalogues say of the table what the mirror was made for.
fn is_same(found: &Found, copy: &Copy) -> bool {
    let definition = &copy.definition;
    let columns = found.columns.iter().zip(&definition.columns).all(|(found, column)| {
        let same_type =
            (found.type_oid, found.type_modifier) == (column.type_oid, column.type_modifier);
        same_type && found.not_null == column.not_null && found.attnum == column.attnum
    });
    let mut identity: Vec<i16> = found.identity.clone();
    let place = |at: &u16| definition.columns.get(usize::from(*at)).map(|column| column.attnum);
    let mut known: Vec<i16> = definition.identity.iter().filter_map(place).collect();
    identity.sort_unstable();
    known.sort_unstable();
    columns && found.columns.len() == definition.columns.len() && identity == known
}
