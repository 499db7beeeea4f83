//! Clients that cancel or go: what waits is dropped, what runs is stopped, and nobody else notices.

use super::books::{balanced, done, error_of, lock_gate, lock_waits, pay, payers, query, times};
use crate::coalescing::crowd::Crowd;
use crate::kit::{wait, Config, WireClient};
use crate::traps::batch::Batch;

#[test]
fn a_call_that_is_cancelled_while_it_waits_is_not_done() {
    let mut crowd = payers(3, |config| config);
    let mut beside = crowd.beside();
    let address = crowd.gateway.address();
    crowd.hold();
    for (number, client) in crowd.clients.iter_mut().enumerate() {
        pay(&format!("t{number}"), 1, 2, 10, 0).to(client);
    }
    crowd.gathered(3);
    crowd.clients[1].cancel(&address);
    assert_eq!(error_of(&crowd.clients[1].until_ready()).code, "57014");
    crowd.gathered(2);
    crowd.release();
    for number in [0, 2] {
        assert_eq!(done(&crowd.clients[number].until_ready()), "CALL");
    }
    let known = [0, 1, 2].map(|number| times(&mut beside, &format!("t{number}")));
    assert_eq!(known, [1, 0, 1]);
    assert_eq!(crowd.clients[1].one("select 1"), "1");
    balanced(&mut beside);
}

/// Four calls on one train; the second waits for a gate that is locked beside the gateway.
fn stopped_train() -> (Crowd, WireClient) {
    let mut crowd = payers(4, |config| config.set("pool.pool_size", 1));
    let mut holder = crowd.beside();
    lock_gate(&mut holder, 1);
    let batches: Vec<Batch> =
        (0..4).map(|number| pay(&format!("t{number}"), 1, 2, 10, i32::from(number == 1))).collect();
    crowd.leave_together(&batches);
    lock_waits(&mut crowd.superuser(), 1);
    (crowd, holder)
}

fn known(crowd: &Crowd) -> [usize; 4] {
    let mut beside = crowd.beside();
    balanced(&mut beside);
    [0, 1, 2, 3].map(|number| times(&mut beside, &format!("t{number}")))
}

#[test]
fn the_one_that_runs_is_stopped_by_its_cancel_and_the_others_are_done() {
    let (mut crowd, mut holder) = stopped_train();
    let address = crowd.gateway.address();
    crowd.clients[1].cancel(&address);
    assert_eq!(error_of(&crowd.clients[1].until_ready()).code, "57014");
    for number in [0, 2, 3] {
        assert_eq!(done(&crowd.clients[number].until_ready()), "CALL");
    }
    assert_eq!(known(&crowd), [1, 0, 1, 1]);
    holder.run("commit");
    assert_eq!(crowd.clients[1].one("select 1"), "1");
}

#[test]
fn a_cancel_of_one_that_waits_in_the_train_leaves_the_running_one_alone() {
    for cancelled in [0, 2, 3] {
        let (mut crowd, mut holder) = stopped_train();
        let address = crowd.gateway.address();
        crowd.clients[cancelled].cancel(&address);
        // It has been taken when another question at the same door is answered.
        crowd.gateway.show("pools");
        lock_waits(&mut crowd.superuser(), 1);
        holder.run("commit");
        let mut expected = [1; 4];
        for (number, client) in crowd.clients.iter_mut().enumerate() {
            let answer = client.until_ready();
            let failed = answer.iter().any(|message| message.tag == b'E');
            if number == cancelled && failed {
                assert_eq!(error_of(&answer).code, "57014");
                expected[number] = 0;
            } else {
                assert_eq!(done(&answer), "CALL");
            }
        }
        assert_eq!(known(&crowd), expected, "cancelled: {cancelled}");
    }
}

#[test]
fn a_client_that_goes_while_it_waits_leaves_nothing_behind() {
    let mut crowd = payers(3, |config| config);
    crowd.hold();
    for (number, client) in crowd.clients.iter_mut().enumerate() {
        pay(&format!("t{number}"), 1, 2, 10, 0).to(client);
    }
    crowd.gathered(3);
    drop(crowd.clients.remove(1));
    crowd.gathered(2);
    crowd.release();
    for client in &mut crowd.clients {
        assert_eq!(done(&client.until_ready()), "CALL");
    }
    let mut beside = crowd.beside();
    assert_eq!([0, 1, 2].map(|number| times(&mut beside, &format!("t{number}"))), [1, 0, 1]);
    balanced(&mut beside);
}

#[test]
fn a_client_that_goes_while_its_call_runs_stops_nobody_else() {
    for gone in [0, 1, 3] {
        let (mut crowd, mut holder) = stopped_train();
        let clients = || {
            let mut all = crowd.gateway.show("clients");
            all.retain(|client| client["database"] == crowd.database.name);
            all.len()
        };
        let before = clients();
        drop(crowd.clients.remove(gone));
        wait::until("the gateway to have seen it", || clients() < before);
        holder.run("commit");
        for client in &mut crowd.clients {
            assert_eq!(done(&client.until_ready()), "CALL");
        }
        // Nobody knows of who has gone.
        wait::until("the pool to be idle", || crowd.pool()["sv_active"] == "0");
        let mut others = known(&crowd).to_vec();
        let of_gone = others.remove(gone);
        assert_eq!(others, [1; 3], "gone: {gone}, which is there {of_gone} times");
        assert!(of_gone <= 1);
    }
}

#[test]
fn all_of_a_train_may_go() {
    let (mut crowd, mut holder) = stopped_train();
    crowd.clients.clear();
    // What it does is nobody's, so it is stopped.
    let mut superuser = crowd.superuser();
    lock_waits(&mut superuser, 0);
    holder.run("commit");
    wait::until("the pool to be idle", || crowd.pool()["sv_active"] == "0");
    assert!(known(&crowd).iter().all(|times| *times <= 1));
    let mut client = crowd.gateway.client(&crowd.database);
    assert_eq!(done(&query("call pay('late', 1, 2, 1, 1)").answer(&mut client)), "CALL");
}

/// Symptom: the others were told that their calls were done, and nothing was. Cause: nobody hears of
/// an error whose client has gone, but the transaction that it shares has failed.
#[test]
fn who_goes_from_a_shared_transaction_and_fails_takes_nobody_along() {
    let batch = |config: Config| {
        config.set("pool.pool_size", 1).set("procedures.\"public.pay\".mode", "batch")
    };
    let mut crowd = payers(3, batch);
    let mut holder = crowd.beside();
    lock_gate(&mut holder, 1);
    let batches = [pay("t0", 1, 2, 10, 0), pay("t1", 1, 2, 10, 1), pay("t2", 1, 2, 1_000_000, 0)];
    crowd.leave_together(&batches);
    lock_waits(&mut crowd.superuser(), 1);
    let gone = crowd.clients.pop();
    let before = crowd.gateway.show("clients").len();
    drop(gone);
    wait::until("the gateway to have seen it", || crowd.gateway.show("clients").len() < before);
    holder.run("commit");
    for client in &mut crowd.clients {
        assert_eq!(done(&client.until_ready()), "CALL");
    }
    let mut beside = crowd.beside();
    let known = ["t0", "t1", "t2"].map(|token| times(&mut beside, token));
    assert_eq!(known, [1, 1, 0]);
    balanced(&mut beside);
}
