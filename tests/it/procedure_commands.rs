//! SHOW, SET, RESET and EXPLAIN PROCEDURE on the console, and what the configuration and the
//! metrics say of procedures.

use std::collections::BTreeMap;

use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};
use crate::traps::servers::direct;

/// TPC-C's payment, as far as it locks rows: the warehouse, one of its districts, a customer.
const SCHEMA: &str = "
    create table warehouse(w_id int primary key, w_ytd numeric not null default 0);
    create table district(d_w_id int references warehouse, d_id int, d_ytd numeric(9, 2) default 0,
        primary key (d_w_id, d_id));
    create table customer(c_w_id int, c_d_id int, c_id int, c_balance numeric default 0,
        primary key (c_w_id, c_d_id, c_id), foreign key (c_w_id, c_d_id) references district);
    create procedure payment(p_w int, p_d int, p_cw int, p_cd int, p_c int, p_amount numeric)
    language plpgsql as $$
    begin
        update warehouse set w_ytd = w_ytd + p_amount where w_id = p_w;
        update district set d_ytd = d_ytd + p_amount where d_w_id = p_w and d_id = p_d;
        update customer set c_balance = c_balance - p_amount
            where c_w_id = p_cw and c_d_id = p_cd and c_id = p_c;
    end $$;
    create function stock(p_w int) returns numeric language plpgsql as $$
    begin
        perform pg_advisory_lock(p_w);
        perform pg_advisory_unlock(p_w);
        return 1;
    end $$;
    insert into warehouse select g from generate_series(1, 3) g;
    insert into district select w, d from generate_series(1, 3) w, generate_series(1, 3) d;
    insert into customer select d_w_id, d_id, c from district, generate_series(1, 3) c;
    grant all on all tables in schema public to public";

const CALL: &str = "call payment(1, 1, 2, 1, 1, 5)";

fn configured(database: &Database) -> Config {
    Config::of(database)
}

fn start(config: impl FnOnce(&Database) -> Config) -> (&'static Database, Gateway) {
    let database: &Database = Box::leak(Box::new(cluster().database()));
    direct(database).run(SCHEMA);
    (database, Gateway::start(config(database)))
}

type Row = BTreeMap<String, String>;

/// The row of a procedure; none: nobody knows it yet.
fn row(gateway: &Gateway, procedure: &str) -> Option<Row> {
    gateway.show("procedures").into_iter().find(|row| row["procedure"] == procedure)
}

/// Calls until it is known.
fn called(gateway: &Gateway, client: &mut WireClient) -> Row {
    wait::for_some("a call that is recognised", || {
        client.run(CALL);
        row(gateway, "public.payment")
    })
}

fn lines(console: &mut WireClient, sql: &str) -> Vec<String> {
    console.rows(sql).into_iter().map(|mut row| row.remove(0).unwrap_or_default()).collect()
}

#[track_caller]
fn has(lines: &[String], start: &str) {
    assert!(lines.iter().any(|line| line.starts_with(start)), "{start}: {lines:#?}");
}

#[test]
fn what_is_set_is_in_force_for_the_next_call() {
    let (database, gateway) = start(configured);
    let mut client = gateway.client(database);
    let row_then = called(&gateway, &mut client);
    assert_eq!(row_then["database"], database.name);
    assert!(row_then["arguments"].starts_with("p_w integer, p_d integer"), "{row_then:?}");
    let said = |row: &Row| ["mode", "key", "also", "key_source"].map(|column| row[column].clone());
    // The body tells a key, but nobody has said that calls are to travel.
    assert_eq!(said(&row_then)[0], "off");
    assert_eq!(row_then["key_source"], "body");
    let way = |client: &mut WireClient| {
        client.run(CALL);
        client.rows("explain last statement")[1][0].clone().unwrap_or_default()
    };
    wait::until("a call of its own", || way(&mut client).starts_with("Way: alone"));
    let mut console = gateway.console();
    console.run("set procedure payment key (p_w) also (p_cw)");
    let row_now = row(&gateway, "public.payment").expect("known");
    assert_eq!(said(&row_now), ["train", "p_w", "p_cw", "command"]);
    wait::until("a call that rides", || way(&mut client).starts_with("Way: train"));
    console.run("set procedure public.payment mode lane; set procedure payment retry 1");
    let row_now = row(&gateway, "public.payment").expect("known");
    assert_eq!(said(&row_now), ["lane", "p_w", "p_cw", "command"]);
    console.run("reset procedure payment");
    assert_eq!(said(&row(&gateway, "public.payment").expect("known"))[0], "off");
    wait::until("a call of its own", || way(&mut client).starts_with("Way: alone"));
    let failed = console.error("reset procedure payment");
    assert_eq!((failed.code.as_str(), failed.message.contains("nothing")), ("42704", true));
}

#[test]
fn calls_and_errors_are_counted_for_console_and_metrics() {
    let (database, gateway) =
        start(|database| configured(database).set("procedures.\"public.payment\".key", ["p_w"]));
    let mut client = gateway.client(database);
    called(&gateway, &mut client);
    let count = |column: &str| {
        let row = row(&gateway, "public.payment").expect("known");
        row[column].parse::<f64>().unwrap_or(-1.0)
    };
    let before = count("calls");
    (0..20).for_each(|_| client.run(CALL));
    let failed = client.error("call payment(1, 1, 2, 1, 1, 88888888)");
    assert_eq!(failed.code, "22003", "{failed:?}");
    assert!(count("calls") >= before + 20.0, "{before}");
    assert!(count("calls_per_second") > 0.0 && count("p50_us") > 0.0 && count("p99_us") > 0.0);
    assert_eq!(count("errors"), 1.0);
    assert!(count("joined_percent") > 0.0 && count("train") >= 1.0);
    let config = gateway.show("config");
    let key = config.iter().find(|row| row["key"] == "procedures.\"public.payment\".key");
    assert_eq!(key.map(|row| row["value"].as_str()), Some("p_w"));
    assert!(gateway.figure("pondage_procedure_calls_total") >= before as u64 + 20);
    assert!(gateway.figure("pondage_procedure_joined_total") > 0);
    let page = gateway.page("/metrics").expect("a page");
    let labels = format!("database=\"{}\",procedure=\"public.payment\"", database.name);
    for series in ["calls_total", "errors_total", "duration_seconds_count", "retries_total"] {
        let series = format!("pondage_procedure_{series}{{{labels}}} ");
        assert!(page.contains(&series), "{series}:\n{page}");
    }
}

#[test]
fn an_explanation_has_the_key_the_rows_and_the_advice() {
    let (database, gateway) = start(configured);
    // Somebody has to have logged in: the console's user is no role of the server.
    let mut client = gateway.client(database);
    assert_eq!(client.one("select 1"), "1");
    let mut console = gateway.console();
    let text = lines(&mut console, "explain procedure payment");
    assert!(text[0].starts_with("Procedure: public.payment(p_w integer, p_d integer"), "{text:#?}");
    has(&text, "Mode: off: nobody has said how its calls travel");
    has(&text, "With procedures = \"auto\": train");
    has(&text, "Key: (p_w) also (p_cw), as its body tells");
    has(&text, "Rows: line 3: UPDATE public.warehouse: w_id = p_w; one row");
    has(&text, "Rows: line 4: UPDATE public.district: d_w_id = p_w, d_id = p_d; one row");
    has(&text, "Advice: move UPDATE warehouse (line 3) last");
    let text = lines(
        &mut console,
        &format!("explain procedure public.stock in database {}", database.name),
    );
    assert!(text[0].starts_with("Function: public.stock(p_w integer)"), "{text:#?}");
    has(&text, "Hazard: line 3: ");
    console.run("set procedure stock mode train");
    let text = lines(&mut console, "explain procedure stock");
    has(&text, "Mode: off: line 3: ");
    has(&text, "Problem: not in mode train: line 3: ");
}

#[test]
fn a_comment_is_heard_and_what_is_wrong_in_it_is_told() {
    let (database, gateway) = start(configured);
    let mut client = gateway.client(database);
    called(&gateway, &mut client);
    client.run("comment on procedure payment is 'Pays. @pondage key=p_w,p_d mode=lane'");
    wait::until("a comment that is heard", || {
        client.run(CALL);
        let row = row(&gateway, "public.payment").expect("known");
        let said = ["mode", "key", "key_source"].map(|column| row[column].as_str());
        said == ["lane", "p_w, p_d", "comment"]
    });
    direct(database).run("comment on procedure payment is '@pondage kay=p_w'");
    let mut console = gateway.console();
    let text = lines(&mut console, "explain procedure payment");
    has(&text, "Problem: its comment: `kay` is no option");
    let row = row(&gateway, "public.payment").expect("known");
    assert!(row["problems"].contains("`kay` is no option"), "{row:?}");
}

#[test]
fn what_is_mistyped_is_told_with_what_was_meant() {
    let (database, gateway) = start(configured);
    let mut client = gateway.client(database);
    called(&gateway, &mut client);
    let mut console = gateway.console();
    for (text, code, hint) in [
        ("set procedure payment keys (p_w)", "42601", "Did you mean KEY?"),
        ("set procedure payment mode fast", "42601", "SET PROCEDURE [schema.]name"),
        ("set procedure payment also (p_cw)", "42601", "SET PROCEDURE [schema.]name"),
        ("explain procedure paymnt", "42883", "Did you mean public.payment?"),
        ("explain procedure", "42601", "EXPLAIN PROCEDURE [schema.]name"),
        ("reset procedure paymnt", "42704", "Did you mean public.payment?"),
        ("show procedure", "42601", "Did you mean SHOW PROCEDURES?"),
    ] {
        let failed = console.error(text);
        assert_eq!(failed.code, code, "{text}: {failed:?}");
        assert!(failed.hint.starts_with(hint), "{text}: {failed:?}");
    }
    console.run("set procedure payment key (p_q)");
    let row = row(&gateway, "public.payment").expect("known");
    assert_eq!(row["problems"], "it has no parameter p_q that a value comes in by");
    let ended = Gateway::refused(configured(database).set("procedures.payment.mode", "lane"));
    assert!(ended.stderr.contains("write `[procedures.\"public.payment\"]`"), "{}", ended.stderr);
}

#[test]
fn reload_puts_what_the_file_says_into_force() {
    let (database, gateway) = start(configured);
    let mut client = gateway.client(database);
    called(&gateway, &mut client);
    let with = configured(database).set("procedures.\"public.payment\".mode", "lane");
    gateway.rewrite(with.set("procedures.\"public.payment\".key", ["p_cw"]));
    gateway.console().run("reload");
    let row_now = row(&gateway, "public.payment").expect("known");
    let said = ["mode", "key", "key_source"].map(|column| row_now[column].as_str());
    assert_eq!(said, ["lane", "p_cw", "configuration"]);
    gateway.rewrite(configured(database));
    gateway.console().run("reload");
    assert_eq!(row(&gateway, "public.payment").expect("known")["mode"], "off");
}
