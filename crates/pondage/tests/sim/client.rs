//! A client: what it says, and what it must hear.
//!
//! Beside the pooler it asks a PostgreSQL of its own (`direct`). Every message that comes from
//! the pooler must be the one that `direct` gives at this place, byte by byte.

mod copies;

use std::collections::VecDeque;
use std::ops::Range;

use rand::rngs::StdRng;
use rand::Rng;
use wire::pg::auth::{Binding, ScramClient, ScramKeys};
use wire::pg::backend::{self as reply, tag as say, Auth, TxStatus};
use wire::pg::frontend::{self, Target};
use wire::pg::startup;

use crate::data::cell::{self, Cell};
use crate::data::read::Form;
use crate::ledger::{Deed, News};
use crate::postgres::{take_messages, Message, Postgres, Step, UNKNOWN};
use crate::reader::Said;
use crate::statements::CLASHES;

pub const PASSWORD: &str = "pencil";

/// What the clients of a run may do.
#[derive(Debug, Clone)]
pub struct Habits {
    /// How many things one does.
    pub operations: Range<u32>,
    pub statement_mode: bool,
    pub session_mode: bool,
    pub pipelines: bool,
    pub blocks: bool,
    pub copies: bool,
    pub sets: bool,
    /// They make what pins them to their servers, and leave when they are done.
    pub listens: bool,
    /// Over a connection that is shared.
    pub listens_shared: bool,
    pub drops: bool,
    pub sleeps: bool,
    /// Mostly one statement after the other, of few shapes.
    pub lone: bool,
    pub writes: bool,
    /// Definitions are changed.
    pub alters: bool,
    pub vanishes: bool,
    /// Bytes of a big row; 0: none.
    pub big: usize,
    /// A FATAL may come at any time.
    pub storm: bool,
    /// Reads whose results may be kept, and what changes them.
    pub reads: Option<Reading>,
}

/// What the clients of a run read.
#[derive(Debug, Clone)]
pub struct Reading {
    pub clients: usize,
    /// What they ask for most of the time.
    pub often: Vec<Said>,
    /// Of some of it mirrors may be there.
    pub finds: bool,
    pub writes: f64,
    /// Sessions are made unlike others.
    pub strange: bool,
    /// In words that are not known to do so.
    pub unseen: bool,
}

/// When a message had come whole.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub time: u64,
    /// The state of the data.
    pub state: u64,
    /// Definitions that somebody had heard of.
    pub defined: usize,
}

enum Phase {
    LoggingIn,
    Scram(ScramClient),
    ScramFinal,
    Greeted,
    Ready,
}

/// What follows a CopyInResponse.
#[derive(Debug, Clone)]
struct CopyPlan {
    data: Vec<u8>,
    /// What follows an error instead.
    after_error: Vec<u8>,
}

pub struct Client {
    pub mark: String,
    pub database: String,
    pub plane: usize,
    pub slot: Option<u32>,
    pub to_send: VecDeque<u8>,
    pub received: Vec<u8>,
    phase: Phase,
    pub direct: Postgres,
    direct_out: Vec<u8>,
    expected: VecDeque<Message>,
    pub(crate) startup: Vec<(String, String)>,
    parameters: Vec<(String, String)>,
    pub key: Option<(u32, Vec<u8>)>,
    keys: Option<(Vec<u8>, ScramKeys)>,
    pub operations: u32,
    /// It does not leave by itself.
    pub stays: bool,
    serial: u32,
    copy: Option<CopyPlan>,
    /// What follows has to wait until all is answered.
    alone: bool,
    /// What it says next, each when all before is answered.
    pub script: VecDeque<Vec<u8>>,
    /// Its own number, which says what it may write.
    pub number: usize,
    /// Statements that it has prepared for reads.
    pub prepared: Vec<String>,
    /// Bytes that have been taken from it.
    pub given: u64,
    /// Where the messages end that have not come whole.
    ends: VecDeque<u64>,
    /// Of all messages.
    pub arrivals: Vec<Arrival>,
    /// It is in a transaction of which no server knows.
    pub late: bool,
    /// It has been shown this state, or a later one.
    pub floor: u64,
    /// And these definitions.
    pub defined: usize,
    /// Whether something is outstanding, while that is known.
    outstanding: Option<bool>,
    /// It sends no more, and its end follows what it has sent.
    pub vanished: bool,
    pub fatal: Option<String>,
    pub closed: bool,
    /// Somebody has asked to cancel what it does.
    pub cancelled: bool,
    pub sleeping: bool,
    /// Rows that it is to hear of.
    writes: VecDeque<String>,
    commits: Vec<String>,
    /// Those of an answer that is not whole.
    rows: Vec<Vec<Cell>>,
    /// What it has just heard of them.
    pub news: Vec<News>,
    /// The last messages both ways, for a failure's report.
    pub history: VecDeque<String>,
}

impl Client {
    pub fn new(
        number: usize,
        database: &str,
        plane: usize,
        random: &mut StdRng,
        habits: &Habits,
    ) -> Client {
        let mut startup = Vec::new();
        if habits.sets {
            for (name, values) in [
                ("application_name", ["one", "two"]),
                ("DateStyle", ["ISO", "SQL, DMY"]),
                ("TimeZone", ["Asia/Tokyo", "Etc/UTC"]),
            ] {
                if random.random_bool(0.3) {
                    let value = values[random.random_range(0..2)];
                    startup.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        let mut first = Vec::new();
        let mut pairs = vec![("user", "ann"), ("database", database)];
        pairs.extend(startup.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        startup::put_startup(&mut first, 0, &pairs);
        let mut direct = Postgres::new(&startup);
        direct.single = habits.statement_mode;
        Client {
            mark: format!("c{number}"),
            database: database.to_owned(),
            plane,
            slot: None,
            to_send: first.into(),
            received: Vec::new(),
            phase: Phase::LoggingIn,
            direct,
            direct_out: Vec::new(),
            expected: VecDeque::new(),
            startup,
            parameters: Vec::new(),
            key: None,
            keys: None,
            operations: random.random_range(habits.operations.clone()),
            stays: false,
            serial: 0,
            copy: None,
            alone: false,
            script: VecDeque::new(),
            number,
            prepared: Vec::new(),
            given: 0,
            ends: VecDeque::new(),
            arrivals: Vec::new(),
            late: false,
            floor: 0,
            defined: 0,
            outstanding: None,
            vanished: false,
            fatal: None,
            closed: false,
            cancelled: false,
            sleeping: false,
            writes: VecDeque::new(),
            commits: Vec::new(),
            rows: Vec::new(),
            news: Vec::new(),
            history: VecDeque::new(),
        }
    }

    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    fn note(&mut self, line: String) {
        if self.history.len() >= 200 {
            self.history.pop_front();
        }
        self.history.push_back(line);
    }

    /// Sends whole messages.
    pub fn send(&mut self, mut bytes: Vec<u8>) {
        let mut end = self.given + self.to_send.len() as u64;
        self.to_send.extend(&bytes);
        let messages = take_messages(&mut bytes);
        for message in &messages {
            end += message.bytes.len() as u64;
            self.ends.push_back(end);
            self.note(format!("> {}", show(message)));
        }
        self.direct.read(messages);
        self.outstanding = None;
    }

    /// So many bytes have been taken from it.
    pub fn arrive(&mut self, bytes: usize, arrival: Arrival) {
        self.given += bytes as u64;
        while self.ends.front().is_some_and(|end| *end <= self.given) {
            self.ends.pop_front();
            self.arrivals.push(arrival);
        }
    }

    /// Whether an answer is to come.
    pub fn is_outstanding(&mut self) -> bool {
        if self.closed || self.fatal.is_some() {
            return false;
        }
        if !self.is_ready() || !self.to_send.is_empty() || !self.expected.is_empty() {
            return true;
        }
        if let Some(known) = self.outstanding {
            return known;
        }
        let mut ahead = self.direct.clone();
        let mut sleeps = false;
        loop {
            match ahead.step() {
                Step::Did => {}
                Step::Waits | Step::Dead => break,
                Step::Sleeps(_) => {
                    sleeps = true;
                    break;
                }
            }
        }
        ahead.flush();
        self.sleeping = sleeps;
        let outstanding = sleeps || !ahead.out.is_empty();
        if !outstanding {
            self.direct = ahead;
        }
        self.outstanding = Some(outstanding);
        outstanding
    }

    /// What it would hear next, for a failure's report.
    pub fn awaited(&self) -> String {
        let mut ahead = self.direct.clone();
        while ahead.step() == Step::Did {}
        ahead.flush();
        let mut out = ahead.out;
        let mut messages: Vec<Message> = self.expected.iter().cloned().collect();
        messages.extend(take_messages(&mut out));
        messages.iter().take(6).map(show).collect::<Vec<_>>().join(" | ")
    }

    /// Bytes came from the pooler.
    pub fn hear(&mut self, bytes: &[u8], habits: &Habits) -> Result<(), String> {
        self.received.extend_from_slice(bytes);
        self.outstanding = None;
        for message in take_messages(&mut self.received) {
            self.note(format!("< {}", show(&message)));
            if let Some(code) = &self.fatal {
                return Err(format!("{} came after FATAL {code}", show(&message)));
            }
            if let Some(code) = fatal(&message) {
                if !habits.storm && !self.vanished {
                    return Err(format!("an unexpected FATAL: {}", show(&message)));
                }
                self.fatal = Some(code);
                continue;
            }
            match self.phase {
                Phase::Ready => self.check(message)?,
                _ => self.login(&message)?,
            }
        }
        Ok(())
    }

    /// The pooler has closed.
    pub fn hear_end(&mut self, habits: &Habits) -> Result<(), String> {
        self.closed = true;
        if self.vanished || self.direct.dead {
            return Ok(());
        }
        if !habits.storm {
            return Err("it was closed".to_owned());
        }
        if self.fatal.is_none() && self.received.is_empty() {
            return Err("it was closed without a FATAL".to_owned());
        }
        self.check_partial()
    }

    /// A message that was cut by the end must be the beginning of the right one.
    fn check_partial(&mut self) -> Result<(), String> {
        if self.received.is_empty() || !self.is_ready() {
            return Ok(());
        }
        while self.expected.is_empty() {
            match self.direct.step() {
                Step::Did => {}
                Step::Sleeps(_) => self.direct.wake(false),
                Step::Waits | Step::Dead => break,
            }
            self.collect();
        }
        match self.expected.front() {
            Some(right) if right.bytes.starts_with(&self.received) => Ok(()),
            Some(right)
                if is_unknown(right)
                    && [say::DATA_ROW, say::COMMAND_COMPLETE].contains(&self.received[0]) =>
            {
                Ok(())
            }
            right => Err(format!(
                "a message was cut, and what there is of it is wrong: {:?} instead of {:?}",
                String::from_utf8_lossy(&self.received),
                right.map(show)
            )),
        }
    }

    fn login(&mut self, message: &Message) -> Result<(), String> {
        match message.tag {
            say::AUTHENTICATION => {
                let auth = reply::auth(message.body()).map_err(|error| error.to_string())?;
                self.authenticate(auth)?;
            }
            say::PARAMETER_STATUS => {
                let (name, value) =
                    reply::parameter_status(message.body()).map_err(|error| error.to_string())?;
                self.parameters.push((name.to_owned(), value.to_owned()));
            }
            say::BACKEND_KEY_DATA => {
                let (number, key) =
                    reply::backend_key(message.body()).map_err(|error| error.to_string())?;
                self.key = Some((number, key.to_vec()));
            }
            say::READY_FOR_QUERY => {
                if reply::ready(message.body()) != Ok(TxStatus::Idle) || self.key.is_none() {
                    return Err("a wrong greeting".to_owned());
                }
                let asked = |name: &str| self.startup.iter().find(|(known, _)| known == name);
                for (name, value) in self.direct.parameters() {
                    let told = self.parameters.iter().find(|(told, _)| *told == name);
                    let raw = asked(&name).map(|(_, value)| value);
                    if told.is_none_or(|(_, told)| *told != value && Some(told) != raw) {
                        return Err(format!("greeted with {told:?} instead of {name}={value}"));
                    }
                }
                self.phase = Phase::Ready;
            }
            _ => return Err(format!("{} while logging in", show(message))),
        }
        Ok(())
    }

    fn authenticate(&mut self, auth: Auth<'_>) -> Result<(), String> {
        let mut out = Vec::new();
        let phase = std::mem::replace(&mut self.phase, Phase::LoggingIn);
        self.phase = match (auth, phase) {
            (Auth::Ok, Phase::LoggingIn | Phase::ScramFinal) => Phase::Greeted,
            (Auth::Sasl(_), Phase::LoggingIn) => {
                let (scram, first) =
                    ScramClient::start("fyko+d2lbbFgONRv9qkxdawL", Binding::Unable);
                frontend::put_sasl_initial(&mut out, "SCRAM-SHA-256", &first);
                Phase::Scram(scram)
            }
            (Auth::SaslContinue(message), Phase::Scram(scram)) => {
                let needs = scram.server_first(message).map_err(|error| format!("{error:?}"))?;
                let keys = match &self.keys {
                    Some((salt, keys)) if *salt == needs.salt => keys,
                    _ => {
                        let keys = ScramKeys::derive(PASSWORD, &needs.salt, needs.iterations);
                        &self.keys.insert((needs.salt.clone(), keys)).1
                    }
                };
                let (_, last) = needs.with_keys(keys);
                frontend::put_sasl_response(&mut out, &last);
                Phase::ScramFinal
            }
            (Auth::SaslFinal(_), Phase::ScramFinal) => Phase::ScramFinal,
            (auth, _) => return Err(format!("{auth:?} out of order")),
        };
        self.to_send.extend(out);
        Ok(())
    }

    fn collect(&mut self) {
        self.direct.flush();
        self.direct_out.append(&mut self.direct.out);
        self.expected.extend(take_messages(&mut self.direct_out));
    }

    /// The message must be the one that a direct connection would have given here.
    fn check(&mut self, message: Message) -> Result<(), String> {
        let cancelled = is_cancel(&message);
        if cancelled && !self.cancelled {
            return Err(format!("nobody cancelled this: {}", show(&message)));
        }
        if self.expected.is_empty() && cancelled {
            self.direct.cancel_next = true;
        }
        if self.expected.is_empty() && code(&message).as_deref() == Some("40001") {
            self.direct.clash_next = true;
        }
        while self.expected.is_empty() {
            match self.direct.step() {
                Step::Did => {}
                Step::Sleeps(_) => {
                    self.collect();
                    if self.expected.is_empty() {
                        self.direct.cancel_next = false;
                        self.direct.wake(cancelled);
                    }
                }
                Step::Waits | Step::Dead => {
                    return Err(format!("{} came unasked", show(&message)));
                }
            }
            self.collect();
        }
        if self.expected.front().is_some_and(is_unknown) {
            return self.hear_answer(&message);
        }
        let right = self.expected.pop_front().expect("it has just come");
        let alike = right.bytes == message.bytes
            || (code(&right).is_some_and(|code| code == "0A000" || code == "57014")
                && code(&right) == code(&message))
            || code(&right).as_deref() == Some("25P02") && is_of_no_portal(&message);
        if !alike {
            return Err(format!("{} came instead of {}", show(&message), show(&right)));
        }
        self.hear_of_rows(&message);
        if message.tag == say::COPY_IN {
            if let Some(plan) = self.copy.take() {
                self.send(plan.data);
            }
        }
        if message.tag == say::ERROR {
            if let Some(plan) = self.copy.take() {
                self.send(plan.after_error);
            }
        }
        Ok(())
    }

    /// A part of the answer to a read, which only the data can tell.
    fn hear_answer(&mut self, message: &Message) -> Result<(), String> {
        let wrong = || format!("{} came instead of an answer", show(message));
        let asked = self.direct.asked.front().ok_or_else(wrong)?;
        let one = asked.read.form == Form::Text;
        if message.tag == say::DATA_ROW {
            let row = cell::parse(message.body(), &asked.read.columns(asked.format));
            self.rows.push(row.ok_or_else(wrong)?);
        } else if one || message.body() != format!("SELECT {}\0", self.rows.len()).as_bytes() {
            return Err(wrong());
        }
        if one || message.tag == say::COMMAND_COMPLETE {
            self.expected.pop_front();
            if !one {
                // In its place came this one.
                self.expected.pop_front();
            }
            let text = cell::show(&std::mem::take(&mut self.rows));
            let asked = self.direct.asked.pop_front().ok_or_else(wrong)?;
            self.news.push(News::Read(Box::new(asked), text));
        }
        Ok(())
    }

    fn hear_of_rows(&mut self, message: &Message) {
        for deed in self.direct.deeds.drain(..) {
            match deed {
                Deed::Wrote(name) => self.writes.push_back(name),
                Deed::Committed(name) => self.commits.push(name),
                Deed::Flushed => {}
            }
        }
        match message.tag {
            say::COMMAND_COMPLETE if message.body() == b"INSERT 0 1\0" => {
                self.news.extend(self.writes.pop_front().map(News::Wrote));
            }
            say::READY_FOR_QUERY => {
                self.news.extend(self.commits.drain(..).map(News::Committed));
            }
            _ => {}
        }
    }

    /// A mark that PostgreSQL may not like.
    fn next_value(&mut self, random: &mut StdRng) -> String {
        let mark = self.next_mark();
        if random.random_bool(0.03) {
            format!("invalid-{mark}")
        } else {
            mark
        }
    }

    pub(crate) fn next_mark(&mut self) -> String {
        self.serial += 1;
        format!("{}-{}", self.mark, self.serial)
    }

    /// Does something, if it wants to.
    pub fn act(&mut self, random: &mut StdRng, habits: &Habits) {
        if !self.is_ready() || self.vanished || self.closed || self.fatal.is_some() {
            return;
        }
        let busy = self.is_outstanding();
        if !busy {
            // An answer that is neither CopyInResponse nor an error: the COPY was skipped.
            self.copy = None;
            self.alone = false;
        }
        if let Some(next) = (!busy).then(|| self.script.pop_front()).flatten() {
            self.send(next);
            if self.operations == 0 && self.script.is_empty() {
                self.finish();
            }
            return;
        }
        let keeps = habits.session_mode || habits.listens;
        if self.operations == 0 && !busy && keeps && !self.stays {
            // The others wait for its server.
            self.terminate();
        }
        if self.operations == 0 || self.copy.is_some() || self.alone {
            return;
        }
        let eager = if busy {
            if habits.pipelines {
                0.05
            } else {
                0.0
            }
        } else if habits.lone {
            0.8
        } else {
            0.3
        };
        if !random.random_bool(eager) {
            return;
        }
        self.operations -= 1;
        if habits.vanishes && random.random_bool(if habits.lone { 0.005 } else { 0.02 }) {
            self.vanish(random, habits);
            return;
        }
        self.operate(random, habits);
        if self.operations == 0 && self.script.is_empty() {
            self.finish();
        }
    }

    /// Ends what may be open.
    fn finish(&mut self) {
        if self.copy.is_some() || self.alone {
            self.operations = 1;
            return;
        }
        let mut out = Vec::new();
        frontend::put_query(&mut out, "rollback");
        frontend::put_query(&mut out, format!("echo {}", self.next_mark()));
        self.send(out);
    }

    /// Its connection breaks at some byte.
    fn vanish(&mut self, random: &mut StdRng, habits: &Habits) {
        self.operate(random, habits);
        let keep = random.random_range(0..=self.to_send.len());
        self.to_send.truncate(keep);
        self.vanished = true;
    }

    /// Says this one thing when it is logged in.
    pub fn say(&mut self, query: &str) {
        let mut out = Vec::new();
        frontend::put_query(&mut out, query);
        self.send(out);
    }

    pub fn terminate(&mut self) {
        if self.vanished || self.closed || self.fatal.is_some() {
            return;
        }
        let mut out = Vec::new();
        frontend::put_terminate(&mut out);
        self.to_send.extend(out);
        self.vanished = true;
    }

    fn operate(&mut self, random: &mut StdRng, habits: &Habits) {
        if let Some(reads) = habits.reads.as_ref().filter(|_| random.random_bool(0.75)) {
            return self.read_or_write(random, reads, habits);
        }
        if habits.lone && random.random_bool(0.9) {
            return self.one(random, habits);
        }
        match random.random_range(0..100) {
            0..35 => self.simple(random, habits),
            35..80 => self.batches(random, habits),
            80..90 if habits.copies && !self.is_outstanding() => self.copy_in(random, habits),
            90..93 => {
                let mut out = vec![b'F'];
                let body = self.next_mark();
                out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
                out.extend_from_slice(body.as_bytes());
                self.send(out);
            }
            _ => self.simple(random, habits),
        }
    }

    fn statement(&mut self, random: &mut StdRng, habits: &Habits) -> String {
        let mark = self.next_value(random);
        match random.random_range(0..100) {
            0..3 if habits.writes => format!("write {} '{mark}'", lock(random, habits)),
            3..7 if habits.listens => format!("listen l{}", random.random_range(0..3)),
            7..10 if habits.listens => format!("unlisten l{}", random.random_range(0..3)),
            10..13 if habits.listens => format!("channels '{mark}'"),
            13 if habits.listens => format!("create temp t{}", random.random_range(0..2)),
            14..16 if habits.listens => format!("drop temp t{}", random.random_range(0..2)),
            3..40 => format!("echo '{mark}'"),
            40..50 => format!("rows {} '{mark}'", random.random_range(0..5)),
            50..55 if habits.big > 0 => {
                format!("big {} '{mark}'", random.random_range(0..habits.big))
            }
            55..62 if habits.blocks => "begin".to_owned(),
            62..67 if habits.blocks => "commit".to_owned(),
            67..70 if habits.blocks => "rollback".to_owned(),
            70..76 => format!("fail '{mark}'"),
            76..79 => format!("later '{mark}'"),
            79..82 => format!("notice '{mark}'"),
            82..87 if habits.sets => {
                let names = [
                    ("application_name", ["three", "four"]),
                    ("datestyle", ["ISO", "German"]),
                    ("TimeZone", ["Asia/Tokyo", "Europe/Rome"]),
                ];
                let (name, values) = names[random.random_range(0..3)];
                if habits.session_mode && self.resets(name) && random.random_bool(0.3) {
                    return format!("reset {name}");
                }
                format!("set {name} {}", values[random.random_range(0..2)])
            }
            87..91 if habits.sets => "show timezone".to_owned(),
            91..93 if habits.sets => "show application_name".to_owned(),
            93..96 if habits.sleeps => {
                format!("sleep {} '{mark}'", random.random_range(0..200_000))
            }
            96..98 if habits.copies => format!("copyout {} '{mark}'", random.random_range(0..4)),
            _ => format!("echo '{mark}'"),
        }
    }

    /// In session mode: RESET goes back to what it has come with. Not to the name of an
    /// application, which is nothing that servers are started with.
    fn resets(&self, name: &str) -> bool {
        let named = self.startup.iter().any(|(known, _)| known == "application_name");
        !(named && matches!(name, "application_name" | "all"))
    }

    /// One statement of a shape that comes often, in one of its forms.
    fn one(&mut self, random: &mut StdRng, habits: &Habits) {
        let value = self.next_value(random);
        let extended = random.random_bool(0.4);
        let mark = if extended && random.random_bool(0.7) || random.random_bool(0.01) {
            "$1".to_owned()
        } else {
            format!("'{value}'")
        };
        let text = match random.random_range(0..100) {
            0..4 if habits.listens => format!("listen l{}", random.random_range(0..3)),
            4..7 if habits.listens => format!("unlisten l{}", random.random_range(0..3)),
            7..10 if habits.listens => format!("channels {mark}"),
            10..12 if habits.listens => format!("create temp t{}", random.random_range(0..2)),
            12..14 if habits.listens => format!("drop temp t{}", random.random_range(0..2)),
            0..45 => format!("echo {mark}"),
            45..55 => format!("rows {} {mark}", random.random_range(0..5)),
            55..60 => "show timezone".to_owned(),
            60..62 if habits.big > 0 => {
                format!("big {} {mark}", random.random_range(0..habits.big))
            }
            62..66 if habits.sleeps => format!("sleep {} {mark}", random.random_range(0..100_000)),
            66..70 => format!("fail {mark}"),
            70..74 => format!("notice {mark}"),
            74..75 if habits.alters => format!("alter {mark}"),
            75..77 if habits.writes => format!("later {mark}"),
            77..98 if habits.writes => format!("write {} {mark}", lock(random, habits)),
            _ => format!("echo {mark}"),
        };
        let mut out = Vec::new();
        if !extended {
            frontend::put_query(&mut out, text);
            return self.send(out);
        }
        let names: [&[u8]; 6] = [b"", b"", b"", b"", b"s1", b"s2"];
        let name = names[random.random_range(0..6)];
        if name.is_empty() && random.random_bool(0.9) || random.random_bool(0.2) {
            frontend::put_parse(&mut out, name, text.as_bytes(), &[]);
        }
        frontend::put_bind(&mut out, b"", name, &[Some(value.as_bytes())]);
        if random.random_bool(0.5) {
            frontend::put_describe(&mut out, Target::Portal, b"");
        }
        frontend::put_execute(&mut out, b"", 0);
        frontend::put_sync(&mut out);
        self.send(out);
    }

    fn simple(&mut self, random: &mut StdRng, habits: &Habits) {
        let mut texts = Vec::new();
        for _ in 0..[1, 1, 1, 2, 3, 0][random.random_range(0..6)] {
            texts.push(self.statement(random, habits));
        }
        if habits.statement_mode && random.random_bool(0.05) && !self.is_outstanding() {
            // One that leads is refused at once, unless the pooler's own requests are in flight: no
            // client can tell. Any other is rolled back.
            texts = vec![format!("echo {}", self.next_mark())];
            texts.push("begin".to_owned());
            self.alone = true;
        }
        let mut out = Vec::new();
        if habits.drops && random.random_bool(0.1) && !self.is_outstanding() {
            texts = vec![match random.random_range(0..4) {
                0 => "deallocate all".to_owned(),
                1 if self.startup.is_empty() || habits.session_mode && self.resets("all") => {
                    "discard all".to_owned()
                }
                _ => format!("deallocate s{}", random.random_range(1..4)),
            }];
        }
        frontend::put_query(&mut out, texts.join("; "));
        self.send(out);
    }

    fn batches(&mut self, random: &mut StdRng, habits: &Habits) {
        let count = if habits.pipelines { random.random_range(1..4) } else { 1 };
        let mut out = Vec::new();
        for _ in 0..count {
            for _ in 0..random.random_range(1..8) {
                self.extended(&mut out, random, habits);
            }
            frontend::put_sync(&mut out);
        }
        self.send(out);
    }

    fn extended(&mut self, out: &mut Vec<u8>, random: &mut StdRng, habits: &Habits) {
        let names: [&[u8]; 5] = [b"", b"", b"s1", b"s2", b"s3"];
        let portals: [&[u8]; 3] = [b"", b"", b"p"];
        let name = names[random.random_range(0..5)];
        let portal = portals[random.random_range(0..3)];
        match random.random_range(0..100) {
            // All of it, as drivers send it.
            0..45 => {
                let mut text = self.statement(random, habits);
                if random.random_bool(0.5) {
                    text = format!("echo shared{}", random.random_range(0..5));
                }
                if random.random_bool(0.5) {
                    frontend::put_parse(out, name, text.as_bytes(), &[]);
                }
                let value = self.next_mark();
                frontend::put_bind(out, portal, name, &[Some(value.as_bytes())]);
                if random.random_bool(0.5) {
                    frontend::put_describe(out, Target::Portal, portal);
                }
                frontend::put_execute(out, portal, 0);
            }
            45..60 => {
                let mut text = self.statement(random, habits);
                match random.random_range(0..10) {
                    0 => text = format!("syntax {text}"),
                    1..7 => text = format!("echo shared{}", random.random_range(0..5)),
                    _ => {}
                }
                frontend::put_parse(out, name, text.as_bytes(), &[]);
            }
            60..72 => {
                let value = self.next_mark();
                frontend::put_bind(out, portal, name, &[Some(value.as_bytes())]);
            }
            72..78 => frontend::put_describe(out, Target::Statement, name),
            78..81 => frontend::put_describe(out, Target::Portal, portal),
            81..88 => frontend::put_execute(out, portal, random.random_range(0..3)),
            88..94 => frontend::put_close(out, Target::Statement, name),
            94..96 => frontend::put_close(out, Target::Portal, portal),
            _ => frontend::put_flush(out),
        }
    }
}

/// So long a write waits for a lock.
fn lock(random: &mut StdRng, habits: &Habits) -> u32 {
    if random.random_bool(0.05) {
        return CLASHES as u32;
    }
    if habits.sleeps && random.random_bool(0.1) {
        random.random_range(0..100_000)
    } else {
        0
    }
}

/// In a failed transaction an unnamed portal is refused in any case. Whether there is one hangs on
/// which of the Binds before the error PostgreSQL has looked at.
fn is_of_no_portal(message: &Message) -> bool {
    code(message).as_deref() == Some("34000")
}

/// An answer that only the data can tell.
fn is_unknown(message: &Message) -> bool {
    message.tag == say::DATA_ROW && message.bytes.ends_with(UNKNOWN.as_bytes())
}

fn code(message: &Message) -> Option<String> {
    if message.tag != say::ERROR {
        return None;
    }
    reply::error_fields(message.body()).ok()?.code().map(str::to_owned)
}

fn fatal(message: &Message) -> Option<String> {
    let code = code(message)?;
    let fields = reply::error_fields(message.body()).ok()?;
    (fields.severity() == Some("FATAL")).then_some(code)
}

fn is_cancel(message: &Message) -> bool {
    code(message).as_deref() == Some("57014")
        && reply::error_fields(message.body())
            .is_ok_and(|fields| fields.message() == Some("canceling statement due to user request"))
}

pub fn show(message: &Message) -> String {
    let body: Vec<u8> = message.body().iter().take(90).copied().collect();
    format!("{} {}", message.tag as char, body.escape_ascii())
}
