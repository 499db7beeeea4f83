//! Calls by the catalogues of a real PostgreSQL: which routine they mean, and what is found out
//! about it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::sync::Arc;

use sql::procedure::Ride;
use sql::Source::{self, Literal, Parameter};

use super::server::Server;
use crate::config::{Calls, PoolConfig, ProcedureOptions};
use crate::control::bodies::{self, Parser};
use crate::control::dial::Dialer;
use crate::control::judge::Judges;
use crate::procedures::{Call, KeyOrigin, Plan, Procedures};

const CHILD: &str = "PONDAGE_TEST_PARSES";

/// What parses bodies: this program, which is told to run the test below and nothing else.
fn parser() -> Parser {
    let script = format!(
        "exec 3>&1 >/dev/null; {CHILD}=1 exec \"$0\" --exact {}::a_child_parses --nocapture",
        module_path!().split_once("::").expect("a module").1
    );
    let program = std::env::current_exe().expect("a program");
    Parser::of("/bin/sh", &["-c", &script, program.to_str().expect("a path")])
}

/// The harness writes to the standard output, so the answer goes elsewhere.
#[test]
fn a_child_parses() {
    if std::env::var_os(CHILD).is_some() {
        let out = OpenOptions::new().write(true).open("/dev/fd/3").expect("what the parent reads");
        bodies::answer_to(out);
    }
}

const DATABASE: &str = r#"
CREATE SCHEMA app; CREATE SCHEMA early; CREATE SCHEMA "Odd";
GRANT USAGE ON SCHEMA app, early, "Odd" TO PUBLIC;
ALTER ROLE scram SET search_path = early, app, public;
SET search_path = app;
CREATE TABLE account (id int PRIMARY KEY, owner text, balance int);

CREATE PROCEDURE pay(who int, amount int, note text DEFAULT 'x') LANGUAGE plpgsql AS
  $$BEGIN UPDATE account SET balance = balance - amount WHERE id = who; END$$;
CREATE FUNCTION draw(amount int, who int) RETURNS int LANGUAGE sql AS
  'UPDATE account SET balance = balance - amount WHERE id = who RETURNING balance';
CREATE FUNCTION draw_all(OUT sum int, who int, OUT rest int) LANGUAGE plpgsql AS
  $$BEGIN UPDATE account SET balance = 0 WHERE id = who; END$$;
CREATE FUNCTION listed(who int) RETURNS TABLE (id int, owner text) LANGUAGE plpgsql AS
  $$BEGIN DELETE FROM account a WHERE a.id = who; END$$;
CREATE FUNCTION "Odd"."Pay ""it"""(int) RETURNS void LANGUAGE plpgsql AS
  $$BEGIN UPDATE app.account SET balance = 0 WHERE id = $1; END$$;
CREATE FUNCTION either(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION either(text) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION by_number(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION by_number(int, int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION shadowed(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION early.shadowed(int) RETURNS int LANGUAGE sql AS 'SELECT 2';
CREATE FUNCTION "Odd".unseen(int) RETURNS int LANGUAGE sql AS 'SELECT 2';
CREATE FUNCTION many(VARIADIC int[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION upper(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE AGGREGATE total(int) (SFUNC = int4pl, STYPE = int);
CREATE FUNCTION alias(int) RETURNS int LANGUAGE internal AS 'int4abs';
"#;

/// Calls with what they mean: `app.pay([0], $1, -)`, by place; empty for none.
const CALLS: &[(&str, &str)] = &[
    ("CALL pay(7, 5)", "app.pay([0], [1], -)"),
    ("call pay($1, $2, 'x')", "app.pay($1, $2, [0])"),
    ("CALL app.pay(amount => 5, who => $1)", "app.pay($1, [0], -)"),
    ("CALL pay(7, note => 'x', amount => 5)", "app.pay([0], [2], [1])"),
    ("CALL pay(7, 5, who => 5)", ""),
    ("CALL pay(7)", ""),
    ("CALL pay(7, 5, 'x', 1)", ""),
    ("CALL pay(7, 5, other => 1)", ""),
    ("CALL early.pay(7, 5)", ""),
    ("CALL nothing(7)", ""),
    ("SELECT pay(7, 5)", ""),
    ("CALL draw(5, 7)", ""),
    ("SELECT draw(5, 7)", "app.draw([0], [1])"),
    ("SELECT * FROM draw($2, $1)", "app.draw($2, $1)"),
    ("SELECT * FROM app.draw(who => $1, amount => 1 + 1) AS d", "app.draw(-, $1)"),
    ("SELECT * FROM draw_all(7)", "app.draw_all(-, [0], -)"),
    ("SELECT id FROM listed($1)", "app.listed($1, -, -)"),
    ("SELECT \"Odd\".\"Pay \"\"it\"\"\"(7)", "Odd.Pay \"it\"([0])"),
    ("SELECT either(7)", ""),
    ("SELECT by_number(7)", "app.by_number([0])"),
    ("SELECT by_number(7, 8)", "app.by_number([0], [1])"),
    ("SELECT shadowed(7)", "early.shadowed([0])"),
    ("SELECT app.shadowed(7)", "app.shadowed([0])"),
    ("SELECT unseen(7)", ""),
    ("SELECT \"Odd\".unseen(7)", "Odd.unseen([0])"),
    ("SELECT many(7)", ""),
    ("SELECT many(7, 8, 9)", ""),
    ("SELECT upper(7)", ""),
    ("SELECT total(7)", ""),
    ("SELECT alias(7)", ""),
    ("SELECT now()", ""),
    ("SELECT pg_catalog.abs(7)", ""),
    ("SELECT draw(5, 7), 1", ""),
    ("UPDATE account SET balance = 0", ""),
];

struct Court {
    server: Server,
    judges: Judges,
    procedures: Arc<Procedures>,
}

impl Court {
    async fn open(database: &str) -> Court {
        Court::with(database, &BTreeMap::new()).await
    }

    async fn with(database: &str, said: &BTreeMap<String, ProcedureOptions>) -> Court {
        let server = Server::start().await;
        server.run(database).await;
        let procedures = Arc::new(Procedures::new(said));
        let judges = Judges::new(Arc::new(Dialer::default()), procedures.clone());
        Court { server, judges: judges.parsing_with(parser()), procedures }
    }

    fn config(&self) -> PoolConfig {
        PoolConfig { procedures: Calls::Auto, ..self.server.config("scram") }
    }

    async fn call(&self, text: &str) -> Option<Arc<Call>> {
        let verdict = self.judges.judge(&self.config(), None, text.as_bytes()).await;
        verdict.unwrap_or_else(|e| panic!("{text}: {e}")).call
    }

    async fn plan(&self, text: &str) -> Arc<Plan> {
        self.call(text).await.unwrap_or_else(|| panic!("{text} is no call")).procedure.plan()
    }

    /// Something that the stream tells, or a worker that looks again.
    async fn redefine(&self, sql: &str) {
        self.server.run(sql).await;
        self.judges.forget("app");
    }
}

fn shown(call: &Call) -> String {
    let argument = |source: &Option<Source>| match source {
        Some(Literal(place)) => format!("[{place}]"),
        Some(Parameter(number)) => format!("${number}"),
        None => "-".to_owned(),
    };
    let arguments: Vec<String> = call.arguments.iter().map(argument).collect();
    format!("{}({})", call.procedure.title, arguments.join(", "))
}

/// Names of the parameters of the key, and of the others that a call reserves.
fn keys(plan: &Plan) -> String {
    let Some(lane) = &plan.lane else { return String::new() };
    let names = |list: &[(usize, Option<cache::value::Kind>)]| {
        let names: Vec<&str> =
            list.iter().map(|(place, _)| plan.arguments[*place].as_str()).collect();
        names.join(",")
    };
    let lists = std::iter::once(&lane.key).chain(&lane.also);
    lists.map(|list| names(list)).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_call_means_the_only_routine_that_it_can_mean() {
    let court = Court::open(DATABASE).await;
    let mut wrong = Vec::new();
    for (text, expected) in CALLS {
        let call = court.call(text).await;
        let told = call.as_deref().map(shown).unwrap_or_default();
        if told != *expected {
            wrong.push(format!("{text}: {told}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let plan: &Plan = &*court.plan("CALL pay(7, 5)").await;
    assert_eq!((keys(plan).as_str(), plan.origin), ("who", KeyOrigin::Body));
    assert_eq!((plan.ride, &plan.hazards[..]), (Some(Ride::Shared), &[][..]));
    for text in ["SELECT draw(5, 7)", "SELECT * FROM draw_all(7)", "SELECT id FROM listed($1)"] {
        assert_eq!(keys(&*court.plan(text).await), "who", "{text}");
    }
    // One number means one account to all of them.
    let spaces = |plan: &Plan| plan.lane.as_ref().map(|lane| lane.space);
    assert_eq!(spaces(plan), spaces(&*court.plan("SELECT draw(5, 7)").await));
}

#[tokio::test]
async fn what_is_defined_anew_is_looked_at_again() {
    let court = Court::open(DATABASE).await;
    let text = "CALL pay(7, 5)";
    let call = court.call(text).await.expect("a call");
    assert_eq!(keys(&call.procedure.plan()), "who");
    let again = court.call("CALL pay(8, 6, 'y')").await.expect("a call");
    assert!(Arc::ptr_eq(&call.procedure, &again.procedure), "there is one of it");

    // The plan of those who hold the procedure changes.
    let body = "CREATE OR REPLACE PROCEDURE app.pay(who int, amount int, note text DEFAULT 'x')
        LANGUAGE plpgsql AS $$BEGIN
          PERFORM pg_advisory_lock(who); UPDATE account SET balance = 0 WHERE id = amount;
        END$$";
    court.redefine(body).await;
    court.call(text).await.expect("a call");
    let plan = call.procedure.plan();
    assert_eq!((keys(&plan).as_str(), plan.ride), ("amount", Some(Ride::Never)));
    assert!(plan.hazards[0].contains("pg_advisory_lock() takes"), "{:?}", plan.hazards);

    let comment = "COMMENT ON PROCEDURE app.pay IS 'Pays. @pondage key=who mode=lane'";
    court.redefine(comment).await;
    court.call(text).await.expect("a call");
    let plan = call.procedure.plan();
    assert_eq!((keys(&plan).as_str(), plan.origin), ("who", KeyOrigin::Comment));
    assert!(plan.complaints[0].starts_with("not in mode lane: "), "{:?}", plan.complaints);

    court.redefine("DROP PROCEDURE app.pay").await;
    assert_eq!(court.call(text).await, None);
    assert_eq!(court.procedures.list().len(), 0, "it is forgotten");
}
