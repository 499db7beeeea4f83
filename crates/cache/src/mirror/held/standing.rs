//! What people are told of mirrors.

use super::super::definition::Definition;
use super::{lock, Mirrors};

/// A mirror, or one that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorInfo {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    pub columns: Vec<String>,
    pub state: State,
    pub pinned: bool,
    pub rows: u64,
    pub bytes: u64,
    /// Columns with an index.
    pub indexes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// So many blocks of so many are copied.
    Copying {
        done: u64,
        total: u64,
    },
    /// It is copied, or not begun, and waits for the stream.
    Waiting,
    Ready,
    /// It will be tried again.
    Failed {
        why: String,
    },
}

impl Mirrors {
    /// All of them, in order of their names; a table may have one that answers and one that is
    /// being made.
    pub fn info(&self) -> Vec<MirrorInfo> {
        let mut all = Vec::new();
        let queue = self.queue();
        for making in queue.making.values() {
            let (done, total) = making.blocks();
            let state = match making.is_copying() {
                true => State::Copying { done, total },
                false => State::Waiting,
            };
            all.push(MirrorInfo { pinned: making.is_pinned(), ..info(making.definition(), state) });
        }
        if let Some(tables) = self.read() {
            for standing in tables.0.iter() {
                let definition = standing.table.definition();
                let name = |(column, _): (u16, Vec<u16>)| {
                    definition.columns.get(usize::from(column)).map(|column| column.name.clone())
                };
                all.push(MirrorInfo {
                    pinned: standing.pinned,
                    rows: standing.table.len(),
                    bytes: standing.charge.bytes(),
                    indexes: standing.table.indexes().filter_map(name).collect(),
                    ..info(definition, State::Ready)
                });
            }
        }
        let wishes: Vec<_> =
            lock(&self.wishes).iter().filter_map(std::sync::Weak::upgrade).collect();
        let tables =
            wishes.iter().flat_map(|wish| wish.tables.iter().map(|one| (wish.pinned, one)));
        for (pinned, wanted) in tables {
            let Definition { oid, .. } = wanted.definition;
            let Some(failure) = queue.failures.get(&oid) else { continue };
            match all.iter_mut().find(|known| known.oid == oid) {
                Some(known) => known.pinned |= pinned,
                None => {
                    let state = State::Failed { why: failure.why.clone() };
                    all.push(MirrorInfo { pinned, ..info(&wanted.definition, state) });
                }
            }
        }
        all.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        all
    }
}

fn info(definition: &Definition, state: State) -> MirrorInfo {
    MirrorInfo {
        oid: definition.oid,
        schema: definition.schema.clone(),
        name: definition.name.clone(),
        columns: definition.columns.iter().map(|column| column.name.clone()).collect(),
        state,
        pinned: false,
        rows: 0,
        bytes: 0,
        indexes: Vec::new(),
    }
}
