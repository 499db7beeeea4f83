//! With the read cache on, a client sees what its call has written, and so does everybody who was
//! told of it.

use crate::caching::place::{Cached, Place};
use crate::coalescing::crowd::explained;
use crate::kit::{Config, WireClient};
use crate::traps::batch::Batch;

const TABLES: &str = "
    create table t(id int primary key, n int not null);
    insert into t values (1, 0), (2, 0);
    create procedure bump(p_id int) language plpgsql as $$ begin
        update t set n = n + 1 where id = p_id; end $$;
    create function bumped(p_id int) returns int language plpgsql as $$ declare got int; begin
        update t set n = n + 1 where id = p_id returning n into got; return got; end $$;
";

const READ: &str = "select n from t where id = 1";
const WIDE: &str = "select sum(n) from t";
const ROUNDS: i64 = 25;

fn declared(config: Config) -> Config {
    let of = |name: &str| format!("procedures.\"public.{name}\".key");
    config.set(&of("bump"), ["p_id"]).set(&of("bumped"), ["p_id"])
}

#[test]
fn a_call_on_a_train_is_seen_by_its_client_and_by_whom_it_tells() {
    let place = Place::start_with(TABLES, declared);
    let [mut client, mut other, mut teacher] = [(); 3].map(|()| place.client());
    for client in [&mut client, &mut teacher] {
        Batch::new().parse("named", "select bumped($1)").sync().answer(client);
    }
    let calls = [
        Batch::new().query("call bump(1)"),
        Batch::new().query("select bumped(1)"),
        Batch::new().query("select * from bumped(p_id => 1)"),
        Batch::new().parse("", "call bump($1)").bind("", &["1"]).execute().sync(),
        Batch::new().bind("named", &["1"]).execute().sync(),
    ];
    for (at, call) in calls.iter().enumerate() {
        crate::coalescing::crowd::learn(&mut teacher, call, "train");
        place.beside().run("update t set n = 0");
        place.becomes(&mut client, READ, "0");
        place.becomes(&mut client, WIDE, "0");
        let mut trains = 0;
        for round in 1..=ROUNDS {
            super::books::done(&call.answer(&mut client));
            trains += i64::from(explained(&mut client)[1].starts_with("Way: train"));
            for read in [READ, WIDE] {
                for (who, reader) in [("another", &mut other), ("itself", &mut client)] {
                    let got = reader.one(read);
                    let hit = reader.was_hit();
                    let what = format!("call {at}, round {round}, {read}, {who}, hit: {hit}");
                    assert_eq!(got, round.to_string(), "{what}");
                }
            }
            // So that there is something kept that can be wrong.
            client.warm(READ);
            client.warm(WIDE);
        }
        assert!(trains > ROUNDS / 2, "{trains} trains");
    }
}

#[test]
fn calls_of_many_on_trains_are_seen_by_each_of_them() {
    const CLIENTS: i64 = 8;
    let place = Place::start_with(TABLES, |config| declared(config).set("pool.pool_size", 2));
    let mut teacher = place.client();
    let call = Batch::new().query("select bumped(2)");
    crate::coalescing::crowd::learn(&mut teacher, &call, "train");
    let threads: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client: WireClient = place.client();
            std::thread::spawn(move || {
                let number = |text: String| text.parse::<i64>().expect("a number");
                let (mut trains, mut hits) = (0, 0);
                for _ in 0..60 {
                    let got = number(client.one("select bumped(1)"));
                    trains += i64::from(explained(&mut client)[1].starts_with("Way: train"));
                    for _ in 0..3 {
                        let read = number(client.one(READ));
                        hits += i64::from(client.was_hit());
                        assert!(read >= got, "read {read} behind its own {got}");
                    }
                }
                (trains, hits)
            })
        })
        .collect();
    let told: Vec<(i64, i64)> =
        threads.into_iter().map(|thread| thread.join().expect("a client")).collect();
    let trains: i64 = told.iter().map(|told| told.0).sum();
    assert!(trains > CLIENTS * 30, "{told:?}");
    assert_eq!(place.client().one(READ), (CLIENTS * 60).to_string());
}
