//! A call waits for locks as it would on a connection of its own: no body sees a limit of ours,
//! nobody of another lane waits behind it, and lanes keep calls from deadlocks.

use super::books::{
    balanced, done, lock_gate, lock_waits, on_one_train, pay, payers, paying, query, value_of,
};
use crate::coalescing::crowd::{explained, learn, Crowd};
use crate::kit::{cluster, wait, Config, WireClient};
use crate::traps::batch::Batch;

const CAREFUL: &str = "
    create table t(id int primary key, n int not null default 0);
    insert into t select g from generate_series(1, 9) g;
    create function careful(p_id int) returns text language plpgsql as $$ begin
        update t set n = n + 1 where id = p_id;
        return 'done';
    exception when lock_not_available then
        return 'caught';
    end $$;
    create function careful_of_all(p_id int) returns text language plpgsql as $$ begin
        update t set n = n + 1 where id = p_id;
        return 'done';
    exception when others then
        return 'caught ' || sqlerrm;
    end $$;
    create function plain(p_id int) returns text language plpgsql as $$ begin
        update t set n = n + 1 where id = p_id;
        return 'done';
    end $$;
";

/// What `pool.coalesce_stall` is here, and a wait that is longer for certain.
const STALL: &str = "20ms";
const LONGER: &str = "200 ms";

fn declared(config: Config) -> Config {
    let names = ["careful", "careful_of_all", "plain"];
    names.iter().fold(config.set("pool.coalesce_stall", STALL), |config, name| {
        config.set(&format!("procedures.\"public.{name}\".key"), ["p_id"])
    })
}

/// Waits until a session has waited for a lock for much longer than the limit.
#[track_caller]
fn waits_for_long(superuser: &mut WireClient) {
    let waits = format!(
        "select count(*) > 0 from pg_locks where not granted and waitstart < \
         clock_timestamp() - interval '{LONGER}' and pid in \
         (select pid from pg_stat_activity where datname = current_database())"
    );
    wait::until("a long wait for a lock", || superuser.one(&waits) == "t");
}

#[test]
fn a_body_that_handles_lock_timeouts_never_meets_ours() {
    let mut crowd = Crowd::start(3, CAREFUL, declared);
    for name in ["careful", "careful_of_all"] {
        let call = |id: i32| query(&format!("select {name}({id})"));
        crowd.learn(&call(9), "train");
        for ids in [&[1][..], &[1, 1, 1], &[1, 2, 1]] {
            let mut holder = crowd.beside();
            holder.run("begin; update t set n = n where id = 1");
            let batches: Vec<Batch> = ids.iter().map(|id| call(*id)).collect();
            crowd.leave_together(&batches);
            waits_for_long(&mut crowd.superuser());
            holder.run("commit");
            for client in &mut crowd.clients[..ids.len()] {
                assert_eq!(value_of(&client.until_ready()), "done", "{name} {ids:?}");
            }
        }
    }
}

/// Six calls at once; those of row 1 meet a lock.
fn passes_by(
    settings: impl FnOnce(Config) -> Config,
    tables: &str,
    leave: fn(&mut Crowd, &[Batch]),
) {
    let mut crowd = Crowd::start(6, tables, settings);
    let call = |id: i32| query(&format!("select plain({id})"));
    let mut teacher = crowd.gateway.client(&crowd.database);
    learn(&mut teacher, &call(9), "train");
    for _ in 0..2 {
        crowd.beside().run("update t set n = 0");
        let mut holder = crowd.beside();
        holder.run("begin; update t set n = n where id = 1");
        let batches: Vec<Batch> = [1, 2, 3, 1, 4, 2].map(call).into();
        leave(&mut crowd, &batches);
        for number in [1, 2, 4, 5] {
            assert_eq!(value_of(&crowd.clients[number].until_ready()), "done");
            let told = explained(&mut crowd.clients[number]);
            assert!(told[1].starts_with("Way: train"), "{told:?}");
        }
        waits_for_long(&mut crowd.superuser());
        holder.run("commit");
        for number in [0, 3] {
            assert_eq!(value_of(&crowd.clients[number].until_ready()), "done");
        }
        let counts = "select string_agg(n::text, ' ' order by id) from t where id <= 4";
        assert_eq!(crowd.beside().one(counts), "2 2 1 1", "each once");
    }
}

#[test]
fn calls_of_one_train_go_on_behind_one_that_waits_for_a_row() {
    // One server, and nothing tells a key: they have been let by.
    let tables = CAREFUL.replace("t(id int primary key,", "t(id int,");
    let settings = |config: Config| on_one_train(config.set("pool.coalesce_stall", STALL), "plain");
    passes_by(settings, &tables, |crowd, batches| crowd.leave_together(batches));
}

#[test]
fn calls_of_other_lanes_go_on_behind_one_that_waits_for_a_row() {
    let settings = |config: Config| declared(config).set("pool.pool_size", 3);
    passes_by(settings, CAREFUL, |crowd, batches| {
        crowd.clients.iter_mut().zip(batches).for_each(|(client, batch)| batch.to(client));
    });
}

#[test]
fn a_limit_that_the_client_has_set_itself_is_kept() {
    let mut crowd = Crowd::start(2, CAREFUL, declared);
    let call = query("select plain(1)");
    crowd.learn(&call, "train");
    let mut holder = crowd.beside();
    holder.run("begin; update t set n = n where id = 1");
    let client = &mut crowd.clients[0];
    client.run("set lock_timeout = '300ms'");
    for _ in 0..7 {
        let error = super::books::error_of(&call.answer(client));
        assert_eq!(error.code, "55P03", "{error:?}");
    }
    client.run("set lock_timeout = 0; set statement_timeout = '300ms'");
    let error = super::books::error_of(&call.answer(client));
    assert_eq!(error.code, "57014", "{error:?}");
    holder.run("commit");
    assert_eq!(value_of(&call.answer(client)), "done");
    assert_eq!(client.one("show lock_timeout"), "0");
    assert_eq!(client.one("show statement_timeout"), "300ms");
    assert_eq!(client.one("show synchronous_commit"), "on");
}

/// Deadlocks in a database so far, when nobody is there who has not told his.
fn deadlocks(database: &str) -> String {
    let mut superuser = cluster().superuser("postgres");
    wait::until("all sessions to have gone", || {
        let sessions = "select count(*) from pg_stat_activity where datname =";
        superuser.one(&format!("{sessions} '{database}'")) == "0"
    });
    superuser.one(&format!("select deadlocks from pg_stat_database where datname = '{database}'"))
}

#[test]
fn payments_in_both_directions_at_once_make_no_deadlock() {
    const CLIENTS: usize = 16;
    const ROUNDS: usize = 50;
    let settings = |config: Config| {
        let config = paying(config).set("pool.pool_size", 4).set("pool.coalesce_stall", "5s");
        config.set("procedures.\"public.pay\".also", ["p_to"])
    };
    let crowd = payers(0, settings);
    let threads: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let mut client = crowd.gateway.client(&crowd.database);
            std::thread::spawn(move || {
                for round in 0..ROUNDS {
                    let accounts = match (number + round) % 4 {
                        0 => (1, 2),
                        1 => (2, 1),
                        2 => (2, 3),
                        _ => (3, 1),
                    };
                    let token = format!("{number}/{round}");
                    let answer = pay(&token, accounts.0, accounts.1, 1, 0).answer(&mut client);
                    assert_eq!(done(&answer), "CALL");
                }
                client.terminate();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a client"));
    let mut beside = crowd.beside();
    let all = "select count(*) from ledger where token <> 'teacher'";
    assert_eq!(beside.one(all), (CLIENTS * ROUNDS).to_string());
    balanced(&mut beside);
    let counted = crowd.counters();
    assert!(counted["trained"] as usize > CLIENTS * ROUNDS * 9 / 10, "{counted:?}");
    beside.terminate();
    let database = crowd.database.name.clone();
    drop(crowd);
    assert_eq!(deadlocks(&database), "0");
}

#[test]
fn a_call_that_waits_alone_is_not_overtaken_by_its_lane() {
    let mut crowd = payers(3, |config| paying(config).set("pool.pool_size", 2));
    let mut holder = crowd.beside();
    lock_gate(&mut holder, 1);
    pay("first", 1, 2, 900, 1).to(&mut crowd.clients[0]);
    lock_waits(&mut crowd.superuser(), 1);
    // It would fail behind the first.
    pay("second", 1, 2, 200, 0).to(&mut crowd.clients[1]);
    pay("other", 3, 4, 200, 0).to(&mut crowd.clients[2]);
    assert_eq!(done(&crowd.clients[2].until_ready()), "CALL", "another lane's");
    let mut superuser = crowd.superuser();
    lock_waits(&mut superuser, 1);
    holder.run("commit");
    assert_eq!(done(&crowd.clients[0].until_ready()), "CALL");
    assert_eq!(super::books::error_of(&crowd.clients[1].until_ready()).code, "23514");
    balanced(&mut superuser);
}
