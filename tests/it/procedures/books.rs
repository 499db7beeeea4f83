//! A procedure that pays, its accounts, and the ledger that shows which calls were done.

use wire::pg::backend::tag;

use crate::coalescing::crowd::{learn, Crowd};
use crate::kit::wireclient::{Complaint, Message};
use crate::kit::{wait, Config, WireClient};
use crate::traps::batch::Batch;

/// `p_row` is a row that a test may lock beside the gateway; 0 is none. Nothing is unique, so that
/// bodies tell no key.
pub const TABLES: &str = "
    create table account(id int, balance bigint not null check (balance >= 0));
    insert into account select g, 1000 from generate_series(1, 20) g;
    create table gate(id int, n int not null default 0);
    insert into gate select g from generate_series(1, 20) g;
    create table ledger(token text, p_from int, p_to int, amount bigint);
    create procedure pay(p_token text, p_from int, p_to int, p_amount bigint, p_row int default 0)
    language plpgsql as $$ begin
        insert into ledger values (p_token, p_from, p_to, p_amount);
        update account set balance = balance - p_amount where id = p_from;
        update account set balance = balance + p_amount where id = p_to;
        update gate set n = n + 1 where id = p_row;
    end $$;
";

/// The calls of `pay` travel in lanes by who pays, on several servers.
pub fn paying(config: Config) -> Config {
    config.set("procedures.\"public.pay\".key", ["p_from"])
}

/// Calls that gather leave on one train.
pub fn on_one_train(config: Config, name: &str) -> Config {
    config.set(&format!("procedures.\"public.{name}\".mode"), "train")
}

pub fn query(sql: &str) -> Batch {
    Batch::new().query(sql)
}

pub fn pay(token: &str, from: i32, to: i32, amount: i64, row: i32) -> Batch {
    query(&format!("call pay('{token}', {from}, {to}, {amount}, {row})"))
}

/// A crowd whose calls of `pay` ride one train, unless a key is set.
#[track_caller]
pub fn payers(size: usize, settings: impl FnOnce(Config) -> Config) -> Crowd {
    let crowd = Crowd::start(size, TABLES, |config| settings(on_one_train(config, "pay")));
    let mut teacher = crowd.gateway.client(&crowd.database);
    learn(&mut teacher, &pay("teacher", 19, 20, 0, 0), "train");
    crowd
}

/// How often a token is in the ledger.
#[track_caller]
pub fn times(beside: &mut WireClient, token: &str) -> usize {
    let count = beside.one(&format!("select count(*) from ledger where token = '{token}'"));
    count.parse().expect("a count")
}

/// The balances are what the ledger says, and nothing is in it twice that was sent once.
#[track_caller]
pub fn balanced(beside: &mut WireClient) {
    let wrong = beside.rows(
        "select id, balance, expected from (
            select id, balance, 1000
                + coalesce((select sum(amount) from ledger where p_to = id), 0)
                - coalesce((select sum(amount) from ledger where p_from = id), 0) as expected
            from account) a where balance <> expected",
    );
    assert!(wrong.is_empty(), "account, balance, by the ledger: {wrong:?}");
    let twice = beside.rows(
        "select token, count(*) from ledger where token <> 'teacher' group by 1 having count(*) > 1",
    );
    assert!(twice.is_empty(), "done twice: {twice:?}");
}

/// The error in an answer.
#[track_caller]
pub fn error_of(answer: &[Message]) -> Complaint {
    let error = answer.iter().find(|message| message.tag == tag::ERROR);
    error.unwrap_or_else(|| panic!("no error: {answer:?}")).complaint()
}

/// What the command of an answer without an error is told to have done.
#[track_caller]
pub fn done(answer: &[Message]) -> String {
    let failed = answer.iter().any(|message| message.tag == tag::ERROR);
    let complete = answer.iter().find(|message| message.tag == tag::COMMAND_COMPLETE);
    match complete {
        Some(complete) if !failed => complete.command_tag(),
        _ => panic!("no success: {answer:?}"),
    }
}

/// The one value of an answer.
#[track_caller]
pub fn value_of(answer: &[Message]) -> String {
    let row = answer.iter().find(|message| message.tag == tag::DATA_ROW);
    let values = row.unwrap_or_else(|| panic!("no row: {answer:?}")).values();
    match values.as_slice() {
        [Some(value)] => value.clone(),
        _ => panic!("not one value: {values:?}"),
    }
}

/// Whatever comes until the connection ends, which it must; its one error.
#[track_caller]
pub fn cut_off(client: &mut WireClient) -> Complaint {
    let told: Vec<Message> = std::iter::from_fn(|| client.try_message_or_cut()).collect();
    let acknowledged = told.iter().any(|message| message.tag == tag::COMMAND_COMPLETE);
    assert!(!acknowledged, "acknowledged and cut off: {told:?}");
    error_of(&told)
}

/// Waits until so many sessions of the database wait for locks.
#[track_caller]
pub fn lock_waits(beside: &mut WireClient, count: usize) {
    let waits = "select count(*) from pg_stat_activity where datname = current_database() \
                 and wait_event_type = 'Lock'";
    wait::until("sessions that wait for locks", || beside.one(waits) == count.to_string());
}

/// Locks a row of `gate` beside the gateway, until the client commits or ends.
#[track_caller]
pub fn lock_gate(beside: &mut WireClient, row: i32) {
    beside.run("begin; select 1");
    beside.run(&format!("select from gate where id = {row} for update"));
}
