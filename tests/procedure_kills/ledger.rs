//! What clients were told, what the tables say, and whether that fits.

use std::collections::BTreeMap;
use std::fmt;

/// What a client was told of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// It is not done; the SQLSTATE, or why.
    Failed(String),
    /// Nobody knows; the SQLSTATE, or how the connection ended.
    Unknown(String),
}

/// An amount that goes from one account to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payment {
    pub from: i32,
    pub to: i32,
    pub amount: i64,
}

#[derive(Debug, Clone)]
pub struct Call {
    pub token: String,
    pub payment: Payment,
    /// The procedure has to refuse it.
    pub bad: bool,
    pub outcome: Outcome,
}

/// All that is in the tables, read at one moment.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    pub ledger: Vec<(String, Payment)>,
    pub balances: BTreeMap<i32, i64>,
}

/// How many calls ended how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub done: u64,
    pub failed: u64,
    pub unknown: u64,
}

impl Tally {
    pub fn of(calls: &[Call]) -> Tally {
        let mut tally = Tally::default();
        for call in calls {
            match call.outcome {
                Outcome::Done => tally.done += 1,
                Outcome::Failed(_) => tally.failed += 1,
                Outcome::Unknown(_) => tally.unknown += 1,
            }
        }
        tally
    }

    pub fn add(&mut self, other: &Tally) {
        self.done += other.done;
        self.failed += other.failed;
        self.unknown += other.unknown;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls done, {} failed, {} unknown", self.done, self.failed, self.unknown)
    }
}

/// Everything that is wrong. Each account had `opening` before the first call.
pub fn judge(calls: &[Call], tables: &Tables, opening: i64) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut rows: BTreeMap<&str, Vec<Payment>> = BTreeMap::new();
    for (token, payment) in &tables.ledger {
        rows.entry(token).or_default().push(*payment);
    }
    for call in calls {
        let found = rows.remove(call.token.as_str()).unwrap_or_default();
        if call.bad && call.outcome == Outcome::Done {
            wrong.push(format!("it was to be refused and was not: {call:?}"));
        }
        let right = match call.outcome {
            Outcome::Done => found.len() == 1,
            Outcome::Failed(_) => found.is_empty(),
            Outcome::Unknown(_) => found.len() <= usize::from(!call.bad),
        };
        if !right {
            wrong.push(format!("{} times in the ledger: {call:?}", found.len()));
        }
        if found.iter().any(|payment| *payment != call.payment) {
            wrong.push(format!("another payment in the ledger: {found:?} of {call:?}"));
        }
    }
    wrong.extend(rows.keys().map(|token| format!("nobody has called with {token}")));
    let mut expected: BTreeMap<i32, i64> =
        tables.balances.keys().map(|account| (*account, opening)).collect();
    for (_, payment) in &tables.ledger {
        *expected.entry(payment.from).or_default() -= payment.amount;
        *expected.entry(payment.to).or_default() += payment.amount;
    }
    if expected != tables.balances {
        wrong.push(format!("balances {:?}, by the ledger {expected:?}", tables.balances));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENING: i64 = 100;

    fn call(token: &str, outcome: Outcome) -> Call {
        let payment = Payment { from: 1, to: 2, amount: 7 };
        Call { token: token.to_owned(), payment, bad: false, outcome }
    }

    fn calls() -> Vec<Call> {
        let mut bad = call("bad", Outcome::Failed("P0099".to_owned()));
        bad.bad = true;
        vec![
            call("done", Outcome::Done),
            call("failed", Outcome::Failed("23514".to_owned())),
            call("known to be there by nobody", Outcome::Unknown("08007".to_owned())),
            call("not there", Outcome::Unknown("lost".to_owned())),
            bad,
        ]
    }

    /// With these tokens in it, and balances that fit.
    fn tables(tokens: &[&str]) -> Tables {
        let payment = Payment { from: 1, to: 2, amount: 7 };
        let ledger: Vec<_> = tokens.iter().map(|token| ((*token).to_owned(), payment)).collect();
        let moved = 7 * ledger.len() as i64;
        let balances = [(1, OPENING - moved), (2, OPENING + moved), (3, OPENING)];
        Tables { ledger, balances: balances.into() }
    }

    fn sound() -> Tables {
        tables(&["done", "known to be there by nobody"])
    }

    #[track_caller]
    fn finds(calls: &[Call], tables: &Tables, part: &str) {
        let wrong = judge(calls, tables, OPENING);
        assert!(wrong.len() == 1 && wrong[0].contains(part), "{wrong:?}");
    }

    #[test]
    fn a_sound_ledger_is_sound() {
        assert_eq!(judge(&calls(), &sound(), OPENING), [""; 0]);
        assert_eq!(judge(&calls(), &tables(&["done"]), OPENING), [""; 0]);
    }

    #[test]
    fn an_acknowledged_call_that_is_lost_is_found() {
        finds(&calls(), &tables(&[]), "0 times in the ledger: Call { token: \"done\"");
    }

    #[test]
    fn a_call_that_was_done_twice_is_found() {
        finds(&calls(), &tables(&["done", "done"]), "2 times in the ledger");
        let unknown = "known to be there by nobody";
        finds(&calls(), &tables(&["done", unknown, unknown]), "2 times in the ledger");
    }

    #[test]
    fn a_call_that_failed_and_is_there_is_found() {
        finds(&calls(), &tables(&["done", "failed"]), "1 times in the ledger");
        finds(&calls(), &tables(&["done", "bad"]), "1 times in the ledger");
    }

    #[test]
    fn a_refusal_that_nobody_was_told_of_is_found() {
        let mut calls = calls();
        calls[4].outcome = Outcome::Unknown("08007".to_owned());
        assert_eq!(judge(&calls, &sound(), OPENING), [""; 0]);
        finds(&calls, &tables(&["done", "bad"]), "1 times in the ledger");
        calls[4].outcome = Outcome::Done;
        let wrong = judge(&calls, &sound(), OPENING);
        assert!(wrong[0].contains("to be refused"), "{wrong:?}");
    }

    #[test]
    fn money_that_is_missing_is_found() {
        let mut half = sound();
        half.balances.insert(2, OPENING);
        finds(&calls(), &half, "by the ledger");
        let mut wrong = sound();
        wrong.ledger[0].1.amount = 8;
        let found = judge(&calls(), &wrong, OPENING);
        assert!(found[0].contains("another payment") && found.len() == 2, "{found:?}");
    }

    #[test]
    fn a_token_of_nobody_is_found() {
        finds(&calls(), &tables(&["done", "stranger"]), "nobody has called with stranger");
    }
}
