//! No secret of the configuration, and no value of a statement, is told by the door, the console
//! or the log.

use std::fs;

use wire::pg::backend::tag;
use wire::pg::frontend;

use super::{config, LOOKER_PASSWORD};
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::gateway::{ADMIN, ADMIN_PASSWORD};
use crate::kit::httpclient::Visitor;
use crate::kit::place::Directory;
use crate::kit::{cluster, wait, Database, Gateway, WireClient};
use crate::traps::servers::direct;

/// Nobody but clients has ever said these.
const TEXT: &str = "needle4711";
const NUMBER: &str = "8675309867";

const SCHEMA: &str = "create table shelf(id bigint primary key, name text);
    insert into shelf select g, g from generate_series(1, 20) g;
    create procedure move(p_id bigint, p_name text) language plpgsql as
        'begin update shelf set name = p_name where id = p_id; end';
    create function fails(text) returns int language plpgsql as
        'begin raise exception ''%'', $1; end';
    grant all on shelf to public";

/// Statements with values everywhere that SQL takes one, those that fail among them. `T` is the
/// text, `N` the number.
const STATEMENTS: &[&str] = &[
    "select 'T', N",
    "select name from shelf where name = 'T' and id = N",
    "select name from shelf where id in (1, N)",
    "select $$T$$, $tag$ T $tag$, E'\\xT', U&'T', -N, 0.N, 1eN::text",
    "select 'T'::int",
    "select 'T'::date",
    "select fails('T')",
    "select 1 / (N - N)",
    "select id from shelf where name = 'T' limit N offset N",
    "insert into shelf values (N, 'T')",
    "insert into shelf values (N, 'T')",
    "update shelf set name = 'T' where id = N",
    "delete from shelf where name = 'T'",
    "call move(N, 'T')",
    "do $$ begin perform 'T'; end $$",
    "do $$ begin raise exception 'T'; end $$",
    "do $$ begin raise notice 'T'; end $$",
    "set my.setting = 'T'",
    "select set_config('my.setting', 'T', false)",
    "set work_mem = 'T'",
    "prepare p as select name from shelf where name = 'T' and id = $1",
    "execute p(N)",
    "execute p('T')",
    "deallocate p",
    "copy (select 'T') to stdout",
    "explain select 'T'",
    "select 1 /* T */",
    "select 1 -- T",
    "/* T */ select 2",
    "comment on table shelf is 'T'",
    "create role x password 'T'",
    "alter user app password 'T'",
    "notify channel, 'T'",
    "selec 'T'",
    "select 'T",
    "select 'T' from nowhere",
    "with t as (select 'T' as a) select a from t where a = 'T'",
    "values ('T', N)",
    "begin; select 'T'; commit",
    "create temp table own as select 'T' as a",
    "create view seen as select 'T' as a",
    "explain last statement",
];

/// The same until they are judged: none of these defines anything, which would begin that anew.
const READS: &[&str] = &[
    "select name from shelf where name = 'T' and id = N",
    "select name from shelf where id = N limit N",
    "select name from shelf where name = 'T' and id > random() * N",
    "select name from shelf where name = 'T'::text || $$T$$",
    "select name from shelf where id = 'T'::int",
    "select name from shelf where id = 'T'::regproc::oid",
    "select name from shelf where id = 'T'::regclass::oid",
    "select name from shelf where name > 'T'::date::text",
    "select name from shelf where id = E'\\xT'::int",
    "select name from nowhere where name = 'T'",
];

/// What is asked for by name may be asked for with values, too.
const CONSOLE_STATEMENTS: &[&str] = &[
    "SET log_level = 'T'",
    "SET no_such_option = 'T'",
    "SET auth.admin_users = 'T",
    "SELECT 'T'",
    "PAUSE 'T' 'T'",
];

fn with_values(statement: &str) -> String {
    let mut text = String::new();
    // Whole words only.
    for piece in statement.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let end = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len();
        let (word, rest) = piece.split_at(end);
        text += match word {
            "T" => TEXT,
            // An escape is no hiding place.
            "xT" => "x6eeedle4711",
            "N" => NUMBER,
            "1eN" => "1",
            word => word,
        };
        text += rest;
    }
    text
}

/// Says all of them, simply and with parameters.
fn talk(client: &mut WireClient) {
    for _ in 0..3 {
        for statement in STATEMENTS {
            client.query(&with_values(statement));
        }
    }
    let read = "select name from shelf where name = $1 and id = $2";
    for value in [NUMBER, "1", TEXT] {
        client.extended(read, &[Some(TEXT.as_bytes()), Some(value.as_bytes())]);
    }
    client.query("discard all");
}

#[track_caller]
fn search(place: &str, said: &str, hidden: &[String]) {
    for secret in hidden {
        if let Some(at) = said.find(secret.as_str()) {
            let from = said[..at].char_indices().rev().nth(200).map_or(0, |(start, _)| start);
            let around: String = said[from..].chars().take(500).collect();
            panic!("{place} tells {secret:?}: {around}");
        }
    }
}

/// Everything that an administrator can see.
fn told(gateway: &Gateway) -> Vec<(String, String)> {
    let visitor = Visitor::log_in(gateway.http_port, ADMIN, ADMIN_PASSWORD);
    let mut all = Vec::new();
    for path in ["state", "history", "session"] {
        let answer = visitor.get(&format!("/api/v1/{path}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        all.push((path.to_owned(), answer.body));
    }
    all.push(("stream".to_owned(), visitor.events().next().expect("a state")));
    for path in ["/metrics", "/healthz", "/readyz"] {
        all.push((path.to_owned(), gateway.page(path).expect("the door")));
    }
    // Each SHOW that there is, by both ways.
    let none = visitor.command("SHOW ?").json();
    let list = none["error"]["message"].as_str().expect("a text");
    let (_, list) = list.split_once("SHOW knows ").expect("a list");
    let shows: Vec<&str> = list.trim_end_matches('.').split(", ").collect();
    assert!(shows.len() > 35, "{shows:?}");
    let mut console = gateway.console();
    for show in shows {
        let command = format!("SHOW {show}");
        all.push((format!("{command} at the door"), visitor.command(&command).body));
        let replies = console.query(&command);
        let rows = replies.iter().filter(|reply| reply.tag == tag::DATA_ROW);
        all.push((command, format!("{:?}", rows.map(|row| row.values()).collect::<Vec<_>>())));
    }
    all
}

fn gateway(database: &Database, users: &Directory) -> (Gateway, Vec<String>) {
    direct(database).run(SCHEMA);
    let file = users.path().join("users.txt");
    let verifier = "SCRAM-SHA-256$4096:YSBzYWx0IG9mIGl0cyBvd24=$\
                    KCkqKywtLi8wMTIzNDU2Nzg5Ojs8PT4/QEFCQ0RFRkc=:\
                    UFFSU1RVVldYWVpbXF1eX2BhYmNkZWZnaGlqa2xtbm8=";
    let lines = format!("\"filed\" \"filed secret\"\n\"scrammed\" \"{verifier}\"\n");
    fs::write(&file, lines).expect("the users file");
    let name = &database.name;
    let config = config(database)
        .set("auth.users_file", file.display().to_string())
        .set("auth.admin_users", [ADMIN, "filed"])
        .set("runtime.workers", 2)
        .set("telemetry.log_level", "debug")
        .set("cache.mode", "auto")
        .set("cache.user", APP)
        .set("cache.password", APP_PASSWORD)
        .set(&format!("databases.{name}.user"), APP)
        .set(&format!("databases.{name}.password"), APP_PASSWORD)
        .set("telemetry.otlp_endpoint", "http://127.0.0.1:9/v1/traces")
        .set("telemetry.otlp_headers", "authorization=bearer collector-secret")
        .set("listen.redis", "127.0.0.1:{redis_port}");
    let secrets =
        [APP_PASSWORD, ADMIN_PASSWORD, LOOKER_PASSWORD, "filed secret", "collector-secret"];
    let mut hidden: Vec<String> = secrets.iter().map(ToString::to_string).collect();
    hidden.extend(verifier.split(['$', ':']).skip(2).map(str::to_owned));
    (Gateway::start(config), hidden)
}

#[test]
fn nothing_tells_passwords_or_values_of_statements() {
    let database = cluster().database();
    let users = Directory::new("users");
    let (gateway, mut hidden) = gateway(&database, &users);
    hidden.extend([TEXT.to_owned(), NUMBER.to_owned()]);
    // Wrong ones as well.
    let wrong = WireClient::try_login(
        &gateway.address(),
        "wrong secret",
        &[("user", APP), ("database", &database.name)],
    );
    assert!(wrong.is_err());
    let refused = crate::kit::httpclient::log_in(gateway.http_port, ADMIN, "wrong secret");
    assert_eq!(refused.status, 401);
    hidden.push("wrong secret".to_owned());
    Visitor::log_in(gateway.http_port, "filed", "filed secret");
    let mut console = gateway.console();
    for statement in CONSOLE_STATEMENTS {
        console.query(&with_values(statement));
    }

    let mut clients = [gateway.client(&database), gateway.client(&database)];
    clients.iter_mut().for_each(talk);
    // What was said has come to be known, without its values.
    wait::until("reads that are judged", || {
        for statement in READS {
            clients[0].query(&with_values(statement));
        }
        let judged = gateway.show("proxied_queries");
        // Those that PostgreSQL refuses have its reasons.
        let refused = ["int", "regproc", "regclass", "date"].map(|of| format!("$1::{of}"));
        refused.iter().all(|part| {
            judged.iter().any(|row| row["query"].contains(part) && row["cacheable"] == "no")
        })
    });
    let shape = "select name from shelf where name = ? and id = ?";
    assert!(gateway.show("queries").iter().any(|row| row["query"] == shape), "it is not shown");
    // Some hold what others wait for: they are shown with what they run.
    let mut sleeper = gateway.client(&database);
    sleeper.put(|out| frontend::put_query(out, with_values("select pg_sleep(60), 'T', N")));
    let mut holders: Vec<WireClient> = (0..4).map(|_| gateway.client(&database)).collect();
    for holder in &mut holders {
        holder.query(&with_values("begin; select 'T' from shelf where id = N"));
        holder.query(&with_values("select 'T', N"));
    }
    let waiter = &mut clients[1];
    waiter.put(|out| frontend::put_query(out, with_values("select 'T'")));
    wait::until("a blocker that is told with its statement", || {
        gateway.show("blockers").iter().any(|row| !row["query"].is_empty())
    });

    for (place, said) in told(&gateway) {
        search(&place, &said, &hidden);
    }
    search("the log", &gateway.said().text(), &hidden);
    for holder in &mut holders {
        holder.query("rollback");
    }
    waiter.until_ready();
    sleeper.cancel(&gateway.address());
    sleeper.until_ready();
}
