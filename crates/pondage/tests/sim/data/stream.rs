//! A walsender and its client: what the log of a simulated database tells the real applier, late,
//! in pieces, or not at all for a while.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use backend::moment::Moment;
use backend::replication::{Changes, Old, PublishedTable};
use cache::apply::Applier;
use cache::shared::Shared;
use cache::store::Store;
use cache::value::oid as types;
use rand::rngs::StdRng;
use rand::Rng;
use wire::pg::pgoutput::{put_tuple, Field, Relation, RelationColumn, Tuple};

use super::copying::Maker;
use super::read::oid;
use super::{Database, Logged, Record, Row, STARTED, TABLES};
use crate::plan::{Caching, Fault};

enum State {
    Off {
        until: u64,
    },
    /// A slot is being made: it waits for who runs.
    Starting {
        runs: BTreeSet<u64>,
    },
    On,
}

/// One call of the applier.
enum Tell {
    Relation(usize, u8, i32),
    Begin(u64),
    Streaming(u64),
    Row(u64, Logged),
    Commit(u64, u64),
    Abort(u64),
    Progress(u64),
}

/// A table that the publication has lost for a while.
enum Away {
    No,
    /// The applier knows; it is told of until then.
    Leaving {
        table: usize,
        until: u64,
    },
    Gone {
        table: usize,
        until: u64,
    },
    /// It is told of again; who runs may have changed it before.
    Coming {
        table: usize,
        runs: BTreeSet<u64>,
        at: usize,
    },
}

pub(crate) struct Stream {
    state: State,
    applier: Applier,
    /// The next record.
    at: usize,
    told: VecDeque<Tell>,
    /// Transactions of which parts have been told.
    streamed: HashSet<u64>,
    described: HashMap<usize, (u8, i32)>,
    away: Away,
    stalls: u64,
    slow: f64,
    loses: f64,
    fault: Option<Fault>,
    /// Rows that a fault tells too late.
    late: Vec<Logged>,
    /// Records that a fault skips.
    skips: usize,
    pub(crate) losses: u64,
    /// None: there is no memory for mirrors.
    pub(crate) maker: Option<Maker>,
}

impl Stream {
    pub(crate) fn new(shared: Arc<Shared>, caching: &Caching, store: Arc<Store>) -> Stream {
        let maker = (caching.mirrors > 0).then(|| Maker::new(store, caching.fault));
        Stream {
            state: State::Off { until: 0 },
            applier: Applier::new(shared),
            at: 0,
            told: VecDeque::new(),
            streamed: HashSet::new(),
            described: HashMap::new(),
            away: Away::No,
            stalls: 0,
            slow: caching.slow,
            loses: caching.loses,
            fault: caching.fault,
            late: Vec::new(),
            skips: 0,
            losses: 0,
            maker,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.applier.shared()
    }

    /// Time passes.
    pub(crate) fn live(&mut self, database: &mut Database, random: &mut StdRng, calm: bool) {
        self.flow(database, random, calm);
        if let Some(maker) = &mut self.maker {
            maker.live(self.applier.shared(), database, random, calm);
        }
    }

    fn flow(&mut self, database: &mut Database, random: &mut StdRng, calm: bool) {
        let now = database.now;
        if !calm && random.random_bool(self.loses) && !matches!(self.state, State::Off { .. }) {
            self.lose(now, now + random.random_range(0..50_000));
        }
        match &self.state {
            State::Off { until } if *until <= now => {
                let runs = database.running.clone();
                self.state = State::Starting { runs };
            }
            State::Off { .. } => {}
            State::Starting { runs } => {
                if runs.iter().all(|xid| database.is_visible(*xid)) {
                    self.begin(database, random);
                }
            }
            State::On => {
                if !calm && random.random_bool(0.002) {
                    self.stalls = now + random.random_range(0..100_000);
                }
                if self.stalls > now && !calm || random.random_bool(self.slow) {
                    return;
                }
                self.go_on(database, random, calm);
            }
        }
    }

    fn lose(&mut self, now: u64, until: u64) {
        self.losses += 1;
        self.applier.lost("so it is told");
        if let Some(maker) = &mut self.maker {
            maker.lose(self.applier.shared(), now);
        }
        self.state = State::Off { until };
    }

    fn begin(&mut self, database: &mut Database, random: &mut StdRng) {
        database.flushed = database.insert;
        self.at = database.log.len();
        if self.fault == Some(Fault::BeginsTooLate) {
            self.skips = random.random_range(1..6);
        }
        self.told.clear();
        self.streamed.clear();
        self.described.clear();
        (self.away, self.late) = (Away::No, Vec::new());
        self.state = State::On;
        self.applier.comes_from(STARTED);
        self.applier.began(database.insert, &published(None));
    }

    fn go_on(&mut self, database: &mut Database, random: &mut StdRng, calm: bool) {
        self.change_publication(database, random, calm);
        if self.told.is_empty() {
            for _ in 0..random.random_range(1..6) {
                self.decode(database, random);
            }
            let all = database.log.get(self.at).is_none_or(|(end, _)| *end > database.flushed);
            if all && random.random_bool(0.5) {
                self.told.push_back(Tell::Progress(database.flushed));
            }
        }
        let count = random.random_range(1..20);
        for _ in 0..count {
            let Some(tell) = self.told.pop_front() else { break };
            self.tell(tell);
        }
        self.shared().heard(Moment(database.now));
        if !calm && random.random_bool(0.002) {
            // Somebody has looked at definitions and rights, and has found something.
            self.applier.redefined();
        }
    }

    /// Takes the next record of the log, if it is on disk.
    fn decode(&mut self, database: &Database, random: &mut StdRng) {
        let Some((_, record)) =
            database.log.get(self.at).filter(|(end, _)| *end <= database.flushed)
        else {
            return;
        };
        self.at += 1;
        if self.skips > 0 {
            self.skips -= 1;
            return;
        }
        match record {
            Record::Part { xid, changes } => {
                self.streamed.insert(*xid);
                self.told.push_back(Tell::Streaming(*xid));
                self.rows(*xid, changes.clone(), random);
            }
            Record::Commit { xid, end, changes } => {
                if !self.streamed.remove(xid) {
                    self.told.push_back(Tell::Begin(*xid));
                    let mut rows = changes.clone();
                    if self.fault == Some(Fault::RowsTooLate) {
                        rows = std::mem::replace(&mut self.late, rows);
                    }
                    self.rows(*xid, rows, random);
                }
                self.told.push_back(Tell::Commit(*xid, *end));
            }
            Record::Abort { xid } => {
                if self.streamed.remove(xid) {
                    self.told.push_back(Tell::Abort(*xid));
                }
            }
        }
    }

    fn rows(&mut self, xid: u64, rows: Vec<Logged>, random: &mut StdRng) {
        for logged in rows {
            let (Logged::Row { table, .. } | Logged::Truncate { table }) = &logged;
            let untold = match &self.away {
                Away::Gone { table: gone, .. } => gone == table,
                Away::Coming { table: gone, at, .. } => gone == table && self.at <= *at,
                Away::No | Away::Leaving { .. } => false,
            };
            if untold {
                continue;
            }
            let skips = match (&logged, self.fault) {
                (Logged::Row { .. }, Some(Fault::RowSkipped)) => random.random_bool(0.3),
                (Logged::Truncate { .. }, Some(Fault::TruncateSkipped)) => true,
                _ => false,
            };
            if skips {
                continue;
            }
            if let Logged::Row { table, identity, version, .. } = &logged {
                let known = self.described.insert(*table, (*identity, *version));
                if known != Some((*identity, *version)) || random.random_bool(0.02) {
                    self.told.push_back(Tell::Relation(*table, *identity, *version));
                }
            }
            self.told.push_back(Tell::Row(xid, logged));
        }
    }

    fn tell(&mut self, tell: Tell) {
        let applier = &mut self.applier;
        // The stream has the lower half of a number.
        match tell {
            Tell::Relation(table, identity, version) => {
                applier.relation(&relation(table, identity, version));
            }
            Tell::Begin(xid) => applier.begin(xid as u32),
            Tell::Streaming(xid) => applier.streaming(xid as u32),
            Tell::Row(xid, Logged::Truncate { table }) => {
                applier.truncate(xid as u32, &mut [oid(table)].into_iter());
            }
            Tell::Row(xid, Logged::Row { table, identity, before, after, .. }) => {
                let whole = identity == b'f';
                let same = matches!((&before, &after), (Some((a, _)), Some((b, _))) if a == b);
                let old =
                    before.as_ref().map(|(key, row)| tuple(*key, Some(row).filter(|_| whole)));
                let new = after.as_ref().map(|(key, row)| tuple(*key, Some(row)));
                let parse = |bytes| Tuple::parse(bytes).expect("a row");
                let old = match &old {
                    None => Old::Absent,
                    Some(_) if self.fault == Some(Fault::OldUntold) => Old::Absent,
                    Some(bytes) if whole => Old::Whole(parse(bytes)),
                    Some(_) if same => Old::Unknown,
                    Some(bytes) => Old::Key(parse(bytes)),
                };
                applier.row(xid as u32, oid(table), old, new.as_deref().map(parse));
            }
            Tell::Commit(xid, end) => applier.commit(xid as u32, end),
            Tell::Abort(xid) => applier.abort(xid as u32, xid as u32),
            Tell::Progress(lsn) => applier.progress(lsn),
        }
    }

    /// A table leaves the publication, and comes again.
    fn change_publication(&mut self, database: &Database, random: &mut StdRng, calm: bool) {
        let now = database.now;
        self.away = match std::mem::replace(&mut self.away, Away::No) {
            Away::No if !calm && random.random_bool(0.002) => {
                let table = random.random_range(0..TABLES.len());
                self.applier.published(&published(Some(table)));
                Away::Leaving { table, until: now + random.random_range(0..20_000) }
            }
            Away::Leaving { table, until } if until <= now => {
                Away::Gone { table, until: now + random.random_range(0..100_000) }
            }
            Away::Gone { table, until } if until <= now => {
                Away::Coming { table, runs: database.running.clone(), at: database.log.len() }
            }
            Away::Coming { table, runs, at } => {
                let all = runs.iter().all(|xid| database.is_visible(*xid));
                let behind = self.at >= at && self.told.is_empty();
                if all && behind {
                    self.applier.published(&published(None));
                    Away::No
                } else {
                    Away::Coming { table, runs, at }
                }
            }
            away => away,
        };
    }
}

fn published(but: Option<usize>) -> Vec<PublishedTable> {
    let tables = (0..TABLES.len()).filter(|table| Some(*table) != but);
    let published = tables.map(|table| PublishedTable {
        oid: oid(table),
        schema: "public".to_owned(),
        name: TABLES[table].to_owned(),
        partitioned: false,
        ancestors: Vec::new(),
    });
    published.collect()
}

fn relation(table: usize, identity: u8, version: i32) -> Relation {
    let column = |name: &str, type_oid, key| RelationColumn {
        name: name.to_owned(),
        type_oid,
        modifier: if name == "v" { version } else { -1 },
        key: key || identity == b'f',
    };
    Relation {
        oid: oid(table),
        schema: "public".to_owned(),
        name: TABLES[table].to_owned(),
        identity,
        columns: vec![
            column("k", types::INT4, true),
            column("g", types::INT4, false),
            column("v", types::TEXT, false),
        ],
    }
}

/// Key, group and mark; of an old row that is told by its key only that.
fn tuple(key: i32, row: Option<&Row>) -> Vec<u8> {
    let (key, group) = (key.to_string(), row.map(|row| row.group.to_string()));
    let text = |value: Option<&str>| value.map(str::to_owned);
    let values = [Some(key), group, text(row.map(|row| row.mark.as_str()))];
    let fields: Vec<Field<'_>> = values
        .iter()
        .map(|value| value.as_ref().map_or(Field::Null, |text| Field::Text(text.as_bytes())))
        .collect();
    let mut bytes = Vec::new();
    put_tuple(&mut bytes, &fields);
    bytes
}
