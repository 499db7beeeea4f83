//! tokio-postgres in a pool of transactions: everything an application does, on shared servers.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant, SystemTime};

use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Error, NoTls, SimpleQueryMessage};

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, Config, Gateway};

/// Far beyond the pool's size, so that every statement may meet another server.
const CONNECTIONS: usize = 50;

/// Bytes of a value larger than any buffer on the way.
const LARGE: usize = 5_000_000;

/// How to connect to a gateway in transaction mode.
struct Door {
    config: tokio_postgres::Config,
}

impl Door {
    async fn connect(&self) -> Client {
        Door::connect_with(&self.config).await.expect("a connection")
    }

    async fn connect_with(config: &tokio_postgres::Config) -> Result<Client, Error> {
        let (client, connection) = config.connect(NoTls).await?;
        // Ends when the client is dropped; its error is every pending statement's error too.
        tokio::spawn(connection);
        Ok(client)
    }
}

/// Runs `body` with a gateway of its own, bounded in time.
#[track_caller]
fn with_door<F: Future<Output = ()>>(body: impl FnOnce(Door) -> F) {
    const LIMIT: Duration = Duration::from_secs(60);
    let database = cluster().database();
    let gateway = Gateway::start(Config::of(&database).set("pool.wait_timeout", "30s"));
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(gateway.port).dbname(&database.name);
    config.user(APP).password(APP_PASSWORD);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let door = Door { config };
    runtime.block_on(async {
        tokio::time::timeout(LIMIT, body(door)).await.expect("the test to end in time");
    });
    // Connections end with their tasks, before the gateway is asked to.
    drop(runtime);
    drop(gateway);
}

async fn one_text(client: &Client, sql: &str, values: &[&(dyn ToSql + Sync)]) -> String {
    client.query_one(sql, values).await.expect(sql).get(0)
}

fn code(error: &Error) -> Option<&SqlState> {
    error.code()
}

#[test]
fn wrong_password_is_refused() {
    with_door(|door| async move {
        let mut config = door.config.clone();
        config.password("wrong");
        let Err(error) = Door::connect_with(&config).await else {
            panic!("a wrong password was taken");
        };
        assert_eq!(code(&error), Some(&SqlState::INVALID_PASSWORD), "{error}");
    });
}

#[test]
fn simple_and_prepared_statements_agree() {
    with_door(|door| async move {
        let client = door.connect().await;
        let messages = client.simple_query("select 1; select 'two', null").await.expect("rows");
        let rows: Vec<Vec<Option<String>>> = messages
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    Some((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect())
                }
                _ => None,
            })
            .collect();
        assert_eq!(rows, [vec![Some("1".into())], vec![Some("two".into()), None]]);
        let statement = client.prepare("select $1::int * 2").await.expect("a statement");
        for i in 0..100i32 {
            let row = client.query_one(&statement, &[&i]).await.expect("a row");
            assert_eq!(row.get::<_, i32>(0), i * 2);
        }
    });
}

#[test]
fn prepared_statements_survive_a_change_of_servers() {
    with_door(|door| async move {
        let mut clients = Vec::new();
        for mark in 0..12i32 {
            let client = door.connect().await;
            let sql = format!("select $1::int + {mark}");
            let statement = client.prepare(&sql).await.expect("a statement");
            clients.push((client, statement, mark));
        }
        for turn in 0..20 {
            // A window of clients holds servers in transactions, so the servers rotate.
            for (client, statement, mark) in &clients[..4] {
                client.batch_execute("begin").await.expect("begin");
                let row = client.query_one(statement, &[&turn]).await.expect("a row");
                assert_eq!(row.get::<_, i32>(0), turn + mark);
            }
            for (client, ..) in &clients[..4] {
                client.batch_execute("commit").await.expect("commit");
            }
            clients.rotate_left(1);
        }
    });
}

#[test]
fn types_make_the_round_trip() {
    with_door(|door| async move {
        let client = door.connect().await;
        let kinds = "create table kinds(id int, big bigint, f float8, t text, b bytea, \
                     at timestamptz, a int[], ta text[], flag bool, n numeric, u uuid, j jsonb)";
        client.batch_execute(kinds).await.expect("a table");
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_709_251_199_123_456);
        let numbers = vec![Some(1), None, Some(-3)];
        let texts = vec!["x".to_owned(), "quo\"te, comma".to_owned(), String::new()];
        let text = "snow ☃ '\\\n";
        let insert = "insert into kinds values ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
                      $10::text::numeric, $11::text::uuid, $12::text::jsonb)";
        let (number, uuid) = ("-12345.6789000", "12345678-1234-5678-1234-567812345678");
        let json = r#"{"a": [1, null, "ä"]}"#;
        let values: [&(dyn ToSql + Sync); 12] = [
            &1,
            &i64::MIN,
            &0.1,
            &text,
            &&b"\x00\x01\xff"[..],
            &at,
            &numbers,
            &texts,
            &true,
            &number,
            &uuid,
            &json,
        ];
        client.execute(insert, &values).await.expect("a row");
        let none = None::<&str>;
        let nulls: [&(dyn ToSql + Sync); 12] = [
            &2,
            &None::<i64>,
            &None::<f64>,
            &none,
            &None::<&[u8]>,
            &None::<SystemTime>,
            &None::<Vec<i32>>,
            &None::<Vec<String>>,
            &None::<bool>,
            &none,
            &none,
            &none,
        ];
        client.execute(insert, &nulls).await.expect("a row of nulls");

        let select = "select id, big, f, t, b, at, a, ta, flag, n::text, u::text, j::text \
                      from kinds order by id";
        let rows = client.query(select, &[]).await.expect("rows");
        let row = &rows[0];
        assert_eq!(row.get::<_, i64>(1), i64::MIN);
        assert_eq!(row.get::<_, f64>(2), 0.1);
        assert_eq!(row.get::<_, &str>(3), text);
        assert_eq!(row.get::<_, &[u8]>(4), b"\x00\x01\xff");
        assert_eq!(row.get::<_, SystemTime>(5), at);
        assert_eq!(row.get::<_, Vec<Option<i32>>>(6), numbers);
        assert_eq!(row.get::<_, Vec<String>>(7), texts);
        assert!(row.get::<_, bool>(8));
        assert_eq!([row.get::<_, &str>(9), row.get(10), row.get(11)], [number, uuid, json]);
        assert_eq!(rows[1].get::<_, Option<i64>>(1), None);
        assert_eq!(rows[1].get::<_, Option<Vec<i32>>>(6), None);
        assert_eq!(rows[1].get::<_, Option<&str>>(11), None);
    });
}

#[test]
fn transactions_commit_roll_back_and_undo_to_savepoints() {
    with_door(|door| async move {
        let mut client = door.connect().await;
        client.batch_execute("create table kept(a int primary key)").await.expect("a table");
        let insert = "insert into kept values ($1)";
        let mut transaction = client.transaction().await.expect("begin");
        transaction.execute(insert, &[&1]).await.expect("a row");
        let savepoint = transaction.transaction().await.expect("savepoint");
        savepoint.execute(insert, &[&2]).await.expect("a row");
        let twice = savepoint.execute(insert, &[&1]).await.expect_err("a duplicate");
        assert_eq!(code(&twice), Some(&SqlState::UNIQUE_VIOLATION));
        savepoint.rollback().await.expect("rollback to savepoint");
        transaction.execute(insert, &[&3]).await.expect("a row");
        transaction.commit().await.expect("commit");
        let transaction = client.transaction().await.expect("begin");
        transaction.execute(insert, &[&4]).await.expect("a row");
        transaction.rollback().await.expect("rollback");
        let all = one_text(&client, "select array_agg(a order by a)::text from kept", &[]).await;
        assert_eq!(all, "{1,3}");
    });
}

#[test]
fn error_carries_its_fields_and_the_connection_lives_on() {
    with_door(|door| async move {
        let client = door.connect().await;
        let error = client.query("select 1 / $1::int", &[&0]).await.expect_err("an error");
        assert_eq!(code(&error), Some(&SqlState::DIVISION_BY_ZERO));
        let error = client.prepare("selec 1").await.expect_err("an error");
        assert_eq!(code(&error), Some(&SqlState::SYNTAX_ERROR));
        assert_eq!(one_text(&client, "select 'alive'", &[]).await, "alive");
    });
}

#[test]
fn binary_copy_carries_every_row_in_and_out() {
    use futures_util::TryStreamExt;
    const ROWS: i32 = 20_000;
    with_door(|door| async move {
        let client = door.connect().await;
        client.batch_execute("create table copied(a int, t text)").await.expect("a table");
        let sink = client.copy_in("copy copied from stdin (format binary)").await.expect("copy");
        let types = [Type::INT4, Type::TEXT];
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        for i in 0..ROWS {
            writer.as_mut().write(&[&i, &format!("line\t{i}")]).await.expect("a row");
        }
        assert_eq!(writer.finish().await.expect("the end"), ROWS as u64);

        let sql = "copy (select * from copied order by a) to stdout (format binary)";
        let stream = client.copy_out(sql).await.expect("copy");
        let rows = pin!(BinaryCopyOutStream::new(stream, &types));
        let rows: Vec<_> = rows.try_collect().await.expect("rows");
        assert_eq!(rows.len(), ROWS as usize);
        for (i, row) in (0..).zip(&rows) {
            assert_eq!((row.get::<i32>(0), row.get::<&str>(1)), (i, &*format!("line\t{i}")));
        }
    });
}

#[test]
fn large_values_pass_both_ways() {
    with_door(|door| async move {
        let client = door.connect().await;
        let text = "0123456789".repeat(LARGE / 10);
        assert!(one_text(&client, "select $1::text", &[&text]).await == text);
        let raw: Vec<u8> = (0..LARGE).map(|i| i as u8).collect();
        let row = client.query_one("select $1::bytea", &[&raw]).await.expect("a row");
        assert!(row.get::<_, Vec<u8>>(0) == raw);
    });
}

#[test]
fn statements_in_flight_together_answer_in_order() {
    use futures_util::future::join_all;
    with_door(|door| async move {
        let client = door.connect().await;
        let double = client.prepare("select $1::int * 2").await.expect("a statement");
        let divide = client.prepare("select 100 / $1::int").await.expect("a statement");
        let marks: Vec<i32> = (0..300).collect();
        // Sent without waiting: tokio-postgres pipelines whatever is asked before answers come.
        let asked = marks.iter().map(|mark| {
            let statement = if mark % 10 == 0 { &divide } else { &double };
            let value = if mark % 10 == 0 { &0 } else { mark };
            async { client.query_one(statement, &[value]).await.map(|row| row.get::<_, i32>(0)) }
        });
        // All are polled once in this order before the first answer is awaited.
        for (mark, answer) in marks.iter().zip(join_all(asked).await) {
            match answer {
                Ok(number) => assert_eq!(number, mark * 2),
                Err(error) => {
                    assert_eq!(mark % 10, 0, "{error}");
                    assert_eq!(code(&error), Some(&SqlState::DIVISION_BY_ZERO));
                }
            }
        }
    });
}

#[test]
fn portal_is_fetched_in_parts() {
    with_door(|door| async move {
        let mut client = door.connect().await;
        let transaction = client.transaction().await.expect("begin");
        let sql = "select g from generate_series(1, 250) g";
        let portal = transaction.bind(sql, &[]).await.expect("a portal");
        let mut sizes = Vec::new();
        loop {
            let rows = transaction.query_portal(&portal, 100).await.expect("rows");
            sizes.push(rows.len());
            if rows.len() < 100 {
                break;
            }
        }
        assert_eq!(sizes, [100, 100, 50]);
        transaction.commit().await.expect("commit");
    });
}

#[test]
fn cancel_ends_the_statement_and_the_connection_lives_on() {
    with_door(|door| async move {
        let client = door.connect().await;
        let token = client.cancel_token();
        let began = Instant::now();
        let (slept, cancelled) = tokio::join!(client.query("select pg_sleep(60)", &[]), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            token.cancel_query(NoTls).await
        });
        cancelled.expect("a cancel request");
        let error = slept.expect_err("a cancelled statement");
        assert_eq!(code(&error), Some(&SqlState::QUERY_CANCELED));
        assert!(began.elapsed() < Duration::from_secs(20));
        assert_eq!(one_text(&client, "select 'usable'", &[]).await, "usable");
    });
}

#[test]
fn notices_arrive() {
    use futures_util::future::poll_fn;
    with_door(|door| async move {
        let (client, mut connection) = door.config.connect(NoTls).await.expect("a connection");
        let (heard, mut notices) = tokio::sync::mpsc::channel(8);
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notice(notice) = message {
                    heard.send(notice.message().to_owned()).await.expect("a listener");
                }
            }
        });
        client.batch_execute("do $$ begin raise notice 'hello %', 42; end $$").await.expect("do");
        assert_eq!(notices.recv().await.as_deref(), Some("hello 42"));
    });
}

#[test]
fn settings_at_start_up_hold_on_every_server() {
    with_door(|door| async move {
        let zones = ["Asia/Tokyo", "America/Lima", "Europe/Madrid"];
        let mut clients = Vec::new();
        for (number, zone) in zones.iter().cycle().take(12).enumerate() {
            let name = format!("app {number}");
            let mut config = door.config.clone();
            config.application_name(&name).options(format!("-c TimeZone={zone}"));
            clients.push((Door::connect_with(&config).await.expect("a client"), zone, name));
        }
        let show = "select current_setting('TimeZone') || current_setting('application_name')";
        for _ in 0..10 {
            for (client, zone, name) in &clients {
                assert_eq!(one_text(client, show, &[]).await, format!("{zone}{name}"));
            }
        }
    });
}

#[test]
fn no_reply_goes_to_another_connection() {
    with_door(|door| async move {
        let work = (0..CONNECTIONS).map(|mark| {
            let config = door.config.clone();
            tokio::spawn(async move {
                let mut client = Door::connect_with(&config).await.expect("a connection");
                let statement = client.prepare("select $1::text").await.expect("a statement");
                for turn in 0..40 {
                    let own = format!("{mark}:{turn}");
                    let row = client.query_one(&statement, &[&own]).await.expect("a row");
                    assert_eq!(row.get::<_, &str>(0), own);
                    let transaction = client.transaction().await.expect("begin");
                    let sql = format!("select '{own}' from pg_sleep(0.001)");
                    let row = transaction.query_one(&sql, &[]).await.expect("a row");
                    assert_eq!(row.get::<_, &str>(0), own);
                    transaction.commit().await.expect("commit");
                }
            })
        });
        for done in work.collect::<Vec<_>>() {
            done.await.expect("a client that only saw its own marks");
        }
    });
}

#[test]
fn notifications_arrive_at_idle_connections() {
    use futures_util::future::poll_fn;
    with_door(|door| async move {
        let (client, mut connection) = door.config.connect(NoTls).await.expect("a connection");
        let (heard, mut notifications) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notification(told) = message {
                    heard.send((told.channel().to_owned(), told.payload().to_owned())).expect("us");
                }
            }
        });
        client.batch_execute("listen a; listen b").await.expect("listen");
        let other = door.connect().await;
        for n in 0..20 {
            let channel = if n % 2 == 0 { "a" } else { "b" };
            let value = n.to_string();
            other.execute("select pg_notify($1, $2)", &[&channel, &value]).await.expect("notify");
            assert_eq!(notifications.recv().await, Some((channel.to_owned(), value)));
        }
    });
}
