//! What several sets have in common, together, or not.

use super::{Call, Failure, Outcome};
use crate::args::Args;
use crate::keyspace::Expiry;
use crate::value::{parse_integer, Member, Set, Tracked, Value};

/// The sets of these keys, none for a key that does not exist.
fn sets<'a>(call: &'a mut Call<'_>, keys: Args<'_>) -> Result<Vec<Option<&'a Set>>, Failure> {
    let mut outcome = Ok(());
    for key in keys.iter() {
        // Those that are missing are asked for together.
        match call.keys.set_of(key) {
            Ok(_) => {}
            Err(Failure::Miss) => outcome = Err(Failure::Miss),
            Err(other) => return Err(other),
        }
    }
    outcome?;
    let found = keys.iter().map(|key| match call.keys.seen(key) {
        Some(Value::Set(set)) => Some(&**set),
        _ => None,
    });
    Ok(found.collect())
}

/// Gives members of all sets to `each`, until it says that it is enough.
fn intersect<'a>(sets: &[Option<&'a Set>], mut each: impl FnMut(Member<'a>) -> bool) {
    let all: Option<Vec<&Set>> = sets.iter().copied().collect();
    let Some(mut all) = all else { return };
    all.sort_by_key(|set| set.len());
    let Some((smallest, others)) = all.split_first() else { return };
    let others: Vec<&Set> =
        others.iter().copied().filter(|other| !std::ptr::eq(*other, *smallest)).collect();
    for member in smallest.iter() {
        if others.iter().all(|other| other.contains(&member)) && !each(member) {
            return;
        }
    }
}

fn union(sets: &[Option<&Set>]) -> Set {
    Set::of(sets.iter().flatten().flat_map(|set| set.iter()))
}

fn difference(sets: &[Option<&Set>]) -> Set {
    let Some((Some(first), others)) = sets.split_first() else { return Set::default() };
    let mut others: Vec<&Set> = others.iter().copied().flatten().collect();
    if others.iter().any(|other| std::ptr::eq(*other, *first)) {
        return Set::default();
    }
    // Every member of the first is looked for in the others, or every member of the others is
    // taken from it, whichever is less work. The former gets an advantage: it stores less.
    let looking = first.len() * (others.len() + 1) / 2;
    let taking = first.len() + others.iter().map(|other| other.len()).sum::<usize>();
    if looking <= taking {
        others.sort_by_key(|other| std::cmp::Reverse(other.len()));
        return Set::of(
            first.iter().filter(|member| !others.iter().any(|other| other.contains(member))),
        );
    }
    let mut left = Set::of(first.iter());
    for other in others {
        for member in other.iter() {
            left.remove(&member);
        }
        if left.is_empty() {
            break;
        }
    }
    left
}

fn tell(call: &mut Call<'_>, set: &Set) {
    call.reply.set(set.len());
    set.iter().for_each(|member| call.reply.bulk(&member));
}

/// The set becomes the first key's value; without members, there is none.
fn store(call: &mut Call<'_>, mut set: Set, event: &'static str) -> Outcome {
    let key = call.args.at(1);
    let len = set.len();
    if len > 0 {
        set.renew();
        call.keys.set(key, Value::Set(Box::new(set)), Expiry::Never)?;
        call.event(b's', event, key);
    } else if call.keys.remove(key)? {
        call.event(b'g', "del", key);
    }
    call.reply.integer(len as i64);
    Ok(())
}

pub fn sinter(call: &mut Call<'_>) -> Outcome {
    let keys = call.args.from(1);
    // SMEMBERS of one set copies nothing.
    if keys.len() == 1 {
        let Some(set) = call.keys.set_of(keys.at(0))? else {
            call.reply.set(0);
            return Ok(());
        };
        call.reply.set(set.len());
        set.iter().for_each(|member| call.reply.bulk(&member));
        return Ok(());
    }
    let mut found = Vec::new();
    sets(call, keys).map(|sets| {
        intersect(&sets, |member| {
            found.push(Box::<[u8]>::from(&*member));
            true
        })
    })?;
    call.reply.set(found.len());
    found.iter().for_each(|member| call.reply.bulk(member));
    Ok(())
}

pub fn sinterstore(call: &mut Call<'_>) -> Outcome {
    let sets = sets(call, call.args.from(2))?;
    let mut found = Vec::new();
    intersect(&sets, |member| {
        found.push(member);
        true
    });
    let found = Set::of(found);
    store(call, found, "sinterstore")
}

pub fn sunion(call: &mut Call<'_>) -> Outcome {
    let set = union(&sets(call, call.args.from(1))?);
    tell(call, &set);
    Ok(())
}

pub fn sunionstore(call: &mut Call<'_>) -> Outcome {
    let set = union(&sets(call, call.args.from(2))?);
    store(call, set, "sunionstore")
}

pub fn sdiff(call: &mut Call<'_>) -> Outcome {
    let set = difference(&sets(call, call.args.from(1))?);
    tell(call, &set);
    Ok(())
}

pub fn sdiffstore(call: &mut Call<'_>) -> Outcome {
    let set = difference(&sets(call, call.args.from(2))?);
    store(call, set, "sdiffstore")
}

pub fn sintercard(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let count = parse_integer(args.at(1)).filter(|count| *count > 0);
    let count = count.ok_or(Failure::text("ERR numkeys should be greater than 0"))?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > args.len() - 2 {
        return Err(Failure::text("ERR Number of keys can't be greater than number of args"));
    }
    let (mut limit, mut at) = (0, 2 + count);
    while at < args.len() {
        if !args.is(at, "limit") || at + 1 == args.len() {
            return Err(Failure::SYNTAX);
        }
        let given = parse_integer(args.at(at + 1)).and_then(|limit| usize::try_from(limit).ok());
        limit = given.ok_or(Failure::text("ERR LIMIT can't be negative"))?;
        at += 2;
    }
    let sets = sets(call, args.from(2).to(count))?;
    let mut found = 0;
    intersect(&sets, |_| {
        found += 1;
        found != limit
    });
    call.reply.integer(found as i64);
    Ok(())
}
