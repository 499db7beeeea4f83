//! One database: connect, prepare, follow, lose, and all of it again.

use std::convert::Infallible;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend::login::Credential;
use backend::replication::client::{self, Client, Phase};
use backend::replication::keeper::Keeper;
use backend::replication::missing::Missing;
use backend::replication::{Changes, Ended};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::keeping::{started, Event, Keeping, Login, Look};
use super::{copying, Clock, Options, State, Tap};
use crate::config::PoolConfig;
use crate::control::dial::{Dialer, CLOSED};
use crate::control::messages::OpenError;
use crate::control::transport::Transport;

/// Between a loss and the next try: doubled after each try that came to nothing.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Beside those of both connections: a role's timeouts are not meant for waiting for other
/// transactions, as the making of a slot does.
const STREAM_SETTINGS: [(&str, &str); 3] =
    [("replication", "database"), ("lock_timeout", "0"), ("statement_timeout", "0")];

/// Bytes asked of the socket at once.
const READ_BYTES: usize = 256 << 10;

/// What keeps being wrong is logged this seldom.
const LOGGED_EVERY: Duration = Duration::from_secs(60);

/// See the head of this file.
pub struct Database {
    config: Arc<PoolConfig>,
    proven: Option<Credential>,
    options: Options,
    consumer: Box<dyn Changes + Send>,
    tap: Tap,
    /// The stream that has to end first.
    before: Option<Tap>,
    clock: Clock,
    /// The consumer was told that a stream has begun, and not that it was lost.
    begun: bool,
    /// Who copies tables, while the stream follows.
    copying: JoinSet<()>,
    /// Since when nothing is followed.
    down: SystemTime,
    /// When and what was last logged.
    logged: Option<(Instant, String)>,
}

impl Database {
    pub fn new(
        config: Arc<PoolConfig>,
        proven: Option<Credential>,
        options: Options,
        consumer: Box<dyn Changes + Send>,
        tap: Tap,
        before: Option<Tap>,
        clock: Clock,
    ) -> Database {
        Database {
            config,
            proven,
            options,
            consumer,
            tap,
            before,
            clock,
            begun: false,
            copying: JoinSet::new(),
            down: SystemTime::now(),
            logged: None,
        }
    }

    /// Follows until it is stopped.
    pub async fn run(mut self, dialer: Arc<Dialer>) {
        if let Some(before) = self.before.take() {
            before.ended().await;
        }
        let mut pause = PAUSE_FIRST;
        while !self.tap.stopped() {
            let tap = self.tap.clone();
            let start = Instant::now();
            let ended = tokio::select! {
                ended = self.stream(&dialer) => ended,
                () = stopped(&tap) => break,
            };
            self.copy_no_more().await;
            if std::mem::take(&mut self.begun) {
                self.down = SystemTime::now();
                self.consumer.lost(&words(&ended));
                // One that never goes on for long is not begun all the time.
                if start.elapsed() > PAUSE_MAX {
                    pause = PAUSE_FIRST;
                }
            }
            self.note(&ended);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stopped(&tap) => break,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.copy_no_more().await;
        if self.begun {
            self.consumer.lost("it was stopped");
        }
    }

    /// Copies have failed before the stream they are made for is lost.
    async fn copy_no_more(&mut self) {
        self.tap.0.copies.close();
        self.copying.shutdown().await;
    }

    /// One stream, from connecting to its end.
    async fn stream(&mut self, dialer: &Arc<Dialer>) -> Ended {
        let login = Login {
            dialer: dialer.clone(),
            config: self.config.clone(),
            proven: self.proven.clone(),
        };
        let (mut keeping, mut stream) = match self.connect(login.clone()).await {
            Ok(connected) => connected,
            Err(ended) => return ended,
        };
        let ended = match self.drive(login, &mut keeping, &mut stream).await {
            Ok(never) => match never {},
            Err(ended) => ended,
        };
        match keeping.keeper.ending() {
            Some(why) => Ended::Lost(why.to_owned()),
            None => ended,
        }
    }

    /// Both connections, and everything that comes before the slot.
    async fn connect(&mut self, login: Login) -> Result<(Keeping, Stream), Ended> {
        let Options { publication, slot_max_wal, silence, .. } = self.options.clone();
        let keeper = Keeper::new(&publication, slot_max_wal);
        let mut keeping = Keeping::open(login.clone(), keeper).await.map_err(|e| unopened(&e))?;
        self.tap.set(|standing| {
            // What was wrong last is shown until it is right.
            if standing.state == State::Connecting {
                standing.state = State::Preparing("the publication");
            }
        });
        keeping.prepare().await?;
        self.looked(&keeping.look(), None);
        let server = keeping.keeper.server().clone();
        let mut session = login.open(&STREAM_SETTINGS).await.map_err(|error| {
            match Missing::at_login(&server, &error.code, &error.message) {
                Some(missing) => Ended::Refused(missing),
                None => unopened(&error),
            }
        })?;
        let started = started(&mut session).await.map_err(Ended::Lost)?;
        self.consumer.comes_from(started);
        let slot = slot_name();
        keeping.keeper.create_slot(&slot);
        let tables = keeping.keeper.published().to_vec();
        let epoch = self.clock.epoch;
        let options = client::Options { publication, slot: slot.clone(), server, silence, epoch };
        let mut client = Client::start(options, tables, self.clock.now());
        client.eager = keeping.keeper.position.synchronous;
        self.tap.set(|standing| {
            standing.slot = Some(slot);
            standing.state = State::Preparing("transactions that were running");
        });
        let (transport, received) = session.into_parts();
        Ok((keeping, Stream { client, started, transport, received }))
    }

    /// From the slot to the end.
    async fn drive(
        &mut self,
        login: Login,
        keeping: &mut Keeping,
        stream: &mut Stream,
    ) -> Result<Infallible, Ended> {
        let Options { silence, poll, .. } = self.options;
        let tap = self.tap.clone();
        let (begun, begins) = watch::channel(false);
        let (tell, mut told) = mpsc::channel(1);
        let mut watched = std::pin::pin!(keeping.watch(poll, begins, &tap, tell));
        // Who is told that the stream has begun may ask for a copy then.
        self.tap.0.copies.open();
        stream.take(self)?;
        loop {
            stream.send(silence).await?;
            if stream.client.phase() == Phase::Streaming && !self.begun {
                self.begun = true;
                self.follows();
                let copies = copying::run(self.tap.clone(), login.clone(), stream.started);
                self.copying.spawn(copies);
                // The receiver lives as long as the sender.
                let _ = begun.send(true);
            }
            // A look soon: it may be a partition that was made a moment ago.
            if stream.client.new_table() {
                let _ = begun.send(true);
            }
            let tick = stream.client.next_tick().map(|moment| self.clock.instant(moment));
            let ticks = tick.unwrap_or_else(Instant::now);
            tokio::select! {
                read = stream.transport.read_buf(&mut stream.received) => {
                    match read {
                        Ok(0) => return Err(Ended::Lost(CLOSED.to_owned())),
                        Ok(_) => stream.take(self)?,
                        Err(error) => return Err(Ended::Lost(error.to_string())),
                    }
                }
                () = tokio::time::sleep_until(ticks), if tick.is_some() => {
                    stream.client.tick(self.clock.now())?;
                }
                () = self.tap.0.pings.notified() => self.pinged(&mut stream.client),
                Some(event) = told.recv() => self.event(event, &mut stream.client),
                ended = &mut watched => return Err(ended),
            }
        }
    }

    fn pinged(&self, client: &mut Client) {
        let now = self.clock.now();
        client.want(self.tap.0.wanted.load(Ordering::Acquire), now);
        if self.tap.0.pinged.swap(false, Ordering::AcqRel) {
            client.ping(now);
        }
    }

    fn event(&mut self, event: Event, client: &mut Client) {
        match event {
            Event::Published(tables, done) => {
                match self.begun {
                    true => self.consumer.published(&tables),
                    false => client.set_tables(tables),
                }
                // Who waits for it may be gone.
                let _ = done.send(());
            }
            Event::Redefined if self.begun => self.consumer.redefined(),
            Event::Redefined => {}
            Event::Looked(look) => self.looked(&look, Some(client)),
        }
    }

    fn looked(&mut self, look: &Look, client: Option<&mut Client>) {
        let slot = look.position.slot.as_ref();
        if let Some(client) = client {
            client.eager = look.position.synchronous;
        }
        self.tap.set(|standing| {
            standing.tables = look.tables.clone();
            standing.server_lsn = look.position.lsn;
            standing.slot_held = slot.map_or(0, |slot| slot.held);
            standing.complaint.clone_from(&look.complaint);
        });
    }

    fn follows(&mut self) {
        // Those of an earlier stream may be another server's.
        self.tap.0.wanted.store(0, Ordering::Release);
        self.tap.set(|standing| {
            standing.state = State::Following;
            standing.begun += 1;
        });
        self.logged = None;
        let (db, slot) = (&self.config.database, self.tap.standing().slot.unwrap_or_default());
        tracing::info!(event = "stream_following", db, slot);
    }

    fn note(&mut self, ended: &Ended) {
        let since = self.down;
        let state = match ended {
            Ended::Lost(why) => State::Lost { why: why.clone(), since },
            Ended::Refused(missing) => State::Refused { missing: missing.clone(), since },
        };
        self.tap.set(|standing| {
            standing.state = state;
            standing.lsn = 0;
            standing.slot = None;
            standing.slot_held = 0;
        });
        let error = words(ended);
        let again = |(at, last): &(Instant, String)| at.elapsed() > LOGGED_EVERY || *last != error;
        if self.logged.as_ref().is_none_or(again) {
            let db = &self.config.database;
            match ended {
                Ended::Lost(_) => tracing::warn!(event = "stream_lost", db, error),
                Ended::Refused(_) => tracing::warn!(event = "stream_refused", db, error),
            }
            self.logged = Some((Instant::now(), error));
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.tap.0.ended.send_replace(true);
    }
}

/// The connection that streams.
struct Stream {
    client: Client,
    /// When its server was.
    started: i64,
    transport: Transport,
    received: Vec<u8>,
}

impl Stream {
    /// Gives the client what has come.
    fn take(&mut self, database: &mut Database) -> Result<(), Ended> {
        let now = database.clock.now();
        let taken = self.client.receive(&self.received, now, &mut *database.consumer);
        self.received.clear();
        self.received.reserve(READ_BYTES);
        // It may have begun and ended in one piece.
        let streams = self.client.phase() == Phase::Streaming;
        database.begun |= taken.is_err() && streams;
        // Who commits may wait for the report of it.
        if streams && !self.client.eager {
            database.tap.0.pace.read();
        }
        database.tap.set(|standing| {
            standing.lsn = self.client.told();
            standing.delay = self.client.delay();
        });
        taken
    }

    /// Sends what the client has to say.
    async fn send(&mut self, limit: Duration) -> Result<(), Ended> {
        if self.client.out().is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(self.client.out());
        let sending = async {
            self.transport.write_all(&bytes).await?;
            self.transport.flush().await
        };
        match tokio::time::timeout(limit, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Ended::Lost(error.to_string())),
            Err(_) => Err(Ended::Lost(format!("the server took nothing for {limit:?}"))),
        }
    }
}

/// Until the stream is stopped.
async fn stopped(tap: &Tap) {
    while !tap.stopped() {
        tap.0.stop.notified().await;
    }
}

/// No other slot of the server has it: several processes may have one number, in containers.
fn slot_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("pondage_{}_{:08x}_{number}", std::process::id(), rand::random::<u32>())
}

fn unopened(error: &OpenError) -> Ended {
    match error.permanent {
        true => Ended::Refused(Missing { what: error.message.clone(), sql: Vec::new() }),
        false => Ended::Lost(error.message.clone()),
    }
}

fn words(ended: &Ended) -> String {
    match ended {
        Ended::Lost(why) => why.clone(),
        Ended::Refused(missing) => {
            let mut text = missing.what.clone();
            for (number, sql) in missing.sql.iter().enumerate() {
                let lead = if number == 0 { "; run: " } else { " " };
                let _ = write!(text, "{lead}{sql}");
            }
            text
        }
    }
}
