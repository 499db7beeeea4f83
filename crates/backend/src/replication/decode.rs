//! From messages of `pgoutput` to calls of [`Changes`].

use std::collections::HashMap;

use wire::pg::pgoutput::{self, Message, Old, Tuple};

use super::Changes;

/// Tables whose shape is remembered.
pub const RELATIONS_MAX: usize = 1 << 17;

/// What the messages that come next belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    /// Told at its commit.
    Whole(u32),
    /// A part of one that is still running.
    Part(u32),
    /// One that is being prepared; it is told at COMMIT PREPARED that it counts.
    Prepared(u32),
}

/// A transaction has been told to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Committed {
    /// The position behind its commit.
    pub end: u64,
    /// The server's clock, in microseconds since 2000-01-01.
    pub time: i64,
}

#[derive(Debug)]
pub(super) struct Decoder {
    /// Columns of each relation that was described.
    relations: HashMap<u32, usize>,
    /// One was described for the first time.
    pub(super) is_new: bool,
    open: Open,
}

impl Decoder {
    pub(super) fn new() -> Decoder {
        Decoder { relations: HashMap::new(), is_new: false, open: Open::Nothing }
    }

    /// Takes the data of one XLogData.
    ///
    /// # Errors
    /// A line that says what is not as it should be; the stream can't be followed after it.
    pub(super) fn take(
        &mut self,
        data: &[u8],
        changes: &mut dyn Changes,
    ) -> Result<Option<Committed>, String> {
        let streamed = matches!(self.open, Open::Part(_));
        let message = pgoutput::message(data, streamed).map_err(|error| error.to_string())?;
        match message {
            Message::Relation { relation, .. } => {
                if self.relations.len() >= RELATIONS_MAX
                    && !self.relations.contains_key(&relation.oid)
                {
                    return Err(format!("more than {RELATIONS_MAX} tables"));
                }
                let known = self.relations.insert(relation.oid, relation.columns.len());
                self.is_new |= known.is_none();
                changes.relation(&relation);
            }
            Message::Insert { xid, relation, new } => {
                self.row(xid, relation, Old::Absent, Some(new), changes)?;
            }
            Message::Update { xid, relation, old, new } => {
                self.row(xid, relation, old, Some(new), changes)?;
            }
            Message::Delete { xid, relation, old } => {
                self.row(xid, relation, old, None, changes)?;
            }
            Message::Truncate { xid, relations, .. } => {
                let xid = self.xid(xid)?;
                changes.truncate(xid, &mut relations.iter());
            }
            Message::Type { .. } | Message::Emitted { .. } | Message::Origin { .. } => {}
            boundary => return self.boundary(&boundary, changes),
        }
        Ok(None)
    }

    fn boundary(
        &mut self,
        message: &Message<'_>,
        changes: &mut dyn Changes,
    ) -> Result<Option<Committed>, String> {
        let committed = |end: &u64, time: &i64| Ok(Some(Committed { end: *end, time: *time }));
        match (message, self.open) {
            (Message::Begin { xid, .. }, Open::Nothing) => {
                self.open = Open::Whole(*xid);
                changes.begin(*xid);
            }
            (Message::Commit { end, time, .. }, Open::Whole(xid)) => {
                self.open = Open::Nothing;
                changes.commit(xid, *end);
                return committed(end, time);
            }
            (Message::StreamStart { xid, .. }, Open::Nothing) => {
                self.open = Open::Part(*xid);
                changes.streaming(*xid);
            }
            (Message::StreamStop, Open::Part(_)) => self.open = Open::Nothing,
            (Message::StreamCommit { xid, end, time, .. }, Open::Nothing) => {
                changes.commit(*xid, *end);
                return committed(end, time);
            }
            (Message::StreamAbort { xid, sub, .. }, Open::Nothing) => changes.abort(*xid, *sub),
            (Message::BeginPrepare(prepared), Open::Nothing) => {
                self.open = Open::Prepared(prepared.xid);
                changes.streaming(prepared.xid);
            }
            (Message::Prepare(prepared), Open::Prepared(xid)) if prepared.xid == xid => {
                self.open = Open::Nothing;
            }
            (Message::StreamPrepare(_), Open::Nothing) => {}
            (Message::CommitPrepared(prepared), Open::Nothing) => {
                changes.commit(prepared.xid, prepared.end);
                return committed(&prepared.end, &prepared.time);
            }
            (Message::RollbackPrepared { prepared, .. }, Open::Nothing) => {
                changes.abort(prepared.xid, prepared.xid);
            }
            (message, open) => return Err(format!("{message:?} while {open:?} is open")),
        }
        Ok(None)
    }

    fn row(
        &self,
        xid: Option<u32>,
        relation: u32,
        old: Old<'_>,
        new: Option<Tuple<'_>>,
        changes: &mut dyn Changes,
    ) -> Result<(), String> {
        let xid = self.xid(xid)?;
        let Some(columns) = self.relations.get(&relation) else {
            return Err(format!("a row of relation {relation}, which was not described"));
        };
        let before = match &old {
            Old::Absent | Old::Unknown => None,
            Old::Key(row) | Old::Whole(row) => Some(row),
        };
        if let Some(row) = before.into_iter().chain(&new).find(|row| row.columns() != *columns) {
            let found = row.columns();
            return Err(format!("a row of {found} columns in relation {relation} of {columns}"));
        }
        changes.row(xid, relation, old, new);
        Ok(())
    }

    /// The transaction of a change.
    fn xid(&self, told: Option<u32>) -> Result<u32, String> {
        match (told, self.open) {
            (Some(xid), Open::Part(_)) => Ok(xid),
            (None, Open::Whole(xid) | Open::Prepared(xid)) => Ok(xid),
            _ => Err("a change outside of a transaction".to_owned()),
        }
    }
}
