//! May the answers to a SELECT be kept, and what do they depend on?
//!
//! Stricter than what may share a transaction: an answer is kept for as long as no row that it
//! depends on has changed, so it must depend on nothing else.
//!
//! ```text
//! parser: which tables, which rows, which names ─┐
//! PostgreSQL: types of values and results ───────┼─> objections, or a recipe
//! catalogues: what tables, functions, types are ─┘
//! ```
//!
//! As for the sharing, a name of a function or operator stands for all that have it. What is
//! stable may be allowed all the same: see `stable.rs`. PostgreSQL is asked to prepare the
//! statement, with constants as parameters where that can be, because only it knows of what type
//! they are; a constant in quotes may be `now`.

mod objections;
mod recipe;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use backend::login::ServerError;
use cache::value::oid;
use sql::{Analysis, Cast, Literal, Name, Parser, Reads, Scan, Selected, Source, Use};
use wire::pg::sqlstate;

use super::catalogue::{Answers, Key};
use super::connection::{Connection, Described, Failure};
use super::facts::{Facts, Wanted};
use super::mirrored::Case;
use super::statement::{key, told, Piece};
use crate::route::{Cacheable, Mirrored, Slot};
use objections::Objections;

/// Tables (with partitions) of one statement.
const PARTS_MAX: usize = 256;

/// A constant that may be of any type, so also of this one.
const ANY_MOMENT: u32 = oid::TIMESTAMPTZ;

/// Constants of one statement that PostgreSQL has to be told are texts. It names one at a time.
const UNTOLD_MAX: usize = 16;

/// Nothing but a text: it can't be read as a moment, nor as any other built-in type whose values
/// may be other ones at another time.
const PLAIN_TEXT: &[u8] = b"'zz <zz'";

/// The first oid that no built-in type has. Source: `FirstNormalObjectId` in access/transam.h.
const USER_OID: u32 = 16_384;

/// What the parser made of a SELECT.
pub struct Reading {
    pub reads: Reads,
    /// What it asks for, or why mirrors can't answer it.
    selected: Result<Selected, String>,
    text: Box<[u8]>,
    shape: Box<[u8]>,
    literals: Box<[Literal]>,
    uses: Box<[Use]>,
}

impl Reading {
    /// # Errors
    /// The reason why nothing can be kept.
    pub fn new(
        parser: &impl Parser,
        text: &str,
        scan: &Scan,
        uses: &[Use],
    ) -> Result<Reading, String> {
        let reads = parser.reads(text, scan.literals());
        let reads =
            reads.map_err(|e| format!("the parser does not understand it: {}", told(&e)))?;
        Ok(Reading {
            reads,
            selected: parser.select(text, scan.literals()),
            text: text.as_bytes().into(),
            shape: scan.shape().into(),
            literals: scan.literals().into(),
            uses: uses.into(),
        })
    }

    /// The text with something else for chosen constants, parameters numbered on from its own ones;
    /// with their types and places.
    fn numbered(&self, own: u32, chosen: impl Fn(usize) -> Put) -> Numbered {
        let mut out = Vec::with_capacity(self.text.len());
        let mut types = vec![0; own as usize];
        let mut places = Vec::new();
        let mut from = 0;
        for (place, literal) in self.literals.iter().enumerate() {
            let at = literal.at as usize;
            out.extend_from_slice(self.shape.get(from..at).unwrap_or_default());
            from = at + 1;
            match chosen(place) {
                Put::Parameter(oid) => {
                    types.push(oid);
                    places.push(place);
                    out.push(b'$');
                    out.extend_from_slice(types.len().to_string().as_bytes());
                }
                Put::PlainText => out.extend_from_slice(PLAIN_TEXT),
                Put::AsItIs => out.extend_from_slice(self.written(place)),
            }
        }
        out.extend_from_slice(self.shape.get(from..).unwrap_or_default());
        Numbered { text: out, types, places }
    }

    /// A constant as it is written.
    fn written(&self, place: usize) -> &[u8] {
        let literal = self.literals[place];
        self.text.get(literal.start as usize..literal.end as usize).unwrap_or_default()
    }

    /// `$2` of the statement that stands in for the text; `?` for a constant that stays.
    fn label(&self, source: Source) -> String {
        match source {
            Source::Parameter(number) => format!("${number}"),
            Source::Literal(place) => {
                let place = place as usize;
                match self.uses.get(place) {
                    Some(Use::Parameter(_)) => {
                        let before = self.uses[..place].iter();
                        let before = before.filter(|r#use| **r#use != Use::Fixed).count();
                        format!("${}", before + 1)
                    }
                    _ => "?".to_owned(),
                }
            }
        }
    }
}

/// What stands in a constant's place.
#[derive(Clone, Copy)]
enum Put {
    AsItIs,
    Parameter(u32),
    PlainText,
}

struct Numbered {
    text: Vec<u8>,
    types: Vec<u32>,
    /// Which constants are parameters.
    places: Vec<usize>,
}

impl Numbered {
    /// The place of a constant in quotes for which PostgreSQL finds no type, as in
    /// `concat(name, 'x')`. It takes such a constant for a text; a parameter would have to say so.
    fn untold(&self, answer: &Result<Described, Failure>, own: u32) -> Option<usize> {
        let Err(Failure::Refused(error)) = answer else { return None };
        if error.code != sqlstate::INDETERMINATE_DATATYPE {
            return None;
        }
        let (_, number) = error.message.rsplit_once('$')?;
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let place = number[..digits].parse::<usize>().ok()?.checked_sub(1)?;
        (place >= own as usize && self.types.get(place) == Some(&0)).then_some(place)
    }
}

/// A table that the statement itself names, or a view that it names uses.
struct Occurrence {
    /// Of its [`Reads`]; only the statement's own have restrictions.
    place: Option<usize>,
    oid: u32,
}

/// Types of constants and results.
struct Types {
    slots: Vec<Slot>,
    described: Described,
    /// Some constants in quotes have a type that is not known.
    uncertain: bool,
    /// Those of them that can be any text.
    texts: BTreeSet<u32>,
    /// All of them are.
    all_texts: bool,
}

impl Types {
    /// What can be any text is one, unless a type that somebody has made may be meant.
    fn settle_texts(&mut self, facts: &Facts) {
        let mut routines = facts.functions.iter().chain(&facts.operators);
        if routines.any(|routine| routine.takes.iter().any(|oid| *oid >= USER_OID)) {
            return;
        }
        for slot in &mut self.slots {
            if matches!(slot.source, Source::Literal(place) if self.texts.contains(&place)) {
                slot.type_oid = oid::TEXT;
            }
        }
        self.uncertain &= !self.all_texts;
    }
}

/// What was found while the statement was judged for sharing.
pub struct Evidence {
    reading: Option<Result<Arc<Reading>, String>>,
    /// The statement's own parameters.
    parameters: u32,
    /// The first reason why nothing can be kept.
    refused: Option<String>,
    wanted: Wanted,
    tables: Vec<Occurrence>,
    /// For each table of the statement's own [`Reads`] its relation.
    relations: Vec<Option<u32>>,
    /// Types by name: oid, and that of arrays.
    types: HashMap<Key, (u32, u32)>,
    /// Of all pieces, with the word in front of reasons.
    reads: Vec<(String, Reads)>,
}

impl Evidence {
    pub fn new(analysis: &Analysis, reading: Option<Result<Arc<Reading>, String>>) -> Evidence {
        Evidence {
            reading,
            parameters: analysis.parameters,
            refused: None,
            wanted: Wanted::default(),
            tables: Vec::new(),
            relations: Vec::new(),
            types: HashMap::new(),
            reads: Vec::new(),
        }
    }

    fn refuse(&mut self, within: &str, reason: impl std::fmt::Display) {
        self.refused.get_or_insert_with(|| format!("{within}{reason}"));
    }

    /// Notes what a part of the statement uses.
    pub fn add(&mut self, piece: &Piece, answers: &Answers) {
        let reads = match &piece.reads {
            None => return,
            Some(Err(why)) => return self.refuse(&piece.within, why),
            Some(Ok(reads)) => reads,
        };
        if let Some(obstacle) = reads.obstacles.first() {
            self.refuse(&piece.within, obstacle);
        }
        // They are found in two ways, and one that is missed would never be watched.
        let read: BTreeSet<&sql::Name> = reads.tables.iter().map(|table| &table.relation).collect();
        if read != piece.analysis.relations.iter().collect() {
            self.refuse(&piece.within, "the parser counts its tables in two ways");
        }
        for (place, table) in reads.tables.iter().enumerate() {
            let relation = answers.relations.get(&key(&table.relation));
            let oid = relation.and_then(|relation| relation.oid.parse().ok());
            if piece.depth == 0 {
                self.relations.push(oid);
            }
            let (Some(relation), Some(oid)) = (relation, oid) else {
                self.refuse(&piece.within, format_args!("\"{}\" is not known", table.relation));
                continue;
            };
            let shown = format!("{}{}", super::statement::shown(&relation.schema), relation.name);
            self.wanted.relations.insert(oid);
            match relation.kind {
                b'r' | b'p' => {
                    self.wanted.tables.insert(oid);
                    let place = (piece.depth == 0).then_some(place);
                    self.tables.push(Occurrence { place, oid });
                }
                b'v' if relation.invoker => {
                    let why = "reads with the rights of who asks (security_invoker)";
                    self.refuse(&piece.within, format_args!("view {shown} {why}"));
                }
                b'v' => {}
                b'm' => {
                    self.refuse(&piece.within, format_args!("{shown} is a materialised view"));
                }
                _ => self.refuse(&piece.within, format_args!("{shown} is not a table")),
            }
        }
        let Analysis { functions, operators, types, columns, .. } = &piece.analysis;
        self.wanted.functions.extend(functions.iter().map(key));
        self.wanted.operators.extend(operators.iter().map(key));
        self.wanted.columns.extend(columns.iter().cloned());
        for name in types {
            if let Some(found) = answers.types.get(&key(name)) {
                self.wanted.types.extend([found.oid]);
                self.types.insert(key(name), (found.oid, found.array));
            }
        }
        let calls = reads.casts.iter().filter(|cast| cast.call);
        self.wanted.type_names.extend(calls.map(|cast| cast.to.name.clone()));
        self.reads.push((piece.within.clone(), reads.clone()));
    }

    /// Two round trips, or three.
    ///
    /// # Errors
    /// When the server refuses a look-up or the connection is lost.
    pub async fn judge(
        mut self,
        connection: &mut Connection,
    ) -> Result<Result<Cacheable, String>, Failure> {
        if let Some(reason) = self.refused {
            return Ok(Err(reason));
        }
        let reading = match self.reading.clone() {
            Some(Ok(reading)) => reading,
            Some(Err(reason)) => return Ok(Err(reason)),
            None => return Ok(Err("it is not a SELECT".to_owned())),
        };
        if self.tables.is_empty() {
            return Ok(Err("it reads no table".to_owned()));
        }
        let types = match self.ask_types(connection, &reading).await? {
            Ok(types) => types,
            Err(reason) => return Ok(Err(reason)),
        };
        let oids = types
            .slots
            .iter()
            .map(|slot| slot.type_oid)
            .chain(types.described.columns.iter().copied());
        self.wanted.types.extend(oids.chain([oid::TEXT]));
        let facts = connection.facts(&self.wanted).await?;
        let described = types.described.clone();
        let mut cacheable = match self.weigh(&reading, types, &facts) {
            Ok(cacheable) => cacheable,
            Err(reason) => return Ok(Err(reason)),
        };
        let slots = &cacheable.slots;
        let mirror = self.mirror(connection, &reading, slots, &described, &facts).await?;
        cacheable.mirror = mirror.map(Arc::new);
        Ok(Ok(cacheable))
    }

    fn weigh(
        &self,
        reading: &Reading,
        mut types: Types,
        facts: &Facts,
    ) -> Result<Cacheable, String> {
        if facts.parts.len() > PARTS_MAX {
            return Err(format!("it reads more than {PARTS_MAX} tables and partitions"));
        }
        types.settle_texts(facts);
        let objections = Objections {
            reads: &self.reads,
            named: &self.types,
            slots: &types.slots,
            columns: &types.described.columns,
            uncertain: types.uncertain,
            facts,
        };
        let settings = objections.raise()?;
        for slot in &mut types.slots {
            slot.timely = objections::is_timely(facts, slot.type_oid);
        }
        let (recipe, mut lines) = recipe::make(self, reading, &types.slots, facts);
        if types.uncertain {
            lines.push("Only where no constant in quotes can be a word such as 'now'".to_owned());
        }
        let mirror = Err(String::new());
        Ok(Cacheable { recipe, settings, slots: types.slots, lines, mirror })
    }

    /// How mirrors answer it: one round trip, if they can at all.
    async fn mirror(
        &self,
        connection: &mut Connection,
        reading: &Reading,
        slots: &[Slot],
        described: &Described,
        facts: &Facts,
    ) -> Result<Result<Mirrored, String>, Failure> {
        let selected = match &reading.selected {
            Ok(selected) => selected,
            Err(reason) => return Ok(Err(reason.clone())),
        };
        let named = reading.reads.tables.iter().zip(&self.relations);
        let relations: Vec<(Name, u32)> =
            named.filter_map(|(table, oid)| Some((table.relation.clone(), (*oid)?))).collect();
        let oids = relations.iter().map(|(_, oid)| *oid).collect();
        let tables = &connection.mirrorable(&oids).await?;
        let relations = &relations;
        Ok(Case { selected, relations, slots, facts, described, tables }.mirrored())
    }

    /// Has PostgreSQL prepare the statement.
    async fn ask_types(
        &self,
        connection: &mut Connection,
        reading: &Reading,
    ) -> Result<Result<Types, String>, Failure> {
        let casts = self.casts(reading);
        let text = |place: usize| reading.literals[place].kind == sql::LiteralKind::Text;
        let of_use = |place: usize| match reading.uses[place] {
            Use::Parameter(oid) => Put::Parameter(oid),
            Use::Fixed => Put::AsItIs,
        };
        // A typed constant, `date '2000-01-01'`, has to stay one.
        let bare = |place: usize| match of_use(place) {
            Put::AsItIs if text(place) && !casts.contains_key(&place) => Put::Parameter(0),
            known => known,
        };
        let most = reading.numbered(self.parameters, bare);
        let least = reading.numbered(self.parameters, of_use);
        let mut numbered = most;
        let mut answer = connection.describe(&numbered.text, &numbered.types).await;
        for _ in 0..UNTOLD_MAX {
            let Some(place) = numbered.untold(&answer, self.parameters) else { break };
            numbered.types[place] = oid::TEXT;
            answer = connection.describe(&numbered.text, &numbered.types).await;
        }
        // Constants in GROUP BY and its like must stay the same.
        if matches!(answer, Err(Failure::Refused(_))) && numbered.places != least.places {
            numbered = least;
            answer = connection.describe(&numbered.text, &numbered.types).await;
        }
        let described = match answer {
            Ok(described) => described,
            Err(Failure::Refused(error)) if error.code != sqlstate::LOCK_NOT_AVAILABLE => {
                return Ok(Err(format!("PostgreSQL does not prepare it: {}", tellable(&error))));
            }
            // Nor is it known whether it could be kept while a table of it is being changed.
            Err(failure) => return Err(failure),
        };
        let mut types = self.types(reading, &casts, &numbered, described);
        if types.uncertain {
            let untold = |place: &usize| {
                text(*place) && !casts.contains_key(place) && !numbered.places.contains(place)
            };
            let untold: Vec<usize> = (0..reading.literals.len()).filter(untold).collect();
            types.texts = self.ask_texts(connection, reading, &untold, of_use).await?;
            types.all_texts = types.texts.len() == untold.len();
        }
        Ok(Ok(types))
    }

    /// Which of these constants are texts for certain: those that may as well be one that nothing
    /// else can be. All that are written alike at once, since those in GROUP BY have to stay so.
    async fn ask_texts(
        &self,
        connection: &mut Connection,
        reading: &Reading,
        untold: &[usize],
        of_use: impl Fn(usize) -> Put,
    ) -> Result<BTreeSet<u32>, Failure> {
        let mut texts = BTreeSet::new();
        let kinds: BTreeSet<&[u8]> = untold.iter().map(|place| reading.written(*place)).collect();
        for written in kinds.into_iter().take(UNTOLD_MAX) {
            let alike = |place| untold.contains(&place) && reading.written(place) == written;
            let put = |place| if alike(place) { Put::PlainText } else { of_use(place) };
            let plain = reading.numbered(self.parameters, put);
            match connection.describe(&plain.text, &plain.types).await {
                Ok(_) => {
                    let found = (0..).zip(&reading.literals).map(|(number, _)| number);
                    texts.extend(found.filter(|number: &u32| alike(*number as usize)));
                }
                Err(Failure::Refused(error)) if error.code != sqlstate::LOCK_NOT_AVAILABLE => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(texts)
    }

    fn types(
        &self,
        reading: &Reading,
        casts: &HashMap<usize, u32>,
        numbered: &Numbered,
        described: Described,
    ) -> Types {
        let parameters = &described.parameters;
        let mut slots = Vec::new();
        let mut slot = |source, type_oid| slots.push(Slot { source, type_oid, timely: false });
        let own = self.parameters as usize;
        for (number, oid) in (1..).zip(parameters.iter().take(own)) {
            slot(Source::Parameter(number), *oid);
        }
        let found: HashMap<usize, u32> =
            numbered.places.iter().copied().zip(parameters.iter().skip(own).copied()).collect();
        let mut uncertain = false;
        for (number, literal) in (0..).zip(&reading.literals) {
            let place = number as usize;
            let known = casts.get(&place).or_else(|| found.get(&place)).copied();
            let oid = match (known, literal.kind) {
                (Some(oid), _) => oid,
                (None, sql::LiteralKind::Text) => {
                    uncertain = true;
                    ANY_MOMENT
                }
                (None, kind) => kind.oid(),
            };
            slot(Source::Literal(number), oid);
        }
        Types { slots, described, uncertain, texts: BTreeSet::new(), all_texts: false }
    }

    /// Constants in quotes with a cast around them, and the type that gives them.
    fn casts(&self, reading: &Reading) -> HashMap<usize, u32> {
        let of = |cast: &sql::CastTo| {
            let Cast::Constant(Some(Source::Literal(place))) = cast.what else { return None };
            let literal = reading.literals.get(place as usize)?;
            if cast.call || literal.kind != sql::LiteralKind::Text {
                return None;
            }
            let (oid, array) = *self.types.get(&key(&cast.to))?;
            Some((place as usize, if cast.array { array } else { oid }))
        };
        reading.reads.casts.iter().filter_map(of).collect()
    }
}

/// The columns that a statement may use, by the relations that it reads.
fn used_columns<'f>(
    reads: &[(String, Reads)],
    facts: &'f Facts,
) -> impl Iterator<Item = (&'f str, u32)> {
    let names: BTreeSet<&str> =
        reads.iter().flat_map(|(_, reads)| &reads.names).map(String::as_str).collect();
    let known = |name: &&str| facts.columns.values().any(|columns| columns.contains_key(*name));
    // What is no column may be a row, or another name for a column.
    let all = reads.iter().any(|(_, reads)| reads.whole) || !names.iter().all(known);
    let used: Vec<_> = facts
        .columns
        .values()
        .flatten()
        .filter(|(name, _)| all || names.contains(name.as_str()))
        .map(|(name, column)| (name.as_str(), column.type_oid))
        .collect();
    used.into_iter()
}

/// What is said of an error: the server's words where they are of names and types. Those of what a
/// constant is no value of, `'x'::int` or `'x'::regproc`, have the constant in them, and this is
/// shown to whoever may look: then it is the code alone.
fn tellable(error: &ServerError) -> String {
    /// Columns, types, grouping, ambiguity; what reads constants raises none of these.
    const OF_NAMES: [&str; 6] = ["42703", "42725", "42803", "42804", "42P08", "42P18"];
    match OF_NAMES.contains(&error.code.as_str()) {
        true => error.to_string(),
        false => format!("{} {}", error.severity, error.code),
    }
}
