//! What open transactions do to mirrored tables, until they end: rows as the mirrors store them.
//!
//! A transaction that is too large to be held, or a row that is not understood, costs the mirrors
//! that it touches: they are *broken* when it commits, and made anew.

use std::collections::HashMap;
use std::sync::Arc;

use backend::replication::Old;
use foldhash::fast::RandomState;
use smallvec::SmallVec;
use wire::pg::pgoutput::{Field as Told, Relation, Tuple};

use super::change::{put_field, Change, Changes, Fields};
use super::definition::Definition;
use super::key::put_key;
use super::stored::store;
use super::table::Field;

/// Bytes of changes that are held of transactions that have not ended.
pub const OPEN_BYTES_MAX: usize = 128 << 20;

const TOO_LARGE: &str = "a transaction has changed too much of it";
const OTHER_COLUMNS: &str = "its columns have changed";
const NOT_UNDERSTOOD: &str = "a value of it was not understood";

/// Rows of `definition`'s table are told to the mirror with this number.
#[derive(Debug, Clone)]
pub struct Follow {
    pub mirror: u64,
    pub definition: Arc<Definition>,
}

/// What the applier has to tell.
#[derive(Debug, Default)]
pub(crate) struct Follows {
    pub generation: u64,
    pub list: Vec<Follow>,
}

#[derive(Debug, Default)]
pub(crate) struct Feed {
    generation: u64,
    followed: HashMap<u32, SmallVec<[Followed; 1]>, RandomState>,
    ordinary: Open,
    streamed: HashMap<u32, Open, RandomState>,
    /// The streamed one that is being told.
    current: Option<u32>,
    /// Bytes of all streamed ones.
    held: usize,
    scratch: Scratch,
}

#[derive(Debug)]
struct Followed {
    follow: Follow,
    /// None: not looked up since the table was described.
    places: Option<Places>,
}

/// Where the definition's columns are in the rows that are told. None: the table has others.
type Places = Option<Box<[usize]>>;

/// What a transaction has done.
#[derive(Debug, Default)]
pub(crate) struct Open {
    parts: Vec<Part>,
    broken: Vec<(u64, &'static str)>,
    bytes: usize,
    truncates: bool,
}

/// Of one subtransaction, without those of others between.
#[derive(Debug)]
struct Part {
    sub: u32,
    changes: Changes,
}

/// Buffers for one row.
#[derive(Debug, Default)]
struct Scratch {
    identity: Vec<u8>,
    value: Vec<u8>,
    fields: Vec<u8>,
}

impl Feed {
    /// Of [`Follows`], as last told.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// These mirrors are told of rows from now on.
    pub(crate) fn follow(&mut self, follows: &Follows) {
        self.generation = follows.generation;
        self.followed.clear();
        for follow in &follows.list {
            let of_table = self.followed.entry(follow.definition.oid).or_default();
            of_table.push(Followed { follow: follow.clone(), places: None });
        }
    }

    /// All transactions are forgotten.
    pub(crate) fn clear(&mut self) {
        self.ordinary.clear();
        self.streamed.clear();
        (self.current, self.held) = (None, 0);
    }

    pub(crate) fn begin(&mut self) {
        self.ordinary.clear();
        self.current = None;
    }

    pub(crate) fn streaming(&mut self, xid: u32) {
        self.streamed.entry(xid).or_default();
        self.current = Some(xid);
    }

    /// Rows of this table may look otherwise from now on.
    pub(crate) fn described(&mut self, relation: u32) {
        for followed in self.followed.get_mut(&relation).into_iter().flatten() {
            followed.places = None;
        }
    }

    pub(crate) fn row(
        &mut self,
        sub: u32,
        relation: &Relation,
        old: &Old<'_>,
        new: Option<&Tuple<'_>>,
    ) {
        let Feed { followed, scratch, .. } = self;
        let Some(followed) = followed.get_mut(&relation.oid) else { return };
        let open = match self.current {
            None => &mut self.ordinary,
            Some(xid) => self.streamed.entry(xid).or_default(),
        };
        let before = open.bytes;
        for Followed { follow, places } in followed {
            if open.is_broken(follow.mirror) {
                continue;
            }
            let places = places.get_or_insert_with(|| places_of(&follow.definition, relation));
            let Some(places) = places else {
                open.broken.push((follow.mirror, OTHER_COLUMNS));
                continue;
            };
            match scratch.change(&follow.definition, places, relation, old, new) {
                Some(change) => open.put(sub, follow.mirror, change),
                None => open.broken.push((follow.mirror, NOT_UNDERSTOOD)),
            }
        }
        self.limit(before);
    }

    pub(crate) fn truncate(&mut self, sub: u32, relation: u32) {
        let Some(followed) = self.followed.get(&relation) else { return };
        let open = match self.current {
            None => &mut self.ordinary,
            Some(xid) => self.streamed.entry(xid).or_default(),
        };
        let before = open.bytes;
        for followed in followed {
            open.put(sub, followed.follow.mirror, Change::Truncate);
        }
        open.truncates = true;
        self.limit(before);
    }

    /// What is told now has grown.
    fn limit(&mut self, before: usize) {
        let open = match self.current {
            None => &mut self.ordinary,
            Some(xid) => self.streamed.entry(xid).or_default(),
        };
        let others = match self.current {
            None => self.held,
            Some(_) => self.held - before,
        };
        if others + open.bytes > OPEN_BYTES_MAX {
            open.spill();
        }
        if self.current.is_some() {
            self.held = others + open.bytes;
        }
    }

    /// What a transaction that ends well has done.
    pub(crate) fn commit(&mut self, xid: u32) -> Open {
        self.current = None;
        match self.streamed.remove(&xid) {
            Some(open) => {
                self.held -= open.bytes;
                open
            }
            None => std::mem::take(&mut self.ordinary),
        }
    }

    /// A streamed one is undone, or one of its parts.
    pub(crate) fn abort(&mut self, xid: u32, sub: u32) {
        if xid == sub {
            let open = self.streamed.remove(&xid).unwrap_or_default();
            self.held -= open.bytes;
            self.current = None;
        } else if let Some(open) = self.streamed.get_mut(&xid) {
            let before = open.bytes;
            open.forget(sub);
            self.held -= before - open.bytes;
        }
    }
}

impl Open {
    fn clear(&mut self) {
        self.parts.clear();
        self.broken.clear();
        self.bytes = 0;
        self.truncates = false;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.broken.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it takes long to put in: it is large, or all rows of a table are freed.
    pub(crate) fn is_large(&self, most: usize) -> bool {
        self.bytes > most || self.truncates && most < usize::MAX
    }

    pub(crate) fn broken(&self) -> &[(u64, &'static str)] {
        &self.broken
    }

    pub(crate) fn changes(&self) -> impl Iterator<Item = (u64, Change<'_>)> {
        self.parts.iter().flat_map(|part| part.changes.iter())
    }

    fn is_broken(&self, mirror: u64) -> bool {
        self.broken.iter().any(|(broken, _)| *broken == mirror)
    }

    fn put(&mut self, sub: u32, mirror: u64, change: Change<'_>) {
        if self.is_broken(mirror) {
            return;
        }
        if self.parts.last().is_none_or(|part| part.sub != sub) {
            self.parts.push(Part { sub, changes: Changes::default() });
            self.bytes += size_of::<Part>();
        }
        if let Some(part) = self.parts.last_mut() {
            let before = part.changes.len();
            part.changes.put(mirror, change);
            self.bytes += part.changes.len() - before;
        }
    }

    fn forget(&mut self, sub: u32) {
        self.parts.retain(|part| part.sub != sub);
        self.bytes = self.parts.iter().map(|part| size_of::<Part>() + part.changes.len()).sum();
    }

    /// Nothing is remembered but which mirrors are touched.
    fn spill(&mut self) {
        for (mirror, _) in self.parts.iter().flat_map(|part| part.changes.iter()) {
            if !self.broken.iter().any(|(broken, _)| *broken == mirror) {
                self.broken.push((mirror, TOO_LARGE));
            }
        }
        self.parts = Vec::new();
        self.bytes = 0;
    }
}

impl Scratch {
    /// None: something is not understood.
    fn change(
        &mut self,
        definition: &Definition,
        places: &[usize],
        relation: &Relation,
        old: &Old<'_>,
        new: Option<&Tuple<'_>>,
    ) -> Option<Change<'_>> {
        self.identity.clear();
        self.fields.clear();
        let before: Option<SmallVec<[Told<'_>; 32]>> = match old {
            Old::Absent | Old::Unknown => None,
            Old::Key(tuple) | Old::Whole(tuple) => Some(tuple.fields().collect()),
        };
        let after: Option<SmallVec<[Told<'_>; 32]>> = new.map(|new| new.fields().collect());
        // Had the row been there, all of it would be told.
        let was_there = match old {
            Old::Absent => false,
            Old::Unknown => relation.identity != b'f',
            Old::Key(_) | Old::Whole(_) => true,
        };
        if was_there {
            let fields = before.as_deref().or(after.as_deref())?;
            for place in &definition.identity {
                let column = definition.columns.get(usize::from(*place))?;
                let Told::Text(text) = fields.get(*places.get(usize::from(*place))?)? else {
                    return None;
                };
                self.value.clear();
                if !store(column, text, &mut self.value) {
                    return None;
                }
                put_key(column.class, &self.value, &mut self.identity);
            }
        }
        let Some(after) = after else {
            return was_there.then_some(Change::Delete { identity: &self.identity });
        };
        for (column, place) in definition.columns.iter().zip(places) {
            let told = match (after.get(*place)?, &before) {
                // A whole old row has it.
                (Told::Unchanged, Some(before)) if matches!(old, Old::Whole(_)) => {
                    before.get(*place)?
                }
                (told, _) => told,
            };
            self.value.clear();
            let field = match told {
                Told::Null => Field::Null,
                Told::Unchanged if was_there => Field::Unchanged,
                Told::Unchanged => return None,
                Told::Text(text) if store(column, text, &mut self.value) => {
                    Field::Value(&self.value)
                }
                Told::Text(_) => return None,
            };
            put_field(field, &mut self.fields);
        }
        let fields = Fields(&self.fields);
        Some(match was_there {
            true => Change::Update { identity: &self.identity, fields },
            false => Change::Insert(fields),
        })
    }
}

fn places_of(definition: &Definition, relation: &Relation) -> Places {
    let place = |column: &super::definition::Column| {
        let at = relation.columns.iter().position(|told| told.name == column.name)?;
        let told = &relation.columns[at];
        let same = told.type_oid == column.type_oid && told.modifier == column.type_modifier;
        same.then_some(at)
    };
    let places: Option<Box<[usize]>> = definition.columns.iter().map(place).collect();
    // Without the old row's identity it is not known which row is meant.
    let keyed = |place: &u16| {
        let at = places.as_ref()?.get(usize::from(*place))?;
        relation.columns.get(*at).map(|told| told.key)
    };
    let known = relation.identity == b'f'
        || definition.identity.iter().all(|place| keyed(place) == Some(true));
    places.filter(|_| known)
}
