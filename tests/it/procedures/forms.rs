//! Every form of a call rides, and is answered byte by byte as a direct connection answers it.

use super::books::{on_one_train, query};
use crate::coalescing::crowd::Crowd;
use crate::kit::{Config, WireClient};
use crate::traps::batch::Batch;
use crate::traps::servers::direct;

/// Each leaves behind what it found, so that it can be compared. Nothing tells a key: all that are
/// sent at once are on one train.
const TABLES: &str = "
    create table kept(id int, n int, at timestamp);
    insert into kept select g, 7, '2026-01-02 03:04:05' from generate_series(1, 9) g;
    create procedure put(p_id int, p_n int) language plpgsql as $$ begin
        update kept set n = 7 where id = p_id;
        if p_n = 100 then raise notice 'a hundred' using detail = 'of ' || p_id; end if;
        if p_n < 0 then
            raise exception 'no % here', p_n using errcode = 'P0077', hint = 'take more';
        end if;
    end $$;
    create procedure put_default(p_id int, p_n int default 3, p_text text default 'none')
        language plpgsql as $$ begin update kept set n = 7 where id = p_id; end $$;
    create procedure put_inout(p_id int, inout p_n int) language plpgsql as $$ begin
        update kept set n = 7 where id = p_id; p_n := p_n * 2; end $$;
    create procedure put_out(p_id int, p_n int, out o_text text, out o_at timestamp)
        language plpgsql as $$ begin
        update kept set n = 7 where id = p_id returning at into o_at; o_text := 'n' || p_n; end $$;
    create function puts(p_id int, p_n int) returns int language plpgsql as $$ begin
        update kept set n = 7 where id = p_id;
        if p_n < 0 then raise exception 'no % here', p_n; end if;
        return p_n; end $$;
    create function puts_record(p_id int, p_n int, out o_id int, out o_text text)
        language plpgsql as $$ begin
        update kept set n = 7 where id = p_id; o_id := p_id; o_text := null; end $$;
    create function puts_rows(p_id int, p_n int) returns setof kept language plpgsql as $$ begin
        update kept set n = 7 where id = p_id;
        return query select * from kept where id <= p_n order by id; end $$;
    create function puts_nothing(p_id int, p_n int) returns void language plpgsql as $$ begin
        update kept set n = 7 where id = p_id; end $$;
    create function puts_sql(p_id int, p_n int) returns int language sql as
        $$ update kept set n = 7 where id = p_id returning n + p_n $$;
";

const NAMES: &[&str] = &[
    "put",
    "put_default",
    "put_inout",
    "put_out",
    "puts",
    "puts_record",
    "puts_rows",
    "puts_nothing",
    "puts_sql",
];

fn declared(config: Config) -> Config {
    NAMES.iter().fold(config, |config, name| on_one_train(config, name))
}

const TEXTS: &[&str] = &[
    "call put(3, 2)",
    "call put(3, 100)",
    "call put(3, -5)",
    "CALL public.put ( 4 , 2 ) ;",
    "call put(p_n => 2, p_id => 5)",
    "call put(p_n => -2, p_id => 5)",
    "call put_default(1)",
    "call put_default(1, p_text => 'some')",
    "call put_inout(2, 21)",
    "call put_inout(2, null)",
    "call put_out(2, 21, null, null)",
    "select puts(1, 2)",
    "select puts(1, -2)",
    "select public.puts(p_id => 1, p_n => 2)",
    "select * from puts(2, 3)",
    "select * from puts(2, -3)",
    "select * from puts(2, 3) as result",
    "select puts_record(3, 4)",
    "select * from puts_record(3, 4)",
    "select * from puts_rows(3, 4)",
    "select * from puts_rows(3, 0)",
    "select puts_nothing(3, 4)",
    "select * from puts_sql(3, 4)",
];

/// All clients send the same, on one train, and each is answered as a direct connection is.
#[track_caller]
fn alike(crowd: &mut Crowd, straight: &mut WireClient, batch: &Batch) {
    let expected = batch.answer(straight);
    let batches = vec![batch.clone(); crowd.clients.len()];
    for answer in crowd.together_by("train", &batches) {
        assert_eq!(answer, expected, "on a train (left) and directly (right)");
    }
}

#[test]
fn simple_queries_ride_and_are_answered_as_directly() {
    let mut crowd = Crowd::start(4, TABLES, declared);
    let mut straight = direct(&crowd.database);
    for text in TEXTS {
        crowd.learn(&query(text), "train");
        alike(&mut crowd, &mut straight, &query(text));
    }
}

/// Calls with two parameters.
const PARAMETERS: &[&str] = &[
    "call put($1, $2)",
    "call put(p_n => $2, p_id => $1)",
    "call put_default($1, $2)",
    "call put_inout($1, $2)",
    "call put_out($1, $2, null, null)",
    "select puts($1, $2)",
    "select * from puts($1,$2) as result",
    "select * from puts_record($1, $2)",
    "select * from puts_rows($1, $2)",
    "select puts_nothing(p_id => $1, p_n => $2)",
    "select * from puts_sql($1, $2)",
];

/// Bind with values and results in binary format.
/// Source: PostgreSQL docs, "Message Formats", Bind.
fn bind_binary(statement: &str, values: [i32; 2]) -> Vec<u8> {
    let mut body = b"\0".to_vec();
    body.extend(statement.as_bytes());
    body.extend(b"\0\0\x01\0\x01\0\x02");
    for value in values {
        body.extend(4_u32.to_be_bytes());
        body.extend(value.to_be_bytes());
    }
    body.extend(b"\0\x01\0\x01");
    body
}

#[test]
fn the_extended_protocol_rides_and_is_answered_as_directly() {
    let mut crowd = Crowd::start(3, TABLES, declared);
    let mut straight = direct(&crowd.database);
    for sql in PARAMETERS {
        let parsed = |batch: Batch| batch.parse("", sql);
        let text = |n: &str| parsed(Batch::new()).bind("", &["3", n]);
        let unnamed = |n: &str| text(n).describe_portal("").execute().sync();
        crowd.learn(&unnamed("5"), "train");
        alike(&mut crowd, &mut straight, &unnamed("5"));
        alike(&mut crowd, &mut straight, &text("5").execute().sync());
        alike(&mut crowd, &mut straight, &unnamed("-5"));
        alike(&mut crowd, &mut straight, &unnamed("100"));
        let binary = parsed(Batch::new()).message(b'B', &bind_binary("", [3, 6]));
        alike(&mut crowd, &mut straight, &binary.describe_portal("").execute().sync());
    }
}

#[test]
fn prepared_statements_ride_and_are_answered_as_directly() {
    let mut crowd = Crowd::start(3, TABLES, declared);
    let mut straight = direct(&crowd.database);
    for (at, sql) in PARAMETERS.iter().enumerate() {
        let name = format!("call {at}");
        let parse = Batch::new().parse(&name, sql).describe(&name).sync();
        let expected = parse.answer(&mut straight);
        for client in &mut crowd.clients {
            assert_eq!(parse.answer(client), expected);
        }
        let text = |n: &str| Batch::new().bind(&name, &["3", n]).execute().sync();
        crowd.learn(&text("5"), "train");
        alike(&mut crowd, &mut straight, &text("5"));
        alike(&mut crowd, &mut straight, &text("-5"));
        let described = Batch::new().bind(&name, &["3", "100"]).describe_portal("");
        alike(&mut crowd, &mut straight, &described.execute().sync());
        let binary = Batch::new().message(b'B', &bind_binary(&name, [3, 6]));
        alike(&mut crowd, &mut straight, &binary.execute().sync());
    }
}

#[test]
fn each_of_a_train_is_given_its_own_answer() {
    let mut crowd = Crowd::start(9, TABLES, declared);
    crowd.learn(&query("call put(1, 2)"), "train");
    crowd.learn(&query("select puts(1, 2)"), "train");
    let rows = "select * from puts_rows(1, 2)";
    crowd.learn(&query(rows), "train");
    for round in 0..4 {
        let batches: Vec<Batch> = (0..9)
            .map(|number| {
                let (id, n) = (1 + (number + round) % 9, number * 10 + round);
                match number % 4 {
                    0 => query(&format!("select puts({id}, {n})")),
                    1 => query(&format!("call put({id}, -{n})")),
                    2 => query(&format!("select * from puts_rows({id}, {number})")),
                    _ => query(&format!("call put({id}, 100)")),
                }
            })
            .collect();
        let mut straight = direct(&crowd.database);
        let expected: Vec<_> = batches.iter().map(|batch| batch.answer(&mut straight)).collect();
        assert_eq!(crowd.together_by("train", &batches), expected);
    }
}
