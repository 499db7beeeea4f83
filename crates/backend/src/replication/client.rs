//! The connection that streams, without socket and clock: bytes in, bytes out, calls of
//! [`Changes`].
//!
//! ```text
//! Creating --slot--> Starting --CopyBothResponse--> Streaming --loss--> the end
//! ```
//!
//! It begins when the connection has logged in with `replication=database` and
//! [`super::SETTINGS`]. The caller gives it what comes ([`Client::receive`]), sends what
//! is in [`Client::out`] after every call, calls [`Client::tick`] when [`Client::next_tick`] is
//! there, and closes the connection at the first error. The slot is temporary: it goes with the
//! connection.
//!
//! Source: "Streaming Replication Protocol", "Logical Streaming Replication Protocol".

use std::time::Duration;

use wire::pg::backend::{self, tag};
use wire::pg::replication::{self, FromServer, Lsn, StatusUpdate};
use wire::pg::{frontend, header, HEADER_BYTES};

use super::catalogue::Server;
use super::decode::Decoder;
use super::missing::{identifier, literal, Missing};
use super::{Changes, Ended, PublishedTable};
use crate::login::ServerError;
use crate::moment::Moment;

/// The longest time between two status updates. PostgreSQL's own client has the same
/// (`wal_receiver_status_interval`).
pub const STATUS_INTERVAL: Duration = Duration::from_secs(10);

const STATUS_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// While somebody waits for a position, the server is asked when nothing was heard of one for so
/// long: mostly it tells by itself. The pause is doubled each time that its answer is not far
/// enough, up to a limit: what is not in its log's files yet it can't tell.
pub const ASK_PAUSE: Duration = Duration::from_millis(1);
pub const ASK_PAUSE_MAX: Duration = Duration::from_millis(100);

/// Most bytes of one message: a row with its old one, as text. A longer one ends the stream; the
/// next begins behind it.
pub const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// The header of the first page of a file of the log; those of others are shorter, by less than a
/// record.
///
/// Source: `SizeOfXLogLongPHD` in src/include/access/xlog_internal.h.
const PAGE_HEADER_BYTES: u64 = 40;

/// A buffer that grew for a large message is given back beyond this.
const INBOX_BYTES_KEPT: usize = 1 << 20;

/// What a stream is made with.
#[derive(Debug, Clone)]
pub struct Options {
    pub publication: String,
    /// A name that no other slot of the server has.
    pub slot: String,
    pub server: Server,
    /// The stream is lost when nothing was heard for so long.
    pub silence: Duration,
    /// The server's kind of time at [`Moment`] zero: microseconds since 2000-01-01.
    pub epoch: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The slot is being made; the server waits for transactions that run.
    Creating,
    Starting,
    Streaming,
}

/// See the head of this file.
pub struct Client {
    options: Options,
    tables: Vec<PublishedTable>,
    phase: Phase,
    /// The beginning of a message that has not come whole.
    inbox: Vec<u8>,
    out: Vec<u8>,
    decoder: Decoder,
    /// Where the stream begins.
    start: u64,
    /// Everything before it has been told.
    told: u64,
    /// The server has said how far it is, in what was received last.
    is_further: bool,
    /// When the last told transaction was committed, by the server's clock, and when it was told.
    committed: Option<(i64, Moment)>,
    heard: Moment,
    /// When the last status update was sent, and the position that it had.
    sent: (Moment, u64),
    /// A keepalive was asked for, and is wanted again after that.
    pinged: bool,
    ping_again: bool,
    /// The furthest position that somebody waits for; zero if nobody does.
    wanted: u64,
    /// When the server last said how far it is, or was asked.
    moved: Moment,
    ask_pause: Duration,
    /// Every position is reported at once: somebody waits for it.
    pub eager: bool,
}

impl Client {
    pub fn start(options: Options, tables: Vec<PublishedTable>, now: Moment) -> Client {
        let mut out = Vec::new();
        let slot = identifier(&options.slot);
        let create =
            format!("CREATE_REPLICATION_SLOT {slot} TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT");
        frontend::put_query(&mut out, create);
        Client {
            options,
            tables,
            phase: Phase::Creating,
            inbox: Vec::new(),
            out,
            decoder: Decoder::new(),
            start: 0,
            told: 0,
            is_further: false,
            committed: None,
            heard: now,
            sent: (now, 0),
            pinged: false,
            ping_again: false,
            wanted: 0,
            moved: now,
            ask_pause: ASK_PAUSE,
            eager: false,
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Bytes for the server; the caller takes them away.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    pub fn slot(&self) -> &str {
        &self.options.slot
    }

    /// Everything before this position has been told; zero before the stream began.
    pub fn told(&self) -> u64 {
        self.told
    }

    /// How long the last transaction took from its commit until it was told, by two clocks.
    pub fn delay(&self) -> Option<Duration> {
        let (time, told) = self.committed?;
        let micros = self.clock(told).saturating_sub(time);
        Some(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    }

    /// When the server was last heard of.
    pub fn heard(&self) -> Moment {
        self.heard
    }

    /// The tables that the stream tells, while it has not begun.
    pub fn set_tables(&mut self, tables: Vec<PublishedTable>) {
        self.tables = tables;
    }

    /// Whether a table was described for the first time since the last call. It may be one that
    /// nobody has looked at, such as a new partition.
    pub fn new_table(&mut self) -> bool {
        std::mem::take(&mut self.decoder.is_new)
    }

    fn clock(&self, now: Moment) -> i64 {
        self.options.epoch.saturating_add(i64::try_from(now.0).unwrap_or(i64::MAX))
    }

    /// Takes bytes of the server.
    ///
    /// # Errors
    /// The stream is over; the consumer is told by the caller.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        now: Moment,
        changes: &mut dyn Changes,
    ) -> Result<(), Ended> {
        self.heard = now;
        self.is_further = false;
        let done = match self.inbox.is_empty() {
            true => self.messages(bytes, now, changes).map(|used| {
                self.inbox.extend_from_slice(&bytes[used..]);
            }),
            false => {
                let mut inbox = std::mem::take(&mut self.inbox);
                inbox.extend_from_slice(bytes);
                self.messages(&inbox, now, changes).map(|used| {
                    inbox.drain(..used);
                    if inbox.is_empty() && inbox.capacity() > INBOX_BYTES_KEPT {
                        inbox = Vec::new();
                    }
                    self.inbox = inbox;
                })
            }
        };
        // What was told before an error counts.
        if self.is_further {
            let reached = self.reached();
            self.moved = now;
            if self.wanted <= reached {
                self.wanted = 0;
            }
            changes.progress(reached);
            if self.eager {
                self.report(now, false);
            }
        }
        done
    }

    /// Nothing before this is still to be told. Where a record has ended with its page, the next is
    /// inserted behind the next page's header: `pg_current_wal_insert_lsn` is further than the
    /// stream comes before something is written. Nothing but a header can end there.
    fn reached(&self) -> u64 {
        match self.told.checked_rem(self.options.server.wal_block) {
            Some(0) => self.told + PAGE_HEADER_BYTES,
            _ => self.told,
        }
    }

    /// Takes every whole message; gives the bytes that they had.
    fn messages(
        &mut self,
        bytes: &[u8],
        now: Moment,
        changes: &mut dyn Changes,
    ) -> Result<usize, Ended> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let malformed = |error: wire::pg::WireError| Ended::Lost(error.to_string());
            let Some(head) = header(rest).map_err(malformed)? else { return Ok(used) };
            if head.total > MESSAGE_BYTES_MAX {
                let most = MESSAGE_BYTES_MAX >> 20;
                return Err(Ended::Lost(format!("a message of more than {most} MB")));
            }
            let Some(message) = rest.get(HEADER_BYTES..head.total) else { return Ok(used) };
            self.message(head.tag, message, now, changes)?;
            used += head.total;
        }
    }

    fn message(
        &mut self,
        kind: u8,
        body: &[u8],
        now: Moment,
        changes: &mut dyn Changes,
    ) -> Result<(), Ended> {
        let malformed = |error: wire::pg::WireError| Ended::Lost(error.to_string());
        match (kind, self.phase) {
            (tag::NOTICE | tag::PARAMETER_STATUS, _) => Ok(()),
            (tag::ERROR, phase) => {
                Err(self.error(ServerError::read(body).map_err(malformed)?, phase))
            }
            (tag::ROW_DESCRIPTION | tag::COMMAND_COMPLETE, Phase::Creating) => Ok(()),
            (tag::DATA_ROW, Phase::Creating) => {
                // slot_name, consistent_point, snapshot_name, output_plugin
                let row = backend::data_row(body).map_err(malformed)?;
                let point = row.get(1).copied().flatten().map(String::from_utf8_lossy);
                let point = point.unwrap_or_default().parse::<Lsn>().map_err(malformed)?;
                self.start = point.0;
                Ok(())
            }
            (tag::READY_FOR_QUERY, Phase::Creating) => {
                let start = self.start_replication();
                frontend::put_query(&mut self.out, start);
                self.phase = Phase::Starting;
                Ok(())
            }
            (tag::COPY_BOTH, Phase::Starting) => {
                self.phase = Phase::Streaming;
                self.told = self.start;
                changes.began(self.start, &self.tables);
                self.tables = Vec::new();
                // Its answer tells how far the server is.
                self.ping(now);
                Ok(())
            }
            (tag::COPY_DATA, Phase::Streaming) => self.data(body, now, changes),
            (tag::COPY_DONE, Phase::Streaming) => {
                Err(Ended::Lost("the server has ended the stream".to_owned()))
            }
            (kind, phase) => Err(Ended::Lost(format!(
                "an unexpected message '{}' ({phase:?})",
                kind.escape_ascii()
            ))),
        }
    }

    fn start_replication(&self) -> String {
        let Options { publication, slot, server, .. } = &self.options;
        // Source: `LOGICALREP_PROTO_STREAM_VERSION_NUM` and its like in
        // src/include/replication/logicalproto.h.
        let (version, streaming) = match server.version {
            ..140_000 => (1, ""),
            140_000..150_000 => (2, ", streaming 'on'"),
            150_000..160_000 => (3, ", streaming 'on'"),
            _ => (4, ", streaming 'on'"),
        };
        // A list of names within a string.
        let names = literal(&identifier(publication));
        format!(
            "START_REPLICATION SLOT {} LOGICAL {} (proto_version '{version}', \
             publication_names {names}{streaming})",
            identifier(slot),
            Lsn(self.start)
        )
    }

    fn error(&self, error: ServerError, phase: Phase) -> Ended {
        let missing = match phase {
            Phase::Creating => Missing::at_slot(&self.options.server, &error),
            _ => None,
        };
        match missing {
            Some(missing) => Ended::Refused(missing),
            None => Ended::Lost(error.to_string()),
        }
    }

    fn data(&mut self, body: &[u8], now: Moment, changes: &mut dyn Changes) -> Result<(), Ended> {
        match replication::from_server(body).map_err(|error| Ended::Lost(error.to_string()))? {
            FromServer::Data { data, .. } => {
                if let Some(committed) = self.decoder.take(data, changes).map_err(Ended::Lost)? {
                    // Commits come in the order of the log.
                    self.told = self.told.max(committed.end);
                    self.is_further = true;
                    self.committed = Some((committed.time, now));
                }
            }
            FromServer::Keepalive { end, reply, .. } => {
                self.told = self.told.max(end);
                self.is_further = true;
                self.pinged = false;
                if std::mem::take(&mut self.ping_again) {
                    self.ping(now);
                } else if reply {
                    self.report(now, false);
                }
            }
        }
        Ok(())
    }

    /// Asks the server how far it is: a keepalive comes with the position, and so
    /// [`Changes::progress`].
    pub fn ping(&mut self, now: Moment) {
        match (self.phase, self.pinged) {
            (Phase::Streaming, false) => {
                self.pinged = true;
                self.report(now, true);
            }
            // What is under way may be answered with a position from before this call.
            (Phase::Streaming, true) => self.ping_again = true,
            _ => {}
        }
    }

    /// Somebody waits until this position is reached: the server is asked how far it is, unless it
    /// has just said so, and again from time to time until it is there.
    pub fn want(&mut self, position: u64, now: Moment) {
        if self.phase != Phase::Streaming || position <= self.reached().max(self.wanted) {
            return;
        }
        (self.wanted, self.ask_pause) = (position, ASK_PAUSE);
        self.ask(now);
    }

    /// Asks if it is time; whether it was.
    fn ask(&mut self, now: Moment) -> bool {
        let due = self.ask_at().is_some_and(|at| at <= now);
        if due {
            self.moved = now;
            self.pinged = true;
            self.report(now, true);
        }
        due
    }

    fn ask_at(&self) -> Option<Moment> {
        let asks = self.wanted != 0 && !self.pinged;
        asks.then(|| self.moved.after(self.ask_pause))
    }

    fn report(&mut self, now: Moment, reply: bool) {
        if !reply && self.sent == (now, self.told) {
            return;
        }
        self.sent = (now, self.told);
        let (position, time) = (self.told, self.clock(now));
        let update =
            StatusUpdate { written: position, flushed: position, applied: position, time, reply };
        replication::put_status_update(&mut self.out, &update);
    }

    /// How often the server is told, and asked: an answer that is late once is no loss.
    fn interval(&self) -> Duration {
        STATUS_INTERVAL.min(self.options.silence / 3).max(STATUS_INTERVAL_MIN)
    }

    /// When [`Client::tick`] is to be called.
    pub fn next_tick(&self) -> Option<Moment> {
        match self.phase {
            Phase::Creating => None,
            Phase::Starting => Some(self.heard.after(self.options.silence)),
            Phase::Streaming => {
                let report = self.sent.0.after(self.interval());
                let next = self.heard.after(self.options.silence).min(report);
                Some(self.ask_at().map_or(next, |at| at.min(next)))
            }
        }
    }

    /// # Errors
    /// Nothing was heard of the server for too long.
    pub fn tick(&mut self, now: Moment) -> Result<(), Ended> {
        if self.phase == Phase::Creating {
            return Ok(());
        }
        if now.since(self.heard) >= self.options.silence {
            let silence = self.options.silence;
            return Err(Ended::Lost(format!("nothing was heard of the server for {silence:?}")));
        }
        if self.phase != Phase::Streaming {
            return Ok(());
        }
        if self.ask(now) {
            self.ask_pause = (self.ask_pause * 2).min(ASK_PAUSE_MAX);
        }
        if now.since(self.sent.0) >= self.interval() {
            let quiet = self.heard <= self.sent.0;
            self.pinged |= quiet;
            self.report(now, quiet);
        }
        Ok(())
    }
}
