//! Traps 1, 4, 8 and 9: statements that are prepared on one server and used on another.

use wire::pg::backend::tag;

use super::batch::{answered_alike, tags, Batch};
use super::servers::{OneServer, TwoServers};
use crate::kit::wireclient::Message;

/// The error that one of these messages must be.
#[track_caller]
pub fn error_code(messages: &[Message]) -> String {
    let error = messages.iter().find(|message| message.tag == tag::ERROR);
    error.unwrap_or_else(|| panic!("expected an error, got {messages:?}")).complaint().code
}

#[test]
fn trap_01_a_statement_parsed_on_one_server_runs_on_another() {
    let mut servers = TwoServers::start();
    let mut client = servers.client();
    servers.only(0);
    let sql = "select pg_backend_pid(), $1::int + 1";
    let prepared = Batch::new().parse("s", sql).describe("s").sync().answer(&mut client);
    assert_eq!(tags(&prepared), "1tTZ");

    servers.only(1);
    let run = Batch::new().bind("s", &["41"]).execute().sync();
    // No ParseComplete, which the server must have sent.
    for _ in 0..2 {
        let answer = run.answer(&mut client);
        assert_eq!(tags(&answer), "2DCZ");
        assert_eq!(answer[1].values(), [Some(servers.pids[1].clone()), Some("42".into())]);
    }
    servers.only(0);
    let answer = run.answer(&mut client);
    assert_eq!(tags(&answer), "2DCZ");
    assert_eq!(answer[1].values()[0], Some(servers.pids[0].clone()));
    assert_eq!(servers.prepared().len(), 1, "server 0 was not asked to parse it again");
}

#[test]
fn trap_01_a_statement_is_described_on_a_server_that_has_not_parsed_it() {
    let mut servers = TwoServers::start();
    let mut client = servers.client();
    servers.only(0);
    let sql = "select $1::int as a, $2::text as b";
    let first = Batch::new().parse("s", sql).describe("s").sync().answer(&mut client);
    servers.only(1);
    let second = Batch::new().describe("s").sync().answer(&mut client);
    assert_eq!(tags(&second), "tTZ");
    assert_eq!(second, first[1..], "the same description");
}

#[test]
fn trap_01_the_unnamed_statement_follows_its_client_and_no_other() {
    let mut servers = TwoServers::start();
    let (mut client, mut other) = (servers.client(), servers.client());
    servers.only(0);
    let parsed = Batch::new().parse("", "select pg_backend_pid(), 'mine'").sync();
    assert_eq!(tags(&parsed.answer(&mut client)), "1Z");
    let parsed = Batch::new().parse("", "select pg_backend_pid(), 'other''s'").sync();
    servers.only(1);
    assert_eq!(tags(&parsed.answer(&mut other)), "1Z");
    let run = Batch::new().bind("", &[]).execute().sync();
    for server in [1, 0, 1] {
        servers.only(server);
        let pid = Some(servers.pids[server].clone());
        for (client, whose) in [(&mut client, "mine"), (&mut other, "other's")] {
            let answer = run.answer(client);
            assert_eq!(tags(&answer), "2DCZ");
            assert_eq!(answer[1].values(), [pid.clone(), Some(whose.into())]);
        }
    }
    // Who has none gets PostgreSQL's error, not another's statement.
    let mut none = servers.client();
    assert_eq!(error_code(&run.answer(&mut none)), "26000");
}

#[test]
fn trap_01_parameter_types_and_quotes_in_names_survive_the_move() {
    let mut servers = TwoServers::start();
    let mut client = servers.client();
    servers.only(0);
    // int8 by its type id, in a name that would break out of quotes.
    let mut body = b"it's \"x\"\0select pg_typeof($1)::text, $1 + 1\0".to_vec();
    body.extend([0, 1]);
    body.extend(20u32.to_be_bytes());
    let parse = Batch::new().message(b'P', &body).sync();
    assert_eq!(tags(&parse.answer(&mut client)), "1Z");
    for server in [0, 1] {
        servers.only(server);
        let run = Batch::new().bind("it's \"x\"", &["9000000000"]).execute().sync();
        let answer = run.answer(&mut client);
        assert_eq!(tags(&answer), "2DCZ");
        assert_eq!(answer[1].values(), [Some("bigint".into()), Some("9000000001".into())]);
    }
}

#[test]
fn trap_01_a_pipeline_of_batches_prepares_a_statement_on_a_new_server_once() {
    let mut servers = TwoServers::start();
    let mut client = servers.client();
    servers.only(0);
    let parsed = Batch::new().parse("s", "select $1::text").sync().answer(&mut client);
    assert_eq!(tags(&parsed), "1Z");
    servers.only(1);
    // Nobody knows yet whether the first batch will have prepared it when the others are sent.
    let mut batch = Batch::new();
    for n in 0..20 {
        batch = batch.bind("s", &[&n.to_string()]).execute().sync();
        if n % 5 == 0 {
            batch = batch.parse("", "selec").bind("s", &["skipped"]).execute().sync();
        }
    }
    batch.to(&mut client);
    for n in 0..20 {
        let answer = client.until_ready();
        assert_eq!(tags(&answer), "2DCZ", "{answer:?}");
        assert_eq!(answer[1].values(), [Some(n.to_string())]);
        if n % 5 == 0 {
            assert_eq!(error_code(&client.until_ready()), "42601");
        }
    }
    assert_eq!(servers.prepared().len(), 1);
}

#[test]
fn trap_04_a_statement_closed_and_parsed_again_in_a_skipped_batch_is_still_there() {
    let limit = |config: crate::kit::Config| config.set("pool.max_prepared_statements", 2);
    let servers = OneServer::start_with(limit);
    let mut client = servers.client();
    for n in 0..4 {
        let parse = Batch::new().parse(&format!("s{n}"), &format!("select {n}")).sync();
        assert_eq!(tags(&parse.answer(&mut client)), "1Z");
    }
    let all = |batch: Batch| {
        (0..4).rev().chain(0..4).fold(batch, |batch, n| batch.bind(&format!("s{n}"), &[]).execute())
    };
    for _ in 0..3 {
        // Room is made for each of them, and all of it is skipped.
        let skipped = all(Batch::new().parse("", "selec")).sync();
        assert_eq!(tags(&skipped.answer(&mut client)), "EZ");
        assert_eq!(tags(&all(Batch::new()).sync().answer(&mut client)), "2DC".repeat(8) + "Z");
    }
}

#[test]
fn trap_04_a_skipped_parse_leaves_no_entry() {
    let mut servers = TwoServers::start();
    let mut client = servers.client();
    for server in [0, 1] {
        servers.only(server);
        // The second Parse is skipped because the first one fails.
        let both = Batch::new().parse("bad", "selec 1").parse("s", "select 'skipped'").sync();
        assert_eq!(tags(&both.answer(&mut client)), "EZ");
        let run = Batch::new().bind("s", &[]).execute().sync();
        assert_eq!(error_code(&run.answer(&mut client)), "26000", "it was never prepared");
        assert_eq!(servers.prepared(), [""; 0]);
    }
    // The name is free, and what is prepared under it now is what runs.
    let again = Batch::new().parse("s", "select 'second'").bind("s", &[]).execute().sync();
    let answer = again.answer(&mut client);
    assert_eq!(tags(&answer), "12DCZ");
    assert_eq!(answer[2].values(), [Some("second".into())]);
}

#[test]
fn trap_04_a_parse_of_known_text_that_is_skipped_leaves_no_entry() {
    let mut servers = TwoServers::start();
    let (mut client, mut other) = (servers.client(), servers.client());
    servers.only(0);
    // The server has this text already, so the answer is the pooler's own: but in its turn.
    let known = Batch::new().parse("o", "select 'known'").sync();
    assert_eq!(tags(&known.answer(&mut other)), "1Z");
    let both = Batch::new().parse("bad", "selec 1").parse("s", "select 'known'").sync();
    assert_eq!(tags(&both.answer(&mut client)), "EZ");
    let run = Batch::new().bind("s", &[]).execute().sync();
    assert_eq!(error_code(&run.answer(&mut client)), "26000");
    assert_eq!(tags(&Batch::new().parse("s", "select 1").sync().answer(&mut client)), "1Z");
    let others = Batch::new().bind("o", &[]).execute().sync().answer(&mut other);
    assert_eq!(tags(&others), "2DCZ");
}

#[test]
fn trap_04_a_skipped_close_leaves_the_statement() {
    let mut servers = TwoServers::start();
    let mut client = servers.client();
    servers.only(0);
    let sql = "select 'still here'";
    assert_eq!(tags(&Batch::new().parse("s", sql).sync().answer(&mut client)), "1Z");
    let skipped = Batch::new().parse("bad", "selec 1").close("s").sync();
    assert_eq!(tags(&skipped.answer(&mut client)), "EZ");
    let run = Batch::new().bind("s", &[]).execute().sync();
    for server in [0, 1] {
        servers.only(server);
        let answer = run.answer(&mut client);
        assert_eq!(tags(&answer), "2DCZ");
        assert_eq!(answer[1].values(), [Some("still here".into())]);
    }
    // Nor does one that comes in an own write, after the error was answered.
    Batch::new().parse("bad", "selec 1").flush().to(&mut client);
    client.expect(tag::ERROR);
    assert_eq!(tags(&Batch::new().close("s").sync().answer(&mut client)), "Z");
    assert_eq!(tags(&run.answer(&mut client)), "2DCZ");
    // A Close that is done takes it away, and a name can be closed twice.
    assert_eq!(tags(&Batch::new().close("s").close("s").sync().answer(&mut client)), "33Z");
    assert_eq!(error_code(&run.answer(&mut client)), "26000");
}

#[test]
fn trap_08_an_unknown_name_gives_26000_and_the_session_lives_on() {
    let servers = OneServer::start();
    let (mut direct, mut client) = (servers.direct(), servers.client());
    for batch in [
        Batch::new().bind("nobody", &[]).execute().sync(),
        Batch::new().describe("nobody").sync(),
        Batch::new().parse("s", "select 1").bind("nobody", &[]).bind("s", &[]).execute().sync(),
        // The statement of an implicit transaction that failed stays prepared.
        Batch::new().bind("s", &[]).execute().sync(),
    ] {
        answered_alike(&mut direct, &mut client, &batch, 1);
    }
    let answer = Batch::new().bind("nobody", &[]).sync().answer(&mut client);
    assert_eq!(error_code(&answer), "26000");
    assert_eq!(client.one("select 'alive'"), "alive");
}

#[test]
fn trap_08_a_duplicate_name_gives_42p05_and_the_session_lives_on() {
    let mut servers = TwoServers::start();
    let (mut direct, mut client) = (servers.direct(), servers.client());
    servers.only(0);
    let first = Batch::new().parse("s", "select 'first'").sync();
    assert_eq!(answered_alike(&mut direct, &mut client, &first, 1), "1Z");
    let run = Batch::new().bind("s", &[]).execute().sync();
    for server in [0, 1] {
        servers.only(server);
        for sql in ["select 'second'", "select 'first'"] {
            let again = Batch::new().parse("s", sql).bind("s", &[]).execute().sync();
            assert_eq!(answered_alike(&mut direct, &mut client, &again, 1), "EZ");
        }
        assert_eq!(error_code(&first.answer(&mut client)), "42P05");
        // So it is in a transaction that has failed, for what may end it.
        for client in [&mut direct, &mut client] {
            client.run("begin");
            client.error("select 1 / 0");
        }
        let ends = Batch::new().parse("s", "rollback").sync();
        assert_eq!(answered_alike(&mut direct, &mut client, &ends, 1), "EZ");
        assert_eq!(error_code(&ends.answer(&mut client)), "42P05");
        for client in [&mut direct, &mut client] {
            client.run("rollback");
        }
        let answer = run.answer(&mut client);
        assert_eq!(answer[1].values(), [Some("first".into())], "the first one stays");
    }
    // In a transaction the error fails it, as any other.
    client.run("begin; select 1");
    assert_eq!(tags(&first.answer(&mut client)), "EZ");
    assert_eq!(client.status, b'E');
    client.run("rollback");
    // Also when both come in one pipeline.
    let twice = Batch::new().parse("d", "select 1").parse("d", "select 1").sync();
    assert_eq!(answered_alike(&mut direct, &mut client, &twice, 1), "1EZ");
    let done = Batch::new().bind("d", &[]).execute().sync();
    answered_alike(&mut direct, &mut client, &done, 1);
    assert_eq!(client.one("select 'alive'"), "alive");
}

#[test]
fn trap_09_closing_a_name_leaves_the_other_client_working() {
    let mut servers = TwoServers::start();
    let (mut one, mut other) = (servers.client(), servers.client());
    servers.only(0);
    let sql = "select 'shared'";
    for (client, name) in [(&mut one, "a"), (&mut other, "b")] {
        assert_eq!(tags(&Batch::new().parse(name, sql).sync().answer(client)), "1Z");
    }
    assert_eq!(servers.prepared().len(), 1, "the same text is prepared once");
    assert_eq!(tags(&Batch::new().close("a").sync().answer(&mut one)), "3Z");
    for server in [0, 1] {
        servers.only(server);
        let answer = Batch::new().bind("b", &[]).execute().sync().answer(&mut other);
        assert_eq!(tags(&answer), "2DCZ");
    }
    assert_eq!(error_code(&Batch::new().bind("a", &[]).sync().answer(&mut one)), "26000");
    // Nor does the end of a client, or its DEALLOCATE.
    assert_eq!(tags(&Batch::new().parse("a", sql).sync().answer(&mut one)), "1Z");
    one.run("deallocate a");
    assert_eq!(error_code(&Batch::new().bind("a", &[]).sync().answer(&mut one)), "26000");
    one.terminate();
    let answer = Batch::new().bind("b", &[]).execute().sync().answer(&mut other);
    assert_eq!(tags(&answer), "2DCZ");
}

#[test]
fn trap_09_the_lru_never_closes_a_statement_bound_in_the_same_pipeline() {
    let limit = |config: crate::kit::Config| config.set("pool.max_prepared_statements", 2);
    let servers = OneServer::start_with(limit);
    let mut client = servers.client();
    // Each is parsed, then all are bound and run before the Sync: more than the limit.
    let mut batch = Batch::new();
    for n in 0..6 {
        batch = batch.parse(&format!("s{n}"), &format!("select {n}"));
    }
    for n in 0..6 {
        batch = batch.bind(&format!("s{n}"), &[]).execute();
    }
    let answer = batch.sync().answer(&mut client);
    assert_eq!(tags(&answer), "1111112DC2DC2DC2DC2DC2DCZ");
    // Those that were closed since come back without a word, in any order.
    for order in [[5, 4, 3, 2, 1, 0], [0, 3, 1, 4, 2, 5]] {
        let mut batch = Batch::new();
        for n in order {
            batch = batch.bind(&format!("s{n}"), &[]).execute();
        }
        let answer = batch.sync().answer(&mut client);
        assert_eq!(tags(&answer), "2DC2DC2DC2DC2DC2DCZ");
        let rows = answer.iter().filter(|message| message.tag == tag::DATA_ROW);
        let values: Vec<String> = rows.flat_map(Message::values).flatten().collect();
        assert_eq!(values, order.map(|n| n.to_string()));
    }
    for n in 0..6 {
        let run = Batch::new().bind(&format!("s{n}"), &[]).execute().sync();
        assert_eq!(tags(&run.answer(&mut client)), "2DCZ");
    }
    // The next one that is prepared brings the server back to its limit.
    assert_eq!(tags(&Batch::new().parse("new", "select 'new'").sync().answer(&mut client)), "1Z");
    assert_eq!(client.one("select count(*) from pg_prepared_statements"), "2");
}
