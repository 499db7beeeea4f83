//! What the control plane and other workers tell this one.

use std::sync::Arc;

use tokio::sync::oneshot;
use wire::pg::backend::{ErrorReply, TxStatus};
use wire::pg::frame;
use wire::pg::frontend::tag;
use wire::pg::{backend as reply, sqlstate};

use super::lending::removed;
use super::login::{key_number, key_parts};
use super::surveying::Touched;
use super::{Effect, Place, Plane, PoolState, Preparing};
use crate::config::{CacheMode, Config, PoolMode};
use crate::control::messages::{Command, Ref, Shutdown, ToControl, ToWorker};
use crate::session::client::{Client, Hold, Phase, NONE};
use crate::session::login::Refused;

/// A command whose answer has to wait.
#[derive(Debug)]
pub(super) struct Wait {
    until: Until,
    reply: oneshot::Sender<Result<(), String>>,
}

#[derive(Debug)]
enum Until {
    /// No server of these pools is in use.
    Quiet(Option<String>),
    /// No server of an earlier epoch is left.
    Renewed(Option<String>),
    /// Clients and servers have been sent everything.
    Written,
}

impl PoolState {
    /// Its servers are to be others, of which sessions are told as well.
    fn renew(&mut self) {
        self.epoch += 1;
        self.renewed = self.epoch;
    }
}

impl Plane {
    /// A message without a socket in it; those with one are the driver's.
    pub fn control(&mut self, message: ToWorker) {
        match message {
            ToWorker::ServerOpened { ticket, result: Err(error) } => {
                self.open_failed(ticket, error)
            }
            ToWorker::AuthAnswer { .. }
            | ToWorker::PasswordChecked { .. }
            | ToWorker::Derived { .. } => self.login_answer(message),
            ToWorker::PeerNamed { client, name } => self.peer_named(client, name),
            ToWorker::CancelDone { server, asker } => {
                self.cancel_heard(asker);
                if let Some(conn) = self.servers.find(server.slot, server.generation) {
                    conn.cancels = conn.cancels.saturating_sub(1);
                    self.settle_server(server.slot);
                }
            }
            ToWorker::ConsoleReply { client, bytes, close } => {
                if self.clients.find(client.slot, client.generation).is_some() {
                    self.tell(client.slot, |out| out.extend_from_slice(&bytes));
                    if close {
                        self.close_client(client.slot, None);
                    }
                }
            }
            ToWorker::CacheReply { client, bytes } => self.cache_reply(client, &bytes),
            ToWorker::Snapshot { detail, reply } => {
                self.tell_counted();
                let _ = reply.send(Box::new(self.snapshot(detail)));
            }
            ToWorker::Running { database, reply } => {
                // Who asked may have given up.
                let _ = reply.send(self.running(&database));
            }
            ToWorker::Command { command, reply } => self.command(command, reply),
            ToWorker::Reload { config, tls } => self.reload(config, tls.is_some()),
            ToWorker::Shutdown(shutdown) => self.shut_down(shutdown),
            ToWorker::Wanted { pool, worker } => self.wanted(&pool, worker),
            ToWorker::CancelKey { asker, slot, key } => self.cancel_client(asker, slot, &key),
            ToWorker::CancelHeard { asker } => self.cancel_heard(Some(asker)),
            ToWorker::Judged { pool, shape, verdict, kept, definitions } => {
                self.judged(&pool, shape, verdict);
                self.plan_made(&pool, shape, kept, definitions);
            }
            ToWorker::Redefined { database } => self.redefined(&database),
            ToWorker::Listened { client, number } => self.listened(client, number),
            ToWorker::Notified { audience, message } => self.notified(&audience, &message),
            ToWorker::ListenLost { audience, why } => self.listening_lost(&audience, &why),
            ToWorker::HostsChanged { replicas } => self.leave_hosts(replicas),
            ToWorker::Ping { reply } => drop(reply.send(())),
            ToWorker::CancelRequest { number, key } => self.cancel_by_key(None, number, &key),
            ToWorker::Client { .. }
            | ToWorker::HandshakeFailed
            | ToWorker::Doors { .. }
            | ToWorker::ServerOpened { .. }
            | ToWorker::Server(_)
            | ToWorker::LoggedIn { .. }
            | ToWorker::RedisOpened { .. }
            | ToWorker::LinkOpened { .. }
            // Who waits is looked at at the end of every turn.
            | ToWorker::Applied
            // Whoever waits for them looks at the end of the turn.
            | ToWorker::KeysFree
            | ToWorker::RedisEvents => {}
        }
    }

    /// A CancelRequest has come in; the key says at which worker its client is.
    pub(super) fn cancel_requested(&mut self, asker: u32, number: u32, key: &[u8]) {
        self.clients[asker].hold = Hold::Control;
        let asker = self.reference(asker);
        self.cancel_by_key(Some(asker), number, key);
    }

    /// None asks: another process has it from its client.
    fn cancel_by_key(&mut self, asker: Option<Ref>, number: u32, key: &[u8]) {
        let Some((worker, slot)) = key_parts(number) else {
            return self.cancel_heard(asker);
        };
        if worker == self.worker {
            self.cancel_client(asker, slot, key);
        } else if usize::from(worker) < self.config.runtime.workers {
            let message = ToWorker::CancelKey { asker, slot, key: key.into() };
            self.effects.push(Effect::Peer(worker, message));
        } else {
            self.cancel_elsewhere(asker, number, key);
        }
    }

    /// The client may be an earlier process's, which is told; whether it does something is not known.
    fn cancel_elsewhere(&mut self, asker: Option<Ref>, number: u32, key: &[u8]) {
        let key = key.to_vec();
        self.effects.push(Effect::Control(ToControl::CancelElsewhere { number, key }));
        self.cancel_heard(asker);
    }

    /// Closes the connection that a CancelRequest came by. Until then its sender waits: what it
    /// sends next on the cancelled connection must not be hit by a signal that is late.
    fn cancel_heard(&mut self, asker: Option<Ref>) {
        let Some(asker) = asker else { return };
        if asker.worker != self.worker {
            self.effects.push(Effect::Peer(asker.worker, ToWorker::CancelHeard { asker }));
        } else if self.clients.find(asker.slot, asker.generation).is_some() {
            self.close_client(asker.slot, None);
        }
    }

    /// Cancels what a client does, and tells who asked for it as soon as nothing is under way.
    fn cancel_client(&mut self, asker: Option<Ref>, slot: u32, key: &[u8]) {
        let knows = |client: &Client| self.cancel_keys.is_of(client, key);
        if !self.clients.get(slot).is_some_and(knows) {
            return self.cancel_elsewhere(asker, key_number(self.worker, slot), key);
        }
        match self.cancel_work(slot) {
            Some(server) => self.cancel_server_for(server, asker),
            None => self.cancel_heard(asker),
        }
    }

    /// Cancels what a client is waiting for in its pool's queue, or names the server that is to be
    /// told. For an idle client it does nothing.
    fn cancel_work(&mut self, slot: u32) -> Option<u32> {
        let client = self.clients.get_mut(slot)?;
        // After an error made here the client awaits no other before its Sync.
        if client.skips || client.listens.as_ref().is_some_and(|listens| listens.ready) {
            // So does one whose request is answered but for its ReadyForQuery.
            return None;
        }
        if client.hold == Hold::Waiting && client.is_pooled() {
            let at = client.pool as usize;
            client.hold = Hold::No;
            self.pools[at].pool.leave(slot);
            self.drop_request(slot);
            return None;
        }
        if client.hold == Hold::Stream {
            client.hold = Hold::No;
            self.drop_request_that(slot, "It was waiting for the read cache.");
            return None;
        }
        if client.unit.is_some() {
            return self.cancel_unit(slot);
        }
        let server = client.server;
        let conn = self.servers.get(server)?;
        let set_up = client.hold == Hold::SetUp && conn.preparing != Preparing::Bringing;
        let before_its_turn = set_up
            || client.hold == Hold::Listens
            || (client.queued_resume && conn.server.is_quiet() && !client.batch_open);
        if before_its_turn && conn.server.status() == TxStatus::Idle {
            // It has a server by now, but its request has not been sent.
            // A Sync or Flush runs nothing; nor does what has not come yet.
            let header = frame::header(&client.input).ok().flatten();
            if header.is_some_and(|header| b"QPBDECF".contains(&header.tag)) {
                self.drop_request(slot);
                self.settle_server(server);
            }
            return None;
        }
        (!conn.server.is_quiet()).then_some(server)
    }

    /// The client's request has not been sent to a server: it is answered as PostgreSQL answers
    /// one that was cancelled, and dropped. A transaction of which no server knows has failed.
    pub(super) fn drop_request(&mut self, slot: u32) {
        self.drop_request_that(slot, "It was waiting for a server connection.");
    }

    fn drop_request_that(&mut self, slot: u32, waited: &str) {
        let client = &mut self.clients[slot];
        let mut simple = false;
        if let Ok(Some(header)) = frame::header(&client.input) {
            simple = matches!(header.tag, tag::QUERY | tag::FUNCTION_CALL);
            if simple {
                let have = client.input.len().min(header.total);
                client.input.drain(..have);
                client.rest = (header.total - have) as u32;
                client.rest_goes = crate::session::client::Rest::Dropped;
            }
            // As every simple query does, also one that is cancelled.
            if let (tag::QUERY, Some(names)) = (header.tag, &mut client.names) {
                names.forget_unnamed();
            }
        }
        client.skips = !simple;
        client.fill = None;
        // What it has waited for says nothing of the next request.
        if let Some(reads) = &mut client.reads {
            reads.awaits = None;
        }
        if let Some(begun) = &mut client.begun {
            begun.failed = true;
        }
        let status = client.status();
        self.tell(slot, |out| {
            reply::put_error(
                out,
                &ErrorReply {
                    severity: "ERROR",
                    code: sqlstate::QUERY_CANCELED,
                    message: "canceling statement due to user request",
                    detail: Some(waited),
                    hint: None,
                },
            );
            if simple {
                reply::put_ready(out, status);
            }
        });
        self.resume_later(slot);
    }

    fn command(&mut self, command: Command, reply: oneshot::Sender<Result<(), String>>) {
        match command {
            Command::Pause { database } => {
                self.paused.insert(database.clone());
                // As PgBouncer does: whoever pauses wants to restart or move the database.
                self.each_pool(&database, |pool| {
                    pool.paused = true;
                    pool.epoch += 1;
                });
                self.close_idle();
                self.waits.push(Wait { until: Until::Quiet(database), reply });
            }
            Command::Resume { database } => {
                match &database {
                    None => self.paused.clear(),
                    Some(_) => drop(self.paused.remove(&database)),
                }
                self.each_pool(&database, |pool| {
                    pool.paused = false;
                    pool.pool.retry_now();
                });
                if database.is_none() {
                    self.resume_suspended();
                }
                self.serve_all();
                let _ = reply.send(Ok(()));
            }
            Command::Suspend { force } => self.suspend(force, reply),
            Command::Reconnect { database } => {
                self.each_pool(&database, |pool| {
                    pool.renew();
                    pool.pool.retry_now();
                });
                self.close_idle();
                self.listen_anew(database, None);
                let _ = reply.send(Ok(()));
            }
            Command::Disable { database } => {
                self.disabled.insert(database.clone());
                self.each_pool(&Some(database), |pool| pool.disabled = true);
                let _ = reply.send(Ok(()));
            }
            Command::Enable { database } => {
                self.disabled.remove(&database);
                self.each_pool(&Some(database), |pool| pool.disabled = false);
                self.serve_all();
                let _ = reply.send(Ok(()));
            }
            Command::Kill { database } => {
                self.kill(&database);
                self.listen_anew(database, Some("KILL"));
                let _ = reply.send(Ok(()));
            }
            Command::KillClient { slot, generation } => {
                let answer = match self.clients.find(slot, generation) {
                    Some(_) => {
                        let refused = Refused::new(
                            sqlstate::ADMIN_SHUTDOWN,
                            "terminating connection due to administrator command",
                        )
                        .theirs("admin forced disconnect");
                        self.close_client(slot, Some(&refused));
                        Ok(())
                    }
                    None => Err("no such client".to_owned()),
                };
                let _ = reply.send(answer);
            }
            Command::WaitClose { database } => {
                self.waits.push(Wait { until: Until::Renewed(database), reply });
            }
        }
    }

    /// The connections that listen are not a worker's: one of all workers speaks of them.
    fn listen_anew(&mut self, database: Option<String>, why: Option<&'static str>) {
        if self.worker == 0 {
            self.effects.push(Effect::Control(ToControl::ListenAnew { database, why }));
        }
    }

    fn each_pool(&mut self, database: &Option<String>, change: impl FnMut(&mut PoolState)) {
        let matches = |pool: &PoolState| {
            database.as_ref().is_none_or(|database| *database == pool.name.database)
        };
        self.pools.iter_mut().filter(|pool| matches(pool)).for_each(change);
    }

    fn serve_all(&mut self) {
        for at in 0..self.pools.len() as u32 {
            self.serve(at);
        }
    }

    /// Idle servers that nobody may get any more.
    fn close_idle(&mut self) {
        for slot in self.servers.numbers() {
            let conn = &self.servers[slot];
            if conn.place == Place::Idle && self.retires(conn) {
                self.retire(slot);
            }
        }
    }

    fn kill(&mut self, database: &Option<String>) {
        self.paused.insert(database.clone());
        self.each_pool(database, |pool| pool.paused = true);
        let matches = |plane: &Plane, at: u32| {
            plane.pools.get(at as usize).is_some_and(|pool| {
                database.as_ref().is_none_or(|database| *database == pool.name.database)
            })
        };
        for slot in self.clients.numbers() {
            if matches(self, self.clients[slot].pool) {
                let refused = Refused::new(
                    sqlstate::ADMIN_SHUTDOWN,
                    "terminating connection due to administrator command",
                )
                .detail("The database was killed on the console.")
                .theirs("admin forced disconnect");
                self.close_client(slot, Some(&refused));
            }
        }
        for slot in self.servers.numbers() {
            if matches(self, self.servers[slot].pool) {
                self.close_server(slot, "database was killed");
            }
        }
    }

    /// Commands that wait for something that has come true.
    pub(super) fn check_waits(&mut self) {
        if self.waits.is_empty() {
            return;
        }
        for wait in std::mem::take(&mut self.waits) {
            if wait.reply.is_closed() {
                continue;
            }
            if self.is_true(&wait.until) {
                let _ = wait.reply.send(Ok(()));
            } else {
                self.waits.push(wait);
            }
        }
    }

    fn is_true(&self, until: &Until) -> bool {
        let (Until::Quiet(database) | Until::Renewed(database)) = until else {
            return self.is_written();
        };
        self.servers.iter().all(|(_, conn)| {
            let pool = &self.pools[conn.pool as usize];
            let other = database.as_ref().is_some_and(|database| *database != pool.name.database);
            other
                || match until {
                    Until::Quiet(_) => conn.place == Place::Idle || conn.replication,
                    _ => conn.epoch == pool.epoch && !conn.close_needed,
                }
        })
    }

    pub(super) fn wait_until_written(&mut self, reply: oneshot::Sender<Result<(), String>>) {
        self.waits.push(Wait { until: Until::Written, reply });
    }

    /// A whole new configuration: what connections already use stays until they let go.
    fn reload(&mut self, config: Arc<Config>, tls_ready: bool) {
        self.sampler = super::sampling::Sampler::of(&config);
        self.config = config;
        self.tls_ready = tls_ready;
        self.verifiers.clear();
        for at in 0..self.pools.len() as u32 {
            let name = self.pools[at as usize].name.clone();
            if name.replica.is_some() {
                match self.renewed_beside(&name) {
                    Some(config) => self.renew_pool(at, config),
                    None => {
                        let pool = &mut self.pools[at as usize];
                        (pool.retired, pool.epoch) = (true, pool.epoch + 1);
                        self.send_home(at);
                    }
                }
                continue;
            }
            match self.config.pool(&name.database, &name.user) {
                Ok(config) if config.user == name.user => self.renew_pool(at, config),
                // It is gone, or its clients are to share another pool.
                _ => self.retire_pool(at),
            }
        }
        self.common.shares.is_short(self.config.runtime.workers < 2, self.now);
        self.renew_caches();
        for at in 0..self.pools.len() as u32 {
            if self.pools[at as usize].home == NONE {
                self.find_standbys(at);
            }
        }
        self.close_idle();
        self.stand_by();
        self.serve_all();
    }

    fn renew_pool(&mut self, at: u32, config: Arc<crate::config::PoolConfig>) {
        let mut limits = self.limits(&config);
        if config.upstream.several.replica.is_some() {
            self.limits_beside(&mut limits);
        }
        let budgets = self.client_budgets(&config);
        let pool = &mut self.pools[at as usize];
        if pool.config.upstream != config.upstream {
            pool.renew();
            pool.failing = None;
            pool.pool.retry_now();
        }
        pool.retired = false;
        pool.disabled = config.disabled || self.disabled.contains(&pool.name.database);
        // The budgets of a database and of a user are kept by name: what this pool has taken of the
        // old ones is given back, and taken of the new ones, though it may be more than they allow.
        let pooled = pool.servers.iter().filter(|server| !self.servers[**server].replication);
        let taken = pooled.count() + pool.pool.opening() as usize;
        for ceiling in &pool.limits.also {
            (0..taken).for_each(|_| ceiling.budget.give_back());
        }
        for ceiling in &limits.also {
            (0..taken).for_each(|_| {
                ceiling.budget.take(u32::MAX);
            });
        }
        if pool.config.cache == CacheMode::Off && config.cache != CacheMode::Off {
            // Nobody has asked what a cache has to know.
            pool.shapes.redefined();
        }
        pool.pool.shared().share_with(limits.also.clone());
        pool.limits = limits;
        pool.client_budgets = budgets;
        let shared = pool.shares_listening();
        let was = std::mem::replace(&mut pool.config, config).mode;
        if was == PoolMode::Session && pool.config.mode != was {
            // Nobody has looked at what clients have sent to the servers that they have.
            for server in &pool.servers {
                let conn = &mut self.servers[*server];
                if conn.place == Place::Lent {
                    conn.touched = Some(Touched::anyhow());
                }
            }
        }
        if shared && !self.pools[at as usize].shares_listening() {
            self.no_longer_shared(at);
        }
    }

    /// Its database is no longer configured: clients are told when they hold no server.
    fn retire_pool(&mut self, at: u32) {
        let pool = &mut self.pools[at as usize];
        pool.retired = true;
        pool.epoch += 1;
        for slot in self.clients.numbers() {
            let client = &mut self.clients[slot];
            if client.pool != at {
                continue;
            }
            client.close_needed = true;
            if !client.is_busy() {
                self.close_client(slot, Some(&removed()));
            }
        }
    }

    fn shut_down(&mut self, shutdown: Shutdown) {
        self.shutdown = Some(shutdown);
        // Whoever is to leave has to be heard.
        self.resume_suspended();
        if shutdown == Shutdown::Immediate {
            let refused = Refused::new(sqlstate::ADMIN_SHUTDOWN, "Pondage is shutting down")
                .theirs("server shutting down");
            for slot in self.clients.numbers() {
                self.close_client(slot, Some(&refused));
            }
            for slot in self.servers.numbers() {
                self.close_server(slot, "server shutting down");
            }
        }
    }

    /// While shutting down: clients that hold nothing are let go. True when all is over.
    pub fn is_drained(&mut self) -> bool {
        let Some(shutdown) = self.shutdown else { return false };
        if shutdown == Shutdown::WaitForServers {
            for slot in self.clients.numbers() {
                let client = &self.clients[slot];
                let leaves = !client.is_busy() && !matches!(client.phase, Phase::Leaving);
                if leaves && !client.is_for_console() {
                    // One that has come through the door in the meantime is told as if it had not.
                    let code = match client.phase {
                        Phase::LoggingIn(_) | Phase::AwaitWelcome(_) => {
                            sqlstate::CANNOT_CONNECT_NOW
                        }
                        _ => sqlstate::ADMIN_SHUTDOWN,
                    };
                    let refused = Refused::new(code, "Pondage is shutting down")
                        .theirs("server shutting down");
                    self.close_client(slot, Some(&refused));
                }
            }
        }
        self.clients
            .iter()
            .all(|(_, client)| client.is_for_console() || matches!(client.phase, Phase::Leaving))
    }
}
