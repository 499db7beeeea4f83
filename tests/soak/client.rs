//! A client that can't keep still.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use wire::pg::backend::tag;
use wire::pg::startup;

use crate::batch::{tags, Batch};
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::wireclient::{Complaint, Message};
use crate::kit::{Address, WireClient};

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Connect,
    Simple,
    Extended,
    Prepared,
    Shared,
    Written,
    Pipeline,
    Transaction,
    CopyIn,
    CopyOut,
    Cancel,
    Error,
    Setting,
    Big,
    Vanish,
}

impl Act {
    const ALL: [Act; 15] = [
        Act::Connect,
        Act::Simple,
        Act::Extended,
        Act::Prepared,
        Act::Shared,
        Act::Written,
        Act::Pipeline,
        Act::Transaction,
        Act::CopyIn,
        Act::CopyOut,
        Act::Cancel,
        Act::Error,
        Act::Setting,
        Act::Big,
        Act::Vanish,
    ];
}

/// How often each act was done to its end, and how often a server was lost on the way.
#[derive(Debug, Default)]
pub struct Tally {
    done: [AtomicU64; Act::ALL.len()],
    lost: AtomicU64,
    cancelled: AtomicU64,
}

impl Tally {
    fn done(&self, act: Act) {
        self.done[act as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn text(&self) -> String {
        let each = Act::ALL.map(|act| {
            let done = self.done[act as usize].load(Ordering::Relaxed);
            format!("{act:?} {done}")
        });
        let (lost, cancelled) = (&self.lost, &self.cancelled);
        format!("{}; lost {lost:?}, cancelled {cancelled:?}", each.join(", "))
    }

    /// A soak in which something never happened shows nothing about it.
    pub fn assert_everything_happened(&self) {
        for act in Act::ALL {
            let done = self.done[act as usize].load(Ordering::Relaxed);
            assert!(done >= 10, "{act:?} was done {done} times");
        }
        assert!(self.lost.load(Ordering::Relaxed) > 0, "no client ever lost its server");
        assert!(self.cancelled.load(Ordering::Relaxed) > 0, "no cancel ever hit its query");
    }
}

/// The connection is gone in one of the ways that a killed server allows.
struct Gone;

/// See the head of this file.
pub struct Restless {
    number: usize,
    serial: u64,
    random: StdRng,
    address: Address,
    database: String,
    tally: Arc<Tally>,
    connection: Option<WireClient>,
    /// Numbers of the shared texts that this connection has prepared.
    prepared: BTreeSet<u32>,
    /// The application_name it has set.
    name: String,
    /// A write is under way that may ride a train.
    writing: bool,
}

impl Restless {
    pub fn new(
        number: usize,
        seed: u64,
        address: Address,
        database: &str,
        tally: Arc<Tally>,
    ) -> Restless {
        Restless {
            number,
            serial: 0,
            random: StdRng::seed_from_u64(seed ^ (number as u64 + 1) << 32),
            address,
            database: database.to_owned(),
            tally,
            connection: None,
            prepared: BTreeSet::new(),
            name: String::new(),
            writing: false,
        }
    }

    /// Does one thing; `told` hears what it is before it begins.
    pub fn act(&mut self, told: impl Fn(Act)) {
        if self.connection.is_none() {
            told(Act::Connect);
            self.connect();
            self.tally.done(Act::Connect);
        }
        let act = match self.random.random_range(0..100) {
            0..10 => Act::Simple,
            10..18 => Act::Extended,
            18..30 => Act::Prepared,
            30..50 => Act::Shared,
            50..54 => Act::Written,
            54..64 => Act::Pipeline,
            64..74 => Act::Transaction,
            74..78 => Act::CopyIn,
            78..82 => Act::CopyOut,
            82..85 => Act::Cancel,
            85..88 => Act::Error,
            88..92 => Act::Setting,
            92..94 => Act::Big,
            94..99 => Act::Vanish,
            _ => {
                self.leave();
                return;
            }
        };
        told(act);
        let done = match act {
            Act::Connect => Ok(()),
            Act::Simple => self.simple(),
            Act::Extended => self.extended(),
            Act::Prepared => self.prepared(),
            Act::Shared => self.shared(),
            Act::Written => self.written(),
            Act::Pipeline => self.pipeline(),
            Act::Transaction => self.transaction(),
            Act::CopyIn => self.copy_in(),
            Act::CopyOut => self.copy_out(),
            Act::Cancel => self.cancel(),
            Act::Error => self.error(),
            Act::Setting => self.setting(),
            Act::Big => self.big(),
            Act::Vanish => self.vanish(),
        };
        match done {
            Ok(()) => self.tally.done(act),
            Err(Gone) => {
                self.tally.lost.fetch_add(1, Ordering::Relaxed);
                self.connection = None;
            }
        }
    }

    /// Says goodbye.
    pub fn leave(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.terminate();
        }
    }

    /// Of two clients one has the settings that many others have, so that they share servers.
    fn is_like_others(&self) -> bool {
        self.number % 2 == 0
    }

    fn connect(&mut self) {
        self.name = if self.is_like_others() { "alike".to_owned() } else { self.mark() };
        self.prepared.clear();
        let parameters = [
            ("user", APP),
            ("database", self.database.as_str()),
            ("application_name", self.name.as_str()),
        ];
        let client = WireClient::login_with(&self.address, APP_PASSWORD, &parameters);
        assert_eq!(client.parameters["application_name"], self.name);
        self.connection = Some(client);
    }

    /// Nobody else's, and never the same twice.
    fn mark(&mut self) -> String {
        self.serial += 1;
        format!("client{}-{}", self.number, self.serial)
    }

    fn send(&mut self, batch: &Batch) -> Result<(), Gone> {
        let connection = self.connection.as_mut().expect("connected before each act");
        // What the gateway said before it closed is read by who comes here next.
        connection.try_send(&batch.0).or_else(|_| self.receive().map(drop))
    }

    /// Everything up to the next ReadyForQuery.
    fn receive(&mut self) -> Result<Vec<Message>, Gone> {
        let mut messages = Vec::new();
        loop {
            let message = self.message()?;
            let ready = message.tag == tag::READY_FOR_QUERY;
            messages.push(message);
            if ready {
                return Ok(messages);
            }
        }
    }

    fn message(&mut self) -> Result<Message, Gone> {
        let connection = self.connection.as_mut().expect("connected before each act");
        let Some(message) = connection.try_message_or_cut() else { return Err(Gone) };
        if message.tag == tag::ERROR {
            let complaint = message.complaint();
            if complaint.severity == "FATAL" {
                self.assert_lost_server(&complaint);
                return Err(Gone);
            }
        }
        Ok(message)
    }

    /// The only fatal errors that a client may see here: admin_shutdown of the killed server, and
    /// the pooler's own words for a connection that broke, with a train's outcome or without.
    fn assert_lost_server(&self, complaint: &Complaint) {
        let right = match complaint.code.as_str() {
            "57P01" | "08006" => true,
            "08007" => self.writing,
            _ => false,
        };
        assert!(right, "{complaint:?}");
    }

    fn ask(&mut self, batch: &Batch) -> Result<Vec<Message>, Gone> {
        self.send(batch)?;
        self.receive()
    }

    /// The one value of the one row, asked by a simple query.
    fn one(&mut self, sql: &str) -> Result<String, Gone> {
        let answer = self.ask(&Batch::new().query(sql))?;
        assert_eq!(tags(&answer), "TDCZ", "{sql}: {answer:?}");
        Ok(value(&answer[1]))
    }

    fn run(&mut self, sql: &str) -> Result<String, Gone> {
        let answer = self.ask(&Batch::new().query(sql))?;
        let error = answer.iter().find(|message| message.tag == tag::ERROR);
        assert!(error.is_none(), "{sql}: {error:?}");
        Ok(tags(&answer))
    }

    fn simple(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        let got = self.one(&format!("select '{mark}'"))?;
        assert_eq!(got, mark);
        Ok(())
    }

    fn extended(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        let batch = Batch::new().parse("", "select $1::text").bind("", &[&mark]).execute().sync();
        let answer = self.ask(&batch)?;
        assert_eq!(tags(&answer), "12DCZ", "{answer:?}");
        assert_eq!(value(&answer[2]), mark);
        Ok(())
    }

    /// One of the texts that all clients share, parsed if this one has not yet.
    fn with_shared(&mut self, batch: Batch, mark: &str) -> (Batch, &'static str, String) {
        // More than the servers keep.
        let text = self.random.random_range(0..40);
        let name = format!("s{text}");
        let sql = format!("select $1::text || '/{text}'");
        let expected = format!("{mark}/{text}");
        let (batch, tags) = if self.prepared.insert(text) {
            (batch.parse(&name, &sql), "12DC")
        } else {
            (batch, "2DC")
        };
        (batch.bind(&name, &[mark]).execute(), tags, expected)
    }

    fn prepared(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        let (batch, expected_tags, expected) = self.with_shared(Batch::new(), &mark);
        let answer = self.ask(&batch.sync())?;
        assert_eq!(tags(&answer), format!("{expected_tags}Z"), "{answer:?}");
        let row = answer.iter().find(|message| message.tag == tag::DATA_ROW).expect("a row");
        assert_eq!(value(row), expected);
        if self.prepared.len() > 30 {
            let text = self.prepared.pop_first().expect("more than 30");
            let closed = self.ask(&Batch::new().close(&format!("s{text}")).sync())?;
            assert_eq!(tags(&closed), "3Z");
        }
        Ok(())
    }

    /// One of a few shapes that others run at the same time. One of ten fails.
    fn shared(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        for _ in 0..self.random.random_range(1..8) {
            let step = self.random.random_range(0..10);
            let (batch, expected_tags) = self.shared_batch(&mark, step);
            self.send(&batch)?;
            let cancels = self.random.random_range(0..20) == 0;
            if cancels {
                let connection = self.connection.as_ref().expect("connected before each act");
                connection.cancel(&self.address);
            }
            let answer = self.receive()?;
            let error = answer.iter().find(|message| message.tag == tag::ERROR);
            match error.map(|error| error.complaint().code) {
                Some(code) if code == "57014" => assert!(cancels, "{mark}: nobody cancelled it"),
                Some(code) => assert_eq!((step, code.as_str()), (0, "22012"), "{mark}"),
                None => {
                    assert_eq!(tags(&answer), expected_tags, "{mark}: {answer:?}");
                    let row = answer.iter().find(|message| message.tag == tag::DATA_ROW);
                    let expected = [mark.clone(), (100 / step).to_string()];
                    assert_eq!(row.expect("a row").values(), expected.map(Some));
                }
            }
        }
        Ok(())
    }

    fn shared_batch(&mut self, mark: &str, step: i32) -> (Batch, &'static str) {
        let sql = format!("select '{mark}' as mark, 100 / n from steps where n = {step}");
        let values = [mark, &step.to_string()];
        let prepared = "select $1::text, 100 / n from steps where n = $2";
        match self.random.random_range(0..3) {
            0 => (Batch::new().query(&sql), "TDCZ"),
            1 => {
                let batch = Batch::new().parse("", prepared).bind("", &values);
                (batch.describe_portal("").execute().sync(), "12TDCZ")
            }
            _ => {
                let batch = Batch::new().parse("", &sql).bind("", &[]);
                (batch.execute().sync(), "12DCZ")
            }
        }
    }

    /// A write that may travel in a train.
    fn written(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        let sql = format!("insert into rides(mark) values ('{mark}') returning mark");
        self.writing = true;
        let told = self.one(&sql);
        self.writing = false;
        assert_eq!(told?, mark);
        let count = format!("select count(*) from rides where mark = '{mark}'");
        assert_eq!(self.one(&count)?, "1");
        Ok(())
    }

    fn pipeline(&mut self) -> Result<(), Gone> {
        let mut batch = Batch::new();
        let mut expected = Vec::new();
        for n in 0..self.random.random_range(2..12) {
            let mark = self.mark();
            if n % 4 == 3 {
                batch = batch.query(&format!("select '{mark}'"));
                expected.push(("TDCZ".to_owned(), mark));
            } else {
                let (more, tags, row) = self.with_shared(batch, &mark);
                batch = more.sync();
                expected.push((format!("{tags}Z"), row));
            }
        }
        self.send(&batch)?;
        for (expected_tags, row) in expected {
            let answer = self.receive()?;
            assert_eq!(tags(&answer), expected_tags, "{answer:?}");
            let got = answer.iter().find(|message| message.tag == tag::DATA_ROW).expect("a row");
            assert_eq!(value(got), row);
        }
        Ok(())
    }

    fn transaction(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        self.run("begin")?;
        let pid = self.one("select pg_backend_pid()")?;
        self.run(&format!("insert into marks(mark) values ('{mark}')"))?;
        let count = format!("select count(*) from marks where mark = '{mark}'");
        assert_eq!(self.one(&count)?, "1");
        assert_eq!(self.one("select pg_backend_pid()")?, pid, "one server per transaction");
        let kept = self.random.random_bool(0.5);
        self.run(if kept { "commit" } else { "rollback" })?;
        assert_eq!(self.one(&count)?, if kept { "1" } else { "0" });
        Ok(())
    }

    fn copy_in(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        let rows = self.random.random_range(1..200);
        let good = self.random.random_bool(0.7);
        let mut batch = Batch::new();
        let start = "copy marks(mark) from stdin";
        let extended = self.random.random_bool(0.5);
        batch = if extended {
            batch.parse("", start).bind("", &[]).execute().sync()
        } else {
            batch.query(start)
        };
        for _ in 0..rows {
            batch = batch.copy_data(&format!("{mark}\n"));
        }
        // Two columns where there is one.
        let batch = if good { batch } else { batch.copy_data("too\tmany\n").copy_data("late\n") };
        let batch = batch.copy_done();
        let answer = self.ask(&if extended { batch.sync() } else { batch })?;
        let head = if extended { "12G" } else { "G" };
        let end = if good { "CZ" } else { "EZ" };
        assert_eq!(tags(&answer), format!("{head}{end}"), "{answer:?}");
        if good {
            let copied = answer[answer.len() - 2].command_tag();
            assert_eq!(copied, format!("COPY {rows}"));
        }
        Ok(())
    }

    fn copy_out(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        let rows = self.random.random_range(1..500);
        let sql = format!("copy (select '{mark}' from generate_series(1, {rows})) to stdout");
        let answer = self.ask(&Batch::new().query(&sql))?;
        let data = answer.iter().filter(|message| message.tag == tag::COPY_DATA);
        let mut seen = 0;
        for message in data {
            assert_eq!(message.body, format!("{mark}\n").into_bytes());
            seen += 1;
        }
        assert_eq!(seen, rows);
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        let sql = format!("select pg_sleep(0.2), '{mark}'");
        self.send(&Batch::new().query(&sql))?;
        std::thread::sleep(std::time::Duration::from_millis(self.random.random_range(0..250)));
        let connection = self.connection.as_ref().expect("connected before each act");
        let (pid, key) = connection.key.clone().expect("BackendKeyData");
        let mut other = WireClient::connect(&self.address);
        other.put(|out| startup::put_cancel(out, pid, &key));
        assert_eq!(other.until_closed(), []);
        let answer = self.receive()?;
        match answer.iter().find(|message| message.tag == tag::ERROR) {
            Some(error) => {
                assert_eq!(error.complaint().code, "57014");
                self.tally.cancelled.fetch_add(1, Ordering::Relaxed);
            }
            None => assert_eq!(answer[1].values()[1], Some(mark)),
        }
        Ok(())
    }

    fn error(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        // The mark is in the message.
        let answer = match self.random.random_range(0..2) {
            0 => self.ask(&Batch::new().query(&format!("select '{mark}'::int")))?,
            _ => {
                let batch = Batch::new().parse("", "select $1::int").bind("", &[&mark]);
                self.ask(&batch.execute().sync())?
            }
        };
        let error = answer.iter().find(|message| message.tag == tag::ERROR).expect("an error");
        let complaint = error.complaint();
        assert_eq!(complaint.code, "22P02");
        assert!(complaint.message.contains(&mark), "{mark}: {complaint:?}");
        self.simple()
    }

    fn setting(&mut self) -> Result<(), Gone> {
        assert_eq!(self.one("show application_name")?, self.name);
        if self.is_like_others() {
            return Ok(());
        }
        let name = self.mark();
        let seen = self.run(&format!("set application_name to '{name}'"))?;
        assert_eq!(seen, "CSZ");
        self.name = name;
        self.run("begin")?;
        self.run("set application_name to 'undone'")?;
        self.run("rollback")?;
        assert_eq!(self.one("show application_name")?, self.name);
        Ok(())
    }

    fn big(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        let times = self.random.random_range(1_000..40_000);
        let batch = Batch::new().parse("", "select repeat($1, $2::int), $3::text");
        let echoed = mark.repeat(times / 4);
        let times_text = times.to_string();
        let batch = batch.bind("", &[&mark, &times_text, &echoed]).execute().sync();
        let answer = self.ask(&batch)?;
        assert_eq!(tags(&answer), "12DCZ", "{answer:?}");
        assert!(answer[2].values() == [Some(mark.repeat(times)), Some(echoed)], "another's row");
        Ok(())
    }

    /// Breaks off at some byte of something.
    fn vanish(&mut self) -> Result<(), Gone> {
        let mark = self.mark();
        let copy = Batch::new().query("copy marks(mark) from stdin").copy_data("vanished\n");
        let begin = Batch::new().query("begin").query(&format!("select '{mark}', pg_sleep(0.05)"));
        let flushed = Batch::new().parse("v", "select 1").bind("v", &[]).execute().flush();
        let big = Batch::new().query(&format!("select '{}'", mark.repeat(20_000)));
        let shared = self.shared_batch(&mark, 1).0;
        let batch = match self.random.random_range(0..6) {
            5 => shared,
            0 => copy,
            1 => begin,
            2 => flushed,
            3 => big,
            _ => Batch::new().query("select pg_sleep(5)"),
        };
        let at = self.random.random_range(0..=batch.0.len());
        let mut connection = self.connection.take().expect("connected before each act");
        // The server may have been killed; then it is gone already.
        let _ = connection.try_send(&batch.0[..at]);
        if self.random.random_bool(0.3) {
            std::thread::sleep(std::time::Duration::from_millis(self.random.random_range(0..30)));
        }
        Ok(())
    }
}

fn value(row: &Message) -> String {
    row.values().swap_remove(0).expect("not NULL")
}
