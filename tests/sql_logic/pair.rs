//! Two databases that get the same statements: one from PostgreSQL itself, one through a gateway
//! that caches. Their answers must be the same.
//!
//! A query is asked through the gateway *cold*, then again in each form of the protocols until it
//! is answered from the cache, if it can be. Rows are written in turn by the session that reads, by
//! another one of the gateway's, and beside the gateway; behind each write all earlier queries are
//! asked again.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use wire::pg::frontend::{self, Target};

use crate::answer::{Answer, Order};
use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::{Database, Gateway, WireClient};

/// So often it is tried without a pause. A table that is new gets into the publication first.
const TRIES_AT_ONCE: usize = 16;

const PAUSE: Duration = Duration::from_millis(10);

/// So often a query is asked once more when it is answered from the cache. With hardly any hits
/// behind each wait for the stream the gateway would do without waiting, and so without most hits.
const SERVED: u64 = 6;

/// So often a query is repeated that can't be cached.
const REPEATED: usize = 2;

/// How a query is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Simple,
    Text,
    Binary,
}

/// A query with the values of its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub sql: String,
    /// As text; none: NULL.
    pub values: Vec<Option<String>>,
    pub order: Order,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    pub statements: u64,
    pub queries: u64,
    /// Queries that PostgreSQL refuses.
    pub refused: u64,
    /// Queries within transactions that PostgreSQL knows of.
    pub inside: u64,
    /// Queries that come again with nothing in between.
    pub again: u64,
    /// Queries that can be cached, and those of them that were answered from the cache in every
    /// form: all but where some values can't.
    pub cacheable: u64,
    pub warmed: u64,
    /// All answers that were compared, and those of them that came from the cache.
    pub answers: u64,
    pub hits: u64,
}

impl Totals {
    pub fn add(&mut self, other: &Totals) {
        self.statements += other.statements;
        self.queries += other.queries;
        self.refused += other.refused;
        self.inside += other.inside;
        self.again += other.again;
        self.cacheable += other.cacheable;
        self.warmed += other.warmed;
        self.answers += other.answers;
        self.hits += other.hits;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} statements, {} queries ({} refused, {} in transactions, {} at once again, {} cacheable, {} of them \
             warmed), {} answers, {} from the cache",
            self.statements,
            self.queries,
            self.refused,
            self.inside,
            self.again,
            self.cacheable,
            self.warmed,
            self.answers,
            self.hits
        )
    }
}

/// The gateway did otherwise than PostgreSQL.
pub struct Difference(pub String);

/// What EXPLAIN CREATE CACHE says; why not.
pub type Cacheable = Result<(), String>;

/// How files are played.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub forms: &'static [Form],
    /// Within this time what can be cached has to be answered from the cache.
    pub warm_within: Duration,
    /// It is a difference if it was not.
    pub strict: bool,
    /// Earlier queries that are asked again behind a write.
    pub earlier_max: usize,
}

pub struct Pair {
    pub direct: WireClient,
    pub reader: WireClient,
    other: WireClient,
    beside: WireClient,
    way: Way,
    earlier: Vec<Asked>,
    /// Queries that were warmed behind the last statement.
    warm: Vec<Asked>,
    /// What EXPLAIN CREATE CACHE has said since tables were last changed.
    explained: HashMap<String, Cacheable>,
    turn: usize,
    /// The reading session has settings of its own.
    alone: bool,
    pub totals: Totals,
}

impl Asked {
    /// The text with the values in it.
    fn with_values(&self) -> String {
        let mut sql = self.sql.clone();
        // From behind, so that $1 is not taken for the begin of $10.
        for (at, value) in self.values.iter().enumerate().rev() {
            let literal = match value {
                None => "NULL".to_owned(),
                Some(value) => format!("'{}'", value.replace('\'', "''")),
            };
            sql = sql.replace(&format!("${}", at + 1), &literal);
        }
        sql
    }

    pub fn ask(&self, client: &mut WireClient, form: Form) -> Answer {
        if form == Form::Simple {
            return Answer::of(&client.query(&self.with_values())).ordered(self.order);
        }
        let values: Vec<_> = self.values.iter().map(|v| v.as_deref().map(str::as_bytes)).collect();
        client.put(|out| {
            frontend::put_parse(out, b"", self.sql.as_bytes(), &[]);
            match form {
                Form::Binary => put_bind_for_binary(out, &values),
                _ => frontend::put_bind(out, b"", b"", &values),
            }
            frontend::put_describe(out, Target::Portal, b"");
            frontend::put_execute(out, b"", 0);
            frontend::put_sync(out);
        });
        Answer::of(&client.until_ready()).ordered(self.order)
    }
}

/// A Bind with values as text that asks for binary results.
fn put_bind_for_binary(out: &mut Vec<u8>, values: &[Option<&[u8]>]) {
    let mut rest = vec![0, 0];
    rest.extend((values.len() as u16).to_be_bytes());
    for value in values {
        match value {
            None => rest.extend((-1i32).to_be_bytes()),
            Some(value) => {
                rest.extend((value.len() as i32).to_be_bytes());
                rest.extend(*value);
            }
        }
    }
    // One format for all columns: binary.
    rest.extend([0, 1, 0, 1]);
    frontend::put_bind_head(out, rest.len(), b"", b"");
    out.extend(rest);
}

impl Pair {
    pub fn new(
        cluster: &Cluster,
        gateway: &Gateway,
        [direct, cached]: [&Database; 2],
        way: Way,
    ) -> Pair {
        let login =
            |of: &Database| WireClient::login(&cluster.address(), APP, APP_PASSWORD, &of.name);
        Pair {
            direct: login(direct),
            reader: gateway.client(cached),
            other: gateway.client(cached),
            beside: login(cached),
            way,
            earlier: Vec::new(),
            warm: Vec::new(),
            explained: HashMap::new(),
            turn: 0,
            alone: false,
            totals: Totals::default(),
        }
    }

    /// Runs what is no query in both databases.
    ///
    /// # Errors
    /// The answers differ, or one to an earlier query is now wrong.
    pub fn statement(&mut self, sql: &str) -> Result<Answer, Difference> {
        self.totals.statements += 1;
        self.warm.clear();
        let expected = Answer::of(&self.direct.query(sql));
        let word = first_word(sql);
        let writes = ["insert", "update", "delete", "truncate", "merge"].contains(&&*word);
        if !writes {
            self.explained.clear();
        }
        let by = match writes && self.reader.status == b'I' && !self.alone {
            true => {
                self.turn += 1;
                self.turn % 3
            }
            false => 0,
        };
        let client = match by {
            0 => &mut self.reader,
            1 => &mut self.other,
            _ => &mut self.beside,
        };
        let got = Answer::of(&client.query(sql));
        if got != expected {
            return Err(different(sql, "as a statement", &got, &expected));
        }
        match &*word {
            "set" => self.alone = true,
            "discard" => self.alone = false,
            _ => {}
        }
        if by != 0 {
            // From here on this session may see nothing older.
            self.reader.run("select random()");
        }
        if expected.error.is_none() && self.reader.status == b'I' {
            self.ask_earlier(sql)?;
        }
        Ok(expected)
    }

    fn ask_earlier(&mut self, behind: &str) -> Result<(), Difference> {
        for asked in &self.earlier {
            let expected = asked.ask(&mut self.direct, Form::Simple);
            let got = asked.ask(&mut self.reader, Form::Simple);
            self.totals.answers += 1;
            if got != expected {
                let hit = was_hit(&mut self.reader);
                let when = format!("behind {behind:?}, hit: {hit}");
                return Err(different(&asked.with_values(), &when, &got, &expected));
            }
        }
        Ok(())
    }

    /// Asks a query in both databases, and again until it comes from the cache, if it can.
    ///
    /// # Errors
    /// The answers differ, or none ever comes from the cache.
    pub fn query(&mut self, asked: &Asked) -> Result<(Answer, Option<Cacheable>), Difference> {
        self.totals.queries += 1;
        let expected = asked.ask(&mut self.direct, Form::Simple);
        self.compare(asked, Form::Simple, &expected, "cold")?;
        if expected.error.is_some() {
            self.totals.refused += 1;
            return Ok((expected, None));
        }
        if self.reader.status != b'I' {
            self.totals.inside += 1;
            return Ok((expected, None));
        }
        if self.warm.contains(asked) {
            self.totals.again += 1;
            return Ok((expected, None));
        }
        let cacheable = self.cacheable(&asked.sql);
        // A value may be one that can't stand in a text that is cached.
        let as_text = match asked.values.is_empty() {
            true => cacheable.clone(),
            false => self.cacheable(&asked.with_values()),
        };
        let mut warmed = cacheable.is_ok();
        for &form in self.way.forms {
            let expected = match form {
                Form::Simple => expected.clone(),
                _ => asked.ask(&mut self.direct, form),
            };
            let may = if form == Form::Simple { &as_text } else { &cacheable };
            match may {
                Ok(()) => warmed &= self.warm(asked, form, &expected)?,
                Err(_) => {
                    for _ in 0..REPEATED {
                        self.compare(asked, form, &expected, "again")?;
                        if was_hit(&mut self.reader) {
                            let what = format!("{}: answered from the cache", asked.sql);
                            return Err(Difference(format!("{what}, and {may:?}")));
                        }
                    }
                }
            }
        }
        self.warm.push(asked.clone());
        self.totals.cacheable += u64::from(cacheable.is_ok());
        self.totals.warmed += u64::from(warmed);
        if !self.earlier.contains(asked) {
            if self.earlier.len() >= self.way.earlier_max {
                self.earlier.remove(0);
            }
            self.earlier.push(asked.clone());
        }
        Ok((expected, Some(cacheable)))
    }

    fn compare(
        &mut self,
        asked: &Asked,
        form: Form,
        expected: &Answer,
        when: &str,
    ) -> Result<(), Difference> {
        let got = asked.ask(&mut self.reader, form);
        self.totals.answers += 1;
        if got == *expected {
            return Ok(());
        }
        let when = format!("{form:?}, {when}, hit: {}", was_hit(&mut self.reader));
        Err(different(&asked.with_values(), &when, &got, expected))
    }

    fn warm(&mut self, asked: &Asked, form: Form, expected: &Answer) -> Result<bool, Difference> {
        let begun = Instant::now();
        for times in 1.. {
            self.compare(asked, form, expected, &format!("repeated {times} times"))?;
            if was_hit(&mut self.reader) {
                self.totals.hits += 1;
                for _ in 0..SERVED {
                    self.compare(asked, form, expected, "from the cache")?;
                }
                return Ok(true);
            }
            if begun.elapsed() > self.way.warm_within {
                break;
            }
            if times > TRIES_AT_ONCE {
                std::thread::sleep(PAUSE);
            }
        }
        if !self.way.strict {
            return Ok(false);
        }
        let told = self.reader.rows("explain last statement");
        let what = format!("{} ({form:?})", asked.sql);
        Err(Difference(format!("{what}: can be cached, and never was: {told:?}")))
    }

    fn cacheable(&mut self, sql: &str) -> Cacheable {
        if let Some(known) = self.explained.get(sql) {
            return known.clone();
        }
        let found = self.explain(sql);
        self.explained.insert(sql.to_owned(), found.clone());
        found
    }

    fn explain(&mut self, sql: &str) -> Cacheable {
        let sql = sql.trim_end().trim_end_matches(';');
        let explain = format!("explain create cache from {sql}");
        let begun = Instant::now();
        let answer = loop {
            let answer = Answer::of(&self.reader.query(&explain));
            match &answer.error {
                // Whoever reads the catalogues is busy.
                Some(error) if error.code == "08006" && begun.elapsed() < self.way.warm_within => {
                    std::thread::sleep(PAUSE);
                }
                Some(error) => return Err(error.to_string()),
                None => break answer,
            }
        };
        let lines = answer.rows.iter().flatten().flatten();
        let lines: Vec<String> =
            lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        match lines.first().map(String::as_str) {
            Some("Cacheable: yes") => Ok(()),
            _ => Err(lines.join("; ")),
        }
    }
}

fn was_hit(client: &mut WireClient) -> bool {
    let told = client.rows("explain last statement");
    told.iter().flatten().flatten().any(|line| line.starts_with("Way: cache"))
}

fn first_word(sql: &str) -> String {
    let end = |c: char| !c.is_ascii_alphabetic();
    sql.trim_start().split(end).next().unwrap_or_default().to_ascii_lowercase()
}

fn different(sql: &str, when: &str, got: &Answer, expected: &Answer) -> Difference {
    Difference(format!("{sql}\n  {when}\n  got {got:?}\n  not {expected:?}"))
}
