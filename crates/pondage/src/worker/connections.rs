//! The connections of one kind at one worker: their sockets, and which of them are to be read.
//!
//! What is said on them is a plane's affair, which is asked and told through a [`Side`]. The
//! driver calls, in this order: [`Connections::note`] for what epoll tells, [`Connections::read`],
//! [`Connections::write`], [`Connections::close`] and [`Connections::linger`],
//! [`Connections::unhold`].

use std::io;
use std::time::Duration;

use backend::moment::Moment;
use mio::event::Event;
use mio::{Registry, Token};

use super::transport::{Got, Transport};

/// A peer that does not read its last message may stay so long.
const LINGER: Duration = Duration::from_secs(5);

/// The half of a token that is the connection's slot; the other half is its kind.
const SLOT: usize = 0xffff_ffff;

/// Why a connection ends that its peer has closed.
const GONE: &str = "the server closed the connection";

/// What a plane has to say of one kind of connections.
pub trait Side {
    /// A peer that has gone while it was not read is lost at once; else what it has said before
    /// is read as soon as it may be.
    const LOST_WHEN_GONE: bool;

    /// It wants to be given what there is to read.
    fn may_read(&self, slot: u32) -> bool;

    fn bytes(&mut self, slot: u32, bytes: &[u8]);

    fn closed(&mut self, slot: u32, why: &str);

    /// What is to be written.
    fn out(&mut self, slot: u32) -> Option<&mut Vec<u8>>;

    /// Everything is written.
    fn flushed(&mut self, slot: u32);

    /// It can't be written any more. True if what the peer said before is to be read first.
    fn write_failed(&mut self, slot: u32) -> bool;

    /// Those that have something to write, which the plane collects.
    fn written(&mut self) -> &mut Vec<u32>;

    /// It is closed, and so nothing is left of it.
    fn forgotten(&mut self, slot: u32);
}

pub struct Connections {
    /// The other half of the tokens.
    kind: usize,
    transports: Vec<Option<Transport>>,
    ready: Vec<u32>,
    /// Readable, but the plane does not want to read them now.
    held: Vec<u32>,
    /// To be closed when their last bytes are written.
    lingering: Vec<(u32, Moment)>,
}

impl Connections {
    /// `kind` is more than zero, and no other connections' of this worker.
    pub fn new(kind: usize) -> Connections {
        let (transports, ready) = (Vec::new(), Vec::new());
        Connections { kind, transports, ready, held: Vec::new(), lingering: Vec::new() }
    }

    /// The kind in a token; zero is none of connections.
    pub fn kind(token: Token) -> usize {
        token.0 >> 32
    }

    fn token(&self, slot: u32) -> Token {
        Token(self.kind << 32 | slot as usize)
    }

    /// Some are to be read without that an event would tell.
    pub fn are_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// None waits for its last bytes to be written.
    pub fn are_quiet(&self) -> bool {
        self.lingering.is_empty()
    }

    pub fn get(&self, slot: u32) -> Option<&Transport> {
        self.transports.get(slot as usize)?.as_ref()
    }

    /// Takes it out, to be closed or given away.
    pub fn take(&mut self, slot: u32) -> Option<Transport> {
        self.transports.get_mut(slot as usize)?.take()
    }

    /// All of them with their tokens, at the end.
    pub fn take_all(&mut self) -> Vec<(Token, Transport)> {
        let all = std::mem::take(&mut self.transports).into_iter().enumerate();
        all.filter_map(|(slot, transport)| Some((self.token(slot as u32), transport?))).collect()
    }

    /// A connection that is to be read at once if its transport says that it is readable.
    ///
    /// # Errors
    /// When epoll does not take it: the plane has to be told that it is closed.
    pub fn keep(
        &mut self,
        slot: u32,
        mut transport: Transport,
        registry: &Registry,
    ) -> io::Result<()> {
        let registered = transport.register(registry, self.token(slot));
        if transport.readable {
            transport.queued = true;
            self.ready.push(slot);
        }
        let at = slot as usize;
        if self.transports.len() <= at {
            self.transports.resize_with(at + 1, || None);
        }
        self.transports[at] = Some(transport);
        registered
    }

    /// Remembers what epoll has told.
    pub fn note(&mut self, event: &Event, side: &mut impl Side) {
        let slot = (event.token().0 & SLOT) as u32;
        let Some(Some(transport)) = self.transports.get_mut(slot as usize) else { return };
        if event.is_writable() {
            side.written().push(slot);
        }
        transport.ended |= event.is_read_closed() || event.is_error();
        if event.is_readable() || transport.ended {
            transport.readable = true;
            queue(&mut self.ready, transport, slot);
        }
    }

    /// Reads every readable one once.
    pub fn read<S: Side>(&mut self, side: &mut S, buffer: &mut [u8]) {
        for slot in std::mem::take(&mut self.ready) {
            let Some(Some(transport)) = self.transports.get_mut(slot as usize) else { continue };
            transport.queued = false;
            if !side.may_read(slot) {
                if transport.ended && S::LOST_WHEN_GONE {
                    side.closed(slot, GONE);
                } else {
                    self.held.push(slot);
                }
                continue;
            }
            match transport.read(buffer) {
                Ok(Got::Bytes { count, more }) => {
                    side.bytes(slot, &buffer[..count]);
                    // The rest, or the end that epoll has told of, is read in the next turn.
                    transport.readable = more || transport.ended;
                    if transport.readable {
                        queue(&mut self.ready, transport, slot);
                    }
                }
                Ok(Got::Nothing) => transport.readable = false,
                Ok(Got::End) => side.closed(slot, GONE),
                Err(error) => side.closed(slot, &error.to_string()),
            }
        }
    }

    /// Those that could not be read and now can.
    pub fn unhold<S: Side>(&mut self, side: &S) {
        let (transports, ready) = (&mut self.transports, &mut self.ready);
        self.held.retain(|slot| {
            let Some(Some(transport)) = transports.get_mut(*slot as usize) else { return false };
            let gone = transport.ended && S::LOST_WHEN_GONE;
            let wanted = gone || side.may_read(*slot);
            if wanted {
                queue(ready, transport, *slot);
            }
            !wanted
        });
    }

    /// Writes every one that has something once.
    pub fn write(&mut self, side: &mut impl Side, registry: &Registry) {
        for slot in std::mem::take(side.written()) {
            let token = self.token(slot);
            let Some(Some(transport)) = self.transports.get_mut(slot as usize) else { continue };
            let Some(out) = side.out(slot) else { continue };
            match transport.write(out, registry, token) {
                Ok(done) if done == out.len() && !transport.is_unfinished() => side.flushed(slot),
                // TLS may have taken all and not yet sent it: it must not be given again.
                Ok(done) => drop(out.drain(..done)),
                Err(_) => {
                    if side.write_failed(slot) {
                        transport.readable = true;
                        queue(&mut self.ready, transport, slot);
                    }
                }
            }
        }
    }

    /// Closes it once its bytes are written.
    pub fn close(&mut self, slot: u32, side: &mut impl Side, now: Moment) {
        if self.is_unwritten(slot, side) {
            if !self.lingering.iter().any(|(lingering, _)| *lingering == slot) {
                self.lingering.push((slot, now.after(LINGER)));
            }
            return;
        }
        if let Some(mut transport) = self.take(slot) {
            transport.farewell();
        }
        side.forgotten(slot);
    }

    /// The peer has not been sent everything: in its buffer, or encrypted and kept by TLS.
    fn is_unwritten(&self, slot: u32, side: &mut impl Side) -> bool {
        self.get(slot).is_some_and(|transport| {
            side.out(slot).is_some_and(|out| !out.is_empty()) || transport.is_unfinished()
        })
    }

    /// Closes those that have been written to their end, or should have been by now.
    pub fn linger(&mut self, side: &mut impl Side, now: Moment) {
        if self.lingering.is_empty() {
            return;
        }
        for (slot, until) in std::mem::take(&mut self.lingering) {
            if now >= until {
                drop(self.take(slot));
            }
            if self.is_unwritten(slot, side) {
                self.lingering.push((slot, until));
            } else {
                self.close(slot, side, now);
            }
        }
    }
}

/// To be read in the next turn, if it is not so already.
fn queue(ready: &mut Vec<u32>, transport: &mut Transport, slot: u32) {
    if !std::mem::replace(&mut transport.queued, true) {
        ready.push(slot);
    }
}
