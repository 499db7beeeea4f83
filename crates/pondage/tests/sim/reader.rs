//! What a client says where results of reads are kept: reads in every form, writes, transactions
//! that begin with reads, sessions unlike the others.

use rand::rngs::StdRng;
use rand::Rng;
use wire::pg::frontend::{self, tag, Target};

use crate::client::{Client, Habits, Reading};
use crate::data::{GROUPS, OUTSIDE_KEYS};

/// A statement with its numbers apart.
#[derive(Debug, Clone)]
pub struct Said {
    /// With `?` for each number.
    text: String,
    numbers: Vec<i32>,
}

impl Said {
    fn new(text: impl Into<String>, numbers: impl Into<Vec<i32>>) -> Said {
        Said { text: text.into(), numbers: numbers.into() }
    }

    fn with(&self, value: impl Fn(usize, i32) -> String) -> String {
        let mut parts = self.text.split('?');
        let mut text = parts.next().unwrap_or("").to_owned();
        for (at, (part, number)) in parts.zip(&self.numbers).enumerate() {
            text.push_str(&value(at, *number));
            text.push_str(part);
        }
        text
    }

    fn literal(&self) -> String {
        self.with(|_, number| number.to_string())
    }

    fn parameters(&self) -> String {
        self.with(|at, _| format!("${}", at + 1))
    }
}

/// The type that a Parse declares for each number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    None,
    Int4,
    Int8,
}

impl Client {
    pub(crate) fn read_or_write(&mut self, random: &mut StdRng, reads: &Reading, habits: &Habits) {
        let blocks = !habits.statement_mode;
        let mut out = Vec::new();
        match random.random_range(0..100) {
            0..75 if random.random_bool(reads.writes) => self.put_write(&mut out, random),
            0..75 => self.put_read(&mut out, random, reads),
            75..93 if blocks => return self.transaction(random, reads, habits),
            93..96 if blocks && reads.strange => return self.become_strange(random, reads),
            96..98 if habits.alters => {
                frontend::put_query(&mut out, format!("alter '{}'", self.next_mark()));
            }
            98.. => {
                // Several in one text: nothing of it is kept.
                let texts =
                    [self.read(random, reads).literal(), self.read(random, reads).literal()];
                frontend::put_query(&mut out, texts.join("; "));
            }
            _ => self.put_read(&mut out, random, reads),
        }
        self.send(out);
    }

    /// BEGIN, reads, and sometimes more, up to the end.
    fn transaction(&mut self, random: &mut StdRng, reads: &Reading, habits: &Habits) {
        let mut steps: Vec<Vec<u8>> = Vec::new();
        steps.push(control(random, ["begin", "begin", "BEGIN"]));
        for _ in 0..random.random_range(0..4) {
            let mut out = Vec::new();
            match random.random_range(0..20) {
                0..17 if random.random_bool(reads.writes) => self.put_write(&mut out, random),
                0..17 => self.put_read(&mut out, random, reads),
                17 => frontend::put_query(&mut out, format!("fail '{}'", self.next_mark())),
                18 => frontend::put_query(&mut out, format!("echo '{}'", self.next_mark())),
                _ if habits.alters => {
                    frontend::put_query(&mut out, format!("alter '{}'", self.next_mark()));
                }
                _ => self.put_read(&mut out, random, reads),
            }
            steps.push(out);
            if random.random_bool(0.1) {
                steps.push(portal_again(random));
            }
        }
        steps.push(control(random, ["commit", "COMMIT", "rollback"]));
        if random.random_bool(0.2) {
            // All of it at once.
            steps = vec![steps.concat()];
        }
        self.script.extend(steps);
    }

    /// Names mean something else in this session for a while, and it is left like that or not.
    fn become_strange(&mut self, random: &mut StdRng, reads: &Reading) {
        let mut texts = Vec::new();
        let made = if reads.unseen { "become other" } else { "set search_path other" };
        let inside = random.random_bool(0.8);
        texts.extend(inside.then(|| "begin".to_owned()));
        if random.random_bool(0.5) {
            texts.push(self.read(random, reads).literal());
        }
        texts.push(made.to_owned());
        for _ in 0..random.random_range(0..3) {
            texts.push(self.read(random, reads).literal());
        }
        let end = ["commit", "commit", "rollback"][random.random_range(0..3)];
        texts.extend(inside.then(|| end.to_owned()));
        for _ in 0..random.random_range(0..2) {
            texts.push(self.read(random, reads).literal());
        }
        if random.random_bool(0.3) {
            // It takes away what was asked for at the log-in, which a direct connection keeps.
            let discards = self.startup.is_empty() && random.random_bool(0.5);
            let clean = if discards { "discard all" } else { "reset search_path" };
            texts.push(clean.to_owned());
        }
        for text in texts {
            let mut out = Vec::new();
            frontend::put_query(&mut out, text);
            self.script.push_back(out);
        }
    }

    /// A key that is asked for: mostly one of few.
    fn key(&self, random: &mut StdRng, reads: &Reading) -> i32 {
        let all = 2 * reads.clients as i32 + OUTSIDE_KEYS;
        match random.random_range(0..10) {
            0..3 => self.own_key(random),
            3..6 => all - 1 - random.random_range(0..2),
            6..8 => random.random_range(0..4.min(all)),
            _ => random.random_range(0..all),
        }
    }

    /// Nobody else writes it, so nobody waits for locks.
    fn own_key(&self, random: &mut StdRng) -> i32 {
        2 * self.number as i32 + random.random_range(0..2)
    }

    fn read(&self, random: &mut StdRng, reads: &Reading) -> Said {
        if random.random_bool(0.8) {
            return reads.often[random.random_range(0..reads.often.len())].clone();
        }
        read(random, reads.finds, &mut |random| self.key(random, reads))
    }

    fn put_read(&mut self, out: &mut Vec<u8>, random: &mut StdRng, reads: &Reading) {
        let said = self.read(random, reads);
        if random.random_bool(0.5) {
            return frontend::put_query(out, said.literal());
        }
        self.put_extended(out, random, &said);
    }

    fn put_write(&mut self, out: &mut Vec<u8>, random: &mut StdRng) {
        let table = ["t1", "t2", "both"][random.random_range(0..3)];
        let (key, group) = (self.own_key(random), random.random_range(0..GROUPS));
        let mark = self.next_mark();
        let said = match random.random_range(0..5) {
            0 => Said::new(format!("del {table} ? ? '{mark}'"), [key, group]),
            _ => Said::new(format!("put {table} ? ? '{mark}'"), [key, group]),
        };
        if random.random_bool(0.7) {
            return frontend::put_query(out, said.literal());
        }
        self.put_extended(out, random, &said);
    }

    fn put_extended(&mut self, out: &mut Vec<u8>, random: &mut StdRng, said: &Said) {
        let literal = random.random_bool(0.2);
        let text = if literal { said.literal() } else { said.parameters() };
        let types = [Type::None, Type::None, Type::Int4, Type::Int8][random.random_range(0..4)];
        let binary = types != Type::None && random.random_bool(0.5);
        let known = self.prepared.iter().position(|known| *known == text);
        let name = match known {
            // It is prepared with other types than these now and then; the model does not care.
            Some(at) if types == Type::None => format!("r{at}"),
            None if types == Type::None && !text.contains('\'') && random.random_bool(0.5) => {
                self.prepared.push(text.clone());
                format!("r{}", self.prepared.len() - 1)
            }
            _ => String::new(),
        };
        let numbers = if literal { &[][..] } else { &said.numbers[..] };
        if known.is_none() || name.is_empty() || random.random_bool(0.02) {
            let mut declared = (numbers.len() as u16).to_be_bytes().to_vec();
            let oid: u32 = if types == Type::Int8 { 20 } else { 23 };
            numbers.iter().for_each(|_| declared.extend(oid.to_be_bytes()));
            let declared = if types == Type::None { &[][..] } else { &declared };
            frontend::put_parse(out, name.as_bytes(), text.as_bytes(), declared);
        }
        put_bind(out, &name, numbers, types, binary, random.random_bool(0.3));
        if random.random_bool(0.6) {
            frontend::put_describe(out, Target::Portal, b"");
        }
        frontend::put_execute(out, b"", 0);
        frontend::put_sync(out);
    }
}

/// Some read of keys that `key` gives.
fn read(random: &mut StdRng, finds: bool, key: &mut dyn FnMut(&mut StdRng) -> i32) -> Said {
    let word = match finds && random.random_bool(0.6) {
        true => ["find", "find", "count"][random.random_range(0..3)],
        false if random.random_bool(0.1) => "lookz",
        false => "look",
    };
    let table = ["t1", "t1", "t2", "both"][random.random_range(0..4)];
    let (one, other, third) = (key(random), key(random), key(random));
    match random.random_range(0..20) {
        0..10 => Said::new(format!("{word} {table} key ?"), [one]),
        10..13 => Said::new(format!("{word} {table} in ? ? ?"), [one, other, third]),
        13..16 => {
            Said::new(format!("{word} {table} from ? to ?"), [one.min(other), one.max(other)])
        }
        16..19 => Said::new(format!("{word} {table} group ?"), [random.random_range(0..GROUPS)]),
        _ => Said::new(format!("{word} {table} all"), []),
    }
}

/// Reads that come often.
pub fn often(random: &mut StdRng, clients: usize, finds: bool) -> Vec<Said> {
    let all = 2 * clients as i32 + OUTSIDE_KEYS;
    let mut key = |random: &mut StdRng| random.random_range(0..all);
    (0..random.random_range(2..8)).map(|_| read(random, finds, &mut key)).collect()
}

/// One of these words, in one of the protocols.
fn control(random: &mut StdRng, words: [&str; 3]) -> Vec<u8> {
    let (mut out, word) = (Vec::new(), words[random.random_range(0..words.len())]);
    if random.random_bool(0.7) {
        frontend::put_query(&mut out, word);
        return out;
    }
    frontend::put_parse(&mut out, b"", word.as_bytes(), &[]);
    frontend::put_bind(&mut out, b"", b"", &[]);
    if random.random_bool(0.5) {
        frontend::put_describe(&mut out, Target::Portal, b"");
    }
    frontend::put_execute(&mut out, b"", 0);
    frontend::put_sync(&mut out);
    out
}

/// Something about the unnamed portal, if there is one.
fn portal_again(random: &mut StdRng) -> Vec<u8> {
    let mut out = Vec::new();
    if random.random_bool(0.5) {
        frontend::put_describe(&mut out, Target::Portal, b"");
    }
    if random.random_bool(0.8) {
        frontend::put_execute(&mut out, b"", random.random_range(0..3));
    }
    if random.random_bool(0.2) {
        frontend::put_close(&mut out, Target::Portal, b"");
    }
    frontend::put_sync(&mut out);
    out
}

fn put_bind(
    out: &mut Vec<u8>,
    name: &str,
    numbers: &[i32],
    types: Type,
    binary: bool,
    binary_result: bool,
) {
    let mut body = vec![0];
    body.extend_from_slice(name.as_bytes());
    body.push(0);
    match binary {
        true => body.extend([0, 1, 0, 1]),
        false => body.extend([0, 0]),
    }
    body.extend((numbers.len() as u16).to_be_bytes());
    for number in numbers {
        let value = match (binary, types) {
            (true, Type::Int8) => i64::from(*number).to_be_bytes().to_vec(),
            (true, _) => number.to_be_bytes().to_vec(),
            (false, _) => number.to_string().into_bytes(),
        };
        body.extend((value.len() as u32).to_be_bytes());
        body.extend(value);
    }
    match binary_result {
        true => body.extend([0, 1, 0, 1]),
        false => body.extend([0, 0]),
    }
    out.push(tag::BIND);
    out.extend((body.len() as u32 + 4).to_be_bytes());
    out.extend(body);
}
