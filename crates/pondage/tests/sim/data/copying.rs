//! What the gateway's thread for mirrors does, beside a stream: has tables copied at some times
//! under some snapshots, in pieces, and lets mirrors answer. Copies are lost in the middle.

use std::ops::AddAssign;
use std::sync::Arc;

use backend::moment::Moment;
use cache::mirror::definition::Definition;
use cache::mirror::held::{Copy, State};
use cache::mirror::wish::{Wanted, Wish};
use cache::shared::{Shared, Snapshot};
use cache::store::Store;
use rand::rngs::StdRng;
use rand::Rng;

use super::catalogue::{narrowed, GROUP, MARK};
use super::read::oid;
use super::{Database, TABLES};
use crate::plan::Fault;

/// How often what is to be proven has happened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Copies {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// Those that did not fit.
    pub(crate) too_large: u64,
}

impl AddAssign for Copies {
    fn add_assign(&mut self, one: Copies) {
        self.done += one.done;
        self.failed += one.failed;
        self.too_large += one.too_large;
    }
}

/// See the module's documentation.
pub(crate) struct Maker {
    store: Arc<Store>,
    /// What somebody wants mirrored by its name.
    pins: [Option<Pin>; TABLES.len()],
    copying: Option<Copying>,
    copied: Vec<Copy>,
    fault: Option<Fault>,
    pub(crate) copies: Copies,
}

struct Pin {
    wish: Arc<Wish>,
    /// The count of definitions when the catalogues were asked.
    looked: u64,
}

struct Copying {
    copy: Copy,
    table: usize,
    /// The state that its snapshot sees, once it has one, and the next row.
    at: Option<(u64, i32)>,
}

impl Maker {
    pub(crate) fn new(store: Arc<Store>, fault: Option<Fault>) -> Maker {
        let copies = Copies::default();
        Maker { store, pins: [None, None], copying: None, copied: Vec::new(), fault, copies }
    }

    /// Time passes.
    pub(crate) fn live(
        &mut self,
        shared: &Shared,
        database: &Database,
        random: &mut StdRng,
        calm: bool,
    ) {
        if random.random_bool(0.2) {
            self.copy(shared, database, random, calm);
        }
        if random.random_bool(0.05) && shared.is_following() {
            self.pin(shared, database, random);
        }
        if self.fault == Some(Fault::ShownTooSoon) {
            let snapshot = Snapshot::parse(database.snapshot_of_all().as_bytes());
            shared.settle(snapshot.expect("a snapshot"), shared.starts());
        }
        if random.random_bool(0.2) {
            self.turn(shared, Moment(database.now));
        }
    }

    fn turn(&mut self, shared: &Shared, now: Moment) {
        let mirrors = &shared.mirrors;
        for copy in std::mem::take(&mut self.copied) {
            let mirror = copy.mirror;
            match copy.finish() {
                Ok(loaded) => {
                    self.copies.done += 1;
                    mirrors.loaded(loaded);
                }
                Err(why) => {
                    self.copies.too_large += u64::from(why.contains("does not fit"));
                    mirrors.failed(mirror, &why, now);
                }
            }
        }
        mirrors.bury();
        if shared.is_following() {
            let told = shared.published();
            mirrors.arrange(now, |oid| told.contains_key(&oid));
        }
        mirrors.stand(now);
        while mirrors.add_index(now) {}
        self.store.fit();
        if self.copying.is_none() {
            let table = |copy: &Copy| (0..TABLES.len()).find(|at| oid(*at) == copy.definition.oid);
            self.copying = mirrors
                .next_copy()
                .and_then(|copy| Some(Copying { table: table(&copy)?, copy, at: None }));
        }
    }

    /// The catalogues are asked for tables of which they may say something else by now.
    fn pin(&mut self, shared: &Shared, database: &Database, random: &mut StdRng) {
        let has_failed = |table: usize| {
            let mut all = shared.mirrors.info().into_iter();
            all.any(|info| info.oid == oid(table) && matches!(info.state, State::Failed { .. }))
        };
        let looked = shared.definitions();
        for (table, pin) in self.pins.iter_mut().enumerate() {
            let stale = |pin: &Pin| pin.looked != looked || has_failed(table);
            if pin.as_ref().is_some_and(|pin| !stale(pin)) {
                continue;
            }
            let columns = if random.random_bool(0.2) { GROUP + 1 } else { MARK + 1 };
            let definition = narrowed(database.definition(table), columns);
            let same = |pin: &&mut Pin| pin.wish.tables[0].definition == definition;
            if let Some(pin) = pin.as_mut().filter(same) {
                pin.looked = looked;
                continue;
            }
            let wanted = vec![Wanted { definition, indexes: Vec::new() }];
            let wish = Arc::new(Wish::new(wanted, true, Moment(database.now)));
            shared.mirrors.wish(&wish);
            *pin = Some(Pin { wish, looked });
        }
    }

    /// The copy goes on.
    fn copy(&mut self, shared: &Shared, database: &Database, random: &mut StdRng, calm: bool) {
        let Some(mut copying) = self.copying.take() else { return };
        if !calm && random.random_bool(0.01) {
            return self.fail(copying, shared, database.now);
        }
        let done = match copying.at {
            None => copying.begin(database, self.fault).map(|()| false),
            Some((state, from)) => {
                let to = (from + random.random_range(1..20)).min(database.keys());
                copying.at = Some((state, to));
                let rows = (from..to).try_for_each(|key| {
                    let forgets = self.fault == Some(Fault::CopyForgets) && key % 3 == 0;
                    match forgets {
                        true => Ok(()),
                        false => copying.row(database, state, key),
                    }
                });
                rows.map(|()| to == database.keys())
            }
        };
        match done {
            Ok(false) => self.copying = Some(copying),
            Ok(true) => self.copied.push(copying.copy),
            Err(_) => self.fail(copying, shared, database.now),
        }
    }

    /// The stream is lost, and with it the connections that copy.
    pub(crate) fn lose(&mut self, shared: &Shared, now: u64) {
        if let Some(copying) = self.copying.take() {
            self.fail(copying, shared, now);
        }
    }

    fn fail(&mut self, copying: Copying, shared: &Shared, now: u64) {
        self.copies.failed += 1;
        shared.mirrors.failed(copying.copy.mirror, "so it is told", Moment(now));
        shared.redefine();
    }
}

impl Copying {
    /// Takes a snapshot, if the table is what the mirror is made for.
    fn begin(&mut self, database: &Database, fault: Option<Fault>) -> Result<(), String> {
        if !is_part(&self.copy.definition, &database.definition(self.table)) {
            return Err("the table has changed".to_owned());
        }
        let state = match fault {
            Some(Fault::CopyTooOld) => database.state.saturating_sub(3),
            _ => database.state,
        };
        let snapshot = match fault {
            Some(Fault::CopySeesAll) => database.snapshot_of_all(),
            _ => database.snapshot(),
        };
        // Before it is known to be shown, another mirror may be behind it.
        let lsn = if fault == Some(Fault::StandsTooSoon) { 0 } else { database.insert };
        self.at = Some((state, 0));
        self.copy.began(&snapshot, lsn)
    }

    fn row(&mut self, database: &Database, state: u64, key: i32) -> Result<(), String> {
        let Some(row) = database.row_at(self.table, key, state) else { return Ok(()) };
        let (key, group) = (key.to_string(), row.group.to_string());
        let fields = [key.as_bytes(), group.as_bytes(), row.mark.as_bytes()].map(Some);
        let columns = self.copy.definition.columns.len();
        self.copy.row(&fields[..columns])
    }
}

fn is_part(part: &Definition, whole: &Definition) -> bool {
    part.filenode == whole.filenode
        && part.columns.iter().zip(&whole.columns).all(|(one, other)| one == other)
}
