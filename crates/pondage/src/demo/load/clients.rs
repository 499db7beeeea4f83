//! The clients of one turn. What fails is counted and told; it ends neither turn nor load.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::{Figure, Places, Round, Side, Work};

/// All clients of a turn have this long to come in.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// A client that has failed rests for so long, so as not to spin.
const REST: Duration = Duration::from_millis(50);

const SELECT: &str = "SELECT name, city FROM customers WHERE customer_id = $1";
const SAME_READ: &str = "SELECT city, count(*), sum(total) FROM customers \
                         JOIN orders USING (customer_id) GROUP BY city ORDER BY city";
const WRITE: &str = "SELECT redis.set('load:' || $1::int4, 'x')";
const PAY: &str = "CALL pay($1)";

impl Work {
    fn sql(self) -> &'static str {
        match self {
            Work::Connect | Work::Select => SELECT,
            Work::SameRead => SAME_READ,
            Work::Write => WRITE,
            Work::Pay => PAY,
        }
    }

    /// The parameter of a client's `turn`-th statement.
    fn parameter(self, client: usize, turn: usize) -> i32 {
        let (first, many) = match self {
            Work::Pay => (0, 4),
            Work::Write => (0, 10_000),
            _ => (1, 1000),
        };
        first + ((client * 31 + turn * 7) % many) as i32
    }
}

/// Somebody who is connected.
enum Session {
    /// Connects anew for each statement.
    None,
    Sql(Client, Statement),
    Redis(TcpStream),
}

/// Lets all clients of the round work for `length`, and adds to `figure`.
pub(super) async fn turn(
    round: &Round,
    side: Side,
    places: &Places,
    length: Duration,
    figure: &RefCell<Figure>,
) {
    let opening = join_all((0..round.clients).map(|_| async {
        match tokio::time::timeout(OPEN_TIMEOUT, open(round.work, side, places)).await {
            Ok(Ok(session)) => Some(session),
            Ok(Err(why)) => {
                figure.borrow_mut().fail(why);
                None
            }
            Err(_) => {
                figure.borrow_mut().fail("not connected in time".to_owned());
                None
            }
        }
    }));
    let sessions = opening.await;
    let config = match side {
        Side::Direct => &places.direct,
        Side::Through => &places.through,
    };
    let began = Instant::now();
    let working = join_all(
        sessions
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(client, session)| work(round.work, config, client, session, figure)),
    );
    // It ends by this only; with nobody there, nothing is measured at its full length either.
    let _ = tokio::time::timeout(length, async {
        working.await;
        std::future::pending::<()>().await
    })
    .await;
    figure.borrow_mut().measured += began.elapsed();
}

async fn open(work: Work, side: Side, places: &Places) -> Result<Session, String> {
    match (work, side, places.redis) {
        (Work::Connect, ..) => Ok(Session::None),
        (Work::Write, Side::Through, Some(door)) => {
            redis(door).await.map(Session::Redis).map_err(|error| error.to_string())
        }
        (_, Side::Direct, _) => session(&places.direct, work).await,
        (_, Side::Through, _) => session(&places.through, work).await,
    }
}

async fn session(config: &Config, work: Work) -> Result<Session, String> {
    let client = connect(config).await?;
    let statement = client.prepare(work.sql()).await.map_err(|error| said(&error))?;
    Ok(Session::Sql(client, statement))
}

async fn connect(config: &Config) -> Result<Client, String> {
    let (client, connection) = config.connect(NoTls).await.map_err(|error| said(&error))?;
    // It ends with its client, or with the runtime; what goes wrong its client is told.
    tokio::spawn(connection);
    Ok(client)
}

fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => said.to_string(),
        None => error.to_string(),
    }
}

/// Works until it is dropped, or its session has failed.
async fn work(
    work: Work,
    config: &Config,
    client: usize,
    mut session: Session,
    figure: &RefCell<Figure>,
) {
    for turn in 0.. {
        let began = Instant::now();
        let parameter = work.parameter(client, turn);
        match once(work, config, &mut session, parameter).await {
            Ok(()) => {
                let mut figure = figure.borrow_mut();
                figure.done += 1;
                figure.latencies.add(began.elapsed());
            }
            Err(why) => {
                figure.borrow_mut().fail(why);
                tokio::time::sleep(REST).await;
            }
        }
    }
}

async fn once(
    work: Work,
    config: &Config,
    session: &mut Session,
    parameter: i32,
) -> Result<(), String> {
    let parameters: &[&(dyn ToSql + Sync)] = match work {
        Work::SameRead => &[],
        _ => &[&parameter],
    };
    match session {
        Session::None => {
            let client = connect(config).await?;
            client.query(work.sql(), parameters).await.map_err(|error| said(&error))?;
        }
        Session::Sql(client, statement) => {
            client.query(statement, parameters).await.map_err(|error| said(&error))?;
        }
        Session::Redis(stream) => {
            let command = format!("SET load:{parameter} x\r\n");
            ask(stream, command.as_bytes()).await.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

async fn redis(door: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(door).await?;
    stream.set_nodelay(true)?;
    ask(&mut stream, format!("AUTH {0} {0}\r\n", super::super::NAME).as_bytes()).await?;
    Ok(stream)
}

/// Sends a command that is answered by "+OK" when all is well.
async fn ask(stream: &mut TcpStream, command: &[u8]) -> io::Result<()> {
    const FINE: &[u8] = b"+OK\r\n";
    stream.write_all(command).await?;
    let mut answer = [0; FINE.len()];
    stream.read_exact(&mut answer).await?;
    if answer == FINE {
        return Ok(());
    }
    let mut rest = [0; 200];
    let read = stream.read(&mut rest).await?;
    let (begin, rest) = (String::from_utf8_lossy(&answer), String::from_utf8_lossy(&rest[..read]));
    Err(io::Error::other(format!("{begin}{rest}").trim_end()))
}
