//! Sampled statements at a collector.

use std::time::{Duration, Instant};

use wire::pg::backend::tag;

use super::collector::{Collector, Mood, Span};
use crate::caching::place::{Cached, Place};
use crate::coalescing::crowd::{learn, patient};
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};
use crate::traps::batch::{tags, Batch};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// As sqlcommenter writes it.
fn comment(flags: &str) -> String {
    format!("/*application='web',traceparent='00-{TRACE}-{PARENT}-{flags}'*/")
}

fn traced(config: Config, collector: &Collector, one_in: i64) -> Config {
    config
        .set("telemetry.otlp_endpoint", collector.address())
        .set("telemetry.trace_one_in", one_in)
        .set("telemetry.otlp_headers", "api-key=open%20sesame")
}

fn start(mood: Mood, one_in: i64) -> (Collector, Gateway, Database) {
    let collector = Collector::start(mood);
    let database = cluster().database();
    let config = Config::of(&database).set("runtime.workers", 1);
    let gateway = Gateway::start(traced(config, &collector, one_in));
    (collector, gateway, database)
}

/// What has become of samples.
fn count(gateway: &Gateway, outcome: &str) -> u64 {
    let page = gateway.page("/metrics").expect("the HTTP door answers");
    let name = format!("pondage_traces_total{{outcome=\"{outcome}\"}} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&name));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[track_caller]
fn counts_to(gateway: &Gateway, outcome: &str, least: u64) {
    let what = format!("{least} to be {outcome}");
    wait::until(&what, || count(gateway, outcome) >= least);
}

fn named<'a>(name: &'a str) -> impl Fn(&Span) -> bool + 'a {
    move |span| span.name == name && span.kind == 2
}

#[test]
fn a_statement_is_told_with_its_parts_and_without_its_values() {
    let (collector, gateway, database) = start(Mood::Takes, 1);
    let mut client = gateway.client(&database);
    client.run("create table accounts(id int primary key, note text)");
    client.run("insert into accounts values (7, 'sesame')");
    assert_eq!(client.one("select note from accounts where id = 7"), "sesame");
    assert_eq!(client.error("insert into accounts values (7, 'sesame')").code, "23505");
    let span = collector.awaits("read", named("SELECT accounts"));
    assert_eq!(span.attributes["db.query.text"], "select note from accounts where id=$1");
    assert_eq!(span.attributes["db.namespace"], database.name);
    assert_eq!(span.attributes["pondage.engine"], "pool");
    assert_eq!(span.attributes["client.address"], "127.0.0.1");
    assert_eq!(span.attributes["server.port"], cluster().port.to_string());
    assert_eq!(span.parent, "");
    let parts = collector.parts(&span);
    assert_eq!(parts.keys().collect::<Vec<_>>(), ["SELECT accounts", "wait"]);
    for part in parts.values() {
        assert_eq!(part.trace, span.trace);
        assert!(part.nanos.0 >= span.nanos.0 && part.nanos.1 <= span.nanos.1, "{part:?} {span:?}");
    }
    let failed = collector.awaits("failed insert", |span| span.failed && span.kind == 2);
    assert_eq!(failed.name, "INSERT accounts");
    assert_eq!(failed.attributes["error.type"], "23505");
    assert!(!format!("{:?}", collector.spans()).contains("sesame"));
    // What else is asked for at the door.
    let head = collector.headers().remove(0);
    assert!(head.starts_with("post /v1/traces http/1.1\n"), "{head}");
    assert!(head.contains("api-key: open sesame\n"), "{head}");
    assert!(head.contains("content-type: application/json\n"), "{head}");
    let shown = gateway.show("config");
    let shown = shown.iter().find(|row| row["key"] == "telemetry.otlp_headers");
    assert!(!format!("{shown:?}").contains("sesame"));
    counts_to(&gateway, "sent", 4);
    assert_eq!((count(&gateway, "dropped"), count(&gateway, "failed")), (0, 0));
}

#[test]
fn traceparent_decides_and_is_the_parent() {
    let (collector, gateway, database) = start(Mood::Takes, 0);
    let mut client = gateway.client(&database);
    client.run("create table t(id int)");
    client.run(&format!("select id from t {}", comment("00")));
    client.run(&format!("select 1 from pg_class {}", comment("01")));
    client.run(&format!("{} update t set id = 1;", comment("01")));
    client.extended(&format!("delete from t where id = $1 {}", comment("01")), &[Some(b"7")]);
    for name in ["SELECT pg_class", "UPDATE t", "DELETE t"] {
        let span = collector.awaits(name, named(name));
        assert_eq!((&*span.trace, &*span.parent), (TRACE, PARENT), "{span:?}");
        assert!(!span.attributes["db.query.text"].contains("web"), "{span:?}");
    }
    // A statement that is prepared belongs to who prepares it, not to each who runs it.
    let sql = format!("select count(*) from t {}", comment("01"));
    Batch::new().parse("s", &sql).sync().answer(&mut client);
    for _ in 0..5 {
        let answer = Batch::new().bind("s", &[]).execute().sync().answer(&mut client);
        assert_eq!(tags(&answer), "2DCZ");
    }
    // Behind one another: each has its own.
    let own = |n: usize| {
        let id = format!("{n:016x}");
        format!("insert into t values ({n}) /*traceparent='00-{TRACE}-{id}-01'*/")
    };
    let mut batch = Batch::new();
    for n in 1..=20 {
        batch = match n % 3 {
            0 => batch.query(&own(n)),
            1 => batch.parse("", &own(n)).bind("", &[]).execute().sync(),
            _ => batch.query("select 1/0").query(&own(n)),
        };
    }
    client.send(&batch.0);
    (0..27).for_each(|_| drop(client.until_ready()));
    for n in 1..=20 {
        let parent = format!("{n:016x}");
        let span = collector.awaits("one of many", |span| span.parent == parent);
        assert_eq!((&*span.name, span.failed), ("INSERT t", false), "{span:?}");
    }
    let spans = collector.spans();
    let count = |name: &str| spans.iter().filter(|span| named(name)(span)).count();
    assert_eq!((count("SELECT t"), count("INSERT t"), count("SELECT")), (1, 20, 0));
}

#[test]
fn a_prepared_statement_is_sampled_with_its_text() {
    let (collector, gateway, database) = start(Mood::Takes, 1);
    let mut client = gateway.client(&database);
    client.run("create table t(id int)");
    Batch::new().parse("s", "select count(*) from t where id = $1").sync().answer(&mut client);
    let run = Batch::new().bind("s", &["1"]).execute().sync();
    (0..3).for_each(|_| drop(run.answer(&mut client)));
    wait::until("four spans", || {
        collector.spans().iter().filter(|span| named("SELECT t")(span)).count() == 4
    });
    let text = "select count(*)from t where id=$1";
    let spans = collector.spans();
    let all = spans.iter().filter(|span| named("SELECT t")(span));
    all.for_each(|span| assert_eq!(span.attributes["db.query.text"], text));
}

#[test]
fn a_connection_that_is_lost_is_an_error() {
    let (collector, gateway, database) = start(Mood::Takes, 1);
    let mut client = gateway.client(&database);
    client.send(&Batch::new().query("select pg_terminate_backend(pg_backend_pid())").0);
    client.until_closed();
    let span = collector.awaits("lost statement", |span| span.failed && span.kind == 2);
    let known = ["connection_lost", "57P01"];
    assert!(known.contains(&&*span.attributes["error.type"]), "{span:?}");
}

#[test]
fn engines_are_told() {
    let collector = Collector::start(Mood::Takes);
    let place = Place::start_with(
        "create table t(id int primary key, n int); insert into t values (1, 7)",
        |config| traced(config, &collector, 1),
    );
    let mut client = place.client();
    client.warm("select n from t where id = 1");
    client.run("select n from t where id = 1");
    let engine = |name: &'static str| {
        move |span: &Span| {
            span.attributes.get("pondage.engine").is_some_and(|engine| engine == name)
        }
    };
    let kept = |span: &Span| engine("cache")(span) && span.name == "SELECT t";
    let span = collector.awaits("answer from the cache", kept);
    assert!(span.attributes["pondage.fresh_lsn"].contains('/'), "{span:?}");
    assert_eq!(collector.parts(&span).keys().collect::<Vec<_>>(), ["cache"]);
    client.run("begin; commit");
    client.run("begin");
    client.run("commit");
    collector.awaits("transaction of no server", engine("pondage"));

    let database = cluster().database();
    let gateway = Gateway::start(traced(patient(&database), &collector, 1));
    let mut client = gateway.client(&database);
    let batch = Batch::new().query("select relname from pg_class where oid = 1259");
    learn(&mut client, &batch, "batch");
    let trip = |span: &Span| engine("trip")(span) && span.name == "SELECT pg_class";
    let span = collector.awaits("trip", trip);
    assert_eq!(span.attributes["pondage.company"], "1");
    assert!(collector.parts(&span).contains_key("SELECT pg_class"), "{span:?}");
}

/// Statements are answered, and none of them waits for the collector.
#[track_caller]
fn goes_on(client: &mut WireClient) {
    let begun = Instant::now();
    (0..50).for_each(|n| assert_eq!(client.one(&format!("select {n}")), n.to_string()));
    assert!(begun.elapsed() < Duration::from_secs(30), "clients wait for the collector");
}

#[test]
fn a_collector_that_refuses_loses_spans_and_nobody_notices() {
    let (collector, gateway, database) = start(Mood::Says(500), 1);
    let mut client = gateway.client(&database);
    goes_on(&mut client);
    counts_to(&gateway, "failed", 50);
    assert!(gateway.said().contains("export_failed"), "{}", gateway.said().text());
    collector.becomes(Mood::Takes);
    client.run("select 1 from pg_class");
    collector.awaits("statement", named("SELECT pg_class"));
    wait::until("it to be said", || gateway.said().contains("export_resumed"));
}

#[test]
fn a_collector_that_is_busy_is_asked_again() {
    let (collector, gateway, database) = start(Mood::Busy(1), 1);
    let mut client = gateway.client(&database);
    client.run("select 1 from pg_class");
    collector.awaits("statement", named("SELECT pg_class"));
    assert!(collector.requests() >= 2);
    counts_to(&gateway, "sent", 1);
    assert_eq!(count(&gateway, "failed"), 0);
}

#[test]
fn nobody_at_the_collectors_port_loses_spans_and_nobody_notices() {
    let database = cluster().database();
    let port = crate::kit::place::free_port();
    let config = Config::of(&database)
        .set("telemetry.otlp_endpoint", format!("http://127.0.0.1:{port}"))
        .set("telemetry.trace_one_in", 1);
    let gateway = Gateway::start(config);
    let mut client = gateway.client(&database);
    goes_on(&mut client);
    counts_to(&gateway, "failed", 50);
    goes_on(&mut client);
}

#[test]
fn while_a_collector_hangs_what_does_not_fit_is_dropped_and_counted() {
    const MANY: usize = 6000;
    let (collector, gateway, database) = start(Mood::Hangs, 1);
    let mut client = gateway.client(&database);
    client.run("select 1");
    wait::until("the collector to be asked", || collector.requests() > 0);
    for _ in 0..MANY / 100 {
        let batch = (0..100).fold(Batch::new(), |batch, _| {
            batch.parse("", "select 1").bind("", &[]).execute().sync()
        });
        client.send(&batch.0);
        for _ in 0..100 {
            let answer = client.until_ready();
            assert!(answer.iter().any(|message| message.tag == tag::DATA_ROW));
        }
    }
    // Each write of a hundred has as many that were sampled as one client may have unanswered.
    let mut others: Vec<WireClient> = (0..4).map(|_| gateway.client(&database)).collect();
    for n in 0..MANY {
        others[n % 4].run("select 1");
        if n % 100 == 0 && count(&gateway, "dropped") > 0 {
            break;
        }
    }
    counts_to(&gateway, "dropped", 1);
    goes_on(&mut client);
}

#[test]
fn without_a_collector_nothing_is_sampled_and_a_reload_begins_it() {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    let mut client = gateway.client(&database);
    client.run(&format!("select 1 {}", comment("01")));
    assert!(!gateway.page("/metrics").expect("a page").contains("pondage_traces_total"));
    let collector = Collector::start(Mood::Takes);
    let mut console = gateway.console();
    console.run(&format!("set telemetry.otlp_endpoint = '{}'", collector.address()));
    wait::until("a trace", || {
        client.run(&format!("select 1 from pg_class {}", comment("01")));
        !collector.spans().is_empty()
    });
}

#[test]
fn an_address_that_is_none_is_refused() {
    let database = cluster().database();
    for (name, value, code) in [
        ("telemetry.otlp_endpoint", "grpc://collector:4317", "P0108"),
        ("telemetry.otlp_endpoint", "http://user:word@collector", "P0108"),
        ("telemetry.otlp_headers", "no pair", "P0105"),
    ] {
        let config = Config::of(&database).set("telemetry.otlp_endpoint", "http://127.0.0.1:1");
        let ended = Gateway::refused(config.set(name, value));
        assert!(ended.stderr.contains(code), "{name} = {value}: {}", ended.stderr);
    }
}

/// A `traceparent` makes each text another one: nothing may grow with them.
#[test]
fn texts_that_differ_in_their_comments_share_what_they_did() {
    const TEXTS: usize = 600;
    let place = Place::start_with(
        "create table t(id int primary key, n int); insert into t values (1, 7)",
        |config| config.set("pool.max_prepared_statements", 20).set("pool.pool_size", 2),
    );
    let mut client = place.client();
    let own = |n: usize| format!("/*traceparent='00-{n:032x}-{PARENT}-01'*/");
    let sql = "select n from t where id = 1";
    client.warm(sql);
    for n in 1..TEXTS {
        assert_eq!(client.one(&format!("{sql} {}", own(n))), "7");
    }
    assert!(client.was_hit());
    let parse =
        |n: usize| Batch::new().parse("", &format!("select n from t where id = $1 {}", own(n)));
    for n in 1..TEXTS {
        let answer = parse(n).bind("", &["1"]).execute().sync().answer(&mut client);
        assert_eq!(tags(&answer), "12DCZ");
    }
    assert!(client.was_hit());
    // One shape, however many texts.
    let shapes = place.gateway.show("queries");
    let of_it = shapes.iter().filter(|row| row["query"].contains("from t where id")).count();
    assert!(of_it <= 2, "{shapes:#?}");
    // Named ones are each their own on a server, up to the ceiling.
    for n in 1..TEXTS {
        let sql = format!("select n, {n} from t where id = $1 {}", own(n));
        let batch = Batch::new().parse("s", &sql).bind("s", &["1"]).execute().close("s").sync();
        assert_eq!(tags(&batch.answer(&mut client)), "12DC3Z");
    }
    let prepared = "select count(*) from pg_prepared_statements";
    let prepared: u32 = client.one(prepared).parse().expect("a number");
    assert!(prepared <= 21, "{prepared} are prepared");
}
