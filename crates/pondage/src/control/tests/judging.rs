//! Verdicts on statements, by the catalogues of a real PostgreSQL.

use std::sync::Arc;
use std::time::Instant;

use backend::login::Credential;
use wire::pg::auth::{ScramKeys, Secret};

use super::server::Server;
use crate::config::{Host, PoolConfig, Upstream};
use crate::control::dial::Dialer;
use crate::control::judge::{Judges, KEPT_FOR};
use crate::route::{Share, Verdict, Writes};

const DATABASE: &str = r#"
CREATE SCHEMA app; CREATE SCHEMA early; CREATE SCHEMA hidden;
GRANT USAGE ON SCHEMA app, early TO PUBLIC;
ALTER ROLE scram SET search_path = early, app, public;
SET search_path = app;

CREATE TABLE t (id int PRIMARY KEY, name text, at timestamptz DEFAULT now());
CREATE TABLE partitioned (id int, name text) PARTITION BY RANGE (id);
CREATE TABLE partitioned_1 PARTITION OF partitioned FOR VALUES FROM (0) TO (10);
CREATE MATERIALIZED VIEW materialized AS SELECT random() AS r, count(*) FROM t;
CREATE TABLE secured (id int); ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE SEQUENCE numbers;
CREATE TABLE hidden.t2 (id int);

CREATE FUNCTION next_id() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION steady(int) RETURNS int STABLE LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION fixed(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION defaulting(int, int DEFAULT next_id() + 1) RETURNS int STABLE LANGUAGE sql
  AS 'SELECT 1';
CREATE FUNCTION calmly_defaulting(bigint DEFAULT 1, date DEFAULT current_date - 1,
  text DEFAULT upper('a')) RETURNS int STABLE LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION label(t) RETURNS text LANGUAGE sql AS 'SELECT $1.name';
CREATE FUNCTION calm_label(t) RETURNS text STABLE LANGUAGE sql AS 'SELECT $1.name';
CREATE FUNCTION add_up(int, int) RETURNS int LANGUAGE sql AS 'SELECT $1 + $2';
CREATE AGGREGATE restless(int) (SFUNC = add_up, STYPE = int, INITCOND = '0');
-- One of two is enough.
CREATE FUNCTION twice(int) RETURNS int STABLE LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION early.twice(text) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION same(t, t) RETURNS bool LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR === (LEFTARG = t, RIGHTARG = t, FUNCTION = same);
CREATE FUNCTION alike(text, text) RETURNS bool STABLE LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR ~=~ (LEFTARG = text, RIGHTARG = text, FUNCTION = alike);

CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN once AS int;
CREATE FUNCTION once(text) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION defaulting_domain(int DEFAULT '1'::positive) RETURNS int STABLE LANGUAGE sql
  AS 'SELECT 1';
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TYPE pair AS (a int, b int);
CREATE TYPE span AS RANGE (SUBTYPE = int);
CREATE TYPE lot AS RANGE (SUBTYPE = positive);
CREATE FUNCTION takes_domain(positive) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';

CREATE VIEW plain AS SELECT id, name FROM t WHERE id > 0;
CREATE VIEW nested AS SELECT p.id, m.count FROM plain p CROSS JOIN materialized m;
CREATE VIEW chance AS SELECT id, random() FROM t;
CREATE VIEW deep AS SELECT id FROM chance;
CREATE VIEW calling AS SELECT next_id();
CREATE VIEW locking AS SELECT id FROM t FOR UPDATE;
CREATE VIEW over_secured AS SELECT id FROM secured;

-- What is in front of it in the search_path.
CREATE TABLE public.shadowed (id int);
CREATE VIEW early.shadowed AS SELECT next_id() AS id;

CREATE TABLE audited (id int);
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER log AFTER INSERT ON audited FOR EACH ROW EXECUTE FUNCTION audit();
CREATE TABLE audited_below (id int) PARTITION BY RANGE (id);
CREATE TABLE audited_1 PARTITION OF audited_below FOR VALUES FROM (0) TO (10);
CREATE TRIGGER log_1 AFTER INSERT ON audited_1 FOR EACH ROW EXECUTE FUNCTION audit();
CREATE TABLE ruled (id int);
CREATE RULE also AS ON INSERT TO ruled DO ALSO SELECT next_id();
CREATE TABLE serial (id serial, kind mood, token uuid DEFAULT gen_random_uuid());
CREATE TABLE defaulted (id int DEFAULT next_id());
CREATE TABLE checked (id int CHECK (add_up(id, 1) > 0));
CREATE TABLE generated (id int, twice int GENERATED ALWAYS AS (fixed(id) * 2) STORED);
CREATE TABLE indexed (id int, name text);
CREATE INDEX ON indexed (lower(name), fixed(id)) WHERE id > 0 AND name <> '';
CREATE DOMAIN restless_domain AS int CHECK (next_id() < VALUE);
CREATE TABLE with_domain (id int, value restless_domain[]);
CREATE TABLE with_positive (id positive);
CREATE TABLE deferred (id int UNIQUE DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE child (id int REFERENCES t ON DELETE CASCADE);
CREATE TABLE lasting (id int, name text, days interval day);
CREATE DOMAIN days AS interval day;
CREATE TABLE lasting_domain (id int, days days);
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE audited_child (id int REFERENCES parent ON DELETE CASCADE);
CREATE TRIGGER log AFTER DELETE ON audited_child FOR EACH ROW EXECUTE FUNCTION audit();

CREATE EXTENSION file_fdw SCHEMA public;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE distant (id int) SERVER files OPTIONS (filename '/dev/null');
CREATE TABLE mixed (id int) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE mixed_1 PARTITION OF mixed FOR VALUES FROM (0) TO (10)
  SERVER files OPTIONS (filename '/dev/null');
"#;

use Share::{Alone, Batch, Pipeline, Write};

const READS: &[(&str, Share, &str)] = &[
    ("SELECT 1", Batch, ""),
    ("SELECT * FROM t WHERE id = 7", Batch, ""),
    ("SELECT * FROM t WHERE id = $1 AND name LIKE $2 ORDER BY at LIMIT 3", Batch, ""),
    ("VALUES (1, 'a')", Batch, ""),
    ("TABLE t", Batch, ""),
    ("WITH a AS (SELECT id FROM t) SELECT count(*), max(id) FROM a", Batch, ""),
    ("SELECT now(), current_timestamp, statement_timestamp(), current_user", Batch, ""),
    ("SELECT id FROM partitioned UNION SELECT count FROM materialized", Batch, ""),
    ("SELECT p.id, m.count FROM plain p, nested m", Batch, ""),
    ("SELECT steady(fixed(id)), app.steady(1) FROM app.t", Batch, ""),
    ("SELECT '1'::int, 'glad'::mood, '{1}'::int[], '[1,2)'::span, current_date - 1", Batch, ""),
    ("SELECT relname FROM pg_catalog.pg_class WHERE oid = 't'::regclass", Batch, ""),
    ("SELECT name ~=~ 'x' FROM t", Batch, ""),
    ("SELECT t.calm_label, t.name, (t).id FROM t", Batch, ""),
    ("SELECT pg_current_snapshot()", Batch, ""),
    ("SELECT random()", Pipeline, "function random() is volatile"),
    ("SELECT clock_timestamp(), gen_random_uuid()", Pipeline, "clock_timestamp() is volatile"),
    ("SELECT * FROM chance", Pipeline, "view app.chance: function random() is volatile"),
    ("SELECT * FROM deep", Pipeline, "view app.chance: function random() is volatile"),
    ("SELECT pg_is_in_recovery()", Pipeline, "pg_is_in_recovery() is volatile"),
    ("", Alone, "it is empty"),
    ("SELECT 1; SELECT 2", Alone, "it is 2 statements"),
    ("SELECT FROM WHERE", Alone, "the parser does not understand it: "),
    ("show work_mem", Alone, "not SHOW"),
    ("EXPLAIN SELECT 1", Alone, "only SELECT, VALUES, TABLE, INSERT, UPDATE and DELETE can share"),
    ("SELECT * INTO other FROM t", Alone, "INTO makes a table"),
    ("SELECT * FROM t FOR UPDATE", Alone, "FOR UPDATE or FOR SHARE locks rows"),
    ("SELECT * FROM locking", Alone, "view app.locking: FOR UPDATE or FOR SHARE locks rows"),
    ("WITH d AS (DELETE FROM t RETURNING id) SELECT * FROM d", Alone, "WITH changes data"),
    ("SELECT * FROM nowhere", Alone, "relation \"nowhere\" is not known"),
    ("SELECT * FROM hidden.nowhere", Alone, "relation \"hidden.nowhere\" is not known"),
    ("SELECT * FROM \"T\"", Alone, "relation \"T\" is not known"),
    ("SELECT * FROM secured", Alone, "table app.secured has row security"),
    ("SELECT * FROM over_secured", Alone, "view app.over_secured: table app.secured has row"),
    ("SELECT last_value FROM numbers", Alone, "app.numbers is a sequence"),
    ("SELECT * FROM distant", Alone, "app.distant is a foreign table"),
    ("SELECT * FROM mixed", Alone, "table app.mixed has parts that are not tables"),
    ("SELECT next_id()", Alone, "function app.next_id() is volatile"),
    ("SELECT * FROM next_id()", Alone, "function app.next_id() is volatile"),
    ("SELECT * FROM calling", Alone, "view app.calling: function app.next_id() is volatile"),
    ("SELECT id FROM shadowed", Alone, "view early.shadowed: function app.next_id() is volatile"),
    ("SELECT id FROM public.shadowed", Batch, ""),
    ("SELECT twice(1)", Alone, "function early.twice() is volatile"),
    ("SELECT app.twice(1)", Batch, ""),
    ("SELECT restless(id) FROM t", Alone, "function app.restless() is volatile"),
    ("SELECT defaulting(1)", Alone, "function app.defaulting() is volatile"),
    ("SELECT defaulting_domain()", Alone, "function app.defaulting_domain() is volatile"),
    ("SELECT calmly_defaulting()", Batch, ""),
    ("SELECT nothing(1)", Alone, "function nothing() is not known"),
    ("SELECT t === t FROM t", Alone, "operator app.=== is volatile"),
    ("SELECT 1 ==== 2", Alone, "operator ==== is not known"),
    ("SELECT t.label FROM t", Alone, "column label may be a call of function app.label()"),
    ("SELECT x.label FROM (SELECT t FROM t) x", Alone, "column label may be a call"),
    ("SELECT (x.t).label FROM (SELECT t FROM t) x", Alone, "column label may be a call"),
    ("SELECT '1'::positive", Alone, "type app.positive is a domain"),
    ("SELECT positive('1')", Alone, "function positive() is not known"),
    ("SELECT once('1')", Alone, "once() may be a cast that calls a function"),
    ("SELECT takes_domain(1)", Alone, "function app.takes_domain() takes a domain"),
    ("SELECT '{1}'::positive[]", Alone, "type app.positive is a domain"),
    ("SELECT '{1}'::_positive", Alone, "type app._positive is made of domains or rows"),
    ("SELECT '[1,2)'::lot", Alone, "type app.lot is made of domains or rows"),
    ("SELECT row(1, 2)::pair", Alone, "type app.pair is not a plain one"),
    ("SELECT '1'::nothing", Alone, "type nothing is not known"),
    ("SELECT pg_backend_pid()", Alone, "function pg_backend_pid() shows its connection"),
    ("SELECT txid_current()", Alone, "function txid_current() numbers its transaction"),
    ("SELECT set_config('a.b', 'c', false)", Alone, "set_config() changes its session"),
    ("SELECT nextval('numbers')", Alone, "function nextval() is volatile"),
    ("SELECT pg_advisory_lock(1)", Alone, "pg_advisory_lock() locks beyond its statement"),
    ("SELECT pg_sleep(1)", Alone, "function pg_sleep() is volatile"),
    ("SELECT table_to_xml('t', true, true, '')", Alone, "reads tables that are not judged"),
    ("SELECT * FROM pg_locks", Alone, "view pg_locks: function pg_lock_status() is volatile"),
    ("SELECT * FROM t TABLESAMPLE system (10)", Alone, "function system() is volatile"),
];

const WRITES: &[(&str, Share, &str)] = &[
    ("INSERT INTO t VALUES (1, 'a')", Write, "it writes"),
    ("INSERT INTO t (id) VALUES ($1) ON CONFLICT (id) DO NOTHING RETURNING at", Write, ""),
    ("UPDATE t SET name = upper(name), at = clock_timestamp() WHERE id = 1", Write, ""),
    ("DELETE FROM t USING plain p WHERE p.id = t.id AND random() < 0.5", Write, ""),
    ("WITH a AS (SELECT 1 AS id) INSERT INTO t (id) SELECT id FROM a", Write, ""),
    ("INSERT INTO partitioned VALUES (1)", Write, ""),
    ("INSERT INTO serial (kind) VALUES ('sad')", Write, ""),
    ("INSERT INTO generated VALUES (1)", Write, ""),
    ("INSERT INTO indexed VALUES (1)", Write, ""),
    ("INSERT INTO deferred VALUES (1)", Write, ""),
    ("INSERT INTO child VALUES (1)", Write, ""),
    ("INSERT INTO with_positive VALUES (1)", Write, ""),
    ("INSERT INTO parent VALUES (1)", Write, ""),
    ("INSERT INTO t (id) VALUES (nextval('numbers'))", Write, ""),
    ("INSERT INTO t (id) VALUES (currval('numbers'))", Alone, "currval() shows its session"),
    ("INSERT INTO t (id) VALUES (next_id())", Alone, "function app.next_id() is volatile"),
    ("UPDATE t SET id = 1 FROM calling", Alone, "view app.calling: function app.next_id()"),
    ("UPDATE t SET name = t.label", Alone, "column label may be a call of function app.label()"),
    ("INSERT INTO audited VALUES (1)", Alone, "table app.audited has trigger log"),
    ("INSERT INTO audited_below VALUES (1)", Alone, "table app.audited_1 has trigger log_1"),
    ("INSERT INTO ruled VALUES (1)", Alone, "table app.ruled has rule also"),
    ("INSERT INTO secured VALUES (1)", Alone, "table app.secured has row security"),
    ("INSERT INTO plain VALUES (1)", Alone, "app.plain is a view"),
    ("INSERT INTO distant VALUES (1)", Alone, "app.distant is a foreign table"),
    ("INSERT INTO mixed VALUES (1)", Alone, "app.mixed_1 is written too and is not a table"),
    ("INSERT INTO nowhere VALUES (1)", Alone, "relation \"nowhere\" is not known"),
    ("INSERT INTO defaulted VALUES (1)", Alone, "expression of table app.defaulted: function"),
    ("INSERT INTO checked VALUES (1)", Alone, "expression of table app.checked: function"),
    ("INSERT INTO with_domain VALUES (1)", Alone, "expression of table app.with_domain: function"),
    ("DELETE FROM parent", Alone, "table app.audited_child has trigger log"),
    ("UPDATE pg_catalog.pg_class SET relname = relname", Alone, "is a system catalogue"),
    ("WITH x AS (DELETE FROM t) INSERT INTO child VALUES (1)", Alone, "WITH changes data"),
    ("MERGE INTO t USING child c ON t.id = c.id WHEN MATCHED THEN DELETE", Alone, "it is a MERGE"),
];

struct Court {
    server: Server,
    judges: Judges,
}

impl Court {
    async fn open() -> Court {
        let server = Server::start().await;
        server.run(DATABASE).await;
        Court { server, judges: judges() }
    }

    fn config(&self) -> PoolConfig {
        self.server.config("scram")
    }

    async fn admin(&self) -> tokio_postgres::Client {
        let admin = self.server.cluster.admin("postgres");
        let (client, connection) = admin.connect(tokio_postgres::NoTls).await.expect("connect");
        tokio::spawn(connection);
        client.batch_execute("SET search_path = early, app, public").await.expect("search_path");
        client
    }

    async fn judge(&self, text: &str) -> Verdict {
        let verdict = self.judges.judge(&self.config(), None, text.as_bytes()).await;
        verdict.unwrap_or_else(|e| panic!("{text}: {e}"))
    }
}

fn upstream(port: u16) -> Upstream {
    Upstream {
        host: Host::Tcp("127.0.0.1".to_owned()),
        port,
        database: "old".to_owned(),
        user: "old".to_owned(),
        password: None,
        tls: super::server::no_tls(),
        protocol: crate::config::ServerProtocol::V3_0,
        connect_query: None,
        application_name: None,
        several: crate::config::Several::default(),
    }
}

fn judges() -> Judges {
    Judges::new(Arc::new(Dialer::default()), Arc::default())
}

#[tokio::test]
async fn each_statement_gets_its_share_and_the_reason() {
    let court = Court::open().await;
    let mut wrong = Vec::new();
    for (text, share, reason) in READS.iter().chain(WRITES) {
        let verdict = court.judge(text).await;
        let told = match reason.is_empty() {
            true => *share == Write || verdict.reason.is_empty(),
            false => verdict.reason.contains(reason),
        };
        if verdict.share != *share || !told {
            wrong.push(format!("{text}\n    {:?}: {}", verdict.share, verdict.reason));
        }
        assert_eq!(verdict.literals.is_some(), *share != Alone, "{text}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let verdict = court.judge("SELECT * FROM t WHERE id = 7 AND name = 'x'").await;
    let becomes = [sql::Use::Parameter(23), sql::Use::Parameter(0)];
    assert_eq!(verdict.literals.as_deref(), Some(&becomes[..]));
    // A text for an interval with a modifier is read as its constant would not be.
    let fixed = [sql::Use::Fixed; 2];
    let becomes = [sql::Use::Parameter(23), sql::Use::Fixed];
    for (text, expected) in [
        ("INSERT INTO lasting (id, days) VALUES (1, '5')", becomes),
        ("INSERT INTO lasting_domain (id, days) VALUES (1, '5')", becomes),
        ("UPDATE lasting SET days = '5' WHERE name = 'x'", fixed),
        ("UPDATE t SET id = 7 WHERE name = 'x'", [sql::Use::Parameter(23), sql::Use::Parameter(0)]),
    ] {
        assert_eq!(court.judge(text).await.literals.as_deref(), Some(&expected[..]), "{text}");
    }
    let count = "SELECT count(*) FROM pg_stat_activity \
                 WHERE usename = 'scram' AND application_name = 'pondage'";
    assert_eq!(court.server.value(count).await, "1");
}

#[tokio::test]
async fn what_a_statement_writes_is_told_or_may_be_anything() {
    const TABLES: &str = "CREATE TABLE app.owner (id int PRIMARY KEY);
        CREATE TABLE app.owned (id int REFERENCES app.owner ON DELETE CASCADE);
        CREATE TABLE app.follower (id int REFERENCES app.owner ON UPDATE CASCADE)";
    let court = Court::open().await;
    let admin = &court.admin().await;
    admin.batch_execute(TABLES).await.expect("tables");
    let oid = |table: &'static str| {
        let asked = format!("SELECT '{table}'::regclass::oid");
        async move { admin.query_one(&asked, &[]).await.expect("a table").get::<_, u32>(0) }
    };
    for (text, table, fixed, assigned) in [
        ("UPDATE t SET name = 'x' WHERE id = 7", "t", "id=Literal(1)", "name"),
        ("DELETE FROM child WHERE id = $1", "child", "id=Parameter(1)", ""),
        ("INSERT INTO follower (id) VALUES (5)", "follower", "id=Literal(0)", ""),
        ("INSERT INTO partitioned VALUES (1)", "partitioned", "", ""),
        // What is deleted with an owner stays where one is made.
        ("INSERT INTO t SELECT 1", "t", "", ""),
    ] {
        let verdict = court.judge(text).await;
        let Writes::Rows(written) = &verdict.writes else {
            panic!("{text}: {:?}, {}", verdict.writes, verdict.reason);
        };
        let told = written.fixed.iter().map(|(column, source)| format!("{column}={source:?}"));
        assert_eq!(told.collect::<Vec<_>>().join(" "), fixed, "{text}");
        assert_eq!(written.assigned.join(" "), assigned, "{text}");
        assert_eq!(written.inserts, text.starts_with("INSERT"), "{text}");
        assert_eq!(written.table, oid(table).await, "{text}");
    }
    for text in [
        "DELETE FROM owner WHERE id = 1",
        "UPDATE owner SET id = 2 WHERE id = 1",
        "INSERT INTO audited VALUES (1)",
        "INSERT INTO ruled VALUES (1)",
        "SELECT next_id()",
        "WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x",
        "MERGE INTO t USING child c ON t.id = c.id WHEN MATCHED THEN DELETE",
        "TRUNCATE t",
        "CALL something()",
        "DO $$ BEGIN DELETE FROM t; END $$",
        "COPY t FROM STDIN",
        "EXECUTE something",
        "COMMIT PREPARED 'x'",
        "EXPLAIN ANALYZE DELETE FROM t",
        "SELECT 1; DELETE FROM t",
        "SELECT next_id() FROM t FOR UPDATE",
        "SELECT * FROM calling FOR SHARE",
    ] {
        assert_eq!(court.judge(text).await.writes, Writes::Anything, "{text}");
    }
    for text in [
        "SELECT name FROM t WHERE id = 7",
        "SELECT name FROM t WHERE id = 7 FOR UPDATE",
        "SELECT random()",
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "ROLLBACK TO SAVEPOINT s",
        "SET LOCAL work_mem = '1MB'",
        "SHOW work_mem",
        "FETCH 5 FROM c",
    ] {
        assert_eq!(court.judge(text).await.writes, Writes::Nothing, "{text}");
    }
}

#[tokio::test]
async fn what_the_parser_can_t_read_is_alone_with_a_short_reason() {
    // Nobody is asked: there is no server.
    let config = super::server::pool(upstream(1));
    let judges = judges();
    let long = format!("SELECT '{}", "x".repeat(1000));
    let deep = format!("SELECT 1{}", "+1".repeat(200));
    let texts: [(&[u8], &str); 5] = [
        (b"SELECT 'secret", "understand it: Error scanning: unterminated quoted string"),
        (long.as_bytes(), "understand it: Error scanning: unterminated quoted string"),
        (b"SELECT '\xff'", "its text is not UTF-8"),
        (&[b' '; sql::TEXT_MAX + 1], "its text is longer than 65536 bytes"),
        (deep.as_bytes(), "understand it: it is nested too deeply"),
    ];
    for (text, reason) in texts {
        let verdict = judges.judge(&config, None, text).await.expect("verdict");
        assert_eq!(verdict.share, Alone);
        assert!(verdict.reason.ends_with(reason), "{}", verdict.reason);
    }
}

#[tokio::test]
async fn no_volatile_function_of_the_catalogue_is_ever_in_a_batch() {
    let court = Court::open().await;
    let volatile =
        "SELECT string_agg(DISTINCT quote_ident(n.nspname) || '.' || quote_ident(proname), ' ') \
                    FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace \
                    WHERE provolatile = 'v'";
    let names = court.server.value(volatile).await;
    let mut seen = 0;
    for name in names.split(' ') {
        let plain = name.split('.').next_back().unwrap_or(name);
        let shown = plain.trim_matches('"');
        for name in [name, plain] {
            let verdict = court.judge(&format!("SELECT {name}($1)")).await;
            let told = verdict.reason.contains(&format!("{shown}()"));
            assert!(told && verdict.share < Batch, "{name}: {verdict:?}");
            seen += 1;
        }
    }
    assert!(seen > 400, "{seen} names of volatile functions");
}

#[tokio::test]
async fn what_the_pool_s_sessions_begin_with_counts() {
    let court = Court::open().await;
    let run = |sql: &'static str| court.server.run(sql);
    run("ALTER ROLE scram SET default_transaction_isolation = 'repeatable read'").await;
    let verdict = court.judge("SELECT * FROM t").await;
    assert_eq!(verdict.share, Pipeline);
    assert_eq!(verdict.reason, "default_transaction_isolation is repeatable read");
    assert_eq!(court.judge("DELETE FROM t").await.share, Write);

    run("ALTER ROLE scram SET default_transaction_isolation = 'serializable'").await;
    run("ALTER ROLE scram SET default_transaction_read_only = on").await;
    run("ALTER ROLE scram SET default_transaction_deferrable = on").await;
    court.judges.reload();
    let verdict = court.judge("SELECT * FROM t").await;
    assert_eq!(verdict.share, Alone);
    assert_eq!(verdict.reason, "default_transaction_deferrable is on");

    run("ALTER ROLE scram RESET ALL").await;
    run("ALTER ROLE scram SET standard_conforming_strings = off").await;
    court.judges.reload();
    assert_eq!(court.judge(r"SELECT 'a\' || 'b'").await.share, Alone);
    assert_eq!(court.judge("SELECT 'a'").await.share, Batch);
    // The search_path went with RESET ALL; connect_query can bring it back.
    assert_eq!(court.judge("SELECT id FROM t").await.reason, "relation \"t\" is not known");
    let mut config = court.config();
    config.upstream.connect_query = Some("SET search_path = app".to_owned());
    let verdict = court.judges.judge(&config, None, b"SELECT id FROM t").await.expect("verdict");
    assert_eq!(verdict.share, Batch);
}

/// A user's function or operator that the look-ups hit would see who asks and could answer what
/// it likes.
#[tokio::test]
async fn objects_in_front_of_the_catalogues_are_not_hit() {
    let court = Court::open().await;
    court
        .server
        .run(
            "SET search_path = early, pg_catalog;
             CREATE FUNCTION early.trap() RETURNS bool LANGUAGE plpgsql AS
               'BEGIN RAISE EXCEPTION ''hit''; END';
             CREATE FUNCTION early.quote_ident(text) RETURNS text LANGUAGE sql AS
               'SELECT early.trap()::text';
             CREATE FUNCTION early.unnest(anyarray) RETURNS SETOF anyelement LANGUAGE sql AS
               'SELECT $1[1] WHERE early.trap()';
             CREATE FUNCTION early.to_regclass(text) RETURNS regclass LANGUAGE sql AS
               'SELECT 0::regclass WHERE early.trap()';
             CREATE FUNCTION early.current_setting(text) RETURNS text LANGUAGE sql AS
               'SELECT early.trap()::text';
             CREATE FUNCTION early.eq(name, name) RETURNS bool LANGUAGE sql AS
               'SELECT early.trap()';
             CREATE FUNCTION early.eq(oid, oid) RETURNS bool LANGUAGE sql AS
               'SELECT early.trap()';
             CREATE FUNCTION early.eq(\"char\", \"char\") RETURNS bool LANGUAGE sql AS
               'SELECT early.trap()';
             CREATE OPERATOR early.= (LEFTARG = name, RIGHTARG = name, FUNCTION = early.eq);
             CREATE OPERATOR early.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = early.eq);
             CREATE OPERATOR early.= (LEFTARG = \"char\", RIGHTARG = \"char\", FUNCTION = early.eq);
             CREATE TABLE early.pg_proc (oid int); CREATE TABLE early.pg_class (oid int);
             CREATE DOMAIN early.text AS pg_catalog.text CHECK (early.trap());
             ALTER ROLE scram SET search_path = early, app, pg_catalog;",
        )
        .await;
    assert_eq!(court.judge("SELECT id FROM t").await.share, Batch);
    let verdict = court.judge("SELECT id FROM t WHERE id = 1").await;
    assert_eq!(verdict.reason, "operator early.= is volatile");
    let verdict = court.judge("SELECT quote_ident('a'), 'b'::text").await;
    assert_eq!(verdict.reason, "function early.quote_ident() is volatile");
    let verdict = court.judge("SELECT 'b'::text").await;
    assert_eq!(verdict.reason, "type early.text is a domain");
    assert_eq!(court.judge("INSERT INTO serial (kind) VALUES ('sad')").await.share, Write);
}

#[tokio::test]
async fn verdicts_are_kept_until_definitions_change() {
    let court = Court::open().await;
    let text = "SELECT steady(1)";
    let began = Instant::now();
    // On a machine that is very busy it may not be kept so long.
    let in_time = |began: Instant| began.elapsed() < KEPT_FOR;
    assert_eq!(court.judge(text).await.share, Batch);
    court.server.run("ALTER FUNCTION app.steady(int) VOLATILE").await;
    let kept = court.judge(text).await;
    assert!(kept.share == Batch || !in_time(began), "{kept:?}");
    court.judges.forget("app");
    assert_eq!(court.judge(text).await.reason, "function app.steady() is volatile");

    // Another name for the same database.
    let began = Instant::now();
    court.server.run("ALTER FUNCTION app.steady(int) STABLE").await;
    let mut config = court.config();
    config.database = "alias".to_owned();
    let kept = court.judges.judge(&config, None, text.as_bytes()).await.expect("verdict");
    assert!(kept.share == Alone || !in_time(began), "{kept:?}");
    assert_eq!(court.judges.forget("alias"), ["app"]);
    assert_eq!(court.judge(text).await.share, Batch);

    // A connection that was closed while nobody looked is made anew.
    let kill = "SELECT bool_and(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity \
                WHERE usename = 'scram'";
    assert_eq!(court.server.value(kill).await, "t");
    assert_eq!(court.judge("SELECT fixed(1)").await.share, Batch);
}

#[tokio::test]
async fn who_proved_a_password_here_is_judged_with_that_proof() {
    let court = Court::open().await;
    let stored = "SELECT rolpassword FROM pg_authid WHERE rolname = 'scram'";
    let stored = Secret::parse(&court.server.value(stored).await).expect("a secret");
    let Secret::Scram(verifier) = &stored else { panic!("{stored:?} is no verifier") };
    let keys = ScramKeys::derive("pencil", &verifier.salt, verifier.iterations);
    let mut config = court.config();
    config.upstream.password = Some(stored.clone());
    let text = b"SELECT id FROM t";
    let why = court.judges.judge(&config, None, text).await.expect_err("a verifier only");
    assert!(why.contains("cannot log in"), "{why}");
    let judges = judges();
    let proven = Some(Credential::Keys(keys));
    let verdict = judges.judge(&config, proven.clone(), text).await.expect("verdict");
    assert_eq!(verdict.share, Batch);
    // Who was refused does not try again at once.
    let again = court.judges.judge(&config, proven, text).await.expect_err("a pause");
    assert_eq!(again, why);
}

/// Says that it is PostgreSQL 9.6, and nothing else.
#[tokio::test]
async fn a_server_of_another_time_gives_an_error_and_no_verdict() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let port = listener.local_addr().expect("address").port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut startup = [0; 1024];
            let _ = socket.read(&mut startup).await;
            let mut out = Vec::new();
            wire::pg::backend::put_auth_ok(&mut out);
            wire::pg::backend::put_parameter_status(&mut out, "server_version", "9.6.24");
            wire::pg::backend::put_ready(&mut out, wire::pg::backend::TxStatus::Idle);
            let _ = socket.write_all(&out).await;
        }
    });
    let config = super::server::pool(upstream(port));
    let judges = judges();
    let why = judges.judge(&config, None, b"SELECT 1").await.expect_err("too old");
    let expected =
        format!("the server at 127.0.0.1:{port} is \"9.6.24\", not PostgreSQL 10 or later");
    assert_eq!(why, expected);
    // What the parser knows by itself needs no server.
    let verdict = judges.judge(&config, None, b"SHOW work_mem").await.expect("verdict");
    assert_eq!(verdict.share, Alone);
}

#[tokio::test]
async fn a_volatile_cast_that_happens_unasked_may_be_anywhere() {
    let court = Court::open().await;
    let function = "CREATE FUNCTION app.number(app.pair) RETURNS int LANGUAGE sql AS 'SELECT 1'";
    court.server.run(function).await;
    let cast = "CREATE CAST (app.pair AS int) WITH FUNCTION app.number(app.pair)";
    for (context, read, write) in
        [("", Batch, Write), (" AS ASSIGNMENT", Batch, Alone), (" AS IMPLICIT", Alone, Alone)]
    {
        court.server.run(&format!("{cast}{context}")).await;
        court.judges.forget("app");
        assert_eq!(court.judge("SELECT id FROM t").await.share, read, "{context}");
        assert_eq!(court.judge("DELETE FROM t").await.share, write, "{context}");
        court.server.run("DROP CAST (app.pair AS int)").await;
    }
}

#[tokio::test]
async fn a_definition_that_is_being_changed_is_not_waited_for() {
    let court = Court::open().await;
    let changing = court.admin().await;
    changing.batch_execute("BEGIN; ALTER TABLE t ADD COLUMN more int").await.expect("alter");
    let text = b"SELECT id FROM plain";
    let why = court.judges.judge(&court.config(), None, text).await.expect_err("a lock");
    assert!(why.contains("lock timeout"), "{why}");
    assert_eq!(court.judge("SELECT now()").await.share, Batch);
    changing.batch_execute("ROLLBACK").await.expect("rollback");
    assert_eq!(court.judge("SELECT id FROM plain").await.share, Batch);
}

/// Scripts of PostgreSQL's regression tests that make functions, types, operators and views of
/// their own.
const SCRIPTS: [&str; 8] = [
    "aggregates",
    "create_view",
    "enum",
    "expressions",
    "polymorphism",
    "rangefuncs",
    "rowtypes",
    "subselect",
];

/// Functions that PostgreSQL's own analysis of a view finds, as it stores it, and that are volatile.
const VOLATILE_IN_VIEW: &str = r"
SELECT coalesce(string_agg(DISTINCT p.proname, ' '), '')
FROM pg_rewrite w,
  regexp_matches(ev_action::text, ':(?:op|agg|win)?(?:func|fno)id (\d+)', 'g') m
JOIN pg_proc p ON p.oid = m[1]::oid
WHERE w.ev_class = 'judged'::regclass AND p.provolatile = 'v'";

/// PostgreSQL knows which functions a statement means. What was found harmless by names must be
/// harmless by those. The statements are judged one by one while their script runs, so that what
/// they name is there.
#[tokio::test]
async fn postgresql_itself_finds_nothing_volatile_in_a_batch() {
    let court = Court::open().await;
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../sql/tests/corpus/regress");
    let mut checked = 0;
    for name in SCRIPTS {
        let script = std::fs::read_to_string(format!("{corpus}/{name}.sql")).expect(name);
        let (running, checking) = (court.admin().await, court.admin().await);
        for statement in script.split(";\n") {
            court.judges.forget("app");
            if court.judge(statement).await.share < Batch {
                // Not all of the script was taken over, so some of it fails.
                let _ = running.batch_execute(statement).await;
                continue;
            }
            let made = format!("BEGIN; CREATE TEMP VIEW judged AS {statement}");
            if checking.batch_execute(&made).await.is_ok() {
                let row = checking.query_one(VOLATILE_IN_VIEW, &[]).await.expect("functions");
                assert_eq!(row.get::<_, &str>(0), "", "{name}: {statement}");
                checked += 1;
            }
            checking.batch_execute("ROLLBACK").await.expect("rollback");
        }
    }
    assert!(checked > 300, "{checked} statements");
}
