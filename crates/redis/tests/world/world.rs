//! An engine whose connections are sockets, driven as a worker drives it.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime};

use backend::moment::Moment;
use redis::args::Words;
use redis::engine::{Before, Engine, Ran};
use redis::flow::{Barrier, Fate};
use redis::reply::Recorded;
use redis::server::{Event, Settings};
use redis::session::{ConnId, Peer};
use redis::tables::{Identity, Tables};

use crate::kit::{log_in, Database};

/// Nothing here takes as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A reply that waits for its commit.
#[derive(Debug)]
struct Held {
    words: Words,
    reply: Recorded,
    barrier: Option<Barrier>,
    before: Option<Before>,
}

pub struct World {
    pub engine: Engine,
    database: Database,
    links: Vec<Option<UnixStream>>,
    began: Instant,
    held: HashMap<ConnId, Held>,
    resumed: Vec<ConnId>,
    /// Replies to blocked commands, and published messages.
    pub answers: HashMap<ConnId, Vec<String>>,
    /// Connections that nobody can give an answer to any more.
    pub lost: Vec<ConnId>,
    /// A command has run, or a connection has come or gone.
    touched: bool,
}

impl World {
    pub fn new(database: &Database, owner: &str) -> World {
        World::with(database, owner, Settings::default())
    }

    /// With database 1 in journal mode.
    pub fn journaled(database: &Database, owner: &str) -> World {
        World::with(database, owner, Settings { journal_databases: vec![1], ..Settings::default() })
    }

    pub fn with(database: &Database, owner: &str, settings: Settings) -> World {
        let identity = Identity {
            owner: owner.to_owned(),
            database: String::new(),
            role: String::new(),
            shards: 2,
            hurried: vec![9],
            journal: !settings.journal_databases.is_empty(),
            patience: Duration::from_secs(5),
        };
        let tables = Box::new(Tables::new(identity));
        let mut engine = Engine::new(settings, tables, 2, wall());
        let links = engine.store().links().count();
        World {
            engine,
            database: database.clone(),
            links: (0..links).map(|_| None).collect(),
            began: Instant::now(),
            held: HashMap::new(),
            resumed: Vec::new(),
            answers: HashMap::new(),
            lost: Vec::new(),
            touched: true,
        }
    }

    /// Until the tables are this engine's.
    pub fn ready(mut self) -> World {
        self.until("the tables are taken", |world| world.engine.store().is_ready());
        self
    }

    pub fn client(&mut self) -> ConnId {
        self.engine.connect(0, Peer::default(), wall())
    }

    #[track_caller]
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut World) -> bool) {
        let began = Instant::now();
        while !done(self) {
            assert!(began.elapsed() < PATIENCE, "{what}: not in time");
            self.turn();
        }
    }

    /// One turn of a worker.
    pub fn turn(&mut self) {
        let now = Moment(self.began.elapsed().as_micros() as u64);
        let mut moved = false;
        let mut buffer = vec![0; 65_536];
        for link in 0..self.links.len() {
            let Some(socket) = &mut self.links[link] else { continue };
            match socket.read(&mut buffer) {
                Ok(0) => self.close(link, "closed", now),
                Ok(count) => {
                    moved = true;
                    self.engine.store().links().receive(link, &buffer[..count], now);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => self.close(link, &error.to_string(), now),
            }
        }
        // As a worker: nothing happens unless something has happened, or it is time.
        let links = self.engine.store().links();
        let due = links.next_due().is_some_and(|due| due <= now);
        let misses = self.links.iter().any(Option::is_none);
        let due = due || self.engine.next_due().is_some_and(|due| due <= wall());
        let links = self.engine.store().links();
        let unwritten = (0..self.links.len()).any(|link| !links.out(link).is_empty());
        if !(std::mem::take(&mut self.touched) || moved || misses || due || unwritten) {
            std::thread::sleep(Duration::from_micros(200));
            return;
        }
        self.engine.turn(wall());
        for link in self.engine.store().links().dropped() {
            self.links[link] = None;
        }
        for link in self.engine.store().links().wanted(now) {
            let socket = log_in(&self.database.0);
            socket.set_nonblocking(true).expect("a socket");
            self.links[link] = Some(socket);
            self.engine.store().links().opened(link, now);
            moved = true;
        }
        for link in 0..self.links.len() {
            let Some(socket) = &mut self.links[link] else { continue };
            let out = self.engine.store().links().out(link);
            if out.is_empty() {
                continue;
            }
            match socket.write(out) {
                Ok(count) => drop(out.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Its end is seen by the next read.
                Err(_) => out.clear(),
            }
        }
        self.touched = self.take_events();
        if !moved && !self.touched {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn close(&mut self, link: usize, why: &str, now: Moment) {
        self.links[link] = None;
        self.touched = true;
        self.engine.store().links().closed(link, why, now);
    }

    /// Cuts a connection, as a network would.
    pub fn cut(&mut self, link: usize) {
        let now = Moment(self.began.elapsed().as_micros() as u64);
        if self.links[link].is_some() {
            self.close(link, "cut", now);
        }
    }

    /// One of them.
    pub fn cut_any(&mut self, number: usize) {
        self.cut(number % self.links.len());
    }

    fn take_events(&mut self) -> bool {
        let events = self.engine.take_events(0);
        let some = !events.is_empty();
        for event in events {
            match event {
                Event::Resume(conn) => self.resumed.push(conn),
                Event::Answer { conn, reply, .. } | Event::Push { conn, message: reply } => {
                    self.answers.entry(conn).or_default().push(format!("{reply:?}"));
                }
                Event::Redo { conn, refused } => {
                    self.engine.begin_redo(conn);
                    self.redo(conn, refused.as_deref());
                }
                Event::Release(_) | Event::Close(_) => {}
            }
        }
        some
    }

    fn redo(&mut self, conn: ConnId, refused: Option<&str>) {
        let Some(held) = self.held.remove(&conn) else { return };
        match held.barrier.map(|barrier| self.engine.fate(barrier)) {
            Some(Fate::Undone) => {
                if let Some(before) = held.before {
                    self.engine.restore(conn, before);
                }
                if let Some(why) = refused {
                    let mut reply = Recorded::new(2);
                    redis::reply::Reply::error(&mut reply, why.as_bytes());
                    let held = Held { words: held.words, reply, barrier: None, before: None };
                    self.held.insert(conn, held);
                } else {
                    self.start(conn, held.words);
                }
            }
            Some(Fate::Lost) => self.lost.push(conn),
            _ => drop(self.held.insert(conn, held)),
        }
    }

    /// Gives a command; its reply is had by [`World::reply`].
    pub fn start(&mut self, conn: ConnId, words: Words) {
        self.touched = true;
        loop {
            let mut reply = Recorded::new(2);
            match self.engine.run(conn, words.args(), wall(), &mut reply) {
                Ran::Done { barrier, before, .. } => {
                    self.held.insert(conn, Held { words, reply, barrier, before });
                    return;
                }
                Ran::Blocked => return,
                Ran::Parked => {
                    self.until("it goes on", |world| {
                        let at = world.resumed.iter().position(|other| *other == conn);
                        at.map(|at| world.resumed.swap_remove(at)).is_some()
                    });
                }
            }
        }
    }

    /// The reply of the command given last, if it may go already.
    pub fn reply(&mut self, conn: ConnId) -> Option<String> {
        let held = self.held.get(&conn)?;
        let fate = held.barrier.map(|barrier| self.engine.fate(barrier));
        if !matches!(fate, None | Some(Fate::Committed)) {
            return None;
        }
        self.held.remove(&conn).map(|held| format!("{:?}", held.reply))
    }

    #[track_caller]
    pub fn run(&mut self, conn: ConnId, line: &str) -> String {
        self.start(conn, line.split(' ').collect());
        let mut said = None;
        self.until(line, |world| {
            said = world.reply(conn);
            said.is_some()
        });
        said.unwrap_or_default()
    }
}

/// Milliseconds since 1970.
pub fn wall() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}
