//! The statements of one pool by shape: what is known of each, and how it has fared.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use backend::moment::Moment;
use backend::statement::{Registry, Statement};
use hashbrown::HashMap;
use sql::{Literal, Scan, Use};

use super::snapshot::Histogram;
use super::worth::Worth;
use crate::control::caches::{CacheInfo, Named};
use crate::procedures::{Fared, Procedure};
use crate::route::{History, Verdict, Way, Why};

/// Shapes kept of one pool; beyond it, the half that was used least recently is dropped.
pub const SHAPES_MAX: usize = 1 << SLOT_BITS;

const SLOT_BITS: u32 = 12;

/// A verdict is asked for again after this time: definitions may have been changed elsewhere.
const VERDICT_AGE: Duration = Duration::from_secs(60);

/// After an error of parser or catalogues the next try waits so long.
const JUDGE_AGAIN: Duration = Duration::from_secs(5);

/// Prepared statements for one shape, where constants that can't be parameters differ. With more
/// of them the shape is sent as it comes.
const VARIANTS_MAX: u32 = 16;

/// Stand-ins of a shape that PostgreSQL may refuse before it is sent as it comes: so many, and
/// one of so many.
const REFUSED_MAX: u64 = 3;
const REFUSED_SHARE: u64 = 20;

#[derive(Debug)]
pub struct Shape {
    id: u32,
    /// Grows with every use of any shape.
    used: u64,
    text: Box<[u8]>,
    pub verdict: Option<Box<Verdict>>,
    /// When the verdict was last asked for; none: never, or definitions have changed since.
    asked: Option<Moment>,
    /// An answer is awaited.
    awaited: bool,
    pub history: History,
    plan: Plan,
    pub calls: u64,
    pub time: Histogram,
    pub joined: u64,
    pub company: u64,
    pub prepared: u64,
    refused: u64,
    pub again: u64,
    /// After deadlocks and serialization failures.
    pub retried: u64,
    pub errors: u64,
    pub way: Way,
    pub why: Why,
    /// How its results may be kept.
    pub kept: Option<Arc<cache::plan::Plan>>,
    /// Somebody has named it, as of this generation of names.
    named: (u64, Option<Arc<CacheInfo>>),
    pub worth: Worth,
    /// An audit has found a mismatch.
    pub distrusted: bool,
    pub hits: u64,
    /// Those of them that mirrors have answered.
    pub mirrored: u64,
    /// In mode `advise`: would have been hits.
    pub advised: u64,
    pub misses: u64,
    pub fills: u64,
    pub waits: u64,
    /// Of these, what was told where it is named.
    told: [u64; 4],
    /// What it calls, as the last verdict that there was has it.
    calling: Option<Box<Calling>>,
}

/// A procedure that statements of a shape call.
#[derive(Debug)]
struct Calling {
    procedure: Arc<Procedure>,
    /// Of what was counted here, what it has been told.
    told: Fared,
}

/// How a simple query becomes a prepared statement.
#[derive(Debug)]
enum Plan {
    /// Nobody has thought about it yet.
    Open,
    /// It is sent as it comes.
    Never,
    /// Every constant is a parameter.
    One(Arc<Statement>),
    /// Some constants stay in the text; so many texts have been made.
    Variants { made: u32 },
}

#[derive(Debug, Default)]
pub struct Shapes {
    by_text: HashMap<Box<[u8]>, u32, foldhash::fast::RandomState>,
    by_statement: HashMap<u64, u32, foldhash::fast::RandomState>,
    slots: Vec<Option<Shape>>,
    free: Vec<u32>,
    generation: u32,
    tick: u64,
    /// Text of a statement that is being made.
    scratch: Vec<u8>,
}

impl Shapes {
    pub fn get(&self, id: u32) -> Option<&Shape> {
        let slot = id as usize & (SHAPES_MAX - 1);
        self.slots.get(slot)?.as_ref().filter(|shape| shape.id == id)
    }

    pub fn get_mut(&mut self, id: u32) -> Option<&mut Shape> {
        let slot = id as usize & (SHAPES_MAX - 1);
        self.slots.get_mut(slot)?.as_mut().filter(|shape| shape.id == id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Shape> {
        self.slots.iter().flatten()
    }

    /// The number of a shape, made if it is new.
    pub fn of(&mut self, text: &[u8]) -> u32 {
        self.tick += 1;
        if let Some(&id) = self.by_text.get(text) {
            let tick = self.tick;
            if let Some(shape) = self.get_mut(id) {
                shape.used = tick;
            }
            return id;
        }
        if self.by_text.len() >= SHAPES_MAX {
            self.sweep();
        }
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        let id = self.generation << SLOT_BITS | slot;
        let shape = Shape::new(id, self.tick, text);
        self.by_text.insert(text.into(), id);
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = Some(shape),
            None => self.slots.push(Some(shape)),
        }
        id
    }

    /// The shape of a prepared statement, looked at once.
    pub fn of_statement(&mut self, statement: &Statement, scan: &mut Scan) -> Option<u32> {
        if let Some(&id) = self.by_statement.get(&statement.id) {
            self.tick += 1;
            let tick = self.tick;
            if let Some(shape) = self.get_mut(id) {
                shape.used = tick;
                return Some(id);
            }
        }
        if !scan.scan(&statement.query) {
            return None;
        }
        let id = self.of(scan.shape());
        if self.by_statement.len() >= SHAPES_MAX * 4 {
            self.by_statement.clear();
        }
        self.by_statement.insert(statement.id, id);
        Some(id)
    }

    /// Tells procedures and those who have named statements how these fare.
    pub fn tell(&mut self) {
        self.slots.iter_mut().flatten().for_each(Shape::tell);
    }

    /// Drops the half that was used least recently.
    fn sweep(&mut self) {
        let mut used: Vec<u64> = self.iter().map(|shape| shape.used).collect();
        used.sort_unstable();
        let limit = used.get(used.len() / 2).copied().unwrap_or(0);
        for slot in 0..self.slots.len() {
            let old = self.slots[slot].take_if(|shape| shape.used < limit);
            if let Some(mut shape) = old {
                shape.tell();
                self.by_text.remove(&shape.text);
                self.free.push(slot as u32);
            }
        }
        self.by_statement.clear();
        // Numbers that are still in use somewhere don't name a newcomer.
        self.generation = (self.generation + 1) & (u32::MAX >> (SLOT_BITS + 1));
    }

    /// Definitions have changed: every verdict is asked for again before it counts.
    pub fn redefined(&mut self) {
        for shape in self.slots.iter_mut().flatten() {
            (shape.verdict, shape.asked, shape.awaited) = (None, None, false);
            (shape.kept, shape.distrusted) = (None, false);
            shape.plan = Plan::Open;
        }
    }

    /// The statement that stands in for a simple query, with its values appended to `out` as the
    /// end of a Bind. None: it is sent as it comes.
    pub fn stand_in(
        &mut self,
        id: u32,
        text: &[u8],
        scan: &Scan,
        registry: &mut Registry,
        out: &mut Vec<u8>,
    ) -> Option<Arc<Statement>> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let statement = self
            .get_mut(id)
            .and_then(|shape| shape.stand_in(text, scan.literals(), registry, &mut scratch));
        self.scratch = scratch;
        let statement = statement?;
        let shape = self.get(id)?;
        let uses = shape.verdict.as_ref()?.literals.as_ref()?;
        let wanted = scan.literals().iter().zip(uses.iter());
        let values = wanted.filter(|(_, used)| **used != Use::Fixed).map(|(literal, _)| literal);
        put_values(text, values, out);
        Some(statement)
    }
}

impl Shape {
    fn new(id: u32, used: u64, text: &[u8]) -> Shape {
        Shape {
            id,
            used,
            text: text.into(),
            verdict: None,
            asked: None,
            awaited: false,
            history: History::default(),
            plan: Plan::Open,
            calls: 0,
            time: Histogram::default(),
            joined: 0,
            company: 0,
            prepared: 0,
            refused: 0,
            again: 0,
            retried: 0,
            errors: 0,
            way: Way::Alone,
            why: Why::New,
            kept: None,
            named: (u64::MAX, None),
            worth: Worth::default(),
            distrusted: false,
            hits: 0,
            mirrored: 0,
            advised: 0,
            misses: 0,
            fills: 0,
            waits: 0,
            told: [0; 4],
            calling: None,
        }
    }

    /// What somebody has named this statement, if so.
    pub fn named(&mut self, names: &Named) -> Option<&Arc<CacheInfo>> {
        let generation = names.generation();
        if self.named.0 != generation {
            self.tell();
            self.named = (generation, names.find(&self.normal()));
        }
        self.named.1.as_ref()
    }

    /// Tells who has named it what the verdict has against it.
    pub fn tell_verdict(&mut self, names: &Named) {
        let named = self.named(names).cloned();
        if let (Some(cache), Some(verdict)) = (named, &self.verdict) {
            cache.judged(&verdict.cache);
        }
    }

    /// What was kept of it was wrong: nothing is kept any more.
    pub fn distrust(&mut self) {
        self.kept = None;
        self.distrusted = true;
    }

    /// Adds what has been counted here to what is counted where it is named, and by procedure.
    pub fn tell(&mut self) {
        self.tell_procedure();
        let now = [self.hits, self.misses, self.fills, self.waits];
        let before = std::mem::replace(&mut self.told, now);
        let Some(named) = &self.named.1 else { return };
        let counters = &named.counters;
        let all = [&counters.hits, &counters.misses, &counters.fills, &counters.waits];
        for (at, counter) in all.into_iter().enumerate() {
            if now[at] > before[at] {
                counter.fetch_add(now[at] - before[at], Ordering::Relaxed);
            }
        }
    }

    fn tell_procedure(&mut self) {
        let now = self.fared();
        let Some(calling) = &mut self.calling else { return };
        if now.calls > calling.told.calls || now.retried > calling.told.retried {
            calling.procedure.tell(&now.since(&calling.told));
            calling.told = now;
        }
    }

    fn fared(&self) -> Fared {
        Fared {
            calls: self.calls,
            time: self.time,
            joined: self.joined,
            company: self.company,
            retried: self.retried,
            errors: self.errors,
        }
    }

    /// What it calls now, if it was something else before.
    fn calls_now(&mut self, procedure: Arc<Procedure>) {
        let told = match &self.calling {
            Some(calling) if Arc::ptr_eq(&calling.procedure, &procedure) => return,
            // What came until now is the other's.
            Some(_) => {
                self.tell_procedure();
                self.fared()
            }
            None => Fared::default(),
        };
        self.calling = Some(Box::new(Calling { procedure, told }));
    }

    /// The verdict's words.
    pub fn reason(&self) -> &str {
        self.verdict.as_ref().map_or("", |verdict| &verdict.reason)
    }

    /// As [`sql::normal`] has it.
    pub fn normal(&self) -> Vec<u8> {
        sql::normal(&self.text)
    }

    /// Somebody has named it, as far as is known here.
    pub fn is_named(&self) -> bool {
        self.named.1.is_some()
    }

    /// The text with `?` for every constant.
    pub fn plain_text(&self) -> String {
        let plain = self.text.iter().map(|byte| if *byte < b' ' { b'?' } else { *byte });
        String::from_utf8_lossy(&plain.collect::<Vec<u8>>()).into_owned()
    }

    /// Whether parser and catalogues are to be asked now; then [`Shape::judged`] follows.
    pub fn ask(&mut self, now: Moment) -> bool {
        let patience = if self.verdict.is_some() { VERDICT_AGE } else { JUDGE_AGAIN };
        if self.awaited || self.asked.is_some_and(|asked| now.since(asked) < patience) {
            return false;
        }
        (self.asked, self.awaited) = (Some(now), true);
        true
    }

    /// What was asked counts no more.
    pub fn ask_again(&mut self) {
        self.asked = None;
    }

    /// The answer; none: there was an error, and what was known counts no longer.
    pub fn judged(&mut self, verdict: Option<Box<Verdict>>) {
        if !std::mem::replace(&mut self.awaited, false) {
            // Definitions have changed since it was asked.
            return;
        }
        if self.verdict != verdict {
            self.plan = Plan::Open;
        }
        self.verdict = verdict;
        let call = self.verdict.as_ref().and_then(|verdict| verdict.call.as_ref());
        if let Some(procedure) = call.map(|call| call.procedure.clone()) {
            self.calls_now(procedure);
        }
    }

    /// PostgreSQL did not take the stand-in.
    pub fn stand_in_refused(&mut self) {
        self.refused += 1;
        if self.refused >= REFUSED_MAX && self.refused * REFUSED_SHARE > self.prepared {
            self.plan = Plan::Never;
        }
    }

    /// One of ten fails: in a batch it would only have the others sent again.
    pub fn fails_often(&self) -> bool {
        self.errors * 10 > self.calls
    }

    fn stand_in(
        &mut self,
        text: &[u8],
        literals: &[Literal],
        registry: &mut Registry,
        scratch: &mut Vec<u8>,
    ) -> Option<Arc<Statement>> {
        if let Plan::One(statement) = &self.plan {
            return Some(statement.clone());
        }
        let uses = self.verdict.as_ref()?.literals.as_deref()?;
        // A `$1` in a simple query is an error, and would become a parameter.
        let sound = uses.len() == literals.len() && !self.text.contains(&b'$');
        let made = match self.plan {
            Plan::Open if sound && literals.len() <= i16::MAX as usize => 0,
            Plan::Variants { made } if made < VARIANTS_MAX => made,
            _ => {
                self.plan = Plan::Never;
                return None;
            }
        };
        let mut types = Vec::new();
        statement_text(&self.text, text, literals, uses, scratch, &mut types);
        let before = registry.len();
        let statement = registry.intern(scratch, &types);
        self.plan = match uses.contains(&Use::Fixed) {
            true => Plan::Variants { made: made + (registry.len() - before) as u32 },
            false => Plan::One(statement.clone()),
        };
        Some(statement)
    }
}

/// The shape with `$n` for constants that become parameters and the others as they are; and the
/// end of its Parse.
fn statement_text(
    shape: &[u8],
    text: &[u8],
    literals: &[Literal],
    uses: &[Use],
    out: &mut Vec<u8>,
    types: &mut Vec<u8>,
) {
    out.clear();
    types.extend_from_slice(&[0, 0]);
    let (mut from, mut count) = (0, 0u16);
    for (literal, used) in literals.iter().zip(uses) {
        let at = literal.at as usize;
        out.extend_from_slice(&shape[from..at]);
        from = at + 1;
        match used {
            Use::Fixed => {
                out.extend_from_slice(&text[literal.start as usize..literal.end as usize]);
            }
            Use::Parameter(oid) => {
                count += 1;
                out.push(b'$');
                out.extend_from_slice(count.to_string().as_bytes());
                types.extend_from_slice(&oid.to_be_bytes());
            }
        }
    }
    out.extend_from_slice(&shape[from..]);
    types[..2].copy_from_slice(&count.to_be_bytes());
}

/// The end of a Bind: all values and all results as text.
fn put_values<'a>(text: &[u8], literals: impl Iterator<Item = &'a Literal>, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0, 0, 0]);
    let (began, mut count) = (out.len(), 0u16);
    for literal in literals {
        count += 1;
        let length = out.len();
        out.extend_from_slice(&[0; 4]);
        literal.put_value(text, out);
        let bytes = (out.len() - length - 4) as u32;
        out[length..length + 4].copy_from_slice(&bytes.to_be_bytes());
    }
    out[began - 2..began].copy_from_slice(&count.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
#[path = "shapes_tests.rs"]
mod tests;
