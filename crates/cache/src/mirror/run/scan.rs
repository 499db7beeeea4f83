//! Rows that pass the filter, one by one.
//!
//! Of several tables the one with the fewest rows that can matter comes first; from there the
//! indexes of columns that are equal to known ones lead on.

use std::ops::Bound;

use smallvec::SmallVec;

use super::super::key::put_key;
use super::super::ordered::Range;
use super::super::plan::{At, TABLES_MAX};
use super::filter::Test;
use super::path::{range_of, Known, Path, Tools};
use super::rows::Rows;
use super::Refused;

/// Of so many rows each is compared with all of those before, if there is no index.
const UNINDEXED_MAX: u64 = 64;

const EVERYTHING: Range<'static> = Range { low: Bound::Unbounded, high: Bound::Unbounded };

/// Takes rows. False: it needs no more.
pub(super) trait Sink {
    fn row(&mut self, rows: &Rows<'_>) -> Result<bool, Refused>;
}

/// How one table's rows are found when those of the tables before are known.
pub(super) struct Step<'a> {
    place: u16,
    via: Via,
    /// What can be asked then.
    tests: SmallVec<[&'a Test; 2]>,
}

enum Via {
    Path(Path),
    /// The column is equal to one that is known.
    Column {
        own: u16,
        other: At,
    },
}

pub(super) type Steps<'a> = SmallVec<[Step<'a>; 2]>;

/// Those of the tables that are left, by their places, with the count of their rows, which rises.
type Paths = SmallVec<[(u16, Path, u64); TABLES_MAX]>;

impl<'a> Known<'a> {
    /// One table by this path.
    pub fn step(&self, place: u16, path: Path) -> Step<'a> {
        let exact = match &path {
            Path::Index(part) => part.exact,
            Path::One(_) | Path::Begin(_) | Path::All => false,
        };
        let mut tests = SmallVec::new();
        if !exact {
            tests.push(&self.plan.filters[usize::from(place)]);
        }
        Step { place, via: Via::Path(path), tests }
    }

    pub fn steps(&self, tools: &mut Tools) -> Result<Steps<'a>, Refused> {
        let mut steps = Steps::new();
        let places = 0..self.tables.len() as u16;
        if places.len() == 1 {
            let (path, _) = self.path(0, tools, false);
            steps.push(self.step(0, path));
            return Ok(steps);
        }
        let mut paths = Paths::new();
        for place in places {
            let (path, count) = self.path(place, tools, true);
            paths.push((place, path, count));
        }
        // The fewest rows first, unless no index leads on from there.
        paths.sort_by_key(|(_, _, count)| *count);
        for start in 0..paths.len() {
            if let Some(steps) = self.steps_from(start, paths.clone()) {
                return Ok(steps);
            }
        }
        Err(Refused::Unready)
    }

    fn steps_from(&self, start: usize, mut paths: Paths) -> Option<Steps<'a>> {
        let mut steps = Steps::new();
        let mut bound = 0;
        let mut next = (start, None);
        loop {
            let (at, via) = next;
            let (place, path, _) = paths.remove(at);
            bound |= 1 << place;
            let mut step = match via {
                None => self.step(place, path),
                Some((own, other)) => {
                    let filter = &self.plan.filters[usize::from(place)];
                    let tests = SmallVec::from_iter([filter]);
                    Step { place, via: Via::Column { own, other }, tests }
                }
            };
            for (tables, test) in &self.plan.across {
                if tables & !bound == 0 && tables & 1 << place != 0 {
                    step.tests.push(test);
                }
            }
            steps.push(step);
            if paths.is_empty() {
                return Some(steps);
            }
            next = self.next(&paths, bound)?;
        }
    }

    /// The next table's place in `paths`, and the equality that leads there. None: an index is not
    /// there.
    fn next(&self, paths: &Paths, bound: u64) -> Option<(usize, Option<(u16, At)>)> {
        let (_, _, fewest) = paths.first()?;
        if *fewest <= 1 {
            return Some((0, None));
        }
        let mut joined = false;
        let mut found: Option<(usize, (u16, At), bool)> = None;
        for (at, (place, _, _)) in paths.iter().enumerate() {
            let table = self.table(*place);
            for (one, other) in &self.plan.joins {
                for (own, known) in [(one, other), (other, one)] {
                    if own.0 != *place || bound & 1 << known.0 == 0 {
                        continue;
                    }
                    joined = true;
                    let one = table.definition().identity == [own.1];
                    let better = found.as_ref().is_none_or(|(_, _, before)| one && !before);
                    if better && table.index(own.1).is_some() {
                        found = Some((at, (own.1, *known), one));
                    }
                }
            }
        }
        match found {
            Some((at, via, _)) => Some((at, Some(via))),
            None if joined && *fewest > UNINDEXED_MAX => None,
            None => Some((0, None)),
        }
    }
}

/// A way through the tables.
pub(super) struct Scan<'a, 't> {
    known: Known<'a>,
    tools: &'t mut Tools,
    /// So many rows may still be looked at.
    left: u64,
}

impl<'a, 't> Scan<'a, 't> {
    pub fn new(known: Known<'a>, tools: &'t mut Tools, most: u64) -> Scan<'a, 't> {
        Scan { known, tools, left: most }
    }

    /// Hands over all rows that pass, until no more are needed.
    pub fn run(&mut self, steps: &[Step<'a>], sink: &mut impl Sink) -> Result<(), Refused> {
        let mut ids = [0; TABLES_MAX];
        let ids = &mut ids[..self.known.tables.len()];
        self.enter(steps, ids, sink).map(drop)
    }

    fn enter(
        &mut self,
        steps: &[Step<'a>],
        ids: &mut [u32],
        sink: &mut impl Sink,
    ) -> Result<bool, Refused> {
        let Some((step, rest)) = steps.split_first() else {
            return sink.row(&Rows { tables: self.known.tables, ids });
        };
        let known = self.known;
        let table = known.table(step.place);
        match &step.via {
            Via::Path(Path::One(id)) => self.all(id.iter().copied(), step, rest, ids, sink),
            Via::Path(Path::Begin(begun)) => {
                let range = range_of(&self.tools.keys[usize::from(step.place)], *begun);
                let found = table.identity_index().ids(table.rows(), &range, false);
                self.all(found, step, rest, ids, sink)
            }
            Via::Path(Path::All) => {
                let every = table.identity_index().ids(table.rows(), &EVERYTHING, false);
                self.all(every, step, rest, ids, sink)
            }
            Via::Path(Path::Index(part)) => {
                let index = table.index(part.column).ok_or(Refused::Unready)?;
                let direction = part.direction;
                let nulls = |first| part.nulls && direction.nulls_first == first;
                if nulls(true) && !self.all(index.nulls(), step, rest, ids, sink)? {
                    return Ok(false);
                }
                for at in 0..part.spans.len() {
                    let at = match direction.backwards {
                        true => part.spans.end - 1 - at,
                        false => part.spans.start + at,
                    };
                    let range = known.range(&self.tools.spans[at]);
                    let inside = index.ids(table.rows(), &range, direction.backwards);
                    if !self.all(inside, step, rest, ids, sink)? {
                        return Ok(false);
                    }
                }
                if nulls(false) && !self.all(index.nulls(), step, rest, ids, sink)? {
                    return Ok(false);
                }
                Ok(true)
            }
            Via::Column { own, other } => {
                let rows = Rows { tables: known.tables, ids };
                let Some(stored) = rows.field(*other) else { return Ok(true) };
                let class = rows.class(*other);
                let mut key = std::mem::take(&mut self.tools.keys[usize::from(step.place)]);
                key.clear();
                put_key(class, stored, &mut key);
                let index = table.index(*own).ok_or(Refused::Unready)?;
                let range = Range { low: Bound::Included(&key), high: Bound::Included(&key) };
                let equal = index.ids(table.rows(), &range, false);
                let more = self.all(equal, step, rest, ids, sink);
                self.tools.keys[usize::from(step.place)] = key;
                more
            }
        }
    }

    /// Goes on with each of a table's rows that passes.
    fn all(
        &mut self,
        found: impl Iterator<Item = u32>,
        step: &Step<'a>,
        rest: &[Step<'a>],
        ids: &mut [u32],
        sink: &mut impl Sink,
    ) -> Result<bool, Refused> {
        let Known { tables, constants, .. } = self.known;
        for id in found {
            self.left = self.left.checked_sub(1).ok_or(Refused::TooMuch)?;
            ids[usize::from(step.place)] = id;
            let rows = Rows { tables, ids };
            let buffers = &mut self.tools.buffers;
            let passes = step.tests.iter().all(|test| test.holds(&rows, constants, buffers));
            if passes && !self.enter(rest, ids, sink)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
