//! Which answers may be kept, and what they depend on, by the catalogues of a real PostgreSQL. The
//! traps are those of the read cache's design: C6 identities, C7 partitions and views, C9 what is
//! no ordinary table, C10 what is not immutable, C11 settings, C15 rights, C16 locks and writes.

use std::sync::Arc;

use cache::recipe::{Form, Precise};
use sql::Source;

use super::server::Server;
use crate::config::{CacheMode, PoolConfig};
use crate::control::dial::Dialer;
use crate::control::judge::Judges;
use crate::route::Cacheable;

const DATABASE: &str = r#"
CREATE SCHEMA app; CREATE SCHEMA other;
GRANT USAGE ON SCHEMA app, other TO PUBLIC;
ALTER ROLE scram SET search_path = app, public;
SET search_path = app;

CREATE TABLE orders (id int PRIMARY KEY, customer_id bigint, note text, total numeric(10, 2),
  paid bool, token uuid, day date, at timestamp, seen timestamptz, code char(4), short varchar(8));
CREATE TABLE items (order_id int, line smallint, name text, price float8, PRIMARY KEY (order_id, line));
CREATE TABLE bare (id int, name text);
CREATE TABLE late_key (id int PRIMARY KEY DEFERRABLE);
CREATE TABLE whole (id int, name text); ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE indexed (id int NOT NULL UNIQUE, name text);
ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_id_key;
CREATE TABLE silent (id int PRIMARY KEY); ALTER TABLE silent REPLICA IDENTITY NOTHING;
CREATE UNLOGGED TABLE fleeting (id int PRIMARY KEY);
CREATE TABLE secured (id int PRIMARY KEY); ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE SEQUENCE numbers;
CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM orders;

CREATE TABLE parts (id int, region int, name text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2) PARTITION BY RANGE (id);
CREATE TABLE parts_2a PARTITION OF parts_2 FOR VALUES FROM (0) TO (10);
CREATE TABLE mixed (id int, region int) PARTITION BY LIST (region);
CREATE TABLE mixed_1 PARTITION OF mixed (PRIMARY KEY (id)) FOR VALUES IN (1);
CREATE TABLE mixed_2 PARTITION OF mixed FOR VALUES IN (2);
CREATE TABLE empty (id int) PARTITION BY RANGE (id);
CREATE TABLE parent (id int PRIMARY KEY, name text);
CREATE TABLE child (more text, PRIMARY KEY (id)) INHERITS (parent);

CREATE TABLE odd (id int PRIMARY KEY, class regclass, price money, clock timetz, doc xml,
  twice int GENERATED ALWAYS AS (id * 2) STORED, folded text COLLATE "C", ratio float8, hour time,
  tags text[], span tsrange, data jsonb);
CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE blurred (id int PRIMARY KEY, name text COLLATE blind);
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE DOMAIN small AS int;
CREATE TYPE pair AS (a int, b int);
CREATE TABLE typed (id int PRIMARY KEY, mood mood, small small, pair pair);

CREATE FUNCTION fixed(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION fixed_with(int DEFAULT 1) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION steady(int) RETURNS int STABLE LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION dated(int, date DEFAULT current_date) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION roll() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION label(orders) RETURNS text STABLE LANGUAGE sql AS 'SELECT $1.note';
CREATE FUNCTION calm_label(orders) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1.note';
CREATE FUNCTION add_up(int, int) RETURNS int STABLE LANGUAGE sql AS 'SELECT $1 + $2';
CREATE AGGREGATE restless(int) (SFUNC = add_up, STYPE = int, INITCOND = '0');
CREATE FUNCTION alike(text, text) RETURNS bool STABLE LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR ~=~ (LEFTARG = text, RIGHTARG = text, FUNCTION = alike);
CREATE FUNCTION mine(tableoid oid) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';

CREATE VIEW cheap AS SELECT id, customer_id FROM orders WHERE total < 10;
CREATE VIEW nested AS SELECT c.id, i.name FROM cheap c JOIN items i ON i.order_id = c.id;
CREATE VIEW guarded WITH (security_barrier) AS SELECT id FROM orders;
CREATE VIEW recent AS SELECT id FROM orders WHERE day > current_date - 7;
CREATE VIEW since_then AS SELECT id FROM orders WHERE day > '2024-01-01';
CREATE VIEW mine AS SELECT id FROM orders WHERE note = current_user;
CREATE VIEW stepping AS SELECT steady(id) FROM orders;
CREATE VIEW over_secured AS SELECT id FROM secured;
CREATE VIEW over_counted AS SELECT * FROM counted;
"#;

/// Known of PostgreSQL 15 and later.
const NEWER: &str = "CREATE VIEW app.asking WITH (security_invoker) AS SELECT id FROM app.orders;
    CREATE VIEW app.not_asking WITH (security_invoker = false) AS SELECT id FROM app.orders;";

pub struct Court {
    pub server: Server,
    pub judges: Judges,
}

impl Court {
    pub async fn open() -> Court {
        let server = Server::start().await;
        server.run(DATABASE).await;
        server.run(NEWER).await;
        Court { server, judges: Judges::new(Arc::new(Dialer::default()), Arc::default()) }
    }

    fn config(&self) -> PoolConfig {
        PoolConfig { cache: CacheMode::Manual, ..self.server.config("scram") }
    }

    pub async fn judge(&self, text: &str) -> Result<Arc<Cacheable>, String> {
        let verdict = self.judges.judge(&self.config(), None, text.as_bytes()).await;
        verdict.unwrap_or_else(|e| panic!("{text}: {e}")).cache
    }

    pub async fn admin(&self) -> tokio_postgres::Client {
        let admin = self.server.cluster.admin("postgres");
        let (client, connection) = admin.connect(tokio_postgres::NoTls).await.expect("connect");
        tokio::spawn(connection);
        client.batch_execute("SET search_path = app, public").await.expect("search_path");
        client
    }

    /// The lines of the verdict without `table `, or the reason behind `no: `.
    async fn told(&self, text: &str) -> String {
        match self.judge(text).await {
            Ok(cacheable) => {
                let lines: Vec<&str> = cacheable
                    .lines
                    .iter()
                    .map(|line| line.strip_prefix("table ").unwrap_or(line))
                    .collect();
                lines.join("; ") + if cacheable.settings { " (settings)" } else { "" }
            }
            Err(reason) => {
                assert!(!reason.is_empty(), "{text}: no reason");
                format!("no: {reason}")
            }
        }
    }

    async fn expect(&self, cases: &[(&str, &str)]) {
        let mut wrong = Vec::new();
        for (text, expected) in cases {
            let told = self.told(text).await;
            let right = match expected.strip_suffix("...") {
                Some(start) => told.starts_with(start),
                None => told == *expected,
            };
            if !right {
                wrong.push(format!("{text}\n    expected {expected}\n    told     {told}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[tokio::test]
async fn rows_are_told_by_what_columns_are_compared_with() {
    let court = Court::open().await;
    court
        .expect(&[
            ("SELECT id FROM orders WHERE id = 7", "app.orders: rows where id = $1"),
            ("SELECT id FROM orders WHERE id = $1", "app.orders: rows where id = $1"),
            ("SELECT id FROM app.orders o WHERE o.customer_id = 5 AND note = 'x' LIMIT 3", "app.orders: rows where customer_id = $1 and note = $2"),
            ("SELECT id FROM orders WHERE id IN (1, 2, 3)", "app.orders: rows where id in ($1, $2, $3)"),
            ("SELECT id FROM orders WHERE id = ANY ($1)", "app.orders: rows where id = any ($1)"),
            ("SELECT id FROM orders WHERE id = ANY ('{1,2}')", "app.orders: rows where id = any (?)"),
            ("SELECT id FROM orders WHERE id BETWEEN 5 AND 10", "app.orders: rows where id >= $1 and id <= $2"),
            ("SELECT sum(total) FROM orders WHERE id > $1", "app.orders: rows where id > $1"),
            ("SELECT id FROM orders WHERE id > 5 AND customer_id = 3", "app.orders: rows where customer_id = $2"),
            ("SELECT id FROM orders WHERE token = '00000000-0000-0000-0000-000000000001'", "app.orders: rows where token = $1"),
            ("SELECT id FROM orders WHERE total = 5 AND code = 'a' AND short = $$x$$", "no: ..."),
            ("SELECT id FROM orders WHERE total = 5 AND code = 'a' AND short = 'b' AND customer_id = 1 AND note = 'c'", "app.orders: rows where code = $2 and customer_id = $4 and note = $5 and short = $3"),
            ("SELECT id FROM orders WHERE day >= '2024-01-01'", "app.orders: rows where day >= $1 (settings)"),
            ("SELECT id FROM orders WHERE paid = $1", "app.orders: rows where paid = $1"),
            ("SELECT o.id FROM orders o JOIN items i ON i.order_id = o.id WHERE o.id = 4", "app.items: rows where order_id = $1; app.orders: rows where id = $1"),
            ("SELECT id FROM items JOIN orders o ON o.id = order_id JOIN parts USING (id) WHERE id = 4", "app.items: rows where order_id = $1; app.orders: rows where id = $1; app.parts: rows where id = $1"),
            ("SELECT line FROM orders JOIN parts USING (id) JOIN items ON order_id = id WHERE id = 4", "app.items: rows where order_id = $1; app.orders: rows where id = $1; app.parts: rows where id = $1"),
            ("SELECT o.id FROM orders o LEFT JOIN items ON order_id = id AND line = 1 WHERE customer_id = 4", "app.items: rows where line = $1; app.orders: rows where customer_id = $2"),
            ("SELECT id FROM orders WHERE id = 1 UNION SELECT order_id FROM items", "app.items: any row; app.orders: rows where id = $1"),
            ("SELECT a.id FROM orders a, orders b WHERE a.id = 1 AND b.id = 2", "app.orders: rows where id = $1; app.orders: rows where id = $2"),
            ("SELECT a.id FROM orders a, orders b WHERE a.id = 1", "app.orders: any row"),
            ("SELECT count(*) FROM orders", "app.orders: any row"),
            ("SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE id = 5)", "app.items: any row; app.orders: any row"),
            ("SELECT id FROM orders WHERE lower(note) = 'x'", "app.orders: any row"),
            ("WITH w AS (SELECT * FROM items WHERE order_id = 3) SELECT count(*) FROM w", "app.items: rows where order_id = $1"),
        ])
        .await;
}

#[tokio::test]
async fn a_comparison_that_is_not_the_column_s_own_tells_no_rows() {
    let court = Court::open().await;
    court
        .expect(&[
            ("SELECT id FROM orders WHERE id = 5.0", "app.orders: any row"),
            ("SELECT id FROM orders WHERE id = $1::float8", "app.orders: any row (settings)"),
            ("SELECT id FROM orders WHERE id = $1::numeric", "app.orders: any row"),
            ("SELECT id FROM orders WHERE total = $1::int4", "app.orders: rows where total = $1"),
            (
                "SELECT id FROM orders WHERE total = $1::int4 AND $1::numeric > 1",
                "app.orders: any row",
            ),
            ("SELECT id FROM orders WHERE note > 'a'", "app.orders: any row"),
            ("SELECT id FROM orders WHERE total < 5", "app.orders: any row"),
            ("SELECT id FROM items WHERE price = 5", "no: PostgreSQL does not prepare it..."),
            ("SELECT line FROM items WHERE price = 5", "app.items: any row"),
            ("SELECT id FROM blurred WHERE name = 'x'", "app.blurred: any row"),
            ("SELECT id FROM odd WHERE twice = 4", "app.odd: any row"),
            ("SELECT id FROM odd WHERE folded = 'x'", "app.odd: rows where folded = $1"),
            ("SELECT id FROM typed WHERE small = 5", "app.typed: any row"),
            ("SELECT id FROM typed WHERE mood = 'sad'", "app.typed: any row"),
            (
                "SELECT o.id FROM orders o, items i WHERE o.total = i.line AND i.line = 1",
                "app.items: rows where line = $1; app.orders: any row",
            ),
            (
                "SELECT o.id FROM orders o, items i WHERE o.note = i.name AND i.name = 'x'",
                "app.items: rows where name = $1; app.orders: rows where note = $1",
            ),
            (
                "SELECT o.id FROM orders o, items i WHERE o.code = i.name AND i.name = 'x'",
                "app.items: rows where name = $1; app.orders: any row",
            ),
        ])
        .await;
    court
        .server
        .run(
            "CREATE FUNCTION app.eq(int, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT true';
             CREATE OPERATOR app.= (LEFTARG = int, RIGHTARG = text, FUNCTION = app.eq);",
        )
        .await;
    court.judges.forget("app");
    court.expect(&[("SELECT id FROM orders WHERE id = 7", "app.orders: any row")]).await;
}

#[tokio::test]
async fn c6_c9_only_lasting_tables_whose_changes_are_told() {
    let court = Court::open().await;
    let bare = |name: &str| {
        format!(
            "no: table app.{name} has no primary key and no other replica identity: \
             ALTER TABLE \"app\".\"{name}\" REPLICA IDENTITY FULL;"
        )
    };
    court
        .expect(&[
            ("SELECT * FROM bare", &bare("bare")),
            ("SELECT * FROM silent", &bare("silent")),
            ("SELECT * FROM late_key", &bare("late_key")),
            ("SELECT o.id FROM orders o, bare", &bare("bare")),
            ("SELECT * FROM whole WHERE id = 1", "app.whole: rows where id = $1"),
            ("SELECT * FROM indexed", "app.indexed: any row"),
            (
                "SELECT * FROM fleeting",
                "no: table app.fleeting is unlogged: \
                 ALTER TABLE \"app\".\"fleeting\" SET LOGGED;",
            ),
            ("SELECT * FROM counted", "no: app.counted is a materialised view"),
            (
                "SELECT * FROM over_counted",
                "no: view app.over_counted: app.counted is a materialised view",
            ),
            ("SELECT last_value FROM numbers", "no: app.numbers is a sequence"),
            ("SELECT relname FROM pg_catalog.pg_class", "no: table pg_class is a system catalogue"),
            ("SELECT nspname FROM pg_namespace", "no: table pg_namespace is a system catalogue"),
            ("SELECT 1", "no: it reads no table"),
            ("SELECT * FROM generate_series(1, 3)", "no: it reads no table"),
            ("SELECT * FROM nowhere", "no: relation \"nowhere\" is not known"),
        ])
        .await;
}

#[tokio::test]
async fn c7_partitions_children_and_views_stand_for_their_tables() {
    let court = Court::open().await;
    court
        .expect(&[
            ("SELECT name FROM parts WHERE id = 3", "app.parts: rows where id = $1"),
            (
                "SELECT id FROM mixed",
                "no: table app.mixed_2 has no primary key and no other replica identity: \
                 ALTER TABLE \"app\".\"mixed_2\" REPLICA IDENTITY FULL;",
            ),
            ("SELECT id FROM mixed_1", "app.mixed_1: any row"),
            ("SELECT id FROM empty", "no: table app.empty has no partitions"),
            ("SELECT id FROM parent WHERE id = 3", "app.parent: rows where id = $1"),
            ("SELECT id FROM cheap WHERE id = 3", "app.orders: any row"),
            ("SELECT id FROM nested", "app.items: any row; app.orders: any row"),
            (
                "SELECT c.id FROM cheap c JOIN items i ON i.order_id = c.id AND i.order_id = 5",
                "app.items: rows where order_id = $1; app.orders: any row",
            ),
            ("SELECT id FROM guarded", "app.orders: any row"),
            ("SELECT id FROM since_then", "app.orders: any row (settings)"),
            ("SELECT id FROM not_asking", "app.orders: any row"),
        ])
        .await;
    let names = |cacheable: &Cacheable| cacheable.recipe.tables.len();
    let parts = court.judge("SELECT name FROM parts WHERE id = 3").await.expect("parts");
    assert_eq!(names(&parts), 2, "{parts:?}");
    for table in &parts.recipe.tables {
        let Some(Precise::Equal { signature, values }) = &table.restriction else {
            panic!("{table:?}");
        };
        assert_eq!((signature.table, signature.form), (table.oid, Form::Equal));
        assert_eq!(values, &[[Source::Literal(0)]]);
    }
    let parent = court.judge("SELECT id FROM parent WHERE id = 3").await.expect("parent");
    assert_eq!(names(&parent), 2, "{parent:?}");
    // One of them is named itself as well, and any of its rows can matter.
    let text = "SELECT p.id FROM parts p, parts_1 o WHERE p.id = 3";
    let both = court.judge(text).await.expect("both");
    assert_eq!(names(&both), 2, "{both:?}");
}

#[tokio::test]
async fn c10_what_is_not_immutable_is_refused_by_name() {
    let court = Court::open().await;
    court
        .expect(&[
            ("SELECT fixed(id), fixed_with(), fixed_with(2) FROM orders", "app.orders: any row"),
            ("SELECT steady(id) FROM orders", "no: function app.steady() is stable"),
            ("SELECT id FROM orders WHERE id = steady(1)", "no: function app.steady() is stable"),
            ("SELECT id FROM orders ORDER BY steady(id)", "no: function app.steady() is stable"),
            ("SELECT dated(id) FROM orders", "no: function app.dated() is stable"),
            ("SELECT roll(), id FROM orders", "no: function app.roll() is volatile"),
            ("SELECT random(), id FROM orders", "no: function random() is volatile"),
            ("SELECT now(), id FROM orders", "no: function now() is stable"),
            ("SELECT id FROM orders WHERE seen > now() - interval '1 day'", "no: function now() is stable"),
            ("SELECT id FROM orders WHERE day = CURRENT_DATE", "no: CURRENT_DATE tells the time"),
            ("SELECT current_timestamp(3), id FROM orders", "no: CURRENT_TIMESTAMP tells the time"),
            ("SELECT id FROM orders WHERE note = CURRENT_USER", "no: CURRENT_USER tells who asks"),
            ("SELECT id FROM orders WHERE note = current_setting('a.b')", "no: function current_setting() is stable"),
            ("SELECT id FROM recent", "no: view app.recent: CURRENT_DATE tells the time"),
            ("SELECT id FROM mine", "no: view app.mine: CURRENT_USER tells who asks"),
            ("SELECT * FROM stepping", "no: function app.steady() is stable"),
            ("SELECT restless(id) FROM orders", "no: function app.restless() is stable"),
            ("SELECT id FROM orders WHERE note ~=~ 'x'", "no: operator app.~=~ is stable"),
            ("SELECT o.label FROM orders o", "no: column label may be a call of function app.label(), which is stable"),
            ("SELECT o.calm_label FROM orders o", "app.orders: any row (settings)"),
            ("SELECT to_char(at, 'YYYY') FROM orders", "no: function to_char() is stable"),
            ("SELECT age(at) FROM orders", "no: function age() is stable"),
            ("SELECT id FROM orders WHERE to_tsvector(note) @@ to_tsquery('x')", "no: function to_tsquery() is stable"),
            ("SELECT id FROM orders TABLESAMPLE bernoulli (10)", "no: ..."),
            ("SELECT ctid FROM orders", "no: ctid changes without a change of its row"),
            ("SELECT id FROM orders WHERE xmin::text = '5'", "no: xmin changes without a change of its row"),
            ("SELECT pg_typeof(id) FROM orders", "no: function pg_typeof() is stable"),
            ("SELECT txid_current(), id FROM orders", "no: function txid_current() numbers its transaction"),
            ("SELECT count(*), max(id), min(note), avg(total), bool_and(paid) FROM orders", "app.orders: any row"),
            ("SELECT lower(note) || '!', length(note), id + 1, coalesce(note, 'x') FROM orders WHERE note LIKE 'a%'", "app.orders: any row"),
            ("SELECT row_number() OVER (ORDER BY id) FROM orders", "app.orders: any row"),
        ])
        .await;
}

#[tokio::test]
async fn c10_dates_may_be_words_and_texts_may_be_dates() {
    let court = Court::open().await;
    court
        .expect(&[
            (
                "SELECT note::date FROM orders",
                "no: a cast to date of what may be a text, such as 'now'",
            ),
            (
                "SELECT cast(note AS timestamp) FROM orders",
                "no: a cast to timestamp of what may be a text...",
            ),
            ("SELECT date(note) FROM orders", "no: a cast to date of what may be a text..."),
            (
                "SELECT id FROM orders WHERE day = (note || '')::date",
                "no: a cast to date of what...",
            ),
            (
                "SELECT x::date FROM (SELECT note AS x FROM orders) s",
                "no: a cast to date of what...",
            ),
            (
                "SELECT seen::date FROM (SELECT seen::text FROM orders) s",
                "no: a cast to date of what...",
            ),
            ("SELECT max(note)::date FROM orders", "no: a cast to date of what may be a text..."),
            (
                "SELECT string_to_array(note, ',')::date[] FROM orders",
                "no: a cast to date of what...",
            ),
            ("SELECT seen::date, date(at) FROM orders", "app.orders: any row (settings)"),
            ("SELECT date_trunc('day', seen)::date FROM orders", "app.orders: any row (settings)"),
            (
                "SELECT id FROM orders WHERE day = $1::date",
                "app.orders: rows where day = $1 (settings)",
            ),
            (
                "SELECT id FROM orders WHERE day = '2024-01-01'::date",
                "app.orders: rows where day = ? (settings)",
            ),
            ("SELECT note::regclass FROM orders", "no: it has a value of type regclass, ..."),
            (
                "SELECT id FROM odd WHERE class = 'orders'",
                "no: it has a value of type regclass, ...",
            ),
            ("SELECT class FROM odd", "no: it has a value of type regclass, ..."),
            ("SELECT * FROM odd", "no: it has a value of type ..."),
            (
                "SELECT clock FROM odd",
                "no: it has a value of type timetz, which may depend on the date",
            ),
            ("SELECT hour AT TIME ZONE 'UTC' FROM odd", "no: function timezone() is stable"),
            ("SELECT at AT TIME ZONE 'UTC' FROM orders", "app.orders: any row (settings)"),
            (
                "SELECT price FROM odd",
                "no: it has a value of type money, which is written by lc_monetary",
            ),
            ("SELECT doc FROM odd", "no: it has a value of type xml, which is read by xmloption"),
            (
                "SELECT data->>'a', tags[1], data @> '{}' FROM odd WHERE id = 1",
                "app.odd: rows where id = $1",
            ),
            ("SELECT (data->>'a')::int FROM odd", "app.odd: any row"),
            ("SELECT (data->>'a')::timestamptz FROM odd", "no: a cast to timestamptz of what..."),
        ])
        .await;
    let slots = |text: &'static str| {
        let court = &court;
        async move {
            let cacheable = court.judge(text).await.unwrap_or_else(|e| panic!("{text}: {e}"));
            let slots = cacheable.slots.iter();
            slots.map(|slot| (slot.source, slot.type_oid, slot.timely)).collect::<Vec<_>>()
        }
    };
    use Source::{Literal, Parameter};
    assert_eq!(
        slots("SELECT id FROM orders WHERE day > 'now' AND id = 3").await,
        [(Literal(0), 1082, true), (Literal(1), 23, false)]
    );
    assert_eq!(
        slots("SELECT id FROM orders WHERE day = ANY ($1) AND note = $2").await,
        [(Parameter(1), 1182, true), (Parameter(2), 25, false)]
    );
    // Constants that stay in the text have types as well.
    assert_eq!(
        slots("SELECT date_trunc('day', timestamp '2024-01-01 10:00') FROM orders WHERE note LIKE 'a'").await,
        [(Literal(0), 25, false), (Literal(1), 1114, true), (Literal(2), 25, false)]
    );
    assert_eq!(
        slots("SELECT id FROM orders WHERE $1 < coalesce(seen, 'yesterday') AND '[now,)'::tsrange @> at").await,
        [(Parameter(1), 1184, true), (Literal(0), 1184, true), (Literal(1), 3908, true)]
    );
    // Functions that take anything take these for texts.
    assert_eq!(
        slots(
            "SELECT concat('now', note, 'x') FROM orders WHERE day = '2024-01-01' AND note <> 'y'"
        )
        .await,
        [
            (Literal(0), 25, false),
            (Literal(1), 25, false),
            (Literal(2), 1082, true),
            (Literal(3), 25, false)
        ]
    );
    // As parameters PostgreSQL takes them for two things in GROUP BY, and does not say what they are.
    assert_eq!(
        slots("SELECT note || 'x' FROM orders GROUP BY note || 'x'").await,
        [(Literal(0), 25, false), (Literal(1), 25, false)]
    );
    assert_eq!(
        slots("SELECT note || 'x' FROM orders WHERE seen > 'today' GROUP BY note || 'x'").await,
        [(Literal(0), 25, false), (Literal(1), 1184, true), (Literal(2), 25, false)]
    );
    court
        .expect(&[
            ("SELECT note || 'x' FROM orders GROUP BY note || 'x'", "app.orders: any row"),
            (
                "SELECT coalesce(seen, 'now') FROM orders GROUP BY coalesce(seen, 'now')",
                "app.orders: any row; Only where no constant in quotes can be a word such as 'now' \
                 (settings)",
            ),
        ])
        .await;
    assert_eq!(
        slots("SELECT coalesce(seen, 'now') FROM orders GROUP BY coalesce(seen, 'now')").await,
        [(Literal(0), 1184, true), (Literal(1), 1184, true)]
    );
}

#[tokio::test]
async fn c11_settings_count_where_something_depends_on_them() {
    let court = Court::open().await;
    court
        .expect(&[
            ("SELECT id, note, total FROM orders WHERE id = 1", "app.orders: rows where id = $1"),
            ("SELECT seen FROM orders WHERE id = 1", "app.orders: rows where id = $1 (settings)"),
            ("SELECT * FROM orders WHERE id = 1", "app.orders: rows where id = $1 (settings)"),
            ("SELECT price FROM items", "app.items: any row (settings)"),
            ("SELECT price::text FROM items", "app.items: any row (settings)"),
            ("SELECT 'a' || price FROM items", "app.items: any row (settings)"),
            ("SELECT concat(seen) FROM orders", "app.orders: any row (settings)"),
            ("SELECT row_to_json(o) FROM orders o", "app.orders: any row (settings)"),
            ("SELECT o FROM orders o", "app.orders: any row (settings)"),
            ("SELECT row(id, seen) FROM orders", "app.orders: any row (settings)"),
            ("SELECT id::text FROM orders", "app.orders: any row"),
            ("SELECT note || id FROM orders", "app.orders: any row"),
            ("SELECT id FROM orders WHERE seen > at", "app.orders: any row (settings)"),
            (
                "SELECT count(*) FROM orders WHERE date_part('year', seen) = 2024",
                "app.orders: any row (settings)",
            ),
            ("SELECT array_agg(price) FROM items", "app.items: any row (settings)"),
            ("SELECT id FROM odd WHERE span @> $1::timestamp", "app.odd: any row (settings)"),
        ])
        .await;
}

#[tokio::test]
async fn c15_c16_rights_locks_and_writes_are_for_postgresql() {
    let court = Court::open().await;
    court
        .expect(&[
            ("SELECT * FROM secured", "no: table app.secured has row security"),
            (
                "SELECT * FROM over_secured",
                "no: view app.over_secured: table app.secured has row security",
            ),
            ("SELECT id FROM asking", "no: view app.asking reads with the rights of who asks..."),
            ("SELECT id FROM orders FOR UPDATE", "no: FOR UPDATE or FOR SHARE locks rows"),
            (
                "WITH d AS (DELETE FROM orders RETURNING id) SELECT id FROM d",
                "no: WITH changes data",
            ),
            (
                "SELECT id FROM orders WHERE pg_advisory_lock(id) IS NULL",
                "no: function pg_advisory_lock() locks...",
            ),
            ("SELECT * INTO x FROM orders", "no: INTO makes a table"),
            ("INSERT INTO orders (id) VALUES (1)", "no: it writes"),
            ("SELECT 1; SELECT 2", "no: it is 2 statements"),
            ("SHOW work_mem", "no: only SELECT, ..."),
        ])
        .await;
}
