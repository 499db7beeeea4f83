//! Which keys there are and what is done to them.

use rand::rngs::StdRng;
use rand::Rng;

use crate::connection::encode;
use crate::model::{Answer, Op, Value};
use crate::reply::Reply;

/// Keys that money is moved between: their sum stays 0.
pub const ACCOUNTS: usize = 5;
/// Keys that are written together: they are always equal.
pub const TWINS: usize = 4;
/// Keys that are rarely touched.
const COLD: usize = 48;

/// What a key holds; the first letter of its name says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    List,
    Set,
    Hash,
    Zset,
}

/// A group of commands that a gateway may lack.
#[derive(Debug, Clone, Copy, Default)]
pub struct Families {
    pub lists: bool,
    pub zsets: bool,
}

/// The keys of a round: every round has its own.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    pub round: u64,
    pub families: Families,
}

/// One command for one key.
#[derive(Debug, Clone)]
pub struct Step {
    pub words: Vec<String>,
    pub key: String,
    pub op: Op,
}

/// What a client does next.
#[derive(Debug, Clone)]
pub enum Plan {
    One(Step),
    /// MULTI, these, EXEC.
    Exec(Vec<Step>),
    /// These in a script.
    Script(Vec<Step>),
    /// MSET of a value to all twins.
    Twins(String),
    /// MGET of all twins, which must be equal.
    LookAtTwins,
    /// MGET of all accounts, whose sum must be 0.
    LookAtAccounts,
    /// WATCH, GET, MULTI, SET, EXEC of the key.
    Swap(String),
}

impl Keys {
    fn name(&self, letter: char, name: &str) -> String {
        format!("{letter}:{}:{name}", self.round)
    }

    pub fn account(&self, number: usize) -> String {
        self.name('a', &number.to_string())
    }

    pub fn accounts(&self) -> Vec<String> {
        (0..ACCOUNTS).map(|number| self.account(number)).collect()
    }

    pub fn twins(&self) -> Vec<String> {
        (0..TWINS).map(|number| self.name('t', &number.to_string())).collect()
    }

    /// Counters and a string that are changed by SQL, too.
    pub fn shared_counter(&self) -> String {
        self.name('x', "counter")
    }

    pub fn shared_swap(&self) -> String {
        self.name('w', "swap")
    }

    pub fn shared_set(&self) -> String {
        self.name('m', "shared")
    }

    pub fn shared_list(&self) -> String {
        self.name('l', "shared")
    }

    fn cold(&self, number: usize) -> String {
        self.name('s', &format!("cold{number}"))
    }

    /// All of them.
    pub fn all(&self) -> Vec<String> {
        let named = ["0", "1"].into_iter().flat_map(|name| {
            ['c', 's', 'e', 'm', 'h', 'l', 'z', 'w'].map(|letter| self.name(letter, name))
        });
        let shared =
            [self.shared_counter(), self.shared_swap(), self.shared_set(), self.shared_list()];
        let cold = (0..COLD).map(|number| self.cold(number));
        named.chain(shared).chain(self.accounts()).chain(self.twins()).chain(cold).collect()
    }

    /// What a client does next. `tag` is a number that nobody else has.
    pub fn plan(&self, dice: &mut StdRng, tag: u64) -> Plan {
        // An EXEC needs several.
        let tag = tag * 10;
        match dice.random_range(0..100) {
            0..8 => self.transfer(dice),
            8..12 => self.several(dice, tag),
            12..16 => Plan::Twins(format!("t{tag}")),
            16..19 => Plan::LookAtTwins,
            19..22 => Plan::LookAtAccounts,
            22..26 => Plan::Swap(match dice.random_bool(0.5) {
                true => self.shared_swap(),
                false => self.name('w', "0"),
            }),
            _ => Plan::One(self.step(dice, tag)),
        }
    }

    fn transfer(&self, dice: &mut StdRng) -> Plan {
        let from = dice.random_range(0..ACCOUNTS);
        let to = (from + dice.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let sum = dice.random_range(1..100);
        let add =
            |key: String, by: i64| step(&["INCRBY", &key, &by.to_string()], &key, Op::IncrBy(by));
        let steps = vec![add(self.account(from), -sum), add(self.account(to), sum)];
        match dice.random_bool(0.5) {
            true => Plan::Exec(steps),
            false => Plan::Script(steps),
        }
    }

    /// An EXEC over any keys.
    fn several(&self, dice: &mut StdRng, tag: u64) -> Plan {
        let count = dice.random_range(2..5);
        let steps = (0..count).map(|number| loop {
            let step = self.step(dice, tag + number);
            // It does not wait there, and would have another answer.
            if step.words[0] != "BLPOP" {
                break step;
            }
        });
        Plan::Exec(steps.collect())
    }

    fn step(&self, dice: &mut StdRng, tag: u64) -> Step {
        let hot = if dice.random_bool(0.8) { "0" } else { "1" };
        let text = format!("v{tag}");
        match dice.random_range(0..100) {
            0..22 => self.count(dice, hot),
            22..37 => write(dice, &self.name('s', hot), text),
            37..47 => self.expiring(dice, hot, tag, text),
            47..57 => self.set(dice, hot),
            57..67 => self.hash(dice, hot, text),
            67..80 if self.families.lists => self.list(dice, hot, text),
            80..88 if self.families.zsets => self.zset(dice, hot),
            _ => {
                let number = dice.random_range(0..COLD);
                write(dice, &self.cold(number), text)
            }
        }
    }

    fn count(&self, dice: &mut StdRng, hot: &str) -> Step {
        let key = match dice.random_bool(0.3) {
            true => self.shared_counter(),
            false => self.name('c', hot),
        };
        match dice.random_range(0..20) {
            0..14 => step(&["INCR", &key], &key, Op::IncrBy(1)),
            14..16 => step(&["INCRBY", &key, "5"], &key, Op::IncrBy(5)),
            16 => step(&["EXPIRE", &key, "86400"], &key, Op::Expire(0)),
            17 => step(&["DEL", &key], &key, Op::Del),
            _ => step(&["GET", &key], &key, Op::Read),
        }
    }

    fn expiring(&self, dice: &mut StdRng, hot: &str, tag: u64, text: String) -> Step {
        let key = self.name('e', hot);
        match dice.random_range(0..10) {
            0..4 => {
                let after = dice.random_range(1..60).to_string();
                step(&["PEXPIRE", &key, &after], &key, Op::Expire(tag))
            }
            _ => write(dice, &key, text),
        }
    }

    fn set(&self, dice: &mut StdRng, hot: &str) -> Step {
        let key = match dice.random_bool(0.2) {
            true => self.shared_set(),
            false => self.name('m', hot),
        };
        let member = format!("m{}", dice.random_range(0..8));
        match dice.random_range(0..20) {
            0..9 => step(&["SADD", &key, &member], &key, Op::SAdd(member.clone())),
            9..16 => step(&["SREM", &key, &member], &key, Op::SRem(member.clone())),
            16 => step(&["DEL", &key], &key, Op::Del),
            _ => step(&["SMEMBERS", &key], &key, Op::Read),
        }
    }

    fn hash(&self, dice: &mut StdRng, hot: &str, text: String) -> Step {
        let key = self.name('h', hot);
        let count = format!("n{}", dice.random_range(0..3));
        let field = format!("f{}", dice.random_range(0..4));
        match dice.random_range(0..20) {
            0..8 => step(&["HINCRBY", &key, &count, "1"], &key, Op::HIncrBy(count.clone(), 1)),
            8..13 => {
                step(&["HSET", &key, &field, &text], &key, Op::HSet(field.clone(), text.clone()))
            }
            13..15 => step(&["HDEL", &key, &field], &key, Op::HDel(field.clone())),
            15 => step(&["DEL", &key], &key, Op::Del),
            _ => step(&["HGETALL", &key], &key, Op::Read),
        }
    }

    fn list(&self, dice: &mut StdRng, hot: &str, text: String) -> Step {
        let key = match dice.random_bool(0.3) {
            true => self.shared_list(),
            false => self.name('l', hot),
        };
        match dice.random_range(0..20) {
            0..9 => step(&["LPUSH", &key, &text], &key, Op::LPush(text.clone())),
            9..14 => step(&["RPOP", &key], &key, Op::RPop),
            14..16 => step(&["LPOP", &key], &key, Op::LPop),
            16..18 => step(&["BLPOP", &key, "0.05"], &key, Op::LPop),
            _ => step(&["LRANGE", &key, "0", "-1"], &key, Op::Read),
        }
    }

    fn zset(&self, dice: &mut StdRng, hot: &str) -> Step {
        let key = self.name('z', hot);
        let member = format!("m{}", dice.random_range(0..6));
        let score = dice.random_range(1..1000i64);
        let digits = score.to_string();
        match dice.random_range(0..20) {
            0..5 => step(&["ZADD", &key, &digits, &member], &key, Op::ZAdd(member.clone(), score)),
            5..13 => step(&["ZINCRBY", &key, "3", &member], &key, Op::ZIncrBy(member.clone(), 3)),
            13..16 => step(&["ZREM", &key, &member], &key, Op::ZRem(member.clone())),
            _ => step(&["ZRANGE", &key, "0", "-1", "WITHSCORES"], &key, Op::Read),
        }
    }
}

/// Something with a string whose values nobody else writes.
fn write(dice: &mut StdRng, key: &str, text: String) -> Step {
    match dice.random_range(0..20) {
        0..7 => step(&["SET", key, &text], key, Op::Set(text.clone())),
        7..9 => step(&["SET", key, &text, "GET"], key, Op::SetGet(text.clone())),
        9..12 => step(&["APPEND", key, &text], key, Op::Append(text.clone())),
        12 => step(&["DEL", key], key, Op::Del),
        _ => step(&["GET", key], key, Op::Read),
    }
}

pub fn step(words: &[&str], key: &str, op: Op) -> Step {
    let words = words.iter().map(|word| word.to_string()).collect();
    Step { words, key: key.to_owned(), op }
}

pub fn kind(key: &str) -> Kind {
    match key.as_bytes().first() {
        Some(b'l') => Kind::List,
        Some(b'm') => Kind::Set,
        Some(b'h') => Kind::Hash,
        Some(b'z') => Kind::Zset,
        _ => Kind::Text,
    }
}

/// The command that reads all of a key.
pub fn look(key: &str) -> Step {
    match kind(key) {
        Kind::Text => step(&["GET", key], key, Op::Read),
        Kind::List => step(&["LRANGE", key, "0", "-1"], key, Op::Read),
        Kind::Set => step(&["SMEMBERS", key], key, Op::Read),
        Kind::Hash => step(&["HGETALL", key], key, Op::Read),
        Kind::Zset => step(&["ZRANGE", key, "0", "-1", "WITHSCORES"], key, Op::Read),
    }
}

impl Step {
    pub fn bytes(&self) -> Vec<u8> {
        bytes(&self.words)
    }

    /// What a reply that is no error says; none if it makes no sense.
    pub fn answer(&self, reply: &Reply) -> Option<Answer> {
        if *reply == Reply::Line(b'+', b"QUEUED".to_vec()) {
            return None;
        }
        match &self.op {
            Op::Set(_) => (reply.text() == Some(b"OK")).then_some(Answer::Done),
            Op::Read => Some(Answer::Whole(value(&self.key, reply)?)),
            // [key, item], or nothing.
            Op::LPop if self.words[0] == "BLPOP" => match reply {
                Reply::Nil(_) => Some(Answer::Whole(Value::Absent)),
                _ => Some(Answer::Whole(Value::Text(text(reply.children().get(1)?)?))),
            },
            Op::SetGet(_) | Op::LPop | Op::RPop => Some(Answer::Whole(match reply {
                Reply::Nil(_) => Value::Absent,
                _ => Value::Text(text(reply)?),
            })),
            Op::ZIncrBy(..) => text(reply)?.parse().ok().map(Answer::Number),
            _ => reply.integer().map(Answer::Number),
        }
    }
}

pub fn bytes<T: AsRef<str>>(words: &[T]) -> Vec<u8> {
    let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_ref().as_bytes().to_vec()).collect();
    encode(&words)
}

pub fn text(reply: &Reply) -> Option<String> {
    String::from_utf8(reply.text()?.to_vec()).ok()
}

/// All of a key from the reply to [`look`].
fn value(key: &str, reply: &Reply) -> Option<Value> {
    if matches!(reply, Reply::Nil(_)) {
        return Some(Value::Absent);
    }
    if kind(key) == Kind::Text {
        return Some(Value::Text(text(reply)?));
    }
    let items: Option<Vec<String>> = reply.children().iter().map(text).collect();
    collection(key, items?)
}

/// A collection from its items, or its names and values in turn.
pub fn collection(key: &str, items: Vec<String>) -> Option<Value> {
    if items.is_empty() {
        return Some(Value::Absent);
    }
    let pairs = |items: Vec<String>| -> Vec<(String, String)> {
        items.chunks_exact(2).map(|two| (two[0].clone(), two[1].clone())).collect()
    };
    Some(match kind(key) {
        Kind::Text => return None,
        Kind::List => Value::List(items.into()),
        Kind::Set => Value::Set(items.into_iter().collect()),
        Kind::Hash => Value::Hash(pairs(items).into_iter().collect()),
        Kind::Zset => {
            let scored = pairs(items).into_iter().map(|(member, score)| {
                let score: f64 = score.parse().ok()?;
                Some((member, score as i64))
            });
            Value::Zset(scored.collect::<Option<_>>()?)
        }
    })
}
