//! Everything around the planes: time, sockets, the control plane, servers, clients, misfortune.
//!
//! One seed makes one run. A turn is what `worker::driver` does, with every choice that a real
//! system leaves to chance left to the seed: what is readable, how much of it, how much can be
//! written, what happens first.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend::moment::Moment;
use pondage::config::Config;
use pondage::control::messages::{Command, OpenError, OpenKind, Opened, Ref, ToControl, ToWorker};
use pondage::link::{Ends, Link, Socket};
use pondage::session::client::NONE;
use pondage::worker::plane::{Common, Effect, Place, Plane, ServerParts, Setting};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::oneshot;
use wire::pg::auth::ScramVerifier;
use wire::pg::startup;

use crate::client::{Client, Habits, PASSWORD};
use crate::postgres::{take_messages, Postgres, Step};

/// What kind of run a seed makes.
#[derive(Debug, Clone)]
pub struct Plan {
    pub mode: &'static str,
    pub workers: usize,
    pub pool_size: u32,
    pub reserve: u32,
    pub clients: usize,
    pub databases: usize,
    pub prepared: u32,
    pub scram: bool,
    pub bytewise: bool,
    pub slow: bool,
    pub check_delay_ms: u32,
    pub commands: bool,
    /// More lines of the section `[pool]`.
    pub more: String,
    pub habits: Habits,
}

impl Plan {
    pub fn of(seed: u64) -> Plan {
        let random = &mut StdRng::seed_from_u64(seed);
        let mode =
            ["transaction", "transaction", "session", "statement"][random.random_range(0..4)];
        let storm = random.random_bool(0.3);
        let bytewise = random.random_bool(0.15);
        let habits = Habits {
            statement_mode: mode == "statement",
            session_mode: mode == "session",
            pipelines: random.random_bool(0.6),
            blocks: mode != "statement" && random.random_bool(0.7),
            copies: random.random_bool(0.6),
            sets: random.random_bool(0.5),
            drops: random.random_bool(0.4),
            sleeps: random.random_bool(0.5),
            vanishes: storm || random.random_bool(0.4),
            big: [0, 0, 300, 300_000][random.random_range(0..if bytewise { 3 } else { 4 })],
            storm,
        };
        let mut more = String::new();
        let mut maybe = |random: &mut StdRng, name: &str, millis: std::ops::Range<u32>| {
            if random.random_bool(0.3) {
                more.push_str(&format!("{name} = \"{}ms\"\n", random.random_range(millis)));
            }
        };
        maybe(random, "server_idle_timeout", 50..500);
        maybe(random, "server_lifetime", 50..1_000);
        if storm {
            maybe(random, "query_timeout", 20..500);
            maybe(random, "wait_timeout", 50..5_000);
            maybe(random, "idle_transaction_timeout", 20..500);
            maybe(random, "client_idle_timeout", 200..2_000);
        }
        if random.random_bool(0.2) {
            more.push_str("min_pool_size = 1\n");
        }
        Plan {
            more,
            mode,
            workers: random.random_range(1..3),
            pool_size: random.random_range(1..4),
            reserve: [0, 0, 1][random.random_range(0..3)],
            clients: random.random_range(2..if bytewise { 8 } else { 24 }),
            databases: random.random_range(1..3),
            prepared: random.random_range(1..4),
            scram: random.random_bool(0.1),
            bytewise,
            slow: random.random_bool(0.3),
            check_delay_ms: [0, 1, 20][random.random_range(0..3)],
            commands: random.random_bool(0.3),
            habits,
        }
    }

    fn config(&self) -> String {
        let mut text = format!(
            "[listen]\npostgres = [\"127.0.0.1:6432\"]\n[runtime]\nworkers = {}\n[auth]\nmethod = \"{}\"\n\
             [users.ann]\npassword = \"{PASSWORD}\"\n\
             [pool]\nmode = \"{}\"\npool_size = {}\nreserve_pool_size = {}\nreserve_pool_timeout = \"1s\"\n\
             max_prepared_statements = {}\nserver_check_delay = \"{}ms\"\nserver_check_query = \"echo check\"\n",
            self.workers,
            if self.scram { "scram" } else { "trust" },
            self.mode,
            self.pool_size,
            self.reserve,
            self.prepared,
            self.check_delay_ms
        );
        text.push_str(&self.more);
        for database in 0..self.databases {
            text.push_str(&format!("[databases.db{database}]\nhost = \"127.0.0.1\"\n"));
        }
        text
    }
}

struct Server {
    database: String,
    model: Postgres,
    input: Vec<u8>,
    /// When its `sleep` is over.
    wakes: Option<u64>,
    key: Vec<u8>,
    /// The pooler has closed it.
    gone: bool,
}

enum Mail {
    Tell(ToWorker),
    Opened { ticket: u64, server: usize },
    Moved { parts: Box<ServerParts>, server: usize },
}

struct Post {
    due: u64,
    plane: usize,
    mail: Mail,
}

pub struct World {
    pub plan: Plan,
    random: StdRng,
    now: u64,
    common: Arc<Common>,
    config: Arc<Config>,
    planes: Vec<Plane>,
    servers: Vec<Server>,
    at: HashMap<(usize, u32), usize>,
    pub clients: Vec<Client>,
    client_at: HashMap<(usize, u32), usize>,
    /// Connections that only carry a CancelRequest: bytes not yet read.
    cancellers: HashMap<(usize, u32), Vec<u8>>,
    post: Vec<Post>,
    /// Cancels on their way to a server.
    cancels: Vec<(u64, u32, Vec<u8>, Ref)>,
    lingering: Vec<(usize, u32)>,
    unwritten: Vec<(usize, u32, bool)>,
    answers: Vec<oneshot::Receiver<Result<(), String>>>,
    calm: bool,
    paused: bool,
    pub opened: u32,
    pub cancelled: u32,
}

type Checked = Result<(), String>;

impl World {
    pub fn new(seed: u64, plan: Plan) -> World {
        let mut random = StdRng::seed_from_u64(seed ^ 0x5eed);
        let config = Arc::new(Config::from_text(&plan.config()).expect("a valid configuration"));
        let common = Arc::new(Common::default());
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
            plan,
            random,
            now: 1_000_000,
            common,
            config,
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
            paused: false,
            opened: 0,
            cancelled: 0,
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
        for client in &mut self.clients {
            client.terminate();
        }
        self.settle()?;
        self.check_end()?;
        self.fill_pools()
    }

    /// Every place of every pool can still be taken: nothing was lost in the budgets.
    fn fill_pools(&mut self) -> Checked {
        if self.plan.mode == "statement" || self.plan.habits.storm {
            return Ok(());
        }
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
        self.clients[first..].iter_mut().for_each(Client::terminate);
        self.settle()?;
        self.check_end()
    }

    /// No more misfortune: everybody must get everything.
    fn settle(&mut self) -> Checked {
        self.calm = true;
        if std::mem::take(&mut self.paused) {
            self.command(Command::Resume { database: None });
        }
        for _ in 0..4_000 {
            self.round()?;
            let busy = self.clients.iter_mut().any(is_busy);
            let moving = !self.post.is_empty() || !self.cancels.is_empty();
            let cleaning = self
                .planes
                .iter()
                .any(|plane| plane.servers.iter().any(|(_, conn)| conn.place == Place::Cleaning));
            if !busy && !moving && !cleaning {
                break;
            }
        }
        for _ in 0..30 {
            self.round()?;
        }
        match self.clients.iter_mut().position(is_busy) {
            Some(at) => Err(self.blame(at, "it hangs")),
            None => Ok(()),
        }
    }

    fn check_end(&mut self) -> Checked {
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
                    && conn.cancels == 0;
                check(clean, "a server is not idle")?;
                check(model.is_clean(), "PostgreSQL is not idle")?;
                check(
                    model.statement_names() <= self.plan.prepared as usize + 8
                        || self.plan.mode == "session",
                    "statements are left",
                )?;
            }
            let (reply, mut snapshot) = oneshot::channel();
            plane.control(ToWorker::Snapshot { reply });
            let snapshot = snapshot.try_recv().expect("a snapshot");
            check(snapshot.logging_in == 0, "clients are logging in")?;
            for pool in &snapshot.pools {
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
        let coming = self.post.iter().filter(|post| !matches!(post.mail, Mail::Tell(_))).count();
        let live = self.servers.iter().filter(|server| !server.gone && !server.model.dead);
        let held = live.count() - coming;
        let known: usize = self.planes.iter().map(|plane| plane.servers.len()).sum();
        check(held == known, "servers are lost")
    }

    fn round(&mut self) -> Checked {
        self.now += match self.random.random_range(0..20) {
            0 => self.random.random_range(0..150_000),
            1..4 => self.random.random_range(0..5_000),
            _ => self.random.random_range(0..100),
        };
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
        self.check_pools()
    }

    /// Never more servers than the pool may have.
    fn check_pools(&self) -> Checked {
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
        for server in &mut self.servers {
            if server.gone || self.random.random_bool(0.2) {
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
        }
        let due = |(due, ..): &(u64, u32, Vec<u8>, Ref)| *due <= self.now;
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.cancels).into_iter().partition(due);
        self.cancels = later;
        for (_, pid, key, reference) in now {
            let server = &mut self.servers[pid as usize - 1];
            if server.key == key && !server.gone {
                if !server.model.is_quiet() && server.wakes.is_some() {
                    self.cancelled += 1;
                }
                server.wakes = None;
                server.model.cancel();
            }
            let due = self.now + self.random.random_range(0..3_000);
            let mail = Mail::Tell(ToWorker::CancelDone { server: reference });
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
                    for plane in 0..self.planes.len() {
                        let reload = ToWorker::Reload { config: self.config.clone(), tls: None };
                        self.post.push(Post { due: self.now, plane, mail: Mail::Tell(reload) });
                    }
                    return;
                }
            };
            self.command(command);
        }
        if !self.plan.habits.storm {
            return;
        }
        if self.random.random_bool(0.01) && !self.servers.is_empty() {
            let server = self.random.random_range(0..self.servers.len());
            let says_so = self.random.random_bool(0.5);
            let server = &mut self.servers[server];
            if !server.gone && !server.model.dead {
                server.model.die(says_so);
                if !says_so {
                    let keep = self.random.random_range(0..=server.model.out.len());
                    server.model.out.truncate(keep);
                }
            }
        }
        if self.random.random_bool(0.005) {
            let client = self.random.random_range(0..self.clients.len());
            let client = &self.clients[client];
            if let Some(slot) = client.slot {
                let generation = self.planes[client.plane].clients.get(slot).map(|c| c.generation);
                if let Some(generation) = generation {
                    let command = Command::KillClient { slot, generation };
                    let (reply, _) = oneshot::channel();
                    let mail = Mail::Tell(ToWorker::Command { command, reply });
                    self.post.push(Post { due: self.now, plane: client.plane, mail });
                }
            }
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
        let client = &mut self.clients[at];
        let Some((number, mut key)) = client.key.clone() else { return };
        if client.vanished || client.closed {
            return;
        }
        if self.random.random_bool(0.3) {
            key[0] ^= 1;
        } else {
            client.cancelled = true;
        }
        let mut bytes = Vec::new();
        startup::put_cancel(&mut bytes, number, &key);
        let plane = self.random.random_range(0..self.planes.len());
        let slot = self.planes[plane].client_connected(ends(), None, Moment(self.now));
        self.cancellers.insert((plane, slot), bytes);
    }

    /// One turn of a worker.
    fn turn(&mut self, number: usize) -> Checked {
        self.planes[number].begin_turn(Moment(self.now));
        self.unwritten.retain(|(plane, slot, server)| {
            if *plane == number {
                let plane = &mut self.planes[number];
                let list =
                    if *server { &mut plane.written_servers } else { &mut plane.written_clients };
                list.push(*slot);
            }
            *plane != number
        });
        self.deliver(number);
        self.accept(number);
        self.read_servers(number);
        self.read_clients(number);
        self.planes[number].end_turn();
        self.write(number)?;
        self.carry_out(number)?;
        self.linger(number)
    }

    fn deliver(&mut self, number: usize) {
        let mut at = 0;
        while at < self.post.len() {
            let post = &self.post[at];
            if post.plane != number || post.due > self.now {
                at += 1;
                continue;
            }
            match self.post.remove(at).mail {
                Mail::Tell(message) => self.planes[number].control(message),
                Mail::Moved { parts, server } => match self.planes[number].server_arrived(*parts) {
                    Some(slot) => drop(self.at.insert((number, slot), server)),
                    None => self.servers[server].gone = true,
                },
                Mail::Opened { ticket, server } => {
                    let opened = self.opened_message(server);
                    match self.planes[number].server_opened(ticket, &opened) {
                        Some(slot) => drop(self.at.insert((number, slot), server)),
                        None => self.servers[server].gone = true,
                    }
                }
            }
        }
    }

    fn opened_message(&self, server: usize) -> Opened {
        let (socket, _) = UnixStream::pair().expect("a pair of sockets");
        let server_state = &self.servers[server];
        Opened {
            link: Link { socket: Socket::Unix(socket), tls: None, early: Vec::new() },
            ends: ends(),
            parameters: Postgres::new(&[]).parameters(),
            pid: server as u32 + 1,
            key: server_state.key.clone(),
            tls: String::new(),
        }
    }

    fn accept(&mut self, number: usize) {
        for (at, client) in self.clients.iter_mut().enumerate() {
            let knocks = client.plane == number && client.slot.is_none() && !client.closed;
            if knocks && self.random.random_bool(if self.calm { 1.0 } else { 0.1 }) {
                let slot = self.planes[number].client_connected(ends(), None, Moment(self.now));
                client.slot = Some(slot);
                self.client_at.insert((number, slot), at);
            }
        }
    }

    /// So many of so many bytes are read or written at once.
    fn part(&mut self, of: usize) -> usize {
        if of == 0 {
            0
        } else if self.plan.bytewise {
            1
        } else if self.plan.slow || self.random.random_bool(0.3) {
            self.random
                .random_range(1..=of.min(if self.plan.slow && of > 1000 { of / 4 } else { of }))
        } else {
            of.min(64 << 10)
        }
    }

    fn read_servers(&mut self, number: usize) {
        let mut slots: Vec<u32> =
            self.at.keys().filter(|(plane, _)| *plane == number).map(|(_, slot)| *slot).collect();
        slots.sort_unstable();
        self.shuffle(&mut slots);
        for slot in slots {
            for _ in 0..if self.plan.bytewise { 40 } else { 1 } {
                let Some(&server) = self.at.get(&(number, slot)) else { break };
                if !self.planes[number].server_may_read(slot) || self.random.random_bool(0.1) {
                    break;
                }
                let take = self.part(self.servers[server].model.out.len());
                if take > 0 {
                    let bytes: Vec<u8> = self.servers[server].model.out.drain(..take).collect();
                    self.planes[number].server_bytes(slot, &bytes);
                } else if self.servers[server].model.dead {
                    self.planes[number].server_closed(slot, "end");
                    break;
                } else {
                    break;
                }
            }
        }
    }

    fn shuffle(&mut self, slots: &mut [u32]) {
        for at in (1..slots.len()).rev() {
            slots.swap(at, self.random.random_range(0..=at));
        }
    }

    fn read_clients(&mut self, number: usize) {
        let mut slots: Vec<u32> = self
            .client_at
            .keys()
            .chain(self.cancellers.keys())
            .filter(|(plane, _)| *plane == number)
            .map(|(_, slot)| *slot)
            .collect();
        slots.sort_unstable();
        self.shuffle(&mut slots);
        for slot in slots {
            for _ in 0..if self.plan.bytewise { 40 } else { 1 } {
                if !self.read_client(number, slot) {
                    break;
                }
            }
        }
    }

    fn read_client(&mut self, number: usize, slot: u32) -> bool {
        if let Some(bytes) = self.cancellers.remove(&(number, slot)) {
            self.planes[number].client_bytes(slot, &bytes);
            return false;
        }
        let Some(&at) = self.client_at.get(&(number, slot)) else { return false };
        if !self.planes[number].client_may_read(slot) {
            if self.clients[at].vanished && self.random.random_bool(0.1) {
                self.planes[number].client_closed(slot);
            }
            return false;
        }
        if self.random.random_bool(0.1) {
            return false;
        }
        let take = self.part(self.clients[at].to_send.len());
        if take > 0 {
            let bytes: Vec<u8> = self.clients[at].to_send.drain(..take).collect();
            self.planes[number].client_bytes(slot, &bytes);
            return true;
        }
        if self.clients[at].vanished {
            self.planes[number].client_closed(slot);
        }
        false
    }

    fn write(&mut self, number: usize) -> Checked {
        for slot in std::mem::take(&mut self.planes[number].written_servers) {
            let Some(&server) = self.at.get(&(number, slot)) else { continue };
            let Some(length) =
                self.planes[number].servers.get(slot).map(|conn| conn.server.out.len())
            else {
                continue;
            };
            let take = self.part(length);
            let out = &mut self.planes[number].servers[slot].server.out;
            let bytes: Vec<u8> = out.drain(..take).collect();
            self.servers[server].input.extend(bytes);
            if take == length {
                self.planes[number].server_flushed(slot);
            } else {
                self.unwritten.push((number, slot, true));
            }
        }
        for slot in std::mem::take(&mut self.planes[number].written_clients) {
            let Some(length) = self.planes[number].clients.get(slot).map(|client| client.out.len())
            else {
                continue;
            };
            let Some(&at) = self.client_at.get(&(number, slot)) else {
                self.planes[number].client_flushed(slot);
                continue;
            };
            let take = self.part(length);
            let bytes: Vec<u8> = self.planes[number].clients[slot].out.drain(..take).collect();
            if !self.clients[at].vanished {
                let habits = self.plan.habits.clone();
                let heard = self.clients[at].hear(&bytes, &habits);
                heard.map_err(|error| self.blame(at, &error))?;
            }
            if take == length {
                self.planes[number].client_flushed(slot);
            } else {
                self.unwritten.push((number, slot, false));
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, number: usize) -> Checked {
        for effect in std::mem::take(&mut self.planes[number].effects) {
            match effect {
                Effect::CloseClient(slot) => self.close_client(number, slot)?,
                Effect::CloseServer(slot) => {
                    if let Some(server) = self.at.remove(&(number, slot)) {
                        self.servers[server].gone = true;
                    }
                }
                Effect::StartTls { .. } => return Err("TLS was begun".to_owned()),
                Effect::Peer(peer, message) => {
                    let due = self.now + self.random.random_range(0..500);
                    self.post.push(Post { due, plane: peer.into(), mail: Mail::Tell(message) });
                }
                Effect::GiveServer { slot, worker, parts } => {
                    let Some(server) = self.at.remove(&(number, slot)) else {
                        return Err("a server was given away that is not there".to_owned());
                    };
                    let due = self.now + self.random.random_range(0..500);
                    self.post.push(Post {
                        due,
                        plane: worker.into(),
                        mail: Mail::Moved { parts, server },
                    });
                }
                Effect::Control(message) => self.control(number, message)?,
            }
        }
        Ok(())
    }

    fn control(&mut self, number: usize, message: ToControl) -> Checked {
        let due = self.now + self.random.random_range(0..20_000);
        match message {
            ToControl::Open { ticket, config, kind: OpenKind::Pooled, .. } => {
                let database = config.database.clone();
                if self.plan.habits.storm && !self.calm && self.random.random_bool(0.1) {
                    let error = OpenError {
                        code: "08001".to_owned(),
                        message: "no way".to_owned(),
                        detail: None,
                        hint: None,
                        permanent: self.random.random_bool(0.1),
                        at: SystemTime::UNIX_EPOCH + Duration::from_micros(self.now),
                    };
                    let failed = ToWorker::ServerOpened { ticket, result: Err(error) };
                    self.post.push(Post { due, plane: number, mail: Mail::Tell(failed) });
                    return Ok(());
                }
                self.opened += 1;
                let server = self.servers.len();
                self.servers.push(Server {
                    database,
                    model: Postgres::new(&[]),
                    input: Vec::new(),
                    wakes: None,
                    key: self.random.random::<[u8; 4]>().to_vec(),
                    gone: false,
                });
                self.post.push(Post { due, plane: number, mail: Mail::Opened { ticket, server } });
            }
            ToControl::Derive { client, password } => {
                let verifier = ScramVerifier::derive(&password, b"salt", 4096);
                let derived = ToWorker::Derived { client, password, verifier };
                self.post.push(Post { due, plane: number, mail: Mail::Tell(derived) });
            }
            ToControl::Cancel { server, pid, key, .. } => {
                self.cancels.push((due, pid, key, server));
            }
            other => return Err(format!("the control plane was asked {other:?}")),
        }
        Ok(())
    }

    fn close_client(&mut self, number: usize, slot: u32) -> Checked {
        let unread =
            self.planes[number].clients.get(slot).is_some_and(|client| !client.out.is_empty());
        if unread {
            if !self.lingering.contains(&(number, slot)) {
                self.lingering.push((number, slot));
            }
            return Ok(());
        }
        self.planes[number].client_forgotten(slot);
        if let Some(at) = self.client_at.remove(&(number, slot)) {
            let habits = self.plan.habits.clone();
            let heard = self.clients[at].hear_end(&habits);
            heard.map_err(|error| self.blame(at, &error))?;
        }
        Ok(())
    }

    fn linger(&mut self, number: usize) -> Checked {
        let (mine, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.lingering)
            .into_iter()
            .partition(|(plane, _)| *plane == number);
        self.lingering = others;
        for (plane, slot) in mine {
            self.close_client(plane, slot)?;
        }
        Ok(())
    }

    fn blame(&self, at: usize, error: &str) -> String {
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
                "    hold {:?} server {} input {} rest {} batch_open {} copies_in {} skips {} out {} pooled {}\n",
                state.hold, state.server as i32, state.input.len(), state.rest, state.batch_open,
                state.copies_in, state.skips, state.out.len(), state.is_pooled()
            ));
        }
        for (number, plane) in self.planes.iter().enumerate() {
            for (slot, conn) in plane.servers.iter() {
                let model = self
                    .at
                    .get(&(number, slot))
                    .map(|server| (server, &self.servers[*server].model));
                text.push_str(&format!(
                    "plane {number} server {slot} {:?} client {} depth {} status {:?} quiet {} broken {} copies {} cancels {} out {} model quiet {:?}\n",
                    conn.place, conn.client as i32, conn.server.depth(), conn.server.status(),
                    conn.server.is_quiet(), conn.server.is_broken(), conn.server.copies_in(),
                    conn.cancels, conn.server.out.len(), model.map(|(at, model)| (at, model.is_clean(), model.dead))
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
    !client.is_ready() || client.operations > 0 || client.is_outstanding()
}

fn ends() -> Ends {
    Ends::Unix { peer_pid: None, port: 6432 }
}
