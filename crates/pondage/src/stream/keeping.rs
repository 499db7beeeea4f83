//! The ordinary connection of a stream: the publication, and what has to be asked for.

use std::sync::Arc;
use std::time::Duration;

use backend::login::{Credential, ServerError};
use backend::replication::catalogue::{moment, Position, Row};
use backend::replication::keeper::{Answer, Keeper, Todo};
use backend::replication::plan::TableStanding;
use backend::replication::{Ended, PublishedTable, SETTINGS};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use wire::pg::backend::tag;
use wire::pg::frontend;

use crate::config::PoolConfig;
use crate::control::dial::Dialer;
use crate::control::messages::{OpenError, OpenKind};
use crate::control::open::Session;
use crate::stream::Tap;

/// Beside [`SETTINGS`]: nobody waits long for a look, or for the lock of a publication.
const OWN_SETTINGS: [(&str, &str); 3] = [
    ("statement_timeout", "15s"),
    ("lock_timeout", "1s"),
    ("default_transaction_read_only", "off"),
];

/// Most bytes of all rows of one answer.
const ANSWER_BYTES_MAX: usize = 128 << 20;

/// A server that does not answer for so long has gone away.
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// Without a look for so long nobody knows what has been redefined: the stream is given up.
const BLIND_MAX: Duration = Duration::from_secs(15);

/// Between tries to connect.
const RETRY: Duration = Duration::from_secs(1);

/// The next look is at least this many times as far away as the last one took: a large catalogue is
/// not looked at all the time.
const REST_FACTOR: u32 = 10;

/// But looks begin at most so far apart, unless one takes longer than half of it: then half of the
/// time is spent with looking.
pub const LOOKS_APART_MAX: Duration = Duration::from_secs(5);

/// Gives what [`moment`] takes.
const STARTED: &str = "SELECT encode(timestamptz_send(pg_postmaster_start_time()), 'hex')";

/// Looks that are asked for are at least so far apart.
const LOOKS_APART_MIN: Duration = Duration::from_millis(100);

/// For whoever has the consumer.
pub enum Event {
    /// To be told before the sender goes on.
    Published(Vec<PublishedTable>, oneshot::Sender<()>),
    Redefined,
    Looked(Look),
}

/// What a round found.
pub struct Look {
    pub tables: Arc<Vec<TableStanding>>,
    pub position: Position,
    pub complaint: Option<String>,
}

/// Who logs in, and where.
#[derive(Clone)]
pub struct Login {
    pub dialer: Arc<Dialer>,
    pub config: Arc<PoolConfig>,
    pub proven: Option<Credential>,
}

impl Login {
    pub async fn open(&self, more: &[(&str, &str)]) -> Result<Session, OpenError> {
        let both = SETTINGS.iter().chain(more);
        let parameters =
            both.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let kind = OpenKind::Replication { parameters };
        self.dialer.start(&self.config, self.proven.clone(), &kind).await
    }
}

/// A [`Keeper`] and its connection.
pub struct Keeping {
    pub keeper: Keeper,
    login: Login,
    session: Option<Session>,
}

impl Keeping {
    /// # Errors
    /// When the server can't be reached or lets nobody in.
    pub async fn open(login: Login, keeper: Keeper) -> Result<Keeping, OpenError> {
        let session = login.open(&OWN_SETTINGS).await?;
        Ok(Keeping { keeper, login, session: Some(session) })
    }

    /// The round before the stream begins.
    ///
    /// # Errors
    /// The database can't be followed, or not now.
    pub async fn prepare(&mut self) -> Result<(), Ended> {
        let mut todo = self.keeper.round();
        loop {
            todo = match todo {
                Todo::Ask(sql) => self
                    .ask(&sql)
                    .await
                    .map_err(Ended::Lost)
                    .and_then(|answer| self.keeper.answer(answer))?,
                Todo::Publish(_) => self.keeper.told(),
                Todo::Rest { .. } => return Ok(()),
            };
        }
    }

    pub fn look(&self) -> Look {
        Look {
            tables: Arc::new(self.keeper.standing()),
            position: self.keeper.position.clone(),
            complaint: self.keeper.complaint.clone(),
        }
    }

    /// Looks again and again, at once whenever `begun` is sent, and soon when somebody asks for it.
    ///
    /// # Errors
    /// Always: it ends when the stream can't go on.
    pub async fn watch(
        &mut self,
        poll: Duration,
        mut begun: watch::Receiver<bool>,
        tap: &Tap,
        events: mpsc::Sender<Event>,
    ) -> Ended {
        let mut looked = Instant::now();
        let mut pause = poll;
        let (mut soon, mut again) = (LOOKS_APART_MIN, LOOKS_APART_MIN);
        loop {
            let asked = async {
                let soonest = Instant::now() + soon;
                tap.0.looks.notified().await;
                tokio::time::sleep_until(soonest).await;
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = asked => {}
                changed = begun.changed() => {
                    if changed.is_ok() && *begun.borrow() {
                        self.keeper.follow();
                    }
                }
            }
            let start = Instant::now();
            match self.round(&events).await {
                Ok(Round::Over) => {
                    looked = Instant::now();
                    let took = start.elapsed();
                    // A new table is told when those have ended who may have written it before.
                    let new = self.keeper.waits();
                    pause = rest(if new { again } else { poll }, took);
                    again = if new { (again * 2).min(poll) } else { LOOKS_APART_MIN };
                    soon = rest(LOOKS_APART_MIN, took);
                }
                Ok(Round::Unanswered(why)) => {
                    self.session = None;
                    if looked.elapsed() > BLIND_MAX.max(poll * 2) {
                        return Ended::Lost(format!("the catalogues were not reached: {why}"));
                    }
                    pause = RETRY;
                }
                Err(ended) => return ended,
            }
        }
    }

    async fn round(&mut self, events: &mpsc::Sender<Event>) -> Result<Round, Ended> {
        if self.session.is_none() {
            match self.login.open(&OWN_SETTINGS).await {
                Ok(session) => self.session = Some(session),
                Err(error) => return Ok(Round::Unanswered(error.message)),
            }
        }
        let mut todo = self.keeper.round();
        loop {
            todo = match todo {
                Todo::Ask(sql) => match self.ask(&sql).await {
                    Ok(answer) => self.keeper.answer(answer)?,
                    Err(why) => return Ok(Round::Unanswered(why)),
                },
                Todo::Publish(tables) => {
                    let (done, told) = oneshot::channel();
                    tell(events, Event::Published(tables, done)).await?;
                    told.await.map_err(|_| gone())?;
                    self.keeper.told()
                }
                Todo::Rest { redefined } => {
                    if redefined {
                        tell(events, Event::Redefined).await?;
                    }
                    tell(events, Event::Looked(self.look())).await?;
                    return Ok(Round::Over);
                }
            };
        }
    }

    async fn ask(&mut self, sql: &str) -> Result<Answer, String> {
        ask(self.session.as_mut().ok_or("there is no connection")?, sql).await
    }
}

/// From the end of a look that took so long to the next one's beginning.
fn rest(poll: Duration, took: Duration) -> Duration {
    poll.max(took * REST_FACTOR).min(LOOKS_APART_MAX.saturating_sub(took)).max(took)
}

enum Round {
    Over,
    /// The connection was lost; another may do.
    Unanswered(String),
}

async fn tell(events: &mpsc::Sender<Event>, event: Event) -> Result<(), Ended> {
    events.send(event).await.map_err(|_| gone())
}

fn gone() -> Ended {
    Ended::Lost("nobody is told any more".to_owned())
}

/// Runs a simple query.
///
/// # Errors
/// The connection is of no more use.
pub async fn ask(session: &mut Session, sql: &str) -> Result<Answer, String> {
    match tokio::time::timeout(ANSWER_MAX, query(session, sql)).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {ANSWER_MAX:?}")),
    }
}

/// When the server was started, in its microseconds since 2000: one that takes over for another was
/// started at another time.
///
/// # Errors
/// It does not say so.
pub async fn started(session: &mut Session) -> Result<i64, String> {
    let rows = ask(session, STARTED).await?.map_err(|error| error.to_string())?;
    let hex = rows.into_iter().next().map(|mut row| row.text()).unwrap_or_default();
    moment(&hex).ok_or_else(|| "the server does not say when it was started".to_owned())
}

async fn query(session: &mut Session, sql: &str) -> Result<Answer, String> {
    let mut out = Vec::new();
    frontend::put_query(&mut out, sql);
    session.send(&out).await.map_err(|error| error.to_string())?;
    let (mut rows, mut bytes, mut refused) = (Vec::new(), 0, None);
    loop {
        let (kind, body) = match session.message().await {
            Ok(message) => message,
            // The server's own last words say more than that it hung up.
            Err(failure) => {
                let last = refused.map(|error: ServerError| error.to_string());
                return Err(last.unwrap_or_else(|| failure.to_string()));
            }
        };
        bytes += body.len();
        if bytes > ANSWER_BYTES_MAX {
            return Err(format!("more than {ANSWER_BYTES_MAX} bytes of answer"));
        }
        let malformed = |error: wire::pg::WireError| error.to_string();
        match kind {
            tag::DATA_ROW => {
                let values = wire::pg::backend::data_row(body).map_err(malformed)?;
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                rows.push(Row::new(values.into_iter().map(|v| v.map(text)).collect()));
            }
            tag::ERROR => refused = Some(ServerError::read(body).map_err(malformed)?),
            tag::READY_FOR_QUERY => {
                return Ok(match refused {
                    Some(error) => Err(error),
                    None => Ok(rows),
                })
            }
            tag::COPY_IN | tag::COPY_OUT | tag::COPY_BOTH => {
                return Err("a COPY was started".to_owned());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_not_further_apart_than_is_promised() {
        let poll = Duration::from_secs(3);
        for (took, rests) in
            [(0, 3_000), (200, 3_000), (400, 4_000), (1_000, 4_000), (2_500, 2_500), (4_000, 4_000)]
        {
            let took = Duration::from_millis(took);
            assert_eq!(rest(poll, took), Duration::from_millis(rests), "{took:?}");
        }
    }
}
