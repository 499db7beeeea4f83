//! Plays steps at two servers at once and finds the first reply that differs.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::connection::{encode, words, Answer, Connection, Lost, Place};
use crate::keyspace;
use crate::reply::Reply;
use crate::rules::{same_pages, Rules};
use crate::scenario::{shown, Command, Step, CLIENTS};

/// A difference: what was asked, and both answers in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step's number; that of the step behind the last for the comparison at the end.
    pub step: usize,
    pub asked: String,
    pub oracle: String,
    pub subject: String,
}

type Verdict = Result<(), Difference>;

/// How long it takes until a command that blocks has surely been read.
const BLOCKED_BY_THEN: Duration = Duration::from_millis(40);

/// How long bytes on a raw connection may be awaited.
const RAW_PATIENCE: Duration = Duration::from_secs(3);

/// Longer ones have no end of line, and the connection is closed without one.
const RAW_MARKED_MAX: usize = 10_000;

const CURSOR_CALLS_MAX: usize = 10_000;

const MARK: &[u8] = b"a-mark-that-no-template-writes";

/// A pair of connections, one to each server.
pub struct Pair {
    pub oracle: Connection,
    pub subject: Connection,
}

impl Pair {
    fn open(places: [&Place; 2]) -> Pair {
        Pair { oracle: Connection::open(places[0]), subject: Connection::open(places[1]) }
    }

    pub fn ask(&mut self, command: &[Vec<u8>]) -> (Answer, Answer) {
        self.oracle.send(&encode(command));
        self.subject.send(&encode(command));
        (self.oracle.reply(), self.subject.reply())
    }
}

/// A connection's commands between MULTI and EXEC, by what the oracle says of them.
#[derive(Default)]
struct Queue(Vec<Command>);

struct Player<'a> {
    places: [&'a Place; 2],
    rules: Rules,
    clients: Vec<(Pair, Queue)>,
    /// Never in a transaction, in database 0, RESP3.
    plain: Pair,
    subscriber: Pair,
    /// Of the step that is played.
    number: usize,
}

/// Empties both servers, plays `steps` and compares all keys at the end.
pub fn play(steps: &[Step], oracle: &Place, subject: &Place) -> Option<Difference> {
    let mut player = Player::open([oracle, subject]);
    player.run(steps).err()
}

impl<'a> Player<'a> {
    fn open(places: [&'a Place; 2]) -> Player<'a> {
        let open = || Pair::open(places);
        let clients = (0..CLIENTS).map(|_| (open(), Queue::default())).collect();
        let mut plain = open();
        let rules = Rules { old_oracle: is_old(&mut plain.oracle) };
        Player { places, rules, clients, plain, subscriber: open(), number: 0 }
    }

    fn run(&mut self, steps: &[Step]) -> Verdict {
        for line in ["HELLO 3", "FLUSHALL"] {
            let command = words(line);
            let answers = self.plain.ask(&command);
            self.judge(&command, &[], answers)?;
        }
        self.send(1, &[words("HELLO 3")], 1)?;
        for (number, step) in steps.iter().enumerate() {
            self.number = number;
            self.step(step)?;
        }
        self.number = steps.len();
        keyspace::compare(&mut self.plain, self.rules)
            .map_err(|what| self.difference(&what.0, what.1, what.2))
    }

    fn step(&mut self, step: &Step) -> Verdict {
        match step {
            Step::Send { client, commands, pieces } => self.send(*client, commands, *pieces),
            Step::Scan(command) => self.scan(command),
            Step::Draw { all, draw, key } => self.draw(all, draw, key),
            Step::Duet { resp3, blocked, waker } => self.duet(*resp3, blocked, waker),
            Step::Listen(command) => {
                self.subscriber.oracle.send(&encode(command));
                self.subscriber.subject.send(&encode(command));
                self.settle(command)
            }
            Step::Publish(command) => {
                self.ask_plain(command)?;
                self.settle(command)
            }
            Step::Carry { from, to } => self.carry(from, to),
            Step::Raw(bytes) => self.raw(bytes),
        }
    }

    fn difference(&self, asked: &str, oracle: String, subject: String) -> Difference {
        Difference { step: self.number, asked: asked.to_owned(), oracle, subject }
    }

    fn judge(&self, command: &[Vec<u8>], queued: &[Command], both: (Answer, Answer)) -> Verdict {
        let same = match &both {
            (Ok(oracle), Ok(subject)) => self.rules.same(command, queued, oracle, subject),
            (oracle, subject) => oracle == subject,
        };
        if same {
            return Ok(());
        }
        Err(self.difference(&shown(command), told(&both.0), told(&both.1)))
    }

    /// Asks on the plain connection; returns the replies when they are the same.
    fn ask_plain(&mut self, command: &[Vec<u8>]) -> Result<(Reply, Reply), Difference> {
        let answers = self.plain.ask(command);
        self.judge(command, &[], answers.clone())?;
        match answers {
            (Ok(oracle), Ok(subject)) => Ok((oracle, subject)),
            (oracle, subject) => {
                Err(self.difference(&shown(command), told(&oracle), told(&subject)))
            }
        }
    }

    fn send(&mut self, client: usize, commands: &[Command], pieces: usize) -> Verdict {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
        let (pair, _) = &mut self.clients[client];
        for piece in bytes.chunks(bytes.len().div_ceil(pieces.max(1)).max(1)) {
            pair.oracle.send(piece);
            pair.subject.send(piece);
        }
        for command in commands {
            let (pair, queue) = &mut self.clients[client];
            let answers = (pair.oracle.reply(), pair.subject.reply());
            let queued = queue.after(command, &answers.0);
            self.judge(command, &queued, answers)?;
        }
        Ok(())
    }

    fn scan(&mut self, command: &[Vec<u8>]) -> Verdict {
        let pairs =
            command[0].eq_ignore_ascii_case(b"HSCAN") || command[0].eq_ignore_ascii_case(b"ZSCAN");
        let oracle = collect(&mut self.plain.oracle, command, pairs);
        let subject = collect(&mut self.plain.subject, command, pairs);
        let same = match (&oracle, &subject) {
            (Ok(left), Ok(right)) => {
                let zscan = command[0].eq_ignore_ascii_case(b"ZSCAN");
                let flat = |set: &BTreeSet<Vec<Reply>>| -> Vec<Reply> {
                    set.iter().flatten().cloned().collect()
                };
                left == right || (zscan && same_pages(&flat(left), &flat(right)))
            }
            _ => oracle == subject,
        };
        if same {
            return Ok(());
        }
        Err(self.difference(&shown(command), told_all(&oracle), told_all(&subject)))
    }

    fn draw(&mut self, all: &[Vec<u8>], draw: &[Vec<u8>], key: &[u8]) -> Verdict {
        let members = self.ask_plain(all)?;
        let drawn = self.ask_plain(draw)?;
        for (reply, members) in [(&drawn.0, &members.0), (&drawn.1, &members.1)] {
            if reply.error().is_none() && !leaves(reply).is_subset(&leaves(members)) {
                let asked = format!("{} from {members}", shown(draw));
                return Err(self.difference(&asked, drawn.0.to_string(), drawn.1.to_string()));
            }
        }
        self.ask_plain(&[b"DEL".to_vec(), key.to_vec()]).map(drop)
    }

    fn duet(&mut self, resp3: bool, blocked: &[Vec<u8>], waker: &[Vec<u8>]) -> Verdict {
        for line in ["DEL duet1 duet2 duet3", "RPUSH duet3 2 1"] {
            self.ask_plain(&words(line))?;
        }
        let mut waiting = Pair::open(self.places);
        if resp3 {
            let hello = words("HELLO 3");
            let answers = waiting.ask(&hello);
            self.judge(&hello, &[], answers)?;
        }
        waiting.oracle.send(&encode(blocked));
        waiting.subject.send(&encode(blocked));
        std::thread::sleep(BLOCKED_BY_THEN);
        self.ask_plain(waker)?;
        let answers = (waiting.oracle.reply(), waiting.subject.reply());
        self.judge(blocked, &[], answers)?;
        self.ask_plain(&words("DEL duet1 duet2 duet3")).map(drop)
    }

    /// Reads what has come for the subscriber, up to the answer to a PING.
    fn settle(&mut self, command: &[Vec<u8>]) -> Verdict {
        let ping = [b"PING".to_vec(), MARK.to_vec()];
        self.subscriber.oracle.send(&encode(&ping));
        let mut expected = Vec::new();
        loop {
            let answer = self.subscriber.oracle.reply();
            let last = answer.as_ref().map_or(true, is_mark);
            expected.push(answer);
            if last {
                break;
            }
        }
        // A message may be on its way from another thread: the PING waits until it is here.
        let (mark, pushed) = expected.split_last().expect("the mark at least");
        for oracle in pushed {
            let subject = self.subscriber.subject.reply();
            self.judge(command, &[], (oracle.clone(), subject))?;
        }
        let subject = self.subscriber.subject.ask(&ping);
        self.judge(command, &[], (mark.clone(), subject))
    }

    fn carry(&mut self, from: &[u8], to: &[u8]) -> Verdict {
        let dump = [b"DUMP".to_vec(), from.to_vec()];
        let (oracle, subject) = self.ask_plain(&dump)?;
        let (Some(oracle), Some(subject)) = (oracle.text(), subject.text()) else {
            return Ok(());
        };
        let restore = |payload: &[u8]| {
            let words = [&b"RESTORE"[..], to, b"0", payload, b"REPLACE"];
            words.map(<[u8]>::to_vec)
        };
        let answers =
            (self.plain.oracle.ask(&restore(oracle)), self.plain.subject.ask(&restore(subject)));
        self.judge(&restore(b"what DUMP gave"), &[], answers)
    }

    fn raw(&self, bytes: &[u8]) -> Verdict {
        let mut pair = Pair::open(self.places);
        let mut all = bytes.to_vec();
        if bytes.len() <= RAW_MARKED_MAX {
            all.extend(encode(&[b"PING".to_vec(), MARK.to_vec()]));
        }
        let mut outcomes = [&mut pair.oracle, &mut pair.subject].map(|connection| {
            connection.send(&all);
            let (answer, lost) = connection.until(MARK, RAW_PATIENCE);
            (without_process(&answer), lost)
        });
        let lines = outcomes.each_ref().map(|(answer, _)| line_without_end(answer));
        let same_end = outcomes[0].1 == outcomes[1].1;
        if same_end && (lines[0] == lines[1] || self.rules.reworded(lines[0], lines[1])) {
            return Ok(());
        }
        let [oracle, subject] = outcomes.each_mut().map(|(answer, lost)| {
            let end = lost.as_ref().map_or(String::new(), |lost| format!(", then {lost:?}"));
            format!("{}{end}", answer.escape_ascii())
        });
        Err(self.difference(&Step::Raw(bytes.to_vec()).to_string(), oracle, subject))
    }
}

impl Queue {
    /// Follows `command` with its answer; returns what it ran if it is EXEC.
    fn after(&mut self, command: &[Vec<u8>], answer: &Answer) -> Vec<Command> {
        let name = command[0].to_ascii_uppercase();
        match answer {
            Ok(Reply::Line(b'+', text)) if text == b"QUEUED" => self.0.push(command.to_vec()),
            Ok(reply) if reply.error().is_none() && name == b"EXEC" => {
                return std::mem::take(&mut self.0);
            }
            // A wrong number of arguments does not end a transaction.
            Ok(reply)
                if command.len() == 1
                    && (reply.error().is_none() || name == b"EXEC")
                    && [&b"MULTI"[..], b"DISCARD", b"EXEC"].contains(&&name[..]) =>
            {
                self.0.clear();
            }
            _ => {}
        }
        Vec::new()
    }
}

/// Whether a server is older than Redis 7.2.
fn is_old(server: &mut Connection) -> bool {
    let info = server.ask(&words("INFO server")).ok();
    let info = info.as_ref().and_then(Reply::text).map(String::from_utf8_lossy);
    let version = info.as_deref().and_then(|text| text.split("redis_version:").nth(1));
    let mut numbers = version.unwrap_or_default().split('.').map(|part| part.parse::<u32>().ok());
    (numbers.next().flatten(), numbers.next().flatten()) < (Some(7), Some(2))
}

/// A single error's text; else what there is.
fn line_without_end(bytes: &[u8]) -> &[u8] {
    let line = bytes.strip_prefix(b"-").and_then(|rest| rest.strip_suffix(b"\r\n"));
    line.unwrap_or(bytes)
}

fn is_mark(reply: &Reply) -> bool {
    let last = reply.children().last().unwrap_or(reply);
    last.text() == Some(MARK)
}

/// All members and values; there may be none.
fn leaves(reply: &Reply) -> BTreeSet<Reply> {
    match reply {
        Reply::Nil(_) | Reply::Line(b'_', _) => BTreeSet::new(),
        Reply::Many(_, children) => children.iter().flat_map(leaves).collect(),
        _ => [reply.clone()].into(),
    }
}

/// Calls with each cursor until it is 0 again; the elements without repetitions, or the error.
fn collect(
    connection: &mut Connection,
    command: &[Vec<u8>],
    pairs: bool,
) -> Result<BTreeSet<Vec<Reply>>, Answer> {
    let mut found = BTreeSet::new();
    let mut cursor = b"0".to_vec();
    for _ in 0..CURSOR_CALLS_MAX {
        let mut call = command.to_vec();
        for word in call.iter_mut().filter(|word| *word == b"%") {
            word.clone_from(&cursor);
        }
        let answer = connection.ask(&call);
        let Ok([Reply::Bulk(b'$', next), Reply::Many(_, page)]) =
            answer.as_ref().map(Reply::children)
        else {
            return Err(answer);
        };
        found.extend(page.chunks(if pairs { 2 } else { 1 }).map(<[Reply]>::to_vec));
        cursor.clone_from(next);
        if cursor == b"0" {
            return Ok(found);
        }
    }
    Err(Err(Lost::Nonsense(format!("no end after {CURSOR_CALLS_MAX} calls"))))
}

/// HELLO's answer tells the version and the connection's number; how long they are does not
/// matter either.
fn without_process(bytes: &[u8]) -> Vec<u8> {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    let mut kept = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("$7\r\nversion\r\n") {
        kept.push_str(before);
        rest = after.split_once("$4\r\nmode").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept.chars().map(|c| c as u8).collect()
}

fn told(answer: &Answer) -> String {
    match answer {
        Ok(reply) => reply.to_string(),
        Err(lost) => format!("{lost:?}"),
    }
}

fn told_all(found: &Result<BTreeSet<Vec<Reply>>, Answer>) -> String {
    match found {
        Ok(found) => {
            let all: Vec<String> = found.iter().flatten().map(Reply::to_string).collect();
            all.join(", ")
        }
        Err(answer) => told(answer),
    }
}
