//! How calls of a procedure travel, from what is known and said of it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher};

use backend::lanes::Class;
use cache::value::Kind;
use sql::procedure::{self, Definition, Derived, Facts, HazardKind, Mode, Ride};

use super::{Body, Known};
use crate::config::{Calls, DurableAck, ProcedureMode, ProcedureOptions};

/// See [`super::Procedure::plan`].
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Somebody has said something of it.
    pub declared: bool,
    pub is_procedure: bool,
    /// `p_w integer, INOUT p_c integer`
    pub signature: String,
    pub options: ProcedureOptions,
    /// The key and those that a call reserves beside it: places of arguments.
    pub lane: Option<Lane>,
    pub origin: KeyOrigin,
    /// What was said and can't be done, for people.
    pub complaints: Vec<String>,
    /// What the body and all that it calls do, if it was understood.
    pub ride: Option<Ride>,
    /// A handler in the body may swallow the error of a `lock_timeout`.
    pub catches: bool,
    /// It commits within, or does something elsewhere, or nobody knows: a part of it may be done
    /// though it has failed.
    pub commits: bool,
    /// Why the body was not understood; or what keeps its calls from riding with others.
    pub hazards: Vec<String>,
    pub derived: Derived,
    /// Rows that the body changes or locks, a line each.
    pub footprints: Vec<String>,
    /// `p_w`, or `$1`, by place.
    pub arguments: Vec<String>,
}

/// Which arguments tell which calls would wait for one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// The same for all procedures whose keys are of the same columns.
    pub space: u64,
    /// Each with how its values are compared; none: by their bytes.
    pub key: Vec<(usize, Option<Kind>)>,
    pub also: Vec<Vec<(usize, Option<Kind>)>>,
}

/// Who says what the key is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeyOrigin {
    #[default]
    Nobody,
    Body,
    Comment,
    Configuration,
    Command,
}

impl KeyOrigin {
    pub fn word(self) -> &'static str {
        match self {
            KeyOrigin::Nobody => "",
            KeyOrigin::Body => "body",
            KeyOrigin::Comment => "comment",
            KeyOrigin::Configuration => "configuration",
            KeyOrigin::Command => "command",
        }
    }
}

/// How a call travels with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Travel {
    /// One flush for all, and nobody waits for a lock for long.
    Train,
    /// The same, but the body might take the end of a wait for its own error, so there is no limit
    /// to it, and nobody of another lane behind.
    Secluded,
    /// Each with a commit and a flush of its own.
    Each,
    /// By itself, as it came, and never sent again: a part of it may be done though it has failed.
    Solo,
    /// In one transaction.
    Batch,
}

impl Travel {
    /// What [`backend::lanes`] has to know.
    pub fn class(self) -> Class {
        let (id, one_lane) = match self {
            Travel::Train => (0, false),
            Travel::Secluded => (1, true),
            Travel::Each => (2, true),
            Travel::Batch => (3, false),
            Travel::Solo => (4, true),
        };
        Class { id, one_lane }
    }

    /// As the option `mode` has it.
    pub fn word(self) -> &'static str {
        match self {
            Travel::Train | Travel::Secluded => ProcedureMode::Train.name(),
            Travel::Each | Travel::Solo => ProcedureMode::Lane.name(),
            Travel::Batch => ProcedureMode::Batch.name(),
        }
    }

    /// Its clients hear nothing before the end of the train.
    pub fn waits_for_tail(self) -> bool {
        matches!(self, Travel::Train | Travel::Secluded | Travel::Batch)
    }
}

/// What is said of a procedure, put together.
#[derive(Debug, Default)]
pub(super) struct Said {
    declared: bool,
    options: ProcedureOptions,
    key_from: KeyOrigin,
    complaints: Vec<String>,
}

impl Said {
    pub fn of(
        commanded: Option<&ProcedureOptions>,
        configured: Option<&ProcedureOptions>,
        comment: Option<&str>,
    ) -> Said {
        let mut said = Said::default();
        let comment = match comment.map_or(Ok(None), ProcedureOptions::of_comment) {
            Ok(options) => options,
            Err(problem) => {
                said.complaints.push(format!("its comment: {problem}"));
                None
            }
        };
        let sources = [
            (commanded, KeyOrigin::Command),
            (configured, KeyOrigin::Configuration),
            (comment.as_ref(), KeyOrigin::Comment),
        ];
        for (options, origin) in sources {
            let Some(options) = options else { continue };
            said.declared = true;
            if said.options.key.is_empty() && !options.key.is_empty() {
                said.key_from = origin;
            }
            said.options = std::mem::take(&mut said.options).over(options);
        }
        said
    }
}

/// The key of each procedure by its body, those without one having none; and what columns hold
/// values of.
pub(super) fn derive(known: &[&Known]) -> (Vec<Derived>, BTreeMap<String, String>) {
    let mut facts = Facts::default();
    let bodies: Vec<Option<&Body>> = known.iter().map(|one| one.body.as_ref().ok()).collect();
    bodies.iter().flatten().for_each(|body| facts.merge(&body.facts));
    let understood = known.iter().zip(&bodies).filter_map(|(one, body)| {
        let body = (*body)?;
        let (analysis, summary) = (&body.analysis, &body.summary);
        Some(procedure::Procedure { definition: &one.definition, analysis, summary })
    });
    let understood: Vec<procedure::Procedure> = understood.collect();
    let mut derived = procedure::derive(&understood, &facts).into_iter();
    let of = |body: &Option<&Body>| match body {
        Some(_) => derived.next().unwrap_or_default(),
        None => Derived::default(),
    };
    (bodies.iter().map(of).collect(), procedure::dimensions(&understood, &facts))
}

impl Plan {
    pub(super) fn new(database: &str, known: &Known, said: Said, derived: Derived) -> Plan {
        let Said { declared, options, key_from, mut complaints } = said;
        let arguments = (0..known.definition.arguments.len())
            .map(|place| known.definition.argument_name(place))
            .collect();
        let (ride, catches, hazards) = match &known.body {
            Ok(body) => {
                let hazards = body.summary.hazards.iter().map(ToString::to_string).collect();
                (Some(body.summary.ride()), body.summary.catches_lock_timeout, hazards)
            }
            Err(why) => (None, true, vec![why.clone()]),
        };
        let does = |kind| {
            let hazards = known.body.iter().flat_map(|body| &body.summary.hazards);
            hazards.into_iter().any(|hazard| hazard.kind == kind)
        };
        let is_unknown = known.body.is_err() || does(HazardKind::Unknown);
        // Only what is called by CALL can commit.
        let commits = ride == Some(Ride::Last)
            || does(HazardKind::Outside)
            || known.definition.is_procedure && is_unknown;
        let of_key = places(&known.definition, &options.key, &mut complaints);
        let of_also = places(&known.definition, &options.also, &mut complaints);
        let (lists, origin) = match of_key.zip(of_also) {
            Some((key, also)) if !key.is_empty() => {
                let also = also.chunks(key.len()).map(<[usize]>::to_vec).collect();
                (Some((key, also)), key_from)
            }
            _ if !derived.key.is_empty() => {
                (Some((derived.key.clone(), derived.also.clone())), KeyOrigin::Body)
            }
            _ => (None, KeyOrigin::Nobody),
        };
        let lane = lists.map(|(key, also)| {
            let space = space_of_key(database, &key, known, &derived);
            let kinds = |list: Vec<usize>| {
                let kind = |place: usize| known.types.get(place).copied().and_then(Kind::of);
                list.into_iter().map(|place| (place, kind(place))).collect()
            };
            Lane { space, key: kinds(key), also: also.into_iter().map(kinds).collect() }
        });
        let definition = &known.definition;
        let footprints =
            derived.footprints.iter().map(|footprint| footprint.told(definition)).collect();
        let mut plan = Plan {
            declared,
            is_procedure: definition.is_procedure,
            signature: signature(definition),
            options,
            lane,
            origin,
            complaints,
            ride,
            catches,
            commits,
            hazards,
            footprints,
            derived,
            arguments,
        };
        plan.complaints.extend(plan.refusal());
        plan
    }

    /// The mode that calls are to have in a pool with this option.
    pub fn mode(&self, calls: Calls) -> ProcedureMode {
        let wanted = match calls {
            Calls::Off => false,
            Calls::Declared => self.declared,
            Calls::Auto => self.declared || self.origin == KeyOrigin::Body,
        };
        if wanted {
            self.options.mode()
        } else {
            ProcedureMode::Off
        }
    }

    /// How calls travel in a pool with this option. None: as all statements do.
    pub fn travel(&self, calls: Calls) -> Option<Travel> {
        let held = match self.mode(calls) {
            ProcedureMode::Off => return None,
            ProcedureMode::Lane => Travel::Each,
            ProcedureMode::Train | ProcedureMode::Batch if self.catches => Travel::Secluded,
            ProcedureMode::Batch if self.ride == Some(Ride::Shared) => Travel::Batch,
            ProcedureMode::Train | ProcedureMode::Batch => Travel::Train,
        };
        match self.ride {
            Some(Ride::Never) => None,
            _ if self.commits => Some(Travel::Solo),
            _ if self.options.durable_ack() == DurableAck::Each => Some(Travel::Each),
            _ => Some(held),
        }
    }

    /// How often a call is sent again after a deadlock or a serialization failure. What has
    /// committed a part of it is not.
    pub fn retry(&self) -> u32 {
        if self.commits {
            0
        } else {
            self.options.retry()
        }
    }

    /// Why the mode that was asked for is not what calls get.
    fn refusal(&self) -> Option<String> {
        let mode = self.options.mode.filter(|mode| *mode != ProcedureMode::Off)?;
        let why = || match self.hazards.first() {
            Some(first) => first.clone(),
            None => "of what its body does".to_owned(),
        };
        let mode = mode.name();
        match (self.ride, mode) {
            (Some(Ride::Never), _) => Some(format!("not in mode {mode}: {}", why())),
            (_, "train" | "batch") if self.commits => {
                Some(format!("not in mode {mode} but lane: {}", why()))
            }
            (None | Some(Ride::Train), "batch") => {
                Some(format!("not in mode batch but train: {}", why()))
            }
            (_, "batch") if self.catches => {
                Some("not in mode batch but train: it handles errors of locks".to_owned())
            }
            _ => None,
        }
    }
}

fn signature(definition: &Definition) -> String {
    let shown = |(place, argument): (usize, &sql::procedure::Argument)| {
        let mode = match argument.mode {
            Mode::In => "",
            Mode::Out => "OUT ",
            Mode::InOut => "INOUT ",
            Mode::Variadic => "VARIADIC ",
            Mode::Table => "TABLE ",
        };
        format!("{mode}{} {}", definition.argument_name(place), argument.type_name)
    };
    let all: Vec<String> = definition.arguments.iter().enumerate().map(shown).collect();
    all.join(", ")
}

/// The places of arguments by name. None: one of them is not there.
fn places(
    definition: &Definition,
    names: &[String],
    complaints: &mut Vec<String>,
) -> Option<Vec<usize>> {
    let place = |name: &String| {
        let mut all = 0..definition.arguments.len();
        let found = all.find(|place| {
            definition.argument_name(*place) == *name || format!("${}", place + 1) == *name
        });
        found.filter(|place| definition.arguments[*place].mode.is_input())
    };
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        match place(name) {
            Some(place) => places.push(place),
            None => complaints.push(format!("it has no parameter {name} that a value comes in by")),
        }
    }
    (places.len() == names.len()).then_some(places)
}

/// What the values of a key are of: columns where these are known, else parameters' names.
fn space_of_key(database: &str, key: &[usize], known: &Known, derived: &Derived) -> u64 {
    let of = |place: &usize| match derived.dimensions.get(*place).and_then(Option::as_ref) {
        Some(column) => column.clone(),
        None => known.definition.argument_name(*place),
    };
    space(database, key.iter().map(of))
}

pub(super) fn space(database: &str, dimensions: impl Iterator<Item = String>) -> u64 {
    let mut hasher = foldhash::quality::FixedState::default().build_hasher();
    database.hash(&mut hasher);
    dimensions.for_each(|dimension| dimension.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use sql::procedure::{
        Analysis, Argument, Hazard, HazardKind, Mode, Relation, Summary, Touch, TouchKind,
    };
    use sql::procedure::{Equality, Operand};
    use sql::Name;

    use super::*;
    use crate::procedures::Procedures;

    const INTEGER: u32 = 23;

    fn named(name: &str) -> Name {
        Name { schema: Some("public".to_owned()), name: name.to_owned() }
    }

    /// `UPDATE shelves SET ... WHERE id = the argument at this place`.
    fn update(argument: usize) -> Touch {
        Touch {
            kind: TouchKind::Update,
            name: named("shelves"),
            line: 2,
            order: 0,
            in_loop: false,
            in_branch: false,
            equalities: vec![Equality {
                column: "id".to_owned(),
                operand: Operand::Argument(argument),
                provided: Vec::new(),
                kept: Vec::new(),
            }],
            passed: Vec::new(),
        }
    }

    /// A procedure with integers for its parameters.
    fn known(
        name: &str,
        parameters: &[&str],
        touches: Vec<Touch>,
        hazards: &[HazardKind],
    ) -> Known {
        let argument = |name: &&str| Argument {
            name: (*name).to_owned(),
            type_name: "integer".to_owned(),
            mode: Mode::In,
        };
        let hazard = |kind: &HazardKind| Hazard {
            kind: *kind,
            line: 3,
            words: format!("{kind:?}"),
            via: Vec::new(),
        };
        let mut facts = Facts::default();
        let shelves = Relation {
            title: Some(named("shelves")),
            columns: vec!["id".to_owned()],
            unique: vec![vec!["id".to_owned()]],
            ..Relation::default()
        };
        facts.insert(named("shelves"), shelves);
        let summary = Summary {
            touches,
            hazards: hazards.iter().map(hazard).collect(),
            handles_errors: false,
            catches_lock_timeout: false,
        };
        Known {
            oid: name.bytes().map(u32::from).sum(),
            definition: Definition {
                schema: "public".to_owned(),
                name: name.to_owned(),
                arguments: parameters.iter().map(argument).collect(),
                is_procedure: true,
                ..Definition::default()
            },
            types: vec![INTEGER; parameters.len()],
            comment: None,
            body: Ok(Body { analysis: Analysis::default(), summary, facts }),
        }
    }

    fn plan(known: Known) -> std::sync::Arc<Plan> {
        Procedures::default().learn("app", known).expect("there is room").plan()
    }

    fn commented(comment: &str, known: Known) -> std::sync::Arc<Plan> {
        plan(Known { comment: Some(comment.to_owned()), ..known })
    }

    #[test]
    fn only_what_somebody_speaks_of_travels_unless_all_may() {
        let silent = plan(known("take", &["a", "shelf"], vec![update(1)], &[]));
        assert_eq!(silent.travel(Calls::Declared), None);
        assert_eq!(silent.travel(Calls::Auto), Some(Travel::Train));
        assert_eq!(silent.travel(Calls::Off), None);
        assert_eq!(silent.origin, KeyOrigin::Body);
        let keyless = plan(known("count", &["a"], vec![], &[]));
        assert_eq!(keyless.travel(Calls::Auto), None);
        let declared = commented("@pondage", known("take", &["a", "shelf"], vec![update(1)], &[]));
        assert_eq!(declared.travel(Calls::Declared), Some(Travel::Train));
        assert_eq!(declared.lane.as_ref().map(|lane| lane.key.len()), Some(1), "by its body");
        let off = commented("@pondage mode=off", known("take", &["shelf"], vec![update(0)], &[]));
        assert_eq!(off.travel(Calls::Auto), None);
    }

    #[test]
    fn what_a_body_does_says_how_it_may_travel() {
        use HazardKind::{Commit, Dynamic, Outside, SessionLock, Unknown};
        for (said, hazards, travel, complaint) in [
            ("", &[][..], Some(Travel::Train), ""),
            ("mode=batch", &[], Some(Travel::Batch), ""),
            ("mode=batch durable_ack=each", &[], Some(Travel::Each), ""),
            ("durable_ack=each", &[], Some(Travel::Each), ""),
            ("mode=lane", &[], Some(Travel::Each), ""),
            ("mode=batch", &[Dynamic], Some(Travel::Train), "not in mode batch but train"),
            ("mode=train", &[Commit], Some(Travel::Solo), "not in mode train but lane"),
            ("mode=lane", &[Commit], Some(Travel::Solo), ""),
            ("mode=train", &[Unknown], Some(Travel::Solo), "not in mode train but lane"),
            ("mode=train", &[Outside], Some(Travel::Solo), "not in mode train but lane"),
            ("mode=train", &[Dynamic, SessionLock], None, "not in mode train"),
        ] {
            let known = known("take", &["shelf"], vec![update(0)], hazards);
            let plan = commented(&format!("@pondage {said}"), known);
            assert_eq!(plan.travel(Calls::Declared), travel, "{said} {hazards:?}");
            let complaints = plan.complaints.join("; ");
            assert_eq!(complaints.is_empty(), complaint.is_empty(), "{said}: {complaints}");
            assert!(complaints.contains(complaint), "{said}: {complaints}");
        }
    }

    #[test]
    fn a_body_that_may_take_a_lock_timeout_for_its_own_error_gets_none() {
        let mut catching = known("take", &["shelf"], vec![update(0)], &[]);
        if let Ok(body) = &mut catching.body {
            body.summary.catches_lock_timeout = true;
        }
        let plan = commented("@pondage mode=batch", catching);
        assert_eq!(plan.travel(Calls::Declared), Some(Travel::Secluded));
        assert!(plan.complaints[0].contains("handles errors"), "{:?}", plan.complaints);
        let unknown = Known {
            body: Err("written in C".to_owned()),
            ..known("take", &["shelf"], vec![], &[])
        };
        let plan = commented("@pondage key=shelf", unknown.clone());
        // It may commit, and then fail.
        assert_eq!((plan.travel(Calls::Declared), plan.retry()), (Some(Travel::Solo), 0));
        let mut function = unknown;
        function.definition.is_procedure = false;
        let plan = commented("@pondage key=shelf", function);
        assert_eq!((plan.travel(Calls::Declared), plan.retry()), (Some(Travel::Secluded), 3));
    }

    #[test]
    fn a_key_is_named_by_parameters() {
        let parameters = ["a", "b", "c", "d"];
        let of = |said| commented(said, known("take", &parameters, vec![], &[]));
        let plan = of("@pondage key=a,$2 also=c,d");
        let lane = plan.lane.as_ref().expect("a key");
        assert_eq!(lane.key, [(0, Some(Kind::Int)), (1, Some(Kind::Int))]);
        assert_eq!(lane.also, [vec![(2, Some(Kind::Int)), (3, Some(Kind::Int))]]);
        assert_eq!(plan.origin, KeyOrigin::Comment);
        let wrong = of("@pondage key=e");
        assert_eq!((&wrong.lane, wrong.origin), (&None, KeyOrigin::Nobody));
        assert!(wrong.complaints[0].contains("no parameter e"), "{:?}", wrong.complaints);
        let wrong = of("@pondage kee=a");
        assert!(wrong.complaints[0].contains("`kee` is no option"), "{:?}", wrong.complaints);
    }

    #[test]
    fn the_console_goes_before_the_configuration_before_the_comment() {
        let said =
            |text| ProcedureOptions::of_comment(text).expect(text).expect("it says something");
        let configured = [("public.take".to_owned(), said("@pondage key=b mode=lane"))];
        let procedures = Procedures::new(&configured.into_iter().collect());
        let known = known("take", &["a", "b", "c"], vec![], &[]);
        let known = Known { comment: Some("@pondage key=a retry=7".to_owned()), ..known };
        let procedure = procedures.learn("app", known).expect("there is room");
        let seen = || {
            let plan = procedure.plan();
            let key = plan.lane.as_ref().map(|lane| lane.key[0].0);
            (key, plan.origin, plan.retry(), plan.mode(Calls::Declared))
        };
        let before = (Some(1), KeyOrigin::Configuration, 7, ProcedureMode::Lane);
        assert_eq!(seen(), before);
        procedures.set("public.take", said("@pondage key=c")).expect("room");
        procedures.set("public.take", said("@pondage mode=batch")).expect("room");
        assert_eq!(seen(), (Some(2), KeyOrigin::Command, 7, ProcedureMode::Batch));
        assert!(procedures.reset("public.take") && !procedures.reset("public.take"));
        assert_eq!(seen(), before);
        procedures.configure(&std::collections::BTreeMap::new());
        assert_eq!(seen(), (Some(0), KeyOrigin::Comment, 7, ProcedureMode::Train));
    }

    #[test]
    fn procedures_whose_keys_are_of_one_column_share_lanes() {
        let procedures = Procedures::default();
        let learn = |database: &str, known: Known| {
            let comment = Some("@pondage".to_owned());
            let known = Known { comment, ..known };
            procedures.learn(database, known).expect("there is room")
        };
        let take = learn("app", known("take", &["a", "shelf"], vec![update(1)], &[]));
        let fill = learn("app", known("fill", &["id"], vec![update(0)], &[]));
        let other = learn("app", known("other", &["id"], vec![], &[]));
        let apart = learn("else", known("fill", &["id"], vec![update(0)], &[]));
        let space = |procedure: &super::super::Procedure| {
            procedure.plan().lane.as_ref().map(|lane| lane.space)
        };
        assert_eq!(space(&take), space(&fill));
        assert_ne!(space(&take), space(&apart), "another database has other rows");
        assert_eq!(space(&other), None);
        let of = |column: &str| procedures.space("app", &[format!("public.{column}")]);
        assert_eq!(space(&take), Some(of("shelves.id")), "and a statement on such a row");
        assert_ne!(space(&take), Some(of("shelves.n")));
        procedures
            .set("public.other", ProcedureOptions { key: vec!["id".into()], ..Default::default() })
            .expect("room");
        assert!(space(&other).is_some() && space(&other) != space(&take));
    }
}
