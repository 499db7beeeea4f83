//! The verdict on one statement: what the parser found, against what the catalogues say of it.
//!
//! ```text
//! text -> parser -> names -> catalogues -> objections
//!            ^                   |
//!            '- views, defaults, checks: texts of their own -'
//! ```
//!
//! Everything that is not known for certain is an objection. Names of functions and operators
//! stand for all that have them, in any schema, because which one is meant depends on types that
//! only PostgreSQL finds out. A function that is marked stable or immutable is believed to be so:
//! PostgreSQL's own planner relies on it as much.
//!
//! Two things are not looked for. A temporary table that shadows another is still a table, and
//! what compares values of a type (its operator classes) has to be free of side effects anyhow.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use cache::written::Written;
use sql::{Analysis, Cast, Name, Parser, Reads, Source, Statement, Unparsed, Use};
use wire::pg::sqlstate;

use super::cacheable::{Evidence, Reading};
use super::catalogue::{
    Answers, Definitions, Key, Names, Relation, Touched, What, EXPRESSIONS_MAX,
};
use super::connection::{Connection, Failure, Settings};
use super::functions;
use crate::route::{Share, Verdict, Writes};

/// Views within views.
pub const VIEW_DEPTH_MAX: usize = 8;

/// Views of one statement.
pub const VIEWS_MAX: usize = 32;

/// Names in one statement, or in the views and expressions of one step.
pub const NAMES_MAX: usize = 1000;

/// What the parser made of a statement.
#[derive(Clone)]
pub struct Parsed {
    text: Box<str>,
    analysis: Analysis,
    literals: Option<Box<[Use]>>,
    /// Of a SELECT.
    reads: Option<Result<Arc<Reading>, String>>,
    /// Of INSERT, UPDATE, DELETE.
    write: Option<sql::Write>,
    /// It locks the rows that it reads, and so travels alone. It may still write nothing.
    locks: bool,
}

impl Parsed {
    /// # Errors
    /// The verdict, when the catalogues need not be asked.
    pub fn new(parser: &impl Parser, text: &[u8], caches: bool) -> Result<Parsed, Verdict> {
        if text.len() > sql::TEXT_MAX {
            return Err(alone(format!("its text is longer than {} bytes", sql::TEXT_MAX)));
        }
        let text = std::str::from_utf8(text).map_err(|_| alone("its text is not UTF-8"))?;
        let mut scan = sql::Scan::new();
        let readable = scan.scan(text.as_bytes());
        let literals = if readable { scan.literals() } else { &[] };
        let mut analysis = parser.analyse(text, literals).map_err(|unparsed| {
            alone(format!("the parser does not understand it: {}", told(&unparsed)))
        })?;
        match (analysis.statements, analysis.statement) {
            (0, _) => return Err(alone("it is empty")),
            (1, Statement::Merge) => return Err(alone("it is a MERGE")),
            (1, Statement::Other(word)) => {
                let reason = "only SELECT, VALUES, TABLE, INSERT, UPDATE and DELETE can share";
                let reason = match word {
                    "" => reason.to_owned(),
                    word => format!("{reason}, not {word}"),
                };
                let harmless = WRITES_NOTHING.contains(&word);
                let writes = if harmless { Writes::Nothing } else { Writes::Anything };
                return Err(Verdict { writes, ..alone(reason) });
            }
            (1, _) => {}
            (more, _) => return Err(alone(format!("it is {more} statements"))),
        }
        let locks = analysis.obstacles == [sql::LOCKS_ROWS];
        if locks {
            analysis.obstacles.clear();
        }
        if let Some(obstacle) = analysis.obstacles.first() {
            return Err(alone(*obstacle));
        }
        let literals = readable.then(|| analysis.literals.clone().into_boxed_slice());
        let reads =
            (analysis.statement == Statement::Select && !locks).then(|| match (caches, readable) {
                (true, true) => Reading::new(parser, text, &scan, &analysis.literals).map(Arc::new),
                (true, false) => Err("its constants are not all understood".to_owned()),
                (false, _) => Err("its pool does not cache".to_owned()),
            });
        let write = parser.write(text, if readable { scan.literals() } else { &[] });
        Ok(Parsed { text: text.into(), analysis, literals, reads, write, locks })
    }

    /// Of an INSERT with ON CONFLICT: the values of its row.
    pub fn conflicts(&self) -> &[(String, Source)] {
        self.write.as_ref().map_or(&[], |write| &write.conflicts)
    }
}

/// The call that a statement consists of.
pub fn call(parser: &impl Parser, text: &[u8]) -> Option<sql::Call> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= sql::TEXT_MAX)?;
    let mut scan = sql::Scan::new();
    if !scan.scan(text.as_bytes()) {
        return None;
    }
    parser.call(text, scan.literals())
}

fn alone(reason: impl Into<String>) -> Verdict {
    let reason = reason.into();
    Verdict {
        share: Share::Alone,
        cache: Err(reason.clone()),
        reason,
        literals: None,
        writes: Writes::Anything,
        call: None,
        row: None,
    }
}

/// First words of statements that change no rows. (COMMIT is not among them: of COMMIT PREPARED
/// nobody knows what it commits.)
const WRITES_NOTHING: &[&str] = &[
    "ABORT",
    "ANALYSE",
    "ANALYZE",
    "BEGIN",
    "CHECKPOINT",
    "CLOSE",
    "DEALLOCATE",
    "DISCARD",
    "FETCH",
    "LISTEN",
    "LOCK",
    "MOVE",
    "NOTIFY",
    "PREPARE",
    "RELEASE",
    "RESET",
    "ROLLBACK",
    "SAVEPOINT",
    "SET",
    "SHOW",
    "START",
    "UNLISTEN",
    "VACUUM",
];

/// The parser's words without its quote of the text, which may be long, or nobody's business.
pub fn told(unparsed: &Unparsed) -> String {
    let words = unparsed.0.lines().next().unwrap_or_default();
    // Its path through the tree is in front of it.
    if words.ends_with("recursion limit reached") {
        return "it is nested too deeply".to_owned();
    }
    let words = words.split_once(" at or near ").map_or(words, |(words, _)| words);
    words.chars().take(WORDS_CHARS_MAX).collect()
}

/// Of the parser's words, characters that are told.
const WORDS_CHARS_MAX: usize = 200;

/// Judges a statement: one round trip for itself, two for each level of views, two more for a
/// write.
///
/// # Errors
/// When the server refuses a look-up or the connection is lost.
pub async fn judge(
    parser: &impl Parser,
    connection: &mut Connection,
    parsed: &Parsed,
) -> Result<Verdict, Failure> {
    match look(parser, connection, parsed).await {
        // It would take as long the next time.
        Err(Failure::Refused(error)) if error.code == sqlstate::QUERY_CANCELED => {
            Ok(alone("the catalogues took too long to tell what it touches"))
        }
        result => result,
    }
}

async fn look(
    parser: &impl Parser,
    connection: &mut Connection,
    parsed: &Parsed,
) -> Result<Verdict, Failure> {
    let Parsed { text, analysis, literals, reads, write, locks } = parsed.clone();
    let mut evidence = Evidence::new(&analysis, reads.clone());
    let (written, assigns_texts) = (analysis.written.clone(), analysis.assigns_texts);
    let deletes = analysis.statement == Statement::Delete;
    let inserts = analysis.statement == Statement::Insert;
    let mut table = None;
    let mut judging = Judging {
        parser,
        writes: written.is_some(),
        caches: matches!(reads, Some(Ok(_))),
        share: if written.is_some() { Share::Write } else { Share::Batch },
        reason: if written.is_some() { "it writes".to_owned() } else { String::new() },
        seen: HashSet::new(),
        found: Vec::new(),
        next: vec![Piece {
            within: String::new(),
            depth: 0,
            analysis,
            reads: reads.map(|reads| reads.map(|reading| reading.reads.clone())),
        }],
        intervals: false,
        cascades: false,
    };
    judging.settings(&connection.settings, &text);
    let mut target = written.as_ref().map(key);
    while judging.share > Share::Alone && !judging.next.is_empty() {
        let pieces = std::mem::take(&mut judging.next);
        let mut names = Names::default();
        pieces.iter().for_each(|piece| piece.names(&mut names));
        names.relations.extend(target.clone());
        if names.count() > NAMES_MAX {
            judging.object(Share::Alone, "", "it uses more names than are looked up");
            break;
        }
        let answers = connection.look_up(&names).await?;
        judging.casts(&answers);
        for piece in &pieces {
            judging.piece(piece, &answers);
            evidence.add(piece, &answers);
        }
        let views = std::mem::take(&mut judging.found);
        if judging.share > Share::Alone && !views.is_empty() {
            let oids: Vec<String> = views.iter().map(|view| view.oid.clone()).collect();
            let definitions = connection.definitions(&oids).await?;
            judging.definitions(views, &definitions);
        }
        if let Some(target) = target.take() {
            let relation = answers.relations.get(&target);
            if let Some(oid) = judging.target(&target, relation) {
                judging.touched(&connection.written(&oid, deletes).await?);
                table = oid.parse().ok();
            }
        }
    }
    let Judging { share, reason, intervals, cascades, .. } = judging;
    let writes = match (share, table.zip(write)) {
        (Share::Pipeline | Share::Batch, _) => Writes::Nothing,
        (Share::Write, Some((table, write))) if !cascades => {
            let sql::Write { fixed, assigned, .. } = write;
            Writes::Rows(Arc::new(Written { table, inserts, fixed, assigned }))
        }
        _ => Writes::Anything,
    };
    if locks && share > Share::Alone {
        return Ok(Verdict { writes, ..alone(sql::LOCKS_ROWS) });
    }
    let mut literals = literals.filter(|_| share != Share::Alone);
    if intervals && assigns_texts {
        // One of them may be for an interval, and it is not known which.
        let texts = literals.iter_mut().flatten().filter(|r#use| **r#use == Use::Parameter(0));
        texts.for_each(|r#use| *r#use = Use::Fixed);
    }
    let cache = match share {
        Share::Batch => evidence.judge(connection).await?.map(Arc::new),
        _ => Err(reason.clone()),
    };
    Ok(Verdict { share, reason, literals, cache, writes, call: None, row: None })
}

/// A text that is a part of what is judged.
pub struct Piece {
    /// For reasons: `view app.v: `, or nothing for the statement itself.
    pub within: String,
    /// Of views.
    pub depth: usize,
    pub analysis: Analysis,
    /// Of a SELECT.
    pub reads: Option<Result<Reads, String>>,
}

impl Piece {
    fn names(&self, names: &mut Names) {
        let Analysis { relations, functions, operators, types, columns, .. } = &self.analysis;
        names.relations.extend(relations.iter().map(key));
        names.functions.extend(functions.iter().map(key));
        names.operators.extend(operators.iter().map(key));
        names.types.extend(types.iter().map(key));
        names.columns.extend(columns.iter().cloned());
    }
}

pub fn key(name: &Name) -> Key {
    (name.schema.clone(), name.name.clone())
}

/// The server has left out no schema but this.
fn qualify(analysis: &mut Analysis) {
    let Analysis { relations, functions, operators, types, .. } = analysis;
    for name in [relations, functions, operators, types].into_iter().flatten() {
        name.schema.get_or_insert_with(|| CATALOGUES.to_owned());
    }
}

fn qualify_reads(reads: &mut Reads) {
    let of_casts = reads.casts.iter_mut().flat_map(|cast| {
        let what = match &mut cast.what {
            Cast::Call(name) | Cast::Type(name) => Some(name),
            Cast::Constant(_) | Cast::Column(_) | Cast::Other => None,
        };
        what.into_iter().chain([&mut cast.to])
    });
    let of_tables = reads.tables.iter_mut().map(|table| &mut table.relation);
    for name in of_tables.chain(of_casts) {
        name.schema.get_or_insert_with(|| CATALOGUES.to_owned());
    }
}

struct View {
    oid: String,
    /// For reasons: `app.v`.
    name: String,
    depth: usize,
}

struct Judging<'a, P> {
    parser: &'a P,
    writes: bool,
    /// What is read is wanted, too.
    caches: bool,
    share: Share,
    reason: String,
    /// Views by oid.
    seen: HashSet<String>,
    /// Views of this step.
    found: Vec<View>,
    /// What is still to be judged.
    next: Vec<Piece>,
    /// What is written has intervals with a modifier.
    intervals: bool,
    /// Rows of other tables may be written with it.
    cascades: bool,
}

impl<P: Parser> Judging<'_, P> {
    /// Nothing better than `most`; the first reason for the worst is the one that is told.
    fn object(&mut self, most: Share, within: &str, reason: impl fmt::Display) {
        if most < self.share {
            self.share = most;
            self.reason = format!("{within}{reason}");
        }
    }

    fn refuse(&mut self, piece: &Piece, reason: impl fmt::Display) {
        self.object(Share::Alone, &piece.within, reason);
    }

    /// What the pool's sessions begin with. (What a client sets is the router's to look at.)
    fn settings(&mut self, settings: &Settings, text: &str) {
        if !settings.conforming_strings && text.contains('\\') {
            self.object(Share::Alone, "", "standard_conforming_strings is off and it has a \\");
        }
        // Such a transaction waits until no write can disturb it.
        let Settings { isolation, read_only, deferrable, .. } = settings;
        if isolation == "serializable" && *read_only && *deferrable {
            self.object(Share::Alone, "", "default_transaction_deferrable is on");
        }
        // Only here each statement of a transaction has its own snapshot.
        let each = matches!(isolation.as_str(), "read committed" | "read uncommitted");
        if !each && !self.writes {
            let reason = format!("default_transaction_isolation is {isolation}");
            self.object(Share::Pipeline, "", reason);
        }
    }

    /// Casts that nobody writes down may be anywhere.
    fn casts(&mut self, answers: &Answers) {
        let Some(cast) = &answers.cast else { return };
        if self.writes || !cast.assignment {
            let reason = format!("the implicit cast from {} to {} is volatile", cast.from, cast.to);
            self.object(Share::Alone, "", reason);
        }
    }

    fn piece(&mut self, piece: &Piece, answers: &Answers) {
        if let Some(obstacle) = piece.analysis.obstacles.first() {
            return self.refuse(piece, obstacle);
        }
        for name in &piece.analysis.relations {
            match answers.relations.get(&key(name)) {
                Some(relation) => self.relation(piece, relation),
                None => self.refuse(piece, format_args!("relation \"{name}\" is not known")),
            }
        }
        for name in &piece.analysis.functions {
            self.function(piece, name, answers);
        }
        for name in &piece.analysis.operators {
            match answers.operators.get(&key(name)) {
                Some(None) => {}
                Some(Some(schema)) => {
                    let schema = shown(schema);
                    let reason = format!("operator {schema}{} is volatile", name.name);
                    self.refuse(piece, reason);
                }
                None => self.refuse(piece, format_args!("operator {name} is not known")),
            }
        }
        for name in &piece.analysis.types {
            self.type_(piece, name, answers);
        }
        for column in &piece.analysis.columns {
            if let Some(schema) = answers.columns.get(column) {
                let reason = format!(
                    "column {column} may be a call of function {}{column}(), which is volatile",
                    shown(schema)
                );
                self.refuse(piece, reason);
            }
        }
    }

    /// One that is read.
    fn relation(&mut self, piece: &Piece, relation: &Relation) {
        let Relation { schema, name, .. } = relation;
        let name = format!("{}{name}", shown(schema));
        let reason = match relation.kind {
            b'r' | b'p' | b'm' if relation.temporary => format!("table {name} is temporary"),
            b'r' | b'p' if relation.row_security => format!("table {name} has row security"),
            b'r' | b'p' if relation.foreign_below => {
                format!("table {name} has parts that are not tables")
            }
            b'r' | b'p' | b'm' => return,
            b'v' => return self.view(piece, relation, name),
            b'f' => format!("{name} is a foreign table"),
            b'S' => format!("{name} is a sequence"),
            _ => format!("{name} is not a table"),
        };
        self.refuse(piece, reason);
    }

    fn view(&mut self, piece: &Piece, view: &Relation, name: String) {
        if !self.seen.insert(view.oid.clone()) {
            return;
        }
        if self.seen.len() > VIEWS_MAX || piece.depth == VIEW_DEPTH_MAX {
            return self.refuse(piece, "it uses more views than are looked up");
        }
        self.found.push(View { oid: view.oid.clone(), name, depth: piece.depth + 1 });
    }

    fn definitions(&mut self, views: Vec<View>, definitions: &Definitions) {
        for View { oid, name, depth } in views {
            let within = format!("view {name}: ");
            match definitions.get(&oid) {
                Some(definition) => self.part(within, depth, definition),
                None => self.object(Share::Alone, &within, "its definition is too long"),
            }
        }
    }

    /// A text that the server made, to be judged in the next step.
    fn part(&mut self, within: String, depth: usize, text: &str) {
        match self.parser.analyse(text, &[]) {
            Ok(mut analysis)
                if analysis.statements == 1 && analysis.statement == Statement::Select =>
            {
                qualify(&mut analysis);
                let reads = self.caches.then(|| {
                    let mut reads = self.parser.reads(text, &[]).map_err(|e| told(&e))?;
                    qualify_reads(&mut reads);
                    Ok(reads)
                });
                self.next.push(Piece { within, depth, analysis, reads });
            }
            Ok(_) => self.object(Share::Alone, &within, "it is not one SELECT"),
            Err(unparsed) => {
                let reason = format!("the parser does not understand it: {}", told(&unparsed));
                self.object(Share::Alone, &within, reason);
            }
        }
    }

    fn function(&mut self, piece: &Piece, name: &Name, answers: &Answers) {
        let Some(found) = answers.functions.get(&key(name)).filter(|found| found.known) else {
            return self.refuse(piece, format_args!("function {name}() is not known"));
        };
        let plain = &name.name;
        if let Some(schema) = &found.volatile_at {
            let reason = format!("function {}{plain}() is volatile", shown(schema));
            self.refuse(piece, reason);
        }
        if let Some(why) = functions::refused(plain, self.writes) {
            self.refuse(piece, format_args!("function {plain}() {why}"));
        }
        if let Some(schema) = &found.domain_at {
            self.refuse(piece, format_args!("function {}{plain}() takes a domain", shown(schema)));
        }
        if found.cast {
            self.refuse(piece, format_args!("{plain}() may be a cast that calls a function"));
        }
        if found.volatile_builtin {
            let reason = format!("function {plain}() is volatile");
            match functions::harmless(plain, self.writes) {
                true => self.object(Share::Pipeline, &piece.within, reason),
                false => self.refuse(piece, reason),
            }
        }
    }

    fn type_(&mut self, piece: &Piece, name: &Name, answers: &Answers) {
        let Some(found) = answers.types.get(&key(name)) else {
            return self.refuse(piece, format_args!("type {name} is not known"));
        };
        let shown = format!("{}{}", shown(&found.schema), found.name);
        let reason = match (found.kind, &found.volatile) {
            (b'd', _) => format!("type {shown} is a domain"),
            (b'b' | b'e' | b'r' | b'm', _) if found.of_domain => {
                format!("type {shown} is made of domains or rows")
            }
            (b'b' | b'e' | b'r' | b'm', Some(function)) => {
                format!("type {shown} is made by function {function}(), which is volatile")
            }
            (b'b' | b'e' | b'r' | b'm', None) => return,
            _ => format!("type {shown} is not a plain one"),
        };
        self.refuse(piece, reason);
    }

    /// The relation that is written: its oid, if it can be.
    fn target(&mut self, name: &Key, relation: Option<&Relation>) -> Option<String> {
        let Some(relation) = relation else {
            let reason = format!("relation \"{}\" is not known", name.1);
            self.object(Share::Alone, "", reason);
            return None;
        };
        let Relation { schema, name, .. } = relation;
        let name = format!("{}{name}", shown(schema));
        let reason = match relation.kind {
            b'r' | b'p' if relation.temporary => format!("table {name} is temporary"),
            b'r' | b'p' if relation.row_security => format!("table {name} has row security"),
            b'r' | b'p' if schema == CATALOGUES => format!("table {name} is a system catalogue"),
            b'r' | b'p' => return (self.share > Share::Alone).then(|| relation.oid.clone()),
            b'v' => format!("{name} is a view"),
            b'f' => format!("{name} is a foreign table"),
            _ => format!("{name} is not a table"),
        };
        self.object(Share::Alone, "", reason);
        None
    }

    /// What runs with the write. Constraints may be deferred: their errors come at the end of the
    /// transaction, which is the write's own.
    fn touched(&mut self, all: &[Touched]) {
        if all.len() > EXPRESSIONS_MAX {
            self.object(Share::Alone, "", "its table has more expressions than are looked up");
        }
        for Touched { what, schema, table, text } in all {
            let table = format!("{}{table}", shown(schema));
            match what {
                What::Trigger => {
                    self.object(Share::Alone, "", format_args!("table {table} has trigger {text}"));
                }
                What::Rule => {
                    self.object(Share::Alone, "", format_args!("table {table} has rule {text}"));
                }
                What::Kind => {
                    let reason = format!("{table} is written too and is not a table");
                    self.object(Share::Alone, "", reason);
                }
                What::Interval => self.intervals = true,
                What::Cascade => self.cascades = true,
                What::Expression => {
                    let within = format!("expression of table {table}: ");
                    self.part(within, 0, &format!("SELECT {text}"));
                }
            }
        }
    }
}

/// The schema of what needs none.
pub const CATALOGUES: &str = "pg_catalog";

/// A schema as it stands in front of a name.
pub fn shown(schema: &str) -> String {
    match schema {
        CATALOGUES => String::new(),
        schema => format!("{schema}."),
    }
}
