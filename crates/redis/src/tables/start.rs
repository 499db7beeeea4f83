//! Links are prepared, the schema is made, the shards are taken.

use backend::calls::{oid, Heard, Params};

use super::links::State;
use super::lookups::LOOKUPS;
use super::{journal, Phase, Tables, LOADER};
use crate::changes::CHANNEL;
use crate::schema;
use crate::statements;
use crate::store::Told;

/// Tags of what is asked while a link is prepared; look-ups have greater ones.
const LOCK: u64 = 1;
const INSTALL: u64 = 2;
const PREPARE: u64 = 4;
const OWNERS: u64 = 5;
const TAKE: u64 = 6;
pub const TAGS: u64 = 100;

/// `insufficient_privilege`
const FORBIDDEN: &str = "42501";

/// A writer waits no longer than this for a row that an SQL transaction has locked; then its batch
/// is tried again, so that the shard is not lost to whoever leaves a transaction open.
const WRITER: &str = "SET lock_timeout = '1s'";

/// Collections' numbers of an owner: so many for each epoch.
const KIDS_BITS: u32 = 36;

/// What is known of the tables while they are being taken.
#[derive(Debug, Default)]
pub struct Taking {
    step: u64,
    locked: bool,
    /// Owners of the shards before.
    owners: Vec<String>,
    /// Id, epoch, applied, appended.
    shards: Vec<(i16, i64, i64, i64)>,
    /// How far the writers' shards are.
    applied: Vec<u64>,
    /// How far the journal is.
    appended: u64,
    failed: Option<String>,
    synced: bool,
}

impl Tables {
    pub(super) fn prepare_loader(&mut self) {
        self.taking = Taking { step: LOCK, ..Taking::default() };
        let text =
            format!("{}; SELECT pg_try_advisory_lock({})", schema::SESSION, schema::GATEWAY_LOCK);
        self.links[LOADER].groups.push_back(0);
        let asked = self.calls(LOADER).query(LOCK, &text);
        self.check(LOADER, asked);
    }

    pub(super) fn prepare_writer(&mut self, link: usize) {
        let calls = self.calls(link);
        let asked = calls
            .query(PREPARE, &format!("{}; {WRITER}", schema::SESSION))
            .and_then(|()| statements::HURRY.prepare(calls, PREPARE))
            .and_then(|()| statements::APPLY.prepare(calls, PREPARE))
            .and_then(|()| statements::PUT_STRINGS.prepare(calls, PREPARE))
            .and_then(|()| statements::APPEND.prepare(calls, PREPARE))
            .and_then(|()| calls.sync());
        // The query is a group of its own.
        self.links[link].groups.extend([0, 0]);
        self.check(link, asked);
    }

    pub(super) fn check(&mut self, link: usize, asked: Result<(), backend::calls::Refused>) {
        if let Err(refused) = asked {
            self.drop_link(link, &refused.to_string());
        }
    }

    pub(super) fn hear_preparing(&mut self, link: usize, heard: Heard<'_>) {
        match heard {
            Heard::Row { tag: LOCK, mut columns } => {
                self.taking.locked = columns.raw().is_ok_and(|value| value == Some(b"t"));
            }
            Heard::Failed { error, .. } => {
                let text = format!("{} ({})", error.message, error.sqlstate);
                self.links[link].error.get_or_insert((error.sqlstate.to_owned(), text));
            }
            Heard::Synced { .. } => drop(self.links[link].groups.pop_front()),
            _ => {}
        }
    }

    /// The next step of a link that is being prepared.
    pub(super) fn prepare_on(&mut self, link: usize) {
        if let Some((sqlstate, why)) = self.links[link].error.take() {
            let why = match sqlstate.as_str() {
                FORBIDDEN if self.taking.step == INSTALL => format!("{why}; {}", self.grant()),
                _ => why,
            };
            self.drop_link(link, &why);
            return;
        }
        if !self.links[link].groups.is_empty() {
            return;
        }
        if link != LOADER {
            self.is_ready_now(link);
            return;
        }
        let asked = match self.taking.step {
            LOCK if !self.taking.locked => {
                self.drop_link(LOADER, "another gateway serves these tables");
                return;
            }
            LOCK => {
                self.taking.step = INSTALL;
                self.links[LOADER].groups.push_back(0);
                self.calls(LOADER).query(INSTALL, &schema::install())
            }
            INSTALL => {
                self.taking.step = PREPARE;
                self.links[LOADER].groups.extend([0, 0]);
                self.prepare_lookups()
            }
            _ => {
                self.is_ready_now(LOADER);
                return;
            }
        };
        self.check(LOADER, asked);
    }

    /// What lets the schema be made.
    fn grant(&self) -> String {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let (database, role) = (quoted(&self.identity.database), quoted(&self.identity.role));
        format!("the schema redis can't be made: GRANT CREATE ON DATABASE {database} TO {role}")
    }

    fn prepare_lookups(&mut self) -> Result<(), backend::calls::Refused> {
        let calls = self.calls(LOADER);
        calls.query(PREPARE, &format!("LISTEN {CHANNEL}"))?;
        let others = [&statements::OWNERS, &statements::TAKE, &statements::JOURNAL];
        for statement in LOOKUPS.into_iter().chain(others) {
            statement.prepare(calls, PREPARE)?;
        }
        calls.sync()
    }

    /// Asks for the shards.
    pub(super) fn take(&mut self) {
        self.taking = Taking { step: TAKE, ..Taking::default() };
        let (owner, shards) = (self.identity.owner.clone(), self.epochs.len());
        let calls = self.calls(LOADER);
        let write_ids = |params: &mut Params<'_>| {
            let mut ids = params.array(oid::INT2);
            (0..shards).for_each(|shard| ids.int2(shard as i16));
            ids.int2(i16::from(journal::SHARD));
        };
        let asked = calls.call(OWNERS, statements::OWNERS.name, write_ids).and_then(|()| {
            calls.call(TAKE, statements::TAKE.name, |params| {
                write_ids(params);
                params.text(&owner);
            })
        });
        let asked = asked.and_then(|()| calls.sync());
        self.check(LOADER, asked);
    }

    /// What the loader answers while the shards are being taken.
    pub(super) fn hear_taking(&mut self, heard: &mut Heard<'_>) {
        match heard {
            Heard::Row { tag: OWNERS, columns } => {
                if let Ok(owner) = columns.text() {
                    self.taking.owners.push(owner.to_owned());
                }
            }
            Heard::Row { tag: TAKE, columns } => {
                let read = (columns.int2(), columns.int8(), columns.int8());
                // `base` is not needed.
                let appended = columns.int8().and_then(|_| columns.int8());
                if let ((Ok(Some(id)), Ok(Some(epoch)), Ok(Some(applied))), Ok(Some(appended))) =
                    (read, appended)
                {
                    self.taking.shards.push((id, epoch, applied, appended));
                }
            }
            Heard::Failed { error, .. } => {
                let text = format!("{} ({})", error.message, error.sqlstate);
                self.taking.failed.get_or_insert(text);
            }
            Heard::Synced { .. } => self.taking.synced = true,
            _ => {}
        }
    }

    /// The shards are ours; what is in the journal comes first.
    pub(super) fn taken(&mut self) {
        if self.phase != Phase::Taking || !std::mem::take(&mut self.taking.synced) {
            return;
        }
        let mut taking = std::mem::take(&mut self.taking);
        let why = match taking.failed.take() {
            Some(why) => Some(why),
            None if taking.shards.len() == self.epochs.len() + 1 => None,
            None => Some("redis.take() has not given all shards".to_owned()),
        };
        if let Some(why) = why {
            self.drop_link(LOADER, &why);
            return;
        }
        let known = self.epochs.iter().all(|epoch| *epoch != 0);
        let same = known && taking.owners.iter().all(|owner| *owner == self.identity.owner);
        // What was taken and not used, since a connection was lost meanwhile, says nothing of
        // whose the shards were before that.
        self.was_others |= !same;
        taking.applied = vec![0; self.epochs.len()];
        for (id, epoch, landed, appended) in std::mem::take(&mut taking.shards) {
            if id == i16::from(journal::SHARD) {
                self.journal.epoch = epoch;
                self.journal.applied = landed as u64;
                taking.appended = appended as u64;
            } else if let Some(place) = self.epochs.get_mut(id as usize) {
                *place = epoch;
                taking.applied[id as usize] = landed as u64;
            }
        }
        self.resolve(&taking.applied, taking.appended, self.journal.applied);
        self.taking = taking;
        self.begin_replay();
    }

    /// The tables have all that was ever acknowledged.
    pub(super) fn replayed(&mut self) {
        let taking = std::mem::take(&mut self.taking);
        let (mut applied, appended) = (taking.applied, taking.appended);
        let newest = self.epochs.iter().copied().max().unwrap_or(1);
        let same = !std::mem::take(&mut self.was_others);
        if same {
            self.tell_resolved();
            // What has been appended is among what was replayed.
            let seq = self.journal.landed_seq;
            self.told.push(Told::Folded { seq, keys: 0, took_us: 0 });
        } else {
            self.forget_flights();
            self.journal.landed_seq = appended;
        }
        self.journal.landed = appended;
        if self.identity.journal {
            applied.push(appended);
        }
        self.phase = Phase::Ready;
        self.told.push(Told::Taken { applied, kids: newest << KIDS_BITS, same });
        debug_assert!(self.links.iter().all(|link| link.state == State::Ready));
    }
}
