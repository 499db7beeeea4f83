//! Leaves out what a difference does not need, by playing it again and again.

use std::time::{Duration, Instant};

use crate::scenario::Step;

/// Past this the rest stays as it is.
const TIME_MAX: Duration = Duration::from_secs(90);

/// The fewest steps found that still differ, each with the fewest commands. `differs` plays some
/// and says so; `steps` differ.
pub fn shrink(steps: Vec<Step>, mut differs: impl FnMut(&[Step]) -> bool) -> Vec<Step> {
    let end = Instant::now() + TIME_MAX;
    let mut fails = |steps: &[Step]| Instant::now() < end && differs(steps);
    let mut steps = steps;
    let single = one_command_each(&steps);
    if fails(&single) {
        steps = single;
    }
    steps = fewest(steps, &mut fails);
    for at in 0..steps.len() {
        let Step::Send { client, commands, pieces } = steps[at].clone() else {
            continue;
        };
        let commands = fewest(commands, &mut |commands| {
            let mut candidate = steps.clone();
            candidate[at] = Step::Send { client, commands: commands.to_vec(), pieces };
            fails(&candidate)
        });
        steps[at] = Step::Send { client, commands, pieces };
    }
    // What was needed by something that has gone since.
    fewest(steps, &mut fails)
}

fn one_command_each(steps: &[Step]) -> Vec<Step> {
    let split = |step: &Step| match step {
        Step::Send { client, commands, .. } => commands
            .iter()
            .map(|command| Step::Send {
                client: *client,
                commands: vec![command.clone()],
                pieces: 1,
            })
            .collect(),
        other => vec![other.clone()],
    };
    steps.iter().flat_map(split).collect()
}

/// Delta debugging: leaves out ever smaller parts while `fails` holds for the rest.
///
/// Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002.
fn fewest<T: Clone>(items: Vec<T>, fails: &mut impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut items = items;
    let mut size = items.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        let before = items.len();
        while at < items.len() {
            let end = (at + size).min(items.len());
            let rest = [&items[..at], &items[end..]].concat();
            if !rest.is_empty() && fails(&rest) {
                items = rest;
            } else {
                at = end;
            }
        }
        size = match size {
            1 if items.len() < before => 1,
            1 => 0,
            _ => size / 2,
        };
    }
    items
}

#[test]
fn what_is_needed_stays() {
    let items: Vec<u32> = (0..100).collect();
    let mut played = 0;
    let left = fewest(items, &mut |items| {
        played += 1;
        [3, 50, 51].iter().all(|needed| items.contains(needed))
    });
    assert_eq!(left, [3, 50, 51]);
    assert!(played < 200, "{played} times");
}
