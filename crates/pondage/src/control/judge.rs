//! What may be done with statements of a shape: parser and catalogues, asked once.
//!
//! ```text
//! judge -> kept verdicts -> queue of the (server, database, user) -> task with one connection
//! ```
//!
//! The connection is the control plane's own, logged in as the pool's servers are, and no part of
//! the pool. It is made when there is something to ask and closed when there has been nothing for
//! a while.
//!
//! A verdict is kept for a short time, so that workers that meet a shape at the same moment cost
//! one look-up. When definitions change, [`Judges::forget`] drops what is kept, and what is being
//! judged meanwhile is judged again.

mod cacheable;
mod calls;
mod catalogue;
mod connection;
mod facts;
mod functions;
mod mirrored;
mod named;
mod routines;
mod rows;
mod stable;
mod statement;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backend::login::Credential;
use cache::mirror::definition::Definition;
use sql::{Name, PostgresParser};
use tokio::sync::{mpsc, oneshot, OnceCell};
use tokio::time::Instant;
use wire::pg::sqlstate;

use super::dial::Dialer;
use super::mirrors::Unfit;
use crate::config::{CacheMode, Calls, Host, MirrorDefinition, PoolConfig};
use crate::procedures::{Procedure, Procedures};
use crate::route::{Verdict, Writes};
use calls::{Bodies, Looking};
use connection::{Connection, Failure, Unreached};
use statement::Parsed;

/// Connections for catalogue look-ups at one time.
pub const CONNECTIONS_MAX: usize = 64;

/// Statements that may wait for one connection.
pub const QUESTIONS_MAX: usize = 1024;

/// Bytes of verdicts that are kept, with their texts.
pub const KEPT_BYTES_MAX: usize = 8 << 20;

/// A verdict is kept for so long. Workers keep theirs for longer and ask again in order to know
/// what has changed, so they must not get an old one.
pub const KEPT_FOR: Duration = Duration::from_secs(5);

/// What a verdict takes beside its text, about.
const KEPT_OVERHEAD: usize = 512;

/// A connection that nobody has used for so long is closed.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// A connection is replaced after so long: what users and databases have for settings is read when
/// it logs in.
const AGE_MAX: Duration = Duration::from_secs(600);

/// The time that one statement may take. PostgreSQL's own limit for each look-up is shorter.
const JUDGING_MAX: Duration = Duration::from_secs(20);

/// The time until an answer, waiting for others included.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// After a connection was refused for good, nobody tries again for so long. What else goes wrong is
/// logged as seldom.
const PAUSE: Duration = Duration::from_secs(30);

/// The same for a server that is not there: it, or the one that takes over, may be back soon.
const PAUSE_SHORT: Duration = Duration::from_secs(1);

/// Connections that could not be had, remembered until their pause is over.
const FAILED_MAX: usize = 1024;

/// Names of databases that are remembered with where they are.
const PLACES_MAX: usize = 4096;

/// Times that a statement is judged when definitions change meanwhile.
const TRIES: usize = 3;

type Answer = Result<Told, String>;

/// What a task tells.
enum Told {
    Verdict(Box<Verdict>),
    Procedures(Vec<Arc<Procedure>>),
    Blocked(Vec<(u32, u32)>),
    Table(Result<Definition, Unfit>),
    Snapshot(String, i64),
}

/// A database. Several names in the configuration may mean one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    /// All of them: lists that begin alike may lead to different servers.
    hosts: Vec<(Host, u16)>,
    database: String,
}

/// Where a statement is judged, and as whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    place: Place,
    user: String,
    /// It may set a search_path.
    connect_query: Option<String>,
}

struct Question {
    what: What,
    /// As the client who asks names it.
    database: String,
    reply: oneshot::Sender<Answer>,
}

/// What is asked.
#[derive(Clone)]
enum What {
    /// How a statement may travel. `parsed` is the verdict where catalogues have nothing to add
    /// to it but what the call means.
    /// `lanes`: the row that a plain write is about is wanted.
    Statement { parsed: Box<Result<Parsed, Verdict>>, call: Option<sql::Call>, lanes: bool },
    /// What all routines of this name do.
    Routines(Name),
    /// Who waits for a lock, and of whom.
    Blocked,
    /// A table that is to be mirrored.
    Table(MirrorDefinition),
    /// Which transactions have ended.
    Snapshot,
}

/// What of a verdict not everybody asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Wishes {
    /// What caches have to know.
    caches: bool,
    /// What a call means, in the database that clients know by this name.
    calls: Option<String>,
}

/// A verdict, or one that is being made: whoever asks meanwhile waits for it.
struct Kept {
    since: Instant,
    verdict: Arc<OnceCell<Verdict>>,
    /// What it takes, as far as it is known yet.
    bytes: usize,
}

/// There is no connection.
struct Failed {
    why: String,
    /// Nobody tries before.
    until: Instant,
    /// When it was last said in the log.
    logged: Instant,
}

#[derive(Default)]
struct State {
    queues: HashMap<Key, mpsc::Sender<Question>>,
    failed: HashMap<Key, Failed>,
    kept: HashMap<(Key, Wishes, Box<[u8]>), Kept>,
    /// What they take, about.
    kept_bytes: usize,
    /// Of databases whose calls were judged: the pool that asked last.
    callers: HashMap<String, (PoolConfig, Option<Credential>)>,
    /// Where the databases are whose statements were judged.
    places: HashMap<String, Place>,
    /// Raised when definitions change.
    epoch: u64,
}

/// The connections for catalogue look-ups, and the verdicts.
pub struct Judges {
    dialer: Arc<Dialer>,
    procedures: Arc<Procedures>,
    bodies: Arc<Bodies>,
    /// A plain mutex: held for a look or an insertion, never across an await.
    state: Arc<Mutex<State>>,
}

impl Judges {
    pub fn new(dialer: Arc<Dialer>, procedures: Arc<Procedures>) -> Judges {
        Judges { dialer, procedures, bodies: Arc::default(), state: Arc::default() }
    }

    #[cfg(test)]
    pub fn parsing_with(self, parser: super::bodies::Parser) -> Judges {
        Judges { bodies: Arc::new(Bodies::of(parser)), ..self }
    }

    /// Definitions of this database may have changed. Gives its other names, as far as statements
    /// were judged there.
    pub fn forget(&self, database: &str) -> Vec<String> {
        let mut state = lock(&self.state);
        state.epoch += 1;
        let Some(place) = state.places.get(database).cloned() else {
            // Nothing says that it is not one of those that have been judged.
            state.keep(|_, _| false);
            return Vec::new();
        };
        state.keep(|key, _| key.place != place);
        let others = state.places.iter().filter(|(name, at)| **at == place && *name != database);
        others.map(|(name, _)| name.clone()).collect()
    }

    /// Drops every verdict, and closes every connection when its questions are answered (RELOAD).
    pub fn reload(&self) {
        let mut state = lock(&self.state);
        *state = State { epoch: state.epoch + 1, ..State::default() };
    }

    /// Judges a statement as the pool's user sees the database.
    ///
    /// It is judged for sessions as the pool's begin: same user, same search_path, transactions
    /// READ COMMITTED unless the server says otherwise. Who has changed one of these must not use
    /// the verdict. What a cache has to know is asked for pools that have one; what a call means,
    /// for those whose calls may travel as procedures' do.
    ///
    /// # Errors
    /// A line for the log, when the database could not be asked. It has been logged, if it was not
    /// a short while ago.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing but the answer.
    pub async fn judge(
        &self,
        config: &PoolConfig,
        proven: Option<Credential>,
        text: &[u8],
    ) -> Result<Verdict, String> {
        let wishes = Wishes::of(config);
        let parsed = Parsed::new(&PostgresParser, text, wishes.caches);
        let call = wishes.calls.as_ref().and_then(|_| statement::call(&PostgresParser, text));
        let what = match (parsed, call) {
            (Err(verdict), None) => return Ok(verdict),
            (parsed, call) => {
                let lanes = wishes.calls.is_some();
                What::Statement { parsed: Box::new(parsed), call, lanes }
            }
        };
        let key = Key::of(config);
        if wishes.calls.is_some() {
            lock(&self.state).called(config, proven.as_ref());
        }
        for _ in 0..TRIES {
            let (place, epoch) = lock(&self.state).kept(&key, config, text);
            let ask = || async {
                match self.ask(&key, config, proven.clone(), what.clone()).await? {
                    Told::Verdict(verdict) => Ok(*verdict),
                    _ => Err("something else was told".to_owned()),
                }
            };
            let verdict = place.get_or_try_init(ask).await?.clone();
            let mut state = lock(&self.state);
            // Definitions of other databases may change all the time.
            if state.epoch == epoch || state.still_keeps(&key, config, text, &place) {
                state.weigh(&key, config, text, &verdict);
                return Ok(verdict);
            }
        }
        Err("definitions change while the statement is judged".to_owned())
    }

    /// What the functions and procedures of this name do, as the pool's user sees the database.
    /// Without a schema those that its search_path shows. What is built in or written in C is not
    /// among them.
    ///
    /// # Errors
    /// As [`Judges::judge`].
    ///
    /// # Cancel safety
    /// Dropping it loses nothing but the answer.
    pub async fn examine(
        &self,
        config: &PoolConfig,
        proven: Option<Credential>,
        schema: Option<&str>,
        name: &str,
    ) -> Result<Vec<Arc<Procedure>>, String> {
        let name = Name { schema: schema.map(str::to_owned), name: name.to_owned() };
        match self.ask(&Key::of(config), config, proven, What::Routines(name)).await? {
            Told::Procedures(procedures) => Ok(procedures),
            _ => Err("something else was told".to_owned()),
        }
    }

    /// The processes of PostgreSQL that wait for locks in a database whose calls were judged, each
    /// with one that it waits for; as many as one look tells.
    ///
    /// # Errors
    /// As [`Judges::judge`].
    pub async fn blocked(&self, database: &str) -> Result<Vec<(u32, u32)>, String> {
        let asked = lock(&self.state).callers.get(database).cloned();
        let Some((config, proven)) = asked else { return Ok(Vec::new()) };
        match self.ask(&Key::of(&config), &config, proven, What::Blocked).await? {
            Told::Blocked(pairs) => Ok(pairs),
            _ => Err("something else was told".to_owned()),
        }
    }

    /// What a mirror of a table is made for, as the pool's user sees the database.
    ///
    /// # Errors
    /// As [`Judges::judge`].
    ///
    /// # Cancel safety
    /// Dropping it loses nothing but the answer.
    pub async fn table(
        &self,
        config: &PoolConfig,
        proven: Option<Credential>,
        wanted: MirrorDefinition,
    ) -> Result<Result<Definition, Unfit>, String> {
        match self.ask(&Key::of(config), config, proven, What::Table(wanted)).await? {
            Told::Table(found) => Ok(found),
            _ => Err("something else was told".to_owned()),
        }
    }

    /// Which transactions have ended, as `pg_current_snapshot` says it, and when the server was
    /// started.
    ///
    /// # Errors
    /// As [`Judges::judge`].
    pub async fn snapshot(
        &self,
        config: &PoolConfig,
        proven: Option<Credential>,
    ) -> Result<(String, i64), String> {
        match self.ask(&Key::of(config), config, proven, What::Snapshot).await? {
            Told::Snapshot(snapshot, server) => Ok((snapshot, server)),
            _ => Err("something else was told".to_owned()),
        }
    }

    async fn ask(
        &self,
        key: &Key,
        config: &PoolConfig,
        proven: Option<Credential>,
        what: What,
    ) -> Answer {
        let (reply, answer) = oneshot::channel();
        let database = config.database.clone();
        self.enqueue(key, config, proven, Question { what, database, reply })?;
        match tokio::time::timeout(ANSWER_MAX, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err("the connection to the catalogues was lost".to_owned()),
            Err(_) => Err(format!("the catalogues did not answer within {ANSWER_MAX:?}")),
        }
    }

    fn enqueue(
        &self,
        key: &Key,
        config: &PoolConfig,
        proven: Option<Credential>,
        question: Question,
    ) -> Result<(), String> {
        let mut state = lock(&self.state);
        let now = Instant::now();
        state.failed.retain(|_, failed| now < failed.until || failed.logged.elapsed() < PAUSE);
        if let Some(failed) = state.failed.get(key).filter(|failed| now < failed.until) {
            return Err(failed.why.clone());
        }
        state.queues.retain(|_, queue| !queue.is_closed());
        if !state.queues.contains_key(key) && state.queues.len() >= CONNECTIONS_MAX {
            return Err(format!("{CONNECTIONS_MAX} connections ask catalogues already"));
        }
        let queue = state.queues.entry(key.clone()).or_insert_with(|| {
            let (queue, questions) = mpsc::channel(QUESTIONS_MAX);
            let task = Task {
                dialer: self.dialer.clone(),
                procedures: self.procedures.clone(),
                bodies: self.bodies.clone(),
                state: self.state.clone(),
                key: key.clone(),
                config: config.clone(),
                proven,
                logged: None,
            };
            tokio::spawn(task.run(questions));
            queue
        });
        queue
            .try_send(question)
            .map_err(|_| format!("more than {QUESTIONS_MAX} statements wait to be judged"))
    }
}

/// Whether a built-in function is stable for no other reason than settings.
#[cfg(test)]
pub fn depends_on_settings(function: &str) -> bool {
    stable::depends(function).is_some()
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Key {
    fn of(config: &PoolConfig) -> Key {
        let upstream = &config.upstream;
        let place = Place { hosts: upstream.hosts(), database: upstream.database.clone() };
        let connect_query = upstream.connect_query.clone();
        Key { place, user: upstream.user.clone(), connect_query }
    }
}

impl State {
    fn called(&mut self, config: &PoolConfig, proven: Option<&Credential>) {
        if self.callers.contains_key(&config.database) {
            return;
        }
        if self.callers.len() >= PLACES_MAX {
            self.callers.clear();
        }
        self.callers.insert(config.database.clone(), (config.clone(), proven.cloned()));
    }

    /// The verdict that is kept for this text, or the place where it will be; and the epoch.
    fn kept(
        &mut self,
        key: &Key,
        config: &PoolConfig,
        text: &[u8],
    ) -> (Arc<OnceCell<Verdict>>, u64) {
        if !self.places.contains_key(&config.database) {
            if self.places.len() >= PLACES_MAX {
                self.places.clear();
            }
            self.places.insert(config.database.clone(), key.place.clone());
        }
        let now = Instant::now();
        let wanted = (key.clone(), Wishes::of(config), Box::from(text));
        if let Some(kept) = self.kept.get(&wanted) {
            if now.duration_since(kept.since) < KEPT_FOR {
                return (kept.verdict.clone(), self.epoch);
            }
        }
        if self.kept_bytes + cost(text) > KEPT_BYTES_MAX {
            self.keep(|_, kept| now.duration_since(kept.since) < KEPT_FOR);
        }
        if self.kept_bytes + cost(text) > KEPT_BYTES_MAX {
            self.keep(|_, _| false);
        }
        let verdict = Arc::<OnceCell<Verdict>>::default();
        let kept = Kept { since: now, verdict: verdict.clone(), bytes: cost(text) };
        self.kept_bytes += kept.bytes;
        if let Some(old) = self.kept.insert(wanted, kept) {
            self.kept_bytes -= old.bytes;
        }
        (verdict, self.epoch)
    }

    /// Whether nobody has dropped this place since it was made, as a change of definitions does.
    fn still_keeps(
        &self,
        key: &Key,
        config: &PoolConfig,
        text: &[u8],
        place: &Arc<OnceCell<Verdict>>,
    ) -> bool {
        let kept = self.kept.get(&(key.clone(), Wishes::of(config), Box::from(text)));
        kept.is_some_and(|kept| Arc::ptr_eq(&kept.verdict, place))
    }

    /// Counts what a verdict takes that is there by now.
    fn weigh(&mut self, key: &Key, config: &PoolConfig, text: &[u8], verdict: &Verdict) {
        let more = verdict.cache.as_ref().map_or_else(String::len, |kept| kept.weight());
        let wanted = (key.clone(), Wishes::of(config), Box::from(text));
        if let Some(kept) = self.kept.get_mut(&wanted) {
            let bytes = cost(text) + more;
            self.kept_bytes = self.kept_bytes - kept.bytes + bytes;
            kept.bytes = bytes;
        }
    }

    fn keep(&mut self, mut keeps: impl FnMut(&Key, &Kept) -> bool) {
        let bytes = &mut self.kept_bytes;
        self.kept.retain(|(key, ..), kept| {
            let keeps = keeps(key, kept);
            if !keeps {
                *bytes -= kept.bytes;
            }
            keeps
        });
    }
}

impl Wishes {
    fn of(config: &PoolConfig) -> Wishes {
        let calls = (config.procedures != Calls::Off).then(|| config.database.clone());
        Wishes { caches: config.cache != CacheMode::Off, calls }
    }
}

fn cost(text: &[u8]) -> usize {
    text.len() + KEPT_OVERHEAD
}

/// Asks one catalogue.
struct Task {
    dialer: Arc<Dialer>,
    procedures: Arc<Procedures>,
    bodies: Arc<Bodies>,
    state: Arc<Mutex<State>>,
    key: Key,
    config: PoolConfig,
    proven: Option<Credential>,
    /// When something was last logged.
    logged: Option<Instant>,
}

/// A connection, and since when.
type Live = Option<(Connection, Instant)>;

impl Task {
    /// Answers until the queue is closed or idle, or there is no connection to be had.
    async fn run(mut self, mut questions: mpsc::Receiver<Question>) {
        let mut live = None;
        while let Ok(Some(Question { what, database, reply })) =
            tokio::time::timeout(IDLE_MAX, questions.recv()).await
        {
            if reply.is_closed() {
                continue;
            }
            let answer = match self.answer(&mut live, &what, &database).await {
                Ok(answer) => answer,
                Err(unreached) => {
                    self.failed(&unreached);
                    return refuse_all(reply, questions, &unreached.why);
                }
            };
            if let Err(why) = &answer {
                self.log(why);
            }
            // Who asked may have given up.
            let _ = reply.send(answer);
        }
        if let Some((connection, _)) = live {
            connection.close().await;
        }
    }

    /// # Errors
    /// When there is no connection to be had.
    async fn answer(
        &self,
        live: &mut Live,
        what: &What,
        database: &str,
    ) -> Result<Answer, Unreached> {
        loop {
            let used = live.take().filter(|(_, since)| since.elapsed() < AGE_MAX);
            let fresh = used.is_none();
            let (mut connection, since) = match used {
                Some(used) => used,
                None => {
                    let proven = self.proven.clone();
                    let made = Connection::open(&self.dialer, &self.config, proven).await?;
                    (made, Instant::now())
                }
            };
            let judging = self.look(&mut connection, what, database);
            match tokio::time::timeout(JUDGING_MAX, judging).await {
                Ok(Ok(told)) => {
                    *live = Some((connection, since));
                    return Ok(Ok(told));
                }
                Ok(Err(Failure::Refused(error))) => {
                    *live = Some((connection, since));
                    return Ok(Err(format!("the catalogues refused a look-up: {error}")));
                }
                // It may have been closed while nobody used it.
                Ok(Err(Failure::Lost(_))) if !fresh => {}
                Ok(Err(Failure::Lost(why))) => return Ok(Err(why)),
                Err(_) => return Ok(Err(format!("a look-up took longer than {JUDGING_MAX:?}"))),
            }
        }
    }

    async fn look(
        &self,
        connection: &mut Connection,
        what: &What,
        database: &str,
    ) -> Result<Told, Failure> {
        let (parsed, call, lanes) = match what {
            What::Statement { parsed, call, lanes } => (&**parsed, call, *lanes),
            What::Blocked => return Ok(Told::Blocked(connection.blocked().await?)),
            What::Snapshot => {
                let (snapshot, server) = connection.snapshot().await?;
                return Ok(Told::Snapshot(snapshot, server));
            }
            What::Table(wanted) => {
                let found = connection.table(wanted, &self.key.user).await?;
                return Ok(Told::Table(found));
            }
            What::Routines(name) => {
                let examined = self.looking(connection, database).examine(name).await?;
                return Ok(Told::Procedures(examined));
            }
        };
        let mut verdict = match parsed {
            Ok(parsed) => statement::judge(&PostgresParser, connection, parsed).await?,
            Err(verdict) => verdict.clone(),
        };
        if let (Ok(parsed), true, Writes::Rows(written)) = (parsed, lanes, &verdict.writes) {
            let values = if written.inserts { parsed.conflicts() } else { &written.fixed };
            verdict.row =
                rows::row(connection, &self.procedures, database, written.table, values).await?;
        }
        if let Some(call) = call {
            let meant = match self.looking(connection, database).call(call).await {
                // It would take as long the next time, and a call may travel as any statement.
                Err(Failure::Refused(error)) if error.code == sqlstate::QUERY_CANCELED => None,
                meant => meant?,
            };
            verdict.call = meant.map(Arc::new);
        }
        Ok(Told::Verdict(Box::new(verdict)))
    }

    fn looking<'a>(&'a self, connection: &'a mut Connection, database: &'a str) -> Looking<'a> {
        let (bodies, procedures, place) = (&self.bodies, &self.procedures, &self.key.place);
        Looking { connection, bodies, procedures, place, database }
    }

    fn failed(&mut self, unreached: &Unreached) {
        let Unreached { why, permanent } = unreached;
        let now = Instant::now();
        let until = now + if *permanent { PAUSE } else { PAUSE_SHORT };
        let logged = {
            let mut state = lock(&self.state);
            if state.failed.len() >= FAILED_MAX {
                state.failed.clear();
            }
            let before = state.failed.get(&self.key).map(|before| before.logged);
            let lately = before.filter(|logged| logged.elapsed() < PAUSE);
            let (why, logged) = (why.clone(), lately.unwrap_or(now));
            state.failed.insert(self.key.clone(), Failed { why, until, logged });
            lately
        };
        self.logged = self.logged.max(logged);
        self.log(why);
    }

    fn log(&mut self, why: &str) {
        if self.logged.is_some_and(|logged| logged.elapsed() < PAUSE) {
            return;
        }
        self.logged = Some(Instant::now());
        let (db, user) = (&self.config.database, &self.config.user);
        tracing::warn!(event = "judge_failed", db, user, error = why);
    }
}

fn refuse_all(first: oneshot::Sender<Answer>, mut questions: mpsc::Receiver<Question>, why: &str) {
    questions.close();
    let _ = first.send(Err(why.to_owned()));
    while let Ok(question) = questions.try_recv() {
        let _ = question.reply.send(Err(why.to_owned()));
    }
}
