//! A Redis client that writes down everything it asks and hears.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::history::{now, Event, Outcome, NEVER};
use crate::model::{Answer, Op, Value};
use crate::reply::Reply;
use crate::workload::{bytes, look, step, text, Keys, Plan, Step, ACCOUNTS, TWINS};

/// A reply that takes longer will never come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(10);

/// What all clients of a run share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Where the gateway is now.
    pub port: AtomicU16,
    pub stop: AtomicBool,
    lanes: AtomicU32,
    tags: AtomicU64,
    /// What is wrong whatever the histories say.
    pub wrong: Mutex<Vec<String>>,
    pub answered: AtomicU64,
    pub refused: AtomicU64,
    pub unknown: AtomicU64,
}

impl Shared {
    pub fn lane(&self) -> u32 {
        self.lanes.fetch_add(1, Ordering::Relaxed)
    }

    pub fn tag(&self) -> u64 {
        self.tags.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn accuse(&self, what: String) {
        self.wrong.lock().expect("no panic while held").push(what);
    }
}

pub struct Client {
    shared: Arc<Shared>,
    keys: Keys,
    dice: StdRng,
    socket: Option<TcpStream>,
    lane: u32,
    unread: Vec<u8>,
    pub events: Vec<Event>,
}

/// The connection is lost.
struct Lost;

impl Client {
    pub fn new(shared: &Arc<Shared>, keys: Keys, seed: u64) -> Client {
        Client {
            shared: shared.clone(),
            keys,
            dice: StdRng::seed_from_u64(seed),
            socket: None,
            lane: 0,
            unread: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Until the round is over.
    pub fn run(mut self) -> Vec<Event> {
        while !self.shared.stopped() {
            if self.connected() {
                let count =
                    if self.dice.random_bool(0.6) { 1 } else { self.dice.random_range(2..12) };
                let plans: Vec<Plan> = (0..count)
                    .map(|_| {
                        let tag = self.shared.tag();
                        self.keys.plan(&mut self.dice, tag)
                    })
                    .collect();
                self.pipeline(plans);
            }
        }
        self.events
    }

    fn connected(&mut self) -> bool {
        if self.socket.is_some() {
            return true;
        }
        let port = self.shared.port.load(Ordering::Relaxed);
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(socket) => {
                socket.set_nodelay(true).expect("a TCP socket");
                self.socket = Some(socket);
                self.lane = self.shared.lane();
                self.unread.clear();
                true
            }
            Err(_) => {
                std::thread::sleep(PAUSE);
                false
            }
        }
    }

    /// Sends plans together, then reads. A swap needs answers between, so it goes alone.
    fn pipeline(&mut self, mut plans: Vec<Plan>) {
        let swap = plans.iter().find_map(|plan| match plan {
            Plan::Swap(key) => Some(key.clone()),
            _ => None,
        });
        plans.retain(|plan| !matches!(plan, Plan::Swap(_)));
        let sent = plans.iter().flat_map(|plan| plan.bytes(&self.keys)).collect::<Vec<u8>>();
        let began = now();
        let mut lost = self.send(&sent).is_err();
        for plan in &plans {
            if !lost && self.hear(plan, began).is_ok() {
                continue;
            }
            lost = true;
            for step in plan.steps(&self.keys) {
                self.note(&step, began, Outcome::Unknown);
            }
        }
        if let Some(key) = swap.filter(|_| !lost) {
            lost = self.swap(&key).is_err();
        }
        if lost {
            self.socket = None;
        }
    }

    fn hear(&mut self, plan: &Plan, began: u64) -> Result<(), Lost> {
        match plan {
            Plan::One(step) => {
                let reply = self.reply()?;
                self.judge(step, began, &reply);
            }
            Plan::Exec(steps) => {
                for _ in 0..=steps.len() {
                    self.reply()?;
                }
                let reply = self.reply()?;
                self.judge_exec(steps, began, &reply);
            }
            Plan::Script(steps) => {
                let reply = self.reply()?;
                self.judge_exec(steps, began, &reply);
            }
            Plan::Twins(_) => {
                let reply = self.reply()?;
                for step in plan.steps(&self.keys) {
                    self.judge(&step, began, &reply);
                }
            }
            Plan::LookAtTwins | Plan::LookAtAccounts => {
                let reply = self.reply()?;
                self.compare(plan, began, &reply);
            }
            Plan::Swap(_) => {}
        }
        Ok(())
    }

    fn judge_exec(&mut self, steps: &[Step], began: u64, reply: &Reply) {
        for (at, step) in steps.iter().enumerate() {
            match reply.error().map_or_else(|| reply.children().get(at), |_| Some(reply)) {
                Some(part) => self.judge(step, began, part),
                None => self.shared.accuse(format!("EXEC of {steps:?}: {reply:?}")),
            }
        }
    }

    /// MGET: the values fit each other, and each its key's history.
    fn compare(&mut self, plan: &Plan, began: u64, reply: &Reply) {
        if reply.error().is_none() {
            let values: Vec<Option<String>> = reply.children().iter().map(text).collect();
            let fits = match plan {
                Plan::LookAtTwins => {
                    values.len() == TWINS && values.iter().all(|value| *value == values[0])
                }
                _ => {
                    let numbers =
                        values.iter().flatten().filter_map(|text| text.parse::<i64>().ok());
                    values.len() == ACCOUNTS && numbers.sum::<i64>() == 0
                }
            };
            if !fits {
                let at = now() / 1_000_000;
                self.shared.accuse(format!("MGET at {at} ms saw half of something: {values:?}"));
            }
        }
        for (at, step) in plan.steps(&self.keys).iter().enumerate() {
            match reply.children().get(at) {
                Some(part) => self.judge(step, began, part),
                None => self.judge(step, began, reply),
            }
        }
    }

    fn swap(&mut self, key: &str) -> Result<(), Lost> {
        let mut began = now();
        let watch = [bytes(&["WATCH", key]), bytes(&["GET", key])].concat();
        self.send(&watch)?;
        self.reply()?;
        let get = look(key);
        let reply = match self.reply() {
            Ok(reply) => reply,
            Err(lost) => {
                self.note(&get, began, Outcome::Unknown);
                return Err(lost);
            }
        };
        self.judge(&get, began, &reply);
        let Some(Answer::Whole(from)) = get.answer(&reply) else {
            self.send(&bytes(&["UNWATCH"]))?;
            return self.reply().map(drop);
        };
        let to = format!("w{}", self.shared.tag());
        let set = step(&["SET", key, &to], key, Op::Swap(from, to.clone()));
        began = now();
        let exec = [bytes(&["MULTI"]), set.bytes(), bytes(&["EXEC"])].concat();
        let sent = self.send(&exec);
        let replies = sent.and_then(|()| Ok([self.reply()?, self.reply()?, self.reply()?]));
        match replies {
            Ok([_, _, reply]) => match &reply {
                Reply::Nil(_) => self.note(&set, began, Outcome::Refused("nil".to_owned())),
                _ => {
                    let outcome = match reply.error() {
                        Some(error) => Outcome::Refused(String::from_utf8_lossy(error).into()),
                        None => Outcome::Answered(Answer::Done),
                    };
                    self.note(&set, began, outcome);
                }
            },
            Err(lost) => {
                self.note(&set, began, Outcome::Unknown);
                return Err(lost);
            }
        }
        Ok(())
    }

    fn judge(&mut self, step: &Step, began: u64, reply: &Reply) {
        let outcome = match reply.error() {
            Some(error) => Outcome::Refused(String::from_utf8_lossy(error).into_owned()),
            None => match step.answer(reply) {
                Some(answer) => Outcome::Answered(answer),
                None => {
                    self.shared.accuse(format!("{:?} was answered {reply:?}", step.words));
                    return;
                }
            },
        };
        self.note(step, began, outcome);
    }

    fn note(&mut self, step: &Step, invoked: u64, outcome: Outcome) {
        let (answered, counter) = match outcome {
            Outcome::Answered(_) => (now(), &self.shared.answered),
            Outcome::Refused(_) => (now(), &self.shared.refused),
            Outcome::Unknown => (NEVER, &self.shared.unknown),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let (lane, key, op) = (self.lane, step.key.clone(), step.op.clone());
        self.events.push(Event { lane, key, op, invoked, answered, outcome });
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        let socket = self.socket.as_mut().ok_or(Lost)?;
        socket.write_all(bytes).map_err(|_| Lost)
    }

    fn reply(&mut self) -> Result<Reply, Lost> {
        let end = Instant::now() + PATIENCE;
        let socket = self.socket.as_mut().ok_or(Lost)?;
        loop {
            match Reply::parse(&self.unread) {
                Ok(Some((reply, length))) => {
                    self.unread.drain(..length);
                    return Ok(reply);
                }
                Ok(None) => {}
                Err(what) => {
                    self.shared.accuse(format!("nonsense: {what}"));
                    return Err(Lost);
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let at = now() / 1_000_000;
                self.shared.accuse(format!(
                    "lane {}: no reply for {PATIENCE:?} at {at} ms, behind {:?}",
                    self.lane,
                    self.events.last()
                ));
                return Err(Lost);
            }
            socket.set_read_timeout(Some(left)).expect("not zero");
            let mut room = [0; 16 << 10];
            match socket.read(&mut room) {
                Ok(0) => return Err(Lost),
                Ok(length) => self.unread.extend_from_slice(&room[..length]),
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(_) => return Err(Lost),
            }
        }
    }

    /// What these keys hold now; none while the gateway can't say.
    pub fn look_at(&mut self, keys: &[String]) -> Option<Vec<(String, Value, u64, u64)>> {
        if !self.connected() {
            return None;
        }
        let steps: Vec<Step> = keys.iter().map(|key| look(key)).collect();
        let sent: Vec<u8> = steps.iter().flat_map(Step::bytes).collect();
        let began = now();
        let mut found = Vec::new();
        let mut whole = self.send(&sent).is_ok();
        for step in &steps {
            let answer = match self.reply() {
                Ok(reply) => step.answer(&reply),
                Err(Lost) => None,
            };
            match answer {
                Some(Answer::Whole(value)) => found.push((step.key.clone(), value, began, now())),
                _ => {
                    whole = false;
                    break;
                }
            }
        }
        if !whole {
            self.socket = None;
        }
        whole.then_some(found)
    }

    /// Whether the gateway knows a command.
    pub fn knows(&mut self, words: &[&str]) -> Option<bool> {
        if !self.connected() {
            return None;
        }
        self.send(&bytes(words)).ok()?;
        let reply = self.reply().ok()?;
        Some(!reply.error().is_some_and(|text| text.starts_with(b"ERR unknown command")))
    }
}

impl Plan {
    /// As it goes over the wire.
    fn bytes(&self, keys: &Keys) -> Vec<u8> {
        match self {
            Plan::One(step) => step.bytes(),
            Plan::Exec(steps) => {
                let inner = steps.iter().flat_map(Step::bytes);
                bytes(&["MULTI"]).into_iter().chain(inner).chain(bytes(&["EXEC"])).collect()
            }
            Plan::Script(steps) => script(steps),
            Plan::Twins(value) => {
                let pairs = keys.twins().into_iter().flat_map(|key| [key, value.clone()]);
                bytes(&std::iter::once("MSET".to_owned()).chain(pairs).collect::<Vec<_>>())
            }
            Plan::LookAtTwins => mget(keys.twins()),
            Plan::LookAtAccounts => mget(keys.accounts()),
            Plan::Swap(_) => Vec::new(),
        }
    }

    /// What it does to each key.
    fn steps(&self, keys: &Keys) -> Vec<Step> {
        match self {
            Plan::One(step) => vec![step.clone()],
            Plan::Exec(steps) | Plan::Script(steps) => steps.clone(),
            Plan::Twins(value) => {
                let set = |key: &String| step(&["MSET"], key, Op::Set(value.clone()));
                keys.twins().iter().map(set).collect()
            }
            Plan::LookAtTwins => keys.twins().iter().map(|key| look(key)).collect(),
            Plan::LookAtAccounts => keys.accounts().iter().map(|key| look(key)).collect(),
            Plan::Swap(_) => Vec::new(),
        }
    }
}

/// A script that runs these commands, whose keys it is told, and returns all replies.
fn script(steps: &[Step]) -> Vec<u8> {
    let mut words = vec!["EVAL".to_owned(), String::new(), steps.len().to_string()];
    words.extend(steps.iter().map(|step| step.key.clone()));
    let calls = steps.iter().enumerate().map(|(at, step)| {
        let rest = step.words[2..].iter().map(|word| format!(", '{word}'"));
        format!("redis.call('{}', KEYS[{}]{})", step.words[0], at + 1, rest.collect::<String>())
    });
    words[1] = format!("return {{{}}}", calls.collect::<Vec<_>>().join(", "));
    bytes(&words)
}

fn mget(keys: Vec<String>) -> Vec<u8> {
    bytes(&std::iter::once("MGET".to_owned()).chain(keys).collect::<Vec<_>>())
}
