//! SORT and SORT_RO.
//!
//! Everything is looked at before anything is written: the keys that patterns name are known only
//! when the elements are, so that a run may find that some are not in memory, and a later one, that
//! has them, that what GET wants is not.
//!
//! <https://redis.io/docs/latest/commands/sort/>

use std::cmp::Ordering;

use super::{number, Command, Flags, Keys};
use crate::args::Args;
use crate::call::{whole, Call};
use crate::double;
use crate::failure::{Failure, Outcome};
use crate::keyspace::{Expiry, Keyspace};
use crate::value::{Kind, List, Tracked, Value};

/// Within EXEC a pattern's key may be missing when commands before it have changed something.
const MISSES: Flags = Flags::MOVABLE_KEYS.and(Flags::UNDOABLE);

pub const COMMANDS: &[Command] = &[
    Command {
        name: "sort",
        arity: -2,
        flags: Flags::WRITE.and(Flags::DENY_OOM).and(MISSES),
        keys: Keys::By(places),
        group: "generic",
        run: |call| sort(call, true),
    },
    Command {
        name: "sort_ro",
        arity: -2,
        flags: Flags::READONLY.and(MISSES),
        keys: Keys::Range(1, 1, 1),
        group: "generic",
        run: |call| sort(call, false),
    },
];

/// What the options say.
#[derive(Default)]
struct Wish<'a> {
    descending: bool,
    alpha: bool,
    start: i64,
    /// Negative: all.
    count: i64,
    by: Option<Pattern<'a>>,
    /// BY something that does not depend on the element: left in the order in which it is.
    unsorted: bool,
    get: Vec<Pattern<'a>>,
    store: Option<&'a [u8]>,
}

/// How a key is made of an element.
#[derive(Clone, Copy)]
enum Pattern<'a> {
    /// `#`
    Itself,
    /// Without a star: there is no such key.
    Nothing,
    Key {
        before: &'a [u8],
        after: &'a [u8],
        field: Option<&'a [u8]>,
    },
}

impl<'a> Pattern<'a> {
    fn parse(word: &'a [u8]) -> Pattern<'a> {
        if word == b"#" {
            return Pattern::Itself;
        }
        let Some(star) = memchr::memchr(b'*', word) else { return Pattern::Nothing };
        let (before, rest) = (&word[..star], &word[star + 1..]);
        match memchr::memmem::find(rest, b"->") {
            Some(arrow) if arrow + 2 < rest.len() => {
                Pattern::Key { before, after: &rest[..arrow], field: Some(&rest[arrow + 2..]) }
            }
            _ => Pattern::Key { before, after: rest, field: None },
        }
    }

    /// What the pattern leads to from an element.
    fn find(&self, keys: &mut Keyspace, element: &[u8]) -> Result<Option<Box<[u8]>>, Failure> {
        let Pattern::Key { before, after, field } = self else {
            return Ok(matches!(self, Pattern::Itself).then(|| element.into()));
        };
        let key = [before, element, after].concat();
        Ok(match (keys.look(&key)?, field) {
            (Some(Value::Str(text)), None) => Some(text.with(|bytes| bytes.into())),
            (Some(Value::Hash(hash)), Some(field)) => hash.get(field).map(Box::from),
            _ => None,
        })
    }
}

fn parse(args: Args<'_>, may_store: bool) -> Result<Wish<'_>, Failure> {
    let mut wish = Wish { count: -1, ..Wish::default() };
    let mut at = 2;
    while at < args.len() {
        let left = args.len() - at - 1;
        if args.is(at, "asc") {
            wish.descending = false;
        } else if args.is(at, "desc") {
            wish.descending = true;
        } else if args.is(at, "alpha") {
            wish.alpha = true;
        } else if args.is(at, "limit") && left >= 2 {
            wish.start = number::integer(args.at(at + 1))?;
            wish.count = number::integer(args.at(at + 2))?;
            at += 2;
        } else if args.is(at, "store") && left >= 1 && may_store {
            wish.store = Some(args.at(at + 1));
            at += 1;
        } else if args.is(at, "by") && left >= 1 {
            let by = args.at(at + 1);
            wish.by = Some(Pattern::parse(by));
            wish.unsorted |= !by.contains(&b'*');
            at += 1;
        } else if args.is(at, "get") && left >= 1 {
            wish.get.push(Pattern::parse(args.at(at + 1)));
            at += 1;
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    Ok(wish)
}

/// The key, and the last one that STORE names.
fn places(args: Args<'_>) -> Option<Vec<usize>> {
    let (mut places, mut at) = (vec![1], 2);
    while at < args.len() {
        if args.is(at, "limit") {
            at += 2;
        } else if args.is(at, "by") || args.is(at, "get") {
            at += 1;
        } else if args.is(at, "store") && at + 1 < args.len() {
            places.truncate(1);
            places.push(at + 1);
            at += 1;
        }
        at += 1;
    }
    Some(places)
}

fn sort(call: &mut Call<'_>, may_store: bool) -> Outcome {
    let mut wish = parse(call.args, may_store)?;
    let (kind, mut elements) = elements(call.keys, call.args.at(1))?;
    // What has no order gets one where a replay must give the same.
    if wish.unsorted && kind == Kind::Set && (wish.store.is_some() || call.nested) {
        (wish.unsorted, wish.alpha, wish.by) = (false, true, None);
    }
    if !wish.unsorted {
        elements = in_order(call.keys, &wish, elements)?;
    } else if wish.descending && kind != Kind::Set {
        elements.reverse();
    }
    let len = elements.len();
    let start = usize::try_from(wish.start).unwrap_or(0).min(len);
    let count = usize::try_from(wish.count).unwrap_or(len).min(len - start);
    let wanted = &elements[start..start + count];
    if wish.get.is_empty() {
        let told = wanted.iter().map(|element| Some(&**element));
        return give(call, &wish, told.collect());
    }
    let found = find_all(call.keys, wanted, &wish.get)?;
    give(call, &wish, found.iter().map(Option::as_deref).collect())
}

/// What is to be sorted, and what kind of value it is of.
type Found = (Kind, Vec<Box<[u8]>>);

fn elements(keys: &mut Keyspace, key: &[u8]) -> Result<Found, Failure> {
    Ok(match keys.look(key)? {
        None => (Kind::List, Vec::new()),
        Some(Value::List(list)) => (Kind::List, list.iter().map(Box::from).collect()),
        Some(Value::Set(set)) => (Kind::Set, set.iter().map(|m| Box::from(&*m)).collect()),
        Some(Value::Zset(zset)) => (Kind::Zset, zset.iter().map(|(m, _)| Box::from(m)).collect()),
        Some(_) => return Err(Failure::WRONG_TYPE),
    })
}

/// What each pattern leads to from each element. Keys that are missing are asked for together.
fn find_all(
    keys: &mut Keyspace,
    elements: &[Box<[u8]>],
    patterns: &[Pattern<'_>],
) -> Result<Vec<Option<Box<[u8]>>>, Failure> {
    let mut found = Vec::with_capacity(elements.len() * patterns.len());
    let mut missing = false;
    for element in elements {
        for pattern in patterns {
            match pattern.find(keys, element) {
                Ok(value) => found.push(value),
                Err(Failure::Miss) => missing = true,
                Err(other) => return Err(other),
            }
        }
    }
    if missing {
        Err(Failure::Miss)
    } else {
        Ok(found)
    }
}

fn in_order(
    keys: &mut Keyspace,
    wish: &Wish<'_>,
    elements: Vec<Box<[u8]>>,
) -> Result<Vec<Box<[u8]>>, Failure> {
    let turned = |order: Ordering| if wish.descending { order.reverse() } else { order };
    let weights = match wish.by {
        Some(by) => Some(find_all(keys, &elements, &[by])?),
        None => None,
    };
    if wish.alpha {
        let Some(weights) = weights else {
            let mut elements = elements;
            elements.sort_by(|a, b| turned(a.cmp(b)));
            return Ok(elements);
        };
        let mut pairs: Vec<_> = weights.into_iter().zip(elements).collect();
        pairs.sort_by(|(a, _), (b, _)| turned(a.cmp(b)));
        return Ok(pairs.into_iter().map(|(_, element)| element).collect());
    }
    let not_a_number = Failure::text("ERR One or more scores can't be converted into double");
    let scores: Option<Vec<f64>> = match &weights {
        Some(weights) => {
            weights.iter().map(|weight| weight.as_deref().map_or(Some(0.0), score)).collect()
        }
        None => elements.iter().map(|element| score(element)).collect(),
    };
    let mut pairs: Vec<_> = scores.ok_or(not_a_number)?.into_iter().zip(elements).collect();
    pairs.sort_by(|(a, x), (b, y)| {
        turned(a.partial_cmp(b).unwrap_or(Ordering::Equal).then_with(|| x.cmp(y)))
    });
    Ok(pairs.into_iter().map(|(_, element)| element).collect())
}

/// A number as `strtod` reads it, up to a zero byte and without `ERANGE`, which it also says of
/// numbers that a double holds with fewer digits.
fn score(text: &[u8]) -> Option<f64> {
    double::in_range(whole(text)).filter(|value| !value.is_nan() && !value.is_subnormal())
}

/// Replies with these, or stores them as a list.
fn give(call: &mut Call<'_>, wish: &Wish<'_>, values: Vec<Option<&[u8]>>) -> Outcome {
    let Some(store) = wish.store else {
        call.reply.array(values.len());
        for value in values {
            match value {
                Some(value) => call.reply.bulk(value),
                None => call.reply.null(),
            }
        }
        return Ok(());
    };
    let mut list = List::default();
    values.iter().for_each(|value| list.push_back(value.unwrap_or_default()));
    if list.is_empty() {
        if call.keys.remove(store)? {
            call.event(b'g', "del", store);
        }
    } else {
        call.keys.set(store, Value::List(Box::new(list)), Expiry::Never)?;
        call.keys.signal(store);
        call.event(b'l', "sortstore", store);
    }
    call.reply.integer(values.len() as i64);
    Ok(())
}
