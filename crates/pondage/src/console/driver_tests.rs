//! A real driver against the console: tokio-postgres, which prepares every statement and takes
//! binary results.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use wire::pg::backend::{self, TxStatus};
use wire::pg::header;

use super::fixture::{self, Fake};
use super::*;
use crate::worker::snapshot::WorkerSnapshot;

const CLIENT: Ref = Ref { worker: 0, slot: 0, generation: 0 };

fn snapshot(config: &Config) -> WorkerSnapshot {
    let mut pool = fixture::pool(config, "app", "web");
    pool.cl_active = 3;
    pool.totals.query_count = 123_456_789;
    WorkerSnapshot {
        pools: vec![pool],
        clients: vec![fixture::connection(4, 71, "idle")],
        ..Default::default()
    }
}

/// Stands for a worker: trusts one client, hands its messages to a console and brings it the
/// replies.
async fn door(mut stream: TcpStream) {
    let (fake, mut inboxes) = Fake::new(fixture::config(), 1);
    let mut inbox = inboxes.remove(0);
    let mut console = Console::new(Arc::new(Operator::new(fake.clone())));
    let (user, database) = ("root".to_owned(), "pondage".to_owned());
    let who = Arc::new(ConsoleUser { user, database, admin: true, proven: None });

    let length = stream.read_u32().await.expect("a start-up packet") as usize;
    let mut startup = vec![0; length - 4];
    stream.read_exact(&mut startup).await.expect("a whole start-up packet");
    let mut greeting = Vec::new();
    backend::put_auth_ok(&mut greeting);
    backend::put_ready(&mut greeting, TxStatus::Idle);
    stream.write_all(&greeting).await.expect("a client");

    let mut read = Vec::new();
    loop {
        while let Ok(Some(head)) = header(&read) {
            if read.len() < head.total {
                break;
            }
            let rest = read.split_off(head.total);
            console.message(CLIENT, &who, std::mem::replace(&mut read, rest));
        }
        tokio::select! {
            got = stream.read_buf(&mut read) => {
                if got.unwrap_or(0) == 0 {
                    return;
                }
            }
            message = inbox.recv() => match message {
                Some(ToWorker::Snapshot { reply, .. }) => {
                    let _ = reply.send(Box::new(snapshot(&fake.config)));
                }
                Some(ToWorker::Command { reply, .. }) => drop(reply.send(Ok(()))),
                Some(ToWorker::ConsoleReply { bytes, close, .. }) => {
                    if stream.write_all(&bytes).await.is_err() || close {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}

async fn connect() -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    tokio::spawn(door(listener.accept().await.unwrap().0));
    let mut config = tokio_postgres::Config::new();
    config.user("root").dbname("pondage");
    let (client, connection) = config.connect_raw(stream, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn a_driver_prepares_and_reads_binary_results() {
    let client = connect().await;
    let rows = client.query("SHOW POOLS", &[]).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].get::<_, &str>("database"), "app");
    assert_eq!(rows[0].get::<_, i32>("cl_active"), 3);
    assert_eq!(rows[0].get::<_, Option<&str>>("load_balance_hosts"), None);

    let statement = client.prepare("SHOW CLIENTS").await.unwrap();
    for _ in 0..2 {
        let row = client.query_one(&statement, &[]).await.unwrap();
        assert_eq!(row.get::<_, i32>("id"), 71);
        assert_eq!(row.get::<_, &str>("connect_time"), "2026-11-20 14:05:10 UTC");
    }
    assert_eq!(client.query_one("SELECT 1", &[]).await.unwrap().get::<_, i32>(0), 1);
    assert_eq!(client.execute("RELOAD", &[]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_driver_sees_errors_and_goes_on() {
    let client = connect().await;
    let error = client.query("SHOW NONSENSE", &[]).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42601");
    let error = client.execute("PAUSE nope", &[]).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "3D000");
    assert!(error.as_db_error().unwrap().hint().is_some());
    client.batch_execute("SET extra_float_digits = 3; PAUSE app; BEGIN; COMMIT").await.unwrap();
    client.batch_execute("PAUSE app; NONSENSE").await.unwrap_err();
    let messages = client.simple_query("SHOW STATS_TOTALS").await.unwrap();
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    assert_eq!(row.unwrap().get("query_count"), Some("123456789"));
}

#[tokio::test]
async fn requests_of_a_driver_may_overlap() {
    let client = connect().await;
    let (pools, state, version) = tokio::join!(
        client.query("SHOW POOLS", &[]),
        client.query("SHOW STATE", &[]),
        client.query("SHOW VERSION", &[]),
    );
    assert_eq!(pools.unwrap().len(), 1);
    assert_eq!(state.unwrap().len(), 3);
    assert_eq!(version.unwrap()[0].get::<_, &str>(0), show::version());
}
