use std::sync::{Mutex, PoisonError};

use cache::value::Kind;
use sql::procedure::{self, Facts as Catalogues, Relation, Summary};
use sql::Name;

use super::super::command::{parse, Request, Show};
use super::super::fixture::{self, Fake};
use super::*;
use crate::procedures::{Body, Fared, Known};

const MORE: &str = "[databases.shop]\nurl = \"postgres://db:5432\"\nprocedures = \"auto\"\n\
    [databases.slow]\nurl = \"postgres://db:5432\"\nprocedures = \"off\"\n";

fn operator() -> (Operator, Arc<Fake>) {
    let (fake, _) = Fake::new(fixture::config_and(MORE), 0);
    (Operator::new(fake.clone()), fake)
}

fn who(database: &str, admin: bool) -> ConsoleUser {
    let (user, database) = ("web".to_owned(), database.to_owned());
    ConsoleUser { user, database, admin, proven: None }
}

/// Every notice and what came of it: rows, each as its fields, or the failure.
async fn run_as(operator: &Operator, who: &ConsoleUser, text: &str) -> Vec<String> {
    let mut requests = parse(text.as_bytes()).unwrap_or_else(|failure| panic!("{failure:?}"));
    let answer = operator.run(who, requests.remove(0)).await;
    let told = |notice: Notice| {
        format!("{}: {} / {}", notice.severity, notice.message, notice.detail.unwrap_or_default())
    };
    let notices = answer.notices.into_iter().map(told);
    let words = |value: Value| match value {
        Value::Text(text) => text.into_owned(),
        Value::Int(number) => number.to_string(),
        Value::Tenths(tenths) => format!("{}.{}", tenths / 10, tenths % 10),
        Value::Null => "-".to_owned(),
    };
    let row = |row: Vec<Value>| row.into_iter().map(words).collect::<Vec<_>>().join("|");
    let came: Vec<String> = match answer.result {
        Ok(table) => table.into_iter().flat_map(|table| table.rows).map(row).collect(),
        Err(failure) => {
            let more = [failure.detail, failure.hint].map(Option::unwrap_or_default);
            vec![format!("{} {} / {} / {}", failure.code, failure.message, more[0], more[1])]
        }
    };
    notices.chain(came).collect()
}

async fn run(operator: &Operator, text: &str) -> Vec<String> {
    run_as(operator, &who("pondage", true), text).await
}

/// The parser moves the process's standard error about while it works, so one at a time.
static PARSER: Mutex<()> = Mutex::new(());

/// One whose body pays into the row of its warehouse, then notes it.
fn understood(fake: &Fake, database: &str, oid: u32, name: &str, source: &str) -> Arc<Procedure> {
    let mut definition = fixture::definition(name);
    definition.source = source.to_owned();
    let bytes = {
        let _alone = PARSER.lock().unwrap_or_else(PoisonError::into_inner);
        procedure::parse(&definition).unwrap_or_else(|why| panic!("{why}"))
    };
    let analysis = procedure::read(&definition, &bytes).unwrap_or_else(|why| panic!("{why}"));
    let mut facts = Catalogues::default();
    for (table, columns) in [("warehouse", &["w_id", "w_ytd"][..]), ("history", &["h_id"])] {
        let plain = Name { schema: None, name: table.to_owned() };
        let title = Name { schema: Some("public".to_owned()), name: table.to_owned() };
        let relation = Relation {
            title: Some(title),
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            unique: vec![vec![columns[0].to_owned()]],
            ..Relation::default()
        };
        facts.insert(plain, relation);
    }
    let summary = Summary {
        touches: analysis.touches.clone(),
        hazards: analysis.hazards.clone(),
        handles_errors: analysis.handles_errors.is_some(),
        catches_lock_timeout: analysis.catches_lock_timeout,
    };
    let body = Ok(Body { analysis, summary, facts });
    let known = Known { oid, definition, types: vec![23, 23], comment: None, body };
    fake.procedures.learn(database, known).expect("room")
}

const PAYMENT: &str = "
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = p_w;
    INSERT INTO history VALUES (17);
END";

/// Rows of SHOW PROCEDURES without calls per second, which tell how long the test has run.
async fn shown(operator: &Operator) -> Vec<String> {
    let timeless = |row: String| {
        let fields = row.split('|').enumerate().filter(|(place, _)| *place != 8);
        fields.map(|(_, field)| field).collect::<Vec<_>>().join("|")
    };
    run(operator, "show procedures").await.into_iter().map(timeless).collect()
}

#[tokio::test]
async fn what_is_set_is_in_force_at_once_and_is_shown() {
    let (operator, fake) = operator();
    let payment = fixture::procedure(&fake.procedures, "app", 7, "payment");
    let mut fared =
        Fared { calls: 4, joined: 3, company: 9, retried: 1, errors: 2, ..Fared::default() };
    (0..4).for_each(|_| fared.time.record(300));
    payment.tell(&fared);
    let row = shown(&operator).await;
    let start = "app|public.payment|p_w integer, INOUT p_cw integer";
    let end = "4|400|400|75.0|4.0|1|2|-|";
    assert_eq!(row, [format!("{start}|off||||{end}")]);
    assert!(run(&operator, "set procedure payment key (p_w) also (p_cw)").await.is_empty());
    let row = shown(&operator).await;
    // Nobody knows whether it commits within.
    assert_eq!(row, [format!("{start}|lane|p_w|p_cw|command|{end}")]);
    let lane = payment.plan().lane.clone().expect("a key");
    assert_eq!(lane.key, [(0, Kind::of(23))]);
    assert!(run(&operator, "set procedure public.payment mode lane retry 0").await.is_empty());
    let row = shown(&operator).await;
    assert_eq!(row, [format!("{start}|lane|p_w|p_cw|command|{end}")], "what is not said stays");
    assert!(run(&operator, "reset procedure Payment").await.is_empty());
    let row = shown(&operator).await;
    assert_eq!(row, [format!("{start}|off||||{end}")]);
}

#[tokio::test]
async fn what_is_set_in_vain_is_said() {
    let (operator, fake) = operator();
    for (oid, database) in [(7, "app"), (8, "slow")] {
        fixture::procedure(&fake.procedures, database, oid, "payment");
    }
    let told = run(&operator, "set procedure payment key (p_q)").await;
    let complaint = "WARNING: it has no parameter p_q that a value comes in by / public.payment";
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0], format!("{complaint} in database app"));
    assert_eq!(told[1], format!("{complaint} in database slow"));
    let stays = "WARNING: public.payment stays as it was in database slow / procedures = \"off\" \
        for database slow";
    assert_eq!(told[2], stays);
    let told = run(&operator, "set procedure paymnet mode lane").await;
    let unknown = "NOTICE: nobody has called public.paymnet yet; it counts from the first call";
    assert_eq!(told, [format!("{unknown} / Did you mean public.payment?")]);
    let rows = run(&operator, "show procedures").await;
    assert!(rows[0].ends_with("|it has no parameter p_q that a value comes in by"), "{rows:?}");
    let failed = run(&operator, "reset procedure paymet").await;
    let expected = "42704 SET PROCEDURE has said nothing of public.paymet /  / Did you mean \
        public.payment?";
    assert_eq!(failed, [expected]);
}

#[tokio::test]
async fn an_explanation_tells_the_key_the_rows_and_what_to_move() {
    let (operator, fake) = operator();
    understood(&fake, "app", 7, "payment", PAYMENT);
    let lines = run(&operator, "explain procedure payment").await;
    let signature = "Procedure: public.payment(p_w integer, INOUT p_cw integer)";
    assert_eq!(lines[0], signature);
    let expected = [
        "Mode: off: nobody has said how its calls travel, and procedures = \"declared\"",
        "With procedures = \"auto\": train",
        "Key: (p_w), as its body tells",
    ];
    assert_eq!(lines[1..4], expected);
    assert!(lines[4].starts_with("Its body: key (p_w): "), "{lines:?}");
    assert_eq!(lines[5], "Rows: line 3: UPDATE public.warehouse: w_id = p_w; one row");
    assert!(lines[6].starts_with("Advice: move UPDATE warehouse (line 3) last"), "{lines:?}");
    assert_eq!(lines.len(), 7);
    run(&operator, "set procedure payment key (p_cw) mode batch durable_ack each").await;
    let lines = run(&operator, "explain procedure public.payment in database app").await;
    assert_eq!(lines[1], "Mode: lane: durable_ack = \"each\"");
    assert_eq!(lines[3], "Key: (p_cw), as SET PROCEDURE says");
    understood(&fake, "shop", 7, "payment", PAYMENT);
    let lines = run(&operator, "explain procedure payment in database shop").await;
    assert!(!lines.iter().any(|line| line.starts_with("With procedures")), "{lines:?}");
    fixture::procedure(&fake.procedures, "slow", 9, "other");
    let lines = run(&operator, "explain procedure other").await;
    let expected = [
        "Procedure: public.other(p_w integer, INOUT p_cw integer)",
        "Mode: off: procedures = \"off\" for database slow",
        "With procedures = \"auto\": off",
        "Key: none, so every call may travel beside every other",
        "Its body is not understood: written in C",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn what_stands_against_a_mode_is_told() {
    let (operator, fake) = operator();
    let commits = "\nBEGIN\n    UPDATE warehouse SET w_ytd = 1 WHERE w_id = p_w;\n    COMMIT;\nEND";
    understood(&fake, "app", 7, "commits", commits);
    run(&operator, "set procedure commits mode train").await;
    let lines = run(&operator, "explain procedure commits").await;
    assert!(lines[1].starts_with("Mode: lane: line 4: "), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("Hazard: line 4: ")), "{lines:?}");
    let problem = "Problem: not in mode train but lane: line 4: ";
    assert!(lines.iter().any(|line| line.starts_with(problem)), "{lines:?}");
    let handles = "\nBEGIN\n    UPDATE warehouse SET w_ytd = 1 WHERE w_id = p_w;\n\
        EXCEPTION WHEN OTHERS THEN\n    NULL;\nEND";
    understood(&fake, "app", 8, "handles", handles);
    run(&operator, "set procedure handles mode batch").await;
    let lines = run(&operator, "explain procedure handles").await;
    let expected = "Mode: train: only calls of one key share a train";
    assert!(lines[1].starts_with(expected), "{lines:?}");
}

#[tokio::test]
async fn lock_waits_advise_a_key_and_find_a_wrong_one() {
    let (operator, fake) = operator();
    let payment = fixture::procedure(&fake.procedures, "app", 7, "payment");
    for at in 1..100 {
        let mut waits = payment.waits();
        waits.waits_for(&[3, at], &[3, at + 1]);
        waits.runs_beside(&[at, 5], &[at + 1, 5]);
        (waits.seen, waits.waited) = (waits.seen + 4, waits.waited + 1);
    }
    let lines = run(&operator, "explain procedure payment").await;
    let advice = "Advice: calls that wait for one another have the same (p_w): \
        SET PROCEDURE public.payment KEY (p_w)";
    assert!(lines.iter().any(|line| line == advice), "{lines:?}");
    run(&operator, "set procedure payment key (p_cw)").await;
    let rows = run(&operator, "show procedures").await;
    let problem = "|25|the key does not keep apart who waits for whom: of 99 pairs";
    assert!(rows[0].contains(problem), "{rows:?}");
    run(&operator, "set procedure payment key (p_w)").await;
    let lines = run(&operator, "explain procedure payment").await;
    assert!(!lines.iter().any(|line| line.starts_with("Advice")), "{lines:?}");
    let rows = run(&operator, "show procedures").await;
    assert!(rows[0].ends_with("|25|"), "{rows:?}");
}

#[tokio::test]
async fn what_can_not_be_explained_is_refused_with_what_can() {
    let (operator, fake) = operator();
    let failed = run(&operator, "explain procedure payment").await;
    let which = "42601 which database is it about? / The console is in none. / \
        EXPLAIN PROCEDURE payment IN DATABASE app";
    assert_eq!(failed, [which]);
    let failed = run(&operator, "explain procedure payment in database ap").await;
    assert_eq!(failed, ["3D000 no such database: ap /  / Did you mean app?"]);
    fixture::procedure(&fake.procedures, "app", 7, "payment");
    let failed = run(&operator, "explain procedure public.paymnt in database app").await;
    let none = "42883 database app has no procedure or function public.paymnt /  / \
        Did you mean public.payment?";
    assert_eq!(failed, [none]);
    let failed = run(&operator, "explain procedure payment in database reports").await;
    assert_eq!(failed, ["08006 the catalogues could not be asked / no route to host / "]);
    fixture::procedure(&fake.procedures, "reports", 7, "payment");
    let lines = run(&operator, "explain procedure payment in database reports").await;
    let warning = "WARNING: the catalogues could not be asked: this is what was known when it was \
        called / no route to host";
    assert_eq!(lines[0], warning);
    let refused = run_as(&operator, &who("pondage", false), "set procedure payment").await;
    assert!(refused[0].starts_with("42501 admin access needed"), "{refused:?}");
    assert!(parse(b"set procedure payment; show procedures").is_ok_and(|list| {
        matches!(list.as_slice(), [Request::Procedure(_), Request::Show(Show::Procedures)])
    }));
}
