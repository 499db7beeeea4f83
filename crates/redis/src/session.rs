//! What the engine knows of a connection.

use crate::args::Words;
use crate::flow::Barrier;
use crate::query::Answer;
use crate::value::Kind;

/// A connection, by place and generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    pub slot: u32,
    pub generation: u32,
}

/// CLIENT REPLY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplyMode {
    #[default]
    On,
    Off,
    /// The next command has no reply.
    SkipNext,
    /// This one has none.
    Skip,
}

/// Commands queued since MULTI.
#[derive(Debug, Default, Clone)]
pub struct Multi {
    pub commands: Vec<Words>,
    /// One could not be queued: EXEC will fail.
    pub failed: bool,
    pub bytes: usize,
}

/// A command that waits for a key.
#[derive(Debug)]
pub struct Blocked {
    pub words: Words,
    pub db: u16,
    pub keys: Vec<Box<[u8]>>,
    /// What a key has to hold for the command to go on; none if any change may matter.
    pub kind: Option<Kind>,
    /// Grows with the order in which commands have blocked.
    pub number: u64,
    /// Milliseconds since 1970; none: for ever.
    pub until: Option<i64>,
    /// What is replied when the time is over.
    pub otherwise: Otherwise,
    /// What it has done before it blocked: XREADGROUP makes its consumer.
    pub barrier: Option<Barrier>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Otherwise {
    Null,
    NullArray,
}

/// Who is at the other end.
#[derive(Debug, Clone, Default)]
pub struct Peer {
    /// `address:port`, or `path:0` of a Unix-domain socket.
    pub address: Box<str>,
    /// The same of this end.
    pub local_address: Box<str>,
    /// A role of PostgreSQL.
    pub user: Box<str>,
    /// What CLIENT LIST shows as the socket's number.
    pub fd: i64,
}

/// A batch that replies wait for, and the shards of the keys that these are about.
///
/// If it is undone their commands run again, and whatever comes later and is about one of the same
/// keys has to run again behind them.
#[derive(Debug, Clone, Copy)]
pub struct HeldBy {
    pub barrier: Barrier,
    pub shards: u32,
}

#[derive(Debug)]
pub struct Session {
    pub conn: ConnId,
    /// CLIENT ID.
    pub number: u64,
    /// The worker that has its socket.
    pub worker: u8,
    pub db: u16,
    /// 2 or 3.
    pub protocol: u8,
    pub name: Box<[u8]>,
    pub library: (Box<[u8]>, Box<[u8]>),
    /// A role of PostgreSQL; `default` until it has said who it is.
    pub user: Box<str>,
    pub address: Box<str>,
    pub local_address: Box<str>,
    pub fd: i64,
    /// Milliseconds since 1970.
    pub since: i64,
    pub last_seen: i64,
    pub last_command: &'static str,
    pub reply_mode: ReplyMode,
    pub multi: Option<Multi>,
    pub watching: Vec<(u16, Box<[u8]>)>,
    /// A watched key has changed.
    pub tripped: bool,
    pub subscriptions: crate::pubsub::Subscriptions,
    /// CLIENT TRACKING.
    pub tracking: Option<Box<crate::tracking::Tracking>>,
    /// MONITOR: it is shown all commands.
    pub monitors: bool,
    /// The command runs again, because what it did was undone: it has been shown.
    pub shown: bool,
    /// The reply is out of band, and is told be it that CLIENT REPLY is off.
    pub told_anyway: bool,
    pub blocked: Option<Blocked>,
    /// Its command is a script's.
    pub in_script: bool,
    /// Rows or queries that the command to be run again waits for.
    pub outstanding: usize,
    /// What PostgreSQL has answered to the command that runs again, in the order of its questions.
    pub answers: Vec<Answer>,
    /// Questions that this run of the command has asked.
    pub questions: usize,
    /// When the first, in milliseconds since 1970.
    pub asked_at: i64,
    /// Why what the parked command wanted could not be had.
    pub refused: Option<String>,
    /// QUIT: it is closed when this reply is written.
    pub quitting: bool,
    /// CLIENT KILL: it is as good as closed.
    pub killed: bool,
    /// Its worker has yet to come to the event that earlier commands run again: nothing runs before.
    pub must_redo: bool,
    /// CLIENT NO-EVICT and NO-TOUCH, as CLIENT LIST shows them.
    pub no_evict: bool,
    pub no_touch: bool,
    /// What earlier replies of this connection wait for, one for each shard of the barriers.
    pub held: Vec<HeldBy>,
}

impl Session {
    pub fn new(conn: ConnId, number: u64, worker: u8, peer: Peer, now: i64) -> Session {
        Session {
            conn,
            number,
            worker,
            db: 0,
            protocol: 2,
            name: Box::default(),
            library: Default::default(),
            user: peer.user,
            address: peer.address,
            local_address: peer.local_address,
            fd: peer.fd,
            since: now,
            last_seen: now,
            last_command: "",
            reply_mode: ReplyMode::On,
            multi: None,
            watching: Vec::new(),
            tripped: false,
            subscriptions: Default::default(),
            tracking: None,
            monitors: false,
            shown: false,
            told_anyway: false,
            blocked: None,
            in_script: false,
            outstanding: 0,
            answers: Vec::new(),
            questions: 0,
            asked_at: 0,
            refused: None,
            quitting: false,
            killed: false,
            must_redo: false,
            no_evict: false,
            no_touch: false,
            held: Vec::new(),
        }
    }

    /// As MONITOR shows it.
    pub fn shown_address(&self) -> &str {
        match &*self.address {
            "" => "unix:",
            address => address,
        }
    }

    /// Later replies wait for this batch, too. `shards`: those of the keys that the unit has looked at
    /// or changed, as a mask.
    pub fn waits_for(&mut self, barrier: Barrier, shards: u32) {
        match self.held.iter_mut().find(|held| held.barrier.shard == barrier.shard) {
            Some(held) => {
                let same = held.barrier.term == barrier.term;
                let seq = if same { held.barrier.seq.max(barrier.seq) } else { barrier.seq };
                *held =
                    HeldBy { barrier: Barrier { seq, ..barrier }, shards: held.shards | shards };
            }
            None => self.held.push(HeldBy { barrier, shards }),
        }
    }
}

/// Where a connection is known.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    /// The worker that has its socket.
    worker: u8,
    is_open: bool,
    /// None while its command runs.
    session: Option<Box<Session>>,
}

/// All connections of all workers.
#[derive(Debug, Default)]
pub struct Sessions {
    slots: Vec<Slot>,
    free: Vec<u32>,
    numbers: u64,
    count: usize,
}

impl Sessions {
    pub fn open(&mut self, worker: u8, peer: Peer, now: i64) -> ConnId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        self.numbers += 1;
        self.count += 1;
        let place = &mut self.slots[slot as usize];
        let conn = ConnId { slot, generation: place.generation };
        (place.worker, place.is_open) = (worker, true);
        place.session = Some(Box::new(Session::new(conn, self.numbers, worker, peer, now)));
        conn
    }

    pub fn close(&mut self, conn: ConnId) -> Option<Box<Session>> {
        let place = self.slots.get_mut(conn.slot as usize)?;
        if place.generation != conn.generation {
            return None;
        }
        let session = place.session.take()?;
        place.generation += 1;
        place.is_open = false;
        self.free.push(conn.slot);
        self.count -= 1;
        Some(session)
    }

    /// Whose connection it is, be it that its command runs.
    pub fn worker(&self, conn: ConnId) -> Option<u8> {
        let place = self.slots.get(conn.slot as usize)?;
        (place.is_open && place.generation == conn.generation).then_some(place.worker)
    }

    pub fn get(&self, conn: ConnId) -> Option<&Session> {
        let place = self.slots.get(conn.slot as usize)?;
        place.session.as_deref().filter(|_| place.generation == conn.generation)
    }

    pub fn get_mut(&mut self, conn: ConnId) -> Option<&mut Session> {
        let place = self.slots.get_mut(conn.slot as usize)?;
        place.session.as_deref_mut().filter(|_| place.generation == conn.generation)
    }

    /// Takes a session out while its command runs; [`Sessions::put_back`] follows.
    pub fn take(&mut self, conn: ConnId) -> Option<Box<Session>> {
        let place = self.slots.get_mut(conn.slot as usize)?;
        if place.generation == conn.generation {
            place.session.take()
        } else {
            None
        }
    }

    pub fn put_back(&mut self, session: Box<Session>) {
        let conn = session.conn;
        self.slots[conn.slot as usize].session = Some(session);
    }

    /// All but the one whose command runs.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.slots.iter().filter_map(|slot| slot.session.as_deref())
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.slots.iter_mut().filter_map(|slot| slot.session.as_deref_mut())
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Connections since the beginning.
    pub fn opened(&self) -> u64 {
        self.numbers
    }
}
