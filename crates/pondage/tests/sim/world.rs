//! Everything around the planes: time, sockets, the control plane, servers, clients, misfortune.
//!
//! One seed makes one run. A turn is what `worker::driver` does, with every choice that a real
//! system leaves to chance left to the seed: what is readable, how much of it, how much can be
//! written, what happens first.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend::moment::Moment;
use pondage::config::Config;
use pondage::control::messages::{Command, Ref, ToWorker};
use pondage::link::Ends;
use pondage::session::client::{Hold, NONE};
use pondage::worker::plane::{Common, Place, Plane, ServerParts, Setting};
use pondage::worker::snapshot::Detail;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::oneshot;
use wire::pg::startup;

use crate::client::Client;
use crate::ears::Ears;
use crate::kept::{caches, Kept};
use crate::ledger::Ledger;
use crate::plan::Plan;
use crate::postgres::{take_messages, Postgres, Step};
use crate::standbys::Standbys;
use crate::tally::Tally;

pub(crate) struct Server {
    pub(crate) database: String,
    pub(crate) model: Postgres,
    pub(crate) input: Vec<u8>,
    /// Its place in the list of hosts, if it is one to read from.
    pub(crate) standby: Option<usize>,
    /// When its `sleep` is over.
    pub(crate) wakes: Option<u64>,
    pub(crate) key: Vec<u8>,
    /// The pooler has closed it.
    pub(crate) gone: bool,
}

pub(crate) enum Mail {
    Tell(ToWorker),
    Opened {
        ticket: u64,
        server: usize,
    },
    Moved {
        parts: Box<ServerParts>,
        server: usize,
    },
    /// A connection for pulses, or none.
    Linked {
        link: u64,
        database: Option<String>,
    },
}

pub(crate) struct Post {
    pub(crate) due: u64,
    pub(crate) plane: usize,
    pub(crate) mail: Mail,
}

/// A CancelRequest under way: when it arrives, the process id, the key, the server, who asked.
type Cancel = (u64, u32, Vec<u8>, Ref, Option<Ref>);

pub struct World {
    pub(crate) plan: Plan,
    pub(crate) random: StdRng,
    pub(crate) now: u64,
    pub(crate) common: Arc<Common>,
    pub(crate) configs: [Arc<Config>; 2],
    pub(crate) planes: Vec<Plane>,
    pub(crate) servers: Vec<Server>,
    pub(crate) at: HashMap<(usize, u32), usize>,
    pub(crate) clients: Vec<Client>,
    pub(crate) client_at: HashMap<(usize, u32), usize>,
    /// Connections that only carry a CancelRequest: bytes not yet read.
    pub(crate) cancellers: HashMap<(usize, u32), Vec<u8>>,
    pub(crate) post: Vec<Post>,
    /// Cancels on their way to a server.
    pub(crate) cancels: Vec<Cancel>,
    pub(crate) lingering: Vec<(usize, u32)>,
    pub(crate) unwritten: Vec<(usize, u32, bool)>,
    answers: Vec<oneshot::Receiver<Result<(), String>>>,
    pub(crate) calm: bool,
    /// No server can be opened.
    pub unreachable: bool,
    paused: bool,
    /// Servers that there may be, over all pools.
    budget: Option<u32>,
    pub opened: u32,
    pub cancelled: u32,
    pub ears: Ears,
    pub standbys: Option<Standbys>,
    pub(crate) ledger: Ledger,
    pub(crate) kept: Kept,
    /// What statements that shared trips came to, over all pools.
    pub tally: Tally,
}

pub(crate) type Checked = Result<(), String>;

/// When a world begins, in microseconds.
const BEGINNING: u64 = 1_000_000;

impl World {
    pub fn new(seed: u64, plan: Plan) -> World {
        let mut random = StdRng::seed_from_u64(seed ^ 0x5eed);
        let configs = [false, true].map(|limited| {
            let text = plan.config(limited);
            Arc::new(Config::from_text(&text).expect("a valid configuration"))
        });
        let begins = random.random_range(0..2);
        let config = &configs[begins];
        let common = Arc::new(Common::new(Arc::new(caches(seed, &plan))));
        let kept = Kept::new(seed, &plan, &common.caches);
        let planes = (0..plan.workers)
            .map(|worker| {
                Plane::new(Setting {
                    worker: worker as u8,
                    config: config.clone(),
                    common: common.clone(),
                    seed: random.random(),
                    epoch: SystemTime::UNIX_EPOCH,
                    tls_ready: false,
                })
            })
            .collect();
        let clients = (0..plan.clients)
            .map(|number| {
                let database = format!("db{}", random.random_range(0..plan.databases));
                let plane = random.random_range(0..plan.workers);
                Client::new(number, &database, plane, &mut random, &plan.habits)
            })
            .collect();
        World {
            random,
            now: BEGINNING,
            common,
            configs,
            planes,
            servers: Vec::new(),
            at: HashMap::new(),
            clients,
            client_at: HashMap::new(),
            cancellers: HashMap::new(),
            post: Vec::new(),
            cancels: Vec::new(),
            lingering: Vec::new(),
            unwritten: Vec::new(),
            answers: Vec::new(),
            calm: false,
            unreachable: false,
            budget: plan.budget.filter(|_| begins == 0),
            plan,
            paused: false,
            opened: 0,
            cancelled: 0,
            ears: Ears::default(),
            standbys: None,
            ledger: Ledger::default(),
            kept,
            tally: Tally::default(),
        }
    }

    /// Runs until every client is done, then checks what is left.
    pub fn run(&mut self) -> Checked {
        let mut rounds = 0;
        while self.clients.iter_mut().any(is_busy) && rounds < 6_000 {
            self.round()?;
            rounds += 1;
        }
        self.settle()?;
        self.end()?;
        self.fill_pools()
    }

    /// Everybody leaves, and nothing may be left.
    pub fn end(&mut self) -> Checked {
        self.check_idle()?;
        self.clients.iter_mut().for_each(Client::terminate);
        self.settle()?;
        self.check_end()
    }

    /// This client does not connect yet.
    pub fn hold_back(&mut self, client: usize) {
        self.clients[client].closed = true;
    }

    pub fn let_in(&mut self, client: usize) {
        self.clients[client].closed = false;
    }

    /// Every place of every pool can still be taken: nothing was lost in the budgets.
    fn fill_pools(&mut self) -> Checked {
        if self.plan.mode == "statement" || self.plan.habits.storm {
            return Ok(());
        }
        self.reload(1);
        let first = self.clients.len();
        for number in 0..self.plan.databases * self.plan.pool_size as usize {
            let database = format!("db{}", number % self.plan.databases);
            let plane = self.random.random_range(0..self.plan.workers);
            let habits = self.plan.habits.clone();
            let mut client =
                Client::new(first + number, &database, plane, &mut self.random, &habits);
            client.operations = 0;
            client.stays = true;
            self.clients.push(client);
        }
        self.settle()?;
        for query in ["begin", "rollback"] {
            self.clients[first..].iter_mut().for_each(|client| client.say(query));
            self.settle()?;
        }
        self.end()
    }

    /// No more misfortune: everybody must get everything.
    pub fn settle(&mut self) -> Checked {
        self.calm = true;
        if std::mem::take(&mut self.paused) {
            self.command(Command::Resume { database: None });
        }
        // One server that does little for many takes long; what comes last may ask how far
        // PostgreSQL is.
        for turn in 0..20 {
            self.calm_down()?;
            let busy = self.clients.iter_mut().any(is_busy) && turn < 4;
            if !busy && self.planes.iter().all(|plane| plane.next_due().is_none()) {
                break;
            }
        }
        match self.clients.iter_mut().position(is_busy) {
            Some(at) => Err(self.blame(at, "it hangs")),
            None => Ok(()),
        }
    }

    fn calm_down(&mut self) -> Checked {
        for _ in 0..20_000 {
            self.round()?;
            let busy = self.clients.iter_mut().any(is_busy);
            let moving = !self.post.is_empty() || !self.cancels.is_empty();
            let cleaning = self
                .planes
                .iter()
                .any(|plane| plane.servers.iter().any(|(_, conn)| conn.place == Place::Cleaning));
            let due = self.planes.iter().any(|plane| plane.next_due().is_some());
            if !busy && !moving && !cleaning && !due {
                break;
            }
        }
        for _ in 0..30 {
            self.round()?;
        }
        Ok(())
    }

    /// All is answered: nobody waits, nothing is held back.
    fn check_idle(&self) -> Checked {
        for (at, client) in self.clients.iter().enumerate().filter(|(_, client)| !client.closed) {
            let Some(slot) = client.slot else { continue };
            let Some(state) = self.planes[client.plane].clients.get(slot) else { continue };
            // A server is prepared also for one whose request was cancelled meanwhile.
            let free = matches!(state.hold, Hold::No | Hold::SetUp);
            if state.is_pooled() && !(free && state.unit.is_none() && !state.corked) {
                return Err(self.blame(at, "all is answered, and it is held"));
            }
            let waits = state.reads.as_ref().is_some_and(|reads| reads.awaits.is_some());
            if waits || state.fill.is_some() {
                return Err(self.blame(at, "all is answered, and something of a read is left"));
            }
        }
        let due = self.planes.iter().any(|plane| plane.next_due().is_some());
        if due {
            return Err(format!("nothing happens, and a turn is wanted\n{}", self.dump()));
        }
        Ok(())
    }

    fn check_end(&mut self) -> Checked {
        self.ledger.check_end()?;
        self.tally = Tally::default();
        let dump = self.dump();
        let check = |right: bool, what: &str| {
            if right {
                Ok(())
            } else {
                Err(format!("at the end {what}\n{dump}"))
            }
        };
        check(self.common.clients.taken() == 0, "places for clients are taken")?;
        for (number, plane) in self.planes.iter_mut().enumerate() {
            check(plane.clients.is_empty(), "a plane has clients")?;
            for (slot, conn) in plane.servers.iter() {
                let model = &self.servers[self.at[&(number, slot)]].model;
                let clean = conn.place == Place::Idle
                    && conn.client == NONE
                    && conn.server.is_quiet()
                    && !conn.server.is_broken()
                    && conn.carrier.is_empty()
                    && conn.cancels == 0;
                check(clean, "a server is not idle")?;
                check(model.is_clean(), "PostgreSQL is not idle")?;
                let left = ["synchronous_commit", "lock_timeout"].map(|name| model.value(name));
                check(left == [None, None], "a train's settings are left")?;
                check(
                    model.statement_names() <= self.plan.prepared as usize + 8
                        || self.plan.mode == "session",
                    "statements are left",
                )?;
            }
            let (reply, mut snapshot) = oneshot::channel();
            plane.control(ToWorker::Snapshot { detail: Detail::ALL, reply });
            let snapshot = snapshot.try_recv().expect("a snapshot");
            check(snapshot.logging_in == 0, "clients are logging in")?;
            for pool in &snapshot.pools {
                self.tally.add(&pool.totals.coalesced, pool.totals.cached);
                let mismatches = pool.totals.cached.mismatches;
                check(mismatches == 0, "an audit has found another answer than was kept")?;
                check(pool.cl_active == 0 && pool.cl_waiting == 0, "clients are counted")?;
                let keeps_some = self.plan.more.contains("min_pool_size");
                check(pool.sv_login == 0 || keeps_some, "servers are being opened")?;
            }
        }
        for answer in &mut self.answers {
            let answered = answer.try_recv() != Err(oneshot::error::TryRecvError::Empty);
            if !answered {
                return Err(format!("at the end a command is not answered\n{dump}"));
            }
        }
        self.answers.clear();
        self.tally.counts = self.counts();
        self.tally.simulated = Duration::from_micros(self.now - BEGINNING);
        let comes = |post: &&Post| matches!(post.mail, Mail::Opened { .. } | Mail::Moved { .. });
        let coming = self.post.iter().filter(comes).count();
        let live = self.servers.iter().filter(|server| !server.gone && !server.model.dead);
        let held = live.count() - coming;
        let known: usize = self.planes.iter().map(|plane| plane.servers.len()).sum();
        check(held == known, "servers are lost")
    }

    fn round(&mut self) -> Checked {
        let due = self.planes.iter().filter_map(|plane| plane.next_due()).min();
        self.now += match self.random.random_range(0..20) {
            0 => self.random.random_range(0..150_000),
            1..4 => self.random.random_range(0..5_000),
            // Nothing happens before a turn that the plane itself wants.
            4..6 => due.map_or(0, |due| due.0.saturating_sub(self.now)),
            _ => self.random.random_range(0..100),
        };
        self.live();
        self.serve();
        let habits = self.plan.habits.clone();
        for client in &mut self.clients {
            client.act(&mut self.random, &habits);
        }
        if !self.calm {
            self.misfortune();
        }
        for plane in 0..self.planes.len() {
            if self.random.random_bool(0.9) {
                self.turn(plane)?;
            }
        }
        self.check_listeners()?;
        self.check_pools()
    }

    /// Never more servers than the pool may have, or all of them.
    fn check_pools(&self) -> Checked {
        let all = self.servers.iter().filter(|server| !server.gone).count();
        if self.budget.is_some_and(|most| all > most as usize) {
            return Err(format!("{all} servers where {:?} are allowed", self.budget));
        }
        for database in 0..self.plan.databases {
            let database = format!("db{database}");
            let live =
                self.servers.iter().filter(|server| server.database == database && !server.gone);
            let all = live.count() as u32;
            let most = self.plan.pool_size + self.plan.reserve;
            if all > most {
                return Err(format!("{all} servers of {database} where {most} are allowed"));
            }
        }
        Ok(())
    }

    /// The servers work.
    fn serve(&mut self) {
        for (at, server) in self.servers.iter_mut().enumerate() {
            if server.gone {
                server.model.abandon();
                continue;
            }
            if self.random.random_bool(self.plan.sluggish) {
                continue;
            }
            if server.wakes.is_some_and(|wakes| wakes <= self.now) {
                server.wakes = None;
                server.model.wake(false);
            }
            server.model.read(take_messages(&mut server.input));
            for _ in 0..self.random.random_range(1..30) {
                match server.model.step() {
                    Step::Did => {}
                    Step::Waits | Step::Dead => break,
                    Step::Sleeps(0) if server.wakes.is_some() => break,
                    Step::Sleeps(time) => {
                        server.wakes = Some(self.now + time);
                        break;
                    }
                }
            }
            if self.random.random_bool(0.1) {
                server.model.flush();
            }
            self.ledger.note(at, std::mem::take(&mut server.model.deeds));
        }
        let due = |(due, ..): &Cancel| *due <= self.now;
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.cancels).into_iter().partition(due);
        self.cancels = later;
        for (_, pid, key, reference, asker) in now {
            let server = &mut self.servers[pid as usize - 1];
            if server.key == key && !server.gone {
                if !server.model.is_quiet() && server.wakes.is_some() {
                    self.cancelled += 1;
                }
                server.wakes = None;
                server.model.cancel();
            }
            let due = self.now + self.random.random_range(0..3_000);
            let mail = Mail::Tell(ToWorker::CancelDone { server: reference, asker });
            self.post.push(Post { due, plane: reference.worker.into(), mail });
        }
    }

    fn misfortune(&mut self) {
        if self.random.random_bool(0.05) {
            self.cancel_somebody();
        }
        if self.plan.commands && self.random.random_bool(0.01) {
            let command = match self.random.random_range(0..5) {
                0 if !self.paused => {
                    self.paused = true;
                    Command::Pause { database: None }
                }
                1 => Command::Reconnect { database: None },
                2 => Command::WaitClose { database: None },
                3 if self.plan.habits.storm && self.random.random_bool(0.2) => {
                    self.paused = true;
                    Command::Kill { database: Some("db0".to_owned()) }
                }
                _ if self.paused => {
                    self.paused = false;
                    Command::Resume { database: None }
                }
                _ => {
                    let config = self.random.random_range(0..2);
                    self.reload(config);
                    return;
                }
            };
            self.command(command);
        }
        if self.plan.habits.alters && self.random.random_bool(0.002) {
            self.redefine("db0");
        }
        if !self.plan.habits.storm {
            return;
        }
        let live: Vec<usize> =
            (0..self.servers.len()).filter(|at| !self.servers[*at].gone).collect();
        if self.random.random_bool(0.01) && !live.is_empty() {
            let server = live[self.random.random_range(0..live.len())];
            let says_so = self.random.random_bool(0.5);
            self.kill_server(server, says_so);
        }
        if self.random.random_bool(0.005) {
            let client = self.random.random_range(0..self.clients.len());
            self.kill_client(client);
        }
        if self.ears.are_some() && self.random.random_bool(0.002) {
            self.lose_ears(None, "misfortune");
        }
    }

    /// Somebody has changed definitions: every worker is told.
    pub(crate) fn redefine(&mut self, database: &str) {
        for plane in 0..self.planes.len() {
            let due = self.now + self.random.random_range(0..5_000);
            let redefined = ToWorker::Redefined { database: database.to_owned() };
            self.post.push(Post { due, plane, mail: Mail::Tell(redefined) });
        }
    }

    pub fn kill_server(&mut self, server: usize, says_so: bool) {
        let server = &mut self.servers[server];
        if server.gone || server.model.dead {
            return;
        }
        server.model.die(says_so);
        if !says_so {
            let keep = self.random.random_range(0..=server.model.out.len());
            server.model.out.truncate(keep);
        }
    }

    /// What the servers have to say so far is on its way.
    pub fn flush_servers(&mut self) {
        self.servers.iter_mut().for_each(|server| server.model.flush());
    }

    pub fn kill_servers(&mut self, says_so: bool) {
        (0..self.servers.len()).for_each(|server| self.kill_server(server, says_so));
    }

    pub fn kill_client(&mut self, client: usize) {
        let Client { slot: Some(slot), plane, .. } = self.clients[client] else { return };
        let client = self.planes[plane].clients.get(slot);
        let Some(generation) = client.map(|client| client.generation) else { return };
        let command = Command::KillClient { slot, generation };
        let (reply, _) = oneshot::channel();
        let mail = Mail::Tell(ToWorker::Command { command, reply });
        self.post.push(Post { due: self.now, plane, mail });
    }

    /// What the pooler knows of a client.
    pub fn known(&self, client: usize) -> Option<&pondage::session::client::Client> {
        let client = &self.clients[client];
        self.planes[client.plane].clients.get(client.slot?)
    }

    /// Goes on until something is so, but not for ever.
    pub fn until(&mut self, so: impl Fn(&World) -> bool) -> Checked {
        self.calm = true;
        for _ in 0..500 {
            if so(self) {
                break;
            }
            self.round()?;
        }
        Ok(())
    }

    pub fn is_asleep(&self) -> bool {
        self.servers.iter().any(|server| server.wakes.is_some())
    }

    pub fn is_server_moving(&self) -> bool {
        self.post.iter().any(|post| matches!(post.mail, Mail::Moved { .. }))
    }

    pub fn reload(&mut self, config: usize) {
        self.budget = None;
        for plane in 0..self.planes.len() {
            let config = self.configs[config].clone();
            let reload = ToWorker::Reload { config, tls: None };
            self.post.push(Post { due: self.now, plane, mail: Mail::Tell(reload) });
        }
    }

    fn command(&mut self, command: Command) {
        for plane in 0..self.planes.len() {
            let (reply, answer) = oneshot::channel();
            self.answers.push(answer);
            let mail = Mail::Tell(ToWorker::Command { command: command.clone(), reply });
            self.post.push(Post { due: self.now, plane, mail });
        }
    }

    fn cancel_somebody(&mut self) {
        let at = self.random.random_range(0..self.clients.len());
        let right = !self.random.random_bool(0.3);
        self.cancel(at, right);
    }

    /// Somebody, with the right key or not, wants to cancel what a client does.
    pub fn cancel(&mut self, at: usize, right: bool) {
        let client = &mut self.clients[at];
        let Some((number, mut key)) = client.key.clone() else { return };
        if client.vanished || client.closed {
            return;
        }
        client.cancelled |= right;
        key[0] ^= u8::from(!right);
        let mut bytes = Vec::new();
        startup::put_cancel(&mut bytes, number, &key);
        let plane = self.random.random_range(0..self.planes.len());
        let slot = self.planes[plane].client_connected(ends(), None, Moment(self.now));
        self.cancellers.insert((plane, slot), bytes);
    }

    pub(crate) fn blame(&self, at: usize, error: &str) -> String {
        let client = &self.clients[at];
        let history: Vec<&str> = client.history.iter().map(String::as_str).collect();
        format!(
            "client {}: {error}\nhistory:\n  {}\n{}",
            client.mark,
            history.join("\n  "),
            self.dump()
        )
    }

    fn dump(&self) -> String {
        let mut text = String::new();
        for client in self.clients.iter().filter(|client| !client.closed) {
            text.push_str(&format!(
                "client {} plane {} slot {:?} to_send {} awaits {}\n",
                client.mark,
                client.plane,
                client.slot,
                client.to_send.len(),
                client.awaited()
            ));
            let Some(state) =
                client.slot.and_then(|slot| self.planes[client.plane].clients.get(slot))
            else {
                continue;
            };
            text.push_str(&format!(
                "    hold {:?} server {} input {} rest {} batch_open {} copies_in {} skips {} out {} pooled {} corked {} unit {:?}\n",
                state.hold, state.server as i32, state.input.len(), state.rest, state.batch_open,
                state.copies_in, state.skips, state.out.len(), state.is_pooled(), state.corked, state.unit
            ));
        }
        for (number, plane) in self.planes.iter().enumerate() {
            for (slot, conn) in plane.servers.iter() {
                let model = self
                    .at
                    .get(&(number, slot))
                    .map(|server| (server, &self.servers[*server].model));
                text.push_str(&format!(
                    "plane {number} server {slot} {:?} client {} depth {} status {:?} quiet {} broken {} copies {} cancels {} out {} carrier {:?} model quiet {:?}\n",
                    conn.place, conn.client as i32, conn.server.depth(), conn.server.status(),
                    conn.server.is_quiet(), conn.server.is_broken(), conn.server.copies_in(),
                    conn.cancels, conn.server.out.len(), conn.carrier, model.map(|(at, model)| (at, model.is_clean(), model.dead))
                ));
            }
        }
        for server in &self.servers {
            text.push_str(&format!(
                "server gone {} dead {} input {} out {} wakes {:?}\n",
                server.gone,
                server.model.dead,
                server.input.len(),
                server.model.out.len(),
                server.wakes
            ));
        }
        text.push_str(&format!(
            "post {} cancels {} now {}\n",
            self.post.len(),
            self.cancels.len(),
            self.now
        ));
        text
    }
}

fn is_busy(client: &mut Client) -> bool {
    if client.closed {
        return false;
    }
    if client.vanished || client.fatal.is_some() {
        return true;
    }
    !client.is_ready()
        || client.operations > 0
        || !client.script.is_empty()
        || client.is_outstanding()
}

pub(crate) fn ends() -> Ends {
    Ends::Unix { peer_pid: None, port: 6432 }
}
