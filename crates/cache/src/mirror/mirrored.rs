//! A statement's shape that mirrors can answer.

use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use backend::moment::Moment;
use sql::{Select, Source};
use wire::pg::backend::tag;

use super::definition::Definition;
use super::held::{Mirrors, Reading};
use super::output::Format;
use super::plan::{Plan, Ties};
use super::wish::{Wanted, Wish};
use crate::recipe::{Value, Values};

/// See the module's documentation.
#[derive(Debug)]
pub struct Mirrored {
    /// For the tables as the catalogues had them.
    plan: Plan,
    tables: Vec<Definition>,
    /// The body of a RowDescription, and where in it the formats are.
    description: Box<[u8]>,
    formats: Box<[usize]>,
    /// Values that decide what is meant.
    fixed: Box<[(Source, usize)]>,
    wish: OnceLock<Arc<Wish>>,
    placed: ArcSwap<Placed>,
}

/// The plan for the mirrors as they are.
#[derive(Debug, Default)]
pub struct Placed {
    /// Of the mirrors; none: it was never looked up.
    generation: Option<u64>,
    /// None: not all that it needs is there.
    pub plan: Option<Plan>,
}

impl Mirrored {
    /// `description` is the body of a RowDescription; `fixed` are values that decide what is meant.
    ///
    /// # Errors
    /// Why mirrors can't answer it, in words for people.
    pub fn new(
        select: Select<(u16, u16)>,
        tables: Vec<Definition>,
        types: &dyn Fn(Source) -> u32,
        description: Vec<u8>,
        fixed: Vec<(Source, usize)>,
    ) -> Result<Mirrored, String> {
        let formats = format_places(&description).ok_or("its description is not understood")?;
        let definitions = tables.iter().cloned().map(Arc::new).collect();
        Ok(Mirrored {
            plan: Plan::new(select, definitions, types)?,
            tables,
            description: description.into(),
            formats: formats.into(),
            fixed: fixed.into(),
            wish: OnceLock::new(),
            placed: ArcSwap::default(),
        })
    }

    /// Whether a statement of its shape has those values that decide what is meant: by `ORDER BY 2`
    /// another column is than by `ORDER BY 1`.
    pub fn is_meant(&self, values: &impl Values) -> bool {
        self.fixed.iter().all(|(source, number)| match values.get(*source) {
            Some((Value::Text(text), _)) => {
                std::str::from_utf8(text).is_ok_and(|text| text.parse() == Ok(*number))
            }
            _ => false,
        })
    }

    pub fn ties(&self) -> Ties {
        self.plan.ties()
    }

    pub fn tables(&self) -> impl Iterator<Item = u32> + '_ {
        self.tables.iter().map(|table| table.oid)
    }

    /// Somebody wants mirrors for it.
    pub fn wish(&self) -> Option<&Wish> {
        self.wish.get().map(|wish| &**wish)
    }

    /// From now on mirrors are wanted for it, as long as it lives and is used.
    pub fn want(&self, mirrors: &Mirrors, now: Moment) {
        let mut new = false;
        let wish = self.wish.get_or_init(|| {
            new = true;
            let mut wanted: Vec<Wanted> = self
                .tables
                .iter()
                .map(|table| Wanted { definition: table.clone(), indexes: Vec::new() })
                .collect();
            for need in self.plan.needs() {
                if let Some(wanted) = wanted.get_mut(usize::from(need.place)) {
                    wanted.indexes.push((need.index, need.sums));
                }
            }
            Arc::new(Wish::new(wanted, false, now))
        });
        if new {
            mirrors.wish(wish);
        }
    }

    /// The plan for these tables.
    pub fn placed(&self, tables: &Reading<'_>) -> Guard<Arc<Placed>> {
        let generation = Some(tables.generation());
        let known = self.placed.load();
        if known.generation == generation {
            return known;
        }
        let placed = Arc::new(Placed { generation, plan: self.plan.placed(tables) });
        self.placed.store(placed.clone());
        // What is stored may be another's by now, for other tables.
        Guard::from_inner(placed)
    }

    /// A whole RowDescription.
    pub fn put_description(&self, formats: &[Format], out: &mut Vec<u8>) {
        out.push(tag::ROW_DESCRIPTION);
        // Its own four bytes count.
        out.extend_from_slice(&(self.description.len() as u32 + 4).to_be_bytes());
        let start = out.len();
        out.extend_from_slice(&self.description);
        for (at, place) in self.formats.iter().enumerate() {
            let format = match formats {
                [one] => Some(one),
                all => all.get(at),
            };
            if format == Some(&Format::Binary) {
                out[start + place + 1] = 1;
            }
        }
    }
}

/// Where the two bytes of each column's format are.
fn format_places(description: &[u8]) -> Option<Vec<usize>> {
    let (count, mut rest) = description.split_first_chunk::<2>()?;
    let mut places = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let name = rest.iter().position(|byte| *byte == 0)?;
        // Table, number, type, width, modifier.
        let format = name + 1 + 4 + 2 + 4 + 2 + 4;
        rest = rest.get(format..)?;
        places.push(description.len() - rest.len());
        rest = rest.get(2..)?;
    }
    rest.is_empty().then_some(places)
}
