//! Copies of tables, beside the stream that goes on with them: one at a time, in the order in which
//! they are asked for.
//!
//! ```text
//! Tap::copy -> Copies (waiting) -> run: Holder on one connection, Copiers on some -> Rows
//! ```

use std::collections::VecDeque;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

use backend::replication::snapshot::copier::{Copier, Step};
use backend::replication::snapshot::holder::{Held, Holder, Todo};
use backend::replication::snapshot::pieces::Pieces;
use backend::replication::snapshot::{Limits, Rows, Source, SETTINGS};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use wire::pg::frontend;

use super::keeping::{ask, started, Login};
use super::{lock, Tap};
use crate::control::dial::CLOSED;
use crate::control::open::Session;
use crate::control::transport::Transport;

/// Most copies that wait for their turn.
pub const WAITING_MAX: usize = 1024;

/// Most connections of one copy, beside the one that holds the snapshot.
pub const CONNECTIONS_MAX: usize = 16;

/// What is read of a connection before others, the stream among them, have their turn.
const SLICE_BYTES: usize = 256 << 10;

/// A buffer that grew for a long row is given back beyond this.
const RECEIVED_BYTES_KEPT: usize = 4 * SLICE_BYTES;

/// A server that says nothing for so long has gone away. It may have to read a piece in which
/// nothing is to be seen.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Between two looks at who waits for the copy.
const LOOKS_APART: Duration = Duration::from_millis(500);

/// Why nothing is copied while a stream has not noticed that another server has taken over.
const OTHER_SERVER: &str = "another server answers than the one that is followed";

/// Why a copy has failed that was under way, or waited, when its stream ended.
const ENDED: &str = "the stream has ended";

impl Tap {
    /// Copies these tables as one snapshot sees them and tells `rows`, on the streams' thread. It
    /// ends with the stream: a copy that is not done has failed before the stream is lost. Where
    /// nothing is followed or too many copies wait, `rows` is told so before this returns, so it
    /// is not asked for again from within [`Rows::failed`].
    pub fn copy(&self, sources: Vec<Source>, limits: Limits, rows: Box<dyn Rows>) {
        self.0.copies.add(Copy { sources, limits, rows: Some(rows) });
    }
}

/// Those that wait.
#[derive(Default)]
pub struct Copies {
    /// A plain mutex: held for a look, and never while somebody is told.
    waiting: Mutex<Waiting>,
    /// One more.
    added: Notify,
}

#[derive(Default)]
struct Waiting {
    is_open: bool,
    copies: VecDeque<Copy>,
}

impl Copies {
    fn add(&self, copy: Copy) {
        let refused = {
            let mut waiting = lock(&self.waiting);
            match (waiting.is_open, waiting.copies.len() < WAITING_MAX) {
                (true, true) => {
                    waiting.copies.push_back(copy);
                    None
                }
                (true, false) => Some((copy, "too many copies are waiting")),
                (false, _) => Some((copy, "the database is not followed")),
            }
        };
        match refused {
            Some((mut copy, why)) => copy.end(Err(why.to_owned())),
            None => self.added.notify_one(),
        }
    }

    /// A stream is about to begin.
    pub fn open(&self) {
        lock(&self.waiting).is_open = true;
    }

    /// It has ended, and with it all that wait.
    pub fn close(&self) {
        let left = {
            let mut waiting = lock(&self.waiting);
            waiting.is_open = false;
            std::mem::take(&mut waiting.copies)
        };
        drop(left);
    }

    async fn next(&self) -> Copy {
        loop {
            if let Some(copy) = lock(&self.waiting).copies.pop_front() {
                return copy;
            }
            self.added.notified().await;
        }
    }
}

/// Copies what is asked for, for as long as it is not dropped.
/// From the server that was started then.
pub async fn run(tap: Tap, login: Login, server: i64) {
    loop {
        let mut copy = tap.0.copies.next().await;
        let done = copy.run(&login, server).await;
        copy.end(done);
    }
}

struct Copy {
    sources: Vec<Source>,
    limits: Limits,
    /// None once it was told how it has ended.
    rows: Option<Box<dyn Rows>>,
}

impl Copy {
    async fn run(&mut self, login: &Login, server: i64) -> Result<(), String> {
        let Some(rows) = self.rows.as_deref_mut() else { return Ok(()) };
        let mut holder = Holder::new(std::mem::take(&mut self.sources))?;
        let mut session = open(login).await?;
        if started(&mut session).await? != server {
            return Err(OTHER_SERVER.to_owned());
        }
        let mut todo = Todo::Ask(holder.begin());
        let held = loop {
            todo = match todo {
                Todo::Ask(sql) => holder.answer(ask(&mut session, &sql).await?)?,
                Todo::Copy(held) => break held,
            };
        };
        let sources = holder.sources().to_vec();
        let pieces = Pieces::new(&held.tables, &self.limits, held.version);
        let copies = async {
            let connections = self.limits.connections.clamp(1, CONNECTIONS_MAX);
            let copiers = connect(login, connections.min(pieces.count()), &held).await?;
            rows.began(&held.snapshot, held.lsn, &held.tables)?;
            Copiers { copiers, sources, pieces, next: 0 }.run(rows).await
        };
        tokio::select! {
            done = copies => done?,
            why = watch(&mut holder, &mut session) => return Err(why),
        }
        // Without its locks somebody may have emptied what was copied last.
        let ended = ask(&mut session, "COMMIT").await?;
        ended.map_err(|error| format!("the snapshot was held no more: {error}"))?;
        let mut out = Vec::new();
        frontend::put_terminate(&mut out);
        let _ = session.send(&out).await;
        Ok(())
    }

    fn end(&mut self, done: Result<(), String>) {
        let Some(mut rows) = self.rows.take() else { return };
        match done {
            Ok(()) => rows.done(),
            Err(why) => rows.failed(&why),
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.end(Err(ENDED.to_owned()));
    }
}

async fn open(login: &Login) -> Result<Session, String> {
    login.open(&SETTINGS).await.map_err(|error| error.message)
}

/// Has an eye on who waits for the copy. Ends when it has to give way, or the snapshot is lost.
async fn watch(holder: &mut Holder, session: &mut Session) -> String {
    loop {
        tokio::time::sleep(LOOKS_APART).await;
        let looked = ask(session, &holder.look()).await;
        if let Err(why) = looked.and_then(|answer| holder.looked(answer)) {
            return why;
        }
    }
}

/// As many as can be had: one is enough.
async fn connect(login: &Login, wanted: usize, held: &Held) -> Result<Vec<Connection>, String> {
    let mut copiers = Vec::new();
    for _ in 0..wanted {
        let (transport, received) = match open(login).await {
            Ok(session) => session.into_parts(),
            Err(_) if !copiers.is_empty() => break,
            Err(why) => return Err(why),
        };
        let mut connection = Connection { copier: Copier::start(&held.name), transport, received };
        connection.send().await?;
        copiers.push(connection);
    }
    Ok(copiers)
}

struct Connection {
    copier: Copier,
    transport: Transport,
    received: Vec<u8>,
}

impl Connection {
    /// Sends what the copier has to say.
    async fn send(&mut self) -> Result<(), String> {
        let bytes = std::mem::take(self.copier.out());
        let sending = async {
            self.transport.write_all(&bytes).await?;
            self.transport.flush().await
        };
        match tokio::time::timeout(SILENCE_MAX, sending).await {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_) => Err(format!("the server took nothing for {SILENCE_MAX:?}")),
        }
    }

    /// Makes room for a slice.
    fn make_room(&mut self) {
        if self.received.len() < SLICE_BYTES && self.received.capacity() > RECEIVED_BYTES_KEPT {
            self.received.shrink_to(2 * SLICE_BYTES);
        }
        self.received.reserve(SLICE_BYTES);
    }
}

/// Connections that share the pieces.
struct Copiers {
    copiers: Vec<Connection>,
    sources: Vec<Source>,
    pieces: Pieces,
    /// Whose turn it is to be read first.
    next: usize,
}

impl Copiers {
    async fn run(mut self, rows: &mut dyn Rows) -> Result<(), String> {
        while !self.copiers.is_empty() {
            let silent = || format!("nothing was heard of the server for {SILENCE_MAX:?}");
            let reading = tokio::time::timeout(SILENCE_MAX, self.read());
            let place = reading.await.map_err(|_| silent())??;
            let Some(connection) = self.copiers.get_mut(place) else { continue };
            let Connection { copier, received, .. } = connection;
            match copier.receive(received, rows)? {
                Step::Await => {}
                Step::Free(copied) => {
                    if let Some(piece) = copied {
                        let (done, total) = self.pieces.done(&piece);
                        rows.progress(piece.table, done, total);
                    }
                    let piece = self.pieces.take();
                    let source = piece.as_ref().and_then(|piece| self.sources.get(piece.table));
                    match piece.as_ref().zip(source) {
                        Some((piece, source)) => copier.copy(piece.clone(), source),
                        None => copier.end(),
                    }
                    connection.send().await?;
                }
                Step::Over => {
                    let mut connection = self.copiers.swap_remove(place);
                    frontend::put_terminate(connection.copier.out());
                    // It has told all: that it goes is politeness.
                    let _ = connection.send().await;
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Reads a slice of the first connection that has one; gives its place.
    async fn read(&mut self) -> Result<usize, String> {
        let Copiers { copiers, next, .. } = self;
        let count = copiers.len();
        poll_fn(|context| {
            for turn in 0..count {
                let place = (*next + turn) % count;
                let Some(connection) = copiers.get_mut(place) else { continue };
                connection.make_room();
                let Connection { transport, received, .. } = connection;
                let mut slice = transport.take(SLICE_BYTES as u64);
                let reading = pin!(slice.read_buf(received));
                if let Poll::Ready(read) = reading.poll(context) {
                    *next = place + 1;
                    return Poll::Ready(match read {
                        Ok(0) => Err(CLOSED.to_owned()),
                        Ok(_) => Ok(place),
                        Err(error) => Err(error.to_string()),
                    });
                }
            }
            Poll::Pending
        })
        .await
    }
}
