//! Definitions that change, and keys that are wrong: answers stay right.

use super::books::{balanced, done, paying, query, value_of, TABLES};
use crate::coalescing::crowd::{explained, learn, Crowd};
use crate::kit::{wait, Config, WireClient};
use crate::traps::batch::Batch;

const VERSIONED: &str = "
    create table t(id int primary key, n int not null default 0);
    insert into t select g from generate_series(1, 9) g;
    create function edition(p_id int, p_other int) returns text language plpgsql as $$ begin
        update t set n = n + 1 where id = p_id; return 'v0'; end $$;
";

fn declared(config: Config) -> Config {
    config.set("procedures.\"public.edition\".key", ["p_id"])
}

#[test]
fn a_new_body_is_what_the_next_call_runs() {
    let mut crowd = Crowd::start(4, VERSIONED, declared);
    let named = "select edition($1, $2)";
    for client in &mut crowd.clients {
        Batch::new().parse("named", named).sync().answer(client);
    }
    let forms = [
        query("select edition(1, 2)"),
        Batch::new().parse("", named).bind("", &["1", "2"]).execute().sync(),
        Batch::new().bind("named", &["1", "2"]).execute().sync(),
    ];
    forms.iter().for_each(|form| crowd.learn(form, "train"));
    let mut owners = [crowd.gateway.client(&crowd.database), crowd.beside()];
    for round in 1..=6 {
        let text = format!(
            "create or replace function edition(p_id int, p_other int) returns text
             language plpgsql as $$ begin
             update t set n = n + 1 where id = p_id; return 'v{round}'; end $$"
        );
        owners[round % 2].run(&text);
        for form in &forms {
            for client in &mut crowd.clients {
                assert_eq!(value_of(&form.answer(client)), format!("v{round}"));
            }
            for answer in crowd.together(&vec![form.clone(); 4]) {
                assert_eq!(value_of(&answer), format!("v{round}"));
            }
        }
    }
}

#[test]
fn another_function_of_the_name_is_called_as_postgresql_finds_it() {
    let mut crowd = Crowd::start(3, VERSIONED, declared);
    let call = query("select edition(1, 2)");
    crowd.learn(&call, "train");
    let mut owner = crowd.gateway.client(&crowd.database);
    owner.run("drop function edition");
    assert_eq!(super::books::error_of(&call.answer(&mut crowd.clients[0])).code, "42883");
    owner.run(
        "create function edition(p_other bigint, p_id int) returns text language sql
         as $$ select 'another' $$",
    );
    for _ in 0..5 {
        for answer in crowd.together(&[call.clone(), call.clone(), call.clone()]) {
            assert_eq!(value_of(&answer), "another");
        }
    }
    // A closer fit comes in.
    crowd.beside().run(
        "create function edition(a int, b int) returns text language sql as $$ select 'closer' $$",
    );
    for _ in 0..5 {
        for answer in crowd.together(&[call.clone(), call.clone(), call.clone()]) {
            assert_eq!(value_of(&answer), "closer");
        }
    }
}

/// Whether a call of `edition(1, 2)` waits for one of `edition(1, 1)` that is stopped by a lock, so
/// whether the key is `p_id`; if it is `p_other`, they are of different lanes.
fn shares_a_lane(crowd: &mut Crowd) -> bool {
    let mut holder = crowd.beside();
    holder.run("begin; update t set n = n where id = 5");
    query("select edition(5, 1)").to(&mut crowd.clients[0]);
    let mut superuser = crowd.superuser();
    super::books::lock_waits(&mut superuser, 1);
    query("select edition(5, 2)").to(&mut crowd.clients[1]);
    let mut shares = None;
    wait::until("the second call to wait somewhere", || {
        let waits = "select count(*) from pg_stat_activity where datname = current_database() \
                     and wait_event_type = 'Lock'";
        let clients = crowd.gateway.show("clients");
        let mut of_here = clients.iter().filter(|row| row["database"] == crowd.database.name);
        let in_gateway = of_here.any(|client| client["state"] == "waiting");
        let in_postgres = superuser.one(waits) == "2";
        shares = (in_gateway || in_postgres).then_some(in_gateway);
        shares.is_some()
    });
    holder.run("commit");
    for client in &mut crowd.clients[..2] {
        client.until_ready();
    }
    shares.expect("it waits")
}

#[test]
fn a_key_that_a_comment_changes_takes_effect() {
    let settings = |config: Config| config.set("pool.pool_size", 3);
    let mut crowd = Crowd::start(2, VERSIONED, settings);
    let mut owner = crowd.gateway.client(&crowd.database);
    owner.run("comment on function edition is 'Says which. @pondage key=p_id'");
    crowd.learn(&query("select edition(1, 2)"), "train");
    assert!(shares_a_lane(&mut crowd));
    owner.run("comment on function edition is '@pondage key=p_other'");
    wait::until("the other key", || !shares_a_lane(&mut crowd));
    // What is wrong says nothing, and is told.
    owner.run("comment on function edition is '@pondage key=p_id speed=high'");
    wait::until("calls to travel alone", || travels_alone(&mut owner));
    let text = "explain procedure public.edition in database";
    let text = format!("{text} {}", crowd.database.name);
    let lines = crowd.gateway.console().rows(&text);
    let mut lines = lines.iter().flatten().flatten();
    let told = lines.any(|line| line.contains("its comment: `speed` is no option"));
    assert!(told, "{:?}", crowd.gateway.console().rows(&text));
    owner.run("comment on function edition is '@pondage key=p_id'");
    wait::until("the key of before", || shares_a_lane(&mut crowd));
    owner.run("comment on function edition is null");
    wait::until("calls to travel alone", || travels_alone(&mut owner));
}

/// Whether it does for good.
fn travels_alone(client: &mut WireClient) -> bool {
    client.one("select edition(1, 2)");
    explained(client)[2].starts_with("Why: parser or catalogues found something against it")
}

/// Many clients pay in all directions at once; the books are right in the end.
fn contend(settings: fn(Config) -> Config, way: &str) {
    const CLIENTS: usize = 12;
    const ROUNDS: usize = 40;
    let limits = |config: Config| {
        settings(config.set("pool.pool_size", 4).set("pool.coalesce_stall", "20ms"))
    };
    let crowd = Crowd::start(0, TABLES, limits);
    let mut teacher = crowd.gateway.client(&crowd.database);
    learn(&mut teacher, &super::books::pay("teacher", 19, 20, 0, 0), way);
    let threads: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let mut client: WireClient = crowd.gateway.client(&crowd.database);
            std::thread::spawn(move || {
                let (mut paid, mut serial) = (0, 0);
                while paid < ROUNDS {
                    serial += 1;
                    let from = 1 + (number + serial) as i32 % 3;
                    let to = 1 + (number + serial * 2 + 1) as i32 % 3;
                    let to = if to == from { 4 } else { to };
                    let token = format!("{number}/{serial}");
                    let answer = super::books::pay(&token, from, to, 1, 1).answer(&mut client);
                    if answer.iter().any(|message| message.tag == b'E') {
                        // More deadlocks than are tried again: the client's own are told.
                        assert_eq!(super::books::error_of(&answer).code, "40P01");
                    } else {
                        assert_eq!(done(&answer), "CALL");
                        paid += 1;
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a client"));
    let mut beside = crowd.beside();
    let all = "select count(*) from ledger where token <> 'teacher'";
    assert_eq!(beside.one(all), (CLIENTS * ROUNDS).to_string());
    assert_eq!(beside.one("select n from gate where id = 1"), (CLIENTS * ROUNDS).to_string());
    balanced(&mut beside);
}

#[test]
fn a_wrong_key_costs_time_only() {
    contend(|config| config.set("procedures.\"public.pay\".key", ["p_to"]), "train");
    contend(|config| config.set("procedures.\"public.pay\".key", ["p_token"]), "train");
    contend(|config| config.set("procedures.\"public.pay\".key", ["p_amount", "p_row"]), "train");
}

#[test]
fn no_key_at_all_costs_time_only() {
    contend(|config| config.set("procedures.\"public.pay\".mode", "train"), "train");
    contend(|config| config.set("procedures.\"public.pay\".key", ["p_nothing"]), "train");
}

#[test]
fn the_right_key_in_every_mode_gives_right_books() {
    contend(paying, "train");
    contend(|config| paying(config).set("procedures.\"public.pay\".also", ["p_to"]), "train");
    contend(|config| paying(config).set("procedures.\"public.pay\".mode", "lane"), "train");
    contend(|config| paying(config).set("procedures.\"public.pay\".mode", "batch"), "train");
    contend(|config| paying(config).set("procedures.\"public.pay\".mode", "off"), "alone");
    let each = |config| paying(config).set("procedures.\"public.pay\".durable_ack", "each");
    contend(each, "train");
    let short = |config| paying(config).set("procedures.\"public.pay\".max_train", 2);
    contend(short, "train");
}
