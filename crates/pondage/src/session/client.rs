//! One client of a worker. An idle one is this structure and nothing else: buffers, log-in state
//! and statement names exist only while there is something in them.

use std::collections::VecDeque;
use std::sync::Arc;

use backend::moment::Moment;
use backend::pool::Budget;
use backend::settings::Settings;
use cache::fill::Fill;
use wire::pg::backend::TxStatus;

use super::explain::Last;
use super::listens::Listens;
use super::login::Login;
use super::names::{Names, Naming};
use super::trace::Trace;
use super::unit::Unit;
use crate::control::messages::ConsoleUser;
use crate::link::Ends;
use crate::procedures::Running;
use crate::route::Why;
use crate::worker::plane::{Reads, Sight, Wrote};

/// No server, no pool.
pub const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub enum Phase {
    LoggingIn(Box<Login>),
    /// Logged in; the pool's first server has to say what it reports before the client can be
    /// greeted.
    AwaitWelcome(Box<Login>),
    Pooled,
    Console(Arc<ConsoleUser>),
    /// It is told why and then closed; what it sends is not read.
    Leaving,
}

/// What becomes of the rest of a message whose head has been dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    ToServer,
    Dropped,
}

/// Why the client's input is not taken at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    No,
    /// It waits in its pool's queue.
    Waiting,
    /// Its server is being prepared: settings are applied, or it is checked.
    SetUp,
    /// A request names a statement that an unanswered batch decides on.
    Uncertain,
    /// The server takes bytes, or answers requests, more slowly than the client sends them.
    ServerFull,
    /// The client does not read what it is sent.
    Unread,
    /// Its statement is on its way with others', or waits to be.
    Joined,
    /// Its read waits until what is kept is known to be new enough.
    Stream,
    /// Its LISTEN, or what it has done since, is to be known to the connection that listens.
    Listens,
    /// Another part of Pondage has to answer first (a secret, a verifier, a console command).
    Control,
}

/// A transaction of which no server knows yet.
#[derive(Debug)]
pub struct Begun {
    /// The client's BEGIN.
    pub text: Box<[u8]>,
    /// A statement in it has failed.
    pub failed: bool,
    /// Its reads may be answered before any server knows of it.
    pub reads: bool,
}

impl Begun {
    pub fn status(&self) -> TxStatus {
        if self.failed {
            TxStatus::Failed
        } else {
            TxStatus::InTransaction
        }
    }
}

/// Who a client of a shared pool is.
#[derive(Debug)]
pub struct Guest {
    pub user: String,
    /// Counts the clients of that user.
    pub clients: Arc<Budget>,
}

#[derive(Debug)]
pub struct Client {
    pub generation: u32,
    pub id: u64,
    pub ends: Ends,
    /// "TLSv1.3/...", or none.
    pub tls: Option<Arc<str>>,
    /// The secret half of its cancel key, or what that is made of: see `cancel_key.rs`.
    pub secret: u32,
    /// It speaks protocol 3.2.
    pub long_key: bool,
    pub phase: Phase,
    pub hold: Hold,
    pub pool: u32,
    /// It has logged in as another than the pool's user.
    pub guest: Option<Box<Guest>>,
    pub server: u32,
    /// Bytes read and not yet taken.
    pub input: Vec<u8>,
    /// Bytes to be written.
    pub out: Vec<u8>,
    /// Bytes of a message still to come whose head has been dealt with.
    pub rest: u32,
    pub rest_goes: Rest,
    pub settings: Arc<Settings>,
    /// What it has come with, where RESET goes back to.
    pub start: Option<Arc<Settings>>,
    pub names: Option<Box<Names>>,
    /// What the texts in flight change in its names, in order.
    pub namings: Option<Box<VecDeque<Naming>>>,
    /// Requests of the extended protocol have been sent, and no Sync since.
    pub batch_open: bool,
    /// The server waits for its CopyData.
    pub copies_in: bool,
    /// CopyDone or CopyFail has been sent since the last Execute.
    pub copy_ended: bool,
    /// After an error made here, messages are dropped up to a Sync.
    pub skips: bool,
    /// It has a place among `max_clients`.
    pub counted: bool,
    /// A statement that shares a server with others'.
    pub unit: Option<Box<Unit>>,
    /// The shape of the statement that is in flight by itself; [`NONE`]: none that is followed.
    pub asking: u32,
    /// It is a call.
    pub running: Option<Box<Running>>,
    /// How its last statement travelled.
    pub last: Option<Last>,
    /// Its next statement travels alone, for this reason.
    pub alone: Option<Why>,
    /// Bytes of the answer to its statement so far.
    pub answered: usize,
    /// What it is sent waits until what its statement has done is safe.
    pub corked: bool,
    /// What its statement is answered is to be kept.
    pub fill: Option<Box<Fill>>,
    /// What it has to do with what is kept.
    pub reads: Option<Box<Reads>>,
    /// What it may have written and was not told of yet.
    pub wrote: Option<Box<Wrote>>,
    /// A BEGIN that it was answered, and that no server has got yet.
    pub begun: Option<Box<Begun>>,
    /// What it listens to.
    pub listens: Option<Box<Listens>>,
    /// It is told how its statements travel.
    pub trace: Option<Box<Trace>>,
    /// How far it has seen, if its reads are split.
    pub sight: Option<Box<Sight>>,
    pub close_needed: bool,
    /// Whether the message that is next is sampled is decided.
    pub looked_at: bool,
    pub queued_out: bool,
    pub queued_resume: bool,
    pub connected: Moment,
    /// Since when it waits for a server or for its answer.
    pub asked: Moment,
    /// When its transaction began.
    pub began: Moment,
    /// When it last sent or got something.
    pub active: Moment,
}

impl Client {
    /// The transaction status while it has no server.
    pub fn status(&self) -> TxStatus {
        self.begun.as_ref().map_or(TxStatus::Idle, |begun| begun.status())
    }

    pub fn is_pooled(&self) -> bool {
        matches!(self.phase, Phase::Pooled)
    }

    pub fn has_server(&self) -> bool {
        self.server != NONE
    }

    /// It has a server, or a statement that needs none of its own, or waits for its answer's end.
    pub fn is_busy(&self) -> bool {
        self.has_server() || self.unit.is_some() || self.hold == Hold::Listens
    }

    /// The users of a shared pool take turns.
    pub fn party(&self) -> usize {
        self.guest.as_ref().map_or(0, |guest| Arc::as_ptr(&guest.clients) as usize)
    }

    pub fn names(&mut self) -> &mut Names {
        self.names.get_or_insert_default()
    }

    /// Frees what an idle client does not need.
    pub fn slim(&mut self) {
        if self.input.is_empty() && self.input.capacity() > 0 {
            self.input = Vec::new();
        }
        if self.names.as_ref().is_some_and(|names| names.is_empty()) {
            self.names = None;
        }
    }
}
