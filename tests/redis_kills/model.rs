//! What a key is and what commands do to it, one after the other: the sequential truth that
//! histories are compared with.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a key holds. An empty collection is [`Value::Absent`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Value {
    #[default]
    Absent,
    Text(String),
    List(VecDeque<String>),
    Set(BTreeSet<String>),
    Hash(BTreeMap<String, String>),
    Zset(BTreeMap<String, i64>),
}

/// A key at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub value: Value,
    /// The [`Op::Expire`] that is in force; 0 is none.
    pub expiry: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// GET, LRANGE, SMEMBERS, HGETALL, ZRANGE, or a look into the tables.
    Read,
    Set(String),
    /// SET with GET.
    SetGet(String),
    Append(String),
    IncrBy(i64),
    Del,
    /// What WATCH, GET, MULTI, SET, EXEC come to when EXEC was not refused.
    Swap(Value, String),
    LPush(String),
    RPop,
    LPop,
    SAdd(String),
    SRem(String),
    HSet(String, String),
    HDel(String),
    HIncrBy(String, i64),
    ZAdd(String, i64),
    ZIncrBy(String, i64),
    ZRem(String),
    /// EXPIRE or PEXPIRE, with a number of its own; 0 is one far away.
    Expire(u64),
    /// The time of an [`Op::Expire`] is over. Nobody commands it.
    Vanish(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Done,
    Number(i64),
    Whole(Value),
}

fn answer_text(text: Option<String>) -> Answer {
    Answer::Whole(text.map_or(Value::Absent, Value::Text))
}

impl State {
    /// The next state and the answer; none if the operation can't have happened here.
    pub fn apply(&self, op: &Op) -> Option<(State, Answer)> {
        let mut next = self.clone();
        let answer = match op {
            Op::Read => Answer::Whole(self.value.clone()),
            Op::Set(text) => next.overwrite(text, Answer::Done),
            Op::SetGet(text) => next.overwrite(text, Answer::Whole(self.value.clone())),
            Op::Swap(from, to) if *from == self.value => next.overwrite(to, Answer::Done),
            Op::Swap(..) => return None,
            Op::Append(_) | Op::IncrBy(_) => next.change_text(op)?,
            Op::Del => {
                next = State::default();
                Answer::Number(i64::from(self.value != Value::Absent))
            }
            Op::Expire(id) => {
                let there = self.value != Value::Absent;
                next.expiry = if there { *id } else { 0 };
                Answer::Number(i64::from(there))
            }
            Op::Vanish(id) if *id == self.expiry => {
                next = State::default();
                Answer::Done
            }
            Op::Vanish(_) => return None,
            Op::LPush(_) | Op::RPop | Op::LPop => next.change_list(op)?,
            Op::SAdd(_) | Op::SRem(_) => next.change_set(op)?,
            Op::HSet(..) | Op::HDel(_) | Op::HIncrBy(..) => next.change_hash(op)?,
            Op::ZAdd(..) | Op::ZIncrBy(..) | Op::ZRem(_) => next.change_zset(op)?,
        };
        next.settle();
        Some((next, answer))
    }

    fn overwrite(&mut self, text: &str, answer: Answer) -> Answer {
        *self = State { value: Value::Text(text.to_owned()), expiry: 0 };
        answer
    }

    /// A collection goes with its last element.
    fn settle(&mut self) {
        let empty = match &self.value {
            Value::Absent => true,
            Value::Text(_) => false,
            Value::List(list) => list.is_empty(),
            Value::Set(set) => set.is_empty(),
            Value::Hash(hash) => hash.is_empty(),
            Value::Zset(zset) => zset.is_empty(),
        };
        if empty {
            *self = State::default();
        }
    }

    fn change_text(&mut self, op: &Op) -> Option<Answer> {
        let before = match &self.value {
            Value::Absent => "",
            Value::Text(text) => text,
            _ => return None,
        };
        let (after, number) = match op {
            Op::Append(more) => {
                let after = format!("{before}{more}");
                let length = after.len() as i64;
                (after, length)
            }
            Op::IncrBy(by) => {
                let number = if before.is_empty() { 0 } else { before.parse::<i64>().ok()? } + by;
                (number.to_string(), number)
            }
            _ => return None,
        };
        self.value = Value::Text(after);
        Some(Answer::Number(number))
    }

    fn change_list(&mut self, op: &Op) -> Option<Answer> {
        if self.value == Value::Absent {
            self.value = Value::List(VecDeque::new());
        }
        let Value::List(list) = &mut self.value else { return None };
        Some(match op {
            Op::LPush(item) => {
                list.push_front(item.clone());
                Answer::Number(list.len() as i64)
            }
            Op::RPop => answer_text(list.pop_back()),
            Op::LPop => answer_text(list.pop_front()),
            _ => return None,
        })
    }

    fn change_set(&mut self, op: &Op) -> Option<Answer> {
        if self.value == Value::Absent {
            self.value = Value::Set(BTreeSet::new());
        }
        let Value::Set(set) = &mut self.value else { return None };
        Some(Answer::Number(i64::from(match op {
            Op::SAdd(member) => set.insert(member.clone()),
            Op::SRem(member) => set.remove(member),
            _ => return None,
        })))
    }

    fn change_hash(&mut self, op: &Op) -> Option<Answer> {
        if self.value == Value::Absent {
            self.value = Value::Hash(BTreeMap::new());
        }
        let Value::Hash(hash) = &mut self.value else { return None };
        Some(Answer::Number(match op {
            Op::HSet(field, text) => i64::from(hash.insert(field.clone(), text.clone()).is_none()),
            Op::HDel(field) => i64::from(hash.remove(field).is_some()),
            Op::HIncrBy(field, by) => {
                let before = hash.get(field).map_or(Some(0), |text| text.parse::<i64>().ok())?;
                hash.insert(field.clone(), (before + by).to_string());
                before + by
            }
            _ => return None,
        }))
    }

    fn change_zset(&mut self, op: &Op) -> Option<Answer> {
        if self.value == Value::Absent {
            self.value = Value::Zset(BTreeMap::new());
        }
        let Value::Zset(zset) = &mut self.value else { return None };
        Some(Answer::Number(match op {
            Op::ZAdd(member, score) => i64::from(zset.insert(member.clone(), *score).is_none()),
            Op::ZRem(member) => i64::from(zset.remove(member).is_some()),
            Op::ZIncrBy(member, by) => {
                let score = zset.entry(member.clone()).or_default();
                *score += by;
                *score
            }
            _ => return None,
        }))
    }
}
