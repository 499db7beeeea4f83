//! Calls by the catalogues of a real PostgreSQL: which routine they mean, and what is found out
//! about it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::sync::Arc;

use sql::procedure::Ride;
use sql::Source::{self, Literal, Parameter};

use super::server::Server;
use crate::config::{Calls, PoolConfig, ProcedureMode, ProcedureOptions};
use crate::control::bodies::{self, Parser};
use crate::control::dial::Dialer;
use crate::control::judge::Judges;
use crate::procedures::{Call, KeyOrigin, Plan, Procedures, Travel};
use crate::route::Share;

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

const TPCC: [&str; 3] = [
    include_str!("../../../../../bench/pondage_bench/tpcc/schema.sql"),
    include_str!("../../../../../bench/pondage_bench/tpcc/keys.sql"),
    include_str!("../../../../../bench/pondage_bench/tpcc/procedures.sql"),
];

fn options(key: &[&str], mode: Option<ProcedureMode>) -> ProcedureOptions {
    let key = key.iter().map(|name| (*name).to_owned()).collect();
    ProcedureOptions { key, mode, ..ProcedureOptions::default() }
}

#[tokio::test]
async fn orders_and_payments_of_one_warehouse_are_kept_apart() {
    let said = options(&["p_w", "p_d"], Some(ProcedureMode::Lane));
    let said = BTreeMap::from([("public.payment".to_owned(), said)]);
    let court = Court::with("SELECT 1", &said).await;
    for script in TPCC {
        court.server.run(script).await;
    }
    let order = "SELECT * FROM neworder($1, $2, $3, $4, $5, $6)";
    let pay = "CALL payment($1, $2, $3, $4, $5, $6, $7, NULL)";
    let order = court.call(order).await.expect("a call").procedure.clone();
    let pay = court.call(pay).await.expect("a call").procedure.clone();
    let plan = pay.plan();
    assert_eq!((keys(&plan).as_str(), plan.origin), ("p_w,p_d", KeyOrigin::Configuration));
    assert_eq!(plan.travel(Calls::Declared), Some(Travel::Each));

    // Without a word of anybody it is the coarsest that both have.
    court.procedures.configure(&BTreeMap::new());
    let (paying, ordering) = (pay.plan(), order.plan());
    let why = |plan: &Plan| plan.derived.why.clone();
    assert_eq!(paying.origin, KeyOrigin::Body, "{}", why(&paying));
    assert_eq!(keys(&paying), "p_w p_cw", "{}", why(&paying));
    assert_eq!(keys(&ordering), "p_w", "{}", why(&ordering));
    let space = |plan: &Plan| plan.lane.as_ref().map(|lane| lane.space);
    assert_eq!(space(&paying), space(&ordering));
    for plan in [&paying, &ordering] {
        assert_eq!((plan.ride, &plan.hazards[..]), (Some(Ride::Shared), &[][..]));
        assert_eq!(plan.travel(Calls::Auto), Some(Travel::Train));
        assert_eq!(plan.travel(Calls::Declared), None);
    }
    assert_eq!(paying.derived.dimensions[0].as_deref(), Some("public.customer.c_w_id"));

    court.redefine("COMMENT ON PROCEDURE payment IS '@pondage key=p_d'").await;
    court.judges.examine(&court.config(), None, None, "payment").await.expect("examined");
    assert_eq!((keys(&pay.plan()).as_str(), pay.plan().origin), ("p_d", KeyOrigin::Comment));
    court.procedures.set("public.payment", options(&["p_w"], None)).expect("set");
    assert_eq!((keys(&pay.plan()).as_str(), pay.plan().origin), ("p_w", KeyOrigin::Command));
}

const CLOSURES: &str = r#"
CREATE SCHEMA app; CREATE SCHEMA apart; GRANT USAGE ON SCHEMA app, apart TO PUBLIC;
ALTER ROLE scram SET search_path = app; SET search_path = app;
CREATE TABLE account (id int PRIMARY KEY, balance int);
CREATE TABLE apart.account (id int, number int PRIMARY KEY);
CREATE FUNCTION locks(int) RETURNS int LANGUAGE plpgsql AS
  $$BEGIN PERFORM pg_advisory_lock($1); RETURN $1; END$$;
CREATE VIEW locking AS SELECT locks(id) AS id FROM account;
CREATE PROCEDURE reads(who int) LANGUAGE plpgsql AS
  $$BEGIN PERFORM * FROM locking WHERE id = who; END$$;

CREATE TABLE audited (id int PRIMARY KEY); CREATE TABLE child (id int REFERENCES audited
  ON DELETE CASCADE);
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN NOTIFY changed; LISTEN changed; RETURN NEW; END$$;
CREATE CONSTRAINT TRIGGER late AFTER DELETE ON child DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION audit();
CREATE PROCEDURE fires(who int) LANGUAGE plpgsql AS
  $$BEGIN DELETE FROM audited WHERE id = who; END$$;
CREATE PROCEDURE looks(who int) LANGUAGE plpgsql AS
  $$BEGIN PERFORM * FROM audited WHERE id = who; END$$;

CREATE PROCEDURE deep(who int) LANGUAGE plpgsql AS $$BEGIN CALL middle(who); END$$;
CREATE PROCEDURE middle(it int) LANGUAGE plpgsql AS
  $$BEGIN UPDATE account SET balance = 0 WHERE id = it; END$$;
CREATE PROCEDURE strange(who int) LANGUAGE plpgsql AS
  $$BEGIN UPDATE account SET balance = 0 WHERE id = who; PERFORM missing(1); END$$;

CREATE PROCEDURE with_path(n int) LANGUAGE plpgsql SET search_path = apart, pg_temp AS
  $$BEGIN UPDATE account SET id = 0 WHERE number = n; END$$;
CREATE PROCEDURE calls_with_path(n int) LANGUAGE plpgsql SECURITY DEFINER
  SET synchronous_commit = on SET lock_timeout = '1s' AS
  $$BEGIN UPDATE account SET balance = 0 WHERE id = n; CALL with_path(n); END$$;
CREATE PROCEDURE commits(who int) LANGUAGE plpgsql AS
  $$BEGIN UPDATE account SET balance = 0 WHERE id = who; COMMIT; END$$;
CREATE PROCEDURE catches(who int) LANGUAGE plpgsql AS
  $$BEGIN UPDATE account SET balance = 0 WHERE id = who;
  EXCEPTION WHEN OTHERS THEN NULL; END$$;
SET check_function_bodies = off;
CREATE FUNCTION atomic(who int) RETURNS void LANGUAGE sql
  BEGIN ATOMIC UPDATE account SET balance = 0 WHERE id = who; END;
CREATE PROCEDURE broken(who int) LANGUAGE plpgsql AS $$BEGIN UPDATE; SELEC 1; END$$;
CREATE TABLE parts (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE PROCEDURE partly(who int) LANGUAGE plpgsql AS
  $$BEGIN UPDATE parts SET v = 1 WHERE id = who; END$$;
CREATE FUNCTION audit_part() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN PERFORM pg_sleep(1); RETURN NEW; END$$;
CREATE TRIGGER slow BEFORE UPDATE ON parts_1 FOR EACH ROW EXECUTE FUNCTION audit_part();
"#;

#[tokio::test]
async fn what_a_call_does_through_others_counts() {
    let court = Court::open(CLOSURES).await;
    let body = "DO $do$ BEGIN EXECUTE 'CREATE PROCEDURE app.long(who int) LANGUAGE plpgsql AS $$
        BEGIN NULL; /*' || repeat('lang ''\"', 60000) || '*/ END $$'; END $do$";
    court.server.run(body).await;
    let body = "DO $do$ BEGIN EXECUTE 'CREATE PROCEDURE app.lengthy(who int) LANGUAGE plpgsql AS $$
        BEGIN NULL; /*' || repeat('län \"', 20000) || '*/ DELETE FROM account WHERE id = who;
        END $$'; END $do$";
    court.server.run(body).await;
    use Ride::{Last, Never, Shared, Train};
    let mut wrong = Vec::new();
    for (text, key, ride, hazard) in [
        ("CALL reads(1)", "", Some(Never), "locking: app.locks: line 1: pg_advisory_lock()"),
        ("CALL fires(1)", "who", Some(Never), "app.audit: line 1: LISTEN: "),
        ("CALL looks(1)", "", Some(Shared), ""),
        ("CALL deep(1)", "who", Some(Shared), ""),
        ("CALL strange(1)", "who", Some(Train), "missing was not looked into"),
        ("CALL with_path(1)", "n", Some(Shared), ""),
        ("CALL calls_with_path(1)", "n", Some(Train), "with_path: it has a search_path of its own"),
        ("CALL commits(1)", "who", Some(Last), "ends the transaction"),
        ("CALL catches(1)", "who", Some(Shared), ""),
        ("SELECT atomic(1)", "who", Some(Shared), ""),
        ("CALL broken(1)", "", None, "syntax error"),
        ("CALL partly(1)", "who", Some(Train), "app.audit_part: line 1: pg_sleep() sleeps"),
        ("CALL lengthy(1)", "who", Some(Shared), ""),
        ("CALL long(1)", "", None, "the body has more than 262144 bytes"),
    ] {
        let plan = &*court.plan(text).await;
        let all = plan.hazards.join("; ");
        let told = all.contains(hazard) && all.is_empty() == hazard.is_empty();
        if (keys(plan).as_str(), plan.ride, told) != (key, ride, true) {
            let why = &plan.derived.why;
            wrong.push(format!("{text}: {}, {:?}, {all} ({why})", keys(plan), plan.ride));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(court.plan("CALL catches(1)").await.catches);
    assert_eq!(court.plan("CALL catches(1)").await.travel(Calls::Auto), Some(Travel::Secluded));
    let plan = court.plan("CALL with_path(1)").await;
    assert_eq!(plan.derived.dimensions[0].as_deref(), Some("apart.account.number"));

    // Of what is called, nothing is remembered that may have changed.
    let body = "CREATE OR REPLACE PROCEDURE app.middle(it int) LANGUAGE plpgsql AS
        $$BEGIN EXECUTE 'SELECT 1'; UPDATE account SET balance = 0 WHERE id = it; END$$";
    court.redefine(body).await;
    let plan = court.plan("CALL deep(1)").await;
    assert_eq!((keys(&plan).as_str(), plan.ride), ("who", Some(Train)), "{:?}", plan.hazards);
}

#[tokio::test]
async fn pools_without_procedures_and_other_names_of_a_database_have_their_own_verdicts() {
    let court = Court::open(DATABASE).await;
    let text = b"SELECT draw(5, 7)";
    let off = court.server.config("scram");
    let other = PoolConfig { database: "alias".to_owned(), ..court.config() };
    for _ in 0..2 {
        let verdict = court.judges.judge(&off, None, text).await.expect("verdict");
        assert_eq!((verdict.share, verdict.call), (Share::Alone, None));
        for config in [&court.config(), &other] {
            let verdict = court.judges.judge(config, None, text).await.expect("verdict");
            assert_eq!(verdict.share, Share::Alone);
            assert_eq!(verdict.reason, "function app.draw() is volatile");
            let call = verdict.call.expect("a call");
            assert_eq!(call.procedure.database, config.database);
        }
    }
    let verdict = court.judges.judge(&off, None, b"CALL pay(7, 5)").await.expect("verdict");
    assert_eq!(verdict.call, None);
    let call = court.judges.judge(&court.config(), None, b"CALL pay(7, 5)").await.expect("verdict");
    assert!(call.call.is_some());
    assert_eq!(
        (verdict.share, verdict.reason, verdict.writes),
        (call.share, call.reason, call.writes)
    );
    assert_eq!(court.procedures.list().len(), 3);
}

#[tokio::test]
async fn all_routines_of_a_name_can_be_examined() {
    let court = Court::open(DATABASE).await;
    let examine = async |schema, name| {
        let examined = court.judges.examine(&court.config(), None, schema, name).await;
        let titles = examined.expect("examined").into_iter().map(|one| one.title.clone());
        titles.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(examine(None, "either").await, "app.either app.either");
    assert_eq!(examine(None, "shadowed").await, "early.shadowed");
    assert_eq!(examine(Some("app"), "shadowed").await, "app.shadowed");
    assert_eq!(examine(Some("Odd"), "unseen").await, "Odd.unseen");
    for (schema, name) in [(None, "now"), (None, "total"), (None, "alias"), (None, "nothing")] {
        assert_eq!(examine(schema, name).await, "", "{name}");
    }
    assert_eq!(court.procedures.list().len(), 5);
}

/// A function or operator of a user that the look-ups hit would see who asks.
#[tokio::test]
async fn nothing_of_a_user_is_hit_while_calls_are_looked_up() {
    let court = Court::open(DATABASE).await;
    let traps = ["name", "oid", "text", "int2", "int4", "int8", "\"char\""].map(|of| {
        format!(
            "CREATE FUNCTION early.eq({of}, {of}) RETURNS bool LANGUAGE sql AS
               'SELECT early.trap()';
             CREATE OPERATOR early.= (LEFTARG = {of}, RIGHTARG = {of}, FUNCTION = early.eq);
             CREATE OPERATOR early.<> (LEFTARG = {of}, RIGHTARG = {of}, FUNCTION = early.eq);
             CREATE OPERATOR early.< (LEFTARG = {of}, RIGHTARG = {of}, FUNCTION = early.eq);"
        )
    });
    court
        .server
        .run(&format!(
            "CREATE VIEW app.seen AS SELECT id FROM app.account;
             CREATE PROCEDURE app.sees(who int) LANGUAGE plpgsql SET search_path = early, pg_catalog
               AS 'BEGIN PERFORM 1 FROM app.seen; DELETE FROM app.account WHERE id = who; END';
             SET search_path = early, pg_catalog;
             CREATE FUNCTION early.trap() RETURNS bool LANGUAGE plpgsql AS
               'BEGIN RAISE EXCEPTION ''hit''; END';
             {}
             CREATE FUNCTION early.substr(text, int, int) RETURNS text LANGUAGE sql AS
               'SELECT early.trap()::text';
             CREATE TABLE early.pg_proc (oid int); CREATE TABLE early.pg_class (oid int);
             CREATE DOMAIN early.text AS pg_catalog.text CHECK (early.trap());
             ALTER ROLE scram SET search_path = early, app, pg_catalog;",
            traps.join("\n")
        ))
        .await;
    assert_eq!(keys(&*court.plan("CALL pay(7, 5)").await), "who");
    assert_eq!(keys(&*court.plan("CALL sees(7)").await), "who");
}

#[tokio::test]
async fn writes_of_a_row_share_the_lane_of_calls_whose_key_it_is() {
    let court = Court::open("SELECT 1").await;
    for script in TPCC {
        court.server.run(script).await;
    }
    court
        .server
        .run(
            "CREATE TABLE hits (page text PRIMARY KEY, n int, code int UNIQUE, day date);
             CREATE UNIQUE INDEX ON hits (day) WHERE n > 0",
        )
        .await;
    let pay = court.plan("CALL payment($1, $2, $3, $4, $5, $6, $7, NULL)").await;
    let space = pay.lane.as_ref().map(|lane| lane.space);
    let row = async |text: &str| {
        let verdict = court.judges.judge(&court.config(), None, text.as_bytes()).await;
        verdict.unwrap_or_else(|e| panic!("{text}: {e}")).row
    };
    let found = row("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = $1").await;
    let found = found.expect("its primary key");
    assert_eq!(found.key, [(Parameter(1), cache::value::Kind::Int)]);
    assert_eq!(Some(found.space), space);
    for (text, of) in [
        ("UPDATE hits SET n = n + 1 WHERE page = $2 AND n > $1", Some(Parameter(2))),
        ("DELETE FROM hits WHERE code = 5 AND page > 'a'", Some(Literal(0))),
        (
            "INSERT INTO hits (n, page) VALUES (1, $1) ON CONFLICT (page) DO UPDATE SET n = 2",
            Some(Parameter(1)),
        ),
        // Nobody waits for it.
        ("INSERT INTO hits (n, page) VALUES (1, $1)", None),
        ("UPDATE hits SET n = n + 1 WHERE n = $1", None),
        ("UPDATE hits SET n = n + 1 WHERE day = $1", None),
        ("UPDATE hits SET n = n + 1 WHERE page = $1 OR n = 1", None),
        ("SELECT n FROM hits WHERE page = $1", None),
    ] {
        let row = row(text).await;
        let keys = row.as_ref().map(|row| row.key.iter().map(|(source, _)| *source).collect());
        assert_eq!(keys, of.map(|source| vec![source]), "{text}");
    }
}
