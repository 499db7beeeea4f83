//! Statements that were sampled, on their way from workers to a collector of traces.
//!
//! A worker puts what it knows of one into the [`Outbox`] and goes on; names, texts and identifiers
//! are made by the control plane, which sends them ([`otlp`]).

pub mod otlp;
pub mod parent;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use backend::statement::Statement;
use tokio::sync::mpsc;

use crate::link::Ends;
use crate::session::trace::Journey;
use parent::Parent;

/// Statements that may wait to be sent; one more is dropped and counted.
pub const QUEUE_MAX: usize = 4096;

/// Longer texts are not told.
pub const TEXT_BYTES_MAX: usize = 16 << 10;

/// A SQLSTATE.
pub type Code = [u8; 5];

/// The text of a statement as it came.
#[derive(Debug, Clone)]
pub enum Text {
    Own(Box<[u8]>),
    Prepared(Arc<Statement>),
    Unknown,
}

impl Text {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Text::Own(text) => text,
            Text::Prepared(statement) => &statement.query,
            Text::Unknown => b"",
        }
    }
}

/// How a statement has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Done,
    Failed(Code),
    /// Its client was closed, or has gone.
    Lost,
}

/// One statement that was sampled.
#[derive(Debug)]
pub struct Sampled {
    /// What it belongs to, if its text has said so.
    pub parent: Option<Parent>,
    pub text: Text,
    pub database: String,
    pub user: String,
    pub client_id: u64,
    pub client: Ends,
    pub began: SystemTime,
    pub took: Duration,
    pub journey: Journey,
    pub end: End,
}

/// What has become of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub sent: u64,
    /// The queue was full, or traces were switched off meanwhile.
    pub dropped: u64,
    /// The collector did not take them.
    pub failed: u64,
}

/// Where workers put what they have sampled. It never waits.
#[derive(Debug)]
pub struct Outbox {
    sender: mpsc::Sender<Box<Sampled>>,
    /// Until somebody takes it. A plain mutex: held to take it.
    receiver: Mutex<Option<mpsc::Receiver<Box<Sampled>>>>,
    sent: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Default for Outbox {
    fn default() -> Outbox {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        Outbox {
            sender,
            receiver: Mutex::new(Some(receiver)),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }
}

impl Outbox {
    pub fn put(&self, sampled: Box<Sampled>) {
        if self.sender.try_send(sampled).is_err() {
            self.dropped(1);
        }
    }

    pub fn open(&self) -> Option<mpsc::Receiver<Box<Sampled>>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn sent(&self, count: usize) {
        self.sent.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub fn dropped(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub fn failed(&self, count: usize) {
        self.failed.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub fn counts(&self) -> Counts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts { sent: of(&self.sent), dropped: of(&self.dropped), failed: of(&self.failed) }
    }
}

#[cfg(test)]
mod tests;
