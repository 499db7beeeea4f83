//! A client that calls, again and again, and writes down what it was told of each call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use wire::pg::backend::tag;
use wire::pg::{frontend, startup};

use crate::kit::wireclient::Complaint;
use crate::kit::{Address, WireClient};
use crate::ledger::{Call, Outcome, Payment};

/// Accounts of a round. All calls fight for these rows.
pub const ACCOUNTS: i32 = 5;

/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(10);

/// Codes of errors that say that nobody knows: of connections, and of a server that is told to end.
const UNKNOWN: [&str; 4] = ["08006", "08007", "57P01", "57P02"];

/// How a call is made.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// CALL or SELECT, in a Query.
    Query,
    /// Several of them in one write.
    Burst,
    /// Parse, Bind, Execute, Sync.
    Unnamed,
    /// Bind, Execute, Sync.
    Prepared,
    /// BEGIN, CALL, COMMIT, each answered before the next.
    Transaction,
}

/// One answer, up to ReadyForQuery or the end of the connection.
#[derive(Debug, Default)]
struct Heard {
    complete: bool,
    error: Option<Complaint>,
    ready: bool,
}

impl Heard {
    /// What becomes of a call that was answered so. `at_once`: its CommandComplete comes behind
    /// its commit, as that of a simple query.
    fn outcome(&self, at_once: bool) -> Outcome {
        match &self.error {
            _ if self.complete && at_once => Outcome::Done,
            Some(error) => {
                let unknown = error.severity == "FATAL" || UNKNOWN.contains(&error.code.as_str());
                match unknown {
                    true => Outcome::Unknown(error.code.clone()),
                    false => Outcome::Failed(error.code.clone()),
                }
            }
            None if self.complete && self.ready => Outcome::Done,
            None => Outcome::Unknown("lost".to_owned()),
        }
    }
}

pub struct Client {
    address: Address,
    round: u64,
    number: u64,
    serial: u64,
    dice: StdRng,
    stop: Arc<AtomicBool>,
    wire: Option<WireClient>,
    calls: Vec<Call>,
}

impl Client {
    pub fn new(port: u16, round: u64, number: u64, seed: u64, stop: &Arc<AtomicBool>) -> Client {
        Client {
            address: Address::tcp("127.0.0.1", port),
            round,
            number,
            serial: 0,
            dice: StdRng::seed_from_u64(seed),
            stop: stop.clone(),
            wire: None,
            calls: Vec::new(),
        }
    }

    /// Until the round is over.
    pub fn run(mut self) -> Vec<Call> {
        let form = self.form();
        while !self.stop.load(Ordering::Relaxed) {
            if !self.connected() {
                std::thread::sleep(PAUSE);
                continue;
            }
            let (first, serial) = (self.calls.len(), self.serial);
            match form {
                Form::Query => self.queries(1),
                Form::Burst => {
                    let count = self.dice.random_range(2..6);
                    self.queries(count);
                }
                Form::Unnamed => self.extended(""),
                Form::Prepared => self.extended("pay"),
                Form::Transaction => self.transaction(),
            }
            assert_eq!(self.calls.len() - first, (self.serial - serial) as usize);
            let failed = |call: &Call| matches!(call.outcome, Outcome::Failed(_));
            if self.calls[first..].iter().any(failed) && self.dice.random_bool(0.2) {
                self.wire = None;
            }
        }
        self.calls
    }

    fn form(&self) -> Form {
        match self.number % 9 {
            0..3 => Form::Query,
            3 | 4 => Form::Unnamed,
            5 | 6 => Form::Prepared,
            7 => Form::Burst,
            _ => Form::Transaction,
        }
    }

    fn connected(&mut self) -> bool {
        if self.wire.is_none() {
            self.wire = connect(&self.address, "app", "ledger");
            if matches!(self.form(), Form::Prepared) {
                self.prepare();
            }
        }
        self.wire.is_some()
    }

    /// Parses what [`Form::Prepared`] binds.
    fn prepare(&mut self) {
        let mut bytes = Vec::new();
        frontend::put_parse(&mut bytes, b"pay", CALL.as_bytes(), &[]);
        frontend::put_sync(&mut bytes);
        if self.ask(&bytes).error.is_some() {
            self.wire = None;
        }
    }

    /// A call that nobody has made yet; its outcome is to be noted.
    fn new_call(&mut self) -> Call {
        self.serial += 1;
        let from = self.dice.random_range(0..ACCOUNTS);
        let to = (from + self.dice.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let base = self.round as i32 * ACCOUNTS;
        let amount = self.dice.random_range(1..50);
        Call {
            token: format!("{}/{}/{}", self.round, self.number, self.serial),
            payment: Payment { from: base + from, to: base + to, amount },
            bad: self.dice.random_bool(0.07),
            outcome: Outcome::Unknown("not sent".to_owned()),
        }
    }

    fn mood(&mut self, call: &Call) -> &'static str {
        match call.bad {
            true => "raise",
            false if self.dice.random_bool(0.05) => "conflict",
            false => "",
        }
    }

    fn sql(&mut self, call: &Call) -> String {
        let mood = self.mood(call);
        let Call { token, payment: Payment { from, to, amount }, .. } = call;
        match self.dice.random_range(0..4) {
            0 => format!("select paid('{token}', {from}, {to}, {amount}, '{mood}')"),
            1 => format!(
                "call pay(p_from => {from}, p_to => {to}, p_token => '{token}', \
                 p_amount => {amount}, p_mood => '{mood}')"
            ),
            _ => format!("call pay('{token}', {from}, {to}, {amount}, '{mood}')"),
        }
    }

    fn queries(&mut self, count: usize) {
        let mut bytes = Vec::new();
        let mut calls = Vec::new();
        for _ in 0..count {
            let call = self.new_call();
            let sql = self.sql(&call);
            frontend::put_query(&mut bytes, &sql);
            calls.push(call);
        }
        self.send(&bytes);
        for mut call in calls {
            call.outcome = self.hear().outcome(true);
            self.calls.push(call);
        }
    }

    fn extended(&mut self, statement: &str) {
        let mut call = self.new_call();
        let mood = self.mood(&call);
        let Payment { from, to, amount } = call.payment;
        let values = [call.token.clone(), from.to_string(), to.to_string(), amount.to_string()];
        let values: Vec<_> = values.iter().map(|value| Some(value.as_bytes())).collect();
        let values = [&values[..], &[Some(mood.as_bytes())]].concat();
        let mut bytes = Vec::new();
        if statement.is_empty() {
            frontend::put_parse(&mut bytes, b"", CALL.as_bytes(), &[]);
        }
        frontend::put_bind(&mut bytes, b"", statement.as_bytes(), &values);
        frontend::put_execute(&mut bytes, b"", 0);
        frontend::put_sync(&mut bytes);
        call.outcome = self.ask(&bytes).outcome(false);
        self.calls.push(call);
    }

    fn transaction(&mut self) {
        let mut call = self.new_call();
        let sql = self.sql(&call);
        let begun = self.ask(&query("begin"));
        let called = if begun.complete { self.ask(&query(&sql)) } else { begun };
        call.outcome = if called.complete && called.ready {
            self.ask(&query("commit")).outcome(true)
        } else {
            // Nobody has asked for a commit.
            let told = called.error.map_or("lost".to_owned(), |error| error.code);
            self.ask(&query("rollback"));
            Outcome::Failed(told)
        };
        self.calls.push(call);
    }

    fn ask(&mut self, bytes: &[u8]) -> Heard {
        self.send(bytes);
        self.hear()
    }

    fn send(&mut self, bytes: &[u8]) {
        if let Some(wire) = &mut self.wire {
            // Whoever has hung up may have said why before.
            let _ = wire.try_send(bytes);
        }
    }

    fn hear(&mut self) -> Heard {
        let mut heard = Heard::default();
        let Some(wire) = &mut self.wire else { return heard };
        while let Some(message) = wire.try_message_or_cut() {
            match message.tag {
                tag::COMMAND_COMPLETE => heard.complete = true,
                tag::ERROR => heard.error = Some(message.complaint()),
                tag::READY_FOR_QUERY => {
                    heard.ready = true;
                    return heard;
                }
                _ => {}
            }
        }
        self.wire = None;
        heard
    }
}

const CALL: &str = "call pay($1, $2, $3, $4, $5)";

fn query(sql: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    frontend::put_query(&mut bytes, sql);
    bytes
}

/// Logs in where nobody asks for a password. None: nobody is there, or not for long enough.
pub fn connect(address: &Address, user: &str, database: &str) -> Option<WireClient> {
    let mut wire = WireClient::try_connect(address).ok()?;
    let mut bytes = Vec::new();
    startup::put_startup(&mut bytes, 0, &[("user", user), ("database", database)]);
    wire.try_send(&bytes).ok()?;
    loop {
        match wire.try_message_or_cut()?.tag {
            tag::READY_FOR_QUERY => return Some(wire),
            tag::ERROR => return None,
            _ => {}
        }
    }
}
