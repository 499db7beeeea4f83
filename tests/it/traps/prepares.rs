//! Trap 3: SQL's own prepared statements are their client's, on every server, and nobody else's;
//! the same names as those of the protocol, as in PostgreSQL.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use wire::pg::backend::tag;

use super::batch::{answered_alike, tags, Batch};
use super::servers::{direct, OneServer, TwoServers};
use super::statements::error_code;
use crate::kit::cluster::APP;
use crate::kit::wireclient::Message;
use crate::kit::WireClient;

#[test]
fn trap_03_what_is_prepared_on_one_server_runs_on_another_and_for_nobody_else() {
    let mut servers = TwoServers::start();
    let (mut client, mut other) = (servers.client(), servers.client());
    servers.only(0);
    client.run("prepare q (int) as select $1 + 1, pg_backend_pid()");
    other.run("prepare q as select 'other''s'");
    assert_eq!(client.error("prepare q as select 1").code, "42P05");
    for server in [0, 1, 1, 0] {
        servers.only(server);
        let row = client.rows("execute q(41)").remove(0);
        assert_eq!(row, [Some("42".to_owned()), Some(servers.pids[server].clone())]);
        assert_eq!(other.one("execute q"), "other's");
        assert_eq!(servers.client().error("execute q").code, "26000");
    }
    client.run("deallocate q");
    for server in [1, 0] {
        servers.only(server);
        assert_eq!(client.error("execute q(1)").code, "26000");
        assert_eq!(client.error("deallocate q").code, "26000");
        assert_eq!(other.one("execute q"), "other's");
    }
    other.run("deallocate all");
    servers.only(1);
    assert_eq!(other.error("execute q").code, "26000");
}

#[test]
fn trap_03_other_texts_that_execute_find_it_too() {
    let mut servers = TwoServers::start();
    let mut client = servers.client();
    servers.only(0);
    client.run("prepare \"Q q\" as select 7 as seven");
    servers.only(1);
    assert_eq!(client.rows("explain (costs off) execute \"Q q\"").len(), 1);
    servers.only(0);
    client.run("begin; create temp table t on commit drop as execute \"Q q\"");
    assert_eq!(client.one("select seven from t"), "7");
    client.run("commit");
    servers.only(1);
    let explained = "explain (analyze, costs off, timing off, summary off) execute \"Q q\"";
    assert!(!client.rows(explained).is_empty());
    servers.only(0);
    assert_eq!(client.one("begin; execute \"Q q\"; commit"), "7", "among other statements");
    // By the extended protocol: described, and prepared here and bound there.
    let run = Batch::new()
        .parse("", "execute \"Q q\"")
        .bind("", &[])
        .describe_portal("")
        .execute()
        .sync();
    let parsed = Batch::new().parse("s", "execute \"Q q\"").describe("s").sync();
    let bound = Batch::new().bind("s", &[]).execute().sync();
    assert_eq!(tags(&parsed.answer(&mut client)), "1tTZ");
    for server in [1, 0] {
        servers.only(server);
        assert_eq!(tags(&run.answer(&mut client)), "12TDCZ");
        assert_eq!(tags(&bound.answer(&mut client)), "2DCZ");
    }
}

#[test]
fn trap_03_names_are_one_space_with_the_protocols() {
    let mut servers = TwoServers::start();
    let (mut direct, mut client) = (servers.direct(), servers.client());
    let batches = [
        // Prepared by one, used by the other.
        Batch::new().query("prepare a as select 'a'"),
        Batch::new().bind("a", &[]).describe_portal("").execute().sync(),
        Batch::new().describe("a").sync(),
        Batch::new().parse("a", "select 2").sync(),
        Batch::new().parse("b", "select 'b'").sync(),
        Batch::new().query("execute b"),
        Batch::new().query("prepare b as select 1"),
        Batch::new().query("explain (costs off) execute b"),
        Batch::new().close("a").sync(),
        Batch::new().query("execute a"),
        Batch::new().query("deallocate b"),
        Batch::new().bind("b", &[]).execute().sync(),
        // A DEALLOCATE that is parsed in one batch and executed in another one.
        Batch::new().parse("c", "select 'c'").parse("drop", "deallocate c").sync(),
        Batch::new().query("select 'between'"),
        Batch::new().bind("drop", &[]).execute().sync(),
        Batch::new().bind("c", &[]).execute().sync(),
        Batch::new().query("execute c"),
        // All in one batch.
        Batch::new()
            .parse("", "prepare d as select 'd'")
            .bind("", &[])
            .execute()
            .bind("d", &[])
            .execute()
            .parse("", "deallocate d")
            .bind("", &[])
            .execute()
            .parse("d", "select 'new'")
            .bind("d", &[])
            .execute()
            .sync(),
        Batch::new().query("execute d"),
        Batch::new().query("/* all */ discard all"),
        Batch::new().query("execute d"),
    ];
    for (at, batch) in batches.iter().enumerate() {
        servers.only(at % 2);
        let got = answered_alike(&mut direct, &mut client, batch, 1);
        println!("{at}: {got}");
    }
}

#[test]
fn trap_03_a_statement_outlives_a_rollback_and_goes_with_an_error_before_it() {
    let mut servers = TwoServers::start();
    let mut client = servers.client();
    servers.only(0);
    client.run("begin; select 1");
    client.run("prepare kept as select 'kept'");
    client.run("rollback");
    assert_eq!(
        client.error("prepare p as select 'p'; select 1 / 0; prepare r as select 'r'").code,
        "22012"
    );
    servers.only(1);
    assert_eq!(client.one("execute kept"), "kept");
    assert_eq!(client.one("execute p"), "p");
    assert_eq!(client.error("execute r").code, "26000");
    // In a transaction that has begun here.
    client.run("deallocate kept; prepare kept as select 'again'");
    servers.only(0);
    client.run("begin; select 1");
    assert_eq!(client.one("execute kept"), "again");
    assert_eq!(client.error("select 1 / 0").code, "22012");
    assert_eq!(client.error("execute p").code, "25P02");
    client.run("rollback");
}

#[test]
fn trap_03_what_can_not_be_prepared_any_more_fails_and_can_be_dropped() {
    let mut servers = TwoServers::start();
    let mut client = servers.client();
    let grant = format!("grant all on prepares to \"{APP}\"");
    servers.database.run("create table prepares (a int)");
    servers.database.run(&grant);
    servers.only(0);
    client.run("prepare q as select * from prepares");
    servers.database.run("drop table prepares");
    servers.only(1);
    assert_eq!(client.error("execute q").code, "42P01");
    assert_eq!(client.one("select 'alive'"), "alive");
    client.run("begin; select 1");
    assert_eq!(client.error("execute q").code, "42P01");
    assert_eq!(client.status, b'E');
    client.run("rollback");
    let batch = Batch::new().parse("", "execute q").bind("", &[]).execute().sync();
    assert_eq!(error_code(&batch.answer(&mut client)), "42P01");
    assert_eq!(error_code(&Batch::new().bind("q", &[]).sync().answer(&mut client)), "42P01");
    client.run("deallocate q");
    assert_eq!(client.error("execute q").code, "26000");
}

#[test]
fn trap_03_what_functions_prepare_does_not_meet_the_next_client() {
    let servers = OneServer::start();
    servers.database.run(
        "create function prepares() returns void language plpgsql
            as $$ begin execute 'prepare hidden as select 1'; end $$;
         create function drops() returns void language plpgsql
            as $$ begin execute 'deallocate q'; end $$",
    );
    for text in [
        "do $$ begin execute 'prepare hidden as select 1'; end $$",
        "select prepares()",
        "prepare u&\"hidd\\0065n\" as select 1",
    ] {
        let mut client = servers.client();
        client.run("prepare q as select 'q'");
        client.run(text);
        let mut other = servers.client();
        assert_eq!(other.error("execute hidden").code, "26000", "{text}");
        assert_eq!(other.error("execute q").code, "26000", "{text}");
        assert_eq!(client.one("execute q"), "q", "{text}");
    }
    let mut client = servers.client();
    client.run("prepare q as select 'q'");
    client.run("select drops()");
    // What a function drops is dropped on this server only.
    assert_eq!(client.one("execute q"), "q");
    // Nor what a client leaves that goes at once.
    let mut client = servers.client();
    Batch::new().query("prepare left_behind as select 1").query("select 1").to(&mut client);
    client.terminate();
    assert_eq!(servers.client().error("execute left_behind").code, "26000");
}

#[test]
fn trap_03_statements_of_others_can_not_be_reached_by_their_names_on_servers() {
    let servers = OneServer::start();
    let (mut client, mut other) = (servers.client(), servers.client());
    assert_eq!(tags(&Batch::new().parse("s", "select 'shared'").sync().answer(&mut other)), "1Z");
    let name = client.one("select name from pg_prepared_statements");
    assert!(name.starts_with("pondage_"), "{name}");
    for text in ["execute \"NAME\"", "deallocate NAME", "prepare NAME as select 1"] {
        let error = client.error(&text.replace("NAME", &name));
        assert_eq!((error.code.as_str(), error.severity.as_str()), ("42939", "ERROR"));
        assert!(error.hint.ends_with("[P0426]"), "{error:?}");
        assert_eq!(client.status, b'I');
        let parsed = Batch::new().parse("", &text.replace("NAME", &name)).bind("", &[]).sync();
        assert_eq!(error_code(&parsed.answer(&mut client)), "42939");
    }
    let long = format!("prepare q as select '{}'", "x".repeat(70_000));
    let error = client.error(&long);
    assert!(error.code == "54000" && error.hint.ends_with("[P0423]"), "{error:?}");
    assert_eq!(client.one("select 'alive'"), "alive");
    assert_eq!(tags(&Batch::new().bind("s", &[]).execute().sync().answer(&mut other)), "2DCZ");
}

#[test]
fn trap_03_a_pipeline_waits_for_what_a_name_means() {
    let mut servers = TwoServers::start();
    let (mut direct, mut client) = (servers.direct(), servers.client());
    for server in [0, 1] {
        servers.only(server);
        let all = Batch::new()
            .query("prepare q as select 'q'")
            .query("execute q")
            .bind("q", &[])
            .execute()
            .sync()
            .query("select 1 / 0; deallocate q")
            .query("execute q")
            .parse("", "selec")
            .parse("", "deallocate q")
            .bind("", &[])
            .execute()
            .sync()
            .query("execute q")
            .query("deallocate q; prepare q as select 'new'; execute q")
            .query("deallocate all")
            .query("execute q");
        answered_alike(&mut direct, &mut client, &all, 10);
    }
}

/// A client, and the one that it is compared with.
struct Pair {
    through: WireClient,
    direct: WireClient,
    open: bool,
}

/// A text that has to do with one of some names, and tells whose it is.
fn text(random: &mut StdRng, whose: usize) -> String {
    let name = ["q", "Q", "\"Q\"", "r"][random.random_range(0..4)];
    let other = ["q", "r"][random.random_range(0..2)];
    let value = random.random_range(0..99);
    match random.random_range(0..16) {
        0..=3 => format!("prepare {name} as select 'of {whose}', {value}"),
        4..=7 => format!("execute {name}"),
        8 => format!("deallocate {name}"),
        9 => format!("explain (costs off) execute {name}"),
        10 => ["deallocate all", " -- x\n discard all"][random.random_range(0..2)].to_owned(),
        11 => "select 1 / 0".into(),
        12 => format!("select 'of {whose}'"),
        13 => format!("prepare {name} (int) as select $1, 'of {whose}'"),
        14 => format!("execute {name}({value})"),
        _ => format!("create temp table mine on commit drop as execute {other}"),
    }
}

/// Requests up to some ReadyForQuery, and how many.
fn requests(random: &mut StdRng, whose: usize, open: bool) -> (Batch, usize) {
    let name = ["q", "Q", "r", "by the protocol"][random.random_range(0..4)];
    let batch = Batch::new();
    match random.random_range(0..20) {
        0..=6 => (batch.query(&text(random, whose)), 1),
        7 => {
            let all: Vec<String> = (0..3).map(|_| text(random, whose)).collect();
            (batch.query(&all.join("; ")), 1)
        }
        8 | 9 => {
            let text = text(random, whose);
            (batch.parse("", &text).bind("", &[]).describe_portal("").execute().sync(), 1)
        }
        10 => {
            let text = text(random, whose);
            // What SQL executes is no EXECUTE itself: nobody does that.
            let name = if sql_names(&text) { "by the protocol" } else { name };
            (batch.parse(name, &text).describe(name).sync(), 1)
        }
        11 | 12 => (batch.bind(name, &[]).describe_portal("").execute().sync(), 1),
        13 => (batch.close(name).sync(), 1),
        14 => {
            let mut batch = batch;
            for _ in 0..4 {
                batch.0.extend(requests(random, whose, true).0 .0);
            }
            let ready = ready_count(&batch);
            (batch, ready)
        }
        15 => {
            let (first, second) = (text(random, whose), text(random, whose));
            let batch = batch.parse("", &first).bind("", &[]).execute().parse("", &second);
            (batch.bind("", &[]).execute().bind(name, &[]).execute().sync(), 1)
        }
        _ if !open => (batch.query("begin"), 1),
        16 => (batch.query("savepoint a"), 1),
        17 => (batch.query("rollback to a"), 1),
        18 => (batch.query("commit"), 1),
        _ => (batch.query("rollback"), 1),
    }
}

fn sql_names(text: &str) -> bool {
    ["prepare", "execute", "deallocate", "discard"].iter().any(|word| text.contains(word))
}

/// So many messages that are answered by ReadyForQuery.
fn ready_count(batch: &Batch) -> usize {
    let (mut count, mut rest) = (0, &batch.0[..]);
    while let Ok(Some(header)) = wire::pg::header(rest) {
        count += usize::from(matches!(header.tag, b'Q' | b'S'));
        rest = &rest[header.total..];
    }
    count
}

/// A message; of an error what it says, for it may come from another place in PostgreSQL's code.
fn told(message: Message) -> String {
    match message.tag {
        tag::ERROR => {
            let complaint = message.complaint();
            format!("{} {}", complaint.code, complaint.message)
        }
        _ => format!("{message:?}"),
    }
}

fn random_programs(mode: &'static str, size: i64) {
    let servers =
        OneServer::start_with(|config| config.set("pool.pool_size", size).set("pool.mode", mode));
    let seed: u64 = rand::random();
    println!("{mode}, pool of {size}, seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut pairs: Vec<Pair> = (0..3)
        .map(|_| Pair { through: servers.client(), direct: direct(&servers.database), open: false })
        .collect();
    for step in 0..500 {
        let open: Vec<usize> = (0..pairs.len()).filter(|at| pairs[*at].open).collect();
        let at = match open.len() < size as usize {
            true => random.random_range(0..pairs.len()),
            false => open[random.random_range(0..open.len())],
        };
        let pair = &mut pairs[at];
        let (batch, ready) = requests(&mut random, at, pair.open || mode == "statement");
        println!("{step}, client {at}: {}", batch.0.escape_ascii());
        let [through, direct] = [&mut pair.through, &mut pair.direct].map(|client| {
            batch.to(client);
            (0..ready).flat_map(|_| client.until_ready()).map(told).collect::<Vec<_>>()
        });
        // Which error PostgreSQL finds first in a transaction that has failed is up to what it has.
        let alike = |(one, other): (&String, &String)| {
            one == other || [one, other].iter().any(|one| one.starts_with("25P02"))
        };
        let same = through.len() == direct.len() && through.iter().zip(&direct).all(alike);
        let what = format!("{mode}, pool of {size}, seed {seed}, step {step}");
        assert!(same, "{what}: {through:#?} through the gateway, {direct:#?} directly");
        pair.open = pair.direct.status != b'I';
    }
}

/// EXECUTE may change the session by what it runs, and by what is called for its parameters.
#[test]
fn trap_03_what_an_execute_leaves_in_the_session_is_known() {
    let mut servers = TwoServers::start_with(|config| config.set("pool.max_pinned", 2));
    servers.database.run(
        "create function sets(value text) returns text language plpgsql
            as $$ begin perform set_config('app.f', value, false); return value; end $$",
    );
    servers.only(0);
    let mut client = servers.client();
    for text in [
        "prepare c(text) as select set_config('app.c', $1, false)",
        "prepare f(text) as select sets($1)",
        "prepare p(text, int) as select $1",
        "prepare l as select pg_advisory_lock(5)",
    ] {
        client.run(text);
    }
    assert_eq!(
        tags(&Batch::new().parse("s", "set work_mem = '7MB'").sync().answer(&mut client)),
        "1Z"
    );
    client.run("execute c('c1')");
    client.run("execute f('f1');");
    client.run("execute s");
    servers.only(1);
    let has = |client: &mut WireClient| {
        let names = ["app.c", "app.f", "work_mem"];
        names.map(|name| client.one(&format!("select current_setting('{name}', true)"))).join(" ")
    };
    assert_eq!(has(&mut client), "c1 f1 7MB");
    client.run("execute p(sets('f2'), 1)");
    let bound = Batch::new().parse("", "execute c('c2')").bind("", &[]).execute().sync();
    assert_eq!(tags(&bound.answer(&mut client)), "12DCZ");
    servers.only(0);
    assert_eq!(has(&mut client), "c2 f2 7MB");
    // What changes nothing is told apart from what does.
    client.run("execute p('x', 1)");
    client.run("execute l");
    assert_eq!(servers.gateway.show("pins")[0]["reasons"], "advisory lock 5");
}

#[test]
fn trap_03_random_programs_are_answered_as_by_postgresql() {
    random_programs("transaction", 1);
    random_programs("transaction", 2);
}
