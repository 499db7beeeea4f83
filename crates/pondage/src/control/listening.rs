//! Connections that listen for clients: one for each database, and for each encoding that its
//! listening clients speak, while there are any.
//!
//! A client whose LISTEN is committed is answered when its channel is listened to here, and one that
//! has done anything is answered when what was committed before has been passed on: both is known
//! when a query that was sent here afterwards is answered. PostgreSQL signals who listens before it
//! answers a COMMIT, and sends what it has before a ReadyForQuery. So queries are sent one at a
//! time, each for all who have asked by then.
//!
//! What is committed while there is no connection is missed. Nothing here can find out what that
//! was, so all who listened are told: [`ToWorker::ListenLost`]. RECONNECT puts another connection in
//! the place of one that is there, and loses nothing: see `succeeding.rs`.
//!
//! Source: `ProcessNotifyInterrupt` and "Async" in PostgreSQL's `async.c`; PostgreSQL docs, LISTEN.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backend::login::{Credential, ServerError};
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout, Instant};
use wire::pg::backend::{self as reply, tag};
use wire::pg::frontend;
use wire::pg::HEADER_BYTES;

use super::messages::{Audience, OpenKind, Ref, ToControl, ToWorker};
use super::open::{Failure, Session};
use super::Control;
use crate::config::{Config, PoolConfig};
use crate::session::listens::put_command;

/// It has to answer within this time, or is lost.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A connection that has nothing to do is asked whether it is there so often, and closed if nobody
/// listens any more.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// Between tries to connect: at first, and at last.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(5);

/// Why a connection is of no use any more.
pub(super) const ELSEWHERE: &str = "the database is on another server now";

/// What such a connection calls itself.
const APPLICATION_NAME: &str = "pondage listen";

/// Every task that keeps a connection, or would if somebody listened.
#[derive(Default)]
pub struct Links {
    tasks: Mutex<HashMap<Arc<Audience>, Link>>,
}

struct Link {
    /// The pool whose connection it is.
    config: Arc<PoolConfig>,
    asks: mpsc::UnboundedSender<Ask>,
}

enum Ask {
    Listen(Wish),
    /// The connection is to be given up, for this reason.
    End(&'static str),
    /// Another one is to take its place.
    Renew,
}

/// A connection that is to take the place of one that listens.
type Successor = Pin<Box<dyn Future<Output = Result<Session, String>> + Send>>;

/// What [`ToControl::Listen`] asks for.
struct Wish {
    worker: u8,
    config: Arc<PoolConfig>,
    proven: Option<Credential>,
    more: Vec<Arc<[u8]>>,
    fewer: Vec<Arc<[u8]>>,
    asker: Option<(Ref, u32)>,
}

impl Links {
    /// Gives up those connections, for a reason, or puts others in their place.
    pub fn renew(&self, which: impl Fn(&Audience, &PoolConfig) -> bool, why: Option<&'static str>) {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for (audience, link) in tasks.iter() {
            if which(audience, &link.config) {
                // A task that has ended has no connection.
                let _ = link.asks.send(why.map_or(Ask::Renew, Ask::End));
            }
        }
    }

    /// Ends a task that nobody has asked for anything. False: somebody has.
    fn end(&self, audience: &Audience, asks: &mpsc::UnboundedReceiver<Ask>) -> bool {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if asks.is_empty() {
            tasks.remove(audience);
        }
        asks.is_empty()
    }
}

impl Control {
    pub(super) fn listen(self: &Arc<Self>, message: ToControl) {
        let ToControl::Listen { worker, audience, config, proven, more, fewer, asker } = message
        else {
            return;
        };
        let mut tasks = self.listening_for.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let link = tasks.entry(audience.clone()).or_insert_with(|| {
            let (asks, asked) = mpsc::unbounded_channel();
            tokio::spawn(Task { control: self.clone(), audience, asked, pause: RETRY_FIRST }.run());
            Link { config: config.clone(), asks }
        });
        // The task ends only when it has taken itself out of the map.
        let _ = link.asks.send(Ask::Listen(Wish { worker, config, proven, more, fewer, asker }));
    }

    /// A reload has put databases elsewhere.
    pub(super) fn listen_elsewhere(&self, new: &Config) {
        let moved = |audience: &Audience, old: &PoolConfig| {
            let Ok(now) = new.pool(&audience.database, &old.user) else { return false };
            let place = |config: &PoolConfig| {
                let upstream = &config.upstream;
                let (host, several) = (upstream.host.clone(), upstream.several.clone());
                (host, upstream.port, several, upstream.database.clone())
            };
            place(&now) != place(old)
        };
        self.listening_for.renew(moved, Some(ELSEWHERE));
    }
}

struct Task {
    control: Arc<Control>,
    audience: Arc<Audience>,
    asked: mpsc::UnboundedReceiver<Ask>,
    /// Before the next try to connect.
    pause: Duration,
}

/// Why a connection is given up.
enum End {
    /// Nobody listens.
    Unwanted,
    Lost(String),
}

impl Task {
    async fn run(mut self) {
        loop {
            let Ok(ask) = timeout(CHECK_EVERY, self.asked.recv()).await else {
                if self.control.listening_for.end(&self.audience, &self.asked) {
                    return;
                }
                continue;
            };
            let wish = match ask {
                None => return,
                // Whoever it was for has been told that the last connection is gone.
                Some(Ask::End(_) | Ask::Renew) => continue,
                Some(Ask::Listen(wish)) if wish.asker.is_none() => continue,
                Some(Ask::Listen(wish)) => wish,
            };
            let connects = Connects {
                control: self.control.clone(),
                audience: self.audience.clone(),
                config: wish.config.clone(),
                proven: wish.proven.clone(),
            };
            match connects.clone().connect().await {
                Ok(session) => {
                    self.pause = RETRY_FIRST;
                    let mut ear = Ear::new(session, connects);
                    ear.take(wish);
                    if let End::Lost(why) = ear.listen(&mut self.asked).await {
                        self.lost(why).await;
                    }
                }
                Err(why) => self.lost(why).await,
            }
        }
    }

    /// Tells all clients. Those that ask meanwhile are among them: they were listening before they
    /// asked, as far as their workers know.
    async fn lost(&mut self, why: String) {
        let Audience { database, encoding } = &*self.audience;
        tracing::warn!(event = "listen_lost", db = %database, encoding, "nobody listens: {why}");
        while self.asked.try_recv().is_ok() {}
        for worker in &self.control.workers {
            let (audience, why) = (self.audience.clone(), why.clone());
            worker.send(ToWorker::ListenLost { audience, why });
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(RETRY_LAST);
    }
}

/// How a connection that listens is opened.
#[derive(Clone)]
pub(super) struct Connects {
    pub(super) control: Arc<Control>,
    pub(super) audience: Arc<Audience>,
    config: Arc<PoolConfig>,
    proven: Option<Credential>,
}

impl Connects {
    async fn connect(self) -> Result<Session, String> {
        let mut config = PoolConfig::clone(&self.config);
        config.upstream.application_name = Some(APPLICATION_NAME.to_owned());
        let dialer = &self.control.dialer;
        let opened = dialer.start(&config, self.proven.clone(), &OpenKind::Pooled).await;
        let mut session = opened.map_err(|error| error.message)?;
        let encoding = &self.audience.encoding;
        if !encoding.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(format!("\"{encoding}\" is no encoding"));
        }
        let query = format!("SET client_encoding = '{encoding}'");
        match timeout(ANSWER_MAX, session.query(&query)).await {
            Ok(Ok(())) => Ok(session),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the server does not answer".to_owned()),
        }
    }
}

/// A connection that listens.
pub(super) struct Ear {
    pub(super) connects: Connects,
    pub(super) session: Session,
    /// Which workers have clients that listen to it, a bit for each.
    pub(super) channels: HashMap<Arc<[u8]>, u64>,
    /// What is to be sent, and who waits for it.
    pub(super) commands: Vec<u8>,
    askers: Vec<(Ref, u32)>,
    /// Who waits for what was sent.
    pub(super) answering: Option<Vec<(Ref, u32)>>,
}

impl Ear {
    fn new(session: Session, connects: Connects) -> Ear {
        Ear {
            connects,
            session,
            channels: HashMap::new(),
            commands: Vec::new(),
            askers: Vec::new(),
            answering: None,
        }
    }

    /// Until the connection is lost or not wanted.
    async fn listen(&mut self, asked: &mut mpsc::UnboundedReceiver<Ask>) -> End {
        let mut until = Instant::now() + CHECK_EVERY;
        let mut successor: Option<Successor> = None;
        loop {
            let idle = self.answering.is_none();
            if idle && !(self.askers.is_empty() && self.commands.is_empty()) {
                if let Err(why) = self.send().await {
                    return End::Lost(why);
                }
                until = Instant::now() + ANSWER_MAX;
            }
            tokio::select! {
                message = self.session.message() => {
                    match heard(&self.connects, &self.channels, message) {
                        Err(why) => return End::Lost(why),
                        Ok(Heard::Answer) => {
                            self.answered();
                            until = Instant::now() + CHECK_EVERY;
                        }
                        Ok(Heard::Something) => {}
                    }
                }
                opened = next(&mut successor) => {
                    successor = None;
                    let taken = match opened {
                        Ok(session) => self.hand_over(session).await,
                        Err(why) => Err(why),
                    };
                    if let Err(why) = taken {
                        return End::Lost(why);
                    }
                    until = Instant::now() + CHECK_EVERY;
                }
                ask = asked.recv() => match ask {
                    None => return End::Unwanted,
                    Some(Ask::End(why)) => return End::Lost(why.to_owned()),
                    Some(Ask::Renew) => successor = Some(Box::pin(self.connects.clone().connect())),
                    Some(Ask::Listen(wish)) => self.take(wish),
                },
                () = sleep_until(until) => match self.answering {
                    Some(_) => return End::Lost("the server does not answer".to_owned()),
                    None if self.channels.is_empty() => {
                        self.close().await;
                        return End::Unwanted;
                    }
                    None => {
                        if let Err(why) = self.send().await {
                            return End::Lost(why);
                        }
                        until = Instant::now() + ANSWER_MAX;
                    }
                }
            }
        }
    }

    /// Notes what a worker's clients listen to from now on.
    fn take(&mut self, wish: Wish) {
        let bit = 1 << (wish.worker & 63);
        for channel in wish.more {
            let workers = self.channels.entry(channel.clone()).or_default();
            if *workers == 0 {
                put_command(&mut self.commands, b"LISTEN", &channel);
            }
            *workers |= bit;
        }
        for channel in wish.fewer {
            let Some(workers) = self.channels.get_mut(&channel) else { continue };
            *workers &= !bit;
            if *workers == 0 {
                self.channels.remove(&channel);
                put_command(&mut self.commands, b"UNLISTEN", &channel);
            }
        }
        self.askers.extend(wish.asker);
    }

    /// Sends what is to be sent; an empty query if it is nothing.
    async fn send(&mut self) -> Result<(), String> {
        let mut out = Vec::new();
        frontend::put_query(&mut out, std::mem::take(&mut self.commands));
        self.answering = Some(std::mem::take(&mut self.askers));
        match timeout(ANSWER_MAX, self.session.send(&out)).await {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_) => Err("the server does not read".to_owned()),
        }
    }

    pub(super) fn answered(&mut self) {
        for (client, number) in self.answering.take().unwrap_or_default() {
            self.connects.control.tell(client.worker, ToWorker::Listened { client, number });
        }
    }

    pub(super) async fn close(&mut self) {
        let mut out = Vec::new();
        frontend::put_terminate(&mut out);
        // Nothing is lost when it does not arrive.
        let _ = timeout(ANSWER_MAX, self.session.send(&out)).await;
    }
}

async fn next(successor: &mut Option<Successor>) -> Result<Session, String> {
    match successor {
        Some(successor) => successor.await,
        None => std::future::pending().await,
    }
}

pub(super) enum Heard {
    /// A query is answered.
    Answer,
    Something,
}

/// What a connection that listens was told; notifications are passed on.
pub(super) fn heard(
    connects: &Connects,
    channels: &HashMap<Arc<[u8]>, u64>,
    message: Result<(u8, &[u8]), Failure>,
) -> Result<Heard, String> {
    let (kind, body) = message.map_err(|error| error.to_string())?;
    match kind {
        tag::READY_FOR_QUERY => Ok(Heard::Answer),
        tag::NOTIFICATION => {
            let sent = notify(&connects.control, &connects.audience, channels, body);
            sent.map(|()| Heard::Something).map_err(|error| error.to_string())
        }
        tag::ERROR => {
            let said = ServerError::read(body).map(|error| error.message);
            Err(said.unwrap_or_else(|error| error.to_string()))
        }
        _ => Ok(Heard::Something),
    }
}

/// Passes a notification on to the workers whose clients listen to its channel.
pub(super) fn notify(
    control: &Control,
    audience: &Arc<Audience>,
    channels: &HashMap<Arc<[u8]>, u64>,
    body: &[u8],
) -> Result<(), wire::pg::WireError> {
    let (_, channel, _) = reply::notification(body)?;
    let Some(mut workers) = channels.get(channel).copied() else { return Ok(()) };
    let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
    message.push(tag::NOTIFICATION);
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    let message: Arc<[u8]> = message.into();
    while workers != 0 {
        let worker = workers.trailing_zeros() as u8;
        workers &= workers - 1;
        let (audience, message) = (audience.clone(), message.clone());
        control.tell(worker, ToWorker::Notified { audience, message });
    }
    Ok(())
}
