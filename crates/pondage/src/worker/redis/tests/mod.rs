//! The plane without sockets: bytes in, bytes out, and commits when the test says so.

mod access;
mod commands;
mod ledger;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use ::redis::flow::Sealed;
use ::redis::keyspace::Keyspace;
use ::redis::query::Query;
use ::redis::session::ConnId;
use ::redis::store::{Links, Store, Told};
use backend::moment::Moment;

use super::{Effect, RedisPlane, Setting, Shared};
use crate::caches::Caches;
use crate::config::Config;
use crate::control::messages::{ToControl, ToWorker};
use crate::hba::Subject;
use crate::link::Ends;
use crate::worker::plane::Common;

/// What the engine has asked for.
#[derive(Debug, Default)]
struct Asked {
    /// Batches that were sent and not answered.
    sent: Vec<u64>,
    told: Vec<Told>,
    /// Batches are committed as soon as they are sent.
    quick: bool,
    /// Bytes for the one link.
    out: Vec<u8>,
    received: Vec<u8>,
    wanted: Vec<usize>,
    happened: Vec<String>,
}

/// Tables in which no key is found, and which commit when they are told to.
#[derive(Debug, Clone, Default)]
struct Tables(Arc<Mutex<Asked>>);

impl Tables {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().expect("lock")
    }
}

/// What is written stays here for the driver.
struct TablesAndOut(Tables, Vec<u8>);

impl Store for TablesAndOut {
    fn send(&mut self, keys: &mut Keyspace, sealed: &Sealed) {
        keys.write_rows(sealed, |_| {});
        let mut asked = self.0.lock();
        if asked.quick {
            asked.told.push(Told::Committed { number: sealed.number });
        } else {
            asked.sent.push(sealed.number);
        }
    }

    fn load(&mut self, db: u16, keys: Vec<Box<[u8]>>) {
        let told = keys.into_iter().map(|key| Told::Loaded { db, key, row: None });
        self.0.lock().told.extend(told);
    }

    fn ask(&mut self, _conn: ConnId, _query: Query) {}

    fn is_ready(&self) -> bool {
        true
    }

    fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.0.lock().told)
    }

    fn links(&mut self) -> &mut dyn Links {
        self
    }
}

impl Links for TablesAndOut {
    fn count(&self) -> usize {
        1
    }

    fn wanted(&mut self, _now: Moment) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().wanted)
    }

    fn opened(&mut self, link: usize, _now: Moment) {
        self.0.lock().happened.push(format!("opened {link}"));
    }

    fn failed(&mut self, link: usize, why: &str, _now: Moment) {
        self.0.lock().happened.push(format!("failed {link}: {why}"));
    }

    fn receive(&mut self, _link: usize, bytes: &[u8], _now: Moment) {
        self.0.lock().received.extend_from_slice(bytes);
    }

    fn closed(&mut self, link: usize, why: &str, _now: Moment) {
        self.0.lock().happened.push(format!("closed {link}: {why}"));
    }

    fn next_due(&self) -> Option<Moment> {
        None
    }

    fn out(&mut self, _link: usize) -> &mut Vec<u8> {
        let given = std::mem::take(&mut self.0.lock().out);
        self.1.extend(given);
        &mut self.1
    }

    fn dropped(&mut self) -> Vec<usize> {
        Vec::new()
    }
}

/// A plane, its tables, and what its clients have read.
struct World {
    plane: RedisPlane,
    tables: Tables,
    now: Moment,
    read: BTreeMap<u32, Vec<u8>>,
    /// Clients that do not read.
    deaf: Vec<u32>,
    closed: Vec<u32>,
    control: Vec<ToControl>,
    peers: Vec<(u8, ToWorker)>,
    tls: Vec<(u32, Vec<u8>)>,
    closed_links: Vec<usize>,
}

const TRUSTING: &str = "listen.redis = \"127.0.0.1:6379\"\nauth.method = \"trust\"\n\
                        databases.app.user = \"u\"\n";

impl World {
    fn new(text: &str) -> World {
        World::with_worker(text, 0, false)
    }

    fn with_worker(text: &str, worker: u8, tls_ready: bool) -> World {
        let config = Config::from_text(text).unwrap_or_else(|report| panic!("{report}"));
        let tables = Tables::default();
        let epoch = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let store = TablesAndOut(tables.clone(), Vec::new());
        let shared = Arc::new(Shared::new(&config, Box::new(store), || 1_000_000_000_000_000, 1));
        let config = Arc::new(config);
        let caches = Arc::new(Caches::default());
        let common = Arc::new(Common::new(caches.clone()));
        let setting = Setting { worker, config, shared, caches, common, epoch, tls_ready };
        let plane = RedisPlane::new(setting);
        let taken = Told::Taken { applied: vec![0; 2], kids: 1, same: true };
        tables.lock().told.push(taken);
        let mut world = World {
            plane,
            tables,
            now: Moment(1),
            read: BTreeMap::new(),
            deaf: Vec::new(),
            closed: Vec::new(),
            control: Vec::new(),
            peers: Vec::new(),
            tls: Vec::new(),
            closed_links: Vec::new(),
        };
        world.turn();
        world
    }

    fn connect(&mut self) -> u32 {
        self.connect_from([127, 0, 0, 1], (None, None))
    }

    fn connect_from(
        &mut self,
        address: [u8; 4],
        tls: (Option<Arc<str>>, Option<Box<Subject>>),
    ) -> u32 {
        let ends = Ends::Tcp { remote: (address, 1).into(), local: ([127, 0, 0, 1], 1).into() };
        let slot = self.plane.client_connected(ends, tls, self.now);
        self.read.insert(slot, Vec::new());
        slot
    }

    fn send(&mut self, slot: u32, bytes: &[u8]) {
        self.plane.client_bytes(slot, bytes);
    }

    /// The rest of a turn, as the driver does it.
    fn turn(&mut self) {
        self.plane.end_turn();
        for slot in std::mem::take(&mut self.plane.written) {
            if self.deaf.contains(&slot) {
                continue;
            }
            let Some(client) = self.plane.clients.get_mut(slot) else { continue };
            let out = std::mem::take(&mut client.out);
            self.read.entry(slot).or_default().extend(out);
            self.plane.client_flushed(slot);
        }
        for effect in std::mem::take(&mut self.plane.effects) {
            match effect {
                Effect::Close(slot) => {
                    self.closed.push(slot);
                    self.plane.client_forgotten(slot);
                }
                Effect::Control(message) => self.control.push(message),
                Effect::Peer(worker, message) => self.peers.push((worker, message)),
                Effect::StartTls { slot, early } => {
                    self.tls.push((slot, early));
                    self.plane.client_forgotten(slot);
                }
                Effect::CloseLink(link) => self.closed_links.push(link),
            }
        }
        self.now = self.now.after(Duration::from_millis(1));
        self.plane.begin_turn(self.now);
    }

    /// Turns until nothing is left to do.
    fn settle(&mut self) {
        for _ in 0..1000 {
            self.turn();
            if !self.tables.lock().told.is_empty() {
                self.plane.told(ToWorker::RedisEvents);
            }
            if !self.plane.has_more() && self.plane.written.is_empty() {
                return;
            }
        }
        panic!("it never ends");
    }

    /// What a client has read since it was last asked for.
    fn heard(&mut self, slot: u32) -> String {
        let heard = self.read.get_mut(&slot).map(std::mem::take).unwrap_or_default();
        heard.escape_ascii().to_string()
    }

    #[track_caller]
    fn says(&mut self, slot: u32, bytes: &[u8], expected: &str) {
        self.send(slot, bytes);
        self.settle();
        assert_eq!(self.heard(slot), expected.escape_default().to_string());
    }

    /// Everything that was sent is in the tables.
    fn commit(&mut self) {
        let mut asked = self.tables.lock();
        let sent = std::mem::take(&mut asked.sent);
        asked.told.extend(sent.into_iter().map(|number| Told::Committed { number }));
        drop(asked);
        self.plane.told(ToWorker::RedisEvents);
        self.settle();
    }

    /// Everything that was sent is not, and will not be.
    fn undo(&mut self) {
        self.fail();
        self.settle();
    }

    /// The same, to be heard in the next turn.
    fn fail(&mut self) {
        let mut asked = self.tables.lock();
        let sent = std::mem::take(&mut asked.sent);
        asked.told.extend(sent.into_iter().map(|number| Told::Conflict { number }));
        drop(asked);
        self.plane.told(ToWorker::RedisEvents);
    }
}
