//! How a stream is doing, for console and metrics.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend::replication::missing::Missing;
use backend::replication::plan::TableStanding;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Connecting,
    /// What it waits for.
    Preparing(&'static str),
    Following,
    /// It is tried again by itself.
    Lost {
        why: String,
        since: SystemTime,
    },
    /// It is tried again by itself, but somebody has to change something first.
    Refused {
        missing: Missing,
        since: SystemTime,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub database: String,
    pub state: State,
    /// Everything before this position has been told; zero unless it follows.
    pub lsn: u64,
    /// Where the server's log was at the last look.
    pub server_lsn: u64,
    /// How long the last transaction took from its commit until it was told, by both clocks.
    pub delay: Option<Duration>,
    pub slot: Option<String>,
    /// Bytes of the log that the server keeps because of it.
    pub slot_held: u64,
    pub publication: String,
    /// Every table of the database that is not temporary, and whether its changes are told.
    pub tables: Arc<Vec<TableStanding>>,
    /// The server's words when it last refused a change of the publication.
    pub complaint: Option<String>,
    /// Times that a stream has begun.
    pub begun: u64,
}

impl Standing {
    /// One that is being connected.
    pub fn new(database: &str, publication: &str) -> Standing {
        Standing {
            database: database.to_owned(),
            state: State::Connecting,
            lsn: 0,
            server_lsn: 0,
            delay: None,
            slot: None,
            slot_held: 0,
            publication: publication.to_owned(),
            tables: Arc::default(),
            complaint: None,
            begun: 0,
        }
    }

    /// Bytes of the log that have not been told yet, at the last look.
    pub fn lag(&self) -> u64 {
        match self.state {
            State::Following => self.server_lsn.saturating_sub(self.lsn),
            _ => 0,
        }
    }
}
