//! A call that fails is its client's alone; deadlocks and serialization failures are tried again.

use super::books::{balanced, done, error_of, lock_gate, lock_waits, pay, payers, query, times};
use crate::coalescing::crowd::{learn, Crowd};
use crate::kit::{Config, WireClient};
use crate::traps::batch::Batch;

#[test]
fn an_error_of_one_car_is_that_clients_alone() {
    let mut crowd = payers(10, |config| config);
    let mut beside = crowd.beside();
    for round in 0..4 {
        let token = |number: i32| format!("{round}/{number}");
        let batches: Vec<Batch> = (0..10)
            .map(|number| match number {
                // It has paid before it fails.
                2 | 7 => pay(&token(number), 1, 2, 5_000, 0),
                _ => pay(&token(number), 1 + number % 3, 5, 10, 1),
            })
            .collect();
        let answers = crowd.together_by("train", &batches);
        for (number, answer) in (0..).zip(&answers) {
            let kept = usize::from(number != 2 && number != 7);
            match kept {
                0 => assert_eq!(error_of(answer).code, "23514"),
                _ => assert_eq!(done(answer), "CALL"),
            }
            assert_eq!(times(&mut beside, &token(number)), kept, "{number}");
        }
    }
    balanced(&mut beside);
}

/// `p_fails` times it raises `p_code`, which is counted by what no rollback takes back.
const STUBBORN: &str = "
    create table t(id int, n int not null default 0);
    insert into t select g from generate_series(1, 9) g;
    create sequence tries;
    create function stubborn(p_id int, p_fails int, p_code text) returns int language plpgsql as
    $$ declare got int; begin
        update t set n = n + 1 where id = p_id returning n into got;
        if p_fails > 0 and nextval('tries') <= p_fails then
            raise exception 'not yet' using errcode = p_code;
        end if;
        return got;
    end $$;
";

fn stubborn(retry: i64) -> impl FnOnce(Config) -> Config {
    move |config| {
        let of = |option: &str| format!("procedures.\"public.stubborn\".{option}");
        config.set(&of("mode"), "train").set(&of("retry"), retry)
    }
}

fn call(id: i32, fails: i32, code: &str) -> Batch {
    query(&format!("select stubborn({id}, {fails}, '{code}')"))
}

/// How often it was tried since the last time.
fn tries(beside: &mut WireClient) -> i64 {
    let tried = beside.one("select case when is_called then last_value else 0 end from tries");
    beside.run("alter sequence tries restart");
    tried.parse().expect("a number")
}

#[test]
fn serialization_failures_and_deadlocks_are_tried_again() {
    let mut crowd = Crowd::start(5, STUBBORN, stubborn(3));
    crowd.learn(&call(9, 0, ""), "train");
    let mut beside = crowd.beside();
    for code in ["40001", "40P01"] {
        for (fails, succeeds) in [(1, true), (3, true), (4, false), (9, false)] {
            beside.run("update t set n = 0");
            let mut batches = vec![call(1, 0, ""); 5];
            batches[2] = call(1, fails, code);
            let answers = crowd.together(&batches);
            assert_eq!(tries(&mut beside), i64::from(fails + 1).min(4), "{code}, {fails} times");
            for (number, answer) in answers.iter().enumerate() {
                match number == 2 && !succeeds {
                    true => assert_eq!(error_of(answer).code, code),
                    false => assert_eq!(done(answer), "SELECT 1"),
                }
            }
            let expected = if succeeds { "5" } else { "4" };
            assert_eq!(beside.one("select n from t where id = 1"), expected, "each done once");
        }
    }
}

#[test]
fn a_call_alone_is_tried_again_too_in_every_form() {
    let mut crowd = Crowd::start(1, STUBBORN, stubborn(2));
    crowd.learn(&call(9, 0, ""), "train");
    let mut beside = crowd.beside();
    let sql = "select stubborn($1, $2, $3)";
    let client = &mut crowd.clients[0];
    Batch::new().parse("named", sql).sync().answer(client);
    let unnamed =
        |fails: &str| Batch::new().parse("", sql).bind("", &["1", fails, "40001"]).execute().sync();
    let named = |fails: &str| Batch::new().bind("named", &["1", fails, "40001"]).execute().sync();
    learn(client, &unnamed("0"), "train");
    learn(client, &named("0"), "train");
    for (fails, succeeds) in [("2", true), ("3", false)] {
        let simple = call(1, fails.parse().expect("a number"), "40001");
        for batch in [simple, unnamed(fails), named(fails)] {
            let answer = batch.answer(client);
            assert_eq!(tries(&mut beside), 3);
            match succeeds {
                true => assert_eq!(done(&answer), "SELECT 1"),
                false => assert_eq!(error_of(&answer).code, "40001"),
            }
        }
    }
}

#[test]
fn with_retry_0_a_conflict_is_told_at_once() {
    let mut crowd = Crowd::start(3, STUBBORN, stubborn(0));
    crowd.learn(&call(9, 0, ""), "train");
    let mut beside = crowd.beside();
    let answers =
        crowd.together_by("train", &[call(1, 0, ""), call(1, 1, "40001"), call(1, 0, "")]);
    assert_eq!(tries(&mut beside), 1);
    assert_eq!(error_of(&answers[1]).code, "40001");
    assert_eq!(done(&answers[2]), "SELECT 1");
    assert_eq!(beside.one("select n from t where id = 1"), "2");
}

/// A call takes the account's row and waits for the gate's; a session beside the gateway has that
/// one, and then wants the account's.
fn deadlock(retry: i64) -> Vec<Vec<crate::kit::wireclient::Message>> {
    let settings = |config: Config| config.set("procedures.\"public.pay\".retry", retry);
    let mut crowd = payers(3, settings);
    let mut other = crowd.superuser();
    // It is the call that finds out.
    other.run("set deadlock_timeout = '1min'");
    lock_gate(&mut other, 1);
    let batches = [pay("a", 1, 2, 10, 1), pay("b", 1, 2, 10, 0), pay("c", 3, 4, 10, 0)];
    crowd.leave_together(&batches);
    let mut beside = crowd.beside();
    lock_waits(&mut crowd.superuser(), 1);
    other.run("update account set balance = balance where id = 1");
    other.run("commit");
    let answers = crowd.clients.iter_mut().map(WireClient::until_ready).collect();
    balanced(&mut beside);
    answers
}

#[test]
fn a_deadlock_with_a_session_beside_is_tried_again_or_told() {
    let answers = deadlock(3);
    answers.iter().for_each(|answer| assert_eq!(done(answer), "CALL"));
    let answers = deadlock(0);
    assert_eq!(error_of(&answers[0]).code, "40P01");
    answers[1..].iter().for_each(|answer| assert_eq!(done(answer), "CALL"));
}
