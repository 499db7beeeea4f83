//! Trap 2: after a change of definitions every client goes on after at most one error, on every
//! server, however its driver deals with "cached plan must not change result type", and with what
//! PostgreSQL says of a statement whose types were dropped and made again.

use wire::pg::backend::tag;

use super::batch::{tags, Batch};
use super::servers::TwoServers;
use super::statements::error_code;
use crate::coalescing::crowd::Crowd;
use crate::kit::cluster::APP;
use crate::kit::wireclient::Message;
use crate::kit::WireClient;

const SQL: &str = "select * from plans";

/// What a driver does that prepares each text once.
struct Driver {
    client: WireClient,
    name: String,
    number: u32,
    errors: usize,
    /// It closes a statement that PostgreSQL has refused, and prepares the text again.
    prepares_again: bool,
}

impl Driver {
    fn new(mut client: WireClient, prepares_again: bool) -> Driver {
        assert_eq!(tags(&Batch::new().parse("s0", SQL).sync().answer(&mut client)), "1Z");
        Driver { client, name: "s0".into(), number: 0, errors: 0, prepares_again }
    }

    /// The columns of the row.
    fn run(&mut self) -> Option<usize> {
        let run = Batch::new().bind(&self.name, &[]).execute().sync();
        let answer = run.answer(&mut self.client);
        if tags(&answer) == "2DCZ" {
            return Some(answer[1].values().len());
        }
        assert_eq!((tags(&answer).as_str(), error_code(&answer).as_str()), ("EZ", "0A000"));
        self.errors += 1;
        if self.prepares_again && self.client.status == b'I' {
            self.prepare_again();
        }
        None
    }

    fn prepare_again(&mut self) {
        let old = std::mem::take(&mut self.name);
        self.number += 1;
        self.name = format!("s{}", self.number);
        let again = Batch::new().close(&old).parse(&self.name, SQL).sync();
        assert_eq!(tags(&again.answer(&mut self.client)), "31Z");
    }
}

fn servers() -> TwoServers {
    let servers = TwoServers::start();
    let grant = format!("grant select on plans to \"{APP}\"");
    servers.database.run("create table plans (a int); insert into plans values (1)");
    servers.database.run(&grant);
    servers
}

#[test]
fn trap_02_after_ddl_every_client_has_one_error_at_most_on_all_servers() {
    let mut servers = servers();
    servers.only(0);
    let mut drivers: Vec<Driver> =
        (0..6).map(|n| Driver::new(servers.client(), n % 2 == 0)).collect();
    for server in [0, 1] {
        servers.only(server);
        assert!(drivers.iter_mut().all(|driver| driver.run() == Some(1)));
    }
    for change in 2..4 {
        servers.database.run(&format!("alter table plans add a{change} int default 7"));
        for server in [0, 1, 0, 1] {
            servers.only(server);
            for driver in &mut drivers {
                driver.errors += usize::from(driver.run().is_none());
                assert_eq!(driver.run(), Some(change), "the second try on server {server}");
            }
        }
        let errors: Vec<usize> =
            drivers.iter_mut().map(|one| std::mem::take(&mut one.errors)).collect();
        assert!(errors.iter().all(|errors| *errors == 2), "once each, counted twice: {errors:?}");
    }
    assert_eq!(servers.gateway.figure("pondage_stale_plans_total"), 12);
    assert_eq!(servers.gateway.figure("pondage_replanned_total"), 0);
}

#[test]
fn trap_02_in_a_transaction_the_error_is_the_clients_and_the_next_one_works() {
    let mut servers = servers();
    servers.only(0);
    for prepares_again in [true, false] {
        let mut driver = Driver::new(servers.client(), prepares_again);
        for server in [0, 1] {
            servers.only(server);
            // What the text was prepared as by the driver before is of no use any more.
            assert!(driver.run().or_else(|| driver.run()).is_some());
        }
        servers.database.run("alter table plans add b int");
        servers.only(0);
        driver.client.run("begin; select 1");
        // It describes itself, but what came before it in the transaction is lost with it.
        let run = Batch::new().bind(&driver.name, &[]).describe_portal("").execute().sync();
        assert_eq!(error_code(&run.answer(&mut driver.client)), "0A000");
        assert_eq!(driver.client.status, b'E');
        driver.client.run("rollback");
        if prepares_again {
            driver.prepare_again();
        }
        for server in [1, 0] {
            servers.only(server);
            driver.client.run("begin; select 1");
            assert_eq!(driver.run(), Some(2), "server {server}");
            driver.client.run("commit");
        }
        servers.database.run("alter table plans drop b");
    }
}

#[test]
fn trap_02_who_asks_what_the_rows_look_like_does_not_notice() {
    let mut servers = servers();
    servers.only(0);
    let mut clients: Vec<WireClient> = (0..3).map(|_| servers.client()).collect();
    let mut parse = Vec::new();
    let int8 = 20u32.to_be_bytes();
    parse.extend([&b"typed\0select *, $1 from plans\0\0\x01"[..], &int8].concat());
    for client in &mut clients {
        let both = Batch::new().parse("s", SQL).message(b'P', &parse).sync();
        assert_eq!(tags(&both.answer(client)), "11Z");
    }
    let all = |statement: &str, values: &[&str]| {
        Batch::new().bind(statement, values).describe_portal("").execute().sync()
    };
    let run = |clients: &mut [WireClient], columns: usize| {
        for client in clients {
            for (batch, more) in [(all("s", &[]), 0), (all("typed", &["8"]), 1)] {
                let answer = batch.answer(client);
                assert_eq!(tags(&answer), "2TDCZ", "{answer:?}");
                assert_eq!(answer[2].values().len(), columns + more);
            }
            let described = Batch::new().describe("s").sync().answer(client);
            assert_eq!(tags(&described), "tTZ");
        }
    };
    for server in [0, 1] {
        servers.only(server);
        run(&mut clients, 1);
    }
    servers.database.run("alter table plans add b int");
    for server in [0, 1, 0, 1] {
        servers.only(server);
        run(&mut clients, 2);
    }
    servers.database.run("alter table plans add c int");
    let described = Batch::new().describe("s").sync();
    for server in [1, 0] {
        servers.only(server);
        for client in &mut clients {
            assert_eq!(tags(&described.answer(client)), "tTZ", "a Describe alone");
        }
        run(&mut clients, 3);
    }
    // Who comes new is not told of a plan that is older than he is.
    servers.database.run("alter table plans add d int");
    let prepares = Batch::new().parse("s", SQL).describe("s").sync();
    for server in [0, 1] {
        servers.only(server);
        assert_eq!(tags(&prepares.answer(&mut servers.client())), "1tTZ");
    }
    assert!(servers.gateway.figure("pondage_replanned_total") >= 6);
    let both = ["pondage_replanned_total", "pondage_stale_plans_total"];
    let [again, all] = both.map(|name| servers.gateway.figure(name));
    assert_eq!(again, all, "nobody was told");
    assert_eq!(servers.gateway.figure("pondage_client_errors_total"), 0);
}

/// As asyncpg prepares: it reads the description before it ends the batch.
#[test]
fn trap_02_who_asks_with_a_flush_what_the_rows_look_like_does_not_notice() {
    let mut servers = servers();
    let again = "drop table if exists kinds cascade; drop type if exists kind cascade;
        create type kind as enum ('a'); create table kinds as select 'a'::kind as k;";
    let made = format!("{again} grant all on kinds to \"{APP}\"");
    servers.database.run(&made);
    let sqls: [(&str, &[&str]); 3] = [
        (SQL, &[]),
        ("select * from kinds", &[]),
        ("select $1::text::kind, $2::kind", &["a", "a"]),
    ];
    let prepare = |name: &str, sql: &str| Batch::new().parse(name, sql).describe(name).flush();
    let run = |name: &str, values: &[&str]| Batch::new().bind(name, values).execute().sync();
    let prepares = |client: &mut WireClient, name: &str, (sql, values): (&str, &[&str])| {
        prepare(name, sql).to(client);
        let answer: Vec<Message> = (0..3).map(|_| client.message()).collect();
        assert_eq!(tags(&answer), "1tT", "{sql}: {answer:?}");
        assert_eq!(tags(&run(name, values).answer(client)), "2DCZ", "{sql}");
    };
    for server in [0, 1] {
        servers.only(server);
        for sql in sqls {
            prepares(&mut servers.client(), "s", sql);
        }
    }
    servers.database.run("alter table plans add b int");
    servers.database.run(&made);
    let mut waits = servers.client();
    for (change, server) in [0, 1, 0].into_iter().enumerate() {
        servers.only(server);
        let mut client = servers.client();
        for (number, sql) in sqls.into_iter().enumerate() {
            prepares(&mut client, &format!("s{number}"), sql);
        }
        // With an end of its own close behind it, in a piece of its own.
        servers.database.run(&format!("alter table plans add c{change} int"));
        prepare("w", SQL).to(&mut waits);
        Batch::new().sync().to(&mut waits);
        let answer = waits.until_ready();
        assert!(["1tTZ", "1tEZ", "1EZ"].contains(&&*tags(&answer)), "{answer:?}");
        waits.run("deallocate w");
    }
    assert!(servers.gateway.figure("pondage_replanned_total") >= 3);

    // In a transaction it is told, and its batch ends with its own Sync.
    servers.only(1);
    prepares(&mut servers.client(), "s", sqls[0]);
    servers.database.run("alter table plans add d int");
    let mut client = servers.client();
    client.run("begin; select 1");
    prepare("t", SQL).to(&mut client);
    let answer: Vec<Message> = (0..2).map(|_| client.message()).collect();
    assert_eq!(tags(&answer), "1t");
    assert_eq!(error_code(&Batch::new().sync().answer(&mut client)), "0A000");
    client.run("rollback");
    assert_eq!(tags(&run("t", &[]).answer(&mut client)), "2DCZ");
}

#[test]
fn trap_02_what_may_mean_something_else_is_told() {
    let mut servers = servers();
    servers.only(0);
    let mut client = servers.client();
    let prepared = Batch::new().parse("s", SQL).parse("p", "select *, $1::int from plans").sync();
    assert_eq!(tags(&prepared.answer(&mut client)), "11Z");
    // From here on the client may know of a type that the text does not say.
    assert_eq!(tags(&Batch::new().describe("p").sync().answer(&mut client)), "tTZ");
    let described = |name: &str, values: &[&str]| {
        Batch::new().bind(name, values).describe_portal("").execute().sync()
    };
    for run in [described("p", &["1"]), Batch::new().bind("s", &[]).execute().sync()] {
        assert!(tags(&run.answer(&mut client)).ends_with("DCZ"));
        servers.database.run("alter table plans add b int");
        assert_eq!(error_code(&run.answer(&mut client)), "0A000");
        assert!(tags(&run.answer(&mut client)).ends_with("DCZ"));
        servers.database.run("alter table plans drop b");
        assert_eq!(error_code(&run.answer(&mut client)), "0A000");
        assert!(tags(&run.answer(&mut client)).ends_with("DCZ"));
    }
    // More of the same client's is behind it: each is answered in its place.
    servers.database.run("alter table plans add b int");
    let mut two = described("s", &[]);
    two.0.extend(Batch::new().query("select 'next'").0);
    two.to(&mut client);
    assert_eq!(tags(&client.until_ready()), "EZ");
    assert_eq!(client.until_ready()[1].values(), [Some("next".to_owned())]);
    assert_eq!(servers.gateway.figure("pondage_replanned_total"), 0);
}

/// What makes a type, a statement that needs it, and values for it.
const NEEDS: &[(&str, &str, &[&str])] = &[
    ("create type kind as enum ('a')", "select $1::kind", &["a"]),
    ("create type kind as enum ('a')", "select $1::text::kind", &["a"]),
    ("create type kind as enum ('a')", "insert into kinds select $1::kind", &["a"]),
    ("create type kind as enum ('a')", "select 'a'::kind = any($1)", &["{a}"]),
    ("create type kind as (n int)", "select row(1)::kind", &[]),
    ("create type kind as (n int)", "select ($1::kind).n", &["(1)"]),
    ("create domain kind as int check (value > 0)", "select 1::kind", &[]),
    ("create domain kind as int check (value > 0)", "select $1::kind", &["1"]),
    ("create type kind as range (subtype = float8)", "select $1::kind", &["[1,2]"]),
];

/// Every client of two servers that have prepared it, warm on one of them; then it is made again.
#[test]
fn trap_02_after_a_type_was_made_again_every_client_has_one_error_at_most() {
    for (make, sql, values) in NEEDS {
        for describes in [false, true] {
            let mut servers = TwoServers::start();
            let again = "drop table if exists kinds; drop type if exists kind cascade;";
            let table = format!(
                "create table kinds as select null::kind as k;
                grant all on kinds to \"{APP}\""
            );
            let made = format!("{again} {make}; {table}");
            servers.database.run(&made);
            let mut clients: Vec<WireClient> = (0..3).map(|_| servers.client()).collect();
            let run = Batch::new().bind("s", values);
            let run = if describes { run.describe_portal("") } else { run };
            let run = run.execute().sync();
            servers.only(0);
            for client in &mut clients {
                assert_eq!(tags(&Batch::new().parse("s", sql).sync().answer(client)), "1Z");
            }
            for server in [0, 1, 0, 0, 0, 0, 0, 0] {
                servers.only(server);
                for client in &mut clients {
                    assert!(tags(&run.answer(client)).ends_with("CZ"), "{sql}");
                }
            }
            servers.database.run(&made);
            for server in [0, 1] {
                servers.only(server);
                for client in &mut clients {
                    let first = run.answer(client);
                    if describes {
                        assert!(tags(&first).ends_with("CZ"), "{sql}: {first:?}");
                    } else if tags(&first) == "EZ" {
                        let code = error_code(&first);
                        assert!(
                            ["XX000", "42704"].contains(&&*code) && server == 0,
                            "{sql}: {code}"
                        );
                    }
                    assert!(tags(&run.answer(client)).ends_with("CZ"), "{sql}");
                }
            }
            let both = ["pondage_replanned_total", "pondage_stale_plans_total"];
            let [replanned, stale] = both.map(|name| servers.gateway.figure(name));
            assert_eq!((replanned, stale), if describes { (3, 3) } else { (0, 3) }, "{sql}");
            // Without the type it is told what is missing, as for a text that comes anew.
            servers.database.run(again);
            let last = run.answer(&mut clients[0]);
            let expected = if describes { "42704" } else { "XX000" };
            let code = error_code(&last);
            assert!(code == expected || code == "42704" || code == "42P01", "{sql}: {code}");
            assert!(["42704", "42P01"].contains(&&*error_code(&run.answer(&mut clients[0]))));
        }
    }
}

/// Who prepares a text again, whose meaning has changed, is not given what others have prepared.
#[test]
fn trap_02_a_text_that_is_prepared_again_has_types_of_its_own() {
    let mut servers = servers();
    let sql = "select a from plans where a = $1";
    let run = |name: &str| Batch::new().bind(name, &["1"]).execute().sync();
    let (mut keeps, mut again) = (servers.client(), servers.client());
    for server in [0, 1] {
        servers.only(server);
        for client in [&mut keeps, &mut again] {
            let first = if server == 0 { Batch::new().parse("s", sql) } else { Batch::new() };
            let batch = first.sync();
            batch.answer(client);
            assert_eq!(tags(&run("s").answer(client)), "2DCZ");
        }
    }
    servers.database.run("alter table plans alter a type text");
    for server in [0, 1] {
        servers.only(server);
        for client in [&mut keeps, &mut again] {
            // As without a pooler: it is the values' type that was settled.
            assert_eq!(error_code(&run("s").answer(client)), "42883", "server {server}");
        }
    }
    let anew = Batch::new().close("s").parse("s", sql).sync();
    assert_eq!(tags(&anew.answer(&mut again)), "31Z");
    for server in [0, 1, 0] {
        servers.only(server);
        assert_eq!(tags(&run("s").answer(&mut again)), "2DCZ", "server {server}");
        assert_eq!(error_code(&run("s").answer(&mut keeps)), "42883", "server {server}");
    }
    assert_eq!(servers.gateway.figure("pondage_stale_plans_total"), 0);
}

/// What a parameter is that nobody has said the type of: settled when a text is prepared, by the
/// tables of then.
#[test]
fn trap_02_a_parameter_is_what_the_tables_say_when_it_is_prepared() {
    let mut servers = servers();
    servers.database.run(&format!("grant create on schema public to \"{APP}\""));
    servers.only(0);
    let mut other = servers.client();
    other.run("create table days (d date)");
    let sql = "insert into days values ($1)";
    let described = |client: &mut WireClient| {
        let answer = Batch::new().close("s").parse("s", sql).describe("s").sync().answer(client);
        let types = answer.iter().find(|message| message.tag == b't').expect("its parameters");
        u32::from_be_bytes(types.body[2..6].try_into().expect("one type"))
    };
    const DATE: u32 = 1082;
    const TIMESTAMPTZ: u32 = 1184;
    let mut clients = [servers.client(), servers.client()];
    for server in [0, 1] {
        servers.only(server);
        for client in &mut clients {
            assert_eq!(described(client), DATE, "server {server}");
        }
    }
    // By a client, in a transaction in the midst of which others prepare.
    other.run("drop table days");
    other.run("create table days (d timestamptz)");
    for server in [1, 0] {
        servers.only(server);
        for client in &mut clients {
            assert_eq!(described(client), TIMESTAMPTZ, "server {server}");
        }
    }
}

#[test]
fn trap_02_among_others_too_a_statement_is_planned_anew() {
    let set_up = "create table plans (a int); insert into plans values (1)";
    let mut crowd = Crowd::start(4, set_up, |config| config);
    let describing = Batch::new().bind("s", &[]).describe_portal("").execute().sync();
    let silent = Batch::new().bind("s", &[]).execute().sync();
    for client in &mut crowd.clients {
        assert_eq!(tags(&Batch::new().parse("s", SQL).sync().answer(client)), "1Z");
    }
    crowd.learn(&describing, "batch");
    crowd.together(&vec![describing.clone(); 4]);
    // Two who ask what the rows look like, and two who do not.
    let batches = [&describing, &silent, &silent, &describing].map(Batch::clone);
    crowd.beside().run("alter table plans add b int");
    let answers: Vec<String> = crowd.together(&batches).iter().map(|one| tags(one)).collect();
    assert_eq!(answers, ["2TDCZ", "EZ", "EZ", "2TDCZ"]);
    let answers = crowd.together(&batches);
    let columns = |answer: &Vec<Message>| {
        let row = answer.iter().find(|message| message.tag == tag::DATA_ROW);
        row.map(|row| row.values().len())
    };
    assert!(answers.iter().all(|answer| columns(answer) == Some(2)), "{answers:?}");
}
