//! How calls travel is what configuration and comment say: bodies can see it by their settings and
//! their transaction.

use std::collections::BTreeSet;

use super::books::{done, error_of, query, value_of};
use crate::coalescing::crowd::{explained, Crowd};
use crate::kit::{Config, WireClient};
use crate::traps::batch::Batch;

/// `look` gives what a call has seen: `on 753`. Nothing tells a key: all that are sent at once are
/// on one train.
const TABLES: &str = "
    create table t(id int, n int not null default 0);
    insert into t select g from generate_series(1, 9) g;
    create table parent(id int primary key);
    create table child(id int references parent deferrable initially deferred);
    create function look(p_id int) returns text language plpgsql as $$ begin
        update t set n = n + 1 where id = p_id;
        if p_id > 100 then raise exception 'no % here', p_id; end if;
        if p_id > 50 then insert into child values (p_id); end if;
        return current_setting('synchronous_commit') || ' ' || pg_current_xact_id();
    end $$;
";

fn look(id: usize) -> Batch {
    query(&format!("select look({id})"))
}

/// What six calls at once see of `synchronous_commit`, and in how many transactions they are.
#[track_caller]
fn seen(crowd: &mut Crowd) -> (BTreeSet<String>, usize) {
    let batches: Vec<Batch> = (1..=6).map(|number| look(1 + number % 3)).collect();
    let answers = crowd.together(&batches);
    let (mut settings, mut transactions) = (BTreeSet::new(), BTreeSet::new());
    for answer in &answers {
        let value = value_of(answer);
        let (setting, transaction) = value.split_once(' ').expect("two words");
        settings.insert(setting.to_owned());
        transactions.insert(transaction.to_owned());
    }
    (settings, transactions.len())
}

/// What calls see in each mode.
const MODES: &[(&str, &str, &str, &str, usize)] = &[
    ("off", "tail", "alone", "on", 6),
    ("lane", "tail", "train", "on", 6),
    ("train", "tail", "train", "off", 6),
    ("train", "each", "train", "on", 6),
    ("batch", "tail", "train", "on", 1),
];

#[track_caller]
fn travels(crowd: &mut Crowd, mode: &(&str, &str, &str, &str, usize)) {
    let (_, _, way, setting, transactions) = mode;
    crowd.learn(&look(9), way);
    let (settings, count) = seen(crowd);
    assert_eq!(settings, BTreeSet::from([(*setting).to_owned()]), "{mode:?}");
    assert_eq!(count, *transactions, "{mode:?}");
    let told = explained(&mut crowd.clients[2]);
    assert!(told[1].starts_with(&format!("Way: {way}")), "{mode:?}: {told:?}");
    let client = &mut crowd.clients[0];
    assert_eq!(client.one("show synchronous_commit"), "on");
    assert_eq!(client.one("show lock_timeout"), "0");
}

#[test]
fn the_configuration_says_how_calls_travel() {
    for mode in MODES {
        let of = |option: &str| format!("procedures.\"public.look\".{option}");
        let settings =
            |config: Config| config.set(&of("mode"), mode.0).set(&of("durable_ack"), mode.1);
        travels(&mut Crowd::start(6, TABLES, settings), mode);
    }
}

#[test]
fn a_comment_says_how_calls_travel() {
    for mode in MODES {
        let comment = format!(
            "comment on function look is 'Looks. @pondage mode={} durable_ack={}'",
            mode.0, mode.1
        );
        let set_up = format!("{TABLES}; {comment}");
        travels(&mut Crowd::start(6, &set_up, |config| config), mode);
    }
}

#[test]
fn the_configuration_goes_before_the_comment() {
    let set_up = format!("{TABLES}; comment on function look is '@pondage mode=off retry=1'");
    let settings = |config: Config| config.set("procedures.\"public.look\".mode", "train");
    travels(&mut Crowd::start(6, &set_up, settings), &MODES[2]);
}

#[test]
fn what_nobody_has_declared_travels_as_ever() {
    let mut crowd = Crowd::start(6, TABLES, |config| config);
    travels(&mut crowd, &MODES[0]);
    let off =
        |config: Config| super::books::on_one_train(config, "look").set("pool.procedures", "off");
    travels(&mut Crowd::start(6, TABLES, off), &MODES[0]);
}

#[test]
fn where_bodies_are_read_the_key_need_not_be_said() {
    let auto = |config: Config| config.set("pool.procedures", "auto");
    let mut crowd = Crowd::start(1, TABLES, auto);
    // It has none: `id` is not unique.
    crate::coalescing::crowd::alone_because(&mut crowd.clients[0], &look(1));
    let unique = TABLES.replace("t(id int,", "t(id int primary key,");
    let mut crowd = Crowd::start(1, &unique, auto);
    crowd.learn(&look(1), "train");
}

fn batch(config: Config) -> Config {
    config.set("procedures.\"public.look\".mode", "batch")
}

/// How often each of the rows was counted.
fn counts(beside: &mut WireClient) -> String {
    beside.one("select string_agg(n::text, ' ' order by id) from t where id <= 4")
}

#[test]
fn an_error_in_a_shared_transaction_is_its_clients_alone() {
    let mut crowd = Crowd::start(5, TABLES, batch);
    crowd.learn(&look(9), "train");
    let mut beside = crowd.beside();
    for failing in 0..5 {
        beside.run("update t set n = 0");
        let batches: Vec<Batch> =
            (0..5).map(|number| look(if number == failing { 101 } else { number })).collect();
        let answers = crowd.together(&batches);
        for (number, answer) in answers.iter().enumerate() {
            match number == failing {
                true => assert_eq!(error_of(answer).message, "no 101 here"),
                false => assert_eq!(done(answer), "SELECT 1"),
            }
            let status = answer.last().expect("ReadyForQuery").body[0];
            assert_eq!(status, b'I', "nobody is in a transaction");
        }
        let mut expected = ["1"; 4];
        if let Some(row) = failing.checked_sub(1) {
            expected[row] = "0";
        }
        assert_eq!(counts(&mut beside), expected.join(" "), "failing: {failing}");
    }
}

#[test]
fn a_shared_transaction_that_can_t_commit_is_done_call_by_call() {
    let mut crowd = Crowd::start(4, TABLES, batch);
    crowd.learn(&look(9), "train");
    let mut beside = crowd.beside();
    // It fails when it commits: there is no row 51.
    let answers = crowd.together(&[look(1), look(2), look(51), look(3)]);
    for (number, answer) in answers.iter().enumerate() {
        match number {
            2 => assert_eq!(error_of(answer).code, "23503"),
            _ => assert_eq!(done(answer), "SELECT 1"),
        }
    }
    assert_eq!(counts(&mut beside), "1 1 1 0");
    assert_eq!(beside.one("select count(*) from child"), "0");
}

#[test]
fn an_error_that_comes_with_the_commit_is_its_clients_alone() {
    let set_up = format!("{TABLES}; comment on function look is '@pondage max_train=50'");
    let mut crowd = Crowd::start(4, &set_up, |config| config);
    crowd.learn(&look(9), "train");
    let answers = crowd.together_by("train", &[look(1), look(2), look(51), look(3)]);
    assert_eq!(error_of(&answers[2]).code, "23503");
    for number in [0, 1, 3] {
        assert_eq!(done(&answers[number]), "SELECT 1");
    }
    assert_eq!(counts(&mut crowd.beside()), "1 1 1 0");
}
