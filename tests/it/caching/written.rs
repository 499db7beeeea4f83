//! C3: a client sees what it has written, and what others have written through the gateway and were
//! told of, however it was written.

use std::time::Duration;

use rustix::process::{kill_process, Pid, Signal};

use super::place::{Cached, Place};
use crate::kit::{Config, WireClient};
use crate::traps::batch::Batch;

const SET_UP: &str = "create table t(id int primary key, n int not null);
    insert into t values (1, 0), (2, 0);
    create function bump() returns int language sql as
        $$ update t set n = n + 1 where id = 1 returning n $$;
    create procedure bump_and_commit() language plpgsql as $$ begin
        update t set n = n + 1 where id = 1; commit; perform 1; end $$;
    create table log(id int primary key);
    create function bumps() returns trigger language plpgsql as
        $$ begin update t set n = n + 1 where id = 1; return null; end $$;
    create trigger bumps after insert on log for each row execute function bumps()";

const READ: &str = "select n from t where id = 1";
const WIDE: &str = "select sum(n) from t";
const UPDATE: &str = "update t set n = n + 1 where id = 1";

/// Times that each way of writing is tried.
const ROUNDS: i64 = 25;

/// Writes again and again, each time one more, and reads behind it.
fn own_writes(place: &Place, mut write: impl FnMut(&mut WireClient, i64)) {
    let (mut client, mut other) = (place.client(), place.client());
    place.beside().run("update t set n = 0");
    place.becomes(&mut client, READ, "0");
    place.becomes(&mut client, WIDE, "0");
    for round in 1..=ROUNDS {
        write(&mut client, round);
        for read in [READ, WIDE] {
            // Nothing but the writer's word has come to this one.
            let seen = other.one(read);
            let hit = other.was_hit();
            assert_eq!(seen, round.to_string(), "round {round}, {read}, another, hit: {hit}");
            let got = client.one(read);
            let hit = client.was_hit();
            assert_eq!(got, round.to_string(), "round {round}, {read}, hit: {hit}");
        }
        // So that there is something kept that can be wrong.
        client.warm(READ);
        client.warm(WIDE);
    }
}

/// What may have left anything in the session keeps it from the cache until that is dropped.
fn forget(client: &mut WireClient) {
    client.one(READ);
    assert!(!client.was_hit());
    client.run("discard all");
}

#[test]
fn trap_c03_own_writes_by_simple_queries() {
    let place = Place::start(SET_UP);
    own_writes(&place, |client, _| client.run(UPDATE));
    own_writes(&place, |client, _| client.run(&format!("{UPDATE}; select 1")));
    own_writes(&place, |client, _| {
        client.run(&format!("with x as ({UPDATE} returning n) select * from x"));
    });
    own_writes(&place, |client, _| {
        client.run("do $$ begin update t set n = n + 1 where id = 1; end $$");
        forget(client);
    });
}

#[test]
fn trap_c03_own_writes_by_the_extended_protocol() {
    let place = Place::start(SET_UP);
    own_writes(&place, |client, _| {
        client.extended(UPDATE, &[]);
    });
    let by_value = "update t set n = $1 where id = 1";
    own_writes(&place, |client, round| {
        client.extended(by_value, &[Some(round.to_string().as_bytes())]);
    });
    own_writes(&place, |client, round| {
        if round == 1 {
            client.send(&Batch::new().parse("w", by_value).sync().0);
            client.until_ready();
        }
        client.send(&Batch::new().bind("w", &[&round.to_string()]).execute().sync().0);
        client.until_ready();
    });
}

#[test]
fn trap_c03_own_writes_and_reads_in_one_go() {
    let place = Place::start(SET_UP);
    let mut client = place.client();
    client.warm(READ);
    for round in 1..=ROUNDS {
        client.send(&Batch::new().query(UPDATE).query(READ).0);
        client.until_ready();
        let replies = client.until_ready();
        let row = replies.iter().find(|reply| reply.tag == b'D').expect("a row");
        assert_eq!(row.values(), [Some(round.to_string())]);
        client.warm(READ);
        let batch = Batch::new().parse("", READ).bind("", &[]).execute().sync();
        client.warm_by(READ, |client| {
            client.send(&batch.0);
            client.until_ready()
        });
    }
    for round in ROUNDS + 1..=2 * ROUNDS {
        let batch = Batch::new().parse("", UPDATE).bind("", &[]).execute();
        let batch = batch.parse("", READ).bind("", &[]).execute().sync();
        client.send(&batch.0);
        let replies = client.until_ready();
        let row = replies.iter().find(|reply| reply.tag == b'D').expect("a row");
        assert_eq!(row.values(), [Some(round.to_string())], "in one batch");
        let batch = Batch::new().parse("", UPDATE).bind("", &[]).execute().sync();
        let batch = batch.parse("", READ).bind("", &[]).execute().sync();
        client.send(&batch.0);
        client.until_ready();
        let replies = client.until_ready();
        let row = replies.iter().find(|reply| reply.tag == b'D').expect("a row");
        assert_eq!(row.values(), [Some((round + 1).to_string())], "in two batches");
        client.run("update t set n = n - 1 where id = 1");
        client.warm(READ);
    }
}

#[test]
fn trap_c03_own_writes_in_transactions() {
    let place = Place::start(SET_UP);
    own_writes(&place, |client, round| {
        client.run("begin");
        let before = (round - 1).to_string();
        assert_eq!(client.one(READ), before);
        client.run(UPDATE);
        assert_eq!(client.one(READ), round.to_string(), "within its transaction");
        assert!(!client.was_hit());
        client.run(if round % 2 == 0 { "commit" } else { "end" });
    });
    own_writes(&place, |client, _| client.run(&format!("begin; {UPDATE}; commit")));
    own_writes(&place, |client, round| {
        client.run("begin isolation level serializable");
        assert_eq!(client.one(READ), (round - 1).to_string());
        client.run(UPDATE);
        client.run("savepoint s; update t set n = -1 where id = 1; rollback to s; commit");
    });
    // What is not committed was never there.
    let mut client = place.client();
    let before = client.one(READ);
    for _ in 0..ROUNDS {
        client.run("begin");
        client.one(READ);
        client.run(UPDATE);
        assert_ne!(client.one(READ), before);
        client.run("rollback");
        assert_eq!(client.one(READ), before);
    }
}

#[test]
fn trap_c03_own_writes_by_functions_procedures_and_triggers() {
    let place = Place::start(SET_UP);
    own_writes(&place, |client, round| assert_eq!(client.one("select bump()"), round.to_string()));
    own_writes(&place, |client, _| {
        client.extended("select bump()", &[]);
    });
    own_writes(&place, |client, _| {
        client.run("call bump_and_commit()");
        forget(client);
    });
    own_writes(&place, |client, _| {
        client.run("insert into log select coalesce(max(id), 0) + 1 from log")
    });
}

#[test]
fn trap_c03_own_writes_by_copy() {
    let place = Place::start(SET_UP);
    own_writes(&place, |client, round| {
        client.put(|out| wire::pg::frontend::put_query(out, "copy log from stdin"));
        client.expect(b'G');
        let row = format!("{}\n", 1000 + round);
        // CopyData has the line as it is.
        let mut bytes = vec![b'd'];
        bytes.extend_from_slice(&(4 + row.len() as u32).to_be_bytes());
        bytes.extend_from_slice(row.as_bytes());
        bytes.extend_from_slice(b"c\0\0\0\x04");
        client.send(&bytes);
        client.until_ready();
    });
}

#[test]
fn trap_c03_own_writes_without_waiting_for_the_disk() {
    const OFF: &str = "do $$ begin
        execute format('alter database %I set synchronous_commit = off', current_database());
        end $$";
    let place = Place::start(&format!("{SET_UP}; {OFF}"));
    assert_eq!(place.client().one("show synchronous_commit"), "off");
    own_writes(&place, |client, _| client.run(UPDATE));
    own_writes(&place, |client, _| {
        client.run("begin");
        client.one(READ);
        client.run(UPDATE);
        client.run("commit");
    });
}

#[test]
fn trap_c03_own_writes_in_two_phases() {
    let place = Place::start_alone(&["max_prepared_transactions = 5"], SET_UP);
    own_writes(&place, |client, round| {
        client.run(&format!("begin; {UPDATE}; prepare transaction 'p{round}'"));
        assert_eq!(client.one(READ), (round - 1).to_string(), "only prepared");
        client.run(&format!("commit prepared 'p{round}'"));
    });
    own_writes(&place, |client, round| {
        client.run(&format!("begin; {UPDATE}; prepare transaction 'q{round}'"));
        client.run(&format!("rollback prepared 'q{round}'"));
        assert_eq!(client.one(READ), (round - 1).to_string());
        client.run(UPDATE);
    });
    // Somebody else ends it.
    let mut other = place.client();
    own_writes(&place, |client, round| {
        client.run(&format!("begin; {UPDATE}; prepare transaction 'r{round}'"));
        other.run(&format!("commit prepared 'r{round}'"));
        // The client is told of it, so it asks PostgreSQL.
        client.run("select pg_current_xact_id_if_assigned()");
    });
}

#[test]
fn trap_c03_what_others_have_told_is_seen_when_it_is_asked_for() {
    let place = Place::start_with(SET_UP, |config| config.set("cache.freshness", "strict"));
    let mut reader = place.client();
    let mut writer = place.beside();
    let mut hits = 0;
    for round in 1..=4 * ROUNDS {
        writer.run(UPDATE);
        assert_eq!(reader.one(READ), round.to_string());
        for _ in 0..3 {
            assert_eq!(reader.one(READ), round.to_string());
            hits += usize::from(reader.was_hit());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(hits > 20, "only {hits} answers from the cache");
}

/// The process that sends the stream, as PostgreSQL says it.
fn sender(place: &Place) -> Pid {
    let of_it = "select active_pid from pg_replication_slots where database = current_database()";
    let pid: i32 = place.superuser().one(of_it).parse().expect("a process id");
    Pid::from_raw(pid).expect("not zero")
}

#[test]
fn trap_c03_what_others_were_told_is_seen_while_the_stream_stands_still() {
    // Alone: nobody changes what is known of roles and statements.
    let settings = |config: Config| config.set("cache.wait", "20ms").set("cache.max_lag", "1h");
    let place = Place::start_alone_with(&[], SET_UP, settings);
    let rows = |sql: &str| place.beside().rows(sql);
    let other_rows: Vec<String> =
        (2..10).map(|id| format!("select n from t where id = {id}")).collect();
    let (mut reader, mut writer) = (place.client(), place.client());
    // PostgreSQL answers this one nothing that the stream could be behind.
    let mut bystander = place.client();
    let all = [READ, WIDE];
    // How the writes are judged is known.
    let writes = [
        "update t set n = n + 1 where id = 1",
        "with x as (update t set n = n + 1 where id = 1 returning 1) select * from x",
        "begin; update t set n = n + 1 where id = 1; commit",
        "select bump()",
        "insert into log select coalesce(max(id), 0) + 1 from log",
    ];
    for _ in 0..6 {
        writes.iter().for_each(|write| writer.run(write));
    }
    all.iter().for_each(|read| drop(reader.warm(read)));
    other_rows.iter().for_each(|read| drop(bystander.warm(read)));
    let sender = sender(&place);
    kill_process(sender, Signal::STOP).expect("the sender runs");
    let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let expected: Vec<_> = other_rows.iter().map(|read| rows(read)).collect();
        for (round, write) in writes.iter().enumerate() {
            writer.run(write);
            assert_eq!(reader.rows(READ), rows(READ), "{write}");
            assert!(!reader.was_hit(), "the stream has not told of it: {write}");
            assert_eq!(reader.rows(WIDE), rows(WIDE), "{write}");
            assert!(!reader.was_hit(), "{write}");
            let mut hits = 0;
            for (read, expected) in other_rows.iter().zip(&expected) {
                assert_eq!(bystander.rows(read), *expected);
                hits += usize::from(bystander.was_hit());
            }
            // Of the first one it is known which row it writes. (Two rows may share a place.)
            assert_eq!(hits > 0, round == 0, "{hits} of other rows: {write}");
        }
    }));
    kill_process(sender, Signal::CONT).expect("the sender is there");
    stopped.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    all.iter().for_each(|read| assert_eq!(reader.warm(read), rows(read)));
}
