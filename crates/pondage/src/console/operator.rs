//! Runs the console's requests: asks the workers, tells the workers, answers with tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backend::moment::Moment;
use tokio::sync::oneshot;
use tokio::time::Instant;
use wire::pg::sqlstate;

use super::command::{Act, Constant, ConstantValue, Request, Show};
use super::session::{Answer, Notice};
use super::show::{self, Facts};
use super::stats::{self, Sampler};
use super::table::{Table, Value};
use super::view::{self, View};
use super::{columns, mirroring, procedures, reference, Failure, Process, SetRefused};
use crate::config::is_console;
use crate::config::nearest::nearest;
use crate::control::messages::{Command, ConsoleUser, ToWorker};
use crate::worker::snapshot::{Detail, PoolSnapshot};

/// A worker's turn takes milliseconds; one that has not answered after this is stuck.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(5);
/// When an operator begins, so that the first averages have a second before them.
pub const FIRST_MOMENT: Moment = Moment(1_000_000);
/// Databases behind the wildcard that may be paused or disabled by name.
const SWITCHES_MAX: usize = 10_000;

/// What the console's commands act on; the HTTP door reads through it too.
pub struct Operator {
    process: Arc<dyn Process>,
    /// [`FIRST_MOMENT`].
    began: Instant,
    /// Commands of console clients.
    commands: AtomicU64,
    /// Guards two samples; held for map look-ups only.
    sampler: Mutex<Sampler>,
    /// Guards what PAUSE and its like have set; held for set look-ups only.
    switches: Mutex<Switches>,
}

/// What PAUSE, KILL, DISABLE and ENABLE have set, for databases that no worker has a pool of yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Switches {
    all_paused: bool,
    suspended: bool,
    paused: BTreeSet<String>,
    /// False: enabled against the configuration.
    disabled: BTreeMap<String, bool>,
}

impl Switches {
    pub fn all_paused(&self) -> bool {
        self.all_paused
    }

    pub fn suspended(&self) -> bool {
        self.suspended
    }

    /// `pools`: all of this database. They know better, where there are any.
    pub fn is_paused(&self, database: &str, pools: &[&PoolSnapshot]) -> bool {
        match pools {
            [] => self.all_paused || self.paused.contains(database),
            pools => pools.iter().any(|pool| pool.paused),
        }
    }

    pub fn is_disabled(&self, database: &str, configured: bool, pools: &[&PoolSnapshot]) -> bool {
        match pools {
            [] => self.disabled.get(database).copied().unwrap_or(configured),
            pools => pools.iter().any(|pool| pool.disabled),
        }
    }

    /// PAUSE of all, or SUSPEND.
    fn is_still(&self) -> bool {
        self.all_paused || self.suspended
    }

    #[cfg(test)]
    pub fn paused(database: &str) -> Switches {
        let mut switches = Switches::default();
        switches.pause(&Some(database.to_owned()));
        switches
    }

    #[cfg(test)]
    pub fn everything_paused() -> Switches {
        let mut switches = Switches::default();
        switches.pause(&None);
        switches
    }

    fn pause(&mut self, database: &Option<String>) {
        match database {
            None => self.all_paused = true,
            Some(name) => drop(self.paused.insert(name.clone())),
        }
    }

    fn resume(&mut self, database: &Option<String>) {
        match database {
            None => {
                (self.all_paused, self.suspended) = (false, false);
                self.paused.clear();
            }
            Some(name) => drop(self.paused.remove(name)),
        }
    }
}

/// What a SHOW needs of the workers beside their pools.
fn detail(show: Show) -> Detail {
    match show {
        Show::Clients
        | Show::Servers
        | Show::Sockets
        | Show::ActiveSockets
        | Show::Users
        | Show::Databases => Detail::CONNECTIONS,
        Show::Queries | Show::ProxiedQueries | Show::Channels | Show::Advice => Detail::STATEMENTS,
        _ => Detail::POOLS,
    }
}

impl Operator {
    pub fn new(process: Arc<dyn Process>) -> Operator {
        Operator {
            process,
            began: Instant::now(),
            commands: AtomicU64::new(0),
            sampler: Mutex::new(Sampler::new(FIRST_MOMENT)),
            switches: Mutex::new(Switches::default()),
        }
    }

    pub fn process(&self) -> &dyn Process {
        &*self.process
    }

    pub fn uptime(&self) -> Duration {
        self.began.elapsed()
    }

    fn now(&self) -> Moment {
        FIRST_MOMENT.after(self.began.elapsed())
    }

    fn sampler(&self) -> MutexGuard<'_, Sampler> {
        self.sampler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn switches(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a sample at the end of every `stats_period`; a period that a worker kept silent in
    /// goes on to the next.
    pub async fn sample_for_ever(self: Arc<Self>) {
        loop {
            let period = self.process.config().telemetry.stats_period;
            tokio::time::sleep(period.max(Duration::from_secs(1))).await;
            let view = view::look(self.process(), SNAPSHOT_WAIT, Detail::POOLS).await;
            if view.silent.is_empty() {
                let pools = view::pools(&view.workers);
                let calls = procedures::calls(&self.process.procedures().list());
                let databases = stats::of_all(&pools, self.commands.load(Ordering::Relaxed));
                let mut sampler = self.sampler();
                if self.process.config().telemetry.log_stats {
                    log_stats(&sampler.overall(self.now(), &databases));
                }
                sampler.sample(self.now(), databases, calls);
            }
        }
    }

    pub async fn run(&self, who: &ConsoleUser, request: Request) -> Answer {
        self.commands.fetch_add(1, Ordering::Relaxed);
        let mut notices = Vec::new();
        let result = match request {
            Request::Show(Show::Help) => {
                notices.push(Notice {
                    severity: "NOTICE",
                    message: "Console usage".to_owned(),
                    detail: Some(reference::help()),
                });
                Ok(None)
            }
            Request::Show(show) => self.show(who, show).await.map(Some),
            Request::ShowSetting(setting) => {
                Ok(one_row(&Request::ShowSetting(setting), vec![Value::text(setting.value)]))
            }
            Request::Select(constants) => {
                let row = constants.iter().map(|constant| constant_value(who, constant)).collect();
                Ok(one_row(&Request::Select(constants), row))
            }
            Request::Ignored { notice, .. } => {
                notices.extend(notice.map(plain_notice));
                Ok(None)
            }
            Request::Act(act) => self.act(who, act, &mut notices).await.map(|()| None),
            Request::Procedure(command) => self.procedure(who, *command, &mut notices).await,
            Request::Cache(command) => self.cache(who, *command, &mut notices).await,
        };
        Answer { notices, result }
    }

    async fn show(&self, who: &ConsoleUser, show: Show) -> Result<Table, Failure> {
        let none = || {
            Failure::new(sqlstate::FEATURE_NOT_SUPPORTED, "SHOW FDS is not available").hint(
                "File descriptors are never handed to a client; SHOW SOCKETS lists connections.",
            )
        };
        if columns::of_show(show).is_none() {
            return Err(none());
        }
        let view = self.whole(view::look(self.process(), SNAPSHOT_WAIT, detail(show)).await)?;
        self.tables(who, view, &[show]).pop().map(|(_, table)| table).ok_or_else(none)
    }

    /// The tables of these SHOWs, of one moment; `view` has the detail that they need.
    pub fn tables(&self, who: &ConsoleUser, mut view: View, shows: &[Show]) -> Vec<(Show, Table)> {
        let config = self.process.config();
        let pools = view::pools(&view.workers);
        let switches = self.switches().clone();
        let sampler = self.sampler();
        let mut caches = self.process.caches().all();
        let mut streams = self.process.streams();
        let mut procedures = self.process.procedures().list();
        let mut mirrors = mirroring::of(self.process());
        let mut pins = self.process.pins().all();
        let mut hosts = self.process.hosts();
        let mut look_ups = self.process.look_ups();
        let mut events = match shows.contains(&Show::Events) {
            true => self.process.events(),
            false => Vec::new(),
        };
        if !is_console(&who.database) {
            let own = who.database.as_str();
            caches.retain(|cache| cache.database == own);
            streams.retain(|stream| stream.database == own);
            procedures.retain(|procedure| procedure.database == own);
            mirrors.retain(|(database, _)| database == own);
            pins.retain(|pin| pin.database == own);
            hosts.retain(|host| host.database == own);
            look_ups.retain(|row| row.database == own);
            events.retain(|one| one.database.as_deref() == Some(own));
            for worker in &mut view.workers {
                worker.queries.retain(|row| row.database == own);
                worker.channels.retain(|row| row.database == own);
                worker.pins.retain(|row| row.database == own);
            }
        }
        let redis = self.process.redis(shows.contains(&Show::RedisClients));
        let facts = Facts {
            config: &config,
            workers: &view.workers,
            pools: &pools,
            switches: &switches,
            sampler: &sampler,
            redis: redis.as_ref(),
            caches: &caches,
            streams: &streams,
            hosts: &hosts,
            look_ups: &look_ups,
            events: &events,
            mirrors: &mirrors,
            pins: &pins,
            procedures: &procedures,
            kept: self.process.kept(),
            commands: self.commands.load(Ordering::Relaxed),
            now: self.now(),
        };
        shows.iter().filter_map(|show| Some((*show, show::table(*show, &facts)?))).collect()
    }

    /// A view that no worker is missing from.
    pub(super) async fn look(&self) -> Result<View, Failure> {
        self.whole(view::look(self.process(), SNAPSHOT_WAIT, Detail::CONNECTIONS).await)
    }

    fn whole(&self, view: View) -> Result<View, Failure> {
        match view.silent.as_slice() {
            [] => Ok(view),
            [worker, ..] => {
                let wait = SNAPSHOT_WAIT.as_secs();
                let message = format!("worker {worker} did not answer within {wait} s");
                Err(Failure::new(sqlstate::SYSTEM_ERROR, message))
            }
        }
    }

    async fn act(
        &self,
        who: &ConsoleUser,
        act: Act,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Failure> {
        if !who.admin {
            let failure = Failure::new(sqlstate::INSUFFICIENT_PRIVILEGE, "admin access needed");
            return Err(failure.hint("auth.admin_users lists who may do this."));
        }
        tracing::info!(event = "console_command", user = %who.user, db = act.database(),
            command = act.tag(), "{act:?}");
        match act {
            Act::Reload => self.reload(notices).await,
            Act::Pause(database) => self.pause(database).await,
            Act::Resume(database) => self.resume(database).await,
            Act::Reconnect(database) => {
                self.known("reconnect", &database)?;
                self.tell(Command::Reconnect { database }).await
            }
            Act::Disable(database) => self.set_disabled(database, true).await,
            Act::Enable(database) => self.set_disabled(database, false).await,
            Act::Kill(database) => {
                self.known("kill", &database)?;
                self.room_for(&database)?;
                self.switches().pause(&database);
                self.tell(Command::Kill { database }).await
            }
            Act::KillClient(id) => self.kill_client(id).await,
            Act::WaitClose(database) => {
                self.known("wait in", &database)?;
                self.tell(Command::WaitClose { database }).await
            }
            Act::Suspend => self.suspend().await,
            Act::Shutdown(how) => {
                self.process.shutdown(how);
                Ok(())
            }
            Act::Set { name, value } => self.set(&name, &value.0, notices).await,
        }
    }

    async fn set(&self, name: &str, value: &str, notices: &mut Vec<Notice>) -> Result<(), Failure> {
        let refused = match self.process.set(name, value).await {
            Ok(notes) => {
                notices.extend(notes.iter().map(|note| plain_notice(note)));
                return Ok(());
            }
            Err(refused) => refused,
        };
        Err(match refused {
            SetRefused::Restart => Failure::new(
                sqlstate::CANT_CHANGE_RUNTIME_PARAM,
                format!("\"{name}\" cannot be changed without a restart"),
            )
            .hint("Change it in the configuration, then restart or `pondage upgrade`."),
            SetRefused::Unknown(text) => {
                let message = format!("\"{name}\" cannot be set from the console");
                Failure::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
                    .detail(text)
                    .hint("SHOW CONFIG lists what there is.")
            }
            SetRefused::Unfit(text) => {
                let message = format!("invalid value for \"{name}\"");
                Failure::new(sqlstate::INVALID_PARAMETER_VALUE, message).detail(text)
            }
        })
    }

    async fn reload(&self, notices: &mut Vec<Notice>) -> Result<(), Failure> {
        match self.process.reload().await {
            Ok(restarts) => {
                notices.extend(restarts.into_iter().map(|message| Notice {
                    severity: "WARNING",
                    message,
                    detail: None,
                }));
                Ok(())
            }
            Err(reason) => Err(Failure::new(sqlstate::CONFIG_FILE_ERROR, "RELOAD failed")
                .detail(reason)
                .hint("The configuration that ran before goes on running.")),
        }
    }

    async fn pause(&self, database: Option<String>) -> Result<(), Failure> {
        self.known("pause", &database)?;
        self.room_for(&database)?;
        if self.switches().is_still() {
            return Err(state_failure("already suspended/paused"));
        }
        // From now on, for a database that no worker knows yet; the wait may be long.
        self.switches().pause(&database);
        let told = self.tell(Command::Pause { database: database.clone() }).await;
        if told.is_err() {
            self.switches().resume(&database);
        }
        told
    }

    async fn suspend(&self) -> Result<(), Failure> {
        if self.process.condition().stopping {
            return Err(state_failure("pooler is shutting down"));
        }
        {
            let mut switches = self.switches();
            if switches.is_still() {
                return Err(state_failure("already suspended/paused"));
            }
            if !switches.paused.is_empty() {
                return Err(state_failure("cannot suspend with paused databases"));
            }
            switches.suspended = true;
        }
        let limit = self.process.config().runtime.suspend_timeout;
        let written = self.tell(Command::Suspend { force: false });
        let told = match limit.is_zero() {
            true => written.await,
            false => match tokio::time::timeout(limit, written).await {
                Ok(told) => told,
                Err(_) => self.tell(Command::Suspend { force: true }).await,
            },
        };
        if told.is_err() {
            self.end_suspension("not every worker could be suspended").await;
        }
        told
    }

    /// RESUME, if it is SUSPEND that holds clients back.
    pub async fn end_suspension(&self, why: &str) {
        if !std::mem::take(&mut self.switches().suspended) {
            return;
        }
        tracing::info!(event = "resumed", "{why}");
        // A worker that is gone has nobody to go on with.
        let _ = self.tell(Command::Resume { database: None }).await;
    }

    /// As PAUSE on the console, for USR1; with PgBouncer's words.
    pub async fn pause_all(&self) {
        match self.pause(None).await {
            Ok(()) => tracing::info!(event = "signal_obeyed", "got SIGUSR1, pausing all activity"),
            Err(failure) => tracing::warn!(
                event = "signal_ignored",
                why = failure.message,
                "got SIGUSR1, but already paused/suspended"
            ),
        }
    }

    /// As RESUME on the console, for USR2.
    pub async fn resume_all(&self) {
        let said = match self.resume(None).await {
            Ok(()) => {
                tracing::info!(event = "signal_obeyed", "got SIGUSR2, continuing");
                return;
            }
            Err(_) if self.process.condition().stopping => {
                "got SIGUSR2 while shutting down, ignoring"
            }
            Err(_) => "got SIGUSR2, but not paused/suspended",
        };
        tracing::warn!(event = "signal_ignored", "{said}");
    }

    async fn resume(&self, database: Option<String>) -> Result<(), Failure> {
        if self.process.condition().stopping {
            return Err(state_failure("pooler is shutting down"));
        }
        let view = self.look().await?;
        let pools = view::pools(&view.workers);
        match &database {
            None => {
                let switches = self.switches();
                let any_paused = switches.all_paused
                    || switches.suspended
                    || !switches.paused.is_empty()
                    || pools.iter().any(|pool| pool.paused);
                if !any_paused {
                    return Err(state_failure("pooler is not paused/suspended"));
                }
            }
            Some(name) => {
                self.known("resume", &database)?;
                let pools: Vec<_> = pools.iter().filter(|pool| pool.database == *name).collect();
                if !self.switches().is_paused(name, &pools) {
                    return Err(state_failure(format!("database {name} is not paused")));
                }
            }
        }
        self.tell(Command::Resume { database: database.clone() }).await?;
        self.switches().resume(&database);
        Ok(())
    }

    async fn set_disabled(&self, database: String, disabled: bool) -> Result<(), Failure> {
        let verb = if disabled { "disable" } else { "enable" };
        let named = Some(database.clone());
        self.known(verb, &named)?;
        self.room_for(&named)?;
        let command = match disabled {
            true => Command::Disable { database: database.clone() },
            false => Command::Enable { database: database.clone() },
        };
        self.tell(command).await?;
        self.switches().disabled.insert(database, disabled);
        Ok(())
    }

    async fn kill_client(&self, id: u64) -> Result<(), Failure> {
        let view = self.look().await?;
        let found = view.workers.iter().find_map(|worker| {
            let client = worker.clients.iter().find(|client| client.id == id)?;
            Some((worker.worker, client.slot, client.generation))
        });
        let (worker, slot, generation) =
            found.ok_or_else(|| Failure::new(sqlstate::UNDEFINED_OBJECT, "client not found"))?;
        let answer = self.order(worker, Command::KillClient { slot, generation });
        heard(worker, answer.await)
    }

    /// That there is such a database and that it is not the console.
    pub(super) fn known(&self, verb: &str, database: &Option<String>) -> Result<(), Failure> {
        let Some(name) = database else { return Ok(()) };
        let config = self.process.config();
        let configured = |name: &str| config.databases.contains_key(name);
        if configured(name) {
            return Ok(());
        }
        if is_console(name) {
            return Err(state_failure(format!("cannot {verb} admin db: {name}")));
        }
        if configured("*") {
            return Ok(());
        }
        let failure =
            Failure::new(sqlstate::INVALID_CATALOG_NAME, format!("no such database: {name}"));
        let names = config.databases.keys().map(String::as_str);
        Err(match nearest(name, names) {
            Some(near) => failure.hint(format!("Did you mean {near}?")),
            None => failure.hint("SHOW DATABASES lists them."),
        })
    }

    /// Names behind the wildcard are the client's to choose, so their number has a limit.
    fn room_for(&self, database: &Option<String>) -> Result<(), Failure> {
        let switches = self.switches();
        if database.is_none() || switches.paused.len().max(switches.disabled.len()) < SWITCHES_MAX {
            return Ok(());
        }
        let message = format!("more than {SWITCHES_MAX} databases paused or disabled by name");
        Err(Failure::new(sqlstate::CONFIGURATION_LIMIT_EXCEEDED, message))
    }

    /// Has every worker do it, and waits until all have.
    async fn tell(&self, command: Command) -> Result<(), Failure> {
        let answers: Vec<_> = (0..self.process.workers())
            .map(|worker| (worker, self.order(worker, command.clone())))
            .collect();
        let mut result = Ok(());
        for (worker, answer) in answers {
            result = result.and(heard(worker, answer.await));
        }
        result
    }

    fn order(&self, worker: u8, command: Command) -> oneshot::Receiver<Result<(), String>> {
        let (reply, answer) = oneshot::channel();
        // To a worker that is gone the reply is dropped, which ends the wait.
        self.process.send(worker, ToWorker::Command { command, reply });
        answer
    }
}

/// Rates per second; times in microseconds, of one.
fn log_stats(averages: &stats::Averages) {
    let stats::Averages {
        server_assignment_count,
        xact_count,
        query_count,
        received,
        sent,
        xact_time_us,
        query_time_us,
        wait_time_us,
        client_parse_count,
        server_parse_count,
        bind_count,
        client_login_count,
    } = *averages;
    tracing::info!(
        event = "stats",
        xacts = xact_count,
        queries = query_count,
        assignments = server_assignment_count,
        client_parses = client_parse_count,
        server_parses = server_parse_count,
        binds = bind_count,
        logins = client_login_count,
        received,
        sent,
        xact_us = xact_time_us,
        query_us = query_time_us,
        wait_us = wait_time_us,
        "averages of all databases"
    );
}

fn heard(
    worker: u8,
    answer: Result<Result<(), String>, oneshot::error::RecvError>,
) -> Result<(), Failure> {
    match answer {
        Ok(Ok(())) => Ok(()),
        Ok(Err(reason)) => Err(state_failure(reason)),
        Err(_) => {
            let message = format!("worker {worker} went away before it was done");
            Err(Failure::new(sqlstate::SYSTEM_ERROR, message))
        }
    }
}

fn state_failure(message: impl Into<String>) -> Failure {
    Failure::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

fn plain_notice(message: &str) -> Notice {
    Notice { severity: "NOTICE", message: message.to_owned(), detail: None }
}

fn one_row(request: &Request, row: Vec<Value>) -> Option<Table> {
    columns::of(request).map(|columns| Table { columns, rows: vec![row] })
}

fn constant_value(who: &ConsoleUser, constant: &Constant) -> Value {
    match &constant.value {
        ConstantValue::Int(number) => Value::Int((*number).into()),
        ConstantValue::Text(text) => Value::text(text.clone()),
        ConstantValue::User => Value::text(who.user.clone()),
        ConstantValue::Database => Value::text(who.database.clone()),
        ConstantValue::Version => Value::text(show::version()),
    }
}
