//! Keeps the publication, and watches what the stream does not tell.
//!
//! The caller has an ordinary connection with [`super::SETTINGS`]. It begins a round with
//! [`Keeper::round`] and gives each answer to [`Keeper::answer`], until the round is over
//! ([`Todo::Rest`]). After the first round, [`Keeper::published`] are the tables for the stream's
//! begin; from [`Keeper::follow`] on, later rounds tell what becomes different.
//!
//! ```text
//! Version -> Server -> Tables -> Inherits -> (Change* -> Tables -> Inherits) -> Definitions
//!                                                   -> Position -> Rest
//! ```

use std::collections::{HashMap, HashSet, VecDeque};

use super::catalogue::{self, Position, Publication, Row, Server, Table};
use super::missing::{literal, Missing};
use super::plan::{Change, Kind, Look, TableStanding};
use super::{Ended, PublishedTable, SERVER_VERSION_MIN};
use crate::login::ServerError;

/// Rounds until a change that the server refused is tried again.
const RETRY_ROUNDS: u64 = 20;

/// Rows, or why there are none.
pub type Answer = Result<Vec<Row>, ServerError>;

/// What the caller does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Todo {
    /// Run this as a simple query and give its answer.
    Ask(String),
    /// Tell [`super::Changes::published`]; when that is done, go on with [`Keeper::told`].
    Publish(Vec<PublishedTable>),
    /// The round is over. `redefined`: tell [`super::Changes::redefined`].
    Rest { redefined: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Rest,
    Version,
    Server,
    Tables,
    Inherits,
    Change,
    Definitions,
    Position,
    /// A slot that holds too much is taken from its walsender.
    Terminate,
}

/// See the head of this file.
pub struct Keeper {
    name: String,
    slot_max_wal: u64,
    /// The slot, and whether it must be there.
    slot: Option<(String, bool)>,
    phase: Phase,
    version: u32,
    server: Server,
    publication: Option<Publication>,
    tables: Vec<Table>,
    look: Look,
    /// The changes of this round that are still to be made; none once they have been.
    changes: Option<VecDeque<Change>>,
    /// Tables that the server refused to add or drop, and the round of that.
    refused: HashMap<u32, u64>,
    /// The server's words when it last refused a change.
    pub complaint: Option<String>,
    rounds: u64,
    /// What the consumer was told.
    published: Vec<PublishedTable>,
    /// Tables that are published, while transactions below this number may have changed them
    /// before that.
    waiting: HashMap<u32, u64>,
    definitions: Option<String>,
    redefined: bool,
    /// As the last round found it.
    pub position: Position,
    ending: Option<String>,
}

impl Keeper {
    /// `slot_max_wal` in bytes; zero: no limit.
    pub fn new(publication: &str, slot_max_wal: u64) -> Keeper {
        Keeper {
            name: publication.to_owned(),
            slot_max_wal,
            slot: None,
            phase: Phase::Rest,
            version: 0,
            server: Server::default(),
            publication: None,
            tables: Vec::new(),
            look: Look::default(),
            changes: None,
            refused: HashMap::new(),
            complaint: None,
            rounds: 0,
            published: Vec::new(),
            waiting: HashMap::new(),
            definitions: None,
            redefined: false,
            position: Position::default(),
            ending: None,
        }
    }

    /// Begins a round.
    pub fn round(&mut self) -> Todo {
        self.rounds += 1;
        self.changes = None;
        self.redefined = false;
        match self.version {
            0 => self.ask(Phase::Version),
            _ => self.ask(Phase::Server),
        }
    }

    /// A stream is about to begin with this slot: from now on tables that come wait until they
    /// are told for sure.
    pub fn create_slot(&mut self, slot: &str) {
        self.slot = Some((slot.to_owned(), false));
    }

    /// The stream has begun: the slot is there, or lost.
    pub fn follow(&mut self) {
        if let Some((_, created)) = &mut self.slot {
            *created = true;
        }
    }

    /// Why the slot is taken from its walsender, whose own last words say less.
    pub fn ending(&self) -> Option<&str> {
        self.ending.as_deref()
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The tables for [`super::Changes::began`], and what was told since.
    pub fn published(&self) -> &[PublishedTable] {
        &self.published
    }

    /// Whether there are tables that are published, and not told yet for a transaction that runs.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn standing(&self) -> Vec<TableStanding> {
        self.look.standing()
    }

    fn ask(&mut self, phase: Phase) -> Todo {
        self.phase = phase;
        let oid = self.publication.as_ref().map_or(0, |publication| publication.oid);
        Todo::Ask(match phase {
            Phase::Version => catalogue::VERSION.to_owned(),
            Phase::Server => catalogue::server(&self.name),
            Phase::Tables => catalogue::tables(self.version, &self.name, oid),
            Phase::Inherits => catalogue::INHERITS.to_owned(),
            Phase::Definitions => catalogue::DEFINITIONS.to_owned(),
            Phase::Position => catalogue::position(self.slot.as_ref().map_or("", |(slot, _)| slot)),
            Phase::Change => match self.changes.as_ref().and_then(VecDeque::front) {
                Some(change) => self.look.sql(change),
                None => return self.ask(Phase::Server),
            },
            Phase::Terminate => {
                let slot = literal(self.slot.as_ref().map_or("", |(slot, _)| slot));
                format!(
                    "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots \
                     WHERE slot_name = {slot} AND active_pid IS NOT NULL"
                )
            }
            Phase::Rest => return Todo::Rest { redefined: self.redefined },
        })
    }

    /// Takes the answer to what was asked last.
    ///
    /// # Errors
    /// The database can't be followed, or no longer.
    pub fn answer(&mut self, answer: Answer) -> Result<Todo, Ended> {
        if self.phase == Phase::Change {
            return self.changed(answer);
        }
        if let (Phase::Terminate, Some(why)) = (self.phase, &self.ending) {
            return Err(Ended::Lost(why.clone()));
        }
        let rows = answer
            .map_err(|error| Ended::Lost(format!("the catalogues are not readable: {error}")))?;
        match self.phase {
            Phase::Version => self.read_version(rows),
            Phase::Server => self.read_server(rows),
            Phase::Tables => {
                self.tables =
                    rows.into_iter().map(|mut row| catalogue::read_table(&mut row)).collect();
                Ok(self.ask(Phase::Inherits))
            }
            Phase::Inherits => self.looked(rows),
            Phase::Definitions => {
                let now = first(rows).take();
                self.redefined = self.definitions.is_some() && self.definitions != now;
                self.definitions = now;
                Ok(self.ask(Phase::Position))
            }
            Phase::Position => self.read_position(rows),
            Phase::Change | Phase::Terminate | Phase::Rest => {
                Ok(Todo::Rest { redefined: self.redefined })
            }
        }
    }

    /// The consumer knows which tables are left; what is no longer to be told may go.
    pub fn told(&mut self) -> Todo {
        match self.phase {
            Phase::Change => self.ask(Phase::Change),
            phase => self.ask(after_telling(phase)),
        }
    }

    fn read_version(&mut self, rows: Vec<Row>) -> Result<Todo, Ended> {
        self.version = first(rows).number().unwrap_or(0);
        if self.version < SERVER_VERSION_MIN {
            return Err(Ended::Refused(Missing {
                what: format!(
                    "the server is PostgreSQL {}, older than {}",
                    self.version / 10_000,
                    SERVER_VERSION_MIN / 10_000
                ),
                sql: Vec::new(),
            }));
        }
        Ok(self.ask(Phase::Server))
    }

    fn read_server(&mut self, rows: Vec<Row>) -> Result<Todo, Ended> {
        (self.server, self.publication) = catalogue::read_server(&mut first(rows));
        let server = &self.server;
        if server.standby {
            return Err(Ended::Lost("the server is a standby".to_owned()));
        }
        if server.wal_level != "logical" {
            return Err(Ended::Refused(Missing::wal_level(server)));
        }
        // Who streams already is not thrown out.
        if self.slot.is_none() && !server.replication {
            return Err(Ended::Refused(Missing::replication(server)));
        }
        Ok(self.ask(Phase::Tables))
    }

    /// Everything about tables is known.
    fn looked(&mut self, rows: Vec<Row>) -> Result<Todo, Ended> {
        let edges = rows.into_iter().filter_map(|mut row| Some((row.number()?, row.number()?)));
        let edges: Vec<(u32, u32)> = edges.collect();
        let tables = std::mem::take(&mut self.tables);
        let publication = self.publication.clone();
        self.look = Look::new(self.server.clone(), &self.name, publication, tables, &edges);
        let planned = self.changes.is_some();
        let changes = self.look.changes().map_err(Ended::Refused)?;
        let mut endangered = HashSet::new();
        if !planned {
            let mut changes = self.due(changes);
            endangered = self.look.endangered(changes.make_contiguous());
            self.changes = Some(changes);
        } else if self.publication.is_none() {
            let why = self.complaint.clone().unwrap_or_default();
            return Err(Ended::Lost(format!("the publication could not be created: {why}")));
        }
        let next = match self.changes.as_ref().is_some_and(|changes| !changes.is_empty()) {
            true => Phase::Change,
            false => Phase::Definitions,
        };
        // Before anything is dropped from the publication, and whoever dropped it.
        let mut now: HashSet<u32> = self.look.published().iter().map(|table| table.oid).collect();
        now.retain(|oid| !endangered.contains(oid));
        self.waiting.retain(|oid, _| now.contains(oid));
        let left = self.published.iter().filter(|table| now.contains(&table.oid)).cloned();
        let left: Vec<PublishedTable> = left.collect();
        if self.slot.is_some() && left.len() < self.published.len() {
            self.published = left;
            self.phase = if next == Phase::Change { next } else { Phase::Inherits };
            return Ok(Todo::Publish(self.published.clone()));
        }
        Ok(self.ask(next))
    }

    /// The changes without what was refused a short while ago.
    fn due(&self, changes: Vec<Change>) -> VecDeque<Change> {
        let due = |oid: &u32| {
            self.refused.get(oid).is_none_or(|round| self.rounds >= round + RETRY_ROUNDS)
        };
        changes
            .into_iter()
            .filter_map(|mut change| {
                let bare = change.tables.is_empty();
                change.tables.retain(due);
                (bare || !change.tables.is_empty()).then_some(change)
            })
            .collect()
    }

    /// A statement that changes the publication was answered.
    fn changed(&mut self, answer: Answer) -> Result<Todo, Ended> {
        let change = self.changes.as_mut().and_then(VecDeque::pop_front);
        if let (Err(error), Some(change)) = (answer, change) {
            self.complaint = Some(format!("{}: {error}", self.look.sql(&change)));
            let changes = self.changes.get_or_insert_default();
            match change.tables.as_slice() {
                // Somebody else may have been faster: the next look tells.
                [] if change.kind == Kind::Create => changes.clear(),
                [] => {}
                [one] => {
                    self.refused.insert(*one, self.rounds);
                }
                // One of them is in the way: each half alone, down to single tables.
                many => {
                    let (low, high) = many.split_at(many.len() / 2);
                    for half in [high, low] {
                        changes.push_front(Change { kind: change.kind, tables: half.to_vec() });
                    }
                }
            }
        }
        // When all are made, it is looked at again.
        Ok(self.ask(Phase::Change))
    }

    fn read_position(&mut self, rows: Vec<Row>) -> Result<Todo, Ended> {
        self.position = catalogue::read_position(&mut first(rows));
        if let Some((_, created)) = &self.slot {
            match &self.position.slot {
                None if *created => return Err(Ended::Lost("the slot is gone".to_owned())),
                Some(slot) if slot.lost => {
                    return Err(Ended::Lost("the slot has lost what it needs".to_owned()))
                }
                Some(slot) if self.slot_max_wal != 0 && slot.held > self.slot_max_wal => {
                    self.ending = Some(format!(
                        "the slot held {} MB of the log, more than slot_max_wal",
                        slot.held >> 20
                    ));
                    return Ok(self.ask(Phase::Terminate));
                }
                _ => {}
            }
        }
        let all = self.due_tables();
        self.phase = Phase::Rest;
        if all == self.published {
            return Ok(Todo::Rest { redefined: self.redefined });
        }
        self.published = all;
        match self.slot.is_some() {
            true => Ok(Todo::Publish(self.published.clone())),
            false => Ok(Todo::Rest { redefined: self.redefined }),
        }
    }

    /// The tables that are told for sure, behind a look and the position that was read after it.
    fn due_tables(&mut self) -> Vec<PublishedTable> {
        let mut all = self.look.published();
        if self.slot.is_none() {
            return all;
        }
        let known: HashSet<u32> = self.published.iter().map(|table| table.oid).collect();
        let roots: HashSet<u32> =
            self.published.iter().filter(|t| t.partitioned).map(|table| table.oid).collect();
        // The statement that published it has been committed: who began later is told. A new
        // partition was published with its root: nobody can have changed it before, not even
        // before it was attached, for that waits for them.
        let Position { xmin, xmax, .. } = self.position;
        let waiting = &mut self.waiting;
        let mut waits = |table: &PublishedTable| {
            let is_part = table.ancestors.iter().any(|oid| roots.contains(oid));
            !known.contains(&table.oid)
                && !is_part
                && *waiting.entry(table.oid).or_insert(xmax) > xmin
        };
        let (late, due): (Vec<PublishedTable>, Vec<PublishedTable>) =
            all.into_iter().partition(|table| waits(table));
        // What is not told of a child is not told of its parent.
        let above: HashSet<u32> = late.iter().flat_map(|table| table.ancestors.clone()).collect();
        all = due;
        all.retain(|table| !above.contains(&table.oid));
        self.waiting.retain(|oid, _| late.iter().any(|table| table.oid == *oid));
        all
    }
}

fn after_telling(phase: Phase) -> Phase {
    match phase {
        Phase::Inherits => Phase::Definitions,
        _ => Phase::Rest,
    }
}

fn first(rows: Vec<Row>) -> Row {
    rows.into_iter().next().unwrap_or_else(|| Row::new(Vec::new()))
}
