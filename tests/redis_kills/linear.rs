//! Whether a key's history is linearizable: whether there is an order of its operations that
//! explains every answer and in which nothing comes before what was answered before it began.
//!
//! The search of Wing and Gong, with Lowe's memory of what has been tried ("Testing for
//! linearizability", 2017). A connection's operations happen in their order, so a place in the
//! search is how far each connection has got, and the state. What was never answered may come at
//! any time after its invocation, or not at all.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};

use crate::history::{Event, Outcome, NEVER};
use crate::model::{Op, State};

/// Places that are tried before the question is left open.
const STEPS_MAX: usize = 1_000_000;

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Linearizable,
    /// No order explains it.
    Broken,
    /// The search has become too long.
    Open,
}

/// Judges the history of one key that did not exist before. Events of a lane in their order.
pub fn judge(events: &[Event]) -> Verdict {
    let lanes = lanes(events);
    let mut tried = HashSet::new();
    let mut places = vec![(vec![0u16; lanes.len()], State::default())];
    let mut steps = 0;
    while let Some((reached, state)) = places.pop() {
        if nothing_answered_is_left(&lanes, &reached) {
            return Verdict::Linearizable;
        }
        let heads = heads(&lanes, &reached);
        steps += 1;
        if steps > STEPS_MAX {
            return Verdict::Open;
        }
        // The last one pushed is tried first.
        for (at, event) in candidates(heads).into_iter().rev() {
            let mut next = reached.clone();
            next[at] += 1;
            let unknown = event.outcome == Outcome::Unknown;
            if unknown && usize::from(next[at]) < lanes[at].len() {
                visit(&mut tried, &mut places, next.clone(), state.clone());
            }
            let Some((after, answer)) = state.apply(&event.op) else { continue };
            let fits = match &event.outcome {
                Outcome::Answered(answered) => *answered == answer,
                Outcome::Refused(_) => false,
                Outcome::Unknown => after != state,
            };
            if fits {
                visit(&mut tried, &mut places, next, after);
            }
        }
    }
    Verdict::Broken
}

type Place = (Vec<u16>, State);

fn visit(tried: &mut HashSet<u64>, places: &mut Vec<Place>, reached: Vec<u16>, state: State) {
    let mut hasher = DefaultHasher::new();
    (&reached, &state).hash(&mut hasher);
    if tried.insert(hasher.finish()) {
        places.push((reached, state));
    }
}

/// By connection; what has not happened is left out, and what time does is added.
fn lanes(events: &[Event]) -> Vec<Vec<Event>> {
    let mut lanes: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    let mut times = Vec::new();
    for event in events {
        if matches!(event.outcome, Outcome::Refused(_)) {
            continue;
        }
        if let Op::Expire(id @ 1..) = event.op {
            times.push(vec![Event {
                op: Op::Vanish(id),
                answered: NEVER,
                outcome: Outcome::Unknown,
                ..event.clone()
            }]);
        }
        lanes.entry(event.lane).or_default().push(event.clone());
    }
    lanes.into_values().chain(times).collect()
}

fn nothing_answered_is_left(lanes: &[Vec<Event>], reached: &[u16]) -> bool {
    lanes.iter().zip(reached).all(|(lane, reached)| {
        lane[usize::from(*reached)..].iter().all(|event| event.outcome == Outcome::Unknown)
    })
}

fn heads<'a>(lanes: &'a [Vec<Event>], reached: &[u16]) -> Vec<(usize, &'a Event)> {
    let heads = lanes.iter().zip(reached).enumerate();
    heads.filter_map(|(at, (lane, reached))| Some((at, lane.get(usize::from(*reached))?))).collect()
}

/// Those that may come next, in the order in which they are worth trying.
fn candidates(mut heads: Vec<(usize, &Event)>) -> Vec<(usize, &Event)> {
    let first_answer = heads.iter().map(|(_, event)| event.answered).min().unwrap_or(NEVER);
    heads.retain(|(_, event)| event.invoked <= first_answer);
    heads.sort_by_key(|(_, event)| event.answered);
    heads
}

/// The history up to the earliest moment at which it is broken already: what was answered later
/// counts as not answered, what began later is left out.
pub fn shortest_broken(events: &[Event]) -> Vec<Event> {
    let mut moments: Vec<u64> =
        events.iter().map(|event| event.answered).filter(|at| *at != NEVER).collect();
    moments.sort_unstable();
    let broken = |moment: &u64| judge(&until(events, *moment)) == Verdict::Broken;
    let at = moments.partition_point(|moment| !broken(moment));
    moments.get(at).map_or_else(|| events.to_vec(), |moment| until(events, *moment))
}

fn until(events: &[Event], moment: u64) -> Vec<Event> {
    let begun = events.iter().filter(|event| event.invoked <= moment);
    let cut = begun.map(|event| match event.answered > moment {
        true => Event { answered: NEVER, outcome: Outcome::Unknown, ..event.clone() },
        false => event.clone(),
    });
    cut.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Answer, Value};

    fn event(lane: u32, op: Op, from: u64, to: u64, answer: Option<Answer>) -> Event {
        let outcome = answer.map_or(Outcome::Unknown, Outcome::Answered);
        Event { lane, key: "k".into(), op, invoked: from, answered: to, outcome }
    }

    fn read(lane: u32, from: u64, to: u64, text: &str) -> Event {
        let value = Value::Text(text.into());
        event(lane, Op::Read, from, to, Some(Answer::Whole(value)))
    }

    #[test]
    fn a_lost_or_doubled_write_is_found() {
        let add = |lane, from, to, n| event(lane, Op::IncrBy(1), from, to, Some(Answer::Number(n)));
        let unknown = event(3, Op::IncrBy(1), 2, NEVER, None);
        let base = vec![add(1, 0, 10, 1), add(2, 5, 20, 2), unknown];
        let with = |text: &str| [base.clone(), vec![read(4, 30, 40, text)]].concat();
        assert_eq!(judge(&with("2")), Verdict::Linearizable);
        assert_eq!(judge(&with("3")), Verdict::Linearizable);
        assert_eq!(judge(&with("1")), Verdict::Broken);
        assert_eq!(judge(&with("4")), Verdict::Broken);
    }

    #[test]
    fn what_was_shown_may_not_be_gone_later() {
        let unknown = event(1, Op::Set("a".into()), 0, NEVER, None);
        let nothing = event(3, Op::Read, 20, 30, Some(Answer::Whole(Value::Absent)));
        assert_eq!(judge(&[unknown.clone(), nothing.clone()]), Verdict::Linearizable);
        let events = [unknown, read(2, 5, 10, "a"), nothing, read(4, 40, 50, "b")];
        assert_eq!(judge(&events[..3]), Verdict::Broken);
        assert_eq!(shortest_broken(&events).len(), 3);
    }

    #[test]
    fn a_connection_keeps_its_order_though_its_commands_overlap() {
        let set = |text: &str| event(1, Op::Set(text.into()), 0, 10, Some(Answer::Done));
        let events = [set("a"), set("b"), read(2, 20, 30, "a")];
        assert_eq!(judge(&events), Verdict::Broken);
        assert_eq!(judge(&[set("b"), set("a"), read(2, 20, 30, "a")]), Verdict::Linearizable);
    }

    #[test]
    fn what_expires_does_so_once_and_not_if_it_was_overwritten() {
        let set = event(1, Op::Set("a".into()), 0, 1, Some(Answer::Done));
        let expire = event(1, Op::Expire(7), 2, 3, Some(Answer::Number(1)));
        let nothing = event(1, Op::Read, 8, 9, Some(Answer::Whole(Value::Absent)));
        let gone = [set.clone(), expire.clone(), nothing.clone()];
        assert_eq!(judge(&gone), Verdict::Linearizable);
        let again = event(1, Op::Set("b".into()), 4, 5, Some(Answer::Done));
        assert_eq!(judge(&[set, expire, again, nothing]), Verdict::Broken);
    }
}
