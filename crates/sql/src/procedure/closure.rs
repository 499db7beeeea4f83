//! What a call does through the functions it calls, the views it reads and the triggers it fires.
//!
//! The caller drives: it asks [`Closure::next_wanted`], looks the names up in the catalogues,
//! gives what it found, and asks again until nothing is wanted. Names are looked up by one search
//! path; a function with a path of its own may mean something else by them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::hazards::{hazard, Hazard, HazardKind, Ride};
use super::{statements, Analysis, Definition, Facts, Kept, Mode, Operand, Relation};
use super::{RelationKind, Touch, TouchKind};
use crate::analysis::Name;

/// Calls below calls that are followed.
pub const DEPTH_MAX: usize = 16;

/// Functions, procedures and relations that are looked up.
pub const OBJECTS_MAX: usize = 256;

/// Uses of tables that a summary lists.
const TOUCHES_MAX: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// All functions and procedures of this name that a call may mean.
    Routine(Name),
    Relation(Name),
}

/// Something reached by a name.
#[derive(Debug)]
struct Reached {
    analysis: Analysis,
    /// None for a view.
    definition: Option<Definition>,
    /// Hazards that are not in its body.
    told: Vec<Hazard>,
}

#[derive(Debug)]
pub struct Closure {
    root: Reached,
    routines: BTreeMap<Name, Vec<Reached>>,
    views: BTreeMap<Name, Reached>,
    facts: Facts,
    depths: BTreeMap<Wanted, usize>,
    wanted: VecDeque<Wanted>,
    /// What was not looked into because there is too much.
    left: BTreeSet<Name>,
}

/// All that a call does, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Those of called functions in the place of the call, with the arguments of this one.
    pub touches: Vec<Touch>,
    pub hazards: Vec<Hazard>,
    pub handles_errors: bool,
    pub catches_lock_timeout: bool,
}

impl Summary {
    /// How calls may travel.
    pub fn ride(&self) -> Ride {
        let rides = self.hazards.iter().map(|hazard| hazard.kind.ride());
        rides.max().unwrap_or(Ride::Shared)
    }
}

impl Closure {
    pub fn new(definition: Definition, analysis: Analysis) -> Closure {
        let mut closure = Closure {
            root: Reached { analysis, definition: Some(definition), told: Vec::new() },
            routines: BTreeMap::new(),
            views: BTreeMap::new(),
            facts: Facts::default(),
            depths: BTreeMap::new(),
            wanted: VecDeque::new(),
            left: BTreeSet::new(),
        };
        let names = names_of(&closure.root.analysis);
        names.into_iter().for_each(|wanted| closure.want(wanted, 1));
        closure
    }

    /// What to look up now; each name once. Empty: all is known.
    pub fn next_wanted(&mut self) -> Vec<Wanted> {
        self.wanted.drain(..).collect()
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What the catalogues have under this name, each with what [`super::read`] made of it; an
    /// empty list for what is built in or otherwise known to be harmless. The words of an error
    /// become a hazard: `written in C`, `the parser does not understand this body`.
    pub fn give_routine(
        &mut self,
        name: &Name,
        found: Vec<(Definition, Result<Analysis, String>)>,
    ) {
        let depth = self.depth(&Wanted::Routine(name.clone()));
        let mut list = Vec::with_capacity(found.len());
        for (definition, analysis) in found {
            let (analysis, told) = match analysis {
                Ok(analysis) => (analysis, Vec::new()),
                Err(words) => (Analysis::default(), vec![hazard(HazardKind::Unknown, 0, words)]),
            };
            for wanted in names_of(&analysis) {
                self.want(wanted, depth + 1);
            }
            list.push(Reached { analysis, definition: Some(definition), told });
        }
        self.routines.insert(name.clone(), list);
        self.want_triggers();
    }

    /// None: there is no such relation, or it is temporary and not there yet.
    pub fn give_relation(&mut self, name: &Name, relation: Option<Relation>) {
        let depth = self.depth(&Wanted::Relation(name.clone()));
        let Some(relation) = relation else { return };
        if relation.kind == RelationKind::View {
            let read = match relation.view.as_deref() {
                Some(query) => statements::of_query(query),
                None => Err("its query is not known".to_owned()),
            };
            let (analysis, told) = match read {
                Ok(analysis) => (analysis, Vec::new()),
                Err(words) => (Analysis::default(), vec![hazard(HazardKind::Unknown, 0, words)]),
            };
            for wanted in names_of(&analysis) {
                self.want(wanted, depth + 1);
            }
            self.views.insert(name.clone(), Reached { analysis, definition: None, told });
        }
        self.facts.insert(name.clone(), relation);
        self.want_triggers();
    }

    fn depth(&self, wanted: &Wanted) -> usize {
        self.depths.get(wanted).copied().unwrap_or(0)
    }

    fn want(&mut self, wanted: Wanted, depth: usize) {
        if self.depths.contains_key(&wanted) {
            return;
        }
        if depth > DEPTH_MAX || self.depths.len() >= OBJECTS_MAX {
            let (Wanted::Routine(name) | Wanted::Relation(name)) = wanted;
            if self.left.len() < OBJECTS_MAX {
                self.left.insert(name);
            }
            return;
        }
        self.depths.insert(wanted.clone(), depth);
        self.wanted.push_back(wanted);
    }

    fn reached(&self) -> impl Iterator<Item = &Reached> {
        let routines = self.routines.values().flatten();
        std::iter::once(&self.root).chain(routines).chain(self.views.values())
    }

    /// A table may be found to be written, or to have triggers, in either order.
    fn want_triggers(&mut self) {
        let written = self.reached().flat_map(|reached| &reached.analysis.touches);
        let written: BTreeSet<Name> =
            written.filter(|touch| writes(touch.kind)).map(|touch| touch.name.clone()).collect();
        let mut wanted = Vec::new();
        for name in written {
            let depth = self.depth(&Wanted::Relation(name.clone()));
            let triggers = self.facts.relation(&name).map(|relation| relation.triggers.clone());
            let triggers = triggers.into_iter().flatten();
            wanted.extend(triggers.map(|function| (function, depth + 1)));
        }
        wanted.into_iter().for_each(|(name, depth)| self.want(Wanted::Routine(name), depth));
    }

    pub fn summary(&self) -> Summary {
        let mut summary = Summary {
            touches: Vec::new(),
            hazards: Vec::new(),
            handles_errors: false,
            catches_lock_timeout: false,
        };
        let arguments = self.root.definition.as_ref().map_or(0, |root| root.arguments.len());
        let own: Vec<Option<Operand>> = (0..arguments).map(Operand::Argument).map(Some).collect();
        let mut path = Vec::new();
        self.expand(&self.root, &own, None, &mut path, &mut summary.touches);
        self.hazards(&mut summary);
        summary
    }

    /// Summary and facts with each relation under its title: what one procedure means by a name
    /// may be something else to another, with another search path.
    pub fn by_title(&self) -> (Summary, Facts) {
        let mut summary = self.summary();
        for touch in &mut summary.touches {
            touch.name = self.facts.title(&touch.name);
            for lacks in touch.equalities.iter_mut().flat_map(|one| &mut one.provided) {
                lacks.relation = self.facts.title(&lacks.relation);
            }
        }
        (summary, self.facts.by_title())
    }

    /// The touches of this, with `arguments` for its own.
    fn expand(
        &self,
        reached: &Reached,
        arguments: &[Option<Operand>],
        call: Option<&Touch>,
        path: &mut Vec<Name>,
        out: &mut Vec<Touch>,
    ) {
        for touch in &reached.analysis.touches {
            if out.len() >= TOUCHES_MAX {
                return;
            }
            let mut touch = placed(touch, arguments, call);
            touch.equalities.retain_mut(|equality| {
                let kept = std::mem::take(&mut equality.kept);
                kept.iter().all(|kept| self.keeps(kept))
            });
            if touch.kind == TouchKind::Call {
                let found = self.routines.get(&touch.name).map_or(&[][..], Vec::as_slice);
                // Of several it is not known which is called.
                let [one] = found else { continue };
                if path.contains(&touch.name) || path.len() >= DEPTH_MAX {
                    continue;
                }
                let definition = one.definition.clone().unwrap_or_default();
                let mut given = vec![None; definition.arguments.len()];
                for (position, operand) in touch.passed.iter().enumerate() {
                    if let Some(place) = definition.argument_at(position) {
                        given[place] = operand.clone();
                    }
                }
                path.push(touch.name.clone());
                self.expand(one, &given, Some(&touch), path, out);
                path.pop();
            } else {
                out.push(touch);
            }
        }
    }

    /// Whether the one procedure of this name only reads what it is passed here.
    fn keeps(&self, kept: &Kept) -> bool {
        let Some([one]) = self.routines.get(&kept.routine).map(Vec::as_slice) else { return false };
        let Some(definition) = &one.definition else { return false };
        let argument = definition.argument_at(kept.position);
        let modes = argument.and_then(|place| definition.arguments.get(place));
        modes.is_some_and(|argument| matches!(argument.mode, Mode::In | Mode::Variadic))
    }

    /// Each object once, by the shortest way to it.
    fn hazards(&self, summary: &mut Summary) {
        let mut seen: BTreeSet<Name> = BTreeSet::new();
        let mut seen_relations: BTreeSet<Name> = BTreeSet::new();
        let mut open: VecDeque<(&Reached, Vec<Name>)> = VecDeque::from([(&self.root, Vec::new())]);
        while let Some((reached, via)) = open.pop_front() {
            let analysis = &reached.analysis;
            for found in analysis.hazards.iter().chain(&reached.told) {
                summary.hazards.push(Hazard { via: via.clone(), ..found.clone() });
            }
            summary.handles_errors |= analysis.handles_errors.is_some();
            summary.catches_lock_timeout |= analysis.catches_lock_timeout;
            let inside = |name: &Name| via.iter().chain([name]).cloned().collect::<Vec<Name>>();
            let mut routines: Vec<Name> = analysis.functions.iter().cloned().collect();
            for name in &analysis.relations {
                if let Some(view) = self.views.get(name).filter(|_| seen.insert(name.clone())) {
                    open.push_back((view, inside(name)));
                }
                let Some(relation) = self.facts.relation(name) else { continue };
                if seen_relations.insert(name.clone()) {
                    let told = of_relation(name, relation).into_iter();
                    summary.hazards.extend(told.map(|one| Hazard { via: via.clone(), ..one }));
                }
                let mut touches = analysis.touches.iter();
                if touches.any(|touch| touch.name == *name && writes(touch.kind)) {
                    routines.extend(relation.triggers.iter().cloned());
                }
            }
            for name in routines {
                let missing = !self.routines.contains_key(&name);
                if !seen.insert(name.clone()) {
                    continue;
                }
                if missing {
                    let words = format!("{name} was not looked into");
                    let found = hazard(HazardKind::Unknown, 0, words);
                    summary.hazards.push(Hazard { via: via.clone(), ..found });
                }
                let found = self.routines.get(&name).map_or(&[][..], Vec::as_slice);
                open.extend(found.iter().map(|reached| (reached, inside(&name))));
            }
        }
        if let Some(first) = self.left.first() {
            let words = format!("too many objects to look into, {first} among those left out");
            summary.hazards.push(hazard(HazardKind::Unknown, 0, words));
        }
    }
}

fn of_relation(name: &Name, relation: &Relation) -> Vec<Hazard> {
    let cases = [
        (relation.has_rules, HazardKind::Unknown, "has rules that rewrite statements"),
        (relation.temporary, HazardKind::TemporaryObject, "is a temporary table of the session"),
        (relation.kind == RelationKind::Foreign, HazardKind::Outside, "is on another server"),
    ];
    let found = cases.into_iter().filter(|(is_so, ..)| *is_so);
    found.map(|(_, kind, words)| hazard(kind, 0, format!("{name} {words}"))).collect()
}

fn names_of(analysis: &Analysis) -> Vec<Wanted> {
    let routines = analysis.functions.iter().cloned().map(Wanted::Routine);
    routines.chain(analysis.relations.iter().cloned().map(Wanted::Relation)).collect()
}

fn writes(kind: TouchKind) -> bool {
    use TouchKind::{Delete, Insert, Merge, Truncate, Update};
    [Insert, Update, Delete, Merge, Truncate].contains(&kind)
}

/// A touch of a called function where it is called.
fn placed(touch: &Touch, arguments: &[Option<Operand>], call: Option<&Touch>) -> Touch {
    let given = |operand: &Operand| match operand {
        Operand::Argument(place) => arguments.get(*place).cloned().flatten(),
        constant => Some(constant.clone()),
    };
    let mut touch = touch.clone();
    touch.equalities = std::mem::take(&mut touch.equalities)
        .into_iter()
        .filter_map(|mut equality| {
            equality.operand = given(&equality.operand)?;
            Some(equality)
        })
        .collect();
    for operand in &mut touch.passed {
        *operand = operand.as_ref().and_then(given);
    }
    if let Some(call) = call {
        touch.line = call.line;
        touch.order = call.order;
        touch.in_loop |= call.in_loop;
        touch.in_branch |= call.in_branch;
    }
    touch
}
