//! Every table of the dashboard is the console's.

use serde_json::Value;
use wire::pg::backend::tag;
use wire::pg::frontend;

use super::config;
use crate::kit::cluster::APP;
use crate::kit::gateway::{ADMIN, ADMIN_PASSWORD};
use crate::kit::httpclient::Visitor;
use crate::kit::{cluster, wait, Database, Gateway, RedisClient, WireClient};
use crate::traps::servers::direct;

const SCHEMA: &str = "create table shelf(id int primary key, n int);
    insert into shelf select g, g from generate_series(1, 20) g;
    create procedure move(p_id int) language plpgsql as
        'begin update shelf set n = n + 1 where id = p_id; end';
    grant all on shelf to public";

/// Columns that say how long ago something was, or what others do at the same server meanwhile:
/// between two looks they may change though nobody uses the gateway.
const MOVING: &[(&str, &[&str])] = &[
    // How long somebody waits, and somebody holds what that one waits for.
    ("pools", &["maxwait", "maxwait_us"]),
    ("blockers", &["maxwait", "state_age", "held"]),
    // Hosts are asked every now and then, and what the server writes is nobody's here.
    ("hosts", &["last_probe", "probe_us", "probes", "position"]),
    ("streams", &["lsn", "server_lsn", "lag_bytes", "delay_us", "slot_bytes"]),
    // An average over the last period.
    ("procedures", &["calls_per_second"]),
    // "45 s of 120 s have passed".
    ("advice", &["basis"]),
    // Each look is an event itself.
    ("events", &["last", "count", "detail"]),
];

/// Column names, and rows as text.
#[derive(Debug, PartialEq)]
struct Told {
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

impl Told {
    /// By the console, over PostgreSQL's protocol.
    #[track_caller]
    fn by_console(console: &mut WireClient, show: &str) -> Told {
        let replies = console.query(&format!("SHOW {show}"));
        let of = |tag| replies.iter().filter(move |reply| reply.tag == tag);
        let columns = of(tag::ROW_DESCRIPTION).flat_map(|reply| reply.columns()).collect();
        Told { columns, rows: of(tag::DATA_ROW).map(|reply| reply.values()).collect() }
    }

    /// By the door, as JSON.
    #[track_caller]
    fn by_door(table: &Value) -> Told {
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let text = |value: Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            number => Some(number.to_string()),
        };
        assert_eq!(table["more"], 0, "{table}");
        let columns =
            list(&table["columns"]).into_iter().map(|column| text(column).expect("a name"));
        let rows =
            list(&table["rows"]).into_iter().map(|row| list(&row).into_iter().map(text).collect());
        Told { columns: columns.collect(), rows: rows.collect() }
    }

    /// Without what moves.
    fn resting(mut self, show: &str) -> Told {
        let moving = MOVING.iter().filter(|(name, _)| *name == show);
        for column in moving.flat_map(|(_, columns)| *columns) {
            let at = self.columns.iter().position(|name| name == column);
            let at = at.unwrap_or_else(|| panic!("SHOW {show} has no column {column}"));
            self.columns.remove(at);
            self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        self
    }
}

/// A gateway where every table has something to tell, and those who hold what it tells of.
struct Busy {
    waiter: WireClient,
    holder: WireClient,
    _pinned: WireClient,
    gateway: Gateway,
}

fn busy(database: &Database) -> Busy {
    direct(database).run(SCHEMA);
    let config = config(database)
        .set("pool.pool_size", 2)
        .set("cache.mode", "manual")
        .set("cache.user", APP)
        .set("listen.redis", "127.0.0.1:{redis_port}")
        .set("redis.database", database.name.clone())
        .set("redis.user", APP)
        .set("redis.default_user", APP)
        .set("auth.method", "trust")
        .set("databases.several.host", "127.0.0.1,localhost")
        .set("databases.several.port", i64::from(cluster().port))
        .set("databases.several.user", APP)
        .set("databases.several.dbname", database.name.clone());
    let gateway = Gateway::start(config);
    let mut client = gateway.client(database);
    let mut console = gateway.console();
    let name = &database.name;
    console.run(&format!(
        "CREATE CACHE held IN DATABASE {name} FROM SELECT n FROM shelf WHERE id = $1"
    ));
    console.run(&format!("MIRROR TABLE shelf IN DATABASE {name}"));
    let has = |show: &str, column: &str, value: &str| {
        gateway.show(show).iter().any(|row| row[column] == value)
    };
    wait::until("the mirror", || has("mirrors", "state", "ready"));
    wait::until("answers from memory", || {
        client.run("select n from shelf where id = 3");
        gateway.show("caches").iter().any(|row| row["hits"] != "0")
    });
    wait::until("a call that is known", || {
        client.run("call move(1)");
        !gateway.show("procedures").is_empty()
    });
    wait::until("a read that is judged", || {
        client.run("select count(*) from shelf where n > 3");
        has("proxied_queries", "cacheable", "no") || has("proxied_queries", "cacheable", "yes")
    });
    let mut redis = RedisClient::connect(&gateway);
    wait::until("a key that is asked for often", || {
        redis.says(b"SET hot 1\r\n", b"+OK\r\n");
        (0..200).for_each(|_| redis.says(b"GET hot\r\n", b"$1\r\n1\r\n"));
        !gateway.show("redis_keys").is_empty()
    });
    let several = gateway.address();
    WireClient::login(&several, APP, "", "several").run("select 1");
    // One keeps its server, another has the last one, and a third waits for it.
    client.run("create temp table own(n int)");
    let mut holder = gateway.client(database);
    holder.run("begin; select 1");
    let mut waiter = gateway.client(database);
    waiter.put(|out| frontend::put_query(out, "select 2"));
    wait::until("somebody who waits", || !gateway.show("blockers").is_empty());
    Busy { waiter, holder, _pinned: client, gateway }
}

#[test]
fn every_table_is_what_the_console_shows() {
    let database = cluster().database();
    let Busy { mut waiter, mut holder, _pinned, gateway } = busy(&database);
    let visitor = Visitor::log_in(gateway.http_port, ADMIN, ADMIN_PASSWORD);
    let mut console = gateway.console();
    let state = visitor.get("/api/v1/state").json();
    let shows: Vec<String> = state["tables"].as_object().expect("tables").keys().cloned().collect();
    assert!(shows.len() >= 17, "{shows:?}");
    let mut events = visitor.events();
    for show in &shows {
        // Nothing is wrong with a table that changes between two looks; one that differs does
        // so again and again.
        let mut last = None;
        let same = wait::within(wait::DEADLINE, || {
            let answer = visitor.command(&format!("SHOW {show}"));
            assert_eq!(answer.status, 200, "{answer:?}");
            let door = Told::by_door(&answer.json()).resting(show);
            let state = visitor.get("/api/v1/state").json();
            let page = Told::by_door(&state["tables"][show]).resting(show);
            let streamed = events.next().expect("the stream goes on");
            let streamed: Value = serde_json::from_str(&streamed).expect("JSON");
            let streamed = Told::by_door(&streamed["tables"][show]).resting(show);
            let console = Told::by_console(&mut console, show).resting(show);
            assert!(!console.rows.is_empty(), "SHOW {show} has nothing to compare");
            let same = door == console && page == console && streamed == console;
            last = Some((door, page, streamed, console));
            same.then_some(())
        });
        assert!(same.is_some(), "SHOW {show}: {last:#?}");
    }
    holder.run("commit");
    waiter.until_ready();
}
