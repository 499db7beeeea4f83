//! What a round does: steps drawn from a seed, without knowing any answer, so that some of them
//! can be left out and the rest played again.

use std::fmt;

use crate::connection::words;
use crate::dice::Dice;
use crate::grammar::FAMILIES;
use crate::reply::quoted;
use crate::scripts;
use crate::template::Template;

pub type Command = Vec<Vec<u8>>;

/// Connections that get random commands. The second speaks RESP3 from its beginning.
pub const CLIENTS: usize = 3;

#[derive(Clone, Debug)]
pub enum Step {
    /// Written to one connection in that many pieces, before any reply is read.
    Send {
        client: usize,
        commands: Vec<Command>,
        pieces: usize,
    },
    /// SCAN, HSCAN, SSCAN or ZSCAN to the end of its cursor; `%` stands for the cursor.
    Scan(Command),
    /// Members drawn by chance: they have to be among what `all` reads. The key goes then.
    Draw {
        all: Command,
        draw: Command,
        key: Vec<u8>,
    },
    /// The first waits until the second has been run by somebody else.
    Duet {
        resp3: bool,
        blocked: Command,
        waker: Command,
    },
    /// On the connection that subscribes.
    Listen(Command),
    Publish(Command),
    /// DUMP, and RESTORE of what it gave, at each server its own.
    Carry {
        from: Vec<u8>,
        to: Vec<u8>,
    },
    /// Bytes on a connection of their own.
    Raw(Vec<u8>),
}

/// Broken requests and inline ones. Each is complete: a PING behind it is answered, or the
/// connection closed. How many words are too many is left out: Redis has no ceiling of its own.
const RAW: &[&[u8]] = &[
    b"PING\r\n",
    b"ping\n",
    b"\r\n\r\nPING\r\n",
    b"  PING   'a b'  \r\n",
    b"SET raw \"a\\x00\\xff\\n\\\"q\\\" b\"\r\nGET raw\r\n",
    b"SET raw 'it\\'s \\n'\r\nGET raw\r\n",
    b"SET raw \"\"\r\nGET raw\r\n",
    b"GET \"open\r\n",
    b"GET 'open\r\n",
    b"GET \"a\"b\r\n",
    b"NOTHING at all\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*-10\r\n",
    b"*x\r\n",
    b"*1x\r\n",
    b"* 1\r\n",
    b"*\r\n",
    b"*2147483648\r\n",
    b"*99999999999999999999\r\n",
    b"*1\r\n+PING\r\n",
    b"*1\r\nPING\r\n",
    b"*1\r\n\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$-5\r\n",
    b"*1\r\n$x\r\n",
    b"*1\r\n$4x\r\nPING\r\n",
    b"*1\r\n$536870913\r\n",
    b"*1\r\n$99999999999999999999\r\n",
    b"*1\r\n$0\r\n\r\n",
    b"*1\r\n$4\r\nPINGxx",
    b"*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n",
    b"*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n",
    b"*1\r\n$4\r\nPING\r\nQUIT\r\nPING\r\n",
    b"QUIT now\r\n",
    b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    b"POST / HTTP/1.1\r\n\r\n",
    b"HELLO 3\r\nHELLO 2\r\nHELLO 4\r\nHELLO x\r\n",
    b"CLIENT REPLY OFF\r\nSET raw 1\r\nGET raw\r\nCLIENT REPLY ON\r\nGET raw\r\n",
    b"CLIENT REPLY SKIP\r\nSET raw 1\r\nGET raw\r\n",
    b"CLIENT REPLY\r\nCLIENT REPLY x\r\n",
    b"MULTI\r\nSET raw a b c\r\nSET raw\r\nEXEC\r\nMULTI\r\nEXEC\r\nEXEC\r\nDISCARD\r\n",
    b"MULTI\r\nMULTI\r\nWATCH raw\r\nSET raw 2\r\nLPUSH raw a\r\nGET raw\r\nEXEC\r\n",
    b"SUBSCRIBE a\r\nGET raw\r\nPING\r\nPING x\r\nUNSUBSCRIBE a\r\nGET raw\r\n",
    b"HELLO 3\r\nSUBSCRIBE a\r\nGET raw\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\n",
    b"UNSUBSCRIBE\r\nPUNSUBSCRIBE\r\nUNSUBSCRIBE x y\r\n",
    b"CLIENT SETNAME a\r\nCLIENT GETNAME\r\nRESET\r\nCLIENT GETNAME\r\n",
];

/// Requests that get longer than a line of them may.
fn raw(dice: &mut Dice) -> Vec<u8> {
    match dice.below(RAW.len() + 4) {
        0 => vec![b'A'; 70_000],
        1 => [b"*".to_vec(), vec![b'1'; 70_000]].concat(),
        2 => [b"*1\r\n$".to_vec(), vec![b'1'; 70_000]].concat(),
        3 => {
            let two = [dice.pick(RAW), dice.pick(RAW)];
            two.concat()
        }
        n => RAW[n - 4].to_vec(),
    }
}

const SCANS: &[(&str, &str)] = &[
    ("key", "SCAN % [MATCH <p>] [COUNT <c>] [TYPE <type>]"),
    ("hash", "HSCAN <h> % [MATCH <p>] [COUNT 3]"),
    ("set", "SSCAN <e> % [MATCH <p>] [COUNT 3]"),
    ("zset", "ZSCAN <z> % [MATCH <p>] [COUNT 3]"),
];

/// Family, key, what reads all of it, what draws from it.
const DRAWS: &[(&str, &str, &str, &str)] = &[
    ("set", "e", "SMEMBERS", "SPOP"),
    ("set", "e", "SMEMBERS", "SPOP 1"),
    ("set", "e", "SMEMBERS", "SPOP 3"),
    ("set", "e", "SMEMBERS", "SRANDMEMBER 2"),
    ("set", "e", "SMEMBERS", "SRANDMEMBER -9"),
    ("hash", "h", "HGETALL", "HRANDFIELD"),
    ("hash", "h", "HGETALL", "HRANDFIELD 2"),
    ("hash", "h", "HGETALL", "HRANDFIELD -4 WITHVALUES"),
    ("zset", "z", "ZRANGE 0 -1 WITHSCORES", "ZRANDMEMBER 2"),
    ("zset", "z", "ZRANGE 0 -1 WITHSCORES", "ZRANDMEMBER -4 WITHSCORES"),
];

/// Family, who waits, who wakes. The keys are nobody else's.
const DUETS: &[(&str, &str, &str)] = &[
    ("list", "BLPOP duet1 duet2 10", "RPUSH duet2 a b c"),
    ("list", "BRPOP duet1 duet2 10", "RPUSH duet2 a b c"),
    ("list", "BLMOVE duet1 duet2 LEFT RIGHT 10", "LPUSH duet1 a b"),
    ("list", "BRPOPLPUSH duet1 duet1 10", "RPUSH duet1 a b"),
    ("list", "BLMPOP 10 2 duet1 duet2 RIGHT COUNT 2", "RPUSH duet1 a b c"),
    ("list", "BLPOP duet1 0", "EVAL return(redis.call('RPUSH',KEYS[1],'a','b')) 1 duet1"),
    ("list", "BLPOP duet1 0", "SORT duet3 STORE duet1"),
    ("list", "BLPOP duet1 0", "RENAME duet3 duet1"),
    ("zset", "BZPOPMIN duet1 duet2 10", "ZADD duet2 1 a 2.5 b"),
    ("zset", "BZPOPMAX duet1 duet2 0", "ZADD duet1 1 a 2.5 b"),
    ("zset", "BZMPOP 10 2 duet1 duet2 MAX COUNT 5", "ZADD duet2 1 a 2.5 b"),
    ("stream", "XREAD BLOCK 10000 STREAMS duet1 duet2 $ $", "XADD duet2 7-7 f v"),
    ("stream", "XREAD COUNT 1 BLOCK 0 STREAMS duet1 0", "XADD duet1 7-7 f v"),
];

/// The steps of `seed`, from the families named.
pub fn generate(seed: u64, families: &[String]) -> Vec<Step> {
    let mut writer = Writer::new(seed, families);
    if writer.has("script") {
        writer.send(0, vec![words("SCRIPT FLUSH")]);
    }
    let length = 20 + writer.dice.below(60);
    while writer.steps.len() < length {
        writer.step();
    }
    writer.steps
}

/// Redis forgets all but 32 bits of LSET's index, and sets an element that nobody has named.
fn is_undefined(command: &[Vec<u8>]) -> bool {
    let index = command.get(2).and_then(|word| std::str::from_utf8(word).ok()?.parse::<i64>().ok());
    command[0].eq_ignore_ascii_case(b"LSET")
        && index.is_some_and(|index| i32::try_from(index).is_err())
}

struct Writer {
    dice: Dice,
    families: Vec<String>,
    /// By family, so that the families with few lines come as often.
    templates: Vec<Vec<Template>>,
    subscribed: Vec<&'static str>,
    steps: Vec<Step>,
}

/// Of so many families a round takes some at most: so that a key is used often enough to get
/// into a state worth looking at.
const FAMILIES_MAX: usize = 4;

impl Writer {
    fn new(seed: u64, families: &[String]) -> Writer {
        let mut dice = Dice::new(seed);
        let mut families = families.to_vec();
        let most = 1 + dice.below(FAMILIES_MAX);
        while families.len() > most {
            let at = dice.below(families.len());
            families.swap_remove(at);
        }
        let lines = |name: &String| {
            let known = FAMILIES.iter().find(|(family, _)| family == name);
            known.unwrap_or_else(|| panic!("{name} is no family of commands")).1
        };
        let templates = families
            .iter()
            .map(|name| lines(name).iter().map(|line| Template::new(line)).collect())
            .collect();
        Writer { dice, families, templates, subscribed: Vec::new(), steps: Vec::new() }
    }

    fn has(&self, family: &str) -> bool {
        self.families.iter().any(|name| name == family)
    }

    fn command(&mut self) -> Command {
        if self.has("script") && self.dice.chance(10) {
            return self.script();
        }
        loop {
            let family = self.dice.below(self.templates.len());
            let line = self.dice.below(self.templates[family].len());
            let command = self.templates[family][line].command(&mut self.dice);
            if !is_undefined(&command) {
                return command;
            }
        }
    }

    fn script(&mut self) -> Command {
        let mut command = words(self.dice.pick(&["EVAL", "EVAL", "EVAL", "EVAL_RO"]));
        command.push(self.dice.pick(scripts::CATALOGUE).into());
        command.push(b"5".to_vec());
        command.extend(scripts::KEYS.iter().map(|key| key.as_bytes().to_vec()));
        command.extend([self.dice.word("v"), self.dice.word("v")]);
        command
    }

    fn send(&mut self, client: usize, commands: Vec<Command>) {
        let pieces = 1 + if self.dice.chance(20) { self.dice.below(4) } else { 0 };
        self.steps.push(Step::Send { client, commands, pieces });
    }

    fn some(&mut self, most: usize) -> Vec<Command> {
        (0..1 + self.dice.below(most)).map(|_| self.command()).collect()
    }

    fn step(&mut self) {
        let client = self.dice.below(CLIENTS);
        match self.dice.below(100) {
            0..=4 => self.scan(),
            5..=7 => self.draw(),
            8 => self.duet(),
            9..=12 if self.has("pubsub") => self.publish(),
            13..=14 if self.has("key") => {
                let (from, to) = (self.dice.word("any"), self.dice.word("any"));
                self.steps.push(Step::Carry { from, to });
            }
            15..=16 if self.has("connection") => {
                let bytes = raw(&mut self.dice);
                self.steps.push(Step::Raw(bytes));
            }
            17..=22 if self.has("multi") => self.transaction(client),
            23..=24 if self.has("script") => self.by_digest(client),
            25..=45 => {
                let commands = self.some(20);
                self.send(client, commands);
            }
            _ => {
                let commands = self.some(3);
                self.send(client, commands);
            }
        }
    }

    fn transaction(&mut self, client: usize) {
        if self.dice.chance(40) {
            let key = self.dice.word("any");
            self.send(client, vec![vec![b"WATCH".to_vec(), key]]);
            if self.dice.chance(60) {
                let other = (client + 1) % CLIENTS;
                let commands = self.some(2);
                self.send(other, commands);
            }
        }
        let mut commands = vec![words("MULTI")];
        commands.extend(self.some(6));
        commands.push(words(if self.dice.chance(90) { "EXEC" } else { "DISCARD" }));
        if self.dice.chance(50) {
            self.send(client, commands);
        } else {
            for command in commands {
                self.send(client, vec![command]);
            }
        }
    }

    /// SCRIPT LOAD, and the digest that EVALSHA then knows: that of `return ARGV[1]`.
    fn by_digest(&mut self, client: usize) {
        let load = [words("SCRIPT LOAD"), vec![b"return ARGV[1]".to_vec()]].concat();
        let digest = "098e0f0d1448c0a81dafe820f66d460eb09263da";
        let mut call = words(self.dice.pick(&["EVALSHA", "EVALSHA_RO"]));
        call.extend([digest.into(), b"0".to_vec(), self.dice.word("v")]);
        let exists = words(&format!("SCRIPT EXISTS {digest} x {}", digest.to_uppercase()));
        let mut commands = vec![load, exists, call.clone()];
        if self.dice.chance(20) {
            commands.extend([words("SCRIPT FLUSH"), call]);
        }
        self.send(client, commands);
    }

    fn scan(&mut self) {
        let (family, line) = SCANS[self.dice.below(SCANS.len())];
        if self.has(family) {
            let command = Template::new(&format!("!{line}")).command(&mut self.dice);
            self.steps.push(Step::Scan(command));
        }
    }

    fn draw(&mut self) {
        let (family, kind, all, draw) = DRAWS[self.dice.below(DRAWS.len())];
        if !self.has(family) {
            return;
        }
        let key = self.dice.word(kind);
        let with_key = |line: &str| {
            let mut command = words(line);
            command.insert(1, key.clone());
            command
        };
        let (all, draw) = (with_key(all), with_key(draw));
        self.steps.push(Step::Draw { all, draw, key });
    }

    fn duet(&mut self) {
        let (family, blocked, waker) = DUETS[self.dice.below(DUETS.len())];
        if self.has(family) && (self.has("script") || !waker.starts_with("EVAL")) {
            let (blocked, waker) = (words(blocked), words(waker));
            self.steps.push(Step::Duet { resp3: self.dice.chance(50), blocked, waker });
        }
    }

    /// Messages to a channel come before those to a pattern; of two patterns that match, any may
    /// be first, so no channel here has two.
    fn publish(&mut self) {
        let channel = self.dice.pick(&["c1", "c2", "d1", "c*", "d*"]);
        let pattern = channel.ends_with('*');
        let known = self.subscribed.iter().position(|name| *name == channel);
        let step = match (self.dice.below(4), known) {
            (0, None) => {
                self.subscribed.push(channel);
                Step::Listen(words(&format!(
                    "{}SUBSCRIBE {channel}",
                    if pattern { "P" } else { "" }
                )))
            }
            (0, Some(at)) => {
                self.subscribed.remove(at);
                let verb = if pattern { "PUNSUBSCRIBE" } else { "UNSUBSCRIBE" };
                Step::Listen(words(&format!("{verb} {channel}")))
            }
            (1, _) => {
                Step::Listen(words(self.dice.pick(&["PING", "PING x", "SUBSCRIBE", "GET s1"])))
            }
            _ => {
                let channel = self.dice.pick(&["c1", "c2", "d1", "e1"]);
                Step::Publish(vec![b"PUBLISH".to_vec(), channel.into(), self.dice.word("v")])
            }
        };
        self.steps.push(step);
    }
}

/// One command, its words quoted.
pub fn shown(command: &[Vec<u8>]) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Send { client, commands, .. } => {
                for (number, command) in commands.iter().enumerate() {
                    let before = if number == 0 { "" } else { "\n    + " };
                    write!(f, "{before}client {client}: {}", shown(command))?;
                }
                Ok(())
            }
            Step::Scan(command) => write!(f, "to its end: {}", shown(command)),
            Step::Draw { draw, .. } => write!(f, "by chance: {}", shown(draw)),
            Step::Duet { resp3, blocked, waker } => {
                let protocol = if *resp3 { 3 } else { 2 };
                write!(f, "waits (RESP{protocol}): {}, woken by: {}", shown(blocked), shown(waker))
            }
            Step::Listen(command) => write!(f, "subscriber: {}", shown(command)),
            Step::Publish(command) => write!(f, "publisher: {}", shown(command)),
            Step::Carry { from, to } => {
                write!(f, "DUMP \"{}\", RESTORE \"{}\"", from.escape_ascii(), to.escape_ascii())
            }
            Step::Raw(bytes) => {
                write!(f, "{} bytes: {}", bytes.len(), bytes[..bytes.len().min(200)].escape_ascii())
            }
        }
    }
}
